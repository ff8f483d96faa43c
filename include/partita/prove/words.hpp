/// Describes claims in messages.
#pragma once

#include <partita/ir/print.hpp>
#include <partita/prove/claims.hpp>
#include <partita/prove/given.hpp>
#include <partita/support/number_text.hpp>

namespace partita::prove_detail {

/// An axis of the mesh, or the number of an enclosing loop.
constexpr void print_coordinate(text& out, int axis, const mesh& m) {
  if (axis == bound_axis)
    out << "a part of it";
  else if (axis < max_axes)
    print_sub_axis(out, m.part(axis), m);
  else
    out << "step";
}

constexpr void print_term(text& out, const meanings& all, int t) {
  const term& of = all.terms[t];
  if (all.terms.is_positions(t))
    out << "positions";
  else if (of.number)
    out << "a constant";
  else if (of.home != nullptr && !of.home->name(of.value).empty())
    out << '"' << of.home->name(of.value) << '"';
  else if (of.at.made())
    out << "the source's " << all.terms.def(t).name;
  else
    out << "a value that enters a loop";
}

/// The positions of one dimension of a tensor: `{"B"}` if the axes cut it into blocks, otherwise
/// the start.
constexpr void print_positions(text& out, const view& v, int dim, const shape& tensor,
                               const mesh& m) {
  std::int64_t rest = tensor.extents[dim];
  bool plain = v.start[dim] == 0;
  vec<int> axes;
  for (bool found = true; found;) {
    found = false;
    for (int i = 0; i < v.count && !found; ++i) {
      const digit& d = v.digits[i];
      if (d.dim != dim || d.owner >= 0 || d.extent * d.stride != rest || d.stride <= 0) continue;
      axes.push_back(axis_of(d));
      rest = d.stride;
      found = true;
    }
  }
  for (int i = 0; i < v.count; ++i) {
    const digit& d = v.digits[i];
    if (d.dim != dim) continue;
    bool known = d.owner >= 0 && d.stride == 1 && d.extent == rest;
    for (int a : axes) known = known || d.owner == on_axis(a);
    plain = plain && known;
  }
  if (plain) {
    out << '{';
    append_list(out, static_cast<int>(axes.size()),
                [&](int i) { print_coordinate(out, axes[i], m); });
    out << '}';
    return;
  }
  out << v.start[dim];
  for (int i = 0; i < v.count; ++i) {
    const digit& d = v.digits[i];
    if (d.dim != dim) continue;
    out << " + ";
    if (d.stride != 1) out << d.stride << ' ';
    if (d.owner < 0)
      print_coordinate(out, axis_of(d), m);
    else
      out << "(0 to " << d.extent - 1 << " along " << d.owner << ')';
  }
}

/// The axes of a pending sum: `"B", "M"`.
constexpr void print_axes(text& out, const pending& sums, const mesh& m) {
  bool first = true;
  for (int a = 0; a < 32; ++a) {
    if (!sums.contains(a)) continue;
    if (!first) out << ", ";
    first = false;
    print_coordinate(out, a, m);
  }
}

/// A claim: `"x" [{"B"}, {}], to be summed over "M"`.
constexpr void print_claim(text& out, const meanings& all, const claim& c, const mesh& m) {
  if (c.scale != 1) {
    print_number(out, c.scale);
    out << " times ";
  }
  print_term(out, all, c.term);
  if (const view& v = all.views[c.view]; v.dims > 0) {
    out << " [";
    append_list(out, v.dims,
                [&](int dim) { print_positions(out, v, dim, all.terms[c.term].shape, m); });
    out << ']';
  }
  if (!c.sums.any()) return;
  out << ", to be reduced by " << name_of(c.sums.combine) << " over ";
  print_axes(out, c.sums, m);
}

/// The reduction that a pending value needs: `an all_reduce <@max> <"M"> is missing`. Empty if
/// other reductions are pending, too.
constexpr text missing_reduction(const claim& c, std::string_view of, const mesh& m) {
  if (!c.sums.any() || c.sums.axes >> max_axes != 0) return {};
  text axes;
  print_axes(axes, c.sums, m);
  const bool sum = c.sums.combine == combiner::add;
  return concat("an all_reduce ", sum ? "" : "<@", sum ? "" : name_of(c.sums.combine),
                sum ? "" : "> ", "<", axes, ">", of, " is missing");
}

constexpr std::string_view code_of_lost(const workspace& work) {
  return has_laws(*work.lost_in->op(work.lost).def) ? "Q003" : "Q009";
}
/// The first local op without a claim, and the claims about its operands.
constexpr text describe_lost(const workspace& work, const mesh& m) {
  const program& p = *work.lost_in;
  const value_names names(p);
  text out = op_text(p, work.lost);
  if (!work.lost_reason.empty()) out << ": " << work.lost_reason;
  for (int i = 0; i < p.op(work.lost).operand_count && i < 4; ++i) {
    out << "; %" << names[p.operand(work.lost, i)] << " is ";
    print_claim(out, work.all, work.lost_operands[i], m);
  }
  const bool surely = work.lost_reason.view() == an_operand_is_pending;
  for (int i = 0; i < p.op(work.lost).operand_count; ++i) {
    const text name = concat(" of %", names[p.operand(work.lost, i)]);
    if (const text missing = missing_reduction(work.lost_operands[i], name.view(), m);
        !missing.empty())
      return out << (surely ? "; " : "; perhaps ") << missing;
  }
  return out;
}

/// The op at which the limit of steps was reached.
constexpr text describe_stop(const workspace& work) {
  return concat("prove: more than ", work.most_steps, " steps, the limit, at ",
                op_text(*work.in, work.at), " of the ", work.defining ? "source" : "local program");
}

}  // namespace partita::prove_detail
