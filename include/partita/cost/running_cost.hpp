/// An estimate of the cost of a step of a program under partitioning, updated action by action.
#pragma once

#include <cstdint>

#include <partita/cost/collective_time.hpp>
#include <partita/cost/device.hpp>
#include <partita/cost/running_clocks.hpp>
#include <partita/cost/running_steps.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/spmd/layout_changes.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace cost_detail {

/// The state of running_cost: figures of each value, operand and op, and their totals.
class running_totals : public running_steps {
 public:
  double time = 0, compute = 0, communication = 0, peak = 0;
  const spmd_detail::local_layouts* layouts_ = nullptr;

  constexpr running_totals(const core_program& c, const machine& on,
                           const simulation_options& options, const staged_work* staged)
      : running_steps(c, staged), on_(on), overlap_(options.overlap) {}

  // ---- Callbacks of layout_changes --------------------------------------------------------------

  constexpr void clear() {
    for (int a = 0; a < c_.mesh.rank; ++a) sizes_[a] = static_cast<double>(c_.mesh.size(a));
    whole_.clear();
    for (const tensor_type& t : c_.p.types) whole_.push_back(static_cast<double>(t.bytes()));
    find();
    if (staged_ != nullptr) received_.assign(staged_->sent.size(), 0);
    const std::size_t values = c_.p.types.size(), places = c_.p.operand_list.size();
    finishing_.assign(values, 0);
    held_.assign(values, 0);
    weight_.assign(values, 0);
    transient_.assign(values, 0);
    bringing_.assign(places, 0);
    buffer_.assign(places, 0);
    halo_.assign(c_.p.ops.size(), 0);
    halos_ = 0;
    again_.assign(c_.p.ops.size(), 0);
    borders_.clear();
    sent_.clear();
    needs_.clear();
    needs_of_.assign(c_.p.ops.size(), -1);
    ready_.assign(values, 0);
    took_.assign(steps_.size(), 0);
    is_stale_.assign(steps_.size(), 0);
    level_.assign(static_cast<std::size_t>(slots_ * meshes()), 0);
    arguments_.assign(static_cast<std::size_t>(meshes()), 0);
    stale_.clear();
    find_flops();
  }
  constexpr void grow() {}
  template <class Finish>
  constexpr void value(value_id v, const Finish& finish) {
    double seconds = 0, before = 0;
    const layout made = layouts_->sums.produced_layout(v);
    const double produced = bytes(v, made);
    double now = produced;
    const layout have = finish([&](const collective& what, const layout& after) {
      // The operand of the gather is one shard of its result.
      const bool shared = what.kind == collective::all_gather;
      const double given = shared ? now / static_cast<double>(what.members(c_.mesh)) : now;
      seconds += seconds_of(what, given);
      before = produced;
      now = bytes(v, after);
    });
    finishing_[v] = seconds;
    held_[v] = bytes(v, have);
    if (c_.p.is(c_.p.producers[v], op_role::parameter)) {
      if (is_on_host(v)) return;
      arguments_[mesh_of(c_.p.producers[v])] += held_[v] - weight_[v];
      weight_[v] = held_[v];
      return;
    }
    const interval life = lives_[v];
    if (life.end < life.begin) return;
    const int mesh = mesh_of(c_.p.producers[v]);
    weigh(mesh, life, weight_[v], held_[v] * times_held(v));
    if (is_term(v)) {  // next to the value that it is added to
      const int at = slot_[made_at_[c_.p.producers[v]]];
      return weigh(mesh, {at, at}, transient_[v], held_[v]);
    }
    if (transient_[v] != 0 || now < before)
      weigh(mesh, {life.begin, life.begin}, transient_[v], now < before ? before : 0);
  }
  template <class Bring>
  constexpr void operand(int place, value_id v, const Bring& bring) {
    double seconds = 0, now = held_[v];
    bring([&](const reshard_step& s) {
      const double after = bytes(s.of >= 0 ? s.of : v, s.after);
      if (s.what.communicates()) seconds += seconds_of(s.what, s.of >= 0 ? after : now);
      now = after;
    });
    bringing_[place] = seconds;
    weigh(mesh_of_place(place), buffer_lives_[place], buffer_[place], seconds > 0 ? now : 0);
  }
  constexpr void op(op_id o, const spmd_detail::local_layouts&) {
    again_[o] = 0;
    for (int r = 0; r < c_.p.ops[o].result_count && spmd_detail::has_again(c_, o); ++r) {
      const value_id v = c_.p.ops[o].result + r;
      again_[o] += seconds_of(layouts_->exchange_again(o).first,
                              bytes(v, layouts_->sums.produced_layout(v)));
    }
    if (const collective carry = spmd_detail::gather_totals(c_, o); carry.axes.count > 0) {
      const value_id v = c_.p.ops[o].result;
      const layout& made = layouts_->sums.produced_layout(v);
      const std::int64_t rows = made.local(c_.p.type(v).shape, c_.mesh)[carry.axes[0].dim];
      again_[o] += seconds_of(carry, bytes(v, made) / static_cast<double>(rows));
    }
    if (needs_of_[o] >= 0 || c_.has_halo(o)) need_borders(o);
    pay(o);
    for (int i = first_step_of_[o]; i < first_step_of_[o + 1]; ++i) {
      const int s = steps_of_[i];
      if (is_stale_[s] != 0) continue;
      is_stale_[s] = 1;
      stale_.push_back(s);
    }
  }

  constexpr void add_up() {
    for (int s : stale_) {
      is_stale_[s] = 0;
      took_[s] = kernel_time(steps_[s]);
    }
    stale_.clear();
    if (staged_ != nullptr) return add_up_stages();
    const run_time all = run(0);
    time = all.time;
    compute = all.compute;
    communication = all.communication;
    peak = arguments_[0] + all.peak;
  }

  constexpr double bound(int scope, double devices) const {
    double sum = 0;
    for (int s : scopes_[scope]) sum += bound_of(s, devices);
    return sum;
  }
  /// Returns a lower bound. In a pipeline, the busiest mesh does its own work and nothing else.
  constexpr double bound(double devices) const {
    if (staged_ == nullptr) return bound(0, devices);
    vec<double> sums(static_cast<std::size_t>(meshes()), 0);
    for (int s : scopes_[0])
      sums[mesh_of(steps_[s].op)] += bound_of(s, devices) * times(steps_[s].op);
    double most = 0;
    for (const double sum : sums) most = sum > most ? sum : most;
    return most;
  }

 private:
  machine on_;
  bool overlap_;
  vec<double> flops_;            ///< by op, of the unsharded program; 0 for products
  vec<char> is_product_;         ///< by op
  vec<double> whole_;            ///< by value: bytes
  double sizes_[max_axes] = {};  ///< of axes

  // Figures that change.
  vec<double> finishing_;           ///< by value: seconds to finish its pending sum
  vec<double> held_;                ///< by value: bytes of a shard
  vec<double> weight_, transient_;  ///< by value: bytes in memory, and more of a finished sum
  vec<double> bringing_, buffer_;   ///< by place: seconds to bring the operand there, and its bytes
  vec<double> again_;               ///< by op: seconds of the gathers of its results
  vec<double> halo_;  ///< by op: seconds of those gathers, and of the borders that it sends first
  int halos_ = 0;     ///< the number of entries that are not 0
  /// A halo message: what one permute sends.
  struct border {
    double seconds = 0;
    vec<op_id> users;  ///< the ops that need it, in ascending order: the first one sends it

    /// Adds a user; returns false if it is there already.
    constexpr bool add(op_id o) {
      std::size_t at = users.size();
      while (at > 0 && users[at - 1] >= o) --at;
      if (at < users.size() && users[at] == o) return false;
      users.push_back(o);
      for (std::size_t i = users.size(); --i > at;) users[i] = users[i - 1];
      users[at] = o;
      return true;
    }
    constexpr void remove(op_id o) {
      std::size_t kept = 0;
      for (op_id each : users)
        if (each != o) users[kept++] = each;
      users.resize(kept, -1);
    }
  };
  spmd_detail::halo_numbers borders_;
  vec<border> sent_;       ///< by number of a border
  vec<vec<int>> needs_;    ///< lists of the borders that an op needs
  vec<int> needs_of_;      ///< by op: its list in `needs_`, or -1
  vec<double> took_;       ///< by step: seconds
  vec<double> level_;      ///< by mesh and slot: change of bytes from the previous slot
  vec<double> arguments_;  ///< by mesh
  vec<double> received_;   ///< by message of a pipeline: bytes at the receiver
  vec<double> ready_;      ///< by value: the time at which it is available
  vec<int> stale_;
  vec<char> is_stale_;
  vec<tensor_type> operands_, results_;

  // ---- Figures of one op or value -------------------------------------------------------------

  /// Returns the bytes of a shard.
  constexpr double bytes(value_id v, const layout& l) const {
    double pieces = 1;
    for (const auto& e : l) pieces *= sizes_[e.axis];
    return whole_[v] / pieces;
  }
  /// Updates the borders of an op; the first op that needs a border sends it.
  constexpr void need_borders(op_id o) {
    if (needs_of_[o] < 0) {
      needs_of_[o] = static_cast<int>(needs_.size());
      needs_.push_back({});
    }
    vec<op_id> others;  // ops whose messages change
    vec<int>& needed = needs_[needs_of_[o]];
    for (int i : needed) {
      sent_[i].remove(o);
      if (!sent_[i].users.empty()) others.push_back(sent_[i].users[0]);
    }
    needed.clear();
    spmd_detail::for_each_halo_message(
        c_, layouts_->sums, borders_, o,
        [&](int number, const halo_loops& h, int k, std::int64_t shift, std::int64_t elements) {
          sent_.resize(static_cast<std::size_t>(borders_.count()), border{});
          border& b = sent_[number];
          b.seconds = border_time(o, h, k, shift, elements);
          if (!b.users.empty()) others.push_back(b.users[0]);
          if (b.add(o)) needed.push_back(number);
        });
    for (op_id each : others)
      if (each != o) pay(each);
  }
  constexpr double border_time(op_id o, const halo_loops& h, int k, std::int64_t shift,
                               std::int64_t elements) const {
    const double block = static_cast<double>(h.cut.blocks[k]);
    const double all = bytes(c_.p.operand(o, k), layouts_->sums.required_layout({o, k}));
    return seconds_of(spmd_detail::halo_exchange::permutation(shift, h.cut.ranges[k].fill, h.axes),
                      all / (block > 0 ? block : 1) * static_cast<double>(elements));
  }
  constexpr void pay(op_id o) {
    halos_ -= halo_[o] > 0;
    halo_[o] = again_[o];
    if (needs_of_[o] >= 0)
      for (int i : needs_[needs_of_[o]])
        if (sent_[i].users[0] == o) halo_[o] += sent_[i].seconds;
    halos_ += halo_[o] > 0;
  }
  constexpr double seconds_of(const collective& what, double operand) const {
    return cost_detail::collective_timer(what, c_.mesh, on_)(operand).seconds;
  }
  /// Returns the number of shards into which loops divide the work of an op.
  constexpr double pieces(op_id o) const {
    double n = 1;
    for (const auto& l : c_.nests[o])
      if (l.factor != any_factor) n *= sizes_[l.axis];
    return n;
  }
  constexpr tensor_type local_type(value_id v, const layout& l) const {
    return {c_.p.types[v].element, l.local(c_.p.types[v].shape, c_.mesh)};
  }
  constexpr double kernel_time(const step& s) {
    if (s.op_count == 0) return 0;
    const op_node& n = c_.p.ops[s.op];
    double bytes_moved = 0, result = 0;
    for (int r = 0; r < n.result_count; ++r)
      result += bytes(n.result + r, layouts_->sums.produced_layout(n.result + r));
    if (n.def->in_place && !n.def->elementwise) {
      bytes_moved = global_bytes(s.op) / pieces(s.op);
    } else {
      bytes_moved = result;
      for (int i = s.first_use; i < s.first_use + s.use_count; ++i) {
        const operand_use& u = uses_[i];
        if (!u.read) continue;
        double read = bytes(c_.p.operand_list[u.place], layouts_->sums.required_layout(u.by));
        const op_node& by = c_.p.ops[u.by.op];
        if (by.def->reads_part) {
          const double part = bytes(by.result, layouts_->sums.produced_layout(by.result));
          read = part < read ? part : read;
        }
        bytes_moved += read;
      }
    }
    double products = 0, flops = 0;
    for (int i = s.first_op; i < s.first_op + s.op_count; ++i) {
      const op_id o = ops_[i];
      if (is_product_[o] != 0)
        products += product_time(o);
      else
        flops += flops_[o] / pieces(o);
    }
    return seconds_of_kernel(products, flops, bytes_moved, on_.device);
  }
  constexpr cost_context context(op_id o, bool local) {
    const op_node& n = c_.p.ops[o];
    operands_.clear();
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = c_.p.operand_list[n.operand_begin + i];
      operands_.push_back(local ? local_type(v, layouts_->sums.required_layout({o, i}))
                                : c_.p.types[v]);
    }
    results_.clear();
    for (int r = 0; r < n.result_count; ++r)
      results_.push_back(
          local ? local_type(n.result + r, layouts_->sums.produced_layout(n.result + r))
                : c_.p.types[n.result + r]);
    cost_context c{operands_, results_[0], c_.p.attrs(o)};
    if (n.result_count > 1) c.more = {results_.data() + 1, results_.size() - 1};
    return c;
  }
  constexpr double product_time(op_id o) {
    const cost_context c = context(o, true);
    const auto& def = *c_.p.ops[o].def;
    const double work = static_cast<double>(def.flops(c));
    if (work == 0) return 0;
    return cost_detail::seconds_of(def.product(c), work, operands_[0].element, on_.device).real;
  }
  constexpr double global_bytes(op_id o) {
    return static_cast<double>(c_.p.ops[o].def->bytes(context(o, false)));
  }
  constexpr void find_flops() {
    const std::size_t count = c_.p.ops.size();
    flops_.assign(count, 0);
    is_product_.assign(count, 0);
    for (op_id o = 0; o < c_.p.op_count(); ++o) {
      const op_node& n = c_.p.ops[o];
      if (n.result_count == 0 || n.def->role != op_role::compute) continue;
      const cost_context c = context(o, false);
      is_product_[o] = n.def->product(c).batch != 0;
      flops_[o] = static_cast<double>(n.def->flops(c));
    }
  }

  constexpr void weigh(int mesh, const interval& life, double& weight, double now) {
    if (now == weight) return;
    if (life.end >= life.begin) {
      const int first = mesh * slots_;
      level_[first + life.begin] += now - weight;
      level_[first + life.end + 1] -= now - weight;
    }
    weight = now;
  }

  // ---- A run ----------------------------------------------------------------------------------

  static constexpr double max(double a, double b) { return a > b ? a : b; }

  /// Returns the time to add the result of an iteration to the accumulated one: two reads and a
  /// write.
  constexpr double combine_time(const step& s) const {
    if (staged_ == nullptr || is_combined_[s.op] == 0) return 0;
    const device& d = on_.device;
    return d.kernel + 3 * held_[s.result] / (d.bandwidth * d.memory_part);
  }
  /// Plays the steps of a program. Returns the time that they compute and communicate. It is
  /// defined before its uses because Clang instantiates it there, not after a constant expression.
  template <class Meshes>
  constexpr run_time run_on(Meshes& on, int scope) {
    run_time r;
    const auto send = [&](clocks& here, double after, double seconds) {
      r.communication += seconds;
      return (overlap_ ? here.links : here.units).take(after, seconds);
    };
    for (int s : scopes_[scope]) {
      const step& it = steps_[s];
      clocks& here = on.of(it.op);
      on.pass(level_, slots_, slot_[s]);
      double ready = 0;
      for (int i = it.first_use; i < it.first_use + it.use_count; ++i) {
        const operand_use& u = uses_[i];
        double when = ready;
        if (u.value >= 0 && on.together(c_.p.producers[u.value], it.op)) when = ready_[u.value];
        if (const double t = u.first ? bringing_[u.place] : 0; t > 0) when = send(here, when, t);
        if (when > ready) ready = when;
      }
      if (const double t = combine_time(it); t > 0) {
        on.each_time(it.op).units.take(0, t);
        r.compute += t;
      }
      if (it.control) {
        const run_time nested = run_nested(*c_.nested.control_of(it.op));
        on.nested(it.op, nested.peak);
        r.compute += nested.compute;
        r.communication += nested.communication;
        const double end = here.latest() + nested.time;
        here.close(end);
        for (value_id v : c_.nested.control_of(it.op)->results)
          ready_[v] = finishing_[v] > 0 ? send(here, end, finishing_[v]) : end;
        continue;
      }
      if (it.op_count > 0) {
        for (int i = it.first_op; halos_ > 0 && i < it.first_op + it.op_count; ++i)
          if (const double t = halo_[ops_[i]]; t > 0 && is_first(ops_[i], s))
            ready = send(here, ready, t);
        ready = here.units.take(ready, took_[s]);
        r.compute += took_[s];
        for (int i = it.first_op + 1; i < it.first_op + it.op_count; ++i)
          if (const double t = finishing_[made_[i]]; t > 0 && is_first(ops_[i], s))
            ready = send(here, ready, t);
      }
      for (value_id v = it.result; v < it.result + it.result_count; ++v)
        ready_[v] = finishing_[v] > 0 ? send(here, ready, finishing_[v]) : ready;
    }
    return r;
  }
  /// Runs a nested program, or a program on one mesh.
  constexpr run_time run(int scope) {
    one_mesh on;
    run_time r = run_on(on, scope);
    r.time = on.all.latest();
    r.peak = on.memory.peak;
    return r;
  }
  /// The first microbatch passes through all meshes. The others follow at the rate of the slowest
  /// mesh, or as finished ones make room for the next. Work done once runs on all meshes at the
  /// same time.
  constexpr void add_up_stages() {
    take_messages();
    many_meshes on(static_cast<const running_steps&>(*this));
    const run_time all = run_on(on, 0);
    double first = 0, slowest = slowest_channel(), once = 0;
    peak = 0;
    for (int m = 0; m < meshes(); ++m) {
      const double each = on.all[2 * m + 1].latest();
      first += each;
      slowest = max(slowest, each);
      once = max(once, on.all[2 * m].latest());
      peak = max(peak, arguments_[m] + on.memory[m].peak);
    }
    for (const staged_work::message& m : staged_->sent)
      if (!m.is_input) (m.inside ? first : once) += message_time(m) + message_latency(on_.device);
    const double period = max(slowest, first / staged_->in_flight);
    time = first + (staged_->microbatches - 1) * period + once;
    compute = all.compute;
    communication = all.communication;
  }
  constexpr double message_time(const staged_work::message& m) const {
    return message_seconds(on_.device, held_[m.value]);
  }
  /// Returns the seconds for the messages of a microbatch on the busiest channel from one mesh to
  /// another.
  constexpr double slowest_channel() const {
    vec<double> taken(static_cast<std::size_t>(meshes() * meshes()), 0);
    double most = 0;
    for (const staged_work::message& m : staged_->sent) {
      if (!m.inside) continue;
      double& channel = taken[m.from * meshes() + m.to];
      channel += message_time(m);
      most = max(most, channel);
    }
    return most;
  }
  /// Adds the memory of messages at their receivers: a value that is sent is stored on both meshes.
  constexpr void take_messages() {
    for (std::size_t i = 0; i < received_.size(); ++i) {
      const staged_work::message& m = staged_->sent[i];
      const double now = held_[m.value] * m.held;
      if (m.is_input)
        arguments_[m.to] += now - received_[i], received_[i] = now;
      else
        weigh(m.to, lives_[m.value], received_[i], now);
    }
  }
  constexpr double bound_of(int s, double devices) const {
    if (steps_[s].control) return bound(*c_.nested.control_of(steps_[s].op), devices);
    if (steps_[s].op_count == 0) return 0;
    const double left = sharers_left(steps_[s]);
    return on_.device.kernel + (took_[s] - on_.device.kernel) / (left < devices ? left : devices);
  }
  /// Returns the number of devices that do the same work.
  constexpr double sharers_left(const step& s) const {
    double all = 1, least = 0;
    for (int a = 0; a < c_.mesh.rank; ++a) all *= sizes_[a];
    for (int i = s.first_op; i < s.first_op + s.op_count; ++i) {
      const double n = pieces(ops_[i]);
      least = least == 0 || n < least ? n : least;
    }
    return least > 0 ? all / least : all;
  }
  constexpr double bound(const flat_program::control_info& k, double devices) const {
    double once = 0;
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      const double each = bound(s, devices);
      once = !k.branches ? once + each : each > once ? each : once;
    }
    return once * trips(k);
  }
  /// Multiplies a loop's body by its trip count; of branches, the longest counts.
  constexpr run_time run_nested(const flat_program::control_info& k) {
    run_time once;
    const double times = trips(k);
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      const auto& scope = c_.nested.scopes[s];
      for (value_id v : scope.inputs) ready_[v] = 0;
      run_time each = run(s);
      for (const use& u : scope.outputs) {
        const double t = bringing_[c_.p.ops[u.op].operand_begin + u.operand];
        each.time += t;
        each.communication += t;
      }
      const double peak = each.peak > once.peak ? each.peak : once.peak;
      if (!k.branches) {
        once.time += each.time;
        once.compute += each.compute;
        once.communication += each.communication;
      } else if (each.time > once.time) {
        once = each;
      }
      once.peak = peak;
    }
    return {once.time * times, once.compute * times, once.communication * times, once.peak};
  }
};

}  // namespace cost_detail

/// An estimate of the figures that `simulate` and `estimate` find in the program made by `lower`,
/// without lowering it: the time of a step and the peak of memory of a device.
///
/// Kernels are those of the source program with local shapes; collectives are exactly those of the
/// lowering. `simulate` starts whatever is ready first. Here, time is allocated in program order on
/// two clocks. A collective waits for its operand and the links; a kernel waits for its operands
/// and for earlier kernels (see timeline). An operand in another layout occupies memory from the
/// collective to the kernel that reads it.
///
/// A pipeline takes the time of its first microbatch on all meshes. Each other microbatch adds the
/// time of the slowest mesh, or, if that is longer, the first one's time divided by the number of
/// microbatches in flight. A mesh stores values between calls once for each microbatch that its
/// order has in flight.
///
/// Cost      after a change: the figures that depend on it (layout_changes), and a walk over the
///           operands of the program to add them up; at first, linear in the program
class running_cost {
 public:
  /// `staged`: the pipeline whose microbatch the program is, or null; it must outlive the cost.
  constexpr running_cost(const core_program& c, const machine& on,
                         const simulation_options& options, const staged_work* staged = nullptr)
      : totals_(c, on, options, staged), changes_(c, passes{}, totals_) {
    totals_.layouts_ = &changes_.layouts();
  }
  running_cost(const running_cost&) = delete;  // its books are referred to
  running_cost& operator=(const running_cost&) = delete;

  /// Follows the program's log of changes.
  constexpr void update() {
    changes_.update();
    totals_.add_up();
  }
  /// Follows explicit changes: ops that have changed, in either direction, or -1 for all.
  constexpr void update(const vec<op_id>& changed) {
    changes_.update(changed);
    totals_.add_up();
  }
  constexpr double time() const { return totals_.time; }                    ///< seconds
  constexpr double compute() const { return totals_.compute; }              ///< seconds in kernels
  constexpr double communication() const { return totals_.communication; }  ///< in collectives
  constexpr double peak_bytes() const { return totals_.peak; }
  /// Returns a lower bound in seconds for every partitioning of the program that shares its work
  /// among `devices` times more devices: kernels divide their work, and nothing is sent.
  constexpr double bound(double devices) const { return totals_.bound(devices); }

 private:
  cost_detail::running_totals totals_;
  layout_changes<cost_detail::running_totals> changes_;
};

}  // namespace partita
