// All slices of a few sizes along a sharded dimension. Elements of few blocks come from their
// devices, others as borders of neighbours. No slice sends more than a gather.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

pt::program slice_of(pt::dtype t, std::int64_t n, std::int64_t start, std::int64_t limit,
                     std::int64_t stride) {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", {t, {n, 3}});
  const std::int64_t from[] = {start, 0}, to[] = {limit, pt::ops::whole}, by[] = {stride, 1};
  const auto y = pt::ops::slice(b, x, from, to, by);
  b.p.outputs.push_back({y, b.p.intern("y")});
  return b.p;
}
/// Checks that every backend gives the results of the source, that the device program is proved,
/// and that it sends no more bytes than a gather.
void check_slice(const pt::program& p, std::int64_t devices, pt::uneven policy) {
  const auto r =
      pt::partition(p, pt::mesh{{"S", devices}}, pt::schedule(pt::manual("S", {{"x", 0}}, policy)));
  const auto inputs = data::arguments(p);
  const auto whole = pt::evaluate(p, inputs);
  const bool same =
      pt::equal(pt::emulate(r, inputs), whole) && pt::equal(pt::temporal(r, inputs), whole) &&
      pt::equal(pt::emulate(pt::lower(r.core, {.fuse = false}).device, inputs), whole);
  CHECK_MESSAGE(same, str(pt::print(p)), str(pt::print(r.device)));
  CHECK_MESSAGE(pt::prove(r).proved, str(pt::print(r.device)), str(pt::prove(r).error.message));
  const std::int64_t piece = r.device.local.input_type(0).bytes();
  CHECK(r.cost.collective_bytes <= piece * (devices - 1));
}

}  // namespace

TEST_CASE("every slice, on every number of devices") {
  constexpr std::int64_t n = 12;
  for (std::int64_t devices : {2, 3, 4, 5})
    for (std::int64_t stride : {1, 2, 5})
      for (std::int64_t start = 0; start < n; ++start)
        for (std::int64_t limit = start + 1; limit <= n; limit += stride == 1 ? 1 : 3) {
          const auto p = slice_of(pt::dtype::f32, n, start, limit, stride);
          for (auto policy : {pt::uneven::unsaid, pt::uneven::pad})
            if (n % devices == 0 || policy == pt::uneven::pad) check_slice(p, devices, policy);
        }
}
TEST_CASE("slices of one element, of other types, along two dimensions and parts of an axis") {
  for (pt::dtype t : {pt::dtype::boolean, pt::dtype::u8, pt::dtype::i64, pt::dtype::bf16})
    check_slice(slice_of(t, 8, 5, 6, 1), 4, pt::uneven::unsaid);
  const auto p = pt::trace([](auto x) { return pt::slice<0, 3, 4>(pt::slice<1, 5, 7>(x)); },
                           pt::input<float, 8, 12>("x"));
  const auto two =
      pt::partition(p, pt::mesh{{"A", 2}, {"B", 4}, {"C", 2}},
                    pt::schedule(pt::manual("A", {{"x", 0}}), pt::manual("B", {{"x", 1}}),
                                 pt::manual("C", {{"x", 0}})));
  const auto inputs = data::arguments(p);
  CHECK(pt::equal(pt::emulate(two, inputs), pt::evaluate(p, inputs)));
  CHECK(pt::prove(two).proved);
  CHECK(two.collectives.all_gather == 0);
}
TEST_CASE("a slice keeps the sign of zero, and ignores infinities elsewhere") {
  const auto p = slice_of(pt::dtype::f32, 8, 5, 6, 1);
  const auto r = pt::partition(p, pt::mesh{{"S", 4}}, pt::schedule(pt::manual("S", {{"x", 0}})));
  const std::vector<pt::array> x{data::fill(p.input_type(0), [](std::int64_t i) {
    return i / 3 == 5 ? -0.0 : std::numeric_limits<double>::infinity();
  })};
  const auto y = pt::emulate(r, x);
  for (int i = 0; i < 3; ++i) CHECK(std::signbit(y[0].data<float>()[i]));
  CHECK(pt::equal(y, pt::evaluate(p, x)));
}
TEST_CASE("a slice of the last element of a sequence, and its gradient") {
  const auto p = pt::trace(
      [](auto x, auto w) {
        return pt::grad(
            [&](auto weights) {
              const auto last =
                  matmul(pt::reshape<4, 8>(pt::slice<1, 15, 16>(matmul(x, weights))), weights);
              return pt::sum(last * last);
            },
            w);
      },
      pt::input<float, 4, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto r = pt::partition(p, pt::mesh{{"S", 4}}, pt::schedule(pt::manual("S", {{"x", 1}})));
  // One row of 8 for each of 4 sequences; the gradient of w is a sum over the positions.
  CHECK(r.collectives == pt::collectives{.all_reduce = 2});
  const auto inputs = data::arguments(p);
  CHECK(pt::equal(pt::emulate(r, inputs), pt::evaluate(p, inputs)));
  CHECK(pt::prove(r).proved);
}
