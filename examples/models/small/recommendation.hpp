/// A recommendation model: rows of embedding tables, products of all pairs of them, a small MLP.
/// One table is too large for a device and sharded by rows, the other one by columns.
///
/// Source    Naumov et al. (DLRM), arXiv:1906.00091; the placement of tables: Ivchenko et al.
///           (TorchRec), RecSys 2022
#pragma once

#include <cstdint>

#include "step.hpp"

namespace small::recommendation {

struct sizes {
  std::int64_t batch, users, items, dense, width, hidden;
};
constexpr sizes tiny{8, 32, 16, 4, 8, 16}, large{8192, 10'000'000, 1'000'000, 16, 64, 256};

template <sizes S>
struct parameters_of {
  using user_table = pt::tensor<float, S.users, S.width>;
  using item_table = pt::tensor<float, S.items, S.width>;
  using bottom_matrix = pt::tensor<float, S.dense, S.width>;
  using top_matrix = pt::tensor<float, S.width + 3, S.hidden>;
  using last_vector = pt::tensor<float, S.hidden>;
  BOOST_HANA_DEFINE_STRUCT(parameters_of, (user_table, users), (item_table, items),
                           (bottom_matrix, bottom), (top_matrix, top), (last_vector, last));
};
using parameters = parameters_of<tiny>;

/// `clicks` are the targets, between 0 and 1.
constexpr auto loss = [](const auto& p, const auto& dense, const auto& user, const auto& item,
                         const auto& clicks) {
  const auto x = pt::nn::relu(matmul(dense, p.bottom));
  const auto u = pt::tag("user_rows", pt::gather(p.users, user));
  const auto i = pt::tag("item_rows", pt::gather(p.items, item));
  const auto dot = [](const auto& a, const auto& b) { return pt::keep_last(pt::sum<1>(a * b)); };
  const auto h =
      pt::nn::relu(matmul(pt::concatenate<1>(x, dot(x, u), dot(x, i), dot(u, i)), p.top));
  return pt::nn::mean_squared_error(pt::nn::sigmoid(pt::einsum<"bh,h->b">(h, p.last)), clicks);
};
template <sizes S>
constexpr auto with_batch_of = [](const auto& traced) {
  return traced(loss, pt::input<float, S.batch, S.dense>("dense"),
                pt::input<std::int32_t, S.batch>("user"), pt::input<std::int32_t, S.batch>("item"),
                pt::input<float, S.batch>("clicks"));
};
template <sizes S>
constexpr auto traced_of = [] {
  return with_batch_of<S>([](const auto&... x) { return trace_step<parameters_of<S>>(x...); });
};
constexpr auto with_batch = with_batch_of<tiny>;
constexpr auto traced = traced_of<tiny>;
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"D", 4}};
/// Each device has a block of the rows of one table, and of the columns of the other one. The rest
/// of the model is data parallel.
constexpr auto rows = pt::manual("D", {{"params.users", 0}}, "rows");
constexpr auto columns = pt::manual("D", {{"params.items", 1}}, "columns");
constexpr auto DP = pt::manual("D", {{"dense", 0}, {"user", 0}, {"item", 0}, {"clicks", 0}}, "DP");

}  // namespace small::recommendation
