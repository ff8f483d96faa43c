/// Compares the library's kernels with hand-written Eigen code for the same work: one thread,
/// binary32.
///
///   bench_kernels [ROUNDS] [TEXT]     runs the benchmarks whose names contain TEXT
///
/// On our side an executable is called repeatedly; it returns arrays and reuses the memory of
/// dropped results. Eigen writes into memory allocated beforehand. Runs alternate; the figures are
/// medians of the thread's CPU time, and the median of the ratios of adjacent runs.
#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <string_view>
#include <vector>

#include <Eigen/Core>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

namespace pt = partita;

namespace {

using matrix = Eigen::Matrix<float, Eigen::Dynamic, Eigen::Dynamic, Eigen::RowMajor>;
using matrix_map = Eigen::Map<matrix, Eigen::Aligned64>;
using const_matrix_map = Eigen::Map<const matrix, Eigen::Aligned64>;
using vector_map = Eigen::Map<Eigen::ArrayXf, Eigen::Aligned64>;
using const_vector_map = Eigen::Map<const Eigen::ArrayXf, Eigen::Aligned64>;

double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}

struct benchmark {
  const char* name;
  pt::program program;
  std::vector<pt::array> inputs;
  std::function<void(float*)> by_hand;  ///< writes the result to the buffer
  double operations = 0;                ///< additions and multiplications of products, else 0
};

pt::array uniform(const pt::shape& s, float low, float high) {
  pt::array a(pt::tensor_type{pt::dtype::f32, s});
  std::uint32_t state = 1;
  for (float *x = a.mutable_data<float>(), *end = x + a.size(); x != end; ++x) {
    state = state * 1664525u + 1013904223u;
    *x = low + (high - low) * static_cast<float>(state >> 8) * 0x1p-24f;
  }
  return a;
}
pt::array indices(std::int64_t n, std::int64_t below) {
  pt::array a(pt::tensor_type{pt::dtype::i32, {n}});
  std::uint64_t state = 1;
  for (std::int32_t *x = a.mutable_data<std::int32_t>(), *end = x + n; x != end; ++x) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    *x = static_cast<std::int32_t>((state >> 33) % static_cast<std::uint64_t>(below));
  }
  return a;
}
const float* floats(const pt::array& a) { return a.data<float>(); }

benchmark product() {
  constexpr std::int64_t n = 1024;
  const pt::array x = uniform({n, n}, -1, 1), y = uniform({n, n}, -1, 1);
  return {"matrix product, 1024 x 1024 x 1024",
          pt::trace([](auto a, auto b) { return pt::matmul(a, b); },
                    pt::input<float, pt::dyn, pt::dyn>("a", n, n),
                    pt::input<float, pt::dyn, pt::dyn>("b", n, n)),
          {x, y},
          [=](float* out) {
            matrix_map(out, n, n).noalias() =
                const_matrix_map(floats(x), n, n) * const_matrix_map(floats(y), n, n);
          },
          2.0 * n * n * n};
}

benchmark batched_product() {
  constexpr std::int64_t batch = 64, m = 128, k = 64;
  const pt::array x = uniform({batch, m, k}, -1, 1), y = uniform({batch, k, m}, -1, 1);
  return {"64 products, 128 x 64 x 128",
          pt::trace([](auto a, auto b) { return pt::matmul(a, b); },
                    pt::input<float, batch, m, k>("a"), pt::input<float, batch, k, m>("b")),
          {x, y},
          [=](float* out) {
            for (std::int64_t i = 0; i < batch; ++i)
              matrix_map(out + i * m * m, m, m).noalias() =
                  const_matrix_map(floats(x) + i * m * k, m, k) *
                  const_matrix_map(floats(y) + i * k * m, k, m);
          },
          2.0 * batch * m * k * m};
}

benchmark gelu() {
  constexpr std::int64_t n = 1 << 22;
  const pt::array x = uniform({n}, -4, 4);
  return {"GELU, 4 M elements",
          pt::trace([](auto a) { return pt::nn::gelu(a); }, pt::input<float, n>("a")),
          {x},
          [=](float* out) {
            const const_vector_map a(floats(x), n);
            vector_map(out, n) =
                0.5f * a * (1.f + (0.7978845608f * (a + 0.044715f * a * a * a)).tanh());
          }};
}

benchmark softmax() {
  constexpr std::int64_t rows = 4096, columns = 1024;
  const pt::array x = uniform({rows, columns}, -4, 4);
  return {
      "softmax, 4096 rows of 1024",
      pt::trace([](auto a) { return pt::nn::softmax(a); }, pt::input<float, rows, columns>("a")),
      {x},
      [=](float* out) {
        for (std::int64_t i = 0; i < rows; ++i) {
          const const_vector_map a(floats(x) + i * columns, columns);
          vector_map z(out + i * columns, columns);
          z = (a - a.maxCoeff()).exp();
          z /= z.sum();
        }
      }};
}

benchmark layer_norm() {
  constexpr std::int64_t rows = 4096, columns = 1024;
  const pt::array x = uniform({rows, columns}, -4, 4), scale = uniform({columns}, 0.5, 2),
                  bias = uniform({columns}, -1, 1);
  return {"layer norm, 4096 rows of 1024",
          pt::trace([](auto a, auto s, auto b) { return pt::nn::layer_norm(a, s, b); },
                    pt::input<float, rows, columns>("a"), pt::input<float, columns>("s"),
                    pt::input<float, columns>("b")),
          {x, scale, bias},
          [=](float* out) {
            const const_vector_map s(floats(scale), columns), b(floats(bias), columns);
            for (std::int64_t i = 0; i < rows; ++i) {
              const const_vector_map a(floats(x) + i * columns, columns);
              vector_map z(out + i * columns, columns);
              z = a - a.mean();
              z = z * (1.f / std::sqrt(z.square().mean() + 1e-5f)) * s + b;
            }
          }};
}

benchmark convolution() {
  constexpr std::int64_t batch = 64, size = 56, features = 64, taps = 9;
  constexpr std::int64_t lines = 4, rows = lines * size, depth = taps * features;
  const pt::array x = uniform({batch, size, size, features}, -1, 1);
  const pt::array w = uniform({3, 3, features, features}, -1, 1);
  return {"3 x 3 convolution, 64 of 56 x 56 x 64",
          pt::trace(
              [](auto a, auto b) {
                return pt::conv<pt::conv_options{.padding = pt::same_padding}>(a, b);
              },
              pt::input<float, batch, size, size, features>("a"),
              pt::input<float, 3, 3, features, features>("b")),
          {x, w},
          // A few lines of an image at a time, with their windows as the rows of a matrix.
          [=, windows = matrix(rows, depth)](float* out) mutable {
            const const_matrix_map weights(floats(w), depth, features);
            for (std::int64_t i = 0; i < batch; ++i)
              for (std::int64_t begin = 0; begin < size; begin += lines) {
                float* to = windows.data();
                for (std::int64_t r = begin; r < begin + lines; ++r)
                  for (std::int64_t c = 0; c < size; ++c)
                    for (std::int64_t y = r - 1; y <= r + 1; ++y) {
                      const float* line = floats(x) + (i * size + y) * size * features;
                      const std::int64_t first = c == 0, last = c == size - 1 ? 2 : 3;
                      if (y < 0 || y >= size) {
                        to = std::fill_n(to, 3 * features, 0.f);
                        continue;
                      }
                      to = std::fill_n(to, first * features, 0.f);
                      to = std::copy_n(line + (c - 1 + first) * features, (last - first) * features,
                                       to);
                      to = std::fill_n(to, (3 - last) * features, 0.f);
                    }
                matrix_map(out + (i * size + begin) * size * features, rows, features).noalias() =
                    windows * weights;
              }
          },
          2.0 * batch * size * size * depth * features};
}

benchmark gather(const char* name, std::int64_t width, std::int64_t table_rows,
                 std::int64_t count) {
  const pt::array x = uniform({table_rows, width}, -1, 1), at = indices(count, table_rows);
  return {name,
          pt::trace([](auto a, auto b) { return pt::gather(a, b); },
                    pt::input<float, pt::dyn, pt::dyn>("a", table_rows, width),
                    pt::input<std::int32_t, pt::dyn>("b", count)),
          {x, at},
          [=](float* out) {
            const auto* row = at.data<std::int32_t>();
            if (width > 16) {
              const const_matrix_map table(floats(x), table_rows, width);
              for (std::int64_t i = 0; i < count; ++i)
                matrix_map(out, count, width).row(i) = table.row(row[i]);
            } else {  // a loop is faster
              for (std::int64_t i = 0; i < count; ++i)
                for (std::int64_t j = 0; j < width; ++j)
                  out[i * width + j] = floats(x)[row[i] * width + j];
            }
          }};
}
benchmark scatter(const char* name, std::int64_t width, std::int64_t table_rows,
                  std::int64_t count) {
  const pt::array x = uniform({count, width}, -1, 1), at = indices(count, table_rows);
  return {name,
          pt::trace([=](auto a, auto b) { return pt::scatter_add(b, a, table_rows); },
                    pt::input<float, pt::dyn, pt::dyn>("a", count, width),
                    pt::input<std::int32_t, pt::dyn>("b", count)),
          {x, at},
          [=](float* out) {
            const auto* row = at.data<std::int32_t>();
            const float* from = x.data<float>();
            std::fill_n(out, table_rows * width, 0.f);
            for (std::int64_t i = 0; i < count; ++i)
              for (std::int64_t j = 0; j < width; ++j)
                out[row[i] * width + j] += from[i * width + j];
          }};
}

double largest_difference(const float* x, const float* y, std::int64_t n) {
  double worst = 0;
  for (std::int64_t i = 0; i < n; ++i)
    worst = std::max(worst, static_cast<double>(std::fabs(x[i] - y[i])));
  return worst;
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 21;
  const std::string_view chosen = argc > 2 ? argv[2] : "";
#if defined(__clang__)
  std::printf("Clang " __clang_version__);
#else
  std::printf("GCC " __VERSION__);
#endif
  std::printf(", Eigen %d.%d.%d, %s\n", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION,
              EIGEN_MINOR_VERSION, Eigen::SimdInstructionSetsInUse());
  std::printf("%-40s %9s %9s %6s\n", "", "ours, ms", "Eigen, ms", "ratio");
  double product_rate = 0;
  for (const auto& make : std::vector<std::function<benchmark()>>{
           product, batched_product, gelu, softmax, layer_norm, convolution,
           [] { return gather("gather, 32768 rows of 512 out of 50000", 512, 50000, 32768); },
           [] { return gather("gather, 4 M rows of 1 out of 50000", 1, 50000, 1 << 22); },
           [] { return gather("gather, 1 M rows of 4 out of 50000", 4, 50000, 1 << 20); },
           [] { return scatter("scatter-add, 1 M rows of 1 to 50000", 1, 50000, 1 << 20); },
           [] { return scatter("scatter-add, 1 M rows of 4 to 50000", 4, 50000, 1 << 20); }}) {
    benchmark b = make();
    if (std::string_view(b.name).find(chosen) == std::string_view::npos) continue;
    const pt::executable run(b.program);
    const std::int64_t n = b.program.output_type(0).shape.elements();
    pt::array out(b.program.output_type(0));
    float* by_hand = out.mutable_data<float>();
    b.by_hand(by_hand);
    const double difference = largest_difference(floats(run(b.inputs).front()), by_hand, n);
    std::vector<double> ours, eigen, ratios;
    for (int i = 0; i < rounds; ++i) {
      const double t0 = thread_seconds();
      run(b.inputs);
      const double t1 = thread_seconds();
      b.by_hand(by_hand);
      const double t2 = thread_seconds();
      ours.push_back(t1 - t0);
      eigen.push_back(t2 - t1);
      ratios.push_back((t1 - t0) / (t2 - t1));
    }
    std::printf("%-40s %9.2f %9.2f %6.2f", b.name, 1e3 * median(ours), 1e3 * median(eigen),
                median(ratios));
    if (b.operations > 0) {
      const double rate = b.operations / median(ours);
      if (product_rate == 0) product_rate = rate;
      std::printf("  %.0f Gflop/s, %.0f %% of the first", 1e-9 * rate, 100 * rate / product_rate);
    }
    if (!(difference < 1e-3)) std::printf("  RESULTS DIFFER by %g", difference);
    std::printf("\n");
    std::fflush(stdout);
  }
  return 0;
}
