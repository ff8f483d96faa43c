/// Modules in the generic form, as `mlir-opt --mlir-print-op-generic` prints them: the modules of
/// shard_map/ again (tests/xla/read_functions.py reads many others).

#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/run/file/whole_file.hpp>
#include <partita/stablehlo/read_local.hpp>

#include "modules.hpp"

namespace pt = partita;

namespace {

std::string module_text(const std::string& name) {
  return pt::run_detail::read_file(PARTITA_SOURCE_DIR "/tests/stablehlo/" + name + ".mlir");
}

}  // namespace

TEST_CASE("the generic form of a module reads as the module") {
  // (Arguments have the names of the text; the generic form numbers them differently.)
  const std::string_view names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", "k", "l"};
  for (const std::string name :
       {"adam_of_rows", "batch_norm", "experts", "layers", "ring", "vocabulary"}) {
    INFO(name);
    const std::string text = module_text("shard_map/" + name + ".source");
    const std::string other = module_text("generic/" + name + ".source");
    const pt::program pretty = pt::read_stablehlo(text, names);
    const pt::program generic = pt::read_stablehlo(other, names);
    REQUIRE_MESSAGE(!generic.error, std::string(generic.error.message.view()));
    CHECK(std::string(pt::print(generic).view()) == std::string(pt::print(pretty).view()));

    const std::string local = module_text("shard_map/" + name + ".local");
    pt::sharding_list shardings;
    static_cast<void>(pt::read_stablehlo(local, shardings));
    REQUIRE(!shardings.meshes.empty());
    const pt::mesh& m = shardings.meshes.back().mesh;
    const auto one = pt::read_local_stablehlo(local, m, {}, names);
    const auto two =
        pt::read_local_stablehlo(module_text("generic/" + name + ".local"), m, {}, names);
    REQUIRE_MESSAGE(!two.local.error, std::string(two.local.error.message.view()));
    CHECK(pt::equivalent(one.local, two.local));
    for (std::size_t i = 0; i < one.inputs.size(); ++i) CHECK(one.inputs[i] == two.inputs[i]);
    for (std::size_t i = 0; i < one.outputs.size(); ++i) CHECK(one.outputs[i] == two.outputs[i]);
  }
}

TEST_CASE("constants of all types are read from the generic form") {
  for (const char* value :
       {"dense<1.5> : tensor<2xf32>", "dense<[[1, 2], [3, -4]]> : tensor<2x2xi32>",
        "dense<0xFF800000> : tensor<f32>", "dense<true> : tensor<3xi1>",
        "dense<\"0x0000803F00000040\"> : tensor<2xf32>", "dense<> : tensor<0x3xf32>",
        "dense<-128> : tensor<i8>", "dense<18446744073709551615> : tensor<ui64>"}) {
    const std::string text = value, type = text.substr(text.find(" : ") + 3);
    const auto module = [&](const std::string& op) {
      return modules::around("", op + "\n return %0 : " + type);
    };
    const pt::program pretty = pt::read_stablehlo(module("%0 = stablehlo.constant " + text));
    const pt::program generic = pt::read_stablehlo(
        module("%0 = \"stablehlo.constant\"() <{value = " + text + "}> : () -> " + type));
    REQUIRE_MESSAGE(!generic.error, std::string(generic.error.message.view()));
    CHECK(pt::equivalent(pretty, generic));
  }
}
