/// Writes windows, and finds those that XLA accepts.
#pragma once

#include <partita/op/window.hpp>
#include <partita/stablehlo/module_text.hpp>

namespace partita::stablehlo_detail {

constexpr bool any_empty(const op::windows& w) {
  for (int d = 0; d < w.rank; ++d)
    if (w.at[d].size == 0) return true;
  return false;
}
/// True for windows that XLA accepts: they have elements, and their padding is not negative.
constexpr bool are_usual(const op::windows& w) {
  for (int d = 0; d < w.rank; ++d)
    if (w.at[d].low < 0 || w.at[d].high < 0) return false;
  return !any_empty(w);
}
/// The padding and the dilation of the operand, in the form of `pad`.
struct padding_lists {
  std::int64_t low[max_rank] = {}, high[max_rank] = {}, interior[max_rank] = {};
  std::size_t rank;

  constexpr explicit padding_lists(const op::windows& w) : rank(static_cast<std::size_t>(w.rank)) {
    for (int d = 0; d < w.rank; ++d) {
      low[d] = w.at[d].low;
      high[d] = w.at[d].high;
      interior[d] = w.at[d].base_dilation - 1;
    }
  }
  constexpr span<const std::int64_t> lows() const { return {low, rank}; }
  constexpr span<const std::int64_t> highs() const { return {high, rank}; }
  constexpr span<const std::int64_t> interiors() const { return {interior, rank}; }
};
constexpr op::windows without_padding(op::windows w) {
  for (int d = 0; d < w.rank; ++d) {
    w.at[d].low = w.at[d].high = 0;
    w.at[d].base_dilation = 1;
  }
  return w;
}

/// Writes `window_dimensions = array<i64: 1, 2>, ...`.
constexpr void write_windows(text& out, const op::windows& w) {
  const auto list = [&](std::string_view name, auto each) {
    out << name << " = array<i64";
    for (int d = 0; d < w.rank; ++d) out << (d > 0 ? ", " : ": ") << each(w.at[d]);
    out << ">, ";
  };
  list("base_dilations", [](const window_dim& d) { return d.base_dilation; });
  out << "padding = dense<";
  if (w.rank > 0) out << '[';
  append_list(out, w.rank,
              [&](int d) { out << '[' << w.at[d].low << ", " << w.at[d].high << ']'; });
  if (w.rank > 0) out << ']';
  out << "> : tensor<" << w.rank << "x2xi64>, ";
  list("window_dilations", [](const window_dim& d) { return d.dilation; });
  list("window_dimensions", [](const window_dim& d) { return d.size; });
  out << "window_strides = array<i64";
  for (int d = 0; d < w.rank; ++d) out << (d > 0 ? ", " : ": ") << w.at[d].stride;
  out << '>';
}

}  // namespace partita::stablehlo_detail
