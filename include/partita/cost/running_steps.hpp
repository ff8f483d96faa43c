/// The steps in which a program under partitioning runs, and the lifetimes of its values.
#pragma once

#include <partita/core/core_program.hpp>
#include <partita/cost/staged_work.hpp>
#include <partita/ir/fusion.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// Kernels of the source program, the operands that they read, and the lifetimes of these: the data
/// that running_cost computes once, because actions do not change it.
///
/// Cost      linear in ops and in the kernels that they fuse to
class running_steps {
 public:
  /// `staged`: the pipeline whose microbatch the program is, or null.
  constexpr running_steps(const core_program& c, const staged_work* staged)
      : c_(c), staged_(staged) {}

  // ---- Of a pipeline: meshes and repetitions ----------------------------------------------------

  constexpr int meshes() const { return staged_ == nullptr ? 1 : staged_->meshes; }
  /// Returns the source op for an op that an action added: the producer of the value that it passes
  /// on.
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
  constexpr bool inside(op_id o) const { return staged_->inside[staged_op(o)] != 0; }

 protected:
  /// A unit of the run: a kernel, a collective's operand that passes through a view, or nested
  /// programs.
  struct step {
    op_id op = -1;
    int first_use = 0, use_count = 0;  ///< operands of its ops, in `uses_`
    int first_op = 0, op_count = 0;    ///< ops that it computes, in `ops_`; 0: nothing to compute
    /// The first of `result_count` results of `op`; a wire has none.
    value_id result = -1;
    int result_count = 0;
    bool control = false;
  };
  /// An operand of an op of a step.
  struct operand_use {
    int place = 0;        ///< in the program's list of operands
    use by;               ///< the op that reads it
    value_id value = -1;  ///< if an earlier step computes it, else -1
    bool read = false;    ///< true at its first read from memory
    bool first = false;   ///< true if no earlier step computes the op
  };
  /// The steps between which a value is in memory, both included; empty if end < begin. Both belong
  /// to one nested program. The slot of its first step is the number of steps in all previous
  /// nested programs plus the number of these programs.
  struct interval {
    int begin = 0, end = -1;
  };

  const core_program& c_;
  const staged_work* staged_;

  int slots_ = 0;
  vec<op_id> user_of_;  ///< by place in the list of operands; of a pipeline
  vec<char> term_;  ///< by value: true if it is added to terms of other microbatches (pipelines)
  vec<char> is_combined_;  ///< by op: true if its result accumulates over microbatches (pipelines)
  vec<step> steps_;
  vec<operand_use> uses_;
  vec<op_id> ops_;
  vec<value_id> made_;                 ///< parallel to `ops_`: the first result
  vec<vec<int>> scopes_;               ///< by nested program: its steps
  vec<int> first_step_of_, steps_of_;  ///< by op, in rows: the steps that compute it
  vec<interval> lives_;                ///< by value
  vec<char> on_host_;                  ///< see values_on_host
  constexpr bool is_on_host(value_id v) const { return !on_host_.empty() && on_host_[v] != 0; }
  vec<interval> buffer_lives_;  ///< by place in the list of operands
  vec<value_id> root_;  ///< by value: the value whose memory it uses, or -1 if it is never stored
  vec<int> made_at_;    ///< by op: the first step that computes it, or -1
  vec<int> needed_at_;  ///< by op: the last step that needs it
  vec<int> slot_;       ///< by step

  constexpr void find() {
    find_steps();
    find_lives();
    slots_ = static_cast<int>(steps_.size() + scopes_.size());
    if (staged_ != nullptr) find_stages();
  }
  /// True if an iteration adds the value to terms of other microbatches.
  constexpr bool is_term(value_id v) const {
    return staged_ != nullptr && staged_->microbatches > 1 && !term_.empty() && term_[v] != 0;
  }
  constexpr void find_stages() {
    is_combined_.assign(c_.p.ops.size(), 0);
    for (const value_id v : staged_->combined)
      is_combined_[c_.p.producer(v)] = staged_->microbatches > 1;
    user_of_.assign(c_.p.operand_list.size(), -1);
    for (op_id o = 0; o < c_.p.op_count(); ++o)
      for (int i = 0; i < c_.p.op(o).operand_count; ++i) user_of_[c_.p.op(o).operand_begin + i] = o;
  }
  constexpr double times(op_id o) const { return inside(o) ? staged_->microbatches : 1; }
  constexpr double times_held(value_id v) const {
    if (staged_ == nullptr || static_cast<std::size_t>(v) >= staged_->held.size()) return 1;
    return staged_->held[v];
  }

  /// Returns the number of runs of nested programs for one run of the enclosing program.
  constexpr double trips(const flat_program::control_info& k) const {
    if (k.scope_count == 0) return 1;
    const auto around = c_.nested.scopes[c_.nested.scope[k.marker]].trips;
    if (around == 0) return 0;
    return static_cast<double>(c_.nested.scopes[k.first_scope].trips) / static_cast<double>(around);
  }

  /// True if this step's kernel is the first that computes the op. Messages for an op are sent
  /// once.
  constexpr bool is_first(op_id o, int step) const { return made_at_[o] == step; }

 private:
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

  constexpr void find_roots(const fused_kernels& kernels) {
    root_.assign(c_.p.types.size(), -1);
    for (value_id v = 0; v < c_.p.value_count(); ++v) {
      value_id root = kernels.root(v);
      while (is_barrier(c_.p.producers[root]))
        root = kernels.root(c_.p.operand(c_.p.producers[root], 0));
      if (kernels.stored(root)) root_[v] = root;
    }
  }
  /// True if an op is the wire of a barrier. Values pass a barrier in place.
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
        if (uses_[i].value < 0 && root_[v] >= 0) continue;  // recomputed there
        if (s > last[v]) last[v] = s;
        const op_node& by = c_.p.ops[uses_[i].by.op];
        const bool passes = by.def->role != op_role::wire || is_barrier(uses_[i].by.op);
        if (steps_[s].op_count == 0 && passes && by.result_count == 1 && last[by.result] > last[v])
          last[v] = last[by.result];
      }
    lives_.assign(values, {});
    on_host_ = values_on_host(c_.p);
    buffer_lives_.assign(c_.p.operand_list.size(), {});
    for (value_id v = 0; v < c_.p.value_count(); ++v) {
      if (root_[v] != v) continue;
      const op_id o = c_.p.producers[v];
      const op_role role = c_.p.ops[o].def->role;
      if (role == op_role::parameter) continue;  // it lives throughout
      if (is_on_host(v)) continue;
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
  /// Extends lifetimes in a pipeline: an operand from another unit lives to the end of its unit,
  /// and a combined value from the beginning.
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
      ++next;  // after its last step
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
  /// Stores the next state in the memory of the state, see live_bytes.
  constexpr void donate(const vec<int>& last) {
    const program& p = c_.p;
    const vec<int> reused = reused_inputs(p);
    for (int k = 0; k < p.output_count(); ++k) {
      const int i = reused[k];
      const value_id to = root_[p.outputs[k].value];
      if (i < 0 || to < 0 || lives_[to].end < 0) continue;
      const value_id from = p.inputs[i];
      if (is_on_host(from)) continue;
      const op_id made = p.producers[to];
      const int at = made_at_[made];
      const bool free = last[from] < at || (last[from] == at && p.ops[made].def->in_place);
      if (p.is(made, op_role::parameter) || p.types[to] != p.types[from] || !free) continue;
      lives_[to] = {};
      donate_brought(p.outputs[k].value, to);
    }
  }
  /// Applies the same to the values on the way to the output.
  constexpr void donate_brought(value_id v, value_id to) {
    while (v != to && !c_.p.is(c_.p.producers[v], op_role::parameter)) {
      const op_node& n = c_.p.ops[c_.p.producers[v]];
      const int place = n.operand_begin + (v - n.result < n.operand_count ? v - n.result : 0);
      buffer_lives_[place] = {};
      v = c_.p.operand_list[place];
    }
  }
  /// Ends the life of an operand that a result overwrites.
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
};

}  // namespace partita::cost_detail
