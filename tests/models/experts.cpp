// A mixture of experts: tokens move to the device of their expert and return, in both passes. This
// takes four all-to-alls, as in code written by hand.
#include "../../examples/models/small/experts.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::experts;

constexpr auto partitioned = [] { return pt::partition(traced(), mesh, pt::schedule(EP, DP)); };

// sent -> arrived, made -> back, and the same in the derivative. Gradients of the norm and of the
// router are summed over groups. So are each expert's share and the loss, which contains shares
// times mean probabilities. The gradients of an expert are complete on the expert's device.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 4, .all_to_all = 4});

}  // namespace

TEST_CASE("a mixture of experts takes four all-to-alls, for any order of tactics") {
  const models::source moe(traced(), [](std::string_view) { return 1; });
  const pt::collectives expected{.all_reduce = 4, .all_to_all = 4};
  CHECK(moe.emulated(mesh, EP, DP) == expected);
  // Both tactics at once. (Data parallelism first would slice "arrived" along groups.)
  CHECK(moe.emulated(mesh, pt::amalgamated("both", DP, EP)) == expected);
  // Two axes: groups over both, experts over one.
  const pt::mesh two{{"D", 2}, {"E", 2}};
  const auto both = pt::manual("D", {{"x", 0}, {"y", 0}}, "D");
  const pt::collectives got = moe.emulated(two, both, EP, DP);
  CHECK(got.all_to_all == 4);
  CHECK(got.all_gather == 0);
}
