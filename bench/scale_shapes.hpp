/// Programs of any size in many shapes, with schedules for them; bench_scale measures them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/partita.hpp>

namespace scale {

namespace pt = partita;
using pt::value_id;

/// A tactic that tiles listed values along an axis: named values, or inner values by number.
struct tactic {
  std::string label, axis;
  std::vector<std::pair<std::string, pt::placement>> named = {};
  std::vector<std::pair<value_id, int>> inner = {};  ///< value and dimension, or -1 for atomic
  pt::uneven policy = pt::uneven::unsaid;

  std::string_view name() const { return label; }
  void apply(pt::tactic_context& c) const {
    for (const auto& [value, where] : named)
      pt::manual(axis, {{value, where}}, label, policy).apply(c);
    if (inner.empty()) return;
    const int a = c.axis(axis);
    for (const auto& [value, dim] : inner)
      if (dim < 0)
        c.atomic(value, a);
      else
        c.tile(value, dim, a);
    c.propagate();
  }
};

struct model {
  pt::program program;
  std::vector<tactic> schedule;
};

inline constexpr std::int64_t side = 64;
inline const pt::tensor_type square{pt::dtype::f32, {side, side}};

/// A program under construction, of about `target_ops` ops.
class writer {
 public:
  explicit writer(int ops) : target_ops(ops) {}

  value_id input(const std::string& name, const pt::tensor_type& t = square) {
    return pt::ops::parameter(b, name, t);
  }
  value_id dot(value_id x, value_id y, int left = 1, int right = 0) {
    const std::int64_t l[] = {left}, r[] = {right};
    return pt::ops::dot_general(b, x, y, {{}, {}, l, r});
  }
  value_id tanh(value_id x) { return pt::ops::tanh(b, x); }
  void output(value_id v, const std::string& name) {
    pt::program_output o;
    o.value = v;
    if (!name.empty()) o.name = b.p.intern(name);
    b.p.outputs.push_back(o);
  }
  bool full() const { return b.p.op_count() >= target_ops; }
  pt::program take() {
    b.p.error.raise();
    return std::move(b.p);
  }

  pt::builder b;
  int target_ops;
};

inline std::string numbered(const char* prefix, std::size_t i) {
  return prefix + std::to_string(i);
}

inline const tactic BP{"BP", "B", {{"x", 0}}};

// ---- Straight lines ---------------------------------------------------------------------------

inline model chain(int n) {
  writer w(n);
  const value_id x = w.input("x"), weight = w.input("w");
  value_id h = x;
  for (int i = 0; !w.full(); ++i)
    h = i % 4 == 0   ? w.dot(h, weight)
        : i % 4 == 1 ? w.tanh(h)
        : i % 4 == 2 ? pt::ops::add(w.b, h, x)
                     : pt::ops::negate(w.b, h);
  w.output(h, "y");
  return {w.take(), {BP, {"MP", "M", {{"w", 1}}}}};
}

/// Shards the last value, so that propagation runs against the flow of data.
inline model backward(int n) {
  writer w(n);
  value_id h = w.input("x");
  while (!w.full()) h = pt::ops::negate(w.b, h);
  w.output(h, "y");
  return {w.take(), {{"BP", "B", {{"y", 0}}}}};
}

/// One value with n/2 users, which a tree of additions sums.
inline model wide(int n) {
  writer w(n);
  const value_id x = w.input("x");
  std::vector<value_id> level;
  for (int i = 0; i < n / 2; ++i) level.push_back(w.tanh(x));
  while (level.size() > 1) {
    std::vector<value_id> next;
    for (std::size_t i = 0; i + 1 < level.size(); i += 2)
      next.push_back(pt::ops::add(w.b, level[i], level[i + 1]));
    if (level.size() % 2 == 1) next.push_back(level.back());
    level = next;
  }
  w.output(level[0], "y");
  return {w.take(), {BP, {"MP", "M", {{"x", 1}}}}};
}

inline model diamond(int n) {
  writer w(n);
  value_id h = w.input("x");
  while (!w.full()) h = pt::ops::add(w.b, w.tanh(h), pt::ops::negate(w.b, h));
  w.output(h, "y");
  return {w.take(), {BP, {"MP", "M", {{"y", 1}}}}};
}

/// A hand-written training step (forward, backward and update) with four tactics.
inline model layers(int n) {
  const auto count = static_cast<std::size_t>(n / 7);
  writer w(n);
  const value_id x = w.input("x", {pt::dtype::f32, {4 * side, side}});
  std::vector<value_id> weights, forward{x}, next(count);
  for (std::size_t i = 0; i < count; ++i) weights.push_back(w.input(numbered("params.", i)));
  for (std::size_t i = 0; i < count; ++i)
    forward.push_back(w.tanh(w.dot(forward.back(), weights[i])));
  value_id g = forward.back();
  for (std::size_t i = count; i-- > 0;) {
    g = pt::ops::multiply(w.b, g, forward[i + 1]);
    next[i] = pt::ops::subtract(w.b, weights[i], w.dot(forward[i], g, 0, 0));
    g = w.dot(g, weights[i], 1, 1);
  }
  for (std::size_t i = 0; i < count; ++i) w.output(next[i], numbered("params.", i));
  w.output(g, "g");
  return {w.take(),
          {BP,
           {"MP", "M", {{"params.0", 1}}},
           {"Z3", "B", {{"params", 0}}},
           {"R", "A", {{"params", pt::replicated}}}}};
}

inline model reshapes(int n) {
  writer w(n);
  value_id h = w.input("x", {pt::dtype::f32, {side}});
  while (!w.full()) h = pt::ops::reshape(w.b, pt::ops::reshape(w.b, h, {8, 8}), {side});
  w.output(h, "y");
  return {w.take(), {{"AP", "A", {{"x", 0}}}}};
}

inline model transposes(int n) {
  writer w(n);
  const std::int64_t turned[] = {1, 0};
  value_id h = w.input("x");
  while (!w.full()) h = pt::ops::add(w.b, pt::ops::transpose(w.b, h, turned), h);
  w.output(h, "y");
  return {w.take(), {BP, {"MP", "M", {{"y", 1}}}}};
}

inline model scalars(int n) {
  writer w(n);
  value_id h = w.input("x");
  for (int i = 0; !w.full(); ++i) h = pt::ops::add(w.b, h, pt::ops::scalar(w.b, pt::dtype::f32, i));
  w.output(h, "y");
  return {w.take(), {BP}};
}

/// Dimensions that no axis divides.
inline model uneven(int n) {
  writer w(n);
  const value_id x = w.input("x", {pt::dtype::f32, {10, 7}});
  value_id h = x;
  while (!w.full()) h = w.tanh(h);
  w.output(h, "y");
  return {w.take(), {{"BP", "B", {{"x", 0}}, {}, pt::uneven::pad}}};
}

// ---- Many of one thing ------------------------------------------------------------------------

inline model concatenate(int n) {
  writer w(n);
  const value_id x = w.input("x");
  pt::vec<value_id> parts;
  for (int i = 0; i < n; ++i) parts.push_back(w.tanh(x));
  w.output(pt::ops::concatenate(w.b, {parts.data(), parts.size()}, 0), "y");
  return {w.take(), {{"MP", "M", {{"x", 1}}}}};
}

/// An optimization_barrier of n operands: one op with n results and 2n factors.
inline model barrier(int n) {
  writer w(n);
  pt::vec<value_id> parts;
  for (int i = 0; i < n; ++i) parts.push_back(w.input(numbered("params.", parts.size())));
  const value_id first = pt::ops::optimization_barrier(w.b, {parts.data(), parts.size()});
  for (int i = 0; i < n; ++i) w.output(first + i, numbered("params.", static_cast<std::size_t>(i)));
  return {w.take(), {{"Z3", "B", {{"params", 0}}}, {"MP", "M", {{"params", 1}}}}};
}

inline model inputs(int n) {
  writer w(n);
  value_id h = w.input("x");
  for (std::size_t i = 0; !w.full(); ++i) h = pt::ops::add(w.b, h, w.input(numbered("params.", i)));
  w.output(h, "y");
  return {w.take(), {{"Z3", "B", {{"params", 0}}}, {"MP", "M", {{"params", 1}}}}};
}

inline model outputs(int n) {
  writer w(n);
  value_id h = w.input("x");
  for (std::size_t i = 0; !w.full(); ++i) w.output(h = pt::ops::negate(w.b, h), numbered("o", i));
  return {w.take(), {BP}};
}

/// n/2 states, each updated by one op.
inline model states(int n) {
  writer w(n);
  const value_id x = w.input("x");
  for (std::size_t i = 0; !w.full(); ++i) {
    const std::string name = numbered("params.", i);
    w.output(pt::ops::add(w.b, w.input(name), x), name);
  }
  return {w.take(),
          {{"R", "M", {{"params", pt::replicated}}},
           {"Z3", "B", {{"params", 0}}},
           {"XP", "A", {{"x", 1}}}}};
}

inline model tags(int n) {
  writer w(n);
  value_id h = w.input("x");
  for (std::size_t i = 0; !w.full(); ++i)
    h = pt::ops::tag(w.b, numbered("t", i), pt::ops::negate(w.b, h));
  w.output(h, "y");
  return {w.take(), {BP}};
}

/// n/2 inputs and as many tactics.
inline model tactics(int n) {
  writer w(n);
  model m;
  for (std::size_t i = 0; !w.full(); ++i) {
    const std::string name = numbered("a", i);
    w.output(w.tanh(w.input(name)), numbered("o", i));
    m.schedule.push_back({numbered("t", i), i % 2 == 0 ? "M" : "B", {{name, 0}}});
  }
  m.program = w.take();
  return m;
}

/// One tactic that acts on every inner value.
inline model inner_values(int n, bool atomic) {
  writer w(n);
  tactic all{"all", "B"};
  value_id h = w.input("x");
  for (int i = 0; !w.full(); ++i) {
    h = w.tanh(h);
    all.inner.push_back({h, atomic ? -1 : i % 2});
  }
  w.output(h, "y");
  return {w.take(), {all}};
}
inline model tiles(int n) { return inner_values(n, false); }
inline model atomics(int n) { return inner_values(n, true); }

/// n/3 conflicts: the operands of each addition are tiled on different dimensions.
inline model conflicts(int n) {
  writer w(n);
  tactic rows{"rows_and_columns", "B"};
  for (std::size_t i = 0; !w.full(); ++i) {
    const value_id p = w.input(numbered("p", i)), q = w.input(numbered("q", i));
    w.output(pt::ops::add(w.b, p, q), numbered("o", i));
    rows.inner.push_back({p, 0});
    rows.inner.push_back({q, 1});
  }
  return {w.take(), {rows}};
}

// ---- Nested programs --------------------------------------------------------------------------

/// Applies `ops` ops in sequence to a value and returns the result of the last.
inline value_id line(writer& w, value_id h, int ops) {
  for (int i = 0; i < ops; ++i) h = w.tanh(h);
  return h;
}
inline value_id called(writer& w, value_id x, pt::program&& body) {
  const value_id arguments[] = {x};
  return pt::ops::call(w.b, "f", arguments, std::move(body));
}
inline value_id scanned(writer& w, value_id x, pt::program&& body) {
  const value_id carried[] = {x};
  return pt::ops::scan(w.b, 3, false, {}, carried, {}, std::move(body));
}
inline value_id branched(writer& w, value_id x, pt::program&& body) {
  const value_id index = pt::ops::scalar(w.b, pt::dtype::i32, 0);
  const value_id operands[] = {x};
  pt::vec<pt::program> branches;
  branches.push_back(body);
  branches.push_back(std::move(body));
  return pt::ops::case_of(w.b, index, operands, std::move(branches));
}
/// Returns a nested program of `ops` ops, followed by what `rest` appends.
inline pt::program nested(int ops, bool counter,
                          const std::function<value_id(writer&, value_id)>& rest) {
  writer w(0);
  if (counter) (void)w.input("", {pt::dtype::i32, {}});
  const value_id x = w.input("");
  w.output(rest(w, line(w, x, ops)), "");
  return w.take();
}
inline value_id nothing_more(writer&, value_id x) { return x; }

template <auto Wrap>
model in_sequence(int n, int ops, bool counter) {
  writer w(n);
  value_id h = w.input("x");
  for (int left = n; left > 0; left -= ops + 2) h = Wrap(w, h, nested(ops, counter, nothing_more));
  w.output(h, "y");
  return {w.take(), {BP}};
}
inline model scans(int n) { return in_sequence<scanned>(n, 2, true); }
inline model calls(int n) { return in_sequence<called>(n, 2, false); }
inline model branches(int n) { return in_sequence<branched>(n / 2, 2, false); }

/// n/100 levels of 100 ops.
template <auto Wrap>
model in_depth(int n, bool counter) {
  constexpr int ops = 100;
  pt::program body = nested(ops, counter, nothing_more);
  for (int level = 2; level < n / ops; ++level)
    body = nested(ops, counter, [&](writer& w, value_id x) { return Wrap(w, x, std::move(body)); });
  writer w(n);
  w.output(Wrap(w, line(w, w.input("x"), ops), std::move(body)), "y");
  return {w.take(), {BP}};
}
inline model nested_calls(int n) { return in_depth<called>(n, false); }
inline model nested_scans(int n) { return in_depth<scanned>(n, true); }

// ---- Traced -----------------------------------------------------------------------------------

using matrix = pt::tensor<float, side, side>;

inline model traced_chain(int n) {
  return {pt::trace(
              [n](auto x, auto w) {
                matrix h = x;
                for (int i = 0; i < n / 3; ++i) h = pt::tanh(pt::matmul(h, w)) + x;
                return pt::output("y", h);
              },
              pt::input<float, side, side>("x"), pt::input<float, side, side>("w")),
          {BP, {"MP", "M", {{"w", 1}}}}};
}

/// A training step: reverse mode over n/13 layers, each with a weight and a bias.
inline model traced_layers(int n) {
  using tree = std::vector<matrix>;
  return {pt::trace(
              [](const tree& params, auto x) {
                const auto [loss, gradients] = pt::value_and_grad(
                    [&](const tree& p) {
                      matrix h = x;
                      for (const auto& w : p) h = pt::tanh(pt::matmul(h, w));
                      return pt::mean(h * h);
                    },
                    params);
                tree next = params;
                for (std::size_t i = 0; i < next.size(); ++i)
                  next[i] = params[i] - gradients[i] * 0.1;
                return std::tuple{pt::output("params", next), pt::output("loss", loss)};
              },
              pt::input("params", tree(static_cast<std::size_t>(n / 13))),
              pt::input<float, side, side>("x")),
          {BP, {"MP", "M", {{"params.0", 1}}}, {"Z3", "B", {{"params", 0}}}}};
}

struct shape {
  std::string_view name;
  model (*make)(int ops);
};
inline constexpr shape shapes[] = {{"chain", chain},
                                   {"backward", backward},
                                   {"wide", wide},
                                   {"diamond", diamond},
                                   {"layers", layers},
                                   {"reshapes", reshapes},
                                   {"transposes", transposes},
                                   {"scalars", scalars},
                                   {"uneven", uneven},
                                   {"concatenate", concatenate},
                                   {"barrier", barrier},
                                   {"inputs", inputs},
                                   {"outputs", outputs},
                                   {"states", states},
                                   {"tags", tags},
                                   {"tactics", tactics},
                                   {"tiles", tiles},
                                   {"atomics", atomics},
                                   {"conflicts", conflicts},
                                   {"scans", scans},
                                   {"calls", calls},
                                   {"branches", branches},
                                   {"nested_calls", nested_calls},
                                   {"nested_scans", nested_scans},
                                   {"traced_chain", traced_chain},
                                   {"traced_layers", traced_layers}};

}  // namespace scale
