/// Draws ops that combine elements: reductions, sliding windows, products, linear systems.
#pragma once

#include "movement.hpp"

namespace random_test {

inline pt::combiner some_combiner(writer& w, value_id x) {
  using pt::combiner;
  const dtype t = w.element(x);
  if (t == dtype::boolean) return w.r.one_in(2) ? combiner::logical_and : combiner::logical_or;
  // A product of small numbers may be 0 or not, and NaN or infinite with an infinity.
  const bool no_products = w.state.wild && !w.info(x).integer;
  const auto n = w.r.in(0, pt::is_integer(t) ? 7 : no_products ? 4 : 5);
  return n < 3    ? combiner::add
         : n == 3 ? combiner::max
         : n == 4 ? combiner::min
         : n == 5 ? combiner::multiply
         : n == 6 ? combiner::logical_and
                  : combiner::logical_or;
}

inline bool draw_reduce(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  ints dims;
  std::int64_t n = 1;
  for (int d = 0; d < w.rank(x); ++d)
    if (w.r.one_in(2)) {
      dims.push_back(d);
      n *= w.dims(x)[d];
    }
  const auto t = w.element(x);
  const auto combine = some_combiner(w, x);
  const auto out = combined(combine, w.info(x), n, t);
  if (dims.empty() || !w.exact(t, wrapped(t, out))) return false;
  return w.done(pt::ops::reduce(w.b, x, combine, dims), out);
}

inline bool draw_cumsum(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const auto dim = static_cast<int>(w.r.in(0, w.rank(x) - 1));
  const auto t = w.element(x);
  using pt::combiner;
  const bool adds = t != dtype::boolean && w.r.one_in(2);
  const combiner combine = adds ? combiner::add : some_combiner(w, x);
  const auto out = combined(combine, w.info(x), w.dims(x)[dim], t);
  if (!w.exact(t, wrapped(t, out))) return false;
  const bool exclusive =
      w.r.one_in(2);  // the first element has the identity, which may be infinite
  if (exclusive && combine != combiner::add && pt::is_floating(t)) return false;
  return w.done(pt::ops::cumsum(w.b, x, dim, w.r.one_in(2), exclusive, combine),
                exclusive && combine != combiner::add ? all_of(t) : out);
}

/// Returns a window over a dimension of n elements.
inline pt::window_dim some_window(random& r, std::int64_t n, std::int64_t size) {
  pt::window_dim d;
  d.size = size;
  d.stride = r.in(1, 2);
  if (r.one_in(3)) d.base_dilation = 2;
  if (r.one_in(3)) d.dilation = 2;
  d.low = r.in(-1, 2);
  d.high = r.in(-1, 2);
  if (d.positions(n) == 0) return some_window(r, n, std::min<std::int64_t>(size, 1));
  return d;
}

/// Windows over all dimensions of a tensor, some of them trivial.
struct sliding_windows {
  std::vector<pt::window_dim> at;
  shape positions;
  std::int64_t taps = 1;
  bool may_be_empty = false;

  sliding_windows(random& r, const shape& s) {
    for (std::int64_t n : s) {
      at.push_back(r.one_in(2) ? pt::window_dim{} : some_window(r, n, r.in(1, 3)));
      const pt::window_dim& d = at.back();
      positions.push_back(d.positions(n));
      taps *= d.size;
      for (std::int64_t o = 0; o < positions[positions.rank - 1]; ++o) {
        bool hit = false;
        for (std::int64_t k = 0; k < d.size; ++k) hit = hit || d.element(o, k, n) >= 0;
        may_be_empty = may_be_empty || !hit;
      }
    }
  }
};

inline bool draw_reduce_window(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const sliding_windows s(w.r, w.dims(x));
  const auto t = w.element(x);
  const auto combine = some_combiner(w, x);
  auto out = combined(combine, w.info(x), s.taps, t);
  if (s.may_be_empty) out = either(out, identity_of(combine, t));
  if (s.positions.elements() > most_elements || !w.exact(t, wrapped(t, out))) return false;
  return w.done(pt::ops::reduce_window(w.b, x, combine, s.at), out);
}

inline bool draw_selecting_window(writer& w) {
  const auto x = w.any_number(1);
  if (x < 0) return false;
  const tensor_type t = w.type(x);
  const sliding_windows s(w.r, t.shape);
  if (s.positions.elements() > most_elements) return false;
  const auto direction = w.r.one_in(2) ? pt::ops::direction::ge : pt::ops::direction::le;
  const bool scatters = w.r.one_in(2);
  const tensor_type wanted{t.element, scatters ? s.positions : t.shape};
  auto y = w.any([&](value_id v) { return w.type(v) == wanted && v != x; });
  if (y < 0) y = w.fresh(wanted);
  if (!scatters)
    return w.done(pt::ops::select_and_gather(w.b, x, y, direction, s.at),
                  either(w.info(y), {0, 0}));
  const auto out = sum(w.info(y), s.positions.elements(), t.element);
  if (!w.exact(t.element, wrapped(t.element, out))) return false;
  return w.done(pt::ops::select_and_scatter(w.b, x, y, direction, s.at), out);
}

inline std::int64_t some_divisor(random& r, std::int64_t n) {
  if (n == 0) return 1;
  ints divisors;
  for (std::int64_t d = 1; d <= n; ++d)
    if (n % d == 0) divisors.push_back(d);
  return r.pick(divisors);
}

inline bool draw_convolution(writer& w) {
  const auto x = w.any([&](value_id v) {
    return w.number(v) && w.rank(v) >= 2 && w.rank(v) <= 4 && w.dims(v).elements() <= 512;
  });
  if (x < 0) return false;
  const shape from = w.dims(x);
  const int rank = from.rank;
  const ints lhs = w.permutation(rank), rhs = w.permutation(rank), result = w.permutation(rank);
  const auto lhs_extent = [&](std::size_t i) { return from[static_cast<int>(lhs[i])]; };
  const auto groups = w.r.in(0, 2);  // none, of features, of the batch
  const std::int64_t feature_groups = groups == 1 ? some_divisor(w.r, lhs_extent(1)) : 1;
  const std::int64_t batch_groups = groups == 2 ? some_divisor(w.r, lhs_extent(0)) : 1;
  std::int64_t count = lhs_extent(1) / feature_groups, size = lhs_extent(0) / batch_groups;
  const std::int64_t outputs = feature_groups * batch_groups * w.r.in(1, 3);
  size *= outputs;
  shape weights;
  weights.rank = rank;
  weights[static_cast<int>(rhs[0])] = count;
  weights[static_cast<int>(rhs[1])] = outputs;
  std::vector<pt::window_dim> windows;
  for (std::size_t d = 2; d < lhs.size(); ++d) {
    windows.push_back(some_window(w.r, lhs_extent(d), w.r.in(1, 3)));
    windows.back().reversed = w.r.one_in(3);
    weights[static_cast<int>(rhs[d])] = windows.back().size;
    count *= windows.back().size;
    size *= windows.back().positions(lhs_extent(d));
  }
  const auto y = w.fresh({w.element(x), weights}, -1, 1);
  const auto out = sum(product(w.info(x), w.info(y)), count, w.element(x));
  if (size > most_elements || !w.exact(w.element(x), wrapped(w.element(x), out))) return false;
  return w.done(
      pt::ops::convolution(
          w.b, x, y, {lhs, rhs, result, windows, feature_groups, batch_groups, w.exactness()}),
      out);
}

inline bool draw_dot(writer& w) {
  const auto x = w.any_number(1);
  if (x < 0) return false;
  auto y = w.any([&](value_id v) { return w.element(v) == w.element(x) && w.rank(v) > 0; });
  if (y < 0) y = x;
  if (w.r.one_in(3)) {  // a matrix that fits
    shape s = w.some_shape(1, 2);
    s[static_cast<int>(w.r.in(0, s.rank - 1))] =
        w.dims(x)[static_cast<int>(w.r.in(0, w.rank(x) - 1))];
    if (s.elements() > 512) return false;
    y = w.fresh({w.element(x), s});
  }
  const shape l = w.dims(x), q = w.dims(y);
  ints lb, rb, lc, rc;
  std::int64_t k = 1, size = 1;
  bool used[pt::max_rank] = {};
  for (int d = 0; d < l.rank; ++d) {
    int match = -1;
    const int start = static_cast<int>(w.r.in(0, q.rank - 1));
    for (int e = 0; e < q.rank; ++e) {
      const int f = (start + e) % q.rank;
      if (!used[f] && q[f] == l[d]) match = f;
    }
    const auto role = match < 0 ? 2 : w.r.in(0, 3);
    if (role == 2 || (role == 0 && lb.size() == 2)) {
      size *= l[d];
      continue;
    }
    used[match] = true;
    (role == 0 ? lb : lc).push_back(d);
    (role == 0 ? rb : rc).push_back(match);
    (role == 0 ? size : k) *= l[d];
  }
  for (int d = 0; d < q.rank; ++d)
    if (!used[d]) size *= q[d];
  const auto rank = l.rank + q.rank - 2 * static_cast<int>(lc.size()) - static_cast<int>(lb.size());
  if (rank > 5 || size > most_elements) return false;
  const auto out = sum(product(w.info(x), w.info(y)), k, w.element(x));
  if (!w.exact(w.element(x), wrapped(w.element(x), out))) return false;
  return w.done(pt::ops::dot_general(w.b, x, y, {lb, rb, lc, rc, w.exactness()}), out);
}

/// Draws matmul, then perhaps a residual: the most frequent ops under tactics.
inline bool draw_layer(writer& w) {
  const auto x = w.any([&](value_id v) {
    return w.element(v) == dtype::f32 && w.info(v).integer && w.rank(v) >= 2 &&
           w.info(v).greatest() < 300;
  });
  if (x < 0) return false;
  const int rank = w.rank(x);
  const std::int64_t k = w.dims(x)[rank - 1];
  const std::int64_t n = w.r.one_in(2) ? k : w.r.in(1, 4) * 2;
  const auto weights = w.fresh({dtype::f32, {k, n}}, -1, 1);
  const value_info in = w.info(x), out = sum(product(in, w.info(weights)), k, dtype::f32);
  const std::int64_t left[] = {rank - 1}, right[] = {0};
  if (!w.exact(dtype::f32, out) ||
      !w.done(pt::ops::dot_general(w.b, x, weights, {{}, {}, left, right}), out))
    return false;
  if (n == k && w.r.one_in(2))
    w.emit(def<op::add>, {w.last(), x}, {out.lo + in.lo, out.hi + in.hi}, dtype::f32);
  return true;
}

/// Returns square matrices whose diagonal is more than twice the sum of the rest of each row and
/// column.
inline value_id dominant(writer& w, value_id x) {
  const tensor_type t = w.type(x);
  const std::int64_t n = t.shape[t.shape.rank - 1];
  const auto on_diagonal = pt::op::triangle(w.b, pt::ops::direction::eq, t.shape);
  w.infos.resize(w.b.p.types.size(), {0, static_cast<double>(n)});
  w.infos.back() = {0, 1};
  const double more = 2 * static_cast<double>(n) * std::ceil(w.info(x).greatest()) + 1;
  const auto weight = w.scalar(t.element, more), zero = w.scalar(t.element, 0);
  if (!fits(t.element, {0, more * 2}) ||
      !w.emit(def<op::select>, {on_diagonal, weight, zero}, {0, more}, t.element) ||
      !w.emit(def<op::add>, {x, w.last()}, {w.info(x).lo, w.info(x).hi + more, w.info(x).integer},
              t.element))
    return -1;
  return w.last();
}

/// With such matrices T, |T^-1| |T| has a norm below 3. So a solution, which does not exceed the
/// right-hand side, has an error of at most 3 n eps times that (Higham, section 8.1), in both runs.
/// A factor is computed matrix by matrix, and is the same in both.
inline bool draw_linear_system(writer& w) {
  if (w.derived()) return false;
  auto x = w.any([&](value_id v) {
    return w.floating(v) && w.rank(v) >= 2 && w.dims(v)[w.rank(v) - 1] == w.dims(v)[w.rank(v) - 2];
  });
  if (x < 0 || w.r.one_in(3)) {
    shape s = w.some_shape(0, 1);
    const auto n = w.r.in(1, 5);
    s.push_back(n);
    s.push_back(n);
    x = w.fresh({w.r.one_in(3) ? dtype::f64 : dtype::f32, s});
  }
  const shape s = w.dims(x);
  const std::int64_t n = s[s.rank - 1];
  if (n > 8) return false;
  const auto a = dominant(w, x);
  if (a < 0) return false;
  const auto t = w.element(a);
  if (w.r.one_in(2)) {
    const double bound = std::sqrt(w.info(a).hi) * 1.1;
    return w.emit(def<op::cholesky>, {a}, {-bound, bound, false}, t, {w.r.in(0, 1)});
  }
  const bool left = w.r.one_in(2);
  shape sides = s;
  sides[s.rank - (left ? 1 : 2)] = w.r.in(1, 6);
  auto y = w.any([&](value_id v) { return w.type(v) == tensor_type{t, sides}; });
  if (y < 0) y = w.fresh({t, sides});
  value_info out{-w.info(y).greatest(), w.info(y).greatest(), false};
  out.tolerance = 8 * static_cast<double>(n + 1) * rounding_of(t) * out.hi;
  return w.emit(def<op::triangular_solve>, {a, y}, out, t, {left, w.r.in(0, 1), 0, w.r.in(0, 1)});
}

}  // namespace random_test
