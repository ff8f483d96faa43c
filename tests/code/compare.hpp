// Runs a program of device code and compares its outputs, bit by bit, with a file.
#pragma once

#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <string>

#include <partita/backend/code/launch.hpp>

template <class T>
bool is_nan(T x) {
  const auto wide = static_cast<std::conditional_t<std::is_same_v<T, double>, double, float>>(x);
  return wide != wide;
}
/// The bits are equal, or both are NaN, whose sign and payload depend on the order of operands.
inline bool same_elements(const partita::array& a, const char* want) {
  return partita::run_detail::with_type(a.element(), [&]<class T>(std::type_identity<T>) {
    for (std::int64_t i = 0; i < a.size(); ++i) {
      T x{}, y{};
      std::memcpy(&x, a.bytes() + i * static_cast<std::int64_t>(sizeof x), sizeof x);
      std::memcpy(&y, want + i * static_cast<std::int64_t>(sizeof y), sizeof y);
      const bool nan = !std::is_integral_v<T> && is_nan(x) && is_nan(y);
      if (!nan && std::memcmp(&x, &y, sizeof x) != 0) return false;
    }
    return true;
  });
}

/// Returns 1 if the results differ from those of the file, or the program fails.
inline int compare(const std::string& folder, int number, const char* name,
                   const partita::code::device_code& code, [[maybe_unused]] int& argc,
                   [[maybe_unused]] char**& argv) try {
  namespace pt = partita;
  const std::string path = folder + "/" + std::to_string(number);
  const auto inputs = pt::code::inputs_of(code, (path + ".in").c_str());
  double seconds = 0;
  // (Twice: a step must not depend on the memory that the previous one left.)
#if defined(PARTITA_CODE_MPI)
  static pt::mpi::world world(argc, argv);
  const auto outputs = pt::code::run_ranks(code, world, inputs, 2, seconds);
#else
  const auto outputs = pt::code::run_threads(code, inputs, 2, seconds);
#endif
  std::ifstream file(path + ".out", std::ios::binary);
  const std::string want(std::istreambuf_iterator<char>(file), {});
  std::size_t at = 0;
  std::string problem;
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const auto bytes = static_cast<std::size_t>(outputs[i].type().bytes());
    if (at + bytes > want.size() || !same_elements(outputs[i], want.data() + at))
      problem += " output " + std::to_string(i);
    at += bytes;
  }
  if (at != want.size()) problem += " (another number of bytes)";
  std::printf("%s %s%s\n", problem.empty() ? "ok" : "DIFFERS", name, problem.c_str());
  return problem.empty() ? 0 : 1;
} catch (const std::exception& e) {
  std::printf("FAILS %s: %s\n", name, e.what());
  return 1;
}
