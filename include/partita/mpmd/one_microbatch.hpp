/// Unrolls one iteration of the loop over microbatches: the ops before the loop, one iteration, and
/// the ops after it, in one program.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/assign.hpp>
#include <partita/mpmd/states.hpp>
#include <partita/mpmd/whole_batch.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/scan.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The program of one microbatch. Values enter the iteration directly or by microbatch_slice,
/// microbatch_index and microbatch_state; they leave it only by microbatch_sum, microbatch_stack
/// and microbatch_last.
struct one_microbatch {
  program p;
  vec<char>
      inside;  ///< by op: true if it runs for each microbatch (not ops that move values across)
  op_id own_loop = -1;      ///< the loop that the program had, or -1
  bool wrong_loop = false;  ///< true if the error is about that loop
  std::int64_t microbatches = 1;
  vec<text> notes;
  failure error;
};

namespace mpmd_detail {

constexpr bool enters(const op_node& n) {
  return n.def->id == def<op::microbatch_slice>.id || n.def->id == def<op::microbatch_index>.id ||
         n.def->id == def<op::microbatch_state>.id;
}
constexpr bool leaves(const op_node& n) {
  return n.def->id == def<op::microbatch_sum>.id || n.def->id == def<op::microbatch_stack>.id ||
         is_last_state(n);
}

/// Replaces a scan by one copy of its body.
class loop_opener {
 public:
  /// `own`: true if the user's program contained the loop.
  constexpr loop_opener(const program& p, op_id loop, bool own)
      : p_(p),
        loop_(loop),
        own_(own),
        body_(p.region(loop, 0)),
        k_(p.attrs(loop)),
        outer_(p, q_),
        inner_(body_, q_) {}

  constexpr program run(vec<char>& inside) {
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (o == loop_)
        open();
      else
        copy_op(outer_, p_, o);
    inside = static_cast<vec<char>&&>(inside_);
    inside.resize(q_.ops.size(), 0);
    outer_.interface();
    q_.labels = p_.labels;
    q_.scopes = p_.scopes;
    number_ops(q_);
    return static_cast<program&&>(q_);
  }

 private:
  const program& p_;
  op_id loop_;
  bool own_;
  const program& body_;
  op::scan::counts k_;
  program q_;
  program_copier outer_, inner_;
  vec<char> inside_;     ///< by op
  vec<int> carried_;     ///< by op of the body: the carried value that it adds to, or -1
  vec<op_id> combines_;  ///< by carried value: that op, or -1
  vec<int> uses_;        ///< by value of the body
  vec<char> used_;       ///< by result of the loop
  std::int64_t states_ = 0;

  constexpr void copy_op(program_copier& copy, const program& from, op_id o) {
    copy.op(o);
    for (const auto& r : from.regions_of(o)) q_.append_region(program(r));
  }
  constexpr value_id outer(int operand) const { return outer_.renamed[p_.operand(loop_, operand)]; }
  constexpr value_id cross(const op_def& d, value_id v, const tensor_type& t,
                           std::int64_t attribute = 0) {
    const value_id operands[] = {v};
    const std::int64_t attrs[] = {attribute};
    const bool has_operand = d.operand_count == 1;
    return q_.append(d, {operands, has_operand ? 1u : 0u}, {attrs, 1}, t);
  }
  constexpr void open() {
    const int constants = k_.constants, carried = k_.carried;
    inner_.renamed[body_.inputs[0]] =
        cross(def<op::microbatch_index>, -1, body_.type(body_.inputs[0]));
    for (int i = 0; i < constants; ++i) inner_.renamed[body_.inputs[1 + i]] = outer(i);
    for (int i = constants + carried; i < constants + carried + k_.sliced; ++i) {
      const value_id v = body_.inputs[1 + i];
      inner_.renamed[v] = cross(def<op::microbatch_slice>, stack(outer(i)), body_.type(v));
    }
    find_carried();
    for (int i = 0; i < carried; ++i)
      if (const value_id v = body_.inputs[1 + constants + i]; stays(i))
        inner_.renamed[v] = outer(constants + i);
      else if (is_state(i))
        inner_.renamed[v] = cross(def<op::microbatch_state>, same(outer(constants + i), 0),
                                  body_.type(v), states_++);
    states_ = 0;
    for (op_id o = 0; o < body_.op_count(); ++o)
      if (!body_.is(o, op_role::parameter) && carried_[o] < 0) {
        copy_op(inner_, body_, o);
        inside_.resize(q_.ops.size() - 1, 0);
        inside_.push_back(1);
      }
    value_id result = p_.op(loop_).result;
    for (int i = 0; i < body_.output_count(); ++i, ++result)
      outer_.renamed[result] = i >= carried  ? stacked(i, p_.type(result))
                               : stays(i)    ? outer(constants + i)
                               : is_state(i) ? last_state(i)
                                             : combined(i);
  }
  constexpr value_id before(int i) const { return body_.inputs[1 + k_.constants + i]; }
  constexpr value_id after(int i) const { return body_.outputs[i].value; }
  /// True if an iteration does not change a carried value.
  constexpr bool stays(int i) const { return before(i) == after(i); }
  /// True if an iteration does more with a carried value than add to it.
  constexpr bool is_state(int i) const { return own_ && combines_[i] < 0 && !stays(i); }
  constexpr value_id last_state(int i) {
    const std::int64_t number = states_++;
    const value_id next =
        cross(def<op::microbatch_next>, inner_.renamed[after(i)], body_.type(after(i)), number);
    inside_.resize(q_.ops.size() - 1, 0);
    inside_.push_back(1);
    if (used_[i] == 0) return next;
    return cross(def<op::microbatch_last>, next, body_.type(after(i)), number);
  }
  constexpr void find_used() {
    used_.resize(body_.outputs.size(), 0);
    const auto use = [&](value_id v) {
      const auto i = static_cast<std::size_t>(v - p_.op(loop_).result);
      if (v >= p_.op(loop_).result && i < used_.size()) used_[i] = 1;
    };
    for (const value_id v : p_.operand_list) use(v);
    for (const auto& each : p_.outputs) use(each.value);
  }
  /// The op that combines a carried value with the contribution of an iteration, or -1. In a user's
  /// own loop neither value may have other uses, and the initial value must be the identity of the
  /// op.
  constexpr op_id combining(int i) const {
    const op_id o = body_.producer(after(i));
    for (const value_id v : body_.operands(o))
      if (v == before(i)) return own_ && !only_combines(o, i) ? -1 : o;
    return -1;
  }
  constexpr bool only_combines(op_id o, int i) const {
    const combiner c = combiner_of(*body_.op(o).def);
    return c != combiner::stack && uses_[before(i)] == 1 && uses_[after(i)] == 1 &&
           starts_from_identity(c, p_.operand(loop_, k_.constants + i));
  }
  constexpr bool starts_from_identity(combiner c, value_id v) const {
    while (p_.op(p_.producer(v)).def->id == def<op::broadcast_in_dim>.id)
      v = p_.operand(p_.producer(v), 0);
    const op_id o = p_.producer(v);
    return p_.op(o).def->id == def<op::constant>.id && p_.attrs(o).size() == 1 &&
           p_.attrs(o)[0] == identity_bits(c, p_.type(v).element);
  }
  constexpr void count_uses() {
    uses_.resize(body_.types.size(), 0);
    for (op_id o = 0; o < body_.op_count(); ++o)
      for (const value_id v : body_.operands(o)) ++uses_[v];
    for (const auto& each : body_.outputs) ++uses_[each.value];
  }
  /// A stack is created by an op before the loop, which determines the layout of its slices.
  constexpr value_id stack(value_id v) {
    return q_.is(q_.producer(v), op_role::parameter) ? same(v, 0) : v;
  }
  constexpr void find_carried() {
    carried_.resize(body_.ops.size(), -1);
    if (own_) {
      count_uses();
      find_used();
    }
    for (int i = 0; i < k_.carried; ++i) {
      combines_.push_back(combining(i));
      if (combines_[i] >= 0) carried_[combines_[i]] = i;
    }
  }
  constexpr value_id combined(int i) {
    const value_id out = after(i);
    const op_id o = combines_[i];
    if (o < 0)
      return cross(def<op::microbatch_sum>, made_inside(out), body_.type(out),
                   static_cast<std::int64_t>(combiner::stack));
    const bool first = body_.operand(o, 0) == before(i);
    return cross(def<op::microbatch_sum>, made_inside(body_.operand(o, first ? 1 : 0)),
                 body_.type(out), static_cast<std::int64_t>(combiner_of(*body_.op(o).def)));
  }
  static constexpr combiner combiner_of(const op_def& d) {
    for (const combiner c : {combiner::add, combiner::max, combiner::min, combiner::multiply,
                             combiner::logical_and, combiner::logical_or})
      if (combining_op(c).id == d.id) return c;
    return combiner::stack;
  }
  constexpr value_id stacked(int i, const tensor_type& t) {
    return cross(def<op::microbatch_stack>, made_inside(body_.outputs[i].value), t);
  }
  /// Returns a value that an op of the iteration computes, with an extra op if it is only passed
  /// on.
  constexpr value_id made_inside(value_id body_value) {
    const value_id v = inner_.renamed[body_value];
    const op_id o = q_.producer(v);
    if (static_cast<std::size_t>(o) < inside_.size() && inside_[o] != 0) return v;
    return same(v, 1);
  }
  constexpr value_id same(value_id v, char inside) {
    const value_id operands[] = {v};
    const tensor_type t = q_.type(v);
    const value_id copy = q_.append(def<op::reshape>, operands, {}, t);
    inside_.resize(q_.ops.size() - 1, 0);
    inside_.push_back(inside);
    return copy;
  }
};

/// Finds the loop over microbatches of a program that already has one: its body contains parts of
/// several stages, or its iterations match the requested number of microbatches.
///
/// Errors    O150 it is reversed, O151 there are two, O152 its number of iterations differs
class own_loop_finder {
 public:
  constexpr own_loop_finder(const program& p, std::int64_t n, const vec<mesh_for>& lines,
                            syntax advice)
      : p_(p), n_(n), lines_(lines), parts_(p.scopes, p.labels, lines), advice_(advice) {}

  /// Returns the loop, or -1.
  constexpr op_id run(failure& error) {
    op_id loop = -1;
    for (op_id o = 0; o < p_.op_count() && !error; ++o) {
      if (p_.op(o).def->id != def<op::scan>.id || !is_over_microbatches(o)) continue;
      if (loop >= 0)
        error.record("O151", "pipeline: named parts are in two loops over microbatches, ",
                     loop_text(loop).view(), " and ", loop_text(o).view(), ": ",
                     whole_batch_need(p_, loop, o).words().view(),
                     "; take gradients inside of one loop and carry their sum");
      loop = o;
    }
    if (loop < 0 || error) return loop;
    if (op::scan::counts(p_.attrs(loop)).reversed)
      error.record("O150", "pipeline: ", loop_text(loop).view(),
                   " is the loop over microbatches and runs backwards; reverse what it slices and "
                   "stacks instead");
    if (n_ != 1 && length(loop) != n_)
      error.record("O152", "pipeline: ", loop_text(loop).view(),
                   " is the loop over microbatches of this step; ", n_, " are requested: leave ",
                   in_syntax(advice_, ".microbatches", "microbatches"), " out");
    if (length(loop) < 1)
      error.record("O152", "pipeline: ", loop_text(loop).view(),
                   " is the loop over microbatches of this step; at least one is needed");
    return loop;
  }
  constexpr std::int64_t length(op_id loop) const {
    return op::scan::counts(p_.attrs(loop)).length;
  }

 private:
  const program& p_;
  std::int64_t n_;
  const vec<mesh_for>& lines_;
  part_selector parts_;
  syntax advice_;

  constexpr text loop_text(op_id o) const {
    return concat(p_.op(o).def->name, " of ", length(o), " iterations");
  }
  constexpr bool is_over_microbatches(op_id o) {
    int first = -1;
    bool several = false;
    ir_detail::for_each_op(p_.region(o, 0), [&](const op_node& n) {
      const int line = parts_.line_of(n);
      if (line < 0) return;
      if (first < 0) first = line;
      several = several || lines_[line].mesh != lines_[first].mesh ||
                lines_[line].stage != lines_[first].stage;
    });
    return several || (first >= 0 && n_ > 1 && length(o) == n_);
  }
};

}  // namespace mpmd_detail

constexpr one_microbatch cut_into_microbatches(
    const program& p, std::int64_t n, span<const schedule_detail::kept_microbatch_entry> batch,
    const vec<mesh_for>& lines, syntax advice);

namespace mpmd_detail {

/// Advice where a part needs a value of all microbatches. Leave the input that the value is
/// computed from out of the batch, if a trial shows that this helps (propagation slices it where
/// parts use it); otherwise compute the value elsewhere.
///
/// Cost: one cut for each entry of the batch.
constexpr text without_whole_batch(const program& p, std::int64_t n,
                                   span<const schedule_detail::kept_microbatch_entry> batch,
                                   const vec<mesh_for>& lines, syntax advice) {
  for (std::size_t left_out = 0; batch.size() > 1 && left_out < batch.size(); ++left_out) {
    vec<schedule_detail::kept_microbatch_entry> rest;
    for (std::size_t i = 0; i < batch.size(); ++i)
      if (i != left_out) rest.push_back(batch[i]);
    const one_microbatch one =
        cut_into_microbatches(p, n, {rest.data(), rest.size()}, lines, advice);
    if (!one.error)
      return concat(
          "leave \"", escaped(batch[left_out].name.view()), "\" out of ",
          in_syntax(advice, ".batch", "batch"),
          ": parts still get its slices, and ops that need all of it are computed from all of it");
  }
  return "compute it from one microbatch alone, or without parameters and matrix products: such a "
         "value is computed before the first microbatch";
}

}  // namespace mpmd_detail

/// Cuts a batch into `n` microbatches: the step with a loop, as `microbatch` makes it, with one
/// iteration unrolled. Ops without parts on meshes of `lines` may be in loops of their own; ops
/// with such parts are in one loop. What `microbatch` computes before the loop belongs to no part.
///
/// Without a `batch`, the loop is the program's own `scan` with parts of several stages, which may
/// carry a state from microbatch to microbatch. Values that it only adds to are accumulated like
/// gradients.
///
/// Errors    those of `microbatch`, O150 to O152 an unsuitable loop, O120 a part needs a result of
///           another part over all microbatches, O121 no part is computed from a microbatch
constexpr one_microbatch cut_into_microbatches(
    const program& p, std::int64_t n, span<const schedule_detail::kept_microbatch_entry> batch,
    const vec<mesh_for>& lines, syntax advice) {
  one_microbatch out;
  out.microbatches = n;
  rewriting r;
  r.p = p;
  number_ops(r.p);
  const label_list labels = r.p.labels;  // by these numbers, which the loop keeps
  const scope_list scopes = r.p.scopes;
  if (batch.size() == 0) {
    mpmd_detail::own_loop_finder finder(r.p, n, lines, advice);
    const op_id loop = finder.run(out.error);
    out.wrong_loop = static_cast<bool>(out.error);
    if (out.error) return out;
    if (loop >= 0) {
      out.own_loop = loop;
      out.microbatches = finder.length(loop);
      out.p = mpmd_detail::loop_opener(r.p, loop, true).run(out.inside);
      return out;
    }
  }
  schedule_detail::microbatch_rewrite{n, batch}.rewrite(r);
  out.error = r.error;
  out.notes = r.notes;
  if (out.error) return out;
  r.p.labels = labels;
  r.p.scopes = scopes;
  if (n == 1) {
    out.p = static_cast<program&&>(r.p);
    return out;
  }
  op_id loop = -1;
  mpmd_detail::part_selector parts(r.p.scopes, r.p.labels, lines);
  for (op_id o = 0; o < r.p.op_count(); ++o) {
    const op_node& node = r.p.op(o);
    if (node.def->id != def<op::scan>.id || node.marks.source >= 0) continue;  // of the model
    if (!mpmd_detail::has_parts(r.p.region(o, 0), parts)) continue;
    if (loop >= 0) {
      out.error.record("O120",
                       "pipeline: ", mpmd_detail::whole_batch_need(r.p, loop, o).words().view(),
                       "; ", mpmd_detail::without_whole_batch(p, n, batch, lines, advice).view());
      return out;
    }
    loop = o;
  }
  if (loop < 0) {
    out.error.record(
        "O121",
        "pipeline: no op of a part that is assigned to a mesh is computed from a microbatch");
    return out;
  }
  out.p = mpmd_detail::loop_opener(r.p, loop, false).run(out.inside);
  return out;
}

}  // namespace partita
