/// Text in aligned columns.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <partita/support/checked.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita::report_detail {

/// Rows of cells. Each column except the last is as wide as its widest cell; numbers are
/// right-aligned.
class columns {
 public:
  constexpr columns& cell(const text& t, bool right = false) {
    if (next_ == widths_.size()) widths_.push_back(0);
    if (t.size() > widths_[next_]) widths_[next_] = t.size();
    cells_.push_back({t, next_++, right, false});
    return *this;
  }
  constexpr columns& number(std::int64_t n, std::string_view unit = "") {
    text figure;
    print_figure(figure, n);
    return cell(figure << unit, true);
  }
  constexpr void end_row() {
    cells_.back().last = true;
    next_ = 0;
  }
  constexpr void print(text& out, std::string_view indent = "") const {
    for (const auto& c : cells_) {
      const std::size_t blanks = widths_[c.column] - c.words.size();
      out << (c.column == 0 ? indent : std::string_view("  "));
      for (std::size_t i = 0; c.right && i < blanks; ++i) out << ' ';
      out << c.words;
      for (std::size_t i = 0; !c.right && !c.last && i < blanks; ++i) out << ' ';
      if (c.last) out << '\n';
    }
  }

 private:
  struct cell_type {
    text words;
    std::size_t column = 0;
    bool right = false, last = false;
  };
  vec<cell_type> cells_;
  vec<std::size_t> widths_;
  std::size_t next_ = 0;  ///< column
};

}  // namespace partita::report_detail
