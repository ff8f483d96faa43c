/// Arrays by name in files that other programs know: `load` and `save`. Adds to cpu.hpp.
#pragma once

#include <partita/run/file/load.hpp>
