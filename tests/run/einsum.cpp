// einsum, conv and the other functions of typed tensors compared with loops over indices.
#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include "../data.hpp"

namespace pt = partita;

namespace {

using position = std::vector<std::int64_t>;

void for_each(const pt::shape& s, auto f) {
  position at(static_cast<std::size_t>(s.rank), 0);
  for (std::int64_t n = 0; n < s.elements(); ++n) {
    f(at);
    for (int d = s.rank; d-- > 0 && ++at[static_cast<std::size_t>(d)] == s[d];)
      at[static_cast<std::size_t>(d)] = 0;
  }
}
double& element(std::vector<double>& values, const pt::shape& s, const position& at) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s[d] + at[static_cast<std::size_t>(d)];
  return values[static_cast<std::size_t>(n)];
}
std::vector<double> elements(const pt::array& a) {
  const pt::array wide = pt::as_type(a, pt::dtype::f64);
  return {wide.data<double>(), wide.data<double>() + wide.size()};
}

/// Runs an einsum whose formula has no spaces, dots or implicit output, and compares it with the
/// sum over all its letters.
void check_einsum(const std::string& formula, std::vector<pt::shape> shapes) {
  CAPTURE(formula);
  pt::builder b;
  std::vector<pt::value_id> operands;
  std::vector<pt::array> arrays;
  std::vector<std::vector<double>> values;
  data::random r{4};
  for (const auto& s : shapes) {
    const pt::tensor_type t{pt::dtype::f64, s};
    operands.push_back(
        pt::ops::parameter(b, std::string(1, static_cast<char>('a' + values.size())), t));
    arrays.push_back(data::integers(t, r));
    values.push_back(elements(arrays.back()));
  }
  const auto y = pt::dsl_detail::emit_einsum(b, formula, operands);
  REQUIRE_MESSAGE(y >= 0, data::str(b.p.error.message));
  b.p.outputs.push_back({y, b.p.intern("y")});
  const pt::array got = pt::evaluate(b.p, arrays).only();

  std::vector<std::string> terms(1);
  for (char c : formula.substr(0, formula.find("->")))
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  const std::string output = formula.substr(formula.find("->") + 2);
  std::map<char, std::int64_t> extents;
  for (std::size_t i = 0; i < terms.size(); ++i)
    for (std::size_t d = 0; d < terms[i].size(); ++d)
      extents[terms[i][d]] = shapes[i][static_cast<int>(d)];
  pt::shape all, to;
  std::string letters;
  for (const auto& [letter, extent] : extents) letters += letter, all.push_back(extent);
  for (char c : output) to.push_back(extents[c]);
  REQUIRE(got.shape() == to);
  std::vector<double> want(static_cast<std::size_t>(to.elements()), 0);
  for_each(all, [&](const position& at) {
    const auto of = [&](const std::string& term) {
      position p;
      for (char c : term) p.push_back(at[letters.find(c)]);
      return p;
    };
    double product = 1;
    for (std::size_t i = 0; i < terms.size(); ++i)
      product *= element(values[i], shapes[i], of(terms[i]));
    element(want, to, of(output)) += product;
  });
  CHECK(elements(got) == want);
}

pt::array run(auto model, auto... inputs) {
  const auto p = pt::trace(model, inputs...);
  return pt::evaluate(p, data::arguments(p)).only();
}

}  // namespace

TEST_CASE("einsum sums the products over all letters that are not in the output") {
  check_einsum("ij,jk->ik", {{4, 6}, {6, 5}});
  check_einsum("ij,jk->ki", {{4, 6}, {6, 5}});
  check_einsum("bqhd,bkhd->bhqk", {{2, 3, 4, 5}, {2, 6, 4, 5}});
  check_einsum("bhqk,bkhd->bqhd", {{2, 4, 3, 6}, {2, 6, 4, 5}});
  check_einsum("ij,ij->ij", {{4, 6}, {4, 6}});
  check_einsum("ij,ji->", {{4, 6}, {6, 4}});
  check_einsum("ijk->ki", {{4, 6, 5}});
  check_einsum("ijk->", {{4, 6, 5}});
  check_einsum("i,j,k->kij", {{4}, {6}, {5}});
  check_einsum("ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 5}});
  check_einsum("ij,jk,kj->i", {{2, 3}, {3, 4}, {4, 3}});
  check_einsum("ia,ja,ka->ijk", {{2, 3}, {4, 3}, {5, 3}});
  check_einsum("ab,cd->c", {{2, 3}, {4, 5}});
  check_einsum(",i->i", {{}, {4}});
  check_einsum("i,i->i", {{0}, {0}});
  check_einsum("ij,jk->ik", {{2, 0}, {0, 3}});
  check_einsum("abcdefgh->hgfedcba", {{1, 2, 1, 2, 1, 2, 1, 2}});
}

TEST_CASE("einsum: dots, spaces and the implicit output are read") {
  const auto x = pt::input<float, 2, 3, 4>("x");
  const auto y = pt::input<float, 4, 5>("y");
  CHECK(pt::equal(run([](auto a, auto b) { return pt::einsum<" ... i , i j ">(a, b); }, x, y),
                  run([](auto a, auto b) { return pt::matmul(a, b); }, x, y)));
  CHECK(pt::equal(run([](auto a) { return pt::einsum<"...ij->...ji">(a); }, x),
                  run([](auto a) { return pt::transpose<0, 2, 1>(a); }, x)));
  CHECK(pt::equal(run([](auto a) { return pt::einsum<"cab">(a); }, x),
                  run([](auto a) { return pt::transpose<1, 2, 0>(a); }, x)));
  CHECK(pt::equal(run([](auto a) { return pt::einsum<"i...->...">(a); }, x),
                  run([](auto a) { return pt::sum<0>(a); }, x)));
}

TEST_CASE("einsum refuses a formula that does not match its operands") {
  const auto refused = [](std::string_view formula, std::vector<pt::shape> shapes) {
    pt::builder b;
    std::vector<pt::value_id> operands;
    for (const auto& s : shapes)
      operands.push_back(
          pt::ops::parameter(b, std::to_string(operands.size()), {pt::dtype::f32, s}));
    CHECK(pt::dsl_detail::emit_einsum(b, formula, operands) == -1);
    return data::str(b.p.error.message);
  };
  CHECK(refused("ij->ij", {{4, 6}, {6}}) ==
        "S160 einsum: \"ij->ij\": it has 1 terms for 2 operands");
  CHECK(refused("i1->i", {{4, 6}}) == "S160 einsum: \"i1->i\": '1' is not a letter");
  CHECK(refused("i.->i", {{4, 6}}) == "S160 einsum: \"i.->i\": '.' is not a letter");
  CHECK(refused("......->", {{4, 6}}) == "S160 einsum: \"......->\": '.' is not a letter");
  CHECK(refused("ij->i->j", {{4, 6}}) == "S160 einsum: \"ij->i->j\": '-' is not a letter");
  CHECK(refused("ii->i", {{4, 4}}) ==
        "S161 einsum: \"ii->i\": letter 'i' is repeated in operand 0; diagonals are not supported");
  CHECK(refused("ij->ii", {{4, 4}}) == "S161 einsum: \"ij->ii\": output letter 'i' is repeated");
  CHECK(refused("ij->k", {{4, 4}}) ==
        "S162 einsum: \"ij->k\": output letter 'k' is not in the operands");
  CHECK(refused("i->i", {{4, 6}}) ==
        "S163 einsum: \"i->i\": operand 0 has 1 letters and type tensor<4x6xf32> of rank 2");
  CHECK(refused("...ijk->i", {{4, 6}}) ==
        "S163 einsum: \"...ijk->i\": operand 0 has 3 letters and type tensor<4x6xf32> of rank 2");
  CHECK(refused("...i,...i->...", {{4, 6}, {5, 6}}) ==
        "S164 einsum: \"...i,...i->...\": a dimension of \"...\" has size 4 in operand 0 and 5 in "
        "operand 1");
}

TEST_CASE("conv: the usual layouts, padding and groups") {
  const auto x = pt::input<float, 2, 7, 6, 4>("x");
  const auto w = pt::input<float, 3, 2, 4, 5>("w");
  // channels_first is the same convolution on transposed operands.
  CHECK(pt::equal(
      run(
          [](auto a, auto b) {
            return pt::conv<pt::conv_options{.strides = {2, 1}, .padding = pt::same_padding}>(a, b);
          },
          x, w),
      run(
          [](auto a, auto b) {
            return pt::transpose<0, 2, 3, 1>(
                pt::conv<pt::conv_options{.strides = {2, 1},
                                          .padding = pt::explicit_padding({1, 0}, {1, 1}),
                                          .channels_first = true}>(pt::transpose<0, 3, 1, 2>(a),
                                                                   pt::transpose<3, 2, 0, 1>(b)));
          },
          x, w)));
  // Groups are convolutions of slices.
  const auto half = pt::input<float, 3, 2, 2, 6>("w");
  CHECK(pt::equal(
      run([](auto a, auto b) { return pt::conv<pt::conv_options{.groups = 2}>(a, b); }, x, half),
      run(
          [](auto a, auto b) {
            return pt::concatenate<3>(pt::conv(pt::slice<3, 0, 2>(a), pt::slice<3, 0, 3>(b)),
                                      pt::conv(pt::slice<3, 2, 4>(a), pt::slice<3, 3, 6>(b)));
          },
          x, half)));
  CHECK_THROWS_WITH_AS(
      run([](auto a, auto b) { return pt::conv<pt::conv_options{.groups = 3}>(a, b); },
          pt::input<float, pt::dyn, 7, 6, pt::dyn>("x", 2, 4), half),
      "S157 convolution: 4 features of lhs tensor<2x7x6x4xf32> are not 3 groups of 2 input "
      "features "
      "of rhs tensor<3x2x2x6xf32>",
      pt::error);
}

TEST_CASE("windows and reductions of typed tensors equal loops over indices") {
  const auto x = pt::input<float, 4, 6>("x");
  CHECK(pt::equal(run(
                      [](auto a) {
                        return pt::reduce_window<pt::combiner::max,
                                                 pt::window{.size = {2, 3}, .strides = {2, 3}}>(a);
                      },
                      x),
                  run([](auto a) { return pt::reduce_max<1, 3>(pt::reshape<2, 2, 2, 3>(a)); }, x)));
  CHECK(pt::equal(
      run([](auto a) { return pt::cumsum<1, pt::cumsum_options{.reverse = true}>(a); }, x),
      run(
          [](auto a) {
            return keep_last(pt::sum<1>(a)) -
                   pt::cumsum<1, pt::cumsum_options{.exclusive = true}>(a);
          },
          x)));
  CHECK(pt::equal(run([](auto a) { return pt::prod<0>(a); }, x),
                  run(
                      [](auto a) {
                        return pt::reshape<6>(pt::slice<0, 0, 1>(a) * pt::slice<0, 1, 2>(a) *
                                              pt::slice<0, 2, 3>(a) * pt::slice<0, 3, 4>(a));
                      },
                      x)));
  CHECK(run([](auto a) { return pt::all(a < 3); }, x).template item<bool>());
  CHECK(!run([](auto a) { return pt::any(a > 2); }, x).template item<bool>());
}
