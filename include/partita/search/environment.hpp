/// A program under partitioning as a game: states, actions, steps, costs.
///
/// Source    PartIR, section 3 (AutomaticPartition), and the idea of its talk: the search's view of
///           a program is public, so that anybody's optimizer or learner plays it
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

/// How a search goes on; told to `search_options::progress`.
struct search_progress {
  std::int64_t evaluations = 0;
  double seconds = 0;  ///< since the search began; 0 in constant evaluation
  double best = 0;     ///< the least cost so far: seconds, more where memory is exceeded
  double first = 0;    ///< the cost before the search
};

struct search_result;

/// Where a search ends, and what it may use.
struct search_options {
  std::int64_t evaluations = 8000;  ///< at most so many costs are asked for
  double seconds = 40;              ///< about so long; 0: no limit (ignored at compile time)
  double memory = 0;                ///< bytes of a device that may be used; 0: all it has
  bool overlap = true;              ///< do collectives run beside kernels?
  double least_gain = 1e-3;         ///< an action is taken if it makes the cost less by this part
  std::uint64_t seed = 1;           ///< of what is drawn
  void (*progress)(const search_progress&) = nullptr;  ///< called when a lower cost is found
  search_result* result = nullptr;                     ///< is filled, if it is given
};

/// A cost of a program under partitioning, in place of the simulator's: anything that a search is
/// to make small, 0 or above. It sees the device-local program, lowered anew for each state.
template <class M>
concept CostModel = requires(const M& m, const device_program& d) {
  { m(d) } -> std::convertible_to<double>;
};

namespace search_detail {
/// A user's cost model, whatever its type.
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

/// What a program costs whose memory may be too small: a program of twice the memory costs as much
/// as one that takes a hundred times longer, and one. (So a search first finds what fits, then what
/// is fast.)
constexpr double penalized(double seconds, double bytes, double memory) {
  const double excess = bytes / memory - 1;
  return excess > 0 ? seconds * (1 + 100 * excess) : seconds;
}

/// A program, and actions on it that end in costs.
///
/// ```cpp
/// environment e(core, axes, a100_80, {});
/// for (int a = 0; a < e.action_count() && !e.spent(); ++a) {
///   if (e.step(a)) consider(e.cost());
///   e.go_back();  // to the last mark()
/// }
/// ```
///
/// Every action is what one `manual` tactic does, then propagation (see search_move); an action
/// that would leave a state and its next state unlike keeps the next state whole, or is refused.
/// Costs are those of `running_cost`; where a searcher ends, `automatic` looks at the best states
/// with the simulator itself.
class environment {
 public:
  /// What was done since the beginning: actions by number.
  using path = vec<int>;
  /// An action as it was taken: values that it sliced, and next states that it kept whole.
  struct done {
    int axis = 0;
    vec<search_move::member> members;
    vec<int> whole;           ///< in `targets`
    std::size_t changes = 0;  ///< in the program's log, up to here
    std::uint64_t hash = 0;   ///< of the state behind it
  };
  /// A step, to be taken again: about 20 bytes for each loop that it adds.
  struct taken_step {
    int action = -1;
    done what;
    partition_step change;
  };
  /// A partitioning, to return to: about 50 bytes for an op. (A path is less, but takes its steps.)
  struct state {
    partition_state core;
    path taken;
    vec<done> history;
    constexpr std::uint64_t hash() const { return history.empty() ? 0 : history.back().hash; }
  };

  /// `axes`: numbers of core_program::named.
  /// `own`: a cost in place of the simulator's, which outlives it, or null; `staged`: the pipeline
  /// that the program is a microbatch of, as well; `following`: the tactics behind the search.
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

  constexpr const core_program& core() const { return now_; }
  /// The actions that led to it. A state is a copy of this: `go_to` returns.
  constexpr const path& taken() const { return taken_; }
  /// Equal for equal partitionings, whatever led there.
  constexpr std::uint64_t hash() const { return history_.empty() ? 0 : history_.back().hash; }

  // ---- Actions ----------------------------------------------------------------------------------

  constexpr int action_count() const { return static_cast<int>(list_.moves().size()); }
  constexpr const search_move& action(int a) const { return list_.moves()[a]; }
  /// May it change the state? (It may still be refused.)
  constexpr bool legal(int a) const {
    const search_move& move = list_.moves()[a];
    const unsigned parts = bits_of(move.axis);
    for (const auto& m : move.members)
      if (dim_for(m, move.axis, parts) >= 0) return true;
    return false;
  }
  /// Do searches look at it? All may be taken; sparing ones are looked at while they are asked for.
  constexpr bool offered(int a) const { return spare_ || !action(a).sparing; }
  /// Gives whether there are any.
  constexpr bool offer_sparing(bool now) {
    spare_ = now;
    for (const auto& m : list_.moves())
      if (m.sparing) return true;
    return false;
  }
  /// Takes an action and propagates. Gives false, and changes nothing, if it is refused.
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
      if (torn_.empty()) {
        taken_.push_back(a);
        const std::uint64_t h = hash() + difference(before);
        const done d{m.axis, resolved_, whole, now_.state().changes.size(), h};
        history_.push_back(d);
        return true;
      }
      for (int t : torn_) whole.push_back(t);
      if (round + 1 < most_rounds) undo(before);
    }
    undo(before);
    return false;
  }
  /// The last step that was taken, if nothing was done since, to `redo`. Gives false where it has
  /// to be taken as it was: an axis was split.
  constexpr bool last_step(taken_step& s) {
    if (!now_.step_from(from_mark_ ? mark_.core : before_, s.change, counts_)) return false;
    s.action = taken_.back();
    s.what = history_.back();
    return true;
  }
  /// In the state where it was taken first. Cost: of what it changes.
  constexpr void redo(const taken_step& s) {
    now_.redo(s.change);
    taken_.push_back(s.action);
    history_.push_back(s.what);
  }
  constexpr state save() const {
    state s;
    save(s);
    return s;
  }
  constexpr void restore(const state& s) {
    std::size_t same = 0;
    while (same < s.taken.size() && same < taken_.size() && s.taken[same] == taken_[same]) ++same;
    const std::size_t common = same > 0 ? history_[same - 1].changes : root_.state().changes.size();
    tell_undone(common);
    if (same == s.taken.size())
      now_.undo_to(s.core);
    else
      now_.restore(s.core);
    taken_ = s.taken;
    history_ = s.history;
  }
  /// What `go_back` returns to.
  constexpr void mark() { save(mark_); }
  constexpr const state& marked() const { return mark_; }
  constexpr void go_back() { restore(mark_); }
  /// To the state that some actions lead to from the beginning. Gives false where one is refused.
  constexpr bool go_to(const path& actions) {
    restore(begin_);
    bool all = true;
    for (int a : actions) all = step(a) && all;
    return all;
  }

  // ---- Costs ------------------------------------------------------------------------------------

  /// Of the state: seconds of a step, more where memory is exceeded. Known states cost nothing to
  /// ask again, but count. When the budget is spent: `hopeless`.
  constexpr double cost() {
    if (spent()) return hopeless;
    ++evaluations_;
    const std::uint64_t h = hash();
    const int place = known_.find(hash_of(h), [&](int i) { return states_[i].hash == h; });
    if (place >= 0) return told(states_[place].figures);
    const estimated now = evaluate();
    states_.push_back({h, now, static_cast<int>(paths_.size()), static_cast<int>(taken_.size())});
    paths_.insert_back(taken_.begin(), taken_.end());
    known_.insert(static_cast<int>(states_.size()) - 1,
                  [&](int i) { return hash_of(states_[i].hash); });
    const double c = cost_of(now);
    if (c < best_cost_) improve(c);
    lead(c, states_.back());
    return told(now);
  }
  /// Are costs more where memory is exceeded? (The best state is told by costs that are.)
  constexpr void count_memory(bool now) { counts_memory_ = now; }
  /// Of the state, by the simulator itself (or the user's model), from the program that `lower`
  /// makes.
  struct exact {
    double cost = hopeless;
    double peak_bytes = 0;  ///< of a device
  };
  /// It takes its time, and is not counted.
  constexpr exact exact_figures() const {
    if (following_ == nullptr) return exact_figures(now_);
    core_program c(now_);
    tactic_context behind(c);
    behind.staged = staged_;
    following_->apply(behind);
    return behind.error ? exact() : exact_figures(c);
  }
  constexpr double exact_cost() const { return exact_figures().cost; }
  /// Looks with the simulator how much memory the best state needs. Where it is near to all there
  /// is, the memory that costs see is from here on such that they agree on that state, and what was
  /// seen is compared anew. Gives whether it needs more than there is, which costs did not see.
  constexpr bool check_memory() {
    if (own_ != nullptr) return false;
    go_to(path(best_));
    const double peak = exact_figures().peak_bytes, seen = estimated_peak();
    if (!(peak > 0) || !(seen > 0) || (peak > seen ? peak : seen) < near_all * memory_)
      return false;
    correct_memory(peak / seen);
    return peak > memory_ && seen < peak;
  }
  /// Does the best state fit, as costs see it?
  constexpr bool fits() {
    if (own_ != nullptr) return true;
    go_to(path(best_));
    return estimated_peak() <= memory_;
  }
  /// Needs the state at the beginning more memory than there is, as costs see it?
  constexpr bool began_too_large() const { return first_peak_ > memory_; }
  /// There may be a part of the budget more, from here on.
  constexpr void grant(double more) {
    budget_ = (spent_part() > 1 ? spent_part() : 1) * budget_ + more;
  }
  /// The best states that were seen, the best first, of those with equal figures one: candidates
  /// for a closer look.
  struct leader {
    double cost = 0, peak_bytes = 0;
    path taken;
  };
  constexpr const vec<leader>& leaders() const { return leaders_; }
  /// The same of those that fit.
  constexpr const vec<leader>& fitting() const { return fitting_; }
  constexpr double memory() const { return memory_; }  ///< bytes that may be used
  static constexpr double hopeless = 1e300;
  constexpr double first() const { return first_; }  ///< the cost at the beginning
  /// No partitioning along these axes costs less: all work is shared by all devices, nothing is
  /// sent.
  constexpr double lower_bound() const { return bound_; }
  constexpr double best_cost() const { return best_cost_; }
  constexpr const path& best() const { return best_; }
  constexpr std::int64_t evaluations() const { return evaluations_; }
  /// Partitionings that were told apart.
  constexpr std::int64_t states_seen() const { return static_cast<std::int64_t>(states_.size()); }
  constexpr double seconds() const {
    if (std::is_constant_evaluated()) return 0;
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  }
  /// Is the budget spent?
  constexpr bool spent() const { return spent_part() >= 1; }
  /// The part of the budget that is spent, from 0; 1 and above: all of it.
  constexpr double spent_part() const {
    const double part =
        static_cast<double>(evaluations_) / static_cast<double>(options_.evaluations);
    const double of_time = options_.seconds > 0 ? seconds() / options_.seconds : 0;
    return (part > of_time ? part : of_time) / budget_;
  }
  constexpr const search_options& options() const { return options_; }

  using improvement = search_course::improvement;
  constexpr const vec<improvement>& improvements() const { return improvements_; }

  // ---- What was done ----------------------------------------------------------------------------

  constexpr const vec<done>& history() const { return history_; }
  constexpr const vec<search_detail::named_target>& targets() const { return list_.targets(); }
  constexpr const core_program& root() const { return root_; }
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
  static constexpr int most_rounds = 4;  ///< what is kept whole may tear another state

  search_options options_;
  const search_detail::own_cost* own_;
  const staged_program* staged_;
  const following_tactics* following_;
  staged_work work_;
  machine on_;
  core_program root_;
  search_detail::move_list list_;
  core_program now_;
  tactic_context* behind_;  ///< of `now_`, for the tactics that follow, else null
  partition_state unfollowed_;
  bool follows_ = true;    ///< do costs see what these do? (Not if they insert ops.)
  double correction_ = 1;  ///< of the memory that costs see
  double budget_ = 1;      ///< in parts of the one that was given
  state begin_, mark_;
  partition_state before_;
  bool from_mark_ = false;    ///< was the last step taken from there, else from `before_`?
  vec<int> stamps_, counts_;  ///< by op
  int stamp_ = 0;
  running_cost cost_;
  double memory_;
  vec<int> is_next_;  ///< by value: which target it is, or -1
  vec<char> stacks_;  ///< by value, see stacked_values
  path taken_, best_;
  vec<done> history_;
  vec<op_id> told_;          ///< that have changed since the last evaluation, or have changed back
  vec<std::uint64_t> seen_;  ///< by op: what tells apart the loops that costs have seen
  std::size_t read_ = 0;     ///< so much of now_.state().changes is told
  vec<search_move::member> resolved_;
  bool refused_ = false;
  bool spare_ = false;  ///< are sparing moves offered?
  bool counts_memory_ = true;
  vec<int> torn_;  ///< targets whose next state is sliced along the axis where they are not
  /// A target whose value or next state an op makes, and another one.
  struct state_end {
    int target = -1, next = -1;
  };
  vec<int> state_at_;  ///< by op: the first of `state_ends_`, or -1
  vec<state_end> state_ends_;
  vec<int> is_member_;  ///< by value: of the step with this stamp
  int member_stamp_ = 0;
  vec<known_state> states_;
  vec<int> paths_;
  place_table known_;
  vec<improvement> improvements_;
  vec<leader> leaders_, fitting_;
  double first_ = 0, first_peak_ = 0, best_cost_ = 0, bound_ = 0;
  std::int64_t evaluations_ = 0;
  std::chrono::steady_clock::time_point began_ = {};

  /// Makes room for loops where states are given: then no action inserts an op.
  constexpr const core_program& hold_states() {
    for (const auto& t : search_detail::targets_of(root_.p))
      if (t.state >= 0) root_.hold(t.state);
    if (following_ != nullptr) hold_for_others();
    root_.propagate();
    return root_;
  }
  /// The same for those that the tactics behind the search will ask for.
  constexpr void hold_for_others() {
    core_program c(root_);
    tactic_context behind(c);
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
  static constexpr double near_all = 0.9;  ///< part of the memory
  constexpr void lead(double c, const known_state& s) {
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
  /// Of the state, as costs see it.
  constexpr double estimated_peak() { return evaluate().peak_bytes * correction_; }
  constexpr void correct_memory(double ratio) {
    correction_ *= ratio;
    leaders_.clear();
    fitting_.clear();
    for (const known_state& s : states_) lead(cost_of(s.figures), s);
    if (leaders_.empty()) return;
    best_ = leaders_[0].taken;
    best_cost_ = leaders_[0].cost;
  }
  constexpr double cost_of(const estimated& f) const {
    return penalized(f.seconds, f.peak_bytes * correction_, memory_);
  }
  constexpr double told(const estimated& f) const {
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
    cost_.update(told_);
    told_.clear();
    return {cost_.time(), cost_.peak_bytes()};
  }
  /// Does what the tactics behind the search do. Gives whether it is possible.
  constexpr bool follow() {
    const std::int64_t before = now_.edits();
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
  /// Of the ops that costs are to be told of those whose loops are what they were.
  constexpr void drop_unchanged() {
    std::size_t left = 0;
    bool all = false;
    ++stamp_;
    for (std::size_t i = 0; i < told_.size() && !all; ++i) {
      const op_id o = told_[i];
      all = o < 0;
      if (!all && !is_news(o)) continue;
      told_[left++] = o;
    }
    for (op_id o = 0; all && o < now_.p.op_count(); ++o) is_news(o);
    told_.resize(left, -1);
  }
  constexpr bool is_news(op_id o) {
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
  /// Of the hash. That is a sum over all loops: what they cut, along which axis, and how many cut
  /// that before them.
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
  /// What costs have seen of the log of changes.
  constexpr void tell(std::size_t from, std::size_t to) {
    const vec<op_id>& changes = now_.state().changes;
    for (std::size_t i = from; i < to; ++i) told_.push_back(changes[i]);
  }
  constexpr void save(state& s) const {
    s.core = now_.state();
    s.taken = taken_;
    s.history = history_;
  }
  constexpr void note_changes() {
    tell(read_, now_.state().changes.size());
    read_ = now_.state().changes.size();
  }
  /// The log is about to lose what is behind `common`. (What costs have not seen is not told.)
  constexpr void tell_undone(std::size_t common) {
    if (read_ <= common) return;
    tell(common, read_);
    read_ = common;
  }
  /// To where the present step began.
  constexpr void undo(const partition_state& before) {
    tell_undone(before.changes.size());
    now_.undo_to(before);
  }

  /// The parts of an axis, as bits.
  constexpr unsigned bits_of(int axis) const {
    unsigned bits = 0;
    for (int part : now_.parts(axis)) bits |= 1u << part;
    return bits;
  }
  /// Has a target a loop over one of these axes: is it sliced or kept whole?
  constexpr bool has_loop(value_id v, unsigned axes) const {
    return (now_.nests.axes()[now_.p.producer(now_.holder(v))] & axes) != 0;
  }
  /// The dimension that a move slices of a value, or -1: none.
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
  /// What `manual` does: inputs, propagation, then the next states that lie otherwise.
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
  /// The dimension that a value is sliced on along all parts of an axis, or -1; along some: -2.
  constexpr int dim_along(value_id v, const axis_list& parts) const {
    const layout have = now_.produced_layout(now_.holder(v));
    const int dim = parts.count > 0 ? have.dim_of(parts.axes[0]) : -1;
    for (int a : parts)
      if (have.dim_of(a) != dim) return -2;
    return dim;
  }
  /// Calls f(target, dimension of the state, of the next state) for those that may have changed in
  /// this step.
  template <class F>
  constexpr void for_each_state(int axis, std::size_t from, const F& f) const {
    const axis_list parts = now_.parts(axis);
    const vec<op_id>& changes = now_.state().changes;
    for (std::size_t i = from; i < changes.size(); ++i) {
      if (changes[i] < 0) {
        for (int t = 0; t < static_cast<int>(targets().size()); ++t)
          if (targets()[t].state >= 0) look(t, parts, f);
        return;
      }
      for (int e = state_at_[changes[i]]; e >= 0; e = state_ends_[e].next)
        look(state_ends_[e].target, parts, f);
    }
  }
  template <class F>
  constexpr void look(int t, const axis_list& parts, const F& f) const {
    f(t, dim_along(targets()[t].value, parts), dim_along(targets()[t].state, parts));
  }
  /// Slices next states as propagation has sliced the states. Gives whether any was to be; then
  /// those are unknown that are torn.
  constexpr bool bring_states(int axis, std::size_t from) {
    refused_ = false;
    torn_.clear();
    vec<search_move::member> list;
    for_each_state(axis, from, [&](int t, int dim, int next) {
      if (dim >= 0 && next != dim) list.push_back({targets()[t].value, dim});
      if (dim == -1 && next != -1 && !is_torn(t)) torn_.push_back(t);
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
  constexpr bool is_torn(int t) const {
    for (int each : torn_)
      if (each == t) return true;
    return false;
  }
};

}  // namespace partita
