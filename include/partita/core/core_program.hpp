/// PartIR:Core: a program whose ops carry loops over mesh axes, and the three actions on it.
///
/// Source    PartIR, section 5 and appendix B
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/flatten.hpp>
#include <partita/core/loops.hpp>
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
  partita::mesh mesh;
  factor_table map;
  vec<nest> nests;          ///< by op
  vec<op_id> order;         ///< order of execution
  vec<char> returned;       ///< by value: is it a result of the program?
  vec<action> actions;      ///< the log
  vec<conflict> conflicts;  ///< what the last propagation left open
  padding_record padding;   ///< which dimensions are larger than those of the source
  int tactic = 0;           ///< recorded in loops and actions
  vec<text> tactic_names;   ///< by tactic, for messages; may be shorter

  constexpr core_program() = default;
  constexpr core_program(const program& source, const partita::mesh& m) : nested(source), mesh(m) {
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

  /// Tiles a value along a dimension over an axis: `tile<%value, dim, "axis">`.
  ///
  /// A parameter or tag gets one more loop. Any other value is passed through a `tiling` op that
  /// keeps the loops it already has (deep tiling, appendix B.1.2). Tiling again what is tiled so
  /// already changes nothing.
  ///
  /// If the axis does not divide what is left of the dimension, `policy` says what happens.
  /// Errors    S002 dimension out of range, S003 size does not divide, S004 axis used twice, S024
  ///           one tactic pads what another one refuses to pad
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
    const layout have = made(target);
    const loop* old = nest_of(p.producer(target)).find(axis);
    if (old != nullptr && (has_own_nest(target) || have.dim_of(axis) >= 0)) {
      if (have.dim_of(axis) == dim) return policy == uneven::refuse ? refuse(v, target, dim) : f;
      if (have.dim_of(axis) >= 0)
        f.record("S004", "tile: \"", name, "\" is already sliced on dimension ", have.dim_of(axis),
                 " along axis \"", mesh.name(axis), "\"; it cannot be sliced on dimension ", dim,
                 " too");
      else
        f.record("S004", "tile: \"", name, "\" is kept whole along axis \"", mesh.name(axis),
                 "\"; no action undoes an earlier one");
      return f;
    }
    const std::int64_t size = p.type(target).shape[dim], left = size / have.pieces(mesh, dim);
    const bool divides = left % mesh.size(axis) == 0;
    if (policy == uneven::refuse && (divides || size != whole[dim])) f = refuse(v, target, dim);
    if (f) return f;
    if (!divides) {
      if (policy != uneven::pad) {
        text before;
        if (size != whole[dim])
          before << " (" << whole[dim] << ", padded to " << size << ", before earlier tiling)";
        else if (left != size)
          before << " (" << size << " before earlier tiling)";
        f.record("S003", "tile: dimension ", dim, " of \"", name, "\" has size ", left, before,
                 "; axis \"", mesh.name(axis), "\" has size ", mesh.size(axis),
                 ", which does not divide it; choose another dimension or mesh, or pad it with ",
                 "uneven::pad");
        return f;
      }
      f.record(widen(target, dim, axis, have.pieces(mesh, dim) * mesh.size(axis)));
      if (f) return f;
      target = holder(v);
    }
    actions.push_back({action_kind::tile, source_of(v), dim, axis, tactic, policy});
    if (!has_own_nest(target)) target = insert_tiling(target, have);
    add_loop(p.producer(target), axis, dim);
    return f;
  }

  /// Keeps a value whole along an axis: `atomic<%value, "axis">`, the `any` loop of section 8.
  ///
  /// Errors    S005 already sliced along the axis
  constexpr failure atomic(value_id v, int axis) {
    failure f;
    value_id target = holder(v);
    const layout have = made(target);
    if (have.dim_of(axis) >= 0) {
      f.record("S005", "atomic: \"", describe(v), "\" is already sliced on dimension ",
               have.dim_of(axis), " along axis \"", mesh.name(axis),
               "\"; no action undoes an earlier one");
      return f;
    }
    if (has_own_nest(target) && nest_of(p.producer(target)).find(axis) != nullptr) return f;
    actions.push_back({action_kind::atomic, source_of(v), -1, axis, tactic});
    if (!has_own_nest(target)) target = insert_tiling(target, have);
    add_loop(p.producer(target), axis, any_factor);
    return f;
  }

  /// Introduces loops wherever exactly one tile-map entry matches, to a fixed point.
  ///
  /// The order is that of whole sweeps over the program, forward then backward, until nothing
  /// changes; ops whose surroundings did not change are skipped, which gives the same program.
  constexpr void propagate() {
    actions.push_back({action_kind::propagate, -1, -1, -1, tactic});
    const op_id *first = order.begin(), *last = order.end();
    const char* dirty = dirty_.data();
    while (pending_ > 0) {
      for (const op_id* o = first; o != last && pending_ > 0; ++o)
        if (dirty[*o]) visit(*o);
      for (const op_id* o = last; o != first && pending_ > 0;)
        if (dirty[*--o]) visit(*o);
    }
    conflicts.clear();
    char* suspect = suspect_.data();
    for (op_id o : order) {
      if (!suspect[o]) continue;
      suspect[o] = 0;
      for (int axis = 0; axis < mesh.rank; ++axis) {
        const match m = find_match(o, axis);
        if (!m.several && !m.indivisible) continue;
        suspect[o] = 1;
        conflicts.push_back({o, axis,
                             m.several ? conflict_kind::several : conflict_kind::indivisible,
                             m.first, m.second, tactic});
      }
    }
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
  /// The name of a tactic, for messages.
  constexpr text tactic_name(int number) const {
    if (static_cast<std::size_t>(number) < tactic_names.size()) return tactic_names[number];
    return concat(number);
  }
  /// A name for messages: of the parameter, tag or output, else "%N".
  constexpr text describe(value_id v) const {
    v = source_of(v);
    if (!p.name(v).empty()) return p.name(v);
    for (const auto& out : p.outputs)
      if (source_of(out.value) == v) return p.view(out.name);
    return concat('%', v);
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
    for (int axis = 0; axis < mesh.rank; ++axis) {
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
      if (f != any_factor)
        support(m, o, axis, {static_cast<std::int8_t>(f), static_cast<std::int8_t>(i)});
    }
    for (int r = 0; r < n.result_count; ++r) {
      const int dim = sliced_by_all_uses(n.result + r, mine, axis);
      if (dim == no_dim) continue;
      const int f = front_factor(o, -1 - r, dim);
      if (f != any_factor) support(m, o, axis, {static_cast<std::int8_t>(f), -1});
    }
    if (m.several) m.indivisible = false;
    return m;
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
