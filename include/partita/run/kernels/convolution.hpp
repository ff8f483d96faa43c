/// convolution: windows as rows of a matrix, times the weights.
#pragma once

#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/dot_general.hpp>
#include <partita/run/kernels/reduce.hpp>

namespace partita::run_detail {

/// A convolution in a normalized order: lhs (batch, spatial..., feature), rhs (spatial..., input
/// feature, output feature) -> (batch, spatial..., feature), without reversed windows.
struct conv_plan {
  window_dim window[max_rank];
  std::int64_t from[max_rank] = {}, to[max_rank] = {};  ///< spatial extents
  int spatial = 0;
  std::int64_t batch = 1, features = 1, inputs = 1, outputs = 1;  ///< of lhs, lhs, rhs, rhs
  std::int64_t feature_groups = 1, batch_groups = 1;
  std::int64_t image = 1, positions = 1, taps = 1;  ///< elements of lhs per batch entry; windows

  conv_plan(const op::convolution::roles& r, const shape& ls, const shape& rs,
            const shape& to_shape)
      : batch(ls[r.lhs[0]]),
        features(ls[r.lhs[1]]),
        inputs(rs[r.rhs[0]]),
        outputs(rs[r.rhs[1]]),
        feature_groups(r.feature_groups(ls, rs)),
        batch_groups(r.batch_groups) {
    for (; spatial < r.spatial; ++spatial) {
      window[spatial] = r.window.at[spatial];
      from[spatial] = ls[r.lhs[2 + spatial]];
      to[spatial] = to_shape[r.result[2 + spatial]];
    }
    if (spatial == 0) from[0] = to[0] = spatial = 1;
    image = features;
    for (int d = 0; d < spatial; ++d) {
      image *= from[d];
      positions *= to[d];
      taps *= window[d].size;
    }
  }
  bool trivial() const {
    return std::all_of(window, window + spatial, [](const auto& w) { return w.trivial(); });
  }
};

/// The elements under the taps of windows: rows for windows, columns for taps [tap, tap_end) and
/// the input features of each. It starts with the window at `row` (batch entries, then positions).
template <class T>
class window_matrix {
 public:
  window_matrix(const conv_plan& p, const T* x) : p_(p), x_(x) {}

  void fill(std::int64_t row, std::int64_t rows, std::int64_t tap, std::int64_t tap_end, T* to) {
    std::int64_t o[max_rank] = {}, first[max_rank] = {};
    const std::int64_t entry = decode(row, p_.to, o);
    std::int64_t sizes[max_rank] = {};
    for (int d = 0; d < p_.spatial; ++d) sizes[d] = p_.window[d].size;
    decode(tap, sizes, first);
    const T* image = x_ + entry * p_.image;
    const int last = p_.spatial - 1;
    for (std::int64_t r = 0; r < rows; ++r) {
      std::int64_t k[max_rank] = {};
      std::copy_n(first, p_.spatial, k);
      for (std::int64_t t = tap; t < tap_end;) {
        const std::int64_t count = std::min(sizes[last] - k[last], tap_end - t);
        std::int64_t line = 0;  // number of the line of elements under these taps
        for (int d = 0; d < last && line >= 0; ++d) {
          const std::int64_t i = p_.window[d].element(o[d], k[d], p_.from[d]);
          line = i < 0 ? -1 : line * p_.from[d] + i;
        }
        if (line < 0)
          to = zeros(to, count);
        else
          to = copy_line(image + line * p_.from[last] * p_.features, o[last], k[last], count, to);
        t += count;
        k[last] = 0;
        for (int d = last; d-- > 0 && ++k[d] == sizes[d];) k[d] = 0;
      }
      int d = last;
      while (d >= 0 && ++o[d] == p_.to[d]) o[d--] = 0;
      if (d < 0) image += p_.image;
    }
  }

 private:
  const conv_plan& p_;
  const T* x_;

  std::int64_t decode(std::int64_t flat, const std::int64_t* extents, std::int64_t* at) const {
    for (int d = p_.spatial; d-- > 0; flat /= extents[d]) at[d] = flat % extents[d];
    return flat;
  }
  T* zeros(T* to, std::int64_t taps) const { return std::fill_n(to, taps * p_.inputs, T(0)); }

  /// Copies taps [k, k + count) of the last dimension.
  T* copy_line(const T* line, std::int64_t o, std::int64_t k, std::int64_t count, T* to) const {
    const window_dim& w = p_.window[p_.spatial - 1];
    const std::int64_t n = p_.from[p_.spatial - 1];
    if (w.dilation == 1 && w.base_dilation == 1 && p_.inputs == p_.features) {
      const std::int64_t begin = o * w.stride - w.low + k;
      const std::int64_t left = std::clamp<std::int64_t>(-begin, 0, count);
      const std::int64_t right = std::clamp<std::int64_t>(n - begin, left, count);
      to = zeros(to, left);
      if (right > left)
        to = std::copy_n(line + (begin + left) * p_.features, (right - left) * p_.inputs, to);
      return zeros(to, count - right);
    }
    for (std::int64_t end = k + count; k < end; ++k) {
      const std::int64_t i = w.element(o, k, n);
      to = i < 0 ? zeros(to, 1) : std::copy_n(line + i * p_.features, p_.inputs, to);
    }
    return to;
  }
};

/// The number of elements and columns of the window matrix computed at a time: it stays in the
/// second-level cache, and so do the weights, which are packed for each part.
inline constexpr std::int64_t window_block = std::int64_t{1} << 17, window_depth = 640;

/// Computes one group as a matrix product, in blocks of windows and of taps.
template <class T>
void convolve_group(const conv_plan& p, const T* x, const T* weights, T* out, std::int64_t rows,
                    std::int64_t columns, scratch& memory) {
  const bool trivial = p.trivial();  // then the operand is the matrix
  const std::int64_t taps = std::clamp<std::int64_t>(window_depth / p.inputs, 1, p.taps);
  const std::int64_t block =
      std::min(rows, std::max<std::int64_t>(window_block / (taps * p.inputs), 32));
  T* made = nullptr;
  if (!trivial)
    made = reinterpret_cast<T*>(
        memory.take(block * taps * p.inputs * static_cast<std::int64_t>(sizeof(T))));
  window_matrix<T> source(p, x);
  for (std::int64_t row = 0; row < rows; row += block) {
    const std::int64_t count = std::min(block, rows - row);
    T* to = out + row * p.outputs;
    for (std::int64_t tap = 0; tap < p.taps; tap += taps) {
      const std::int64_t end = std::min(tap + taps, p.taps), depth = (end - tap) * p.inputs;
      if (!trivial) source.fill(row, count, tap, end, made);
      multiply_matrices<T>(trivial ? x + row * p.features : made,
                           {count, depth, trivial ? p.features : depth, 1},
                           weights + tap * p.inputs * p.outputs, {depth, columns, p.outputs, 1}, to,
                           p.outputs, tap == 0);
    }
  }
}

/// Computes groups of one input and one output feature (depthwise): products of rows of features.
template <class T>
void convolve_depthwise(const conv_plan& p, const T* x, const T* weights, T* out) {
  conv_plan one = p;  // all features of a tap are copied
  one.inputs = p.features;
  std::vector<T> row(static_cast<std::size_t>(p.taps * p.features));
  window_matrix<T> source(one, x);
  for (std::int64_t r = 0; r < p.batch * p.positions; ++r, out += p.outputs) {
    std::fill_n(out, p.outputs, T(0));
    source.fill(r, 1, 0, p.taps, row.data());
    const T* __restrict a = row.data();
    const T* __restrict w = weights;
    T* __restrict to = out;
    for (std::int64_t k = 0; k < p.taps; ++k, a += p.outputs, w += p.outputs)
      for (std::int64_t j = 0; j < p.outputs; ++j) {
        if constexpr (std::is_floating_point_v<T>)
          to[j] += a[j] * w[j];
        else
          to[j] = add_lanes::one(to[j], multiply_lanes::one(a[j], w[j]));
      }
  }
}

template <class T>
void convolve(const conv_plan& p, const T* x, const T* weights, T* out, scratch& memory) {
  const std::int64_t groups = p.feature_groups * p.batch_groups, columns = p.outputs / groups;
  const std::int64_t entries = p.batch / p.batch_groups, rows = entries * p.positions;
  if (p.feature_groups > 1 && p.inputs == 1 && columns == 1)
    return convolve_depthwise(p, x, weights, out);
  for (std::int64_t g = 0; g < groups; ++g)
    convolve_group(p, x + (p.feature_groups > 1 ? g * p.inputs : g * entries * p.image),
                   weights + g * columns, out + g * columns, rows, columns, memory);
}

/// 16-bit floats are multiplied and summed in binary32 and rounded once; integers wrap.
inline void convolution_kernel(const kernel_context& c) {
  const shape &ls = c.types[0].shape, &rs = c.types[1].shape, &to = c.result.shape;
  if (to.elements() == 0) return;
  if (ls.elements() == 0 || rs.elements() == 0) {
    std::memset(c.out, 0, static_cast<std::size_t>(c.result.bytes()));
    return;
  }
  const op::convolution::roles r(c.attrs.data(), rs);
  const conv_plan p(r, ls, rs, to);
  const computed_operands wide(c);
  // batch, spatial..., feature; spatial..., input feature, output feature
  int lhs[max_rank] = {r.lhs[0]}, rhs[max_rank] = {}, result[max_rank] = {r.result[0]};
  bool reversed[max_rank] = {};
  for (int d = 0; d < r.spatial; ++d) {
    lhs[1 + d] = r.lhs[2 + d];
    rhs[d] = r.rhs[2 + d];
    result[1 + d] = r.result[2 + d];
    reversed[d] = r.window.at[d].reversed;
  }
  lhs[1 + r.spatial] = r.lhs[1];
  rhs[r.spatial] = r.rhs[0];
  rhs[1 + r.spatial] = r.rhs[1];
  result[1 + r.spatial] = r.result[1];
  const std::byte* x = in_order(wide.type, ls, lhs, nullptr, wide.operand<std::byte>(0), c.memory);
  const std::byte* w = in_order(wide.type, rs, rhs, reversed, wide.operand<std::byte>(1), c.memory);
  shape sorted;
  int back[max_rank] = {};  // position of each dimension of the result in the sorted one
  bool same = true;
  for (int i = 0; i < to.rank; ++i) {
    sorted.push_back(to[result[i]]);
    back[result[i]] = i;
    same = same && result[i] == i;
  }
  std::byte* out = same ? wide.output<std::byte>() : c.memory.take(padded_bytes({wide.type, to}));
  with_number_type(wide.type, [&]<class T>(std::type_identity<T>) {
    convolve(p, reinterpret_cast<const T*>(x), reinterpret_cast<const T*>(w),
             reinterpret_cast<T*>(out), c.memory);
  });
  if (!same) {
    const strides by(sorted);
    strides from;
    for (int d = 0; d < to.rank; ++d) from[d] = by[back[d]];
    box(to, from, strides(to)).copy(size_of(wide.type), out, wide.output<std::byte>());
  }
  wide.store();
}

}  // namespace partita::run_detail
