/// Claims: facts about the values of a program.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/answers.hpp>
#include <partita/prove/element_form.hpp>
#include <partita/prove/laws.hpp>
#include <partita/support/segmented_vec.hpp>

namespace partita::prove_detail {

/// A fact about a value: after its pending reductions, it equals a factor times what a view shows
/// of a term. Factors other than 1 exist only for floats, and pending values with a factor only for
/// sums.
struct claim {
  int term = -1, view = -1;
  pending sums;
  double scale = 1;
  int next = -1;  ///< another claim about the same value

  constexpr operand_term seen() const { return {term, view}; }
  friend constexpr bool operator==(const claim& a, const claim& b) {
    return a.term == b.term && a.view == b.view && a.sums == b.sums && a.scale == b.scale;
  }
};

/// Closer than the result of any law; see workspace::explain.
inline constexpr int most_near = 8;

/// By value of a program, its first claim, or -1.
struct claim_list {
  vec<int> first;
  constexpr claim_list() = default;
  constexpr explicit claim_list(const program& p) : first(p.types.size(), -1) {}
};

/// The written part of a value that is written block by block along a dimension. On each device,
/// blocks from `first` on contain what a view shows of a term, in its order with wraparound. The
/// other blocks are arbitrary.
struct written_blocks {
  claim whole;  ///< claim about the value when all blocks are written
  int dim = -1;
  view start;  ///< start of a block, which differs between devices
  std::int64_t block = 0, first = 0, count = 0;  ///< elements of a block; blocks
  int next = -1;  ///< another entry for the same value, which may become either
};

/// A loop of the source, whose values are separate terms. Its carried values are unknown except for
/// the dimensions along which they repeat in every iteration.
struct source_loop {
  const program* p = nullptr;
  op_id op = -1;
  vec<claim> operands;      ///< the first claim of each operand
  vec<vec<claim>> inputs;   ///< by nested program: claims about each of its inputs
  vec<vec<claim>> outputs;  ///< by nested program: claims about each of its outputs
  int results = -1;         ///< the first of the terms of its results
};

/// (The message then names the missing collective.)
inline constexpr std::string_view an_operand_is_pending = "an operand is pending";

/// The state of the checker while it visits programs, including the operands of the current op. The
/// source defines terms (`defining`); the local program refers to them.
struct workspace {
  constexpr workspace(const partita::mesh& m, std::int64_t most)
      : mesh(m), most_steps(most), answers(all, rows) {}
  workspace(const workspace&) = delete;

  const partita::mesh& mesh;
  std::int64_t most_steps;  ///< see prove_options
  std::int64_t steps = 0;
  const program* in = nullptr;  ///< program of the current op
  op_id at = -1;
  meanings all;
  segmented_vec<claim> claims;
  segmented_vec<source_loop> loops;
  segmented_vec<written_blocks> written;
  vec<int> written_of;  ///< by value of the current program: the first of its written blocks, or -1
  const program* written_in = nullptr;
  tile_map_rows rows;  ///< of source ops and local ops
  factor_table local;  ///< factors of one value, see set_loops
  answer_table answers;
  bool defining = true;  ///< true while visiting the source
  int source_terms = 0;  ///< number of terms of the source, afterwards
  int depth = 0;         ///< number of enclosing loops, whose iterations are coordinates

  vec<claim> chosen;  ///< chosen claim of each operand of the current op
  vec<operand_term> given;
  vec<int> heads;                      ///< the first claim of each operand
  vec<operand_term> element_operands;  ///< buffer of by_element
  vec<double> element_scales;
  law_room room;

  text reason;       ///< reason why the last op has no claim, from the closest attempt
  int how_near = 0;  ///< see explain
  text lost_reason;
  vec<claim> lost_operands;  ///< claims about them
  const program* lost_in = nullptr;
  op_id lost = -1;  ///< the first op without a claim whose operands have claims

  constexpr void reserve(const program& source, const program& local) {
    all.terms.reserve(source.types.size());
    claims.reserve(source.types.size() + local.types.size());
  }
  /// Records the reason for a missing claim. `near` is the progress of the attempt: the furthest
  /// one is kept, and the last of equal ones.
  constexpr void explain(int near, const text& why) {
    if (!reason.empty() && near < how_near) return;
    reason = why;
    how_near = near;
  }
  /// Makes an op the current one.
  constexpr void look_at(const program& p, op_id o) {
    in = &p;
    at = o;
    if (!reason.empty()) reason = {};
    how_near = 0;
    row_ = -1;  // it may be another op at the same address
  }
  /// Counts a step. False if the limit is reached.
  constexpr bool step() {
    if (most_steps >= 0 && steps > most_steps) return false;
    ++steps;
    return most_steps < 0 || steps <= most_steps;
  }
  constexpr bool stopped() const { return most_steps >= 0 && steps > most_steps; }
  /// True if a value is everywhere the identity of a combiner.
  constexpr bool is_identity(const claim& c, combiner combine) const {
    if (c.sums.any()) return false;
    if (c.scale != 1 && combine != combiner::add) return false;
    std::int64_t bits = 1;
    const operand_term s = all.scalar(c.seen());
    return s.view >= 0 && all.is_number(s, bits) &&
           partita::is_identity(bits, combine, all.terms[c.term].element);
  }

  /// True if the source computes a term, a reshaped version of it, or a multiple.
  constexpr bool is_source(int t) const {
    if (all.terms[t].base >= 0) t = all.terms[t].base;
    while (all.terms[t].alias.term >= 0) t = all.terms[t].alias.term;
    return defining || t < source_terms;
  }
  /// True if the padding is a scalar other than 0. Multiples of a value have it unscaled.
  constexpr bool shows_scalar(const claim& c) const {
    const view& v = all.views[c.view];
    for (int d = 0; d < v.dims; ++d)
      if (outside::filling(v.beyond[d]) != outside::unknown &&
          !all.is_identity(outside::filling(v.beyond[d]), combiner::add, all.terms[c.term].element))
        return true;
    return false;
  }
  constexpr void add(claim_list& to, value_id v, claim c) {
    const term* made = &all.terms[c.term];
    const bool linear = !c.sums.any() || c.sums.combine == combiner::add;
    if (!is_factor(c.scale)) return;
    if (made->base >= 0 && linear && (c.scale != 1 || !shows_scalar(c)) &&
        take_factor(c.scale, made->factor)) {
      c.view = without_scalars(c);
      c.term = made->base;
      made = &all.terms[c.term];
    }
    if (made->alias.term >= 0 && is_one_scalar(c)) {
      const operand_term of = made->alias;
      view v = all.views[of.view];
      v.rank = all.views[c.view].rank;
      c.view = all.views.number(v);
      c.term = of.term;
      made = &all.terms[c.term];
    }
    if (const operand_term& of = made->alias; of.term >= 0 && all.terms[of.term].base >= 0 &&
                                              linear && (c.scale != 1 || !shows_scalar(c)) &&
                                              !shows_scalar({of.term, of.view, {}}))
      unscale_shape(c);
    if (c.scale != 1 && all.terms[c.term].number) {
      c.term = all.scaled(c.term, c.scale);
      c.scale = 1;
    }
    int last = -1, count = 0;
    const int most = all.terms[c.term].counted ? most_claims_of_positions : most_claims;
    for (int i = to.first[v]; i >= 0; i = claims[i].next) {
      if (claims[i] == c) return;
      if (++count == most) return replace_misfit(to, v, c);
      last = i;
    }
    claims.push_back(c);
    claims.back().next = -1;
    (last < 0 ? to.first[v] : claims[last].next) = static_cast<int>(claims.size()) - 1;
  }
  constexpr int number(view v, int term) {
    const partita::shape& tensor = all.terms[term].shape;
    v.normalize(tensor);
    if (all.terms[term].own >= 0 && see_once(v, all.views[all.terms[term].own], tensor))
      v.normalize(tensor);
    return all.views.number(v);
  }
  /// The row of tile maps of an op (with its operands in the original order).
  constexpr int row_of(const site& at) {
    if (at.branched >= 0) return rows.of(at, room.types);
    if (row_ < 0 || row_in_ != at.p || row_at_ != at.op) {
      row_ = rows.of(site(*at.p, at.op), room.types);
      row_in_ = at.p;
      row_at_ = at.op;
    }
    return row_;
  }
  constexpr const factor_table& map() const { return rows.map; }
  constexpr bool can_be_seen(const view& v, int term) const {
    return v.good() && !fills_positions(v, all.terms[term].shape);
  }
  /// Adds a claim by the number of its view, for a term that is not a reshaped one.
  constexpr void add_seen(claim_list& to, value_id v, int term, int seen, pending sums,
                          double scale) {
    add(to, v, known({term, seen, sums, scale}));
  }
  constexpr void add(claim_list& to, value_id v, int term, const view& seen, pending sums,
                     double scale = 1) {
    if (!can_be_seen(seen, term)) return;
    add_seen(to, v, term, number(seen, term), sums, scale);
    const operand_term& alias = all.terms[term].alias;
    view through;
    if (alias.term >= 0 && see_through(all.views[alias.view], all.terms[term].shape, seen,
                                       all.terms[alias.term].shape, through))
      add(to, v, alias.term, through, sums, scale);
  }
  /// Records that the source sees a term in a shape. Its operands are then seen in this shape,
  /// element by element.
  constexpr void reshape(int t, int view, const shape& s) {
    if (all.known_reshaping(t, view, s) >= 0) return;
    all.reshaping_of(t, view, s);
    if (!all.terms[t].by_element) return;
    const term of = all.terms[t];
    for (int i = 0; i < of.operand_count; ++i)
      if (const operand_term each = all.terms.operand(of, i); each.view == operand_term::by_element)
        reshape(each.term, view, s);
  }
  /// Records how the source sees its own term. If that repeats, a local program may pad it.
  constexpr void own(int t, int own) {
    const partita::shape tensor = all.terms[t].shape;
    all.terms[t].own = own;
    if (!all.views[own].is_whole(tensor)) all.reshapings[all.reshaping_of(t, own, tensor)].term = t;
  }
  /// (An element of a result computed from positions is the result for one number.)
  constexpr claim known(claim c) {
    const operand_term scalar = all.scalar(c.seen());
    if (scalar.view < 0) return c;
    const operand_term made = number_at(all, scalar, c.scale);
    if (made == scalar) return c;
    view v = all.views[made.view];
    v.rank = all.views[c.view].rank;
    return {made.term, number(v, made.term), c.sums, c.scale};
  }
  /// The view of a claim's term without scalars other than 0 as padding.
  constexpr int without_scalars(const claim& c) {
    if (all.views.is_unfilled(c.view)) return c.view;
    view v = all.views[c.view];
    for (int d = 0; d < v.dims; ++d)
      if (!all.is_identity(outside::filling(v.beyond[d]), combiner::add, all.terms[c.term].element))
        v.beyond[d] = outside::unfilled(v.beyond[d]);
    return all.views.number(v);
  }
  /// The claim without its factor: the padding is then only known if it is 0.
  constexpr claim unscaled(claim c) {
    if (c.scale == 1) return c;
    return {all.scaled(c.term, c.scale), without_scalars(c), c.sums};
  }
  constexpr void unscale() {
    for (std::size_t i = 0; i < chosen.size(); ++i) {
      chosen[i] = unscaled(chosen[i]);
      given[i] = chosen[i].seen();
    }
  }

 private:
  /// Uses the claims chosen by `at_`. False if the limit of steps is reached.
  template <class F>
  constexpr bool choose(const F& f) {
    if (!step()) return false;
    const int* const at = at_.data();
    for (std::size_t i = 0, count = at_.size(); i < count; ++i) {
      const claim& each = chosen.data()[i] = claims[at[i]];
      given.data()[i] = {each.term, each.view};
    }
    f();
    return true;
  }
  constexpr bool next_choice(const int* head) {
    int* const at = at_.data();
    for (std::size_t i = 0, count = at_.size(); i < count; ++i) {
      at[i] = claims[at[i]].next;
      if (at[i] >= 0) return true;
      at[i] = head[i];
    }
    return false;
  }
  /// True if there are more combinations than claims that are kept per result.
  constexpr bool are_many(const vec<int>& heads) const {
    int ways = 1;
    for (std::size_t i = 0; i < heads.size() && ways <= most_claims; ++i) {
      int count = 0;
      for (int c = heads.data()[i]; c >= 0; c = claims[c].next) ++count;
      ways *= count;
    }
    return ways > most_claims;
  }
  /// Moves to the next place of all lists; a shorter list stays at its last claim. False if all
  /// lists have ended.
  constexpr bool next_place() {
    bool any = false;
    for (int& each : at_) {
      if (claims[each].next < 0) continue;
      each = claims[each].next;
      any = true;
    }
    return any;
  }

 public:
  /// Visits the combinations of one claim from each list. If there are many, it starts with the
  /// same place in all lists of equal length, so that an operand that occurs twice uses the same
  /// claim twice; more combinations would exceed the claims that are kept. If there are too many,
  /// it visits some. Templates are defined before their callers because otherwise Clang does not
  /// evaluate them in a constant expression.
  template <class F>
  constexpr void for_each_choice(const vec<int>& heads, const F& f) {
    const int* const head = heads.data();
    const std::size_t count = heads.size();
    for (std::size_t i = 0; i < count; ++i)
      if (head[i] < 0) return;
    at_ = heads;
    chosen.resize(count);
    given.resize(count);
    int tries = 0;
    if (count > 1 && are_many(heads)) {
      do {
        if (!choose(f)) return;
      } while (next_place());
      at_ = heads;
      tries = 1;
      if (!next_choice(head)) return;
    }
    do {
      if (tries >= most_choices && tries == most_of(heads)) return;
      ++tries;
      if (!choose(f)) return;
    } while (next_choice(head));
  }

  constexpr void note_lost(const program& p, op_id o, const claim_list& of, const text& why) {
    for (value_id v : p.operands(o))
      if (of.first[v] < 0) return;
    lost_in = &p;
    lost = o;
    lost_reason = why;
    lost_operands.clear();
    for (value_id v : p.operands(o)) lost_operands.push_back(claims[of.first[v]]);
  }

 private:
  static constexpr int most_claims = 8, most_choices = 32;
  /// (For positions, a value is a shard of positions of any size in the source.)
  static constexpr int most_claims_of_positions = 24, most_choices_of_positions = 64;
  constexpr int most_of(const vec<int>& heads) const {
    for (const int each : heads)
      if (all.terms[claims[each].term].counted) return most_choices_of_positions;
    return most_choices;
  }
  /// True if a reshaped term is a scalar with the same scalar as padding.
  constexpr bool is_one_scalar(const claim& c) const {
    const operand_term& of = all.terms[c.term].alias;
    if (all.views[of.view].count > 0) return false;
    const operand_term scalar = all.scalar(of);
    const view& v = all.views[c.view];
    bool beyond = false;
    for (int d = 0; d < v.dims; ++d) {
      if (!v.reaches_beyond(d, all.terms[c.term].shape.extents[d])) continue;
      const std::int64_t fill = outside::filling(v.beyond[d]);
      if (fill < outside::first_value ||
          all.scalars[static_cast<int>(fill - outside::first_value)] != scalar)
        return false;
      beyond = true;
    }
    return beyond;
  }
  /// Moves a factor out of a reshaped tensor: a multiple of it in another shape is the multiple of
  /// the tensor in this shape.
  constexpr void unscale_shape(claim& c) {
    const operand_term of = all.terms[c.term].alias;
    const int base = all.terms[of.term].base;
    if (!take_factor(c.scale, all.terms[of.term].factor)) return;
    c.view = without_scalars(c);
    c.term = all.reshaped(base, all.reshaping_of(base, of.view, all.terms[c.term].shape));
  }
  /// The number of positions by which a claim's view, over all devices, differs from its tensor.
  /// Terms that the source does not compute rank after all others.
  constexpr std::int64_t misfit(const claim& c) const {
    if (!is_source(c.term)) return INT64_MAX;
    const view& v = all.views[c.view];
    checked sum = 0;
    for (int d = 0; d < v.dims; ++d) {
      const std::int64_t extent = all.terms[c.term].shape.extents[d];
      checked seen = 1;
      for (int i = 0; i < v.count; ++i)
        if (v.digits[i].dim == d) seen = seen * v.digits[i].extent;
      const std::int64_t n = seen.value_or(max_elements);
      sum = sum + (n < extent ? extent - n : n - extent);
    }
    return sum.value_or(INT64_MAX - 1);
  }
  /// Drops the claim with the largest misfit if there are too many. For example, the source may
  /// have positions of many sizes, and each contains all positions that a value holds.
  constexpr void replace_misfit(claim_list& to, value_id v, claim c) {
    int worst = -1;
    std::int64_t most = misfit(c);
    for (int i = to.first[v]; i >= 0; i = claims[i].next) {
      const std::int64_t mine = misfit(claims[i]);
      if (mine <= most) continue;
      most = mine;
      worst = i;
    }
    if (worst < 0) return;
    c.next = claims[worst].next;
    claims[worst] = c;
  }
  const program* row_in_ = nullptr;  ///< program of the op whose row was requested last
  op_id row_at_ = -1;
  int row_ = -1;
  vec<int> at_;  ///< by list: index of the chosen claim
};

}  // namespace partita::prove_detail
