/// The interface of tactics that rewrite the program before it is sharded.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/error.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The cost and the savings of recomputing values instead of keeping them, in the program before
/// sharding (for all devices together).
struct remat_price {
  int scopes = 0;                          ///< scopes with at least one recomputed op
  int ops = 0;                             ///< recomputed ops, those inside loops counted once
  std::int64_t flops = 0;                  ///< additional FLOPs
  std::int64_t bytes = 0;                  ///< additional bytes read and written
  std::int64_t peak_before = 0, peak = 0;  ///< bytes of live memory
};

/// A program that tactics change before it is sharded.
struct rewriting {
  program p;
  vec<text> notes;  ///< of the current tactic
  failure error;
  struct sliced_input {
    int input, dim;
  };
  vec<sliced_input> sliced;        ///< by the tactics so far
  label_list labels;               ///< of the source, whose op numbers remain valid
  remat_price remat;               ///< of the current tactic
  bool for_topology = false;       ///< true if it is partitioned over several meshes
  bool one_device = false;         ///< true if it runs on a mesh of one device
  const program* given = nullptr;  ///< the original program, if dead code was removed from it
  syntax advice = syntax::cpp;     ///< the syntax of advice in messages: that of the tactics
};

/// A tactic that rewrites the program. All of these run before the first action, in schedule order.
template <class T>
concept Rewriter = requires(const T& t, rewriting& r) {
  t.rewrite(r);
};

}  // namespace partita
