// Rules that once said more than is true, each with a program that they would prove.
#include <doctest/doctest.h>

#include <string>

#include "does.hpp"

using proof_test::does;

TEST_CASE("overclaimed: of two parts of a sum that are equal when summed, a device has one") {
  const auto local = [](const std::string& chosen) {
    return "(%x: tensor<2xf32>)\n  %i = shard_start {1 <\"B\">} : tensor<i32>\n"
           "  %z = constant {0} : tensor<i32>\n  %f = compare(%i, %z) {eq} : tensor<i1>\n"
           "  %g = all_gather [{\"B\"}] %x : tensor<4xf32>\n"
           "  %m = reshape(%g) : tensor<2x2xf32>\n"
           "  %c = all_slice [{}, {\"B\"}] %m : tensor<2x1xf32>\n"
           "  %a = reduce(%x) {add, dims=[0]} : tensor<f32>\n"
           "  %b = reduce(%c) {add, dims=[0, 1]} : tensor<f32>\n"
           "  %s = select(%f, " +
           chosen +
           ") : tensor<f32>\n  %y = all_reduce <\"B\"> %s : tensor<f32>\n"
           "  return %y : tensor<f32>\n";
  };
  const std::string source =
      "(%x: tensor<4xf32>)\n  %y = reduce(%x) {add, dims=[0]} : tensor<f32>\n"
      "  return %y : tensor<f32>\n";
  CHECK(does(source, local("%a, %a"), "\"B\":2", "B"));
  CHECK_FALSE(does(source, local("%a, %b"), "\"B\":2", "B"));
}

TEST_CASE("overclaimed: what is a number once devices have summed it does not pad") {
  const auto local = [](const std::string& padding) {
    return "(%x: tensor<4xf32>)\n  %i = shard_start {1 <\"B\">} : tensor<i32>\n"
           "  %k = constant {0} : tensor<i32>\n  %f = compare(%i, %k) {eq} : tensor<i1>\n"
           "  %n = constant {3} : tensor<1xf32>\n  %z = constant {0} : tensor<1xf32>\n"
           "  %b = broadcast_in_dim(%f) {dims=[]} : tensor<1xi1>\n"
           "  %s = select(%b, %n, %z) : tensor<1xf32>\n  %r = all_reduce <\"B\"> %s : "
           "tensor<1xf32>\n  %y = concatenate(" +
           padding + ", %x) {dim=0} : tensor<5xf32>\n  return %y : tensor<5xf32>\n";
  };
  const std::string source =
      "(%x: tensor<4xf32>)\n  %n = constant {3} : tensor<f32>\n"
      "  %y = pad(%x, %n) {low=[1], high=[0]} : tensor<5xf32>\n  return %y : tensor<5xf32>\n";
  CHECK(does(source, local("%n"), "\"B\":2"));
  CHECK_FALSE(does(source, local("%s"), "\"B\":2"));
}

TEST_CASE("overclaimed: behind one end and before another one of a single element") {
  const std::string in = "(%x: tensor<1x1xf32>)\n  %z = constant {0} : tensor<f32>\n",
                    out = ") : tensor<1xf32>\n  return %y : tensor<1xf32>\n";
  const auto local = [&](const std::string& row, const std::string& column) {
    return in + "  %p = pad(%x, %z) {low=[1, 0], high=[0, 1]} : tensor<2x2xf32>\n" +
           "  %s = slice(%p) {[" + row + ", " + column + "]} : tensor<1x1xf32>\n" +
           "  %y = reshape(%s" + out;
  };
  const std::string source = in + "  %y = reshape(%x" + out;
  CHECK(does(source, local("1:2", "0:1")));
  CHECK_FALSE(does(source, local("0:1", "1:2")));
  CHECK_FALSE(does(source, local("0:1", "0:1")));
}
