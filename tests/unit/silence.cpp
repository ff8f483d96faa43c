// Reports note every tactic that does nothing, or not what it seems to request.
#include <doctest/doctest.h>

#include <string_view>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

bool says(const pt::text& report, std::string_view line) {
  return report.view().find(line) != std::string_view::npos;
}
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto rows = pt::manual("B", {{"x", 0}}, "rows");
constexpr auto nothing = pt::manual("M", {{"x", pt::unknown}}, "nothing");
constexpr auto source = [] {
  return pt::trace([](auto x) { return x + x; }, pt::input<float, 8, 4>("x"));
};
constexpr auto twice = [] { return pt::partition(source(), mesh, pt::schedule(rows, rows)); };

template <class Model>
pt::vec<pt::text> notes(const Model& model) {
  return pt::clamped_indices(pt::trace(model, pt::input<float, 8, 4>("x")));
}

}  // namespace

static_assert(twice().tactics[0].notes.empty());
static_assert(twice().tactics[1].notes[0] ==
              "it changes nothing; an earlier tactic has the same name");
static_assert(pt::clamped_indices(source()).empty());

TEST_CASE("a tactic that changes nothing is noted, and whether it occurs twice") {
  const pt::partitioned p = pt::partition(source(), mesh, pt::schedule(rows, nothing, rows));
  REQUIRE(p.tactics.size() == 3);
  CHECK(p.tactics[0].notes.empty());
  REQUIRE(p.tactics[1].notes.size() == 1);
  CHECK(p.tactics[1].notes[0] == "it changes nothing");
  CHECK(says(pt::report(p), "  note: it changes nothing; an earlier tactic has the same name\n"));
}

TEST_CASE("a tactic that places names which others have not placed is not idle") {
  const auto columns = pt::manual("M", {{"x", 1}}, "rows");  // the name alone makes no note
  const pt::partitioned p = pt::partition(source(), mesh, pt::schedule(rows, columns));
  CHECK(p.tactics[1].notes.empty());
}

TEST_CASE("a tactic that rewrites the program is not idle") {
  const pt::partitioned p =
      pt::partition(source(), mesh, pt::schedule(pt::microbatch(2, {{"x", 0}}, "steps"), rows));
  for (const auto& note : p.tactics[0].notes) CHECK(!says(note, "changes nothing"));
}

TEST_CASE("an empty schedule is noted") {
  const std::string_view note =
      "note: the schedule is empty: every device holds and computes everything\n";
  CHECK(says(pt::report(pt::partition(source(), mesh, pt::schedule())), note));
  CHECK(!says(pt::report(pt::partition(source(), mesh, pt::schedule(rows))), note));
}

TEST_CASE("constant indices that are clamped are noted") {
  using std::int32_t;
  const auto at = [](auto x, int32_t i) { return pt::literal<int32_t>(x, {i}); };
  const auto box = [&](int32_t row) {
    return notes(
        [&](auto x) { return pt::dynamic_slice<pt::axes<3, 4>>(x, at(x, row), at(x, 0)); });
  };
  CHECK(box(5).empty());
  REQUIRE(box(6).size() == 1);
  CHECK(says(box(6)[0], ": start 6 along dimension 0 of tensor<8x4xf32> is clamped to 5"));
  CHECK(says(box(-1)[0], ": start -1 along dimension 0 of tensor<8x4xf32> is clamped to 0"));

  const auto update = notes([&](auto x) {
    return pt::dynamic_update_slice(x, pt::slice<0, 0, 2>(x), at(x, 7), at(x, 0));
  });
  REQUIRE(update.size() == 1);
  CHECK(says(update[0], "dynamic_update_slice %"));
  CHECK(says(update[0], ": start 7 along dimension 0 of tensor<8x4xf32> is clamped to 6"));

  const auto rows_of = [&](int32_t a, int32_t b) {
    return notes([&](auto x) { return pt::take<0>(x, pt::literal<int32_t, 2>(x, {a, b})); });
  };
  CHECK(rows_of(0, 7).empty());
  REQUIRE(rows_of(0, 8).size() == 1);
  CHECK(says(rows_of(0, 8)[0], ": index 8 along dimension 0 of tensor<8x4xf32> is clamped to 7"));
  CHECK(says(rows_of(-2, 3)[0], ": index -2 along dimension 0 of tensor<8x4xf32> is clamped to 0"));
}

TEST_CASE("indices that are computed or passed in are not noted") {
  const pt::program p = pt::trace([](auto x, auto i) { return pt::take<0>(x, i); },
                                  pt::input<float, 8, 4>("x"), pt::input<std::int32_t, 3>("i"));
  CHECK(pt::clamped_indices(p).empty());
}

TEST_CASE("the number of notes is limited") {
  const pt::program p = pt::trace(
      [](auto x) {
        const auto i = pt::literal<std::int32_t>(x, {9}), zero = pt::literal<std::int32_t>(x, {0});
        const auto y = pt::dynamic_slice<pt::axes<2, 4>>(x, i, zero);
        return y + pt::dynamic_slice<pt::axes<2, 4>>(x + x, i, zero);
      },
      pt::input<float, 8, 4>("x"));
  CHECK(pt::clamped_indices(p).size() == 2);
  CHECK(pt::clamped_indices(p, 1).size() == 1);
}
