/// trip_count: the number of iterations of a `while`, if its programs determine it.
#pragma once

#include <string_view>

#include <partita/ir/wires.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/convert.hpp>
#include <partita/op/extremum.hpp>
#include <partita/op/logical.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/select.hpp>

namespace partita {

/// How a `while` counts. In iteration i, counted from 0, carried value `counter` is `start + i *
/// step`, in the arithmetic of its type. The loop stops before iteration `trips`.
struct trip_count {
  bool known = false;
  std::int64_t trips = 0;
  int counter = -1;  ///< index among the carried values
  std::int64_t start = 0, step = 0;
  std::string_view unknown_because;  ///< why it is unknown, as a clause: "the bound is ..."
};

namespace op_detail {

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

constexpr bool mirrored(ops::direction& d) {
  switch (d) {
    case ops::direction::lt:
      d = ops::direction::gt;
      return true;
    case ops::direction::le:
      d = ops::direction::ge;
      return true;
    case ops::direction::gt:
      d = ops::direction::lt;
      return true;
    case ops::direction::ge:
      d = ops::direction::le;
      return true;
    default:
      return false;
  }
}
constexpr ops::direction negated(ops::direction d) {
  switch (d) {
    case ops::direction::lt:
      return ops::direction::ge;
    case ops::direction::le:
      return ops::direction::gt;
    case ops::direction::gt:
      return ops::direction::le;
    case ops::direction::ge:
      return ops::direction::lt;
    case ops::direction::eq:
      return ops::direction::ne;
    default:
      return ops::direction::eq;
  }
}

/// Counts the elements of `first`, `first + step`, ... that satisfy the comparison with `bound`
/// before the first that does not. Returns false if all satisfy it, or if an ordered comparison
/// fails only after an overflow. Numbers are relative to the minimum of the type, so they compare
/// as unsigned.
constexpr bool count_trips(ops::direction d, std::uint64_t first, std::uint64_t step,
                           std::uint64_t bound, std::uint64_t most, std::uint64_t& trips) {
  const std::uint64_t back = (0 - step) & most;  // the same step downwards
  if (d == ops::direction::gt || d == ops::direction::ge) {
    mirrored(d);
    return count_trips(d, most - first, back, most - bound, most, trips);
  }
  trips = 0;
  if (d == ops::direction::eq) {
    if (first != bound) return true;
    trips = 1;
    return step != 0;
  }
  if (d == ops::direction::ne) {
    const std::uint64_t up = (bound - first) & most, down = (first - bound) & most;
    if (up == 0) return true;
    if (step == 0) return false;
    trips = up % step == 0 ? up / step : down / back;
    return up % step == 0 || down % back == 0;
  }
  if (d == ops::direction::le) {
    if (bound == most) return false;
    ++bound;
  }
  if (first >= bound) return true;
  if (step == 0) return false;
  trips = (bound - first - 1) / step + 1;
  return trips <= (most - first) / step;
}

}  // namespace op_detail

/// Returns the number of iterations of a `while` that is in `around` or will be appended to it. The
/// number is known if a carried integer starts at a constant, each iteration adds a constant, and
/// the condition compares it with a constant. If several comparisons must all be true, the first to
/// fail determines the count. A value that the loop carries unchanged counts as a constant if it
/// starts as one. `inputs` are known values of the inputs of `around`.
///
/// Comparisons may have any direction, any integer type and either order of operands. The count is
/// unknown for a loop that stops only after an overflow of an ordered comparison, and for one that
/// never stops. Cost: bounded, except for a search of the programs' inputs.
constexpr trip_count find_trip_count(const program& around, span<const value_id> carried,
                                     const program& condition, const program& body,
                                     span<const known_integer> inputs = {}) {
  using op_detail::integer_form;
  trip_count found;
  const auto unknown = [&](std::string_view why) {
    found.known = false;
    found.trips = 0;
    found.unknown_because = why;
    return found;
  };
  const int count = static_cast<int>(carried.size());
  if (condition.error || body.error || condition.output_count() != 1 ||
      condition.input_count() != count || body.input_count() != count ||
      body.output_count() != count)
    return unknown("its programs do not fit the carried values");

  const vec<integer_form> given = op_detail::forms_of(around, inputs);
  const auto starts_as = [&](int i) {
    const value_id v = carried[static_cast<std::size_t>(i)];
    const integer_form f = v < 0 ? integer_form{} : op_detail::integer_forms(around, given).of(v);
    return f.base < 0 ? f : integer_form{};
  };
  // Forms of the inputs of both programs. (Only the needed inputs are examined.)
  struct sides {
    integer_form counter, bound;
  };
  vec<integer_form> inside;
  for (int i = 0; i < count; ++i) {
    const bool stays = body.outputs[i].value == body.inputs[i];
    const integer_form start = stays ? starts_as(i) : integer_form{};
    inside.push_back(start.known ? start : integer_form{true, i, 0});
  }
  // Analyzes one comparison; the loop continues while it returns `holds`.
  const auto counted = [&](op_id test, bool holds) -> trip_count {
    found = {};
    if (condition.op(test).def->id != def<op::compare>.id)
      return unknown("its condition is not a comparison of integers");
    auto d = static_cast<ops::direction>(condition.attrs(test)[0]);
    if (!holds) d = op_detail::negated(d);
    const dtype t = condition.type(condition.operand(test, 0)).element;
    if (!is_integer(t)) return unknown("its condition is not a comparison of integers");
    sides s{op_detail::integer_forms(condition, inside).of(condition.operand(test, 0)),
            op_detail::integer_forms(condition, inside).of(condition.operand(test, 1))};
    if (s.counter.known && s.counter.base < 0) {
      const integer_form bound = s.counter;
      s.counter = s.bound;
      s.bound = bound;
      op_detail::mirrored(d);
    }
    if (!s.counter.known || s.counter.base < 0)
      return unknown("its condition does not compare a carried value plus a constant");
    if (!s.bound.known || s.bound.base >= 0)
      return unknown("the bound that its condition compares with is not a constant");
    found.counter = s.counter.base;
    const integer_form start = starts_as(found.counter);
    if (!start.known) return unknown("its counter does not start at a constant");
    const integer_form next = op_detail::integer_forms(body, inside)
                                  .of(body.outputs[static_cast<std::size_t>(found.counter)].value);
    if (!next.known || next.base != found.counter)
      return unknown("its iterations do not add a constant to its counter");

    const std::uint64_t most = op_detail::integer_mask(t);
    const std::uint64_t least = is_unsigned(t) ? 0 : most / 2 + 1;
    const std::uint64_t first = (start.offset + s.counter.offset + least) & most;
    const std::uint64_t bound = (s.bound.offset + least) & most;
    std::uint64_t trips = 0;
    if (!op_detail::count_trips(d, first, next.offset, bound, most, trips) ||
        trips > static_cast<std::uint64_t>(INT64_MAX))
      return unknown("its counter does not reach the bound without an overflow");
    found.known = true;
    found.trips = static_cast<std::int64_t>(trips);
    found.start = op_detail::integer_bits(t, start.offset);
    const bool down = is_unsigned(t) && next.offset > most / 2;
    found.step = down ? -static_cast<std::int64_t>((0 - next.offset) & most)
                      : op_detail::integer_bits(t, next.offset);
    return found;
  };
  // The comparisons that must all be true, through `not` and `and`: the first to fail determines
  // the count.
  struct condition_part {
    value_id v;
    bool holds;
  };
  vec<condition_part> waiting;
  waiting.push_back({condition.outputs[0].value, true});
  trip_count least;
  for (int tests = 0; !waiting.empty(); ++tests) {
    const condition_part part = waiting.back();
    waiting.pop_back();
    const op_id o = condition.producer(part.v);
    const std::uint64_t id = condition.op(o).def->id;
    const bool boolean = condition.type(part.v).element == dtype::boolean;
    if (boolean && id == def<op::logical_not>.id) {
      waiting.push_back({condition.operand(o, 0), !part.holds});
    } else if (boolean && tests < 64 &&
               id == (part.holds ? def<op::logical_and>.id : def<op::logical_or>.id)) {
      for (int i = 2; i-- > 0;) waiting.push_back({condition.operand(o, i), part.holds});
    } else {
      const trip_count each = counted(o, part.holds);
      if (!each.known) return each;
      if (!least.known || each.trips < least.trips) least = each;
    }
  }
  return least;
}

/// Returns the known values of a nested program's inputs: constants of the enclosing program that
/// reach each iteration unchanged. `list` has the wires of the op, with known inputs of `p`. The
/// result is empty if no value is known. Cost: linear in wires.
constexpr vec<known_integer> known_inputs(const program& p, op_id o, int region,
                                          const wire_list& list) {
  const program& body = p.region(o, region);
  vec<known_integer> known;
  const vec<op_detail::integer_form> given = op_detail::forms_of(p, list.inputs);
  for (const wire& w : list.wires) {
    value_id outer = -1;
    int inner = -1;
    bool stays = true;
    for (const wire_end& e : w.ends) {
      if (e.kind == wire_end::operand && e.shift == 0) outer = p.operand(o, e.index);
      if (e.kind == wire_end::input && e.region == region) inner = e.index;
    }
    if (outer < 0 || inner < 0) continue;
    for (const wire_end& out : w.ends) {
      if (out.kind != wire_end::output) continue;
      const program& each = p.region(o, out.region);
      bool passes_on = false;
      for (const wire_end& in : w.ends)
        passes_on = passes_on || (in.kind == wire_end::input && in.region == out.region &&
                                  each.outputs[out.index].value == each.inputs[in.index]);
      stays = stays && passes_on;
    }
    if (!stays) continue;
    const op_detail::integer_form f = op_detail::integer_forms(p, given).of(outer);
    if (!f.known || f.base >= 0) continue;
    if (known.empty()) known.resize(body.inputs.size(), known_integer{});
    known[inner] = {true, op_detail::integer_bits(body.input_type(inner).element, f.offset)};
  }
  return known;
}

}  // namespace partita
