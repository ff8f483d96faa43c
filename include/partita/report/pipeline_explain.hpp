/// Reasons for the collectives and transfers of a pipeline, locations of its values, and values
/// replicated by default, as text.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/replicated_on_meshes.hpp>
#include <partita/mpmd/takers.hpp>
#include <partita/mpmd/unit_text.hpp>
#include <partita/report/explain.hpp>
#include <partita/report/pipeline_sent.hpp>
#include <partita/schedule/explainer.hpp>
#include <partita/schedule/while_notes.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace report_detail {

/// The units that produce and use a value: `computed by forward of stage 0, used by forward of
/// stage 1`.
class value_flow {
 public:
  constexpr explicit value_flow(const pipelined& p) : p_(p), made_by_(p.source.ops.size(), -1) {
    takers_.resize(p.source.types.size(), vec<int>{});
    for (int u = static_cast<int>(p.units.size()); u-- > 0;) {
      const pipeline_unit& unit = p.units[u];
      for (const op_id o : unit.piece.ops) made_by_[o] = u;
      for (const op_id o : unit.combined) made_by_[o] = u;
    }
    mpmd_detail::for_each_taker(p, [&](value_id v, int u) { takers_[v].push_back(u); });
  }
  /// The first unit that computes a value, or -1.
  constexpr int maker(value_id v) const { return made_by_[p_.source.producer(v)]; }
  /// The units on a mesh (or on all meshes, for -1) that use a value computed elsewhere.
  constexpr text takers(value_id v, int mesh) const {
    text out;
    for (const int u : takers_[v])
      if (mesh < 0 || p_.units[u].piece.mesh == mesh)
        out << (out.empty() ? "" : ", ") << mpmd_detail::unit_kind(p_.units[u]);
    return out;
  }

 private:
  const pipelined& p_;
  vec<int> made_by_;      ///< by op
  vec<vec<int>> takers_;  ///< by value
};

/// An index from a value to its inputs, outputs and transfers, and from its printed name to its
/// collectives.
///
/// Cost      linear in the pipeline
class value_index {
 public:
  /// A collective: its unit and its index there.
  struct place {
    int unit = -1, note = -1;
  };
  /// `name_of(note)` returns the printed name of the collective's value.
  template <class NameOf>
  constexpr value_index(const pipelined& p, const NameOf& name_of)
      : inputs(by_value(p, p.source.inputs, [](value_id v) { return v; })),
        outputs(by_value(p, p.source.outputs, [](const auto& each) { return each.value; })),
        transfers(by_value(p, p.transfers, [](const transfer& t) { return t.value; })),
        first_(0) {
    for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
      for (int n = 0; n < static_cast<int>(p.units[u].notes.size()); ++n) {
        names_.push_back(name_of(p.units[u].notes[n]));
        places_.push_back({u, n});
      }
    next_.resize(names_.size(), -1);
    for (int i = static_cast<int>(names_.size()); i-- > 0;) add(i);
  }
  template <class F>
  constexpr void for_each_collective(std::string_view name, const F& f) const {
    const int chain = first_.find(name);
    for (int i = chain < 0 ? -1 : heads_[chain]; i >= 0; i = next_[i]) f(places_[i]);
  }

  mpmd_detail::grouping inputs, outputs, transfers;  ///< by value

 private:
  vec<text> names_;  ///< by collective
  vec<place> places_;
  vec<int> next_, heads_;
  name_table first_;  ///< by name; the first entry of each list in `heads_`

  template <class List, class Value>
  static constexpr mpmd_detail::grouping by_value(const pipelined& p, const List& list,
                                                  const Value& value) {
    vec<int> of;
    for (const auto& each : list) of.push_back(value(each));
    return {of, static_cast<int>(p.source.types.size())};
  }
  constexpr void add(int i) {
    const int fresh = static_cast<int>(heads_.size()), chain = first_.insert(names_[i], fresh);
    if (chain == fresh) heads_.push_back(-1);
    next_[i] = heads_[chain];
    heads_[chain] = i;
  }
};

/// Builds the texts of `explain` for a pipeline.
class pipeline_explainer {
 public:
  constexpr explicit pipeline_explainer(const pipelined& p)
      : p_(p), flow_(p), words_(p.source, p.core), names_(names_of(p)) {}

  constexpr text all() {
    text out;
    columns lines;
    for (const auto& u : p_.units)
      for (const collective_note& n : u.notes) collective_line(lines, u, n);
    lines.print(out);
    transfers(out);
    sums(out);
    unknown_loops unknown;
    for (const auto& u : p_.units) unknown.add(estimate(u.device).unknown);
    schedule_detail::print_notes(out, p_.removed, unknown);
    schedule_detail::print_while_notes(out, p_.source);
    return out;
  }
  /// The cells mesh, function, kind and axes, value, bytes, number of runs, tactic, reason.
  constexpr vec<text> collective_cells(const pipeline_unit& u, const collective_note& n) {
    text what, value, why;
    words_.what(what, n);
    words_.value(value, n.value);
    words_.why(why, n);
    return {name_text(mesh_name(u.piece.mesh)),
            mpmd_detail::unit_kind(u),
            what,
            value,
            byte_text(n.bytes_sent(p_.meshes[u.piece.mesh])),
            concat('x', saturating_multiply(n.times, calls_of(p_, u))),
            text(p_.tactics[n.tactic].name),
            why};
  }
  /// The cells source and target mesh, value, bytes, number of runs, layout, users.
  constexpr vec<text> transfer_cells(int i) const {
    const transfer& t = p_.transfers[i];
    const bool inside = t.after >= 0 && p_.units[t.after].inside;
    const text to = flow_.takers(t.value, t.to);
    return {concat(name_text(mesh_name(t.from)), " -> ", name_text(mesh_name(t.to))),
            name(t.value),
            byte_text(p_.source.type(t.value).bytes()),
            concat('x', inside ? p_.microbatches : 1),
            lies(i),
            concat("for ", to.empty() ? "the caller" : to.view())};
  }
  /// Describes the values that a name selects.
  constexpr text of(std::string_view name) {
    text out;
    const vec<value_id> found = values_of(name);
    const value_index index(p_, [&](const collective_note& n) {
      text of;
      words_.value(of, n.value);
      return of;
    });
    for (const value_id v : found) value(out, v, index);
    if (found.empty()) out << "error: " << no_such_value(name).message << '\n';
    return out;
  }

 private:
  const pipelined& p_;
  value_flow flow_;
  schedule_detail::explainer words_;
  value_names names_;

  static constexpr value_names names_of(const pipelined& p) {
    if (p.core.p.ops.empty()) return value_names(p.source);
    return value_names(flat_program(p.source).p);
  }
  constexpr bool is_sharded() const { return !p_.core.p.ops.empty(); }
  constexpr std::string_view mesh_name(int m) const { return p_.topology.name(m); }
  constexpr value_id core_value(value_id v) const {
    const vec<value_id>& of = p_.core.nested.value_of;
    return of.empty() ? v : of[v];
  }
  constexpr text name(value_id v) const { return concat('%', names_[core_value(v)]); }

  static constexpr text byte_text(std::int64_t n) {
    text out;
    print_figure(out, n);
    return out << " bytes";
  }
  /// Prints a row; the cell with bytes and the next one are right-aligned.
  static constexpr void row(columns& lines, const vec<text>& cells, int bytes) {
    for (int i = 0; i < static_cast<int>(cells.size()); ++i)
      lines.cell(cells[i], i == bytes || i == bytes + 1);
    lines.end_row();
  }

  // ---- Collectives ------------------------------------------------------------------------------

  constexpr void collective_line(columns& lines, const pipeline_unit& u, const collective_note& n) {
    row(lines, collective_cells(u, n), 4);
  }
  /// The number of runs of each kind on a mesh.
  constexpr collectives runs(int mesh) const {
    collectives all;
    for (const auto& u : p_.units)
      if (u.piece.mesh == mesh)
        for (const auto& n : u.notes)
          all.count(n.kind, saturating_multiply(n.times, calls_of(p_, u)));
    return all;
  }
  /// Prints the number of runs of each kind on each mesh, and the bytes that a device of the mesh
  /// sends for it.
  constexpr void sums(text& out) const {
    columns rows;
    const vec<schedule_detail::bytes_by_kind> sent = sent_by_mesh(p_);
    for (int m = 0; m < p_.topology.count(); ++m) {
      const collectives all = runs(m);
      const std::int64_t of[] = {all.all_gather, all.all_reduce, all.reduce_scatter, all.all_to_all,
                                 all.permute};
      constexpr collective::kind_type kinds[] = {collective::all_gather, collective::all_reduce,
                                                 collective::reduce_scatter, collective::all_to_all,
                                                 collective::permute};
      const auto line = [&](std::string_view what, std::int64_t times, std::int64_t bytes) {
        rows.cell(name_text(mesh_name(m))).cell(what).cell(concat('x', times), true);
        rows.number(bytes, " bytes").end_row();
      };
      for (int k = 0; k < schedule_detail::kind_count; ++k)
        if (of[k] > 0) line(name_of(kinds[k]), of[k], sent[m].of[static_cast<int>(kinds[k])]);
      line("all", all.total(), sent[m].total());
    }
    out << "in all:\n";
    rows.print(out, "  ");
  }

  // ---- Transfers --------------------------------------------------------------------------------

  constexpr void transfers(text& out) const {
    vec<int> all;
    for (int i = 0; i < static_cast<int>(p_.transfers.size()); ++i) all.push_back(i);
    transfers(out, {all.data(), all.size()});
  }
  constexpr void transfers(text& out, span<const int> list) const {
    columns lines;
    for (const int i : list) transfer_line(lines, i);
    out << "transfers:" << (list.size() > 0 ? "\n" : " none\n");
    lines.print(out, "  ");
  }
  constexpr void transfer_line(columns& lines, int i) const { row(lines, transfer_cells(i), 2); }
  /// The layout that a transfer sends, `[{"B"}, {}]`; also states whether the receiver uses another
  /// layout or block shape.
  constexpr text lies(int i) const {
    const transfer& t = p_.transfers[i];
    const transfer_layout& l = p_.sent_as[i];
    const int rank = p_.source.type(t.value).shape.rank;
    text out;
    if (!is_sharded()) return out << "unsharded";
    print_layout(out, l.from, rank, p_.meshes[t.from]);
    if (!(l.from == l.to)) print_layout(out << " to ", l.to, rank, p_.meshes[t.to]);
    const bool recut = !(piece(t.value, l.from, t.from) == piece(t.value, l.to, t.to));
    return recut ? out << ", resharded" : out;
  }
  constexpr tensor_type piece(value_id v, const layout& l, int mesh) const {
    const tensor_type& whole = p_.values().type(p_.slot_of[v]);
    return {whole.element, l.local(whole.shape, p_.meshes[mesh])};
  }

  // ---- A value ----------------------------------------------------------------------------------

  static constexpr bool is_selected(std::string_view wanted, std::string_view name) {
    return schedule_detail::selects(wanted, name) ||
           (schedule_detail::is_pattern(wanted) && schedule_detail::selects_pattern(wanted, name));
  }
  /// The inputs and outputs that have a name or are below it; if no such port exists, the value
  /// that is printed with this name.
  constexpr vec<value_id> values_of(std::string_view wanted) const {
    if (!wanted.empty() && wanted[0] == '%') wanted.remove_prefix(1);
    vec<value_id> found;
    vec<char> seen(p_.source.types.size(), 0);
    const auto take = [&](value_id v, std::string_view n) {
      if (is_selected(wanted, n) && seen[v]++ == 0) found.push_back(v);
    };
    for (int i = 0; i < p_.source.input_count(); ++i)
      take(p_.source.inputs[i], p_.source.input_name(i));
    for (int i = 0; i < p_.source.output_count(); ++i)
      take(p_.source.outputs[i].value, p_.source.output_name(i));
    for (value_id v = 0; v < p_.source.value_count() && found.empty(); ++v)
      if (names_[core_value(v)] == wanted) found.push_back(v);
    return found;
  }
  constexpr int find_input(std::string_view name) const {
    for (int i = 0; i < p_.source.input_count(); ++i)
      if (p_.source.input_name(i) == name) return i;
    return -1;
  }
  /// Errors    O149 the pipeline has no value of this name
  constexpr failure no_such_value(std::string_view wanted) const {
    vec<std::string_view> known;
    for (int i = 0; i < p_.source.input_count(); ++i) known.push_back(p_.source.input_name(i));
    for (int i = 0; i < p_.source.output_count(); ++i)
      if (find_input(p_.source.output_name(i)) < 0) known.push_back(p_.source.output_name(i));
    failure f;
    f.record("O149", "explain: the pipeline has no value \"", wanted,
             "\"; give an input, an output, or a name in the printed pipeline; ",
             known_names(wanted, known));
    return f;
  }
  constexpr void value(text& out, value_id v, const value_index& index) {
    const op_id o = p_.source.producer(v);
    out << name(v) << " : " << p_.source.type(v);
    if (p_.inside[o] != 0) out << ", for each of " << p_.microbatches << " microbatches";
    out << '\n';
    for (const int i : index.inputs[v])
      place(out << "input ", p_.source.input_name(i), v, p_.input_layout[i], p_.input_mesh[i]);
    made(out, v);
    for (const int i : index.outputs[v])
      place(out << "output ", p_.source.output_name(i), v, p_.output_layout[i], p_.output_mesh[i]);
    if (const text to = flow_.takers(v, -1); !to.empty()) out << "used by " << to << '\n';
    transfers(out, index.transfers[v]);
    collectives_of(out, v, index);
  }
  /// Prints `input "w1" on m0 [{"B"}, {"M"}], tensor<2x4xf32> on each device`.
  constexpr void place(text& out, std::string_view name, value_id v, const layout& l, int mesh) {
    print_quoted(out, name);
    out << " on " << name_text(mesh_name(mesh));
    pieces(out, v, l, mesh);
    out << '\n';
  }
  constexpr void pieces(text& out, value_id v, const layout& l, int mesh) const {
    if (!is_sharded()) return;
    out << ' ';
    print_layout(out, l, p_.source.type(v).shape.rank, p_.meshes[mesh]);
    out << ", " << piece(v, l, mesh) << " on each device";
  }
  constexpr void made(text& out, value_id v) const {
    const int u = flow_.maker(v);
    if (u < 0 || p_.source.is(p_.source.producer(v), op_role::parameter)) return;
    const int mesh = p_.units[u].piece.mesh;
    out << "computed by " << mpmd_detail::unit_kind(p_.units[u]) << " on "
        << name_text(mesh_name(mesh));
    if (is_sharded()) pieces(out, v, p_.core.produced_layout(p_.slot_of[v]), mesh);
    for (const unit_value& given : p_.units[u].gives)
      if (given.slot == p_.slot_of[v] && !given.terms.empty())
        print_axis_set(out << ", a partial sum over ", given.terms, p_.core.mesh);
    out << '\n';
  }
  constexpr void collectives_of(text& out, value_id v, const value_index& index) {
    columns lines;
    bool any = false;
    index.for_each_collective(name(v), [&](const value_index::place& at) {
      collective_line(lines, p_.units[at.unit], p_.units[at.unit].notes[at.note]);
      any = true;
    });
    out << "collectives:" << (any ? "\n" : " none\n");
    lines.print(out, "  ");
  }
};

}  // namespace report_detail

/// Prints one line for each collective of a pipeline's functions: mesh, function, kind and axes,
/// value, bytes that a device sends, the number of runs in a step, the last tactic that changed it,
/// and the reason. Then come the transfers between meshes with the bytes of their global values,
/// layouts and receivers. Then, for each mesh, the number of runs of each kind and the bytes that a
/// device sends. Notes come last: removed dead code, and loops of unknown length, counted as one
/// iteration.
///
/// Errors    those of the pipeline, as the text "error: " and the message
constexpr text explain(const pipelined& p) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_explainer(p).all();
}
/// Describes the inputs and outputs that a name or pattern selects, or the value that is printed
/// with this name: the stage and mesh that compute it, its layout, its users, its transfers and its
/// collectives.
///
/// Errors    O149 no value matches; those of the pipeline. Both are the text "error: " and the
///           message
constexpr text explain(const pipelined& p, std::string_view name) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::pipeline_explainer(p).of(name);
}

namespace report_detail {
template <auto Thunk>
struct explained_pipeline {
  constexpr text operator()() const { return explain(Thunk()); }
};
}  // namespace report_detail

/// The same text for the pipeline that `Thunk` returns, computed at compile time.
template <auto Thunk>
requires std::same_as<decltype(Thunk()), pipelined>
constexpr std::string_view explain() {
  return report_detail::kept_text<report_detail::explained_pipeline<Thunk>>();
}

/// Prints the values that the meshes of a pipeline replicate by default (see replicated_on_mesh),
/// largest first: bytes on one device times copies, the value, its op and type, the mesh and its
/// axes. At most `limit` lines; the rest is counted and summed.
constexpr text print_replicated(const pipelined& p, int limit = 20) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::replicated_text(
      p.core, p.source, replicated_by_default(p), limit, [&](const replicated_on_mesh& v) {
        return concat("on ", name_text(p.topology.name(v.mesh)), ' ');
      });
}

}  // namespace partita
