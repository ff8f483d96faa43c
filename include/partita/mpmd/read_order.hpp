/// Orders of calls from text.
#pragma once

#include <initializer_list>
#include <string_view>

#include <partita/mpmd/pipeline_order.hpp>
#include <partita/support/scanner.hpp>

namespace partita {

namespace mpmd_detail {

/// `F3`, `B3`, `W3`, `T2_3`; behind them a dot and a stage, or nothing. False: it is no call.
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

/// A table of texts as `order_of` shows them (where no units are merged), one for each mesh: `{"F0
/// F1 B0 B1", "F0 B0 F1 B1"}`. `W0` is the second part of a backward, `T2_0` a further derivative;
/// where a mesh has several stages they say which: `F0.2`. `B0` is the first part of a backward,
/// where it has two.
///
/// Errors    O013 a word is no call: kept in the table, and told by what takes it
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
