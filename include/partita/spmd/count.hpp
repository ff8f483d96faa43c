/// Counts the collectives of a program under partitioning without lowering it.
#pragma once

#include <cstdint>

#include <partita/spmd/layout_changes.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace spmd_detail {

/// Counts the collectives that convert operands to their required layouts and finish sums.
struct collective_books {
  static constexpr int kinds = 5;  // kinds that communicate
  std::int64_t written[kinds] = {};
  level times[kinds];
  std::int64_t work = 0;

  constexpr explicit collective_books(const core_program& c) : c_(c) {}

  constexpr void clear() {
    endings_.clear();
    ways_.clear();
    numbers_.clear();
    needs_.clear();
    of_op_.clear();
    users_.clear();
    again_.clear();
    exchanged_.clear();
    for (int k = 0; k < kinds; ++k) {
      written[k] = 0;
      times[k] = {};
    }
  }
  constexpr void grow() {
    endings_.resize(c_.p.types.size());
    ways_.resize(c_.p.operand_list.size());
    of_op_.resize(c_.p.ops.size(), -1);
    again_.resize(c_.p.ops.size(), 0);
    exchanged_.resize(c_.p.ops.size(), 0);
  }
  template <class Finish>
  constexpr void value(value_id v, const Finish& finish) {
    ++work;
    ending now;
    finish([&](const collective& what, const layout&) {
      now.scatters = now.scatters || what.kind == collective::reduce_scatter;
      now.reduces = now.reduces || what.kind == collective::all_reduce;
      now.gathers = now.gathers || what.kind == collective::all_gather;
    });
    ending& before = endings_[v];
    if (before == now) return;
    const std::int64_t runs = trips(c_.nested.value_scope[v]);
    change(collective::reduce_scatter, before.scatters, now.scatters, runs);
    change(collective::all_reduce, before.reduces, now.reduces, runs);
    change(collective::all_gather, before.gathers, now.gathers, runs);
    before = now;
  }
  template <class Bring>
  constexpr void operand(int place, value_id v, const Bring& bring) {
    ++work;
    way now;
    bring([&](const reshard_step& s) {
      now.gathers += s.what.kind == collective::all_gather;
      now.all_to_alls += s.what.kind == collective::all_to_all;
      now.permutes += s.what.kind == collective::permute;
      now.reduces += s.what.kind == collective::all_reduce;
      now.scatters += s.what.kind == collective::reduce_scatter;
    });
    way& before = ways_[place];
    if (before == now) return;
    const std::int64_t runs = trips(c_.nested.value_scope[v]);
    change(collective::all_gather, before.gathers, now.gathers, runs);
    change(collective::all_to_all, before.all_to_alls, now.all_to_alls, runs);
    change(collective::permute, before.permutes, now.permutes, runs);
    change(collective::all_reduce, before.reduces, now.reduces, runs);
    change(collective::reduce_scatter, before.scatters, now.scatters, runs);
    before = now;
  }
  /// Counts the permutes of halos, and the collectives of ops that reduce again or accumulate along
  /// a dimension.
  constexpr void op(op_id o, const spmd_detail::local_layouts& layouts) {
    const bool puts_together = spmd_detail::has_again(c_, o);
    const int results = puts_together ? c_.p.ops[o].result_count : 0;
    const int gathers = puts_together && layouts.exchange_again(o).shares() ? 0 : results;
    count_again(collective::all_gather, again_[o], gathers + carries(o), o);
    count_again(collective::all_to_all, exchanged_[o], results - gathers, o);
    if (of_op_[o] < 0 && !c_.has_halo(o)) return;
    vec<int> now;
    spmd_detail::for_each_halo_message(c_, layouts.sums, numbers_, o,
                                       [&](int border, const auto&...) { now.push_back(border); });
    need(o, static_cast<vec<int>&&>(now));
  }

 private:
  /// The collectives that convert one operand.
  struct way {
    std::uint8_t gathers = 0, all_to_alls = 0, permutes = 0, reduces = 0, scatters = 0;

    friend constexpr bool operator==(const way&, const way&) = default;
  };
  /// The collectives that finish the sum of one value or gather its shards.
  struct ending {
    bool scatters = false, reduces = false, gathers = false;

    friend constexpr bool operator==(const ending&, const ending&) = default;
  };

  const core_program& c_;
  vec<ending> endings_;   ///< by value
  vec<way> ways_;         ///< by index in the program's operand list
  halo_numbers numbers_;  ///< numbers of borders
  vec<vec<int>> needs_;   ///< the borders that an op needs
  vec<int> of_op_;        ///< by op: its index in `needs_`, or -1
  vec<int> users_;        ///< by border: the number of ops that need it
  vec<int> again_;        ///< by op: the number of gathers of its results
  vec<int> exchanged_;    ///< by op: the number of exchanges of its results

  constexpr int carries(op_id o) const {
    return spmd_detail::gather_totals(c_, o).axes.count > 0 ? 1 : 0;
  }
  constexpr void count_again(collective::kind_type kind, int& before, int now, op_id o) {
    if (before == now) return;
    change(kind, before, now, trips(c_.nested.scope[o]));
    before = now;
  }

  /// Records the borders that an op needs. Each border is sent as long as some op needs it.
  constexpr void need(op_id o, vec<int>&& now) {
    if (of_op_[o] < 0) {
      of_op_[o] = static_cast<int>(needs_.size());
      needs_.push_back({});
    }
    users_.resize(static_cast<std::size_t>(numbers_.count()), 0);
    const std::int64_t runs = trips(c_.nested.scope[o]);
    for (int border : now)
      if (++users_[border] == 1) change(collective::permute, 0, 1, runs);
    for (int border : needs_[of_op_[o]])
      if (--users_[border] == 0) change(collective::permute, 1, 0, runs);
    needs_[of_op_[o]] = static_cast<vec<int>&&>(now);
  }
  constexpr void change(collective::kind_type kind, std::int64_t before, std::int64_t now,
                        std::int64_t runs) {
    if (before == now) return;
    written[kind] += now - before;
    times[kind].remove(saturating_multiply(before, runs));
    times[kind].add(saturating_multiply(now, runs));
  }
  constexpr std::int64_t trips(int scope) const { return c_.nested.scopes[scope].trips; }
};

}  // namespace spmd_detail

/// Counts the collectives that `lower` would emit for a program with fusion, before the rewriting
/// passes.
///
/// After a change of the program, only the affected ops are counted again, see layout_changes.
class collective_counter {
 public:
  constexpr collective_counter(const core_program& c, const passes& rules)
      : account_(c), changes_(c, rules, account_) {}
  collective_counter(const collective_counter&) = delete;  // changes_ refers to account_
  collective_counter& operator=(const collective_counter&) = delete;

  /// Counts the changes since the last call; the first call counts the program.
  constexpr void update() { changes_.update(); }

  /// The counts, where a collective in a loop counts once per iteration.
  constexpr collectives counts() const {
    const level* const t = account_.times;
    return {t[0].value(), t[1].value(), t[2].value(), t[3].value(), t[4].value()};
  }
  /// The counts, where each collective counts once.
  constexpr collectives as_written() const {
    const std::int64_t* const w = account_.written;
    return {w[0], w[1], w[2], w[3], w[4]};
  }
  /// The number of operands and results visited so far.
  constexpr std::int64_t work() const { return account_.work; }

 private:
  spmd_detail::collective_books account_;
  layout_changes<spmd_detail::collective_books> changes_;
};

}  // namespace partita
