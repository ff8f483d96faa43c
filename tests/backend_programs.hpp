// Programs of every kind, which each backend runs: over MPI, on XLA and emulated. A `Test` has
// ranks(), the number of devices (8, or else 4 are used), and check(name, partitioned, [arguments],
// [steps], [options]), which compares with `emulate`.
#pragma once

#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/partita.hpp>
#include <partita/run/pipeline.hpp>

#include "../examples/models/small/experts.hpp"
#include "../examples/models/small/long_attention.hpp"
#include "../examples/models/transformer.hpp"
#include "data.hpp"
#include "tied_training.hpp"

namespace backend_programs {

namespace pt = partita;
using pt::dyn, pt::input, pt::manual, pt::schedule, pt::trace;

/// Real numbers, whose sums depend on their order; 0 for the state of an optimizer; integers that
/// are indices below 4.
inline std::vector<pt::array> arguments(const pt::program& p) {
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

inline constexpr auto batch = manual("B", {{"x", 0}}, "BP");
inline pt::mesh grid(int ranks) { return {{"B", ranks == 8 ? 4 : 2}, {"M", 2}}; }
inline pt::mesh row(int ranks) { return {{"S", ranks == 8 ? 8 : 4}}; }

inline pt::partitioned mlp(int ranks) {
  const auto model = [](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); };
  return pt::partition(
      trace(model, input<float, 256, 8>("x"), input<float, 8, 16>("w1"), input<float, 16, 8>("w2")),
      grid(ranks),
      schedule(batch, manual("M", {{"w1", 1}}, "MP"), manual("B", {{"w1", 0}, {"w2", 1}}, "Z3")));
}
inline pt::partitioned training(int ranks) {
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

template <class Test>
void check_models(Test& t) {
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
template <class Test>
void check_control(Test& t) {
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

template <class Test>
void check_movement(Test& t) {
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

template <class T, class Test>
void check_contraction(Test& t, std::string_view name) {
  const auto product = [](auto x, auto w) {
    const auto h = matmul(x, w);
    return std::tuple{h, sum<0>(h), reduce_max<1>(h), pt::prod<0>(w)};
  };
  t.check(name, pt::partition(trace(product, input<T, 16, 16>("x"), input<T, 16, 300>("w")),
                              grid(t.ranks()),
                              schedule(manual("B", {{"w", 0}}), manual("M", {{"x", 0}}))));
}
template <class Test>
void check_types(Test& t) {
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

inline const pt::stage_list two_stages{{"embedding", "layers.0", "layers.1"},
                                       {"layers.2", "layers.3", "head"}},
    four_stages{{"embedding", "layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3", "head"}};

/// A training step on two meshes of half the ranks each. With 8 ranks, the meshes have their axes
/// in different orders.
inline pt::pipelined pipeline(int ranks, const pt::pipeline_order& order,
                              const pt::stage_list& stages) {
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
template <class Test>
void check_pipelines(Test& t) {
  const auto x = tied::tied_arguments(tied::tied_training());
  t.check("pipeline of two stages, 1F1B", pipeline(t.ranks(), pt::one_f_one_b, two_stages), x, 3);
  t.check("pipeline, zero bubble", pipeline(t.ranks(), pt::zb_h1, two_stages), x);
  t.check("pipeline of four stages, circular", pipeline(t.ranks(), pt::circular, four_stages), x);
  t.check("pipeline of four stages, interleaved 1F1B",
          pipeline(t.ranks(), pt::interleaved_1f1b, four_stages), x);
  t.check("pipeline of four stages, zero bubble in a V", pipeline(t.ranks(), pt::zb_v, four_stages),
          x);
}

/// A state whose next value has another layout than the run accepts.
template <class Test>
void check_next_state(Test& t) {
  const auto model = [](auto x) {
    return std::tuple{pt::output("x", pt::transpose<1, 0>(pt::tag("rows", x)) * 0.7),
                      pt::output("sum", sum(x))};
  };
  const auto p = pt::partition(trace(model, input<float, 16, 16>("x")), row(t.ranks()),
                               schedule(manual("S", {{"rows", 0}})));
  const bool differs = !(p.device.inputs[0] == p.device.outputs[0]);
  t.check(differs ? "next state in another layout" : "next state in THE SAME layout", p, 3);
}

template <class Test>
void check_all(Test& t) {
  check_models(t);
  check_control(t);
  check_movement(t);
  check_types(t);
  check_next_state(t);
  if (t.ranks() % 2 == 0) check_pipelines(t);
}

}  // namespace backend_programs
