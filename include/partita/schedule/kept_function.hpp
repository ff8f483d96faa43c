/// Functions stored in tactics.
#pragma once

#include <array>
#include <bit>
#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <partita/ir/shape.hpp>
#include <partita/support/static_error.hpp>
#include <partita/support/text.hpp>

namespace partita {

class placement;

/// Chooses the placement of a value from its name and its global shape.
using placement_function = placement (*)(std::string_view name, const shape& global);

namespace schedule_detail {

/// Maximum number of bytes of a stored function.
inline constexpr std::size_t most_captured = 64;

template <class F>
inline constexpr bool keeps = std::is_trivially_copyable_v<F> && sizeof(F) <= most_captured;

/// The reason why a placement function cannot be stored; empty if it can.
template <class F>
class capture_error {
 public:
  constexpr capture_error() {
    text t;
    if (!std::is_trivially_copyable_v<F>)
      t << "S031 placement function: it captures an object that owns memory or cannot be copied as "
           "bytes; "
           "capture a std::string_view, a pointer or a reference";
    else if (!keeps<F>)
      t << "S031 placement function: it captures " << sizeof(F) << " bytes, at most "
        << most_captured << " are allowed; capture a pointer or a reference";
    for (std::size_t i = 0; i < t.size() && i + 1 < sizeof chars_; ++i) chars_[i] = t.view()[i];
  }
  constexpr std::string_view view() const { return chars_; }

 private:
  char chars_[192] = {};
};
template <class F>
inline constexpr capture_error<F> capture_error_of;
template <class F>
struct capture_message {
  constexpr std::string_view operator()() const { return capture_error_of<F>.view(); }
};

/// A function of a name and a shape, or a class with a const call operator, stored as bytes. A
/// tactic that captures integers can then be a constexpr variable. (It could not own memory: GCC 12
/// does not accept an array of elements with destructors as a constant expression.)
///
/// Errors    S031 the captures cannot be stored
class kept_function {
 public:
  constexpr kept_function() = default;
  constexpr kept_function(placement_function f) : function_(f) {}
  template <class F>
  requires(std::is_class_v<F> &&
           !std::same_as<F, kept_function>) constexpr kept_function(const F& f) {
    if constexpr (keeps<F>) {
      call_ = &call_bytes<F>;
      keep(f);
    } else {
      report_static_error<capture_message<F>>();
    }
  }

  constexpr placement operator()(std::string_view name, const shape& global) const;

 private:
  /// True if the function has no state, so that it can be default-constructed when it is called.
  template <class F>
  static constexpr bool made_anew = std::is_empty_v<F>&& std::is_default_constructible_v<F>;
  using bytes_caller = placement (*)(const kept_function&, std::string_view, const shape&);

  placement_function function_ = nullptr;
  bytes_caller call_ = nullptr;
  std::byte bytes_[most_captured] = {};

  template <class F>
  constexpr void keep(const F& f) {
    if constexpr (!made_anew<F>) {
      const auto bytes = std::bit_cast<std::array<std::byte, sizeof(F)>>(f);
      for (std::size_t i = 0; i < sizeof(F); ++i) bytes_[i] = bytes[i];
    }
  }
  template <class F>
  static constexpr placement call_bytes(const kept_function& k, std::string_view name,
                                        const shape& global);
};

}  // namespace schedule_detail
}  // namespace partita
