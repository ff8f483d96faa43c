/// PartIR:Core: a program whose ops carry loops over mesh axes, and the three actions on it.
///
/// Source    PartIR, section 5 and appendix B
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/flatten.hpp>
#include <partita/core/halo.hpp>
#include <partita/core/loops.hpp>
#include <partita/core/named_axes.hpp>
#include <partita/ir/layout.hpp>
#include <partita/op/identity.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace detail {
class padder;
}

/// A program under partitioning.
///
/// Every op has a loop nest; ops of nested programs, too, and the wires that tie them to the
/// program around them (see flatten.hpp). Inputs and tags are ops as well, so a tiled argument is a
/// `parameter` with loops, and so is the inference "all uses slice it": the rule that works for
/// every op. Only `tile`, `atomic` and `propagate` change anything; no action removes a loop.
///
/// Where a `tile` pads a dimension, the program becomes one of larger types (see padding.hpp), in
/// which everything is even; `true_shape` tells what the source says.
class core_program {
 public:
  program p;            ///< the flat source program, plus `tiling` ops appended by actions
  flat_program nested;  ///< which nested program an op belongs to (its `p` is empty)
  partita::mesh mesh;   ///< the user's, with axes split as loops and actions need it
  named_axes named;     ///< the axes that actions speak of, by number
  factor_table map;
  vec<nest> nests;          ///< by op
  vec<op_id> order;         ///< order of execution
  vec<char> returned;       ///< by value: is it a result of the program?
  vec<action> actions;      ///< the log
  vec<conflict> conflicts;  ///< what the last propagation left open
  padding_record padding;   ///< which dimensions are larger than those of the source
  int tactic = 0;           ///< recorded in loops and actions
  bool halos = true;        ///< may a loop see elements of neighbouring pieces?
  bool may_split = true;    ///< may propagation split axes?
  vec<text> tactic_names;   ///< for messages, as far as they are known

  constexpr core_program() = default;
  constexpr core_program(const program& source, const partita::mesh& m)
      : nested(source), mesh(m.whole()), named(mesh) {
    p = static_cast<program&&>(nested.p);
    const auto n = p.ops.size();
    map.ops.reserve(n);
    map.factors.reserve(3 * n);
    map.operand_dims.reserve(6 * n);
    order.reserve(n);
    nests.resize(n, nest{});
    dirty_.resize(n, 0);
    suspect_.resize(n, 0);
    returned.resize(p.types.size(), 0);
    for (op_id o = 0; o < static_cast<op_id>(n); ++o) {
      order.push_back(o);
      add_tile_map(o);
    }
    for (const auto& out : p.outputs) returned[out.value] = 1;
    index_uses();
  }

  constexpr const nest& nest_of(op_id o) const { return nests[o]; }
  /// The shape of a value in the source program; its type may be larger, where it is padded.
  constexpr const shape& true_shape(value_id v) const {
    return padding.whole.empty() ? p.type(v).shape : padding.whole[v];
  }
  constexpr tensor_type true_type(value_id v) const { return {p.type(v).element, true_shape(v)}; }
  /// All uses of a value as an operand (being a result of the program is not among them).
  constexpr span<const use> uses(value_id v) const {
    const auto begin = use_begin_[v], end = use_begin_[at(v) + 1];
    return {uses_.data() + begin, static_cast<std::size_t>(end - begin)};
  }

  /// How the loops of an op, without those over some axes, slice an operand or (end -1 - r) lay
  /// out result r; sums are not part of it.
  constexpr layout layout_by_loops(op_id o, int end, unsigned without = 0) const {
    layout l;
    const nest& n = nests[o];
    if (n.count == 0) return l;
    const factor* factors = map.factors_of(o);
    for (int i = 0; i < n.count; ++i) {
      const loop& each = n.loops[i];
      if (each.factor == any_factor || (without >> each.axis & 1) != 0) continue;
      const int dim = map.dim_of(factors[each.factor], end);
      if (dim != no_dim) l.push_back(each.axis, dim);
    }
    return l;
  }
  /// How the loops of its producer lay a value out.
  constexpr layout made(value_id v) const {
    const op_id o = p.producers[v];
    return layout_by_loops(o, p.ops[o].result - v - 1);
  }
  /// How the loops of an op slice one of its operands.
  constexpr layout required(op_id o, int operand) const { return layout_by_loops(o, operand); }

  /// Factor `f` of an op, which has a halo, cut into pieces; `attrs`, the op's, become those of one
  /// piece.
  constexpr halo_cut cut(op_id o, int f, std::int64_t pieces, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return cut_halo(*p.ops[o].def, map, map.at(o, f), pieces, types, p.type(p.ops[o].result),
                    attrs);
  }
  /// The same factor, stretched; see stretch_halo.
  constexpr halo_cut stretch(op_id o, int f, vec<std::int64_t>& attrs) const {
    const vec<tensor_type> types = operand_types(o);
    return stretch_halo(*p.ops[o].def, map, map.at(o, f), types, p.type(p.ops[o].result), attrs);
  }
  constexpr vec<tensor_type> operand_types(op_id o) const {
    vec<tensor_type> types;
    for (value_id v : p.operands(o)) types.push_back(p.types[v]);
    return types;
  }

  /// Does some loop of an op see more than its own pieces?
  constexpr bool has_halo(op_id o) const {
    const factor* factors = map.factors_of(o);
    for (const auto& l : nests[o])
      if (l.factor != any_factor && factors[l.factor].halo && mesh.size(l.axis) > 1) return true;
    return false;
  }
  /// The loops of an op that do, by factor; `attrs`, the op's, become those of one iteration.
  constexpr vec<halo_loops> halos_of(op_id o, vec<std::int64_t>& attrs) const {
    vec<halo_loops> list;
    for (int f = 0; f < map.ops[o].count; ++f) {
      if (!map.at(o, f).halo) continue;
      halo_loops h;
      h.factor = f;
      std::int64_t pieces = 1;
      for (const auto& l : nests[o])
        if (l.factor == f && mesh.size(l.axis) > 1) {
          h.axes[h.axis_count++] = l.axis;
          pieces *= mesh.size(l.axis);
        }
      if (pieces == 1) continue;
      h.cut = cut(o, f, pieces, attrs);
      list.push_back(h);
    }
    return list;
  }

  /// The axes of `mesh` that a named axis has something in common with, major to minor.
  constexpr axis_list parts(int axis) const { return mesh.parts_of(named.at(axis)); }
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

  /// Tiles a value along a dimension over a named axis: `tile<%value, dim, "axis">`.
  ///
  /// A parameter or tag gets one more loop. Any other value is passed through a `tiling` op that
  /// keeps the loops it already has (deep tiling, appendix B.1.2). Tiling again what is tiled so
  /// already changes nothing. Of an axis that is split its parts tile, major to minor; those that
  /// tile the dimension already stay.
  ///
  /// If the axis does not divide what is left of the dimension, `policy` says what happens.
  /// Errors    S002 dimension out of range, S003 size does not divide, S004 axis used twice, S023
  ///           the axis is split otherwise, S024 one tactic pads what another one refuses to pad
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
        text before, which;
        if (size != whole[dim])
          before << " (" << whole[dim] << ", padded to " << size << ", before earlier tiling)";
        else if (left != size)
          before << " (" << size << " before earlier tiling)";
        for (int i = 0; i < missing.count;) {
          sub_axis s = common(axis, missing.axes[i++]);
          for (; i < missing.count && common(axis, missing.axes[i]).pre == s.end(); ++i)
            s.size *= common(axis, missing.axes[i]).size;
          which << (which.empty() ? "" : ", ") << axis_text(s);
        }
        f.record("S003", "tile: dimension ", dim, " of \"", name, "\" has size ", left, before,
                 "; axis ", which, " has size ", pieces,
                 ", which does not divide it; choose another dimension or mesh, or pad it with ",
                 "uneven::pad");
        return f;
      }
      f.record(widen(target, dim, axis, have.pieces(mesh, dim) * pieces));
      if (f) return f;
      target = holder(v);
    }
    refine(axis);
    actions.push_back({action_kind::tile, source_of(v), dim, axis, tactic, policy});
    if (!has_own_nest(target)) target = insert_tiling(target, made(even));
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
    if (!own) target = insert_tiling(target, made(target));
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

  /// The value that carries the tiling of `v`: `v` itself, or the `tiling` op's result behind it;
  /// where it is padded, the padded value.
  constexpr value_id holder(value_id v) const {
    while (!padding.widened.empty() && padding.widened[v] >= 0) v = padding.widened[v];
    for (const auto& u : uses(v))
      if (p.is(u.op, op_role::tiling)) return p.ops[u.op].result;
    return v;
  }
  /// Why an op is there, if it was inserted to pad something.
  constexpr padding_record::kind inserted(op_id o) const {
    const auto& list = padding.inserted;
    return static_cast<std::size_t>(o) < list.size() ? list[o].what : padding_record::kind::none;
  }
  /// The value of the source program behind a chain of `tiling` ops and of those that pad.
  constexpr value_id source_of(value_id v) const {
    using kind = padding_record::kind;
    for (;;) {
      const op_id o = p.producer(v);
      const kind what = inserted(o);
      if (what == kind::mask)
        v = p.operand(o, 1);
      else if (p.is(o, op_role::tiling) || what == kind::widen || what == kind::trim)
        v = p.operand(o, 0);
      else
        return v;
    }
  }
  /// A name for messages: of the parameter, tag or output, else "%N".
  constexpr text describe(value_id v) const {
    v = source_of(v);
    if (!p.name(v).empty()) return p.name(v);
    for (const auto& out : p.outputs)
      if (source_of(out.value) == v) return p.view(out.name);
    return concat('%', v);
  }
  /// A tactic for messages, counted from 1: `tactic 2 ("MP")`.
  constexpr text describe_tactic(int t) const {
    text out = concat("tactic ", t + 1);
    if (t < static_cast<int>(tactic_names.size())) out << " (\"" << tactic_names[t] << "\")";
    return out;
  }

 private:
  friend class detail::padder;

  struct match {
    evidence first, second;
    bool several = false, indivisible = false;
    constexpr bool one() const { return first.factor != any_factor && !several && !indivisible; }
  };

  vec<int> use_begin_;
  vec<use> uses_;
  vec<char> dirty_, suspect_;
  int pending_ = 0;
  vec<tensor_type> scratch_;

  static constexpr std::size_t at(int i) { return static_cast<std::size_t>(i); }

  constexpr text axis_text(const sub_axis& s) const {
    text out;
    print_sub_axis(out, s, mesh);
    return out;
  }
  /// What a named axis and an axis of `mesh` that it has something in common with share.
  constexpr sub_axis common(int axis, int part) const {
    const sub_axis a = named.at(axis), b = mesh.part(part);
    const std::int64_t begin = a.pre > b.pre ? a.pre : b.pre;
    const std::int64_t end = a.end() < b.end() ? a.end() : b.end();
    return {a.axis, begin, end / begin};
  }

  /// Can axes be split so that a named axis consists of axes?
  ///
  /// Errors    S023 it does not fit to the parts that are there, or there would be too many
  constexpr failure check_split(int axis) const {
    failure f;
    const sub_axis s = named.at(axis);
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
        const match m = find_match(o, axis);
        if (!m.several && !m.indivisible) continue;
        suspect[o] = 1;
        const sub_axis s = mesh.part(axis);
        conflicts.push_back({o, s.axis,
                             m.several ? conflict_kind::several : conflict_kind::indivisible,
                             m.first, m.second, tactic, s.pre, s.size});
      }
    }
  }
  /// Does a factor take only a part of the dimension that the evidence slices?
  constexpr bool is_composed(op_id o, const evidence& e) const {
    if (map.ops[o].composed) return true;
    const factor& f = map.at(o, e.factor);
    if (e.operand >= 0)
      return p.type(p.operand(o, e.operand)).shape[map.operand_dim(f, e.operand)] != f.size;
    const value_id v = p.op(o).result;
    for (int r = 0; r < p.op(o).result_count; ++r)
      if (const int d = map.result_dim(f, r); d != no_dim && p.type(v + r).shape[d] != f.size)
        return true;
    return false;
  }
  /// Gives whether an axis was split; then ops wait to be visited.
  constexpr bool split_where_a_part_fits() {
    if (!may_split || mesh.rank == max_axes) return false;
    for (const conflict& k : conflicts) {
      if (k.kind != conflict_kind::indivisible || !is_composed(k.op, k.first)) continue;
      const std::int64_t fits = greatest_common_divisor(map.at(k.op, k.first.factor).local, k.size);
      if (fits == 1 || fits == k.size) continue;
      split(mesh.parts_of(k.where()).axes[0], fits);
      for (const conflict& each : conflicts)
        if (each.axis == k.axis) mark(each.op);
      return true;
    }
    return false;
  }

  constexpr void add_tile_map(op_id o) {
    const op_node& n = p.ops[o];
    scratch_.clear();
    for (value_id v : p.operands(o)) scratch_.push_back(p.types[v]);
    const auto attrs = p.attrs(o);
    const tensor_type none;
    tile_map_context c(scratch_, n.result_count > 0 ? p.type(n.result) : none, attrs.data(),
                       static_cast<int>(attrs.size()), map, n.result_count);
    n.def->tile_map(c);
  }

  constexpr void index_uses() {
    use_begin_.assign(p.types.size() + 1, 0);
    for (value_id v : p.operand_list) ++use_begin_[at(v) + 1];
    for (std::size_t v = 0; v < p.types.size(); ++v) use_begin_[v + 1] += use_begin_[v];
    uses_.assign(p.operand_list.size(), use{});
    vec<int> next(use_begin_.begin(), use_begin_.end());
    for (op_id o : order) {
      int i = 0;
      for (value_id v : p.operands(o)) uses_[next[v]++] = {o, i++};
    }
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
    for (std::int64_t part = 2; part < n; ++part)
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

  /// `%v` becomes `%vt = loop ... { yield slice ... %v }` for all uses; it has the loops of `have`.
  constexpr value_id insert_tiling(value_id v, const layout& have) {
    const nest had = nest_of(p.producer(v));
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
      const match m = find_match(o, axis);
      if (m.one())
        add_loop(o, axis, m.first.factor);
      else if (m.several || m.indivisible)
        suspect_[o] = 1;
    }
  }

  constexpr void support(match& m, op_id o, int axis, evidence e) const {
    if (m.first.factor == e.factor || m.several) return;
    if (map.at(o, e.factor).local % mesh.size(axis) != 0) m.indivisible = true;
    if (m.first.factor == any_factor) {
      m.first = e;
    } else {
      m.second = e;
      m.several = true;
    }
  }

  /// The most major factor that is left of a dimension of an operand (-1 - r: of result r).
  constexpr int front_factor(op_id o, int operand, int dim) const {
    const auto& row = map.ops[o];
    const factor* factors = map.factors.data() + row.begin;
    int last = any_factor;
    for (int f = 0; f < row.count; ++f) {
      const factor& each = factors[f];
      if (map.dim_of(each, operand) != dim) continue;
      last = f;
      if (each.local > 1) break;
    }
    return last != any_factor && map.is_front(o, last) ? last : any_factor;
  }

  /// Is `wants` what `has` gives along `dim`, up to but not including `axis`?
  constexpr bool next_along(const nest& has, op_id has_op, int has_operand, const nest& wants,
                            op_id wants_op, int wants_operand, int dim, int axis) const {
    int j = 0;
    const factor *has_factors = map.factors_of(has_op), *wants_factors = map.factors_of(wants_op);
    const auto other = [&](const loop& l, const factor* factors, int end) {
      return l.factor == any_factor || map.dim_of(factors[l.factor], end) != dim;
    };
    for (const auto& l : has) {
      if (other(l, has_factors, has_operand)) continue;
      while (j < wants.count && other(wants.loops[j], wants_factors, wants_operand)) ++j;
      if (l.axis == axis) return j == wants.count;
      if (j == wants.count || wants.loops[j].axis != l.axis) return false;
      ++j;
    }
    return false;
  }

  /// Which tile-map entries of an op does the evidence support for a loop over an axis?
  constexpr match find_match(op_id o, int axis) const {
    match m;
    const nest& mine = nests[o];
    if (mine.find(axis) != nullptr) return m;
    const op_node& n = p.ops[o];
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id x = p.operand_list[n.operand_begin + i];
      const op_id q = p.producers[x];
      const nest& theirs = nests[q];
      const loop* l = theirs.find(axis);
      if (l == nullptr || l->factor == any_factor) continue;
      const int result = p.ops[q].result - x - 1;
      const int dim = map.dim_of(map.at(q, l->factor), result);
      if (dim == no_dim || !next_along(theirs, q, result, mine, o, i, dim, axis)) continue;
      const int f = front_factor(o, i, dim);
      if (f != any_factor && (!map.at(o, f).halo || fits(o, f, axis)))
        support(m, o, axis, {static_cast<std::int8_t>(f), static_cast<std::int8_t>(i)});
    }
    for (int r = 0; r < n.result_count; ++r) {
      const int dim = sliced_by_all_uses(n.result + r, mine, axis);
      if (dim == no_dim) continue;
      const int f = front_factor(o, -1 - r, dim);
      if (f != any_factor && (!map.at(o, f).halo || fits(o, f, axis)))
        support(m, o, axis, {static_cast<std::int8_t>(f), -1});
    }
    if (m.several) m.indivisible = false;
    return m;
  }

  /// May a factor with a halo be cut once more? Not if the axis does not divide both sides, or if
  /// the halos were more than a gather.
  constexpr bool fits(op_id o, int f, int axis) const {
    const factor& each = map.at(o, f);
    const std::int64_t size = mesh.size(axis);
    if (!halos || each.local == 0 || each.local % size != 0) return false;
    if (size == 1) return true;
    const auto given = p.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    const halo_cut c = cut(o, f, each.size / each.local * size, attrs);
    bool good = c.possible;
    for (int k = 0; k < max_halo_operands; ++k) good = good && (!c.slices(k) || c.worthwhile(k));
    return good;
  }

  /// The dimension on which all ops that use a value slice it along an axis. Being a result of the
  /// program is no use in this sense: results may lie on the mesh as they are made. That is how an
  /// optimizer's next state follows its parameters (section 5.2.2); `replicated` keeps one whole.
  constexpr int sliced_by_all_uses(value_id v, const nest& mine, int axis) const {
    int dim = no_dim;
    for (const auto& u : uses(v)) {
      const nest& theirs = nests[u.op];
      const loop* l = theirs.find(axis);
      if (l == nullptr || l->factor == any_factor) return no_dim;
      const int d = map.operand_dim(map.at(u.op, l->factor), u.operand);
      if (d == no_dim || (dim != no_dim && d != dim)) return no_dim;
      dim = d;
      if (!next_along(theirs, u.op, u.operand, mine, p.producer(v), -1 - p.result_index(v), dim,
                      axis))
        return no_dim;
    }
    return dim;
  }
};

}  // namespace partita

#include <partita/core/padding.hpp>
