/// The emulator of a mesh: runs all its devices in this process, with global arrays in and out.
#pragma once

#include <algorithm>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include <partita/run/device/device_run.hpp>

namespace partita::run_detail {

/// Runs source programs (on a mesh without axes) and device programs.
class interpreter {
 public:
  interpreter(device_program d, run_options options)
      : mesh_(std::make_unique<mesh>(d.mesh)),
        run_(std::move(d), std::move(options), std::make_shared<in_process>(*mesh_), {}) {}

  const std::shared_ptr<const std::vector<std::string>>& names() const { return run_.names(); }
  std::int64_t workspace_bytes() const { return run_.workspace_bytes(); }

  /// Runs the program. Where a type on the mesh is larger than that of an array (see
  /// core/padding.hpp), inputs are padded with zeros and outputs are cut to size.
  std::vector<array> run(std::span<const array> arrays) {
    const device_program& d = run_.source();
    const program& p = d.local;
    check_arrays(p, {d.input_types.data(), d.input_types.size()}, arrays);
    std::vector<array> inputs;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      inputs.push_back(
          resized(arrays[i], d.inputs[i].global(p.input_type(static_cast<int>(i)).shape, d.mesh)));
    const auto give = [&](const step& s, workspace& space, thread_pool& threads) {
      const value_id v = p.op(s.op).result;
      if (s.axes.empty())
        space.base[at(v)] = inputs[at(s.input)].bytes();
      else
        slice_input(s, inputs[at(s.input)], run_.planned().place(v, space), threads);
    };
    return run_.run(give, [&](workspace& w) {
      std::vector<array> out;
      for (int i = 0; i < p.output_count(); ++i)
        out.push_back(resized(output(i, inputs, w), d.output_types[at(i)].shape));
      return out;
    });
  }

 private:
  void slice_input(const step& s, const array& a, std::byte* out, thread_pool& threads) const {
    const device_program& d = run_.source();
    const layout& l = d.inputs[at(s.input)];
    const tensor_type& local = d.local.type(d.local.op(s.op).result);
    threads.parallel_for(run_.devices().copies(s.axes), [&](int, std::int64_t i) {
      const coordinates c = run_.devices().coordinates_of(s.axes, i);
      copy_box(size_of(local.element), local.shape, a.shape(),
               start_of(d.mesh, l, local.shape, c).at, a.bytes(), local.shape, nullptr,
               out + i * padded_bytes(local));
    });
  }
  array output(int index, std::span<const array> inputs, workspace& w) const {
    const device_program& d = run_.source();
    const program& p = d.local;
    const plan& plan = run_.planned().plan();
    const value_id v = p.outputs[at(index)].value, r = plan.root(v);
    const layout& l = d.outputs[at(index)];
    const tensor_type& local = p.type(v);
    const tensor_type global{local.element, l.global(local.shape, d.mesh)};
    const axis_set cut = axes_of(d.mesh, l);
    if (plan.memory().handed_out(r) && cut.empty()) return array(global, w.handed_out[at(r)]);
    if (plan.axes(v).empty() && cut.empty()) {  // an input
      const auto found = std::find(p.inputs.begin(), p.inputs.end(), r);
      return inputs[at(found - p.inputs.begin())].reshaped(global.shape);
    }
    run_.check_replicas(index, cut, w);
    array out(global, allocate(padded_bytes(global)));
    auto* to = const_cast<std::byte*>(out.bytes());
    for (std::int64_t i = 0; i < run_.devices().copies(cut); ++i) {
      const coordinates c = run_.devices().coordinates_of(cut, i);
      copy_box(size_of(global.element), local.shape, local.shape, nullptr,
               run_.planned().copy_of(v, c, w), global.shape,
               start_of(d.mesh, l, local.shape, c).at, to);
    }
    return out;
  }

  std::unique_ptr<mesh> mesh_;  // to which the transport refers
  device_run run_;
};

}  // namespace partita::run_detail
