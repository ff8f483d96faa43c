/// The pass that runs other ops first where an op would wait for a collective.
#pragma once

#include <cstdint>

#include <partita/cost/simulate.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/support/vec.hpp>

namespace partita::cost_detail {

/// y = collective(x), f(y), g(z) => y = collective(x), g(z), f(y)
///
/// Ops keep their order, except that an op which waits for a collective in flight lets the first
/// runnable op go first. Collectives are sent one after the other, each as soon as its operand is
/// available. An all-gather takes no time here, because start_early.hpp can start it earlier.
///
/// Source    list scheduling: Graham, Bounds on multiprocessing timing anomalies, 1969
/// Cost      n log n for n ops
class putting_off {
 public:
  constexpr putting_off(const program& p, const mesh& m, const machine& on)
      : p_(p), took_(p.ops.size(), 0), ready_(p.ops.size(), 0), missing_(p.ops.size(), 0) {
    const auto note = [&](const program& q, const simulated_op& t) {
      if (&q == &p_) took_[t.op] = t.end - t.begin;
    };
    simulator(m, on, simulation_options(), note).run(p_);
    find_users();
  }

  constexpr spmd_detail::rewrite run() {
    spmd_detail::rewrite w(p_);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (p_.is(o, op_role::parameter)) put(w, o, 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (p_.op(o).operand_count == 0 && !p_.is(o, op_role::parameter)) wait(o);
    while (!units_.idle() || !links_.idle()) {
      const bool link = units_.idle() || (!links_.idle() && links_.next() <= units_.next());
      resource& r = link ? links_ : units_;
      const op_id o = r.take();
      if (!p_.is(o, collective::all_gather)) r.free += took_[o];
      put(w, o, r.free);
    }
    for (std::size_t i = 0; i < w.order.size(); ++i)
      w.changed += w.order[i] != static_cast<op_id>(i) ? 1 : 0;
    return w;
  }

 private:
  const program& p_;
  vec<double> took_, ready_;  ///< by op, seconds
  vec<int> missing_;          ///< by op: operands that are not available yet
  /// By op: the position of its users in `users_`.
  vec<int> begin_;
  vec<op_id> users_;
  resource units_, links_;

  constexpr void find_users() {
    begin_.resize(p_.ops.size() + 1, 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o)) {
        ++missing_[o];
        ++begin_[p_.producer(v) + 1];
      }
    for (op_id o = 0; o < p_.op_count(); ++o) begin_[o + 1] += begin_[o];
    users_.resize(static_cast<std::size_t>(begin_[p_.op_count()]), 0);
    vec<int> next = begin_;
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o)) users_[next[p_.producer(v)]++] = o;
  }
  constexpr bool is_sent(op_id o) const {
    return p_.op(o).def->collective && p_.collective_of(o).communicates() &&
           !p_.is(o, collective::all_gather);
  }
  constexpr void wait(op_id o) { (is_sent(o) ? links_ : units_).later.push({ready_[o], o}); }
  /// Appends an op whose results are available at time `there`.
  constexpr void put(spmd_detail::rewrite& w, op_id o, double there) {
    w.order.push_back(o);
    for (int i = begin_[o]; i < begin_[o + 1]; ++i) {
      const op_id user = users_[i];
      if (there > ready_[user]) ready_[user] = there;
      if (--missing_[user] == 0) wait(user);
    }
  }
};

/// Rewrites a lowered program and its notes. Returns the number of ops that moved.
constexpr int put_off(lowered& l, const machine& on) {
  const auto make = [&](const program& p, std::int64_t, const vec<std::int64_t>&) {
    return putting_off(p, l.device.mesh, on).run();
  };
  const spmd_detail::renumbering moved =
      spmd_detail::nested_pass(make, false).run(l.device.local, spmd_detail::sharing::no_bound);
  l.notes = spmd_detail::renumbered(l.notes, moved);
  return moved.changed;
}

}  // namespace partita::cost_detail
