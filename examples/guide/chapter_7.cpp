/// Chapter 7 of the guide: a program for one device, written by hand, proved or refuted.
// ctest:
#include <iostream>
#include <string>
#include <string_view>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/report/sharding_svg.hpp>
#include <partita/run/refute.hpp>

#include "guide.hpp"

namespace pt = partita;

constexpr auto mix = [](auto s, auto v) { return pt::output("y", matmul(pt::nn::softmax(s), v)); };

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

// The division after the sum over devices, and the maximum not subtracted.
constexpr std::string_view shorter =
    R"(func @main(%s: tensor<4x2xf32>, %v: tensor<2x3xf32>) attributes {mesh = {"M":4}} {
  %one = constant {1} : tensor<f32>
  %less = expm1(%s) : tensor<4x2xf32>
  %e = add(%less, %one) : tensor<4x2xf32>
  %n = reduce(%e) {add, dims=[1]} : tensor<4xf32>
  %all = all_reduce <"M"> %n : tensor<4xf32>
  %part = matmul(%e, %v) : tensor<4x3xf32>
  %sum = all_reduce <"M"> %part : tensor<4x3xf32>
  %c = broadcast_in_dim(%all) {dims=[0]} : tensor<4x3xf32>
  %y = divide(%sum, %c) : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
)";

constexpr auto step = [] {
  const auto f = pt::trace(mix, pt::input<float, 4, 8>("s"), pt::input<float, 8, 3>("v"));
  return pt::partition(f, {{"M", 4}}, pt::schedule(pt::manual("M", {{"s", 1}})));
};
static_assert(pt::check<step>.proved);

pt::device_program read(const pt::program& source, std::string_view text) {
  pt::device_program d;
  pt::failure wrong;
  d.local = pt::parse(text, d.mesh);
  d.inputs.push_back(pt::parse_layout(R"([{}, {"M"}])", d.mesh, source.input_type(0).shape, wrong));
  d.inputs.push_back(pt::parse_layout(R"([{"M"}, {}])", d.mesh, source.input_type(1).shape, wrong));
  d.outputs.push_back(pt::parse_layout("[{}, {}]", d.mesh, source.output_type(0).shape, wrong));
  wrong.raise();
  return d;
}

std::string without(std::string text, std::string_view line, std::string_view result,
                    std::string_view operand) {
  const auto at = text.find(line);
  text.erase(at, text.find('\n', at) + 1 - at);
  for (auto i = text.find(result); i != std::string::npos; i = text.find(result, i))
    text.replace(i, result.size(), operand);
  return text;
}

int main(int argc, char** argv) {
  guide::page page(argc, argv);
  const pt::program source =
      pt::trace(mix, pt::input<float, 4, 8>("s"), pt::input<float, 8, 3>("v"));
  std::cout << pt::print(source);

  page.shows(R"(func @main(%s: tensor<4x8xf32>, %v: tensor<8x3xf32>) {
  %x1 = reduce(%s) {max, dims=[1]} : tensor<4xf32>
  %x2 = stop_gradient(%x1) : tensor<4xf32>
  %x3 = reshape(%x2) : tensor<4x1xf32>
  %x4 = broadcast_in_dim(%x3) {dims=[0, 1]} : tensor<4x8xf32>
  %x5 = subtract(%s, %x4) : tensor<4x8xf32>
  %x6 = exp(%x5) : tensor<4x8xf32>
  %x7 = reduce(%x6) {add, dims=[1]} : tensor<4xf32>
  %x8 = reshape(%x7) : tensor<4x1xf32>
  %x9 = broadcast_in_dim(%x8) {dims=[0, 1]} : tensor<4x8xf32>
  %x10 = divide(%x6, %x9) : tensor<4x8xf32>
  %y = matmul(%x10, %v) : tensor<4x3xf32>
  return %y : tensor<4x3xf32>
}
)");

  const pt::judgement right = pt::prove_or_refute(source, read(source, by_hand));
  std::cout << (right.kind == pt::verdict_kind::proved ? "proved\n" : "not proved\n");

  page.shows(R"(proved
)");

  const std::string wrong = without(std::string(by_hand), "  %most = ", "%most", "%m");
  std::cout << pt::prove(source, read(source, wrong)).error.message.view() << '\n';

  page.shows(
      R"(Q003 prove: %x3 = subtract(%s, %x2): an operand is pending; %s is "s" [{}, {"M"}]; %x2 is the source's reduce, to be
        reduced by max over "M"; an all_reduce <@max> <"M"> of %x2 is missing; formulas first differ at element [0,
        0] of output "y" on device {"M": 0}
)");

  const pt::judgement refuted = pt::prove_or_refute(source, read(source, wrong));
  const std::string_view message = refuted.error.message.view();
  std::cout << message.substr(0, message.find(" (Q003")) << '\n';

  page.shows(
      R"(Q005 refute: output "y", element [0, 0], is -0.4318000176639356 on the devices, -0.5807085166573862 in the source,
        for the inputs of seed 0
)");

  const pt::judgement open = pt::prove_or_refute(source, read(source, shorter));
  std::cout << (open.kind == pt::verdict_kind::not_proved ? "not proved: " : "told: ")
            << open.error.message.view() << '\n';

  page.shows(
      R"(not proved: Q003 prove: %x2 = expm1(%s): the source computes nothing like it; %s is "s" [{}, {"M"}]; output "y" is
        computed from it; formulas first differ at element [0, 0] of output "y" on device {"M": 0}: it is (... *
        "v"[0, 0] + ... * "v"[1, 0] + ... * "v"[2, 0] + ... * "v"[3, 0] + ... (4 more)) * divide(1, expm1("s"[0, 0])
        + 1 + expm1("s"[0, 1]) + 1 + ... (12 more)) here and exp("s"[0, 0] - ...) * ... * "v"[0, 0] + exp("s"[0, 1]
        - ...) * ... * "v"[1, 0] + exp("s"[0, 2] - ...) * ... * "v"[2, 0] + exp("s"[0, 3] - ...) * ... * "v"[3, 0] +
        ... (4 more) in the source
)");
  const pt::device_program d = read(source, by_hand);
  page.picture("7_s.svg",
               pt::sharding_svg(pt::sharded_value{"s", pt::dtype::f32, {4, 8}, {4, 2}, d.inputs[0]},
                                d.mesh));
  page.picture("7_v.svg",
               pt::sharding_svg(pt::sharded_value{"v", pt::dtype::f32, {8, 3}, {2, 3}, d.inputs[1]},
                                d.mesh));
  return page.result();
}
