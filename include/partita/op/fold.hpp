/// fold: reduces elements with a user-defined function.
#pragma once

#include <partita/op/halves.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/op/step_ops.hpp>

namespace partita::op {

/// A function of scalars encoded as integers, which are stored as attributes of an op. It is a list
/// of steps. Each step operates on the inputs and on the results of earlier steps. A step is
/// encoded as: the index of its op in `step_ops`; its result type (-1 - i means the type of input
/// i); the number of operands and their indices; the number of attributes and their values.
///
/// Cost: linear in the number of steps.
class scalar_function {
 public:
  struct step {
    const op_def* def = nullptr;
    std::int64_t type = 0;
    span<const std::int64_t> operands, attrs;
  };

  constexpr explicit scalar_function(span<const std::int64_t> code) : rest_(code) {}

  /// Reads the next step. Returns false at the end or if the encoding is invalid.
  constexpr bool next(step& s) {
    constexpr auto ops = static_cast<std::int64_t>(sizeof(step_ops) / sizeof(step_ops[0]));
    if (rest_.empty() || !good) return false;
    good = false;
    if (rest_.size() < 4 || rest_[0] < 0 || rest_[0] >= ops || rest_[1] < -max_inputs ||
        rest_[1] >= dtype_count)
      return false;
    s.def = step_ops[rest_[0]];
    s.type = rest_[1];
    rest_ = rest_.subspan(2);
    return good = list(s.operands) && list(s.attrs);
  }
  bool good = true;

  /// Encodes a program of scalars. Returns false if an op is not in `step_ops`.
  static constexpr bool encode(const program& f, vec<std::int64_t>& code,
                               vec<std::int64_t>& results) {
    vec<std::int64_t> place(f.types.size(), -1);
    std::int64_t count = 0;
    for (value_id v : f.inputs) place[static_cast<std::size_t>(v)] = count++;
    for (op_id o = 0; o < f.op_count(); ++o) {
      if (f.is(o, op_role::parameter)) continue;
      const int which = step_of(*f.op(o).def);
      if (which < 0 || f.type(f.op(o).result).shape.rank > 0) return false;
      code.push_back(which);
      code.push_back(type_of(f, f.type(f.op(o).result).element));
      code.push_back(f.op(o).operand_count);
      for (value_id v : f.operands(o)) code.push_back(place[static_cast<std::size_t>(v)]);
      code.push_back(static_cast<std::int64_t>(f.attrs(o).size()));
      for (auto a : f.attrs(o)) code.push_back(a);
      place[static_cast<std::size_t>(f.op(o).result)] = count++;
    }
    for (const auto& each : f.outputs)
      results.push_back(place[static_cast<std::size_t>(each.value)]);
    return true;
  }
  /// Returns the first op of a program that is not in `step_ops`, or null.
  static constexpr const op_def* unsupported_op(const program& f) {
    for (op_id o = 0; o < f.op_count(); ++o)
      if (!f.is(o, op_role::parameter) && step_of(*f.op(o).def) < 0) return f.op(o).def;
    return nullptr;
  }
  /// Replaces the type t of every step that states one by f(t). Types that refer to an input stay.
  template <class F>
  static constexpr void replace_types(std::int64_t* code, std::size_t size, const F& f) {
    scalar_function steps({code, size});
    for (std::size_t at = 0; at < size; at = size - steps.rest_.size()) {
      step s;
      if (!steps.next(s)) return;
      if (s.type >= 0) code[at + 1] = static_cast<std::int64_t>(f(static_cast<dtype>(s.type)));
    }
  }
  /// Appends the steps as ops on tensors of one shape and on scalars. `values` holds the inputs;
  /// each step appends its result. Returns false if the encoding is invalid.
  constexpr bool emit(builder& b, vec<value_id>& values) {
    step s;
    const std::size_t inputs = values.size();
    while (next(s)) {
      vec<value_id> operands;
      for (auto i : s.operands) {
        if (i < 0 || i >= static_cast<std::int64_t>(values.size())) return false;
        operands.push_back(values[static_cast<std::size_t>(i)]);
      }
      const auto like = static_cast<std::size_t>(s.type < 0 ? -1 - s.type : 0);
      if (like >= inputs) return false;
      const dtype t = s.type < 0 ? b.type(values[like]).element : static_cast<dtype>(s.type);
      values.push_back(
          b.emit(*s.def, {operands.data(), operands.size()}, s.attrs, tensor_type{t, {}}));
      if (b.failed() || b.type(values.back()).element != t) return false;
    }
    return good;
  }

 private:
  span<const std::int64_t> rest_;

  static constexpr std::int64_t max_inputs = 1 << 20;

  /// Encodes a type relative to an input if possible, so that the function also applies to other
  /// element types.
  static constexpr std::int64_t type_of(const program& f, dtype t) {
    for (int i = 0; i < f.input_count(); ++i)
      if (f.input_type(i).element == t) return -1 - i;
    return static_cast<std::int64_t>(t);
  }
  static constexpr int step_of(const op_def& d) {
    constexpr int count = sizeof(step_ops) / sizeof(step_ops[0]);
    for (int i = 0; i < count; ++i)
      if (step_ops[i]->id == d.id) return i;
    return -1;
  }
  constexpr bool list(span<const std::int64_t>& to) {
    if (rest_.empty() || rest_[0] < 0 || rest_[0] >= static_cast<std::int64_t>(rest_.size()))
      return false;
    const auto count = static_cast<std::size_t>(rest_[0]);
    to = rest_.subspan(1, count);
    rest_ = rest_.subspan(1 + count);
    return true;
  }
};

/// Combines the elements along some dimensions, which disappear, by a user-defined associative
/// function of n + n scalars: first one scalar of each operand for the earlier elements, then one
/// for the later ones. If the function commutes, the order may change. An empty dimension yields
/// the identities; combining an element with them must not change it. Without identities, no
/// dimension may be empty.
///
/// Shapes    n times (s...) -> n times (s without dims)
/// Attributes: 1 if it commutes, the number of dimensions and the dimensions, strictly increasing,
///           the number of identities (n or 0) and the identities as `constant` stores them, the n
///           results among inputs and steps, and the steps (see scalar_function)
/// Tile map  ([i, k]) -> ([i])  again={k}: the results of shards are combined once more. If the
///           function does not commute, only the first of the dimensions can be sharded
/// Cost      one flop per step and element
/// Errors    S103 shapes differ, S110 bad dimensions, S198 the attributes are not such a function,
///           or a dimension is empty and identities are missing
struct fold {
  static constexpr std::string_view name = "fold";
  /// The parsed attributes.
  struct parts {
    bool good = false, commutes = false;
    span<const std::int64_t> dims, identities, results, code;

    constexpr parts(span<const std::int64_t> attrs, std::size_t operands) {
      if (attrs.size() < 2 || attrs[1] < 0 || attrs[1] > max_rank) return;
      const auto count = static_cast<std::size_t>(attrs[1]);
      if (attrs.size() < 3 + count + operands) return;
      const std::int64_t given = attrs[2 + count];
      if (given != 0 && given != static_cast<std::int64_t>(operands)) return;
      const auto before = 3 + count + static_cast<std::size_t>(given);
      if (attrs.size() < before + operands) return;
      commutes = attrs[0] != 0;
      dims = attrs.subspan(2, count);
      identities = attrs.subspan(3 + count, static_cast<std::size_t>(given));
      results = attrs.subspan(before, operands);
      code = attrs.subspan(before + operands);
      good = attrs[0] == 0 || attrs[0] == 1;
    }
    constexpr bool reduces(int d) const {
      for (auto each : dims)
        if (each == d) return true;
      return false;
    }
  };
  /// Applies scalar_function::replace_types to op `o`.
  template <class F>
  static constexpr void replace_types(program& p, op_id o, const F& f) {
    const auto attrs = p.attrs(o);
    const parts all(attrs, p.operands(o).size());
    const std::size_t before = attrs.size() - all.code.size();
    std::int64_t* const code =
        p.attr_list.data() + p.op(o).attr_begin + static_cast<std::ptrdiff_t>(before);
    scalar_function::replace_types(code, all.code.size(), f);
  }
  /// Appends the function as ops. `values` are its inputs: tensors of one shape, or scalars.
  /// Returns its results, or an empty list if the encoding is invalid.
  static constexpr vec<value_id> emit(builder& b, const parts& p, vec<value_id> values) {
    scalar_function f(p.code);
    if (!f.emit(b, values)) return {};
    vec<value_id> made;
    for (auto r : p.results) {
      if (r < 0 || r >= static_cast<std::int64_t>(values.size())) return {};
      made.push_back(values[static_cast<std::size_t>(r)]);
    }
    return made;
  }
  static constexpr void infer(infer_context& c) {
    const std::size_t n = c.operands.size();
    const parts p(c.attrs, n);
    if (n == 0 || !p.good)
      return c.fail("S198", name, ": ", n, " operands and ", c.attrs.size(),
                    " attributes are not a function of scalars");
    const shape& from = c.operands[0].shape;
    for (const auto& t : c.operands)
      if (!same_shape(t.shape, from))
        return c.fail("S103", name, ": shapes ", from, " and ", t.shape, " differ");
    std::int64_t previous = -1;
    for (auto d : p.dims) {
      if (d <= previous || d >= from.rank)
        return c.fail("S110", name, ": dimension ", d, " is out of order or out of range for ",
                      c.operands[0]);
      previous = d;
      if (from[static_cast<int>(d)] == 0 && p.identities.empty())
        return c.fail("S198", name, ": dimension ", d, " of ", c.operands[0],
                      " is empty, and no identity is given");
    }
    builder b;
    vec<value_id> scalars;
    const std::int64_t zero[] = {0};
    for (int side = 0; side < 2; ++side)
      for (const auto& t : c.operands)
        scalars.push_back(b.emit(def<constant>, {}, zero, {t.element, {}}));
    const vec<value_id> made = emit(b, p, scalars);
    bool good = made.size() == n && !b.failed();
    for (std::size_t i = 0; good && i < n; ++i)
      good = b.type(made[i]) == tensor_type{c.operands[i].element, {}};
    if (!good)
      return c.fail("S198", name, ": its steps do not return a scalar of each operand's type");
    shape to;
    for (int d = 0; d < from.rank; ++d)
      if (!p.reduces(d)) to.push_back(from[d]);
    c.result = {c.operands[0].element, to};
    for (std::size_t i = 1; i < n; ++i) c.more.push_back({c.operands[i].element, to});
  }
  static constexpr void tile_map(tile_map_context& c) {
    const int n = static_cast<int>(c.operands.size());
    const parts p({c.attrs, static_cast<std::size_t>(c.attr_count)}, c.operands.size());
    int kept = 0;
    for (int d = 0; d < c.operands[0].shape.rank; ++d) {
      const bool reduced = p.reduces(d);
      if (reduced && !p.commutes && d != p.dims[0]) continue;
      c.tile(c.operands[0].shape[d], reduced ? no_dim : kept);
      for (int i = 0; i < n; ++i) {
        c.operand(i, d);
        if (i > 0 && !reduced) c.also(i, kept);
      }
      if (reduced)
        c.again();
      else
        ++kept;
    }
  }
  /// Differentiates the equivalent fold by halves: x0 x1, x2 x3, ... until one element remains. The
  /// halves are a separate program with the operands as inputs, since the operands may be one value
  /// or depend on each other.
  static constexpr void derive(derive_context& c) {
    builder& b = c.b;
    vec<int> inputs, outputs;
    vec<value_id> given;
    for (std::size_t i = 0; i < c.wanted.size(); ++i) {
      given.push_back(b.p.operand(c.op, static_cast<int>(i)));
      if (c.wanted[i] && is_floating(b.type(given[i]).element))
        inputs.push_back(static_cast<int>(i));
    }
    if (inputs.empty() || b.type(given[0]).shape.elements() == 0) return;
    for (std::size_t i = 0; i < c.cotangents.size(); ++i) {
      if (c.cotangents[i] < 0) continue;
      outputs.push_back(static_cast<int>(i));
      given.push_back(c.cotangents[i]);
    }
    const program f = halved(b, c.op);
    b.p.error.record(f.error);
    if (b.failed()) return;
    program back = op_detail::transposed(b, f, inputs, outputs);
    b.p.error.record(back.error);
    const vec<value_id> found = op_detail::append_ops(
        b, back, {given.data(), given.size()}, [](program&) {}, [](op_id) {});
    for (std::size_t k = 0; k < found.size(); ++k)
      c.operands[static_cast<std::size_t>(inputs[k])] = found[k];
  }
  static constexpr std::int64_t flops(const cost_context& c) {
    scalar_function f(parts(c.attrs, c.operands.size()).code);
    std::int64_t steps = 0;
    for (scalar_function::step s; f.next(s);) ++steps;
    return saturating_multiply(steps, c.operands[0].shape.elements());
  }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    const int n = static_cast<int>(f.operands.size());
    f.flag("commutes");
    f.counted("dims");
    f.counted("identity");
    f.list("results", n);
    f.rest("steps");
  }

 private:
  /// Returns the fold `o` of program `around` as a program of its operands that combines by halves.
  static constexpr program halved(const builder& around, op_id o) {
    const op_node& n = around.p.op(o);
    const parts p(around.p.attrs(o), static_cast<std::size_t>(n.operand_count));
    builder b;
    vec<value_id> xs;
    for (value_id v : around.p.operands(o)) xs.push_back(ops::parameter(b, "", around.type(v)));
    for (std::size_t i = p.dims.size(); i-- > 0;)
      op_detail::halve(b, xs, static_cast<int>(p.dims[i]),
                       [&](const vec<value_id>& left, const vec<value_id>& right) {
                         return combined(b, p, left, right);
                       });
    for (std::size_t i = 0; i < xs.size() && !b.failed(); ++i)
      b.p.outputs.push_back(
          {ops::reshape(b, xs[i], around.type(n.result + static_cast<value_id>(i)).shape), {}});
    return static_cast<program&&>(b.p);
  }
  /// Combines tensors of one shape: `left` holds the earlier elements, `right` the later ones.
  static constexpr vec<value_id> combined(builder& b, const parts& p, const vec<value_id>& left,
                                          const vec<value_id>& right) {
    if (b.failed()) return left;
    const shape to = b.type(left[0]).shape;
    vec<value_id> both = left;
    both.insert_back(right.begin(), right.end());
    vec<value_id> made = emit(b, p, both);
    if (made.size() != left.size()) {
      b.p.error.record("S198", "fold: its steps do not return a scalar of each operand's type");
      return left;
    }
    for (value_id& v : made)
      if (!b.failed() && b.type(v).shape.rank != to.rank) v = ops::broadcast_in_dim(b, v, to, {});
    return made;
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::fold)
}  // namespace partita

namespace partita::ops {

/// Emits a fold. `f` is a program of n + n scalars that returns n. `identities` are as `constant`
/// stores them, or empty.
constexpr value_id fold(builder& b, span<const value_id> operands, ints dims, ints identities,
                        bool commutes, const program& f) {
  vec<std::int64_t> code, results;
  b.p.error.record(f.error);
  if (b.failed()) return -1;
  if (const op_def* other = op::scalar_function::unsupported_op(f)) {
    b.p.error.record("S198", "fold: its function uses ", other->name,
                     "; it may use ops that work element by element, comparisons, select, convert "
                     "and numbers");
    return -1;
  }
  if (!op::scalar_function::encode(f, code, results) || results.size() != operands.size() ||
      f.inputs.size() != 2 * operands.size()) {
    b.p.error.record("S198", "fold: its program is not an elementwise function of ",
                     2 * operands.size(), " scalars that returns ", operands.size());
    return -1;
  }
  vec<std::int64_t> attrs{commutes ? 1 : 0, static_cast<std::int64_t>(dims.size())};
  const std::int64_t given[] = {static_cast<std::int64_t>(identities.size())};
  for (ints list : {dims, ints(given), identities, ints(results.data(), results.size()),
                    ints(code.data(), code.size())})
    attrs.insert_back(list.begin(), list.end());
  return b.emit(def<op::fold>, operands, {attrs.data(), attrs.size()});
}

}  // namespace partita::ops
