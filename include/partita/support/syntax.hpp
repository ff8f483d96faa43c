/// The language in which a user writes tactics. Advice in messages uses the same one.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/support/text.hpp>

namespace partita {

/// The syntax of a schedule.
enum class syntax : std::uint8_t {
  cpp,           ///< `manual("B", {{"x", 0}})`
  specification  ///< `manual "B" {"x": 0}`, see spec/
};

/// Returns the syntax of a tactic: the result of its `written_in()`, or C++ if it has none.
template <class T>
constexpr syntax syntax_of(const T& tactic) {
  if constexpr (requires { tactic.written_in(); })
    return tactic.written_in();
  else
    return syntax::cpp;
}

/// Returns one of two texts, chosen by the reader's syntax.
constexpr std::string_view in_syntax(syntax s, std::string_view cpp,
                                     std::string_view specification) {
  return s == syntax::specification ? specification : cpp;
}

/// Prints a manual tactic with one entry, as users write it. `axis` is the name of an axis or
/// sub-axis (`A:(1)4`). `placement` is a dimension or `replicated`. `policy` is the text after the
/// entries, or empty.
constexpr void print_manual(text& out, syntax s, std::string_view axis, std::string_view name,
                            std::string_view placement, std::string_view policy) {
  if (s == syntax::specification) {
    out << "manual \"" << axis << "\" {\"" << name << "\": " << placement << '}';
    if (!policy.empty()) out << ' ' << policy;
    return;
  }
  out << "manual(\"" << axis << "\", {{\"" << name << "\", " << placement << "}}";
  if (!policy.empty()) out << ", uneven::" << policy;
  out << ')';
}

}  // namespace partita
