/// The role of an op in fused groups: nothing to run, recomputed in each group, a member, or
/// excluded.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include <partita/op/registry.hpp>
#include <partita/run/fusion/block_program.hpp>
#include <partita/run/kernels/library.hpp>

namespace partita::run_detail {

/// The computation of an elementwise op in a group: a link of a chain, or a function of blocks.
struct block_step {
  link as_link = link::none;
  block_function run = nullptr;
  explicit operator bool() const { return as_link != link::none || run != nullptr; }
};

/// The fusion rules for the ops of one program. Ops with user-defined kernels (`own`) are excluded.
class fusion_rules {
 public:
  fusion_rules(const program& p, std::span<const kernel_entry> own, bool fuse)
      : p_(p), own_(own), fuse_(fuse), root_(at(p.value_count()), -1) {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      const bool passed = passes_on(o);
      for (int r = 0; r < n.result_count; ++r)
        root_[at(n.result + r)] = passed ? root(p_.operand(o, r)) : n.result + r;
    }
  }

  bool fuses() const { return fuse_; }
  bool overridden(const op_def* def) const {
    return std::any_of(own_.begin(), own_.end(), [&](const auto& e) { return e.op == def; });
  }

  /// True if the result i uses the memory of operand i.
  bool passes_on(op_id o) const {
    return p_.op(o).def->passes_on || (!overridden(p_.op(o).def) && run_detail::passes_on(p_, o));
  }
  /// Returns the value whose memory a value uses.
  value_id root(value_id v) const { return root_[at(v)]; }
  const std::vector<value_id>& roots() const { return root_; }

  /// True if a value is cheap enough to recompute in each group that uses it, instead of writing it
  /// to memory: a splat, a broadcast that repeats, or a padded value.
  bool made_anew(value_id v) const { return is_splat(v) || repetition_of(v).has_value(); }
  bool is_splat(value_id v) const {
    return fuse_ && producer(v).def == &def<op::constant> && !overridden(producer(v).def);
  }
  /// Returns how a recomputed broadcast repeats its operand, or how a pad places it.
  std::optional<repetition> repetition_of(value_id v) const {
    const op_node& n = producer(v);
    if (!fuse_ || overridden(n.def)) return {};
    const op_id o = p_.producer(v);
    if (n.def == &def<op::pad>) return padding_of(o);
    if (n.def != &def<op::broadcast_in_dim>) return {};
    return run_detail::repetition_of(p_.type(p_.operand(o, 0)).shape, p_.type(v).shape,
                                     p_.attrs(o));
  }
  /// True if a value repeats one element for each row along rows of `row` elements.
  bool spreads_rows(value_id x, std::int64_t row, std::int64_t elements) const {
    if (row == 0) return false;
    const auto r = repetition_of(root(x));
    return r && r->inner == row && r->count * row == elements;
  }
  /// Returns the value that must be available before a group can read `x`, or -1.
  value_id source(value_id x) const {
    const value_id v = root(x);
    if (!made_anew(v)) return v;
    return is_splat(v) ? -1 : root(p_.operand(p_.producer(v), 0));
  }

  /// True if the op can be in a group.
  bool groupable(op_id o) const { return block_of(o) || reduced_row(o) > 0; }
  block_step block_of(op_id o) const {
    const op_node& n = p_.op(o);
    if (!n.def->elementwise || n.operand_count == 0 || overridden(n.def)) return {};
    const dtype last = p_.type(p_.operand(o, n.operand_count - 1)).element;
    const link l = link_of(n.def, computed(last));
    if (l != link::none) return {l, nullptr};
    return {link::none, find_block(n.def, p_.attrs(o), last, p_.type(n.result).element)};
  }
  /// Returns the elements of a row if the op reduces rows that a group can hold; else 0.
  std::int64_t reduced_row(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def != &def<op::reduce> || n.operand_count != 1 || overridden(n.def) || passes_on(o))
      return 0;
    const shape& from = p_.type(p_.operand(o, 0)).shape;
    const std::int64_t row = trailing_reduced(from, p_.attrs(o));
    return from.elements() > 0 && block_program::fits(row) ? row : 0;
  }

 private:
  const op_node& producer(value_id v) const { return p_.op(p_.producer(v)); }

  /// Returns how a pad places long runs of its operand, if it adds a constant along one dimension.
  std::optional<repetition> padding_of(op_id o) const {
    const tensor_type &from = p_.type(p_.operand(o, 0)), &to = p_.type(p_.op(o).result);
    const value_id fill_value = root(p_.operand(o, 1));
    const auto attrs = p_.attrs(o);
    repetition r{0, 0};
    std::int64_t inner = 1;
    for (int d = to.shape.rank; d-- > 0; inner *= to.shape[d]) {
      const std::int64_t low = attrs[at(d)], high = attrs[at(to.shape.rank + d)];
      if (low < 0 || high < 0 || attrs[at(2 * to.shape.rank + d)] != 0) return {};
      if (low == 0 && high == 0) continue;
      if (r.period > 0) return {};
      r.period = to.shape[d] * inner;
      r.low = low * inner;
      r.inside = from.shape[d] * inner;
    }
    if (r.inside < lanes || to.shape.elements() == 0 || !is_splat(fill_value)) return {};
    fill(to.element, p_.attrs(p_.producer(fill_value))[0], 1, &r.value);
    return r;
  }
  /// Returns the elements of the reduced dimensions if these are the innermost ones; else 0.
  static std::int64_t trailing_reduced(const shape& from, std::span<const std::int64_t> attrs) {
    std::int64_t row = 1;
    bool kept = false;  // true after an inner dimension that is kept
    for (int d = from.rank; d-- > 0;) {
      if (from[d] == 1) continue;
      const bool reduced = op::reduce::reduced(attrs.data(), static_cast<int>(attrs.size()), d);
      if (reduced && kept) return 0;
      if (reduced) row *= from[d];
      kept = kept || !reduced;
    }
    return row;
  }

  const program& p_;
  std::span<const kernel_entry> own_;
  bool fuse_;
  std::vector<value_id> root_;  // by value
};

}  // namespace partita::run_detail
