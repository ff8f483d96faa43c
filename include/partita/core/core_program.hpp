/// PartIR:Core: the three actions on a program whose ops carry loops over mesh axes.
///
/// Source    PartIR, section 5 and appendix B
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/loop_program.hpp>
#include <partita/core/match.hpp>
#include <partita/op/identity.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace detail {
class padder;
}

/// A program under partitioning. Only `tile`, `atomic` and `propagate` change anything; no action
/// removes a loop.
///
/// Where a `tile` pads a dimension, the program becomes one of larger types (see padding.hpp), in
/// which everything is even; `true_shape` tells what the source says.
class core_program : public loop_program {
 public:
  constexpr core_program() = default;
  constexpr core_program(const program& source, const partita::mesh& m) : loop_program(source, m) {
    dirty_.resize(p.ops.size(), 0);
    suspect_.resize(p.ops.size(), 0);
  }

  /// Tiles a value along a dimension over a named axis: `tile<%value, dim, "axis">`.
  ///
  /// A parameter or tag gets one more loop. Any other value is passed through a `tiling` op that
  /// keeps the loops it already has (deep tiling, appendix B.1.2). Tiling again what is tiled so
  /// already changes nothing. Of an axis that is split its parts tile, major to minor; those that
  /// tile the dimension already stay.
  ///
  /// If the axis does not divide what is left of the dimension, `policy` says what happens.
  /// Errors    S002 dimension out of range, S003 size does not divide, S004 axis used twice, S023
  ///           the axis is split otherwise, S024 one tactic pads what another one refuses to pad,
  ///           S118 padded, a tensor has too many elements
  constexpr failure tile(value_id v, int dim, int axis, uneven policy = uneven::unsaid) {
    failure f;
    const text name = describe(v);
    value_id target = holder(v);
    const shape whole = true_shape(target);
    if (dim < 0 || dim >= whole.rank) {
      f.record("S002", "tile: dimension ", dim, " of \"", name, "\" is out of range; its shape is ",
               whole);
      return f;
    }
    f = check_split(axis);
    if (f) return f;
    const layout have = made(target);
    const bool own = has_own_nest(target);
    axis_list missing;
    for (int a : parts(axis)) {
      const loop* old = nest_of(p.producer(target)).find(a);
      const int on = have.dim_of(a);
      if (old == nullptr || (!own && on < 0)) {
        missing.push_back(a);
      } else if (on >= 0 && on != dim) {
        f.record("S004", "tile: \"", name, "\" is already sliced on dimension ", on, " along axis ",
                 axis_text(common(axis, a)), ", by ", introduced(v, *old),
                 "; it cannot be sliced on dimension ", dim, " too; ", ways_out(v, dim, *old));
      } else if (on < 0) {
        f.record("S004", "tile: \"", name, "\" is kept whole along axis ",
                 axis_text(common(axis, a)), ", by ", introduced(v, *old),
                 "; no action undoes an earlier one; ", ways_out(v, dim, *old));
      }
    }
    if (f) return f;
    if (missing.count == 0) return policy == uneven::refuse ? refuse(v, target, dim) : f;
    std::int64_t pieces = 1;
    for (int a : missing) pieces *= common(axis, a).size;
    const std::int64_t size = p.type(target).shape[dim], left = size / have.pieces(mesh, dim);
    const bool divides = left % pieces == 0;
    if (policy == uneven::refuse && (divides || size != whole[dim])) f = refuse(v, target, dim);
    if (f) return f;
    const value_id even = target;
    if (!divides) {
      if (policy != uneven::pad) {
        does_not_divide(f, name, target, dim, axis, missing);
        return f;
      }
      f.record(widen(target, dim, axis, have.pieces(mesh, dim) * pieces));
      if (f) return f;
      target = holder(v);
    }
    refine(axis);
    actions.push_back({action_kind::tile, source_of(v), dim, axis, tactic, policy});
    if (!has_own_nest(target)) target = insert_tiling(target, even);
    add_loops(p.producer(target), axis, dim);
    return f;
  }

  /// Keeps a value whole along a named axis: `atomic<%value, "axis">`, the `any` loop of section 8.
  ///
  /// Errors    S005 already sliced along the axis, S023 the axis is split otherwise
  constexpr failure atomic(value_id v, int axis) {
    failure f;
    f = check_split(axis);
    if (f) return f;
    value_id target = holder(v);
    const layout have = made(target);
    const bool own = has_own_nest(target);
    bool all = true;
    for (int a : parts(axis)) {
      const loop* old = nest_of(p.producer(target)).find(a);
      if (have.dim_of(a) >= 0)
        f.record("S005", "atomic: \"", describe(v), "\" is already sliced on dimension ",
                 have.dim_of(a), " along axis ", axis_text(common(axis, a)), ", by ",
                 introduced(v, *old), "; no action undoes an earlier one; ",
                 ways_out(v, no_dim, *old));
      all = all && own && nest_of(p.producer(target)).find(a) != nullptr;
    }
    if (f || all) return f;
    refine(axis);
    actions.push_back({action_kind::atomic, source_of(v), -1, axis, tactic});
    if (!own) target = insert_tiling(target, target);
    add_loops(p.producer(target), axis, any_factor);
    return f;
  }

  /// Introduces loops wherever exactly one tile-map entry matches, to a fixed point.
  ///
  /// The order is that of whole sweeps over the program, forward then backward, until nothing
  /// changes; ops whose surroundings did not change are skipped, which gives the same program.
  ///
  /// Then, for the first op that an axis is too large for, since it slices a dimension of which the
  /// op's factor is only a part (a reshape), the axis is split into the part that fits and the
  /// rest, and propagation goes on. It ends since a mesh has at most `max_axes` axes.
  constexpr void propagate() {
    actions.push_back({action_kind::propagate, -1, -1, -1, tactic});
    do {
      settle();
      find_conflicts();
    } while (split_where_a_part_fits());
  }

 private:
  friend class detail::padder;

  vec<char> dirty_, suspect_;
  int pending_ = 0;

  /// Errors    S003: the missing parts of an axis do not divide what is left of a dimension
  constexpr void does_not_divide(failure& f, const text& name, value_id target, int dim, int axis,
                                 const axis_list& missing) const {
    const std::int64_t whole = true_shape(target)[dim], size = p.type(target).shape[dim];
    const std::int64_t left = size / made(target).pieces(mesh, dim);
    std::int64_t pieces = 1;
    text before, which, part;
    if (size != whole)
      before << " (" << whole << ", padded to " << size << ", before earlier tiling)";
    else if (left != size)
      before << " (" << size << " before earlier tiling)";
    for (int i = 0; i < missing.count;) {
      sub_axis s = common(axis, missing.axes[i++]);
      for (; i < missing.count && common(axis, missing.axes[i]).pre == s.end(); ++i)
        s.size *= common(axis, missing.axes[i]).size;
      which << (which.empty() ? "" : ", ") << axis_text(s);
      pieces *= s.size;
      s.size = greatest_common_divisor(s.size, left);
      if (part.empty() && s.size > 1 && !check_split(s)) part << "take " << axis_text(s) << ", ";
    }
    f.record("S003", "tile: dimension ", dim, " of \"", name, "\" has size ", left, before,
             "; axis ", which, " has size ", pieces, ", which does not divide it; ", part,
             "choose another dimension or mesh, or pad it with uneven::pad");
  }

  /// Can axes be split so that a named axis consists of axes?
  ///
  /// Errors    S023 it does not fit to the parts that are there, or there would be too many
  constexpr failure check_split(int axis) const { return check_split(named.at(axis)); }
  constexpr failure check_split(const sub_axis& s) const {
    failure f;
    std::int64_t major = 0;
    if (mesh.cut_by(s, major) < 0) return f;
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
  /// Splits axes so that a named axis consists of axes.
  constexpr void refine(int axis) {
    const sub_axis s = named.at(axis);
    std::int64_t major = 0;
    for (int a = mesh.cut_by(s, major); a >= 0; a = mesh.cut_by(s, major)) split(a, major);
  }

  /// Splits an axis of `mesh` into a major part of this size and the rest, and all loops over it.
  constexpr void split(int axis, std::int64_t major) {
    const int minor = mesh.split(axis, major);
    for (nest& n : nests) {
      for (int i = n.count; i-- > 0;)
        if (n.loops[i].axis >= minor) ++n.loops[i].axis;
      for (int i = n.count; i-- > 0;) {
        if (n.loops[i].axis != axis) continue;
        for (int j = n.count++; j > i; --j) n.loops[j] = n.loops[j - 1];
        n.loops[i + 1].axis = static_cast<std::int8_t>(minor);
      }
    }
  }

  constexpr void settle() {
    const op_id *first = order.begin(), *last = order.end();
    const char* dirty = dirty_.data();
    while (pending_ > 0) {
      for (const op_id* o = first; o != last && pending_ > 0; ++o)
        if (dirty[*o]) visit(*o);
      for (const op_id* o = last; o != first && pending_ > 0;)
        if (dirty[*--o]) visit(*o);
    }
  }
  constexpr void find_conflicts() {
    conflicts.clear();
    char* suspect = suspect_.data();
    for (op_id o : order) {
      if (!suspect[o]) continue;
      suspect[o] = 0;
      for (int i = 0; i < mesh.rank; ++i) {
        const int axis = mesh.order[i];
        const detail::match m = detail::find_match(*this, o, axis);
        if (!m.several && !m.indivisible) continue;
        suspect[o] = 1;
        const sub_axis s = mesh.part(axis);
        conflicts.push_back({o, s.axis,
                             m.several ? conflict_kind::several : conflict_kind::indivisible,
                             m.first, m.second, tactic, s.pre, s.size});
      }
    }
  }
  /// Gives whether an axis was split; then ops wait to be visited.
  constexpr bool split_where_a_part_fits() {
    if (!may_split || mesh.rank == max_axes) return false;
    for (const conflict& k : conflicts) {
      if (k.kind != conflict_kind::indivisible || !detail::is_composed(*this, k.op, k.first))
        continue;
      const std::int64_t fits = greatest_common_divisor(map.at(k.op, k.first.factor).local, k.size);
      if (fits == 1 || fits == k.size) continue;
      split(mesh.parts_of(k.where()).axes[0], fits);
      for (const conflict& each : conflicts)
        if (each.axis == k.axis) mark(each.op);
      return true;
    }
    return false;
  }

  /// Did an action ask for this loop around a value, or did propagation find it?
  constexpr bool asked_for(value_id v, const loop& l) const {
    for (const auto& a : actions)
      if (a.kind != action_kind::propagate && a.value == source_of(v))
        for (int part : parts(a.axis))
          if (part == l.axis) return true;
    return false;
  }
  /// Who put a loop there: `tactic 1 ("BP")`, `propagation in tactic 1 ("BP")`.
  constexpr text introduced(value_id v, const loop& l) const {
    text out = asked_for(v, l) ? "" : "propagation in ";
    if (l.tactic == tactic) return out << "this tactic";
    return out << describe_tactic(l.tactic);
  }
  /// What to do where a loop is in the way of an action (of `tile` along `dim`): another order
  /// helps against propagation only.
  constexpr text ways_out(value_id v, int dim, const loop& in_the_way) const {
    text out;
    if (asked_for(v, in_the_way))
      out << "leave out one of the two";
    else if (in_the_way.tactic != tactic)
      out << "put this tactic before that one";
    else
      out << "put it into an earlier tactic";
    if (dim == no_dim) return out;
    const nest& taken = nest_of(p.producer(holder(v)));
    const std::int64_t left = p.type(v).shape[dim] / made(holder(v)).pieces(mesh, dim);
    for (int other = 0; other < mesh.whole_rank(); ++other) {
      const sub_axis whole = mesh.whole_axis(other);
      bool free = whole.size > 1 && left % whole.size == 0;
      for (int part : mesh.parts_of(whole)) free = free && taken.find(part) == nullptr;
      if (free) return out << ", or take axis \"" << mesh.name(other) << '"';
    }
    const sub_axis taken_part = mesh.part(in_the_way.axis);
    const std::int64_t n = taken_part.size;
    for (std::int64_t part = 2; part < n && part <= 1024; ++part)
      if (n % part == 0)
        return out << ", or give each a part of it: "
                   << axis_text({taken_part.axis, taken_part.pre, part}) << " and "
                   << axis_text({taken_part.axis, taken_part.pre * part, n / part});
    return out << ", or give the mesh another axis";
  }

  /// Ops that may get a loop on request, because the loop changes nothing but the layout.
  constexpr bool has_own_nest(value_id v) const {
    const op_role role = p.op(p.producer(v)).def->role;
    return role == op_role::parameter || role == op_role::tag || role == op_role::tiling;
  }

  /// Makes a dimension and all that belong to it larger; see padding.hpp. `pieces`: how many the
  /// dimension is to have.
  constexpr failure widen(value_id v, int dim, int axis, std::int64_t pieces);
  /// The present tactic refuses to pad this dimension.
  constexpr failure refuse(value_id v, value_id target, int dim);

  /// `%v` becomes `%vt = loop ... { yield slice ... %v }` for all uses; it is sliced as `like`.
  constexpr value_id insert_tiling(value_id v, value_id like) {
    const layout have = made(like);
    const nest had = nest_of(p.producer(like));
    const op_id o = p.op_count();
    const auto others = p.operand_list.size();
    const value_id operands[] = {v};
    const value_id t = p.append(def<op::tiling>, operands, {}, tensor_type(p.type(v)));
    for (std::size_t i = 0; i < others; ++i)
      if (p.operand_list[i] == v) p.operand_list[i] = t;
    for (auto& out : p.outputs)
      if (out.value == v) out.value = t;
    returned.push_back(returned[v]);
    returned[v] = 0;
    if (!padding.whole.empty()) {
      padding.whole.push_back(shape(padding.whole[v]));
      padding.widened.push_back(-1);
    }
    nested.scope.push_back(nested.value_scope[v]);
    nested.value_scope.push_back(nested.value_scope[v]);
    nests.push_back(nest{});
    dirty_.push_back(0);
    suspect_.push_back(0);
    add_tile_map(o);
    order.insert_at(position_after(p.producer(v)), o);
    index_uses();
    for (const auto& e : have) {
      const loop* from = had.find(e.axis);
      nests[o].push_back(e.axis, e.dim, from != nullptr ? from->tactic : tactic);
      map.at(o, e.dim).local /= mesh.size(e.axis);
    }
    return t;
  }

  /// Where in the order an op goes that uses a result of `o`; after a wire, behind its marker.
  constexpr std::size_t position_after(op_id o) const {
    std::size_t i = order.size();
    while (i > 0 && order[i - 1] != o) --i;
    if (p.is(o, op_role::wire))
      while (!p.is(order[i - 1], op_role::control)) ++i;
    return i;
  }

  constexpr void mark(op_id o) {
    if (!dirty_[o]) {
      dirty_[o] = 1;
      ++pending_;
    }
  }

  /// Loops over the parts of a named axis that have none yet.
  constexpr void add_loops(op_id o, int axis, int f) {
    for (int a : parts(axis))
      if (nests[o].find(a) == nullptr) add_loop(o, a, f);
  }
  constexpr void add_loop(op_id o, int axis, int f) {
    nests[o].push_back(axis, f, tactic);
    if (f != any_factor) map.at(o, f).local /= mesh.size(axis);
    mark(o);
    const op_node& n = p.ops[o];
    for (value_id v : p.operands(o)) mark(p.producers[v]);
    for (int r = 0; r < n.result_count; ++r)
      for (const auto& u : uses(n.result + r)) mark(u.op);
  }

  constexpr void visit(op_id o) {
    dirty_[o] = 0;
    --pending_;
    for (int i = 0; i < mesh.rank; ++i) {
      const int axis = mesh.order[i];
      const detail::match m = detail::find_match(*this, o, axis);
      if (m.one())
        add_loop(o, axis, m.first.factor);
      else if (m.several || m.indivisible)
        suspect_[o] = 1;
    }
  }
};

}  // namespace partita

// Members of core_program that need it whole are defined there.
#include <partita/core/padding.hpp>
