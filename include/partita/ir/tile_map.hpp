/// Tile maps: the loops over operand slices that an op can be split into.
///
/// Source    PartIR, section 5.2.1 (tile-mapping registry)
#pragma once

#include <cstdint>
#include <initializer_list>

#include <partita/ir/shape.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// How the results of the iterations of a loop over a factor are combined.
enum class combiner : std::uint8_t {
  stack,  ///< stacked along a dimension of the result (`#tile<d>`)
  add,    ///< summed (`#sum`)
  max,    ///< `#sum<@max>`
  min,    ///< `#sum<@min>`
  multiply,
  logical_and,  ///< for i1; bitwise for integers
  logical_or
};

inline constexpr std::string_view combiner_names[] = {"stack",    "add", "max", "min",
                                                      "multiply", "and", "or"};
constexpr std::string_view name_of(combiner c) { return combiner_names[static_cast<int>(c)]; }

/// No dimension. (Dimensions are stored in one byte: a rank is at most max_rank.)
inline constexpr std::int8_t no_dim = -1;

/// One entry of a tile map. It is a theorem about its op: slicing every operand that has this
/// factor along the stated dimension, and stacking or reducing the results, computes the op's
/// result.
struct factor {
  std::int64_t size = 1;  ///< number of positions, unsharded
  combiner combine = combiner::stack;
  /// The dimension of the first result that is stacked. With no_dim, the iterations' results are
  /// reduced; if `combine` is stack, they are equal instead.
  std::int8_t result_dim = no_dim;
  /// The op does not know the start of its block, so the loop adds it to each block of the result.
  bool offset = false;
  /// Slices of operands overlap: an iteration also reads neighbouring elements.
  bool halo = false;
  /// An iteration depends on where its blocks start: the op's `locate` function implements it.
  bool located = false;
  /// The op is applied again to the concatenated results of the blocks, which computes its results.
  bool again = false;
  /// If not `stack`: the op is a scan along the dimension with this combiner. Each block's result
  /// still has to be combined with the total of the blocks before it.
  combiner carry = combiner::stack;
  bool backwards = false;  ///< for a scan: it starts at the last element
  std::int64_t least = 1;  ///< for `again`: the minimum number of positions per block
  /// Start of its operand dimensions in factor_table::operand_dims. The dimensions of further
  /// results are stored before that position, in reverse order.
  std::int64_t operands_begin = 0;
};

/// True if the loop over a factor only stacks slices of the op's results, or reduces them: blocks
/// do not depend on each other, or on their positions.
constexpr bool is_plain_factor(const factor& f) {
  return !f.offset && !f.halo && !f.located && !f.again && f.carry == combiner::stack;
}

/// The tile maps of many ops, in flat arrays.
///
/// Law       the factors that compose one dimension (reshape) are numbered major to minor; a
///           dimension without a factor cannot be sliced.
struct factor_table {
  struct row {
    int begin = 0, count = 0, operands = 0, results = 1;
    bool composed = false;  ///< true if some dimension has more than one factor
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
  /// Returns the shape that a block's result has as an operand: the shape `made`, brought to the
  /// rank of operand 0, whose shape is `whole`. Dimensions that the result lacks have extent 1.
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
  /// True if this is a located factor that slices operand 0 or the result. Then an iteration is not
  /// the op itself, and it never reads the padding of the dimension.
  constexpr bool sees_no_padding(int op, int f) const {
    const factor& each = at(op, f);
    const row& r = ops[static_cast<std::size_t>(op)];
    return each.located &&
           (each.combine == combiner::stack || (r.operands > 0 && operand_dim(each, 0) != no_dim));
  }
  /// Removes such factors from the op that was added last.
  constexpr void drop_located() {
    row& r = ops.back();
    int kept = 0;
    for (int f = 0; f < r.count; ++f)
      if (!sees_no_padding(static_cast<int>(ops.size()) - 1, f))
        factors[r.begin + kept++] = factors[r.begin + f];
    r.count = kept;
    factors.resize(static_cast<std::size_t>(r.begin + kept));
  }
  /// Returns an array of the factors of an op.
  constexpr const factor* factors_of(int op) const { return factors.data() + ops[op].begin; }
  /// Returns the dimension of an operand, or (end -1 - r) of result r, that a factor slices, or
  /// no_dim.
  constexpr int dim_of(const factor& f, int end) const {
    if (end >= 0) return operand_dims.data()[f.operands_begin + end];
    if (end == -1) return f.result_dim;
    return operand_dims.data()[f.operands_begin + end + 1];
  }
  /// Returns the dimension of a result that is stacked, or no_dim.
  constexpr int result_dim(const factor& f, int result) const {
    if (result == 0) return f.result_dim;
    return operand_dims.data()[f.operands_begin - result];
  }
  /// True if the next loop over this op can use factor `f`. In a dimension composed of several
  /// factors, only the most major one with positions left can be sliced into contiguous chunks.
  /// `local` is, per factor of the op, the number of positions left per iteration of its existing
  /// loops.
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

/// The argument of an op's `tile_map` function, which adds one factor per entry.
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

  /// Adds a factor without operand dimensions; `operand` adds them to the last factor.
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
  /// Adds a factor whose results are stacked along `result_dim`.
  constexpr tile_map_context& tile(std::int64_t size, int result_dim) {
    return add(size, combiner::stack, result_dim);
  }
  /// Adds a factor whose results are reduced.
  constexpr tile_map_context& reduce(std::int64_t size, combiner combine) {
    return add(size, combine, no_dim);
  }
  /// Returns the array of operand dimensions of the last factor, to be set; valid until the next
  /// `add`.
  constexpr std::int8_t* operand_dims() {
    return table_.operand_dims.data() + table_.factors.back().operands_begin;
  }
  /// Sets the dimension of an operand that the last factor slices.
  constexpr tile_map_context& operand(int index, int dim) {
    table_.operand_dims.data()[table_.factors.back().operands_begin + index] =
        static_cast<std::int8_t>(dim);
    return *this;
  }
  /// Sets the dimension of a further result that the last factor stacks.
  constexpr tile_map_context& also(int result, int dim) {
    table_.operand_dims.data()[table_.factors.back().operands_begin - result] =
        static_cast<std::int8_t>(dim);
    return *this;
  }
  /// Declares that the op does not know the start of its block, so the loop adds it to each block.
  constexpr void offset() { table_.factors.back().offset = true; }
  /// Declares that iterations read overlapping slices of the operands; the op's `halo` function
  /// defines them.
  constexpr tile_map_context& halo() {
    table_.factors.back().halo = true;
    return *this;
  }
  /// Declares that an iteration depends on where its blocks start; the op's `locate` function
  /// implements it. An iteration never reads the padding of a dimension, unless the op has
  /// `reduces_identity = false`.
  constexpr tile_map_context& located() {
    table_.factors.back().located = true;
    return *this;
  }
  /// Declares that the op, applied again to the results of blocks of at least `least` positions,
  /// computes its results; they are the same for every iteration. Along the sliced dimension of
  /// operand 0, the blocks' results are concatenated; a result without that dimension contributes
  /// one position.
  constexpr tile_map_context& again(std::int64_t least = 1) {
    table_.factors.back().again = true;
    table_.factors.back().least = least;
    return *this;
  }
  /// Declares a scan: each element is combined with all elements before it (`backwards`: after it),
  /// so a block's result still lacks the total of the blocks before it. An example is `cumsum`.
  constexpr tile_map_context& carry(combiner c, bool backwards) {
    table_.factors.back().carry = c;
    table_.factors.back().backwards = backwards;
    return *this;
  }
  /// Declares that some dimension of the op has more than one factor.
  constexpr void composed() { table_.ops.back().composed = true; }

 private:
  factor_table& table_;
};

}  // namespace partita
