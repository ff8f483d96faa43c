// Attention over a sharded sequence. In Ulysses attention, queries, keys, values and the result
// change between blocks of the sequence and heads, in both passes: eight all-to-alls. In ring
// attention, keys and values go around a ring.
#include "../../examples/models/small/long_attention.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::long_attention;

constexpr auto partitioned = [] {
  return pt::partition(traced(), mesh, pt::schedule(ulysses, SP));
};

// Three before attention and one after it, and the same in the derivative. Gradients of the five
// parameters and the loss are summed over the sequence.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 6, .all_to_all = 8});

constexpr auto around = [] {
  return pt::partition(traced(), mesh, pt::schedule(queries, SP),
                       {.passes = {.share_gathers = true}});
};
// Each device has its rows of queries and needs all keys and values, which are gathered once; their
// cotangents are scattered.
static_assert(pt::check<around>.collectives ==
              pt::collectives{.all_gather = 2, .all_reduce = 6, .reduce_scatter = 2});

}  // namespace

TEST_CASE("Ulysses attention takes eight all-to-alls") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  CHECK(attention.emulated(mesh, ulysses, SP) == pt::check<partitioned>.collectives);
}
TEST_CASE("ring attention: keys, values and their cotangents go around a ring") {
  const models::source attention(traced(), [](std::string_view) { return 1; });
  CHECK(attention.rewritten({.share_gathers = true}, mesh, queries, SP).collectives ==
        pt::check<around>.collectives);
  // On slow links, overlapped with products, blocks go around a ring of four: keys and values
  // forward and for the derivative, and two cotangents.
  CHECK(attention.overlapped(data::slow_links(1e7), mesh, queries, SP).collectives ==
        pt::collectives{.all_reduce = 6, .permute = 6 * 3});
}
