/// The pass that places collectives.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/rewrite.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// Moves each gather down to the first op that uses its result, together with ops whose only
/// operand derives from the gathered value (its transpose, a slice of it). Moves reduce_scatters
/// and slices that are the only use of their operand up to the op that produces it.
///
/// When: the peak of live memory does not rise; of two variants (with and without the ops that
/// derive from a gathered value), the one with the lower peak is used. Why: a gathered value is
/// larger than its shard, and a scattered value is smaller than its operand. It ends because each
/// op is moved once.
class placing {
 public:
  /// `nested`: live_bytes::inside.
  constexpr placing(const program& p, const vec<std::int64_t>& nested)
      : p_(p), nested_(nested), uses_(p.types.size(), 0) {
    for (value_id v : p.operand_list) ++uses_[v];
    for (const auto& out : p.outputs) uses_[out.value] += 2;  // prevents "only use"
  }

  constexpr rewrite run() {
    const std::int64_t as_it_is = live_bytes(p_, nested_).peak();
    rewrite best = unchanged();
    std::int64_t lowest = as_it_is + 1;
    for (const bool with_users : {true, false}) {
      rewrite w = moved(with_users);
      if (w.changed == 0) continue;
      const std::int64_t peak = live_bytes(rewritten_alone(p_, w), rewritten(nested_, w)).peak();
      if (peak >= lowest) continue;
      lowest = peak;
      best = static_cast<rewrite&&>(w);
    }
    return best;
  }

 private:
  const program& p_;
  const vec<std::int64_t>& nested_;
  vec<int> uses_;    ///< by value
  vec<char> moves_;  ///< by op

  constexpr rewrite unchanged() const {
    rewrite w(p_);
    w.order = each_op(p_);
    return w;
  }
  constexpr bool only_use(op_id o) const {
    return p_.op(o).operand_count == 1 && uses_[p_.operand(o, 0)] == 1;
  }
  constexpr bool is_late(op_id o, const vec<char>& late, bool with_users) const {
    const op_node& n = p_.op(o);
    if (p_.is(o, collective::all_gather)) return true;
    return with_users && n.region_count == 0 && !n.def->collective && only_use(o) &&
           late[p_.producer(p_.operand(o, 0))] != 0;
  }
  constexpr bool is_early(op_id o) const {
    return (p_.is(o, collective::reduce_scatter) || p_.is(o, collective::all_slice)) &&
           only_use(o) && !p_.is(p_.producer(p_.operand(o, 0)), op_role::parameter);
  }

  constexpr rewrite moved(bool with_users) {
    vec<char> late(p_.ops.size(), 0);
    vec<op_id> early(p_.types.size(), -1);  // by value: the op that directly follows its producer
    moves_.assign(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      late[o] = is_late(o, late, with_users);
      if (late[o] == 0 && is_early(o)) early[p_.operand(o, 0)] = o;
      moves_[o] = late[o] != 0 || (p_.op(o).operand_count == 1 && early[p_.operand(o, 0)] == o);
    }
    rewrite w(p_);
    ordering list(p_, w);
    const auto add = [&](op_id o) {
      list.add(o, [&](op_id made) {
        do {
          const op_node& n = p_.op(made);
          made = n.result_count == 1 ? early[n.result] : -1;
        } while (made >= 0 && list.append(made));
      });
    };
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (late[o] == 0) add(o);
    for (op_id o = 0; o < p_.op_count(); ++o) add(o);  // ops that only the outputs use
    count(w);
    return w;
  }

  /// Counts the moved collectives: those that now precede another op than before, ignoring other
  /// moved ops.
  constexpr void count(rewrite& w) const {
    vec<op_id> before(p_.ops.size(), -1);
    op_id following = -1;
    for (op_id o = p_.op_count(); o-- > 0;)
      if (moves_[o])
        before[o] = following;
      else
        following = o;
    following = -1;
    for (std::size_t i = w.order.size(); i-- > 0;) {
      const op_id o = w.order[i];
      if (!moves_[o])
        following = o;
      else if (p_.op(o).def->collective && before[o] != following)
        ++w.changed;
    }
  }
};

}  // namespace partita::spmd_detail
