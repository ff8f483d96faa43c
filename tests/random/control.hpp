/// Draws loops, branches and calls, whose bodies are random programs again.
#pragma once

#include "windows.hpp"

namespace random_test {

inline void draw_ops(writer& w, std::int64_t wanted, int most_tries);

/// The maximum depth of nested programs.
inline constexpr int most_nested = 4;

/// Puts the inputs in the given order; captured values begin at position `from`.
inline void order_inputs(writer& w, const std::vector<value_id>& own, std::size_t from,
                         const std::vector<value_id>& captured) {
  w.b.p.inputs.clear();
  for (std::size_t i = 0; i < own.size(); ++i) {
    if (i == from) w.b.p.inputs.insert_back(captured.data(), captured.data() + captured.size());
    w.b.p.inputs.push_back(own[i]);
  }
  if (from == own.size())
    w.b.p.inputs.insert_back(captured.data(), captured.data() + captured.size());
}
/// Returns the outer values that these nested programs capture, each once. They become the last
/// inputs of each nested program.
inline std::vector<value_id> join_captures(const std::vector<writer*>& regions,
                                           const std::vector<std::vector<value_id>>& own) {
  std::vector<value_id> outer;
  for (const writer* w : regions)
    for (const auto& c : w->captures())
      if (std::find(outer.begin(), outer.end(), c.outer) == outer.end()) outer.push_back(c.outer);
  for (std::size_t k = 0; k < regions.size(); ++k) {
    std::vector<value_id> inner;
    for (auto v : outer) inner.push_back(regions[k]->capture(v));
    order_inputs(*regions[k], own[k], own[k].size(), inner);
  }
  return outer;
}
inline void return_from(writer& w, const std::vector<value_id>& values) {
  for (auto v : values) w.b.p.outputs.push_back({v, {}});
  w.b.p.error.raise();
}

/// Returns a value of this type in the interval, clamped if necessary.
inline value_id in_interval(writer& w, const tensor_type& t, const value_info& i) {
  const auto v = w.any([&](value_id x) {
    return w.type(x) == t && (w.info(x).integer || !i.integer || w.state.differentiable);
  });
  if (v < 0 || w.state.differentiable || w.info(v).within(i)) return v;
  const auto low = w.scalar(t.element, std::ceil(i.lo)),
             high = w.scalar(t.element, std::floor(i.hi));
  if (std::ceil(i.lo) > std::floor(i.hi)) return -1;
  w.done(pt::ops::clamp(w.b, low, v, high), {std::ceil(i.lo), std::floor(i.hi), i.integer});
  return w.last();
}
/// Returns the interval that a carried value may reach, which contains its own.
inline value_info carried_interval(writer& w, value_id v) {
  value_info i = w.info(v);
  if (!w.floating(v)) return all_of(w.element(v));
  const value_info wider{std::floor(i.lo) - 6, std::ceil(i.hi) + 6, i.integer};
  return fits(w.element(v), wider) ? wider : i;
}
inline std::vector<value_id> some_values(writer& w, std::int64_t least, std::int64_t most) {
  std::vector<value_id> list;
  for (auto n = w.r.in(least, most); n > 0; --n) list.push_back(w.any());
  return list;
}
/// Returns values to be carried; often two of one type, which may change places.
inline std::vector<value_id> some_carried(writer& w, std::int64_t least) {
  auto list = some_values(w, least, 2);
  if (list.size() == 2 && !w.r.one_in(3))
    list[1] = w.any([&](value_id v) { return w.type(v) == w.type(list[0]); });
  return list;
}

/// Draws a body of a few ops.
inline void draw_body(writer& body) { draw_ops(body, body.r.in(1, 5), 30); }

inline bool draw_scan(writer& w) {
  std::int64_t length = w.r.in(0, 3);
  const auto carried = some_carried(w, 0);
  std::vector<value_id> sliced;
  const auto long_enough = w.any([&](value_id v) { return w.rank(v) > 0 && w.dims(v)[0] <= 4; });
  if (long_enough >= 0 && w.r.one_in(2)) length = w.dims(long_enough)[0];
  for (auto n = w.r.in(0, 2); n > 0 && length >= w.least(); --n) {
    auto v = w.any([&](value_id x) { return w.rank(x) > 0 && w.dims(x)[0] == length; });
    if (v < 0) {
      shape s{length};
      for (auto e : w.some_shape(0, 2)) s.push_back(e);
      v = w.fresh({w.r.one_in(4) ? dtype::i32 : dtype::f32, s});
    }
    sliced.push_back(v);
  }

  writer body(w);
  std::vector<value_id> inputs;
  const auto input = [&](const tensor_type& t, const value_info& i) {
    inputs.push_back(body.input(t, i));
  };
  input({dtype::i32, {}}, {0, static_cast<double>(std::max<std::int64_t>(length - 1, 0))});
  std::vector<value_info> intervals;
  for (auto v : carried) {
    intervals.push_back(carried_interval(w, v));
    input(w.type(v), intervals.back());
  }
  for (auto v : sliced) input(op::scan::slice_of(w.type(v)), w.info(v));
  draw_body(body);

  std::vector<value_id> outputs;
  std::vector<value_info> results = intervals;
  for (std::size_t i = 0; i < carried.size(); ++i)
    outputs.push_back(in_interval(body, w.type(carried[i]), intervals[i]));
  for (auto n = w.r.in(carried.empty() ? 1 : 0, 2); n > 0; --n) {
    outputs.push_back(static_cast<value_id>(w.r.in(0, body.last())));
    results.push_back(body.info(outputs.back()));
  }
  const auto stacked = outputs.size() - carried.size();
  for (auto v : outputs)
    if (v < 0 || body.dims(v).elements() > 512 || body.rank(v) > 5) return false;
  return_from(body, outputs);
  std::vector<value_id> constants, inner;
  for (const auto& c : body.captures()) {
    constants.push_back(c.outer);
    inner.push_back(c.inner);
  }
  order_inputs(body, inputs, 1, inner);
  const bool reversed = w.r.one_in(2);
  if (w.r.one_in(2)) {  // with the carried values of each trip, as reverse mode needs them
    results.insert(results.end(), intervals.begin(), intervals.end());
    return w.done(
        pt::ops::scan(w.b, length, reversed, constants, carried, sliced, std::move(body.b.p)),
        results);
  }
  const auto count = [](const auto& list) { return static_cast<std::int64_t>(list.size()); };
  const std::int64_t attrs[] = {length,
                                reversed,
                                count(constants),
                                count(carried),
                                count(sliced),
                                static_cast<std::int64_t>(stacked),
                                0};
  std::vector<value_id> operands = constants;
  operands.insert(operands.end(), carried.begin(), carried.end());
  operands.insert(operands.end(), sliced.begin(), sliced.end());
  return w.done(
      w.b.emit(def<op::scan>, operands, attrs, {}, pt::ops::region_list(std::move(body.b.p))),
      results);
}

/// Draws a loop of at most three trips; the condition may also read the other carried values.
inline bool draw_while(writer& w) {
  if (w.derived()) return false;  // it has no derivative
  std::vector<value_id> carried = some_carried(w, 1);
  std::vector<value_info> intervals;
  for (auto v : carried) intervals.push_back(carried_interval(w, v));
  carried.insert(carried.begin(),
                 w.r.one_in(2) ? w.scalar(dtype::i32, 0) : w.fresh({dtype::i32, {}}, 0, 2));
  intervals.insert(intervals.begin(), {0, 3});

  writer condition(w), body(w);
  std::vector<std::vector<value_id>> inputs(2);
  for (std::size_t i = 0; i < carried.size(); ++i) {
    inputs[0].push_back(condition.input(w.type(carried[i]), intervals[i]));
    inputs[1].push_back(body.input(w.type(carried[i]), intervals[i]));
  }
  const auto limit = condition.scalar(dtype::i32, static_cast<double>(w.r.in(0, 3)));
  condition.emit(def<op::compare>, {inputs[0][0], limit}, {0, 1}, dtype::boolean, {2});
  auto test = condition.last();
  if (w.r.one_in(2)) {
    draw_ops(condition, 1, 5);
    const auto x = condition.any_number();
    ints dims;
    for (int d = 0; d < condition.rank(x); ++d) dims.push_back(d);
    const auto t = condition.element(x);
    const auto greatest = pt::ops::reduce(condition.b, x, pt::combiner::max, dims);
    condition.done(greatest,
                   combined(pt::combiner::max, condition.info(x), condition.dims(x).elements(), t));
    condition.emit(def<op::compare>, {greatest, condition.scalar(t, 1)}, {0, 1}, dtype::boolean,
                   {w.r.in(0, 5)});
    condition.emit(def<op::logical_and>, {test, condition.last()}, {0, 1}, dtype::boolean);
    test = condition.last();
  }
  return_from(condition, {test});

  const auto one = body.scalar(dtype::i32, 1);
  body.emit(def<op::add>, {inputs[1][0], one}, {1, 3}, dtype::i32);
  std::vector<value_id> outputs{body.last()};
  draw_body(body);
  for (std::size_t i = 1; i < carried.size(); ++i)
    outputs.push_back(in_interval(body, w.type(carried[i]), intervals[i]));
  for (auto v : outputs)
    if (v < 0) return false;
  for (auto v : join_captures({&condition, &body}, inputs)) {
    carried.push_back(v);
    intervals.push_back(w.info(v));
    outputs.push_back(body.capture(v));
  }
  return_from(body, outputs);
  return w.done(pt::ops::while_loop(w.b, carried, std::move(condition.b.p), std::move(body.b.p)),
                intervals);
}

inline bool draw_case(writer& w) {
  const auto arguments = some_values(w, 1, 2);
  const auto index = some_index(w, dtype::i32);
  const auto branches = w.r.in(2, 3);
  std::vector<std::unique_ptr<writer>> list;
  std::vector<writer*> regions;
  std::vector<std::vector<value_id>> inputs, outputs;
  std::vector<tensor_type> types;
  std::vector<value_info> results;
  for (int k = 0; k < branches; ++k) {
    list.push_back(std::make_unique<writer>(w));
    writer& branch = *list.back();
    regions.push_back(&branch);
    inputs.emplace_back();
    outputs.emplace_back();
    for (auto v : arguments) inputs.back().push_back(branch.input(w.type(v), w.info(v)));
    draw_body(branch);
    const auto count = k == 0 ? w.r.in(1, 2) : static_cast<std::int64_t>(types.size());
    for (int j = 0; j < count; ++j) {
      const auto i = static_cast<std::size_t>(j);
      auto v = k == 0 ? static_cast<value_id>(w.r.in(0, branch.last()))
                      : branch.any([&](value_id x) { return branch.type(x) == types[i]; });
      if (v < 0) v = branch.fresh(types[i]);
      if (k == 0) types.push_back(branch.type(v)), results.push_back(branch.info(v));
      results[i] = either(results[i], branch.info(v));
      outputs.back().push_back(v);
    }
  }
  std::vector<value_id> operands = arguments;
  for (auto v : join_captures(regions, inputs)) operands.push_back(v);
  pt::vec<pt::program> programs;
  for (std::size_t k = 0; k < regions.size(); ++k) {
    return_from(*regions[k], outputs[k]);
    programs.push_back(std::move(regions[k]->b.p));
  }
  return w.done(pt::ops::case_of(w.b, index, operands, std::move(programs)), results);
}

inline bool draw_call(writer& w) {
  std::vector<value_id> arguments = some_values(w, 1, 2), inputs, outputs;
  writer body(w);
  for (auto v : arguments) inputs.push_back(body.input(w.type(v), w.info(v)));
  draw_body(body);
  std::vector<value_info> results;
  for (auto n = w.r.in(1, 2); n > 0; --n) {
    outputs.push_back(static_cast<value_id>(w.r.in(0, body.last())));
    results.push_back(body.info(outputs.back()));
  }
  for (auto v : join_captures({&body}, {inputs})) arguments.push_back(v);
  return_from(body, outputs);
  const std::string name = "f" + std::to_string(w.state.names++);
  return w.done(pt::ops::call(w.b, name, arguments, std::move(body.b.p)), results);
}

inline bool draw_control(writer& w) {
  if (w.depth() == most_nested) return false;
  switch (w.r.in(0, 5)) {
    case 0:
      return draw_while(w);
    case 1:
      return draw_case(w);
    case 2:
      return draw_call(w);
    default:
      return draw_scan(w);
  }
}

}  // namespace random_test
