/// Dimensions that an axis does not divide: the tactics' policies, and the effects of padding.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The policy of a tactic for a dimension that its axis does not divide.
enum class uneven : std::uint8_t {
  unsaid,  ///< an error, S003
  pad,     ///< enlarge the dimension; its padding never becomes part of a result
  refuse   ///< an error; in addition, no other tactic may pad a dimension that this tactic slices
};

/// The tactics' requests to pad or not to pad, for comparison with later tactics.
struct padding_record {
  /// The reason for an op that is not in the source program.
  enum class kind : std::uint8_t {
    none,
    widen,     ///< `pad`: enlarges a value that is produced in its true size
    trim,      ///< `slice`: an op needs the true size
    mask,      ///< `select`: sets the padding to the identity of a reduction
    auxiliary  ///< an operand of such ops
  };
  struct refusal {
    value_id value = -1;
    int dim = -1, tactic = 0;
  };
  /// One enlargement of a class of dimensions.
  struct enlargement {
    value_id value = -1;  ///< the value for which it was requested
    int dim = -1, axis = -1, tactic = 0;
  };
  vec<refusal> refusals;
  vec<enlargement> enlargements;
};

/// The effects of padding on a graph. Empty as long as nothing is padded.
struct padding_marks {
  struct inserted_op {
    padding_record::kind what = padding_record::kind::none;
    std::int8_t dim = no_dim;  ///< for a mask; below max_rank
    /// For a mask: the bits of its constant; with no_dim, it uses another scalar.
    std::int64_t fill = 0;
    const op_def* was = nullptr;  ///< the source op that was replaced, or null
  };
  vec<shape> whole;           ///< by value: its true shape
  vec<value_id> widened;      ///< by value: the result of its `widen` op, or -1
  vec<inserted_op> inserted;  ///< by op
  /// By index in the table of factors: true if its dimensions were padded separately.
  vec<char> loose;

  bool started = false;

  constexpr bool is_loose(int factor) const {
    const auto i = static_cast<std::size_t>(factor);
    return i < loose.size() && loose[i] != 0;
  }
  constexpr void loosen(int factor) {
    const auto i = static_cast<std::size_t>(factor);
    if (i >= loose.size()) loose.resize(i + 1, 0);
    loose[i] = 1;
  }
  constexpr bool empty() const { return !started; }
  constexpr void start(const program& p) {
    if (!empty()) return;
    started = true;
    for (const auto& t : p.types) whole.push_back(t.shape);
    widened.resize(p.types.size(), -1);
    inserted.resize(p.ops.size(), inserted_op{});
  }
  /// Registers an appended op, whose result is not padded.
  constexpr void add_op(const tensor_type& result) {
    whole.push_back(result.shape);
    widened.push_back(-1);
    inserted.push_back({});
  }
};

}  // namespace partita
