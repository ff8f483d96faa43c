/// The ops as functions of typed tensors: the language in which models are written.
///
/// Every function checks shapes and element types where the model is written, by the shape rule of
/// its op (see op/ for shapes, errors and tile maps).
#pragma once

#include <string_view>

#include <partita/dsl/contraction.hpp>
#include <partita/dsl/convolution.hpp>
#include <partita/dsl/elementwise.hpp>
#include <partita/dsl/gather.hpp>
#include <partita/dsl/linalg.hpp>
#include <partita/dsl/movement.hpp>
#include <partita/dsl/order.hpp>
#include <partita/dsl/random.hpp>
#include <partita/dsl/reduction.hpp>

namespace partita {

/// Returns x and stops reverse mode: no cotangent passes through it.
template <Tensor X>
constexpr auto stop_gradient(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::stop_gradient(b, v[0]); }, x);
}
/// Copies x to another memory. `place<memory_space::pinned_host>(x)` offloads it to the host, where
/// it uses no device memory; `place<memory_space::device>(y)` copies it back.
template <memory_space Where, Tensor X>
constexpr auto place(const X& x) {
  return dsl_detail::apply(
      [](builder& b, const value_id* v, const shape&) { return ops::place(b, v[0], Where); }, x);
}

}  // namespace partita
