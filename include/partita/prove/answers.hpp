/// Caches the answers of laws, so that equal questions are computed once.
#pragma once

#include <cstdint>

#include <partita/prove/laws.hpp>
#include <partita/support/segmented_vec.hpp>

namespace partita::prove_detail {

/// The tile maps of ops, with one row for all ops of the same kind, attributes and types.
struct tile_map_rows {
  factor_table map;

  constexpr int of(const site& at, vec<tensor_type>& room) {
    const std::size_t hash = key(at);
    const int known = index_.find(hash, [&](int i) { return is_alike(sites_.data()[i], at); });
    return known >= 0 ? known : add(at, hash, room);
  }
  /// True if the tile map of a row has overlapping shards.
  constexpr bool has_halo(int row) const {
    const factor* const factors = map.factors_of(row);
    for (int f = 0; f < map.ops[row].count; ++f)
      if (factors[f].halo) return true;
    return false;
  }

 private:
  vec<site> sites_;  ///< by row: its first op
  hash_index index_;

  static constexpr std::uint64_t mixed(std::uint64_t h, const tensor_type& t) {
    h = h * hash_factor + static_cast<std::uint64_t>(t.element) + 64;
    for (int d = 0; d < t.shape.rank; ++d)
      h = h * hash_factor + static_cast<std::uint64_t>(t.shape.extents[d]);
    return h ^ h >> 32;
  }
  static constexpr std::size_t key(const site& at) {
    std::uint64_t h = at.as->id + (at.branched < 0 ? 0 : 1);
    const auto attrs = at.attrs();
    const std::int64_t* const values = attrs.data();
    for (std::size_t i = 0; i < attrs.size(); ++i)
      h = mixed_hash(h, static_cast<std::uint64_t>(values[i]));
    for (int i = 0; i < at.operand_count(); ++i) h = mixed(h, at.operand_type(i));
    for (int r = 0; r < at.result_count(); ++r) h = mixed(h, at.result_type(r));
    return hash_of(h);
  }
  static constexpr bool is_alike(const site& a, const site& b) {
    if (a.as->id != b.as->id || (a.branched < 0) != (b.branched < 0) ||
        a.operand_count() != b.operand_count() || a.result_count() != b.result_count() ||
        !same_elements(a.attrs(), b.attrs()))
      return false;
    for (int i = 0; i < a.operand_count(); ++i)
      if (a.operand_type(i) != b.operand_type(i)) return false;
    for (int r = 0; r < a.result_count(); ++r)
      if (a.result_type(r) != b.result_type(r)) return false;
    return true;
  }
  constexpr int add(const site& at, std::size_t hash, vec<tensor_type>& room) {
    const int row = static_cast<int>(sites_.size());
    sites_.push_back(at);
    index_.add(hash);
    room.clear();
    for (int i = 0; i < at.operand_count(); ++i) room.push_back(at.operand_type(i));
    const auto attrs = at.attrs();
    tile_map_context c(room, at.result_type(0), attrs.data(), static_cast<int>(attrs.size()), map,
                       at.result_count());
    if (at.branched < 0)
      at.def().tile_map(c);
    else
      op::elementwise_op::tile_map(c);
    map.drop_located();  // these laws do not belong to the op itself
    return row;
  }
};

/// A question to a law: everything that the law inspects, except the identity of the terms.
struct question {
  enum kind_type : std::int8_t { contraction, any_op, moving };
  kind_type kind = any_op;
  bool swapped = false;
  int source = -1;     ///< row of the source op
  int local = -1;      ///< row of the local op
  int term = -1;       ///< result of the source op
  pending sums = {};   ///< pending sums of the operands
  pending input = {};  ///< see op_law
};
/// The answer of a law.
struct answer {
  bool good = false;
  int first_view = 0;  ///< views of the results, in the list of views
  pending sums;
  int reason = -1, near = 0;  ///< reason of a failure, in the list of reasons; see op_law
};

/// The known answers.
class answer_table {
 public:
  constexpr explicit answer_table(const meanings& all, const tile_map_rows& rows)
      : all_(all), rows_(rows) {}

  constexpr const answer* find(const question& q, span<const operand_term> given) {
    hash_ = key(q, given);
    const int known =
        index_.find(hash_, [&](int i) { return is_same(asked_.data()[i], q, given); });
    return known < 0 ? nullptr : &answers_[known];
  }
  constexpr int view(const answer& a, int r) const { return views_[a.first_view + r]; }
  /// Adds the answer to the question that was not found last. `views`: those of the results, if
  /// there is an answer.
  constexpr const answer* add(const question& q, span<const operand_term> given, answer a,
                              span<const int> views) {
    a.first_view = static_cast<int>(views_.size());
    for (std::size_t i = 0; i < views.size(); ++i) views_.push_back(views[i]);
    const int added = static_cast<int>(answers_.size());
    answers_.push_back(a);
    asked_.push_back({q, static_cast<int>(given_.size())});
    for (std::size_t i = 0; i < given.size(); ++i) given_.push_back(given[i]);
    for (int r = 0; r < results_of(q); ++r) given_.push_back({-1, all_.terms[q.term + r].own});
    index_.add(hash_);
    return &answers_[added];
  }
  constexpr void add_failure(const question& q, span<const operand_term> given, const text& reason,
                             int near) {
    add(q, given, {false, 0, {}, static_cast<int>(reasons_.size()), near}, {});
    reasons_.push_back(reason);
  }
  constexpr const text& reason(const answer& a) const { return reasons_[a.reason]; }

 private:
  struct asked {
    question what;
    int given = 0;  ///< index of the first operand
  };
  const meanings& all_;
  const tile_map_rows& rows_;
  vec<asked> asked_;
  segmented_vec<answer> answers_;
  vec<operand_term> given_;  ///< then the view of the source op's own result
  vec<int> views_;
  segmented_vec<text> reasons_;
  hash_index index_;
  std::size_t hash_ = 0;

  static constexpr std::size_t key(const question& q, span<const operand_term> given) {
    std::uint64_t h = static_cast<std::uint64_t>(q.kind) + (q.swapped ? 8 : 0) + 16u * q.sums.axes;
    h = mixed_hash(
        h, static_cast<std::uint64_t>(q.source) * 65536 + static_cast<std::uint64_t>(q.local));
    for (std::size_t i = 0; i < given.size(); ++i)
      h = h * hash_factor + static_cast<std::uint64_t>(given.data()[i].view);
    return hash_of(h);
  }
  constexpr bool is_same(const asked& a, const question& q, span<const operand_term> given) const {
    if (a.what.kind != q.kind || a.what.swapped != q.swapped || a.what.source != q.source ||
        a.what.local != q.local || a.what.sums != q.sums || a.what.input != q.input)
      return false;
    const bool any_terms = q.kind == question::moving || !rows_.has_halo(q.source);
    const operand_term* const before = given_.data() + a.given;
    for (std::size_t i = 0; i < given.size(); ++i)
      if (!is_same_operand(a.what, before[i], q, given.data()[i], static_cast<int>(i)) ||
          (!any_terms && before[i] != given.data()[i] &&
           all_.views[given.data()[i].view].rank == 0))
        return false;
    for (int r = 0; r < results_of(q); ++r)
      if (before[given.size() + static_cast<std::size_t>(r)].view != all_.terms[q.term + r].own)
        return false;
    return true;
  }
  constexpr int results_of(const question& q) const {
    return q.term < 0 ? 0 : all_.terms[q.term].at.result_count();
  }
  /// The relation between an operand and its unsharded value in the source; see find_whole.
  constexpr unsigned relation(const question& q, const operand_term& given, int i,
                              int& whole) const {
    whole = -1;
    if (q.term < 0) return 0;
    const operand_term& is = all_.terms.operand(all_.terms[q.term], i);
    const operand_term& alias = all_.terms[given.term].alias;
    whole = is.view;
    return (is.term == given.term ? 1u : 0u) | (alias.term == is.term ? 2u : 0u);
  }
  constexpr bool is_same_operand(const question& a, const operand_term& mine, const question& b,
                                 const operand_term& theirs, int i) const {
    int whole_a = -1, whole_b = -1;
    if (mine.view != theirs.view ||
        relation(a, mine, i, whole_a) != relation(b, theirs, i, whole_b) || whole_a != whole_b)
      return false;
    const term &x = all_.terms[mine.term], &y = all_.terms[theirs.term];
    return x.own == y.own && x.alias.view == y.alias.view &&
           (x.alias.term < 0) == (y.alias.term < 0) && x.shape == y.shape;
  }
};

}  // namespace partita::prove_detail
