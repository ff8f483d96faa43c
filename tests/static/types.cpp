// Element types, shapes, meshes and layouts; shape rules by types.
#include <partita/partita.hpp>

#include <concepts>

namespace pt = partita;

static_assert(pt::name_of(pt::dtype::bf16) == "bf16" && pt::name_of(pt::dtype::boolean) == "i1");
static_assert(pt::size_of(pt::dtype::f64) == 8 && pt::size_of(pt::dtype::u8) == 1);
static_assert(pt::is_floating(pt::dtype::f16) && !pt::is_floating(pt::dtype::i32));
static_assert(pt::is_integer(pt::dtype::u8) && !pt::is_integer(pt::dtype::boolean));
static_assert(pt::is_unsigned(pt::dtype::u64) && !pt::is_unsigned(pt::dtype::i8));
static_assert(!pt::is_unsigned(pt::dtype::boolean) && pt::is_integer(pt::dtype::i16));
static_assert(pt::dtype_of<std::int8_t> == pt::dtype::i8 && pt::size_of(pt::dtype::u16) == 2);
static_assert(pt::dtype_of<float> == pt::dtype::f32 && pt::dtype_of<bool> == pt::dtype::boolean);

// Rounding to nearest even, subnormals, overflow, NaN.
static_assert(float(pt::bf16(1.00390625f)) == 1.0f);       // half way, to even
static_assert(float(pt::bf16(1.01171875f)) == 1.015625f);  // half way, to even
static_assert(float(pt::bf16(3.0e38f)) > 2.9e38f);
static_assert(pt::f16(65504.0f).bits == 0x7bff && pt::f16(65520.0f).bits == 0x7c00);
static_assert(pt::f16(-2.0f).bits == 0xc000 && float(pt::f16(-2.0f)) == -2.0f);
static_assert(float(pt::f16(0x1p-24f)) == 0x1p-24f && pt::f16(0x1p-25f).bits == 0);
static_assert(float(pt::f16(2049.0f)) == 2048.0f && float(pt::f16(2051.0f)) == 2052.0f);
static_assert([] {
  const float nan = float(pt::f16(__builtin_nanf("")));
  const float nan2 = float(pt::bf16(__builtin_nanf("")));
  return nan != nan && nan2 != nan2;
}());

static_assert(pt::shape{2, 3}.elements() == 6 && pt::shape{}.elements() == 1);
static_assert(pt::shape{2, pt::dyn}.elements() == pt::dyn);
static_assert(pt::shape{2, 3} != pt::shape{3, 2} && pt::shape{2} != pt::shape{2, 1});
static_assert(pt::tensor_type{pt::dtype::bf16, {4, 2}}.bytes() == 16);
static_assert(pt::concat(pt::tensor_type{pt::dtype::f32, {64, pt::dyn}}) == "tensor<64x?xf32>");
static_assert(pt::concat(pt::shape{1, 2}) == "[1, 2]");
static_assert(pt::same_shape({2, pt::dyn}, {2, 3}) && !pt::same_shape({2}, {3}));

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
static_assert(mesh.devices() == 8 && mesh.find("M") == 1 && mesh.find("m") == -1);
static_assert(pt::concat(mesh) == "{\"B\":4, \"M\":2}");
static_assert(!pt::validate(mesh));

constexpr pt::layout by_both = [] {
  pt::layout l;
  l.push_back(1, 0);
  l.push_back(0, 0);
  return l;
}();
static_assert(by_both.pieces(mesh, 0) == 8 && by_both.pieces(mesh, 1) == 1);
static_assert(by_both.local({16, 3}, mesh) == pt::shape{2, 3});
static_assert(by_both.dim_of(1) == 0 && by_both.dim_of(2) == -1);
static_assert([] {
  pt::text out;
  pt::print_layout(out, by_both, 2, mesh);
  return out == "[{\"M\", \"B\"}, {}]";
}());
static_assert([] {  // the order counts within a dimension, not between dimensions
  pt::layout a, b, c, d;
  a.push_back(0, 0), a.push_back(1, 1);
  b.push_back(1, 1), b.push_back(0, 0);
  c.push_back(0, 0), c.push_back(1, 0);
  d.push_back(1, 0), d.push_back(0, 0);
  return a == b && !(c == d) && !(a == c);
}());

// Shape rules: the types of results. Each is an unevaluated expression on described inputs.
template <class T, std::int64_t... E>
using t = pt::tensor<T, E...>;
template <class T>
const T& of();
constexpr std::int64_t dyn = pt::dyn;
#define TYPE(...) static_assert(std::same_as<__VA_ARGS__>)

TYPE(decltype(matmul(of<t<float, 256, 8>>(), of<t<float, 8, 16>>())), t<float, 256, 16>);
TYPE(decltype(matmul(of<t<float, 2, dyn, 8>>(), of<t<float, 8, 16>>())), t<float, 2, dyn, 16>);
TYPE(decltype(matmul(of<t<float, dyn, 5, 8>>(), of<t<float, 3, 8, 16>>())), t<float, 3, 5, 16>);
TYPE(decltype(matmul(of<t<float, 5, dyn>>(), of<t<float, 8, 6>>())), t<float, 5, 6>);
TYPE(decltype(matmul(of<t<float, 8>>(), of<t<float, 8, 6>>())), t<float, 6>);
TYPE(decltype(matmul(of<t<float, 5, 8>>(), of<t<float, 8>>())), t<float, 5>);
TYPE(decltype(matmul(of<t<float, 2, dyn, 8>>(), of<t<float, dyn>>())), t<float, 2, dyn>);
TYPE(decltype(matmul(of<t<float, dyn>>(), of<t<float, 2, 8, 6>>())), t<float, 2, 6>);
TYPE(decltype(matmul(of<t<float, 8>>(), of<t<float, dyn>>())), t<float>);
TYPE(decltype(pt::dot_general<pt::axes<0>, pt::axes<1>, pt::axes<2>, pt::axes<0>>(
         of<t<double, 3, 4, 5>>(), of<t<double, 5, 3, 7>>())),
     t<double, 3, 4, 7>);
TYPE(decltype(of<t<float, 4, 1>>() + of<t<float, 6>>()), t<float, 4, 6>);
TYPE(decltype(of<t<float, 4, dyn>>() * of<t<float, 4, 6>>()), t<float, 4, 6>);
TYPE(decltype(of<t<float, dyn>>() - of<t<float, dyn>>()), t<float, dyn>);
TYPE(decltype(2 / of<t<float, 4>>()), t<float, 4>);
TYPE(decltype(of<t<float, 4>>() + of<t<float>>()), t<float, 4>);
TYPE(decltype(of<t<int, 4, 6>>() < of<t<int, 6>>()), t<bool, 4, 6>);
TYPE(decltype(equal(of<t<int, 4>>(), 3)), t<bool, 4>);
TYPE(decltype(select(of<t<bool, 4, 1>>(), of<t<float, 6>>(), 0)), t<float, 4, 6>);
TYPE(decltype(pt::convert<pt::bf16>(of<t<float, 4, dyn>>())), t<pt::bf16, 4, dyn>);
TYPE(decltype(pt::transpose<1, 0>(of<t<float, 4, 6>>())), t<float, 6, 4>);
TYPE(decltype(pt::reshape<4, 2, 6>(of<t<float, 4, 12>>())), t<float, 4, 2, 6>);
TYPE(decltype(pt::reshape(of<t<float, dyn, 12>>(), pt::extent<dyn>{}, pt::extent<3>{}, 4)),
     t<float, dyn, 3, dyn>);
TYPE(decltype(pt::sum<0>(of<t<float, 4, 6>>())), t<float, 6>);
TYPE(decltype(pt::sum(of<t<float, 4, dyn>>())), t<float>);
TYPE(decltype(pt::reduce_max<1, 2>(of<t<int, dyn, 4, 6>>())), t<int, dyn>);
TYPE(decltype(pt::mean<0>(of<t<float, 4, 6>>())), t<float, 6>);
TYPE(decltype(pt::keep_last(of<t<float, 4, dyn>>())), t<float, 4, dyn, 1>);
TYPE(decltype(pt::gather(of<t<float, 100, 8>>(), of<t<int, 4, dyn>>())), t<float, 4, dyn, 8>);
TYPE(decltype(pt::scatter_add(of<t<int, 4>>(), of<t<float, 4, 8>>(), pt::extent<10>{})),
     t<float, 10, 8>);
TYPE(decltype(pt::concatenate<0>(of<t<float, 4, 6>>(), of<t<float, 5, 6>>())), t<float, 9, 6>);
TYPE(decltype(pt::concatenate<0>(of<t<float, dyn, 6>>(), of<t<float, 5, dyn>>())),
     t<float, dyn, 6>);
TYPE(decltype(pt::slice<1, 2, 5>(of<t<float, 4, 6>>())), t<float, 4, 3>);
TYPE(decltype(pt::slice<0, 1, pt::ops::whole, 2>(of<t<float, 8, dyn>>())), t<float, 4, dyn>);
TYPE(decltype(pt::slice<1, 1, pt::ops::whole>(of<t<float, 8, dyn>>())), t<float, 8, dyn>);
TYPE(decltype(pt::slice<1, 2>(of<t<float, 4, 6>>())), t<float, 4, 4>);
TYPE(decltype(pt::slice<1, 2>(of<t<float, 4, dyn>>())), t<float, 4, dyn>);
TYPE(decltype(pt::slice<-1, 2>(of<t<float, dyn, 6>>())), t<float, dyn, 4>);
TYPE(decltype(pt::slice<0, 1, pt::to_end, 3>(of<t<float, 8>>())), t<float, 3>);
TYPE(decltype(pt::slice<pt::along<0, 1>, pt::along<-1, 1, 5, 2>>(of<t<float, 4, 3, 6>>())),
     t<float, 3, 3, 2>);
TYPE(decltype(pt::slice<pt::along<2, 0, 5>, pt::along<0, 2>>(of<t<float, dyn, dyn, 6>>())),
     t<float, dyn, dyn, 5>);
TYPE(decltype(pt::pad<pt::axes<1, 1>, pt::axes<0, 2>, pt::axes<2, 0>>(of<t<float, 4, dyn>>(), 0)),
     t<float, 11, dyn>);
TYPE(decltype(pt::dynamic_slice<pt::axes<2, -1>>(of<t<float, 4, dyn>>(), of<t<int>>(),
                                                 of<t<int>>())),
     t<float, 2, dyn>);
TYPE(decltype(pt::take<1>(of<t<float, dyn, 5, 6>>(), of<t<int, 7, dyn>>())),
     t<float, dyn, 7, dyn, 6>);
TYPE(decltype(pt::take_along_axis<-1>(of<t<float, dyn, 5>>(), of<t<int, dyn, 7>>())),
     t<float, dyn, 7>);
TYPE(decltype(pt::scatter_set(of<t<float, dyn, 5>>(), of<t<int, 3>>(), of<t<float, 3, 5>>())),
     t<float, dyn, 5>);
TYPE(decltype(pt::stack<1>(of<t<float, dyn, 5>>(), of<t<float, dyn, 5>>())), t<float, dyn, 2, 5>);
TYPE(std::remove_cvref_t<decltype(pt::split<2, 1>(of<t<float, dyn, 6>>())[0])>, t<float, dyn, 3>);
TYPE(std::remove_cvref_t<decltype(pt::split<2, 0>(of<t<float, dyn, 6>>())[0])>, t<float, dyn, 6>);
TYPE(decltype(pt::roll<1, 0>(of<t<float, dyn, 6>>())), t<float, dyn, 6>);
TYPE(decltype(pt::iota<int, 0>(of<t<float>>(), pt::extent<4>{}, 6)), t<int, 4, dyn>);
TYPE(decltype(pt::broadcast_in_dim<1>(of<t<float, 6>>(), pt::extent<4>{}, pt::extent<6>{})),
     t<float, 4, 6>);
TYPE(decltype(pt::tag("x", of<t<float, 4, 6>>())), t<float, 4, 6>);
TYPE(decltype(pt::nn::softmax(of<t<float, 4, dyn>>())), t<float, 4, dyn>);
TYPE(decltype(pt::nn::layer_norm(of<t<float, 2, 4>>(), of<t<float, 4>>(), of<t<float, 4>>())),
     t<float, 2, 4>);
TYPE(decltype(pt::nn::cross_entropy(of<t<float, 2, 4, 9>>(), of<t<int, 2, 4>>())), t<float>);
// One mistake is one error: ops accept the invalid result and return it again.
TYPE(decltype(exp(pt::invalid_tensor{}) + of<t<float, 4>>()), pt::invalid_tensor);
TYPE(decltype(pt::nn::gelu(matmul(pt::invalid_tensor{}, of<t<float, 4, 4>>()))),
     pt::invalid_tensor);
