/// A partitioned program on the processes of a job, with one device or a block of devices on each.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/save.hpp>
#include <partita/backend/mpi/part.hpp>
#include <partita/backend/stateful.hpp>
#include <partita/mpmd/print_calls.hpp>
#include <partita/support/version.hpp>

namespace partita::mpi {

/// Runs a partitioned program; each rank runs its own devices. Every rank of the world creates one
/// and calls it in the same way. The outputs are bit-identical to those of `emulate`.
///
/// The number of ranks is the number of devices, with device i on rank i, or a divisor of it. Then
/// each rank has a block of consecutive devices.
///
/// Errors    J001 more ranks than devices, R016 the devices cannot be divided equally, J003 ranks
///           differ in program, mesh, options or version, J006 probes: thrown on every rank. R001
///           to R004 arguments. A failure during a run ends the job: J002 an MPI call failed, J004
///           a rank does not arrive, and the errors of the `executable` for one process
class executable : public stateful_executable<executable, sharded_array> {
 public:
  executable(const partitioned& p, const world& w, const options& o = {})
      : executable(w, o, [&] {
          p.error.raise();
          const mesh& m = p.device.mesh;
          if (m.devices() < w.ranks())
            throw error(concat("J001 mpi: ", w.ranks(), " ranks are more than the ", m.devices(),
                               " devices of the mesh ", m, "; start as many as there are devices, ",
                               "or a divisor: mpirun -n ", m.devices()));
          check_equal({hash_of(p.device), hash(concat(m))}, w, o);
          return std::make_unique<backend_detail::mesh_part>(p, w, o);
        }) {}
  executable(const pipelined& p, const world& w, const options& o = {})
      : executable(w, o, [&] {
          p.error.raise();
          std::uint64_t code = hash(print_calls(p));
          for (int f = 0; f < static_cast<int>(p.units.size() + p.joint_functions.size()); ++f)
            code = code * 31 + hash_of(p.function(f).device);
          check_equal({code, hash(concat(p.topology))}, w, o);
          return std::make_unique<backend_detail::pipeline_of_job>(p, w, o);
        }) {}
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  /// Returns the job that the program runs in.
  const world& job() const { return *world_; }
  /// Returns what this process has sent so far.
  traffic sent() const { return part_->sent(); }
  /// Returns the bytes that this process needs for all values between the inputs and the outputs.
  std::int64_t workspace_bytes() const { return part_->workspace_bytes(); }

  // place, load and the call are those of every backend (backend/stateful.hpp). All ranks call
  // them, with the same global arrays.

  /// Starts to write the inputs of a state as a checkpoint; each rank writes the shards that it
  /// owns. All ranks call it, and wait() of the returned handle. The next run may proceed
  /// meanwhile.
  ///
  /// Errors    J007 a value belongs to an executable on another mesh; those of save_checkpoint; if
  ///           a rank fails, all throw
  saving save(const std::string& path, const sharded_state& state,
              const checkpoint_options& o = {}) const {
    std::vector<checkpoint_array> arrays;
    for (const sharded_array& x : state.values()) {
      if (state.for_input(x.name) != &x || x.mesh < 0) continue;
      need_own(x);
      const run_detail::mesh_site& s = part_->site(x.mesh);
      const mesh& m = s.devices.mesh();
      checkpoint_array a{{text(std::string_view(x.name)), x.global.element, x.global.shape,
                          x.local.shape, x.sharding},
                         {},
                         &m};
      const std::int64_t count = s.devices.copies(run_detail::all_axes(m));
      for (std::int64_t k = 0; s.mine && k < count; ++k) {
        const std::int64_t device = s.devices.this_process() * count + k;
        const auto c = backend_detail::device_coordinates(m, device);
        a.shards.push_back({device, x.held.copies[at(s.devices.copy_at(x.held.axes, c))]});
      }
      arrays.push_back(std::move(a));
    }
    return save_checkpoint(path, part_->site(0).devices.mesh(), std::move(arrays), o,
                           {world_->rank(), [this](const std::string& mine) {
                              return world_->watched().gather(mine, options_.deadline,
                                                              "the agreement on a checkpoint");
                            }});
  }
  /// Returns the global array. If a process does not hold all of it, all ranks must call this, and
  /// all get the array. Small results of a pipeline are on all ranks.
  array whole(const sharded_array& x) const {
    if (part_->is_whole(x)) return run_detail::resized(x.held.copies[0], x.global.shape);
    return guarded([&] { return part_->moved(x, part_->everywhere(x.global), -1).held.copies[0]; });
  }

 private:
  friend class stateful_executable<executable, sharded_array>;
  static constexpr std::string_view label = "mpi";

  template <class Make>
  executable(const world& w, const options& o, const Make& make)
      : part_(make()), world_(&w), options_(o) {
    find_states();
  }

  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  /// Runs f. An exception ends the job, since the other ranks wait for this one.
  template <class F>
  std::invoke_result_t<F> guarded(const F& f) const {
    try {
      return f();
    } catch (const std::exception& e) {
      const std::string_view reason = e.what();
      if (reason.starts_with("J004")) world_->fail(reason);
      world_->fail(concat("in ", part_->working_on(), ": ", reason));
    }
  }
  static std::uint64_t hash(const text& t) {
    return run_detail::hash_bytes(reinterpret_cast<const std::byte*>(t.view().data()),
                                  static_cast<std::int64_t>(t.view().size()));
  }
  static std::uint64_t hash_of(const device_program& d) {
    text t;
    for (const auto* list : {&d.inputs, &d.outputs})
      for (const layout& l : *list) print_layout(t, l, max_rank, d.mesh);
    for (int i = 0; i < d.local.input_count(); ++i) t << ' ' << d.local.input_name(i);
    for (int i = 0; i < d.local.output_count(); ++i) t << ' ' << d.local.output_name(i);
    return hash_of_code(d.local) ^ hash(t);
  }
  struct fingerprint {
    std::uint64_t program = 0, mesh = 0, options = 0, version = 0;
  };
  /// Checks that all ranks agree.
  ///
  /// Errors    J003 a rank differs, J006 an option has no effect here
  static void check_equal(fingerprint mine, const world& w, const options& o) {
    if (!o.run.probes.empty())
      throw error(concat("J006 mpi: run_options::probes names \"",
                         std::string_view(o.run.probes[0]),
                         "\"; emulate returns inner values, mpi::executable does not"));
    mine.options = static_cast<std::uint64_t>(o.run.fuse) * 2 + (o.native_reductions ? 1 : 0);
    mine.version = hash(concat(library_version));
    std::vector<fingerprint> all(at(w.ranks()));
    w.watched().gather(&mine, sizeof mine, all.data(), o.deadline,
                       "the comparison of programs at the start");
    const auto differs = [&](auto member, std::string_view what) {
      for (int r = 0; r < w.ranks(); ++r)
        if (all[at(r)].*member != all[0].*member)
          throw error(concat("J003 mpi: rank ", r, " has another ", what,
                             " than rank 0; give all ranks the same program, mesh and options"));
    };
    differs(&fingerprint::version, "version of the library");
    differs(&fingerprint::mesh, "mesh");
    differs(&fingerprint::program, "program");
    differs(&fingerprint::options, "value of options::native_reductions or run.fuse");
  }

  const program& source() const { return part_->source(); }
  const std::vector<sharded_array>& slots() const { return part_->inputs(); }
  template <class Make>
  sharded_array filled(sharded_array v, const Make& make) const {
    const run_detail::device_set& devices = part_->site(v.mesh).devices;
    for (std::int64_t k = 0; part_->holds(v) && k < devices.copies(v.held.axes); ++k)
      v.held.copies.push_back(make(
          backend_detail::requested(v, devices.mesh(), devices.coordinates_of(v.held.axes, k))));
    return v;
  }
  sharded_array cut(sharded_array v, const array& global) const {
    const run_detail::device_set& devices = part_->site(v.mesh).devices;
    const shape padded = v.sharding.global(v.local.shape, devices.mesh());
    if (part_->holds(v))
      v.held = run_detail::cut(run_detail::resized(global, padded), v.sharding, devices);
    return v;
  }
  /// Errors    J007 the value belongs to another mesh
  void need_own(const sharded_array& x) const {
    if (part_->is_own(x)) return;
    throw error(concat("J007 mpi: \"", std::string_view(x.name),
                       "\" is a value of an executable on ", "another mesh, ", x.on,
                       "; save it with that one"));
  }
  sharded_state run(std::vector<const sharded_array*> inputs) const {
    return guarded([&] {
      std::deque<sharded_array> moved;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const sharded_array& need = part_->inputs()[i];
        const sharded_array& x = *inputs[i];
        if (part_->is_own(x) && x.mesh == need.mesh && x.sharding == need.sharding &&
            x.local == need.local)
          continue;
        inputs[i] = &moved.emplace_back(part_->moved(x, part_->place_of(need), need.mesh));
      }
      return sharded_state(part_->run(inputs), next_inputs());
    });
  }

  std::unique_ptr<backend_detail::job_part> part_;
  const world* world_;
  options options_;
};

}  // namespace partita::mpi
