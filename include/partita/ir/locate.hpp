/// Located factors: loops whose iterations depend on where their blocks start.
#pragma once

#include <cstdint>

#include <partita/ir/builder.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/span.hpp>

namespace partita {

/// One sliced dimension of an op, for a located factor: all loops over the factor together.
struct located_piece {
  int factor = 0;
  std::int64_t size = 1;   ///< number of positions, without padding
  std::int64_t block = 1;  ///< positions per block; the last blocks may include padding
};

/// An input of the iteration's program: the start of a block.
struct located_start {
  int piece = 0;  ///< index in the list of blocks
  value_id input = -1;
};

/// The argument of an op's `locate` function, which appends the ops of one iteration to a program.
///
/// Law       for blocks that start at 0, block, 2 block, ..., the results, stacked or reduced as
///           the factors state, are those of the op.
class locate_context {
 public:
  builder& b;
  span<const value_id> operands;         ///< the blocks of the operands
  span<const std::int64_t> attrs;        ///< of the op
  span<const located_piece> pieces;      ///< the sliced dimensions, in the order of the factors
  span<const tensor_type> result_types;  ///< of the blocks of the results
  vec<value_id> results;                 ///< to be filled in

  /// `row` is the op's number in the table of factors; `parameter` makes the inputs of the program.
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

  /// Returns the start of block number `i` of the list, as a scalar.
  constexpr value_id start(int i, dtype t) {
    for (const located_start& each : starts)
      if (each.piece == i && b.type(each.input).element == t) return each.input;
    starts.push_back({i, b.emit(parameter_, {}, {}, tensor_type{t, {}})});
    return starts.back().input;
  }
  vec<located_start> starts;  ///< the starts that were requested

  /// Returns the dimension of an operand (end -1 - r: of result r) along which entry `i` of the
  /// list is sliced.
  constexpr int dim(int i, int end) const { return map_.dim_of(entry(i), end); }
  constexpr const factor& entry(int i) const {
    return map_.at(row_, pieces[static_cast<std::size_t>(i)].factor);
  }
  /// Appends the op itself with other operands; returns its first result.
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
