// Loops that know the start of their blocks: listings, and the reasons for collectives.
#include "printed.hpp"

namespace {

constexpr pt::mesh four{{"M", 4}};
constexpr auto rows = pt::manual("M", {{"t", 0}}, "rows");
std::string body(const std::string& text) { return text.substr(text.find('\n') + 1); }

}  // namespace

TEST_CASE("rows of a table that is sharded by rows") {
  const auto p =
      pt::partition(pt::trace([](auto t, auto i) { return pt::take<0>(t, i); },
                              pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i")),
                    four, pt::schedule(rows));
  check_meaning(p);
  CHECK(body(core(p)) == R"(  %x1 = loop "M" [#sum] (%rM: range<4>) {
    %ts = slice 0 %t[%rM] : tensor<4x4xf32>
    %x1s = gather(%ts, %i) at 4 * %rM : tensor<8x4xf32>
    yield %x1s
  } : tensor<8x4xf32>
  return %x1 : tensor<8x4xf32>
}
)");
  CHECK(body(local(p)) == R"(  %x1 = shard_start {4 <"M">} : tensor<i32>
  %x2 = constant {0} : tensor<i32>
  %x3 = constant {15} : tensor<i32>
  %x4 = clamp(%x2, %i, %x3) : tensor<8xi32>
  %x5 = subtract(%x4, %x1) : tensor<8xi32>
  %x6 = gather(%t, %x5) : tensor<8x4xf32>
  %x7 = compare(%x5, %x2) {ge} : tensor<8xi1>
  %x8 = constant {4} : tensor<i32>
  %x9 = compare(%x5, %x8) {lt} : tensor<8xi1>
  %x10 = and(%x7, %x9) : tensor<8xi1>
  %x11 = broadcast_in_dim(%x10) {dims=[0]} : tensor<8x4xi1>
  %x12 = constant {-0} : tensor<f32>
  %x13 = select(%x11, %x6, %x12) : tensor<8x4xf32>
  %x14 = all_reduce <"M"> %x13 : tensor<8x4xf32>
  return %x14 : tensor<8x4xf32>
}
)");
  CHECK(str(pt::explain(p)) ==
        R"(all_reduce <"M">  %x1  192 bytes  x1  rows  gather(%t, %i) leaves a sum over "M"
in all:
  all_gather      x0    0 bytes
  all_reduce      x1  192 bytes
  reduce_scatter  x0    0 bytes
  all_to_all      x0    0 bytes
  all             x1  192 bytes
messages along "M" 6
)");
}
TEST_CASE("rows that are updated in place") {
  const auto p = pt::partition(
      pt::trace([](auto t, auto i, auto u) { return pt::scatter_set(t, i, u); },
                pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"),
                pt::input<float, 8, 4>("u")),
      pt::mesh{{"A", 2}, {"M", 2}}, pt::schedule(rows, pt::manual("A", {{"t", 0}}, "more rows")));
  check_meaning(p);
  CHECK(body(core(p)) == R"(  %x1 = loop "M" [#tile<0>] (%rM: range<2>) {
    %x1s = loop "A" [#tile<0>] (%rA: range<2>) {
      %ts = slice 0 %t[%rM] : tensor<8x4xf32>
      %tss = slice 0 %ts[%rA] : tensor<4x4xf32>
      %x1ss = scatter(%tss, %i, %u) {assign} at 4 * (2 * %rM + %rA) : tensor<4x4xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<16x4xf32>
  return %x1 : tensor<16x4xf32>
}
)");
  CHECK(body(local(p)) == R"(  %x1 = shard_start {4 <"M", "A">} : tensor<i32>
  %x2 = subtract(%i, %x1) : tensor<8xi32>
  %x3 = scatter(%t, %x2, %u) {assign} : tensor<4x4xf32>
  return %x3 : tensor<4x4xf32>
}
)");
}
TEST_CASE("explain names the dimension that an op needs unsharded") {
  const auto p = pt::partition(pt::trace(
                                   [](auto t, auto u) {
                                     return std::tuple{pt::sort<0>(t), pt::cumsum<0>(u)};
                                   },
                                   pt::input<float, 16>("t"), pt::input<float, 16>("u")),
                               four, pt::schedule(pt::manual("M", {{"t", 0}, {"u", 0}}, "rows")));
  check_meaning(p);
  CHECK(
      str(pt::explain(p)) ==
      R"(all_gather <"M">  %x1  12 bytes  x1  rows  cumsum(%u) needs the totals of all blocks over "M"
all_gather <"M">  %t   48 bytes  x1  rows  sort(%t) needs it unsharded: it has no loop over "M", since along dimension 0 the position of an element depends on all others
in all:
  all_gather      x2  60 bytes
  all_reduce      x0   0 bytes
  reduce_scatter  x0   0 bytes
  all_to_all      x0   0 bytes
  all             x2  60 bytes
messages along "M" 6
)");
}
TEST_CASE("top_k uses pairs of blocks, or reports blocks that are too small") {
  const auto said = [](auto p) {
    const std::string all = str(pt::explain(p));
    return all.substr(0, all.find("in all"));
  };
  const auto best = [](auto z) { return std::get<1>(pt::top_k<2>(z)); };
  const auto columns = pt::schedule(pt::manual("M", {{"z", 1}}, "columns"));
  CHECK(
      said(pt::partition(pt::trace(best, pt::input<float, 3, 32>("z")), four, columns)) ==
      R"(all_gather <"M">  %x2  72 bytes  x1  columns  top_k(%z, %x1) reduces its results for all blocks over "M" once more
all_gather <"M">  %x3  72 bytes  x1  columns  top_k(%z, %x1) reduces its results for all blocks over "M" once more
)");
  CHECK(
      said(pt::partition(pt::trace(best, pt::input<float, 3, 12>("z")), four, columns)) ==
      R"(all_gather <"M">  %z  108 bytes  x1  columns  top_k(%z, %x1) needs it unsharded: it has no loop over "M", since along dimension 1 its result for a block of fewer than 4 elements would be larger than the block
)");
}
