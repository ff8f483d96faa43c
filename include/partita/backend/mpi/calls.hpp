/// Wrappers of MPI calls: errors as exceptions, and messages of any size.
#pragma once

#include <cstdint>
#include <iterator>
#include <limits>
#include <string_view>

// MPI's own C++ bindings, which MPI 3 removed, do not compile as C++20.
#if !defined(OMPI_SKIP_MPICXX)
#define OMPI_SKIP_MPICXX 1
#endif
#if !defined(MPICH_SKIP_MPICXX)
#define MPICH_SKIP_MPICXX 1
#endif
#include <mpi.h>

#include <partita/ir/dtype.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/support/error.hpp>

namespace partita::backend_detail {

/// Checks the status of an MPI call.
///
/// Errors    J002 the call failed
inline void need(int status, std::string_view call) {
  if (status == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, reason, &length);
  throw error(concat("J002 mpi: ", call,
                     " failed: ", std::string_view(reason, static_cast<std::size_t>(length))));
}

/// A number of bytes as MPI counts it: an int number of bytes, or one element of a type of that
/// size (Open MPI 4 has no large counts).
class byte_count {
 public:
  explicit byte_count(std::int64_t bytes) {
    if (bytes <= std::numeric_limits<int>::max()) {
      count_ = static_cast<int>(bytes);
      return;
    }
    constexpr std::int64_t unit = std::int64_t{1} << 30;
    MPI_Datatype large;
    need(MPI_Type_contiguous(static_cast<int>(unit), MPI_BYTE, &large), "MPI_Type_contiguous");
    const int counts[] = {static_cast<int>(bytes / unit), static_cast<int>(bytes % unit)};
    const MPI_Aint begins[] = {0, static_cast<MPI_Aint>(bytes / unit * unit)};
    const MPI_Datatype types[] = {large, MPI_BYTE};
    need(MPI_Type_create_struct(2, counts, begins, types, &type_), "MPI_Type_create_struct");
    need(MPI_Type_commit(&type_), "MPI_Type_commit");
    MPI_Type_free(&large);
    count_ = 1;
  }
  byte_count(const byte_count&) = delete;
  byte_count& operator=(const byte_count&) = delete;
  /// Frees the type. Operations that have begun keep it alive.
  ~byte_count() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

/// MPI's type and reduction; MPI_DATATYPE_NULL and MPI_OP_NULL if it lacks them.
inline MPI_Datatype native_type(dtype t) {
  const MPI_Datatype types[] = {MPI_FLOAT,   MPI_DOUBLE,   MPI_DATATYPE_NULL, MPI_DATATYPE_NULL,
                                MPI_INT8_T,  MPI_INT16_T,  MPI_INT32_T,       MPI_INT64_T,
                                MPI_UINT8_T, MPI_UINT16_T, MPI_UINT32_T,      MPI_UINT64_T,
                                MPI_UINT8_T};
  static_assert(std::size(types) == dtype_count);
  return types[static_cast<int>(t)];
}
inline MPI_Op native_op(combiner c) {
  const MPI_Op ops[] = {MPI_OP_NULL, MPI_SUM, MPI_MAX, MPI_MIN, MPI_PROD, MPI_BAND, MPI_BOR};
  static_assert(std::size(ops) == std::size(combiner_names));
  return ops[static_cast<int>(c)];
}

}  // namespace partita::backend_detail
