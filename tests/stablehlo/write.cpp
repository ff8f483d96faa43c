// Written StableHLO reads back: read(write(p)) is p. If it differs, p was not in the form that
// reading gives: constants are rounded to their types; ops that do nothing and unused constants are
// removed. The second time nothing changes.
#include <doctest/doctest.h>
#include <algorithm>

#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../../examples/models/gns.hpp"
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/serving.hpp"
#include "../../examples/models/unet.hpp"
#include "../laws/cases.hpp"
#include "../random/generator.hpp"

namespace pt = partita;
using data::str;

namespace {

/// Rounds constants to their types.
pt::program rounded(pt::program p) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    const pt::op_node& n = p.op(o);
    const bool numbers = n.def == &pt::def<pt::op::constant> || n.def == &pt::def<pt::op::literal>;
    if (!numbers || !pt::is_floating(p.type(n.result).element)) continue;
    for (int i = n.attr_begin; i < n.attr_begin + n.attr_count; ++i)
      p.attr_list[i] = pt::stablehlo_detail::as_bits(p.type(n.result).element,
                                                     std::bit_cast<double>(p.attr_list[i]));
  }
  for (auto& r : p.regions) r = rounded(static_cast<pt::program&&>(r));
  return p;
}
/// Writes the program and reads it back.
pt::program read_back(const pt::program& p) {
  const pt::text module = pt::write_stablehlo(p);
  CHECK_MESSAGE(!module.view().starts_with("error"), str(module), "\n", str(pt::print(p)));
  pt::program q = pt::read_stablehlo(module);
  CHECK_MESSAGE(!q.error, str(q.error.message), "\n", str(module));
  return q;
}
/// Returns whether the program is unchanged the first time. Checks that it is unchanged the second
/// time.
bool reads_back(const pt::program& given) {
  const pt::program p = rounded(given), once = read_back(p);
  if (once.error) return false;
  CHECK(!pt::verify(once));
  if (pt::equivalent(once, p)) return true;
  const pt::program twice = read_back(once);
  CHECK_MESSAGE(pt::equivalent(twice, once), str(pt::print(once)), "\n", str(pt::print(twice)));
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
  const int count = b.p.ops.back().result_count;
  for (int i = 0; i < count; ++i)
    b.p.outputs.push_back({y + i, b.p.intern("y" + std::to_string(i))});
  return b.p;
}
/// True if these are the dimension numbers of the rows of a table, which are read as none.
bool means_rows(const laws::op_case& c) {
  if (c.op != &pt::def<pt::op::scatter> || c.operands.size() != 3 || c.attrs.size() < 2)
    return false;
  const int rank = c.operands[0].shape.rank, indices = c.operands[1].shape.rank;
  std::vector<std::int64_t> rows{c.attrs[0], rank - 1};
  for (int d = 0; d + 1 < rank; ++d) rows.push_back(indices + d);
  for (std::int64_t n : {1, 0, 0, 0, 1, 0, indices}) rows.push_back(n);
  return std::equal(rows.begin(), rows.end(), c.attrs.begin(), c.attrs.end());
}
/// True if reading writes this op in another form, or removes it because it does nothing.
bool has_another_form(const laws::op_case& c) {
  for (const pt::op_def* op : {&pt::def<pt::op::literal>, &pt::def<pt::op::slice>,
                               &pt::def<pt::op::pad>, &pt::def<pt::op::dynamic_slice>})
    if (op == c.op) return true;
  return means_rows(c);
}

}  // namespace

TEST_CASE("every op, with every kind of attributes, reads back") {
  std::vector<laws::op_case> list = laws::all_cases();
  laws::add_halo_cases(list);
  for (const auto& c : list) {
    const pt::program p = program_with_results(c);
    const bool same = reads_back(p);
    if (!has_another_form(c)) CHECK_MESSAGE(same, str(pt::print(p)));
  }
}

TEST_CASE("models read back") {
  using paper::trace_training_step;
  CHECK(reads_back(trace_training_step(paper::language_model_sizes{.layers = 2,
                                                                   .width = 16,
                                                                   .heads = 4,
                                                                   .key = 4,
                                                                   .hidden = 32,
                                                                   .vocabulary = 12,
                                                                   .context = 6,
                                                                   .batch = 8})));
  CHECK(reads_back(paper::trace_serving({.layers = 1,
                                         .width = 16,
                                         .heads = 4,
                                         .key = 4,
                                         .hidden = 32,
                                         .vocabulary = 40,
                                         .batch = 8,
                                         .prompt = 5,
                                         .tokens = 7})));
  CHECK(reads_back(trace_training_step(paper::UNet)));
}

TEST_CASE("random programs read back, and compute the same") {
  int same = 0, all = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    CAPTURE(seed);
    const auto c = random_test::generator(seed).make();
    const pt::program p = pt::ir_detail::tidy(c.p);
    ++all;
    if (reads_back(p)) {
      ++same;
      continue;
    }
    if (c.wild) continue;
    const auto given = random_test::arguments(c);
    const auto ours = pt::evaluate(p, given), theirs = pt::evaluate(read_back(p), given);
    for (int i = 0; i < ours.size(); ++i) CHECK(pt::max_difference(ours[i], theirs[i]) == 0);
  }
  MESSAGE(same, " of ", all, " programs are the same at once");
  CHECK(same > all * 2 / 3);
}

TEST_CASE("names of any characters read back") {
  pt::builder b;
  const pt::tensor_type t{pt::dtype::f32, {2}};
  const auto x = pt::ops::parameter(b, "params.w[0]'s \"\\n\" \\ \xc3\xa4", t);
  const auto y = pt::ops::tag(b, "h[1] \"\\ \n\xc3\xa4", pt::ops::negate(b, x));
  b.p.outputs.push_back({y, b.p.intern("loss['a'] \"\\ \xc3\xa4")});
  b.p.outputs.push_back({x, b.p.intern("result")});
  b.p.outputs.push_back({x, b.p.intern("result.1")});
  CHECK(reads_back(b.p));
}

TEST_CASE("tags of a function that is called twice get different names") {
  const pt::program p = pt::read_stablehlo(R"(
func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = func.call @f(%arg0) : (tensor<2xf32>) -> tensor<2xf32>
  %1 = func.call @f(%0) : (tensor<2xf32>) -> tensor<2xf32>
  %2 = func.call @f(%1) : (tensor<2xf32>) -> tensor<2xf32>
  return %2 : tensor<2xf32>
}
func.func private @f(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  %0 = stablehlo.composite "partita.tag" %arg0 {composite_attributes = {name = "h"}, decomposition = @g} : (tensor<2xf32>) -> tensor<2xf32>
  return %0 : tensor<2xf32>
}
func.func private @g(%arg0: tensor<2xf32>) -> tensor<2xf32> {
  return %arg0 : tensor<2xf32>
}
)");
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  const std::string text = str(pt::print(p));
  for (const char* name : {"\"h\"", "\"h.again\"", "\"h.again.2\""})
    CHECK_MESSAGE(text.find(name) != std::string::npos, text);
}

TEST_CASE("a composite of an unknown op, or without its function, is refused") {
  const auto message = [](const char* op) {
    return str(
        pt::read_stablehlo(
            pt::concat("func.func @main(%arg0: tensor<2xf32>) -> tensor<2xf32> {\n  %0 = ", op,
                       " : (tensor<2xf32>) -> tensor<2xf32>\n  return %0 : tensor<2xf32>\n}\n"))
            .error.message);
  };
  CHECK(message("stablehlo.composite \"partita.nothing\" %arg0 {decomposition = @f}") ==
        "H004 stablehlo: 2:8: composite \"partita.nothing\" is not an op");
  CHECK(message("stablehlo.composite \"partita.scan\" %arg0 {decomposition = @f}") ==
        "H010 stablehlo: 2:8: stablehlo.composite: unknown function @f.body");
}

TEST_CASE("a mesh whose groups are too many to write is refused") {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", {pt::dtype::f32, {2}});
  b.p.outputs.push_back({x, b.p.intern("y")});
  pt::device_program d;
  d.local = b.p;
  d.mesh = {{"B", std::int64_t{1} << 21}};
  CHECK(str(pt::write_stablehlo(d)) ==
        "error: W002 write: mesh {\"B\":2097152} has 2097152 devices; groups of at most 1048576 "
        "can be written out\n");
}

TEST_CASE("a program for one device: groups, positions and the value where no device sends") {
  pt::mesh m{{"B", 2}, {"M", 3}};
  const pt::program local = pt::parse(
      "func @main(%x: tensor<4xf32>) attributes {mesh = {\"B\":2, \"M\":3}} {\n"
      "  %g = all_gather [{\"M\"}] %x : tensor<12xf32>\n"
      "  %r = all_reduce <\"B\"> %g : tensor<12xf32>\n"
      "  %p = permute <@max> {+1} <\"M\"> %r : tensor<12xf32>\n"
      "  return %p : tensor<12xf32>\n"
      "}\n",
      m);
  REQUIRE_MESSAGE(!local.error, str(local.error.message));
  pt::device_program d;
  d.local = local;
  d.mesh = m;
  const std::string text = str(pt::write_stablehlo(d));
  CAPTURE(text);
  const auto has = [&](const char* piece) { return text.find(piece) != std::string::npos; };
  CHECK(
      has("module @partita attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 6 : "
          "i32} {"));
  CHECK(
      has("\"stablehlo.all_gather\"(%arg0) <{all_gather_dim = 0 : i64, replica_groups = "
          "dense<[[0, 1, 2], [3, 4, 5]]> : tensor<2x3xi64>}>"));
  CHECK(has("replica_groups = dense<[[0, 3], [1, 4], [2, 5]]> : tensor<3x2xi64>"));
  CHECK(has("source_target_pairs = dense<[[0, 1], [1, 2], [3, 4], [4, 5]]> : tensor<4x2xi64>"));
  CHECK(has("stablehlo.replica_id : tensor<ui32>"));
  CHECK(has("dense<0xFF800000>"));
}
