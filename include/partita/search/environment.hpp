/// Partitioning as a game: states, actions, steps, costs.
///
/// Source    PartIR, section 3 (AutomaticPartition). As its authors' talk proposes, the search's
///           view of a program is public, so that any optimizer or learner can play the game
#pragma once

#include <chrono>
#include <concepts>
#include <cstdint>
#include <type_traits>

#include <partita/core/core_program.hpp>
#include <partita/cost/cost.hpp>
#include <partita/cost/running_cost.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/schedule/search_course.hpp>
#include <partita/search/moves.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/place_table.hpp>

namespace partita {

/// Progress of a search, passed to `search_options::progress`.
struct search_progress {
  std::int64_t evaluations = 0;
  double seconds = 0;  ///< since the search began; 0 in constant evaluation
  double best = 0;     ///< the lowest cost so far: seconds, plus a penalty if memory is exceeded
  double first = 0;    ///< the cost before the search
};

struct search_result;

/// Limits and parameters of a search.
struct search_options {
  std::int64_t evaluations = 8000;  ///< maximum number of costs that are requested
  /// Approximate time limit; 0: no limit (ignored at compile time).
  double seconds = 40;
  double memory = 0;    ///< bytes of a device that may be used; 0: all it has
  bool overlap = true;  ///< true if collectives run in parallel with kernels
  /// Minimum relative cost reduction for which an action is taken.
  double least_gain = 1e-3;
  std::uint64_t seed = 1;                              ///< of the random numbers
  void (*progress)(const search_progress&) = nullptr;  ///< called when a lower cost is found
  search_result* result = nullptr;                     ///< filled with the result, if not null
};

/// A cost of a partitioned program that replaces the simulator's: any number, 0 or above, that a
/// search should minimize. It is called with the device-local program, which is lowered for each
/// state.
template <class M>
concept CostModel = requires(const M& m, const device_program& d) {
  { m(d) } -> std::convertible_to<double>;
};

namespace search_detail {
/// A user's cost model, with its type erased.
struct own_cost {
  virtual constexpr ~own_cost() = default;
  virtual constexpr double operator()(const device_program& d) const = 0;
};
template <CostModel M>
struct own_cost_of final : own_cost {
  const M& model;
  constexpr explicit own_cost_of(const M& m) : model(m) {}
  constexpr double operator()(const device_program& d) const override {
    return static_cast<double>(model(d));
  }
};
}  // namespace search_detail

/// Returns the cost of a program that may exceed the memory. A program that needs twice the
/// available memory costs 101 times its seconds. (A search therefore first finds states that fit,
/// then fast ones.)
constexpr double penalized(double seconds, double bytes, double memory) {
  const double excess = bytes / memory - 1;
  return excess > 0 ? seconds * (1 + 100 * excess) : seconds;
}

/// The game: a program, actions on it, and the costs of its states.
///
/// ```cpp
/// environment e(core, axes, a100_80, {});
/// for (int a = 0; a < e.action_count() && !e.spent(); ++a) {
///   if (e.step(a)) consider(e.cost());
///   e.go_back();  // to the last mark()
/// }
/// ```
///
/// Every action does what one `manual` tactic does, followed by propagation (see search_move). An
/// action that would give a state of the model and its next state different layouts keeps both
/// replicated along the axis, or is refused. Costs are those of `running_cost`; after a search,
/// `automatic` evaluates the best states with the simulator.
class environment {
 public:
  /// The actions taken since the beginning, by number.
  using path = vec<int>;
  /// An executed action: the values that it sliced, and the states that it kept replicated.
  struct done {
    int axis = 0;
    vec<search_move::member> members;
    vec<int> whole;           ///< indices in `targets`
    std::size_t changes = 0;  ///< length of the program's log after it
    std::uint64_t hash = 0;   ///< of the state after it
  };
  /// A step that can be repeated. It takes about 20 bytes for each loop that it adds.
  struct taken_step {
    int action = -1;
    done what;
    partition_step change;
  };
  /// A partitioning to return to. It takes about 50 bytes per op. (A path is smaller, but its steps
  /// must be executed again.)
  struct state {
    partition_state core;
    path taken;
    vec<done> history;
    constexpr std::uint64_t hash() const { return history.empty() ? 0 : history.back().hash; }
  };

  /// `axes` are numbers in core_program::named. `own` replaces the simulator's cost and must
  /// outlive the environment; it may be null. So may `staged`, the pipeline that runs the program
  /// once per microbatch, and `following`, the tactics after the search.
  constexpr environment(const core_program& c, const vec<int>& axes, const machine& on,
                        const search_options& options, const search_detail::own_cost* own = nullptr,
                        const staged_program* staged = nullptr,
                        const following_tactics* following = nullptr)
      : options_(options),
        own_(own),
        staged_(staged),
        following_(following),
        work_(staged != nullptr ? staged->work() : staged_work()),
        on_(on),
        root_(c),
        list_(hold_states(), axes),
        now_(root_),
        behind_(following != nullptr ? new tactic_context(now_) : nullptr),
        stamps_(root_.p.ops.size(), 0),
        counts_(root_.p.ops.size(), 0),
        cost_(now_, on_, {.overlap = options.overlap}, staged != nullptr ? &work_ : nullptr),
        memory_(options.memory > 0 ? options.memory : on.device.memory),
        is_next_(root_.p.types.size(), -1),
        stacks_(stacked_values(root_)),
        seen_(root_.p.ops.size(), 0) {
    const auto& targets = list_.targets();
    state_at_.assign(root_.p.ops.size(), -1);
    is_member_.assign(root_.p.types.size(), 0);
    for (int t = 0; t < static_cast<int>(targets.size()); ++t) {
      is_next_[targets[t].value] = t;
      if (targets[t].state < 0) continue;
      for (value_id v : {targets[t].value, targets[t].state}) {
        int& first = state_at_[root_.p.producer(root_.holder(v))];
        state_ends_.push_back({t, first});
        first = static_cast<int>(state_ends_.size()) - 1;
      }
    }
    if (!std::is_constant_evaluated()) began_ = std::chrono::steady_clock::now();
    begin_.core = root_.state();
    mark();
    const estimated begin = evaluate();
    first_peak_ = begin.peak_bytes;
    first_ = best_cost_ = cost_of(begin);
    if (own_ == nullptr)
      bound_ = cost_.bound(following_ != nullptr ? all_devices() : pieces_of(axes));
  }
  constexpr ~environment() { delete behind_; }
  environment(const environment&) = delete;  // its costs refer to its program
  environment& operator=(const environment&) = delete;

  // ---- The state --------------------------------------------------------------------------------

  /// Returns the program in its current state.
  constexpr const core_program& core() const { return now_; }
  /// Returns the actions that led to this state. A copy of them identifies the state: `go_to`
  /// returns to it.
  constexpr const path& taken() const { return taken_; }
  /// Returns a hash that is equal for equal partitionings, whatever actions led to them.
  constexpr std::uint64_t hash() const { return history_.empty() ? 0 : history_.back().hash; }

  // ---- Actions ----------------------------------------------------------------------------------

  /// Returns the number of actions, legal or not.
  constexpr int action_count() const { return static_cast<int>(list_.moves().size()); }
  /// Returns action number `a`.
  constexpr const search_move& action(int a) const { return list_.moves()[a]; }
  /// True if the action may change the state. (It may still be refused.)
  constexpr bool legal(int a) const {
    const search_move& move = list_.moves()[a];
    const unsigned parts = bits_of(move.axis);
    for (const auto& m : move.members)
      if (dim_for(m, move.axis, parts) >= 0) return true;
    return false;
  }
  /// True if searches consider the action. Every action may be taken; sparing ones are considered
  /// only after `offer_sparing(true)`.
  constexpr bool offered(int a) const { return offers_sparing_ || !action(a).sparing; }
  /// Switches sparing actions on or off; returns whether there are any.
  constexpr bool offer_sparing(bool now) {
    offers_sparing_ = now;
    for (const auto& m : list_.moves())
      if (m.sparing) return true;
    return false;
  }
  /// Executes an action and propagates. Returns false, and changes nothing, if it is refused.
  constexpr bool step(int a) {
    if (!legal(a)) return false;
    from_mark_ = taken_.size() == mark_.taken.size() && hash() == mark_.hash();
    if (!from_mark_) before_ = now_.state();
    const partition_state& before = from_mark_ ? mark_.core : before_;
    const search_move& m = list_.moves()[a];
    vec<int> whole;
    for (int round = 0; round < most_rounds; ++round) {
      resolved_.clear();
      if (!attempt(m, before.changes.size(), whole)) break;
      if (mismatched_.empty()) {
        taken_.push_back(a);
        const std::uint64_t h = hash() + difference(before);
        const done d{m.axis, resolved_, whole, now_.state().changes.size(), h};
        history_.push_back(d);
        return true;
      }
      for (int t : mismatched_) whole.push_back(t);
      if (round + 1 < most_rounds) undo(before);
    }
    undo(before);
    return false;
  }
  /// Gets the last step for `redo`; requires that nothing was done since. Returns false if the step
  /// cannot be repeated because it split an axis.
  constexpr bool last_step(taken_step& s) {
    if (!now_.step_from(from_mark_ ? mark_.core : before_, s.change, counts_)) return false;
    s.action = taken_.back();
    s.what = history_.back();
    return true;
  }
  /// Repeats a step; the state must be the one in which it was first executed.
  ///
  /// Cost      linear in the changes of the step
  constexpr void redo(const taken_step& s) {
    now_.redo(s.change);
    taken_.push_back(s.action);
    history_.push_back(s.what);
  }
  /// Returns a copy of the current state.
  constexpr state save() const {
    state s;
    save(s);
    return s;
  }
  /// Returns to a saved state.
  constexpr void restore(const state& s) {
    std::size_t same = 0;
    while (same < s.taken.size() && same < taken_.size() && s.taken[same] == taken_[same]) ++same;
    const std::size_t common = same > 0 ? history_[same - 1].changes : root_.state().changes.size();
    note_undone(common);
    if (same == s.taken.size())
      now_.undo_to(s.core);
    else
      now_.restore(s.core);
    taken_ = s.taken;
    history_ = s.history;
  }
  /// Marks the state that `go_back` returns to.
  constexpr void mark() { save(mark_); }
  /// Returns the marked state.
  constexpr const state& marked() const { return mark_; }
  /// Returns to the marked state.
  constexpr void go_back() { restore(mark_); }
  /// Goes to the state that some actions lead to from the beginning. Returns false if one of them
  /// is refused.
  constexpr bool go_to(const path& actions) {
    restore(begin_);
    bool all = true;
    for (int a : actions) all = step(a) && all;
    return all;
  }

  // ---- Costs ------------------------------------------------------------------------------------

  /// Returns the cost of the state: seconds of a step, plus a penalty if memory is exceeded. The
  /// cost of a known state is cached, but counts as an evaluation. Returns `hopeless` if the budget
  /// is spent.
  constexpr double cost() {
    if (spent()) return hopeless;
    ++evaluations_;
    const std::uint64_t h = hash();
    const int place = known_.find(hash_of(h), [&](int i) { return states_[i].hash == h; });
    if (place >= 0) return reported(states_[place].figures);
    const estimated now = evaluate();
    states_.push_back({h, now, static_cast<int>(paths_.size()), static_cast<int>(taken_.size())});
    paths_.insert_back(taken_.begin(), taken_.end());
    known_.insert(static_cast<int>(states_.size()) - 1,
                  [&](int i) { return hash_of(states_[i].hash); });
    const double c = cost_of(now);
    if (c < best_cost_) improve(c);
    add_candidate(c, states_.back());
    return reported(now);
  }
  /// Selects whether costs include the penalty for memory. (The best state is always chosen by
  /// costs that include it.)
  constexpr void count_memory(bool now) { counts_memory_ = now; }
  /// Figures of a state by the simulator (or the user's model), from the lowered program.
  struct exact {
    double cost = hopeless;
    double peak_bytes = 0;  ///< of a device
  };
  /// Returns these figures. It is slow, and does not count as an evaluation.
  constexpr exact exact_figures() const {
    if (following_ == nullptr) return exact_figures(now_);
    core_program c(now_);
    tactic_context behind(c);
    behind.settles = false;
    behind.staged = staged_;
    following_->apply(behind);
    return behind.error ? exact() : exact_figures(c);
  }
  /// Returns the cost by the simulator (or the user's model).
  constexpr double exact_cost() const { return exact_figures().cost; }
  /// Compares the memory of the best state with the simulator. If it is close to the limit, the
  /// memory estimates of all states are corrected by the same factor, so that they agree on this
  /// state, and the known states are ranked again. Returns true if the best state exceeds the
  /// memory although its estimate did not.
  constexpr bool check_memory() {
    if (own_ != nullptr) return false;
    go_to(path(best_));
    const double peak = exact_figures().peak_bytes, seen = estimated_peak();
    if (!(peak > 0) || !(seen > 0) || (peak > seen ? peak : seen) < near_all * memory_)
      return false;
    correct_memory(peak / seen);
    return peak > memory_ && seen < peak;
  }
  /// True if the best state fits into memory by the estimate.
  constexpr bool fits() {
    if (own_ != nullptr) return true;
    go_to(path(best_));
    return estimated_peak() <= memory_;
  }
  /// True if the initial state exceeds the memory by the estimate.
  constexpr bool began_too_large() const { return first_peak_ > memory_; }
  /// Extends the budget by a fraction of the original one, starting from now.
  constexpr void grant(double more) {
    budget_ = (spent_part() > 1 ? spent_part() : 1) * budget_ + more;
  }
  /// A candidate for the simulator. The list is ordered by cost and has one state for each pair of
  /// figures.
  struct leader {
    double cost = 0, peak_bytes = 0;
    path taken;
  };
  /// Returns the best states seen so far, best first.
  constexpr const vec<leader>& leaders() const { return leaders_; }
  /// Returns the best states among those that fit.
  constexpr const vec<leader>& fitting() const { return fitting_; }
  constexpr double memory() const { return memory_; }  ///< bytes that may be used
  /// Cost of a state that must not be chosen.
  static constexpr double hopeless = 1e300;
  constexpr double first() const { return first_; }  ///< the cost at the beginning
  /// Returns a lower bound of the costs along these axes: all devices share all work equally, and
  /// nothing is sent.
  constexpr double lower_bound() const { return bound_; }
  /// Returns the lowest cost so far.
  constexpr double best_cost() const { return best_cost_; }
  /// Returns the actions that lead to the best state so far.
  constexpr const path& best() const { return best_; }
  /// Returns the number of costs requested so far.
  constexpr std::int64_t evaluations() const { return evaluations_; }
  /// Returns the number of distinct partitionings that were evaluated.
  constexpr std::int64_t states_seen() const { return static_cast<std::int64_t>(states_.size()); }
  /// Returns the seconds since the search began; 0 in constant evaluation.
  constexpr double seconds() const {
    if (std::is_constant_evaluated()) return 0;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  /// True if the budget is spent.
  constexpr bool spent() const { return spent_part() >= 1; }
  /// Returns the fraction of the budget that is spent, from 0; 1 or more if it is exhausted.
  constexpr double spent_part() const {
    const double part =
        static_cast<double>(evaluations_) / static_cast<double>(options_.evaluations);
    const double of_time = options_.seconds > 0 ? seconds() / options_.seconds : 0;
    return (part > of_time ? part : of_time) / budget_;
  }
  /// Returns the limits and parameters of the search.
  constexpr const search_options& options() const { return options_; }

  using improvement = search_course::improvement;
  /// Returns the evaluations that lowered the best cost.
  constexpr const vec<improvement>& improvements() const { return improvements_; }

  // ---- The record -------------------------------------------------------------------------------

  /// Returns the executed actions that led to the current state.
  constexpr const vec<done>& history() const { return history_; }
  /// Returns the inputs and tags that actions slice.
  constexpr const vec<search_detail::named_target>& targets() const { return list_.targets(); }
  /// Returns the program in its initial state.
  constexpr const core_program& root() const { return root_; }
  /// Returns the target that a value is, or -1.
  constexpr int target_of(value_id v) const { return is_next_[v]; }

 private:
  struct estimated {
    double seconds = 0, peak_bytes = 0;
  };
  struct known_state {
    std::uint64_t hash = 0;
    estimated figures;
    int first = 0, count = 0;  ///< the actions that led there, in `paths_`
  };
  /// Maximum number of attempts: keeping one state replicated may cause a mismatch in another one.
  static constexpr int most_rounds = 4;

  search_options options_;
  const search_detail::own_cost* own_;
  const staged_program* staged_;
  const following_tactics* following_;
  staged_work work_;
  machine on_;
  core_program root_;
  search_detail::move_list list_;
  core_program now_;
  tactic_context* behind_;  ///< of `now_`, for the tactics that follow, or null
  partition_state unfollowed_;
  /// True if costs include the following tactics; false once these insert ops.
  bool follows_ = true;
  double correction_ = 1;  ///< factor on the estimated memory
  double budget_ = 1;      ///< as a multiple of the original budget
  state begin_, mark_;
  partition_state before_;
  /// True if the last step started at the mark, else it started at `before_`.
  bool from_mark_ = false;
  vec<int> stamps_, counts_;  ///< by op
  int stamp_ = 0;
  running_cost cost_;
  double memory_;
  vec<int> is_next_;  ///< by value: the number of its target, or -1
  vec<char> stacks_;  ///< by value, see stacked_values
  path taken_, best_;
  vec<done> history_;
  vec<op_id> changed_ops_;   ///< ops whose loops may have changed since the last evaluation
  vec<std::uint64_t> seen_;  ///< by op: a hash of its loops at the last evaluation
  std::size_t read_ = 0;     ///< length of the part of now_.state().changes that was evaluated
  vec<search_move::member> resolved_;
  bool refused_ = false;
  bool offers_sparing_ = false;  ///< true if sparing moves are offered
  bool counts_memory_ = true;
  /// Targets whose next state is sliced along the axis although they themselves are not.
  vec<int> mismatched_;
  /// An op's link to a target whose value or next state it computes, and the next link of the op.
  struct state_end {
    int target = -1, next = -1;
  };
  vec<int> state_at_;  ///< by op: the first of `state_ends_`, or -1
  vec<state_end> state_ends_;
  vec<int> is_member_;  ///< by value: the stamp of the last step that it was a member of
  int member_stamp_ = 0;
  vec<known_state> states_;
  vec<int> paths_;
  place_table known_;
  vec<improvement> improvements_;
  vec<leader> leaders_, fitting_;
  double first_ = 0, first_peak_ = 0, best_cost_ = 0, bound_ = 0;
  std::int64_t evaluations_ = 0;
  std::chrono::steady_clock::time_point began_ = {};

  /// Adds a place for loops at each next state, so that no action has to insert an op.
  constexpr const core_program& hold_states() {
    for (const auto& t : search_detail::targets_of(root_.p))
      if (t.state >= 0) root_.hold(t.state);
    if (following_ != nullptr) hold_for_others();
    root_.propagate();
    return root_;
  }
  /// Does the same for the values that the tactics after the search will place.
  constexpr void hold_for_others() {
    core_program c(root_);
    tactic_context behind(c);
    behind.settles = false;
    following_->apply(behind);
    for (op_id o = root_.p.op_count(); o < c.p.op_count(); ++o)
      if (c.p.is(o, op_role::tiling))
        if (const value_id v = c.source_of(c.p.op(o).result); v < root_.p.value_count())
          root_.hold(v);
  }
  constexpr double all_devices() const {
    double n = 1;
    for (int a = 0; a < root_.mesh.whole_rank(); ++a)
      n *= static_cast<double>(root_.mesh.whole_size(a));
    return n;
  }
  constexpr double pieces_of(const vec<int>& axes) const {
    double n = 1;
    for (int a : axes) n *= static_cast<double>(root_.named.size(a));
    return n;
  }
  static constexpr std::size_t most_leaders = 12, most_fitting = 4;
  static constexpr double near_all = 0.9;  ///< fraction of the memory
  constexpr void add_candidate(double c, const known_state& s) {
    insert(leaders_, most_leaders, c, s);
    if (s.figures.peak_bytes * correction_ <= memory_) insert(fitting_, most_fitting, c, s);
  }
  constexpr void insert(vec<leader>& list, std::size_t most, double c, const known_state& s) const {
    if (list.size() == most && !(c < list.back().cost)) return;
    for (const leader& each : list)
      if (each.cost == c && each.peak_bytes == s.figures.peak_bytes) return;
    if (list.size() == most) list.pop_back();
    const int* const taken = paths_.data() + s.first;
    list.push_back({c, s.figures.peak_bytes, path(taken, taken + s.count)});
    for (std::size_t i = list.size() - 1; i > 0 && list[i].cost < list[i - 1].cost; --i) {
      const leader other = list[i];
      list[i] = list[i - 1];
      list[i - 1] = other;
    }
  }
  constexpr void improve(double c) {
    best_cost_ = c;
    best_ = taken_;
    improvements_.push_back({evaluations_, seconds(), c});
    if (options_.progress != nullptr)
      options_.progress({evaluations_, seconds(), best_cost_, first_});
  }
  /// Returns the peak memory of the state, as estimated.
  constexpr double estimated_peak() { return evaluate().peak_bytes * correction_; }
  constexpr void correct_memory(double ratio) {
    correction_ *= ratio;
    leaders_.clear();
    fitting_.clear();
    for (const known_state& s : states_) add_candidate(cost_of(s.figures), s);
    if (leaders_.empty()) return;
    best_ = leaders_[0].taken;
    best_cost_ = leaders_[0].cost;
  }
  constexpr double cost_of(const estimated& f) const {
    return penalized(f.seconds, f.peak_bytes * correction_, memory_);
  }
  constexpr double reported(const estimated& f) const {
    return counts_memory_ ? cost_of(f) : f.seconds;
  }
  constexpr estimated evaluate() {
    if (own_ != nullptr) return {exact_cost(), 0};
    if (following_ == nullptr || !follows_) return estimate();
    unfollowed_ = now_.state();
    estimated out{hopeless, 0};
    if (follow()) out = estimate();
    if (follows_) undo(unfollowed_);
    return follows_ ? out : estimate();
  }
  constexpr estimated estimate() {
    note_changes();
    drop_unchanged();
    cost_.update(changed_ops_);
    changed_ops_.clear();
    return {cost_.time(), cost_.peak_bytes()};
  }
  /// Applies the tactics after the search; returns whether that is possible.
  constexpr bool follow() {
    const std::int64_t before = now_.edits();
    behind_->settles = false;
    behind_->error = {};
    behind_->notes.clear();
    following_->apply(*behind_);
    if (now_.edits() == before) return !behind_->error;
    follows_ = false;
    now_.loop_program::restore(root_, false);
    now_.loop_program::restore(unfollowed_);
    return false;
  }
  constexpr exact exact_figures(const core_program& c) const {
    if (staged_ != nullptr && own_ == nullptr) {
      const staged_figures f = staged_->figures(c, on_, options_.overlap);
      if (f.error) return {};
      return {penalized(f.seconds, f.peak_bytes, memory_), f.peak_bytes};
    }
    const lowered l = lower(c);
    if (l.error) return {};
    const auto bytes = static_cast<double>(partita::estimate(l.device).peak_bytes);
    if (own_ != nullptr) return {(*own_)(l.device), bytes};
    return {penalized(simulate(l.device, on_, {.overlap = options_.overlap}).time, bytes, memory_),
            bytes};
  }
  /// Removes the ops whose loops did not change from the list of ops to evaluate.
  constexpr void drop_unchanged() {
    std::size_t left = 0;
    bool all = false;
    ++stamp_;
    for (std::size_t i = 0; i < changed_ops_.size() && !all; ++i) {
      const op_id o = changed_ops_[i];
      all = o < 0;
      if (!all && !loops_changed(o)) continue;
      changed_ops_[left++] = o;
    }
    for (op_id o = 0; all && o < now_.p.op_count(); ++o) loops_changed(o);
    changed_ops_.resize(left, -1);
  }
  constexpr bool loops_changed(op_id o) {
    if (stamps_[o] == stamp_) return false;
    stamps_[o] = stamp_;
    std::uint64_t now = 0;
    for (const loop& l : now_.state().nests[o])
      now = (now + static_cast<std::uint64_t>((l.factor + 1) * max_axes + l.axis + 1)) *
            0x9e3779b97f4a7c15u;
    if (now == seen_[o]) return false;
    seen_[o] = now;
    return true;
  }
  /// Returns the change of the hash since `before`. The hash is a sum over all loops: the factor,
  /// the axis, and the number of earlier loops over that factor.
  constexpr std::uint64_t difference(const partition_state& before) {
    std::uint64_t sum = 0;
    ++stamp_;
    for (std::size_t i = before.changes.size(); i < now_.state().changes.size(); ++i) {
      const op_id o = now_.state().changes[i];
      if (o < 0) return hash_of_all() - hash();
      if (stamps_[o] == stamp_) continue;
      stamps_[o] = stamp_;
      sum += hash_of_loops(o, now_.state().nests[o], before.nests[o].count);
    }
    return sum;
  }
  constexpr std::uint64_t hash_of_all() const {
    std::uint64_t sum = 0;
    for (op_id o = 0; o < now_.p.op_count(); ++o)
      sum +=
          hash_of_loops(o, now_.state().nests[o], 0) - hash_of_loops(o, root_.state().nests[o], 0);
    return sum;
  }
  constexpr std::uint64_t hash_of_loops(op_id o, const nest& n, int from) const {
    std::uint64_t sum = 0;
    for (int i = from; i < n.count; ++i) {
      const loop& l = n.loops[i];
      int before = 0;
      for (int k = 0; k < i; ++k) before += n.loops[k].factor == l.factor;
      const auto axis = static_cast<std::uint64_t>(l.axis), number = static_cast<std::uint64_t>(o);
      const auto what = static_cast<std::uint64_t>(l.factor + 2) * 8 +
                        static_cast<std::uint64_t>(l.factor == any_factor ? 0 : before);
      sum += hash_of(hash_of(number * 8 + axis) + what * 0x9e3779b97f4a7c15u);
    }
    return sum;
  }
  /// Adds a range of the change log to the ops to evaluate.
  constexpr void note_changed(std::size_t from, std::size_t to) {
    const vec<op_id>& changes = now_.state().changes;
    for (std::size_t i = from; i < to; ++i) changed_ops_.push_back(changes[i]);
  }
  constexpr void save(state& s) const {
    s.core = now_.state();
    s.taken = taken_;
    s.history = history_;
  }
  constexpr void note_changes() {
    note_changed(read_, now_.state().changes.size());
    read_ = now_.state().changes.size();
  }
  /// Called before the log is truncated to `common`: undone changes have to be evaluated again,
  /// unless they never were.
  constexpr void note_undone(std::size_t common) {
    if (read_ <= common) return;
    note_changed(common, read_);
    read_ = common;
  }
  /// Returns to the start of the current step.
  constexpr void undo(const partition_state& before) {
    note_undone(before.changes.size());
    now_.undo_to(before);
  }

  /// Returns the parts of an axis, as bits.
  constexpr unsigned bits_of(int axis) const {
    unsigned bits = 0;
    for (int part : now_.parts(axis)) bits |= 1u << part;
    return bits;
  }
  /// True if the value has a loop over one of these axes: it is sliced or kept replicated.
  constexpr bool has_loop(value_id v, unsigned axes) const {
    return (now_.nests.axes()[now_.p.producer(now_.holder(v))] & axes) != 0;
  }
  /// Returns the dimension of a value that a move slices, or -1.
  constexpr int dim_for(const search_move::member& m, int axis, unsigned parts) const {
    if (has_loop(m.value, parts)) return -1;
    const value_id v = now_.holder(m.value);
    const shape left = now_.produced_layout(v).local(now_.p.type(v).shape, now_.mesh);
    const std::int64_t n = now_.named.size(axis);
    const auto fits = [&](int d) { return left[d] > 0 && left[d] % n == 0; };
    if (m.dim != search_move::first_divisible) return fits(m.dim) ? m.dim : -1;
    for (int d = stacks_.empty() ? 0 : stacks_[m.value]; d < left.rank; ++d)
      if (fits(d)) return d;
    return -1;
  }
  /// Executes a move like `manual`: places inputs, propagates, then places next states that differ.
  constexpr bool attempt(const search_move& m, std::size_t from, const vec<int>& whole) {
    ++member_stamp_;
    const unsigned parts = bits_of(m.axis);
    for (int t : whole)
      for (value_id v : {targets()[t].value, targets()[t].state})
        if (now_.is_tiled(v, m.axis) || now_.atomic(v, m.axis)) return false;
    for (const auto& each : m.members) {
      const int dim = dim_for(each, m.axis, parts);
      if (dim < 0 || now_.tile(each.value, dim, m.axis)) {
        if (!m.optional) return false;
        continue;
      }
      resolved_.push_back({each.value, dim});
      is_member_[each.value] = member_stamp_;
    }
    if (resolved_.empty()) return false;
    do now_.propagate();
    while (bring_states(m.axis, from));
    return !refused_;
  }
  /// Returns the dimension that is sliced along all parts of an axis, -1 for no part, -2 otherwise.
  constexpr int dim_along(value_id v, const axis_list& parts) const {
    const layout have = now_.produced_layout(now_.holder(v));
    const int dim = parts.count > 0 ? have.dim_of(parts.axes[0]) : -1;
    for (int a : parts)
      if (have.dim_of(a) != dim) return -2;
    return dim;
  }
  /// Calls f(target, dimension of the state, dimension of the next state) for the targets that this
  /// step may have changed.
  template <class F>
  constexpr void for_each_state(int axis, std::size_t from, const F& f) const {
    const axis_list parts = now_.parts(axis);
    const vec<op_id>& changes = now_.state().changes;
    for (std::size_t i = from; i < changes.size(); ++i) {
      if (changes[i] < 0) {
        for (int t = 0; t < static_cast<int>(targets().size()); ++t)
          if (targets()[t].state >= 0) visit_state(t, parts, f);
        return;
      }
      for (int e = state_at_[changes[i]]; e >= 0; e = state_ends_[e].next)
        visit_state(state_ends_[e].target, parts, f);
    }
  }
  template <class F>
  constexpr void visit_state(int t, const axis_list& parts, const F& f) const {
    f(t, dim_along(targets()[t].value, parts), dim_along(targets()[t].state, parts));
  }
  /// Slices next states in the same way as propagation sliced the states. Returns whether there was
  /// any such state; in that case the list of mismatched states is not final.
  constexpr bool bring_states(int axis, std::size_t from) {
    refused_ = false;
    mismatched_.clear();
    vec<search_move::member> list;
    for_each_state(axis, from, [&](int t, int dim, int next) {
      if (dim >= 0 && next != dim) list.push_back({targets()[t].value, dim});
      if (dim == -1 && next != -1 && !is_mismatched(t)) mismatched_.push_back(t);
    });
    bool any = false;
    const unsigned parts = bits_of(axis);
    const bool one_part = (parts & (parts - 1)) == 0;
    for (const auto& m : list) {
      const value_id next = targets()[is_next_[m.value]].state;
      if (now_.dim_of(next, axis) == m.dim) continue;
      refused_ = refused_ || (one_part && has_loop(next, parts)) ||
                 static_cast<bool>(now_.tile(next, m.dim, axis));
      if (is_member_[m.value] != member_stamp_) resolved_.push_back(m);
      is_member_[m.value] = member_stamp_;
      any = true;
    }
    return any && !refused_;
  }
  constexpr bool is_mismatched(int t) const {
    for (int each : mismatched_)
      if (each == t) return true;
    return false;
  }
};

}  // namespace partita
