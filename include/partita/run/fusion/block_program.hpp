/// A fused group of elementwise ops and of reductions of rows, interpreted block by block with its
/// temporaries in cache.
///
/// Every op still rounds its result to its element type, and elements do not depend on their
/// position in a block: the results equal those of running one op at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <numeric>
#include <utility>
#include <vector>

#include <partita/run/fusion/block_instruction.hpp>
#include <partita/run/fusion/join_chains.hpp>
#include <partita/run/fusion/temporaries.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/strided.hpp>

namespace partita::run_detail {

class block_program {
 public:
  block_program() = default;
  /// `row`: the number of elements of a row, or 0 if the group has no rows; see `fits`.
  block_program(std::int64_t count, std::int64_t row)
      : elements(count), row_(row), rows_(row == 0 ? 0 : rows_of(row)) {}

  std::int64_t elements = 0;
  /// Values that are read from or written to memory; `run` expects their addresses in this order.
  std::vector<value_id> values;

  /// True if blocks of such rows fit the first-level cache.
  static bool fits(std::int64_t row) { return row > 1 && row * rows_of(row) <= 8 * least; }
  /// Returns the elements of a block: full rows, and full groups of lanes.
  std::int64_t block() const { return row_ == 0 ? least : row_ * rows_; }
  /// True if links can read one element for each row, or for each position in a row, without a
  /// copy.
  bool links_rows() const { return row_ >= lanes; }

  /// Returns a register for a value in memory. (A register is the storage of one value of a block.)
  int memory(value_id v, const tensor_type& t, coverage e = coverage::all) {
    return add({kind::memory, e, value_index(v), t.element});
  }
  /// Returns a register for a vector that repeats along the elements if it can be used in place;
  /// else -1.
  int repeating(value_id v, const tensor_type& t, const repetition& r, bool linked) {
    if (r.inner != 1) return -1;
    if (linked && links_rows() && r.count == row_) return memory(v, t, coverage::columns);
    if (r.count % block() != 0) return -1;
    const int reg = memory(v, t);
    at(reg).period = r.count;
    return reg;
  }
  int temporary(dtype t, coverage e = coverage::all) { return add({kind::temporary, e, -1, t}); }
  /// Returns a register with the same value in every element, given by its bits or read from
  /// memory.
  int constant(dtype t, std::int64_t bits, coverage e) {
    const int reg = add({kind::constant, e, -1, t});
    at(reg).bits = bits;
    return reg;
  }
  int scalar(value_id v, dtype t, coverage e) { return add({kind::scalar, e, value_index(v), t}); }

  coverage coverage_of(int reg) const { return at(reg).what; }

  void call(block_function f, std::initializer_list<int> in, int out) {
    block_instruction i(block_instruction::map, out);
    i.run = f;
    std::copy(in.begin(), in.end(), i.in);
    code_.push_back(std::move(i));
  }
  /// Adds one link on x, or on x and y; each may be a splat, or have one element for each row.
  void link_up(link l, int x, int y, int out) {
    block_instruction i(block_instruction::chain, out);
    i.links = {{link::load, x}, {l, y}, {link::store, out}};
    code_.push_back(std::move(i));
  }
  void broadcast(value_id source, const repetition& r, int out) {
    block_instruction i(block_instruction::broadcast, out);
    i.source = value_index(source);
    i.repeat = r;
    code_.push_back(std::move(i));
  }
  /// Adds a broadcast of x, with coverage `rows`, along the rows of `out`.
  void spread(int x, int out) {
    block_instruction i(block_instruction::spread, out);
    i.in[0] = x;
    code_.push_back(std::move(i));
  }
  /// Adds a reduction of each row of x.
  void reduce(combiner c, int x, int out) {
    const bool links = links_up(at(x).type) && row_ >= long_row;
    block_instruction i(links ? block_instruction::chain : block_instruction::reduce, out);
    if (links) {
      i.reduces = true;
      i.how = c;
      i.links = {{link::load, x}};
    } else {
      i.reduce_rows = find_row_function(c, at(x).type);
      i.in[0] = x;
    }
    code_.push_back(std::move(i));
  }

  /// Finishes the program; call it after the last instruction.
  void finish() {
    chain_joiner(registers_, code_).run();
    temporaries_ = temporary_placer(code_, registers_).run();
    for (auto& c : code_) add_links(c);
    place_registers();
  }

  /// Computes elements [begin, end); begin is a multiple of `block()`.
  void run(std::byte* const* addresses, std::int64_t begin, std::int64_t end,
           scratch& memory) const {
    state s = enter(addresses, memory);
    fill_scalars(s, std::min(block(), end - begin));
    for (s.begin = begin; s.begin < end; s.begin += block()) {
      s.count = std::min(block(), end - s.begin);
      s.rows = s.count == block() ? rows_ : row_ == 0 ? 0 : s.count / row_;
      enter_block(s);
      for (const auto& c : code_) run_one(c, s);
      leave_block(s);
    }
  }

 private:
  /// The size of a block: several temporaries of this many elements fit the first-level cache.
  static constexpr std::int64_t least = 1024;
  /// Shorter rows are reduced separately, so that chains which compute them need not end at each
  /// row.
  static constexpr std::int64_t long_row = 256;
  using kind = block_register::kind;

  static std::int64_t rows_of(std::int64_t row) {
    const std::int64_t unit = lanes / std::gcd(lanes, row);
    return unit * std::max<std::int64_t>(1, least / (row * unit));
  }
  static std::size_t index(int i) { return static_cast<std::size_t>(i); }
  block_register& at(int reg) { return registers_[index(reg)]; }
  const block_register& at(int reg) const { return registers_[index(reg)]; }
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

  /// True if no near cache holds the next block of a value that is read.
  bool is_far(int reg) const {
    const block_register& r = at(reg);
    return r.where == kind::memory && r.what == coverage::all && r.period == 0 && !r.written &&
           elements * size_of(r.type) >= std::int64_t{1} << 19;
  }
  /// Assigns memory: full blocks, then the elements of rows. Fills the constants.
  void place_registers() {
    const std::int64_t most =
                           round_up(std::min(block(), std::max<std::int64_t>(elements, 1)), lanes),
                       large = most * temporaries_.widest + 3 * alignment,
                       small = small_elements() * 8;
    small_begin_ = temporaries_.large * large;
    small_end_ = small_begin_ + temporaries_.small * small;
    for (std::size_t i = 0; i < registers_.size(); ++i) {
      const block_register& r = registers_[i];
      if (r.where == kind::constant) {
        const std::int64_t n = r.is_large() ? most : small_elements();
        constants_.push_back({i, allocate(padded_bytes({r.type, {n}}))});
        fill(r.type, r.bits, n, constants_.back().second.get());
      }
      if (r.slot >= 0)
        slots_.push_back({i, r.is_large() ? r.slot * large : small_begin_ + r.slot * small});
      if (r.where == kind::memory) in_memory_.push_back(i);
      if (r.where == kind::scalar) scalars_.push_back(i);
    }
  }
  /// Adds the links of a chain, with their steps through their operands and what to prefetch.
  void add_links(block_instruction& c) {
    c.first_link = links_.size();
    for (int r : c.in)
      if (r >= 0) at(r).fetched = is_far(r);
    for (const auto& [what, operand] : c.links) {
      chain_link l{what, nullptr, operand >= 0, 0};
      if (operand >= 0 && is_far(operand)) l.ahead = block();
      if (operand >= 0 && coverage_of(operand) != c.over(registers_)) {
        const bool row = coverage_of(operand) == coverage::rows;
        const bool column = coverage_of(operand) == coverage::columns;
        l.by_element = column;
        l.by_row = row ? 1 : column ? -row_ : 0;
        c.by_row = c.by_row || row || column;
      }
      links_.push_back(l);
      if (operand >= 0) linked_.push_back({links_.size() - 1, index(operand)});
    }
  }

  // ---- Running ---------------------------------------------------------------------------------

  /// The addresses of registers, and the current block.
  struct state {
    std::byte** at;                               // by register
    chain_link* links;                            // of all chains
    std::byte* const* addresses;                  // by value
    std::int64_t begin = 0, count = 0, rows = 0;  // of the block
  };

  std::int64_t small_elements() const { return round_up(std::max<std::int64_t>(rows_, 1), lanes); }

  /// Finds the addresses of the registers that stay the same in all blocks.
  state enter(std::byte* const* addresses, scratch& memory) const {
    const std::size_t links = links_.size() * sizeof(chain_link);
    std::byte* slots = memory.take(
        small_end_ + static_cast<std::int64_t>(links + registers_.size() * sizeof(std::byte*)));
    // The kernels also compute the lanes past the rows, from zeros.
    if (small_end_ > small_begin_)
      std::memset(slots + small_begin_, 0, static_cast<std::size_t>(small_end_ - small_begin_));
    if (links > 0) std::memcpy(slots + small_end_, links_.data(), links);
    const state s{reinterpret_cast<std::byte**>(slots + small_end_ + links),
                  reinterpret_cast<chain_link*>(slots + small_end_), addresses};
    for (const auto& [r, offset] : slots_) s.at[r] = slots + offset;
    for (const auto& [r, constant] : constants_) s.at[r] = constant.get();
    return s;
  }
  void fill_scalars(const state& s, std::int64_t count) const {
    for (std::size_t i : scalars_) {
      const auto& r = registers_[i];
      const std::int64_t n = r.is_large() ? round_up(count, lanes) : small_elements();
      repeat(r.type, {1, n}, 0, n, s.addresses[r.address], s.at[i]);
    }
  }
  /// Sets the addresses of registers in memory. Registers with one element for each row are copied
  /// to temporaries instead, because they need padding.
  void enter_block(const state& s) const {
    for (std::size_t i : in_memory_) {
      const auto& r = registers_[i];
      const std::int64_t size = size_of(r.type);
      std::byte* base = s.addresses[r.address];
      if (r.what == coverage::all) {
        s.at[i] = base + (r.period > 0 ? s.begin % r.period : s.begin) * size;
        if (r.fetched)
          for (std::int64_t k = 0; k < block() * size; k += alignment)
            __builtin_prefetch(s.at[i] + block() * size + k);
      } else if (r.what == coverage::columns)
        s.at[i] = base;
      else if (!r.written)
        std::memcpy(s.at[i], base + s.begin / row_ * size, static_cast<std::size_t>(s.rows * size));
    }
    for (const auto& [l, r] : linked_) s.links[l].operand = s.at[r];
  }
  void leave_block(const state& s) const {
    for (std::size_t i : in_memory_) {
      const auto& r = registers_[i];
      const std::int64_t size = size_of(r.type);
      if (r.what == coverage::rows && r.written)
        std::memcpy(s.addresses[r.address] + s.begin / row_ * size, s.at[i],
                    static_cast<std::size_t>(s.rows * size));
    }
  }

  void run_one(const block_instruction& c, const state& s) const {
    const block_register& out = at(c.out);
    switch (c.what) {
      case block_instruction::nothing:
        return;
      case block_instruction::map:
        return run_map(c, s);
      case block_instruction::chain:
        return run_links(c, s);
      case block_instruction::broadcast:
        if (out.what == coverage::rows)
          return repeat(out.type, c.repeat, s.begin / row_, s.rows, s.addresses[c.source],
                        s.at[c.out]);
        return repeat(out.type, c.repeat, s.begin, s.count, s.addresses[c.source], s.at[c.out]);
      case block_instruction::spread:
        return repeat(out.type, {s.rows, row_}, 0, s.count, s.at[c.in[0]], s.at[c.out]);
      case block_instruction::reduce:
        return c.reduce_rows(s.rows, row_, s.at[c.in[0]], s.at[c.out]);
    }
  }
  void run_map(const block_instruction& c, const state& s) const {
    const void* in[3] = {};
    for (int i = 0; i < 3; ++i)
      if (c.in[i] >= 0) in[i] = s.at[c.in[i]];
    c.run(elements_of(at(c.out), s), in, s.at[c.out]);
  }
  void run_links(const block_instruction& c, const state& s) const {
    const block_register& out = at(c.out);
    const chain_link* links = s.links + c.first_link;
    if (c.reduces)
      return reduce_chain(out.type, s.rows, row_, links, c.links.size(), c.how, s.at[c.out]);
    if (c.by_row) return run_chain(out.type, s.rows, row_, links, c.links.size());
    run_chain(out.type, 1, elements_of(out, s), links, c.links.size());
  }
  /// Returns the number of elements in full groups of lanes.
  std::int64_t elements_of(const block_register& r, const state& s) const {
    if (r.what == coverage::all) return round_up(s.count, lanes);
    return r.what == coverage::rows ? round_up(s.rows, lanes) : lanes;
  }
  static void repeat(dtype t, const repetition& r, std::int64_t begin, std::int64_t n,
                     const std::byte* source, std::byte* out) {
    with_bits(size_of(t), [&]<class T>(std::type_identity<T>) {
      r.fill(begin, n, reinterpret_cast<const T*>(source), reinterpret_cast<T*>(out));
    });
  }

  block_registers registers_;
  std::vector<std::size_t> in_memory_, scalars_;             // registers
  std::vector<std::pair<std::size_t, std::int64_t>> slots_;  // registers and their offsets
  std::vector<std::pair<std::size_t, buffer>> constants_;    // registers and their elements
  std::vector<chain_link> links_;                            // of all chains
  std::vector<std::pair<std::size_t, std::size_t>> linked_;  // links and their registers
  block_code code_;
  std::int64_t row_ = 0, rows_ = 0;
  temporary_counts temporaries_;
  std::int64_t small_begin_ = 0, small_end_ = 0;  // bytes of the temporaries
};

}  // namespace partita::run_detail
