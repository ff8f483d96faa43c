// Mistakes with XLA: each is one error with its code, names and sizes.
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iostream>
#include <string>
#include <string_view>

#include <unistd.h>

#include <partita/partita.hpp>
#include <partita/xla.hpp>

namespace pt = partita;

namespace {

int wrong = 0;

void check(std::string_view name, bool good, std::string_view found = {}) {
  std::cout << (good ? "ok " : "WRONG ") << name;
  if (!good) std::cout << ": " << found;
  std::cout << std::endl;
  wrong += good ? 0 : 1;
}
/// `f` throws an error whose text has all these parts.
void fails(std::string_view name, const std::function<void()>& f,
           std::initializer_list<std::string_view> parts) {
  std::string said = "no error";
  try {
    f();
  } catch (const std::exception& e) {
    said = e.what();
  }
  bool all = true;
  for (const auto part : parts) all = all && said.find(part) != std::string::npos;
  check(name, all, said);
}

constexpr auto model = [](auto x, auto w) {
  return std::tuple{pt::output("w", w - 0.5 * pt::matmul(pt::transpose<1, 0>(x), x)),
                    pt::output("loss", sum(matmul(x, w)))};
};
pt::partitioned step(int devices) {
  return pt::partition(
      pt::trace(model, pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w")),
      pt::mesh{{"B", devices}},
      pt::schedule(pt::manual("B", {{"x", 0}}, "BP"), pt::manual("B", {{"w", 0}}, "Z3")));
}
pt::array filled(const pt::shape& s, float value) {
  pt::array a(pt::tensor_type{pt::dtype::f32, s});
  for (std::int64_t i = 0; i < a.size(); ++i) a.mutable_data<float>()[i] = value;
  return a;
}

}  // namespace

int main() {
  const char* plugin = std::getenv("PARTITA_PJRT_PLUGIN");
  if (plugin == nullptr) {
    std::cout << "skipped: PARTITA_PJRT_PLUGIN names no plugin\n";
    return 77;
  }
  const std::string path = plugin;
  const auto folder = std::filesystem::temp_directory_path() /
                      ("partita_xla_" + std::to_string(static_cast<long>(getpid())));
  std::filesystem::create_directories(folder);

  // The plugin.
  unsetenv("PARTITA_PJRT_PLUGIN");
  fails("no plugin is named", [] { pt::xla::client c; },
        {"E001 xla: no plugin is named", "PARTITA_PJRT_PLUGIN"});
  fails("no such file", [] { pt::xla::client c("/no/such/plugin.so"); },
        {"E001 xla: plugin \"/no/such/plugin.so\" cannot be loaded: "});
  const std::string text_file = (folder / "text.so").string();
  std::ofstream(text_file) << "not a library\n";
  fails("a file that is not a library", [&] { pt::xla::client c(text_file); },
        {"E001 xla: plugin", "text.so", "cannot be loaded"});
  fails("a library that is not a plugin", [] { pt::xla::client c("libm.so.6"); },
        {"E002 xla: \"libm.so.6\" is not a PJRT plugin", "GetPjrtApi"});

  // Devices.
  const pt::xla::client two(path, {.devices = 2});
  check("platform and version",
        two.platform() == "cpu" && two.devices() == 2 && two.api_version().starts_with("0."));
  fails(
      "more devices than the client has", [&] { pt::xla::executable run(step(4), two); },
      {"E004 xla: mesh {\"B\":4} needs 4 devices; platform cpu has 2", "client_options::devices"});

  // Arguments.
  const pt::xla::executable run(step(2), two);
  const pt::array x = filled({16, 8}, 0.5f), w = filled({8, 8}, 1);
  fails("an input without an array", [&] { run(x); }, {"R001", "1 input: w"});
  fails("a wrong shape", [&] { run(x, x); }, {"R002", "\"w\""});
  fails("a wrong type", [&] { run(x, pt::as_type(w, pt::dtype::f64)); }, {"R003", "\"w\""});
  fails("no such name", [&] { run.load("nowhere", "v"); }, {"nowhere"});
  const auto first = run(x, w);
  fails("outputs as a state", [&] { run(first, x); }, {"J005 xla: ", "next()"});
  fails("no such value", [&] { static_cast<void>(first["v"]); }, {"R004", "\"v\""});

  // Donation: the old state is gone, unless the executable says otherwise.
  const auto state = first.next();
  const auto second = run(state, x);
  fails("a state whose memory was reused", [&] { run(state, x); }, {"E008 xla: \"w\" is gone"});
  fails("reading it", [&] { run.whole(state["w"]); }, {"E008 xla: \"w\" is gone", "donate"});
  check("the loss is still there", run.whole(first["loss"]).size() == 1);
  const pt::xla::executable kept(step(2), two, {.donate = false});
  const auto old = kept(x, w).next();
  const pt::array before = kept.whole(old["w"]);
  kept(old, x);
  check("a state that stays",
        pt::equal(kept.whole(old["w"]), before) &&
            pt::equal(kept.whole(kept(old, x)["w"]), kept.whole(kept(old, x)["w"])));

  // States of other executables, other clients, other layouts: moved by way of host memory.
  const auto rows = kept(x, w).next();
  const pt::xla::executable four(step(4), pt::xla::client(path, {.devices = 4}));
  check("a state of another client",
        pt::all_close(four.whole(four(rows, x)["w"]), kept.whole(kept(rows, x)["w"]), 0, 1e-5));

  // Checkpoints, also onto another mesh.
  const std::string checkpoint = (folder / "checkpoint").string();
  const auto saved = kept(x, w).next();
  kept.save(checkpoint, saved).wait();
  check("a checkpoint", pt::equal(kept.whole(kept.load(checkpoint)["w"]), kept.whole(saved["w"])));
  check("a checkpoint on another mesh",
        pt::equal(four.whole(four.load(checkpoint)["w"]), kept.whole(saved["w"])));

  // The report of the compiled program.
  const auto compiled = kept.compiled();
  check("memory and costs",
        compiled.size() == 1 && compiled[0].memory.arguments == (8 * 8 + 4 * 8) * 4 &&
            !compiled[0].costs.empty(),
        std::to_string(compiled[0].memory.arguments));

  // A module that XLA refuses.
  fails("a module that is not StableHLO",
        [&] {
          pt::backend_detail::pjrt_executable e(two.get(), "module { nonsense }",
                                                two.get()->devices());
        },
        {"E005 xla: the plugin refuses the program"});
  std::filesystem::remove_all(folder);
  return wrong == 0 ? 0 : 1;
}
