/// The simulator's prediction of what a run on an emulated mesh costs on this CPU.
///
/// One thread does the work of all devices and holds their memory. The emulator computes and stores
/// each distinct shard of a value once, so a replicated value counts once. The time of a kernel is
/// its simulated time on one device times the number of distinct shards of its result. The time of
/// a collective is the bytes it reads to make the distinct shards of its result, over the link's
/// bandwidth, plus the link's latency. With n threads the time is at best the sum of these over n.
#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <vector>

#include <partita/cost/simulate.hpp>
#include <partita/ir/fusion.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/run/device/control_wires.hpp>
#include <partita/run/memory/device_set.hpp>

namespace bench {

namespace pt = partita;

class emulated_run {
 public:
  emulated_run(const pt::device_program& d, const pt::machine& on) : d_(d), on_(on) {
    const auto note = [&](const pt::program& p, const pt::simulated_op& each) {
      auto& seconds = seconds_[&p];
      seconds.resize(static_cast<std::size_t>(p.op_count()), 0);
      seconds[static_cast<std::size_t>(each.op)] = each.end - each.begin;
    };
    pt::simulate(d, on, {}, note).error.raise();
  }
  /// Returns the CPU time of one thread, in seconds.
  double seconds() const { return seconds(d_.local, input_axes()); }
  /// Returns the memory of a run without the user's arrays, in bytes: the shards of sharded inputs,
  /// the values at the peak, and the arrays assembled from shards of outputs. The user's arrays are
  /// never overwritten.
  std::int64_t bytes() const {
    const pt::program p = unnamed(d_.local);
    const axes_list inputs = input_axes(), axes = varying(p, inputs);
    std::int64_t sum = peak(p, inputs);
    for (int i = 0; i < p.input_count(); ++i)
      if (!inputs[at(i)].empty()) sum += copies(inputs[at(i)]) * p.input_type(i).bytes();
    for (std::size_t i = 0; i < p.outputs.size(); ++i)
      if (!pt::axes_of(mesh(), d_.outputs[i]).empty()) sum += d_.output_types[i].bytes();
    return sum;
  }

 private:
  using axes_list = pt::vec<pt::axis_set>;

  const pt::device_program& d_;
  const pt::machine& on_;
  std::map<const pt::program*, std::vector<double>> seconds_;  // per op, on one device

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  const pt::mesh& mesh() const { return d_.mesh; }
  std::int64_t copies(pt::axis_set s) const {
    return pt::run_detail::device_set::all(mesh()).copies(s);
  }
  axes_list varying(const pt::program& p, const axes_list& inputs) const {
    return pt::varying_values(p, mesh(), {inputs.data(), inputs.size()});
  }
  axes_list input_axes() const {
    axes_list axes;
    for (const auto& l : d_.inputs) axes.push_back(pt::axes_of(mesh(), l));
    return axes;
  }
  /// Removes the names of the outputs, so that no output is the next state of an input.
  static pt::program unnamed(pt::program p) {
    for (auto& out : p.outputs) out.name = {};
    return p;
  }
  /// Calls f(nested program, axes of its inputs) for each nested program of an op.
  template <class F>
  void for_each_nested(const pt::program& p, pt::op_id o, const axes_list& axes, const F& f) const {
    axes_list operands;
    for (pt::value_id v : p.operands(o)) operands.push_back(axes[at(v)]);
    const auto wires = pt::run_detail::run_wires(p, o, mesh(), operands);
    for (int r = 0; r < p.op(o).region_count; ++r)
      f(p.region(o, r), pt::run_detail::input_axes(wires, r, p.region(o, r).inputs.size()));
  }

  double seconds(const pt::program& p, const axes_list& inputs) const {
    const axes_list axes = varying(p, inputs);
    const auto found = seconds_.find(&p);
    if (found == seconds_.end()) return 0;
    double sum = 0;
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      const double one = found->second[at(o)];
      const pt::op_node& n = p.op(o);
      if (n.region_count > 0)
        sum += nested_seconds(p, o, axes);
      else if (one > 0)
        sum += n.def->collective && n.def->fusion == pt::fusion_kind::none
                   ? exchange_seconds(p, o, axes)
                   : one * static_cast<double>(copies(axes[at(n.result)]));
    }
    return sum;
  }
  double nested_seconds(const pt::program& p, pt::op_id o, const axes_list& axes) const {
    pt::wire_list list;
    p.op(o).def->wires(p, o, list);
    double once = 0;
    for_each_nested(p, o, axes, [&](const pt::program& nested, const axes_list& inputs) {
      const double each = seconds(nested, inputs);
      once = list.branches ? std::max(once, each) : once + each;
    });
    return once * static_cast<double>(list.trips);
  }
  double exchange_seconds(const pt::program& p, pt::op_id o, const axes_list& axes) const {
    const pt::collective what = p.collective_of(o);
    const pt::op_node& n = p.op(o);
    double read = 0;
    for (int r = 0; r < n.result_count; ++r) {
      const std::int64_t from = p.type(p.operand(o, r)).bytes(), to = p.type(n.result + r).bytes();
      const std::int64_t each = what.kind == pt::collective::all_reduce
                                    ? from * what.members(mesh())
                                : what.reduces() ? from
                                                 : to;
      read += static_cast<double>(each * copies(axes[at(n.result + r)]));
    }
    return on_.device.near.latency + read / on_.device.near.bandwidth;
  }

  /// Returns the maximum over the ops of the bytes of all values alive at once.
  std::int64_t peak(const pt::program& p, const axes_list& inputs) const {
    const axes_list axes = varying(p, inputs);
    const pt::live_bytes live(p);
    const pt::fused_kernels kernels(p);
    // The change of the live bytes at each op.
    std::vector<std::int64_t> more(at(p.op_count()) + 2, 0);
    for (pt::value_id v = 0; v < p.value_count(); ++v) {
      const pt::op_id made = p.producer(v), last = std::max(live.last_use[at(v)], made);
      if (p.is(made, pt::op_role::parameter) || !kernels.stored(v)) continue;
      const std::int64_t bytes = copies(axes[at(v)]) * p.type(v).bytes();
      more[at(made)] += bytes;
      more[at(last) + (live.overwritten[at(v)] != 0 ? 0 : 1)] -= bytes;
    }
    std::int64_t now = 0, most = 0;
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      now += more[at(o)];
      std::int64_t inside = 0;
      if (p.op(o).region_count > 0)
        for_each_nested(p, o, axes, [&](const pt::program& nested, const axes_list& in) {
          inside = std::max(inside, peak(nested, in));
        });
      most = std::max(most, now + inside);
    }
    return most;
  }
};

}  // namespace bench
