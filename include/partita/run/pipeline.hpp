/// Runs pipelines in this process, with separate values for each mesh.
#pragma once

#include <exception>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <partita/mpmd/pipeline.hpp>
#include <partita/run/evaluate.hpp>
#include <partita/run/pipeline_part.hpp>
#include <partita/run/transport/threads.hpp>

namespace partita {

/// The way in which the meshes of a pipeline run.
enum class mesh_mode {
  in_order,  ///< in one thread, in the order of the exported list
  threads    ///< each in a thread of its own
};

/// A pipeline that runs often: its functions are planned once.
class executable_pipeline {
 public:
  /// Plans a pipeline. With `every_device`, each device also computes values that should be
  /// replicated; see of_every_device().
  explicit executable_pipeline(pipelined p, const run_options& options = {},
                               bool every_device = false)
      : p_(std::make_shared<const pipelined>(std::move(p))), every_device_(every_device) {
    p_->error.raise();
    find_deadlock(p_->calls, p_->lists, p_->channels).raise();
    list_ = std::make_shared<const exported_pipeline>(export_calls(*p_));
    list_->error.raise();
    for (const mesh& m : p_->meshes) sites_.push_back({run_detail::device_set::all(m)});
    functions_ = run_detail::make_functions(*p_, options, every_device, sites_, [&](int m) {
      return std::make_shared<run_detail::in_process>(p_->meshes[m]);
    });
    names_ = run_detail::output_names(p_->source);
    for (int i = 0; i < p_->source.input_count(); ++i) types_.push_back(p_->source.input_type(i));
  }

  /// Runs the pipeline: global arrays in, global arrays out, whatever the topology.
  ///
  /// Errors    R001 to R003 wrong arrays; O007 deadlock
  std::vector<array> operator()(std::span<const array> inputs,
                                mesh_mode mode = mesh_mode::in_order) const {
    return results_of(inputs, mode, [&](const auto& shards, int i) {
      return run_detail::resized(
          run_detail::joined(shards, p_->output_layout[i], p_->meshes[p_->output_mesh[i]]),
          p_->source.output_type(i).shape);
    });
  }
  /// Runs the pipeline, and returns outputs with an additional first dimension: the copies of all
  /// devices that should hold equal values.
  std::vector<array> of_every_device(std::span<const array> inputs) const {
    return results_of(inputs, mesh_mode::in_order,
                      [&](const auto& shards, int i) { return output_of_all(shards, i); });
  }
  std::vector<array> operator()(const std::vector<array>& inputs,
                                mesh_mode mode = mesh_mode::in_order) const {
    return (*this)(std::span<const array>(inputs), mode);
  }
  /// Returns the names of the outputs, in order.
  const std::shared_ptr<const std::vector<std::string>>& output_names() const { return names_; }

 private:
  template <class Output>
  std::vector<array> results_of(std::span<const array> inputs, mesh_mode mode,
                                const Output& output) const {
    run_detail::check_arrays(p_->source, types_, inputs);
    std::vector<array> out(p_->source.outputs.size());
    const auto run = [&](const std::vector<run_detail::mesh_site>& sites,
                         run_detail::transport& link, std::int64_t number) {
      run_detail::pipeline_part part(*p_, *list_, functions_, sites, link, number, every_device_);
      for (int i = 0; i < p_->source.input_count(); ++i)
        part.place_global(i, inputs[static_cast<std::size_t>(i)]);
      part.run();
      for (int i = 0; i < p_->source.output_count(); ++i)
        if (part.site(p_->output_mesh[i]).mine)
          out[static_cast<std::size_t>(i)] = output(part.output(i), i);
    };
    if (mode == mesh_mode::threads) {
      run_in_threads(run);
    } else {
      const mesh one;
      run_detail::in_process link(one);
      run(sites_, link, 0);
    }
    return out;
  }
  /// Runs each mesh as a process of its own, in a thread.
  template <class Run>
  void run_in_threads(const Run& run) const {
    const mesh all{{"mesh", p_->topology.count()}};
    run_detail::thread_mailbox shared;
    std::vector<std::thread> threads;
    std::mutex mutex;
    std::exception_ptr failed;
    for (int m = 0; m < p_->topology.count(); ++m)
      threads.emplace_back([&, m] {
        std::vector<run_detail::mesh_site> sites = sites_;
        for (std::size_t k = 0; k < sites.size(); ++k) {
          sites[k].first = static_cast<std::int64_t>(k);
          sites[k].mine = static_cast<int>(k) == m;
        }
        run_detail::thread_transport link(
            run_detail::device_set::block(all, m, p_->topology.count()), shared);
        try {
          run(sites, link, m);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!failed) failed = std::current_exception();
          shared.close();
        }
      });
    for (auto& each : threads) each.join();
    if (failed) std::rethrow_exception(failed);
  }
  array output_of_all(run_detail::distributed_array shards, int i) const {
    const mesh& m = p_->meshes[p_->output_mesh[i]];
    shape whole{1}, shard{1};
    layout l;
    for (int a = 0; a < m.rank; ++a) {
      if (p_->output_layout[i].dim_of(a) >= 0) continue;
      l.push_back(a, 0);
      whole[0] *= m.size(a);
    }
    for (const auto& e : p_->output_layout[i]) l.push_back(e.axis, e.dim + 1);
    for (const auto extent : p_->source.output_type(i).shape) whole.push_back(extent);
    for (const auto extent : shards.copies[0].shape()) shard.push_back(extent);
    for (array& each : shards.copies) each = each.reshaped(shard);
    return run_detail::resized(run_detail::joined(shards, l, m), whole);
  }

  std::shared_ptr<const pipelined> p_;
  std::shared_ptr<const exported_pipeline> list_;
  bool every_device_ = false;
  std::vector<run_detail::mesh_site> sites_;
  run_detail::pipeline_functions functions_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::vector<tensor_type> types_;
};

/// Runs a pipeline on emulated meshes: global arrays in, global arrays out. Arguments and errors as
/// for `evaluate`; O007 deadlock.
template <class... Args>
results emulate(const pipelined& p, const Args&... args) {
  return run_detail::run_arguments(executable_pipeline(p), args...);
}
template <class... Args>
results emulate(const pipelined& p, mesh_mode mode, const Args&... args) {
  const executable_pipeline e(p);
  std::vector<array> arrays;
  (run_detail::flatten(arrays, args), ...);
  return results(e(arrays, mode), e.output_names());
}

}  // namespace partita
