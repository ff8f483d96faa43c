/// Texts in the form that the tests compare.
#pragma once

#include <string>
#include <string_view>

#include <doctest/doctest.h>

#include <partita/support/error.hpp>

namespace unit {

inline std::string str(std::string_view t) { return std::string(t); }

/// Returns the message that a callable throws, or "no error".
std::string thrown(auto f) {
  try {
    f();
  } catch (const partita::error& e) {
    CHECK(e.code() == std::string_view(e.what()).substr(0, 4));
    return e.what();
  }
  return "no error";
}

}  // namespace unit
