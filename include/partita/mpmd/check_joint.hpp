/// Do calls that are one run what their parts would one behind the other?
#pragma once

#include <partita/mpmd/joint_calls.hpp>
#include <partita/mpmd/unit_text.hpp>

namespace partita::mpmd_detail {

/// What each unit computes, and that lists of calls of units give what they should, is shown
/// elsewhere: here that each joint call stands for its parts. They follow each other in the list of
/// their mesh, its function is theirs, and what anybody else takes of them it gives.
///
/// Cost      the ops of all joint functions, and the units that take the same
/// Errors    Q011 the parts do not fit together, Q015 a joint call is not what its parts are
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

  static constexpr bool within(int i, std::size_t count) {
    return i >= 0 && static_cast<std::size_t>(i) < count;
  }
  /// Each call is of one joint call at most, and that knows it.
  constexpr void check_numbers() {
    bool good = p_.joint_of.size() == (p_.joint_calls.empty() ? 0 : p_.unit_of.size());
    std::size_t members = 0, all = 0;
    for (const int j : p_.joint_of) {
      good = good && j >= -1 && j < static_cast<int>(p_.joint_calls.size());
      members += j >= 0;
    }
    for (int j = 0; good && j < static_cast<int>(p_.joint_calls.size()); ++j) {
      const joint_call& call = p_.joint_calls[j];
      good = !call.calls.empty() && within(call.function, p_.joint_functions.size());
      all += call.calls.size();
      for (const int c : call.calls) {
        good = good && within(c, p_.unit_of.size()) && p_.joint_of[c] == j;
        good = good && p_.units[p_.unit_of[c]].inside;
      }
    }
    if (!good || members != all)
      error_.record("Q011",
                    "prove: the pipeline is not whole: joint calls do not fit the rest of it");
  }
  /// Nothing is sent or taken in between.
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
    pipelined again = p_;
    joint_finder(again).run();
    for (std::size_t j = 0; j < p_.joint_calls.size() && !error_; ++j) {
      const joint_call &call = p_.joint_calls[j], &wanted = again.joint_calls[j];
      if (call.first != wanted.first ||
          !same(p_.joint_functions[call.function], again.joint_functions[wanted.function]))
        differs(call, "are not what its function computes");
    }
  }
  template <class T>
  static constexpr bool same(const vec<T>& a, const vec<T>& b) {
    bool all = a.size() == b.size();
    for (std::size_t i = 0; all && i < a.size(); ++i) all = same(a[i], b[i]);
    return all;
  }
  static constexpr bool same(const joint_function& a, const joint_function& b) {
    return same(a.takes_ahead, b.takes_ahead) && same(a.gives_ahead, b.gives_ahead) &&
           same(a.whole, b.whole);
  }
  static constexpr bool same(const pipeline_unit& a, const pipeline_unit& b) {
    return a.piece.mesh == b.piece.mesh && same(a.sums, b.sums) && same(a.stacks, b.stacks) &&
           same(a.takes, b.takes) && same(a.gives, b.gives) && a.inside == b.inside &&
           same(a.device.inputs, b.device.inputs) && same(a.device.outputs, b.device.outputs) &&
           same_code(a.device.local, b.device.local);
  }
  static constexpr bool same(const unit_value& a, const unit_value& b) {
    return a.slot == b.slot && a.lies == b.lies && a.terms == b.terms;
  }
  static constexpr bool same(int a, int b) { return a == b; }
  static constexpr bool same(const layout& a, const layout& b) { return a == b; }
  constexpr void differs(const joint_call& call, std::string_view how) {
    text parts;
    for (const int c : call.calls)
      parts << (parts.empty() ? "" : ", ") << call_text(p_.calls.calls[c], p_.calls.with_stage);
    error_.record("Q015", "prove: the parts of a joint call ", how, ": ", parts.view(),
                  " on mesh \"", p_.topology.name(p_.calls.calls[call.calls[0]].mesh), '"');
  }
};

}  // namespace partita::mpmd_detail
