// Single rules of the checker that no model needs.
#include <doctest/doctest.h>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// Is what follows the local sum of a column right, where the source divides the whole sum by 3?
bool scaled_before_reduction(const std::string& element) {
  const auto text = [&](const char* rows, const std::string& mesh, const std::string& body) {
    return "func @main(%x: tensor<" + std::string(rows) + "x" + element + ">)" + mesh + " {\n" +
           "  %n = constant {3} : tensor<" + element + ">\n" + body + "}\n";
  };
  const std::string of = " : tensor<" + element + ">\n";
  const pt::program source = pt::parse(text("8", "",
                                            "  %s = reduce(%x) {add, dims=[0]}" + of +
                                                "  %y = divide(%s, %n)" + of + "  return %y" + of));
  const std::string local =
      text("4", " attributes {mesh = {\"B\":2}}",
           "  %s = reduce(%x) {add, dims=[0]}" + of + "  %p = divide(%s, %n)" + of +
               "  %y = all_reduce <\"B\"> %p" + of + "  return %y" + of);
  pt::device_program d;
  d.local = pt::parse(local, d.mesh);
  REQUIRE_MESSAGE(!source.error, data::str(source.error.message));
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  d.inputs.push_back({});
  d.inputs[0].push_back(0, 0);
  d.outputs.push_back({});
  return pt::prove(source, d).proved;
}

}  // namespace

TEST_CASE("rules: a sum is divided before it is reduced, unless that rounds to integers") {
  CHECK(scaled_before_reduction("f32"));
  CHECK_FALSE(scaled_before_reduction("i32"));
}
