// The command line of `partita`, and the arrays of --run.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/cpu.hpp>

#include "../../examples/partita/arguments.hpp"
#include "../../examples/partita/options.hpp"

namespace pt = partita;

namespace {

std::string mistake(const std::vector<std::string>& words) {
  try {
    command_line::parse(words);
  } catch (const usage_error& e) {
    return e.what();
  }
  return "";
}
std::vector<std::size_t> places(const pt::program& p, const std::vector<std::string>& names) {
  return argument_names(p, names, names.size()).places("f.npz");
}
std::string refused(const pt::program& p, const std::vector<std::string>& names) {
  try {
    places(p, names);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}
pt::program two(const char* first, const char* second) {
  return pt::trace([](auto x, auto y) { return x + y; }, pt::input<float, 4>(first),
                   pt::input<float, 4>(second));
}
using list = std::vector<std::size_t>;

}  // namespace

TEST_CASE("unknown, repeated, incomplete and conflicting options are refused") {
  CHECK(mistake({"m.mlir", "s.spec", "s.conf", "--explain", "--peak", "--check", "c"}) == "");
  CHECK(mistake({"m.mlir", "s.spec", "s.conf", "--csv", "--sweep", "d", "--explain"}) == "");
  CHECK(mistake({"-", "--emit", "text", "--out", "o"}) == "");
  CHECK(mistake({"m.mlir", "--jsn"}) ==
        "option --jsn does not exist; did you mean --json?; see --help");
  for (const char* wrong : {"-json", "--json=1", "-x", "--", "--explan", "--Explain"})
    CHECK_MESSAGE(mistake({"m", wrong}).find(" does not exist") != std::string::npos, wrong);
  for (const auto& e : command_line::entries) {
    const std::string name(e.name);
    CAPTURE(name);
    if (e.flag != nullptr) {
      CHECK(mistake({"m", name, name}).find("given twice") != std::string::npos);
      continue;
    }
    const std::string value = name == "--emit" ? "text" : "v";
    CHECK(mistake({"m", name, value, name, value}) == "option " + name + " is given twice");
    CHECK(mistake({"m", name}) == "option " + name + " needs a " + std::string(e.value));
    CHECK(mistake({"m", name, "--json"}) == "option " + name + " needs a " + std::string(e.value));
    CHECK(mistake({"m", name, ""}) == "option " + name + " needs a " + std::string(e.value));
  }
  CHECK(mistake({"m", "--emit", "locl"}).ends_with("did you mean \"local\"?"));
  for (const auto& [a, b] : {std::pair{"--json", "--csv"},
                             {"--prove", "--explain"},
                             {"--environment", "--json"},
                             {"--json", "--peak"}})
    CHECK_MESSAGE(mistake({"m", a, b}).find("cannot be given together") != std::string::npos, a, b);
  CHECK(mistake({"m", "--run", "a", "--emit", "local"}).find("together") != std::string::npos);
  CHECK(mistake({"m", "--out", "o"}).starts_with("option --out needs --emit"));
  CHECK(mistake({"m", "--prove", "--check", "c"}) == "option --prove does not go with --check");
  CHECK(mistake({""}) == "the name of a file is empty");
}

TEST_CASE("arrays of a file: all by name, or all by position") {
  const auto p = two("x", "w");
  CHECK(places(p, {"w", "x"}) == list{1, 0});
  CHECK(places(p, {"a1", "a0"}) == list{1, 0});
  CHECK(places(p, {"arr_0", "arr_1"}) == list{0, 1});
  CHECK(refused(p, {"x", "a1"}).starts_with("N005 file: \"f.npz\" has no array \"w\" of "));
  CHECK(refused(p, {"a0"}).starts_with("N005 file: \"f.npz\" has no array \"a1\" of "));
  CHECK(refused(p, {"arr_0"}).starts_with("N005 file: \"f.npz\" has no array \"arr_1\" of "));
  CHECK(refused(two("x", "weight"), {"x", "weights"}).ends_with("did you mean \"weights\"?"));
  CHECK(refused(p, {"x", "w", "ww"})
            .starts_with("N007 file: \"f.npz\" has an array \"ww\" that belongs to no argument"));
  CHECK(refused(p, {}).starts_with("N005"));

  // Names that are positions of other arguments are refused, names of their own are not.
  const auto swapped = two("a1", "a0");
  CHECK(refused(swapped, {"a0", "a1"}) ==
        "N011 file: \"f.npz\": argument 0, \"a1\", can be array \"a0\" by position or \"a1\" by "
        "name; "
        "name the arrays arr_0, arr_1, ... by position");
  CHECK(places(swapped, {"arr_1", "arr_0"}) == list{1, 0});
  CHECK(places(two("a0", "a1"), {"a0", "a1"}) == list{0, 1});
  CHECK(refused(two("arr_1", "arr_0"), {"arr_0", "arr_1"}).starts_with("N011 "));
  CHECK(places(two("arr_1", "arr_0"), {"a0", "a1"}) == list{0, 1});
  CHECK(refused(two("a1", "x"), {"a0", "a1"}).starts_with("N011 "));
  CHECK(places(two("a1", "x"), {"a1", "x"}) == list{0, 1});
  CHECK(argument_names::free_prefix(swapped) == "arr_");
  CHECK(argument_names::free_prefix(p) == "a");
}
