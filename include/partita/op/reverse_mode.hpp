/// Reverse mode over programs, one derivative rule per op.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/order.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/op/vocabulary.hpp>

namespace partita::op_detail {

inline constexpr std::string_view again = ".again";

/// A value and the cotangent with which reverse mode starts there.
struct seed {
  value_id value = -1, cotangent = -1;
};

/// Emits the cotangents of the `wanted` values, given those of `seeds`.
///
/// Each op that it adds has as origin the op that it differentiates, and belongs to that op's named
/// part. An addition of cotangents from several parts belongs to the innermost part that encloses
/// them, if there is one. A wanted value that the seeds do not depend on has cotangent zero.
///
/// Errors    G002 no derivative rule
constexpr vec<value_id> reverse(builder& b, const vec<seed>& seeds, const vec<value_id>& wanted) {
  vec<value_id> result(wanted.size(), -1);
  if (b.failed()) return result;
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const int count = b.p.value_count();
  vec<char> depends(at(count), 0), wanted_operand;
  for (value_id v : wanted) depends[v] = 1;
  vec<value_id> roots;
  for (const auto& s : seeds) roots.push_back(s.value);
  const vec<op_id> order = canonical_order(b.p, {roots.data(), roots.size()});
  for (std::size_t k = 0; k < order.size(); ++k) {
    const op_node& n = b.p.ops[order[k]];
    if (n.def->stops_gradient) continue;
    const value_id* const values = b.p.operand_list.data() + n.operand_begin;
    bool any = false;
    for (int i = 0; i < n.operand_count && !any; ++i) any = depends[values[i]] != 0;
    for (value_id v = n.result; any && v < n.result + n.result_count; ++v)
      if (is_floating(b.p.types[v].element)) depends[v] = 1;
  }

  vec<value_id> cotangent(at(count), -1), operands, results;
  // By value, if parts have names: the innermost part enclosing all ops that contributed a
  // cotangent. `place` is the same for source places.
  vec<int> scope, place;
  if (!b.scopes().empty()) scope.resize(at(count), -1);
  if (b.scopes().any_places()) place.resize(at(count), -1);
  const auto accumulate = [&](value_id x, value_id more) {
    value_id& sum = cotangent[x];
    const int here = b.origin_scope();
    if (!scope.empty()) {
      scope[x] = sum < 0 ? here : b.scopes().common(scope[x], here);
      b.set_origin_scope(scope[x]);
    }
    const int place_here = b.origin_place();
    if (!place.empty()) {
      place[x] = sum < 0 ? place_here : b.scopes().common_place(place[x], place_here);
      b.set_origin_place(place[x]);
    }
    sum = sum < 0 ? more : ops::add(b, sum, more);
    b.set_origin_scope(here);
    b.set_origin_place(place_here);
  };
  for (const auto& s : seeds) accumulate(s.value, s.cotangent);
  for (std::size_t k = order.size(); k > 0 && !b.failed(); --k) {
    const op_id o = order[k - 1];
    const op_node& node = b.p.ops[o];  // invalid once an op is added
    const value_id y = node.result;
    const int n = node.operand_count;
    bool reached = false;
    results.clear();
    for (int r = 0; r < node.result_count; ++r) {
      results.push_back(cotangent[y + r]);
      reached = reached || (cotangent[y + r] >= 0 && depends[y + r]);
    }
    if (!reached || n == 0) continue;
    bool stop = true;
    wanted_operand.assign(at(n), 0);
    const value_id* const values = b.p.operand_list.data() + node.operand_begin;
    for (int i = 0; i < n; ++i)
      if (depends[values[i]]) wanted_operand[i] = 1, stop = false;
    if (stop) continue;
    const op_def& d = *node.def;
    if (!d.differentiable) {
      b.p.error.record("G002", "grad: op ", d.name, " (", b.type(y), ") has no derivative rule");
      break;
    }
    operands.assign(at(n), -1);
    b.set_origin(node.marks.source, node.marks.transposed + 1);
    derive_context c{b, o, results[0], operands, wanted_operand, {results.data(), results.size()}};
    d.derive(c);
    for (int i = 0; i < n; ++i)
      if (operands[i] >= 0 && wanted_operand[i]) accumulate(b.p.operand(o, i), operands[i]);
  }
  b.set_origin(-1, 0);
  for (std::size_t i = 0; i < wanted.size() && !b.failed(); ++i) {
    result[i] = cotangent[wanted[i]];
    if (result[i] < 0) result[i] = ops::constant(b, b.type(wanted[i]), 0);
  }
  return result;
}

/// Returns the name of a tag's copy: "x.again" for "x". Tactics that name "x" mean both.
constexpr text name_of_copy(std::string_view tag) { return concat(tag, again); }
/// Returns the name of the tag that a copy was made from. Other names are returned unchanged.
constexpr std::string_view name_of_original(std::string_view name) {
  const std::size_t size = name.size() < again.size() ? 0 : name.size() - again.size();
  return name.substr(size) == again ? name.substr(0, size) : name;
}
/// Renames the tags of a program and of its nested programs to names of copies.
constexpr void name_tags_as_copies(program& p) {
  for (auto& n : p.ops)
    if (n.def->role == op_role::tag) n.name = p.intern(name_of_copy(p.view(n.name)).view());
  for (auto& r : p.regions) name_tags_as_copies(r);
}
/// Returns a copy of a program for recomputation: its ops are marked as repeated.
constexpr program copy_to_repeat(const program& p) {
  program q = p;
  name_tags_as_copies(q);
  ir_detail::for_each_op(q, [](op_node& n) { n.marks.again = true; });
  return q;
}

/// Appends the ops of `f` to another program, with `arguments` as its inputs, and returns its
/// outputs. Calls `inside(program&)` on each nested program before moving it out of `f`, and
/// `appended(op_id of f)` after adding each op.
template <class Inside, class Appended>
constexpr vec<value_id> append_ops(builder& b, program& f, span<const value_id> arguments,
                                   const Inside& inside, const Appended& appended) {
  program_copier copy(f, b.p);
  vec<value_id> operands, results;
  for (std::size_t i = 0; i < arguments.size(); ++i) copy.renamed[f.inputs[i]] = arguments[i];
  for (op_id o = 0; o < f.op_count() && !b.failed(); ++o) {
    const op_node& n = f.op(o);
    if (n.def->role == op_role::parameter) continue;
    operands.clear();
    for (value_id v : f.operands(o)) operands.push_back(copy.renamed[v]);
    vec<program> regions;
    for (int r = 0; r < n.region_count; ++r) {
      inside(f.regions[n.region_begin + r]);
      regions.push_back(static_cast<program&&>(f.regions[n.region_begin + r]));
    }
    const value_id first = b.emit(*n.def, operands, f.attrs(o), f.type(n.result),
                                  static_cast<vec<program>&&>(regions));
    if (b.failed()) break;
    appended(o);
    for (int r = 0; r < n.result_count; ++r) copy.renamed[n.result + r] = first + r;
  }
  for (const auto& out : f.outputs) results.push_back(copy.renamed[out.value]);
  return results;
}
/// Appends a program whose ops keep their marks.
constexpr vec<value_id> append_with_marks(builder& b, program&& f, span<const value_id> arguments) {
  return append_ops(
      b, f, arguments, [](program&) {}, [&](op_id o) { copy_marks(b.p, f, o); });
}

/// Appends a program whose ops keep their marks and whose tags are named as copies.
constexpr vec<value_id> append_program(builder& b, program&& f, span<const value_id> arguments) {
  name_tags_as_copies(f);
  return append_with_marks(b, static_cast<program&&>(f), arguments);
}

/// Returns the program that computes cotangents of some inputs of `f`: (inputs..., cotangents of
/// `outputs`...) -> (cotangents of `inputs`...). It recomputes f. Its ops are numbered with those
/// of `around`.
constexpr program transposed(builder& around, const program& f, const vec<int>& inputs,
                             const vec<int>& outputs) {
  builder b;
  b.number_with(around);
  vec<value_id> arguments, wanted;
  for (int i = 0; i < f.input_count(); ++i)
    arguments.push_back(ops::parameter(b, "", f.input_type(i)));
  program repeated = f;
  ir_detail::for_each_op(repeated, [](op_node& n) { n.marks.again = true; });
  const vec<value_id> results =
      append_program(b, static_cast<program&&>(repeated), {arguments.data(), arguments.size()});
  vec<seed> seeds;
  for (int j : outputs)
    seeds.push_back({results[static_cast<std::size_t>(j)],
                     ops::parameter(b, "", tensor_type(f.output_type(j)))});
  for (int i : inputs) wanted.push_back(arguments[static_cast<std::size_t>(i)]);
  for (value_id v : reverse(b, seeds, wanted)) b.p.outputs.push_back({v, {}});
  return static_cast<program&&>(b.p);
}

}  // namespace partita::op_detail
