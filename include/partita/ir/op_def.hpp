/// The definition of an op: its rules, the arguments of these, and its properties.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/attributes.hpp>
#include <partita/ir/collective.hpp>
#include <partita/ir/halo.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/ir/shape.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/error.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita {

class builder;
struct program;

/// Maximum nesting depth of programs. It bounds the stack, because functions on nested programs are
/// recursive.
inline constexpr int max_nesting = 1024;

/// Index of a value in its program; -1 means "none", or the result of a call that failed.
using value_id = int;
/// Index of an op in its program.
using op_id = int;

/// The argument of an op's shape rule.
struct infer_context {
  span<const tensor_type> operands;
  span<const std::int64_t> attrs;
  /// The result type that the caller wants, for ops whose operands do not determine it
  /// (broadcast_in_dim, reshape, constant, iota, convert, ...). The rule checks it.
  tensor_type declared;
  span<const program> regions;  ///< nested programs
  tensor_type result;
  vec<tensor_type> more;  ///< types of all results after the first
  failure error;

  /// Records the error "CODE op: text".
  template <class... Parts>
  constexpr void fail(std::string_view code, Parts... parts) {
    error.record(code, parts...);
  }
};

/// The argument of an op's derivative rule.
struct derive_context {
  builder& b;
  op_id op;
  value_id cotangent;  ///< of the first result; has the type of that result
  /// To be filled in: the cotangent of each operand, -1 for none.
  vec<value_id>& operands;
  const vec<char>& wanted;               ///< per operand: true if its cotangent is needed
  span<const value_id> cotangents = {};  ///< per result; -1 if nothing depends on it
};

/// The argument of an op's attribute printer.
struct print_context {
  const program& p;
  op_id op;
  const partita::mesh* mesh;  ///< null for programs without collectives
  text& out;
};

/// The argument of an op's attribute reader.
struct parse_context {
  std::string_view in;  ///< the text between the braces
  span<const tensor_type> operands;
  const tensor_type& declared;  ///< the type after the colon
  vec<std::int64_t>& attrs;     ///< to be filled in
  failure error;
  const partita::mesh* mesh = nullptr;  ///< null for programs without collectives
};

/// The argument of an op's cost rule.
struct cost_context {
  span<const tensor_type> operands;
  const tensor_type& result;
  span<const std::int64_t> attrs;
  span<const tensor_type> more = {};  ///< all results after the first
};

/// The matrix products that an op computes, or that implement it: `batch` products of m x k with k
/// x n. batch is 0 for ops that are not computed as matrix products.
///
/// If the rows of the m x k matrix are copied from a larger operand, `pieces` is the number of
/// contiguous runs per row (for a convolution, the lines of elements in a window); 0 if the rows
/// are used in place. `moved` is the number of operand and result elements that are not stored in
/// the order that the product needs.
struct product_shape {
  std::int64_t batch = 0, m = 0, n = 0, k = 0, pieces = 0, moved = 0;
};

/// The role of an op in the engine. Most ops compute; the others carry names and loops.
///
/// (A number, because with sanitizers on, GCC does not compare addresses in constant evaluation.
/// The engine therefore never identifies an op by the address of its definition.)
enum class op_role : std::uint8_t {
  compute,
  parameter,
  tag,
  tiling,  ///< holds the loops of a value's tiling
  wire,    ///< connects values inside and outside of nested programs, see core/flatten.hpp
  control  ///< has nested programs
};

/// How a compiler that fuses ops into kernels treats an op, see ir/fusion.hpp.
enum class fusion_kind : std::uint8_t {
  none,  ///< a kernel of its own, whose operands are in memory: products, collectives, control flow
  view,  ///< computes nothing: the result uses the operand's memory
  loop,  ///< each element of the result depends on a few operand elements: part of any kernel
  last   ///< like `loop`, but users of the result belong to another kernel: reductions
};

struct wire_list;
class locate_context;
constexpr void no_change(vec<std::int64_t>&, const vec<char>&, const vec<char>&) {}
constexpr collective no_collective(span<const std::int64_t>) { return {}; }
constexpr void no_wires(const program&, op_id, wire_list&) {}
constexpr void no_factors(tile_map_context&) {}  ///< no dimension can be sliced
constexpr void no_halo(halo_context& c) { c.possible = false; }
constexpr void no_location(locate_context&) {}
constexpr void no_derivative(derive_context&) {}
constexpr std::int64_t no_flops(const cost_context&) { return 0; }  ///< data movement
constexpr product_shape no_product(const cost_context&) { return {}; }
constexpr void no_attributes(print_context&) {}
constexpr span<const std::int64_t> no_numerics(span<const std::int64_t>, int) { return {}; }
constexpr void no_attributes_to_read(parse_context& c) {
  if (!c.in.empty()) c.error.record("P011", "parse: attributes of an op that has none: ", c.in);
}
/// Returns the bytes read and written: all operands and all results.
constexpr std::int64_t bytes_of_all(const cost_context& c) {
  std::int64_t n = c.result.bytes();
  for (std::size_t i = 0, count = c.more.size(); i < count; ++i)
    n = saturating_add(n, c.more[i].bytes());
  for (std::size_t i = 0, count = c.operands.size(); i < count; ++i)
    n = saturating_add(n, c.operands[i].bytes());
  return n;
}

/// The definition of an op: everything op-specific that the engine uses.
struct op_def {
  std::string_view name;
  /// A hash of the name, which can be compared and hashed in constant evaluation.
  std::uint64_t id = 0;
  void (*infer)(infer_context&) = nullptr;
  void (*tile_map)(tile_map_context&) = &no_factors;
  void (*halo)(halo_context&) = &no_halo;  ///< for factors with a halo, see halo.hpp
  /// For factors with a halo: adapts the attributes to extents that were padded by a common ratio,
  /// and sets in `ranges[k].fill` the padding that operand k needs. See padding.hpp.
  void (*stretch)(halo_context&) = &no_halo;
  /// For a factor with a halo whose reduced positions are multiplied with the elements they slide
  /// over: adapts the attributes so that the op uses only some of these positions. Zero padding is
  /// not enough there, because infinity times zero is NaN. Null for all other ops.
  void (*narrow)(halo_context&) = nullptr;
  void (*locate)(locate_context&) = &no_location;  ///< for located factors, see locate.hpp
  void (*derive)(derive_context&) = &no_derivative;
  std::int64_t (*flops)(const cost_context&) = &no_flops;
  std::int64_t (*bytes)(const cost_context&) = &bytes_of_all;
  product_shape (*product)(const cost_context&) = &no_product;
  void (*print)(print_context&) = &no_attributes;  ///< appends " {attributes}"
  void (*parse)(parse_context&) = &no_attributes_to_read;
  /// Returns the attributes that specify how exactly the op is computed. They come last, and
  /// usually the list is empty; see op/numerics.hpp. Their number may depend on the rank of the
  /// first operand.
  span<const std::int64_t> (*numerics)(span<const std::int64_t> attrs, int rank) = &no_numerics;
  /// How values pass into and out of nested programs, see wires.hpp.
  void (*wires)(const program&, op_id, wire_list&) = &no_wires;
  /// Adapts the attributes after some operands and results (those with 0) were removed.
  void (*pruned)(vec<std::int64_t>& attrs, const vec<char>& operands,
                 const vec<char>& results) = &no_change;
  /// Returns the collective that the attributes describe, for ops that are collectives; see
  /// collective_of.
  partita::collective (*describe)(span<const std::int64_t> attrs) = &no_collective;
  bool differentiable = false;  ///< has a derivative rule
  bool stops_gradient = false;  ///< reverse mode treats its operands as constants
  /// Computes each result element from the same element of each operand.
  bool elementwise = false;
  bool linear = false;    ///< f(a) + f(b) = f(a + b), jointly in all operands
  bool adds = false;      ///< returns the sum of its two operands
  bool constant = false;  ///< all elements are the number that the first attribute encodes
  /// True if operands that hold the identity of a factor's combiner, at all positions of the
  /// factor, reduce to that identity. Uneven dimensions are then padded with the identity;
  /// otherwise the op is given the dimension's true size.
  bool reduces_identity = true;
  /// Reason why dimensions without a factor cannot be sliced, as words to follow "along dimension
  /// 1".
  std::string_view needs_whole;
  fusion_kind fusion = fusion_kind::none;
  bool costly = false;   ///< takes longer than reading its result again: never computed twice
  bool repeats = false;  ///< several result elements need the same operand element
  /// Reads only as many operand elements as the result has: slices, gathers.
  bool reads_part = false;
  bool in_place = false;  ///< the result can overwrite an operand of its size
  bool identity = false;  ///< the result equals the operand (or, for a parameter, the argument)
  /// Each result is the operand with its number; further operands are only kept alive.
  bool passes_on = false;
  bool collective = false;  ///< has a function `describe`
  /// The first attribute selects the result's memory; 0 is the device's.
  bool chooses_memory = false;
  int operand_count = -1;  ///< -1: any number except 0
  op_role role = op_role::compute;
};

namespace ir_detail {
/// Source    the hash function FNV-1a
constexpr std::uint64_t number_of(std::string_view name) {
  std::uint64_t n = 0xcbf29ce484222325u;
  for (const char c : name) n = (n ^ static_cast<unsigned char>(c)) * 0x100000001b3u;
  return n;
}
template <class Op>
constexpr void print_attributes(print_context& c);
template <class Op>
constexpr void parse_attributes(parse_context& c) {
  attribute_reader reader(Op::name, c.in, c.operands, c.attrs);
  Op::attributes(reader);
  reader.finish();
  c.error.record(reader.error);
}
}  // namespace ir_detail

/// Returns the definition of an op, built from a class with static members of the same names.
/// Attributes are described by `attributes` (see attribute_writer), or by the pair `print` and
/// `parse`.
///
/// Source    one struct per op, see op/
template <class Op>
constexpr op_def define_op() {
  op_def d;
  d.name = Op::name;
  d.id = ir_detail::number_of(Op::name);
  d.infer = &Op::infer;
  if constexpr (requires { &Op::tile_map; }) d.tile_map = &Op::tile_map;
  if constexpr (requires { &Op::halo; }) d.halo = &Op::halo;
  if constexpr (requires { &Op::stretch; }) d.stretch = &Op::stretch;
  if constexpr (requires { &Op::narrow; }) d.narrow = &Op::narrow;
  if constexpr (requires { &Op::locate; }) d.locate = &Op::locate;
  if constexpr (requires { &Op::derive; }) {
    d.derive = &Op::derive;
    d.differentiable = true;
  }
  if constexpr (requires { &Op::flops; }) d.flops = &Op::flops;
  if constexpr (requires { &Op::bytes; }) d.bytes = &Op::bytes;
  if constexpr (requires { &Op::product; }) d.product = &Op::product;
  if constexpr (requires { &Op::wires; }) d.wires = &Op::wires;
  if constexpr (requires { &Op::pruned; }) d.pruned = &Op::pruned;
  if constexpr (requires(attribute_reader & r) { Op::attributes(r); }) {
    d.print = &ir_detail::print_attributes<Op>;
    d.parse = &ir_detail::parse_attributes<Op>;
  }
  if constexpr (requires { &Op::print; }) d.print = &Op::print;
  if constexpr (requires { &Op::parse; }) d.parse = &Op::parse;
  if constexpr (requires { &Op::numerics; }) d.numerics = &Op::numerics;
  if constexpr (requires { Op::stops_gradient; }) d.stops_gradient = Op::stops_gradient;
  if constexpr (requires { Op::elementwise; }) d.elementwise = Op::elementwise;
  if constexpr (requires { Op::linear; }) d.linear = Op::linear;
  if constexpr (requires { Op::adds; }) d.adds = Op::adds;
  if constexpr (requires { Op::is_constant; }) d.constant = Op::is_constant;
  if constexpr (requires { Op::reduces_identity; }) d.reduces_identity = Op::reduces_identity;
  if constexpr (requires { Op::needs_whole; }) d.needs_whole = Op::needs_whole;
  if constexpr (requires { Op::identity; }) d.identity = Op::identity;
  if constexpr (requires { Op::passes_on; }) d.passes_on = Op::passes_on;
  if constexpr (requires { Op::chooses_memory; }) d.chooses_memory = Op::chooses_memory;
  if constexpr (requires { Op::costly; }) d.costly = Op::costly;
  if constexpr (requires { Op::repeats; }) d.repeats = Op::repeats;
  if constexpr (requires { Op::reads_part; }) d.reads_part = Op::reads_part;
  d.in_place = d.elementwise;
  if constexpr (requires { Op::in_place; }) d.in_place = Op::in_place;
  d.fusion = d.elementwise ? fusion_kind::loop : d.identity ? fusion_kind::view : fusion_kind::none;
  if constexpr (requires { Op::fusion; }) d.fusion = Op::fusion;
  if constexpr (requires { &Op::describe; }) {
    d.describe = &Op::describe;
    d.collective = true;
  }
  if constexpr (requires { Op::operand_count; }) d.operand_count = Op::operand_count;
  if constexpr (requires { Op::role; }) d.role = Op::role;
  return d;
}
/// The single definition object of an op. Kernels are found by its address.
template <class Op>
inline constexpr op_def def = define_op<Op>();

}  // namespace partita
