/// Running programs on a CPU: `evaluate` and `emulate`. Adds Eigen and xtensor.
#pragma once

// Included first, because compilers print the include path above each error.
#include <partita/support/static_error.hpp>

#include <partita/op/registry.hpp>
#include <partita/run/array.hpp>
#include <partita/run/compare.hpp>
#include <partita/run/evaluate.hpp>
#include <partita/run/executor.hpp>
#include <partita/run/piece.hpp>
#include <partita/run/results.hpp>
#include <partita/run/temporal.hpp>
#include <partita/run/xtensor.hpp>
