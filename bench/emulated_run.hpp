/// What a run on an emulated mesh costs on this CPU, by the simulator.
///
/// One thread does the work of all devices, and holds the memory of all: what a value takes counts
/// once for each distinct copy of it, as the emulator keeps and computes it (what is replicated is
/// there once). So the time of a run is the sum over kernels of the simulated time on one device
/// times the copies of its result; of collectives, the bytes of the pieces that are read to make
/// the distinct copies of the result, over the link. With more threads it is that sum over their
/// number at best.
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
  /// CPU time of one thread.
  double seconds() const { return seconds(d_.local, input_axes()); }
  /// Memory beside the arrays that the user gives: pieces of these where they are cut, values at
  /// the peak, and arrays that are put together of pieces of outputs. The user's arrays stay as
  /// they are, so nothing is written over them.
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
  std::map<const pt::program*, std::vector<double>> seconds_;  // by op, on one device

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
  /// Outputs without names are the next state of nothing.
  static pt::program unnamed(pt::program p) {
    for (auto& out : p.outputs) out.name = {};
    return p;
  }
  /// Calls f(nested program, axes of its inputs) for those of an op.
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

  /// Of all values that are made, at a time.
  std::int64_t peak(const pt::program& p, const axes_list& inputs) const {
    const axes_list axes = varying(p, inputs);
    const pt::live_bytes live(p);
    const pt::fused_kernels kernels(p);
    // More than before: from this op on.
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
