/// A fused group of elementwise ops and of reductions of rows, interpreted block by block with its
/// temporaries in cache.
///
/// Every op still rounds its result to its element type, and elements do not depend on where in a
/// block they lie: the results are those of one op at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/library.hpp>

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

/// What a register holds of a block.
enum class coverage : std::uint8_t {
  all,    ///< every element
  rows,   ///< one element per row
  splat,  ///< one element for all, `lanes` times
};

class block_program {
 public:
  block_program() = default;
  /// `row`: elements per row, or 0 if the group has no rows; see `fits`.
  block_program(std::int64_t count, std::int64_t row)
      : elements(count), row_(row), rows_(row == 0 ? 0 : rows_of(row)) {}

  std::int64_t elements = 0;
  /// Values that are read from or written to memory; `run` takes their addresses in this order.
  std::vector<value_id> values;

  /// Do the blocks for such rows fit the first-level cache?
  static bool fits(std::int64_t row) { return row > 1 && row * rows_of(row) <= 8 * least; }
  /// Elements per block: whole rows, and whole groups of lanes.
  std::int64_t block() const { return row_ == 0 ? least : row_ * rows_; }
  /// Does a block have one row only? Then what there is one of per row can be a splat.
  bool one_row() const { return rows_ == 1; }

  /// A register is where one value of a block lies: in a temporary, or directly in memory.
  int memory(value_id v, const tensor_type& t, coverage e = coverage::all) {
    return add({kind::memory, e, value_index(v), t.element});
  }
  /// A vector that repeats along the elements, if it can be used where it lies; else -1.
  int repeating(value_id v, const tensor_type& t, const repetition& r) {
    if (r.inner != 1 || r.count % block() != 0) return -1;
    const int reg = add({kind::memory, coverage::all, value_index(v), t.element});
    at(reg).period = r.count;
    return reg;
  }
  int temporary(dtype t, coverage e = coverage::all) { return add({kind::temporary, e, -1, t}); }
  /// A register that has one value in every element, given by its bits or read from memory.
  int constant(dtype t, std::int64_t bits, coverage e) {
    const int reg = add({kind::constant, e, -1, t});
    at(reg).bits = bits;
    return reg;
  }
  int scalar(value_id v, dtype t, coverage e) { return add({kind::scalar, e, value_index(v), t}); }

  coverage coverage_of(int reg) const { return registers_[static_cast<std::size_t>(reg)].what; }

  void call(block_function f, std::initializer_list<int> in, int out) {
    instruction i(instruction::map, out);
    i.run = f;
    std::copy(in.begin(), in.end(), i.in);
    code_.push_back(std::move(i));
  }
  /// x, or x and y, through one link; y may be a splat, and x too.
  void link_up(link l, int x, int y, int out) {
    instruction i(instruction::chain, out);
    i.in[0] = x;
    i.links.push_back({l, y});
    code_.push_back(std::move(i));
  }
  void broadcast(value_id source, const repetition& r, int out) {
    instruction i(instruction::broadcast, out);
    i.source = value_index(source);
    i.repeat = r;
    code_.push_back(std::move(i));
  }
  /// Elements along their rows: x with coverage `rows`, to `all`, or to `splat` if a block is one
  /// row.
  void spread(int x, int out) {
    instruction i(instruction::spread, out);
    i.in[0] = x;
    code_.push_back(std::move(i));
  }
  void reduce(row_function f, int x, int out) {
    instruction i(instruction::reduce, out);
    i.reduce_rows = f;
    i.in[0] = x;
    code_.push_back(std::move(i));
  }

  /// To be called once all instructions are there.
  void finish() {
    join_chains();
    allocate_temporaries();
  }

  /// Computes elements [begin, end); begin is a multiple of `block()`.
  void run(std::byte* const* addresses, std::int64_t begin, std::int64_t end,
           scratch& memory) const {
    std::byte* slots = memory.take(large_ * slot_bytes() + small_ * small_bytes());
    // The lanes past the rows are computed too, from zeros.
    std::memset(slots + large_ * slot_bytes(), 0, static_cast<std::size_t>(small_ * small_bytes()));
    auto** at = reinterpret_cast<std::byte**>(
        memory.take(static_cast<std::int64_t>(registers_.size() * sizeof(std::byte*))));
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      const auto& r = registers_[i];
      at[i] = r.slot < 0 ? nullptr
                         : slots + (is_large(r) ? r.slot * slot_bytes()
                                                : large_ * slot_bytes() + r.slot * small_bytes());
      const std::int64_t n = is_large(r) ? block() : small_elements();
      if (r.where == kind::constant) fill(r.type, r.bits, n, at[i]);
      if (r.where == kind::scalar) repeat(r.type, {1, n}, 0, n, addresses[r.address], at[i]);
    }
    for (std::int64_t b = begin; b < end; b += block()) {
      const std::int64_t n = std::min(block(), end - b), rows = row_ == 0 ? 0 : n / row_;
      for (std::size_t i = 0; i < registers_.size(); ++i) {
        const auto& r = registers_[i];
        if (r.where != kind::memory) continue;
        const std::int64_t size = size_of(r.type);
        std::byte* base = addresses[r.address];
        if (r.what == coverage::all)
          at[i] = base + (r.period > 0 ? b % r.period : b) * size;
        else if (!r.written)
          std::memcpy(at[i], base + b / row_ * size, static_cast<std::size_t>(rows * size));
      }
      for (const auto& c : code_) run_one(c, at, addresses, b, n, rows);
      for (std::size_t i = 0; i < registers_.size(); ++i) {
        const auto& r = registers_[i];
        if (r.where == kind::memory && r.what == coverage::rows && r.written)
          std::memcpy(addresses[r.address] + b / row_ * size_of(r.type), at[i],
                      static_cast<std::size_t>(rows * size_of(r.type)));
      }
    }
  }

 private:
  /// A handful of temporaries of so many elements fit the first-level cache.
  static constexpr std::int64_t least = 1024;
  static constexpr std::size_t most_links = 16;

  enum class kind : std::uint8_t { temporary, memory, constant, scalar };
  struct block_register {
    kind where;
    coverage what;
    int address;  // index in `values`
    dtype type;
    std::int64_t bits = 0;    // of a constant
    std::int64_t period = 0;  // memory that repeats after so many elements
    int slot = -1;            // place among the temporaries of its size
    bool written = false;
  };
  struct instruction {
    enum kind : std::uint8_t { map, chain, broadcast, spread, reduce };
    struct to_link {
      link what;
      int operand;
    };
    instruction(kind k, int to) : what(k), out(to) {}

    kind what;
    int out;
    int in[3] = {-1, -1, -1};
    block_function run = nullptr;        // map
    row_function reduce_rows = nullptr;  // reduce
    std::vector<to_link> links;          // chain: from in[0]
    int source = -1;                     // broadcast
    repetition repeat = {};

    template <class F>
    void for_operands(F f) const {
      for (int r : in)
        if (r >= 0) f(r);
      for (const auto& l : links)
        if (l.operand >= 0) f(l.operand);
    }
  };

  static std::int64_t rows_of(std::int64_t row) {
    const std::int64_t unit = lanes / std::gcd(lanes, row);
    return unit * std::max<std::int64_t>(1, least / (row * unit));
  }
  block_register& at(int reg) { return registers_[static_cast<std::size_t>(reg)]; }
  const block_register& at(int reg) const { return registers_[static_cast<std::size_t>(reg)]; }
  int add(const block_register& r) {
    registers_.push_back(r);
    return static_cast<int>(registers_.size()) - 1;
  }
  int value_index(value_id v) {
    const auto found = std::find(values.begin(), values.end(), v);
    if (found != values.end()) return static_cast<int>(found - values.begin());
    values.push_back(v);
    return static_cast<int>(values.size()) - 1;
  }

  /// A chain whose result only another chain uses goes before it.
  void join_chains() {
    std::vector<int> uses(registers_.size(), 0), maker(registers_.size(), -1);
    for (const auto& c : code_) c.for_operands([&](int r) { ++uses[static_cast<std::size_t>(r)]; });
    for (std::size_t k = 0; k < code_.size(); ++k) {
      instruction& c = code_[k];
      maker[static_cast<std::size_t>(c.out)] = static_cast<int>(k);
      if (c.what != instruction::chain) continue;
      const auto can_precede = [&](int r) {
        if (r < 0 || at(r).where != kind::temporary || uses[static_cast<std::size_t>(r)] != 1 ||
            coverage_of(r) != coverage_of(c.out))
          return -1;
        const int m = maker[static_cast<std::size_t>(r)];
        if (m < 0) return -1;
        const instruction& before = code_[static_cast<std::size_t>(m)];
        return before.what == instruction::chain && before.links.size() < most_links ? m : -1;
      };
      // A new chain has one link; its operands change places if the later one continues.
      const int left = can_precede(c.in[0]), right = can_precede(c.links[0].operand);
      if (left < 0 && right < 0) continue;
      if (right > left) {
        std::swap(c.in[0], c.links[0].operand);
        c.links[0].what = flipped(c.links[0].what);
      }
      instruction& before = code_[static_cast<std::size_t>(std::max(left, right))];
      c.in[0] = before.in[0];
      c.links.insert(c.links.begin(), before.links.begin(), before.links.end());
      before.out = -1;
    }
    std::erase_if(code_, [](const instruction& c) { return c.out < 0; });
  }

  static bool is_large(const block_register& r) { return r.what == coverage::all; }
  /// Gives temporaries that are not alive together the same place.
  void allocate_temporaries() {
    std::vector<int> last_use(registers_.size(), -1);
    for (std::size_t k = 0; k < code_.size(); ++k) {
      code_[k].for_operands(
          [&](int r) { last_use[static_cast<std::size_t>(r)] = static_cast<int>(k); });
      last_use[static_cast<std::size_t>(code_[k].out)] = static_cast<int>(k);
      at(code_[k].out).written = true;
    }
    const auto next = [&](const block_register& r) { return (is_large(r) ? large_ : small_)++; };
    for (auto& r : registers_) {
      widest_ = std::max(widest_, size_of(r.type));
      if (r.where == kind::constant || r.where == kind::scalar ||
          (r.where == kind::memory && r.what == coverage::rows))
        r.slot = next(r);
    }
    std::vector<int> free[2];
    for (std::size_t k = 0; k < code_.size(); ++k) {
      auto& out = at(code_[k].out);
      if (out.where == kind::temporary && out.slot < 0) {
        auto& list = free[is_large(out)];
        if (list.empty()) list.push_back(next(out));
        out.slot = list.back();
        list.pop_back();
      }
      for (std::size_t i = 0; i < registers_.size(); ++i)
        if (last_use[i] == static_cast<int>(k) && registers_[i].where == kind::temporary)
          free[is_large(registers_[i])].push_back(registers_[i].slot);
    }
  }
  std::int64_t slot_bytes() const { return block() * widest_ + 3 * alignment; }
  std::int64_t small_elements() const { return round_up(std::max<std::int64_t>(rows_, 1), lanes); }
  std::int64_t small_bytes() const { return small_elements() * 8; }

  void run_one(const instruction& c, std::byte* const* at, std::byte* const* addresses,
               std::int64_t begin, std::int64_t n, std::int64_t rows) const {
    const block_register& out = this->at(c.out);
    const std::int64_t whole = round_up(out.what == coverage::all    ? n
                                        : out.what == coverage::rows ? rows
                                                                     : lanes,
                                        lanes);
    switch (c.what) {
      case instruction::map: {
        const void* in[3] = {};
        for (int i = 0; i < 3; ++i)
          if (c.in[i] >= 0) in[i] = at[c.in[i]];
        return c.run(whole, in, at[c.out]);
      }
      case instruction::chain: {
        const auto operand = [&](int r) -> chain_operand {
          if (r < 0) return {};
          return {at[r], this->at(r).what == coverage::splat && out.what != coverage::splat};
        };
        chain_link links[most_links];
        for (std::size_t i = 0; i < c.links.size(); ++i)
          links[i] = {c.links[i].what, operand(c.links[i].operand)};
        return run_chain(out.type, whole, operand(c.in[0]), links, c.links.size(), at[c.out]);
      }
      case instruction::broadcast:
        if (out.what == coverage::rows)
          return repeat(out.type, c.repeat, begin / row_, rows, addresses[c.source], at[c.out]);
        return repeat(out.type, c.repeat, begin, n, addresses[c.source], at[c.out]);
      case instruction::spread:
        if (out.what == coverage::splat)
          return repeat(out.type, {1, lanes}, 0, lanes, at[c.in[0]], at[c.out]);
        return repeat(out.type, {rows, row_}, 0, n, at[c.in[0]], at[c.out]);
      case instruction::reduce:
        return c.reduce_rows(rows, row_, at[c.in[0]], at[c.out]);
    }
  }
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
  std::int64_t row_ = 0, rows_ = 0;
  std::int64_t widest_ = 4;
  int large_ = 0, small_ = 0;  // slots
};

}  // namespace partita::detail
