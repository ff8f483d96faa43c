/// Dimensions that must grow together when one of them is padded.
#pragma once

#include <cstdint>

#include <partita/core/loop_program.hpp>
#include <partita/core/number_set.hpp>

namespace partita::core_detail {

/// A dimension and all dimensions that the factors of tile maps tie to it, across ops.
///
/// Every size in the class, of a dimension or a factor, is a multiple of `count`, and all grow by
/// the same ratio. A dimension composed of several factors (reshape) grows by its most major
/// factor, so that padding is last on both sides of the op. This requires that the factor has at
/// least `pieces` positions. Cost: linear in the ops that have a dimension of the class.
class dimension_class {
 public:
  using dim_set = std::uint8_t;  ///< one bit per dimension
  static constexpr dim_set bit(int dim) { return static_cast<dim_set>(1u << dim); }
  /// A factor whose dimensions grow separately, and the dimension (`value`, `dim`) that is in the
  /// class.
  struct loose_factor {
    op_id op;
    int factor;
    value_id value;
    int dim;
  };
  struct tied_factor {
    op_id op;
    int factor;
    std::int64_t true_size;
  };

  constexpr dimension_class(const loop_program& c, value_id v, int dim, std::int64_t pieces)
      : c_(c), p_(c.p), pieces_(pieces), count_(c.true_shape(v)[dim]) {
    add(v, dim);
    while (!open_.empty()) {
      const member m = open_.back();
      open_.pop_back();
      const op_id o = p_.producer(m.value);
      if (!spread(o, p_.op(o).result - m.value - 1, m.dim))
        made_small_[values_.find(m.value)] |= bit(m.dim);
      for (const auto& u : c_.uses(m.value)) spread(u.op, u.operand, m.dim);
    }
  }

  constexpr std::int64_t count() const { return count_; }
  /// The values that have a dimension in the class.
  constexpr const vec<value_id>& values() const { return values_.numbers(); }
  constexpr bool contains(value_id v, int dim) const {
    const int i = values_.find(v);
    return i >= 0 && (dims_[i] & bit(dim)) != 0;
  }
  /// The dimensions in the class that the producer of the value cannot enlarge.
  constexpr dim_set made_small(value_id v) const {
    const int i = values_.find(v);
    return i < 0 ? dim_set{0} : made_small_[i];
  }
  constexpr bool made_small(value_id v, int dim) const { return (made_small(v) & bit(dim)) != 0; }
  /// The factors in the class; a factor may occur several times.
  constexpr const vec<tied_factor>& factors() const { return factors_; }
  /// Factors of windows that slide over a dimension in the class, or whose positions it counts, and
  /// that do not tie the other dimension to it.
  constexpr const vec<loose_factor>& loose() const { return loose_; }
  /// The factor in the class by which a dimension of an operand (-1 - r: of result r) grows, or -1.
  constexpr int factor_of(op_id o, int end, int dim) const {
    bool part = false;
    const int f = growing_factor(o, end, dim, part);
    return f < 0 || (part && parts_.find(c_.map.ops[o].begin + f) < 0) ? -1 : f;
  }
  /// The scalar that must pad an operand of an op when the op slides over more elements, as range
  /// `r` states; -1 for the combiner's identity.
  constexpr value_id padding_fill(op_id o, const halo_range& r) const {
    if (r.fill_operand < 0) return -1;
    const value_id fill = p_.operand(o, r.fill_operand);
    return p_.is_zero(c_.source_of(fill)) ? -1 : fill;
  }
  /// True if such a scalar is computed after op `o` and is not a constant.
  constexpr bool is_later(value_id fill, op_id o) const {
    const op_id maker = p_.producer(fill);
    return !p_.op(maker).def->constant && c_.order.position(maker) > c_.order.position(o);
  }
  /// The halo loops along a factor after its op slides over more elements.
  constexpr halo_cut stretched(op_id o, int f) const {
    const auto given = p_.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    return c_.stretch(o, f, attrs);
  }

 private:
  struct member {
    value_id value;
    int dim;
  };
  const loop_program& c_;
  const program& p_;
  std::int64_t pieces_, count_;
  number_set values_;
  vec<dim_set> dims_;        ///< by index in `values_`: its dimensions in the class
  vec<dim_set> made_small_;  ///< by index in `values_`
  number_set parts_;  ///< factors in the class that are the most major of several in a dimension
  vec<member> open_;
  vec<tied_factor> factors_;
  vec<loose_factor> loose_;

  constexpr std::int64_t true_size(value_id v, int dim) const { return c_.true_shape(v)[dim]; }
  constexpr void add(value_id v, int dim) {
    const int i = values_.insert(v);
    if (i == static_cast<int>(dims_.size())) {
      dims_.push_back(0);
      made_small_.push_back(0);
    }
    if ((dims_[i] & bit(dim)) != 0) return;
    dims_[i] |= bit(dim);
    open_.push_back({v, dim});
  }
  template <class F>
  constexpr void for_each_end(op_id o, const F& f) const {
    const op_node& n = p_.op(o);
    for (int i = 0; i < n.operand_count; ++i) f(i, p_.operand(o, i));
    for (int r = 0; r < n.result_count; ++r) f(-1 - r, n.result + r);
  }
  /// The factor by which a dimension of an operand (-1 - r: of result r) grows, or -1. `part` is
  /// set if one of its dimensions has other factors too. Once loops slice a minor factor, the major
  /// factor is already sliced to single positions and stays so.
  constexpr int growing_factor(op_id o, int end, int dim, bool& part) const {
    const auto& row = c_.map.ops[o];
    int found = 0;
    while (found < row.count && c_.map.dim_of(c_.map.at(o, found), end) != dim) ++found;
    if (found == row.count) return -1;
    const factor& mine = c_.map.at(o, found);
    if (mine.combine != combiner::stack && !p_.op(o).def->reduces_identity) return -1;
    if (mine.again) return -1;
    if (mine.halo && !can_stretch(o, found)) return -1;
    bool good = true;
    part = false;
    for_each_end(o, [&](int e, value_id v) {
      const int d = c_.map.dim_of(mine, e);
      if (d == no_dim) return;
      part = part || p_.type(v).shape[d] != mine.size;
      if (!row.composed) return;
      for (int f = 0; f < row.count; ++f)  // major to minor
        if (f != found && c_.map.dim_of(c_.map.at(o, f), e) == d)
          good = good && f > found && c_.pieces_of(o, f) == 1;
    });
    return good && (row.composed || mine.halo || !part) ? found : -1;
  }
  constexpr bool can_stretch(op_id o, int f) const {
    const halo_cut larger = stretched(o, f);
    for (int k = 0; k < max_halo_operands; ++k)
      if (const value_id fill = padding_fill(o, larger.ranges[k]);
          fill >= 0 && !is_ordered(fill, p_.producer(p_.operand(o, k))))
        return false;
    return larger.possible;
  }
  /// True if the execution order of the scalar and op `o` is known.
  constexpr bool is_ordered(value_id fill, op_id o) const {
    const op_id maker = p_.producer(fill);
    return p_.op(maker).def->constant || (c_.order.is_settled(maker) && c_.order.is_settled(o));
  }
  /// True if the dimensions of a factor grow separately: growing the other dimension by the same
  /// ratio would not make it divisible, or they already grew separately.
  constexpr bool is_loose(op_id o, int f, bool may_be) const {
    const factor& of = c_.map.at(o, f);
    if (!of.halo || c_.inserted(o) == padding_record::kind::trim) return false;
    if (c_.grows_apart(c_.map.ops[o].begin + f)) return true;
    return may_be && greatest_common_divisor(of.size, count_) < pieces_ && stretched(o, f).apart;
  }
  /// Adds the dimensions that an op ties to a dimension of one of its operands or results; returns
  /// false if it ties none.
  constexpr bool spread(op_id o, int end, int dim) {
    bool part = false;
    const int f = growing_factor(o, end, dim, part);
    if (f < 0 || c_.map.at(o, f).size == 0)
      return false;  // (a dimension without elements does not grow)
    const value_id at = end < 0 ? p_.op(o).result - 1 - end : p_.operand(o, end);
    const std::int64_t now = p_.type(at).shape[dim], before = true_size(at, dim);
    if (is_loose(o, f, part && now == before)) {
      parts_.insert(c_.map.ops[o].begin + f);
      loose_.push_back({o, f, at, dim});
      const int alone = stretched(o, f).alone;
      for_each_end(o, [&](int e, value_id v) {
        const int d = c_.map.dim_of(c_.map.at(o, f), e);
        if (d != no_dim && e != alone && end != alone) add(v, d);
      });
      return true;
    }
    const std::int64_t size = before / (now / c_.map.at(o, f).size);
    if (part) {
      const std::int64_t count = greatest_common_divisor(size, count_);
      if (count < pieces_ && now == before) return false;
      count_ = count;
      parts_.insert(c_.map.ops[o].begin + f);
    }
    factors_.push_back({o, f, size});
    for_each_end(o, [&](int e, value_id v) {
      const int d = c_.map.dim_of(c_.map.at(o, f), e);
      if (d != no_dim) add(v, d);
    });
    return true;
  }
};

}  // namespace partita::core_detail
