// Proof by elements: formulas that are equal, formulas that are not, and programs that claims about
// tensors do not prove.
#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace by_elements {

using namespace pt::prove_detail;
using data::str;
using pt::dtype;
using pt::ops::direction;

constexpr auto max_of = pt::def<pt::op::maximum>.id, min_of = pt::def<pt::op::minimum>.id,
               and_of = pt::def<pt::op::logical_and>.id, xor_of = pt::def<pt::op::logical_xor>.id;

struct formulas : algebra {
  element real(int n) { return unknown(dtype::f32, drawing(100).add(n).drawn()); }
  element index(int n) { return unknown(dtype::i32, drawing(101).add(n).drawn()); }
  element truth(int n) { return unknown(dtype::boolean, drawing(102).add(n).drawn()); }
  element plus(const element& x, const element& y) { return sum(dtype::f32, x, y); }
  element times(const element& x, const element& y) { return product(dtype::f32, x, y); }
  element i32_plus(const element& x, int n) { return sum(dtype::i32, x, integer(dtype::i32, n)); }
  element exp(const element& x) { return exponential(dtype::f32, x); }
  element most(const element& x, const element& y) { return group(max_of, dtype::f32, {x, y}); }
  element least(const element& x, const element& y) { return group(min_of, dtype::f32, {x, y}); }
  element is(direction d, const element& x, int n) {
    return compare(d, dtype::i32, x, integer(dtype::i32, n));
  }
  element clamp(const element& x, int low, int high) {
    return group(
        min_of, dtype::i32,
        {group(max_of, dtype::i32, {x, integer(dtype::i32, low)}), integer(dtype::i32, high)});
  }
  /// Returns x(i), where x has the elements from `from` to below `end`.
  element look_up_real(const element& i, int from, int end) {
    return look_up(dtype::i32, i, end - from,
                   [&](std::int64_t k) { return real(from + static_cast<int>(k)); });
  }
};

element p_of(formulas& f) { return f.truth(7); }

TEST_CASE("elements: numbers are exact in both fields") {
  for (const double v : {0.0, 1.0, -1.0, 0.5, -0.375, 3e-300, 1e300, 5e-324, 1.0 / 3}) {
    CAPTURE(v);
    CHECK(field::sum(field::real(v), field::real(-v)) == fingerprint{});
    CHECK(field::sum(field::real(v), field::real(v)) ==
          field::product(field::real(v), field::integer(2)));
  }
  CHECK(field::product(field::real(0.375), field::integer(8)) == field::integer(3));
  CHECK(field::real(-7) == field::integer(-7));
  CHECK(field::integer(INT64_MIN) == field::opposite(field::natural(std::uint64_t{1} << 63)));
  for (const std::uint64_t n : {std::uint64_t{3}, field::p + 2, field::q + 2, ~std::uint64_t{0}})
    CHECK(field::product(field::natural(n), field::inverse(field::natural(n))) ==
          fingerprint{1, 1});
  CHECK(!(integer(dtype::i64, static_cast<std::int64_t>(field::p)).of == fingerprint{}));
}

TEST_CASE("elements: sums and products of real numbers are equal up to order") {
  formulas f;
  const element a = f.real(0), b = f.real(1), c = f.real(2), two = small_number(dtype::f32, 2);
  CHECK(f.plus(a, f.plus(b, c)) == f.plus(f.plus(c, a), b));
  CHECK(f.times(a, f.plus(b, c)) == f.plus(f.times(a, b), f.times(c, a)));
  CHECK(f.difference(dtype::f32, a, b) == f.opposite(dtype::f32, f.difference(dtype::f32, b, a)));
  CHECK(f.quotient(dtype::f32, f.times(two, a), two) == a);
  CHECK(!(f.plus(a, b) == f.plus(a, c)));
  CHECK(!(f.times(a, a) == a));
  CHECK(!(f.quotient(dtype::f32, f.times(a, b), b) == a));  // b may be 0
  CHECK(f.quotient(dtype::f32, f.plus(a, b), c) ==
        f.plus(f.quotient(dtype::f32, b, c), f.quotient(dtype::f32, a, c)));
  CHECK(!(f.convert(dtype::f32, dtype::bf16, f.plus(a, b)) ==
          f.plus(f.convert(dtype::f32, dtype::bf16, a), f.convert(dtype::f32, dtype::bf16, b))));
  CHECK(f.convert(dtype::bf16, dtype::f32, a) == a);
}

TEST_CASE("elements: sums of exponentials are equal in any scaling") {
  formulas f;
  const element a = f.real(0), b = f.real(1), c = f.real(2), v = f.real(3), w = f.real(4);
  const auto e = [&](const element& x, const element& y) {
    return f.exp(f.difference(dtype::f32, x, y));
  };
  CHECK(f.times(e(a, b), e(b, c)) == e(a, c));
  CHECK(!(f.times(e(a, b), e(a, c)) == e(a, c)));
  CHECK(!(f.exponential(dtype::bf16, a) == f.exp(a)));  // (rounded differently)
  CHECK(f.times(f.exponential(dtype::bf16, a), f.exponential(dtype::bf16, b)) ==
        f.exponential(dtype::bf16, f.plus(a, b)));
  CHECK(f.times(e(a, b), e(b, a)) == real(1));
  CHECK(e(a, a) == real(1));
  CHECK(f.exp(real(-__builtin_inf())) == real(0));
  // A sum that is rescaled when a greater element follows, halved and divided on the way.
  const auto sum = [&](const element& m) {
    return f.plus(f.times(e(a, m), v), f.times(w, e(b, m)));
  };
  CHECK(f.times(sum(a), e(a, c)) == sum(c));
  CHECK(f.times(f.times(sum(a), e(a, b)), e(b, c)) == sum(c));
  CHECK(f.plus(f.times(sum(a), e(a, c)), e(v, c)) == f.plus(e(v, c), sum(c)));
  CHECK(f.times(real(0.5), f.times(f.opposite(dtype::f32, sum(a)), e(a, c))) ==
        f.quotient(dtype::f32, f.opposite(dtype::f32, sum(c)), real(2)));
  CHECK(f.times(f.quotient(dtype::f32, sum(a), v), e(a, c)) == f.quotient(dtype::f32, sum(c), v));
  CHECK(f.quotient(dtype::f32, sum(a), e(c, a)) == sum(c));
  CHECK(!(f.times(sum(a), e(b, c)) == sum(c)));
  CHECK(!(f.times(sum(a), sum(a)) == sum(a)));
  CHECK(f.times(sum(a), sum(b)) == f.times(f.times(sum(c), sum(c)), f.times(e(c, a), e(c, b))));
  // Sums that are too large for a list of terms.
  element many = f.exp(f.real(100));
  for (int i = 1; i < 2000; ++i) many = f.plus(f.exp(f.real(100 + i)), many);
  CHECK(f.times(many, e(a, b)) == f.times(e(a, b), many));
  CHECK(!(f.times(many, e(a, b)) == many));
  // A formula whose operands are the formula before it.
  element same = c;
  for (int i = 0; i < 3; ++i) same = f.plus(same, f.difference(dtype::f32, e(a, b), e(a, b)));
  CHECK(f.times(same, e(a, b)) == f.times(e(a, b), c));
}

TEST_CASE(
    "products of sums of exponentials take as much as they have terms, and no more than 256") {
  formulas f;
  const auto sum = [&](int first, int count) {
    element all = f.exp(f.real(first));
    for (int i = 1; i < count; ++i) all = f.plus(all, f.exp(f.real(first + i)));
    return all;
  };
  const auto steps = [&](const element& x, const element& y) {
    const std::int64_t before = f.steps;
    f.times(x, y);
    return f.steps - before;
  };
  CHECK(steps(sum(0, 16), sum(100, 16)) == 256);
  CHECK(steps(sum(0, 256), sum(1000, 1)) == 256);
  CHECK(steps(sum(0, 16), sum(100, 17)) == 0);
  CHECK(steps(sum(0, 257), sum(1000, 1)) == 0);
  CHECK(f.times(sum(0, 257), sum(1000, 1)) == f.times(sum(1000, 1), sum(0, 257)));
}

TEST_CASE("elements: equalities of extrema, flags and bits") {
  formulas f;
  const element a = f.real(0), b = f.real(1), c = f.real(2);
  const auto number = [](int n) { return small_number(dtype::f32, n); };
  CHECK(f.most(a, f.most(b, f.most(c, a))) == f.most(f.most(c, b), a));
  CHECK(f.most(a, real(-__builtin_inf())) == a);
  CHECK(!(f.least(number(1), f.most(a, number(4))) == f.most(number(4), f.least(a, number(1)))));
  CHECK(!(f.most(a, b) == f.least(a, b)));
  const element p = f.truth(0), q = f.truth(1), r = f.truth(2);
  CHECK(f.both(p, f.either(q, r)) == f.either(f.both(r, p), f.both(p, q)));
  CHECK(f.negated(f.both(p, q)) == f.either(f.negated(q), f.negated(p)));
  CHECK(f.both(p, p) == p);
  CHECK(f.both(p, f.negated(p)) == integer(dtype::boolean, 0));
  const element i = f.index(0), k = f.index(1);
  CHECK(f.group(xor_of, dtype::i32, {i, k, i}) == k);
  CHECK(f.group(and_of, dtype::i32, {i, k, i}) == f.group(and_of, dtype::i32, {k, i}));
}

TEST_CASE("elements: selections by the same flag are one") {
  formulas f;
  const element a = f.real(0), b = f.real(1), c = f.real(2), p = f.truth(0), q = f.truth(1);
  CHECK(f.select(p, f.select(p, a, b), c) == f.select(p, a, c));
  CHECK(f.select(p, a, f.select(q, b, a)) == f.select(q, f.select(p, a, b), a));
  CHECK(f.select(f.negated(p), a, b) == f.select(p, b, a));
  CHECK(!(f.select(p, a, b) == f.select(q, a, b)));
  // A sum of masked elements.
  const element zero = small_number(dtype::f32, 0);
  CHECK(f.plus(f.select(p, a, zero), f.select(p, zero, b)) == f.select(p, a, b));
  const auto as_number = f.convert(dtype::boolean, dtype::f32, p);
  CHECK(f.compare(direction::gt, dtype::f32, as_number, zero) == p);
}

TEST_CASE("elements: a masked gather from blocks equals the gather from the whole") {
  formulas f;
  const element i = f.clamp(f.index(0), 0, 5), zero = small_number(dtype::f32, 0);
  const auto piece = [&](int from, int end) {
    const element own = f.i32_plus(i, -from);
    const element here = f.both(f.is(direction::ge, own, 0), f.is(direction::lt, own, end - from));
    return f.select(here, f.look_up_real(own, from, end), zero);
  };
  CHECK(f.plus(piece(0, 3), piece(3, 6)) == f.look_up_real(f.index(0), 0, 6));
  CHECK(f.plus(piece(0, 2), f.plus(piece(4, 6), piece(2, 4))) == f.look_up_real(i, 0, 6));
  CHECK(!(f.plus(piece(0, 3), piece(2, 6)) == f.look_up_real(i, 0, 6)));
  CHECK(!(f.plus(piece(0, 3), piece(3, 5)) == f.look_up_real(i, 0, 6)));
  // Masked by a product, by an index that may be out of bounds, so that the own one may wrap.
  const element any = f.index(0),
                wanted = f.select(f.both(f.is(direction::ge, any, 0), f.is(direction::lt, any, 6)),
                                  f.look_up_real(any, 0, 6), zero);
  const auto masked = [&](int from, int end, int last) {
    const element own = f.i32_plus(any, -from);
    const element here = f.both(f.is(direction::ge, own, 0), f.is(direction::lt, own, last - from));
    return f.times(f.convert(dtype::boolean, dtype::f32, here), f.look_up_real(own, from, end));
  };
  CHECK(f.plus(masked(0, 3, 3), masked(3, 6, 6)) == wanted);
  CHECK(!(f.plus(masked(0, 3, 3), masked(3, 6, 7)) == wanted));
  CHECK(!(f.plus(masked(0, 3, 2), masked(3, 6, 6)) == wanted));
}

TEST_CASE("elements: a gather by two indices from blocks along both dimensions equals the whole") {
  formulas f;
  const element zero = small_number(dtype::f32, 0), first = f.index(0), second = f.index(1);
  const auto in = [&](const element& i, int from, int end) {
    return f.both(f.is(direction::ge, i, from), f.is(direction::lt, i, end));
  };
  const auto table = [&](int rows, int row, int columns, int column) {
    const element i = f.i32_plus(f.clamp(first, 0, 5), -row),
                  k = f.i32_plus(f.clamp(second, 0, 3), -column);
    const element found = f.look_up(dtype::i32, i, rows, [&](std::int64_t r) {
      return f.look_up_real(k, (row + static_cast<int>(r)) * 4 + column,
                            (row + static_cast<int>(r)) * 4 + column + columns);
    });
    return f.select(f.both(in(k, 0, columns), in(i, 0, rows)), found, zero);
  };
  element all = zero;
  for (int row : {0, 3})
    for (int column : {0, 2}) all = f.plus(all, table(3, row, 2, column));
  const element wanted = f.look_up(dtype::i32, first, 6, [&](std::int64_t r) {
    return f.look_up_real(second, static_cast<int>(r) * 4, static_cast<int>(r) * 4 + 4);
  });
  CHECK(all == wanted);
  CHECK(!(f.plus(table(3, 0, 4, 0), table(3, 2, 4, 0)) == wanted));
}

/// Numbers beyond an int64 exceed all others.
TEST_CASE("elements: clamped indices of u64 equal those of i64") {
  formulas f;
  constexpr auto u64 = dtype::u64, i64 = dtype::i64;
  const auto number = [](std::int64_t n) { return integer(u64, n); };
  const auto at = [&](std::int64_t k) { return f.real(static_cast<int>(k)); };
  const element x = f.unknown(u64, drawing(103).drawn());
  const element c = f.group(min_of, u64, {f.group(max_of, u64, {x, number(0)}), number(7)});
  CHECK(f.look_up(u64, x, 8, at) == f.look_up(i64, f.convert(u64, i64, c), 8, at));
  CHECK(f.look_up(u64, x, 8, at) == f.look_up(u64, c, 8, at));
  CHECK(!(f.look_up(u64, x, 8, at) == f.look_up(i64, f.convert(u64, i64, x), 8, at)));
  CHECK(!(f.look_up(u64, x, 9, at) == f.look_up(u64, c, 9, at)));
  const element most = f.group(max_of, u64, {x, number(3)});
  CHECK(!(f.convert(u64, i64, most) == most));
  CHECK(f.convert(u64, i64, c) == c);
  CHECK(f.group(min_of, u64, {x, number(-1)}) == x);
  CHECK(!(f.group(min_of, u64, {x, number(INT64_MIN)}) == x));
  CHECK(!(f.group(min_of, u64, {x, number(INT64_MAX)}) == x));
  const auto reaches = [&](const element& i, std::int64_t n) {
    return f.compare(direction::ge, u64, i, number(n));
  };
  CHECK(reaches(c, 8) == integer(dtype::boolean, 0));
  CHECK(!(reaches(c, INT64_MIN) == integer(dtype::boolean, 1)));
  CHECK(!(reaches(x, INT64_MAX) == reaches(x, INT64_MIN)));
  CHECK(!reaches(x, 5).known);
  CHECK(reaches(c, 5) == reaches(x, 5));
  CHECK(f.compare(direction::eq, u64, c, number(5)) == f.compare(direction::eq, u64, x, number(5)));
  CHECK(!(f.compare(direction::eq, u64, c, number(7)) ==
          f.compare(direction::eq, u64, x, number(7))));
}

TEST_CASE("elements: an integer equals a number of another type only if it has its bits") {
  formulas f;
  constexpr auto u64 = dtype::u64, i64 = dtype::i64, u8 = dtype::u8, i8 = dtype::i8,
                 i32 = dtype::i32;
  const auto is = [&](dtype t, const element& i, std::int64_t n) {
    return f.compare(direction::eq, t, i, integer(t, n));
  };
  const element x = f.unknown(u64, drawing(103).drawn()), y = f.unknown(u8, drawing(105).drawn()),
                signed_x = f.convert(u64, i64, x), signed_y = f.convert(u8, i8, y);
  CHECK(is(i64, signed_x, 3) == is(u64, x, 3));
  CHECK(is(i64, f.difference(i64, signed_x, integer(i64, 2)), 1) == is(u64, x, 3));
  CHECK(is(i64, signed_x, -1) == is(u64, x, -1));
  CHECK(is(u64, f.convert(i64, u64, signed_x), 3) == is(u64, x, 3));
  CHECK(is(i8, signed_y, -1) == is(u8, y, 255));
  CHECK(is(i8, f.sum(i8, signed_y, integer(i8, 100)), -100) == is(u8, y, 56));
  CHECK(!(is(i64, signed_x, INT64_MAX) == is(i64, signed_x, -1)));
  CHECK(!(is(i8, signed_y, 1) == is(u8, y, 255)));
  CHECK(!(is(i32, f.convert(u64, i32, x), 3) == is(u64, x, 3)));
  CHECK(!(f.compare(direction::ge, i8, signed_y, integer(i8, 3)) ==
          f.compare(direction::ge, u8, y, integer(u8, 3))));
  CHECK(is(i8, f.convert(dtype::boolean, i8, f.truth(0)), 5) == integer(dtype::boolean, 0));
}

TEST_CASE("elements: integers out of the range of another type are not equal") {
  formulas f;
  constexpr auto u64 = dtype::u64, u8 = dtype::u8, i8 = dtype::i8, i16 = dtype::i16;
  CHECK(f.convert(dtype::i64, dtype::f32, integer(dtype::i64, -1)) == real(-1));
  CHECK(!(f.convert(u64, dtype::f32, integer(u64, -1)) == real(-1)));
  // Two integers beyond an int64 are not known to be equal.
  const element large = f.select(f.truth(0), integer(u64, -1), integer(u64, -2)),
                any = f.unknown(u64, drawing(103).drawn()),
                most = f.group(max_of, u64, {large, any});
  CHECK(!f.group(max_of, u64, {most, integer(u64, 5)}).known);
  CHECK(f.compare(direction::ge, u64, most, integer(u64, 5)) == integer(dtype::boolean, 1));
  // A negative integer changes without sign: max(x, 0) is not max(u8(x), 0).
  const element x = f.unknown(i8, drawing(104).drawn()), y = f.unknown(u8, drawing(105).drawn()),
                above = f.convert(i8, u8, f.group(max_of, i8, {x, integer(i8, 0)})),
                moved = f.convert(i16, u8, f.sum(i16, f.convert(i8, i16, x), integer(i16, 128))),
                without_sign =
                    f.difference(u8, f.sum(u8, y, moved), f.sum(u8, y, integer(u8, 128)));
  CHECK(!(f.group(max_of, u8, {without_sign, y}) == f.group(max_of, u8, {above, y})));
  CHECK(!(f.group(max_of, u8, {without_sign, integer(u8, 1)}) ==
          f.group(max_of, u8, {above, integer(u8, 1)})));
  CHECK(f.group(max_of, u8, {above, integer(u8, 1)}) ==
        f.convert(i8, u8, f.group(max_of, i8, {x, integer(i8, 1)})));
}

/// A minimum is in the range of its members, out of bounds or not.
TEST_CASE("elements: extrema of selected numbers are bounded") {
  formulas f;
  constexpr auto i32 = dtype::i32;
  const auto number = [](int n) { return integer(i32, n); };
  const auto chosen = [&](int flag, const element& x, const element& y) {
    return f.select(f.truth(flag), x, y);
  };
  const auto least = [&](const pt::vec<element>& all) { return f.group(min_of, i32, all); };
  const auto most = [&](const pt::vec<element>& all) { return f.group(max_of, i32, all); };
  const element few = chosen(0, number(3), number(11)), many = chosen(1, number(5), number(20)),
                x = f.index(0), y = f.index(1);
  CHECK(least({few, many, number(11)}) == least({many, few}));
  CHECK(least({few, many, number(12)}) == least({many, few}));
  CHECK(!(least({few, many, number(10)}) == least({many, few})));
  CHECK(least({few, chosen(1, number(5), number(11))}) == least({few, many}));
  CHECK(least({few, chosen(1, number(5), x)}) ==
        least({chosen(1, number(5), least({x, number(11)})), few}));
  CHECK(!(least({few, chosen(1, number(5), x)}) == least({few, many})));
  CHECK(least({few, f.clamp(x, 11, 30)}) == few);
  CHECK(!(least({few, f.clamp(x, 10, 30)}) == few));
  CHECK(least({f.i32_plus(f.clamp(x, 0, 17), 3), y, number(10)}) ==
        least({y, f.i32_plus(f.clamp(x, 0, 7), 3), number(10)}));
  CHECK(most({few, chosen(1, number(0), number(7)), number(2)}) ==
        most({chosen(1, number(3), number(7)), few}));
  // Follows from the range.
  const element both = least({few, many});
  CHECK(f.is(direction::lt, both, 12) == integer(dtype::boolean, 1));
  CHECK(f.is(direction::ge, both, 3) == integer(dtype::boolean, 1));
  CHECK(!f.is(direction::lt, both, 11).known);
  CHECK(f.clamp(both, 3, 11) == both);
  CHECK(f.look_up_real(both, 0, 12) == f.look_up_real(both, 0, 15));
  CHECK(f.i32_plus(f.clamp(f.i32_plus(both, -3), 0, 8), 3) == both);
  constexpr auto u64 = dtype::u64;
  const element wide = f.select(f.truth(0), integer(u64, 3), integer(u64, -1)),
                wider = f.select(f.truth(1), integer(u64, 4), integer(u64, -2));
  CHECK(f.group(min_of, u64, {wide, wider, integer(u64, -1)}) ==
        f.group(min_of, u64, {wider, wide}));
  CHECK(!(f.group(min_of, u64, {wide, wider, integer(u64, INT64_MAX)}) ==
          f.group(min_of, u64, {wider, wide})));
}

TEST_CASE("elements: integers wrap") {
  formulas f;
  const element i = f.index(0), k = f.index(1);
  CHECK(f.is(direction::eq, f.i32_plus(i, -3), 4) == f.is(direction::eq, i, 7));
  CHECK(!(f.is(direction::ge, f.i32_plus(i, -3), 4) == f.is(direction::ge, i, 7)));
  const element c = f.clamp(i, 0, 100);
  CHECK(f.is(direction::ge, f.i32_plus(c, -3), 4) == f.is(direction::ge, i, 7));
  // A narrow sum wraps, a wide one does not.
  const element x = f.unknown(dtype::i8, drawing(103).drawn()),
                y = f.unknown(dtype::i8, drawing(104).drawn());
  const auto moved = [&](const element& e, int n) {
    return f.sum(dtype::i8, e, integer(dtype::i8, n));
  };
  const auto positive = [&](const element& e) {
    return f.compare(direction::gt, dtype::i8, e, integer(dtype::i8, 0));
  };
  CHECK(positive(moved(moved(x, 100), 100)) == positive(moved(x, -56)));
  CHECK(!(positive(moved(x, 100)) == positive(moved(x, -56))));
  const auto wide = [&](const element& e) { return f.convert(dtype::i8, dtype::i32, e); };
  CHECK(!(wide(f.sum(dtype::i8, x, y)) == f.sum(dtype::i32, wide(x), wide(y))));
  CHECK(!(f.group(max_of, dtype::i8, {f.sum(dtype::i8, x, y), x}) ==
          f.group(max_of, dtype::i32, {f.sum(dtype::i32, wide(x), wide(y)), wide(x)})));
  const element n = f.unknown(dtype::i64, drawing(105).drawn());
  const element last = f.compare(direction::ge, dtype::i64, n, integer(dtype::i64, INT64_MAX));
  const element few = f.is(direction::lt, i, 2), far = f.is(direction::eq, i, 5);
  CHECK(f.select(few, f.select(f.both(p_of(f), far), i, k), k) == k);
  CHECK(f.select(last, f.select(last, i, k), k) == f.select(last, i, k));
  CHECK(f.sum(dtype::u8, integer(dtype::u8, 200), integer(dtype::u8, 100)) ==
        integer(dtype::u8, 44));
  CHECK(
      !(f.compare(direction::lt, dtype::i32, i, k) == f.compare(direction::le, dtype::i32, i, k)));
  CHECK(f.compare(direction::lt, dtype::i32, i, k) == f.compare(direction::gt, dtype::i32, k, i));
}

// ---- Programs -----------------------------------------------------------------------------------

/// The verdict on a program of a mesh {"B":2}. Layouts by input and output; `0`: along dimension 0.
pt::verdict verdict_on(const std::string& source, const std::string& local,
                       const std::vector<int>& inputs, const std::vector<int>& outputs,
                       const pt::prove_options& options = {}) {
  const pt::program p = pt::parse(source);
  pt::device_program d;
  d.local = pt::parse(local, d.mesh);
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  REQUIRE_MESSAGE(!d.local.error, str(d.local.error.message));
  const auto layout = [](int dim) {
    pt::layout l;
    if (dim >= 0) l.push_back(0, dim);
    return l;
  };
  for (int dim : inputs) d.inputs.push_back(layout(dim));
  for (int dim : outputs) d.outputs.push_back(layout(dim));
  return pt::prove(p, d, options);
}
const std::string on_two = " attributes {mesh = {\"B\":2}} {\n";

/// Sums of neighbours around a ring, in a form that lowering never makes.
std::string ring(const std::string& first, const std::string& step) {
  return "func @main(%x: tensor<2xf32>)" + on_two + "  %a = slice(%x) {[" + first +
         "]} : tensor<1xf32>\n"
         "  %b = permute {" +
         step +
         "} <\"B\"> %a : tensor<1xf32>\n"
         "  %c = concatenate(%x, %b) {dim=0} : tensor<3xf32>\n"
         "  %d = slice(%c) {[1:3]} : tensor<2xf32>\n"
         "  %y = add(%x, %d) : tensor<2xf32>\n"
         "  return %y : tensor<2xf32>\n}\n";
}
TEST_CASE("elements: right rings are proved, wrong ones are not") {
  const std::string source =
      "func @main(%x: tensor<4xf32>) {\n"
      "  %r = roll(%x) {dim=0, shift=-1} : tensor<4xf32>\n"
      "  %y = add(%x, %r) : tensor<4xf32>\n"
      "  return %y : tensor<4xf32>\n}\n";
  CHECK(verdict_on(source, ring("0:1", "-1 around"), {0}, {0}).proved);
  CHECK(!verdict_on(source, ring("1:2", "-1 around"), {0}, {0}).proved);
  CHECK(!verdict_on(source, ring("0:1", "-1"), {0}, {0}).proved);
  CHECK(!verdict_on(source, ring("0:1", "-1 around"), {-1}, {0}).proved);
}

TEST_CASE("elements: equal loops of unknown trip count are proved, others are not") {
  const auto loop = [](const std::string& extent, const std::string& mesh, const std::string& by) {
    const std::string t = "tensor<" + extent + "xf32>";
    return "func @main(%x: " + t + ", %n: tensor<i32>)" + mesh +
           "  %i, %y = while(%n, %x) do (%j: tensor<i32>, %z: " + t +
           ") {\n"
           "    %c = constant {3} : tensor<i32>\n"
           "    %h = compare(%j, %c) {lt} : tensor<i1>\n"
           "    return %h : tensor<i1>\n"
           "  } do (%j: tensor<i32>, %z: " +
           t +
           ") {\n"
           "    %c = constant {" +
           by +
           "} : tensor<i32>\n"
           "    %k = add(%j, %c) : tensor<i32>\n"
           "    %f = constant {2} : tensor<f32>\n"
           "    %s = sine(%z) : " +
           t +
           "\n"
           "    %w = multiply(%s, %f) : " +
           t +
           "\n"
           "    return %k, %w : tensor<i32>, " +
           t +
           "\n"
           "  } : tensor<i32>, " +
           t +
           "\n"
           "  return %y : " +
           t + "\n}\n";
  };
  const auto run = [&](const std::string& by) {
    const pt::program p = pt::parse(loop("4", " {\n", "1"));
    pt::device_program d;
    d.local = pt::parse(loop("2", on_two, by), d.mesh);
    REQUIRE_MESSAGE(!p.error, str(p.error.message));
    REQUIRE_MESSAGE(!d.local.error, str(d.local.error.message));
    d.inputs.resize(2);
    d.outputs.resize(1);
    d.inputs[0].push_back(0, 0);
    d.outputs[0].push_back(0, 0);
    return prove_by_elements(p, d, 100000).kind;
  };
  CHECK(run("1") == element_verdict::proved);
  CHECK(run("2") == element_verdict::not_known);
}

/// The two maxima of repeated elements contain the maximum twice; the maximum is the same.
TEST_CASE("elements: the k maxima of repeated elements differ, the maximum does not") {
  const auto top = [](const std::string& mesh, const std::string& ops, int k) {
    const auto n = std::to_string(k), t = "tensor<" + n + "xf32>";
    return "func @main(%x: tensor<4xf32>, %i: tensor<4xi32>)" + mesh +
           "  %a, %k = top_k(%x, %i) {k=" + n + "} : " + t + ", tensor<" + n + "xi32>\n" + ops +
           " : " + t + "\n}\n";
  };
  const auto verdict = [&](int k) {
    const auto n = std::to_string(k), all = std::to_string(2 * k);
    return verdict_on(top(" {\n", "  return %a", k),
                      top(on_two,
                          "  %w = concatenate(%a, %a) {dim=0} : tensor<" + all +
                              "xf32>\n  %l = concatenate(%k, %k) {dim=0} : tensor<" + all +
                              "xi32>\n  %r, %s = top_k(%w, %l) {k=" + n + "} : tensor<" + n +
                              "xf32>, tensor<" + n + "xi32>\n  return %r",
                          k),
                      {-1, -1}, {-1});
  };
  CHECK(verdict(1).proved);
  CHECK(!verdict(2).proved);
}

/// The scan's body contains an unknown loop, which the outputs do not read.
TEST_CASE("elements: an unknown value does not matter if no output needs it") {
  const auto scan = [](const std::string& extent, const std::string& mesh, const std::string& rest,
                       const std::string& by, const std::string& output) {
    std::string all = R"(  %m, %y = scan(%x, %n, %x) {length=2, constants=1, carried=2}
    do (%k: tensor<i32>, %q: T, %j: tensor<i32>, %z: T) {
      %i = while(%j) do (%l: tensor<i32>) {
        %c = constant {3} : tensor<i32>
        %h = compare(%l, %c) {lt} : tensor<i1>
        return %h : tensor<i1>
      } do (%l: tensor<i32>) {
        %c = constant {BY} : tensor<i32>
        %s = add(%l, %c) : tensor<i32>
        return %s : tensor<i32>
      } : tensor<i32>
      REST
      return %i, %w : tensor<i32>, T
    } : tensor<i32>, T
  return OUTPUT
}
)";
    all = "func @main(%x: T, %n: tensor<i32>)" + mesh + all;
    const auto put = [&](const std::string& name, const std::string& text) {
      for (auto at = all.find(name); at != all.npos; at = all.find(name))
        all.replace(at, name.size(), text);
    };
    put("REST", rest);
    put("OUTPUT", output == "y" ? "%y : T" : "%m : tensor<i32>");
    put("BY", by);
    put("T", "tensor<" + extent + "xf32>");
    return all;
  };
  const auto verdict = [&](const std::string& product, const std::string& by,
                           const std::string& output) {
    return verdict_on(
        scan("4", " {\n", "%a = add(%z, %q) : T\n%w = multiply(%a, %z) : T", "1", output),
        scan("2", on_two,
             "%a = multiply(%z, %z) : T\n%b = multiply(" + product + ") : T\n%w = add(%a, %b) : T",
             by, output),
        {0, -1}, {output == "y" ? 0 : -1});
  };
  CHECK(verdict("%q, %z", "1", "y").by_elements);
  CHECK(verdict("%q, %z", "2", "y").by_elements);  // (which depends on an unknown value)
  CHECK(!verdict("%q, %q", "1", "y").proved);
  CHECK(verdict("%q, %z", "1", "m").proved);
  const pt::verdict v = verdict("%q, %z", "2", "m");
  CHECK(!v.proved);
  CHECK(v.undecided);
  CHECK(
      str(v.error.message).ends_with("; element by element, the results of \"while\" are unknown"));
}

TEST_CASE("elements: a program that claims prove is not run on elements") {
  const auto of = [](const std::string& n, const std::string& mesh, const std::string& product) {
    const std::string w = "tensor<99x99xf32>", t = "tensor<" + n + "xf32>";
    return "func @main(%w: " + w + ", %x: " + t + ", %y: " + t + ")" + mesh +
           "  %v = matmul(%w, %w) : " + w + "\n  %s = add(%x, %y) : " + t + "\n" + product +
           "  return %v, %z : " + w + ", " + t + "\n}\n";
  };
  const auto verdict = [&](const std::string& other) {
    return verdict_on(of("4", " {\n", "  %z = multiply(%s, %x) : tensor<4xf32>\n"),
                      of("2", on_two,
                         "  %a = multiply(%x, %x) : tensor<2xf32>\n  %b = multiply(" + other +
                             ") : tensor<2xf32>\n  %z = add(%a, %b) : tensor<2xf32>\n"),
                      {-1, 0, 0}, {-1, 0}, {.most_elements = 50'000});
  };
  CHECK(verdict("%x, %y").by_elements);
  CHECK(!verdict("%y, %y").proved);
  CHECK(verdict("%y, %y").error.message.view().find("element [0] of output \"z\"") !=
        std::string_view::npos);
}

TEST_CASE("elements: a proof by claims can be confirmed by elements") {
  const auto source = pt::parse(
      "func @main(%x: tensor<4x2xf32>, %i: tensor<4xi32>) {\n"
      "  %y = reduce(%x) {add, dims=[0]} : tensor<2xf32>\n"
      "  %m = reduce(%i) {max, dims=[0]} : tensor<i32>\n"
      "  return %y, %m : tensor<2xf32>, tensor<i32>\n}\n");
  const auto local = [](const std::string& axis) {
    pt::device_program d;
    d.local = pt::parse("func @main(%x: tensor<2x2xf32>, %i: tensor<2xi32>)" + on_two +
                            "  %s = reduce(%x) {add, dims=[0]} : tensor<2xf32>\n"
                            "  %n = reduce(%i) {max, dims=[0]} : tensor<i32>\n"
                            "  %y = all_reduce " +
                            axis +
                            " %s : tensor<2xf32>\n"
                            "  %m = all_reduce <@max> <\"B\"> %n : tensor<i32>\n"
                            "  return %y, %m : tensor<2xf32>, tensor<i32>\n}\n",
                        d.mesh);
    REQUIRE_MESSAGE(!d.local.error, str(d.local.error.message));
    d.inputs = {{}, {}};
    d.inputs[0].push_back(0, 0), d.inputs[1].push_back(0, 0);
    d.outputs = {{}, {}};
    return d;
  };
  const pt::device_program right = local("<\"B\">"), wrong = local("<@max> <\"B\">");
  CHECK(pt::prove(source, right).confirmed);
  const pt::verdict few = pt::prove(source, right, {.most_confirmed = 10});
  CHECK((few.proved && !few.confirmed));
  CHECK(!pt::prove(source, right, {.most_confirmed = 0}).confirmed);

  // If an unsound rule proved the wrong program:
  pt::verdict v;
  v.proved = true;
  confirm(source, wrong, 1000, v);
  CHECK((!v.proved && !v.confirmed));
  CHECK(str(v.error.message) ==
        "Q016 prove: it is proved, but element [0] of output \"y\" on device {\"B\": 0} differs "
        "for random inputs; if no infinity is involved, a rule of the checker is unsound (please "
        "report it)");
}

TEST_CASE("elements: a proof by formulas alone is checked with numbers") {
  const auto verdict = [](const std::string& number) {
    const std::string zero = "  %z = constant {0} : tensor<2xf32>\n";
    return verdict_on(
        "func @main(%x: tensor<2xf32>, %i: tensor<i32>) {\n" + zero +
            "  return %z : tensor<2xf32>\n}\n",
        "func @main(%x: tensor<2xf32>, %i: tensor<i32>) attributes {mesh = {\"B\":1}} {\n" + zero +
            "  %n = constant {" + number +
            "} : tensor<2xf32>\n"
            "  %a = add(%x, %n) : tensor<2xf32>\n  %b = subtract(%a, %x) : tensor<2xf32>\n"
            "  %y = multiply(%b, %z) : tensor<2xf32>\n"
            "  return %y : tensor<2xf32>\n}\n",
        {-1, -1}, {-1});
  };
  CHECK(verdict("3").proved);
  const pt::verdict v = verdict("-inf");
  CHECK(!v.proved);
  CHECK_MESSAGE(
      str(v.error.message).find(" differs for random inputs (as an infinity") != std::string::npos,
      str(v.error.message));
}

TEST_CASE("elements: sets of numbers are joined with others") {
  const auto halves = [](const std::string& one, const std::string& other) {
    return "  %a, %i = reduce(" + one +
           ", %p) {argmax, dims=[0]} : tensor<f32>, tensor<i32>\n"
           "  %b, %j = reduce(" +
           other +
           ", %q) {argmax, dims=[0]} : tensor<f32>, tensor<i32>\n"
           "  %c = reshape(%a) : tensor<1xf32>\n  %d = reshape(%b) : tensor<1xf32>\n"
           "  %k = reshape(%i) : tensor<1xi32>\n  %l = reshape(%j) : tensor<1xi32>\n"
           "  %e = concatenate(%c, %d) {dim=0} : tensor<2xf32>\n"
           "  %m = concatenate(%k, %l) {dim=0} : tensor<2xi32>\n"
           "  %v, %y = reduce(%e, %m) {argmax, dims=[0]} : tensor<f32>, tensor<i32>\n";
  };
  const std::string
      in = "func @main(%x: tensor<2xf32>)",
      of = "  %n = constant {3} : tensor<2xf32>\n  %p = iota {dim=0} : tensor<2xi32>\n"
           "  %two = constant {2} : tensor<2xi32>\n  %q = add(%p, %two) : tensor<2xi32>\n",
      out = "  return %v, %y : tensor<f32>, tensor<i32>\n}\n";
  const std::string whole =
      "  %z = concatenate(%n, %x) {dim=0} : tensor<4xf32>\n  %o = iota {dim=0} : tensor<4xi32>\n"
      "  %v, %y = reduce(%z, %o) {argmax, dims=[0]} : tensor<f32>, tensor<i32>\n";
  const auto verdict = [&](const std::string& local) {
    return verdict_on(in + " {\n" + of + whole + out,
                      in + " attributes {mesh = {\"B\":1}} {\n" + of + local + out, {-1}, {-1, -1});
  };
  CHECK(verdict(halves("%n", "%x")).proved);
  CHECK(!verdict(halves("%x", "%n")).proved);
}

TEST_CASE("elements: with numbers for inputs, indices and flags are numbers") {
  const auto number_of = [](const std::string& body) {
    const pt::program p = pt::parse("func @main(%i: tensor<4xi32>, %x: tensor<4xf32>) {\n" + body +
                                    "  return %y : tensor<4xi32>\n}\n");
    REQUIRE_MESSAGE(!p.error, str(p.error.message));
    algebra a;
    a.at_numbers = true;
    const pt::mesh alone;
    const devices one(alone);
    const std::int64_t indices[] = {-3, 5, 1, 40};
    const double reals[] = {0.5, -2, 3, 3};
    pt::vec<tensors> inputs{no_elements_yet(p.input_type(0), 1),
                            no_elements_yet(p.input_type(1), 1)};
    for (std::size_t k = 0; k < 4; ++k) {
      inputs[0].all[k] = integer(dtype::i32, indices[k]);
      inputs[1].all[k] = partita::prove_detail::real(reals[k]);
    }
    std::vector<std::int64_t> made;
    for (const element& each : element_interpreter(a, one, true).run(p, inputs)[0].all) {
      CHECK(each.known);
      made.push_back(each.number);
    }
    const pt::results expected = pt::evaluate(
        p, std::vector<pt::array>{
               data::fill(p.input_type(0), [&](std::int64_t k) { return double(indices[k]); }),
               data::fill(p.input_type(1), [&](std::int64_t k) { return reals[k]; })});
    for (std::size_t k = 0; k < 4; ++k) CHECK(made[k] == expected[0].data<std::int32_t>()[k]);
    return made;
  };
  using list = std::vector<std::int64_t>;
  const auto shifted = [&](const std::string& op, const std::string& by) {
    return number_of("  %b = constant {" + by + "} : tensor<4xi32>\n  %y = " + op +
                     "(%i, %b) : tensor<4xi32>\n");
  };
  CHECK(shifted("shift_left", "31") == list{INT32_MIN, INT32_MIN, INT32_MIN, 0});
  CHECK(shifted("shift_left", "32") == list{0, 0, 0, 0});
  CHECK(shifted("shift_right_arithmetic", "1") == list{-2, 2, 0, 20});
  CHECK(shifted("shift_right_arithmetic", "-1") == list{-1, 0, 0, 0});
  CHECK(shifted("shift_right_logical", "28") == list{15, 0, 0, 0});
  const auto of_reals = [&](const std::string& op) {
    return number_of("  %r = " + op + " : tensor<4xf32>\n  %y = convert(%r) : tensor<4xi32>\n");
  };
  CHECK(of_reals("sign(%x)") == list{1, -1, 1, 1});
  CHECK(of_reals("abs(%x)") == list{0, 2, 3, 3});
  CHECK(number_of("  %c = convert(%i) : tensor<4xf32>\n  %n = constant {-4} : tensor<4xf32>\n"
                  "  %r = remainder(%c, %n) : tensor<4xf32>\n"
                  "  %y = convert(%r) : tensor<4xi32>\n") == list{-3, 1, 1, 0});
  const std::string spread = "  %y = broadcast_in_dim(%k) {dims=[]} : tensor<4xi32>\n";
  CHECK(number_of("  %v, %k = reduce(%x, %i) {argmax, dims=[0]} : tensor<f32>, tensor<i32>\n" +
                  spread) == list{1, 1, 1, 1});  // of 3 at 1 and at 40
  CHECK(number_of("  %v, %k = reduce(%x, %i) {argmin, dims=[0]} : tensor<f32>, tensor<i32>\n" +
                  spread) == list{5, 5, 5, 5});
  CHECK(number_of("  %v, %y = top_k(%x, %i) {k=4} : tensor<4xf32>, tensor<4xi32>\n") ==
        list{1, 40, -3, 5});
}

TEST_CASE("elements: values that claims know are those of the source") {
  const auto of = [](const std::string& rows, const std::string& mesh, const std::string& product) {
    const std::string t = "tensor<" + rows + "x20xf32>";
    return "func @main(%v: " + t + ", %w: tensor<20x20xf32>, %y: " + t + ")" + mesh +
           "  %m = matmul(%v, %w) : " + t + "\n" + product + "  return %z : " + t + "\n}\n";
  };
  const auto verdict = [&](const std::string& whole, const std::string& other, std::int64_t most) {
    const std::string t = " : tensor<5x20xf32>\n";
    return verdict_on(of(whole, " {\n",
                         "  %s = add(%m, %y) : tensor<" + whole +
                             "x20xf32>\n  %z = multiply(%s, %m) : tensor<" + whole + "x20xf32>\n"),
                      of("5", " attributes {mesh = {\"B\":8}} {\n",
                         "  %a = multiply(%m, %m)" + t + "  %b = multiply(" + other + ")" + t +
                             "  %z = add(%a, %b)" + t),
                      {0, -1, 0}, {0}, {.most_elements = most});
  };
  for (const std::string rows : {"40", "38"}) {  // (38: the last device has padded rows)
    CAPTURE(rows);
    CHECK(verdict(rows, "%m, %y", 30'000).by_elements);  // (16,000 products, and the same again)
    CHECK(!verdict(rows, "%y, %y", 100'000).proved);
    CHECK(!verdict(rows, "%m, %m", 100'000).proved);
  }
}

/// The number of proved partitions of g against f: one along each dimension of x and y.
template <class F, class G>
int proves(const F& f, const G& g) {
  const auto x = pt::input<float, 4, 6>("x"), y = pt::input<float, 4, 6>("y");
  const pt::program source = pt::trace(f, x, y);
  int proved = 0;
  for (const int dim : {0, 1}) {
    const auto p = pt::partition(pt::trace(g, x, y), {{"B", 2}},
                                 pt::schedule(pt::manual("B", {{"x", dim}, {"y", dim}})));
    const bool equal =
        prove_by_elements(source, p.device, 1'000'000).kind == element_verdict::proved;
    if (equal)  // numbers do not contradict
      CHECK(compare_at_numbers(source, p.device, 1'000'000).kind == element_verdict::proved);
    proved += equal;
  }
  return proved;
}
constexpr auto along = [](const auto& x) { return pt::expand_dims<1>(x); };
constexpr auto sums = [](const auto& x) { return along(pt::sum<1>(x)); };
constexpr auto shifted_exp = [](const auto& x) { return pt::exp(x - along(pt::reduce_max<1>(x))); };
constexpr auto softmax = [](const auto& x) {
  const auto e = shifted_exp(x);
  return e / sums(e);
};
/// The gradient of softmax for a gradient y of its results.
constexpr auto softmax_backward = [](const auto& p, const auto& y) {
  return p * (y - sums(y * p));
};

TEST_CASE("elements: quotients by products") {
  const auto once = [](auto x, auto y) { return x / (y * y); };
  CHECK(proves(once, [](auto x, auto y) { return x / y / y; }) == 2);
  CHECK(proves(once, [](auto x, auto y) { return x / y / x; }) == 0);
  CHECK(proves([](auto x, auto y) { return x / (y / x); },
               [](auto x, auto y) { return x * x / y; }) == 2);
  CHECK(proves([](auto x, auto y) { return x / (4 * y); },
               [](auto x, auto y) { return x * 0.25 / y; }) == 2);
  // y may be 0.
  CHECK(proves([](auto x, auto y) { return x * y / y; }, [](auto x, auto) { return -(-x); }) == 0);
  CHECK(proves([](auto x, auto y) { return x * y / sums(y); },
               [](auto x, auto y) { return x * (0.25 * y) / (0.25 * sums(y)); }) == 2);
}

TEST_CASE("elements: gradients of softmax") {
  const auto source = [](auto x, auto y) { return softmax_backward(softmax(x), y); };
  const auto from_lse = [&](const auto& least) {
    return proves(source, [&](auto x, auto y) {
      const auto m = least(along(pt::reduce_max<1>(x)), x);
      return softmax_backward(pt::exp(x - (m + pt::log(sums(pt::exp(x - m))))), y);
    });
  };
  CHECK(from_lse([](auto m, auto) { return m; }) == 2);
  CHECK(from_lse([](auto, auto x) { return 0 * along(pt::reduce_max<1>(x)); }) == 2);
  CHECK(from_lse([](auto, auto x) { return x; }) == 0);
  const auto quotients = [&](const auto& square) {
    return proves(source, [&](auto x, auto y) {
      const auto e = shifted_exp(x);
      const auto l = sums(e);
      return e * y / l - e * sums(e * y) / square(l);
    });
  };
  CHECK(quotients([](auto l) { return l * l; }) == 2);
  CHECK(quotients([](auto l) { return l; }) == 0);
}

TEST_CASE("elements: exp(log(x)) is x for a sum of exponentials, which is positive") {
  const auto log_of = [](const auto& f) {
    return proves([&](auto x, auto y) { return pt::exp(pt::log(f(x, y))); },
                  [&](auto x, auto y) { return -(-f(x, y)); });
  };
  CHECK(log_of([](auto x, auto y) { return pt::exp(x) + 2 * pt::exp(y) + 1; }) == 2);
  CHECK(log_of([](auto x, auto y) { return pt::exp(x) - pt::exp(y); }) == 0);
  CHECK(log_of([](auto x, auto y) { return pt::exp(x) * y; }) == 0);
  CHECK(log_of([](auto x, auto) { return x; }) == 0);
}

TEST_CASE("elements: flags as integers") {
  const auto any = [](auto x, auto y) { return pt::convert<float>(pt::any<0>(x < y)); };
  const auto all = [](auto x, auto y) { return pt::convert<float>(pt::all<0>(x < y)); };
  const auto greatest = [](auto x, auto y) {
    return pt::convert<float>(pt::reduce_max<0>(pt::convert<std::int32_t>(x < y)) > 0);
  };
  const auto least = [](auto x, auto y) { return pt::reduce_min<0>(pt::convert<float>(x < y)); };
  CHECK(proves(any, greatest) == 2);
  CHECK(proves(all, least) == 2);
  CHECK(proves(any, least) == 0);
  CHECK(proves(all, greatest) == 0);
}

TEST_CASE("elements: an op without a rule is a function of the slices that its tile map stacks") {
  const auto a = pt::input<float, 4, 3, 3>("a");
  const auto b = pt::input<float, 4, 3, 6>("b");
  const auto is_proved = [&](const auto& model, const auto& other, const auto& tactic) {
    const auto p = pt::partition(pt::trace(other, a, b), {{"B", 2}}, pt::schedule(tactic));
    return prove_by_elements(pt::trace(model, a, b), p.device, 1'000'000).kind ==
           element_verdict::proved;
  };
  const auto solved = [](auto a, auto b) { return pt::triangular_solve(a, b); };
  const auto factor = [](auto a, auto) { return pt::cholesky(a); };
  const auto columns = pt::manual("B", {{"b", 2}});
  CHECK(is_proved(factor, factor, pt::manual("B", {{"a", 0}})));
  CHECK(is_proved(solved, solved, pt::manual("B", {{"a", 0}, {"b", 0}})));
  CHECK(is_proved(solved, solved, columns));
  CHECK_FALSE(is_proved(
      solved, [](auto a, auto b) { return pt::triangular_solve(a, pt::reverse<2>(b)); }, columns));
  CHECK_FALSE(is_proved(
      solved, [](auto a, auto b) { return pt::triangular_solve(pt::reverse<0>(a), b); }, columns));
}

TEST_CASE("elements: more elements than the limit are not tried") {
  const std::string source =
      "func @main(%x: tensor<4xf32>) {\n"
      "  %y = cumsum(%x) {dim=0} : tensor<4xf32>\n  return %y : tensor<4xf32>\n}\n";
  const std::string local =
      "func @main(%x: tensor<2xf32>)" + on_two +
      "  %y = cumsum(%x) {dim=0} : tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n";
  const auto said = [&](std::int64_t most) {
    return str(verdict_on(source, local, {0}, {0}, {.most_elements = most}).error.message);
  };
  CHECK(said(10).ends_with(
      "; element by element it takes more than 10 steps (prove_options.most_elements)"));
  CHECK(said(1000) ==
        said(0) +
            "; formulas first differ at element [2] of output \"y\" on device {\"B\": 1}: "
            "it is \"x\"[2] here and \"x\"[0] + \"x\"[1] + \"x\"[2] in the source; only in the "
            "source: \"x\"[0] + \"x\"[1]");
}

TEST_CASE("elements: iterations count as steps, whatever they do") {
  const auto swapped = [](const std::string& first) {
    return "  %x, %y = scan(" + first +
           ") {length=2000000000, carried=2} do (%i: tensor<i32>, %c: tensor<2xf32>, %d: "
           "tensor<2xf32>) {\n    return %d, %c : tensor<2xf32>, tensor<2xf32>\n"
           "  } : tensor<2xf32>, tensor<2xf32>\n  return %x : tensor<2xf32>\n}\n";
  };
  const std::string in = "func @main(%a: tensor<2xf32>, %b: tensor<2xf32>)";
  const pt::verdict v = verdict_on(in + " {\n" + swapped("%a, %b"),
                                   in + " attributes {mesh = {\"B\":1}} {\n" + swapped("%b, %a"),
                                   {-1, -1}, {-1}, {.most_elements = 10'000});
  CHECK(!v.proved);
  CHECK(v.undecided);
}

TEST_CASE("elements: a number that its type rounds decides nothing") {
  // 256 + 1 is 256 in bf16, and 2^24 + 1 is 2^24 in f32: formulas are over the real numbers.
  formulas f;
  const auto known = [&](dtype narrow, double x) {
    const element sum = f.sum(narrow, real(x), real(1));
    return f.convert(narrow, dtype::i32, sum).known ||
           f.compare(direction::gt, narrow, sum, real(x)).known ||
           f.compare(direction::gt, dtype::f64, f.convert(narrow, dtype::f64, sum), real(x)).known;
  };
  CHECK(!known(dtype::bf16, 256));
  CHECK(!known(dtype::f32, 0x1p24));
  CHECK(known(dtype::bf16, 254));
  CHECK(known(dtype::f64, 0x1p24));
}

TEST_CASE("elements: the first element that differs is reported") {
  const std::string source =
      "func @main(%x: tensor<4x2xf32>) {\n"
      "  %y = exp(%x) : tensor<4x2xf32>\n"
      "  %z = reduce(%y) {add, dims=[0]} : tensor<2xf32>\n  return %z : tensor<2xf32>\n}\n";
  const auto said = [&](const std::string& ops) {
    const std::string local = "func @main(%x: tensor<2x2xf32>)" + on_two + ops + "}\n";
    const pt::verdict v = verdict_on(source, local, {0}, {-1});
    CHECK(!v.proved);
    const std::string all = str(v.error.message);
    const auto at = all.find("; formulas first differ at ");
    return at == all.npos ? all : all.substr(at + 27);
  };
  const std::string begin =
      "  %y = exp(%x) : tensor<2x2xf32>\n"
      "  %w = reduce(%y) {add, dims=[0]} : tensor<2xf32>\n";
  CHECK(
      said(begin + "  return %w : tensor<2xf32>\n") ==
      "element [0] of output \"z\" on device {\"B\": 0}: it is exp(\"x\"[0, 0]) + exp(\"x\"[1, 0]) "
      "here and exp(\"x\"[0, 0]) + exp(\"x\"[1, 0]) + exp(\"x\"[2, 0]) + exp(\"x\"[3, 0]) in the "
      "source; only in the source: exp(\"x\"[2, 0]) + exp(\"x\"[3, 0])");
  CHECK(said(begin + "  %v = all_reduce<\"B\"> %w : tensor<2xf32>\n"
                     "  %u = all_reduce<\"B\"> %v : tensor<2xf32>\n  return %u : tensor<2xf32>\n")
            .ends_with("; only here: exp(\"x\"[0, 0]) + exp(\"x\"[1, 0]) + exp(\"x\"[2, 0]) + "
                       "exp(\"x\"[3, 0])"));
  CHECK(said("  %m = reduce(%x) {max, dims=[0]} : tensor<2xf32>\n"
             "  %v = all_reduce <@max> <\"B\"> %m : tensor<2xf32>\n  return %v : tensor<2xf32>\n")
            .starts_with("element [0] of output \"z\" on device {\"B\": 0}: it is maximum(\"x\""));
}

}  // namespace by_elements
