/// Bounds on what a partitioning may cost, from text.
#pragma once

#include <partita/schedule/figures.hpp>
#include <partita/spec/lines.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

struct bound {
  enum relation_type : std::uint8_t { at_most, at_least, below, above, equal };
  text name;
  relation_type relation = at_most;
  double value = 0;
  text written;  ///< "peak_bytes <= 16 GiB"
};
struct bound_list {
  vec<bound> bounds;
  failure error;
};

/// A line for each bound; `#` and `//` begin comments:
///
/// ```
/// all_gather <= 2
/// all_reduce == 5
/// peak_bytes <= 16 GiB
/// ```
///
/// Names are those of `collectives` and of the figures (flops, bytes, argument_bytes, result_bytes,
/// peak_bytes, collective_bytes, replicated_bytes, replicated_count, conflicts, ops, ...).
/// Errors    X001 syntax, X002 an unknown unit, with line and column
constexpr bound_list read_bounds(std::string_view in) {
  bound_list list;
  spec_detail::lines l(in, "check");
  while (!l.failed() && !l.at_end()) {
    const std::size_t begin = l.position();
    bound b;
    b.name = text(l.word("<>="));
    if (b.name.empty()) l.expected("the name of a figure");
    using enum bound::relation_type;
    if (l.accept("<="))
      b.relation = at_most;
    else if (l.accept(">="))
      b.relation = at_least;
    else if (l.accept("=="))
      b.relation = equal;
    else if (l.accept("<"))
      b.relation = below;
    else if (l.accept(">"))
      b.relation = above;
    else
      l.expected("<=, <, ==, > or >=");
    b.value = l.quantity("a number");
    std::string_view written = in.substr(begin, l.position() - begin);
    b.written = written;
    if (!l.failed() && !l.at_line_end()) l.expected("the end of the line");
    if (!l.failed()) list.bounds.push_back(b);
  }
  list.error.record(l.error);
  return list;
}

/// The figure of this name, of the whole program on one device; false if there is none, and `known`
/// has those that there are.
constexpr bool figure_of(const partitioned& p, std::string_view name, double& value,
                         vec<std::string_view>& known) {
  const schedule_detail::replicated_sum replicated(p.core);
  bool found = false;
  const auto put = [&](std::string_view figure, auto v) {
    known.push_back(figure);
    if (figure != name) return;
    value = static_cast<double>(v);
    found = true;
  };
  put("all_gather", p.collectives.all_gather);
  put("all_reduce", p.collectives.all_reduce);
  put("reduce_scatter", p.collectives.reduce_scatter);
  put("all_to_all", p.collectives.all_to_all);
  put("permute", p.collectives.permute);
  put("collectives", p.collectives.total());
#define PARTITA_COUNTS(member, value)
#define PARTITA_SIZE(member, value, name, before, after) put(#member, value);
#define PARTITA_NUMBER(member, value) put(#member, value);
  PARTITA_FIGURES(PARTITA_COUNTS, PARTITA_SIZE, PARTITA_NUMBER)
#undef PARTITA_COUNTS
#undef PARTITA_SIZE
#undef PARTITA_NUMBER
  return found;
}

/// A line for each bound that does not hold: what it is and what it should be. Empty: all hold.
///
/// Errors    X008 (in `error`) a bound names no figure
constexpr text broken_bounds(const partitioned& p, const bound_list& list, failure& error) {
  text out;
  for (const auto& b : list.bounds) {
    double v = 0;
    vec<std::string_view> known;
    if (!figure_of(p, b.name, v, known)) {
      error.record("X008", "check: there is no figure \"", b.name, "\"; ",
                   known_names(b.name, known));
      return out;
    }
    using enum bound::relation_type;
    const bool holds = b.relation == at_most    ? v <= b.value
                       : b.relation == at_least ? v >= b.value
                       : b.relation == below    ? v < b.value
                       : b.relation == above    ? v > b.value
                                                : v == b.value;
    if (holds) continue;
    out << b.name << " is ";
    print_number(out, v);
    out << "; " << b.written << " does not hold\n";
  }
  return out;
}

}  // namespace partita
