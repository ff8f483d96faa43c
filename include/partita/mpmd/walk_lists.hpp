/// Walks along the lists of a pipeline without values, and checks that the operands of each call
/// are available and come from the right unit.
#pragma once

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/unit_text.hpp>

namespace partita::mpmd_detail {

/// The source of a value: an input of the program, a unit or a transfer, by number.
struct giver {
  static constexpr int nobody = -1, input = 0;
  static constexpr int unit(int u) { return 1 + u; }
  static constexpr int unit_of(int by) { return by - 1; }  ///< the unit of a source
  static constexpr int transfer(const pipelined& p, int t) {
    return 1 + static_cast<int>(p.units.size()) + t;
  }
};
/// The source of each operand of units, of each sent value and of each output.
struct value_givers {
  vec<vec<int>> taken;  ///< by unit, in the order of its operands
  vec<vec<int>> left;   ///< the same for states: the values of the microbatch before
  vec<int> sent, returned;
};

/// Walks along the lists of the meshes. Each unit runs once, or once for each microbatch; its
/// operands are available, for its own microbatch, and come from the right source; sums over
/// microbatches are complete, and contain no term twice. (joint_checker checks
/// joint_function::given.)
///
/// Cost      linear in calls and their operands and results
/// Errors    Q012 a value is not available, or is a wrong one; Q013 a call runs twice or not at all
class list_walker {
 public:
  constexpr list_walker(const pipelined& p, const value_givers& from, failure& error)
      : p_(p),
        from_(from),
        error_(error),
        slots_(static_cast<int>(p.values().types.size())),
        first_(static_cast<std::size_t>(p.topology.count() * slots_), -1),
        sent_(p.lists.messages.size(), not_yet),
        next_(p.lists.meshes.size(), 0) {}

  constexpr void run() {
    check_calls();
    if (error_) return;
    count_given();
    for (int i = 0; i < p_.source.input_count(); ++i)
      put(p_.input_mesh[i], p_.slot_of[p_.source.inputs[i]], -1, giver::input);
    for (int t = 0; t < static_cast<int>(p_.transfers.size()); ++t)
      if (p_.transfers[t].after < 0) send_now(t);
    for (bool moved = true; moved && !error_;) {
      moved = false;
      for (int m = 0; m < p_.topology.count(); ++m)
        while (!error_ && step(m)) moved = true;
    }
    check_ended();
    for (int i = 0; i < p_.source.output_count() && !error_; ++i) check_output(i);
  }

 private:
  /// The contents of a slot for a microbatch.
  struct held {
    int by = giver::nobody;
    int count = 0, needed = 1;  ///< calls that have contributed, and the number that must
    int within = -1;            ///< the joint call that keeps it inside
    int ends_in = -1;  ///< the joint call of its last part, which returns it after all calls
  };
  const pipelined& p_;
  const value_givers& from_;
  failure& error_;
  int slots_;
  vec<int> first_;  ///< by mesh and slot: first entry for microbatches, or -1
  vec<held> held_;
  enum progress : std::uint8_t { not_yet, on_its_way, taken };
  vec<progress> sent_;         ///< by message; each is sent once
  vec<std::size_t> next_;      ///< by mesh: position in its list
  vec<std::size_t> given_at_;  ///< by call of a joint one: position of its results in `given`

  static constexpr std::size_t results(const pipeline_unit& u) {
    return u.gives.size() - u.sums.size() - u.stacks.size();
  }
  constexpr void count_given() {
    if (p_.joint_calls.empty()) return;
    given_at_.resize(p_.unit_of.size(), 0);
    for (const joint_call& joint : p_.joint_calls) {
      std::size_t at = 0;
      for (const int c : joint.calls) {
        given_at_[c] = at;
        at += results(unit_of(c));
      }
    }
  }
  /// The joint call inside which a result of a call stays, or -1 if it is available to all.
  constexpr int stays_in(int call, std::size_t k) const {
    const int j = p_.joint(call);
    if (j < 0) return -1;
    const auto& given = p_.joint_functions[p_.joint_calls[j].function].given;
    return given[given_at_[call] + k] != 0 ? -1 : j;
  }
  constexpr const pipeline_unit& unit_of(int call) const { return p_.units[p_.unit_of[call]]; }
  constexpr held& at(int mesh, value_id slot, int microbatch) {
    int& first = first_[mesh * slots_ + slot];
    const bool each = p_.repeated[slot] != 0;
    if (first < 0) {
      first = static_cast<int>(held_.size());
      held_.resize(held_.size() + static_cast<std::size_t>(each ? p_.microbatches : 1), held{});
    }
    return held_[first + (each ? p_.microbatch_in(slot, microbatch) : 0)];
  }
  constexpr void put(int mesh, value_id slot, int microbatch, int by, int within = -1) {
    at(mesh, slot, microbatch) = {by, 1, 1, within, -1};
  }
  /// Records the contribution of one microbatch.
  constexpr void put_part(int mesh, value_id slot, int by, int joint) {
    held& all = at(mesh, slot, -1);
    all = {by, all.by == by ? all.count + 1 : 1, p_.microbatches, -1, joint};
  }
  constexpr bool is_there(int mesh, value_id slot, int microbatch, int by, int joint = -1) {
    const held& all = at(mesh, slot, microbatch);
    return all.by == by && all.count == all.needed && (all.within < 0 || all.within == joint) &&
           (all.ends_in < 0 || all.ends_in != joint);
  }

  // ---- Calls ------------------------------------------------------------------------------------

  /// Checks that each unit is called once, or once for each microbatch, and is in the list of its
  /// mesh, in program order.
  constexpr void check_calls() {
    vec<vec<char>> called;
    for (const auto& u : p_.units)
      called.push_back(vec<char>(static_cast<std::size_t>(u.inside ? p_.microbatches : 1), 0));
    vec<char> listed(p_.calls.calls.size(), 0);
    for (int c = 0; c < p_.calls.count(); ++c) {
      const int i = p_.calls.calls[c].microbatch;
      const pipeline_unit& u = unit_of(c);
      if (u.inside ? i < 0 || i >= p_.microbatches : i != -1) return not_once(c);
      if (called[p_.unit_of[c]][u.inside ? i : 0]++ != 0) return not_once(c);
    }
    for (int u = 0; u < static_cast<int>(called.size()); ++u)
      for (const char each : called[u])
        if (each == 0)
          return error_.record("Q013", "prove: ", unit_text(p_.units[u]).view(),
                               " is not called for each microbatch");
    for (int m = 0; m < p_.topology.count(); ++m)
      for (const mesh_step& s : p_.lists.meshes[m])
        if (s.kind == mesh_step::call &&
            (unit_of(s.index).piece.mesh != m || listed[s.index]++ != 0))
          return not_once(s.index);
    for (int c = 0; c < p_.calls.count(); ++c)
      if (listed[c] == 0) return not_once(c);
    check_order();
  }
  constexpr void check_order() {
    vec<std::size_t> next(p_.lists.meshes.size(), 0);
    for (const int c : p_.order) {
      const auto& list = p_.lists.meshes[unit_of(c).piece.mesh];
      std::size_t& i = next[unit_of(c).piece.mesh];
      while (i < list.size() && list[i].kind != mesh_step::call) ++i;
      if (i == list.size() || list[i++].index != c) return not_once(c);
    }
  }
  constexpr void not_once(int call) {
    error_.record("Q013", "prove: ", where(call).view(),
                  " does not run once, on its mesh and in the order of the program");
  }
  constexpr void call(int c) {
    const int number = p_.unit_of[c], i = p_.calls.calls[c].microbatch;
    const pipeline_unit& u = p_.units[number];
    const int plain = static_cast<int>(u.takes.size() - u.sums.size());
    for (int k = 0; k < plain && !error_; ++k) take(c, k, i);
    for (int k = plain; k < static_cast<int>(u.takes.size()) && !error_; ++k)
      if (const int by = at(u.piece.mesh, u.takes[k].slot, -1).by;
          by != giver::nobody && by != giver::unit(number))
        not_there(c, u.takes[k].slot);
    for (std::size_t k = 0; k < u.gives.size() && !error_; ++k)
      if (k < results(u))
        put(u.piece.mesh, u.gives[k].slot, i, giver::unit(number), stays_in(c, k));
      else
        put_part(u.piece.mesh, u.gives[k].slot, giver::unit(number), p_.joint(c));
  }
  constexpr void take(int c, int k, int microbatch) {
    const pipeline_unit& u = unit_of(c);
    const program& values = p_.values();
    const value_id slot = u.takes[k].slot;
    const op_node& n = values.op(values.producer(slot));
    if (n.def->id == def<op::microbatch_index>.id) return;
    const slot_place at = p_.place_of(slot, microbatch);
    const bool left = p_.next_of(slot) >= 0 && microbatch > 0;
    const auto& from = left ? from_.left : from_.taken;
    if (!is_there(u.piece.mesh, at.slot, at.microbatch, from[p_.unit_of[c]][k], p_.joint(c)))
      not_there(c, at.slot);
  }
  constexpr text where(int c) const {
    return concat(call_text(p_.calls.calls[c], p_.calls.with_stage), " on mesh \"",
                  p_.topology.name(unit_of(c).piece.mesh), '"');
  }
  constexpr void not_there(int c, value_id slot) {
    error_.record("Q012", "prove: ", where(c).view(), " takes %", name_of(slot).view(),
                  ", which is not available then, or only partly");
  }
  constexpr text name_of(value_id slot) const { return text(value_names(p_.values())[slot]); }

  // ---- Messages ---------------------------------------------------------------------------------

  constexpr bool step(int m) {
    const auto& list = p_.lists.meshes[m];
    if (next_[m] == list.size()) return false;
    const mesh_step& s = list[next_[m]];
    if (s.kind == mesh_step::call)
      call(s.index);
    else if (s.kind == mesh_step::send)
      send(m, s.index);
    else if (!receive(m, s.index))
      return false;
    ++next_[m];
    return true;
  }
  constexpr void send(int m, int index) {
    const message& what = p_.lists.messages[index];
    const transfer& t = p_.transfers[what.transfer];
    if (t.from != m || sent_[index] != not_yet ||
        !is_there(m, p_.slot_of[t.value], what.microbatch, from_.sent[what.transfer]))
      return not_sent(what.transfer);
    sent_[index] = on_its_way;
  }
  constexpr bool receive(int m, int index) {
    const message& what = p_.lists.messages[index];
    const transfer& t = p_.transfers[what.transfer];
    if (t.to != m || sent_[index] == taken) not_sent(what.transfer);
    if (sent_[index] != on_its_way) return false;
    sent_[index] = taken;
    put(m, p_.slot_of[t.value], what.microbatch, giver::transfer(p_, what.transfer));
    return true;
  }
  constexpr void send_now(int t) {
    const transfer& what = p_.transfers[t];
    const value_id v = p_.slot_of[what.value];
    if (!is_there(what.from, v, -1, from_.sent[t])) return not_sent(t);
    put(what.to, v, -1, giver::transfer(p_, t));
  }
  constexpr void not_sent(int t) {
    const transfer& what = p_.transfers[t];
    error_.record("Q012", "prove: %", name_of(p_.slot_of[what.value]).view(),
                  " is sent from mesh \"", p_.topology.name(what.from), "\" to \"",
                  p_.topology.name(what.to), "\" twice, or before all of it is available");
  }
  constexpr void check_ended() {
    for (int m = 0; m < p_.topology.count() && !error_; ++m)
      if (next_[m] < p_.lists.meshes[m].size())
        not_sent(p_.lists.messages[p_.lists.meshes[m][next_[m]].index].transfer);
  }
  /// Sends an output to the caller's mesh if nothing there used it before.
  constexpr void check_output(int i) {
    const int mesh = p_.output_mesh[i];
    const value_id v = p_.output_slot[i];
    for (int t = 0; t < static_cast<int>(p_.transfers.size()) && !error_; ++t)
      if (const transfer& each = p_.transfers[t];
          p_.slot_of[each.value] == v && each.to == mesh && at(mesh, v, -1).by == giver::nobody)
        send_now(t);
    if (!error_ && !is_there(mesh, v, -1, from_.returned[i]))
      error_.record("Q012", "prove: output \"", p_.source.output_name(i), "\" is not on mesh \"",
                    p_.topology.name(mesh), "\" in the end, or only partly");
  }
};

}  // namespace partita::mpmd_detail
