/// The microbatch tactic: processes a batch in several steps, in sequence.
///
/// Source    PartIR, section 8 (microbatching as a sequential loop); GPipe, arXiv:1811.06965
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <partita/core/in_sequence.hpp>
#include <partita/core/name_copies.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/ir/tidy.hpp>
#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>
#include <partita/support/syntax.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The batch dimension of an input, or of all inputs below a prefix.
struct microbatch_entry {
  std::string_view name;
  int dim;
};

namespace schedule_detail {

/// A copy of a microbatch entry that owns its string.
struct kept_microbatch_entry {
  kept_name name;
  int dim = 0;
  constexpr kept_microbatch_entry() = default;
  constexpr explicit kept_microbatch_entry(const microbatch_entry& e) : name(e.name), dim(e.dim) {}
};

/// Finds the ops that may be computed twice: no op that they are computed from does more than two
/// FLOPs for each element of its operands and results, as products of matrices do, or is an input
/// that the program updates, such as a parameter. `p` is the source of `c`.
///
/// Cost: linear in ops.
constexpr vec<char> cheap_ops(const program& p, const core_program& c) {
  vec<char> cheap(c.p.ops.size(), 1);
  for (const int i : reused_inputs(p))
    if (i >= 0) cheap[c.p.producer(c.p.inputs[i])] = 0;
  for (op_id o = c.p.op_count(); o-- > 0;) {
    const op_node& n = c.p.op(o);
    if (n.def->role == op_role::compute && !n.def->elementwise) {
      const vec<tensor_type> operands = c.operand_types(o);
      const cost_context cost{operands, c.p.type(n.result), c.p.attrs(o)};
      std::int64_t elements = cost.result.shape.elements();
      for (const auto& t : operands) elements = saturating_add(elements, t.shape.elements());
      cheap[o] = n.def->flops(cost) <= saturating_multiply(2, elements);
    }
    if (const int scope = c.nested.scope[o]; scope > 0)
      cheap[c.nested.scopes[scope].marker] &= cheap[o];
  }
  const auto from = [&](op_id o, value_id v) {
    const auto* k = c.nested.control_of(c.p.producer(v));
    cheap[o] &= cheap[k == nullptr ? c.p.producer(v) : k->marker];
  };
  for (op_id o : c.order)
    if (!c.p.is(o, op_role::control))
      for (const value_id v : c.p.operands(o)) from(o, v);
    else
      for (const auto& u : c.nested.control_of(o)->operands) from(o, c.p.operand(u.op, u.operand));
  return cheap;
}

/// The rewrite of a microbatch tactic, independent of the number of its entries.
struct microbatch_rewrite {
  std::int64_t n_;
  span<const kept_microbatch_entry> entries_;

  // Defined before its uses: otherwise Clang postpones templates of a precompiled header.
  template <class... Parts>
  constexpr void fail(rewriting& r, std::string_view code, Parts... parts) const {
    r.error.record(code, in_syntax(r.advice, "microbatch(", "microbatch "), n_,
                   in_syntax(r.advice, "): ", ": "), parts...);
  }

  /// Adds the loop to the program, before the first action.
  constexpr void rewrite(rewriting& r) const {
    if (n_ < 1) return fail(r, "S010", "at least one step is needed");
    // Steps read only their own slices, and the virtual axis must not be split.
    core_program c(r.p, mesh{{"microbatch", n_}}, {.halos = false, .may_split = false});
    for (const auto& e : entries_) slice(r, c, e);
    if (r.error || n_ == 1) return;
    c.propagate();
    for (const auto& each : c.conflicts) refuse(r, c, each);
    if (r.error) return;
    sequential_program s = in_sequence(c, 0, cheap_ops(r.p, c), r.one_device);
    if (s.p.error)
      fail(r, "S014", "the program with the loop is invalid: ", s.p.error.message.view());
    if (s.loops == 0) {
      text names;
      append_list(names, static_cast<int>(entries_.size()),
                  [&](int i) { names << '"' << entries_[i].name.view() << '"'; });
      if (entries_.empty())
        fail(r, "S013", "no input is named as batch; name each with its batch dimension");
      else
        fail(r, "S013", "no op is computed slice by slice for ", names);
    }
    if (r.error) return;
    live_program live = without_dead_code(s.p);  // without ops that need not run in the loop, too
    if (live.changed) s.p = static_cast<program&&>(live.p);
    r.p = static_cast<program&&>(s.p);
    core_detail::name_copies(r.p);
    r.notes = s.notes;
  }

 private:
  constexpr void slice(rewriting& r, core_program& c, const kept_microbatch_entry& e) const {
    bool found = false;
    vec<std::string_view> known;
    for (int i = 0; i < r.p.input_count(); ++i) {
      const std::string_view name = r.p.input_name(i);
      known.push_back(name);
      if (!selects(e.name.view(), name) && !selects_pattern(e.name.view(), name)) continue;
      found = true;
      const shape& s = r.p.input_type(i).shape;
      if (e.dim < 0 || e.dim >= s.rank)
        return fail(r, "S002", "dimension ", e.dim, " of \"", name,
                    "\" is out of range; its shape is ", s);
      if (s[e.dim] % n_ != 0)
        return fail(r, "S003", "dimension ", e.dim, " of \"", name, "\" has size ", s[e.dim],
                    ", which ", n_, " does not divide; choose another number of steps");
      if (s.rank == max_rank && n_ > 1)
        return fail(r, "S014", '"', name, "\" has shape ", s, "; its ", n_,
                    " slices are stacked along one more dimension, and a tensor has at most ",
                    max_rank, "; merge two of its dimensions");
      for (const auto& before : r.sliced)
        if (before.input == i && before.dim == e.dim)
          return fail(
              r, "S011", "dimension ", e.dim, " of \"", name,
              "\" is already in a loop of microbatches; a dimension can be sliced only once");
      r.sliced.push_back({i, e.dim});
      r.error.record(c.tile(c.p.inputs[i], e.dim, 0));
    }
    if (!found)
      fail(r, "S006", "no input is named \"", e.name.view(), "\" or is below it; ",
           known_names_or_below(e.name.view(), known));
  }
  constexpr void refuse(rewriting& r, const core_program& c, const conflict& each) const {
    const op_node& n = c.p.op(each.op);
    const auto where = [&](const evidence& e) {
      text out;
      const int dim = c.map.dim_of(c.map.at(each.op, e.factor), e.operand);
      if (e.operand < 0)
        out << "its uses slice dimension " << dim;
      else
        out << "dimension " << dim << " of operand " << static_cast<int>(e.operand) << " (\""
            << c.describe(c.p.operand(each.op, e.operand)) << "\") is sliced";
      return out;
    };
    if (each.kind == conflict_kind::several)
      fail(r, "S012", n.def->name, " of ", c.p.type(n.result), ": ", where(each.first), ", ",
           where(each.second), "; they cannot be one loop");
    else
      fail(r, "S003", n.def->name, " of ", c.p.type(n.result), ": ", where(each.first),
           ", which is ", c.map.at(each.op, each.first.factor).size, " positions here; ", n_,
           " does not divide them");
  }
};

}  // namespace schedule_detail

/// Processes everything that is computed from a batch in n steps, each for one slice of the batch.
///
/// Effect    adds a loop over a virtual axis of n positions, found by the same tile maps and
///           propagation as for an axis of the mesh. The loop becomes a `scan`: results summed over
///           the batch (gradients) are accumulated, results per example are stacked, and everything
///           else (an optimizer) stays outside. Step i processes every n-th example, starting with
///           example i, or blocks of examples if an op in the loop has fewer positions than the
///           batch, or if the mesh has one device. A value that the steps need of the whole batch,
///           such as the sum of a mask that a loss divides by, is computed before the loop if that
///           takes no parameter and no product of matrices. Any other such value ends the loop, and
///           another one follows.
/// Legal     if n divides the batch, and each op that depends on the batch is sliced in one way.
///           The tactic may be anywhere in a schedule: all other tactics see the program with the
///           loop.
/// Pros      the memory for activations is divided by n
/// Cons      collectives inside the loop run n times (a sharded parameter is gathered in each
///           step), and matrix products are smaller
/// Collectives  none; gradients are reduced once, after the loop
/// Errors    S002 dimension out of range, S003 n does not divide the dimension or one computed from
///           it, S006 no such input, S010 n below 1, S011 a dimension is sliced twice, S012 an op
///           would have to be sliced in two ways, S013 no op is computed slice by slice, S014 an
///           input already has the maximum rank
template <std::size_t N>
class microbatch_tactic {
 public:
  constexpr microbatch_tactic(std::int64_t n, const microbatch_entry (&entries)[N],
                              std::string_view name)
      : microbatch_tactic(n, entries, name, std::make_index_sequence<N>{}) {}
  constexpr std::string_view name() const { return name_; }
  /// Returns the same tactic with another name.
  constexpr microbatch_tactic named(std::string_view n) const {
    microbatch_tactic t = *this;
    t.name_ = n;
    return t;
  }

  /// Does nothing: the loop is added before the first action.
  constexpr void apply(tactic_context&) const {}
  constexpr void rewrite(rewriting& r) const {
    schedule_detail::microbatch_rewrite{n_, {entries_, N}}.rewrite(r);
  }

 private:
  template <std::size_t... I>
  constexpr microbatch_tactic(std::int64_t n, const microbatch_entry (&entries)[N],
                              std::string_view name, std::index_sequence<I...>)
      : n_(n), name_(name), entries_{schedule_detail::kept_microbatch_entry(entries[I])...} {}

  std::int64_t n_;
  kept_name name_;
  schedule_detail::kept_microbatch_entry entries_[N];
};

/// Returns a microbatch tactic: `microbatch(4, {{"x", 0}})`. The name appears in reports.
template <std::size_t N>
constexpr microbatch_tactic<N> microbatch(std::int64_t n, const microbatch_entry (&entries)[N],
                                          std::string_view name = "microbatch") {
  return {n, entries, name};
}

}  // namespace partita
