// Compares the claim of a composite with the result of its decomposition. XLA runs the
// decomposition, so the reader trusts the claim only if both are the same.
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <vector>

#include <doctest/doctest.h>
#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../laws/cases.hpp"

namespace pt = partita;
using data::str;

namespace {

std::string replaced(std::string text, std::string_view what, std::string_view by) {
  for (std::size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size())
    text.replace(at, what.size(), by);
  return text;
}
/// The module with its decompositions called instead, as XLA runs it.
std::string called(const std::string& module) {
  return replaced(module, "stablehlo.composite \"partita.", "stablehlo.composite \"xla.");
}
/// Copies of the module, each with one change in a private function: another op, number or
/// direction.
std::vector<std::string> tampered(const std::string& module) {
  constexpr std::pair<std::string_view, std::string_view> changes[] = {
      {"stablehlo.add ", "stablehlo.subtract "},
      {"stablehlo.multiply ", "stablehlo.add "},
      {"stablehlo.maximum ", "stablehlo.minimum "},
      {"stablehlo.or ", "stablehlo.and "},
      {"stablehlo.subtract ", "stablehlo.add "},
      {"applies stablehlo.add", "applies stablehlo.maximum"},
      {" GT, ", " LT, "},
      {" LT, ", " GT, "},
      {" GE, ", " LT, "},
      {"dense<0>", "dense<1>"},
      {"dense<true>", "dense<false>"},
      {"dense<false>", "dense<true>"},
      {"dense<0.000000e+00>", "dense<1.0>"},
      {"dense<0.0>", "dense<1.0>"},
      {"return %arg0 : ", "return %arg1 : "}};
  std::vector<std::string> list;
  const std::size_t begin = module.find("func.func private");
  if (begin == std::string::npos) return list;
  for (const auto& [what, by] : changes) {
    const std::size_t at = module.find(what, begin);
    if (at == std::string::npos) continue;
    std::string changed = module;
    changed.replace(at, what.size(), by);
    list.push_back(changed);
  }
  return list;
}
bool same(const pt::results& a, const pt::results& b) {
  for (int i = 0; i < a.size(); ++i) {
    const pt::array x = pt::as_type(a[i], pt::dtype::f64), y = pt::as_type(b[i], pt::dtype::f64);
    for (std::int64_t k = 0; k < x.size(); ++k) {
      const double v = x.data<double>()[k], w = y.data<double>()[k];
      if (!(v == w || (std::isnan(v) && std::isnan(w)) || std::fabs(v - w) <= 1e-3 * std::fabs(w)))
        return false;
    }
  }
  return true;
}
bool has(const pt::program& p, const pt::op_def& d) {
  for (const pt::op_node& n : p.ops)
    if (n.def == &d) return true;
  return false;
}
/// Returns all results of an op.
pt::program program_with_results(const laws::op_case& c) {
  pt::builder b;
  std::vector<pt::value_id> x;
  for (std::size_t k = 0; k < c.operands.size(); ++k)
    x.push_back(pt::ops::parameter(b, laws::parameter_name(k), c.operands[k]));
  const pt::value_id y = b.emit(*c.op, x, c.attrs, c.declared);
  if (c.op->role == pt::op_role::tag) b.name_last("y");
  b.p.error.raise();
  for (int i = 0; i < b.p.ops.back().result_count; ++i) b.p.outputs.push_back({y + i, {}});
  return b.p;
}

/// The maximum, with a value that is an identity for positive numbers only.
struct greatest {
  static constexpr double identity = 0;
  static constexpr bool commutes = true;
  constexpr auto operator()(auto a, auto b) const { return pt::select(a > b, a, b); }
};

}  // namespace

TEST_CASE("a composite is read as the op that it claims only if its decomposition agrees") {
  int composites = 0, changes = 0, different = 0;
  for (const laws::op_case& c : laws::all_cases()) {
    const pt::program p = program_with_results(c);
    const std::string module = str(pt::write_stablehlo(p));
    if (module.find("\"partita.") == std::string::npos) continue;
    CAPTURE(module);
    ++composites;
    std::vector<pt::array> given;
    data::random r{static_cast<std::uint64_t>(composites)};
    for (std::size_t k = 0; k < c.operands.size(); ++k)
      given.push_back(c.make != nullptr ? c.make(c.operands[k], k, r)
                                        : data::integers(c.operands[k], r, c.low, c.high));
    const pt::program ours = pt::read_stablehlo(module),
                      theirs = pt::read_stablehlo(called(module));
    REQUIRE_MESSAGE(!ours.error, str(ours.error.message));
    REQUIRE_MESSAGE(!theirs.error, str(theirs.error.message));
    CHECK(has(ours, *c.op));
    const pt::results right = pt::evaluate(p, given);
    CHECK(same(right, pt::evaluate(theirs, given)));
    for (const std::string& changed : tampered(module)) {
      CAPTURE(changed);
      const pt::program read = pt::read_stablehlo(changed),
                        made = pt::read_stablehlo(called(changed));
      CHECK(read.error.is_set == made.error.is_set);
      if (read.error || made.error) continue;
      ++changes;
      const pt::results found = pt::evaluate(read, given);
      CHECK(same(found, pt::evaluate(made, given)));
      different += same(found, right) ? 0 : 1;
    }
  }
  CHECK(composites > 50);
  CHECK(changes > 50);
  CHECK(different > 20);
}

TEST_CASE("a fold is written such that no identity is needed") {
  const pt::program p = pt::trace(
      [](auto x) {
        return std::tuple{pt::fold<greatest, 1>(x), pt::fold<greatest, 0, 1>(x)};
      },
      pt::input<float, 2, 3>("x"));
  const pt::array x =
      data::fill({pt::dtype::f32, {2, 3}}, [](std::int64_t i) { return -1. - double(i); });
  const pt::program made = pt::read_stablehlo(called(str(pt::write_stablehlo(p))));
  REQUIRE_MESSAGE(!made.error, str(made.error.message));
  const pt::results found = pt::evaluate(made, x);
  CHECK(found[0].data<float>()[0] == -1);
  CHECK(found[0].data<float>()[1] == -4);
  CHECK(found[1].data<float>()[0] == -1);
}

TEST_CASE("a composite with another decomposition is not proved") {
  const pt::mesh m{{"B", 2}};
  const auto rows = pt::schedule(pt::manual("B", {{"x", 0}})),
             columns = pt::schedule(pt::manual("B", {{"x", 1}}));
  const auto check = [&](auto model, const auto& schedule) {
    const pt::program source = pt::trace(model, pt::input<float, 4, 6>("x"));
    const pt::partitioned p = pt::partition(source, m, schedule);
    const std::string module = str(pt::write_stablehlo(p.device));
    CAPTURE(module);
    const auto proved = [&](const std::string& text) {
      const pt::device_program local = pt::read_local_stablehlo(text, m);
      return !local.local.error && pt::prove(source, local).proved;
    };
    CHECK(proved(module));
    int changes = 0;
    for (const std::string& changed : tampered(module)) {
      CAPTURE(changed);
      // (Some changes affect numbers that are not used.)
      const pt::device_program local = pt::read_local_stablehlo(changed, m);
      if (local.local.error) continue;
      const pt::array x = data::fill({pt::dtype::f32, {4, 6}},
                                     [](std::int64_t i) { return double(i * 5 % 24) - 13.; });
      const bool right = same(pt::emulate(local, x), pt::evaluate(source, x));
      ++changes;
      if (!right) CHECK_FALSE(proved(changed));
    }
    CHECK(changes > 0);
  };
  const auto maxima = [](auto x) { return pt::output("y", pt::fold<greatest, 1>(x)); };
  check(maxima, rows);
  check(maxima, columns);
  const auto sums = [](auto x) { return pt::output("y", pt::cumsum<1>(x)); };
  check(sums, rows);
  check(sums, columns);
  const auto loop = [](auto x) {
    return pt::output("y", pt::scan(
                               [](auto c, auto row) {
                                 return std::pair{c + row, c * row};
                               },
                               pt::sum<0>(x), x)
                               .second);
  };
  check(loop, columns);
}
