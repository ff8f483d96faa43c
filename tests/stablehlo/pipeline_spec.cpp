// Pipelines as text: systems of several meshes, the pipeline line of a schedule, and the output of
// the program partita.
#include <doctest/doctest.h>

#include <filesystem>
#include <string>

#include <partita/report/pipeline_sweep.hpp>
#include <partita/spec/designs.hpp>
#include <partita/stablehlo/read.hpp>

#include "../../examples/partita/pipeline.hpp"
#include "../data.hpp"

namespace pt = partita;

namespace {

std::string example(const std::string& kind) {
  return pt::run_detail::read_file(PARTITA_SOURCE_DIR "/examples/partita/layers." + kind);
}
/// A training step as JAX writes it: embedding, layers_0, layers_1, head, loss.
pt::program layers() { return pt::read_stablehlo(example("mlir")); }

/// Returns the first error of a schedule, or of applying it to the example.
std::string pipeline_mistake(const std::string& schedule, const std::string& system) {
  const auto s = pt::read_schedule(schedule);
  const auto on = pt::read_system(system);
  for (const pt::failure& f :
       {s.error, on.error, s.error || on.error ? pt::failure() : pt::validate(s, on)})
    if (f) return std::string(f.message.view());
  try {
    const pt::program p = layers();
    pipelines::session(p, s, on).partition();
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}
std::string pipeline_line(const std::string& options) {
  return "PP: pipeline {stages: {embedding, layers_0} {layers_1, head, loss}, batch: {x: 0, y: 0}" +
         options + "}";
}
std::string meshes_mistake(std::string_view system) {
  return std::string(pt::read_system(system).error.message.view());
}
/// Returns small arguments, on which tanh is not flat.
std::vector<pt::array> small_arguments(const pt::program& p) {
  std::vector<pt::array> inputs;
  data::random r{3};
  for (int i = 0; i < p.input_count(); ++i)
    inputs.push_back(data::fill(
        p.input_type(i), [&](std::int64_t) { return static_cast<double>(r.in(-4, 4)) / 16; }));
  return inputs;
}
constexpr const char* two_meshes = "mesh m0\naxis B 4\naxis M 2\nmesh m1\naxis B 2\naxis M 2\n";

}  // namespace

TEST_CASE("a module of JAX in two stages, by its specification") {
  const pt::program p = layers();
  const auto schedule = pt::read_schedule(example("spec"));
  const auto system = pt::read_system(example("conf"));
  REQUIRE(!schedule.error);
  REQUIRE(!system.error);
  pipelines::session s(p, schedule, system);
  const pt::pipelined made = s.partition();
  CHECK(data::str(pt::report(made)) ==
        R"(after PP:
  actions:
  collectives: all_gather 0, all_reduce 0, reduce_scatter 0, all_to_all 0
  sharded inputs:
    none new
  conflicts: 0
after BP:
  actions: tile<%x, 0, "B">; tile<%y, 0, "B">; propagate;
  collectives: all_gather 0, all_reduce 7, reduce_scatter 0, all_to_all 0
  sharded inputs:
    x@m0 [{"B"}, {}] : tensor<32x16xf32> -> tensor<8x16xf32>
    y@m1 [{"B"}, {}] : tensor<32x16xf32> -> tensor<16x16xf32>
  conflicts: 0
after MP:
  actions: tile<%params.layers.0.up, 1, "M">; tile<%params.layers.1.up, 1, "M">; propagate;
  collectives: all_gather 0, all_reduce 23, reduce_scatter 0, all_to_all 0
  as written:  all_gather 0, all_reduce 11, reduce_scatter 0, all_to_all 0
  sharded inputs:
    params.layers.0.down@m0 [{"M"}, {}] : tensor<64x32xf32> -> tensor<32x32xf32>
    params.layers.0.up@m0 [{}, {"M"}] : tensor<32x64xf32> -> tensor<32x32xf32>
    params.layers.1.down@m1 [{"M"}, {}] : tensor<64x32xf32> -> tensor<32x32xf32>
    params.layers.1.up@m1 [{}, {"M"}] : tensor<32x64xf32> -> tensor<32x32xf32>
  conflicts: 0
in all: 2 stages on 2 meshes, 4 microbatches, 9 functions, 8 messages of 8192 bytes
m0 {"B":4, "M":2} of A100-80:
  stages: 0; at most 2 microbatches in flight
  runs: F0 F1 B0 F2 B1 F3 B2 B3
  collectives: all_gather 0, all_reduce 11, reduce_scatter 0, all_to_all 0
  per device: arguments 10752 bytes, peak 31232 bytes, in update
m1 {"B":2, "M":2} of A100-80:
  stages: 1; at most 1 microbatch in flight
  runs: F0 B0 F1 B1 F2 B2 F3 B3
  collectives: all_gather 0, all_reduce 12, reduce_scatter 0, all_to_all 0
  per device: arguments 11264 bytes, peak 31748 bytes, in update
)");
  const auto inputs = small_arguments(p);
  CHECK(pt::all_close(pt::emulate(made, inputs), pt::evaluate(p, inputs)));
  // Before the tactics that shard, a device needs more memory.
  CHECK(pt::pipeline_figures(s.after(1)).peak_bytes > pt::pipeline_figures(made).peak_bytes);
  CHECK(s.after(0).collectives.total() == 0);
  const std::string simulated = data::str(pipelines::simulation_report(s, made));
  CHECK(simulated.find("\n  MP ") != std::string::npos);
  CHECK(simulated.find("\nm1 | ") != std::string::npos);
}

TEST_CASE("the forms of a pipeline line mean the same") {
  const pt::program p = layers();
  const auto system = pt::read_system(example("conf"));
  pipelines::session s(p, pt::read_schedule(example("spec")), system);
  const pt::pipelined made = s.partition();
  const std::string json = pipelines::json_report(s, made);
  for (const std::string_view part :
       {"{ \"name\": \"MP\", \"figures\": {", "\"messages\": 8", "\"in_flight\": 2",
        "\"order\": \"F0 F1 B0 F2 B1 F3 B2 B3\"", "\"step_seconds\": 0.000",
        "{\"from\": \"m0\", \"to\": \"m1\", \"type\": \"tensor<8x32xf32>\", \"times\": 4}",
        "{\"name\": \"y\", \"type\": \"tensor<32x16xf32>\", \"local\": \"tensor<16x16xf32>\", "
        "\"shape\": [32, 16], \"padded_shape\": [32, 16], \"dims\": [[\"B\"], []], \"mesh\": "
        "\"m1\"}"})
    CHECK_MESSAGE(json.find(part) != std::string::npos, std::string(part));
  const std::string csv = pipelines::csv_report(made);
  CHECK(csv.find("all_reduce,\"\"\"M\"\"\",\"tensor<2x32xf32>\",256,\"m0\",\"forward of stage 0 "
                 "(\"\"embedding\"\", \"\"layers_0\"\")\",4\n") != std::string::npos);
  CHECK(data::str(pipelines::text_in_form(p, made, "calls")).find("%layers_0.add#3@m1 = copy ") !=
        std::string::npos);
  CHECK(data::str(pipelines::trace(made, s.simulated(made))).find("\"B3\"") != std::string::npos);
  CHECK_THROWS_WITH(pipelines::text_in_form(p, made, "devices"),
                    "option --emit: \"devices\" is not allowed; give local, source, core, text, "
                    "device, calls or json");
  const std::string folder = "pipeline_dump_test";
  pipelines::dump(s, p, made, folder);
  for (const char* name : {"0-source.txt", "1-PP.txt", "2-BP.json", "3-MP.txt", "calls.txt"})
    CHECK(!pt::run_detail::read_file(folder + '/' + name).empty());
  CHECK(pt::run_detail::read_file(folder + "/calls.json").starts_with("{\"microbatches\": 4"));
  CHECK(pt::run_detail::read_file(folder + "/calls/2.mlir").find("stablehlo.all_reduce") !=
        std::string::npos);
  std::filesystem::remove_all(folder);
  options o;
  pipelines::refuse_options(o);
  o.environment = true;
  CHECK_THROWS_WITH(pipelines::refuse_options(o),
                    "O142 option --environment is for programs on one mesh, and the system has "
                    "several; leave it out, or give a system of one");
  o = {};
  o.emit = "annotated";
  CHECK_THROWS_WITH(pipelines::refuse_options(o),
                    "O142 option --emit annotated is for programs on one mesh: a module with "
                    "shardings has one, and the system has several; give --emit local, a module "
                    "for each function, or a system of one");
  const std::string modules = data::str(pipelines::text_in_form(p, made, "local"));
  const pt::exported_pipeline e = pt::export_calls(made);
  std::size_t count = 0;
  for (std::size_t at = modules.find("\n  module @\""); at != std::string::npos;
       at = modules.find("\n  module @\"", at + 1))
    ++count;
  CHECK(count == e.functions.size());
  CHECK(data::str(pt::print_peak(made)).find("kept for later calls") != std::string::npos);
}

TEST_CASE("bounds on a pipeline are checked") {
  const pt::program p = layers();
  const auto system = pt::read_system(example("conf"));
  const auto made = pipelines::session(p, pt::read_schedule(example("spec")), system).partition();
  const auto broken = [&](std::string_view bounds) {
    pt::failure f;
    const std::string lines = data::str(pt::broken_bounds(made, pt::read_bounds(bounds), f));
    return f ? std::string(f.message.view()) : lines;
  };
  CHECK(broken(example("check")) == "");
  CHECK(broken("\"m0.all_reduce\" < 11") ==
        "m0.all_reduce is 11; \"m0.all_reduce\" < 11 does not hold\n");
  CHECK(broken("messages <= 7\nm1.peak_bytes <= 40 kB") ==
        "messages is 8; messages <= 7 does not hold\n");
  CHECK(broken("m2.peak_bytes <= 1").starts_with("X008 check: figure \"m2.peak_by"));
}

TEST_CASE("a pipeline line accepts every option") {
  const auto s = pt::read_schedule(
      "pipeline {\n  order: zb_h2, split, fifo, capacity: 3, infer_transfers, keep_gathered, "
      "merge_last, remat, absorb, "
      "microbatches: 8,\n"
      "  batch: {\"a b\": 1},  # the rest\n  stages: {a, \"b.*\"}, {c} {\n d }\n}; propagate");
  REQUIRE_MESSAGE(!s.error, std::string(s.error.message.view()));
  REQUIRE(s.tactics.size() == 2);
  const pt::text_tactic& t = s.tactics[0];
  CHECK(t.is_pipeline());
  CHECK(t.name() == "pipeline");
  CHECK(t.order().name == "zb_h2");
  const pt::topology three{{"x", {{"B", 2}}}, {"y", {{"B", 2}}}, {"z", {{"B", 2}}}};
  const pt::pipeline_options o = t.options(three);
  CHECK(o.microbatches == 8);
  CHECK(o.split);
  CHECK(o.channels.fifo);
  CHECK(o.channels.capacity == 3);
  CHECK(o.where.infer_transfers);
  CHECK(o.keep_gathered);
  CHECK(t.changes().merge_last);
  CHECK(t.changes().remat);
  CHECK(t.changes().absorb);
  REQUIRE(o.where.names.size() == 4);
  CHECK(o.where.names[1].name == "b.*");
  CHECK(o.where.names[3].mesh == "z");
  REQUIRE(o.batch.size() == 1);
  CHECK(o.batch[0].name == "a b");
  CHECK(o.batch[0].dim == 1);
}

TEST_CASE("errors in a pipeline line have line and column") {
  const auto why = [](const std::string& options) {
    return pipeline_mistake(pipeline_line(options), two_meshes);
  };
  CHECK(why(", microbatches: 4, order: gpipe") == "");
  CHECK(why(", order: one_f1b")
            .starts_with("X019 schedule: 1:97: order \"one_f1b\" is unknown; known: gpipe, "));
  CHECK(why(", microbatches: 0") ==
        "X020 schedule: 1:104: 0 is not a number of microbatches; give 1 to 1048576");
  CHECK(
      why(",\ncapacity: 9999999").starts_with("X020 schedule: 2:11: 9999999 is not a number of "));
  CHECK(why(", split, fifo, split") == "X004 schedule: 1:103: option \"split\" is given twice");
  CHECK(why(", bach: {x: 0}")
            .starts_with("X003 schedule: 1:90: option \"bach\" is unknown; known: stages, batch,"));
  CHECK(why(", microbatches 4") == "X001 schedule: 1:103: \":\" is expected, not \"4}\"");
  CHECK(
      why(", microbatches: 5").starts_with("S003 microbatch(5): dimension 0 of \"x\" has size 3"));
  CHECK(why(", order: zb_v").starts_with("O002 order: 2 stages on 2 meshes; zb_v has two stages"));
  CHECK(pipeline_mistake("\nPP: pipeline {batch: {x: 0}}", two_meshes) ==
        "O138 schedule: 2:1: pipeline \"PP\": it has no stages; name the parts of each");
  CHECK(pipeline_mistake("pipeline {stages: {a} {}}", two_meshes) ==
        "O138 schedule: 1:1: pipeline \"pipeline\": stage 1 has no parts; name at least one, or "
        "leave the stage out");
  CHECK(
      pipeline_mistake("pipeline {stages: a}", two_meshes)
          .starts_with("X001 schedule: 1:19: the parts of a stage, like {embedding, layers.0}, "));
  CHECK(pipeline_mistake("pipeline {stages: {layers_0} {layers_3}}", two_meshes)
            .starts_with("O108 mpmd: no named part has the name \"layers_3\""));
}

TEST_CASE("remat with a pipeline: names stay with their ops") {
  const pt::program p = layers();
  const auto system = pt::read_system(example("conf"));
  const auto schedule = [](const std::string& more) {
    return pt::read_schedule(pipeline_line(", microbatches: 4" + more) +
                             "\nR: remat \"layers_*\"\nBP: manual B {x: 0, y: 0}\n");
  };
  const auto made = pipelines::session(p, schedule(", infer_transfers"), system).partition();
  CHECK(made.order_of("m0") == "F0 F1 B0 F2 B1 F3 B2 B3");
  CHECK(data::str(made.notes.back()).find("of 2 scopes: ") != std::string::npos);
  const auto inputs = small_arguments(p);
  CHECK(pt::all_close(pt::emulate(made, inputs), pt::evaluate(p, inputs)));
  // A recomputed value has no name, so nothing sends it unasked.
  CHECK_THROWS_WITH_AS(pipelines::session(p, schedule(""), system).partition(),
                       doctest::Contains("for \"layers_0\"(1)"), pt::error);
}

TEST_CASE("stages can be found automatically") {
  const pt::program p = layers();
  const auto system = pt::read_system(example("conf"));
  const auto made = [&](const std::string& stages) {
    return pipelines::session(
               p, pt::read_schedule("pipeline {stages: " + stages + ", batch: {x: 0, y: 0}}"),
               system)
        .partition();
  };
  // By the scopes of the module; those of its optimizer are not in a stage.
  CHECK(
      data::str(pt::report(made("automatic 2")))
          .find("note: pipeline \"pipeline\": stages {embedding, layers_0} {layers_1, head, loss}; "
                "the largest") != std::string::npos);
  CHECK_THROWS_WITH(made("automatic 6"),
                    "O147 pipeline: 6 stages are requested from 5 named parts; known: embedding, "
                    "layers_0, layers_1, head, loss");
  CHECK(pipeline_mistake("pipeline {stages: automatic 0}", two_meshes) ==
        "X020 schedule: 1:29: 0 is not a number of stages; give 1 to 1048576");
  CHECK(pipeline_mistake("pipeline {stages: automatic}", two_meshes)
            .starts_with("X001 schedule: 1:28: a number of stages is expected"));
}

TEST_CASE("a search inside stages uses the cost of the pipeline") {
  const pt::program p = layers();
  const auto system =
      pt::read_system("device mine\nmemory 8 GB\nbandwidth 1 GB/s\nflops 1 GFLOP/s\nnear 1 GB/s\n" +
                      std::string(two_meshes));
  REQUIRE(!system.error);
  const std::string first = pipeline_line(", microbatches: 4") + "\n";
  const std::string last = "\npropagate";
  const auto all =
      pt::read_schedule(first + "A: automatic B, M {evaluations: 200, seconds: 0}" + last);
  REQUIRE(std::string(all.error.message.view()) == "");
  pipelines::session s(p, all, system);
  pt::vec<pt::search_result> results;
  const pt::pipelined made = s.partition(results);
  REQUIRE(results.size() == 1);
  REQUIRE(!results[0].tactics.empty());
  CHECK(results[0].after < results[0].before);
  // Its cost is that of the resulting pipeline. The tactics that it found apply without a search.
  const pt::pipelined behind = s.after(1);
  const auto t = pt::simulate(behind, system.on.device, {.overlap = true});
  CHECK(t.times.total == doctest::Approx(results[0].after));
  CHECK(behind.tactics[1].search.evaluations == 0);
  // The same as a user would write it.
  const auto written =
      pt::read_schedule(first + std::string(pt::print_specification(results[0]).view()) + last);
  CHECK(pipelines::session(p, written, system).partition().collectives == made.collectives);
  const auto inputs = small_arguments(p);
  CHECK(pt::all_close(pt::emulate(made, inputs), pt::evaluate(p, inputs)));
}

TEST_CASE("tactics and systems that do not go with a pipeline are refused") {
  CHECK(pipeline_mistake(pipeline_line("") + "; microbatch 2 {x: 0}", two_meshes) ==
        "O141 schedule: 1:91: \"microbatch\" is for programs on one mesh, and the schedule has a "
        "pipeline; give the pipeline as many microbatches as both have together");
  CHECK(pipeline_mistake(pipeline_line(""), "axis B 4\n") ==
        "O143 schedule: pipeline \"PP\" needs several meshes, and the system has one; begin the "
        "description of each with a line \"mesh NAME\"");
  CHECK(pipeline_mistake("manual B {x: 0}", two_meshes) ==
        "O144 schedule: it has no pipeline, and the system has 2 meshes; add one, like \"pipeline "
        "{stages: {a} {b}, batch: {x: 0}, microbatches: 4}\"");
  CHECK(pipeline_mistake(pipeline_line("") + "; passes overlap",
                         "mesh m0\naxis B 2\ndevice H100\nmesh m1\naxis B 2\ndevice A100-80\n") ==
        "O145 schedule: the pass overlap chooses for one kind of device; mesh \"m0\" and mesh "
        "\"m1\" have different ones; leave it out");
  CHECK(pipeline_mistake(pipeline_line("") + "\n" + pipeline_line(""), two_meshes)
            .starts_with("O132 partition: the schedule has 2 pipeline tactics"));
  const auto s = pt::read_schedule(pipeline_line(""));
  CHECK_THROWS_WITH(
      pt::partition(layers(), pt::mesh{{"B", 4}}, s.tactics),
      "O140 schedule: 1:1: pipeline \"PP\": its stages need several meshes, and partition has one; "
      "give it a topology");
}

TEST_CASE("blocks of a width, where meshes have different sizes") {
  const auto arguments = [&](const std::string& more) {
    return pipeline_mistake(pipeline_line(", microbatches: 4") + "\n" + more,
                            "mesh m0\naxis B 4\naxis M 2\nmesh m1\naxis B 2\n");
  };
  // A quarter of a microbatch of x on m0, a half of y on m1.
  CHECK(arguments("arg-tile x 0 8; arg-tile y 0 16; propagate") == "");
  CHECK(arguments("arg-tile y 0 8") ==
        "X007 schedule: 2:1: shards of 8 along dimension 0 of \"y\", which has 32 elements there, "
        "need an axis of 4; the mesh has \"B\" of 2, \"M\" of 1");
}

TEST_CASE("systems of several meshes are read") {
  const auto s = pt::read_system(
      "device A100-80 # of those that name none\nflops.f16 100 TFLOP/s\ndevices 14\n"
      "mesh m0, \"m 1\"\naxis B 2\naxis M 2\nmemory 16 GiB\n"
      "mesh m2\ndevices 6\naxis B 6\ndevice H100\nnode 2\n");
  REQUIRE_MESSAGE(!s.error, std::string(s.error.message.view()));
  const pt::topology t = s.topology();
  REQUIRE(t.count() == 3);
  CHECK(t.name(1) == "m 1");
  CHECK(t.mesh_of(1).devices() == 4);
  CHECK(t[0].device.memory == 16. * (1 << 30));
  CHECK(t[1].device.f16 == 100e12);
  CHECK(t[1].device.f32 == pt::a100_80.f32);
  CHECK(t[2].device.f16 == pt::h100.f16);
  CHECK(t[2].device.node == 2);
  CHECK(t[2].has_device);
  CHECK(s.can_simulate());
  CHECK(pt::read_designs("a: memory * 2", s).error.message.view() ==
        "X021 designs: the system has 3 meshes; designs change a system of one, "
        "read_cluster_designs changes several");
  CHECK(!pt::read_system("mesh m0\naxis B 2\n").topology()[0].has_device);
  CHECK(!pt::read_system("mesh m0\naxis B 2\nmesh m1\naxis B 2\ndevice H100").can_simulate());
}

TEST_CASE("what if: other meshes, microbatches and orders") {
  const auto base = pt::read_system(example("conf"));
  const auto list = pt::read_cluster_designs(
      "as it is:\n"
      "more: microbatches = 16\n"
      "gpipe: order = gpipe, microbatches = 8\n"
      "wider: axis B * 2, m1.axis M / 2, m0.memory = 4 GiB  # of all, of one\n"
      "small: memory = 16 KiB\n"
      "\"not: whole\": microbatches = 3\n"
      "newer: m1.device H100, links * 2\n",
      base);
  REQUIRE_MESSAGE(!list.error, std::string(list.error.message.view()));
  REQUIRE(list.designs.size() == 7);
  CHECK(list.designs[2].change.microbatches == 8);
  CHECK(list.designs[2].change.order.name == "gpipe");
  const pt::cluster_design& wider = list.designs[3];
  CHECK(data::str(pt::concat(wider.cluster)) == R"({"m0": {"B":8, "M":2}, "m1": {"B":4, "M":1}})");
  CHECK(wider.cluster[0].device.memory == 4. * (1 << 30));
  CHECK(wider.cluster[1].device == pt::a100_80);
  CHECK(list.designs[6].cluster[1].device.f16 == pt::h100.f16);
  CHECK(list.designs[6].cluster[0].device.f16 == pt::a100_80.f16);

  const pt::program p = layers();
  pt::sweep table;
  for (const auto& d : list.designs) {
    const auto s = pt::changed(pt::read_schedule(example("spec")), d.change);
    table.add(p, "PP", s.tactics, d);
  }
  REQUIRE(table.rows.size() == 7);
  const auto made = pipelines::session(p, pt::read_schedule(example("spec")), base).partition();
  const pt::pipeline_time t = pt::simulate(made, base.on.device);
  CHECK(table.rows[0].time == t.times.total);
  CHECK(table.rows[0].bubble == t.times.bubble_of_total());
  CHECK(table.rows[0].devices == 12);
  CHECK(table.rows[0].message_bytes == pt::pipeline_figures(made).message_bytes);
  CHECK(table.rows[0].mfu > 0);
  CHECK(table.rows[0].mfu < 1);
  CHECK(table.rows[1].bubble < table.rows[0].bubble);
  CHECK(table.rows[2].bubble > 0);
  CHECK(table.rows[3].devices == 20);
  CHECK(!table.rows[4].fits());
  CHECK(table.rows[4].peak_bytes == table.rows[0].peak_bytes);
  CHECK(data::str(table.rows[5].error.message).starts_with("S003 microbatch(3): dimension 0 of"));
  const std::string lines = data::str(table.print());
  CHECK(lines.starts_with("design      schedule  devices"));
  CHECK(lines.find("  bubble") != std::string::npos);
  CHECK(lines.find("does not fit, ") != std::string::npos);
  CHECK(data::str(table.csv()).find("mfu,bubble,message_bytes,peak_bytes,") != std::string::npos);

  const auto mistake = [&](std::string_view in) {
    return std::string(pt::read_cluster_designs(in, base).error.message.view());
  };
  CHECK(mistake("a: order = one") ==
        "X019 designs: 1:12: order \"one\" is unknown; known: gpipe, gpipe_reversed, "
        "gpipe_1f1b_last, one_f_one_b, circular, circular_phases, interleaved_1f1b, zb_h1, "
        "zb_h2, zb_v");
  CHECK(mistake("a: microbatches = 0") ==
        "X020 designs: 1:19: 0 is not a number of microbatches; give 1 to 1048576");
  CHECK(mistake("a: microbatches * 2") == "X001 designs: 1:17: \"=\" is expected, not \"* 2\"");
  CHECK(mistake("a: axis Q * 2") ==
        R"(S001 designs: 1:4: axis "Q" is not in {"m0": {"B":4, "M":2}, "m1": {"B":2, "M":2}})");
  CHECK(mistake("a: m0.axis B / 8").starts_with("M001 designs: 1:12: axis \"B\" of size 4"));
  CHECK(mistake("a: m2.memory * 2").starts_with("X003 designs: 1:4: \"m2.memory\" is unknown; "));
  CHECK(mistake("a: m2.memory * 2").ends_with("; write a figure of one mesh as MESH.FIGURE"));
  CHECK(mistake("") == "X013 designs: the text is empty; a line is \"name: change, change\"");
}

TEST_CASE("errors in a system of several meshes") {
  CHECK(meshes_mistake("\naxis B 4\nmesh m0\naxis B 2\n") ==
        "X017 system: 2:1: axis \"B\" is above the first mesh; put it below the line \"mesh "
        "NAME\" of its mesh");
  CHECK(meshes_mistake("mesh m0\naxis B 2\nlink B 3 GB/s") ==
        "X018 system: 3:1: a link of axis \"B\" in a system of several meshes, whose links are "
        "near and far; give these");
  CHECK(meshes_mistake("mesh m0\nmesh m1, m0") == "X004 system: 2:1: mesh \"m0\" is given twice");
  CHECK(meshes_mistake("mesh m0\nnode 2\nmesh m1\nnode 2\nnode 4") ==
        "X004 system: 5:1: \"node\" is given twice");
  CHECK(meshes_mistake("mesh") == "X001 system: 1:5: a name is expected; the line ends");
  CHECK(meshes_mistake("devices 5\nmesh m0, m1\naxis B 2") ==
        "X009 system: 1:1: 5 devices are given; all 2 meshes make 4");
  CHECK(meshes_mistake("mesh m0\naxis B 2\ndevices 3") ==
        "X009 system: 3:1: 3 devices are given; the axes {\"B\":2} make 2");
  CHECK(meshes_mistake("mesh m0\naxis B 0").starts_with("M001"));
  CHECK(meshes_mistake("mesh " + std::string(40, 'm')).starts_with("O102 topology: the name of m"));
}

TEST_CASE(
    "an error about a part that needs the whole batch names an input that can stay out of it") {
  // A mean over tokens, divided by a number that is computed outside the parts: by a sum of the
  // mask, which is known before the first microbatch, or by a product of matrices, which is not.
  const std::string module = R"(#s0 = loc("jit(f)/jvp(s0)/tanh")
#s1 = loc("jit(f)/jvp(s1)/reduce_sum")
#t1 = loc("jit(f)/transpose(jvp(s1))/mul")
func.func @main(%x: tensor<8xf32> loc("x"), %m: tensor<8xf32> loc("m"), %q: tensor<8x4xf32> loc("q")) -> (tensor<f32>, tensor<8xf32>) {
  %c = stablehlo.constant dense<0.0> : tensor<f32>
  %k = stablehlo.dot_general %q, %q, contracting_dims = [0] x [0] : (tensor<8x4xf32>, tensor<8x4xf32>) -> tensor<4x4xf32>
  %n0 = stablehlo.reduce(%m init: %c) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32>
  %n1 = stablehlo.reduce(%k init: %c) applies stablehlo.add across dimensions = [0, 1] : (tensor<4x4xf32>, tensor<f32>) -> tensor<f32>
  %h = stablehlo.tanh %x : tensor<8xf32> loc(#s0)
  %hm = stablehlo.multiply %h, %m : tensor<8xf32> loc(#s1)
  %l = stablehlo.reduce(%hm init: %c) applies stablehlo.add across dimensions = [0] : (tensor<8xf32>, tensor<f32>) -> tensor<f32> loc(#s1)
  %nb = stablehlo.broadcast_in_dim %n1, dims = [] : (tensor<f32>) -> tensor<8xf32> loc(#t1)
  %g = stablehlo.divide %m, %nb : tensor<8xf32> loc(#t1)
  return %l, %g : tensor<f32>, tensor<8xf32>
})";
  std::string by_mask = module;
  by_mask.replace(by_mask.find("%n1, dims"), 3, "%n0");
  const auto p = pt::read_stablehlo(module), masked = pt::read_stablehlo(by_mask);
  REQUIRE(data::str(p.error.message) == "");
  REQUIRE(data::str(masked.error.message) == "");
  const auto t = pt::read_system("mesh m0\naxis B 1\nmesh m1\naxis B 1\n").topology();
  const auto tactics = [](const std::string& batch) {
    const auto s = pt::read_schedule("pipeline {stages: {s0} {s1}, batch: {" + batch +
                                     "}, microbatches: 2, order: gpipe}");
    REQUIRE(data::str(s.error.message) == "");
    return s.tactics;
  };
  CHECK_THROWS_WITH(
      pt::partition(p, t, tactics("x: 0, m: 0, q: 0")),
      doctest::Contains("over all microbatches; leave \"m\" out of batch: parts still get "
                        "its slices"));
  CHECK_THROWS_WITH(
      pt::partition(p, t,
                    pt::schedule(pt::pipeline({.stages = {{"s0"}, {"s1"}},
                                               .batch = {{"x", 0}, {"m", 0}, {"q", 0}},
                                               .microbatches = 2}))),
      doctest::Contains("; leave \"m\" out of .batch: "));
  data::random random{3};
  std::vector<pt::array> inputs;
  for (int i = 0; i < 3; ++i) inputs.push_back(data::integers(p.input_type(i), random, 1, 3));
  const auto check = [&](const pt::program& f, const std::string& batch) {
    const auto r = pt::partition(f, t, tactics(batch));
    CHECK(pt::max_difference(pt::emulate(r, inputs), pt::evaluate(f, inputs)) < 1e-6);
  };
  check(p, "x: 0, q: 0");
  check(masked, "x: 0, m: 0");
  check(masked, "x: 0");
}
