/// A tactic that searches for its actions.
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

/// Selects the simulator, the default cost model of `automatic`.
struct simulated_cost {};

/// Prints a number from 1 to below 1000 with three digits: `4.82`, `17.3`, `309`.
constexpr void print_three_digits(text& out, double v) {
  const std::int64_t parts = v < 10 ? 100 : v < 100 ? 10 : 1;
  const auto n = static_cast<std::int64_t>(v * static_cast<double>(parts) + 0.5);
  out << n / parts;
  if (parts > 1) out << '.' << (parts == 100 && n % parts < 10 ? "0" : "") << n % parts;
}
/// Returns a duration with its unit: `4.82 s`, `17.3 ms`.
constexpr text seconds_text(double s) {
  constexpr std::string_view units[] = {" ps", " ns", " us", " ms", " s"};
  if (!(s < 9e15)) return text("very long");
  int unit = 4;
  for (; unit > 0 && s < 1; --unit) s *= 1000;
  text out;
  print_three_digits(out, s);
  return out << units[unit];
}
/// Returns a number of bytes with its unit: `93.1 GB`.
constexpr text bytes_text(double bytes) {
  constexpr std::string_view units[] = {" B", " kB", " MB", " GB", " TB"};
  if (!(bytes < 9e24)) return text("too many bytes");
  int unit = 0;
  for (; unit < 4 && bytes >= 1000; ++unit) bytes /= 1000;
  text out;
  print_three_digits(out, bytes);
  return out << units[unit];
}

/// One search, starting at the state of a tactic's context.
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
  vec<named_target> targets_;  ///< the environment's targets; it has a program of its own
  environment e_;

  static constexpr int most_corrections = 4;
  static constexpr double correction_share = 1.0 / 32;  ///< of the budget, for each correction
  /// Of the budget, if the best state does not fit after a correction.
  static constexpr double repair_share = 1.0 / 8;

  /// Chooses, among the states that the search estimates to be best, the one that is best by the
  /// simulator, if it improves on the start. If that state needs more memory than available
  /// although its estimate fits, the estimate is corrected, and a greedy search continues from the
  /// state that is best under the corrected estimate. If the result still does not fit, the
  /// neighbours of the best state and of the best fitting state are searched.
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
  /// `best` becomes the best state by the simulator; its figures are stored in the result.
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
  /// Returns a cost for comparisons: a state that exceeds the memory slightly counts twice, so it
  /// wins only if all fitting states take more than twice as long.
  constexpr double rank(double cost, double peak_bytes) const {
    return peak_bytes > e_.memory() ? 2 * cost : cost;
  }
  /// Applies an action as a `manual` tactic does.
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
  /// Errors    S030 the arguments do not fit, even if every device has only one block of each
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
    c_.error.record("S030", "automatic: fully sharded arguments need ", bytes_text(all / devices),
                    " per device; a device has ", bytes_text(e_.memory()), ", too little by ",
                    bytes_text(all / devices - e_.memory()), "; the largest is \"",
                    escaped(c.p.input_name(largest)), "\" ", c.p.input_type(largest), " of ",
                    bytes_text(static_cast<double>(c.p.input_type(largest).bytes())),
                    "; use more devices, or devices with more memory");
  }
  constexpr void report(const search_result& r) {
    if (r.tactics.empty())
      c_.note(concat("automatic: found nothing that costs less; the program is unchanged (",
                     r.evaluations, " evaluations, ", r.states, " partitionings)"));
    else
      c_.note(concat("automatic: ", r.tactics.size(), " moves, ", r.evaluations, " evaluations, ",
                     r.states, " partitionings; cost ", seconds_text(r.before), " before, ",
                     seconds_text(r.after), " now, at least ", seconds_text(r.bound)));
    if (r.peak_bytes > e_.memory())
      c_.note(concat("automatic: the best result needs ", bytes_text(r.peak_bytes), " per device, ",
                     bytes_text(r.peak_bytes - e_.memory()),
                     " more than available; print_peak lists the values that take it"));
  }
};

}  // namespace search_detail

/// A tactic that finds, for one machine, the axes along which inputs and tags should be sliced, so
/// that a simulated step is fast and fits into memory. It may be anywhere in a schedule.
///
/// Effect    actions of some moves; each move is what one `manual` tactic would do (see
///           search_move). They appear in the action log, in the tactic's notes, and in
///           `search_options::result`, also as a specification (print_specification) and as C++
///           (print_source).
/// Legal     on 1 to 8 axes of the mesh, if the arguments fit when sliced over all devices
/// Pros      no knowledge of the model is needed; tactics before and after it are taken into
///           account
/// Cons      the search takes time, and a penalty on memory makes states fit but does not guarantee
///           it. Its result is optimal only by the search's estimate, and only among the moves
/// Collectives  those that propagation implies, as for `manual`
///
/// `Search` plays the environment (see searchers.hpp). `Model`, a CostModel, replaces the
/// simulator. The same options give the same result, unless the time limit ends the search.
///
/// Errors    S001 unknown axis, S029 nothing to search, S030 the arguments cannot fit, D001 and
///           D002 the machine
template <class Search = default_search, class Model = search_detail::simulated_cost>
class basic_automatic {
 public:
  constexpr basic_automatic(std::initializer_list<std::string_view> axes, const machine& on,
                            const search_options& options = {}, std::string_view name = "automatic",
                            const Search& search = {}, const Model& model = {})
      : on_(on), options_(options), name_(name), search_(search), model_(model) {
    for (std::string_view a : axes) add(a);
  }
  /// Constructs the tactic from a list of axes that is known only at run time.
  constexpr basic_automatic(const vec<text>& axes, const machine& on,
                            const search_options& options = {}, std::string_view name = "automatic",
                            const Search& search = {}, const Model& model = {})
      : on_(on), options_(options), name_(name), search_(search), model_(model) {
    for (const text& a : axes) add(a.view());
  }
  constexpr std::string_view name() const { return name_.view(); }
  /// True: a search before this tactic ignores it when it applies the tactics that follow.
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

/// The automatic tactic with the default search and the simulator:
/// `automatic({"B", "M"}, a100_80)`.
using automatic = basic_automatic<>;

}  // namespace partita
