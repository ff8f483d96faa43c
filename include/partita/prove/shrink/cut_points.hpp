/// Cut points: variables instead of formulas that bind indices.
#pragma once

#include <partita/prove/shrink/dependence.hpp>

namespace partita::prove_detail {

/// The variables of both programs. Formulas with bound indices are the same variable if they are
/// equal, and their indices are the same atoms (the tag).
class cut_points {
 public:
  struct cut {
    element variable;
    int owner = -1;  ///< the value that was cut first
  };
  struct owner {
    index_list bound;
    bool extreme = false;
  };
  facts<cut> found;
  vec<owner> owners;

  /// Equal keys: equal formulas of equal types, with the same atoms. (No formula mentions a tag.)
  static constexpr fingerprint key(dtype t, const fingerprint& of, const fingerprint& tag) {
    const std::uint64_t kind = is_floating(t) ? 0 : 1 + static_cast<std::uint64_t>(t);
    return field::sum(field::sum(of, tag), field::natural(kind * 0x9e3779b97f4a7c1u));
  }
  constexpr int add_owner(const dependence& d) {
    owners.push_back({d.bound, d.extreme != combiner::stack});
    return static_cast<int>(owners.size()) - 1;
  }
};

}  // namespace partita::prove_detail
