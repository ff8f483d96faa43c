/// The pass that splits collectives into start and done, and moves the two apart.
#pragma once

#include <cstdint>

#include <partita/cost/simulate.hpp>
#include <partita/ir/copy.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// ..., y = collective(x), f(y) => y' = collective(x), ..., y = done(y', x), f(y)
///
/// A collective starts as late as it can without delaying its user, and not later than its original
/// place. A gather is awaited where it is used; any other collective is awaited when it has
/// arrived, which frees its operand. Arrival times assume that the links do one thing at a time,
/// while kernels take their simulated times. Ops that do not communicate keep their order. A
/// collective that no kernel could run beside stays as it is.
///
/// Law       the rewritten program computes the same values; live memory does not exceed `bound`
///           bytes where it did not before
/// Cost      linear in ops: a collective is moved across at most `most_crossed` of them
class starting_early {
 public:
  static constexpr int most_crossed = 1024;

  constexpr starting_early(program& p, const mesh& m, const machine& on, std::int64_t bound)
      : p_(p), mesh_(m), on_(on), bound_(bound) {}

  /// Rewrites the program and those nested in it. Returns the number of collectives that are
  /// awaited, and appends the notes of all collectives in the new order.
  constexpr int run(const vec<collective_note>& notes, std::size_t& next,
                    vec<collective_note>& made) {
    split_nested(notes, next);
    find_times();
    find_room();
    find_operands();
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (at_[o].communicates) find_start(o);
      note_user(o);
    }
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (at_[o].communicates) find_end(o);
    write(made);
    return split_;
  }

 private:
  struct place {
    bool communicates = false;
    double took = 0;    ///< seconds
    double before = 0;  ///< seconds of the kernels before it
    op_id first = -1;   ///< the first place where a collective can start: after its operands
    op_id user = -1;    ///< the first op that uses a result; the number of ops: none
    /// The ops before which a collective starts and is done.
    op_id start = -1, end = -1;
    std::int64_t room = 0;       ///< bytes that may be added while the op runs
    vec<collective_note> notes;  ///< its own, or those inside
  };

  program& p_;
  const mesh& mesh_;
  const machine& on_;
  std::int64_t bound_;
  vec<place> at_;  ///< by op, and one entry after the last
  int split_ = 0;
  vec<op_id> last_use_;
  double gathers_from_ = 0;  ///< seconds: gathers occupy the links from here on
  double others_until_ = 0;  ///< seconds: other collectives occupy the links until here

  constexpr void split_nested(const vec<collective_note>& notes, std::size_t& next) {
    at_.resize(p_.ops.size() + 1, place());
    vec<std::int64_t> room;
    if (!p_.regions.empty()) {
      const live_bytes live(p_);
      for (op_id o = 0; o < p_.op_count(); ++o)
        room.push_back(bound_ - saturating_add(live.arguments, live.during[o] - live.inside[o]));
    }
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      at_[o].communicates = n.def->collective && p_.collective_of(o).communicates();
      for (int i = 0; at_[o].communicates && i < n.result_count; ++i)
        at_[o].notes.push_back(notes[next++]);
      for (int r = 0; r < n.region_count; ++r) {
        program& q = p_.regions[n.region_begin + r];
        std::int64_t arguments = 0;
        for (int i = 0; i < q.input_count(); ++i)
          arguments = saturating_add(arguments, q.input_type(i).bytes());
        split_ += starting_early(q, mesh_, on_, saturating_add(room[o], arguments))
                      .run(notes, next, at_[o].notes);
      }
    }
  }
  constexpr void find_times() {
    const auto note = [&](const program& q, const simulated_op& t) {
      if (&q == &p_) at_[t.op].took = t.end - t.begin;
    };
    simulator(mesh_, on_, simulation_options(), note).run(p_);
    double sum = 0;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      at_[o].before = sum;
      if (!at_[o].communicates) sum += at_[o].took;
    }
    at_[p_.op_count()].before = gathers_from_ = sum;
  }
  constexpr void find_room() {
    live_bytes live(p_);
    for (op_id o = 0; o < p_.op_count(); ++o)
      at_[o].room = bound_ - saturating_add(live.arguments, live.during[o]);
    last_use_ = static_cast<vec<op_id>&&>(live.last_use);
  }
  constexpr void find_operands() {
    op_id behind_parameters = 0;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      if (p_.is(o, op_role::parameter)) behind_parameters = o + 1;
      at_[o].start = at_[o].end = o;
      at_[o].first = behind_parameters;
      at_[o].user = p_.op_count();
      for (value_id v : p_.operands(o))
        if (const op_id made = p_.producer(v); made >= at_[o].first) at_[o].first = made + 1;
    }
  }
  constexpr void note_user(op_id o) {
    for (value_id v : p_.operands(o)) {
      op_id& user = at_[p_.producer(v)].user;
      if (at_[o].start < user) user = at_[o].start;
    }
  }
  constexpr std::int64_t bytes_of_results(op_id o) const {
    const op_node& n = p_.op(o);
    std::int64_t sum = 0;
    for (value_id v = n.result; v < n.result + n.result_count; ++v)
      sum = saturating_add(sum, p_.type(v).bytes());
    return sum;
  }
  /// Returns the bytes of operands that the collective is the last to read, without arguments.
  constexpr std::int64_t bytes_held(op_id o) const {
    std::int64_t sum = 0;
    for (value_id v : p_.operands(o))
      if (last_use_[v] <= o && !p_.is(p_.producer(v), op_role::parameter))
        sum = saturating_add(sum, p_.type(v).bytes());
    return sum;
  }
  constexpr bool gathers(op_id o) const { return p_.is(o, collective::all_gather); }

  /// Finds the start of a collective. Runs backwards, so that the use of its result is known.
  constexpr void find_start(op_id o) {
    place& c = at_[o];
    const std::int64_t bytes =
        saturating_add(bytes_of_results(o), gathers(o) ? bytes_held(o) : std::int64_t{0});
    const double until = at_[c.user].before < gathers_from_ ? at_[c.user].before : gathers_from_;
    for (int n = 0; n < most_crossed && c.start > c.first && at_[c.start - 1].room >= bytes; ++n) {
      if (at_[c.start].before <= until - c.took) break;
      at_[--c.start].room -= bytes;
    }
    if (gathers(o) || c.start < o)
      gathers_from_ = at_[c.start].before < until ? at_[c.start].before : until;
  }
  constexpr void find_end(op_id o) {
    place& c = at_[o];
    if (gathers(o)) {
      c.end = c.user;
    } else {
      const double free = at_[c.start].before > others_until_ ? at_[c.start].before : others_until_;
      others_until_ = free + c.took;
      const std::int64_t bytes = bytes_held(o);
      c.end = c.start;
      for (int n = 0; n < most_crossed && c.end < c.user; ++n) {
        if (at_[c.end].before >= others_until_ || (c.end > o && at_[c.end].room < bytes)) break;
        if (c.end > o) at_[c.end].room -= bytes;
        ++c.end;
      }
    }
    if (at_[c.end].before > at_[c.start].before)
      ++split_;
    else
      c.start = c.end = o;
  }
  constexpr bool split(op_id o) const { return at_[o].communicates && at_[o].end > at_[o].start; }

  // ---- Writing -------------------------------------------------------------------------------

  /// Ops by place; ops of one place keep their order.
  struct by_place {
    vec<op_id> first, next;
    constexpr void add(op_id at, op_id o) {
      next[o] = first[at];
      first[at] = o;
    }
  };
  constexpr void write(vec<collective_note>& made) {
    const auto count = p_.ops.size();
    by_place starts{vec<op_id>(count + 1, -1), vec<op_id>(count, -1)}, ends = starts;
    bool any = false;
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (!split(o)) continue;
      any = true;
      starts.add(at_[o].start, o);
      ends.add(at_[o].end, o);
    }
    program q;
    program_copier copy(p_, q);
    if (any) copy.reserve();
    for (op_id at = 0; at <= p_.op_count(); ++at) {
      for (op_id o = ends.first[at]; o >= 0; o = ends.next[o]) write_done(o, copy, q);
      for (op_id o = starts.first[at]; o >= 0; o = starts.next[o]) write_op(o, any, copy, q, made);
      if (at < p_.op_count() && !split(at)) write_op(at, any, copy, q, made);
    }
    if (!any) return;
    copy.interface();
    p_ = static_cast<program&&>(q);
  }
  constexpr void write_op(op_id o, bool any, program_copier& copy, program& q,
                          vec<collective_note>& made) {
    for (const auto& note : at_[o].notes) made.push_back(note);
    if (!any) return;
    copy.op(o);
    const op_node& n = p_.op(o);
    for (int r = 0; r < n.region_count; ++r)
      q.append_region(static_cast<program&&>(p_.regions[n.region_begin + r]));
  }
  constexpr void write_done(op_id o, program_copier& copy, program& q) {
    const op_node& n = p_.op(o);
    vec<value_id> operands;
    for (int r = 0; r < n.result_count; ++r) operands.push_back(copy.renamed[n.result + r]);
    for (value_id v : p_.operands(o)) operands.push_back(copy.renamed[v]);
    q.append_op(def<op::done>, {operands.data(), operands.size()}, {});
    q.ops.back().marks = n.marks;
    copy.results(o);
  }
};

/// Rewrites a lowered program and its notes. Returns the number of collectives that are awaited.
constexpr int start_early(lowered& l, const machine& on, std::int64_t bound) {
  vec<collective_note> notes;
  std::size_t next = 0;
  const int split =
      starting_early(l.device.local, l.device.mesh, on, bound).run(l.notes, next, notes);
  l.notes = static_cast<vec<collective_note>&&>(notes);
  return split;
}

}  // namespace partita::cost_detail
