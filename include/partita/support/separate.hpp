/// The engine compiled once.
///
/// A translation unit that traces, partitions, prints and runs needs most of the engine as machine
/// code. Where PARTITA_SEPARATE is defined, it gets that from a library (the CMake target
/// `partita::separate`: cmake/separate.cmake says what it consists of), and compiles only what is
/// its own. Checks need no machine code: the compiler evaluates the same functions from the
/// same headers. So there is one implementation; a function that the library has is
///
/// ```cpp
/// constexpr text print(const program& p) {
///   PARTITA_RETURN(ir_detail::printed(p), separate::print(p));
/// }
/// ```
///
/// where `printed` does the work and `separate::print`, in the library, calls it.
#pragma once

// In this form: of a constant condition both compilers drop the other side before they ask which
// functions are used, also at -O0. (With `?:` GCC 12 copies objects as bytes.)
#if defined(PARTITA_SEPARATE)
#define PARTITA_RETURN(here, in_library)              \
  if (__builtin_is_constant_evaluated()) return here; \
  return in_library
#else
#define PARTITA_RETURN(here, in_library) return here
#endif

// Of functions for run time only: defined in the library, or inline in a header that is then
// included where they are declared.
#if defined(PARTITA_SEPARATE)
#define PARTITA_LINKAGE
#else
#define PARTITA_LINKAGE inline
#endif

// `PARTITA_TEMPLATE class vec<x>;` the members are in the library.
#if defined(PARTITA_SEPARATE_ENGINE)  // the unit of the library that has them
#define PARTITA_TEMPLATE template
#elif defined(PARTITA_SEPARATE)
#define PARTITA_TEMPLATE extern template
#endif

// Behind the class of an op: its definition, and with it the functions that it names, are in the
// library.
#if defined(PARTITA_SEPARATE)
#define PARTITA_OP(name) PARTITA_TEMPLATE const op_def def<name>;
#else
#define PARTITA_OP(name)
#endif
