// The kernel of claims: each rule, beside a program that would be proved if the rule were unsound.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

using layouts = std::vector<std::string>;

/// A source, and the mesh and layouts of local programs for it.
struct subject {
  std::string parameters, body, mesh, local_parameters;
  layouts inputs, outputs;

  bool proves(const std::string& local) const {
    const pt::program source = pt::parse("func @main(" + parameters + ") {\n" + body + "}\n");
    pt::device_program d;
    d.local = pt::parse("func @main(" + local_parameters + ") attributes {mesh = {" + mesh +
                            "}} {\n" + local + "}\n",
                        d.mesh);
    REQUIRE_MESSAGE(!source.error, data::str(source.error.message));
    REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
    pt::failure wrong;
    const auto layout = [&](const std::string& text, pt::shape any) {
      for (int k = 0; k < any.rank; ++k) any[k] *= d.mesh.devices();  // (padding is allowed)
      return pt::parse_layout(text, d.mesh, any, wrong);
    };
    for (int i = 0; i < source.input_count(); ++i)
      d.inputs.push_back(layout(inputs[static_cast<std::size_t>(i)], source.input_type(i).shape));
    for (int i = 0; i < source.output_count(); ++i)
      d.outputs.push_back(
          layout(outputs[static_cast<std::size_t>(i)], source.output_type(i).shape));
    REQUIRE_MESSAGE(!wrong, data::str(wrong.message));
    pt::prove_detail::claim_kernel kernel(source, d);
    kernel.run();
    return kernel.open().empty();
  }
};

}  // namespace

TEST_CASE("kernel: a contraction leaves a sum pending") {
  const subject product{"%x: tensor<4x8xf32>, %w: tensor<8x6xf32>",
                        "  %y = matmul(%x, %w) : tensor<4x6xf32>\n"
                        "  %z = negate(%y) : tensor<4x6xf32>\n  return %z : tensor<4x6xf32>\n",
                        "\"B\":2, \"M\":4",
                        "%x: tensor<2x2xf32>, %w: tensor<2x6xf32>",
                        {"[{\"B\"}, {\"M\"}]", "[{\"M\"}, {}]"},
                        {"[{\"B\"}, {}]"}};
  const std::string y = "  %y = matmul(%x, %w) : tensor<2x6xf32>\n",
                    end = "  return %r : tensor<2x6xf32>\n";
  const auto after = [&](const std::string& op, const std::string& axes) {
    return y + "  %z = " + op + "(%y) : tensor<2x6xf32>\n  %r = all_reduce <" + axes +
           "> %z : tensor<2x6xf32>\n" + end;
  };
  CHECK(product.proves(after("negate", "\"M\"")));
  CHECK(product.proves(y +
                       "  %s = all_reduce <\"M\"> %y : tensor<2x6xf32>\n"
                       "  %r = negate(%s) : tensor<2x6xf32>\n" +
                       end));
  CHECK_FALSE(product.proves(after("negate", "\"B\"")));
  CHECK_FALSE(product.proves(after("negate", "\"M\", \"B\"")));
  CHECK_FALSE(product.proves(y + "  %r = negate(%y) : tensor<2x6xf32>\n" + end));
  CHECK_FALSE(product.proves(after("negate", "@max> <\"M\"")));
}

TEST_CASE("kernel: ops that do not commute with a sum end the proof") {
  const auto step = [](const std::string& op) {
    return subject{"%x: tensor<4xf32>, %c: tensor<f32>",
                   "  %s = reduce(%x) {add, dims=[0]} : tensor<f32>\n  %y = " + op +
                       " : tensor<f32>\n  return %y : tensor<f32>\n",
                   "\"B\":2",
                   "%x: tensor<2xf32>, %c: tensor<f32>",
                   {"[{\"B\"}]", "[]"},
                   {"[]"}};
  };
  const auto late = [&](const std::string& op) {
    return step(op).proves("  %s = reduce(%x) {add, dims=[0]} : tensor<f32>\n  %t = " + op +
                           " : tensor<f32>\n  %y = all_reduce <\"B\"> %t : tensor<f32>\n"
                           "  return %y : tensor<f32>\n");
  };
  CHECK(late("multiply(%s, %c)"));
  CHECK(late("multiply(%c, %s)"));
  CHECK(late("divide(%s, %c)"));
  CHECK(late("subtract(%s, %s)"));
  CHECK_FALSE(late("divide(%c, %s)"));
  CHECK_FALSE(late("multiply(%s, %s)"));
  CHECK_FALSE(late("add(%s, %c)"));
  CHECK_FALSE(late("exp(%s)"));
  CHECK_FALSE(late("maximum(%s, %c)"));
}

TEST_CASE("kernel: the order of axes in a dimension counts") {
  const subject whole{
      "%x: tensor<8xf32>",  "  %y = negate(%x) : tensor<8xf32>\n  return %y : tensor<8xf32>\n",
      "\"B\":2, \"M\":2",   "%x: tensor<2xf32>",
      {"[{\"B\", \"M\"}]"}, {"[{}]"}};
  const auto gathered = [&](const std::string& first, const std::string& second) {
    return whole.proves("  %n = negate(%x) : tensor<2xf32>\n  %a = all_gather [{\"" + first +
                        "\"}] %n : tensor<4xf32>\n  %b = all_gather [{\"" + second +
                        "\"}] %a : tensor<8xf32>\n  return %b : tensor<8xf32>\n");
  };
  CHECK(gathered("M", "B"));
  CHECK_FALSE(gathered("B", "M"));
  subject turned = whole;
  turned.outputs = {"[{\"M\", \"B\"}]"};
  CHECK(
      turned.proves("  %n = negate(%x) : tensor<2xf32>\n"
                    "  %y = permute <\"B\", \"M\"> -> <\"M\", \"B\"> %n : tensor<2xf32>\n"
                    "  return %y : tensor<2xf32>\n"));
  CHECK_FALSE(turned.proves("  %y = negate(%x) : tensor<2xf32>\n  return %y : tensor<2xf32>\n"));
}

TEST_CASE("kernel: only the major factor of a reshaped dimension is sharded") {
  const auto reshaped = [](const std::string& in, const std::string& block) {
    return subject{"%x: tensor<4x6xf32>",
                   "  %y = reshape(%x) : tensor<24xf32>\n  return %y : tensor<24xf32>\n",
                   "\"B\":2",
                   "%x: tensor<" + block + "xf32>",
                   {in},
                   {"[{\"B\"}]"}}
        .proves("  %y = reshape(%x) : tensor<12xf32>\n  return %y : tensor<12xf32>\n");
  };
  CHECK(reshaped("[{\"B\"}, {}]", "2x6"));
  CHECK_FALSE(reshaped("[{}, {\"B\"}]", "4x3"));
}

TEST_CASE("kernel: a repeated value fits each block, and is not counted twice") {
  const auto repeated = [](const std::string& how, const std::string& end) {
    return subject{"%c: tensor<f32>, %x: tensor<8xf32>",
                   "  %b = broadcast_in_dim(%c) {dims=[]} : tensor<8xf32>\n"
                   "  %y = " +
                       how + "\n  return %y : " + end + "\n",
                   "\"B\":2",
                   "%c: tensor<f32>, %x: tensor<4xf32>",
                   {"[]", "[{\"B\"}]"},
                   {end == "tensor<f32>" ? "[]" : "[{\"B\"}]"}};
  };
  CHECK(repeated("add(%x, %b) : tensor<8xf32>", "tensor<8xf32>")
            .proves("  %b = broadcast_in_dim(%c) {dims=[]} : tensor<4xf32>\n"
                    "  %y = add(%b, %x) : tensor<4xf32>\n  return %y : tensor<4xf32>\n"));
  CHECK_FALSE(repeated("reduce(%b) {add, dims=[0]} : tensor<f32>", "tensor<f32>")
                  .proves("  %b = broadcast_in_dim(%c) {dims=[]} : tensor<4xf32>\n"
                          "  %y = reduce(%b) {add, dims=[0]} : tensor<f32>\n"
                          "  return %y : tensor<f32>\n"));
}

TEST_CASE("kernel: padding is not reduced") {
  const auto uneven = [](const std::string& op, const std::string& type, const std::string& out) {
    return subject{
        "%x: tensor<5xf32>",
        "  %y = " + op + " : tensor<" + type + "f32>\n  return %y : tensor<" + type + "f32>\n",
        "\"B\":2",
        "%x: tensor<3xf32>",
        {"[{\"B\"}]"},
        {out}};
  };
  CHECK(uneven("exp(%x)", "5x", "[{\"B\"}]")
            .proves("  %y = exp(%x) : tensor<3xf32>\n  return %y : tensor<3xf32>\n"));
  CHECK_FALSE(uneven("reduce(%x) {add, dims=[0]}", "", "[]")
                  .proves("  %s = reduce(%x) {add, dims=[0]} : tensor<f32>\n"
                          "  %y = all_reduce <\"B\"> %s : tensor<f32>\n"
                          "  return %y : tensor<f32>\n"));
}

TEST_CASE("kernel: a loop keeps the form of what it carries") {
  const auto loop = [](const std::string& n, const std::string& start, const std::string& result) {
    return "  %zero = constant {0} : tensor<f32>\n  %one = constant {1} : tensor<f32>\n"
           "  %y = scan(%" +
           start +
           ", %x) {length=3, carried=1, sliced=1} do (%i: tensor<i32>, "
           "%c: tensor<f32>, %s: tensor<" +
           n +
           "xf32>) {\n"
           "    %t = reduce(%s) {add, dims=[0]} : tensor<f32>\n"
           "    %a = add(%c, %t) : tensor<f32>\n    return %a : tensor<f32>\n  } : tensor<f32>\n" +
           result;
  };
  const auto sums = [&](const std::string& start) {
    return subject{"%x: tensor<3x8xf32>",
                   loop("8", start, "  return %y : tensor<f32>\n"),
                   "\"B\":2",
                   "%x: tensor<3x4xf32>",
                   {"[{}, {\"B\"}]"},
                   {"[]"}};
  };
  const std::string once =
      "  %r = all_reduce <\"B\"> %y : tensor<f32>\n"
      "  return %r : tensor<f32>\n";
  CHECK(sums("zero").proves(loop("4", "zero", once)));
  CHECK_FALSE(sums("zero").proves(loop("4", "zero", "  return %y : tensor<f32>\n")));
  CHECK_FALSE(sums("one").proves(loop("4", "one", once)));
}

TEST_CASE("kernel: devices end a loop, and choose a branch, together") {
  const auto ended = [](const std::string& n, const std::string& total) {
    return "  %y = while(%x) do (%c: tensor<" + n +
           "xf32>) {\n"
           "    %s = reduce(%c) {max, dims=[0]} : tensor<f32>\n" +
           total +
           "    %one = constant {1} : tensor<f32>\n"
           "    %b = compare(%m, %one) {lt} : tensor<i1>\n    return %b : tensor<i1>\n"
           "  } do (%c: tensor<" +
           n + "xf32>) {\n    %d = add(%c, %c) : tensor<" + n + "xf32>\n    return %d : tensor<" +
           n + "xf32>\n  } : tensor<" + n + "xf32>\n  return %y : tensor<" + n + "xf32>\n";
  };
  const auto over = [](const std::string& axis) {
    return "    %m = all_reduce <@max> <\"" + axis + "\"> %s : tensor<f32>\n";
  };
  const subject until{
      "%x: tensor<8xf32>", ended("8", "    %m = optimization_barrier(%s) : tensor<f32>\n"),
      "\"B\":2, \"M\":2",  "%x: tensor<4xf32>",
      {"[{\"B\"}]"},       {"[{\"B\"}]"}};
  CHECK(until.proves(ended("4", over("B"))));
  CHECK_FALSE(until.proves(ended("4", over("M"))));
}
