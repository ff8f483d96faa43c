// The output of `partita --json`: layouts with parts of axes and padding, figures after each
// tactic.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>
#include <partita/stablehlo/read.hpp>

#include "../../examples/partita/pipeline.hpp"
#include "../json.hpp"

namespace pt = partita;

namespace {

/// The text between `before` and the next `after`, or "".
std::string between(const std::string& in, const std::string& before, const std::string& after) {
  const auto at = in.find(before);
  if (at == std::string::npos) return "";
  const auto begin = at + before.size();
  return in.substr(begin, in.find(after, begin) - begin);
}
/// The `dims` of an input or output.
std::string dims_of(const std::string& json, const std::string& name) {
  return between(json, "{\"name\": \"" + name + "\", \"type\": ", "}\n") + "}";
}
std::string json_of(const pt::partitioned& p, const std::string& system = "axis B 4\n") {
  const std::string json = json_report(p, pt::read_system(system));
  CHECK(json_checker(json).run() == "");
  return json;
}
constexpr auto reshaped = [](auto x) { return pt::reshape<4, 4>(abs(x)); };

}  // namespace

TEST_CASE("a part of an axis is an object, adjacent parts are one") {
  const auto p = pt::partition(pt::trace(reshaped, pt::input<float, 16>("x")), pt::mesh{{"A", 8}},
                               pt::schedule(pt::manual("A", {{"x", 0}})));
  const std::string json = json_of(p);
  CHECK(json.find("\"axes\": {\"A\": 8}") != std::string::npos);
  CHECK(dims_of(json, "x") ==
        "\"tensor<16xf32>\", \"local\": \"tensor<2xf32>\", \"shape\": [16], "
        "\"padded_shape\": [16], \"dims\": [[\"A\"]]}");
  std::string result = between(json, "\"outputs\": [\n    ", "\n  ]") + '\n';
  for (const char* field : {" \"shape\"", " \"dims\""})  // (shown on three lines)
    result.insert(result.find(field), "\n ");
  CHECK(result == R"({"name": "result", "type": "tensor<4x4xf32>", "local": "tensor<1x2xf32>",
  "shape": [4, 4], "padded_shape": [4, 4],
  "dims": [[{"axis": "A", "pre": 1, "size": 4}], [{"axis": "A", "pre": 4, "size": 2}]]}
)");
}

TEST_CASE("json: any part of an axis, in any order") {
  constexpr pt::mesh m{{"A", 12}, {"B\\", 2}};
  const auto f = pt::trace([](auto x) { return abs(x); }, pt::input<float, 48, 48>("x"));
  const auto dims = [&](const auto& tactic) {
    return between(json_of(pt::partition(f, m, pt::schedule(tactic))), "\"dims\": ", "}\n");
  };
  CHECK(dims(pt::shard({{"x", {{"A:(4)3", "A:(1)2"}, "B\\"}}})) ==
        R"([[{"axis": "A", "pre": 4, "size": 3}, {"axis": "A", "pre": 1, "size": 2}], ["B\\"]])");
  CHECK(dims(pt::shard({{"x", {{"A:(1)2", "A:(2)2"}, {"B\\", "A:(4)3"}}}})) ==
        R"([[{"axis": "A", "pre": 1, "size": 4}], ["B\\", {"axis": "A", "pre": 4, "size": 3}]])");
  CHECK(dims(pt::shard({{"x", {{"A:(1)2", "A:(2)6"}}}})) == R"([["A"], []])");
}

TEST_CASE("json: padding is listed") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); }, pt::input<float, 9, 4>("x"),
                           pt::input<float, 4, 5>("w"));
  const auto p = pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}},
                               pt::schedule(pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad),
                                            pt::manual("M", {{"w", 1}}, "MP", pt::uneven::pad)));
  const std::string json = json_of(p);
  CHECK(dims_of(json, "x").find("\"shape\": [9, 4], \"padded_shape\": [12, 4], \"dims\": "
                                "[[\"B\"], []]") != std::string::npos);
  CHECK(dims_of(json, "result").find("\"shape\": [9, 5], \"padded_shape\": [12, 6]") !=
        std::string::npos);
}

TEST_CASE("json: the figures after each tactic are those of the program after it") {
  const auto f = pt::trace([](auto x, auto w) { return sum(matmul(x, w)); },
                           pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto p = pt::partition(
      f, pt::mesh{{"B", 4}},
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::manual("B", {{"w", 0}}, "Z3"),
                   pt::manual("B", {{"w", pt::first_divisible_dim}}, "nothing new")));
  const auto on = pt::read_system("axis B 4\ndevice A100-80\n");
  const std::string json = json_of(p, "axis B 4\ndevice A100-80\n");
  std::size_t at = 0;
  for (int t = 0; t < 3; ++t) {
    const pt::partitioned then = pt::after(p, t);
    CHECK(json.find(tactic_json(p.tactics[static_cast<std::size_t>(t)], then, on)) !=
          std::string::npos);
    const auto next = json.find("{\"name\": \"" + std::string(p.tactics[t].name.view()) + '"', at);
    REQUIRE(next != std::string::npos);
    at = next;
    CHECK(between(json.substr(at), "\"all_gather\": ", ",") ==
          std::to_string(then.collectives.all_gather));
    CHECK(between(json.substr(at), "\"collective_bytes\": ", ",") ==
          std::to_string(then.cost.collective_bytes));
    CHECK(between(json.substr(at), "\"peak_bytes\": ", ",") ==
          std::to_string(then.cost.peak_bytes));
    CHECK(between(json.substr(at), "\"step_seconds\": ", ",") ==
          json_number(pt::simulate(then.device, on.on).time));
  }
  CHECK(json_checker(json_report(pt::partition(f, pt::mesh{{"B", 4}}, pt::schedule()), on)).run() ==
        "");
}

TEST_CASE("json of pipelines: figures after each tactic, global types without padding") {
  const auto module = [](const char* kind) {
    return pt::run_detail::read_file(PARTITA_SOURCE_DIR "/examples/partita/layers." +
                                     std::string(kind));
  };
  const pt::program p = pt::read_stablehlo(module("mlir"));
  const auto schedule = pt::read_schedule(module("spec"));
  const auto on = pt::read_system(module("conf"));
  pipelines::session s(p, schedule, on);
  const pt::pipelined made = s.partition();
  const std::string json = pipelines::json_report(s, made);
  CHECK(json_checker(json).run() == "");
  for (std::size_t t = 0; t < s.tactics(); ++t) {
    const pt::pipelined then = t + 1 < s.tactics() ? s.after(t) : made;
    CHECK(json.find(pipelines::tactic_json(s, t, then)) != std::string::npos);
    CHECK(between(json.substr(json.find("{ \"name\": " + json_text(s.name(t)))),
                  "\"all_reduce\": ", ",") == std::to_string(then.collectives.all_reduce));
  }
  for (int i = 0; i < p.input_count(); ++i)
    CHECK(json.find("\"name\": " + json_text(p.input_name(i)) + ", \"type\": \"" +
                    std::string(pt::concat(p.input_type(i)).view())) != std::string::npos);
}
