/// The table of ops with nested programs, for all functions that run programs.
#pragma once

#include <cstdint>

#include <partita/op/call.hpp>
#include <partita/op/case_of.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/while_loop.hpp>
#include <partita/support/error.hpp>

namespace partita::run_detail {

enum class control_kind : std::uint8_t {
  unknown,
  once,    ///< runs the nested program on the operands
  choose,  ///< runs one of the nested programs, selected by the first operand
  repeat,  ///< runs the second nested program while the first one returns true
  scan,    ///< runs the nested program for each slice
};

struct control_entry {
  const op_def* op;
  control_kind how;
};
inline constexpr control_entry control_table[] = {
    {&def<op::call>, control_kind::once},
    {&def<op::case_of>, control_kind::choose},
    {&def<op::while_loop>, control_kind::repeat},
    {&def<op::scan>, control_kind::scan},
};

constexpr control_kind control_kind_of(const op_def* op) {
  for (const auto& entry : control_table)
    if (entry.op == op) return entry.how;
  return control_kind::unknown;
}

/// Checks that an op is in the table.
///
/// Errors    R007 an op with nested programs is not in the table
inline void check_control(const op_def* op) {
  if (control_kind_of(op) != control_kind::unknown) return;
  text known;
  for (const auto& entry : control_table)
    known << (entry.op == control_table[0].op ? "" : ", ") << entry.op->name;
  throw error(concat("R007 ", op->name, ": it is unknown how this op runs its nested programs; ",
                     known.view(), " are known: express it with them"));
}

}  // namespace partita::run_detail
