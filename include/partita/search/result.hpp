/// The result of a search, as data and as source code.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/schedule/search_course.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/search/environment.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/quoted.hpp>

namespace partita {

/// The course of a search, and the tactics that it found. (Pass one in `search_options::result`.)
struct search_result : search_course {
  struct entry {
    text name;    ///< of a value, or a pattern
    int dim = 0;  ///< or `whole` (replicated), or `absent`: left to propagation
  };
  static constexpr int whole = -1, absent = -2;

  /// A `manual` tactic along one axis.
  struct tactic {
    text axis;
    vec<entry> entries;
  };
  /// Together they do what the search did; empty if it found nothing better.
  vec<tactic> tactics;
  double peak_bytes = 0;  ///< of a device, with these tactics
};

namespace search_detail {

/// Returns a name with `*` for each component (between dots) that is a number.
constexpr text pattern_of(std::string_view name) {
  text out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= name.size(); ++i) {
    if (i < name.size() && name[i] != '.') continue;
    const std::string_view part = name.substr(begin, i - begin);
    bool number = !part.empty();
    for (char c : part) number = number && c >= '0' && c <= '9';
    if (begin > 0) out << '.';
    out << (number ? std::string_view("*") : part);
    begin = i + 1;
  }
  return out;
}

/// Writes the entries of one tactic. It uses a pattern if the pattern selects exactly the values of
/// the group.
class entry_writer {
 public:
  constexpr explicit entry_writer(const core_program& c, const vec<named_target>& targets) {
    for (const auto& t : targets) names_.push_back(t.name);
    name_table known(names_.size());
    for (std::size_t i = 0; i < names_.size(); ++i) known.insert(names_[i], 0);
    for (int k = 0; k < c.p.output_count(); ++k)
      if (known.find(c.p.output_name(k)) < 0) names_.push_back(c.p.output_name(k));
    for (std::string_view name : names_) patterns_.push_back(pattern_of(name));
  }
  /// `dims` has, by target, a dimension, `search_result::whole` or `search_result::absent`.
  constexpr vec<search_result::entry> operator()(vec<int> dims) const {
    dims.resize(names_.size(), search_result::absent);
    vec<search_result::entry> out;
    vec<text> keys;
    for (std::size_t t = 0; t < names_.size(); ++t) {
      text key;
      if (dims[t] != search_result::absent) key << dims[t] << ' ' << patterns_[t];
      keys.push_back(key);
    }
    for (const auto& group : grouped(keys)) {
      const int dim = dims[group[0]];
      const text& pattern = patterns_[group[0]];
      if (group.size() > 1 && stands_for(pattern, dim, dims))
        add(out, pattern, dim);
      else
        for (int t : group) add(out, names_[t], dim);
    }
    leave(out, dims);
    return out;
  }

 private:
  vec<std::string_view> names_;
  vec<text> patterns_;  ///< by name

  static constexpr void add(vec<search_result::entry>& out, std::string_view name, int dim) {
    search_result::entry e;
    e.name = text(name);
    e.dim = dim;
    out.push_back(e);
  }
  /// True if a pattern selects only values that have it and get this placement.
  constexpr bool stands_for(const text& pattern, int dim, const vec<int>& dims) const {
    for (std::size_t t = 0; t < names_.size(); ++t)
      if (schedule_detail::selects_pattern(pattern, names_[t]) &&
          !(dims[t] == dim && patterns_[t].view() == pattern.view()))
        return false;
    return true;
  }
  /// Adds `absent` entries for values below a listed name: a name also selects the values below it.
  constexpr void leave(vec<search_result::entry>& out, const vec<int>& dims) const {
    name_table named(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) named.insert(out[i].name, 0);
    for (std::size_t t = 0; t < names_.size(); ++t) {
      bool below = false;
      for (std::size_t end = 0; end < names_[t].size() && !below; ++end)
        below = names_[t][end] == '.' && named.find(names_[t].substr(0, end)) == 0;
      if (below && dims[t] == search_result::absent) add(out, names_[t], search_result::absent);
    }
  }
};

/// Returns the axis in the notation of `manual`: `B`, or `B:(2)4`.
constexpr text axis_name(const core_program& c, int axis) {
  const sub_axis s = c.named.at(axis);
  const std::string_view name = c.mesh.name(s.axis);
  if (s.pre == 1 && s.size == c.mesh.whole_size(s.axis)) return text(name);
  return concat(name, ":(", s.pre, ')', s.size);
}

/// Returns the actions that led to the state of an environment, as tactics.
constexpr vec<search_result::tactic> tactics_of(const environment& e) {
  vec<search_result::tactic> list;
  const entry_writer write(e.root(), e.targets());
  for (const auto& each : e.history()) {
    vec<int> dims(e.targets().size(), search_result::absent);
    for (const auto& m : each.members) dims[e.target_of(m.value)] = m.dim;
    for (int t : each.whole) dims[t] = search_result::whole;
    search_result::tactic tactic;
    tactic.axis = axis_name(e.root(), each.axis);
    tactic.entries = write(dims);
    list.push_back(tactic);
  }
  return list;
}

/// Prints a name in quotes, with the escapes of texts or, if `cpp`, with three-digit octal escapes.
constexpr void print_quoted(text& out, std::string_view name, bool cpp) {
  out << '"';
  for (char c : name) {
    const auto byte = static_cast<unsigned char>(c);
    if (cpp && is_control(c))
      out << '\\' << static_cast<char>('0' + (byte >> 6))
          << static_cast<char>('0' + (byte >> 3 & 7)) << static_cast<char>('0' + (byte & 7));
    else
      print_escaped(out, c);
  }
  out << '"';
}
/// Prints `"x": 0`, or `{"x", 0}` for C++.
constexpr void print_entry(text& out, const search_result::entry& e, bool cpp) {
  out << (cpp ? "{" : "");
  print_quoted(out, e.name, cpp);
  out << (cpp ? ", " : ": ");
  if (e.dim >= 0)
    out << e.dim;
  else
    out << (cpp ? "partita::" : "") << (e.dim == search_result::whole ? "replicated" : "unknown");
  out << (cpp ? "}" : "");
}

}  // namespace search_detail

/// Returns the tactics as a specification, which `partita` and `read_schedule` read.
constexpr text print_specification(const search_result& r) {
  text out;
  int number = 0;
  for (const auto& t : r.tactics) {
    out << 'A' << ++number << ": manual ";
    search_detail::print_quoted(out, t.axis, false);
    out << " {";
    for (std::size_t i = 0; i < t.entries.size(); ++i) {
      out << (i > 0 ? ",\n  " : "");
      search_detail::print_entry(out, t.entries[i], false);
    }
    out << "}\n";
  }
  return out;
}

/// Returns the tactics as C++: definitions, and a function that returns a schedule of them. (GCC 12
/// does not accept a schedule variable outside of functions as a constant.)
constexpr text print_source(const search_result& r, std::string_view name = "found") {
  text out;
  int number = 0;
  for (const auto& t : r.tactics) {
    out << "constexpr auto " << name << '_' << ++number << " = partita::manual(";
    search_detail::print_quoted(out, t.axis, true);
    out << ", {";
    for (std::size_t i = 0; i < t.entries.size(); ++i) {
      out << (i > 0 ? ",\n    " : "");
      search_detail::print_entry(out, t.entries[i], true);
    }
    out << "}, \"A" << number << "\");\n";
  }
  out << "constexpr auto " << name << "() {\n  return partita::schedule(";
  for (int i = 1; i <= number; ++i) out << (i > 1 ? ", " : "") << name << '_' << i;
  return out << ");\n}\n";
}

/// Returns the course of the search as CSV, one line per improvement: `evaluations,seconds,cost`.
constexpr text print_log(const search_result& r) {
  text out("evaluations,seconds,cost\n");
  for (const auto& each : r.log) {
    out << each.evaluations << ',';
    print_number(out, each.seconds);
    out << ',';
    print_number(out, each.cost);
    out << '\n';
  }
  return out;
}

}  // namespace partita
