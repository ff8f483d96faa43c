// Inputs that refute wrong pipelines.
#include <doctest/doctest.h>

#include <string>

#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/run/refute_pipeline.hpp>

#include "../data.hpp"
#include "../two_stages.hpp"

namespace pt = partita;
using namespace two_stages;
using data::str;

namespace {

/// Removes the first collective of a kind that a unit runs.
bool drop_collective(pt::pipelined& p, pt::collective::kind_type kind) {
  for (auto& u : p.units)
    for (pt::op_id o = 0; o < u.device.local.op_count(); ++o) {
      pt::program& f = u.device.local;
      if (!f.op(o).def->collective || f.collective_of(o).kind != kind) continue;
      for (auto& v : f.operand_list)
        if (v == f.op(o).result) v = f.operand(o, 0);
      for (auto& out : f.outputs)
        if (out.value == f.op(o).result) out.value = f.operand(o, 0);
      return true;
    }
  return false;
}

}  // namespace

TEST_CASE("refute: right pipelines are not refuted") {
  const pt::pipelined p = partitioned({}, PP, BP, MP, Z3);
  for (const pt::pipelined& each :
       {p, pt::rematerialized(p), partitioned({}, PP), pt::merged(p, {{{"back"}, {"back", 1}}})}) {
    const pt::refutation r = pt::refute(each);
    CHECK_MESSAGE(!r.refuted, str(r.error.message));
    CHECK_MESSAGE(!r.error, str(r.error.message));
    CHECK(pt::prove_or_refute(each).kind == pt::verdict_kind::proved);
  }
}

TEST_CASE("refute: mistakes in pipelines are refuted") {
  const pt::pipelined p = partitioned({}, PP, BP, MP);
  pt::pipelined wrong = p;  // devices have terms of a sum where they should have the sum
  REQUIRE(drop_collective(wrong, pt::collective::all_reduce));
  const pt::judgement j = pt::prove_or_refute(wrong);
  CHECK(j.kind == pt::verdict_kind::refuted);
  CHECK_MESSAGE(str(j.error.message).starts_with("Q005 refute: output \""), str(j.error.message));
  CHECK_MESSAGE(str(j.error.message).find("for the inputs of seed 0 (Q") != std::string::npos,
                str(j.error.message));
  // The right pipeline is right on the inputs that it names.
  const auto x = pt::inputs_of_seed(p.original, j.inputs.seed);
  CHECK(pt::max_difference(pt::evaluate(p.original, x).arrays()[0], pt::emulate(p, x).arrays()[0]) <
        1e-4);

  wrong = p;  // another step than the one that is given
  const auto other = pt::trace(
      [](const auto& a, const auto& w1, const auto& w2) {
        const auto [loss, next1, unused] = model(a, w1, w2);
        return std::tuple{loss, next1, pt::output("w2", w2)};
      },
      pt::input<float, 32, 8>("x"), pt::input<float, 8, 8>("w1"), pt::input<float, 8, 8>("w2"));
  CHECK(pt::refute(other, p).refuted);

  wrong = p;  // an accumulator that starts again in each call
  bool changed = false;
  for (auto& u : wrong.units)
    if (!u.sums.empty() && !changed) {
      pt::program& f = u.device.local;
      const auto out = f.outputs.back().value;
      f.operand_list[f.op(f.producer(out)).operand_begin] = f.operand(f.producer(out), 1);
      changed = true;
    }
  REQUIRE(changed);
  CHECK(pt::prove_or_refute(wrong).kind == pt::verdict_kind::refuted);

  wrong = p;  // an inconsistent pipeline is not run
  wrong.order.pop_back();
  wrong.lists.meshes[0].pop_back();
  const pt::judgement broken = pt::prove_or_refute(wrong);
  CHECK(broken.kind == pt::verdict_kind::not_proved);
  CHECK_MESSAGE(str(broken.error.message).starts_with("Q01"), str(broken.error.message));

  const pt::refutation large = pt::refute(p, {.most_work = 1000});
  CHECK_MESSAGE(str(large.error.message).starts_with("Q010 refute: not known: a run takes "),
                str(large.error.message));
}

TEST_CASE("refute: a large value that is added and subtracted again is a matter of rounding") {
  // Each mesh adds its own part of the sum first, so that the large values cancel there.
  const auto step = [](const auto& x, const auto& w) {
    const auto h = pt::named("front", [](const auto& a) { return a * 2.f; })(x);
    const auto large =
        pt::named("back", [](const auto& a, const auto& b) { return matmul(a, b) * 1e13f; })(x, w);
    return pt::output("y", h + large + -large);
  };
  const pt::program f = pt::trace(step, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  const pt::pipelined p = pt::partition(f, cluster,
                                        pt::schedule(pt::pipeline({.stages = {{"front"}, {"back"}},
                                                                   .batch = {{"x", 0}},
                                                                   .microbatches = 2,
                                                                   .order = pt::gpipe,
                                                                   .infer_transfers = true})));
  const pt::refutation r = pt::refute(p);
  CHECK_MESSAGE(!r.refuted, str(r.error.message));
}
