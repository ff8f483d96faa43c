/// Counts the collectives of the paper's models under the paper's schedules at full size: Table 2.
///
///   bench_table2                  prints
///   model,schedule,all_gather,all_reduce,reduce_scatter,all_to_all bench_table2 --compare FILE
///   also prints the differences from a file in this format; the exit
///                                 status is 1 if a row differs that is not known to, if a row that
///                                 is known to differ has other counts, or if a row of FILE is
///                                 unknown
///   bench_table2 --inferred ...   uses the sizes inferred from other tables
///
/// Counts are those before all_reduces are combined. GNS is counted at all numbers of edges of the
/// paper.
///
/// Source    PartIR, arXiv:2401.11202, section 7.3; the mesh is that of figure 6
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "paper_sizes.hpp"

namespace pt = partita;

namespace {

constexpr pt::mesh mesh{{"batch", 8}, {"model", 4}};

using counts = std::array<std::int64_t, 4>;

struct row {
  std::string model, schedule;
  counts found;
  /// Ours, for rows that are known to differ from the paper or that it does not have.
  std::optional<counts> known;
};

/// A model under several schedules.
class table {
 public:
  template <class... Tactics>
  void add(std::string_view model, std::string_view schedule, const pt::program& p,
           const Tactics&... tactics) {
    const pt::collectives c = pt::partition(p, mesh, pt::schedule(tactics...)).collectives;
    rows_.push_back({std::string(model),
                     std::string(schedule),
                     {c.all_gather, c.all_reduce, c.reduce_scatter, c.all_to_all},
                     std::nullopt});
  }
  /// The counts of the last row are known to be these.
  void known(const counts& ours) { rows_.back().known = ours; }
  const std::vector<row>& rows() const { return rows_; }

 private:
  std::vector<row> rows_;
};

/// `layers` is the number of layers of a model that the paper's table does not have, or 0.
void add_language_model(table& t, std::string_view name, const pt::program& step, int layers) {
  using namespace paper::transformers;
  // A layer has 4 matrices, 5 vectors and 4 sums of Megatron; beside the layers are an embedding
  // and the loss.
  const std::int64_t L = layers, vectors = 5 * L + 1, matrices = 4 * L + 1;
  const auto add = [&](std::string_view schedule, const counts& ours, const auto&... tactics) {
    t.add(name, schedule, step, tactics...);
    if (layers > 0) t.known(ours);
  };
  add("BP", {0, vectors + matrices, 0, 0}, BP);
  add("BP+MP", {0, vectors + matrices + 4 * L, 0, 0}, BP, MP);
  add("BP+MP+Z2", {matrices, vectors + 4 * L, matrices, 0}, BP, MP, Z2);
  add("BP+MP+Z3", {2 * matrices + 1, vectors + 4 * L, matrices, 0}, BP, MP, Z3);
  add("BP+MP+Z3+EMB", {16 * L + 3, 11 * L + 2, 8 * L + 1, 0}, BP, MP, Z3, EMB);
  add("MP", {0, 4 * L, 0, 0}, MP);
  add("EMB", {8 * L, 6 * L + 1, 4 * L, 0}, MP, EMB);
}

/// MQ comes before MP: it decides how the attention is sharded, and no tactic undoes what an
/// earlier one did.
void add_serving(table& t, const paper::serving_sizes& sizes) {
  using namespace paper::serving;
  const pt::program p = paper::trace_serving(sizes);
  t.add("IT32", "BP", p, BP);
  t.add("IT32", "BP+MP", p, BP, MP);
  t.add("IT32", "BP+MP+MQ", p, BP, MQ, MP);
  t.add("IT32", "MP", p, MP);
}

void add_unet(table& t, const paper::unet_sizes& sizes) {
  using namespace paper::diffusion;
  const pt::program p = paper::trace_training_step(sizes);
  t.add("UNet", "BP", p, BP);
  // The paper gathers 517 and 799 times. Of 501 sharded parameters ours gathers each once, and with
  // Z3 again the 162 kernels that the derivative of their input needs. The paper does not say what
  // else it gathers.
  t.add("UNet", "BP+Z2", p, BP, Z2);
  t.known({501, 2, 501, 0});
  t.add("UNet", "BP+Z3", p, BP, Z3);
  t.known({663, 2, 501, 0});
}

table table2(const bench::paper_sizes& m) {
  table t;
  add_language_model(t, "T32", paper::trace_training_step(m.t32), 0);
  add_language_model(t, "T48", paper::trace_training_step(m.t48), 48);
  add_serving(t, m.it32);
  add_unet(t, m.unet);
  for (std::int64_t edges : {8192, 16384, 32768, 65536}) {
    paper::gns_sizes sizes = m.gns;
    sizes.edges = edges;
    const std::string name = edges == m.gns.edges ? "GNS" : "GNS " + std::to_string(edges);
    t.add(name, "ES", paper::trace_training_step(sizes), paper::graphs::ES);
    if (edges != m.gns.edges) t.known({0, 423, 0, 0});
  }
  return t;
}

/// Reads the rows of a file, keyed by "model,schedule".
std::map<std::string, counts> read(const char* file) {
  std::map<std::string, counts> rows;
  std::ifstream in(file);
  if (!in) throw std::runtime_error(std::string("cannot read ") + file);
  for (std::string line; std::getline(in, line);) {
    std::istringstream fields(line);
    std::string model, schedule, number;
    std::getline(fields, model, ',');
    std::getline(fields, schedule, ',');
    if (model.empty() || model[0] == '#' || model == "model") continue;
    counts& c = rows[model + ',' + schedule];
    for (auto& each : c) {
      if (!std::getline(fields, number, ','))
        throw std::runtime_error("expected four numbers: " + line);
      each = std::stoll(number);
    }
  }
  return rows;
}

void print(const counts& c) {
  for (auto each : c) std::printf(",%lld", static_cast<long long>(each));
}

}  // namespace

int main(int argc, char** argv) {
  const bool inferred = argc > 1 && std::string_view(argv[1]) == "--inferred";
  argc -= inferred, argv += inferred;
  const bool compare = argc == 3 && std::string_view(argv[1]) == "--compare";
  if (argc != 1 && !compare) {
    std::fprintf(stderr, "usage: bench_table2 [--inferred] [--compare FILE]\n");
    return 2;
  }
  try {
    const auto paper_rows = compare ? read(argv[2]) : std::map<std::string, counts>();
    std::printf("model,schedule,all_gather,all_reduce,reduce_scatter,all_to_all%s\n",
                compare ? ",more_gather,more_reduce,more_scatter,more_to_all,verdict" : "");
    bool good = true;
    const table all = table2(inferred ? bench::inferred_sizes : bench::default_sizes);
    for (const row& r : all.rows()) {
      const std::string name = r.model + ',' + r.schedule;
      std::printf("%s", name.c_str());
      print(r.found);
      if (compare) {
        const auto found = paper_rows.find(name);
        counts more{};
        if (found != paper_rows.end())
          for (std::size_t i = 0; i < more.size(); ++i) more[i] = r.found[i] - found->second[i];
        const bool equal = found != paper_rows.end() && more == counts{};
        const bool right = r.known ? *r.known == r.found : equal;
        good = good && right;
        print(more);
        std::printf(",%s", !right                      ? "WRONG"
                           : equal                     ? "equal"
                           : found == paper_rows.end() ? "not in the paper, as before"
                                                       : "differs, as before");
      }
      std::printf("\n");
    }
    for (const auto& [name, expected] : paper_rows) {
      bool known = false;
      for (const row& r : all.rows()) known = known || name == r.model + ',' + r.schedule;
      if (known) continue;
      std::printf("%s", name.c_str());
      print(expected);
      std::printf(",,,,,MISSING\n");
      good = false;
    }
    return good ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "bench_table2: %s\n", e.what());
    return 2;
  }
}
