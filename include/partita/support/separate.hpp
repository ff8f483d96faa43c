/// Support for compiling the engine once, into a library.
///
/// A translation unit that traces, partitions, prints and runs needs most of the engine as machine
/// code. If PARTITA_SEPARATE is defined, it gets that code from a library (the CMake target
/// `partita::separate`, defined in cmake/separate.cmake) and compiles only its own code. Checks
/// need no machine code: the compiler evaluates the same functions from the same headers. There is
/// one implementation. A function that the library contains is written as
/// ```cpp
/// constexpr text print(const program& p) {
///   PARTITA_RETURN(ir_detail::printed(p), separate::print(p));
/// }
/// ```
///
/// where `printed` does the work and `separate::print`, in the library, calls it.
#pragma once

// In a constant condition, both compilers drop the untaken branch before they collect the functions
// that are used, even at -O0. (With `?:`, GCC 12 copies objects as bytes.)
#if defined(PARTITA_SEPARATE)
#define PARTITA_RETURN(here, in_library)              \
  if (__builtin_is_constant_evaluated()) return here; \
  return in_library
#else
#define PARTITA_RETURN(here, in_library) return here
#endif

// For functions that are only called at run time. They are defined in the library, or else inline
// in a header that is included next to the declaration.
#if defined(PARTITA_SEPARATE)
#define PARTITA_LINKAGE
#else
#define PARTITA_LINKAGE inline
#endif

// Usage: `PARTITA_TEMPLATE class vec<x>;`. The members are compiled into the library.
#if defined(PARTITA_SEPARATE_ENGINE)  // the library's translation unit that contains them
#define PARTITA_TEMPLATE template
#elif defined(PARTITA_SEPARATE)
#define PARTITA_TEMPLATE extern template
#endif

// Follows the class of an op. The op's definition, and with it the functions it refers to, are
// compiled into the library.
#if defined(PARTITA_SEPARATE)
#define PARTITA_OP(name) PARTITA_TEMPLATE const op_def def<name>;
#else
#define PARTITA_OP(name)
#endif
