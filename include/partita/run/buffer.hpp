/// Available memory, and buffers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <new>

#if defined(__linux__)
#include <sys/mman.h>
#endif
#if __has_include(<unistd.h>)
#include <unistd.h>
#endif

#include <partita/support/checked.hpp>
#include <partita/support/error.hpp>

namespace partita::run_detail {

inline constexpr std::int64_t alignment = 64;  // bytes

/// Returns the bytes that the system says it can give to programs now; saturated if it says
/// nothing. A system that promises more memory than it has kills the programs that use it, so the
/// library asks first.
inline std::int64_t available_memory() {
#if defined(__linux__)
  if (std::FILE* f = std::fopen("/proc/meminfo", "r")) {
    char line[128];
    long long kibibytes = -1;
    while (kibibytes < 0 && std::fgets(line, sizeof line, f) != nullptr)
      if (std::sscanf(line, "MemAvailable: %lld kB", &kibibytes) != 1) kibibytes = -1;
    std::fclose(f);
    if (kibibytes >= 0) return saturating_multiply(kibibytes, 1024);
  }
#endif
#if defined(_SC_PHYS_PAGES) && defined(_SC_PAGESIZE)
  const auto pages = ::sysconf(_SC_PHYS_PAGES), size = ::sysconf(_SC_PAGESIZE);
  if (pages > 0 && size > 0) return saturating_multiply(pages, size);
#endif
  return saturated;
}
/// The size from which on an allocation first asks the system.
inline constexpr std::int64_t much_memory = std::int64_t{1} << 28;

using buffer = std::shared_ptr<std::byte>;

/// Allocates memory for an array. Large arrays use huge pages where the system provides them on
/// request: streams through many small pages wait for address translation.
///
/// Errors    R009 the machine has less memory
inline buffer allocate(std::int64_t bytes) {
  constexpr std::int64_t huge_page = std::int64_t{1} << 21;
  const bool large = bytes >= 2 * huge_page;
  const auto align = static_cast<std::align_val_t>(large ? huge_page : alignment);
  const auto size = static_cast<std::size_t>(bytes > 0 ? bytes : alignment);
  const auto refuse = [&] {
    text message = concat("R009 memory: ");
    print_figure(message, bytes);
    message << " bytes for one array or temporary are more than the machine has left";
    throw error(message);
  };
  if (bytes >= much_memory && bytes > available_memory()) refuse();
  auto* p = static_cast<std::byte*>(::operator new(size, align, std::nothrow));
  if (p == nullptr) refuse();
#if defined(MADV_HUGEPAGE)
  if (large) madvise(p, size, MADV_HUGEPAGE);
#endif
  return buffer(p, [align](std::byte* b) { ::operator delete(b, align); });
}

}  // namespace partita::run_detail
