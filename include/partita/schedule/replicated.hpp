/// Values that are replicated by default: no tactic requested it, and none avoided it.
#pragma once

#include <cstdint>

#include <partita/core/core_program.hpp>
#include <partita/ir/axis_set.hpp>
#include <partita/ir/print.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A value whose blocks are the same on several devices although no action requested it.
///
/// A value is replicated by default along an axis of more than one device if
/// * it is an input and no tactic gave it a loop over the axis, or
/// * the op that computes it has no loop over the axis, and an operand of that op is sliced along
///   the axis (a conflict, or an op that cannot be sliced this way) or is itself replicated by
///   default, or
/// * it is computed from constants alone, without a loop over the axis.
///
/// Values that were placed `replicated` are therefore not included, nor are results of an
/// all_reduce, nor values computed from such values alone.
struct replicated_value {
  value_id value = -1;      ///< in the core program
  axis_set axes;            ///< the axes along which it is replicated, of the core program's mesh
  std::int64_t bytes = 0;   ///< of the block on one device
  std::int64_t copies = 1;  ///< number of devices that hold the same block by default

  /// Returns the bytes on all devices that hold a copy.
  constexpr std::int64_t total() const { return saturating_multiply(bytes, copies); }
};

namespace schedule_detail {

/// Finds, by axis, the ops that do the same work on all devices of the axis by default.
///
/// Cost      linear in ops and uses, times the number of axes
class default_replication {
 public:
  constexpr explicit default_replication(const core_program& c) : c_(c), program_(c.view()) {
    axis_set wide;
    for (int axis = 0; axis < c.mesh.rank; ++axis)
      if (c.mesh.size(axis) > 1) wide.insert(axis);
    const auto count = c.p.ops.size();
    whole_.resize(count, axis_set{});
    open_.resize(count, wide);
    vec<char> constants(count, 0);
    // (Few calls: `check` runs this.)
    const op_order& order = c.order;
    axis_set* const open = open_.data();
    char* const constant = constants.data();
    for (op_id o = order.first(); o >= 0; o = order.after(o)) {
      const unsigned axes = program_.axes[o];
      if (axes == 0) continue;
      // The loops of an op, and those that an action added after its result, are not a default.
      const op_node& n = program_.ops[o];
      close(open[o], axes);
      if (n.def->role == op_role::tiling)
        close(open[program_.producers[program_.operands[n.operand_begin]]], axes);
    }
    for (op_id o = order.first(); o >= 0; o = order.after(o)) {
      const op_node& n = program_.ops[o];
      const op_role role = n.def->role;
      if (role == op_role::parameter) {
        mark(o, open[o]);
        continue;
      }
      const unsigned mine = open[o].bits;
      bool all = role != op_role::wire;
      PARTITA_WORK(n.operand_count);
      for (int i = 0; i < n.operand_count; ++i) {
        const value_id v = program_.operands[n.operand_begin + i];
        const op_id maker = program_.producers[v];
        if ((mine & program_.axes[maker]) != 0) mark(o, open[o] & sliced(v));
        all = all && constant[maker] != 0;
      }
      if (all) constant[o] = 1;
    }
    while (!spreading_.empty()) {
      const op_id o = spreading_.back();
      spreading_.pop_back();
      const op_node& n = program_.ops[o];
      for (int r = 0; r < n.result_count; ++r)
        mark_users(program_.use_ranges[n.result + r], whole_[o]);
    }
    for (op_id o = order.first(); o >= 0; o = order.after(o))
      if (constant[o] != 0) whole_[o] = open[o];
  }
  constexpr axis_set axes(op_id o) const { return whole_[o]; }

 private:
  const core_program& c_;
  loop_view program_;
  vec<axis_set> whole_, open_;  ///< by op: axes of default replication; axes without a loop
  vec<op_id> spreading_;

  constexpr void mark_users(const use_range& range, axis_set whole) {
    const use* const uses = program_.uses + range.begin;
    const axis_set* const open = open_.data();
    PARTITA_WORK(range.count);
    for (int i = 0; i < range.count; ++i)
      if (const op_id o = uses[i].op; (whole.bits & open[o].bits) != 0) mark(o, whole & open[o]);
  }
  constexpr void mark(op_id o, axis_set axes) {
    axis_set& whole = whole_[o];
    if ((axes.bits & ~unsigned{whole.bits}) == 0) return;
    whole |= axes;
    spreading_.push_back(o);
  }
  /// Returns the axes along which a value is sliced.
  constexpr axis_set sliced(value_id v) const {
    const op_id o = c_.p.producers[v];
    axis_set axes;
    const nest n = c_.nests[o];
    if (n.count == 0) return axes;
    const int result = c_.p.ops[o].result - v - 1;
    const factor* const factors = c_.map.factors_of(o);
    for (int i = 0; i < n.count; ++i) {
      const loop& l = n.loops[i];
      if (l.factor != any_factor && c_.map.dim_of(factors[l.factor], result) != no_dim)
        axes.insert(l.axis);
    }
    return axes;
  }
  static constexpr void close(axis_set& open, unsigned axes) {
    open.bits = static_cast<std::uint8_t>(open.bits & ~axes);
  }
};

/// Calls f(replicated_value) for each value replicated by default, in program order. Values that
/// share the memory of another one (a tag, a wire) are skipped, and so are values that differ from
/// another one only in their padding.
template <class F>
constexpr void for_each_replicated(const core_program& c, const F& f) {
  const default_replication found(c);
  const loop_view program = c.view();
  for (op_id o = c.order.first(); o >= 0; o = c.order.after(o)) {
    const op_node& n = c.p.ops[o];
    if (found.axes(o).empty()) continue;
    const bool same = n.def->identity && n.operand_count > 0;
    const auto why = c.inserted(o);
    const bool masks = why == padding_record::kind::mask || why == padding_record::kind::auxiliary;
    if (same || masks || n.def->role == op_role::wire || n.def->role == op_role::tiling ||
        (c.resizes(o) && found.axes(c.p.producer(c.p.operand(o, 0))) == found.axes(o)))
      continue;
    replicated_value each;
    each.axes = found.axes(o);
    for (int axis = 0; axis < c.mesh.rank; ++axis)
      if (each.axes.contains(axis)) each.copies *= c.mesh.size(axis);
    for (each.value = n.result; each.value < n.result + n.result_count; ++each.value) {
      tensor_type piece = c.p.types[each.value];
      program.produced_layout(each.value).slice(piece.shape, c.mesh);
      each.bytes = piece.bytes();
      f(each);
    }
  }
}

/// Sorts by `before`; equal elements keep their order.
///
/// Cost      n log n
template <class T, class Before>
constexpr void stable_sort(vec<T>& list, const Before& before) {
  vec<T> sorted(list.begin(), list.end());
  for (std::size_t width = 1; width < list.size(); width *= 2) {
    for (std::size_t begin = 0; begin < list.size(); begin += 2 * width) {
      const std::size_t middle = begin + width < list.size() ? begin + width : list.size();
      const std::size_t end = middle + width < list.size() ? middle + width : list.size();
      std::size_t left = begin, right = middle;
      for (std::size_t to = begin; to < end; ++to)
        sorted[to] = left < middle && (right == end || !before(list[right], list[left]))
                         ? list[left++]
                         : list[right++];
    }
    for (std::size_t i = 0; i < list.size(); ++i) list[i] = sorted[i];
  }
}

}  // namespace schedule_detail

namespace schedule_detail {
template <class Value>
constexpr void sort_by_total(vec<Value>& list) {
  stable_sort(list, [](const Value& a, const Value& b) { return a.total() > b.total(); });
}
}  // namespace schedule_detail

/// Returns the values replicated by default, largest first (bytes times copies); values of equal
/// size are in program order.
constexpr vec<replicated_value> replicated_by_default(const core_program& c) {
  vec<replicated_value> list;
  schedule_detail::for_each_replicated(c, [&](const replicated_value& v) { list.push_back(v); });
  schedule_detail::sort_by_total(list);
  return list;
}

namespace schedule_detail {

/// Returns the name of a value in messages, for a core program that was made of `source`.
constexpr text value_words(const core_program& c, const program& source, value_id v) {
  const text known = c.describe(v);
  if (known.view().front() != '%') return concat('"', known, '"');
  return concat('%', value_names(flat_program(source).p)[c.source_of(v)]);
}

/// `list` holds the values replicated by default; `where(value)` returns words that locate a value.
///
/// Errors    S020 a value of more than `limit` bytes on one device is replicated by default
template <class List, class Where>
constexpr failure be_strict(const core_program& c, const program& source, const List& list,
                            std::int64_t limit, const Where& where) {
  failure f;
  if (list.empty()) return f;
  const auto* largest = &list[0];
  int large = 0;
  for (const auto& each : list)
    if (each.bytes > limit && large++ == 0) largest = &each;
  if (large == 0) return f;
  text axes, others;
  print_axis_set(axes, largest->axes, c.mesh);
  if (large > 1)
    others << ", and " << large - 1 << (large == 2 ? " more value is" : " more values are");
  f.record("S020", "strict: ", value_words(c, source, largest->value), ' ',
           c.true_type(largest->value), " is replicated along ", axes, " by default",
           where(*largest), ": ", largest->copies, " copies of ", largest->bytes, " bytes, where ",
           limit, " bytes are allowed", others, "; shard it, or place it ",
           in_syntax(c.advice(), "pt::replicated", "replicated"));
  return f;
}
constexpr failure be_strict(const core_program& c, const program& source, std::int64_t limit) {
  return be_strict(c, source, replicated_by_default(c), limit,
                   [](const replicated_value&) { return text(); });
}

}  // namespace schedule_detail

}  // namespace partita
