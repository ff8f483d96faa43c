/// Small changes of programs, in place as long as values keep their numbers. The result may be
/// invalid; `verify` decides whether it is a program.
#pragma once

#include <string>
#include <vector>

#include "../data.hpp"

namespace mutants {

namespace pt = partita;
using data::random;
using pt::op_id;
using pt::tensor_type;
using pt::value_id;
using ints = std::vector<std::int64_t>;
using values = std::vector<value_id>;

inline ints attributes_of(const pt::program& p, op_id o) {
  return {p.attrs(o).begin(), p.attrs(o).end()};
}
inline values operands_of(const pt::program& p, op_id o) {
  return {p.operands(o).begin(), p.operands(o).end()};
}

inline void set_operand(pt::program& p, op_id o, int i, value_id v) {
  p.operand_list[p.op(o).operand_begin + i] = v;
}
inline void set_operands(pt::program& p, op_id o, const values& list) {
  p.op(o).operand_begin = static_cast<int>(p.operand_list.size());
  p.op(o).operand_count = static_cast<int>(list.size());
  p.operand_list.insert_back(list.data(), list.data() + list.size());
}
inline void set_attributes(pt::program& p, op_id o, const ints& attrs) {
  p.op(o).attr_begin = static_cast<int>(p.attr_list.size());
  p.op(o).attr_count = static_cast<int>(attrs.size());
  p.attr_list.insert_back(attrs.data(), attrs.data() + attrs.size());
}
/// Turns an op into another one with results of the same types.
inline void become(pt::program& p, op_id o, const pt::op_def& d, const values& operands,
                   const ints& attrs) {
  p.op(o).def = &d;
  set_operands(p, o, operands);
  set_attributes(p, o, attrs);
}
/// Replaces all uses of a value by uses of another one.
inline void replace_uses(pt::program& p, value_id from, value_id to) {
  for (auto& v : p.operand_list)
    if (v == from) v = to;
  for (auto& out : p.outputs)
    if (out.value == from) out.value = to;
}

/// Returns the program with an op of one operand inserted before operand `i` of an op.
inline pt::program with_op_before(const pt::program& p, op_id before, int i, const pt::op_def& d,
                                  const ints& attrs, const tensor_type& type) {
  pt::program q;
  pt::program_copier copy(p, q);
  for (op_id o = 0; o < p.op_count(); ++o) {
    value_id added = -1;
    if (o == before) {
      const value_id operands[] = {copy.renamed[p.operand(o, i)]};
      added = q.append(d, operands, attrs, type);
    }
    copy.op(o);
    if (added >= 0) set_operand(q, q.op_count() - 1, i, added);
    for (const auto& r : p.regions_of(o)) q.append_region(pt::program(r));
  }
  copy.interface();
  return q;
}

/// Returns the attributes of a collective, derived again from its description.
inline ints attributes_of(const pt::collective& what, const tensor_type& type) {
  pt::program p;
  pt::append(p, what, p.append(pt::def<pt::op::parameter>, {}, {}, type), type);
  return attributes_of(p, 1);
}
inline const pt::op_def& def_of(pt::collective::kind_type kind) {
  static constexpr const pt::op_def* defs[] = {
      &pt::def<pt::op::all_gather>, &pt::def<pt::op::all_reduce>, &pt::def<pt::op::reduce_scatter>,
      &pt::def<pt::op::all_to_all>, &pt::def<pt::op::permute>,    &pt::def<pt::op::all_slice>};
  return *defs[kind];
}
inline void set_collective(pt::program& p, op_id o, const pt::collective& what) {
  become(p, o, def_of(what.kind), operands_of(p, o), attributes_of(what, p.type(p.operand(o, 0))));
}

/// A layout as a list that can be changed.
using entries = std::vector<pt::layout::entry>;
inline entries entries_of(const pt::layout& l) {
  entries list;
  for (const auto& e : l) list.push_back(e);
  return list;
}
inline pt::layout layout_of(const entries& list) {
  pt::layout l;
  for (const auto& e : list) l.push_back(e.axis, e.dim);
  return l;
}
inline bool has_axis(const entries& list, int axis) {
  for (const auto& e : list)
    if (e.axis == axis) return true;
  return false;
}

}  // namespace mutants
