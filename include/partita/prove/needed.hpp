/// Which ops of a program are needed for what is asked for.
#pragma once

#include <partita/ir/program.hpp>

namespace partita::prove_detail {

/// What ops that are needed need.
constexpr void need_operands(const program& p, vec<char>& needed) {
  char* const list = needed.data();
  for (op_id o = p.op_count(); o-- > 0;) {
    if (list[o] == 0) continue;
    for (const value_id v : p.operands(o)) list[p.producer(v)] = 1;
  }
}

}  // namespace partita::prove_detail
