/// Calls of MPI: errors as exceptions, and messages of any size.
#pragma once

#include <cstdint>
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

/// Errors    J002 the call failed
inline void need(int status, std::string_view call) {
  if (status == MPI_SUCCESS) return;
  char reason[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(status, reason, &length);
  throw error(concat("J002 mpi: ", call,
                     " failed: ", std::string_view(reason, static_cast<std::size_t>(length))));
}

/// A number of bytes as MPI counts them: an int of bytes, or one element of a type that has as many
/// (Open MPI 4 has no large counts).
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
  /// Operations that have begun keep the type.
  ~byte_count() {
    if (type_ != MPI_BYTE) MPI_Type_free(&type_);
  }
  int count() const { return count_; }
  MPI_Datatype type() const { return type_; }

 private:
  int count_ = 0;
  MPI_Datatype type_ = MPI_BYTE;
};

/// MPI's name of a type and of a reduction; MPI_DATATYPE_NULL, MPI_OP_NULL if it has none.
inline MPI_Datatype native_type(dtype t) {
  switch (t) {
    case dtype::f32:
      return MPI_FLOAT;
    case dtype::f64:
      return MPI_DOUBLE;
    case dtype::i8:
      return MPI_INT8_T;
    case dtype::i16:
      return MPI_INT16_T;
    case dtype::i32:
      return MPI_INT32_T;
    case dtype::i64:
      return MPI_INT64_T;
    case dtype::u8:
      return MPI_UINT8_T;
    case dtype::u16:
      return MPI_UINT16_T;
    case dtype::u32:
      return MPI_UINT32_T;
    case dtype::u64:
      return MPI_UINT64_T;
    case dtype::boolean:
      return MPI_UINT8_T;
    case dtype::bf16:
    case dtype::f16:
      break;
  }
  return MPI_DATATYPE_NULL;
}
inline MPI_Op native_op(combiner c) {
  switch (c) {
    case combiner::add:
      return MPI_SUM;
    case combiner::multiply:
      return MPI_PROD;
    case combiner::max:
      return MPI_MAX;
    case combiner::min:
      return MPI_MIN;
    case combiner::logical_and:
      return MPI_BAND;
    case combiner::logical_or:
      return MPI_BOR;
    default:
      return MPI_OP_NULL;
  }
}

}  // namespace partita::backend_detail
