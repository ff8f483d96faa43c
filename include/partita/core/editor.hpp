/// The editor: the primitives with which actions, propagation and padding change a core program.
#pragma once

#include <cstdint>

#include <partita/core/loop_program.hpp>

namespace partita::core_detail {

/// Keeps graph and state consistent: every op has a nest, every factor a local size, every value
/// its uses. Every op that a change may affect is marked for the next propagation.
class core_editor {
 public:
  constexpr core_editor(const loop_program& c, core_graph& graph, partition_state& state)
      : c_(c), graph_(graph), state_(state) {}

  constexpr const loop_program& core() const { return c_; }
  constexpr partition_state& state() { return state_; }

  // ---- Loops ------------------------------------------------------------------------------------

  /// Marks an op to be visited again.
  constexpr void mark(op_id o) { state_.waiting.insert(graph_.order, o); }
  /// Adds a loop over a factor or `any_factor` around an op and marks the neighbouring ops; the op
  /// itself is not marked. The new loop is the innermost one. Ops that already have a loop over its
  /// axis are not affected, and the producer of an operand only once all users of that operand have
  /// one.
  constexpr void add_loop(op_id o, const loop& l) {
    push_loop(o, l);
    const op_order& order = graph_.order;
    op_set& waiting = state_.waiting;
    const program& p = graph_.p;
    const op_node& n = p.ops[o];
    const op_id* const producers = p.producers.data();
    const value_id* const operands = p.operand_list.data() + n.operand_begin;
    const std::uint8_t* const axes = state_.nests.axes();
    const auto tell = [&](op_id other) {
      if ((axes[other] >> l.axis & 1) == 0) waiting.insert(order, other);
    };
    const use* const all_uses = graph_.all_uses();
    const auto all_have_it = [&](const use_range& range) {
      if (range.count > few_uses) return true;  // checked when the op is visited
      for (int i = 0; i < range.count; ++i)
        if ((axes[all_uses[range.begin + i].op] >> l.axis & 1) == 0) return false;
      return true;
    };
    PARTITA_WORK(n.operand_count);
    for (int i = 0; i < n.operand_count; ++i)
      if (all_have_it(graph_.use_ranges()[operands[i]])) tell(producers[operands[i]]);
    for (int r = 0; r < n.result_count; ++r) {
      const use_range& range = graph_.use_ranges()[n.result + r];
      const use* const uses = all_uses + range.begin;
      PARTITA_WORK(range.count);
      for (int i = 0; i < range.count; ++i) tell(uses[i].op);
    }
  }
  /// Adds the missing loops over the parts of a named axis and records that an action requested all
  /// of them.
  constexpr void add_loops(op_id o, int axis, int f) {
    for (int a : c_.parts(axis)) {
      if (c_.nest_of(o).find(a) == nullptr)
        add_loop(o, {f, state_.tactic, static_cast<std::int8_t>(a), true}), mark(o);
      else
        state_.nests.ask_for(o, a);
    }
  }
  /// Adds to new op `o` the loops with which `like` is produced, for one of its results;
  /// `factor_for(dim)` returns the factor. Marks nothing.
  template <class F>
  constexpr void slice_like(op_id o, const layout& have, value_id like, const F& factor_for) {
    for (const auto& e : have) {
      const int f = factor_for(e.dim);
      if (f < 0 || (c_.uneven_sizes().contains(e.axis) && c_.local(o, f) % c_.size(o, e.axis) != 0))
        continue;
      loop l{f, state_.tactic, e.axis};
      if (const loop* from = c_.nest_of(graph_.p.producer(like)).find(e.axis); from != nullptr) {
        l.tactic = from->tactic;
        l.asked = from->asked;
      }
      push_loop(o, l);
    }
  }
  /// Removes the loops that propagation introduced in the current tactic; `from`: the number of
  /// changes before it.
  constexpr void drop_loops(std::size_t from) {
    const std::size_t end = state_.changes.size();
    for (std::size_t i = from; i < end; ++i) {
      const op_id o = state_.changes[i];
      const int count = c_.nest_of(o).count;
      state_.nests.filter(o, [&](const loop& l) { return l.tactic != state_.tactic || l.asked; });
      if (c_.nest_of(o).count == count) continue;
      refresh(o);
      state_.changes.push_back(op_id{o});
    }
  }
  /// Replaces the loops of an op.
  constexpr void set_loops(op_id o, const vec<loop>& loops) {
    state_.nests.filter(o, [](const loop&) { return false; });
    for (const loop& l : loops) push_loop(o, l);
    refresh(o);
    state_.changes.push_back(op_id{o});
  }
  /// Changes the factor of the loop of an op over an axis.
  constexpr void set_factor(op_id o, int axis, int f) {
    state_.nests.set_factor(o, axis, f);
    refresh(o);
  }
  /// Splits an axis, and all loops over it, into a major part of size `major` and the rest. Cost:
  /// linear in the program.
  constexpr void split(int axis, std::int64_t major) {
    state_.changes.push_back(-1);
    state_.nests.split(axis, state_.mesh.split(axis, major));
    const op_set& open = state_.open;
    for (int at = open.first_from(0); at >= 0; at = open.first_from(at + 1))
      state_.revisited.insert(graph_.order, graph_.order.at(at));
  }

  // ---- Ops --------------------------------------------------------------------------------------

  /// Replaces all uses of `%v` by `%vt = loop ... { yield slice ... %v }`, sliced like `like`, and
  /// returns %vt. Cost: linear in the uses.
  constexpr value_id insert_tiling(value_id v, value_id like) {
    const layout have = c_.produced_layout(like);
    const op_id o = graph_.insert_tiling(v);
    set_marks(o, op_marks(graph_.p.op(graph_.p.producer(v)).marks));
    register_op(o);
    slice_like(o, have, like, [](int dim) { return dim; });
    const value_id t = graph_.p.op(o).result;
    state_.changes.push_back(o);
    for (const auto& u : graph_.uses(t)) state_.changes.push_back(u.op);
    return t;
  }
  /// Appends an op with one result; `add_factors` adds its tile map. Its place in the execution
  /// order and its uses are set later, see `insert_after` and `index_uses`.
  template <class F>
  constexpr op_id append(const op_def& def, span<const value_id> operands,
                         span<const std::int64_t> attrs, const tensor_type& type, int scope,
                         const F& add_factors) {
    const op_id o = graph_.append(def, operands, attrs, type, scope);
    add_factors(graph_, o);
    register_op(o);
    mark(o);
    return o;
  }
  /// Records the origin of an op.
  constexpr void set_marks(op_id o, const op_marks& marks) { graph_.p.op(o).marks = marks; }
  /// Replaces an operand.
  constexpr void set_operand(const use& u, value_id v) {
    graph_.p.operand_list[graph_.p.op(u.op).operand_begin + u.operand] = v;
  }
  constexpr void set_attr(op_id o, int i, std::int64_t attr) {
    graph_.p.attr_list[graph_.p.op(o).attr_begin + i] = attr;
  }
  constexpr void set_extent(value_id v, int dim, std::int64_t extent) {
    graph_.p.types[v].shape[dim] = extent;
  }
  /// Sets the number of positions of a factor.
  constexpr void set_size(op_id o, int f, std::int64_t size) {
    graph_.map.at(o, f).size = size;
    state_.local[graph_.map.ops[o].begin + f] = size / c_.pieces_of(o, f);
    mark(o);
  }
  /// Begins to pad the program; every value's current shape becomes its true shape.
  constexpr void start_padding() {
    ++graph_.edits;
    graph_.padding.start(graph_.p);
  }
  constexpr padding_marks& padding() { return graph_.padding; }
  /// Replaces one value by another among the program's results.
  constexpr void move_outputs(value_id from, value_id to) {
    graph_.returned.move(graph_.p, from, to);
  }
  constexpr void insert_after(op_id o, op_id added) { graph_.order.insert_after(o, added); }
  constexpr op_id insertion_point(op_id o) const { return graph_.insertion_point(o); }
  /// See core_graph::become. Operands move in the program's operand list, so every op counts as
  /// changed.
  constexpr void become(op_id o, const op_def& other, value_id more,
                        const vec<std::int64_t>& attrs) {
    graph_.become(o, other, more, attrs);
    mark(o);
    state_.changes.push_back(-1);
  }
  /// See core_graph::index_uses.
  constexpr void index_uses(const vec<value_id>& values, op_id first, const vec<use>& added) {
    graph_.index_uses(values, first, added);
  }
  /// Records that the loops of an op, or the uses of its operands or results, have changed.
  constexpr void note_change(op_id o) { state_.changes.push_back(o); }

 private:
  static constexpr int few_uses = 8;

  const loop_program& c_;
  core_graph& graph_;
  partition_state& state_;

  /// Updates the local sizes of an op after loops were removed or changed, and marks it and its
  /// neighbours.
  constexpr void refresh(op_id o) {
    const auto& row = graph_.map.ops[o];
    for (int f = 0; f < row.count; ++f)
      state_.local[row.begin + f] = graph_.map.at(o, f).size / c_.pieces_of(o, f);
    const op_node& n = graph_.p.ops[o];
    mark(o);
    for (value_id v : graph_.p.operands(o)) mark(graph_.p.producer(v));
    for (int r = 0; r < n.result_count; ++r)
      for (const use& u : graph_.uses(n.result + r)) mark(u.op);
  }
  constexpr void push_loop(op_id o, const loop& l) {
    state_.nests.push_back(
        o, l, l.factor != any_factor && graph_.map.at(o, l.factor).combine != combiner::stack);
    state_.changes.push_back(o);
    if (l.factor != any_factor)
      state_.local[graph_.map.ops[o].begin + l.factor] /= c_.size(o, l.axis);
  }
  /// Registers the op appended last, without loops.
  constexpr void register_op(op_id o) {
    state_.nests.add_ops(1);
    const auto& row = graph_.map.ops[o];
    for (int f = 0; f < row.count; ++f) state_.local.push_back(graph_.map.at(o, f).size);
  }
};

}  // namespace partita::core_detail
