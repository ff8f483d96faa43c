/// Lesson 8: Is a hand-written program of one device correct? `prove` answers it for all inputs.
///
/// You learn to read a program from text with `parse`, and to prove that it computes its source, or
/// to refute it, with `prove_or_refute`. The proof uses only the two programs and the layouts.
///
/// Output: "proved" for the correct program. For the wrong one: an element that differs, its two
/// values, and the op where the proof fails.
// ctest:
#include <iostream>
#include <string>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/refute.hpp>

namespace pt = partita;

// The source: the weights of attention, applied to values.
constexpr auto mix = [](auto s, auto v) { return matmul(pt::nn::softmax(s), v); };

// The hand-written program. Each of four devices has a quarter of the columns of s and of the rows
// of v. The softmax needs the maximum and the sum of full rows, so both are reduced over "M"; the
// partial products are reduced at the end.
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

/// Reads a program of one device, with the layouts of its inputs and output, and judges it.
pt::judgement judge(const pt::program& source, std::string_view text) {
  pt::device_program d;
  pt::failure wrong;
  d.local = pt::parse(text, d.mesh);
  d.inputs.push_back(pt::parse_layout(R"([{}, {"M"}])", d.mesh, source.input_type(0).shape, wrong));
  d.inputs.push_back(pt::parse_layout(R"([{"M"}, {}])", d.mesh, source.input_type(1).shape, wrong));
  d.outputs.push_back(pt::parse_layout("[{}, {}]", d.mesh, source.output_type(0).shape, wrong));
  if (d.local.error) wrong = d.local.error;  // a syntax error
  wrong.raise();
  return pt::prove_or_refute(source, d);
}

int main() {
  const pt::program source =
      pt::trace(mix, pt::input<float, 4, 8>("s"), pt::input<float, 8, 3>("v"));
  const pt::judgement right = judge(source, by_hand);
  std::cout << "by hand: "
            << (right.kind == pt::verdict_kind::proved ? "proved\n" : "not proved\n");

  // The same program without the all_reduce of the sums: each device then divides by the sum of its
  // own columns. The message says that an all_reduce <"M"> is missing.
  std::string text(by_hand);
  text.erase(text.find("  %all ="), text.find("  %c =") - text.find("  %all ="));
  text.replace(text.find("(%all)"), 6, "(%n)");
  const pt::judgement wrong = judge(source, text);
  std::cout << "without the second sum: " << wrong.error.message.view() << '\n';
  return right.kind == pt::verdict_kind::proved && wrong.kind == pt::verdict_kind::refuted ? 0 : 1;
}

// Read more: examples/guide/7_proof.md. Next lesson: 09_pipelines.cpp
