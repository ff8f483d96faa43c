/// Reads orders of calls from text.
#pragma once

#include <initializer_list>
#include <string_view>

#include <partita/mpmd/pipeline_order.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

namespace mpmd_detail {

/// Reads a call: `F3`, `B3`, `W3` or `T2_3`, optionally followed by a dot and a stage. False if the
/// text is not a call.
constexpr bool read_call(std::string_view word, fragment_call& c) {
  scanner in(word.substr(1));
  std::int64_t number = 0;
  const auto counted = [&](int& to) {
    if (!in.integer(number) || number < 0 || number > 1 << 30) return false;
    to = static_cast<int>(number);
    return true;
  };
  c = {.stage = -1};
  if (word[0] == 'B' || word[0] == 'W') c.transposed = 1;
  if (word[0] == 'W') c.part = fragment_part::weight;
  if (word[0] == 'T' && !(counted(c.transposed) && in.accept("_"))) return false;
  if (std::string_view("FBWT").find(word[0]) == std::string_view::npos) return false;
  if (!counted(c.microbatch)) return false;
  if (in.accept(".") && !counted(c.stage)) return false;
  return in.position() + 1 == word.size();
}

}  // namespace mpmd_detail

/// Reads a table in the syntax of `order_of` (without merged units), with one text for each mesh:
/// `{"F0 F1 B0 B1", "F0 B0 F1 B1"}`. `B0` is a backward, or the first part of a split one; `W0` is
/// the second part, and `T2_0` a higher derivative. If a mesh has several stages, they follow a
/// dot: `F0.2`.
///
/// Errors    O013 a word is not a call: kept in the table, and reported by its user
constexpr order_table read_order_table(std::initializer_list<std::string_view> rows) {
  order_table table;
  int row = 0;
  for (std::string_view rest : rows) {
    table.rows.push_back({});
    while (!rest.empty()) {
      const std::size_t end = rest.find(' ');
      const std::string_view word = rest.substr(0, end);
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
      if (word.empty()) continue;
      fragment_call c;
      if (!mpmd_detail::read_call(word, c))
        table.error.record("O013", "order: row ", row, " has \"", word,
                           "\", which is not a call; write F, B or W with a microbatch, like F3, "
                           "and after a dot the stage if a mesh has several, like F3.1");
      table.rows.back().push_back(c);
    }
    ++row;
  }
  return table;
}

}  // namespace partita
