/// The action log as text, and its replay.
///
/// Source    PartIR, section 3: `tile <%x, 0, "B">; propagate; // BP tactic`
/// Differs   A policy for uneven dimensions follows the axis: `tile<%x, 0, "B", pad>`
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/ir/print.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Prints one action, such as `tile<%x, 0, "B">`. A sub-axis prints as `"A":(1)4`.
constexpr void print_action(text& out, const action& a, const value_names& names,
                            const named_axes& axes) {
  switch (a.kind) {
    case action_kind::propagate:
      out << "propagate";
      break;
    case action_kind::tile:
      out << "tile<%" << names[a.value] << ", " << a.dim << ", ";
      axes.print(out, a.axis);
      out << (a.uneven == uneven::pad ? ", pad>" : a.uneven == uneven::refuse ? ", refuse>" : ">");
      break;
    case action_kind::settle:
      out << "settle<%" << names[a.value] << ", " << a.dim << ", ";
      axes.print(out, a.axis);
      out << '>';
      break;
    case action_kind::first:
    case action_kind::atomic:
      out << (a.kind == action_kind::first ? "first<%" : "atomic<%") << names[a.value] << ", ";
      axes.print(out, a.axis);
      out << '>';
      break;
  }
}

/// Returns the action log with one line per tactic, actions separated by "; ". `source` is the
/// program before any action.
constexpr text print_actions(const core_program& c, const program& source) {
  text out;
  const value_names names(flat_program(source).p);
  for (std::size_t i = 0; i < c.actions.size(); ++i) {
    print_action(out, c.actions[i], names, c.named);
    const bool last = i + 1 == c.actions.size() || c.actions[i + 1].tactic != c.actions[i].tactic;
    out << (last ? ";\n" : "; ");
  }
  return out;
}

/// Applies the actions of a text to a fresh core program of the same source and mesh. Each line
/// counts as one tactic.
///
/// Errors    S008 unreadable text, S001 unknown axis, S006 unknown value, S021 and S022 no such
///           sub-axis, and the errors of the actions
constexpr failure replay(core_program& c, const program& source, std::string_view script) {
  failure f;
  const value_names names(flat_program(source).p);
  std::size_t at = 0;
  const auto skip = [&] {
    while (at < script.size() && (script[at] == ' ' || script[at] == ';' || script[at] == '\n')) {
      if (script[at] == '\n') c.start_tactic(c.tactic + 1);
      ++at;
    }
  };
  const auto until = [&](std::string_view stops) {
    const std::size_t begin = at;
    while (at < script.size() && stops.find(script[at]) == std::string_view::npos) ++at;
    return script.substr(begin, at - begin);
  };
  const auto expect = [&](std::string_view wanted) {
    if (script.substr(at, wanted.size()) == wanted) {
      at += wanted.size();
    } else {
      f.record("S008", "replay: cannot read the action text at character ", at, ": \"", wanted,
               "\" expected, found \"", script.substr(at, 12), '"');
    }
  };
  for (skip(); at < script.size() && !f; skip()) {
    const std::string_view verb = until("<; \n");
    if (verb == "propagate") {
      c.propagate();
      continue;
    }
    action a;
    a.kind = verb == "tile"     ? action_kind::tile
             : verb == "atomic" ? action_kind::atomic
             : verb == "first"  ? action_kind::first
             : verb == "settle" ? action_kind::settle
                                : action_kind::propagate;
    if (a.kind == action_kind::propagate) {
      f.record("S008", "replay: cannot read the action text: \"", verb,
               "\" is not an action; tile, atomic, propagate, first or settle expected");
      break;
    }
    expect("<%");
    text name;
    scanner in_quotes(script.substr(at));
    if (in_quotes.starts("\"")) {
      if (read_name(in_quotes, name)) at += in_quotes.position();
    } else {
      name = until(",");
    }
    a.value = names.find(name);
    if (!f && a.value < 0) f.record("S006", "replay: the program has no value \"%", name, '"');
    expect(", ");
    constexpr std::int64_t max_dim = 1 << 30;
    std::int64_t dim = 0;
    if (a.kind == action_kind::tile || a.kind == action_kind::settle) {
      scanner in(until(","));
      if (!in.integer(dim) || !in.done() || dim < 0 || dim > max_dim)
        f.record("S008", "replay: \"", in.all(), "\" is not a dimension");
      expect(", ");
    }
    expect("\"");
    text axis_name = until("\"");
    expect("\"");
    if (script.substr(at, 1) == ":") axis_name << until(",>");  // a sub-axis
    uneven policy = uneven::unsaid;
    if (verb == "tile" && script.substr(at, 6) == ", pad>") policy = uneven::pad;
    if (verb == "tile" && script.substr(at, 9) == ", refuse>") policy = uneven::refuse;
    expect(policy == uneven::pad ? ", pad>" : policy == uneven::refuse ? ", refuse>" : ">");
    a.uneven = policy;
    a.dim = static_cast<int>(dim);
    const int axis = f ? -1 : c.axis(axis_name, "replay", f);
    if (!f) f.record(c.apply(a, axis));
  }
  return f;
}

}  // namespace partita
