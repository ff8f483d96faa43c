/// Layers of a GPT model as Korthikanti et al. count the memory for the backward pass: 16-bit
/// numbers, and one byte per element of a dropout mask. Norms, GELU and softmax keep their
/// operands.
///
/// Source    Korthikanti et al., arXiv:2205.05198, section 4
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <partita/cost/memory.hpp>
#include <partita/partita.hpp>

namespace megatron {

namespace pt = partita;

using half1 = pt::tensor<pt::bf16, pt::dyn>;
using half2 = pt::tensor<pt::bf16, pt::dyn, pt::dyn>;
using half3 = pt::tensor<pt::bf16, pt::dyn, pt::dyn, pt::dyn>;
using half4 = pt::tensor<pt::bf16, pt::dyn, pt::dyn, pt::dyn, pt::dyn>;

struct block {
  BOOST_HANA_DEFINE_STRUCT(block, (half1, scale1), (half1, bias1), (half4, qkv), (half3, out),
                           (half1, scale2), (half1, bias2), (half2, up), (half1, up_bias),
                           (half2, down), (half1, down_bias));
};
struct blocks {
  BOOST_HANA_DEFINE_STRUCT(blocks, (std::vector<block>, layers));
};
struct sizes {
  std::int64_t layers, sequence, batch, width, heads;
};
constexpr blocks blocks_of(const sizes& z) {
  const std::int64_t h = z.width;
  const block one{half1(h),
                  half1(h),
                  half4(h, 3, z.heads, h / z.heads),
                  half3(z.heads, h / z.heads, h),
                  half1(h),
                  half1(h),
                  half2(h, 4 * h),
                  half1(4 * h),
                  half2(4 * h, h),
                  half1(h)};
  return {std::vector<block>(static_cast<std::size_t>(z.layers), one)};
}

/// Dropout whose masks are stored; each mask has its own random key.
class dropout {
 public:
  constexpr auto operator()(const auto& x) {
    const auto mask = pt::bernoulli(pt::random_key(x, next_++), 0.9, x);
    return select(pt::optimization_barrier(mask), x * (1 / 0.9), 0);
  }

 private:
  std::int64_t next_ = 1;
};
constexpr auto norm = [](const auto& x, const auto& scale, const auto& bias) {
  const auto f = [](const auto& y, const auto& s, const auto& b) {
    return pt::nn::layer_norm(y, s, b);
  };
  return pt::call("norm", f, x, scale, bias);
};

/// (batch, sequence, width) -> the same. The tags "core.N.scores" and "core.N.weights" name the
/// first and last value of the attention core; "residual.N..." names values between the parallel
/// parts.
constexpr auto layer = [](const block& p, const auto& x, dropout& drop, const std::string& number) {
  const auto core = [&](const char* name, const auto& v) {
    return pt::tag("core." + number + name, v);
  };
  const auto residual = [&](const char* name, const auto& v) {
    return pt::tag("residual." + number + name, v);
  };
  const auto y = residual(".norm1", norm(x, p.scale1, p.bias1));
  const auto all = pt::einsum<"bsd,dchk->cbshk">(y, p.qkv);
  const auto q = pt::squeeze<0>(pt::slice<0, 0, 1>(all)),
             k = pt::squeeze<0>(pt::slice<0, 1, 2>(all)),
             v = pt::squeeze<0>(pt::slice<0, 2, 3>(all));
  const auto scores = core(".scores", pt::einsum<"bqhk,bshk->bhqs">(q, k)) * 0.125;
  const auto soft = pt::call(
      "softmax", [](const auto& z) { return pt::nn::softmax(z); }, scores);
  const auto weights = core(".weights", drop(soft));
  const auto attended = pt::einsum<"bhqs,bshk->bqhk">(weights, v);
  const auto out = residual(".attended", pt::einsum<"bqhk,hkd->bqd">(attended, p.out));
  const auto h = residual(".middle", x + drop(out));
  const auto z = residual(".norm2", norm(h, p.scale2, p.bias2));
  const auto up = matmul(z, p.up) + p.up_bias;
  const auto hidden = pt::call(
      "gelu", [](const auto& g) { return pt::nn::gelu(g); }, up);
  const auto down = residual(".down", matmul(hidden, p.down) + p.down_bias);
  return residual(".end", h + drop(down));
};

/// Traces the gradients of the sum of the last layer's result: inputs params, x; output gradients.
constexpr pt::program trace_gradients(const sizes& s) {
  const auto model = [](const auto& params, const auto& x) {
    const auto loss = [&](const auto& p) {
      auto v = pt::tag("residual.begin", x * 2);  // in place of the embedding's result
      dropout drop;
      for (std::size_t i = 0; i < p.layers.size(); ++i)
        v = layer(p.layers[i], v, drop, std::to_string(i));
      return sum(pt::convert<float>(v));
    };
    return pt::output("gradients", pt::grad(loss, params));
  };
  return pt::trace(model, pt::input("params", blocks_of(s)),
                   pt::input("x", half3(s.batch, s.sequence, s.width)));
}

/// Placements of tensor parallelism (TP). SP is sequence parallelism; `selective` and `full` select
/// the values that are recomputed.
constexpr auto megatron_placement = [](std::string_view name, const pt::shape&) -> pt::placement {
  if (name.ends_with(".qkv")) return 2;
  if (name.ends_with(".up")) return 1;
  return pt::unknown;
};
constexpr auto TP = pt::manual("M", {{"params", megatron_placement}}, "TP");
constexpr auto SP = pt::manual("M", {{"residual", 1}}, "SP");
constexpr auto selective = pt::remat({"core"}, "selective");
constexpr auto full = pt::remat({"params.layers"}, "full");

/// Returns the bytes that one layer keeps for its derivative on one of `tensor` devices.
template <class... Tactics>
std::int64_t bytes_of_layer(sizes s, std::int64_t tensor, const Tactics&... tactics) {
  const auto kept = [&](std::int64_t layers) {
    s.layers = layers;
    const auto p =
        pt::partition(trace_gradients(s), pt::mesh{{"M", tensor}}, pt::schedule(tactics...));
    return pt::kept_for_derivatives(p.device.local);
  };
  return kept(3) - kept(2);
}

}  // namespace megatron
