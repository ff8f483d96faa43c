/// A partitioned program on the processes of a job, a device or a block of devices on each.
#pragma once

#include <concepts>
#include <memory>
#include <span>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include <partita/backend/describe.hpp>
#include <partita/backend/mpi/transport.hpp>
#include <partita/backend/mpi/world.hpp>
#include <partita/backend/sharded_state.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/ir/same_code.hpp>
#include <partita/run/device/device_run.hpp>
#include <partita/run/results.hpp>
#include <partita/run/transport/relayout.hpp>
#include <partita/schedule/tactic.hpp>

namespace partita::mpi {

struct options {
  run_options run = {};  ///< threads, kernels, memory; probes are not handed out
  /// Seconds that a collective may wait for other ranks before it ends the job with a line that
  /// says what waits for whom; 0: as long as it takes.
  double deadline = 0;
  /// All-reduces by MPI_Allreduce, in the order of additions that MPI chooses: faster on some
  /// networks, and the bits differ from those of `emulate`. Not of bf16 and f16, which MPI lacks.
  bool native_reductions = false;
};

/// Runs a partitioned program with the devices of this process; every rank of the world makes one
/// and calls it alike. The outputs have the bits of `emulate`.
///
/// As many ranks as devices, device i on rank i, or a divisor: then each rank holds a block of
/// consecutive devices.
///
/// Errors    J001 more ranks than devices, R016 no equal blocks, J003 ranks whose programs, meshes,
///           options or versions differ: thrown on every rank. R001 to R004 arguments. A failure
///           during a run ends the job: J002 a call of MPI, J004 a rank that does not arrive, and
///           what `executable` of one process throws.
class executable {
 public:
  executable(const partitioned& p, const world& w, const options& o = {})
      : p_(std::make_shared<const partitioned>(checked(p))), world_(&w), options_(o) {
    const device_program& d = p_->device;
    if (d.mesh.devices() < w.ranks())
      throw error(concat("J001 mpi: ", w.ranks(), " ranks are more than the ", d.mesh.devices(),
                         " devices of the mesh ", d.mesh, "; start as many as there are devices, ",
                         "or a divisor: mpirun -n ", d.mesh.devices()));
    check_equal();
    MPI_Comm comm;
    backend_detail::need(MPI_Comm_dup(w.communicator(), &comm), "MPI_Comm_dup");
    comm_.reset(new MPI_Comm(comm));
    MPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    std::vector<int> ranks;
    for (int r = 0; r < w.ranks(); ++r) ranks.push_back(r);
    auto link = std::make_unique<backend_detail::mpi_transport>(
        run_detail::device_set::block(d.mesh, w.rank(), w.ranks()), comm, std::move(ranks),
        w.watched(), o.deadline, o.native_reductions,
        [this](const run_detail::transport_use& use) { return name_of(use); });
    link_ = link.get();
    make_groups(d.local);
    run_ = std::make_unique<run_detail::device_run>(d, o.run, std::move(link),
                                                    std::vector<axis_set>{});
    const vec<int> reused = reused_inputs(p_->source);
    auto inputs = std::make_shared<std::vector<std::string>>();
    for (const int i : reused)
      inputs->emplace_back(i >= 0 ? std::string(p_->source.input_name(i)) : std::string());
    next_inputs_ = std::move(inputs);
  }
  executable(const executable&) = delete;
  executable& operator=(const executable&) = delete;

  const world& job() const { return *world_; }
  /// What this process has sent so far.
  const traffic& sent() const { return link_->counted(); }
  /// Bytes of this process for everything between the inputs and the outputs.
  std::int64_t workspace_bytes() const { return run_->workspace_bytes(); }

  // ---- State -----------------------------------------------------------------------------------

  /// Shards of global arrays, which every rank gives alike: results by their names, other arrays as
  /// the first inputs that are not named, in order.
  ///
  /// Errors    R001 to R003
  template <class... Args>
  requires(!(sizeof...(Args) == 1 &&
             (std::invocable<const Args&, const shard_request&> && ...))) sharded_state
  place(const Args&... args) const {
    assembled a(*this);
    (a.add(args), ...);
    return a.placed();
  }
  /// Shards that `make(request)` returns, asked on each rank for its own only. `names`: the inputs,
  /// or what they lie below; none: those whose next values the program returns, or else all.
  ///
  /// Errors    R002, R003 an array of another type than `request.local`; R004 no such input
  template <std::invocable<const shard_request&> Make>
  sharded_state place(const Make& make, std::initializer_list<std::string_view> names = {}) const {
    std::vector<sharded_array> values;
    for (const int i : selected_inputs(names)) {
      sharded_array v = input(i);
      const run_detail::device_set& devices = run_->devices();
      for (std::int64_t k = 0; k < devices.copies(v.held.axes); ++k) {
        const shard_request request = requested(v, devices.coordinates_of(v.held.axes, k));
        const array made = make(request);
        need_type(v.name, made.type(), request.local);
        v.held.copies.push_back(run_detail::resized(made, v.local.shape));
      }
      values.push_back(std::move(v));
    }
    return sharded_state(std::move(values));
  }

  // ---- Running ---------------------------------------------------------------------------------

  /// One run. Arguments: states, whose values go to the inputs of their names, and global arrays,
  /// which every rank gives alike, for the other inputs in order.
  ///
  /// Errors    R001 to R003; J005 outputs of a run that next() was not called on
  template <class... Args>
  sharded_state operator()(const Args&... args) const {
    assembled a(*this);
    (a.add(args), ...);
    return run(a.complete());
  }
  /// The global array. If it is sharded, all ranks must call it, and all get the array.
  array whole(const sharded_array& x) const {
    const device_program& d = p_->device;
    if (axes_of(d.mesh, x.sharding).empty())
      return run_detail::resized(x.held.copies[0], x.global.shape);
    return guarded([&] { return moved(x, {}, x.global).copies[0]; });
  }

 private:
  struct free_communicator {
    void operator()(MPI_Comm* c) const {
      MPI_Comm_free(c);
      delete c;
    }
  };

  static const partitioned& checked(const partitioned& p) {
    p.error.raise();
    return p;
  }
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  text name_of(const run_detail::transport_use& use) const {
    return backend_detail::describe(p_->source, p_->core, p_->tactics, p_->notes, run_->p(), use);
  }
  /// Runs f; what it throws ends the job, since the other ranks wait for this one.
  template <class F>
  std::invoke_result_t<F> guarded(const F& f) const {
    try {
      return f();
    } catch (const std::exception& e) {
      const std::string_view reason = e.what();
      if (reason.starts_with("J004")) world_->fail(reason);
      world_->fail(concat(name_of(link_->now), ": ", reason));
    }
  }
  /// Compares what ranks must have in common.
  ///
  /// Errors    J003
  void check_equal() const {
    const device_program& d = p_->device;
    const auto hash = [](const text& t) {
      return run_detail::hash_bytes(reinterpret_cast<const std::byte*>(t.view().data()),
                                    static_cast<std::int64_t>(t.view().size()));
    };
    text layouts, how;
    for (const auto* list : {&d.inputs, &d.outputs})
      for (const layout& l : *list) print_layout(layouts, l, max_rank, d.mesh);
    for (int i = 0; i < d.local.input_count(); ++i) layouts << ' ' << d.local.input_name(i);
    how << options_.run.fuse << options_.native_reductions;
    constexpr int count = 3;
    const std::uint64_t mine[count] = {hash_of_code(d.local) ^ hash(layouts), hash(concat(d.mesh)),
                                       hash(how)};
    constexpr std::string_view what[count] = {"program", "mesh", "options"};
    std::vector<std::uint64_t> all(at(count * world_->ranks()));
    world_->watched().gather(mine, sizeof mine, all.data(), options_.deadline,
                             "the comparison of programs at the start");
    for (int k : {1, 0, 2})
      for (int r = 0; r < world_->ranks(); ++r)
        if (all[at(r * count + k)] != all[at(k)])
          throw error(concat("J003 mpi: rank ", r, " has ", k == 2 ? "other " : "another ",
                             what[k], " than rank 0; all ranks run the same program"));
  }
  /// The communicators of all groups that gather, made once.
  void make_groups(const program& p) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).def->collective && p.collective_of(o).communicates())
        link_->make_groups(p.collective_of(o).along());
      for (const program& r : p.regions_of(o)) make_groups(r);
    }
  }

  sharded_array input(int i) const {
    const device_program& d = p_->device;
    return {std::string(d.local.input_name(i)), d.input_types[at(i)], d.inputs[at(i)],
            d.local.input_type(i), {{}, axes_of(d.mesh, d.inputs[at(i)])}};
  }
  shard_request requested(const sharded_array& v, const run_detail::coordinates& c) const {
    shard_request r{v.name, v.global, run_detail::start_of(p_->device.mesh, v.sharding,
                                                           v.local.shape, c),
                    v.local};
    for (int i = 0; i < v.local.shape.rank; ++i)
      r.local.shape[i] = std::clamp<std::int64_t>(v.global.shape[i] - r.begin.at[i], 0,
                                                  v.local.shape[i]);
    return r;
  }
  std::vector<int> selected_inputs(std::initializer_list<std::string_view> names) const {
    const program& p = p_->source;
    std::vector<int> list;
    for (int i = 0; i < p.input_count(); ++i) {
      bool any = names.size() == 0 && is_carried(p.input_name(i));
      for (const auto name : names)
        any = any || schedule_detail::selects(name, p.input_name(i));
      if (any) list.push_back(i);
    }
    if (names.size() == 0 && list.empty())
      for (int i = 0; i < p.input_count(); ++i) list.push_back(i);
    for (const auto name : names) {
      bool any = false;
      for (const int i : list) any = any || schedule_detail::selects(name, p.input_name(i));
      if (any) continue;
      vec<std::string_view> known;
      for (int i = 0; i < p.input_count(); ++i) known.push_back(p.input_name(i));
      throw error(concat("R004 mpi: no input \"", name, "\"; ", known_names_or_below(name, known)));
    }
    return list;
  }
  bool is_carried(std::string_view input) const {
    for (const auto& name : *next_inputs_)
      if (name == input) return true;
    return false;
  }
  static void need_type(std::string_view name, const tensor_type& have, const tensor_type& need) {
    if (have.shape != need.shape)
      throw error(concat("R002 run: the array for input \"", name, "\" has shape ", have.shape,
                         "; ", need.shape, " is needed"));
    if (have.element != need.element)
      throw error(concat("R003 run: the array for input \"", name, "\" has element type ",
                         partita::name_of(have.element), "; ", partita::name_of(need.element),
                         " is needed"));
  }

  /// Arguments, as they find their inputs.
  class assembled {
   public:
    explicit assembled(const executable& e)
        : e_(e), given_(at(e.p_->source.input_count())), have_(given_.size(), 0) {}

    void add(const sharded_state& s) {
      if (!s.is_input())
        throw error(concat("J005 mpi: the outputs of a run are given as its state; call next()"));
      for (const sharded_array& v : s.values())
        if (const int i = find(v.name); i >= 0 && s.for_input(v.name) == &v) put(i, v);
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
    /// All inputs.
    ///
    /// Errors    R001
    std::vector<sharded_array> complete() {
      settle();
      text missing;
      int count = 0;
      for (std::size_t i = 0; i < have_.size(); ++i)
        if (have_[i] == 0 && count++ < 8)
          missing << (count > 1 ? ", " : "") << e_.p_->source.input_name(static_cast<int>(i));
      if (count > 0)
        throw error(concat("R001 run: ", count, " inputs of the program are not given: ", missing,
                           count > 8 ? ", ..." : ""));
      return std::move(given_);
    }
    /// What was given.
    sharded_state placed() {
      settle();
      std::vector<sharded_array> list;
      for (std::size_t i = 0; i < have_.size(); ++i)
        if (have_[i] != 0) list.push_back(std::move(given_[i]));
      return sharded_state(std::move(list));
    }

   private:
    int find(std::string_view name) const {
      for (int i = 0; i < e_.p_->source.input_count(); ++i)
        if (e_.p_->source.input_name(i) == name) return i;
      return -1;
    }
    void put(int i, const sharded_array& v) {
      given_[at(i)] = v;
      have_[at(i)] = 1;
    }
    void put_global(int i, const array& a) {
      sharded_array v = e_.input(i);
      need_type(v.name, a.type(), v.global);
      const mesh& m = e_.p_->device.mesh;
      v.held = run_detail::cut(run_detail::resized(a, v.sharding.global(v.local.shape, m)),
                               v.sharding, e_.run_->devices());
      put(i, v);
    }
    void settle() {
      std::size_t next = 0;
      for (std::size_t i = 0; i < have_.size() && next < rest_.size(); ++i)
        if (have_[i] == 0) put_global(static_cast<int>(i), rest_[next++]);
      if (next < rest_.size())
        throw error(concat("R001 run: ", rest_.size() - next, " arrays more than the program has ",
                           "inputs that are not given by name"));
    }

    const executable& e_;
    std::vector<sharded_array> given_;
    std::vector<char> have_;
    std::vector<array> rest_;
  };

  sharded_state run(std::vector<sharded_array> inputs) const {
    const device_program& d = p_->device;
    return guarded([&] {
      std::vector<const run_detail::distributed_array*> given;
      std::vector<axis_set> axes;
      for (std::size_t i = 0; i < inputs.size(); ++i) {
        const sharded_array need = input(static_cast<int>(i));
        if (!(inputs[i].sharding == need.sharding) || inputs[i].local != need.local)
          inputs[i].held = moved(inputs[i], need.sharding, need.local);
        given.push_back(&inputs[i].held);
      }
      for (const layout& l : d.outputs) axes.push_back(axes_of(d.mesh, l));
      auto made = (*run_)(given, axes);
      std::vector<sharded_array> out;
      for (int i = 0; i < d.local.output_count(); ++i)
        out.push_back({std::string(d.local.output_name(i)), d.output_types[at(i)],
                       d.outputs[at(i)], d.local.output_type(i), std::move(made[at(i)])});
      return sharded_state(std::move(out), next_inputs_);
    });
  }
  /// The shards of another layout.
  run_detail::distributed_array moved(const sharded_array& x, const layout& to,
                                      const tensor_type& local) const {
    const mesh& m = p_->device.mesh;
    const run_detail::device_set& here = run_->devices();
    const run_detail::relayout plan({here, x.sharding, x.held.axes, x.local},
                                    {here, to, axes_of(m, to), local}, here.this_process());
    scratch memory;
    return {plan.run(*link_, x.held.copies, memory), axes_of(m, to)};
  }

  std::shared_ptr<const partitioned> p_;
  const world* world_;
  options options_;
  std::unique_ptr<MPI_Comm, free_communicator> comm_;
  std::unique_ptr<run_detail::device_run> run_;
  backend_detail::mpi_transport* link_ = nullptr;  // of run_
  std::shared_ptr<const std::vector<std::string>> next_inputs_;
};

}  // namespace partita::mpi
