// Rules that were once unsound, each with a wrong program that it would prove.
//
// Files in overclaimed/ contain a source, a local program, and the layouts of inputs and outputs,
// `-` if all devices have the complete array. A file NAME.right.txt is a similar program that is
// right, and is proved.
#include <doctest/doctest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include <partita/run/refute.hpp>

#include "does.hpp"

using proof_test::does;

namespace {

namespace pt = partita;

struct held_against {
  pt::program source;
  pt::device_program device;
};
held_against read(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line, part[2];
  for (int k = 0; k < 2 && std::getline(file, line);)
    line == "---" ? static_cast<void>(++k) : static_cast<void>(part[k] += line + "\n");
  held_against h{pt::parse(part[0]), {}};
  pt::device_program& d = h.device;
  d.local = pt::parse(part[1], d.mesh);
  REQUIRE_MESSAGE(!h.source.error, data::str(h.source.error.message));
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  pt::failure wrong;
  const auto next = [&](const pt::tensor_type& type, auto& layouts, auto& types) {
    if (!std::getline(file, line)) line = "-";
    layouts.push_back(line == "-" ? pt::layout{}
                                  : pt::parse_layout(line, d.mesh, type.shape, wrong));
    types.push_back(type);
  };
  for (int i = 0; i < h.source.input_count(); ++i)
    next(h.source.input_type(i), d.inputs, d.input_types);
  for (int i = 0; i < h.source.output_count(); ++i)
    next(h.source.output_type(i), d.outputs, d.output_types);
  REQUIRE_MESSAGE(!wrong, data::str(wrong.message));
  return h;
}
/// Calls `f(name, programs, equal)` for each file; `equal` is true for right programs.
template <class F>
void for_each_file(const F& f) {
  const std::filesystem::path folder = PARTITA_SOURCE_DIR "/tests/prove/overclaimed";
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    const std::string name = entry.path().stem().string();
    f(name, read(entry.path()), name.ends_with(".right"));
  }
}

}  // namespace

TEST_CASE("overclaimed: files with right programs are proved, others are not") {
  int right = 0, wrong = 0;
  for_each_file([&](const std::string& name, const held_against& h, bool is_right) {
    CAPTURE(name);
    CHECK(proof_test::is_proved(h.source, h.device) == is_right);
    CHECK(pt::refute(h.source, h.device, {.seeds = 10}).refuted == !is_right);
    ++(is_right ? right : wrong);
  });
  CHECK(right > 8);
  CHECK(wrong > 16);
}

TEST_CASE("overclaimed: shrinking proves no wrong program") {
  int proved = 0;
  for_each_file([&](const std::string& name, const held_against& h, bool is_right) {
    CAPTURE(name);
    const bool is = pt::prove_detail::prove_by_shrinking(h.source, h.device, 1'000'000).kind ==
                    pt::prove_detail::shrink_verdict::proved;
    CHECK((is_right || !is));
    proved += is;
  });
  CHECK(proved > 8);
}

// If a rule becomes unsound again, elements contradict it (Q016): for 132 of 146 programs. (The
// others fold, or overflow.)
TEST_CASE("overclaimed: elements contradict wrong programs and no right one") {
  int wrong = 0, contradicted = 0;
  for_each_file([&](const std::string& name, const held_against& h, bool is_right) {
    CAPTURE(name);
    const bool differ = pt::prove_detail::compare_at_numbers(h.source, h.device, 1'000'000).kind ==
                        pt::prove_detail::element_verdict::differs;
    if (is_right) CHECK(!differ);
    wrong += !is_right;
    contradicted += differ;
  });
  CHECK(10 * contradicted > 8 * wrong);
}

TEST_CASE("overclaimed: a device has one of two parts of a sum that are equal only when summed") {
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

TEST_CASE("overclaimed: a value that is a number only after a reduction is not padding") {
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

TEST_CASE("overclaimed: a single element out of bounds at both ends") {
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
