/// Counted work: whatever is linear in a program asks for memory that is.
#pragma once

#include <cstddef>

namespace allocations {

/// What `new` was asked for by this thread, so far; counted in main.cpp.
std::size_t bytes();

}  // namespace allocations
