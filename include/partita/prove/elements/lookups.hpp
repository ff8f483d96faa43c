/// Ops at computed positions: an unknown index becomes a choice.
#pragma once

#include <partita/prove/elements/tensors.hpp>

namespace partita::prove_detail::elements {

/// The start of a window, number `k`, for an element of a gather's result (a scatter's updates).
constexpr element start_of(const op_elements& c, const op::gather_dims& dims, int indices,
                           const place& result, int k) {
  place i;
  for (int r = 0; r < dims.result_rank; ++r)
    if (dims.index_dim[r] >= 0) i[dims.index_dim[r]] = result[r];
  if (dims.vector_dim < dims.indices_rank) i[dims.vector_dim] = k;
  return c.read(indices, i);
}
/// The position of an element within a window, relative to its start.
constexpr place within_window(const op::gather_dims& dims, const place& result) {
  place i;
  for (int d = 0; d < dims.operand_rank; ++d) {
    if (dims.window_dim[d] >= 0) i[d] = result[dims.window_dim[d]];
    for (int r = 0; r < dims.result_rank; ++r)
      if (dims.batching_dim[d] >= 0 && dims.index_dim[r] == dims.batching_dim[d]) i[d] = result[r];
  }
  return i;
}

/// Gathers along one dimension after the other.
class window_reader {
 public:
  constexpr window_reader(const op_elements& c, const shape& window) : c_(c), window_(window) {}
  constexpr void start(int dim, const element& at, dtype t) {
    dims_.push_back(dim);
    starts_.push_back(at);
    type_ = t;
  }
  /// `at(place)` for windows that start at `i`.
  template <class At>
  constexpr element find(place i, const At& at, std::size_t k = 0) const {
    ++c_.a.steps;
    if (k == dims_.size()) return at(i);
    const int d = dims_[k];
    return c_.a.look_up(type_, starts_[k], c_.shape_of(0)[d] - window_[d] + 1, [&](std::int64_t n) {
      place from = i;
      from[d] += n;
      return find(from, at, k + 1);
    });
  }

 private:
  const op_elements& c_;
  shape window_;
  vec<int> dims_;
  vec<element> starts_;
  dtype type_ = dtype::i32;
};

constexpr void gather(const op_elements& c) {
  const op::gather_dims dims(c.attrs, c.shape_of(0), c.shape_of(1));
  const shape window = dims.window(c.made[0].shape);
  if (c.shape_of(0).has_no_elements())
    return c.fill([&](const place&) { return small_number(c.type(), 0); });
  c.fill([&](const place& i) {
    window_reader r(c, window);
    for (int k = 0; k < dims.starts; ++k)
      r.start(dims.start_map[k], start_of(c, dims, 1, i, k), c.types[1].element);
    return r.find(within_window(dims, i), [&](const place& at) { return c.read(0, at); });
  });
}

constexpr void dynamic_slice(const op_elements& c) {
  window_reader r(c, c.made[0].shape);
  for (int d = 0; d < c.shape_of(0).rank; ++d)
    r.start(d, c.operands[1 + d][0], c.types[1 + d].element);
  c.fill([&](const place& i) { return r.find(i, [&](const place& at) { return c.read(0, at); }); });
}
constexpr void dynamic_update_slice(const op_elements& c) {
  const shape& box = c.shape_of(1);
  window_reader r(c, box);
  for (int d = 0; d < box.rank; ++d) r.start(d, c.operands[2 + d][0], c.types[2 + d].element);
  c.fill([&](const place& i) {
    return r.find({}, [&](const place& start) {
      place from = i;
      for (int d = 0; d < box.rank; ++d) {
        from[d] -= start[d];
        if (from[d] < 0 || from[d] >= box[d]) return c.read(0, i);
      }
      return c.read(1, from);
    });
  });
}

class scatterer {
 public:
  constexpr explicit scatterer(const op_elements& c)
      : c_(c),
        indices_(static_cast<int>(c.operands.size()) - 2),
        update_(op::scatter::update_of(c.attrs)),
        dims_(c.attrs.subspan(1), c.made[0].shape, c.shape_of(indices_)),
        window_(dims_.window(c.shape_of(indices_ + 1))) {}

  constexpr void fill() {
    const element nothing = indices_ > 0 ? element{} : identity();
    for_each_place(c_.made[0].shape, [&](const place&, std::int64_t n) {
      c_.results[0][n] = indices_ > 0 ? c_.operands[0][n] : nothing;
    });
    for (int d = 0; d < window_.rank; ++d)
      if (window_[d] > c_.made[0].shape[d]) return;
    for_each_update([&](const place& i) {
      put(within_window(dims_, i), i, c_.read(indices_ + 1, i), integer(dtype::boolean, 1), 0);
    });
  }

 private:
  const op_elements& c_;
  int indices_;
  ops::scatter_update update_;
  op::gather_dims dims_;
  shape window_;

  constexpr combiner how() const { return static_cast<combiner>(update_); }
  constexpr element identity() const { return identity_of(how(), c_.type()); }
  /// Visits index vectors in row-major order, and the window of each. If updates are assigned, the
  /// last one counts.
  template <class F>
  constexpr void for_each_update(const F& f) const {
    const shape& s = c_.shape_of(indices_ + 1);
    shape in_order;
    vec<int> dims;
    for (const bool in_window : {false, true})
      for (int r = 0; r < s.rank; ++r)
        if ((dims_.index_dim[r] < 0) == in_window) {
          in_order.push_back(s[r]);
          dims.push_back(r);
        }
    for_each_place(in_order, [&](const place& k, std::int64_t) {
      place i;
      for (int d = 0; d < s.rank; ++d) i[dims[d]] = k[d];
      f(i);
    });
  }
  /// Updates all positions where the window may start; `here`: true if it starts there along the
  /// first `k` dimensions.
  constexpr void put(const place& at, const place& update, const element& x, const element& here,
                     int k) {
    if ((here.known && here.number == 0) || c_.a.is_over()) return;
    ++c_.a.steps;
    if (k == dims_.starts) return combine(c_.results[0][number_of(at, c_.made[0].shape)], x, here);
    const int d = dims_.start_map[k];
    const dtype t = c_.types[indices_].element;
    const element start = start_of(c_, dims_, indices_, update, k);
    for (std::int64_t n = 0; n + window_[d] <= c_.made[0].shape[d]; ++n) {
      place to = at;
      to[d] += n;
      if (n > op::greatest_integer(t)) break;
      const element is = c_.a.compare(ops::direction::eq, t, start, integer(t, n));
      put(to, update, x, c_.a.both(here, is), k + 1);
    }
  }
  constexpr void combine(element& to, const element& x, const element& here) {
    to = update_ == ops::scatter_update::assign
             ? c_.a.select(here, x, to)
             : c_.a.combined(how(), c_.type(), {to, c_.a.select(here, x, identity())});
  }
};

}  // namespace partita::prove_detail::elements
