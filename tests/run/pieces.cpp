// The shards of devices.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

pt::array counted(const pt::shape& s) {
  pt::array a({pt::dtype::f32, s});
  for (std::int64_t i = 0; i < a.size(); ++i) a.mutable_data<float>()[i] = static_cast<float>(i);
  return a;
}
std::vector<float> elements(const pt::array& a) {
  return {a.data<float>(), a.data<float>() + a.size()};
}
template <class... Tactics>
pt::partitioned made(const Tactics&... tactics) {
  const auto f = pt::trace([](auto x, auto w) { return pt::tag("h", matmul(x, w)); },
                           pt::input<float, 5, 4>("x"), pt::input<float, 4, 6>("w"));
  return pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}}, pt::schedule(tactics...));
}

}  // namespace

TEST_CASE("piece returns the block of a device") {
  const auto p = made(pt::manual("M", {{"w", 1}}), pt::manual("B", {{"w", 0}}));
  const pt::array w = counted({4, 6});
  // Device 5 is (2, 1): row 2, columns 3 to 5.
  CHECK(pt::piece(w, p, "w", 5).shape() == pt::shape{1, 3});
  CHECK(elements(pt::piece(w, p, "w", 5)) == std::vector<float>{15, 16, 17});
  CHECK(elements(pt::piece(w, p, "w", 0)) == std::vector<float>{0, 1, 2});
  CHECK(pt::piece(counted({5, 4}), p, "x", 3).shape() == p.input("x").local_shape);
  // The blocks of all devices contain each element once per replica.
  const pt::array h = counted({5, 6});
  std::multiset<float> seen;
  for (int d = 0; d < 8; ++d)
    for (const float v : elements(pt::piece(h, p, "h", d))) seen.insert(v);
  CHECK(seen.size() ==
        8u * static_cast<std::size_t>(pt::sharding_of(p, "h").local_shape.elements()));
  for (int i = 0; i < 30; ++i) CHECK(seen.count(static_cast<float>(i)) * 30 == seen.size());
}

TEST_CASE("padding is zero") {
  const auto p = made(pt::manual("B", {{"x", 0}}, pt::uneven::pad));
  const pt::array x = counted({5, 4});
  CHECK(elements(pt::piece(x, p, "x", 4)) == std::vector<float>{16, 17, 18, 19, 0, 0, 0, 0});
  CHECK(elements(pt::piece(x, p, "x", 6)) == std::vector<float>(8, 0.f));
}

TEST_CASE("pieces that do not exist are refused") {
  const auto p = made();
  CHECK_THROWS_WITH_AS(pt::piece(counted({4, 4}), p, "x", 0),
                       "R002 piece: the array has shape [4, 4], \"x\" has [5, 4]", pt::error);
  CHECK_THROWS_WITH_AS(pt::piece(counted({5, 4}), p, "x", 8),
                       "R010 piece: device 8 does not exist; the mesh has 8", pt::error);
  CHECK_THROWS_WITH_AS(pt::piece(counted({5, 4}), p, "x", -1),
                       "R010 piece: device -1 does not exist; the mesh has 8", pt::error);
}
