/// Lowers the units of a pipeline to device-local programs, by the loops of the program of the
/// whole step.
#pragma once

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/sent_layout.hpp>
#include <partita/mpmd/union_mesh.hpp>
#include <partita/mpmd/unit_functions.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::mpmd_detail {

/// Lowers units for the axis sizes of their meshes, from one core program of the whole step.
///
/// A value passes between units in the layout of the op that computes it. It is sent in this
/// layout, and its users reshard it. If all users of a sent value slice it further, it is sliced
/// before the transfer; if all gather it, it is gathered on the cheaper side. A pending sum passes
/// as terms, on one mesh. Stacks have the layouts of the slices taken from them. Ops that an
/// earlier unit runs too are marked as recomputed.
///
/// Cost: for each different shape of a mesh, the program once; then linear in the ops of units.
class unit_lowerer {
 public:
  /// `named`: true if functions contain names. Without names to count collectives.
  constexpr unit_lowerer(pipelined& out, const core_program& core, bool named = true)
      : out_(out),
        core_(core),
        p_(core.p),
        source_(out.source),
        named_(named),
        names_(names_for(out.source, named)),
        cost_(core, out.topology) {
    find_ops();
    find_slots();
  }

  constexpr void run() {
    out_.meshes.resize(static_cast<std::size_t>(out_.topology.count()), mesh{});
    out_.input_layout.resize(source_.inputs.size(), layout{});
    out_.output_layout.resize(source_.outputs.size(), layout{});
    out_.sent_as.resize(out_.transfers.size(), transfer_layout{});
    for (int m = 0; m < out_.topology.count(); ++m)
      if (same_sizes(m) == m) run_on_meshes_like(m);
  }

 private:
  using lowering = spmd_detail::lowering<spmd_detail::fused_rules>;

  static constexpr int no_unit = -2;

  pipelined& out_;
  const core_program& core_;
  const program& p_;
  const program& source_;
  bool named_;
  value_names names_;
  vec<op_id> op_of_;         ///< by op of the source: in the core program
  vec<int> place_;           ///< by op of the core program: its position in the order
  vec<value_id> slot_of_;    ///< by value of the source: the value that represents it between units
  vec<value_id> name_of_;    ///< by value of the core program: the one of the source, or -1
  vec<int> output_of_;       ///< by value of the core program: an output, or -1
  vec<int> first_relaid_;    ///< by value of the source: an output that the caller gets in
                             ///< another layout than units, first of `next_relaid_`, or -1
  vec<int> next_relaid_;     ///< by output: another one of the same value, or -1
  vec<char> sent_;           ///< by value of the core program
  vec<int> first_transfer_;  ///< by value of the core program: the first of `next_transfer_`, or -1
  vec<int> next_transfer_;   ///< by transfer: another one of the same value, or -1
  transfer_cost cost_;
  vec<op_id> slice_of_;     ///< by value of the core program: a microbatch_slice of it, or -1
  vec<value_id> state_of_;  ///< by value of the core program: the state that it is used as, or -1
  vec<int> unit_of_;        ///< by op of the core program: the first unit that runs it, or -1
  vec<int> made_in_;        ///< by op of the core program: the last visited unit
  vec<int> taken_by_;       ///< by value of the core program: the same
  vec<int> combined_in_;    ///< by op of the source: the same
  vec<char> is_kept_;  ///< by value of the core program: true if derived from a kept one; empty:
                       ///< none is kept
  vec<value_id> same_as_;  ///< by value of the core program: a kept value in the same layout, or -1
  vec<int> first_sum_;     ///< by op of the core program: the first of `next_sum_`, or -1
  vec<int> next_sum_;      ///< by sum of a unit: another one of a result of the same op, or -1
  vec<int> given_in_;      ///< by value of the core program: the last visited unit
  int first_added_ = 0;

  static constexpr value_names names_for(const program& p, bool named) {
    if (named) return value_names(p);
    return value_names(program{});
  }

  // ---- From the source to the core program ------------------------------------------------------

  constexpr value_id core_value(value_id v) const {
    return core_.nested.value_of.empty() ? v : core_.nested.value_of[v];
  }
  constexpr void find_ops() {
    const vec<op_id>& source_op = core_.nested.source_op;
    first_added_ = source_op.empty() ? source_.op_count() : static_cast<int>(source_op.size());
    op_of_.resize(source_.ops.size(), -1);
    for (op_id o = 0; o < first_added_; ++o)
      if (core_.nested.scope[o] == 0 && !p_.is(o, op_role::wire))
        op_of_[source_op.empty() ? o : source_op[o]] = o;
    place_.resize(p_.ops.size(), 0);
    int n = 0;
    for (op_id o = core_.order.first(); o >= 0; o = core_.order.after(o)) place_[o] = n++;
    unit_of_.resize(p_.ops.size(), -1);
    const vec<int> first = first_units(out_.units, source_.ops.size());
    op_id o = 0;
    for (const int unit : first) {
      if (unit >= 0) unit_of_[op_of_[o]] = unit;
      ++o;
    }
    made_in_.resize(p_.ops.size(), -1);
    combined_in_.resize(source_.ops.size(), -1);
    taken_by_.resize(p_.types.size(), -1);
  }
  constexpr bool is_added(op_id o) const { return o >= first_added_; }
  /// The end of the chain of ops that actions added after a value, as far as nothing else uses it.
  constexpr value_id end_of(value_id v) const {
    while (core_.uses(v).size() == 1 && !core_.returned[v] && is_added(core_.uses(v)[0].op))
      v = p_.op(core_.uses(v)[0].op).result;
    return v;
  }
  constexpr void find_slots() {
    slice_of_.resize(p_.types.size(), -1);
    for_each_of(source_, def<op::microbatch_slice>,
                [&](op_id o) { slice_of_[p_.operand(op_of_[o], 0)] = op_of_[o]; });
    name_of_.resize(p_.types.size(), -1);
    slot_of_.resize(source_.types.size(), -1);
    for (value_id v = 0; v < source_.value_count(); ++v) {
      const op_id o = source_.producer(v);
      const value_id first = core_value(v);
      // A kept value equals its source; padding of a shard is masked by its users.
      const bool stays = source_.is(o, op_role::parameter) || enters(source_.op(o)) ||
                         source_.op(o).def->id == def<op::microbatch_keep>.id;
      slot_of_[v] = stays ? first : end_of(first);
      name_of_[first] = name_of_[slot_of_[v]] = v;
    }
    for_each_of(source_, def<op::microbatch_slice>,
                [&](op_id o) { slot_of_[source_.operand(o, 0)] = p_.operand(op_of_[o], 0); });
    find_states();
    sent_.resize(p_.types.size(), 0);
    first_transfer_.resize(p_.types.size(), -1);
    next_transfer_.resize(out_.transfers.size(), -1);
    for (int t = static_cast<int>(out_.transfers.size()); t-- > 0;) {
      const value_id slot = slot_of_[out_.transfers[t].value];
      sent_[slot] = 1;
      next_transfer_[t] = first_transfer_[slot];
      first_transfer_[slot] = t;
    }
    out_.slot_of = slot_of_;
    out_.output_slot.clear();
    output_of_.resize(p_.types.size(), -1);
    for (int i = p_.output_count(); i-- > 0;) output_of_[p_.outputs[i].value] = i;
    for (const auto& each : p_.outputs) out_.output_slot.push_back(each.value);
    first_relaid_.resize(source_.types.size(), -1);
    next_relaid_.resize(source_.outputs.size(), -1);
    for (int i = source_.output_count(); i-- > 0;) {
      const value_id v = source_.outputs[i].value;
      if (slot_of_[v] == out_.output_slot[i]) continue;
      next_relaid_[i] = first_relaid_[v];
      first_relaid_[v] = i;
    }
    find_kept();
  }
  /// Gives the initial value of a state, and the value after each microbatch, the layout of the
  /// state.
  constexpr void find_states() {
    state_of_.resize(p_.types.size(), -1);
    const vec<value_id> next = next_states(source_);
    for (value_id v = 0; v < static_cast<value_id>(next.size()); ++v) {
      if (next[v] < 0) continue;
      const op_id o = source_.producer(v);
      slot_of_[source_.operand(o, 0)] = p_.operand(op_of_[o], 0);
      for (const value_id each : {slot_of_[source_.operand(o, 0)], slot_of_[next[v]]})
        state_of_[each] = slot_of_[v];
    }
  }
  /// Gives values that are kept for all microbatches the layout that the using units need, as far
  /// as they agree. If the original already has this layout, it replaces the kept value between
  /// units.
  constexpr void find_kept() {
    vec<op_id> keeps;
    for_each_of(source_, def<op::microbatch_keep>, [&](op_id o) { keeps.push_back(o); });
    if (keeps.empty()) return;
    spmd_detail::fused_rules rules(core_, out_.options.passes, sent_);
    is_kept_.resize(p_.types.size(), 0);
    same_as_.resize(p_.types.size(), -1);
    given_in_.resize(p_.types.size(), -1);
    for (const op_id o : keeps) {
      const value_id from = slot_of_[source_.operand(o, 0)], v = source_.op(o).result;
      const value_id slot = slot_of_[v];
      is_kept_[slot] = 1;
      if (sent_[slot] == 0 && wanted_by_all(rules, slot) == rules.finished_layout(from))
        out_.slot_of[v] = same_as_[slot] = from;
    }
  }
  /// The value that represents a slot between units.
  constexpr value_id between(value_id slot) const {
    return same_as_.empty() || same_as_[slot] < 0 ? slot : same_as_[slot];
  }
  /// The layout that all uses except those in a unit agree on: per dimension, the common prefix of
  /// their axes.
  constexpr layout wanted_by_all(const spmd_detail::fused_rules& rules, value_id v,
                                 int but = no_unit) const {
    layout common;
    bool first = true;
    for (const use& each : core_.uses(v)) {
      if (unit_of_[each.op] == but) continue;
      const layout wanted = rules.boundary_layout(each);
      common = first ? wanted : common_prefix(common, wanted, p_.type(v).shape.rank);
      first = false;
    }
    return common;
  }
  static constexpr axis_list axes_along(const layout& l, int dim) {
    axis_list axes;
    for (const auto& e : l)
      if (e.dim == dim) axes.push_back(e.axis);
    return axes;
  }
  static constexpr layout common_prefix(const layout& a, const layout& b, int rank) {
    layout both;
    for (int d = 0; d < rank; ++d) {
      const axis_list x = axes_along(a, d), y = axes_along(b, d);
      for (int i = 0; i < x.count && i < y.count && x.axes[i] == y.axes[i]; ++i)
        both.push_back(x.axes[i], d);
    }
    return both;
  }
  /// The layout of a sent value: sliced further than it was computed if all users slice it;
  /// gathered if all users gather it and that is cheaper than sending shards for each to gather.
  constexpr layout sent_layout(const spmd_detail::fused_rules& rules, value_id v) const {
    const layout made = rules.finished_layout(v);
    const value_id first = name_of_[v] < 0 ? v : core_value(name_of_[v]);
    if (p_.is(p_.producer(first), op_role::parameter) || core_.returned[v] ||
        rules.layouts.sums.left_to_its_use(v))
      return made;
    const int unit = unit_of_[maker(first)], rank = p_.type(v).shape.rank;
    const layout wanted = wanted_by_all(rules, v, unit), common = common_prefix(made, wanted, rank);
    if (common == made) return wanted;
    return common == wanted && gathered_before(rules, v, unit, made, wanted) ? wanted : made;
  }
  /// True if it is cheaper to gather a value before the transfer than after it.
  constexpr bool gathered_before(const spmd_detail::fused_rules& rules, value_id v, int unit,
                                 const layout& made, const layout& wanted) const {
    if (unit < 0) return false;
    const tensor_type& type = p_.type(v);
    const int from = out_.units[unit].piece.mesh;
    double before = cost_.gather(type, made, wanted, from), behind = 0;
    for (int t = first_transfer_[v]; t >= 0; t = next_transfer_[t]) {
      before += cost_.send(type, wanted, from, out_.transfers[t].to);
      behind += cost_.send(type, made, from, out_.transfers[t].to);
    }
    for (const use& each : core_.uses(v)) {
      const int u = unit_of_[each.op];
      if (u < 0 || u == unit) continue;
      const layout kept = common_prefix(made, rules.boundary_layout(each), type.shape.rank);
      behind += cost_.gather(type, made, kept, out_.units[u].piece.mesh);
    }
    return before < behind;
  }
  constexpr bool is_kept(value_id slot) const { return !is_kept_.empty() && is_kept_[slot] != 0; }

  // ---- Meshes -----------------------------------------------------------------------------------

  constexpr int same_sizes(int m) const { return first_mesh_like(core_.uneven_sizes(), m); }
  constexpr void run_on_meshes_like(int m) {
    core_program row;
    const bool even = core_.uneven_sizes().axes == 0;
    if (!even) {
      row = core_;
      row.be_on_row(1 + m);
    }
    const core_program& here = even ? core_ : row;
    lowering l(here, out_.options.passes, sent_);
    for (int other = m; other < out_.topology.count(); ++other)
      if (same_sizes(other) == m) out_.meshes[other] = here.mesh;
    for (int u = 0; u < static_cast<int>(out_.units.size()); ++u)
      if (same_sizes(out_.units[u].piece.mesh) == m) write(l, u);
    for (std::size_t i = 0; i < out_.transfers.size(); ++i) {
      const transfer& t = out_.transfers[i];
      if (same_sizes(t.from) == m) out_.sent_as[i].from = lies(l, slot_of_[t.value]);
      if (same_sizes(t.to) == m) out_.sent_as[i].to = lies(l, slot_of_[t.value]);
    }
    for (int i = 0; i < source_.input_count(); ++i)
      if (same_sizes(out_.input_mesh[i]) == m)
        out_.input_layout[i] = lies(l, core_value(source_.inputs[i]));
    for (int i = 0; i < source_.output_count(); ++i)
      if (same_sizes(out_.output_mesh[i]) == m)
        out_.output_layout[i] = lies(l, out_.output_slot[i]);
  }
  /// The layout of a value between units. An axis that does not divide it on a receiving mesh is
  /// omitted there.
  constexpr layout lies(const lowering& l, value_id v) const {
    if (state_of_[v] >= 0) v = state_of_[v];
    const layout want = is_kept(v) ? wanted_by_all(l.rules(), v)
                        : slice_of_[v] >= 0
                            ? l.rules().layouts.sums.required_layout({slice_of_[v], 0})
                        : sent_[v] != 0 ? sent_layout(l.rules(), v)
                                        : l.rules().finished_layout(v);
    layout fits;
    shape left = p_.type(v).shape;
    for (const auto& e : want) {
      const std::int64_t size = l.mesh().size(e.axis);
      if (left[e.dim] % size != 0) continue;
      left[e.dim] /= size;
      fits.push_back(e.axis, e.dim);
    }
    return fits;
  }
  /// The axes along which devices hold terms of a sum.
  constexpr axis_set terms(const lowering& l, value_id v) const {
    const auto& sums = l.rules().layouts.sums;
    return sums.left_to_its_use(v) ? sums.of(p_.producer(v)) : axis_set{};
  }
  /// The layout of the slices of a stack.
  static constexpr layout behind_first(const layout& slice) {
    layout l;
    for (const auto& e : slice) l.push_back(e.axis, e.dim + 1);
    return l;
  }

  // ---- Units ------------------------------------------------------------------------------------

  /// The name of a slot in texts: that of the source's value.
  constexpr text name_of(value_id slot) const {
    text name;
    if (!named_) return name;
    const value_id v = name_of_[slot];
    if (v < 0) return name << 'v' << slot;
    return name << unquoted(names_[v]);
  }
  /// The name of an output. Next states have the names of the inputs that they replace.
  constexpr text output_name(value_id slot) const {
    text name;
    if (!named_) return name;
    const int i = output_of_[slot];
    return i < 0 ? name << name_of(slot) : name << source_.output_name(i);
  }
  constexpr void write(lowering& l, int u) {
    pipeline_unit& unit = out_.units[u];
    unit.takes.clear();
    unit.gives.clear();
    l.begin();
    for (const op_id o : unit.piece.ops) made_in_[op_of_[o]] = u;
    for (const op_id o : unit.combined) combined_in_[o] = u;
    vec<op_id> ops;
    for (const value_id v : unit.piece.inputs) take(l, u, v);
    for (const op_id o : unit.piece.ops) include(u, op_of_[o], ops);
    const vec<value_id> given = given_by(u);
    for (const value_id v : given) need(u, v, ops);
    for (const op_id o : unit.stacks) need(u, p_.operand(op_of_[o], 0), ops);
    for (const op_id o : unit.sums) need(u, p_.operand(op_of_[o], 0), ops);
    vec<value_id> accumulators;
    for (const op_id o : unit.sums) accumulators.push_back(take_accumulator(l, unit, op_of_[o]));
    merge_sort(ops, [&](op_id a, op_id b) { return place_[a] < place_[b]; });
    const vec<value_id> sums = lower_and_add(l, u, ops, accumulators);
    for (const value_id v : given) {
      const layout left = lies(l, v);
      l.add_output(v, left, output_name(v));
      unit.gives.push_back({v, left, terms(l, v)});
    }
    for (const op_id o : unit.stacks) give_slice(l, unit, op_of_[o]);
    for (std::size_t i = 0; i < unit.sums.size(); ++i)
      give_sum(l, unit, op_of_[unit.sums[i]], sums[i]);
    lowered done = l.end();
    unit.device = static_cast<device_program&&>(done.device);
    unit.counts = done.counts;
    unit.notes = static_cast<vec<collective_note>&&>(done.notes);
  }
  /// The results of a unit: values that other units use, and the caller's outputs if they differ.
  constexpr vec<value_id> given_by(int u) {
    const pipeline_unit& unit = out_.units[u];
    vec<value_id> given;
    for (const value_id v : unit.piece.outputs) {
      const value_id slot = between(slot_of_[v]);
      if (!is_kept_.empty()) {  // several kept values may come from one value, which may be another
                                // output
        if (given_in_[slot] == u || taken_by_[slot] == u) continue;
        given_in_[slot] = u;
      }
      given.push_back(slot);
    }
    for (const value_id v : unit.piece.outputs)
      for (int i = first_relaid_[v]; i >= 0; i = next_relaid_[i])
        given.push_back(out_.output_slot[i]);
    return given;
  }
  constexpr void take(lowering& l, int u, value_id v) {
    pipeline_unit& unit = out_.units[u];
    const op_id o = source_.producer(v);
    if (combined_in_[o] == u) return take_combined(l, u, op_of_[o]);
    const value_id slot = slot_of_[v];
    const layout given = lies(l, slot);
    l.add_input(slot, given, name_of(slot));
    unit.takes.push_back({between(slot), given, terms(l, slot)});
    taken_by_[slot] = u;
  }
  /// Takes the combined result of all calls of a unit, in their layout, and finishes it here.
  constexpr void take_combined(lowering& l, int u, op_id o) {
    pipeline_unit& unit = out_.units[u];
    made_in_[o] = u;
    const value_id each = p_.operand(o, 0), all = p_.op(o).result;
    if (p_.op(o).def->id == def<op::microbatch_sum>.id) {
      unit.takes.push_back({all, lies(l, each), terms(l, each)});
      l.add_input(each, lies(l, each), name_of(all));
      l.lower(o);
      return;
    }
    const layout given = behind_first(lies(l, each));
    unit.takes.push_back({all, given, {}});
    l.add_input(all, given, name_of(all));
    l.restore_layout(all);
  }
  constexpr value_id take_accumulator(lowering& l, pipeline_unit& unit, op_id o) {
    const value_id each = p_.operand(o, 0), all = p_.op(o).result;
    const layout given = lies(l, each);
    unit.takes.push_back({all, given, terms(l, each)});
    return l.parameter(each, given, name_of(all));
  }
  constexpr void give_slice(lowering& l, pipeline_unit& unit, op_id o) {
    const value_id each = p_.operand(o, 0), all = p_.op(o).result;
    const layout left = lies(l, each);
    l.add_output(each, left, name_of(all));
    unit.gives.push_back({all, behind_first(left), {}});
  }
  /// Lowers ops and adds terms to sums. Each term is added before the next one is computed, so that
  /// only one is kept at a time; intermediate ops with other users come first. Returns the final
  /// accumulators.
  constexpr vec<value_id> lower_and_add(lowering& l, int u, const vec<op_id>& ops,
                                        const vec<value_id>& accumulators) {
    const pipeline_unit& unit = out_.units[u];
    const int count = static_cast<int>(accumulators.size());
    vec<value_id> sums(accumulators.size(), -1);
    first_sum_.resize(p_.ops.size(), -1);
    next_sum_.assign(accumulators.size(), -1);
    for (int i = count; i-- > 0;) {
      int& first = first_sum_[maker(p_.operand(op_of_[unit.sums[i]], 0))];
      next_sum_[i] = first;
      first = i;
    }
    const auto add = [&](int i) { sums[i] = added(l, op_of_[unit.sums[i]], accumulators[i]); };
    int waiting = -1;
    for (const op_id o : ops) {
      if (first_sum_[o] >= 0)
        for (; waiting >= 0; waiting = next_sum_[waiting]) add(waiting);
      const op_id first = l.part().op_count();
      l.lower(o);
      if (unit_of_[o] >= 0 && unit_of_[o] < u) mark_all_again(l.part(), first);
      if (first_sum_[o] >= 0) waiting = first_sum_[o];
    }
    for (int i = 0; i < count; ++i) {
      first_sum_[maker(p_.operand(op_of_[unit.sums[i]], 0))] = -1;
      if (sums[i] < 0) add(i);  // the last ones, and those of the unit's operands
    }
    return sums;
  }
  static constexpr void mark_all_again(program& part, op_id first) {
    for (op_id o = first; o < part.op_count(); ++o) mark_again(part, o);
  }
  constexpr value_id added(lowering& l, op_id o, value_id before) {
    const auto c = static_cast<combiner>(p_.attrs(o)[0]);
    const value_id both[] = {before, l.local_of(p_.operand(o, 0))};
    if (c == combiner::stack) return both[1];
    return append_for(l.part(), p_.op(o).marks, combining_op(c), both, {},
                      tensor_type(l.part().type(before)));
  }
  constexpr void give_sum(lowering& l, pipeline_unit& unit, op_id o, value_id sum) {
    const value_id each = p_.operand(o, 0), all = p_.op(o).result;
    const layout left = lies(l, each);
    l.add_output(each, sum, left, name_of(all));
    unit.gives.push_back({all, left, terms(l, each)});
  }

  // ---- Ops that actions added -------------------------------------------------------------------

  /// Adds an op to a unit, and the ops that actions added before it.
  constexpr void include(int u, op_id o, vec<op_id>& ops) {
    ops.push_back(o);
    made_in_[o] = u;
    if (const auto* k = core_.nested.control_of(o); k != nullptr) {
      for (const use& each : k->operands) need(u, p_.operand(each.op, each.operand), ops);
      return;
    }
    for (const value_id v : p_.operands(o)) need(u, v, ops);
  }
  constexpr op_id maker(value_id v) const {
    const op_id o = p_.producer(v);
    const auto* k = core_.nested.control_of(o);
    return k != nullptr ? k->marker : o;
  }
  constexpr void need(int u, value_id wanted, vec<op_id>& ops) {
    if (taken_by_[wanted] == u || made_in_[maker(wanted)] == u) return;
    vec<value_id> open{wanted};
    while (!open.empty()) {
      const value_id v = open.back();
      open.pop_back();
      const op_id o = maker(v);
      if (taken_by_[v] == u || made_in_[o] == u) continue;
      if (!is_added(o)) {
        out_.error.record("O131", "internal error: a unit needs value ", core_.describe(v), " (",
                          p_.op(o).def->name,
                          "), which it neither takes nor computes; please report it");
        return;
      }
      made_in_[o] = u;
      ops.push_back(o);
      for (const value_id x : p_.operands(o)) open.push_back(x);
    }
  }
};

}  // namespace partita::mpmd_detail
