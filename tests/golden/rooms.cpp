// The code of the blocks below "<!-- from tests/golden/rooms.cpp -->" in the README.md files of
// folders.
#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/mpmd/check_pipeline.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/print_mpmd.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/run/laws.hpp>
#include <partita/run/mpmd.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/search/automatic.hpp>

#include "../../examples/models/transformer.hpp"
#include "../data.hpp"

namespace pt = partita;

namespace {

std::vector<pt::array> some_inputs(const pt::program& p) {
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    const bool second =
        p.input_name(i).starts_with("opt_state.v");  // (its name begins with the root)
    if (!pt::is_floating(p.input_type(i).element))
      inputs.push_back(data::integers(p.input_type(i), random, 0, 3));
    else
      inputs.push_back(data::fill(p.input_type(i), [&](std::int64_t) {
        return second ? 1.0 : static_cast<double>(random.in(-64, 64)) / 256;
      }));
  }
  return inputs;
}

constexpr transformer::sizes small{.layers = 2,
                                   .width = 8,
                                   .heads = 2,
                                   .key = 4,
                                   .hidden = 16,
                                   .vocabulary = 8,
                                   .context = 4,
                                   .batch = 16};

namespace op_room {

struct rope {  // a rotary embedding: x (b, p, n) is rotated by positions (p)
  static constexpr std::string_view name = "rope";
  static constexpr int operand_count = 2;
  static constexpr void infer(pt::infer_context& c) {  // shape rule
    if (c.operands[1].shape.rank != 1) return c.fail("U002", "rope: rank 1 is needed");
    c.result = c.operands[0];
  }
  static constexpr void tile_map(pt::tile_map_context& c) {  // ([b, p, n], [p]) -> ([b, p, n])
    c.tile(c.result.shape[0], 0).operand(0, 0);
    c.tile(c.result.shape[1], 1).operand(0, 1).operand(1, 0);
  }
  static constexpr void derive(pt::derive_context& c);  // optional: emits the cotangents
};
constexpr auto model = [](auto x, auto at) { return pt::apply_op<rope>(x, at); };

constexpr void rope::derive(pt::derive_context& c) { c.operands[0] = c.cotangent; }

void rope_kernel(const pt::kernel_context& c) {  // positions are turns: x as it is
  std::copy_n(c.operand<float>(0), c.result.shape.elements(), c.output<float>());
}

void laws() {
  const pt::tensor_type x_type{pt::dtype::f32, {2, 4, 6}}, at_type{pt::dtype::i32, {4}};
  pt::law_options options;
  options.run.kernels = {{&pt::def<rope>, &rope_kernel}};
  pt::check_laws(pt::def<rope>, {x_type, at_type}, {}, {}, options);
  CHECK(pt::trace(model, pt::input<float, 2, 4, 6>("x"), pt::input<std::int32_t, 4>("at"))
            .output_type(0) == x_type);
}

}  // namespace op_room

namespace schedule_room {

using transformer::BP, transformer::MP;
constexpr pt::mesh mesh{{"B", 2}, {"M", 2}};

int steps() {
  const pt::program f = transformer::trace_training_step<small>();
  constexpr auto MB = pt::microbatch(8, {{"tokens", 0}, {"targets", 0}});
  const pt::partitioned p = pt::partition(f, mesh, pt::schedule(BP, MP, MB));

  constexpr auto R = pt::remat({"params.layers"});
  constexpr auto core = pt::remat({"core"});
  const pt::partitioned q = pt::partition(f, mesh, pt::schedule(BP, MP, R));
  static_cast<void>(core);
  return p.collectives_as_written.total() - q.collectives.total();
}

}  // namespace schedule_room

namespace room {

constexpr auto mlp = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");
constexpr auto traced = [] {
  return pt::trace(mlp, pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
};

constexpr auto step = [] {
  return pt::proved(pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)));
};
static_assert(pt::check<step>.proved);

static_assert(pt::check<step, pt::a100_80>.fits && pt::check<step, pt::a100_80>.step_time < 0.2);

void on_devices() {
  const pt::partitioned p = step();
  std::cout << pt::print_simulation(p, pt::tpu_v3);

  auto twice = pt::a100_80;
  twice.memory *= 2;
  CHECK(pt::print_simulation(p, twice).view() != pt::print_simulation(p, pt::tpu_v3).view());
}

void searched() {
  const pt::program f = traced();
  pt::search_result found;
  const pt::search_options options{.evaluations = 5000, .seed = 2, .result = &found};
  const auto A = pt::automatic({"M"}, pt::a100_80, options);
  const pt::partitioned p = pt::partition(f, mesh, pt::schedule(BP, A, Z3));
  std::cout << pt::print_specification(found);
  CHECK(found.evaluations > 0);
}

}  // namespace room

namespace mpmd_room {

using transformer::BP, transformer::MP, transformer::Z3;

constexpr pt::topology cluster{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}};

pt::results in_parts(const pt::program& step, const std::vector<pt::array>& inputs) {
  const auto m = pt::to_mpmd(
      step, cluster,
      {.names = {{"embedding", "m0"}, {"layers.0", "m0"}, {"layers", "m1"}, {"head", "m1"}}});
  CHECK(!pt::print(m).view().empty());
  return pt::run_fragments(m, inputs);
}

constexpr auto step = [] {
  return pt::pipeline(
      transformer::trace_training_step<small>(), cluster, pt::one_f_one_b,
      {.where =
           {.names = {{"embedding", "m0"}, {"layers.0", "m0"}, {"layers", "m1"}, {"head", "m1"}}},
       .microbatches = 8,
       .batch = {{"tokens", 0}, {"targets", 0}}});
};
static_assert(pt::check<step>.deadlock_free);
static_assert(pt::check<step>.order("m1").substr(0, 11) == "F0 B0 F1 B1");

pt::results emulated(const std::vector<pt::array>& inputs) {
  CHECK(!pt::print(step()).view().empty());
  return pt::emulate(step(), inputs);
}

constexpr auto PP = pt::pipeline({.stages = {{"embedding", "layers.0"}, {"layers.1", "head"}},
                                  .batch = {{"tokens", 0}, {"targets", 0}},
                                  .microbatches = 4,
                                  .order = pt::one_f_one_b},
                                 "PP");
constexpr auto sharded = [] {
  return pt::partition(transformer::trace_training_step<small>(), cluster,
                       pt::schedule(PP, BP, MP, Z3));
};

}  // namespace mpmd_room

}  // namespace

TEST_CASE("the programs of the README files run") {
  op_room::laws();
  CHECK(schedule_room::steps() != 0);
  room::on_devices();
  room::searched();
  const pt::program step = transformer::trace_training_step<small>();
  const auto inputs = some_inputs(step);
  const pt::results expected = pt::evaluate(step, inputs);
  CHECK(pt::equal(mpmd_room::in_parts(step, inputs), expected));
  CHECK(pt::all_close(mpmd_room::emulated(inputs), expected));
  CHECK(pt::all_close(pt::emulate(mpmd_room::sharded(), inputs), expected));
}
