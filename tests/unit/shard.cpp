// Layouts over several axes at once.
#include <string>

#include <doctest/doctest.h>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;
using unit::thrown;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto product = [](auto x, auto w) { return pt::output("y", pt::tag("h", matmul(x, w))); };
constexpr auto traced = [] {
  return pt::trace(product, pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w"));
};
template <class... Tactics>
std::string layout_of(const char* name, const Tactics&... tactics) {
  const auto p = pt::partition(traced(), mesh, pt::schedule(tactics...));
  for (std::size_t i = 0; i < p.device.outputs.size(); ++i)
    if (std::string_view(name) == "y") {
      pt::text t;
      pt::print_layout(t, p.device.outputs[i], 2, &p.device.mesh);
      return str(t);
    }
  for (int i = 0; i < p.source.input_count(); ++i)
    if (p.source.input_name(i) == name) {
      pt::text t;
      pt::print_layout(t, p.device.inputs[static_cast<std::size_t>(i)], 2, &p.device.mesh);
      return str(t);
    }
  return "?";
}

// Over both axes, in one tactic, at compile time.
constexpr auto both = [] {
  return pt::partition(traced(), mesh, pt::schedule(pt::shard({{"x", {"B"}}, {"w", {{}, "M"}}})));
};
static_assert(pt::check<both>.collectives == pt::collectives{});
static_assert(pt::check<both>.output("y").local_shape == pt::shape{4, 8});

}  // namespace

TEST_CASE("layouts are given by dimension, major to minor") {
  CHECK(layout_of("x", pt::shard({{"x", {"B", "M"}}})) == R"([{"B"}, {"M"}])");
  CHECK(layout_of("x", pt::shard({{"x", {{"B", "M"}}}})) == R"([{"B", "M"}, {}])");
  CHECK(layout_of("x", pt::shard({{"x", {{"M", "B"}}}})) == R"([{"M", "B"}, {}])");
  CHECK(layout_of("x", pt::shard({{"x", {{}, {"M", "B"}}}})) == R"([{}, {"M", "B"}])");
  CHECK(layout_of("x", pt::shard({{"x", {"B:(1)2", "B:(2)2"}}})) == R"([{"B":(1)2}, {"B":(2)2}])");
  CHECK(layout_of("x", pt::shard({{"x", pt::replicated}, {"h", {{"B", "M"}}}})) == "[{}, {}]");
  CHECK(layout_of("x", pt::shard({{"h", {{"B", "M"}}}})) == R"([{"B", "M"}, {}])");
  // Later tactics decide about axes and dimensions that are not named.
  CHECK(layout_of("x", pt::shard({{"x", {{}, "M"}}}), pt::manual("B", {{"x", 0}})) ==
        R"([{"B"}, {"M"}])");
}
TEST_CASE("a value has one layout, and a tag of it another") {
  CHECK(layout_of("y", pt::shard({{"x", {{"B", "M"}}}, {"y", {{"M", "B"}}}})) ==
        R"([{"M", "B"}, {}])");
  CHECK(layout_of("x", pt::shard({{"x", {{"B", "M"}}}, {"y", {{"M", "B"}}}})) ==
        R"([{"B", "M"}, {}])");
  // An input that is also an output leaves in another layout if it is tagged.
  const auto f = pt::trace([](auto x) { return pt::output("y", pt::tag("y", x)); },
                           pt::input<float, 8, 8>("x"));
  const auto p =
      pt::partition(f, mesh, pt::schedule(pt::shard({{"x", {"B", "M"}}, {"y", {"M", "B"}}})));
  CHECK(p.input("x").local_shape == pt::shape{2, 4});
  CHECK(p.output("y").local_shape == pt::shape{4, 2});
}
TEST_CASE("next states have the layout of their inputs") {
  const auto f = pt::trace([](auto w, auto x) { return pt::output("w", w - x); },
                           pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("x"));
  const auto p =
      pt::partition(f, mesh, pt::schedule(pt::shard({{"w", {"B", "M"}}, {"x", {"M", "B"}}})));
  CHECK(p.output("w").local_shape == pt::shape{2, 4});
}
TEST_CASE("invalid layouts are refused") {
  const auto mistake = [](const auto&... tactics) {
    return thrown([&] { (void)pt::partition(traced(), mesh, pt::schedule(tactics...)); });
  };
  CHECK(mistake(pt::shard({{"x", {"Q"}}})).substr(0, 4) == "S001");
  CHECK(mistake(pt::shard({{"x", {"B", {}, "M"}}}, "L")) ==
        "S034 shard \"L\": \"x\" [16, 8] is given the axes of 3 dimensions; it has 2");
  CHECK(
      mistake(pt::shard({{"x", {"B", "B"}}}, "L")) ==
      "S004 shard \"L\": \"x\" uses axis \"B\" twice, for dimensions 0 and 1; remove one of them");
  CHECK(
      mistake(pt::shard({{"x", {{"M", "B", "B"}}}}, "L")) ==
      "S004 shard \"L\": \"x\" uses axis \"B\" twice, for dimensions 0 and 0; remove one of them");
  CHECK(mistake(pt::shard({{"w", {{"B", "M"}, "B"}}})).substr(0, 4) == "S004");
  CHECK(mistake(pt::shard({{"z", {"B"}}}, "L")).substr(0, 53) ==
        "S006 shard \"L\": no input, tag or output is named \"z\" ");
  CHECK(mistake(pt::shard({{"x", {"B"}}, {"x", {"M"}}}, "L")) ==
        "S007 shard \"L\": two entries are named \"x\"");
  CHECK(mistake(pt::shard({{"x", {{"B", "B", "B", "B", "B"}, {"B", "B", "B", "B"}}}}, "L")) ==
        "S033 shard \"L\": \"x\" has more than 8 axes, the maximum of a mesh");
}
