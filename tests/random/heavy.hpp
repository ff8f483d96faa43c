/// Layers whose weights are larger than their activations, with tactics of data parallelism with
/// sharded weights (ZeRO-3): the programs that spmd/stationary.hpp rewrites.
#pragma once

#include <algorithm>

#include "test_case.hpp"
#include "writer.hpp"

namespace random_test {

inline constexpr std::int64_t few_rows[] = {2, 4, 4, 6, 8}, wide_columns[] = {8, 12, 16, 16, 24};

/// Draws a matrix product over the last dimension.
inline bool draw_projection(writer& w, value_id x) {
  const int last = w.rank(x) - 1;
  const std::int64_t k = w.dims(x)[last];
  const auto weights = w.fresh({w.element(x), {k, wide_columns[w.r.in(0, 4)]}}, -1, 1);
  const auto out = sum(product(w.info(x), w.info(weights)), k, w.element(x));
  const std::int64_t left[] = {last}, right[] = {0};
  return w.exact(w.element(x), out) &&
         w.done(pt::ops::dot_general(w.b, x, weights, {{}, {}, left, right}), out);
}
/// Draws a convolution of (batch, position, feature) or (batch, feature), one in four in two
/// groups.
inline bool draw_filter(writer& w, value_id x) {
  const int rank = w.rank(x);
  const std::int64_t features = w.dims(x)[rank - 1], outputs = wide_columns[w.r.in(0, 4)];
  const std::int64_t groups = features % 2 == 0 && w.r.one_in(4) ? 2 : 1;
  ints roles{0, rank - 1};
  shape kernel{features / groups, outputs};
  std::vector<pt::window_dim> windows;
  if (rank == 3) {
    roles.push_back(1);
    windows.emplace_back();
    windows[0].size = w.r.in(1, std::min<std::int64_t>(w.dims(x)[1], 3));
    kernel.push_back(windows[0].size);
  }
  const ints rhs = rank == 3 ? ints{0, 1, 2} : ints{0, 1};
  const auto weights = w.fresh({w.element(x), kernel}, -1, 1);
  const std::int64_t taps = kernel.elements() / outputs;
  const auto out = sum(product(w.info(x), w.info(weights)), taps, w.element(x));
  return w.exact(w.element(x), out) &&
         w.done(pt::ops::convolution(w.b, x, weights, {roles, rhs, roles, windows, groups, 1}),
                out);
}
/// Draws one to four layers, some with a residual.
inline void draw_heavy_layers(writer& w) {
  shape s{few_rows[w.r.in(0, 4)]};
  if (w.r.one_in(2)) s.push_back(w.r.in(1, 3));
  s.push_back(wide_columns[w.r.in(0, 4)]);
  value_id x = w.fresh({dtype::f32, s});
  for (auto n = w.r.in(1, 4); n > 0; --n) {
    if (w.rank(x) > 3 || !(w.r.one_in(3) ? draw_filter(w, x) : draw_projection(w, x))) return;
    const value_id y = w.last();
    if (w.type(y) == w.type(x) && w.r.one_in(2)) {
      const value_info a = w.info(x), b = w.info(y);
      w.emit(def<op::add>, {y, x}, {a.lo + b.lo, a.hi + b.hi, a.integer && b.integer},
             w.element(x));
    }
    x = w.last();
    if (!w.usable(x)) return;
  }
}

inline void add_tile(test_case& c, value_id v, int dim, int axis) {
  random_action a;
  a.value = v;
  a.dim = dim;
  a.axis = axis;
  c.tactics.back().push_back(a);
}
/// Draws one or two axes: the batch along the first, then perhaps a weight along the second, then
/// each weight along any.
inline void draw_heavy_tactics(test_case& c, random& r) {
  c.mesh.push_back({"B", few_rows[r.in(0, 2)]});
  if (r.one_in(2)) c.mesh.push_back({"M", 2});
  const pt::flat_program flat(c.p);
  const auto weight = [&](pt::value_id v, int axis) {
    const int rank = flat.p.type(v).shape.rank;
    if (rank > 0) add_tile(c, v, static_cast<int>(r.in(0, rank - 1)), axis);
  };
  c.tactics.emplace_back();
  if (flat.p.input_count() > 0 && flat.p.input_type(0).shape.rank > 0)
    add_tile(c, flat.p.inputs[0], 0, 0);
  if (c.mesh.rank > 1 && r.one_in(2)) {
    c.tactics.emplace_back();
    weight(r.pick(flat.p.inputs), 1);
    if (r.one_in(2) && flat.p.input_count() > 0) add_tile(c, flat.p.inputs[0], 0, 1);
  }
  c.tactics.emplace_back();
  for (int i = 1; i < flat.p.input_count(); ++i)
    weight(flat.p.inputs[static_cast<std::size_t>(i)], 0);
  if (c.mesh.rank > 1)
    for (int i = 1; i < flat.p.input_count(); ++i)
      if (r.one_in(3)) weight(flat.p.inputs[static_cast<std::size_t>(i)], 1);
}

}  // namespace random_test
