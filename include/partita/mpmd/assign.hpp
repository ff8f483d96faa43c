/// Assigns the named parts of a program to meshes.
///
/// Source    Shardy:MPMD, mesh assignment
#pragma once

#include <string_view>

#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/topology.hpp>
#include <partita/op/registry.hpp>
#include <partita/schedule/remat_scopes.hpp>
#include <partita/support/place_table.hpp>

namespace partita {

/// A named part of a program, or an input or output, and the mesh it is assigned to. A name selects
/// itself and everything below it ("layers" selects "layers.3"); a pattern selects its matches
/// ("layers.*.mlp"). If several names select the same part, the longest one counts. Nested parts
/// are selected by their own names and by the path of all names around them ("stage0.layer1"). If
/// the program has labels (program::labels), the ops with these labels are selected too.
///
/// A pipeline stage, counted from 0, may follow. Without one, the line belongs to the stage of the
/// line before if both have the same mesh, and to the next stage otherwise.
struct mesh_for {
  std::string_view name, mesh;
  int stage = -1;
};

/// The mesh of each part, input and output. Unmentioned inputs are stored on the first mesh that
/// uses them, outputs on the mesh that computes them, and next states on the mesh of their state.
struct assignment {
  vec<mesh_for> names = {};
  vec<mesh_for> inputs = {}, outputs = {};
  /// True if any value may be sent to another mesh. Otherwise a value is sent only if one named
  /// part computes it and another named part uses it directly; inputs, outputs and values that are
  /// combined from several meshes are sent, too.
  bool infer_transfers = false;
};

namespace mpmd_detail {

/// A call of a named part that is assigned to a mesh. Of nested parts, the outer one.
struct named_part {
  text name;
  int call = 0;  ///< number of earlier calls of a part with this name
  int mesh = -1, stage = -1;
};
/// The key of a fragment: the ops of a part with the same transpose count form one fragment.
struct part_key {
  int part = -1, transposed = 0;
};

/// Finds the line that selects a name.
class line_finder {
 public:
  vec<char> found;  ///< by line: true if it has selected anything

  constexpr explicit line_finder(const vec<mesh_for>& lines)
      : found(lines.size(), 0), lines_(lines), exact_(lines.size()) {
    for (int i = 0; i < static_cast<int>(lines.size()); ++i)
      if (schedule_detail::is_pattern(lines[i].name))
        patterns_.push_back(i);
      else
        exact_.insert(lines[i].name, i);
  }
  /// The line with the longest name that selects this one, or -1.
  ///
  /// Cost: the characters of the name times its dots, and a walk over all patterns.
  constexpr int of(std::string_view name) {
    int best = -1;
    for (std::size_t end = name.size() + 1; end-- > 0 && best < 0;)
      if (end == name.size() || name[end] == '.') best = exact_.find(name.substr(0, end));
    if (best >= 0) found[best] = 1;
    for (int i : patterns_) {
      if (!schedule_detail::selects_pattern(lines_[i].name, name)) continue;
      found[i] = 1;
      if (best < 0 || lines_[i].name.size() > lines_[best].name.size()) best = i;
    }
    return best;
  }

 private:
  const vec<mesh_for>& lines_;
  name_table exact_;
  vec<int> patterns_;
};

/// By scope: the line that selects it by its own name or by the path of names around it, or -1.
constexpr vec<int> lines_of_scopes(const scope_list& scopes, line_finder& finder) {
  vec<text> paths;
  vec<int> lines;
  for (int s = 0; s < scopes.count(); ++s) {
    const int outer = scopes.outer(s);
    text path;
    if (outer >= 0) path << paths[outer] << '.';
    path << scopes.name(s);
    lines.push_back(finder.of(scopes.name(s)));
    if (lines.back() < 0 && outer >= 0) lines.back() = finder.of(path);
    paths.push_back(static_cast<text&&>(path));
  }
  return lines;
}
/// Strips derivative markers from a label. `transposed` is the number of times that reverse mode
/// was applied according to the label.
constexpr std::string_view without_derivatives(std::string_view label, int& transposed) {
  for (; label.substr(0, 5) == "grad."; label.remove_prefix(5)) ++transposed;
  return label;
}

/// Recognizes ops of parts that lines assign to meshes.
class part_selector {
 public:
  constexpr part_selector(const scope_list& scopes, const label_list& labels,
                          const vec<mesh_for>& lines)
      : scopes_(scopes), labels_(labels), finder_(lines), lines_(lines_of_scopes(scopes, finder_)) {
    for (int s = 0; s < scopes.count(); ++s)  // everything inside a part belongs to it
      if (const int outer = scopes.outer(s); outer >= 0 && lines_[outer] >= 0)
        lines_[s] = lines_[outer];
  }
  constexpr bool has(const op_node& n) { return line_of(n) >= 0; }
  /// The line that selects the part of an op, or -1.
  constexpr int line_of(const op_node& n) {
    if (const int scope = scopes_.of(n.marks.source); scope >= 0 && lines_[scope] >= 0)
      return lines_[scope];
    int transposed = 0;
    const std::string_view label =
        without_derivatives(labels_.find(n.marks.source, n.def->id), transposed);
    return label.empty() ? -1 : finder_.of(label);
  }

 private:
  const scope_list& scopes_;
  const label_list& labels_;
  line_finder finder_;
  vec<int> lines_;  ///< by scope
};

/// True if a nested program contains an op of an assigned part, or of a derivative of one.
constexpr bool has_parts(const program& region, part_selector& parts) {
  bool found = false;
  ir_detail::for_each_op(region, [&](const op_node& n) { found = found || parts.has(n); });
  return found;
}

/// The ops that are assigned to meshes by their names.
struct assigned_program {
  vec<int> mesh;     ///< by op: the mesh it is assigned to, or -1
  vec<int> key;      ///< by op: its place in `keys`, or -1
  vec<char> free;    ///< by op: true if it is recomputed wherever it is used
  vec<char> inside;  ///< by op: true if it runs for each microbatch; empty: no microbatches
  vec<named_part> parts;
  vec<part_key> keys;
  vec<int> inputs, outputs;  ///< by number: the requested mesh, or -1
  failure error;

  constexpr bool fixed(op_id o) const { return mesh[o] >= 0; }
};

/// Errors    O105 unknown mesh; O106 two lines for one name; O107 a part inside a part of another
///           mesh; O108 nothing has this name; O139 the name is an iteration of a loop; O109 a
///           nested program on several meshes; and those of validate()
class assigner {
 public:
  constexpr assigner(const program& p, const topology& t, const assignment& a)
      : p_(p), t_(t), a_(a), finder_(a.names), label_parts_(16) {
    out_.error.record(p.error);
    out_.error.record(validate(t));
  }

  constexpr assigned_program run() {
    const auto count = p_.ops.size();
    out_.mesh.resize(count, -1);
    out_.key.resize(count, -1);
    out_.free.resize(count, 0);
    find_meshes(a_.names, mesh_of_line_);
    find_stages();
    if (!out_.error) find_scope_parts();
    for (op_id o = 0; o < p_.op_count() && !out_.error; ++o) assign(o);
    if (!out_.error) check_found(a_.names, finder_, "named part", part_names());
    vec<std::string_view> inputs, outputs;
    for (int i = 0; i < p_.input_count(); ++i) inputs.push_back(p_.input_name(i));
    for (int i = 0; i < p_.output_count(); ++i) outputs.push_back(p_.output_name(i));
    assign_values(a_.inputs, "input", inputs, out_.inputs);
    assign_values(a_.outputs, "output", outputs, out_.outputs);
    if (!out_.error) find_free();
    if (!out_.error && !p_.labels.empty()) take_steps();
    if (!out_.error) join_derivatives();
    return static_cast<assigned_program&&>(out_);
  }

 private:
  const program& p_;
  const topology& t_;
  const assignment& a_;
  assigned_program out_;
  line_finder finder_;
  vec<int> mesh_of_line_, stage_of_line_;
  vec<int> scope_part_;     ///< by scope: its part, or the outermost part around it, or -1
  name_table label_parts_;  ///< name -> part
  vec<text> label_names_;
  place_table key_places_;

  // ---- Lines ------------------------------------------------------------------------------------

  constexpr void find_meshes(const vec<mesh_for>& lines, vec<int>& meshes) {
    name_table names(lines.size());
    for (int i = 0; i < static_cast<int>(lines.size()); ++i) {
      const mesh_for& line = lines[i];
      meshes.push_back(t_.find(line.mesh));
      if (meshes.back() < 0)
        out_.error.record("O105", "mpmd: \"", line.name, "\" is assigned to mesh \"", line.mesh,
                          "\", which the topology does not have; ",
                          known_names(line.mesh, t_.names()));
      if (names.insert(line.name, i) != i)
        out_.error.record("O106", "mpmd: \"", line.name, "\" is assigned twice, to ",
                          place_text(lines[names.find(line.name)]), " and to ", place_text(line),
                          "; name it once");
    }
  }
  /// Text of a line's place: `stage 1 on mesh "m1"` if the line states a stage.
  static constexpr text place_text(const mesh_for& line) {
    text out;
    if (line.stage >= 0) out << "stage " << line.stage << " on ";
    return out << "mesh \"" << line.mesh << '"';
  }
  constexpr void find_stages() {
    int stage = -1;
    for (int i = 0; i < static_cast<int>(a_.names.size()); ++i) {
      if (a_.names[i].stage >= 0)
        stage = a_.names[i].stage;
      else if (i == 0 || mesh_of_line_[i] != mesh_of_line_[i - 1])
        ++stage;
      stage_of_line_.push_back(stage);
    }
  }
  constexpr void check_found(const vec<mesh_for>& lines, const line_finder& finder,
                             std::string_view what, const vec<std::string_view>& names) {
    for (std::size_t i = 0; i < lines.size(); ++i)
      if (!finder.found[i] && !is_iteration(lines[i].name))
        out_.error.record("O108", "mpmd: no ", what, " has the name \"", lines[i].name,
                          "\" or is below it; ", known_names_or_below(lines[i].name, names));
  }

  static constexpr bool is_number_or_pattern(std::string_view s) {
    bool digits = !s.empty();
    for (const char c : s) digits = digits && c >= '0' && c <= '9';
    return digits || schedule_detail::is_pattern(s);
  }
  /// True if a name selects an iteration of a loop: `layers.2` or `layers.*` where a loop contains
  /// `layers`. Then reports why that is not possible.
  constexpr bool is_iteration(std::string_view name) {
    const std::size_t dot = name.rfind('.');
    if (dot == name.npos || dot == 0 || !is_number_or_pattern(name.substr(dot + 1))) return false;
    const std::string_view part = name.substr(0, dot);
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (const program& r : p_.regions_of(o))
        if (const std::string_view inside = part_inside(r, part); !inside.empty()) {
          out_.error.record(
              "O139", "mpmd: \"", name, "\" would be ",
              schedule_detail::is_pattern(name) ? "iterations of " : "an iteration of ",
              p_.op(o).def->name, ", which has \"", inside,
              "\" in it; a loop runs on one mesh: assign all of \"", inside,
              "\", or unroll it (in C++ a for statement with named(\"", part,
              "\", i, ...), in JAX lax.scan(..., unroll=True))");
          return true;
        }
    return false;
  }
  /// The name by which a nested program contains a part: its own, or a label that ends in it, as in
  /// JAX ("while.body.layers" for "layers"). Empty if the program does not contain it.
  constexpr std::string_view part_inside(const program& region, std::string_view part) const {
    part_selector parts(p_.scopes, p_.labels, {{part, {}}});
    if (has_parts(region, parts)) return part;
    std::string_view found;
    ir_detail::for_each_op(region, [&](const op_node& n) {
      int transposed = 0;
      const std::string_view label =
          without_derivatives(p_.labels.find(n.marks.source, n.def->id), transposed);
      if (found.empty()) found = path_to(label, part);
    });
    return found;
  }
  /// The prefix of `a.b.c` up to its part `b`: `a.b`. Empty if it does not contain this part.
  static constexpr std::string_view path_to(std::string_view label, std::string_view part) {
    for (std::size_t at = label.find(part); at < label.size(); at = label.find(part, at + 1)) {
      const std::size_t end = at + part.size();
      if ((at == 0 || label[at - 1] == '.') && (end == label.size() || label[end] == '.'))
        return label.substr(0, end);
    }
    return {};
  }

  // ---- Parts ------------------------------------------------------------------------------------

  constexpr int add_part(std::string_view name, int call, int line) {
    out_.parts.push_back({name, call, mesh_of_line_[line], stage_of_line_[line]});
    return static_cast<int>(out_.parts.size()) - 1;
  }
  constexpr void find_scope_parts() {
    const scope_list& scopes = p_.scopes;
    const vec<int> lines = lines_of_scopes(scopes, finder_);
    for (int s = 0; s < scopes.count(); ++s) {
      const int outer = scopes.outer(s), line = lines[s];
      const int around = outer < 0 ? -1 : scope_part_[outer];
      if (around >= 0 && line >= 0 && mesh_of_line_[line] != out_.parts[around].mesh)
        return out_.error.record(
            "O107", "mpmd: part \"", scopes.name(s), "\" is assigned to mesh \"",
            a_.names[line].mesh, "\" and is inside part \"", out_.parts[around].name,
            "\", which is assigned to mesh \"", t_.name(out_.parts[around].mesh),
            "\"; assign both to one mesh, or only one of them");
      scope_part_.push_back(around >= 0 ? around
                            : line >= 0 ? add_part(scopes.name(s), scopes.call(s), line)
                                        : -1);
    }
  }
  constexpr vec<std::string_view> part_names() const {
    vec<std::string_view> names;
    for (int s = 0; s < p_.scopes.count(); ++s)
      if (p_.scopes.call(s) == 0) names.push_back(p_.scopes.name(s));
    ir_detail::for_each_op(p_, [&](const op_node& n) {
      const std::string_view label = p_.labels.find(n.marks.source, n.def->id);
      if (!label.empty()) names.push_back(label);
    });
    return names;
  }
  /// The key of a labelled op: the part of the label that a line selects, with separate elements of
  /// a list.
  constexpr part_key labelled(std::string_view label) {
    part_key key;
    label = without_derivatives(label, key.transposed);
    const int line = label.empty() ? -1 : finder_.of(label);
    if (line < 0) return key;
    const std::string_view name = schedule_detail::with_number(
        schedule_detail::selected_part(a_.names[line].name, label), label);
    key.part = label_parts_.find(name);
    if (key.part < 0) {
      key.part = add_part(name, 0, line);
      label_names_.push_back(name);
      label_parts_.insert(label_names_.back().view(), key.part);
    }
    return key;
  }
  constexpr part_key key_of(const op_node& n) {
    const int scope = p_.scopes.of(n.marks.source);
    const int part = scope < 0 ? -1 : scope_part_[scope];
    if (part >= 0) return {part, n.marks.transposed};
    if (p_.labels.empty()) return {};
    return labelled(p_.labels.find(n.marks.source, n.def->id));
  }

  // ---- Ops --------------------------------------------------------------------------------------

  /// Assigns an op to a part. Ops that a derivative recomputes belong to no part: they are computed
  /// where they are used.
  constexpr void assign(op_id o) {
    const op_node& n = p_.ops[o];
    if (n.operand_count == 0 && n.region_count == 0 && n.def->role != op_role::parameter) return;
    if (n.marks.again) return;
    part_key key = key_of(n);
    for (const auto& r : p_.regions_of(o)) take_nested(n, r, key);
    if (key.part < 0 || out_.error) return;
    out_.mesh[o] = out_.parts[key.part].mesh;
    if (n.def->role != op_role::parameter) out_.key[o] = key_number(key);
  }
  constexpr void take_nested(const op_node& around, const program& r, part_key& key) {
    ir_detail::for_each_op(r, [&](const op_node& n) {
      if (out_.error || n.marks.again || n.operand_count == 0) return;
      const part_key inner = key_of(n);
      if (inner.part < 0) return;
      if (key.part < 0) key = inner;
      const named_part &a = out_.parts[key.part], &b = out_.parts[inner.part];
      if (a.mesh == b.mesh) return;
      out_.error.record("O109", "mpmd: ", around.def->name, " has \"", a.name, "\" on mesh \"",
                        t_.name(a.mesh), "\" and \"", b.name, "\" on mesh \"", t_.name(b.mesh),
                        "\" in it; it runs on one mesh: ",
                        around.def->id == def<op::scan>.id
                            ? "unroll it (in C++ a for statement with named(...), in JAX "
                              "lax.scan(..., unroll=True)), assign both to one mesh, or, in a "
                              "pipeline whose microbatches its iterations are, leave .batch out"
                            : "write it out, or assign both to one mesh");
    });
  }
  constexpr int key_number(const part_key& key) {
    const auto hash = [](const part_key& k) {
      return hash_of(static_cast<std::uint64_t>(k.part) << 20 ^
                     static_cast<std::uint64_t>(k.transposed));
    };
    const int known = key_places_.find(hash(key), [&](int i) {
      return out_.keys[i].part == key.part && out_.keys[i].transposed == key.transposed;
    });
    if (known >= 0) return known;
    out_.keys.push_back(key);
    const int fresh = static_cast<int>(out_.keys.size()) - 1;
    key_places_.insert(fresh, [&](int i) { return hash(out_.keys[i]); });
    return fresh;
  }
  /// Maximum length of a chain of constants, broadcasts and renamings that is recomputed in each
  /// part. Recomputing it is as cheap as keeping its result; the limit is small because each part
  /// repeats it.
  static constexpr int free_steps = 4;
  constexpr void find_free() {
    // A returned value is computed in one place, and its users take it from there.
    vec<char> returned(p_.ops.size(), 0);
    for (const auto& out : p_.outputs) returned[p_.producers[out.value]] = 1;
    vec<char> steps(p_.ops.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.ops[o];
      if (n.def->role != op_role::compute || n.region_count > 0 || returned[o] != 0) continue;
      if (n.operand_count == 0) steps[o] = 1;
      if (n.operand_count == 1 && (n.def->repeats || n.def->fusion == fusion_kind::view)) {
        const char before = steps[p_.producers[p_.operand(o, 0)]];
        if (before > 0 && before < free_steps) steps[o] = static_cast<char>(before + 1);
      }
    }
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (steps[o] == 0) continue;
      out_.free[o] = 1;
      out_.mesh[o] = out_.key[o] = -1;
    }
  }
  /// In programs with labels, an op without one is a step of a composite op. It joins the part of
  /// all its users if they agree.
  constexpr void take_steps() {
    constexpr int nothing = -1, several = -2;
    vec<int> user(p_.ops.size(), nothing);  // by op: the common key of its users
    for (const auto& out : p_.outputs) user[p_.producers[out.value]] = several;
    for (op_id o = p_.op_count(); o-- > 0;) {
      const bool step = p_.is(o, op_role::compute) && p_.label(o, p_.labels).empty() &&
                        p_.scopes.of(p_.ops[o].marks.source) < 0 && out_.free[o] == 0;
      if (step && !out_.fixed(o) && user[o] >= 0) {
        out_.key[o] = user[o];
        out_.mesh[o] = out_.parts[out_.keys[user[o]].part].mesh;
      }
      const int mine = out_.key[o] < 0 ? several : out_.key[o];
      for (value_id v : p_.operands(o)) {
        int& by = user[p_.producers[v]];
        by = by == nothing || by == mine ? mine : several;
      }
    }
  }
  /// Removes the part of an op that sums derivatives of several parts; it keeps the mesh if all are
  /// on one.
  constexpr void join_derivatives() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.ops[o];
      if (out_.fixed(o) || n.marks.transposed == 0 || !n.def->adds || n.marks.again) continue;
      const int mesh = out_.mesh[p_.producers[p_.operand(o, 0)]];
      if (!p_.is(p_.producers[p_.operand(o, 0)], op_role::parameter) &&
          mesh == out_.mesh[p_.producers[p_.operand(o, 1)]])
        out_.mesh[o] = mesh;
    }
  }

  // ---- Inputs and outputs -----------------------------------------------------------------------

  constexpr void assign_values(const vec<mesh_for>& lines, std::string_view what,
                               const vec<std::string_view>& names, vec<int>& meshes) {
    meshes.resize(names.size(), -1);
    if (lines.empty() || out_.error) return;
    vec<int> mesh_of_line;
    find_meshes(lines, mesh_of_line);
    line_finder finder(lines);
    for (std::size_t i = 0; i < names.size(); ++i)
      if (const int line = finder.of(names[i]); line >= 0) meshes[i] = mesh_of_line[line];
    check_found(lines, finder, what, names);
  }
};

}  // namespace mpmd_detail

}  // namespace partita
