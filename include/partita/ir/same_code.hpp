/// Equality of programs up to names and marks.
#pragma once

#include <cstddef>
#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/support/place_table.hpp>

namespace partita {

namespace ir_detail {

class code_number {
 public:
  constexpr void add(std::uint64_t n) { sum_ = hash_of(sum_ ^ (n + 0x9e3779b97f4a7c15u)); }
  constexpr void add(const tensor_type& t) {
    add(static_cast<std::uint64_t>(t.element));
    for (int d = 0; d < t.shape.rank; ++d) add(static_cast<std::uint64_t>(t.shape[d]));
  }
  constexpr void add(const program& p) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      add(p.op(o).def->id);
      for (const value_id v : p.operands(o)) add(static_cast<std::uint64_t>(v));
      for (const std::int64_t a : p.attrs(o)) add(static_cast<std::uint64_t>(a));
      for (const program& r : p.regions_of(o)) add(r);
    }
    for (const tensor_type& t : p.types) add(t);
    for (const program_output& out : p.outputs) add(static_cast<std::uint64_t>(out.value));
  }
  constexpr std::size_t value() const { return static_cast<std::size_t>(sum_); }

 private:
  std::uint64_t sum_ = 0;
};

template <class A, class B>
constexpr bool same_elements(const A& a, const B& b) {
  if (a.size() != b.size()) return false;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(a[i] == b[i])) return false;
  return true;
}

}  // namespace ir_detail

/// True if both programs have the same ops on the same values, in the same order. Names and marks
/// are ignored.
///
/// Cost      linear in ops
constexpr bool same_code(const program& a, const program& b) {
  if (a.op_count() != b.op_count() || a.outputs.size() != b.outputs.size()) return false;
  if (!ir_detail::same_elements(a.inputs, b.inputs)) return false;
  if (!ir_detail::same_elements(a.types, b.types)) return false;
  for (std::size_t i = 0; i < a.outputs.size(); ++i)
    if (a.outputs[i].value != b.outputs[i].value) return false;
  for (op_id o = 0; o < a.op_count(); ++o) {
    const op_node &x = a.op(o), &y = b.op(o);
    if (x.def->id != y.def->id || x.result != y.result || x.result_count != y.result_count ||
        x.region_count != y.region_count ||
        !ir_detail::same_elements(a.operands(o), b.operands(o)) ||
        !ir_detail::same_elements(a.attrs(o), b.attrs(o)))
      return false;
    for (int r = 0; r < x.region_count; ++r)
      if (!same_code(a.region(o, r), b.region(o, r))) return false;
  }
  return true;
}
/// Returns a hash that is equal for programs with the same code.
constexpr std::size_t hash_of_code(const program& p) {
  ir_detail::code_number n;
  n.add(p);
  return n.value();
}

}  // namespace partita
