/// Ops that combine elements: matrix products, windows, reductions.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail::elements {

/// A product of real numbers in more than the usual precision counts as a different product: it is
/// scaled by a random number for each precision. So sums of such products are still sums.
class scaled_by_precision {
 public:
  constexpr scaled_by_precision(const op_elements& c, span<const std::int64_t> numerics) : c_(c) {
    if (numerics.empty() || !is_floating(c.type())) return;
    any_ = true;
    drawing d(0x9c);
    for (const std::int64_t n : numerics) d.add(n);
    by_ = c.a.at_numbers ? real(0.5 * static_cast<double>(3 + d.drawn().a % 13))
                         : c.a.function(c.def.id, c.type(), c.type(), {}, d.drawn().a);
  }
  constexpr element operator()(const element& sum) const {
    return any_ ? c_.a.product(c_.type(), sum, by_) : sum;
  }

 private:
  const op_elements& c_;
  bool any_ = false;
  element by_;
};

constexpr void dot(const op_elements& c) {
  const shape &ls = c.shape_of(0), &rs = c.shape_of(1);
  const op::dot_general::roles r(c.attrs.data(), static_cast<int>(c.attrs.size()), ls.rank,
                                 rs.rank);
  const scaled_by_precision scaled(c, op::dot_general::numerics(c.attrs));
  shape summed;
  for (int k = 0; k < r.contract; ++k) summed.push_back(ls[r.lhs_contract[k]]);
  c.fill([&](const place& i) {
    place x, y;
    int next = 0;
    for (int b = 0; b < r.batch; ++b) x[r.lhs_batch[b]] = y[r.rhs_batch[b]] = i[next++];
    for (int d = 0; d < ls.rank; ++d)
      if (!r.lhs_bound[d]) x[d] = i[next++];
    for (int d = 0; d < rs.rank; ++d)
      if (!r.rhs_bound[d]) y[d] = i[next++];
    element sum = small_number(c.type(), 0);
    for_each_place(summed, [&](const place& k, std::int64_t) {
      for (int d = 0; d < r.contract; ++d) x[r.lhs_contract[d]] = y[r.rhs_contract[d]] = k[d];
      ++c.a.steps;
      sum = c.a.sum(c.type(), sum, c.a.product(c.type(), c.read(0, x), c.read(1, y)));
    });
    return scaled(sum);
  });
}

/// The element at a tap of a window.
constexpr std::int64_t under(const window_dim& w, std::int64_t position, std::int64_t tap,
                             std::int64_t extent) {
  const std::int64_t at =
      position * w.stride + (w.reversed ? w.size - 1 - tap : tap) * w.dilation - w.low;
  if (at < 0 || at % w.base_dilation != 0 || at / w.base_dilation >= extent) return -1;
  return at / w.base_dilation;
}

constexpr void convolution(const op_elements& c) {
  const shape &ls = c.shape_of(0), &rs = c.shape_of(1);
  const op::convolution::roles r(c.attrs.data(), rs);
  const std::int64_t groups = r.feature_groups(ls, rs), outputs = rs[r.rhs[1]];
  const std::int64_t batch = ls[r.lhs[0]] / r.batch_groups;
  const scaled_by_precision scaled(c, op::convolution::numerics(c.attrs, r.rank));
  shape taps{rs[r.rhs[0]]};
  for (int d = 0; d < r.spatial; ++d) taps.push_back(rs[r.rhs[2 + d]]);
  c.fill([&](const place& i) {
    const std::int64_t o = i[r.result[1]];
    place x, y;
    y[r.rhs[1]] = o;
    x[r.lhs[0]] = i[r.result[0]];
    if (r.batch_groups > 1) x[r.lhs[0]] += o / (outputs / r.batch_groups) * batch;
    element sum = small_number(c.type(), 0);
    for_each_place(taps, [&](const place& k, std::int64_t) {
      y[r.rhs[0]] = k[0];
      x[r.lhs[1]] = k[0] + (groups > 1 ? o / (outputs / groups) * taps[0] : 0);
      ++c.a.steps;
      for (int d = 0; d < r.spatial; ++d) {
        y[r.rhs[2 + d]] = k[1 + d];
        const int from = r.lhs[2 + d];
        x[from] = under(r.window.at[d], i[r.result[2 + d]], k[1 + d], ls[from]);
        if (x[from] < 0) return;
      }
      sum = c.a.sum(c.type(), sum, c.a.product(c.type(), c.read(0, x), c.read(1, y)));
    });
    return scaled(sum);
  });
}

/// The positions in a window over all dimensions, in row-major order of taps.
template <class F>
constexpr void for_each_under(const op::windows& w, const shape& from, const place& position,
                              const F& f) {
  shape taps;
  for (int d = 0; d < w.rank; ++d) taps.push_back(w.at[d].size);
  for_each_place(taps, [&](const place& k, std::int64_t) {
    place i;
    for (int d = 0; d < w.rank; ++d)
      if ((i[d] = under(w.at[d], position[d], k[d], from[d])) < 0) return;
    f(i);
  });
}
constexpr void reduce_window(const op_elements& c) {
  const op::windows w(c.attrs.data() + 1, c.shape_of(0).rank);
  c.fill([&](const place& i) {
    vec<element> all;
    for_each_under(w, c.shape_of(0), i, [&](const place& x) { all.push_back(c.read(0, x)); });
    c.a.steps += static_cast<std::int64_t>(all.size());
    return all.empty() ? identity_of(static_cast<combiner>(c.attrs[0]), c.type())
                       : c.a.combined(static_cast<combiner>(c.attrs[0]), c.type(), all);
  });
}
/// The indicator that an element is selected at a position of the window: a number that depends on
/// all elements in the window.
constexpr element selected(const op_elements& c, const op::windows& w, const place& position,
                           const place& wanted) {
  vec<element> all;
  std::int64_t chosen = -1;
  const std::int64_t at = number_of(wanted, c.shape_of(0));
  for_each_under(w, c.shape_of(0), position, [&](const place& x) {
    if (number_of(x, c.shape_of(0)) == at) chosen = static_cast<std::int64_t>(all.size());
    all.push_back(c.read(0, x));
  });
  c.a.steps += static_cast<std::int64_t>(all.size());
  if (all.size() == 1) return small_number(c.type(), 1);
  const dtype t = c.types[0].element;
  return formula(c.type(), drawing(def<op::select_and_scatter>.id)
                               .add(c.attrs[0])
                               .add(chosen)
                               .add(c.a.function(def<op::select_and_scatter>.id, t, t, all).of)
                               .drawn());
}
constexpr void select_and_gather(const op_elements& c) {
  const op::windows w(c.attrs.data() + 1, c.shape_of(0).rank);
  c.fill([&](const place& i) {
    element sum = small_number(c.type(), 0);
    for_each_under(w, c.shape_of(0), i, [&](const place& x) {
      sum = c.a.sum(c.type(), sum, c.a.product(c.type(), selected(c, w, i, x), c.read(1, x)));
    });
    return sum;
  });
}
constexpr void select_and_scatter(const op_elements& c) {
  const op::windows w(c.attrs.data() + 1, c.shape_of(0).rank);
  const element zero = small_number(c.type(), 0);
  c.fill([&](const place&) { return zero; });
  for_each_place(c.shape_of(1), [&](const place& i, std::int64_t n) {
    for_each_under(w, c.shape_of(0), i, [&](const place& x) {
      element& to = c.results[0][number_of(x, c.made[0].shape)];
      to = c.a.sum(c.type(), to, c.a.product(c.type(), selected(c, w, i, x), c.operands[1][n]));
    });
  });
}

/// Along some dimensions: `whole(kept, reduced)` is the place in the operand.
struct reduced_dims {
  shape kept, reduced;
  bool is_reduced[max_rank] = {};

  constexpr reduced_dims(const shape& from, span<const std::int64_t> dims) {
    for (auto d : dims) is_reduced[d] = true;
    for (int d = 0; d < from.rank; ++d) (is_reduced[d] ? reduced : kept).push_back(from[d]);
  }
  constexpr place whole(const place& outer, const place& inner) const {
    place i;
    for (int d = 0, k = 0, r = 0; d < kept.rank + reduced.rank; ++d)
      i[d] = is_reduced[d] ? inner[r++] : outer[k++];
    return i;
  }
};
constexpr void reduce(const op_elements& c) {
  const reduced_dims dims(c.shape_of(0), c.attrs.subspan(1));
  const auto how = static_cast<combiner>(c.attrs[0]);
  c.fill([&](const place& i) {
    vec<element> all;
    for_each_place(dims.reduced, [&](const place& k, std::int64_t) {
      all.push_back(c.read(0, dims.whole(i, k)));
    });
    c.a.steps += static_cast<std::int64_t>(all.size());
    return all.empty() ? identity_of(how, c.type()) : c.a.combined(how, c.type(), all);
  });
}
constexpr void cumulate(const op_elements& c) {
  const auto dim = static_cast<int>(c.attrs[0]);
  const combiner how = op::cumsum::combiner_of(c.attrs);
  const bool reverse = c.attrs[1] != 0, exclusive = c.attrs[2] != 0;
  const std::int64_t n = c.shape_of(0)[dim];
  c.fill([&](const place& i) {
    vec<element> all;
    place x = i;
    for (std::int64_t k = 0; k < n; ++k) {
      const bool before = reverse ? k > i[dim] : k < i[dim];
      if (!before && (exclusive || k != i[dim])) continue;
      x[dim] = k;
      all.push_back(c.read(0, x));
    }
    c.a.steps += static_cast<std::int64_t>(all.size());
    return all.empty() ? identity_of(how, c.type()) : c.a.combined(how, c.type(), all);
  });
}

}  // namespace partita::prove_detail::elements
