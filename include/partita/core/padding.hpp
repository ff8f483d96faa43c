/// Uneven dimensions: the program made larger, so that every axis divides what it slices.
///
/// A padded program is an ordinary one, whose types are larger than those of the source. Behind the
/// end of a padded dimension stands what happens to come there: zeros in the arguments of a run,
/// anything elsewhere. That this is never part of a result follows from the tile maps:
///
/// * The dimensions that factors tie to a padded one are padded with it; together they are a class.
///   A factor that is stacked says that the op acts position by position along it: positions behind
///   the end give positions behind the end.
/// * Where the factor is reduced, the operands get, behind the end, the identity of the combiner (a
///   `select`), so that these positions add nothing.
/// * An op that has no factor for a dimension of the class, or only one with a halo, or one that is
///   a part of a dimension, sees the dimension in its true size (a `slice`), and what it makes in
///   its true size is padded behind it (a `pad`).
///
/// Propagation, lowering and cost need to know nothing of it.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/select.hpp>
#include <partita/op/slice.hpp>

namespace partita {

namespace detail {

/// Enlarges one class of dimensions. Cost: linear in the ops that have a dimension of the class,
/// plus one pass over the program.
class padder {
 public:
  constexpr padder(core_program& c, value_id v, int dim) : c_(c), p_(c.p) {
    dims_.resize(c.p.types.size(), 0);
    made_small_.resize(c.p.types.size(), 0);
    true_size_ = c.true_shape(v)[dim];
    add(v, dim);
    while (!open_.empty()) {
      const member m = open_.back();
      open_.pop_back();
      const op_id o = p_.producer(m.value);
      if (!spread(o, p_.op(o).result - m.value - 1, m.dim)) made_small_[m.value] |= bit(m.dim);
      for (const auto& u : c_.uses(m.value)) spread(u.op, u.operand, m.dim);
    }
  }
  constexpr bool contains(value_id v, int dim) const { return (dims_[v] & bit(dim)) != 0; }

  /// To the least size that `pieces` and the loops over the class divide.
  constexpr void enlarge(std::int64_t pieces) {
    for (const auto& each : factors_) pieces = common_multiple(pieces, pieces_of(each));
    size_ = (true_size_ + pieces - 1) / pieces * pieces;
    collect_changes();
    padding_record& record = c_.padding;
    if (record.whole.empty()) {
      for (const auto& t : p_.types) record.whole.push_back(t.shape);
      record.widened.resize(p_.types.size(), -1);
    }
    record.inserted.resize(p_.ops.size(), padding_record::inserted_op{});
    first_new_op_ = p_.op_count();
    for (const auto& each : factors_) {
      factor& f = c_.map.at(each.op, each.factor);
      f.size = size_;
      f.local = size_ / pieces_of(each);
      c_.mark(each.op);
    }
    for (value_id v : values_)
      for (int d = 0; d < max_rank; ++d)
        if ((dims_[v] & ~made_small_[v] & bit(d)) != 0) p_.types[v].shape[d] = size_;
    for (value_id v : values_)
      if (made_small_[v] != 0) widen(v);
    apply_changes();
    for (auto& out : p_.outputs) {
      const value_id before = out.value;
      while (record.widened[out.value] >= 0) out.value = record.widened[out.value];
      if (out.value == before) continue;
      c_.returned[before] = 0;
      c_.returned[out.value] = 1;
    }
    put_in_order();
    c_.index_uses();
  }

 private:
  using kind = padding_record::kind;
  using dim_set = std::uint8_t;
  struct member {
    value_id value;
    int dim;
  };
  struct class_factor {
    op_id op;
    int factor;
  };
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
  std::int64_t true_size_ = 0, size_ = 0;
  vec<dim_set> dims_;        ///< by value: its dimensions of the class
  vec<dim_set> made_small_;  ///< by value: those that its producer cannot make larger
  vec<value_id> values_;     ///< of the class
  vec<member> open_;
  vec<class_factor> factors_;  ///< of the class; one may occur several times
  vec<change> changes_;
  vec<insertion> insertions_;
  vec<value_id> inside_;  ///< by nested program: what is true up to the end
  op_id first_new_op_ = 0;

  static constexpr dim_set bit(int dim) { return static_cast<dim_set>(1u << dim); }
  static constexpr std::int64_t common_multiple(std::int64_t a, std::int64_t b) {
    return a / greatest_common_divisor(a, b) * b;
  }
  constexpr std::int64_t pieces_of(const class_factor& f) const {
    std::int64_t n = 1;
    for (const auto& l : c_.nest_of(f.op))
      if (l.factor == f.factor) n *= c_.mesh.size(l.axis);
    return n;
  }

  // ---- The class --------------------------------------------------------------------------------

  constexpr void add(value_id v, int dim) {
    if (contains(v, dim)) return;
    if (dims_[v] == 0) values_.push_back(v);
    dims_[v] |= bit(dim);
    open_.push_back({v, dim});
  }
  template <class F>
  constexpr void for_each_end(op_id o, const F& f) const {
    const op_node& n = p_.op(o);
    for (int i = 0; i < n.operand_count; ++i) f(i, p_.operand(o, i));
    for (int r = 0; r < n.result_count; ++r) f(-1 - r, n.result + r);
  }
  /// The factor that is all of a dimension of an operand (-1 - r: of result r), wherever it occurs;
  /// or -1.
  constexpr int whole_factor(op_id o, int end, int dim) const {
    const auto& row = c_.map.ops[o];
    int found = -1;
    for (int f = 0; f < row.count; ++f) {
      if (c_.map.dim_of(c_.map.at(o, f), end) != dim) continue;
      if (found >= 0) return -1;
      found = f;
    }
    if (found < 0) return -1;
    const factor& mine = c_.map.at(o, found);
    if (mine.halo || (mine.combine != combiner::stack && !p_.op(o).def->reduces_identity))
      return -1;
    bool good = true;
    for_each_end(o, [&](int e, value_id v) {
      const int d = c_.map.dim_of(mine, e);
      if (d == no_dim) return;
      good = good && p_.type(v).shape[d] == mine.size;
      for (int f = 0; row.composed && f < row.count; ++f)
        good = good && (f == found || c_.map.dim_of(c_.map.at(o, f), e) != d);
    });
    return good ? found : -1;
  }
  /// Takes in what an op ties to a dimension of one of its ends.
  constexpr bool spread(op_id o, int end, int dim) {
    const int f = whole_factor(o, end, dim);
    if (f < 0) return false;
    factors_.push_back({o, f});
    for_each_end(o, [&](int e, value_id v) {
      const int d = c_.map.dim_of(c_.map.at(o, f), e);
      if (d != no_dim) add(v, d);
    });
    return true;
  }

  constexpr void collect_changes() {
    for (value_id v : values_)
      for (const auto& u : c_.uses(v)) {
        change each{u};
        for (int d = 0; d < max_rank; ++d) {
          if (!contains(v, d)) continue;
          const int f = whole_factor(u.op, u.operand, d);
          if (f < 0) {
            if (c_.inserted(u.op) != kind::trim) each.trimmed |= bit(d);
            continue;
          }
          const combiner combine = c_.map.at(u.op, f).combine;
          if (combine == combiner::stack || masked(v, d, combine)) continue;
          each.masked |= bit(d);
          each.combine = combine;
        }
        if ((each.trimmed | each.masked | made_small_[v]) != 0) changes_.push_back(each);
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
      const value_id from = p_.operand(o, 0);
      for (int d = 0; d < rank; ++d) {
        if ((made_small_[v] & bit(d)) == 0) continue;
        p_.types[v].shape[d] = size_;
        p_.attr_list[p_.op(o).attr_begin + rank + d] = size_ - p_.type(from).shape[d];
      }
      refresh(o);
      return;
    }
    const place at = behind(v);
    const layout have = c_.made(v);
    tensor_type larger = p_.type(v);
    std::int64_t amounts[3 * max_rank] = {};
    for (int d = 0; d < rank; ++d) {
      if ((made_small_[v] & bit(d)) == 0) continue;
      amounts[rank + d] = size_ - larger.shape[d];
      larger.shape[d] = size_;
    }
    const value_id operands[] = {v, scalar(larger.element, 0, at)};
    const value_id wide =
        append(kind::widen, def<op::pad>, operands, {amounts, static_cast<std::size_t>(3 * rank)},
               larger, shape(c_.padding.whole[v]), at);
    slice_like(wide, have, v);
    c_.padding.widened[wide] = c_.padding.widened[v];  // of another class; it stands behind
    c_.padding.widened[v] = wide;
  }
  /// The factors of an op whose attributes have changed.
  constexpr void refresh(op_id o) {
    factor_table now;
    vec<tensor_type> operands;
    for (value_id v : p_.operands(o)) operands.push_back(p_.type(v));
    const auto attrs = p_.attrs(o);
    const op_node& n = p_.op(o);
    tile_map_context c(operands, p_.type(n.result), attrs.data(), static_cast<int>(attrs.size()),
                       now, n.result_count);
    n.def->tile_map(c);
    for (int f = 0; f < c_.map.ops[o].count && f < now.ops[0].count; ++f) {
      factor& mine = c_.map.at(o, f);
      mine.size = now.at(0, f).size;
      mine.local = mine.size / pieces_of({o, f});
    }
    c_.mark(o);
  }

  constexpr value_id trim(value_id x, dim_set dims, const place& at) {
    tensor_type smaller = p_.type(x);
    const auto rank = static_cast<std::size_t>(smaller.shape.rank);
    std::int64_t attrs[2 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d) {
      const bool cut = (dims & bit(static_cast<int>(d))) != 0;
      attrs[rank + d] = cut ? true_size_ : ops::whole;
      if (cut) smaller.shape[static_cast<int>(d)] = true_size_;
    }
    const layout have = c_.made(x);
    const value_id operands[] = {x};
    const value_id v = append(kind::trim, def<op::slice>, operands, {attrs, 2 * rank}, smaller,
                              shape(c_.padding.whole[x]), at);
    slice_like(v, have, x);
    return v;
  }
  /// One flag per position: does it lie before the end? Made once in each nested program.
  constexpr value_id flags(int scope) {
    inside_.resize(c_.nested.scopes.size(), -1);
    if (inside_[scope] >= 0) return inside_[scope];
    const place at{c_.nested.scopes[scope].marker, scope, true};
    const dtype t = size_ > op::greatest_integer(dtype::i32) ? dtype::i64 : dtype::i32;
    const std::int64_t dim[] = {0}, less[] = {static_cast<std::int64_t>(ops::direction::lt)};
    const shape whole{true_size_}, larger{size_};
    const value_id position =
        append(kind::auxiliary, def<op::iota>, {}, dim, {t, larger}, whole, at);
    const value_id both[] = {position, scalar(t, true_size_, at)};
    inside_[scope] =
        append(kind::auxiliary, def<op::compare>, both, less, {dtype::boolean, larger}, whole, at);
    return inside_[scope];
  }
  constexpr value_id mask(value_id x, int dim, combiner combine, const place& at) {
    const tensor_type t = p_.type(x);
    const shape whole = c_.padding.whole[x];
    const layout have = c_.made(x);
    value_id inside = flags(at.scope);
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
      const bool widened = made_small_[v] != 0 && c_.inserted(p_.producer(v)) != kind::widen;
      if (widened && (trimmed & made_small_[v]) == made_small_[v])
        trimmed = static_cast<dim_set>(trimmed & ~made_small_[v]);
      else if (widened)
        x = c_.padding.widened[v];
      if (trimmed != 0) x = once(x, trimmed, combiner::stack, [&] { return trim(x, trimmed, at); });
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
  detail::padder the_class(*this, v, dim);
  for (const auto& r : padding.refusals)
    if (the_class.contains(holder(r.value), r.dim)) {
      const std::int64_t size = true_shape(v)[dim];
      f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size,
               "; tactic \"", tactic_name(tactic), "\" pads it for axis \"", mesh.name(axis),
               "\" of size ", mesh.size(axis), ", tactic \"", tactic_name(r.tactic),
               "\" refuses to pad dimension ", r.dim, " of \"", describe(r.value),
               "\", which is as large as it; choose one policy for both");
      return f;
    }
  the_class.enlarge(pieces);
  padding.enlargements.push_back({source_of(v), dim, axis, tactic});
  return f;
}

constexpr failure core_program::refuse(value_id v, value_id target, int dim) {
  failure f;
  const std::int64_t size = true_shape(target)[dim], padded = p.type(target).shape[dim];
  if (size != padded) {
    const detail::padder the_class(*this, target, dim);
    for (const auto& each : padding.enlargements)
      if (the_class.contains(holder(each.value), each.dim)) {
        f.record("S024", "tile: dimension ", dim, " of \"", describe(v), "\" has size ", size,
                 "; tactic \"", tactic_name(tactic), "\" refuses to pad it, tactic \"",
                 tactic_name(each.tactic), "\" pads it to ", padded, " with dimension ", each.dim,
                 " of \"", describe(each.value), "\" for axis \"", mesh.name(each.axis),
                 "\" of size ", mesh.size(each.axis), "; choose one policy for both");
        return f;
      }
  }
  padding.refusals.push_back({source_of(v), dim, tactic});
  return f;
}

}  // namespace partita
