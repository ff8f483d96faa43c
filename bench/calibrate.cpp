/// Measures this machine's CPU as a device, and checks how well the simulator predicts runs on it.
///
///   bench_calibrate            prints the device in the format that `partita` and `read_system`
///   read bench_calibrate --products also prints the products that the device's figures were fitted
///   to bench_calibrate --cells    also prints predicted and measured time and memory of small
///   models
///                              as CSV, one row per model, schedule and mesh
///
/// The device's figures come from isolated kernels (this_cpu.hpp), never from the models. A run has
/// one thread, which does the work of all emulated devices; emulated_run.hpp predicts its cost. The
/// measured time is CPU time: the median of three rounds of at least three runs each. The device is
/// measured in the same rounds. The measured memory is the growth of the process in the first run,
/// as the operating system reports it.
#include <malloc.h>

#include <cmath>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include <partita/spec/system.hpp>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/transformer.hpp"
#include "../examples/models/unet.hpp"
#include "emulated_run.hpp"
#include "statistics.hpp"
#include "this_cpu.hpp"

namespace {

namespace pt = partita;

// ---- Measurements -------------------------------------------------------------------------------

/// Returns the value of a line of /proc/self/status in bytes, or -1 if it is missing.
std::int64_t process_bytes(std::string_view name) {
  std::ifstream in("/proc/self/status");
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(name)) return 1024 * std::stoll(line.substr(name.size() + 1));
  return -1;
}
/// Chooses whether the process keeps freed memory. If not, all but small blocks return to the
/// system.
void keep_memory(bool keep) {
  mallopt(M_MMAP_THRESHOLD, keep ? 1 << 25 : 1 << 16);
  mallopt(M_TRIM_THRESHOLD, keep ? 1 << 30 : 1 << 16);
  if (!keep) malloc_trim(0);
}
/// Returns the growth of the process in bytes while `f` runs, or -1 if the system does not report
/// it.
template <class F>
std::int64_t growth(const F& f) {
  keep_memory(false);
  std::ofstream("/proc/self/clear_refs") << "5";  // resets the peak to the current size
  const std::int64_t before = process_bytes("VmRSS:");
  f();
  const std::int64_t most = process_bytes("VmHWM:");
  keep_memory(true);
  return before < 0 ? -1 : most - before;
}

/// Returns values for input i with which training steps are numerically stable: parameters are
/// small, and the optimizer's state is that of a later step. Integers are below `limit`.
pt::array input_for(const pt::program& p, int i, std::int64_t limit) {
  const std::string_view name = p.input_name(i);
  const pt::tensor_type& type = p.input_type(i);
  const bool whole = !pt::is_floating(type.element);
  pt::array a(pt::tensor_type{pt::dtype::f32, type.shape});
  transformer::random_stream random(static_cast<std::uint64_t>(i + 1));
  for (float *x = a.mutable_data<float>(), *end = x + a.size(); x != end; ++x) {
    const double u = random.uniform();
    *x = static_cast<float>(whole                      ? std::floor(u * static_cast<double>(limit))
                            : name == "opt_state.step" ? 10
                            : name.starts_with("opt_state.m.") ? 0
                            : name.starts_with("opt_state.v.") ? 0.5 + u / 2
                                                               : (u - 0.5) / 8);
  }
  return pt::as_type(a, type.element);
}

// ---- Cells --------------------------------------------------------------------------------------

struct columns {
  std::vector<double> predicted, measured;
  void add(double p, double m) { predicted.push_back(p), measured.push_back(m); }
  void print(const char* what) const {
    std::printf("%s: mean absolute error %.1f %%, Spearman %.3f (%d cells)\n", what,
                100 * bench::mean_error(predicted, measured), bench::spearman(predicted, measured),
                static_cast<int>(predicted.size()));
  }
};

/// A model under a schedule on a mesh.
struct cell {
  std::string name;
  pt::partitioned program;
  bench::run_times times = {};
  double bytes = -1;               ///< growth of the process in the first run; -1: unknown
  std::int64_t planned_bytes = 0;  ///< memory of a run as the executable plans it
};

/// All cells, in the order of the calls to `on`. Each round measures all of them again.
class cells {
 public:
  void start_round() { next_ = 0; }
  /// Sets the model of the following calls to `on`. Integer inputs are below `limit`.
  void model(std::string name, pt::program p, std::int64_t limit) {
    name_ = std::move(name);
    p_ = std::move(p);
    inputs_.clear();
    for (int i = 0; i < p_.input_count(); ++i) inputs_.push_back(input_for(p_, i, limit));
  }
  template <class... Tactics>
  void on(const pt::mesh& mesh, std::string_view schedule, const Tactics&... tactics) {
    if (next_ == cells_.size())
      cells_.push_back({title(schedule, mesh), pt::partition(p_, mesh, pt::schedule(tactics...))});
    measure(cells_[next_++]);
  }
  void print(const pt::device& cpu) const {
    std::puts(
        "model,schedule,mesh,predicted_ms,measured_ms,ratio,predicted_mib,measured_mib,ratio,"
        "planned_mib");
    columns time, one, many, memory, planned;
    for (const cell& c : cells_) {
      const bench::emulated_run run(c.program.device, cpu);
      const double seconds = run.seconds(), took = c.times.median(),
                   bytes = static_cast<double>(run.bytes());
      std::printf("%s,%.2f,%.2f,%.2f,%.1f,%.1f,%.2f,%.1f\n", c.name.c_str(), 1e3 * seconds,
                  1e3 * took, seconds / took, mebi(bytes), mebi(c.bytes), bytes / c.bytes,
                  mebi(static_cast<double>(c.planned_bytes)));
      time.add(seconds, took);
      (c.program.device.mesh.devices() == 1 ? one : many).add(seconds, took);
      if (c.bytes < 0) continue;
      memory.add(bytes, c.bytes);
      planned.add(static_cast<double>(c.planned_bytes), c.bytes);
    }
    time.print("time");
    one.print("time, on one device");
    many.print("time, on several devices");
    memory.print("memory");
    planned.print("memory, as planned: executable::workspace_bytes and the outputs");
  }

 private:
  std::vector<cell> cells_;
  std::size_t next_ = 0;
  std::string name_;
  pt::program p_;
  std::vector<pt::array> inputs_;

  void measure(cell& c) const {
    const pt::executable run(c.program.device);
    const std::int64_t grown = growth([&] { run(inputs_); });
    if (c.bytes < 0) c.bytes = static_cast<double>(grown);
    c.planned_bytes = run.workspace_bytes();
    for (const auto& t : c.program.device.output_types) c.planned_bytes += t.bytes();
    c.times.measure([&] { run(inputs_); }, 0.2, 3);
  }
  std::string title(std::string_view schedule, const pt::mesh& mesh) const {
    std::string s = name_;
    s.append(",").append(schedule).append(",").append(sizes(mesh));
    return s;
  }
  static double mebi(double bytes) { return bytes / (1 << 20); }
  static std::string sizes(const pt::mesh& m) {
    std::string s;
    for (int a = 0; a < m.whole_rank(); ++a) {
      if (a > 0) s += 'x';
      s += std::to_string(m.size(a));
    }
    return s;
  }
};

pt::mesh batch_and_model(std::int64_t batch, std::int64_t model) {
  return {{"batch", batch}, {"model", model}};
}

void perceptron(cells& c) {
  const auto step = [](auto w1, auto w2, auto w3, auto x, auto y) {
    const auto loss = [&](const auto& w) {
      const auto h = pt::nn::relu(pt::matmul(x, std::get<0>(w)));
      return pt::nn::mean_squared_error(
          pt::matmul(pt::nn::relu(pt::matmul(h, std::get<1>(w))), std::get<2>(w)), y);
    };
    const auto [value, g] = pt::value_and_grad(loss, std::tuple{w1, w2, w3});
    return std::tuple{pt::output("w1", w1 - 0.1f * std::get<0>(g)),
                      pt::output("w2", w2 - 0.1f * std::get<1>(g)),
                      pt::output("w3", w3 - 0.1f * std::get<2>(g)), pt::output("loss", value)};
  };
  c.model("MLP",
          pt::trace(step, pt::input<float, 512, 1024>("w1"), pt::input<float, 1024, 1024>("w2"),
                    pt::input<float, 1024, 256>("w3"), pt::input<float, 512, 512>("x"),
                    pt::input<float, 512, 256>("y")),
          1);
  const auto BP = pt::manual("batch", {{"x", 0}, {"y", 0}}, "BP");
  const auto MP = pt::manual("model", {{"w1", 1}}, "MP");
  const auto Z3 = pt::manual("batch", {{"w1", 0}, {"w2", 0}, {"w3", 0}}, "Z3");
  c.on(batch_and_model(1, 1), "none");
  c.on(batch_and_model(4, 1), "BP", BP);
  c.on(batch_and_model(2, 2), "BP+MP", BP, MP);
  c.on(batch_and_model(4, 2), "BP+MP+Z3", BP, MP, Z3);
}
void gpt(cells& c, const char* name, const transformer::sizes& s) {
  using namespace transformer;
  c.model(name, trace_training_step<dynamic>(s), s.vocabulary);
  const auto mesh = [](std::int64_t b, std::int64_t m) { return pt::mesh{{"B", b}, {"M", m}}; };
  c.on(mesh(1, 1), "none");
  c.on(mesh(4, 1), "BP", BP);
  c.on(mesh(1, 4), "MP", MP);
  c.on(mesh(2, 2), "BP+MP", BP, MP);
  c.on(mesh(4, 1), "BP+Z2", BP, Z2);
  c.on(mesh(4, 2), "BP+MP+Z3", BP, MP, Z3);
}
void chinchilla(cells& c, const char* name, const paper::language_model_sizes& s) {
  using namespace paper::transformers;
  c.model(name, paper::trace_training_step(s), s.vocabulary);
  c.on(batch_and_model(1, 1), "none");
  c.on(batch_and_model(4, 1), "BP", BP);
  c.on(batch_and_model(2, 2), "BP+MP", BP, MP);
  c.on(batch_and_model(4, 2), "BP+MP+Z2", BP, MP, Z2);
  c.on(batch_and_model(4, 2), "BP+MP+Z3", BP, MP, Z3);
  c.on(batch_and_model(2, 2), "BP+MP+Z3+EMB", BP, MP, Z3, EMB);
}
void serving(cells& c) {
  using namespace paper::serving;
  c.model("IT32 small",
          paper::trace_serving({.layers = 2,
                                .width = 256,
                                .heads = 8,
                                .key = 32,
                                .hidden = 1024,
                                .vocabulary = 1024,
                                .batch = 16,
                                .prompt = 32,
                                .tokens = 16}),
          1024);
  c.on(batch_and_model(1, 1), "none");
  c.on(batch_and_model(4, 1), "BP", BP);
  c.on(batch_and_model(1, 4), "MP", MP);
  c.on(batch_and_model(2, 2), "BP+MP", BP, MP);
  c.on(batch_and_model(2, 2), "BP+MP+MQ", BP, MQ, MP);
}
void unet(cells& c) {
  using namespace paper::diffusion;
  c.model("UNet small",
          paper::trace_training_step({.batch = 8,
                                      .height = 16,
                                      .width = 8,
                                      .channels = 4,
                                      .base = 16,
                                      .blocks = 1,
                                      .pairs = 1,
                                      .heads = 4}),
          1);
  c.on(batch_and_model(1, 1), "none");
  c.on(batch_and_model(4, 1), "BP", BP);
  c.on(batch_and_model(4, 1), "BP+Z2", BP, Z2);
  c.on(batch_and_model(4, 1), "BP+Z3", BP, Z3);
  c.on(batch_and_model(2, 2), "BP+MP", BP, MP);
  c.on({{"batch", 2}, {"space", 2}}, "BP+space", BP, space);
}
void gns(cells& c) {
  using paper::graphs::ES;
  c.model("GNS small",
          paper::trace_training_step({.nodes = 256,
                                      .edges = 2048,
                                      .node_features = 32,
                                      .edge_features = 32,
                                      .global_features = 32,
                                      .edge_targets = 1,
                                      .global_targets = 1,
                                      .latent = 64,
                                      .hidden = 128,
                                      .mlp_layers = 3,
                                      .steps = 4}),
          256);
  c.on(batch_and_model(1, 1), "none");
  c.on(batch_and_model(2, 1), "ES", ES);
  c.on(batch_and_model(4, 1), "ES", ES);
  c.on(batch_and_model(8, 1), "ES", ES);
}

void measure(cells& c) {
  c.start_round();
  perceptron(c);
  gpt(c, "GPT", {2, 128, 4, 32, 512, 256, 64, 16});
  gpt(c, "GPT wide", {4, 256, 8, 32, 1024, 512, 128, 8});
  chinchilla(c, "T32 small", {4, 256, 8, 32, 1024, 1024, 64, 16});
  serving(c);
  unet(c);
  gns(c);
}

}  // namespace

int main(int count, char** words) try {
  const std::string_view option = count > 1 ? words[1] : "";
  if (count > 2 || (!option.empty() && option != "--products" && option != "--cells")) {
    std::puts("bench_calibrate [--products | --cells]");
    return 2;
  }
  constexpr int rounds = 3;
  keep_memory(true);
  bench::cpu_calibration cpu;
  cells all;
  for (int i = 0; i < rounds; ++i) {
    cpu.measure();
    if (option == "--cells") measure(all);
  }
  const pt::device found = cpu.device();
  const std::string text = bench::system_text(found);
  pt::read_system(text).error.raise();
  std::fputs(text.c_str(), stdout);
  if (option == "--products") cpu.print_products(found);
  if (option == "--cells") all.print(found);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
