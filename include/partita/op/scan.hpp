/// scan: repeats a nested program over slices of values.
#pragma once

#include <partita/op/control_op.hpp>
#include <partita/op/reverse_mode.hpp>

namespace partita::op {

/// Runs a nested program `length` times. Each iteration reads one slice of the sliced values,
/// passes carried values to the next, and appends to the stacked results.
///
/// Attributes: length, reversed (starts with the last slice), the numbers of constant, carried and
/// sliced operands, the number of stacked results, and saved. If saved, the last stacked results
/// are the carried values at the start of each iteration. They are kept for the derivative, and
/// dropped if nothing needs them.
///
/// Shapes    constants..., carried..., sliced (length, ...)...
///             -> carried..., stacked (length, ...)...;
///           nested: index (i32), constants..., carried..., slices... -> carried..., slices...
/// Errors    S180 wrong number of values, S181, S182 types, S183 length negative or above the
///           maximum i32, S184 extent of a sliced operand
/// Source    not a StableHLO op (there it is written as a while); the semantics are those of
///           jax.lax.scan
struct scan : control_op {
  static constexpr std::string_view name = "scan";
  struct counts {
    std::int64_t length = 0;
    bool reversed = false, saved = false;
    int constants = 0, carried = 0, sliced = 0, stacked = 0;

    constexpr explicit counts(span<const std::int64_t> a)
        : length(a[0]),
          reversed(a[1] != 0),
          saved(a[6] != 0),
          constants(static_cast<int>(a[2])),
          carried(static_cast<int>(a[3])),
          sliced(static_cast<int>(a[4])),
          stacked(static_cast<int>(a[5])) {}
  };
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.number("length");
    f.flag("reversed");
    f.number_or("constants", 0);
    f.number_or("carried", 0);
    f.number_or("sliced", 0);
    f.number_or("stacked", 0);
    f.flag("saved");
  }
  static constexpr tensor_type slice_of(tensor_type t) {
    shape s;
    for (int d = 1; d < t.shape.rank; ++d) s.push_back(t.shape[d]);
    return {t.element, s};
  }
  static constexpr tensor_type stack_of(std::int64_t length, const tensor_type& t) {
    shape s{length};
    for (auto e : t.shape) s.push_back(e);
    return {t.element, s};
  }
  static constexpr void infer(infer_context& c) {
    if (!regions(c, name, 1, 1)) return;
    if (c.attrs.size() != 7)
      return c.fail("S180", name, ": ", c.attrs.size(), " attributes; 7 are needed");
    const program& body = c.regions[0];
    const auto given = static_cast<std::int64_t>(c.operands.size());
    std::int64_t total = 0;
    for (int i = 2; i < 5; ++i) {
      const bool fits = c.attrs[i] >= 0 && c.attrs[i] <= given && total >= 0;
      total = fits ? total + c.attrs[i] : -1;
    }
    if (total != given)
      return c.fail("S180", name, ": ", c.attrs[2], " constant, ", c.attrs[3], " carried and ",
                    c.attrs[4], " sliced values; it has ", given, " operands");
    if (c.attrs[5] < (c.attrs[6] != 0 ? c.attrs[3] : 0) || c.attrs[5] > body.output_count())
      return c.fail("S180", name, ": ", c.attrs[5], " stacked results, ",
                    c.attrs[6] != 0 ? c.attrs[3] : 0, " of them saved; the body returns ",
                    body.output_count(), " values");
    const counts k(c.attrs);
    constexpr std::int64_t most = 0x7fffffff;  // the index is an i32
    if (k.length < 0 || k.length > most)
      return c.fail("S183", name, ": the length is ", k.length, "; it must be between 0 and ",
                    most);
    const auto operand = [&](int i) { return c.operands[static_cast<std::size_t>(i)]; };
    const int n = static_cast<int>(given);
    for (int i = n - k.sliced; i < n; ++i)
      if (operand(i).shape.rank == 0 || operand(i).shape[0] != k.length)
        return c.fail("S184", name, ": sliced value ", i - (n - k.sliced), " has type ", operand(i),
                      "; its first extent must be the length, ", k.length);
    check_inputs(c, name, body, 1 + n, [&](int i) {
      if (i == 0) return tensor_type{dtype::i32, {}};
      return i - 1 < n - k.sliced ? operand(i - 1) : slice_of(operand(i - 1));
    });
    check_outputs(c, name, "the body", body, k.carried + k.stacked, k.carried,
                  [&](int i) { return operand(k.constants + i); });
    if (c.error) return;
    vec<tensor_type> types;
    for (int i = 0; i < k.carried; ++i) types.push_back(operand(k.constants + i));
    for (int j = k.carried; j < body.output_count(); ++j)
      types.push_back(stack_of(k.length, body.output_type(j)));
    set_results(c, name, types);
  }
  static constexpr void wires(const program& p, op_id o, wire_list& w) {
    const counts k(p.attrs(o));
    const int first = k.constants + k.carried;
    w.trips = k.length;
    w.add().input(0, 0);
    for (int i = 0; i < k.constants; ++i) w.add().operand(i).input(0, 1 + i);
    for (int i = 0; i < k.carried; ++i)
      w.add().operand(k.constants + i).input(0, 1 + k.constants + i).output(0, i).result(i);
    for (int i = 0; i < k.sliced; ++i) w.add().operand(first + i, 1).input(0, 1 + first + i);
    for (int j = k.carried; j < k.carried + k.stacked; ++j) w.add().output(0, j).result(j, 1);
  }
  static constexpr void pruned(vec<std::int64_t>& attrs, const vec<char>& operands,
                               const vec<char>& results) {
    const counts k({attrs.data(), attrs.size()});
    const auto kept = [](const vec<char>& list, int begin, int count) {
      std::int64_t n = 0;
      for (int i = begin; i < begin + count; ++i) n += list[static_cast<std::size_t>(i)];
      return n;
    };
    attrs[2] = kept(operands, 0, k.constants);
    attrs[3] = kept(operands, k.constants, k.carried);
    attrs[4] = kept(operands, k.constants + k.carried, k.sliced);
    attrs[5] = kept(results, k.carried, k.stacked);
    attrs[6] = k.saved && kept(results, k.stacked, k.carried) == attrs[3];
  }
  /// Runs backwards over the same slices, from the saved carried values.
  static constexpr void derive(derive_context& c);
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::scan)
}  // namespace partita

namespace partita::ops {

/// Emits a scan. `body` has no saved results; they are added here.
constexpr value_id scan(builder& b, std::int64_t length, bool reversed,
                        span<const value_id> constants, span<const value_id> carried,
                        span<const value_id> sliced, program&& body) {
  vec<value_id> operands(constants.data(), constants.data() + constants.size());
  operands.insert_back(carried.begin(), carried.end());
  operands.insert_back(sliced.begin(), sliced.end());
  const auto stacked = static_cast<std::int64_t>(body.outputs.size());
  const bool whole =
      body.inputs.size() == 1 + operands.size();  // otherwise the shape rule reports it
  for (std::size_t i = 0; i < carried.size() && whole; ++i)
    body.outputs.push_back({body.inputs[1 + constants.size() + i], {}});
  const std::int64_t attrs[] = {length,
                                reversed,
                                static_cast<std::int64_t>(constants.size()),
                                static_cast<std::int64_t>(carried.size()),
                                static_cast<std::int64_t>(sliced.size()),
                                stacked,
                                1};
  return b.emit(def<op::scan>, operands, attrs, {}, region_list(static_cast<program&&>(body)));
}

}  // namespace partita::ops

namespace partita::op {

constexpr void scan::derive(derive_context& c) {
  builder& b = c.b;
  const counts k(b.p.attrs(c.op));
  const program body = b.p.region(c.op, 0);
  const auto at = [](int i) { return static_cast<std::size_t>(i); };
  const int operand_count = k.constants + k.carried + k.sliced;
  vec<value_id> operands(b.p.operands(c.op).data(), b.p.operands(c.op).data() + operand_count);
  // The carried values at the start of each iteration.
  value_id saved = b.p.op(c.op).result + k.stacked;
  if (!k.saved) {
    program again = op_detail::copy_to_repeat(body);
    saved = k.carried + k.stacked +
            ops::scan(b, k.length, k.reversed, {operands.data(), at(k.constants)},
                      {operands.data() + k.constants, at(k.carried)},
                      {operands.data() + k.constants + k.carried, at(k.sliced)},
                      static_cast<program&&>(again));
  }
  if (b.failed()) return;

  // Values with cotangents: all floating-point carried ones, since each may come to depend on a
  // wanted value; constants and slices that are wanted; stacked results that are used.
  vec<int> constants, carried, sliced, stacked, inputs, outputs;
  const auto floating = [&](int i) { return is_floating(b.type(operands[at(i)]).element); };
  for (int i = 0; i < operand_count; ++i) {
    const bool is_carried = i >= k.constants && i < k.constants + k.carried;
    if (!floating(i) || (!is_carried && !c.wanted[at(i)])) continue;
    (i < k.constants ? constants : is_carried ? carried : sliced).push_back(i);
  }
  for (int j = k.carried; j < k.carried + k.stacked; ++j)
    if (c.cotangents[at(j)] >= 0) stacked.push_back(j);
  for (const auto* list : {&constants, &carried, &sliced})
    for (int i : *list) inputs.push_back(1 + i);
  for (int i : carried) outputs.push_back(i - k.constants);
  for (int j : stacked) outputs.push_back(j);
  program transposed = op_detail::transposed(b, body, inputs, outputs);
  b.p.error.record(transposed.error);
  if (b.failed()) return;

  // One step: index, constants; cotangents of carried values and sums of those of constants; saved
  // carried values, slices, cotangents of stacked results.
  builder step;
  step.number_with(b);
  const auto parameter = [&](const tensor_type& t) { return ops::parameter(step, "", t); };
  vec<value_id> arguments, sums, constant_operands, carried_operands, sliced_operands;
  arguments.push_back(parameter({dtype::i32, {}}));
  for (int i = 0; i < k.constants; ++i) {
    arguments.push_back(parameter(b.type(operands[at(i)])));
    constant_operands.push_back(operands[at(i)]);
  }
  vec<value_id> carried_cotangents, stacked_cotangents;
  for (int i : carried) {
    const tensor_type t = b.type(operands[at(i)]);
    const value_id known = c.cotangents[at(i - k.constants)];
    carried_cotangents.push_back(parameter(t));
    carried_operands.push_back(known >= 0 ? known : ops::constant(b, t, 0));
  }
  for (int i : constants) {
    const tensor_type t = b.type(operands[at(i)]);
    sums.push_back(parameter(t));
    carried_operands.push_back(ops::constant(b, t, 0));
  }
  for (int i = 0; i < k.carried; ++i) {
    arguments.push_back(parameter(b.type(operands[at(k.constants + i)])));
    sliced_operands.push_back(saved + i);
  }
  for (int i = k.constants + k.carried; i < operand_count; ++i) {
    arguments.push_back(parameter(slice_of(b.type(operands[at(i)]))));
    sliced_operands.push_back(operands[at(i)]);
  }
  for (int j : stacked) {
    stacked_cotangents.push_back(parameter(body.output_type(j)));
    sliced_operands.push_back(c.cotangents[at(j)]);
  }
  arguments.insert_back(carried_cotangents.begin(), carried_cotangents.end());
  arguments.insert_back(stacked_cotangents.begin(), stacked_cotangents.end());
  const vec<value_id> found = op_detail::append_program(step, static_cast<program&&>(transposed),
                                                        {arguments.data(), arguments.size()});
  b.p.error.record(step.p.error);
  if (b.failed()) return;
  for (std::size_t i = 0; i < carried.size(); ++i)
    step.p.outputs.push_back({found[constants.size() + i], {}});
  for (std::size_t i = 0; i < constants.size(); ++i)
    step.p.outputs.push_back({ops::add(step, sums[i], found[i]), {}});
  for (std::size_t i = 0; i < sliced.size(); ++i)
    step.p.outputs.push_back({found[constants.size() + carried.size() + i], {}});
  // All inputs of the step but the index, in the order of scan's operands.
  const value_id first =
      ops::scan(b, k.length, !k.reversed, {constant_operands.data(), constant_operands.size()},
                {carried_operands.data(), carried_operands.size()},
                {sliced_operands.data(), sliced_operands.size()}, static_cast<program&&>(step.p));
  if (b.failed()) return;
  int next = first;
  for (int i : carried) c.operands[at(i)] = next++;
  for (int i : constants) c.operands[at(i)] = next++;
  for (int i : sliced) c.operands[at(i)] = next++;
}

}  // namespace partita::op
