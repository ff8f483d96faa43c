// The growth of the work of assigning ops to meshes and of cutting: array elements read.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <partita/mpmd/fragments.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/partita.hpp>

#include "work.hpp"

namespace pt = partita;

namespace {

constexpr pt::topology meshes{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}, {"m2", {{"B", 2}}}};
constexpr pt::tensor_type vector{pt::dtype::f32, {8}};

/// A program, its parts, and their meshes.
struct split_model {
  pt::program p;
  pt::vec<pt::text> names;
  pt::assignment to;

  void give(const pt::text& name, int mesh) {  // (the text keeps its address)
    names.push_back(name);
    to.names.push_back({names.back().view(), meshes.name(mesh), -1});
  }
};
pt::value_id of_part(pt::builder& b, split_model& m, int i, pt::value_id x) {
  const pt::op_id first = b.p.op_count();
  x = pt::ops::tanh(b, pt::ops::exp(b, x));
  const int scope = b.p.scopes.open(pt::concat("layers.", i).view(), -1);
  for (pt::op_id o = first; o < b.p.op_count(); ++o) b.p.scopes.put(b.p.op(o).marks.source, scope);
  m.give(pt::concat("layers.", i), i % 3);
  return x;
}
void finish(pt::builder& b, split_model& m, pt::value_id x) {
  b.p.outputs.push_back({x, b.p.intern("y")});
  m.p = std::move(b.p);
  m.to.infer_transfers = true;
}
/// Parts in sequence, with unnamed ops between them.
split_model chain(int n) {
  pt::builder b;
  split_model m;
  pt::value_id x = pt::ops::parameter(b, "x", vector);
  for (int i = 0; i < n; ++i) x = pt::ops::sine(b, of_part(b, m, i, x));
  finish(b, m, x);
  return m;
}
/// Parts side by side, whose results are added.
split_model wide(int n) {
  pt::builder b;
  split_model m;
  const pt::value_id x = pt::ops::parameter(b, "x", vector);
  pt::value_id sum = -1;
  for (int i = 0; i < n; ++i) {
    const pt::value_id y = of_part(b, m, i, x);
    sum = sum < 0 ? y : pt::ops::add(b, sum, y);
  }
  finish(b, m, sum);
  return m;
}
/// Two parts whose ops alternate, so that each is cut into many fragments.
split_model turns(int n) {
  pt::builder b;
  split_model m;
  pt::value_id x = pt::ops::parameter(b, "x", vector);
  const int scopes[] = {b.p.scopes.open("a", -1), b.p.scopes.open("b", -1)};
  for (int i = 0; i < n; ++i) {
    x = pt::ops::exp(b, x);
    b.p.scopes.put(b.p.ops.back().marks.source, scopes[i % 2]);
  }
  m.give("a", 0);
  m.give("b", 1);
  finish(b, m, x);
  return m;
}
/// Many inputs with next states, and few parts.
split_model states(int n) {
  pt::builder b;
  split_model m;
  pt::vec<pt::value_id> inputs;
  for (int i = 0; i < n; ++i)
    inputs.push_back(pt::ops::parameter(b, pt::concat("w", i).view(), vector));
  const pt::value_id x = of_part(b, m, 0, of_part(b, m, 1, inputs[0]));
  for (int i = 0; i < n; ++i)
    b.p.outputs.push_back({pt::ops::add(b, inputs[i], x), b.p.intern(pt::concat("w", i).view())});
  finish(b, m, x);
  return m;
}

}  // namespace

TEST_CASE("assigning ops to meshes and cutting is linear") {
  for (const auto make : {chain, wide, turns, states})
    check_linear(1000, make, [](split_model& m) { pt::to_mpmd(m.p, meshes, m.to); });
}

TEST_CASE("making fragments into programs and texts is linear") {
  const auto cut = [](int n) {
    split_model m = chain(n);
    return pt::to_mpmd(m.p, meshes, m.to);
  };
  check_linear(500, cut, [](pt::mpmd_program& m) {
    pt::fragment_programs programs(m.source);
    for (int f = 0; f < static_cast<int>(m.fragments.size()); ++f) (void)programs(m.fragments[f]);
  });
  check_linear(500, cut, [](pt::mpmd_program& m) { (void)pt::print(m); });
}
