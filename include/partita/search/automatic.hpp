/// A tactic that looks for its actions itself.
///
/// Source    PartIR, sections 3 and 7.4 (AutomaticPartition)
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string_view>
#include <type_traits>

#include <partita/schedule/tactic.hpp>
#include <partita/search/environment.hpp>
#include <partita/search/result.hpp>
#include <partita/search/searchers.hpp>
#include <partita/support/kept_name.hpp>

namespace partita {

using automatic_options = search_options;

namespace search_detail {

/// The simulator, as `automatic` has it unless a user gives a model.
struct simulated_cost {};

/// Three digits, for 1 to below 1000: `4.82`, `17.3`, `309`.
constexpr void print_three_digits(text& out, double v) {
  const std::int64_t parts = v < 10 ? 100 : v < 100 ? 10 : 1;
  const auto n = static_cast<std::int64_t>(v * static_cast<double>(parts) + 0.5);
  out << n / parts;
  if (parts > 1) out << '.' << (parts == 100 && n % parts < 10 ? "0" : "") << n % parts;
}
/// `4.82 s`, `17.3 ms`
constexpr text seconds_text(double s) {
  constexpr std::string_view units[] = {" ps", " ns", " us", " ms", " s"};
  if (!(s < 9e15)) return text("very long");
  int unit = 4;
  for (; unit > 0 && s < 1; --unit) s *= 1000;
  text out;
  print_three_digits(out, s);
  return out << units[unit];
}
/// `93.1 GB`
constexpr text bytes_text(double bytes) {
  constexpr std::string_view units[] = {" B", " kB", " MB", " GB", " TB"};
  if (!(bytes < 9e24)) return text("too many bytes");
  int unit = 0;
  for (; unit < 4 && bytes >= 1000; ++unit) bytes /= 1000;
  text out;
  print_three_digits(out, bytes);
  return out << units[unit];
}

/// One search, from the state of a tactic's context.
class automatic_run {
 public:
  constexpr automatic_run(tactic_context& c, const vec<int>& axes, const machine& on,
                          const search_options& options, const own_cost* own)
      : c_(c),
        on_(on),
        targets_(targets_of(c.core().p)),
        e_(c.core(), axes, on, options, own, c.staged, c.following) {}

  template <class Search>
  constexpr void search(const Search& searcher) {
    fits_anywhere();
    if (c_.error) return;
    c_.propagate();
    search_result r;
    const environment::exact begin = e_.exact_figures();
    r.before = r.after = begin.cost;
    r.peak_bytes = begin.peak_bytes;
    searcher(e_);
    choose(r);
    r.bound = e_.lower_bound();
    r.evaluations = e_.evaluations();
    r.states = e_.states_seen();
    r.seconds = e_.seconds();
    r.log = e_.improvements();
    for (const auto& each : e_.history()) take(each);
    report(r);
    c_.search = r;
    if (e_.options().result != nullptr) *e_.options().result = static_cast<search_result&&>(r);
  }

 private:
  tactic_context& c_;
  machine on_;
  vec<named_target> targets_;  ///< those of the environment, which has its own program
  environment e_;

  static constexpr int most_corrections = 4;
  static constexpr double correction_share = 1.0 / 32;  ///< of the budget, for each of them
  static constexpr double repair_share = 1.0 / 8;       ///< where the best does not fit then

  /// Of the best states by the search's estimate the best one by the simulator, if it is better
  /// than none. Where that needs more memory than there is, and the estimate says that it does not,
  /// the estimate is corrected, and a greedy search goes on from what is best then; if that does
  /// not fit, what stands beside it and beside the best that fits is looked at.
  constexpr void choose(search_result& r) {
    environment::path best;
    for (int round = 0;; ++round) {
      look_at_leaders(r, best);
      if (round == most_corrections || !e_.check_memory()) break;
      e_.grant(correction_share);
      e_.go_to(environment::path(e_.best()));
      greedy_search{}(e_);
      if (e_.fits()) continue;
      e_.grant(repair_share);
      neighbor_search{.share = 1}(e_);
    }
    e_.go_to(best);
    r.tactics = tactics_of(e_);
  }
  /// `best`: what is best by the simulator, with its figures in the result.
  constexpr void look_at_leaders(search_result& r, environment::path& best) {
    for (const auto* list : {&e_.leaders(), &e_.fitting()}) {
      const vec<environment::leader> leaders = *list;
      for (const auto& each : leaders) {
        e_.go_to(each.taken);
        const environment::exact f = e_.exact_figures();
        const double now = rank(f.cost, f.peak_bytes);
        if (!(now < rank(r.after, r.peak_bytes) * (1 - e_.options().least_gain))) continue;
        r.after = f.cost;
        r.peak_bytes = f.peak_bytes;
        best = each.taken;
      }
    }
  }
  /// What nearly fits is not better than what does, unless that takes more than twice as long.
  constexpr double rank(double cost, double peak_bytes) const {
    return peak_bytes > e_.memory() ? 2 * cost : cost;
  }
  /// As a `manual` tactic does it.
  constexpr void take(const environment::done& d) {
    for (int t : d.whole) {
      c_.atomic(targets_[t].value, d.axis);
      c_.atomic(targets_[t].state, d.axis);
    }
    for (const auto& m : d.members) c_.tile(m.value, m.dim, d.axis);
    c_.propagate();
    for (const auto& m : d.members) {
      const value_id next = targets_[e_.target_of(m.value)].state;
      if (next >= 0 && c_.dim_of(next, d.axis) != m.dim) c_.tile(next, m.dim, d.axis);
    }
    c_.propagate();
  }
  /// Errors    S030 arguments do not fit even where every device has a piece of each
  constexpr void fits_anywhere() {
    const core_program& c = c_.core();
    double devices = c_.staged != nullptr ? c_.staged->work().meshes : 1, all = 0;
    for (int a = 0; a < c.mesh.whole_rank(); ++a)
      devices *= static_cast<double>(c.mesh.whole_size(a));
    int largest = -1;
    for (int i = 0; i < c.p.input_count(); ++i) {
      all += static_cast<double>(c.p.input_type(i).bytes());
      if (largest < 0 || c.p.input_type(i).bytes() > c.p.input_type(largest).bytes()) largest = i;
    }
    if (all / devices <= e_.memory()) return;
    c_.error.record("S030", "automatic: arguments need ", bytes_text(all / devices),
                    " of each device where each has its piece of all of them; a device has ",
                    bytes_text(e_.memory()), ", too little by ",
                    bytes_text(all / devices - e_.memory()), "; the largest is \"",
                    escaped(c.p.input_name(largest)), "\" ", c.p.input_type(largest), " of ",
                    bytes_text(static_cast<double>(c.p.input_type(largest).bytes())),
                    "; take more devices, or such with more memory");
  }
  constexpr void report(const search_result& r) {
    if (r.tactics.empty())
      c_.note(concat("automatic: nothing was found that costs less; the program stays as it is (",
                     r.evaluations, " evaluations, ", r.states, " partitionings)"));
    else
      c_.note(concat("automatic: ", r.tactics.size(), " moves, ", r.evaluations, " evaluations, ",
                     r.states, " partitionings; cost ", seconds_text(r.before), " before, ",
                     seconds_text(r.after), " now, at least ", seconds_text(r.bound)));
    if (r.peak_bytes > e_.memory())
      c_.note(concat("automatic: the best that was found needs ", bytes_text(r.peak_bytes),
                     " of each device, ", bytes_text(r.peak_bytes - e_.memory()),
                     " more than there are; print_peak says what holds them"));
  }
};

}  // namespace search_detail

/// A tactic that finds, for one machine, along which of its axes inputs and tags are to be sliced,
/// so that a simulated step is fast and fits: what does not fit into memory costs more, the more it
/// exceeds it. It issues the three actions and nothing else, each move as one `manual` tactic
/// would, so it stands before, between or behind other tactics; what it did is in the log, in the
/// tactic's notes, and in `search_options::result`, also as text (print_specification) and as C++
/// (print_source). The same options give the same result, unless time ends the search.
///
/// `Search` plays the environment (see searchers.hpp), `Model` is a cost in place of the
/// simulator's, a CostModel.
///
/// Errors    S001 unknown axis, S029 nothing to search, S030 it cannot fit, D001 and D002 the
///           machine
template <class Search = default_search, class Model = search_detail::simulated_cost>
class basic_automatic {
 public:
  constexpr basic_automatic(std::initializer_list<std::string_view> axes, const machine& on,
                            const search_options& options = {}, std::string_view name = "automatic",
                            const Search& search = {}, const Model& model = {})
      : on_(on), options_(options), name_(name), search_(search), model_(model) {
    for (std::string_view a : axes) add(a);
  }
  /// Axes from a list that is made at run time.
  constexpr basic_automatic(const vec<text>& axes, const machine& on,
                            const search_options& options = {}, std::string_view name = "automatic",
                            const Search& search = {}, const Model& model = {})
      : on_(on), options_(options), name_(name), search_(search), model_(model) {
    for (const text& a : axes) add(a.view());
  }
  constexpr std::string_view name() const { return name_.view(); }
  /// Tactics in front of it need not see what it does.
  constexpr bool searches() const { return true; }
  constexpr void apply(tactic_context& c) const {
    if (count_ == 0 || count_ > max_axes || options_.evaluations <= 0 || options_.seconds < 0)
      c.error.record("S029", "automatic: ", count_, " axes and ", options_.evaluations,
                     " evaluations; give 1 to ", max_axes,
                     " axes, at least one evaluation and no negative time");
    c.error.record(validate(on_, c.core().mesh));
    vec<int> axes;
    for (int i = 0; i < count_ && !c.error; ++i) axes.push_back(c.axis(axes_[i].view()));
    if (c.error) return;
    if constexpr (std::is_same_v<Model, search_detail::simulated_cost>) {
      search_detail::automatic_run run(c, axes, on_, options_, nullptr);
      run.search(search_);
    } else {
      const search_detail::own_cost_of<Model> own(model_);
      search_detail::automatic_run run(c, axes, on_, options_, &own);
      run.search(search_);
    }
  }

 private:
  machine on_;
  search_options options_;
  kept_name name_;
  kept_name axes_[max_axes] = {};
  int count_ = 0;
  Search search_;
  Model model_;

  constexpr void add(std::string_view axis) {
    if (count_ < max_axes) axes_[count_] = kept_name(axis);
    ++count_;
  }
};

/// `automatic({"B", "M"}, a100_80)`
using automatic = basic_automatic<>;

}  // namespace partita
