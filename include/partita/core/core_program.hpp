/// PartIR:Core: the actions on a program whose ops carry loops over mesh axes.
///
/// Source    PartIR, section 5 and appendix B
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/editor.hpp>
#include <partita/core/padding.hpp>
#include <partita/core/propagate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A program under partitioning. Only actions change it. The actions of tactics, `tile`, `atomic`
/// and `propagate`, add loops. The actions `first` and `settle` resolve conflicts between layouts
/// of the current tactic. The cost of an action is proportional to what it changes.
///
/// A `tile` that pads a dimension replaces the program by one with larger types (see padding.hpp),
/// in which every axis divides what it slices; `true_shape` returns the shapes of the source.
class core_program : public loop_program {
 public:
  constexpr core_program() = default;
  constexpr core_program(const program& source, const partita::mesh& m, core_options options = {})
      : loop_program(source, m, options) {}

  /// Records that axes have different sizes on the meshes that ops run on. Call it before the first
  /// action.
  constexpr void set_sizes(uneven_axes sizes) { graph_.sizes = static_cast<uneven_axes&&>(sizes); }
  /// Specializes the loops to one of those meshes, whose sizes are in `row`; only ops that run
  /// there remain valid. No action may follow.
  constexpr void be_on_row(int row) {
    const uneven_axes sizes = graph_.sizes;
    for (int a = 0; a < max_axes; ++a)
      if (sizes.contains(a)) state_.mesh.axes[a].size = sizes.sizes[row * max_axes + a];
    graph_.sizes = {};
    for (op_id o = 0; o < p.op_count(); ++o)
      for (int f = 0; f < map.ops[o].count; ++f)
        state_.local[map.ops[o].begin + f] = map.at(o, f).size / pieces_of(o, f);
  }

  /// The syntax in which messages give advice: the one in which the tactics were written.
  constexpr syntax advice() const { return state_.options.advice; }
  constexpr void set_advice(syntax s) { state_.options.advice = s; }

  /// Attributes the following actions to tactic `number`.
  constexpr void start_tactic(int number) {
    state_.tactic = number;
    state_.tactic_changes = changes.size();
  }
  /// Attributes the following actions to the next tactic, which messages call `name`.
  constexpr void start_tactic(std::string_view name) {
    start_tactic(static_cast<int>(state_.tactic_names.size()));
    state_.tactic_names.push_back(name);
  }
  /// Returns the number of an axis or sub-axis, which never changes; named_axes::find lists the
  /// errors.
  constexpr int axis(std::string_view name, std::string_view who, failure& f) {
    return state_.named.find(name, who, f);
  }
  constexpr int axis(const sub_axis& s) { return state_.named.number(s); }
  /// Splits axes, where possible, so that a sub-axis is a product of axes.
  constexpr void refine(const sub_axis& s) {
    std::int64_t major = 0;
    for (int a = mesh.cut_by(s, major); a >= 0 && major > 0 && mesh.rank < max_axes;
         a = mesh.cut_by(s, major))
      edit().split(a, major);
  }

  /// Tiles a value along a dimension over a named axis: `tile<%value, dim, "axis">`.
  ///
  /// A parameter or tag gets one more loop. Any other value is passed through a `tiling` op, which
  /// keeps the loops the value already has (deep tiling, appendix B.1.2). Repeating a tiling
  /// changes nothing. If the axis is split, its parts tile the dimension, major to minor, except
  /// those that already do.
  ///
  /// `policy` decides what happens if the axis does not divide the dimension's local size.
  /// Errors    S002 dimension out of range, S003 size does not divide, S004 axis used twice, S023
  ///           the axis is split otherwise, S024 one tactic pads what another one refuses to pad,
  ///           S118 the padded tensor has too many elements
  constexpr failure tile(value_id v, int dim, int axis, uneven policy = uneven::unsaid) {
    failure f;
    value_id target = holder(v);
    const shape whole = true_shape(target);
    if (dim < 0 || dim >= whole.rank) {
      f.record("S002", "tile: dimension ", dim, " of \"", describe(v),
               "\" is out of range; its shape is ", whole);
      return f;
    }
    f = check_split(axis);
    if (f) return f;
    const layout have = produced_layout(target);
    const bool own = has_own_nest(target);
    axis_list missing;
    for (int a : parts(axis)) {
      const loop* old = nest_of(p.producer(target)).find(a);
      const int on = have.dim_of(a);
      if (old == nullptr || (!own && on < 0)) {
        missing.push_back(a);
      } else if (on >= 0 && on != dim) {
        f.record("S004", "tile: \"", describe(v), "\" is already sliced on dimension ", on,
                 " along axis ", axis_text(common(axis, a)), ", by ", introduced(*old),
                 "; it cannot be sliced on dimension ", dim, " too; ", ways_out(v, dim, *old));
      } else if (on < 0) {
        f.record("S004", "tile: \"", describe(v), "\" is kept replicated along axis ",
                 axis_text(common(axis, a)), ", by ", introduced(*old),
                 "; no action undoes an earlier one; ", ways_out(v, dim, *old));
      }
    }
    if (f) return f;
    if (missing.count == 0) return policy == uneven::refuse ? refuse(v, target, dim) : f;
    const op_id maker = p.producer(target);
    std::int64_t pieces = 1, padded = have.pieces(mesh, dim);  // padded for all meshes
    for (int a : missing) {
      pieces *= uneven_sizes().contains(a) ? this->size(maker, a) : common(axis, a).size;
      padded *= common(axis, a).size;
    }
    const std::int64_t size = p.type(target).shape[dim], left = size / pieces_at(maker, have, dim);
    const bool divides = left % pieces == 0;
    if (policy == uneven::refuse && (divides || size != whole[dim])) f = refuse(v, target, dim);
    if (f) return f;
    const value_id even = target;
    if (!divides) {
      if (policy != uneven::pad) {
        does_not_divide(f, v, target, dim, axis, missing);
        return f;
      }
      f.record(widen(target, dim, axis, padded));
      if (f) return f;
      target = holder(v);
    }
    if (policy == uneven::pad && size > 0) {
      vec<dimension> seen;
      widen_windows({target, dim}, axis, padded, seen);
    }
    refine(named.at(axis));
    state_.actions.push_back({action_kind::tile, source_of(v), dim, axis, tactic, policy});
    if (!has_own_nest(target)) target = edit().insert_tiling(target, even);
    edit().add_loops(p.producer(target), axis, dim);
    return f;
  }

  /// Gives a value a nest of its own, without loops, as `tile` and `atomic` would; afterwards
  /// neither inserts an op for it.
  constexpr void hold(value_id v) {
    const value_id target = holder(v);
    if (!has_own_nest(target)) edit().insert_tiling(target, target);
  }

  /// Keeps a value replicated along a named axis: `atomic<%value, "axis">`, the `any` loop of
  /// section 8.
  ///
  /// Errors    S005 already sliced along the axis, S023 the axis is split otherwise
  constexpr failure atomic(value_id v, int axis) {
    failure f;
    f = check_split(axis);
    if (f) return f;
    value_id target = holder(v);
    const layout have = produced_layout(target);
    const bool own = has_own_nest(target);
    bool all = true;
    for (int a : parts(axis)) {
      const loop* old = nest_of(p.producer(target)).find(a);
      if (have.dim_of(a) >= 0)
        f.record("S005", "atomic: \"", describe(v), "\" is already sliced on dimension ",
                 have.dim_of(a), " along axis ", axis_text(common(axis, a)), ", by ",
                 introduced(*old), "; no action undoes an earlier one; ",
                 ways_out(v, no_dim, *old));
      all = all && own && nest_of(p.producer(target)).find(a) != nullptr;
    }
    if (f || all) return f;
    refine(named.at(axis));
    state_.actions.push_back({action_kind::atomic, source_of(v), -1, axis, tactic});
    if (!own) target = edit().insert_tiling(target, target);
    edit().add_loops(p.producer(target), axis, any_factor);
    return f;
  }

  /// Introduces loops wherever exactly one tile-map entry matches, to a fixed point.
  ///
  /// Ops are visited in full sweeps over the program, forward then backward, until nothing changes.
  /// Ops whose surroundings did not change are skipped, which does not affect the result.
  ///
  /// Then, if an axis is too large for an op because the op's factor is only a part of the
  /// dimension it slices (a reshape), the axis is split into the part that fits and the rest, and
  /// propagation continues. This ends because a mesh has at most `max_axes` axes.
  constexpr void propagate() {
    state_.actions.push_back({action_kind::propagate, -1, -1, -1, tactic});
    core_detail::propagation(edit(), graph_.order).run();
  }

  // ---- Conflicts between the layouts of one tactic ----------------------------------------------

  /// Propagates the current tactic again, in another order: first the `tile` of a value along a
  /// named axis, after those for which the tactic called this before, and then all others. Returns
  /// false, and changes nothing, if the tactic has split an axis. Cost: linear in the tactic's
  /// changes.
  constexpr bool first(value_id v, int axis) {
    for (std::size_t i = state_.tactic_changes; i < changes.size(); ++i)
      if (changes[i] < 0) return false;
    state_.actions.push_back({action_kind::first, v, -1, axis, tactic});
    edit().drop_loops(state_.tactic_changes);
    std::size_t begin = actions.size();
    while (begin > 0 && actions[begin - 1].tactic == tactic) --begin;
    vec<int> factors(actions.size() - begin, any_factor);  // of the `tile`s that wait
    for (std::size_t i = begin; i < actions.size(); ++i) {
      if (actions[i].kind != action_kind::tile) continue;
      const op_id o = p.producer(holder(actions[i].value));
      for (int a : parts(actions[i].axis)) {
        const loop* l = nest_of(o).find(a);
        if (l == nullptr || l->factor == any_factor || !l->asked || l->tactic != tactic) continue;
        factors[i - begin] = int{l->factor};
        edit().set_factor(o, a, any_factor);  // gives no evidence
      }
    }
    for (std::size_t i = begin; i <= actions.size(); ++i) {
      const bool all = i == actions.size();
      if (!all && actions[i].kind != action_kind::first) continue;
      for (std::size_t k = begin; k < actions.size(); ++k) {
        int& factor = factors[k - begin];
        if (factor == any_factor) continue;
        if (!all && (actions[k].value != actions[i].value || actions[k].axis != actions[i].axis))
          continue;
        const op_id o = p.producer(holder(actions[k].value));
        for (int a : parts(actions[k].axis))  // (an axis may be split by now)
          if (const loop* l = nest_of(o).find(a);
              l != nullptr && l->factor == any_factor && l->asked && l->tactic == tactic)
            edit().set_factor(o, a, factor);
        factor = any_factor;
      }
      core_detail::propagation(edit(), graph_.order).run();
    }
    return true;
  }
  /// The factors among which `settle` may choose for an op and an axis of `mesh`; none without a
  /// conflict, or if an earlier tactic contributed to it.
  constexpr vec<int> choices(op_id o, int axis) const {
    return core_detail::choices(*this, view(), o, axis);
  }
  /// The first op with a conflict, in execution order from a position on, or -1.
  constexpr op_id conflict_from(int position) const {
    const int at = state_.open.first_from(position);
    return at < 0 ? -1 : order.at(at);
  }
  /// Resolves the conflict of an op along an axis of `mesh`: gives it a loop over one of its
  /// choices, then propagates.
  constexpr void settle(op_id o, int axis, int factor) {
    conflict found;
    conflicts.for_each_of(o, [&](const conflict& k) {
      if (mesh.parts_of(k.where()).axes[0] == axis) found = k;
    });
    const int along = this->axis(mesh.part(axis));
    state_.actions.push_back(
        {action_kind::settle, source_of(p.op(o).result), factor, along, tactic});
    state_.settled.push_back({found, factor});
    edit().add_loops(o, along, factor);
    core_detail::propagation(edit(), graph_.order).run();
  }
  /// Replaces the loops of an op of a copy that is to be lowered: the log does not have it.
  constexpr void set_loops(op_id o, const vec<loop>& loops) { edit().set_loops(o, loops); }
  /// Replaces an operand in such a copy.
  constexpr void set_operand(const use& u, value_id v) {
    const value_id before = p.operand(u.op, u.operand);
    edit().set_operand(u, v);
    edit().index_uses({before}, p.op_count(), {});
    for (const op_id o : {u.op, p.producer(v), p.producer(before)}) edit().note_change(o);
  }
  /// Repeats an action of the log, whose axis has number `axis` here.
  constexpr failure apply(const action& a, int axis) {
    failure f;
    if (a.kind == action_kind::propagate) propagate();
    if (a.kind == action_kind::tile) f = tile(a.value, a.dim, axis, a.uneven);
    if (a.kind == action_kind::atomic) f = atomic(a.value, axis);
    if (a.kind == action_kind::first) first(a.value, axis);
    if (a.kind == action_kind::settle)
      for (const conflict k : conflicts) {
        if (!(k.where() == named.at(axis)) || source_of(p.op(k.op).result) != a.value) continue;
        const int part = mesh.parts_of(k.where()).axes[0];
        bool can = false;
        for (int each : choices(k.op, part)) can = can || each == a.dim;
        if (!can) continue;
        settle(k.op, part, a.dim);
        break;
      }
    return f;
  }

 private:
  constexpr core_detail::core_editor edit() { return {*this, graph_, state_}; }

  /// Records S003: the missing parts of an axis do not divide a dimension's local size.
  constexpr void does_not_divide(failure& f, value_id v, value_id target, int dim, int axis,
                                 const axis_list& missing) const {
    const std::int64_t whole = true_shape(target)[dim], size = p.type(target).shape[dim];
    const op_id maker = p.producer(target);
    const std::int64_t left = size / pieces_at(maker, produced_layout(target), dim);
    std::int64_t pieces = 1;
    text before, which, part, where;
    if (size != whole)
      before << " (" << whole << ", padded to " << size << ", before earlier tiling)";
    else if (left != size)
      before << " (" << size << " before earlier tiling)";
    for (int i = 0; i < missing.count;) {
      sub_axis s = common(axis, missing.axes[i++]);
      for (; i < missing.count && common(axis, missing.axes[i]).pre == s.end(); ++i)
        s.size *= common(axis, missing.axes[i]).size;
      if (uneven_sizes().contains(s.axis)) {
        s.size = this->size(maker, s.axis);
        where << (where.empty() ? " (" : ", ")
              << uneven_sizes().sizes_text(uneven_sizes().row[maker], s.axis);
      }
      which << (which.empty() ? "" : ", ");
      if (uneven_sizes().contains(s.axis))
        which << '"' << mesh.name(s.axis) << '"';
      else
        which << axis_text(s);
      pieces *= s.size;
      s.size = greatest_common_divisor(s.size, left);
      if (part.empty() && s.size > 1 && !check_split(s))
        part << "take \"" << axis_in_tactic(s) << "\", ";
    }
    f.record("S003", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", left, before,
             "; axis ", which, " has size ", pieces, where, where.empty() ? "" : ")",
             ", which does not divide it; ", part,
             "choose another dimension or mesh, or pad it with ",
             in_syntax(advice(), "uneven::pad", "\"pad\" at the end of the tactic"));
  }

  /// Checks that axes can be split so that a named axis is a product of axes.
  ///
  /// Errors    S023 it overlaps an existing part, or the mesh would have too many axes; O130 the
  ///           axis has different sizes on different meshes
  constexpr failure check_split(int axis) const { return check_split(named.at(axis)); }
  constexpr failure check_split(const sub_axis& s) const {
    failure f;
    std::int64_t major = 0;
    if (mesh.cut_by(s, major) < 0) return f;
    if (uneven_sizes().contains(s.axis)) {
      f.record("O130", "tactic: sub-axis ", axis_text(s), " is a part of axis \"",
               mesh.name(s.axis),
               "\", which has different sizes: ", uneven_sizes().sizes_text(0, s.axis),
               "; name the whole axis");
      return f;
    }
    partita::mesh would_be = mesh;
    for (int a = would_be.cut_by(s, major); a >= 0 && !f; a = would_be.cut_by(s, major)) {
      const text part = axis_text(would_be.part(a));
      if (major == 0)
        f.record("S023", "tactic: sub-axis ", axis_text(s), " overlaps ", part,
                 ", a part into which axis \"", mesh.name(s.axis), "\" of size ",
                 mesh.whole_size(s.axis),
                 " is split already; name it in an earlier tactic, or parts of ", part);
      else if (would_be.rank == max_axes)
        f.record("S023", "tactic: sub-axis ", axis_text(s), " would be part number ", max_axes + 1,
                 " of mesh ", mesh, "; axes can be split into ", max_axes, " parts in all");
      else
        would_be.split(a, major);
    }
    return f;
  }
  /// Names the origin of a loop: `tactic 1 ("BP")`, `propagation in tactic 1 ("BP")`.
  constexpr text introduced(const loop& l) const {
    text out = l.asked ? "" : "propagation in ";
    if (l.tactic == tactic) return out << "this tactic";
    return out << describe_tactic(l.tactic);
  }
  /// Returns advice for the case that a loop prevents an action (a `tile` along `dim`, or `atomic`
  /// with no_dim). Reordering tactics only helps if propagation introduced the loop.
  constexpr text ways_out(value_id v, int dim, const loop& in_the_way) const {
    text out;
    if (in_the_way.asked)
      out << "leave out one of the two";
    else if (in_the_way.tactic != tactic)
      out << "put this tactic before that one";
    else
      out << "put it into an earlier tactic";
    if (dim == no_dim) return out;
    const nest taken = nest_of(p.producer(holder(v)));
    const std::int64_t left = p.type(v).shape[dim] / produced_layout(holder(v)).pieces(mesh, dim);
    for (int other = 0; other < mesh.whole_rank(); ++other) {
      const sub_axis whole = mesh.whole_axis(other);
      bool free = whole.size > 1 && left % whole.size == 0;
      for (int part : mesh.parts_of(whole)) free = free && taken.find(part) == nullptr;
      if (free) return out << ", or take axis \"" << mesh.name(other) << '"';
    }
    const sub_axis taken_part = mesh.part(in_the_way.axis);
    const std::int64_t n = taken_part.size;
    for (std::int64_t part = 2; part <= 1024 && part <= n / part; ++part)
      if (n % part == 0)
        return out << ", or give each a part of it: \""
                   << axis_in_tactic({taken_part.axis, taken_part.pre, part}) << "\" and \""
                   << axis_in_tactic({taken_part.axis, taken_part.pre * part, n / part}) << '"';
    return out << ", or give the mesh another axis";
  }

  /// True for values whose producer may get loops on request, because its loops change only the
  /// layout.
  constexpr bool has_own_nest(value_id v) const {
    const op_role role = p.op(p.producer(v)).def->role;
    return role == op_role::parameter || role == op_role::tag || role == op_role::tiling;
  }

  /// Enlarges a dimension and all dimensions of its class (see padding.hpp) so that it can be cut
  /// into `pieces` shards.
  constexpr failure widen(value_id v, int dim, int axis, std::int64_t pieces) {
    failure f;
    const core_detail::dimension_class the_class(*this, v, dim, pieces);
    for (const auto& r : padding.refusals)
      if (the_class.contains(holder(r.value), r.dim)) {
        const std::int64_t size = true_shape(v)[dim];
        f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size, "; ",
                 describe_tactic(tactic), " pads it for axis ", axis_text(named.at(axis)),
                 " of size ", named.size(axis), ", ", describe_tactic(r.tactic),
                 " refuses to pad dimension ", r.dim, " of \"", describe(r.value),
                 "\", which grows with it; choose one policy for both");
        return f;
      }
    core_detail::padder padder(*this, edit(), the_class, pieces);
    tensor_type too_large;
    if (!padder.plan(too_large)) {
      f.record("S118", "tile: dimension ", dim, " of \"", describe(v), "\" has size ",
               true_shape(v)[dim], "; padded for axis ", axis_text(named.at(axis)), " of size ",
               named.size(axis), ", ", too_many_elements(too_large));
      return f;
    }
    padder.enlarge();
    state_.padding.enlargements.push_back({source_of(v), dim, axis, tactic});
    return f;
  }
  struct dimension {
    value_id value;
    int dim;
  };
  /// Enlarges the window positions that slide over a dimension, or the dimension under windows
  /// whose positions it counts, if `pieces` does not divide them, and continues from there. A
  /// dimension that another tactic refuses to pad keeps its size and stays unsharded.
  constexpr void widen_windows(dimension of, int axis, std::int64_t pieces, vec<dimension>& seen) {
    for (const dimension& each : seen)
      if (each.value == of.value && each.dim == of.dim) return;
    seen.push_back(of);
    const core_detail::dimension_class the_class(*this, of.value, of.dim, pieces);
    for (const auto& each : the_class.loose()) {
      const op_node n = p.op(each.op);
      const factor of = map.at(each.op, each.factor);
      for (int i = -1; i < n.operand_count; ++i) {
        const int d = map.dim_of(of, i);
        const value_id end = i < 0 ? n.result : p.operand(each.op, i);
        if (d == no_dim || (end == each.value && d == each.dim)) continue;
        if (true_shape(end)[d] < pieces || true_shape(end)[d] == 0) continue;
        if (p.type(end).shape[d] % pieces == 0 || !widen(end, d, axis, pieces))
          widen_windows({end, d}, axis, pieces, seen);
      }
    }
  }
  /// Records that the current tactic refuses to pad this dimension.
  constexpr failure refuse(value_id v, value_id target, int dim) {
    failure f;
    const std::int64_t size = true_shape(target)[dim], padded = p.type(target).shape[dim];
    if (size != padded) {
      const core_detail::dimension_class the_class(*this, target, dim, 1);
      for (const auto& each : padding.enlargements)
        if (the_class.contains(holder(each.value), each.dim)) {
          f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size,
                   "; ", describe_tactic(tactic), " refuses to pad it, ",
                   describe_tactic(each.tactic), " pads it to ", padded, " with dimension ",
                   each.dim, " of \"", describe(each.value), "\" for axis ",
                   axis_text(named.at(each.axis)), " of size ", named.size(each.axis),
                   "; choose one policy for both");
          return f;
        }
    }
    state_.padding.refusals.push_back({source_of(v), dim, tactic});
    return f;
  }
};

}  // namespace partita
