// One test per error code: a user's mistake at run time and the full text of its message.
#include <doctest/doctest.h>

#include <cstdint>
#include <limits>
#include <string>
#include <tuple>
#include <vector>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;
using unit::thrown;

namespace {

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};

pt::program chain() {
  return pt::trace([](auto x, auto w1, auto w2) { return matmul(tag("h", matmul(x, w1)), w2); },
                   pt::input<float, 10, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
}
template <class... T>
std::string partitioned(T... tactics) {
  return thrown([&] { pt::partition(chain(), mesh, pt::schedule(tactics...)); });
}

}  // namespace

TEST_CASE("S001 unknown mesh axis") {
  CHECK(partitioned(pt::manual("Batch", {{"x", 0}})) ==
        "S001 tactic: the mesh has no axis \"Batch\"; known: B, M");
  CHECK(partitioned(pt::manual("m", {{"x", 0}})) ==
        "S001 tactic: the mesh has no axis \"m\"; known: B, M; did you mean \"B\"?");
}
TEST_CASE("S002 dimension out of range") {
  CHECK(partitioned(pt::manual("B", {{"w1", 2}})) ==
        "S002 tile: dimension 2 of \"w1\" is out of range; its shape is [8, 16]");
  CHECK(partitioned(pt::manual("B", {{"w1", -1}})) ==
        "S002 tile: dimension -1 of \"w1\" is out of range; its shape is [8, 16]");
}
TEST_CASE("S003 the axis does not divide the dimension") {
  CHECK(partitioned(pt::manual("B", {{"x", 0}})) ==
        "S003 tile: dimension 0 of \"x\" has size 10; axis \"B\" has size 4, which does not divide "
        "it; take \"B:(1)2\", choose another dimension or mesh, or pad it with uneven::pad");
  CHECK(
      partitioned(pt::manual("M", {{"x", 0}}), pt::manual("B", {{"x", 0}})) ==
      "S003 tile: dimension 0 of \"x\" has size 5 (10 before earlier tiling); axis \"B\" has size "
      "4, which does not divide it; choose another dimension or mesh, or pad it with uneven::pad");
  CHECK(partitioned(pt::manual("B", {{"x", 0}}, pt::uneven::refuse)).substr(0, 4) == "S003");
  // For a padded dimension, the padded size counts.
  CHECK(
      partitioned(pt::manual("B", {{"x", 0}}, pt::uneven::pad), pt::manual("M", {{"x", 0}})) ==
      "S003 tile: dimension 0 of \"x\" has size 3 (10, padded to 12, before earlier tiling); axis "
      "\"M\" has size 2, which does not divide it; choose another dimension or mesh, or pad it "
      "with uneven::pad");
}
TEST_CASE("S024 one tactic pads a dimension that another one refuses to pad") {
  const auto BP = pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad);
  const auto rows = pt::manual("M", {{"result", 0}}, "rows", pt::uneven::refuse);
  CHECK(partitioned(BP, rows) ==
        "S024 tile: dimension 0 of \"result\" has size 10; tactic 2 (\"rows\") refuses to pad it, "
        "tactic 1 (\"BP\") pads it to 12 with dimension 0 of \"x\" for axis \"B\" of size 4; "
        "choose one policy for both");
  CHECK(partitioned(rows, BP) ==
        "S024 tile: dimension 0 of \"x\" has size 10; tactic 2 (\"BP\") pads it for axis \"B\" of "
        "size 4, tactic 1 (\"rows\") refuses to pad dimension 0 of \"result\", which grows "
        "with it; choose one policy for both");
  const auto columns = pt::manual("M", {{"w1", 1}}, "columns", pt::uneven::refuse);
  CHECK(partitioned(BP, columns) == "no error");  // no conflict
  CHECK(partitioned(columns, BP) == "no error");
  const auto even = pt::manual("M", {{"x", 0}}, "even", pt::uneven::pad);  // nothing to pad
  CHECK(partitioned(rows, even) == "no error");
}
TEST_CASE("S025 steps of a padded dimension") {
  pt::core_program core(chain(), mesh);
  CHECK(!core.tile(core.p.inputs[0], 0, 0, pt::uneven::pad));
  core.propagate();
  CHECK(
      std::string(pt::in_sequence(core, 1).p.error.message.view()) ==
      "S025 in_sequence: dimension 0 of \"x\" has size 10 and is padded for axis \"B\" of size 4; "
      "steps need a size that they divide");
}
TEST_CASE("S004 an axis is used twice: the message names the tactic and a fix") {
  using pt::manual;
  CHECK(partitioned(manual("M", {{"x", 0}}, "rows"), manual("M", {{"x", 1}})) ==
        "S004 tile: \"x\" is already sliced on dimension 0 along axis \"M\", by tactic 1 "
        "(\"rows\"); it cannot be sliced on dimension 1 too; leave out one of the two, or take "
        "axis \"B\"");
  CHECK(partitioned(manual("M", {{"w1", 1}}), manual("M", {{"x", 0}}, "rows"),
                    manual("M", {{"x", 1}})) ==
        "S004 tile: \"x\" is already sliced on dimension 0 along axis \"M\", by tactic 2 "
        "(\"rows\"); it cannot be sliced on dimension 1 too; leave out one of the two, or take "
        "axis \"B\"");
  CHECK(partitioned(manual("M", {{"x", pt::replicated}}, "keep"), manual("M", {{"x", 1}})) ==
        "S004 tile: \"x\" is kept replicated along axis \"M\", by tactic 1 (\"keep\"); no action "
        "undoes an earlier one; leave out one of the two, or take axis \"B\"");
  CHECK(partitioned(manual("M", {{"x", 0}}), manual("M", {{"x", 0}})) == "no error");
}
TEST_CASE("S004, S005: the message suggests another order where propagation is the cause") {
  using pt::manual;
  const auto rows = manual("M", {{"x", 0}}, "rows"), columns = manual("M", {{"h", 1}}, "columns");
  CHECK(partitioned(rows, columns) ==
        "S004 tile: \"h\" is already sliced on dimension 0 along axis \"M\", by propagation in "
        "tactic 1 (\"rows\"); it cannot be sliced on dimension 1 too; put this tactic before that "
        "one, or take axis \"B\"");
  CHECK(partitioned(columns, rows) == "no error");
  const auto whole = manual("M", {{"h", pt::replicated}});
  CHECK(partitioned(rows, whole) ==
        "S005 atomic: \"h\" is already sliced on dimension 0 along axis \"M\", by propagation in "
        "tactic 1 (\"rows\"); no action undoes an earlier one; put this tactic before that one");
  CHECK(partitioned(whole, rows) == "no error");
}
TEST_CASE(
    "S004: another axis is named only where it divides what is left; else the mesh can change") {
  const auto twice = [](const pt::mesh& m) {
    return thrown([&] {
      pt::partition(chain(), m,
                    pt::schedule(pt::manual("a", {{"w1", 0}}, "rows"), pt::manual("b", {{"w1", 1}}),
                                 pt::manual("a", {{"w1", 1}})));
    });
  };
  const std::string said =
      "S004 tile: \"w1\" is already sliced on dimension 0 along axis \"a\", by tactic 1 "
      "(\"rows\"); "
      "it cannot be sliced on dimension 1 too; leave out one of the two, or ";
  CHECK(twice({{"a", 8}, {"b", 2}}) == said + "give each a part of it: \"a:(1)2\" and \"a:(2)4\"");
  CHECK(twice({{"a", 2}, {"b", 8}, {"c", 4}}) == said + "give the mesh another axis");
  CHECK(twice({{"a", 8}, {"b", 2}, {"c", 1}, {"d", 4}}) == said + "take axis \"d\"");
}
TEST_CASE("S005 already sliced along the axis") {
  CHECK(
      partitioned(pt::manual("M", {{"x", 0}}, "rows"), pt::manual("M", {{"x", pt::replicated}})) ==
      "S005 atomic: \"x\" is already sliced on dimension 0 along axis \"M\", by tactic 1 "
      "(\"rows\"); no action undoes an earlier one; leave out one of the two");
}
TEST_CASE("S004 in a replayed log: its lines count as tactics") {
  const pt::program p = chain();
  pt::core_program c(p, mesh);
  CHECK(
      str(pt::replay(c, p, "tile<%x, 0, \"M\">; propagate;\ntile<%h, 1, \"M\">;").message) ==
      "S004 tile: \"h\" is already sliced on dimension 0 along axis \"M\", by propagation in "
      "tactic 1; it cannot be sliced on dimension 1 too; put this tactic before that one, or take "
      "axis \"B\"");
}
TEST_CASE("S006 no value has that name or prefix") {
  CHECK(partitioned(pt::manual("M", {{"w3", 0}})) ==
        "S006 manual(\"M\"): no input, tag or output is named \"w3\" or is below it; known: x, "
        "w1, w2, h, result; did you mean \"w1\"?");
  CHECK(partitioned(pt::manual("M", {{"w", 0}})) ==
        "S006 manual(\"M\"): no input, tag or output is named \"w\" or is below it; known: x, w1, "
        "w2, h, result; did you mean \"x\"?");
}
TEST_CASE("suggestions for a name may complete a prefix") {
  const std::string_view names[] = {"params.layers_0.attn.sub", "params.layers_0.up",
                                    "params.layers_1.up", "x"};
  const auto suggested = [&](std::string_view wanted, bool below) {
    const std::string all = str(pt::known_names(wanted, names, 8, below));
    const std::size_t at = all.find("; did you mean ");
    return at == std::string::npos ? std::string() : all.substr(at + 15);
  };
  CHECK(suggested("params.layers_7", true) == "\"params.layers_0\"?");
  CHECK(suggested("params.layers_1.upp", true) == "\"params.layers_1.up\"?");
  CHECK(suggested("parms", true) == "\"params\"?");
  CHECK(suggested("parms", false).empty());
  // A missing first part of a name.
  CHECK(suggested("layers_1.up", true) == "\"params.layers_1.up\"?");
  CHECK(suggested("up", false) == "\"params.layers_0.up\"?");
  CHECK(suggested("attn", true) == "\"params.layers_0.attn\"?");
  CHECK(suggested("something else", true).empty());
}
TEST_CASE("S008 an action text that does not parse, and invalid values in it") {
  const auto replayed = [](std::string_view script) {
    const pt::program p = chain();
    pt::core_program c(p, mesh);
    return str(pt::replay(c, p, script).message);
  };
  CHECK(replayed("tile<%x, 1, \"M\">; propagate;\n") == "");
  CHECK(replayed("") == "");
  CHECK(replayed("slice<%x>;") ==
        "S008 replay: cannot read the action text: \"slice\" is not an action; tile, atomic, "
        "propagate, first or settle expected");
  CHECK(replayed("tile(%x, 1, \"M\");") ==
        "S008 replay: cannot read the action text: \"tile(%x,\" is not an action; tile, atomic, "
        "propagate, first or settle expected");
  CHECK(replayed("tile<x, 1, \"M\">;") ==
        "S008 replay: cannot read the action text at character 4: \"<%\" expected, found \"<x, 1, "
        "\"M\">;\"");
  CHECK(replayed("tile<%x, -1, \"M\">;") == "S008 replay: \"-1\" is not a dimension");
  CHECK(replayed("tile<%x, , \"M\">;") == "S008 replay: \"\" is not a dimension");
  CHECK(replayed("tile<%x, 4294967297, \"M\">;") ==
        "S008 replay: \"4294967297\" is not a dimension");
  CHECK(replayed("tile<%x, 1, \"M\"") ==
        "S008 replay: cannot read the action text at character 15: \">\" expected, found \"\"");
  CHECK(replayed("tile<%y, 1, \"M\">;") == "S006 replay: the program has no value \"%y\"");
  CHECK(replayed("atomic<%x, \"N\">;") ==
        "S001 replay: the mesh has no axis \"N\"; known: B, M; did you mean \"B\"?");
  CHECK(replayed("tile<%x, 0, \"B\">;").substr(0, 4) == "S003");
  CHECK(replayed("tile<%x, 0, \"M\", refuse>; tile<%x, 1, \"B\", pad>; propagate;") == "");
  CHECK(replayed("tile<%x, 0, \"B\", pads>;") ==
        "S008 replay: cannot read the action text at character 15: \">\" expected, found "
        "\", pads>;\"");
  CHECK(replayed("atomic<%x, \"B\", pad>;").substr(0, 4) == "S008");
  // Tactics have no names here.
  CHECK(replayed("tile<%x, 0, \"B\", pad>; propagate;\ntile<%h, 0, \"M\", refuse>;") ==
        "S024 tile: dimension 0 of \"h\" has size 10; tactic 2 refuses to pad it, tactic 1 "
        "pads it to 12 with dimension 0 of \"x\" for axis \"B\" of size 4; choose one policy "
        "for both");
}

TEST_CASE("S006, S015 invalid scopes of remat") {
  CHECK(partitioned(pt::remat({"w3"})) ==
        "S006 remat: no input, tag or inner value is named \"w3\" or is below it; known: x, w1, "
        "w2, h; did you mean \"w1\"?");
  CHECK(partitioned(pt::remat({"w1"})) ==
        "S015 remat: the program has no derivative that reads a value under \"w1\"; name values "
        "between the inputs of a model and its loss, or remove the tactic");
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto y = matmul(x, w);
        return std::tuple{pt::output("g", pt::grad([&](auto v) { return sum(matmul(x, v)); }, w)),
                          pt::output("y", y * y)};
      },
      pt::input<float, 4, 4>("x"), pt::input<float, 4, 4>("w"));
  CHECK_THROWS_WITH(
      pt::partition(f, mesh, pt::schedule(pt::remat({"w"}))),
      "S015 remat: no derivative reads a value under \"w\" whose memory could be freed; name "
      "values between the inputs of a model and its loss, or remove the tactic");
}
TEST_CASE("S002, S003, S006, S010 to S013 invalid microbatches") {
  CHECK(partitioned(pt::microbatch(2, {{"x", 2}})) ==
        "S002 microbatch(2): dimension 2 of \"x\" is out of range; its shape is [10, 8]");
  CHECK(partitioned(pt::microbatch(2, {{"x", -1}})) ==
        "S002 microbatch(2): dimension -1 of \"x\" is out of range; its shape is [10, 8]");
  CHECK(partitioned(pt::microbatch(4, {{"x", 0}})) ==
        "S003 microbatch(4): dimension 0 of \"x\" has size 10, which 4 does not divide; choose "
        "another number of steps");
  CHECK(partitioned(pt::microbatch(2, {{"h", 0}})) ==
        "S006 microbatch(2): no input is named \"h\" or is below it; known: x, w1, w2; did you "
        "mean \"x\"?");
  CHECK(partitioned(pt::microbatch(0, {{"x", 0}})) ==
        "S010 microbatch(0): at least one step is needed");
  CHECK(partitioned(pt::microbatch(-2, {{"x", 0}})) ==
        "S010 microbatch(-2): at least one step is needed");
  CHECK(partitioned(pt::microbatch(20, {{"x", 0}})) ==
        "S003 microbatch(20): dimension 0 of \"x\" has size 10, which 20 does not divide; choose "
        "another number of steps");
  CHECK(partitioned(pt::microbatch(std::int64_t{1} << 40, {{"x", 0}})) ==
        "S003 microbatch(1099511627776): dimension 0 of \"x\" has size 10, which 1099511627776 "
        "does not divide; choose another number of steps");
  CHECK(partitioned(pt::microbatch(2, {{"x", 0}}), pt::microbatch(5, {{"x", 0}})) ==
        "S011 microbatch(5): dimension 0 of \"x\" is already in a loop of microbatches; a "
        "dimension can be sliced only once");
  CHECK(partitioned(pt::microbatch(2, {{"x", 0}, {"x", 0}})) ==
        "S011 microbatch(2): dimension 0 of \"x\" is already in a loop of microbatches; a "
        "dimension can be sliced only once");
  CHECK(partitioned(pt::microbatch(2, {{"x", 0}, {"w1", 1}})) ==
        "S012 microbatch(2): dot_general of tensor<10x16xf32>: dimension 0 of operand 0 (\"x\") is "
        "sliced, dimension 1 of operand 1 (\"w1\") is sliced; they cannot be one loop");
  CHECK(thrown([] {
          const auto f = pt::trace([](auto x) { return sort<0>(x); }, pt::input<float, 4>("x"));
          pt::partition(f, mesh, pt::schedule(pt::microbatch(2, {{"x", 0}})));
        }) == "S013 microbatch(2): no op is computed slice by slice for \"x\"");
  CHECK(partitioned(pt::microbatch(2, {{"x", 0}}), pt::manual("B", {{"x", 0}})).substr(0, 4) ==
        "S003");
}

TEST_CASE("S027 an invalid limit for strict") {
  const auto strict = [](std::int64_t bytes) {
    return thrown([&] { pt::partition(chain(), mesh, pt::schedule(), {.strict = bytes}); });
  };
  CHECK(strict(-2) ==
        "S027 strict: the limit is -2 bytes; give 0 or more, or pt::partition_options::off (-1)");
  CHECK(strict(std::numeric_limits<std::int64_t>::min()).substr(0, 4) == "S027");
  CHECK(strict(pt::partition_options::off) == "no error");
  CHECK(strict(0).substr(0, 4) == "S020");
}

// op_errors.cpp has the errors of shape rules. These are the errors of the typed language.
TEST_CASE("S101 contracted extents differ") {
  CHECK(thrown([] {
          pt::trace([](auto x, auto w) { return matmul(x, w); },
                    pt::input<float, pt::dyn, pt::dyn>("x", 4, 6),
                    pt::input<float, pt::dyn, 3>("w", 5));
        }) ==
        "S101 matmul: contracted extents differ: dimension 1 of lhs tensor<4x6xf32> has size "
        "6, dimension 0 of rhs tensor<5x3xf32> has size 5");
}
TEST_CASE("S103 shapes differ") {
  CHECK(thrown([] {
          pt::trace([](auto x, auto y) { return x + y; }, pt::input<float, pt::dyn>("x", 4),
                    pt::input<float, pt::dyn>("y", 5));
        }) == "S103 add: shapes [4] and [5] differ and do not broadcast");
}
TEST_CASE("S116 a dynamic extent is missing") {
  CHECK(thrown([] {
          pt::trace([](auto x) { return x; }, pt::input("x", pt::tensor<float, 4, pt::dyn>{}));
        }) == "S116 trace: input \"x\" has shape [4, ?]; give its dynamic extents, all 0 or above");
  CHECK(thrown([] { pt::trace([](auto x) { return x; }, pt::input<float, pt::dyn>("x", -3)); }) ==
        "S116 trace: input \"x\" has shape [-3]; give its dynamic extents, all 0 or above");
}

TEST_CASE("M001 to M004: meshes") {
  const auto on = [](pt::mesh m) {
    return thrown([&] { pt::partition(chain(), m, pt::schedule(pt::manual("B", {{"w1", 0}}))); });
  };
  CHECK(on({{"B", 0}}) == "M001 mesh: axis \"B\" has size 0; an axis has at least one device");
  CHECK(on({{"a", 1},
            {"b", 1},
            {"c", 1},
            {"d", 1},
            {"e", 1},
            {"f", 1},
            {"g", 1},
            {"h", 1},
            {"B", 1}}) == "M002 mesh: 9 axes; at most 8 are supported");
  CHECK(on({{"B", 2}, {"B", 4}}) == "M003 mesh: two axes are named \"B\"");
  CHECK(on({{"B", 2}, {"", 4}}) ==
        "M004 mesh: the name of axis 1 has 0 characters; 1 to 31 are allowed");
  CHECK(on({{"B", 2}, {"an axis whose name is far too long", 4}}) ==
        "M004 mesh: the name of axis 1 has 34 characters; 1 to 31 are allowed");
}

TEST_CASE("P001 a program that was assembled by hand") {
  pt::program p = chain();
  p.operand_list[0] = 99;
  CHECK(
      str(pt::verify(p).message) ==
      "P001 internal error: op 3 (dot_general) uses value 99 before its definition; please report");
  p = chain();
  p.types[3].shape[0] = 11;
  CHECK(
      str(pt::verify(p).message) ==
      "P001 internal error: op 3 (dot_general) has type tensor<11x16xf32>, its shape rule returns "
      "tensor<10x16xf32>; please report");
  p = chain();
  p.producers[3] = 2;
  CHECK(str(pt::verify(p).message) ==
        "P001 internal error: op 3 does not define its result; please report");
  p = chain();
  p.types[1].shape[0] = 9;
  CHECK(str(pt::verify(p).message).substr(0, 4) == "S101");
}
TEST_CASE("S104, S152: collectives of device programs that were assembled by hand") {
  const pt::mesh m{{"B", 2}};
  const auto verified = [&](pt::collective::kind_type kind, pt::combiner how, pt::dtype t) {
    pt::device_program d;
    d.mesh = m;
    pt::collective what;
    what.kind = kind;
    what.combine = how;
    what.axes.push_back(0, kind == pt::collective::reduce_scatter ? 0 : pt::no_dim);
    what.map.shift = 1;
    const pt::tensor_type type{t, {4}};
    const pt::value_id x = d.local.append(pt::def<pt::op::parameter>, {}, {}, type);
    d.local.inputs.push_back(x);
    d.local.outputs.push_back({append(d.local, what, x, {t, what.after(type.shape, m)}), {}});
    return str(pt::verify(d).message);
  };
  using enum pt::combiner;
  for (auto kind :
       {pt::collective::all_reduce, pt::collective::reduce_scatter, pt::collective::permute})
    for (auto t :
         {pt::dtype::f32, pt::dtype::bf16, pt::dtype::i32, pt::dtype::u8, pt::dtype::boolean})
      for (auto how : {add, max, min, multiply, logical_and, logical_or}) {
        const bool bits = how == logical_and || how == logical_or;
        const bool zero = kind == pt::collective::permute && how == add;
        const bool good = zero || (bits ? !pt::is_floating(t) : t != pt::dtype::boolean);
        const auto words = pt::concat(
            "S104 ", name_of(kind), ": element type ", name_of(t),
            bits ? " is neither i1 nor an integer type" : " is not a number", " (op 1: ");
        CHECK(verified(kind, how, t).substr(0, words.size()) == (good ? "" : str(words)));
      }
  CHECK(
      verified(pt::collective::all_reduce, stack, pt::dtype::f32).substr(0, 102) ==
      "S152 all_reduce: combiner 0 is not one of add (1), max (2), min (3), multiply (4), and (5), "
      "or (6) (op");
  // In the body of a loop.
  pt::device_program d;
  d.local = pt::parse(
      "func @main(%x: tensor<4xi1>) attributes {mesh = {\"B\":2}} {\n"
      "  %y = scan(%x) {length=2, carried=1} do (%i: tensor<i32>, %c: tensor<4xi1>) {\n"
      "    %z = all_reduce <@or> <\"B\"> %c : tensor<4xi1>\n    return %z : tensor<4xi1>\n"
      "  } : tensor<4xi1>\n  return %y : tensor<4xi1>\n}\n",
      d.mesh);
  CHECK(str(pt::verify(d).message) == "");
  d.local.regions[0].attr_list[0] = static_cast<std::int64_t>(add);
  CHECK(str(pt::verify(d).message) ==
        "S104 all_reduce: element type i1 is not a number (op 2: all_reduce(tensor<4xi1>) -> "
        "tensor<4xi1>)");
}
TEST_CASE("P002 two inputs of one name") {
  static constexpr auto sum = [](auto x, auto y) { return x + y; };
  CHECK(thrown([] { pt::trace(sum, pt::input<float, 4>("x"), pt::input<float, 4>("x")); }) ==
        "P002 trace: two inputs are named \"x\"");
  pt::program p = pt::trace(sum, pt::input<float, 4>("x"), pt::input<float, 4>("y"));
  p.op(1).name = p.op(0).name;
  CHECK(str(pt::verify(p).message) == "P002 trace: two inputs are named \"x\"");
}
TEST_CASE("P003 a tag with the name of another tag or of an input") {
  CHECK(thrown([] {
          pt::trace([](auto x) { return tag("h", tag("h", tag("h.1", x))); },
                    pt::input<float, 4>("x"));
        }) == "P003 trace: tag \"h.1\" has the name of another tag or of an input");
  CHECK(thrown([] { pt::trace([](auto x) { return tag("x", x); }, pt::input<float, 4>("x")); }) ==
        "P003 trace: tag \"x\" has the name of another tag or of an input");
}
TEST_CASE("P004 two outputs of one name") {
  CHECK(thrown([] {
          pt::trace(
              [](auto x) {
                return std::tuple{pt::output("y", x), pt::output("y", x)};
              },
              pt::input<float, 4>("x"));
        }) == "P004 trace: two outputs are named \"y\"");
}
TEST_CASE("P005 no output") {
  CHECK(thrown([] {
          pt::trace([](auto) { return std::vector<pt::tensor<float, 4>>{}; },
                    pt::input<float, 4>("x"));
        }) == "P005 trace: the model returns no tensor");
  pt::program p = chain();
  p.outputs.clear();
  CHECK(str(pt::verify(p).message) == "P005 trace: the model returns no tensor");
}
TEST_CASE("P006 an output that is not from the trace") {
  CHECK(thrown([] {
          pt::trace([](auto) { return pt::tensor<float, 4>{}; }, pt::input<float, 4>("x"));
        }) == "P006 trace: output \"result\" is not of this trace");
}
TEST_CASE("P007 a figure that the summary does not have") {
  const auto s =
      pt::summarize(pt::partition(chain(), mesh, pt::schedule(pt::manual("M", {{"x", 0}}, "BP"))));
  const std::string has_no = "P007 check: the program has no ";
  CHECK(thrown([&] { (void)s.input("y"); }) ==
        has_no + "input named \"y\"; known: x, w1, w2; did you mean \"x\"?");
  CHECK(thrown([&] { (void)s.output("x"); }) == has_no + "output named \"x\"; known: result");
  CHECK(thrown([&] { (void)s.tactic("MP"); }) ==
        has_no + "tactic named \"MP\"; known: BP; did you mean \"BP\"?");
  CHECK(thrown([&] { (void)s.messages("N"); }) ==
        has_no + "axis named \"N\"; known: B, M; did you mean \"B\"?");
  CHECK(thrown([&] { (void)s.input(9); }) == has_no + "input named \"9\"");
  CHECK(s.tactic("BP").actions == 2);
}

namespace {
/// A user's op without a derivative.
struct round_op : pt::op::elementwise_op {
  static constexpr std::string_view name = "round";
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
};
}  // namespace

TEST_CASE("G001 to G003: gradients") {
  const auto differentiated = [](auto input, auto f) {
    return thrown([&] { pt::trace([&](auto x) { return pt::grad(f, x); }, input); });
  };
  CHECK(differentiated(pt::input<float, 4>("x"), [](auto x) { return x * x; }) ==
        "G001 grad: the function returns tensor<4xf32>; a floating-point scalar is needed");
  CHECK(differentiated(pt::input<int, 4>("x"), [](auto x) { return pt::sum(x); }) ==
        "G001 grad: the function returns tensor<i32>; a floating-point scalar is needed");
  CHECK(differentiated(pt::input<float, 4>("x"), [](auto x) {
          using T = decltype(x);
          return pt::sum(T(x.context(), x.context()->emit(pt::def<round_op>, {x.id()})));
        }) == "G002 grad: op round (tensor<4xf32>) has no derivative rule");
  CHECK(differentiated(pt::input<int, 4>("x"),
                       [](auto x) { return pt::sum(pt::convert<float>(x)); }) ==
        "G003 grad: parameter \"x\" has type tensor<4xi32>; only floating-point values have "
        "gradients");
}
