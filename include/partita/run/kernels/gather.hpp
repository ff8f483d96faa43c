/// The kernels of gather and scatter: windows at computed positions.
#pragma once

#include <partita/op/registry.hpp>
#include <partita/run/kernels/combine.hpp>
#include <partita/run/kernels/computed.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

/// The windows of a gather or scatter: one for each index vector, in row-major order. Offsets are
/// in elements; `tensor` is the operand (input), `parts` the result (updates). If a start is out of
/// bounds, it is clamped, or its window is skipped.
template <bool Clamps>
class windows {
 public:
  windows(const op::gather_dims& dims, const shape& tensor, const tensor_type& indices,
          const shape& parts)
      : index_type_(indices.element), indices_(indices.shape.elements()) {
    const strides t(tensor), i(indices.shape), p(parts);
    for (int d = 0; d < dims.operand_rank; ++d)
      if (const int r = dims.window_dim[d]; r >= 0) {
        gathered_.push_back(parts[r], t[d], p[r]);
        scattered_.push_back(parts[r], p[r], t[d]);
      }
    for (int k = 0; k < dims.starts; ++k) {
      const int d = dims.start_map[k], r = dims.window_dim[d];
      starts_.push_back({tensor[d] - (r < 0 ? 1 : parts[r]), t[d]});
    }
    vector_stride_ = dims.vector_dim < dims.indices_rank ? i[dims.vector_dim] : 0;
    for (int r = 0; r < dims.result_rank; ++r) {
      if (dims.index_dim[r] < 0) continue;
      level next{parts[r], i[dims.index_dim[r]], p[r], 0};
      for (int d = 0; d < dims.operand_rank; ++d)
        if (dims.batching_dim[d] == dims.index_dim[r]) next.tensor = t[d];
      push_back(next);
    }
  }

  const box& gathered() const { return gathered_; }    ///< one window, from tensor to parts
  const box& scattered() const { return scattered_; }  ///< one window, from parts to tensor

  /// Calls f(offset in the tensor, offset in the parts) for every window that is not skipped.
  template <class F>
  void for_each(const std::byte* indices, F f) const {
    if (index_type_ == dtype::i32)
      return run(reinterpret_cast<const std::int32_t*>(indices), 0, 0, 0, f);
    if (index_type_ == dtype::i64)
      return run(reinterpret_cast<const std::int64_t*>(indices), 0, 0, 0, f);
    std::vector<std::int64_t> wide(static_cast<std::size_t>(indices_));
    for (std::int64_t i = 0; i < indices_; ++i)
      wide[static_cast<std::size_t>(i)] = index_at(index_type_, indices, i);
    run(wide.data(), 0, 0, 0, f);
  }

 private:
  struct start {
    std::int64_t last, stride;  ///< maximum start, stride in the tensor
  };
  /// A loop over index vectors: its extent and its strides.
  struct level {
    std::int64_t extent, index, parts, tensor;
  };

  void push_back(const level& next) {
    if (next.extent == 1) return;
    if (!levels_.empty()) {
      level& last = levels_.back();
      if (last.index == next.index * next.extent && last.parts == next.parts * next.extent &&
          last.tensor == next.tensor * next.extent) {
        last = {last.extent * next.extent, next.index, next.parts, next.tensor};
        return;
      }
    }
    levels_.push_back(next);
  }
  /// Clamps or checks a start; returns false if its window is skipped.
  static bool place(std::int64_t& at, const start& s) {
    if constexpr (Clamps) at = std::clamp<std::int64_t>(at, 0, s.last);
    return Clamps || (at >= 0 && at <= s.last);
  }
  template <class Index, class F>
  void row(const level l, const Index* index, std::int64_t tensor, std::int64_t parts, F f) const {
    if (starts_.size() == 1) {  // rows of a table need only this loop
      const start s = starts_[0];
      for (std::int64_t i = 0; i < l.extent; ++i) {
        std::int64_t at = index[i * l.index];
        if (place(at, s)) f(tensor + i * l.tensor + at * s.stride, parts + i * l.parts);
      }
      return;
    }
    for (std::int64_t i = 0; i < l.extent; ++i) {
      bool inside = true;
      std::int64_t offset = tensor + i * l.tensor;
      for (std::size_t k = 0; k < starts_.size(); ++k) {
        std::int64_t at = index[i * l.index + static_cast<std::int64_t>(k) * vector_stride_];
        inside = inside && place(at, starts_[k]);
        if (inside) offset += at * starts_[k].stride;
      }
      if (inside) f(offset, parts + i * l.parts);
    }
  }
  template <class Index, class F>
  void run(const Index* index, std::int64_t tensor, std::int64_t parts, std::size_t d, F f) const {
    if (levels_.empty()) return row({1, 0, 0, 0}, index, tensor, parts, f);
    const level& l = levels_[d];
    if (d + 1 == levels_.size()) return row(l, index, tensor, parts, f);
    for (std::int64_t i = 0; i < l.extent; ++i)
      run(index + i * l.index, tensor + i * l.tensor, parts + i * l.parts, d + 1, f);
  }

  dtype index_type_;
  std::int64_t indices_;
  std::int64_t vector_stride_ = 0;
  box gathered_, scattered_;
  vec<start> starts_;
  vec<level> levels_;
};

inline void gather_kernel(const kernel_context& c) {
  if (c.result.shape.elements() == 0) return;
  if (c.types[0].shape.elements() == 0) {  // an empty operand
    std::memset(c.out, 0, static_cast<std::size_t>(c.result.bytes()));
    return;
  }
  const op::gather_dims dims(c.attrs, c.types[0].shape, c.types[1].shape);
  const windows<true> w(dims, c.types[0].shape, c.types[1], c.result.shape);
  const std::int64_t size = size_of(c.result.element);
  const std::byte* from = c.operands[0];
  if (const std::int64_t n = w.gathered().contiguous(); n >= 0) {
    const auto bytes = static_cast<std::size_t>(n * size);
    return w.for_each(c.operands[1], [from, size, bytes, to = c.out](auto tensor, auto part) {
      std::memcpy(to + part * size, from + tensor * size, bytes);
    });
  }
  w.for_each(c.operands[1], [&](std::int64_t tensor, std::int64_t part) {
    w.gathered().copy(size, from + tensor * size, c.out + part * size);
  });
}

/// Combines updates; `out` already holds the input if the op has one.
template <class F, class T>
void combine_windows(const windows<false>& w, const std::byte* indices, bool has_input,
                     const T* updates, T* out, std::int64_t n) {
  if (!has_input) std::fill_n(out, n, F::template identity<T>());
  const std::int64_t row = w.scattered().contiguous();
  if (row >= 0)
    return w.for_each(indices, [=](std::int64_t tensor, std::int64_t part) {
      const T* __restrict from = updates + part;
      T* __restrict to = out + tensor;
      for (std::int64_t j = 0; j < row; ++j) to[j] = F::one(to[j], from[j]);
    });
  w.for_each(indices, [&](std::int64_t tensor, std::int64_t part) {
    w.scattered().for_each_row(
        updates + part, out + tensor,
        [](const T* from, T* to, std::int64_t m, std::int64_t from_step, std::int64_t to_step) {
          for (std::int64_t j = 0; j < m; ++j)
            to[j * to_step] = F::one(to[j * to_step], from[j * from_step]);
        });
  });
}

/// Combines in the order of the windows; 16-bit floats are combined in binary32 and rounded once.
inline void scatter_kernel(const kernel_context& c) {
  const bool has_input = c.operands.size() == 3;
  const std::size_t indices = c.operands.size() - 2;
  const tensor_type& update_type = c.types[indices + 1];
  const op::gather_dims dims(c.attrs.subspan(1), c.result.shape, c.types[indices].shape);
  const windows<false> w(dims, c.result.shape, c.types[indices], update_type.shape);
  const dtype t = c.result.element;
  const auto update = op::scatter::update_of(c.attrs);
  const std::byte* parts = c.operands[indices + 1];
  std::byte* out = c.out;
  const bool wide = is_half(t) && update != ops::scatter_update::assign;
  if (wide) {
    parts = widened(t, parts, update_type.shape.elements(), c.memory);
    out = c.memory.take(padded_bytes({dtype::f32, c.result.shape}));
    const void* in[] = {c.operands[0]};
    if (has_input) widen_function(t)(round_up(c.result.shape.elements(), lanes), in, out);
  } else if (has_input) {
    std::memcpy(out, c.operands[0], static_cast<std::size_t>(c.result.bytes()));
  }
  if (update == ops::scatter_update::assign) {
    const std::int64_t size = size_of(t);
    w.for_each(c.operands[indices], [&](std::int64_t tensor, std::int64_t part) {
      w.scattered().copy(size, parts + part * size, out + tensor * size);
    });
  } else {
    with_computed_type(t, [&]<class T>(std::type_identity<T>) {
      with_combiner<T>(static_cast<combiner>(update), [&]<class F>(F) {
        combine_windows<F>(w, c.operands[indices], has_input, reinterpret_cast<const T*>(parts),
                           reinterpret_cast<T*>(out), c.result.shape.elements());
      });
    });
  }
  if (wide) narrow(t, out, c.result.shape.elements(), c.out);
}

}  // namespace partita::run_detail
