/// How work grows with size, counted instead of timed (see PARTITA_COUNT_WORK in support/vec.hpp).
#pragma once

#include <doctest/doctest.h>

#include <partita/support/vec.hpp>

/// Elements that `act(make(n))` looks at; `make` does not count.
template <class Make, class Act>
unsigned long long work_of(int n, const Make& make, const Act& act) {
  auto made = make(n);
  const auto before = partita::work;
  act(made);
  return partita::work - before;
}
/// Is the work at four times the size at most five times as much? (Tables that double need a
/// little more than four; what looks at all for each needs sixteen.)
template <class Make, class Act>
void check_linear(int n, const Make& make, const Act& act) {
  const auto small = work_of(n, make, act), large = work_of(4 * n, make, act);
  CHECK_MESSAGE(large <= 5 * small + 1000, small, " at ", n, ", ", large, " at ", 4 * n);
}
