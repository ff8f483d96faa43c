// Programs of every kind as device code: for each a file of C++, its inputs and the results of
// `emulate`, and one file that runs them all (see compare.hpp).
//
//   write_code_programs FOLDER RANKS
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <set>
#include <string>
#include <vector>

#include <partita/code.hpp>

#include "../../examples/models/small/adapters.hpp"
#include "../../examples/models/small/contrastive.hpp"
#include "../../examples/models/small/diffusion.hpp"
#include "../../examples/models/small/llama.hpp"
#include "../../examples/models/small/recurrence.hpp"
#include "../../examples/models/small/stacked.hpp"
#include "../../examples/models/small/state_space.hpp"
#include "../../examples/models/small/vision.hpp"
#include "../backend_programs.hpp"

using namespace backend_programs;

namespace {

void write(const std::string& path, const std::string& text) {
  std::ofstream file(path, std::ios::binary);
  file << text;
  if (!file.flush()) throw pt::error(pt::concat("cannot write ", path));
}
void write(const std::string& path, const std::vector<pt::array>& list) {
  std::string bytes;
  for (const auto& a : list)
    bytes.append(reinterpret_cast<const char*>(a.bytes()),
                 static_cast<std::size_t>(a.type().bytes()));
  write(path, bytes);
}

class code_test {
 public:
  code_test(std::string folder, int ranks) : folder_(std::move(folder)), ranks_(ranks) {}
  int ranks() const { return ranks_; }

  void check(std::string_view name, const pt::partitioned& p, const std::vector<pt::array>& x,
             int = 1, const pt::run_options& = {}) {
    const std::string text = pt::write_cpp(p.device);
    const std::string path = folder_ + "/" + std::to_string(count_);
    write(path + ".cpp", text);
    write(path + ".in", x);
    const pt::results r = pt::emulate(p, x);
    std::vector<pt::array> out;
    for (int i = 0; i < r.size(); ++i) out.push_back(r[i]);
    write(path + ".out", out);
    for (std::size_t at = 0; (at = text.find("#include", at)) != text.npos; ++at)
      headers_.insert(text.substr(at, text.find('\n', at) - at));
    programs_ += "namespace p" + std::to_string(count_) + " {\n#include \"" +
                 std::to_string(count_) + ".cpp\"\n}\n";
    list_ += "  failed += compare(argv[1], " + std::to_string(count_) + ", \"" + std::string(name) +
             "\", {p" + std::to_string(count_) + "::mesh, p" + std::to_string(count_) +
             "::inputs, p" + std::to_string(count_) + "::outputs, p" + std::to_string(count_) +
             "::memory_bytes, &p" + std::to_string(count_) + "::run}, argc, argv);\n";
    ++count_;
  }
  void check(std::string_view name, const pt::partitioned& p, int = 1) {
    check(name, p, arguments(p.source));
  }
  /// Pipelines are several programs.
  void check(std::string_view, const pt::pipelined&, const std::vector<pt::array>&, int = 1) {}

  void finish() const {
    std::string all =
        "// Written by tests/code/write_programs.cpp.\n#define PARTITA_CODE_NO_MAIN\n";
    for (const auto& h : headers_) all += h + '\n';
    all += "#include \"compare.hpp\"\n\n" + programs_ + "\nint main(int argc, char** argv) {\n" +
           "  int failed = 0;\n" + list_ + "  return failed == 0 ? 0 : 1;\n}\n";
    write(folder_ + "/all.cpp", all);
    std::cout << count_ << " programs\n";
  }

 private:
  std::string folder_, programs_, list_;
  int ranks_, count_ = 0;
  std::set<std::string> headers_;
};

/// Real numbers below 1/2, with which no model overflows.
std::vector<pt::array> small_arguments(const pt::program& p) {
  std::vector<pt::array> x = arguments(p);
  for (pt::array& a : x)
    if (a.element() == pt::dtype::f32)
      for (std::int64_t i = 0; i < a.size(); ++i) a.mutable_data<float>()[i] /= 8;
  return x;
}
/// Training steps of the models that check_all does not have; each step contains the forward pass.
void check_small_models(code_test& t) {
  using namespace small;
  const auto check = [&](std::string_view name, const pt::partitioned& p) {
    t.check(name, p, small_arguments(p.source));
  };
  const auto batch_and_columns = [](const char* input, int dim) {
    return manual("B", {{input, dim}}, "BP");
  };
  check("adapters",
        pt::partition(adapters::traced(), adapters::mesh, schedule(batch_and_columns("x", 0))));
  check("contrastive", pt::partition(contrastive::traced(), contrastive::mesh,
                                     schedule(batch_and_columns("images", 0))));
  check("diffusion",
        pt::partition(diffusion::traced(), diffusion::mesh, schedule(batch_and_columns("x", 0))));
  check("llama",
        pt::partition(llama::traced(), llama::mesh, schedule(batch_and_columns("tokens", 0))));
  check("recurrence",
        pt::partition(recurrence::traced(), recurrence::mesh, schedule(batch_and_columns("x", 1))));
  check("stacked",
        pt::partition(stacked::traced(), stacked::mesh, schedule(batch_and_columns("x", 0))));
  check("state space", pt::partition(state_space::traced(), state_space::mesh,
                                     schedule(batch_and_columns("x", 1))));
  check("vision",
        pt::partition(vision::traced(), vision::mesh, schedule(batch_and_columns("images", 0))));
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  try {
    code_test t(argv[1], std::atoi(argv[2]));
    check_all(t);
    if (t.ranks() == 4) check_small_models(t);
    t.finish();
  } catch (const std::exception& e) {
    std::cerr << e.what() << '\n';
    return 1;
  }
}
