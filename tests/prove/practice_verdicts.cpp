// Typical mistakes: `prove` accepts right programs, and names the place of a mistake in wrong ones.
#include "practice.hpp"

#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

namespace pt = partita;
using namespace practice;

namespace {

/// Returns the value with this name in the text of the local program: ops are in the order of their
/// lines.
pt::value_id value_named(std::string_view name, const pt::program& p, std::string_view text) {
  const auto line = "\n  " + std::string(name) + " = ";
  pt::op_id op = p.input_count();
  for (auto at = text.find('\n'); text.substr(at, line.size()) != line; ++op)
    at = text.find('\n', at + 1);
  return p.op(op).result;
}

/// True if the message names one of the values where a checker may stop, or an output that returns
/// it.
bool names_place(std::string_view message, const mistake& m, const written& w,
                 std::string_view text) {
  const pt::program& p = w.device.local;
  const pt::value_names names(p);
  for (std::string_view stop : m.stops_at) {
    const pt::value_id v = value_named(stop, p, text);
    if (message.starts_with("Q003 prove: %" + std::string(names[v]) + " = ")) return true;
    for (int i = 0; i < p.output_count(); ++i)
      if (p.outputs[static_cast<std::size_t>(i)].value == v &&
          message.find("output \"" + std::string(w.source.output_name(i)) + '"') != message.npos)
        return true;
  }
  return false;
}

}  // namespace

TEST_CASE("practice: right programs are proved") {
  for (const practice_case& c : all_cases()) {
    const pt::verdict v = pt::prove(read(c, c.local));
    CHECK_MESSAGE(v.proved, std::string(c.name), "\n  ", data::str(v.error.message));
  }
}

TEST_CASE("practice: wrong programs are refused at their mistake") {
  for (const practice_case& c : all_cases())
    for (const mistake& m : c.mistakes) {
      const std::string text = with(m, c.local);
      const written w = read(c, text);
      const pt::verdict v = pt::prove(w);
      const std::string message = data::str(v.error.message);
      CAPTURE(std::string(c.name));
      CAPTURE(std::string(m.name));
      CHECK_MESSAGE(!v.proved, "wrong, and proved");
      if (v.proved || c.equal == equality::as_real_functions) continue;
      CHECK_MESSAGE(names_place(message, m, w, text), message, "\n  expected at ", m.stops_at[0]);
    }
}

TEST_CASE("a start is omitted only along dimensions of full size") {
  const auto proved = [](std::string_view sizes, std::string_view result, std::string_view start) {
    const std::string head = "func @main(%x: tensor<6x8xf32>, %p: tensor<i32>)";
    const auto body = [&](std::string_view at) {
      return " {\n  %zero = constant {0} : tensor<i32>\n  %y = dynamic_slice(%x, " +
             std::string(at) + ", %zero) {sizes=" + std::string(sizes) +
             "} : " + std::string(result) + "\n  return %y : " + std::string(result) + "\n}\n";
    };
    const pt::program source = pt::parse(head + body("%p"));
    pt::device_program d;
    d.mesh = {{"M", 2}};
    d.local = pt::parse(head + body(start));
    for (int i = 0; i < 2; ++i) {
      d.inputs.push_back({});
      d.input_types.push_back(source.input_type(i));
    }
    d.outputs.push_back({});
    d.output_types.push_back(source.output_type(0));
    return pt::prove(source, d).proved;
  };
  CHECK(proved("[-1, 1]", "tensor<6x1xf32>", "%zero"));
  CHECK(proved("[5, 1]", "tensor<5x1xf32>", "%p"));
  CHECK(!proved("[5, 1]", "tensor<5x1xf32>", "%zero"));
}
