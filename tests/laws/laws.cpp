// Each entry of a tile map is a theorem: the op equals the loop over slices of its operands,
// stacked or reduced. These tests check it by evaluation for every op of the registry.
#include <doctest/doctest.h>

#include <set>

#include <partita/run/laws.hpp>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

namespace {

/// Returns operands for a case whose own range of integers is not suitable.
std::vector<pt::array> made_operands(const op_case& c, std::uint64_t seed) {
  std::vector<pt::array> operands;
  data::random r{seed};
  for (std::size_t k = 0; c.make != nullptr && k < c.operands.size(); ++k)
    operands.push_back(c.make(c.operands[k], k, r));
  return operands;
}

/// Returns the checker's message for a tile map, or "kept".
std::string verdict(const op_case& c, void (*rule)(pt::tile_map_context&)) {
  try {
    pt::law_options options;
    options.low = c.low;
    options.high = c.high;
    const auto applied = pt::run_detail::apply_op(*c.op, c.operands, c.attrs, c.declared);
    pt::run_detail::tile_map_check(applied, rule, options).run();
    return "kept";
  } catch (const pt::error& e) {
    return e.what();
  }
}

}  // namespace

TEST_CASE("every entry of every tile map holds, for every divisor") {
  std::set<const pt::op_def*> covered{&pt::def<pt::op::parameter>};
  std::int64_t cases = 0, loops = 0;
  std::vector<op_case> list = all_cases();
  add_halo_cases(list);
  for (const op_case& c : list) {
    pt::law_options options;
    options.low = c.low;
    options.high = c.high;
    options.seed = static_cast<std::uint64_t>(++cases);
    options.operands = made_operands(c, options.seed);
    try {
      loops += pt::check_laws(*c.op, c.operands, c.attrs, c.declared, options);
    } catch (const pt::error& e) {
      FAIL_CHECK(std::string(e.what()));
    }
    covered.insert(c.op);
  }
  for (const pt::op_def* op : pt::registry) {
    if (op->role == pt::op_role::control) continue;  // its wires: tests/run/control.cpp
    CHECK_MESSAGE(covered.count(op) == 1, op->name, " has no cases in tests/laws/cases.hpp");
    if (op != &pt::def<pt::op::literal>)  // its elements are in the text
      CHECK_MESSAGE((op->tile_map != &pt::no_factors), op->name, " has no tile map");
  }
  MESSAGE(cases, " cases, ", loops, " loops");
  CHECK(loops > 1000);
}

TEST_CASE("an unsound tile map is refused with the entry, the shapes and the values that differ") {
  using context = pt::tile_map_context;
  const op_case matmul{
      &pt::def<pt::op::dot_general>, {f32({4, 4}), f32({4, 4})}, dots({}, {}, {1}, {0}), {}};
  CHECK(verdict(matmul, pt::op::dot_general::tile_map) == "kept");
  // The contracted dimension without its sum: stacked.
  CHECK(verdict(matmul, [](context& c) { c.tile(4, 0).operand(0, 1).operand(1, 0); }) ==
        "L002 laws: dot_general ([4, i], [i, 4]) -> ([i, 4]) of (tensor<4x4xf32>, tensor<4x4xf32>) "
        "-> tensor<4x4xf32>: entry i over 2 slices: slices (tensor<4x2xf32>, tensor<2x4xf32>) give "
        "tensor<4x4xf32>, the loop needs tensor<2x4xf32>");
  // Another monoid.
  CHECK(verdict(matmul,
                [](context& c) { c.reduce(4, pt::combiner::max).operand(0, 1).operand(1, 0); }) ==
        "L001 laws: dot_general ([4, i], [i, 4]) -> ([4, 4])  reduce={i:max} of (tensor<4x4xf32>, "
        "tensor<4x4xf32>) -> tensor<4x4xf32>: entry i:max over 2 slices: result (0, 0) is 1, the "
        "loop over slices gives 2");
  // A missing operand: the slices do not match.
  CHECK(
      verdict(matmul, [](context& c) { c.reduce(4, pt::combiner::add).operand(0, 1); }) ==
      "L002 laws: dot_general ([4, i], [4, 4]) -> ([4, 4])  reduce={i:add} of (tensor<4x4xf32>, "
      "tensor<4x4xf32>) -> tensor<4x4xf32>: entry i:add over 2 slices: slices (tensor<4x2xf32>, "
      "tensor<4x4xf32>) do not fit the op: S101 dot_general: contracted extents differ: dimension "
      "1 of lhs tensor<4x2xf32> has size 2, dimension 0 of rhs tensor<4x4xf32> has size 4");
  // A sliced operand that must stay unsliced.
  CHECK(verdict(matmul, [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 1); }) ==
        "L002 laws: dot_general ([i, 4], [4, i]) -> ([i, 4]) of (tensor<4x4xf32>, tensor<4x4xf32>) "
        "-> tensor<4x4xf32>: entry i over 2 slices: slices (tensor<2x4xf32>, tensor<4x2xf32>) give "
        "tensor<2x2xf32>, the loop needs tensor<2x4xf32>");
  // The wrong dimension of the operand, and of the result.
  const op_case transposed{&pt::def<pt::op::transpose>, {f32({4, 4})}, {1, 0}, {}};
  CHECK(verdict(transposed, [](context& c) { c.tile(4, 0).operand(0, 0); }) ==
        "L002 laws: transpose {dims=[1, 0]} ([i, 4]) -> ([i, 4]) of (tensor<4x4xf32>) -> "
        "tensor<4x4xf32>: entry i over 2 slices: slices (tensor<2x4xf32>) give tensor<4x2xf32>, "
        "the loop needs tensor<2x4xf32>");
  CHECK(verdict({&pt::def<pt::op::add>, {f32({4, 4}), f32({4, 4})}, {}, {}},
                [](context& c) { c.tile(4, 1).operand(0, 0).operand(1, 0); }) ==
        "L002 laws: add ([i, 4], [i, 4]) -> ([4, i]) of (tensor<4x4xf32>, tensor<4x4xf32>) -> "
        "tensor<4x4xf32>: entry i over 2 slices: slices (tensor<2x4xf32>, tensor<2x4xf32>) give "
        "tensor<2x4xf32>, the loop needs tensor<4x2xf32>");
  // Reshape with its factors in the wrong order.
  const op_case split{&pt::def<pt::op::reshape>, {i32({12})}, {}, i32({3, 4})};
  CHECK(verdict(split, pt::op::reshape::tile_map) == "kept");
  CHECK(verdict(split,
                [](context& c) {
                  c.composed();
                  c.tile(4, 1).operand(0, 0);
                  c.tile(3, 0).operand(0, 0);
                }) ==
        "L001 laws: reshape ([ij]) -> ([j, i]) of (tensor<12xi32>) -> tensor<3x4xi32>: entry i "
        "over 2 slices: result (0, 2) is 1, the loop over slices gives -3");
  // Dimensions that are not maps: of iota, rows of a table, the joined dimension, a strict part of
  // a slice.
  CHECK(verdict({&pt::def<pt::op::iota>, {}, {0}, i32({4})}, [](context& c) { c.tile(4, 0); }) ==
        "L001 laws: iota {dim=0} () -> ([i]) of () -> tensor<4xi32>: entry i over 2 slices: result "
        "(2) is 2, the loop over slices gives 0");
  CHECK(verdict({&pt::def<pt::op::gather>, {f32({4, 2}), i32({4})}, {}, {}, 0, 3},
                [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 0); }) ==
        "L001 laws: gather ([i, 2], [i]) -> ([i, 2]) of (tensor<4x2xf32>, tensor<4xi32>) -> "
        "tensor<4x2xf32>: entry i over 2 slices: result (2, 0) is 3, the loop over slices gives 0");
  CHECK(verdict({&pt::def<pt::op::scatter>, {i32({4}), f32({4})}, {1}, f32({4}), 0, 3},
                [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 0); }) ==
        "L001 laws: scatter {add} ([i], [i]) -> ([i]) of (tensor<4xi32>, tensor<4xf32>) -> "
        "tensor<4xf32>: entry i over 2 slices: result (3) is 3, the loop over slices gives 0");
  CHECK(verdict({&pt::def<pt::op::concatenate>, {f32({4}), f32({4})}, {0}, {}},
                [](context& c) { c.tile(8, 0).operand(0, 0).operand(1, 0); }) ==
        "L004 laws: concatenate {dim=0} ([i], [i]) -> ([i]) of (tensor<4xf32>, tensor<4xf32>) -> "
        "tensor<8xf32>: entry i has size 8; dimension 0 of operand 0 has size 4");
  CHECK(verdict({&pt::def<pt::op::slice>, {f32({4})}, {0, 2}, {}},
                [](context& c) { c.tile(2, 0).operand(0, 0); }) ==
        "L004 laws: slice {[0:2]} ([i*2]) -> ([i]) of (tensor<4xf32>) -> tensor<2xf32>: entry i "
        "has size 2; dimension 0 of operand 0 has size 4");
  // The sum of the parts instead of their maximum.
  CHECK(verdict({&pt::def<pt::op::reduce>,
                 {f32({4})},
                 {static_cast<std::int64_t>(pt::combiner::max), 0},
                 {}},
                [](context& c) { c.reduce(4, pt::combiner::add).operand(0, 0); }) ==
        "L001 laws: reduce {max, dims=[0]} ([i]) -> ([])  reduce={i:add} of (tensor<4xf32>) -> "
        "tensor<f32>: entry i:add over 2 slices: result () is 2, the loop over slices gives 3");
  // Entries that do not match the dimensions.
  CHECK(verdict(transposed, [](context& c) { c.tile(4, 2); }) ==
        "L004 laws: transpose {dims=[1, 0]} ([4, 4]) -> ([4, 4]) of (tensor<4x4xf32>) -> "
        "tensor<4x4xf32>: entry i has dimension 2 of the result, whose shape is [4, 4]");
  CHECK(verdict(transposed, [](context& c) { c.tile(4, 0).tile(4, 0); }) ==
        "L004 laws: transpose {dims=[1, 0]} ([4, 4]) -> ([ij, 4]) of (tensor<4x4xf32>) -> "
        "tensor<4x4xf32>: entry j has dimension 0 of the result, as another entry has; only a "
        "composed dimension is made of several");
  CHECK(verdict(split,
                [](context& c) {
                  c.composed();
                  c.tile(5, 0).operand(0, 0);
                }) ==
        "L004 laws: reshape ([i*2]) -> ([i, 4]) of (tensor<12xi32>) -> tensor<3x4xi32>: entry i "
        "has size 5; dimension 0 of the result has size 3");
  CHECK(verdict(transposed, [](context& c) { c.add(4, pt::combiner::add, 0); }) ==
        "L004 laws: transpose {dims=[1, 0]} ([4, 4]) -> ([i, 4])  reduce={i:add} of "
        "(tensor<4x4xf32>) -> "
        "tensor<4x4xf32>: entry i:add must either be reduced or have a result dimension");
}

namespace {

/// A user's op: every row minus its mean. Columns cannot be sliced.
struct center {
  static constexpr std::string_view name = "center";
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
  static constexpr void tile_map(pt::tile_map_context& c) {
    c.tile(c.result.shape[0], 0).operand(0, 0);
  }
  /// The rule forgets the mean.
  static constexpr void derive(pt::derive_context& c) { c.operands[0] = c.cotangent; }
  static void run(const pt::kernel_context& c) {
    const auto* x = c.operand<double>(0);
    auto* y = c.output<double>();
    const std::int64_t rows = c.result.shape[0], columns = c.result.shape[1];
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0;
      for (std::int64_t j = 0; j < columns; ++j)
        mean += x[r * columns + j] / static_cast<double>(columns);
      for (std::int64_t j = 0; j < columns; ++j) y[r * columns + j] = x[r * columns + j] - mean;
    }
  }
};
/// The same op with an entry too many.
struct center_columns : center {
  static constexpr void tile_map(pt::tile_map_context& c) {
    for (int d = 0; d < 2; ++d) c.tile(c.result.shape[d], d).operand(0, d);
  }
};

/// The same op with a rule that sums the cotangent instead of passing it on.
struct center_summed : center {
  static constexpr void derive(pt::derive_context& c) {
    const std::int64_t dims[] = {1};
    c.operands[0] = pt::ops::reduce(c.b, c.cotangent, pt::combiner::add, dims);
  }
};

/// The maximum of squares: an element that does not change a maximum may change that of the
/// squares.
struct energy {
  static constexpr std::string_view name = "energy";
  static constexpr void infer(pt::infer_context& c) { c.result = {c.operands[0].element, {}}; }
  static constexpr void tile_map(pt::tile_map_context& c) {
    c.reduce(c.operands[0].shape[0], pt::combiner::max).operand(0, 0);
  }
  static void run(const pt::kernel_context& c) {
    const auto* x = c.operand<double>(0);
    double most = 0;
    for (std::int64_t i = 0; i < c.types[0].shape[0]; ++i) most = std::max(most, x[i] * x[i]);
    *c.output<double>() = most;
  }
};
/// The same op with a correct rule.
struct honest_energy : energy {
  static constexpr bool reduces_identity = false;
};
/// A copy of its operand, whose size is in an attribute.
struct sized_copy {
  static constexpr std::string_view name = "sized_copy";
  static constexpr void infer(pt::infer_context& c) {
    c.result = {c.operands[0].element, {c.attrs[0]}};
  }
  static constexpr void tile_map(pt::tile_map_context& c) {
    if (c.attrs[0] == 1) c.tile(1, 0).operand(0, 0);
  }
};

/// A sum of positions times elements: an iteration counts from the start of its block.
struct moment {
  static constexpr std::string_view name = "moment";
  static constexpr bool reduces_identity = false;  // padding would have to be filled with zeros
  static constexpr void infer(pt::infer_context& c) { c.result = {c.operands[0].element, {}}; }
  static constexpr void tile_map(pt::tile_map_context& c) {
    c.reduce(c.operands[0].shape[0], pt::combiner::add).operand(0, 0).located();
  }
  /// sum of (start + i) x_i = start * sum of x_i + sum of i x_i
  static constexpr void locate(pt::locate_context& c) {
    const std::int64_t all[] = {0};
    const pt::dtype t = c.result_types[0].element;
    const pt::value_id own = c.emit(c.operands);
    const pt::value_id sum = pt::ops::reduce(c.b, c.operands[0], pt::combiner::add, all);
    const pt::value_id start = pt::ops::convert(c.b, c.start(0, pt::dtype::i32), t);
    c.results.push_back(pt::ops::add(c.b, own, pt::ops::multiply(c.b, start, sum)));
  }
  static void run(const pt::kernel_context& c) {
    const auto* x = c.operand<double>(0);
    double sum = 0;
    for (std::int64_t i = 0; i < c.types[0].shape[0]; ++i) sum += static_cast<double>(i) * x[i];
    *c.output<double>() = sum;
  }
};
/// The same op without the start.
struct lost_moment : moment {
  static constexpr void locate(pt::locate_context& c) { c.results.push_back(c.emit(c.operands)); }
};
/// The same op with a wrong result.
struct other_moment : moment {
  static constexpr void locate(pt::locate_context& c) { c.results.push_back(c.operands[0]); }
};
/// The same op without a result.
struct no_moment : moment {
  static constexpr void locate(pt::locate_context&) {}
};

std::string thrown(auto f) {
  try {
    f();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a user's op is checked in one call") {
  pt::law_options laws;
  for (const auto* op : {&pt::def<center>, &pt::def<center_columns>, &pt::def<center_summed>})
    laws.run.kernels.push_back({op, &center::run});
  CHECK(pt::check_laws(pt::def<center>, {f64({4, 2})}, {}, {}, laws) == 4);
  CHECK(thrown([&] {
          pt::check_laws(pt::def<center_columns>, {f64({4, 2})}, {}, {}, laws);
        }) ==
        "L001 laws: center ([i, j]) -> ([i, j]) of (tensor<4x2xf64>) -> tensor<4x2xf64>: entry j "
        "over 2 slices: result (0, 0) is 1, the loop over slices gives 0");
  CHECK(thrown([&] { pt::check_laws(pt::def<center>, {f64({4, 2})}); }).substr(0, 4) == "R005");
  // Zeros have a mean of zero, and a large tolerance hides errors. So the error that is found is
  // that the mean of a padded row differs.
  const auto columns = [&] {
    return thrown([&] { pt::check_laws(pt::def<center_columns>, {f64({4, 2})}, {}, {}, laws); });
  };
  laws.operands = {pt::array(f64({4, 2}))};
  CHECK(columns().substr(0, 4) == "L005");
  laws.operands.clear();
  laws.tolerance = 10;
  CHECK(columns().substr(0, 4) == "L005");

  // Padding: the identity of max is not that of its squares; a size in an attribute.
  pt::law_options padded;
  for (const auto* op : {&pt::def<energy>, &pt::def<honest_energy>})
    padded.run.kernels.push_back({op, &energy::run});
  CHECK(thrown([&] { pt::check_laws(pt::def<energy>, {f64({4})}, {}, {}, padded); }) ==
        "L005 laws: energy ([i]) -> ([])  reduce={i:max} of (tensor<4xf64>) -> tensor<f64>: entry "
        "i:max padded from 4 to 5: result () is 4, with the padding inf");
  CHECK(pt::check_laws(pt::def<honest_energy>, {f64({4})}, {}, {}, padded) == 4);
  padded.run.kernels.push_back({&pt::def<sized_copy>, [](const pt::kernel_context& c) {
                                  *c.output<double>() = *c.operand<double>(0);
                                }});
  CHECK(thrown([&] { pt::check_laws(pt::def<sized_copy>, {f64({1})}, {1}, {}, padded); }) ==
        "L005 laws: sized_copy ([i]) -> ([i]) of (tensor<1xf64>) -> tensor<1xf64>: entry i padded "
        "from 1 to 2: it gives tensor<1xf64>, not tensor<2xf64>");

  pt::derivative_options derivative;
  derivative.run = laws.run;
  CHECK(thrown([&] {
          pt::check_derivative(pt::def<center>, {f64({4, 2})}, {}, {}, derivative);
        }) ==
        "L003 laws: derivative of center of (tensor<4x2xf64>): operand 0, element (0, 0): the rule "
        "gives 0.2332673, central differences -0.8118812");
  CHECK(thrown([&] {
          pt::check_derivative(pt::def<center_summed>, {f64({4, 2})}, {}, {}, derivative);
        }) ==
        "L003 laws: derivative of center of (tensor<4x2xf64>): operand 0: its cotangent has type "
        "tensor<4xf64>");
  CHECK(thrown([&] {
          pt::check_laws(pt::def<pt::op::add>, {f32({4}), f32({5})});
        }) == "S103 add: shapes [4] and [5] differ");
}

TEST_CASE("iterations know the start of their blocks") {
  pt::law_options laws;
  for (const auto* op :
       {&pt::def<moment>, &pt::def<lost_moment>, &pt::def<other_moment>, &pt::def<no_moment>})
    laws.run.kernels.push_back({op, &moment::run});
  const auto verdict_of = [&](const pt::op_def& op) {
    return thrown([&] { pt::check_laws(op, {f64({4})}, {}, {}, laws); });
  };
  CHECK(verdict_of(pt::def<moment>) == "no error");
  CHECK(verdict_of(pt::def<lost_moment>) ==
        "L001 laws: moment ([i@]) -> ([])  reduce={i:add} of (tensor<4xf64>) -> tensor<f64>: entry "
        "i:add over 2 slices: result () is 5, the loop over slices gives 1");
  CHECK(verdict_of(pt::def<other_moment>) ==
        "L002 laws: moment ([i@]) -> ([])  reduce={i:add} of (tensor<4xf64>) -> tensor<f64>: entry "
        "i:add over 2 slices: slices (tensor<2xf64>) give tensor<2xf64>, the loop needs "
        "tensor<f64>");
  CHECK(verdict_of(pt::def<no_moment>) ==
        "L002 laws: moment ([i@]) -> ([])  reduce={i:add} of (tensor<4xf64>) -> tensor<f64>: entry "
        "i:add over 2 slices: an iteration gives 0 results");
}
