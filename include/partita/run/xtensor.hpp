/// Conversion of arrays to xtensor. The other direction needs no include: see array.hpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <type_traits>
#include <vector>

#if __has_include(<xtensor/containers/xarray.hpp>)
#include <xtensor/containers/xarray.hpp>
#else
#if defined(__clang__) && __clang_major__ >= 19
// Clang 19 finds two partial specialisations of old xtensor versions ambiguous; a full one decides.
#include <xtensor/xstorage.hpp>
template <>
struct xt::rebind_container<std::ptrdiff_t, xt::svector<std::size_t> > {
  using type = xt::svector<std::ptrdiff_t>;
};
#endif
#include <xtensor/xarray.hpp>
#endif

#include <partita/run/array.hpp>

namespace partita {

/// Returns the copy for `array::to_xarray<T>()`.
template <class T>
xt::xarray<T> copy_to_xarray(const array& a, std::type_identity<T>) {
  std::vector<std::size_t> extents;
  for (auto e : a.shape()) extents.push_back(static_cast<std::size_t>(e));
  typename xt::xarray<T>::shape_type shape(extents.begin(), extents.end());
  xt::xarray<T> out(shape);
  const T* from = a.data<T>();
  std::copy(from, from + a.size(), out.data());
  return out;
}

}  // namespace partita
