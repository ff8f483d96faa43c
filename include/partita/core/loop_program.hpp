/// A program whose ops carry loops over mesh axes, and what can be asked of it.
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

/// The arrays of a loop_program, until it changes. Propagation, counting and lowering ask for all
/// values and operands how they lie, in constant evaluation too, which pays for each call.
struct loop_view {
  const op_node* ops;
  const tensor_type* types;       ///< by value
  const op_id* producers;         ///< by value
  const value_id* operands;       ///< of all ops, each from op_node::operand_begin
  const nest_list::row* nests;    ///< by op
  const std::uint8_t* axes;       ///< by op: those of its loops, as bits
  const loop* more_loops;         ///< of ops with many loops, each from row::begin
  const factor_table::row* maps;  ///< by op
  const factor* factors;          ///< of all ops, each from factor_table::row::begin
  const std::int8_t* dims;        ///< factor_table::operand_dims
  const std::int64_t* locals;     ///< as `factors`: the positions that loops leave
  const use_range* use_ranges;    ///< by value
  const use* uses;                ///< of all values, each from use_range::begin

  /// The loops of an op.
  constexpr const loop* loops_of(op_id o) const {
    const nest_list::row& n = nests[o];
    return n.count <= nest_list::few ? n.first : more_loops + n.begin;
  }
  /// As factor_table::dim_of.
  constexpr int dim_of(const factor& f, int end) const {
    if (end >= 0) return dims[f.operands_begin + end];
    if (end == -1) return f.result_dim;
    return dims[f.operands_begin + end + 1];
  }
  /// How the loops of an op, without those over some axes (bits), slice an operand or (end -1 - r)
  /// lay out result r; sums are not part of it.
  constexpr layout lies(op_id o, int end, unsigned without) const {
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
  /// How the loops of its producer, without those over some axes, lay a value out.
  constexpr layout made(value_id v, unsigned without = 0) const {
    const op_id o = producers[v];
    return lies(o, ops[o].result - v - 1, without);
  }
};

/// Every op has a loop nest; ops of nested programs, too, and the wires that tie them to the
/// program around them (see flatten.hpp). Inputs and tags are ops as well, so a tiled argument is a
/// `parameter` with loops, and so is the inference "all uses slice it": the rule that works for
/// every op.
///
/// It consists of a graph and of a state, which say what these names mean; here both are only read.
class loop_program {
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
  // The names above are those of the own parts, in copies too.
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

  /// How often ops were inserted or made larger. Everything else changes the state alone.
  constexpr std::int64_t edits() const { return graph_.edits; }
  /// How often propagation looked at an op.
  constexpr std::int64_t visits() const { return state_.visits; }
  /// Becomes a copy of another one, which has the same graph, if that is known.
  constexpr void restore(const loop_program& other, bool same_graph) {
    if (!same_graph) graph_ = other.graph_;
    state_ = other.state_;
  }

  /// Everything that actions change where they insert no ops.
  constexpr const partition_state& state() const { return state_; }
  /// Returns to a state of this program, which had the ops then that it has now.
  constexpr void restore(const partition_state& s) { state_ = s; }

  /// The same, of a state from which actions have led here. (Loops that were asked for behind it,
  /// but were there, may stay marked so.) Cost: of what these changed, and of what is open.
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
    state_.named = s.named;
    if (state_.conflict_changes.size() != s.conflict_changes.size()) {
      state_.conflicts = s.conflicts;
      state_.conflict_changes.resize(s.conflict_changes.size(), conflict_change{});
    }
    state_.tactic = s.tactic;
    state_.waiting = s.waiting;
    state_.visits = s.visits;
    state_.open = s.open;
    state_.revisited = s.revisited;
  }

  /// What led here from a state that actions have led from: loops, while no axis was split. Gives
  /// false otherwise. `counts`: by op, anything; it is written over.
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
      if (counts[o] == now.count) return false;  // something else has changed
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
  /// Takes a step again, in the state that it was taken from. Cost: of what it changes.
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

  /// Positions of an axis where an op runs: on meshes of different sizes they differ.
  constexpr std::int64_t size(op_id o, int axis) const {
    return graph_.sizes.contains(axis) ? graph_.sizes.size(o, axis) : state_.mesh.size(axis);
  }
  constexpr const uneven_axes& uneven_sizes() const { return graph_.sizes; }
  /// Does an op run on meshes of which some have another size of an axis than others?
  constexpr bool differs(op_id o, int axis) const {
    return graph_.sizes.contains(axis) &&
           graph_.sizes.size(o, axis) != graph_.sizes.least_size(o, axis);
  }
  /// Do the loops of an op over a factor leave one position, on all meshes that it runs on?
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
  /// Into how many pieces a layout cuts a dimension where an op runs.
  constexpr std::int64_t pieces_at(op_id o, const layout& l, int dim) const {
    std::int64_t n = 1;
    for (const auto& e : l)
      if (e.dim == dim) n *= size(o, e.axis);
    return n;
  }
  /// May a loop see elements of neighbouring pieces?
  constexpr bool sees_halos() const { return state_.options.halos; }
  constexpr bool keeps_rows() const { return state_.options.stationary_rows; }
  constexpr nest nest_of(op_id o) const { return state_.nests[o]; }
  /// The positions that the loops of an op leave of a factor, and of all its factors.
  constexpr std::int64_t local(op_id o, int factor) const { return locals_of(o)[factor]; }
  constexpr const std::int64_t* locals_of(op_id o) const {
    return state_.local.data() + graph_.map.ops[o].begin;
  }
  /// The shape of a value in the source program; its type may be larger, where it is padded.
  constexpr const shape& true_shape(value_id v) const {
    return graph_.padding.empty() ? graph_.p.type(v).shape : graph_.padding.whole[v];
  }
  constexpr tensor_type true_type(value_id v) const {
    return {graph_.p.type(v).element, true_shape(v)};
  }
  /// All uses of a value as an operand (being a result of the program is not among them).
  constexpr span<const use> uses(value_id v) const { return graph_.uses(v); }

  /// For those who ask of many ops how they lie.
  constexpr loop_view view() const {
    return {p.ops.data(),        p.types.data(),
            p.producers.data(),  p.operand_list.data(),
            nests.rows(),        nests.axes(),
            nests.more(),        map.ops.data(),
            map.factors.data(),  map.operand_dims.data(),
            state_.local.data(), graph_.use_ranges(),
            graph_.all_uses()};
  }
  /// How the loops of its producer lay a value out.
  constexpr layout made(value_id v) const { return view().made(v); }
  /// How the loops of an op slice one of its operands.
  constexpr layout required(op_id o, int operand) const { return view().lies(o, operand, 0); }

  /// Factor `f` of an op, which has a halo, cut into pieces; `attrs`, the op's, become those of one
  /// piece.
  constexpr halo_cut cut(op_id o, int f, std::int64_t pieces, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return cut_halo(*graph_.p.ops[o].def, map, graph_.map.at(o, f), pieces, types,
                    graph_.p.type(graph_.p.ops[o].result), attrs, has_grown(o, f));
  }
  /// The same factor, stretched; see stretch_halo.
  constexpr halo_cut stretch(op_id o, int f, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return stretch_halo(*graph_.p.ops[o].def, map, graph_.map.at(o, f), types,
                        graph_.p.type(graph_.p.ops[o].result), attrs, has_grown(o, f));
  }
  /// Are dimensions of a factor larger than in the source?
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

  /// Does some loop of an op see more than its own pieces?
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
  /// The loops of an op that do, by factor; `attrs`, the op's, become those of one iteration.
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

  /// What an op reduces of positions some of which lie behind the end, where zero there would meet
  /// elements that may be infinite.
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

  /// How many positions a factor of an op has in the source, which is a whole dimension.
  constexpr std::int64_t true_positions(op_id o, int f) const {
    const op_node& n = graph_.p.ops[o];
    const factor& of = graph_.map.at(o, f);
    for (int i = 0; i < n.operand_count; ++i)
      if (const int d = graph_.map.operand_dim(of, i); d != no_dim)
        return true_shape(graph_.p.operand(o, i))[d];
    return true_shape(n.result)[of.result_dim];
  }
  /// The loops of an op whose iterations know where their pieces start, by factor; with those that
  /// are not cut, but padded: then there is one piece.
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

  /// The axes of `mesh` that a named axis has something in common with, major to minor.
  constexpr axis_list parts(int axis) const { return state_.mesh.parts_of(state_.named.at(axis)); }
  /// The dimension on which a value is tiled along all of a named axis, or -1.
  constexpr int dim_of(value_id v, int axis) const {
    const layout have = made(holder(v));
    const axis_list list = parts(axis);
    const int dim = list.count > 0 ? have.dim_of(list.axes[0]) : -1;
    for (int a : list)
      if (have.dim_of(a) != dim) return -1;
    return dim;
  }
  /// Is a value tiled along a part of a named axis, at least?
  constexpr bool is_tiled(value_id v, int axis) const {
    const layout have = made(holder(v));
    for (int a : parts(axis))
      if (have.dim_of(a) >= 0) return true;
    return false;
  }

  /// Is a value sliced, or kept whole by a loop of its own, along an axis or a part of it?
  constexpr bool is_placed(value_id v, int axis) const {
    const op_id o = p.producer(holder(v));
    for (int a : parts(axis))
      if (nest_of(o).find(a) != nullptr) return true;
    return is_tiled(v, axis);
  }

  /// Into how many pieces loops cut a factor.
  constexpr std::int64_t pieces_of(op_id o, int factor) const {
    std::int64_t n = 1;
    for (const auto& l : nest_of(o))
      if (l.factor == factor) n *= size(o, l.axis);
    return n;
  }
  /// An axis or a part of it, as a tactic names it: `B`, or `B:(2)4`.
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
  /// What a named axis and an axis of `mesh` that it has something in common with share.
  constexpr sub_axis common(int axis, int part) const {
    const sub_axis a = state_.named.at(axis), b = state_.mesh.part(part);
    const std::int64_t begin = a.pre > b.pre ? a.pre : b.pre;
    const std::int64_t end = a.end() < b.end() ? a.end() : b.end();
    return {a.axis, begin, end / begin};
  }

  /// The value that carries the tiling of `v`: `v` itself, or the `tiling` op's result behind it;
  /// where it is padded, the padded value.
  constexpr value_id holder(value_id v) const {
    while (widened(v) >= 0) v = widened(v);
    const value_id t = graph_.tiled(v);
    return t >= 0 ? t : v;
  }
  /// The padded value behind one that is made in its true size, or -1.
  constexpr value_id widened(value_id v) const {
    return graph_.padding.empty() ? -1 : graph_.padding.widened[v];
  }
  /// Was an op inserted to pad something?
  constexpr bool padded() const { return !graph_.padding.empty(); }
  /// Have the ends of a factor, by its place in the table, been padded each by itself?
  constexpr bool grows_apart(int factor) const { return graph_.padding.is_loose(factor); }
  /// What padding made of an op; of a padded program.
  constexpr const padding_marks::inserted_op& padding_of(op_id o) const {
    return graph_.padding.inserted[o];
  }
  /// Why an op is there, if it was inserted to pad something.
  constexpr padding_record::kind inserted(op_id o) const {
    return graph_.padding.empty() ? padding_record::kind::none : graph_.padding.inserted[o].what;
  }
  /// What an op was in the source: itself, or what goes on as another op with one operand more.
  constexpr const op_def& was(op_id o) const {
    const op_def* const before = graph_.padding.empty() ? nullptr : graph_.padding.inserted[o].was;
    return before != nullptr ? *before : *graph_.p.ops[o].def;
  }
  /// Does an op only bring a value from its true size to a padded one, or back?
  constexpr bool resizes(op_id o) const {
    if (graph_.padding.empty()) return false;
    const auto why = graph_.padding.inserted[o].what;
    return why == padding_record::kind::widen || why == padding_record::kind::trim;
  }
  /// The value of the source program behind a chain of `tiling` ops and of those that pad.
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
  /// A name for messages: of the parameter, tag or output, or a label, else "%N".
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
