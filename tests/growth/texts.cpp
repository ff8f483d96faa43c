// The growth of the work on programs and texts: array elements read, at two sizes.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/partita.hpp>
#include <partita/report/html.hpp>

#include "work.hpp"

namespace pt = partita;

namespace {

/// n next states, each of an input of the same name.
pt::program states(int n) {
  pt::builder b;
  std::vector<pt::value_id> inputs;
  for (int i = 0; i < n; ++i)
    inputs.push_back(pt::ops::parameter(b, "w" + std::to_string(i), {pt::dtype::f32, {8}}));
  for (int i = 0; i < n; ++i)
    b.p.outputs.push_back(
        {pt::ops::add(b, inputs[i], inputs[i]), b.p.intern("w" + std::to_string(i))});
  return b.p;
}
/// n calls in sequence.
pt::program calls(int n) {
  pt::builder b;
  pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {8}});
  for (int i = 0; i < n; ++i) {
    pt::builder f;
    const auto y = pt::ops::parameter(f, "", {pt::dtype::f32, {8}});
    f.p.outputs.push_back({pt::ops::exp(f, y), {}});
    x = pt::ops::call(b, "f", {&x, 1}, std::move(f.p));
  }
  b.p.outputs.push_back({x, b.p.intern("y")});
  return b.p;
}
/// n ops in sequence.
pt::program chain(int n) {
  pt::builder b;
  pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {8}});
  for (int i = 0; i < n; ++i) x = pt::ops::exp(b, x);
  b.p.outputs.push_back({x, b.p.intern("y")});
  return b.p;
}
/// Slices dimension 0 of all inputs.
constexpr auto sharded = pt::manual("B", {{"**", 0}});
/// n levels of nested calls, as text.
std::string nested(int n) {
  std::string in = "func @main(%x: tensor<4xf32>) {\n";
  for (int i = 0; i < n; ++i) in += "%y = call \"f\"(%x) do (%x: tensor<4xf32>) {\n";
  in += "%y = exp(%x) : tensor<4xf32>\n";
  for (int i = 0; i < n; ++i) in += "return %y : tensor<4xf32>\n} : tensor<4xf32>\n";
  return in + "return %y : tensor<4xf32>\n}";
}
pt::core_program tiled(const pt::program& p) {
  pt::core_program c(p, pt::mesh{{"B", 2}});
  c.tile(c.p.inputs[0], 0, 0);
  c.propagate();
  return c;
}

}  // namespace

TEST_CASE("texts of n next states take linear work") {
  check_linear(300, states, [](const auto& p) { (void)pt::print(p); });
  check_linear(
      300, [](int n) { return pt::print(states(n)); },
      [](const auto& printed) { CHECK(!pt::parse(printed).error); });
  check_linear(
      300, [](int n) { return tiled(states(n)); }, [](const auto& c) { (void)pt::print_core(c); });
}

TEST_CASE("texts of n nested programs side by side take linear work") {
  check_linear(300, calls, [](const auto& p) { (void)pt::print(p); });
  check_linear(
      300, [](int n) { return pt::print(calls(n)); },
      [](const auto& printed) { CHECK(!pt::parse(printed).error); });
  check_linear(
      300, [](int n) { return tiled(calls(n)); }, [](const auto& c) { (void)pt::print_core(c); });
}

TEST_CASE("texts of n levels of nested programs take linear work") {
  check_linear(200, nested, [](const auto& in) { CHECK(!pt::parse(in).error); });
  check_linear(
      200, [](int n) { return pt::parse(nested(n)); }, [](const auto& p) { (void)pt::print(p); });
}

TEST_CASE("pictures of n ops, n next states and n nested programs take linear work") {
  const auto partitioned = [](const pt::program& p) {
    return pt::partition(p, pt::mesh{{"B", 2}}, pt::schedule(sharded));
  };
  const auto pictures = [](const pt::partitioned& p) {
    (void)pt::memory_svg(p.device);
    (void)pt::timeline_svg(p.device, pt::h100);
    (void)pt::html_page(p, pt::h100);
  };
  check_linear(
      2000, [&](int n) { return partitioned(chain(n)); }, pictures);
  check_linear(
      400, [&](int n) { return partitioned(states(n)); }, pictures);
  check_linear(
      400, [&](int n) { return partitioned(calls(n)); }, pictures);
}

TEST_CASE("finding n values by name takes linear work") {
  check_linear(300, states, [](const auto& p) {
    const pt::value_names names(p);
    for (pt::value_id v = 0; v < p.value_count(); ++v) CHECK(names.find(names[v]) == v);
  });
}

TEST_CASE("numbers and names of n characters take linear work") {
  check_linear(
      20000, [](int n) { return "0." + std::string(static_cast<std::size_t>(n), '3'); },
      [](const auto& in) {
        double v = 0;
        pt::scanner digits(in);
        CHECK(pt::read_number(digits, v));
      });
  check_linear(
      2000, [](int n) { return std::string(static_cast<std::size_t>(n), 'a'); },
      [](const auto& name) {
        const std::vector<std::string_view> known = {name};
        (void)pt::known_names(name.substr(1) + "b", known);
      });
}

TEST_CASE(
    "building with n scalars, and passing n values into a nested program, takes linear work") {
  check_linear(
      300, [](int n) { return n; },
      [](int n) {
        pt::builder b;
        for (int i = 0; i < n; ++i) pt::ops::scalar(b, pt::dtype::f32, i);
      });
  check_linear(
      300, [](int n) { return n; },
      [](int n) {
        pt::builder b;
        std::vector<pt::value_id> inputs;
        for (int i = 0; i < n; ++i)
          inputs.push_back(pt::ops::parameter(b, "", {pt::dtype::f32, {}}));
        pt::builder& inner = b.open_region();
        for (pt::value_id v : inputs) inner.take(&b, pt::def<pt::op::parameter>, v);
        b.leave_region(inner);
        CHECK(static_cast<int>(inner.captures().size()) == n);
      });
}
