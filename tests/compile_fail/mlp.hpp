/// The program and the schedule that the cases of this folder get wrong, one mistake each.
#pragma once

#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;
