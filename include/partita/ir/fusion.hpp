/// The kernels that a fusing compiler makes of a program, and the values that it keeps in memory.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A model of the kernels that a compiler with loop fusion makes. Each kernel writes one value (or
/// the results of one op) to memory; the values in between are computed where they are needed.
///
/// A value that several kernels need may be stored or recomputed. Library kernels, and kernels that
/// end in a reduction or an update, read it from memory. Loop kernels recompute it, even if it is
/// stored for other kernels, provided that recomputing is cheap and reads no more than the result:
/// at most one operand of the result's rank, besides broadcasts and constants. Otherwise loop
/// kernels read it from memory too.
///
/// As in XLA's instruction fusion, expensive ops are never computed twice, nor once per element of
/// a broadcast. The amount of memory does not influence the decisions.
class fused_kernels {
 public:
  /// Cost      linear in ops
  constexpr explicit fused_kernels(const program& p) : fused_kernels(p, nullptr, 0) {}
  /// For a program whose nested programs are inlined; `order` lists its ops in execution order.
  constexpr fused_kernels(const program& p, const vec<op_id>& order)
      : fused_kernels(p, order.data(), static_cast<int>(order.size())) {}

  /// Returns the value whose memory `v` uses (or would use): for a reshape, its operand.
  constexpr value_id root(value_id v) const { return root_[v]; }
  /// True if the value is kept in memory of its own. (Its root is then itself.)
  constexpr bool stored(value_id v) const { return root_[v] == v && kernel_[v] == in_memory; }
  /// True if nothing uses the value, not even as an output.
  constexpr bool dead(value_id v) const { return kernel_[root_[v]] == nobody; }
  /// True if the kernel of `o` reads the value from memory instead of computing it again.
  constexpr bool reads(op_id o, value_id v) const { return stored(v) && !computes(o, v); }
  /// True if the op starts a kernel at its position in the program.
  constexpr bool runs(op_id o) const {
    const op_node& n = p_.ops[o];
    if (n.def->role == op_role::parameter) return false;
    // (If nested programs are inlined, a barrier consists of its wires.)
    if (n.def->fusion == fusion_kind::view) return n.result_count == 0;
    return n.def->fusion == fusion_kind::none || stored(n.result);
  }
  /// Calls f(op) for each op that the kernel of `o` computes, `o` first.
  template <class F>
  constexpr void for_each_op(op_id o, const F& f) {
    walk(o, f, [](op_id, value_id) {});
  }
  /// Calls f(value) once for each value that the kernel of `o` reads from memory.
  template <class F>
  constexpr void for_each_read(op_id o, const F& f) {
    walk(
        o, [](op_id) {}, [&](op_id, value_id v) { f(v); });
  }
  /// Calls f(op of the kernel, value) for each such value, with the first op that reads it.
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

  /// A kernel is identified by the value that it writes. Special numbers mark a value that no
  /// kernel needs, that several kernels compute, or that is kept in memory.
  static constexpr value_id nobody = -1, several = -2, in_memory = -3;
  /// The maximum number of ops in sequence inside one kernel. A value at a greater height is
  /// stored: compilers have a limit too, and the work stays linear.
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
  vec<std::uint8_t> height_;  ///< of a value that is not stored: ops after it in its kernels
  vec<char> repeated_;        ///< of such a value: true if one of those ops is a broadcast
  /// By value: whether loop kernels compute it again; see the constants below.
  vec<char> again_;
  vec<int> seen_;  ///< by value: the last walk that visited it
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
  /// For a value in memory: no loop kernel needs it, some need it, loop kernels compute it again,
  /// or no kernel may compute it again.
  static constexpr char not_looped = 0, looped = 1, computed_again = 2, kept = 3;

  constexpr bool computes(op_id o, value_id v) const {
    return again_[v] == computed_again && p_.ops[o].def->fusion == fusion_kind::loop;
  }
  /// True if nothing is fused across the op, because it is a barrier or has nested programs. The
  /// values that pass through it are stored.
  constexpr bool is_barrier(const op_node& n) const {
    return n.def->role == op_role::wire ||
           (n.def->role == op_role::control && n.def->fusion == fusion_kind::view);
  }
  constexpr void keep(value_id v) {
    kernel_[v] = in_memory;
    again_[v] = kept;
  }
  /// Decides about the results of an op whose users are already decided.
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
  /// True if several kernels may compute the op.
  constexpr bool is_cheap(const op_node& n) const { return !n.def->costly && !reads_several(n); }
  /// True if the op reads two values of its result's rank, besides broadcasts and constants.
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
  /// True if the op is a broadcast or a constant.
  static constexpr bool is_small(const op_node& n) {
    return n.def->repeats || (n.operand_count == 0 && n.def->role != op_role::parameter);
  }
  /// True if the kernel ends in a reduction or an update.
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
  /// Notes that the kernel `mine` needs the value; `in_memory` represents a library kernel.
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
