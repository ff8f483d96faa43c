#define DOCTEST_CONFIG_IMPLEMENT_WITH_MAIN
#include <doctest/doctest.h>

#include <cstdlib>
#include <new>

#include "allocations.hpp"

namespace {
thread_local std::size_t asked_for = 0;
}  // namespace

std::size_t allocations::bytes() { return asked_for; }

// Not inline: GCC 12 reports malloc and free as a mismatched pair where it sees only one of them.
[[gnu::noinline]] void* operator new(std::size_t size) {
  asked_for += size;
  if (void* p = std::malloc(size > 0 ? size : 1)) return p;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* p) noexcept { std::free(p); }
[[gnu::noinline]] void operator delete(void* p, std::size_t) noexcept { std::free(p); }
