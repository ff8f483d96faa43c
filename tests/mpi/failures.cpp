// Mistakes and failures of a job, by name: the job has to end and to report the reason. See
// fails.cmake.
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string_view>
#include <thread>
#include <vector>

#include <partita/mpi.hpp>
#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// x * 2, by a user's kernel.
struct doubled {
  static constexpr std::string_view name = "doubled";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
  static constexpr void tile_map(pt::tile_map_context& c) {
    c.tile(c.result.shape[0], 0).operand(0, 0);
  }
};
bool kernel_throws = false;
void doubled_kernel(const pt::kernel_context& c) {
  if (kernel_throws) throw pt::error(pt::concat("X001 doubled: out of luck"));
  for (std::int64_t i = 0; i < c.result.shape.elements(); ++i)
    c.output<float>()[i] = 2 * c.operand<float>(0)[i];
}

pt::program traced(bool other = false) {
  const auto model = [other](auto x, auto w) {
    const auto h = matmul(pt::apply_op<doubled>(x), w);
    return pt::output("x", other ? h + 1 : h);
  };
  return pt::trace(model, pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
}
pt::partitioned in(const pt::mesh& m, bool other = false) {
  return pt::partition(
      traced(other), m,
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::manual("B", {{"w", 0}}, "Z3")));
}
void pipeline(const pt::mpi::world& world) {
  const auto front = [](auto x, auto v) { return matmul(x, v); };
  const auto f = pt::trace(
      [&](auto x, auto v, auto w) {
        return pt::output("y", pt::named("back", front)(pt::named("front", front)(x, v), w));
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("v"), pt::input<float, 8, 8>("w"));
  const pt::mesh two{{"B", 2}};
  const auto p = pt::partition(f, pt::topology{{"m0", two}, {"m1", two}},
                               pt::schedule(pt::pipeline({.stages = {{"front"}, {"back"}},
                                                          .batch = {{"x", 0}},
                                                          .microbatches = 2,
                                                          .order = pt::gpipe},
                                                         "PP")));
  pt::mpi::executable(p, world, {.deadline = 2});
}

/// Rank 0 receives a message from each other rank: rank 1 leaves at once, rank 2 is slow.
void wait_for_slow_one(const pt::mpi::world& world) {
  const pt::mesh m{{"A", 3}};
  pt::backend_detail::mpi_transport t(pt::run_detail::device_set::block(m, world.rank(), 3),
                                      world.communicator(), {0, 1, 2}, world.watched(), 0, false,
                                      [](const auto&) { return pt::text("the test"); });
  std::byte x{}, y[2] = {};
  const pt::run_detail::message out{0, &x, 1}, in[] = {{1, y, 1}, {2, y + 1, 1}};
  if (world.rank() == 2) std::this_thread::sleep_for(std::chrono::seconds(4));
  if (world.first())
    t.exchange({}, in);
  else
    t.exchange({&out, 1}, {});
}

void fail(const pt::mpi::world& world, std::string_view how) {
  const bool here = world.rank() == 1;
  const auto is = [&](std::string_view name) { return how == name; };
  if (is("pipeline")) return pipeline(world);
  if (is("patient")) return wait_for_slow_one(world);
  if (is("threads")) return void(pt::mpi::processes(world));
  const int devices = is("ranks") ? 2 : is("blocks") ? 4 : world.ranks();
  const auto p = in({{"B", is("mesh") && here ? 2 * devices : devices}}, is("program") && here);
  pt::mpi::options options{.deadline = is("leave") || is("whole") ? 0.0 : 2.0};
  options.run.kernels = {{&pt::def<doubled>, &doubled_kernel}};
  if (is("options") && here) options.run.fuse = false;
  if (is("start") && here) std::this_thread::sleep_for(std::chrono::seconds(40));
  const pt::mpi::executable run(p, world, options);
  std::vector<pt::array> x = data::arguments(p.source);
  const pt::sharded_state first = run(x);
  if (is("shape")) x[1] = pt::array(pt::tensor_type{pt::dtype::f32, {8, 4}});
  if (is("type")) x[1] = pt::array(pt::tensor_type{pt::dtype::f64, {8, 8}});
  if (is("few")) x.pop_back();
  if (is("many")) x.push_back(x[0]);
  if (is("next")) run(first, x[1]);
  if (is("state")) {
    std::vector<pt::sharded_array> values = first.values();
    values[0].name = "w";
    values[0].global = {pt::dtype::f32, {9, 8}};
    run(pt::sharded_state(std::move(values)), x[0]);
  }
  if (is("name")) run.place([](const auto& r) { return pt::array(r.local); }, {"weight"});
  if (is("placed")) run.place([](const auto& r) { return pt::array(r.global); }, {"w"});
  if (is("foreign"))
    pt::mpi::executable(in({{"B", 4}}), world, options).save("unwritten", first.next());
  if (is("whole") && here) return;
  if (is("whole")) run.whole(first["x"]);
  if (!here) return void(run(x));
  kernel_throws = is("kernel");
  if (is("main")) throw pt::error(pt::concat("X002 main: no more data"));
  if (is("unknown")) throw 7;
  if (is("leave")) return;
  if (is("exit")) std::exit(0);
  if (is("late")) std::this_thread::sleep_for(std::chrono::seconds(40));
  if (is("block")) run.whole(first["x"]);  // another call than that of the other ranks
  run(x);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view how = argv[1];
  if (how == "unwound") {
    try {
      const pt::mpi::world world(argc, argv);
      if (world.rank() == 1) throw pt::error(pt::concat("X003 main: caught too late"));
      fail(world, "none");
    } catch (const std::exception& e) {
      std::cerr << "caught: " << e.what() << '\n';
    }
    return 1;
  }
  const pt::mpi::world world(argc, argv);
  fail(world, how);
}
