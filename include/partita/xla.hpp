/// Running partitioned programs on XLA through the PJRT C API. Adds Eigen, xtensor and
/// pjrt_c_api.h.
#pragma once

// First: compilers show the way to it above each mistake.
#include <partita/support/static_error.hpp>

#include <partita/backend/xla/executable.hpp>
#include <partita/checkpoint.hpp>
#include <partita/cpu.hpp>
