/// Validates the simulator against formulas and against published measurements.
///
///   bench_validate [--table1 FILE] [--table3 FILE] [--megatron FILE] [--korthikanti FILE]
///                  [--memory FILE] [--memory-parts FILE]
///
/// It compares
///
/// * the FLOPs of a transformer with their formula,
/// * our estimates with PartIR's Table 1 (measured memory and MFU) and Table 3 (its simulator's
///   estimates); the files have the tables' rows as CSV,
/// * predicted with published steps of GPT models on A100s: every other row serves to fit the
///   fraction of the peak that products attain, and the remaining rows are predicted,
/// * the bytes that layers keep for their derivatives, with and without remat, with figures 1 and 7
///   of Korthikanti et al.
///
/// Source    Narayanan et al., arXiv:2104.04473 (Table 1, equation 3), Korthikanti et al.,
///           arXiv:2205.05198 (Table 5), PartIR, arXiv:2401.11202 (Tables 1 and 3)
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <map>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <partita/cost/simulate.hpp>

#include "../examples/models/megatron_block.hpp"
#include "../examples/models/transformer.hpp"
#include "paper_sizes.hpp"
#include "statistics.hpp"

namespace pt = partita;

namespace {

using row = std::map<std::string, std::string>;

/// Reads the rows of a CSV file. Its first line names the columns; lines with # are comments.
std::vector<row> read_csv(const std::string& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file);
  const auto fields = [](const std::string& line) {
    std::vector<std::string> list;
    std::istringstream words(line);
    for (std::string word; std::getline(words, word, ',');) list.push_back(word);
    return list;
  };
  std::vector<std::string> names;
  std::vector<row> rows;
  for (std::string line; std::getline(in, line);) {
    if (line.empty() || line[0] == '#') continue;
    const auto words = fields(line);
    if (names.empty()) {
      names = words;
      continue;
    }
    row r;
    for (std::size_t i = 0; i < words.size() && i < names.size(); ++i) r[names[i]] = words[i];
    rows.push_back(r);
  }
  return rows;
}
double number(const row& r, const char* name) { return std::stod(r.at(name)); }

// ---- FLOPs --------------------------------------------------------------------------------------

void check_flops() {
  std::puts(
      "FLOPs of a training step: products of the program, and 72 B L s h^2 (1 + s/6h + V/12hL); "
      "recomputing the layers except their last product adds 16 B L s h^2 (1 + s/4h)");
  std::puts(
      "layers,width,sequence,vocabulary,batch,program,formula,ratio,with remat,formula,ratio");
  for (const auto& [layers, width, context, vocabulary, batch] :
       {std::array<std::int64_t, 5>{2, 512, 256, 1024, 4},
        {4, 1024, 2048, 51200, 2},
        {8, 2048, 1024, 32768, 8}}) {
    const auto p = transformer::trace_training_step<transformer::dynamic>(
        {layers, width, width / 64, 64, 4 * width, vocabulary, context, batch});
    const auto flops = [&](const auto& schedule) {
      const auto r = pt::partition(p, pt::mesh{{"B", 1}}, schedule);
      return pt::simulate(r.device, pt::a100_80).product_flops;
    };
    const double found = flops(pt::schedule()),
                 again = flops(pt::schedule(pt::remat({"params.layers"})));
    const double B = static_cast<double>(batch), L = static_cast<double>(layers),
                 s = static_cast<double>(context), h = static_cast<double>(width),
                 V = static_cast<double>(vocabulary);
    const double formula = 72 * B * L * s * h * h * (1 + s / (6 * h) + V / (12 * h * L));
    const double more = formula + 16 * B * L * s * h * h * (1 + s / (4 * h));
    std::printf("%g,%g,%g,%g,%g,%.6g,%.6g,%.4f,%.6g,%.6g,%.4f\n", L, h, s, V, B, found, formula,
                found / formula, again, more, again / more);
  }
}

// ---- PartIR's Tables 1 and 3 --------------------------------------------------------------------

double percent(double ours, double theirs) { return 100 * (ours / theirs - 1); }

struct estimate_row {
  double mebibytes = 0, serial = 0, overlapped = 0;  ///< milliseconds
};
class partir_table {
 public:
  explicit partir_table(const bench::paper_sizes& m) : title_(m.title) {
    add_language_model(m);
    add_serving(m);
    add_unet(m);
    add("GNS,ES", paper::trace_training_step(m.gns), paper::graphs::ES);
  }
  void compare(const std::vector<row>& theirs) const {
    std::printf(
        "\nPartIR's Table 3 (its simulator, 8x4 TPUv3), %s: ours and theirs, errors with sign\n"
        "model,schedule,mib,paper,error,ms,error,overlapped,error,paper\n",
        std::string(title_).c_str());
    std::map<std::string, paired> columns;
    for (const row& r : theirs) {
      const std::string name = r.at("model") + "," + r.at("schedule");
      const auto found = rows_.find(name);
      if (found == rows_.end()) continue;  // a row of an automatic schedule
      const double mib = number(r, "mem_mb"), ms = number(r, "runtime_ms");
      const estimate_row& e = found->second;
      std::printf("%s,%.0f,%.0f,%+.1f %%,%.1f,%+.1f %%,%.1f,%+.1f %%,%.1f\n", name.c_str(),
                  e.mebibytes, mib, percent(e.mebibytes, mib), e.serial, percent(e.serial, ms),
                  e.overlapped, percent(e.overlapped, ms), ms);
      columns[r.at("model")].add(e, mib, ms);
      if (name != "T32,BP") columns[r.at("model") + " without BP"].add(e, mib, ms);
    }
    for (const std::string name : {"T32", "T32 without BP", "UNet"}) columns[name].print(name);
  }

 private:
  /// Our figures and the paper's, row by row.
  struct paired {
    std::vector<double> mib, their_mib, ms, their_ms;

    void add(const estimate_row& e, double theirs_mib, double theirs_ms) {
      mib.push_back(e.mebibytes), their_mib.push_back(theirs_mib);
      ms.push_back(e.overlapped), their_ms.push_back(theirs_ms);
    }
    void print(const std::string& name) const {
      std::printf(
          "%s: mean absolute error of memory %.1f %%, Spearman %.2f; of overlapped time "
          "%.1f %%, %.2f (%d rows)\n",
          name.c_str(), 100 * bench::mean_error(mib, their_mib), bench::spearman(mib, their_mib),
          100 * bench::mean_error(ms, their_ms), bench::spearman(ms, their_ms),
          static_cast<int>(mib.size()));
    }
  };
  std::string_view title_;
  std::map<std::string, estimate_row> rows_;

  template <class... Tactics>
  void add(const std::string& name, const pt::program& p, const Tactics&... tactics) {
    const auto r = pt::partition(p, pt::mesh{{"batch", 8}, {"model", 4}}, pt::schedule(tactics...));
    rows_[name] = {static_cast<double>(r.cost.peak_bytes) / (1 << 20),
                   1e3 * pt::simulate(r.device, pt::tpu_v3_partir).time,
                   1e3 * pt::simulate(r.device, pt::tpu_v3_partir, {.overlap = true}).time};
  }
  void add_language_model(const bench::paper_sizes& m) {
    using namespace paper::transformers;
    const auto p = paper::trace_training_step(m.t32);
    add("T32,BP", p, BP);
    add("T32,BP+MP", p, BP, MP);
    add("T32,BP+MP+Z2", p, BP, MP, Z2);
    add("T32,BP+MP+Z3", p, BP, MP, Z3);
    add("T32,BP+MP+Z3+EMB", p, BP, MP, Z3, EMB);
    add("T32,MP", p, MP);
    add("T32,EMB", p, MP, EMB);
  }
  void add_serving(const bench::paper_sizes& m) {
    using namespace paper::serving;
    const auto p = paper::trace_serving(m.it32);
    add("IT32,BP", p, BP);
    add("IT32,BP+MP", p, BP, MP);
    add("IT32,BP+MP+MQ", p, BP, MQ, MP);
    add("IT32,MP", p, MP);
  }
  void add_unet(const bench::paper_sizes& m) {
    using namespace paper::diffusion;
    const auto p = paper::trace_training_step(m.unet);
    add("UNet,BP", p, BP);
    add("UNet,BP+Z2", p, BP, Z2);
    add("UNet,BP+Z3", p, BP, Z3);
  }
};

/// Returns the number of parameters of a program, in billions.
double billions_of_parameters(const pt::program& p) {
  double n = 0;
  for (int i = 0; i < p.input_count(); ++i)
    if (p.input_name(i).starts_with("params."))
      n += static_cast<double>(p.input_type(i).shape.elements());
  return 1e-9 * n;
}
/// Compares BP+MP+Z3+EMB with the paper's runs: memory of a device, and its MFU (fraction of the
/// peak FLOP/s).
void compare_runs(const bench::paper_sizes& m, const std::vector<row>& theirs) {
  using namespace paper::transformers;
  std::printf(
      "\nPartIR's Table 1 (measured, BP+MP+Z3+EMB), %s: ours and theirs, errors with sign\n"
      "mesh,device,parameters,gb,paper,error,mfu,error,overlapped,error,paper\n",
      std::string(m.title).c_str());
  for (const row& r : theirs) {
    const std::string& mesh = r.at("mesh");
    const auto x = mesh.find('x');
    const pt::device& on = r.at("device") == "GPU" ? pt::a100_40_partir : pt::tpu_v3_partir;
    const auto p = paper::trace_training_step(r.at("model") == "5B" ? m.t32 : m.t48);
    const auto made =
        pt::partition(p, {{"batch", std::stoll(mesh)}, {"model", std::stoll(mesh.substr(x + 1))}},
                      pt::schedule(BP, MP, Z3, EMB));
    const double gb = static_cast<double>(made.cost.peak_bytes) / 1e9,
                 mfu = 100 * pt::simulate(made.device, on).mfu(),
                 overlapped = 100 * pt::simulate(made.device, on, {.overlap = true}).mfu(),
                 their_gb = number(r, "hbm_gb_partir"), their_mfu = number(r, "mfu_partir");
    std::printf("%s,%s,%.1fB,%.2f,%.2f,%+.1f %%,%.1f %%,%+.1f %%,%.1f %%,%+.1f %%,%.1f %%\n",
                mesh.c_str(), r.at("device").c_str(), billions_of_parameters(p), gb, their_gb,
                percent(gb, their_gb), mfu, percent(mfu, their_mfu), overlapped,
                percent(overlapped, their_mfu), their_mfu);
  }
}

// ---- Published steps of GPT models on A100s -----------------------------------------------------

/// Returns the device for 16-bit steps: our programs have 32-bit numbers, so the device's rates
/// double.
pt::device in_half(pt::device d) {
  d.f32 = d.f16;
  d.bandwidth *= 2;
  d.near.bandwidth *= 2;
  d.far.bandwidth *= 2;
  return d;
}
struct gpt {
  std::int64_t layers, width, heads, context, vocabulary, tensor, pipeline, devices, batch, micro;
  int interleaved;  ///< model chunks per stage of an interleaved pipeline
  double parameters() const {
    const double h = static_cast<double>(width), L = static_cast<double>(layers);
    return 12 * L * h * h + static_cast<double>(vocabulary + context) * h;
  }
};
struct step_times {
  double forward = 0, both = 0;  ///< seconds
};
/// Traces loss and gradients, without an optimizer.
pt::program trace_gradients(const transformer::sizes& s) {
  const pt::tensor<std::int32_t, pt::dyn, pt::dyn> tokens(s.batch, s.context);
  return pt::trace(
      [](const auto& params, const auto& x, const auto& y) {
        const auto [value, gradients] =
            pt::value_and_grad([&](const auto& p) { return transformer::loss(p, x, y); }, params);
        return std::tuple{pt::output("loss", value), pt::output("gradients", gradients)};
      },
      pt::input("params", transformer::params_for<transformer::dynamic>(s)),
      pt::input("tokens", tokens), pt::input("targets", tokens));
}
/// Simulates a model with `layers` layers, for one microbatch on `g.tensor` devices.
step_times simulated(const gpt& g, std::int64_t layers, const pt::device& on) {
  const transformer::sizes s{layers,      g.width,      g.heads,   g.width / g.heads,
                             4 * g.width, g.vocabulary, g.context, g.micro};
  const pt::mesh m{{"M", g.tensor}};
  const auto time = [&](const pt::program& p) {
    return pt::simulate(pt::partition(p, m, pt::schedule(transformer::MP)).device, on).time;
  };
  return {time(transformer::trace_logits<transformer::dynamic>(s)), time(trace_gradients(s))};
}
/// Returns the seconds of a step with full recomputation and a 1F1B pipeline. The last stage, which
/// has the head, sets the pace. The data-parallel groups sum the gradients at the end, as 32-bit
/// numbers.
double seconds_of_step(const gpt& g, const pt::device& device) {
  const pt::device on = in_half(device);
  const step_times one = simulated(g, 1, on), two = simulated(g, 2, on);
  const double layer = (two.both - one.both) + (two.forward - one.forward);
  const double ends = one.both - (two.both - one.both);  // embedding and head
  const double data = static_cast<double>(g.devices / (g.tensor * g.pipeline)),
               stages = static_cast<double>(g.pipeline),
               microbatches = static_cast<double>(g.batch) / (data * static_cast<double>(g.micro));
  const double stage = layer * static_cast<double>(g.layers) / stages + ends;
  const double local = g.parameters() / static_cast<double>(g.tensor * g.pipeline);
  const double gradients =
      data > 1 ? 2 * (data - 1) / data * 4 * local / (device.far.bandwidth * device.link_part) : 0;
  // Adam with a 32-bit copy reads gradient, parameter and two moments; it writes the latter three
  // and a 16-bit parameter.
  const double update = 30 * local / (device.bandwidth * device.memory_part);
  return (microbatches + (stages - 1) / g.interleaved) * stage + gradients + update;
}
struct published {
  std::string name;
  gpt model;
  double seconds;
};
std::vector<published> read_published(const std::string& megatron, const std::string& korthikanti) {
  std::vector<published> list;
  const auto whole = [](const row& r, const char* name) {
    return static_cast<std::int64_t>(number(r, name));
  };
  if (!megatron.empty())
    for (const row& r : read_csv(megatron)) {
      // Equation 3 converts throughput to time. The table does not state the microbatch size.
      gpt g{whole(r, "layers"), whole(r, "hidden"), whole(r, "heads"), 2048, 51200, whole(r, "tp"),
            whole(r, "pp"),     whole(r, "gpus"),   whole(r, "batch"), 1,    1};
      const double h = static_cast<double>(g.width), L = static_cast<double>(g.layers), s = 2048;
      const double flops = 96 * static_cast<double>(g.batch) * s * L * h * h *
                           (1 + s / (6 * h) + 51200 / (16 * L * h));
      list.push_back(
          {"SC21 " + r.at("params_b") + "B", g,
           flops / (number(r, "tflops_per_gpu") * 1e12 * static_cast<double>(g.devices))});
    }
  if (!korthikanti.empty())
    for (const row& r : read_csv(korthikanti))
      list.push_back({"Table 5 " + r.at("model"),
                      {whole(r, "layers"), whole(r, "hidden"), whole(r, "heads"), whole(r, "seq"),
                       51200, whole(r, "tp"), whole(r, "pp"), whole(r, "gpus"), whole(r, "batch"),
                       whole(r, "microbatch"), static_cast<int>(whole(r, "interleave_v"))},
                      number(r, "iter_s_full_recompute")});
  return list;
}
void compare_published(const std::vector<published>& list) {
  pt::device d = pt::a100_80;
  const auto error = [&](std::size_t i) {
    return seconds_of_step(list[i].model, d) / list[i].seconds - 1;
  };
  // Fits one constant on rows 0, 2, 4, ...: the fraction of the peak that large products attain.
  double best = 1e9, part = d.product_part;
  for (double p = 0.5; p <= 1.0001; p += 0.025) {
    d.product_part = p < 1 ? p : 1;
    double sum = 0;
    for (std::size_t i = 0; i < list.size(); i += 2) sum += std::abs(error(i));
    if (sum < best) best = sum, part = d.product_part;
  }
  for (const bool fitted : {false, true}) {
    d.product_part = fitted ? part : pt::a100_80.product_part;
    std::printf(
        "\nSteps of GPT models on A100-80, full recomputation; products attain %.3f of the peak "
        "(%s)\n",
        d.product_part, fitted ? "fitted on the rows marked *" : "the table's");
    std::puts("model,seconds,published,error");
    double all = 0, held = 0;
    std::size_t others = 0;
    std::vector<double> ours, theirs;
    for (std::size_t i = 0; i < list.size(); ++i) {
      const double s = seconds_of_step(list[i].model, d), e = s / list[i].seconds - 1;
      std::printf("%s%s,%.3f,%.3f,%+.1f %%\n", list[i].name.c_str(), i % 2 == 0 ? "*" : "", s,
                  list[i].seconds, 100 * e);
      all += std::abs(e);
      if (i % 2 == 1) held += std::abs(e), ++others;
      ours.push_back(s), theirs.push_back(list[i].seconds);
    }
    std::printf("mean absolute error %.1f %%, of the rows not fitted %.1f %%; Spearman %.2f\n",
                100 * all / static_cast<double>(list.size()),
                others > 0 ? 100 * held / static_cast<double>(others) : 0,
                bench::spearman(ours, theirs));
  }
}

// ---- Activation memory --------------------------------------------------------------------------

/// A model of figures 1 and 7 whose sizes Table 5 states, on 8 tensor-parallel devices.
struct kept_model {
  std::string_view name;
  megatron::sizes sizes;
  /// Microbatches that the first stage of an interleaved pipeline holds: 1 + (p - 1) / (p m).
  double in_flight;
};
constexpr kept_model kept_models[] = {{"22B", {48, 2048, 4, 6144, 64}, 1},
                                      {"175B", {96, 2048, 1, 12288, 96}, 1 + 7.0 / (8 * 3)}};
const kept_model& model_of(const row& r) {
  for (const kept_model& m : kept_models)
    if (m.name == r.at("model")) return m;
  throw std::runtime_error("the sizes of model " + r.at("model") + " are not known");
}
/// Returns the bytes that the layers of a model keep on one device.
template <class... Tactics>
double kept_by(const kept_model& m, const Tactics&... tactics) {
  return m.in_flight * static_cast<double>(m.sizes.layers) *
         static_cast<double>(megatron::bytes_of_layer(m.sizes, 8, tactics...));
}
void compare_kept(const std::string& file) {
  using namespace megatron;
  std::puts("\nBytes that layers keep for their derivatives, GiB: ours and published");
  std::puts("model,none,published,sequence parallel and selective,published");
  for (const row& r : read_csv(file)) {
    const kept_model& m = model_of(r);
    std::printf("%s,%.10g,%s,%.10g,%s\n", r.at("model").c_str(), kept_by(m, TP) / (1 << 30),
                r.at("act_none_gib").c_str(), kept_by(m, SP, TP, selective) / (1 << 30),
                r.at("act_seqsel_gib").c_str());
  }
}
void compare_parts(const std::string& file) {
  using namespace megatron;
  std::puts("\nThe same in percent of the bytes kept without recomputation: ours and published");
  std::puts("model,selective,published,sequence parallel and selective,published,full,published");
  for (const row& r : read_csv(file)) {
    const kept_model& m = model_of(r);
    const double all = kept_by(m, TP) / 100;
    std::printf("%s,%.2f,%s,%.2f,%s,%.2f,%s\n", r.at("model").c_str(),
                kept_by(m, TP, selective) / all, r.at("sel").c_str(),
                kept_by(m, SP, TP, selective) / all, r.at("seqsel").c_str(),
                kept_by(m, TP, full) / all, r.at("full").c_str());
  }
}

}  // namespace

int main(int count, char** words) try {
  std::map<std::string_view, std::string> files;
  for (int i = 1; i + 1 < count; i += 2) files[words[i]] = words[i + 1];
  const std::string &megatron = files["--megatron"], &korthikanti = files["--korthikanti"];
  check_flops();
  for (const bench::paper_sizes& m : {bench::default_sizes, bench::inferred_sizes}) {
    if (!files["--table1"].empty()) compare_runs(m, read_csv(files["--table1"]));
    if (!files["--table3"].empty()) partir_table(m).compare(read_csv(files["--table3"]));
  }
  const auto list = read_published(megatron, korthikanti);
  if (!list.empty()) compare_published(list);
  if (!files["--memory"].empty()) compare_kept(files["--memory"]);
  if (!files["--memory-parts"].empty()) compare_parts(files["--memory-parts"]);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
