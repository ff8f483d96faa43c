/// Running partitioned programs over MPI. Adds MPI, Eigen and xtensor.
#pragma once

// Included first, because compilers print the include path above each error.
#include <partita/support/static_error.hpp>

#include <partita/backend/mpi/executable.hpp>
#include <partita/backend/mpi/key_values.hpp>
#include <partita/checkpoint.hpp>
#include <partita/cpu.hpp>
