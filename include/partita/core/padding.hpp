/// Uneven dimensions: the program made larger, so that every axis divides what it slices.
///
/// A padded program is an ordinary one, whose types are larger than those of the source. Behind the
/// end of a padded dimension stands what happens to come there: zeros in the arguments of a run,
/// anything elsewhere. That this is never part of a result follows from the tile maps:
///
/// * The dimensions that factors tie to a padded one are padded with it; together they are a class
///   (core/dimension_class.hpp). A factor that is stacked says that the op acts position by
///   position along it: positions behind the end give positions behind the end.
/// * Where the factor is reduced, the operands get, behind the end, the identity of the combiner (a
///   `select`), so that these positions add nothing.
/// * The windows of convolutions and pooling slide over more elements; behind the old end stands
///   what they would find behind the end.
/// * An op that has no factor for a dimension of the class sees the dimension in its true size
///   (a `slice`), and what it makes in its true size is padded behind it (a `pad`).
///
/// Propagation, lowering and cost need to know nothing of it.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/core/dimension_class.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>

namespace partita {

namespace detail {

/// Enlarges one class of dimensions, so that `pieces` and the loops over it divide them. Cost:
/// linear in the ops that have a dimension of the class, plus one pass over the program.
class padder {
 public:
  constexpr padder(core_program& c, const dimension_class& of, std::int64_t pieces)
      : c_(c), p_(c.p), class_(of), pieces_(pieces) {}

  /// Finds the least sizes. False if a tensor gets too many elements; then it is `too_large`.
  constexpr bool plan(tensor_type& too_large) {
    const auto need = [&](std::int64_t size, std::int64_t pieces) {
      return pieces / greatest_common_divisor(pieces, size / class_.count());
    };
    checked unit = pieces_;  // what is a part of a dimension can be sliced so, too
    const auto divides = [&](std::int64_t n) {
      unit = unit * (n / greatest_common_divisor(unit.value_or(n), n));
    };
    for (const auto& each : class_.factors())
      divides(need(each.true_size, c_.pieces_of(each.op, each.factor)));
    for (value_id v : class_.values()) {
      if (!stays_sliced(v)) continue;
      sliced_.push_back(v);
      for (int d = 0; d < max_rank; ++d)
        if (class_.made_small(v, d)) divides(need(true_size(v, d), c_.made(v).pieces(c_.mesh, d)));
    }
    const std::int64_t each = unit.value_or(saturated);
    larger_count_ =
        saturating_multiply((class_.count() - 1) / each + 1, each);  // of one or more positions
    for (value_id v : class_.values()) {
      too_large = p_.type(v);
      for (int d = 0; d < max_rank; ++d)
        if (class_.contains(v, d)) too_large.shape[d] = larger(true_size(v, d));
      if (!too_large.shape.fits()) return false;
    }
    return true;
  }
  /// To the sizes that were planned.
  constexpr void enlarge() {
    before_ = p_.types;
    const vec<value_id> sliced = sliced_;
    collect_changes();
    padding_record& record = c_.padding;
    if (record.whole.empty()) {
      for (const auto& t : p_.types) record.whole.push_back(t.shape);
      record.widened.resize(p_.types.size(), -1);
    }
    record.inserted.resize(p_.ops.size(), padding_record::inserted_op{});
    for (const auto& each : class_.factors()) {
      factor& f = c_.map.at(each.op, each.factor);
      f.size = larger(each.true_size);
      f.local = f.size / c_.pieces_of(each.op, each.factor);
      c_.mark(each.op);
    }
    for (value_id v : class_.values())
      for (int d = 0; d < max_rank; ++d)
        if (class_.contains(v, d) && !class_.made_small(v, d))
          p_.types[v].shape[d] = larger(true_size(v, d));
    for (value_id v : class_.values())
      if (class_.made_small(v) != 0) widen(v);
    apply_changes();
    for (const auto& each : class_.factors())
      if (c_.map.at(each.op, each.factor).halo) stretch(each.op, each.factor);
    for (value_id v : class_.values())
      if (c_.inserted(p_.producer(v)) == kind::widen) set_amounts(p_.producer(v));
    for (auto& out : p_.outputs) {
      const value_id before = out.value;
      while (record.widened[out.value] >= 0) out.value = record.widened[out.value];
      if (out.value == before) continue;
      c_.returned[before] = 0;
      c_.returned[out.value] = 1;
    }
    put_in_order();
    c_.index_uses();
    for (value_id v : sliced) {
      const value_id t = c_.insert_tiling(record.widened[v], v);
      c_.mark(p_.producer(t));
      c_.mark(p_.producer(record.widened[v]));
      for (const auto& u : c_.uses(t)) c_.mark(u.op);
    }
  }

 private:
  using kind = padding_record::kind;
  using dim_set = dimension_class::dim_set;
  /// A use that needs other than the padded value.
  struct change {
    use where;
    dim_set trimmed = 0, masked = 0;
    combiner combine = combiner::stack;
  };
  struct insertion {
    op_id behind = -1;  ///< -1: before all others
    op_id op = -1;
    bool first = false;  ///< of a nested program
  };

  core_program& c_;
  program& p_;
  const dimension_class& class_;
  std::int64_t pieces_, larger_count_ = 0;
  vec<tensor_type> before_;  ///< by value: what it was
  vec<value_id> sliced_;     ///< whose larger values have to be sliced, too
  vec<change> changes_;
  vec<insertion> insertions_;
  struct known_flags {
    int scope;
    std::int64_t true_size;
    value_id flags;
  };
  vec<known_flags> inside_;

  static constexpr dim_set bit(int dim) { return dimension_class::bit(dim); }
  constexpr std::int64_t true_size(value_id v, int dim) const { return c_.true_shape(v)[dim]; }
  constexpr std::int64_t larger(std::int64_t true_size) const {
    return saturating_multiply(true_size / class_.count(), larger_count_);
  }

  /// Is a dimension sliced that this value's producer cannot make larger? Then the larger value, if
  /// it is what carries the tiling, has to be sliced so, too.
  constexpr bool stays_sliced(value_id v) const {
    if (c_.holder(v) != v || c_.inserted(p_.producer(v)) == kind::widen) return false;
    for (const auto& e : c_.made(v))
      if (class_.made_small(v, e.dim)) return true;
    return false;
  }

  constexpr void collect_changes() {
    for (value_id v : class_.values())
      for (const auto& u : c_.uses(v)) {
        change each{u};
        for (int d = 0; d < max_rank; ++d) {
          if (!class_.contains(v, d)) continue;
          const int f = class_.factor_of(u.op, u.operand, d);
          if (f < 0) {
            if (c_.inserted(u.op) != kind::trim) each.trimmed |= bit(d);
            continue;
          }
          combiner combine = c_.map.at(u.op, f).combine;
          if (c_.map.at(u.op, f).halo) combine = class_.stretched(u.op, f).ranges[u.operand].fill;
          if (combine == combiner::stack || masked(v, d, combine)) continue;
          each.masked |= bit(d);
          each.combine = combine;
        }
        if ((each.trimmed | each.masked | class_.made_small(v)) != 0) changes_.push_back(each);
      }
  }
  /// Does the identity stand behind the end of a dimension already?
  constexpr bool masked(value_id v, int dim, combiner combine) const {
    for (;;) {
      const op_id o = p_.producer(v);
      const kind what = c_.inserted(o);
      if (what == kind::mask) {
        const auto& mask = c_.padding.inserted[o];
        if (mask.dim == dim && mask.fill == identity_bits(combine, p_.type(v).element)) return true;
        v = p_.operand(o, 1);
      } else if (what == kind::trim) {
        v = p_.operand(o, 0);
      } else {
        return false;
      }
    }
  }

  // ---- What is inserted -------------------------------------------------------------------------

  struct place {
    op_id behind = -1;
    int scope = 0;
    bool first = false;
  };
  constexpr place behind(value_id v) const { return {p_.producer(v), c_.nested.value_scope[v]}; }

  constexpr value_id append(kind what, const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& type,
                            const shape& whole, const place& at) {
    const op_id o = p_.op_count();
    const value_id v = p_.append(def, operands, attrs, type);
    c_.returned.push_back(0);
    c_.nested.scope.push_back(at.scope);
    c_.nested.value_scope.push_back(at.scope);
    c_.nests.push_back(nest{});
    c_.dirty_.push_back(0);
    c_.suspect_.push_back(0);
    if (what == kind::widen || what == kind::trim)
      add_plain_factors(o);
    else
      c_.add_tile_map(o);
    c_.padding.whole.push_back(whole);
    c_.padding.widened.push_back(-1);
    c_.padding.inserted.push_back({what, no_dim, 0});
    insertions_.push_back({at.behind, o, at.first});
    c_.mark(o);
    return v;
  }
  constexpr value_id scalar(dtype t, std::int64_t bits, const place& at) {
    const std::int64_t attrs[] = {bits};
    return append(kind::auxiliary, def<op::constant>, {}, attrs, {t, {}}, {}, at);
  }
  /// The op that makes a value is sliced as another value is made, as far as it can be.
  constexpr void slice_like(value_id v, const layout& have, value_id like) {
    const op_id o = p_.producer(v);
    const nest from = c_.nest_of(p_.producer(like));
    for (const auto& e : have)
      for (int f = 0; f < c_.map.ops[o].count; ++f) {
        factor& each = c_.map.at(o, f);
        if (each.result_dim != e.dim || each.halo) continue;
        const loop* l = from.find(e.axis);
        c_.nests[o].push_back(e.axis, f, l != nullptr ? l->tactic : c_.tactic);
        each.local /= c_.mesh.size(e.axis);
      }
  }

  /// What is made in its true size becomes larger: more of an earlier `pad`, or a new one.
  constexpr void widen(value_id v) {
    const op_id o = p_.producer(v);
    const int rank = p_.type(v).shape.rank;
    if (c_.inserted(o) == kind::widen) {
      for (int d = 0; d < rank; ++d)
        if (class_.made_small(v, d)) p_.types[v].shape[d] = larger(true_size(v, d));
      c_.mark(o);
      return;
    }
    const place at = behind(v);
    const layout have = c_.made(v);
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
               wide_type, shape(c_.padding.whole[v]), at);
    slice_like(wide, have, v);
    c_.padding.widened[wide] = c_.padding.widened[v];  // of another class; it stands behind
    c_.padding.widened[v] = wide;
  }
  /// A factor for each dimension of an inserted `pad` or `slice`; one of a single position, which
  /// no loop takes, for a dimension that it pads or cuts. So they stay what they are when it grows.
  constexpr void add_plain_factors(op_id o) {
    const tensor_type to = p_.type(p_.op(o).result);
    const vec<tensor_type> from = c_.operand_types(o);
    tile_map_context c(from, to, nullptr, 0, c_.map);
    for (int d = 0; d < to.shape.rank; ++d) {
      const bool whole = from[0].shape[d] == to.shape[d];
      c.tile(whole ? to.shape[d] : 1, d).operand(0, d);
      if (!whole) c.halo();
    }
  }
  /// What a `pad` adds, now that its operand and its result have their types.
  constexpr void set_amounts(op_id o) {
    const shape &from = p_.type(p_.operand(o, 0)).shape, &to = p_.type(p_.op(o).result).shape;
    for (int d = 0; d < to.rank; ++d)
      p_.attr_list[p_.op(o).attr_begin + to.rank + d] = to[d] - from[d];
  }

  /// What value `v` was, of `x`, which it is now: its true size but for an op that grew with it
  /// earlier and cannot go on.
  constexpr value_id trim(value_id x, value_id v, dim_set dims, const place& at) {
    tensor_type smaller = p_.type(x);
    const auto rank = static_cast<std::size_t>(smaller.shape.rank);
    std::int64_t attrs[2 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d) {
      const bool cut = (dims & bit(static_cast<int>(d))) != 0;
      attrs[rank + d] = cut ? before_[v].shape[static_cast<int>(d)] : ops::whole;
      if (cut) smaller.shape[static_cast<int>(d)] = attrs[rank + d];
    }
    const layout have = c_.made(x);
    const value_id operands[] = {x};
    const value_id y = append(kind::trim, def<op::slice>, operands, {attrs, 2 * rank}, smaller,
                              shape(c_.padding.whole[x]), at);
    slice_like(y, have, x);
    return y;
  }
  /// The windows of an op slide over more elements.
  constexpr void stretch(op_id o, int f) {
    const auto given = p_.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    c_.stretch(o, f, attrs);
    for (std::size_t i = 0; i < attrs.size(); ++i)
      p_.attr_list[p_.op(o).attr_begin + static_cast<int>(i)] = attrs[i];
  }
  /// One flag per position: does it lie before the end? Made once in each nested program.
  constexpr value_id flags(int scope, std::int64_t true_size) {
    for (const auto& each : inside_)
      if (each.scope == scope && each.true_size == true_size) return each.flags;
    const place at{c_.nested.scopes[scope].marker, scope, true};
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
  constexpr value_id mask(value_id x, int dim, combiner combine, const place& at) {
    const tensor_type t = p_.type(x);
    const shape whole = c_.padding.whole[x];
    const layout have = c_.made(x);
    value_id inside = flags(at.scope, whole[dim]);
    if (t.shape.rank > 1) {
      const value_id operands[] = {inside};
      const std::int64_t to[] = {dim};
      inside = append(kind::auxiliary, def<op::broadcast_in_dim>, operands, to,
                      {dtype::boolean, t.shape}, whole, at);
      slice_like(inside, have, x);
    }
    const std::int64_t fill = identity_bits(combine, t.element);
    const value_id operands[] = {inside, x, scalar(t.element, fill, at)};
    const value_id v = append(kind::mask, def<op::select>, operands, {}, t, whole, at);
    c_.padding.inserted.back() = {kind::mask, static_cast<std::int8_t>(dim), fill};
    slice_like(v, have, x);
    return v;
  }

  constexpr void apply_changes() {
    struct made {
      value_id from;
      int what;  ///< dimensions of a trim; of a mask -1 - dim
      combiner combine;
      value_id to;
    };
    vec<made> known;  // of one value
    value_id of = -1;
    const auto once = [&](value_id from, int what, combiner combine, auto&& make) {
      for (const auto& each : known)
        if (each.from == from && each.what == what && each.combine == combine) return each.to;
      const value_id to = make();
      known.push_back({from, what, combine, to});
      return to;
    };
    for (const auto& each : changes_) {
      value_id& operand = p_.operand_list[p_.op(each.where.op).operand_begin + each.where.operand];
      const value_id v = operand;
      if (v != of) known.clear();
      of = v;
      const place at = behind(v);
      value_id x = v;
      dim_set trimmed = each.trimmed;
      const bool widened = class_.made_small(v) != 0 && c_.inserted(p_.producer(v)) != kind::widen;
      if (widened && (trimmed & class_.made_small(v)) == class_.made_small(v))
        trimmed = static_cast<dim_set>(trimmed & ~class_.made_small(v));
      else if (widened)
        x = c_.padding.widened[v];
      if (trimmed != 0)
        x = once(x, trimmed, combiner::stack, [&] { return trim(x, v, trimmed, at); });
      for (int d = 0; d < max_rank; ++d)
        if ((each.masked & bit(d)) != 0)
          x = once(x, -1 - d, each.combine, [&] { return mask(x, d, each.combine, at); });
      if (x == v) continue;
      p_.operand_list[p_.op(each.where.op).operand_begin + each.where.operand] = x;
      c_.mark(each.where.op);
      c_.mark(p_.producer(v));
    }
  }

  /// New ops stand right behind what they follow; behind a wire, behind its marker.
  constexpr void put_in_order() {
    if (insertions_.empty()) return;
    vec<int> head(p_.ops.size(), -1), tail(p_.ops.size(), -1), next(insertions_.size(), -1);
    vec<op_id> order, waiting;
    order.reserve(p_.ops.size());
    vec<insertion> first;
    for (int i = 0; i < static_cast<int>(insertions_.size()); ++i) {
      const insertion& each = insertions_[i];
      if (each.first) {
        first.push_back(each);
        continue;
      }
      int& end = tail[each.behind];
      (end >= 0 ? next[end] : head[each.behind]) = i;
      end = i;
    }
    for (const auto& each : first)
      if (each.behind < 0) order.push_back(each.op);
    for (op_id o : c_.order) {
      order.push_back(o);
      vec<op_id>& to = p_.is(o, op_role::wire) ? waiting : order;
      for (int i = head[o]; i >= 0; i = next[i]) to.push_back(insertions_[i].op);
      if (!p_.is(o, op_role::control)) continue;
      for (const auto& each : first)
        if (each.behind == o) order.push_back(each.op);
      order.insert_back(waiting.begin(), waiting.end());
      waiting.clear();
    }
    c_.order = static_cast<vec<op_id>&&>(order);
  }
};

}  // namespace detail

constexpr failure core_program::widen(value_id v, int dim, int axis, std::int64_t pieces) {
  failure f;
  const detail::dimension_class the_class(*this, v, dim, pieces);
  for (const auto& r : padding.refusals)
    if (the_class.contains(holder(r.value), r.dim)) {
      const std::int64_t size = true_shape(v)[dim];
      f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size, "; ",
               describe_tactic(tactic), " pads it for axis ", axis_text(named.at(axis)),
               " of size ", named.size(axis), ", ", describe_tactic(r.tactic),
               " refuses to pad dimension ", r.dim, " of \"", describe(r.value),
               "\", which is as large as it; choose one policy for both");
      return f;
    }
  detail::padder padder(*this, the_class, pieces);
  tensor_type too_large;
  if (!padder.plan(too_large)) {
    f.record("S118", "tile: dimension ", dim, " of \"", describe(v), "\" has size ",
             true_shape(v)[dim], "; padded for axis ", axis_text(named.at(axis)), " of size ",
             named.size(axis), ", ", too_many_elements(too_large));
    return f;
  }
  padder.enlarge();
  padding.enlargements.push_back({source_of(v), dim, axis, tactic});
  return f;
}

constexpr failure core_program::refuse(value_id v, value_id target, int dim) {
  failure f;
  const std::int64_t size = true_shape(target)[dim], padded = p.type(target).shape[dim];
  if (size != padded) {
    const detail::dimension_class the_class(*this, target, dim, 1);
    for (const auto& each : padding.enlargements)
      if (the_class.contains(holder(each.value), each.dim)) {
        f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size, "; ",
                 describe_tactic(tactic), " refuses to pad it, ", describe_tactic(each.tactic),
                 " pads it to ", padded, " with dimension ", each.dim, " of \"",
                 describe(each.value), "\" for axis ", axis_text(named.at(each.axis)), " of size ",
                 named.size(each.axis), "; choose one policy for both");
        return f;
      }
  }
  padding.refusals.push_back({source_of(v), dim, tactic});
  return f;
}

}  // namespace partita
