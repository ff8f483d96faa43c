/// The growth of work with size, counted instead of timed (see PARTITA_COUNT_WORK in
/// support/vec.hpp).
#pragma once

#include <doctest/doctest.h>

#include <partita/support/vec.hpp>

/// Returns the number of array elements that `act(make(n))` reads; those of `make` do not count.
template <class Make, class Act>
unsigned long long work_of(int n, const Make& make, const Act& act) {
  auto made = make(n);
  const auto before = partita::work;
  act(made);
  return partita::work - before;
}
/// Checks that four times the size takes at most five times the work. (Tables that double need
/// slightly more than four times; quadratic work needs sixteen times.)
template <class Make, class Act>
void check_linear(int n, const Make& make, const Act& act) {
  const auto small = work_of(n, make, act), large = work_of(4 * n, make, act);
  CHECK_MESSAGE(large <= 5 * small + 1000, small, " at ", n, ", ", large, " at ", 4 * n);
}
