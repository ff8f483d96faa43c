// Loops that read elements of neighbouring blocks: listings, permutes, and the reasons for them.
#include "printed.hpp"

#include <partita/spmd/parse.hpp>

namespace {

constexpr pt::mesh four{{"S", 4}};
constexpr auto rows = pt::manual("S", {{"x", 0}}, "rows");
constexpr pt::conv_options same{.padding = pt::same_padding};

pt::partitioned split(const auto& model, const auto& tactic, const auto&... inputs) {
  const auto p = pt::partition(pt::trace(model, inputs...), four, pt::schedule(tactic));
  check_meaning(p);
  CHECK(pt::equal(pt::temporal(p, data::arguments(p.source)),
                  pt::evaluate(p.source, data::arguments(p.source))));
  pt::mesh m;
  const std::string text = str(pt::print(p.device));
  CHECK(str(pt::print(pt::parse(text, m), &m)) == text);
  return p;
}
std::string body(const std::string& text) { return text.substr(text.find('\n') + 1); }

}  // namespace

TEST_CASE("a convolution reads the borders of its neighbours") {
  const auto p = split([](auto x, auto w) { return pt::conv<same>(x, w); },
                       pt::manual("S", {{"x", 1}}, "space"), pt::input<float, 2, 16, 3>("x"),
                       pt::input<float, 3, 3, 4>("w"));
  CHECK(body(core(p)) == R"(  %x1 = loop "S" [#tile<1>] (%rS: range<4>) {
    %xs = slice 1 %x[4 * %rS - 1, 6] : tensor<2x6x3xf32>
    %x1s = convolution(%xs, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1]} : tensor<2x4x4xf32>
    yield %x1s
  } : tensor<2x16x4xf32>
  return %x1 : tensor<2x16x4xf32>
}
)");
  CHECK(body(local(p)) == R"(  %x1 = slice(%x) {[:, 3:4, :]} : tensor<2x1x3xf32>
  %x2 = permute {+1} <"S"> %x1 : tensor<2x1x3xf32>
  %x3 = slice(%x) {[:, 0:1, :]} : tensor<2x1x3xf32>
  %x4 = permute {-1} <"S"> %x3 : tensor<2x1x3xf32>
  %x5 = concatenate(%x2, %x, %x4) {dim=1} : tensor<2x6x3xf32>
  %x6 = convolution(%x5, %w) {lhs=[0, 2, 1], rhs=[1, 2, 0], result=[0, 2, 1]} : tensor<2x4x4xf32>
  return %x6 : tensor<2x4x4xf32>
}
)");
  CHECK(
      str(pt::explain(p)) ==
      R"(permute <"S">  %x  24 bytes  x1  space  convolution(%x, %w) needs elements of the neighbouring blocks over "S"
permute <"S">  %x  24 bytes  x1  space  convolution(%x, %w) needs elements of the neighbouring blocks over "S"
in all:
  all_gather      x0   0 bytes
  all_reduce      x0   0 bytes
  reduce_scatter  x0   0 bytes
  all_to_all      x0   0 bytes
  permute         x2  48 bytes
  all             x2  48 bytes
messages along "S" 2
)");
}
TEST_CASE("a shift moves one element; out of bounds is the padding value") {
  const auto shift = [](auto value) {
    return [=](auto x) { return pt::pad<pt::axes<1>, pt::axes<-1>>(x, value); };
  };
  const auto zero = split(shift(0), rows, pt::input<float, 16>("x"));
  CHECK(body(local(zero)) == R"(  %x1 = constant {0} : tensor<f32>
  %x2 = slice(%x) {[3:4]} : tensor<1xf32>
  %x3 = permute {+1} <"S"> %x2 : tensor<1xf32>
  %x4 = concatenate(%x3, %x) {dim=0} : tensor<5xf32>
  %x5 = slice(%x4) {[0:4]} : tensor<4xf32>
  return %x5 : tensor<4xf32>
}
)");
  const auto seven = split(shift(7), rows, pt::input<float, 16>("x"));
  CHECK(body(core(seven)) == R"(  %x1 = constant {7} : tensor<f32>
  %x2 = loop "S" [#tile<0>] (%rS: range<4>) {
    %xs = slice 0 %x[4 * %rS - 1, 4] else %x1 : tensor<4xf32>
    %x2s = %xs : tensor<4xf32>
    yield %x2s
  } : tensor<16xf32>
  return %x2 : tensor<16xf32>
}
)");
  CHECK(seven.collectives == pt::collectives{.permute = 1});
}
TEST_CASE("a reversed dimension: the opposite block, reversed") {
  const auto p = split([](auto x) { return pt::reverse<0>(x); }, rows, pt::input<float, 16>("x"));
  CHECK(body(core(p)) == R"(  %x1 = loop "S" [#tile<0>] (%rS: range<4>) {
    %xs = slice 0 %x[-4 * %rS + 12, 4] : tensor<4xf32>
    %x1s = reverse(%xs) {dims=[0]} : tensor<4xf32>
    yield %x1s
  } : tensor<16xf32>
  return %x1 : tensor<16xf32>
}
)");
  CHECK(body(local(p)) == R"(  %x1 = permute {mirrored} <"S"> %x : tensor<4xf32>
  %x2 = reverse(%x1) {dims=[0]} : tensor<4xf32>
  return %x2 : tensor<4xf32>
}
)");
}
TEST_CASE("a ring: elements that leave at the end enter at the front") {
  const auto p = split([](auto x) { return pt::roll<-2, 0>(x); }, rows, pt::input<float, 16>("x"));
  CHECK(body(core(p)) == R"(  %x1 = loop "S" [#tile<0>] (%rS: range<4>) {
    %xs = slice 0 %x[4 * %rS + 2, 4] around : tensor<4xf32>
    %x1s = %xs : tensor<4xf32>
    yield %x1s
  } : tensor<16xf32>
  return %x1 : tensor<16xf32>
}
)");
  CHECK(body(local(p)) == R"(  %x1 = slice(%x) {[0:2]} : tensor<2xf32>
  %x2 = permute {-1 around} <"S"> %x1 : tensor<2xf32>
  %x3 = concatenate(%x, %x2) {dim=0} : tensor<6xf32>
  %x4 = slice(%x3) {[2:6]} : tensor<4xf32>
  return %x4 : tensor<4xf32>
}
)");
}
TEST_CASE("a slice whose blocks start at a different offset on each device") {
  const auto p =
      split([](auto x) { return pt::slice<0, 2, 14>(x); }, rows, pt::input<float, 16>("x"));
  CHECK(body(local(p)) == R"(  %x1 = slice(%x) {[3:4]} : tensor<1xf32>
  %x2 = permute {+1} <"S"> %x1 : tensor<1xf32>
  %x3 = slice(%x) {[0:1]} : tensor<1xf32>
  %x4 = permute {-1} <"S"> %x3 : tensor<1xf32>
  %x5 = concatenate(%x2, %x, %x4) {dim=0} : tensor<6xf32>
  %x6 = shard_start {1 <"S">} : tensor<i64>
  %x7 = constant {3} : tensor<i64>
  %x8 = subtract(%x7, %x6) : tensor<i64>
  %x9 = dynamic_slice(%x5, %x8) {sizes=[3]} : tensor<3xf32>
  return %x9 : tensor<3xf32>
}
)");
}
TEST_CASE("select_and_scatter with padding: each device keeps the inner block of its result") {
  const auto p = split(
      [](auto x, auto y) {
        constexpr pt::window three{.size = {3}, .padding = pt::same_padding};
        return pt::select_and_scatter<pt::ops::direction::ge, three>(x, y);
      },
      pt::manual("S", {{"x", 0}, {"y", 0}}), pt::input<float, 16>("x"), pt::input<float, 16>("y"));
  CHECK(p.collectives == pt::collectives{.permute = 4});
  CHECK(body(core(p)) == R"(  %x1 = loop "S" [#tile<0>] (%rS: range<4>) {
    %xs = slice 0 %x[4 * %rS - 2, 8] inside : tensor<8xf32>
    %ys = slice 0 %y[4 * %rS - 2, 8] inside : tensor<8xf32>
    %x1s = select_and_scatter(%xs, %ys) {ge, window=[3], low=[1], high=[1]} keep 4 : tensor<4xf32>
    yield %x1s
  } : tensor<16xf32>
  return %x1 : tensor<16xf32>
}
)");
}
TEST_CASE("halos as large as the rest of the value are gathered instead") {
  const auto sums = []<std::int64_t N>(pt::extent<N>) {
    return [](auto x) {
      return pt::reduce_window<pt::combiner::add,
                               pt::window{.size = {N}, .padding = pt::same_padding}>(x);
    };
  };
  const auto narrow = split(sums(pt::extent<11>{}), rows, pt::input<float, 16>("x"));
  CHECK(narrow.collectives == pt::collectives{.permute = 4});
  const auto wide = split(sums(pt::extent<13>{}), rows, pt::input<float, 16>("x"));
  CHECK(wide.collectives == pt::collectives{.all_gather = 1});
}
TEST_CASE("a slice of one element gets it from the device that has it") {
  const auto p =
      split([](auto x) { return pt::slice<0, 9, 10>(x); }, rows, pt::input<float, 16>("x"));
  CHECK(body(local(p)) == R"(  %x1 = slice(%x) {[1:2]} : tensor<1xf32>
  %x2 = shard_start {1 <"S">} : tensor<i64>
  %x3 = constant {2} : tensor<i64>
  %x4 = compare(%x2, %x3) {eq} : tensor<i1>
  %x5 = constant {-0} : tensor<f32>
  %x6 = select(%x4, %x1, %x5) : tensor<1xf32>
  %x7 = all_reduce <"S"> %x6 : tensor<1xf32>
  return %x7 : tensor<1xf32>
}
)");
  CHECK(
      str(pt::explain(p))
          .find(
              "slice(%x) needs elements of few blocks over \"S\", which only their owners send") !=
      std::string::npos);
}
TEST_CASE("select_and_scatter without padding: the windows that reach into a block") {
  const auto p =
      pt::partition(pt::trace(
                        [](auto x, auto y) {
                          constexpr pt::window three{.size = {3}, .strides = {2}};
                          return pt::select_and_scatter<pt::ops::direction::ge, three>(x, y);
                        },
                        pt::input<float, 16>("x"), pt::input<float, 7>("y")),
                    four, pt::schedule(pt::manual("S", {{"x", 0}}, pt::uneven::pad)));
  check_meaning(p);
  CHECK(p.collectives == pt::collectives{.permute = 3});
  CHECK(core(p).find(R"(    %xs = slice 0 %x[4 * %rS - 2, 7] : tensor<7xf32>)") !=
        std::string::npos);
  CHECK(core(p).find(R"({ge, window=[3], strides=[2]} keep 4 : tensor<4xf32>)") !=
        std::string::npos);
}
