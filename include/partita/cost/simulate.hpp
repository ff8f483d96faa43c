/// A simulator for the time of a device-local program on a machine.
///
/// Source    the roofline: Williams, Waterman, Patterson, CACM 2009; collectives:
///           collective_time.hpp
#pragma once

#include <cstdint>

#include <partita/cost/collective_time.hpp>
#include <partita/cost/device.hpp>
#include <partita/ir/fusion.hpp>
#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/trip_count.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/heap.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Options of `simulate`.
struct simulation_options {
  /// True if collectives may run beside any kernel that does not wait for them, wherever they are
  /// in the program. A kernel or collective then begins as soon as its operands are available and
  /// the device's units or links are free; if several can begin, the first in the program does. If
  /// false, everything runs in program order, and only a collective with a `done` runs beside the
  /// ops between the two.
  bool overlap = false;
};

/// Figures of a run on one device; all devices do the same.
struct simulation {
  double time = 0;                       ///< seconds
  double compute = 0;                    ///< seconds in kernels
  double communication = 0;              ///< seconds in collectives
  double product_flops = 0;              ///< of products, including recomputed ones
  double model_flops = 0;                ///< of products, without recomputed ones
  double bytes = 0;                      ///< read and written by kernels
  double ideal = 0;                      ///< seconds of all products at the device's peak
  double model_ideal = 0;                ///< seconds of products without recomputed ones, at peak
  std::int64_t messages[max_axes] = {};  ///< sent, by axis of the program's mesh
  failure error;

  /// Model FLOPs utilization: time of the model's products at peak, divided by the time of the
  /// step; 0 to 1.
  constexpr double mfu() const { return time > 0 ? model_ideal / time : 0; }
  /// Hardware FLOPs utilization: the same for all products that are computed.
  constexpr double hfu() const { return time > 0 ? ideal / time : 0; }
  /// Returns the seconds of communication that no kernel hides.
  constexpr double exposed() const { return time > compute ? time - compute : 0; }
};

/// An event of a run: a kernel or a collective.
struct simulated_op {
  op_id op = -1;
  double begin = 0, end = 0;  ///< seconds
  bool communicates = false;
};

namespace cost_detail {

/// Returns the fraction of a dimension that is useful work in blocks of `tile`; the last block may
/// not be full.
constexpr double filled(std::int64_t extent, std::int64_t tile) {
  if (extent <= 0 || tile <= 1) return 1;
  const std::int64_t blocks = (extent + tile - 1) / tile;
  return static_cast<double>(extent) / static_cast<double>(blocks * tile);
}
/// Returns the fraction of the peak that a product of this shape attains. Dimensions fill blocks,
/// and a block of results is complete only after the pipeline of its sum has run full.
constexpr double product_efficiency(const product_shape& p, const device& d) {
  const double k = static_cast<double>(p.k), tile = static_cast<double>(d.tile);
  return filled(p.m, d.tile) * filled(p.n, d.tile) * (k / (k + tile / 2)) * d.product_part;
}

/// Returns the seconds to transpose operands and to assemble the rows of a product, on devices that
/// do so.
constexpr double gathering_seconds(const product_shape& p, dtype element, const device& d) {
  if (d.window == 0) return 0;
  const double size = static_cast<double>(size_of(element)) / d.stream();
  const double order = 2 * static_cast<double>(p.moved) * size;
  if (p.pieces == 0) return order;
  const double row = static_cast<double>(p.pieces) * d.window + static_cast<double>(p.k) * size;
  return order + static_cast<double>(p.batch) * static_cast<double>(p.m) * row;
}
/// Seconds of a product at the device's peak, and with the efficiency of its shape.
struct product_seconds {
  double ideal = 0, real = 0;
};
constexpr product_seconds seconds_of(const product_shape& shape, double flops, dtype element,
                                     const device& d) {
  const double ideal = flops / d.peak(element);
  return {ideal, ideal / product_efficiency(shape, d) + gathering_seconds(shape, element, d)};
}
/// Returns the seconds of a kernel from the seconds of its products, its other operations and its
/// bytes.
constexpr double seconds_of_kernel(double products, double flops, double bytes, const device& d) {
  const double vector = d.vector > 0 ? d.vector : d.peak(dtype::f32);
  const double busy = products + flops / vector, stream = bytes / d.stream();
  return d.kernel + (busy > stream ? busy : stream);
}

struct waiting {
  double ready;
  int task;
  constexpr bool operator<(const waiting& b) const {
    return ready < b.ready || (ready == b.ready && task < b.task);
  }
};
/// A resource that does one thing at a time: the units that run kernels, or the links.
struct resource {
  double free = 0;
  heap<waiting> later;  ///< tasks whose operands are computed by then
  heap<int> now;        ///< tasks whose operands are available

  constexpr bool idle() const { return later.empty() && now.empty(); }
  /// Returns the time at which the next task can begin.
  constexpr double next() const {
    return now.empty() && later.least().ready > free ? later.least().ready : free;
  }
  /// Removes the first task in program order that can begin then.
  constexpr int take() {
    free = next();
    while (!later.empty() && later.least().ready <= free) now.push(later.pop().task);
    return now.pop();
  }
};

/// Runs a program on one device, op by op, with two clocks: one for kernels and one for
/// collectives.
template <class Event>
class simulator {
 public:
  constexpr simulator(const mesh& m, const machine& on, const simulation_options& options,
                      const Event& event)
      : mesh_(m), on_(on), options_(options), event_(event) {}

  /// Returns the figures of one run. `inputs` are known values of the program's inputs.
  constexpr simulation run(const program& p, span<const known_integer> inputs = {}) {
    simulation s;
    fused_kernels kernels(p);
    vec<task> tasks;
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (waits(p, o) && !options_.overlap) tasks.push_back({o, 0, false, false});
      if (!kernels.runs(o)) continue;
      const op_def& def = *p.ops[o].def;
      const bool communicates = def.collective && def.fusion == fusion_kind::none;
      const double sent = s.communication;
      const double took = communicates                ? add_collective(s, p, o)
                          : p.ops[o].region_count > 0 ? add_nested(s, p, o, inputs)
                                                      : add_kernel(s, p, kernels, o);
      tasks.push_back({o, took, communicates, s.communication > sent});
    }
    s.time = options_.overlap ? side_by_side(p, kernels, tasks) : in_order(p, tasks);
    return s;
  }

 private:
  struct task {
    op_id op;
    double took;
    bool communicates;
    bool needs_links;  ///< also true for ops whose nested programs communicate
  };
  /// True if an op waits for a collective, whose operands it keeps alive.
  static constexpr bool waits(const program& p, op_id o) {
    return p.ops[o].def->passes_on && p.ops[o].operand_count > p.ops[o].result_count;
  }
  constexpr double in_order(const program& p, const vec<task>& tasks) {
    double clock = 0, links = 0;
    vec<double> arrives;  // by op that another op waits for, else 0
    for (const task& t : tasks) {
      if (!waits(p, t.op)) continue;
      if (arrives.empty()) arrives.resize(p.ops.size(), 0);
      arrives[p.producers[first_operand(p, t.op)]] = -1;
    }
    for (const task& t : tasks) {
      if (waits(p, t.op)) {
        const double there = arrives[p.producers[first_operand(p, t.op)]];
        if (there > clock) clock = there;
        continue;
      }
      const double begin = t.needs_links && links > clock ? links : clock, end = begin + t.took;
      event_(p, simulated_op{t.op, begin, end, t.communicates});
      if (t.needs_links) links = end;
      if (t.communicates && !arrives.empty() && arrives[t.op] < 0)
        arrives[t.op] = end;
      else
        clock = end;
    }
    return clock > links ? clock : links;
  }
  /// Builds the users of each value in compressed rows; then the two resources take tasks as they
  /// become ready.
  constexpr double side_by_side(const program& p, fused_kernels& kernels, const vec<task>& tasks) {
    const int count = static_cast<int>(tasks.size());
    vec<int> of_op(p.ops.size(), -1), begin(tasks.size() + 1, 0), missing(tasks.size(), 0), users;
    for (int t = 0; t < count; ++t) of_op[tasks[t].op] = t;
    const auto for_each_maker = [&](int t, const auto& f) {
      kernels.for_each_read(tasks[t].op, [&](value_id v) {
        if (const int maker = of_op[p.producers[v]]; maker >= 0) f(maker);
      });
    };
    for (int t = 0; t < count; ++t)
      for_each_maker(t, [&](int maker) { ++begin[maker + 1], ++missing[t]; });
    for (int t = 0; t < count; ++t) begin[t + 1] += begin[t];
    users.resize(static_cast<std::size_t>(begin[count]), 0);
    vec<int> next = begin;
    for (int t = 0; t < count; ++t) for_each_maker(t, [&](int maker) { users[next[maker]++] = t; });
    resource units, links;
    vec<double> ready(tasks.size(), 0);
    const auto wait = [&](int t) {
      (tasks[t].communicates ? links : units).later.push({ready[t], t});
    };
    for (int t = 0; t < count; ++t)
      if (missing[t] == 0) wait(t);
    double end = 0;
    while (!units.idle() || !links.idle()) {
      const bool link = units.idle() || (!links.idle() && links.next() < units.next());
      resource& r = link ? links : units;
      const int t = r.take();
      const double began = r.free;
      r.free += tasks[t].took;
      end = r.free > end ? r.free : end;
      event_(p, simulated_op{tasks[t].op, began, r.free, link});
      for (int u = begin[t]; u < begin[t + 1]; ++u) {
        const int user = users[u];
        if (r.free > ready[user]) ready[user] = r.free;
        if (--missing[user] == 0) wait(user);
      }
    }
    return end;
  }

  const mesh& mesh_;
  const machine& on_;
  simulation_options options_;
  const Event& event_;
  vec<tensor_type> operands_, results_;

  constexpr cost_context context(const program& p, op_id o) {
    const op_node& n = p.ops[o];
    operands_.clear();
    results_.clear();
    for (int i = 0; i < n.operand_count; ++i)
      operands_.push_back(p.types[p.operand_list[n.operand_begin + i]]);
    cost_context c{operands_, p.types[n.result], p.attrs(o)};
    for (int r = 1; r < n.result_count; ++r) results_.push_back(p.types[n.result + r]);
    if (n.result_count > 1) c.more = {results_.data(), results_.size()};
    return c;
  }
  constexpr double add_collective(simulation& s, const program& p, op_id o) {
    std::int64_t bytes = 0;
    for (value_id v : p.operands(o)) bytes = saturating_add(bytes, p.types[v].bytes());
    const collective_work w = time_of(p.collective_of(o), bytes, mesh_, on_);
    for (int a = 0; a < max_axes; ++a) s.messages[a] = saturating_add(s.messages[a], w.messages[a]);
    s.communication += w.seconds;
    return w.seconds;
  }
  /// Returns the bytes that an op reads of an operand, which may be a part of it.
  static constexpr double read_of(const program& p, op_id o, value_id v) {
    const op_node& n = p.ops[o];
    const double all = static_cast<double>(p.types[v].bytes());
    if (!n.def->reads_part) return all;
    const double part = static_cast<double>(p.types[n.result].bytes());
    return part < all ? part : all;
  }
  constexpr double add_kernel(simulation& s, const program& p, fused_kernels& kernels, op_id o) {
    const op_node& n = p.ops[o];
    double bytes = 0, flops = 0, products = 0;
    if (n.def->in_place && !n.def->elementwise) {
      bytes = static_cast<double>(n.def->bytes(context(p, o)));
    } else {
      for (int r = 0; r < n.result_count; ++r)
        bytes += static_cast<double>(p.types[n.result + r].bytes());
      kernels.for_each_read_by(o, [&](op_id by, value_id v) { bytes += read_of(p, by, v); });
    }
    kernels.for_each_op(o, [&](op_id part) {
      const cost_context c = context(p, part);
      const double work = static_cast<double>(p.ops[part].def->flops(c));
      const product_shape shape = p.ops[part].def->product(c);
      if (shape.batch == 0 || work == 0) {
        flops += work;
        return;
      }
      const product_seconds takes =
          seconds_of(shape, work, p.types[first_operand(p, part)].element, on_.device);
      products += takes.real;
      s.product_flops += work;
      s.ideal += takes.ideal;
      if (p.ops[part].marks.again) return;
      s.model_flops += work;
      s.model_ideal += takes.ideal;
    });
    s.bytes += bytes;
    const double took = seconds_of_kernel(products, flops, bytes, on_.device);
    s.compute += took;
    return took;
  }
  static constexpr value_id first_operand(const program& p, op_id o) {
    return p.operand_list[p.ops[o].operand_begin];
  }
  /// Adds nested programs. A loop takes its trip count times the time of its body, or one iteration
  /// if its length is unknown; of branches, the longest counts.
  constexpr double add_nested(simulation& s, const program& p, op_id o,
                              span<const known_integer> inputs) {
    wire_list list;
    list.inputs = inputs;
    p.ops[o].def->wires(p, o, list);
    simulation once;
    for (int r = 0; r < p.ops[o].region_count; ++r) {
      const simulation each = run(p.region(o, r), known_inputs(p, o, r, list));
      if (!list.branches)
        add(once, each, 1);
      else if (each.time > once.time)
        once = each;
    }
    add(s, once, list.trips);
    return once.time * static_cast<double>(list.trips);
  }
  static constexpr void add(simulation& s, const simulation& each, std::int64_t trips) {
    const double times = static_cast<double>(trips);
    s.compute += times * each.compute;
    s.communication += times * each.communication;
    s.product_flops += times * each.product_flops;
    s.model_flops += times * each.model_flops;
    s.bytes += times * each.bytes;
    s.ideal += times * each.ideal;
    s.model_ideal += times * each.model_ideal;
    s.time += times * each.time;
    for (int a = 0; a < max_axes; ++a)
      s.messages[a] = saturating_add(s.messages[a], saturating_multiply(trips, each.messages[a]));
  }
};

}  // namespace cost_detail

/// Simulates one run, and calls event(program, simulated_op) for each kernel and each collective of
/// the program. Nested programs report one trip, with times that start at 0.
///
/// Cost      linear in ops and in the kernels that they fuse to, independent of the number of
///           devices
/// Errors    D001 a figure of the device is missing, D002 an axis has no link
template <class Event>
constexpr simulation simulate(const device_program& d, const machine& on,
                              const simulation_options& options, const Event& event) {
  simulation s;
  s.error = validate(on, d.mesh);
  if (s.error) return s;
  return cost_detail::simulator<Event>(d.mesh, on, options, event).run(d.local);
}
constexpr simulation simulate(const device_program& d, const machine& on,
                              const simulation_options& options = {}) {
  return simulate(d, on, options, [](const program&, const simulated_op&) {});
}

}  // namespace partita
