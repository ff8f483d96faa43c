/// Schedules from text.
#pragma once

#include <partita/schedule/manual.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/schedule/remat.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/search/automatic.hpp>
#include <partita/spec/lines.hpp>
#include <partita/spec/pipeline.hpp>
#include <partita/spmd/passes.hpp>

namespace partita {

/// A tactic that was read. Of one type whatever it does, so that a schedule is a `vec` of them.
class text_tactic {
 public:
  enum kind_type : std::uint8_t {
    manual,
    microbatch,
    remat,
    actions,
    layouts,
    automatic,
    pipeline
  };
  /// `arg-tile x 0 16`: pieces of this width, along the axis that makes them so.
  struct action {
    text place;     ///< where it stands, for messages
    text argument;  ///< a name, or a number as `#1`
    std::int64_t number = -1;
    std::int64_t dim = 0, width = 0;
    bool propagate = false;
  };

  /// Where one value lies along several axes.
  struct whole_layout {
    enum kind_type : std::uint8_t { input, output, tag };
    struct piece {
      int dim = -1;  ///< -1: it stays whole along the axis
      text axis;     ///< or a part of one, as `manual` has it
    };
    kind_type kind = input;
    int number = -1;  ///< of an input or output
    text name;        ///< of a tag
    vec<piece> pieces;
    vec<char> closed;  ///< by dimension: only these pieces may lie along it
  };

  kind_type kind = manual;
  kept_name label, axis;
  vec<schedule_detail::kept_manual_entry> entries;
  uneven policy = uneven::unsaid;
  std::int64_t steps = 0;
  vec<schedule_detail::kept_microbatch_entry> batches;
  vec<kept_name> scopes;
  vec<action> list;
  vec<whole_layout> values;
  vec<text> axes;                    ///< of `automatic`
  search_options search;             ///< the same
  vec<machine> on;                   ///< the same: one, from the system; see `search_on`
  bool searched = false;             ///< the same: it is known what there is to find,
  vec<text_tactic> found;            ///< which is done, without a search
  vec<pipeline_tactic<>> pipelines;  ///< of `pipeline`: one

  constexpr std::string_view name() const { return label; }
  static constexpr syntax written_in() { return syntax::specification; }
  constexpr bool is_pipeline() const { return kind == pipeline; }
  constexpr bool searches() const { return kind == automatic && !searched; }
  constexpr const pipeline_order& order() const { return pipelines[0].order(); }
  constexpr const stage_list& stages() const { return pipelines[0].stages(); }
  constexpr int mesh_of(int stage, const topology& t) const {
    return pipelines[0].mesh_of(stage, t);
  }
  constexpr pipeline_options options(const topology& t) const { return pipelines[0].options(t); }
  constexpr unit_changes changes() const { return pipelines[0].changes(); }
  constexpr failure validate() const { return is_pipeline() ? pipelines[0].validate() : failure(); }
  constexpr void rewrite(rewriting& r) const {
    if (is_pipeline()) pipelines[0].rewrite(r);
    if (kind == microbatch)
      schedule_detail::stepping{steps, {batches.data(), batches.size()}}.rewrite(r);
    if (kind == remat) schedule_detail::repetition(r, {scopes.data(), scopes.size()}).run();
  }
  constexpr void apply(tactic_context& c) const {
    if (kind == manual)
      schedule_detail::placing{axis, {entries.data(), entries.size()}, policy}.apply(c);
    if (kind == layouts) return lay_out(c);
    if (kind == automatic) return look(c);
    if (kind != actions) return;
    for (const auto& a : list) {
      if (c.error) return;
      if (a.propagate)
        c.propagate();
      else
        tile(c, a);
    }
  }

 private:
  constexpr void look(tactic_context& c) const {
    if (searched) {
      for (const text_tactic& t : found) t.apply(c);
      return;
    }
    if (on.empty())
      return c.error.record("X015", "schedule: automatic searches for a machine; none is given, ",
                            "call search_on with one");
    basic_automatic<>(axes, on[0], search, label).apply(c);
  }
  /// All pieces of all values, then one propagation.
  constexpr void lay_out(tactic_context& c) const {
    vec<vec<value_id>> places;
    places.resize(values.size(), {});
    name_table tags(values.size());
    const program& p = c.core().p;
    for (std::size_t i = 0; i < values.size(); ++i) {
      const whole_layout& v = values[i];
      if (v.kind == whole_layout::tag) tags.insert(v.name.view(), static_cast<int>(i));
      if (v.kind == whole_layout::input && v.number < p.input_count())
        places[i].push_back(p.inputs[v.number]);
      if (v.kind == whole_layout::output && v.number < p.output_count())
        places[i].push_back(p.outputs[v.number].value);
    }
    for (const auto& v : c.values()) {
      if (v.kind != named_value::tag) continue;
      // Of a function that is called several times: "h", "h.again", "h.again.2".
      int place = tags.find(v.name);
      if (place < 0) place = tags.find(v.name.substr(0, v.name.rfind(".again")));
      if (place >= 0) places[static_cast<std::size_t>(place)].push_back(v.value);
    }
    for (std::size_t i = 0; i < values.size(); ++i)
      for (value_id v : places[i])
        for (const auto& piece : values[i].pieces) {
          const int along = c.axis(piece.axis.view());
          if (c.error) return;
          if (piece.dim >= 0)
            c.tile(v, piece.dim, along, uneven::pad);
          else
            c.atomic(v, along);
        }
    c.propagate();
    for (std::size_t i = 0; i < values.size(); ++i)
      for (value_id v : places[i]) note_further(c, v, values[i]);
  }
  /// Says where propagation sharded what was to stay as it is.
  static constexpr void note_further(tactic_context& c, value_id v, const whole_layout& wanted) {
    const shape global = c.global_shape(v), local = c.local_shape(v);
    for (int d = 0; d < global.rank; ++d) {
      if (static_cast<std::size_t>(d) >= wanted.closed.size() ||
          wanted.closed[static_cast<std::size_t>(d)] == 0)
        continue;
      std::int64_t pieces = 1;
      for (const auto& piece : wanted.pieces)
        if (piece.dim == d) pieces *= c.axis_size(c.axis(piece.axis.view()));
      if (local[d] < (global[d] + pieces - 1) / pieces)
        c.note(concat("dimension ", d, " of \"", c.core().describe(v),
                      "\" is closed, and propagation shards it further; name it in a tactic"));
    }
  }
  /// Positions of an axis where a value is: on several meshes they may differ.
  static constexpr std::int64_t whole_size(const tactic_context& c, value_id v, int axis) {
    const core_program& core = c.core();
    return core.uneven_sizes().contains(axis) ? core.size(core.p.producer(v), axis)
                                              : c.mesh().whole_size(axis);
  }
  /// Of the piece on one device there, with its padding.
  static constexpr std::int64_t local_extent(const tactic_context& c, value_id v, int dim) {
    const core_program& core = c.core();
    std::int64_t n = core.p.type(core.holder(v)).shape[dim];
    for (const auto& e : c.layout_of(v))
      if (e.dim == dim) n /= core.size(core.p.producer(v), e.axis);
    return n;
  }
  static constexpr void tile(tactic_context& c, const action& a) {
    const program& p = c.core().p;
    value_id v = -1;
    for (int i = 0; i < p.input_count(); ++i)
      if (a.number >= 0 ? i == a.number : p.input_name(i) == a.argument.view()) v = p.inputs[i];
    if (v < 0) {
      vec<std::string_view> names;
      for (int i = 0; i < p.input_count(); ++i) names.push_back(p.input_name(i));
      return c.error.record("X006", "schedule: ", a.place, ": there is no argument ", a.argument,
                            "; the program has ", p.input_count(), a.number < 0 ? "; " : "",
                            a.number < 0 ? known_names(a.argument, names) : text());
    }
    const shape& s = c.global_shape(v);
    if (a.dim < 0 || a.dim >= s.rank)
      return c.error.record("S002", "schedule: ", a.place, ": dimension ", a.dim, " of \"",
                            c.core().describe(v), "\" is out of range; its shape is ", s);
    const std::int64_t local = local_extent(c, v, static_cast<int>(a.dim));
    int found = -1, fits = 0;
    text axes;
    const mesh& m = c.mesh();
    for (int i = 0; i < m.whole_rank(); ++i) {
      const bool taken = c.is_tiled(v, i);
      const std::int64_t size = whole_size(c, v, i);
      if (i > 0) axes << ", ";
      axes << '"' << m.name(i) << "\" of " << size << (taken ? " (taken)" : "");
      if (taken || a.width <= 0 || local % a.width != 0 || local / a.width != size) continue;
      found = i;
      ++fits;
    }
    if (fits != 1)
      return c.error.record(
          "X007", "schedule: ", a.place, ": pieces of ", a.width, " along dimension ", a.dim,
          " of \"", c.core().describe(v), "\", which has ", local,
          " elements there, need an axis of ",
          a.width > 0 && local % a.width == 0 ? concat(local / a.width) : text("no whole size"),
          "; the mesh has ", axes, fits > 1 ? "; name it with manual" : "");
    c.tile(v, static_cast<int>(a.dim), found);
  }
};

struct text_schedule {
  vec<text_tactic> tactics;
  partita::passes passes;
  overlap_options overlap;  ///< where the pass `overlap` is on: it needs a machine, see `search_on`
  failure error;

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
      // `.` and `;` end a statement, and so does a line.
      if (!l_.at_line_end() && !l_.starts(";") && !l_.starts("."))
        l_.expected("the end of the statement");
      while (l_.accept(";") || l_.accept(".")) {
      }
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
  vec<std::string_view> passes_said_;
  bool overlap_ = false;
  bool open_ = false;  // may actions be added to the last tactic?
  struct line_place {
    std::string_view kind;
    std::size_t at;
  };
  vec<line_place> one_mesh_only_;  // lines that go with no pipeline
  bool has_pipeline_ = false;

  static constexpr std::string_view statement_words[] = {
      "manual", "microbatch", "remat", "automatic", "pipeline", "arg-tile", "propagate", "passes"};

  /// Errors    O141 a tactic of programs on one mesh stands beside a pipeline
  constexpr void refuse_beside_pipeline() {
    for (const line_place& each : one_mesh_only_)
      if (has_pipeline_)
        l_.fail(each.at, "O141", "\"", each.kind,
                "\" is for programs on one mesh, and the schedule has a pipeline; give the "
                "pipeline as many microbatches as both have together");
  }

  constexpr void statement() {
    const std::size_t at = l_.position();
    if (l_.accept("arg-tile")) return arg_tile(at);
    if (l_.accept("propagate")) {
      actions().list.push_back({{}, {}, -1, 0, 0, true});
      open_ = false;
      return;
    }
    open_ = false;
    text_tactic t;
    text word = l_.name(":");
    if (l_.failed()) return;
    const bool labelled = l_.accept(":");
    if (!labelled && word.view() == "passes") return read_passes();
    if (labelled) {
      t.label = kept_name(word.view());
      word = text(l_.word());
    }
    const std::string_view kind = word;
    if (kind == "manual")
      manual(t);
    else if (kind == "microbatch")
      microbatch(t);
    else if (kind == "remat")
      remat(t);
    else if (kind == "automatic")
      automatic(t);
    else if (kind == "pipeline")
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
  /// The talk's actions in a row are one tactic.
  constexpr text_tactic& actions() {
    if (!open_) {
      text_tactic t;
      t.kind = text_tactic::actions;
      t.label = kept_name(concat("actions ", ++count_).view());
      tactics_.push_back(t);
      open_ = true;
    }
    return tactics_.back();
  }
  int count_ = 0;
  constexpr void arg_tile(std::size_t at) {
    text_tactic::action a;
    if (l_.integer(a.number))
      a.argument = concat(a.number);
    else
      a.argument = l_.name();
    a.dim = l_.dimension();
    a.width = l_.count("the width of a piece", std::int64_t{1} << 62);
    a.place = place(at);
    if (!l_.failed()) actions().list.push_back(a);
  }
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
    if (l_.accept("pad"))
      t.policy = uneven::pad;
    else if (l_.accept("refuse"))
      t.policy = uneven::refuse;
    if (!l_.failed() && t.entries.empty()) l_.expected("an entry, like {x: 0},");
  }
  /// `automatic "B", "M" {evaluations: 5000, seconds: 20, memory: 16 GiB, seed: 2}`
  constexpr void automatic(text_tactic& t) {
    t.kind = text_tactic::automatic;
    do {
      l_.skip(false);
      const std::size_t at = l_.position();
      const text axis = l_.name("{;");
      for (const text& each : t.axes)
        if (each == axis) l_.fail(at, "X004", "axis \"", axis, "\" is said twice");
      t.axes.push_back(axis);
    } while (!l_.failed() && l_.accept(","));
    if (!l_.accept("{")) return;
    constexpr std::string_view options[] = {"evaluations", "seconds", "memory", "seed"};
    vec<std::string_view> said;
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
      else if (!l_.failed())
        l_.fail(at, "X003", "option \"", word, "\" is unknown; ", all_words(word, options));
      for (std::string_view each : said)
        if (each == word) l_.fail(at, "X004", "option \"", word, "\" is said twice");
      said.push_back(word);
      l_.skip(true);
    } while (l_.accept(","));
    l_.skip(true);
    l_.expect("}");
  }
  constexpr placement placement_of() {
    l_.skip(false);
    const std::size_t at = l_.position();
    lines ahead = l_;
    if (std::int64_t dim = 0; ahead.integer(dim)) return l_.dimension();
    const std::string_view word = l_.word();
    if (word == "replicated") return replicated;
    if (word == "first_divisible_dim") return first_divisible_dim;
    if (word == "unknown") return unknown;
    constexpr std::string_view known[] = {"replicated", "first_divisible_dim", "unknown"};
    l_.fail(at, "X003", "placement \"", word, "\" is unknown; give a dimension, or a word; ",
            all_words(word, known));
    return unknown;
  }
  /// `passes share_gathers, combine_below 64 KiB`
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
        passes_.combine_below = bytes(at, name);
      else if (name == "stationary_above")
        passes_.stationary_above = bytes(at, name);
      else if (name == "memory_bound")
        passes_.memory_bound = l_.accept("own_peak")
                                   ? passes::own_peak
                                   : bytes(at, name, "a number of bytes, like 8 GiB, or own_peak,");
      else
        l_.fail(at, "X003", "pass \"", name, "\" is unknown; ", all_words(name, known));
      for (std::string_view each : passes_said_)
        if (each == name) l_.fail(at, "X004", "pass \"", name, "\" is said twice");
      passes_said_.push_back(name);
    } while (l_.accept(","));
  }
  /// Which uses share gathers: said, or all.
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

/// Tactics, each with a name for reports or without; `#` and `//` begin comments:
///
/// ```
/// BP: manual "B" {batch: 0, "params.**": replicated}
/// Z3: manual "B" {params: first_divisible_dim, state: first_divisible_dim} pad
/// MP: manual "M" {"params.*.up": 1}       # `*`: any part between dots, `**`: any
/// MB: microbatch 4 {batch: 0}
/// R: remat params.layers, "*.attention" # what lies there is computed again for the derivative
/// A: automatic "M", "B" {evaluations: 5000, seconds: 20, memory: 16 GiB, seed: 2}
/// PP: pipeline {stages: {embedding, layers.0} {layers.1, head}, batch: {batch: 0},
///               microbatches: 8, order: one_f_one_b}   # for a system of several meshes
/// arg-tile 1 1 16                         # argument (number or name), dimension, width of a piece
/// propagate
/// passes share_gathers, combine_below 64 KiB
/// ```
///
/// `arg-tile` tiles along the axis that makes pieces of that width. Actions up to a `propagate` are
/// one tactic. `.` and `;` end a statement, as a line does. A pipeline may say `split`,
/// `infer_transfers`, `keep_gathered`, `merge_last`, `absorb`, `remat`, `capacity: 2` and `fifo`,
/// too (see pipeline_plan), and `stages: automatic 4` (see automatic_stages). `passes`
/// (stationary_above, combine_below, place, share_gathers of `none`, `alike`, `neighbours` or
/// `all`, overlap, memory_bound with bytes or `own_peak`) run once all tactics are there, see
/// spmd/passes.hpp and cost/overlap.hpp.
///
/// Errors    X001 syntax, X003 an unknown word, X004 an option twice, X010 a number of bytes, X019
///           an unknown order, X020 a number of a pipeline, O138 its stages, O141 what goes with no
///           pipeline, with line and column; when it is applied, X006 no such argument, X007 no
///           axis or several make pieces of a width, X015 `automatic` without a machine, and those
///           of the tactics and passes
/// Source    "PartIR: a partitioning IR", Google DeepMind, talk: arg-tile and propagate
constexpr text_schedule read_schedule(std::string_view in) {
  return spec_detail::schedule_reader(in).run();
}

/// Tells `automatic` tactics of a schedule for which machine they search, and how they go on; and
/// the pass `overlap`, for which machine it chooses.
/// `results`: is made as long as there are such tactics, and filled by them; or null.
constexpr void search_on(text_schedule& s, const machine& on,
                         void (*progress)(const search_progress&) = nullptr,
                         vec<search_result>* results = nullptr) {
  if (s.overlap.wanted) s.overlap.on = on;
  int count = 0;
  for (const text_tactic& t : s.tactics) count += t.kind == text_tactic::automatic;
  if (results != nullptr) results->resize(static_cast<std::size_t>(count), search_result{});
  for (text_tactic& t : s.tactics) {
    if (t.kind != text_tactic::automatic) continue;
    t.on.assign(1, on);
    t.search.progress = progress;
    if (results != nullptr)
      t.search.result = &(*results)[results->size() - static_cast<std::size_t>(count--)];
  }
}
/// Has `automatic` tactics do what they found, each as a tactic of its name, in place of a search.
/// `results`: those of `search_on`.
constexpr void take_found(text_schedule& s, const vec<search_result>& results) {
  std::size_t i = 0;
  for (text_tactic& t : s.tactics) {
    if (t.kind != text_tactic::automatic || i == results.size()) continue;
    t.found = read_schedule(print_specification(results[i++]).view()).tactics;
    t.searched = true;
  }
}

}  // namespace partita
