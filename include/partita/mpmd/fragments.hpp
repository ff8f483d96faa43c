/// Extracts fragments as separate programs.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/print.hpp>
#include <partita/mpmd/mpmd_program.hpp>
#include <partita/mpmd/states.hpp>
#include <partita/op/reshape.hpp>

namespace partita {

/// Extracts the fragments of one program, one at a time.
/// Inputs and outputs are those of the fragment, in its order, with the names that the values have
/// in the text of the source. Ops keep their marks, so op_marks::source identifies the op of the
/// source.
///
/// Cost: linear in the source, once, and then in each fragment.
class fragment_programs {
 public:
  constexpr explicit fragment_programs(const program& source)
      : source_(source), names_(source), copy_(source.types.size(), -1) {}

  /// `more`: further values that become inputs.
  constexpr program operator()(const fragment& f, span<const value_id> more = {}) {
    program q;
    for (value_id v : f.inputs) take(q, v);
    for (value_id v : more) take(q, v);
    for (op_id o : f.ops) append(q, o);
    for (value_id v : f.outputs) give(q, copy_[v], v);
    return q;
  }
  /// The copy of a value in the program that was written last.
  constexpr value_id copy_of(value_id v) const { return copy_[v]; }
  /// Adds an output with the name of a value of the source.
  constexpr void give(program& q, value_id copy, value_id like) const {
    q.outputs.push_back({copy, q.intern(unquoted(names_[like]))});
  }

 private:
  const program& source_;
  value_names names_;
  vec<value_id> copy_;  ///< by value of the source; entries from earlier fragments are ignored
  vec<value_id> operands_;

  constexpr void take(program& q, value_id v) {
    copy_[v] = q.append(def<op::parameter>, {}, {}, source_.types[v]);
    q.ops.back().marks = source_.ops[source_.producers[v]].marks;
    q.ops.back().name = q.intern(unquoted(names_[v]));
    q.inputs.push_back(copy_[v]);
  }
  constexpr void append(program& q, op_id o) {
    const program& p = source_;
    operands_.clear();
    for (value_id v : p.operands(o)) operands_.push_back(copy_[v]);
    if (mpmd_detail::is_next_state(p.ops[o]) || mpmd_detail::is_last_state(p.ops[o])) {
      const value_id v = p.ops[o].result;  // the same, under another name
      copy_[v] = q.append(def<op::reshape>, operands_, {}, p.types[v]);
      q.ops.back().marks = p.ops[o].marks;
      return;
    }
    append_copy(q, p, o, operands_, p.attrs(o));
    const op_node& n = p.ops[o];
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      copy_[v] = q.append_result(p.types[v]);
    for (const auto& r : p.regions_of(o)) q.append_region(program(r));
  }
};

}  // namespace partita
