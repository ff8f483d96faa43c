/// A direction of the picture of blocks: the sizes of nested blocks, and their places.
#pragma once

#include <cstdint>

#include <partita/ir/shape.hpp>
#include <partita/support/vec.hpp>

namespace partita::report_detail {

/// A direction of the picture, to the right or down, with the dimensions that are sharded along it,
/// outermost first. Blocks of inner dimensions are drawn inside those of outer ones.
///
/// If there are too many blocks, the first ones and the last one are drawn.
struct direction {
  struct level {
    int dim = 0;
    std::int64_t pieces = 1, drawn = 1;
    double stride = 0, size = 0;  ///< of one block and of all of them, in pixels

    constexpr std::int64_t piece(std::int64_t i) const { return i + 1 == drawn ? pieces - 1 : i; }
    constexpr bool left_out() const { return drawn < pieces; }
    constexpr double at(std::int64_t i) const {
      return static_cast<double>(i) * stride + (left_out() && i + 1 == drawn ? gap : 0);
    }
  };
  static constexpr double gap = 18;
  vec<level> levels;

  /// Computes the sizes; `cell` is the size of the innermost block.
  constexpr void measure(double cell) {
    double between = 0, inner = cell;
    for (std::size_t i = levels.size(); i-- > 0; between += 8) {
      level& l = levels[i];
      l.stride = inner + between;
      l.size = static_cast<double>(l.drawn) * l.stride - between + (l.left_out() ? gap : 0);
      inner = l.size;
    }
  }
  constexpr double size(double cell) const { return levels.empty() ? cell : levels[0].size; }
  /// Calls f(level, place, index by level) for each block of each level that is drawn.
  template <class F>
  constexpr void for_each(const F& f) const {
    std::int64_t index[max_rank] = {};
    walk(f, 0, 0, index);
  }

 private:
  template <class F>
  constexpr void walk(const F& f, std::size_t depth, double place,
                      std::int64_t (&index)[max_rank]) const {
    if (depth == levels.size()) {
      f(static_cast<int>(depth), place, index);
      return;
    }
    for (index[depth] = 0; index[depth] < levels[depth].drawn; ++index[depth]) {
      const double at = place + levels[depth].at(index[depth]);
      f(static_cast<int>(depth), at, index);
      walk(f, depth + 1, at, index);
    }
  }
};

}  // namespace partita::report_detail
