// expect: S031 placement function: it captures an object that owns memory or cannot be copied as
// expect: bytes;
#include <string>

#include "mlp.hpp"

#ifdef FAIL
const std::string prefix = "w";
#else
constexpr std::string_view prefix = "w";
#endif

auto named = [prefix = prefix](std::string_view name, const pt::shape&) {
  return pt::placement(name.substr(0, prefix.size()) == prefix ? 0 : 1);
};
auto by_name = pt::manual("B", {{"w1", named}});
