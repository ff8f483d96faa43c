/// Dimensions that an axis does not divide: what a tactic says of them, and what was padded.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// What a tactic does with a dimension that its axis does not divide.
enum class uneven : std::uint8_t {
  unsaid,  ///< an error, S003
  pad,     ///< the dimension is made larger; what is behind its end is never part of a result
  refuse   ///< an error; and none of the dimensions that the tactic slices is padded by another one
};

/// Padding in a core program. Empty as long as nothing is padded.
struct padding_record {
  /// Why an op is there that is not of the source program.
  enum class kind : std::uint8_t {
    none,
    widen,     ///< `pad`: what was made in its true size becomes larger
    trim,      ///< `slice`: an op needs the true size
    mask,      ///< `select`: behind the end stands what a reduction leaves out
    auxiliary  ///< an operand of such ops
  };
  struct inserted_op {
    kind what = kind::none;
    std::int8_t dim = no_dim;  ///< of a mask; below max_rank
    std::int64_t fill = 0;     ///< of a mask: bits of its constant
  };
  struct refusal {
    value_id value = -1;
    int dim = -1, tactic = 0;
  };
  /// One enlargement of a class of dimensions.
  struct enlargement {
    value_id value = -1;  ///< for which value it was asked
    int dim = -1, axis = -1, tactic = 0;
  };
  vec<shape> whole;           ///< by value: its true shape
  vec<value_id> widened;      ///< by value: the result of the `widen` op behind it, or -1
  vec<inserted_op> inserted;  ///< by op
  vec<refusal> refusals;
  vec<enlargement> enlargements;
};

}  // namespace partita
