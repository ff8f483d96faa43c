/// Loop nests, actions and conflicts: the vocabulary of PartIR:Core.
#pragma once

#include <cstdint>

#include <partita/core/uneven.hpp>
#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// In place of a factor, means `any`: the loop slices nothing and keeps its op replicated.
inline constexpr int any_factor = -1;

/// One loop around an op: `loop "axis" [effect on the result]`, over one factor of its tile map.
struct loop {
  int factor = any_factor;  ///< an index into the factors of the op
  int tactic = 0;           ///< the tactic that introduced it
  std::int8_t axis = 0;     ///< below max_axes
  bool asked = false;       ///< true if an action requested it, false if propagation found it
};

/// The loops around an op, outermost first. No axis occurs twice. A view, valid until the next
/// action.
struct nest {
  const loop* loops = nullptr;
  int count = 0;

  constexpr const loop* begin() const { return loops; }
  constexpr const loop* end() const { return loops + count; }
  constexpr const loop* find(int axis) const {
    for (int i = 0; i < count; ++i)
      if (loops[i].axis == axis) return &loops[i];
    return nullptr;
  }
};

/// The nests of all ops. Most ops have few loops, which are stored inline.
class nest_list {
 public:
  static constexpr int few = 3;
  struct row {
    /// The loops of an op that has few ({{0}...}: GCC otherwise generates many stores).
    loop first[few] = {{0}, {0}, {0}};
    int begin = 0;  ///< otherwise, their index in `more_`; below 8 times the number of ops
    int count = 0;
    unsigned sums = 0;  ///< the axes, as bits, of loops over a reduced factor
  };
  constexpr const row* rows() const { return rows_.data(); }
  /// By op: the axes of its loops, as bits. They are stored contiguously because propagation reads
  /// those of all neighbours of an op.
  constexpr const std::uint8_t* axes() const { return axes_.data(); }
  /// The loops of ops that have more than a few, from row::begin.
  constexpr const loop* more() const { return more_.data(); }
  constexpr std::size_t size() const { return rows_.size(); }
  constexpr nest operator[](int op) const {
    const row& r = rows_[op];
    return {r.count <= few ? r.first : more_.data() + r.begin, r.count};
  }
  /// The loop of an op over an axis, or null.
  constexpr const loop* find(int op, int axis) const {
    if ((unsigned{axes_[op]} >> axis & 1u) == 0) return nullptr;
    const row& r = rows_[op];
    const loop* l = r.count <= few ? r.first : more_.data() + r.begin;
    while (l->axis != axis) ++l;
    return l;
  }
  constexpr nest operator[](std::size_t op) const { return (*this)[static_cast<int>(op)]; }

  /// The axes, as bits, of the loops of an op over reduced factors.
  constexpr unsigned sums(int op) const { return rows_[op].sums; }

  /// Appends `count` ops without loops.
  constexpr void add_ops(std::size_t count) {
    rows_.resize(rows_.size() + count);
    axes_.resize(axes_.size() + count, 0);
  }
  /// Adds a loop as the innermost one; `reduces`: its factor is reduced. Cost: constant.
  constexpr void push_back(int op, const loop& l, bool reduces) {
    row& r = rows_[op];
    if (r.count == few) {
      r.begin = static_cast<int>(more_.size());
      more_.insert_back(r.first, r.first + few);
      more_.resize(more_.size() + max_axes - few, loop{});
    }
    loops_of(r, r.count + 1)[r.count] = l;
    ++r.count;
    axes_[op] = static_cast<std::uint8_t>(axes_[op] | 1u << l.axis);
    if (reduces) r.sums |= 1u << l.axis;
  }
  /// Restores the loops of an op from an earlier list, from which this one has grown. Call
  /// `end_undo` after the last op.
  constexpr void undo(const nest_list& earlier, int op) {
    rows_[op] = earlier.rows_[op];
    axes_[op] = earlier.axes_[op];
  }
  constexpr void end_undo(const nest_list& earlier) { more_.resize(earlier.more_.size(), loop{}); }
  /// Marks the loop of an op over an axis as requested by an action.
  constexpr void ask_for(int op, int axis) {
    row& r = rows_[op];
    loop* loops = loops_of(r, r.count);
    for (int i = 0; i < r.count; ++i)
      if (loops[i].axis == axis) loops[i].asked = true;
  }
  /// Removes the loops of an op for which keep(loop) is false.
  template <class F>
  constexpr void filter(int op, const F& keep) {
    row& r = rows_[op];
    loop kept[max_axes] = {};
    int left = 0;
    for (const loop& l : (*this)[op]) {
      if (keep(l)) {
        kept[left++] = l;
        continue;
      }
      axes_[op] = static_cast<std::uint8_t>(axes_[op] & ~(1u << l.axis));
      r.sums &= ~(1u << l.axis);
    }
    r.count = left;
    for (int i = 0; i < left; ++i) loops_of(r, left)[i] = kept[i];
  }
  /// Changes the factor of the loop of an op over an axis.
  constexpr void set_factor(int op, int axis, int factor) {
    row& r = rows_[op];
    loop* loops = loops_of(r, r.count);
    for (int i = 0; i < r.count; ++i)
      if (loops[i].axis == axis) loops[i].factor = factor;
  }
  /// Inserts axis `minor`, the minor part of what was `axis`, and splits all loops accordingly.
  constexpr void split(int axis, int minor) {
    const nest_list old = *this;
    rows_.clear();
    axes_.clear();
    more_.clear();
    add_ops(old.size());
    for (int o = 0; o < static_cast<int>(old.size()); ++o)
      for (loop l : old[o]) {
        const bool reduces = (old.sums(o) >> l.axis & 1u) != 0;
        if (l.axis >= minor) ++l.axis;
        push_back(o, l, reduces);
        if (l.axis != axis) continue;
        l.axis = static_cast<std::int8_t>(minor);
        push_back(o, l, reduces);
      }
  }

 private:
  vec<row> rows_;
  vec<std::uint8_t> axes_;
  vec<loop> more_;

  constexpr loop* loops_of(row& r, int count) {
    return count <= few ? r.first : more_.data() + r.begin;
  }
};

/// A use of a value as an operand.
struct use {
  op_id op = -1;
  int operand = -1;
};
/// The uses of a value, as a range in the list of all uses.
struct use_range {
  int begin = 0, count = 0;
};

/// The only ways to change a partitioning. Tactics issue the first three. `first` and `settle`
/// resolve conflicts between layouts that one tactic gives at once.
enum class action_kind : std::uint8_t { tile, atomic, propagate, first, settle };

/// One recorded action. Values are numbered as in the flat source program.
struct action {
  action_kind kind = action_kind::propagate;
  value_id value = -1;  ///< in the flat source program
  int dim = -1;         ///< of `settle`: the factor
  int axis = -1;        ///< a number in core_program::named
  int tactic = 0;
  partita::uneven uneven = partita::uneven::unsaid;  ///< the policy of a `tile`
};

/// The reason for which an op has no loop over an axis.
enum class conflict_kind : std::uint8_t {
  several,     ///< evidence supports more than one entry of the tile map
  indivisible  ///< the axis does not divide the local size of the only factor that matches
};

/// The source of the evidence for a tile-map entry.
struct evidence {
  int factor = any_factor;
  int operand = -1;  ///< operand index, or -1 for the uses of the result

  friend constexpr bool operator==(const evidence& a, const evidence& b) {
    return a.factor == b.factor && a.operand == b.operand;
  }
};

/// An op without a loop over an axis for which there is evidence.
struct conflict {
  op_id op = -1;
  int axis = -1;  ///< of the user's mesh
  conflict_kind kind = conflict_kind::several;
  evidence first, second;
  int tactic = 0;                   ///< the tactic during which it was found
  std::int64_t pre = 1, size = -1;  ///< the part of the axis

  constexpr sub_axis where() const { return {axis, pre, size}; }
  /// True for the same finding, in any tactic.
  friend constexpr bool operator==(const conflict& a, const conflict& b) {
    return a.op == b.op && a.where() == b.where() && a.kind == b.kind && a.first == b.first &&
           a.second == b.second;
  }
};

/// A conflict that the action `settle` resolved by a loop over a factor.
struct settled_conflict {
  conflict what;
  int factor = any_factor;
};

}  // namespace partita
