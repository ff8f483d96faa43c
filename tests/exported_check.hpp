// Checks the exported list of a pipeline for consistency, from the list alone.
#pragma once

#include <set>
#include <string>
#include <vector>

#include <partita/mpmd/exported.hpp>

#include "data.hpp"

namespace exported_check {

namespace pt = partita;

class checker {
 public:
  checker(const pt::pipelined& p, const pt::exported_pipeline& e)
      : p_(p), e_(e), behind_(e.steps.size()) {}

  /// Returns the first inconsistency, or "".
  std::string run() {
    last_.assign(static_cast<std::size_t>(p_.topology.count()), -1);
    made_by_.assign(e_.buffers.size(), -1);
    for (const int b : e_.inputs) live_.insert(b);
    find_last_uses();
    for (int i = 0; i < static_cast<int>(e_.steps.size()); ++i) {
      behind_[at(i)].assign(e_.steps.size(), 0);
      if (e_.steps[i].is_call())
        call(i);
      else
        copy(i);
      drop_unneeded(i);
    }
    for (const int b : e_.outputs) need(b, "the caller");
    return wrong_;
  }

 private:
  const pt::pipelined& p_;
  const pt::exported_pipeline& e_;
  std::set<int> live_;
  std::vector<int> last_, made_by_, last_use_;
  std::vector<std::vector<char>> behind_;  ///< by step: steps that have ended before it begins
  std::string wrong_;

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  void fault(const std::string& what) {
    if (wrong_.empty()) wrong_ = what;
  }
  void need(int buffer, const std::string& who) {
    if (live_.count(buffer) == 0) fault(who + " needs buffer " + std::to_string(buffer));
  }
  void wait(int step, int before) {
    if (before < 0) return;
    behind_[at(step)][at(before)] = 1;
    for (std::size_t k = 0; k < behind_.size(); ++k) behind_[at(step)][k] |= behind_[at(before)][k];
  }
  void copy(int i) {
    const pt::pipeline_step& s = e_.steps[i];
    need(s.from, "copy " + std::to_string(i));
    wait(i, made_by_[at(s.from)]);
    made_by_[at(s.to)] = i;
    live_.insert(s.to);
    if (e_.buffers[s.from].mesh == e_.buffers[s.to].mesh) fault("a copy stays on its mesh");
    if (e_.buffers[s.from].slot != e_.buffers[s.to].slot) fault("a copy of another value");
  }
  void find_last_uses() {
    last_use_.assign(e_.buffers.size(), -1);
    for (int i = 0; i < static_cast<int>(e_.steps.size()); ++i) {
      const pt::pipeline_step& s = e_.steps[i];
      if (!s.is_call()) last_use_[at(s.from)] = i;
      for (const auto& each : s.takes)
        if (!each.is_number()) last_use_[at(each.buffer)] = i;
    }
    for (const int b : e_.outputs) last_use_[at(b)] = static_cast<int>(e_.steps.size());
  }
  bool used_behind(int buffer, int step) const { return last_use_[at(buffer)] > step; }
  /// True for an argument without a next state.
  bool is_kept(int buffer) const {
    for (int i = 0; i < p_.source.input_count(); ++i) {
      if (e_.inputs[i] != buffer) continue;
      for (int k = 0; k < p_.source.output_count(); ++k)
        if (p_.source.output_name(k) == p_.source.input_name(i)) return false;
      return true;
    }
    return false;
  }
  /// True if a copy of a buffer has arrived when a call begins.
  bool arrived(int copied, int call) const {
    for (int i = 0; i < static_cast<int>(e_.steps.size()); ++i)
      for (const auto& each : e_.steps[i].takes)
        if (each.buffer == e_.steps[copied].to && behind_[at(call)][at(i)] != 0) return true;
    return false;
  }
  static pt::tensor_type slice_of(const pt::tensor_type& t) {
    pt::tensor_type out{t.element, {}};
    for (int d = 1; d < t.shape.rank; ++d) out.shape.push_back(t.shape[d]);
    return out;
  }
  void check_type(const pt::call_operand& each, const pt::tensor_type& t, const char* what) {
    if (each.is_number()) return;
    const pt::tensor_type& held = e_.buffers[each.buffer].local;
    if (!((each.slice >= 0 ? slice_of(held) : held) == t))
      fault(std::string("type of what is ") + what);
  }
  void call(int i) {
    const pt::pipeline_step& s = e_.steps[i];
    const std::string who = "call " + std::to_string(s.number);
    const pt::pipeline_function& f = e_.functions[s.function];
    const pt::program& code = p_.function(f.units[0]).device.local;
    int& last = last_[at(s.mesh)];
    if ((last < 0 ? -1 : e_.steps[last].number) != s.after) fault(who + " is behind another");
    wait(i, last);
    last = i;
    if (static_cast<int>(s.takes.size()) != code.input_count() ||
        static_cast<int>(s.gives.size()) != code.output_count())
      return fault(who + ": number of arguments or results");
    std::int64_t taken = 0, there = 0;
    for (int k = 0; k < code.input_count(); ++k) {
      const pt::call_operand& each = s.takes[k];
      check_type(each, code.input_type(k), "taken");
      if (each.is_number()) continue;
      const pt::pipeline_buffer& b = e_.buffers[each.buffer];
      if (b.mesh != s.mesh) fault(who + " takes from another mesh");
      const bool fresh = b.accumulates && live_.count(each.buffer) == 0;
      if (!fresh) need(each.buffer, who);
      if (!fresh && each.slice < 0) taken += b.bytes();
      wait(i, made_by_[at(each.buffer)]);
    }
    for (const int b : live_)
      if (e_.buffers[b].mesh == s.mesh) there += e_.buffers[b].bytes();
    if (there - taken != s.reserved)
      fault(who + " reserves " + std::to_string(s.reserved) + ", not " +
            std::to_string(there - taken));
    for (int k = 0; k < code.output_count(); ++k) {
      check_type(s.gives[k], code.output_type(k), "given");
      live_.insert(s.gives[k].buffer);
      made_by_[at(s.gives[k].buffer)] = i;
    }
    for (int k = 0; k < code.input_count(); ++k) {
      const pt::call_operand& each = s.takes[k];
      const int alias = f.alias[k];
      if (alias >= 0 && f.donated[k] == 0) fault(who + ": an alias of what is not donated");
      if (alias >= 0 && !(code.input_type(k) == code.output_type(alias))) fault(who + ": an alias");
      if (f.donated[k] == 0 || each.is_number() || each.slice >= 0) continue;
      for (int c = 0; c < i; ++c)
        if (e_.steps[c].from == each.buffer && !arrived(c, i)) fault(who + " donates what is sent");
      const bool again =
          e_.buffers[each.buffer].accumulates && alias >= 0 && s.gives[alias].buffer == each.buffer;
      if (!again && used_behind(each.buffer, i)) fault(who + " donates what is used later");
      if (!again && is_kept(each.buffer)) fault(who + " donates what the caller keeps");
      if (!again) live_.erase(each.buffer);
    }
  }
  /// Drops buffers that no later step needs, except arguments.
  void drop_unneeded(int i) {
    for (auto b = live_.begin(); b != live_.end();) {
      const bool argument = e_.buffers[*b].is_argument && e_.buffers[*b].first < 0;
      b = argument || used_behind(*b, i) ? std::next(b) : live_.erase(b);
    }
  }
};

/// Checks `export_calls` of a pipeline, with its statements about every step.
inline std::string fault_of(const pt::pipelined& p) {
  const pt::exported_pipeline e = pt::export_calls(p);
  if (e.error) return data::str(e.error.message);
  return checker(p, e).run();
}

}  // namespace exported_check
