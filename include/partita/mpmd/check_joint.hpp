/// Checks that merged calls run the same ops as their parts in sequence.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/same_code.hpp>
#include <partita/ir/verify.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/unit_text.hpp>

namespace partita::mpmd_detail {

constexpr bool within(int i, std::size_t count) {
  return i >= 0 && static_cast<std::size_t>(i) < count;
}

/// Simulates the parts of a joint function in sequence on the function's own values. Each op of a
/// part must be the next op of the function, and each value that a part takes must be stored where
/// the part takes it.
///
/// Cost      the ops of the parts, and their operands and results
class joint_run {
 public:
  constexpr explicit joint_run(const pipelined& p)
      : p_(p), first_(p.values().types.size(), nothing) {}

  /// Returns an error text, or an empty text if the joint function is correct.
  constexpr std::string_view wrong(const joint_function& f) {
    f_ = &f;
    wrong_ = {};
    next_op_ = 0;
    enter();
    for (const joint_part& part : f.parts)
      if (wrong_.empty()) run(part);
    skip_parameters();
    if (next_op_ < local().op_count()) say("run fewer ops than its function");
    leave();
    for (const lying& each : there_) first_[each.slot] = nothing;
    there_.clear();
    results_.clear();
    return wrong_;
  }

 private:
  static constexpr int nothing = -1;
  enum kinds : std::uint8_t { value, slice, sum };
  /// The contents of a place: a value, a slice of a stack, or an accumulator.
  struct lying {
    value_id slot = -1;
    int ahead = 0;  ///< microbatches after the first one of the call; 0: none
    kinds kind = value;
    value_id is = -1;  ///< value of the joint function
    op_id all = -1;    ///< the microbatch_stack or microbatch_sum of a slice or accumulator
    unit_value as = {};
    layout local = {};
    bool taken = false, made = false, given = false;
    int next = nothing;  ///< next entry of the same slot
  };
  const pipelined& p_;
  const joint_function* f_ = nullptr;
  std::string_view wrong_;
  op_id next_op_ = 0;
  vec<int> first_;  ///< by slot: first entry in `there_`
  vec<lying> there_;
  vec<int> results_;  ///< entries of `there_`: results of parts except slices and sums, in order

  constexpr const program& local() const { return f_->whole.device.local; }
  constexpr void say(std::string_view what) {
    if (wrong_.empty()) wrong_ = what;
  }
  static constexpr std::size_t plain(const pipeline_unit& u) {
    return u.takes.size() - u.sums.size();
  }
  static constexpr std::size_t results(const pipeline_unit& u) {
    return u.gives.size() - u.sums.size() - u.stacks.size();
  }
  /// A state is where the microbatch before has left it. Values outside of iterations have one
  /// place.
  constexpr lying place(value_id slot, int ahead) const {
    if (const value_id left = p_.next_of(slot); left >= 0 && ahead > 0)
      return {.slot = left, .ahead = ahead - 1};
    const auto made_by = p_.values().op(p_.values().producer(slot)).def->id;
    const bool each = made_by == def<op::microbatch_slice>.id ||
                      made_by == def<op::microbatch_index>.id || p_.next_of(slot) >= 0 ||
                      p_.repeated[slot] != 0;
    return {.slot = slot, .ahead = each ? ahead : 0};
  }
  constexpr lying taken(const pipeline_unit& u, std::size_t k, int ahead) const {
    if (k < plain(u)) return place(u.takes[k].slot, ahead);
    return {.slot = u.takes[k].slot, .kind = sum, .all = u.sums[k - plain(u)]};
  }
  constexpr lying given(const pipeline_unit& u, std::size_t k, int ahead) const {
    const value_id slot = u.gives[k].slot;
    if (k < results(u)) return place(slot, ahead);
    const std::size_t number = k - results(u);
    if (number < u.stacks.size())
      return {.slot = slot, .ahead = ahead, .kind = slice, .all = u.stacks[number]};
    return {.slot = slot, .kind = sum, .all = u.sums[number - u.stacks.size()]};
  }
  constexpr int find(const lying& where) const {
    int i = first_[where.slot];
    while (i != nothing && !(there_[i].ahead == where.ahead && there_[i].kind == where.kind &&
                             there_[i].all == where.all))
      i = there_[i].next;
    return i;
  }
  constexpr int find_or_add(const lying& where) {
    if (const int i = find(where); i != nothing) return i;
    there_.push_back(where);
    there_.back().next = first_[where.slot];
    return first_[where.slot] = static_cast<int>(there_.size()) - 1;
  }
  constexpr bool lies_so(int i, const unit_value& as, const layout& local) const {
    return there_[i].as.lies == as.lies && there_[i].as.terms == as.terms &&
           there_[i].local == local;
  }

  constexpr void enter() {
    const pipeline_unit& whole = f_->whole;
    for (std::size_t k = 0; k < whole.takes.size(); ++k) {
      const int i = find_or_add(taken(whole, k, f_->takes_ahead[k]));
      if (there_[i].is >= 0) return say("receive the same value twice");
      there_[i].is = local().inputs[k];
      there_[i].as = whole.takes[k];
      there_[i].local = whole.device.inputs[k];
    }
  }
  constexpr void run(const joint_part& part) {
    const pipeline_unit& u = p_.units[part.unit];
    const program& from = u.device.local;
    vec<value_id> is(from.types.size(), -1);
    for (std::size_t k = 0; k < u.takes.size(); ++k) {
      const int i = find(taken(u, k, part.ahead));
      if (i == nothing) return say("take a value that neither they nor their function has");
      if (!lies_so(i, u.takes[k], u.device.inputs[k]) ||
          local().type(there_[i].is) != from.input_type(static_cast<int>(k)))
        return say("take a value in another layout");
      is[from.inputs[k]] = there_[i].is;
      there_[i].taken = true;
    }
    for (op_id o = 0; o < from.op_count(); ++o)
      if (!from.is(o, op_role::parameter) && !runs(from, o, is))
        return say("differ from what its function computes");
    for (std::size_t k = 0; k < u.gives.size(); ++k) {
      const int i = find_or_add(given(u, k, part.ahead));
      lying& here = there_[i];
      here.is = is[from.outputs[k].value];
      here.as = u.gives[k];
      here.local = u.device.outputs[k];
      here.made = true;
      if (k < results(u)) results_.push_back(i);
    }
  }
  constexpr void skip_parameters() {
    while (next_op_ < local().op_count() && local().is(next_op_, op_role::parameter)) ++next_op_;
  }
  /// True if an op of a part is the next op of the function.
  constexpr bool runs(const program& from, op_id o, vec<value_id>& is) {
    skip_parameters();
    if (next_op_ == local().op_count()) return false;
    const op_id mine = next_op_++;
    const op_node &a = from.op(o), &b = local().op(mine);
    if (a.def->id != b.def->id || a.result_count != b.result_count ||
        a.region_count != b.region_count ||
        from.operands(o).size() != local().operands(mine).size())
      return false;
    for (std::size_t k = 0; k < from.operands(o).size(); ++k)
      if (is[from.operands(o)[k]] != local().operands(mine)[k]) return false;
    if (!ir_detail::same_elements(from.attrs(o), local().attrs(mine))) return false;
    for (int r = 0; r < a.region_count; ++r)
      if (!same_code(from.region(o, r), local().region(mine, r))) return false;
    for (int r = 0; r < a.result_count; ++r) {
      if (from.type(a.result + r) != local().type(b.result + r)) return false;
      is[a.result + r] = b.result + r;
    }
    return true;
  }
  /// Checks that the function returns the sums of its parts and the results in
  /// `joint_function::given`, and nothing else.
  constexpr void leave() {
    const pipeline_unit& whole = f_->whole;
    for (std::size_t k = 0; k < whole.gives.size() && wrong_.empty(); ++k) {
      const int i = find(given(whole, k, f_->gives_ahead[k]));
      if (i == nothing || !there_[i].made || there_[i].given ||
          there_[i].is != local().outputs[k].value ||
          !lies_so(i, whole.gives[k], whole.device.outputs[k]))
        return say("do not return what its function returns");
      there_[i].given = true;
    }
    for (const lying& each : there_)
      if (!each.made && !each.taken)
        say("do not take what its function takes");
      else if (each.kind != value && each.made && !each.given)
        say("add to a value that its function does not return");
    if (results_.size() != f_->given.size())
      return say("return more values than their function declares");
    for (std::size_t n = 0; n < results_.size(); ++n)
      if ((f_->given[n] != 0) != there_[results_[n]].given)
        say("return a value that their function does not declare");
  }
};

/// Checks that each joint call is equivalent to its parts: the parts are adjacent in the list of
/// their mesh, and the function computes the same results. Other classes check the units themselves
/// and the lists of calls; list_walker checks that the function returns whatever other calls need
/// of the parts.
///
/// Cost      the ops of all joint functions, and their calls
/// Errors    Q011 the parts do not fit together, Q015 a joint call differs from its parts
class joint_checker {
 public:
  constexpr joint_checker(const pipelined& p, failure& error) : p_(p), error_(error) {}

  constexpr void run() {
    check_numbers();
    if (error_ || p_.joint_calls.empty()) return;
    check_neighbours();
    if (!error_) check_functions();
  }

 private:
  const pipelined& p_;
  failure& error_;

  constexpr void check_numbers() {
    bool good = p_.joint_of.size() == (p_.joint_calls.empty() ? 0 : p_.unit_of.size());
    std::size_t members = 0, all = 0;
    for (const joint_function& f : p_.joint_functions) good = good && is_whole(f);
    for (const int j : p_.joint_of) {
      good = good && j >= -1 && j < static_cast<int>(p_.joint_calls.size());
      members += j >= 0;
    }
    for (int j = 0; good && j < static_cast<int>(p_.joint_calls.size()); ++j) {
      good = is_whole(p_.joint_calls[j], j);
      all += p_.joint_calls[j].calls.size();
    }
    if (!good || members != all)
      error_.record("Q011",
                    "prove: the pipeline is inconsistent: joint calls do not fit the rest of it");
  }
  constexpr bool is_whole(const joint_function& f) const {
    const pipeline_unit& u = f.whole;
    const program& local = u.device.local;
    bool good = !f.parts.empty() && u.inside && u.takes.size() == local.inputs.size() &&
                u.gives.size() == local.outputs.size() && u.takes.size() >= u.sums.size() &&
                u.gives.size() >= u.sums.size() + u.stacks.size() &&
                u.device.inputs.size() == u.takes.size() &&
                u.device.outputs.size() == u.gives.size() &&
                f.takes_ahead.size() == u.takes.size() && f.gives_ahead.size() == u.gives.size();
    for (const joint_part& part : f.parts)
      good = good && within(part.unit, p_.units.size()) && p_.units[part.unit].inside &&
             p_.units[part.unit].piece.mesh == u.piece.mesh &&
             within(part.ahead, static_cast<std::size_t>(p_.microbatches)) &&
             u.device.mesh.same_grid(p_.units[part.unit].device.mesh);
    for (const auto* list : {&u.takes, &u.gives})
      for (const unit_value& v : *list) good = good && within(v.slot, p_.values().types.size());
    for (const auto* list : {&f.takes_ahead, &f.gives_ahead})
      for (const int ahead : *list)
        good = good && within(ahead, static_cast<std::size_t>(p_.microbatches));
    return good && !verify(local);
  }
  /// True if each part belongs to this joint call, and only to this one.
  constexpr bool is_whole(const joint_call& call, int number) const {
    if (!within(call.function, p_.joint_functions.size()) || call.first < 0) return false;
    const auto& parts = p_.joint_functions[call.function].parts;
    bool good = call.calls.size() == parts.size();
    for (std::size_t n = 0; good && n < parts.size(); ++n) {
      const int c = call.calls[n];
      good = within(c, p_.unit_of.size()) && p_.joint_of[c] == number &&
             p_.unit_of[c] == parts[n].unit &&
             p_.calls.calls[c].microbatch == call.first + parts[n].ahead;
    }
    return good;
  }
  /// Checks that nothing is sent or received between the parts.
  constexpr void check_neighbours() {
    for (const auto& list : p_.lists.meshes)
      for (std::size_t i = 0; i < list.size() && !error_; ++i) {
        if (list[i].kind != mesh_step::call || p_.joint(list[i].index) < 0) continue;
        const joint_call& joint = p_.joint_calls[p_.joint(list[i].index)];
        for (const int c : joint.calls)
          if (i >= list.size() || list[i].kind != mesh_step::call || list[i++].index != c)
            return differs(joint, "do not follow each other");
        --i;
      }
  }
  constexpr void check_functions() {
    joint_run parts(p_);
    vec<std::string_view> wrong;
    for (const joint_function& f : p_.joint_functions) wrong.push_back(parts.wrong(f));
    for (const joint_call& call : p_.joint_calls)
      if (!wrong[call.function].empty()) differs(call, wrong[call.function]);
  }
  constexpr void differs(const joint_call& call, std::string_view how) {
    text parts;
    for (const int c : call.calls)
      parts << (parts.empty() ? "" : ", ") << call_text(p_.calls.calls[c], p_.calls.with_stage);
    error_.record("Q015", "prove: the parts of a joint call ", how, ": ", parts.view(),
                  " on mesh \"", p_.topology.name(p_.calls.calls[call.calls[0]].mesh), '"');
  }
};

}  // namespace partita::mpmd_detail
