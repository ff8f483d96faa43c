/// Lines of text in columns.
#pragma once

#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita::detail {

/// Rows of cells; all but the last column are as wide as their widest cell, numbers stand right.
class columns {
 public:
  constexpr columns& cell(const text& t, bool right = false) {
    cells_.push_back({t, right});
    return *this;
  }
  constexpr columns& number(std::int64_t n, std::string_view unit = "") {
    return cell(concat(n, unit), true);
  }
  constexpr void end_row() { ends_.push_back(cells_.size()); }
  constexpr void print(text& out, std::string_view indent = "") const {
    vec<std::size_t> widths;
    for_each([&](std::size_t column, const cell_type& c, bool) {
      if (column == widths.size()) widths.push_back(0);
      if (c.words.size() > widths[column]) widths[column] = c.words.size();
    });
    for_each([&](std::size_t column, const cell_type& c, bool last) {
      const std::size_t blanks = widths[column] - c.words.size();
      out << (column == 0 ? indent : "  ");
      for (std::size_t i = 0; c.right && i < blanks; ++i) out << ' ';
      out << c.words;
      for (std::size_t i = 0; !c.right && !last && i < blanks; ++i) out << ' ';
      if (last) out << '\n';
    });
  }

 private:
  struct cell_type {
    text words;
    bool right = false;
  };
  vec<cell_type> cells_;
  vec<std::size_t> ends_;

  template <class F>
  constexpr void for_each(const F& f) const {
    std::size_t begin = 0;
    for (std::size_t end : ends_) {
      for (std::size_t i = begin; i < end; ++i) f(i - begin, cells_[i], i + 1 == end);
      begin = end;
    }
  }
};

}  // namespace partita::detail
