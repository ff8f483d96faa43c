/// Mutants of device-local programs: one small change each (sometimes two), of the kinds of
/// mistakes that people and passes make.
///
/// Not drawn: changes of the number of inputs and outputs, of global types, of the mesh's sizes.
#pragma once

#include <optional>
#include <string_view>

#include "attributes.hpp"

namespace mutants {

/// A program or one nested in it, and the ops that its outputs need.
struct place {
  pt::program* p = nullptr;
  std::vector<op_id> ops;

  explicit place(pt::program& of) : p(&of) {
    std::vector<char> needed(of.types.size(), 0);
    const auto need = [&](value_id v) { needed[static_cast<std::size_t>(v)] = 1; };
    for (const auto& out : of.outputs) need(out.value);
    for (op_id o = of.op_count(); o-- > 0;) {
      bool live = false;
      for (int r = 0; r < of.op(o).result_count; ++r)
        live = live || needed[static_cast<std::size_t>(of.op(o).result + r)];
      if (!live) continue;
      ops.push_back(o);
      for (value_id v : of.operands(o)) need(v);
    }
  }
};
inline void list_places(pt::program& p, std::vector<place>& out) {
  out.emplace_back(p);
  for (auto& r : p.regions) list_places(r, out);
}

/// Changes one copy of a device program at places that a random generator chooses. Each kind of
/// change returns whether there was a place for it.
class change {
 public:
  change(pt::device_program& d, random& r) : d_(d), m_(d.mesh), r_(r) {
    list_places(d.local, places_);
  }

  // ---- Collectives ------------------------------------------------------------------------------

  /// An op that keeps the types replaces it: the operand, copies of the local block, the block of
  /// device 0, the slice without the reduction.
  bool collective_dropped() { return at_op(&change::is_collective) && drop(p().collective_of(o_)); }
  /// The same reduction or permutation twice.
  bool collective_doubled() {
    if (!at_op(&change::is_collective)) return false;
    pt::collective what = p().collective_of(o_);
    if (!what.reduces() && what.kind != pt::collective::permute) return false;
    if (what.reduces()) make_all_reduce(what);
    return insert(some_operand(), what);
  }
  /// An additional reduction or permutation.
  bool collective_added() {
    if (m_.rank == 0 || !at_op(&change::has_operands)) return false;
    pt::collective what;
    what.kind = r_.one_in(4) ? pt::collective::permute : pt::collective::all_reduce;
    what.axes.push_back(some_axis(), pt::no_dim);
    what.map = {r_.one_in(2) ? pt::device_map::ring : pt::device_map::shifted, 1};
    const int i = some_operand();
    what.combine = some_combiner(type_of_operand(i).element);
    return insert(i, what);
  }
  /// One axis becomes another one, two change places, one is removed or added.
  bool other_axes() {
    if (!at_op(&change::names_axes)) return false;
    if (!p().op(o_).def->collective) return other_axes_of_start();
    pt::collective what = p().collective_of(o_);
    entries list = entries_of(what.axes);
    const bool free =
        what.kind == pt::collective::all_reduce || what.kind == pt::collective::permute;
    if (!change_axes(list, free, free ? pt::no_dim : what.sliced)) return false;
    what.axes = layout_of(list);
    set_collective(p(), o_, what);
    return true;
  }
  /// Followed by a reshape if the blocks have another shape then.
  bool other_dimension() {
    if (!at_op(&change::has_dimensions)) return false;
    pt::collective what = p().collective_of(o_);
    entries list = entries_of(what.axes);
    const int rank = p().type(p().op(o_).result).shape.rank;
    if (rank == 0) return false;
    const auto dim = static_cast<std::int8_t>(r_.in(0, rank - 1));
    if (what.kind == pt::collective::all_to_all && !what.several()) {
      (r_.one_in(2) ? what.gathered : what.sliced) = dim;
      if (r_.one_in(2)) std::swap(what.gathered, what.sliced);
      if (what.gathered == what.sliced) return false;
      for (auto& e : list) e.dim = static_cast<std::int8_t>(what.sliced);
    } else {
      if (list.empty()) return false;
      list[index(list)].dim = dim;
    }
    const pt::layout now = layout_of(list);
    if (now == what.axes) return false;
    what.axes = now;
    return with_reshape(what);
  }
  bool other_combiner() {
    if (!at_op(&change::combines)) return false;
    pt::collective what = p().collective_of(o_);
    const pt::combiner other = some_combiner(p().type(p().op(o_).result).element);
    if (other == what.combine) return false;
    what.combine = other;
    set_collective(p(), o_, what);
    return true;
  }
  /// Another distance or form of a permutation.
  bool other_map() {
    if (!at_op(&change::is_permute)) return false;
    pt::collective what = p().collective_of(o_);
    const pt::device_map before = what.map;
    if (r_.one_in(2)) what.map.form = static_cast<pt::device_map::form_type>(r_.in(0, 2));
    if (r_.one_in(2)) what.map.shift = r_.one_in(2) ? -what.map.shift : what.map.shift + 1;
    if (what.map.form != pt::device_map::mirrored && what.map.shift == 0) what.map.shift = 1;
    if (what.map == before) return false;
    set_collective(p(), o_, what);
    return true;
  }

  // ---- Values -----------------------------------------------------------------------------------

  bool operands_exchanged() {
    if (!at_op(&change::has_two_operands)) return false;
    const int i = some_operand(), j = some_operand();
    const value_id a = p().operand(o_, i), b = p().operand(o_, j);
    if (a == b || p().type(a) != p().type(b)) return false;
    set_operand(p(), o_, i, b);
    set_operand(p(), o_, j, a);
    return true;
  }
  /// Any earlier value of the same type.
  bool other_operand() {
    if (!at_op(&change::has_operands)) return false;
    const int i = some_operand();
    values list;
    for (value_id v = 0; v < p().op(o_).result; ++v)
      if (v != p().operand(o_, i) && p().type(v) == type_of_operand(i)) list.push_back(v);
    return use(i, list);
  }
  /// A value as it was one op earlier.
  bool stale_operand() {
    if (!at_op(&change::has_operands)) return false;
    const int i = some_operand();
    values list;
    for (value_id v : p().operands(p().producer(p().operand(o_, i))))
      if (p().type(v) == type_of_operand(i)) list.push_back(v);
    return use(i, list);
  }
  /// One use reads the operand of a reduction, the others its result.
  bool pending_read() {
    const auto reads_sum = [](const pt::program& p, op_id o) {
      for (value_id v : p.operands(o))
        if (p.is(p.producer(v), pt::collective::all_reduce)) return true;
      return false;
    };
    if (!at_op(reads_sum)) return false;
    const int i = some_operand();
    const value_id v = p().operand(o_, i);
    const op_id sum = p().producer(v);
    if (!p().is(sum, pt::collective::all_reduce)) return false;
    set_operand(p(), o_, i, p().operand(sum, p().result_index(v)));
    return true;
  }
  /// Removes an op whose result has the type of an operand.
  bool op_dropped() {
    if (!at_op(&change::has_operands)) return false;
    const value_id v = p().op(o_).result;
    values list;
    for (value_id each : p().operands(o_))
      if (p().type(each) == p().type(v)) list.push_back(each);
    if (list.empty()) return false;
    replace_uses(p(), v, r_.pick(list));
    return true;
  }
  /// Exchanges outputs of the program or of a nested one, or replaces one by another value.
  bool other_output() {
    o_ = 0;
    program_ = r_.pick(places_).p;
    if (p().outputs.empty()) return false;
    auto& out = p().outputs[index(p().outputs)];
    const pt::program_output before = out;
    if (r_.one_in(2)) {
      auto& with = p().outputs[index(p().outputs)];
      if (p().type(with.value) != p().type(out.value)) return false;
      std::swap(out.value, with.value);
    } else {
      const auto v = static_cast<value_id>(r_.in(0, p().value_count() - 1));
      if (p().type(v) != p().type(out.value)) return false;
      out.value = v;
    }
    return out.value != before.value;
  }

  // ---- Ops --------------------------------------------------------------------------------------

  /// Changes starts of slices, amounts of padding, distances of blocks, or windows.
  bool shifted() { return at_op(&change::has_offsets) && change_attributes(p(), o_, m_, r_); }
  bool other_attribute() {
    return at_op(&change::has_attributes) && change_attributes(p(), o_, m_, r_);
  }
  bool other_number() { return at_op(&change::is_constant) && change_number(p(), o_, r_); }
  bool other_op() {
    if (!at_op(&change::is_plain)) return false;
    const pt::op_def* before = p().op(o_).def;
    const pt::op_def* d = r_.pick(pt::registry);
    if (d == before || d->operand_count != before->operand_count || !is_plain(*d)) return false;
    p().op(o_).def = d;
    return true;
  }
  /// Exchanges the programs, inputs or outputs of loops and branches, or runs a loop differently.
  bool other_control() {
    if (!at_op(&change::has_programs)) return false;
    if (r_.one_in(3)) return change_attributes(p(), o_, m_, r_);
    auto& regions = p().regions;
    const pt::op_node& n = p().op(o_);
    const int i = n.region_begin + static_cast<int>(r_.in(0, n.region_count - 1));
    if (n.region_count > 1 && r_.one_in(2)) {
      const int j = n.region_begin + static_cast<int>(r_.in(0, n.region_count - 1));
      if (i != j) std::swap(regions[i], regions[j]);
      return i != j;
    }
    pt::program& inner = regions[i];
    if (r_.one_in(2)) return exchange(inner.inputs, [&](value_id v) { return inner.type(v); });
    return exchange(inner.outputs,
                    [&](const pt::program_output& out) { return inner.type(out.value); });
  }

  // ---- Layouts on the mesh ----------------------------------------------------------------------

  /// Another layout of an input or an output with the same local type.
  bool other_layout() {
    const bool of_input = r_.one_in(2);
    auto& layouts = of_input ? d_.inputs : d_.outputs;
    const auto& types = of_input ? d_.input_types : d_.output_types;
    if (layouts.empty() || m_.rank == 0) return false;
    const std::size_t i = index(layouts);
    const auto at = static_cast<int>(i);
    const tensor_type local = of_input ? d_.local.input_type(at) : d_.local.output_type(at);
    entries list = entries_of(layouts[i]);
    if (!change_layout(list, local.shape.rank)) return false;
    const pt::layout now = layout_of(list);
    const pt::shape whole = now.global(local.shape, m_);
    for (int dim = 0; dim < whole.rank; ++dim)
      if (whole[dim] < types[i].shape[dim]) return false;
    if (now == layouts[i]) return false;
    layouts[i] = now;
    return true;
  }
  /// Exchanges two axes of one size in the layouts of inputs, of outputs, in the ops, or in all of
  /// these.
  bool axes_exchanged() {
    if (m_.rank < 2) return false;
    const int a = some_axis(), b = some_axis();
    if (a == b || m_.size(a) != m_.size(b) || m_.size(a) == 1) return false;
    const bool all = r_.one_in(8);
    const auto where = r_.in(0, 3);
    const auto other = [&](int axis) { return axis == a ? b : axis == b ? a : axis; };
    if (all || where == 0) rename(d_.inputs, other);
    if (all || where == 1) rename(d_.outputs, other);
    if (all || where == 2)
      for (auto& each : places_)
        for (op_id o = 0; o < each.p->op_count(); ++o) rename(*each.p, o, other);
    if (where != 3 || all) return true;
    if (!at_op(&change::names_axes)) return false;
    rename(p(), o_, other);
    return true;
  }

 private:
  pt::device_program& d_;
  const pt::mesh& m_;
  random& r_;
  std::vector<place> places_;
  pt::program* program_ = nullptr;  ///< the program that is changed
  op_id o_ = 0;

  pt::program& p() { return *program_; }

  // ---- Places -----------------------------------------------------------------------------------

  using predicate = bool (*)(const pt::program&, op_id);
  /// Moves to a random op of this kind, all with the same probability.
  bool at_op(predicate good) {
    std::int64_t count = 0;
    for (const auto& each : places_)
      for (op_id o : each.ops) count += good(*each.p, o);
    if (count == 0) return false;
    std::int64_t n = r_.in(1, count);
    for (const auto& each : places_)
      for (op_id o : each.ops)
        if (good(*each.p, o) && --n == 0) {
          program_ = each.p;
          o_ = o;
          return true;
        }
    return false;
  }
  static bool is_collective(const pt::program& p, op_id o) { return p.op(o).def->collective; }
  static bool names_axes(const pt::program& p, op_id o) {
    return is_collective(p, o) || p.op(o).def == &pt::def<pt::op::shard_start>;
  }
  static bool has_dimensions(const pt::program& p, op_id o) {
    return is_collective(p, o) && !p.is(o, pt::collective::all_reduce) && !is_permute(p, o);
  }
  static bool is_permute(const pt::program& p, op_id o) { return p.is(o, pt::collective::permute); }
  static bool combines(const pt::program& p, op_id o) {
    return is_permute(p, o) || (is_collective(p, o) && p.collective_of(o).reduces());
  }
  static bool has_operands(const pt::program& p, op_id o) { return p.op(o).operand_count > 0; }
  static bool has_two_operands(const pt::program& p, op_id o) { return p.op(o).operand_count > 1; }
  static bool has_attributes(const pt::program& p, op_id o) {
    return p.op(o).attr_count > 0 && !p.op(o).def->constant;
  }
  static bool has_offsets(const pt::program& p, op_id o) {
    const std::string_view name = p.op(o).def->name;
    for (const char* each : {"slice", "pad", "roll", "shard_start", "reduce_window", "convolution"})
      if (name == each) return true;
    return false;
  }
  static bool is_constant(const pt::program& p, op_id o) { return p.op(o).def->constant; }
  static bool is_plain(const pt::op_def& d) {
    return d.elementwise && d.parse == &pt::no_attributes_to_read;
  }
  static bool is_plain(const pt::program& p, op_id o) { return is_plain(*p.op(o).def); }
  static bool has_programs(const pt::program& p, op_id o) { return p.op(o).region_count > 0; }

  template <class List>
  std::size_t index(const List& list) {
    return static_cast<std::size_t>(r_.in(0, static_cast<std::int64_t>(list.size()) - 1));
  }
  int some_operand() { return static_cast<int>(r_.in(0, p().op(o_).operand_count - 1)); }
  tensor_type type_of_operand(int i) { return p().type(p().operand(o_, i)); }
  /// Returns an axis, in most cases one of more than one device.
  int some_axis() {
    int axis = 0;
    do axis = static_cast<int>(r_.in(0, m_.rank - 1));
    while (m_.size(axis) == 1 && !r_.one_in(8));
    return axis;
  }
  pt::combiner some_combiner(pt::dtype t) {
    using enum pt::combiner;
    static constexpr pt::combiner numbers[] = {add, add, max, min, multiply},
                                  bits[] = {logical_and, logical_or};
    return t == pt::dtype::boolean ? r_.pick(bits) : r_.pick(numbers);
  }

  // ---- Steps ------------------------------------------------------------------------------------

  bool use(int i, const values& list) {
    if (list.empty()) return false;
    set_operand(p(), o_, i, r_.pick(list));
    return true;
  }
  bool insert(int i, const pt::collective& what) {
    const tensor_type type = type_of_operand(i);
    p() = with_op_before(p(), o_, i, def_of(what.kind), attributes_of(what, type), type);
    return true;
  }
  static void make_all_reduce(pt::collective& what) {
    what.kind = pt::collective::all_reduce;
    entries list = entries_of(what.axes);
    for (auto& e : list) e.dim = pt::no_dim;
    what.axes = layout_of(list);
  }
  bool drop(const pt::collective& what) {
    const value_id x = p().operand(o_, 0), y = p().op(o_).result;
    const pt::shape to = p().type(y).shape;
    switch (what.kind) {
      case pt::collective::all_gather:
        return repeat_piece(what);
      case pt::collective::reduce_scatter:
      case pt::collective::all_slice: {
        pt::collective slice = what;
        slice.kind = pt::collective::all_slice;
        if (what.kind != slice.kind) return set_collective(p(), o_, slice), true;
        ints bounds(static_cast<std::size_t>(to.rank), 0);
        for (auto extent : to) bounds.push_back(extent);
        return become(p(), o_, pt::def<pt::op::slice>, {x}, bounds), true;
      }
      case pt::collective::all_to_all:
        return become(p(), o_, pt::def<pt::op::reshape>, {x}, {}), true;
      default:
        break;
    }
    const int i = some_operand();
    replace_uses(p(), y + i, p().operand(o_, i));
    return true;
  }
  bool with_reshape(const pt::collective& what) {
    const tensor_type from = type_of_operand(0);
    const pt::shape to = what.after(from.shape, m_);
    if (to == p().type(p().op(o_).result).shape) return set_collective(p(), o_, what), true;
    for (auto extent : to)
      if (extent < 0) return false;
    p() = with_op_before(p(), o_, 0, def_of(what.kind), attributes_of(what, from),
                         {from.element, to});
    op_id o = o_ + 1;
    become(p(), o, pt::def<pt::op::reshape>, operands_of(p(), o), {});
    return true;
  }
  bool repeat_piece(const pt::collective& what) {
    const entries list = entries_of(what.axes);
    if (list.empty() || what.members(m_) > 16) return false;
    for (const auto& e : list)
      if (e.dim != list[0].dim) return false;
    const values copies(static_cast<std::size_t>(what.members(m_)), p().operand(o_, 0));
    become(p(), o_, pt::def<pt::op::concatenate>, copies, {list[0].dim});
    return true;
  }
  /// `may_grow`: axes of this dimension may be added and removed.
  bool change_axes(entries& list, bool may_grow, int dim) {
    const int axis = some_axis();
    const auto how = r_.in(0, 3);
    if (how == 0 && list.size() > 1) {
      const std::size_t i = index(list), j = index(list);
      std::swap(list[i].axis, list[j].axis);
      return i != j;
    }
    if (how == 1 && may_grow && list.size() > 1) {
      list.erase(list.begin() + static_cast<std::ptrdiff_t>(index(list)));
      return true;
    }
    if (has_axis(list, axis)) return false;
    if (how == 2 && may_grow)
      list.push_back({static_cast<std::int8_t>(axis), static_cast<std::int8_t>(dim)});
    else if (!list.empty())
      list[index(list)].axis = static_cast<std::int8_t>(axis);
    return !list.empty();
  }
  bool other_axes_of_start() {
    const ints attrs = attributes_of(p(), o_);
    entries list;
    for (std::size_t i = 1; i < attrs.size(); ++i)
      list.push_back({static_cast<std::int8_t>(attrs[i]), 0});
    if (!change_axes(list, true, 0)) return false;
    ints now{attrs[0]};
    for (const auto& e : list) now.push_back(e.axis);
    set_attributes(p(), o_, now);
    return true;
  }
  bool change_layout(entries& list, int rank) {
    const auto dim = [&] { return static_cast<std::int8_t>(r_.in(0, rank - 1)); };
    if (rank == 0) return false;
    if (list.empty() || r_.one_in(2)) return change_axes(list, true, dim());
    const std::size_t i = index(list), j = index(list);
    if (r_.one_in(2))
      list[i].dim = dim();
    else
      std::swap(list[i].dim, list[j].dim);
    return true;
  }
  template <class List, class TypeOf>
  bool exchange(List& list, const TypeOf& type_of) {
    if (list.size() < 2) return false;
    auto &a = list[index(list)], &b = list[index(list)];
    if (&a == &b || type_of(a) != type_of(b)) return false;
    std::swap(a, b);
    return true;
  }
  template <class Other>
  void rename(pt::vec<pt::layout>& layouts, const Other& other) {
    for (auto& l : layouts) l = renamed(l, other);
  }
  template <class Other>
  pt::layout renamed(const pt::layout& l, const Other& other) {
    entries list = entries_of(l);
    for (auto& e : list) e.axis = static_cast<std::int8_t>(other(e.axis));
    return layout_of(list);
  }
  template <class Other>
  void rename(pt::program& p, op_id o, const Other& other) {
    if (is_collective(p, o)) {
      pt::collective what = p.collective_of(o);
      what.axes = renamed(what.axes, other);
      set_collective(p, o, what);
    } else if (names_axes(p, o)) {
      ints attrs = attributes_of(p, o);
      for (std::size_t i = 1; i < attrs.size(); ++i) attrs[i] = other(static_cast<int>(attrs[i]));
      set_attributes(p, o, attrs);
    }
  }
};

struct kind {
  std::string_view name;
  int weight;
  bool (change::*make)();
};
inline constexpr kind kinds[] = {{"collective dropped", 2, &change::collective_dropped},
                                 {"collective doubled", 2, &change::collective_doubled},
                                 {"collective added", 1, &change::collective_added},
                                 {"other axes", 3, &change::other_axes},
                                 {"other dimension", 3, &change::other_dimension},
                                 {"other combiner", 2, &change::other_combiner},
                                 {"other map", 2, &change::other_map},
                                 {"operands exchanged", 4, &change::operands_exchanged},
                                 {"other operand", 4, &change::other_operand},
                                 {"stale operand", 3, &change::stale_operand},
                                 {"pending read", 3, &change::pending_read},
                                 {"op dropped", 2, &change::op_dropped},
                                 {"other output", 3, &change::other_output},
                                 {"shifted", 12, &change::shifted},
                                 {"other attribute", 16, &change::other_attribute},
                                 {"other number", 2, &change::other_number},
                                 {"other op", 8, &change::other_op},
                                 {"other control", 8, &change::other_control},
                                 {"other layout", 4, &change::other_layout},
                                 {"axes exchanged", 4, &change::axes_exchanged}};
inline constexpr int kind_count = static_cast<int>(std::size(kinds));

inline int some_kind(random& r) {
  int total = 0;
  for (const auto& k : kinds) total += k.weight;
  auto n = r.in(0, total - 1);
  int k = 0;
  while ((n -= kinds[k].weight) >= 0) ++k;
  return k;
}

struct mutant {
  int kind = -1;  ///< of the first change; -1 if no place for a change was found
  int tries = 0;  ///< draws of a kind and a place until one was possible
  pt::device_program program;
};

/// Returns a mutant of a device program; the same seed gives the same mutant. It may not pass
/// `verify`.
inline mutant make_mutant(const pt::device_program& d, std::uint64_t seed) {
  constexpr int most_tries = 100;
  random r{seed};
  mutant out{.program = d};
  for (int changes = r.one_in(10) ? 2 : 1; changes > 0 && out.tries < most_tries; ++out.tries) {
    const int k = some_kind(r);
    if (!(change(out.program, r).*kinds[k].make)()) continue;
    if (out.kind < 0) out.kind = k;
    --changes;
  }
  return out;
}

}  // namespace mutants
