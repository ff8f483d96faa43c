/// Axes of pictures: positions of their marks, and the colours of what is shown.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/memory.hpp>
#include <partita/ir/collective.hpp>
#include <partita/support/text.hpp>

namespace partita::report_detail {

/// The distance between marks for at most `most` marks up to `end`: 1, 2 or 5 times a power of ten.
constexpr double decimal_step(double end, int most) {
  if (!(end > 0 && end < 1e300)) return 1;
  double step = 1;
  while (step * most > end) step /= 10;
  for (;; step *= 10)
    for (const double times : {1., 2., 5.})
      if (step * times * most >= end) return step * times;
}
/// The same as a power of two, for bytes.
constexpr double binary_step(double end, int most) {
  double step = 1;
  while (step * most < end) step *= 2;
  return step;
}
/// Removes trailing zeros: `64 GiB` from `64.0 GiB`.
constexpr text round_text(std::string_view s) {
  const std::size_t point = s.find('.'), unit = s.find(' ');
  if (point == s.npos) return s;
  std::size_t end = unit;
  while (end > point && (s[end - 1] == '0' || s[end - 1] == '.')) --end;
  return concat(s.substr(0, end), s.substr(unit));
}

// Colours that are distinguishable on light and on dark backgrounds.

constexpr std::string_view color_of(memory_kind k) {
  constexpr std::string_view colors[] = {"#4e79a7", "#76b7b2", "#9c9490", "#f28e2b",
                                         "#e15759", "#b07aa1", "#edc948"};
  return colors[static_cast<int>(k)];
}
constexpr std::string_view color_of(collective::kind_type k) {
  constexpr std::string_view colors[] = {"#59a14f", "#e15759", "#f28e2b",
                                         "#b07aa1", "#edc948", "#9c9490"};
  return colors[static_cast<int>(k)];
}
inline constexpr std::string_view nested_color = "#9c755f", product_color = "#4e79a7",
                                  kernel_color = "#a0cbe8", exposed_color = "#e15759",
                                  hidden_color = "#f5b7b1";

}  // namespace partita::report_detail
