/// The figures of a partitioned program, and the texts about its collectives, without the program.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/schedule/explainer.hpp>
#include <partita/schedule/figures.hpp>
#include <partita/schedule/while_notes.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The effects of one tactic, as figures.
template <class Name>
struct basic_tactic_summary {
  Name name;
  partita::collectives collectives;  ///< of the device-local program after it
  /// The same, with collectives inside loops counted once.
  partita::collectives collectives_as_written;
  int actions = 0;
  int conflicts = 0;
};
using tactic_summary = basic_tactic_summary<text>;

/// Initial capacity of a `check`; it is enlarged automatically if a program needs more.
struct summary_limits {
  int values = 4096, tactics = 64, chars = 1 << 18;
  /// Maximum number of collectives whose texts are kept for `explain` and `diff`.
  int collectives = 256;
};

namespace schedule_detail {

/// Prints `, messages along "B" 12, along "M" 4`, or nothing if no messages are sent.
constexpr void print_messages(text& out, const std::int64_t (&messages)[max_axes], const mesh& m) {
  std::string_view before = ", messages along \"";
  for (int a = 0; a < m.whole_rank(); ++a) {
    std::int64_t sum = 0;
    for (int part = 0; part < m.rank; ++part)
      if (m.name(part) == m.name(a)) sum = saturating_add(sum, messages[part]);
    if (sum == 0) continue;
    out << before << escaped(m.name(a)) << "\" ";
    print_figure(out, sum);
    before = ", along \"";
  }
}

/// Not a constant expression, so that the compiler names it when a `static_assert` refers to
/// something that the program does not have.
[[noreturn]] inline void the_program_has_no(std::string_view what, std::string_view name) {
  throw error(concat("P007 check: the program has no ", what, " named \"", name, '"'));
}

// ---- Contents of a summary; texts are ranges of its characters ---------------------------------

struct kept_value {
  text_ref name;
  dtype element = dtype::f32;
  shape global, local;
  layout sharding;
};
struct kept_tactic {
  text_ref name;
  partita::collectives counts, counts_as_written;
  int actions = 0, conflicts = 0;
};
/// A collective, with the texts of `explainer`.
struct kept_collective {
  collective::kind_type kind = collective::all_gather;
  int tactic = 0;
  std::int64_t bytes = 0, times = 1;  ///< sent by a device each time
  text_ref what, value, why;
};
struct kept_rest {
  text_ref error;
  partita::mesh mesh;
  bytes_by_kind sent;
  std::int64_t messages[max_axes] = {};  ///< by axis of the mesh
  dead_code removed;
  unknown_loops unknown;
  text_ref loops;       ///< lines about loops that are not scans
  int collectives = 0;  ///< their number, whether their texts are kept or not
};

/// The contents of a summary, without a limit.
struct kept_lists {
  vec<kept_value> values;  ///< inputs, then outputs
  vec<kept_tactic> tactics;
  vec<kept_collective> collectives;
  text chars;
  kept_rest rest;

  constexpr std::string_view all_chars() const { return chars; }
  /// Returns the range of characters that `write` appends.
  template <class Write>
  constexpr text_ref kept(const Write& write) {
    const int begin = static_cast<int>(chars.size());
    write();
    return {begin, static_cast<int>(chars.size()) - begin};
  }
  constexpr text_ref keep(std::string_view s) {
    chars << s;
    return {static_cast<int>(chars.size() - s.size()), static_cast<int>(s.size())};
  }
  constexpr summary_limits size() const {
    return {static_cast<int>(values.size()), static_cast<int>(tactics.size()),
            static_cast<int>(chars.size()), static_cast<int>(collectives.size())};
  }

  constexpr kept_lists() = default;
  /// Keeps the texts of all collectives, or none if there are more than `most_words`.
  constexpr kept_lists(const partitioned& p, int most_words) {
    rest.error = keep(p.error.message);
    if (p.error) return;
    rest.mesh = p.mesh();
    for (int i = 0; i < p.source.input_count(); ++i)
      add(p.source.input_name(i), p.source.input_type(i), p.device.local.input_type(i),
          p.device.inputs[i]);
    for (int i = 0; i < p.source.output_count(); ++i)
      add(p.source.output_name(i), p.source.output_type(i), p.device.local.output_type(i),
          p.device.outputs[i]);
    for (const auto& t : p.tactics)
      tactics.push_back({keep(t.name), t.counts, t.counts_as_written,
                         t.last_action - t.first_action, t.conflicts});
    rest.collectives = static_cast<int>(p.notes.size());
    rest.sent = sent_by_kind(p);
    for (int a = 0; a < max_axes; ++a) rest.messages[a] = p.cost.messages[a];
    rest.removed = p.removed;
    rest.unknown = p.cost.unknown;
    rest.loops = kept([&] { print_while_notes(chars, p.source); });
    if (rest.collectives == 0 || rest.collectives > most_words) return;
    explainer words(p);
    for (const auto& n : p.notes)
      collectives.push_back(
          {n.kind, n.tactic, n.bytes_sent(p.mesh()), n.times, kept([&] { words.what(chars, n); }),
           kept([&] { words.value(chars, n.value); }), kept([&] { words.why(chars, n); })});
  }

 private:
  constexpr void add(std::string_view name, const tensor_type& whole, const tensor_type& piece,
                     const layout& sharding) {
    values.push_back({keep(name), whole.element, whole.shape, piece.shape, sharding});
  }
};

/// The contents of a summary without heap memory, so that they outlive their constant evaluation.
template <summary_limits Limits>
struct kept_arrays {
  kept_value values[Limits.values] = {};
  kept_tactic tactics[Limits.tactics] = {};
  kept_collective collectives[Limits.collectives] = {};
  char chars[Limits.chars] = {};
  kept_rest rest;

  constexpr std::string_view all_chars() const { return {chars, sizeof chars}; }
  constexpr explicit kept_arrays(const kept_lists& from) : rest(from.rest) {
    copy(values, Limits.values, from.values);
    copy(tactics, Limits.tactics, from.tactics);
    copy(collectives, Limits.collectives, from.collectives);
    const std::string_view all = from.chars;
    for (std::size_t i = 0; i < all.size() && i < sizeof chars; ++i) chars[i] = all[i];
  }

 private:
  template <class T>
  static constexpr void copy(T* to, int room, const vec<T>& from) {
    const int count = static_cast<int>(from.size()) < room ? static_cast<int>(from.size()) : room;
    for (int i = 0; i < count; ++i) to[i] = from[i];
  }
};

}  // namespace schedule_detail

/// The figures of a partitioned program (see PARTITA_FIGURES), and its inputs, outputs and tactics,
/// by position or name. `Lists` stores them; names are returned as `Name`.
///
/// Errors    P007 no such input, output, tactic or axis: thrown at run time, and not a constant
///           expression in constant evaluation
template <class Lists, class Name>
class basic_summary : public figures {
 public:
  constexpr basic_summary(const figures& f, const Lists& lists) : figures(f), lists_(lists) {}

  /// Returns the error of the program, or an empty text.
  constexpr std::string_view error() const { return view(lists_.rest.error); }
  /// Returns an input, by position.
  constexpr basic_sharded_value<Name> input(int i) const {
    if (i < 0 || i >= input_count) schedule_detail::the_program_has_no("input", concat(i));
    return value(i);
  }
  /// Returns an output, by position.
  constexpr basic_sharded_value<Name> output(int i) const {
    if (i < 0 || i >= output_count) schedule_detail::the_program_has_no("output", concat(i));
    return value(input_count + i);
  }
  /// Returns an input, by name.
  constexpr basic_sharded_value<Name> input(std::string_view name) const {
    return value(find("input", name, lists_.values, 0, input_count));
  }
  /// Returns an output, by name.
  constexpr basic_sharded_value<Name> output(std::string_view name) const {
    return value(find("output", name, lists_.values, input_count, input_count + output_count));
  }
  /// Returns a tactic, by position.
  constexpr basic_tactic_summary<Name> tactic(int i) const {
    if (i < 0 || i >= tactic_count) schedule_detail::the_program_has_no("tactic", concat(i));
    const schedule_detail::kept_tactic& t = lists_.tactics[i];
    return {view(t.name), t.counts, t.counts_as_written, t.actions, t.conflicts};
  }
  /// Returns the first tactic with this name.
  constexpr basic_tactic_summary<Name> tactic(std::string_view name) const {
    return tactic(find("tactic", name, lists_.tactics, 0, tactic_count));
  }

  /// Returns the messages that a device sends along an axis of the mesh, including those along its
  /// parts.
  constexpr std::int64_t messages(std::string_view axis) const {
    const mesh& m = lists_.rest.mesh;
    if (m.find(axis) < 0) schedule_detail::the_program_has_no("axis", axis);
    std::int64_t sum = 0;
    for (int a = 0; a < m.rank; ++a)
      if (m.name(a) == axis) sum = saturating_add(sum, lists_.rest.messages[a]);
    return sum;
  }

  /// Returns the underlying lists, for texts.
  constexpr const Lists& lists() const { return lists_; }
  constexpr std::string_view view(text_ref r) const {
    return lists_.all_chars().substr(static_cast<std::size_t>(r.begin),
                                     static_cast<std::size_t>(r.size));
  }

 private:
  Lists lists_;

  template <class List>
  constexpr int find(std::string_view what, std::string_view name, const List& list, int begin,
                     int end) const {
    for (int i = begin; i < end; ++i)
      if (view(list[i].name) == name) return i;
    schedule_detail::the_program_has_no(what, name);
    return 0;
  }
  constexpr basic_sharded_value<Name> value(int i) const {
    const schedule_detail::kept_value& v = lists_.values[i];
    return {view(v.name), v.element, v.global, v.local, v.sharding};
  }
};

/// The result of `summarize`: of any size, with names that it owns.
using summary = basic_summary<schedule_detail::kept_lists, text>;

namespace schedule_detail {
inline constexpr int all_words = 0x7fffffff;
constexpr summary summary_with_words(const partitioned& p, int most_words = all_words) {
  return {p.error ? figures() : figures(p), kept_lists(p, most_words)};
}
}  // namespace schedule_detail

/// Returns the figures of a program, at run time.
constexpr summary summarize(const partitioned& p) {
  return schedule_detail::summary_with_words(p, 0);
}

}  // namespace partita
