/// The sizes of the paper's models: the defaults, and those inferred from its tables.
#pragma once

#include <string_view>

#include "../examples/models/gns.hpp"
#include "../examples/models/language_model.hpp"
#include "../examples/models/serving.hpp"
#include "../examples/models/unet.hpp"

namespace bench {

struct paper_sizes {
  std::string_view title;
  paper::language_model_sizes t32, t48;
  paper::serving_sizes it32;
  paper::unet_sizes unet;
  paper::gns_sizes gns;
};
inline constexpr paper_sizes default_sizes{"default sizes", paper::T32,  paper::T48,
                                           paper::IT32,     paper::UNet, paper::GNS};
/// Sizes inferred from the paper's Tables 1 and 3; the models' headers explain each.
inline constexpr paper_sizes inferred_sizes{"inferred sizes",     paper::T32_inferred,
                                            paper::T48_inferred,  paper::IT32_inferred,
                                            paper::UNet_inferred, paper::GNS_inferred};

}  // namespace bench
