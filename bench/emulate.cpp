/// Measures the CPU time of `emulate` on eight devices over that of `evaluate`, for the demo's
/// training step, and the tokens per second of the unpartitioned step. Runs of both alternate; the
/// figures are medians over the pairs.
#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/run/kernels/dot_general.hpp>

#include "../examples/models/transformer.hpp"

namespace pt = partita;

namespace {

double cpu_seconds() {
  rusage u{};
  getrusage(RUSAGE_SELF, &u);
  const auto seconds = [](const timeval& t) {
    return static_cast<double>(t.tv_sec) + 1e-6 * static_cast<double>(t.tv_usec);
  };
  return seconds(u.ru_utime) + seconds(u.ru_stime);
}

double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

/// Seconds spent in matrix products, counted by a wrapper around the library's kernel.
double product_seconds = 0;
void timed_product(const pt::kernel_context& c) {
  const auto begin = std::chrono::steady_clock::now();
  pt::run_detail::dot_general_kernel(c);
  product_seconds +=
      std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

std::vector<pt::array> inputs_for(const pt::program& step, std::int64_t layers,
                                  std::int64_t vocabulary) {
  std::vector<pt::array> inputs;
  transformer::random_stream random(1);
  for (int i = 0; i < step.input_count(); ++i) {
    const auto& type = step.input_type(i);
    pt::array a(type);
    if (type.element == pt::dtype::i32) {
      auto* tokens = a.mutable_data<std::int32_t>();
      for (std::int64_t j = 0; j < a.size(); ++j)
        tokens[j] = static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary)));
    } else {
      transformer::initialise(step.input_name(i), type.shape, layers, 1, a.mutable_data<float>());
    }
    inputs.push_back(a);
  }
  return inputs;
}

}  // namespace

int main(int argc, char** argv) {
  const int pairs = argc > 1 ? std::atoi(argv[1]) : 9;
  if (pairs < 1) {
    std::printf("bench_emulate [PAIRS]: \"%s\" is not a positive number of pairs\n", argv[1]);
    return 1;
  }
  struct named_sizes {
    const char* name;
    transformer::sizes s;  // layers, width, heads, key, hidden, vocabulary, context, batch
  };
  for (const auto& [name, s] : {named_sizes{"demo", {2, 64, 4, 16, 256, 84, 64, 32}},
                                named_sizes{"wide", {4, 256, 8, 32, 1024, 96, 128, 16}}}) {
    const pt::program step = transformer::trace_training_step<transformer::dynamic>(s);
    const pt::partitioned p =
        pt::partition(step, {{"B", 4}, {"M", 2}},
                      pt::schedule(transformer::BP, transformer::MP, transformer::Z3));
    const auto inputs = inputs_for(step, s.layers, s.vocabulary);
    const pt::executable source(step), device(p.device);
    const pt::executable timed(step,
                               {.kernels = {{&pt::def<pt::op::dot_general>, &timed_product}}});
    const int repeat = s.width > 100 ? 3 : 10;
    const auto time = [&](const pt::executable& e) {
      const double begin = cpu_seconds();
      for (int i = 0; i < repeat; ++i) e(inputs);
      return (cpu_seconds() - begin) / repeat;
    };
    time(source);
    time(device);
    std::vector<double> ratios, seconds;
    for (int i = 0; i < pairs; ++i) {
      const double d = time(device), e = time(source);
      ratios.push_back(d / e);
      seconds.push_back(e);
    }
    product_seconds = 0;
    const double all = time(timed) * repeat;
    std::printf(
        "%s: %lld layers, width %lld, context %lld, batch %lld\n"
        "  emulate on 8 devices / evaluate, CPU time: median %.2f (min %.2f, max %.2f) of %d "
        "pairs\n"
        "  evaluate: %.1f ms per step, %.0f tokens/s, %.0f%% of it in matrix products\n",
        name, static_cast<long long>(s.layers), static_cast<long long>(s.width),
        static_cast<long long>(s.context), static_cast<long long>(s.batch), median(ratios),
        *std::min_element(ratios.begin(), ratios.end()),
        *std::max_element(ratios.begin(), ratios.end()), pairs, 1e3 * median(seconds),
        static_cast<double>(s.context * s.batch) / median(seconds), 100 * product_seconds / all);
  }
  return 0;
}
