/// Checks that no single op reports, and arithmetic of extents, shared by the building blocks.
#pragma once

#include <string_view>
#include <type_traits>

#include <partita/dsl/ops.hpp>

namespace partita::nn::detail {

/// Returns x after a check of the operands' types. Static types are checked while compiling, the
/// rest while tracing. `Check` is a captureless callable (error, types); extents may be `dyn`.
template <class Check, Tensor X, Tensor... Others>
constexpr auto checked(const Check&, const X& x, const Others&... others) {
  return partita::dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) {
        tensor_type types[1 + sizeof...(Others)];
        for (std::size_t i = 0; i <= sizeof...(Others) && !b.failed(); ++i) types[i] = b.type(v[i]);
        if (!b.failed()) Check{}(b.p.error, types);
        return v[0];
      },
      x, others...);
}

/// Opens a scope for the ops of an nn function, for reports and errors (see `scope`).
class in_scope {
 public:
  template <class... Xs>
  constexpr explicit in_scope(std::string_view name, const Xs&... xs) {
    const auto look = [&]<class X>(const X& x) {
      if constexpr (Tensor<X> && X::is_valid)
        if (b_ == nullptr) b_ = x.context();
    };
    (look(xs), ...);
    if (b_ != nullptr) b_->enter_place(name);
  }
  constexpr ~in_scope() {
    if (b_ != nullptr) b_->leave_place();
  }
  in_scope(const in_scope&) = delete;
  in_scope& operator=(const in_scope&) = delete;

 private:
  builder* b_ = nullptr;
};

/// An extent of 1, for each number of a pack.
template <int>
using one = extent<1>;
/// Returns a / b, static if both are.
template <std::int64_t A, std::int64_t B>
constexpr auto quotient(extent<A> a, extent<B> b) {
  constexpr bool is_static = A != dyn && B != dyn && B != 0;
  return extent < is_static ? A / (is_static ? B : 1)
                            : dyn > {b.value() == 0 ? 0 : a.value() / b.value()};
}
/// True if a is a multiple of b, or if one of them is dynamic.
constexpr bool divides(std::int64_t b, std::int64_t a) {
  return a == dyn || b == dyn || (b > 0 && a % b == 0);
}

/// The type for statistics and angles: binary64 for f64, binary32 for other types.
template <Tensor X>
using wide = std::conditional_t<dtype_of<typename X::element> == dtype::f64, double, float>;

/// Returns the square root by Newton's method, in constant evaluation too; 0 if x is not positive.
constexpr double square_root(double x) {
  if (!(x > 0)) return 0;
  double root = x < 1 ? 1 : x;
  for (double next = (root + x / root) / 2; next < root; next = (root + x / root) / 2) root = next;
  return root;
}
/// Returns 1 / sqrt(x), or 1 if x is not positive: an extent after a failed trace.
constexpr double inverse_square_root(double x) { return x > 0 ? 1 / square_root(x) : 1; }

}  // namespace partita::nn::detail
