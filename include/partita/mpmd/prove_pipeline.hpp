/// `prove` for pipelines: checks that the units of all meshes, and the values they send, compute
/// the source.
///
/// Each unit is visited once, with the microbatch number as a coordinate, like that of a device
/// along an axis. A value on the mesh that computes it equals the value where it is used. A
/// transfer gathers a value on one mesh and slices it on the other. Sums over microbatches are
/// reduced over the coordinate of the microbatch. (For a source with its own loop over
/// microbatches, see source_iteration.) All claims are thus in terms of the source, whatever
/// program the units were cut from. list_walker checks that calls use these values, and when they
/// are available.
#pragma once

#include <optional>

#include <partita/mpmd/check_joint.hpp>
#include <partita/mpmd/given_pipeline.hpp>
#include <partita/mpmd/prove_loop.hpp>
#include <partita/mpmd/prove_steps.hpp>
#include <partita/mpmd/walk_lists.hpp>
#include <partita/prove/prove.hpp>

namespace partita {

namespace mpmd_detail {

/// Proves a pipeline; see the first comment of this file.
class pipeline_checker {
 public:
  constexpr pipeline_checker(const program& source, const pipelined& p, std::int64_t most_steps)
      : opened_(opened(source, p)),
        source_(opened_.loop >= 0 ? opened_.p : source),
        p_(p),
        work_(mesh_, most_steps),
        front_(work_, source_),
        slots_(static_cast<int>(p.values().types.size())) {}

  constexpr verdict run() {
    v_.error = given_pipeline(source_, p_).check();
    if (!v_.error) know();
    if (work_.stopped())
      v_.error.record("Q008", prove_detail::describe_stop(work_),
                      work_.defining ? text() : in_unit(at_));
    if (!v_.error) joint_checker(p_, v_.error).run();
    if (!v_.error) list_walker(p_, from_, v_.error).run();
    for (int i = 0; i < source_.output_count() && !v_.error; ++i) check_output(i);
    v_.proved = !v_.error;
    return v_;
  }

 private:
  using claim_list = prove_detail::claim_list;

  /// A value that a mesh holds for other units: on each device, and for each microbatch if it
  /// belongs to an iteration.
  struct held_value {
    tensor_type type;
    layout lies;
    axis_set terms;
    int by = giver::nobody;
    int sent = -1;  ///< for a received value: the value that was sent
  };

  /// A state that is assumed to have its source value until each microbatch is shown to leave it
  /// so.
  struct assumed_state {
    int unit = -1, mesh = -1, number = -1;
    unit_value as;
    tensor_type local;
  };
  static constexpr opened_source opened(const program& source, const pipelined& p) {
    const op_id o = p.own_loop < 0 ? -1 : find_loop(source, p.own_loop, p.microbatches);
    if (o < 0) return {};
    return summand_splitter(source, o).run();
  }

  opened_source opened_;  ///< for a source with its own loop
  const program& source_;
  const pipelined& p_;
  mesh mesh_;  ///< the mesh of the current unit
  prove_detail::workspace work_;
  prove_detail::source_interface front_;
  std::optional<source_iteration> own_;  ///< an iteration of that loop
  vec<assumed_state> assumed_;
  verdict v_;
  int slots_;
  vec<int> held_at_;  ///< by mesh and slot: the held value, or -1
  vec<held_value> held_;
  claim_list known_;  ///< claims about each held value
  value_givers from_;
  vec<claim_list> inside_;     ///< by unit: claims about the values of its program
  vec<vec<int>> taken_;        ///< by unit and operand: the held value, or -1
  vec<int> first_given_;       ///< by unit: the first of its held results; others follow
  int at_ = 0, lost_in_ = -1;  ///< the current unit, and the one with the first lost op

  constexpr int find(int mesh, value_id slot) const { return held_at_[mesh * slots_ + slot]; }
  constexpr int hold(int mesh, value_id slot, const held_value& v) {
    held_.push_back(v);
    known_.first.push_back(-1);
    return held_at_[mesh * slots_ + slot] = static_cast<int>(held_.size()) - 1;
  }
  constexpr int giver_of(int held) const { return held < 0 ? giver::nobody : held_[held].by; }
  constexpr op_id maker(value_id slot) const { return p_.values().producer(slot); }
  constexpr bool is_slice(value_id slot) const {
    return p_.values().op(maker(slot)).def->id == def<op::microbatch_slice>.id;
  }
  constexpr bool is_index(value_id slot) const {
    return p_.values().op(maker(slot)).def->id == def<op::microbatch_index>.id;
  }

  constexpr void know() {
    held_at_.resize(static_cast<std::size_t>(p_.topology.count() * slots_), -1);
    from_.sent.resize(p_.transfers.size(), giver::nobody);
    vec<int> after;
    for (const transfer& t : p_.transfers) after.push_back(t.after < 0 ? 0 : 1 + t.after);
    const grouping behind(after, 1 + static_cast<int>(p_.units.size()));
    work_.all.terms.reserve(source_.types.size());
    front_.enter();
    for (int i = 0; i < source_.input_count() && !v_.error; ++i) place_input(i);
    front_.define();
    if (opened_.loop >= 0) own_.emplace(work_, front_, opened_);
    if (own_ && !own_->find()) own_.reset();
    for (const int t : behind[0]) send(t);
    for (int u = 0; u < static_cast<int>(p_.units.size()) && !v_.error && !work_.stopped(); ++u) {
      lift(u);
      for (const int t : behind[1 + u]) send(t);
    }
    for (const assumed_state& s : assumed_)
      if (!v_.error && !work_.stopped()) check_state(s);
    find_later();
    for (int i = 0; i < source_.output_count() && !v_.error; ++i)
      from_.returned.push_back(giver_of(output(i)));
  }
  /// Finds the units that compute the next values of states.
  constexpr void find_later() {
    for (const pipeline_unit& u : p_.units) {
      from_.left.push_back(vec<int>(u.takes.size(), giver::nobody));
      for (std::size_t k = 0; k < u.takes.size(); ++k)
        if (const value_id next = p_.next_of(u.takes[k].slot); next >= 0)
          from_.left.back()[k] = giver_of(find(u.piece.mesh, next));
    }
  }
  constexpr void be_on(int m) { mesh_ = p_.meshes[m]; }
  constexpr void place_input(int i) {
    const value_id slot = p_.slot_of[p_.source.inputs[i]];
    const layout& l = p_.input_layout[i];
    tensor_type local = p_.values().type(slot);
    be_on(p_.input_mesh[i]);
    local.shape = l.local(local.shape, mesh_);
    prove_detail::given_program(p_.source, mesh_, v_.error)
        .check_layout("input", source_.input_name(i), l, source_.input_type(i), local);
    if (v_.error) return;
    front_.give(i, l, local.shape, known_,
                hold(p_.input_mesh[i], slot, {local, l, {}, giver::input}));
  }

  // ---- Units ------------------------------------------------------------------------------------

  constexpr void lift(int u) {
    const pipeline_unit& unit = p_.units[u];
    const program& local = unit.device.local;
    be_on(unit.piece.mesh);
    at_ = u;
    prove_detail::iterations each(work_, unit.inside ? p_.microbatches : 1);
    claim_list inside(local);
    from_.taken.push_back(vec<int>(unit.takes.size(), giver::nobody));
    taken_.push_back(vec<int>(unit.takes.size(), -1));
    const int plain = static_cast<int>(unit.takes.size() - unit.sums.size());
    for (int k = 0; k < plain && !v_.error; ++k) take(u, k, each, inside);
    prove_detail::lift_all(work_, local, inside);
    if (work_.lost >= 0 && lost_in_ < 0) lost_in_ = u;
    first_given_.push_back(static_cast<int>(held_.size()));
    for (int k = 0; k < static_cast<int>(unit.gives.size()) && !v_.error; ++k)
      give(u, k, each, inside);
    inside_.push_back(static_cast<claim_list&&>(inside));
  }
  constexpr void take(int u, int k, prove_detail::iterations& each, claim_list& inside) {
    const pipeline_unit& unit = p_.units[u];
    const unit_value& v = unit.takes[k];
    const value_id to = unit.device.local.inputs[k];
    const tensor_type& type = unit.device.local.type(to);
    const bool slice = is_slice(v.slot);
    if (is_index(v.slot)) {
      if (!unit.inside || type != tensor_type{dtype::i32, {}} || v.lies.count > 0 ||
          unit.device.inputs[k].count > 0 || !v.terms.empty())
        return lies_otherwise(u, v);
      return own_ ? own_->count(inside, to) : each.count(inside, to);
    }
    const value_id next = p_.next_of(v.slot);
    const value_id stack = slice || next >= 0 ? p_.values().operand(maker(v.slot), 0) : v.slot;
    const int held = find(unit.piece.mesh, stack);
    from_.taken[u][k] = giver_of(held);
    taken_[u][k] = held;
    if (held < 0) return;  // the list walker reports it, too; results that depend on it are unknown
    const held_value& what = held_[held];
    const bool fits = slice ? unit.inside && p_.repeated[stack] == 0 && v.terms.empty() &&
                                  is_stack(what, type, v.lies)
                            : what.type == type && what.lies == v.lies && what.terms == v.terms;
    if (!fits || unit.device.inputs[k] != v.lies) return lies_otherwise(u, v);
    if (next >= 0) return take_state(u, k, held, inside);
    if (slice && own_)
      return own_->take_slice(known_, held, what.lies, what.type.shape, v.lies, inside, to,
                              type.shape);
    if (slice) return each.take_slice(known_, held, inside, to);
    for (int c = known_.first[held]; c >= 0; c = work_.claims[c].next) {
      const prove_detail::claim known = work_.claims[c];
      if (unit.inside)
        work_.add(inside, to, known);
      else if (own_ && p_.repeated[stack] != 0)
        own_->give_last(known, inside, to);  // not a value after the loop
      else if (is_of_no_microbatch(known))
        work_.add(inside, to, known);
    }
  }
  /// Uses induction: the value before the first microbatch is known, and the value that each one
  /// leaves is checked when it is known (check_state).
  constexpr void take_state(int u, int k, int start, claim_list& inside) {
    const pipeline_unit& unit = p_.units[u];
    const unit_value& v = unit.takes[k];
    const program& local = unit.device.local;
    const auto number = static_cast<int>(p_.values().attrs(maker(v.slot))[0]);
    if (!unit.inside || !v.terms.empty()) return lies_otherwise(u, v);
    if (!own_ || number < 0 || number >= own_->states()) return;
    if (own_->take_state(number, known_, start, v.lies, inside, local.inputs[k],
                         local.input_type(k).shape))
      assumed_.push_back({u, unit.piece.mesh, number, v, local.input_type(k)});
  }
  constexpr void check_state(const assumed_state& s) {
    if (p_.microbatches < 2) return;
    be_on(s.mesh);
    const int next = find(s.mesh, p_.next_of(s.as.slot));
    if (next < 0) return;  // the list walker reports it, too
    const held_value& what = held_[next];
    if (what.type != s.local || what.lies != s.as.lies || what.terms != s.as.terms)
      return lies_otherwise(s.unit, s.as);
    if (own_->leaves(s.number, known_, next, s.as.lies, s.local.shape)) return;
    blame_part(next);
    if (work_.lost >= 0) return report_lost("");
    if (find_strange(next))
      return report_lost(concat("; state ", s.number, " of the loop is computed from it"));
    v_.error.record("Q004", "prove: the state that a microbatch leaves for %",
                    name_of(s.as.slot).view(), " on mesh \"", p_.topology.name(s.mesh), "\" is ",
                    front_.words(known_, next).view(), "; in the source it is another value");
  }
  constexpr static layout behind_first(const layout& slice) {
    layout l;
    for (const auto& e : slice) l.push_back(e.axis, e.dim + 1);
    return l;
  }
  constexpr tensor_type stack_of(const tensor_type& slice) const {
    tensor_type t{slice.element, {}};
    t.shape.push_back(p_.microbatches);
    for (int d = 0; d < slice.shape.rank; ++d) t.shape.push_back(slice.shape[d]);
    return t;
  }
  constexpr bool is_stack(const held_value& stack, const tensor_type& slice,
                          const layout& lies) const {
    return slice.shape.rank < max_rank && stack.type == stack_of(slice) &&
           stack.lies == behind_first(lies) && stack.terms.empty();
  }
  /// True if a claim is independent of the microbatch. After the loop, a value of an iteration is
  /// that of the last one.
  constexpr bool is_of_no_microbatch(const prove_detail::claim& c) const {
    return !c.sums.contains(max_axes) && !work_.all.views[c.view].depends_on(max_axes);
  }
  constexpr void lies_otherwise(int u, const unit_value& v) {
    v_.error.record("Q014", "prove: ", unit_text(p_.units[u]).view(), " takes %",
                    name_of(v.slot).view(), " in a layout that it does not have on mesh \"",
                    p_.topology.name(p_.units[u].piece.mesh), '"');
  }
  constexpr text name_of(value_id slot) const { return text(value_names(p_.values())[slot]); }

  /// Records a result, a slice of a stack, or a sum with the contribution of a call.
  constexpr void give(int u, int k, prove_detail::iterations& each, const claim_list& inside) {
    const pipeline_unit& unit = p_.units[u];
    const unit_value& v = unit.gives[k];
    const program& local = unit.device.local;
    const value_id from = local.outputs[k].value;
    const int sums = static_cast<int>(unit.gives.size() - unit.sums.size()),
              stacks = sums - static_cast<int>(unit.stacks.size());
    const layout& lies = unit.device.outputs[k];
    held_value made{local.type(from), v.lies, v.terms, giver::unit(u)};
    if (k >= stacks && k < sums) made.type = stack_of(made.type);
    if (k < stacks ? unit.inside && p_.repeated[v.slot] == 0 : p_.repeated[v.slot] != 0)
      return v_.error.record("Q014", "prove: ", unit_text(unit).view(), " returns %",
                             name_of(v.slot).view(),
                             k < stacks ? " in each call, but it does not belong to a microbatch"
                                        : " of all microbatches, but it belongs to each one");
    const int to = hold(unit.piece.mesh, v.slot, made);
    claim_list all;
    all.first.push_back(-1);
    if (k < stacks)
      prove_detail::pass(work_, inside, from, all, 0);
    else if (k < sums && own_)
      own_->give_stack(inside, from, all, 0);
    else if (k < sums)
      each.give_slice(inside, from, all, 0);
    else
      add_up(u, k, each, inside, all);
    if (v.lies == (k >= stacks && k < sums ? behind_first(lies) : lies) &&
        keep(all, v.lies, v.terms, to))
      return;
    v_.error.record("Q014", "prove: ", unit_text(unit).view(), " returns %", name_of(v.slot).view(),
                    " in a layout that it does not have: it is ", front_.words(all, 0).view());
  }
  /// Adds a contribution to a sum. The slot determines the initial value.
  constexpr void add_up(int u, int k, prove_detail::iterations& each, const claim_list& inside,
                        claim_list& all) {
    const pipeline_unit& unit = p_.units[u];
    const program& local = unit.device.local;
    const int before =
        k - static_cast<int>(unit.gives.size()) + static_cast<int>(unit.takes.size());
    const unit_value &v = unit.gives[k], &start = unit.takes[before];
    const op_id o = maker(v.slot);
    if (start.slot != v.slot || local.input_type(before) != local.output_type(k) ||
        p_.values().op(o).def->id != def<op::microbatch_sum>.id || start.lies != v.lies ||
        unit.device.inputs[before] != v.lies || start.terms != v.terms)
      return lies_otherwise(u, start);
    const auto combine = static_cast<combiner>(p_.values().attrs(o)[0]);
    const auto starts = [&](combiner c) { return c == combine; };
    const value_id from = local.inputs[before], to = local.outputs[k].value;
    if (!own_) return each.give_joined(local, from, to, inside, starts, all, 0);
    const auto totals = [&](combiner c, value_id w) { return own_->totals(local, inside, c, w); };
    each.give_total(local, from, to, starts, totals, all, 0);
  }
  /// Records claims about a value that devices share by a layout: they differ along its axes, and
  /// where they hold terms of a sum.
  ///
  /// False: claims exist, but in another layout.
  constexpr bool keep(const claim_list& from, const layout& lies, axis_set terms, int to) {
    bool any = from.first[0] < 0;
    for (int c = from.first[0]; c >= 0; c = work_.claims[c].next) {
      const prove_detail::claim each = work_.claims[c];
      if (!differs_along(each, lies, terms)) continue;
      work_.add(known_, to, each);
      any = true;
    }
    return any;
  }
  constexpr bool differs_along(const prove_detail::claim& c, const layout& lies,
                               axis_set terms) const {
    for (int a = 0; a < mesh_.rank; ++a) {
      if (mesh_.size(a) == 1 || terms.contains(a)) continue;
      if (c.sums.contains(a)) return false;
      if (work_.all.views[c.view].depends_on(a) && lies.dim_of(a) < 0) return false;
    }
    return true;
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
    if (from < 0 || v_.error) return;
    const transfer_layout& l = p_.sent_as[number];
    const held_value sent = held_[from];
    const mesh &here = p_.meshes[t.from], &there = p_.meshes[t.to];
    const bool same = l.from == l.to && same_sizes(l.from, here, there);
    held_value taken{sent.type, l.to, {}, giver::transfer(p_, number)};
    const shape whole = l.from.global(sent.type.shape, here);
    if (!same) taken.type.shape = l.to.local(whole, there);
    if (sent.lies != l.from || !sent.terms.empty() ||
        l.to.global(taken.type.shape, there) !=
            (same ? l.to.global(sent.type.shape, there) : whole))
      return v_.error.record("Q014", "prove: %", name_of(slot).view(), " is sent from mesh \"",
                             p_.topology.name(t.from), "\" to \"", p_.topology.name(t.to),
                             "\" in a layout that it does not have");
    taken.sent = from;
    const int to = hold(t.to, slot, taken);
    for (int c = known_.first[from]; c >= 0; c = work_.claims[c].next) {
      prove_detail::claim each = work_.claims[c];
      if (same || (moved(collective::all_gather, l.from, t.from, sent.type.shape, each) &&
                   moved(collective::all_slice, l.to, t.to, whole, each)))
        work_.add(known_, to, each);
    }
  }
  /// A transfer whose shards change gathers on one mesh and slices on the other.
  constexpr bool moved(collective::kind_type kind, const layout& axes, int on, const shape& operand,
                       prove_detail::claim& c) {
    collective what;
    what.kind = kind;
    what.axes = axes;
    prove_detail::view v = work_.all.views[c.view];
    const shape tensor = work_.all.terms[c.term].shape;
    if (!prove_detail::exchange(what, p_.meshes[on], operand, tensor).apply(v, c.sums, 0))
      return false;
    c.view = work_.number(v, c.term);
    return true;
  }

  // ---- Outputs ----------------------------------------------------------------------------------

  constexpr int output(int i) const { return find(p_.output_mesh[i], p_.output_slot[i]); }
  constexpr void check_output(int i) {
    const int held = output(i);
    be_on(p_.output_mesh[i]);
    const layout& l = p_.output_layout[i];
    const tensor_type local = held_[held].type;
    prove_detail::given_program(p_.source, mesh_, v_.error)
        .check_layout("output", source_.output_name(i), l, source_.output_type(i), local);
    claim_list known;
    known.first.push_back(-1);
    for (int c = known_.first[held]; c >= 0; c = work_.claims[c].next)
      if (is_of_no_microbatch(work_.claims[c]))
        work_.add(known, 0, prove_detail::claim(work_.claims[c]));
    if (v_.error || front_.is_output(i, l, local.shape, known, 0)) return;
    blame_part(held);
    if (work_.lost >= 0) return report_lost("");
    if (find_strange(held))
      return report_lost(concat("; output \"", source_.output_name(i), "\" is computed from it"));
    v_.error.record("Q004", "prove: ", front_.describe_output(i, known, 0), ", on mesh \"",
                    p_.topology.name(p_.output_mesh[i]), '"');
  }
  constexpr void report_lost(const text& more) {
    be_on(p_.units[lost_in_].piece.mesh);
    v_.error.record(prove_detail::code_of_lost(work_),
                    "prove: ", prove_detail::describe_lost(work_, mesh_), more, in_unit(lost_in_));
  }
  constexpr text in_unit(int u) const {
    return concat(", in ", unit_text(p_.units[u]), " on mesh \"",
                  p_.topology.name(p_.units[u].piece.mesh), '"');
  }
  constexpr void blame_part(int held) {
    while (held_[held].sent >= 0) held = held_[held].sent;
    const int u = giver::unit_of(held_[held].by);
    if (u < 0 || work_.lost >= 0) return;
    const program& local = p_.units[u].device.local;
    const value_id v = local.outputs[held - first_given_[u]].value;
    prove_detail::blame_part(work_, local, v, inside_[u]);
    lost_in_ = u;
  }
  /// Finds the first op that a value depends on and whose result the source does not contain.
  constexpr bool find_strange(int held) {
    vec<char> wanted(held_.size(), 0);
    wanted[held] = 1;
    int found = -1;
    op_id strange = -1;
    for (int u = static_cast<int>(p_.units.size()); u-- > 0;)
      if (const op_id o = find_strange(u, wanted); o >= 0) {
        strange = o;
        found = u;
      }
    if (found < 0) return false;
    work_.note_lost(p_.units[found].device.local, strange, inside_[found],
                    "the source computes nothing like it");
    lost_in_ = found;
    return true;
  }
  /// Searches one unit. The values that the unit uses for a wanted value become wanted, too.
  constexpr op_id find_strange(int u, vec<char>& wanted) const {
    const program& local = p_.units[u].device.local;
    vec<char> needed(local.ops.size(), 0);
    for (std::size_t h = held_.size(); h-- > 0;)
      if (wanted[h] != 0 && held_[h].sent >= 0) wanted[held_[h].sent] = 1;
    for (int k = 0; k < local.output_count(); ++k)
      if (wanted[first_given_[u] + k] != 0) needed[local.producer(local.outputs[k].value)] = 1;
    const op_id strange = prove_detail::first_strange(work_, local, inside_[u], needed);
    for (int k = 0; k < local.input_count(); ++k)
      if (const int h = taken_[u][k]; h >= 0 && needed[local.producer(local.inputs[k])] != 0)
        wanted[h] = 1;
    return strange;
  }
};

/// Plays the steps on formulas, then on numbers: `proved` if no difference is found, `differs` if
/// numbers differ.
constexpr prove_detail::element_verdict compare_steps(const program& source, const pipelined& p,
                                                      std::int64_t most) {
  using prove_detail::element_verdict;
  element_verdict v;
  if (most <= 0) return v;
  v = step_elements(source, p, most).check();
  const bool compared = v.kind == element_verdict::proved || v.kind == element_verdict::differs;
  for (int seed = 1; compared && seed <= 4 && !std::is_constant_evaluated(); ++seed)
    if (const element_verdict at = step_elements(source, p, most).at_numbers(seed).check();
        at.kind == element_verdict::differs)
      return at;
  if (v.kind == element_verdict::differs && !std::is_constant_evaluated())
    v.kind = element_verdict::not_known;  // (equal formulas may look different)
  return v;
}
/// Proves a pipeline by claims, with or without dead code, or by elements over its steps.
constexpr verdict prove(const program& source, const pipelined& p, const prove_options& options) {
  const auto run = [&](const program& from) {
    verdict v = pipeline_checker(from, p, options.most_steps).run();
    if (v.proved) v.method = proof_method::claims;
    return v;
  };
  verdict v = run(source);
  if (v.proved) return v;
  const program live = prove_detail::live_part(source);
  if (!live.ops.empty())
    if (const verdict found = run(live); found.proved) return found;
  const std::string_view code = v.error.message.view().substr(0, 4);
  if (code != "Q003" && code != "Q004" && code != "Q009") return v;
  std::int64_t most = options.most_elements;
  if (std::is_constant_evaluated()) most = options.most_elements_in_constants;
  const prove_detail::element_verdict steps = compare_steps(source, p, most);
  v.undecided = steps.kind != prove_detail::element_verdict::differs;
  if (steps.kind != prove_detail::element_verdict::proved) return v;
  v = {};
  v.proved = v.by_elements = true;
  v.method = proof_method::elements;
  return v;
}

}  // namespace mpmd_detail

namespace separate {
verdict prove(const program& source, const pipelined& p, const prove_options& options);
}  // namespace separate

/// Proves that a pipeline computes the source for all inputs, up to the order of sums.
///
/// Cost      linear in ops of units, in transfers and in calls
/// Errors    those of prove() of one program; Q011 the parts of the pipeline are inconsistent, Q012
///           a call uses, or a mesh sends, a value that is not available then; Q013 a call runs
///           twice or not at all; Q014 a value is used or sent in the wrong layout; Q015 a joint
///           call differs from its parts
constexpr verdict prove(const program& source, const pipelined& p,
                        const prove_options& options = {}) {
  PARTITA_RETURN(mpmd_detail::prove(source, p, options), separate::prove(source, p, options));
}
/// Proves a pipeline against the step that it was made from.
constexpr verdict prove(const pipelined& p, const prove_options& options = {}) {
  return prove(p.original, p, options);
}

/// Returns a pipeline after proving it. Without a proof it has an error; see proved() of one
/// program.
constexpr pipelined proved(pipelined p) {
  if (p.error) return p;
  p.error.record(prove(p).error);
  p.error.raise();
  p.proved = !p.error;
  return p;
}

/// Runs the proof of a pipeline that partition_options::prove requests by `proof` or
/// `proof_in_debug`. The latter reports mistakes only: a pipeline that is neither proved nor
/// refuted passes.
///
/// Errors    those of prove(); O148 another function, which handles programs on one mesh only
constexpr void prove_when_asked(pipelined& p, decltype(partition_options::prove) asked) {
  if (asked == &no_proof) return;
  if (asked == &proof_in_debug && (std::is_constant_evaluated() || !proves_in_debug)) return;
  if (asked != &proof && asked != &proof_in_debug)
    p.error.record("O148",
                   "pipeline: prove: a custom proof function handles programs on one mesh only; "
                   "pass pt::proof or pt::proof_in_debug");
  if (p.error) return;
  const verdict v = prove(p);
  p.proved = v.proved;
  if (asked == &proof || !v.undecided) p.error.record(v.error);
}

}  // namespace partita
