#include <doctest/doctest.h>

#include <partita/cpu.hpp>      // running: arrays, evaluate, emulate
#include <partita/partita.hpp>  // language, partitioner, compile-time checks
#include <xtensor/xarray.hpp>
namespace pt = partita;

// The model does not mention devices.
constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };

// The strategy does not mention the inside of the model.
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");   // batch parallelism
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");  // Megatron; propagation shards w2
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");  // fully sharded parameters

// Both the compiler and the test call this function.
constexpr auto step = [] {
  auto f = pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                     pt::input<float, 16, 8>("w2"));
  return pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
};

static_assert(
    pt::expect<pt::check<step>.collectives, pt::collectives{.all_gather = 2, .all_reduce = 1}>);
static_assert(pt::expect<pt::check<step>.input("w1").local_shape, pt::shape{2, 8}>);
static_assert(pt::expect<pt::check<step>.argument_bytes, pt::at_most{4096}>);  // per device
static_assert(pt::check<step>.tactic("BP").collectives.total() == 0);  // BP alone sends nothing

TEST_CASE("eight devices compute the same as one") {
  const xt::xarray<float> x = xt::ones<float>({256, 8});
  const xt::xarray<float> w1 = 2 * xt::ones<float>({8, 16}), w2 = 3 * xt::ones<float>({16, 8});
  CHECK(pt::all_close(pt::emulate(step(), x, w1, w2), pt::evaluate(step().source, x, w1, w2)));
}
