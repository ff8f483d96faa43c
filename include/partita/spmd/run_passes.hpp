/// Runs the passes that rewrite a lowered program.
#pragma once

#include <cstdint>

#include <partita/spmd/combine.hpp>
#include <partita/spmd/passes.hpp>
#include <partita/spmd/place.hpp>
#include <partita/spmd/share.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// What became of the collectives that communicate; they are numbered in the order of the text,
/// those of nested programs in their place.
struct renumbering {
  vec<int> order;   ///< new number -> old number
  vec<int> joined;  ///< by old number: the old number of the one that it is part of now, or -1
  int changed = 0;
};

/// A pass over a program and those nested in it; these first, since they may run often.
template <class MakeRewrite>
class nested_pass {
 public:
  /// `make(program, bytes)` gives the rewrite of a program whose peak may be so many bytes.
  constexpr explicit nested_pass(const MakeRewrite& make) : make_(make) {}

  constexpr renumbering run(program& p, std::int64_t bound) {
    result_.order = rewritten_in(p, bound);
    return static_cast<renumbering&&>(result_);
  }

 private:
  const MakeRewrite& make_;
  renumbering result_;
  int next_ = 0;  ///< old number of the next collective

  /// Gives the old numbers in the new order.
  constexpr vec<int> rewritten_in(program& p, std::int64_t bound) {
    const auto count = p.ops.size();
    vec<int> inside;                          // old numbers, by op
    vec<int> begin(count, 0), end(count, 0);  // of an op's in `inside`
    vec<std::int64_t> room(count, bound);     // for what is nested in an op
    if (bound != sharing::no_bound && !p.regions.empty()) {
      const live_bytes live(p);
      for (op_id o = 0; o < p.op_count(); ++o)
        room[o] -= saturating_add(live.arguments, live.during[o] - live.inside[o]);
    }
    for (op_id o = 0; o < p.op_count(); ++o) {
      begin[o] = static_cast<int>(inside.size());
      if (p.op(o).def->collective && p.collective_of(o).communicates()) {
        inside.push_back(next_++);
        result_.joined.push_back(-1);
      }
      for (int r = 0; r < p.op(o).region_count; ++r) {
        program& q = p.regions[p.op(o).region_begin + r];
        std::int64_t arguments = 0;  // they are alive outside, too
        for (int i = 0; i < q.input_count(); ++i)
          arguments = saturating_add(arguments, q.input_type(i).bytes());
        const bool bounded = bound != sharing::no_bound;
        const vec<int> list = rewritten_in(q, bounded ? saturating_add(room[o], arguments) : bound);
        inside.insert_back(list.begin(), list.end());
      }
      end[o] = static_cast<int>(inside.size());
    }
    const rewrite w = make_(static_cast<const program&>(p), bound);
    if (w.changed == 0) return inside;
    result_.changed += w.changed;
    vec<int> order;
    for (op_id o : w.order) {
      order.insert_back(inside.begin() + begin[o], inside.begin() + end[o]);
      for (op_id each = w.next[o]; each >= 0; each = w.next[each])
        result_.joined[inside[begin[each]]] = inside[begin[o]];
    }
    p = rewritten(p, w);
    return order;
  }
};

template <class MakeRewrite>
constexpr renumbering run_pass(program& p, std::int64_t bound, const MakeRewrite& make) {
  return nested_pass<MakeRewrite>(make).run(p, bound);
}

/// Runs the passes that are on, in their order; after each calls `done(renumbering, report)`, which
/// fills in the collectives.
///
/// Errors    C003 live memory is above the bound before a gather is shared
template <class Done>
constexpr failure run_passes(program& p, const passes& options, const Done& done) {
  failure f;
  std::int64_t peak = live_bytes(p).peak();
  const auto run = [&](std::string_view name, std::int64_t bound, const auto& make) {
    pass_report r;
    r.name = name;
    r.peak_before = peak;
    const renumbering moved = run_pass(p, bound, make);
    r.changed = moved.changed;
    if (moved.changed > 0) peak = live_bytes(p).peak();
    r.peak_after = peak;
    done(moved, r);
  };
  if (options.combine_below > 0)
    run("combine", sharing::no_bound,
        [&](const program& q, std::int64_t) { return combining(q, options.combine_below).run(); });
  if (options.place)
    run("place", sharing::no_bound,
        [](const program& q, std::int64_t) { return placing(q).run(); });
  if (!options.shares()) return f;
  const bool bounded = options.memory_bound > 0;
  if (bounded && peak > options.memory_bound) {
    f.record("C003", "passes: memory_bound is ", options.memory_bound,
             " bytes per device; the program needs ", peak,
             " before a gather is shared, its arguments ", live_bytes(p).arguments,
             " of them; give ", peak, " or more");
    return f;
  }
  run("share_gathers", bounded ? options.memory_bound : sharing::no_bound,
      [](const program& q, std::int64_t bound) { return sharing(q, bound).run(); });
  return f;
}

}  // namespace partita::spmd_detail
