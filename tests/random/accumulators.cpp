// Values that a loop only adds to, or subtracts from: the terms of all iterations are summed over
// devices once, after the loop. Random terms, scalars and rows, with a zero of their own or one
// that has other uses; results are those of the source.
//
// Not drawn: a start other than zero, terms that are not sums, loops with a condition.
#include <doctest/doctest.h>

#include <string>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

struct drawn {
  int terms = 1;        // of the accumulator, one after the other
  bool minus[3] = {};   // subtracted
  int scaled[3] = {};   // 0: as it is, 1: by a constant, 2: negated
  bool rows = false;    // the accumulator has the columns' sums, otherwise it is a scalar
  bool shared = false;  // the zero is also a result
  int length = 3;
};

drawn draw(data::random& r) {
  drawn d;
  d.terms = static_cast<int>(r.in(1, 3));
  for (int i = 0; i < d.terms; ++i) {
    d.minus[i] = r.one_in(2);
    d.scaled[i] = static_cast<int>(r.in(0, 2));
  }
  d.rows = r.one_in(2);
  d.shared = r.one_in(2);
  d.length = static_cast<int>(r.in(1, 4));
  return d;
}

pt::program loop_of(const drawn& d) {
  pt::program body;
  {
    pt::builder b;
    (void)pt::ops::parameter(b, "i", {pt::dtype::i32, {}});
    const auto h = pt::ops::parameter(b, "h", {pt::dtype::f64, {8, 4}});
    pt::value_id sum =
        pt::ops::parameter(b, "sum", {pt::dtype::f64, d.rows ? pt::shape{4} : pt::shape{}});
    const auto next = pt::ops::tanh(b, h);
    const std::int64_t dims[] = {0, 1};
    for (int i = 0; i < d.terms; ++i) {
      const auto power = i == 0 ? next : pt::ops::multiply(b, next, i == 1 ? next : h);
      auto term = pt::ops::reduce(b, power, pt::combiner::add, {dims, d.rows ? 1u : 2u});
      if (d.scaled[i] == 1)
        term =
            pt::ops::multiply(b, term,
                              pt::ops::broadcast_in_dim(b, pt::ops::scalar(b, pt::dtype::f64, -0.5),
                                                        b.type(sum).shape, {}));
      if (d.scaled[i] == 2) term = pt::ops::negate(b, term);
      sum = d.minus[i] ? pt::ops::subtract(b, sum, term) : pt::ops::add(b, sum, term);
    }
    b.p.outputs = {{next, {}}, {sum, {}}};
    body = std::move(b.p);
  }
  pt::builder b;
  const auto h = pt::ops::parameter(b, "h", {pt::dtype::f64, {8, 4}});
  auto zero = pt::ops::scalar(b, pt::dtype::f64, 0);
  if (d.rows) zero = pt::ops::broadcast_in_dim(b, zero, {4}, {});
  const pt::value_id carried[] = {h, zero};
  const auto first = pt::ops::scan(b, d.length, false, {}, carried, {}, std::move(body));
  b.p.outputs = {{first, b.p.intern("h'")}, {first + 1, b.p.intern("sum")}};
  if (d.shared) b.p.outputs.push_back({pt::ops::exp(b, zero), b.p.intern("one")});
  return std::move(b.p);
}

}  // namespace

TEST_CASE("what a loop only adds up is summed over devices once") {
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    CAPTURE(seed);
    data::random r{seed};
    const drawn d = draw(r);
    const pt::program p = loop_of(d);
    const auto rows = pt::manual("A", {{"h", 0}});
    const auto columns = pt::manual("B", {{"h", 1}});
    const pt::mesh m{{"A", 4}, {"B", 2}};
    const auto both = r.one_in(2);
    const auto made = both ? pt::partition(p, m, pt::schedule(rows, columns))
                           : pt::partition(p, m, pt::schedule(rows));
    CHECK(made.collectives.all_reduce == 1);
    const auto x = data::arguments(p, seed);
    CHECK(pt::max_difference(pt::evaluate(p, x), pt::emulate(made, x)) < 1e-12);
    const pt::verdict v = pt::prove(made);
    CHECK_MESSAGE(v.proved, data::str(v.error.message));
  }
}
