// expect: S031 placement function: it captures what owns memory or cannot be copied as bytes;
// expect: S031 placement function: it captures 72 bytes, at most 64 are kept; capture a pointer
#include <array>
#include <string>

#include "mlp.hpp"

#ifdef FAIL
const std::string prefix = "w";
const std::int64_t sizes[9] = {8};
#else
constexpr std::string_view prefix = "w";
const std::int64_t sizes[8] = {8};
#endif

auto named = [prefix = prefix](std::string_view name, const pt::shape&) {
  return pt::placement(name.substr(0, prefix.size()) == prefix ? 0 : 1);
};
auto sized = [all = std::to_array(sizes)](std::string_view, const pt::shape& s) {
  return pt::placement(s[0] == all[0] ? 0 : 1);
};
auto by_name = pt::manual("B", {{"w1", named}});
auto by_size = pt::manual("B", {{"w1", sized}});
