/// A fused group of elementwise ops and of reductions of rows, interpreted block by block with its
/// temporaries in cache.
///
/// Every op still rounds its result to its element type, and elements do not depend on where in a
/// block they lie: the results are those of one op at a time.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <functional>
#include <numeric>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/fusion/repetition.hpp>
#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/library.hpp>

namespace partita::run_detail {

/// What a register holds of a block.
enum class coverage : std::uint8_t {
  all,      ///< every element
  rows,     ///< one element per row
  columns,  ///< one element per place in a row: an operand of links
  splat,    ///< one element for all, `lanes` times: an operand of links
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
  /// Can links take what there is one of per row, or per place in a row, as it is?
  bool links_rows() const { return row_ >= lanes; }

  /// A register is where one value of a block lies: in a temporary, or directly in memory.
  int memory(value_id v, const tensor_type& t, coverage e = coverage::all) {
    return add({kind::memory, e, value_index(v), t.element});
  }
  /// A vector that repeats along the elements, if it can be used where it lies; else -1.
  int repeating(value_id v, const tensor_type& t, const repetition& r, bool linked) {
    if (r.inner != 1) return -1;
    if (linked && links_rows() && r.count == row_) return memory(v, t, coverage::columns);
    if (r.count % block() != 0) return -1;
    const int reg = memory(v, t);
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

  coverage coverage_of(int reg) const { return at(reg).what; }

  void call(block_function f, std::initializer_list<int> in, int out) {
    instruction i(instruction::map, out);
    i.run = f;
    std::copy(in.begin(), in.end(), i.in);
    code_.push_back(std::move(i));
  }
  /// x, or x and y, through one link; each may be a splat, or have one element per row.
  void link_up(link l, int x, int y, int out) {
    instruction i(instruction::chain, out);
    i.links = {{link::load, x}, {l, y}, {link::store, out}};
    code_.push_back(std::move(i));
  }
  void broadcast(value_id source, const repetition& r, int out) {
    instruction i(instruction::broadcast, out);
    i.source = value_index(source);
    i.repeat = r;
    code_.push_back(std::move(i));
  }
  /// Elements along their rows: x with coverage `rows`, to `all`.
  void spread(int x, int out) {
    instruction i(instruction::spread, out);
    i.in[0] = x;
    code_.push_back(std::move(i));
  }
  /// Combines the elements of each row of x.
  void reduce(combiner c, int x, int out) {
    const bool links = links_up(at(x).type);
    instruction i(links ? instruction::chain : instruction::reduce, out);
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

  /// To be called once all instructions are there.
  void finish() {
    join_chains();
    allocate_temporaries();
    for (auto& c : code_) find_steps(c);
    for (std::size_t i = 0; i < registers_.size(); ++i)
      if (registers_[i].where == kind::memory) in_memory_.push_back(i);
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
      for (std::size_t i : in_memory_) {
        const auto& r = registers_[i];
        const std::int64_t size = size_of(r.type);
        std::byte* base = addresses[r.address];
        if (r.what == coverage::all)
          at[i] = base + (r.period > 0 ? b % r.period : b) * size;
        else if (r.what == coverage::columns)
          at[i] = base;
        else if (!r.written)
          std::memcpy(at[i], base + b / row_ * size, static_cast<std::size_t>(rows * size));
      }
      for (const auto& c : code_) run_one(c, at, addresses, b, n, rows);
      for (std::size_t i : in_memory_) {
        const auto& r = registers_[i];
        if (r.what == coverage::rows && r.written)
          std::memcpy(addresses[r.address] + b / row_ * size_of(r.type), at[i],
                      static_cast<std::size_t>(rows * size_of(r.type)));
      }
    }
  }

 private:
  /// A handful of temporaries of so many elements fit the first-level cache.
  static constexpr std::int64_t least = 1024;
  static constexpr std::size_t most_links = 32;

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
    enum kind : std::uint8_t { nothing, map, chain, broadcast, spread, reduce };
    struct to_link {
      link what;
      int operand;
      std::int64_t by_element = 1, by_row = 0;  // see chain_link
    };
    instruction(kind k, int to) : what(k), out(to) {}

    kind what;
    int out;
    int in[3] = {-1, -1, -1};
    block_function run = nullptr;        // map
    row_function reduce_rows = nullptr;  // reduce
    std::vector<to_link> links;          // chain
    bool by_row = false;                 // chain: do operands depend on the row?
    bool reduces = false;                // chain: its rows, to `out`
    combiner how = {};
    int source = -1;  // broadcast
    repetition repeat = {};

    template <class F>
    void for_operands(F f) const {
      for (int r : in)
        if (r >= 0) f(r);
      for (const auto& l : links)
        if (l.operand >= 0 && l.what != link::store) f(l.operand);
    }
    template <class F>
    void for_results(F f) const {
      for (const auto& l : links)
        if (l.what == link::store) f(l.operand);
      if (what != chain || reduces) f(out);
    }
  };

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

  /// Puts chains before those that use what they make, and leaves out the stores that nobody needs
  /// then. So elements go through many ops tile by tile, and memory is read while others compute.
  void join_chains() {
    std::vector<int> uses(registers_.size(), 0), maker(registers_.size(), -1);
    for (const auto& c : code_) c.for_operands([&](int r) { ++uses[index(r)]; });
    for (std::size_t k = 0; k < code_.size(); ++k) {
      instruction& c = code_[k];
      if (c.what == instruction::chain) {
        // The operand that was made last continues.
        if (c.links.size() > 2 &&
            maker_of(maker, c.links[1].operand) > maker_of(maker, c.links[0].operand)) {
          std::swap(c.links[0].operand, c.links[1].operand);
          c.links[1].what = flipped(c.links[1].what);
        }
        std::vector<int> before;
        c.for_operands([&](int r) { before.push_back(maker_of(maker, r)); });
        std::sort(before.begin(), before.end(), std::greater<>());
        before.erase(std::unique(before.begin(), before.end()), before.end());
        for (int m : before)
          if (m >= 0 && can_precede(index(m), k)) put_before(code_[index(m)], c, uses);
      }
      c.for_results([&](int r) { maker[index(r)] = static_cast<int>(k); });
    }
    std::erase_if(code_, [](const instruction& c) { return c.what == instruction::nothing; });
  }
  int maker_of(const std::vector<int>& maker, int r) const { return r < 0 ? -1 : maker[index(r)]; }
  /// Can chain m run later, as a part of chain k?
  bool can_precede(std::size_t m, std::size_t k) const {
    const instruction &before = code_[m], &c = code_[k];
    if (before.what != instruction::chain || before.reduces ||
        before.links.size() + c.links.size() > most_links || over(before) != over(c) ||
        at(before.out).type != at(c.out).type)
      return false;
    bool used = false;  // in between
    for (std::size_t j = m + 1; j < k; ++j)
      code_[j].for_operands(
          [&](int r) { before.for_results([&](int made) { used = used || r == made; }); });
    return !used;
  }
  void put_before(instruction& before, instruction& c, std::vector<int>& uses) {
    auto links = std::move(before.links);
    before = instruction(instruction::nothing, -1);
    if (links.back().operand == c.links.front().operand) {  // stored, and loaded again
      const int r = links.back().operand;
      if (--uses[index(r)] == 0 && at(r).where == kind::temporary) links.pop_back();
      c.links.erase(c.links.begin());
    }
    c.links.insert(c.links.begin(), links.begin(), links.end());
  }
  /// How the links of a chain go through their operands.
  void find_steps(instruction& c) const {
    for (auto& l : c.links) {
      if (l.operand < 0) l.by_element = 0;
      if (l.operand < 0 || coverage_of(l.operand) == over(c)) continue;
      const bool row = coverage_of(l.operand) == coverage::rows;
      const bool column = coverage_of(l.operand) == coverage::columns;
      l.by_element = column;
      l.by_row = row ? 1 : column ? -row_ : 0;
      c.by_row = c.by_row || row || column;
    }
  }
  /// What a chain goes over.
  coverage over(const instruction& c) const {
    return c.reduces ? coverage::all : coverage_of(c.out);
  }

  static bool is_large(const block_register& r) { return r.what == coverage::all; }
  /// Gives temporaries that are not alive together the same place.
  void allocate_temporaries() {
    std::vector<int> last_use(registers_.size(), -1);
    for (std::size_t k = 0; k < code_.size(); ++k) {
      const auto used = [&](int r) { last_use[index(r)] = static_cast<int>(k); };
      code_[k].for_operands(used);
      code_[k].for_results(used);
      code_[k].for_results([&](int r) { at(r).written = true; });
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
      code_[k].for_results([&](int r) {
        auto& out = at(r);
        if (out.where != kind::temporary || out.slot >= 0) return;
        auto& list = free[is_large(out)];
        if (list.empty()) list.push_back(next(out));
        out.slot = list.back();
        list.pop_back();
      });
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
        chain_link links[most_links];
        for (std::size_t i = 0; i < c.links.size(); ++i) {
          const auto& l = c.links[i];
          links[i] = {l.what, l.operand < 0 ? nullptr : at[l.operand], l.by_element, l.by_row};
        }
        if (c.reduces)
          return reduce_chain(out.type, rows, row_, links, c.links.size(), c.how, at[c.out]);
        return run_chain(out.type, c.by_row ? rows : 1, c.by_row ? row_ : whole, links,
                         c.links.size());
      }
      case instruction::broadcast:
        if (out.what == coverage::rows)
          return repeat(out.type, c.repeat, begin / row_, rows, addresses[c.source], at[c.out]);
        return repeat(out.type, c.repeat, begin, n, addresses[c.source], at[c.out]);
      case instruction::spread:
        return repeat(out.type, {rows, row_}, 0, n, at[c.in[0]], at[c.out]);
      case instruction::nothing:
        return;
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
  std::vector<std::size_t> in_memory_;  // those that lie in memory
  std::vector<instruction> code_;
  std::int64_t row_ = 0, rows_ = 0;
  std::int64_t widest_ = 4;
  int large_ = 0, small_ = 0;  // slots
};

}  // namespace partita::run_detail
