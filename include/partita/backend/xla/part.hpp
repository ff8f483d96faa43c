/// The program of an executable on XLA: on one mesh, or a pipeline over several.
#pragma once

#include <exception>
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
#include <partita/run/pipeline_part.hpp>
#include <partita/schedule/partitioned.hpp>

namespace partita::xla {

/// By device of a mesh: its shard of a value.
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
  virtual std::vector<xla::sharded_array> run(const std::vector<xla::sharded_array>& inputs) = 0;
  /// The compiled programs, each with a name.
  virtual std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const = 0;

  const std::vector<xla::sharded_array>& slots() const { return slots_; }  ///< without shards
  bool fits(const xla::sharded_array& x, const xla::sharded_array& slot) const {
    return x.mesh == slot.mesh && x.sharding == slot.sharding && x.local == slot.local &&
           x.shards.size() == devices(slot.mesh).size() &&
           &x.shards[0]->client() == client_.get() && x.on.rank == slot.on.rank;
  }
  /// Copies the shards of a global array to their devices.
  xla::sharded_array cut(xla::sharded_array v, const array& global) const {
    const array padded = run_detail::resized(global, v.sharding.global(v.local.shape, v.on));
    for (std::size_t d = 0; d < devices(v.mesh).size(); ++d) {
      const auto c = device_coordinates(v.on, static_cast<std::int64_t>(d));
      const auto begin = run_detail::start_of(v.on, v.sharding, v.local.shape, c);
      v.shards.push_back(put(v, d, padded, begin.at));
    }
    return v;
  }
  /// Copies the shards that make(request) returns to their devices.
  template <class Make>
  xla::sharded_array filled(xla::sharded_array v, const Make& make) const {
    const auto all = run_detail::device_set::all(v.on);
    const axis_set axes = axes_of(v.on, v.sharding);
    std::vector<array> copies;
    for (std::int64_t k = 0; k < all.copies(axes); ++k)
      copies.push_back(make(requested(v, v.on, all.coordinates_of(axes, k))));
    for (std::size_t d = 0; d < devices(v.mesh).size(); ++d) {
      const auto c = device_coordinates(v.on, static_cast<std::int64_t>(d));
      v.shards.push_back(put(v, d, copies[at(all.copy_at(axes, c))], nullptr));
    }
    return v;
  }
  /// Copies the distinct shards to host memory; waits for the runs that compute them.
  run_detail::distributed_array on_host(const xla::sharded_array& x) const {
    const auto all = run_detail::device_set::all(x.on);
    run_detail::distributed_array out;
    out.axes = axes_of(x.on, x.sharding);
    out.copies.resize(at(all.copies(out.axes)));
    std::vector<char> copying(out.copies.size(), 0);
    std::vector<PJRT_Event*> copied;
    for (std::int64_t d = 0; d < x.on.devices(); ++d) {
      const std::size_t k = at(all.copy_at(out.axes, device_coordinates(x.on, d)));
      if (std::exchange(copying[k], 1) != 0) continue;  // another device has the same
      out.copies[k] = array(x.local);
      copied.push_back(x.shards[at(d)]->get(out.copies[k].mutable_bytes(), x.local, x.name));
    }
    // All events are waited for even if one of them fails: the copies write to the arrays.
    std::exception_ptr failed;
    for (PJRT_Event* each : copied) {
      try {
        client_->plugin().wait(each, "E006", "\"", std::string_view(x.name),
                               "\" is computed or copied");
      } catch (...) {
        if (failed == nullptr) failed = std::current_exception();
      }
    }
    if (failed != nullptr) std::rethrow_exception(failed);
    return out;
  }
  array whole(const xla::sharded_array& x) const {
    return run_detail::resized(run_detail::joined(on_host(x), x.sharding, x.on), x.global.shape);
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
  std::unique_ptr<pjrt_executable> compile(const text& module, int mesh) const {
    if (module.view().starts_with("error: ")) {
      std::string_view reason = module.view().substr(7);
      if (reason.ends_with('\n')) reason.remove_suffix(1);
      throw error(text(reason));
    }
    return std::make_unique<pjrt_executable>(client_, module.view(), devices(mesh));
  }
  std::shared_ptr<device_buffer> put(const xla::sharded_array& v, std::size_t device,
                                     const array& from, const std::int64_t* begin) const {
    return device_buffer::put(client_, devices(v.mesh)[device], nullptr, v.local, from.bytes(),
                              from.shape(), begin, v.name);
  }
  /// Calls a compiled program. `donates`: by argument; `kept`: arguments that stay valid although
  /// the program may take over their memory.
  std::vector<xla::device_buffers> call(const pjrt_executable& f,
                                        const std::vector<const xla::device_buffers*>& arguments,
                                        std::size_t results, const std::vector<char>& donates,
                                        const std::vector<std::int64_t>& kept,
                                        const std::vector<std::string_view>& names) const {
    const std::size_t count = f.devices();
    std::vector<std::vector<PJRT_Buffer*>> in(count),
        out(count, std::vector<PJRT_Buffer*>(results, nullptr));
    for (std::size_t i = 0; i < arguments.size(); ++i)
      for (std::size_t d = 0; d < count; ++d) {
        (*arguments[i])[d]->need_there(names[i]);
        in[d].push_back((*arguments[i])[d]->buffer());
      }
    f.run(in, out, kept);
    for (std::size_t i = 0; i < arguments.size(); ++i)
      if (donates[i] != 0 && std::find(kept.begin(), kept.end(), i) == kept.end())
        for (const auto& shard : *arguments[i]) shard->donate();
    std::vector<xla::device_buffers> made(results);
    for (std::size_t k = 0; k < results; ++k)
      for (std::size_t d = 0; d < count; ++d)
        made[k].push_back(std::make_shared<device_buffer>(client_, out[d][k]));
    return made;
  }

  std::shared_ptr<const pjrt_client> client_;
  std::vector<std::vector<PJRT_Device*>> devices_;  // by mesh
  std::int64_t used_ = 0;
  std::vector<xla::sharded_array> slots_;
};

/// A program on one mesh.
class xla_mesh_part final : public xla_part {
 public:
  xla_mesh_part(const partitioned& p, std::shared_ptr<const pjrt_client> c, const xla::options& o)
      : xla_part(std::move(c)), p_(p) {
    const device_program& d = p_.device;
    client_->need_devices(d.mesh.devices(), concat("mesh ", d.mesh).view());
    add_mesh(d.mesh.devices());
    for (int i = 0; i < d.local.input_count(); ++i) {
      slots_.push_back({std::string(d.local.input_name(i)),
                        d.input_types[i],
                        d.inputs[i],
                        d.local.input_type(i),
                        0,
                        d.mesh,
                        {}});
      names_.push_back(d.local.input_name(i));
    }
    for (int i = 0; i < d.local.output_count(); ++i)
      outputs_.push_back({std::string(d.local.output_name(i)),
                          d.output_types[i],
                          d.outputs[i],
                          d.local.output_type(i),
                          0,
                          d.mesh,
                          {}});
    compiled_ = compile(write_stablehlo(d, donations(o)), 0);
  }
  const program& source() const override { return p_.source; }
  std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const override {
    return {{"main", compiled_.get()}};
  }
  std::vector<xla::sharded_array> run(const std::vector<xla::sharded_array>& inputs) override {
    std::vector<const xla::device_buffers*> arguments;
    for (const xla::sharded_array& x : inputs) arguments.push_back(&x.shards);
    auto made = call(*compiled_, arguments, outputs_.size(), donated_, {}, names_);
    std::vector<xla::sharded_array> out = outputs_;
    for (std::size_t k = 0; k < out.size(); ++k) out[k].shards = std::move(made[k]);
    return out;
  }

 private:
  /// Inputs pass their memory to outputs that are their next states and have the same shards.
  vec<argument_donation> donations(const xla::options& o) {
    const program& local = p_.device.local;
    vec<argument_donation> list(p_.device.inputs.size(), {});
    donated_.assign(slots_.size(), 0);
    if (!o.donate) return list;
    const vec<int> reused = reused_inputs(p_.source);
    for (int k = 0; k < local.output_count(); ++k) {
      const int i = reused[k];
      if (i < 0 || local.input_type(i) != local.output_type(k)) continue;
      list[i] = {true, k};
      donated_[at(i)] = 1;
    }
    return list;
  }

  const partitioned p_;
  std::vector<xla::sharded_array> outputs_;  // without shards
  std::vector<std::string_view> names_;      // by input
  std::vector<char> donated_;                // by input
  std::unique_ptr<pjrt_executable> compiled_;
};

/// A pipeline: the devices of the client are those of the meshes, in the order of the topology. It
/// interprets the exported list of calls and copies; the devices run asynchronously.
class xla_pipeline_part final : public xla_part {
 public:
  xla_pipeline_part(const pipelined& p, std::shared_ptr<const pjrt_client> c, const xla::options& o)
      : xla_part(std::move(c)), p_(p), list_(export_calls(p_)), options_(o) {
    list_.error.raise();
    std::int64_t all = 0;
    for (int m = 0; m < p_.topology.count(); ++m) all += p_.topology.mesh_of(m).devices();
    client_->need_devices(all, concat("topology ", p_.topology).view());
    for (int m = 0; m < p_.topology.count(); ++m) add_mesh(p_.topology.mesh_of(m).devices());
    for (int i = 0; i < p_.source.input_count(); ++i)
      slots_.push_back(
          of_buffer(list_.inputs[i], p_.source.input_name(i), p_.source.input_type(i)));
    for (const pipeline_step& s : list_.steps)
      if (s.is_call() && functions_[{s.function, s.mesh}] == nullptr)
        functions_[{s.function, s.mesh}] = compile(write_stablehlo(p_, list_, s.function), s.mesh);
  }
  const program& source() const override { return p_.source; }
  std::vector<std::pair<std::string, const pjrt_executable*>> compiled() const override {
    const mpmd_detail::exported_names names(p_, list_);
    std::vector<std::pair<std::string, const pjrt_executable*>> all;
    for (const auto& [key, f] : functions_)
      all.emplace_back(std::string(concat(names.function(key.first), " on mesh \"",
                                          p_.topology.name(key.second), '"')
                                       .view()),
                       f.get());
    return all;
  }
  std::vector<xla::sharded_array> run(const std::vector<xla::sharded_array>& inputs) override {
    held_.assign(list_.buffers.size(), {});
    cut_.clear();
    for (std::size_t i = 0; i < inputs.size(); ++i)
      held_[at(list_.inputs[static_cast<int>(i)])] = {inputs[i].shards};
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
    cut_.clear();
    return out;
  }

 private:
  /// A value of a buffer: one array, or its slices where calls write them one by one.
  using held_value = std::vector<xla::device_buffers>;

  xla::sharded_array of_buffer(int buffer, std::string_view name, const tensor_type& global) const {
    const pipeline_buffer& b = list_.buffers[buffer];
    return {std::string(name), global, b.lies, b.local, b.mesh, mesh_of(b.mesh), {}};
  }
  /// With axes split as the pipeline needs them.
  const mesh& mesh_of(int m) const { return p_.meshes[m]; }
  void drop(int buffer, int step) {
    if (buffer < 0 || list_.buffers[buffer].last != step) return;
    held_[at(buffer)] = {};
    cut_.erase(buffer);
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
      donates.push_back(may ? 1 : 0);
      if (may && (x.slice >= 0 || (argument && !options_.donate)))
        kept.push_back(static_cast<std::int64_t>(k));
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
        held = {std::move(made[k])};
        continue;
      }
      if (held.size() <= at(to.slice)) held.resize(at(to.slice) + 1);
      held[at(to.slice)] = std::move(made[k]);
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
        known = cut({"the number of the microbatch",
                     {dtype::i32, {}},
                     {},
                     {dtype::i32, {}},
                     mesh,
                     mesh_of(mesh),
                     {}},
                    array(static_cast<std::int32_t>(x.slice)))
                    .shards;
      return known;
    }
    const pipeline_buffer& b = list_.buffers[x.buffer];
    held_value& held = held_[at(x.buffer)];
    if (held.empty() && b.accumulates) return identity(b);
    if (x.slice < 0) return all_of(x.buffer);
    if (held.size() > 1 || (held.size() == 1 && b.stacks)) return held[at(x.slice)];
    // A stack that came as one array is cut once in a run.
    tensor_type slice{b.local.element, {}};
    for (int d = 1; d < b.local.shape.rank; ++d) slice.shape.push_back(b.local.shape[d]);
    auto& slices = cut_[x.buffer];
    if (slices.empty()) slices = slices_of(held[0], b, slice);
    return slices[at(x.slice)];
  }
  /// Returns the value of a buffer; slices become one array.
  xla::device_buffers all_of(int buffer) {
    const pipeline_buffer& b = list_.buffers[buffer];
    held_value& held = held_[at(buffer)];
    if (!b.stacks || held.size() == 1) return held[0];
    xla::device_buffers stack;
    for (std::size_t d = 0; d < devices(b.mesh).size(); ++d) {
      array all(b.local);
      const auto bytes = at(b.local.bytes()) / held.size();
      tensor_type slice{b.local.element, {}};
      for (int i = 1; i < b.local.shape.rank; ++i) slice.shape.push_back(b.local.shape[i]);
      for (std::size_t i = 0; i < held.size(); ++i)
        client_->plugin().wait(held[i][d]->get(all.mutable_bytes() + i * bytes, slice, "a slice"),
                               "E006", "a slice is copied");
      stack.push_back(device_buffer::put(client_, devices(b.mesh)[d], nullptr, b.local, all.bytes(),
                                         b.local.shape, nullptr, "a stack"));
    }
    held = {stack};
    return stack;
  }
  std::vector<xla::device_buffers> slices_of(const xla::device_buffers& stack,
                                             const pipeline_buffer& b, const tensor_type& slice) {
    std::vector<xla::device_buffers> made(at(b.local.shape[0]));
    for (std::size_t d = 0; d < stack.size(); ++d) {
      array all(b.local);
      client_->plugin().wait(stack[d]->get(all.mutable_bytes(), b.local, "a stack"), "E006",
                             "a stack is copied");
      for (std::size_t i = 0; i < made.size(); ++i)
        made[i].push_back(device_buffer::put(client_, devices(b.mesh)[d], nullptr, slice,
                                             all.bytes() + i * at(slice.bytes()), slice.shape,
                                             nullptr, "a slice"));
    }
    return made;
  }
  /// Returns the initial value of a sum, on every device.
  xla::device_buffers identity(const pipeline_buffer& b) const {
    const program& values = p_.values();
    const auto c = static_cast<combiner>(values.attrs(values.producer(b.slot))[0]);
    array one(b.local);
    run_detail::fill_with_identity(c == combiner::stack ? combiner::add : c, b.local,
                                   one.mutable_bytes());
    xla::device_buffers made;
    for (PJRT_Device* device : devices(b.mesh))
      made.push_back(device_buffer::put(client_, device, nullptr, b.local, one.bytes(),
                                        b.local.shape, nullptr, "a sum"));
    return made;
  }
  /// From device to device where both sides have the same shards, else by way of host memory.
  void copy(const pipeline_step& s) {
    const pipeline_buffer &from = list_.buffers[s.from], &to = list_.buffers[s.to];
    const xla::device_buffers sent = all_of(s.from);
    const auto& there = devices(to.mesh);
    if (from.local == to.local && from.lies == to.lies && sent.size() == there.size() &&
        same_grid(mesh_of(from.mesh), mesh_of(to.mesh))) {
      xla::device_buffers made;
      for (std::size_t d = 0; d < there.size(); ++d)
        made.push_back(sent[d]->copied_to(there[d], value_name(s.from)));
      held_[at(s.to)] = {std::move(made)};
      return;
    }
    const tensor_type global{from.local.element,
                             from.lies.global(from.local.shape, mesh_of(from.mesh))};
    xla::sharded_array x = of_buffer(s.from, "a transfer", global);
    x.shards = sent;
    xla::sharded_array y = of_buffer(s.to, "a transfer", global);
    held_[at(s.to)] = {cut(y, whole(x)).shards};
  }
  static bool same_grid(const mesh& a, const mesh& b) {
    bool same = a.rank == b.rank;
    for (int i = 0; same && i < a.rank; ++i)
      same = a.size(i) == b.size(i) && a.order[i] == b.order[i];
    return same;
  }

  const pipelined p_;
  exported_pipeline list_;
  xla::options options_;
  std::map<std::pair<int, int>, std::unique_ptr<pjrt_executable>> functions_;  // function, mesh
  std::vector<held_value> held_;                                               // by buffer
  std::map<std::pair<int, int>, xla::device_buffers> numbers_;                 // number, mesh
  std::map<int, std::vector<xla::device_buffers>> cut_;  // by buffer: the slices of its stack
};

}  // namespace partita::backend_detail
