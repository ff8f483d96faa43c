/// Fragments as programs of their own.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/print.hpp>
#include <partita/mpmd/mpmd_program.hpp>

namespace partita {

/// Writes the fragments of one program, one after the other.
///
/// Inputs and outputs are those of the fragment, in its order, under the names that the values have
/// in the source's text. Ops keep their marks, so op_marks::source tells the op of the source.
///
/// Cost: linear in the source, once, and then in each fragment.
class fragment_programs {
 public:
  constexpr explicit fragment_programs(const mpmd_program& m)
      : m_(m), names_(m.source), copy_(m.source.types.size(), -1) {}

  constexpr program operator[](int number) {
    const program& p = m_.source;
    const fragment& f = m_.fragments[number];
    program q;
    for (value_id v : f.inputs) {
      copy_[v] = q.append(def<op::parameter>, {}, {}, p.types[v]);
      q.ops.back().marks = p.ops[p.producers[v]].marks;
      q.ops.back().name = q.intern(unquoted(names_[v]));
      q.inputs.push_back(copy_[v]);
    }
    for (op_id o : f.ops) append(q, o);
    for (value_id v : f.outputs) q.outputs.push_back({copy_[v], q.intern(unquoted(names_[v]))});
    return q;
  }

 private:
  const mpmd_program& m_;
  value_names names_;
  vec<value_id> copy_;  ///< by value of the source; what an earlier fragment left is not looked at
  vec<value_id> operands_;

  constexpr void append(program& q, op_id o) {
    const program& p = m_.source;
    operands_.clear();
    for (value_id v : p.operands(o)) operands_.push_back(copy_[v]);
    append_copy(q, p, o, operands_, p.attrs(o));
    const op_node& n = p.ops[o];
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      copy_[v] = q.append_result(p.types[v]);
    for (const auto& r : p.regions_of(o)) q.append_region(program(r));
  }
};

}  // namespace partita
