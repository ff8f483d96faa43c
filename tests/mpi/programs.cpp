// Programs of every kind over MPI: each rank computes the bits of the emulator. Meshes have 4
// devices (8 with 8 ranks), and the number of ranks equals or divides it. Pipelines have one device
// per rank.
#include <algorithm>
#include <cstring>
#include <iostream>
#include <limits>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/mpi.hpp>
#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>
#include <partita/run/pipeline.hpp>

#include "../../examples/models/small/experts.hpp"
#include "../../examples/models/small/long_attention.hpp"
#include "../../examples/models/transformer.hpp"
#include "../data.hpp"
#include "../tied_training.hpp"

namespace pt = partita;
using pt::dyn, pt::input, pt::manual, pt::schedule, pt::trace;

namespace {

/// Real numbers, whose sums depend on their order; 0 for the state of an optimizer; integers that
/// are indices below 4.
std::vector<pt::array> arguments(const pt::program& p) {
  data::random r{3};
  std::vector<pt::array> list;
  for (int i = 0; i < p.input_count(); ++i) {
    const bool real = pt::is_floating(p.input_type(i).element),
               zero = p.input_name(i).find("state") != std::string_view::npos;
    list.push_back(real ? data::fill(p.input_type(i),
                                     [&](auto) {
                                       return zero ? 0 : static_cast<double>(r.in(-999, 999)) / 333;
                                     })
                        : data::integers(p.input_type(i), r, 0, 3));
  }
  return list;
}

bool same_bits(const pt::array& a, const pt::array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}

/// Runs programs on all ranks, and counts the programs for which a rank has a wrong result.
class test_run {
 public:
  explicit test_run(const pt::mpi::world& w) : world_(w) {}
  const pt::mpi::world& world() const { return world_; }
  int ranks() const { return world_.ranks(); }
  int differing() const { return differing_; }

  /// Prints one line for all ranks; `problem` is that of this rank, or "".
  void verdict(std::string_view name, const std::string& problem) {
    int mine = problem.empty() ? ranks() : world_.rank(), first = 0;
    MPI_Allreduce(&mine, &first, 1, MPI_INT, MPI_MIN, world_.communicator());
    if (first == world_.rank())
      std::cout << "DIFFERS " << name << " on rank " << first << ": " << problem << std::endl;
    if (first == ranks() && world_.first()) std::cout << "ok " << name << std::endl;
    differing_ += first < ranks();
  }
  /// Runs `steps` steps; after the first, inputs with a next value use it.
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, std::vector<pt::array> x, int steps = 1,
             const pt::run_options& options = {}) {
    const pt::mpi::executable run(p, world_, {.run = options, .deadline = 60});
    const pt::vec<int> inputs = pt::reused_inputs(p.source);
    std::string problem;
    pt::sharded_state state;
    for (int step = 0; step < steps; ++step) {
      std::vector<pt::array> others;  // inputs that have no next value
      for (int i = 0; i < p.source.input_count(); ++i)
        if (std::find(inputs.begin(), inputs.end(), i) == inputs.end())
          others.push_back(x[static_cast<std::size_t>(i)]);
      state = step == 0 ? run(x) : run(state.next(), others);
      const pt::results want = pt::emulate(p, x);
      for (int o = 0; o < want.size(); ++o) {
        const auto at = static_cast<std::size_t>(o);
        if (!same_bits(run.whole(state.values()[at]), want[o]))
          problem += "output " + want.names()[at] + " of step " + std::to_string(step) + "; ";
        if (inputs[o] >= 0) x[static_cast<std::size_t>(inputs[o])] = want[o];
      }
    }
    verdict(name, problem);
  }
  template <class Partitioned>
  void check(std::string_view name, const Partitioned& p, int steps = 1) {
    check(name, p, arguments(p.source), steps);
  }

 private:
  const pt::mpi::world& world_;
  int differing_ = 0;
};

constexpr auto batch = manual("B", {{"x", 0}}, "BP");
pt::mesh grid(int ranks) { return {{"B", ranks == 8 ? 4 : 2}, {"M", 2}}; }
pt::mesh row(int ranks) { return {{"S", ranks == 8 ? 8 : 4}}; }

pt::partitioned mlp(int ranks) {
  const auto model = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
  return pt::partition(
      trace(model, input<float, 256, 8>("x"), input<float, 8, 16>("w1"), input<float, 16, 8>("w2")),
      grid(ranks),
      schedule(batch, manual("M", {{"w1", 1}}, "MP"), manual("B", {{"w1", 0}, {"w2", 1}}, "Z3")));
}
pt::partitioned training(int ranks) {
  const auto f = transformer::trace_training_step<transformer::dynamic>({.layers = 2,
                                                                         .width = 8,
                                                                         .heads = 2,
                                                                         .key = 4,
                                                                         .hidden = 16,
                                                                         .vocabulary = 16,
                                                                         .context = 8,
                                                                         .batch = 8});
  return pt::partition(f, grid(ranks), schedule(transformer::BP, transformer::MP, transformer::Z3));
}

// ---- Models and control -------------------------------------------------------------------------

void check_models(test_run& t) {
  namespace attention = small::long_attention;
  const pt::mesh m = grid(t.ranks()), four = row(4);
  t.check("mlp with BP, MP and Z3", mlp(t.ranks()));
  t.check("mlp with two threads", mlp(t.ranks()), arguments(mlp(1).source), 1, {.threads = 2});
  t.check("mlp one op at a time", mlp(t.ranks()), arguments(mlp(1).source), 1, {.fuse = false});
  t.check("training a transformer, three steps", training(t.ranks()), 3);
  if (t.ranks() <= 4) {  // models for 4 devices
    const auto f = attention::traced();
    t.check("all_to_all (Ulysses attention)",
            pt::partition(f, four, schedule(attention::ulysses, attention::SP)), 2);
    const auto ring = pt::partition(f, four, schedule(attention::queries, attention::SP),
                                    {.overlap = data::slow_links(1e7)});
    t.check(ring.collectives.permute > 0 ? "ring attention" : "ring attention WITHOUT A RING", ring,
            2);
    t.check("mixture of experts",
            pt::partition(small::experts::traced(), small::experts::mesh,
                          schedule(small::experts::EP, small::experts::DP)),
            2);
  }
  const auto f = training(t.ranks()).source;
  t.check("microbatches", pt::partition(f, m,
                                        schedule(pt::microbatch(2, {{"tokens", 0}, {"targets", 0}}),
                                                 transformer::BP, transformer::Z2)));
  t.check("remat", pt::partition(f, m,
                                 schedule(pt::remat({"params.layers"}), transformer::BP,
                                          transformer::MP, transformer::Z3)));
}
void check_control(test_run& t) {
  const pt::mesh m = grid(t.ranks());
  const auto recurrent = [](auto x, auto w, auto steps) {
    const auto loss = [&](auto v) {
      const auto [last, sums] = pt::scan(
          [&](auto h, auto s) {
            const auto next = tanh(matmul(h, v) + s);
            return std::pair{next, sum<1>(next * x)};
          },
          x, steps);
      return sum(last) + sum(sums);
    };
    return std::tuple{pt::output("loss", loss(w)), pt::output("w", w - pt::grad(loss, w))};
  };
  t.check("scan with Z3",
          pt::partition(trace(recurrent, input<float, 8, 8>("x"), input<float, 8, 8>("w"),
                              input<float, 3, 8, 8>("s")),
                        m, schedule(batch, manual("B", {{"w", 0}}, "Z3"))),
          2);
  const auto grow = [](auto x, auto w) {
    return pt::while_loop([](auto h) { return sum(h * h) < 1e6; },
                          [&](auto h) { return h * 1.5 + matmul(h, w); }, x);
  };
  t.check("while on a sum over the mesh",
          pt::partition(trace(grow, input<float, 8, 8>("x"), input<float, 8, 8>("w")), m,
                        schedule(batch, manual("M", {{"w", 1}}))));
  const auto branches = [](auto i, auto x, auto w) {
    return pt::case_of(i,
                       std::tuple{[&](auto v) { return matmul(v, w); }, [](auto v) { return -v; },
                                  [](auto v) {
                                    return v - pt::broadcast_in_dim<1>(sum<0>(v), pt::extent<8>{},
                                                                       pt::extent<8>{});
                                  }},
                       x);
  };
  const auto cases = pt::partition(
      trace(branches, input<std::int32_t>("i"), input<float, 8, 8>("x"), input<float, 8, 8>("w")),
      m, schedule(batch, manual("M", {{"w", 0}})));
  for (int i = 0; i < 3; ++i) {
    auto x = arguments(cases.source);
    x[0] = pt::array(static_cast<std::int32_t>(i));
    t.check("case " + std::to_string(i), cases, x);
  }
}

// ---- Movement -----------------------------------------------------------------------------------

void check_movement(test_run& t) {
  const pt::mesh m = grid(t.ranks()), line = row(t.ranks());
  const auto rows = manual("S", {{"x", 0}}), columns = manual("S", {{"x", 1}});
  const auto stencil = [](auto x) {
    const auto before = pt::pad<pt::axes<0, 1>, pt::axes<0, 0>>(pt::slice<1, 0, 15>(x), 0),
               after = pt::pad<pt::axes<0, 0>, pt::axes<0, 1>>(pt::slice<1, 1, 16>(x), 0);
    return std::tuple{x * 0.5 + (before + after) * 0.25, pt::roll<1, 1>(x), pt::roll<-5, 1>(x),
                      pt::reverse<1>(x)};
  };
  t.check("stencil, rolls and a reversal",
          pt::partition(trace(stencil, input<float, 4, 16>("x")), line, schedule(columns)));
  const auto convolve = [](auto x, auto w) {
    const auto loss = [&](auto v) {
      const auto y = pt::conv<pt::conv_options{.padding = pt::same_padding}>(x, v);
      return sum(y * y);
    };
    return pt::grad(loss, w);
  };
  t.check("convolution with a halo",
          pt::partition(trace(convolve, input<float, 2, 16, 4>("x"), input<float, 3, 4, 4>("w")),
                        line, schedule(columns)));
  const auto pool = [](auto x) {
    return pt::nn::max_pool<pt::nn::pool_options{.size = {3, 3}, .padding = pt::same_padding}>(x);
  };
  t.check("pooling cut on two dimensions",
          pt::partition(trace(pool, input<float, 1, 16, 16, 2>("x")), m,
                        schedule(manual("B", {{"x", 1}}), manual("M", {{"x", 2}}))));
  const auto uneven = [](auto x, auto w) {
    const auto h = matmul(x, w);
    return std::tuple{h, sum<0>(h), reduce_max<0>(h), pt::cumsum<0>(x), pt::sort<0>(x)};
  };
  t.check("dimensions that axes do not divide",
          pt::partition(trace(uneven, input<float, 13, 7>("x"), input<float, 7, 5>("w")), m,
                        schedule(manual("B", {{"x", 0}}, "rows", pt::uneven::pad),
                                 manual("M", {{"w", 1}}, "columns", pt::uneven::pad))));
  t.check("shards that are empty",
          pt::partition(trace(uneven, input<float, 2, 7>("x"), input<float, 7, 5>("w")), line,
                        schedule(manual("S", {{"x", 0}}, "rows", pt::uneven::pad))));
  t.check("no elements", pt::partition(trace(uneven, input("x", pt::tensor<float, dyn, dyn>(0, 8)),
                                             input("w", pt::tensor<float, dyn, dyn>(8, 8))),
                                       m, schedule(batch, manual("M", {{"w", 1}}))));
  const auto unfold = [](auto x, auto w) { return matmul(-pt::reshape<4, 4>(abs(x)), w); };
  t.check("parts of an axis",
          pt::partition(trace(unfold, input<float, 16>("x"), input<float, 4, 8>("w")), line,
                        schedule(manual("S:(1)2", {{"x", 0}}), manual("S:(2)2", {{"w", 1}}))));
  const auto look_up = [](auto table, auto i) {
    const auto loss = [&](auto v) { return sum(pt::take<0>(v, i) * 0.7); };
    return std::tuple{pt::take<0>(table, i), pt::grad(loss, table)};
  };
  const auto f = trace(look_up, input<float, 64, 4>("x"), input<std::int32_t, 16>("i"));
  t.check("rows of a sharded table", pt::partition(f, line, schedule(rows)));
  t.check("rows that stay, indices that come",
          pt::partition(f, line, schedule(manual("S", {{"i", 0}, {"x", 0}})),
                        {.passes = {.stationary_rows = true}}));
}

// ---- Element types ------------------------------------------------------------------------------

template <class T>
void check_contraction(test_run& t, std::string_view name) {
  const auto product = [](auto x, auto w) {
    const auto h = matmul(x, w);
    return std::tuple{h, sum<0>(h), reduce_max<1>(h), pt::prod<0>(w)};
  };
  t.check(name, pt::partition(trace(product, input<T, 16, 16>("x"), input<T, 16, 300>("w")),
                              grid(t.ranks()),
                              schedule(manual("B", {{"w", 0}}), manual("M", {{"x", 0}}))));
}
void check_types(test_run& t) {
  check_contraction<pt::bf16>(t, "bf16 contraction over the mesh");
  check_contraction<pt::f16>(t, "f16");
  check_contraction<double>(t, "f64");
  check_contraction<std::int64_t>(t, "i64");
  check_contraction<std::uint8_t>(t, "u8, which wraps");
  const auto bits = [](auto x) {
    return std::tuple{all<0>(x > 0), any<0>(x > 2), all(x > -9), x > 0};
  };
  t.check("boolean reductions", pt::partition(trace(bits, input<float, 64, 3>("x")), row(t.ranks()),
                                              schedule(manual("S", {{"x", 0}}))));
}

// ---- Pipelines ----------------------------------------------------------------------------------

const pt::stage_list two_stages{{"embedding", "layers.0", "layers.1"},
                                {"layers.2", "layers.3", "head"}},
    four_stages{{"embedding", "layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3", "head"}};

/// A training step on two meshes of half the ranks each. With 8 ranks, the meshes have their axes
/// in different orders.
pt::pipelined pipeline(int ranks, const pt::pipeline_order& order, const pt::stage_list& stages) {
  const pt::program f = tied::tied_training();
  const auto PP = pt::pipeline({.stages = stages,
                                .batch = {{"tokens", 0}, {"targets", 0}},
                                .microbatches = 4,
                                .order = order,
                                .channels = {.capacity = 16}},
                               "PP");
  const auto BP = transformer::BP;
  const auto MP = manual("M", {{"params.layers.*.qkv", 2}, {"params.layers.*.up", 1}}, "MP");
  const auto Z3 =
      manual("B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");
  if (ranks == 8)
    return pt::partition(f,
                         pt::topology{{"m0", {{"M", 2}, {"B", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}},
                         schedule(PP, BP, MP));
  const pt::mesh half{{"B", ranks / 2}};
  return pt::partition(f, pt::topology{{"m0", half}, {"m1", half}}, schedule(PP, BP, Z3));
}
void check_pipelines(test_run& t) {
  const auto x = tied::tied_arguments(tied::tied_training());
  t.check("pipeline of two stages, 1F1B", pipeline(t.ranks(), pt::one_f_one_b, two_stages), x, 3);
  t.check("pipeline, zero bubble", pipeline(t.ranks(), pt::zb_h1, two_stages), x);
  t.check("pipeline of four stages, circular", pipeline(t.ranks(), pt::circular, four_stages), x);
  t.check("pipeline of four stages, interleaved 1F1B",
          pipeline(t.ranks(), pt::interleaved_1f1b, four_stages), x);
  t.check("pipeline of four stages, zero bubble in a V", pipeline(t.ranks(), pt::zb_v, four_stages),
          x);
}

// ---- Guarantees ---------------------------------------------------------------------------------

/// A state whose next value has another layout than the run accepts.
void check_next_state(test_run& t) {
  const auto model = [](auto x) {
    return std::tuple{pt::output("x", pt::transpose<1, 0>(pt::tag("rows", x)) * 0.7),
                      pt::output("sum", sum(x))};
  };
  const auto p = pt::partition(trace(model, input<float, 16, 16>("x")), row(t.ranks()),
                               schedule(manual("S", {{"rows", 0}})));
  const bool differs = !(p.device.inputs[0] == p.device.outputs[0]);
  t.check(differs ? "next state in another layout" : "next state in THE SAME layout", p, 3);
}
/// A state that several executables share, with other layouts and on other meshes.
void check_shared_state(test_run& t) {
  const auto traced = [](auto f) {
    return trace([&](auto x) { return pt::output("x", f(x)); }, input<float, 16, 16>("x"));
  };
  const auto f = traced([](auto x) { return x * 0.7; }), g = traced([](auto x) { return x + 0.3; });
  const auto rows = schedule(manual("S", {{"x", 0}}));
  const auto a = pt::partition(f, row(t.ranks()), rows);
  const auto x = arguments(f);
  const pt::mpi::executable first(a, t.world(), {.deadline = 60});
  const pt::sharded_state state = first(x).next();
  const pt::array want = pt::evaluate(g, pt::evaluate(f, x).only()).only();
  std::string problem;
  const auto check = [&](const char* name, const pt::partitioned& p) {
    const pt::mpi::executable run(p, t.world(), {.deadline = 60});
    const pt::sharded_state out = run(state);
    if (!same_bits(run.whole(out["x"]), want)) problem += name;
    if (!same_bits(first.whole(out["x"]), want)) problem += std::string("whole: ") + name;
  };
  check("another layout; ", pt::partition(g, row(t.ranks()), schedule(manual("S", {{"x", 1}}))));
  check("a part of the axis; ",
        pt::partition(g, row(t.ranks()), schedule(manual("S:(1)2", {{"x", 1}}))));
  check("another mesh; ", pt::partition(g, grid(t.ranks()), schedule(manual("M", {{"x", 0}}))));
  check("more devices; ", pt::partition(g, pt::mesh{{"S", 16}}, rows));
  t.verdict("a state of another executable", problem);
}
/// Each rank is asked for its own shards only, and for each once.
void check_placing(test_run& t) {
  const auto p = mlp(t.ranks());
  const auto x = arguments(p.source);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60});
  std::string problem;
  std::vector<int> asked(x.size());
  const auto shard = [&](const pt::shard_request& r) {
    const int i = r.name == "x" ? 0 : r.name == "w1" ? 1 : 2;
    const auto at = static_cast<std::size_t>(i);
    ++asked[at];
    if (r.local.shape != p.input(r.name).local_shape || r.global != p.source.input_type(i))
      problem += "wrong request; ";
    pt::array a(r.local);
    for (std::int64_t m = 0; m < r.local.shape[0]; ++m)
      for (std::int64_t n = 0; n < r.local.shape[1]; ++n)
        a.mutable_data<float>()[m * r.local.shape[1] + n] =
            x[at].data<float>()[(r.begin.at[0] + m) * r.global.shape[1] + r.begin.at[1] + n];
    return a;
  };
  const pt::sharded_state placed = run.place(shard);
  for (std::size_t i = 0; i < x.size(); ++i)
    if (std::cmp_not_equal(asked[i], placed.values()[i].shards().size()))
      problem += "asked for more than its shards; ";
  const std::int64_t devices = p.mesh().devices() / t.ranks();
  if (devices == 1 && asked != std::vector{1, 1, 1}) problem += "one device, several shards; ";
  const pt::array want = pt::emulate(p, x);
  if (!same_bits(run.whole(run(placed).values()[0]), want)) problem += "of a placed state; ";
  // States and arrays together; results by name.
  const auto weights = run.place(shard, {"w1", "w2"});
  if (!same_bits(run.whole(run(weights, x[0]).values()[0]), want)) problem += "of both; ";
  t.verdict("shards from a callback", problem);
}
/// Reductions by MPI: integers, maxima and minima have the bits of the emulator, real sums nearly.
void check_native(test_run& t) {
  const auto model = [](auto x, auto w, auto z, auto i) {
    return std::tuple{pt::output("y", matmul(x, w)), pt::output("sum", sum<0>(i)),
                      pt::output("largest", reduce_max<0>(z)), pt::output("all", pt::all<0>(i < 3)),
                      pt::output("half", sum<0>(pt::convert<pt::bf16>(i)))};
  };
  const auto p =
      pt::partition(trace(model, input<float, 16, 64>("x"), input<float, 64, 8>("w"),
                          input<float, 64, 3>("z"), input<std::int64_t, 64, 3>("i")),
                    row(t.ranks()), schedule(manual("S", {{"x", 1}, {"i", 0}, {"z", 0}})));
  auto x = arguments(p.source);
  for (const int at : {5, 64 * 3 - 3})  // in the first shard, and in the last
    x[2].mutable_data<float>()[at] = std::numeric_limits<float>::quiet_NaN();
  const pt::results want = pt::emulate(p, x);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60, .native_reductions = true});
  const pt::sharded_state out = run(x);
  std::string problem;
  for (const char* name : {"sum", "largest", "all", "half"})
    if (!same_bits(run.whole(out[name]), want[name])) problem += std::string(name) + "; ";
  if (!pt::all_close(run.whole(out["y"]), want["y"], 1e-5, 1e-5)) problem += "y; ";
  t.verdict("native reductions", problem);
}
/// A value that every rank has needs no communication; a sharded value does.
void check_whole(test_run& t) {
  const auto model = [](auto x) {
    return std::tuple{pt::output("scaled", x * 2), pt::output("total", sum(x)),
                      pt::output("least", reduce_min<0>(x))};
  };
  const auto p = pt::partition(trace(model, input<float, 16, 4>("x")), row(t.ranks()),
                               schedule(manual("S", {{"x", 0}})));
  const auto x = arguments(p.source);
  const pt::results want = pt::emulate(p, x);
  const pt::mpi::executable run(p, t.world(), {.deadline = 60});
  const pt::sharded_state out = run(x);
  std::string problem;
  const std::int64_t before = run.sent().calls;
  for (const char* name : {"total", "least"})
    if (!same_bits(run.whole(out[name]), want[name])) problem += std::string(name) + "; ";
  if (run.sent().calls != before) problem += "a replicated value is sent; ";
  if (!same_bits(run.whole(out["scaled"]), want["scaled"])) problem += "scaled; ";
  if (t.ranks() > 1 && run.sent().calls == before) problem += "a sharded value is not sent; ";
  t.verdict("replicated outputs, by name", problem);
}

}  // namespace

int main(int argc, char** argv) {
  const pt::mpi::world world(argc, argv);
  test_run t(world);
  check_models(t);
  check_control(t);
  check_movement(t);
  check_types(t);
  check_next_state(t);
  check_shared_state(t);
  check_placing(t);
  check_whole(t);
  check_native(t);
  if (t.ranks() % 2 == 0) check_pipelines(t);
  return t.differing() == 0 ? 0 : 1;
}
