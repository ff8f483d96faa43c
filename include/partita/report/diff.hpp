/// Differences between two schedules of a program, as text.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/report/explain.hpp>
#include <partita/support/separate.hpp>

namespace partita {

namespace report_detail {

constexpr void diff_number(text& out, std::string_view what, std::int64_t a, std::int64_t b) {
  if (a == b) return;
  out << what << ": ";
  print_figure(out, a);
  out << " -> ";
  print_figure(out, b);
  out << '\n';
}
template <class Summary>
constexpr text schedule_text(const Summary& s) {
  text out;
  append_list(out, s.tactic_count, [&](int t) { out << s.view(s.lists().tactics[t].name); });
  return out;
}
constexpr text place_text(const schedule_detail::kept_value& v, const mesh& m) {
  text out;
  print_layout(out, v.sharding, v.global.rank, m);
  return out << ' ' << tensor_type{v.element, v.local};
}
/// `all_gather <"B"> %w1 128 bytes x1 Z3: matmul(%x, %w1) needs it unsharded: ...`
template <class Summary>
constexpr text collective_text(const Summary& s, int i) {
  const schedule_detail::kept_collective& n = s.lists().collectives[i];
  return concat(s.view(n.what), ' ', s.view(n.value), ' ', n.bytes, " bytes x", n.times, ' ',
                s.view(s.lists().tactics[n.tactic].name), ": ", s.view(n.why));
}

/// Prints the inputs or outputs whose layout differs or that only one program has: values [a_begin,
/// a_end) of a and [b_begin, b_end) of b.
template <class A, class B>
constexpr void diff_values(text& out, std::string_view what, const A& a, int a_begin, int a_end,
                           const B& b, int b_begin, int b_end, int limit) {
  const auto& mine = a.lists().values;
  const auto& others = b.lists().values;
  const mesh &a_mesh = a.lists().rest.mesh, &b_mesh = b.lists().rest.mesh;
  name_table theirs(static_cast<std::size_t>(b_end - b_begin));
  vec<char> found(static_cast<std::size_t>(b_end - b_begin), 0);
  for (int j = b_begin; j < b_end; ++j) theirs.insert(b.view(others[j].name), j);
  int changed = 0;
  const auto line = [&](std::string_view name, const text& before, const text& after) {
    if (changed++ < limit)
      out << what << " \"" << name << "\": " << before << " -> " << after << '\n';
  };
  for (int i = a_begin; i < a_end; ++i) {
    const std::string_view name = a.view(mine[i].name);
    const int j = theirs.find(name);
    if (j >= 0) found[j - b_begin] = 1;
    const text before = place_text(mine[i], a_mesh);
    text after = "none";
    if (j >= 0) after = place_text(others[j], b_mesh);
    if (!(before == after)) line(name, before, after);
  }
  for (int j = b_begin; j < b_end; ++j)
    if (!found[j - b_begin]) line(b.view(others[j].name), "none", place_text(others[j], b_mesh));
  if (changed > limit) out << "and " << changed - limit << " more " << what << "s\n";
}
constexpr void diff_collectives(text& out, const collectives& a, const collectives& b) {
  diff_number(out, "all_gather", a.all_gather, b.all_gather);
  diff_number(out, "all_reduce", a.all_reduce, b.all_reduce);
  diff_number(out, "reduce_scatter", a.reduce_scatter, b.reduce_scatter);
  diff_number(out, "all_to_all", a.all_to_all, b.all_to_all);
  diff_number(out, "permute", a.permute, b.permute);
}

/// The text of `diff`, for two summaries that have reasons for their collectives.
template <class A, class B>
constexpr text difference(const A& a, const B& b, int limit) {
  text out;
  for (const std::string_view error : {a.error(), b.error()})
    if (!error.empty()) return out << "error: " << error << '\n';
  const text meshes[] = {concat(a.lists().rest.mesh), concat(b.lists().rest.mesh)};
  const text schedules[] = {schedule_text(a), schedule_text(b)};
  if (!(meshes[0] == meshes[1])) out << "mesh: " << meshes[0] << " -> " << meshes[1] << '\n';
  if (!(schedules[0] == schedules[1]))
    out << "schedule: " << schedules[0] << " -> " << schedules[1] << '\n';
  diff_collectives(out, a.collectives, b.collectives);
  const auto figure = [&](const schedule_detail::figure_text& f) {
    if (!f.name.empty()) diff_number(out, f.name, a.*f.member, b.*f.member);
  };
  // The bytes sent follow the counts of collectives.
  const std::int64_t figures::*sent = &figures::collective_bytes;
  for (bool first : {true, false})
    for (const auto& f : schedule_detail::figure_texts)
      if ((f.member == sent) == first) figure(f);
  text before, after;
  schedule_detail::print_messages(before, a.lists().rest.messages, a.lists().rest.mesh);
  schedule_detail::print_messages(after, b.lists().rest.messages, b.lists().rest.mesh);
  const auto along = [](const text& t) {  // without ", messages "
    return t.empty() ? std::string_view("none") : t.view().substr(11);
  };
  if (!(before == after)) out << "messages: " << along(before) << " -> " << along(after) << '\n';
  diff_values(out, "input", a, 0, a.input_count, b, 0, b.input_count, limit);
  diff_values(out, "output", a, a.input_count, a.input_count + a.output_count, b, b.input_count,
              b.input_count + b.output_count, limit);

  const int n = a.lists().rest.collectives, m = b.lists().rest.collectives;
  const int least = n < m ? n : m;
  int same = 0, same_end = 0;
  while (same < least && collective_text(a, same) == collective_text(b, same)) ++same;
  while (same + same_end < least &&
         collective_text(a, n - 1 - same_end) == collective_text(b, m - 1 - same_end))
    ++same_end;
  if (same < n || same < m) out << "collectives differ from number " << same + 1 << " on:\n";
  const auto some = [&](char sign, const auto& s, int end) {
    int i = same;
    for (; i < end && i < same + limit; ++i) out << sign << ' ' << collective_text(s, i) << '\n';
    if (i < end) out << sign << " and " << end - i << " more\n";
  };
  some('-', a, n - same_end);
  some('+', b, m - same_end);
  if (out.empty()) out << "no difference\n";
  const text notes[] = {a.lists().rest.unknown.note(), b.lists().rest.unknown.note()};
  if (!notes[0].empty()) out << "note: " << notes[0] << '\n';
  if (!notes[1].empty() && !(notes[0] == notes[1])) out << "note: " << notes[1] << '\n';
  return out;
}

}  // namespace report_detail

namespace report_detail {
constexpr text diff_text(const partitioned& a, const partitioned& b, int limit) {
  return report_detail::difference(schedule_detail::summary_with_words(a),
                                   schedule_detail::summary_with_words(b), limit);
}
}  // namespace report_detail

namespace separate {
text diff(const partitioned& a, const partitioned& b, int limit);
}

/// Lists the differences between two partitioned programs, `a -> b`: mesh, schedule, collectives by
/// kind, flops and bytes per device, and layouts of inputs and outputs. Of the collectives it omits
/// the common prefix and the common suffix. It prints at most `limit` inputs, outputs and
/// collectives of each program and counts the rest. Equal programs give "no difference".
constexpr text diff(const partitioned& a, const partitioned& b, int limit = 8) {
  PARTITA_RETURN(report_detail::diff_text(a, b, limit), separate::diff(a, b, limit));
}

namespace report_detail {
template <auto A, auto B, summary_limits First>
struct compared {
  constexpr text operator()() const {
    return difference(explained_summary<A, First>(), explained_summary<B, First>(), 8);
  }
};
}  // namespace report_detail

/// The same text for the programs that two thunks return, computed at compile time. `check` and
/// `explain` share the evaluation of each thunk.
template <auto A, auto B, summary_limits First = summary_limits{}>
requires std::convertible_to<decltype(A()), const partitioned&>
constexpr std::string_view diff() {
  return report_detail::kept_text<report_detail::compared<A, B, First>>();
}

}  // namespace partita
