/// Lesson 8: is a program for one device, written by hand, right?
///
/// Learnt: `parse` reads what `print` shows; `prove` decides whether a local program computes
/// its source, for all inputs, from nothing but the two programs and the layouts;
/// `prove_or_refute` finds inputs for which a wrong one differs.
///
/// Printed: what is said of a right program and of a wrong one.
// ctest:
#include <iostream>
#include <string>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/refute.hpp>

namespace pt = partita;

// What is to be computed: attention's weights and what they select.
constexpr auto mix = [](auto s, auto v) { return matmul(pt::nn::softmax(s), v); };

// By hand, on four devices with a quarter of the columns of s and of the rows of v each: greatest
// element and sums are reduced over the devices.
constexpr std::string_view by_hand =
    R"(func @main(%s: tensor<4x2xf32>, %v: tensor<2x3xf32>) attributes {mesh = {"M":4}} {
  %m = reduce(%s) {max, dims=[1]} : tensor<4xf32>
  %most = all_reduce <@max> <"M"> %m : tensor<4xf32>
  %b = broadcast_in_dim(%most) {dims=[0]} : tensor<4x2xf32>
  %d = subtract(%s, %b) : tensor<4x2xf32>
  %e = exp(%d) : tensor<4x2xf32>
  %n = reduce(%e) {add, dims=[1]} : tensor<4xf32>
  %all = all_reduce <"M"> %n : tensor<4xf32>
  %c = broadcast_in_dim(%all) {dims=[0]} : tensor<4x2xf32>
  %w = divide(%e, %c) : tensor<4x2xf32>
  %part = matmul(%w, %v) : tensor<4x3xf32>
  %y = all_reduce <"M"> %part : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
)";

pt::judgement judge(const pt::program& source, std::string_view text) {
  pt::device_program d;
  pt::failure wrong;
  d.local = pt::parse(text, d.mesh);
  d.inputs.push_back(pt::parse_layout(R"([{}, {"M"}])", d.mesh, source.input_type(0).shape, wrong));
  d.inputs.push_back(pt::parse_layout(R"([{"M"}, {}])", d.mesh, source.input_type(1).shape, wrong));
  d.outputs.push_back(pt::parse_layout("[{}, {}]", d.mesh, source.output_type(0).shape, wrong));
  if (d.local.error) wrong = d.local.error;  // what could not be read
  wrong.raise();
  return pt::prove_or_refute(source, d);
}

int main() {
  const pt::program source =
      pt::trace(mix, pt::input<float, 4, 8>("s"), pt::input<float, 8, 3>("v"));
  const pt::judgement right = judge(source, by_hand);
  std::cout << "by hand: "
            << (right.kind == pt::verdict_kind::proved ? "proved\n" : "not proved\n");

  std::string text(by_hand);  // somebody forgot that the sum is over all devices
  text.erase(text.find("  %all ="), text.find("  %c =") - text.find("  %all ="));
  text.replace(text.find("(%all)"), 6, "(%n)");
  const pt::judgement wrong = judge(source, text);
  std::cout << "without the second sum: " << wrong.error.message.view() << '\n';
  return right.kind == pt::verdict_kind::proved && wrong.kind == pt::verdict_kind::refuted ? 0 : 1;
}
