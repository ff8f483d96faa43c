// Attention over a sequence in parts. Queries, keys, values and what is attended change between
// parts of the sequence and heads, in both passes: eight all-to-alls. Or keys and values go around.
#include "../../examples/models/small/long_attention.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::long_attention;

constexpr auto partitioned = [] {
  return pt::partition(traced(), mesh, pt::schedule(ulysses, SP));
};

// Three in front of attention and one behind, again in the derivative; gradients of the five
// parameters and the loss are summed over the sequence.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 6, .all_to_all = 8});

constexpr auto around = [] {
  return pt::partition(traced(), mesh, pt::schedule(queries, SP),
                       {.passes = {.share_gathers = true}});
};
// Each device has its rows of queries, and needs all keys and values: gathered once, and cotangents
// scattered.
static_assert(pt::check<around>.collectives ==
              pt::collectives{.all_gather = 2, .all_reduce = 6, .reduce_scatter = 2});

}  // namespace

TEST_CASE("Ulysses attention: eight all-to-alls") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  CHECK(attention.emulated(mesh, ulysses, SP) == pt::check<partitioned>.collectives);
}
TEST_CASE("ring attention: keys and values go around, and their cotangents") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  CHECK(attention.rewritten({.share_gathers = true}, mesh, queries, SP).collectives ==
        pt::check<around>.collectives);
  // Beside products, where links are slow, pieces go around a ring of four: keys and values forward
  // and for the derivative, and two cotangents.
  CHECK(attention.overlapped(data::slow_links(1e7), mesh, queries, SP).collectives ==
        pt::collectives{.all_reduce = 6, .permute = 6 * 3});
}
