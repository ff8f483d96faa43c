/// What elementwise ops of the source make, by what they are given.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/prove/terms.hpp>

namespace partita::prove_detail {

/// Is it all of a tensor, as it is?
constexpr bool sees_whole(const view& v, const shape& tensor) {
  if (v.rank != tensor.rank || v.dims != tensor.rank) return false;
  int next = 0;
  for (int d = 0; d < v.dims; ++d) {
    if (v.start[d] != 0) return false;
    if (tensor.extents[d] == 1) continue;
    if (next == v.count) return false;
    const digit& each = v.digits[next++];
    if (each.owner != d || each.dim != d || each.extent != tensor.extents[d] || each.stride != 1)
      return false;
  }
  return next == v.count;
}

/// Ops of tensors (`by_element`) that the source sees as they are, and of scalars, by kind,
/// attributes, type and what they are given: what they make, seen as it is.
class element_table {
 public:
  constexpr const scaled_term* find(const site& at, span<const scaled_term> given) {
    hash_ = key(at, given);
    const std::size_t* const hashes = hashes_.data();
    const int known = table_.find(
        hash_, [&](int i) { return hashes[i] == hash_ && is_same(entries_.data()[i], at, given); });
    return known < 0 ? nullptr : &entries_.data()[known].made;
  }
  /// Of what was not found last.
  constexpr void add(const site& at, span<const scaled_term> given, const scaled_term& made) {
    entries_.push_back({at, static_cast<int>(given_.size()), made});
    for (std::size_t i = 0; i < given.size(); ++i) given_.push_back(given.data()[i]);
    hashes_.push_back(hash_);
    table_.insert(static_cast<int>(entries_.size()) - 1, [&](int i) { return hashes_[i]; });
  }

 private:
  struct entry {
    site at;
    int given = 0;  ///< the first of what it is given
    scaled_term made;
  };
  vec<entry> entries_;
  vec<scaled_term> given_;
  vec<std::size_t> hashes_;
  place_table table_;
  std::size_t hash_ = 0;

  static constexpr std::size_t key(const site& at, span<const scaled_term> given) {
    std::uint64_t h = at.as->id + static_cast<std::uint64_t>(at.result_type(0).element);
    const scaled_term* const list = given.data();
    const std::size_t count = given.size();
    for (std::size_t i = 0; i < count; ++i)
      h = mixed_hash(h, static_cast<std::uint64_t>(list[i].of.term) * 64 +
                            static_cast<std::uint64_t>(list[i].of.view) +
                            std::bit_cast<std::uint64_t>(list[i].scale));
    return hash_of(h);
  }
  constexpr bool is_same(const entry& e, const site& at, span<const scaled_term> given) const {
    if (e.at.as->id != at.as->id || e.at.result_type(0).element != at.result_type(0).element ||
        e.at.of->operand_count != at.of->operand_count || !same_elements(e.at.attrs(), at.attrs()))
      return false;
    const scaled_term *const mine = given_.data() + e.given, *const other = given.data();
    for (int i = 0; i < at.of->operand_count; ++i)
      if (mine[i].of != other[i].of || mine[i].scale != other[i].scale) return false;
    return true;
  }
};

}  // namespace partita::prove_detail
