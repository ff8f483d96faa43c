/// The registers and instructions of block programs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/fusion/repetition.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/kernels/library.hpp>

namespace partita::run_detail {

/// The elements of a block that a register has.
enum class coverage : std::uint8_t {
  all,      ///< every element
  rows,     ///< one element for each row
  columns,  ///< one element for each position in a row: an operand of links
  splat,    ///< one element for all, stored `lanes` times: an operand of links
};

/// The storage of one value of a block: a temporary, or memory.
struct block_register {
  enum class kind : std::uint8_t { temporary, memory, constant, scalar };
  kind where;
  coverage what;
  int address;  ///< index in the addresses of the block program's values
  dtype type;
  std::int64_t bits = 0;    ///< of a constant
  std::int64_t period = 0;  ///< memory repeats after this number of elements
  int slot = -1;            ///< index among the temporaries of its size
  bool written = false;
  bool fetched = false;  ///< prefetch the next block, because a function of blocks reads it

  /// True if a temporary for it has a full block.
  bool is_large() const { return what == coverage::all; }
};
using block_registers = std::vector<block_register>;

struct block_instruction {
  enum kind : std::uint8_t { nothing, map, chain, broadcast, spread, reduce };
  struct to_link {
    link what;
    int operand;  ///< a register, or -1
  };
  static constexpr std::size_t most_links = 32;

  block_instruction(kind k, int to) : what(k), out(to) {}

  kind what;
  int out;
  int in[3] = {-1, -1, -1};
  block_function run = nullptr;        ///< map
  row_function reduce_rows = nullptr;  ///< reduce
  std::vector<to_link> links;          ///< chain
  std::size_t first_link = 0;          ///< chain: in the links of the program
  bool by_row = false;                 ///< chain: true if operands depend on the row
  bool reduces = false;                ///< chain: true if it reduces its rows to `out`
  combiner how = {};
  int source = -1;  ///< broadcast
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
  /// Returns the coverage of a chain's loop.
  coverage over(const block_registers& registers) const {
    return reduces ? coverage::all : registers[at(out)].what;
  }
};
using block_code = std::vector<block_instruction>;

}  // namespace partita::run_detail
