/// Random programs, meshes and actions.
#pragma once

#include <memory>
#include <set>

#include "control.hpp"
#include "heavy.hpp"
#include "lookup.hpp"
#include "test_case.hpp"

namespace random_test {

/// Draws an op of a hundred operands and more.
inline bool draw_many(writer& w) {
  if (w.depth() > 0 || !w.r.one_in(8)) return false;
  const auto x = w.any([&](value_id v) { return w.rank(v) > 0 && w.dims(v).elements() <= 16; });
  if (x < 0) return false;
  const bool barrier = w.r.one_in(2);
  std::vector<value_id> operands;
  std::vector<value_info> infos;
  value_info joined = w.info(x);
  for (auto n = w.r.in(70, 300); n > 0; --n) {
    const auto v = w.any([&](value_id y) { return barrier || w.type(y) == w.type(x); });
    operands.push_back(v);
    infos.push_back(w.info(v));
    joined = either(joined, w.info(v));
  }
  if (barrier) return w.done(pt::ops::optimization_barrier(w.b, operands), infos);
  const auto dim = static_cast<int>(w.r.in(0, w.rank(x) - 1));
  return w.done(pt::ops::concatenate(w.b, operands, dim), joined);
}

/// A family of ops, and the weight with which it is drawn.
struct family {
  int weight;
  bool (*draw)(writer&);
};
inline constexpr family tame_families[] = {
    {5, &draw_arithmetic},    {1, &draw_quotient},      {1, &draw_rounding},
    {3, &draw_math},          {3, &draw_bits},          {1, &draw_comparison},
    {1, &draw_selection},     {1, &draw_conversion},    {1, &draw_constant},
    {2, &draw_identity},      {2, &draw_broadcast},     {1, &draw_transpose},
    {2, &draw_reshape},       {1, &draw_concatenate},   {1, &draw_slice},
    {1, &draw_pad},           {1, &draw_reverse},       {1, &draw_roll},
    {1, &draw_dynamic_slice}, {1, &draw_gather},        {1, &draw_scatter},
    {1, &draw_sort},          {2, &draw_reduce},        {1, &draw_cumsum},
    {1, &draw_fold},          {1, &draw_reduce_window}, {1, &draw_selecting_window},
    {1, &draw_convolution},   {2, &draw_dot},           {3, &draw_layer},
    {1, &draw_linear_system}, {3, &draw_control},       {1, &draw_many}};

/// The families for floats of any value.
inline constexpr family wild_families[] = {{5, &draw_arithmetic},
                                           {4, &draw_wild},
                                           {1, &draw_comparison},
                                           {2, &draw_selection},
                                           {1, &draw_identity},
                                           {2, &draw_broadcast},
                                           {1, &draw_transpose},
                                           {2, &draw_reshape},
                                           {1, &draw_concatenate},
                                           {1, &draw_slice},
                                           {1, &draw_pad},
                                           {1, &draw_reverse},
                                           {1, &draw_roll},
                                           {1, &draw_sort},
                                           {3, &draw_reduce},
                                           {1, &draw_reduce_window},
                                           {1, &draw_dynamic_slice},
                                           {1, &draw_gather},
                                           {2, &draw_control},
                                           {1, &draw_scatter},
                                           {1, &draw_cumsum},
                                           {2, &draw_dot},
                                           {2, &draw_layer},
                                           {1, &draw_convolution},
                                           {1, &draw_selecting_window}};

inline void draw_ops(writer& w, std::int64_t wanted, int most_tries) {
  const pt::span<const family> families =
      w.state.wild ? pt::span<const family>(wild_families) : pt::span<const family>(tame_families);
  int total = 0;
  for (const auto& f : families) total += f.weight;
  for (int tries = 0; w.emitted < wanted && tries < most_tries; ++tries) {
    auto n = w.r.in(0, total - 1);
    for (const auto& f : families) {
      if ((n -= f.weight) >= 0) continue;
      f.draw(w);
      break;
    }
    w.b.p.error.raise();
  }
}

class generator {
 public:
  explicit generator(std::uint64_t seed) : state_{random{seed * 0x9e3779b9u + 12345}} {
    case_.seed = seed;
    case_.heavy =
        seed % 7 == 3;  // (Takes no random number, so that the other cases stay the same.)
    case_.looks_up = !case_.heavy && seed % 13 == 5;
  }

  /// Returns a case of few ops on floats of any value, any of whose dimensions are padded.
  test_case make_padded() {
    writer w(state_);
    case_.wild = state_.wild = true;
    for (auto params = r_.in(1, 2); params > 0; --params)
      w.fresh({wild_type(), w.some_shape(1, 3)});
    draw_ops(w, r_.in(1, 3), 200);
    outputs(w);
    w.b.p.error.raise();
    case_.p = w.b.p;
    case_.info = w.infos;
    if (r_.one_in(2)) tidy();
    for (auto rank = r_.in(1, 2); rank > 0; --rank)
      case_.mesh.push_back({rank == 1 ? "B" : "M", r_.in(2, 8)});
    const pt::flat_program flat(case_.p);
    for (auto count = r_.in(1, 3); count > 0; --count) {
      auto& tactic = case_.tactics.emplace_back();
      for (auto n = r_.in(1, 3); n > 0; --n) {
        random_action a;
        a.axis = static_cast<int>(r_.in(0, case_.mesh.rank - 1));
        a.value = some_value(flat.p);
        a.policy = pt::uneven::pad;
        const int rank = flat.p.type(a.value).shape.rank;
        if (rank == 0) continue;
        a.dim = static_cast<int>(r_.in(0, rank - 1));
        tactic.push_back(a);
      }
    }
    return case_;
  }

  test_case make() {
    writer w(state_);
    state_.differentiable = r_.one_in(case_.heavy ? 2 : 6);
    case_.real = state_.real = !state_.differentiable && r_.one_in(10);
    const bool plain = !state_.differentiable && !state_.real;
    case_.wild = state_.wild = plain && r_.one_in(5);
    state_.empties = r_.one_in(8);
    if (case_.heavy)
      heavy_ops(w);
    else if (case_.looks_up)
      lookup_ops(w);
    else
      any_ops(w, plain);
    outputs(w);
    if (state_.differentiable || (state_.real && has_derivative(w.b.p))) differentiate(w);
    w.b.p.error.raise();
    case_.p = w.b.p;
    case_.info = w.infos;
    if (state_.differentiable) make_integral(case_.p);
    if (state_.real) make_double(case_.p);
    if (r_.one_in(2)) tidy();
    if (case_.heavy) {
      draw_heavy_tactics(case_, r_);
      return case_;
    }
    if (case_.looks_up) {
      draw_lookup_tactics(case_, r_);
      return case_;
    }
    mesh();
    actions();
    return case_;
  }

 private:
  test_case case_;
  bool pads_ = false;
  case_state state_;
  random_action first_{.dim = -1};
  random& r_ = state_.r;

  void any_ops(writer& w, bool plain) {
    const auto params = r_.in(1, 3);
    for (int i = 0; i < params; ++i)
      w.fresh({r_.one_in(6)  ? dtype::i32
               : state_.wild ? wild_type()
                             : dtype::f32,
               w.some_shape(1, 3)});
    const bool is_long = plain && r_.one_in(1500);
    if (is_long)
      draw_ops(w, r_.in(1000, 2500), 12000);
    else
      draw_ops(w, r_.in(3, plain ? 22 : 10), 400);
  }
  /// Draws layers, and mostly a few ops after them.
  void heavy_ops(writer& w) {
    draw_heavy_layers(w);
    if (!r_.one_in(3)) draw_ops(w, w.emitted + r_.in(1, 4), 40);
  }

  /// Draws a gather or an update, and mostly a few ops after it.
  void lookup_ops(writer& w) {
    draw_lookups(w);
    if (!r_.one_in(3)) draw_ops(w, w.emitted + r_.in(1, 4), 40);
  }

  static bool is_parameter(const pt::program& p, value_id v) {
    return p.is(p.producer(v), pt::op_role::parameter);
  }

  dtype wild_type() {
    static constexpr dtype types[] = {dtype::f32, dtype::f32, dtype::f64, dtype::bf16, dtype::f16};
    return types[r_.in(0, 4)];
  }
  void outputs(writer& w) {
    pt::program& p = w.b.p;
    std::vector<value_id> chosen;
    std::vector<char> used(p.types.size(), 0);
    for (value_id v : p.operand_list) used[static_cast<std::size_t>(v)] = 1;
    for (value_id v = 0; v < p.value_count(); ++v) {
      const bool last = !used[static_cast<std::size_t>(v)] && !is_parameter(p, v);
      if (w.info(v).tolerance > 0 || (last && !r_.one_in(5)) || r_.one_in(20)) chosen.push_back(v);
    }
    if (chosen.empty()) chosen.push_back(w.last());
    if (r_.one_in(8)) chosen.push_back(r_.pick(chosen));  // the same value twice
    int n = 0;
    std::set<value_id> states;  // inputs whose next state is an output
    for (auto v : chosen) {
      auto name = p.intern("o" + std::to_string(n++));
      const value_id state = r_.pick(p.inputs);
      if (r_.one_in(4) && p.type(state) == p.type(v) && states.insert(state).second)
        name = p.op(p.producer(state)).name;
      p.outputs.push_back({v, name});
    }
  }

  /// Adds cotangents of some inputs, from new inputs for those of some outputs.
  void differentiate(writer& w) {
    pt::vec<pt::op_detail::seed> seeds;
    pt::vec<value_id> wanted;
    for (value_id v : w.b.p.inputs)
      if (w.floating(v) && !r_.one_in(4)) wanted.push_back(v);
    std::vector<value_id> ends;
    for (const auto& o : w.b.p.outputs)
      if (w.floating(o.value) && !r_.one_in(3)) ends.push_back(o.value);
    for (auto v : ends) seeds.push_back({v, w.fresh(w.type(v))});
    const auto found = pt::op_detail::reverse(w.b, seeds, wanted);
    w.b.p.error.raise();
    pt::dsl_detail::tag_names(w.b.p).run();
    w.infos.resize(w.b.p.types.size());
    int n = 0;
    for (value_id v : found) w.b.p.outputs.push_back({v, w.b.p.intern("g" + std::to_string(n++))});
  }
  /// Turns floats into i64: another program of the same structure, in which sums of any size are
  /// exact in every order.
  static void make_integral(pt::program& p) {
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      const auto& n = p.op(o);
      if ((n.def != &def<op::constant> && n.def != &def<op::literal>) ||
          !pt::is_floating(p.type(n.result).element))
        continue;
      for (int i = 0; i < n.attr_count; ++i) {
        auto& bits = p.attr_list[static_cast<std::size_t>(n.attr_begin + i)];
        bits = std::llround(std::bit_cast<double>(bits));
      }
    }
    for (auto& t : p.types)
      if (pt::is_floating(t.element)) t.element = dtype::i64;
    for (auto& r : p.regions) make_integral(r);
  }

  static void make_double(pt::program& p) {
    for (auto& t : p.types)
      if (pt::is_floating(t.element)) t.element = dtype::f64;
    for (auto& r : p.regions) make_double(r);
  }
  static bool has_derivative(const pt::program& p) {
    bool all = true;
    for (pt::op_id o = 0; all && o < p.op_count(); ++o) {
      bool real = false;
      for (value_id v : p.operands(o)) real = real || pt::is_floating(p.type(v).element);
      all = !real || p.op(o).def->differentiable;
    }
    for (const auto& r : p.regions) all = all && has_derivative(r);
    return all;
  }

  /// Removes ops that the outputs do not need, as tracing does.
  void tidy() {
    const pt::program before = case_.p;
    const std::vector<value_info> known = case_.info;
    case_.p = pt::ir_detail::tidy(before);
    case_.info.assign(case_.p.types.size(), {});
    const auto move = [&](value_id from, value_id to) {
      case_.info[static_cast<std::size_t>(to)] = known[static_cast<std::size_t>(from)];
    };
    for (std::size_t i = 0; i < before.inputs.size(); ++i)
      move(before.inputs[i], case_.p.inputs[i]);
    for (std::size_t i = 0; i < before.outputs.size(); ++i)
      move(before.outputs[i].value, case_.p.outputs[i].value);
  }

  /// Chooses a reshape and a dimension of it that an axis of this size slices, unless the factors
  /// are too small, or returns `otherwise`. The first tactic begins with it.
  std::int64_t size_for_reshape(std::int64_t otherwise) {
    const pt::program& p = case_.p;
    std::vector<value_id> ends;
    for (pt::op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).def == &def<op::reshape>) {
        ends.push_back(p.operand(o, 0));
        ends.push_back(p.op(o).result);
      }
    if (ends.empty() || !p.regions.empty()) return otherwise;  // values as in the flat program
    first_.value = r_.pick(ends);
    const shape& s = p.type(first_.value).shape;
    if (s.rank == 0) return otherwise;
    first_.dim = static_cast<int>(r_.in(0, s.rank - 1));
    std::int64_t size = std::clamp<std::int64_t>(s[first_.dim], 1, 24);
    while (size > 1 && s[first_.dim] % size != 0) --size;
    return size;
  }
  /// Draws axes of any size if the schedule pads.
  void mesh() {
    pads_ = r_.one_in(2);
    static constexpr int sizes[] = {1, 2, 2, 2, 3, 4, 4, 6, 8, 8, 12};
    static constexpr std::string_view names[] = {"B", "M", "T", "a b", "E", "F", "G", "H"};
    const auto rank = r_.one_in(12) ? r_.in(4, 8) : std::min<std::int64_t>(r_.in(1, 5), 3);
    for (int a = 0; a < rank; ++a) {
      std::int64_t size = pads_ ? r_.in(1, 8) : sizes[r_.in(0, 10)];
      if (a == 0 && r_.one_in(4)) size = size_for_reshape(size);
      if (case_.mesh.devices() * size > 64) size = rank > 3 ? 1 : 2;
      case_.mesh.push_back({names[a], size});
    }
  }

  value_id some_value(const pt::program& p) {
    std::vector<value_id> tags;
    for (const auto& n : p.ops)
      if (n.def == &def<op::tag>) tags.push_back(n.result);
    const auto kind = r_.in(0, 9);
    if (kind < 5) return r_.pick(p.inputs);
    if (kind < 7 && !tags.empty()) return r_.pick(tags);
    if (kind < 8) return r_.pick(p.outputs).value;
    return static_cast<value_id>(r_.in(0, p.value_count() - 1));
  }
  /// Changes an action to a part of its axis.
  void part(random_action& a) {
    const std::int64_t whole = case_.mesh.size(a.axis);
    for (int tries = 0; tries < 8; ++tries) {
      const std::int64_t pre = r_.in(1, whole), size = r_.in(2, std::max<std::int64_t>(whole, 2));
      if (whole % (pre * size) != 0 || size == whole) continue;
      a.pre = pre;
      a.size = size;
      return;
    }
  }
  void actions() {
    const pt::flat_program flat(case_.p);
    const auto count = r_.in(1, 4);
    for (int t = 0; t < count; ++t) {
      auto& tactic = case_.tactics.emplace_back();
      const auto n = r_.in(1, 4);
      const int axis = static_cast<int>(r_.in(0, case_.mesh.rank - 1));
      if (t == 0 && first_.dim >= 0) tactic.push_back(first_);
      const pt::uneven policy = !pads_ || r_.one_in(6) ? pt::uneven::unsaid
                                : r_.one_in(12)        ? pt::uneven::refuse
                                                       : pt::uneven::pad;
      for (int i = 0; i < n; ++i) {
        random_action a;
        a.axis = r_.one_in(4) ? static_cast<int>(r_.in(0, case_.mesh.rank - 1)) : axis;
        a.value = some_value(flat.p);
        a.atomic = r_.one_in(9);
        if (r_.one_in(6)) part(a);
        const std::int64_t size = a.whole() ? case_.mesh.size(a.axis) : a.size;
        if (!a.atomic) a.policy = policy;
        const shape& s = flat.p.type(a.value).shape;
        if (s.rank == 0 && !a.atomic) continue;
        for (int tries = 0; tries < (pads_ ? 1 : 6); ++tries) {
          a.dim = s.rank > 0 ? static_cast<int>(r_.in(0, s.rank - 1)) : 0;
          if (s.rank > 0 && s[a.dim] % size == 0) break;
        }
        tactic.push_back(a);
      }
    }
  }
};

}  // namespace random_test
