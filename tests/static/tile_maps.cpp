// Tile maps in factor notation, computed at compile time.
#include <partita/op/tile_map_text.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

/// An input of a trace that is made for one test.
template <class T, std::int64_t... E>
constexpr auto in(pt::builder& b) {
  const pt::tensor_type type{pt::dtype_of<T>, pt::shape{E...}};
  return pt::tensor<T, E...>(&b, pt::ops::parameter(b, "x", type));
}
#define TILE_MAP(expression, expected)              \
  static_assert([] {                                \
    pt::builder b;                                  \
    return pt::tile_map_of(expression) == expected; \
  }())

// The three entries of figure 4.
TILE_MAP(matmul(in<float, 32, 16>(b), in<float, 16, 8>(b)),
         "([i, k], [k, j]) -> ([i, j])  reduce={k:add}");
TILE_MAP(matmul(in<float, 2, 32, 16>(b), in<float, 2, 16, 8>(b)),
         "([i, j, l], [i, l, k]) -> ([i, j, k])  reduce={l:add}");
TILE_MAP((pt::dot_general<pt::axes<1>, pt::axes<0>, pt::axes<0, 2>, pt::axes<2, 1>>(
             in<float, 3, 4, 5>(b), in<float, 4, 5, 3>(b))),
         "([j, i, k], [i, k, j]) -> ([i])  reduce={j:add, k:add}");
TILE_MAP((in<float, 4, 6>(b) + in<float, 4, 6>(b)), "([i, j], [i, j]) -> ([i, j])");
TILE_MAP((in<float, 4, 6>(b) * 2), "([i, j], []) -> ([i, j])");
TILE_MAP((pt::reshape<4, 2, 3, 2>(in<float, 4, 12>(b))), "([i, jkl]) -> ([i, j, k, l])");
TILE_MAP((pt::reshape<4, 12>(in<float, 4, 2, 3, 2>(b))), "([i, j, k, l]) -> ([i, jkl])");
TILE_MAP((pt::reshape<4, 4>(in<float, 16>(b))), "([ij]) -> ([i, j])");
TILE_MAP((pt::reshape<4, 3>(in<float, 2, 6>(b))), "([i, jk]) -> ([ij, k])");
TILE_MAP((pt::reshape<4, 6>(in<float, 6, 4>(b))), "([i*3, 4]) -> ([i*2, 6])");
TILE_MAP((pt::transpose<2, 0, 1>(in<float, 4, 5, 6>(b))), "([j, k, i]) -> ([i, j, k])");
TILE_MAP((pt::sum<1>(in<float, 4, 6>(b))), "([i, j]) -> ([i])  reduce={j:add}");
TILE_MAP((pt::reduce_max<0, 1>(in<float, 4, 6>(b))), "([i, j]) -> ([])  reduce={i:max, j:max}");
TILE_MAP((pt::reduce_min<0>(in<int, 4, 6>(b))), "([i, j]) -> ([j])  reduce={i:min}");
TILE_MAP((pt::broadcast_in_dim<0, 2>(in<float, 4, 1>(b), 4, 3, 6)), "([i, 1]) -> ([i, j, k])");
TILE_MAP((pt::gather(in<float, 5, 6>(b), in<int, 8>(b))),
         "([k@, j], [i]) -> ([i, j])  reduce={k:add}");
TILE_MAP((pt::scatter_add(in<int, 8>(b), in<float, 8, 6>(b), pt::extent<5>{})),
         "([i], [i, j]) -> ([k@, j])  reduce={i:add}");
TILE_MAP((pt::concatenate<1>(in<float, 4, 3>(b), in<float, 4, 5>(b))),
         "([i, 3], [i, 5]) -> ([i, 8])");
TILE_MAP((pt::slice<1, 2, 7>(in<float, 4, 8>(b))), "([i, j~]) -> ([i, j])");
TILE_MAP((pt::slice<1, 0, 8, 2>(in<float, 4, 8>(b))), "([i, j~]) -> ([i, j])");
TILE_MAP((pt::pad<pt::axes<0, 1>, pt::axes<0, 2>>(in<float, 4, 8>(b), in<float>(b))),
         "([i, j~], []) -> ([i, j])");
TILE_MAP((pt::reverse<1>(in<float, 4, 8>(b))), "([i, j~]) -> ([i, j])");
TILE_MAP((pt::dynamic_slice<pt::axes<4, 3>>(in<float, 4, 8>(b), in<int>(b), in<int>(b))),
         "([i, 8], [], []) -> ([i, 3])");
TILE_MAP((pt::dynamic_update_slice(in<float, 4, 8>(b), in<float, 4, 3>(b), in<int>(b), in<int>(b))),
         "([i, 8], [i, 3], [], []) -> ([i, 8])");
TILE_MAP((pt::dynamic_slice<pt::axes<4, 1>>(in<float, 4, 8>(b), in<int>(b), in<int>(b))),
         "([i, j@], [], []) -> ([i, 1])  reduce={j:add}");
TILE_MAP((pt::dynamic_update_slice(in<float, 4, 8>(b), in<float, 4, 1>(b), in<int>(b), in<int>(b))),
         "([i, j@], [i, 1], [], []) -> ([i, j@])");
TILE_MAP((pt::take<1>(in<float, 4, 5, 6>(b), in<int, 8>(b))),
         "([i, l@, k], [j]) -> ([i, j, k])  reduce={l:add}");
TILE_MAP((pt::take_along_axis<1>(in<float, 4, 5>(b), in<int, 4, 8>(b))),
         "([i, k@], [i, j]) -> ([i, j])  reduce={k:add}");
TILE_MAP((pt::scatter_add(in<float, 5, 6>(b), in<int, 8>(b), in<float, 8, 6>(b))),
         "([k@, j], [i@], [i@, j]) -> ([k@, j])  reduce={i:add}");
TILE_MAP((pt::scatter_max(in<float, 5, 6>(b), in<int, 8>(b), in<float, 8, 6>(b))),
         "([k@, j], [i], [i, j]) -> ([k@, j])  reduce={i:max}");
TILE_MAP((pt::iota<int, 1>(in<float, 4>(b), pt::extent<4>{}, pt::extent<6>{})),
         "() -> ([i, j])  offset={j}");
TILE_MAP((pt::bitcast_convert<std::uint8_t>(in<float, 4, 6>(b))), "([i, j]) -> ([i, j, 4])");
TILE_MAP((pt::bitcast_convert<double>(in<float, 4, 2>(b))), "([i, 2]) -> ([i])");
TILE_MAP((pt::reduce_precision<5, 10>(in<float, 4, 6>(b))), "([i, j]) -> ([i, j])");
TILE_MAP((pt::literal<int, 2, 2>(in<float, 4>(b), {1, 2, 3, 4})), "() -> ([2, 2])");
TILE_MAP((pt::full_like(in<float, 4, 6>(b), 1)), "() -> ([i, j])");
TILE_MAP((select(in<bool, 4>(b), in<float, 4>(b), in<float, 4>(b))), "([i], [i], [i]) -> ([i])");
TILE_MAP((pt::tag("t", in<float, 4, 6>(b))), "([i, j]) -> ([i, j])");
TILE_MAP((pt::prod<0>(in<int, 4, 6>(b))), "([i, j]) -> ([j])  reduce={i:multiply}");
TILE_MAP((pt::all<1>(in<bool, 4, 6>(b))), "([i, j]) -> ([i])  reduce={j:and}");
TILE_MAP((pt::argmax<1>(in<float, 4, 6>(b))), "([i, j], [i, j]) -> ([i], [i])  again={j}");
TILE_MAP((std::get<0>(pt::top_k<2>(in<float, 4, 6>(b)))),
         "([i, j], [i, j]) -> ([i, 2], [i, 2])  again={j}");
TILE_MAP((pt::cumsum<1>(in<float, 4, 6>(b))), "([i, j]) -> ([i, j])  carry={j:add}");
TILE_MAP((pt::cummax<0>(in<float, 4, 6>(b))), "([i, j]) -> ([i, j])  carry={i:max}");
TILE_MAP((pt::reduce_window<pt::combiner::max, pt::window{.size = {1, 3}}>(in<float, 4, 6>(b))),
         "([i, j~]) -> ([i, j])");
TILE_MAP((pt::conv(in<float, 2, 8, 6>(b), in<float, 3, 6, 5>(b))),
         "([i, l~, k], [3, k, j]) -> ([i, l, j])  reduce={k:add}");
TILE_MAP((pt::conv<pt::conv_options{.groups = 3}>(in<float, 2, 8, 6>(b), in<float, 3, 2, 9>(b))),
         "([i, m~, jl], [3, l, jk]) -> ([i, m, jk])  reduce={l:add}");
// The derivative of a window has more taps than positions: they are summed.
TILE_MAP((pt::conv(in<float, 2, 8, 6>(b), in<float, 8, 6, 5>(b))),
         "([i, l, k], [l, k, j]) -> ([i, 1, j])  reduce={k:add, l:add}");
TILE_MAP((pt::conv(in<float, 2, 8, 6>(b), in<float, 6, 6, 5>(b))),
         "([i, l~, k], [l~, k, j]) -> ([i, 3, j])  reduce={k:add, l:add}");
// Windows that no two blocks share: 7 positions over 8 elements.
TILE_MAP((pt::slice<0, 1, 8>(in<float, 8>(b))), "([i~]) -> ([i])");
// A parameter has no operands; a value outside a trace has no map.
TILE_MAP((in<float, 4, 6>(b)), "() -> ([i, j])");
TILE_MAP((pt::tensor<float, 4>{}), "");
