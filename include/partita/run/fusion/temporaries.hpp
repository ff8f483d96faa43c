/// A pass over block programs that assigns memory to temporaries.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <partita/run/fusion/block_instruction.hpp>

namespace partita::run_detail {

/// The number of temporaries by size: a full block, or an element for each row.
struct temporary_counts {
  int large = 0, small = 0;
  std::int64_t widest = 4;  ///< bytes of an element
};

/// Assigns memory to registers; temporaries that are not alive together share it.
class temporary_placer {
 public:
  temporary_placer(const block_code& code, block_registers& registers)
      : code_(code), registers_(registers), last_use_(registers.size(), -1) {}

  temporary_counts run() {
    find_last_uses();
    for (auto& r : registers_) {
      counts_.widest = std::max(counts_.widest, size_of(r.type));
      if (keeps_its_place(r)) r.slot = next(r);
    }
    for (std::size_t k = 0; k < code_.size(); ++k) {
      code_[k].for_results([&](int r) { place(registers_[at(r)]); });
      release_last_used_at(static_cast<int>(k));
    }
    return counts_;
  }

 private:
  static bool keeps_its_place(const block_register& r) {
    return r.where == block_register::kind::scalar ||
           (r.where == block_register::kind::memory && r.what == coverage::rows);
  }
  void find_last_uses() {
    for (std::size_t k = 0; k < code_.size(); ++k) {
      const auto used = [&](int r) { last_use_[at(r)] = static_cast<int>(k); };
      code_[k].for_operands(used);
      code_[k].for_results(used);
      code_[k].for_results([&](int r) { registers_[at(r)].written = true; });
    }
  }
  int next(const block_register& r) { return (r.is_large() ? counts_.large : counts_.small)++; }
  void place(block_register& out) {
    if (out.where != block_register::kind::temporary || out.slot >= 0) return;
    auto& list = free_[out.is_large()];
    if (list.empty()) list.push_back(next(out));
    out.slot = list.back();
    list.pop_back();
  }
  void release_last_used_at(int k) {
    for (std::size_t i = 0; i < registers_.size(); ++i)
      if (last_use_[i] == k && registers_[i].where == block_register::kind::temporary)
        free_[registers_[i].is_large()].push_back(registers_[i].slot);
  }

  const block_code& code_;
  block_registers& registers_;
  std::vector<int> last_use_;  // by register: its last instruction
  std::vector<int> free_[2];   // free temporaries, small and large
  temporary_counts counts_;
};

}  // namespace partita::run_detail
