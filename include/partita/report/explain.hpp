/// Reasons for each collective, and values replicated by default, as text.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/report/columns.hpp>
#include <partita/schedule/check.hpp>
#include <partita/support/separate.hpp>

namespace partita {

namespace report_detail {

/// The first `N` characters of a text, stored without heap memory.
template <std::size_t N>
struct text_buffer {
  char chars[N] = {};
  std::size_t size = 0;  ///< of the full text
  constexpr explicit text_buffer(const text& t) : size(t.size()) {
    for (std::size_t i = 0; i < size && i < N; ++i) chars[i] = t.view()[i];
  }
};
template <class Make, std::size_t N>
inline constexpr text_buffer<N> text_made{Make{}()};

/// A text computed at compile time. Takes one evaluation, and a second with a larger buffer only if
/// the text is long.
template <class Make>
constexpr std::string_view kept_text() {
  constexpr std::size_t room = 8192, size = text_made<Make, room>.size;
  if constexpr (size <= room)
    return {text_made<Make, room>.chars, size};
  else
    return {text_made<Make, size>.chars, size};
}

}  // namespace report_detail

namespace report_detail {

/// The text of `explain`, for a summary that has reasons for its collectives.
template <class Summary>
constexpr text explanation(const Summary& s) {
  text out;
  if (!s.error().empty()) return out << "error: " << s.error() << '\n';
  const auto& kept = s.lists();
  columns lines, sums;
  std::int64_t times[schedule_detail::kind_count] = {}, written[schedule_detail::kind_count] = {},
               all_times = 0;
  const int count = kept.rest.collectives;
  for (int i = 0; i < count; ++i) {
    const schedule_detail::kept_collective& n = kept.collectives[i];
    lines.cell(s.view(n.what)).cell(s.view(n.value)).number(n.bytes, " bytes");
    lines.cell(concat('x', n.times), true).cell(s.view(kept.tactics[n.tactic].name));
    lines.cell(s.view(n.why)).end_row();
    times[static_cast<int>(n.kind)] += n.times;
    all_times += n.times;
    ++written[static_cast<int>(n.kind)];
  }
  const auto sum = [&](std::string_view name, std::int64_t runs, std::int64_t ops,
                       std::int64_t sent) {
    sums.cell(name).cell(concat('x', runs), true);
    if (count != all_times) sums.cell(concat(ops, " written"), true);
    sums.number(sent, " bytes").end_row();
  };
  for (int k = 0; k < schedule_detail::kind_count; ++k)
    if (const auto kind = static_cast<collective::kind_type>(k);
        times[k] > 0 || kind != collective::permute)
      sum(name_of(kind), times[k], written[k], kept.rest.sent.of[k]);
  sum("all", all_times, count, kept.rest.sent.total());
  lines.print(out);
  out << "in all:\n";
  sums.print(out, "  ");
  text messages;
  schedule_detail::print_messages(messages, kept.rest.messages, kept.rest.mesh);
  if (!messages.empty()) out << messages.view().substr(2) << '\n';
  schedule_detail::print_notes(out, kept.rest.removed, kept.rest.unknown);
  out << s.view(kept.rest.loops);
  return out;
}

}  // namespace report_detail

namespace report_detail {
constexpr text explained_text(const partitioned& p) {
  return report_detail::explanation(schedule_detail::summary_with_words(p));
}
}  // namespace report_detail

namespace separate {
text explain(const partitioned& p);
}

/// Prints one line per collective of the device-local program, in program order: kind and axes,
/// value, bytes that a device sends (see bytes_sent), the number of runs, the last tactic that
/// changed it, and the reason.
///
/// Then come the number of runs of each kind, the number of collectives as written (if loops run
/// some more often), and the bytes that a device sends. Their sum is `cost::collective_bytes`; of
/// the branches of a conditional, the one that sends the most bytes counts. Next come the messages
/// that a device sends along each axis. Notes come last: removed dead code, loops of unknown length
/// (counted as one iteration), and for each `while` why it is not a `scan`.
///
/// Errors    those of the program, as the text "error: " and the message
constexpr text explain(const partitioned& p) {
  PARTITA_RETURN(report_detail::explained_text(p), separate::explain(p));
}

/// Prints the device-local program in the paper's notation; for a program with an error, "error: "
/// and its message.
constexpr text print(const partitioned& p) {
  return p.error ? concat("error: ", p.error.message, '\n') : print(p.device);
}

namespace report_detail {
/// Prints the values in `list`, which are replicated by default. `core` was built from `source`.
/// `where(value)` returns the words to print before the value's axes.
template <class List, class Where>
constexpr text replicated_text(const core_program& core, const program& source, const List& list,
                               int limit, const Where& where) {
  text out;
  const schedule_detail::source_names names(source, core);
  report_detail::columns lines;
  int shown = 0, more = 0;
  std::int64_t bytes = 0, more_bytes = 0;
  for (const auto& v : list) {
    bytes = saturating_add(bytes, v.bytes);
    if (shown++ >= limit) {
      ++more;
      more_bytes = saturating_add(more_bytes, v.bytes);
      continue;
    }
    text axes = where(v);
    axes << "along ";
    print_axis_set(axes, v.axes, core.mesh);
    lines.number(v.bytes, " bytes").cell(concat("x ", v.copies, " copies"), true);
    lines.cell(concat('%', names.value(v.value)));
    lines.cell(core.p.op(core.p.producer(v.value)).def->name);
    lines.cell(concat(core.p.type(v.value)));
    lines.cell(axes).end_row();
  }
  lines.print(out);
  if (more > 0) {
    out << "and " << more << " more, ";
    print_figure(out, more_bytes);
    out << " bytes\n";
  }
  out << "replicated by default: ";
  print_figure(out, bytes);
  return out << " bytes on one device, in " << shown << (shown == 1 ? " value\n" : " values\n");
}
constexpr text replicated_text(const partitioned& p, int limit) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return replicated_text(p.core, p.source, replicated_by_default(p), limit,
                         [](const replicated_value&) { return text(); });
}
}  // namespace report_detail

namespace separate {
text print_replicated(const partitioned& p, int limit);
}

/// Prints the values replicated by default (see replicated_value), largest first: bytes on one
/// device times copies, the value, its op and type, the axes. At most `limit` lines; the rest is
/// counted and summed.
constexpr text print_replicated(const partitioned& p, int limit = 20) {
  PARTITA_RETURN(report_detail::replicated_text(p, limit), separate::print_replicated(p, limit));
}

namespace report_detail {
/// The evaluation of a thunk that `check` shares, with reasons for all its collectives.
template <auto Thunk, summary_limits First>
constexpr const auto& explained_summary() {
  constexpr auto& first = schedule_detail::complete_evaluation<Thunk, First>();
  if constexpr (first.explained()) {
    return first.kept;
  } else {
    constexpr summary_limits needed{0, 0, 0, first.kept.lists().rest.collectives};
    return schedule_detail::complete_evaluation<Thunk, schedule_detail::with_room(First, needed)>()
        .kept;
  }
}
template <auto Thunk, summary_limits First>
struct explained {
  constexpr text operator()() const { return explanation(explained_summary<Thunk, First>()); }
};
}  // namespace report_detail

/// The same text for the program that `Thunk` returns, computed at compile time. `check` and `diff`
/// share the evaluation of the thunk. (A program with more than 256 collectives needs another
/// evaluation.)
template <auto Thunk, summary_limits First = summary_limits{}>
requires std::convertible_to<decltype(Thunk()), const partitioned&>
constexpr std::string_view explain() {
  return report_detail::kept_text<report_detail::explained<Thunk, First>>();
}

}  // namespace partita
