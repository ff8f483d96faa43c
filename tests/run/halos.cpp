// Windows, padding, slices and reversals on sharded dimensions: borders are exchanged.
#include <doctest/doctest.h>

#include "../laws/cases_windows.hpp"

namespace pt = partita;
using data::str;

namespace {

/// Checks all backends on small integers, on which they are exact.
pt::partitioned check_equal(const pt::program& p, const pt::mesh& mesh, const auto& tactics) {
  const auto inputs = data::arguments(p);
  const auto r = pt::partition(p, mesh, tactics);
  const auto whole = pt::evaluate(p, inputs);
  const bool same =
      pt::equal(pt::temporal(r, inputs), whole) && pt::equal(pt::emulate(r, inputs), whole);
  CHECK_MESSAGE(same, str(pt::print(r.core.p)), "\n", str(pt::print(r.device)));
  return r;
}
int dim_to_cut(const laws::op_case& c) {
  const pt::shape& s = c.operands[0].shape;
  return c.op == &pt::def<pt::op::slice> ? 0 : s.rank - 1;
}

}  // namespace

TEST_CASE("every small window, sliced in 2, 3 and 4, and by two axes") {
  std::vector<laws::op_case> list;
  laws::add_halo_cases(list);
  int cut = 0, number = 0;
  std::int64_t permutes = 0;
  for (const auto& c : list) {
    if (++number % 2 == 0) continue;
    const pt::program p = program_of(c);
    const int dim = dim_to_cut(c);
    const std::int64_t n = c.operands[0].shape[dim];
    for (std::int64_t pieces : {2, 3, 4}) {
      if (n % pieces != 0) continue;
      const auto r = check_equal(p, {{"S", pieces}}, pt::schedule(pt::manual("S", {{"a", dim}})));
      cut += r.collectives.all_gather == 0;
      permutes += r.collectives.permute;
    }
    if (n % 4 != 0) continue;
    check_equal(p, {{"S", 2}, {"T", 2}},
                pt::schedule(pt::manual("T", {{"a", dim}}), pt::manual("S", {{"a", dim}})));
  }
  MESSAGE(number, " programs, ", cut, " without a gather, ", permutes, " permutes");
  CHECK(cut > 1000);
}

TEST_CASE("windows that select: padding never wins, and the first of equal elements does") {
  for (const auto select : {pt::ops::direction::ge, pt::ops::direction::le}) {
    pt::builder b;
    const pt::tensor_type t{pt::dtype::u8, {8}};
    const pt::window_dim w[] = {laws::sliding(3, 1, 1, 1)};
    const auto x = pt::ops::parameter(b, "x", t), v = pt::ops::parameter(b, "v", t);
    b.p.outputs.push_back({pt::ops::select_and_gather(b, x, v, select, w), b.p.intern("gathered")});
    b.p.outputs.push_back(
        {pt::ops::select_and_scatter(b, x, v, select, w), b.p.intern("scattered")});
    for (double low : {0.0, 255.0}) {
      const std::vector<pt::array> in{
          data::fill(t, [&](std::int64_t i) { return i < 2 ? low : 1.0; }),
          data::fill(t, [](std::int64_t i) { return static_cast<double>(i + 1); })};
      const auto r =
          pt::partition(b.p, pt::mesh{{"A", 2}}, pt::schedule(pt::manual("A", {{"x", 0}})));
      CHECK(pt::equal(pt::emulate(r, in), pt::evaluate(b.p, in)));
      CHECK(pt::equal(pt::temporal(r, in), pt::evaluate(b.p, in)));
    }
  }
}

namespace {

/// Max pooling and its derivative with both spatial dimensions sliced.
template <pt::nn::pool_options Options>
void check_pooling(pt::collectives expected) {
  const auto pool = [](auto x) { return pt::nn::max_pool<Options>(x); };
  const auto p = pt::trace(
      [&](auto x) {
        const auto squares = [&](auto v) {
          const auto y = pool(v);
          return pt::sum(y * y);
        };
        return std::tuple{pool(x), pt::grad(squares, x)};
      },
      pt::input<float, 2, 16, 16, 3>("x"));
  const auto rows = pt::manual("A", {{"x", 1}}), columns = pt::manual("B", {{"x", 2}});
  const pt::mesh mesh{{"A", 4}, {"B", 4}};
  CHECK(check_equal(p, mesh, pt::schedule(rows, columns)).collectives == expected);
  CHECK(check_equal(p, mesh, pt::schedule(columns, rows)).collectives == expected);
}

}  // namespace

TEST_CASE("max pooling sliced on two dimensions, forward and backward") {
  using pt::nn::pool_options;
  check_pooling<pool_options{.size = {2, 2}, .strides = {2, 2}}>({});
  // A border on each of the four sides of x, for both times that it is pooled; backward, two on
  // each side of x and of the cotangent.
  check_pooling<pool_options{.size = {3, 3}, .padding = pt::same_padding}>({.permute = 12});
  // No padding precedes the first window, so only one side of x is needed.
  check_pooling<pool_options{.size = {3, 3}, .strides = {2, 2}, .padding = pt::same_padding}>(
      {.permute = 10});
}
