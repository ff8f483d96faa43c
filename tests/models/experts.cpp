// A mixture of experts: tokens go to the device of their expert and come back, in both passes: four
// all-to-alls, as written by hand.
#include "../../examples/models/small/experts.hpp"

#include "models.hpp"

namespace {

namespace pt = partita;
using namespace small::experts;

constexpr auto partitioned = [] { return pt::partition(traced(), mesh, pt::schedule(EP, DP)); };

// sent -> arrived, made -> back, and the same way back in the derivative. The gradients of the norm
// and of the router are summed over groups; so are the share of each expert and the loss, of which
// shares times mean chances are a part. Experts' gradients are whole where the experts are.
static_assert(pt::check<partitioned>.collectives ==
              pt::collectives{.all_reduce = 4, .all_to_all = 4});

}  // namespace

TEST_CASE("a mixture of experts: four all-to-alls, in any order of tactics") {
  const models::source moe(traced(), [](std::string_view) { return 1; });
  const pt::collectives expected{.all_reduce = 4, .all_to_all = 4};
  CHECK(moe.emulated(mesh, EP, DP) == expected);
  // All at once. (Data parallelism first would slice "arrived" along groups.)
  CHECK(moe.emulated(mesh, pt::amalgamated("both", DP, EP)) == expected);
  // Two axes: groups over both, experts over one.
  const pt::mesh two{{"D", 2}, {"E", 2}};
  const auto both = pt::manual("D", {{"x", 0}, {"y", 0}}, "D");
  const pt::collectives got = moe.emulated(two, both, EP, DP);
  CHECK(got.all_to_all == 4);
  CHECK(got.all_gather == 0);
}
