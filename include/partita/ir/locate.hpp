/// Located factors: loops whose iterations have to know where their pieces start.
#pragma once

#include <cstdint>

#include <partita/ir/builder.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/span.hpp>

namespace partita {

/// The loops of an op over one located factor: they cut it into pieces.
struct located_piece {
  int factor = 0;
  std::int64_t size = 1;  ///< positions in all; of a padded dimension, those that are in the source
  std::int64_t block = 1;  ///< positions of a piece; of the last ones, some may lie behind the end
};

/// An input of the program that an iteration is: where a piece starts.
struct located_start {
  int piece = 0;  ///< its place in the list of pieces
  value_id input = -1;
};

/// Handed to an op's `locate` function, which appends to a program what one iteration does.
///
/// Law       for pieces that start at 0, block, 2 block, ... the results, stacked or reduced as the
///           factors say, are those of the op.
class locate_context {
 public:
  builder& b;
  span<const value_id> operands;         ///< the pieces of the operands
  span<const std::int64_t> attrs;        ///< of the op
  span<const located_piece> pieces;      ///< what is cut, in the order of the factors
  span<const tensor_type> result_types;  ///< of the pieces of the results
  vec<value_id> results;                 ///< to be filled in

  /// The op is number `row` of a table of factors; `parameter` makes the inputs of the program.
  constexpr locate_context(builder& to, const op_def& def, const op_def& parameter,
                           const factor_table& map, int row, span<const value_id> given,
                           span<const std::int64_t> a, span<const located_piece> cut,
                           span<const tensor_type> types)
      : b(to),
        operands(given),
        attrs(a),
        pieces(cut),
        result_types(types),
        def_(def),
        parameter_(parameter),
        map_(map),
        row_(row) {}

  /// Where piece number `i` of the list starts, as a scalar.
  constexpr value_id start(int i, dtype t) {
    for (const located_start& each : starts)
      if (each.piece == i && b.type(each.input).element == t) return each.input;
    starts.push_back({i, b.emit(parameter_, {}, {}, tensor_type{t, {}})});
    return starts.back().input;
  }
  vec<located_start> starts;  ///< those that were asked for

  /// The dimension of an operand (-1 - r: of result r) that piece number `i` is cut along.
  constexpr int dim(int i, int end) const { return map_.dim_of(entry(i), end); }
  constexpr const factor& entry(int i) const {
    return map_.at(row_, pieces[static_cast<std::size_t>(i)].factor);
  }
  /// The op itself, on other operands; gives its first result.
  constexpr value_id emit(span<const value_id> given) {
    return b.emit(def_, given, attrs, result_types[0]);
  }

 private:
  const op_def& def_;
  const op_def& parameter_;
  const factor_table& map_;
  int row_;
};

}  // namespace partita
