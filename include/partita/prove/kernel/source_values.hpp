/// The values of a source program, found by the op and the operands that compute them.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/ir/same_code.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// True for ops of two operands whose order does not matter.
constexpr bool is_commutative(const op_def& d) {
  for (const std::uint64_t id :
       {def<op::add>.id, def<op::multiply>.id, def<op::maximum>.id, def<op::minimum>.id,
        def<op::logical_and>.id, def<op::logical_or>.id, def<op::logical_xor>.id})
    if (d.id == id) return true;
  return false;
}

/// True for ops whose results are their operands. (A result of all microbatches is not the value of
/// one of them, though it looks so to passes.)
constexpr bool returns_operands(const program& p, op_id o) {
  const op_node& n = p.op(o);
  if (n.operand_count == 0) return false;
  if (n.def->id == def<op::reshape>.id) return p.type(n.result) == p.type(p.operand(o, 0));
  return (n.def->passes_on || n.def->identity) && n.def->id != def<op::microbatch_sum>.id &&
         n.def->id != def<op::microbatch_last>.id;
}

/// Numbers equal values alike: each value has a canonical one, the first that is computed by the
/// same op from the same canonical operands. Ops that return their operand are skipped.
///
/// Cost      linear in ops
class source_values {
 public:
  constexpr source_values() = default;
  constexpr explicit source_values(const program& p) : p_(&p) {
    const auto ops = p.ops.size();
    canonical_.resize(p.types.size(), -1);
    next_.resize(ops, -1);
    index_.reserve(ops);
    firsts_.reserve(ops);
    for (op_id o = 0; o < p.op_count(); ++o) number(o);
  }
  constexpr const program& source() const { return *p_; }
  constexpr value_id canonical(value_id v) const { return canonical_.data()[v]; }

  /// Sorts the operands of a commutative op. True if it changed their order.
  static constexpr bool sort_operands(const op_def& d, vec<value_id>& operands) {
    if (operands.size() != 2 || operands[0] <= operands[1] || !is_commutative(d)) return false;
    const value_id first = operands[0];
    operands[0] = operands[1];
    operands[1] = first;
    return true;
  }
  /// The first source op with this definition, these attributes and canonical operands, or -1.
  /// `next` returns the others: ops that differ in their result types or nested programs.
  constexpr op_id first(const op_def& d, span<const std::int64_t> attrs,
                        const vec<value_id>& operands) const {
    const int found = index_.find(key(d, attrs, operands), [&](int i) {
      return same(firsts_.data()[i], d, attrs, operands);
    });
    return found < 0 ? -1 : firsts_.data()[found];
  }
  constexpr op_id next(op_id o) const { return next_.data()[o]; }
  /// The op with this number (op_marks::source), or the first op that computes the same, or -1.
  constexpr op_id numbered(int number) const {
    int begin = 0, end = p_->op_count();  // (a numbered program is in the order of its numbers)
    while (begin < end) {
      const int middle = begin + (end - begin) / 2;
      if (p_->op(middle).marks.source < number)
        begin = middle + 1;
      else
        end = middle;
    }
    if (begin == p_->op_count() || p_->op(begin).marks.source != number) return -1;
    return p_->producer(canonical(p_->op(begin).result));
  }

 private:
  const program* p_ = nullptr;
  vec<value_id> canonical_;  ///< by value
  vec<op_id> next_;          ///< by op: see `next`
  vec<op_id> firsts_;        ///< by place in the index
  hash_index index_;
  vec<value_id> operands_;

  static constexpr std::size_t key(const op_def& d, span<const std::int64_t> attrs,
                                   const vec<value_id>& operands) {
    constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u;
    std::uint64_t h = d.id;
    const value_id* const list = operands.data();
    for (std::size_t i = 0, n = operands.size(); i < n; ++i)
      h = h * factor + static_cast<std::uint64_t>(list[i]) + 1;
    h ^= h >> 32;
    const std::int64_t* const numbers = attrs.data();
    for (std::size_t i = 0, n = attrs.size(); i < n; ++i) {
      h = (h + static_cast<std::uint64_t>(numbers[i])) * factor;
      h ^= h >> 32;
    }
    return hash_of(h);
  }
  constexpr bool same(op_id o, const op_def& d, span<const std::int64_t> attrs,
                      const vec<value_id>& operands) const {
    const op_node& n = p_->op(o);
    if (n.def->id != d.id || n.operand_count != static_cast<int>(operands.size())) return false;
    const bool turned = n.operand_count == 2 && is_commutative(d) &&
                        canonical(p_->operand(o, 0)) > canonical(p_->operand(o, 1));
    for (int i = 0; i < n.operand_count; ++i)
      if (canonical(p_->operand(o, turned ? 1 - i : i)) != operands.data()[i]) return false;
    return ir_detail::same_elements(p_->attrs(o), attrs);
  }
  constexpr void number(op_id o) {
    const op_node& n = p_->op(o);
    value_id* const canonical = canonical_.data() + n.result;
    if (returns_operands(*p_, o)) {
      for (int r = 0; r < n.result_count; ++r) canonical[r] = canonical_.data()[p_->operand(o, r)];
      return;
    }
    for (int r = 0; r < n.result_count; ++r) canonical[r] = n.result + r;
    if (n.def->role == op_role::parameter) return;
    operands_.clear();
    for (value_id x : p_->operands(o)) operands_.push_back(canonical_.data()[x]);
    sort_operands(*n.def, operands_);
    const auto attrs = p_->attrs(o);
    op_id at = first(*n.def, attrs, operands_);
    if (at < 0) {
      firsts_.push_back(o);
      index_.add(key(*n.def, attrs, operands_));
      return;
    }
    for (;; at = next_[at]) {
      if (n.region_count == 0 && same_results(at, o)) {
        for (int r = 0; r < n.result_count; ++r) canonical[r] = p_->op(at).result + r;
        return;
      }
      if (next_[at] < 0) break;
    }
    next_[at] = o;
  }
  constexpr bool same_results(op_id a, op_id b) const {
    const op_node &x = p_->op(a), &y = p_->op(b);
    if (x.result_count != y.result_count) return false;
    for (int r = 0; r < x.result_count; ++r)
      if (p_->type(x.result + r) != p_->type(y.result + r)) return false;
    return true;
  }
};

}  // namespace partita::prove_detail
