/// `after_tactic<thunk, 1>`: a thunk for the program after one of its tactics, for `check` and the
/// like.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/schedule/partition.hpp>
#include <partita/support/error.hpp>

namespace partita {

/// A tactic of a schedule: its number, counted from 0, or its name. A name means the first tactic
/// that has it.
struct tactic_choice {
  int number = -1;
  char name[64] = {};

  constexpr tactic_choice(int n) : number(n) {}
  template <std::size_t N>
  constexpr tactic_choice(const char (&s)[N]) {
    static_assert(N <= sizeof name, "partita: the name of a tactic is longer than 63 characters");
    for (std::size_t i = 0; i < N; ++i) name[i] = s[i];
  }
};

/// Returns the program as it was after the first tactic with this name.
///
/// Errors    P007 no such tactic
template <std::same_as<partitioned> Partitioned = partitioned>
constexpr Partitioned after(const Partitioned& p, std::string_view tactic) {
  vec<std::string_view> names;
  for (const tactic_report& t : p.tactics) names.push_back(t.name);
  int number = 0;
  while (number < static_cast<int>(names.size()) && names[number] != tactic) ++number;
  if (p.error || number < static_cast<int>(names.size())) return after(p, number);
  Partitioned r;
  r.error.record("P007", "after: no tactic \"", tactic, "\"; ", known_names(tactic, names));
  r.error.raise();
  return r;
}

namespace schedule_detail {
template <auto Thunk, tactic_choice Which>
struct thunk_after {
  constexpr partitioned operator()() const {
    if constexpr (Which.number >= 0 || Which.name[0] == '\0')
      return after(Thunk(), Which.number);
    else
      return after(Thunk(), std::string_view(Which.name));
  }
};
}  // namespace schedule_detail

/// A thunk that returns the program of `Thunk` as it was after one of its tactics, given by number
/// or name; see `after`. All compile-time checks of a program are also available after each tactic:
///
/// ```cpp
/// static_assert(check<after_tactic<step, 0>>.peak_bytes <= 80_GB);
/// static_assert(check<after_tactic<step, "BP">, a100_80>.step_time < 0.2);
/// ```
///
/// Cost      one propagation and one lowering, as for another thunk; none if unused
/// Errors    P007 no such tactic
template <auto Thunk, tactic_choice Which>
inline constexpr auto after_tactic = schedule_detail::thunk_after<Thunk, Which>{};

}  // namespace partita
