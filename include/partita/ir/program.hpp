/// Tensor programs in static single assignment form, in flat arrays.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/attributes.hpp>
#include <partita/ir/collective.hpp>
#include <partita/ir/interface_list.hpp>
#include <partita/ir/label_list.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/ir/op_def.hpp>
#include <partita/ir/scope_list.hpp>
#include <partita/ir/shape.hpp>
#include <partita/support/error.hpp>
#include <partita/support/span.hpp>
#include <partita/support/vec.hpp>

namespace partita {

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
