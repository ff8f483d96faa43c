/// Prints MPMD programs at each stage: named parts, assigned parts, fragments.
///
/// `%x1@m1` is the value %x1 of the source on mesh "m1".
///
/// Source    Shardy:MPMD; here values keep their names of the source
#pragma once

#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/mpmd/mpmd_program.hpp>

namespace partita {

namespace mpmd_detail {

constexpr void print_origin(text& out, const fragment_origin& origin) {
  print_quoted(out, origin.name);
  if (origin.transposed > 0) out << '(' << origin.transposed << ')';
  if (origin.call > 0) out << " call " << origin.call;
}

/// Text that all stages share.
class stage_printer {
 public:
  constexpr stage_printer(const program& p, const topology* t)
      : p_(p), t_(t), names_(p), taken_(p.types.size(), -1), inside_(p.ops.size(), -1) {}

 protected:
  const program& p_;
  const topology* t_;
  value_names names_;
  text out_;
  vec<int> taken_, inside_;  ///< by value and by op: the last group that uses it, has it
  int groups_ = 0;

  /// The name of a value: `%x1@m1`, or `%x1` on no mesh.
  constexpr text at(value_id v, int mesh) const {
    text out = "%";
    out << names_[v];
    if (mesh >= 0) out << '@' << name_text(t_->name(mesh));
    return out;
  }
  template <class MeshOf>
  constexpr void signature(const MeshOf& mesh_of) {
    out_ << "func @main(";
    append_list(out_, p_.input_count(),
                [&](int i) { out_ << at(p_.inputs[i], mesh_of(i)) << ": " << p_.input_type(i); });
    out_ << ')';
    if (t_ != nullptr) out_ << " attributes {topology = " << *t_ << '}';
    out_ << " {\n";
  }
  /// Writes a fragment: `%x2@m1 = fragment<...>(%x1@m1) {`, the ops, `return %x2`, `} : types`.
  template <class Ops>
  constexpr void group(std::string_view head, const Ops& ops, const vec<value_id>& inputs,
                       const vec<value_id>& outputs, int mesh) {
    const auto list = [&](const vec<value_id>& values, int where) {
      append_list(out_, static_cast<int>(values.size()),
                  [&](int i) { out_ << at(values[i], where); });
    };
    out_ << "  ";
    list(outputs, mesh);
    out_ << (outputs.empty() ? "" : " = ") << head << '(';
    list(inputs, mesh);
    out_ << ") {\n";
    for (op_id o : ops) print_op(out_, p_, o, names_, nullptr, 2, p_.labels);
    out_ << "    return";
    if (!outputs.empty()) out_ << ' ';
    list(outputs, -1);
    out_ << "\n  }";
    if (!outputs.empty()) out_ << " : ";
    append_list(out_, static_cast<int>(outputs.size()),
                [&](int i) { out_ << p_.type(outputs[i]); });
    out_ << '\n';
  }
  constexpr void step(value_id v, int to, std::string_view what, int from) {
    out_ << "  " << at(v, to) << " = " << what << ' ' << at(v, from) << " : " << p_.type(v) << '\n';
  }
  template <class MeshOf>
  constexpr void results(const MeshOf& mesh_of) {
    out_ << "  return ";
    append_list(out_, p_.output_count(),
                [&](int i) { out_ << at(p_.outputs[i].value, mesh_of(i)); });
    out_ << " : ";
    append_list(out_, p_.output_count(), [&](int i) { out_ << p_.output_type(i); });
    out_ << "\n}\n";
  }
};

constexpr text fragment_head(const topology& t, int mesh, const vec<fragment_origin>& origins,
                             int stage) {
  text out = "fragment<mesh=";
  print_quoted(out, t.name(mesh));
  out << ", origin=[";
  append_list(out, static_cast<int>(origins.size()), [&](int i) { print_origin(out, origins[i]); });
  out << ']';
  if (stage >= 0) out << ", stage=" << stage;
  return out << '>';
}

class fragments_printer : stage_printer {
 public:
  constexpr explicit fragments_printer(const mpmd_program& m)
      : stage_printer(m.source, &m.topology), m_(m) {}

  constexpr text print() {
    signature([&](int i) { return m_.input_mesh[i]; });
    std::size_t next = 0;
    for (int f = -1; f < static_cast<int>(m_.fragments.size()); ++f) {
      if (f >= 0) print(m_.fragments[f]);
      for (; next < m_.transfers.size() && m_.transfers[next].after == f; ++next)
        step(m_.transfers[next].value, m_.transfers[next].to, "transfer", m_.transfers[next].from);
    }
    results([&](int i) { return m_.output_mesh[i]; });
    return out_;
  }

 private:
  const mpmd_program& m_;

  constexpr void print(const fragment& f) {
    group(fragment_head(m_.topology, f.mesh, f.origins, f.stage), f.ops, f.inputs, f.outputs,
          f.mesh);
  }
};

/// Prints a program grouped by named parts, with unnamed ops between them.
class parts_printer : stage_printer {
 public:
  /// `given`: assigns meshes to parts; null: only their names are printed.
  constexpr parts_printer(const program& p, const topology* t, const assigned_program* given)
      : stage_printer(p, t),
        given_(given),
        list_(p),
        on_(p.types.size(), mesh_set{}),
        plain_(p.types.size(), 0),
        used_outside_(p.types.size(), 0) {
    for (value_id v : p.inputs) plain_[v] = 1;
    for (op_id o = 0; o < p.op_count(); ++o)
      if (!p.is(o, op_role::parameter)) list_.add({o, mesh_of(o), key_of(o)});
  }

  constexpr text print() {
    const vec<cut_fragment> cuts = cutting(p_, list_, keys(), false).run();
    for (const auto& cut : cuts) find_uses(cut);
    for (const auto& out : p_.outputs) used_outside_[out.value] = 1;
    signature([&](int i) { return given_ == nullptr ? -1 : given_->inputs[i]; });
    for (int i = 0; given_ != nullptr && i < p_.input_count(); ++i)
      if (given_->inputs[i] >= 0) {
        on_[p_.inputs[i]] = mesh_set::of(given_->inputs[i]);
        plain_[p_.inputs[i]] = 0;
      }
    for (const auto& cut : cuts) print(cut);
    for (int i = 0; i < p_.output_count(); ++i) bring(p_.outputs[i].value, result_mesh(i));
    results([&](int i) { return result_mesh(i); });
    return out_;
  }

 private:
  const assigned_program* given_;
  instance_list list_;
  vec<mesh_set> on_;  ///< by value: meshes that have it already
  vec<char>
      plain_;  ///< by value: true if it is available outside of meshes; 2: after moving it from one
  vec<char> used_outside_;        ///< by value: true if another group uses it
  vec<fragment_origin> origins_;  ///< by key, if only names count
  place_table places_;

  constexpr int mesh_of(op_id o) const { return given_ == nullptr ? -1 : given_->mesh[o]; }
  constexpr int result_mesh(int i) const { return given_ == nullptr ? -1 : given_->outputs[i]; }
  constexpr int keys() const {
    return static_cast<int>(given_ == nullptr ? origins_.size() : given_->keys.size());
  }
  constexpr int key_of(op_id o) {
    if (given_ != nullptr) return given_->key[o];
    const op_marks& marks = p_.ops[o].marks;
    const int scope = p_.scopes.of(marks.source);
    if (scope < 0 || p_.ops[o].operand_count == 0) return -1;
    return scope_key(scope, marks.transposed);
  }
  vec<int> scope_of_key_;
  constexpr int scope_key(int scope, int transposed) {
    const auto hash = [](int s, int count) {
      return hash_of(static_cast<std::uint64_t>(s) << 20 ^ static_cast<std::uint64_t>(count));
    };
    const int known = places_.find(hash(scope, transposed), [&](int k) {
      return scope_of_key_[k] == scope && origins_[k].transposed == transposed;
    });
    if (known >= 0) return known;
    text path = p_.scopes.name(scope);
    for (int s = p_.scopes.outer(scope); s >= 0; s = p_.scopes.outer(s))
      path = concat(p_.scopes.name(s), '.', path);
    origins_.push_back({path, transposed, p_.scopes.call(scope)});
    scope_of_key_.push_back(scope);
    const int fresh = static_cast<int>(origins_.size()) - 1;
    places_.insert(fresh, [&](int k) { return hash(scope_of_key_[k], origins_[k].transposed); });
    return fresh;
  }

  constexpr void find_uses(const cut_fragment& cut) {
    const int g = groups_++;
    for (int i : cut.instances) inside_[list_.all[i].op] = g;
    for (int i : cut.instances)
      for (value_id v : p_.operands(list_.all[i].op))
        if (inside_[p_.producers[v]] != g) used_outside_[v] = 1;
  }
  constexpr text head(const cut_fragment& cut) const {
    text out;
    if (given_ == nullptr) {
      out << "named ";
      print_origin(out, origins_[cut.key]);
      return out;
    }
    vec<fragment_origin> origins;
    int stage = -1;
    if (cut.key >= 0) {
      const part_key& key = given_->keys[cut.key];
      const named_part& part = given_->parts[key.part];
      origins.push_back({part.name, key.transposed, part.call});
      stage = part.stage;
    }
    return fragment_head(*t_, cut.mesh, origins, stage);
  }
  /// Assigns a value to a mesh, or sends it there, before its first use on that mesh; unassigns it
  /// before its first use outside of meshes.
  constexpr void bring(value_id v, int mesh) {
    if (mesh < 0 ? plain_[v] != 0 : on_[v].has(mesh)) return;
    if (mesh < 0) {
      if (given_ == nullptr) return;
      step(v, -1, "unassign", home(v));
      plain_[v] = 2;
    } else {
      const bool sent = !on_[v].empty() && plain_[v] != 1;
      step(v, mesh, sent ? "transfer" : "assign", sent ? home(v) : -1);
      on_[v] |= mesh_set::of(mesh);
    }
  }
  constexpr int home(value_id v) const {
    const int mesh = mesh_of(p_.producers[v]);
    return mesh >= 0 ? mesh : on_[v].front();
  }
  constexpr void print(const cut_fragment& cut) {
    const int g = groups_++;
    vec<op_id> ops;
    vec<value_id> inputs, outputs;
    for (int i : cut.instances) {
      ops.push_back(list_.all[i].op);
      inside_[ops.back()] = g;
    }
    for (op_id o : ops)
      for (value_id v : p_.operands(o))
        if (inside_[p_.producers[v]] != g && taken_[v] != g) {
          taken_[v] = g;
          inputs.push_back(v);
        }
    for (value_id v : inputs) bring(v, cut.mesh);
    for (op_id o : ops)
      for (int r = 0; r < p_.ops[o].result_count; ++r) {
        const value_id v = p_.ops[o].result + r;
        if (used_outside_[v]) outputs.push_back(v);
        if (cut.mesh >= 0)
          on_[v] = mesh_set::of(cut.mesh);
        else
          plain_[v] = 1;
      }
    if (cut.key < 0 && cut.mesh < 0)
      print_op(out_, p_, ops[0], names_, nullptr, 1, p_.labels);
    else
      group(head(cut), ops, inputs, outputs, cut.mesh);
  }
};

}  // namespace mpmd_detail

/// A program as its model was written: the innermost named parts, and the ops outside of them.
constexpr text print_parts(const program& p) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return mpmd_detail::parts_printer(p, nullptr, nullptr).print();
}
/// The program with named parts as fragments on their meshes. Other ops are not on a mesh yet:
/// `assign` moves a value to a mesh, and `unassign` moves it from one.
constexpr text print_assigned(const program& p, const topology& t, const assignment& a) {
  const mpmd_detail::assigned_program given = mpmd_detail::assigner(p, t, a).run();
  if (given.error) return concat("error: ", given.error.message, '\n');
  return mpmd_detail::parts_printer(p, &t, &given).print();
}
/// The fragments, and the transfers between meshes.
constexpr text print(const mpmd_program& m) {
  if (m.error) return concat("error: ", m.error.message, '\n');
  return mpmd_detail::fragments_printer(m).print();
}

}  // namespace partita
