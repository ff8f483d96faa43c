/// Writes one program, or one nested program, from existing values.
#pragma once

#include <functional>

#include "values.hpp"

namespace random_test {

/// The state that all writers of a case share.
struct case_state {
  random r;
  int names = 0;
  /// The program will be differentiated, and its floats become i64 (see generator.hpp): only ops
  /// that have a derivative and work on integers are drawn, and every value is exact.
  bool differentiable = false;
  /// Floats are real, and may be sums of real values: they become f64 (see generator.hpp).
  bool real = false;
  /// Floats of any value: NaN, infinities and -0 among those of an interval, or any float at all.
  bool wild = false;
  bool empties = false;  ///< true if dimensions may have size 0
};

class writer {
 public:
  pt::builder b;
  case_state& state;
  random& r;
  std::vector<value_info> infos;  ///< by value
  int emitted = 0;

  explicit writer(case_state& s) : state(s), r(s.r) {}
  /// A writer of a program nested in that of `parent`.
  explicit writer(writer& p) : state(p.state), r(p.r), parent_(&p), depth_(p.depth_ + 1) {}

  /// True if the program will be differentiated.
  bool derived() const { return state.differentiable || state.real; }
  int depth() const { return depth_; }
  // By value id, since captures add values to outer programs.
  tensor_type type(value_id v) const { return b.type(v); }
  shape dims(value_id v) const { return b.type(v).shape; }
  int rank(value_id v) const { return dims(v).rank; }
  dtype element(value_id v) const { return b.type(v).element; }
  value_info info(value_id v) const { return infos[static_cast<std::size_t>(v)]; }
  bool number(value_id v) const { return element(v) != dtype::boolean; }
  bool floating(value_id v) const { return pt::is_floating(element(v)); }
  bool integral(value_id v) const { return pt::is_integer(element(v)); }
  bool exact(dtype t, const value_info& i) const {
    return state.differentiable || fits(t, i) || (may_be_anything(t) && i.unbounded());
  }

  bool may_be_anything(dtype t) const { return state.wild && pt::is_floating(t); }

  /// True if ops may use the value: inexact ones only if the case has real values, those without
  /// elements only if the case has empty dimensions.
  bool usable(value_id v) const {
    return (state.real || info(v).tolerance == 0) && dims(v).elements() >= least();
  }
  /// The minimum size of a dimension.
  std::int64_t least() const { return state.empties ? 0 : 1; }

  /// Returns a value that ops may use, or -1; sometimes one of the outer program.
  template <class Good>
  value_id any(const Good& good) {
    if (parent_ != nullptr && r.one_in(5)) {
      const value_id outer = parent_->any();
      if (outer >= 0) capture(outer);
    }
    std::vector<value_id> list;
    for (value_id v = 0; v < b.p.value_count(); ++v)
      if (usable(v) && good(v)) {
        list.push_back(v);
        if (v + 4 >= b.p.value_count()) list.push_back(v);  // deeper programs
      }
    return list.empty() ? -1 : r.pick(list);
  }
  value_id any() {
    return any([](value_id) { return true; });
  }
  value_id any_number(int least_rank = 0) {
    return any([&](value_id v) { return number(v) && rank(v) >= least_rank; });
  }
  value_id any_of_rank(int least) {
    return any([&](value_id v) { return rank(v) >= least; });
  }
  /// Returns another operand of x's type, or a scalar of its element type.
  value_id partner(value_id x) {
    const tensor_type t = type(x);
    const auto same = any([&](value_id v) {
      return element(v) == t.element && (dims(v) == t.shape || rank(v) == 0);
    });
    return same != x || r.one_in(4) ? same : fresh(t);
  }
  /// Returns a new input of the whole program; integers in an interval.
  value_id fresh(tensor_type t, double lo = -2, double hi = 2) {
    if (parent_ != nullptr) return capture(parent_->fresh(t, lo, hi));
    if (t.element == dtype::boolean) lo = 0, hi = 1;
    const bool any = may_be_anything(t.element) && r.one_in(3);
    if (pt::is_unsigned(t.element)) lo = 0, hi = std::max(hi, 3.0);
    const std::string name = (r.one_in(2) ? "p" : "params.") + std::to_string(state.names++);
    return keep(pt::ops::parameter(b, name, t), any ? anything : value_info{lo, hi});
  }
  /// Returns a new input of this nested program.
  value_id input(const tensor_type& t, const value_info& i) {
    return keep(pt::ops::parameter(b, "", t), i);
  }
  value_id scalar(dtype t, double v) {
    return keep(pt::ops::scalar(b, t, v), {v, v, v == std::floor(v)});
  }

  shape some_shape(int min_rank, int max_rank) {
    static constexpr int sizes[] = {1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 16}, primes[] = {5, 7, 11, 13};
    shape s;
    const auto n = r.in(min_rank, max_rank);
    for (int d = 0; d < n; ++d)
      s.push_back(state.empties && r.one_in(8) ? 0
                  : s.elements() > 64          ? r.in(1, 4)
                  : r.one_in(10)               ? primes[r.in(0, 3)]
                                               : sizes[r.in(0, 10)]);
    return s;
  }
  ints permutation(int n) {
    ints list;
    for (int d = 0; d < n; ++d) list.insert(list.begin() + r.in(0, d), d);
    return list;
  }

  /// Records an op whose results have these intervals. Returns false if the op equals an existing
  /// one; then the value keeps its interval, on which others rely.
  bool done(value_id v, const std::vector<value_info>& results) {
    if (b.failed()) return false;  // raised at the end: only valid programs are made
    if (static_cast<std::size_t>(v) < infos.size()) return false;
    for (std::size_t k = 0; k < results.size(); ++k) keep(v + static_cast<value_id>(k), results[k]);
    ++emitted;
    return true;
  }
  bool done(value_id v, const value_info& i) { return done(v, std::vector{i}); }
  /// Appends an elementwise op, if its result is known to be exact.
  bool emit(const pt::op_def& d, const std::vector<value_id>& operands, const value_info& i,
            dtype result, const ints& attrs = {}) {
    if (!may_be_anything(result) && !exact(result, wrapped(result, i))) return false;
    return done(b.emit(d, operands, attrs, {result, {}}), i);
  }
  /// Draws the precision of a product. (Not an algorithm, since XLA supports none on CPUs.)
  pt::product_precision exactness() {
    if (!r.one_in(4)) return {};
    const auto draw = [&] { return static_cast<pt::precision>(r.in(0, 2)); };
    const pt::precision lhs = draw();
    return {lhs, draw()};
  }
  value_id last() const { return b.p.value_count() - 1; }

  // Nested programs.

  struct captured {
    value_id outer, inner;
  };
  const std::vector<captured>& captures() const { return captures_; }
  /// Returns a value of the outer program as an input.
  value_id capture(value_id outer) {
    for (const auto& c : captures_)
      if (c.outer == outer) return c.inner;
    const value_id inner = input(parent_->type(outer), parent_->info(outer));
    captures_.push_back({outer, inner});
    return inner;
  }

 private:
  writer* parent_ = nullptr;
  int depth_ = 0;
  std::vector<captured> captures_;

  value_id keep(value_id v, const value_info& i) {
    infos.resize(b.p.types.size());
    value_info& known = infos[static_cast<std::size_t>(v)];
    known = wrapped(element(v), i);
    if (may_be_anything(element(v)) && !fits(element(v), known)) {
      const bool inexact = !(known.tolerance == 0);
      known = anything;
      if (inexact) known.tolerance = anything.hi;
    }
    return v;
  }
};

}  // namespace random_test
