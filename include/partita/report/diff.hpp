/// What changed from one schedule to another, as text for people.
#pragma once

#include <string_view>

#include <partita/report/explain.hpp>

namespace partita {

namespace detail {

constexpr void diff_number(text& out, std::string_view what, std::int64_t a, std::int64_t b) {
  if (a != b) out << what << ": " << a << " -> " << b << '\n';
}
constexpr text schedule_text(const partitioned& p) {
  text out;
  append_list(out, static_cast<int>(p.tactics.size()),
              [&](int t) { out << p.tactics[static_cast<std::size_t>(t)].name; });
  return out;
}
constexpr text place_text(const sharded_value& v, const mesh& m) {
  text out;
  print_layout(out, v.sharding, v.global_shape.rank, m);
  return out << ' ' << tensor_type{v.element, v.local_shape};
}

/// The inputs, or the outputs, that lie otherwise or are in one of the programs only.
template <class At>
constexpr void diff_values(text& out, std::string_view what, const partitioned& a, int a_count,
                           const partitioned& b, int b_count, int limit, const At& at) {
  name_table theirs(static_cast<std::size_t>(b_count));
  vec<char> found(static_cast<std::size_t>(b_count), 0);
  vec<sharded_value> others;  // which the table looks into
  for (int j = 0; j < b_count; ++j) others.push_back(at(b, j));
  for (int j = 0; j < b_count; ++j) theirs.insert(others[j].name, j);
  int changed = 0;
  const auto line = [&](std::string_view name, const text& before, const text& after) {
    if (changed++ < limit)
      out << what << " \"" << name << "\": " << before << " -> " << after << '\n';
  };
  for (int i = 0; i < a_count; ++i) {
    const sharded_value mine = at(a, i);
    const int j = theirs.find(mine.name);
    const text before = place_text(mine, a.mesh());
    text after = "none";
    if (j >= 0) {
      found[j] = 1;
      after = place_text(others[j], b.mesh());
    }
    if (!(before == after)) line(mine.name, before, after);
  }
  for (int j = 0; j < b_count; ++j)
    if (!found[j]) line(others[j].name, "none", place_text(others[j], b.mesh()));
  if (changed > limit) out << "and " << changed - limit << " more " << what << "s\n";
}

}  // namespace detail

/// What differs between two partitioned programs, `a -> b`: mesh, schedule, collectives by kind,
/// flops and bytes per device, layouts of inputs and outputs, and the collectives of each behind
/// those that both begin with, without those that both end with. At most `limit` inputs, outputs
/// and collectives of each; the others are counted. Without a difference the text is "no
/// difference".
constexpr text diff(const partitioned& a, const partitioned& b, int limit = 8) {
  text out;
  for (const partitioned* p : {&a, &b})
    if (p->error) return out << "error: " << p->error.message << '\n';
  const text meshes[] = {concat(a.mesh()), concat(b.mesh())};
  const text schedules[] = {detail::schedule_text(a), detail::schedule_text(b)};
  if (!(meshes[0] == meshes[1])) out << "mesh: " << meshes[0] << " -> " << meshes[1] << '\n';
  if (!(schedules[0] == schedules[1]))
    out << "schedule: " << schedules[0] << " -> " << schedules[1] << '\n';
  const partita::collectives &x = a.collectives, &y = b.collectives;
  detail::diff_number(out, "all_gather", x.all_gather, y.all_gather);
  detail::diff_number(out, "all_reduce", x.all_reduce, y.all_reduce);
  detail::diff_number(out, "reduce_scatter", x.reduce_scatter, y.reduce_scatter);
  detail::diff_number(out, "all_to_all", x.all_to_all, y.all_to_all);
  detail::diff_number(out, "permute", x.permute, y.permute);
  detail::diff_number(out, "bytes through collectives", a.cost.collective_bytes,
                      b.cost.collective_bytes);
  detail::diff_number(out, "flop", a.cost.flops, b.cost.flops);
  detail::diff_number(out, "bytes read and written", a.cost.bytes, b.cost.bytes);
  detail::diff_number(out, "argument bytes", a.cost.argument_bytes, b.cost.argument_bytes);
  detail::diff_number(out, "result bytes", a.cost.result_bytes, b.cost.result_bytes);
  detail::diff_number(out, "peak bytes", a.cost.peak_bytes, b.cost.peak_bytes);
  detail::diff_values(out, "input", a, a.source.input_count(), b, b.source.input_count(), limit,
                      [](const partitioned& p, int i) { return p.input(i); });
  detail::diff_values(out, "output", a, a.source.output_count(), b, b.source.output_count(), limit,
                      [](const partitioned& p, int i) { return p.output(i); });

  const detail::explainer in_a(a), in_b(b);
  const std::size_t n = a.notes.size(), m = b.notes.size();
  std::size_t same = 0, same_end = 0;
  while (same < n && same < m && in_a.line(a.notes[same]) == in_b.line(b.notes[same])) ++same;
  while (same + same_end < n && same + same_end < m &&
         in_a.line(a.notes[n - 1 - same_end]) == in_b.line(b.notes[m - 1 - same_end]))
    ++same_end;
  if (same < n || same < m) out << "collectives differ from number " << same + 1 << " on:\n";
  const auto some = [&](char sign, const detail::explainer& words, const partitioned& p) {
    const std::size_t end = p.notes.size() - same_end;
    std::size_t i = same;
    for (; i < end && i < same + static_cast<std::size_t>(limit); ++i)
      out << sign << ' ' << words.line(p.notes[i]) << '\n';
    if (i < end) out << sign << " and " << end - i << " more\n";
  };
  some('-', in_a, a);
  some('+', in_b, b);
  if (out.empty()) out << "no difference\n";
  return out;
}

namespace detail {
template <auto A, auto B>
struct compared {
  constexpr text operator()() const { return diff(A(), B()); }
};
}  // namespace detail

/// The same text for the programs that two thunks return, made by the compiler.
template <auto A, auto B>
constexpr std::string_view diff() {
  return detail::kept_text<detail::compared<A, B>>();
}

}  // namespace partita
