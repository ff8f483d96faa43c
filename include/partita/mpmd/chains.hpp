/// Splits chains that combine values of several meshes, so that each mesh combines its own values
/// first.
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/mpmd/infer.hpp>

namespace partita::mpmd_detail {

/// A program and the mesh of each op.
struct placed_program {
  program p;
  vec<mesh_set> on;  ///< by op; empty for inputs and recomputed ops
  vec<int> key;      ///< by op: its place in `keys`, or -1
  vec<char> free;    ///< by op: true if it is recomputed wherever it is used
  vec<char> inside;  ///< by op: true if it runs for each microbatch; empty: no microbatches
  vec<named_part> parts;
  vec<part_key> keys;
  vec<int> input_mesh, output_mesh;
  failure error;
};

/// before: add(add(add(a, b), c), d), with a and c on one mesh, b and d on another
/// => after: add(add(a, c), add(b, d)), where the mesh that needs the result combines the partial
/// results
///
/// Each mesh then sends one value. Meshes are combined in the order of the topology, and values of
/// one mesh in their order, so that all meshes that need the result get the same bits. Each op of
/// the chain becomes one op of the result.
///
/// Cost: linear in ops.
class chain_splitter {
 public:
  constexpr chain_splitter(const program& p, const assigned_program& given,
                           const inferred_program& where)
      : p_(p), given_(given), where_(where), copy_(p, out_.p) {}

  constexpr placed_program run() {
    out_.input_mesh = where_.input_mesh;
    out_.output_mesh = where_.output_mesh;
    out_.parts = given_.parts;
    out_.keys = given_.keys;
    out_.error = where_.error;
    if (out_.error) return static_cast<placed_program&&>(out_);
    if (where_.chains.empty())
      keep_all();
    else
      split_all();
    return static_cast<placed_program&&>(out_);
  }

 private:
  const program& p_;
  const assigned_program& given_;
  const inferred_program& where_;
  placed_program out_;
  program_copier copy_;

  constexpr mesh_set place_of(op_id o) const {
    return given_.free[o] != 0 || p_.is(o, op_role::parameter) ? mesh_set{} : where_.use[o];
  }
  constexpr void keep(op_id o) {
    out_.on.push_back(place_of(o));
    out_.key.push_back(given_.key[o]);
    out_.free.push_back(given_.free[o]);
    keep_inside(o);
  }
  constexpr void keep_inside(op_id o) {
    if (!given_.inside.empty()) out_.inside.push_back(given_.inside[o]);
  }
  constexpr void keep_all() {
    out_.p = p_;
    for (op_id o = 0; o < p_.op_count(); ++o) keep(o);
  }
  constexpr void split_all() {
    vec<vec<op_id>> members(where_.chains.size(), vec<op_id>{});
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (where_.chain_of[o] >= 0) members[where_.chain_of[o]].push_back(o);
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const int chain = where_.chain_of[o];
      if (chain < 0)
        copy_op(o);
      else if (where_.chains[chain].root == o)
        write(where_.chains[chain], members[chain]);
    }
    copy_.interface();
    out_.p.labels = p_.labels;
    out_.p.scopes = p_.scopes;
    number_ops(out_.p);
  }
  constexpr void copy_op(op_id o) {
    copy_.op(o);
    for (const auto& r : p_.regions_of(o)) out_.p.append_region(program(r));
    keep(o);
  }
  constexpr void write(const cross_mesh_chain& chain, const vec<op_id>& members) {
    std::size_t next = 0;
    const auto combine = [&](value_id a, value_id b, mesh_set where) {
      const value_id operands[] = {a, b};
      const op_id like = members[next++];
      append_copy(out_.p, p_, like, {operands, 2}, p_.attrs(like));
      out_.on.push_back(where);
      out_.key.push_back(-1);
      out_.free.push_back(0);
      keep_inside(like);
      const tensor_type &left = out_.p.types[a], &right = out_.p.types[b];
      return out_.p.append_result(tensor_type(left.shape.rank > 0 ? left : right));  // (scalars)
    };
    vec<value_id> had(static_cast<std::size_t>(max_meshes), -1);  // by mesh: its partial result
    for (std::size_t i = 0; i < chain.leaves.size(); ++i) {
      const int g = chain.group[i];
      const value_id leaf = copy_.renamed[chain.leaves[i]];
      had[g] = had[g] < 0 ? leaf : combine(had[g], leaf, mesh_set::of(g));
    }
    value_id all = -1;
    for (value_id v : had)
      if (v >= 0) all = all < 0 ? v : combine(all, v, where_.use[chain.root]);
    copy_.renamed[p_.ops[chain.root].result] = all;
  }
};

}  // namespace partita::mpmd_detail
