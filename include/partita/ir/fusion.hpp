/// Which ops a compiler runs as one kernel, and which values lie in memory.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The kernels of a program as a compiler makes them that fuses loops: a kernel writes one value
/// (or the results of one op) to memory; the values in between are computed where they are needed.
///
/// Kernels of a library, and those that end in a reduction or an update, compute nothing that
/// others need, too: that lies in memory for them. Kernels of loops compute it again, each for
/// itself and even where it lies in memory for others, if that is cheap and reads no more than its
/// result: one value of as many dimensions, beside broadcasts and constants. Else they read it
/// there.
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
  /// Does the kernel of `o` read such a value where it lies, rather than compute it again?
  constexpr bool reads(op_id o, value_id v) const { return stored(v) && !computes(o, v); }
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
        if (kernel_[v] == in_memory && !computes(o, v))
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
        again_(p.types.size(), 0),
        seen_(p.types.size(), 0) {
    const int count = order != nullptr ? ordered : p.op_count();
    const auto at = [&](int i) { return order != nullptr ? order[i] : i; };
    PARTITA_WORK(p.ops.size());
    for (int i = 0; i < count; ++i) find_roots(at(i));
    for (const auto& out : p.outputs) kernel_[root_[out.value]] = in_memory;
    for (int i = 0; i < count; ++i)
      if (is_barrier(p.ops[at(i)]))
        for (value_id v : p.operands(at(i))) keep(root_[v]);
    for (int i = count; i-- > 0;) decide(at(i));
  }

  const program& p_;
  vec<value_id> root_, kernel_;
  vec<std::uint8_t> height_;  ///< of a value that is not stored: ops behind it in its kernels
  vec<char> repeated_;        ///< of such a value: is there a broadcast among them?
  vec<char> again_;           ///< by value: do kernels of loops compute it again, see below
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
  /// Of a value in memory: no kernel of loops needs it, some do, or they compute it again, or
  /// nothing may compute it again.
  static constexpr char not_looped = 0, looped = 1, computed_again = 2, kept = 3;

  constexpr bool computes(op_id o, value_id v) const {
    return again_[v] == computed_again && p_.ops[o].def->fusion == fusion_kind::loop;
  }
  /// Nothing is computed across a barrier, or into nested programs: what passes lies in memory.
  constexpr bool is_barrier(const op_node& n) const {
    return n.def->role == op_role::wire ||
           (n.def->role == op_role::control && n.def->fusion == fusion_kind::view);
  }
  constexpr void keep(value_id v) {
    kernel_[v] = in_memory;
    again_[v] = kept;
  }
  /// Users have been decided upon before.
  constexpr void decide(op_id o) {
    const op_node& n = p_.ops[o];
    const fusion_kind kind = n.def->fusion;
    if (kind == fusion_kind::view) return;
    bool needed = kind == fusion_kind::none;
    for (int r = 0; r < n.result_count; ++r) needed = needed || kernel_[n.result + r] != nobody;
    if (!needed) return;
    if (kind != fusion_kind::loop || stays_in_memory(n))
      for (int r = 0; r < n.result_count; ++r) kernel_[n.result + r] = in_memory;
    note_uses(n);
  }
  constexpr bool stays_in_memory(const op_node& n) {
    const value_id v = n.result, kernel = kernel_[v];
    if (height_[v] >= most_height) return true;
    if (kernel == in_memory) {
      if (again_[v] == looped && is_cheap(n)) again_[v] = computed_again;
      return true;
    }
    if (n.operand_count == 0) return false;
    if (n.def->costly && repeated_[v] != 0) return true;
    return kernel == several && !is_cheap(n);
  }
  /// May several kernels compute it?
  constexpr bool is_cheap(const op_node& n) const { return !n.def->costly && !reads_several(n); }
  /// Does an op read two values of as many dimensions as its result, beside broadcasts and
  /// constants?
  constexpr bool reads_several(const op_node& n) const {
    value_id first = -1;
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = root_[p_.operand_list[n.operand_begin + i]];
      if (v == first || is_small(p_.ops[p_.producers[v]]) ||
          p_.types[v].shape.rank < p_.types[n.result].shape.rank)
        continue;
      if (first >= 0) return true;
      first = v;
    }
    return false;
  }
  /// Is it a broadcast or a constant?
  static constexpr bool is_small(const op_node& n) {
    return n.def->repeats || (n.operand_count == 0 && n.def->role != op_role::parameter);
  }
  /// Is it one that ends in a reduction or an update?
  constexpr bool ends(value_id kernel) const {
    return kernel >= 0 && p_.ops[p_.producers[kernel]].def->fusion == fusion_kind::last;
  }
  constexpr void note_uses(const op_node& n) {
    const bool stored = n.result_count == 0 || kernel_[n.result] == in_memory;
    const bool shared = n.result_count > 0 && again_[n.result] == computed_again;
    const value_id mine = shared ? several : stored ? n.result : kernel_[n.result];
    const int height = n.result_count == 0 || (stored && !shared) ? 1 : height_[n.result] + 1;
    const bool repeats = n.def->repeats || (height > 1 && repeated_[n.result] != 0);
    const value_id* const operands = p_.operand_list.data() + n.operand_begin;
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = root_[operands[i]];
      note_kernel(v, n.def->fusion == fusion_kind::none ? in_memory : mine);
      if (height_[v] < height) height_[v] = static_cast<std::uint8_t>(height);
      if (repeats) repeated_[v] = 1;
    }
  }
  /// Of kernels that need a value; `in_memory` is one of a library.
  constexpr void note_kernel(value_id v, value_id mine) {
    value_id& kernel = kernel_[v];
    const bool loops = mine != in_memory && !ends(mine);
    if (kernel == nobody || kernel == mine) {
      kernel = mine;
    } else if (kernel == in_memory || !loops || ends(kernel)) {
      if (again_[v] == not_looped && (loops || (kernel != in_memory && !ends(kernel))))
        again_[v] = looped;
      kernel = in_memory;
    } else {
      kernel = several;
    }
  }
};

}  // namespace partita
