// The functions of op/vocabulary.hpp as a user calls them: lists of dimensions in braces.
#include <doctest/doctest.h>

#include <string>

#include <partita/partita.hpp>

namespace pt = partita;

namespace {

constexpr pt::tensor_type f32(const pt::shape& s) { return {pt::dtype::f32, s}; }

/// A structure that outlives the lists that it was made of.
constexpr pt::ops::gather_dimensions rows() {
  return {.offset_dims = {1, 2},
          .collapsed_slice_dims = {0},
          .start_index_map = {0},
          .index_vector_dim = 1};
}
constexpr bool braces_work() {
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f32({2, 3, 4}));
  const auto y = pt::ops::reduce(b, x, pt::combiner::add, {0, 1});
  const auto z = pt::ops::transpose(b, x, {0, 2, 1});
  const pt::ops::dot_dimensions d{{0}, {0}, {1, 2}, {2, 1}};
  const auto p = pt::ops::dot_general(b, x, z, d);
  const auto s = pt::ops::slice(b, x, {0, 1, 0}, {2, 3, 4});
  const auto w = pt::ops::broadcast_in_dim(b, y, {5, 4}, {1});
  const auto i = pt::ops::literal(b, {pt::dtype::i32, {2}}, {0, 1});
  const auto g = pt::ops::gather(b, x, i, rows(), {1, 3, 4});
  const auto c = pt::ops::concatenate(b, {x, x}, 1);
  return !b.failed() && b.type(y) == f32({4}) && b.type(p) == f32({2}) &&
         b.type(s) == f32({2, 2, 4}) && b.type(w) == f32({5, 4}) && b.type(g) == f32({2, 3, 4}) &&
         b.type(c) == f32({2, 6, 4}) && b.p.attrs(b.p.producer(i))[1] == 1;
}
static_assert(braces_work());

}  // namespace

TEST_CASE("lists of dimensions are written in braces") {
  CHECK(braces_work());
  pt::builder b;
  const auto x = pt::ops::parameter(b, "x", f32({2, 3}));
  // More dimensions than a tensor can have.
  const pt::ops::dot_dimensions many{
      {}, {}, {0, 1, 0, 1, 0, 1, 0, 1, 0}, {0, 1, 0, 1, 0, 1, 0, 1, 0}};
  CHECK(pt::ops::dot_general(b, x, x, many) == -1);
  CHECK(std::string(b.p.error.message.view()).starts_with("S106 dot_general: "));
}
