/// A fused group of elementwise ops, interpreted block by block with its temporaries in cache.
///
/// Every op still rounds its result to its element type, and elements do not depend on where in a
/// block they lie: the results are those of one op at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>

namespace partita::detail {

/// A broadcast that repeats one contiguous run of dimensions: result[i] = source[i / inner %
/// count].
struct repetition {
  std::int64_t count = 1, inner = 1;

  /// Writes elements [begin, begin + n).
  template <class T>
  void fill(std::int64_t begin, std::int64_t n, const T* source, T* out) const {
    const std::int64_t end = begin + n;
    if (inner == 1) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t at = i % count, run = std::min(count - at, end - i);
        out = std::copy_n(source + at, run, out);
        i += run;
      }
    } else {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t run = std::min(inner - i % inner, end - i);
        out = std::fill_n(out, run, source[i / inner % count]);
        i += run;
      }
    }
  }
};

class block_program {
 public:
  /// Elements per block: a handful of temporaries fit the first-level cache.
  static constexpr std::int64_t block = 1024;

  std::int64_t elements = 0;
  /// Values that are read from or written to memory; `run` takes their addresses in this order.
  std::vector<value_id> values;

  /// A register is where one value of a block lies: in a temporary, or directly in memory.
  int memory(value_id v, const tensor_type& t) {
    const int address = value_index(v);
    registers_.push_back({kind::memory, address, t.element, 0, -1});
    return last();
  }
  int temporary(dtype t) {
    registers_.push_back({kind::temporary, -1, t, 0, -1});
    return last();
  }
  /// A register that has one value in every element, given by its bits or read from memory.
  int constant(dtype t, std::int64_t bits) {
    registers_.push_back({kind::constant, -1, t, bits, -1});
    return last();
  }
  int scalar(value_id v, dtype t) {
    const int address = value_index(v);
    registers_.push_back({kind::scalar, address, t, 0, -1});
    return last();
  }
  void call(block_function f, std::initializer_list<int> in, int out) {
    instruction i{f, {-1, -1, -1}, out, -1, {}};
    std::copy(in.begin(), in.end(), i.in);
    code_.push_back(i);
  }
  void broadcast(value_id source, const repetition& r, int out) {
    code_.push_back({nullptr, {-1, -1, -1}, out, value_index(source), r});
  }

  /// Gives temporaries that are not alive together the same place.
  void allocate_temporaries() {
    std::vector<int> last_use(registers_.size(), -1);
    for (std::size_t k = 0; k < code_.size(); ++k) {
      for (int r : code_[k].in)
        if (r >= 0) last_use[static_cast<std::size_t>(r)] = static_cast<int>(k);
      last_use[static_cast<std::size_t>(code_[k].out)] = static_cast<int>(k);
    }
    for (auto& r : registers_) {
      widest_ = std::max(widest_, size_of(r.type));
      if (r.where == kind::constant || r.where == kind::scalar) r.slot = slots_++;
    }
    std::vector<int> free;
    for (std::size_t k = 0; k < code_.size(); ++k) {
      auto& out = registers_[static_cast<std::size_t>(code_[k].out)];
      if (out.where == kind::temporary && out.slot < 0) {
        if (free.empty()) free.push_back(slots_++);
        out.slot = free.back();
        free.pop_back();
      }
      for (std::size_t i = 0; i < registers_.size(); ++i)
        if (last_use[i] == static_cast<int>(k) && registers_[i].where == kind::temporary)
          free.push_back(registers_[i].slot);
    }
  }

  /// Computes elements [begin, end); begin is a multiple of `block`.
  void run(std::byte* const* addresses, std::int64_t begin, std::int64_t end,
           scratch& memory) const {
    const std::int64_t stride = slot_bytes();
    std::byte* slots = memory.take(slots_ * stride);
    auto** at = reinterpret_cast<std::byte**>(
        memory.take(static_cast<std::int64_t>(registers_.size() * sizeof(std::byte*))));
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      const auto& r = registers_[i];
      at[i] = r.slot >= 0 ? slots + r.slot * stride : nullptr;
      if (r.where == kind::constant) fill(r.type, r.bits, block, at[i]);
      if (r.where == kind::scalar)
        repeat(r.type, {1, block}, 0, block, addresses[r.address], at[i]);
    }
    for (std::int64_t b = begin; b < end; b += block) {
      const std::int64_t n = std::min(block, end - b), whole = round_up(n, lanes);
      for (std::size_t i = 0; i < registers_.size(); ++i)
        if (registers_[i].where == kind::memory)
          at[i] = addresses[registers_[i].address] + b * size_of(registers_[i].type);
      for (const auto& c : code_) {
        if (c.run) {
          const void* in[3] = {};
          for (int i = 0; i < 3; ++i)
            if (c.in[i] >= 0) in[i] = at[c.in[i]];
          c.run(whole, in, at[c.out]);
        } else {
          repeat(registers_[static_cast<std::size_t>(c.out)].type, c.repeat, b, n,
                 addresses[c.source], at[c.out]);
        }
      }
    }
  }

 private:
  enum class kind : std::uint8_t { temporary, memory, constant, scalar };
  struct block_register {
    kind where;
    int address;  // index in `values`
    dtype type;
    std::int64_t bits;  // of a constant
    int slot;           // place among the temporaries
  };
  struct instruction {
    block_function run;  // null: a broadcast
    int in[3];
    int out;
    int source;
    repetition repeat;
  };
  int last() const { return static_cast<int>(registers_.size()) - 1; }
  int value_index(value_id v) {
    const auto found = std::find(values.begin(), values.end(), v);
    if (found != values.end()) return static_cast<int>(found - values.begin());
    values.push_back(v);
    return static_cast<int>(values.size()) - 1;
  }
  std::int64_t slot_bytes() const { return block * widest_ + 3 * alignment; }
  static void repeat(dtype t, const repetition& r, std::int64_t begin, std::int64_t n,
                     const std::byte* source, std::byte* out) {
    const auto as = [&]<class T>(T) {
      r.fill(begin, n, reinterpret_cast<const T*>(source), reinterpret_cast<T*>(out));
    };
    switch (size_of(t)) {
      case 1:
        return as(std::uint8_t{});
      case 2:
        return as(std::uint16_t{});
      case 4:
        return as(std::uint32_t{});
      default:
        return as(std::uint64_t{});
    }
  }

  std::vector<block_register> registers_;
  std::vector<instruction> code_;
  std::int64_t widest_ = 4;
  int slots_ = 0;
};

}  // namespace partita::detail
