/// The devices that device code runs on: they have memory, and exchange blocks with others. In a
/// file of device code there is one; a program in the binary has all of its mesh.
#pragma once

#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include <partita/run/kernels/combine.hpp>
#include <partita/run/transport/collective_run.hpp>

namespace partita::code {

namespace kernels = run_detail;  ///< as files of device code name them

/// A tensor that an op reads or writes.
struct tensor {
  tensor_type type;
  const void* data;
};

/// How elements of a type are combined across devices: computed in binary32 for 16-bit floats.
template <combiner C, class T>
inline constexpr run_detail::block_function combined =
    &run_detail::combine_block<run_detail::combine<run_detail::combiner_of<T>(C)>,
                               run_detail::computed_type<T>>;

/// Devices of a mesh. Their memory is one block, whose layout the code decides.
class device {
 public:
  device(run_detail::transport& t, std::int64_t bytes)
      : transport_(t),
        memory_(run_detail::allocate(bytes)),
        all_(run_detail::all_axes(t.devices().mesh())) {}

  template <class T>
  T* memory(std::int64_t at) const {
    return reinterpret_cast<T*>(memory_.get() + at);
  }
  /// The number of a device's block along some axes, the major one first.
  std::int64_t block(span<const std::int64_t> axes, std::int64_t copy = 0) const {
    std::int64_t n = 0;
    for (const std::int64_t a : axes)
      n = n * transport_.devices().mesh().size(static_cast<int>(a)) +
          transport_.devices().coordinates_of(all_, copy).at[a];
    return n;
  }

  /// Runs a kernel of the library.
  void call(kernel_function run, span<const std::int64_t> attributes, span<const tensor> operands,
            span<const tensor> results) {
    set(operands, results);
    types_.clear();
    for (const auto& list : {operands, results})
      for (const tensor& x : list) types_.push_back(x.type);
    memories_[0].reset();
    const std::span<const tensor_type> from(types_.data(), from_.size()),
        to(types_.data() + from_.size(), to_.size());
    run({from, to[0], attributes, from_, to_[0], memories_[0], to, to_});
  }
  /// Runs a collective with the other devices, which all make the same calls in the same order.
  /// `number`: of this call in the code; its messages are planned the first time.
  void exchange(std::size_t number, collective (*describe)(span<const std::int64_t>),
                run_detail::block_function (*combine)(combiner, dtype),
                span<const std::int64_t> attributes, span<const tensor> operands,
                span<const tensor> results) {
    set(operands, results);
    if (number >= runs_.size()) runs_.resize(number + 1);
    if (!runs_[number]) {
      std::vector<run_detail::collective_operand> list;
      for (std::size_t i = 0; i < operands.size(); ++i)
        list.push_back({operands[i].type, results[i].type, all_, all_});
      runs_[number] = std::make_unique<run_detail::collective_run>(
          transport_.devices(), describe(attributes), std::move(list), combine);
    }
    runs_[number]->run(transport_, from_, to_, threads_, memories_, messages_);
  }
  template <class Op, run_detail::block_function Combine = nullptr>
  void exchange(std::size_t number, span<const std::int64_t> attributes,
                span<const tensor> operands, span<const tensor> results) {
    exchange(
        number, &Op::describe, [](combiner, dtype) { return Combine; }, attributes, operands,
        results);
  }
  /// A value by which all devices decide alike.
  ///
  /// Errors    R014 it differs between devices
  template <class T>
  T agreed(const T* x) {
    const auto* mine = reinterpret_cast<const std::byte*>(x);
    if (transport_.devices().processes(all_) > 1) {
      const auto all = run_detail::gathered(transport_, all_, mine, sizeof(T));
      for (std::size_t i = 0; i < all.size(); i += sizeof(T))
        if (std::memcmp(mine, all.data() + i, sizeof(T)) != 0)
          throw error(
              "R014 run: a condition or an index differs between devices: all have to take "
              "the same way through the program");
    }
    return *x;
  }

 private:
  void set(span<const tensor> operands, span<const tensor> results) {
    from_.clear();
    to_.clear();
    for (const tensor& x : operands) from_.push_back(static_cast<const std::byte*>(x.data));
    for (const tensor& x : results)
      to_.push_back(static_cast<std::byte*>(const_cast<void*>(x.data)));
  }

  run_detail::transport& transport_;
  run_detail::buffer memory_;
  run_detail::thread_pool threads_{1};
  axis_set all_;
  std::vector<tensor_type> types_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  std::vector<scratch> memories_ = std::vector<scratch>(1);
  scratch messages_;
  std::vector<std::unique_ptr<run_detail::collective_run>> runs_;
};

template <class T>
const T* in(const std::byte* x) {
  return reinterpret_cast<const T*>(x);
}
template <class T>
T* out(std::byte* x) {
  return reinterpret_cast<T*>(x);
}
template <class T>
void copy(const T* from, std::int64_t elements, T* to) {
  if (elements > 0) std::memcpy(to, from, static_cast<std::size_t>(elements) * sizeof(T));
}

}  // namespace partita::code
