// Losses and gradients of the small models, compared with those that JAX computed from their papers
// (tests/reference/models.dat; models.py explains the numbers).
#include <cmath>
#include <cstdint>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>

#include "../../examples/models/small/adapters.hpp"
#include "../../examples/models/small/contrastive.hpp"
#include "../../examples/models/small/diffusion.hpp"
#include "../../examples/models/small/experts.hpp"
#include "../../examples/models/small/llama.hpp"
#include "../../examples/models/small/long_attention.hpp"
#include "../../examples/models/small/molecules.hpp"
#include "../../examples/models/small/recommendation.hpp"
#include "../../examples/models/small/recurrence.hpp"
#include "../../examples/models/small/stacked.hpp"
#include "../../examples/models/small/state_space.hpp"
#include "../../examples/models/small/vision.hpp"
#include "../data.hpp"

namespace {

namespace pt = partita;

using row = std::vector<double>;

/// By model, then by output.
std::map<std::string, std::map<std::string, row>> expected() {
  std::map<std::string, std::map<std::string, row>> all;
  std::ifstream file(PARTITA_SOURCE_DIR "/tests/reference/models.dat");
  std::string model;
  for (std::string line; std::getline(file, line);) {
    if (line.empty() || line[0] == '#') continue;
    std::istringstream words(line);
    std::string name;
    words >> name;
    if (name == "model") {
      words >> model;
      continue;
    }
    for (double v; words >> v;) all[model][name].push_back(v);
  }
  return all;
}

std::int64_t number(std::int64_t j, int i) { return j * 37 + i * 101 + j * j % 53; }
double real(std::int64_t j, int i) { return static_cast<double>(number(j, i) % 129 - 64) / 128; }

std::vector<pt::array> inputs_of(const pt::program& p, int limit) {
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    const bool floats = pt::is_floating(p.input_type(i).element);
    inputs.push_back(data::fill(p.input_type(i), [&](std::int64_t j) {
      return floats ? real(j, i) : static_cast<double>(number(j, i) % limit);
    }));
  }
  return inputs;
}

/// Returns the weighted sum, the norm, and the first, middle and last element; for the loss, its
/// value.
row summary(const pt::array& a, bool is_loss) {
  const auto at = [&](std::int64_t j) { return static_cast<double>(a.data<float>()[j]); };
  if (is_loss) return {at(0)};
  double sum = 0, squares = 0;
  for (std::int64_t j = 0; j < a.size(); ++j) {
    sum += at(j) * real(j, 1);
    squares += at(j) * at(j);
  }
  return {sum, std::sqrt(squares), at(0), at(a.size() / 2), at(a.size() - 1)};
}

/// Sums of several hundred binary32 numbers through ten or twenty products, forward and backward,
/// differ by far less than 1e-4 of the norm (see models.hpp). A missing term changes several
/// percent.
void compare(const std::string& model, const pt::program& p, int limit = 8) {
  CAPTURE(model);
  static const auto all = expected();
  const auto& rows = all.at(model);
  REQUIRE(rows.size() == static_cast<std::size_t>(p.output_count()));
  const pt::results found = pt::evaluate(p, inputs_of(p, limit));
  for (int i = 0; i < p.output_count(); ++i) {
    const std::string name(p.output_name(i));
    CAPTURE(name);
    const row& right = rows.at(name);
    const row mine = summary(found[i], name == "loss");
    REQUIRE(mine.size() == right.size());
    const double scale = name == "loss" ? std::abs(right[0]) : right[1];
    CHECK(scale > 1e-6);
    for (std::size_t k = 0; k < mine.size(); ++k)
      CHECK(std::abs(mine[k] - right[k]) <= 1e-4 * scale);
  }
}

}  // namespace

TEST_CASE("small models have the gradients that JAX computes") {
  compare("llama", small::llama::gradients(), small::llama::vocabulary);
  compare("experts", small::experts::gradients());
  compare("long_attention", small::long_attention::gradients());
  compare("stacked", small::stacked::gradients());
  compare("adapters", small::adapters::gradients());
  compare("recurrence", small::recurrence::gradients());
  compare("contrastive", small::contrastive::gradients());
  compare("vision", small::vision::gradients(), small::vision::classes);
  compare("diffusion", small::diffusion::gradients());
  compare("state_space", small::state_space::gradients());
  compare("recommendation", small::recommendation::gradients(), small::recommendation::tiny.items);
  compare("molecules", small::molecules::gradients(), small::molecules::nodes);
}
