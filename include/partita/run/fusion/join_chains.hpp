/// A pass over block programs that joins consecutive chains.
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include <partita/run/fusion/block_instruction.hpp>

namespace partita::run_detail {

/// Moves chains before those that use their results, and removes the stores that become
/// unnecessary. Elements then pass through many ops tile by tile, and loads overlap with
/// computation.
class chain_joiner {
 public:
  chain_joiner(const block_registers& registers, block_code& code)
      : registers_(registers),
        code_(code),
        uses_(registers.size(), 0),
        maker_(registers.size(), -1) {}

  void run() {
    for (const auto& c : code_) c.for_operands([&](int r) { ++uses_[at(r)]; });
    for (std::size_t k = 0; k < code_.size(); ++k) {
      if (code_[k].what == block_instruction::chain) join(k);
      code_[k].for_results([&](int r) { maker_[at(r)] = static_cast<int>(k); });
    }
    std::erase_if(code_, [](const auto& c) { return c.what == block_instruction::nothing; });
  }

 private:
  int maker_of(int r) const { return r < 0 ? -1 : maker_[at(r)]; }

  /// Joins chain k with those that compute its operands, the latest first.
  void join(std::size_t k) {
    block_instruction& c = code_[k];
    continue_latest(c);
    std::vector<int> before;
    c.for_operands([&](int r) { before.push_back(maker_of(r)); });
    std::sort(before.begin(), before.end(), std::greater<>());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    for (int m : before)
      if (m >= 0 && can_precede(at(m), k)) put_before(code_[at(m)], c);
  }
  /// Makes the operand that was computed last the running value.
  void continue_latest(block_instruction& c) const {
    if (c.links.size() <= 2 || maker_of(c.links[1].operand) <= maker_of(c.links[0].operand)) return;
    std::swap(c.links[0].operand, c.links[1].operand);
    c.links[1].what = flipped(c.links[1].what);
  }
  /// True if chain m can run later, as a part of chain k.
  bool can_precede(std::size_t m, std::size_t k) const {
    const block_instruction &before = code_[m], &c = code_[k];
    if (before.what != block_instruction::chain || before.reduces ||
        before.links.size() + c.links.size() > block_instruction::most_links ||
        before.over(registers_) != c.over(registers_) ||
        registers_[at(before.out)].type != registers_[at(c.out)].type)
      return false;
    bool used = false;  // true if an instruction in between uses a result
    for (std::size_t j = m + 1; j < k; ++j)
      code_[j].for_operands(
          [&](int r) { before.for_results([&](int made) { used = used || r == made; }); });
    return !used;
  }
  void put_before(block_instruction& before, block_instruction& c) {
    auto links = std::move(before.links);
    before = block_instruction(block_instruction::nothing, -1);
    if (links.back().operand == c.links.front().operand) {  // stored, and loaded again
      const int r = links.back().operand;
      if (--uses_[at(r)] == 0 && registers_[at(r)].where == block_register::kind::temporary)
        links.pop_back();
      c.links.erase(c.links.begin());
    }
    c.links.insert(c.links.begin(), links.begin(), links.end());
  }

  const block_registers& registers_;
  block_code& code_;
  std::vector<int> uses_, maker_;  // by register; its instruction, or -1
};

}  // namespace partita::run_detail
