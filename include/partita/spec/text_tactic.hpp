/// Tactics, read from text.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/schedule/manual.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/schedule/partition.hpp>
#include <partita/schedule/remat.hpp>
#include <partita/schedule/shard.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/search/automatic.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/span.hpp>

namespace partita {

/// A tactic that was read from text. All kinds have one type, so that a schedule is a `vec` of
/// tactics.
class text_tactic {
 public:
  enum kind_type : std::uint8_t {
    manual,
    microbatch,
    remat,
    shard,
    amalgamated,
    actions,
    layouts,
    automatic,
    pipeline
  };
  /// `arg-tile x 0 16` tiles along the axis that yields shards of this width. `tile x 0 "B"` and
  /// `atomic x "B"` apply to all values that a name selects. `propagate` propagates.
  struct action {
    enum kind_type : std::uint8_t { arg_tile, tile, atomic, propagate };
    kind_type what = arg_tile;
    text place;     ///< its position in the text, for messages
    text argument;  ///< a name, or a number as `#1`
    std::int64_t number = -1;
    std::int64_t dim = 0, width = 0;
    text axis;
    uneven policy = uneven::unsaid;
  };

  /// The layout of one value along several axes.
  struct whole_layout {
    enum kind_type : std::uint8_t { input, output, tag };
    struct piece {
      int dim = -1;  ///< -1: replicated along the axis
      text axis;     ///< or a part of an axis, in the notation of `manual`
    };
    kind_type kind = input;
    int number = -1;  ///< of an input or output
    text name;        ///< of a tag
    vec<piece> pieces;
    vec<char> closed;  ///< by dimension: true if only these axes may shard it
  };

  kind_type kind = manual;
  text place;  ///< line and column, for messages; empty for a tactic that is not in the user's text
  kept_name label, axis;
  vec<schedule_detail::kept_manual_entry> entries;
  uneven policy = uneven::unsaid;
  vec<schedule_detail::kept_shard_entry> shards;
  vec<text_tactic> parts;  ///< of `amalgamated`
  std::int64_t steps = 0;
  vec<schedule_detail::kept_microbatch_entry> batches;
  vec<kept_name> scopes;
  vec<action> list;
  vec<whole_layout> values;
  vec<text> axes;                    ///< of `automatic`
  search_options search;             ///< of `automatic`
  vec<machine> on;                   ///< of `automatic`: its machine or the system's
  bool has_device = false;           ///< of `automatic`: true if it names a device
  bool searched = false;             ///< of `automatic`: true if the result of the search is known
  vec<text_tactic> found;            ///< the result, applied without a search if `searched`
  vec<pipeline_tactic<>> pipelines;  ///< of `pipeline`: one element

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
    if (r.error) return;
    if (is_pipeline()) pipelines[0].rewrite(r);
    if (kind == microbatch)
      schedule_detail::microbatch_rewrite{steps, {batches.data(), batches.size()}}.rewrite(r);
    if (kind == remat) schedule_detail::remat_rewrite(r, {scopes.data(), scopes.size()}).run();
    for (const text_tactic& t : parts) t.rewrite(r);
    locate(r.error);
  }
  constexpr void apply(tactic_context& c) const {
    if (c.error) return;
    switch (kind) {
      case manual:
        schedule_detail::manual_actions{axis, {entries.data(), entries.size()}, policy}.apply(c);
        break;
      case shard:
        schedule_detail::shard_actions{{shards.data(), shards.size()}, label, policy}.apply(c);
        break;
      case amalgamated:
        at_once(c);
        break;
      case actions:
        for (const auto& a : list) act(c, a);
        break;
      case layouts:
        lay_out(c);
        break;
      case automatic:
        look(c);
        break;
      case microbatch:
      case remat:
      case pipeline:
        break;  // rewrites the program
    }
    locate(c.error);
  }

 private:
  /// Adds the position of the line to a message that has none.
  constexpr void locate(failure& f) const {
    if (!f || place.empty()) return;
    const text message = f.message;
    const std::string_view all = message, rest = all.substr(all.find(' ') + 1);
    if (!rest.starts_with("schedule: "))
      f.set(concat(all.substr(0, all.find(' ')), " schedule: ", place, ": ", rest));
  }
  /// Same effect as partita::amalgamated.
  constexpr void at_once(tactic_context& c) const {
    const bool outer = c.postponed;
    c.postponed = true;
    for (const text_tactic& t : parts) t.apply(c);
    c.postponed = outer;
    c.propagate();
  }
  constexpr void act(tactic_context& c, const action& a) const {
    if (c.error) return;
    if (a.what == action::propagate) return c.propagate();
    if (a.what == action::arg_tile) return tile(c, a);
    const int along = c.axis(a.axis.view());
    if (c.error) return;
    const schedule_detail::kept_manual_entry entry(manual_entry{a.argument, unknown});
    const auto who = [&] { return concat("schedule: ", a.place); };
    schedule_detail::entry_list(span<const schedule_detail::kept_manual_entry>(&entry, 1), who)
        .for_each(c, [&](const schedule_detail::selected_value& v, std::size_t) {
          if (v.is_cotangent && c.is_placed(v.value.value, along)) return;
          if (a.what == action::atomic)
            c.atomic(v.value.value, along);
          else
            c.tile(v.value.value, static_cast<int>(a.dim), along, a.policy);
        });
  }
  constexpr void look(tactic_context& c) const {
    if (searched) {
      const bool outer = c.settles;
      c.settles = false;  // as in the search
      for (const text_tactic& t : found) t.apply(c);
      c.settles = outer;
      return;
    }
    if (on.empty() || on[0].device == device())
      return c.error.record("X015", "schedule: ", place, place.empty() ? "" : ": ",
                            "automatic searches for a device; none is given: name one in the "
                            "system, as device A100-80, or in its options, {device: A100-80}");
    basic_automatic<>(axes, on[0], search, label).apply(c);
  }
  /// Applies the actions of all values, then propagates once.
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
      // A function that is called several times has the tags "h", "h.again", "h.again.2".
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
    c.settle();
    for (std::size_t i = 0; i < values.size(); ++i)
      for (value_id v : places[i]) note_further(c, v, values[i]);
  }
  /// Adds a note for each closed dimension that propagation sharded further.
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
  /// Returns the size of an axis at a value; it may differ between meshes.
  static constexpr std::int64_t whole_size(const tactic_context& c, value_id v, int axis) {
    const core_program& core = c.core();
    return core.uneven_sizes().contains(axis) ? core.size(core.p.producer(v), axis)
                                              : c.mesh().whole_size(axis);
  }
  /// Returns the extent of the block on one device, including padding.
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
      return c.error.record("X006", "schedule: ", a.place, ": argument ", a.argument,
                            " does not exist; the program has ", p.input_count(),
                            a.number < 0 ? "; " : "",
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
      return c.error.record("X007", "schedule: ", a.place, ": shards of ", a.width,
                            " along dimension ", a.dim, " of \"", c.core().describe(v),
                            "\", which has ", local, " elements there, need an axis of ",
                            a.width > 0 && local % a.width == 0 ? concat(local / a.width)
                                                                : concat(local, '/', a.width),
                            "; the mesh has ", axes, fits > 1 ? "; name it with manual" : "");
    c.tile(v, static_cast<int>(a.dim), found);
  }
};

}  // namespace partita
