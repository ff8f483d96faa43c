// UNet at a small size: every schedule computes the results of the source; its collectives follow
// from the number of parameters.
#include "../../examples/models/unet.hpp"
#include "models.hpp"

namespace pt = partita;

namespace {

/// True for parameters that are operands of products and are needed again in the backward pass. The
/// first layers are not: no op before them has a gradient.
bool needed_twice(std::string_view name) {
  if (name == "params.input.weights" || name == "params.time.0.weights") return false;
  for (std::string_view each :
       {".weights", ".shortcut.0", ".queries", ".keys", ".values", ".attended"})
    if (name.ends_with(each)) return true;
  return false;
}

}  // namespace

TEST_CASE("UNet, small: emulated equals source, and collectives by number of parameters") {
  using namespace paper::diffusion;
  const models::source step(paper::trace_training_step({.batch = 4,
                                                        .height = 8,
                                                        .width = 4,
                                                        .channels = 3,
                                                        .base = 16,
                                                        .blocks = 1,
                                                        .pairs = 1,
                                                        .heads = 2}),
                            [](std::string_view) { return 1; });
  int parameters = 0, twice = 0;
  for (int i = 0; i < step.program().input_count(); ++i) {
    const std::string_view name = step.program().input_name(i);
    parameters += name.starts_with("params.");
    twice += name.starts_with("params.") && needed_twice(name);
  }
  const int sharded = parameters - 1;  // the last bias has three elements
  for (const int devices : {2, 4}) {
    CAPTURE(devices);
    const pt::mesh mesh{{"batch", devices}, {"model", 2}};
    CHECK(step.emulated(mesh, BP) == pt::collectives{.all_reduce = parameters + 1});
    CHECK(step.emulated(mesh, BP, Z2) ==
          pt::collectives{.all_gather = sharded, .all_reduce = 2, .reduce_scatter = sharded});
    CHECK(step.emulated(mesh, BP, Z3) == pt::collectives{.all_gather = sharded + twice,
                                                         .all_reduce = 2,
                                                         .reduce_scatter = sharded});
    step.emulated(mesh, MP);
    step.emulated(mesh, BP, MP, Z3);
  }
  CHECK(step.emulated({{"batch", 1}, {"model", 1}}, BP, MP, Z3) == pt::collectives{});
  const auto rows = step.emulated({{"batch", 2}, {"space", 2}}, BP, space);
  CHECK(rows.permute > 0);
}

TEST_CASE("UNet has the 502 parameter tensors that Table 2 states") {
  const pt::program step = paper::trace_training_step(paper::UNet);
  int parameters = 0;
  for (int i = 0; i < step.input_count(); ++i)
    parameters += step.input_name(i).starts_with("params.");
  CHECK(parameters == 502);
}

TEST_CASE("UNet with sharded image rows sends borders; attention gathers all positions") {
  using namespace paper::diffusion;
  const pt::partitioned p = pt::partition(paper::trace_training_step(paper::UNet),
                                          {{"batch", 8}, {"space", 4}}, pt::schedule(BP, space));
  CHECK(p.collectives.all_gather == 2);
  // Two per convolution for its operand, which also serve the gradient of its weights, and two for
  // its cotangent.
  CHECK(p.collectives.permute == 386);
}
