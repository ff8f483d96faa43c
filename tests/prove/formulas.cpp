// Random formulas of elements: equal formulas have equal values for any values of their variables,
// and extrema of the same members are equal in any grouping.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <vector>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace random_formulas {

using namespace pt::prove_detail;
using pt::dtype;
using pt::ops::direction;

constexpr auto max_of = pt::def<pt::op::maximum>.id, min_of = pt::def<pt::op::minimum>.id;

/// A formula, and its values for several choices of its variables. (For real numbers: multiples of
/// a quarter.)
struct sampled {
  static constexpr int samples = 48;
  dtype type = dtype::i32;
  element of;
  std::array<std::int64_t, samples> worth = {};
};

constexpr dtype integers[] = {dtype::i8, dtype::i32, dtype::i64, dtype::u8, dtype::u64};

class formulas {
 public:
  explicit formulas(std::uint64_t seed) : r_{seed} {
    for (const dtype t : integers)
      for (int k = 0; k < 3; ++k) all_.push_back(variable(t, k));
    for (int k = 0; k < 3; ++k) all_.push_back(variable(dtype::boolean, k));
    for (int k = 0; k < 3; ++k) all_.push_back(variable(dtype::f32, k));
  }
  void add_one() { all_.push_back(drawn()); }
  const std::vector<sampled>& all() const { return all_; }

 private:
  algebra a_;
  data::random r_;
  std::vector<sampled> all_;

  bool one_of(int n) { return r_.in(1, n) == 1; }
  std::int64_t some_number(dtype t) {
    const std::int64_t n = r_.in(0, 9) - (one_of(3) ? 6 : 0);
    if (t == dtype::f32 || t == dtype::boolean || !one_of(8)) return in_type(t, n);
    return one_of(2) ? pt::op::least_integer(t) + r_.in(0, 3)
                     : (t == dtype::u64 ? -1 : pt::op::greatest_integer(t)) - r_.in(0, 3);
  }
  static std::int64_t in_type(dtype t, std::int64_t n) {
    return t == dtype::f32 ? n : wrapped(t, n);
  }
  static element number(dtype t, std::int64_t n) {
    return t == dtype::f32 ? real(static_cast<double>(n) / 4) : integer(t, n);
  }
  template <class F>
  static sampled made(dtype t, const element& of, const F& worth) {
    sampled x{t, of, {}};
    for (std::size_t i = 0; i < x.worth.size(); ++i) x.worth[i] = in_type(t, worth(i));
    return x;
  }
  sampled variable(dtype t, int k) {
    return made(t, a_.unknown(t, drawing(1).add(static_cast<int>(t)).add(k).drawn()),
                [&](std::size_t) { return some_number(t); });
  }
  sampled constant(dtype t) {
    const std::int64_t n = some_number(t);
    return made(t, number(t, n), [&](std::size_t) { return n; });
  }
  sampled any(dtype t) {
    if (one_of(5)) return constant(t);
    for (;;) {
      const auto at = r_.in(0, static_cast<std::int64_t>(all_.size()) - 1);
      if (const auto& x = all_[static_cast<std::size_t>(at)]; x.type == t) return x;
    }
  }
  dtype any_integer() { return integers[r_.in(0, std::size(integers) - 1)]; }
  static bool less(dtype t, std::int64_t x, std::int64_t y) {
    return t == dtype::u64 ? static_cast<std::uint64_t>(x) < static_cast<std::uint64_t>(y) : x < y;
  }

  sampled drawn() {
    const dtype t = one_of(4) ? dtype::f32 : any_integer();
    switch (r_.in(0, 8)) {
      case 0:
      case 1:
        return extreme(t, one_of(2) ? max_of : min_of);
      case 2:
        return sum(t);
      case 3:
        return chosen(t);
      case 4:
      case 5:
        return compared(t);
      case 6:
        return converted(t);
      case 7:
        return bits(any_integer());
      default:
        return looked_up(t);
    }
  }
  sampled sum(dtype t) {
    const sampled x = any(t), y = one_of(3) ? any(t) : constant(t);
    return made(t, a_.sum(t, x.of, y.of), [&](std::size_t i) {
      return static_cast<std::int64_t>(static_cast<std::uint64_t>(x.worth[i]) +
                                       static_cast<std::uint64_t>(y.worth[i]));
    });
  }
  sampled chosen(dtype t) {
    const sampled p = any(dtype::boolean), x = any(t), y = any(t);
    return made(t, a_.select(p.of, x.of, y.of),
                [&](std::size_t i) { return p.worth[i] != 0 ? x.worth[i] : y.worth[i]; });
  }
  sampled converted(dtype to) {
    const dtype from = to == dtype::f32 ? (one_of(2) ? dtype::boolean : dtype::u8)
                       : one_of(4)      ? dtype::boolean
                                        : any_integer();
    const sampled x = any(from);
    return made(to, a_.convert(from, to, x.of),
                [&](std::size_t i) { return to == dtype::f32 ? 4 * x.worth[i] : x.worth[i]; });
  }
  sampled bits(dtype t) {
    const sampled x = any(t), y = any(t);
    const bool all = one_of(2);
    return made(
        t,
        a_.group((all ? pt::def<pt::op::logical_and> : pt::def<pt::op::logical_or>).id, t,
                 {x.of, y.of}),
        [&](std::size_t i) { return all ? x.worth[i] & y.worth[i] : x.worth[i] | y.worth[i]; });
  }
  sampled looked_up(dtype t) {
    const std::vector<sampled> table = {any(t), any(t), any(t), any(t), any(t)};
    const sampled at = any(any_integer());
    const auto last = static_cast<std::int64_t>(table.size()) - 1;
    const auto found = [&](std::int64_t k) {
      const bool beyond = k > last || (at.type == dtype::u64 && k < 0);
      return table[static_cast<std::size_t>(beyond ? last : k < 0 ? 0 : k)];
    };
    return made(t,
                a_.look_up(at.type, at.of, last + 1, [&](std::int64_t k) { return found(k).of; }),
                [&](std::size_t i) { return found(at.worth[i]).worth[i]; });
  }
  sampled compared(dtype t) {
    const sampled x = any(t), y = any(t);
    const auto how = static_cast<direction>(r_.in(0, 5));
    return made(dtype::boolean, a_.compare(how, t, x.of, y.of), [&](std::size_t i) -> int {
      const bool lt = less(t, x.worth[i], y.worth[i]), gt = less(t, y.worth[i], x.worth[i]);
      switch (how) {
        case direction::lt:
          return lt;
        case direction::le:
          return !gt;
        case direction::gt:
          return gt;
        case direction::ge:
          return !lt;
        case direction::eq:
          return !lt && !gt;
        default:
          return lt || gt;
      }
    });
  }
  /// An extremum of the same members twice, in other orders and groupings.
  sampled extreme(dtype t, std::uint64_t op) {
    std::vector<sampled> members;
    for (auto n = r_.in(2, 5); n > 0; --n) members.push_back(any(t));
    const element one = grouped(t, op, members), other = grouped(t, op, members);
    if (t != dtype::u64 && t != dtype::f32) CHECK(one == other);
    return made(t, one, [&](std::size_t i) {
      std::int64_t best = members[0].worth[i];
      for (const auto& each : members)
        if (less(t, each.worth[i], best) == (op == min_of)) best = each.worth[i];
      return best;
    });
  }
  element grouped(dtype t, std::uint64_t op, const std::vector<sampled>& members) {
    std::vector<element> left;
    for (const auto& each : members) left.push_back(each.of);
    while (left.size() > 1) {
      pt::vec<element> some;
      for (auto n = r_.in(2, static_cast<std::int64_t>(left.size())); n > 0; --n) {
        const auto at = r_.in(0, static_cast<std::int64_t>(left.size()) - 1);
        some.push_back(left[static_cast<std::size_t>(at)]);
        left.erase(left.begin() + at);
      }
      left.push_back(a_.group(op, t, some));
    }
    return left[0];
  }
};

/// Returns the value of a number in its type.
std::int64_t worth_of(const sampled& x) {
  return x.type == dtype::f32 ? static_cast<std::int64_t>(4 * real_of(x.of)) : x.of.number;
}
TEST_CASE("formulas that are equal have equal values") {
  int equal = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    formulas f(seed);
    for (int i = 0; i < 60; ++i) f.add_one();
    const auto& all = f.all();
    CAPTURE(seed);
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (all[i].of.known)
        for (const auto worth : all[i].worth) CHECK(worth == worth_of(all[i]));
      for (std::size_t k = 0; k < i; ++k) {
        if (all[i].type != all[k].type || !(all[i].of == all[k].of)) continue;
        ++equal;
        CHECK(all[i].worth == all[k].worth);
      }
    }
  }
  CHECK(equal > 1000);
}

}  // namespace random_formulas
