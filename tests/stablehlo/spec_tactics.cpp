// A line of a specification does the same as its tactic in C++: the pairs in spec/README.md.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <partita/partita.hpp>
#include <partita/run/file/whole_file.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>
#include <partita/stablehlo/read.hpp>

namespace pt = partita;

namespace {

using namespace partita;

/// A training step as JAX writes it.
pt::program layers() {
  return read_stablehlo(run_detail::read_file(PARTITA_SOURCE_DIR "/examples/partita/layers.mlir"));
}
constexpr mesh eight{{"B", 4}, {"M", 2}};

pt::partitioned by_text(std::string_view lines, const mesh& m = eight) {
  const text_schedule s = read_schedule(lines);
  REQUIRE_MESSAGE(!s.error, std::string(s.error.message.view()));
  return partition(layers(), m, s.tactics, s.options());
}
std::string mistake(std::string_view lines) {
  if (const failure f = read_schedule(lines).error) return std::string(f.message.view());
  try {
    by_text(lines);
  } catch (const error& e) {
    return e.what();
  }
  return "";
}
/// Returns the name of its tactic, its actions, notes, loops, and the device-local program.
std::string all_of(const pt::partitioned& p) {
  std::string out;
  for (const auto& t : p.tactics) {
    out += std::string(t.name.view()) + ": " + std::to_string(t.last_action - t.first_action) +
           ", " + std::to_string(t.conflicts) + " conflicts\n";
    for (const auto& note : t.notes) out += std::string(note.view()) + '\n';
  }
  return out + std::string(print_actions(p.core, p.sharded()).view()) +
         std::string(print(p.device).view());
}
/// True if the page shows the line below the tactic.
bool is_documented(const std::string& cpp, const std::string& line) {
  const std::string page =
      run_detail::read_file(PARTITA_SOURCE_DIR "/include/partita/spec/README.md");
  return page.find("\n" + cpp + "\n" + line + "\n") != std::string::npos;
}

#define SAME(line, ...)                                                                        \
  {                                                                                            \
    CHECK_MESSAGE(is_documented(#__VA_ARGS__, line), #__VA_ARGS__ "\n", line);                 \
    CHECK(all_of(by_text(line)) == all_of(partition(layers(), eight, schedule(__VA_ARGS__)))); \
  }

}  // namespace

TEST_CASE("each line equals its tactic in C++") {
  SAME("BP: manual B {x: 0, y: 0}", manual("B", {{"x", 0}, {"y", 0}}, "BP"));
  SAME("manual M {params.layers.*.up: 1, params.**.down: 0}",
       manual("M", {{"params.layers.*.up", 1}, {"params.**.down", 0}}));
  SAME("manual B {params: first_divisible_dim, params.head: replicated, x: unknown}",
       manual("B", {{"params", first_divisible_dim}, {"params.head", replicated}, {"x", unknown}}));
  SAME("manual B:(1)2 {x: 0}", manual("B:(1)2", {{"x", 0}}));
  SAME("manual B {x: 0} pad", manual("B", {{"x", 0}}, uneven::pad));
  SAME("manual B {x: 0} refuse", manual("B", {{"x", 0}}, uneven::refuse));
  SAME("S: shard {x: {{B, M}}, y: {B, M}, params.**.up: {{}, M:(1)2}, params.head: replicated}",
       shard({{"x", {{"B", "M"}}},
              {"y", {"B", "M"}},
              {"params.**.up", {{}, "M:(1)2"}},
              {"params.head", replicated}},
             "S"));
}

TEST_CASE("lines that rewrite, that search, and several at once") {
  SAME("microbatch 4 {x: 0, y: 0}", microbatch(4, {{"x", 0}, {"y", 0}}));
  SAME("R: remat layers_*", remat({"layers_*"}, "R"));
  SAME("ST: amalgamated {manual B {x: 0}; manual M {params.layers: 1}}",
       amalgamated("ST", manual("B", {{"x", 0}}), manual("M", {{"params.layers", 1}})));
  SAME("automatic M, B {device: A100-80, evaluations: 50, seed: 2, overlap: false}",
       automatic({"M", "B"}, a100_80, {.evaluations = 50, .overlap = false, .seed = 2}));
  // Inside amalgamated, too, and on several lines.
  const auto all = amalgamated("all", microbatch(4, {{"x", 0}, {"y", 0}}), remat({"layers_0"}),
                               manual("B", {{"x", 0}}), shard({{"params.head", {{}, "M"}}}));
  CHECK(all_of(by_text("all: amalgamated {  # at once\n  microbatch 4 {x: 0, y: 0}\n"
                       "  remat layers_0\n  manual B {x: 0}; shard {params.head: {{}, M}}\n}\n")) ==
        all_of(partition(layers(), eight, schedule(all))));
  // Both words of the paper's FIRST_DIVISIBLE_DIM.
  CHECK(all_of(by_text("manual B {params: first_divisible}")) ==
        all_of(by_text("manual B {params: first_divisible_dim}")));
  CHECK(all_of(by_text("shard {x: {{}}, y: {}}")) != "");
}

TEST_CASE("actions are tactics") {
  struct own {
    std::string_view name() const { return "own"; }
    void apply(tactic_context& c) const {
      const int b = c.axis("B"), m = c.axis("M");
      c.for_each_selected("x", [&](const named_value& v) { c.tile(v.value, 0, b); });
      c.for_each_selected("params.layers.*.up",
                          [&](const named_value& v) { c.tile(v.value, 1, m, uneven::pad); });
      c.for_each_selected("params.embedding", [&](const named_value& v) { c.atomic(v.value, b); });
      c.propagate();
    }
  };
  const std::string expected = all_of(partition(layers(), eight, schedule(own())));
  CHECK(all_of(by_text("own: tile x 0 B; tile params.layers.*.up 1 \"M\" pad\n"
                       "atomic params.embedding B; propagate")) == expected);
  // A label begins another tactic, and so does the action after a `propagate`.
  const auto three = by_text("tile x 0 B. propagate. tile y 0 B; A: atomic params B; propagate");
  REQUIRE(three.tactics.size() == 3);
  CHECK(three.tactics[0].name.view() == "actions 1");
  CHECK(three.tactics[1].name.view() == "actions 2");
  CHECK(three.tactics[2].name.view() == "A");
}

TEST_CASE("errors have a line, the name and the nearest names") {
  const auto starts = [](std::string_view lines, std::string_view begin) {
    const std::string said = mistake(lines);
    CHECK_MESSAGE(said.starts_with(begin), said);
  };
  starts("BP: manual B {x: 0}\n\nMP: manual M {params.layer.0.up: 1}",
         "S006 schedule: 3:1: manual \"M\": no input, tag, output or inner value is named "
         "\"params.layer.0.up\"");
  CHECK(mistake("BP: manual B {xs: 0}").ends_with("did you mean \"x\"?"));
  starts("\n shard {x: {Q}}", "S001 schedule: 2:2: tactic: the mesh has no axis \"Q\"");
  starts("shard {x: {B, {}, M}}", "S034 schedule: 1:1: shard \"shard\": \"x\" [32, 16] is given ");
  starts("shard {x: {B, B}}", "S004 schedule: 1:1: shard \"shard\": \"x\" uses axis \"B\" twi");
  starts("shard {x: rows}", "X003 schedule: 1:11: layout \"rows\" is unknown; give the axes of ");
  starts("shard {x: 0}", "X003 schedule: 1:11: layout \"0\" is unknown");
  starts("shard {}", "X001 schedule: 1:9: an entry, like {x: {B}}, is expected; the line ends");
  starts("shard {x: {B}", "X001 schedule: 1:14: \"}\" is expected; the line ends");
  starts("shard {x: {{B, {}}}}", "X001 schedule: 1:16: a name is expected, not \"{}}}}\"");
  starts("manual B {x: 0}\ntile z 0 B; propagate", "S006 schedule: 2:1: no input, tag, output or ");
  starts("tile x 2 B", "S002 schedule: 1:1: ");
  starts("tile x 0", "X001 schedule: 1:9: a name is expected; the line ends");
  starts("atomic x C", "S001 schedule: 1:1: ");
  starts("microbatch 5 {x: 0}", "S003 schedule: 1:1: microbatch 5: dimension 0 of \"x\" has ");
  starts("\nremat nothing", "S006 schedule: 2:1: remat: ");
  starts("amalgamated {\n manual B {x: 0}\n manual B {z: 0}}", "S006 schedule: 3:2: manual \"B\"");
  starts("amalgamated {pipeline {stages: {a}}}", "X003 schedule: 1:14: \"pipeline\" is no");
  starts("amalgamated {passes place}", "X003 schedule: 1:14: \"passes\" is no");
  starts("amalgamated {manual B {x: 0}", "X001 schedule: 1:29: \"}\" is expected; the line ends");
  starts("amalgamated {}", "X001 schedule: 1:15: a tactic is expected; the line ends");
  starts("automatic B", "X015 schedule: 1:1: automatic searches for a device; none is given");
  starts("automatic B {device: A100}", "X014 schedule: 1:22: device \"A100\" is not in the table");
  starts("automatic B {overlap: 1}", "X001 schedule: 1:23: true or false is expected, not \"1}\"");
}
