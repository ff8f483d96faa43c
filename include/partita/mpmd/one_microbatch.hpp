/// A step as one microbatch sees it: what is in front of the loop over microbatches, one iteration
/// of it, and what is behind, in line.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/assign.hpp>
#include <partita/mpmd/whole_batch.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/microbatch.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/scan.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/support/error.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The program of one microbatch. Values go into an iteration by microbatch_slice and
/// microbatch_index alone or as they are, out of it by microbatch_sum and microbatch_stack alone.
struct one_microbatch {
  program p;
  vec<char> inside;  ///< by op: does it run for each microbatch? (Those four do not.)
  std::int64_t microbatches = 1;
  vec<text> notes;
  failure error;
};

namespace mpmd_detail {

constexpr bool enters(const op_node& n) {
  return n.def->id == def<op::microbatch_slice>.id || n.def->id == def<op::microbatch_index>.id;
}
constexpr bool leaves(const op_node& n) {
  return n.def->id == def<op::microbatch_sum>.id || n.def->id == def<op::microbatch_stack>.id;
}

/// Writes the body of a scan once, in place of the scan.
class loop_opener {
 public:
  constexpr loop_opener(const program& p, op_id loop)
      : p_(p),
        loop_(loop),
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
  const program& body_;
  op::scan::counts k_;
  program q_;
  program_copier outer_, inner_;
  vec<char> inside_;  ///< by op
  vec<int> carried_;  ///< by op of the body: the carried value that it only adds to, or -1

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
    for (op_id o = 0; o < body_.op_count(); ++o)
      if (!body_.is(o, op_role::parameter) && carried_[o] < 0) {
        copy_op(inner_, body_, o);
        inside_.resize(q_.ops.size() - 1, 0);
        inside_.push_back(1);
      }
    value_id result = p_.op(loop_).result;
    for (int i = 0; i < body_.output_count(); ++i, ++result)
      outer_.renamed[result] = i < carried ? combined(i) : stacked(i, p_.type(result));
  }
  /// The op that combines a carried value with what an iteration adds, or -1.
  constexpr op_id combining(int i) const {
    const op_id o = body_.producer(body_.outputs[i].value);
    for (const value_id v : body_.operands(o))
      if (v == body_.inputs[1 + k_.constants + i]) return o;
    return -1;
  }
  /// A stack is made by an op in front of the loop, which lays it out as slices are taken from it.
  constexpr value_id stack(value_id v) {
    return q_.is(q_.producer(v), op_role::parameter) ? same(v, 0) : v;
  }
  constexpr void find_carried() {
    carried_.resize(body_.ops.size(), -1);
    for (int i = 0; i < k_.carried; ++i)
      if (const op_id o = combining(i); o >= 0) carried_[o] = i;
  }
  constexpr value_id combined(int i) {
    const value_id out = body_.outputs[i].value;
    const op_id o = combining(i);
    if (o < 0)
      return cross(def<op::microbatch_sum>, made_inside(out), body_.type(out),
                   static_cast<std::int64_t>(combiner::stack));
    const bool first = body_.operand(o, 0) == body_.inputs[1 + k_.constants + i];
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
  /// What leaves an iteration is made by an op of it, even where it is only passed on.
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

}  // namespace mpmd_detail

/// Cuts a batch into `n` microbatches: the step with a loop, as `microbatch` makes it, and one
/// iteration of it in line. What has no part in it that `lines` give to a mesh may be loops of its
/// own (a count over the batch); what has, is one loop.
///
/// Errors    those of `microbatch`, O120 a part needs what another one gives of all microbatches,
///           O121 no part is computed from a microbatch
constexpr one_microbatch cut_into_microbatches(
    const program& p, std::int64_t n, span<const schedule_detail::kept_microbatch_entry> batch,
    const vec<mesh_for>& lines) {
  one_microbatch out;
  out.microbatches = n;
  rewriting r;
  r.p = p;
  number_ops(r.p);
  const label_list labels = r.p.labels;  // by these numbers, which the loop keeps
  const scope_list scopes = r.p.scopes;
  schedule_detail::stepping{n, batch}.rewrite(r);
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
    if (node.def->id != def<op::scan>.id || op::scan::counts(r.p.attrs(o)).length != n) continue;
    if (!mpmd_detail::has_parts(r.p.region(o, 0), parts)) continue;
    if (loop >= 0) {
      out.error.record("O120",
                       "pipeline: ", mpmd_detail::whole_batch_need(r.p, loop, o).words().view(),
                       "; compute it outside of the parts, or from one microbatch alone");
      return out;
    }
    loop = o;
  }
  if (loop < 0) {
    out.error.record("O121",
                     "pipeline: no op of a part that is given to a mesh is computed from a "
                     "microbatch");
    return out;
  }
  out.p = mpmd_detail::loop_opener(r.p, loop).run(out.inside);
  return out;
}

}  // namespace partita
