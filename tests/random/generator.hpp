/// Random programs, meshes and actions, and the reduction of a failing case.
///
/// Every value carries the interval of its elements. Integer-valued sums are kept below what the
/// element type holds exactly, and elementwise functions give equal bits for equal operands, so
/// partitioned and source program agree exactly; only a sum of real values has a tolerance, and
/// such a value is used no further.
#pragma once

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include "../data.hpp"

namespace random_test {

namespace pt = partita;
using data::random;

struct value_info {
  double lo = 0, hi = 0;
  bool integer = true;
  double tolerance = 0;  ///< greatest difference that another order of sums may make
  double greatest() const { return std::max(std::fabs(lo), std::fabs(hi)); }
};

struct random_action {
  bool atomic = false;
  pt::value_id value = 0;
  int dim = 0, axis = 0;
};

struct test_case {
  std::uint64_t seed = 0;
  pt::program p;
  std::vector<value_info> info;  ///< by value
  pt::mesh mesh;
  std::vector<std::vector<random_action>> tactics;
};

inline std::vector<pt::array> arguments(const test_case& c) {
  random r{c.seed * 77 + 5};
  std::vector<pt::array> out;
  for (pt::value_id v : c.p.inputs) {
    const auto& i = c.info[static_cast<std::size_t>(v)];
    const auto low =
        static_cast<std::int64_t>(std::ceil(std::max(i.lo, i.hi < -2 ? i.hi - 4 : -2)));
    const auto high = static_cast<std::int64_t>(std::floor(i.hi));
    const bool index = pt::is_integer(c.p.type(v).element);
    out.push_back(data::integers(c.p.type(v), r, std::min(low, high),
                                 index ? high : std::min(high, low + 4)));
  }
  return out;
}

class generator {
 public:
  explicit generator(std::uint64_t seed) : r_{seed * 0x9e3779b9u + 12345} { case_.seed = seed; }

  test_case make() {
    const auto params = r_.in(1, 3), wanted = r_.in(3, 22);
    for (int i = 0; i < params; ++i)
      parameter({r_.one_in(6) ? pt::dtype::i32 : pt::dtype::f32, some_shape(1, 3)}, -2, 2);
    for (int tries = 0; emitted_ < wanted && tries < 400; ++tries) step();
    outputs();
    case_.p = b_.p;
    b_.p.error.raise();
    mesh();
    actions();
    return case_;
  }

 private:
  random r_;
  pt::builder b_;
  test_case case_;
  int emitted_ = 0, names_ = 0;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  const pt::tensor_type& type(pt::value_id v) const { return b_.type(v); }
  const value_info& info(pt::value_id v) const { return case_.info[at(v)]; }

  pt::shape some_shape(int min_rank, int max_rank) {
    static constexpr int sizes[] = {1, 2, 3, 4, 4, 6, 8, 8, 12, 16, 16};
    pt::shape s;
    const auto rank = r_.in(min_rank, max_rank);
    for (int d = 0; d < rank; ++d)
      s.push_back(s.elements() > 64 ? r_.in(1, 4) : sizes[r_.in(0, 10)]);
    return s;
  }

  static bool fits(pt::dtype t, const value_info& i) {
    if (!i.integer) return pt::is_floating(t) && i.greatest() <= (pt::size_of(t) == 2 ? 1e3 : 1e6);
    switch (t) {
      case pt::dtype::f32:
        return i.greatest() <= 16777216.0;
      case pt::dtype::f64:
      case pt::dtype::i64:
        return i.greatest() <= 1e15;
      case pt::dtype::i32:
        return i.greatest() <= 1e9;
      case pt::dtype::bf16:
        return i.greatest() <= 256;
      case pt::dtype::f16:
        return i.greatest() <= 2048;
      case pt::dtype::u8:
        return i.lo >= 0 && i.hi <= 255;
      default:
        return i.lo >= 0 && i.hi <= 1;
    }
  }

  pt::value_id keep(pt::value_id v, value_info i) {  // by value: `info` grows
    case_.info.resize(b_.p.types.size());
    case_.info[at(v)] = i;
    return v;
  }
  pt::value_id parameter(pt::tensor_type t, double lo, double hi) {
    const std::string name = "p" + std::to_string(names_++);
    if (t.element == pt::dtype::boolean) lo = 0, hi = 1;
    if (t.element == pt::dtype::u8) lo = 0, hi = 3;
    return keep(pt::ops::parameter(b_, name, t), {lo, hi});
  }

  /// A value that ops may use: real sums are only returned.
  pt::value_id any(const std::function<bool(pt::value_id)>& good) {
    std::vector<pt::value_id> list;
    for (pt::value_id v = 0; v < b_.p.value_count(); ++v)
      if (info(v).tolerance == 0 && good(v)) {
        list.push_back(v);
        if (v + 4 >= b_.p.value_count()) list.push_back(v);  // deeper programs
      }
    return list.empty() ? -1 : r_.pick(list);
  }
  bool number(pt::value_id v) const { return type(v).element != pt::dtype::boolean; }
  static value_info product(const value_info& x, const value_info& y) {
    const double c[] = {x.lo * y.lo, x.lo * y.hi, x.hi * y.lo, x.hi * y.hi};
    return {*std::min_element(c, c + 4), *std::max_element(c, c + 4), x.integer && y.integer};
  }
  static value_info either(const value_info& x, const value_info& y) {
    return {std::min(x.lo, y.lo), std::max(x.hi, y.hi), x.integer && y.integer};
  }

  /// Another operand of x's type, or a scalar of its element type.
  pt::value_id partner(pt::value_id x) {
    const auto same = any([&](pt::value_id v) {
      return type(v).element == type(x).element &&
             (type(v).shape == type(x).shape || type(v).shape.rank == 0);
    });
    if (same != x || r_.one_in(4)) return same;
    return parameter(type(x), -2, 2);
  }

  /// Appends an elementwise result, if it is known to be exact.
  bool emit(const pt::op_def& d, std::vector<pt::value_id> operands, value_info i, pt::dtype result,
            std::vector<std::int64_t> attrs = {}) {
    if (!fits(result, i)) return false;
    return done(b_.emit(d, operands, attrs, {result, {}}), i);
  }
  bool done(pt::value_id v, value_info i) {
    if (b_.failed()) return false;  // raised at the end: the generator only makes good programs
    const bool fresh = static_cast<std::size_t>(v) >= case_.info.size();
    keep(v, i);
    emitted_ += fresh;
    return fresh;
  }
  /// A sum of `n` elements in `each`: exact for integers, else bounded and used no further.
  bool sum(const value_info& each, std::int64_t n, pt::dtype t, value_info& out) {
    const auto count = static_cast<double>(n);
    out = {std::min(each.lo * count, 0.0), std::max(each.hi * count, 0.0), each.integer};
    if (!each.integer) {
      // |error| <= (n - 1) eps sum|x| for any order (Higham, section 4.2); both runs have one.
      const double eps = t == pt::dtype::f64   ? 0x1p-53
                         : t == pt::dtype::f32 ? 0x1p-24
                         : t == pt::dtype::f16 ? 0x1p-11
                                               : 0x1p-8;
      out.tolerance = 2 * (count + 2) * eps * count * each.greatest();
    }
    return fits(t, out);
  }

  bool step() {
    switch (r_.in(0, 22)) {
      case 0:
      case 1:
        return binary();
      case 2:
      case 3:
        return dot();
      case 4:
      case 5:
        return reduce();
      case 6:
        return broadcast();
      case 7:
        return transpose();
      case 8:
      case 9:
        return reshape();
      case 10:
        return gather();
      case 11:
        return scatter();
      case 12:
        return concatenate();
      case 13:
        return slice();
      case 14:
        return compare_select();
      case 15:
        return math();
      case 16:
        return convert();
      case 17:
        return make_constant();
      case 18:
        return identity();
      case 19:
      case 20:
      case 21:
        return matmul_chain();
      default:
        return binary();
    }
  }

  bool binary() {
    const auto x = any([&](pt::value_id v) { return number(v); });
    if (x < 0) return false;
    const auto t = type(x).element;
    const value_info a = info(x);
    if (r_.one_in(8)) return emit(pt::def<pt::op::negate>, {x}, {-a.hi, -a.lo, a.integer}, t);
    const auto y = partner(x);
    if (y < 0) return false;
    const value_info i = info(y);
    const bool swap = r_.one_in(2);
    std::vector<pt::value_id> operands = swap ? std::vector{y, x} : std::vector{x, y};
    const value_info& l = swap ? i : a;
    const value_info& q = swap ? a : i;
    switch (r_.in(0, 6)) {
      case 0:
        return emit(pt::def<pt::op::subtract>, operands,
                    {l.lo - q.hi, l.hi - q.lo, l.integer && q.integer}, t);
      case 1:
        return emit(pt::def<pt::op::multiply>, operands, product(l, q), t);
      case 2:
        return emit(pt::def<pt::op::maximum>, operands,
                    {std::max(l.lo, q.lo), std::max(l.hi, q.hi), l.integer && q.integer}, t);
      case 3:
        return emit(pt::def<pt::op::minimum>, operands,
                    {std::min(l.lo, q.lo), std::min(l.hi, q.hi), l.integer && q.integer}, t);
      default:
        return emit(pt::def<pt::op::add>, operands,
                    {l.lo + q.lo, l.hi + q.hi, l.integer && q.integer}, t);
    }
  }

  /// (x x + 1): at least 1.
  pt::value_id positive(pt::value_id x) {
    const auto t = type(x).element;
    const value_info square = {0, info(x).greatest() * info(x).greatest(), info(x).integer};
    if (!emit(pt::def<pt::op::multiply>, {x, x}, square, t)) return -1;
    const auto s = b_.p.value_count() - 1;
    if (!fits(t, {1, square.hi + 1, square.integer})) return -1;
    const auto one = pt::ops::scalar(b_, t, 1);
    keep(one, {1, 1});
    if (!emit(pt::def<pt::op::add>, {s, one}, {1, square.hi + 1, square.integer}, t)) return -1;
    return b_.p.value_count() - 1;
  }
  bool math() {
    const auto x = any([&](pt::value_id v) {
      return pt::is_floating(type(v).element) && info(v).greatest() <= 30;
    });
    if (x < 0) return false;
    const auto t = type(x).element;
    const value_info i = info(x);
    switch (r_.in(0, 6)) {
      case 0:
        return i.greatest() <= 6 && emit(pt::def<pt::op::exp>, {x},
                                         {std::exp(i.lo) * 0.9, std::exp(i.hi) * 1.1, false}, t);
      case 1:
        return emit(pt::def<pt::op::tanh>, {x}, {-1, 1, false}, t);
      case 2:
        return emit(pt::def<pt::op::erf>, {x}, {-1, 1, false}, t);
      default:
        break;
    }
    const auto which = r_.in(0, 3);
    const auto y = positive(x);
    if (y < 0) return false;
    const double hi = info(y).hi;
    if (which == 0) return emit(pt::def<pt::op::log>, {y}, {0, std::log(hi) * 1.1, false}, t);
    if (which == 1) return emit(pt::def<pt::op::sqrt>, {y}, {0.9, std::sqrt(hi) * 1.1, false}, t);
    if (which == 2) return emit(pt::def<pt::op::rsqrt>, {y}, {0, 1.1, false}, t);
    return emit(pt::def<pt::op::divide>, {x, y}, {-i.greatest(), i.greatest(), false}, t);
  }

  bool dot() {
    const auto x = any([&](pt::value_id v) { return number(v) && type(v).shape.rank > 0; });
    if (x < 0) return false;
    auto y = any([&](pt::value_id v) {
      return type(v).element == type(x).element && type(v).shape.rank > 0;
    });
    if (r_.one_in(3)) {  // a matrix that fits
      pt::shape s = some_shape(1, 2);
      s[static_cast<int>(r_.in(0, s.rank - 1))] =
          type(x).shape[static_cast<int>(r_.in(0, type(x).shape.rank - 1))];
      if (s.elements() > 512) return false;
      y = parameter({type(x).element, s}, -2, 2);
    }
    const pt::shape &l = type(x).shape, &q = type(y).shape;
    std::int64_t lb[8], rb[8], lc[8], rc[8];
    std::size_t batch = 0, contract = 0;
    std::int64_t k = 1, size = 1;
    bool used[pt::max_rank] = {};
    for (int d = 0; d < l.rank; ++d) {
      int match = -1;
      const int start = static_cast<int>(r_.in(0, q.rank - 1));
      for (int e = 0; e < q.rank; ++e) {
        const int f = (start + e) % q.rank;
        if (!used[f] && q[f] == l[d]) match = f;
      }
      const auto role = match < 0 ? 2 : r_.in(0, 3);
      if (role == 0 && batch < 2) {
        lb[batch] = d, rb[batch++] = match, used[match] = true;
      } else if (role == 1 || role == 3) {
        lc[contract] = d, rc[contract++] = match, used[match] = true, k *= l[d];
      }
    }
    const auto free = l.rank + q.rank - 2 * static_cast<int>(batch + contract);
    size = l.elements() * q.elements() / k / k;
    if (free + static_cast<int>(batch) > 5 || size > 2048) return false;
    value_info out;
    const value_info each = product(info(x), info(y));
    if (!sum(each, k, type(x).element, out)) return false;
    return done(
        pt::ops::dot_general(b_, x, y, {{lb, batch}, {rb, batch}, {lc, contract}, {rc, contract}}),
        out);
  }
  /// matmul, then perhaps a residual: what tactics meet most.
  bool matmul_chain() {
    const auto x = any([&](pt::value_id v) {
      return type(v).element == pt::dtype::f32 && info(v).integer && type(v).shape.rank >= 2 &&
             info(v).greatest() < 300;
    });
    if (x < 0) return false;
    const int rank = type(x).shape.rank;
    const std::int64_t k = type(x).shape[rank - 1];
    const std::int64_t n = r_.one_in(2) ? k : r_.in(1, 4) * 2;
    const auto w = parameter({pt::dtype::f32, {k, n}}, -1, 1);
    value_info out;
    if (!sum(product(info(x), info(w)), k, pt::dtype::f32, out)) return false;
    const std::int64_t left[] = {rank - 1}, right[] = {0};
    if (!done(pt::ops::dot_general(b_, x, w, {{}, {}, left, right}), out)) return false;
    const auto y = b_.p.value_count() - 1;
    if (n == k && r_.one_in(2))
      emit(pt::def<pt::op::add>, {y, x}, {out.lo + info(x).lo, out.hi + info(x).hi},
           pt::dtype::f32);
    return true;
  }

  bool reduce() {
    const auto x = any([&](pt::value_id v) { return number(v) && type(v).shape.rank > 0; });
    if (x < 0) return false;
    std::vector<std::int64_t> dims;
    std::int64_t n = 1;
    for (int d = 0; d < type(x).shape.rank; ++d)
      if (r_.one_in(2)) {
        dims.push_back(d);
        n *= type(x).shape[d];
      }
    if (dims.empty()) return false;
    const auto how = r_.in(0, 3);
    if (how == 0) return done(pt::ops::reduce(b_, x, pt::combiner::max, dims), info(x));
    if (how == 1) return done(pt::ops::reduce(b_, x, pt::combiner::min, dims), info(x));
    value_info out;
    if (!sum(info(x), n, type(x).element, out)) return false;
    return done(pt::ops::reduce(b_, x, pt::combiner::add, dims), out);
  }

  bool broadcast() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.rank < 4; });
    if (x < 0) return false;
    pt::shape to;
    std::vector<std::int64_t> dims;
    const pt::shape from = type(x).shape;
    for (int d = 0; d <= from.rank; ++d) {
      if (r_.one_in(3)) to.push_back(r_.in(1, 4));
      if (d == from.rank) break;
      dims.push_back(to.rank);
      to.push_back(from[d] == 1 && r_.one_in(2) ? r_.in(2, 8) : from[d]);
    }
    if (to.elements() > 2048) return false;
    return done(pt::ops::broadcast_in_dim(b_, x, to, dims), info(x));
  }
  bool transpose() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.rank > 1; });
    if (x < 0) return false;
    std::vector<std::int64_t> dims;
    for (int d = 0; d < type(x).shape.rank; ++d) dims.insert(dims.begin() + r_.in(0, d), d);
    return done(pt::ops::transpose(b_, x, dims), info(x));
  }
  /// The prime factors of the shape, regrouped; sometimes in another order, which has no common
  /// refinement with the old shape.
  bool reshape() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.elements() > 1; });
    if (x < 0) return false;
    std::vector<std::int64_t> primes;
    for (std::int64_t e : type(x).shape)
      for (std::int64_t f = 2; e > 1; ++f)
        for (; e % f == 0; e /= f) primes.push_back(f);
    if (r_.one_in(4))
      for (std::size_t i = 1; i < primes.size(); ++i)
        std::swap(primes[i], primes[static_cast<std::size_t>(r_.in(0, static_cast<int>(i)))]);
    pt::shape to;
    for (std::size_t i = 0; i < primes.size(); ++i) {
      if (r_.one_in(8) && to.rank < 4) to.push_back(1);
      if (i == 0 || (r_.one_in(2) && to.rank < 5))
        to.push_back(primes[i]);
      else
        to[to.rank - 1] *= primes[i];
    }
    return done(pt::ops::reshape(b_, x, to), info(x));
  }

  pt::value_id indices(const pt::shape& s, std::int64_t rows) {
    const bool reach_out = r_.one_in(3);
    return parameter({r_.one_in(4) ? pt::dtype::i64 : pt::dtype::i32, s}, reach_out ? -1 : 0,
                     static_cast<double>(reach_out ? rows : rows - 1));
  }
  bool gather() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.rank > 0; });
    if (x < 0) return false;
    const auto i = indices(some_shape(0, 2), type(x).shape[0]);
    if (type(i).shape.elements() * type(x).shape.elements() / type(x).shape[0] > 1024) return false;
    return done(pt::ops::gather(b_, x, i), info(x));
  }
  bool scatter() {
    const auto x = any([&](pt::value_id v) { return number(v) && type(v).shape.rank > 0; });
    if (x < 0) return false;
    pt::shape s;
    const auto leading = r_.in(0, type(x).shape.rank);
    for (int d = 0; d < leading; ++d) s.push_back(type(x).shape[d]);
    const auto rows = r_.in(1, 6);
    value_info out;
    if (!sum(info(x), s.elements(), type(x).element, out)) return false;
    return done(pt::ops::scatter_add(b_, indices(s, rows), x, rows), out);
  }
  bool concatenate() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.rank > 0; });
    if (x < 0 || type(x).shape.elements() > 512) return false;
    const int dim = static_cast<int>(r_.in(0, type(x).shape.rank - 1));
    std::vector<pt::value_id> parts{x};
    value_info i = info(x);
    const auto more = r_.in(1, 2);
    for (int k = 0; k < more; ++k) {
      const auto y = any([&](pt::value_id v) { return type(v) == type(x); });
      parts.insert(parts.begin() + r_.in(0, static_cast<int>(parts.size())), y);
      i = either(i, info(y));
    }
    return done(pt::ops::concatenate(b_, parts, dim), i);
  }
  bool slice() {
    const auto x = any([&](pt::value_id v) { return type(v).shape.rank > 0; });
    if (x < 0) return false;
    std::vector<std::int64_t> start, limit;
    for (std::int64_t e : type(x).shape) {
      const bool whole = r_.one_in(2);
      start.push_back(whole ? 0 : r_.in(0, e - 1));
      limit.push_back(whole ? pt::ops::whole : r_.in(start.back() + 1, e));
    }
    return done(pt::ops::slice(b_, x, start, limit), info(x));
  }
  bool compare_select() {
    const auto predicate = any([&](pt::value_id v) { return !number(v); });
    if (predicate >= 0 && r_.one_in(2)) {
      const auto x = any([&](pt::value_id v) {
        return type(v).shape == type(predicate).shape || type(predicate).shape.rank == 0;
      });
      if (x < 0) return false;
      const auto y = partner(x);
      return emit(pt::def<pt::op::select>, {predicate, x, y}, either(info(x), info(y)),
                  type(x).element);
    }
    const auto x = any([&](pt::value_id) { return true; });
    const auto y = partner(x);
    return emit(pt::def<pt::op::compare>, {x, y}, {0, 1}, pt::dtype::boolean, {r_.in(0, 5)});
  }
  bool convert() {
    const auto x = any([&](pt::value_id) { return true; });
    static constexpr pt::dtype all[] = {
        pt::dtype::f32, pt::dtype::f32, pt::dtype::f64,  pt::dtype::i32, pt::dtype::i32,
        pt::dtype::i64, pt::dtype::u8,  pt::dtype::bf16, pt::dtype::f16, pt::dtype::boolean};
    const pt::dtype to = all[r_.in(0, 9)];
    if (to == type(x).element) return false;
    value_info i = info(x);
    if (to == pt::dtype::boolean)
      i = {0, 1};
    else if (pt::is_integer(to))
      i = {std::trunc(i.lo), std::trunc(i.hi), true};
    else if (pt::size_of(to) == 2)
      i.lo -= i.integer ? 0 : 4, i.hi += i.integer ? 0 : 4;
    if (!fits(to, i)) return false;
    return done(pt::ops::convert(b_, x, to), i);
  }
  bool make_constant() {
    const pt::tensor_type t{r_.one_in(3) ? pt::dtype::i32 : pt::dtype::f32, some_shape(0, 3)};
    if (t.shape.rank > 0 && r_.one_in(2)) {
      const int dim = static_cast<int>(r_.in(0, t.shape.rank - 1));
      return done(pt::ops::iota(b_, t, dim), {0, static_cast<double>(t.shape[dim] - 1)});
    }
    const auto c = static_cast<double>(r_.in(-2, 2));
    return done(pt::ops::constant(b_, t, c), {c, c});
  }
  bool identity() {
    const auto x = any([&](pt::value_id) { return true; });
    if (r_.one_in(4)) return done(pt::ops::stop_gradient(b_, x), info(x));
    return done(pt::ops::tag(b_, "t" + std::to_string(names_++), x), info(x));
  }

  void outputs() {
    std::vector<pt::value_id> chosen;
    for (pt::value_id v = 0; v < b_.p.value_count(); ++v) {
      bool used = false;
      for (auto o : b_.p.operand_list) used = used || o == v;
      const bool parameter = b_.p.op(b_.p.producer(v)).def == &pt::def<pt::op::parameter>;
      if (info(v).tolerance > 0 || (!used && !parameter && !r_.one_in(5)) || r_.one_in(20))
        chosen.push_back(v);
    }
    if (chosen.empty()) chosen.push_back(b_.p.value_count() - 1);
    if (r_.one_in(8)) chosen.push_back(r_.pick(chosen));  // the same value twice
    int n = 0;
    for (auto v : chosen) b_.p.outputs.push_back({v, b_.p.intern("o" + std::to_string(n++))});
  }

  void mesh() {
    static constexpr int sizes[] = {1, 2, 2, 2, 2, 3, 4, 8};
    static constexpr std::string_view names[] = {"B", "M", "T"};
    const auto rank = std::min<std::int64_t>(r_.in(1, 5), 3);
    for (int a = 0; a < rank; ++a) {
      std::int64_t size = sizes[r_.in(0, 7)];
      if (case_.mesh.devices() * size > 64) size = 2;
      case_.mesh.push_back({names[a], size});
    }
  }

  pt::value_id some_value() {
    const auto& p = case_.p;
    std::vector<pt::value_id> tags;
    for (const auto& n : p.ops)
      if (n.def == &pt::def<pt::op::tag>) tags.push_back(n.result);
    const auto kind = r_.in(0, 9);
    if (kind < 5) return r_.pick(p.inputs);
    if (kind < 7 && !tags.empty()) return r_.pick(tags);
    if (kind < 8) return r_.pick(p.outputs).value;
    return static_cast<pt::value_id>(r_.in(0, p.value_count() - 1));
  }
  void actions() {
    const auto count = r_.in(1, 4);
    for (int t = 0; t < count; ++t) {
      auto& tactic = case_.tactics.emplace_back();
      const auto n = r_.in(1, 4);
      const int axis = static_cast<int>(r_.in(0, case_.mesh.rank - 1));
      for (int i = 0; i < n; ++i) {
        random_action a;
        a.axis = r_.one_in(4) ? static_cast<int>(r_.in(0, case_.mesh.rank - 1)) : axis;
        a.value = some_value();
        a.atomic = r_.one_in(9);
        const pt::shape& s = case_.p.type(a.value).shape;
        if (s.rank == 0 && !a.atomic) continue;
        for (int tries = 0; tries < 6; ++tries) {
          a.dim = s.rank > 0 ? static_cast<int>(r_.in(0, s.rank - 1)) : 0;
          if (s.rank > 0 && s[a.dim] % case_.mesh.size(a.axis) == 0) break;
        }
        tactic.push_back(a);
      }
    }
  }
};

inline std::vector<pt::program_output> outputs_of(const pt::program& p) {
  return {p.outputs.begin(), p.outputs.end()};
}

/// The program without ops that no output and no action needs, outputs as given; ops in `cut`
/// become inputs.
inline test_case rebuilt(const test_case& c, const std::vector<pt::program_output>& outputs,
                         pt::op_id cut = -1) {
  test_case r;
  r.seed = c.seed;
  r.mesh = c.mesh;
  r.p.chars = c.p.chars;
  std::vector<char> live(c.p.ops.size(), 0);
  for (const auto& o : outputs) live[static_cast<std::size_t>(c.p.producer(o.value))] = 1;
  for (pt::op_id o = c.p.op_count() - 1; o >= 0; --o)
    if (live[static_cast<std::size_t>(o)] && o != cut)
      for (auto v : c.p.operands(o)) live[static_cast<std::size_t>(c.p.producer(v))] = 1;
  std::vector<pt::value_id> renamed(c.p.types.size(), -1);
  for (pt::op_id o = 0; o < c.p.op_count(); ++o) {
    if (!live[static_cast<std::size_t>(o)]) continue;
    const auto& n = c.p.op(o);
    std::vector<pt::value_id> operands;
    for (auto v : c.p.operands(o)) operands.push_back(renamed[static_cast<std::size_t>(v)]);
    const bool input = o == cut || n.def == &pt::def<pt::op::parameter>;
    const auto v = input ? r.p.append(pt::def<pt::op::parameter>, {}, {}, c.p.type(n.result))
                         : r.p.append(*n.def, operands, c.p.attrs(o), c.p.type(n.result));
    r.p.ops.back().name = o == cut ? r.p.intern("c" + std::to_string(o)) : n.name;
    if (input) r.p.inputs.push_back(v);
    renamed[static_cast<std::size_t>(n.result)] = v;
    r.info.push_back(c.info[static_cast<std::size_t>(n.result)]);
  }
  for (auto o : outputs)
    r.p.outputs.push_back({renamed[static_cast<std::size_t>(o.value)], o.name});
  for (const auto& t : c.tactics) {
    auto& mine = r.tactics.emplace_back();
    for (auto a : t) {
      a.value = renamed[static_cast<std::size_t>(a.value)];
      if (a.value >= 0) mine.push_back(a);
    }
  }
  return r;
}

/// Greedy: as long as a smaller case still fails, go on with it. Smaller is fewer outputs, tactics,
/// actions or ops (prefixes; inner values as inputs), smaller axes.
template <class Fails>
test_case shrink(test_case c, Fails fails) {
  int budget = 3000;
  const auto accept = [&](const test_case& t) {
    if (t.p.outputs.empty() || budget-- <= 0 || !fails(t)) return false;
    c = t;
    return true;
  };
  for (bool progress = true; progress && budget > 0;) {
    progress = false;
    for (std::size_t i = 0; i < c.tactics.size(); ++i) {
      test_case t = c;
      t.tactics.erase(t.tactics.begin() + static_cast<std::ptrdiff_t>(i));
      if (accept(t)) progress = true, --i;
    }
    for (std::size_t i = 0; i < c.tactics.size(); ++i)
      for (std::size_t j = 0; j < c.tactics[i].size(); ++j) {
        test_case t = c;
        t.tactics[i].erase(t.tactics[i].begin() + static_cast<std::ptrdiff_t>(j));
        if (accept(t)) progress = true, --j;
      }
    for (std::size_t i = 0; c.p.outputs.size() > 1 && i < c.p.outputs.size(); ++i) {
      auto outputs = outputs_of(c.p);
      outputs.erase(outputs.begin() + static_cast<std::ptrdiff_t>(i));
      if (accept(rebuilt(c, outputs))) progress = true, --i;
    }
    if (c.p.outputs.size() == 1)  // a shorter prefix
      for (pt::value_id v = 0; v < c.p.outputs[0].value; ++v)
        if (accept(rebuilt(c, {{v, c.p.outputs[0].name}}))) {
          progress = true;
          break;
        }
    for (pt::op_id o = c.p.op_count() - 1; o >= 0; --o) {
      if (o >= c.p.op_count() || c.p.op(o).def == &pt::def<pt::op::parameter>) continue;
      if (accept(rebuilt(c, outputs_of(c.p), o))) progress = true;
    }
    for (int a = 0; a < c.mesh.rank; ++a)
      for (std::int64_t smaller : {1, 2})
        if (smaller < c.mesh.size(a)) {
          test_case t = c;
          t.mesh.axes[a].size = smaller;
          if (accept(t)) progress = true;
        }
  }
  return c;
}

inline std::string describe(const test_case& c) {
  pt::text out;
  out << pt::print(c.p) << "mesh " << c.mesh << "\nactions:\n";
  const pt::value_names names(c.p);
  for (const auto& t : c.tactics) {
    for (const auto& a : t) {
      pt::print_action(
          out,
          {a.atomic ? pt::action_kind::atomic : pt::action_kind::tile, a.value, a.dim, a.axis, 0},
          names, c.mesh);
      out << "; ";
    }
    out << "propagate;\n";
  }
  return data::str(out);
}

}  // namespace random_test
