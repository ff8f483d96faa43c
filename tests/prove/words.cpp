// The text of a verdict: the place, the claims known there, and the missing collective.
#include <doctest/doctest.h>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// Returns the verdict for columns of x sharded along "M", and for y sharded likewise or replicated
/// (`whole`), without what elements add to it.
std::string said(const std::string& source, const std::string& local, bool whole) {
  const pt::program p = pt::parse("func @main(%x: tensor<8x16xf32>) {\n" + source + "}\n");
  pt::device_program d;
  d.local = pt::parse(
      "func @main(%x: tensor<8x4xf32>) attributes {mesh = {\"M\":4}} {\n" + local + "}\n", d.mesh);
  REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  pt::failure wrong;
  d.inputs.push_back(pt::parse_layout("[{}, {\"M\"}]", d.mesh, p.input_type(0).shape, wrong));
  d.outputs.push_back(whole ? pt::layout{} : d.inputs[0]);
  REQUIRE_MESSAGE(!wrong, data::str(wrong.message));
  const std::string all = data::str(pt::prove(p, d).error.message);
  return all.substr(0, all.find("; formulas first differ at "));
}

}  // namespace

TEST_CASE("a missing reduction is named") {
  const auto softmax = [](const std::string& n) {
    return "  %m = reduce(%x) {max, dims=[1]} : tensor<8xf32>\n"
           "  %b = broadcast_in_dim(%m) {dims=[0]} : tensor<8x" +
           n + "xf32>\n  %y = subtract(%x, %b) : tensor<8x" + n +
           "xf32>\n  return %y as \"y\" : tensor<8x" + n + "xf32>\n";
  };
  CHECK(said(softmax("16"), softmax("4"), false) ==
        "Q003 prove: %y = subtract(%x, %x2): an operand is pending; %x is \"x\" [{}, {\"M\"}]; %x2 "
        "is the source's broadcast_in_dim [{}, {}], to be reduced by max over \"M\"; an all_reduce "
        "<@max> "
        "<\"M\"> of %x2 is missing");
  const std::string sum =
      "  %y = reduce(%x) {add, dims=[1]} : tensor<8xf32>\n  return %y as \"y\" : tensor<8xf32>\n";
  CHECK(said(sum, sum, true) ==
        "Q004 prove: output \"y\" is the source's reduce [{}], to be reduced by add over \"M\"; in "
        "the source it is the source's reduce [{}]; an all_reduce <\"M\"> is missing");
  const std::string twice =
      "  %s = reduce(%x) {add, dims=[1]} : tensor<8xf32>\n"
      "  %r = all_reduce <\"M\"> %s : tensor<8xf32>\n  %y = all_reduce <\"M\"> %r : tensor<8xf32>\n"
      "  return %y as \"y\" : tensor<8xf32>\n";
  CHECK(said(sum, twice, true).find("missing") == std::string::npos);
}
