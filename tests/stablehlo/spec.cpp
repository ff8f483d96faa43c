#include <doctest/doctest.h>

#include <string>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/report/sweep.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/spec/bounds.hpp>
#include <partita/spec/designs.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>
#include <partita/stablehlo/read.hpp>

namespace pt = partita;

namespace {

constexpr std::string_view mlp =
    "func @mlp(%x : tensor<16x256xf32>, %w1 : tensor<256x256xf32>, %w2 : tensor<256x256xf32>){\n"
    " %0 = \"matmul\"(%x, %w1)\n %1 = \"matmul\"(%0, %w2)\n return %1\n}\n";

pt::partitioned made(std::string_view specification, const pt::mesh& m) {
  const auto s = pt::read_schedule(specification);
  REQUIRE_MESSAGE(!s.error, std::string(s.error.message.view()));
  return pt::partition(pt::read_stablehlo(mlp), m, s.tactics);
}
std::string why(std::string_view specification) {
  return std::string(pt::read_schedule(specification).error.message.view());
}
std::string thrown(std::string_view specification, const pt::mesh& m) {
  try {
    made(specification, m);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("the talk's specification equals its tactics in C++") {
  const pt::mesh m{{"M", 16}};
  const auto talk = made("arg-tile 1 1 16\narg-tile 2 0 16\npropagate\n", m);
  CHECK(talk.collectives == pt::collectives{0, 1, 0, 0, 0});
  CHECK(talk.tactics.size() == 1);
  const auto dots = made("arg-tile w1 1 16; arg-tile 2 0 16. propagate.", m);
  CHECK(pt::print(dots.device).view() == pt::print(talk.device).view());
  const auto named = made("# Megatron\nMP: manual \"M\" {w1: 1,\n  w2: 0}  // two lines\n", m);
  CHECK(pt::print(named.device).view() == pt::print(talk.device).view());
  CHECK(named.tactics[0].name.view() == "MP");
}

TEST_CASE("patterns, placements, padding, sub-axes and microbatches are read") {
  const pt::mesh m{{"B", 4}, {"M", 2}};
  const auto all = made("manual B {\"w*\": first_divisible_dim, x: replicated}", m);
  CHECK(all.input("w1").local_shape == pt::shape{64, 256});
  CHECK(all.input("w2").local_shape == pt::shape{64, 256});
  const auto part = made("manual \"B:(1)2\" {x: 0}", m);
  CHECK(part.input("x").local_shape == pt::shape{8, 256});
  const auto steps = made("MB: microbatch 4 {x: 0}\nBP: manual B {x: 0}", m);
  CHECK(steps.tactics.size() == 2);
  const auto padded = made("manual three {x: 0} pad", pt::mesh{{"three", 3}});
  CHECK(padded.input("x").local_shape == pt::shape{6, 256});
}

TEST_CASE("remat is read") {
  const auto s = pt::read_schedule("R: remat \"layers.*\", w1; remat x  # each on one line\n");
  REQUIRE(!s.error);
  REQUIRE(s.tactics.size() == 2);
  CHECK(s.tactics[0].name() == "R");
  CHECK(s.tactics[0].scopes.size() == 2);
  CHECK(s.tactics[1].scopes[0].view() == "x");
  CHECK(why("remat") == "X001 schedule: 1:6: a name is expected; the line ends");
  CHECK(thrown("remat w1", pt::mesh{{"B", 4}})
            .starts_with("S015 schedule: 1:1: remat: the program has no deri"));
}
TEST_CASE("passes are read") {
  const auto s = pt::read_schedule(
      "BP: manual B {x: 0}; passes share_gathers, combine_below 64 KiB\n"
      "passes memory_bound 1e9 B, stationary_above 16 KiB");
  REQUIRE(!s.error);
  CHECK(s.tactics.size() == 1);
  CHECK(s.passes.share_gathers == pt::shared_uses::all);
  const auto shares = [](std::string_view said) {
    return pt::read_schedule(said).passes.share_gathers;
  };
  CHECK(shares("passes place") == pt::shared_uses::alike);
  CHECK(shares("passes share_gathers none, place") == pt::shared_uses::none);
  CHECK(shares("passes share_gathers alike") == pt::shared_uses::alike);
  CHECK(shares("passes share_gathers neighbours") == pt::shared_uses::neighbours);
  CHECK(shares("passes share_gathers all") == pt::shared_uses::all);
  CHECK(!s.passes.place);
  CHECK(!s.passes.stationary_rows);
  CHECK(pt::read_schedule("passes stationary_rows, place").passes.stationary_rows);
  CHECK(s.passes.combine_below == 65536);
  CHECK(pt::read_schedule("passes combine_below none").passes.combine_below == 0);
  CHECK(s.passes.memory_bound == 1'000'000'000);
  CHECK(s.passes.stationary_above == 16384);
  CHECK(pt::read_schedule("passes memory_bound own_peak, place").passes.memory_bound ==
        pt::passes::own_peak);
  CHECK(pt::read_schedule("passes: manual B {x: 0}").tactics[0].name() == "passes");
  CHECK(why("passes share").starts_with("X003 schedule: 1:8: pass \"share\" is unknown; know"));
  CHECK(
      why("passes place\npasses place").starts_with("X004 schedule: 2:8: pass \"place\" is given"));
  CHECK(why("passes place, place") == "X004 schedule: 1:15: pass \"place\" is given twice");
  CHECK(
      why("passes share_gathers som").starts_with("X003 schedule: 1:22: uses \"som\" are unknown"));
  CHECK(why("passes combine_below 3 s")
            .starts_with("X002 schedule: 1:22: unit \"s\" is of another kind"));
  CHECK(why("passes combine_below 0").starts_with("X020 schedule: 1:22: \"0\" is out of r"));
  CHECK(
      why("passes combine_below 0.5 B").starts_with("X010 schedule: 1:8: combine_below needs a "));
  CHECK(why("passes place,").starts_with("X003 schedule: 1:14: pass \"\" is unknown"));
}

TEST_CASE("overlap is for the system's device") {
  auto s = pt::read_schedule("BP: manual B {x: 0}; passes overlap\n");
  REQUIRE(!s.error);
  CHECK(s.options().overlap.any());
  CHECK(s.overlap.validate(pt::mesh{{"B", 4}}).message.view().starts_with("C004 overlap"));
  pt::search_on(s, pt::a100_80);
  CHECK(!s.overlap.validate(pt::mesh{{"B", 4}}));
  CHECK(s.overlap.on.device == pt::a100_80);
}

TEST_CASE("automatic: the device, the limits and the tactics that were found") {
  auto s = pt::read_schedule(
      "BP: manual B {x: 0}\nA: automatic \"M\" {evaluations: 300, seed: 2, memory: 1 GiB}\n"
      "automatic M, B");
  REQUIRE(!s.error);
  CHECK(s.tactics[1].search.evaluations == 300);
  CHECK(s.tactics[1].search.seed == 2);
  CHECK(s.tactics[1].search.memory == 1073741824.);
  CHECK(s.tactics[2].axes.size() == 2);
  const pt::program p = pt::read_stablehlo(mlp);
  const pt::mesh m{{"B", 4}, {"M", 4}};
  CHECK_THROWS_WITH(
      pt::partition(p, m, s.tactics),
      "X015 schedule: 2:1: automatic searches for a device; none is given: name one in "
      "the system, as device A100-80, or in its options, {device: A100-80}");
  pt::vec<pt::search_result> found;
  pt::search_on(s, pt::machine(pt::a100_80), nullptr, &found);
  const auto r = pt::partition(p, m, s.tactics);
  REQUIRE(found.size() == 2);
  CHECK(found[0].evaluations <= 300);
  CHECK(found[0].evaluations > 0);
  CHECK(found[1].evaluations > 0);
  CHECK(r.tactics.size() == 3);
  CHECK(why("automatic {evaluations: 3}") ==
        "X001 schedule: 1:11: a name is expected, not \"{evaluations: 3}\"");
  CHECK(why("automatic M {budget: 3}") ==
        "X003 schedule: 1:14: option \"budget\" is unknown; known: evaluations, seconds, memory, "
        "seed, device, overlap, least_gain");
  CHECK(why("automatic M, B, M") == "X004 schedule: 1:17: axis \"M\" is given twice");
  CHECK(why("automatic M {seed: 1, seed: 2}") ==
        "X004 schedule: 1:23: option \"seed\" is given twice");
  for (const char* wrong : {"evaluations: 0", "evaluations: -3", "seconds: -1", "seconds: 1e999",
                            "memory: 0", "memory: inf", "memory: 1e6 TiB"})
    CHECK_MESSAGE(
        why(("automatic M {" + std::string(wrong) + "}").c_str()).starts_with("X020 schedule: 1:"),
        wrong);
}

TEST_CASE("errors in a specification have line and column") {
  CHECK(why("BP: manul \"B\" {x: 0}") ==
        "X003 schedule: 1:1: \"manul\" is not a tactic; known: manual, shard, microbatch, remat, "
        "amalgamated, automatic, pipeline, tile, atomic, arg-tile, propagate, passes; did you mean "
        "\"manual\"?");
  for (const char* more :
       {"manual B {x: 0} garbage", "manual B {x: 0} pad refuse", "remat x y",
        "microbatch 4 {x: 0} manual B {x: 0}", "arg-tile 1 1 16 propagate", "propagate 3"})
    CHECK_MESSAGE(why(more).find("the end of the statement is expected") != std::string::npos,
                  more);
  for (const char* wrong :
       {"manual B {x: -1}", "microbatch 0 {x: 0}", "microbatch -4 {x: 0}", "microbatch 4 {x: -1}",
        "arg-tile 1 -1 16", "arg-tile 1 1 0", "passes combine_below 1e30 B"})
    CHECK_MESSAGE(why(wrong).starts_with("X020 schedule: 1:"), wrong);
  CHECK(why("BP: manual \"B\" {x: 0") == "X001 schedule: 1:21: \"}\" is expected; the line ends");
  CHECK(why("\nBP: manual B {x: first}")
            .starts_with("X003 schedule: 2:18: placement \"first\" is unknown"));
  CHECK(why("arg-tile 1 16").starts_with("X001 schedule: 1:14: the width of a shard is expected"));
  const pt::mesh m{{"B", 4}, {"M", 4}};
  CHECK(
      thrown("arg-tile 1 1 64", m) ==
      "X007 schedule: 1:1: shards of 64 along dimension 1 of \"w1\", which has 256 elements there, "
      "need an axis of 4; the mesh has \"B\" of 4, \"M\" of 4; name it with manual");
  CHECK(thrown("arg-tile 7 1 64", m) ==
        "X006 schedule: 1:1: argument 7 does not exist; the program has 3");
  CHECK(thrown("arg-tile w3 1 64", m) ==
        "X006 schedule: 1:1: argument w3 does not exist; the program has 3; known: x, w1, w2; did "
        "you "
        "mean \"w1\"?");
  CHECK(
      thrown("manual B {w3: 0}", m).starts_with("S006 schedule: 1:1: manual \"B\": no input, tag"));
}

TEST_CASE("advice is in the syntax of specifications") {
  const pt::mesh three{{"B", 3}}, m{{"B", 4}};
  CHECK(thrown("manual B {x: 0}", three)
            .ends_with("or pad it with \"pad\" at the end of the tactic"));
  CHECK_THROWS_WITH(
      pt::partition(pt::read_stablehlo(mlp), three, pt::schedule(pt::manual("B", {{"x", 0}}))),
      doctest::Contains("or pad it with uneven::pad"));
  const auto report = [&](const auto& tactics) {
    return std::string(pt::report(pt::partition(pt::read_stablehlo(mlp), m, tactics)).view());
  };
  const std::string text =
                        report(pt::read_schedule("amalgamated {manual B {x: 0, w1: 1}}").tactics),
                    cpp = report(pt::schedule(
                        pt::amalgamated("both", pt::manual("B", {{"x", 0}, {"w1", 1}}))));
  CHECK(text.find("would be settled by manual \"B\" {\"x\": 0} as an earlier tactic (#tile<0>), or "
                  "by manual \"B\" {\"w1\": 1} as an earlier tactic") != std::string::npos);
  CHECK(cpp.find("would be settled by manual(\"B\", {{\"x\", 0}}) as an earlier tactic (#tile<0>), "
                 "or by manual(\"B\", {{\"w1\", 1}}) as an earlier tactic") != std::string::npos);

  // Each advice about a conflict can be written as a tactic, if the model has the tag.
  const char* residual =
      "func @f(%x : tensor<16x16xf32>, %w : tensor<16x16xf32>, %v : tensor<16x16xf32>) {\n"
      " %0 = \"matmul\"(%x, %w)\n %1 = \"matmul\"(%0, %v)\n %2 = \"matmul\"(%1, %1)\n return "
      "%2\n}\n";
  const auto p = pt::read_stablehlo(residual);
  const auto made =
      pt::partition(p, m, pt::read_schedule("amalgamated {manual B {w: 1, x: 0}}").tactics);
  const std::string all(pt::report(made).view());
  std::size_t found = 0;
  for (std::size_t at = all.find("manual \""); at != std::string::npos;
       at = all.find("manual \"", at + 1)) {
    const std::string tactic = all.substr(at, all.find('}', at) + 1 - at);
    CHECK_MESSAGE(!pt::read_schedule(tactic).error, tactic);
    ++found;
  }
  CHECK(found > 0);

  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        const auto y = matmul(x, w);
        return pt::output("g", pt::grad(
                                   [&](auto u) {
                                     const auto h = pt::tag("h.begin", matmul(y, u));
                                     return sum(pt::tag("h.end", h * h * h));
                                   },
                                   v));
      },
      pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w"), pt::input<float, 4, 4>("v"));
  CHECK_THROWS_WITH(pt::partition(f, m, pt::read_schedule("remat w").tactics),
                    doctest::Contains("its loss, like remat \"v\", or remove"));
  CHECK_THROWS_WITH(pt::partition(f, m, pt::schedule(pt::remat({"w"}))),
                    doctest::Contains("its loss, like remat({\"v\"}), or remove"));
  pt::partition_options strict;
  strict.strict = 0;
  CHECK_THROWS_WITH(pt::partition(f, m, pt::read_schedule("manual B {x: 0}").tactics, strict),
                    doctest::Contains("; shard it, or place it replicated"));
  CHECK_THROWS_WITH(pt::partition(f, m, pt::schedule(pt::manual("B", {{"x", 0}})), strict),
                    doctest::Contains("; shard it, or place it pt::replicated"));
}

TEST_CASE("report and explain count the same collectives with any passes") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto y = pt::for_loop(
            0, 6, [&](auto, auto h) { return matmul(h, w); }, x);
        return matmul(matmul(y, w), w) + x;
      },
      pt::input<float, 16, 16>("x"), pt::input<float, 16, 16>("w"));
  bool passes_change = false;
  for (const char* specification :
       {"manual M {w: 1}", "manual M {w: 0}", "manual M {x: 0}\nmanual M {w: 1}",
        "manual M {x: 0, w: 1}\npasses share_gathers all",
        "manual M {x: 0}\nmanual M {w: 0}\npasses share_gathers all, combine_below 1 MiB, place"}) {
    CAPTURE(specification);
    const auto s = pt::read_schedule(specification);
    const auto p = pt::partition(f, pt::mesh{{"M", 4}}, s.tactics, s.options());
    passes_change = passes_change || !(p.tactics.back().counts == p.collectives);
    const std::string report(pt::report(p).view()), explained(pt::explain(p).view());
    const std::size_t line = report.rfind("  collectives: ");
    CHECK(report.substr(line, report.find('\n', line) - line) ==
          std::string(pt::concat("  collectives: ", p.collectives).view()));
    const std::size_t all = explained.find("  all ");
    REQUIRE(all != std::string::npos);
    const std::string runs = " x" + std::to_string(p.collectives.total()) + ' ';
    CHECK(explained.substr(all, explained.find('\n', all) - all).find(runs) != std::string::npos);
  }
  CHECK(passes_change);
}

TEST_CASE("systems are read") {
  const auto s = pt::read_system(
      "axis B 4\naxis M 2 # minor\ndevice \"TPU v3\"\nmemory 16 GiB\nbandwidth 1 TB/s\nflops "
      "61.5 TFLOP/s\nlink M 70 GB/s 1 us\n");
  REQUIRE(!s.error);
  CHECK(s.mesh.devices() == 8);
  CHECK(s.on.device.name() == "TPU v3");
  CHECK(s.on.device.memory == 16. * (1 << 30));
  CHECK(s.on.device.f32 == 61.5e12);
  CHECK(s.on.told[1].bandwidth == 70e9);
  CHECK(s.on.told[1].latency == 1e-6);
  const auto mistake = [](std::string_view t) {
    return std::string(pt::read_system(t).error.message.view());
  };
  CHECK(mistake("axis B four").starts_with("X001 system: 1:8: a number of devices"));
  CHECK(mistake("memory 16 GX").starts_with("X002 system: 1:8: unit \"GX\" is unknown"));
  CHECK(mistake("axis B 4\nlink M 7 GB/s") ==
        "X005 system: 2:1: a link of \"M\", which is not an axis");
  CHECK(mistake("axis B 4\naxis B 2") == "X004 system: 2:1: axis \"B\" is given twice");
  CHECK(mistake("axis B 4\nlink B 1 GB/s\nlink B 2 GB/s") ==
        "X004 system: 3:1: the link of \"B\" is given twice");
  CHECK(mistake("ax B 4").starts_with("X003 system: 1:1: \"ax\" is unknown"));
  CHECK(mistake("axis B 0").starts_with("M001"));
  CHECK(mistake("device abcdefghijklmnopqrstuvwxyz1234567") ==
        "X012 system: 1:1: a device's name has at most 31 characters, not 33");
  CHECK(mistake("node 0") ==
        "X020 system: 1:6: 0 is not a number of devices of a node; give 1 to 1099511627776");
  CHECK(mistake("memory 99999999999999 GiB") ==
        "X020 system: 1:8: \"99999999999999 GiB\" is out of range; give a number of bytes, like 16 "
        "GiB, above 0 and at most 1e18");
  for (const char* figure : {"memory", "bandwidth", "flops", "flops.f16", "vector", "kernel",
                             "window", "attained.products", "near", "far", "link B"})
    for (const char* number : {"-1", "1e999", "inf", "-inf", "1e300"}) {
      const std::string line = std::string(figure) + ' ' + number;
      CHECK_MESSAGE(mistake(line).starts_with("X020 system: 1:"), line);
    }
  for (const char* line : {"memory 0", "bandwidth 0 GB/s", "flops 0", "attained.links 0", "near 0",
                           "attained.memory 1.5", "tile 0", "tile 9999999", "devices 0", "node -1",
                           "near 1 GB/s -1 us"})
    CHECK_MESSAGE(mistake(line).starts_with("X020 system: 1:"), line);
  for (const char* line : {"memory 3 us", "memory 3 GB/s", "bandwidth 3 GB", "flops 3 GB/s",
                           "kernel 3 B", "near 3 GB", "near 3 GB/s 3 GB", "attained.links 1 s"})
    CHECK_MESSAGE(mistake(line).starts_with("X002 system: 1:"), line);
  CHECK(mistake("memory nan").starts_with("X001 system: 1:8: a number of bytes"));
  CHECK(mistake("attaned.memory 1").ends_with("did you mean \"attained.memory\"?"));
  CHECK(mistake("near 3 GB/s 1 us star")
            .starts_with("X001 system: 1:18: switched, ring or torus is expected, not \"star\""));
}

TEST_CASE("devices of the table can be modified") {
  const auto s = pt::read_system(
      "memory 1 GiB\naxis B 16\naxis M 2\ndevice A100-80\nflops.f16 100 TFLOP/s\nnode 4\n"
      "tile 64\nwindow 3 ns\nfar 1 GB/s 2 us ring\nattained.links 0.5\nlink M 7 GB/s torus\n");
  REQUIRE(!s.error);
  const pt::device& d = s.on.device;
  CHECK(d.name() == "A100-80");
  CHECK(d.memory == 1 << 30);
  CHECK(d.f16 == 100e12);
  CHECK(d.f32 == pt::a100_80.f32);
  CHECK(d.node == 4);
  CHECK(d.near == pt::a100_80.near);
  CHECK(d.far == pt::link{pt::link_shape::ring, 1e9, 2e-6});
  CHECK(d.link_part == 0.5);
  CHECK(d.tile == 64);
  CHECK(d.window == doctest::Approx(3e-9));
  CHECK(s.on.told[1] == pt::link{pt::link_shape::torus, 7e9, 0});
  CHECK(s.can_simulate());
  for (const char* of : {"", "\nmemory 1 GB", "\nmemory 1 GB\nbandwidth 1 GB/s"}) {
    const auto unknown = pt::read_system("axis B 4\ndevice H100x" + std::string(of));
    CHECK(!unknown.can_simulate());
    CHECK(unknown.error.message.view().starts_with("X014 system: 2:1: device \"H100x\" is not in"));
    CHECK(unknown.error.message.view().ends_with("did you mean \"H100\"?"));
  }
  // One rate for all types, on an unknown device.
  const auto own = pt::read_system(
      "axis B 4\ndevice mine\nmemory 8 GB\nbandwidth 100 GB/s\nflops 1 TFLOP/s\nnear 1 GB/s\n");
  CHECK(own.can_simulate());
  for (auto t : {pt::dtype::f64, pt::dtype::f32, pt::dtype::bf16, pt::dtype::i8})
    CHECK(own.on.device.peak(t) == 1e12);
}

TEST_CASE("what if: designs, and the sweep over them") {
  const auto base = pt::read_system("axis B 4\naxis M 2\ndevice A100-80\nlink M 10 GB/s 4 us\n");
  const auto list = pt::read_designs(
      "as it is:\n"
      "twice the cores, half the memory: axis B * 2, memory / 2  # coupled\n"
      "fast: links * 2, latency / 2\n"
      "\"all: new\": device H100, node = 4, flops * 2, bandwidth = 1 TB/s\n",
      base);
  REQUIRE_MESSAGE(!list.error, std::string(list.error.message.view()));
  REQUIRE(list.designs.size() == 4);
  CHECK(list.designs[0].name.view() == "as it is");
  CHECK(list.designs[0].on.device == pt::a100_80);
  CHECK(list.designs[1].mesh.size(0) == 8);
  CHECK(list.designs[1].on.device.memory == pt::a100_80.memory / 2);
  CHECK(list.designs[2].on.told[1] == pt::link{pt::link_shape::switched, 20e9, 2e-6});
  CHECK(list.designs[2].on.device.near.bandwidth == 2 * pt::a100_80.near.bandwidth);
  CHECK(list.designs[3].on.device.node == 4);
  CHECK(list.designs[3].on.device.f16 == 2 * pt::h100.f16);
  CHECK(list.designs[3].on.device.bandwidth == 1e12);
  const auto mistake = [&](std::string_view t) {
    return std::string(pt::read_designs(t, base).error.message.view());
  };
  CHECK(mistake("") == "X013 designs: the text is empty; a line is \"name: change, change\"");
  CHECK(mistake("a: memory * 0") == "X013 designs: 1:13: a factor of 0");
  CHECK(mistake("a: axis Q * 2") == "S001 designs: 1:9: axis \"Q\" is not in {\"B\":4, \"M\":2}");
  CHECK(
      mistake("a: axis B / 8") ==
      "M001 designs: 1:9: axis \"B\" of size 4 cannot be changed to that; sizes are integers, 1 or "
      "more");
  CHECK(mistake("a: device H10").starts_with("X014 designs: 1:11: device \"H10\" is not in"));
  for (const char* wrong : {"memory * 1e12", "axis B * 1e30", "node = 1e30", "node / 3",
                            "attained.memory * 2", "links * -1", "kernel = -1 s"})
    CHECK_MESSAGE(mistake("a: " + std::string(wrong)).starts_with("X020 designs: 1:"), wrong);
  CHECK(mistake("a: memory = 3 s").starts_with("X002 designs: 1:13"));
  CHECK(mistake("a: links = 3") == "X001 designs: 1:10: * or / is expected, not \"= 3\"");
  CHECK(mistake("a: colour * 3").starts_with("X003 designs: 1:4: \"colour\" is unknown"));
  CHECK(mistake("a memory * 3") == "X001 designs: 1:13: \":\" is expected; the line ends");

  pt::sweep table;
  const auto program = pt::read_stablehlo(mlp);
  for (const auto& d : list.designs) {
    table.add(program, "MP", pt::read_schedule("MP: manual M {w1: 1}").tactics, d);
    table.add(program, "bad", pt::read_schedule("manual Q {w1: 1}").tactics, d);
  }
  REQUIRE(table.rows.size() == 8);
  CHECK(table.best() == 4);  // its links are twice as fast
  CHECK(table.rows[2].devices == 16);
  CHECK(std::string(table.rows[1].error.message.view()).starts_with("S001"));
  const std::string csv(table.csv().view());
  CHECK(std::count(csv.begin(), csv.end(), '\n') == 9);
  CHECK(csv.find("\"as it is\",\"MP\",8,") != std::string::npos);
  for (auto& row : table.rows) row.memory = 1;
  CHECK(table.best() == -1);
  CHECK(std::string(table.print().view()).ends_with("nothing fits\n"));
}

TEST_CASE("reports state whether the program fits and the system has enough devices") {
  const auto s = pt::read_system("axis B 4\naxis M 2\ndevices 8\ndevice TPUv3\nmemory 1 KiB\n");
  REQUIRE_MESSAGE(!s.error, std::string(s.error.message.view()));
  CHECK(pt::print_memory(s, 1024).view() == "memory: 1024 of 1024 bytes of a TPUv3: it fits\n");
  CHECK(pt::print_memory(s, 1500).view() ==
        "memory: 1500 of 1024 bytes of a TPUv3: it does not fit, 476 more bytes are needed\n");
  CHECK(pt::print_memory(pt::read_system("axis B 4\n"), 5).empty());
  CHECK(pt::print_missing(pt::read_system("axis B 4\n")).empty());
  CHECK(pt::print_missing(pt::read_system("axis B 4\ndevice H100\n")).empty());
  CHECK(pt::print_missing(pt::read_system("axis B 4\nmemory 1 GiB\n"))
            .view()
            .starts_with("time: not simulated; D001 "));
  CHECK(pt::read_system("axis B 4\naxis M 2\ndevices 16\n").error.message.view() ==
        "X009 system: 3:1: 16 devices are given; the axes {\"B\":4, \"M\":2} make 8");
}

TEST_CASE("bounds are checked") {
  const auto p = made("arg-tile 1 1 16\narg-tile 2 0 16\npropagate\n", pt::mesh{{"M", 16}});
  const auto broken = [&](std::string_view t) {
    pt::failure f;
    const auto list = pt::read_bounds(t);
    if (list.error) return std::string(list.error.message.view());
    const std::string out(pt::broken_bounds(p, list, f).view());
    return f ? std::string(f.message.view()) : out;
  };
  CHECK(broken("all_reduce == 1\nall_gather <= 0\npeak_bytes <= 1 MiB") == "");
  CHECK(broken("all_reduce < 1") == "all_reduce is 1; all_reduce < 1 does not hold\n");
  CHECK(broken("all_red < 1").starts_with("X008 check: figure \"all_red\" is unknown"));
  CHECK(broken("all_reduce = 1").starts_with("X001 check: 1:12"));
  CHECK(broken("flops <= 1 TFLOP\nconflicts <= 0") == "");
  for (const char* wrong : {"all_reduce <= 2 GiB", "flops <= 2 GiB", "peak_bytes <= 2 s"})
    CHECK_MESSAGE(broken(wrong).starts_with("X002 check: 1:"), wrong);
  for (const char* wrong : {"all_reduce <= -1", "peak_bytes <= 1e999", "flops < inf"})
    CHECK_MESSAGE(broken(wrong).starts_with("X020 check: 1:"), wrong);
}

TEST_CASE("npz files are read and written") {
  CHECK(pt::run_detail::crc32("123456789") ==
        0xcbf43926);  // the check value of the catalogue of CRCs
  std::vector<pt::named_array> list;
  for (int t = 0; t < pt::dtype_count; ++t) {
    pt::array a({static_cast<pt::dtype>(t), {2, 3}});
    for (std::int64_t i = 0; i < a.type().bytes(); ++i)
      a.mutable_bytes()[i] =
          static_cast<std::byte>(t == static_cast<int>(pt::dtype::boolean) ? i % 2 : 7 * i);
    list.push_back({"a" + std::to_string(t), a});
  }
  list.push_back({"scalar", pt::array(2.5f)});
  list.push_back({"empty", pt::array({pt::dtype::f32, {0, 4}})});
  const std::string path = "npz_test.npz";
  pt::write_npz(path, list);
  const auto back = pt::read_npz(path);
  REQUIRE(back.size() == list.size());
  for (std::size_t i = 0; i < list.size(); ++i) {
    CHECK(back[i].name == list[i].name);
    CHECK(back[i].value.type() == list[i].value.type());
    CHECK(std::memcmp(back[i].value.bytes(), list[i].value.bytes(),
                      static_cast<std::size_t>(list[i].value.type().bytes())) == 0);
  }
  // Truncated anywhere, it is an error.
  const std::string whole = pt::run_detail::read_file(path);
  for (std::size_t n = 0; n < whole.size(); n += 37) {
    pt::run_detail::write_file(path, std::string_view(whole).substr(0, n));
    CHECK_THROWS_AS(pt::read_npz(path), pt::error);
  }
  std::remove(path.c_str());
  CHECK_THROWS_AS(pt::read_npz("no such file"), pt::error);
}
