/// Inputs and sizes for the tests of the models.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "../data.hpp"

namespace models {

namespace pt = partita;

/// Random inputs: floats in [-1/4, 1/4], integers below `limit(name)`. The optimizer is in a state
/// in which its step is smooth: first moments of 0, second moments of 1/2 to 1, after ten steps.
/// Near the zeros of an initial state, Adam turns roundings into complete steps.
template <class Limit>
std::vector<pt::array> inputs_of(const pt::program& p, const Limit& limit) {
  data::random random{7};
  std::vector<pt::array> inputs;
  for (int i = 0; i < p.input_count(); ++i) {
    const pt::tensor_type& type = p.input_type(i);
    const std::string_view name = p.input_name(i);
    const auto real = [&](double low, double high) {
      const auto fraction = [&] { return static_cast<double>(random.in(0, 1 << 20)) * 0x1p-20; };
      return data::fill(type, [&](std::int64_t) { return low + (high - low) * fraction(); });
    };
    if (!pt::is_floating(type.element))
      inputs.push_back(data::integers(type, random, 0, limit(name) - 1));
    else if (name == "opt_state.step")
      inputs.push_back(real(10, 10));
    else if (name.starts_with("opt_state.m."))
      inputs.push_back(real(0, 0));
    else if (name.starts_with("opt_state.v."))
      inputs.push_back(real(0.5, 1));
    else
      inputs.push_back(real(-0.25, 0.25));
  }
  return inputs;
}

/// Small sizes of a transformer, of either kind; tokens are below 12.
template <class Sizes>
constexpr Sizes small_transformer(std::int64_t layers) {
  return {.layers = layers,
          .width = 16,
          .heads = 4,
          .key = 4,
          .hidden = 32,
          .vocabulary = 12,
          .context = 6,
          .batch = 8};
}
inline int token_limit(std::string_view) { return 12; }

}  // namespace models
