// Diagnosis at compile time: figures in check<>, texts as constants.
#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;

constexpr auto megatron = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
constexpr auto sharded = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3), {.strict = 2048});
};

// x along "M"; before Z3 both weights along "B", too.
static_assert(pt::check<megatron>.replicated_count == 3);
static_assert(pt::check<megatron>.replicated_bytes == 2048 + 2 * 256);
static_assert(pt::check<sharded>.replicated_bytes == 2048);

static_assert(pt::explain<megatron>() ==
              R"(all_reduce <"M">  %x2  2048 bytes  x1  MP  matmul(%x1, %w2) leaves a sum over "M"
in all:
  all_gather      x0     0 bytes
  all_reduce      x1  2048 bytes
  reduce_scatter  x0     0 bytes
  all_to_all      x0     0 bytes
  all             x1  2048 bytes
messages along "M" 2
)");
static_assert(pt::replicated(sharded())[0].bytes == 2048);
static_assert(pt::print_replicated(sharded()) ==
              R"(2048 bytes  x 2 copies  %x  parameter  tensor<256x8xf32>  along "M"
replicated by default: 2048 bytes on one device, in 1 value
)");
static_assert(pt::diff<megatron, megatron>() == "no difference\n");
static_assert(pt::diff<megatron, sharded>().substr(0, 53) ==
              "schedule: BP, MP -> BP, MP, Z3\nall_gather: 0 -> 2\nbyt");

// The tactic that settles a conflict is found at compile time too.
constexpr auto torn = [] {
  return pt::partition(
      traced(), mesh,
      pt::schedule(pt::amalgamated("both", pt::manual("B", {{"x", 0}, {"w1", 1}}))));
};
constexpr bool settled() {
  const auto p = torn();
  return pt::settle(p, p.core.conflicts[0]) ==
         R"(would be settled by manual("B", {{"x", 0}}) as an earlier tactic (#tile<0>), )"
         R"(or by manual("B", {{"w1", 1}}) as an earlier tactic (#tile<1>))";
}
static_assert(settled());

// A text of more than 8 KiB is made again with a larger buffer.
constexpr auto repeated = [] {
  const auto f = pt::trace(
      [](auto x, auto w) {
        auto y = matmul(x, w);
        for (int i = 1; i < 90; ++i) y = matmul(y, w);
        return y;
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
  constexpr auto columns = pt::manual("B", {{"w", 1}}, "columns");
  return pt::partition(f, mesh, pt::schedule(BP, columns), {.passes = {.share_gathers = false}});
};
static_assert(pt::check<repeated>.collectives == pt::collectives{.all_gather = 90});
static_assert(pt::explain<repeated>().size() > 8192);
static_assert(pt::explain<repeated>().ends_with(
    "  all             x90  17280 bytes\nmessages along \"B\" 270\n"));
