/// Typed handles to values of a program that is being traced.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>
#include <utility>

#include <partita/ir/builder.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

/// A C++ type that tensors can have as element type (see dtype.hpp).
template <class T>
concept ElementType = requires {
  dtype_of_type<T>::value;
};

/// An extent: static, or (`dyn`) known at trace time. `dim<I>(x)` returns one.
template <std::int64_t N>
struct extent {
  constexpr extent() = default;
  constexpr extent(std::int64_t) {}
  static constexpr std::int64_t value() { return N; }
};
template <>
struct extent<dyn> {
  std::int64_t size = 0;
  constexpr extent() = default;
  constexpr extent(std::int64_t s) : size(s) {}
  constexpr std::int64_t value() const { return size; }
};

/// A tensor of the program being traced, or (unbound) the description of a future input.
///
/// Extents are static or `dyn`, as in `std::mdspan`; element types are those of dtype.hpp. Copies
/// refer to the same value: `h + h` uses one `h`.
template <ElementType T, std::int64_t... Extents>
class tensor {
 public:
  static_assert(sizeof...(Extents) <= max_rank, "partita: a tensor has at most 8 dimensions");
  using element = T;
  static constexpr int rank = static_cast<int>(sizeof...(Extents));
  static constexpr tensor_type static_type{dtype_of<T>, partita::shape{Extents...}};
  static constexpr bool is_valid = true;

  /// Creates an unbound tensor with the given dynamic extents, in order.
  template <std::integral... Dynamic>
  requires(sizeof...(Dynamic) ==
           ((Extents == dyn ? 1 : 0) + ... + 0)) constexpr tensor(Dynamic... dynamic)
      : type_(static_type) {
    const std::int64_t given[sizeof...(Dynamic) + 1] = {static_cast<std::int64_t>(dynamic)..., 0};
    int next = 0;
    for (int d = 0; d < rank; ++d)
      if (static_type.shape[d] == dyn) type_.shape[d] = given[next++];
  }
  constexpr tensor() requires(((Extents == dyn ? 1 : 0) + ... + 0) > 0) : type_(static_type) {}
  /// Creates a handle to value `v` of a trace.
  constexpr tensor(builder* b, value_id v) : builder_(b), id_(v), type_(static_type) {
    if (v >= 0) type_ = b->type(v);
  }

  /// Type with the actual extents (the static ones if the trace failed).
  constexpr const tensor_type& type() const { return type_; }
  constexpr const partita::shape& shape() const { return type_.shape; }
  constexpr value_id id() const { return id_; }
  constexpr builder* context() const { return builder_; }

 private:
  builder* builder_ = nullptr;
  value_id id_ = -1;
  tensor_type type_;
};

/// The id of a tensor that follows from a reported error.
inline constexpr value_id poisoned = -2;

/// The result of an op whose error has been reported. Any op accepts it and returns it again, and
/// it converts to any tensor, so that one mistake causes one error.
struct invalid_tensor {
  template <ElementType T, std::int64_t... Extents>
  constexpr operator tensor<T, Extents...>() const {
    return tensor<T, Extents...>(nullptr, poisoned);
  }
  static constexpr bool is_valid = false;
  static constexpr int rank = 0;
  using element = float;
  static constexpr tensor_type static_type{};
  constexpr builder* context() const { return nullptr; }
  constexpr value_id id() const { return poisoned; }
  constexpr partita::shape shape() const { return {}; }
};

template <class T>
struct is_tensor : std::false_type {};
template <class T, std::int64_t... E>
struct is_tensor<tensor<T, E...>> : std::true_type {};
template <>
struct is_tensor<invalid_tensor> : std::true_type {};

/// A `tensor`, or the result of an op whose error has been reported.
template <class T>
concept Tensor = is_tensor<std::remove_cvref_t<T>>::value;
/// A plain number, which becomes a scalar with the other operand's element type.
template <class T>
concept Number = std::is_arithmetic_v<T>;

template <dtype D>
struct element_of_dtype;
template <>
struct element_of_dtype<dtype::f32> {
  using type = float;
};
template <>
struct element_of_dtype<dtype::f64> {
  using type = double;
};
template <>
struct element_of_dtype<dtype::bf16> {
  using type = bf16;
};
template <>
struct element_of_dtype<dtype::f16> {
  using type = f16;
};
template <>
struct element_of_dtype<dtype::i32> {
  using type = std::int32_t;
};
template <>
struct element_of_dtype<dtype::i64> {
  using type = std::int64_t;
};
template <>
struct element_of_dtype<dtype::i8> {
  using type = std::int8_t;
};
template <>
struct element_of_dtype<dtype::i16> {
  using type = std::int16_t;
};
template <>
struct element_of_dtype<dtype::u8> {
  using type = std::uint8_t;
};
template <>
struct element_of_dtype<dtype::u16> {
  using type = std::uint16_t;
};
template <>
struct element_of_dtype<dtype::u32> {
  using type = std::uint32_t;
};
template <>
struct element_of_dtype<dtype::u64> {
  using type = std::uint64_t;
};
template <>
struct element_of_dtype<dtype::boolean> {
  using type = bool;
};

namespace dsl_detail {
template <tensor_type Type,
          class = std::make_index_sequence<static_cast<std::size_t>(Type.shape.rank)>>
struct tensor_of_type;
template <tensor_type Type, std::size_t... I>
struct tensor_of_type<Type, std::index_sequence<I...>> {
  using type = tensor<typename element_of_dtype<Type.element>::type, Type.shape.extents[I]...>;
};
}  // namespace dsl_detail

/// The tensor class of a static type.
template <tensor_type Type>
using tensor_of = typename dsl_detail::tensor_of_type<Type>::type;

/// Returns the extent of dimension I, static if the tensor's is.
template <int I, Tensor X>
constexpr auto dim(const X& x) {
  if constexpr (!X::is_valid) {
    return extent<1>{};
  } else {
    static_assert(I < X::rank, "partita: dim<I>(x): the tensor has fewer dimensions");
    return extent<X::static_type.shape.extents[I]>{x.shape()[I]};
  }
}

/// A list of dimensions as a type: `axes<0, 2>{}`.
template <int... D>
struct axes {
  static constexpr std::int64_t values[sizeof...(D) + 1] = {D..., 0};
  static constexpr std::size_t size = sizeof...(D);
  /// Returns the dimensions.
  static constexpr ops::ints list() { return {values, size}; }
};

}  // namespace partita
