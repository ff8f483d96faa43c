/// Proves a hand-written program: Megatron's MLP for one device, read from text, computes the
/// traced model. A wrong variant is refuted; the message names the op and shows values that differ.
// ctest:
#include <iostream>
#include <string>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/refute.hpp>

namespace pt = partita;

// The source program, which does not mention devices.
constexpr auto mlp = [](auto x, auto w1, auto b1, auto w2, auto b2) {
  return matmul(maximum(matmul(x, w1) + b1, 0), w2) + b2;
};

// The program of each of 2 x 4 devices: columns of w1, rows of w2, and one reduction of the
// product.
constexpr std::string_view by_hand =
    R"(func @main(%x: tensor<4x8xf32>, %w1: tensor<8x8xf32>, %b1: tensor<8xf32>, %w2: tensor<8x8xf32>, %b2: tensor<8xf32>) attributes {mesh = {"B":2, "M":4}} {
  %h = matmul(%x, %w1) : tensor<4x8xf32>
  %c1 = broadcast_in_dim(%b1) {dims=[1]} : tensor<4x8xf32>
  %a = add(%h, %c1) : tensor<4x8xf32>
  %zero = constant {0} : tensor<f32>
  %r = maximum(%a, %zero) : tensor<4x8xf32>
  %part = matmul(%r, %w2) : tensor<4x8xf32>
  %sum = all_reduce <"M"> %part : tensor<4x8xf32>
  %c2 = broadcast_in_dim(%b2) {dims=[1]} : tensor<4x8xf32>
  %y = add(%sum, %c2) : tensor<4x8xf32>
  return %y : tensor<4x8xf32>
}
)";
// The layouts of its arguments: "B" shards the batch, "M" the features between the matrices.
constexpr std::string_view layouts[] = {R"([{"B"}, {}])", R"([{}, {"M"}])", R"([{"M"}])",
                                        R"([{"M"}, {}])", R"([{}])"};

pt::device_program read(const pt::program& source, std::string_view text) {
  pt::device_program d;
  pt::failure wrong;
  d.local = pt::parse(text, d.mesh);
  for (int i = 0; i < source.input_count(); ++i)
    d.inputs.push_back(pt::parse_layout(layouts[i], d.mesh, source.input_type(i).shape, wrong));
  d.outputs.push_back(
      pt::parse_layout(R"([{"B"}, {}])", d.mesh, source.output_type(0).shape, wrong));
  wrong.raise();
  return d;
}

pt::verdict_kind judge(const char* what, const pt::program& source, const std::string& text) {
  constexpr const char* words[] = {"proved", "refuted", "not proved"};
  const pt::judgement j = pt::prove_or_refute(source, read(source, text));
  std::cout << what << ": " << words[static_cast<int>(j.kind)] << '\n';
  if (j.error) std::cout << "  " << j.error.message.view() << '\n';
  return j.kind;
}

int main() {
  const pt::program source = pt::trace(mlp, pt::input<float, 8, 8>("x"),
                                       pt::input<float, 8, 32>("w1"), pt::input<float, 32>("b1"),
                                       pt::input<float, 32, 8>("w2"), pt::input<float, 8>("b2"));
  const std::string right(by_hand);
  std::string wrong = right;  // adds the bias on every device before the reduction
  const auto swap = [&](std::string_view from, std::string_view to) {
    wrong.replace(wrong.find(from), from.size(), to);
  };
  swap("  %sum = all_reduce <\"M\"> %part : tensor<4x8xf32>\n", "");
  swap("add(%sum, %c2)", "add(%part, %c2)");
  swap("  return %y", "  %z = all_reduce <\"M\"> %y : tensor<4x8xf32>\n  return %z");
  const bool good = judge("by hand", source, right) == pt::verdict_kind::proved &&
                    judge("with the bias reduced", source, wrong) == pt::verdict_kind::refuted;
  return good ? 0 : 1;
}
