/// What tactics that change the program do before it is sharded.
#pragma once

#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/error.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// What computing values again in place of keeping them costs and saves, in the program that is to
/// be sharded (of all devices together).
struct remat_price {
  int scopes = 0;                          ///< that something is computed again of
  int ops = 0;                             ///< that are computed again, each as it stands there
  std::int64_t flops = 0;                  ///< more than without
  std::int64_t bytes = 0;                  ///< read and written more than without
  std::int64_t peak_before = 0, peak = 0;  ///< bytes of live memory
};

/// A program that tactics change before it is sharded.
struct rewriting {
  program p;
  vec<text> notes;  ///< of the tactic at work
  failure error;
  struct sliced_input {
    int input, dim;
  };
  vec<sliced_input> sliced;        ///< by the tactics so far
  label_list labels;               ///< of the source, whose numbers ops keep
  remat_price remat;               ///< of the tactic at work
  bool for_topology = false;       ///< true if it is partitioned over several meshes
  const program* given = nullptr;  ///< the original program, if dead code was removed from it
  syntax advice = syntax::cpp;     ///< the syntax of advice in messages: that of the tactics
};

/// A tactic that rewrites the program. All of these run before the first action, in their order.
template <class T>
concept Rewriter = requires(const T& t, rewriting& r) {
  t.rewrite(r);
};

}  // namespace partita
