/// Text for elements of arrays and their positions.
#pragma once

#include <charconv>
#include <cstdint>
#include <ostream>
#include <string_view>
#include <type_traits>

#include <partita/run/array.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// Prints enough digits to distinguish the value from every other value of its type.
inline void print_element(text& out, const array& a, std::int64_t i) {
  with_type(a.element(), [&]<class T>(std::type_identity<T>) {
    if constexpr (std::is_same_v<T, bool>) {
      out << (a.data<T>()[i] ? 1 : 0);
    } else if constexpr (std::is_integral_v<T>) {
      out << a.data<T>()[i] + T(0);  // prints a byte as a number
    } else {
      using printed = std::conditional_t<std::is_same_v<T, double>, double, float>;
      char digits[32];
      const auto end =
          std::to_chars(digits, digits + sizeof digits, static_cast<printed>(a.data<T>()[i])).ptr;
      out << std::string_view(digits, static_cast<std::size_t>(end - digits));
    }
  });
}
/// Prints `(2, 3)` for element i of a shape.
inline void print_position(text& out, const shape& s, std::int64_t i) {
  const strides by(s);
  out << '(';
  append_list(out, s.rank, [&](int d) { out << i / by[d] % s[d]; });
  out << ')';
}

}  // namespace partita::run_detail

namespace partita {

/// Prints a scalar as its value, and another array as its type and its first elements, row-major:
/// `tensor<3x8xf32> 1 2 3 4 5 6 7 8 ... (16 more)`.
inline std::ostream& operator<<(std::ostream& out, const array& a) {
  constexpr std::int64_t most = 8;
  text t;
  if (a.shape().rank > 0) t << a.type() << ' ';
  for (std::int64_t i = 0; i < a.size() && i < most; ++i) {
    t << (i > 0 ? " " : "");
    run_detail::print_element(t, a, i);
  }
  if (a.size() > most) t << " ... (" << a.size() - most << " more)";
  return out << t.view();
}

}  // namespace partita
