/// The main function of a file of device code: a thread per device, or, with PARTITA_CODE_MPI
/// defined, an MPI rank per device.
///
/// `program INPUTS OUTPUTS` reads the global arrays from a file and writes the global results to
/// another: the elements, row-major, one array after the other, without headers. Without arguments
/// it makes up inputs, and prints how long a step takes.
#pragma once

#include <chrono>
#include <cstdio>
#include <exception>
#include <fstream>
#include <iterator>
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

using run_function = void (*)(device&, const std::byte* const* in, std::byte* const* out);

struct device_code {
  partita::mesh mesh;
  std::span<const argument> inputs, outputs;
  std::int64_t memory_bytes;
  run_function run;
};

/// A device's shards of the inputs, and room for those of the outputs.
class shards {
 public:
  shards(const device_code& code, std::span<const array> globals,
         const run_detail::device_set& here) {
    for (std::size_t i = 0; i < code.inputs.size(); ++i) {
      const argument& x = code.inputs[i];
      const array whole =
          run_detail::resized(globals[i], x.sharding.global(x.local.shape, code.mesh));
      inputs_.push_back(run_detail::cut(whole, x.sharding, here).copies[0]);
    }
    for (const argument& x : code.outputs) outputs.emplace_back(x.local);
    for (const array& a : inputs_) in_.push_back(a.bytes());
    for (array& a : outputs) out_.push_back(a.mutable_bytes());
  }
  void run(const device_code& code, device& d) { code.run(d, in_.data(), out_.data()); }

  std::vector<array> outputs;

 private:
  std::vector<array> inputs_;
  std::vector<const std::byte*> in_;
  std::vector<std::byte*> out_;
};

/// The global outputs, from those of each device in the order of its number.
inline std::vector<array> whole(const device_code& code,
                                const std::vector<std::vector<array>>& devices) {
  std::vector<array> list;
  const run_detail::device_set all = run_detail::device_set::all(code.mesh),
                               first =
                                   run_detail::device_set::block(code.mesh, 0, code.mesh.devices());
  for (std::size_t i = 0; i < code.outputs.size(); ++i) {
    const argument& x = code.outputs[i];
    run_detail::distributed_array a{{}, axes_of(code.mesh, x.sharding)};
    for (std::int64_t c = 0; c < all.copies(a.axes); ++c)
      a.copies.push_back(
          devices[run_detail::at(first.process_of(all.coordinates_of(a.axes, c)))][i]);
    array joined = run_detail::joined(a, x.sharding, code.mesh);
    list.push_back(run_detail::resized(joined, x.global.shape));
  }
  return list;
}

/// Runs `steps` steps on a thread per device; `seconds`: of the last step.
inline std::vector<array> run_threads(const device_code& code, std::span<const array> inputs,
                                      int steps, double& seconds) {
  using clock = std::chrono::steady_clock;
  const std::int64_t count = code.mesh.devices();
  run_detail::thread_mailbox mailbox;
  std::vector<std::vector<array>> outputs(run_detail::at(count));
  std::vector<std::exception_ptr> failed(run_detail::at(count));
  const auto run_one = [&](std::int64_t i) {
    try {
      const auto here = run_detail::device_set::block(code.mesh, i, count);
      run_detail::thread_transport transport(here, mailbox);
      device d(transport, code.memory_bytes);
      shards mine(code, inputs, here);
      for (int k = 0; k < steps; ++k) {
        const auto start = clock::now();
        mine.run(code, d);
        if (i == 0) seconds = std::chrono::duration<double>(clock::now() - start).count();
      }
      outputs[run_detail::at(i)] = std::move(mine.outputs);
    } catch (...) {
      failed[run_detail::at(i)] = std::current_exception();
      mailbox.close();
    }
  };
  std::vector<std::thread> threads;
  for (std::int64_t i = 1; i < count; ++i) threads.emplace_back(run_one, i);
  run_one(0);
  for (auto& t : threads) t.join();
  for (const auto& e : failed)
    if (e) std::rethrow_exception(e);
  return whole(code, outputs);
}

#if defined(PARTITA_CODE_MPI)
/// The same on a rank per device; all ranks return the global outputs.
inline std::vector<array> run_ranks(const device_code& code, mpi::world& world,
                                    std::span<const array> inputs, int steps, double& seconds) {
  const std::int64_t count = code.mesh.devices();
  if (world.ranks() != count)
    throw error(concat("J001 mpi: ", world.ranks(), " ranks for ", count,
                       " devices; start one per device: mpirun -n ", count));
  const auto here = run_detail::device_set::block(code.mesh, world.rank(), count);
  std::vector<int> ranks;
  for (int r = 0; r < world.ranks(); ++r) ranks.push_back(r);
  backend_detail::mpi_transport transport(
      here, world.communicator(), ranks, world.watched(), 0, false,
      [](const run_detail::transport_use&) { return text("a collective"); });
  device d(transport, code.memory_bytes);
  shards mine(code, inputs, here);
  for (int k = 0; k < steps; ++k) {
    const double start = backend_detail::seconds_now();
    mine.run(code, d);
    seconds = backend_detail::seconds_now() - start;
  }
  axis_set all;
  for (int a = 0; a < code.mesh.rank; ++a) all |= one_axis(code.mesh, a);
  std::vector<std::vector<array>> outputs(run_detail::at(count));
  for (std::size_t i = 0; i < code.outputs.size(); ++i) {
    const tensor_type& local = code.outputs[i].local;
    const auto bytes = run_detail::at(local.bytes());
    const auto blocks = run_detail::gathered(transport, all, mine.outputs[i].bytes(), bytes);
    for (std::int64_t r = 0; r < count; ++r) {
      array a(local);
      const std::int64_t process = here.member(all, r).this_process();
      if (bytes > 0)
        std::memcpy(a.mutable_bytes(), blocks.data() + run_detail::at(r) * bytes, bytes);
      outputs[run_detail::at(process)].push_back(std::move(a));
    }
  }
  return whole(code, outputs);
}
#endif

/// Global inputs from a file, or made up: numbers between -1 and 1, integers from 0 to 3.
///
/// Errors    E021 the file has another size
inline std::vector<array> inputs_of(const device_code& code, const char* path) {
  std::vector<char> bytes;
  if (path != nullptr) {
    std::ifstream file(path, std::ios::binary);
    bytes.assign(std::istreambuf_iterator<char>(file), {});
  }
  std::vector<array> list;
  std::int64_t at = 0, need = 0;
  for (const argument& x : code.inputs) need += x.global.bytes();
  if (path != nullptr && std::cmp_not_equal(bytes.size(), need))
    throw error(
        concat("E021 code: the inputs take ", need, " bytes; ", path, " has ", bytes.size()));
  std::uint32_t random = 1;
  for (const argument& x : code.inputs) {
    array a(x.global);
    if (path != nullptr && x.global.bytes() > 0)
      std::memcpy(a.mutable_bytes(), bytes.data() + at, run_detail::at(x.global.bytes()));
    at += x.global.bytes();
    for (std::int64_t i = 0; path == nullptr && i < a.size(); ++i) {
      random = random * 1664525u + 1013904223u;
      run_detail::with_type(x.global.element, [&]<class T>(std::type_identity<T>) {
        T& element = reinterpret_cast<T*>(a.mutable_bytes())[i];
        if constexpr (std::is_integral_v<T>)
          element = static_cast<T>(random >> 30);
        else
          element = static_cast<T>(static_cast<float>(random >> 8) / 8388608.f - 1.f);
      });
    }
    list.push_back(std::move(a));
  }
  return list;
}

/// Errors    E021 the inputs have another size, E022 the outputs cannot be written
inline int run_all(const device_code& code, int argc, char** argv) {
  const bool files = argc == 3;
  const int steps = files ? 1 : 100;
  const std::vector<array> inputs = inputs_of(code, files ? argv[1] : nullptr);
  double seconds = 0;
#if defined(PARTITA_CODE_MPI)
  mpi::world world(argc, argv);
  const std::vector<array> outputs = run_ranks(code, world, inputs, steps, seconds);
  if (!world.first()) return 0;
#else
  const std::vector<array> outputs = run_threads(code, inputs, steps, seconds);
#endif
  if (!files) {
    std::printf("%.3g us for step %d\n", seconds * 1e6, steps);
    return 0;
  }
  std::ofstream file(argv[2], std::ios::binary);
  for (const array& a : outputs)
    file.write(reinterpret_cast<const char*>(a.bytes()), a.type().bytes());
  file.close();
  if (!file) throw error(concat("E022 code: ", argv[2], " cannot be written"));
  return 0;
}

/// Returns the exit status of `main`: 0, or 1 after an error, or 2 after a wrong number of
/// arguments.
inline int launch(const device_code& code, int argc, char** argv) {
  if (argc != 1 && argc != 3) {
    std::fprintf(stderr, "usage: %s [INPUTS OUTPUTS]\n", argv[0]);
    return 2;
  }
  try {
    return run_all(code, argc, argv);
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}

}  // namespace partita::code
