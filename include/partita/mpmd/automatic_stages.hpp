/// Finds the stages of a pipeline: groups of named parts with balanced times.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/simulate.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/stage_list.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace mpmd_detail {

/// The named parts of a program in the order in which its forward pass reaches them. Only outermost
/// parts are listed; of a label, the prefix before the first dot and an element's number
/// ("layers.3" of "layers.3.mlp.dot"). Parts with derivatives only come last. Ops that follow from
/// derivatives and that no derivative needs (an optimizer) belong to no stage and are not listed.
///
/// Cost: linear in ops and scopes.
class part_order {
 public:
  constexpr explicit part_order(const program& p)
      : p_(p), forward_(16), backward_(16), derived_(p.ops.size(), 0), needed_(p.ops.size(), 0) {
    find_flow();
    for (op_id o = 0; o < p.op_count(); ++o) {
      take(p.op(o), o);
      for (const auto& r : p.regions_of(o))
        ir_detail::for_each_op(r, [&](const op_node& n) { take(n, o); });
    }
  }
  constexpr vec<text> run() const {
    vec<text> out;
    for (const part& each : parts_)
      if (!each.follows || each.in_model || backward_.find(each.name) >= 0)
        out.push_back(text(each.name));
    for (std::size_t i = late_.size(); i-- > 0;)
      if (forward_.find(late_[i]) < 0) out.push_back(text(late_[i]));
    return out;
  }

 private:
  struct part {
    std::string_view name;
    bool follows = false;   ///< true if an op of it depends on a derivative
    bool in_model = false;  ///< true if a derivative depends on an op of it
  };
  const program& p_;
  name_table forward_, backward_;
  vec<part> parts_;
  vec<std::string_view> late_;
  vec<char> derived_;  ///< by op: true if it is part of a derivative or depends on one
  vec<char> needed_;   ///< by op: true if it is part of a derivative or a derivative depends on it

  constexpr void find_flow() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      bool derived = is_transposed(p_.op(o));
      needed_[o] = derived;
      for (const value_id v : p_.operands(o)) derived = derived || derived_[p_.producer(v)] != 0;
      derived_[o] = derived;
    }
    for (op_id o = p_.op_count(); o-- > 0;)
      for (const value_id v : p_.operands(o))
        if (needed_[o] != 0) needed_[p_.producer(v)] = 1;
  }
  constexpr std::string_view label_of(const op_node& n) const {
    return p_.labels.empty() ? std::string_view() : p_.labels.find(n.marks.source, n.def->id);
  }
  constexpr std::string_view name_of(const op_node& n) const {
    int scope = p_.scopes.of(n.marks.source);
    while (scope >= 0 && p_.scopes.outer(scope) >= 0) scope = p_.scopes.outer(scope);
    if (scope >= 0) return p_.scopes.name(scope);
    int transposed = 0;
    const std::string_view label = without_derivatives(label_of(n), transposed);
    const std::string_view first =
        schedule_detail::with_number(label.substr(0, label.find('.')), label);
    return first.size() < label.size() ? first : std::string_view();
  }
  constexpr bool is_transposed(const op_node& n) const {
    return n.marks.transposed > 0 || label_of(n).substr(0, 5) == "grad.";
  }
  /// `o`: the op itself, or the outermost op that contains it.
  constexpr void take(const op_node& n, op_id o) {
    if (n.operand_count == 0 || n.marks.again) return;
    const std::string_view name = name_of(n);
    if (name.empty()) return;
    if (is_transposed(n)) {
      if (backward_.find(name) >= 0) return;
      backward_.insert(name, static_cast<int>(late_.size()));
      return late_.push_back(name);
    }
    const int fresh = static_cast<int>(parts_.size()), known = forward_.insert(name, fresh);
    if (known == fresh) parts_.push_back({name});
    part& each = parts_[known];
    each.follows = each.follows || derived_[o] != 0;
    each.in_model = each.in_model || needed_[o] != 0;
  }
};

}  // namespace mpmd_detail

/// Cuts a sequence of parts into nonempty stages so that the largest cost is minimal. Among several
/// solutions it takes the one with the shortest last stages. `cost(stage, begin, end)` is the cost
/// of parts [begin, end) in that stage. Returns the begin of each stage, and the end.
///
/// Law       no other cut has a smaller maximum
template <class Cost>
constexpr vec<int> balanced_stages(int parts, int stages, const Cost& cost) {
  struct best {
    double largest = 0;
    int begin = 0;  ///< begin of the last stage
  };
  vec<vec<best>> table;  // by stage: the best cut of the first i parts into stages up to this one
  for (int s = 0; s < stages; ++s) {
    vec<best> row(static_cast<std::size_t>(parts) + 1, best());
    for (int i = s + 1; i <= parts - (stages - 1 - s); ++i)
      for (int begin = s; begin < (s == 0 ? 1 : i); ++begin) {
        const double before = s == 0 ? 0 : table[s - 1][begin].largest, own = cost(s, begin, i);
        const double largest = before > own ? before : own;
        if (begin == s || largest <= row[i].largest) row[i] = {largest, begin};
      }
    table.push_back(static_cast<vec<best>&&>(row));
  }
  vec<int> begins(static_cast<std::size_t>(stages) + 1, parts);
  for (int s = stages; s-- > 0;) begins[s] = table[s][begins[s + 1]].begin;
  return begins;
}

namespace mpmd_detail {

/// The stages that were found and their parts, in order.
struct found_stages {
  vec<text> names;
  vec<int> stage;       ///< by name
  vec<double> seconds;  ///< by stage: forward and backward of a microbatch
  failure error;

  /// `pipeline "PP": stages {a, b} {c}; the largest takes 1.5 of the mean`
  constexpr text words(std::string_view tactic) const {
    text out("pipeline \"");
    out << tactic << "\": stages";
    for (std::size_t i = 0; i < names.size(); ++i) {
      const bool first = i == 0 || stage[i] != stage[i - 1];
      out << (!first ? ", " : i == 0 ? " {" : "} {") << name_text(names[i]);
    }
    double sum = 0, most = 0;
    for (const double s : seconds) {
      sum += s;
      if (s > most) most = s;
    }
    const double mean = sum / static_cast<double>(seconds.size());
    const auto percent = static_cast<std::int64_t>(mean > 0 ? 100 * most / mean + 0.5 : 100);
    return out << "}; the largest takes " << percent << " % of the mean";
  }
};

/// Measures each part of a program as its own stage, and groups the parts into balanced stages.
class stage_finder {
 public:
  /// `options`: the options of the pipeline except its parts. `on`: the device of meshes without
  /// one. `given`: the program including dead code that was removed.
  constexpr stage_finder(const program& p, const topology& t, const pipeline_options& options,
                         const device& on, const program& given)
      : p_(p), given_(given), t_(t), options_(options), on_(on) {}

  /// `mesh_of(stage)` returns the mesh of a stage.
  template <class MeshOf, class Schedule>
  constexpr found_stages run(int stages, const MeshOf& mesh_of, const Schedule& tactics,
                             const partition_options& more) {
    out_.names = part_order(p_).run();
    out_.error.record(p_.error);
    out_.error.record(validate(t_));
    check_names(stages);
    for (int s = 0; s < stages && !out_.error; ++s) measure_on(mesh_of(s), tactics, more);
    if (out_.error) return static_cast<found_stages&&>(out_);
    const auto cost = [&](int s, int begin, int end) {
      const vec<double>& sums = sums_of(mesh_of(s)).sums;
      return sums[end] - sums[begin];
    };
    const vec<int> begins = balanced_stages(count(), stages, cost);
    for (int s = 0; s < stages; ++s) {
      out_.seconds.push_back(cost(s, begins[s], begins[s + 1]));
      for (int i = begins[s]; i < begins[s + 1]; ++i) out_.stage.push_back(s);
    }
    return static_cast<found_stages&&>(out_);
  }

 private:
  /// The sums of the costs of parts on one mesh.
  struct measured {
    int mesh = 0;
    vec<double> sums;  ///< seconds of the first i parts
  };
  const program &p_, &given_;
  const topology& t_;
  const pipeline_options& options_;
  const device& on_;
  found_stages out_;
  vec<measured> measured_;

  constexpr int count() const { return static_cast<int>(out_.names.size()); }
  constexpr void check_names(int stages) {
    if (out_.error || count() >= stages) return;
    if (count() == 0)
      return out_.error.record("O146", "pipeline: ", stages,
                               " stages are requested, and the program has no named parts; write, "
                               "in C++, pt::named(\"layers\", i, f)(x), in JAX with "
                               "jax.named_scope(f\"layers_{i}\"), or name the parts of each stage");
    vec<std::string_view> names;
    for (const text& n : out_.names) names.push_back(n.view());
    out_.error.record("O147", "pipeline: ", stages, " stages are requested from ", count(),
                      count() == 1 ? " named part; " : " named parts; ", known_names("", names));
  }
  constexpr device device_of(int mesh) const {
    const named_mesh& m = t_[mesh];
    return m.has_device && !validate(machine(m.device), m.mesh) ? m.device : on_;
  }
  constexpr bool alike(int a, int b) const {
    const partita::mesh &x = t_.mesh_of(a), &y = t_.mesh_of(b);
    bool same = x.rank == y.rank && device_of(a) == device_of(b);
    for (int i = 0; same && i < x.rank; ++i)
      same = x.name(i) == y.name(i) && x.size(i) == y.size(i);
    return same;
  }
  constexpr const measured& sums_of(int mesh) const {
    std::size_t i = 0;
    while (!alike(measured_[i].mesh, mesh)) ++i;
    return measured_[i];
  }
  /// All parts on one mesh, each as a stage: nothing is sent, and each has its own functions.
  template <class Schedule>
  constexpr void measure_on(int mesh, const Schedule& tactics, const partition_options& more) {
    for (const measured& m : measured_)
      if (alike(m.mesh, mesh)) return;
    pipeline_options each = options_;
    each.where.names.clear();
    for (int i = 0; i < count(); ++i)
      each.where.names.push_back({out_.names[i].view(), t_.name(mesh), i});
    pipelined made;
    make_units(made, p_, t_, false, gpipe, each, tactics, more, &given_);
    out_.error.record(made.error);
    vec<double> seconds(out_.names.size(), 0);
    for (const auto& u : made.units) {
      if (out_.error) return;
      if (u.piece.stage < 0) continue;
      const simulation s = simulate(u.device, machine(device_of(mesh)));
      out_.error.record(s.error);
      seconds[u.piece.stage] += s.time;
    }
    measured m{mesh, vec<double>(1, 0)};
    for (const double s : seconds) m.sums.push_back(m.sums.back() + s);
    measured_.push_back(static_cast<measured&&>(m));
  }
};

}  // namespace mpmd_detail

}  // namespace partita
