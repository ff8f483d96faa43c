// Every elementwise op, in every place that can contain ops, with every element type that it
// accepts: the results equal those of the same op at top level, bit by bit.
#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <doctest/doctest.h>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;
using pt::dtype;
using pt::tensor_type;
using pt::value_id;

namespace {

constexpr std::int64_t columns = 37;  // more than a group of lanes, and not a multiple of one

/// An op with attributes and the types of its operands, which it accepts.
struct use {
  const pt::op_def* op;
  std::vector<dtype> operands;
  std::vector<std::int64_t> attrs;
  dtype result;

  std::string text() const {
    std::string s(op->name);
    for (auto a : attrs) s += " " + std::to_string(a);
    for (dtype t : operands) s += " " + std::string(name_of(t));
    return s + " -> " + std::string(name_of(result));
  }
  value_id emit(pt::builder& b, std::vector<value_id> x) const {
    return b.emit(*op, x, attrs, tensor_type{result, {}});
  }
};

/// Sets of attributes to test an op with; the last sets of several kinds are random numbers.
std::vector<std::vector<std::int64_t>> attributes_of(const pt::op_def& d) {
  if (&d == &pt::def<pt::op::compare>) return {{0}, {1}, {2}, {3}, {4}, {5}};
  if (&d == &pt::def<pt::op::reduce_precision>) return {{8, 7}, {5, 10}, {4, 3}};
  return {{}};
}
/// The uses of all elementwise ops of the registry, and of the other ops in functions of scalars.
std::vector<use> all_uses() {
  std::vector<use> list;
  for (const pt::op_def* d : pt::registry) {
    if (d->operand_count < 1 || !(d->elementwise || d == &pt::def<pt::op::reduce_precision>) ||
        d == &pt::def<pt::op::bitcast_convert>)
      continue;
    for (int first = 0; first < pt::dtype_count; ++first)
      for (int rest = 0; rest < pt::dtype_count; ++rest)
        for (const auto& attrs : attributes_of(*d))
          for (int to = 0; to < (d == &pt::def<pt::op::convert> ? pt::dtype_count : 1); ++to) {
            if (d->operand_count == 1 && rest > 0) continue;
            std::vector<dtype> operands(static_cast<std::size_t>(d->operand_count),
                                        static_cast<dtype>(rest));
            operands[0] = static_cast<dtype>(first);
            std::vector<tensor_type> types;
            for (dtype t : operands) types.push_back({t, {}});
            pt::infer_context c;
            c.operands = types;
            c.attrs = attrs;
            c.declared = {static_cast<dtype>(to), {}};
            d->infer(c);
            if (!c.error) list.push_back({d, operands, attrs, c.result.element});
          }
  }
  return list;
}

/// Two rows of numbers, including those where functions differ: 0, -0, infinities, NaN, and the
/// limits of ranges.
pt::array numbers(dtype t, data::random& r) {
  constexpr double inf = std::numeric_limits<double>::infinity();
  constexpr double special[] = {
      0.,   -0.,   1.,    -1.,  inf,  -inf,  std::numeric_limits<double>::quiet_NaN(),
      0.5,  -0.5,  2.5,   -2.5, 1e30, -1e30, 1e-30,
      88.5, -104., 65504.};
  return data::fill({t, {2, columns}}, [&](std::int64_t) -> double {
    if (t == dtype::boolean) return static_cast<double>(r.in(0, 1));
    if (!pt::is_floating(t)) return static_cast<double>(r.in(pt::is_unsigned(t) ? 0 : -100, 100));
    return r.one_in(3) ? r.pick(special) : static_cast<double>(r.in(-4000, 4000)) / 997;
  });
}
bool same_bits(const pt::array& a, const pt::array& b) {
  if (a.type() != b.type()) return false;
  const pt::array x = pt::as_type(a, dtype::f64), y = pt::as_type(b, dtype::f64);
  for (std::int64_t i = 0; i < a.size(); ++i) {
    const double v = x.data<double>()[i], w = y.data<double>()[i];
    if (!(std::isnan(v) && std::isnan(w)) && (v != w || std::signbit(v) != std::signbit(w)))
      return false;
  }
  return true;
}

/// The program of a reduction that returns the second element of each operand, and, for one more
/// operand, the result of the op on these.
pt::program reducer(const use& u) {
  pt::builder b;
  std::vector<value_id> second;
  for (int side = 0; side < 2; ++side) {
    for (dtype t : u.operands) {
      const value_id v = pt::ops::parameter(b, "", {t, {}});
      if (side == 1) second.push_back(v);
    }
    pt::ops::parameter(b, "", {u.result, {}});
  }
  const value_id made = u.emit(b, second);
  for (value_id v : second) b.p.outputs.push_back({v, {}});
  b.p.outputs.push_back({made, {}});
  return b.p;
}
tensor_type row_of(dtype t) { return {t, {columns}}; }

/// The op at top level, in a fold, a scan, a while and a branch: one result each.
pt::program in_all_places(const use& u, bool folds) {
  pt::builder b;
  std::vector<value_id> given;
  for (dtype t : u.operands)
    given.push_back(pt::ops::parameter(b, "x" + std::to_string(given.size()), {t, {2, columns}}));
  const std::int64_t one[] = {1, 0}, end[] = {2, columns};
  std::vector<value_id> rows;
  for (value_id v : given)
    rows.push_back(pt::ops::reshape(b, pt::ops::slice(b, v, one, end), {columns}));
  const auto output = [&](value_id v, const char* name) {
    b.p.error.raise();
    b.p.outputs.push_back({v, b.p.intern(name)});
  };
  output(u.emit(b, rows), "top");

  const value_id slot = pt::ops::constant(b, {u.result, {2, columns}}, 0);
  if (folds) {
    std::vector<value_id> operands = given;
    operands.push_back(slot);
    const std::vector<std::int64_t> identities(operands.size(), 0);
    const std::int64_t dims[] = {0};
    const value_id first = pt::ops::fold(b, operands, dims, identities, false, reducer(u));
    output(first + static_cast<int>(given.size()), "fold");
  }
  {
    pt::builder body;
    pt::ops::parameter(body, "", {dtype::i32, {}});
    std::vector<value_id> x;
    for (dtype t : u.operands) x.push_back(pt::ops::parameter(body, "", row_of(t)));
    body.p.outputs.push_back({u.emit(body, x), {}});
    const value_id made = pt::ops::scan(b, 2, false, {}, {}, given, std::move(body.p));
    output(pt::ops::reshape(b, pt::ops::slice(b, made, one, end), {columns}), "scan");
  }
  {
    pt::builder condition, body;
    std::vector<value_id> carried{pt::ops::integer(b, dtype::i32, 0)}, x;
    for (pt::builder* each : {&condition, &body}) {
      const value_id i = pt::ops::parameter(*each, "", {dtype::i32, {}});
      const value_id limit = pt::ops::integer(*each, dtype::i32, 1);
      if (each == &condition)
        each->p.outputs.push_back({pt::ops::compare(*each, pt::ops::direction::lt, i, limit), {}});
      else
        each->p.outputs.push_back({pt::ops::add(*each, i, limit), {}});
      for (dtype t : u.operands) {
        const value_id v = pt::ops::parameter(*each, "", row_of(t));
        if (each == &body) x.push_back(v);
      }
      pt::ops::parameter(*each, "", row_of(u.result));
    }
    for (value_id v : x) body.p.outputs.push_back({v, {}});
    body.p.outputs.push_back({u.emit(body, x), {}});
    carried.insert(carried.end(), rows.begin(), rows.end());
    carried.push_back(pt::ops::constant(b, row_of(u.result), 0));
    const value_id made =
        pt::ops::while_loop(b, carried, std::move(condition.p), std::move(body.p));
    output(made + static_cast<int>(carried.size()) - 1, "while");
  }
  {
    pt::vec<pt::program> branches;
    for (const bool computes : {false, true}) {
      pt::builder branch;
      std::vector<value_id> x;
      for (dtype t : u.operands) x.push_back(pt::ops::parameter(branch, "", row_of(t)));
      branch.p.outputs.push_back(
          {computes ? u.emit(branch, x) : pt::ops::constant(branch, row_of(u.result), 0), {}});
      branches.push_back(std::move(branch.p));
    }
    output(pt::ops::case_of(b, pt::ops::integer(b, dtype::i32, 1), rows, std::move(branches)),
           "case");
  }
  return b.p;
}

/// A module with that function as the program of a reduction of two rows, or of windows that are
/// two rows high.
std::string module_of(const use& u, std::string_view op, std::string_view attributes,
                      std::string_view result_rows) {
  const std::string written = str(pt::write_stablehlo(reducer(u)));
  const std::size_t body = written.find("{\n", written.find("@main")) + 2;
  const std::size_t back = written.find("    return ", body);
  const std::size_t end = written.find("\n  }\n", back);
  const auto type = [](dtype t, std::string_view dims) {
    return str(pt::concat(pt::stablehlo_detail::mlir_type{tensor_type{t, {}}})).insert(7, dims);
  };
  std::vector<dtype> all = u.operands;
  all.push_back(u.result);
  std::string arguments, operands, types, initials, initial_types, results, names, region,
      constants;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::string n = std::to_string(i), comma = i > 0 ? ", " : "";
    if (i + 1 < all.size())
      arguments += comma + "%t" + n + ": " + type(all[i], "2x37x");
    else
      constants +=
          "    %t" + n + " = stablehlo.constant dense<0> : " + type(all[i], "2x37x") + "\n";
    if (pt::is_floating(all[i]) && i + 1 == all.size()) {
      const std::size_t zero = constants.rfind("<0>");
      constants.replace(zero, 3, "<0.0>");
    }
    constants += "    %i" + n + " = stablehlo.constant dense<" +
                 (pt::is_floating(all[i]) ? "0.0" : "0") + "> : " + type(all[i], "") + "\n";
    operands += comma + "%t" + n;
    initials += ", %i" + n;
    types += comma + type(all[i], "2x37x");
    initial_types += ", " + type(all[i], "");
    results += comma + type(all[i], std::string(result_rows) + "37x");
  }
  for (std::size_t i = 0; i < 2 * all.size(); ++i)
    region +=
        (i > 0 ? ", %arg" : "%arg") + std::to_string(i) + ": " + type(all[i % all.size()], "");
  const std::string last = std::to_string(all.size() - 1);
  return "module @m {\n  func.func public @main(" + arguments + ") -> " +
         type(u.result, std::string(result_rows) + "37x") + " {\n" + constants +
         "    %r:" + std::to_string(all.size()) + " = \"" + std::string(op) + "\"(" + operands +
         initials + ") <{" + std::string(attributes) + "}> ({\n    ^bb0(" + region + "):\n" +
         written.substr(body, back - body) + "    stablehlo." +
         written.substr(back + 4, end - back - 4) + "\n    }) : (" + types + initial_types +
         ") -> (" + results + ")\n    return %r#" + last + " : " +
         type(u.result, std::string(result_rows) + "37x") + written.substr(end);
}

}  // namespace

TEST_CASE("every elementwise op computes the same in every place") {
  data::random r{48};
  int uses = 0;
  for (const use& u : all_uses()) {
    CAPTURE(u.text());
    ++uses;
    const bool folds = u.op != &pt::def<pt::op::random_bits>;
    const pt::program p = in_all_places(u, folds);
    std::vector<pt::array> given;
    for (dtype t : u.operands) given.push_back(numbers(t, r));
    const pt::results made = pt::evaluate(p, given);
    for (int i = 1; i < made.size(); ++i)
      CHECK_MESSAGE(same_bits(made[i], made[0]), str(pt::concat(p.output_name(i))));
    if (!folds) continue;
    for (const bool windows : {false, true}) {
      CAPTURE(windows);
      const std::string module =
          windows ? module_of(u, "stablehlo.reduce_window", "window_dimensions = array<i64: 2, 1>",
                              "1x")
                  : module_of(u, "stablehlo.reduce", "dimensions = array<i64: 0>", "");
      const pt::program read = pt::read_stablehlo(module);
      REQUIRE_MESSAGE(!read.error, str(read.error.message), "\n", module);
      pt::array got = pt::evaluate(read, given)[0];
      REQUIRE(got.size() == columns);
      pt::array flat(made[0].type());
      std::memcpy(flat.mutable_bytes(), got.bytes(), static_cast<std::size_t>(got.type().bytes()));
      CHECK_MESSAGE(same_bits(flat, made[0]), module);
    }
  }
  CHECK(uses > 500);
}
