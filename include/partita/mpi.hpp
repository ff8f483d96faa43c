/// Running partitioned programs over MPI. Adds MPI, Eigen and xtensor.
#pragma once

// First: compilers show the way to it above each mistake.
#include <partita/support/static_error.hpp>

#include <partita/backend/mpi/executable.hpp>
#include <partita/checkpoint.hpp>
#include <partita/cpu.hpp>
