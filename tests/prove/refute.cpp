// Inputs that refute wrong programs.
#include "practice.hpp"

#include <doctest/doctest.h>

#include <partita/run/refute.hpp>

#include "../two_layers.hpp"

namespace pt = partita;
using namespace practice;
using data::str;

TEST_CASE("refute: mistakes of practice are refuted, right programs are not") {
  for (const practice_case& c : all_cases()) {
    const written right = read(c, c.local);
    const pt::refutation none = pt::refute(right);
    CHECK_MESSAGE(!none.refuted, c.name, ": ", str(none.error.message));
    CHECK_MESSAGE(!none.error, c.name, ": ", str(none.error.message));
    for (const mistake& m : c.mistakes) {
      const written wrong = read(c, with(m, c.local));
      const pt::judgement j = pt::prove_or_refute(wrong);
      CHECK_MESSAGE(j.kind == pt::verdict_kind::refuted, c.name, ": ", m.name, ": ",
                    str(j.error.message));
    }
  }
}

TEST_CASE("refute: roundings inside loops do not refute") {
  // Each device adds two of four terms: ((h + l) - l) + k is (h + l) + (k - l) there.
  const auto step = [](const auto& x, const auto& signs) {
    const auto body = [&](const auto&, const auto& h) {
      const auto terms = pt::stack<0>(h, h * 1e13f, h * -1e13f, h * 0.7f);
      return sum<0>(terms + signs * 0.f);
    };
    return pt::output("y", pt::for_loop(0, 2, body, x));
  };
  const auto p =
      pt::partition(pt::trace(step, pt::input<float, 8>("x"), pt::input<float, 4, 8>("signs")),
                    pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"signs", 0}})));
  CHECK(p.collectives.total() > 0);
  const pt::refutation r = pt::refute(p);
  CHECK_MESSAGE(!r.refuted, str(r.error.message));
}

namespace {
struct greatest_of_two {
  static constexpr float identity = -100;
  static constexpr bool commutes = true;
  constexpr auto operator()(auto a, auto b) const { return pt::maximum(a, b); }
};
}  // namespace
TEST_CASE("refute: steps of folds that name their type run in f64, too") {
  pt::program f = pt::trace([](auto z) { return pt::output("y", pt::fold<greatest_of_two, 0>(z)); },
                            pt::input<float, 64>("z"));
  // A step that uses "type of input 0" now uses "f32": the same function.
  const pt::op_node& fold = f.ops[f.producer(f.outputs[0].value)];
  REQUIRE(fold.def == &pt::def<pt::op::fold>);
  std::int64_t& type = f.attr_list[fold.attr_begin + fold.attr_count - 5];
  REQUIRE(type == -1);
  type = static_cast<std::int64_t>(pt::dtype::f32);
  REQUIRE(str(pt::verify(f).message) == "");
  pt::program wide = f;
  pt::run_detail::widen(wide);
  CHECK(str(pt::verify(wide).message) == "");
  const auto p = pt::partition(f, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"z", 0}})));
  const pt::refutation r = pt::refute(p);
  CHECK_MESSAGE(!r.refuted, str(r.error.message));
  CHECK_MESSAGE(!r.error, str(r.error.message));
}

TEST_CASE("refute: the message names inputs and results") {
  using namespace two_layers;
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP));
  pt::device_program d = p.device;
  CHECK(pt::prove_or_refute(p.source, d).kind == pt::verdict_kind::proved);
  pt::value_id& result = d.local.outputs[0].value;  // without the all_reduce
  result = d.local.operand(d.local.producer(result), 0);
  const pt::judgement j = pt::prove_or_refute(p.source, d);
  CHECK(j.kind == pt::verdict_kind::refuted);
  CHECK_MESSAGE(
      str(j.error.message).starts_with("Q005 refute: output \"result\", element [0, 0], is "),
      str(j.error.message));
  CHECK_MESSAGE(str(j.error.message).find("for the inputs of seed 0 (Q004 prove: output") !=
                    std::string::npos,
                str(j.error.message));
  // The inputs in the message show it, too.
  const auto x = pt::inputs_of_seed(p.source, j.inputs.seed);
  CHECK(pt::max_difference(pt::evaluate(p.source, x).arrays()[0],
                           pt::emulate(p.device, x).arrays()[0]) < 1e-5);
  const pt::refutation large = pt::refute(p.source, d, {.most_work = 1000});
  CHECK(!large.refuted);
  CHECK_MESSAGE(str(large.error.message).starts_with("Q010 refute: not known: a run takes "),
                str(large.error.message));
  const pt::judgement open = pt::prove_or_refute(p.source, d, {}, {.most_work = 1000});
  CHECK(open.kind == pt::verdict_kind::not_proved);
}
