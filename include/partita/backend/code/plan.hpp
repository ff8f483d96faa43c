/// The parts of a program's code: steps in order, loops over elements, and one block of memory. The
/// text (write_cpp.hpp) prints this plan, `compiled` (compiled.hpp) instantiates it.
///
/// The executor has a plan of its own (run/device/plan.hpp), made of kernels that exist already;
/// this one is constexpr and knows that a compiler will read what comes of it.
#pragma once

#include <cstdint>

#include <partita/run/array.hpp>
#include <partita/run/device/control_wires.hpp>
#include <partita/run/fusion/repetition.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::backend_detail {

/// Where a value is stored.
struct code_place {
  enum class kind : std::uint8_t { nowhere, input, output, memory };
  kind where = kind::nowhere;
  std::int64_t at = 0;  ///< number of the input or output, or bytes from the start of the memory
};
/// How a step reads an operand.
struct code_access {
  enum class kind : std::uint8_t {
    whole,   ///< in memory; in a loop element i
    local,   ///< made by the same loop
    splat,   ///< one constant, given by its bits
    scalar,  ///< one element in memory
    repeat   ///< element i / inner % count
  };
  kind how = kind::whole;
  value_id source = -1;  ///< the root value that is read
  std::int64_t bits = 0, count = 1, inner = 1;
};
/// An operand or a result.
struct code_value {
  tensor_type type;
  code_access access;      ///< of a result: the value
  code_place place;        ///< of the source
  std::int64_t bytes = 0;  ///< of the source, with padding
  int member = -1;         ///< of a local operand: which op of the loop makes it
};
/// An op, with its ranges of the plan's operands, results and attributes.
struct code_op {
  op_id op = -1;
  const op_def* def = nullptr;
  int operand = 0, operands = 0, result = 0, results = 0, attr = 0, attrs = 0;
};
/// A loop over elements that computes several ops, or one op.
struct code_step {
  enum class kind : std::uint8_t { loop, kernel, collective, start, control };
  kind what = kind::kernel;
  std::int64_t elements = 0;  ///< of a loop
  int op = 0, ops = 0;        ///< range of the plan's ops
  int control = -1;           ///< of an op with nested programs: in code_plan::controls
};

struct code_plan;
/// A value that passes into and out of nested programs.
struct code_wire : run_detail::run_wire {
  std::int64_t at = -1;     ///< where the value that the nested programs see is stored
  std::int64_t spare = -1;  ///< where the next value waits until all are known
};
/// An op with nested programs.
struct code_control {
  vec<code_plan> nested;
  vec<code_wire> wires;
};

/// Law: running the steps in order computes every output. The memory of two values does not overlap
/// while both are needed.
///
/// `start`: the first byte of the memory that the plan may use; `copies`: of every value, one after
/// the other, for the devices that run it; `outermost`: outputs are written where the caller says.
///
/// Errors    E020 an op has no kernel of the library
struct code_plan {
  vec<code_step> steps;
  vec<code_op> ops;
  vec<code_value> operands, results;
  vec<std::int64_t> attrs;
  vec<code_control> controls;
  vec<value_id> roots;     ///< by value: the value whose memory it uses
  vec<code_place> places;  ///< by root value
  std::int64_t end = 0;    ///< of the memory, in bytes
  failure error;

  constexpr code_plan() = default;
  constexpr code_plan(const program& p, std::int64_t start, std::int64_t copies, bool outermost);

  constexpr const code_place& place(value_id v) const { return places[roots[v]]; }
};

class code_planner {
 public:
  constexpr code_planner(const program& p, code_plan& plan, std::int64_t start, std::int64_t copies,
                         bool outermost)
      : p_(p), plan_(plan), start_(start), copies_(copies), outermost_(outermost) {
    const auto values = static_cast<std::size_t>(p.value_count());
    needed_.resize(static_cast<std::size_t>(p.op_count()), 0);
    stored_.resize(values, 0);
    step_of_.resize(values, -1);
    remade_.resize(values, code_access{});
    plan_.roots.resize(values, -1);
    plan_.places.resize(values, code_place{});
  }
  constexpr void run() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      const bool passed = run_detail::passes_on(p_, o);
      for (int r = 0; r < n.result_count; ++r)
        plan_.roots[n.result + r] = passed ? root(p_.operand(o, r)) : n.result + r;
      if (!passed && n.result_count == 1) find_remade(o);
    }
    find_uses();
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (needed_[o] && !run_detail::passes_on(p_, o) && !p_.is(o, op_role::parameter)) schedule(o);
    find_stored();
    place();
    for (int k = 0; k < step_count(); ++k) finish(k);
  }

 private:
  /// A loop that began more steps ago is closed: joining it would keep values alive.
  static constexpr int reach = 16;
  static constexpr std::size_t most_members = 48;
  struct draft : code_step {
    vec<op_id> members;
  };
  static constexpr auto loop = code_step::kind::loop;
  static constexpr auto splat = code_access::kind::splat;

  constexpr value_id root(value_id v) const { return plan_.roots[v]; }
  constexpr std::int64_t elements(value_id v) const { return p_.type(v).shape.elements(); }
  constexpr int step_count() const { return static_cast<int>(drafts_.size()); }

  /// Constants and repetitions of a value in memory: loops make them where they use them.
  constexpr void find_remade(op_id o) {
    const op_node& n = p_.op(o);
    code_access& to = remade_[n.result];
    if (n.def->constant && n.operand_count == 0) {
      to = {splat, n.result, p_.attrs(o)[0]};
    } else if (n.def == &def<op::broadcast_in_dim>) {
      const value_id from = root(p_.operand(o, 0));
      const code_access& source = remade_[from];
      const auto r = run_detail::repetition_of(p_.type(p_.operand(o, 0)).shape,
                                               p_.type(n.result).shape, p_.attrs(o));
      if (!r || (source.source >= 0 && source.how != splat)) return;
      to = {r->count == 1 ? code_access::kind::scalar : code_access::kind::repeat, from, 0,
            r->count, r->inner};
      if (source.how == splat) to = source;
    }
  }
  constexpr bool is_remade(value_id v) const { return remade_[v].source >= 0; }
  constexpr bool in_loops(op_id o) const {
    const op_node& n = p_.op(o);
    return n.def->elementwise && n.operand_count > 0 && n.def != &def<op::reduce_precision>;
  }
  /// How a step reads an operand.
  constexpr code_access access(int k, value_id x) const {
    const value_id r = root(x);
    const draft& s = drafts_[k];
    using kind = code_access::kind;
    if (s.what != loop) return {kind::whole, r};
    if (is_remade(r)) return remade_[r];
    if (step_of_[r] == k && elements(r) == s.elements) return {kind::local, r};
    return {elements(r) == 1 && s.elements != 1 ? kind::scalar : kind::whole, r};
  }

  constexpr void find_uses() {
    for (const auto& out : p_.outputs) {
      needed_[p_.producer(out.value)] = 1;
      stored_[root(out.value)] = 1;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (!needed_[o]) continue;
      const value_id made = p_.op(o).result;
      const bool reads_memory = !run_detail::passes_on(p_, o) && !in_loops(o);
      const bool in_uses = reads_memory && is_remade(made) && !stored_[made];
      for (value_id x : p_.operands(o)) {
        needed_[p_.producer(x)] = 1;
        if (reads_memory && !(in_uses && is_remade(root(x)))) stored_[root(x)] = 1;
      }
    }
  }
  constexpr void schedule(op_id o) {
    const op_node& n = p_.op(o);
    using kind = code_step::kind;
    draft s;
    s.elements = elements(n.result);
    if (in_loops(o)) s.what = loop;
    if (n.def->collective) s.what = kind::collective;
    if (n.def == &def<op::shard_start>) s.what = kind::start;
    if (n.region_count > 0) s.what = kind::control;
    if (s.what == kind::kernel && is_remade(n.result) && !stored_[n.result]) return;
    int k = s.what == loop ? loop_for(o, s.elements) : -1;
    if (k < 0) {
      k = step_count();
      drafts_.push_back(s);
    }
    drafts_[k].members.push_back(o);
    for (int r = 0; r < n.result_count; ++r) step_of_[n.result + r] = k;
  }
  /// The latest loop that can hold this op and makes or reads one of its operands, or -1.
  constexpr int loop_for(op_id o, std::int64_t count) const {
    int earliest = 0;
    for (value_id x : p_.operands(o)) {
      const value_id r = root(x);
      const bool remade = is_remade(r), joins = !remade && elements(x) == count;
      if (remade && remade_[r].how == splat) continue;
      const int after = step_of_[remade ? remade_[r].source : r] + (joins ? 0 : 1);
      if (after > earliest) earliest = after;
    }
    for (int k = step_count(); k-- > earliest && k + reach >= step_count();) {
      const draft& s = drafts_[k];
      if (s.what == loop && s.elements == count && s.members.size() < most_members &&
          shares(s, k, o))
        return k;
    }
    return -1;
  }
  constexpr bool shares(const draft& s, int k, op_id o) const {
    for (value_id x : p_.operands(o)) {
      if (step_of_[root(x)] == k) return true;
      for (op_id m : s.members)
        for (value_id y : p_.operands(m))
          if (root(y) == root(x)) return true;
    }
    return false;
  }
  /// Calls f(v) for each root value that a step reads from memory, or that its loop makes.
  template <class F>
  constexpr void for_operands(int k, F f) const {
    for (op_id m : drafts_[k].members)
      for (value_id x : p_.operands(m))
        if (const code_access a = access(k, x); a.how != splat) f(a.source);
  }
  template <class F>
  constexpr void for_results(int k, F f) const {
    for (op_id m : drafts_[k].members)
      for (int r = 0; r < p_.op(m).result_count; ++r) f(p_.op(m).result + r);
  }
  constexpr void find_stored() {
    for (int k = 0; k < step_count(); ++k) {
      for_operands(k, [&](value_id v) {
        if (step_of_[v] != k) stored_[v] = 1;
      });
      if (drafts_[k].what != loop) for_results(k, [&](value_id v) { stored_[v] = 1; });
    }
  }

  // ---- Memory ----------------------------------------------------------------------------------

  struct room {
    std::int64_t begin = 0, end = 0;
    int last = 0;  ///< the step after which it is free
  };
  vec<room> rooms_;  // in use, by address

  constexpr std::int64_t take(const tensor_type& t, int last) {
    const std::int64_t bytes = saturating_multiply(copies_, run_detail::padded_bytes(t));
    std::int64_t at = start_;
    std::size_t i = 0;
    for (; i < rooms_.size() && rooms_[i].begin - at < bytes; ++i) at = rooms_[i].end;
    rooms_.push_back({});
    for (std::size_t k = rooms_.size(); --k > i;) rooms_[k] = rooms_[k - 1];
    rooms_[i] = {at, at + bytes, last};
    if (at + bytes > plan_.end) plan_.end = at + bytes;
    return at;
  }
  constexpr void release(int step) {
    std::size_t kept = 0;
    for (std::size_t i = 0; i < rooms_.size(); ++i)
      if (rooms_[i].last > step) rooms_[kept++] = rooms_[i];
    rooms_.resize(kept, room{});
  }
  constexpr void place() {
    using kind = code_place::kind;
    plan_.end = start_;
    vec<int> last(static_cast<std::size_t>(p_.value_count()), -1);
    for (int k = 0; k < step_count(); ++k) for_operands(k, [&](value_id v) { last[v] = k; });
    for (int i = 0; i < p_.input_count(); ++i) plan_.places[p_.inputs[i]] = {kind::input, i};
    for (int i = 0; i < p_.output_count(); ++i) {
      const value_id r = root(p_.outputs[i].value);
      last[r] = step_count();
      if (outermost_ && plan_.places[r].where == kind::nowhere) plan_.places[r] = {kind::output, i};
    }
    for (int k = 0; k < step_count(); ++k) {
      for_results(k, [&](value_id v) {
        if (stored_[v] && plan_.places[v].where == kind::nowhere)
          plan_.places[v] = {kind::memory, take(p_.type(v), last[v] > k ? last[v] : k)};
      });
      if (drafts_[k].what == code_step::kind::control) enter(k);
      release(k);
    }
  }
  /// Places what the nested programs of an op need while it runs.
  constexpr void enter(int k) {
    const op_id o = drafts_[k].members[0];
    code_control c;
    wire_list list;
    p_.op(o).def->wires(p_, o, list);
    for (const auto& each : list.wires) {
      code_wire w{run_detail::run_wire_of(p_, o, each, {})};
      if (!w.inputs.empty()) w.at = take(w.type, k);
      if (!w.inputs.empty() && w.carried()) w.spare = take(w.type, k);
      c.wires.push_back(w);
    }
    // The memory of nested programs begins where the memory in use ends.
    std::int64_t from = rooms_.empty() ? start_ : rooms_.back().end;
    for (int r = 0; r < p_.op(o).region_count; ++r) {
      c.nested.push_back(code_plan(p_.region(o, r), from, copies_, false));
      from = c.nested.back().end;
      if (c.nested.back().error) plan_.error = c.nested.back().error;
    }
    if (from > plan_.end) plan_.end = from;
    drafts_[k].control = static_cast<int>(plan_.controls.size());
    plan_.controls.push_back(c);
  }

  // ---- The plan --------------------------------------------------------------------------------

  constexpr void finish(int k) {
    const draft& s = drafts_[k];
    plan_.steps.push_back(s);
    plan_.steps.back().op = static_cast<int>(plan_.ops.size());
    plan_.steps.back().ops = static_cast<int>(s.members.size());
    for (op_id o : s.members) {
      const op_node& n = p_.op(o);
      need_kernel(*n.def);
      plan_.ops.push_back({o, n.def, static_cast<int>(plan_.operands.size()), n.operand_count,
                           static_cast<int>(plan_.results.size()), n.result_count,
                           static_cast<int>(plan_.attrs.size()),
                           static_cast<int>(p_.attrs(o).size())});
      for (value_id x : p_.operands(o)) plan_.operands.push_back(value(x, access(k, x)));
      for (int r = 0; r < n.result_count; ++r)
        plan_.results.push_back(value(n.result + r, {code_access::kind::whole, n.result + r}));
      for (const std::int64_t a : p_.attrs(o)) plan_.attrs.push_back(a);
      if (s.what != loop) continue;
      for (auto x = plan_.operands.end() - n.operand_count; x != plan_.operands.end(); ++x)
        for (std::size_t m = 0; m < s.members.size(); ++m)
          if (p_.op(s.members[m]).result == x->access.source) x->member = static_cast<int>(m);
    }
  }
  constexpr code_value value(value_id v, const code_access& a) const {
    return {p_.type(v), a, plan_.places[a.source], run_detail::padded_bytes(p_.type(a.source)), -1};
  }
  /// Code can name the kernels of ops of the library. (Collectives and shard_start are not in the
  /// registry, and have code of their own.)
  constexpr void need_kernel(const op_def& d) {
    if (d.collective || &d == &def<op::shard_start>) return;
    for (const op_def* each : registry)
      if (each == &d) return;
    plan_.error.record("E020", "code: op ", d.name,
                       " has no kernel of the library that code could name; run the program with "
                       "emulate or an executable");
  }

  const program& p_;
  code_plan& plan_;
  std::int64_t start_, copies_;
  bool outermost_;
  vec<char> needed_;         // by op
  vec<char> stored_;         // by root value
  vec<int> step_of_;         // by root value: the step that makes it, or -1
  vec<code_access> remade_;  // by root value: how loops make it; source -1: they do not
  vec<draft> drafts_;
};

constexpr code_plan::code_plan(const program& p, std::int64_t start, std::int64_t copies,
                               bool outermost) {
  code_planner(p, *this, start, copies, outermost).run();
}

}  // namespace partita::backend_detail
