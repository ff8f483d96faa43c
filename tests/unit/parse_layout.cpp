// Layouts parsed from text.
#include <doctest/doctest.h>

#include <string>

#include <partita/spmd/parse.hpp>
#include <partita/spmd/parse_layout.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

constexpr pt::mesh two_axes{{"B", 4}, {"M", 2}};

constexpr pt::layout cut(std::initializer_list<std::pair<int, int>> dim_axis) {
  pt::layout l;
  for (auto [dim, axis] : dim_axis) l.push_back(axis, dim);
  return l;
}
constexpr pt::layout parsed(std::string_view in, const pt::mesh& m, const pt::shape& s) {
  pt::failure error;
  const pt::layout l = pt::parse_layout(in, m, s, error);
  return error ? cut({{0, 0}, {0, 0}}) : l;
}
std::string mistake(std::string_view in, const pt::mesh& m = two_axes) {
  pt::failure error;
  CHECK(pt::parse_layout(in, m, {8, 6}, error) == pt::layout{});
  return str(error.message);
}

}  // namespace

static_assert(parsed("[{\"B\"}, {}]", two_axes, {8, 6}) == cut({{0, 0}}));
static_assert(parsed("[{}, {\"M\"}]", two_axes, {8, 6}) == cut({{1, 1}}));
static_assert(parsed("[]", two_axes, {}) == cut({}));

TEST_CASE("whitespace between tokens is free") {
  CHECK(parsed(" [ {\"M\",\n\"B\" },{}] ", two_axes, {8, 6}) == cut({{0, 1}, {0, 0}}));
  CHECK(parsed("[{\"B\"}]", {{"B", 3}, {"M", 2}}, {0}) == cut({{0, 0}}));
}

TEST_CASE("every layout of up to three axes over up to three dimensions parses back") {
  // "A" is split into 2 x 3, so it counts as two axes, and each of them has a name of its own.
  pt::mesh m{{"A", 6}, {"B \\", 2}};
  m.split(0, 2);
  REQUIRE(m.rank == 3);
  const pt::shape s{24, 24, 24};
  const int orders[][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
  int seen = 0;
  for (const auto& order : orders)
    for (int places = 0; places < 64; ++places) {
      pt::layout l;
      for (int i = 0; i < 3; ++i) {
        const int dim = places >> 2 * i & 3;  // 3: the axis replicates
        if (dim < 3) l.push_back(order[i], dim);
      }
      pt::text printed;
      pt::print_layout(printed, l, 3, m);
      pt::failure error;
      CHECK_MESSAGE(pt::parse_layout(printed, m, s, error) == l, str(printed));
      CHECK_MESSAGE(!error, str(error.message));
      ++seen;
    }
  CHECK(seen == 384);
}

TEST_CASE("parts of axes have the names of the program's text") {
  pt::mesh m;
  const pt::program p = pt::parse(
      "func @main(%x: tensor<2xf32>) attributes {mesh = {\"A\":8}} {\n"
      "  %y = all_reduce <\"A\":(4)2> %x : tensor<2xf32>\n  return %y : tensor<2xf32>\n}\n",
      m);
  REQUIRE(str(p.error.message) == "");
  CHECK(parsed("[{\"A\":(1)4}]", m, {8}) == cut({{0, 0}}));
  CHECK(parsed("[{\"A\"}]", m, {16}) == cut({{0, 0}, {0, 1}}));
  CHECK(mistake("[{\"A\":(1)2}, {}]", m) ==
        "P020 layout [{\"A\":(1)2}, {}]: axis \"A\" of size 8 has no such part; use a mesh that is "
        "split as in the program");
  CHECK(mistake("[{\"A\":(3)2}, {}]", m).substr(0, 4) == "P020");
}

TEST_CASE("P019 an unexpected token") {
  CHECK(mistake("") == "P019 layout : [ expected, found the end of the text");
  CHECK(mistake("[{\"B\"} {}]") == "P019 layout [{\"B\"} {}]: , expected, found {}]");
  CHECK(mistake("[{B}, {}]") == "P019 layout [{B}, {}]: an axis in quotes expected, found B}, {}]");
  CHECK(mistake("[\"B\", {}]").substr(0, 4) == "P019");
  CHECK(mistake("[{\"B\"}, {}") ==
        "P019 layout [{\"B\"}, {}: , expected, found the end of the text");
  CHECK(mistake("[{\"B\"}, {}] and") ==
        "P019 layout [{\"B\"}, {}] and: the end of the text expected, found and");
}
TEST_CASE("P020 unknown axis") {
  CHECK(mistake("[{\"b\"}, {}]") ==
        "P020 layout [{\"b\"}, {}]: the mesh has no axis \"b\"; known: B, M; did you mean \"B\"?");
  CHECK(mistake("[{\"B}, {}]").substr(0, 4) == "P020");
}
TEST_CASE("P021 an axis that occurs twice") {
  CHECK(mistake("[{\"B\"}, {\"B\"}]") == "P021 layout [{\"B\"}, {\"B\"}]: axis \"B\" occurs twice");
  CHECK(mistake("[{\"M\", \"M\"}, {}]").substr(0, 4) == "P021");
}
TEST_CASE("P022 a rank that differs") {
  CHECK(mistake("[{\"B\"}]") == "P022 layout [{\"B\"}]: 1 dimension; the tensor has rank 2");
  CHECK(mistake("[{}, {}, {}, {}, {}, {}, {}, {}, {}, {\"B\"}]") ==
        "P022 layout [{}, {}, {}, {}, {}, {}, {}, {}, {}, {\"B\"}]: 10 dimensions; the tensor has "
        "rank 2");
}
TEST_CASE("P023 a size that the axes do not divide") {
  CHECK(mistake("[{}, {\"B\"}]") ==
        "P023 layout [{}, {\"B\"}]: dimension 1 has size 6; it is cut into 4 shards, which do not "
        "divide it; give the size with padding");
  CHECK(mistake("[{}, {\"B\", \"M\"}]").substr(0, 4) == "P023");
}
