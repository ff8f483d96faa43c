/// Integers as an input plus a constant, from the ops that compute them.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/reshape.hpp>

namespace partita::op_detail {

/// An integer of the form `input base + offset`, modulo the range of its type. Without a base, it
/// is a constant.
struct integer_form {
  bool known = false;
  int base = -1;  ///< index of an input of the program
  std::uint64_t offset = 0;
};

constexpr std::uint64_t integer_mask(dtype t) {
  const std::int64_t bits = t == dtype::boolean ? 1 : 8 * size_of(t);
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}
/// Returns the attribute of a `constant` of type `t` with these lowest bits.
constexpr std::int64_t integer_bits(dtype t, std::uint64_t bits) {
  const std::uint64_t mask = integer_mask(t);
  bits &= mask;
  const bool negative = !is_unsigned(t) && t != dtype::boolean && (bits & (mask / 2 + 1)) != 0;
  return static_cast<std::int64_t>(negative ? bits | ~mask : bits);
}

/// Finds the forms of integers from the ops that compute them. Visits at most `most_ops` ops per
/// value, so the cost is bounded for any program.
class integer_forms {
 public:
  /// Analyzes `p`. `inputs` are forms of its inputs; an input without an entry is a base.
  constexpr integer_forms(const program& p, span<const integer_form> inputs)
      : p_(p), inputs_(inputs) {}

  constexpr integer_form of(value_id v) {
    left_ = most_ops;
    return find(v);
  }

 private:
  static constexpr int most_ops = 64;
  const program& p_;
  span<const integer_form> inputs_;
  int left_ = 0;

  constexpr integer_form find(value_id v) {
    const dtype t = p_.type(v).element;
    if ((!is_integer(t) && t != dtype::boolean) || left_-- <= 0) return {};
    const op_id o = p_.producer(v);
    const op_node& n = p_.op(o);
    const std::uint64_t id = n.def->id;
    if (n.def->role == op_role::parameter) return input(v);
    if (id == def<op::constant>.id)
      return {true, -1, static_cast<std::uint64_t>(p_.attrs(o)[0]) & integer_mask(t)};
    if (id == def<op::reshape>.id || id == def<op::broadcast_in_dim>.id || n.def->identity)
      return find(p_.operand(o, 0));
    if (id == def<op::convert>.id) return converted(o, t);
    if (n.operand_count != 2 || n.region_count != 0 || !is_integer(t)) return {};
    if (id != def<op::add>.id && id != def<op::subtract>.id && id != def<op::multiply>.id &&
        id != def<op::maximum>.id && id != def<op::minimum>.id)
      return {};
    const integer_form x = find(p_.operand(o, 0));
    if (!x.known) return {};
    const integer_form y = find(p_.operand(o, 1));
    if (!y.known) return {};
    return calculated(id, t, x, y);
  }
  constexpr integer_form input(value_id v) const {
    for (int i = 0; i < p_.input_count(); ++i) {
      if (p_.inputs[i] != v) continue;
      if (static_cast<std::size_t>(i) < inputs_.size()) return inputs_[i];
      return {true, i, 0};
    }
    return {};
  }
  constexpr integer_form converted(op_id o, dtype to) {
    const value_id x = p_.operand(o, 0);
    const integer_form f = find(x);
    if (!f.known || f.base >= 0 || !is_integer(to)) return {};
    return {
        true, -1,
        static_cast<std::uint64_t>(integer_bits(p_.type(x).element, f.offset)) & integer_mask(to)};
  }
  static constexpr integer_form calculated(std::uint64_t id, dtype t, integer_form x,
                                           integer_form y) {
    const std::uint64_t mask = integer_mask(t);
    if (id == def<op::add>.id && (x.base < 0 || y.base < 0))
      return {true, x.base < 0 ? y.base : x.base, (x.offset + y.offset) & mask};
    if (y.base >= 0) return {};
    if (id == def<op::subtract>.id) return {true, x.base, (x.offset - y.offset) & mask};
    if (x.base >= 0) return {};
    if (id == def<op::multiply>.id) return {true, -1, (x.offset * y.offset) & mask};
    const std::uint64_t sign = is_unsigned(t) ? 0 : mask / 2 + 1;
    const bool x_is_less = (x.offset ^ sign) < (y.offset ^ sign);
    return (id == def<op::minimum>.id) == x_is_less ? x : y;
  }
};

constexpr vec<integer_form> forms_of(const program& p, span<const known_integer> inputs) {
  vec<integer_form> forms;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    forms.push_back({inputs[i].known, -1,
                     static_cast<std::uint64_t>(inputs[i].bits) &
                         integer_mask(p.input_type(static_cast<int>(i)).element)});
  return forms;
}

}  // namespace partita::op_detail
