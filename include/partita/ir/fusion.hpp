/// Which ops a compiler runs as one kernel, and which values lie in memory.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The kernels of a program as a compiler makes them that fuses loops: a kernel writes one value
/// (or the results of one op) to memory; the values in between are computed where they are needed.
/// An op that several kernels need is computed in each of them if that is cheap and takes one value
/// besides arguments and constants; else its result lies in memory.
///
/// As XLA's instruction fusion does, expensive ops are computed neither twice nor for each element
/// of a broadcast, and memory is not looked at.
class fused_kernels {
 public:
  /// Linear in ops.
  constexpr explicit fused_kernels(const program& p) : fused_kernels(p, nullptr, 0) {}
  /// Of a program whose nested programs stand in line; `order`: its ops in the order of execution.
  constexpr fused_kernels(const program& p, const vec<op_id>& order)
      : fused_kernels(p, order.data(), static_cast<int>(order.size())) {}

  /// The value whose memory a value is, or would be: of a reshape that of its operand.
  constexpr value_id root(value_id v) const { return root_[v]; }
  /// Does a value lie in memory? (Then its root is itself.)
  constexpr bool stored(value_id v) const { return root_[v] == v && kernel_[v] == in_memory; }
  /// Is it not used at all, not even as an output?
  constexpr bool dead(value_id v) const { return kernel_[root_[v]] == nobody; }
  /// Is it computed in several kernels, since it takes one value besides arguments and constants?
  constexpr bool recomputed(value_id v) const { return root_[v] == v && kernel_[v] == several; }
  /// Does the op begin a kernel, in this place of the program?
  constexpr bool runs(op_id o) const {
    const op_node& n = p_.ops[o];
    if (n.def->role == op_role::parameter) return false;
    // (Where nested programs stand in line, a barrier is its wires.)
    if (n.def->fusion == fusion_kind::view) return n.result_count == 0;
    return n.def->fusion == fusion_kind::none || stored(n.result);
  }
  /// Calls f(op) for the ops that the kernel of `o` computes, `o` first.
  template <class F>
  constexpr void for_each_op(op_id o, const F& f) {
    walk(o, f, [](op_id, value_id) {});
  }
  /// Calls f(value) for the values in memory that the kernel of `o` reads, each once.
  template <class F>
  constexpr void for_each_read(op_id o, const F& f) {
    walk(
        o, [](op_id) {}, [&](op_id, value_id v) { f(v); });
  }
  /// Calls f(op of the kernel, value), with the first op that reads the value.
  template <class F>
  constexpr void for_each_read_by(op_id o, const F& f) {
    walk(
        o, [](op_id) {}, f);
  }

 private:
  template <class Op, class Read>
  constexpr void walk(op_id o, const Op& each_op, const Read& each_read) {
    ++walk_;
    stack_.clear();
    stack_.push_back(o);
    for (std::size_t next = 0; next < stack_.size(); ++next) {
      const op_node& n = p_.ops[stack_[next]];
      each_op(stack_[next]);
      const value_id* const operands = p_.operand_list.data() + n.operand_begin;
      PARTITA_WORK(n.operand_count);
      for (int i = 0; i < n.operand_count; ++i) {
        const value_id v = root_[operands[i]];
        if (seen_[v] == walk_) continue;
        seen_[v] = walk_;
        if (kernel_[v] == in_memory)
          each_read(stack_[next], v);
        else
          stack_.push_back(p_.producers[v]);
      }
    }
  }

  /// Kernels are known by the value that they write.
  static constexpr value_id nobody = -1, several = -2, in_memory = -3;
  /// Ops one behind the other in a kernel beyond which a value is stored in any case: compilers
  /// end somewhere, too, and the work stays linear.
  static constexpr int most_height = 48;

  constexpr fused_kernels(const program& p, const op_id* order, int ordered)
      : p_(p),
        root_(p.types.size(), -1),
        kernel_(p.types.size(), nobody),
        height_(p.types.size(), 0),
        repeated_(p.types.size(), 0),
        seen_(p.types.size(), 0) {
    const int count = order != nullptr ? ordered : p.op_count();
    const auto at = [&](int i) { return order != nullptr ? order[i] : i; };
    PARTITA_WORK(p.ops.size());
    for (int i = 0; i < count; ++i) find_roots(at(i));
    for (const auto& out : p.outputs) kernel_[root_[out.value]] = in_memory;
    for (int i = 0; order != nullptr && i < count; ++i)
      if (p.is(at(i), op_role::wire))
        for (value_id v : p.operands(at(i))) kernel_[root_[v]] = in_memory;
    for (int i = count; i-- > 0;) decide(at(i));
  }

  const program& p_;
  vec<value_id> root_, kernel_;
  vec<std::uint8_t> height_;  ///< of a value that is not stored: ops behind it in its kernels
  vec<char> repeated_;        ///< of such a value: is there a broadcast among them?
  vec<int> seen_;             ///< by value: the last walk that came by
  int walk_ = 0;
  vec<op_id> stack_;

  constexpr void find_roots(op_id o) {
    const op_node& n = p_.ops[o];
    for (int r = 0; r < n.result_count; ++r) root_[n.result + r] = n.result + r;
    if (n.def->role == op_role::parameter)
      kernel_[n.result] = in_memory;
    else if (n.def->fusion == fusion_kind::view)
      for (int r = 0; r < n.result_count && r < n.operand_count; ++r)
        root_[n.result + r] = root_[p_.operand_list[n.operand_begin + r]];
  }
  /// Users have been decided upon before.
  constexpr void decide(op_id o) {
    const op_node& n = p_.ops[o];
    const fusion_kind kind = n.def->fusion;
    if (kind == fusion_kind::view) return pass_on(n);
    bool needed = kind == fusion_kind::none;
    for (int r = 0; r < n.result_count; ++r) needed = needed || kernel_[n.result + r] != nobody;
    if (!needed) return;
    if (kind != fusion_kind::loop || stays_in_memory(n))
      for (int r = 0; r < n.result_count; ++r) kernel_[n.result + r] = in_memory;
    note_uses(n);
  }
  /// Nothing is computed across a barrier: what passes it lies in memory.
  constexpr void pass_on(const op_node& n) {
    if (n.def->role != op_role::control) return;
    for (int i = 0; i < n.operand_count; ++i)
      kernel_[root_[p_.operand_list[n.operand_begin + i]]] = in_memory;
  }
  constexpr bool stays_in_memory(const op_node& n) const {
    const value_id v = n.result, kernel = kernel_[v];
    if (kernel == in_memory || height_[v] >= most_height) return true;
    if (n.operand_count == 0) return false;
    if (n.def->costly && repeated_[v] != 0) return true;
    return kernel == several && (n.def->costly || reads_several(n));
  }
  /// Does an op read two values that are neither arguments nor constants?
  constexpr bool reads_several(const op_node& n) const {
    value_id first = -1;
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = computed(p_.operand_list[n.operand_begin + i]);
      if (v < 0 || v == first) continue;
      if (first >= 0) return true;
      first = v;
    }
    return false;
  }
  /// What a value repeats, or -1 if that is an argument or a constant.
  constexpr value_id computed(value_id v) const {
    for (;;) {
      v = root_[v];
      const op_node& n = p_.ops[p_.producers[v]];
      if (n.operand_count == 0) return -1;
      if (!n.def->repeats) return v;
      v = p_.operand_list[n.operand_begin];
    }
  }
  constexpr void note_uses(const op_node& n) {
    const value_id* const operands = p_.operand_list.data() + n.operand_begin;
    const bool stored = n.result_count == 0 || kernel_[n.result] == in_memory;
    const value_id mine = stored ? n.result : kernel_[n.result];
    const int height = stored ? 1 : height_[n.result] + 1;
    const bool repeats = n.def->repeats || (!stored && repeated_[n.result] != 0);
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = root_[operands[i]];
      value_id& kernel = kernel_[v];
      if (kernel == in_memory) continue;
      if (n.def->fusion == fusion_kind::none) {
        kernel = in_memory;
        continue;
      }
      kernel = kernel == nobody || kernel == mine ? mine : several;
      if (height_[v] < height) height_[v] = static_cast<std::uint8_t>(height);
      if (repeats) repeated_[v] = 1;
    }
  }
};

}  // namespace partita
