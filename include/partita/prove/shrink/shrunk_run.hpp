/// Runs a program on atoms.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
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

/// The variables of both programs. Formulas with bound indices are the same variable if they are
/// equal, and their indices are the same atoms (the tag).
struct cut_points {
  struct cut {
    element variable;
    int owner = -1;  ///< of the formula: its place in `owners`
  };
  facts<cut> found;
  vec<dependence> owners;

  /// Equal keys: equal formulas of equal types, with the same atoms. (No formula mentions a tag.)
  static constexpr fingerprint key(dtype t, const fingerprint& of, const fingerprint& tag) {
    const std::uint64_t kind = is_floating(t) ? 0 : 1 + static_cast<std::uint64_t>(t);
    return field::sum(field::sum(of, tag), field::natural(kind * 0x9e3779b97f4a7c1u));
  }
  constexpr int add_owner(const dependence& d) {
    owners.push_back(d);
    return static_cast<int>(owners.size()) - 1;
  }
};

class shrunk_run {
 public:
  constexpr shrunk_run(algebra& a, const indexed_program& x, bool in_source, const mesh& m,
                       atom_table& atoms, cut_points& cuts)
      : a_(a),
        p_(*x.p),
        in_source_(in_source),
        on_(m),
        atoms_(atoms),
        by_(x, m, atoms),
        cuts_(cuts),
        ops_(a, x, on_, atoms, by_) {
    types_ = p_.types;
    for (value_id v = 0; v < p_.value_count(); ++v)
      for (int d = 0; d < types_[v].shape.rank; ++d)
        types_[v].shape[d] = atoms.extent(by_.digits(v, d));
    plan();
  }

  constexpr shrunk_value& at(value_id v) { return values_[v]; }
  constexpr const devices& on() const { return on_; }
  constexpr const tensor_type& type(value_id v) const { return types_[v]; }
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
    a_.steps = saturating_add(a_.steps, 1 + x.count * types_[v].shape.elements());
    if (a_.is_over()) x.count = 0;
    x.all = no_elements_yet(types_[v], x.count);
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
    for (op_id o = 0; o < p_.op_count() && !stops(); ++o) {
      if (used_[o] == 0 || p_.is(o, op_role::parameter)) continue;
      run(o);
      for (const value_id v : p_.operands(o))
        if (last_[v] == o) values_[v] = {};
    }
  }

 private:
  algebra& a_;
  const program& p_;
  bool in_source_;
  devices on_;
  atom_table& atoms_;
  dependences by_;
  cut_points& cuts_;
  shrunk_ops ops_;
  vec<tensor_type> types_;  ///< by value, after shrinking
  vec<char> used_;          ///< by op
  vec<op_id> last_;         ///< by value: its last use
  vec<shrunk_value> values_;
  std::string_view unknown_op_;

  constexpr bool stops() const { return a_.is_over() || !unknown_op_.empty(); }
  constexpr void plan() {
    vec<value_id> wanted;
    for (const auto& each : p_.outputs) wanted.push_back(each.value);
    used_ = element_interpreter::needed_ops(p_, wanted, [](value_id) { return false; });
    last_.assign(p_.types.size(), -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (used_[o] != 0)
        for (const value_id v : p_.operands(o)) last_[v] = o;
    for (const value_id v : wanted) last_[v] = -1;
    values_.resize(p_.types.size());
  }
  constexpr std::int64_t slot_of(const shrunk_value& x, std::int64_t device) const {
    std::int64_t n = 0;
    for (int axis = 0; axis < on_.mesh().rank; ++axis)
      if (x.by.axes.contains(axis)) n += on_.along(axis, device) * x.step[axis];
    return n;
  }
  constexpr void run(op_id o) {
    const op_node& n = p_.op(o);
    if (by_.rule(o) == index_rule::passed) {
      for (int r = 0; r < n.result_count; ++r) copy(values_[p_.operand(o, r)], n.result + r);
      return;
    }
    if (n.region_count > 0 || !elements::is_determined(n) || computes_with_infinities(o)) {
      unknown_op_ = n.def->name;
      return;
    }
    vec<const shrunk_value*> operands;
    vec<dependence> by;
    bool has_raw = false;
    for (int i = 0; i < n.operand_count; ++i) {
      shrunk_value& x = values_[p_.operand(o, i)];
      if (x.by.binds() && !by_.binds_on(o, i, x.by)) cut(p_.operand(o, i), true);
      operands.push_back(&x);
      by.push_back(x.by);
      has_raw = has_raw || !x.raw.empty();
    }
    for (int r = 0; r < n.result_count; ++r) make(n.result + r, by_.result(o, r, by));
    if (a_.is_over()) return;
    compute(o, operands);
    const bool plain = !values_[n.result].by.binds();
    for (int r = 0; r < n.result_count && !a_.is_over(); ++r) settle(n.result + r);
    if (has_raw && plain && !a_.is_over()) compute_raw(o, by);
  }
  constexpr void copy(const shrunk_value& x, value_id v) {
    values_[v] = x;
    a_.steps += x.count * x.all.size() / 10;
  }
  /// True if an infinite number meets arithmetic. (It may cancel, or be multiplied by zero.)
  constexpr bool computes_with_infinities(op_id o) const {
    const std::uint64_t id = p_.op(o).def->id;
    bool computes =
        by_.rule(o) == index_rule::by_lookup || by_.rule(o) == index_rule::by_window ||
        op_indices::is_one<op::add, op::subtract, op::multiply, op::divide, op::dot_general>(id);
    if (p_.op(o).def->collective)
      computes = p_.collective_of(o).reduces() && p_.collective_of(o).combine == combiner::add;
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

  // ---- Cut points ----

  /// In the source, a value that binds indices becomes a cut point. In the local program, elements
  /// that equal cut points become their variables.
  constexpr void settle(value_id v) {
    shrunk_value& x = values_[v];
    if (!x.by.binds()) return;
    if (in_source_ && x.by.extreme == combiner::stack) {
      x.raw = x.all.all;
      x.raw_by = x.by;
    }
    cut(v, in_source_);
  }
  /// Replaces the elements of a value that binds indices by variables. Without `makes`, all of them
  /// must be known.
  constexpr void cut(value_id v, bool makes) {
    shrunk_value& x = values_[v];
    const dtype t = x.all.type.element;
    const drawing start = drawing(0xc7).add(is_floating(t) ? 0 : 1 + static_cast<int>(t));
    const int owner = makes ? cuts_.add_owner(x.by) : -1;
    int matched = -1;
    vec<element> made = x.all.all;
    const bool all = for_each_tag(v, x.by, x.count, [&](std::int64_t n, const fingerprint& tag) {
      element& each = made.data()[n];
      if (each.known) return true;
      const fingerprint key = cut_points::key(t, each.of, tag);
      const auto* known = cuts_.found.find(key);
      if (known == nullptr && !makes) return false;
      if (known == nullptr) {
        each = a_.unknown(t, drawing(start).add(key).drawn());
        cuts_.found.add(key, {each, owner});
      } else {
        each = known->variable;
        if (known->owner != matched) match(v, x.by, matched = known->owner);
      }
      return true;
    });
    if (!all) return;
    for (const element& each : made)
      if (each.known) {  // a formula that equals a number
        by_.require(v, x.by, x.by.bound, x.by.extreme != combiner::stack);
        break;
      }
    x.all.all = static_cast<vec<element>&&>(made);
    x.by.release();
  }
  /// Equal formulas on atoms: there must be enough of these for both.
  constexpr void match(value_id v, const dependence& d, int owner) {
    const dependence& other = cuts_.owners[owner];
    index_list bound = d.bound;
    bound.join(other.bound, false);
    by_.require(v, d, bound, d.extreme != combiner::stack || other.extreme != combiner::stack);
  }
  /// True if sums of cut points, moved or scaled, may be reduced after this op.
  constexpr bool is_linear(op_id o) const {
    const std::uint64_t id = p_.op(o).def->id;
    const bool adds = op_indices::is_one<op::add, op::subtract>(id),
               scales = op_indices::is_one<op::multiply, op::divide>(id);
    bool linear =
        adds || scales || by_.moves(o) || op_indices::is_one<op::negate, op::pad, op::convert>(id);
    int with_raw = 0;
    for (int i = 0; i < p_.op(o).operand_count && linear; ++i) {
      const shrunk_value& x = values_[p_.operand(o, i)];
      with_raw += !x.raw.empty();
      linear = x.raw.empty() ? !adds && !x.all.all.empty() && x.all.all[0].known
                             : by_.binds_on(o, i, x.raw_by);
    }
    return linear && (!scales || with_raw == 1);
  }
  /// For sums of cut points: the formula without the cuts is the same value.
  constexpr void compute_raw(op_id o, vec<dependence> by) {
    if (!is_linear(o)) return;
    const op_node& n = p_.op(o);
    vec<shrunk_value> raw;
    vec<const shrunk_value*> operands;
    raw.resize(static_cast<std::size_t>(n.operand_count));
    for (int i = 0; i < n.operand_count; ++i) {
      shrunk_value& x = values_[p_.operand(o, i)];
      operands.push_back(&x);
      if (x.raw.empty()) continue;
      raw[i] = x;
      raw[i].all.all = x.raw;
      raw[i].by = by[i] = x.raw_by;
      operands[i] = &raw[i];
    }
    const dependence d = by_.result(o, 0, by);
    shrunk_value canonical = static_cast<shrunk_value&&>(values_[n.result]);
    make(n.result, canonical.by);
    compute(o, operands);
    if (a_.is_over()) return;
    shrunk_value& x = values_[n.result];
    canonical.raw = static_cast<vec<element>&&>(x.all.all);
    canonical.raw_by = d;
    x = static_cast<shrunk_value&&>(canonical);
    const int owner = cuts_.add_owner(d);
    for_each_tag(n.result, d, x.count, [&](std::int64_t k, const fingerprint& tag) {
      const element& each = x.raw.data()[k];
      if (!each.known)
        cuts_.found.add(cut_points::key(x.all.type.element, each.of, tag),
                        {x.all.all.data()[k], owner});
      return true;
    });
  }
  /// Visits the elements of a value with the tags of the atoms that they depend on, while f is
  /// true.
  template <class F>
  constexpr bool for_each_tag(value_id v, const dependence& d, std::int64_t count, const F& f) {
    const shape& s = types_[v].shape;
    vec<fingerprint> tags[max_rank];
    for (int dim = 0; dim < s.rank; ++dim)
      for (std::int64_t i = 0; i < s[dim]; ++i)
        tags[dim].push_back(d.has(dim) ? atoms_.tag(by_.digits(v, dim), i) : fingerprint{});
    const shrunk_value& x = values_[v];
    const std::int64_t size = s.elements();
    bool goes_on = true;
    for (std::int64_t k = 0; k < count && goes_on; ++k) {
      const std::int64_t device = device_of(x, k);
      fingerprint of_axes;
      for (int axis = 0; axis < on_.mesh().rank; ++axis)
        if (d.axes.contains(axis))
          of_axes = field::sum(of_axes, atoms_.tag(atoms_.of_axis(axis), on_.along(axis, device)));
      for_each_place(s, [&](const place& i, std::int64_t n) {
        if (!goes_on) return;
        fingerprint tag = of_axes;
        for (int dim = 0; dim < s.rank; ++dim) tag = field::sum(tag, tags[dim].data()[i[dim]]);
        goes_on = f(k * size + n, tag);
      });
    }
    a_.steps += count * size / 4;
    return goes_on;
  }

  // ---- Ops ----

  constexpr void compute(op_id o, const vec<const shrunk_value*>& operands) {
    const op_node& n = p_.op(o);
    if (n.def->collective) return exchange(o, operands);
    const vec<std::int64_t> attrs = attributes(o);
    op_elements c{a_, *n.def, {attrs.data(), attrs.size()}, {}, {}, {}, {}};
    for (const value_id v : p_.operands(o)) c.types.push_back(types_[v]);
    for (int r = 0; r < n.result_count; ++r) c.made.push_back(types_[n.result + r]);
    for (std::int64_t k = 0; k < values_[n.result].count && !a_.is_over(); ++k) {
      const std::int64_t device = device_of(values_[n.result], k);
      c.operands.clear();
      c.results.clear();
      for (const shrunk_value* x : operands) c.operands.push_back(on_device(*x, device));
      for (int r = 0; r < n.result_count; ++r)
        c.results.push_back(values_[n.result + r].all.on(slot_of(values_[n.result + r], device)));
      if (ops_.fill(o, c, device)) continue;
      if (n.def->elementwise)
        elementwise_elements(c).fill();
      else
        elements::compute(c);
    }
  }
  /// The attributes, with the positions of slices and paddings after shrinking.
  constexpr vec<std::int64_t> attributes(op_id o) const {
    const op_node& n = p_.op(o);
    vec<std::int64_t> attrs(p_.attrs(o).begin(), p_.attrs(o).end());
    if (!op_indices::is_one<op::slice, op::pad>(n.def->id)) return attrs;
    const shape &whole = p_.type(n.result).shape, &small = types_[n.result].shape;
    for (int d = 0; d < whole.rank; ++d) {
      const std::int64_t block = op_indices::block_of(p_, o, d), blocks = whole[d] / block,
                         to = blocks == 0 ? 1 : small[d] / blocks;
      for (const int each : {d, whole.rank + d})
        if (attrs[each] != ops::whole) attrs[each] = attrs[each] / block * to;
    }
    return attrs;
  }
  constexpr void exchange(op_id o, const vec<const shrunk_value*>& operands) {
    const op_node& n = p_.op(o);
    const collective what = p_.collective_of(o);
    const bool sums = what.reduces() && what.combine == combiner::add &&
                      types_[n.result].element != dtype::boolean;
    for (int r = 0; r < n.result_count && !a_.is_over(); ++r) {
      if (sums) {
        sum(what, *operands[r], values_[n.result + r]);
        continue;
      }
      const tensors from = on_all(*operands[r], p_.operand(o, r));
      tensors to = no_elements_yet(types_[n.result + r], on_.count());
      const std::int64_t members = what.reduces() ? what.members(on_.mesh()) : 1;
      a_.steps =
          saturating_add(a_.steps, saturating_multiply(to.size() * on_.count() / 4, members));
      if (a_.is_over()) return;
      exchanged(a_, on_, what, from, to).fill();
      shrunk_value& made = values_[n.result + r];
      for (std::int64_t k = 0; k < made.count; ++k) {
        const element* x = to.on(device_of(made, k));
        for (std::int64_t i = 0; i < to.size(); ++i) made.all.on(k)[i] = x[i];
      }
    }
  }
  /// Sums over devices; each device keeps a block.
  constexpr void sum(const collective& what, const shrunk_value& x, shrunk_value& y) {
    const shape &from = x.all.type.shape, &to = y.all.type.shape;
    for (std::int64_t k = 0; k < y.count && !a_.is_over(); ++k) {
      std::int64_t device = device_of(y, k), first = 0, step = 1;
      contraction all(a_, x.all.type.element);
      for (int d = from.rank; d-- > 0; step *= from[d]) {
        first += on_.piece(what.axes, d, device) * to[d] * step;
        contraction::loop l;
        l.size = to[d];
        l.step[0] = step;
        l.to = 1;
        for (int e = d + 1; e < to.rank; ++e) l.to *= to[e];
        all.add(static_cast<contraction::loop&&>(l));
      }
      for (const auto& e : what.axes) {
        contraction::loop l;
        l.size = on_.mesh().size(e.axis);
        l.whole = atoms_.whole(atoms_.of_axis(e.axis));
        l.step[0] = x.step[e.axis] * x.all.size();
        l.weights = ops_.weights(atoms_.of_axis(e.axis));
        all.add(static_cast<contraction::loop&&>(l));
        device = on_.moved(device, e.axis, 0);
      }
      all.add_factor(on_device(x, device) + first);
      all.fill(y.all.on(k));
    }
  }
  constexpr tensors on_all(const shrunk_value& x, value_id v) const {
    tensors all = no_elements_yet(types_[v], on_.count());
    for (std::int64_t device = 0; device < on_.count(); ++device) {
      const element* from = on_device(x, device);
      for (std::int64_t i = 0; i < all.size(); ++i) all.on(device)[i] = from[i];
    }
    return all;
  }
};

}  // namespace partita::prove_detail
