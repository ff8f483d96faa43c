/// The device that a file of device code runs on: it has memory, and exchanges blocks with others.
#pragma once

#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <memory>
#include <string_view>
#include <vector>

#include <partita/run/kernels/combine.hpp>
#include <partita/run/transport/collective_run.hpp>
#include <partita/run/transport/transport.hpp>

namespace partita::code {

namespace kernels = run_detail;  ///< as files of device code name them

/// A tensor that an op reads, and one that it writes.
struct operand {
  tensor_type type;
  const void* data;
};
struct result {
  tensor_type type;
  void* data;
};

/// How elements of a type are combined across devices: computed in binary32 for 16-bit floats.
template <combiner C, class T>
inline constexpr run_detail::block_function combined =
    &run_detail::combine_block<run_detail::combine<C>, T>;

/// One device of a mesh. Its memory is one block, whose layout the file decides.
class device {
 public:
  device(run_detail::transport& t, std::int64_t bytes)
      : transport_(t), memory_(run_detail::allocate(bytes)), threads_(1) {
    const mesh& m = t.devices().mesh();
    for (int a = 0; a < m.rank; ++a) all_ |= one_axis(m, a);
    here_ = t.devices().coordinates_of(all_, 0);
  }

  template <class T>
  T* memory(std::int64_t at) {
    return reinterpret_cast<T*>(memory_.get() + at);
  }
  /// Position along an axis of the mesh.
  std::int64_t position(int axis) const { return here_.at[axis]; }

  /// Runs a kernel of the library.
  void call(kernel_function run, std::initializer_list<std::int64_t> attributes,
            std::initializer_list<operand> operands, std::initializer_list<result> results) {
    types_.clear();
    from_.clear();
    to_.clear();
    for (const auto& x : operands) {
      types_.push_back(x.type);
      from_.push_back(static_cast<const std::byte*>(x.data));
    }
    for (const auto& x : results) {
      types_.push_back(x.type);
      to_.push_back(static_cast<std::byte*>(x.data));
    }
    scratch_[0].reset();
    const std::span types(types_);
    run({types.first(from_.size()),
         types[from_.size()],
         {attributes.begin(), attributes.size()},
         from_,
         to_[0],
         scratch_[0],
         types.subspan(from_.size()),
         to_});
  }
  /// Runs a collective with the other devices, which all make the same calls in the same order.
  /// `number`: of this call in the file; its messages are planned the first time.
  template <class Op, run_detail::block_function Combine = nullptr>
  void exchange(std::size_t number, std::initializer_list<std::int64_t> attributes,
                std::initializer_list<operand> operands, std::initializer_list<result> results) {
    from_.clear();
    to_.clear();
    for (const auto& x : operands) from_.push_back(static_cast<const std::byte*>(x.data));
    for (const auto& x : results) to_.push_back(static_cast<std::byte*>(x.data));
    if (number >= runs_.size()) runs_.resize(number + 1);
    if (!runs_[number]) {
      std::vector<run_detail::collective_operand> list;
      for (std::size_t i = 0; i < operands.size(); ++i)
        list.push_back({operands.begin()[i].type, results.begin()[i].type, all_, all_});
      runs_[number] = std::make_unique<run_detail::collective_run>(
          transport_.devices(), Op::describe({attributes.begin(), attributes.size()}),
          std::move(list), [](combiner, dtype) { return Combine; });
    }
    runs_[number]->run(transport_, from_, to_, threads_, scratch_, messages_);
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
  run_detail::transport& transport_;
  run_detail::buffer memory_;
  run_detail::thread_pool threads_;
  axis_set all_;
  run_detail::coordinates here_;
  std::vector<tensor_type> types_;
  std::vector<const std::byte*> from_;
  std::vector<std::byte*> to_;
  std::vector<scratch> scratch_ = std::vector<scratch>(1);
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
