/// `while` in StableHLO: a counting loop is read as a `scan`.
#pragma once

#include <partita/op/recover_scan.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// Limits for loops that are unrolled.
inline constexpr std::int64_t most_iterations = 256, most_unrolled_ops = 100'000;

/// Unrolls a loop; returns nothing if the loop does not count or exceeds the limits.
constexpr vec<value_id> unrolled(op_context& c, const vec<value_id>& carried) {
  const program &condition = c.regions[0], &body = c.regions[1];
  const trip_count count = find_trip_count(c.b.p, carried, condition, body);
  if (!count.known || count.trips > most_iterations ||
      count.trips * body.op_count() > most_unrolled_ops)
    return {};
  const auto counter = static_cast<std::size_t>(count.counter);
  const dtype element = c.b.type(carried[counter]).element;
  const auto number = [&](std::int64_t i) {
    return c.b.scalar(def<op::constant>, element, count.start + i * count.step);
  };
  vec<value_id> now = carried;
  for (std::int64_t i = 0; i < count.trips && !c.failed(); ++i) {
    now[counter] = number(i);
    program iteration = body;
    now = op_detail::append_with_marks(c.b, static_cast<program&&>(iteration), now);
  }
  if (!c.failed()) now[counter] = number(count.trips);
  return now;
}

/// Values that both programs use from outside become carried values that do not change.
constexpr void read_while(op_context& c) {
  if (!c.region_count(2)) return;
  const int n = static_cast<int>(c.operands.size());
  vec<value_id> carried = c.operands;
  carried.insert_back(c.captured.begin(), c.captured.end());
  program& body = c.regions[1];
  if (body.output_count() != n)
    return c.fail("H012", "its body returns ", body.output_count(), " values; ", n, " are carried");
  for (int i = n; i < body.input_count(); ++i) body.outputs.push_back({body.inputs[i], {}});
  vec<value_id> made;
  if (c.unrolls) made = unrolled(c, carried);
  if (made.empty()) made = ops::recovered_scan(c.b, carried, c.regions[0], body);
  if (made.empty())
    return c.give(ops::while_loop(c.b, carried, static_cast<program&&>(c.regions[0]),
                                  static_cast<program&&>(body)),
                  n);
  for (std::size_t i = 0; i < c.operands.size() && i < made.size(); ++i) c.give(made[i]);
}

}  // namespace partita::stablehlo_detail
