// Inputs and outputs in host memory: the buffers are in the memory that the program or the module
// chooses, results equal those of `emulate`, and a missing memory is one error.
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>

#include <partita/partita.hpp>
#include <partita/stablehlo/read.hpp>

#include "xla_test.hpp"

namespace pt = partita;

namespace {

int wrong = 0;
void check(std::string_view name, bool good, std::string_view found = {}) {
  std::cout << (good ? "ok " : "WRONG ") << name << (good ? "" : ": ") << (good ? "" : found)
            << std::endl;
  wrong += good ? 0 : 1;
}

/// Returns the kind of memory that a buffer is in, as the plugin reports it.
std::string memory_of(const pt::xla::sharded_array& x) {
  const auto& client = x.shards[0]->client();
  auto in = pt::backend_detail::pjrt_args<PJRT_Buffer_Memory_Args>();
  in.buffer = x.shards[0]->there(x.name);
  client.need(client.api().PJRT_Buffer_Memory(&in), "E006", "the memory");
  auto kind = pt::backend_detail::pjrt_args<PJRT_Memory_Kind_Args>();
  kind.memory = in.memory;
  client.need(client.api().PJRT_Memory_Kind(&kind), "E006", "its kind");
  return {kind.kind, kind.kind_size};
}

constexpr auto host = pt::memory_space::pinned_host;
constexpr auto device = pt::memory_space::device;
/// Keeps the momentum in host memory: it is read from there, and its next value is put there.
constexpr auto momentum = [](auto x, auto w, auto m) {
  const auto g = pt::matmul(pt::transpose<1, 0>(x), pt::matmul(x, w));
  const auto next = pt::place<device>(m) * 0.5 + g;
  return std::tuple{pt::output("w", w - next * 0.01), pt::output("m", pt::place<host>(next))};
};
pt::partitioned step() {
  return pt::partition(pt::trace(momentum, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"),
                                 pt::input<float, 4, 4>("m")),
                       pt::mesh{{"B", 2}},
                       pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"m", 0}})));
}
pt::program module_with(std::string_view kind) {
  return pt::read_stablehlo(
      "func.func @main(%a: tensor<8xf32> {mhlo.memory_kind = \"" + std::string(kind) +
      "\"} loc(\"a\"), %b: tensor<8xf32> loc(\"b\")) -> (tensor<8xf32> {jax.result_info = "
      "\"r\"}) {\n  %r = stablehlo.add %b, %b : tensor<8xf32>\n  return %r : tensor<8xf32>\n}\n");
}

}  // namespace

int main() {
  if (std::getenv("PARTITA_PJRT_PLUGIN") == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  const pt::xla::client two({}, {.devices = 2});
  const pt::partitioned p = step();
  const std::string module(pt::write_stablehlo(p.device).view());
  const std::size_t first = module.find("mhlo.memory_kind = \"pinned_host\"");
  check("the module has the kind of an argument and of a result",
        first != module.npos && module.find("mhlo.memory_kind", first + 1) != module.npos, module);

  const pt::xla::executable run(p, two);
  const auto x = backend_programs::arguments(p.source);
  const auto placed = run.place(x);
  check("an input is in host memory", memory_of(placed["m"]) == "pinned_host");
  check("another one is not", memory_of(placed["w"]) == "device", memory_of(placed["w"]));
  xla_tests::xla_test t(two);
  t.check("a state in host memory, three steps", p, 3);
  wrong += t.differing();

  // A state that another executable kept in device memory moves.
  const auto in_device = [](auto a, auto w, auto m) {
    return std::tuple{pt::output("w", w + pt::sum(a)), pt::output("m", m * 2)};
  };
  const pt::xla::executable other(
      pt::partition(pt::trace(in_device, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"),
                              pt::input<float, 4, 4>("m")),
                    pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"m", 0}}))),
      two);
  const auto moved = run(other(x).next(), x[0]);
  check("a state of another memory", pt::all_close(run.whole(moved["m"]),
                                                   pt::emulate(p, x[0], other.whole(other(x)["w"]),
                                                               other.whole(other(x)["m"]))[1],
                                                   0, 1e-2));

  // Modules from elsewhere.
  const auto read = pt::partition(module_with("unpinned_host"), pt::mesh{{"B", 2}}, pt::schedule());
  const pt::xla::executable of_module(read, two);
  check(
      "an argument of a module",
      memory_of(of_module.place(backend_programs::arguments(read.source))["a"]) == "unpinned_host");
  std::string said = "no error";
  try {
    const pt::xla::executable none(
        pt::partition(module_with("moon"), pt::mesh{{"B", 2}}, pt::schedule()), two);
  } catch (const pt::error& e) {
    said = e.what();
  }
  check("a memory that the device lacks",
        said.starts_with("E009 xla: \"a\" is in memory \"moon\"; device 0 of platform cpu has: ") &&
            said.find("pinned_host") != said.npos,
        said);
  return wrong == 0 ? 0 : 1;
}
