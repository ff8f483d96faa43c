/// Emulated meshes with the interface of the other backends. Adds to cpu.hpp.
#pragma once

// First: compilers show the way to it above each mistake.
#include <partita/support/static_error.hpp>

#include <partita/backend/emulated.hpp>
#include <partita/checkpoint.hpp>
#include <partita/cpu.hpp>
