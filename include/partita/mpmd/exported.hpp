/// Exports a pipeline for a runtime: buffers, functions, and one list of calls and copies.
///
/// Source    Shardy:MPMD, export: functions shared by equal fragments, donation, reserved memory
#pragma once

#include <cstdint>

#include <partita/ir/same_code.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>

namespace partita {

/// Memory on each device of a mesh.
struct pipeline_buffer {
  value_id slot = -1;  ///< see pipelined::values
  int mesh = 0, microbatch = -1;
  tensor_type local = {};  ///< type of a shard
  layout lies = {};
  axis_set terms = {};        ///< axes along which devices hold terms of a pending sum
  bool accumulates = false;   ///< starts as the identity of its sum, and calls add to it in place
  bool stacks = false;        ///< a slice for each microbatch, written one by one
  bool is_argument = false;   ///< an input of the step, or a copy of one
  int first = -1, last = -1;  ///< steps that write it (-1: none) and use it last

  constexpr std::int64_t bytes() const { return local.bytes(); }
};

/// An operand or result of a call: a buffer, a slice of one, or the number of a microbatch.
struct call_operand {
  int buffer = -1, slice = -1;  ///< without a buffer: the number
  constexpr bool is_number() const { return buffer < 0; }
};

/// A call of a function by all devices of a mesh, or a copy of a buffer from mesh to mesh.
struct pipeline_step {
  int mesh = 0;                        ///< the mesh that calls, or the destination of a copy
  int number = -1;                     ///< of the call among calls; -1 for a copy
  int function = -1, microbatch = -1;  ///< of a joint call: those of its first part
  int unit = -1;                       ///< of a call; see pipelined::function
  int last_microbatch = -1;
  vec<call_operand> takes, gives;
  int after = -1;             ///< the previous call on the mesh, for which it waits; -1: the first
  std::int64_t reserved = 0;  ///< bytes on a device that are occupied and not used by the call
  int from = -1, to = -1;     ///< buffers of a copy
  int transfer = -1;          ///< of a copy: see pipelined::transfers

  constexpr bool is_call() const { return number >= 0; }
};

/// A function that meshes of the same shape and kind call.
struct pipeline_function {
  /// The units that share it (see pipelined::function); the one called first comes first.
  vec<int> units;
  /// By input: true if the call may overwrite its buffer because every call of the function is the
  /// last user.
  vec<char> donated;
  vec<int> alias;  ///< by input: the output that reuses its memory, or -1
};

/// A pipeline as a runtime executes it.
struct exported_pipeline {
  vec<pipeline_buffer> buffers;
  vec<pipeline_function> functions;  ///< in the order of their first calls
  vec<pipeline_step> steps;          ///< in an order of execution
  vec<int> inputs, outputs;          ///< buffers
  failure error;
};

namespace mpmd_detail {

/// Walks along the calls in their order and records buffers, steps and functions.
class exporter {
 public:
  constexpr explicit exporter(const pipelined& p)
      : p_(p), last_call_(static_cast<std::size_t>(p.topology.count()), -1) {
    function_of_.resize(p.units.size() + p.joint_functions.size(), -1);
  }

  constexpr exported_pipeline run() {
    add_inputs();
    add_steps();
    add_outputs();
    if (!out_.error) {
      find_last_uses();
      find_states();
      find_donations();
      find_reserved();
    }
    return static_cast<exported_pipeline&&>(out_);
  }

 private:
  const pipelined& p_;
  exported_pipeline out_;
  place_table buffer_at_;
  hash_index function_at_;
  vec<int> newer_;        ///< by buffer: the one that has replaced it, or -1
  vec<int> function_of_;  ///< by unit
  vec<int> last_call_;    ///< by mesh: number of its last call so far
  /// The last step that used a buffer, whether it used it more than once, and the step and result
  /// that wrote it.
  struct operand_use {
    int taken = -1, given = -1, result = -1;
    bool several = false;
  };
  vec<operand_use> use_;
  vec<int> next_state_;  ///< by buffer: for an input, the one that replaces it, or -1
  int calls_ = 0;

  constexpr const program& values() const { return p_.values(); }

  // ---- Buffers ---------------------------------------------------------------------------------

  constexpr int microbatch_of(value_id slot, int microbatch) const {
    return p_.microbatch_in(slot, microbatch);
  }
  static constexpr std::size_t hash(value_id slot, int mesh, int microbatch) {
    return hash_of(hash_of(static_cast<std::uint64_t>(slot) << 32 |
                           static_cast<std::uint32_t>(microbatch + 1)) ^
                   static_cast<std::uint64_t>(mesh));
  }
  constexpr int find(value_id slot, int mesh, int microbatch) const {
    const int i = buffer_at_.find(hash(slot, mesh, microbatch), [&](int k) {
      const pipeline_buffer& b = out_.buffers[k];
      return b.slot == slot && b.mesh == mesh && b.microbatch == microbatch;
    });
    return i < 0 || newer_[i] < 0 ? i : newer_[i];
  }
  /// Errors    O131 a needed value has not been computed
  constexpr int known(value_id slot, int mesh, int microbatch) {
    const int i = find(slot, mesh, microbatch);
    if (i < 0)
      out_.error.record("O131", "internal error: value ", slot, " of microbatch ", microbatch,
                        " is not on mesh \"", p_.topology.name(mesh),
                        "\" where it is needed; please report it");
    return i;
  }
  /// Returns the buffer of this slot, creating it from `b` if it does not exist yet.
  constexpr int put(const pipeline_buffer& b) {
    int i = find(b.slot, b.mesh, b.microbatch);
    if (i >= 0) return i;
    i = append(b);
    buffer_at_.insert(i, [&](int k) {
      const pipeline_buffer& each = out_.buffers[k];
      return hash(each.slot, each.mesh, each.microbatch);
    });
    return i;
  }
  constexpr int append(const pipeline_buffer& b) {
    out_.buffers.push_back(b);
    newer_.push_back(-1);
    return static_cast<int>(out_.buffers.size()) - 1;
  }
  /// Returns the buffer of a call's result. A sum whose layout differs from that of its terms gets
  /// another buffer.
  constexpr int put_result(const pipeline_buffer& b) {
    const int before = put(b);
    const pipeline_buffer& there = out_.buffers[before];
    if (there.local == b.local && there.lies == b.lies) return before;
    const int i = append(b);
    newer_[before] = i;
    return i;
  }
  constexpr tensor_type piece(value_id slot, const layout& l, int mesh) const {
    const tensor_type& t = values().type(slot);
    return {t.element, l.local(t.shape, p_.meshes[mesh])};
  }
  constexpr void add_inputs() {
    for (int i = 0; i < p_.source.input_count(); ++i) {
      const value_id slot = p_.slot_of[p_.source.inputs[i]];
      const int mesh = p_.input_mesh[i];
      out_.inputs.push_back(put({.slot = slot,
                                 .mesh = mesh,
                                 .local = piece(slot, p_.input_layout[i], mesh),
                                 .lies = p_.input_layout[i],
                                 .is_argument = true}));
    }
    for (int t = 0; t < static_cast<int>(p_.transfers.size()); ++t)
      if (p_.transfers[t].after < 0) copy(t, -1);
  }
  constexpr void add_outputs() {
    vec<char> returned(values().types.size(), 0);
    for (const value_id slot : p_.output_slot) returned[slot] = 1;
    for (int t = 0; t < static_cast<int>(p_.transfers.size()); ++t) {  // that only the caller uses
      const value_id slot = p_.slot_of[p_.transfers[t].value];
      const int microbatch = microbatch_of(slot, -1);
      if (returned[slot] != 0 && find(slot, p_.transfers[t].to, microbatch) < 0 &&
          find(slot, p_.transfers[t].from, microbatch) >= 0)
        copy(t, microbatch);
    }
    for (int i = 0; i < p_.source.output_count(); ++i) {
      const value_id slot = p_.output_slot[i];
      out_.outputs.push_back(known(slot, p_.output_mesh[i], microbatch_of(slot, -1)));
    }
  }

  // ---- Steps -----------------------------------------------------------------------------------

  constexpr void add_steps() {
    vec<int> by_call(p_.calls.calls.size(), -1), next(p_.lists.messages.size(), -1);
    for (int i = static_cast<int>(next.size()); i-- > 0;) {  // messages after each call
      int& first = by_call[p_.lists.messages[i].call];
      next[i] = first;
      first = i;
    }
    for (const int c : p_.order) {
      if (!p_.follows(c)) call(c);
      for (int i = by_call[c]; i >= 0; i = next[i])
        copy(p_.lists.messages[i].transfer, p_.lists.messages[i].microbatch);
    }
  }
  constexpr int next_step() const { return static_cast<int>(out_.steps.size()); }
  constexpr void copy(int number, int microbatch) {
    const transfer& t = p_.transfers[number];
    const value_id slot = p_.slot_of[t.value];
    const int key = microbatch_of(slot, microbatch), from = known(slot, t.from, key);
    if (from < 0) return;
    pipeline_buffer b = out_.buffers[from];
    b.mesh = t.to;
    b.lies = p_.sent_as[number].to;
    b.local = piece(slot, b.lies, t.to);
    b.first = next_step();
    b.accumulates = b.stacks = false;
    const int to = put(b);
    pipeline_step s;
    s.mesh = t.from;
    s.microbatch = key;
    s.from = from;
    s.to = to;
    s.transfer = number;
    out_.steps.push_back(s);
  }
  constexpr void call(int c) {
    const int number = p_.function_of(c), joint = p_.joint(c);
    const pipeline_unit& u = p_.function(number);
    pipeline_step s;
    s.mesh = u.piece.mesh;
    s.number = calls_++;
    s.microbatch = s.last_microbatch = p_.calls.calls[c].microbatch;
    if (joint >= 0) find_microbatches(s, p_.joint_calls[joint]);
    s.function = function_of(number);
    s.unit = number;
    s.after = last_call_[s.mesh];
    last_call_[s.mesh] = s.number;
    const std::size_t plain = u.takes.size() - u.sums.size();
    for (std::size_t k = 0; k < u.takes.size(); ++k)
      s.takes.push_back(k < plain ? taken(u, k, p_.microbatch_taken(c, k)) : accumulator(u, k));
    const std::size_t sums = u.gives.size() - u.sums.size(), stacks = sums - u.stacks.size();
    for (std::size_t k = 0; k < u.gives.size(); ++k)
      s.gives.push_back(k < stacks ? given(u, k, p_.microbatch_given(c, k))
                        : k < sums ? slice_given(u, k, p_.microbatch_given(c, k))
                                   : s.takes[plain + k - sums]);
    out_.steps.push_back(s);
  }
  constexpr void find_microbatches(pipeline_step& s, const joint_call& joint) const {
    s.microbatch = joint.first;
    for (const int c : joint.calls)
      if (p_.calls.calls[c].microbatch > s.last_microbatch)
        s.last_microbatch = p_.calls.calls[c].microbatch;
  }
  constexpr call_operand taken(const pipeline_unit& u, std::size_t k, int microbatch) {
    const value_id slot = u.takes[k].slot;
    const op_id o = values().producer(slot);
    if (values().op(o).def->id == def<op::microbatch_index>.id) return {-1, microbatch};
    const slot_place at = p_.place_of(slot, microbatch);
    const int buffer = known(at.slot, u.piece.mesh, at.microbatch);
    if (values().op(o).def->id == def<op::microbatch_slice>.id) return {buffer, microbatch};
    return {buffer};
  }
  constexpr call_operand accumulator(const pipeline_unit& u, std::size_t k) {
    pipeline_buffer b = made(u, u.takes[k], -1);
    b.local = u.device.local.input_type(static_cast<int>(k));
    b.accumulates = true;
    return {put(b)};
  }
  constexpr pipeline_buffer made(const pipeline_unit& u, const unit_value& v,
                                 int microbatch) const {
    return {.slot = v.slot,
            .mesh = u.piece.mesh,
            .microbatch = microbatch,
            .lies = v.lies,
            .terms = v.terms,
            .first = next_step()};
  }
  constexpr call_operand given(const pipeline_unit& u, std::size_t k, int microbatch) {
    pipeline_buffer b = made(u, u.gives[k], microbatch_of(u.gives[k].slot, microbatch));
    b.local = u.device.local.output_type(static_cast<int>(k));
    return {put_result(b)};
  }
  constexpr call_operand slice_given(const pipeline_unit& u, std::size_t k, int microbatch) {
    const tensor_type& slice = u.device.local.output_type(static_cast<int>(k));
    pipeline_buffer b = made(u, u.gives[k], -1);
    b.local = {slice.element, {}};
    b.local.shape.push_back(p_.microbatches);
    for (int d = 0; d < slice.shape.rank; ++d) b.local.shape.push_back(slice.shape[d]);
    b.stacks = true;
    return {put(b), microbatch};
  }

  // ---- Functions -------------------------------------------------------------------------------

  constexpr int function_of(int unit) {
    int& f = function_of_[unit];
    if (f >= 0) return f;
    const std::size_t code = hash_of_code(p_.function(unit).device.local);
    f = function_at_.find(code, [&](int k) { return share(out_.functions[k].units[0], unit); });
    if (f < 0) {
      f = static_cast<int>(out_.functions.size());
      out_.functions.push_back({});
      function_at_.add(code);
    }
    out_.functions[f].units.push_back(unit);
    return f;
  }
  constexpr bool share(int a, int b) const {
    const pipeline_unit &x = p_.function(a), &y = p_.function(b);
    return same_kind(x.piece.mesh, y.piece.mesh) && x.device.mesh.same_grid(y.device.mesh) &&
           same_code(x.device.local, y.device.local);
  }
  constexpr bool same_kind(int a, int b) const {
    const named_mesh &x = p_.topology[a], &y = p_.topology[b];
    return x.mesh.same_grid(y.mesh) && x.has_device == y.has_device &&
           (!x.has_device || x.device == y.device);
  }

  // ---- Donation --------------------------------------------------------------------------------

  constexpr void find_last_uses() {
    for (int i = 0; i < next_step(); ++i) {
      const pipeline_step& s = out_.steps[i];
      if (!s.is_call()) out_.buffers[s.from].last = i;
      for (const call_operand& each : s.takes)
        if (!each.is_number()) out_.buffers[each.buffer].last = i;
    }
    for (const int b : out_.outputs) out_.buffers[b].last = next_step();
  }
  /// Finds next states: outputs with the name, the type and the place of an input.
  constexpr void find_states() {
    next_state_.resize(out_.buffers.size(), -1);
    name_table inputs(p_.source.inputs.size());
    for (int i = 0; i < p_.source.input_count(); ++i) inputs.insert(p_.source.input_name(i), i);
    for (int i = 0; i < p_.source.output_count(); ++i) {
      const int in = inputs.find(p_.source.output_name(i));
      if (in < 0) continue;
      const int from = out_.inputs[in], to = out_.outputs[i];
      const pipeline_buffer &a = out_.buffers[from], &b = out_.buffers[to];
      if (from != to && a.mesh == b.mesh && a.local == b.local && a.lies == b.lies)
        next_state_[from] = to;
    }
  }
  /// Donates a buffer only if all calls of the function permit it.
  template <class Pending>
  constexpr void note_donations(int step, const Pending& is_pending) {
    const pipeline_step& s = out_.steps[step];
    pipeline_function& f = out_.functions[s.function];
    const bool first = f.donated.empty();
    if (first) {
      f.donated.resize(s.takes.size(), 1);
      f.alias.resize(s.takes.size(), -1);
    }
    note_operands(s, step);
    for (std::size_t k = 0; k < s.takes.size(); ++k) {
      const call_operand& each = s.takes[k];
      if (!may_donate(each, step) || (each.slice < 0 && is_pending(each.buffer))) f.donated[k] = 0;
      const int to = place_of_next(each, step);
      if (first) f.alias[k] = to;
      if (f.alias[k] != to) f.donated[k] = 0;  // nor may a new result be freed by the same call
    }
  }
  constexpr void find_donations() {
    const vec<int> used = first_uses();
    vec<int> copies(out_.buffers.size(), -1), next(out_.steps.size(), -1);
    vec<vec<int>> known(p_.topology.count(), vec<int>(p_.topology.count(), -1));
    vec<vec<int>> sent(out_.steps.size(), vec<int>{});  // steps known to be complete before a copy
    for (int i = 0; i < next_step(); ++i) {
      const pipeline_step& s = out_.steps[i];
      if (!s.is_call()) {
        next[i] = copies[s.from];
        copies[s.from] = i;
        sent[i] = known[s.mesh];
        continue;
      }
      vec<int>& here = known[s.mesh];
      for (const call_operand& each : s.takes) {
        const int from = each.is_number() ? -1 : out_.buffers[each.buffer].first;
        if (from < 0 || out_.steps[from].is_call()) continue;
        for (std::size_t m = 0; m < here.size(); ++m)
          if (sent[from][m] > here[m]) here[m] = sent[from][m];
      }
      note_donations(i, [&](int buffer) {
        for (int c = copies[buffer]; c >= 0; c = next[c]) {
          const int user = used[out_.steps[c].to];
          if (user < 0 || here[out_.steps[user].mesh] < user) return true;
        }
        return false;
      });
      here[s.mesh] = i;
    }
    for (pipeline_function& f : out_.functions)
      for (std::size_t k = 0; k < f.donated.size(); ++k)
        if (f.donated[k] == 0) f.alias[k] = -1;
  }
  /// By buffer: the first call that uses it, or -1.
  constexpr vec<int> first_uses() const {
    vec<int> used(out_.buffers.size(), -1);
    for (int i = next_step(); i-- > 0;)
      for (const call_operand& each : out_.steps[i].takes)
        if (!each.is_number()) used[each.buffer] = i;
    return used;
  }
  constexpr void note_operands(const pipeline_step& s, int step) {
    use_.resize(out_.buffers.size(), {});
    for (const call_operand& each : s.takes) {
      if (each.is_number()) continue;
      operand_use& u = use_[each.buffer];
      u.several = u.taken == step;
      u.taken = step;
    }
    for (int i = 0; i < static_cast<int>(s.gives.size()); ++i)
      if (s.gives[i].slice < 0) {
        use_[s.gives[i].buffer].given = step;
        use_[s.gives[i].buffer].result = i;
      }
  }
  constexpr bool may_donate(const call_operand& each, int step) const {
    if (each.is_number()) return false;
    if (each.slice >= 0) return true;  // a slice made for this call alone
    const pipeline_buffer& b = out_.buffers[each.buffer];
    const operand_use& u = use_[each.buffer];
    if (u.several) return false;
    if (u.given == step) return b.accumulates;
    if (b.last != step) return false;
    return !is_input(each.buffer) || next_state_[each.buffer] >= 0;
  }
  constexpr bool is_input(int buffer) const {  // copies of inputs belong to the step
    return out_.buffers[buffer].is_argument && out_.buffers[buffer].first < 0;
  }
  /// The output that may reuse the memory of an input: an accumulated sum, or the next state.
  constexpr int place_of_next(const call_operand& each, int step) const {
    if (each.is_number() || each.slice >= 0) return -1;
    const int to = out_.buffers[each.buffer].accumulates ? each.buffer : next_state_[each.buffer];
    return to >= 0 && use_[to].given == step ? use_[to].result : -1;
  }

  // ---- Reserved memory -------------------------------------------------------------------------

  constexpr void find_reserved() {
    vec<std::int64_t> live(p_.topology.count(), 0);
    vec<char> held(out_.buffers.size(), 0);
    vec<int> counted(out_.buffers.size(), -1);
    const auto hold = [&](int b) {
      if (held[b] == 0) live[out_.buffers[b].mesh] += out_.buffers[b].bytes();
      held[b] = 1;
    };
    const auto release = [&](int b, int step) {
      const pipeline_buffer& each = out_.buffers[b];
      if (held[b] == 0 || each.last > step) return;
      live[each.mesh] -= each.bytes();
      held[b] = 0;
    };
    for (const int b : out_.inputs) hold(b);
    for (int i = 0; i < next_step(); ++i) {
      pipeline_step& s = out_.steps[i];
      if (!s.is_call()) {
        hold(s.to);
        if (!is_input(s.from)) release(s.from, i);
        continue;
      }
      s.reserved = live[s.mesh];
      for (const call_operand& each : s.takes) {
        if (each.is_number() || each.slice >= 0 || held[each.buffer] == 0) continue;
        if (counted[each.buffer] != i) s.reserved -= out_.buffers[each.buffer].bytes();
        counted[each.buffer] = i;
      }
      const vec<char>& donated = out_.functions[s.function].donated;
      for (const call_operand& each : s.gives) hold(each.buffer);
      for (std::size_t k = 0; k < s.takes.size(); ++k) {
        const int b = s.takes[k].buffer;
        if (b >= 0 && (!is_input(b) || donated[k] != 0)) release(b, i);
      }
      for (const call_operand& each : s.gives) release(each.buffer, i);
    }
  }
};

}  // namespace mpmd_detail

/// Exports a pipeline. Each mesh calls its functions in sequence. A copy starts when the call that
/// writes its buffer has ended, and runs concurrently with everything else.
///
/// A function may overwrite a buffer (`donated`) if each of its calls is the last user and no copy
/// of the buffer can still be in progress. A copy is known to be complete if a call that used its
/// result has ended, according to data received since. The calls must also agree on the result, if
/// any, that reuses the memory. Arguments of the step are kept, except those whose next state is a
/// result.
///
/// Cost      linear in the steps and their operands and results, and in meshes for each step
/// Errors    that of the pipeline
constexpr exported_pipeline export_calls(const pipelined& p) {
  if (!p.error) return mpmd_detail::exporter(p).run();
  exported_pipeline failed;
  failed.error = p.error;
  return failed;
}

}  // namespace partita
