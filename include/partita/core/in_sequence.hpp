/// Loops over an axis as loops in time: the steps run in sequence, on one device.
///
/// Source    PartIR, section 4 (loops have sequential semantics) and section 8 (microbatching)
#pragma once

#include <partita/support/vec.hpp>

#include <partita/core/accumulation.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/reshape.hpp>
#include <partita/op/scan.hpp>
#include <partita/op/transpose.hpp>

namespace partita {

/// The result of `in_sequence`.
struct sequential_program {
  program p;
  int loops = 0;    ///< the number of scans: one, unless the program needs more
  vec<text> notes;  ///< the reasons for more scans, and the ops that stay outside of them
};

namespace core_detail {

/// Assigns ops to stages. Scan number s runs the sliced ops of stage s; the other ops of stage s
/// follow, on unsliced values. A sliced op is in the stage of its operands if they are produced as
/// it slices them; otherwise it must wait for the unsliced operand. An op with nested programs is
/// sliced if every value inside is produced as it is used there.
///
/// Step i takes every n-th block of a sliced dimension, starting at block i, instead of a
/// contiguous range. The dimension is viewed as (blocks / n, n, elements of a block), whose most
/// major part remains for the axes of the mesh. Any choice of positions is correct, because the
/// factors of a tile map may be cut down to single positions. The number of blocks divides the size
/// of every factor in the loop, so that all ops agree on it. Ops that depend on positions (iota,
/// gathers at computed indices, windows, running sums) run outside, on unsliced values.
class sequencing {
 public:
  constexpr sequencing(const core_program& c, int axis, const vec<char>& cheap, bool contiguous)
      : c_(c), axis_(axis), n_(c.mesh.size(axis)), blocks_(contiguous ? n_ : 0), cheap_(cheap) {}

  constexpr sequential_program run() {
    const auto ops = c_.p.ops.size(), values = c_.p.types.size();
    find_factors();
    accumulation_.resize(ops, -1);
    for (int i = 0; i < static_cast<int>(accumulations_.size()); ++i)
      if (const accumulation& a = accumulations_[i]; a.own_start && a.terms.size() == 1)
        accumulation_[a.last()] = accumulation_[a.wire] = i;
    for (vec<char>* by_op : {&cheap_, &sliced_, &early_}) by_op->resize(ops, 0);
    stage_.resize(ops, 0);
    whole_.resize(values, -1);
    inside_.resize(values, -1);
    first_import_.resize(values, -1);
    by_scope_.resize(c_.nested.scopes.size(), vec<op_id>());
    for (op_id o : c_.order) {
      by_scope_[c_.nested.scope[o]].push_back(o);
      if (c_.nested.scope[o] == 0 && !c_.p.is(o, op_role::wire)) top_.push_back(o);
    }
    find_sliced();
    find_early();
    find_stages();
    for (int s = 0; s <= stages_; ++s) {
      if (s > 0) add_scan(s);
      for (op_id o : top_)
        if ((early_[o] ? s == 0 : !sliced_[o] && stage_[o] == s) && needed_outside(o))
          add_outside(o);
    }
    for (const auto& out : c_.p.outputs)
      b_.p.outputs.push_back({whole_[out.value], b_.p.intern(c_.p.view(out.name))});
    result_.p = static_cast<program&&>(b_.p);
    return static_cast<sequential_program&&>(result_);
  }

 private:
  using control_info = flat_program::control_info;
  /// A value of the program around a scan, as the scan's steps see it: unsliced (no_dim) or sliced.
  struct import {
    value_id value = -1;
    int dim = no_dim;
    value_id inner = -1;
    int next = -1;  ///< the next import of the same value
  };

  const core_program& c_;
  int axis_;
  std::int64_t n_, blocks_;
  vec<accumulation> accumulations_ = accumulations(c_);
  builder b_;
  sequential_program result_;
  vec<const factor*> factors_;  ///< by op: the factor that its loop slices, or null
  vec<int> accumulation_;  ///< by op: the index of the accumulation it belongs to (as the sum or
                           ///< the wire), or -1
  vec<char> cheap_;        ///< by op: true if it may be computed once more, on unsliced values
  vec<char> sliced_;       ///< by op of the top-level program: true if it runs in a scan
  vec<char> early_;        ///< by op: true if it runs before all scans, on unsliced values
  vec<int> stage_;         ///< by op of the top-level program
  int stages_ = 0;
  vec<value_id> whole_;    ///< by value: its value in the program around the scans
  vec<value_id> inside_;   ///< by value: its value in the body of a scan
  vec<int> first_import_;  ///< by value: its first import in the scan being built
  vec<import> imports_;    ///< imports of the scan being built
  vec<vec<op_id>> by_scope_;
  vec<op_id> top_;  ///< the ops of the top-level program, without wires

  constexpr bool is_control(op_id o) const { return c_.nested.control_of(o) != nullptr; }
  constexpr const control_info& control(op_id o) const { return *c_.nested.control_of(o); }
  /// The op that produces a value; for a wire, the op it belongs to.
  constexpr op_id maker(value_id v) const { return user(c_.p.producer(v)); }
  constexpr op_id user(op_id o) const { return is_control(o) ? control(o).marker : o; }
  constexpr value_id value(const use& u) const { return c_.p.operand(u.op, u.operand); }

  // ---- Layouts of the loops ---------------------------------------------------------------------

  constexpr int dim_of(op_id o, int end) const {
    const factor* f = factors_[o];
    return f == nullptr ? no_dim : c_.map.dim_of(*f, end);
  }
  constexpr int made_dim(value_id v) const {
    const op_id o = c_.p.producer(v);
    return dim_of(o, c_.p.op(o).result - v - 1);
  }
  constexpr int required_dim(const use& u) const { return dim_of(u.op, u.operand); }
  /// True if a step can run a loop over this factor without knowing the positions of its blocks.
  static constexpr bool runs_in_steps(const factor& f) {
    return !f.offset && !f.halo && !f.located && !f.again && f.carry == combiner::stack;
  }
  constexpr void find_factors() {
    for (op_id o = 0; o < c_.p.op_count(); ++o) {
      const loop* l = c_.nest_of(o).find(axis_);
      factors_.push_back(l == nullptr || l->factor == any_factor ? nullptr
                                                                 : &c_.map.at(o, l->factor));
      if (factors_[o] != nullptr) blocks_ = greatest_common_divisor(factors_[o]->size, blocks_);
    }
  }
  /// True for a wire that only passes an output of a nested program, or one output of each branch,
  /// to a result.
  constexpr bool leads_out(op_id o) const {
    const op_node& n = c_.p.op(o);
    return n.def->role == op_role::wire && control(o).scope_count > 0 &&
           (n.operand_count == 1 || (n.operand_count > 1 && control(o).branches)) &&
           n.result_count == 1 && c_.nested.value_scope[n.result] == c_.nested.scope[o];
  }
  /// The operand of such a wire that determines how the steps combine to the full value. Zero
  /// operands are skipped, because zero is also a valid sum.
  constexpr use telling(op_id wire) const {
    const int count = c_.p.op(wire).operand_count;
    for (int i = 0; i < count; ++i)
      if (count == 1 || !is_zero(c_.p, value({wire, i}))) return {wire, i};
    return {wire, 0};
  }
  /// True if an output of a nested program combines to the full value in the same way as the result
  /// does.
  constexpr bool agrees(const use& u) const {
    const use first = telling(u.op);
    if (u.operand == first.operand) return true;
    const combiner c = combine_of(value(first));
    return c == combine_of(value(u)) || (c == combiner::add && is_zero(c_.p, value(u)));
  }
  /// The combiner with which the values of the steps give the full value. `stack` without a
  /// dimension means that all steps have the same value.
  constexpr combiner combine_of(value_id v) const {
    const op_id o = c_.p.producer(v);
    if (leads_out(o)) return combine_of(value(telling(o)));
    if (const accumulation* a = accumulates(o); a != nullptr && (o == a->last() || v == a->result))
      return combine_of(term(*a));
    const factor* f = factors_[o];
    return f == nullptr || made_dim(v) != no_dim ? combiner::stack : f->combine;
  }
  constexpr value_id term(const accumulation& a) const {
    return c_.p.operand(a.terms[0].op, a.terms[0].operand);
  }
  /// The accumulation of an inner loop that stays pending until the last step, or null.
  constexpr const accumulation* accumulates(op_id o) const {
    const int i = accumulation_[o];
    if (i < 0) return nullptr;
    const accumulation& a = accumulations_[i];
    if (factors_[a.last()] != nullptr || factors_[a.wire] != nullptr) return nullptr;
    return combine_of(term(a)) == combiner::add ? &a : nullptr;
  }
  /// True if the use only passes a pending sum on.
  constexpr bool passes(const use& u) const {
    if (leads_out(u.op)) return made_dim(value(u)) == required_dim(u) && agrees(u);
    const accumulation* a = accumulates(u.op);
    if (a == nullptr) return false;
    return u.op == a->last() ? u.operand == a->terms[0].operand
                             : c_.p.producer(value(u)) == a->last();
  }
  /// True if each step produces the value as it is used there. If one branch yields a pending sum
  /// of the steps, all branches must: a value that is the same in all steps would be counted once
  /// per step.
  constexpr bool fits(const use& u) const {
    const value_id x = value(u);
    if (leads_out(u.op) && combine_of(value(telling(u.op))) != combiner::stack) return false;
    return combine_of(x) == combiner::stack && made_dim(x) == required_dim(u);
  }
  /// True for a value without operands and loops, which is recomputed where it is used.
  constexpr bool made_anew(const use& u) const {
    const op_node& n = c_.p.op(c_.p.producer(value(u)));
    return n.operand_count == 0 && n.def->role == op_role::compute && required_dim(u) == no_dim;
  }
  template <class F>
  constexpr void for_each_operand(op_id o, const F& f) const {
    if (is_control(o)) {
      for (const auto& u : control(o).operands) f(u);
    } else {
      for (int i = 0, n = c_.p.op(o).operand_count; i < n; ++i) f(use{o, i});
    }
  }
  template <class F>
  constexpr void for_each_result(op_id o, const F& f) const {
    if (is_control(o)) {
      for (value_id v : control(o).results) f(v);
    } else {
      const op_node& n = c_.p.op(o);
      for (int r = 0; r < n.result_count; ++r) f(n.result + r);
    }
  }

  // ---- Stages -----------------------------------------------------------------------------------

  constexpr void find_sliced() {
    for (op_id o : top_) {
      if (c_.p.is(o, op_role::parameter)) continue;
      if (!is_control(o)) {
        const factor* f = factors_[o];
        sliced_[o] = f != nullptr && runs_in_steps(*f);
        continue;
      }
      bool any = false, good = true;
      inspect(control(o), any, good);
      sliced_[o] = any && good;
      if (any && !good)
        result_.notes.push_back(concat(c_.p.op(o).def->name, " of ", named_results(control(o)),
                                       " runs once, on unsliced values: its nested programs need "
                                       "the results of all steps"));
    }
  }
  constexpr text named_results(const control_info& k) const {
    text out;
    append_list(out, static_cast<int>(k.results.size()),
                [&](int i) { out << '"' << c_.describe(k.results[i]) << '"'; });
    return out;
  }
  /// Sets `any` if an op nested in `k` has a loop, and clears `good` if some value inside is not
  /// produced as it is used.
  constexpr void inspect(const control_info& k, bool& any, bool& good) const {
    const auto look = [&](op_id o) {
      const factor* f = factors_[o];
      any = any || f != nullptr;
      good = good && (f == nullptr || runs_in_steps(*f));
      for (int i = 0; i < c_.p.op(o).operand_count; ++i) {
        const use u{o, i};
        const bool from_outside = c_.nested.value_scope[value(u)] == c_.nested.scope[k.marker];
        good = good && (from_outside || passes(u) || fits(u));
      }
    };
    for (const auto& u : k.operands) look(u.op);
    for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
      for (const auto& u : c_.nested.scopes[s].outputs) look(u.op);
      for (op_id o : by_scope_[s]) {
        look(o);
        if (c_.p.is(o, op_role::control)) inspect(control(o), any, good);
      }
    }
  }

  /// True if an op needs an operand only as the same step, or the same place outside, produces it.
  constexpr bool same_step(op_id o, const use& u) const {
    return !sliced_[o] || made_anew(u) || (sliced_[maker(value(u))] && fits(u));
  }
  /// Finds cheap ops whose unsliced results a scan needs, and the ops that these are computed from.
  /// They run before all scans, and once more in a scan where its steps use their slices.
  constexpr void find_early() {
    for (std::size_t i = top_.size(); i-- > 0;)
      for_each_operand(top_[i], [&](const use& u) {
        const op_id q = maker(value(u));
        early_[q] |= early_[top_[i]] || (cheap_[q] && !same_step(top_[i], u));
      });
  }
  constexpr void find_stages() {
    for (op_id o : top_) {
      int stage = sliced_[o];
      char in_steps = sliced_[o];  // without early ops
      value_id waits_for = -1;
      for_each_operand(o, [&](const use& u) {
        const op_id q = maker(value(u));
        const bool same = same_step(o, u);
        const int made = early_[q] && !(sliced_[o] && same) ? 0 : stage_[q];
        in_steps |= early_[q];
        if (made + !same > stage) {
          stage = made + !same;
          waits_for = same ? -1 : value(u);
        }
      });
      early_[o] &= in_steps;
      stage_[o] = stage;
      if (stage <= stages_) continue;
      stages_ = stage;
      if (stage > 1 && waits_for >= 0)
        result_.notes.push_back(concat("loop ", stage, " starts where \"", c_.describe(waits_for),
                                       "\" is needed unsliced (", c_.p.op(o).def->name, ')'));
    }
  }
  /// True if a value produced in steps is used after them or between two scans.
  constexpr bool leaves_loop(value_id v) const {
    if (early_[maker(v)]) return false;
    if (c_.returned[v]) return true;
    for (const auto& u : c_.uses(v))
      if (!sliced_[user(u.op)] || comes_in(u, stage_[user(u.op)])) return true;
    return false;
  }
  /// False for constants that are recomputed in each body and used nowhere else.
  constexpr bool needed_outside(op_id o) const {
    const op_node& n = c_.p.op(o);
    if (n.operand_count > 0 || n.def->role != op_role::compute || c_.returned[n.result])
      return true;
    for (const auto& u : c_.uses(n.result))
      if (early_[user(u.op)] || !sliced_[user(u.op)] || !made_anew(u)) return true;
    return false;
  }

  // ---- Building ---------------------------------------------------------------------------------

  /// The marks for ops that are added on behalf of a value.
  constexpr const op_marks& marks(value_id v) const { return c_.p.op(c_.p.producer(v)).marks; }
  constexpr tensor_type part_of(value_id v, int dim) const {
    tensor_type t = c_.p.type(v);
    if (dim != no_dim) t.shape[dim] /= n_;
    return t;
  }
  /// Appends an op; `renamed` is by value of the core program. `parts`: with the types that a step
  /// sees.
  constexpr void add_op(program& to, op_id o, const vec<value_id>& operands, vec<value_id>& renamed,
                        bool parts) const {
    const auto type = [&](value_id v) { return part_of(v, parts ? made_dim(v) : no_dim); };
    vec<program> regions;
    if (is_control(o)) {
      const control_info& k = control(o);
      for (int s = k.first_scope; s < k.first_scope + k.scope_count; ++s) {
        regions.push_back(nested_program(s, renamed, parts));
      }
    }
    append_copy(to, c_.p, o, operands, c_.p.attrs(o));
    for_each_result(o, [&](value_id v) { renamed[v] = to.append_result(type(v)); });
    for (auto& r : regions) to.append_region(static_cast<program&&>(r));
    if (c_.p.is(o, op_role::parameter)) to.inputs.push_back(renamed[c_.p.op(o).result]);
  }
  constexpr program nested_program(int scope, vec<value_id>& renamed, bool parts) const {
    program r;
    for (value_id v : c_.nested.scopes[scope].inputs) {
      renamed[v] = r.append(def<op::parameter>, {}, {}, part_of(v, parts ? made_dim(v) : no_dim));
      r.inputs.push_back(renamed[v]);
    }
    vec<value_id> operands;
    for (op_id o : by_scope_[scope]) {
      if (c_.p.is(o, op_role::wire)) continue;
      operands.clear();
      for_each_operand(o, [&](const use& u) { operands.push_back(renamed[value(u)]); });
      add_op(r, o, operands, renamed, parts);
    }
    for (const auto& u : c_.nested.scopes[scope].outputs)
      r.outputs.push_back({renamed[value(u)], {}});
    return r;
  }
  constexpr void add_outside(op_id o) {
    vec<value_id> operands;
    for_each_operand(o, [&](const use& u) { operands.push_back(whole_[value(u)]); });
    add_op(b_.p, o, operands, whole_, false);
    if (early_[o]) mark_again(b_.p, b_.p.op_count() - 1);
  }

  /// True if the operand of a sliced op is produced outside the body of its own scan.
  constexpr bool comes_in(const use& u, int stage) const {
    const op_id q = maker(value(u));
    return !(sliced_[q] && stage_[q] == stage && fits(u));
  }
  constexpr import* find_import(const use& u) {
    for (int i = first_import_[value(u)]; i >= 0; i = imports_[i].next)
      if (imports_[i].dim == required_dim(u)) return &imports_[i];
    return nullptr;
  }

  constexpr void add_scan(int stage) {
    vec<op_id> ops;
    for (op_id o : top_)
      if (sliced_[o] && stage_[o] == stage) ops.push_back(o);
    for (const auto& each : imports_) first_import_[each.value] = -1;
    imports_.clear();
    vec<value_id> carried, stacked;
    for (op_id o : ops) {
      for_each_operand(o, [&](const use& u) {
        if (!comes_in(u, stage) || made_anew(u) || find_import(u) != nullptr) return;
        int& first = first_import_[value(u)];
        imports_.push_back({value(u), required_dim(u), -1, first});
        first = static_cast<int>(imports_.size()) - 1;
      });
      for_each_result(o, [&](value_id v) {
        if (leaves_loop(v)) (made_dim(v) == no_dim ? carried : stacked).push_back(v);
      });
    }
    if (carried.empty() && stacked.empty()) return;  // nothing uses their results

    ++result_.loops;
    program body;
    const auto parameter = [&](const tensor_type& t) {
      body.inputs.push_back(body.append(def<op::parameter>, {}, {}, t));
      return body.inputs.back();
    };
    vec<value_id> operands, sums;
    parameter({dtype::i32, {}});
    for (auto& each : imports_) {
      if (each.dim != no_dim) continue;
      each.inner = parameter(c_.p.type(each.value));
      operands.push_back(whole_[each.value]);
    }
    const std::size_t constants = operands.size();
    for (value_id v : carried) {
      const tensor_type& t = c_.p.type(v);
      sums.push_back(parameter(t));
      b_.add_for(marks(v));
      operands.push_back(
          b_.emit(def<op::constant>, {}, {identity_bits(combine_of(v), t.element)}, t));
    }
    for (auto& each : imports_) {
      if (each.dim == no_dim) continue;
      each.inner = parameter(part_of(each.value, each.dim));
      operands.push_back(slices(each.value, each.dim));
    }
    const std::size_t sliced = operands.size() - constants - carried.size();
    vec<std::int64_t> attrs{n_, 0};
    for (std::size_t count : {constants, carried.size(), sliced, stacked.size(), std::size_t{0}})
      attrs.push_back(static_cast<std::int64_t>(count));
    fill_body(body, ops, stage);
    for (std::size_t i = 0; i < carried.size(); ++i) {
      const value_id v = carried[i];
      value_id next = inside_[v];
      if (combine_of(v) != combiner::stack) {
        const value_id both[] = {sums[i], next};
        next = append_for(body, marks(v), combining_op(combine_of(v)), both, {}, c_.p.type(v));
      }
      body.outputs.push_back({next, {}});
    }
    for (value_id v : stacked) body.outputs.push_back({inside_[v], {}});
    b_.add_for({});  // it belongs to no single op
    value_id result =
        b_.emit(def<op::scan>, {operands.data(), operands.size()}, {attrs.data(), attrs.size()}, {},
                ops::region_list(static_cast<program&&>(body)));
    if (b_.failed()) return;
    for (value_id v : carried) whole_[v] = result++;
    for (value_id v : stacked) whole_[v] = unsliced(result++, v, made_dim(v));
  }
  constexpr void fill_body(program& body, const vec<op_id>& ops, int stage) {
    vec<value_id> anew(c_.p.types.size(), -1), operands;
    for (op_id o : ops) {
      operands.clear();
      for_each_operand(o, [&](const use& u) {
        const value_id x = value(u);
        if (!comes_in(u, stage)) {
          operands.push_back(inside_[x]);
        } else if (const import* found = find_import(u)) {
          operands.push_back(found->inner);
        } else {
          if (anew[x] < 0) add_op(body, c_.p.producer(x), {}, anew, false);
          operands.push_back(anew[x]);
        }
      });
      add_op(body, o, operands, inside_, true);
    }
  }

  // ---- Slices: (..., blocks / n, n, block, ...), with n moved to the front ----------------------

  /// A shape with one dimension split: the steps at index `at`, after the most major part if any.
  struct split_shape {
    shape parts;
    int at = 0;
  };
  /// Splits dimension `dim` into three dimensions, without those of size 1. If that would exceed
  /// the maximum rank, all dimensions before it become one, and all after it join the block.
  constexpr split_shape split(value_id v, int dim) const {
    const shape& s = c_.p.type(v).shape;
    shape before, after;
    if (s[dim] != blocks_) after.push_back(s[dim] / blocks_);
    for (int d = 0; d < s.rank; ++d)
      if (d != dim) (d < dim ? before : after).push_back(s[d]);
    if (before.rank + after.rank + 2 > max_rank) {
      before = {before.elements()};
      after = {after.elements()};
    }
    if (blocks_ != n_) before.push_back(blocks_ / n_);
    split_shape out{before, before.rank};
    out.parts.push_back(n_);
    for (const std::int64_t e : after) out.parts.push_back(e);
    return out;
  }
  constexpr value_id slices(value_id v, int dim) {
    const auto [parts, at] = split(v, dim);
    b_.add_for(marks(v));
    value_id y = ops::reshape(b_, whole_[v], parts);
    vec<std::int64_t> order{at};
    for (int d = 0; d < parts.rank; ++d)
      if (d != at) order.push_back(d);
    if (at > 0) y = ops::transpose(b_, y, {order.data(), order.size()});
    shape stack{n_};
    for (auto e : part_of(v, dim).shape) stack.push_back(e);
    return b_.type(y).shape == stack ? y : ops::reshape(b_, y, stack);
  }
  constexpr value_id unsliced(value_id x, value_id v, int dim) {
    const auto [parts, at] = split(v, dim);
    b_.add_for(marks(v));
    shape stack{n_};
    vec<std::int64_t> order;
    for (int d = 0; d < parts.rank; ++d) {
      if (d != at) stack.push_back(parts[d]);
      order.push_back(d < at ? d + 1 : d == at ? 0 : d);
    }
    if (b_.type(x).shape != stack) x = ops::reshape(b_, x, stack);
    if (at > 0) x = ops::transpose(b_, x, {order.data(), order.size()});
    return ops::reshape(b_, x, c_.p.type(v).shape);
  }
};

}  // namespace core_detail

/// Runs the loops over `axis` in sequence: every op that has one moves into the body of a `scan`,
/// which has as many steps as the axis has positions.
///
/// Sums are accumulated from step to step, tiled results are stacked, and ops without a loop stay
/// outside. Inputs and outputs are those of the source. If an op in the loop needs the full value
/// of something that the loop produces (a mean over the batch), it is computed before the loop if
/// it is `cheap` (by op; see find_early), or another scan follows. `contiguous`: a step takes a
/// contiguous range, as no axis of a mesh will slice what remains.
///
/// Cost: linear in ops.
/// Errors    S025 a dimension is padded, S100 a sliced value has the maximum rank, so that its
///           stack would have one dimension too many
constexpr sequential_program in_sequence(const core_program& c, int axis,
                                         const vec<char>& cheap = {}, bool contiguous = false) {
  sequential_program refused;
  for (const auto& each : c.padding.enlargements)
    refused.p.error.record("S025", "in_sequence: dimension ", each.dim, " of \"",
                           c.describe(each.value), "\" has size ",
                           c.true_shape(each.value)[each.dim], " and is padded for axis \"",
                           c.mesh.name(each.axis), "\" of size ", c.mesh.size(each.axis),
                           "; steps need a size that they divide");
  if (refused.p.error) return refused;
  return core_detail::sequencing(c, axis, cheap, contiguous).run();
}

}  // namespace partita
