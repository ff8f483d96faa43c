// Exported pipelines: functions that stages share, donated buffers, and the same as JSON and
// StableHLO.
#include <doctest/doctest.h>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/write_functions.hpp>
#include <partita/report/pipeline_json.hpp>

#include "../exported_check.hpp"
#include "../json.hpp"

namespace exported_tests {

namespace pt = partita;
using data::str;

constexpr std::string_view layer_names[] = {"layer0", "layer1", "layer2", "layer3", "layer4"},
                           mesh_names[] = {"m0", "m1", "m2", "m3", "m4"},
                           weight_names[] = {"w0", "w1", "w2", "w3", "w4"};

/// Layers y = tanh(x w) with their own weights, one per stage; the weights are next states.
inline pt::program equal_layers(int count) {
  constexpr std::int64_t rows[] = {0}, columns[] = {1}, both[] = {0, 1};
  pt::builder b;
  pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {8, 4}});
  pt::vec<pt::value_id> w;
  for (int i = 0; i < count; ++i)
    w.push_back(pt::ops::parameter(b, weight_names[i], {pt::dtype::f32, {4, 4}}));
  for (int i = 0; i < count; ++i) {
    b.enter_scope(layer_names[i]);
    x = pt::ops::tanh(b, pt::ops::dot_general(b, x, w[i], {{}, {}, columns, rows}));
    b.leave_scope();
  }
  const pt::value_id loss = pt::ops::reduce(b, x, pt::combiner::add, both);
  const pt::vec<pt::value_id> g = pt::dsl_detail::reverse(b, loss, w);
  for (int i = 0; i < count; ++i)
    b.p.outputs.push_back({pt::ops::subtract(b, w[i], g[i]), b.p.intern(weight_names[i])});
  return std::move(b.p);
}
pt::pipelined in_stages(const pt::topology& t, int microbatches = 4) {
  pt::pipeline_options options{.microbatches = microbatches, .batch = {{"x", 0}}};
  for (int i = 0; i < t.count(); ++i) options.where.names.push_back({layer_names[i], t.name(i), i});
  return pt::pipeline(equal_layers(t.count()), t, pt::one_f_one_b, options);
}
pt::topology equal_meshes(int count) {
  pt::topology t;
  for (int i = 0; i < count; ++i) t.push_back({mesh_names[i], {{"B", 2}}});
  return t;
}
std::vector<std::string> names(const pt::pipelined& p, const pt::exported_pipeline& e) {
  const pt::mpmd_detail::exported_names all(p, e);
  std::vector<std::string> out;
  for (int f = 0; f < static_cast<int>(e.functions.size()); ++f)
    out.push_back(str(all.function(f)));
  return out;
}
bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("equal stages share their functions") {
  const pt::pipelined p = in_stages(equal_meshes(5));
  REQUIRE(!p.error);
  const auto e = pt::export_calls(p);
  CHECK(names(p, e) == std::vector<std::string>{
                           "p0_m0_update.main", "p1_stage0to4_fwd_calls0to3.main",
                           "p2_stage4_bwd_calls0to3.main", "p3_stage1to3_bwd_calls0to3.main",
                           "p4_stage0_bwd_calls0to3.main", "p5_m4_m3_m2_and_2_more_update.main"});
  CHECK(exported_check::fault_of(p) == "");
}
TEST_CASE("stages of other shapes or devices have functions of their own") {
  pt::topology t = equal_meshes(2);
  t.push_back({"m2", {{"B", 4}}});
  t.push_back({"m3", {{"B", 2}}, pt::a100_80});
  const pt::pipelined p = in_stages(t);
  REQUIRE(!p.error);
  const auto all = names(p, pt::export_calls(p));
  CHECK(all[1] == "p1_stage0_1_fwd_calls0to3.main");
  CHECK(all[2] == "p2_stage2_fwd_calls0to3.main");
  CHECK(all[3] == "p3_stage3_fwd_calls0to3.main");
}
TEST_CASE("exported calls donate accumulators, residuals, received values and states") {
  const pt::pipelined p = in_stages(equal_meshes(3));
  const auto e = pt::export_calls(p);
  for (const pt::pipeline_step& s : e.steps) {
    if (!s.is_call()) continue;
    const pt::pipeline_function& f = e.functions[s.function];
    for (std::size_t k = 0; k < s.takes.size(); ++k) {
      const pt::call_operand& each = s.takes[k];
      const pt::pipeline_buffer& b = e.buffers[each.buffer];
      if (b.accumulates) CHECK(f.donated[k] == 1);
      if (b.accumulates && s.microbatch >= 0)
        CHECK(f.alias[k] == static_cast<int>(s.gives.size()) - 1);
      if (b.is_argument && s.microbatch >= 0) CHECK(f.donated[k] == 0);
      if (b.is_argument && s.takes.size() == 2 && s.microbatch < 0) CHECK(f.alias[k] == 0);
    }
  }
  pt::exported_pipeline spoilt = e;  // the operands of each call are gone after it
  for (auto& f : spoilt.functions)
    for (std::size_t k = 0; k < f.donated.size(); ++k) f.donated[k] = 1;
  CHECK(has(exported_check::checker(p, spoilt).run(), "donates"));
  pt::exported_pipeline lost = e;
  lost.steps[0].reserved += 4;
  CHECK(has(exported_check::checker(p, lost).run(), "reserves"));
}
TEST_CASE("exported pipelines convert to JSON and to modules") {
  const pt::pipelined p = in_stages(equal_meshes(2));
  const auto e = pt::export_calls(p);
  const std::string json = str(pt::pipeline_json(p, e));
  CHECK(json_checker(json).run() == "");
  CHECK(has(json, R"({"name": "w0", "element": "f32", "shape": [4, 4], "buffer": )"));
  CHECK(has(json, R"("starts_as_identity_of": "add")"));
  for (int f = 0; f < static_cast<int>(e.functions.size()); ++f) {
    const std::string module = str(pt::write_stablehlo(p, e, f));
    CHECK(has(module, "mhlo.num_replicas = 2 : i32"));
    for (const int alias : e.functions[f].alias)
      if (alias >= 0)
        CHECK(has(module, "tf.aliasing_output = " + std::to_string(alias) + " : i32"));
  }
}
TEST_CASE("a pipeline that cannot be exported is refused with the reason") {
  pt::pipelined p;
  p.error.record("O122", "pipeline: a mistake");
  CHECK(str(pt::pipeline_json(p)) == "error: O122 pipeline: a mistake\n");
  CHECK(str(pt::print_calls(p)) == "error: O122 pipeline: a mistake\n");
  CHECK(str(pt::write_stablehlo(p, pt::export_calls(p), 0)) == "error: O122 pipeline: a mistake\n");
}

}  // namespace exported_tests
