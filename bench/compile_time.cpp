/// Measures what `check<>` costs the compiler: CPU seconds and peak memory against the number of
/// ops. Also measures including <partita/partita.hpp>, and a proof at compile time. Runs each
/// compiler on the command line (default: g++, clang++-19).
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

namespace {

struct cost {
  double seconds = 0, mebibytes = 0;
  bool good = false;
};

cost run(const std::vector<std::string>& command) {
  std::vector<char*> argv;
  for (const auto& word : command) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    execvp(argv[0], argv.data());
    _exit(127);
  }
  int status = 0;
  rusage u{};
  wait4(child, &status, 0, &u);
  // The driver waits for the compiler proper, so the driver's usage includes the compiler's.
  return {static_cast<double>(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
              1e-6 * static_cast<double>(u.ru_utime.tv_usec + u.ru_stime.tv_usec),
          static_cast<double>(u.ru_maxrss) / 1024, status == 0};
}

/// Returns a source file with a training step of `layers` layers and the text `check`. With 0
/// layers it only includes the library; with a negative number it is empty.
std::string source(int layers, const std::string& check) {
  if (layers < 0) return "int main() {}\n";
  if (layers == 0) return "#include <partita/partita.hpp>\nint main() {}\n";
  return "#include \"models/transformer.hpp\"\n"
         "namespace pt = partita;\n"
         "constexpr transformer::sizes sizes{" +
         std::to_string(layers) +
         ", 32, 4, 8, 64, 64, 32, 8};\n"
         "constexpr auto traced = [] { return transformer::trace_training_step<sizes>(); };\n"
         "constexpr auto step = [] {\n"
         "  return pt::partition(traced(), {{\"B\", 4}, {\"M\", 2}},\n"
         "      pt::schedule(transformer::BP, transformer::MP, transformer::Z3));\n"
         "};\n" +
         check + "int main() {}\n";
}

}  // namespace

int main(int argc, char** argv) {
  std::vector<std::string> compilers(argv + 1, argv + argc);
  if (compilers.empty()) compilers = {"g++", "clang++-19"};
  const std::filesystem::path here = PARTITA_SOURCE_DIR;
  const auto file = std::filesystem::temp_directory_path() / "partita_compile_time.cpp";
  for (const auto& compiler : compilers) {
    const bool clang = compiler.find("clang") != std::string::npos;
    const auto measure = [&](int layers, const std::string& check) {
      std::ofstream(file) << source(layers, check);
      std::vector<std::string> command{compiler, "-std=c++20", "-fsyntax-only",
                                       "-I" + (here / "include").string(),
                                       "-I" + (here / "examples").string()};
      if (clang)
        command.push_back("-fconstexpr-steps=2000000000");
      else
        command.push_back("-fconstexpr-ops-limit=2000000000");
      command.push_back(file.string());
      cost best;
      for (int i = 0; i < 3; ++i) {
        const cost c = run(command);
        if (!best.good || c.seconds < best.seconds) best = c;
      }
      return best;
    };
    const cost empty = measure(-1, ""), include = measure(0, "");
    if (!empty.good || !include.good) {
      std::printf("%s: does not run here\n", compiler.c_str());
      continue;
    }
    std::printf("%s (best of 3, -fsyntax-only, CPU time)\n", compiler.c_str());
    std::printf("  empty file                     %5.2f s %6.0f MiB\n", empty.seconds,
                empty.mebibytes);
    std::printf("  #include <partita/partita.hpp> %5.2f s %6.0f MiB, %.2f s over the empty file\n",
                include.seconds, include.mebibytes, include.seconds - empty.seconds);
    const cost model = measure(1, "");
    std::printf("  the 1-layer model, unchecked   %5.2f s %6.0f MiB\n", model.seconds,
                model.mebibytes);
    double first = 0;
    const auto proof = [&](const char* what, const std::string& check) {
      const cost c = measure(1, "#include <partita/prove/prove.hpp>\n" + check);
      std::printf("  %-30s %5.2f s %6.0f MiB%s\n", what, c.seconds, c.mebibytes,
                  c.good ? "" : "  FAILED");
    };
    for (int layers : {1, 2, 4}) {
      const cost c = measure(layers, "static_assert(pt::check<step>.conflicts == 0);\n");
      const int ops = 194 + 348 * layers;
      if (layers == 1) first = c.seconds;
      std::printf("  check<> of %d layer%s (%4d ops)   %5.2f s %6.0f MiB", layers,
                  layers == 1 ? " " : "s", ops, c.seconds, c.mebibytes);
      if (!c.good) std::printf("  FAILED");
      if (layers > 1)
        std::printf(", %.2f ms per further op", 1e3 * (c.seconds - first) / (348 * (layers - 1)));
      std::printf("\n");
      if (layers > 1) continue;
      proof("  and pt::proved in the thunk",
            "constexpr auto proved = [] { return pt::proved(step()); };\n"
            "static_assert(pt::check<proved>.conflicts == 0 && pt::check<proved>.proved);\n");
      proof("  and .proved, partitioned twice",
            "static_assert(pt::check<step>.conflicts == 0 && pt::check<step>.proved);\n");
    }
  }
  std::filesystem::remove(file);
  return 0;
}
