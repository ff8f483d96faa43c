/// Functions that tactics keep.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <partita/ir/shape.hpp>

namespace partita {

class placement;

/// Chooses the placement of a value from its name and its global shape.
using placement_function = placement (*)(std::string_view name, const shape& global);

namespace schedule_detail {

/// A function of a name and a shape, or a class with a const call operator, kept as its bytes: so
/// that a tactic that captures integers can be a constexpr variable. (What it owns could not be:
/// GCC 12 takes no array of what has a destructor for a constant expression.)
class kept_function {
 public:
  constexpr kept_function() = default;
  constexpr kept_function(placement_function f) : function_(f) {}
  template <class F>
  requires(std::is_class_v<F> &&
           !std::same_as<F, kept_function>) constexpr kept_function(const F& f)
      : call_(&call_bytes<F>) {
    static_assert(std::is_trivially_copyable_v<F> && sizeof(F) <= room,
                  "partita: what a placement function captures is kept as bytes: at most 64, "
                  "without what owns memory; capture a std::string_view, a pointer or a reference");
    if constexpr (!made_anew<F>) {
      const auto bytes = std::bit_cast<std::array<std::byte, sizeof(F)>>(f);
      for (std::size_t i = 0; i < sizeof(F); ++i) bytes_[i] = bytes[i];
    }
  }

  constexpr placement operator()(std::string_view name, const shape& global) const;

 private:
  static constexpr std::size_t room = 64;
  /// Has it no bytes that tell it from others?
  template <class F>
  static constexpr bool made_anew = std::is_empty_v<F>&& std::is_default_constructible_v<F>;
  using bytes_caller = placement (*)(const kept_function&, std::string_view, const shape&);

  placement_function function_ = nullptr;
  bytes_caller call_ = nullptr;
  std::byte bytes_[room] = {};

  template <class F>
  static constexpr placement call_bytes(const kept_function& k, std::string_view name,
                                        const shape& global);
};

}  // namespace schedule_detail
}  // namespace partita
