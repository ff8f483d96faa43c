/// The inputs of a program that a value updates.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/registry.hpp>

namespace partita::stablehlo_detail {

/// The inputs of a program that a value updates: it is computed from them element by element.
///
/// A path from the value to an input follows ops that work element by element and keep the shape,
/// the tensor that an op updates in place, and loops and branches, from their results to their
/// operands. The search ends after `most_visits` values.
class updated_inputs {
 public:
  struct origin {
    int input = -1;
    int distance = 0;     ///< number of ops on the path
    bool scaled = false;  ///< the path has an op other than sums and selections
  };

  /// The wires of the last visited op with nested programs.
  struct wires_of_op {
    op_id op = -1;
    wire_list list;
    vec<int> by_result;  ///< by result: the wire that ends in exactly this result, or -1

    constexpr void find(const program& p, op_id o) {
      op = o;
      list = {};
      p.op(o).def->wires(p, o, list);
      by_result.assign(static_cast<std::size_t>(p.op(o).result_count), -1);
      for (std::size_t w = 0; w < list.wires.size(); ++w)
        for (const wire_end& e : list.wires[w].ends)
          if (e.kind == wire_end::result && e.shift == 0)
            by_result[static_cast<std::size_t>(e.index)] = static_cast<int>(w);
    }
  };

  /// The origins of `v`, nearest first, each input once. `numbers`: by value, the number of the
  /// input, or -1; null for a nested program, whose inputs are then searched.
  static constexpr vec<origin> of(const program& p, value_id v, const vec<int>* numbers,
                                  wires_of_op& wires, int depth = 0) {
    updated_inputs f(p, numbers, wires, depth);
    f.add(v, 0, false);
    vec<origin> found;
    for (std::size_t i = 0; i < f.list_.size() && i < most_visits; ++i) {
      const step at = f.list_[i];
      if (const int input = f.input_of(at.value); input >= 0)
        found.push_back({input, at.distance, at.scaled});
      else
        f.follow(at);
    }
    return found;
  }

 private:
  static constexpr std::size_t most_visits = 96;
  static constexpr int most_depth = 8;
  struct step {
    value_id value = -1;
    int distance = 0;
    bool scaled = false;
  };
  const program& p_;
  const vec<int>* numbers_;
  wires_of_op& of_;
  int depth_;
  vec<step> list_;

  constexpr updated_inputs(const program& p, const vec<int>* numbers, wires_of_op& wires, int depth)
      : p_(p), numbers_(numbers), of_(wires), depth_(depth) {}

  constexpr int input_of(value_id v) const {
    if (!p_.is(p_.producer(v), op_role::parameter)) return -1;
    if (depth_ == 0) return (*numbers_)[static_cast<std::size_t>(v)];
    for (int i = 0; i < p_.input_count(); ++i)
      if (p_.inputs[static_cast<std::size_t>(i)] == v) return i;
    return -1;
  }
  /// (The list stays ordered by distance, except for loops and branches, which add their own
  /// paths.)
  constexpr void add(value_id v, int distance, bool scaled) {
    for (const step& each : list_)
      if (each.value == v) return;
    std::size_t at = list_.size();
    list_.push_back({v, distance, scaled});
    while (at > 0 && list_[at - 1].distance > distance) {
      list_[at] = list_[at - 1];
      --at;
    }
    list_[at] = {v, distance, scaled};
  }
  constexpr void follow(const step& at) {
    const op_id o = p_.producer(at.value);
    const op_node& n = p_.op(o);
    const op_def& d = *n.def;
    if (d.passes_on) return add(p_.operand(o, p_.result_index(at.value)), at.distance, at.scaled);
    if (n.region_count > 0) return follow_control(o, at);
    if (!d.elementwise && !d.identity) {
      if (d.in_place && n.operand_count > 0 && p_.type(p_.operand(o, 0)) == p_.type(at.value))
        add(p_.operand(o, 0), at.distance + 1, true);
      return;
    }
    for (int i = 0; i < n.operand_count; ++i) {
      const value_id x = p_.operand(o, i);
      if (p_.type(x).shape == p_.type(at.value).shape && !(d.id == def<op::select>.id && i == 0))
        add(x, at.distance + (d.identity ? 0 : 1), at.scaled || scales(d, i));
    }
  }
  static constexpr bool scales(const op_def& d, int operand) {
    return !(d.identity || d.id == def<op::add>.id || d.id == def<op::convert>.id ||
             d.id == def<op::reduce_precision>.id || d.id == def<op::select>.id ||
             (d.id == def<op::subtract>.id && operand == 0));
  }
  /// A loop returns its carried values; a branch returns the results of its programs on its
  /// operands.
  constexpr void follow_control(op_id o, const step& at) {
    if (of_.op != o) of_.find(p_, o);
    const int number = of_.by_result[static_cast<std::size_t>(p_.result_index(at.value))];
    if (number < 0) return;
    const wire& w = of_.list.wires[static_cast<std::size_t>(number)];
    bool carried = false;
    for (const wire_end& e : w.ends) carried = carried || e.kind == wire_end::operand;
    for (const wire_end& e : w.ends) {
      if (carried && e.kind == wire_end::operand && e.shift == 0)
        add(p_.operand(o, e.index), at.distance + 1, at.scaled);
      if (carried || e.kind != wire_end::output || depth_ >= most_depth) continue;
      const program& r = p_.region(o, e.region);
      wires_of_op inside;
      for (const origin& each :
           of(r, r.outputs[static_cast<std::size_t>(e.index)].value, nullptr, inside, depth_ + 1))
        if (const int given = operand_of(of_.list, e.region, each.input); given >= 0)
          add(p_.operand(o, given), at.distance + each.distance + 1, at.scaled || each.scaled);
    }
  }
  static constexpr int operand_of(const wire_list& list, int region, int input) {
    for (const wire& w : list.wires) {
      int operand = -1;
      bool mine = false;
      for (const wire_end& e : w.ends) {
        if (e.kind == wire_end::operand && e.shift == 0) operand = e.index;
        mine = mine || (e.kind == wire_end::input && e.region == region && e.index == input);
      }
      if (mine) return operand;
    }
    return -1;
  }
};

}  // namespace partita::stablehlo_detail
