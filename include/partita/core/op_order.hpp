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
  constexpr int position(op_id o) const { return o < moved_ ? position_[o] : o; }
  constexpr op_id at(int position) const { return position < moved_ ? op_at_[position] : position; }
  constexpr bool numbered() const { return next_.empty() || moved_ == count_; }
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
    moved_ = count_;
  }

 private:
  int count_ = 0;
  int moved_ = 0;  ///< so many ops have positions of their own; others their numbers
  op_id first_ = 0;
  vec<op_id> next_;    ///< by op; empty while the order is that of numbers
  vec<int> position_;  ///< by op
  vec<op_id> op_at_;   ///< by position

  constexpr const op_id* links() const { return next_.empty() ? nullptr : next_.data(); }
};

/// A set of ops, as the bits of their positions. (Few calls: it is walked through in constant
/// evaluation.)
class op_set {
 public:
  constexpr bool empty() const { return count_ == 0; }
  constexpr void insert(const op_order& order, op_id o) {
    const int i = order.position(o);
    if (i >= room_) make_room(order, i);
    std::uint64_t& word = words_[i >> 6];
    const std::uint64_t bit = std::uint64_t{1} << (i & 63);
    if ((word & bit) != 0) return;
    if (word == 0) used_[i >> 12] |= std::uint64_t{1} << (i >> 6 & 63);
    word |= bit;
    ++count_;
  }
  constexpr void erase(int position) {
    std::uint64_t& word = words_[position >> 6];
    word &= ~(std::uint64_t{1} << (position & 63));
    if (word == 0) used_[position >> 12] &= ~(std::uint64_t{1} << (position >> 6 & 63));
    --count_;
  }
  constexpr bool contains(int position) const {
    return position < room_ && (words_[position >> 6] >> (position & 63) & 1) != 0;
  }
  /// The first position from here on, or -1. Cost: a step for 4096 positions.
  constexpr int first_from(int position) const {
    if (position >= room_) return -1;
    int w = position >> 6;
    const std::uint64_t left = words_.data()[w] >> (position & 63) << (position & 63);
    if (left != 0) return 64 * w + __builtin_ctzll(left);
    if (64 * ++w == room_) return -1;
    const std::uint64_t* used = used_.data();
    int u = w >> 6;
    std::uint64_t words = used[u] >> (w & 63) << (w & 63);
    for (const int end = static_cast<int>(used_.size()); words == 0; words = used[u]) {
      PARTITA_WORK(1);
      if (++u == end) return -1;
    }
    w = 64 * u + __builtin_ctzll(words);
    return 64 * w + __builtin_ctzll(words_.data()[w]);
  }
  /// The last position before this one, or -1.
  constexpr int last_before(int position) const {
    if (position > room_) position = room_;
    int w = position >> 6;
    const int bits = position & 63;
    const std::uint64_t left = bits == 0 ? 0 : words_.data()[w] & ((std::uint64_t{1} << bits) - 1);
    if (left != 0) return 64 * w + 63 - __builtin_clzll(left);
    if (w == 0) return -1;
    const std::uint64_t* used = used_.data();
    int u = w >> 6;
    std::uint64_t words = (w & 63) == 0 ? 0 : used[u] & ((std::uint64_t{1} << (w & 63)) - 1);
    for (; words == 0; words = used[u]) {
      PARTITA_WORK(1);
      if (--u < 0) return -1;
    }
    w = 64 * u + 63 - __builtin_clzll(words);
    return 64 * w + 63 - __builtin_clzll(words_.data()[w]);
  }
  /// The ops of the set, to be inserted again after they got other positions.
  constexpr vec<op_id> take(const op_order& order) {
    vec<op_id> ops;
    for (int i = first_from(0); i >= 0; i = first_from(i + 1)) ops.push_back(order.at(i));
    for (auto& w : words_) w = 0;
    for (auto& w : used_) w = 0;
    count_ = 0;
    return ops;
  }

 private:
  vec<std::uint64_t> words_;
  vec<std::uint64_t> used_;  ///< by word, as bits: is it not zero?
  int room_ = 0;             ///< bits in `words_`
  int count_ = 0;

  constexpr void make_room(const op_order& order, int position) {
    const int most =
        static_cast<int>(order.size()) > position ? static_cast<int>(order.size()) : position + 1;
    const int count = (most >> 6) + 1;
    words_.resize(static_cast<std::size_t>(count), 0);
    used_.resize(static_cast<std::size_t>((count + 63) >> 6), 0);
    room_ = 64 * count;
  }
};

}  // namespace partita
