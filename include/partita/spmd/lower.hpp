/// Lowers a core program to device-local code with collectives.
///
/// Source    PartIR, section 6; the rules for sums are in spmd/pending_sums.hpp and in the comment
/// of
///           `finish_sum`
#pragma once

#include <cstdint>

#include <partita/core/groups.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/halo.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/spmd/pending_sums.hpp>
#include <partita/spmd/reshard.hpp>
#include <partita/spmd/run_passes.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace detail {

class lowering {
 public:
  constexpr lowering(const core_program& c, lowering_options options)
      : c_(c), options_(options), rules_(options.passes), sums_(c, options.fuse) {
    if (!options_.fuse) rules_ = passes{};
  }

  constexpr lowered run() {
    const auto values = c_.p.types.size();
    have_.resize(values, layout{});
    local_.resize(values, -1);
    if (!options_.fuse) group_ = loop_groups(c_);
    result_.device.mesh = c_.mesh;
    open_.push_back(program{});
    if (options_.build) {
      out().ops.reserve(c_.p.ops.size());
      out().types.reserve(values);
      out().producers.reserve(values);
      out().operand_list.reserve(c_.p.operand_list.size());
      out().attr_list.reserve(c_.p.attr_list.size());
    }
    if (c_.nested.controls.empty()) {
      for (op_id o : c_.order) lower_op(o);
    } else {
      by_scope_.resize(c_.nested.scopes.size(), vec<op_id>());
      for (op_id o : c_.order) by_scope_[c_.nested.scope[o]].push_back(o);
      lower_scope(0);
    }
    for (const auto& each : c_.p.outputs) lower_output(each);
    result_.device.local = static_cast<program&&>(open_.back());
    return static_cast<lowered&&>(result_);
  }

 private:
  const core_program& c_;
  lowering_options options_;
  passes rules_;
  pending_sums sums_;
  lowered result_;
  vec<layout> have_;     ///< by core value: how its local value is laid out
  vec<value_id> local_;  ///< by core value
  vec<int> group_;       ///< only for the mechanical lowering
  vec<value_id> operands_;
  vec<program> open_;         ///< the program being built, and those around it
  vec<vec<op_id>> by_scope_;  ///< only with nested programs
  int scope_ = 0;             ///< the nested program being lowered

  constexpr program& out() { return open_.back(); }
  constexpr layout made(value_id v) const { return sums_.made(v); }
  constexpr layout required(const use& u) const { return sums_.required(u); }

  constexpr tensor_type local_type(value_id v, const layout& l) const {
    return {c_.p.type(v).element, l.local(c_.p.type(v).shape, c_.mesh)};
  }

  constexpr void lower_scope(int scope) {
    const int around = scope_;
    scope_ = scope;
    for (op_id o : by_scope_[scope]) lower_op(o);
    scope_ = around;
  }

  constexpr void lower_op(op_id o) {
    const op_node& n = c_.p.ops[o];
    const value_id v = n.result;
    if (n.def->role == op_role::wire) return;  // with its op
    if (n.def->role == op_role::control) return lower_control(*c_.nested.control_of(o));
    if (n.def->role == op_role::parameter) {
      const layout l = options_.fuse ? made(v) : layout{};  // without fusion arguments are whole
      have_[v] = l;
      result_.device.inputs.push_back(l);
      result_.device.input_types.push_back(c_.true_type(v));
      if (!options_.build) return;
      local_[v] = out().append(*n.def, {}, {}, local_type(v, l));
      out().ops.back().name = out().intern(c_.p.view(n.name));
      out().inputs.push_back(local_[v]);
      if (!options_.fuse && keeps_its_loops(c_, o) && made(v).count > 0) {
        local_[v] = reshard(v, made(v), o);  // loop { yield slice %w }
        have_[v] = made(v);
        local_[v] = reshard(v, layout{}, o);
        have_[v] = layout{};
      }
      return;
    }
    operands_.clear();
    const auto operands = c_.p.operands(o);
    for (int i = 0; i < n.operand_count; ++i) {
      const layout want = sums_.layout_by_loops(o, i);
      int same = 0;  // an earlier operand that is the same value in the same layout
      while (same < i && !(operands[same] == operands[i] && sums_.layout_by_loops(o, same) == want))
        ++same;
      operands_.push_back(same < i ? operands_[same] : reshard(operands[i], want, o));
    }
    for (int r = 0; r < n.result_count; ++r) have_[v + r] = sums_.layout_by_loops(o, -1 - r);
    if (c_.has_halo(o)) {
      lower_with_halos(o);
    } else if (options_.build) {
      if (n.def->identity && n.operand_count == 1) {
        local_[v] = operands_[0];
      } else {
        out().append_op(*n.def, operands_, c_.p.attrs(o));
        append_results(v, n.result_count);
        copy_marks(o);
        add_offset(o);
      }
    }
    if (!options_.fuse) return finish_mechanically(o);
    for (int r = 0; r < n.result_count; ++r)
      if (!sums_.left_to_its_use(v + r)) finish_sum(v + r);
  }
  constexpr void append_results(value_id first, int count) {
    for (value_id v = first; v < first + count; ++v)
      local_[v] = out().append_result(local_type(v, have_[v]));
  }
  constexpr void copy_marks(op_id o) {
    op_node& n = out().ops.back();
    n.origin = c_.p.ops[o].origin;
    n.transposed = c_.p.ops[o].transposed;
  }

  /// An op some of whose loops see more than their own pieces: the operands are extended, one
  /// dimension after the other, and the op's attributes are those of its piece.
  constexpr void lower_with_halos(op_id o) {
    const op_node& n = c_.p.ops[o];
    const auto given = c_.p.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    const vec<halo_loops> halos = c_.halos_of(o, attrs);
    for (const auto& h : halos) {
      for (int k = 0; k < n.operand_count; ++k)
        if (h.cut.slices(k)) extend(o, k, h.cut, h.axes);
    }
    if (!options_.build) return;
    value_id y = operands_[0];
    if (!halos.back().cut.identity) {
      const tensor_type piece = local_type(n.result, have_[n.result]);
      tensor_type made = piece;
      for (const auto& h : halos)
        if (h.cut.made > 0) made.shape[h.cut.result_dim] = h.cut.made;
      y = out().append(*n.def, operands_, attrs, made);
      copy_marks(o);
      for (const auto& h : halos)
        if (h.cut.made > 0)
          y = halo_exchange(out(), n, h.cut.result_dim, h.axes, h.cut.pieces)
                  .kept(y, h.cut, piece.shape[h.cut.result_dim]);
    }
    local_[n.result] = y;
  }
  constexpr void extend(op_id o, int k, const halo_cut& cut, const axis_list& axes) {
    const halo_range& r = cut.ranges[k];
    const value_id v = c_.p.operand(o, k);
    std::int64_t row = 0;  // bytes of one element along the dimension
    if (options_.build) {
      tensor_type t = out().type(operands_[k]);
      t.shape[cut.operand_dims[k]] = 1;
      row = t.bytes();
    }
    const auto reason = r.mirrored(cut.blocks[k], cut.pieces) ? collective_reason::mirrored
                                                              : collective_reason::halo;
    halo_exchange::for_each_message(r, cut.blocks[k], cut.pieces,
                                    [&](std::int64_t shift, std::int64_t elements) {
                                      note(halo_exchange::permutation(shift, r.fill, axes), reason,
                                           v, o, saturating_multiply(elements, row));
                                    });
    if (!options_.build) return;
    value_id fill = -1;
    if (r.fill_operand >= 0 && !is_zero(c_.p.operand(o, r.fill_operand)))
      fill = operands_[r.fill_operand];
    halo_exchange exchange(out(), c_.p.op(o), cut.operand_dims[k], axes, cut.pieces);
    operands_[k] = exchange(operands_[k], r, fill);
  }
  constexpr bool is_zero(value_id v) const {
    v = c_.source_of(v);
    const op_id o = c_.p.producer(v);
    return c_.p.op(o).def->name == op::constant::name && c_.p.attrs(o)[0] == 0;
  }

  /// A piece of an iota lacks its start: where it lies among the pieces.
  constexpr void add_offset(op_id o) {
    const value_id v = c_.p.op(o).result;
    std::int64_t distance = 0;
    axis_list axes;
    for (const auto& l : c_.nest_of(o))
      if (l.factor != any_factor && c_.mesh.size(l.axis) > 1 && c_.map.at(o, l.factor).offset) {
        distance = c_.local(o, l.factor);
        axes.push_back(l.axis);
      }
    if (axes.count == 0) return;
    const tensor_type whole = local_type(v, have_[v]);
    const value_id start = append_shard_start(out(), distance, axes, whole.element);
    copy_marks(o);
    const value_id operands[] = {local_[v], start};
    local_[v] = out().append(def<op::add>, operands, {}, whole);
    copy_marks(o);
  }

  /// An op with nested programs: its operands, inputs, outputs and results lie as its wires do.
  constexpr void lower_control(const flat_program::control_info& k) {
    const auto wanted = [&](const use& u) { return options_.fuse ? required(u) : layout{}; };
    const auto given = [&](value_id v) { return options_.fuse ? made(v) : layout{}; };
    vec<value_id> operands;
    for (const auto& u : k.operands)
      operands.push_back(reshard(c_.p.operand(u.op, u.operand), wanted(u), u.op));
    vec<program> regions;
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      const auto& scope = c_.nested.scopes[s];
      open_.push_back(program{});
      for (value_id v : scope.inputs) {
        have_[v] = given(v);
        if (!options_.build) continue;
        local_[v] = out().append(def<op::parameter>, {}, {}, local_type(v, have_[v]));
        out().inputs.push_back(local_[v]);
      }
      lower_scope(s);
      const int around = scope_;
      scope_ = s;
      for (const auto& u : scope.outputs) {
        const value_id local = reshard(c_.p.operand(u.op, u.operand), wanted(u), u.op);
        out().outputs.push_back({local, {}});
      }
      scope_ = around;
      regions.push_back(static_cast<program&&>(open_.back()));
      open_.pop_back();
    }
    for (value_id v : k.results) have_[v] = given(v);
    if (options_.build) {
      const op_node& n = c_.p.op(k.marker);
      out().append_op(*n.def, operands, c_.p.attrs(k.marker));
      for (value_id v : k.results) local_[v] = out().append_result(local_type(v, have_[v]));
      for (auto& r : regions) out().append_region(static_cast<program&&>(r));
      if (n.name.size > 0) out().ops.back().name = out().intern(c_.p.view(n.name));
      copy_marks(k.marker);
    }
    for (value_id v : k.results)
      if (!sums_.pending(v).empty() && !sums_.left_to_its_use(v)) finish_sum(v);
  }

  /// Axes of a pending sum along which all uses slice the value alike are reduce-scattered, the
  /// others are all-reduced, once.
  constexpr void finish_sum(value_id v) {
    const op_id o = c_.p.producers[v];
    axis_set left = sums_.of(o);
    if (left.empty()) return;
    layout& have = have_[v];
    layout scattered;
    for (bool progress = rules_.to_reduce_scatter; progress;) {
      progress = false;
      for (int i = 0; i < c_.mesh.rank; ++i) {
        const int axis = c_.mesh.order[i];
        if (!left.contains(axis)) continue;
        const int dim = sliced_next(v, have, axis);
        if (dim == no_dim) continue;
        have.push_back(axis, dim);
        scattered.push_back(axis, dim);
        left = left - axis_set::of(axis);
        progress = true;
      }
    }
    const op_id maker = sums_.maker(o);
    const combiner combine = sums_.combine(o);
    if (scattered.count > 0) {
      ++result_.fused.reduce_scatters;
      collective what;
      what.kind = collective::reduce_scatter;
      what.axes = scattered;
      what.combine = combine;
      local_[v] = emit(what, local_[v], v, maker, collective_reason::sum_finished, have);
    }
    if (!left.empty()) all_reduce(v, maker, combine, left);
  }
  constexpr void all_reduce(value_id v, op_id o, combiner combine, axis_set axes) {
    collective what;
    what.kind = collective::all_reduce;
    for (int axis : in_order(axes, c_.mesh)) what.axes.push_back(axis, no_dim);
    what.combine = combine;
    local_[v] = emit(what, local_[v], v, o, collective_reason::sum_finished, have_[v]);
  }

  /// The dimension that all ops that use a value slice along `axis`, right after the slices it
  /// already has; see sliced_by_all_uses in core/match.hpp.
  constexpr int sliced_next(value_id v, const layout& have, int axis) const {
    int dim = no_dim;
    for (const auto& u : c_.uses(v)) {
      const layout want = required(u);
      const int d = want.dim_of(axis);
      if (d < 0 || (dim != no_dim && d != dim)) return no_dim;
      dim = d;
      int i = 0;
      for (const auto& e : want) {
        if (e.dim != d) continue;
        while (i < have.count && have.entries[i].dim != d) ++i;
        if (e.axis == axis) {
          if (i != have.count) return no_dim;
          break;
        }
        if (i == have.count || have.entries[i].axis != e.axis) return no_dim;
        ++i;
      }
    }
    return dim;
  }

  /// Without fusion: what leaves its group of loops is summed and gathered at once.
  constexpr void finish_mechanically(op_id o) {
    for (int r = 0; r < c_.p.op(o).result_count; ++r) {
      const value_id v = c_.p.op(o).result + r;
      if (group_[o] >= 0 && !escapes(c_, group_, v)) continue;
      if (const axis_set left = sums_.of(o); !left.empty())
        all_reduce(v, o, sums_.combine(o), left);
      const value_id whole = reshard(v, layout{}, o);
      if (options_.build) local_[v] = whole;
      have_[v] = layout{};
    }
  }

  /// Appends a collective on a local value of `v`, for op `o`.
  constexpr value_id emit(const collective& what, value_id local, value_id v, op_id o,
                          collective_reason reason, const layout& after) {
    value_id made = -1;
    std::int64_t bytes = 0;
    if (options_.build) {
      bytes = out().type(local).bytes();
      made = append(out(), what, local, local_type(v, after));
      copy_marks(o);
    }
    if (what.communicates()) note(what, reason, v, o, bytes);
    return made;
  }
  /// Counts a collective of op `o` on value `v`.
  constexpr void note(const collective& what, collective_reason reason, value_id v, op_id o,
                      std::int64_t bytes) {
    int tactic = 0;
    for (op_id q : {o, c_.p.producer(v)})
      for (const auto& l : c_.nest_of(q))
        if (l.tactic > tactic) tactic = l.tactic;
    const std::int64_t times = c_.nested.scopes[scope_].trips;
    result_.counts.count(what.kind, times);
    result_.notes.push_back({what.kind, reason, v, o, tactic, bytes, times, what.along()});
  }

  /// Brings a value from the layout it has into the layout an op needs.
  constexpr value_id reshard(value_id v, const layout& want, op_id o) {
    value_id local = local_[v];
    if (have_[v] == want && (rules_.cancel || want.count == 0)) {
      result_.fused.cancelled += want.count > 0;
      return local;
    }
    const int rank = c_.p.type(v).shape.rank;
    const bool kept = partita::reshard(have_[v], want, rank, rules_, [&](const reshard_step& s) {
      const auto reason = s.what.kind == collective::all_gather && s.last
                              ? collective_reason::whole_needed
                              : collective_reason::use_needs_it;
      result_.fused.all_to_alls += s.what.kind == collective::all_to_all;
      local = emit(s.what, local, v, o, reason, s.after);
    });
    result_.fused.cancelled += kept;
    return local;
  }

  constexpr void lower_output(const program_output& each) {
    result_.device.outputs.push_back(have_[each.value]);
    result_.device.output_types.push_back(c_.true_type(each.value));
    if (!options_.build) return;
    program_output local;
    local.value = local_[each.value];
    local.name = out().intern(c_.p.view(each.name));
    out().outputs.push_back(local);
  }
};

/// The notes of a program that a pass has rewritten.
constexpr vec<collective_note> renumbered(const vec<collective_note>& notes,
                                          const renumbering& moved) {
  vec<std::int64_t> bytes;
  for (const auto& each : notes) bytes.push_back(each.bytes);
  for (std::size_t i = 0; i < notes.size(); ++i)
    if (std::int64_t* sum = moved.joined[i] >= 0 ? &bytes[moved.joined[i]] : nullptr)
      *sum = saturating_add(*sum, notes[i].bytes);
  vec<collective_note> list;
  list.reserve(moved.order.size());
  for (int number : moved.order) {
    list.push_back(notes[number]);
    list.back().bytes = bytes[number];
  }
  return list;
}

/// Passes can rewrite only what was fused and built.
constexpr failure check_options(const lowering_options& options) {
  failure f = options.passes.validate();
  if (!options.passes.rewrite() || (options.fuse && options.build)) return f;
  const passes& on = options.passes;
  const std::string_view name = on.combine_below > 0 ? "combine_below"
                                : on.place           ? "place"
                                : on.share_gathers   ? "share_gathers"
                                                     : "memory_bound";
  f.record("C002", "lower: pass ", name, " rewrites a program that is fused and built; ",
           options.fuse ? "build" : "fuse", " is false");
  return f;
}

}  // namespace detail

/// Lowers a program whose loops are settled, and runs the passes. Type preserving: local types
/// times the pieces of their layouts are the types of the source. Cost: linear in ops, independent
/// of the mesh's size.
///
/// Errors    in lowered::error: C001 a size is negative, C002 a pass without what it rewrites, C003
///           the bound of memory is too low
constexpr lowered lower(const core_program& c, lowering_options options = {}) {
  lowered l;
  l.error = detail::check_options(options);
  if (l.error) return l;
  l = detail::lowering(c, options).run();
  if (!options.passes.rewrite()) return l;
  l.error = detail::run_passes(l.device.local, options.passes,
                               [&](const detail::renumbering& moved, pass_report report) {
                                 report.before = l.counts;
                                 report.written_before = as_written(l.notes);
                                 l.notes = detail::renumbered(l.notes, moved);
                                 l.counts = {};
                                 for (const auto& each : l.notes)
                                   l.counts.count(each.kind, each.times);
                                 report.after = l.counts;
                                 report.written_after = as_written(l.notes);
                                 l.passes.push_back(report);
                               });
  return l;
}

/// What each pass that is on does, in their order; the lowering is done again for each of those
/// that are part of it.
constexpr vec<pass_report> pass_reports(const core_program& c, const passes& options = {}) {
  vec<pass_report> list;
  lowering_options step;
  step.passes = {.cancel = false, .to_all_to_all = false, .to_reduce_scatter = false};
  lowered now = lower(c, step);
  const auto add = [&](std::string_view name, int fusion_counts::*changed) {
    pass_report r;
    r.name = name;
    r.before = now.counts;
    r.written_before = as_written(now.notes);
    r.peak_before = live_bytes(now.device.local).peak();
    now = lower(c, step);
    r.changed = now.fused.*changed;
    r.after = now.counts;
    r.written_after = as_written(now.notes);
    r.peak_after = live_bytes(now.device.local).peak();
    list.push_back(r);
  };
  if ((step.passes.cancel = options.cancel)) add("cancel", &fusion_counts::cancelled);
  if ((step.passes.to_all_to_all = options.to_all_to_all))
    add("to_all_to_all", &fusion_counts::all_to_alls);
  if ((step.passes.to_reduce_scatter = options.to_reduce_scatter))
    add("to_reduce_scatter", &fusion_counts::reduce_scatters);
  for (const auto& each : lower(c, {.passes = options}).passes) list.push_back(each);
  return list;
}

}  // namespace partita
