/// The parts of a program's code: steps in order, loops over elements, and one block of memory. The
/// text (write_cpp.hpp) prints this plan, `compiled` (compiled.hpp) instantiates it.
///
/// The executor has a plan of its own (run/device/plan.hpp), made of kernels that exist already;
/// this one is constexpr and knows that a compiler will read what comes of it.
#pragma once

#include <cstdint>

#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>
#include <partita/run/array.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::backend_detail {

/// An op, or a loop over elements that computes several.
struct code_step {
  enum class kind : std::uint8_t { loop, kernel, collective, start, control };
  kind what = kind::kernel;
  op_id op = -1;
  vec<op_id> members;         ///< of a loop
  std::int64_t elements = 0;  ///< of a loop
  int control = -1;           ///< of a control op: in code_plan::controls
};

/// Where a value is stored.
struct code_place {
  enum class kind : std::uint8_t { nowhere, input, output, memory };
  kind where = kind::nowhere;
  std::int64_t at = 0;  ///< number of the input or output, or bytes from the start of the memory
};

/// How a member of a loop reads an operand.
struct code_access {
  enum class kind : std::uint8_t {
    local,    ///< made by the same loop
    element,  ///< element i of the loop
    splat,    ///< one constant, given by its bits
    scalar,   ///< one element in memory
    repeat    ///< element i / inner % count
  };
  kind how = kind::element;
  value_id source = -1;  ///< the root value that is read
  std::int64_t bits = 0, count = 1, inner = 1;
};

/// A value that passes into and out of nested programs.
struct code_wire {
  int operand = -1, operand_shift = 0, result = -1, result_shift = 0;
  vec<wire_end> inputs, outputs;
  tensor_type type;         ///< inside
  std::int64_t at = -1;     ///< where the value that the nested programs see is stored
  std::int64_t spare = -1;  ///< where the next value waits until all are known
  constexpr bool carried() const { return operand >= 0 && !outputs.empty(); }
};

struct code_plan;
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
struct code_plan {
  vec<code_step> steps;
  vec<value_id> roots;     ///< by value: the value whose memory it uses
  vec<code_place> places;  ///< by root value
  vec<code_control> controls;
  std::int64_t end = 0;  ///< of the memory, in bytes

  constexpr code_plan() = default;
  constexpr code_plan(const program& p, std::int64_t start, std::int64_t copies, bool outermost);

  constexpr const code_place& place(value_id v) const { return places[roots[v]]; }
  /// How a loop over `elements` elements with these members reads `x`.
  constexpr code_access access(const program& p, const code_step& loop, value_id x) const;
};

template <class Op>
constexpr bool is_op(const op_node& n) {
  return n.def->id == def<Op>.id;
}
/// True if code can name the kernel of an op: an op of the library. (Collectives and shard_start
/// are not in the registry, and have code of their own.)
constexpr bool has_code(const op_def& d) {
  if (d.collective || d.id == def<op::shard_start>.id) return true;
  for (const op_def* each : registry)
    if (each->id == d.id) return true;
  return false;
}
/// The error of an op that has none.
constexpr text no_code(const op_def& d, std::string_view who) {
  return concat("E020 ", who, ": op ", d.name,
                " has no kernel of the library that code could name; run the program with emulate "
                "or an executable");
}
/// True if each result is the memory of the operand of its number.
constexpr bool passes_on(const program& p, op_id o) {
  const op_node& n = p.op(o);
  if (n.def->passes_on) return true;
  if (n.operand_count != 1 || n.result_count != 1) return false;
  const tensor_type &from = p.type(p.operand(o, 0)), &to = p.type(n.result);
  if (n.def->identity || is_op<op::reshape>(n)) return true;
  if (is_op<op::convert>(n)) return from.element == to.element;
  const bool broadcast = is_op<op::broadcast_in_dim>(n);
  return (broadcast || (is_op<op::reduce>(n) && n.attr_count == 1)) &&
         from.shape.elements() == to.shape.elements();
}
/// If a broadcast only repeats its operand, each element `inner` times and all of it
/// again and again, how; else `inner` is 0.
constexpr code_access repetition_of(const program& p, value_id v) {
  code_access r{code_access::kind::repeat, -1, 0, 1, 0};
  const op_id o = p.producer(v);
  if (!is_op<op::broadcast_in_dim>(p.op(o)) || p.type(v).shape.elements() == 0) return r;
  const shape &from = p.type(p.operand(o, 0)).shape, &to = p.type(v).shape;
  bool kept[max_rank] = {};
  for (int i = 0; i < from.rank; ++i) kept[p.attrs(o)[static_cast<std::size_t>(i)]] = from[i] != 1;
  int first = 0, last = to.rank;
  while (first < to.rank && !kept[first]) ++first;
  while (last > first && !kept[last - 1]) --last;
  for (int d = first; d < last; ++d) {
    if (!kept[d] && to[d] != 1) return r;
    r.count *= to[d];
  }
  r.inner = 1;
  for (int d = last; d < to.rank; ++d) r.inner *= to[d];
  return r;
}

/// A reduction of elements that are in order, as (outer, reduced, inner).
struct reduce_plan {
  std::int64_t outer = 1, reduced = 1, inner = 1;
  bool direct = true;

  constexpr reduce_plan(const shape& from, span<const std::int64_t> attrs) {
    for (int d = 0; d < from.rank; ++d) {
      if (from[d] == 1) continue;
      if (!op::reduce::reduced(attrs.data(), static_cast<int>(attrs.size()), d)) {
        (reduced == 1 ? outer : inner) *= from[d];
      } else {
        direct = direct && inner == 1;
        reduced *= from[d];
      }
    }
  }
};
/// The combiner that elements of this type have: of bool, a sum is "or".
constexpr combiner combiner_for(combiner c, dtype t) {
  if (t != dtype::boolean) return c;
  if (c == combiner::add || c == combiner::max) return combiner::logical_or;
  return c == combiner::multiply || c == combiner::min ? combiner::logical_and : c;
}

class code_planner {
 public:
  constexpr code_planner(const program& p, code_plan& plan, std::int64_t start, std::int64_t copies,
                         bool outermost)
      : p_(p), plan_(plan), start_(start), copies_(copies), outermost_(outermost) {
    const auto values = static_cast<std::size_t>(p.value_count());
    needed_.resize(static_cast<std::size_t>(p.op_count()), 0);
    stored_.resize(values, 0);
    step_of_.resize(values, -1);
    plan_.roots.resize(values, -1);
    plan_.places.resize(values, code_place{});
  }
  constexpr void run() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      const bool passed = passes_on(p_, o);
      for (int r = 0; r < n.result_count; ++r)
        plan_.roots[n.result + r] = passed ? root(p_.operand(o, r)) : n.result + r;
    }
    find_uses();
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (needed_[o] && !passes_on(p_, o) && !p_.is(o, op_role::parameter)) schedule(o);
    find_stored();
    place();
  }

 private:
  /// A loop that began more steps ago is closed: joining it would keep values alive.
  static constexpr int reach = 16;
  static constexpr std::size_t most_members = 48;

  constexpr value_id root(value_id v) const { return plan_.roots[v]; }
  constexpr const op_node& producer(value_id v) const { return p_.op(p_.producer(v)); }
  /// True for constants and repetitions of a value in memory: loops make them where they use them.
  constexpr bool made_anew(value_id v) const {
    if (producer(v).def->constant && producer(v).operand_count == 0) return true;
    if (repetition_of(p_, v).inner == 0) return false;
    return repetition_of(p_, root(p_.operand(p_.producer(v), 0))).inner == 0;
  }
  constexpr bool in_loops(op_id o) const {
    return p_.op(o).def->elementwise && p_.op(o).operand_count > 0 &&
           !is_op<op::reduce_precision>(p_.op(o));
  }

  constexpr void find_uses() {
    for (const auto& out : p_.outputs) {
      needed_[p_.producer(out.value)] = 1;
      stored_[root(out.value)] = 1;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (!needed_[o]) continue;
      const bool reads_memory = !passes_on(p_, o) && !in_loops(o);
      const bool made_in_loops =
          reads_memory && made_anew(p_.op(o).result) && !stored_[p_.op(o).result];
      for (value_id x : p_.operands(o)) {
        needed_[p_.producer(x)] = 1;
        if (!reads_memory || (made_in_loops && made_anew(root(x)))) continue;
        stored_[root(x)] = 1;
      }
    }
  }
  constexpr void schedule(op_id o) {
    const op_node& n = p_.op(o);
    code_step s;
    s.op = o;
    if (in_loops(o)) {
      s.what = code_step::kind::loop;
      s.elements = p_.type(n.result).shape.elements();
      int k = loop_for(o, s.elements);
      if (k < 0) {
        k = static_cast<int>(plan_.steps.size());
        plan_.steps.push_back(s);
      }
      plan_.steps[k].members.push_back(o);
      step_of_[n.result] = k;
      return;
    }
    if (made_anew(n.result) && !stored_[n.result]) return;
    if (n.def->collective) s.what = code_step::kind::collective;
    if (is_op<op::shard_start>(n)) s.what = code_step::kind::start;
    if (n.region_count > 0) s.what = code_step::kind::control;
    for (int r = 0; r < n.result_count; ++r)
      step_of_[n.result + r] = static_cast<int>(plan_.steps.size());
    plan_.steps.push_back(s);
  }
  /// The step that makes what a loop needs before it can read `x`, or -1; `at_once`: false if the
  /// same loop can make it.
  constexpr int needed_step(value_id x, bool& at_once) const {
    const value_id r = root(x);
    at_once = !made_anew(r) && p_.type(x).shape.elements() == p_.type(r).shape.elements();
    if (!made_anew(r)) return step_of_[r];
    return producer(r).operand_count == 0 ? -1 : step_of_[root(p_.operand(p_.producer(r), 0))];
  }
  /// The latest loop that can hold this op and makes or reads one of its operands, or -1.
  constexpr int loop_for(op_id o, std::int64_t elements) const {
    int earliest = 0;
    for (value_id x : p_.operands(o)) {
      bool same = true;
      const int made = needed_step(x, same);
      same = same && p_.type(x).shape.elements() == elements;
      if (made + (same ? 0 : 1) > earliest) earliest = made + (same ? 0 : 1);
    }
    const int count = static_cast<int>(plan_.steps.size());
    for (int k = count; k-- > earliest && k + reach >= count;) {
      const code_step& s = plan_.steps[k];
      if (s.what == code_step::kind::loop && s.elements == elements &&
          s.members.size() < most_members && shares(s, k, o))
        return k;
    }
    return -1;
  }
  constexpr bool shares(const code_step& s, int k, op_id o) const {
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
  constexpr void for_operands(const code_step& s, F f) const {
    if (s.what != code_step::kind::loop) {
      for (value_id x : p_.operands(s.op)) f(root(x));
      return;
    }
    for (op_id m : s.members)
      for (value_id x : p_.operands(m)) {
        const code_access a = plan_.access(p_, s, x);
        if (a.how != code_access::kind::splat) f(a.source);
      }
  }
  template <class F>
  constexpr void for_results(const code_step& s, F f) const {
    if (s.what == code_step::kind::loop)
      for (op_id m : s.members) f(p_.op(m).result);
    else
      for (int r = 0; r < p_.op(s.op).result_count; ++r) f(p_.op(s.op).result + r);
  }
  constexpr void find_stored() {
    for (std::size_t k = 0; k < plan_.steps.size(); ++k) {
      const code_step& s = plan_.steps[k];
      for_operands(s, [&](value_id v) {
        if (step_of_[v] != static_cast<int>(k)) stored_[v] = 1;
      });
      if (s.what != code_step::kind::loop) for_results(s, [&](value_id v) { stored_[v] = 1; });
    }
  }

  // ---- Memory ----------------------------------------------------------------------------------

  struct room {
    std::int64_t begin = 0, end = 0;
    int last = 0;  ///< the step after which it is free
  };
  vec<room> rooms_;  // in use, by address

  constexpr std::int64_t take(std::int64_t bytes, int last) {
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
  constexpr std::int64_t bytes(const tensor_type& t) const {
    return saturating_multiply(copies_, run_detail::padded_bytes(t));
  }
  constexpr void place() {
    plan_.end = start_;
    const int steps = static_cast<int>(plan_.steps.size());
    vec<int> last(static_cast<std::size_t>(p_.value_count()), -1);
    for (int k = 0; k < steps; ++k) for_operands(plan_.steps[k], [&](value_id v) { last[v] = k; });
    for (int i = 0; i < p_.input_count(); ++i)
      plan_.places[p_.inputs[i]] = {code_place::kind::input, i};
    for (int i = 0; i < p_.output_count(); ++i) {
      const value_id r = root(p_.outputs[i].value);
      last[r] = steps;
      if (outermost_ && plan_.places[r].where == code_place::kind::nowhere)
        plan_.places[r] = {code_place::kind::output, i};
    }
    for (int k = 0; k < steps; ++k) {
      for_results(plan_.steps[k], [&](value_id v) {
        if (stored_[v] && plan_.places[v].where == code_place::kind::nowhere)
          plan_.places[v] = {code_place::kind::memory,
                             take(bytes(p_.type(v)), last[v] > k ? last[v] : k)};
      });
      if (plan_.steps[k].what == code_step::kind::control) enter(plan_.steps[k], k);
      release(k);
    }
  }
  /// Places what the nested programs of an op need while it runs.
  constexpr void enter(code_step& s, int k) {
    const op_node& n = p_.op(s.op);
    code_control c;
    wire_list list;
    n.def->wires(p_, s.op, list);
    for (const auto& w : list.wires) c.wires.push_back(code_wire_of(s.op, w));
    for (auto& w : c.wires) {
      if (w.inputs.empty()) continue;
      w.at = take(bytes(w.type), k);
      if (w.carried()) w.spare = take(bytes(w.type), k);
    }
    // The memory of nested programs begins where the memory in use ends.
    std::int64_t from = start_;
    for (const auto& r : rooms_)
      if (r.end > from) from = r.end;
    for (int r = 0; r < n.region_count; ++r) {
      c.nested.push_back(code_plan(p_.region(s.op, r), from, copies_, false));
      from = c.nested.back().end;
    }
    if (from > plan_.end) plan_.end = from;
    s.control = static_cast<int>(plan_.controls.size());
    plan_.controls.push_back(c);
  }
  constexpr code_wire code_wire_of(op_id o, const wire& from) const {
    code_wire w;
    for (const auto& e : from.ends) {
      if (e.kind == wire_end::operand) {
        w.operand = e.index;
        w.operand_shift = e.shift;
      } else if (e.kind == wire_end::result) {
        w.result = e.index;
        w.result_shift = e.shift;
      } else if (e.kind == wire_end::input) {
        w.inputs.push_back(e);
        w.type = p_.region(o, e.region).input_type(e.index);
      } else {
        w.outputs.push_back(e);
        w.type = p_.region(o, e.region).output_type(e.index);
      }
    }
    return w;
  }

  const program& p_;
  code_plan& plan_;
  std::int64_t start_, copies_;
  bool outermost_;
  vec<char> needed_;  // by op
  vec<char> stored_;  // by root value
  vec<int> step_of_;  // by root value: the step that makes it, or -1
};

constexpr code_plan::code_plan(const program& p, std::int64_t start, std::int64_t copies,
                               bool outermost) {
  code_planner(p, *this, start, copies, outermost).run();
}

constexpr code_access code_plan::access(const program& p, const code_step& loop, value_id x) const {
  const value_id r = roots[x];
  const auto constant = [&](value_id v) {
    return p.op(p.producer(v)).def->constant && p.op(p.producer(v)).operand_count == 0;
  };
  const auto splat = [&](value_id v) {
    return code_access{code_access::kind::splat, v, p.attrs(p.producer(v))[0]};
  };
  if (constant(r)) return splat(r);
  for (op_id m : loop.members)
    if (p.op(m).result == r && p.type(r).shape.elements() == loop.elements)
      return {code_access::kind::local, r};
  code_access a = repetition_of(p, r);
  if (a.inner > 0) {
    a.source = roots[p.operand(p.producer(r), 0)];
    if (constant(a.source)) return splat(a.source);
    if (repetition_of(p, a.source).inner == 0) {
      if (a.count == 1) a.how = code_access::kind::scalar;
      return a;
    }
  }
  const bool one = p.type(r).shape.elements() == 1 && loop.elements != 1;
  return {one ? code_access::kind::scalar : code_access::kind::element, r};
}

}  // namespace partita::backend_detail
