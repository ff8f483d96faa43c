// The paper's models at full size: their lowered programs are proved.
#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

#include "../../examples/models/gns.hpp"
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/serving.hpp"
#include "../../examples/models/unet.hpp"
#include "../data.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh paper_mesh{{"batch", 8}, {"model", 4}};

void check_proved(const pt::partitioned& p) {
  const pt::verdict v = pt::prove(p);
  CHECK_MESSAGE(v.proved, data::str(v.error.message));
}
void check_shrunk(const pt::partitioned& p) {
  const pt::verdict v = pt::prove(p, {.most_shrunk_to_confirm = 25'000'000});
  CHECK(v.method == pt::proof_method::claims);
  CHECK(v.confirmed_by_shrinking);
}

}  // namespace

TEST_CASE("models: the transformer's training step, with passes, is proved") {
  using namespace paper::transformers;
  const pt::program step = paper::trace_training_step(paper::T32);
  const pt::passes passes{.combine_below = 1 << 20, .place = true, .share_gathers = true};
  check_proved(pt::partition(step, paper_mesh, pt::schedule()));
  check_proved(pt::partition(step, paper_mesh, pt::schedule(BP, MP, Z2)));
  check_proved(pt::partition(step, paper_mesh, pt::schedule(BP, MP, Z3, EMB)));
  check_proved(pt::partition(step, paper_mesh, pt::schedule(BP, MP, Z3), {.passes = passes}));
}

TEST_CASE("models: inference is proved") {
  using namespace paper::serving;
  check_proved(
      pt::partition(paper::trace_serving(paper::IT32), paper_mesh, pt::schedule(BP, MQ, MP)));
}

TEST_CASE("models: diffusion is proved") {
  using namespace paper::diffusion;
  check_proved(
      pt::partition(paper::trace_training_step(paper::UNet), paper_mesh, pt::schedule(BP, Z3)));
}

TEST_CASE("models: a graph network is proved") {
  check_proved(pt::partition(paper::trace_training_step(paper::GNS), paper_mesh,
                             pt::schedule(paper::graphs::ES)));
}
TEST_CASE("models: shrinking alone proves models at full size") {
  using namespace paper::transformers;
  const pt::program step = paper::trace_training_step(paper::T32);
  check_shrunk(pt::partition(step, paper_mesh, pt::schedule(BP, MP)));
  check_shrunk(pt::partition(step, paper_mesh, pt::schedule(BP, MP, Z3)));
  check_shrunk(pt::partition(paper::trace_training_step(paper::GNS), paper_mesh,
                             pt::schedule(paper::graphs::ES)));
}
