/// The program of an executable on XLA: on one mesh, or a pipeline over several.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/stored_shard.hpp>
#include <partita/backend/sharded_state.hpp>
#include <partita/backend/xla/compiled.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/mpmd/write_functions.hpp>
#include <partita/mpmd/write_stacks.hpp>
#include <partita/run/pipeline_part.hpp>
#include <partita/schedule/partitioned.hpp>

namespace partita::xla {

/// By device of a mesh: its shard of a value; null on devices of other processes.
using device_buffers = std::vector<std::shared_ptr<backend_detail::device_buffer>>;

/// A sharded tensor on the devices of a client.
struct sharded_array {
  std::string name;
  tensor_type global;  ///< without padding
  layout sharding;
  tensor_type local;  ///< of a shard, padding included
  int mesh = 0;       ///< in a pipeline: the mesh that has the tensor
  partita::mesh on;   ///< the mesh of `sharding`, with axes split as in its program
  device_buffers shards;
  std::string memory = {};  ///< kind of memory, such as "pinned_host"; empty: the device's own
};

struct options {
  /// Results reuse the memory of the inputs whose next values they are; the old state is gone then.
  bool donate = true;
};

}  // namespace partita::xla

namespace partita::backend_detail {

/// The program of an executable, on devices of a client.
class xla_part {
 public:
  virtual ~xla_part() = default;
  virtual const program& source() const = 0;
  /// Starts a run of arrays that have the layouts of the inputs.
  virtual std::vector<xla::sharded_array> run(
      const std::vector<const xla::sharded_array*>& inputs) = 0;
  /// The compiled programs, each with a name.
  virtual std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const = 0;

  const process_group& group() const { return client_->group(); }
  const std::vector<xla::sharded_array>& slots() const { return slots_; }  ///< without shards
  bool fits(const xla::sharded_array& x, const xla::sharded_array& slot) const {
    const auto one = std::find_if(x.shards.begin(), x.shards.end(), [](auto& s) { return !!s; });
    return x.mesh == slot.mesh && x.sharding == slot.sharding && x.local == slot.local &&
           x.shards.size() == devices(slot.mesh).size() && one != x.shards.end() &&
           &(*one)->client() == client_.get() && x.on.rank == slot.on.rank &&
           x.memory == slot.memory;
  }
  /// Copies the shards of a global array to their devices.
  xla::sharded_array cut(xla::sharded_array v, const array& global) const {
    const array padded = run_detail::resized(global, v.sharding.global(v.local.shape, v.on));
    for (std::int64_t d = 0; d < v.on.devices(); ++d) {
      const auto begin =
          run_detail::start_of(v.on, v.sharding, v.local.shape, device_coordinates(v.on, d));
      v.shards.push_back(put(v, d, padded, begin.at));
    }
    return v;
  }
  /// Copies the shards that make(request) returns to their devices.
  template <class Make>
  xla::sharded_array filled(xla::sharded_array v, const Make& make) const {
    const auto all = run_detail::device_set::all(v.on);
    const axis_set axes = axes_of(v.on, v.sharding);
    std::map<std::int64_t, array> copies;
    for (std::int64_t d = 0; d < v.on.devices(); ++d) {
      const auto k = all.copy_at(axes, device_coordinates(v.on, d));
      const bool own = client_->owns(devices(v.mesh)[at(d)]);
      if (own && !copies.contains(k))
        copies.emplace(k, make(requested(v, v.on, all.coordinates_of(axes, k))));
      v.shards.push_back(own ? put(v, d, copies.at(k), nullptr) : nullptr);
    }
    return v;
  }
  /// Copies the distinct shards of this process to host memory; waits for the runs that compute
  /// them. Those of other processes are missing.
  run_detail::distributed_array on_host(const xla::sharded_array& x) const {
    const auto all = run_detail::device_set::all(x.on);
    run_detail::distributed_array out;
    out.axes = axes_of(x.on, x.sharding);
    out.copies.resize(at(all.copies(out.axes)));
    std::vector<char> copying(out.copies.size(), 0);
    std::vector<PJRT_Event*> copied;
    for (std::int64_t d = 0; d < x.on.devices(); ++d) {
      const std::size_t k = at(all.copy_at(out.axes, device_coordinates(x.on, d)));
      if (x.shards[at(d)] == nullptr || std::exchange(copying[k], 1) != 0)
        continue;  // another process or device has it
      out.copies[k] = array(x.local);
      copied.push_back(x.shards[at(d)]->get(out.copies[k].mutable_bytes(), x.local, x.name));
    }
    // All events are waited for even if one of them fails: the copies write to the arrays.
    PJRT_Error* failed = nullptr;
    for (PJRT_Event* each : copied) {
      PJRT_Error* error = client_->plugin().awaited(each);
      if (failed == nullptr) std::swap(failed, error);
      client_->plugin().destroy(error);
    }
    client_->need(failed, "E006", "\"", std::string_view(x.name), "\" is computed or copied");
    return out;
  }
  array whole(const xla::sharded_array& x) const {
    auto held = on_host(x);
    if (group().processes > 1 && held.copies.size() > 1) exchange(held, x, group());
    return run_detail::resized(run_detail::joined(held, x.sharding, x.on), x.global.shape);
  }

 protected:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  explicit xla_part(std::shared_ptr<const pjrt_client> c) : client_(std::move(c)) {}
  /// The next `count` devices of the client are those of the next mesh.
  void add_mesh(std::int64_t count) {
    const auto first = client_->devices().begin() + used_;
    devices_.emplace_back(first, first + count);
    used_ += count;
  }
  const std::vector<PJRT_Device*>& devices(int mesh) const { return devices_[at(mesh)]; }
  /// Compiles a module for a mesh, once.
  shared_executable compile(const text& module, int mesh) {
    if (module.view().starts_with("error: "))  // and ends with a new line
      throw error(text(module.view().substr(7, module.size() - 8)));
    auto& made = compiled_modules_[{std::string(module.view()), mesh}];
    if (made == nullptr)
      made = std::make_shared<const pjrt_executable>(client_, module.view(), devices(mesh));
    return made;
  }
  /// True if the plugin's XLA has the op that copies to another memory. That for CPUs has not.
  bool copies_to_memories() const { return client_->platform() != "cpu"; }
  std::shared_ptr<device_buffer> put(const xla::sharded_array& v, std::int64_t device,
                                     const array& from, const std::int64_t* begin) const {
    PJRT_Device* const to = devices(v.mesh)[at(device)];
    if (!client_->owns(to)) return nullptr;
    return device_buffer::put(client_, to, client_->memory_of(to, v.memory, v.name), v.local,
                              from.bytes(), from.shape(), begin, v.name);
  }
  /// Calls a compiled program. `donates`: by argument, true if the program takes over its memory.
  /// `kept`: arguments that stay valid although the program might do so.
  std::vector<xla::device_buffers> call(const pjrt_executable& f,
                                        const std::vector<const xla::device_buffers*>& arguments,
                                        std::size_t results, const std::vector<char>& donates,
                                        const std::vector<std::int64_t>& kept,
                                        const std::vector<std::string_view>& names) const {
    std::vector<std::size_t> own;
    for (std::size_t d = 0; d < f.devices().size(); ++d)
      if (client_->owns(f.devices()[d])) own.push_back(d);
    std::vector<PJRT_Buffer*> in, out(own.size() * results);
    in.reserve(own.size() * arguments.size());
    for (const std::size_t d : own)
      for (std::size_t i = 0; i < arguments.size(); ++i)
        in.push_back((*arguments[i])[d]->there(names[i]));
    if (!own.empty()) f.run(own.size(), in, out, kept);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (donates[i] != 0)
        for (const std::size_t d : own) (*arguments[i])[d]->donate();
    std::vector<xla::device_buffers> made(results, xla::device_buffers(f.devices().size()));
    for (std::size_t j = 0; j < own.size(); ++j)
      for (std::size_t k = 0; k < results; ++k)
        made[k][own[j]] = std::make_shared<device_buffer>(client_, out[j * results + k]);
    return made;
  }

  std::shared_ptr<const pjrt_client> client_;
  std::vector<std::vector<PJRT_Device*>> devices_;  // by mesh
  std::int64_t used_ = 0;
  std::vector<xla::sharded_array> slots_;
  std::map<std::pair<std::string, int>, shared_executable> compiled_modules_;
};

/// A program on one mesh.
class xla_mesh_part final : public xla_part {
 public:
  xla_mesh_part(const partitioned& p, std::shared_ptr<const pjrt_client> c, const xla::options& o)
      : xla_part(std::move(c)), p_(p) {
    const device_program& d = p_.device;
    client_->need_devices(d.mesh.devices(), concat("mesh ", d.mesh).view());
    add_mesh(d.mesh.devices());
    const program& local = d.local;
    const port_memories memory(local);
    const auto add = [&](auto& to, int i, std::string_view name, auto& global, auto& l,
                         const tensor_type& type, std::string_view kind) {
      to.push_back({std::string(name), global[i], l[i], type, 0, d.mesh, {}, std::string(kind)});
      for (PJRT_Device* each : devices(0))
        if (client_->owns(each)) client_->memory_of(each, kind, name);
    };
    for (int i = 0; i < local.input_count(); ++i) {
      names_.push_back(local.input_name(i));
      add(slots_, i, names_.back(), d.input_types, d.inputs, local.input_type(i), memory.inputs[i]);
    }
    for (int k = 0; k < local.output_count(); ++k)
      add(outputs_, k, local.output_name(k), d.output_types, d.outputs, local.output_type(k),
          memory.outputs[k]);
    compiled_ = compile(write_stablehlo(d, donations(o), {.ops = copies_to_memories()}), 0);
  }
  const program& source() const override { return p_.source; }
  std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const override {
    return {{"main", compiled_.get()}};
  }
  std::vector<xla::sharded_array> run(
      const std::vector<const xla::sharded_array*>& inputs) override {
    std::vector<const xla::device_buffers*> arguments;
    for (const xla::sharded_array* x : inputs) arguments.push_back(&x->shards);
    auto made = call(*compiled_, arguments, outputs_.size(), donated_, {}, names_);
    std::vector<xla::sharded_array> out = outputs_;
    for (std::size_t k = 0; k < out.size(); ++k) out[k].shards = std::move(made[k]);
    return out;
  }

 private:
  /// Inputs pass their memory to outputs that are their next states, in the same memory with the
  /// same shards.
  vec<argument_donation> donations(const xla::options& o) {
    const program& local = p_.device.local;
    vec<argument_donation> list(p_.device.inputs.size(), {});
    donated_.assign(slots_.size(), 0);
    if (!o.donate) return list;
    const vec<int> reused = reused_inputs(p_.source);
    for (int k = 0; k < local.output_count(); ++k) {
      const int i = reused[k];
      if (i < 0 || local.input_type(i) != local.output_type(k) ||
          slots_[at(i)].memory != outputs_[at(k)].memory)
        continue;
      list[i] = {true, k};
      donated_[at(i)] = 1;
    }
    return list;
  }

  const partitioned p_;
  std::vector<xla::sharded_array> outputs_;  // without shards
  std::vector<std::string_view> names_;      // by input
  std::vector<char> donated_;                // by input
  shared_executable compiled_;
};

/// A pipeline: the devices of the client are those of the meshes, in the order of the topology. It
/// interprets the exported list of calls and copies; the devices run asynchronously.
class xla_pipeline_part final : public xla_part {
 public:
  xla_pipeline_part(const pipelined& p, std::shared_ptr<const pjrt_client> c, const xla::options& o)
      : xla_part(std::move(c)), p_(p), list_(export_calls(p_)), options_(o) {
    list_.error.raise();
    if (group().processes > 1)
      throw error(concat("E010 xla: a pipeline needs one process, not ", group().processes));
    std::int64_t all = 0;
    for (int m = 0; m < p_.topology.count(); ++m) all += p_.topology.mesh_of(m).devices();
    client_->need_devices(all, concat("topology ", p_.topology).view());
    for (int m = 0; m < p_.topology.count(); ++m) add_mesh(p_.topology.mesh_of(m).devices());
    for (int i = 0; i < p_.source.input_count(); ++i)
      slots_.push_back(
          of_buffer(list_.inputs[i], p_.source.input_name(i), p_.source.input_type(i)));
    for (const pipeline_step& s : list_.steps)
      if (s.is_call() && functions_[{s.function, s.mesh}] == nullptr)
        functions_[{s.function, s.mesh}] =
            compile(write_stablehlo(p_, list_, s.function, copies_to_memories()), s.mesh);
  }
  const program& source() const override { return p_.source; }
  std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const override {
    const mpmd_detail::exported_names names(p_, list_);
    std::vector<std::pair<std::string, const pjrt_executable*>> all;
    for (const auto& [key, f] : functions_) {
      const text on = concat(" on mesh \"", p_.topology.name(key.second), '"');
      all.emplace_back(concat(names.function(key.first), on).view(), f.get());
    }
    return all;
  }
  std::vector<xla::sharded_array> run(
      const std::vector<const xla::sharded_array*>& inputs) override {
    held_.assign(list_.buffers.size(), {});
    for (std::size_t i = 0; i < inputs.size(); ++i)
      held_[at(list_.inputs[static_cast<int>(i)])].all = inputs[i]->shards;
    for (int k = 0; k < static_cast<int>(list_.steps.size()); ++k) {
      const pipeline_step& s = list_.steps[k];
      if (s.is_call())
        call_unit(s);
      else
        copy(s);
      for (const call_operand& each : s.takes) drop(each.buffer, k);
      drop(s.from, k);
    }
    std::vector<xla::sharded_array> out;
    for (int i = 0; i < p_.source.output_count(); ++i) {
      out.push_back(
          of_buffer(list_.outputs[i], p_.source.output_name(i), p_.source.output_type(i)));
      out.back().shards = all_of(list_.outputs[i]);
    }
    held_.clear();
    return out;
  }

 private:
  /// A value of a buffer: one array, its slices, which calls write and read one by one, or both.
  struct held_value {
    xla::device_buffers all;
    std::vector<xla::device_buffers> slices;
  };

  xla::sharded_array of_buffer(int buffer, std::string_view name, const tensor_type& global) const {
    const pipeline_buffer& b = list_.buffers[buffer];
    return {std::string(name), global, b.lies, b.local, b.mesh, mesh_of(b.mesh), {}};
  }
  /// With axes split as the pipeline needs them.
  const mesh& mesh_of(int m) const { return p_.meshes[m]; }
  void drop(int buffer, int step) {
    if (buffer < 0 || list_.buffers[buffer].last != step) return;
    held_[at(buffer)] = {};
  }

  void call_unit(const pipeline_step& s) {
    const pipeline_function& f = list_.functions[s.function];
    std::vector<xla::device_buffers> taken;
    std::vector<char> donates;
    std::vector<std::int64_t> kept;
    std::vector<std::string_view> names;
    for (std::size_t k = 0; k < s.takes.size(); ++k) {
      const call_operand& x = s.takes[k];
      const bool may = k < f.donated.size() && f.donated[k] != 0;
      const bool argument = !x.is_number() && list_.buffers[x.buffer].is_argument;
      const bool keeps = x.slice >= 0 || (argument && !options_.donate);
      donates.push_back(may && !keeps ? 1 : 0);
      if (may && keeps) kept.push_back(static_cast<std::int64_t>(k));
      names.push_back(x.is_number() ? std::string_view("the number of the microbatch")
                                    : value_name(x.buffer));
      taken.push_back(operand(x, s.mesh));
    }
    std::vector<const xla::device_buffers*> arguments;
    for (const auto& each : taken) arguments.push_back(&each);
    auto made =
        call(*functions_.at({s.function, s.mesh}), arguments, s.gives.size(), donates, kept, names);
    for (std::size_t k = 0; k < made.size(); ++k) {
      const call_operand& to = s.gives[k];
      held_value& held = held_[at(to.buffer)];
      if (to.slice < 0) {
        held = {std::move(made[k]), {}};
        continue;
      }
      held.slices.resize(at(list_.buffers[to.buffer].local.shape[0]));
      held.slices[at(to.slice)] = std::move(made[k]);
    }
  }
  std::string_view value_name(int buffer) const {
    for (int i = 0; i < p_.source.input_count(); ++i)
      if (list_.inputs[i] == buffer) return p_.source.input_name(i);
    return "a value of the pipeline";
  }
  xla::device_buffers operand(const call_operand& x, int mesh) {
    if (x.is_number()) {
      auto& known = numbers_[{x.slice, mesh}];
      if (known.empty())
        known = replicated(array(static_cast<std::int32_t>(x.slice)), mesh, "a number");
      return known;
    }
    const pipeline_buffer& b = list_.buffers[x.buffer];
    held_value& held = held_[at(x.buffer)];
    if (b.accumulates && held.all.empty() && held.slices.empty())
      return replicated(run_detail::initial_sum(p_, b), b.mesh, "a sum");
    if (x.slice < 0) return all_of(x.buffer);
    // A stack that came as one array is cut once in a run.
    if (held.slices.empty()) held.slices = restacked(x.buffer, {held.all}, true);
    return held.slices[at(x.slice)];
  }
  /// Returns the value of a buffer; slices become one array.
  xla::device_buffers all_of(int buffer) {
    held_value& held = held_[at(buffer)];
    if (held.all.empty()) held = {restacked(buffer, held.slices, false)[0], {}};
    return held.all;
  }
  /// Joins the slices of a stack, or cuts a stack into its slices, on the devices that have it.
  std::vector<xla::device_buffers> restacked(int buffer,
                                             const std::vector<xla::device_buffers>& from,
                                             bool cuts) {
    const pipeline_buffer& b = list_.buffers[buffer];
    const mesh& m = p_.topology.mesh_of(b.mesh);
    auto& f = restacks_[{buffer, cuts}];
    if (f == nullptr) f = compile(cuts ? write_cut(m, b.local) : write_join(m, b.local), b.mesh);
    std::vector<const xla::device_buffers*> arguments;
    for (const auto& each : from) arguments.push_back(&each);
    return call(*f, arguments, cuts ? at(b.local.shape[0]) : 1, std::vector<char>(from.size(), 0),
                {}, std::vector<std::string_view>(from.size(), value_name(buffer)));
  }
  xla::device_buffers replicated(const array& a, int mesh, std::string_view name) const {
    xla::device_buffers made;
    for (PJRT_Device* device : devices(mesh))
      made.push_back(device_buffer::put(client_, device, nullptr, a.type(), a.bytes(), a.shape(),
                                        nullptr, name));
    return made;
  }
  /// From device to device where both sides have the same shards, else by way of host memory.
  void copy(const pipeline_step& s) {
    const pipeline_buffer &from = list_.buffers[s.from], &to = list_.buffers[s.to];
    const xla::device_buffers sent = all_of(s.from);
    const auto& there = devices(to.mesh);
    if (from.local == to.local && from.lies == to.lies &&
        mesh_of(from.mesh).same_grid(mesh_of(to.mesh))) {
      xla::device_buffers made;
      for (std::size_t d = 0; d < there.size(); ++d)
        made.push_back(sent[d]->copied_to(there[d], value_name(s.from)));
      held_[at(s.to)] = {std::move(made), {}};
      return;
    }
    const tensor_type global{from.local.element,
                             from.lies.global(from.local.shape, mesh_of(from.mesh))};
    xla::sharded_array x = of_buffer(s.from, "a transfer", global);
    x.shards = sent;
    held_[at(s.to)] = {cut(of_buffer(s.to, "a transfer", global), whole(x)).shards, {}};
  }

  const pipelined p_;
  exported_pipeline list_;
  xla::options options_;
  std::map<std::pair<int, int>, shared_executable> functions_;  // by function and mesh
  std::vector<held_value> held_;                                // by buffer
  std::map<std::pair<int, int>, xla::device_buffers> numbers_;  // number, mesh
  std::map<std::pair<int, bool>, shared_executable> restacks_;  // by buffer and way
};

}  // namespace partita::backend_detail
