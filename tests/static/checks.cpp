// The design's example: strategy and figures, checked by the compiler.
#include <array>

#include <partita/partita.hpp>

namespace pt = partita;
using namespace pt::literals;

static_assert(16_GiB == std::int64_t{16} << 30 && 80_GB == 80'000'000'000 && 3_kB == 3'000 &&
              1_TiB == 1024 * 1_GiB && 1_TB == 1'000 * 1_GB && 5_MiB == 5 * 1024 * 1_KiB &&
              2_MB == 2'000'000 && 8388607_TiB > 0);

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

static_assert(pt::check<step>.collectives == pt::collectives{.all_gather = 2, .all_reduce = 1});
static_assert(pt::check<step>.collectives.total() == 3);
static_assert(pt::check<step>.input("w1").local_shape == pt::shape{2, 8});
static_assert(pt::check<step>.input("w1").global_shape == pt::shape{8, 16});
static_assert(pt::check<step>.input("w2").local_shape == pt::shape{8, 2});
static_assert(pt::check<step>.input("x").local_shape == pt::shape{64, 8});
static_assert(pt::check<step>.input("x").sharding.dim_of(0) == 0);
static_assert(pt::check<step>.input("x").sharding.dim_of(1) == -1);
static_assert(pt::check<step>.output("result").local_shape == pt::shape{64, 8});
static_assert(pt::check<step>.output(0).element == pt::dtype::f32);
static_assert(pt::check<step>.input_count == 3 && pt::check<step>.output_count == 1);
static_assert(pt::check<step>.ops == 3 + 5);
static_assert(pt::check<step>.conflicts == 0);
static_assert(pt::check<step>.error().empty());
// Per tactic: name, actions with `propagate`, collectives so far.
static_assert(pt::check<step>.tactic_count == 3);
static_assert(pt::check<step>.tactic("BP").actions == 2);
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);
static_assert(pt::check<step>.tactic("MP").collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<step>.tactic(2).name == "Z3" && pt::check<step>.tactic(2).actions == 3);
// Bytes and flops per device: 4 bytes of (64x8 + 2x8 + 8x2); 2 matmuls of 64x8x8.
static_assert(pt::check<step>.argument_bytes == 4 * (64 * 8 + 2 * 8 + 8 * 2));
static_assert(pt::check<step>.result_bytes == 4 * 64 * 8);
static_assert(pt::check<step>.flops == 2 * (2 * 64 * 8 * 8));
// Both shards are sent to three devices each, and the sum to one.
static_assert(pt::check<step>.collective_bytes == 4 * (3 * (2 * 8 + 8 * 2) + 64 * 8));
// Three messages for each gather over four devices, two for a sum over two.
static_assert(pt::check<step>.messages("B") == 2 * 3 && pt::check<step>.messages("M") == 2);
// During the second product: arguments, %x1, gathered %w2, %x2; then %x2 and %x3.
static_assert(pt::check<step>.peak_bytes ==
              pt::check<step>.argument_bytes + 4 * (64 * 8 + 8 * 8 + 64 * 8));

// All figures are known after each tactic: shardings of inputs and outputs, memory, time.
static_assert(pt::check<pt::after_tactic<step, 0>>.tactic_count == 1);
static_assert(pt::check<pt::after_tactic<step, "BP">>.input("w1").local_shape == pt::shape{8, 16});
static_assert(pt::check<pt::after_tactic<step, "BP">>.peak_bytes ==
              4 * (2 * 64 * 8 + 8 * 16 + 16 * 8 + 64 * 16));
static_assert(pt::check<pt::after_tactic<step, "BP">>.flops == 2 * pt::check<step>.flops);
static_assert(pt::check<pt::after_tactic<step, "MP">>.collectives ==
              pt::check<step>.tactic("MP").collectives);
static_assert(pt::check<pt::after_tactic<step, 1>>.output(0).sharding.dim_of(1) == -1);
static_assert(pt::check<pt::after_tactic<step, 2>>.peak_bytes == pt::check<step>.peak_bytes);
static_assert(pt::check<pt::after_tactic<step, "BP">, pt::a100_80>.communication_time == 0 &&
              pt::check<pt::after_tactic<step, "MP">, pt::a100_80>.communication_time > 0);

// A conflict counts for the tactic that causes it.
constexpr auto torn = [] {
  auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                     pt::input<float, 16, 8>("w2"));
  const auto both = pt::manual("B", {{"x", 0}, {"w1", 1}});
  return pt::partition(f, mesh, pt::schedule(pt::amalgamated("both", both), MP));
};
static_assert(pt::check<torn>.tactic("both").conflicts == 1);

// A tactic settles the conflicts between its own layouts by cost.
constexpr auto settled = [] {
  auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                     pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 0}, {"w1", 1}}), MP));
};
static_assert(pt::check<settled>.conflicts == 0);
static_assert(pt::check<settled>.flops < pt::check<torn>.flops);

// A user's tactic is any type with a name and actions.
struct halve_everything {
  constexpr std::string_view name() const { return "halve"; }
  constexpr void apply(pt::tactic_context& c) const {
    const int axis = c.axis("M");
    for (const auto& v : c.values())
      if (v.kind == pt::named_value::input && c.local_shape(v.value).rank > 0 &&
          c.local_shape(v.value)[0] % c.mesh().size(axis) == 0)
        c.tile(v.value, 0, axis);
    c.propagate();
  }
};
static_assert(pt::Tactic<halve_everything> && pt::Tactic<decltype(BP)> && !pt::Tactic<int>);
constexpr auto halved = [] {
  auto f = pt::trace([](auto x, auto y) { return x + y; }, pt::input<float, 6, 5>("x"),
                     pt::input<float, 6, 5>("y"));
  return pt::partition(f, mesh, pt::schedule(halve_everything{}));
};
static_assert(pt::check<halved>.input("y").local_shape == pt::shape{3, 5});
static_assert(pt::check<halved>.collectives.total() == 0);

// More values than the summary's initial size holds: it is computed again with a larger one.
constexpr auto many = [] {
  std::array<pt::tensor<float, 4>, 200> spec;
  auto f = pt::trace(
      [](auto a) {
        auto sum = a[0];
        for (std::size_t i = 1; i < a.size(); ++i) sum = sum + a[i];
        return sum;
      },
      pt::input("a", spec));
  return pt::partition(f, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"a", 0}})));
};
static_assert(pt::check<many>.input_count == 200);
static_assert(pt::check<many>.input("a.199").local_shape == pt::shape{2});
static_assert(pt::check<many>.tactic(0).actions == 201);

// All figures and the printed program are the same at compile time and at run time.
static_assert(
    pt::print(step().device.local, &mesh) ==
    R"(func @main(%x: tensor<64x8xf32>, %w1: tensor<2x8xf32>, %w2: tensor<8x2xf32>) attributes {mesh = {"B":4, "M":2}} {
  %w1g = all_gather [{"B"}, {}] %w1 : tensor<8x8xf32>
  %x1 = matmul(%x, %w1g) : tensor<64x8xf32>
  %w2g = all_gather [{}, {"B"}] %w2 : tensor<8x8xf32>
  %x2 = matmul(%x1, %w2g) : tensor<64x8xf32>
  %x3 = all_reduce <"M"> %x2 : tensor<64x8xf32>
  return %x3 : tensor<64x8xf32>
}
)");

// Borders of a sharded image go to both neighbours; the product and the gradient of the weights
// need the same borders.
constexpr auto blur = [] {
  auto f = pt::trace(
      [](auto x, auto w) {
        return pt::grad(
            [&](auto weights) {
              const auto y = pt::conv<pt::conv_options{.padding = pt::same_padding}>(x, weights);
              return pt::mean(y * y);
            },
            w);
      },
      pt::input<float, 2, 16, 16, 3>("x"), pt::input<float, 3, 3, 3, 4>("w"));
  return pt::partition(f, mesh, pt::schedule(pt::manual("B", {{"x", 1}}, "space")));
};
static_assert(pt::check<blur>.collectives == pt::collectives{.all_reduce = 1, .permute = 2});
static_assert(pt::check<blur>.input("x").local_shape == pt::shape{2, 4, 16, 3});

static_assert(pt::check<step>.peak_bytes <= 16_KiB && pt::check<step>.peak_bytes > 1_KiB);
