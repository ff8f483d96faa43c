/// A graph network over a batch of small graphs (molecules), each with its own edges: nodes of the
/// same graph are gathered along the edges, and messages are added up where they arrive.
///
/// Source    Gilmer et al. (neural message passing), arXiv:1704.01212
#pragma once

#include <cstdint>

#include "step.hpp"

namespace small::molecules {

constexpr std::int64_t graphs = 8, nodes = 6, edges = 10, features = 4, width = 8;
constexpr int rounds = 2;

struct parameters {
  using matrix = pt::tensor<float, 2 * width, width>;
  using embedding = pt::tensor<float, features, width>;
  using readout = pt::tensor<float, width>;
  BOOST_HANA_DEFINE_STRUCT(parameters, (embedding, in), (matrix, message), (matrix, update),
                           (readout, out));
};
/// Gathers nodes of each graph: (g, nodes, w) at (g, edges) -> (g, edges, w).
constexpr auto at_edges = [](const auto& nodes_of, const auto& ends) {
  using numbers =
      pt::gather_numbers<pt::axes<2>, pt::axes<1>, pt::axes<0>, pt::axes<0>, pt::axes<1>, 2>;
  return pt::gather<numbers, pt::axes<1, 1, width>>(nodes_of, ends);
};
/// Adds messages to the nodes of each graph: (g, edges, w) at (g, edges) -> (g, nodes, w).
constexpr auto at_nodes = [](const auto& zeros, const auto& ends, const auto& messages) {
  using numbers =
      pt::gather_numbers<pt::axes<2>, pt::axes<1>, pt::axes<0>, pt::axes<0>, pt::axes<1>, 2>;
  return pt::scatter<pt::ops::scatter_update::add, numbers>(zeros, ends, messages);
};
constexpr auto loss = [](const parameters& p, const auto& atoms, const auto& senders,
                         const auto& receivers, const auto& energy) {
  auto h = pt::nn::relu(matmul(atoms, p.in));
  for (int r = 0; r < rounds; ++r) {
    const auto sent = pt::nn::relu(
        matmul(pt::concatenate<2>(at_edges(h, senders), at_edges(h, receivers)), p.message));
    const auto received = at_nodes(h * 0.0f, receivers, sent);
    h = h + pt::nn::relu(matmul(pt::concatenate<2>(h, received), p.update));
  }
  return pt::nn::mean_squared_error(pt::einsum<"gnw,w->g">(h, p.out), energy);
};
constexpr auto with_batch = [](const auto& traced) {
  return traced(loss, pt::input<float, graphs, nodes, features>("atoms"),
                pt::input<std::int32_t, graphs, edges>("senders"),
                pt::input<std::int32_t, graphs, edges>("receivers"),
                pt::input<float, graphs>("energy"));
};
constexpr auto traced = [] {
  return with_batch([](const auto&... x) { return trace_step<parameters>(x...); });
};
constexpr auto gradients = [] {
  return with_batch([](const auto&... x) { return trace_gradients<parameters>(x...); });
};

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP =
    pt::manual("B", {{"atoms", 0}, {"senders", 0}, {"receivers", 0}, {"energy", 0}}, "BP");
/// Shards the edges of each graph: messages are added up over devices where they arrive.
constexpr auto EP = pt::manual("M", {{"senders", 1}, {"receivers", 1}}, "EP");

}  // namespace small::molecules
