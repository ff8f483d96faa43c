#include <doctest/doctest.h>

#include <string>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/spec/shardings.hpp>
#include <partita/stablehlo/read.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

struct sharded {
  pt::sharding_list shardings;
  pt::program source;
  pt::mesh mesh;
  pt::text_schedule schedule;
  std::string error;
};
/// Returns everything up to the schedule; over `system`, if it has axes.
sharded read_sharded(const std::string& text, const pt::mesh& system = {}) {
  sharded s;
  s.source = pt::read_stablehlo(text, s.shardings);
  pt::failure f = s.source.error;
  if (!f) s.mesh = system.rank > 0 ? system : pt::mesh_of(s.shardings, f);
  if (!f) s.schedule = pt::schedule_of(s.shardings, s.mesh);
  f.record(s.schedule.error);
  s.error = std::string(f.message.view());
  return s;
}
pt::partitioned partitioned(const sharded& s) {
  if (!s.error.empty()) FAIL(s.error);
  return pt::partition(s.source, s.mesh, s.schedule.tactics);
}
std::string layout_of(const pt::sharded_value& v, const pt::partitioned& p) {
  pt::text out;
  pt::print_layout(out, v.sharding, v.global_shape.rank, p.mesh());
  return data::str(out);
}
void check_values(const pt::partitioned& p) {
  const auto arguments = data::arguments(p.source);
  CHECK(pt::all_close(pt::emulate(p.device, arguments), pt::evaluate(p.source, arguments)));
}
/// A function of one argument that has this attribute.
std::string with_argument(const std::string& attribute, const std::string& mesh = "") {
  return mesh + "func.func @main(%x: tensor<16x8xf32> {" + attribute +
         "}) -> tensor<16x8xf32> {\n  %0 = stablehlo.negate %x : tensor<16x8xf32>\n  return %0 : "
         "tensor<16x8xf32>\n}\n";
}
std::string shardy(const std::string& sharding) {
  return with_argument("sdy.sharding = #sdy.sharding<@mesh, " + sharding + ">",
                       "sdy.mesh @mesh = <[\"x\"=4, \"y\"=2]>\n");
}
std::string gspmd(const std::string& sharding) {
  return with_argument("mhlo.sharding = \"" + sharding + "\"");
}
/// Returns the layout of the argument.
std::string argument(const std::string& text, const pt::mesh& system = {}) {
  const sharded s = read_sharded(text, system);
  if (!s.error.empty()) return s.error;
  const pt::partitioned p = partitioned(s);
  check_values(p);
  return layout_of(p.input(0), p);
}

/// A function with shardings of arguments and results, and a constraint inside, as JAX lowers it.
constexpr std::string_view of_shardy =
    R"(module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  sdy.mesh @mesh = <["x"=4, "y"=2]> {stablehlo.mesh = {axes = [{name = "x", size = 4 : i64}, {name = "y", size = 2 : i64}]}}
  func.func public @main(%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, %arg1: tensor<8x16xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, %arg2: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"y", "x"}, {}]>}) -> (tensor<16x8xf32> {jax.result_info = "result[0]", sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}, tensor<16x16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %1 = sdy.sharding_constraint %0 <@mesh, [{"x"}, {"y"}]> : tensor<16x16xf32>
    %2 = stablehlo.abs %1 : tensor<16x16xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    return %3, %2 : tensor<16x8xf32>, tensor<16x16xf32>
  }
})";
constexpr std::string_view of_gspmd =
    R"m(module @jit_f attributes {mhlo.num_partitions = 8 : i32, mhlo.num_replicas = 1 : i32} {
  func.func public @main(%arg0: tensor<16x8xf32> {mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}, %arg1: tensor<8x16xf32> {mhlo.sharding = "{devices=[1,2,4]<=[4,2]T(1,0) last_tile_dim_replicate}"}, %arg2: tensor<16x8xf32> {mhlo.sharding = "{devices=[8,1]<=[4,2]T(1,0)}"}) -> (tensor<16x8xf32> {jax.result_info = "result[0]", mhlo.sharding = "{devices=[4,1,2]<=[8] last_tile_dim_replicate}"}, tensor<16x16xf32> {jax.result_info = "result[1]"}) {
    %0 = stablehlo.dot_general %arg0, %arg1, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x8xf32>, tensor<8x16xf32>) -> tensor<16x16xf32>
    %1 = stablehlo.custom_call @Sharding(%0) {backend_config = "", mhlo.sharding = "{devices=[4,2]<=[8]}"} : (tensor<16x16xf32>) -> tensor<16x16xf32>
    %2 = stablehlo.abs %1 : tensor<16x16xf32>
    %3 = stablehlo.dot_general %2, %arg2, contracting_dims = [1] x [0], precision = [DEFAULT, DEFAULT] : (tensor<16x16xf32>, tensor<16x8xf32>) -> tensor<16x8xf32>
    return %3, %2 : tensor<16x8xf32>, tensor<16x16xf32>
  }
})m";

}  // namespace

TEST_CASE("shardings of a module become tactics, the same for Shardy and GSPMD") {
  const pt::mesh mesh{{"x", 4}, {"y", 2}};
  const pt::partitioned a = partitioned(read_sharded(std::string(of_shardy)));
  const pt::partitioned b = partitioned(read_sharded(std::string(of_gspmd), mesh));
  const pt::partitioned c = partitioned(read_sharded(std::string(of_gspmd)));
  CHECK(data::str(pt::print(a.device)) == data::str(pt::print(b.device)));
  CHECK(pt::concat(a.mesh()) == pt::concat(mesh));
  CHECK(pt::concat(c.mesh()).view() == R"({"d0":4, "d1":2})");
  CHECK(layout_of(a.input(0), a) == R"([{"x"}, {}])");
  CHECK(layout_of(a.input(1), a) == R"([{}, {"y"}])");
  CHECK(layout_of(a.input(2), a) == R"([{"y", "x"}, {}])");
  CHECK(layout_of(a.output(0), a) == R"([{"x"}, {}])");
  CHECK(layout_of(a.output(1), a) == R"([{"x"}, {"y"}])");  // as in the constraint
  CHECK(layout_of(c.input(2), c) == R"([{"d1", "d0"}, {}])");
  CHECK(a.collectives == c.collectives);
  check_values(a);
  check_values(c);
}

TEST_CASE("shardings are ignored unless requested") {
  const pt::program p = pt::read_stablehlo(of_shardy);
  CHECK(!p.error);
  CHECK(pt::equivalent(p, pt::read_stablehlo(of_gspmd)));
  CHECK(data::str(pt::print(p)).find("tag") == std::string::npos);
}

TEST_CASE("forms of Shardy's shardings are read") {
  CHECK(argument(shardy("[{}, {}]")) == "[{}, {}]");
  CHECK(argument(shardy("[{\"x\"}, {}]")) == R"([{"x"}, {}])");
  CHECK(argument(shardy("[{?}, {\"x\", ?}]")) == R"([{}, {"x"}])");
  CHECK(argument(shardy("[{\"x\", \"y\"}, {}]")) == R"([{"x", "y"}, {}])");
  CHECK(argument(shardy("[{\"y\", \"x\"}, {?}]")) == R"([{"y", "x"}, {}])");
  CHECK(argument(shardy("[{\"x\":(1)2}, {\"x\":(2)2}]")) == R"([{"x":(1)2}, {"x":(2)2}])");
  CHECK(argument(shardy("[{\"x\":(2)2}, {?}], replicated={\"y\"}")) == R"([{"x":(2)2}, {}])");
  CHECK(argument(shardy("[{\"x\"}p1, {\"y\"}]")) == R"([{"x"}, {"y"}])");
  // The generic form; an alias.
  const std::string generic =
      R"("sdy.mesh"() <{mesh = #sdy.mesh<["x"=4, "y"=2]>, sym_name = "mesh"}> : () -> ()
#s = #sdy.sharding<@mesh, [{"x"}, {}]>
)" + with_argument("sdy.sharding = #s");
  CHECK(argument(generic) == R"([{"x"}, {}])");
}

TEST_CASE("forms of GSPMD's shardings are read") {
  const pt::mesh mesh{{"x", 4}, {"y", 2}};
  const auto of = [&](const std::string& text) { return argument(gspmd(text), mesh); };
  CHECK(of("{replicated}") == "[{}, {}]");
  CHECK(of("{devices=[8,1]<=[8]}") == R"([{"x", "y"}, {}])");
  CHECK(of("{devices=[1,8]<=[4,2]T(1,0)}") == R"([{}, {"y", "x"}])");
  CHECK(of("{devices=[4,2]0,1,2,3,4,5,6,7}") == R"([{"x"}, {"y"}])");
  CHECK(of("{devices=[2,4]0,2,4,6,1,3,5,7}") == R"([{"y"}, {"x"}])");
  CHECK(of("{devices=[2,1,4]<=[8] last_tile_dim_replicate}") == R"([{"x":(1)2}, {}])");
  CHECK(of("{devices=[1,2,2,2]<=[2,2,2]T(1,0,2) last_tile_dims={replicated, replicated}}") ==
        R"([{}, {"x":(2)2}])");
  CHECK(of("{devices=[2,1,4]0,1,2,3,4,5,6,7 last_tile_dims={replicated} "
           "metadata={op_name=\\22f\\22}}") == R"([{"x":(1)2}, {}])");
  // A mesh of as many axes as shardings tell apart.
  CHECK(argument(gspmd("{devices=[2,2,2]<=[2,2,2]T(2,0,1) last_tile_dim_replicate}")) ==
        R"([{"d2"}, {"d0"}])");
}

TEST_CASE("constraints in loops, in functions that are called twice, and with open dimensions") {
  const std::string text = R"(module {
  sdy.mesh @mesh = <["x"=4, "y"=2]>
  func.func public @main(%x: tensor<16x8xf32>, %w: tensor<8x8xf32>) -> (tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{}, {"y"}]>}, tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x", "y"}, {}]>}) {
    %0 = call @twice(%x) : (tensor<16x8xf32>) -> tensor<16x8xf32>
    %c = stablehlo.constant dense<0> : tensor<i32>
    %1:2 = stablehlo.while(%i = %c, %h = %0) : tensor<i32>, tensor<16x8xf32>
    cond {
      %n = stablehlo.constant dense<3> : tensor<i32>
      %4 = stablehlo.compare LT, %i, %n, SIGNED : (tensor<i32>, tensor<i32>) -> tensor<i1>
      stablehlo.return %4 : tensor<i1>
    } do {
      %n = stablehlo.constant dense<1> : tensor<i32>
      %4 = stablehlo.dot_general %h, %w, contracting_dims = [1] x [0] : (tensor<16x8xf32>, tensor<8x8xf32>) -> tensor<16x8xf32>
      %5 = sdy.sharding_constraint %4 <@mesh, [{"x"}, {?}]> : tensor<16x8xf32> loc("jit(f)/while/body/h")
      %6 = stablehlo.add %i, %n : tensor<i32>
      stablehlo.return %6, %5 : tensor<i32>, tensor<16x8xf32>
    }
    %2 = call @twice(%1#1) : (tensor<16x8xf32>) -> tensor<16x8xf32>
    return %2, %2 : tensor<16x8xf32>, tensor<16x8xf32>
  }
  func.func private @twice(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<16x8xf32> {
    %0 = stablehlo.negate %a : tensor<16x8xf32>
    %1 = "sdy.sharding_constraint"(%0) <{sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}> : (tensor<16x8xf32>) -> tensor<16x8xf32>
    return %1 : tensor<16x8xf32>
  }
})";
  const sharded s = read_sharded(text);
  const pt::partitioned p = partitioned(s);
  const std::string actions = data::str(pt::print_actions(p.core, p.source));
  INFO(actions);
  for (std::string_view tag :
       {"sharding", "sharding.again", "sharding.1", "sharding.1.again", "while.body.h"})
    CHECK(actions.find("tile<%" + std::string(tag) + ", 0, \"x\"") != std::string::npos);
  CHECK(actions.find("atomic<%while.body.h") == std::string::npos);
  CHECK(layout_of(p.input(0), p) == R"([{"x"}, {}])");
  CHECK(layout_of(p.output(0), p) == R"([{}, {"y"}])");
  CHECK(layout_of(p.output(1), p) == R"([{"x", "y"}, {}])");
  check_values(p);
}

TEST_CASE(
    "a closed dimension that is sharded further is noted; sizes that do not divide are padded") {
  const std::string text = R"(sdy.mesh @mesh = <["x"=4, "y"=2]>
func.func @main(%a: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {?}]>}, %b: tensor<10x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{?}, {}]>}) -> tensor<10x8xf32> {
  %0 = stablehlo.add %a, %b : tensor<10x8xf32>
  %1 = sdy.sharding_constraint %0 <@mesh, [{?}, {"y", ?}]> : tensor<10x8xf32>
  return %1 : tensor<10x8xf32>
})";
  const pt::partitioned p = partitioned(read_sharded(text));
  CHECK(p.tactics[0].notes.size() == 1);
  CHECK(p.tactics[0].notes[0].view().find("dimension 1 of \"b\" is closed") != std::string::npos);
  CHECK(p.input(0).local_shape == pt::shape{3, 4});
  check_values(p);
}

TEST_CASE("shardings that cannot be expressed are refused") {
  const pt::mesh mesh{{"x", 4}, {"y", 2}};
  struct {
    std::string text, part;
  } cases[] = {
      {shardy("[{\"z\"}, {}]"),
       "H014 stablehlo: 2:17: sharding #sdy.sharding<@mesh, [{\"z\"}, {}]>: \"z\" is not an axis"},
      {shardy("[{\"x\"}]"), "it has 1 dimensions; the value has 2"},
      {shardy("[{}, {}], unreduced={\"x\"}"), "unreduced axes are not supported"},
      {with_argument("sdy.sharding = #sdy.sharding<@other, [{}, {}]>"), "unknown mesh @other"},
      {with_argument("sdy.sharding = #sdy.sharding<mesh<[\"x\"=4]>, [{}, {}]>"),
       "its mesh has no name"},
      {"sdy.mesh @mesh = <[\"x\"=2], device_ids=[1, 0]>\n" + with_argument(""),
       "mesh @mesh: its devices are not in the order"},
      {"sdy.mesh @mesh = <[\"x\"=0]>\n" + with_argument(""), "mesh @mesh: M001"},
      {gspmd("{manual}"), "only replicated and devices= are supported"},
      {gspmd("{maximal device=3}"), "only replicated and devices="},
      {gspmd("{devices=[2,2,2]<=[8] last_tile_dims={manual}}"), "\"manual\" is not supported"},
      {gspmd("{devices=[8]<=[8]}"), "it has 1 dimensions"},
      {gspmd("{devices=[4,2]<=[9]}"), "its devices are not 8"},
      {gspmd("{devices=[4,2]<=[4,2]T(1,1)}"), "its devices are not 8"},
      {gspmd("{devices=[4,2]0,1,2,3,4,5,7,6}"), "the order of its devices is not one of axes"},
      {gspmd("{devices=[4,2]0,1,2,3,4,5,6}"), "it lists 7 devices; it has 8 shards"},
      {gspmd("{devices=[2,2]<=[4]}"), "the module is for 4 devices"},
  };
  for (const auto& each : cases) {
    INFO(each.text);
    const std::string error = read_sharded(each.text, mesh).error;
    INFO(error);
    CHECK(error.find(each.part) != std::string::npos);
  }
  CHECK(read_sharded(shardy("[{\"x\"}, {}]"), pt::mesh{{"x", 8}, {"y", 2}}).error ==
        R"(H014 shardings: the module has axis "x" of 4; the system has mesh {"x":8, "y":2})");
  CHECK(read_sharded(gspmd("{devices=[2,3]<=[6]}"), pt::mesh{{"x", 3}, {"y", 2}})
            .error.find("slices mesh {\"x\":3, \"y\":2} within an axis") != std::string::npos);
  CHECK(read_sharded(with_argument("")).error.find("names no mesh") != std::string::npos);
}

TEST_CASE("no sharding makes the reader crash or hang") {
  data::random r{7};
  const std::string base[] = {std::string(of_shardy), std::string(of_gspmd)};
  constexpr std::string_view marks = "{}[]<>()\"@#%:,=0123456789?xyp TSd-";
  int read = 0;
  for (int i = 0; i < 2000; ++i) {
    std::string text = base[i % 2];
    std::vector<std::size_t> places;
    for (std::string_view word : {"sharding", "mesh", "devices=", "Sharding"})
      for (std::size_t at = 0; (at = text.find(word, at)) != std::string::npos; ++at)
        places.push_back(at);
    for (std::int64_t n = r.in(1, 3); n > 0; --n) {
      const std::size_t at = r.pick(places) + static_cast<std::size_t>(r.in(0, 60));
      if (at >= text.size()) continue;
      if (r.one_in(3))
        text.erase(at, static_cast<std::size_t>(r.in(1, 5)));
      else if (r.one_in(2))
        text[at] = r.pick(marks);
      else
        text.insert(at, 1, r.pick(marks));
    }
    for (const pt::mesh& m : {pt::mesh{}, pt::mesh{{"x", 4}, {"y", 2}}}) {
      const sharded s = read_sharded(text, m);
      if (!s.error.empty() || s.mesh.rank == 0) continue;
      ++read;
      try {
        pt::partition(s.source, s.mesh, s.schedule.tactics);
      } catch (const pt::error& e) {
        CHECK(std::string_view(e.what()).find("internal") == std::string_view::npos);
      }
    }
  }
  CHECK(read > 100);
}
