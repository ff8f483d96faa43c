/// Runs programs on elements: symbolic execution of all devices side by side.
#pragma once

#include <partita/prove/elements/exchange.hpp>
#include <partita/prove/elements/loop_classes.hpp>
#include <partita/prove/elements/op_rules.hpp>

namespace partita::prove_detail {

namespace elements {
/// True if running the op is less work than comparing the operands of devices.
constexpr bool takes_little(const program& p, op_id o, const vec<tensors>& of) {
  const std::uint64_t id = p.op(o).def->id;
  return (id == def<op::slice>.id || id == def<op::dynamic_slice>.id) &&
         of[p.op(o).result].size() < of[p.operand(o, 0)].size() / 8;
}
/// A fingerprint of a few elements of each operand, which distinguishes most devices.
constexpr fingerprint some_operands_on(const program& p, op_id o, const vec<tensors>& of,
                                       std::int64_t device) {
  drawing d(8);
  for (const value_id v : p.operands(o)) {
    const std::int64_t step = 1 + of[v].size() / 16;
    for (std::int64_t n = 0; n < of[v].size(); n += step) d.add(of[v].on(device)[n].of);
  }
  return d.drawn();
}
constexpr bool is_given_alike(const program& p, op_id o, const vec<tensors>& of,
                              std::int64_t device, std::int64_t other) {
  for (const value_id v : p.operands(o))
    for (std::int64_t n = 0; n < of[v].size(); ++n)
      if (!(of[v].on(device)[n] == of[v].on(other)[n])) return false;
  return true;
}
constexpr void copy(const program& p, op_id o, vec<tensors>& of, std::int64_t from,
                    std::int64_t to) {
  for (int r = 0; r < p.op(o).result_count; ++r) {
    tensors& made = of[p.op(o).result + r];
    for (std::int64_t n = 0; n < made.size(); ++n) made.on(to)[n] = made.on(from)[n];
  }
}
}  // namespace elements

class element_interpreter {
 public:
  constexpr element_interpreter(algebra& a, const devices& on, bool is_source)
      : a_(a), on_(on), is_source_(is_source) {}

  /// True after too many steps.
  constexpr bool stopped() const { return a_.is_over(); }
  /// The first op that elements cannot represent, not even as a deterministic function. (Its
  /// results equal nothing else.)
  constexpr std::string_view unknown_op() const { return unknown_op_; }

  /// By op: whether it is run for the wanted values, or is given.
  template <class Is>
  static constexpr vec<char> needed_ops(const program& p, const vec<value_id>& wanted,
                                        const Is& is_given) {
    vec<char> needed(p.types.size(), 0), runs(p.ops.size(), 0);
    for (const value_id v : wanted) needed[v] = 1;
    for (op_id o = p.op_count(); o-- > 0;) {
      for (int r = 0; r < p.op(o).result_count; ++r) {
        const value_id v = p.op(o).result + r;
        if (needed[v] == 0) continue;
        if (!is_given(v)) runs[o] = is_run;
        if (runs[o] == 0) runs[o] = is_taken;
      }
      if (runs[o] != is_run) continue;
      for (const value_id v : p.operands(o)) needed[v] = 1;
    }
    return runs;
  }
  static constexpr char is_run = 1, is_taken = 2;

  /// Computes the `wanted` values, in this order, and their operands. A value with `is_given` is
  /// not computed.
  template <class Is, class Given>
  constexpr vec<tensors> run(const program& p, const vec<tensors>& inputs,
                             const vec<value_id>& wanted, const Is& is_given, const Given& given) {
    const vec<char> runs = needed_ops(p, wanted, is_given);
    const vec<op_id> last = last_uses(p, wanted, runs);
    vec<tensors> values;
    values.resize(p.types.size());
    for (int i = 0; i < p.input_count(); ++i) values[p.inputs[i]] = inputs[i];
    for (op_id o = 0; o < p.op_count() && !stopped(); ++o) {
      if (p.is(o, op_role::parameter)) continue;
      if (runs[o] == is_run) run(p, o, values);
      for (int r = 0; r < p.op(o).result_count && runs[o] == is_taken; ++r)
        if (is_given(p.op(o).result + r)) values[p.op(o).result + r] = given(p.op(o).result + r);
      for (const value_id v : p.operands(o))
        if (last[v] == o) values[v] = {};
    }
    vec<tensors> made;
    for (std::size_t i = 0; i < wanted.size() && !stopped(); ++i) made.push_back(values[wanted[i]]);
    return made;
  }
  /// Computes the outputs of a program from its inputs. Empty if it stopped.
  constexpr vec<tensors> run(const program& p, const vec<tensors>& inputs) {
    vec<value_id> outputs;
    for (const auto& each : p.outputs) outputs.push_back(each.value);
    return run(
        p, inputs, outputs, [](value_id) { return false; }, [](value_id) { return tensors(); });
  }

 private:
  algebra& a_;
  const devices& on_;
  bool is_source_;
  std::string_view unknown_op_;

  using values = vec<tensors>;

  /// By value: its last use, after which it is freed, or -1.
  static constexpr vec<op_id> last_uses(const program& p, const vec<value_id>& wanted,
                                        const vec<char>& runs) {
    vec<op_id> last(p.types.size(), -1);
    for (op_id o = 0; o < p.op_count(); ++o)
      if (runs[o] == is_run)
        for (const value_id v : p.operands(o)) last[v] = o;
    for (const value_id v : wanted) last[v] = -1;
    return last;
  }
  constexpr void run(const program& p, op_id o, values& of) {
    const op_node& n = p.op(o);
    if (!has_room(p, o)) return;
    if (n.def->passes_on || n.def->identity) return pass_on(p, o, of);
    if (n.def->role == op_role::control) return run_nested(p, o, of);
    if (!elements::is_determined(n)) return give_unknown(p, o, of);
    for (int r = 0; r < n.result_count; ++r)
      of[n.result + r] = no_elements_yet(p.type(n.result + r), on_.count());
    if (n.def->collective) return exchange(p, o, of);
    if (n.def->id == def<op::shard_start>.id) return fill_starts(p, o, of);
    compute(p, o, of);
  }
  /// Runs an op on each device. Devices with equal operands share the result.
  constexpr void compute(const program& p, op_id o, values& of) {
    facts<std::int64_t> done;
    for (std::int64_t d = 0; d < on_.count() && !stopped(); ++d) {
      const fingerprint some = elements::some_operands_on(p, o, of, d);
      const std::int64_t* same = elements::takes_little(p, o, of) ? nullptr : done.find(some);
      if (same != nullptr && elements::is_given_alike(p, o, of, *same, d)) {
        elements::copy(p, o, of, *same, d);
        continue;
      }
      done.add(some, d);
      for (int r = 0; r < p.op(o).result_count; ++r) a_.steps += of[p.op(o).result + r].size();
      compute(p, o, of, d);
    }
  }
  /// True if the results fit the limit. (A moved element counts a tenth of a computed one.)
  constexpr bool has_room(const program& p, op_id o) {
    std::int64_t all = 0;
    for (int r = 0; r < p.op(o).result_count; ++r)
      all = saturating_add(all, p.type(p.op(o).result + r).shape.elements());
    a_.steps = saturating_add(a_.steps, 1 + saturating_multiply(all, on_.count()) / 10);
    return !stopped();
  }
  static constexpr void pass_on(const program& p, op_id o, values& of) {
    const op_node& n = p.op(o);
    for (int r = 0; r < n.result_count; ++r) of[n.result + r] = of[p.operand(o, r)];
  }
  constexpr void exchange(const program& p, op_id o, values& of) {
    const op_node& n = p.op(o);
    const collective what = p.collective_of(o);
    if (what.reduces())
      a_.steps = saturating_add(a_.steps, saturating_multiply(of[n.result].size() * on_.count(),
                                                              what.members(on_.mesh())));
    for (int r = 0; r < n.result_count && !stopped(); ++r)
      exchanged(a_, on_, what, of[p.operand(o, r)], of[n.result + r]).fill();
  }
  constexpr void fill_starts(const program& p, op_id o, values& of) {
    tensors& to = of[p.op(o).result];
    layout l;
    for (const int axis : op::shard_start::axes(p.attrs(o))) l.push_back(axis, 0);
    for (std::int64_t d = 0; d < on_.count(); ++d) {
      const std::uint64_t n = static_cast<std::uint64_t>(on_.piece(l, 0, d)) *
                              static_cast<std::uint64_t>(op::shard_start::distance(p.attrs(o)));
      *to.on(d) = a_.convert(dtype::i64, to.type.element,
                             integer(dtype::i64, static_cast<std::int64_t>(n)));
    }
  }
  constexpr void compute(const program& p, op_id o, values& of, std::int64_t device) {
    const op_node& n = p.op(o);
    op_elements c{a_, *n.def, p.attrs(o), {}, {}, {}, {}};
    for (const value_id v : p.operands(o)) {
      c.types.push_back(of[v].type);
      c.operands.push_back(of[v].on(device));
    }
    for (int r = 0; r < n.result_count; ++r) {
      c.made.push_back(p.type(n.result + r));
      c.results.push_back(of[n.result + r].on(device));
    }
    elements::compute(c);
    if (a_.log != nullptr) name(c);
  }
  /// Records the op as the origin of formulas that have no other one.
  constexpr void name(const op_elements& c) const {
    for (std::size_t r = 0; r < c.results.size(); ++r)
      for (std::int64_t n = 0; n < c.made[r].shape.elements(); ++n)
        if (!a_.log->has(c.results[r][n]))
          a_.log->add(c.results[r][n].of, {origin::function, c.def.name, {n}});
  }

  constexpr void run_nested(const program& p, op_id o, values& of) {
    switch (p.op(o).def->id) {
      case def<op::call>.id:
        return give(p, o, of, run(p.region(o, 0), operands(p, o, of, 0)));
      case def<op::scan>.id:
        return run_scan(p, o, of);
      case def<op::while_loop>.id:
        return run_while(p, o, of);
      case def<op::case_of>.id:
        return run_case(p, o, of);
      default:
        give_unknown(p, o, of);
    }
  }
  static constexpr values operands(const program& p, op_id o, const values& of, int from) {
    values list;
    for (int i = from; i < p.op(o).operand_count; ++i) list.push_back(of[p.operand(o, i)]);
    return list;
  }
  constexpr void give(const program& p, op_id o, values& of, const values& made) const {
    for (int r = 0; r < p.op(o).result_count && !stopped(); ++r) of[p.op(o).result + r] = made[r];
  }
  constexpr void give_unknown(const program& p, op_id o, values& of) {
    if (unknown_op_.empty()) unknown_op_ = p.op(o).def->name;
    for (int r = 0; r < p.op(o).result_count; ++r) {
      tensors& made = of[p.op(o).result + r];
      made = no_elements_yet(p.type(p.op(o).result + r), on_.count());
      for (element& each : made.all)
        each = a_.unknown(made.type.element, drawing(12).add(++a_.never_equal).drawn());
    }
  }
  static constexpr int steps_of_iteration = 10;  ///< whatever its body does
  constexpr void run_scan(const program& p, op_id o, values& of) {
    const op::scan::counts k(p.attrs(o));
    values given;
    given.push_back(no_elements_yet({dtype::i32, {}}, on_.count()));
    for (const tensors& each : operands(p, o, of, 0)) given.push_back(each);
    const int sliced = 1 + k.constants + k.carried;
    for (int j = 0; j < k.stacked; ++j)
      of[p.op(o).result + k.carried + j] =
          no_elements_yet(p.type(p.op(o).result + k.carried + j), on_.count());
    for (std::int64_t i = 0; i < k.length && !stopped(); ++i) {
      const std::int64_t at = k.reversed ? k.length - 1 - i : i;
      for (element& each : given[0].all) each = integer(dtype::i32, at);
      for (int s = 0; s < k.sliced; ++s)
        given[sliced + s] = slice_of(of[p.operand(o, sliced - 1 + s)], at);
      a_.steps += steps_of_iteration;
      const values made = run(p.region(o, 0), given);
      if (stopped()) return;
      for (int c = 0; c < k.carried; ++c) given[1 + k.constants + c] = made[c];
      for (int j = k.carried; j < k.carried + k.stacked; ++j)
        put_slice(of[p.op(o).result + j], at, made[j]);
    }
    for (int c = 0; c < k.carried; ++c) of[p.op(o).result + c] = given[1 + k.constants + c];
  }
  constexpr tensors slice_of(const tensors& all, std::int64_t at) const {
    tensors made = no_elements_yet(op::scan::slice_of(all.type), on_.count());
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for (std::int64_t n = 0; n < made.size(); ++n)
        made.on(d)[n] = all.on(d)[at * made.size() + n];
    return made;
  }
  constexpr void put_slice(tensors& all, std::int64_t at, const tensors& slice) const {
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for (std::int64_t n = 0; n < slice.size(); ++n)
        all.on(d)[at * slice.size() + n] = slice.on(d)[n];
  }
  constexpr void run_while(const program& p, op_id o, values& of) {
    values carried = operands(p, o, of, 0);
    while (!stopped()) {
      const values holds = run(p.region(o, 0), carried);
      if (stopped()) return;
      if (!elements::is_number(holds[0])) return run_unknown(p, o, carried, of);
      if (holds[0].all[0].number == 0) break;
      a_.steps += steps_of_iteration;
      carried = run(p.region(o, 1), carried);
    }
    give(p, o, of, carried);
  }

  constexpr void run_unknown(const program& p, op_id o, const values& carried, values& of) {
    vec<fingerprint> classes = elements::first_classes(carried), behind;
    for (int round = 0, rest = more_rounds; round < most_rounds; ++round) {
      const values state = elements::variables(a_, carried, classes);
      const values holds = run(p.region(o, 0), state), made = run(p.region(o, 1), state);
      if (stopped() || !elements::all_same(holds[0])) break;
      const fingerprint condition = drawing(5).add(round).add(holds[0].all[0].of).drawn();
      const vec<fingerprint> next = elements::next_classes(classes, condition, made);
      elements::joins(a_, is_source_, condition, classes, next, behind);
      if (!behind.empty() && (!is_source_ || --rest == 0))
        return give(p, o, of, elements::variables(a_, carried, behind));
      classes = next;
    }
    give_unknown(p, o, of);
  }
  /// (More rounds than the source needs, for classes of padding in the local loop only.)
  static constexpr int more_rounds = 4;
  static constexpr int most_rounds = 12;

  constexpr void run_case(const program& p, op_id o, values& of) {
    const tensors& which = of[p.operand(o, 0)];
    const values given = operands(p, o, of, 1);
    const int last = p.op(o).region_count - 1;
    if (elements::is_number(which)) {
      const std::int64_t n = which.all[0].number;
      return give(p, o, of,
                  run(p.region(o, n < 0 || n > last ? last : static_cast<int>(n)), given));
    }
    if (!elements::all_same(which) && exchanges(p, o)) return give_unknown(p, o, of);
    values made = run(p.region(o, last), given);
    for (int r = 0; r < last && !stopped(); ++r) choose(which, r, run(p.region(o, r), given), made);
    give(p, o, of, made);
  }
  static constexpr bool exchanges(const program& p, op_id o) {
    for (const program& r : p.regions_of(o))
      for (op_id inner = 0; inner < r.op_count(); ++inner)
        if (r.op(inner).def->collective || exchanges(r, inner)) return true;
    return false;
  }
  constexpr void choose(const tensors& which, int r, const values& branch, values& made) {
    for (std::size_t i = 0; i < branch.size(); ++i)
      for (std::int64_t d = 0; d < on_.count(); ++d) {
        const element is =
            a_.compare(ops::direction::eq, dtype::i32, *which.on(d), integer(dtype::i32, r));
        for (std::int64_t n = 0; n < branch[i].size(); ++n)
          made[i].on(d)[n] = a_.select(is, branch[i].on(d)[n], made[i].on(d)[n]);
      }
  }
};

}  // namespace partita::prove_detail
