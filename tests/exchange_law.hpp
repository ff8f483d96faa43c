/// The law of transports: over each transport, every collective gives the bits that a process with
/// all devices computes. Random collectives, their operands, and the comparison.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <random>
#include <vector>

#include <partita/run/interpreter.hpp>

namespace exchange_law {

using namespace partita;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// A random collective, its operands, and their values on all devices of a mesh; the same for a
/// seed in every process.
struct random_exchange {
  std::mt19937 random;
  mesh m;
  collective what;
  std::vector<run_detail::collective_operand> operands;

  /// On a random mesh, or on this one.
  explicit random_exchange(unsigned seed, const mesh& on = {}) : random(seed), m(on) {
    if (m.rank == 0) draw_mesh();
    draw_collective();
    const bool many = what.kind == collective::all_reduce && draw(0, 1) == 0;
    const int count = many ? draw(2, 3) : draw(1, 2);
    for (int k = 0; k < count; ++k) operands.push_back(draw_operand());
    draw_values();
  }
  /// Returns the memory of a device's operand.
  const std::byte* copy(std::size_t k, const run_detail::coordinates& c) const {
    const auto& x = operands[k];
    return values_[k].get() + run_detail::device_set::all(m).copy_at(x.from_axes, c) *
                                  run_detail::padded_bytes(x.from);
  }
  int draw(int from, int to) { return std::uniform_int_distribution<int>(from, to)(random); }
  std::int64_t pick(std::initializer_list<std::int64_t> list) {
    return list.begin()[draw(0, static_cast<int>(list.size()) - 1)];
  }

 private:
  static constexpr int rank_ = 3;  // of all operands

  void draw_mesh() {
    const int rank = draw(1, 3);
    for (int a = 0; a < rank; ++a)
      m.push_back({std::string(1, static_cast<char>('A' + a)), pick({1, 2, 2, 4})});
    if (m.size(0) == 4 && draw(0, 2) == 0) m.split(0, 2);
  }
  void draw_collective() {
    const int kind = draw(0, 8);  // most often a sum over devices
    what.kind = kind > 5 ? collective::all_reduce : static_cast<collective::kind_type>(kind);
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
    x.from.element = types[draw(0, 1) == 0 ? draw(0, 3) : draw(4, 12)];
    if (operands.empty()) {
      using enum combiner;
      const bool number = x.from.element != dtype::boolean;
      constexpr combiner of_all[] = {add, multiply, max, min, logical_and, logical_or};
      what.combine = of_all[std::max(0, draw(-2, is_floating(x.from.element) ? 3 : 5))];
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
  /// Draws any bits. For every second floating-point operand, draws numbers of similar size, whose
  /// sum depends on the order.
  void draw_values() {
    for (const auto& x : operands) {
      const std::int64_t bytes =
          run_detail::padded_bytes(x.from) * run_detail::device_set::all(m).copies(x.from_axes);
      values_.push_back(run_detail::allocate(bytes));
      std::byte* const begin = values_.back().get();
      const int most = x.from.element == dtype::boolean ? 1 : 255;
      for (std::int64_t i = 0; i < bytes; ++i) begin[i] = static_cast<std::byte>(draw(0, most));
      if (!is_floating(x.from.element) || draw(0, 1) == 0) continue;
      const std::int64_t size = size_of(x.from.element);
      for (std::int64_t i = 0; i + size <= bytes; i += size)
        put(begin + i, x.from.element, static_cast<float>(draw(-1 << 22, 1 << 22)) / 3e6f);
    }
  }
  static void put(std::byte* to, dtype element, float value) {
    const auto copy = [&](const auto& x) { std::memcpy(to, &x, sizeof x); };
    if (element == dtype::f64) copy(static_cast<double>(value) / 3);
    if (element == dtype::f32) copy(value);
    if (element == dtype::bf16) copy(bf16(value));
    if (element == dtype::f16) copy(f16(value));
  }

  std::vector<run_detail::buffer> values_;  // by operand: all copies on the mesh
};

using memory = std::vector<run_detail::buffer>;

/// Returns the results of one process, by operand: all copies.
inline memory run_one(const random_exchange& e, run_detail::transport& t) {
  const auto& devices = t.devices();
  memory in, out;
  std::vector<const std::byte*> from;
  std::vector<std::byte*> to;
  for (std::size_t k = 0; k < e.operands.size(); ++k) {
    const auto& x = e.operands[k];
    const std::int64_t bytes = run_detail::padded_bytes(x.from);
    in.push_back(run_detail::allocate(bytes * devices.copies(x.from_axes)));
    for (std::int64_t i = 0; i < devices.copies(x.from_axes); ++i)
      std::memcpy(in[k].get() + i * bytes, e.copy(k, devices.coordinates_of(x.from_axes, i)),
                  at(bytes));
    out.push_back(run_detail::allocate(run_detail::padded_bytes(x.to) * devices.copies(x.to_axes)));
    from.push_back(in[k].get());
    to.push_back(out[k].get());
  }
  run_detail::thread_pool alone(1);
  scratch mine, messages;
  const run_detail::collective_run run(devices, e.what, e.operands, &run_detail::find_combine);
  for (int again = 0; again < 2; ++again)
    run.run(t, from, to, alone, std::span(&mine, 1), messages);
  return out;
}

/// True if a process with these devices has computed the bits of the process with all devices.
inline bool same_bits(const random_exchange& e, const run_detail::device_set& devices,
                      const memory& got, const memory& want) {
  for (std::size_t k = 0; k < e.operands.size(); ++k) {
    const auto& x = e.operands[k];
    const std::int64_t bytes = run_detail::padded_bytes(x.to);
    for (std::int64_t i = 0; i < devices.copies(x.to_axes); ++i) {
      const std::int64_t there =
          run_detail::device_set::all(e.m).copy_at(x.to_axes, devices.coordinates_of(x.to_axes, i));
      if (std::memcmp(got[k].get() + i * bytes, want[k].get() + there * bytes, at(x.to.bytes())) !=
          0)
        return false;
    }
  }
  return true;
}

}  // namespace exchange_law
