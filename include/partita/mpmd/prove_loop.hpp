/// A source's own loop over microbatches, as the proof of pipelines sees it.
///
/// The slices and states that an iteration uses are terms of their own, distinct in each iteration,
/// and so are all its results. By induction, a state has its source value in each microbatch if it
/// does in the first one, and if each microbatch leaves the value that the next one should find.
/// The combined values of all iterations are the sums of their summands, with one term for each
/// sum: a sum of two summands is the sum of both sums.
#pragma once

#include <algorithm>
#include <initializer_list>
#include <iterator>

#include <partita/ir/copy.hpp>
#include <partita/op/broadcast_in_dim.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/scan.hpp>
#include <partita/prove/prove.hpp>

namespace partita::mpmd_detail {

/// A value that iterations only add to what they carry.
struct added_value {
  combiner combine = combiner::stack;
  int stacked = -1;     ///< its number among the stacked results of the loop
  value_id total = -1;  ///< the sum over all iterations
};
/// A source whose loop carries each summand separately and returns the summands of each iteration.
struct opened_source {
  program p;
  op_id loop = -1;
  vec<added_value> added;
  vec<int> states;  ///< by number: the carried value
};

/// before: (s + (a + b)) in each iteration, from zero
/// => after: (s + a, t + b), and s + t after the loop; for all commutative combiners
///
/// Cost: linear in ops.
class summand_splitter {
 public:
  constexpr summand_splitter(const program& p, op_id loop)
      : p_(p),
        loop_(loop),
        body_(p.region(loop, 0)),
        k_(p.attrs(loop)),
        outer_(p, out_.p),
        inner_(body_, q_) {}

  constexpr opened_source run() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (o == loop_) {
        split();
        continue;
      }
      outer_.op(o);
      for (const auto& r : p_.regions_of(o)) out_.p.append_region(program(r));
    }
    outer_.interface();
    return static_cast<opened_source&&>(out_);
  }

 private:
  /// A node of the values that carried values combine: each distinct one once, operands before
  /// users.
  struct node {
    op_id by = -1;  ///< an op with this combiner
    value_id value = -1;
    value_id start = -1;        ///< the identity
    int left = -1, right = -1;  ///< the two combined nodes
    int carried = -1;           ///< of a leaf: the carried value of the new loop
    int stacked = -1;
  };
  const program& p_;
  op_id loop_;
  const program& body_;
  op::scan::counts k_;
  opened_source out_;
  program q_;
  program_copier outer_, inner_;
  vec<int> uses_;
  vec<node> nodes_;
  vec<int> node_of_;        ///< by combiner and value of the body, or -1
  vec<op_id> combines_;     ///< by carried value: the op that combines it, or -1
  vec<int> root_;           ///< by carried value: its node, or -1
  vec<int> carried_as_;     ///< by carried value that is not split
  vec<value_id> operands_;  ///< carried operands

  constexpr value_id before(int i) const { return body_.inputs[1 + k_.constants + i]; }
  constexpr value_id after(int i) const { return body_.outputs[i].value; }
  constexpr value_id operand(int i) const { return p_.operand(loop_, i); }
  constexpr bool stays(int i) const { return before(i) == after(i); }
  constexpr void count_uses() {
    uses_.resize(body_.types.size(), 0);
    for (op_id o = 0; o < body_.op_count(); ++o)
      for (const value_id v : body_.operands(o)) ++uses_[v];
    for (const auto& each : body_.outputs) ++uses_[each.value];
  }
  constexpr op_id combining(int i) const {
    const op_id o = body_.producer(after(i));
    const combiner c = prove_detail::combiner_of(*body_.op(o).def);
    if (c == combiner::stack || uses_[before(i)] != 1 || uses_[after(i)] != 1) return -1;
    value_id start = operand(k_.constants + i);
    while (p_.op(p_.producer(start)).def->id == def<op::broadcast_in_dim>.id)
      start = p_.operand(p_.producer(start), 0);
    const op_id from = p_.producer(start);
    if (!p_.op(from).def->constant || p_.attrs(from).size() != 1 ||
        p_.attrs(from)[0] != identity_bits(c, p_.type(start).element))
      return -1;
    for (const value_id v : body_.operands(o))
      if (v == before(i)) return o;
    return -1;
  }
  constexpr value_id parameter(const tensor_type& t) {
    q_.inputs.push_back(q_.append(def<op::parameter>, {}, {}, t));
    return q_.inputs.back();
  }
  constexpr void split() {
    count_uses();
    node_of_.resize(std::size(combiner_names) * body_.types.size(), -1);
    for (int i = 0; i < k_.carried; ++i) {
      combines_.push_back(combining(i));
      root_.push_back(combines_[i] < 0 ? -1 : add_nodes(i));
    }
    inner_.renamed[body_.inputs[0]] = parameter({dtype::i32, {}});
    for (int i = 0; i < k_.constants; ++i) take(1 + i);
    for (int i = 0; i < k_.carried; ++i)
      if (stays(i)) take(1 + k_.constants + i);
    carried_as_.resize(static_cast<std::size_t>(k_.carried), -1);
    for (int i = 0; i < k_.carried; ++i) {
      if (combines_[i] >= 0 || stays(i)) continue;
      carried_as_[i] = static_cast<int>(operands_.size());
      out_.states.push_back(carried_as_[i]);
      take(1 + k_.constants + i);
      operands_.push_back(outer_.renamed[operand(k_.constants + i)]);
    }
    vec<value_id> sums;  // by node
    for (node& n : nodes_) {
      sums.push_back(-1);
      if (n.left >= 0) continue;
      n.carried = static_cast<int>(operands_.size());
      sums.back() = parameter(body_.type(n.value));
      operands_.push_back(outer_.renamed[n.start]);
    }
    for (int i = 0; i < k_.sliced; ++i) take(1 + k_.constants + k_.carried + i);
    write_body(sums);
    write_loop();
  }
  constexpr void take(int input) {
    const value_id v = body_.inputs[input];
    inner_.renamed[v] = parameter(body_.type(v));
  }
  constexpr int& node_of(combiner c, value_id v) {
    return node_of_[static_cast<std::size_t>(c) * body_.types.size() + static_cast<std::size_t>(v)];
  }
  /// The node of the contribution of an iteration to a carried value.
  constexpr int add_nodes(int i) {
    const op_id root = combines_[i];
    const combiner c = prove_detail::combiner_of(*body_.op(root).def);
    const value_id added = body_.operand(root, body_.operand(root, 0) == before(i) ? 1 : 0);
    vec<value_id> open{added};
    while (!open.empty()) {
      const value_id v = open.back();
      const op_id o = body_.producer(v);
      const bool two = body_.op(o).def->id == body_.op(root).def->id;
      bool ready = true;
      if (two && node_of(c, v) < 0)
        for (const value_id each : body_.operands(o))
          if (node_of(c, each) < 0) {
            open.push_back(each);
            ready = false;
          }
      if (!ready) continue;
      open.pop_back();
      if (node_of(c, v) >= 0) continue;
      node n{.by = root, .value = v, .start = operand(k_.constants + i)};
      if (two) {
        n.left = node_of(c, body_.operand(o, 0));
        n.right = node_of(c, body_.operand(o, 1));
      }
      node_of(c, v) = static_cast<int>(nodes_.size());
      nodes_.push_back(n);
    }
    return node_of(c, added);
  }
  constexpr void write_body(const vec<value_id>& sums) {
    vec<char> combines(body_.ops.size(), 0);
    for (const op_id each : combines_)
      if (each >= 0) combines[each] = 1;
    for (op_id o = 0; o < body_.op_count(); ++o) {
      if (combines[o] != 0 || body_.is(o, op_role::parameter)) continue;
      inner_.op(o);
      for (const auto& r : body_.regions_of(o)) q_.append_region(program(r));
    }
    for (int i = 0; i < k_.carried; ++i)
      if (carried_as_[i] >= 0) q_.outputs.push_back({inner_.renamed[after(i)], {}});
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const node& n = nodes_[i];
      if (n.left >= 0) continue;
      const value_id both[] = {sums[i], inner_.renamed[n.value]};
      q_.outputs.push_back({q_.append(*body_.op(n.by).def, both, {}, body_.type(n.value)), {}});
    }
    for (int i = 0; i < k_.stacked; ++i)
      q_.outputs.push_back({inner_.renamed[body_.outputs[k_.carried + i].value], {}});
    int stacked = k_.stacked;
    for (node& n : nodes_) {
      if (body_.type(n.value).shape.rank == max_rank) continue;
      n.stacked = stacked++;
      q_.outputs.push_back({inner_.renamed[n.value], {}});
    }
  }
  constexpr void write_loop() {
    vec<value_id> operands;
    for (int i = 0; i < k_.constants; ++i) operands.push_back(outer_.renamed[operand(i)]);
    for (int i = 0; i < k_.carried; ++i)
      if (stays(i)) operands.push_back(outer_.renamed[operand(k_.constants + i)]);
    const auto constants = static_cast<std::int64_t>(operands.size());
    for (const value_id v : operands_) operands.push_back(v);
    for (int i = 0; i < k_.sliced; ++i)
      operands.push_back(outer_.renamed[operand(k_.constants + k_.carried + i)]);
    const auto carried = static_cast<int>(operands_.size()),
               stacked = static_cast<int>(q_.outputs.size()) - carried;
    const std::int64_t attrs[] = {k_.length, 0, constants, carried, k_.sliced, stacked, 0};
    program& p = out_.p;
    out_.loop = append_copy(p, p_, loop_, operands, attrs);
    const value_id first = p.value_count();
    for (int i = 0; i < carried; ++i) p.append_result(tensor_type(q_.output_type(i)));
    for (int i = 0; i < stacked; ++i) {
      tensor_type t{q_.output_type(carried + i).element, {k_.length}};
      for (const auto extent : q_.output_type(carried + i).shape) t.shape.push_back(extent);
      p.append_result(t);
    }
    p.append_region(static_cast<program&&>(q_));
    const vec<value_id> total = totals(first);
    for (int i = 0; i < k_.carried; ++i)
      outer_.renamed[p_.op(loop_).result + i] = stays(i) ? outer_.renamed[operand(k_.constants + i)]
                                                : combines_[i] < 0 ? first + carried_as_[i]
                                                                   : total[root_[i]];
    for (int i = 0; i < k_.stacked; ++i)
      outer_.renamed[p_.op(loop_).result + k_.carried + i] = first + carried + i;
  }
  /// The total of each node, after the loop.
  constexpr vec<value_id> totals(value_id first) {
    vec<value_id> total;
    for (const node& n : nodes_) {
      const op_def& d = *body_.op(n.by).def;
      if (n.left < 0) {
        total.push_back(first + n.carried);
      } else {
        const value_id both[] = {total[n.left], total[n.right]};
        total.push_back(out_.p.append(d, both, {}, body_.type(n.value)));
      }
      if (n.stacked >= 0)
        out_.added.push_back({prove_detail::combiner_of(d), n.stacked, total.back()});
    }
    return total;
  }
};

/// True if an op is a loop with this number of iterations that runs forward from the first.
constexpr bool is_loop_of(const program& p, op_id o, std::int64_t iterations) {
  if (o < 0 || o >= p.op_count() || p.op(o).def->id != def<op::scan>.id) return false;
  const op::scan::counts k(p.attrs(o));
  return k.length == iterations && !k.reversed && k.length >= 1;
}
/// The loop over microbatches of a source: the op that the pipeline states, or the first candidate.
/// -1 without such a loop.
constexpr op_id find_loop(const program& p, op_id said, std::int64_t iterations) {
  if (is_loop_of(p, said, iterations)) return said;
  for (op_id o = 0; o < p.op_count(); ++o)
    if (is_loop_of(p, o, iterations)) return o;
  return -1;
}

/// An iteration of the source's loop. The terms of its inputs and results describe the values of
/// units.
class source_iteration {
 public:
  using claim = prove_detail::claim;
  using claim_list = prove_detail::claim_list;

 private:
  /// Calls f(output) for each output of the body that a local value may hold a shard of: the body
  /// returns the same term, or the unsharded value of that term (see find_whole).
  template <class F>
  constexpr void for_each_output(const claim& c, const F& f) const {
    const int alias = w_.all.terms[c.term].alias.term;
    for (const int t : {c.term, alias}) {
      if (t < 0 || t >= static_cast<int>(first_output_.size())) continue;
      for (int i = first_output_[t]; i >= 0; i = next_output_[i]) f(i);
      if (alias == c.term) break;
    }
  }

 public:
  constexpr source_iteration(prove_detail::workspace& w, prove_detail::source_interface& front,
                             const opened_source& source)
      : w_(w), front_(front), source_(source), k_(source.p.attrs(source.loop)) {}

  /// Finds the terms of the loop after the source is defined. False if it has none.
  constexpr bool find() {
    for (std::size_t i = 0; i < w_.loops.size() && made_ == nullptr; ++i)
      if (w_.loops[i].p == &source_.p && w_.loops[i].op == source_.loop) made_ = &w_.loops[i];
    if (made_ == nullptr) return false;
    find_outputs();
    return true;
  }
  constexpr int states() const { return static_cast<int>(source_.states.size()); }
  constexpr value_id initial(int state) const {
    return operand(k_.constants + source_.states[state]);
  }

  // ---- Inputs of an iteration -------------------------------------------------------------------

  constexpr void count(claim_list& inside, value_id to) {
    w_.add(inside, to, claim(made_->inputs[0][0]));
  }
  /// Records a slice of a stack with this layout, given the claims about the stack.
  constexpr void take_slice(const claim_list& known, int stack, const layout& stack_lies,
                            const shape& stack_local, const layout& lies, claim_list& inside,
                            value_id to, const shape& local) {
    for (int j = 0; j < k_.sliced; ++j) {
      const int i = k_.constants + k_.carried + j;
      if (front_.is_value(operand(i), stack_lies, stack_local, known, stack))
        enter(made_->inputs[0][1 + i], lies, local, inside, to);
    }
  }
  /// Records a state, as it is in each iteration if it starts so and each iteration leaves it so.
  constexpr bool take_state(int state, const claim_list& known, int start, const layout& lies,
                            claim_list& inside, value_id to, const shape& local) {
    if (!front_.is_value(initial(state), lies, local, known, start)) return false;
    enter(made_->inputs[0][1 + k_.constants + source_.states[state]], lies, local, inside, to);
    return true;
  }

  // ---- Results of an iteration ------------------------------------------------------------------

  /// True if a value is what an iteration leaves of a state, in this layout.
  constexpr bool leaves(int state, const claim_list& known, int next, const layout& lies,
                        const shape& local) {
    const int i = source_.states[state];
    const shape& whole = body().output_type(i).shape;
    if (whole.has_no_elements()) return true;
    for (int c = known.first[next]; c >= 0; c = w_.claims[c].next)
      if (front_.is_piece(made_->outputs[0][i], w_.claims[c], whole,
                          prove_detail::laid_out(lies, local, w_.mesh)))
        return true;
    return false;
  }
  /// Records the value that the last iteration leaves.
  constexpr void give_last(const claim& c, claim_list& to, value_id result) {
    for_each_output(c, [&](int i) {
      if (is_state_[i] != 0) give(c, i, made_->results + i, 0, to, result);
    });
  }
  /// Records a stack of the values of all iterations.
  constexpr void give_stack(const claim_list& inside, value_id v, claim_list& to, value_id result) {
    for (int i = inside.first[v]; i >= 0; i = w_.claims[i].next) {
      const claim c = w_.claims[i];
      for_each_output(c, [&](int output) {
        if (output >= k_.carried) give(c, output, made_->results + output, 1, to, result);
      });
    }
  }
  /// The claims about values of a unit combined over all iterations: their summands are found if
  /// the same op combines them. The result has a list over the unit's values for each of its sums,
  /// as give_joined has.
  constexpr claim_list totals(const program& local, const claim_list& inside, combiner combine,
                              value_id v) {
    claim_list out(local);
    const auto combines = [&](value_id of) {
      return prove_detail::combiner_of(*local.op(local.producer(of)).def) == combine;
    };
    if (seen_in_.size() < local.types.size()) seen_in_.resize(local.types.size(), 0);
    ++sum_;
    vec<value_id> wanted;  // the value and its summands
    const auto want = [&](value_id each) {
      if (seen_in_[each] == sum_) return;
      seen_in_[each] = sum_;
      wanted.push_back(each);
    };
    want(v);
    for (std::size_t i = 0; i < wanted.size(); ++i)
      if (const op_id o = local.producer(wanted[i]); combines(wanted[i]))
        for (const value_id each : local.operands(o)) want(each);
    std::sort(wanted.begin(), wanted.end());
    const int lost = w_.lost;
    for (const value_id each : wanted) {
      add_total(inside, each, combine, out);
      if (combines(each)) prove_detail::lift(w_, local, local.producer(each), out);
    }
    w_.lost = lost;
    return out;
  }

 private:
  prove_detail::workspace& w_;
  prove_detail::source_interface& front_;
  const opened_source& source_;
  const prove_detail::source_loop* made_ = nullptr;
  op::scan::counts k_;
  vec<int> first_output_;  ///< by term: an output of the body with this term, or -1
  vec<int> next_output_;   ///< by output: another one with the same term
  vec<int> added_of_;      ///< by output: its index in `added`, or -1
  vec<char> is_state_;     ///< by output
  vec<int> seen_in_;       ///< by value of a unit: the last sum that combines it
  int sum_ = 0;            ///< number of the current sum

  constexpr void find_outputs() {
    const auto count = static_cast<std::size_t>(body().output_count());
    first_output_.resize(w_.all.terms.size(), -1);
    next_output_.resize(count, -1);
    added_of_.resize(count, -1);
    is_state_.resize(count, 0);
    for (int i = body().output_count(); i-- > 0;) {
      int& first = first_output_[made_->outputs[0][i].term];
      next_output_[i] = first;
      first = i;
    }
    for (const int i : source_.states) is_state_[i] = 1;
    for (std::size_t i = 0; i < source_.added.size(); ++i)
      added_of_[k_.carried + source_.added[i].stacked] = static_cast<int>(i);
  }
  constexpr value_id operand(int i) const { return source_.p.operand(source_.loop, i); }
  constexpr const program& body() const { return source_.p.region(source_.loop, 0); }
  constexpr void enter(const claim& whole, const layout& lies, const shape& local,
                       claim_list& inside, value_id to) {
    w_.add(inside, to, whole.term, prove_detail::laid_out(lies, local, w_.mesh), {}, whole.scale);
  }
  /// Finds the shards of a result of the body that a local value holds.
  constexpr bool find_pieces(const claim& c, int output, prove_detail::piece* pieces) const {
    const claim& whole = made_->outputs[0][output];
    return prove_detail::find_pieces(w_.all, whole.seen(), body().output_type(output).shape,
                                     c.seen(), pieces);
  }
  constexpr double scale_of(const claim& c, int output) const {
    return c.scale / made_->outputs[0][output].scale;
  }
  /// Records that a local value, which is a shard of a result of the body, is the same shard of a
  /// term after the loop (from dimension `shift` on).
  constexpr void give(const claim& c, int output, int term, int shift, claim_list& to,
                      value_id result, double scale = 1) {
    prove_detail::piece found[max_rank], pieces[max_rank];
    if (!prove_detail::is_factor(scale_of(c, output)) || !find_pieces(c, output, found)) return;
    const shape& s = w_.all.terms[term].shape;
    const prove_detail::view& own = w_.all.views[w_.all.terms[term].own];
    for (int d = 0; d < s.rank; ++d) {
      if (d >= shift) pieces[d] = found[d - shift];
      if (d < shift) pieces[d].add(0, s.extents[d], 1);
      if (own.repeats(d) && pieces[d].lies_inside(s.extents[d])) pieces[d] = prove_detail::piece();
      if (pieces[d].free) return;
    }
    w_.add(to, result, term, prove_detail::as_view(pieces, s.rank), c.sums,
           scale * scale_of(c, output));
  }
  constexpr void add_total(const claim_list& inside, value_id v, combiner combine, claim_list& to) {
    for (int i = inside.first[v]; i >= 0; i = w_.claims[i].next) {
      const claim c = w_.claims[i];
      if (w_.is_identity(c, combine)) w_.add(to, v, claim(c));
      if (c.sums.any() && c.sums.combine != combine) continue;
      for_each_output(c, [&](int output) {
        if (added_of_[output] < 0) return;
        const added_value& a = source_.added[added_of_[output]];
        if (a.combine != combine || (combine != combiner::add && scale_of(c, output) != 1)) return;
        const claim_list& known = front_.known();
        for (int t = known.first[a.total]; t >= 0; t = w_.claims[t].next)
          if (const claim total = w_.claims[t];
              !total.sums.any() && total.view == w_.all.terms[total.term].own)
            give(c, output, total.term, 0, to, v, total.scale);
      });
    }
  }
};

}  // namespace partita::mpmd_detail
