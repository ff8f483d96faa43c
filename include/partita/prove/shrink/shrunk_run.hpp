/// Runs a program on atoms.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
#include <partita/prove/shrink/dependence.hpp>
#include <partita/prove/shrink/shrunk_ops.hpp>

namespace partita::prove_detail {

/// A value on atoms: one tensor for all devices that differ only along axes that it does not depend
/// on.
struct shrunk_value {
  dependence by;
  tensors all;  ///< (the devices of this list are numbered by `step`)
  std::int64_t step[max_axes] = {}, count = 1;
  /// For a cut point, or sums of them: the same value before the cut.
  dependence raw_by;
  vec<element> raw;
};

/// Cut points: the elements of source values that bind indices are replaced by variables. An
/// element of the local program that is the same formula, of the same indices, is the same
/// variable.
struct cut_points {
  facts<element> found;

  /// The variable for a formula, where the atoms of its indices have this tag.
  static constexpr element variable(algebra& a, dtype t, const element& x, const fingerprint& tag) {
    if (x.known) return x;
    const int kind = is_floating(t) ? 0 : 1 + static_cast<int>(t);
    return a.unknown(t, drawing(0xc7).add(kind).add(x.of).add(tag).drawn());
  }
};

class shrunk_run {
 public:
  constexpr shrunk_run(algebra& a, const program& p, const program& small, const program_digits& of,
                       bool in_source, const mesh& m, atom_table& atoms, cut_points& cuts)
      : a_(a),
        p_(p),
        small_(small),
        in_source_(in_source),
        on_(m),
        atoms_(atoms),
        by_(p, of, in_source, m, atoms),
        cuts_(cuts),
        ops_(a, p, on_, atoms, by_) {
    values_.resize(p.types.size());
  }

  constexpr shrunk_value& at(value_id v) { return values_[v]; }
  constexpr const devices& on() const { return on_; }
  constexpr const tensor_type& type(value_id v) const { return small_.type(v); }
  constexpr const element* on_device(const shrunk_value& x, std::int64_t device) const {
    return x.all.on(slot_of(x, device));
  }
  constexpr dependences& by() { return by_; }
  /// An op whose results are not determined by its operands, or that counts infinities by weights.
  constexpr std::string_view unknown_op() const { return unknown_op_; }

  /// Makes room for a value that depends on these indices.
  constexpr shrunk_value& make(value_id v, const dependence& by) {
    shrunk_value& x = values_[v];
    x = {};
    x.by = by;
    for (int axis = 0; axis < on_.mesh().rank; ++axis) {
      x.step[axis] = by.axes.contains(axis) ? x.count : 0;
      if (by.axes.contains(axis)) x.count *= on_.mesh().size(axis);
    }
    x.all = no_elements_yet(small_.type(v), x.count);
    a_.steps = saturating_add(a_.steps, 1 + x.count * x.all.size());
    return x;
  }
  /// The first of the devices that share a tensor: its number is 0 along all other axes.
  constexpr std::int64_t device_of(const shrunk_value& x, std::int64_t slot) const {
    std::int64_t device = 0;
    for (int axis = 0; axis < on_.mesh().rank; ++axis)
      if (x.by.axes.contains(axis))
        device = on_.moved(device, axis, slot / x.step[axis] % on_.mesh().size(axis));
    return device;
  }
  /// Runs the ops that the outputs need.
  constexpr void run() {
    vec<value_id> wanted;
    for (const auto& each : p_.outputs) wanted.push_back(each.value);
    const vec<char> runs =
        element_interpreter::needed_ops(p_, wanted, [](value_id) { return false; });
    vec<op_id> last(p_.types.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (runs[o] != 0)
        for (const value_id v : p_.operands(o)) last[v] = o;
    for (const value_id v : wanted) last[v] = -1;
    for (op_id o = 0; o < p_.op_count() && !a_.is_over() && unknown_op_.empty(); ++o) {
      if (runs[o] == 0 || p_.is(o, op_role::parameter)) continue;
      run(o);
      for (const value_id v : p_.operands(o))
        if (last[v] == o) values_[v] = {};
    }
  }

 private:
  algebra& a_;
  const program &p_, &small_;
  bool in_source_;
  devices on_;
  atom_table& atoms_;
  dependences by_;
  cut_points& cuts_;
  shrunk_ops ops_;
  vec<shrunk_value> values_;
  std::string_view unknown_op_;

  constexpr std::int64_t slot_of(const shrunk_value& x, std::int64_t device) const {
    std::int64_t n = 0;
    for (int axis = 0; axis < on_.mesh().rank; ++axis)
      if (x.by.axes.contains(axis)) n += on_.along(axis, device) * x.step[axis];
    return n;
  }
  constexpr void run(op_id o) {
    const op_node& n = p_.op(o);
    const bool is_known = elements::is_determined(n) && !computes_with_infinities(o);
    if (!is_known && by_.rule(o) != index_rule::passed) {
      unknown_op_ = n.def->name;
      return;
    }
    if (by_.rule(o) == index_rule::passed) {
      for (int r = 0; r < n.result_count; ++r) {
        values_[n.result + r] = values_[p_.operand(o, r)];
        a_.steps += values_[n.result + r].count * values_[n.result + r].all.size() / 10;
      }
      return;
    }
    vec<shrunk_value> cut;  // operands that had to become variables
    cut.resize(static_cast<std::size_t>(n.operand_count));
    vec<const shrunk_value*> operands;
    vec<dependence> by;
    bool has_raw = false;
    for (int i = 0; i < n.operand_count; ++i) {
      shrunk_value& x = values_[p_.operand(o, i)];
      if (x.by.binds() && by_.use_of(o, i, x.by) == dependences::use::needs_variables) {
        cut[i] = x;
        to_variables(p_.operand(o, i), cut[i]);
        operands.push_back(&cut[i]);
      } else {
        operands.push_back(&x);
      }
      by.push_back(operands.back()->by);
      has_raw = has_raw || !x.raw.empty();
    }
    for (int r = 0; r < n.result_count; ++r) {
      const dependence d = by_.result(o, r, by);
      by_.require(n.result + r, d, by);
      make(n.result + r, d);
    }
    compute(o, operands);
    const bool plain = !values_[n.result].by.binds();
    for (int r = 0; r < n.result_count && !a_.is_over(); ++r) settle(n.result + r);
    if (has_raw && plain && !a_.is_over()) compute_raw(o, by);
  }
  /// True if an infinite number meets arithmetic. (It may cancel, or be multiplied by zero.)
  constexpr bool computes_with_infinities(op_id o) const {
    const std::uint64_t id = p_.op(o).def->id;
    const index_rule rule = by_.rule(o);
    bool computes = rule == index_rule::by_lookup || rule == index_rule::by_window ||
                    id == def<op::dot_general>.id || !ops_.weights(o).empty();
    for (const std::uint64_t each : {def<op::add>.id, def<op::subtract>.id, def<op::multiply>.id,
                                     def<op::divide>.id, def<op::reduce>.id})
      computes = computes || id == each;
    if (id == def<op::reduce>.id && !op::reduce::with_position(p_.attrs(o)))
      computes = p_.attrs(o)[0] == static_cast<int>(combiner::add);
    bool any = false;
    if (computes)
      for (const value_id v : p_.operands(o)) any = any || has_infinities(values_[v]);
    return any;
  }
  static constexpr bool has_infinities(const shrunk_value& x) {
    if (!is_floating(x.all.type.element)) return false;
    for (const element& each : x.all.all)
      if (each.known && !is_finite(real_of(each))) return true;
    return false;
  }
  /// Replaces the elements of a value that bind indices by variables.
  constexpr void to_variables(value_id v, shrunk_value& x) {
    for_each_tag(v, x.by, x.count, [&](std::int64_t n, const fingerprint& tag) {
      element& each = x.all.all[static_cast<std::size_t>(n)];
      each = cut_points::variable(a_, x.all.type.element, each, tag);
      if (const element* found = cuts_.found.find(each.of)) each = *found;
    });
    x.by.bound.clear();
    x.by.extreme = combiner::stack;
  }
  /// In the source, a value that binds indices becomes a cut point. In the local program, elements
  /// that equal cut points become their variables.
  constexpr void settle(value_id v) {
    shrunk_value& x = values_[v];
    if (!x.by.binds()) return;
    const dtype t = x.all.type.element;
    if (in_source_) {
      if (x.by.extreme == combiner::stack) {
        x.raw = x.all.all;
        x.raw_by = x.by;
      }
      for_each_tag(v, x.by, x.count, [&](std::int64_t n, const fingerprint& tag) {
        element& each = x.all.all[static_cast<std::size_t>(n)];
        each = cut_points::variable(a_, t, each, tag);
        cuts_.found.add(each.of, each);
      });
      x.by.bound.clear();
      x.by.extreme = combiner::stack;
      return;
    }
    bool all = true;
    for_each_tag(v, x.by, x.count, [&](std::int64_t n, const fingerprint& tag) {
      element& each = x.all.all[static_cast<std::size_t>(n)];
      if (each.known) return;
      const element* found = cuts_.found.find(cut_points::variable(a_, t, each, tag).of);
      all = all && found != nullptr;
      if (found != nullptr) each = *found;
    });
    if (!all) return;
    x.by.bound.clear();
    x.by.extreme = combiner::stack;
  }
  /// True if sums of cut points, moved or scaled, may be reduced after this op.
  constexpr bool is_linear(op_id o) const {
    const std::uint64_t id = p_.op(o).def->id;
    const bool adds = id == def<op::add>.id || id == def<op::subtract>.id,
               scales = id == def<op::multiply>.id || id == def<op::divide>.id;
    bool linear = adds || scales || by_.moves(o) || id == def<op::negate>.id ||
                  id == def<op::pad>.id || id == def<op::convert>.id;
    for (int i = 0; i < p_.op(o).operand_count; ++i) {
      const shrunk_value& x = values_[p_.operand(o, i)];
      const bool is_number = !x.all.all.empty() && x.all.all[0].known;
      linear = linear && (x.raw.empty() ? !adds && is_number
                                        : by_.use_of(o, i, x.raw_by) == dependences::use::binds_on);
    }
    return linear;
  }
  /// For sums of cut points: the formula without the cuts is the same value.
  constexpr void compute_raw(op_id o, const vec<dependence>& by) {
    if (!is_linear(o)) return;
    const op_node& n = p_.op(o);
    vec<shrunk_value> raw;
    vec<const shrunk_value*> operands;
    vec<dependence> raw_by = by;
    int with_raw = 0;
    raw.resize(static_cast<std::size_t>(n.operand_count));
    for (int i = 0; i < n.operand_count; ++i) {
      const shrunk_value& x = values_[p_.operand(o, i)];
      operands.push_back(&x);
      if (x.raw.empty()) continue;
      raw[i] = x;
      raw[i].all.all = x.raw;
      raw[i].by = x.raw_by;
      raw_by[i] = x.raw_by;
      operands[i] = &raw[i];
      ++with_raw;
    }
    if (with_raw == 0 || (n.def->id == def<op::multiply>.id && with_raw > 1)) return;
    for (int r = 0; r < n.result_count; ++r) {
      const dependence d = by_.result(o, r, raw_by);
      if (!by_.fits(n.result + r, d, raw_by)) return;
      by_.require(n.result + r, d, raw_by);
      shrunk_value canonical = static_cast<shrunk_value&&>(values_[n.result + r]);
      make(n.result + r, canonical.by);
      compute(o, operands);
      shrunk_value& x = values_[n.result + r];
      canonical.raw = static_cast<vec<element>&&>(x.all.all);
      canonical.raw_by = d;
      x = static_cast<shrunk_value&&>(canonical);
      for_each_tag(n.result + r, d, x.count, [&](std::int64_t k, const fingerprint& tag) {
        const auto at = static_cast<std::size_t>(k);
        const element key = cut_points::variable(a_, x.all.type.element, x.raw[at], tag);
        if (!key.known) cuts_.found.add(key.of, x.all.all[at]);
      });
    }
  }
  /// Visits the elements of a value with the tags of the atoms that they depend on.
  template <class F>
  constexpr void for_each_tag(value_id v, const dependence& d, std::int64_t count, const F& f) {
    const shape& s = small_.type(v).shape;
    vec<fingerprint> tags[max_rank];
    for (int dim = 0; dim < s.rank; ++dim)
      for (std::int64_t i = 0; i < s[dim]; ++i)
        tags[dim].push_back(d.has(dim) ? atoms_.tag(by_.digits(v, dim), i) : fingerprint{});
    const shrunk_value& x = values_[v];
    const std::int64_t size = s.elements();
    for (std::int64_t k = 0; k < count; ++k) {
      const std::int64_t device = device_of(x, k);
      fingerprint of_axes;
      for (int axis = 0; axis < on_.mesh().rank; ++axis)
        if (d.axes.contains(axis))
          of_axes = field::sum(of_axes, atoms_.tag(atoms_.of_axis(axis), on_.along(axis, device)));
      for_each_place(s, [&](const place& i, std::int64_t n) {
        fingerprint tag = of_axes;
        for (int dim = 0; dim < s.rank; ++dim)
          tag = field::sum(tag, tags[dim][static_cast<std::size_t>(i[dim])]);
        f(k * size + n, tag);
      });
    }
    a_.steps += count * size / 4;
  }

  constexpr void compute(op_id o, const vec<const shrunk_value*>& operands) {
    const op_node& n = p_.op(o);
    if (n.def->collective) return exchange(o, operands);
    const vec<element> weights = ops_.weights(o);
    for (std::int64_t k = 0; k < values_[n.result].count && !a_.is_over(); ++k) {
      const std::int64_t device = device_of(values_[n.result], k);
      op_elements c{a_, *n.def, small_.attrs(o), {}, {}, {}, {}};
      for (int i = 0; i < n.operand_count; ++i) {
        c.types.push_back(small_.type(p_.operand(o, i)));
        c.operands.push_back(on_device(*operands[i], device));
      }
      for (int r = 0; r < n.result_count; ++r) {
        shrunk_value& made = values_[n.result + r];
        c.made.push_back(small_.type(n.result + r));
        c.results.push_back(made.all.on(slot_of(made, device)));
      }
      if (!weights.empty()) c.weights = weights.data();
      if (ops_.fill(o, c, device)) continue;
      if (n.def->elementwise)
        elementwise_elements(c).fill();
      else
        elements::compute(c);
    }
  }
  constexpr void exchange(op_id o, const vec<const shrunk_value*>& operands) {
    const op_node& n = p_.op(o);
    const collective what = p_.collective_of(o);
    const vec<element> weights = ops_.weights(o);
    for (int r = 0; r < n.result_count && !a_.is_over(); ++r) {
      const tensors from = on_all(*operands[r], p_.operand(o, r));
      tensors to = no_elements_yet(small_.type(n.result + r), on_.count());
      const std::int64_t members = what.reduces() ? what.members(on_.mesh()) : 1;
      a_.steps =
          saturating_add(a_.steps, saturating_multiply(to.size() * on_.count() / 4, members));
      if (a_.is_over()) return;
      if (!weights.empty() && all_equal_numbers(from)) {  // their sum is a number
        const dtype t = from.type.element;
        const element times = small_number(t, static_cast<int>(ops_.whole_group(what)));
        for (element& each : to.all) each = a_.product(t, from.all[0], times);
      } else {
        exchanged(a_, on_, what, from, to, weights.empty() ? nullptr : weights.data()).fill();
      }
      shrunk_value& made = values_[n.result + r];
      for (std::int64_t k = 0; k < made.count; ++k) {
        const element* x = to.on(device_of(made, k));
        for (std::int64_t i = 0; i < to.size(); ++i) made.all.on(k)[i] = x[i];
      }
    }
  }
  static constexpr bool all_equal_numbers(const tensors& x) {
    for (const element& each : x.all)
      if (!each.known || !(each == x.all[0])) return false;
    return !x.all.empty();
  }
  constexpr tensors on_all(const shrunk_value& x, value_id v) const {
    tensors all = no_elements_yet(small_.type(v), on_.count());
    for (std::int64_t device = 0; device < on_.count(); ++device) {
      const element* from = on_device(x, device);
      for (std::int64_t i = 0; i < all.size(); ++i) all.on(device)[i] = from[i];
    }
    return all;
  }
};

}  // namespace partita::prove_detail
