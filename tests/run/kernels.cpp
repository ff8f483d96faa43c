// Every kernel compared with a plain loop over indices.
#include <cmath>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/run/kernels/dot_general.hpp>

using namespace partita;

namespace {

constexpr dtype all_types[] = {dtype::f32, dtype::f64, dtype::bf16,   dtype::f16, dtype::i8,
                               dtype::i16, dtype::i32, dtype::i64,    dtype::u8,  dtype::u16,
                               dtype::u32, dtype::u64, dtype::boolean};
const shape shapes[] = {{},     {1},       {0},       {7},           {16},     {1, 1},
                        {3, 5}, {2, 0, 3}, {2, 3, 5}, {1, 17, 1, 4}, {37, 41}, {2, 2, 3, 2, 5}};

/// Returns small integers in a fixed order, as type `t`; negative ones only if the type has them.
array numbers(dtype t, const shape& s, int seed = 1) {
  array a(tensor_type{dtype::i64, s});
  auto* x = a.mutable_data<std::int64_t>();
  std::uint64_t state = static_cast<std::uint64_t>(seed) * 2654435761u + 12345;
  for (std::int64_t i = 0; i < a.size(); ++i) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    x[i] = static_cast<std::int64_t>(state >> 40) % 9 -
           (is_unsigned(t) || t == dtype::boolean ? 0 : 4);
  }
  return as_type(a, t);
}
/// Returns a small number as an unsigned type holds it, which wraps; from u64 in binary64, rounded.
double wrapped(dtype t, double v) {
  return is_unsigned(t) && v < 0 ? std::ldexp(1., static_cast<int>(8 * size_of(t))) + v : v;
}
double at(const array& a, std::int64_t i) { return as_type(a, dtype::f64).data<double>()[i]; }
/// Calls f(index) for every index of a shape, in row-major order.
template <class F>
void for_each(const shape& s, F f) {
  std::vector<std::int64_t> index(static_cast<std::size_t>(s.rank), 0);
  for (std::int64_t i = 0; i < s.elements(); ++i) {
    f(index);
    for (int d = s.rank; d-- > 0;) {
      if (++index[static_cast<std::size_t>(d)] < s[d]) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}
std::int64_t offset(const shape& s, const std::vector<std::int64_t>& index) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s[d] + index[static_cast<std::size_t>(d)];
  return n;
}
/// Runs one op; its own rule gives the result type.
array run(const op_def& op, std::vector<array> operands, std::vector<std::int64_t> attrs = {},
          const tensor_type& declared = {}) {
  builder b;
  std::vector<value_id> v;
  for (const auto& a : operands) v.push_back(ops::parameter(b, "x", a.type()));
  const value_id r = b.emit(op, v, attrs, declared);
  REQUIRE_MESSAGE(r >= 0, std::string(b.p.error.message.view()));
  return run_op(op, operands, attrs, b.p.type(r));
}
/// Returns the results of `expected(i)`, rounded to the element type of `like`.
template <class F>
void check_elements(const array& got, F expected) {
  const array wide = as_type(got, dtype::f64);
  array want(tensor_type{dtype::f64, got.shape()});
  for (std::int64_t i = 0; i < got.size(); ++i) want.mutable_data<double>()[i] = expected(i);
  CHECK(partita::equal(got, as_type(want, got.element())));
}

template <class F>
void check_binary(const op_def& op, F f) {
  for (dtype t : all_types) {
    if (t == dtype::boolean) continue;
    for (const shape& s : shapes) {
      const array x = numbers(t, s, 1), y = numbers(t, s, 2), c = numbers(t, {}, 3);
      CAPTURE(op.name);
      const array wx = as_type(x, dtype::f64), wy = as_type(y, dtype::f64);
      const double* px = wx.data<double>();
      const double* py = wy.data<double>();
      const double pc = at(c, 0);
      // Small numbers overflow only in these types. (See below for differences of u64.)
      const auto wrap = [&](double v) { return wrapped(t, v); };
      if (t == dtype::u64 && &op == &def<op::subtract>) continue;
      check_elements(run(op, {x, y}), [&](std::int64_t i) { return wrap(f(px[i], py[i])); });
      check_elements(run(op, {x, c}), [&](std::int64_t i) { return wrap(f(px[i], pc)); });
      check_elements(run(op, {c, y}), [&](std::int64_t i) { return wrap(f(pc, py[i])); });
    }
  }
}

}  // namespace

TEST_CASE("arithmetic: every type, shape and scalar operand") {
  check_binary(def<op::add>, [](double x, double y) { return x + y; });
  check_binary(def<op::subtract>, [](double x, double y) { return x - y; });
  check_binary(def<op::multiply>, [](double x, double y) { return x * y; });
  check_binary(def<op::maximum>, [](double x, double y) { return std::max(x, y); });
  check_binary(def<op::minimum>, [](double x, double y) { return std::min(x, y); });
  for (dtype t : all_types) {
    if (t == dtype::boolean || is_unsigned(t)) continue;
    const array x = numbers(t, {37, 41});
    check_elements(run(def<op::negate>, {x}), [w = as_type(x, dtype::f64)](std::int64_t i) {
      return 0 - w.data<double>()[i];
    });
  }
}

TEST_CASE("division: floats divide, integers truncate, and no operand crashes") {
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
    const array x = numbers(t, {37}), y = as_type(xt::xarray<double>(xt::arange(1., 38.)), t);
    check_elements(run(def<op::divide>, {x, y}), [&](std::int64_t i) {
      return t == dtype::f64
                 ? at(x, i) / at(y, i)
                 : static_cast<double>(static_cast<float>(at(x, i)) / static_cast<float>(at(y, i)));
    });
  }
  constexpr auto least = std::numeric_limits<std::int32_t>::min();
  const array x = xt::xarray<std::int32_t>{7, -7, 5, least},
              y = xt::xarray<std::int32_t>{2, 2, 0, -1};
  CHECK(partita::equal(run(def<op::divide>, {x, y}), xt::xarray<std::int32_t>{3, -3, -1, least}));
  const array u = xt::xarray<std::uint8_t>{200, 9}, v = xt::xarray<std::uint8_t>{7, 0};
  CHECK(partita::equal(run(def<op::divide>, {u, v}), xt::xarray<std::uint8_t>{28, 255}));
  CHECK(partita::equal(
      run(def<op::add>, {array(std::numeric_limits<std::int64_t>::max()), array(std::int64_t{1})}),
      array(std::numeric_limits<std::int64_t>::min())));
  CHECK(partita::equal(
      run(def<op::multiply>, {array(std::int32_t{65536}), array(std::int32_t{65536})}),
      array(std::int32_t{0})));
}

TEST_CASE("functions: close to libm, exact at the ends, the same at every position") {
  struct entry {
    const op_def* op;
    double (*f)(double);
    double low, high;
  };
  const entry table[] = {
      {&def<op::exp>, [](double x) { return std::exp(x); }, -80, 80},
      {&def<op::log>, [](double x) { return std::log(x); }, 1e-3, 1e3},
      {&def<op::tanh>, [](double x) { return std::tanh(x); }, -12, 12},
      {&def<op::erf>, [](double x) { return std::erf(x); }, -6, 6},
      {&def<op::sqrt>, [](double x) { return std::sqrt(x); }, 0, 100},
      {&def<op::rsqrt>, [](double x) { return 1 / std::sqrt(x); }, 0.01, 100},
  };
  for (const auto& e : table) {
    CAPTURE(e.op->name);
    for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
      const bool half = t == dtype::bf16 || t == dtype::f16;
      const double limit = half ? 10. : e.high;
      xt::xarray<double> grid =
          xt::linspace<double>(half ? std::max(e.low, -10.) : e.low, limit, 1237);
      const array x = as_type(grid, t), y = run(*e.op, {x});
      const double rtol = t == dtype::f64    ? 1e-13
                          : t == dtype::f32  ? 2e-6
                          : t == dtype::bf16 ? 4e-3
                                             : 5e-4;
      const double tiny = t == dtype::f64 ? 1e-15 : t == dtype::f16 ? 1e-7 : 4e-7;
      array want(tensor_type{dtype::f64, x.shape()});
      for (std::int64_t i = 0; i < x.size(); ++i) want.mutable_data<double>()[i] = e.f(at(x, i));
      CHECK(all_close(y, want, rtol, tiny));
      // An element on its own has the same bits as among others.
      for (std::int64_t i : {0, 1, 15, 16, 700, 1236}) {
        const array one = run(def<op::slice>, {x}, {i, i + 1});
        CHECK(partita::equal(run(*e.op, {one}), run(def<op::slice>, {y}, {i, i + 1})));
      }
    }
  }
  constexpr float inf = std::numeric_limits<float>::infinity(),
                  nan = std::numeric_limits<float>::quiet_NaN();
  const array ends = xt::xarray<float>{inf, -inf, nan, 0.f, -200.f};
  CHECK(partita::equal(run(def<op::exp>, {ends}), xt::xarray<float>{inf, 0.f, nan, 1.f, 0.f}));
  CHECK(partita::equal(run(def<op::tanh>, {ends}), xt::xarray<float>{1.f, -1.f, nan, 0.f, -1.f}));
  CHECK(partita::equal(run(def<op::erf>, {ends}), xt::xarray<float>{1.f, -1.f, nan, 0.f, -1.f}));
  CHECK(partita::equal(run(def<op::log>, {ends}), xt::xarray<float>{inf, nan, nan, -inf, nan}));
  CHECK(partita::equal(run(def<op::sqrt>, {xt::xarray<float>{4.f, -1.f, 9.f, inf}}),
                       xt::xarray<float>{2.f, nan, 3.f, inf}));
  CHECK(partita::equal(run(def<op::maximum>, {ends, array(1.f)}),
                       xt::xarray<float>{inf, 1.f, nan, 1.f, 1.f}));
  CHECK(partita::equal(run(def<op::minimum>, {array(nan), ends}),
                       xt::xarray<float>{nan, nan, nan, nan, nan}));
  const array wide = as_type(ends, dtype::f64);
  CHECK(partita::equal(as_type(run(def<op::exp>, {wide}), dtype::f32),
                       xt::xarray<float>{inf, 0.f, nan, 1.f, 0.f}));
  CHECK(all_close(run(def<op::exp>, {run(def<op::slice>, {wide}, {1, 2})}), xt::xarray<double>{0.},
                  0, 0));
}

TEST_CASE("compare and select") {
  for (dtype t : all_types)
    for (const shape& s : shapes) {
      const array x = numbers(t, s, 1), y = numbers(t, s, 2);
      const array wx = as_type(x, dtype::f64), wy = as_type(y, dtype::f64);
      const double *px = wx.data<double>(), *py = wy.data<double>();
      const double other = at(numbers(t, {}, 5), 0);
      for (int d = 0; d < 6; ++d) {
        const array r = run(def<op::compare>, {x, y}, {d});
        const auto chosen = [&](std::int64_t i) { return r.bytes()[i] != std::byte{0}; };
        check_elements(r, [&](std::int64_t i) {
          const double a = px[i], b = py[i];
          const bool all[] = {a == b, a != b, a<b, a <= b, a> b, a >= b};
          return all[d] ? 1. : 0.;
        });
        check_elements(run(def<op::select>, {r, x, y}),
                       [&](std::int64_t i) { return chosen(i) ? px[i] : py[i]; });
        check_elements(run(def<op::select>, {r, x, numbers(t, {}, 5)}),
                       [&](std::int64_t i) { return chosen(i) ? px[i] : other; });
      }
    }
  const float nan = std::numeric_limits<float>::quiet_NaN();
  for (int d = 0; d < 6; ++d)
    CHECK(run(def<op::compare>, {array(nan), array(nan)}, {d}).item<bool>() == (d == 1));
}

TEST_CASE("convert: all pairs, saturation, one rounding") {
  for (dtype from : all_types)
    for (dtype to : all_types) {
      if (is_integer(from) && !is_unsigned(from) && to == dtype::u64)
        continue;  // element_types.cpp
      const array x = numbers(from, {37});
      check_elements(run(def<op::convert>, {x}, {}, {to, {}}), [&](std::int64_t i) {
        // Integers wrap, floats saturate.
        const double v = at(x, i);
        return is_integer(from) ? wrapped(to, v) : is_unsigned(to) ? std::max(v, 0.) : v;
      });
    }
  constexpr double inf = std::numeric_limits<double>::infinity();
  const array x =
      xt::xarray<double>{-1.9, 1.9, 3e9, -3e9, inf, -inf, std::nan(""), 1e19, 300., -5.};
  using i32 = std::numeric_limits<std::int32_t>;
  using i64 = std::numeric_limits<std::int64_t>;
  CHECK(partita::equal(run(def<op::convert>, {x}, {}, {dtype::i32, {}}),
                       xt::xarray<std::int32_t>{-1, 1, i32::max(), i32::min(), i32::max(),
                                                i32::min(), 0, i32::max(), 300, -5}));
  CHECK(partita::equal(run(def<op::convert>, {x}, {}, {dtype::i64, {}}),
                       xt::xarray<std::int64_t>{-1, 1, 3000000000, -3000000000, i64::max(),
                                                i64::min(), 0, i64::max(), 300, -5}));
  CHECK(partita::equal(run(def<op::convert>, {x}, {}, {dtype::u8, {}}),
                       xt::xarray<std::uint8_t>{0, 1, 255, 0, 255, 0, 0, 255, 255, 0}));
  // Just above the middle of two bf16 values: rounding to binary32 first would round down to even.
  const double middle = 1.0 + 0x1p-8, above = middle + 0x1p-40;
  CHECK(at(run(def<op::convert>, {array(middle)}, {}, {dtype::bf16, {}}), 0) == 1.0);
  CHECK(at(run(def<op::convert>, {array(above)}, {}, {dtype::bf16, {}}), 0) == 1.0 + 0x1p-7);
}

TEST_CASE("constant and iota") {
  for (dtype t : all_types)
    for (const shape& s : shapes) {
      const std::int64_t bits = ops::constant_bits(t, t == dtype::boolean ? 1 : 3);
      check_elements(run(def<op::constant>, {}, {bits}, {t, s}),
                     [&](std::int64_t) { return t == dtype::boolean ? 1. : 3.; });
      for (int d = 0; d < s.rank; ++d) {
        const array r = run(def<op::iota>, {}, {d}, {t, s});
        std::int64_t k = 0;
        for_each(s, [&](const auto& i) {
          const double n = static_cast<double>(i[static_cast<std::size_t>(d)]);
          CHECK(at(r, k++) == (t == dtype::boolean ? n != 0 : n));
        });
      }
    }
}

TEST_CASE("broadcast_in_dim, transpose, reshape, slice, concatenate") {
  struct broadcast {
    shape from, to;
    std::vector<std::int64_t> dims;
  };
  const broadcast broadcasts[] = {{{}, {3, 5}, {}},
                                  {{5}, {3, 5}, {1}},
                                  {{3}, {3, 5}, {0}},
                                  {{3, 1}, {3, 5}, {0, 1}},
                                  {{2, 5}, {2, 3, 5}, {0, 2}},
                                  {{3}, {2, 3, 5}, {1}},
                                  {{1, 5}, {2, 0, 5}, {0, 2}},
                                  {{1, 1}, {1, 1, 1}, {0, 2}},
                                  {{2, 1, 3}, {2, 7, 3}, {0, 1, 2}}};
  const std::pair<shape, std::vector<std::int64_t>> transposes[] = {{{}, {}},
                                                                    {{3, 5}, {1, 0}},
                                                                    {{37, 41}, {1, 0}},
                                                                    {{2, 3, 5}, {2, 0, 1}},
                                                                    {{2, 3, 5}, {1, 0, 2}},
                                                                    {{2, 1, 3, 4}, {0, 2, 1, 3}},
                                                                    {{2, 3, 4, 5}, {3, 1, 0, 2}},
                                                                    {{2, 0, 3}, {2, 1, 0}}};
  for (dtype t : all_types) {
    for (const auto& e : broadcasts) {
      const array x = numbers(t, e.from),
                  r = run(def<op::broadcast_in_dim>, {x}, e.dims, {t, e.to});
      std::int64_t k = 0;
      for_each(e.to, [&](const auto& i) {
        std::vector<std::int64_t> j;
        for (std::size_t d = 0; d < e.dims.size(); ++d)
          j.push_back(e.from[static_cast<int>(d)] == 1 ? 0
                                                       : i[static_cast<std::size_t>(e.dims[d])]);
        CHECK(at(r, k++) == at(x, offset(e.from, j)));
      });
    }
    for (const auto& [s, permutation] : transposes) {
      const array x = numbers(t, s), r = run(def<op::transpose>, {x}, permutation);
      const array wide = as_type(x, dtype::f64), wide_r = as_type(r, dtype::f64);
      std::int64_t k = 0, wrong = 0;
      for_each(r.shape(), [&, &permutation = permutation, &s = s](const auto& i) {
        std::vector<std::int64_t> j(i.size());
        for (std::size_t d = 0; d < i.size(); ++d)
          j[static_cast<std::size_t>(permutation[d])] = i[d];
        wrong += wide_r.data<double>()[k++] != wide.data<double>()[offset(s, j)];
      });
      CHECK(wrong == 0);
    }
    const array x = numbers(t, {5, 6, 7});
    check_elements(run(def<op::reshape>, {x}, {}, {t, {10, 21}}),
                   [&](std::int64_t i) { return at(x, i); });
    const array r = run(def<op::slice>, {x}, {1, 0, 3, 4, ops::whole, 3 + 2});
    CHECK(r.shape() == shape{3, 6, 2});
    std::int64_t k = 0;
    for_each(r.shape(), [&](const auto& i) {
      CHECK(at(r, k++) == at(x, offset(x.shape(), {i[0] + 1, i[1], i[2] + 3})));
    });
    CHECK(run(def<op::slice>, {x}, {1, 0, 3, 1, ops::whole, 5}).size() == 0);
    for (int dim = 0; dim < 3; ++dim) {
      std::vector<array> parts;
      shape s{5, 6, 7};
      for (std::int64_t extent : {2, 0, 3, 1}) {
        s[dim] = extent;
        parts.push_back(numbers(t, s, static_cast<int>(extent)));
      }
      const array c = run(def<op::concatenate>, parts, {dim});
      std::int64_t n = 0;
      for_each(c.shape(), [&](auto i) {
        auto& along = i[static_cast<std::size_t>(dim)];
        std::size_t part = 0;
        while (along >= parts[part].shape()[dim]) along -= parts[part++].shape()[dim];
        CHECK(at(c, n++) == at(parts[part], offset(parts[part].shape(), i)));
      });
    }
  }
}

TEST_CASE("reduce: any dimensions, any combiner, the identity for no elements") {
  const std::pair<shape, std::vector<std::int64_t>> table[] = {{{7}, {0}},
                                                               {{3, 5}, {0}},
                                                               {{3, 5}, {1}},
                                                               {{3, 5}, {0, 1}},
                                                               {{2, 3, 5}, {1}},
                                                               {{2, 3, 5}, {0, 2}},
                                                               {{4, 3, 2, 5}, {0, 2}},
                                                               {{4, 3, 2, 5}, {1, 3}},
                                                               {{2, 0, 3}, {1}},
                                                               {{0, 3}, {0}},
                                                               {{2, 0}, {0}},
                                                               {{1, 1}, {0}},
                                                               {{300, 5}, {0}},
                                                               {{5, 300}, {1}},
                                                               {{2, 2, 3, 2, 5}, {0, 2, 4}},
                                                               {{67, 300}, {0}},
                                                               {{3}, {}}};
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i16, dtype::i32,
                  dtype::i64, dtype::u16, dtype::u32, dtype::u64})
    for (const auto& [s, dims] : table)
      for (combiner c : {combiner::add, combiner::max, combiner::min}) {
        const array x = numbers(t, s);
        std::vector<std::int64_t> attrs = {static_cast<std::int64_t>(c)};
        attrs.insert(attrs.end(), dims.begin(), dims.end());
        const array r = run(def<op::reduce>, {x}, attrs);
        std::vector<double> want(static_cast<std::size_t>(r.size()), 0);
        std::vector<char> seen(want.size(), 0);
        const array wide = as_type(x, dtype::f64);
        std::int64_t k = 0;
        for_each(s, [&, &dims = dims](const auto& i) {
          std::vector<std::int64_t> j;
          for (std::size_t d = 0; d < i.size(); ++d)
            if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end())
              j.push_back(i[d]);
          const auto o = static_cast<std::size_t>(offset(r.shape(), j));
          const double v = wide.data<double>()[k++];
          if (!seen[o])
            want[o] = v;
          else
            want[o] = c == combiner::add   ? want[o] + v
                      : c == combiner::max ? std::max(want[o], v)
                                           : std::min(want[o], v);
          seen[o] = 1;
        });
        for (std::size_t o = 0; o < want.size(); ++o)
          if (seen[o])
            CHECK(at(r, static_cast<std::int64_t>(o)) == at(as_type(array(want[o]), t), 0));
      }
  constexpr float inf = std::numeric_limits<float>::infinity();
  const array none(tensor_type{dtype::f32, {0, 2}});
  CHECK(partita::equal(run(def<op::reduce>, {none}, {1, 0}), xt::xarray<float>{0, 0}));
  CHECK(partita::equal(run(def<op::reduce>, {none}, {2, 0}), xt::xarray<float>{-inf, -inf}));
  CHECK(partita::equal(run(def<op::reduce>, {none}, {3, 0}), xt::xarray<float>{inf, inf}));
  const array no_ints(tensor_type{dtype::i32, {0}});
  CHECK(run(def<op::reduce>, {no_ints}, {2, 0}).item<std::int32_t>() ==
        std::numeric_limits<std::int32_t>::min());
  CHECK(run(def<op::reduce>, {array(xt::xarray<std::uint8_t>{200, 100})}, {1, 0})
            .item<std::uint8_t>() == 44);
  // Products, and, or.
  CHECK(partita::equal(run(def<op::reduce>, {none}, {4, 0}), xt::xarray<float>{1, 1}));
  CHECK(run(def<op::reduce>, {no_ints}, {4, 0}).item<std::int32_t>() == 1);
  CHECK(run(def<op::reduce>, {no_ints}, {5, 0}).item<std::int32_t>() == -1);
  CHECK(run(def<op::reduce>, {no_ints}, {6, 0}).item<std::int32_t>() == 0);
  const array no_truths(tensor_type{dtype::boolean, {0}});
  CHECK(run(def<op::reduce>, {no_truths}, {5, 0}).bytes()[0] == std::byte{1});
  CHECK(run(def<op::reduce>, {no_truths}, {6, 0}).bytes()[0] == std::byte{0});
  const array small = xt::xarray<std::int32_t>{{12, -6, 7}, {10, 3, -1}};
  CHECK(partita::equal(run(def<op::reduce>, {small}, {4, 1}), xt::xarray<std::int32_t>{-504, -30}));
  CHECK(partita::equal(run(def<op::reduce>, {small}, {5, 0}), xt::xarray<std::int32_t>{8, 2, 7}));
  CHECK(
      partita::equal(run(def<op::reduce>, {small}, {6, 0}), xt::xarray<std::int32_t>{14, -5, -1}));
  for (std::int64_t n : {31, 32, 1000, 5000}) {  // one false among true, one true among false
    array truths = as_type(array(xt::xarray<double>(xt::ones<double>({n}))), dtype::boolean);
    CHECK(run(def<op::reduce>, {truths}, {5, 0}).item<bool>());
    truths.mutable_data<bool>()[n - 2] = false;
    CHECK(!run(def<op::reduce>, {truths}, {5, 0}).item<bool>());
    array lies(tensor_type{dtype::boolean, {n}});
    CHECK(!run(def<op::reduce>, {lies}, {6, 0}).item<bool>());
    lies.mutable_data<bool>()[n / 2] = true;
    CHECK(run(def<op::reduce>, {lies}, {6, 0}).item<bool>());
  }
  // A long sum has a small error: partial sums are in binary64.
  const array tenths = xt::xarray<float>(xt::ones<float>({1 << 20}) * 0.1f);
  CHECK(std::fabs(run(def<op::reduce>, {tenths}, {1, 0}).item<float>() - 104857.6f) < 0.1f);
}

TEST_CASE("dot_general: every placement of batch and contracted dimensions") {
  struct product {
    shape l, r;
    std::vector<std::int64_t> lb, rb, lc, rc;
  };
  const product table[] = {
      {{3, 5}, {5, 4}, {}, {}, {1}, {0}},  // matmul
      {{5, 3}, {5, 4}, {}, {}, {0}, {0}},  // transposed lhs
      {{3, 5}, {4, 5}, {}, {}, {1}, {1}},  // transposed rhs
      {{5, 3}, {4, 5}, {}, {}, {0}, {1}},
      {{37, 41}, {41, 29}, {}, {}, {1}, {0}},
      {{2, 7, 3, 5}, {2, 6, 3, 5}, {0, 2}, {0, 2}, {3}, {3}},  // attention scores
      {{2, 3, 7, 6}, {2, 6, 3, 5}, {0, 1}, {0, 2}, {3}, {1}},  // attention values
      {{2, 7, 3}, {2, 7, 4}, {}, {}, {0, 1}, {0, 1}},          // weight gradient
      {{2, 3, 7, 5}, {3, 5, 4}, {}, {}, {1, 3}, {0, 1}},       // no dimensions merge: packed
      {{2, 3, 4}, {4, 3, 5}, {}, {}, {1, 2}, {1, 0}},
      {{4}, {4}, {}, {}, {0}, {0}},  // inner product
      {{4}, {5}, {}, {}, {}, {}},    // outer product
      {{}, {}, {}, {}, {}, {}},
      {{3, 5}, {5}, {}, {}, {1}, {0}},  // matrix times vector
      {{5}, {5, 3}, {}, {}, {0}, {0}},
      {{5, 3}, {5}, {}, {}, {0}, {0}},
      {{1, 5}, {5, 1}, {}, {}, {1}, {0}},
      {{3, 0}, {0, 4}, {}, {}, {1}, {0}},  // an empty sum is 0
      {{0, 3}, {3, 4}, {}, {}, {1}, {0}},
      {{4}, {4}, {0}, {0}, {}, {}},  // elementwise
      {{3, 4, 2}, {4, 3, 5}, {1, 0}, {0, 1}, {}, {}},
      {{3, 1, 4}, {1, 4, 2}, {}, {}, {1, 2}, {0, 1}},
      {{2, 3, 5}, {5, 2, 3}, {1}, {2}, {0, 2}, {1, 0}}};
  for (dtype t : all_types)
    for (const auto& e : table) {
      if (t == dtype::boolean) continue;
      const array x = numbers(t, e.l, 1), y = numbers(t, e.r, 2);
      std::vector<std::int64_t> attrs = {static_cast<std::int64_t>(e.lb.size()),
                                         static_cast<std::int64_t>(e.lc.size())};
      for (const auto* part : {&e.lb, &e.rb, &e.lc, &e.rc})
        attrs.insert(attrs.end(), part->begin(), part->end());
      const array r = run(def<op::dot_general>, {x, y}, attrs);
      std::vector<double> want(static_cast<std::size_t>(r.size()), 0);
      const array wx = as_type(x, dtype::f64), wy = as_type(y, dtype::f64);
      const auto has = [](const auto& v, std::int64_t d) {
        return std::find(v.begin(), v.end(), d) != v.end();
      };
      for_each(e.l, [&](const auto& i) {
        for_each(e.r, [&](const auto& j) {
          std::vector<std::int64_t> o;
          for (std::size_t b = 0; b < e.lb.size(); ++b) {
            if (i[static_cast<std::size_t>(e.lb[b])] != j[static_cast<std::size_t>(e.rb[b])])
              return;
            o.push_back(i[static_cast<std::size_t>(e.lb[b])]);
          }
          for (std::size_t k = 0; k < e.lc.size(); ++k)
            if (i[static_cast<std::size_t>(e.lc[k])] != j[static_cast<std::size_t>(e.rc[k])])
              return;
          for (std::size_t d = 0; d < i.size(); ++d)
            if (!has(e.lb, static_cast<std::int64_t>(d)) &&
                !has(e.lc, static_cast<std::int64_t>(d)))
              o.push_back(i[d]);
          for (std::size_t d = 0; d < j.size(); ++d)
            if (!has(e.rb, static_cast<std::int64_t>(d)) &&
                !has(e.rc, static_cast<std::int64_t>(d)))
              o.push_back(j[d]);
          want[static_cast<std::size_t>(offset(r.shape(), o))] +=
              wx.data<double>()[offset(e.l, i)] * wy.data<double>()[offset(e.r, j)];
        });
      });
      check_elements(r, [&](std::int64_t i) {
        const double v = want[static_cast<std::size_t>(i)];
        if (t == dtype::u8) return static_cast<double>(static_cast<std::uint8_t>(v));
        return t == dtype::i8 ? static_cast<double>(static_cast<std::int8_t>(static_cast<int>(v)))
                              : v;
      });
    }
}

TEST_CASE("dot_general: attention and weight gradients run without packing") {
  const auto plan = [](const shape& l, const shape& r, std::vector<std::int64_t> attrs) {
    return run_detail::dot_plan(l, r, attrs);
  };
  const auto scores = plan({2, 7, 3, 5}, {2, 6, 3, 5}, {2, 1, 0, 2, 0, 2, 3, 3});
  CHECK_FALSE(scores.left.packed);
  CHECK_FALSE(scores.right.packed);
  CHECK(scores.batches == 6);
  const auto values = plan({2, 3, 7, 6}, {2, 6, 3, 5}, {2, 1, 0, 1, 0, 2, 3, 1});
  CHECK_FALSE(values.left.packed);
  CHECK_FALSE(values.right.packed);
  const auto gradient = plan({2, 7, 3}, {2, 7, 4}, {0, 2, 0, 1, 0, 1});
  CHECK_FALSE(gradient.left.packed);
  CHECK(gradient.left.row_stride == 1);
  CHECK(gradient.batches == 1);
  CHECK(gradient.depth == 14);
  CHECK(plan({2, 3, 7, 5}, {3, 5, 4}, {0, 2, 1, 3, 0, 1}).left.packed);
}

TEST_CASE("gather clamps indices, scatter drops them") {
  for (dtype t : all_types)
    for (dtype it :
         {dtype::i8, dtype::i16, dtype::i32, dtype::i64, dtype::u8, dtype::u16, dtype::u32}) {
      const array table = numbers(t, {5, 2, 3});
      const array indices = as_type(xt::xarray<std::int64_t>{{0, 4, -3}, {9, 2, 2}}, it);
      const array r = run(def<op::gather>, {table, indices});
      CHECK(r.shape() == shape{2, 3, 2, 3});
      check_elements(r, [&](std::int64_t i) {
        const auto row =
            std::clamp<std::int64_t>(static_cast<std::int64_t>(at(indices, i / 6)), 0, 4);
        return at(table, row * 6 + i % 6);
      });
      if (t == dtype::boolean) continue;
      const array updates = numbers(t, {2, 3, 7});
      const array s = run(def<op::scatter>, {indices, updates}, {1}, {t, {5, 7}});
      std::vector<double> want(35, 0);
      for (std::int64_t i = 0; i < 42; ++i) {
        const auto row = static_cast<std::int64_t>(at(indices, i / 7));
        if (row >= 0 && row < 5) want[static_cast<std::size_t>(row * 7 + i % 7)] += at(updates, i);
      }
      check_elements(s, [&](std::int64_t i) { return want[static_cast<std::size_t>(i)]; });
    }
}

TEST_CASE("identities pass their operand on") {
  const array x = numbers(dtype::f32, {3, 5});
  for (const op_def* op : {&def<op::tag>, &def<op::stop_gradient>, &def<op::tiling>})
    CHECK(run(*op, {x}).bytes() == x.bytes());
}
