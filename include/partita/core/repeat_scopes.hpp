/// Rematerialization: programs that recompute values instead of keeping them.
///
/// Source    Chen et al., arXiv:1604.06174; the semantics are those of jax.checkpoint
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/optimization_barrier.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/support/copy_names.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The ops of a program that are to be recomputed for the derivative.
struct repeat_plan {
  vec<int> scope;  ///< by op: the scope it belongs to, whose values are not kept, or -1
  /// By op: true if it depends on a value of the derivative or belongs to the derivative.
  vec<char> derived;
  vec<char> named;  ///< by op: true if its results are not kept even if they leave the scope
  int scopes = 0;
};

/// The result of `repeat_scopes`.
struct repeated_program {
  program p;
  vec<int> copies;   ///< by scope: the number of ops that are recomputed
  vec<char> copied;  ///< by op of the original program: true if it is recomputed
};

namespace core_detail {

/// Recomputes the values of scopes before the derivative reads them.
///
///     forward f of a scope, ..., derivative that reads f(x)
///       => forward f, ..., (x', d') = optimization_barrier(x, d), f(x') again,
///          derivative that reads it
///
/// Kept are the values that a scope reads from outside, the values that other ops of the forward
/// part read from it (unless they are named), and outputs. Values computed from constants alone
/// need no barrier.
///
/// The copies of a scope come directly before the first op of the derivative that reads one of
/// them. The barrier prevents compilers from finding that f is computed twice and running the
/// second f as early as the first: d is a value of the derivative that is available by then.
/// Program inputs do not pass through the barrier unless nothing else does, because they are kept
/// anyway. It ends because each op is visited once.
class repeating {
 public:
  constexpr repeating(const program& p, const repeat_plan& plan)
      : p_(p),
        plan_(plan),
        free_(p.types.size(), 0),
        wanted_(p.types.size(), 0),
        kept_(p.types.size(), 0),
        used_(p.types.size(), 0),
        copied_(p.ops.size(), 0),
        alive_(p.ops.size(), 0),
        now_(p.types.size(), -1),
        again_(p.types.size(), -1),
        trigger_(static_cast<std::size_t>(plan.scopes), -1) {
    result_.copies.resize(static_cast<std::size_t>(plan.scopes), 0);
  }

  constexpr repeated_program run() {
    find_free();
    for (op_id o = p_.op_count(); o-- > 0;) decide(o);
    find_triggers();
    list_copies();
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (alive_[o]) add(o);
    for (value_id v : p_.inputs) out().inputs.push_back(now_[v]);
    for (const auto& each : p_.outputs)
      out().outputs.push_back({now_[each.value], out().intern(p_.view(each.name))});
    result_.copied = copied_;
    return static_cast<repeated_program&&>(result_);
  }

 private:
  /// A value that passes through the barrier of a scope.
  struct passed {
    value_id value = -1;
    int scope = -1;
    value_id result = -1;
  };

  const program& p_;
  const repeat_plan& plan_;
  vec<char> free_;       ///< by value: true if it is computed from constants alone
  vec<char> wanted_;     ///< by value: true if the derivative, or a copy in its scope, reads it
  vec<char> kept_;       ///< by value: true if it is kept until the derivative runs
  vec<char> used_;       ///< by value: true if anything reads the original
  vec<char> copied_;     ///< by op
  vec<char> alive_;      ///< by op
  vec<value_id> now_;    ///< by value: its value in the new program
  vec<value_id> again_;  ///< by value: the copy in the new program
  /// By scope: a value of the derivative that is available before the scope is recomputed.
  vec<value_id> trigger_;
  vec<op_id> copies_;    ///< sorted by scope, then by op number
  vec<int> next_, end_;  ///< by scope: a range in `copies_`
  vec<passed> passed_;
  place_table passed_places_;
  vec<value_id> operands_;
  repeated_program result_;

  constexpr program& out() { return result_.p; }
  /// The scope of an op. A constant has none, because it costs nothing to compute.
  constexpr int scope(op_id o) const { return p_.ops[o].operand_count == 0 ? -1 : plan_.scope[o]; }
  constexpr bool derived(op_id o) const { return plan_.derived[o] != 0; }
  /// True if a value has a copy that the derivative reads in its place.
  constexpr bool has_copy(value_id v) const {
    return kept_[v] == 0 && copied_[p_.producers[v]] != 0;
  }
  constexpr bool is_input(value_id v) const { return p_.is(p_.producers[v], op_role::parameter); }

  constexpr void find_free() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.ops[o];
      bool free = n.def->role == op_role::compute;
      for (value_id v : p_.operands(o)) free = free && free_[v] != 0;
      for (int r = 0; r < n.result_count; ++r) free_[n.result + r] = free;
    }
    for (const auto& each : p_.outputs) kept_[each.value] = used_[each.value] = 1;
  }
  /// Decides whether an op is copied and whether the original stays. All users of its results have
  /// been decided.
  constexpr void decide(op_id o) {
    const op_node& n = p_.ops[o];
    const int s = derived(o) ? -1 : scope(o);
    bool used = s < 0, copied = false;
    for (value_id v = n.result; v < n.result + n.result_count; ++v) {
      if (wanted_[v] != 0 && kept_[v] != 0) used_[v] = 1;
      used = used || used_[v] != 0;
      copied = copied || (wanted_[v] != 0 && kept_[v] == 0);
    }
    copied_[o] = s >= 0 && copied;
    used = used || !copied;  // an op that nothing reads stays unchanged
    alive_[o] = used;
    for (value_id v : p_.operands(o)) {
      const op_id from = p_.producers[v];
      if (derived(o) && !derived(from) && scope(from) >= 0)
        wanted_[v] = 1;
      else if (used)
        use(v, derived(o), s);
      if (copied_[o] != 0) read_again(v, s);
    }
  }
  /// Marks a value as read by an op that stays, in scope `s` or none.
  constexpr void use(value_id v, bool derives, int s) {
    const op_id from = p_.producers[v];
    used_[v] = 1;
    if (!derives && scope(from) >= 0 && scope(from) != s && plan_.named[from] == 0) kept_[v] = 1;
  }
  constexpr void read_again(value_id v, int by) {
    const op_id from = p_.producers[v];
    if (scope(from) == by && !derived(from))
      wanted_[v] = 1;
    else
      kept_[v] = used_[v] = 1;
  }

  /// Finds, for each scope, the first derivative operand of an op that reads copies of the scope,
  /// directly or through ops that read nothing else.
  constexpr void find_triggers() {
    vec<op_id> first(static_cast<std::size_t>(plan_.scopes), -1);
    vec<int> prepared(p_.types.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!derived(o)) continue;
      int of = -1;
      for (value_id v : p_.operands(o)) {
        if (!has_copy(v)) continue;
        const int s = plan_.scope[p_.producers[v]];
        if (first[s] < 0) first[s] = o;
        if (of < 0) of = s;
      }
      for (value_id v : p_.operands(o))
        if (of < 0) of = prepared[v];
      value_id given = -1;
      for (value_id v : p_.operands(o))
        if (given < 0 && derived(p_.producers[v]) && free_[v] == 0 && prepared[v] != of) given = v;
      if (of < 0) continue;
      if (first[of] < 0) first[of] = o;
      const op_node& n = p_.ops[o];
      if (given < 0)
        for (int r = 0; r < n.result_count; ++r) prepared[n.result + r] = of;
      else if (trigger_[of] < 0 && p_.producers[given] < first[of])
        trigger_[of] = given;
    }
  }
  constexpr void list_copies() {
    next_.resize(static_cast<std::size_t>(plan_.scopes) + 1, 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (copied_[o] != 0) ++result_.copies[plan_.scope[o]];
    int begin = 0;
    for (int s = 0; s < plan_.scopes; ++s) {
      next_[s] = begin;
      begin += result_.copies[s];
    }
    end_ = next_;
    copies_.resize(static_cast<std::size_t>(begin), -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (copied_[o] != 0) copies_[end_[plan_.scope[o]]++] = o;
  }

  constexpr void add(op_id o) {
    if (derived(o))
      for (value_id v : p_.operands(o))
        if (has_copy(v)) compute_again(plan_.scope[p_.producers[v]], o);
    operands_.clear();
    for (value_id v : p_.operands(o))
      operands_.push_back(derived(o) && has_copy(v) ? again_[v] : now_[v]);
    append(o, now_, false);
  }
  /// Appends an op with `operands_`; `renamed` receives its results.
  constexpr void append(op_id o, vec<value_id>& renamed, bool again) {
    const op_node& n = p_.ops[o];
    append_copy(out(), p_, o, operands_, p_.attrs(o));
    op_node& made = out().ops.back();
    if (again) made.marks.again = true;
    if (again && n.def->role == op_role::tag)
      made.name = out().intern(op_detail::name_of_copy(p_.view(n.name)).view());
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      renamed[v] = out().append_result(p_.types[v]);
    for (const auto& r : p_.regions_of(o))
      out().append_region(again ? op_detail::copy_to_repeat(r) : program(r));
  }
  /// Recomputes the ops of a scope that come before op `reader`, which needs some of them.
  constexpr void compute_again(int s, op_id reader) {
    const int begin = next_[s];
    int end = begin;
    while (end < end_[s] && copies_[end] < reader) ++end;
    if (end == begin) return;
    next_[s] = end;
    add_barrier(s, begin, end, reader);
    for (int i = begin; i < end; ++i) {
      operands_.clear();
      for (value_id v : p_.operands(copies_[i])) {
        const int place = has_copy(v) ? -1 : find_passed(s, v);
        operands_.push_back(has_copy(v) ? again_[v] : place >= 0 ? passed_[place].result : now_[v]);
      }
      append(copies_[i], again_, true);
    }
  }
  constexpr void add_barrier(int s, int begin, int end, op_id reader) {
    const std::size_t first = passed_.size();
    for (const bool inputs : {false, true}) {
      if (passed_.size() > first) break;
      for (int i = begin; i < end; ++i)
        for (value_id v : p_.operands(copies_[i]))
          if (!has_copy(v) && free_[v] == 0 && is_input(v) == inputs && find_passed(s, v) < 0)
            pass(s, v);
    }
    if (passed_.size() == first) return;
    if (value_id& t = trigger_[s]; t >= 0) {
      passed_.push_back({t, -1, -1});
      t = -1;
    }
    operands_.clear();
    for (std::size_t i = first; i < passed_.size(); ++i)
      operands_.push_back(now_[passed_[i].value]);
    out().append_op(def<op::optimization_barrier>, operands_, {});
    out().ops.back().marks = p_.ops[reader].marks;
    for (std::size_t i = first; i < passed_.size(); ++i) {
      passed& each = passed_[i];
      each.result = out().append_result(p_.types[each.value]);
      if (each.scope < 0) now_[each.value] = each.result;
    }
  }
  static constexpr std::size_t hash(int s, value_id v) {
    return hash_of(static_cast<std::uint64_t>(s) << 32 | static_cast<std::uint64_t>(v));
  }
  constexpr int find_passed(int s, value_id v) const {
    return passed_places_.find(
        hash(s, v), [&](int i) { return passed_[i].scope == s && passed_[i].value == v; });
  }
  constexpr void pass(int s, value_id v) {
    passed_.push_back({v, s, -1});
    passed_places_.insert(static_cast<int>(passed_.size()) - 1,
                          [&](int i) { return hash(passed_[i].scope, passed_[i].value); });
  }
};

/// Makes the names of copied tags unique in the program: "x.again", "x.again2", ...
constexpr void name_copies(program& p) {
  std::size_t count = p.inputs.size();
  bool any = false;
  ir_detail::for_each_tag(p, [&](program&, op_node& n) {
    ++count;
    any = any || n.marks.again;
  });
  if (!any) return;
  copy_names taken(count);
  for (int i = 0; i < p.input_count(); ++i) (void)taken.unique(p.input_name(i));
  for (const bool again : {false, true})
    ir_detail::for_each_tag(p, [&](program& in, op_node& n) {
      if (n.marks.again != again) return;
      const text own = taken.unique(in.view(n.name));
      if (again) n.name = in.intern(own.view());
    });
}

}  // namespace core_detail

/// Returns the program in which the scopes' values are recomputed directly before the derivative
/// reads them, so that they need not stay in memory. Nested programs are unchanged. Ops keep their
/// marks; copies are marked (op_marks::again), and the names of their tags end in ".again" (see
/// name_copies). Ops that only the derivative needed, and that are recomputed, are removed.
///
/// Cost: linear in ops.
constexpr repeated_program repeat_scopes(const program& p, const repeat_plan& plan) {
  return core_detail::repeating(p, plan).run();
}

}  // namespace partita
