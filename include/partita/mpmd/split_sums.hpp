/// Splits sums over microbatches of values from several meshes, so that each mesh accumulates its
/// own part.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/topology.hpp>

namespace partita::mpmd_detail {

/// before: microbatch_sum(add(a, b)) => after: add(microbatch_sum(a), microbatch_sum(b)), if a and
/// b are computed on different meshes and the sum of an iteration has no other use. Each mesh
/// accumulates its own values and sends the result once.
///
/// Cost: linear in ops.
class sum_splitter {
 public:
  constexpr sum_splitter(one_microbatch& one, const vec<int>& mesh)
      : p_(one.p),
        one_(one),
        mesh_(mesh),
        copy_(one.p, q_),
        uses_(one.p.types.size(), 0),
        made_on_(one.p.types.size(), {}) {}

  /// Returns true if anything has changed.
  constexpr bool run() {
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (const value_id v : p_.operands(o)) ++uses_[v];
    for (const auto& each : p_.outputs) ++uses_[each.value];
    find_places();
    bool any = false;
    for_each_of(p_, def<op::microbatch_sum>, [&](op_id o) {
      if (!is_split(o)) return;
      any = true;
      mark(p_.operand(o, 0));
    });
    if (!any) return false;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (is_split(o)) {
        copy_.renamed[p_.op(o).result] = sums(o, p_.operand(o, 0));
      } else if (!inside_split_[o]) {
        copy_.op(o);
        inside_.push_back(one_.inside[o]);
        for (const auto& r : p_.regions_of(o)) q_.append_region(program(r));
      }
    }
    copy_.interface();
    q_.labels = p_.labels;
    q_.scopes = p_.scopes;
    number_ops(q_);
    one_.p = static_cast<program&&>(q_);
    one_.inside = static_cast<vec<char>&&>(inside_);
    return true;
  }

 private:
  const program& p_;
  one_microbatch& one_;
  const vec<int>& mesh_;
  program q_;
  vec<char> inside_;
  program_copier copy_;
  vec<int> uses_;
  vec<mesh_set> made_on_;   ///< by value: meshes of the parts whose results it adds up
  vec<char> inside_split_;  ///< by op: an addition that is moved after the loop

  constexpr bool adds_up(value_id v) const {
    const op_id o = p_.producer(v);
    return mesh_[o] < 0 && p_.op(o).def->adds && uses_[v] == 1;
  }
  constexpr void find_places() {
    inside_split_.resize(p_.ops.size(), 0);
    op_id o = 0;
    for (const op_node& n : p_.ops) {
      const op_id self = o++;
      if (n.result_count == 0) continue;
      mesh_set& on = made_on_[n.result];
      if (mesh_[self] >= 0)
        on = mesh_set::of(mesh_[self]);
      else
        for (const value_id v : p_.operands(self)) on |= made_on_[v];
    }
  }
  constexpr bool apart(value_id v) const { return adds_up(v) && made_on_[v].count() > 1; }
  constexpr bool is_split(op_id o) const {
    return p_.op(o).def->id == def<op::microbatch_sum>.id &&
           p_.attrs(o)[0] == static_cast<std::int64_t>(combiner::add) && apart(p_.operand(o, 0));
  }
  constexpr void mark(value_id v) {
    vec<value_id> pending{v};
    while (!pending.empty()) {
      const value_id x = pending.back();
      pending.pop_back();
      if (!apart(x)) continue;
      inside_split_[p_.producer(x)] = 1;
      for (const value_id y : p_.operands(p_.producer(x))) pending.push_back(y);
    }
  }
  /// The sum over microbatches of each part, and the ops that add these up. Iterative, because
  /// nested sums of derivatives can be as deep as programs are long.
  constexpr value_id sums(op_id sum, value_id root) {
    struct node {
      value_id value;
      bool behind;  ///< true if its operands are done
    };
    vec<node> pending{{root, false}};
    vec<value_id> done;
    while (!pending.empty()) {
      const node n = pending.back();
      const op_id o = p_.producer(n.value);
      pending.pop_back();
      if (!apart(n.value)) {
        done.push_back(sum_of(sum, n.value));
      } else if (n.behind) {
        const value_id second = done.back();
        done.pop_back();
        done.back() = added(o, done.back(), second);
      } else {
        for (const node& each :
             {node{n.value, true}, {p_.operand(o, 1), false}, {p_.operand(o, 0), false}})
          pending.push_back(each);
      }
    }
    return done[0];
  }
  constexpr value_id sum_of(op_id sum, value_id v) {
    const value_id operands[] = {copy_.renamed[v]};
    inside_.push_back(0);
    return q_.append(def<op::microbatch_sum>, operands, p_.attrs(sum), p_.type(v));
  }
  constexpr value_id added(op_id like, value_id a, value_id b) {
    const value_id both[] = {a, b};
    append_copy(q_, p_, like, both, p_.attrs(like));
    inside_.push_back(0);
    q_.ops.back().marks = {};
    return q_.append_result(p_.type(p_.op(like).result));
  }
};

}  // namespace partita::mpmd_detail
