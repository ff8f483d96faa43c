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

/// Computes one copy of the result of a collective. Sums run in the order of the mesh coordinates,
/// axes major to minor, so they do not depend on the number of threads.
class collective_copy {
 public:
  collective_copy(const mesh& m, const exchange& e, std::int64_t copy)
      : m_(m),
        e_(e),
        here_(coordinates_of(m, e.to_axes, copy)),
        members_(e.what.members(m)),
        out_(e.result + copy * padded_bytes(e.to)) {}

  void compute(scratch& memory) const {
    if (e_.to.shape.elements() == 0) return;
    switch (e_.what.kind) {
      case collective::all_reduce:
      case collective::reduce_scatter:
        return reduce(memory);
      case collective::all_slice:
        return slice(operand_at(here_), out_);
      case collective::all_gather:
        return gather();
      case collective::permute:
        return permute();
      case collective::all_to_all:
        return all_to_all();
    }
  }

 private:
  /// Where the piece of a device stands in the whole.
  position start_of(const coordinates& c, const shape& piece) const {
    return run_detail::start_of(m_, e_.what.axes, piece, c);
  }
  coordinates member(std::int64_t i) const { return member_at(m_, e_.what.axes, i, here_); }
  std::int64_t my_number() const { return member_of(m_, e_.what.axes, here_); }
  const std::byte* operand_at(const coordinates& c) const {
    return e_.operand + copy_at(m_, e_.from_axes, c) * padded_bytes(e_.from);
  }
  std::int64_t element_bytes() const { return size_of(e_.to.element); }

  void reduce(scratch& memory) const {
    const bool scatters = e_.what.kind == collective::reduce_scatter;
    // All members hold the same copy, and equal values combine to the value.
    const bool one_is_all =
        idempotent(e_.what.combine) && (axes_of(m_, e_.what.axes) & e_.from_axes).empty();
    accumulator sum(e_.what.combine, e_.to.element, e_.to.shape.elements(), memory);
    std::byte* piece = scatters ? memory.take(padded_bytes(e_.to)) : nullptr;
    for (std::int64_t i = 0; i < (one_is_all ? 1 : members_); ++i) {
      const std::byte* x = operand_at(member(i));
      if (scatters) slice(x, piece);
      sum.add(scatters ? piece : x);
    }
    sum.store(out_);
  }
  /// The piece of this device, from the whole.
  void slice(const std::byte* from, std::byte* to) const {
    copy_box(element_bytes(), e_.to.shape, e_.from.shape, start_of(here_, e_.to.shape).at, from,
             e_.to.shape, nullptr, to);
  }
  void gather() const {
    for (std::int64_t i = 0; i < members_; ++i) {
      const coordinates there = member(i);
      copy_box(element_bytes(), e_.from.shape, e_.from.shape, nullptr, operand_at(there),
               e_.to.shape, start_of(there, e_.from.shape).at, out_);
    }
  }
  void permute() const {
    const std::int64_t from = e_.what.sender(my_number(), m_);
    if (from == device_map::nobody) return fill_with_identity(e_.what.combine, e_.to, out_);
    std::memcpy(out_, operand_at(member(from)), static_cast<std::size_t>(e_.to.bytes()));
  }
  void all_to_all() const {
    shape part = e_.from.shape;
    for (const auto& e : e_.what.axes) part[e.dim] = e_.to.shape[e.dim];
    const position from = start_of(here_, part);
    const layout gathers = e_.what.gathers();
    for (std::int64_t i = 0; i < members_; ++i) {
      const coordinates there = member(i);
      const position to = run_detail::start_of(m_, gathers, e_.from.shape, there);
      copy_box(element_bytes(), part, e_.from.shape, from.at, operand_at(there), e_.to.shape, to.at,
               out_);
    }
  }

  const mesh& m_;
  const exchange& e_;
  coordinates here_;
  std::int64_t members_;
  std::byte* out_;
};

/// All devices of a mesh, in this process.
inline transport in_process(const mesh& m) {
  return {device_set::all(m), nullptr,
          [](void*, const device_set& devices, const exchange& e, thread_pool& threads,
             std::span<scratch> memory) {
            threads.parallel_for(devices.copies(e.to_axes), [&](int thread, std::int64_t i) {
              scratch& mine = memory[static_cast<std::size_t>(thread)];
              mine.reset();
              collective_copy(devices.mesh(), e, i).compute(mine);
            });
          }};
}

}  // namespace partita::run_detail
