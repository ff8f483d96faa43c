// One test per error code: a user's mistake at run time, and its whole text.
#include <doctest/doctest.h>

#include <string>
#include <tuple>
#include <vector>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

/// What a callable throws, or "no error".
std::string thrown(auto f) {
  try {
    f();
  } catch (const pt::error& e) {
    CHECK(e.code() == std::string_view(e.what()).substr(0, 4));
    return e.what();
  }
  return "no error";
}
std::string str(const pt::text& t) { return std::string(t.view()); }

pt::tensor_type f32(pt::shape s) { return {pt::dtype::f32, s}; }
pt::tensor_type i32(pt::shape s) { return {pt::dtype::i32, s}; }
pt::tensor_type i1(pt::shape s) { return {pt::dtype::boolean, s}; }

/// The mistake that building an op of parameters x, y, z makes.
std::string built(std::vector<pt::tensor_type> types, auto emit) {
  pt::builder b;
  std::vector<pt::value_id> v;
  for (std::size_t i = 0; i < types.size(); ++i)
    v.push_back(pt::ops::parameter(b, std::string(1, static_cast<char>('x' + i)), types[i]));
  v.resize(3, -1);
  const pt::value_id r = emit(b, v[0], v[1], v[2]);
  const int ops = b.p.op_count();
  CHECK((r == -1) == b.failed());
  if (b.failed()) {  // what follows from a mistake changes nothing
    const std::string first = str(b.p.error.message);
    CHECK(pt::ops::add(b, r, v[0]) == -1);
    CHECK(pt::ops::reshape(b, v[0], {99, 99, 99}) == -1);
    CHECK(b.p.op_count() == ops);
    CHECK(str(b.p.error.message) == first);
  }
  return str(b.p.error.message);
}

constexpr std::int64_t zero[] = {0}, one[] = {1}, two[] = {2}, both[] = {0, 1}, swapped[] = {1, 0};
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
        "it; choose another dimension or mesh");
  CHECK(
      partitioned(pt::manual("M", {{"x", 0}}), pt::manual("B", {{"x", 0}})) ==
      "S003 tile: dimension 0 of \"x\" has size 5 (10 before earlier tiling); axis \"B\" has size "
      "4, which does not divide it; choose another dimension or mesh");
}
TEST_CASE("S004 axis used twice") {
  CHECK(
      partitioned(pt::manual("M", {{"x", 0}}), pt::manual("M", {{"x", 1}})) ==
      "S004 tile: \"x\" is already sliced on dimension 0 along axis \"M\"; it cannot be sliced on "
      "dimension 1 too");
  CHECK(partitioned(pt::manual("M", {{"x", pt::replicated}}), pt::manual("M", {{"x", 1}})) ==
        "S004 tile: \"x\" is kept whole along axis \"M\"; no action undoes an earlier one");
  CHECK(partitioned(pt::manual("M", {{"x", 0}}), pt::manual("M", {{"x", 0}})) == "no error");
}
TEST_CASE("S005 already sliced along the axis") {
  CHECK(partitioned(pt::manual("M", {{"x", 0}}), pt::manual("M", {{"x", pt::replicated}})) ==
        "S005 atomic: \"x\" is already sliced on dimension 0 along axis \"M\"; no action undoes an "
        "earlier one");
}
TEST_CASE("S006 nothing has that name or prefix") {
  CHECK(partitioned(pt::manual("M", {{"w3", 0}})) ==
        "S006 manual(\"M\"): no input, tag or output is named \"w3\" or lies below it; known: x, "
        "w1, w2, h, result; did you mean \"w1\"?");
  CHECK(
      partitioned(pt::manual("M", {{"w", 0}})) ==
      "S006 manual(\"M\"): no input, tag or output is named \"w\" or lies below it; known: x, w1, "
      "w2, h, result; did you mean \"x\"?");
}
TEST_CASE("S008 an action text that cannot be read, and mistakes in its values") {
  const auto replayed = [](std::string_view script) {
    const pt::program p = chain();
    pt::core_program c(p, mesh);
    return str(pt::replay(c, p, script).message);
  };
  CHECK(replayed("tile<%x, 1, \"M\">; propagate;\n") == "");
  CHECK(replayed("") == "");
  CHECK(replayed("slice<%x>;") ==
        "S008 replay: cannot read the action text: \"slice\" is none of tile, atomic, propagate");
  CHECK(
      replayed("tile(%x, 1, \"M\");") ==
      "S008 replay: cannot read the action text: \"tile(%x,\" is none of tile, atomic, propagate");
  CHECK(replayed("tile<x, 1, \"M\">;") ==
        "S008 replay: cannot read the action text at character 4: \"<%\" expected, found \"<x, 1, "
        "\"M\">;\"");
  CHECK(replayed("tile<%x, -1, \"M\">;") == "S008 replay: \"-\" in a dimension");
  CHECK(replayed("tile<%x, 1, \"M\"") ==
        "S008 replay: cannot read the action text at character 14: \"\">\" expected, found \"\"\"");
  CHECK(replayed("tile<%y, 1, \"M\">;") == "S006 replay: the program has no value \"%y\"");
  CHECK(replayed("atomic<%x, \"N\">;") ==
        "S001 replay: the mesh has no axis \"N\"; known: B, M; did you mean \"B\"?");
  CHECK(replayed("tile<%x, 0, \"B\">;").substr(0, 4) == "S003");
}

TEST_CASE("S100 rank above the limit") {
  CHECK(
      built({f32({1, 1, 1, 1, 1}), f32({1, 1, 1, 1, 1})}, [](pt::builder& b, auto x, auto y, auto) {
        return pt::ops::dot_general(b, x, y, {});
      }) == "S100 dot_general: the result has rank 10; at most 8 is supported");
  CHECK(built({f32({1, 1, 1, 1, 1, 1, 1, 1, 1})}, [](pt::builder&, auto x, auto, auto) {
          return x;
        }) == "S100 parameter: the result has rank 9; at most 8 is supported");
}
TEST_CASE("S101 contracted extents differ") {
  CHECK(built({f32({4, 6}), f32({5, 4})},
              [](pt::builder& b, auto x, auto y, auto) {
                return pt::ops::dot_general(b, x, y, {{}, {}, one, zero});
              }) ==
        "S101 dot_general: contracted extents differ: dimension 1 of lhs tensor<4x6xf32> has "
        "size 6, dimension 0 of rhs tensor<5x4xf32> has size 5");
  CHECK(thrown([] {
          pt::trace([](auto x, auto w) { return matmul(x, w); },
                    pt::input<float, pt::dyn, pt::dyn>("x", 4, 6),
                    pt::input<float, pt::dyn, 3>("w", 5));
        }) ==
        "S101 matmul: contracted extents differ: dimension 1 of lhs tensor<4x6xf32> has size "
        "6, dimension 0 of rhs tensor<5x3xf32> has size 5");
}
TEST_CASE("S102 element types differ") {
  CHECK(built({f32({4}), i32({4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::add(b, x, y);
        }) == "S102 add: element types f32 and i32 differ; use convert");
  CHECK(built({f32({4, 4}), i32({4, 4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::dot_general(b, x, y, {{}, {}, one, zero});
        }) == "S102 dot_general: element types f32 and i32 differ; use convert");
  CHECK(built({f32({4}), i32({4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::concatenate(b, std::vector{x, y}, 0);
        }) == "S102 concatenate: element types f32 and i32 differ; use convert");
  CHECK(built({i1({4}), f32({4}), i32({4})}, [](pt::builder& b, auto p, auto x, auto y) {
          return pt::ops::select(b, p, x, y);
        }) == "S102 select: element types f32 and i32 differ; use convert");
}
TEST_CASE("S103 shapes differ") {
  CHECK(built({f32({4, 6}), f32({6, 4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::multiply(b, x, y);
        }) == "S103 multiply: shapes [4, 6] and [6, 4] differ");
  CHECK(thrown([] {
          pt::trace([](auto x, auto y) { return x + y; }, pt::input<float, pt::dyn>("x", 4),
                    pt::input<float, pt::dyn>("y", 5));
        }) == "S103 add: shapes [4] and [5] differ and do not broadcast");
}
TEST_CASE("S104 an element type that the op does not take") {
  CHECK(built({i32({4})}, [](pt::builder& b, auto x, auto, auto) { return pt::ops::exp(b, x); }) ==
        "S104 exp: element type i32 is not a floating-point type");
  CHECK(built({i1({4})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::negate(b, x);
        }) == "S104 negate: element type i1 is not a number");
  CHECK(built({i1({4})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::reduce(b, x, pt::combiner::add, zero);
        }) == "S104 reduce: element type i1 is not a number");
  CHECK(built({i1({4}), i1({4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::dot_general(b, x, y, {{}, {}, zero, zero});
        }) == "S104 dot_general: element type i1 is not a number");
  CHECK(built({f32({4}), f32({4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::select(b, x, y, y);
        }) == "S104 select: the predicate has element type f32; i1 is needed");
}
TEST_CASE("S105 batch extents differ") {
  CHECK(built({f32({2, 4, 6}), f32({3, 6, 4})},
              [](pt::builder& b, auto x, auto y, auto) {
                return pt::ops::dot_general(b, x, y, {zero, zero, two, one});
              }) ==
        "S105 dot_general: batch extents differ: dimension 0 of lhs tensor<2x4x6xf32> has "
        "size 2, dimension 0 of rhs tensor<3x6x4xf32> has size 3");
}
TEST_CASE("S106 bad dimension numbers") {
  CHECK(built({f32({4, 6}), f32({6, 4})},
              [](pt::builder& b, auto x, auto y, auto) {
                return pt::ops::dot_general(b, x, y, {one, zero, one, zero});
              }) ==
        "S106 dot_general: the batch and contracted dimensions are repeated or out of range "
        "for tensor<4x6xf32> and tensor<6x4xf32>");
}
TEST_CASE("S107 element counts differ") {
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::reshape(b, x, {5, 5});
        }) == "S107 reshape: tensor<4x6xf32> has 24 elements; shape [5, 5] has 25");
}
TEST_CASE("S108 not a permutation") {
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          const std::int64_t twice[] = {1, 1};
          return pt::ops::transpose(b, x, twice);
        }) == "S108 transpose: [1, 1] is not a permutation of the dimensions of tensor<4x6xf32>");
}
TEST_CASE("S109 broadcast dimensions") {
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::broadcast_in_dim(b, x, {4, 6, 2}, zero);
        }) == "S109 broadcast_in_dim: 1 dimensions for an operand tensor<4x6xf32>");
  CHECK(built({f32({4, 6})},
              [](pt::builder& b, auto x, auto, auto) {
                return pt::ops::broadcast_in_dim(b, x, {6, 4}, swapped);
              }) ==
        "S109 broadcast_in_dim: dimension 0 is out of order or out of range for the result "
        "shape [6, 4]");
  CHECK(built({f32({4})}, [](pt::builder& b, auto x, auto,
                             auto) { return pt::ops::broadcast_in_dim(b, x, {5}, zero); }) ==
        "S109 broadcast_in_dim: dimension 0 of tensor<4xf32> does not fit in dimension 0 of "
        "the result shape [5]");
}
TEST_CASE("S110 reduced dimensions") {
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::reduce(b, x, pt::combiner::add, swapped);
        }) == "S110 reduce: dimension 0 is out of order or out of range for tensor<4x6xf32>");
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::reduce(b, x, pt::combiner::add, two);
        }) == "S110 reduce: dimension 2 is out of order or out of range for tensor<4x6xf32>");
}
TEST_CASE("S111 gather, S112 scatter") {
  CHECK(built({f32({4, 6}), f32({3})},
              [](pt::builder& b, auto x, auto y, auto) { return pt::ops::gather(b, x, y); }) ==
        "S111 gather: a table of rank 1 or more and integer indices are needed, not "
        "tensor<4x6xf32> and tensor<3xf32>");
  CHECK(built({i32({3}), f32({4, 6})}, [](pt::builder& b, auto x, auto y,
                                          auto) { return pt::ops::scatter_add(b, x, y, 5); }) ==
        "S112 scatter: updates tensor<4x6xf32> are no windows of tensor<5x6xf32> at integer "
        "indices tensor<3xi32>");
}
TEST_CASE("S113 iota dimension") {
  CHECK(built({}, [](pt::builder& b, auto, auto, auto) { return pt::ops::iota(b, i32({4}), 1); }) ==
        "S113 iota: dimension 1 is out of range for tensor<4xi32>");
}
TEST_CASE("S114 concatenate") {
  CHECK(built({f32({4, 6}), f32({5, 6})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::concatenate(b, std::vector{x, y}, 1);
        }) == "S114 concatenate: shapes [4, 6] and [5, 6] differ outside of dimension 1");
  CHECK(built({f32({4}), f32({4})}, [](pt::builder& b, auto x, auto y, auto) {
          return pt::ops::concatenate(b, std::vector{x, y}, 1);
        }) == "S114 concatenate: dimension 1 is out of range for tensor<4xf32>");
  CHECK(built({}, [](pt::builder& b, auto, auto, auto) {
          return pt::ops::concatenate(b, {}, 0);
        }) == "S114 concatenate: no operand");
}
TEST_CASE("S115 slice bounds") {
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          const std::int64_t limit[] = {2, 7};
          return pt::ops::slice(b, x, both, limit);
        }) == "S115 slice: bounds [1, 7) are out of range for dimension 1 of tensor<4x6xf32>");
  CHECK(built({f32({4, 6})}, [](pt::builder& b, auto x, auto, auto) {
          return pt::ops::slice(b, x, zero, two);
        }) == "S115 slice: 1 bounds for tensor<4x6xf32>");
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

TEST_CASE("P001 a program that was put together by hand") {
  pt::program p = chain();
  p.operand_list[0] = 99;
  CHECK(
      str(pt::verify(p).message) ==
      "P001 internal error: op 3 (dot_general) uses value 99 before its definition; please report");
  p = chain();
  p.types[3].shape[0] = 11;
  CHECK(str(pt::verify(p).message) ==
        "P001 internal error: op 3 (dot_general) has type tensor<11x16xf32>, its shape rule gives "
        "tensor<10x16xf32>; please report");
  p = chain();
  p.producers[3] = 2;
  CHECK(str(pt::verify(p).message) ==
        "P001 internal error: op 3 does not define its result; please report");
  p = chain();
  p.types[1].shape[0] = 9;
  CHECK(str(pt::verify(p).message).substr(0, 4) == "S101");
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
          pt::trace([](auto x) { return tag("h", tag("h", x)); }, pt::input<float, 4>("x"));
        }) == "P003 trace: tag \"h\" has the name of another tag or of an input");
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
TEST_CASE("P006 an output that is not of the trace") {
  CHECK(thrown([] {
          pt::trace([](auto) { return pt::tensor<float, 4>{}; }, pt::input<float, 4>("x"));
        }) == "P006 trace: output \"result\" is not of this trace");
}
TEST_CASE("P007 a figure that the summary does not have") {
  const auto s =
      pt::summarize(pt::partition(chain(), mesh, pt::schedule(pt::manual("M", {{"x", 0}}, "BP"))));
  CHECK(thrown([&] { (void)s.input("y"); }) == "P007 check: the program has no input named \"y\"");
  CHECK(thrown([&] { (void)s.output("x"); }) ==
        "P007 check: the program has no output named \"x\"");
  CHECK(thrown([&] { (void)s.tactic("MP"); }) ==
        "P007 check: the program has no tactic named \"MP\"");
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
