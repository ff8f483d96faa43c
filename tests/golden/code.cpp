/// The program of the README as a file of C++.
#include <doctest/doctest.h>

#include <string>

#include <partita/backend/code/write_cpp.hpp>
#include <partita/partita.hpp>

namespace {

namespace pt = partita;

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

constexpr auto step = [] {
  auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                     pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
};

/// An op of a user's, whose kernel no file can name.
struct doubled : pt::op::elementwise_op {
  static constexpr std::string_view name = "doubled";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
};

}  // namespace

TEST_CASE("device code of the README's program") {
  CHECK(pt::write_cpp(step().device) ==
        R"text(// What each device of the mesh {"B":4, "M":2} runs, as Partita wrote it.
//
//   g++ -std=c++20 -O2 -I PARTITA/include -isystem EIGEN FILE.cpp -pthread
//   mpicxx ... -DPARTITA_CODE_MPI    (one rank per device, not one thread)
#include <partita/backend/code/launch.hpp>
#include <partita/backend/code/products.hpp>

namespace {

namespace code = partita::code;
namespace kernels = code::kernels;
namespace op = partita::op;
using partita::combiner, partita::dtype;

// Name, global type, type on a device, and which axis (by number) slices which dimension.
constexpr code::argument inputs[] = {
    {"x", {dtype::f32, {256, 8}}, {dtype::f32, {64, 8}}, {{0, 0}}},
    {"w1", {dtype::f32, {8, 16}}, {dtype::f32, {2, 8}}, {{1, 1}, {0, 0}}},
    {"w2", {dtype::f32, {16, 8}}, {dtype::f32, {8, 2}}, {{1, 0}, {0, 1}}},
};
constexpr code::argument outputs[] = {
    {"result", {dtype::f32, {256, 8}}, {dtype::f32, {64, 8}}, {{0, 0}}},
};
const partita::mesh mesh{{"B", 4}, {"M", 2}};

// Every value has its place in one buffer per device.
constexpr std::int64_t memory_bytes = 4352;

void run([[maybe_unused]] code::device& d, [[maybe_unused]] const std::byte* const* in,
         [[maybe_unused]] std::byte* const* out) {
  const auto* const x = code::in<float>(in[0]);  // tensor<64x8xf32>
  const auto* const w1 = code::in<float>(in[1]);  // tensor<2x8xf32>
  const auto* const w2 = code::in<float>(in[2]);  // tensor<8x2xf32>
  // %w1g = all_gather [{"B"}, {}] %w1
  auto* const w1g = d.memory<float>(0);  // tensor<8x8xf32>
  d.exchange<op::all_gather>(0, {0, 0},
      {{{dtype::f32, {2, 8}}, w1}}, {{{dtype::f32, {8, 8}}, w1g}});
  // %x1 = matmul(%x, %w1g)
  auto* const x1 = d.memory<float>(256);  // tensor<64x8xf32>
  code::multiply(code::matrix<64, 8>(x), code::matrix<8, 8>(w1g), x1);
  // %w2g = all_gather [{}, {"B"}] %w2
  auto* const w2g = d.memory<float>(0);  // tensor<8x8xf32>
  d.exchange<op::all_gather>(1, {1, 0},
      {{{dtype::f32, {8, 2}}, w2}}, {{{dtype::f32, {8, 8}}, w2g}});
  // %x2 = matmul(%x1, %w2g)
  auto* const x2 = d.memory<float>(2304);  // tensor<64x8xf32>
  code::multiply(code::matrix<64, 8>(x1), code::matrix<8, 8>(w2g), x2);
  // %x3 = all_reduce <"M"> %x2
  auto* const x3 = code::out<float>(out[0]);  // tensor<64x8xf32>
  d.exchange<op::all_reduce, code::combined<combiner::add, float>>(2, {1, 1},
      {{{dtype::f32, {64, 8}}, x2}}, {{{dtype::f32, {64, 8}}, x3}});
}

}  // namespace

#if !defined(PARTITA_CODE_NO_MAIN)
int main(int argc, char** argv) {
  return code::launch({mesh, inputs, outputs, memory_bytes, &run}, argc, argv);
}
#endif
)text");
}
TEST_CASE("an op without a kernel of the library has no device code") {
  const auto model = [](auto x) { return pt::apply_op<doubled>(x) + x; };
  const pt::program f = pt::trace(model, pt::input<float, 4>("x"));
  CHECK_THROWS_WITH(pt::write_cpp(f),
                    "E020 code: op doubled has no kernel of the library that code could name; "
                    "run the program "
                    "with emulate or an executable");
}
