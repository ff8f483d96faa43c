/// Differences between two pipelines, as text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/report/diff.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/report/pipeline_report.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace report_detail {

/// A name and its text; two lists of these are compared by name. If `entries`, the text is a list
/// of entries and a difference is shown from the first entry that differs.
struct named_facts {
  text name, words;
  bool entries = false;
};
/// The length of the common prefix of a and b, rounded down to the start of an entry.
constexpr std::size_t same_entries(std::string_view a, std::string_view b) {
  std::size_t same = 0;
  for (std::size_t i = 0; i < a.size() && i < b.size() && a[i] == b[i]; ++i)
    if (a[i] == ' ') same = i + 1;
  return same;
}
/// About `most` characters of entries after the first `same` characters.
constexpr text entries_after(std::string_view all, std::size_t same, std::size_t most) {
  if (all.size() <= most) return all;
  return concat(same > 0 ? "... " : "", first_entries(all.substr(same), most));
}

/// The facts of a pipeline that `diff` compares.
class pipeline_facts {
 public:
  vec<named_facts> meshes, inputs, outputs;
  vec<text> transfers, collectives;
  partita::collectives all;
  pipeline_figures figures;

  constexpr explicit pipeline_facts(const pipelined& p) : all(p.collectives), figures(p), p_(p) {
    pipeline_explainer explain(p);
    for (int i = 0; i < static_cast<int>(p.transfers.size()); ++i)
      transfers.push_back(joined(explain.transfer_cells(i)));
    for (const auto& u : p.units)
      for (const auto& n : u.notes) collectives.push_back(joined(explain.collective_cells(u, n)));
    const vec<schedule_detail::bytes_by_kind> sent = sent_by_mesh(p);
    for (int m = 0; m < p.topology.count(); ++m) add_mesh(m, sent[m]);
    for (int i = 0; i < p.source.input_count(); ++i)
      inputs.push_back({text(p.source.input_name(i)),
                        place(p.source.input_type(i), p.input_layout[i], p.input_mesh[i])});
    for (int i = 0; i < p.source.output_count(); ++i)
      outputs.push_back({text(p.source.output_name(i)),
                         place(p.source.output_type(i), p.output_layout[i], p.output_mesh[i])});
  }
  constexpr text schedule() const {
    text out;
    append_list(out, static_cast<int>(p_.tactics.size()),
                [&](int t) { out << p_.tactics[t].name; });
    if (out.empty()) out << "none";
    return out;
  }
  constexpr text topology() const { return concat(p_.topology); }
  constexpr const pipelined& pipeline() const { return p_; }

 private:
  const pipelined& p_;

  static constexpr text joined(const vec<text>& cells) {
    text out;
    for (const text& each : cells) out << (out.empty() ? "" : " ") << each;
    return out;
  }
  constexpr text place(const tensor_type& type, const layout& l, int mesh) const {
    text out = name_text(p_.topology.name(mesh));
    print_layout(out << ' ', l, type.shape.rank, p_.meshes[mesh]);
    return out << ' ' << tensor_type{type.element, l.local(type.shape, p_.meshes[mesh])};
  }
  /// Adds the figures of mesh `m`.
  constexpr void add_mesh(int m, const schedule_detail::bytes_by_kind& sent) {
    const mesh_figures& f = figures.meshes[m];
    const text name = name_text(p_.topology.name(m));
    const auto say = [&](std::string_view what, const text& words) {
      meshes.push_back({concat(name, ' ', what), words});
    };
    const auto number = [&](std::string_view what, std::int64_t n) {
      text words;
      print_figure(words, n);
      say(what, words);
    };
    text stages;
    append_list(stages, static_cast<int>(f.stages.size()), [&](int i) { stages << f.stages[i]; });
    if (stages.empty()) stages << "none";
    say("stages", stages);
    meshes.push_back({concat(name, " runs"), p_.order_of(p_.topology.name(m)), true});
    number("all_gather", f.collectives.all_gather);
    number("all_reduce", f.collectives.all_reduce);
    number("reduce_scatter", f.collectives.reduce_scatter);
    number("all_to_all", f.collectives.all_to_all);
    number("permute", f.collectives.permute);
    number("bytes sent", sent.total());
    number("argument bytes", f.memory.arguments);
    number("peak bytes", f.memory.peak);
    number("microbatches in flight", f.in_flight);
  }
};

constexpr void diff_words(text& out, std::string_view what, const text& a, const text& b) {
  if (!(a == b)) out << what << ": " << a << " -> " << b << '\n';
}
/// Prints the names whose texts differ or that only one list has, at most `limit` of them.
constexpr void diff_facts(text& out, std::string_view kind, const vec<named_facts>& a,
                          const vec<named_facts>& b, int limit) {
  name_table theirs(b.size());
  for (std::size_t j = 0; j < b.size(); ++j) theirs.insert(b[j].name, static_cast<int>(j));
  vec<char> found(b.size(), 0);
  const text none = "none";
  int changed = 0;
  const auto line = [&](const named_facts& of, const text& before, const text& after) {
    if (before == after || changed++ >= limit) return;
    if (kind.empty())
      out << of.name;
    else
      out << kind << " \"" << of.name << '"';
    constexpr std::size_t most = 60;
    const std::size_t same = same_entries(before, after);
    if (of.entries)
      out << ": " << entries_after(before, same, most) << " -> " << entries_after(after, same, most)
          << '\n';
    else
      out << ": " << before << " -> " << after << '\n';
  };
  for (const named_facts& each : a) {
    const int j = theirs.find(each.name);
    if (j >= 0) found[j] = 1;
    line(each, each.words, j < 0 ? none : b[j].words);
  }
  for (std::size_t j = 0; j < b.size(); ++j)
    if (!found[j]) line(b[j], none, b[j].words);
  if (changed > limit)
    out << "and " << changed - limit << " more " << (kind.empty() ? "figure" : kind) << "s\n";
}
/// Prints the lines of a that b does not have, with multiplicity, at most `limit` of them.
constexpr void print_alone(text& out, char sign, const vec<text>& a, const vec<text>& b,
                           int limit) {
  name_table theirs(b.size());
  vec<int> left(b.size(), 0);
  for (std::size_t j = 0; j < b.size(); ++j) ++left[theirs.insert(b[j], static_cast<int>(j))];
  int alone = 0;
  for (const text& each : a) {
    const int j = theirs.find(each);
    if (j >= 0 && left[j]-- > 0) continue;
    if (alone++ < limit) out << sign << ' ' << each << '\n';
  }
  if (alone > limit) out << sign << " and " << alone - limit << " more\n";
}
constexpr void diff_lines(text& out, std::string_view what, const vec<text>& a, const vec<text>& b,
                          int limit) {
  text lines;
  print_alone(lines, '-', a, b, limit);
  print_alone(lines, '+', b, a, limit);
  if (!lines.empty()) out << what << ":\n" << lines;
}

constexpr text difference(const pipeline_facts& a, const pipeline_facts& b, int limit) {
  text out;
  const pipelined &p = a.pipeline(), &q = b.pipeline();
  diff_words(out, "topology", a.topology(), b.topology());
  diff_words(out, "schedule", a.schedule(), b.schedule());
  diff_number(out, "stages", p.stages, q.stages);
  diff_number(out, "microbatches", p.microbatches, q.microbatches);
  diff_collectives(out, a.all, b.all);
  diff_number(out, "transfers", static_cast<std::int64_t>(p.transfers.size()),
              static_cast<std::int64_t>(q.transfers.size()));
  diff_number(out, "messages", a.figures.messages, b.figures.messages);
  diff_number(out, "bytes of messages", a.figures.message_bytes, b.figures.message_bytes);
  diff_facts(out, "", a.meshes, b.meshes, 1 << 30);
  diff_facts(out, "input", a.inputs, b.inputs, limit);
  diff_facts(out, "output", a.outputs, b.outputs, limit);
  diff_lines(out, "transfers that only one has", a.transfers, b.transfers, limit);
  diff_lines(out, "collectives that only one has", a.collectives, b.collectives, limit);
  if (out.empty()) out << "no difference\n";
  return out;
}

}  // namespace report_detail

/// Lists the differences between two pipelines, `a -> b`:
///
///   - topology, schedule, stages and microbatches
///   - collectives of a step by kind, transfers and their bytes
///   - for each mesh: its stages, the order of its calls, its collectives, the bytes that a device
///   sends and holds
///   - layouts of inputs and outputs
///   - the transfers and collectives that only one of them has
///
/// Prints at most `limit` inputs, outputs, transfers and collectives of each pipeline and counts
/// the rest. Equal pipelines give "no difference".
///
/// Errors    those of the pipelines, as the text "error: " and the message
/// Cost      that of memory_of, and linear in what is compared
constexpr text diff(const pipelined& a, const pipelined& b, int limit = 8) {
  for (const pipelined* p : {&a, &b})
    if (p->error) return concat("error: ", p->error.message, '\n');
  return report_detail::difference(report_detail::pipeline_facts(a),
                                   report_detail::pipeline_facts(b), limit);
}

namespace report_detail {
template <auto A, auto B>
struct compared_pipelines {
  constexpr text operator()() const { return diff(A(), B()); }
};
}  // namespace report_detail

/// The same text for the pipelines that two thunks return, computed at compile time.
template <auto A, auto B>
requires std::same_as<decltype(A()), pipelined>
constexpr std::string_view diff() {
  return report_detail::kept_text<report_detail::compared_pipelines<A, B>>();
}

}  // namespace partita
