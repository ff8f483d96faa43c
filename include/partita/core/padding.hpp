/// Uneven dimensions: enlarges the program so that every axis divides the dimensions that it
/// slices.
///
/// A padded program is an ordinary program whose types are larger than those of the source. The
/// padding at the end of a dimension is zeros in the arguments of a run, and unspecified elsewhere.
/// It never becomes part of a result:
///
/// * Dimensions that factors tie to a padded one are padded with it; together they form a class
///   (core/dimension_class.hpp). A stacked factor means that the op works position by position, so
///   padding of an operand becomes padding of the result.
/// * If the factor is reduced, the padding of the operands is set to the identity of the combiner
///   (by a `select`), so that it adds nothing.
/// * Windows of convolutions and pooling slide over more elements; the padding is set to the value
///   that they would read out of bounds.
/// * If the extents of windows and of the elements under them have too small a common divisor, each
///   is padded separately, so that the number of shards divides both.
/// * An op that has no factor for a dimension of the class reads the dimension in its true size
///   (through a `slice`), and a result that it produces in its true size is padded afterwards (by a
///   `pad`).
///
/// Propagation, lowering and cost need not know about padding.
#pragma once

#include <cstdint>

#include <partita/core/dimension_class.hpp>
#include <partita/core/editor.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>

namespace partita::core_detail {

/// Enlarges one class of dimensions until `pieces` and the loops over it divide them. Cost: linear
/// in the ops that have a dimension of the class.
class padder {
 public:
  constexpr padder(const loop_program& c, core_editor edit, const dimension_class& of,
                   std::int64_t pieces)
      : c_(c), p_(c.p), edit_(edit), class_(of), pieces_(pieces) {}

  /// Finds the smallest sizes. Returns false if a tensor would get too many elements; its type is
  /// then in `too_large`.
  constexpr bool plan(tensor_type& too_large) {
    const auto need = [&](std::int64_t size, std::int64_t pieces) {
      return pieces / greatest_common_divisor(pieces, size / class_.count());
    };
    checked unit = pieces_;  // so that a part of a dimension can be sliced, too
    const auto divides = [&](std::int64_t n) {
      unit = unit * (n / greatest_common_divisor(unit.value_or(n), n));
    };
    for (const auto& each : class_.factors())
      divides(need(each.true_size, c_.pieces_of(each.op, each.factor)));
    for (const auto& each : class_.loose())
      divides(need(true_size(each.value, each.dim), c_.pieces_of(each.op, each.factor)));
    for (value_id v : class_.values()) {
      if (!stays_sliced(v)) continue;
      sliced_.push_back(v);
      for (int d = 0; d < max_rank; ++d)
        if (class_.made_small(v, d))
          divides(need(true_size(v, d), c_.produced_layout(v).pieces(c_.mesh, d)));
    }
    const std::int64_t each = unit.value_or(saturated);
    larger_count_ =
        saturating_multiply((present_count() - 1) / each + 1, each);  // at least one position
    for (value_id v : class_.values()) {
      too_large = p_.type(v);
      for (int d = 0; d < max_rank; ++d)
        if (class_.contains(v, d)) too_large.shape[d] = larger(true_size(v, d));
      if (!too_large.shape.fits()) return false;
    }
    return true;
  }
  /// Enlarges the dimensions to the planned sizes.
  constexpr void enlarge() {
    for (value_id v : class_.values()) before_.push_back(p_.type(v).shape);
    const op_id first = p_.op_count();
    collect_changes();
    edit_.start_padding();
    for (const auto& each : class_.factors())
      edit_.set_size(each.op, each.factor, larger(each.true_size));
    for (value_id v : class_.values())
      for (int d = 0; d < max_rank; ++d)
        if (class_.contains(v, d) && !class_.made_small(v, d))
          edit_.set_extent(v, d, larger(true_size(v, d)));
    for (value_id v : class_.values())
      if (class_.made_small(v) != 0) widen(v);
    apply_changes();
    for (const auto& each : class_.loose()) loosen(each.op, each.factor);
    for (const auto& each : class_.factors())
      if (c_.map.at(each.op, each.factor).halo) stretch(each.op, each.factor);
    for (const auto& each : class_.loose()) stretch(each.op, each.factor);
    for (value_id v : class_.values())
      if (c_.inserted(p_.producer(v)) == kind::widen) set_amounts(p_.producer(v));
    for (value_id v : class_.values())
      if (const value_id wide = widest(v); wide != v && c_.returned[v]) edit_.move_outputs(v, wide);
    put_in_order();
    if (rewired_) edit_.index_uses(class_.values(), first, added_uses_);
    for (op_id o = first; o < p_.op_count(); ++o) edit_.note_change(o);
    for (value_id v : sliced_) {
      const value_id wide = c_.widened(v), t = edit_.insert_tiling(wide, v);
      edit_.mark(p_.producer(t));
      edit_.mark(p_.producer(wide));
      for (const auto& u : c_.uses(t)) edit_.mark(u.op);
    }
  }

 private:
  using kind = padding_record::kind;
  using dim_set = dimension_class::dim_set;
  /// A requirement on the padding of a dimension.
  struct masked_dim {
    int dim = 0;
    std::int64_t identity = 0;  ///< the bits of the identity ...
    value_id fill = -1;         ///< ... or the scalar that replaces it; -1: none
  };
  /// A use that needs a value other than the padded one.
  struct change {
    use where;
    int value = 0;  ///< index in the class
    dim_set trimmed = 0;
    int first_mask = 0, end_mask = 0;  ///< a range in `masks_`
  };
  struct insertion {
    op_id after = -1;  ///< -1: at the front
    op_id op = -1;
    bool first = false;  ///< true at the start of a nested program
  };

  const loop_program& c_;
  const program& p_;
  core_editor edit_;
  const dimension_class& class_;
  std::int64_t pieces_, larger_count_ = 0;
  vec<shape> before_;     ///< by value of the class: its shape before
  vec<value_id> sliced_;  ///< the values whose enlarged values must be sliced, too
  vec<change> changes_;
  vec<masked_dim> masks_;
  vec<insertion> insertions_;
  vec<use> added_uses_;   ///< operands added to existing ops
  bool rewired_ = false;  ///< true if uses must be recomputed
  struct known_flags {
    int scope;
    std::int64_t true_size;
    value_id flags;
  };
  vec<known_flags> inside_;

  static constexpr dim_set bit(int dim) { return dimension_class::bit(dim); }
  constexpr std::int64_t true_size(value_id v, int dim) const { return c_.true_shape(v)[dim]; }
  /// The current number of positions. A dimension padded with an earlier, larger class keeps that
  /// size, because ops outside the current class may read all of it.
  constexpr std::int64_t present_count() const {
    std::int64_t n = class_.count();
    for (value_id v : class_.values())
      for (int d = 0; d < max_rank; ++d) {
        if (!class_.contains(v, d) || class_.made_small(v, d)) continue;
        const std::int64_t unit = true_size(v, d) / class_.count();
        if (unit > 0 && p_.type(v).shape[d] > n * unit) n = (p_.type(v).shape[d] - 1) / unit + 1;
      }
    return n;
  }
  constexpr std::int64_t larger(std::int64_t true_size) const {
    return saturating_multiply(true_size / class_.count(), larger_count_);
  }

  /// True if a loop slices a dimension that the value's producer cannot enlarge. If the enlarged
  /// value carries the tiling, it must be sliced in the same way.
  constexpr bool stays_sliced(value_id v) const {
    if (c_.holder(v) != v || c_.inserted(p_.producer(v)) == kind::widen) return false;
    for (const auto& e : c_.produced_layout(v))
      if (class_.made_small(v, e.dim)) return true;
    return false;
  }

  constexpr value_id widest(value_id v) const {
    while (c_.widened(v) >= 0) v = c_.widened(v);
    return v;
  }

  constexpr void collect_changes() {
    for (int i = 0; i < static_cast<int>(class_.values().size()); ++i) {
      const value_id v = class_.values()[i];
      edit_.note_change(p_.producer(v));
      for (const auto& u : c_.uses(v)) {
        edit_.note_change(u.op);
        change each{.where = u, .value = i, .first_mask = static_cast<int>(masks_.size())};
        for (int d = 0; d < max_rank; ++d) {
          if (!class_.contains(v, d)) continue;
          const int f = class_.factor_of(u.op, u.operand, d);
          if (f < 0) {
            if (c_.inserted(u.op) != kind::trim) each.trimmed |= bit(d);
            continue;
          }
          combiner combine = c_.map.at(u.op, f).combine;
          if (c_.map.at(u.op, f).backwards) combine = c_.map.at(u.op, f).carry;
          if (c_.map.sees_no_padding(u.op, f)) combine = combiner::stack;
          masked_dim padding{.dim = d};
          if (c_.map.at(u.op, f).halo) {
            const halo_range needs = class_.stretched(u.op, f).ranges[u.operand];
            combine = needs.fill;
            padding.fill = class_.padding_fill(u.op, needs);
          }
          if (combine == combiner::stack) continue;
          padding.identity = identity_of(u.op, f, combine, p_.type(v).element);
          if (padding.fill >= 0 || !masked(v, d, padding.identity)) masks_.push_back(padding);
        }
        each.end_mask = static_cast<int>(masks_.size());
        if ((each.trimmed | class_.made_small(v)) != 0 || each.first_mask < each.end_mask)
          changes_.push_back(each);
      }
    }
  }
  /// The value that adds nothing to what a factor reduces. If the sum continues from an operand,
  /// which may be -0, it must preserve even the sign of zero.
  constexpr std::int64_t identity_of(op_id o, int f, combiner combine, dtype t) const {
    return c_.map.at(o, f).located ? neutral_bits(combine, t) : identity_bits(combine, t);
  }
  /// True if the padding of a dimension is set to the identity already.
  constexpr bool masked(value_id v, int dim, std::int64_t identity) {
    for (;;) {
      const op_id o = p_.producer(v);
      const kind what = c_.inserted(o);
      if (what == kind::mask) {
        const auto& mask = edit_.padding().inserted[o];
        if (mask.dim == dim && mask.fill == identity) return true;
        v = p_.operand(o, 1);
      } else if (what == kind::trim) {
        v = p_.operand(o, 0);
      } else {
        return false;
      }
    }
  }

  // ---- Inserted ops -----------------------------------------------------------------------------

  struct place {
    op_id after = -1;
    int scope = 0;
    bool first = false;
    op_marks sake;
  };
  constexpr place place_after(value_id v) const {
    const op_id o = p_.producer(v);
    return {o, c_.nested.value_scope[v], false, p_.op(o).marks};
  }

  constexpr value_id append(kind what, const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& type,
                            const shape& whole, const place& at) {
    const op_id o =
        edit_.append(def, operands, attrs, type, at.scope, [&](core_graph& graph, op_id added) {
          if (what == kind::widen || what == kind::trim)
            add_plain_factors(graph, added);
          else
            graph.add_tile_map(added);
        });
    const value_id v = p_.op(o).result;
    edit_.set_marks(o, at.sake);
    edit_.padding().whole[v] = whole;
    edit_.padding().inserted[o].what = what;
    insertions_.push_back({at.after, o, at.first});
    rewired_ = true;
    return v;
  }
  constexpr value_id scalar(dtype t, std::int64_t bits, const place& at) {
    const std::int64_t attrs[] = {bits};
    return append(kind::auxiliary, def<op::constant>, {}, attrs, {t, {}}, {}, at);
  }
  /// Slices the producer of a value like `like`, where it has matching factors.
  constexpr void slice_like(value_id v, const layout& have, value_id like) {
    const op_id o = p_.producer(v);
    edit_.slice_like(o, have, like, [&](int dim) {
      for (int f = 0; f < c_.map.ops[o].count; ++f)
        if (c_.map.at(o, f).result_dim == dim && !c_.map.at(o, f).halo) return f;
      return any_factor;
    });
  }

  /// Pads a value that is produced in its true size: extends an earlier `pad` or inserts one.
  constexpr void widen(value_id v) {
    const op_id o = p_.producer(v);
    const int rank = p_.type(v).shape.rank;
    if (c_.inserted(o) == kind::widen) {
      for (int d = 0; d < rank; ++d)
        if (class_.made_small(v, d)) edit_.set_extent(v, d, larger(true_size(v, d)));
      edit_.mark(o);
      return;
    }
    const place at = place_after(v);
    const layout have = c_.produced_layout(v);
    tensor_type wide_type = p_.type(v);
    std::int64_t amounts[3 * max_rank] = {};
    for (int d = 0; d < rank; ++d) {
      if (!class_.made_small(v, d)) continue;
      wide_type.shape[d] = larger(true_size(v, d));
      amounts[rank + d] = wide_type.shape[d] - p_.type(v).shape[d];
    }
    const value_id operands[] = {v, scalar(wide_type.element, 0, at)};
    const value_id wide =
        append(kind::widen, def<op::pad>, operands, {amounts, static_cast<std::size_t>(3 * rank)},
               wide_type, shape(c_.true_shape(v)), at);
    slice_like(wide, have, v);
    auto& widened = edit_.padding().widened;
    widened[wide] = widened[v];  // of another class; it comes after
    widened[v] = wide;
  }
  /// Adds one factor per dimension of an inserted `pad` or `slice`. A dimension that the op pads or
  /// cuts gets a factor with a single position, which no loop can take, so that the op stays
  /// unchanged when the dimension grows.
  static constexpr void add_plain_factors(core_graph& graph, op_id o) {
    const tensor_type to = graph.p.type(graph.p.op(o).result);
    const vec<tensor_type> from = graph.operand_types(o);
    tile_map_context c(from, to, nullptr, 0, graph.map);
    for (int d = 0; d < to.shape.rank; ++d) {
      const bool whole = from[0].shape[d] == to.shape[d];
      c.tile(whole ? to.shape[d] : 1, d).operand(0, d);
      if (!whole) c.halo();
    }
  }
  /// Updates the amounts of a `pad` to the types of its operand and result.
  constexpr void set_amounts(op_id o) {
    const shape &from = p_.type(p_.operand(o, 0)).shape, &to = p_.type(p_.op(o).result).shape;
    for (int d = 0; d < to.rank; ++d) edit_.set_attr(o, to.rank + d, to[d] - from[d]);
  }

  /// Cuts value `x` back to shape `before` along `dims`. That is its true size, unless the user
  /// grew with it earlier and cannot grow further.
  constexpr value_id trim(value_id x, const shape& before, dim_set dims, const place& at) {
    tensor_type smaller = p_.type(x);
    const auto rank = static_cast<std::size_t>(smaller.shape.rank);
    std::int64_t attrs[2 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d) {
      const bool cut = (dims & bit(static_cast<int>(d))) != 0;
      attrs[rank + d] = cut ? before[static_cast<int>(d)] : ops::whole;
      if (cut) smaller.shape[static_cast<int>(d)] = attrs[rank + d];
    }
    const layout have = c_.produced_layout(x);
    const value_id operands[] = {x};
    const value_id y = append(kind::trim, def<op::slice>, operands, {attrs, 2 * rank}, smaller,
                              shape(c_.true_shape(x)), at);
    slice_like(y, have, x);
    return y;
  }
  /// Separates the dimensions of a factor after one of them has grown: the factor gets the number
  /// of positions that divides both.
  constexpr void loosen(op_id o, int f) {
    const factor& of = c_.map.at(o, f);
    const op_node& n = p_.op(o);
    std::int64_t both = 0;
    for (int i = -1; i < n.operand_count; ++i)
      if (const int d = c_.map.dim_of(of, i); d != no_dim) {
        const value_id end = i < 0 ? n.result : p_.operand(o, i);
        both = greatest_common_divisor(p_.type(end).shape[d], both);
      }
    edit_.padding().loosen(c_.map.ops[o].begin + f);
    edit_.set_size(o, f, both);
  }
  /// Updates an op whose windows slide over more elements.
  constexpr void stretch(op_id o, int f) {
    const auto given = p_.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    if (const halo_cut larger = c_.stretch(o, f, attrs); larger.becomes != nullptr)
      return become(o, *larger.becomes, attrs);
    for (int i = 0; i < static_cast<int>(attrs.size()); ++i) edit_.set_attr(o, i, attrs[i]);
  }
  /// Replaces an op by another one with a zero as additional operand.
  constexpr void become(op_id o, const op_def& other, const vec<std::int64_t>& attrs) {
    const value_id x = p_.operand(o, 0);
    const int scope = c_.nested.value_scope[x];
    const place at{c_.nested.scopes[scope].marker, scope, true, p_.op(o).marks};
    const value_id zero = scalar(p_.type(x).element, 0, at);
    added_uses_.push_back({o, p_.op(o).operand_count});
    edit_.padding().inserted[o].was = p_.op(o).def;
    edit_.become(o, other, zero, attrs);
    rewired_ = true;
  }
  /// Returns a boolean per position, true before the end of the true size. Created once per nested
  /// program.
  constexpr value_id flags(int scope, std::int64_t true_size, const op_marks& sake) {
    for (const auto& each : inside_)
      if (each.scope == scope && each.true_size == true_size) return each.flags;
    const place at{c_.nested.scopes[scope].marker, scope, true, sake};
    const shape whole{true_size}, wide{larger(true_size)};
    const dtype t = wide[0] > op::greatest_integer(dtype::i32) ? dtype::i64 : dtype::i32;
    const std::int64_t dim[] = {0}, less[] = {static_cast<std::int64_t>(ops::direction::lt)};
    const value_id position = append(kind::auxiliary, def<op::iota>, {}, dim, {t, wide}, whole, at);
    const value_id both[] = {position, scalar(t, true_size, at)};
    inside_.push_back(
        {scope, true_size,
         append(kind::auxiliary, def<op::compare>, both, less, {dtype::boolean, wide}, whole, at)});
    return inside_.back().flags;
  }
  /// Sets the padding along dimension `dim` to a constant or, if `filler` is not -1, to that
  /// scalar.
  constexpr value_id mask(value_id x, int dim, std::int64_t fill, value_id filler,
                          const place& at) {
    const tensor_type t = p_.type(x);
    const shape whole = c_.true_shape(x);
    const layout have = c_.produced_layout(x);
    value_id inside = flags(at.scope, whole[dim], at.sake);
    if (t.shape.rank > 1) {
      const value_id operands[] = {inside};
      const std::int64_t to[] = {dim};
      inside = append(kind::auxiliary, def<op::broadcast_in_dim>, operands, to,
                      {dtype::boolean, t.shape}, whole, at);
      slice_like(inside, have, x);
    }
    const bool given = filler >= 0;
    if (!given)
      filler = scalar(t.element, fill, at);
    else if (p_.op(p_.producer(filler)).def->constant)
      filler = scalar(t.element, p_.attrs(p_.producer(filler))[0], at);
    const value_id operands[] = {inside, x, filler};
    const value_id v = append(kind::mask, def<op::select>, operands, {}, t, whole, at);
    edit_.padding().inserted.back() = {kind::mask, given ? no_dim : static_cast<std::int8_t>(dim),
                                       fill};
    slice_like(v, have, x);
    return v;
  }

  constexpr void apply_changes() {
    struct made {
      value_id from;
      int what;  ///< dimensions of a trim; -1 - dim for a mask
      std::int64_t identity;
      value_id fill;
      value_id to;
    };
    vec<made> known;  // derived from one value
    value_id of = -1;
    const auto once = [&](value_id from, int what, std::int64_t identity, value_id fill,
                          auto&& make) {
      for (const auto& each : known)
        if (each.from == from && each.what == what && each.identity == identity &&
            each.fill == fill)
          return each.to;
      const value_id to = make();
      known.push_back({from, what, identity, fill, to});
      return to;
    };
    for (const auto& each : changes_) {
      const value_id v = p_.operand(each.where.op, each.where.operand);
      if (v != of) known.clear();
      of = v;
      const place at = place_after(v);
      value_id x = v;
      dim_set trimmed = each.trimmed;
      const bool widened = class_.made_small(v) != 0 && c_.inserted(p_.producer(v)) != kind::widen;
      if (widened && (trimmed & class_.made_small(v)) == class_.made_small(v))
        trimmed = static_cast<dim_set>(trimmed & ~class_.made_small(v));
      else if (widened)
        x = c_.widened(v);
      if (trimmed != 0)
        x = once(x, trimmed, 0, -1, [&] { return trim(x, before_[each.value], trimmed, at); });
      for (int i = each.first_mask; i < each.end_mask; ++i) {
        const masked_dim& m = masks_[i];
        x = once(x, -1 - m.dim, m.identity, m.fill,
                 [&] { return mask(x, m.dim, m.identity, m.fill, mask_place(at, m.fill)); });
      }
      if (x == v) continue;
      edit_.set_operand(each.where, x);
      rewired_ = true;
      edit_.mark(each.where.op);
      edit_.mark(p_.producer(v));
    }
  }

  /// The place after `at` and after the op that produces the scalar.
  constexpr place mask_place(const place& at, value_id fill) const {
    if (fill < 0 || !class_.is_later(fill, at.after)) return at;
    place later = place_after(fill);
    later.sake = at.sake;
    return later;
  }
  /// Inserts the new ops into the execution order, each directly after the op that it follows, or
  /// after the marker if that op is a wire. Iterates from the last op to the first so that each
  /// ends up directly after the op it follows.
  constexpr void put_in_order() {
    vec<insertion> after_markers;
    for (const auto& each : insertions_)
      if (!each.first && p_.is(each.after, op_role::wire)) after_markers.push_back(each);
    sort(after_markers);
    for (std::size_t i = after_markers.size(); i-- > 0;)
      edit_.insert_after(edit_.insertion_point(after_markers[i].after), after_markers[i].op);
    for (std::size_t i = insertions_.size(); i-- > 0;) {
      const insertion& each = insertions_[i];
      if (each.first || !p_.is(each.after, op_role::wire)) edit_.insert_after(each.after, each.op);
    }
  }
  /// Sorts by the wire that each op follows, then by number (Shell sort).
  static constexpr void sort(vec<insertion>& list) {
    const int n = static_cast<int>(list.size());
    const auto before = [](const insertion& a, const insertion& b) {
      return a.after != b.after ? a.after < b.after : a.op < b.op;
    };
    int gap = 1;
    while (gap < n) gap = 3 * gap + 1;
    for (; gap > 0; gap /= 3)
      for (int i = gap; i < n; ++i)
        for (int j = i; j >= gap && before(list[j], list[j - gap]); j -= gap) {
          const insertion kept = list[j];
          list[j] = list[j - gap];
          list[j - gap] = kept;
        }
  }
};

}  // namespace partita::core_detail
