/// The program and the schedule of the cases in this folder, which have one mistake each.
#pragma once

#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;
