/// Measures this machine's CPU as a device of the simulator.
///
/// The figures are those that programs get when they run here (run/): one thread, the library's
/// products and elementwise kernels, and the collectives of an emulated mesh. The machine may be
/// busy, so times are medians of many CPU times of the thread. `measure` can be called repeatedly,
/// between other measurements.
#pragma once

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <partita/cost/simulate.hpp>
#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/run/interpreter.hpp>

namespace bench {

namespace pt = partita;

/// Returns the CPU time of this thread, in seconds.
inline double thread_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}
/// CPU times of runs, summarized by their median.
///
/// The minimum would favour short programs on a busy machine: the fastest of many short runs is
/// undisturbed, while every long run is disturbed.
class run_times {
 public:
  /// Runs `f` once without measuring, then at least `times` times and until `in_all` seconds have
  /// passed.
  template <class F>
  void measure(F&& f, double in_all = 0.1, int times = 5) {
    f();
    double sum = 0;
    for (int i = 0; i < times || (i < 2000 && sum < in_all); ++i) {
      const double began = thread_seconds();
      f();
      seconds_.push_back(thread_seconds() - began);
      sum += seconds_.back();
    }
  }
  double median() const {
    std::vector<double> sorted = seconds_;
    std::sort(sorted.begin(), sorted.end());
    return sorted.at(sorted.size() / 2);
  }

 private:
  std::vector<double> seconds_;
};

/// Returns numbers between 0.5 and 0.75, the same in each run.
inline pt::array plain_numbers(const pt::tensor_type& t) {
  pt::array a(pt::tensor_type{pt::dtype::f32, t.shape});
  auto* x = a.mutable_data<float>();
  for (std::int64_t i = 0; i < a.size(); ++i)
    x[i] = 0.5f + 0.25f * static_cast<float>(i * 7919 % 1024) / 1024;
  return pt::as_type(a, t.element);
}

/// A program and its measured time on this CPU.
class measured_program {
 public:
  measured_program(std::string_view name, pt::program p)
      : name_(name), made_(pt::partition(std::move(p), pt::mesh{{"B", 1}}, pt::schedule())) {}
  void measure() {
    const pt::executable run(made_.source);
    std::vector<pt::array> inputs;
    for (int i = 0; i < made_.source.input_count(); ++i)
      inputs.push_back(plain_numbers(made_.source.input_type(i)));
    times_.measure([&] { run(inputs); });
  }
  double seconds() const { return times_.median(); }
  double predicted(const pt::device& d) const { return pt::simulate(made_.device, d).time; }
  /// Returns the FLOP/s of its products.
  double rate() const { return pt::simulate(made_.device, pt::a100_80).product_flops / seconds(); }
  std::string name() const {
    std::string s = name_;
    for (int i = 0; i < made_.source.input_count(); ++i) {
      const pt::shape& e = made_.source.input_type(i).shape;
      for (int d = 0; d < e.rank; ++d) {
        s += d > 0 ? 'x' : ' ';
        s += std::to_string(e[d]);
      }
    }
    return s;
  }

 private:
  std::string name_;
  pt::partitioned made_;
  run_times times_;
};

// ---- Programs of one kind of work ---------------------------------------------------------------

template <std::size_t N>
using extents = std::array<std::int64_t, N>;

template <class T, std::size_t N>
auto input_of(std::string_view name, const extents<N>& e) {
  return [&]<std::size_t... I>(std::index_sequence<I...>) {
    return pt::input<T, (static_cast<void>(I), pt::dyn)...>(name, e[I]...);
  }
  (std::make_index_sequence<N>{});
}
template <pt::fixed_text Letters, class T = float, std::size_t N>
measured_program product(const extents<N>& x, const extents<N>& y) {
  return {Letters.view(), pt::trace([](auto a, auto b) { return pt::einsum<Letters>(a, b); },
                                    input_of<T>("a", x), input_of<T>("b", y))};
}
inline constexpr pt::conv_options same{.padding = pt::same_padding};
inline measured_program convolution(const extents<4>& x, const extents<4>& w) {
  return {"convolution", pt::trace([=](auto a, auto b) { return pt::conv<same>(a, b); },
                                   input_of<float>("a", x), input_of<float>("b", w))};
}
/// Returns the derivative of a convolution with respect to its images.
inline measured_program input_derivative(const extents<4>& x, const extents<4>& w) {
  const auto f = [](auto a, auto b, auto g) {
    return pt::grad([&](auto each) { return pt::sum(pt::conv<same>(each, b) * g); }, a);
  };
  return {"by images",
          pt::trace(f, input_of<float>("a", x), input_of<float>("b", w), input_of<float>("g", x))};
}
/// Returns the derivative of a convolution with respect to its weights.
inline measured_program weight_derivative(const extents<4>& x, const extents<4>& w) {
  const auto f = [](auto a, auto b, auto g) {
    return pt::grad([&](auto each) { return pt::sum(pt::conv<same>(a, each) * g); }, b);
  };
  return {"by weights",
          pt::trace(f, input_of<float>("a", x), input_of<float>("b", w), input_of<float>("g", x))};
}
/// Returns a program of `count` multiplications and additions of vectors.
inline measured_program arithmetic(std::int64_t elements, int count) {
  const auto f = [=](auto a, auto b) {
    auto x = a * b;
    for (int i = 1; i < count; ++i) x = i % 2 == 0 ? x * a : x + b;
    return x;
  };
  const extents<1> e{elements};
  return {"arithmetic", pt::trace(f, input_of<float>("a", e), input_of<float>("b", e))};
}
/// Returns a chain of `count` products of 1 x 1 matrices.
inline measured_program tiny_kernels(int count) {
  const auto f = [=](auto a) {
    auto x = a;
    for (int i = 0; i < count; ++i) x = pt::matmul(x, a);
    return x;
  };
  return {"tiny", pt::trace(f, input_of<float>("a", extents<2>{1, 1}))};
}
/// An all-reduce of `elements` floats on each of `devices` emulated devices.
class emulated_sum {
 public:
  emulated_sum(std::int64_t devices, std::int64_t elements)
      : mesh_{{"B", devices}},
        type_{pt::dtype::f32, {elements}},
        from_(pt::run_detail::allocate(devices * pt::run_detail::padded_bytes(type_))),
        to_(pt::run_detail::allocate(pt::run_detail::padded_bytes(type_))) {
    what_.kind = pt::collective::all_reduce;
    what_.axes.push_back(0, pt::no_dim);
    std::fill_n(reinterpret_cast<float*>(from_.get()), devices * elements, 0.5f);
    const pt::run_detail::collective_operand x{type_, type_, pt::axis_set::of(0), {}};
    run_.emplace(here_.devices(), what_, std::vector{x}, &pt::run_detail::find_combine);
  }
  void operator()() {
    const std::byte* from[] = {from_.get()};
    std::byte* to[] = {to_.get()};
    run_->run(here_, from, to, threads_, memory_, messages_);
  }

 private:
  pt::mesh mesh_;
  pt::tensor_type type_;
  pt::run_detail::buffer from_, to_;
  pt::collective what_;
  pt::run_detail::in_process here_{mesh_};
  std::optional<pt::run_detail::collective_run> run_;
  pt::run_detail::thread_pool threads_{1};
  std::vector<pt::scratch> memory_{1};
  pt::scratch messages_;
};

// ---- The device ---------------------------------------------------------------------------------

/// The measurements from which a device of the simulator is fitted.
class cpu_calibration {
 public:
  cpu_calibration() {
    square_products();
    other_products();
    convolutions();
  }
  void measure() {
    for (measured_program* p :
         {&stream_, &one_step_, &steps_, &one_kernel_, &kernels_, &f64_, &f16_, &i8_})
      p->measure();
    for (auto* list : {&products_, &convolutions_})
      for (auto& p : *list) p.measure();
    emulated_sum one(sum_devices, 1), many(sum_devices, sum_elements);
    short_sum_.measure(one);
    long_sum_.measure(many);
  }
  /// Returns the device that fits the measurements.
  pt::device device() const {
    pt::device d;
    d.memory =
        static_cast<double>(sysconf(_SC_PHYS_PAGES)) * static_cast<double>(sysconf(_SC_PAGESIZE));
    d.kernel = per_unit(one_kernel_, kernels_, chain);
    d.bandwidth = 3. * 4. * large / stream_.seconds();
    d.vector = small / per_unit(one_step_, steps_, chain);
    d.near.latency = d.kernel + short_sum_.median();
    d.near.bandwidth = 4. * sum_devices * sum_elements / long_sum_.median();
    for (const auto& p : products_) d.f32 = std::max(d.f32, p.rate());
    d.f64 = f64_.rate();
    d.f16 = f16_.rate();
    d.i8 = i8_.rate();
    return with_fitted_convolutions(with_fitted_products(d)).named("this-CPU");
  }
  void print_products(const pt::device& d) const {
    std::puts("product,microseconds,predicted,ratio");
    for (const auto* list : {&products_, &convolutions_})
      for (const auto& p : *list)
        std::printf("\"%s\",%.1f,%.1f,%.2f\n", p.name().c_str(), 1e6 * p.seconds(),
                    1e6 * p.predicted(d), p.predicted(d) / p.seconds());
  }

 private:
  static constexpr int chain = 100;
  /// Sizes of vectors that exceed every cache, and of vectors that fit in the nearest one.
  static constexpr std::int64_t large = std::int64_t{1} << 24, small = std::int64_t{1} << 13;
  static constexpr std::int64_t sum_devices = 4, sum_elements = std::int64_t{1} << 18;

  measured_program stream_ = arithmetic(large, 1);
  measured_program one_step_ = arithmetic(small, 1), steps_ = arithmetic(small, chain);
  measured_program one_kernel_ = tiny_kernels(1), kernels_ = tiny_kernels(chain);
  measured_program f64_ = product<"mk,kn->mn", double>(extents<2>{256, 256}, {256, 256}),
                   f16_ = product<"mk,kn->mn", pt::bf16>(extents<2>{256, 256}, {256, 256}),
                   i8_ = product<"mk,kn->mn", std::int8_t>(extents<2>{128, 128}, {128, 128});
  std::vector<measured_program> products_, convolutions_;
  run_times short_sum_, long_sum_;

  /// Returns the seconds of each further op, without the start and end of a run.
  static double per_unit(const measured_program& one, const measured_program& many, int count) {
    return std::max(1e-9, (many.seconds() - one.seconds()) / (count - 1));
  }
  /// Adds products in the layouts of a model and its derivatives.
  void square_products() {
    for (std::int64_t n : {8, 16, 32, 64, 128, 256, 512, 768}) {
      const extents<2> e{n, n};
      products_.push_back(product<"mk,kn->mn">(e, e));
      products_.push_back(product<"km,kn->mn">(e, e));
      products_.push_back(product<"mk,nk->mn">(e, e));
    }
  }
  void other_products() {
    using two = extents<2>;
    using three = extents<3>;
    using four = extents<4>;
    for (std::int64_t n : {4, 16, 64}) {
      products_.push_back(product<"mk,kn->mn">(two{512, n}, {n, 512}));
      products_.push_back(product<"mk,kn->mn">(two{512, 512}, {512, n}));
      products_.push_back(product<"mk,kn->mn">(two{n, 512}, {512, 512}));
      products_.push_back(product<"bmk,bnk->bmn">(three{64, n, 32}, {64, n, 32}));
      products_.push_back(product<"bmk,bkn->bmn">(three{64, n, n}, {64, n, 32}));
      products_.push_back(product<"bqhk,bthk->bhqt">(four{8, n, 8, 32}, {8, n, 8, 32}));
      products_.push_back(product<"bhqt,bthk->bqhk">(four{8, 8, n, n}, {8, n, 8, 32}));
    }
  }
  /// Adds convolutions of several image sizes, channels and windows, with their derivatives.
  void convolutions() {
    for (std::int64_t side : {8, 16, 32})
      for (std::int64_t channels : {4, 16, 64})
        for (std::int64_t window : {1, 3}) {
          const extents<4> images{8, side, side, channels};
          const extents<4> weights{window, window, channels, channels};
          convolutions_.push_back(convolution(images, weights));
          convolutions_.push_back(input_derivative(images, weights));
          convolutions_.push_back(weight_derivative(images, weights));
        }
  }
  static double mean_error(const std::vector<measured_program>& list, const pt::device& d) {
    double error = 0;
    for (const auto& p : list) error += std::abs(std::log(p.predicted(d) / p.seconds()));
    return error;
  }
  /// Fits the time of a line of a window by the minimum mean error on the convolutions.
  pt::device with_fitted_convolutions(const pt::device& from) const {
    pt::device best = from;
    double least = 1e300;
    for (double nanoseconds = 0.1; nanoseconds < 100; nanoseconds *= 1.05) {
      pt::device d = from;
      d.window = 1e-9 * nanoseconds;
      if (const double error = mean_error(convolutions_, d); error < least) least = error, best = d;
    }
    return best;
  }
  /// Fits the tile size, and the fraction of the peak that products attain, by the minimum mean
  /// error on the products.
  pt::device with_fitted_products(const pt::device& from) const {
    pt::device best = from;
    double least = 1e300;
    for (std::int64_t tile = 1; tile <= 128; tile *= 2)
      for (int percent = 40; percent <= 100; percent += 2) {
        pt::device d = from;
        d.tile = tile;
        d.product_part = 0.01 * percent;
        if (const double error = mean_error(products_, d); error < least) least = error, best = d;
      }
    return best;
  }
};

/// Returns the device in the format that `read_system` reads.
inline std::string system_text(const pt::device& d) {
  char line[512];
  std::snprintf(line, sizeof line,
                "device %s\nmemory %.0f B\nbandwidth %.4g GB/s\nflops.f64 %.4g GFLOP/s\n"
                "flops.f32 %.4g GFLOP/s\nflops.f16 %.4g GFLOP/s\nflops.i8 %.4g GFLOP/s\n"
                "vector %.4g GFLOP/s\nkernel %.4g us\nnear %.4g GB/s %.4g us\n"
                "attained.products %.4g\nwindow %.4g ns\ntile %lld\n",
                std::string(d.name()).c_str(), d.memory, 1e-9 * d.bandwidth, 1e-9 * d.f64,
                1e-9 * d.f32, 1e-9 * d.f16, 1e-9 * d.i8, 1e-9 * d.vector, 1e6 * d.kernel,
                1e-9 * d.near.bandwidth, 1e6 * d.near.latency, d.product_part, 1e9 * d.window,
                static_cast<long long>(d.tile));
  return line;
}

}  // namespace bench
