/// A tactic that looks for its actions itself.
///
/// Source    PartIR, sections 3 and 7.4 (AutomaticPartition); here a greedy descent
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>

#include <partita/core/trial.hpp>
#include <partita/cost/cost.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/schedule/kept_name.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

/// Where a search ends, and what it may use.
struct automatic_options {
  std::int64_t evaluations = 5000;  ///< at most so many programs are lowered and simulated
  double memory = 0;                ///< bytes of a device that may be used; 0: all it has
  bool overlap = true;              ///< do collectives run beside kernels?
  /// An action is taken if it makes the cost less by this part of it.
  double least_gain = 1e-3;
};

namespace search_detail {

/// Inputs that are alike, as the layers' are, are sharded alike.
struct tied_inputs {
  vec<value_id> members;
};

/// Two inputs are tied if they have one type and their names differ in numbers only.
///
/// Cost: linear in the characters of all names.
constexpr vec<tied_inputs> tie(const program& p) {
  vec<text> keys;
  keys.reserve(p.inputs.size());
  for (int i = 0; i < p.input_count(); ++i) {
    text key;
    bool in_number = false;
    for (const char c : p.input_name(i)) {
      const bool digit = c >= '0' && c <= '9';
      if (digit && !in_number) key << '#';
      if (!digit) key << c;
      in_number = digit;
    }
    key << ' ' << p.input_type(i);
    keys.push_back(key);
  }
  name_table known(p.inputs.size());
  vec<tied_inputs> groups;
  for (int i = 0; i < p.input_count(); ++i) {
    const int fresh = static_cast<int>(groups.size()), g = known.insert(keys[i], fresh);
    if (g == fresh) groups.push_back({});
    groups[g].members.push_back(p.inputs[i]);
  }
  return groups;
}

/// Slices a dimension of tied inputs, and of the outputs that are their next state, along an axis.
/// Next states that would be sliced by it although the state is not are kept whole: a step gives
/// its state as it takes it.
struct move {
  int group = 0, dim = 0, axis = 0;
  vec<value_id> whole;  ///< next states that are kept so
};

/// An input, and the output that is its next state.
struct state_pair {
  value_id input = -1, output = -1;
};
constexpr vec<state_pair> states_of(const program& p) {
  name_table inputs(p.inputs.size());
  for (int i = 0; i < p.input_count(); ++i) inputs.insert(p.input_name(i), i);
  vec<state_pair> list;
  for (int k = 0; k < p.output_count(); ++k)
    if (const int i = inputs.find(p.output_name(k)); i >= 0)
      list.push_back({p.inputs[i], p.outputs[k].value});
  return list;
}

/// What a program under partitioning costs: the time of a step, which grows steeply where memory is
/// exceeded. (So a search first finds what fits, then what is fast.)
class objective {
 public:
  constexpr objective(const machine& on, const automatic_options& options)
      : on_(on),
        options_(options),
        memory_(options.memory > 0 ? options.memory : on.device.memory) {}

  constexpr double operator()(const core_program& c) const {
    const lowered l = lower(c);
    if (l.error) return hopeless;
    const double time = simulate(l.device, on_, {.overlap = options_.overlap}).time,
                 excess = static_cast<double>(estimate(l.device).peak_bytes) / memory_ - 1;
    return excess > 0 ? time * (1 + penalty * excess) : time;
  }

 private:
  /// A program of twice the memory costs as much as one that takes so many times longer, and one.
  static constexpr double penalty = 100;
  static constexpr double hopeless = 1e300;
  const machine& on_;
  const automatic_options& options_;
  double memory_;
};

/// Takes, again and again, the move that makes the cost least, until none helps.
///
/// (Templates stand before those who use them: where a constant expression needs them, Clang wants
/// them by then.)
class greedy_descent {
 public:
  constexpr greedy_descent(tactic_context& c, const vec<int>& axes, const machine& on,
                           const automatic_options& options)
      : c_(c),
        axes_(axes),
        options_(options),
        cost_(on, options),
        groups_(tie(c.core().p)),
        states_(states_of(c.core().p)),
        is_member_(c.core().p.types.size(), -1) {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (value_id v : groups_[g].members) is_member_[v] = g;
  }

 private:
  tactic_context& c_;
  const vec<int>& axes_;
  const automatic_options& options_;
  objective cost_;
  vec<tied_inputs> groups_;
  vec<state_pair> states_;
  vec<int> is_member_;  ///< by value: of which group, or -1
  std::int64_t evaluations_ = 0;

  static constexpr std::int64_t per_mille(double part, double of) {
    return of > 0 ? static_cast<std::int64_t>(1000 * part / of + 0.5) : 1000;
  }
  template <class F>
  constexpr void for_each_move(const F& f) const {
    for (int g = 0; g < static_cast<int>(groups_.size()); ++g)
      for (int axis : axes_)
        for (int d = 0; d < c_.global_shape(groups_[g].members[0]).rank; ++d) {
          move m{g, d, axis, {}};
          if (evaluations_ < options_.evaluations && possible(m)) f(m);
        }
  }
  /// Is the first member not sliced along the axis, and does the axis divide what is left of it?
  constexpr bool possible(const move& m) const {
    const value_id first = groups_[m.group].members[0];
    return !c_.is_tiled(first, m.axis) && c_.local_shape(first)[m.dim] > 0 &&
           c_.local_shape(first)[m.dim] % c_.axis_size(m.axis) == 0;
  }
  static constexpr int most_rounds = 4;  ///< what is kept whole may tear another state
  /// Appends to `whole` the next states that are sliced along the axis where the state is not.
  constexpr bool find_torn(const core_program& tried, move& m) const {
    const std::size_t before = m.whole.size();
    for (const auto& s : states_)
      if (tried.is_tiled(s.output, m.axis) && !tried.is_tiled(s.input, m.axis))
        m.whole.push_back(s.output);
    return m.whole.size() > before;
  }
  template <class Tile, class Keep>
  constexpr bool issue(const move& m, const Tile& tile, const Keep& keep) const {
    for (value_id v : m.whole)
      if (!keep(v)) return false;
    for (value_id v : groups_[m.group].members)
      if (!tile(v)) return false;
    for (const auto& s : states_)
      if (is_member_[s.input] == m.group && !tile(s.output)) return false;
    return true;
  }
  /// The program after a move that gives all states as it takes them, or null.
  constexpr core_program* attempt(core_trial& trial, move& m) const {
    for (int i = 0; i < most_rounds; ++i) {
      core_program& tried = trial.restart();
      const auto tile = [&](value_id v) { return !tried.tile(v, m.dim, m.axis); };
      const auto keep = [&](value_id v) { return !tried.atomic(v, m.axis); };
      if (!issue(m, tile, keep)) return nullptr;
      tried.propagate();
      if (!find_torn(tried, m)) return &tried;
    }
    return nullptr;
  }
  /// Gives false if no move helps; else `now` becomes its cost.
  constexpr bool find_best(double& now, move& best) {
    core_trial trial(c_.core());
    const double enough = now * (1 - options_.least_gain);
    double least = enough;
    for_each_move([&](move& m) {
      core_program* tried = attempt(trial, m);
      if (tried == nullptr) return;
      ++evaluations_;
      const double cost = cost_(*tried);
      if (cost < least) least = cost, best = m;
    });
    if (!(least < enough)) return false;
    now = least;
    return true;
  }
  constexpr void take(const move& m) {
    issue(
        m, [&](value_id v) { return c_.tile(v, m.dim, m.axis), true; },
        [&](value_id v) { return c_.atomic(v, m.axis), true; });
    c_.propagate();
  }

 public:
  constexpr void run() {
    c_.propagate();
    double now = cost_(c_.core());
    const double before = now;
    int taken = 0;
    for (move best; evaluations_ < options_.evaluations && find_best(now, best); ++taken)
      take(best);
    c_.note(concat("automatic: ", taken, " moves, ", evaluations_, " programs evaluated, ",
                   per_mille(now, before), " per mille of the cost before"));
  }
};

}  // namespace search_detail

/// A tactic that finds, for one machine, along which of its axes inputs are to be sliced: of all
/// moves (a dimension of inputs that are tied, one axis) the one that makes a simulated step the
/// fastest, and so on until none helps. What does not fit into memory costs more the more it
/// exceeds it. It issues the three actions and nothing else, so it stands before, between or behind
/// other tactics, and what it did is in the log. Cost: for each move a propagation, a lowering and
/// a simulation of the whole program.
class automatic {
 public:
  constexpr automatic(std::initializer_list<std::string_view> axes, const machine& on,
                      const automatic_options& options = {}, std::string_view name = "automatic")
      : on_(on), options_(options), name_(name) {
    for (std::string_view a : axes) {
      if (count_ < max_axes) axes_[count_] = kept_name(a);
      ++count_;
    }
  }
  constexpr std::string_view name() const { return name_.view(); }
  /// Errors    S001 unknown axis, S029 nothing to search, D001 and D002 the machine
  constexpr void apply(tactic_context& c) const {
    if (count_ == 0 || count_ > max_axes || options_.evaluations <= 0)
      c.error.record("S029", "automatic: ", count_, " axes and ", options_.evaluations,
                     " evaluations; give 1 to ", max_axes, " axes and at least one evaluation");
    c.error.record(validate(on_, c.core().mesh));
    vec<int> axes;
    for (int i = 0; i < count_ && !c.error; ++i) axes.push_back(c.axis(axes_[i].view()));
    if (!c.error) search_detail::greedy_descent(c, axes, on_, options_).run();
  }

 private:
  machine on_;
  automatic_options options_;
  kept_name name_;
  kept_name axes_[max_axes] = {};
  int count_ = 0;
};

}  // namespace partita
