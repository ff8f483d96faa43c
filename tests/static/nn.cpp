// Shapes of the building blocks of networks, at compile time.
#include <partita/partita.hpp>

#include <concepts>
#include <utility>

namespace pt = partita;
namespace nn = partita::nn;
using pt::dyn;

template <class T, std::int64_t... E>
using t = pt::tensor<T, E...>;
template <class T>
const T& of();

#define TYPE_OF(expression, ...) \
  static_assert(std::same_as<std::remove_cvref_t<decltype(expression)>, __VA_ARGS__>)

TYPE_OF(nn::linear(of<t<float, 2, dyn, 4>>(), of<t<float, 4, 6>>()), t<float, 2, dyn, 6>);
TYPE_OF(nn::linear(of<t<float, 2, 3, 4>>(), of<t<float, 4, 6>>(), of<t<float, 6>>()),
        t<float, 2, 3, 6>);
TYPE_OF(nn::embedding(of<t<float, 100, 8>>(), of<t<int, 4, dyn>>()), t<float, 4, dyn, 8>);
TYPE_OF(nn::relu(of<t<float, dyn, 4>>()), t<float, dyn, 4>);
TYPE_OF(nn::silu(of<t<pt::bf16, 4>>()), t<pt::bf16, 4>);
TYPE_OF(nn::sigmoid(of<t<pt::f16, 4>>()), t<pt::f16, 4>);
TYPE_OF(nn::gelu(of<t<float, 4, dyn>>()), t<float, 4, dyn>);
TYPE_OF(nn::gelu_erf(of<t<float, 4, dyn>>()), t<float, 4, dyn>);
TYPE_OF(nn::softmax(of<t<float, 3, dyn, 4>>()), t<float, 3, dyn, 4>);
TYPE_OF(nn::log_softmax(of<t<double, 3, dyn>>()), t<double, 3, dyn>);
TYPE_OF(nn::log_sum_exp(of<t<float, 3, dyn, 4>>()), t<float, 3, dyn>);

TYPE_OF(nn::layer_norm(of<t<float, dyn, 4>>(), of<t<float, 4>>(), of<t<float, 4>>()),
        t<float, dyn, 4>);
TYPE_OF(nn::rms_norm(of<t<float, 2, 3, dyn>>(), of<t<float, dyn>>()), t<float, 2, 3, dyn>);
TYPE_OF(nn::group_norm<2>(of<t<float, 5, dyn, 7, 4>>(), of<t<float, 4>>(), of<t<float, 4>>()),
        t<float, 5, dyn, 7, 4>);
TYPE_OF(nn::group_norm<3>(of<t<float, 5, dyn>>(), of<t<float, dyn>>(), of<t<float, dyn>>()),
        t<float, 5, dyn>);

using nn::rotary_pairs;
TYPE_OF(nn::rotary<rotary_pairs::halves>(of<t<float, 2, dyn, 3, 8>>(), 0), t<float, 2, dyn, 3, 8>);
TYPE_OF(nn::rotary<rotary_pairs::interleaved>(of<t<pt::bf16, 2, 5, 3, 8>>(), of<t<int>>()),
        t<pt::bf16, 2, 5, 3, 8>);
TYPE_OF(nn::rotary<rotary_pairs::interleaved>(of<t<float, 2, 5, 3, dyn>>(), of<t<int, 2, 5>>()),
        t<float, 2, 5, 3, dyn>);
TYPE_OF(nn::rotary<rotary_pairs::halves>(of<t<float, 5, 3, dyn>>(), of<t<std::int64_t, 5>>()),
        t<float, 5, 3, dyn>);

// Heads: as many keys as queries, groups, one key head, extents known when tracing.
TYPE_OF(nn::attention(of<t<float, 2, 5, 4, 8>>(), of<t<float, 2, 7, 4, 8>>(),
                      of<t<float, 2, 7, 4, 6>>()),
        t<float, 2, 5, 4, 6>);
TYPE_OF(nn::attention(of<t<float, 2, 5, 4, 8>>(), of<t<float, 2, dyn, 2, 8>>(),
                      of<t<float, 2, dyn, 2, 6>>(), {.causal = true}),
        t<float, 2, 5, 4, 6>);
TYPE_OF(nn::attention(of<t<pt::f16, 2, dyn, 4, 8>>(), of<t<pt::f16, 2, 7, 1, 8>>(),
                      of<t<pt::f16, 2, 7, 1, 6>>(), of<t<bool, dyn, 7>>()),
        t<pt::f16, 2, dyn, 4, 6>);
TYPE_OF(nn::attention(of<t<float, dyn, 5, dyn, 8>>(), of<t<float, dyn, 7, dyn, 8>>(),
                      of<t<float, dyn, 7, dyn, 6>>(), of<t<bool, dyn, dyn, 5, 7>>()),
        t<float, dyn, 5, dyn, 6>);
TYPE_OF(nn::causal_attention(of<t<float, 2, 5, dyn, 8>>(), of<t<float, 2, 5, dyn, 8>>(),
                             of<t<float, 2, 5, dyn, 8>>()),
        t<float, 2, dyn, 5, 8>);
using cache = nn::kv_cache<t<float, 2, 16, 2, 8>, t<float, 2, 16, 2, 6>>;
TYPE_OF(nn::append(of<cache>(), of<t<float, 2, 1, 2, 8>>(), of<t<float, 2, 1, 2, 6>>(),
                   of<t<int>>()),
        cache);
TYPE_OF(nn::append(of<cache>(), of<t<float, 2, dyn, 2, 8>>(), of<t<float, 2, dyn, 2, 6>>(), 0),
        cache);
TYPE_OF(nn::attend(of<t<float, 2, 1, 4, 8>>(), of<cache>(), of<t<int>>()), t<float, 2, 1, 4, 6>);

TYPE_OF(nn::conv(of<t<float, 2, 9, 3>>(), of<t<float, 3, 3, 5>>(), of<t<float, 5>>()),
        t<float, 2, 7, 5>);
TYPE_OF((nn::conv<pt::conv_options{.strides = {2, 2}, .padding = pt::same_padding, .groups = 3}>(
            of<t<float, 2, 9, dyn, 3>>(), of<t<float, 3, 3, 1, 6>>(), of<t<float, 6>>())),
        t<float, 2, 5, dyn, 6>);
TYPE_OF((nn::conv<pt::conv_options{.dilation = {2, 1, 1}, .channels_first = true}>(
            of<t<float, 2, 3, 9, 8, 7>>(), of<t<float, 5, 3, 3, 3, 3>>(), of<t<float, 5>>())),
        t<float, 2, 5, 5, 6, 5>);
TYPE_OF(nn::max_pool<nn::pool_options{.size = {3}}>(of<t<float, 2, 9, 3>>()), t<float, 2, 7, 3>);
TYPE_OF(
    (nn::max_pool<nn::pool_options{.size = {2, 2}, .strides = {2, 2}}>(of<t<int, 2, 9, 8, 3>>())),
    t<int, 2, 4, 4, 3>);
TYPE_OF((nn::avg_pool<nn::pool_options{.size = {3, 3, 3}, .padding = pt::same_padding}>(
            of<t<float, dyn, 9, 8, 7, 3>>())),
        t<float, dyn, 9, 8, 7, 3>);

TYPE_OF(nn::dropout(of<t<float, 4, dyn>>(), of<t<std::int64_t>>(), 0.5), t<float, 4, dyn>);
TYPE_OF(nn::cross_entropy(of<t<float, 2, dyn, 9>>(), of<t<int, 2, dyn>>()), t<float>);
TYPE_OF(nn::binary_cross_entropy(of<t<float, 2, dyn>>(), of<t<float, 2, dyn>>()), t<float>);
TYPE_OF(nn::mean_squared_error(of<t<double, 2, dyn>>(), of<t<double, 2, dyn>>()), t<double>);

// One mistake is one error: ops accept the invalid result and return it again.
constexpr pt::invalid_tensor bad;
TYPE_OF(nn::linear(bad, of<t<float, 4, 6>>(), of<t<float, 6>>()), pt::invalid_tensor);
TYPE_OF(nn::attention(bad, of<t<float, 2, 7, 4, 8>>(), of<t<float, 2, 7, 4, 8>>()),
        pt::invalid_tensor);
TYPE_OF(nn::attention(of<t<float, 2, 7, 4, 8>>(), of<t<float, 2, 7, 2, 8>>(),
                      of<t<float, 2, 7, 2, 8>>(), bad),
        pt::invalid_tensor);
TYPE_OF(nn::group_norm<2>(bad, of<t<float, 4>>(), of<t<float, 4>>()), pt::invalid_tensor);
TYPE_OF(nn::rotary<rotary_pairs::halves>(bad, 0), pt::invalid_tensor);
TYPE_OF(nn::rotary<rotary_pairs::halves>(of<t<float, 5, 3, 8>>(), bad), pt::invalid_tensor);
TYPE_OF(nn::avg_pool<nn::pool_options{.size = {3}}>(bad), pt::invalid_tensor);
TYPE_OF(nn::conv(bad, of<t<float, 3, 3, 5>>(), of<t<float, 5>>()), pt::invalid_tensor);
TYPE_OF(nn::cross_entropy(of<t<float, 2, 9>>(), bad), pt::invalid_tensor);

// The constants of initial values.
static_assert(nn::fans_of({3, 5, 16, 7}).in == 240 && nn::fans_of({3, 5, 16, 7}).out == 105);
static_assert(nn::fans_of({16, 7}).in == 16 && nn::fans_of({16}).in == 16);
static_assert(nn::lecun_normal({16, 7}).spread == 0.25);
static_assert(nn::glorot_normal({20, 12}).spread == 0.25 && nn::he_normal({32, 1}).spread == 0.25);
static_assert(nn::he_uniform({24, 1}).spread == 0.5 && nn::glorot_uniform({20, 4}).spread == 0.5);
static_assert(nn::lecun_uniform({12, 1}).spread == 0.5 && nn::lecun_uniform({12, 1}).mean == 0);
