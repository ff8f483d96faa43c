/// Runs the passes that rewrite a lowered program.
#pragma once

#include <cstdint>

#include <partita/spmd/combine.hpp>
#include <partita/spmd/lift_gathers.hpp>
#include <partita/spmd/passes.hpp>
#include <partita/spmd/place.hpp>
#include <partita/spmd/share.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// Maps the results of collectives that communicate to those after a pass. They are numbered in the
/// order of the text, including nested programs.
struct renumbering {
  vec<int> order;    ///< new number -> old number
  vec<char> joined;  ///< by old number: 1 if its collective was joined with the preceding one
  int changed = 0;
};

/// Runs a pass over a program and its nested programs, innermost first, because they may run often.
/// Cost: that of the pass; each program is visited once, independent of depth.
template <class MakeRewrite>
class nested_pass {
 public:
  /// `make(program, bytes, nested)` returns the rewrite of a program whose peak may be `bytes`.
  /// `nested` is live_bytes::inside, and is empty unless `asks_for_memory`.
  constexpr nested_pass(const MakeRewrite& make, bool asks_for_memory)
      : make_(make), asks_for_memory_(asks_for_memory) {}

  constexpr renumbering run(program& p, std::int64_t bound) {
    put_in_order(rewritten_in(p, bound).list);
    return static_cast<renumbering&&>(result_);
  }

 private:
  /// One result of a collective, by its old number, or all those of a nested program.
  struct entry {
    int number = -1, list = -1;
  };
  struct outcome {
    int list = -1;             ///< the index of its collectives, in the new order
    vec<std::int64_t> nested;  ///< live_bytes::inside, if the pass asks for memory
  };
  const MakeRewrite& make_;
  bool asks_for_memory_;
  renumbering result_;
  int next_ = 0;  ///< the old number of the next collective
  vec<vec<entry>> lists_;

  constexpr outcome rewritten_in(program& p, std::int64_t bound) {
    const auto count = p.ops.size();
    outcome now;
    if (asks_for_memory_) now.nested.resize(count, 0);
    vec<entry> inside;
    vec<int> begin(count, 0), end(count, 0);  // by op: a range in `inside`
    const bool bounded = bound != sharing::no_bound;
    vec<std::int64_t> room;  // by op: the bytes available to its nested programs
    if (bounded && !p.regions.empty()) {
      const live_bytes live(p, now.nested);
      for (std::int64_t each : live.during)
        room.push_back(bound - saturating_add(live.arguments, each));
    }
    for (op_id o = 0; o < p.op_count(); ++o) {
      begin[o] = static_cast<int>(inside.size());
      const bool communicates = p.op(o).def->collective && p.collective_of(o).communicates();
      for (int i = 0; communicates && i < p.op(o).result_count; ++i) {
        inside.push_back({next_++, -1});
        result_.joined.push_back(0);
      }
      for (int r = 0; r < p.op(o).region_count; ++r) {
        program& q = p.regions[p.op(o).region_begin + r];
        std::int64_t arguments = 0;  // they are also live outside
        for (int i = 0; i < q.input_count(); ++i)
          arguments = saturating_add(arguments, q.input_type(i).bytes());
        const outcome of = rewritten_in(q, bounded ? saturating_add(room[o], arguments) : bound);
        inside.push_back({-1, of.list});
        if (!asks_for_memory_) continue;
        const std::int64_t beyond = live_bytes(q, of.nested).beyond_arguments();
        if (beyond > now.nested[o]) now.nested[o] = beyond;
      }
      end[o] = static_cast<int>(inside.size());
    }
    const rewrite w = make_(static_cast<const program&>(p), bound, now.nested);
    if (w.changed > 0) {
      result_.changed += w.changed;
      vec<entry> order;
      for (op_id o : w.order) {
        for (op_id each = o; each >= 0; each = w.next[each]) {
          order.insert_back(inside.data() + begin[each], inside.data() + end[each]);
          if (each != o) result_.joined[inside[begin[each]].number] = 1;
        }
      }
      inside = static_cast<vec<entry>&&>(order);
      p = rewritten(p, w);
      if (asks_for_memory_) now.nested = rewritten(now.nested, w);
    }
    now.list = static_cast<int>(lists_.size());
    lists_.push_back(static_cast<vec<entry>&&>(inside));
    return now;
  }
  constexpr void put_in_order(int list) {
    for (const entry& each : lists_[list])
      if (each.number >= 0)
        result_.order.push_back(each.number);
      else
        put_in_order(each.list);
  }
};

/// Combines all_reduces. Calls `done` as run_passes does, if any were combined.
template <class Done>
constexpr void run_combining(program& p, std::int64_t limit, const Done& done) {
  const auto make = [&](const program& q, std::int64_t, const vec<std::int64_t>& nested) {
    return combining(q, nested, limit).run();
  };
  pass_report r;
  r.name = "combine";
  const renumbering moved = nested_pass(make, true).run(p, sharing::no_bound);
  if ((r.changed = moved.changed) > 0) done(moved, r);
}

/// Runs the other selected passes in order. After each pass calls `done(renumbering, report)`,
/// which completes the report.
///
/// Errors    C003 live memory exceeds the bound before a gather is shared
template <class Done>
constexpr failure run_passes(program& p, const mesh& m, const passes& options, const Done& done) {
  failure f;
  const shared_uses which = options.shared();
  std::int64_t peak = live_bytes(p).peak();
  const auto run = [&](std::string_view name, std::int64_t bound, bool asks_for_memory,
                       const auto& make) {
    pass_report r;
    r.name = name;
    r.peak_before = peak;
    const renumbering moved = nested_pass(make, asks_for_memory).run(p, bound);
    r.changed = moved.changed;
    if (moved.changed > 0) peak = live_bytes(p).peak();
    r.peak_after = peak;
    done(moved, r);
  };
  if (options.place)
    run("place", sharing::no_bound, true, [](const program& q, std::int64_t, const auto& nested) {
      return placing(q, nested).run();
    });
  if (!options.shares()) return f;
  const bool bounded = options.memory_bound != 0 || which != shared_uses::all;
  const std::int64_t bound = options.memory_bound > 0 ? options.memory_bound : peak;
  if (bounded && peak > bound) {
    f.record("C003", "passes: memory_bound is ", options.memory_bound,
             " bytes per device; the program needs ", peak,
             " before a gather is shared, its arguments ", live_bytes(p).arguments,
             " of them; give ", peak, " or more");
    return f;
  }
  if (which != shared_uses::all) {
    // movement ops before gathers stay in place
  } else if (!bounded) {
    lift_gathers(p, m);
  } else if (program q = p; lift_gathers(q, m)) {
    const std::int64_t lifted = live_bytes(q).peak();
    if (lifted <= bound) {
      p = static_cast<program&&>(q);
      peak = lifted;
    }
  }
  run("share_gathers", bounded ? bound : sharing::no_bound, bounded,
      [&](const program& q, std::int64_t most, const auto& nested) {
        return sharing(q, which, most, nested).run();
      });
  return f;
}

}  // namespace partita::spmd_detail
