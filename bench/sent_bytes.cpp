/// Counts the bytes that a device sends in a step, and writes the same step for XLA's partitioner.
/// The models are small ones with different collectives (examples/models/small), and the paper's
/// with fewer layers. xla_bytes.py reads the result.
///
///   bench_sent_bytes FOLDER   writes to FOLDER:
///       MODEL.SCHEDULE.mlir         the global program with shardings of arguments and results
///       MODEL.SCHEDULE.inside.mlir  the same with shardings of tagged values, too
///       sent.csv                    model, schedule, devices; bytes that a device sends and its
///       peak
///                                   memory, without and with shared gathers; collectives of both
#include <cstdio>
#include <exception>
#include <string>
#include <string_view>
#include <utility>

#include <partita/stablehlo/write_annotated.hpp>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/small/adapters.hpp"
#include "../examples/models/small/contrastive.hpp"
#include "../examples/models/small/diffusion.hpp"
#include "../examples/models/small/experts.hpp"
#include "../examples/models/small/llama.hpp"
#include "../examples/models/small/long_attention.hpp"
#include "../examples/models/small/molecules.hpp"
#include "../examples/models/small/recommendation.hpp"
#include "../examples/models/small/recurrence.hpp"
#include "../examples/models/small/stacked.hpp"
#include "../examples/models/small/state_space.hpp"
#include "../examples/models/small/vision.hpp"
#include "../examples/models/unet.hpp"
#include "module_folder.hpp"

namespace pt = partita;

namespace {

class figure {
 public:
  explicit figure(std::string folder)
      : out_(std::move(folder), "sent.csv",
             "model,schedule,devices,bytes,peak_bytes,shared_bytes,shared_peak_bytes,collectives,"
             "shared_collectives") {}
  void model(std::string_view name, pt::program p, const pt::mesh& mesh) {
    name_ = name;
    p_ = std::move(p);
    mesh_ = mesh;
  }
  template <class... Tactics>
  void on(std::string_view schedule, const Tactics&... tactics) {
    const pt::partitioned r = pt::partition(p_, mesh_, pt::schedule(tactics...));
    const pt::partitioned shared =
        pt::partition(p_, mesh_, pt::schedule(tactics...), {.passes = {.share_gathers = true}});
    const std::string file = name_ + '.' + std::string(schedule);
    out_.write(file, pt::write_annotated_stablehlo(r.source, r.device));
    out_.write(file + ".inside", pt::write_annotated_stablehlo(r));
    std::string row = name_ + ',' + std::string(schedule) + ',' + std::to_string(mesh_.devices());
    for (const pt::partitioned* each : {&r, &shared})
      row += ',' + std::to_string(each->cost.collective_bytes) + ',' +
             std::to_string(each->cost.peak_bytes);
    for (const pt::partitioned* each : {&r, &shared}) row += ',' + kinds(*each);
    out_.add_row(row);
  }

 private:
  module_folder out_;
  std::string name_;
  pt::program p_;
  pt::mesh mesh_;

  /// Returns the numbers of all-gather, all-reduce, reduce-scatter, all-to-all and permute; only
  /// all-reduces are combined.
  static std::string kinds(const pt::partitioned& p) {
    const pt::collectives& c = p.collectives;
    const auto sums = c.all_reduce - (c.total() - pt::launched(p.notes));
    std::string all;
    for (const auto n : {c.all_gather, sums, c.reduce_scatter, c.all_to_all, c.permute})
      all += (all.empty() ? "" : " ") + std::to_string(n);
    return all;
  }
};

void add_small(figure& f) {
  {
    using namespace small::llama;
    f.model("llama", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+SP", BP, MP, SP);
    f.on("BP+MP+SP+Z3", BP, MP, SP, Z3);
  }
  {
    using namespace small::vision;
    f.model("vision", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+Z3", BP, MP, Z3);
  }
  {
    using namespace small::diffusion;
    f.model("diffusion", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+Z3", BP, MP, Z3);
  }
  {
    using namespace small::experts;
    f.model("experts", traced(), mesh);
    f.on("EP+DP", EP, DP);
  }
  {
    using namespace small::long_attention;
    f.model("attention", traced(), mesh);
    f.on("ulysses+SP", ulysses, SP);
    f.on("queries+SP", queries, SP);
  }
  {
    using namespace small::adapters;
    f.model("adapters", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+Z3", BP, MP, Z3);
  }
  {
    using namespace small::recurrence;
    f.model("recurrence", traced(), mesh);
    f.on("BP", BP);
    f.on("MP", MP);
    f.on("BP+MP", BP, MP);
  }
  {
    using namespace small::state_space;
    f.model("state_space", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
  }
  {
    using namespace small::contrastive;
    f.model("contrastive", traced(), mesh);
    f.on("rows+BP", rows, BP);
  }
  {
    using namespace small::recommendation;
    f.model("recommendation", traced(), mesh);
    f.on("DP", DP);
    f.on("rows+columns+DP", rows, columns, DP);
  }
  {
    using namespace small::molecules;
    f.model("molecules", traced(), mesh);
    f.on("BP", BP);
    f.on("BP+EP", BP, EP);
  }
  {
    using namespace small::stacked;
    f.model("stacked", traced(), mesh);
    f.on("BP+Z2", BP, Z2);
    f.on("BP+Z3", BP, Z3);
  }
}

constexpr pt::mesh paper_mesh{{"batch", 8}, {"model", 4}};

/// Returns the paper's sizes with another number of layers.
template <class Sizes>
Sizes with_layers(Sizes s, int layers) {
  s.layers = layers;
  return s;
}
void add_paper(figure& f) {
  for (const auto& [name, sizes] : {std::pair{"T32", paper::T32}, std::pair{"T48", paper::T48}}) {
    using namespace paper::transformers;
    f.model(name, paper::trace_training_step(with_layers(sizes, 2)), paper_mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+Z2", BP, MP, Z2);
    f.on("BP+MP+Z3", BP, MP, Z3);
    f.on("BP+MP+Z3+EMB", BP, MP, Z3, EMB);
  }
  {
    using namespace paper::serving;
    f.model("IT32", paper::trace_serving(with_layers(paper::IT32, 2)), paper_mesh);
    f.on("BP", BP);
    f.on("BP+MP", BP, MP);
    f.on("BP+MP+MQ", BP, MQ, MP);
  }
  {
    using namespace paper::diffusion;
    f.model("UNet", paper::trace_training_step(paper::UNet), paper_mesh);
    f.on("BP", BP);
    f.on("BP+Z2", BP, Z2);
    f.on("BP+Z3", BP, Z3);
  }
  f.model("GNS", paper::trace_training_step(paper::GNS), paper_mesh);
  f.on("ES", paper::graphs::ES);
}

}  // namespace

int main(int count, char** words) try {
  if (count != 2) {
    std::puts("bench_sent_bytes FOLDER");
    return 2;
  }
  figure f(words[1]);
  add_small(f);
  add_paper(f);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}
