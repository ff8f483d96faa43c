/// Schedules, read from text.
#pragma once

#include <partita/schedule/partition.hpp>
#include <partita/spec/lines.hpp>
#include <partita/spec/pipeline.hpp>
#include <partita/spec/shard_line.hpp>
#include <partita/spec/text_tactic.hpp>
#include <partita/spmd/passes.hpp>

namespace partita {

/// A schedule that was read from text: tactics and passes.
struct text_schedule {
  vec<text_tactic> tactics;
  partita::passes passes;
  overlap_options overlap;  ///< if the pass `overlap` is on; it needs a machine, see `search_on`
  failure error;

  /// The options of partition() that the passes of the schedule require.
  constexpr partition_options options() const {
    partition_options o{.passes = passes};
    if (overlap.any()) o.overlap = overlap;
    return o;
  }
};

namespace spec_detail {

class schedule_reader {
 public:
  constexpr explicit schedule_reader(std::string_view in) : l_(in, "schedule") {}

  constexpr text_schedule run() {
    while (!l_.failed() && !l_.at_end()) {
      statement();
      end_statement();
    }
    refuse_beside_pipeline();
    text_schedule s;
    s.error.record(l_.error);
    s.tactics = static_cast<vec<text_tactic>&&>(tactics_);
    s.passes = passes_;
    s.overlap.wanted = overlap_;
    return s;
  }

 private:
  lines l_;
  vec<text_tactic> tactics_;
  passes passes_;
  vec<std::string_view> given_passes_;
  bool overlap_ = false;
  bool open_ = false;    // true if actions may be added to the last tactic
  bool inside_ = false;  // true inside of amalgamated
  struct line_place {
    std::string_view kind;
    std::size_t at;
  };
  vec<line_place> one_mesh_only_;  // lines that a pipeline excludes
  bool has_pipeline_ = false;

  static constexpr std::string_view statement_words[] = {
      "manual",   "shard", "microbatch", "remat",    "amalgamated", "automatic",
      "pipeline", "tile",  "atomic",     "arg-tile", "propagate",   "passes"};

  /// Rejects tactics for programs on one mesh if the schedule has a pipeline.
  ///
  /// Errors    O141
  constexpr void refuse_beside_pipeline() {
    for (const line_place& each : one_mesh_only_)
      if (has_pipeline_)
        l_.fail(each.at, "O141", "\"", each.kind,
                "\" is for programs on one mesh, and the schedule has a pipeline; give the "
                "pipeline as many microbatches as both have together");
  }

  /// Reads the end of a statement: `.`, `;` or the end of its line.
  constexpr void end_statement() {
    if (!l_.at_line_end() && !l_.starts(";") && !l_.starts(".") && !(inside_ && l_.starts("}")))
      l_.expected("the end of the statement");
    while (l_.accept(";") || l_.accept(".")) {
    }
  }
  constexpr void statement() {
    const std::size_t at = l_.position();
    text_tactic t;
    lines ahead = l_;  // the dot of "propagate." ends the statement; other names may contain dots
    const bool ends = ahead.name(":;").view() == "propagate." && !ahead.starts(":");
    text word = ends && l_.accept("propagate") ? text("propagate") : l_.name(":;");
    if (l_.failed()) return;
    const bool labelled = l_.accept(":");
    if (!labelled && word.view() == "passes" && !inside_) return read_passes();
    if (labelled) {
      t.label = kept_name(word.view());
      word = text(l_.word(";."));
    }
    const std::string_view kind = word;
    t.place = place(at);
    if (kind == "arg-tile" || kind == "tile" || kind == "atomic" || kind == "propagate")
      return action(kind, t);
    open_ = false;
    if (kind == "manual")
      manual(t);
    else if (kind == "shard")
      shard(t);
    else if (kind == "amalgamated")
      amalgamated(t);
    else if (kind == "microbatch")
      microbatch(t);
    else if (kind == "remat")
      remat(t);
    else if (kind == "automatic")
      automatic(t);
    else if (kind == "pipeline" && !inside_)
      pipeline(t, at, labelled);
    else
      return l_.fail(at, "X003", "\"", word, "\" is not a tactic; ",
                     all_words(word.view(), statement_words));
    if (!labelled) t.label = kept_name(kind);
    if (t.kind == text_tactic::microbatch) one_mesh_only_.push_back({"microbatch", at});
    if (!l_.failed()) tactics_.push_back(t);
  }
  constexpr void pipeline(text_tactic& t, std::size_t at, bool labelled) {
    t.kind = text_tactic::pipeline;
    has_pipeline_ = true;
    t.pipelines.push_back(pipeline_reader(l_).run(at, labelled ? t.label.view() : "pipeline"));
  }
  /// Adds an action to the last tactic. Actions up to a `propagate` are one tactic; a labelled
  /// action begins another.
  constexpr void action(std::string_view kind, const text_tactic& begin) {
    text_tactic::action a;
    a.place = begin.place;
    if (kind == "arg-tile") {
      if (l_.integer(a.number))
        a.argument = concat(a.number);
      else
        a.argument = l_.name();
      a.dim = l_.dimension();
      a.width = l_.count("the width of a shard", std::int64_t{1} << 62);
    } else if (kind == "tile") {
      a.what = text_tactic::action::tile;
      a.argument = l_.name();
      a.dim = l_.dimension();
      a.axis = l_.name(";.");
      a.policy = policy();
    } else if (kind == "atomic") {
      a.what = text_tactic::action::atomic;
      a.argument = l_.name();
      a.axis = l_.name(";.");
    } else {
      a.what = text_tactic::action::propagate;
    }
    if (l_.failed()) return;
    if (!open_ || !begin.label.view().empty()) {
      text_tactic t = begin;
      t.kind = text_tactic::actions;
      if (t.label.view().empty()) t.label = kept_name(concat("actions ", ++count_).view());
      tactics_.push_back(t);
    }
    tactics_.back().list.push_back(a);
    open_ = a.what != text_tactic::action::propagate;
  }
  int count_ = 0;
  constexpr text place(std::size_t at) {
    lines copy = l_;
    copy.fail(at, "X000", "");
    const std::string_view message = copy.error.message;
    // "X000 schedule: 3:1: "
    return message.substr(15, message.size() - 17);
  }
  constexpr void manual(text_tactic& t) {
    t.kind = text_tactic::manual;
    t.axis = kept_name(l_.name().view());
    l_.expect("{");
    do {
      l_.skip(true);
      if (l_.starts("}")) break;
      const text name = l_.name(":");
      l_.expect(":");
      l_.skip(true);
      const placement where = placement_of();
      if (!l_.failed())
        t.entries.push_back(schedule_detail::kept_manual_entry(manual_entry{name, where}));
      l_.skip(true);
    } while (l_.accept(","));
    l_.skip(true);
    l_.expect("}");
    t.policy = policy();
    if (!l_.failed() && t.entries.empty()) l_.expected("an entry, like {x: 0},");
  }
  constexpr uneven policy() {
    if (l_.accept("pad")) return uneven::pad;
    return l_.accept("refuse") ? uneven::refuse : uneven::unsaid;
  }
  constexpr void shard(text_tactic& t) {
    t.kind = text_tactic::shard;
    t.shards = shard_reader(l_).run();
    t.policy = policy();
  }
  /// Reads `amalgamated {manual "B" {x: 0}; manual "M" {w: 1}}`, possibly on several lines.
  constexpr void amalgamated(text_tactic& t) {
    t.kind = text_tactic::amalgamated;
    l_.expect("{");
    vec<text_tactic> outer = static_cast<vec<text_tactic>&&>(tactics_);
    tactics_ = {};
    const bool outside = !inside_;
    inside_ = true;
    while (!l_.failed() && !l_.at_end() && !l_.starts("}")) {
      statement();
      end_statement();
    }
    inside_ = !outside;
    open_ = false;
    t.parts = static_cast<vec<text_tactic>&&>(tactics_);
    tactics_ = static_cast<vec<text_tactic>&&>(outer);
    l_.expect("}");
    if (!l_.failed() && t.parts.empty()) l_.expected("a tactic");
  }
  /// Reads `automatic "B", "M" {evaluations: 5000, seconds: 20, memory: 16 GiB, seed: 2}`.
  constexpr void automatic(text_tactic& t) {
    t.kind = text_tactic::automatic;
    do {
      l_.skip(false);
      const std::size_t at = l_.position();
      const text axis = l_.name("{;");
      for (const text& each : t.axes)
        if (each == axis) l_.fail(at, "X004", "axis \"", axis, "\" is given twice");
      t.axes.push_back(axis);
    } while (!l_.failed() && l_.accept(","));
    if (!l_.accept("{")) return;
    constexpr std::string_view options[] = {"evaluations", "seconds", "memory",    "seed",
                                            "device",      "overlap", "least_gain"};
    vec<std::string_view> given_words;
    do {
      l_.skip(true);
      if (l_.starts("}")) break;
      const std::size_t at = l_.position();
      const std::string_view word = l_.word(":");
      l_.expect(":");
      if (word == "evaluations")
        t.search.evaluations = l_.count("a number of evaluations", std::int64_t{1} << 62);
      else if (word == "seed")
        t.search.seed = static_cast<std::uint64_t>(l_.number("a number"));
      else if (word == "seconds")
        t.search.seconds = l_.quantity(seconds_like("a number of seconds"));
      else if (word == "memory")
        t.search.memory = l_.quantity(bytes_like("a number of bytes, like 16 GiB,"));
      else if (word == "device")
        device(t);
      else if (word == "overlap")
        t.search.overlap = yes_or_no();
      else if (word == "least_gain")
        t.search.least_gain =
            l_.quantity({"a part of the cost, like 0.001,", measure::plain, 1, true});
      else if (!l_.failed())
        l_.fail(at, "X003", "option \"", word, "\" is unknown; ", all_words(word, options));
      for (std::string_view each : given_words)
        if (each == word) l_.fail(at, "X004", "option \"", word, "\" is given twice");
      given_words.push_back(word);
      l_.skip(true);
    } while (l_.accept(","));
    l_.skip(true);
    l_.expect("}");
  }
  constexpr bool yes_or_no() {
    if (l_.accept("true")) return true;
    if (!l_.accept("false")) l_.expected("true or false");
    return false;
  }
  constexpr void device(text_tactic& t) {
    l_.skip(true);
    const std::size_t at = l_.position();
    const text name = l_.name();
    if (l_.failed()) return;
    const partita::device* known = find_device(name);
    if (known == nullptr) {
      vec<std::string_view> names;
      for (const partita::device* d : device_table) names.push_back(d->name());
      return l_.fail(at, "X014", "device \"", name, "\" is not in the table; ",
                     all_words(name, names));
    }
    t.on.assign(1, machine(*known));
    t.has_device = true;
  }
  constexpr placement placement_of() {
    l_.skip(false);
    const std::size_t at = l_.position();
    lines ahead = l_;
    if (std::int64_t dim = 0; ahead.integer(dim)) return l_.dimension();
    const std::string_view word = l_.word();
    if (word == "replicated") return replicated;
    if (word == "first_divisible_dim" || word == "first_divisible") return first_divisible_dim;
    if (word == "unknown") return unknown;
    constexpr std::string_view known[] = {"replicated", "first_divisible_dim", "unknown"};
    l_.fail(at, "X003", "placement \"", word, "\" is unknown; give a dimension, or a word; ",
            all_words(word, known));
    return unknown;
  }
  /// Reads `passes share_gathers, combine_below 64 KiB`.
  constexpr void read_passes() {
    constexpr std::string_view known[] = {"stationary_rows", "stationary_above", "combine_below",
                                          "place",           "share_gathers",    "memory_bound",
                                          "overlap"};
    do {
      l_.skip(false);
      const std::size_t at = l_.position();
      const std::string_view name = l_.word(";");
      if (name == "share_gathers")
        passes_.share_gathers = shared();
      else if (name == "stationary_rows")
        passes_.stationary_rows = true;
      else if (name == "place")
        passes_.place = true;
      else if (name == "overlap")
        overlap_ = true;
      else if (name == "combine_below")
        passes_.combine_below = l_.accept("none") ? 0 : bytes(at, name);
      else if (name == "stationary_above")
        passes_.stationary_above = bytes(at, name);
      else if (name == "memory_bound")
        passes_.memory_bound = l_.accept("own_peak")
                                   ? passes::own_peak
                                   : bytes(at, name, "a number of bytes, like 8 GiB, or own_peak,");
      else
        l_.fail(at, "X003", "pass \"", name, "\" is unknown; ", all_words(name, known));
      for (std::string_view each : given_passes_)
        if (each == name) l_.fail(at, "X004", "pass \"", name, "\" is given twice");
      given_passes_.push_back(name);
    } while (l_.accept(","));
  }
  /// Reads which uses share gathers; `all` if the word is missing.
  constexpr shared_uses shared() {
    if (l_.accept("none")) return shared_uses::none;
    if (l_.accept("alike")) return shared_uses::alike;
    if (l_.accept("neighbours")) return shared_uses::neighbours;
    if (l_.accept("all") || l_.at_line_end() || l_.starts(",") || l_.starts(";"))
      return shared_uses::all;
    constexpr std::string_view known[] = {"none", "alike", "neighbours", "all"};
    const std::size_t at = l_.position();
    const std::string_view word = l_.word(";");
    l_.fail(at, "X003", "uses \"", word, "\" are unknown; ", all_words(word, known));
    return shared_uses::all;
  }
  constexpr std::int64_t bytes(std::size_t at, std::string_view pass,
                               std::string_view what = "a number of bytes, like 64 KiB,") {
    const double n = l_.quantity(bytes_like(what));
    if (!l_.failed() && n < 1) l_.fail(at, "X010", pass, " needs a number of bytes, 1 or more");
    return static_cast<std::int64_t>(n);
  }
  constexpr void remat(text_tactic& t) {
    t.kind = text_tactic::remat;
    do {
      t.scopes.push_back(kept_name(l_.name(";").view()));
    } while (l_.accept(","));
  }
  constexpr void microbatch(text_tactic& t) {
    t.kind = text_tactic::microbatch;
    t.steps = l_.count("a number of steps", std::int64_t{1} << 62);
    l_.expect("{");
    do {
      l_.skip(true);
      if (l_.starts("}")) break;
      const text name = l_.name(":");
      l_.expect(":");
      const int dim = l_.dimension();
      if (!l_.failed())
        t.batches.push_back(schedule_detail::kept_microbatch_entry(microbatch_entry{name, dim}));
      l_.skip(true);
    } while (l_.accept(","));
    l_.skip(true);
    l_.expect("}");
  }
};

}  // namespace spec_detail

/// Reads a schedule: tactics, each with an optional name for reports; `#` and `//` begin comments:
///
/// ```
/// BP: manual "B" {batch: 0, "params.**": replicated}
/// Z3: manual "B" {params: first_divisible_dim, state: first_divisible_dim} pad
/// MP: manual "M" {"params.*.up": 1}       # `*`: any part between dots, `**`: any parts
/// S: shard {x: {B, M}, w: {{}, M}, h: {{B, M}}, b: replicated}   # several axes at once
/// ST: amalgamated {manual "B" {x: 0}; manual "M" {w: 1}}         # all, then one propagation
/// A1: tile x 0 "B"; atomic w "B"; propagate                      # actions, up to a `propagate`
/// MB: microbatch 4 {batch: 0}
/// R: remat params.layers, "*.attention"   # ops in these scopes are recomputed for the derivative
/// A: automatic "M", "B" {evaluations: 5000, seconds: 20, memory: 16 GiB, seed: 2,
///                        device: A100-80, overlap: false, least_gain: 0.01}
/// PP: pipeline {stages: {embedding, layers.0} {layers.1, head}, batch: {batch: 0},
///               microbatches: 8, order: one_f_one_b}   # for a system of several meshes
/// arg-tile 1 1 16                         # argument (number or name), dimension, width of a shard
/// propagate
/// passes share_gathers, combine_below 64 KiB
/// ```
///
/// `arg-tile` tiles along the axis that yields shards of that width. Actions (`tile`, `atomic`,
/// `arg-tile`) up to a `propagate` are one tactic. `automatic` searches for the system's device
/// unless it names one. A statement ends at `.`, at `;` or at the end of its line.
///
/// A pipeline may also have the options `split`, `infer_transfers`, `keep_gathered`, `merge_last`,
/// `absorb`, `remat`, `capacity: 2` and `fifo` (see pipeline_plan), and `stages: automatic 4` (see
/// automatic_stages).
///
/// `passes` run after all tactics: stationary_rows, stationary_above, combine_below (followed by
/// bytes or `none`), place, share_gathers (followed by `none`, `alike`, `neighbours` or `all`),
/// overlap, and memory_bound (followed by bytes or `own_peak`). See spmd/passes.hpp and
/// cost/overlap.hpp.
///
/// Errors    X001 syntax, X003 an unknown word, X004 an option given twice, X010 a number of bytes,
///           X014 an unknown device, X019 an unknown order, X020 a number of a pipeline, O138 its
///           stages, O141 a tactic that cannot be combined with a pipeline. When it is applied:
///           X006 no such argument, X007 no axis or several yield shards of a width, X015
///           `automatic` without a device, and those of the tactics. All have line and column
/// Source    "PartIR: a partitioning IR", Google DeepMind, talk: arg-tile and propagate
constexpr text_schedule read_schedule(std::string_view in) {
  return spec_detail::schedule_reader(in).run();
}

namespace spec_detail {
/// Calls f(tactic) for each tactic that searches, in order.
template <class F>
constexpr void for_each_automatic(vec<text_tactic>& tactics, const F& f) {
  for (text_tactic& t : tactics) {
    if (t.kind == text_tactic::automatic) f(t);
    for_each_automatic(t.parts, f);
  }
}
}  // namespace spec_detail

/// Sets the machine for which the `automatic` tactics of a schedule search and the pass `overlap`
/// chooses, and the callback that reports the searches' progress. `results` may be null; otherwise
/// it is resized to the number of these tactics, and each fills its entry.
constexpr void search_on(text_schedule& s, const machine& on,
                         void (*progress)(const search_progress&) = nullptr,
                         vec<search_result>* results = nullptr) {
  if (s.overlap.wanted) s.overlap.on = on;
  int count = 0;
  spec_detail::for_each_automatic(s.tactics, [&](text_tactic&) { ++count; });
  if (results != nullptr) results->resize(static_cast<std::size_t>(count), search_result{});
  spec_detail::for_each_automatic(s.tactics, [&](text_tactic& t) {
    if (!t.has_device) t.on.assign(1, on);
    t.search.progress = progress;
    if (results != nullptr)
      t.search.result = &(*results)[results->size() - static_cast<std::size_t>(count--)];
  });
}
/// Replaces the search of each `automatic` tactic by its result, as a tactic of the same name.
/// `results` are those of `search_on`.
constexpr void take_found(text_schedule& s, const vec<search_result>& results) {
  std::size_t i = 0;
  spec_detail::for_each_automatic(s.tactics, [&](text_tactic& t) {
    if (i == results.size()) return;
    t.found = read_schedule(print_specification(results[i++]).view()).tactics;
    for (text_tactic& each : t.found) each.place = text();  // not in the user's text
    t.searched = true;
  });
}

}  // namespace partita
