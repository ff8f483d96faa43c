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

/// What tactics said of padding, as far as it concerns later ones.
struct padding_record {
  /// Why an op is there that is not of the source program.
  enum class kind : std::uint8_t {
    none,
    widen,     ///< `pad`: what was made in its true size becomes larger
    trim,      ///< `slice`: an op needs the true size
    mask,      ///< `select`: behind the end stands what a reduction leaves out
    auxiliary  ///< an operand of such ops
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
  vec<refusal> refusals;
  vec<enlargement> enlargements;
};

/// What padding made of a graph. Empty as long as nothing is padded.
struct padding_marks {
  struct inserted_op {
    padding_record::kind what = padding_record::kind::none;
    std::int8_t dim = no_dim;  ///< of a mask; below max_rank
    std::int64_t fill = 0;     ///< of a mask: bits of its constant; with no_dim, it has another one
    const op_def* was = nullptr;  ///< what an op of the source was that goes on as another one
  };
  vec<shape> whole;           ///< by value: its true shape
  vec<value_id> widened;      ///< by value: the result of the `widen` op behind it, or -1
  vec<inserted_op> inserted;  ///< by op
  vec<char> loose;            ///< by place in the table of factors: have its ends grown apart?

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
  /// For an op that was appended, whose result is all true.
  constexpr void add_op(const tensor_type& result) {
    whole.push_back(result.shape);
    widened.push_back(-1);
    inserted.push_back({});
  }
};

}  // namespace partita
