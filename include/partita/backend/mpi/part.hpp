/// The part of a program that one process of a job runs: of a program on one mesh, or of a pipeline
/// over several.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/describe.hpp>
#include <partita/backend/mpi/transport.hpp>
#include <partita/backend/mpi/world.hpp>
#include <partita/backend/sharded_state.hpp>
#include <partita/ir/same_code.hpp>
#include <partita/run/pipeline_part.hpp>
#include <partita/schedule/partitioned.hpp>

namespace partita::backend_detail {

/// A communicator that is freed in the destructor.
class owned_communicator {
 public:
  /// Duplicates `of`; with a color, makes a communicator of the ranks that pass the same color.
  explicit owned_communicator(MPI_Comm of, int color = -1) {
    if (color < 0)
      need(MPI_Comm_dup(of, &comm_), "MPI_Comm_dup");
    else
      need(MPI_Comm_split(of, color, 0, &comm_), "MPI_Comm_split");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
  }
  owned_communicator(const owned_communicator&) = delete;
  owned_communicator& operator=(const owned_communicator&) = delete;
  ~owned_communicator() { MPI_Comm_free(&comm_); }
  MPI_Comm get() const { return comm_; }

 private:
  MPI_Comm comm_ = MPI_COMM_NULL;
};

/// The part of one process in a job. Runs accept and return the shards that this process holds.
class job_part {
 public:
  explicit job_part(const mpi::world& w) : comm_(w.communicator()) {}
  virtual ~job_part() = default;
  virtual const program& source() const = 0;
  virtual std::vector<sharded_array> run(const std::vector<const sharded_array*>& given) = 0;
  virtual std::int64_t workspace_bytes() const = 0;
  /// Names the op that this process works on.
  virtual text working_on() const = 0;
  virtual mpi::traffic sent() const { return link_->counted(); }

  const std::vector<sharded_array>& inputs() const { return inputs_; }  ///< without shards
  bool holds(const sharded_array& x) const { return x.mesh < 0 || site(x.mesh).mine; }
  /// True if every process has all of `x`.
  bool is_whole(const sharded_array& x) const {
    return x.mesh < 0 || (x.processes == ranks_.devices() && x.held.axes.empty());
  }
  const run_detail::mesh_site& site(int mesh) const {
    return sites_[static_cast<std::size_t>(mesh)];
  }
  /// True if an array is on a mesh of this executable.
  bool is_own(const sharded_array& x) const {
    if (x.mesh < 0 || std::cmp_greater_equal(x.mesh, sites_.size())) return false;
    const run_detail::mesh_site& s = site(x.mesh);
    const partita::mesh& m = s.devices.mesh();
    bool same = s.first == x.first && m.rank == x.on.rank &&
                s.devices.processes(run_detail::all_axes(m)) == x.processes;
    for (int a = 0; same && a < m.rank; ++a)
      same = m.size(a) == x.on.size(a) && m.name(a) == x.on.name(a) &&
             m.axes[a].pre == x.on.axes[a].pre && m.order[a] == x.on.order[a];
    return same;
  }
  /// Returns the placement of an array, which may belong to another executable. The result refers
  /// to the mesh of `x`.
  run_detail::placement place_of(const sharded_array& x) const {
    const std::int64_t number = rank_ - x.first;
    const bool here = number >= 0 && number < x.processes;
    return {run_detail::device_set::block(x.on, here ? number : 0, x.processes),
            x.sharding,
            x.held.axes,
            x.local,
            x.first,
            here};
  }
  /// Returns the placement of an unsharded array on every process.
  run_detail::placement everywhere(const tensor_type& t) const {
    return {run_detail::device_set::block(ranks_, rank_, ranks_.devices()), {}, {}, t, 0, true};
  }
  /// Moves an array to another placement. All processes must call it.
  sharded_array moved(const sharded_array& x, const run_detail::placement& to, int mesh) const {
    sharded_array out = x;
    out.mesh = mesh;
    out.sharding = to.sharding;
    out.local = to.local;
    out.on = to.devices.mesh();
    out.first = to.first;
    out.processes = to.processes();
    moving_ = concat("transfer of \"", std::string_view(x.name),
                     mesh < 0 ? "\" to all ranks" : "\" to the layout of an input");
    const run_detail::relayout plan(place_of(x), to, rank_);
    out.held = {plan.run(*link_, x.held.copies), to.varies};
    moving_ = {};
    return out;
  }

 protected:
  void start(const mpi::world& w) {
    rank_ = w.rank();
    ranks_ = mesh{{"rank", w.ranks()}};
  }
  std::unique_ptr<mpi_transport> make_link(const run_detail::device_set& devices, MPI_Comm comm,
                                           std::int64_t first, std::int64_t count,
                                           const mpi::world& w, const mpi::options& o,
                                           describe_function describe) {
    std::vector<int> ranks;
    for (std::int64_t r = 0; r < count; ++r) ranks.push_back(static_cast<int>(first + r));
    return std::make_unique<mpi_transport>(devices, comm, std::move(ranks), w.watched(), o.deadline,
                                           o.native_reductions, std::move(describe));
  }
  static void make_groups(mpi_transport& link, const program& p) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).def->collective && p.collective_of(o).communicates())
        link.make_groups(p.collective_of(o).along());
      for (const program& r : p.regions_of(o)) make_groups(link, r);
    }
  }
  sharded_array value(std::string_view name, const tensor_type& global, const layout& l, int mesh,
                      const tensor_type& local) const {
    const run_detail::mesh_site& s = site(mesh);
    const partita::mesh& m = s.devices.mesh();
    return {std::string(name),
            global,
            l,
            local,
            mesh,
            {{}, axes_of(m, l)},
            m,
            s.first,
            s.devices.processes(run_detail::all_axes(m))};
  }

  owned_communicator comm_;
  mpi_transport* link_ = nullptr;
  mesh ranks_;
  std::int64_t rank_ = 0;
  std::vector<run_detail::mesh_site> sites_;  // by mesh
  std::vector<sharded_array> inputs_;
  mutable text moving_;  // the transfer that moved() is doing, or empty
};

/// The part of a process in a program on one mesh.
class mesh_part final : public job_part {
 public:
  mesh_part(const partitioned& p, const mpi::world& w, const mpi::options& o) : job_part(w), p_(p) {
    start(w);
    const device_program& d = p_.device;
    sites_.push_back({run_detail::device_set::block(d.mesh, w.rank(), w.ranks())});
    auto link = make_link(sites_[0].devices, comm_.get(), 0, w.ranks(), w, o,
                          [this](const auto& use) { return name_of(use); });
    link_ = link.get();
    make_groups(*link_, d.local);
    run_ = std::make_unique<run_detail::device_run>(d, o.run, std::move(link),
                                                    std::vector<axis_set>{});
    for (int i = 0; i < d.local.input_count(); ++i)
      inputs_.push_back(value(d.local.input_name(i), d.input_types[at(i)], d.inputs[at(i)], 0,
                              d.local.input_type(i)));
  }
  const program& source() const override { return p_.source; }
  std::int64_t workspace_bytes() const override { return run_->workspace_bytes(); }
  text working_on() const override { return name_of(link_->now); }

  std::vector<sharded_array> run(const std::vector<const sharded_array*>& inputs) override {
    const device_program& d = p_.device;
    std::vector<const run_detail::distributed_array*> given;
    std::vector<axis_set> axes;
    for (const sharded_array* x : inputs) given.push_back(&x->held);
    for (const layout& l : d.outputs) axes.push_back(axes_of(d.mesh, l));
    auto made = (*run_)(given, axes);
    std::vector<sharded_array> out;
    for (int i = 0; i < d.local.output_count(); ++i) {
      out.push_back(value(d.local.output_name(i), d.output_types[at(i)], d.outputs[at(i)], 0,
                          d.local.output_type(i)));
      out.back().held = std::move(made[at(i)]);
    }
    return out;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  text name_of(const run_detail::transport_use& use) const {
    if (moving_.size() > 0) return moving_;
    return describe(p_.source, p_.core, p_.tactics, p_.notes, run_->p(), use);
  }

  const partitioned p_;
  std::unique_ptr<run_detail::device_run> run_;
};

/// The part of a process in a pipeline, with a rank for each device of each mesh, mesh by mesh.
class pipeline_of_job final : public job_part {
 public:
  /// The largest result that is sent to all processes after each run, so that each can read it.
  static constexpr std::int64_t small_bytes = 4096;

  pipeline_of_job(const pipelined& p, const mpi::world& w, const mpi::options& o)
      : job_part(w), p_(p), list_(export_calls(p_)), mesh_comm_(w.communicator(), mesh_at(p, w)) {
    list_.error.raise();
    start(w);
    std::int64_t first = 0;
    for (int m = 0; m < p_.topology.count(); ++m) {
      const mesh& each = p_.meshes[m];
      const std::int64_t count = each.devices(), mine = w.rank() - first;
      const bool here = mine >= 0 && mine < count;
      sites_.push_back({run_detail::device_set::block(each, here ? mine : 0, count), first, here});
      first += count;
    }
    all_ = make_link(everywhere({}).devices, comm_.get(), 0, w.ranks(), w, o,
                     [this](const auto&) { return working_on(); });
    link_ = all_.get();
    const run_detail::mesh_site& mine = site(mesh_at(p_, w));
    on_mesh_ = make_link(mine.devices, mesh_comm_.get(), mine.first, mine.devices.mesh().devices(),
                         w, o, [this](const auto& use) { return name_of(use); });
    functions_ =
        run_detail::make_functions(p_, o.run, false, sites_, [&](int) { return on_mesh_; });
    for (const auto& f : functions_)
      if (f != nullptr) make_groups(*on_mesh_, f->p());
    for (int i = 0; i < p_.source.input_count(); ++i)
      inputs_.push_back(
          of_buffer(list_.inputs[i], p_.source.input_name(i), p_.source.input_type(i)));
  }
  const program& source() const override { return p_.source; }
  std::int64_t workspace_bytes() const override {
    std::int64_t n = 0;
    for (const auto& f : functions_)
      if (f != nullptr) n += f->workspace_bytes();
    return n;
  }
  mpi::traffic sent() const override {
    mpi::traffic all = link_->counted();
    const mpi::traffic& mine = on_mesh_->counted();
    return {all.calls + mine.calls, all.bytes + mine.bytes, all.seconds + mine.seconds};
  }
  text working_on() const override {
    if (moving_.size() > 0) return moving_;
    return working_ != nullptr ? working_->doing() : text("the pipeline");
  }

  std::vector<sharded_array> run(const std::vector<const sharded_array*>& inputs) override {
    run_detail::pipeline_part part(p_, list_, functions_, sites_, *link_, rank_, false);
    working_ = &part;
    for (std::size_t i = 0; i < inputs.size(); ++i)
      part.place(static_cast<int>(i), inputs[i]->held);
    part.run();
    working_ = nullptr;
    std::vector<sharded_array> out;
    for (int i = 0; i < p_.source.output_count(); ++i) {
      sharded_array x =
          of_buffer(list_.outputs[i], p_.source.output_name(i), p_.source.output_type(i));
      x.held = part.output(i);
      x.held.axes = axes_of(site(x.mesh).devices.mesh(), x.sharding);
      const bool small = x.global.bytes() <= small_bytes && !is_state(x.name);
      out.push_back(small ? moved(x, everywhere(x.global), -1) : x);
    }
    return out;
  }

 private:
  /// Returns the mesh of this rank.
  ///
  /// Errors    J001 the numbers of ranks and devices differ
  static int mesh_at(const pipelined& p, const mpi::world& w) {
    std::int64_t devices = 0;
    int mine = 0;
    for (int m = 0; m < p.topology.count(); ++m) {
      if (devices <= w.rank()) mine = m;
      devices += p.meshes[m].devices();
    }
    if (devices != w.ranks())
      throw error(concat("J001 mpi: ", w.ranks(), " ranks for a pipeline over ", p.topology, ", ",
                         devices, " devices; start one per device: mpirun -n ", devices));
    return mine;
  }
  sharded_array of_buffer(int buffer, std::string_view name, const tensor_type& global) const {
    const pipeline_buffer& b = list_.buffers[buffer];
    return value(name, global, b.lies, b.mesh, b.local);
  }
  bool is_state(std::string_view output) const {
    for (int i = 0; i < p_.source.input_count(); ++i)
      if (p_.source.input_name(i) == output) return true;
    return false;
  }
  text name_of(const run_detail::transport_use& use) const {
    const int unit = working_ != nullptr ? working_->unit() : -1;
    if (unit < 0) return working_on();
    return describe(p_.source, p_.core, p_.tactics, p_.function(unit).notes,
                    functions_[static_cast<std::size_t>(unit)]->p(), use)
           << " in " << working_on();
  }

  const pipelined p_;
  exported_pipeline list_;
  owned_communicator mesh_comm_;
  std::unique_ptr<mpi_transport> all_;
  std::shared_ptr<mpi_transport> on_mesh_;
  run_detail::pipeline_functions functions_;
  const run_detail::pipeline_part* working_ = nullptr;
};

}  // namespace partita::backend_detail
