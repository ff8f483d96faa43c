/// The version of the library; CMake reads it here.
#pragma once

#include <string_view>

namespace partita {

inline constexpr std::string_view library_version = "0.1.0";

}  // namespace partita
