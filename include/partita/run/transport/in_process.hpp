/// The transport inside one process: the collectives, on the copies of a value that an emulated
/// mesh holds.
#pragma once

#include <algorithm>
#include <bit>
#include <cstring>
#include <span>

#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/transport/transport.hpp>

namespace partita::run_detail {

/// A collective and how its operand and result lie in memory.
struct collective_call {
  const partita::mesh& mesh;
  const collective& what;
  tensor_type from, to;
  axis_set from_axes, to_axes;
  const std::byte* operand;  ///< copy i at i * padded_bytes(from)
  std::byte* result;

  const std::byte* operand_at(const coordinates& c) const {
    return operand + copy_at(mesh, from_axes, c) * padded_bytes(from);
  }
};

/// Combines blocks into `sum`, in the order of the calls. 16-bit floats are kept in binary32.
class accumulator {
 public:
  accumulator(combiner c, dtype t, std::int64_t elements, scratch& memory)
      : type_(t), n_(round_up(elements, lanes)) {
    combine_ = find_combine(c, t);
    size_ = size_of(computed(t));
    for (auto& s : sum_) s = memory.take(n_ * size_ + alignment);
    if (is_half(t)) wide_ = memory.take(n_ * size_ + alignment);
  }
  void add(const std::byte* x) {
    if (is_half(type_)) {
      const void* in[] = {x};
      widen_function(type_)(n_, in, wide_);
      x = wide_;
    }
    if (first_) {
      std::memcpy(sum_[0], x, static_cast<std::size_t>(n_ * size_));
      first_ = false;
      return;
    }
    const void* in[] = {sum_[0], x};
    combine_(n_, in, sum_[1]);
    std::swap(sum_[0], sum_[1]);
  }
  void store(std::byte* out) {
    if (is_half(type_)) {
      const void* in[] = {sum_[0]};
      narrow_function(type_)(n_, in, out);
    } else {
      std::memcpy(out, sum_[0], static_cast<std::size_t>(n_ * size_));
    }
  }

 private:
  dtype type_;
  std::int64_t n_, size_;
  block_function combine_;
  std::byte* sum_[2] = {};
  std::byte* wide_ = nullptr;
  bool first_ = true;
};

inline void fill_with_identity(combiner c, const tensor_type& t, std::byte* out) {
  const std::int64_t bits = identity_bits(c, t.element);
  with_type(t.element, [&]<class T>(std::type_identity<T>) {
    const T value = is_floating(t.element) ? convert_element<T>(std::bit_cast<double>(bits))
                                           : convert_element<T>(bits);
    std::fill_n(reinterpret_cast<T*>(out), t.shape.elements(), value);
  });
}

/// Does a value combined with itself give the value?
constexpr bool idempotent(combiner c) { return c != combiner::add && c != combiner::multiply; }

/// Computes one copy of the result. Sums run in the order of the mesh coordinates, axes major to
/// minor, so they do not depend on the number of threads.
inline void run_collective(const collective_call& call, std::int64_t copy, scratch& memory) {
  const mesh& m = call.mesh;
  const collective& what = call.what;
  const coordinates here = coordinates_of(m, call.to_axes, copy);
  std::byte* out = call.result + copy * padded_bytes(call.to);
  const std::int64_t size = size_of(call.to.element), n = call.to.shape.elements();
  if (n == 0) return;
  const std::int64_t members = what.members(m);
  const auto member = [&](std::int64_t i) { return member_at(m, what.axes, i, here); };
  std::int64_t start[max_rank] = {};
  const auto start_at = [&](const coordinates& c, const shape& piece) {
    for (int d = 0; d < piece.rank; ++d) start[d] = piece_of(m, what.axes, d, c) * piece[d];
  };

  switch (what.kind) {
    case collective::all_reduce:
    case collective::reduce_scatter: {
      const bool scatters = what.kind == collective::reduce_scatter;
      accumulator sum(what.combine, call.to.element, n, memory);
      std::byte* piece = scatters ? memory.take(padded_bytes(call.to)) : nullptr;
      if (scatters) start_at(here, call.to.shape);
      for (std::int64_t i = 0; i < members; ++i) {
        const std::byte* x = call.operand_at(member(i));
        if (scatters) {
          copy_box(size, call.to.shape, call.from.shape, start, x, call.to.shape, nullptr, piece);
          x = piece;
        }
        sum.add(x);
        // All members hold the same copy, and equal values combine to the value.
        if (idempotent(what.combine) && (axes_of(m, what.axes) & call.from_axes).empty()) break;
      }
      return sum.store(out);
    }
    case collective::all_slice:
      start_at(here, call.to.shape);
      return copy_box(size, call.to.shape, call.from.shape, start, call.operand_at(here),
                      call.to.shape, nullptr, out);
    case collective::all_gather:
      for (std::int64_t i = 0; i < members; ++i) {
        const coordinates there = member(i);
        start_at(there, call.from.shape);
        copy_box(size, call.from.shape, call.from.shape, nullptr, call.operand_at(there),
                 call.to.shape, start, out);
      }
      return;
    case collective::permute: {
      const std::int64_t from = what.map.sender(member_of(m, what.axes, here), members);
      if (from == device_map::nobody) return fill_with_identity(what.combine, call.to, out);
      std::memcpy(out, call.operand_at(member(from)), static_cast<std::size_t>(n * size));
      return;
    }
    case collective::all_to_all: {
      shape part = call.from.shape;
      part[what.sliced] = call.to.shape[what.sliced];
      start[what.sliced] = member_of(m, what.axes, here) * call.to.shape[what.sliced];
      for (std::int64_t i = 0; i < members; ++i) {
        std::int64_t to_start[max_rank] = {};
        to_start[what.gathered] = i * call.from.shape[what.gathered];
        copy_box(size, part, call.from.shape, start, call.operand_at(member(i)), call.to.shape,
                 to_start, out);
      }
      return;
    }
  }
}

/// All devices of a mesh, in this process.
inline transport in_process(const mesh& m) {
  return {device_set::all(m), nullptr,
          [](void*, const device_set& devices, const exchange& e, thread_pool& threads,
             std::span<scratch> memory) {
            const collective_call call{devices.mesh(), e.what,    e.from,    e.to,
                                       e.from_axes,    e.to_axes, e.operand, e.result};
            threads.parallel_for(devices.copies(e.to_axes), [&](int thread, std::int64_t i) {
              scratch& mine = memory[static_cast<std::size_t>(thread)];
              mine.reset();
              run_collective(call, i, mine);
            });
          }};
}

}  // namespace partita::run_detail
