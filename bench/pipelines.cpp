/// Measures pipelines: bubble rates beside published ones, planning time, and threads against one
/// thread.
///
///     bench_pipelines
///
/// The rates come from the times that Qi et al. measured (arXiv:2401.10241, tables 4 and 9). Our
/// pipeline orders replay these times, as do orders searched with memory for p and 2p activations.
/// The second part of a backward pass keeps 32 / (34 + 5 a s / h) of a forward pass's activations;
/// table 3 has the heads a, the length s and the hidden size h.
#include <chrono>
#include <cstdio>
#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/order_search.hpp>
#include <partita/mpmd/pipeline_memory.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/mpmd/write_functions.hpp>
#include <partita/report/pipeline_json.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/search/automatic.hpp>

#include "../examples/models/language_model.hpp"

namespace pt = partita;

namespace {

using clock_type = std::chrono::steady_clock;
double seconds_since(clock_type::time_point start) {
  return std::chrono::duration<double>(clock_type::now() - start).count();
}

struct published {
  const char* model;
  double kept;
  int m;
  pt::pipeline_costs costs;
  double rates[5];  ///< 1F1B, ZB-H1, ZB-H2, ZB-1p, ZB-2p
};
constexpr double kept_1_5 = 32 / (34 + 5 * 24 * 1024 / 2304.),
                 kept_6_2 = 32 / (34 + 5 * 32 * 1024 / 4096.);
const published rows[] = {{"1.5B",
                           kept_1_5,
                           24,
                           {18.522, 18.086, 9.337, 0.601},
                           {0.2431, 0.1585, 0.1083, 0.1585, 0.0433}},
                          {"1.5B",
                           kept_1_5,
                           32,
                           {18.513, 18.086, 9.331, 0.626},
                           {0.1985, 0.1242, 0.0837, 0.1242, 0.0039}},
                          {"1.5B",
                           kept_1_5,
                           64,
                           {18.546, 18.097, 9.321, 0.762},
                           {0.1240, 0.0674, 0.0444, 0.0674, 0.0026}},
                          {"6.2B",
                           kept_6_2,
                           24,
                           {29.718, 29.444, 19.927, 0.527},
                           {0.2347, 0.1323, 0.0698, 0.1323, 0.0029}},
                          {"6.2B",
                           kept_6_2,
                           32,
                           {29.802, 29.428, 19.530, 0.577},
                           {0.1898, 0.1045, 0.0559, 0.1045, 0.0022}},
                          {"6.2B",
                           kept_6_2,
                           64,
                           {29.935, 29.621, 19.388, 0.535},
                           {0.1091, 0.0554, 0.0294, 0.0554, 0.0010}}};

double rate(const pt::pipeline_order& order, const published& row) {
  const pt::pipeline_shape s{8, 8, row.m};
  const pt::call_graph g = pt::plain_pipeline(s, order, {.split = order.splits});
  pt::failure error;
  const pt::vec<int> calls = pt::sequence(g, s, order, error);
  return pt::play(g,
                  pt::lists_with_messages(g, calls, pt::messages_of(g, calls, row.costs.transfer)),
                  [&](int c) { return row.costs.seconds(g.calls[c]); }, {.capacity = pt::unbounded})
      .bubble_of_span();
}

void print_rates() {
  std::printf("Bubble rates on 8 meshes, ours / published\n%-5s %3s", "model", "m");
  for (const char* name : {"1F1B", "ZB-H1", "ZB-H2", "ZB-1p", "ZB-2p"}) std::printf("  %15s", name);
  std::printf("\n");
  for (const published& row : rows) {
    std::printf("%-5s %3d", row.model, row.m);
    const pt::pipeline_order* const orders[] = {&pt::one_f_one_b, &pt::zb_h1, &pt::zb_h2};
    for (int i = 0; i < 3; ++i) std::printf("  %.4f / %.4f", rate(*orders[i], row), row.rates[i]);
    for (const int p : {1, 2}) {
      pt::pipeline_costs costs = row.costs;
      costs.kept = row.kept;
      const pt::found_order found = pt::search_order({8, 8, row.m}, costs, {.memory = 8.0 * p});
      std::printf("  %.4f / %.4f", found.bubble, row.rates[2 + p]);
    }
    std::printf("\n");
  }
}

/// The options of a pipeline that divides a language model into stages of equal numbers of layers.
struct staged {
  std::vector<std::string> meshes, layers;
  pt::topology topology;
  pt::pipeline_options options;

  staged(int stages, std::int64_t layer_count, int microbatches) {
    for (int i = 0; i < stages; ++i) meshes.push_back("m" + std::to_string(i));
    for (std::int64_t i = 0; i < layer_count; ++i) layers.push_back("layers." + std::to_string(i));
    for (const auto& name : meshes) topology.push_back({name, {{"B", 4}, {"M", 2}}});
    options.microbatches = microbatches;
    options.batch = {{"tokens", 0}, {"targets", 0}};
    auto& names = options.where.names;
    names.push_back({"embedding", meshes.front(), 0});
    for (std::int64_t i = 0; i < layer_count; ++i) {
      const int stage = static_cast<int>(i * stages / layer_count);
      names.push_back(
          {layers[static_cast<std::size_t>(i)], meshes[static_cast<std::size_t>(stage)], stage});
    }
    names.push_back({"head", meshes.back(), stages - 1});
  }
};

void print_plan() {
  std::printf("\nT32 in 8 stages, 1F1B: milliseconds (minimum of five)\n%12s %8s %8s %8s %6s\n",
              "microbatches", "trace", "plan", "timeline", "calls");
  paper::language_model_sizes sizes = paper::T32;
  sizes.batch = 64;
  for (const int m : {8, 32, 64}) {
    double traced = 1e9, planned = 1e9, played = 1e9;
    int calls = 0;
    for (int i = 0; i < 5; ++i) {
      const staged where(8, sizes.layers, m);
      auto start = clock_type::now();
      const pt::program f = paper::trace_training_step(sizes);
      traced = std::min(traced, seconds_since(start));
      start = clock_type::now();
      const pt::pipelined p = pt::pipeline(f, where.topology, pt::one_f_one_b, where.options);
      planned = std::min(planned, seconds_since(start));
      start = clock_type::now();
      (void)pt::play(
          p.calls, p.lists, [](int) { return 1.0; }, p.channels);
      played = std::min(played, seconds_since(start));
      calls = p.calls.count();
    }
    std::printf("%12d %8.1f %8.1f %8.2f %6d\n", m, traced * 1e3, planned * 1e3, played * 1e3,
                calls);
  }
}

/// Plans with batch and Megatron parallelism inside the stages, and with fully sharded parameters.
void print_sharded_plan() {
  std::printf(
      "\nT32 in 8 stages of {\"batch\":16, \"model\":2}, 1F1B, 32 microbatches: milliseconds "
      "(minimum of three)\n%-12s %8s %8s %8s %8s %9s %8s %8s %8s %8s %12s\n",
      "inside", "trace", "plan", "prove", "export", "functions", "gathers", "sums", "scatters",
      "conflict", "peak MB");
  paper::language_model_sizes sizes = paper::T32;
  sizes.batch = 512;
  const auto print_row = [&](const char* name, const auto& tactics, bool keep_gathered = false) {
    double traced = 1e9, planned = 1e9, proved = 1e9, exported = 1e9;
    pt::exported_pipeline e;
    pt::pipelined p;
    for (int i = 0; i < 3; ++i) {
      staged where(8, sizes.layers, 32);
      where.topology = {};
      for (const auto& each : where.meshes)
        where.topology.push_back({each, {{"batch", 16}, {"model", 2}}});
      auto start = clock_type::now();
      const pt::program f = paper::trace_training_step(sizes);
      traced = std::min(traced, seconds_since(start));
      where.options.keep_gathered = keep_gathered;
      start = clock_type::now();
      p = pt::pipeline(f, where.topology, pt::one_f_one_b, where.options, tactics);
      planned = std::min(planned, seconds_since(start));
      start = clock_type::now();
      if (const pt::verdict v = pt::prove(f, p); !v)
        std::puts(std::string(v.error.message.view()).c_str());
      proved = std::min(proved, seconds_since(start));
      start = clock_type::now();
      e = pt::export_calls(p);
      if (pt::pipeline_json(p, e).empty()) std::puts("nothing is written");
      for (int each = 0; each < static_cast<int>(e.functions.size()); ++each)
        if (pt::write_stablehlo(p, e, each).empty()) std::puts("nothing is written");
      exported = std::min(exported, seconds_since(start));
    }
    std::int64_t peak = 0;
    for (const auto& m : pt::memory_of(p)) peak = std::max(peak, m.peak);
    const pt::collectives& c = p.collectives;
    std::printf("%-12s %8.1f %8.1f %8.1f %8.1f %9d %8ld %8ld %8ld %8d %12.1f\n", name, traced * 1e3,
                planned * 1e3, proved * 1e3, exported * 1e3, static_cast<int>(e.functions.size()),
                static_cast<long>(c.all_gather), static_cast<long>(c.all_reduce),
                static_cast<long>(c.reduce_scatter), p.tactics.back().conflicts,
                static_cast<double>(peak) / 1e6);
  };
  print_row("BP", pt::schedule(paper::transformers::BP));
  print_row("BP+MP", pt::schedule(paper::transformers::BP, paper::transformers::MP));
  print_row("BP+MP+Z2", pt::schedule(paper::transformers::BP, paper::transformers::MP,
                                     paper::transformers::Z2));
  const auto fully_sharded =
      pt::schedule(paper::transformers::BP, paper::transformers::MP, paper::transformers::Z3);
  print_row("BP+MP+Z3", fully_sharded);
  print_row("kept", fully_sharded, true);
}

/// Compares stages sharded by hand with stages sharded by a search over the axes of their meshes.
void print_automatic() {
  std::printf(
      "\nTwo stages of {\"batch\":4, \"model\":2}, A100, 1F1B, 8 microbatches: simulated "
      "milliseconds, MB at the peak, seconds to plan\n%-24s %-16s %10s %10s %8s\n",
      "model", "inside", "ms", "MB", "plan");
  paper::language_model_sizes paper_layers = paper::T32;
  paper_layers.layers = 8;
  const struct {
    const char* name;
    paper::language_model_sizes sizes;
  } models[] = {{"4 layers, width 512",
                 {.layers = 4,
                  .width = 512,
                  .heads = 8,
                  .key = 64,
                  .hidden = 2048,
                  .vocabulary = 8192,
                  .context = 256,
                  .batch = 64}},
                {"8 layers, width 2048",
                 {.layers = 8,
                  .width = 2048,
                  .heads = 16,
                  .key = 128,
                  .hidden = 8192,
                  .vocabulary = 32768,
                  .context = 512,
                  .batch = 128}},
                {"8 layers of T32", paper_layers}};
  for (const auto& model : models) {
    const auto print_row = [&](const char* name, const auto& tactics) {
      staged where(2, model.sizes.layers, 8);
      where.topology = {};
      for (const auto& each : where.meshes)
        where.topology.push_back({each, {{"batch", 4}, {"model", 2}}});
      const pt::program f = paper::trace_training_step(model.sizes);
      const auto start = clock_type::now();
      const pt::pipelined p =
          pt::pipeline(f, where.topology, pt::one_f_one_b, where.options, tactics);
      const double planned = seconds_since(start);
      const pt::pipeline_time t = pt::simulate(p, pt::a100_80, {.overlap = true});
      std::int64_t peak = 0;
      for (const auto& m : pt::memory_of(p, t.times)) peak = std::max(peak, m.peak);
      std::printf("%-24s %-16s %10.2f %10.1f %8.2f\n", model.name, name, t.times.total * 1e3,
                  static_cast<double>(peak) / 1e6, planned);
      for (const auto& each : p.tactics)
        for (const auto& note : each.notes) std::puts(std::string(note.view()).c_str());
    };
    const pt::automatic search({"batch", "model"}, pt::a100_80, {.seconds = 20}),
        model_axis({"model"}, pt::a100_80, {.seconds = 20});
    using namespace paper::transformers;
    print_row("BP", pt::schedule(BP));
    print_row("BP+MP", pt::schedule(BP, MP));
    print_row("BP+Z3", pt::schedule(BP, Z3));
    print_row("BP+MP+Z3", pt::schedule(BP, MP, Z3));
    print_row("BP+automatic", pt::schedule(BP, model_axis));
    print_row("automatic", pt::schedule(search));
  }
}

std::vector<pt::array> arguments(const pt::program& f) {
  std::vector<pt::array> out;
  for (int i = 0; i < f.input_count(); ++i) {
    pt::array a(pt::tensor_type{pt::dtype::f64, f.input_type(i).shape});
    double* const x = a.mutable_data<double>();
    for (std::int64_t k = 0; k < a.size(); ++k)
      x[k] = pt::is_floating(f.input_type(i).element) ? 0.01 * static_cast<double>(k % 17 - 8)
                                                      : static_cast<double>(k % 64);
    out.push_back(pt::as_type(a, f.input_type(i).element));
  }
  return out;
}

void print_threads() {
  const paper::language_model_sizes sizes{.layers = 4,
                                          .width = 256,
                                          .heads = 8,
                                          .key = 32,
                                          .hidden = 1024,
                                          .vocabulary = 64,
                                          .context = 64,
                                          .batch = 32};
  const staged where(2, sizes.layers, 8);
  const pt::program f = paper::trace_training_step(sizes);
  const pt::executable_pipeline run(
      pt::pipeline(f, where.topology, pt::one_f_one_b, where.options));
  const std::vector<pt::array> x = arguments(f);
  double best[2] = {1e9, 1e9};
  for (int i = 0; i < 5; ++i)
    for (const auto mode : {pt::mesh_mode::in_order, pt::mesh_mode::threads}) {
      const auto start = clock_type::now();
      (void)run(x, mode);
      double& least = best[mode == pt::mesh_mode::threads];
      least = std::min(least, seconds_since(start));
    }
  std::printf("\nA step in 2 stages, 8 microbatches: in order %.0f ms, in threads %.0f ms (%.2f)\n",
              best[0] * 1e3, best[1] * 1e3, best[1] / best[0]);
}

}  // namespace

int main() {
  print_rates();
  print_plan();
  print_sharded_plan();
  print_threads();
  print_automatic();
  return 0;
}
