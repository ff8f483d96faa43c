/// Tile maps: how an op may be split into a loop over slices of its operands.
///
/// Source    PartIR, section 5.2.1 (tile-mapping registry)
#pragma once

#include <cstdint>
#include <initializer_list>

#include <partita/ir/shape.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// What becomes of the results of the iterations of a loop over a factor.
enum class combiner : std::uint8_t {
  stack,  ///< stacked along a dimension of the result (`#tile<d>`)
  add,    ///< summed (`#sum`)
  max,    ///< `#sum<@max>`
  min,    ///< `#sum<@min>`
  multiply,
  logical_and,  ///< of i1; of integers bit by bit
  logical_or
};

inline constexpr std::string_view combiner_names[] = {"stack",    "add", "max", "min",
                                                      "multiply", "and", "or"};
constexpr std::string_view name_of(combiner c) { return combiner_names[static_cast<int>(c)]; }

/// Dimensions are kept in one byte: a rank is at most max_rank.
inline constexpr std::int8_t no_dim = -1;

/// One entry of a tile map. It is a theorem about its op: slicing every operand that has this
/// factor, on the named dimension, and stacking or reducing the results gives the op's result.
struct factor {
  std::int64_t size = 1;  ///< global number of positions
  combiner combine = combiner::stack;
  /// Dimension of the first result that is stacked. no_dim: the results of the iterations are
  /// reduced, or (if `combine` is stack) they are all the same.
  std::int8_t result_dim = no_dim;
  bool offset = false;  ///< each piece still lacks its start: stack of (piece + start)
  bool halo = false;    ///< pieces of operands overlap: an iteration sees neighbouring elements
  /// An iteration has to know where its pieces start: the op's `locate` function says what it does.
  bool located = false;
  /// Results of pieces, next to each other, are operands again: of these the op makes its results.
  bool again = false;
  /// If not `stack`: an element of the result combines those of the operand so, from one end of the
  /// dimension on. Each piece still lacks what the pieces before it are, combined.
  combiner carry = combiner::stack;
  bool backwards = false;  ///< of such a factor: from the last element on
  std::int64_t least = 1;  ///< of such a factor: fewer positions are no piece
  /// Where its operand dimensions start in factor_table::operand_dims; in front of them, backwards,
  /// stand those of further results.
  std::int64_t operands_begin = 0;
};

/// The tile maps of many ops, in flat arrays.
///
/// Law: the factors that one dimension is composed of (reshape) are numbered major to minor. A
/// dimension without a factor must stay whole.
struct factor_table {
  struct row {
    int begin = 0, count = 0, operands = 0, results = 1;
    bool composed = false;  ///< some dimension has more than one factor
  };
  vec<row> ops;
  vec<factor> factors;
  vec<std::int8_t> operand_dims;

  constexpr void clear() {
    ops.clear();
    factors.clear();
    operand_dims.clear();
  }
  constexpr const factor& at(int op, int f) const {
    return factors[ops[static_cast<std::size_t>(op)].begin + f];
  }
  constexpr factor& at(int op, int f) {
    return factors[ops[static_cast<std::size_t>(op)].begin + f];
  }
  constexpr int operand_dim(const factor& f, int operand) const {
    return operand_dims.data()[f.operands_begin + operand];
  }
  /// Results of a piece as operands again: those of the shape `made` with the rank of operand 0,
  /// whose shape is `whole`; dimensions that they lack are of one position.
  constexpr shape again_shape(int op, shape whole, const shape& made) const {
    if (made.rank == whole.rank) return made;
    bool kept[max_rank] = {};
    for (int f = 0; f < ops[static_cast<std::size_t>(op)].count; ++f)
      if (const factor& each = at(op, f);
          each.result_dim != no_dim && operand_dim(each, 0) != no_dim)
        kept[operand_dim(each, 0)] = true;
    for (int d = 0; d < whole.rank; ++d)
      if (!kept[d]) whole[d] = 1;
    return whole;
  }
  /// Is it a located factor that cuts the first operand or the result? Then pieces are not what the
  /// op itself takes or makes, and nothing behind the end of the dimension is looked at.
  constexpr bool sees_no_padding(int op, int f) const {
    const factor& each = at(op, f);
    const row& r = ops[static_cast<std::size_t>(op)];
    return each.located &&
           (each.combine == combiner::stack || (r.operands > 0 && operand_dim(each, 0) != no_dim));
  }
  /// Takes those factors from the op that was added last.
  constexpr void drop_located() {
    row& r = ops.back();
    int kept = 0;
    for (int f = 0; f < r.count; ++f)
      if (!sees_no_padding(static_cast<int>(ops.size()) - 1, f))
        factors[r.begin + kept++] = factors[r.begin + f];
    r.count = kept;
    factors.resize(static_cast<std::size_t>(r.begin + kept));
  }
  /// The factors of an op, in an array.
  constexpr const factor* factors_of(int op) const { return factors.data() + ops[op].begin; }
  /// The dimension of an operand, or (end -1 - r) of result r, that a factor slices, or no_dim.
  constexpr int dim_of(const factor& f, int end) const {
    if (end >= 0) return operand_dims.data()[f.operands_begin + end];
    if (end == -1) return f.result_dim;
    return operand_dims.data()[f.operands_begin + end + 1];
  }
  /// Dimension of a result that is stacked, or no_dim.
  constexpr int result_dim(const factor& f, int result) const {
    if (result == 0) return f.result_dim;
    return operand_dims.data()[f.operands_begin - result];
  }
  /// Can the next loop over this op take factor `f`? Within a composed dimension only the most
  /// major factor that is left can be sliced into contiguous chunks. `local`: by factor of the op,
  /// the positions left per iteration of the loops that it has.
  constexpr bool is_front(int op, int f, const std::int64_t* local) const {
    const row& r = ops[op];
    if (!r.composed) return true;
    const factor& mine = at(op, f);
    for (int g = 0; g < f; ++g) {
      if (local[g] == 1) continue;
      const factor& other = at(op, g);
      for (int i = 0; i < r.results; ++i)
        if (result_dim(mine, i) != no_dim && result_dim(other, i) == result_dim(mine, i))
          return false;
      for (int i = 0; i < r.operands; ++i)
        if (operand_dim(mine, i) != no_dim && operand_dim(other, i) == operand_dim(mine, i))
          return false;
    }
    return true;
  }
};

/// Handed to an op's `tile_map` function, which adds one factor per entry.
class tile_map_context {
 public:
  constexpr tile_map_context(const vec<tensor_type>& operand_types, const tensor_type& r,
                             const std::int64_t* a, int n, factor_table& out, int results = 1)
      : operands(operand_types), result(r), attrs(a), attr_count(n), table_(out) {
    table_.ops.push_back({static_cast<int>(table_.factors.size()), 0,
                          static_cast<int>(operand_types.size()), results, false});
  }
  const vec<tensor_type>& operands;
  const tensor_type& result;  ///< the first result
  const std::int64_t* attrs;
  int attr_count;

  /// Adds a factor that no operand has; `operand` adds dimensions to the last factor added.
  constexpr tile_map_context& add(std::int64_t size, combiner combine, int result_dim) {
    factor f;
    f.size = size;
    f.combine = combine;
    f.result_dim = static_cast<std::int8_t>(result_dim);
    factor_table::row& row = table_.ops.back();
    f.operands_begin = static_cast<std::int64_t>(table_.operand_dims.size()) + row.results - 1;
    table_.factors.push_back(f);
    ++row.count;
    table_.operand_dims.resize(static_cast<std::size_t>(f.operands_begin + row.operands), no_dim);
    return *this;
  }
  constexpr tile_map_context& tile(std::int64_t size, int result_dim) {
    return add(size, combiner::stack, result_dim);
  }
  constexpr tile_map_context& reduce(std::int64_t size, combiner combine) {
    return add(size, combine, no_dim);
  }
  /// The dimensions of all operands that the last factor slices, to be set; valid until the next.
  constexpr std::int8_t* operand_dims() {
    return table_.operand_dims.data() + table_.factors.back().operands_begin;
  }
  constexpr tile_map_context& operand(int index, int dim) {
    table_.operand_dims.data()[table_.factors.back().operands_begin + index] =
        static_cast<std::int8_t>(dim);
    return *this;
  }
  /// The dimension of a further result that the last factor stacks.
  constexpr tile_map_context& also(int result, int dim) {
    table_.operand_dims.data()[table_.factors.back().operands_begin - result] =
        static_cast<std::int8_t>(dim);
    return *this;
  }
  /// The op does not know where its piece starts: the loop adds the start to each piece.
  constexpr void offset() { table_.factors.back().offset = true; }
  /// Iterations see overlapping pieces of the operands: the op's `halo` function says which.
  constexpr tile_map_context& halo() {
    table_.factors.back().halo = true;
    return *this;
  }
  /// What an iteration does follows from where its pieces start: the op's `locate` function says
  /// it.
  /// It looks at nothing behind the end of a dimension that is padded, unless the op says
  /// `reduces_identity = false`.
  constexpr tile_map_context& located() {
    table_.factors.back().located = true;
    return *this;
  }
  /// The op on what it makes of pieces, of at least so many positions, gives its results: they are
  /// the same for every iteration. Along the dimension of operand 0 that is cut results have what
  /// they have in front of those of the next piece; where they lack it, one position.
  constexpr tile_map_context& again(std::int64_t least = 1) {
    table_.factors.back().again = true;
    table_.factors.back().least = least;
    return *this;
  }
  /// Running along the dimension, an element is combined with all before it (`backwards`: behind
  /// it): a piece lacks what those before it are, combined. The op is `cumsum`.
  constexpr tile_map_context& carry(combiner c, bool backwards) {
    table_.factors.back().carry = c;
    table_.factors.back().backwards = backwards;
    return *this;
  }
  constexpr void composed() { table_.ops.back().composed = true; }

 private:
  factor_table& table_;
};

}  // namespace partita
