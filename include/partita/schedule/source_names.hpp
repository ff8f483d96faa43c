/// Names of values and ops of a partitioned program, as in its source.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/ir/print.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// Names the values of a core program as its source does, even if tactics have rewritten it. The
/// results of an op of the source have their names there. An op that was added (a slice, a sum over
/// steps, a loop) has the name of the value that it passes on.
///
/// Cost      linear in the ops of the source
class source_names {
 public:
  constexpr source_names(const program& source, const core_program& c)
      : c_(c), flat_(source), names_(flat_.p) {
    for (op_id o = 0; o < flat_.p.op_count(); ++o) {
      if (flat_.p.is(o, op_role::wire)) continue;
      const int number = flat_.p.op(o).marks.source;
      while (static_cast<int>(op_of_.size()) <= number) op_of_.push_back(-1);
      if (number >= 0) op_of_[number] = o;
    }
  }

  /// Returns the value that `v` equals or passes on and that an op of the source computes, if it
  /// exists.
  constexpr value_id known(value_id v) const {
    for (int steps = 0; steps < 1000; ++steps) {  // (more only in a cycle of added ops)
      v = c_.source_of(v);
      const op_id o = c_.p.producer(v);
      if (in_source(o) >= 0 || c_.p.op(o).operand_count == 0) break;
      v = c_.p.operand(o, c_.p.op(o).operand_count - 1);  // of a sum: the value that is added
    }
    return v;
  }
  /// Returns the op that computes the value that an added op passes on; any other op unchanged.
  constexpr op_id known_op(op_id o, value_id v) const {
    const op_id made_by = c_.p.producer(known(v));
    return in_source(o) < 0 && in_source(made_by) >= 0 ? made_by : o;
  }
  /// Returns the name without a percent sign.
  constexpr text value(value_id v) const {
    v = known(v);
    if (const op_id same = in_source(c_.p.producer(v)); same >= 0)
      return names_[flat_.p.op(same).result + c_.p.result_index(v)];
    const op_id sake = of_number(c_.p.op(c_.p.producer(v)).marks.source);
    if (sake >= 0 && flat_.p.op(sake).result_count > 0) return names_[flat_.p.op(sake).result];
    return c_.p.op(c_.p.producer(v)).def->name;
  }
  /// Returns `matmul(%x, %w1)`: the op of the source with this number, and its first operands.
  /// Empty if the source has no such op.
  constexpr text call(int number, int most_operands) const {
    text out;
    const op_id o = of_number(number);
    if (o < 0) return out;
    const op_node& n = flat_.p.op(o);
    if (n.def->role == op_role::control) {
      out << n.def->name;
      if (n.name.size > 0) out << " \"" << flat_.p.view(n.name) << '"';
    } else if (n.operand_count == 0) {
      out << '%' << names_[n.result];
    } else if (n.def->role == op_role::tag) {
      out << "tag %" << names_[n.result];
    } else {
      text attributes;
      print_context context{flat_.p, o, nullptr, attributes};
      n.def->print(context);
      out << call_name(*n.def, attributes) << '(';
      const int shown = n.operand_count <= most_operands ? n.operand_count : most_operands;
      append_list(out, shown, [&](int i) { out << '%' << names_[flat_.p.operand(o, i)]; });
      if (shown < n.operand_count) out << ", and " << n.operand_count - shown << " more";
      out << ')';
    }
    return out;
  }

 private:
  const core_program& c_;
  flat_program flat_;
  value_names names_;
  vec<op_id> op_of_;  ///< by number: the op of the flat source, or -1

  constexpr op_id of_number(int number) const {
    return number >= 0 && number < static_cast<int>(op_of_.size()) ? op_of_[number] : -1;
  }
  /// Returns the op of the flat source that corresponds to an op of the core program; -1 if it was
  /// added.
  constexpr op_id in_source(op_id o) const {
    const bool wire = c_.p.is(o, op_role::wire);
    const op_id marker = wire ? c_.nested.control_of(o)->marker : o;
    const op_node& mine = c_.p.op(marker);
    const op_id known = of_number(mine.marks.source);
    if (known < 0 || flat_.p.op(known).def->name != mine.def->name) return -1;
    const op_id same = known - (marker - o);  // wires precede their marker, in order
    if (same < 0 || flat_.p.is(same, op_role::wire) != wire) return -1;
    return flat_.p.op(same).result_count == c_.p.op(o).result_count ? same : -1;
  }
};

}  // namespace partita::schedule_detail
