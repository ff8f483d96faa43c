/// Counts the collectives of the paper's models under the paper's schedules at full size: Table 2.
///
///   bench_table2                  prints
///   model,schedule,all_gather,all_reduce,reduce_scatter,all_to_all bench_table2 --compare FILE
///   also prints the differences from a file in this format; the exit
///                                 status is 1 if an exact row differs or a row of FILE is unknown
///   bench_table2 --inferred ...   uses the sizes inferred from other tables
///
/// Source    PartIR, arXiv:2401.11202, section 7.3; the mesh is that of figure 6
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
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

/// Whether a row has to equal the paper's (exact) or may differ, since the paper leaves the model
/// open.
enum class expectation { exact, open };

struct row {
  std::string model, schedule;
  expectation expected;
  counts found;
};

/// A model under several schedules.
class table {
 public:
  template <class... Tactics>
  void add(std::string_view model, std::string_view schedule, expectation expected,
           const pt::program& p, const Tactics&... tactics) {
    const pt::collectives c = pt::partition(p, mesh, pt::schedule(tactics...)).collectives;
    rows_.push_back({std::string(model),
                     std::string(schedule),
                     expected,
                     {c.all_gather, c.all_reduce, c.reduce_scatter, c.all_to_all}});
  }
  const std::vector<row>& rows() const { return rows_; }

 private:
  std::vector<row> rows_;
};

void add_language_model(table& t, std::string_view name, const pt::program& step,
                        expectation expected) {
  using namespace paper::transformers;
  t.add(name, "BP", expected, step, BP);
  t.add(name, "BP+MP", expected, step, BP, MP);
  t.add(name, "BP+MP+Z2", expected, step, BP, MP, Z2);
  t.add(name, "BP+MP+Z3", expected, step, BP, MP, Z3);
  t.add(name, "BP+MP+Z3+EMB", expected, step, BP, MP, Z3, EMB);
  t.add(name, "MP", expected, step, MP);
  t.add(name, "EMB", expected, step, MP, EMB);
}

/// MQ comes before MP: it decides how the attention is sharded, and no tactic undoes what an
/// earlier one did.
void add_serving(table& t, const paper::serving_sizes& sizes) {
  using namespace paper::serving;
  const pt::program p = paper::trace_serving(sizes);
  t.add("IT32", "BP", expectation::exact, p, BP);
  t.add("IT32", "BP+MP", expectation::exact, p, BP, MP);
  t.add("IT32", "BP+MP+MQ", expectation::exact, p, BP, MQ, MP);
  t.add("IT32", "MP", expectation::exact, p, MP);
}

void add_unet(table& t, const paper::unet_sizes& sizes) {
  using namespace paper::diffusion;
  const pt::program p = paper::trace_training_step(sizes);
  t.add("UNet", "BP", expectation::exact, p, BP);
  t.add("UNet", "BP+Z2", expectation::open, p, BP, Z2);
  t.add("UNet", "BP+Z3", expectation::open, p, BP, Z3);
}

table table2(const bench::paper_sizes& m) {
  table t;
  add_language_model(t, "T32", paper::trace_training_step(m.t32), expectation::exact);
  add_language_model(t, "T48", paper::trace_training_step(m.t48), expectation::open);
  add_serving(t, m.it32);
  add_unet(t, m.unet);
  t.add("GNS", "ES", expectation::exact, paper::trace_training_step(m.gns), paper::graphs::ES);
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
        good = good && (equal || r.expected == expectation::open);
        print(more);
        std::printf(",%s", found == paper_rows.end()         ? "not in the paper"
                           : equal                           ? "equal"
                           : r.expected == expectation::open ? "differs"
                                                             : "WRONG");
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
