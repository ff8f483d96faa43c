/// Local values whose elements are known elements of the source.
#pragma once

#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// The kind of an element that a view shows: in the global tensor, or padding that is a known
/// number or unknown.
enum class standing : std::uint8_t { inside, number, unknown };

/// A local value that equals a view of a value of the source.
struct seen_value {
  value_id whole = -1;            ///< of the source; -1: unknown
  const view* seen = nullptr;     ///< of that value
  const meanings* all = nullptr;  ///< states which scalars the view shows as padding
  unsigned alike = 0;  ///< dimensions of the global value along which it repeats, as bits

  /// The element of the global value, or the bits of a number. `coordinate(axis)` is that of the
  /// device.
  template <class F>
  constexpr standing find(const shape& from, const shape& local, const std::int64_t* i,
                          const F& coordinate, std::int64_t* at, std::int64_t& bits) const {
    for (int d = 0; d < seen->dims; ++d) at[d] = seen->start[d];
    std::int64_t rest[max_rank] = {}, step[max_rank];
    for (int d = 0; d < local.rank; ++d) step[d] = local.extents[d], rest[d] = i[d];
    for (int k = 0; k < seen->count; ++k) {
      const digit& each = seen->digits[k];
      std::int64_t n = 0;
      if (each.owner < 0) {
        n = coordinate(axis_of(each));
      } else {
        step[each.owner] /= each.extent;
        n = rest[each.owner] / step[each.owner];
        rest[each.owner] %= step[each.owner];
      }
      if (each.dim >= 0) at[each.dim] += n * each.stride;
    }
    standing stands = standing::inside;
    for (int d = 0; d < seen->dims; ++d) {
      if (outside::turns(seen->beyond[d])) {
        const std::int64_t n = outside::modulus(seen->beyond[d], from.extents[d]);
        at[d] = (at[d] % n + n) % n;
      }
      const bool inside = at[d] >= 0 && at[d] < from.extents[d];
      if (!inside && stands != standing::number) stands = beyond(d, bits);
      if ((alike >> d & 1u) != 0) at[d] = 0;
    }
    return stands;
  }

 private:
  constexpr standing beyond(int d, std::int64_t& bits) const {
    const std::int64_t filling = outside::filling(seen->beyond[d]);
    if (filling < outside::first_value) return standing::unknown;
    const operand_term& scalar = all->scalars[static_cast<int>(filling - outside::first_value)];
    return scalar.view >= 0 && all->is_number(scalar, bits) ? standing::number : standing::unknown;
  }
};

/// Finds seen values. (For a repeated value, the positions where it repeats are used.)
class seen_values {
 public:
  constexpr seen_values(const workspace& w, const program& source, const claim_list& of_source)
      : w_(w) {
    wholes_.resize(static_cast<std::size_t>(w.all.terms.size()));
    for (value_id v = 0; v < static_cast<value_id>(source.types.size()); ++v)
      for (int c = of_source.first[v]; c >= 0; c = w.claims[c].next) add(v, w.claims[c], source);
  }
  /// All results of ops with operands, at the top level of a local program.
  constexpr vec<seen_value> find(const program& local, const claim_list& of_local) const {
    vec<seen_value> list;
    list.resize(local.types.size());
    for (value_id v = 0; v < static_cast<value_id>(list.size()); ++v) {
      if (local.op(local.producer(v)).operand_count == 0) continue;
      for (int c = of_local.first[v]; c >= 0 && list[v].whole < 0; c = w_.claims[c].next)
        list[v] = find(w_.claims[c], local.type(v));
    }
    return list;
  }

 private:
  struct whole {
    value_id value = -1;
    unsigned alike = 0;
  };
  const workspace& w_;
  vec<whole> wholes_;  ///< by term

  constexpr bool is_plain(const claim& c) const {
    return !c.sums.any() && c.scale == 1 && !w_.all.terms.is_positions(c.term);
  }
  /// Adds a value that is all of a term, or one position of it along dimensions in which all are
  /// equal.
  constexpr void add(value_id v, const claim& c, const program& source) {
    if (!is_plain(c) || wholes_[c.term].value >= 0) return;
    const shape& s = w_.all.terms[c.term].shape;
    if (s != source.type(v).shape || w_.all.terms[c.term].element != source.type(v).element) return;
    view plain(s);
    const int own = w_.all.terms[c.term].own;
    unsigned alike = 0;
    for (int d = 0; d < s.rank; ++d)
      if (own >= 0 && s.extents[d] > 1 && w_.all.views[own].repeats(d)) {
        plain.drop(d);
        alike |= 1u << d;
      }
    plain.normalize(s);
    if (w_.all.views[c.view] == plain) wholes_[c.term] = {v, alike};
  }
  constexpr seen_value find(const claim& c, const tensor_type& t) const {
    if (!is_plain(c) || wholes_[c.term].value < 0 || w_.all.terms[c.term].element != t.element)
      return {};
    const view& v = w_.all.views[c.view];
    std::int64_t extents[max_rank];
    for (int d = 0; d < t.shape.rank; ++d) extents[d] = 1;
    for (int k = 0; k < v.count; ++k) {
      const digit& each = v.digits[k];
      if (each.owner < 0
              ? axis_of(each) >= w_.mesh.rank || w_.mesh.size(axis_of(each)) != each.extent
              : each.owner >= t.shape.rank)
        return {};
      if (each.owner >= 0) extents[each.owner] *= each.extent;
    }
    for (int d = 0; d < t.shape.rank; ++d)
      if (extents[d] != 1 && extents[d] != t.shape.extents[d]) return {};
    return {wholes_[c.term].value, &v, &w_.all, wholes_[c.term].alike};
  }
};

}  // namespace partita::prove_detail
