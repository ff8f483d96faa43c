/// A program whose ops carry loops over mesh axes, and queries about it.
///
/// Source    PartIR, section 5
#pragma once

#include <cstdint>

#include <partita/core/graph.hpp>
#include <partita/core/halo.hpp>
#include <partita/core/located.hpp>
#include <partita/core/loops.hpp>
#include <partita/core/partition_state.hpp>
#include <partita/ir/axis_set.hpp>
#include <partita/ir/layout.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The arrays of a loop_program, valid until it changes. Propagation, counting and lowering query
/// the layout of every value and operand, also in constant evaluation, where each call is
/// expensive.
struct loop_view {
  const op_node* ops;
  const tensor_type* types;       ///< by value
  const op_id* producers;         ///< by value
  const value_id* operands;       ///< of all ops, each from op_node::operand_begin
  const nest_list::row* nests;    ///< by op
  const std::uint8_t* axes;       ///< by op: the axes of its loops, as bits
  const loop* more_loops;         ///< loops of ops that have many, each from row::begin
  const factor_table::row* maps;  ///< by op
  const factor* factors;          ///< of all ops, each from factor_table::row::begin
  const std::int8_t* dims;        ///< factor_table::operand_dims
  const std::int64_t* locals;  ///< indexed like `factors`: the positions per iteration of the loops
  const use_range* use_ranges;  ///< by value
  const use* uses;              ///< of all values, each from use_range::begin

  /// The loops of an op.
  constexpr const loop* loops_of(op_id o) const {
    const nest_list::row& n = nests[o];
    return n.count <= nest_list::few ? n.first : more_loops + n.begin;
  }
  /// Like factor_table::dim_of.
  constexpr int dim_of(const factor& f, int end) const {
    if (end >= 0) return dims[f.operands_begin + end];
    if (end == -1) return f.result_dim;
    return dims[f.operands_begin + end + 1];
  }
  /// How the loops of an op slice an operand or (end -1 - r) lay out result r, ignoring loops over
  /// the axes in `without` (bits). Loops over reduced factors do not count.
  constexpr layout layout_at(op_id o, int end, unsigned without) const {
    layout l;
    const nest_list::row& n = nests[o];
    if ((axes[o] & ~without) == 0) return l;
    const loop* const loops = loops_of(o);
    const factor* const mine = factors + maps[o].begin;
    for (int i = 0; i < n.count; ++i) {
      const int which = loops[i].factor, axis = loops[i].axis;
      if (which == any_factor || (without >> axis & 1u) != 0) continue;
      const int dim = dim_of(mine[which], end);
      if (dim == no_dim) continue;
      l.packed |= layout::packed_entry(axis, dim) << 8 * l.count;
      ++l.count;
    }
    return l;
  }
  /// The layout that the loops of its producer give a value, ignoring loops over the axes in
  /// `without`.
  constexpr layout produced_layout(value_id v, unsigned without = 0) const {
    const op_id o = producers[v];
    return layout_at(o, ops[o].result - v - 1, without);
  }
};

/// Every op has a loop nest, including the ops of nested programs and the wires that tie them to
/// the program around them (see flatten.hpp). Inputs and tags are ops as well: a tiled argument is
/// a `parameter` with loops, and the inference "all uses slice it" is the rule that applies to
/// every op.
///
/// It consists of a graph and a state, where its members are documented; this class only reads
/// them.
class loop_program {
 private:
  /// Restores the conflicts of an op in state `s`.
  constexpr void undo_conflicts(const partition_state& s, op_id o) {
    vec<conflict> before;
    s.conflicts.for_each_of(o, [&](const conflict& k) { before.push_back(k); });
    op_set& open = state_.open;
    const int at = graph_.order.position(o), previous = open.last_before(at);
    vec<conflict_change> log;
    state_.conflicts.replace(o, -1, {}, log);
    state_.conflicts.replace(o, previous < 0 ? -1 : graph_.order.at(previous), before, log);
    if (!before.empty())
      open.insert(graph_.order, o);
    else if (open.contains(at))
      open.erase(at);
  }

 protected:
  core_graph graph_;
  partition_state state_;

 public:
  const program& p = graph_.p;
  const flat_program& nested = graph_.nested;
  const factor_table& map = graph_.map;
  const op_order& order = graph_.order;
  const output_list& returned = graph_.returned;
  const partita::mesh& mesh = state_.mesh;
  const named_axes& named = state_.named;
  const nest_list& nests = state_.nests;
  const vec<action>& actions = state_.actions;
  const conflict_list& conflicts = state_.conflicts;
  const vec<conflict_change>& conflict_changes = state_.conflict_changes;
  const vec<settled_conflict>& settled = state_.settled;
  const padding_record& padding = state_.padding;
  const vec<op_id>& changes = state_.changes;
  const int& tactic = state_.tactic;

  constexpr loop_program() = default;
  constexpr loop_program(const program& source, const partita::mesh& m, core_options options)
      : graph_(source) {
    state_.mesh = m.whole();
    state_.named = named_axes(state_.mesh);
    state_.options = options;
    state_.nests.add_ops(p.ops.size());
    state_.local.reserve(map.factors.size());
    const factor* const factors = map.factors.data();
    for (std::size_t f = 0; f < map.factors.size(); ++f) state_.local.push_back(factors[f].size);
  }
  // The references above must refer to this object's own members, so copies are written by hand.
  constexpr loop_program(const loop_program& other) : graph_(other.graph_), state_(other.state_) {}
  constexpr loop_program(loop_program&& other) noexcept
      : graph_(static_cast<core_graph&&>(other.graph_)),
        state_(static_cast<partition_state&&>(other.state_)) {}
  constexpr loop_program& operator=(const loop_program& other) {
    graph_ = other.graph_;
    state_ = other.state_;
    return *this;
  }
  constexpr loop_program& operator=(loop_program&& other) noexcept {
    graph_ = static_cast<core_graph&&>(other.graph_);
    state_ = static_cast<partition_state&&>(other.state_);
    return *this;
  }
  constexpr ~loop_program() = default;

  /// The number of times that ops were inserted or enlarged. All other changes affect the state
  /// only.
  constexpr std::int64_t edits() const { return graph_.edits; }
  /// The number of ops that propagation has visited.
  constexpr std::int64_t visits() const { return state_.visits; }
  /// Becomes a copy of `other`. `same_graph`: both are known to have the same graph, which is then
  /// not copied.
  constexpr void restore(const loop_program& other, bool same_graph) {
    if (!same_graph) graph_ = other.graph_;
    state_ = other.state_;
  }

  /// Everything that actions change unless they insert ops.
  constexpr const partition_state& state() const { return state_; }
  /// Restores an earlier state of this program, provided that no ops were inserted since.
  constexpr void restore(const partition_state& s) { state_ = s; }

  /// Restores state `s`, from which only actions led to the current state. A loop that existed in
  /// `s` may stay marked as requested if an action requested it later. Cost: linear in the changes
  /// undone.
  constexpr void undo_to(const partition_state& s) {
    const std::size_t common = s.changes.size();
    for (std::size_t i = common; i < state_.changes.size(); ++i)
      if (state_.changes[i] < 0) return restore(s);
    for (std::size_t i = common; i < state_.changes.size(); ++i) {
      const op_id o = state_.changes[i];
      state_.nests.undo(s.nests, o);
      const auto& row = graph_.map.ops[o];
      for (int f = row.begin; f < row.begin + row.count; ++f) state_.local[f] = s.local[f];
    }
    state_.nests.end_undo(s.nests);
    state_.changes.resize(common, 0);
    state_.actions.resize(s.actions.size(), action{});
    state_.settled.resize(s.settled.size(), settled_conflict{});
    state_.named = s.named;
    for (std::size_t i = s.conflict_changes.size(); i < state_.conflict_changes.size(); ++i)
      undo_conflicts(s, state_.conflict_changes[i].what.op);
    state_.conflict_changes.resize(s.conflict_changes.size(), conflict_change{});
    state_.tactic = s.tactic;
    state_.tactic_changes = s.tactic_changes;
    state_.visits = s.visits;
    if (!state_.waiting.empty() || !s.waiting.empty()) state_.waiting = s.waiting;
    if (!state_.revisited.empty() || !s.revisited.empty()) state_.revisited = s.revisited;
  }

  /// Collects in `step` the loops, actions and conflicts that led here from state `s`. Returns
  /// false if other changes happened, such as a split axis. `counts` is scratch space, by op.
  constexpr bool step_from(const partition_state& s, partition_step& step, vec<int>& counts) const {
    const std::size_t common = s.changes.size(), end = state_.changes.size();
    for (std::size_t i = common; i < end; ++i) {
      if (state_.changes[i] < 0) return false;
      counts[state_.changes[i]] = s.nests[state_.changes[i]].count;
    }
    step.loops.reserve(end - common);
    for (std::size_t i = common; i < end; ++i) {
      const op_id o = state_.changes[i];
      const nest now = state_.nests[o];
      if (counts[o] == now.count) return false;  // something other than a loop has changed
      step.loops.push_back({o, now.loops[counts[o]++]});
    }
    for (std::size_t i = s.actions.size(); i < state_.actions.size(); ++i)
      step.actions.push_back(state_.actions[i]);
    for (std::size_t i = s.conflict_changes.size(); i < state_.conflict_changes.size(); ++i)
      step.conflict_changes.push_back(state_.conflict_changes[i]);
    step.conflicts = state_.conflicts;
    step.open = state_.open;
    step.visits = state_.visits;
    return true;
  }
  /// Applies a step to the state that it was taken from. Cost: linear in what the step changes.
  constexpr void redo(const partition_step& step) {
    for (const auto& l : step.loops) {
      const bool slices = l.what.factor != any_factor;
      state_.nests.push_back(
          l.op, l.what, slices && graph_.map.at(l.op, l.what.factor).combine != combiner::stack);
      state_.changes.push_back(l.op);
      if (slices)
        state_.local[graph_.map.ops[l.op].begin + l.what.factor] /= size(l.op, l.what.axis);
    }
    for (const action& a : step.actions) state_.actions.push_back(a);
    for (const conflict_change& c : step.conflict_changes) state_.conflict_changes.push_back(c);
    state_.conflicts = step.conflicts;
    state_.open = step.open;
    state_.visits = step.visits;
  }

  /// The size of an axis where an op runs; it may differ between meshes.
  constexpr std::int64_t size(op_id o, int axis) const {
    return graph_.sizes.contains(axis) ? graph_.sizes.size(o, axis) : state_.mesh.size(axis);
  }
  constexpr const uneven_axes& uneven_sizes() const { return graph_.sizes; }
  /// True if an op runs on meshes that have different sizes of an axis.
  constexpr bool differs(op_id o, int axis) const {
    return graph_.sizes.contains(axis) &&
           graph_.sizes.size(o, axis) != graph_.sizes.least_size(o, axis);
  }
  /// True if the loops of an op leave one position of a factor, on every mesh that it runs on.
  constexpr bool is_used_up(op_id o, int factor) const {
    if (local(o, factor) > 1) return false;
    if (graph_.sizes.axes == 0) return true;
    std::int64_t pieces = 1;
    for (const auto& l : nest_of(o))
      if (l.factor == factor)
        pieces *= graph_.sizes.contains(l.axis) ? graph_.sizes.least_size(o, l.axis)
                                                : state_.mesh.size(l.axis);
    return pieces == graph_.map.at(o, factor).size;
  }
  /// The number of shards into which a layout cuts a dimension where an op runs.
  constexpr std::int64_t pieces_at(op_id o, const layout& l, int dim) const {
    std::int64_t n = 1;
    for (const auto& e : l)
      if (e.dim == dim) n *= size(o, e.axis);
    return n;
  }
  /// True if a loop may read elements of neighbouring shards.
  constexpr bool sees_halos() const { return state_.options.halos; }
  constexpr bool keeps_rows() const { return state_.options.stationary_rows; }
  constexpr nest nest_of(op_id o) const { return state_.nests[o]; }
  /// The number of positions of a factor per iteration of the op's loops.
  constexpr std::int64_t local(op_id o, int factor) const { return locals_of(o)[factor]; }
  constexpr const std::int64_t* locals_of(op_id o) const {
    return state_.local.data() + graph_.map.ops[o].begin;
  }
  /// The shape of a value in the source program; its type may be larger because of padding.
  constexpr const shape& true_shape(value_id v) const {
    return graph_.padding.empty() ? graph_.p.type(v).shape : graph_.padding.whole[v];
  }
  constexpr tensor_type true_type(value_id v) const {
    return {graph_.p.type(v).element, true_shape(v)};
  }
  /// All uses of a value as an operand; program outputs are not included.
  constexpr span<const use> uses(value_id v) const { return graph_.uses(v); }

  /// A view for callers that query the layouts of many ops.
  constexpr loop_view view() const {
    return {p.ops.data(),        p.types.data(),
            p.producers.data(),  p.operand_list.data(),
            nests.rows(),        nests.axes(),
            nests.more(),        map.ops.data(),
            map.factors.data(),  map.operand_dims.data(),
            state_.local.data(), graph_.use_ranges(),
            graph_.all_uses()};
  }
  /// The layout that the loops of its producer give a value.
  constexpr layout produced_layout(value_id v) const { return view().produced_layout(v); }
  /// The layout in which the loops of an op slice one of its operands.
  constexpr layout required_layout(op_id o, int operand) const {
    return view().layout_at(o, operand, 0);
  }

  /// Cuts factor `f` of an op, which has a halo, into `pieces` pieces; `attrs`, those of the op,
  /// becomes that of one piece.
  constexpr halo_cut cut(op_id o, int f, std::int64_t pieces, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return cut_halo(*graph_.p.ops[o].def, map, graph_.map.at(o, f), pieces, types,
                    graph_.p.type(graph_.p.ops[o].result), attrs, has_grown(o, f));
  }
  /// Stretches the same factor; see stretch_halo.
  constexpr halo_cut stretch(op_id o, int f, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return stretch_halo(*graph_.p.ops[o].def, map, graph_.map.at(o, f), types,
                        graph_.p.type(graph_.p.ops[o].result), attrs, has_grown(o, f));
  }
  /// True if dimensions of a factor are larger than in the source.
  constexpr bool has_grown(op_id o, int f) const {
    if (!padded()) return false;
    const op_node& n = graph_.p.ops[o];
    const factor& of = graph_.map.at(o, f);
    for (int i = -1; i < n.operand_count; ++i)
      if (const int d = graph_.map.dim_of(of, i); d != no_dim) {
        const value_id end = i < 0 ? n.result : graph_.p.operand(o, i);
        if (graph_.p.type(end).shape[d] != true_shape(end)[d]) return true;
      }
    return false;
  }
  constexpr vec<tensor_type> operand_types(op_id o) const { return graph_.operand_types(o); }

  /// True if some loop of an op reads more than its own blocks.
  constexpr bool has_halo(op_id o) const {
    const nest n = state_.nests[o];
    if (n.count == 0) return false;
    const factor* factors = graph_.map.factors_of(o);
    for (int i = 0; i < n.count; ++i) {
      const loop& l = n.loops[i];
      if (l.factor != any_factor && factors[l.factor].halo && size(o, l.axis) > 1) return true;
    }
    return false;
  }
  /// The halo loops of an op, by factor; `attrs`, those of the op, becomes that of one iteration.
  constexpr vec<halo_loops> halos_of(op_id o, vec<std::int64_t>& attrs) const {
    vec<halo_loops> list;
    for (int f = 0; f < graph_.map.ops[o].count; ++f) {
      if (!graph_.map.at(o, f).halo) continue;
      halo_loops h;
      h.factor = f;
      std::int64_t pieces = 1;
      for (const auto& l : nest_of(o))
        if (l.factor == f && size(o, l.axis) > 1) {
          h.axes.push_back(l.axis);
          pieces *= size(o, l.axis);
        }
      if (pieces == 1) continue;
      h.cut = cut(o, f, pieces, attrs);
      list.push_back(h);
    }
    return list;
  }

  /// The reduced positions of an op that include padding, where a zero of the padding would be
  /// multiplied by elements that may be infinite.
  constexpr vec<padded_taps> padded_taps_of(op_id o) const {
    vec<padded_taps> list;
    const op_node& n = graph_.p.ops[o];
    if (!padded() || n.def->narrow == nullptr || !is_floating(graph_.p.type(n.result).element))
      return list;
    const factor* const factors = graph_.map.factors_of(o);
    for (int f = 0; f < graph_.map.ops[o].count; ++f) {
      if (!factors[f].halo || factors[f].combine == combiner::stack) continue;
      padded_taps taps;
      taps.factor = f;
      for (int k = 0; k < n.operand_count; ++k)
        if (const int d = graph_.map.operand_dim(factors[f], k); d != no_dim)
          taps.operand = k, taps.dim = d;
      const value_id v = graph_.p.operand(o, taps.operand);
      taps.size = true_shape(v)[taps.dim];
      taps.block = graph_.p.type(v).shape[taps.dim];
      if (taps.size == taps.block) continue;
      for (const auto& l : nest_of(o))
        if (l.factor == f && size(o, l.axis) > 1) {
          taps.axes.push_back(l.axis);
          taps.block /= size(o, l.axis);
        }
      list.push_back(taps);
    }
    return list;
  }

  /// The number of positions of a factor in the source; the factor is a full dimension.
  constexpr std::int64_t true_positions(op_id o, int f) const {
    const op_node& n = graph_.p.ops[o];
    const factor& of = graph_.map.at(o, f);
    for (int i = 0; i < n.operand_count; ++i)
      if (const int d = graph_.map.operand_dim(of, i); d != no_dim)
        return true_shape(graph_.p.operand(o, i))[d];
    return true_shape(n.result)[of.result_dim];
  }
  /// The loops of an op whose iterations know the offsets of their pieces, by factor. Includes
  /// factors that are padded but not cut; these have one piece.
  constexpr vec<located_loops> located_of(op_id o) const {
    vec<located_loops> list;
    const nest n = nest_of(o);
    if (n.count == 0 && !padded()) return list;
    const factor* const factors = graph_.map.factors_of(o);
    for (int f = 0; f < graph_.map.ops[o].count; ++f) {
      if (!factors[f].located) continue;
      located_loops each{{f, padded() ? true_positions(o, f) : factors[f].size, local(o, f)}, {}};
      for (const auto& l : n)
        if (l.factor == f && size(o, l.axis) > 1) each.axes.push_back(l.axis);
      if (each.axes.count > 0 || each.piece.size < factors[f].size) list.push_back(each);
    }
    return list;
  }

  /// The axes of `mesh` that overlap a named axis, major to minor.
  constexpr axis_list parts(int axis) const { return state_.mesh.parts_of(state_.named.at(axis)); }
  /// The dimension on which a value is tiled along all of a named axis, or -1.
  constexpr int dim_of(value_id v, int axis) const {
    const layout have = produced_layout(holder(v));
    const axis_list list = parts(axis);
    const int dim = list.count > 0 ? have.dim_of(list.axes[0]) : -1;
    for (int a : list)
      if (have.dim_of(a) != dim) return -1;
    return dim;
  }
  /// True if a value is tiled along at least a part of a named axis.
  constexpr bool is_tiled(value_id v, int axis) const {
    const layout have = produced_layout(holder(v));
    for (int a : parts(axis))
      if (have.dim_of(a) >= 0) return true;
    return false;
  }

  /// True if a value is sliced, or kept replicated by a loop of its own, along at least a part of
  /// an axis.
  constexpr bool is_placed(value_id v, int axis) const {
    const op_id o = p.producer(holder(v));
    for (int a : parts(axis))
      if (nest_of(o).find(a) != nullptr) return true;
    return is_tiled(v, axis);
  }

  /// The number of pieces into which the loops of an op cut a factor.
  constexpr std::int64_t pieces_of(op_id o, int factor) const {
    std::int64_t n = 1;
    for (const auto& l : nest_of(o))
      if (l.factor == factor) n *= size(o, l.axis);
    return n;
  }
  /// A sub-axis as a tactic names it: `B`, or `B:(2)4`.
  constexpr text axis_in_tactic(const sub_axis& s) const {
    text out = escaped(mesh.name(s.axis));
    if (s.pre != 1 || s.size != mesh.whole_size(s.axis)) out << ":(" << s.pre << ')' << s.size;
    return out;
  }
  constexpr text axis_text(const sub_axis& s) const {
    text out;
    print_sub_axis(out, s, mesh);
    return out;
  }
  /// The intersection of a named axis and an axis of `mesh` that overlap.
  constexpr sub_axis common(int axis, int part) const {
    const sub_axis a = state_.named.at(axis), b = state_.mesh.part(part);
    const std::int64_t begin = a.pre > b.pre ? a.pre : b.pre;
    const std::int64_t end = a.end() < b.end() ? a.end() : b.end();
    return {a.axis, begin, end / begin};
  }

  /// The value that carries the tiling of `v`: `v` itself, or the result of its `tiling` op; if `v`
  /// is padded, the same for the padded value.
  constexpr value_id holder(value_id v) const {
    while (widened(v) >= 0) v = widened(v);
    const value_id t = graph_.tiled(v);
    return t >= 0 ? t : v;
  }
  /// The padded value made from a value that is produced in its true size, or -1.
  constexpr value_id widened(value_id v) const {
    return graph_.padding.empty() ? -1 : graph_.padding.widened[v];
  }
  /// True if the program is padded.
  constexpr bool padded() const { return !graph_.padding.empty(); }
  /// True if the dimensions of a factor, given by its index in the table, were padded separately.
  constexpr bool grows_apart(int factor) const { return graph_.padding.is_loose(factor); }
  /// The effect of padding on an op; only for a padded program.
  constexpr const padding_marks::inserted_op& padding_of(op_id o) const {
    return graph_.padding.inserted[o];
  }
  /// The reason for which padding inserted an op, or `none`.
  constexpr padding_record::kind inserted(op_id o) const {
    return graph_.padding.empty() ? padding_record::kind::none : graph_.padding.inserted[o].what;
  }
  /// The op's definition in the source: the current one, or the previous one if padding replaced
  /// the op by one with another operand.
  constexpr const op_def& was(op_id o) const {
    const op_def* const before = graph_.padding.empty() ? nullptr : graph_.padding.inserted[o].was;
    return before != nullptr ? *before : *graph_.p.ops[o].def;
  }
  /// True if an op only converts a value between its true and its padded size.
  constexpr bool resizes(op_id o) const {
    if (graph_.padding.empty()) return false;
    const auto why = graph_.padding.inserted[o].what;
    return why == padding_record::kind::widen || why == padding_record::kind::trim;
  }
  /// The value of the source program from which a chain of `tiling` ops and padding ops leads to
  /// `v`.
  constexpr value_id source_of(value_id v) const {
    for (;;) {
      const op_id o = graph_.p.producer(v);
      if (inserted(o) == padding_record::kind::mask)
        v = graph_.p.operand(o, 1);
      else if (graph_.p.is(o, op_role::tiling) || resizes(o))
        v = graph_.p.operand(o, 0);
      else
        return v;
    }
  }
  /// A name for messages: that of the parameter, tag or output, a label, or "%N".
  constexpr text describe(value_id v) const {
    v = source_of(v);
    if (!graph_.p.name(v).empty()) return escaped(graph_.p.name(v));
    for (value_id out = v; out >= 0; out = widened(out) >= 0 ? widened(out) : graph_.tiled(out))
      if (graph_.returned[out]) return escaped(graph_.p.output_name(graph_.returned.first(out)));
    for (const auto& each : graph_.p.labels.values)
      if (each.value == v) return escaped(each.name);
    const op_id o = graph_.p.producer(v);
    if (const auto label = graph_.p.label(o, graph_.p.labels); !label.empty())
      return escaped(graph_.p.result_label(o, graph_.p.result_index(v), graph_.p.op(o).result_count,
                                           graph_.p.labels));
    return concat('%', v);
  }
  /// A tactic for messages, counted from 1: `tactic 2 ("MP")`.
  constexpr text describe_tactic(int t) const {
    text out = concat("tactic ", t + 1);
    const auto& names = state_.tactic_names;
    if (t < static_cast<int>(names.size())) out << " (\"" << names[t] << "\")";
    return out;
  }
};

}  // namespace partita
