/// Claims: what is known of the values of a program.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/answers.hpp>
#include <partita/prove/element_form.hpp>
#include <partita/prove/laws.hpp>
#include <partita/support/segmented_vec.hpp>

namespace partita::prove_detail {

/// A view number for a value of which any view of the term is as good as another one, to find out
/// which one it is seen in: of guesses alone, that are checked.
inline constexpr int open_view = -1;

/// What is known of a value: reduced over what is pending, it is so many times what a view shows of
/// a term. (Another factor than 1 is only there of floats, and of what is pending only of sums.)
struct claim {
  int term = -1, view = -1;
  pending sums;
  double scale = 1;
  int next = -1;  ///< another one of the same value

  constexpr operand_term seen() const { return {term, view}; }
  friend constexpr bool operator==(const claim& a, const claim& b) {
    return a.term == b.term && a.view == b.view && a.sums == b.sums && a.scale == b.scale;
  }
};

/// Nearer than any law comes, see workspace::explain.
inline constexpr int most_near = 8;

/// Of all values of a program, the first of their claims, or -1.
struct claim_list {
  vec<int> first;
  constexpr claim_list() = default;
  constexpr explicit claim_list(const program& p) : first(p.types.size(), -1) {}
};

/// What is written of a value so far, block by block along a dimension: on each device, blocks from
/// `first` on in the order of what a view shows of a term, which goes around; elsewhere is
/// anything.
struct written_blocks {
  claim whole;  ///< what the value is when all blocks are there
  int dim = -1;
  view start;  ///< of a block: on other devices it is so much further on
  std::int64_t block = 0, first = 0, count = 0;  ///< elements of a block; blocks
  int next = -1;  ///< another one of the same value: it may become this or that
};

/// A loop of the source, whose values are terms of their own: of what is carried nothing is known
/// but the dimensions along which it is the same, in every iteration.
struct source_loop {
  const program* p = nullptr;
  op_id op = -1;
  vec<claim> operands;      ///< the first claim of each
  vec<vec<claim>> inputs;   ///< by nested program: of each of its inputs
  vec<vec<claim>> outputs;  ///< by nested program: of each of its outputs
  int results = -1;         ///< the first of the terms
};

/// (What is said then names the collective that is missing.)
inline constexpr std::string_view an_operand_is_pending = "an operand is pending";

/// What is known while programs are gone through, and what the op that is being lifted is given.
/// The source makes terms (`defining`); a local program meets them.
struct workspace {
  constexpr workspace(const partita::mesh& m, std::int64_t most)
      : mesh(m), most_steps(most), answers(all, rows) {}
  workspace(const workspace&) = delete;

  const partita::mesh& mesh;
  std::int64_t most_steps;  ///< see prove_options
  std::int64_t steps = 0;
  const program* in = nullptr;  ///< the op that is looked at
  op_id at = -1;
  meanings all;
  segmented_vec<claim> claims;
  segmented_vec<source_loop> loops;
  segmented_vec<written_blocks> written;
  vec<int> written_of;  ///< by value of the program that is looked at: the first of these, or -1
  const program* written_in = nullptr;
  tile_map_rows rows;  ///< of the source's ops, and of local ones
  factor_table local;  ///< of one value, see set_loops
  answer_table answers;
  element_table elements;
  bool defining = true;  ///< is it the source?
  int source_terms = 0;  ///< when it is not: how many terms it has made
  int depth = 0;         ///< of loops around, whose iterations are coordinates

  vec<claim> chosen;  ///< of each operand of the op that is lifted
  vec<operand_term> given;
  bool some_open = false;              ///< is one of them?
  vec<int> heads;                      ///< the first claim of each
  vec<operand_term> element_operands;  ///< room of by_element
  vec<double> element_scales;
  vec<scaled_term> element_given;  ///< room of source_element
  law_room room;

  text reason;       ///< why the op that was lifted last has no claim: of what came nearest
  int how_near = 0;  ///< see explain
  text lost_reason;
  vec<claim> lost_operands;  ///< what is known of them
  const program* lost_in = nullptr;
  op_id lost = -1;  ///< the first op without claim whose operands have some

  constexpr void reserve(const program& source, const program& local) {
    all.terms.reserve(source.types.size());
    claims.reserve(source.types.size() + local.types.size());
  }
  /// Why there is no claim; `near`: how much was found before that. The one is kept that came
  /// nearest, of equals the last one.
  constexpr void explain(int near, const text& why) {
    if (!reason.empty() && near < how_near) return;
    reason = why;
    how_near = near;
  }
  /// The op that is looked at.
  constexpr void look_at(const program& p, op_id o) {
    in = &p;
    at = o;
    if (!reason.empty()) reason = {};
    how_near = 0;
    row_ = -1;  // (it may be another op in the same place)
  }
  /// May one more step be taken?
  constexpr bool step() {
    if (most_steps >= 0 && steps > most_steps) return false;
    ++steps;
    return most_steps < 0 || steps <= most_steps;
  }
  constexpr bool stopped() const { return most_steps >= 0 && steps > most_steps; }
  /// Is a value everywhere the identity of a combiner?
  constexpr bool is_identity(const claim& c, combiner combine) const {
    if (c.view == open_view || c.sums.any()) return false;
    if (c.scale != 1 && combine != combiner::add) return false;
    std::int64_t bits = 1;
    const operand_term s = all.scalar(c.seen());
    return s.view >= 0 && all.is_number(s, bits) &&
           partita::is_identity(bits, combine, all.terms[c.term].element);
  }

  /// Does the source make a term, in whatever shape, or what it is so many times?
  constexpr bool is_source(int t) const {
    if (all.terms[t].base >= 0) t = all.terms[t].base;
    while (all.terms[t].alias.term >= 0) t = all.terms[t].alias.term;
    return defining || t < source_terms;
  }
  /// Does a scalar other than 0 stand beyond? So many times a value has it as it is.
  constexpr bool shows_scalar(const claim& c) const {
    if (c.view == open_view) return false;
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
  /// The row of tile maps of an op (whose operands are not swapped).
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
  /// By the number of the view; of a term that is no other one in another shape.
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
  /// The source sees a term in a shape: so it does what that is made of, element by element.
  constexpr void reshape(int t, int view, const shape& s) {
    if (all.known_reshaping(t, view, s) >= 0) return;
    all.reshaping_of(t, view, s);
    if (!all.terms[t].by_element) return;
    const term of = all.terms[t];
    for (int i = 0; i < of.operand_count; ++i)
      if (const operand_term each = all.terms.operand(of, i); each.view == operand_term::by_element)
        reshape(each.term, view, s);
  }
  /// How the source sees a term of its own. (Where that repeats, a local program may pad it.)
  constexpr void own(int t, int own) {
    const partita::shape tensor = all.terms[t].shape;
    all.terms[t].own = own;
    if (!all.views[own].is_whole(tensor)) all.reshapings[all.reshaping_of(t, own, tensor)].term = t;
  }
  /// (Of what is made of positions one element is what is made of a number.)
  constexpr claim known(claim c) {
    if (c.view == open_view) return c;
    const operand_term scalar = all.scalar(c.seen());
    if (scalar.view < 0) return c;
    const operand_term made = number_at(all, scalar, c.scale);
    if (made == scalar) return c;
    view v = all.views[made.view];
    v.rank = all.views[c.view].rank;
    return {made.term, number(v, made.term), c.sums, c.scale};
  }
  /// How it sees its term, but for scalars other than 0 that it shows beyond.
  constexpr int without_scalars(const claim& c) {
    if (c.view == open_view || all.views.is_unfilled(c.view)) return c.view;
    view v = all.views[c.view];
    for (int d = 0; d < v.dims; ++d)
      if (!all.is_identity(outside::filling(v.beyond[d]), combiner::add, all.terms[c.term].element))
        v.beyond[d] = outside::unfilled(v.beyond[d]);
    return all.views.number(v);
  }
  /// The same without a factor: what stands beyond is only known where it is 0.
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
  /// Chooses what `at_` says. False: no more steps may be taken.
  template <class F>
  constexpr bool choose(const F& f) {
    if (!step()) return false;
    some_open = false;
    const int* const at = at_.data();
    for (std::size_t i = 0, count = at_.size(); i < count; ++i) {
      const claim& each = chosen.data()[i] = claims[at[i]];
      given.data()[i] = {each.term, each.view};
      some_open = some_open || each.view == open_view;
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
  /// Are there more ways to choose than claims are kept of what is made?
  constexpr bool are_many(const vec<int>& heads) const {
    int ways = 1;
    for (std::size_t i = 0; i < heads.size() && ways <= most_claims; ++i) {
      int count = 0;
      for (int c = heads.data()[i]; c >= 0; c = claims[c].next) ++count;
      ways *= count;
    }
    return ways > most_claims;
  }
  /// (The last one of a list that ends before the others stays.) False: all end.
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
  /// All ways to choose one of the claims of each list. Of many, first those that take the same
  /// place in all lists that are as long: of a value that is given twice, the same twice (of all
  /// ways together more would be made than is kept); of too many, some. (Templates stand before
  /// what calls them: else Clang does not evaluate them in a constant.)
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
  /// (Of positions, a value is a piece of what the source makes of them in any size.)
  static constexpr int most_claims_of_positions = 24, most_choices_of_positions = 64;
  constexpr int most_of(const vec<int>& heads) const {
    for (const int each : heads)
      if (all.terms[claims[each].term].counted) return most_choices_of_positions;
    return most_choices;
  }
  /// Is what another term is in a shape a scalar, and the same scalar beyond?
  constexpr bool is_one_scalar(const claim& c) const {
    const operand_term& of = all.terms[c.term].alias;
    if (c.view == open_view || all.views[of.view].count > 0) return false;
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
  /// So many times a tensor, in another shape, is so many times that tensor in this shape.
  constexpr void unscale_shape(claim& c) {
    const operand_term of = all.terms[c.term].alias;
    const int base = all.terms[of.term].base;
    if (!take_factor(c.scale, all.terms[of.term].factor)) return;
    c.view = without_scalars(c);
    c.term = all.reshaped(base, all.reshaping_of(base, of.view, all.terms[c.term].shape));
  }
  /// How many positions a claim's view, all devices together, sees too few or too many along the
  /// dimensions of its tensor; of what the source does not make, more than of all others.
  constexpr std::int64_t misfit(const claim& c) const {
    if (!is_source(c.term)) return INT64_MAX;
    if (c.view == open_view) return 0;
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
  /// Of too many claims the one that fits least is left out. (Of positions that are compared, say,
  /// the source may make tensors of many sizes, and each holds all of these that a value does.)
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
  const program* row_in_ = nullptr;  ///< the op whose row was asked for last
  op_id row_at_ = -1;
  int row_ = -1;
  vec<int> at_;  ///< of each list, the claim that is chosen
};

}  // namespace partita::prove_detail
