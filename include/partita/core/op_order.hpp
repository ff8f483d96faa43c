/// Ops in order of execution, and sets of ops that are walked through in that order.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The order of execution: that of the numbers of ops, until ops are inserted.
class op_order {
 public:
  class iterator {
   public:
    constexpr iterator(const op_id* next, op_id o) : next_(next), op_(o) {}
    constexpr op_id operator*() const { return op_; }
    constexpr iterator& operator++() {
      op_ = next_ != nullptr ? next_[op_] : op_ + 1;
      return *this;
    }
    constexpr bool operator!=(const iterator& other) const { return op_ != other.op_; }

   private:
    const op_id* next_;
    op_id op_;
  };

  constexpr op_order() = default;
  constexpr explicit op_order(std::size_t count) : count_(static_cast<int>(count)) {}

  constexpr std::size_t size() const { return static_cast<std::size_t>(count_); }
  constexpr iterator begin() const { return {links(), first_}; }
  constexpr iterator end() const { return {links(), next_.empty() ? count_ : -1}; }
  /// The op behind one, or -1.
  constexpr op_id after(op_id o) const {
    if (!next_.empty()) return next_[o];
    return o + 1 < count_ ? o + 1 : -1;
  }

  /// An op that was appended comes behind `o`; -1: before all others. Cost: constant.
  constexpr void insert_behind(op_id o, op_id added) {
    if (next_.empty()) {
      numbered_ = count_;
      for (op_id each = 0; each < count_; ++each)
        next_.push_back(each + 1 < count_ ? each + 1 : -1);
    }
    if (static_cast<std::size_t>(added) >= next_.size())
      next_.resize(static_cast<std::size_t>(added) + 1, -1);
    op_id& link = o < 0 ? first_ : next_[o];
    next_[added] = link;
    link = added;
    ++count_;
  }

  /// Where an op stands, counted from 0, and back. Of ops inserted since `number` was called
  /// positions are only told apart: they are behind all others.
  constexpr int position(op_id o) const { return is_moved(o) ? position_[o] : o; }
  constexpr op_id at(int position) const {
    return is_moved(position) ? op_at_[position] : position;
  }
  constexpr bool numbered() const { return next_.empty() || numbered_ == count_; }
  /// Cost: linear if ops were inserted since, else none.
  constexpr void number() {
    if (numbered()) return;
    position_.resize(size(), 0);
    op_at_.resize(size(), 0);
    int i = 0;
    for (op_id o = first_; o >= 0; o = next_[o]) {
      position_[o] = i;
      op_at_[i++] = o;
    }
    numbered_ = count_;
  }

 private:
  int count_ = 0, numbered_ = 0;
  op_id first_ = 0;
  vec<op_id> next_;    ///< by op; empty while the order is that of numbers
  vec<int> position_;  ///< by op
  vec<op_id> op_at_;   ///< by position

  constexpr const op_id* links() const { return next_.empty() ? nullptr : next_.data(); }
  constexpr bool is_moved(int i) const { return static_cast<std::size_t>(i) < position_.size(); }
};

/// A set of ops, as the bits of their positions.
class op_set {
 public:
  constexpr bool empty() const { return count_ == 0; }
  constexpr void insert(const op_order& order, op_id o) {
    const int i = order.position(o);
    const std::size_t w = word(i);
    if (w >= words_.size()) words_.resize(word(static_cast<int>(order.size())) + w + 1, 0);
    const std::uint64_t b = bit(i);
    if ((words_[w] & b) != 0) return;
    words_[w] |= b;
    ++count_;
  }
  constexpr void erase(int position) {
    words_[word(position)] &= ~bit(position);
    --count_;
  }
  /// The first position from here on, or -1. Cost: a step for 64 positions.
  constexpr int first_from(int position) const {
    std::size_t w = word(position);
    if (w >= words_.size()) return -1;
    std::uint64_t left = words_[w] & ~(bit(position) - 1);
    while (left == 0) {
      if (++w == words_.size()) return -1;
      left = words_[w];
    }
    return static_cast<int>(64 * w) + __builtin_ctzll(left);
  }
  /// The last position before this one, or -1.
  constexpr int last_before(int position) const {
    std::size_t w = word(position);
    std::uint64_t left = w < words_.size() ? words_[w] & (bit(position) - 1) : 0;
    if (w > words_.size()) w = words_.size();
    while (left == 0) {
      if (w == 0) return -1;
      left = words_[--w];
    }
    return static_cast<int>(64 * w) + 63 - __builtin_clzll(left);
  }
  /// The ops of the set, to be inserted again after they got other positions.
  constexpr vec<op_id> take(const op_order& order) {
    vec<op_id> ops;
    for (int i = first_from(0); i >= 0; i = first_from(i + 1)) ops.push_back(order.at(i));
    for (auto& w : words_) w = 0;
    count_ = 0;
    return ops;
  }

 private:
  vec<std::uint64_t> words_;
  int count_ = 0;

  static constexpr std::size_t word(int i) { return static_cast<std::size_t>(i) / 64; }
  static constexpr std::uint64_t bit(int i) { return std::uint64_t{1} << (i % 64); }
};

}  // namespace partita
