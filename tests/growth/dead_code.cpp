// The growth of the work of removing dead code and of counting iterations.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>

#include "work.hpp"

namespace pt = partita;

namespace {

const pt::tensor_type vector{pt::dtype::f32, {8}}, number{pt::dtype::i32, {}};

/// A `while` that counts to three and carries x and n dead values.
pt::value_id loop(pt::builder& b, pt::value_id x, int n, pt::program&& body_of_x) {
  pt::vec<pt::value_id> carried{pt::ops::integer(b, pt::dtype::i32, 0), x};
  for (int i = 0; i < n; ++i) carried.push_back(x);
  pt::builder condition, body;
  for (pt::builder* each : {&condition, &body}) {
    (void)pt::ops::parameter(*each, "", number);
    for (int i = 0; i <= n; ++i) (void)pt::ops::parameter(*each, "", vector);
  }
  condition.p.outputs.push_back(
      {pt::ops::compare(condition, pt::ops::direction::lt, condition.p.inputs[0],
                        pt::ops::integer(condition, pt::dtype::i32, 3)),
       {}});
  body.p.outputs.push_back(
      {pt::ops::add(body, body.p.inputs[0], pt::ops::integer(body, pt::dtype::i32, 1)), {}});
  const pt::value_id inner[] = {body.p.inputs[1]};
  body.p.outputs.push_back({pt::ops::call(body, "f", inner, std::move(body_of_x)), {}});
  for (int i = 0; i < n; ++i)
    body.p.outputs.push_back({pt::ops::tanh(body, body.p.inputs[2 + i]), {}});
  return pt::ops::while_loop(b, carried, std::move(condition.p), std::move(body.p)) + 1;
}
pt::program squared() {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "", vector);
  b.p.outputs.push_back({pt::ops::multiply(b, x, x), {}});
  return std::move(b.p);
}
pt::program wide(int n) {
  pt::builder b;
  b.p.outputs.push_back(
      {loop(b, pt::ops::parameter(b, "x", vector), n, squared()), b.p.intern("y")});
  return std::move(b.p);
}
pt::program side_by_side(int n) {
  pt::builder b;
  auto x = pt::ops::parameter(b, "x", vector);
  for (int i = 0; i < n; ++i) x = loop(b, x, 1, squared());
  b.p.outputs.push_back({x, b.p.intern("y")});
  return std::move(b.p);
}
pt::program deep(int n) {
  pt::program inner = squared();
  for (int i = 0; i < n; ++i) {
    pt::builder b;
    const auto x = pt::ops::parameter(b, i + 1 == n ? "x" : "", vector);
    b.p.outputs.push_back(
        {loop(b, x, 1, std::move(inner)), i + 1 == n ? b.p.intern("y") : pt::text_ref{}});
    inner = std::move(b.p);
  }
  return inner;
}
/// A chain in which every second op is dead.
pt::program line(int n) {
  pt::builder b;
  auto x = pt::ops::parameter(b, "x", vector);
  for (int i = 0; i < n; ++i) {
    (void)pt::ops::exp(b, x);
    x = pt::ops::tanh(b, x);
  }
  b.p.outputs.push_back({x, b.p.intern("y")});
  return std::move(b.p);
}

void remove(const pt::program& p, int removed) {
  const pt::live_program live = pt::without_dead_code(p);
  CHECK(live.removed == removed);
}

}  // namespace

TEST_CASE("removing dead code of n ops, one loop, n loops, n levels of loops is linear") {
  check_linear(500, line, [](const auto& p) { remove(p, p.op_count() / 2); });
  check_linear(100, wide, [](const auto& p) {
    remove(p, static_cast<int>(p.region(p.op_count() - 1, 1).inputs.size()) - 2);
  });
  check_linear(100, side_by_side,
               [](const auto& p) { remove(p, static_cast<int>(p.regions.size()) / 2); });
  check_linear(30, deep, [](const auto& p) { CHECK(pt::without_dead_code(p).removed > 0); });
}

TEST_CASE("counting iterations of n loops and n levels of loops is linear") {
  check_linear(100, side_by_side, [](const auto& p) { CHECK(pt::estimate(p).unknown.loops == 0); });
  check_linear(8, deep, [](const auto& p) { CHECK(pt::estimate(p).unknown.loops == 0); });
  check_linear(100, wide, [](const auto& p) { CHECK(pt::estimate(p).unknown.loops == 0); });
}
