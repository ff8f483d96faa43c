// Plans that move a state from one partitioning to another, and one value to another layout.
#include <partita/prove/prove.hpp>
#include <partita/schedule/reshard_plan.hpp>

#include "printed.hpp"

namespace {

struct params {
  BOOST_HANA_DEFINE_STRUCT(params, (pt::tensor<float, 8, 16>, w1), (pt::tensor<float, 16, 8>, w2));
};
constexpr auto traced = [] {
  return pt::trace(
      [](const auto& p, const auto& m, const auto& x) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& q) { return pt::sum(matmul(matmul(x, q.w1), q.w2)); }, p);
        const auto next = pt::map_leaves([](auto a, auto b) { return a + b; }, m, g);
        return std::tuple{
            pt::output("params", pt::map_leaves([](auto a, auto b) { return a - b; }, p, next)),
            pt::output("momentum", next), pt::output("loss", loss)};
      },
      pt::input<params>("params"), pt::input<params>("momentum"), pt::input<float, 16, 8>("x"));
};
constexpr pt::mesh grid{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"params.w1", 1}}, "MP");
constexpr auto Z3 = pt::manual(
    "B", {{"params", pt::first_divisible_dim}, {"momentum", pt::first_divisible_dim}}, "Z3");
template <class... Tactics>
constexpr pt::partitioned by(const pt::mesh& m, const Tactics&... tactics) {
  return pt::partition(traced(), m, pt::schedule(tactics...));
}

/// Checks that the plan's program is well formed, returns the values that it accepts, and is proved
/// to do so.
void check_program(const pt::reshard_plan_result& plan) {
  const pt::device_program d = plan.program();
  CHECK(!pt::verify(d));
  pt::program source;
  for (const auto& v : plan.values) {
    source.inputs.push_back(source.append(pt::def<pt::op::parameter>, {}, {}, v.true_type));
    source.ops.back().name = source.intern(v.name.view());
    source.outputs.push_back({source.inputs.back(), source.intern(v.name.view())});
  }
  const auto x = data::arguments(source, 3);
  const pt::results got = pt::emulate(d, x);
  for (int i = 0; i < got.size(); ++i) CHECK(pt::equal(got[i], x[static_cast<std::size_t>(i)]));
  const pt::verdict v = pt::prove(source, d);
  CHECK_MESSAGE(v.proved, str(v.error.message));
}

constexpr bool planned_by_the_compiler() {
  const auto plan = pt::reshard_plan(by(grid, BP, MP), by(grid, BP, MP, Z3));
  return !plan.error && plan.bytes_sent == 0 && plan.values.size() == 5;
}
static_assert(planned_by_the_compiler());

}  // namespace

TEST_CASE("reshard_plan: from one schedule to another, and back") {
  const auto plain = by(grid, BP, MP), sharded = by(grid, BP, MP, Z3);
  const auto there = pt::reshard_plan(plain, sharded), back = pt::reshard_plan(sharded, plain);
  CHECK(there.bytes_sent == 0);
  CHECK(str(pt::print(there)) == R"({"B":4, "M":2}:
  params.w1  tensor<8x16xf32>  [{}, {"M"}] -> [{"B"}, {"M"}]  all_slice <"B">  0 bytes
  params.w2  tensor<16x8xf32>  [{"M"}, {}] -> [{"M", "B"}, {}]  all_slice <"B">  0 bytes
  momentum.w1  tensor<8x16xf32>  [{}, {"M"}] -> [{"B"}, {"M"}]  all_slice <"B">  0 bytes
  momentum.w2  tensor<16x8xf32>  [{"M"}, {}] -> [{"M", "B"}, {}]  all_slice <"B">  0 bytes
total: 5 values, 1 unchanged: all_gather 0, all_reduce 0, reduce_scatter 0, all_to_all 0; sent 0 bytes, peak 1152 bytes
)");
  CHECK(str(pt::print(back)) == R"({"B":4, "M":2}:
  params.w1  tensor<8x16xf32>  [{"B"}, {"M"}] -> [{}, {"M"}]  all_gather <"B">  192 bytes
  params.w2  tensor<16x8xf32>  [{"M", "B"}, {}] -> [{"M"}, {}]  all_gather <"B">  192 bytes
  momentum.w1  tensor<8x16xf32>  [{"B"}, {"M"}] -> [{}, {"M"}]  all_gather <"B">  192 bytes
  momentum.w2  tensor<16x8xf32>  [{"M", "B"}, {}] -> [{"M"}, {}]  all_gather <"B">  192 bytes
total: 5 values, 1 unchanged: all_gather 4, all_reduce 0, reduce_scatter 0, all_to_all 0; sent 768 bytes, peak 1152 bytes
)");
  check_program(there);
  check_program(back);
  const auto same = pt::reshard_plan(sharded, sharded);
  CHECK(same.collectives.total() == 0);
  CHECK(same.bytes_sent == 0);
}

TEST_CASE("reshard_plan: to another mesh with the same number of devices") {
  const auto a = by(grid, BP, MP, Z3);
  const auto b = by({{"x", 2}, {"y", 4}}, pt::manual("y", {{"params", 1}, {"momentum", 1}}),
                    pt::manual("x", {{"params", 0}, {"momentum", 0}}));
  const auto plan = pt::reshard_plan(a, b);
  CHECK(str(pt::print(plan)) == R"({"devices":8}:
  params.w1  tensor<8x16xf32>  [{"devices":(1)4}, {"devices":(4)2}] -> [{"devices":(1)2}, {"devices":(2)4}]  all_to_all <"devices":(4)2>, all_to_all <"devices":(2)4>  80 bytes
  params.w2  tensor<16x8xf32>  [{"devices":(4)2, "devices":(1)4}, {}] -> [{"devices":(1)2}, {"devices":(2)4}]  all_to_all <"devices":(2)4, "devices":(1)2>, all_to_all <"devices":(1)2>  88 bytes
  momentum.w1  tensor<8x16xf32>  [{"devices":(1)4}, {"devices":(4)2}] -> [{"devices":(1)2}, {"devices":(2)4}]  all_to_all <"devices":(4)2>, all_to_all <"devices":(2)4>  80 bytes
  momentum.w2  tensor<16x8xf32>  [{"devices":(4)2, "devices":(1)4}, {}] -> [{"devices":(1)2}, {"devices":(2)4}]  all_to_all <"devices":(2)4, "devices":(1)2>, all_to_all <"devices":(1)2>  88 bytes
  x  tensor<16x8xf32>  [{"devices":(1)4}, {}] -> [{}, {"devices":(1)2}]  all_to_all <"devices":(1)4>, all_gather <"devices":(2)2>  224 bytes
total: 5 values, 0 unchanged: all_gather 1, all_reduce 0, reduce_scatter 0, all_to_all 9; sent 560 bytes, peak 512 bytes
)");
  check_program(plan);
  check_program(pt::reshard_plan(b, a));
}

TEST_CASE("reshard_plan: between different paddings") {
  const auto source = pt::trace([](auto x, auto w) { return matmul(x, w); },
                                pt::input<float, 10, 9>("x"), pt::input<float, 9, 8>("w"));
  const auto split = [&](const pt::mesh& m, const auto&... tactics) {
    return pt::partition(source, m, pt::schedule(tactics...));
  };
  const auto rows = [](const char* axis) {
    return pt::manual(axis, {{"x", 0}}, axis, pt::uneven::pad);
  };
  const auto columns = [](const char* axis) {
    return pt::manual(axis, {{"x", 1}}, axis, pt::uneven::pad);
  };
  const pt::partitioned all[] = {split(grid, rows("B")),                      // 12 rows
                                 split(grid, rows("M")),                      // 10
                                 split(grid),                                 // 10
                                 split({{"A", 8}}, rows("A")),                // 16
                                 split(grid, rows("B"), rows("M")),           // 16
                                 split(grid, rows("M"), columns("B")),        // 10, 12 columns
                                 split(grid, rows("B"), columns("M")),        // 12, 10 columns
                                 split({{"C", 2}, {"A", 4}}, columns("A"))};  // 10, 12 columns
  for (const auto& a : all)
    for (const auto& b : all) check_program(pt::reshard_plan(a, b));
  CHECK(str(pt::print(pt::reshard_plan(all[0], all[1]))) == R"({"B":4, "M":2}:
  x  tensor<10x9xf32>  [{"B"}, {}] -> [{"M"}, {}]  all_gather <"B">, pad [10, 9], all_slice <"M">  324 bytes
total: 2 values, 1 unchanged: all_gather 1, all_reduce 0, reduce_scatter 0, all_to_all 0; sent 324 bytes, peak 720 bytes
)");
  CHECK(str(pt::print(pt::reshard_plan(all[0], all[5]))) == R"({"B":4, "M":2}:
  x  tensor<10x9xf32>  [{"B"}, {}] -> [{"M"}, {"B"}]  all_gather <"B">, pad [10, 12], all_slice <"M", "B">  324 bytes
  w  tensor<9x8xf32>  [{}, {}] -> [{"B"}, {}]  pad [12, 8], all_slice <"B">  0 bytes
total: 2 values, 0 unchanged: all_gather 1, all_reduce 0, reduce_scatter 0, all_to_all 0; sent 324 bytes, peak 768 bytes
)");
}

TEST_CASE("reshard: one value, in the notation of shard") {
  const auto p = by(grid, BP, MP, Z3);
  for (const auto& to : {pt::dimensions_axes{{}, {"M", "B"}}, pt::dimensions_axes{"M", "B"},
                         pt::dimensions_axes{{"B:(2)2", "M"}}, pt::dimensions_axes{}}) {
    const auto plan = pt::reshard(p, "params.w2", to);
    REQUIRE(plan.values.size() == 1);
    check_program(plan);
  }
  const auto plan = pt::reshard(p, "params.w2", {{"B", "M"}});
  CHECK(str(pt::print(plan)) == R"({"B":4, "M":2}:
  params.w2  tensor<16x8xf32>  [{"M", "B"}, {}] -> [{"B", "M"}, {}]  permute <"B", "M">  64 bytes
total: 1 values, 0 unchanged: all_gather 0, all_reduce 0, reduce_scatter 0, all_to_all 0, permute 1; sent 64 bytes, peak 64 bytes
)");
}

TEST_CASE("reshard: invalid requests are refused") {
  const auto message = [](const auto& plan) {
    try {
      plan();
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  const auto p = by(grid, BP);
  CHECK(message([&] { return pt::reshard(p, "params.w3", {"B"}); }) ==
        "S036 reshard: no input or output is named \"params.w3\"; known: params.w1, params.w2, "
        "momentum.w1, momentum.w2, x, loss; did you mean \"params.w1\"?");
  CHECK(message([&] { return pt::reshard(p, "loss", {"B"}); }) ==
        "S036 reshard: \"loss\" is tensor<f32>; axes of 1 dimensions are given");
  CHECK(message([&] { return pt::reshard(p, "x", {"C"}); }).starts_with("P020 layout "));
  CHECK(message([&] {
          return pt::reshard_plan(p, by({{"B", 4}}, BP));
        }) ==
        "S037 reshard_plan: {\"B\":4, \"M\":2} and {\"B\":4} do not describe the same devices with "
        "common parts of axes; reshard by way of a mesh that has parts in common with both");
  const auto other =
      pt::partition(pt::trace([](auto x) { return pt::sum(x); }, pt::input<float, 16, 4>("x")),
                    grid, pt::schedule());
  CHECK(
      message([&] { return pt::reshard_plan(p, other); }) ==
      "S038 reshard_plan: \"x\" is tensor<16x8xf32> in one program, tensor<16x4xf32> in the other");
}
