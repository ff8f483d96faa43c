// The transport as an interface: a thread per device, none of which sees the memory of another one.
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/transport/in_process.hpp>

#include "../data.hpp"

using namespace partita;
using data::str;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// What the threads share: where each publishes its operand.
struct meeting_point {
  const mesh& m;
  axis_set all;
  std::barrier<> everyone;
  std::vector<std::vector<std::byte>> published;

  explicit meeting_point(const mesh& on)
      : m(on), everyone(static_cast<std::ptrdiff_t>(on.devices())), published(at(on.devices())) {
    for (int a = 0; a < m.rank; ++a)
      if (m.size(a) > 1) all.insert(a);
  }
};
/// One device: knows the meeting point and its number.
struct device_thread {
  meeting_point& shared;
  std::int64_t number;

  static void run(void* self, const run_detail::device_set&, const run_detail::exchange& e,
                  run_detail::thread_pool&, std::span<scratch> memory) {
    const auto& me = *static_cast<device_thread*>(self);
    meeting_point& s = me.shared;
    const std::int64_t from = run_detail::padded_bytes(e.from), to = run_detail::padded_bytes(e.to);
    s.published[at(me.number)].assign(e.operand, e.operand + from);
    s.everyone.arrive_and_wait();
    const std::int64_t n = s.m.devices();
    const run_detail::buffer operands = run_detail::allocate(n * from),
                             results = run_detail::allocate(n * to);
    for (std::int64_t i = 0; i < n; ++i)
      std::memcpy(operands.get() + i * from, s.published[at(i)].data(), at(from));
    s.everyone.arrive_and_wait();
    memory[0].reset();
    const run_detail::exchange all{e.what, e.from,         e.to,         s.all,
                                   s.all,  operands.get(), results.get()};
    run_detail::collective_copy(s.m, all, me.number).compute(memory[0]);
    std::memcpy(e.result, results.get() + me.number * to, at(to));
  }
};

array local_piece(const mesh& m, const layout& l, const array& global, const shape& local,
                  const run_detail::coordinates& c) {
  array piece(tensor_type{global.element(), local});
  const run_detail::position start = run_detail::start_of(m, l, local, c);
  run_detail::copy_box(size_of(global.element()), local, global.shape(), start.at, global.bytes(),
                       local, nullptr, piece.mutable_bytes());
  return piece;
}

/// Runs a device program with one thread per device; every device's outputs must be its pieces of
/// what the emulator gives, to the bit.
void check_threads(const device_program& d, const std::vector<array>& inputs) {
  const auto whole = executable(d)(inputs);
  meeting_point shared(d.mesh);
  std::vector<std::vector<array>> made(at(d.mesh.devices()));
  std::vector<std::thread> threads;
  for (std::int64_t number = 0; number < d.mesh.devices(); ++number)
    threads.emplace_back([&, number] {
      const auto here = run_detail::coordinates_of(d.mesh, shared.all, number);
      device_thread me{shared, number};
      const run_detail::transport t{run_detail::device_set::one(d.mesh, here), &me,
                                    &device_thread::run};
      std::vector<axis_set> axes;
      std::vector<array> mine;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        axes.push_back(partita::axes_of(d.mesh, d.inputs[i]));
        mine.push_back(local_piece(d.mesh, d.inputs[i], inputs[i],
                                   d.local.input_type(static_cast<int>(i)).shape, here));
      }
      const run_detail::frame f(d.local, t, axes, {}, true, true);
      run_detail::thread_pool alone(1);
      const auto w = f.make_workspace(1);
      f.run(*w, alone, [&](const run_detail::step& s, run_detail::workspace& space) {
        space.base[at(d.local.op(s.op).result)] = mine[at(s.input)].bytes();
      });
      for (const auto& out : d.local.outputs) {
        array a(d.local.type(out.value));
        std::memcpy(a.mutable_bytes(), f.copy_of(out.value, here, *w),
                    at(d.local.type(out.value).bytes()));
        made[at(number)].push_back(a);
      }
    });
  for (auto& thread : threads) thread.join();
  for (std::int64_t number = 0; number < d.mesh.devices(); ++number) {
    const auto here = run_detail::coordinates_of(d.mesh, shared.all, number);
    for (std::size_t i = 0; i < whole.size(); ++i) {
      const array& piece = made[at(number)][i];
      CAPTURE(number);
      CAPTURE(i);
      CHECK(std::memcmp(local_piece(d.mesh, d.outputs[i], whole[i], piece.shape(), here).bytes(),
                        piece.bytes(), at(piece.type().bytes())) == 0);
    }
  }
}

array numbers(const shape& s) {
  return data::fill({dtype::f32, s},
                    [](std::int64_t i) { return 0.3 * static_cast<double>(i * 7 % 11) - 1; });
}

}  // namespace

TEST_CASE("a thread per device: gathers, reductions and slices") {
  const program p =
      trace([](auto x, auto w1, auto w2) { return matmul(tanh(matmul(x, w1)), w2); },
            input<float, 8, 4>("x"), input<float, 4, 16>("w1"), input<float, 16, 4>("w2"));
  const mesh m{{"B", 2}, {"M", 4}};
  const auto bp = manual("B", {{"x", 0}}), mp = manual("M", {{"w1", 1}});
  const auto z3 = manual("B", {{"w1", 0}, {"w2", 1}});
  const std::vector<array> inputs = {numbers({8, 4}), numbers({4, 16}), numbers({16, 4})};
  check_threads(partition(p, m, schedule(bp)).device, inputs);
  check_threads(partition(p, m, schedule(bp, mp)).device, inputs);
  check_threads(partition(p, m, schedule(bp, mp, z3)).device, inputs);
}
