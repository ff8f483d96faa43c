/// Tensor programs in static single assignment form, in flat arrays.
#pragma once

#include <cstdint>
#include <partita/support/span.hpp>
#include <string_view>

#include <partita/ir/attributes.hpp>
#include <partita/ir/collective.hpp>
#include <partita/ir/halo.hpp>
#include <partita/ir/interface_list.hpp>
#include <partita/ir/label_list.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/ir/scope_list.hpp>
#include <partita/ir/shape.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/error.hpp>
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

/// A range of characters in program::chars.
struct text_ref {
  int begin = 0, size = 0;
};

/// The origin of an op. Every pass keeps it by copying ops with ir/copy.hpp. An op that a pass adds
/// has the marks of the op that it was added for.
///
/// Ops are numbered in reading order: an op, then the ops nested in it, then the next op (see
/// ir/source_ids.hpp). `partition` numbers its source program this way, and all results of it refer
/// to these numbers.
struct op_marks {
  int source = -1;     ///< the op of the source program that this one comes from, or -1
  int origin = -1;     ///< the op of the source program whose derivative added this one, or -1
  int transposed = 0;  ///< number of times reverse mode was applied to get here
  bool again = false;  ///< true for a copy of an op that a derivative computes again
};

/// Prints the place where the model created an op: ` in layers.3.attention`, or for a derivative
/// ` in the gradient of layers.3.attention`. Prints nothing if the model named no place.
constexpr void print_place(text& out, const scope_list& scopes, const op_marks& m) {
  const int place = scopes.place_of(m.source);
  if (place >= 0)
    out << (m.transposed % 2 == 1 ? " in the gradient of " : " in ") << scopes.path_of(place);
}

/// An op of a program: its definition, operands, results, attributes and nested programs.
struct op_node {
  const op_def* def = nullptr;
  int operand_begin = 0, operand_count = 0;
  value_id result = -1;  ///< the first; further results are the values that follow
  int result_count = 0;
  int attr_begin = 0, attr_count = 0;
  int region_begin = 0, region_count = 0;  ///< nested programs, in program::regions
  text_ref name;                           ///< of parameters and tags, else empty
  op_marks marks;
};

struct program_output {
  value_id value = -1;
  text_ref name;
};

/// A tensor program. Ops are stored in a valid execution order; inputs are `parameter` ops. Nested
/// programs are closed: a value they use from an enclosing program is passed as an operand.
struct program {
  vec<op_node> ops;
  vec<tensor_type> types;  ///< by value
  vec<op_id> producers;    ///< by value
  vec<value_id> operand_list;
  vec<std::int64_t> attr_list;
  vec<char> chars;
  vec<value_id> inputs;
  vec<program_output> outputs;
  vec<program> regions;
  /// For a top-level program: names of its ops, including those of nested programs.
  label_list labels;
  scope_list scopes;         ///< for a top-level program: the parts that its model named
  interface_list interface;  ///< for a top-level program: attributes of arguments and results
  int nesting = 0;           ///< nesting depth of the programs in this one
  bool any_placed = false;   ///< true if an op, in nested programs too, chooses a memory
  failure error;  ///< the first error while it was built; if set, the other members are invalid

  constexpr int op_count() const { return static_cast<int>(ops.size()); }
  constexpr int value_count() const { return static_cast<int>(types.size()); }
  constexpr const op_node& op(op_id o) const { return ops[o]; }
  constexpr op_node& op(op_id o) { return ops[o]; }
  constexpr const tensor_type& type(value_id v) const { return types[v]; }
  constexpr op_id producer(value_id v) const { return producers[v]; }
  constexpr bool is(op_id o, op_role role) const { return ops[o].def->role == role; }
  /// Returns the index of a value among its producer's results.
  constexpr int result_index(value_id v) const { return v - ops[producers[v]].result; }
  constexpr const program& region(op_id o, int i) const { return regions[ops[o].region_begin + i]; }
  constexpr span<const program> regions_of(op_id o) const {
    const op_node& n = ops[o];
    if (n.region_count == 0) return {};
    return {regions.data() + n.region_begin, static_cast<std::size_t>(n.region_count)};
  }
  constexpr value_id operand(op_id o, int i) const {
    return operand_list[ops[o].operand_begin + i];
  }
  constexpr span<const value_id> operands(op_id o) const {
    const op_node& n = ops[o];
    return {operand_list.data() + n.operand_begin, static_cast<std::size_t>(n.operand_count)};
  }
  constexpr span<const std::int64_t> attrs(op_id o) const {
    const op_node& n = ops[o];
    return {attr_list.data() + n.attr_begin, static_cast<std::size_t>(n.attr_count)};
  }
  /// Returns the attributes that specify how exactly an op is computed; usually empty.
  constexpr span<const std::int64_t> numerics(op_id o) const {
    const op_node& n = ops[o];
    if (n.attr_count == 0 || n.operand_count == 0) return {};
    return n.def->numerics(attrs(o), types[operand_list[n.operand_begin]].shape.rank);
  }
  /// Returns the collective that an op performs; meaningless if the op is not a collective.
  constexpr collective collective_of(op_id o) const { return ops[o].def->describe(attrs(o)); }
  /// True if the op is a collective of this kind.
  constexpr bool is(op_id o, collective::kind_type kind) const {
    return ops[o].def->collective && collective_of(o).kind == kind;
  }
  constexpr std::string_view view(text_ref r) const {
    if (r.size == 0) return {};  // (the array may be null)
    return {chars.data() + r.begin, static_cast<std::size_t>(r.size)};
  }
  /// True if the value is a constant of zeros.
  constexpr bool is_zero(value_id v) const {
    const op_id o = producers[v];
    return ops[o].def->constant && attrs(o)[0] == 0;
  }
  /// Returns the name of the parameter or tag that defines a value, or an empty view.
  constexpr std::string_view name(value_id v) const {
    const op_node& n = ops[producers[v]];
    return n.def->role == op_role::control ? std::string_view() : view(n.name);
  }
  /// Returns the op's label in `labels_of_all` (the labels of the top-level program), or an empty
  /// view.
  constexpr std::string_view label(op_id o, const label_list& labels_of_all) const {
    if (labels_of_all.empty()) return {};
    return labels_of_all.find(ops[o].marks.source, ops[o].def->id);
  }
  /// Returns the label of one of the op's results.
  constexpr text result_label(op_id o, int index, int count,
                              const label_list& labels_of_all) const {
    return labels_of_all.result(ops[o].marks.source, ops[o].def->id, index, count);
  }
  constexpr int input_count() const { return static_cast<int>(inputs.size()); }
  constexpr int output_count() const { return static_cast<int>(outputs.size()); }
  constexpr std::string_view input_name(int i) const { return name(inputs[i]); }
  constexpr std::string_view output_name(int i) const { return view(outputs[i].name); }
  constexpr const tensor_type& input_type(int i) const { return type(inputs[i]); }
  constexpr const tensor_type& output_type(int i) const { return type(outputs[i].value); }

  /// Stores a name and returns its range of characters.
  constexpr text_ref intern(std::string_view s) {
    const text_ref r{static_cast<int>(chars.size()), static_cast<int>(s.size())};
    chars.insert_back(s.begin(), s.end());
    return r;
  }
  /// Appends an op without results and returns its id; `append_result` and `append_region` complete
  /// it.
  constexpr op_id append_op(const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs) {
    op_node n;
    n.def = &def;
    append_op(n, operands, attrs);
    return op_count() - 1;
  }
  /// Appends an op whose definition, name and marks are set; all other members are overwritten.
  /// (Few calls: all programs are made this way.)
  constexpr void append_op(op_node& n, span<const value_id> operands,
                           span<const std::int64_t> attrs) {
    n.operand_begin = static_cast<int>(operand_list.size());
    n.operand_count = static_cast<int>(operands.size());
    n.attr_begin = static_cast<int>(attr_list.size());
    n.attr_count = static_cast<int>(attrs.size());
    n.result = static_cast<int>(types.size());
    n.result_count = n.region_begin = n.region_count = 0;
    const value_id* const values = operands.data();
    const std::int64_t* const numbers = attrs.data();
    if (n.def->chooses_memory) any_placed = true;
    if (n.operand_count > 0) operand_list.insert_back(values, values + n.operand_count);
    if (n.attr_count > 0) attr_list.insert_back(numbers, numbers + n.attr_count);
    ops.push_back(n);
  }
  /// Adds a result to the op that was appended last and returns its id.
  constexpr value_id append_result(const tensor_type& type) {
    op_node& n = ops.back();
    const int last = static_cast<int>(ops.size()) - 1;
    types.push_back(type);
    producers.push_back(last);
    return n.result + n.result_count++;
  }
  /// Appends an op with one result of a known type; returns the result.
  constexpr value_id append(const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& result) {
    append_op(def, operands, attrs);
    return append_result(result);
  }
  /// Adds a nested program to the op that was appended last.
  constexpr void append_region(program&& r) {
    if (ops.back().region_count++ == 0) ops.back().region_begin = static_cast<int>(regions.size());
    if (r.nesting >= nesting) nesting = r.nesting + 1;
    if (r.any_placed) any_placed = true;
    regions.push_back(static_cast<program&&>(r));
  }
};

/// Calls `f(o)` for each op of this definition, in order; nested programs are skipped.
template <class F>
constexpr void for_each_of(const program& p, const op_def& d, const F& f) {
  op_id o = 0;
  for (const op_node& n : p.ops) {
    if (n.def->id == d.id) f(o);
    ++o;
  }
}

namespace ir_detail {
template <class Op>
constexpr void print_attributes(print_context& c) {
  vec<tensor_type> operands;
  for (value_id v : c.p.operands(c.op)) operands.push_back(c.p.type(v));
  text fields;
  attribute_writer writer(fields, {operands.data(), operands.size()}, c.p.attrs(c.op));
  Op::attributes(writer);
  if (writer.any()) c.out << " {" << fields << '}';
}
}  // namespace ir_detail

}  // namespace partita
