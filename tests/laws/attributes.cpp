// Attributes of reductions, windows and convolutions as text: printed attributes parse back to the
// same value.
#include <doctest/doctest.h>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

namespace {

std::string printed(const op_case& c) {
  pt::builder b;
  std::vector<pt::value_id> operands;
  for (const auto& t : c.operands) operands.push_back(pt::ops::parameter(b, "x", t));
  const auto v = b.emit(*c.op, operands, c.attrs, c.declared);
  REQUIRE(v >= 0);
  pt::text out;
  pt::print_context context{b.p, b.p.producer(v), nullptr, out};
  c.op->print(context);
  return data::str(out);
}

}  // namespace

TEST_CASE("printed attributes of windows parse back") {
  std::vector<op_case> list;
  add_window_cases(list);
  for (const op_case& c : list) {
    const std::string text = printed(c);
    CAPTURE(text);
    REQUIRE(text.size() > 3);
    pt::vec<std::int64_t> attrs;
    pt::parse_context context{
        std::string_view(text).substr(2, text.size() - 3), c.operands, c.declared, attrs, {}};
    c.op->parse(context);
    CHECK(data::str(context.error.message) == "");
    CHECK(ints(attrs.begin(), attrs.end()) == c.attrs);
  }
}

TEST_CASE("attributes of windows print as expected") {
  using namespace pt::op;
  const auto reduced = static_cast<std::int64_t>(pt::combiner::logical_and);
  CHECK(printed({&pt::def<reduce>, {i1({4, 6})}, {reduced, 1}, {}}) == " {and, dims=[1]}");
  CHECK(printed({&pt::def<reduce_window>,
                 {f32({4, 6})},
                 with_windows(2, {sliding(1), sliding(2, 2, 0, 1)}),
                 {}}) == " {max, window=[1, 2], strides=[1, 2], high=[0, 1]}");
  CHECK(printed({&pt::def<pt::op::cumsum>, {f32({4, 6})}, {1, 1, 0}, {}}) == " {dim=1, reverse}");
  CHECK(printed({&pt::def<convolution>,
                 {f32({2, 3, 8}), f32({1, 6, 2})},
                 conv_case{{sliding(0, 2)}, {}, {}, {}, true}.attrs(),
                 {}}) ==
        " {lhs=[0, 1, 2], rhs=[0, 1, 2], result=[0, 1, 2], strides=[2], "
        "feature_groups}");
}
