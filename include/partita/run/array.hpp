/// Arrays: the arguments and results of programs at run time.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include <partita/ir/shape.hpp>
#include <partita/run/buffer.hpp>

namespace partita {

class array;

namespace run_detail {

/// Kernels work on groups of this many elements, so that the last elements of an array are computed
/// by the same instructions as the others: a result never depends on its position.
inline constexpr std::int64_t lanes = 16;

/// Converts an index to the index type of standard containers.
constexpr std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

constexpr std::int64_t round_up(std::int64_t n, std::int64_t unit) {
  return (n + unit - 1) / unit * unit;
}
/// Returns the bytes of a buffer for this type: full groups of lanes, full cache lines.
constexpr std::int64_t padded_bytes(const tensor_type& t) {
  if (t.shape.elements() > max_elements - lanes) return saturated;  // more than any machine has
  return round_up(round_up(t.shape.elements(), lanes) * size_of(t.element), alignment);
}

/// The element type that stores a C++ number: integers by size, other types unchanged.
template <class T>
struct stored_type {
  using type = T;
};
template <std::signed_integral T>
struct stored_type<T> {
  using type = std::conditional_t<sizeof(T) == 4, std::int32_t,
                                  std::conditional_t<sizeof(T) == 8, std::int64_t, T>>;
};
template <std::unsigned_integral T>
requires(!std::same_as<T, bool>) struct stored_type<T> {
  using type = std::conditional_t<sizeof(T) == 4, std::uint32_t,
                                  std::conditional_t<sizeof(T) == 8, std::uint64_t, T>>;
};
template <class T>
using stored = typename stored_type<std::remove_cv_t<T>>::type;

template <class T>
concept Element = requires {
  dtype_of_type<stored<T>>::value;
};

/// An xtensor container or expression, recognised without including xtensor. Iteration is
/// row-major.
template <class E>
concept ArrayLike = !std::same_as<E, array> && requires(const E& e) {
  typename E::value_type;
  e.dimension();
  e.shape();
  e.begin();
  e.end();
}
&&Element<typename E::value_type>;

/// Calls `f(std::type_identity<T>{})` for the type T in which elements of type `t` are computed:
/// binary32 for 16-bit floats, else their own type.
template <class F>
constexpr decltype(auto) with_computed_type(dtype t, F&& f) {
  if (t == dtype::f64) return f(std::type_identity<double>{});
  if (t == dtype::i8) return f(std::type_identity<std::int8_t>{});
  if (t == dtype::i16) return f(std::type_identity<std::int16_t>{});
  if (t == dtype::i32) return f(std::type_identity<std::int32_t>{});
  if (t == dtype::i64) return f(std::type_identity<std::int64_t>{});
  if (t == dtype::u8) return f(std::type_identity<std::uint8_t>{});
  if (t == dtype::u16) return f(std::type_identity<std::uint16_t>{});
  if (t == dtype::u32) return f(std::type_identity<std::uint32_t>{});
  if (t == dtype::u64) return f(std::type_identity<std::uint64_t>{});
  if (t == dtype::boolean) return f(std::type_identity<bool>{});
  return f(std::type_identity<float>{});
}
/// Calls `f(std::type_identity<T>{})` for the element type T of `t`.
template <class F>
constexpr decltype(auto) with_type(dtype t, F&& f) {
  if (t == dtype::bf16) return f(std::type_identity<bf16>{});
  if (t == dtype::f16) return f(std::type_identity<f16>{});
  return with_computed_type(t, f);
}

/// Reads an index of any integer type. A value that int64 cannot represent becomes its maximum,
/// which is out of bounds of every dimension.
inline std::int64_t index_at(dtype t, const std::byte* indices, std::int64_t i) {
  return with_computed_type(t, [&]<class T>(std::type_identity<T>) {
    const T v = reinterpret_cast<const T*>(indices)[i];
    if constexpr (std::is_same_v<T, std::uint64_t>)
      if (v > INT64_MAX) return INT64_MAX;
    return static_cast<std::int64_t>(v);
  });
}

}  // namespace run_detail

/// A tensor in memory: row-major, 64-byte aligned, padded; a bool takes one byte.
///
/// Copies share the buffer and cost nothing. An array that was returned to the user never changes:
/// `mutable_data` first detaches a shared buffer.
class array {
 public:
  /// Makes a scalar f32 zero.
  array() : array(tensor_type{}) {}
  /// Makes an array of zeros.
  explicit array(const tensor_type& type)
      : array(type, run_detail::allocate(run_detail::padded_bytes(type))) {
    std::memset(data_.get(), 0, static_cast<std::size_t>(run_detail::padded_bytes(type)));
  }
  /// Makes a view of a buffer of at least `run_detail::padded_bytes(type)` bytes.
  array(const tensor_type& type, run_detail::buffer data) : type_(type), data_(std::move(data)) {}

  /// Makes a scalar (rank 0).
  template <run_detail::Element T>
  requires(std::is_arithmetic_v<T> || std::same_as<T, bf16> || std::same_as<T, f16>) array(T scalar)
      : array(tensor_type{dtype_of<run_detail::stored<T>>, {}}) {
    *mutable_data<run_detail::stored<T>>() = static_cast<run_detail::stored<T>>(scalar);
  }
  /// Copies an xtensor container or the value of an xtensor expression.
  template <run_detail::ArrayLike E>
  array(const E& e) : array(type_like(e)) {
    auto* out = mutable_data<run_detail::stored<typename E::value_type>>();
    for (auto i = e.begin(), end = e.end(); i != end; ++i)
      *out++ = static_cast<run_detail::stored<typename E::value_type>>(*i);
  }

  const tensor_type& type() const { return type_; }
  const partita::shape& shape() const { return type_.shape; }
  /// Returns the element type.
  dtype element() const { return type_.element; }
  /// Returns the number of elements.
  std::int64_t size() const { return type_.shape.elements(); }
  /// Returns the elements as bytes, row-major.
  const std::byte* bytes() const { return data_.get(); }

  /// Returns the elements, row-major.
  ///
  /// Errors    R003 the array has another element type
  template <class T>
  const T* data() const {
    need(dtype_of<T>);
    return reinterpret_cast<const T*>(data_.get());
  }
  /// Returns the elements for writing; copies them first if another array shares them.
  ///
  /// Errors    R003 the array has another element type
  template <class T>
  T* mutable_data() {
    need(dtype_of<T>);
    return reinterpret_cast<T*>(mutable_bytes());
  }
  /// Returns the bytes for writing; copies them first if another array shares them.
  std::byte* mutable_bytes() {
    if (data_.use_count() > 1) {
      run_detail::buffer mine = run_detail::allocate(run_detail::padded_bytes(type_));
      std::memcpy(mine.get(), data_.get(),
                  static_cast<std::size_t>(run_detail::padded_bytes(type_)));
      data_ = std::move(mine);
    }
    return data_.get();
  }
  /// Returns the only element.
  ///
  /// Errors    R002 not exactly one element, R003 the array has another element type
  template <class T>
  T item() const {
    if (size() != 1)
      throw error(concat("R002 array: item() needs one element; the shape is ", type_.shape));
    return *data<T>();
  }
  /// Returns the same elements in another shape of the same size.
  ///
  /// Cost      none: the result shares the buffer
  /// Errors    R002 the sizes differ
  array reshaped(const partita::shape& to) const {
    if (to.elements() != size())
      throw error(concat("R002 array: shape ", type_.shape, " does not reshape to ", to));
    return array({type_.element, to}, data_);
  }
  /// Returns a copy as `xt::xarray<T>`; needs `partita/run/xtensor.hpp`.
  template <class T>
  auto to_xarray() const {
    return copy_to_xarray(*this, std::type_identity<T>{});
  }

 private:
  template <class E>
  static tensor_type type_like(const E& e) {
    tensor_type t{dtype_of<run_detail::stored<typename E::value_type>>, {}};
    for (std::size_t i = 0; i < e.dimension(); ++i)
      t.shape.push_back(static_cast<std::int64_t>(e.shape()[i]));
    if (t.shape.rank > max_rank)
      throw error(
          concat("R002 array: rank ", t.shape.rank, "; at most ", max_rank, " is supported"));
    return t;
  }
  void need(dtype t) const {
    if (t != type_.element)
      throw error(concat("R003 array: the element type is ", name_of(type_.element), ", not ",
                         name_of(t), "; use as_type"));
  }
  tensor_type type_;
  run_detail::buffer data_;
};

}  // namespace partita
