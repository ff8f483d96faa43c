/// Claims about the values that the meshes of a pipeline hold, derived unit by unit.
#pragma once

#include <partita/mpmd/states.hpp>
#include <partita/mpmd/unit_text.hpp>
#include <partita/mpmd/walk_lists.hpp>
#include <partita/prove/given.hpp>
#include <partita/prove/kernel/kernel.hpp>

namespace partita::mpmd_detail {

/// Visits each unit once. Its operands are blocks of values of the program of one microbatch, as
/// its mesh holds them; the kernel derives the claims about its results. A transfer gathers a block
/// on one mesh and slices the value on the other.
///
/// Errors    Q002 inputs, Q014 a value is used, returned or sent in the wrong layout
class value_flow {
 public:
  using shard_claim = prove_detail::shard_claim;

  constexpr value_flow(const pipelined& p, failure& error)
      : one_(p.source),
        p_(p),
        error_(error),
        slots_(static_cast<int>(p.values().types.size())),
        kernel_(one_, on_),
        varies_(one_.types.size(), 0),
        last_(one_.types.size(), -1) {
    find_varying();
  }

  constexpr void run() {
    held_at_.resize(static_cast<std::size_t>(p_.topology.count() * slots_), -1);
    from_.sent.resize(p_.transfers.size(), giver::nobody);
    vec<int> after;
    for (const transfer& t : p_.transfers) after.push_back(t.after < 0 ? 0 : 1 + t.after);
    const grouping following(after, 1 + static_cast<int>(p_.units.size()));
    for (int i = 0; i < one_.input_count() && !error_; ++i) place_input(i);
    for (const int t : following[0]) send(t);
    for (int u = 0; u < static_cast<int>(p_.units.size()) && !error_; ++u) {
      visit(u);
      for (const int t : following[1 + u]) send(t);
    }
    for (std::size_t s = 0; s < assumed_.size() && !error_; ++s) check_state(assumed_[s]);
    for (const pipeline_unit& u : p_.units) {
      from_.left.push_back(vec<int>(u.takes.size(), giver::nobody));
      for (std::size_t k = 0; k < u.takes.size(); ++k)
        if (const value_id next = p_.next_of(u.takes[k].slot); next >= 0)
          from_.left.back()[k] = giver_of(find(u.piece.mesh, next));
    }
    for (int i = 0; i < one_.output_count() && !error_; ++i)
      from_.returned.push_back(giver_of(output(i)));
  }
  constexpr const value_givers& givers() const { return from_; }
  /// True if an output is proved.
  constexpr bool check_output(int i) {
    on_.mesh = p_.meshes[p_.output_mesh[i]];
    const held_value& what = held_[output(i)];
    prove_detail::given_program(one_, on_.mesh, error_)
        .check_layout("output", p_.source.output_name(i), p_.output_layout[i], one_.output_type(i),
                      what.type);
    return one_.output_type(i).shape.has_no_elements() ||
           is_block(after_loop(what.is), one_.outputs[i].value, p_.output_layout[i]);
  }
  /// Where the blocks of source values end, after "; ": the first op that has them as operands, and
  /// whose result is not known to be one.
  constexpr text lost() const {
    if (lost_unit_ < 0) return {};
    const pipeline_unit& u = p_.units[lost_unit_];
    return concat("; the first result that is not a block of a source value is ",
                  prove_detail::op_text(u.device.local, lost_), ", in ", unit_text(u),
                  " on mesh \"", p_.topology.name(u.piece.mesh), '"');
  }

 private:
  /// A value that a mesh holds for other units: on each device, and for each microbatch if it
  /// belongs to an iteration.
  struct held_value {
    tensor_type type;
    layout lies;
    axis_set terms;
    int by = giver::nobody;
    shard_claim is = {};
  };
  /// A state that is assumed to have its source value until each microbatch is shown to leave it
  /// so.
  struct assumed_state {
    int unit = -1;
    const unit_value* as = nullptr;
    tensor_type local;
    value_id next = -1;
  };

  const program& one_;
  const pipelined& p_;
  failure& error_;
  int slots_;
  device_program on_;  ///< its mesh is that of the current unit
  prove_detail::claim_kernel kernel_;
  vec<char> varies_;    ///< by value: true if it differs between microbatches
  vec<value_id> last_;  ///< by value of an iteration: that of the last one, or -1
  vec<value_id> next_;  ///< by number of a state: the value that an iteration leaves for it
  vec<int> held_at_;    ///< by mesh and slot: the held value, or -1
  vec<held_value> held_;
  vec<assumed_state> assumed_;
  value_givers from_;
  int lost_unit_ = -1;
  op_id lost_ = -1;

  constexpr int find(int mesh, value_id slot) const { return held_at_[mesh * slots_ + slot]; }
  constexpr int output(int i) const { return find(p_.output_mesh[i], p_.output_slot[i]); }
  constexpr void hold(int mesh, value_id slot, const held_value& v) {
    held_at_[mesh * slots_ + slot] = static_cast<int>(held_.size());
    held_.push_back(v);
  }
  constexpr int giver_of(int held) const { return held < 0 ? giver::nobody : held_[held].by; }
  constexpr op_id maker(value_id slot) const { return p_.values().producer(slot); }
  constexpr bool is_made_by(value_id slot, const op_def& d) const {
    return p_.values().op(maker(slot)).def->id == d.id;
  }
  constexpr text name_of(value_id slot) const { return text(value_names(p_.values())[slot]); }

  // ---- Values of the source ---------------------------------------------------------------------

  constexpr void find_varying() {
    for (op_id o = 0; o < one_.op_count(); ++o) {
      const op_node& n = one_.op(o);
      const auto is = [&](const op_def& d) { return n.def->id == d.id; };
      bool any = is(def<op::microbatch_slice>) || is(def<op::microbatch_index>) || is_state(n);
      for (const value_id v : one_.operands(o)) any = any || varies_[v] != 0;
      any = any && !is(def<op::microbatch_sum>) && !is(def<op::microbatch_stack>);
      if (is_last_state(n)) last_[kernel_.values().canonical(one_.operand(o, 0))] = n.result;
      if (is_next_state(n)) {
        const auto number = static_cast<std::size_t>(one_.attrs(o)[0]);
        if (next_.size() <= number) next_.resize(number + 1, -1);
        next_[number] = n.result;
      }
      for (int r = 0; r < n.result_count; ++r) varies_[n.result + r] = any && !is_last_state(n);
    }
  }
  constexpr bool varies(const shard_claim& c) const { return c.known() && varies_[c.of] != 0; }
  /// The claim about a value that an op moves into an iteration, or out of it.
  constexpr shard_claim crossed(const op_def& d, std::int64_t attribute, const shard_claim& c,
                                int shift = 0) const {
    const op_id o =
        c.known() ? kernel_.values().first(d, {&attribute, 1}, vec<value_id>{c.of}) : -1;
    shard_claim made = prove_detail::shifted_form(c, shift);
    if (o >= 0) made.of = one_.op(o).result;
    return made;
  }
  constexpr shard_claim after_loop(shard_claim c) const {
    if (varies(c)) c.of = last_[c.of];
    return c;
  }
  /// The block of a value that a layout states.
  constexpr shard_claim block(value_id v, const layout& l) const {
    shard_claim c;
    c.of = kernel_.values().canonical(v);
    c.sharding = prove_detail::without_trivial_axes(l, on_.mesh);
    return c;
  }
  constexpr bool is_block(const shard_claim& c, value_id v, const layout& l) const {
    const shard_claim want = block(v, l);
    return c.of == want.of && prove_detail::has_form(c, want, one_.type(v).shape.rank);
  }
  constexpr static layout with_leading(const layout& slice) {
    layout l;
    for (const auto& e : slice) l.push_back(e.axis, e.dim + 1);
    return l;
  }
  constexpr tensor_type stack_of(const tensor_type& slice) const {
    tensor_type t{slice.element, {}};
    t.shape.push_back(p_.microbatches);
    for (const auto extent : slice.shape) t.shape.push_back(extent);
    return t;
  }

  // ---- Units ------------------------------------------------------------------------------------

  constexpr void place_input(int i) {
    const value_id slot = p_.slot_of[p_.source.inputs[i]];
    const layout& l = p_.input_layout[i];
    tensor_type local = p_.values().type(slot);
    on_.mesh = p_.meshes[p_.input_mesh[i]];
    local.shape = l.local(local.shape, on_.mesh);
    prove_detail::given_program(one_, on_.mesh, error_)
        .check_layout("input", one_.input_name(i), l, one_.input_type(i), local);
    hold(p_.input_mesh[i], slot, {local, l, {}, giver::input, block(one_.inputs[i], l)});
  }
  constexpr void visit(int u) {
    const pipeline_unit& unit = p_.units[u];
    const program& local = unit.device.local;
    on_.mesh = p_.meshes[unit.piece.mesh];
    vec<shard_claim> claims(local.types.size(), shard_claim{});
    from_.taken.push_back(vec<int>(unit.takes.size(), giver::nobody));
    const int plain = static_cast<int>(unit.takes.size() - unit.sums.size());
    for (int k = 0; k < plain && !error_; ++k) claims[local.inputs[k]] = taken(u, k);
    for (op_id o = 0; o < local.op_count(); ++o) {
      kernel_.visit(local, o, claims);
      bool lost = lost_unit_ < 0 && local.op(o).operand_count > 0 && local.op(o).result_count > 0 &&
                  !claims[local.op(o).result].known();
      for (const value_id v : local.operands(o)) lost = lost && claims[v].known();
      if (!lost) continue;
      lost_unit_ = u;
      lost_ = o;
    }
    for (int k = 0; k < local.output_count() && !error_; ++k) give(u, k, claims);
  }
  constexpr void lies_otherwise(int u, const unit_value& v) {
    error_.record("Q014", "prove: ", unit_text(p_.units[u]).view(), " takes %",
                  name_of(v.slot).view(), " in a layout that it does not have on mesh \"",
                  p_.topology.name(p_.units[u].piece.mesh), '"');
  }
  constexpr shard_claim taken(int u, int k) {
    const pipeline_unit& unit = p_.units[u];
    const unit_value& v = unit.takes[k];
    const tensor_type& type = unit.device.local.input_type(k);
    if (is_made_by(v.slot, def<op::microbatch_index>)) {
      if (!unit.inside || type != tensor_type{dtype::i32, {}} || v.lies.count > 0 ||
          unit.device.inputs[k].count > 0 || !v.terms.empty())
        lies_otherwise(u, v);
      shard_claim number;
      for_each_of(one_, def<op::microbatch_index>,
                  [&](op_id o) { number.of = kernel_.values().canonical(one_.op(o).result); });
      return number;
    }
    const bool slice = is_made_by(v.slot, def<op::microbatch_slice>);
    const value_id next = p_.next_of(v.slot);
    const value_id from = slice || next >= 0 ? p_.values().operand(maker(v.slot), 0) : v.slot;
    const int held = find(unit.piece.mesh, from);
    from_.taken[u][k] = giver_of(held);
    if (held < 0)
      return {};  // the list walker reports it, too; results that depend on it are unknown
    const held_value& what = held_[held];
    const bool fits = slice ? unit.inside && p_.repeated[from] == 0 && v.terms.empty() &&
                                  type.shape.rank < max_rank && what.type == stack_of(type) &&
                                  what.lies == with_leading(v.lies) && what.terms.empty()
                            : what.type == type && what.lies == v.lies && what.terms == v.terms;
    if (!fits || unit.device.inputs[k] != v.lies || (next >= 0 && !unit.inside)) {
      lies_otherwise(u, v);
      return {};
    }
    if (!what.is.known()) return {};
    if (next >= 0) return taken_state(u, v, what);
    if (slice) {
      if (prove_detail::axes_along(what.is.sharding, 0).count > 0) return {};
      return crossed(def<op::microbatch_slice>, 0, what.is, 1);
    }
    return unit.inside ? what.is : after_loop(what.is);
  }
  /// Uses induction: the value before the first microbatch is known, and the value that each one
  /// leaves is checked later.
  constexpr shard_claim taken_state(int u, const unit_value& v, const held_value& start) {
    const std::int64_t number = p_.values().attrs(maker(v.slot))[0];
    if (number < 0 || number >= static_cast<std::int64_t>(next_.size()) ||
        next_[static_cast<std::size_t>(number)] < 0)
      return {};
    const shard_claim c = crossed(def<op::microbatch_state>, number, start.is);
    if (!c.known()) return {};
    const shard_claim made = block(c.of, v.lies);
    if (!prove_detail::has_form(c, made, start.type.shape.rank)) return {};
    assumed_.push_back({u, &v, start.type, next_[static_cast<std::size_t>(number)]});
    return made;
  }
  constexpr void check_state(const assumed_state& s) {
    if (p_.microbatches < 2) return;
    const int mesh = p_.units[s.unit].piece.mesh, next = find(mesh, p_.next_of(s.as->slot));
    if (next < 0) return;  // the list walker reports it, too
    on_.mesh = p_.meshes[mesh];
    const held_value& what = held_[next];
    if (what.type != s.local || what.lies != s.as->lies || what.terms != s.as->terms)
      return lies_otherwise(s.unit, *s.as);
    if (!is_block(what.is, s.next, s.as->lies))
      error_.record("Q004", "prove: the state that a microbatch leaves for %",
                    name_of(s.as->slot).view(), " on mesh \"", p_.topology.name(mesh),
                    "\" is not known to be that of the source", lost().view());
  }

  /// Records a result, a slice of a stack, or a sum with the contribution of a call.
  constexpr void give(int u, int k, const vec<shard_claim>& claims) {
    const pipeline_unit& unit = p_.units[u];
    const unit_value& v = unit.gives[k];
    const value_id from = unit.device.local.outputs[k].value;
    const int sums = static_cast<int>(unit.gives.size() - unit.sums.size()),
              stacks = sums - static_cast<int>(unit.stacks.size());
    const bool is_stack = k >= stacks && k < sums;
    held_value made{unit.device.local.type(from), v.lies, v.terms, giver::unit(u), claims[from]};
    if (k < stacks ? unit.inside && p_.repeated[v.slot] == 0 : p_.repeated[v.slot] != 0)
      return error_.record("Q014", "prove: ", unit_text(unit).view(), " returns %",
                           name_of(v.slot).view(),
                           k < stacks ? " in each call, but it does not belong to a microbatch"
                                      : " of all microbatches, but it belongs to each one");
    if (is_stack) {
      made.type = stack_of(made.type);
      made.is = crossed(def<op::microbatch_stack>, 0, made.is, -1);
    } else if (k >= sums) {
      made.is = sum(u, k, claims);
    }
    hold(unit.piece.mesh, v.slot, made);
    const layout& lies = unit.device.outputs[k];
    axis_set shared;
    for (int a = 0; a < on_.mesh.rank; ++a)
      if (!v.terms.contains(a) && v.lies.dim_of(a) < 0) shared.insert(a);
    if (error_ || (v.lies == (is_stack ? with_leading(lies) : lies) &&
                   (!made.is.known() || (made.is.varies() & shared).empty())))
      return;
    error_.record("Q014", "prove: ", unit_text(unit).view(), " returns %", name_of(v.slot).view(),
                  " in a layout that it does not have: it is ", words(made.is));
  }
  constexpr text words(const shard_claim& c) const {
    text out;
    if (!c.known()) return out << "not known";
    out << '%' << value_names(one_)[c.of] << ' ';
    print_layout(out, c.sharding, one_.type(c.of).shape.rank, on_.mesh);
    if (!c.pending.empty()) out << ", to be reduced over ";
    if (!c.pending.empty()) print_axis_set(out, c.pending, on_.mesh);
    return out;
  }
  /// The sum over all microbatches. The slot determines the initial value.
  constexpr shard_claim sum(int u, int k, const vec<shard_claim>& claims) {
    const pipeline_unit& unit = p_.units[u];
    const program& local = unit.device.local;
    const int before =
        k - static_cast<int>(unit.gives.size()) + static_cast<int>(unit.takes.size());
    const unit_value &v = unit.gives[k], &start = unit.takes[before];
    if (start.slot != v.slot || local.input_type(before) != local.output_type(k) ||
        !is_made_by(v.slot, def<op::microbatch_sum>) || start.lies != v.lies ||
        unit.device.inputs[before] != v.lies || start.terms != v.terms) {
      lies_otherwise(u, start);
      return {};
    }
    const std::int64_t attribute = p_.values().attrs(maker(v.slot))[0];
    const auto combine = static_cast<combiner>(attribute);
    const value_id from = local.inputs[before], to = local.outputs[k].value;
    const op_id o = local.producer(to);
    shard_claim added;
    if (claims[to].known()) {  // it does not depend on the value before
      if (!varies(claims[to])) return claims[to];
      if (combine == combiner::stack) added = claims[to];
    } else if (combine != combiner::stack && local.op(o).def->id == combining_op(combine).id) {
      const bool first = local.operand(o, 0) == from;
      if (first || local.operand(o, 1) == from) added = claims[local.operand(o, first ? 1 : 0)];
      if (!added.pending.empty() && added.combine != combine) added = {};
    }
    return crossed(def<op::microbatch_sum>, attribute, added);
  }

  // ---- Transfers --------------------------------------------------------------------------------

  constexpr bool same_sizes(const layout& l, const mesh& a, const mesh& b) const {
    bool same = true;
    for (const auto& e : l) same = same && a.size(e.axis) == b.size(e.axis);
    return same;
  }
  constexpr void send(int number) {
    const transfer& t = p_.transfers[number];
    const value_id slot = p_.slot_of[t.value];
    const int from = find(t.from, slot);
    from_.sent[number] = giver_of(from);
    if (from < 0 || error_) return;
    const transfer_layout& l = p_.sent_as[number];
    const held_value sent = held_[from];
    const mesh &here = p_.meshes[t.from], &there = p_.meshes[t.to];
    const bool same = l.from == l.to && same_sizes(l.from, here, there);
    held_value received{sent.type, l.to, {}, giver::transfer(p_, number), sent.is};
    const shape whole = l.from.global(sent.type.shape, here);
    if (!same) received.type.shape = l.to.local(whole, there);
    if (sent.lies != l.from || !sent.terms.empty() ||
        l.to.global(received.type.shape, there) !=
            (same ? l.to.global(sent.type.shape, there) : whole))
      return error_.record("Q014", "prove: %", name_of(slot).view(), " is sent from mesh \"",
                           p_.topology.name(t.from), "\" to \"", p_.topology.name(t.to),
                           "\" in a layout that it does not have");
    shard_claim& c = received.is;
    if (c.known() && !(moved(collective::all_gather, l.from, here, c) && c.varies().empty() &&
                       moved(collective::all_slice, l.to, there, c)))
      c = {};
    hold(t.to, slot, received);
  }
  static constexpr bool moved(collective::kind_type kind, const layout& axes, const mesh& m,
                              shard_claim& c) {
    collective what;
    what.kind = kind;
    what.axes = axes;
    return prove_detail::collective_rule(what, m).apply(c);
  }
};

}  // namespace partita::mpmd_detail
