/// Shapes and tensor types.
#pragma once

#include <cstdint>
#include <initializer_list>

#include <partita/ir/dtype.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// Maximum rank of a tensor.
inline constexpr int max_rank = 8;
static_assert(max_rank <= 8, "sets of dimensions are the bits of one byte, dimensions one byte");
/// Maximum number of elements of a tensor: fewer than 2^63 bytes for every element type.
inline constexpr std::int64_t max_elements = INT64_MAX / 16;
/// An extent that is not known before the program is traced.
inline constexpr std::int64_t dyn = -1;

/// The extents of a tensor, major to minor (row-major storage).
///
/// A structural type (all members public), so that it can be a template argument.
struct shape {
  std::int64_t extents[max_rank] = {};
  int rank = 0;

  constexpr shape() = default;
  constexpr shape(std::initializer_list<std::int64_t> list) {
    for (auto e : list) push_back(e);
  }
  /// Appends a dimension.
  constexpr void push_back(std::int64_t extent) {
    if (rank < max_rank) extents[rank] = extent;
    ++rank;  // every shape rule rejects a rank above max_rank
  }
  constexpr std::int64_t operator[](int i) const { return extents[i]; }
  constexpr std::int64_t& operator[](int i) { return extents[i]; }
  constexpr const std::int64_t* begin() const { return extents; }
  constexpr const std::int64_t* end() const { return extents + rank; }

  /// True if some extent is 0.
  constexpr bool has_no_elements() const {
    for (int i = 0; i < rank && i < max_rank; ++i)
      if (extents[i] == 0) return true;
    return false;
  }
  /// Returns the number of elements, at most `saturated`; `dyn` if an extent is dynamic.
  constexpr std::int64_t elements() const {
    std::int64_t n = 1;
    bool empty = false;
    for (int i = 0; i < rank && i < max_rank; ++i) {
      const std::int64_t extent = extents[i];
      if (extent == dyn) return dyn;
      if (extent == 0) {
        empty = true;
        continue;
      }
      std::int64_t more = 0;  // rarely calls a function: this runs for every value
      if (__builtin_mul_overflow(n, extent, &more)) more = saturating_multiply(n, extent);
      n = more;
    }
    return empty ? 0 : n;
  }
  /// True if the product of all extents, except empty and dynamic ones, is at most max_elements.
  /// (The strides of an empty tensor, and the product of any of its dimensions, then fit too.)
  constexpr bool fits() const {
    std::int64_t n = 1;
    for (int i = 0; i < rank && i < max_rank; ++i)
      if (extents[i] > 0 && __builtin_mul_overflow(n, extents[i], &n)) return false;
    return n <= max_elements;
  }
  friend constexpr bool operator==(const shape& a, const shape& b) {
    if (a.rank != b.rank) return false;
    for (int i = 0; i < a.rank; ++i)
      if (a.extents[i] != b.extents[i]) return false;
    return true;
  }
};

/// An element type and a shape.
struct tensor_type {
  dtype element = dtype::f32;
  partita::shape shape;

  /// Returns the size in bytes, at most `saturated`.
  constexpr std::int64_t bytes() const {
    return saturating_multiply(shape.elements(), size_of(element));
  }
  friend constexpr bool operator==(const tensor_type&, const tensor_type&) = default;
};

/// True if the extents may be equal: they are, or one of them is dynamic.
constexpr bool same_extent(std::int64_t a, std::int64_t b) {
  return a == b || a == dyn || b == dyn;
}
/// Returns the known one of two extents that may be equal.
constexpr std::int64_t merge_extent(std::int64_t a, std::int64_t b) { return a == dyn ? b : a; }

/// True if the shapes may be equal: same rank, and same_extent in each dimension.
constexpr bool same_shape(const shape& a, const shape& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (!same_extent(a[i], b[i])) return false;
  return true;
}

/// Prints `[64, 16]`.
constexpr text& operator<<(text& out, const shape& s) {
  out << '[';
  append_list(out, s.rank < max_rank ? s.rank : max_rank, [&](int i) {
    if (s[i] == dyn)
      out << '?';
    else
      out << s[i];
  });
  return out << ']';
}

/// Prints `tensor<64x16xf32>`, as in the paper.
constexpr text& operator<<(text& out, const tensor_type& t) {
  out << "tensor<";
  for (int i = 0; i < t.shape.rank && i < max_rank; ++i) {
    if (t.shape[i] == dyn)
      out << '?';
    else
      out << t.shape[i];
    out << 'x';
  }
  return out << name_of(t.element) << '>';
}

/// Returns the text of error S118 that follows the name of the op or input.
constexpr text too_many_elements(const tensor_type& t) {
  return concat(t, " has more than 2^59 - 1 elements, the most that a tensor can have");
}

/// Returns gcd(a, b) of two numbers that are not both 0. (std::gcd would include
/// <numeric> in every user.)
constexpr std::int64_t greatest_common_divisor(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t rest = a % b;
    a = b;
    b = rest;
  }
  return a;
}

}  // namespace partita
