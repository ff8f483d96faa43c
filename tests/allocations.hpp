/// Counted allocations: work that is linear in a program allocates a linear amount of memory.
#pragma once

#include <cstddef>

namespace allocations {

/// Returns the number of bytes that this thread has requested from `new`; counted in main.cpp.
std::size_t bytes();

}  // namespace allocations
