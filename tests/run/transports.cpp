// Every collective over every transport: all devices in this process, a thread per device, and
// threads that hold blocks of devices. (Over MPI: tests/mpi.)
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <thread>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/transport/threads.hpp>

#include "../data.hpp"

using namespace partita;
using data::str;

namespace {

std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// What each process of `count` gets of the outputs: [process][output], from shards of the inputs.
std::vector<std::vector<run_detail::distributed_array>> run_in_threads(
    const device_program& d, const std::vector<array>& inputs, std::int64_t count) {
  run_detail::thread_mailbox shared;
  std::vector<std::vector<run_detail::distributed_array>> made(at(count));
  std::vector<std::thread> threads;
  std::vector<std::string> errors(at(count));
  for (std::int64_t number = 0; number < count; ++number)
    threads.emplace_back([&, number] {
      try {
        const auto devices = run_detail::device_set::block(d.mesh, number, count);
        run_detail::device_run run(
            d, {}, std::make_unique<run_detail::thread_transport>(devices, shared), {});
        std::vector<run_detail::distributed_array> mine;
        std::vector<const run_detail::distributed_array*> given;
        std::vector<axis_set> axes;
        for (std::size_t i = 0; i < inputs.size(); ++i)
          mine.push_back(run_detail::cut(inputs[i], d.inputs[i], devices));
        for (const auto& each : mine) given.push_back(&each);
        for (const auto& l : d.outputs) axes.push_back(axes_of(d.mesh, l));
        for (int again = 0; again < 2; ++again) made[at(number)] = run(given, axes);
      } catch (const std::exception& e) {
        errors[at(number)] = e.what();
        shared.close();
      }
    });
  for (auto& each : threads) each.join();
  for (const auto& each : errors)
    if (!each.empty()) throw error(std::string_view(each));
  return made;
}

/// Runs a device program with as many processes, each a thread; each one's outputs must be its
/// shards of what the emulator computes, to the bit.
void check_threads(const device_program& d, const std::vector<array>& inputs, std::int64_t count) {
  const auto global = executable(d)(inputs);
  const auto made = run_in_threads(d, inputs, count);
  CAPTURE(count);
  for (std::int64_t number = 0; number < count; ++number) {
    const auto devices = run_detail::device_set::block(d.mesh, number, count);
    for (std::size_t i = 0; i < global.size(); ++i) {
      const auto want = run_detail::cut(global[i], d.outputs[i], devices);
      const auto& got = made[at(number)][i];
      REQUIRE(got.copies.size() == want.copies.size());
      for (std::size_t k = 0; k < want.copies.size(); ++k) {
        CAPTURE(number);
        CAPTURE(i);
        CHECK(std::memcmp(want.copies[k].bytes(), got.copies[k].bytes(),
                          at(want.copies[k].type().bytes())) == 0);
      }
    }
  }
}
void check_threads(const device_program& d, const std::vector<array>& inputs) {
  for (std::int64_t count = 2; count <= d.mesh.devices(); count *= 2)
    check_threads(d, inputs, count);
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

namespace {

/// A random collective, its operands, and their values on all devices of a mesh.
struct random_exchange {
  std::mt19937 random;
  mesh m;
  collective what;
  std::vector<run_detail::collective_operand> operands;

  explicit random_exchange(unsigned seed) : random(seed) {
    const int rank = draw(1, 3);
    for (int a = 0; a < rank; ++a)
      m.push_back({std::string(1, static_cast<char>('A' + a)), pick({1, 2, 2, 4})});
    if (m.size(0) == 4 && draw(0, 2) == 0) m.split(0, 2);
    draw_collective();
    const int count = what.kind == collective::all_reduce ? draw(1, 3) : draw(1, 2);
    for (int k = 0; k < count; ++k) operands.push_back(draw_operand());
  }
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }
  std::int64_t pick(std::initializer_list<std::int64_t> list) {
    return list.begin()[draw(0, static_cast<int>(list.size()) - 1)];
  }

 private:
  static constexpr int rank_ = 3;  // of all operands

  void draw_collective() {
    what.kind = static_cast<collective::kind_type>(draw(0, 5));
    std::vector<int> axes;
    for (int a = 0; a < m.rank; ++a)
      if (draw(0, 2) > 0) axes.push_back(a);
    if (axes.empty()) axes.push_back(0);
    std::shuffle(axes.begin(), axes.end(), random);
    const bool whole = what.kind == collective::all_reduce || what.kind == collective::permute;
    what.gathered = what.kind == collective::all_to_all ? draw(0, rank_ - 1) : no_dim;
    what.sliced = what.kind == collective::all_to_all ? (what.gathered + 1) % rank_ : no_dim;
    for (const int a : axes)
      what.axes.push_back(a, whole                                 ? 0
                             : what.kind == collective::all_to_all ? what.sliced
                                                                   : draw(0, rank_ - 1));
    what.map.form = static_cast<device_map::form_type>(draw(0, 3));
    what.map.shift = draw(-3, 3);
    if (what.kind != collective::permute || what.map.form != device_map::renumbered) return;
    std::shuffle(axes.begin(), axes.end(), random);
    for (const int a : axes) what.from.push_back(a, 0);
  }
  run_detail::collective_operand draw_operand() {
    constexpr dtype types[] = {dtype::f32, dtype::f64, dtype::bf16,   dtype::f16, dtype::i8,
                               dtype::i16, dtype::i32, dtype::i64,    dtype::u8,  dtype::u16,
                               dtype::u32, dtype::u64, dtype::boolean};
    run_detail::collective_operand x;
    x.from.element = types[draw(0, 12)];
    if (operands.empty()) {
      using enum combiner;
      const bool number = x.from.element != dtype::boolean;
      constexpr combiner of_all[] = {add, multiply, max, min, logical_and, logical_or};
      what.combine = of_all[draw(0, is_floating(x.from.element) ? 3 : 5)];
      if (!number) what.combine = of_all[draw(4, 5)];
    } else {  // a combiner that fits one type fits all of its kind
      x.from.element = operands[0].from.element;
      if (is_floating(x.from.element)) x.from.element = types[draw(0, 3)];
    }
    for (int d = 0; d < rank_; ++d)
      x.from.shape.push_back(pick({1, 2, 3, 5, 8, d == 0 ? 700 : 4, d == 1 ? 0 : 1}));
    const bool cuts = what.kind == collective::all_slice || what.kind == collective::all_to_all ||
                      what.kind == collective::reduce_scatter;
    if (cuts)
      for (const auto& e : what.axes) x.from.shape[e.dim] *= m.size(e.axis);
    x.to = {x.from.element, what.after(x.from.shape, m)};
    for (int a = 0; a < m.rank; ++a)
      if (m.size(a) > 1 && draw(0, 3) > 0) x.from_axes.insert(a);
    x.to_axes = varies_after(m, what, x.from_axes);
    return x;
  }
};

using memory = std::vector<run_detail::buffer>;

/// The results of one process, by operand: all copies. `copy(k, c)`: an operand of a device.
memory run_one(
    const random_exchange& e, run_detail::transport& t,
    const std::function<const std::byte*(std::size_t, const run_detail::coordinates&)>& copy) {
  const auto& devices = t.devices();
  memory in, out;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t k = 0; k < e.operands.size(); ++k) {
    const auto& x = e.operands[k];
    const std::int64_t bytes = run_detail::padded_bytes(x.from);
    in.push_back(run_detail::allocate(bytes * devices.copies(x.from_axes)));
    for (std::int64_t i = 0; i < devices.copies(x.from_axes); ++i)
      std::memcpy(in[k].get() + i * bytes, copy(k, devices.coordinates_of(x.from_axes, i)),
                  at(bytes));
    out.push_back(run_detail::allocate(run_detail::padded_bytes(x.to) * devices.copies(x.to_axes)));
    from.push_back(in[k].get());
    to.push_back(out[k].get());
  }
  run_detail::thread_pool alone(1);
  scratch mine, messages;
  const run_detail::collective_run run(devices, e.what, e.operands);
  for (int again = 0; again < 2; ++again)
    run.run(t, from, to, alone, std::span(&mine, 1), messages);
  return out;
}

/// Every process computes the same bits as the one that holds all devices.
void check_law(unsigned seed) {
  random_exchange e(seed);
  CAPTURE(seed);
  memory values;  // of all copies on the mesh
  for (const auto& x : e.operands) {
    const std::int64_t bytes =
        run_detail::padded_bytes(x.from) * run_detail::copies_over(e.m, x.from_axes);
    values.push_back(run_detail::allocate(bytes));
    for (std::int64_t i = 0; i < bytes; ++i)
      values.back().get()[i] =
          static_cast<std::byte>(x.from.element == dtype::boolean ? e.draw(0, 1) : e.draw(0, 255));
  }
  const auto copy = [&](std::size_t k, const run_detail::coordinates& c) {
    const auto& x = e.operands[k];
    return values[k].get() +
           run_detail::copy_at(e.m, x.from_axes, c) * run_detail::padded_bytes(x.from);
  };
  run_detail::in_process all(e.m);
  const memory want = run_one(e, all, copy);
  for (std::int64_t count = 2; count <= e.m.devices(); count *= 2) {
    run_detail::thread_mailbox shared;
    std::vector<memory> got(at(count));
    std::vector<std::thread> threads;
    for (std::int64_t p = 0; p < count; ++p)
      threads.emplace_back([&, p] {
        run_detail::thread_transport t(run_detail::device_set::block(e.m, p, count), shared);
        got[at(p)] = run_one(e, t, copy);
      });
    for (auto& each : threads) each.join();
    for (std::int64_t p = 0; p < count; ++p) {
      const auto devices = run_detail::device_set::block(e.m, p, count);
      for (std::size_t k = 0; k < e.operands.size(); ++k) {
        const auto& x = e.operands[k];
        const std::int64_t bytes = run_detail::padded_bytes(x.to);
        for (std::int64_t i = 0; i < devices.copies(x.to_axes); ++i) {
          const std::int64_t there =
              run_detail::copy_at(e.m, x.to_axes, devices.coordinates_of(x.to_axes, i));
          const bool same = std::memcmp(got[at(p)][k].get() + i * bytes,
                                        want[k].get() + there * bytes, at(x.to.bytes())) == 0;
          CAPTURE(count);
          CAPTURE(p);
          CAPTURE(k);
          CAPTURE(i);
          CAPTURE(static_cast<int>(e.what.kind));
          REQUIRE(same);
        }
      }
    }
  }
}

}  // namespace

TEST_CASE("law: every collective gives the same bits over every transport") {
  for (unsigned seed = 0; seed < 250; ++seed) check_law(seed);
}
