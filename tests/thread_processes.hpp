/// Device programs on several processes; each process is a thread with a block of devices.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include <partita/run/interpreter.hpp>
#include <partita/run/pipeline.hpp>
#include <partita/run/transport/threads.hpp>

namespace thread_processes {

using namespace partita;

inline std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

/// True if this number of processes can share the devices of a mesh.
inline bool divides(const mesh& m, std::int64_t count) {
  try {
    run_detail::device_set::block(m, 0, count);
    return true;
  } catch (const error&) {
    return false;
  }
}
inline bool same_bits(const array& a, const array& b) {
  return a.type() == b.type() && std::memcmp(a.bytes(), b.bytes(), at(a.type().bytes())) == 0;
}

/// Returns an input with the padding of its shards.
inline array padded(const device_program& d, int input, const array& global) {
  return run_detail::resized(global,
                             d.inputs[input].global(d.local.input_type(input).shape, d.mesh));
}
/// Returns the outputs of each of `count` processes: [process][output], from shards of the inputs.
/// Runs twice, since memory is used again.
inline std::vector<std::vector<run_detail::distributed_array>> run_in_threads(
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
          mine.push_back(run_detail::cut(padded(d, static_cast<int>(i), inputs[i]),
                                         d.inputs[at(static_cast<std::int64_t>(i))], devices));
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

/// Returns the global outputs. `problem` is "" or names replicas that differ.
inline std::vector<array> global_outputs(
    const device_program& d, const std::vector<std::vector<run_detail::distributed_array>>& made,
    std::string& problem) {
  std::vector<array> outputs;
  const auto count = static_cast<std::int64_t>(made.size());
  for (int i = 0; i < d.local.output_count(); ++i) {
    const layout& l = d.outputs[i];
    run_detail::distributed_array all{{}, axes_of(d.mesh, l)};
    const auto every = run_detail::device_set::all(d.mesh);
    all.copies.resize(at(every.copies(all.axes)));
    std::vector<char> known(all.copies.size());
    for (std::int64_t number = 0; number < count; ++number) {
      const auto devices = run_detail::device_set::block(d.mesh, number, count);
      const auto& mine = made[at(number)][at(i)];
      for (std::int64_t k = 0; k < devices.copies(all.axes); ++k) {
        const auto to = at(every.copy_at(all.axes, devices.coordinates_of(all.axes, k)));
        if (known[to] != 0 && !same_bits(all.copies[to], mine.copies[at(k)]))
          problem = "replicas of output " + std::to_string(i) + " differ";
        all.copies[to] = mine.copies[at(k)];
        known[to] = 1;
      }
    }
    outputs.push_back(
        run_detail::resized(run_detail::joined(all, l, d.mesh), d.output_types[at(i)].shape));
  }
  return outputs;
}
/// Runs a device program with `count` processes. Returns "" or the output whose bits differ from
/// `want`.
inline std::string problem_of(const device_program& d, const std::vector<array>& inputs,
                              const std::vector<array>& want, std::int64_t count) {
  std::string problem;
  const std::vector<array> got = global_outputs(d, run_in_threads(d, inputs, count), problem);
  for (std::size_t i = 0; problem.empty() && i < want.size(); ++i)
    if (!same_bits(got[i], want[i])) problem = "output " + std::to_string(i) + " differs";
  return problem.empty() ? problem : std::to_string(count) + " processes: " + problem;
}

/// Runs a pipeline with a process, here a thread, for each device of each mesh. Returns "" or the
/// output whose bits differ from `want`.
inline std::string problem_of(const pipelined& p, const std::vector<array>& inputs,
                              const results& want) {
  const exported_pipeline list = export_calls(p);
  list.error.raise();
  std::vector<std::int64_t> first;
  std::int64_t count = 0;
  for (const mesh& m : p.meshes) {
    first.push_back(count);
    count += m.devices();
  }
  const mesh ranks{{"rank", count}};
  run_detail::thread_mailbox job;
  std::vector<run_detail::thread_mailbox> on_mesh(p.meshes.size());
  std::vector<std::thread> threads;
  std::vector<std::string> problems(at(count));
  for (std::int64_t rank = 0; rank < count; ++rank)
    threads.emplace_back([&, rank] {
      try {
        std::vector<run_detail::mesh_site> sites;
        for (std::size_t m = 0; m < p.meshes.size(); ++m) {
          const std::int64_t devices = p.meshes[m].devices(), mine = rank - first[m];
          const bool here = mine >= 0 && mine < devices;
          sites.push_back({run_detail::device_set::block(p.meshes[m], here ? mine : 0, devices),
                           first[m], here});
        }
        run_detail::thread_transport link(run_detail::device_set::block(ranks, rank, count), job);
        const auto functions = run_detail::make_functions(p, {}, false, sites, [&](int m) {
          return std::make_shared<run_detail::thread_transport>(sites[at(m)].devices,
                                                                on_mesh[at(m)]);
        });
        run_detail::pipeline_part part(p, list, functions, sites, link, rank, false);
        for (int i = 0; i < p.source.input_count(); ++i) part.place_global(i, inputs[at(i)]);
        part.run();
        for (int i = 0; i < p.source.output_count(); ++i) {
          const int m = p.output_mesh[i];
          if (!sites[at(m)].mine) continue;
          const shape padded =
              p.output_layout[i].global(list.buffers[list.outputs[i]].local.shape, p.meshes[m]);
          const auto mine = run_detail::cut(run_detail::resized(want[i], padded),
                                            p.output_layout[i], sites[at(m)].devices);
          // Padding may have any value.
          shape real = mine.copies[0].shape();
          const auto begin = run_detail::start_of(p.meshes[m], p.output_layout[i], real,
                                                  sites[at(m)].devices.coordinates_of({}, 0));
          for (int d = 0; d < real.rank; ++d)
            real[d] = std::clamp<std::int64_t>(want[i].shape()[d] - begin.at[d], 0, real[d]);
          if (!same_bits(run_detail::resized(part.output(i).copies[0], real),
                         run_detail::resized(mine.copies[0], real)))
            problems[at(rank)] = "output " + std::to_string(i) + " differs";
        }
      } catch (const std::exception& e) {
        problems[at(rank)] = e.what();
        job.close();
        for (auto& each : on_mesh) each.close();
      }
    });
  for (auto& each : threads) each.join();
  for (std::int64_t rank = 0; rank < count; ++rank)
    if (!problems[at(rank)].empty())
      return "rank " + std::to_string(rank) + ": " + problems[at(rank)];
  return "";
}

}  // namespace thread_processes
