/// Orders from a list scheduler: a free mesh runs the ready call that its rules prefer.
#pragma once

#include <cstddef>
#include <cstdint>

#include <partita/mpmd/fragment_call.hpp>
#include <partita/mpmd/pipeline_order.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Costs of the calls of a pipeline whose stages are alike.
struct pipeline_costs {
  double forward = 1, input = 1, weight = 1;  ///< seconds of a stage's calls
  double transfer = 0;                        ///< seconds of a message
  double kept = 1;  ///< memory between the two parts of a backward, relative to that of a forward

  constexpr double seconds(const fragment_call& c) const {
    if (c.transposed == 0) return forward;
    if (c.part == fragment_part::whole) return input + weight;
    return c.part == fragment_part::input ? input : weight;
  }
  /// The change of memory by a call, in units of what a stage's forward keeps.
  constexpr double memory(const fragment_call& c) const {
    if (c.transposed == 0) return 1;
    if (c.part == fragment_part::whole) return -1;
    return c.part == fragment_part::input ? kept - 1 : -kept;
  }
};

namespace mpmd_detail {

/// Rules of the list scheduler.
struct list_rules {
  double gap = 1;   ///< a second part of a backward runs in a gap of at least this part of its time
  double wait = 0;  ///< a forward waits for a backward that is ready within this part of its time
  /// Priority among calls that are ready at the same time. True: the forward of the mesh's last
  /// stage, then backwards of earlier stages, then other forwards. False: backwards, then forwards,
  /// of later stages first.
  bool forward_first = false;
  bool full_first = false;  ///< with full memory second parts run immediately while forwards
                            ///< remain, then only in gaps
};

/// Runs ready calls, a backward before a forward and a later stage before an earlier one. The
/// second part of a backward runs when a mesh would wait or when memory is full.
///
/// Source    the rules: Qi et al., arXiv:2401.10241, section 3.1
/// Work      calls times meshes
class list_scheduler {
 public:
  constexpr list_scheduler(const pipeline_shape& s, const pipeline_order& places,
                           const pipeline_costs& costs, double memory, const list_rules& rules)
      : s_(s), c_(costs), limit_(memory + 1e-9), rules_(rules) {
    ran_.resize(s.meshes, 0);
    mesh_.resize(s.stages, 0);
    stages_.resize(s.meshes, {});
    for (int stage = 0; stage < s.stages; ++stage) {
      mesh_[stage] = places.mesh_of(stage, s);
      stages_[mesh_[stage]].push_back(stage);
    }
    table_.rows.resize(s.meshes, {});
    left_.resize(s.meshes, {});
    for (auto* each : {&free_, &used_}) each->resize(s.meshes, 0);
    for (auto* each : {&forwards_, &backwards_}) each->resize(s.stages, 0);
    for (auto* each : {&forward_at_, &backward_at_})
      each->resize(std::size_t(s.stages) * s.microbatches, never);
    for (int i = 0; i < s.microbatches; ++i) forward_at_[i] = 0;
  }

  /// Returns an empty table if memory is too small.
  constexpr order_table run() {
    for (std::int64_t left = 3ll * s_.stages * s_.microbatches; left > 0; --left) {
      choice best;
      int mesh = -1;
      for (int m = 0; m < s_.meshes; ++m) {
        const choice c = next(m);
        if (c.at < best.at) {
          best = c;
          mesh = m;
        }
      }
      if (mesh < 0) return {};
      take(mesh, best);
    }
    return static_cast<order_table&&>(table_);
  }

 private:
  static constexpr double never = 1e300;
  enum kind_type : std::uint8_t { forward, input, weight };
  struct choice {
    double at = never;
    kind_type kind = forward;
    int stage = -1;
  };

  pipeline_shape s_;
  pipeline_costs c_;
  double limit_;
  list_rules rules_;
  vec<int> mesh_, forwards_, backwards_;  ///< by stage; number of calls that ran
  vec<vec<int>> stages_;                  ///< by mesh
  order_table table_;
  vec<vec<fragment_call>> left_;  ///< by mesh: second parts that wait, after those that ran
  vec<std::size_t> ran_;
  vec<double> free_, used_, forward_at_, backward_at_;

  constexpr double& at(vec<double>& times, int stage, int microbatch) {
    return times[std::size_t(stage) * s_.microbatches + microbatch];
  }
  constexpr bool waits(int m) const { return ran_[m] < left_[m].size(); }
  static constexpr double later(double a, double b) { return a > b ? a : b; }

  /// The next call of a mesh, and its start.
  constexpr choice next(int m) {
    choice f, b;
    for (const int stage : stages_[m]) {
      const bool last = stage == stages_[m].back();
      if (forwards_[stage] < s_.microbatches && room_for_forward(m, last))
        consider(f, {at(forward_at_, stage, forwards_[stage]), forward, stage}, m, true);
      if (backwards_[stage] < forwards_[stage])
        consider(b, {at(backward_at_, stage, backwards_[stage]), input, stage}, m,
                 !rules_.forward_first);
    }
    const choice c = backward_next(f, b, m) ? b : f;
    if (waits(m) && weight_next(m, c.at - free_[m])) return {free_[m], weight, -1};
    return c;
  }
  /// True if memory permits a forward. One place is reserved for the last stage so that no
  /// microbatch is stuck. `full_first` needs no reserve because that stage goes first.
  constexpr bool room_for_forward(int m, bool last) const {
    return used_[m] + (last || rules_.forward_first ? 1 : 2) <= limit_;
  }
  constexpr bool backward_next(const choice& f, const choice& b, int m) const {
    if (b.at == never || f.at == never) return f.at == never;
    if (rules_.forward_first) return f.stage == stages_[m].back() ? b.at < f.at : b.at <= f.at;
    return b.at <= f.at || b.at < f.at + rules_.wait * c_.forward;
  }
  constexpr bool weight_next(int m, double gap) const {
    if (gap >= rules_.gap * c_.weight - 1e-9) return true;
    return rules_.full_first && used_[m] + 1 > limit_ && forwards_remain(m);
  }
  constexpr bool forwards_remain(int m) const {
    for (const int stage : stages_[m])
      if (forwards_[stage] < s_.microbatches) return true;
    return false;
  }
  /// Keeps the earlier of two choices; at the same time, the later stage or the earlier one.
  constexpr void consider(choice& best, choice c, int m, bool later_stage) const {
    if (c.at == never) return;
    c.at = later(c.at, free_[m]);
    if (later_stage ? c.at <= best.at : c.at < best.at) best = c;
  }
  constexpr void take(int m, const choice& c) {
    if (c.kind == weight) return take_weight(m);
    const bool f = c.kind == forward;
    const int i = f ? forwards_[c.stage]++ : backwards_[c.stage]++;
    const fragment_call call{c.stage, m, f ? 0 : 1, i,
                             f ? fragment_part::whole : fragment_part::input};
    run_call(m, call, c.at);
    const int to = c.stage + (f ? 1 : -1);
    if (f && to == s_.stages)
      at(backward_at_, c.stage, i) = free_[m];
    else if (to >= 0)
      at(f ? forward_at_ : backward_at_, to, i) = free_[m] + (mesh_[to] == m ? 0 : c_.transfer);
    if (!f) left_[m].push_back({c.stage, m, 1, i, fragment_part::weight});
  }
  constexpr void take_weight(int m) { run_call(m, left_[m][ran_[m]++], free_[m]); }
  constexpr void run_call(int m, const fragment_call& call, double begin) {
    table_.rows[m].push_back(call);
    used_[m] += c_.memory(call);
    free_[m] = begin + c_.seconds(call);
  }
};

}  // namespace mpmd_detail

/// Two stages on each mesh in a V shape, with split backwards. If the calls of all stages take the
/// same time, a mesh never waits after its first call, and keeps at most as much as in one_f_one_b
/// (p microbatches of a mesh).
///
/// Pros      no bubble with the memory of one_f_one_b
/// Cons      twice the messages; an optimizer step that all meshes start together costs the bubble
/// Source    Qi et al., arXiv:2401.10241, section 6; generated by list scheduling of calls with
///           equal times: a mesh with full memory runs the second part of a backward immediately as
///           long as forwards remain, so that everything it keeps at the end is still to be run
inline constexpr pipeline_order zb_v{
    .name = "zb_v",
    .splits = true,
    .returns = true,
    .fits =
        [](const pipeline_shape& s, failure& error) {
          if (s.stages != 2 * s.meshes)
            error.record("O002", "order: ", s.stages, " stages on ", s.meshes,
                         " meshes; zb_v has two stages on each mesh");
        },
    .table =
        [](const pipeline_shape& s, order_table& out) {
          out = mpmd_detail::list_scheduler(s, zb_v, {}, 2.0 * s.meshes,
                                            {.forward_first = true, .full_first = true})
                    .run();
        }};

}  // namespace partita
