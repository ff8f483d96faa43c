/// The main function of a file of device code: a thread per device, or, with PARTITA_CODE_MPI
/// defined, an MPI rank per device.
///
/// `program INPUTS OUTPUTS` reads the global arrays from a file and writes the global results to
/// another: the elements, row-major, one array after the other, without headers. Without arguments
/// floats are numbers below 2 and integers are 0, and it prints how long a step takes.
#pragma once

#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <thread>
#include <utility>

#include <partita/backend/code/device.hpp>
#include <partita/run/device/shards.hpp>
#include <partita/run/transport/threads.hpp>
#if defined(PARTITA_CODE_MPI)
#include <partita/backend/mpi/transport.hpp>
#include <partita/backend/mpi/world.hpp>
#endif

namespace partita::code {

/// An input or output: its global type, its type on a device, and which axis slices which
/// dimension.
struct argument {
  std::string_view name;
  tensor_type global, local;
  layout sharding;

  constexpr argument(std::string_view n, const tensor_type& g, const tensor_type& l,
                     std::initializer_list<std::pair<int, int>> axis_and_dimension = {})
      : name(n), global(g), local(l) {
    for (const auto& [axis, dimension] : axis_and_dimension) sharding.push_back(axis, dimension);
  }
};
struct device_code {
  partita::mesh mesh;
  std::span<const argument> inputs, outputs;
  std::int64_t memory_bytes;
  void (*run)(device&, const std::byte* const* in, std::byte* const* out);
};

/// Runs `steps` steps on one device, and returns its shards of the outputs; `seconds`: of the last
/// step.
inline std::vector<array> run_device(const device_code& code, run_detail::transport& t,
                                     std::span<const array> globals, int steps, double& seconds) {
  device d(t, code.memory_bytes);
  std::vector<array> inputs, outputs;
  std::vector<const std::byte*> in;
  std::vector<std::byte*> out;
  for (const argument& x : code.inputs) {
    const array whole =
        run_detail::resized(globals[inputs.size()], x.sharding.global(x.local.shape, code.mesh));
    inputs.push_back(run_detail::cut(whole, x.sharding, t.devices()).copies[0]);
    in.push_back(inputs.back().bytes());
  }
  for (const argument& x : code.outputs) {
    outputs.emplace_back(x.local);
    out.push_back(outputs.back().mutable_bytes());
  }
  const auto now = [] {
    std::timespec t{};
    std::timespec_get(&t, TIME_UTC);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  for (int k = 0; k < steps; ++k) {
    const double start = now();
    code.run(d, in.data(), out.data());
    seconds = now() - start;
  }
  return outputs;
}
/// The global outputs, from those of all devices in the order of their coordinates.
inline std::vector<array> whole(const device_code& code,
                                std::span<const std::vector<array>> devices) {
  std::vector<array> list;
  for (const argument& x : code.outputs) {
    run_detail::distributed_array shards{{}, run_detail::all_axes(code.mesh)};
    for (const auto& outputs : devices) shards.copies.push_back(outputs[list.size()]);
    const array padded = run_detail::joined(shards, x.sharding, code.mesh);
    list.push_back(run_detail::resized(padded, x.global.shape));
  }
  return list;
}

/// Runs a thread per device.
inline std::vector<array> run_threads(const device_code& code, std::span<const array> inputs,
                                      int steps, double& seconds) {
  const std::size_t count = run_detail::at(code.mesh.devices());
  const auto first = run_detail::device_set::block(code.mesh, 0, code.mesh.devices());
  run_detail::thread_mailbox mailbox;
  std::vector<std::vector<array>> outputs(count);
  std::vector<double> times(count);
  std::vector<std::exception_ptr> failed(count);
  const auto run = [&](std::size_t i) {
    try {
      run_detail::thread_transport t(
          first.member(run_detail::all_axes(code.mesh), static_cast<std::int64_t>(i)), mailbox);
      outputs[i] = run_device(code, t, inputs, steps, times[i]);
    } catch (...) {
      failed[i] = std::current_exception();
      mailbox.close();
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < count; ++i) threads.emplace_back(run, i);
  run(0);
  for (auto& t : threads) t.join();
  for (const auto& e : failed)
    if (e) std::rethrow_exception(e);
  seconds = times[0];
  return whole(code, outputs);
}

#if defined(PARTITA_CODE_MPI)
/// Runs a rank per device; all ranks return the global outputs.
inline std::vector<array> run_ranks(const device_code& code, mpi::world& world,
                                    std::span<const array> inputs, int steps, double& seconds) {
  const std::int64_t count = code.mesh.devices();
  if (world.ranks() != count)
    throw error(concat("J001 mpi: ", world.ranks(), " ranks for ", count,
                       " devices; start one per device: mpirun -n ", count));
  std::vector<int> ranks;
  for (int r = 0; r < world.ranks(); ++r) ranks.push_back(r);
  backend_detail::mpi_transport t(
      run_detail::device_set::block(code.mesh, world.rank(), count), world.communicator(), ranks,
      world.watched(), 0, false,
      [](const run_detail::transport_use&) { return text("a collective"); });
  std::vector<std::vector<array>> outputs(run_detail::at(count));
  for (const array& mine : run_device(code, t, inputs, steps, seconds)) {
    const auto bytes = run_detail::at(mine.type().bytes());
    const auto all = run_detail::gathered(t, run_detail::all_axes(code.mesh), mine.bytes(), bytes);
    for (std::size_t i = 0; i < outputs.size(); ++i) {
      outputs[i].emplace_back(mine.type());
      if (bytes > 0) std::memcpy(outputs[i].back().mutable_bytes(), all.data() + i * bytes, bytes);
    }
  }
  return whole(code, outputs);
}
#endif

using file = std::unique_ptr<std::FILE, int (*)(std::FILE*)>;

/// Global inputs from a file, or made up.
///
/// Errors    E021 the file has another size
inline std::vector<array> inputs_of(const device_code& code, const char* path) {
  std::vector<array> list;
  std::int64_t need = 0, has = 0;
  const file from(path != nullptr ? std::fopen(path, "rb") : nullptr, &std::fclose);
  for (const argument& x : code.inputs) {
    array& a = list.emplace_back(x.global);
    std::byte* const to = a.mutable_bytes();
    const std::size_t bytes = run_detail::at(x.global.bytes());
    need += x.global.bytes();
    if (from)
      has += static_cast<std::int64_t>(std::fread(to, 1, bytes, from.get()));
    else
      std::memset(to, is_floating(x.global.element) ? 0x3f : 0, bytes);
  }
  while (from && std::fgetc(from.get()) != EOF) ++has;
  if (path != nullptr && has != need)
    throw error(concat("E021 code: the inputs take ", need, " bytes; ", path, " has ", has));
  return list;
}
/// Errors    E022 the file cannot be written
inline void write(const std::vector<array>& outputs, const char* path) {
  file to(std::fopen(path, "wb"), &std::fclose);
  bool good = to != nullptr;
  for (const array& a : outputs) {
    const auto bytes = run_detail::at(a.type().bytes());
    good = good && std::fwrite(a.bytes(), 1, bytes, to.get()) == bytes;
  }
  if (!good || std::fclose(to.release()) != 0)
    throw error(concat("E022 code: ", path, " cannot be written"));
}

/// Returns the exit status of `main`: 0, or 1 after an error, or 2 after a wrong number of
/// arguments.
///
/// Errors    E021, E022, those of the run
inline int launch(const device_code& code, int argc, char** argv) try {
  const bool files = argc == 3;
  const int steps = files ? 1 : 100;
  if (argc != 1 && !files) {
    std::fprintf(stderr, "usage: %s [INPUTS OUTPUTS]\n", argv[0]);
    return 2;
  }
  const std::vector<array> inputs = inputs_of(code, files ? argv[1] : nullptr);
  double seconds = 0;
#if defined(PARTITA_CODE_MPI)
  mpi::world world(argc, argv);
  const std::vector<array> outputs = run_ranks(code, world, inputs, steps, seconds);
  if (!world.first()) return 0;
#else
  const std::vector<array> outputs = run_threads(code, inputs, steps, seconds);
#endif
  if (files)
    write(outputs, argv[2]);
  else
    std::printf("%.3g us for step %d\n", seconds * 1e6, steps);
  return 0;
} catch (const std::exception& e) {
  std::fprintf(stderr, "%s\n", e.what());
  return 1;
}

}  // namespace partita::code
