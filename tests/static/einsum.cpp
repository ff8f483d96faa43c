// einsum's formulas: shapes and the ops that they become, at compile time.
#include <partita/partita.hpp>

namespace pt = partita;

template <std::int64_t... E>
constexpr auto in(pt::builder& b) {
  return pt::tensor<float, E...>(&b, pt::ops::parameter(b, "x", {pt::dtype::f32, pt::shape{E...}}));
}
#define SHAPE(expression, ...)                                \
  static_assert([] {                                          \
    pt::builder b;                                            \
    const auto y = expression;                                \
    return !b.failed() && y.shape() == pt::shape __VA_ARGS__; \
  }())
/// The number of ops that it takes, without the parameters.
#define OPS(expression, operands, count)           \
  static_assert([] {                               \
    pt::builder b;                                 \
    static_cast<void>(expression);                 \
    return b.p.op_count() == (operands) + (count); \
  }())

SHAPE((pt::einsum<"ij,jk->ik">(in<4, 6>(b), in<6, 5>(b))), {4, 5});
SHAPE((pt::einsum<"ij,jk">(in<4, 6>(b), in<6, 5>(b))), {4, 5});
SHAPE((pt::einsum<"kj,ji">(in<4, 6>(b), in<6, 5>(b))), {5, 4});  // alphabetical: i, k
SHAPE((pt::einsum<" b q h d , b k h d -> b h q k ">(in<2, 3, 4, 5>(b), in<2, 6, 4, 5>(b))),
      {2, 4, 3, 6});
SHAPE((pt::einsum<"ij->ji">(in<4, 6>(b))), {6, 4});
SHAPE((pt::einsum<"ij->">(in<4, 6>(b))), {});
SHAPE((pt::einsum<"ij->j">(in<4, 6>(b))), {6});
SHAPE((pt::einsum<"i,j->ij">(in<4>(b), in<6>(b))), {4, 6});
SHAPE((pt::einsum<"i,i->">(in<4>(b), in<4>(b))), {});
SHAPE((pt::einsum<",i->i">(in<>(b), in<4>(b))), {4});
SHAPE((pt::einsum<"ij,jk,kl->il">(in<2, 3>(b), in<3, 4>(b), in<4, 5>(b))), {2, 5});
SHAPE((pt::einsum<"ij,j,jk->k">(in<2, 3>(b), in<3>(b), in<3, 4>(b))), {4});
SHAPE((pt::einsum<"aB,Bc">(in<2, 3>(b), in<3, 4>(b))), {2, 4});
SHAPE((pt::einsum<"...ij,...jk->...ik">(in<7, 2, 4, 6>(b), in<7, 2, 6, 5>(b))), {7, 2, 4, 5});
SHAPE((pt::einsum<"...i,ij">(in<7, 2, 4>(b), in<4, 6>(b))), {7, 2, 6});
SHAPE((pt::einsum<"...i->i...">(in<7, 2, 4>(b))), {4, 7, 2});
SHAPE((pt::einsum<"i...->...">(in<7, 2, 4>(b))), {2, 4});
static_assert(decltype(pt::einsum<"ij,jk->ik">(pt::tensor<float, pt::dyn, 6>(),
                                               pt::tensor<float, 6, 5>()))::static_type.shape ==
              pt::shape{pt::dyn, 5});

// A matrix product is one op; a transposed result takes another one.
OPS((pt::einsum<"ij,jk->ik">(in<4, 6>(b), in<6, 5>(b))), 2, 1);
OPS((pt::einsum<"ij,jk->ki">(in<4, 6>(b), in<6, 5>(b))), 2, 2);
OPS((pt::einsum<"bqhd,bkhd->bhqk">(in<2, 3, 4, 5>(b), in<2, 6, 4, 5>(b))), 2, 1);
OPS((pt::einsum<"ij->ij">(in<4, 6>(b))), 1, 0);
// Letters that occur in only one operand are summed before the product.
OPS((pt::einsum<"ij,k->k">(in<4, 6>(b), in<5>(b))), 2, 2);

// Reductions, windows and convolutions by types.
SHAPE((pt::prod<0>(in<4, 6>(b))), {6});
SHAPE((pt::sum<0, 2>(in<4, 6, 5>(b))), {6});
SHAPE((pt::all(in<4, 6>(b) < in<4, 6>(b))), {});
SHAPE((pt::any<1>(in<4, 6>(b) < in<4, 6>(b))), {4});
SHAPE((pt::cumsum<1>(in<4, 6>(b))), {4, 6});
SHAPE((pt::cumsum<0, pt::cumsum_options{.reverse = true, .exclusive = true}>(in<4, 6>(b))), {4, 6});
SHAPE((pt::conv(in<2, 9, 3>(b), in<4, 3, 7>(b))), {2, 6, 7});
SHAPE((pt::conv<pt::conv_options{.strides = {2, 2}, .padding = pt::same_padding}>(
          in<2, 9, 8, 3>(b), in<3, 3, 3, 7>(b))),
      {2, 5, 4, 7});
SHAPE((pt::conv<pt::conv_options{.dilation = {2, 1},
                                 .padding = pt::explicit_padding({1, 0}, {0, -1})}>(
          in<2, 9, 8, 3>(b), in<3, 3, 3, 7>(b))),
      {2, 6, 5, 7});
SHAPE((pt::conv<pt::conv_options{.groups = 3, .channels_first = true}>(in<2, 6, 9, 8, 5>(b),
                                                                       in<9, 2, 1, 2, 3>(b))),
      {2, 9, 9, 7, 3});
SHAPE((pt::conv<pt::conv_options{.input_dilation = {2, 2},
                                 .padding = pt::explicit_padding({2, 2}, {2, 2})}>(
          in<2, 4, 4, 3>(b), in<3, 3, 3, 7>(b))),
      {2, 9, 9, 7});
SHAPE((pt::reduce_window<pt::combiner::max, pt::window{.size = {1, 2, 2}, .strides = {1, 2, 2}}>(
          in<4, 8, 6>(b))),
      {4, 4, 3});
SHAPE((pt::reduce_window<pt::combiner::add,
                         pt::window{.size = {1, 3}, .padding = pt::same_padding}>(in<4, 8>(b))),
      {4, 8});
SHAPE((pt::select_and_scatter<pt::ops::direction::ge, pt::window{.size = {2}, .strides = {2}}>(
          in<8>(b), in<4>(b))),
      {8});
