/// Each entry in include/partita/stablehlo/README.md, section "Not read", causes its
/// error.

#include <doctest/doctest.h>

#include <fstream>
#include <string>

#include <partita/partita.hpp>
#include <partita/stablehlo/read.hpp>

namespace pt = partita;

TEST_CASE("not_read: each entry of the list gives its error, with its place") {
  const std::string here = __FILE__;
  std::ifstream in(here.substr(0, here.rfind("tests")) + "include/partita/stablehlo/README.md");
  REQUIRE(in.good());
  bool listed = false, shown = false;
  int count = 0;
  std::string code, op;  // of the entry: its error, and its lines
  for (std::string line; std::getline(in, line);) {
    if (line.starts_with("## ")) listed = line == "## Not read";
    if (line.starts_with("```")) shown = listed && !shown;
    if (!shown || line.starts_with("```")) line.clear();
    if (!line.empty()) {
      if (code.empty())
        code = line.substr(0, 4);
      else
        op += line + '\n';
      continue;
    }
    if (op.empty()) continue;
    const pt::program p =
        pt::read_stablehlo("func.func @main(%a: tensor<4xf32>) -> tensor<4xf32> {\n" + op +
                           "return %a : tensor<4xf32>\n}\n");
    INFO(op);
    const std::string message(p.error.message.view());
    // The error is at an op in the first two lines of the entry.
    CHECK_MESSAGE((message.starts_with(code + " stablehlo: 2:") ||
                   message.starts_with(code + " stablehlo: 3:")),
                  message);
    ++count;
    code.clear();
    op.clear();
  }
  CHECK(count >= 24);
}

TEST_CASE("not_read: types are named with their parameters") {
  const auto message = [](std::string_view type) {
    return std::string(
        pt::read_stablehlo("func.func @main(%a: " + std::string(type) + ") -> tensor<f32> {\n}\n")
            .error.message.view());
  };
  for (const char* element :
       {"complex<f32>", "f8E4M3FN", "f8E4M3B11FNUZ", "i4", "ui4", "i2", "f4E2M1FN", "f6E3M2FN",
        "!quant.uniform<i8:f32, 0.5:3>", "!quant.uniform<i8:f32:0, {0.1:1,0.2:-3}>"}) {
    const std::string text = message("tensor<4x" + std::string(element) + ">");
    CHECK_MESSAGE(text.find("element type " + std::string(element) + " is not supported") !=
                      std::string::npos,
                  text);
    CHECK_MESSAGE(text.starts_with("H003 stablehlo: 1:21: "), text);
  }
  for (const char* type : {"!stablehlo.token", "tuple<tensor<f32>, tensor<f32>>", "memref<4xf32>"})
    CHECK_MESSAGE(
        message(type).find("type " + std::string(type) + " is not supported") != std::string::npos,
        message(type));
}
