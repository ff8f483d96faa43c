/// Ops in execution order, and sets of ops that are traversed in that order.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The execution order: by op number until ops are inserted.
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
  /// The first op, or -1. Together with `after` it is three times as fast as a range-for loop in
  /// constant evaluation.
  constexpr op_id first() const { return count_ > 0 ? first_ : -1; }
  /// The op after `o`, or -1.
  constexpr op_id after(op_id o) const {
    PARTITA_WORK(1);
    if (linked_) return next_[o];
    return o + 1 < count_ ? o + 1 : -1;
  }

  /// Inserts an appended op after `o` (-1: at the front). Cost: constant.
  constexpr void insert_after(op_id o, op_id added) {
    if (next_.empty()) {
      linked_ = true;
      for (op_id each = 0; each < count_; ++each)
        next_.push_back(each + 1 < count_ ? each + 1 : -1);
    }
    if (static_cast<std::size_t>(added) >= next_.size())
      next_.resize(static_cast<std::size_t>(added) + 1, -1);
    op_id& link = o < 0 ? first_ : next_[o];
    next_[added] = link;
    link = added;
    ++count_;
    if (o < moved_) insertion_points_.push_back(o);
  }

  /// The position of an op in execution order, from 0 to `room` - 1. Ops inserted since the last
  /// call of `number` get distinct positions after all others.
  constexpr int position(op_id o) const { return o < moved_ ? position_[o] : o + unmoved_at_; }
  /// The op at a position, or -1 if the position is free.
  constexpr op_id at(int position) const {
    return position < settled() ? op_at_[position] : position - unmoved_at_;
  }
  /// True if the position of an op is its place in execution order.
  constexpr bool is_settled(op_id o) const { return next_.empty() || o < moved_; }
  /// An upper bound of all positions.
  constexpr int room() const { return count_ + unmoved_at_; }
  /// Positions below this one were assigned by the last call of `number`.
  constexpr int settled() const { return moved_ + unmoved_at_; }
  /// True if every op has its final position.
  constexpr bool numbered() const { return next_.empty() || moved_ == count_; }
  /// True if the ops inserted since the last call of `number` fit between the others without moving
  /// them. Cost: linear in the ops inserted.
  constexpr bool has_room() const {
    if (moved_ == 0) return false;
    for (op_id o : insertion_points_)
      if (const run r = run_after(o); r.end - r.begin <= r.count) return false;
    return true;
  }
  /// Assigns positions to the ops inserted since the last call. Cost: zero without such ops,
  /// linear in them if there is room for them, otherwise linear in all ops, which makes room.
  constexpr void number() {
    if (numbered()) return;
    if (has_room())
      fill_in();
    else
      spread();
    moved_ = count_;
    unmoved_at_ = static_cast<int>(op_at_.size()) - moved_;
    insertion_points_.clear();
  }

 private:
  int count_ = 0;
  int moved_ = 0;       ///< the number of ops that have positions of their own
  int unmoved_at_ = 0;  ///< the difference between position and number of the other ops
  op_id first_ = 0;
  bool linked_ = false;          ///< true if `next_` is in use
  vec<op_id> next_;              ///< by op; empty while the order is that of op numbers
  vec<int> position_;            ///< by op that existed at the last call of `number`
  vec<op_id> op_at_;             ///< by position, or -1
  vec<op_id> insertion_points_;  ///< the ops (-1: the front) after which ops were inserted since

  constexpr const op_id* links() const { return next_.empty() ? nullptr : next_.data(); }

  /// A run of adjacent ops without position, between two ops that have one.
  struct run {
    op_id first = -1;
    int count = 0;
    int begin = 0, end = 0;  ///< positions of the two
  };
  constexpr run run_after(op_id o) const {
    run r{o < 0 ? first_ : next_[o], 0, o < 0 ? -1 : position_[o], 0};
    op_id each = r.first;
    for (; each >= moved_; each = next_[each]) ++r.count;
    r.end = each < 0 ? static_cast<int>(op_at_.size()) : position_[each];
    return r;
  }
  constexpr void fill_in() {
    position_.resize(size(), -1);
    for (op_id o : insertion_points_) {
      const run r = run_after(o);
      const std::int64_t gap = r.end - r.begin;
      op_id each = r.first;
      for (int i = 1; i <= r.count; ++i, each = next_[each]) {
        position_[each] = r.begin + static_cast<int>(i * gap / (r.count + 1));
        op_at_[position_[each]] = each;
      }
    }
  }
  /// Reassigns all positions. At run time it leaves gaps, because later tactics may insert more
  /// ops.
  constexpr void spread() {
    const int gap = moved_ == 0 || __builtin_is_constant_evaluated() ? 1 : 4;
    position_.resize(size(), 0);
    op_at_.assign(static_cast<std::size_t>(gap) * size(), -1);
    int i = 0;
    for (op_id o = first_; o >= 0; o = next_[o], i += gap) {
      position_[o] = i;
      op_at_[i] = o;
    }
  }
};

/// A set of ops, stored as a bit set over their positions. It makes few calls because it is
/// traversed in constant evaluation.
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
  /// The first position in the set from `position` on, or -1. Cost: one step per 4096 positions.
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
  /// The last position in the set before `position`, or -1.
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
  /// Removes and returns the ops from a position on, so that they can be inserted again after their
  /// positions changed.
  constexpr vec<op_id> take_from(int position, const op_order& order) {
    vec<op_id> ops;
    for (int i = first_from(position); i >= 0; i = first_from(i + 1)) {
      ops.push_back(order.at(i));
      erase(i);
    }
    return ops;
  }

 private:
  vec<std::uint64_t> words_;
  vec<std::uint64_t> used_;  ///< by word, as bits: set if the word is not zero
  int room_ = 0;             ///< the number of bits in `words_`
  int count_ = 0;

  constexpr void make_room(const op_order& order, int position) {
    const int most = order.room() > position ? order.room() : position + 1;
    const int count = (most >> 6) + 1;
    words_.resize(static_cast<std::size_t>(count), 0);
    used_.resize(static_cast<std::size_t>((count + 63) >> 6), 0);
    room_ = 64 * count;
  }
};

}  // namespace partita
