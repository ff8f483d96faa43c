/// Lowers a core program to device-local code with collectives.
///
/// Source    PartIR, section 6
#pragma once

#include <cstdint>

#include <partita/core/groups.hpp>
#include <partita/ir/copy.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/pad.hpp>
#include <partita/op/reshape.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/halo.hpp>
#include <partita/spmd/local_layouts.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/spmd/owner_slice.hpp>
#include <partita/spmd/row_lookup.hpp>
#include <partita/spmd/run_passes.hpp>
#include <partita/spmd/shard_prefix.hpp>
#include <partita/spmd/stationary.hpp>
#include <partita/spmd/true_taps.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace spmd_detail {

/// Traverses a program in execution order and builds the device-local program.
///
/// `Rules` decide the layouts (see fused_rules): `boundary_layout` for parameters, and for values
/// that enter or leave a nested program; `finish` emits the collectives after each op.
template <class Rules>
class lowering {
 public:
  /// `more` are additional arguments of the rules.
  template <class... More>
  constexpr lowering(const core_program& c, const passes& options, const More&... more)
      : c_(c), rules_(c, options, more...), repeated_(c) {}

  /// `more` are values outside nested programs that become additional outputs, in their current
  /// layout.
  constexpr lowered run(span<const value_id> more = {}) {
    begin();
    out().ops.reserve(c_.p.ops.size());
    out().types.reserve(c_.p.types.size());
    out().producers.reserve(c_.p.types.size());
    out().operand_list.reserve(c_.p.operand_list.size());
    out().attr_list.reserve(c_.p.attr_list.size());
    if (c_.nested.controls.empty())
      for (op_id o = c_.order.first(); o >= 0; o = c_.order.after(o)) lower_op(o);
    else
      for (op_id o : by_scope_[0]) lower_op(o);
    for (const auto& each : c_.p.outputs) lower_output(each);
    for (value_id v : more) add_output(v, local_[v], local_layout_[v], c_.p.name(v));
    return end();
  }

  // ---- Parts of a program, each lowered to a separate device program ----------------------------

  constexpr void begin() {
    result_ = {};
    result_.device.mesh = c_.mesh;
    borders_.clear();
    received_.clear();
    open_.clear();
    open_.push_back(program{});
    if (!local_.empty()) return;
    local_layout_.resize(c_.p.types.size());
    local_.resize(c_.p.types.size(), -1);
    if (!c_.nested.controls.empty()) find_scopes();
  }
  constexpr lowered end() {
    result_.device.local = static_cast<program&&>(open_.back());
    return static_cast<lowered&&>(result_);
  }
  /// Adds an input: the shard of a value in the given layout.
  constexpr void add_input(value_id v, const layout& l, std::string_view name) {
    local_layout_[v] = l;
    local_[v] = parameter(v, l, name);
  }
  /// Adds an input with the type of a value and returns it.
  constexpr value_id parameter(value_id v, const layout& l, std::string_view name) {
    result_.device.inputs.push_back(l);
    result_.device.input_types.push_back(c_.true_type(v));
    const value_id local =
        append_for(out(), marks(c_.p.producer(v)), def<op::parameter>, {}, {}, local_type(v, l));
    out().ops.back().name = out().intern(name);
    out().inputs.push_back(local);
    return local;
  }
  /// Adds an output: a value, converted to the given layout.
  constexpr void add_output(value_id v, const layout& l, std::string_view name) {
    add_output(v, bring(v, l, c_.p.producer(v), true), l, name);
  }
  constexpr void add_output(value_id v, value_id local, const layout& l, std::string_view name) {
    result_.device.outputs.push_back(l);
    result_.device.output_types.push_back(c_.true_type(v));
    out().outputs.push_back({local, out().intern(name)});
  }
  /// Lowers an op with the current local values of its operands.
  constexpr void lower(op_id o) { lower_op(o); }
  /// Converts a value added by `add_input` to the layout that its producer would give it.
  constexpr void restore_layout(value_id v) {
    const layout made = rules_.layouts.sums.produced_layout(v);
    local_[v] = bring(v, made, c_.p.producer(v));
    local_layout_[v] = made;
  }
  constexpr value_id local_of(value_id v) const { return local_[v]; }
  constexpr program& part() { return out(); }
  constexpr const Rules& rules() const { return rules_; }
  constexpr const partita::mesh& mesh() const { return c_.mesh; }

 private:
  friend Rules;

  constexpr void find_scopes() {
    by_scope_.resize(c_.nested.scopes.size(), vec<op_id>());
    for (op_id o : c_.order) by_scope_[c_.nested.scope[o]].push_back(o);
    control_.resize(c_.p.ops.size(), -1);
    for (int k = 0; k < static_cast<int>(c_.nested.controls.size()); ++k)
      control_[c_.nested.controls[k].marker] = k;
  }

  const core_program& c_;
  Rules rules_;
  repeated_operands repeated_;
  lowered result_;
  vec<layout> local_layout_;  ///< by core value: the layout of its local value
  vec<value_id> local_;       ///< by core value
  vec<value_id> operands_;
  halo_numbers borders_;      ///< borders received so far
  vec<value_id> received_;    ///< by border: the local value
  vec<program> open_;         ///< the program being built, and the programs around it
  vec<vec<op_id>> by_scope_;  ///< by nested program; only if there are any
  vec<int> control_;          ///< by marker: its index in the list; only with nested programs

  constexpr program& out() { return open_.back(); }
  constexpr tensor_type local_type(value_id v, const layout& l) const {
    return {c_.p.type(v).element, l.local(c_.p.type(v).shape, c_.mesh)};
  }

  constexpr void lower_op(op_id o) {
    // Few calls, because `check` runs this in constant evaluation.
    const op_node& n = c_.p.ops[o];
    switch (n.def->role) {
      case op_role::wire:
        return;  // lowered with its op
      case op_role::control:
        return lower_control(c_.nested.controls[control_[o]]);
      case op_role::parameter:
        return lower_parameter(o);
      default:
        break;
    }
    operands_.clear();
    const pending_sums& sums = rules_.layouts.sums;
    const value_id* const values = sums.view().operands + n.operand_begin;
    if (lower_owner_slice(o) || lower_row_lookup(o)) return;
    const bool repeats = may_repeat(values, n.operand_count);
    for (int i = 0; i < n.operand_count; ++i) {
      const layout want = sums.required_layout({o, i});
      const int same = repeats ? repeated_.before(o, i, want, sums) : -1;
      operands_.push_back(same >= 0 ? operands_[same] : bring(values[i], want, o));
    }
    const value_id v = n.result;
    for (int r = 0; r < n.result_count; ++r) local_layout_[v + r] = sums.produced_layout(v + r);
    if (c_.has_halo(o)) {
      lower_with_halos(o);
    } else if (n.def->identity && n.operand_count == 1 && !n.def->chooses_memory) {
      local_[v] = operands_[0];
    } else if (const true_taps taps(c_, o); taps.any()) {
      local_[v] = taps.append(out(), operands_, c_.p.attrs(o), local_type(v, local_layout_[v]));
    } else if (lower_row_update(o)) {
      return;
    } else if (!lower_located(o)) {
      append_copy(open_.back(), c_.p, o, operands_, c_.p.attrs(o));
      for (value_id each = v; each < v + n.result_count; ++each) append_local(each);
      if (sums.view().nests[o].count > 0) {
        add_offset(o);
        add_shard_prefix(o);
        reduce_again(o);
      }
    }
    for (int r = 0; r < n.result_count; ++r) rules_.finish(*this, v + r);
  }
  /// Lowers a slice whose elements are sent by their owners; returns false for other ops.
  constexpr bool lower_owner_slice(op_id o) {
    const op_node& n = c_.p.ops[o];
    if (n.def->id != def<op::slice>.id) return false;
    const value_id x = c_.p.operand(o, 0), v = n.result;
    const layout along =
        owner_slice_axes(c_, o, local_layout_[x], rules_.layouts.sums.required_layout({o, 0}));
    if (along.count == 0) return false;
    local_layout_[v] = rules_.layouts.sums.produced_layout(v);
    local_[v] = owner_slice(out(), c_, o, along)(local_[x]);
    const collective sum = owner_slice_sum(c_, o, along);
    const std::int64_t bytes = out().type(local_[v]).bytes();
    local_[v] = append(out(), sum, local_[v], local_type(v, local_layout_[v]));
    out().ops.back().marks = n.marks;
    note(sum, collective_reason::owner_slice, x, o, bytes);
    rules_.finish(*this, v);
    return true;
  }
  /// Lowers a gather whose table stays in place; returns false for other ops.
  constexpr bool lower_row_lookup(op_id o) {
    const op_node& n = c_.p.ops[o];
    if (!Rules::shares || n.def->id != def<op::gather>.id) return false;
    const row_lookup found =
        find_row_lookup(c_, o, rules_.layouts, [&](value_id x) { return local_layout_[x]; });
    if (!found) return false;
    const value_id table = c_.p.operand(o, 0), indices = c_.p.operand(o, 1), v = n.result;
    operands_.push_back(local_[table]);
    operands_.push_back(send_for(o, found.indices, local_[indices], indices));
    lower_rows(o, found.factor, found.rows, found.result.axes, local_type(v, found.op_layout));
    local_[v] = send_for(o, found.result, local_[v], v);
    local_layout_[v] = rules_.layouts.sums.produced_layout(v);
    rules_.finish(*this, v);
    return true;
  }
  /// Lowers a scatter whose rows stay in place; returns false for other ops.
  constexpr bool lower_row_update(op_id o) {
    const op_node& n = c_.p.ops[o];
    if (!Rules::shares || n.def->id != def<op::scatter>.id) return false;
    const row_update found = find_row_update(c_, o, rules_.layouts);
    if (!found) return false;
    for (int k = 0; k < 2; ++k)
      operands_[k] = send_for(o, found.operands[k], operands_[k], c_.p.operand(o, k));
    local_layout_[n.result] = found.op_layout;
    lower_rows(o, found.factor, found.rows, found.operands[0].axes,
               local_type(n.result, found.op_layout));
    return true;
  }
  /// Appends a collective that replaces one of a larger value.
  constexpr value_id send_for(op_id o, const collective& what, value_id local, value_id of) {
    const tensor_type from = out().type(local);
    const value_id made =
        append(out(), what, local, {from.element, what.after(from.shape, c_.mesh)});
    out().ops.back().marks = marks(o);
    note(what, collective_reason::stationary_rows, of, o, from.bytes());
    return made;
  }
  /// Lowers an op on the rows that this device owns, sharded along these axes.
  constexpr void lower_rows(op_id o, int factor, std::int64_t count, const layout& along,
                            const tensor_type& made) {
    located_loops rows;
    for (const auto& e : along) rows.axes.push_back(e.axis);
    std::int64_t pieces = 1;
    for (int axis : rows.axes) pieces *= c_.mesh.size(axis);
    rows.piece = {factor, count, count / pieces};
    vec<located_loops> cut;
    cut.push_back(rows);
    vec<tensor_type> results;
    results.push_back(made);
    lower_iteration(o, cut, results);
  }
  constexpr void lower_parameter(op_id o) {
    const value_id v = c_.p.ops[o].result;
    local_layout_[v] = rules_.boundary_layout(v);
    result_.device.inputs.push_back(local_layout_[v]);
    result_.device.input_types.push_back(c_.true_type(v));
    append_copy(out(), c_.p, o, {}, {});
    append_local(v);
    out().inputs.push_back(local_[v]);
    rules_.after_parameter(*this, o);
  }
  /// Appends the next result of the op appended last: the shard of `v`.
  constexpr void append_local(value_id v) {
    program& to = open_.back();
    const layout& have = local_layout_[v];
    local_[v] = to.append_result(c_.p.types[v]);
    if (have.count > 0) have.slice(to.types.back().shape, c_.mesh);
  }
  constexpr const op_marks& marks(op_id o) const { return c_.p.ops[o].marks; }

  /// Lowers an op with halos: extends the operands, one dimension at a time, and uses the
  /// attributes of one piece.
  constexpr void lower_with_halos(op_id o) {
    const op_node& n = c_.p.ops[o];
    const auto given = c_.p.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    const vec<halo_loops> halos = c_.halos_of(o, attrs);
    int extended[max_halo_operands] = {-1, -1};
    for (const auto& h : halos)
      for (int k = 0; k < n.operand_count; ++k)
        if (h.cut.slices(k)) extend(o, k, h, extended[k]);
    value_id y = operands_[0];
    if (!halos.back().cut.identity) {
      const tensor_type piece = local_type(n.result, local_layout_[n.result]);
      tensor_type made = piece;
      for (const auto& h : halos)
        if (h.cut.made > 0) made.shape[h.cut.result_dim] = h.cut.made;
      y = true_taps(c_, o).append(out(), operands_, attrs, made);
      for (const auto& h : halos)
        if (h.cut.made > 0)
          y = halo_exchange(out(), n, h.cut.result_dim, h.axes, h.cut.pieces)
                  .kept(y, h.cut, piece.shape[h.cut.result_dim]);
    }
    local_[n.result] = y;
  }
  /// Extends an operand along one dimension. `of` is the number of the extended operand, initially
  /// -1. Borders that an earlier op received are reused.
  constexpr void extend(op_id o, int k, const halo_loops& h, int& of) {
    const halo_cut& cut = h.cut;
    const halo_range& r = cut.ranges[k];
    const value_id v = c_.p.operand(o, k);
    if (of < 0) of = borders_.whole(v, rules_.layouts.sums.required_layout({o, k}));
    const auto reason = r.mirrored(cut.blocks[k], cut.pieces) ? collective_reason::mirrored
                                                              : collective_reason::halo;
    halo_exchange exchange(out(), c_.p.op(o), cut.operand_dims[k], h.axes, cut.pieces);
    const value_id filler = halo_fill(c_, o, r);
    operands_[k] = exchange(
        operands_[k], r, filler < 0 ? -1 : operands_[r.fill_operand],
        c_.true_shape(v)[cut.operand_dims[k]],
        [&](std::int64_t shift, std::int64_t from, std::int64_t elements, const auto& make) {
          value_id& received = received_by(borders_.border(of, h, k, shift, from, elements));
          if (received >= 0) return received;
          received = make();
          note(halo_exchange::permutation(shift, r.fill, h.axes), reason, v, o,
               out().type(received).bytes());
          return received;
        });
    of = borders_.extended(of, h, k, filler);
  }
  constexpr value_id& received_by(int border) {
    if (received_.size() < static_cast<std::size_t>(borders_.count()))
      received_.resize(static_cast<std::size_t>(borders_.count()), -1);
    return received_[border];
  }
  /// Lowers an op whose loops need the offsets of their pieces; returns false for other ops.
  constexpr bool lower_located(op_id o) {
    if (rules_.layouts.sums.view().nests[o].count == 0 && !c_.padded()) return false;
    const vec<located_loops> all = c_.located_of(o);
    if (all.empty()) return false;
    const op_node& n = c_.p.ops[o];
    vec<tensor_type> results;
    for (int r = 0; r < n.result_count; ++r)
      results.push_back(local_type(n.result + r, local_layout_[n.result + r]));
    vec<located_loops> cut;
    for (const located_loops& each : all) {
      if (each.axes.count > 0)
        cut.push_back(each);
      else if (c_.map.sees_no_padding(o, each.piece.factor))
        trim(o, each.piece, results);
    }
    if (cut.empty())
      local_[n.result] = append_for(out(), n.marks, *n.def, operands_, c_.p.attrs(o), results[0]);
    else
      lower_iteration(o, cut, results);
    for (int r = 0; r < n.result_count; ++r) pad_to(n.result + r, n.marks);
    return true;
  }
  /// Restricts a dimension that is padded but not sharded to its true size.
  constexpr void trim(op_id o, const located_piece& whole, vec<tensor_type>& results) {
    const op_node& n = c_.p.ops[o];
    const factor& f = c_.map.at(o, whole.factor);
    const axis_list axes;
    for (int i = 0; i < n.operand_count; ++i)
      if (const int d = c_.map.operand_dim(f, i); d != no_dim)
        operands_[i] = halo_exchange(out(), n, d, axes, 1).part(operands_[i], 0, whole.size);
    for (int r = 0; r < n.result_count; ++r)
      if (const int d = c_.map.result_dim(f, r); d != no_dim) results[r].shape[d] = whole.size;
  }
  /// Pads a value that was produced in its true size with zeros.
  constexpr void pad_to(value_id v, const op_marks& marks) {
    const tensor_type from = out().type(local_[v]), to = local_type(v, local_layout_[v]);
    if (from == to) return;
    const auto rank = static_cast<std::size_t>(to.shape.rank);
    std::int64_t amounts[3 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d)
      amounts[rank + d] = to.shape[static_cast<int>(d)] - from.shape[static_cast<int>(d)];
    const std::int64_t zero[] = {0};
    const value_id nothing =
        append_for(out(), marks, def<op::constant>, {}, zero, {to.element, {}});
    const value_id operands[] = {local_[v], nothing};
    local_[v] = append_for(out(), marks, def<op::pad>, operands, {amounts, 3 * rank}, to);
  }
  constexpr void lower_iteration(op_id o, const vec<located_loops>& list,
                                 const vec<tensor_type>& results) {
    const op_node& n = c_.p.ops[o];
    vec<located_piece> pieces;
    for (const located_loops& each : list) pieces.push_back(each.piece);
    vec<tensor_type> operands;
    for (value_id v : operands_) operands.push_back(out().type(v));
    const located_work work = locate(*n.def, c_.map, o, operands, results, c_.p.attrs(o), pieces);
    result_.error.record(work.p.error);
    program_copier copy(work.p, out());
    const int given = n.operand_count;
    for (int i = 0; i < work.p.input_count(); ++i) {
      value_id& to = copy.renamed[work.p.inputs[i]];
      if (i < given) {
        to = operands_[i];
        continue;
      }
      const int piece = work.starts[i - given].piece;
      to = append_shard_start(out(), pieces[piece].block, list[piece].axes,
                              work.p.input_type(i).element);
      out().ops.back().marks = n.marks;
    }
    for (op_id each = 0; each < work.p.op_count(); ++each) {
      if (work.p.is(each, op_role::parameter)) continue;
      copy.op(each);
      out().ops.back().marks = n.marks;
    }
    for (int r = 0; r < n.result_count; ++r)
      local_[n.result + r] = copy.renamed[work.p.outputs[r].value];
  }
  /// Gathers or exchanges the results of an op on shards and applies the op to them again.
  constexpr void reduce_again(op_id o) {
    if (!has_again(c_, o)) return;
    again_exchange exchange;
    if constexpr (Rules::shares)
      exchange = rules_.layouts.exchange_again(o);
    else
      exchange.first = gather_again(c_, o);
    const collective& what = exchange.first;
    const op_node& n = c_.p.ops[o];
    const shape one =
        c_.map.again_shape(o, out().type(operands_[0]).shape, out().type(local_[n.result]).shape);
    const shape all = what.after(one, c_.mesh);
    operands_.clear();
    for (int r = 0; r < n.result_count; ++r) {
      const value_id v = n.result + r;
      const dtype t = c_.p.type(v).element;
      value_id x = local_[v];
      if (const value_id made[] = {x}; out().type(x).shape != one)
        x = append_for(out(), n.marks, def<op::reshape>, made, {}, {t, one});
      operands_.push_back(append(out(), what, x, {t, all}));
      out().ops.back().marks = n.marks;
      note(what, collective_reason::again, v, o, out().type(x).bytes());
    }
    append_copy(out(), c_.p, o, operands_, c_.p.attrs(o));
    if (exchange.shares()) return append_shares(o, exchange);
    for (int r = 0; r < n.result_count; ++r) append_local(n.result + r);
  }
  /// Appends the results of an op if each device produced only its part of them.
  constexpr void append_shares(op_id o, const again_exchange& exchange) {
    const op_node& n = c_.p.ops[o];
    for (value_id v = n.result; v < n.result + n.result_count; ++v) {
      layout share = local_layout_[v];
      for (const auto& e : exchange.last.axes) share.push_back(e.axis, e.dim);
      local_[v] = out().append_result(local_type(v, share));
    }
  }
  /// Adds the combined totals of the preceding shards, which are gathered.
  constexpr void add_shard_prefix(op_id o) {
    const collective what = gather_totals(c_, o);
    if (what.axes.count == 0) return;
    const op_node& n = c_.p.ops[o];
    const factor* f = c_.map.factors_of(o);
    while (f->carry == combiner::stack || f->result_dim != what.axes[0].dim) ++f;
    local_[n.result] = append_shard_prefix(
        out(), n, *f, what, c_.mesh, operands_[0], local_[n.result],
        [&](std::int64_t bytes) { note(what, collective_reason::carry, n.result, o, bytes); });
  }
  /// Adds the offset of the shard to a sharded iota.
  constexpr void add_offset(op_id o) {
    const value_id v = c_.p.op(o).result;
    std::int64_t distance = 0;
    axis_list axes;
    const nest n = c_.nest_of(o);
    const factor* const factors = c_.map.factors_of(o);
    for (int i = 0; i < n.count; ++i) {
      const loop& l = n.loops[i];
      if (l.factor == any_factor || !factors[l.factor].offset || c_.mesh.size(l.axis) == 1)
        continue;
      distance = c_.local(o, l.factor);
      axes.push_back(l.axis);
    }
    if (axes.count == 0) return;
    const tensor_type whole = local_type(v, local_layout_[v]);
    const value_id start = append_shard_start(out(), distance, axes, whole.element);
    out().ops.back().marks = marks(o);
    const value_id operands[] = {local_[v], start};
    local_[v] = append_for(out(), marks(o), def<op::add>, operands, {}, whole);
  }

  /// Lowers an op with nested programs: its operands, inputs, outputs and results get the layouts
  /// of its wires.
  constexpr void lower_control(const flat_program::control_info& k) {
    const auto enter = [&](const use& u) {
      return bring(c_.p.operand(u.op, u.operand), rules_.boundary_layout(u), u.op);
    };
    vec<value_id> operands;
    for (const auto& u : k.operands) operands.push_back(enter(u));
    vec<program> regions;
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      const auto& scope = c_.nested.scopes[s];
      open_.push_back(program{});
      for (value_id v : scope.inputs) {
        local_layout_[v] = rules_.boundary_layout(v);
        local_[v] = append_for(out(), marks(k.marker), def<op::parameter>, {}, {},
                               local_type(v, local_layout_[v]));
        out().inputs.push_back(local_[v]);
      }
      for (op_id o : by_scope_[s]) lower_op(o);
      for (const auto& u : scope.outputs) {
        const value_id local = enter(u);
        out().outputs.push_back({local, {}});
      }
      regions.push_back(static_cast<program&&>(open_.back()));
      open_.pop_back();
    }
    append_copy(out(), c_.p, k.marker, operands, c_.p.attrs(k.marker));
    for (value_id v : k.results) {
      local_layout_[v] = rules_.boundary_layout(v);
      append_local(v);
    }
    for (auto& r : regions) out().append_region(static_cast<program&&>(r));
    for (value_id v : k.results) rules_.finish(*this, v);
  }

  constexpr void lower_output(const program_output& each) {
    result_.device.outputs.push_back(local_layout_[each.value]);
    result_.device.output_types.push_back(c_.true_type(each.value));
    const text_ref name = out().intern(c_.p.view(each.name));
    out().outputs.push_back({local_[each.value], name});
  }

  /// Appends a collective on a local value of `v`, on behalf of op `o`, and returns its result.
  constexpr value_id emit(const collective& what, value_id local, value_id v, op_id o,
                          collective_reason reason, const layout& after) {
    const std::int64_t bytes = out().type(local).bytes();
    const value_id made = append(out(), what, local, local_type(v, after));
    out().ops.back().marks = marks(o);
    if (what.communicates()) note(what, reason, v, o, bytes);
    return made;
  }
  constexpr void note(const collective& what, collective_reason reason, value_id v, op_id o,
                      std::int64_t bytes) {
    int tactic = 0;
    for (op_id q : {o, c_.p.producer(v)})
      for (const auto& l : c_.nest_of(q))
        if (l.tactic > tactic) tactic = l.tactic;
    const std::int64_t times = c_.nested.scopes[c_.nested.value_scope[v]].trips;
    result_.counts.count(what.kind, times);
    result_.notes.push_back({what.kind, reason, v, o, tactic, bytes, times, what.along()});
  }
  /// Finishes a sum by a collective, whose result becomes the local value.
  constexpr void finish_by(const collective& what, value_id v, op_id o, const layout& after) {
    const auto reason = what.kind == collective::all_gather ? collective_reason::again
                                                            : collective_reason::sum_finished;
    local_[v] = emit(what, local_[v], v, o, reason, after);
  }
  /// Converts a value from its current layout to the layout that op `o` needs. `gives`: `o`
  /// produces the value and must deliver it in that layout.
  constexpr value_id bring(value_id v, const layout& want, op_id o, bool gives = false) {
    value_id local = local_[v];
    if (rules_.layouts.stays(local_layout_[v], want)) {
      result_.fused.cancelled += want.count > 0;
      return local;
    }
    const bool kept = rules_.layouts.bring(v, local_layout_[v], want, [&](const reshard_step& s) {
      const auto reason = gives ? collective_reason::receiver_needs_it
                          : s.what.kind == collective::all_gather && s.last
                              ? collective_reason::whole_needed
                              : collective_reason::use_needs_it;
      result_.fused.all_to_alls += s.what.kind == collective::all_to_all;
      local = emit(s.what, local, v, o, reason, s.after);
    });
    result_.fused.cancelled += kept;
    return local;
  }
};

/// Rules of the fused lowering: slices are fused with gathers and reductions; arguments and results
/// have local types.
struct fused_rules {
  /// True if `finish` may leave a result divided among devices.
  static constexpr bool shares = true;
  local_layouts layouts;

  constexpr fused_rules(const core_program& c, const passes& options) : layouts(c, options) {
    layouts.sums.find(true);
  }
  /// `sent`: see pending_sums.
  constexpr fused_rules(const core_program& c, const passes& options, const vec<char>& sent)
      : layouts(c, options) {
    layouts.sums.sent = sent;
    layouts.sums.find(true);
  }

  /// The layout of a value after its producer, with its sum finished.
  constexpr layout finished_layout(value_id v) const {
    return layouts.finish(v, layouts.sums.produced_layout(v),
                          [](const collective&, const layout&) {});
  }
  constexpr layout boundary_layout(value_id v) const { return layouts.sums.produced_layout(v); }
  constexpr layout boundary_layout(const use& u) const { return layouts.sums.required_layout(u); }
  template <class Lowering>
  constexpr void after_parameter(Lowering&, op_id) const {}
  template <class Lowering>
  constexpr void finish(Lowering& l, value_id v) const {
    if (layouts.finished(v)) return;
    const op_id maker = layouts.sums.maker(l.c_.p.producer(v));
    l.local_layout_[v] =
        layouts.finish(v, l.local_layout_[v], [&](const collective& what, const layout& after) {
          l.result_.fused.reduce_scatters += what.kind == collective::reduce_scatter;
          l.finish_by(what, v, maker, after);
        });
  }
};

/// Rules of the mechanical lowering, as in section 6.1, op by op: arguments, results, and values
/// that enter or leave a nested program are global. Values that leave their group of loops are
/// summed and gathered at once.
struct mechanical_rules {
  static constexpr bool shares = false;
  local_layouts layouts;
  vec<int> group;

  constexpr mechanical_rules(const core_program& c, const passes&)
      : layouts(c, passes{}), group(loop_groups(c)) {
    layouts.sums.find(false);
  }

  constexpr layout boundary_layout(value_id) const { return {}; }
  constexpr layout boundary_layout(const use&) const { return {}; }
  /// loop { yield slice %w }
  template <class Lowering>
  constexpr void after_parameter(Lowering& l, op_id o) const {
    const value_id v = l.c_.p.op(o).result;
    if (!keeps_its_loops(l.c_, o) || layouts.sums.produced_layout(v).count == 0) return;
    for (const layout& want : {layouts.sums.produced_layout(v), layout{}}) {
      l.local_[v] = l.bring(v, want, o);
      l.local_layout_[v] = want;
    }
  }
  template <class Lowering>
  constexpr void finish(Lowering& l, value_id v) const {
    const op_id o = l.c_.p.producer(v);
    if (group[o] >= 0 && !escapes(l.c_, group, v)) return;
    if (const axis_set left = layouts.sums.of(o); !left.empty())
      l.finish_by(layouts.all_reduce(layouts.sums.combine(o), left), v, o, l.local_layout_[v]);
    l.local_[v] = l.bring(v, {}, o);
    l.local_layout_[v] = {};
  }
};

template <class Rules, class Core>
constexpr lowered lowered_by(const Core& c, const passes& options, span<const value_id> more = {}) {
  return lowering<Rules>(c, options).run(more);
}

/// Checks that passes which rewrite the program have a fused program. (Combining and sharing among
/// alike uses are silently off without fusion.)
constexpr failure check_options(const lowering_options& options) {
  failure f = options.passes.validate();
  if (!options.passes.rewrite_more() || options.fuse) return f;
  const passes& on = options.passes;
  const std::string_view name = on.stationary_above > 0 ? "stationary_above"
                                : on.place              ? "place"
                                : on.memory_bound != 0  ? "memory_bound"
                                                        : "share_gathers";
  f.record("C002", "lower: pass ", name, " needs a fused program; fuse is false");
  return f;
}

/// Runs the passes that rewrite a lowered program, and updates its notes and counts.
///
/// Reports combining only if it combined something. If sharing among alike uses is the only other
/// pass that is on, it runs, and is reported, only if there are alike uses.
constexpr void run_passes(lowered& l, const program& source, const passes& on) {
  const auto done = [&](const renumbering& moved, pass_report report) {
    report.before = l.counts;
    report.written_before = as_written(l.notes);
    report.launched_before = launched(l.notes);
    l.notes = renumbered(l.notes, moved);
    l.counts = counted(l.notes);
    report.after = l.counts;
    report.written_after = as_written(l.notes);
    report.launched_after = launched(l.notes);
    l.passes.push_back(report);
  };
  if (on.stationary_above > 0) keep_stationary(l, source, on);
  if (on.combine_below > 0 && l.counts.all_reduce > 1)
    run_combining(l.device.local, on.combine_below, done);
  if (on.rewrite_more() || has_shared_pair(l.device.local, on.shared()))
    l.error = run_passes(l.device.local, l.device.mesh, on, done);
}

}  // namespace spmd_detail

/// Lowers a program whose loops are final, and runs the passes. Local types multiplied by the
/// number of shards of their layouts are the types of the source.
///
/// `more` are values that become additional outputs, in their current layout.
///
/// It is a template so that including this header does not compile the lowering.
///
/// Cost      linear in ops, independent of the mesh's size
/// Errors    in lowered::error: C001 a size is negative, C002 a pass without `fuse`, C003 the
///           memory bound is too low
template <class Core>
constexpr lowered lower(const Core& c, const lowering_options& options = {},
                        span<const value_id> more = {}) {
  lowered l;
  l.error = spmd_detail::check_options(options);
  if (l.error) return l;
  if (options.fuse)  // GCC 12 destroys the result of `?:` before it is assigned
    l = spmd_detail::lowered_by<spmd_detail::fused_rules>(c, options.passes, more);
  else
    l = spmd_detail::lowered_by<spmd_detail::mechanical_rules>(c, options.passes, more);
  l.device.local.interface = c.p.interface;
  if (!options.fuse) return l;
  spmd_detail::run_passes(l, c.p, options.passes);
  return l;
}

}  // namespace partita
