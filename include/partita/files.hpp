/// Arrays by name in common file formats: `load` and `save`. Adds to cpu.hpp.
#pragma once

#include <partita/run/file/load.hpp>
