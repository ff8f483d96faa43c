/// The emulator of a mesh: runs all its devices in this process, with global arrays in and out.
#pragma once

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
        run_(std::move(d), std::move(options), std::make_shared<in_process>(*mesh_), {}) {
    for (int i = 0; i < run_.p().input_count(); ++i)
      pads_ = pads_ || padded_shape(i) != run_.source().input_types[at(i)].shape;
  }

  const std::shared_ptr<const std::vector<std::string>>& names() const { return run_.names(); }
  std::int64_t workspace_bytes() const { return run_.workspace_bytes(); }

  /// Runs the program. Where a type on the mesh is larger than that of an array (see
  /// core/padding.hpp), inputs are padded with zeros and outputs are cut to size.
  std::vector<array> run(std::span<const array> arrays) {
    const device_program& d = run_.source();
    const program& p = d.local;
    check_arrays(p, {d.input_types.data(), d.input_types.size()}, arrays);
    std::vector<array> padded;
    for (int i = 0; pads_ && i < p.input_count(); ++i)
      padded.push_back(resized(arrays[at(i)], padded_shape(i)));
    const std::span<const array> inputs = pads_ ? padded : arrays;
    const auto give = [&](const step& s, workspace& space, thread_pool& threads) {
      const value_id v = p.op(s.op).result;
      if (s.axes.empty())
        space.base[at(v)] = inputs[at(s.input)].bytes();
      else
        cut_input(s, inputs[at(s.input)], run_.planned().place(v, space), threads);
    };
    return run_.run(give, [&](workspace& w) {
      std::vector<array> out;
      out.reserve(p.outputs.size());
      for (int i = 0; i < p.output_count(); ++i) {
        out.push_back(output(i, inputs, w));
        const shape& to = d.output_types[at(i)].shape;
        if (out.back().shape() != to) out.back() = resized(out.back(), to);
      }
      return out;
    });
  }

 private:
  /// Returns the shape of an input with padding.
  shape padded_shape(int input) const {
    const device_program& d = run_.source();
    return d.inputs[at(input)].global(d.local.input_type(input).shape, d.mesh);
  }
  void cut_input(const step& s, const array& a, std::byte* out, thread_pool& threads) const {
    const device_program& d = run_.source();
    const tensor_type& local = d.local.type(d.local.op(s.op).result);
    threads.parallel_for(run_.devices().copies(s.axes), [&](int, std::int64_t i) {
      copy_shard(a, d.inputs[at(s.input)], d.mesh, run_.devices().coordinates_of(s.axes, i),
                 local.shape, out + i * padded_bytes(local));
    });
  }
  array output(int index, std::span<const array> inputs, workspace& w) const {
    const device_program& d = run_.source();
    const program& p = d.local;
    const value_id v = p.outputs[at(index)].value;
    const layout& l = d.outputs[at(index)];
    const tensor_type global{p.type(v).element, l.global(p.type(v).shape, d.mesh)};
    const axis_set cut = axes_of(d.mesh, l);
    if (run_.devices().copies(run_.planned().plan().axes(v) | cut) == 1)
      if (auto one = run_.in_place(index, global, w, [&](auto i) { return inputs[i]; }))
        return *std::move(one);
    run_.check_replicas(index, cut, w);
    array out(global, allocate(padded_bytes(global)));
    for (std::int64_t i = 0; i < run_.devices().copies(cut); ++i) {
      const coordinates c = run_.devices().coordinates_of(cut, i);
      put_shard(run_.planned().copy_of(v, c, w), l, d.mesh, c, p.type(v).shape, out);
    }
    return out;
  }

  std::unique_ptr<mesh> mesh_;  // to which the transport refers
  device_run run_;
  bool pads_ = false;  // true if inputs are padded
};

}  // namespace partita::run_detail
