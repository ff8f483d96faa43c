// Runs that fail: kernels that throw, and programs that cannot run.
#include <atomic>
#include <fstream>
#include <stdexcept>
#include <string>
#include <vector>

#if defined(__linux__)
#include <sys/resource.h>
#include <unistd.h>
#endif

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/run/thread_pool.hpp>

#include "../data.hpp"
#include "device_programs.hpp"

using namespace partita;
using data::str;
using device_programs::cut;
using device_programs::device_builder;
using device_programs::message_of;

namespace {

/// Returns its operand, and throws if it begins with a negative number.
struct picky {
  static constexpr std::string_view name = "picky";
  static constexpr void infer(infer_context& c) { c.result = c.operands[0]; }
};
void picky_kernel(const kernel_context& c) {
  const float first = c.operand<float>(0)[0];
  if (first < 0) throw std::runtime_error("negative: " + std::to_string(first));
  for (std::int64_t i = 0; i < c.result.shape.elements(); ++i)
    c.output<float>()[i] = c.operand<float>(0)[i];
}
const std::vector<kernel_entry> kernels = {{&def<picky>, &picky_kernel}};

/// Each of eight devices has a block of x, and its kernel throws the numbers in it.
device_program on_eight_devices() {
  device_builder d(mesh{{"a", 8}});
  const value_id x = d.input("x", {dtype::f32, {8}}, cut({{0, 0}}));
  return d.output("y", d.b.emit(def<picky>, {x}), {8}, cut({{0, 0}})).done();
}
std::string thrown_by(const executable& f, const array& x) {
  try {
    f(std::vector<array>{x});
  } catch (const std::runtime_error& e) {
    return e.what();
  }
  return "nothing";
}

}  // namespace

TEST_CASE("a kernel that throws on any thread ends the run with its error and nothing else") {
  const array good = data::fill({dtype::f32, {8}}, [](std::int64_t i) { return double(i); });
  for (int threads : {1, 2, 3, 8, 16}) {
    CAPTURE(threads);
    const executable f(on_eight_devices(), {.threads = threads, .kernels = kernels});
    for (int device = 0; device < 8; ++device) {
      const array bad = data::fill({dtype::f32, {8}}, [&](std::int64_t i) {
        return i == device ? -double(i + 1) : double(i);
      });
      CHECK(thrown_by(f, bad) == "negative: " + std::to_string(-float(device + 1)));
      CHECK(equal(f(std::vector<array>{good})[0], good));
    }
    const array all = data::fill({dtype::f32, {8}}, [](std::int64_t) { return -1.; });
    for (int run = 0; run < 50; ++run) CHECK(thrown_by(f, all).substr(0, 9) == "negative:");
    CHECK(equal(f(std::vector<array>{good})[0], good));
  }
}

TEST_CASE("thread pool: every iteration runs once, after any failure, and in nested loops") {
  for (int threads : {1, 2, 5}) {
    run_detail::thread_pool pool(threads);
    for (int run = 0; run < 200; ++run) {
      std::vector<std::atomic<int>> met(97);
      const auto f = [&](int thread, std::int64_t i) {
        REQUIRE(thread < threads);
        ++met[static_cast<std::size_t>(i)];
        if (run % 3 == 0 && i % 31 == 30) throw i;
      };
      if (run % 3 == 0) {
        std::int64_t thrown = -1;
        try {
          pool.parallel_for(97, f);
        } catch (std::int64_t i) {
          thrown = i;
        }
        CHECK(thrown % 31 == 30);
        for (auto& n : met) CHECK(n <= 1);
      } else {
        pool.parallel_for(97, f);
        for (auto& n : met) CHECK(n == 1);
      }
    }
    std::atomic<int> inner{0};
    pool.parallel_for(10, [&](int, std::int64_t) {
      pool.parallel_for(10, [&](int thread, std::int64_t) {
        CHECK(thread == 0);
        ++inner;
      });
    });
    CHECK(inner == 100);
  }
}

#if defined(__linux__) && !defined(__SANITIZE_ADDRESS__)
namespace {

/// Returns the size of this process's address space, in bytes.
rlim_t address_space() {
  std::ifstream statm("/proc/self/statm");
  rlim_t pages = 0;
  statm >> pages;
  return pages * static_cast<rlim_t>(sysconf(_SC_PAGESIZE));
}
/// Limits the process to this number of bytes of additional address space.
class limited_memory {
 public:
  explicit limited_memory(rlim_t more) {
    getrlimit(RLIMIT_AS, &before_);
    rlimit limited = before_;
    limited.rlim_cur = address_space() + more;
    REQUIRE(setrlimit(RLIMIT_AS, &limited) == 0);
  }
  ~limited_memory() { setrlimit(RLIMIT_AS, &before_); }

 private:
  rlimit before_;
};

}  // namespace

TEST_CASE("R008: more threads than the system permits; then fewer") {
  const array x = data::fill({dtype::f32, {8}}, [](std::int64_t i) { return double(i); });
  const auto run = [&](int threads) {
    return message_of([&] {
      const executable f(on_eight_devices(), {.threads = threads, .kernels = kernels});
      CHECK(equal(f(std::vector<array>{x})[0], x));
    });
  };
  std::string said;
  {
    const limited_memory stacks_of_a_few(rlim_t{1} << 28);
    said = run(100000);
  }
  CAPTURE(said);
  const std::string begin = "R008 run: 100000 threads are too many for this system, which gives ";
  REQUIRE(said.find(begin) == 0);
  const int given = std::stoi(said.substr(begin.size()));
  CHECK(given >= 1);
  CHECK(given < 100000);
  CHECK(said == begin + std::to_string(given) + "; set run_options::threads to less");
  CHECK(run(4) == "no error");
}
#endif

TEST_CASE("a kernel that throws inside a loop of the program") {
  builder b;
  const value_id x = ops::parameter(b, "x", {dtype::f32, {4}});
  builder body;
  body.p.inputs = {body.p.append(def<op::parameter>, {}, {}, {dtype::i32, {}}),
                   body.p.append(def<op::parameter>, {}, {}, {dtype::f32, {4}})};
  const value_id v = body.emit(def<picky>, {body.p.inputs[1]});
  const value_id less = ops::subtract(body, v, ops::constant(body, {dtype::f32, {4}}, 1));
  body.p.outputs.push_back({less, {}});
  const value_id carried[] = {x};
  const value_id last = ops::scan(b, 5, false, {}, carried, {}, static_cast<program&&>(body.p));
  b.p.outputs.push_back({last, b.p.intern("last")});
  const executable f(b.p, {.threads = 4, .kernels = kernels});
  const auto from = [](double v) {
    return data::fill({dtype::f32, {4}}, [=](std::int64_t) { return v; });
  };
  CHECK(thrown_by(f, from(2)) == "negative: " + std::to_string(-1.f));
  CHECK(equal(f(std::vector<array>{from(9)})[0], from(4)));
}

namespace {

/// A user's own op with a nested program.
struct twice : op::control_op {
  static constexpr std::string_view name = "twice";
  static constexpr void infer(infer_context& c) {
    if (regions(c, name, 1, 1)) c.result = c.regions[0].output_type(0);
  }
  static constexpr void wires(const program&, op_id, wire_list& w) {
    w.add().operand(0).input(0, 0).output(0, 0).result(0);
  }
};
program twice_plus_one() {
  builder inner;
  const value_id x = ops::parameter(inner, "x", {dtype::f32, {4}});
  inner.p.outputs.push_back({ops::add(inner, x, x), {}});
  builder b;
  const value_id y = ops::parameter(b, "y", {dtype::f32, {4}});
  vec<program> list;
  list.push_back(inner.p);
  const value_id operands[] = {y};
  b.p.outputs.push_back(
      {b.emit(def<twice>, operands, {}, {}, static_cast<vec<program>&&>(list)), b.p.intern("z")});
  return b.p;
}

}  // namespace

TEST_CASE("R007: an op with nested programs that no backend can run") {
  const program p = twice_plus_one();
  REQUIRE(str(p.error.message) == "");
  const array x = data::fill({dtype::f32, {4}}, [](std::int64_t i) { return double(i); });
  const std::string expected =
      "R007 twice: it is unknown how this op runs its nested programs; call, case, while, scan are "
      "known: express it with them";
  CHECK(message_of([&] { evaluate(p, x); }) == expected);
  const mesh m{{"a", 2}};
  const auto r = partition(p, m, schedule(manual("a", {{"y", 0}})));
  CHECK(message_of([&] { emulate(r, x); }) == expected);
  CHECK(message_of([&] { temporal(r, x); }) == expected);
}

namespace {

/// Sums of two inputs: n by n elements from 2 n elements.
program outer_sum(std::int64_t n) {
  builder b;
  const value_id x = ops::parameter(b, "x", {dtype::f32, {n}});
  const std::int64_t rows[] = {0}, columns[] = {1}, both[] = {0, 1}, swapped[] = {1, 0};
  const value_id left = ops::broadcast_in_dim(b, x, {n, n}, rows),
                 right = ops::broadcast_in_dim(b, x, {n, n}, columns);
  const value_id added = ops::add(b, left, right);
  b.name_last("table");
  const value_id table = ops::transpose(b, added, swapped);
  b.p.outputs.push_back({ops::reduce(b, table, combiner::add, both), b.p.intern("sum")});
  return b.p;
}

}  // namespace

TEST_CASE("R009: more memory than available; the error names the value") {
  // 2^60 bytes and more, which no machine has. Each of 65536 devices has its own.
  const program great = outer_sum(std::int64_t{1} << 29);
  REQUIRE(str(great.error.message) == "");
  const std::string said = message_of([&] { executable f(great); });
  CAPTURE(said);
  CHECK(said.find("R009 run: the program needs ") == 0);
  CHECK(said.find(" bytes; the machine has left ") != std::string::npos);
  CHECK(said.find("\"table\" (add, tensor<536870912x536870912xf32>), takes 1152921504606846976") !=
        std::string::npos);
  CHECK(message_of([&] {
          array(tensor_type{dtype::f64, {std::int64_t{1} << 50}});
        }).find("R009 memory: ") == 0);
  CHECK(message_of([&] {
          array(tensor_type{dtype::f64, {std::int64_t{1} << 40, std::int64_t{1} << 40}});
        }).find("R009 memory: >= 2^63 - 1 bytes") == 0);
}

TEST_CASE("R009: run_options::memory, to the byte") {
  const program small = outer_sum(64);
  const array x = data::fill({dtype::f32, {64}}, [](std::int64_t i) { return double(i); });
  const std::string said = message_of([&] { evaluate(small, run_options{.memory = 100}, x); });
  CAPTURE(said);
  CHECK(said.find("run_options::memory allows 100; the largest value, \"table\"") !=
        std::string::npos);
  const auto need = std::stoll(said.substr(std::string("R009 run: the program needs ").size()));
  CHECK(need >= executable(small).workspace_bytes());
  CHECK(message_of([&] { evaluate(small, run_options{.memory = need}, x); }) == "no error");
  CHECK(message_of([&] { evaluate(small, run_options{.memory = need - 1}, x); }) != "no error");
}

TEST_CASE("R009: thousands of devices that need more than the available memory together") {
  device_builder d(mesh{{"a", std::int64_t{1} << 20}, {"b", std::int64_t{1} << 20}});
  const tensor_type global{dtype::f32, {std::int64_t{1} << 44}};
  const layout l = cut({{0, 0}, {0, 1}});
  const value_id x = d.input("x", global, l);
  d.output("y", d.b.emit(def<picky>, {x}), global.shape, l);
  const std::string said = message_of([&] { executable f(d.done(), {.kernels = kernels}); });
  CAPTURE(said);
  CHECK(said.find("\"x\" (parameter, tensor<16xf32>, 1099511627776 copies)") != std::string::npos);
}
