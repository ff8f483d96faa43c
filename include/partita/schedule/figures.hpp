/// The list of all figures of a partitioned program.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/schedule/partitioned.hpp>

/// The figures of a program. The constants of `check`, the results of `summarize` and the lines of
/// `report` and `diff` are all generated from this list. Each row is
///
/// * `COUNTS(member, value)`: numbers of collectives, before they are combined. One member
///   multiplies collectives inside loops by the loops' trip counts, the other counts each once
/// * `SIZE(member, value, name, before, after)`: flops or bytes, per device. `name` is the label in
///   `diff`; `before` and `after` surround the figure in `report`; all three are empty if these
///   texts do not show it. `launched` is the number of collectives that a device starts in a step:
///   several that were combined (see combine.hpp) count as one
/// * `NUMBER(member, value)`: a count. Conflicts are those left after the last tactic; ops are
///   those of the device-local program; for replicated values see replicated_value.
///   `unknown_loops...` are the loops of unknown length that were counted as one iteration, in
///   total and per figure that depends on them
///
/// In `value`, `p` is the partitioned program and `replicated` is a replicated_sum.
// clang-format off
#define PARTITA_FIGURES(COUNTS, SIZE, NUMBER)                                                  \
  COUNTS(collectives, p.collectives)                                                           \
  COUNTS(collectives_as_written, p.collectives_as_written)                                     \
  SIZE(launched, partita::launched(p.notes), "", "", "")                                       \
  SIZE(flops, p.cost.flops, "flop", "", " flop")                                               \
  SIZE(bytes, p.cost.bytes, "bytes read and written", "", " bytes read and written")           \
  SIZE(argument_bytes, p.cost.argument_bytes, "argument bytes", "arguments ", " bytes")        \
  SIZE(result_bytes, p.cost.result_bytes, "result bytes", "results ", " bytes")                \
  SIZE(peak_bytes, p.cost.peak_bytes, "peak bytes", "peak ", " bytes")                         \
  SIZE(collective_bytes, p.cost.collective_bytes, "bytes sent", "sent ", " bytes")             \
  SIZE(replicated_bytes, replicated.bytes, "", "", "")                                         \
  NUMBER(replicated_count, replicated.count)                                                   \
  NUMBER(conflicts, static_cast<int>(p.core.conflicts.size()))                                 \
  NUMBER(ops, p.device.local.op_count())                                                       \
  NUMBER(input_count, p.source.input_count())                                                  \
  NUMBER(output_count, p.source.output_count())                                                \
  NUMBER(tactic_count, static_cast<int>(p.tactics.size()))                                     \
  NUMBER(removed_ops, p.removed.ops)                                                           \
  NUMBER(unknown_loops, p.cost.unknown.loops)                                                  \
  NUMBER(unknown_loops_in_flops, p.cost.unknown.flops)                                         \
  NUMBER(unknown_loops_in_bytes, p.cost.unknown.bytes)                                         \
  NUMBER(unknown_loops_in_collectives, p.cost.unknown.collectives)
// clang-format on

namespace partita {

namespace schedule_detail {
/// The sum over all values replicated by default, per device.
struct replicated_sum {
  std::int64_t bytes = 0;
  int count = 0;

  constexpr explicit replicated_sum(const core_program& c) {
    for_each_replicated(c, [&](const replicated_value& v) {
      bytes = saturating_add(bytes, v.bytes);
      ++count;
    });
  }
};
}  // namespace schedule_detail

/// The figures of PARTITA_FIGURES as members.
struct figures {
#define PARTITA_COUNTS(member, value) partita::collectives member;
#define PARTITA_SIZE(member, value, name, before, after) std::int64_t member = 0;
#define PARTITA_NUMBER(member, value) int member = 0;
  PARTITA_FIGURES(PARTITA_COUNTS, PARTITA_SIZE, PARTITA_NUMBER)
#undef PARTITA_COUNTS
#undef PARTITA_SIZE
#undef PARTITA_NUMBER

  constexpr figures() = default;
  constexpr explicit figures(const partitioned& p) {
    const schedule_detail::replicated_sum replicated(p.core);
#define PARTITA_SET(member, value, ...) member = value;
    PARTITA_FIGURES(PARTITA_SET, PARTITA_SET, PARTITA_SET)
#undef PARTITA_SET
  }
};

namespace schedule_detail {

/// A figure's label and the words around it in texts.
struct figure_text {
  std::int64_t figures::*member;
  std::string_view name, before, after;
};
#define PARTITA_NOTHING(...)
#define PARTITA_TEXT(member, value, name, before, after) {&figures::member, name, before, after},
inline constexpr figure_text figure_texts[] = {
    PARTITA_FIGURES(PARTITA_NOTHING, PARTITA_TEXT, PARTITA_NOTHING)};
#undef PARTITA_NOTHING
#undef PARTITA_TEXT

/// A placeholder for every figure of a program whose error has already been reported. All
/// comparisons with it are true, and arithmetic on it returns another placeholder, so that it
/// causes no further diagnostics.
struct placeholder_figure {
#define PARTITA_PLACEHOLDER(type, op, result)                       \
  template <class T>                                                \
  friend constexpr type operator op(placeholder_figure, const T&) { \
    return result;                                                  \
  }
  PARTITA_PLACEHOLDER(bool, ==, true)
  PARTITA_PLACEHOLDER(bool, <, true)
  PARTITA_PLACEHOLDER(bool, >, true)
  PARTITA_PLACEHOLDER(bool, <=, true)
  PARTITA_PLACEHOLDER(bool, >=, true)
  PARTITA_PLACEHOLDER(placeholder_figure, +, {})
  PARTITA_PLACEHOLDER(placeholder_figure, -, {})
  PARTITA_PLACEHOLDER(placeholder_figure, *, {})
  PARTITA_PLACEHOLDER(placeholder_figure, /, {})
#undef PARTITA_PLACEHOLDER
  constexpr placeholder_figure operator[](int) const { return {}; }
};
struct placeholder_collectives : placeholder_figure {
  placeholder_figure all_gather, all_reduce, reduce_scatter, all_to_all, permute;
  constexpr placeholder_figure total() const { return {}; }
};
struct placeholder_figures {
#define PARTITA_COUNTS(member, value) placeholder_collectives member;
#define PARTITA_NUMBER(member, ...) placeholder_figure member;
  PARTITA_FIGURES(PARTITA_COUNTS, PARTITA_NUMBER, PARTITA_NUMBER)
#undef PARTITA_COUNTS
#undef PARTITA_NUMBER
};

}  // namespace schedule_detail
}  // namespace partita
