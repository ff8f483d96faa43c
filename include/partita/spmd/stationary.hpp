/// The pass that moves small operands in place of large ones.
///
/// Source    Pope et al., "Efficiently scaling transformer inference" (2022), section 3.2:
///           weight-stationary and weight-gathered layouts
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/op/convolution.hpp>
#include <partita/op/dot_general.hpp>
#include <partita/spmd/lift_gathers.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// How a value is moved among devices: along the same axes one dimension is gathered, another one
/// sliced; what is only sliced is a sum that is scattered.
struct movement {
  int gathered = no_dim, sliced = no_dim;

  constexpr bool none() const { return gathered == no_dim && sliced == no_dim; }
  constexpr collective::kind_type kind() const {
    if (sliced == no_dim) return collective::all_gather;
    return gathered == no_dim ? collective::reduce_scatter : collective::all_to_all;
  }
  constexpr tensor_type after(tensor_type t, std::int64_t n) const {
    if (gathered != no_dim) t.shape[gathered] *= n;
    if (sliced != no_dim) t.shape[sliced] /= n;
    return t;
  }
  /// `along`: the axes, whatever their dimensions.
  constexpr collective over(const layout& along) const {
    collective what;
    what.kind = kind();
    if (what.kind == collective::all_to_all) {
      what.gathered = gathered;
      what.sliced = sliced;
    }
    for (const auto& e : along) what.axes.push_back(e.axis, sliced == no_dim ? gathered : sliced);
    return what;
  }
  /// Of a value of so many bytes: what a device sends, times n / (n - 1).
  constexpr std::int64_t cost(std::int64_t bytes, std::int64_t n) const {
    if (none()) return 0;
    return kind() == collective::all_gather ? saturating_multiply(bytes, n) : bytes;
  }
};

/// An op of two operands, linear in both, as it is to be: its operands are moved first, its result
/// behind it.
struct stationary_op {
  movement operands[2], result;
  layout along;
  tensor_type made;       ///< its result, before that is moved
  op_id settled = -1;     ///< the collective that is not needed any more
  std::int64_t cost = 0;  ///< as movement::cost
};

/// y = x * all_gather(w), w tiled along what y has     => y = all_to_all(all_gather(x) * w)
/// y = x * all_gather(w), w tiled along what is summed => y = reduce_scatter(all_to_all(x) * w)
/// reduce_scatter(x * y)                               => all_to_all(x) * all_gather(y)
///
/// (`*`: a dot_general or a convolution. x is gathered along a dimension that w does not have, a
/// batch; in the third rule x and y are, along one that is summed.)
///
/// When: a device sends fewer bytes, by so many at least, of all gathers of w together (itself, or
/// reshaped, transposed or reversed), none of which is left. In a loop w is not what is handed to
/// the loop's body, since that can be gathered once in front of the loop. Why: where activations
/// are smaller than weights, weights need not move; and each device reads a piece of them. It ends
/// since each op is looked at once. As many or more collectives, of smaller values.
class keeping_stationary {
 public:
  constexpr keeping_stationary(program& p, const mesh& m, const passes& on, const program& source,
                               const vec<collective_note>& notes, std::size_t& next,
                               bool nested = false)
      : p_(p), mesh_(m), on_(on), source_(source), notes_(notes), next_(next), nested_(nested) {}

  /// Rewrites the program and those nested in it; gives how many ops it changed, and appends what
  /// became of their notes to `made`.
  constexpr int run(vec<collective_note>& made) {
    prepare();
    keep_gathered();
    keep_scattered();
    return changed_ + write(made);
  }

 private:
  /// Gathers of one value along the same axes, itself or as it is moved.
  struct group {
    std::int64_t gathers = 0, bytes = 0;  ///< bytes of the piece
    std::int64_t cost = 0, members = 1;
    bool possible = true;
    axis_set along;
    int previous = -1;  ///< of the same value
  };
  struct moved_value {
    movement how;
    layout along;
    value_id made = -1;
    int previous = -1;  ///< of the same value
  };
  static constexpr int most_moves = 8;  // (Chains that many gathers end are walked often.)

  program& p_;
  const mesh& mesh_;
  const passes& on_;
  const program& source_;
  const vec<collective_note>& notes_;
  std::size_t& next_;  ///< of `notes_`
  bool nested_;
  int changed_ = 0;
  vec<int> note_of_;          ///< by op that communicates
  vec<stationary_op> plans_;  ///< those that are possible
  vec<int> plan_of_;          ///< by op, or -1
  vec<op_id> settles_;        ///< by op that is not needed any more: the op that it stands next to
  vec<int> uses_;             ///< by value
  vec<group> groups_;
  vec<int> group_of_;  ///< by gather
  vec<moved_value> moved_;
  vec<int> latest_moved_;  ///< by value: the last of `moved_`
  op_marks marks_;         ///< of the op that is written
  factor_table map_;       ///< of one op
  vec<tensor_type> types_;

  constexpr bool is_product(op_id o) const {
    const auto id = p_.op(o).def->id;
    return id == def<op::dot_general>.id || id == def<op::convolution>.id;
  }
  constexpr void prepare() {
    const auto count = p_.ops.size();
    note_of_.resize(count, -1);
    plan_of_.resize(count, -1);
    settles_.resize(count, -1);
    group_of_.resize(count, -1);
    uses_.resize(p_.types.size(), 0);
    latest_moved_.resize(p_.types.size(), -1);
    for (value_id v : p_.operand_list) ++uses_[v];
    for (const auto& out : p_.outputs) ++uses_[out.value];
  }

  // ---- What is possible ----------------------------------------------------------------------

  constexpr void find_factors(op_id o) {
    map_.clear();
    types_.clear();
    for (value_id v : p_.operands(o)) types_.push_back(p_.type(v));
    const auto attrs = p_.attrs(o);
    tile_map_context c(types_, p_.type(p_.op(o).result), attrs.data(),
                       static_cast<int>(attrs.size()), map_);
    p_.op(o).def->tile_map(c);
  }
  /// The one factor of a dimension of an operand (or, end -1, of the result) if its pieces are
  /// those of the dimension; or -1.
  constexpr int factor_at(int end, int dim) const {
    int found = -1;
    for (int f = 0; f < map_.ops[0].count; ++f) {
      if (map_.dim_of(map_.at(0, f), end) != dim) continue;
      if (found >= 0) return -1;
      found = f;
    }
    return found >= 0 && !map_.at(0, found).halo && !map_.at(0, found).offset ? found : -1;
  }
  constexpr int dim(int f, int end) const { return map_.dim_of(map_.at(0, f), end); }
  constexpr bool sums(int f) const {
    return dim(f, -1) == no_dim && map_.at(0, f).combine == combiner::add;
  }
  /// The first factor that these ends (operands, or -1: the result) have, and no others, or -1.
  constexpr int factor_of(bool first, bool second, bool result) const {
    for (int f = 0; f < map_.ops[0].count; ++f) {
      bool good = (dim(f, 0) != no_dim) == first && (dim(f, 1) != no_dim) == second &&
                  (dim(f, -1) != no_dim) == result && (result || sums(f));
      for (int end = -1; end < 2; ++end)
        good = good && (dim(f, end) == no_dim || factor_at(end, dim(f, end)) == f);
      if (good) return f;
    }
    return -1;
  }
  /// The dimension of all axes, or no_dim.
  static constexpr int dim_of_all(const layout& axes) {
    const int d = axes.count > 0 ? int{axes[0].dim} : int{no_dim};
    for (const auto& e : axes)
      if (e.dim != d) return no_dim;
    return d;
  }

  /// What becomes of an op, operand `i` of which is gathered; gives whether anything can.
  constexpr bool plan_gathered(op_id o, int i, op_id gather, stationary_op& plan) {
    const collective what = p_.collective_of(gather);
    const int j = 1 - i, tiled = dim_of_all(what.axes);
    if (!is_product(o) || tiled == no_dim) return false;
    find_factors(o);
    const int f = factor_at(i, tiled), batch = factor_of(j == 0, j == 1, true);
    if (f < 0 || batch < 0 || (dim(f, j) != no_dim) == (dim(f, -1) != no_dim)) return false;
    if (dim(f, j) != no_dim && (!sums(f) || factor_at(j, dim(f, j)) != f)) return false;
    if (dim(f, -1) != no_dim && factor_at(-1, dim(f, -1)) != f) return false;
    plan.operands[j] = {dim(batch, j), dim(f, j)};
    plan.result = {dim(f, -1), dim(batch, -1)};
    plan.along = what.axes;
    plan.settled = gather;
    finish(o, what.members(mesh_), movement{dim(batch, -1), dim(f, -1)}, plan);
    return true;
  }
  /// What becomes of an op whose result is scattered; gives whether anything can.
  constexpr bool plan_scattered(op_id o, op_id scatter, stationary_op& plan) {
    const collective what = p_.collective_of(scatter);
    const int tiled = dim_of_all(what.axes);
    if (!is_product(o) || tiled == no_dim || what.combine != combiner::add) return false;
    find_factors(o);
    const int f = factor_at(-1, tiled), batch = factor_of(true, true, false);
    if (f < 0 || batch < 0 || (dim(f, 0) != no_dim) == (dim(f, 1) != no_dim)) return false;
    for (int i = 0; i < 2; ++i)
      if (dim(f, i) != no_dim && factor_at(i, dim(f, i)) != f) return false;
    for (int i = 0; i < 2; ++i) plan.operands[i] = {dim(batch, i), dim(f, i)};
    plan.along = what.axes;
    plan.settled = scatter;
    finish(o, what.members(mesh_), movement{no_dim, tiled}, plan);
    return true;
  }
  /// `piece`: how the op's result differs from what it is now.
  constexpr void finish(op_id o, std::int64_t n, const movement& piece, stationary_op& plan) const {
    plan.made = piece.after(p_.type(p_.op(o).result), n);
    plan.cost = plan.result.cost(plan.made.bytes(), n);
    for (int i = 0; i < 2; ++i)
      plan.cost =
          saturating_add(plan.cost, plan.operands[i].cost(p_.type(p_.operand(o, i)).bytes(), n));
  }

  // ---- What is worth it ----------------------------------------------------------------------

  constexpr bool worth(std::int64_t before, std::int64_t now, std::int64_t n) const {
    return before > now && (before - now) / n * (n - 1) >= on_.stationary_above;
  }
  /// In front of what only moves its elements.
  constexpr value_id root(value_id v) const {
    for (int i = 0; i < most_moves && is_movement(p_, p_.producer(v)); ++i)
      v = p_.operand(p_.producer(v), 0);
    return v;
  }
  constexpr void find_groups() {
    vec<int> latest(p_.types.size(), -1);  // by value
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (!p_.is(o, collective::all_gather)) continue;
      const collective what = p_.collective_of(o);
      const value_id from = root(p_.operand(o, 0));
      int k = latest[from];
      while (k >= 0 && groups_[k].along != what.along()) k = groups_[k].previous;
      if (k < 0) {
        k = static_cast<int>(groups_.size());
        group made;
        made.bytes = p_.type(p_.operand(o, 0)).bytes();
        made.members = what.members(mesh_);
        made.along = what.along();
        made.possible = !(nested_ && p_.is(p_.producer(from), op_role::parameter));
        made.previous = latest[from];
        groups_.push_back(made);
        latest[from] = k;
      }
      group_of_[o] = k;
      ++groups_[k].gathers;
    }
  }
  constexpr void keep_gathered() {
    find_groups();
    if (groups_.empty()) return;
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (int i = 0; i < p_.op(o).operand_count; ++i)
        if (const op_id q = p_.producer(p_.operand(o, i)); group_of_[q] >= 0) use_of(o, i, q);
    for (const auto& out : p_.outputs)
      if (const op_id q = p_.producer(out.value); group_of_[q] >= 0)
        groups_[group_of_[q]].possible = false;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (plan_of_[o] < 0) continue;
      const op_id gather = plans_[plan_of_[o]].settled;
      const group& g = groups_[group_of_[gather]];
      const std::int64_t times = on_.shares() ? 1 : g.gathers;
      const auto before = saturating_multiply(saturating_multiply(g.bytes, g.members), times);
      if (g.possible && worth(before, g.cost, g.members)) {
        settles_[gather] = o;
        ++changed_;
      } else {
        plan_of_[o] = -1;
      }
    }
  }
  constexpr void use_of(op_id o, int i, op_id gather) {
    group& g = groups_[group_of_[gather]];
    stationary_op plan;
    g.possible = g.possible && plan_of_[o] < 0 && plan_gathered(o, i, gather, plan);
    if (!g.possible) return;
    g.cost = saturating_add(g.cost, plan.cost);
    plan_of_[o] = static_cast<int>(plans_.size());
    plans_.push_back(plan);
  }
  constexpr void keep_scattered() {
    for (op_id s = 0; s < p_.op_count(); ++s) {
      if (!p_.is(s, collective::reduce_scatter)) continue;
      const value_id sum = p_.operand(s, 0);
      const op_id o = p_.producer(sum);
      stationary_op plan;
      if (uses_[sum] > 1 || plan_of_[o] >= 0 || !plan_scattered(o, s, plan)) continue;
      const std::int64_t n = p_.collective_of(s).members(mesh_);
      if (!worth(p_.type(sum).bytes(), plan.cost, n)) continue;
      settles_[s] = o;
      ++changed_;
      plan_of_[o] = static_cast<int>(plans_.size());
      plans_.push_back(plan);
    }
  }

  // ---- Writing -------------------------------------------------------------------------------

  /// Gives how many ops of nested programs were changed.
  constexpr int write(vec<collective_note>& made) {
    program q;
    program_copier copy(p_, q);
    if (changed_ > 0) copy.reserve();
    int inside = 0;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      if (n.def->collective && p_.collective_of(o).communicates())
        note_of_[o] = static_cast<int>(next_++);
      if (note_of_[o] >= 0 && settles_[o] < 0) made.push_back(notes_[note_of_[o]]);
      if (changed_ > 0) write_op(o, copy, q, made);
      for (int r = 0; r < n.region_count; ++r) {
        program& nested = p_.regions[n.region_begin + r];
        inside += keeping_stationary(nested, mesh_, on_, source_, notes_, next_, true).run(made);
        if (changed_ > 0) q.append_region(static_cast<program&&>(nested));
      }
    }
    if (changed_ == 0) return inside;
    copy.interface();
    p_ = static_cast<program&&>(q);
    return inside;
  }
  constexpr void write_op(op_id o, program_copier& copy, program& q, vec<collective_note>& made) {
    const value_id result = p_.op(o).result;
    if (settles_[o] >= 0 && p_.is(o, collective::all_gather)) return;
    if (settles_[o] >= 0) {
      copy.renamed[result] = write_stationary(settles_[o], copy, q, made);
    } else if (plan_of_[o] < 0) {
      copy.op(o);
    } else if (p_.is(plans_[plan_of_[o]].settled, collective::all_gather)) {
      copy.renamed[result] = write_stationary(o, copy, q, made);
    }  // (else where its result is scattered)
  }
  constexpr value_id write_stationary(op_id o, program_copier& copy, program& q,
                                      vec<collective_note>& made) {
    const stationary_op& plan = plans_[plan_of_[o]];
    collective_note note = notes_[note_of_[plan.settled]];
    note.reason = collective_reason::moved_instead;
    marks_ = p_.op(o).marks;
    const op_node& origin = source_.op(note.op);
    const bool known = origin.operand_count == 2;
    vec<value_id> operands;
    for (int i = 0; i < 2; ++i) {
      value_id v = p_.operand(o, i);
      if (p_.producer(v) == plan.settled) v = p_.operand(plan.settled, 0);  // the piece
      if (known) note.value = source_.operand(note.op, i);
      operands.push_back(moved(v, plan.operands[i], plan.along, note, copy, q, made));
    }
    append_copy(q, p_, o, operands, p_.attrs(o));
    const value_id y = q.append_result(plan.made);
    if (plan.result.none()) return y;
    if (known) note.value = origin.result;
    return move(y, plan.result, plan.along, note, q, made);
  }
  constexpr value_id move(value_id v, const movement& how, const layout& along,
                          collective_note& note, program& q, vec<collective_note>& made) const {
    const collective what = how.over(along);
    note.kind = what.kind;
    note.bytes = q.type(v).bytes();
    made.push_back(note);
    const value_id y = append(q, what, v, how.after(q.type(v), what.members(mesh_)));
    q.ops.back().marks = marks_;
    return y;
  }
  /// A value of `p_`, once for all ops that need it so.
  constexpr value_id moved(value_id v, const movement& how, const layout& along,
                           collective_note& note, program_copier& copy, program& q,
                           vec<collective_note>& made) {
    if (how.none()) return copy.renamed[v];
    const collective what = how.over(along);
    for (int k = latest_moved_[v]; k >= 0; k = moved_[k].previous)
      if (const moved_value& m = moved_[k];
          m.how.gathered == how.gathered && m.how.sliced == how.sliced && m.along == what.axes)
        return m.made;
    moved_value m;
    m.how = how;
    m.along = what.axes;
    m.made = move(copy.renamed[v], how, along, note, q, made);
    m.previous = latest_moved_[v];
    latest_moved_[v] = static_cast<int>(moved_.size());
    moved_.push_back(m);
    return m.made;
  }
};

/// Rewrites a lowered program, its notes and counts.
constexpr void keep_stationary(lowered& l, const program& source, const passes& on) {
  pass_report report;
  report.name = "stationary";
  report.before = l.counts;
  report.written_before = as_written(l.notes);
  report.peak_before = live_bytes(l.device.local).peak();
  vec<collective_note> notes;
  std::size_t next = 0;
  report.changed =
      keeping_stationary(l.device.local, l.device.mesh, on, source, l.notes, next).run(notes);
  l.notes = static_cast<vec<collective_note>&&>(notes);
  l.counts = {};
  for (const auto& each : l.notes) l.counts.count(each.kind, each.times);
  report.after = l.counts;
  report.written_after = as_written(l.notes);
  report.peak_after = live_bytes(l.device.local).peak();
  l.passes.push_back(report);
}

}  // namespace partita::spmd_detail
