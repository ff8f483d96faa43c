/// Running programs, without the kernels, in the library that is compiled once; see
/// support/separate.hpp. Include it in one translation unit, with PARTITA_SEPARATE defined in all.
#pragma once

#if defined(PARTITA_SEPARATE)
#include <partita/run/compare_body.hpp>
#include <partita/run/executor_body.hpp>
#include <partita/run/temporal_body.hpp>
#endif
