/// A partitioned program on the processes of a job, with one device or a block of devices on each.
#pragma once

#include <concepts>
#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/reader.hpp>
#include <partita/backend/checkpoint/save.hpp>
#include <partita/backend/mpi/part.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/mpmd/print_calls.hpp>
#include <partita/run/results.hpp>
#include <partita/schedule/tactic.hpp>
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
class executable {
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

  // ---- State -----------------------------------------------------------------------------------

  /// Returns a state with the shards of global arrays, which every rank passes alike. Results go to
  /// the inputs of their names, other arrays to the remaining inputs in order.
  ///
  /// Errors    R001 to R003
  template <class... Args>
  requires(!(sizeof...(Args) == 1 && (std::invocable<const Args&, const shard_request&> &&
                                      ...))) sharded_state place(const Args&... args)
  const {
    assembled a(*this);
    (a.add(args), ...);
    return a.placed();
  }
  /// Returns a state with the shards that `make(request)` returns; each rank asks for its own only.
  /// `names` are inputs or prefixes of their paths. Without names: the inputs whose next values the
  /// program returns, or else all inputs.
  ///
  /// Errors    R002, R003 an array has another type than `request.local`; R004 no such input
  template <std::invocable<const shard_request&> Make>
  sharded_state place(const Make& make, std::initializer_list<std::string_view> names = {}) const {
    return shard_by_shard(names, [&](const sharded_array& v, const shard_request& request) {
      const array made = make(request);
      run_detail::need_input_type("shard", v.name, made.type(), request.local);
      return run_detail::resized(made, v.local.shape);
    });
  }

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
  /// Loads inputs from a checkpoint that any mesh wrote; each rank reads its own shards. `names`
  /// are as for place.
  ///
  /// Errors    those of checkpoint_reader
  template <std::convertible_to<std::string_view>... Names>
  sharded_state load(const std::string& path, const Names&... names) const {
    const checkpoint_reader in(path);
    for (const std::size_t i : selected_inputs({names...}))
      in.need(part_->inputs()[i].name, part_->inputs()[i].global);
    return shard_by_shard({names...}, [&](const sharded_array& v, const shard_request& request) {
      return in.read(v.name, request.begin, v.local.shape);
    });
  }

  // ---- Running ---------------------------------------------------------------------------------

  /// Runs the program once. The arguments are states and global arrays. A state may belong to an
  /// executable on another mesh of the same ranks; its values go to the inputs of their names.
  /// Global arrays, which every rank passes alike, go to the remaining inputs in order.
  ///
  /// Errors    R001 to R003; J005 the outputs of a run are passed without next()
  template <class... Args>
  sharded_state operator()(const Args&... args) const {
    assembled a(*this);
    (a.add(args), ...);
    return run(a.complete());
  }
  /// Returns the global array. If a process does not hold all of it, all ranks must call this, and
  /// all get the array. Small results of a pipeline are on all ranks.
  array whole(const sharded_array& x) const {
    if (part_->is_whole(x)) return run_detail::resized(x.held.copies[0], x.global.shape);
    return guarded([&] { return part_->moved(x, part_->everywhere(x.global), -1).held.copies[0]; });
  }

 private:
  template <class Make>
  executable(const world& w, const options& o, const Make& make)
      : part_(make()), world_(&w), options_(o) {
    auto inputs = std::make_shared<std::vector<std::string>>();
    for (const int i : reused_inputs(part_->source()))
      inputs->emplace_back(i >= 0 ? std::string(part_->source().input_name(i)) : std::string());
    next_inputs_ = std::move(inputs);
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

  /// Returns inputs whose shards on this process are the results of make(input, request).
  template <class Make>
  sharded_state shard_by_shard(std::initializer_list<std::string_view> names,
                               const Make& make) const {
    std::vector<sharded_array> values;
    for (const std::size_t i : selected_inputs(names)) {
      sharded_array v = part_->inputs()[i];
      const run_detail::device_set& devices = part_->site(v.mesh).devices;
      for (std::int64_t k = 0; part_->holds(v) && k < devices.copies(v.held.axes); ++k)
        v.held.copies.push_back(make(v, requested(v, devices.coordinates_of(v.held.axes, k))));
      values.push_back(std::move(v));
    }
    return sharded_state(std::move(values));
  }
  shard_request requested(const sharded_array& v, const run_detail::coordinates& c) const {
    const mesh& m = part_->site(v.mesh).devices.mesh();
    shard_request r{v.name, v.global, run_detail::start_of(m, v.sharding, v.local.shape, c),
                    v.local};
    for (int i = 0; i < v.local.shape.rank; ++i)
      r.local.shape[i] =
          std::clamp<std::int64_t>(v.global.shape[i] - r.begin.at[i], 0, v.local.shape[i]);
    return r;
  }
  /// Returns the inputs of these names; without names, those that are carried, or else all.
  std::vector<std::size_t> selected_inputs(std::initializer_list<std::string_view> names) const {
    const auto all = run_detail::names_of_inputs(part_->source());
    if (names.size() > 0)
      return run_detail::selected(all, names, [&](std::string_view name) {
        throw error(concat("R004 mpi: no input \"", name, "\"; ", known_names_or_below(name, all)));
      });
    std::vector<std::size_t> carried, every;
    for (std::size_t i = 0; i < all.size(); ++i) {
      every.push_back(i);
      if (std::find(next_inputs_->begin(), next_inputs_->end(), all[i]) != next_inputs_->end())
        carried.push_back(i);
    }
    return carried.empty() ? every : carried;
  }
  /// Errors    J007 the value belongs to another mesh
  void need_own(const sharded_array& x) const {
    if (part_->is_own(x)) return;
    throw error(concat("J007 mpi: \"", std::string_view(x.name),
                       "\" is a value of an executable on ", "another mesh, ", x.on,
                       "; save it with that one"));
  }
  /// The arguments of a call, assigned to inputs.
  class assembled {
   public:
    explicit assembled(const executable& e)
        : e_(e), given_(at(e.part_->source().input_count())), have_(given_.size(), 0) {}

    void add(const sharded_state& s) {
      if (!s.is_input())
        throw error(concat("J005 mpi: the argument holds the outputs of a run; pass its next(), ",
                           "the state for the next run"));
      for (const sharded_array& v : s.values())
        if (const int i = find(v.name); i >= 0 && s.for_input(v.name) == &v) {
          run_detail::need_input_type("value of a state", v.name, v.global,
                                      e_.part_->inputs()[at(i)].global);
          put(i, v);
        }
    }
    void add(const results& r) {
      for (int k = 0; k < r.size(); ++k) {
        const int i = find(r.names()[at(k)]);
        if (i < 0) {
          add(r[k]);
          continue;
        }
        put_global(i, r[k]);
      }
    }
    void add(const array& a) { rest_.push_back(a); }
    template <class T>
    void add(const T& x) {
      std::vector<array> list;
      run_detail::flatten(list, x);
      for (const array& each : list) add(each);
    }
    /// Returns all inputs.
    ///
    /// Errors    R001 an input is missing
    std::vector<sharded_array> complete() {
      settle();
      text missing;
      int count = 0;
      for (std::size_t i = 0; i < have_.size(); ++i)
        if (have_[i] == 0 && count++ < 8)
          missing << (count > 1 ? ", " : "") << e_.part_->source().input_name(static_cast<int>(i));
      if (count > 0)
        throw error(concat("R001 run: no array is given for ", count,
                           count == 1 ? " input: " : " inputs: ", missing,
                           count > 8 ? ", ..." : ""));
      return std::move(given_);
    }
    /// Returns a state of the inputs that have arguments.
    sharded_state placed() {
      settle();
      std::vector<sharded_array> list;
      for (std::size_t i = 0; i < have_.size(); ++i)
        if (have_[i] != 0) list.push_back(std::move(given_[i]));
      return sharded_state(std::move(list));
    }

   private:
    int find(std::string_view name) const {
      for (int i = 0; i < e_.part_->source().input_count(); ++i)
        if (e_.part_->source().input_name(i) == name) return i;
      return -1;
    }
    void put(int i, const sharded_array& v) {
      given_[at(i)] = v;
      have_[at(i)] = 1;
    }
    void put_global(int i, const array& a) {
      sharded_array v = e_.part_->inputs()[at(i)];
      run_detail::need_input_type("array", v.name, a.type(), v.global);
      const run_detail::device_set& devices = e_.part_->site(v.mesh).devices;
      const shape padded = v.sharding.global(v.local.shape, devices.mesh());
      if (e_.part_->holds(v))
        v.held = run_detail::cut(run_detail::resized(a, padded), v.sharding, devices);
      put(i, v);
    }
    void settle() {
      std::size_t next = 0;
      for (std::size_t i = 0; i < have_.size() && next < rest_.size(); ++i)
        if (have_[i] == 0) put_global(static_cast<int>(i), rest_[next++]);
      if (next < rest_.size())
        throw error(concat("R001 run: ", rest_.size(), " arrays are given without a name for ",
                           next, next == 1 ? " input" : " inputs"));
    }

    const executable& e_;
    std::vector<sharded_array> given_;
    std::vector<char> have_;
    std::vector<array> rest_;
  };

  sharded_state run(std::vector<sharded_array> inputs) const {
    return guarded([&] {
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const sharded_array& need = part_->inputs()[i];
        const bool same = part_->is_own(inputs[i]) && inputs[i].mesh == need.mesh &&
                          inputs[i].sharding == need.sharding && inputs[i].local == need.local;
        if (!same) inputs[i] = part_->moved(inputs[i], part_->place_of(need), need.mesh);
      }
      return sharded_state(part_->run(inputs), next_inputs_);
    });
  }

  std::unique_ptr<backend_detail::job_part> part_;
  const world* world_;
  options options_;
  std::shared_ptr<const std::vector<std::string>> next_inputs_;
};

}  // namespace partita::mpi
