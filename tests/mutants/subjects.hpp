/// Device programs for mutation, each with its source: random programs, the models of the examples
/// at small sizes, and programs written by hand.
#pragma once

#include <cstdlib>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "../../examples/models/gns.hpp"
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/serving.hpp"
#include "../../examples/models/unet.hpp"
#include "../prove/practice.hpp"
#include "../random/error_bound.hpp"
#include "../random/generator.hpp"
#include "../random/schedule.hpp"
#include "emulation.hpp"

namespace mutants {

using data::random;

struct subject {
  std::string name;
  pt::program source;
  pt::device_program device;
  reference numbers;
};
using maybe_subject = std::unique_ptr<subject>;

// ---- Random programs ----------------------------------------------------------------------------

inline constexpr int few_samples = 8, many_samples = 60;

/// Integers of the interval that keeps sums exact, in several patterns: any, small, different as
/// far as possible, equal, mostly zero.
inline pt::array integers_of(const pt::tensor_type& t, const random_test::value_info& i,
                             int pattern, random& r) {
  const auto low = static_cast<std::int64_t>(std::ceil(std::max(i.lo, -1e6)));
  const auto high = static_cast<std::int64_t>(std::floor(std::min(i.hi, 1e6)));
  const auto any = [&] { return r.in(low, std::max(low, high)); };
  const std::int64_t one = any(), least = std::min(std::max<std::int64_t>(low, -2), high);
  const std::int64_t zero = std::min(std::max<std::int64_t>(low, 0), high);
  return data::fill(t, [&](std::int64_t k) {
    switch (pattern) {
      case 0:
        return r.in(least, std::min(high, least + 4));
      case 1:
        return low + (one - low + k) % (high - low + 1);
      case 2:
        return one;
      case 3:
        return r.one_in(3) ? any() : zero;
      default:
        return any();
    }
  });
}
inline std::vector<pt::array> inputs_of(const random_test::test_case& c, int number) {
  if (c.wild || c.real) return random_test::arguments(c);
  random r{c.seed * 131 + static_cast<std::uint64_t>(number)};
  std::vector<pt::array> out;
  for (pt::value_id v : c.p.inputs)
    out.push_back(integers_of(c.p.type(v), c.info[static_cast<std::size_t>(v)],
                              number == 0 ? 0 : static_cast<int>(r.in(0, 5)), r));
  return out;
}
inline std::vector<double> bounds_of(const random_test::test_case& c,
                                     const std::vector<pt::array>& inputs) {
  if (c.real) return random_test::order_errors<true>(c.p, inputs);
  std::vector<double> bounds;
  for (const auto& out : c.p.outputs)
    bounds.push_back(c.info[static_cast<std::size_t>(out.value)].tolerance);
  return bounds;
}
inline reference reference_of(const random_test::test_case& c) {
  auto kept = std::make_shared<random_test::test_case>(c);
  const std::uint64_t seed = c.seed;
  return {few_samples, many_samples, [kept, seed](int i) {
            kept->seed = seed + static_cast<std::uint64_t>(i) * 1000003;
            sample s;
            s.inputs = inputs_of(*kept, i);
            s.expected = pt::evaluate(kept->p, s.inputs).arrays();
            s.bounds = bounds_of(*kept, s.inputs);
            return s;
          }};
}

/// Partitions by the case's actions, with passes that the seed draws.
inline pt::device_program by_actions(const random_test::test_case& c, random& r) {
  pt::core_program core(c.p, c.mesh, random_test::some_core_options(c));
  for (const auto& tactic : c.tactics) {
    for (const auto& a : tactic)
      if (a.possible(c.mesh)) (void)random_test::apply(core, a);
    core.propagate();
  }
  pt::lowered l = pt::lower(core, {.passes = random_test::some_passes(c, r)});
  l.error.raise();
  return l.device;
}
/// Partitions by a schedule of tactics by name, including microbatches. (The subject of the test is
/// the proof.)
inline pt::device_program by_schedule(const random_test::test_case& c, random& r) {
  const auto schedule = random_test::draw_schedule(c, r);
  return pt::partition(c.p, c.mesh, schedule,
                       {.passes = random_test::some_passes(c, r),
                        .overlap = random_test::some_overlap(r),
                        .prove = pt::no_proof})
      .device;
}
inline pt::device_program partitioned(const random_test::test_case& c, random& r) {
  if (r.one_in(2) || c.mesh.rank == 0) return by_actions(c, r);
  try {
    return by_schedule(c, r);
  } catch (const pt::error&) {
    return by_actions(c, r);  // the tactics may be impossible
  }
}
/// Returns nothing if the program or the mesh is large, unless PARTITA_MUTANTS_OF=all.
inline maybe_subject random_subject(std::uint64_t seed) {
  static const char* const sizes = std::getenv("PARTITA_MUTANTS_OF");
  static const bool all = sizes != nullptr && std::string_view(sizes) == "all";
  const random_test::test_case c = random_test::generator(seed).make();
  if (!all && (c.p.op_count() > 120 || c.mesh.devices() > 16)) return nullptr;
  random r{seed * 71 + 3};
  return std::make_unique<subject>("seed " + std::to_string(seed), c.p, partitioned(c, r),
                                   reference_of(c));
}

// ---- Models -------------------------------------------------------------------------------------

/// Turns floats into f64: roundings are then far below real differences.
inline void make_double(pt::program& p) {
  for (auto& t : p.types)
    if (pt::is_floating(t.element)) t.element = pt::dtype::f64;
  for (auto& r : p.regions) make_double(r);
}
/// Returns the bounds of roundings of a training step, relative to its maxima.
inline std::vector<double> bounds_of(const std::vector<pt::array>& results) {
  std::vector<double> bounds;
  for (const auto& y : results) {
    const pt::array zero = data::fill(y.type(), [](std::int64_t) { return 0; });
    bounds.push_back(pt::is_floating(y.element()) ? 1e-13 * (1e-3 + pt::max_difference(y, zero))
                                                  : 0);
  }
  return bounds;
}
/// Real numbers; second moments of an optimizer are above 0; integers are indices below `limit`.
inline pt::array model_input(std::string_view name, const pt::tensor_type& t, int limit,
                             random& r) {
  if (!pt::is_floating(t.element)) return data::integers(t, r, 0, limit - 1);
  const bool positive = name.starts_with("opt_state.v.");
  if (name == "opt_state.step") return data::fill(t, [](std::int64_t) { return 10; });
  return data::fill(t, [&](std::int64_t) {
    const double unit = static_cast<double>(r.in(0, 1 << 20)) * 0x1p-20;
    return positive ? 0.5 + unit / 2 : (unit - 0.5) / 2;
  });
}
inline reference reference_of(const pt::program& p, int limit) {
  return {2, 4, [&p, limit](int i) {
            random r{static_cast<std::uint64_t>(i) + 7};
            sample s;
            for (int k = 0; k < p.input_count(); ++k)
              s.inputs.push_back(model_input(p.input_name(k), p.input_type(k), limit, r));
            s.expected = pt::evaluate(p, s.inputs).arrays();
            s.bounds = bounds_of(s.expected);
            return s;
          }};
}

/// A model, and a function that partitions it.
struct model {
  std::string name;
  std::function<pt::program()> trace;
  std::function<pt::device_program(const pt::program&)> partition;
  int limit;  ///< of indices
};
template <class... Tactics>
auto on(const pt::mesh& m, const Tactics&... tactics) {
  return [=](const pt::program& p) { return pt::partition(p, m, pt::schedule(tactics...)).device; };
}
inline pt::program small_transformer() {
  return paper::trace_training_step(paper::language_model_sizes{.layers = 1,
                                                                .width = 8,
                                                                .heads = 2,
                                                                .key = 4,
                                                                .hidden = 8,
                                                                .vocabulary = 8,
                                                                .context = 3,
                                                                .batch = 4});
}
inline pt::program small_server() {
  return paper::trace_serving({.layers = 1,
                               .width = 8,
                               .heads = 4,
                               .key = 2,
                               .hidden = 8,
                               .vocabulary = 8,
                               .batch = 4,
                               .prompt = 3,
                               .tokens = 3});
}
inline pt::program small_graph_network() {
  return paper::trace_training_step(paper::gns_sizes{.nodes = 4,
                                                     .edges = 8,
                                                     .node_features = 2,
                                                     .edge_features = 3,
                                                     .global_features = 2,
                                                     .edge_targets = 2,
                                                     .global_targets = 1,
                                                     .latent = 4,
                                                     .hidden = 6,
                                                     .mlp_layers = 2,
                                                     .steps = 1});
}
inline pt::program small_unet() {
  return paper::trace_training_step(paper::unet_sizes{.batch = 2,
                                                      .height = 8,
                                                      .width = 4,
                                                      .channels = 2,
                                                      .base = 8,
                                                      .blocks = 1,
                                                      .pairs = 1,
                                                      .heads = 2});
}
inline std::vector<model> small_models() {
  using namespace paper::transformers;
  namespace unet = paper::diffusion;
  const pt::mesh m{{"batch", 2}, {"model", 2}};
  return {
      {"T32 BP+MP", small_transformer, on(m, BP, MP), 8},
      {"T32 BP+MP+Z2", small_transformer, on(m, BP, MP, Z2), 8},
      {"T32 BP+MP+Z3+EMB", small_transformer, on(m, BP, MP, Z3, EMB), 8},
      {"IT32 BP+MP", small_server, on(m, paper::serving::BP, paper::serving::MP), 8},
      {"IT32 BP+MQ+MP", small_server,
       on(m, paper::serving::BP, paper::serving::MQ, paper::serving::MP), 8},
      {"GNS ES", small_graph_network, on(m, paper::graphs::ES), 4},
      {"UNet BP+Z3", small_unet, on(m, unet::BP, unet::Z3), 1},
      {"UNet BP+space", small_unet, on({{"batch", 2}, {"space", 2}}, unet::BP, unet::space), 1}};
}
inline maybe_subject subject_of(const model& m) {
  pt::program p = m.trace();
  make_double(p);
  auto s = std::make_unique<subject>(m.name, p, m.partition(p), reference());
  s->numbers = reference_of(s->source, m.limit);
  return s;
}

// ---- Programs written by hand -------------------------------------------------------------------

inline maybe_subject subject_of(const practice::practice_case& c) {
  practice::written w = practice::read(c, c.local, "f64");
  auto s = std::make_unique<subject>(std::string(c.name), w.source, w.device, reference());
  s->numbers = reference_of(s->source, c.below);
  return s;
}

}  // namespace mutants
