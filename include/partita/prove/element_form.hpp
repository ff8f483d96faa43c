/// The normal form of elementwise ops on terms.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/op/registry.hpp>
#include <partita/prove/numbers.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita::prove_detail {

constexpr bool commutes(const op_def& d) {
  switch (d.id) {
    case def<op::add>.id:
    case def<op::multiply>.id:
    case def<op::maximum>.id:
    case def<op::minimum>.id:
    case def<op::logical_and>.id:
    case def<op::logical_or>.id:
    case def<op::logical_xor>.id:
      return true;
    default:
      return false;
  }
}
/// True if repeated operands count once.
constexpr bool is_idempotent(const op_def& d) {
  return commutes(d) && d.id != def<op::add>.id && d.id != def<op::multiply>.id &&
         d.id != def<op::logical_xor>.id;
}

/// The normal form of an elementwise op on terms with equal views and on scalars.
///
/// Law       a + (b + c) = c + (a + b), likewise *, max, min, and, or, xor; max(a, a) = a, likewise
///           min, and, or; a > b = b < a; clamp(1, a, 2) = min(2, max(1, a)) = max(1, min(2, a)).
///           For floats, as real numbers: a - b = a + (-1) b, a / 4 = 0.25 a, (2 a) (3 b) = 6 (a
///           b), 2 a + 3 a = 5 a, 2 a + 4 b = 2 (a + 2 b), a + 0 = a, max(a, -inf) = a, c ? 2 a : 0
///           = 2 (c ? a : 0). For integers and flags that are known or in a known range
///           (numbers.hpp): 1 + 2 = 3, 1 < 2 is true, max(a, 1) < 0 is false, max(max(a, 1), 0) =
///           max(a, 1); true & a = a, false & a = false; true ? a : b = a, a ? b : b = b; for a
///           flag a, (a ? 1 : 0) > 0 is a
class element_form {
  using operand = scaled_term;

 public:
  /// (Only elements inside of the terms count: their range is known.)
  constexpr element_form(meanings& all, const site& at) : all_(all), at_(at) {
    if (all_.spare.empty()) return;
    operands_ = static_cast<vec<operand>&&>(all_.spare.back());
    all_.spare.pop_back();
    operands_.clear();
  }
  element_form(const element_form&) = delete;
  constexpr ~element_form() { all_.spare.push_back(static_cast<vec<operand>&&>(operands_)); }

  constexpr void add(const operand_term& of, double scale) {
    operands_.push_back(based(of, scale));
  }

  /// `of`: the space of the terms. Returns the operand and its factor.
  constexpr operand_term make(const tensor_type& of, double& scale) {
    scale = 1;
    operand known;
    if (fold_all(of, known) || choose(known) || test_flag(of, known)) {
      scale = known.scale;
      return known.of;
    }
    if (is_floating(of.element)) take_factors(scale);
    if (at_.as->id == def<op::clamp>.id && in_order(operands_[0], operands_[2]))
      return clamped(operands_[2], operands_[1], operands_[0], of, scale);
    const op_def& d = *at_.as;
    if (commutes(d)) {
      flatten(scale);
      fold_some(of);
      drop_neutral();
      sort();
      if (is_idempotent(d)) drop_equal();
      if (d.id == def<op::add>.id && is_floating(of.element)) collect(scale);
      if (operands_.size() == 1)
        return take_factor(scale, operands_[0].scale) ? operands_[0].of : scaled(operands_[0]);
      if (operand inner[2]; d.id == def<op::minimum>.id && is_clamp(inner))
        return clamped(operands_[at_number_], inner[0], inner[1], of, scale);
    } else if (d.id == def<op::compare>.id) {
      turn();
    }
    vec<operand_term>& list = all_.room;  // (no other form is built before it is used)
    list.clear();
    for (const auto& each : operands_) list.push_back(each.scale == 1 ? each.of : scaled(each));
    const int t = all_.terms.find(at_, list, true, of);
    return {t >= 0 ? t : all_.terms.make(at_, list, true, of)};
  }

 private:
  static constexpr std::size_t most_operands = 64;
  static constexpr auto one = std::bit_cast<std::int64_t>(1.0);

  meanings& all_;
  site at_;
  vec<operand> operands_;
  std::size_t at_number_ = 0;  ///< see is_clamp

  constexpr bool is_exact(const operand& each, std::int64_t& n) const {
    return prove_detail::is_exact(all_, each.of, each.scale, n);
  }
  constexpr bool is_flag(const operand& each) const {
    return all_.terms[each.of.term].element == dtype::boolean;
  }
  constexpr integer_range range_of(const operand& each) const {
    std::int64_t n = 0;
    if (is_exact(each, n)) return {n, n};
    return is_floating(all_.terms[each.of.term].element) ? integer_range{}
                                                         : range_finder(all_).of(each.of);
  }
  /// Folds operands that are numbers, and comparisons that are always true or always false.
  constexpr bool fold_all(const tensor_type& of, operand& made) {
    std::int64_t x[2] = {}, n = 0;
    const operand* const list = operands_.data();
    const std::size_t count = operands_.size();
    bool numbers = count == 1 || count == 2;
    for (std::size_t i = 0; numbers && i < count; ++i)
      numbers = list[i].of.view != operand_term::by_element && is_exact(list[i], x[i]);
    if (numbers && fold_exactly(at_, element(), of.element, x[0], x[1], n)) {
      made = {exact_number(all_, n, of.element)};
      return true;
    }
    if (at_.as->id != def<op::compare>.id) return false;
    const integer_range a = range_of(operands_[0]), b = range_of(operands_[1]);
    bool holds = false;
    if (a.empty() || b.empty() ||
        !is_decided(static_cast<ops::direction>(at_.attrs()[0]), a, b, holds))
      return false;
    made = {exact_number(all_, holds ? 1 : 0, of.element)};
    return true;
  }
  /// Folds a select by a known flag, or with two equal operands.
  constexpr bool choose(operand& made) const {
    std::int64_t flag = 0;
    if (at_.as->id != def<op::select>.id) return false;
    const operand &a = operands_[1], &b = operands_[2];
    const bool known = is_exact(operands_[0], flag);
    if (!known && (a.of != b.of || a.scale != b.scale)) return false;
    made = known && flag == 0 ? b : a;
    return true;
  }
  /// True if it is a flag converted to a number. Returns the flag.
  constexpr bool is_converted_flag(const operand& each, operand& flag) const {
    if (each.scale != 1 || !is_made_by(each, def<op::convert>)) return false;
    flag = {inner(each, 0)};
    return is_flag(flag);
  }
  /// True if it is computed by the same op, so that its operands can be operands of this op. (A
  /// negative factor turns a maximum into a minimum; for products, factors are removed before.)
  constexpr bool is_part(const operand& each) const {
    const std::uint64_t id = at_.as->id;
    const bool extreme = id == def<op::maximum>.id || id == def<op::minimum>.id;
    return is_made_by(each, at_.def()) &&
           (each.scale == 1 || id == def<op::add>.id || (extreme && each.scale > 0));
  }
  /// True if it is the elementwise result of an op on other terms with the same view.
  constexpr bool is_made_by(const operand& each, const op_def& d) const {
    const term& of = all_.terms[each.of.term];
    return of.by_element && all_.terms.is(each.of.term, d) &&
           (each.of.view == operand_term::by_element ||
            !all_.views.reaches_beyond(each.of.view, of.shape));
  }
  constexpr operand_term inner(const operand& each, int i) const {
    const operand_term of = all_.terms.operand(all_.terms[each.of.term], i);
    return of.view == operand_term::by_element ? operand_term{of.term, each.of.view} : of;
  }
  /// Simplifies comparisons of a converted flag with a number: the result is that flag or its
  /// negation. Two conversions become one.
  constexpr bool test_flag(const tensor_type& of, operand& made) {
    const std::uint64_t id = at_.as->id;
    if (id != def<op::convert>.id && id != def<op::compare>.id) return false;
    operand flag;
    std::int64_t n = 0;
    if (id == def<op::convert>.id && is_converted_flag(operands_[0], flag)) {
      operands_[0] = made = flag;
      return of.element == dtype::boolean;
    }
    for (int i = 0; i < 2 && id == def<op::compare>.id; ++i) {
      if (!is_converted_flag(operands_[i], flag) || !is_exact(operands_[1 - i], n)) continue;
      const auto is = static_cast<ops::direction>(at_.attrs()[0]);
      const bool if_true = i == 0 ? is_true(is, 1, n) : is_true(is, n, 1);
      const bool if_false = i == 0 ? is_true(is, 0, n) : is_true(is, n, 0);
      if (if_true == if_false) {
        made = {exact_number(all_, if_true ? 1 : 0, dtype::boolean)};
      } else if (if_true) {
        made = flag;
      } else {
        element_form negated(all_, site(def<op::logical_not>));
        negated.operands_.push_back(flag);
        made = {negated.make({dtype::boolean, of.shape}, made.scale)};
      }
      return true;
    }
    return false;
  }
  /// Folds the numbers of a commutative op into one, and removes redundant operands. Quadratic in
  /// the operands, which are few.
  constexpr void fold_some(const tensor_type& of) {
    if (operands_.size() > most_operands || !some_join(of)) return;
    vec<operand> kept;
    for (operand each : operands_) {
      for (std::size_t i = 0; i < kept.size(); ++i) {
        operand both;
        if (!join(of, kept[i], each, both)) continue;
        each = both;
        kept[i] = kept.back();
        kept.pop_back();
        i = static_cast<std::size_t>(-1);  // it may now join with an earlier one
      }
      kept.push_back(each);
    }
    operands_ = kept;
  }
  static constexpr bool is_scalar(const operand& each) {
    return each.of.view != operand_term::by_element;
  }
  /// (For NaN, only maximum and minimum are joined.)
  constexpr bool some_join(const tensor_type& of) const {
    operand both;
    const operand* const list = operands_.data();
    const std::size_t count = operands_.size();
    const bool extreme = at_.as->id == def<op::maximum>.id || at_.as->id == def<op::minimum>.id;
    for (std::size_t i = 0; i < count; ++i)
      for (std::size_t k = 0; k < i; ++k)
        if ((extreme || is_scalar(list[k]) || is_scalar(list[i])) &&
            join(of, list[k], list[i], both))
          return true;
    return false;
  }
  /// True if combining anything with this flag returns the flag.
  constexpr bool absorbs(std::int64_t flag) const {
    const std::uint64_t id = at_.def().id;
    return flag == 0 ? id == def<op::logical_and>.id || id == def<op::minimum>.id
                     : id == def<op::logical_or>.id || id == def<op::maximum>.id;
  }
  constexpr bool join(const tensor_type& of, const operand& a, const operand& b,
                      operand& both) const {
    std::int64_t x = 0, y = 0, n = 0;
    const bool is_x = is_exact(a, x), is_y = is_exact(b, y);
    if (is_x && is_y && fold_exactly(at_, of.element, of.element, x, y, n)) {
      both = {exact_number(all_, n, of.element)};
      return true;
    }
    if (is_flag(a) && (is_x || is_y)) {
      if (!absorbs(is_x ? x : y)) return false;
      both = is_x ? a : b;
      return true;
    }
    if (at_.def().id != def<op::maximum>.id && at_.def().id != def<op::minimum>.id) return false;
    const integer_range r = range_of(a), s = range_of(b);
    if (r.empty() || s.empty()) return false;
    const bool greatest = at_.def().id == def<op::maximum>.id;
    const bool first = greatest ? r.least >= s.greatest : r.greatest <= s.least;
    const bool second = greatest ? s.least >= r.greatest : s.greatest <= r.least;
    if (first || second) both = first ? a : b;
    return first || second;
  }

  constexpr bool is_known(const operand& each, double& value) const {
    std::int64_t bits = 0;
    if (each.of.view == operand_term::by_element || !all_.is_number(each.of, bits)) return false;
    const bool real = is_floating(all_.terms[each.of.term].element);
    value = real ? std::bit_cast<double>(bits) : static_cast<double>(bits);
    return !real || take_number(value, each.scale);
  }
  constexpr bool in_order(const operand& low, const operand& high) const {
    const dtype t = all_.terms[low.of.term].element;
    std::int64_t m = 0, n = 0;
    if (is_integer(t))
      return is_scalar(low) && is_scalar(high) && all_.is_number(low.of, m) &&
             all_.is_number(high.of, n) &&
             (is_unsigned(t) ? static_cast<std::uint64_t>(m) <= static_cast<std::uint64_t>(n)
                             : m <= n);
    double a = 0, b = 0;
    return is_known(low, a) && is_known(high, b) && a <= b;
  }
  /// True if one operand is a number and the other is the maximum of something and a number not
  /// above the first. Returns the two.
  constexpr bool is_clamp(operand* clamped) {
    for (at_number_ = 0; operands_.size() == 2 && at_number_ < 2; ++at_number_) {
      const operand& other = operands_[1 - at_number_];
      const term& of = all_.terms[other.of.term];
      if (other.scale != 1 || of.operand_count != 2 || !is_made_by(other, def<op::maximum>))
        continue;
      for (int i = 0; i < 2; ++i) {
        clamped[0] = based(inner(other, 1 - i), 1);
        clamped[1] = based(inner(other, i), 1);
        if (in_order(clamped[1], operands_[at_number_])) return true;
      }
    }
    return false;
  }
  constexpr operand_term clamped(const operand& high, const operand& x, const operand& low,
                                 const tensor_type& of, double& scale) {
    element_form least(all_, site(def<op::minimum>)), most(all_, site(def<op::maximum>));
    least.operands_.push_back(x);
    least.operands_.push_back(high);
    operand_term below = least.make(of, scale);
    if (of.shape.rank == 0 && below.view == operand_term::by_element)
      below.view = all_.views.number(view(0, 0));
    most.add(below, scale);
    most.operands_.push_back(low);
    return most.make(of, scale);
  }

  constexpr operand_term scaled(const operand& each) {
    return {all_.scaled(each.of.term, each.scale), each.of.view};
  }
  /// True if it is a number that can be a factor.
  constexpr bool is_factor(const operand& each, double& value) const {
    std::int64_t bits = 0;
    if (each.of.view == operand_term::by_element || !all_.is_number(each.of, bits)) return false;
    value = std::bit_cast<double>(bits) * each.scale;
    return prove_detail::is_factor(value);
  }
  /// Moves factors out of linear ops.
  constexpr void take_factors(double& scale) {
    switch (at_.as->id) {
      case def<op::subtract>.id:
        operands_[1].scale = -operands_[1].scale;
        at_ = site(def<op::add>);
        return;
      case def<op::negate>.id:
        scale = -1;
        at_ = site(def<op::add>);
        return;
      case def<op::divide>.id:
        if (double by = 1; is_factor(operands_[0], by)) {
          operands_[0] = {all_.number(one, element())};
          scale = by;
        }
        if (double by = 1; is_factor(operands_[1], by) && prove_detail::is_factor(scale / by)) {
          scale /= by;
          operands_.pop_back();
          at_ = site(def<op::multiply>);
        } else if (take_factor(scale, operands_[0].scale / operands_[1].scale)) {
          operands_[0].scale = operands_[1].scale = 1;
        }
        return;
      case def<op::convert>.id:
        if (!is_floating(element())) return;
        scale = operands_[0].scale;
        operands_[0].scale = 1;
        return;
      case def<op::select>.id:
        if (const int other = is_zero(operands_[2]) ? 1 : 2;
            other == 1 || is_zero(operands_[1]) || operands_[1].scale == operands_[2].scale) {
          scale = operands_[other].scale;
          operands_[1].scale = operands_[2].scale = 1;
        }
        return;
      default:
        return;
    }
  }
  constexpr bool is_zero(const operand& each) const {
    std::int64_t bits = -1;
    return each.of.view != operand_term::by_element && all_.is_number(each.of, bits) && bits == 0;
  }
  /// Checks that the product of all factors is a valid factor.
  constexpr bool have_product(double all) const {
    for (const auto& each : operands_) {
      double by = 1;
      if (!take_factor(all, is_scalar(each) && is_factor(each, by) ? by : each.scale)) return false;
    }
    return true;
  }
  /// Replaces operands of the same op by their operands. For products, numbers become factors.
  constexpr void flatten(double& scale) {
    ++all_.sums;
    const bool product = at_.as->id == def<op::multiply>.id;
    const bool real = product && is_floating(element()) && have_product(scale);
    if (is_flat(real)) {
      for (auto& each : operands_) {
        if (!real) break;
        scale *= each.scale;
        each.scale = 1;
      }
      return;
    }
    vec<operand> flat;
    for (operand each : operands_) {
      double by = 1;
      if (real && is_factor(each, by)) {
        scale *= by;
        continue;
      }
      if (real) {
        scale *= each.scale;
        each.scale = 1;
      }
      const term& of = all_.terms[each.of.term];
      if (!is_part(each) ||
          flat.size() + static_cast<std::size_t>(of.operand_count) > most_operands) {
        flat.push_back(each);
        continue;
      }
      for (int i = 0; i < of.operand_count; ++i) flat.push_back(based(inner(each, i), each.scale));
    }
    if (all_.ends_sum && !product) expand(flat);
    if (flat.empty()) {  // only numbers
      flat.push_back({all_.number(std::bit_cast<std::int64_t>(scale), element()), 1});
      scale = 1;
    }
    operands_ = flat;
  }
  /// Expands sums that were too long at each op of a chain but fit at the last one.
  constexpr void expand(vec<operand>& flat) {
    const std::int64_t most = static_cast<std::int64_t>(most_operands) * all_.sums - all_.long_sums;
    bool nested = false;
    for (const auto& each : flat) nested = nested || is_part(each);
    if (!nested) return;
    vec<operand> open = flat, done;
    while (!open.empty()) {
      const operand each = open.back();
      open.pop_back();
      if (!is_part(each)) {
        done.push_back(each);
        continue;
      }
      const term of = all_.terms[each.of.term];
      if (static_cast<std::int64_t>(done.size() + open.size()) + of.operand_count > most) return;
      for (int i = 0; i < of.operand_count; ++i) open.push_back(based(inner(each, i), each.scale));
    }
    all_.long_sums += static_cast<std::int64_t>(done.size());
    flat = done;
  }
  constexpr bool is_flat(bool real) const {
    double by = 1;
    const std::uint64_t id = at_.as->id;
    for (const auto& each : operands_) {
      const op_def* const made_by = all_.terms[each.of.term].at.as;
      if (made_by != nullptr && made_by->id == id && is_made_by(each, *made_by)) return false;
      if (real && is_scalar(each) && is_factor(each, by)) return false;
    }
    return true;
  }
  constexpr dtype element() const { return all_.terms[operands_[0].of.term].element; }
  constexpr operand based(const operand_term& part, double scale) const {
    if (const term& t = all_.terms[part.term]; t.base >= 0)
      if (double all = scale; take_factor(all, t.factor)) return {{t.base, part.view}, all};
    return {part, scale};
  }
  static constexpr bool before(const operand_term& a, const operand_term& b) {
    return a.term != b.term ? a.term < b.term : a.view < b.view;
  }
  static constexpr bool comes_before(const operand& a, const operand& b) {
    if (a.of.term != b.of.term) return a.of.term < b.of.term;
    return a.of.view != b.of.view ? a.of.view < b.of.view : a.scale < b.scale;
  }
  constexpr void sort() { merge_sort(operands_, comes_before); }
  constexpr void drop_neutral() {
    bool numbers = false;
    for (const auto& each : operands_)
      numbers = numbers || each.of.view != operand_term::by_element;
    if (!numbers) return;
    for (combiner how : {combiner::add, combiner::multiply, combiner::max, combiner::min,
                         combiner::logical_and, combiner::logical_or}) {
      if (combining_op(how).id != at_.as->id) continue;
      std::size_t kept = 0;
      for (const auto& each : operands_) kept += is_neutral(each, how) ? 0 : 1;
      if (kept == 0) return;
      kept = 0;
      for (const auto& each : operands_)
        if (!is_neutral(each, how)) operands_[kept++] = each;
      operands_.resize(kept);
      return;
    }
  }
  constexpr bool is_neutral(const operand& each, combiner how) const {
    std::int64_t bits = 0;
    return each.of.view != operand_term::by_element && all_.is_number(each.of, bits) &&
           is_identity(bits, how, element()) && (each.scale == 1 || how == combiner::add);
  }
  constexpr void drop_equal() {
    std::size_t kept = 0;
    for (const auto& each : operands_)
      if (kept == 0 || operands_[kept - 1].of != each.of || operands_[kept - 1].scale != each.scale)
        operands_[kept++] = each;
    operands_.resize(kept);
  }
  static constexpr bool is_sum(double factors) {
    return factors == 0 || prove_detail::is_factor(factors);
  }
  /// Merges equal operands into one, or into two of opposite signs, because cancelled terms may be
  /// infinite and must not be rounded. The factor of the first one becomes that of the sum.
  constexpr void collect(double& scale) {
    operand* const list = operands_.data();
    const std::size_t count = operands_.size();
    std::size_t kept = 0;
    for (std::size_t begin = 0, end = 0; begin < count; begin = end) {
      const operand_term of = list[begin].of;
      double sums[2] = {};  // of negative ones, and of the others
      bool exact = true;
      for (; end < count && list[end].of == of; ++end) {
        double& sum = sums[list[end].scale > 0 ? 1 : 0];
        exact = exact && exact_sum(sum, list[end].scale, sum + list[end].scale);
        sum += list[end].scale;
      }
      const bool alike = sums[0] == 0 || sums[1] == 0;
      if ((exact || alike) && is_sum(sums[0]) && is_sum(sums[1])) {
        for (const double sum : sums)
          if (sum != 0) list[kept++] = {of, sum};
      } else {
        for (std::size_t i = begin; i < end; ++i) list[kept++] = list[i];
      }
    }
    operands_.resize(kept);
    const double first = list[0].scale;
    bool normal = true;
    for (std::size_t i = 0; i < kept; ++i)
      normal = normal && prove_detail::is_factor(list[i].scale / first);
    if (!normal || !take_factor(scale, first)) return;
    for (std::size_t i = 0; i < kept; ++i) list[i].scale /= first;
  }
  constexpr void turn() {
    if (operands_[0].of == operands_[1].of && operands_[0].scale == operands_[1].scale)
      at_.swapped = false;
    if (!before(operands_[1].of, operands_[0].of)) return;
    const operand kept = operands_[0];
    operands_[0] = operands_[1];
    operands_[1] = kept;
    at_.swapped = !at_.swapped;
  }
};

/// An element of an elementwise result on positions: the result for numbers, multiplied by `scale`.
constexpr operand_term number_at(meanings& all, const operand_term& s, double& scale) {
  const term t = all.terms[s.term];
  const term of = t.base < 0 ? t : all.terms[t.base];
  if (!of.by_element || of.shape != all_positions) return s;
  if (t.base >= 0 && !take_factor(scale, t.factor)) return s;
  element_form form(all, of.at);
  for (int i = 0; i < of.operand_count; ++i) {
    operand_term each = all.terms.operand(of, i);
    double by = 1;
    if (each.view == operand_term::by_element) each = number_at(all, {each.term, s.view}, by);
    form.add(each, by);
  }
  double times = 1;
  const operand_term made = form.make({of.element, {}}, times);
  const int result = take_factor(scale, times) ? made.term : all.scaled(made.term, times);
  return {result, made.view == operand_term::by_element ? all.views.number(view(0, 0)) : made.view};
}

}  // namespace partita::prove_detail
