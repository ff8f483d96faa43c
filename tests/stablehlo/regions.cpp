/// Programs of ops that use values from outside: constants, scalars computed from them, arguments.

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/stablehlo/read.hpp>

#include "modules.hpp"

namespace pt = partita;

namespace {

pt::program read(const std::string& text) {
  pt::program p = pt::read_stablehlo(text);
  INFO(text);
  if (p.error) FAIL(std::string(p.error.message.view()));
  return p;
}
pt::array numbers(const pt::tensor_type& type, int seed) {
  pt::array a(type);
  for (std::int64_t i = 0; i < a.size(); ++i)
    if (type.element == pt::dtype::f32)
      a.mutable_data<float>()[i] = static_cast<float>((i * 7 + seed * 5) % 13) / 4 - 1.5f;
    else
      a.mutable_data<std::int32_t>()[i] = static_cast<std::int32_t>((i * 5 + seed) % 6);
  return a;
}
std::vector<pt::array> run(const pt::program& p) {
  std::vector<pt::array> given;
  for (int i = 0; i < p.input_count(); ++i) given.push_back(numbers(p.input_type(i), i));
  const pt::results r = pt::evaluate(p, given);
  return r.arrays();
}
void check_equal(const std::string& one, const std::string& other) {
  const auto a = run(read(one)), b = run(read(other));
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) {
    REQUIRE(a[i].type() == b[i].type());
    for (std::int64_t k = 0; k < a[i].size(); ++k)
      CHECK(a[i].data<float>()[k] == doctest::Approx(b[i].data<float>()[k]));
  }
}

/// An op whose program uses a scalar, `%s`.
struct op_with_program {
  std::string_view name, attributes, types, result, region;
};
// (a + b + s a b is associative.)
constexpr std::string_view grown =
    "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n %1 = stablehlo.multiply %x, %y : tensor<f32>\n %2 = "
    "stablehlo.multiply %1, %s : tensor<f32>\n %3 = stablehlo.add %x, %y : tensor<f32>\n %4 = "
    "stablehlo.add %3, %2 : tensor<f32>\n stablehlo.return %4 : tensor<f32>";
// Comparisons without keys: of differences, and by distance from a number.
constexpr std::string_view by_difference =
    "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n %1 = stablehlo.subtract %x, %y : tensor<f32>\n %2 = "
    "stablehlo.add %1, %s : tensor<f32>\n %3 = stablehlo.compare LT, %2, %s : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n stablehlo.return %3 : tensor<i1>";
constexpr std::string_view by_distance =
    "^bb0(%x: tensor<f32>, %y: tensor<f32>):\n %1 = stablehlo.subtract %x, %s : tensor<f32>\n %2 = "
    "stablehlo.abs %1 : tensor<f32>\n %3 = stablehlo.subtract %y, %s : tensor<f32>\n %4 = "
    "stablehlo.abs %3 : tensor<f32>\n %5 = stablehlo.compare GT, %2, %4 : (tensor<f32>, "
    "tensor<f32>) -> tensor<i1>\n stablehlo.return %5 : tensor<i1>";
constexpr op_with_program ops[] = {
    {"map", "dimensions = array<i64: 0, 1>", "tensor<5x7xf32>, tensor<5x7xf32>", "tensor<5x7xf32>",
     grown},
    {"reduce", "dimensions = array<i64: 1>", "tensor<5x7xf32>, tensor<f32>", "tensor<5xf32>",
     grown},
    {"reduce_window",
     "window_dimensions = array<i64: 1, 3>, window_strides = array<i64: 1, 2>, padding = "
     "dense<[[0, 0], [1, 2]]> : tensor<2x2xi64>",
     "tensor<5x7xf32>, tensor<f32>", "tensor<5x4xf32>", grown},
    {"scatter",
     "scatter_dimension_numbers = #stablehlo.scatter<update_window_dims = [1], "
     "inserted_window_dims = [0], scatter_dims_to_operand_dims = [0], index_vector_dim = 1>",
     "tensor<5x7xf32>, tensor<3x1xi32>, tensor<3x7xf32>", "tensor<5x7xf32>", grown},
    {"sort", "dimension = 1 : i64, is_stable = true", "tensor<5x7xf32>", "tensor<5x7xf32>",
     by_difference},
    {"sort", "dimension = 0 : i64, is_stable = true", "tensor<5x7xf32>", "tensor<5x7xf32>",
     by_distance},
};

std::string arguments_of(const op_with_program& op) {
  std::string list;
  const auto types = pt::stablehlo_detail::parts_of(op.types);
  for (std::size_t i = 0; i < types.size(); ++i)
    list += std::string(i > 0 ? ", " : "") + "%" + static_cast<char>('a' + i) + ": " +
            std::string(types[i]);
  return list;
}
std::string written(const op_with_program& op, const std::string& region) {
  std::string given;
  const auto types = pt::stablehlo_detail::parts_of(op.types);
  for (std::size_t i = 0; i < types.size(); ++i)
    given += std::string(i > 0 ? ", " : "") + "%" + static_cast<char>('a' + i);
  return " %r = \"stablehlo." + std::string(op.name) + "\"(" + given + ") <{" +
         std::string(op.attributes) + "}> ({\n" + region + "\n }) : (" + std::string(op.types) +
         ") -> " + std::string(op.result) + "\n";
}
constexpr std::string_view half = " %s = stablehlo.constant dense<5.0e-1> : tensor<f32>\n";
constexpr std::string_view quarters =
    " %q = stablehlo.constant dense<2.5e-1> : tensor<f32>\n %s = stablehlo.add %q, %q : "
    "tensor<f32>\n";

std::string returned(const op_with_program& op) { return " return %r : " + std::string(op.result); }
/// The module with the constant inside the program.
std::string inside(const op_with_program& op) {
  std::string region(op.region);
  region.insert(region.find(":\n") + 2, half);
  return modules::around(arguments_of(op), written(op, region) + returned(op));
}

}  // namespace

TEST_CASE("a program uses outer constants, and scalars computed from them") {
  for (const auto& op : ops) {
    const std::string region(op.region);
    for (const std::string_view before : {half, quarters})
      check_equal(modules::around(arguments_of(op),
                                  std::string(before) + written(op, region) + returned(op)),
                  inside(op));
  }
}

TEST_CASE("a constant two programs further out is used") {
  for (const auto& op : ops) {
    const std::string type(op.result), region(op.region);
    const std::string branch =
        " %k = stablehlo.constant dense<0> : tensor<i32>\n %z = \"stablehlo.case\"(%k) ({\n" +
        written(op, region) + " stablehlo.return %r : " + type + "\n}) : (tensor<i32>) -> " + type +
        "\n return %z : " + type;
    check_equal(modules::around(arguments_of(op), std::string(quarters) + branch), inside(op));
  }
}

TEST_CASE("a program uses an argument of the function") {
  for (const auto& op : ops) {
    const std::string region(op.region);
    // (The last argument is a number like those of `numbers`: %s is computed from it.)
    const std::string text = modules::around(
        arguments_of(op) + ", %n: tensor<f32>",
        " %m = stablehlo.multiply %n, %n : tensor<f32>\n %o = stablehlo.subtract %m, %m : "
        "tensor<f32>\n %h = stablehlo.constant dense<5.0e-1> : tensor<f32>\n %s = stablehlo.add "
        "%o, %h : tensor<f32>\n" +
            written(op, region) + returned(op));
    check_equal(text, inside(op));
  }
}

TEST_CASE(
    "sorting by any comparison: lines of all lengths, several operands, equal elements stay") {
  for (int n = 0; n < 20; ++n) {
    const std::string type = "tensor<2x" + std::to_string(n) + "x";
    const std::string text = modules::around(
        "%a: " + type + "f32>, %b: " + type + "i32>",
        // The comparison of integer parts, by their difference.
        " %z = stablehlo.constant dense<0.0> : tensor<f32>\n %r:2 = \"stablehlo.sort\"(%a, %b) "
        "<{dimension = 1 : i64, is_stable = true}> ({\n ^bb0(%x: tensor<f32>, %y: tensor<f32>, "
        "%v: tensor<i32>, %w: tensor<i32>):\n %1 = stablehlo.floor %x : tensor<f32>\n %2 = "
        "stablehlo.floor %y : tensor<f32>\n %3 = stablehlo.subtract %2, %1 : tensor<f32>\n %4 = "
        "stablehlo.compare GT, %3, %z : (tensor<f32>, tensor<f32>) -> tensor<i1>\n "
        "stablehlo.return %4 : tensor<i1>\n }) : (" +
            type + "f32>, " + type + "i32>) -> (" + type + "f32>, " + type +
            "i32>)\n return %r#0, %r#1 : " + type + "f32>, " + type + "i32>");
    const pt::program p = read(text);
    const auto made = run(p);
    const pt::array x = numbers(p.input_type(0), 0), y = numbers(p.input_type(1), 1);
    for (int row = 0; row < 2; ++row) {
      std::vector<std::pair<float, std::int32_t>> line;
      for (int i = 0; i < n; ++i)
        line.emplace_back(x.data<float>()[row * n + i], y.data<std::int32_t>()[row * n + i]);
      // (libstdc++ 12 has a stable_sort that Clang 19 calls deprecated.)
      for (std::size_t i = 1; i < line.size(); ++i)
        for (std::size_t j = i; j > 0; --j)
          if (std::floor(line[j].first) < std::floor(line[j - 1].first))
            std::swap(line[j], line[j - 1]);
      for (int i = 0; i < n; ++i) {
        CHECK(made[0].data<float>()[row * n + i] == line[static_cast<std::size_t>(i)].first);
        CHECK(made[1].data<std::int32_t>()[row * n + i] ==
              line[static_cast<std::size_t>(i)].second);
      }
    }
  }
}
