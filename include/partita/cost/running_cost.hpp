/// What a step of a program under partitioning takes, followed from action to action.
#pragma once

#include <cstdint>

#include <partita/cost/collective_time.hpp>
#include <partita/cost/device.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/ir/fusion.hpp>
#include <partita/spmd/layout_changes.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace cost_detail {

/// What running_cost keeps: figures of each value, operand and op, and what they add up to.
class running_books {
 public:
  double time = 0, compute = 0, communication = 0, peak = 0;
  const spmd_detail::local_layouts* layouts_ = nullptr;

  constexpr running_books(const core_program& c, const machine& on,
                          const simulation_options& options, const staged_work* staged)
      : c_(c), on_(on), overlap_(options.overlap), staged_(staged) {}

  // ---- What layout_changes tells
  // ----------------------------------------------------------------

  constexpr void clear() {
    for (int a = 0; a < c_.mesh.rank; ++a) sizes_[a] = static_cast<double>(c_.mesh.size(a));
    whole_.clear();
    for (const tensor_type& t : c_.p.types) whole_.push_back(static_cast<double>(t.bytes()));
    find_steps();
    find_lives();
    if (staged_ != nullptr) {
      find_users();
      received_.assign(staged_->sent.size(), 0);
      is_combined_.assign(c_.p.ops.size(), 0);
      for (const value_id v : staged_->combined)
        is_combined_[c_.p.producer(v)] = staged_->microbatches > 1;
    }
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
    slots_ = static_cast<int>(steps_.size() + scopes_.size());
    level_.assign(static_cast<std::size_t>(slots_ * meshes()), 0);
    arguments_.assign(static_cast<std::size_t>(meshes()), 0);
    stale_.clear();
    find_flops();
  }
  constexpr void grow() {}
  template <class Finish>
  constexpr void value(value_id v, const Finish& finish) {
    double seconds = 0, before = 0;
    const layout made = layouts_->sums.made(v);
    const double produced = bytes(v, made);
    double now = produced;
    const layout have = finish([&](const collective& what, const layout& after) {
      seconds += seconds_of(what, now);
      before = produced;
      now = bytes(v, after);
    });
    finishing_[v] = seconds;
    held_[v] = bytes(v, have);
    if (c_.p.is(c_.p.producers[v], op_role::parameter)) {
      arguments_[mesh_of(c_.p.producers[v])] += held_[v] - weight_[v];
      weight_[v] = held_[v];
      return;
    }
    const interval life = lives_[v];
    if (life.end < life.begin) return;
    const int mesh = mesh_of(c_.p.producers[v]);
    weigh(mesh, life, weight_[v], held_[v] * times_held(v));
    if (is_term(v)) {  // beside what it is added to
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
      if (s.what.communicates()) seconds += seconds_of(s.what, now);
      now = bytes(v, s.after);
    });
    bringing_[place] = seconds;
    weigh(mesh_of_place(place), buffer_lives_[place], buffer_[place], seconds > 0 ? now : 0);
  }
  constexpr void op(op_id o, const spmd_detail::local_layouts&) {
    again_[o] = 0;
    if (const collective again = spmd_detail::gather_again(c_, o); again.axes.count > 0)
      for (int r = 0; r < c_.p.ops[o].result_count; ++r) {
        const value_id v = c_.p.ops[o].result + r;
        again_[o] += seconds_of(again, bytes(v, layouts_->sums.made(v)));
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
  /// Of a pipeline: the mesh with the most to do does that and nothing else.
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
  /// Something that happens: a kernel, a collective's operand that passes through a view, nested
  /// programs.
  struct step {
    op_id op = -1;
    int first_use = 0, use_count = 0;  ///< operands of its ops, in `uses_`
    int first_op = 0, op_count = 0;    ///< that it computes, in `ops_`; 0: nothing to compute
    value_id result = -1;              ///< of `op`; so many, of a wire none
    int result_count = 0;
    bool control = false;
  };
  /// An operand of an op of a step.
  struct operand_use {
    int place = 0;        ///< in the program's list of operands
    use by;               ///< whose operand it is
    value_id value = -1;  ///< if it is made by an earlier step, else -1
    bool read = false;    ///< is it read from memory there for the first time?
    bool first = false;   ///< does no earlier step compute the op?
  };
  /// Between which steps a value lies in memory, both included; none if end < begin. They are of
  /// one nested program; of its steps the first has the slot that is the number of all steps of the
  /// nested programs before, and of these programs.
  struct interval {
    int begin = 0, end = -1;
  };

  const core_program& c_;
  machine on_;
  bool overlap_;
  const staged_work* staged_;  ///< of a pipeline, else null

  // The source program, which does not change.
  int slots_ = 0;
  vec<op_id> user_of_;     ///< by place in the list of operands; of a pipeline
  vec<char> term_;         ///< by value: is it combined with others' terms? Of a pipeline
  vec<char> is_combined_;  ///< by op: of all microbatches; of a pipeline
  vec<double> received_;   ///< by message: bytes where it goes; of a pipeline
  vec<step> steps_;
  vec<operand_use> uses_;
  vec<op_id> ops_;
  vec<value_id> made_;                 ///< as `ops_`: the first result
  vec<vec<int>> scopes_;               ///< by nested program: its steps
  vec<int> first_step_of_, steps_of_;  ///< by op, in rows: the steps that compute it
  vec<interval> lives_;                ///< by value
  vec<interval> buffer_lives_;         ///< by place in the list of operands
  vec<double> flops_;                  ///< by op, of the whole program; of products 0
  vec<char> is_product_;               ///< by op
  vec<double> whole_;                  ///< by value: bytes
  double sizes_[max_axes] = {};        ///< of axes

  // What changes.
  vec<double> finishing_;           ///< by value: seconds of what finishes its sum
  vec<double> held_;                ///< by value: bytes of a piece
  vec<double> weight_, transient_;  ///< by value: bytes in memory; what is finished, beside it
  vec<double> bringing_, buffer_;   ///< by place: seconds of what brings it there, and bytes
  vec<double> again_;               ///< by op: seconds of the gathers of its results
  vec<double> halo_;                ///< by op: seconds of these, and of borders sent for it first
  int halos_ = 0;                   ///< how many are not 0
  /// What one permute sends.
  struct border {
    double seconds = 0;
    vec<op_id> users;  ///< the ops that need it, in ascending order: the first one sends it

    /// False if it is there already.
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
  vec<vec<int>> needs_;    ///< the borders that an op needs
  vec<int> needs_of_;      ///< by op: its place in that list, or -1
  vec<double> took_;       ///< by step: seconds
  vec<double> level_;      ///< by mesh and slot: bytes more than in the slot before it
  vec<double> arguments_;  ///< by mesh
  vec<double> ready_;      ///< by value: when it is made
  vec<int> stale_;
  vec<char> is_stale_;
  vec<tensor_type> operands_;

  // ---- Of a pipeline: where, and how often ------------------------------------------------------

  constexpr int meshes() const { return staged_ == nullptr ? 1 : staged_->meshes; }
  /// Ops that actions added are where what they hold is made.
  constexpr op_id staged_op(op_id o) const {
    while (static_cast<std::size_t>(o) >= staged_->mesh.size())
      o = c_.p.producer(c_.p.operand(o, 0));
    return o;
  }
  constexpr int mesh_of(op_id o) const {
    return staged_ == nullptr ? 0 : staged_->mesh[staged_op(o)];
  }
  constexpr int mesh_of_place(int place) const {
    return staged_ == nullptr ? 0 : mesh_of(user_of_[place]);
  }
  /// Is it what an iteration adds to others' terms?
  constexpr bool is_term(value_id v) const {
    return staged_ != nullptr && staged_->microbatches > 1 && !term_.empty() && term_[v] != 0;
  }
  constexpr void find_users() {
    user_of_.assign(c_.p.operand_list.size(), -1);
    for (op_id o = 0; o < c_.p.op_count(); ++o)
      for (int i = 0; i < c_.p.op(o).operand_count; ++i) user_of_[c_.p.op(o).operand_begin + i] = o;
  }
  constexpr bool inside(op_id o) const { return staged_->inside[staged_op(o)] != 0; }
  constexpr double times(op_id o) const { return inside(o) ? staged_->microbatches : 1; }
  constexpr double times_held(value_id v) const {
    if (staged_ == nullptr || static_cast<std::size_t>(v) >= staged_->held.size()) return 1;
    return staged_->held[v];
  }

  // ---- Figures of one op or value -------------------------------------------------------------

  /// Of a piece.
  constexpr double bytes(value_id v, const layout& l) const {
    double pieces = 1;
    for (const auto& e : l) pieces *= sizes_[e.axis];
    return whole_[v] / pieces;
  }
  /// The borders of an op; the first op that needs one sends it.
  constexpr void need_borders(op_id o) {
    if (needs_of_[o] < 0) {
      needs_of_[o] = static_cast<int>(needs_.size());
      needs_.push_back({});
    }
    vec<op_id> others;  // that send more now, or less
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
    const double all = bytes(c_.p.operand(o, k), layouts_->sums.required({o, k}));
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
  /// Into how many pieces loops cut the work of an op.
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
    const device& d = on_.device;
    double bytes_moved = 0, result = 0;
    for (int r = 0; r < n.result_count; ++r)
      result += bytes(n.result + r, layouts_->sums.made(n.result + r));
    if (n.def->in_place && !n.def->elementwise) {
      bytes_moved = global_bytes(s.op) / pieces(s.op);
    } else {
      bytes_moved = result;
      for (int i = s.first_use; i < s.first_use + s.use_count; ++i) {
        const operand_use& u = uses_[i];
        if (!u.read) continue;
        double read = bytes(c_.p.operand_list[u.place], layouts_->sums.required(u.by));
        const op_node& by = c_.p.ops[u.by.op];
        if (by.def->reads_part) {
          const double part = bytes(by.result, layouts_->sums.made(by.result));
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
    const double vector = d.vector > 0 ? d.vector : d.peak(dtype::f32);
    const double busy = products + flops / vector,
                 stream = bytes_moved / (d.bandwidth * d.memory_part);
    return d.kernel + (busy > stream ? busy : stream);
  }
  constexpr cost_context context(op_id o, bool local) {
    const op_node& n = c_.p.ops[o];
    operands_.clear();
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id v = c_.p.operand_list[n.operand_begin + i];
      operands_.push_back(local ? local_type(v, layouts_->sums.required({o, i})) : c_.p.types[v]);
    }
    results_.clear();
    for (int r = 0; r < n.result_count; ++r)
      results_.push_back(local ? local_type(n.result + r, layouts_->sums.made(n.result + r))
                               : c_.p.types[n.result + r]);
    cost_context c{operands_, results_[0], c_.p.attrs(o)};
    if (n.result_count > 1) c.more = {results_.data() + 1, results_.size() - 1};
    return c;
  }
  vec<tensor_type> results_;
  constexpr double product_time(op_id o) {
    const cost_context c = context(o, true);
    const auto& def = *c_.p.ops[o].def;
    const double work = static_cast<double>(def.flops(c));
    if (work == 0) return 0;
    return work / (on_.device.peak(operands_[0].element) *
                   cost_detail::product_efficiency(def.product(c), on_.device));
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

  // ---- The program's steps --------------------------------------------------------------------

  constexpr void find_steps() {
    vec<op_id> order;
    order.reserve(c_.order.size());
    for (op_id o = c_.order.first(); o >= 0; o = c_.order.after(o)) order.push_back(o);
    fused_kernels kernels(c_.p, order);
    steps_.clear();
    uses_.clear();
    ops_.clear();
    made_.clear();
    scopes_.clear();
    scopes_.resize(c_.nested.scopes.size(), vec<int>());
    const std::size_t count = c_.p.ops.size();
    vec<int> computed(count + 1, 0);
    for (op_id o : order) {
      const op_role role = c_.p.ops[o].def->role;
      if (role == op_role::parameter) continue;
      const bool view = role == op_role::wire ||
                        (role != op_role::control && c_.p.ops[o].def->fusion == fusion_kind::view);
      if (!view && !kernels.runs(o)) continue;
      if (view && c_.p.ops[o].def->role != op_role::wire && kernels.dead(c_.p.ops[o].result))
        continue;
      scopes_[c_.nested.scope[o]].push_back(static_cast<int>(steps_.size()));
      steps_.push_back(view ? pass(o) : kernel(kernels, o));
      if (role == op_role::wire) continue;
      steps_.back().result = c_.p.ops[o].result;
      steps_.back().result_count = c_.p.ops[o].result_count;
    }
    for (const step& s : steps_)
      for (int i = s.first_op; i < s.first_op + s.op_count; ++i) ++computed[ops_[i] + 1];
    for (std::size_t o = 0; o < count; ++o) computed[o + 1] += computed[o];
    first_step_of_ = computed;
    steps_of_.assign(ops_.size(), 0);
    for (int s = 0; s < static_cast<int>(steps_.size()); ++s)
      for (int i = steps_[s].first_op; i < steps_[s].first_op + steps_[s].op_count; ++i)
        steps_of_[computed[ops_[i]]++] = s;
    find_roots(kernels);
  }
  constexpr step pass(op_id o) {
    step s;
    s.op = o;
    s.first_use = static_cast<int>(uses_.size());
    s.first_op = static_cast<int>(ops_.size());
    const int scope = c_.nested.scope[o];
    for (int i = 0; i < c_.p.ops[o].operand_count; ++i)
      if (c_.nested.value_scope[c_.p.operand(o, i)] == scope) add_use(o, i, false);
    s.use_count = static_cast<int>(uses_.size()) - s.first_use;
    return s;
  }
  constexpr void add_use(op_id o, int i, bool inner) {
    operand_use u;
    u.place = c_.p.ops[o].operand_begin + i;
    u.by = {o, i};
    u.value = inner ? -1 : c_.p.operand_list[u.place];
    uses_.push_back(u);
  }
  constexpr step kernel(fused_kernels& kernels, op_id o) {
    step s;
    s.op = o;
    s.first_use = static_cast<int>(uses_.size());
    s.first_op = static_cast<int>(ops_.size());
    s.control = c_.p.ops[o].def->role == op_role::control;
    if (s.control) return s;
    kernels.for_each_op(o, [&](op_id each) {
      ops_.push_back(each);
      made_.push_back(c_.p.ops[each].result);
      for (int i = 0; i < c_.p.ops[each].operand_count; ++i) {
        const value_id v = c_.p.operand_list[c_.p.ops[each].operand_begin + i];
        add_use(each, i, !kernels.reads(o, kernels.root(v)));
      }
    });
    s.op_count = static_cast<int>(ops_.size()) - s.first_op;
    s.use_count = static_cast<int>(uses_.size()) - s.first_use;
    int next = s.first_use;  // the operands in order
    kernels.for_each_read_by(o, [&](op_id by, value_id v) {
      while (uses_[next].by.op != by || kernels.root(c_.p.operand_list[uses_[next].place]) != v)
        ++next;
      uses_[next].read = true;
    });
    return s;
  }

  // ---- Lives of values ------------------------------------------------------------------------

  vec<value_id> root_;  ///< by value: whose memory it is, or -1 if it never lies there
  vec<int> made_at_;    ///< by op: the first step that computes it, or -1
  vec<int> needed_at_;  ///< by op: the last one
  vec<int> slot_;       ///< by step
  constexpr void find_roots(const fused_kernels& kernels) {
    root_.assign(c_.p.types.size(), -1);
    for (value_id v = 0; v < c_.p.value_count(); ++v) {
      value_id root = kernels.root(v);
      while (is_barrier(c_.p.producers[root]))
        root = kernels.root(c_.p.operand(c_.p.producers[root], 0));
      if (kernels.stored(root)) root_[v] = root;
    }
  }
  /// Is no kernel before this step's that computes the op? What is sent for it is sent once.
  constexpr bool is_first(op_id o, int step) const { return made_at_[o] == step; }
  /// Is it the wire of a barrier? What passes that stays where it lies.
  constexpr bool is_barrier(op_id o) const {
    if (c_.p.ops[o].def->role != op_role::wire) return false;
    return c_.p.ops[c_.nested.control_of(o)->marker].def->fusion == fusion_kind::view;
  }
  constexpr void find_lives() {
    const std::size_t values = c_.p.types.size();
    made_at_.assign(c_.p.ops.size(), -1);
    needed_at_.assign(c_.p.ops.size(), -1);
    const auto note = [&](op_id o, int s) {
      if (made_at_[o] < 0 || s < made_at_[o]) made_at_[o] = s;
      if (s > needed_at_[o]) needed_at_[o] = s;
    };
    const int count = static_cast<int>(steps_.size());
    for (int s = 0; s < count; ++s) {
      if (steps_[s].op_count == 0) note(steps_[s].op, s);
      for (int i = steps_[s].first_op; i < steps_[s].first_op + steps_[s].op_count; ++i)
        note(ops_[i], s);
    }
    for (int s = 0; s < count; ++s)
      for (int i = steps_[s].first_use; i < steps_[s].first_use + steps_[s].use_count; ++i)
        uses_[i].first = is_first(uses_[i].by.op, s);
    vec<int> last(values, -1);  // the last step that needs a value, through views
    for (const auto& out : c_.p.outputs) last[out.value] = last_step(0);
    for (const auto& scope : c_.nested.scopes)
      for (const use& u : scope.outputs) {
        const int s = last_step(c_.nested.scope[c_.p.producer(c_.p.operand(u.op, u.operand))]);
        int& mine = last[c_.p.operand(u.op, u.operand)];
        if (s > mine) mine = s;
      }
    for (int s = count; s-- > 0;)
      for (int i = steps_[s].first_use; i < steps_[s].first_use + steps_[s].use_count; ++i) {
        const value_id v = c_.p.operand_list[uses_[i].place];
        if (uses_[i].value < 0 && root_[v] >= 0) continue;  // it is computed again there
        if (s > last[v]) last[v] = s;
        const op_node& by = c_.p.ops[uses_[i].by.op];
        const bool passes = by.def->role != op_role::wire || is_barrier(uses_[i].by.op);
        if (steps_[s].op_count == 0 && passes && by.result_count == 1 && last[by.result] > last[v])
          last[v] = last[by.result];
      }
    lives_.assign(values, {});
    buffer_lives_.assign(c_.p.operand_list.size(), {});
    for (value_id v = 0; v < c_.p.value_count(); ++v) {
      if (root_[v] != v) continue;
      const op_id o = c_.p.producers[v];
      const op_role role = c_.p.ops[o].def->role;
      if (role == op_role::parameter) continue;  // it lives throughout
      if (role == op_role::wire)
        lives_[v] = c_.nested.value_scope[v] == c_.nested.scope[o]
                        ? interval{made_at_[c_.nested.control_of(o)->marker], last[v]}
                        : interval{};
      else
        lives_[v] = {made_at_[o], last[v] > made_at_[o] ? last[v] : made_at_[o]};
    }
    for (op_id o = 0; o < c_.p.op_count(); ++o) {
      const op_node& n = c_.p.ops[o];
      if (needed_at_[o] < 0) continue;
      int end = needed_at_[o];
      if ((n.def->fusion == fusion_kind::view || is_barrier(o)) && n.result_count == 1 &&
          last[n.result] > end)
        end = last[n.result];
      for (int i = 0; i < n.operand_count; ++i)
        buffer_lives_[n.operand_begin + i] = {made_at_[o], end};
    }
    for (int scope = 1; scope < static_cast<int>(scopes_.size()); ++scope)
      for (const use& u : c_.nested.scopes[scope].outputs)
        buffer_lives_[c_.p.ops[u.op].operand_begin + u.operand] = {last_step(scope),
                                                                   last_step(scope)};
    if (staged_ != nullptr) keep_for_calls();
    donate(last);
    overwrite();
    number_slots();
  }
  /// What a unit takes of another one lives to its end, what is combined from the beginning.
  constexpr void keep_for_calls() {
    vec<int> end(static_cast<std::size_t>(staged_->units), -1);
    const auto unit_of = [&](op_id o) { return staged_->unit[staged_op(o)]; };
    for (int s : scopes_[0])
      if (const int u = unit_of(steps_[s].op); u >= 0) end[u] = s;
    for (value_id v = 0; v < c_.p.value_count(); ++v) {
      interval& life = lives_[v];
      if (life.end < life.begin || c_.nested.scope[steps_[life.end].op] != 0) continue;
      const int u = unit_of(steps_[life.end].op);
      if (u >= 0 && u != unit_of(c_.p.producers[v]) && end[u] > life.end) life.end = end[u];
    }
    term_.assign(c_.p.types.size(), 0);
    for (const value_id v : staged_->combined)
      if (root_[v] >= 0 && lives_[root_[v]].end >= 0) {
        lives_[root_[v]].begin = scopes_[0].front();
        term_[root_[v]] = made_at_[c_.p.producers[root_[v]]] >= 0;
      }
  }
  constexpr void number_slots() {
    slot_.assign(steps_.size(), 0);
    int next = 0;
    for (const vec<int>& scope : scopes_) {
      for (int s : scope) slot_[s] = next++;
      ++next;  // behind its last step
    }
    for (vec<interval>* list : {&lives_, &buffer_lives_})
      for (interval& each : *list)
        each = each.begin < 0 || each.end < each.begin
                   ? interval{}
                   : interval{slot_[each.begin], slot_[each.end]};
  }
  constexpr int last_step(int scope) const {
    return scopes_[scope].empty() ? -1 : scopes_[scope].back();
  }
  /// The next state lies where the state does, see live_bytes.
  constexpr void donate(const vec<int>& last) {
    const program& p = c_.p;
    name_table inputs(p.inputs.size());
    for (int i = 0; i < p.input_count(); ++i) inputs.insert(p.input_name(i), i);
    vec<char> taken(p.inputs.size(), 0);
    for (int k = 0; k < p.output_count(); ++k) {
      const int i = inputs.find(p.output_name(k));
      const value_id to = root_[p.outputs[k].value];
      if (i < 0 || taken[i] != 0 || to < 0 || lives_[to].end < 0) continue;
      const value_id from = p.inputs[i];
      const op_id made = p.producers[to];
      const int at = made_at_[made];
      const bool free = last[from] < at || (last[from] == at && p.ops[made].def->in_place);
      if (p.is(made, op_role::parameter) || p.types[to] != p.types[from] || !free) continue;
      taken[i] = 1;
      lives_[to] = {};
    }
  }
  /// A result that is written over an operand that dies there.
  constexpr void overwrite() {
    for (int s = 0; s < static_cast<int>(steps_.size()); ++s) {
      const op_node& n = c_.p.ops[steps_[s].op];
      if (steps_[s].op_count == 0 || !n.def->in_place || lives_[n.result].end < 0) continue;
      for (int i = steps_[s].first_use; i < steps_[s].first_use + steps_[s].use_count; ++i) {
        const value_id v = uses_[i].read ? root_[c_.p.operand_list[uses_[i].place]] : -1;
        if (v < 0 || lives_[v].end != s || lives_[v].begin >= s ||
            c_.p.is(c_.p.producers[v], op_role::parameter) ||
            c_.p.types[v].bytes() != c_.p.types[n.result].bytes())
          continue;
        --lives_[v].end;
        break;
      }
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

  struct run_time {
    double time = 0, compute = 0, communication = 0, peak = 0;
  };
  /// Two clocks: of the units that run kernels, and of the links.
  struct clocks {
    double units = 0, links = 0;
    constexpr double latest() const { return units > links ? units : links; }
  };
  /// Everything happens on one mesh, once.
  struct one_mesh {
    clocks all;
    double live = 0, peak = 0;

    constexpr clocks& of(op_id) { return all; }
    constexpr bool together(op_id, op_id) const { return true; }
    constexpr double combine(const step&) { return 0; }
    constexpr void pass(const running_books& b, int slot) { add(b.level_[slot]); }
    constexpr void nested(op_id, double bytes) { peak = max(peak, live + bytes); }
    constexpr void add(double bytes) {
      live += bytes;
      peak = max(peak, live);
    }
  };
  /// Each mesh has clocks for a microbatch, and others for what it does once.
  struct many_meshes {
    const running_books& books;
    vec<clocks> all;  ///< two for each mesh
    vec<double> live, peak;

    constexpr explicit many_meshes(const running_books& b)
        : books(b),
          all(static_cast<std::size_t>(2 * b.meshes()), clocks()),
          live(static_cast<std::size_t>(b.meshes()), 0),
          peak(static_cast<std::size_t>(b.meshes()), 0) {}
    constexpr int lane(op_id o) const { return 2 * books.mesh_of(o) + books.inside(o); }
    constexpr clocks& of(op_id o) { return all[lane(o)]; }
    /// What leaves an iteration is added to what others gave: two reads and a write.
    constexpr double combine(const step& s) {
      if (books.is_combined_[s.op] == 0) return 0;
      const device& d = books.on_.device;
      const double seconds = d.kernel + 3 * books.held_[s.result] / (d.bandwidth * d.memory_part);
      all[2 * books.mesh_of(s.op) + 1].units += seconds;
      return seconds;
    }
    /// What another mesh made is there: it works on another microbatch meanwhile.
    constexpr bool together(op_id a, op_id b) const { return lane(a) == lane(b); }
    constexpr void pass(const running_books& b, int slot) {
      for (int m = 0; m < b.meshes(); ++m) {
        live[m] += b.level_[m * b.slots_ + slot];
        peak[m] = max(peak[m], live[m]);
      }
    }
    constexpr void nested(op_id o, double bytes) {
      const int m = books.mesh_of(o);
      peak[m] = max(peak[m], live[m] + bytes);
    }
  };
  static constexpr double max(double a, double b) { return a > b ? a : b; }

  /// Plays the steps of a program; gives what they compute and communicate. It
  /// stands in front of its uses: Clang instantiates it there, not behind a constant expression.
  template <class Meshes>
  constexpr run_time run_on(Meshes& on, int scope) {
    run_time r;
    const auto send = [&](clocks& here, double after, double seconds) {
      double& clock = overlap_ ? here.links : here.units;
      clock = (after > clock ? after : clock) + seconds;
      r.communication += seconds;
      return clock;
    };
    for (int s : scopes_[scope]) {
      const step& it = steps_[s];
      clocks& here = on.of(it.op);
      on.pass(*this, slot_[s]);
      double ready = 0;
      for (int i = it.first_use; i < it.first_use + it.use_count; ++i) {
        const operand_use& u = uses_[i];
        double when = ready;
        if (u.value >= 0 && on.together(c_.p.producers[u.value], it.op)) when = ready_[u.value];
        if (const double t = u.first ? bringing_[u.place] : 0; t > 0) when = send(here, when, t);
        if (when > ready) ready = when;
      }
      r.compute += on.combine(it);
      if (it.control) {
        const run_time nested = run_nested(*c_.nested.control_of(it.op));
        on.nested(it.op, nested.peak);
        r.compute += nested.compute;
        r.communication += nested.communication;
        here.units = here.links = here.latest() + nested.time;
        for (value_id v : c_.nested.control_of(it.op)->results)
          ready_[v] = finishing_[v] > 0 ? send(here, here.units, finishing_[v]) : here.units;
        continue;
      }
      if (it.op_count > 0) {
        for (int i = it.first_op; halos_ > 0 && i < it.first_op + it.op_count; ++i)
          if (const double t = halo_[ops_[i]]; t > 0 && is_first(ops_[i], s))
            ready = send(here, ready, t);
        ready = here.units = (ready > here.units ? ready : here.units) + took_[s];
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
  /// Of a nested program, or of a whole one on one mesh.
  constexpr run_time run(int scope) {
    one_mesh on;
    run_time r = run_on(on, scope);
    r.time = on.all.latest();
    r.peak = on.peak;
    return r;
  }
  /// A microbatch passes through all meshes, the others come behind it as fast as the slowest mesh
  /// lets them, and as one that is through makes room for the next; all meshes at a time do what
  /// they do once.
  constexpr void add_up_stages() {
    take_messages();
    many_meshes on(*this);
    const run_time all = run_on(on, 0);
    double first = 0, slowest = slowest_channel(), once = 0;
    peak = 0;
    for (int m = 0; m < meshes(); ++m) {
      const double each = on.all[2 * m + 1].latest();
      first += each;
      slowest = max(slowest, each);
      once = max(once, on.all[2 * m].latest());
      peak = max(peak, arguments_[m] + on.peak[m]);
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
  /// Seconds for the messages of a microbatch from one mesh to another.
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
  /// What is sent lies on both meshes.
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
  /// So many devices do the same work.
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
  /// Of nested programs, for one run of the program around them.
  constexpr double trips(const flat_program::control_info& k) const {
    if (k.scope_count == 0) return 1;
    const auto around = c_.nested.scopes[c_.nested.scope[k.marker]].trips;
    if (around == 0) return 0;
    return static_cast<double>(c_.nested.scopes[k.first_scope].trips) / static_cast<double>(around);
  }
  /// Loops take their trip count times what their bodies take, of branches the longest counts.
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

/// An estimate of what `simulate` and `estimate` find in the program that `lower` makes, without
/// making it: time of a step and peak of memory of a device.
///
/// Kernels are those of the source program, with pieces in place of whole values; collectives are
/// the very ones of the lowering. Where `simulate` begins what is ready first, here everything runs
/// in the order of the program, on two clocks: a collective waits for its operand and the links, a
/// kernel for what it reads and the kernel before it. What is brought into another layout lies in
/// memory from there to the kernel that reads it.
///
/// A pipeline takes what its first microbatch takes on all meshes, then for each other one what the
/// slowest mesh takes, or its part of the way of all that are in flight; a mesh holds what it keeps
/// between calls for as many microbatches as its order has in flight.
///
/// Cost: after a change that of what depends on it (layout_changes), and a walk over the operands
/// of the program to add it up; at first linear in the program.
class running_cost {
 public:
  /// `staged`: the program is a microbatch of a pipeline; it outlives the cost. Null: it is not.
  constexpr running_cost(const core_program& c, const machine& on,
                         const simulation_options& options, const staged_work* staged = nullptr)
      : books_(c, on, options, staged), changes_(c, passes{}, books_) {
    books_.layouts_ = &changes_.layouts();
  }
  running_cost(const running_cost&) = delete;  // its books are referred to
  running_cost& operator=(const running_cost&) = delete;

  /// Follows the program's log of changes.
  constexpr void update() {
    changes_.update();
    books_.add_up();
  }
  /// Follows changes that are told: ops that have changed, in either direction, or -1 for all.
  constexpr void update(const vec<op_id>& changed) {
    changes_.update(changed);
    books_.add_up();
  }
  constexpr double time() const { return books_.time; }                    ///< seconds
  constexpr double compute() const { return books_.compute; }              ///< seconds in kernels
  constexpr double communication() const { return books_.communication; }  ///< in collectives
  constexpr double peak_bytes() const { return books_.peak; }
  /// Seconds below which no partitioning of the program brings it that shares its work among so
  /// many devices more: kernels do their part of it, nothing is sent.
  constexpr double bound(double devices) const { return books_.bound(devices); }

 private:
  cost_detail::running_books books_;
  layout_changes<cost_detail::running_books> changes_;
};

}  // namespace partita
