/// Other ops: the source defines terms, and local ops are matched with them by the laws of the ops.
#pragma once

#include <cstdint>

#include <partita/prove/elementwise.hpp>
#include <partita/prove/partial.hpp>
#include <partita/prove/starts.hpp>

namespace partita::prove_detail {

/// True if both ops have the same precision or accuracy (see op/numerics.hpp). If the operands of a
/// product are swapped, their precisions are swapped, too.
constexpr bool same_numerics(const site& a, const site& b) {
  const auto of = [](const site& s) {
    return s.op < 0 ? span<const std::int64_t>() : s.p->numerics(s.op);
  };
  const auto x = of(a), y = of(b);
  if (x.empty() && y.empty()) return true;
  if (a.swapped == b.swapped) return same_elements(x, y);
  product_precision p;
  vec<std::int64_t> turned;
  if (!product_precision::load(x, p)) return false;
  p.swapped().store(turned);
  return same_elements(span<const std::int64_t>(turned), y);
}
/// True if attributes are equal except for dimension numbers.
constexpr bool same_attributes(const site& a, const site& b) {
  if (a.def().id == def<op::dot_general>.id) return true;
  if (a.def().id == def<op::reduce>.id) return a.attrs()[0] == b.attrs()[0];
  return same_elements(a.attrs(), b.attrs());
}

/// The result of the source's op t on parts of its factors, if it is a contraction.
constexpr answer contract(workspace& w, const site& at, int t, const pending& sums) {
  const question asked{question::contraction, at.swapped, w.all.terms[t].factors,
                       w.row_of(at),          t,          sums};
  if (const answer* const known = w.answers.find(asked, w.given); known != nullptr) return *known;
  answer a;
  a.sums = sums;
  view result;
  contraction_law law(w.all, w.room, t, w.map(), w.map(), asked.local, at.swapped, w.given);
  a.good = law.apply(at.result_type(0).shape.rank, result, a.sums);
  const int seen = a.good && w.can_be_seen(result, t) ? w.number(result, t) : -1;
  return *w.answers.add(asked, w.given, a, {&seen, 1});
}
/// Stores the results of a law for later equal ops.
constexpr const answer* remember(workspace& w, const question& asked, const vec<view>& results,
                                 answer given) {
  vec<int>& seen = w.room.later;
  seen.clear();
  for (int r = 0; r < static_cast<int>(results.size()); ++r) {
    if (!w.can_be_seen(results[r], asked.term + r)) return nullptr;
    seen.push_back(w.number(results[r], asked.term + r));
  }
  given.good = true;
  return w.answers.add(asked, w.given, given, {seen.data(), seen.size()});
}
/// Uses the stored answer for an equal op. False if it has no result in the source.
constexpr bool take(workspace& w, const site& at, const question& asked, const answer& known,
                    double scale, claim_list& to) {
  if (!known.good) w.explain(known.near, w.answers.reason(known));
  for (int r = 0; known.good && r < at.result_count(); ++r)
    w.add_seen(to, at.result(r), asked.term + r, w.answers.view(known, r), known.sums, scale);
  return known.good;
}

/// Finds the result of an op among the terms of the source.
constexpr bool meet(workspace& w, const site& at, double scale, claim_list& to) {
  const tensor_type& type = at.result_type(0);
  bool met = false;
  int t = w.all.terms.first_candidate(at.def(), w.given);
  if (t < 0 && w.reason.empty())
    w.explain(0, concat("the source has no such op with these operands"));
  for (; t >= 0 && w.step(); t = w.all.terms[t].next) {
    if (w.all.terms[t].element != type.element ||
        w.all.terms[t].at.result_count() != at.result_count())
      continue;
    if (!same_numerics(w.all.terms[t].at, at)) {
      text why = "it is computed with ";
      print_numerics(why, at.p->numerics(at.op));
      why << ", in the source with ";
      const site& source = w.all.terms[t].at;
      print_numerics(why, source.p->numerics(source.op));
      w.explain(2, why);
      continue;
    }
    pending sums, input;
    if (!starts_once(w, at, input) && !joint_sums(w, *at.p, at.op, sums)) {
      w.explain(1, concat(an_operand_is_pending));
      continue;
    }
    if (same_attributes(w.all.terms[t].at, at) && has_loops(at)) {
      if (const answer made = contract(w, at, t, sums); made.good) {
        if (const int seen = w.answers.view(made, 0); seen >= 0)
          w.add_seen(to, at.result(0), t, seen, made.sums, scale);
        met = true;
        continue;
      }
      if (contract_partly(w, at, t, scale, to)) {
        met = true;
        continue;
      }
    }
    if (sums.contains(bound_axis)) {
      w.explain(1, concat("an operand is a partial sum"));
      continue;
    }
    if (at.swapped && at.def().id == def<op::dot_general>.id) continue;  // other attributes
    question asked{question::any_op, at.swapped, w.all.terms[t].factors, w.row_of(at), t, sums};
    asked.input = input;
    if (const answer* const known = w.answers.find(asked, w.given); known != nullptr) {
      met = take(w, at, asked, *known, scale, to) || met;
      continue;
    }
    op_law law(w.all, w.room, t, w.map(), at, w.given);
    law.input = input;
    vec<view> results;
    if (!law.apply(results, sums)) {
      w.explain(law.near, law.reason);
      w.answers.add_failure(asked, w.given, law.reason, law.near);
      continue;
    }
    remember(w, asked, results, {true, 0, sums});
    for (int r = 0; r < at.result_count(); ++r)
      w.add(to, at.result(r), t + r, results[r], sums, scale);
    met = true;
  }
  return met;
}

constexpr bool some_operand_repeats(const workspace& w, const site& at) {
  for (int i = 0; i < at.operand_count(); ++i) {
    const shape& s = at.operand_type(i).shape;
    if (s.has_no_elements()) return true;
    for (int d = 0; d < s.rank; ++d)
      if (s.extents[d] > 1 && w.all.views[w.given[i].view].repeats(d)) return true;
  }
  return false;
}

/// Asks how the source sees the result of its op if operands repeat. Returns an answer or null.
constexpr const answer* ask_repeated(workspace& w, const site& at, int t) {
  const int row = w.all.terms[t].factors;
  const question asked{question::any_op, false, row, row, t, {}};
  if (const answer* const known = w.answers.find(asked, w.given); known != nullptr) return known;
  op_law law(w.all, w.room, t, w.map(), at, w.given);
  vec<view> repeated;
  pending none;
  return law.apply(repeated, none) ? remember(w, asked, repeated, {}) : nullptr;
}
constexpr int define(workspace& w, const site& at) {
  const int t = w.all.terms.make(at, w.given, false, at.result_type(0));
  w.all.terms[t].factors = w.row_of(at);
  const answer* const repeated = some_operand_repeats(w, at) ? ask_repeated(w, at, t) : nullptr;
  for (int r = 0; r < at.result_count(); ++r)
    w.own(t + r, repeated != nullptr ? w.answers.view(*repeated, r)
                                     : w.number(view(at.result_type(r).shape), t + r));
  return t;
}

/// Handles an op that the source applies to the same operands.
constexpr bool is_known(workspace& w, const site& at, double scale, claim_list& to) {
  for (const auto& c : w.chosen)
    if (c.sums.any()) return false;
  const int t = w.all.terms.find(at, w.given, false, at.result_type(0));
  if (t < 0) return false;
  for (int r = 0; r < at.result_count(); ++r)
    w.add(to, at.result(r), {t + r, w.all.terms[t + r].own, {}, scale});
  return true;
}

/// True if an operand is computed from positions. Its results may be shards of a smaller tensor,
/// too.
constexpr bool counts_from(const workspace& w) {
  for (const auto& c : w.chosen)
    if (w.all.terms.is_positions(c.term)) return true;
  return false;
}

constexpr void by_law(workspace& w, const site& at, claim_list& to) {
  const double scale = joint_scale(w, at);
  if (w.defining) {
    if (w.all.terms.find(at, w.given, false, at.result_type(0)) < 0) define(w, at);
    is_known(w, at, scale, to);
    return;
  }
  if (is_known(w, at, scale, to)) {
    if (counts_from(w)) meet(w, at, scale, to);
    return;
  }
  if (meet(w, at, scale, to) || reduce_partly(w, at, scale, to) ||
      (scale == 1 && rows_law(w, at, to).apply()))
    return;
  if (!commutes(at.def()) && at.def().id != def<op::compare>.id &&
      at.def().id != def<op::dot_general>.id)
    return;
  const operand_term first = w.given[0];
  w.given[0] = w.given[1];
  w.given[1] = first;
  site swapped = at;
  swapped.swapped = true;
  meet(w, swapped, scale, to);
}

}  // namespace partita::prove_detail
