// Random programs, meshes and actions: the partitioned program computes the results of the source.
//
// Gradients are of i64, on which sums are exact, or of f64, for which an analysis bounds the effect
// of their order. Not drawn: gradients of narrower floats, sums of floats whose finite part may
// overflow.
//
// PARTITA_RANDOM_FIRST=s and PARTITA_RANDOM_CASES=n run n seeds from s on, PARTITA_RANDOM_SEED=s
// runs one case and prints it.
#include <doctest/doctest.h>

#include <iostream>
#include <map>
#include <optional>

#include <partita/cost/memory_course.hpp>
#include <partita/report/html.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../xml.hpp"
#include "error_bound.hpp"
#include "generator.hpp"
#include "needed.hpp"
#include "schedule.hpp"
#include "seeds.hpp"

namespace pt = partita;
using namespace random_test;
using data::str;

namespace {

constexpr long default_cases = 5000;

/// A user's tactic: actions from a list.
struct listed_tactic {
  const std::vector<random_action>* actions = nullptr;
  constexpr std::string_view name() const { return "listed"; }
  constexpr void apply(pt::tactic_context& c) const {
    for (const auto& a : *actions) {
      const pt::text name = a.whole() ? pt::text(c.mesh().name(a.axis))
                                      : pt::concat(c.mesh().name(a.axis), ":(", a.pre, ')', a.size);
      const int axis = c.axis(name);
      if (a.atomic)
        c.atomic(a.value, axis);
      else
        c.tile(a.value, a.dim, axis, a.policy);
    }
    c.propagate();
  }
};
static_assert(pt::Tactic<listed_tactic>);

/// True if nest `b` begins with the loops of `a`, over the parts of its axes.
bool begins_with(const pt::nest& b, const pt::mesh& b_mesh, const pt::nest& a,
                 const pt::mesh& a_mesh) {
  int i = 0;
  for (const auto& l : a)
    for (int part : b_mesh.parts_of(a_mesh.part(l.axis))) {
      if (i == b.count || b.loops[i].axis != part || b.loops[i].factor != l.factor) return false;
      ++i;
    }
  return true;
}

/// Counts of ops; those of nested programs count once per run.
struct counted {
  pt::collectives total;
  int notes = 0;
};
void count_by_name(const pt::program& p, int times, counted& n,
                   pt::span<const pt::known_integer> inputs = {}) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    for (auto k :
         {pt::collective::all_gather, pt::collective::all_reduce, pt::collective::reduce_scatter,
          pt::collective::all_to_all, pt::collective::permute})
      if (p.op(o).def->name == name_of(k)) {
        const int results = p.op(o).result_count;  // several if all_reduces are combined
        n.total.count(k, std::int64_t{times} * results);
        n.notes += results;
      }
    pt::wire_list wires;
    wires.inputs = inputs;
    p.op(o).def->wires(p, o, wires);
    for (int r = 0; r < p.op(o).region_count; ++r)
      count_by_name(p.region(o, r), times * static_cast<int>(wires.trips), n,
                    pt::known_inputs(p, o, r, wires));
  }
}
counted count_by_name(const pt::program& p) {
  counted n;
  count_by_name(p, 1, n);
  return n;
}

/// Checks that the text of a program is complete.
std::string round_trip(const pt::program& p, const pt::mesh* mesh, const char* what) {
  const pt::text printed = pt::print(p, mesh);
  pt::mesh read;
  const pt::program again = mesh != nullptr ? pt::parse(printed, read) : pt::parse(printed);
  if (again.error)
    return std::string(what) + " does not parse: " + str(again.error.message) + "\n" + str(printed);
  if (mesh != nullptr && !(pt::print(again, &read) == printed))
    return std::string(what) + " prints otherwise after parsing\n" + str(printed);
  // An axis is split in the parsed mesh only if the text names its parts.
  if ((mesh == nullptr || mesh->rank == read.rank) && !pt::equivalent(again, p))
    return std::string(what) + " parses as another program\n" + str(printed);
  return "";
}

struct statistics {
  std::map<std::string_view, int> ops, sliced;  ///< by name
  long cases = 0, loops = 0, conflicts = 0, refused = 0, nested = 0, inner_loops = 0,
       differentiated = 0, microbatched = 0, several_loops = 0, split = 0, split_by_itself = 0,
       part_loops = 0, padded = 0, contradictions = 0;
  long repeated = 0;         ///< ops that are recomputed
  long relocated = 0;        ///< with cheap ops moved
  long axes_split = 0;       ///< with axes split for conversions of layouts
  long heavy = 0, kept = 0;  ///< with large weights; those of them that are stationary
  long widened = 0, trimmed = 0, masked = 0;
  long schedules = 0, stepped = 0, around = 0, early = 0, wild = 0, wild_sums = 0, real = 0,
       bounded = 0, unbounded = 0, empty = 0, wide = 0, long_ones = 0;
  long looked_up = 0;  ///< tables whose rows are stationary
  long taken = 0;      ///< slices that fetch elements from their devices
  long filled = 0;     ///< values whose padding is filled by the value of a pad
  long written = 0;    ///< programs that were written and read
  long with_dead_code = 0;
  long became = 0;                       ///< slices that became pads
  std::map<std::string, long> refusals;  ///< of schedules, by code
  pt::collectives collectives;
  std::map<std::string_view, int> passes;  ///< by name: the number of changed programs

  void add(const pt::program& p) {
    for (const auto& n : p.ops) {
      ++ops[n.def->name];
      wide += n.operand_count >= 70;
      if (n.marks.transposed > 0) ++differentiated;
    }
    for (const auto& r : p.regions) add(r);
  }
} seen;

/// Checks one case; `problem` is its error, or "".
class check {
 public:
  std::string problem;

  check(const test_case& c, bool count) : c_(c), count_(count) {
    try {
      run();
    } catch (const std::exception& e) {
      problem = std::string("exception: ") + e.what();
    }
  }

 private:
  const test_case& c_;
  const bool count_;
  bool split_by_itself_ = false;  ///< true if propagation split an axis
  std::vector<pt::array> inputs_;
  std::optional<pt::results> expected_;
  std::vector<double> errors_;  ///< of real outputs, due to the order of sums

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }
  bool fail(const std::string& text) {
    if (problem.empty()) problem = text;
    return false;
  }
  bool good(const pt::failure& f, const char* what) {
    return !f || fail(std::string(what) + ": " + str(f.message));
  }
  bool compare(const pt::results& got, const char* what) {
    for (int i = 0; i < expected_->size(); ++i) {
      const double tolerance =
          c_.real ? errors_[at(i)] : c_.info[at(c_.p.outputs[at(i)].value)].tolerance;
      if (got[i].type() != (*expected_)[i].type())
        return fail(std::string(what) + ": another type");
      if (c_.wild && tolerance == 0 && !same_bits(got[i], (*expected_)[i]))
        return fail(std::string(what) + ": output " + std::to_string(i) + " has other bits");
      const double difference = pt::max_difference(got[i], (*expected_)[i]);
      if (!(difference <= tolerance))
        return fail(std::string(what) + ": output " + std::to_string(i) + " differs by " +
                    std::to_string(difference));
    }
    return true;
  }
  bool check_text(const pt::program& p, const pt::mesh* mesh, const char* what) {
    const std::string text = round_trip(p, mesh, what);
    return text.empty() || fail(text);
  }

  void run() {
    if (!good(pt::verify(c_.p), "source")) return;
    inputs_ = arguments(c_);
    expected_.emplace(pt::evaluate(c_.p, inputs_));
    if (c_.real) errors_ = order_errors(c_.p, inputs_);
    const pt::program tidy = pt::ir_detail::tidy(c_.p);
    if (!good(pt::verify(tidy), "tidy") || !compare(pt::evaluate(tidy, inputs_), "tidy") ||
        !check_text(c_.p, nullptr, "source") || !check_text(tidy, nullptr, "tidy") || !check_live())
      return;

    pt::core_program core(c_.p, c_.mesh, some_core_options(c_));
    pt::collective_counter counter(core, {});
    std::vector<std::vector<random_action>> done(c_.tactics.size());
    for (std::size_t t = 0; t < c_.tactics.size(); ++t) {
      if (!act(core, static_cast<int>(t), done[t])) return;
      const pt::lowered l = pt::lower(core);
      if (!check_lowered(core, l)) return;
      counter.update();
      if (!(counter.counts() == before_passes(l)))
        return static_cast<void>(fail("collectives counted by tactic differ"));
      if (t + 1 < c_.tactics.size()) continue;
      if (!check_finished(core, done, l) || !check_passes(core, l) || !check_written(l)) return;
      if (!check_relocated(core, l)) return;
      if (c_.seed % 4 == 0 && !check_replay(core, done, l)) return;
      if (c_.seed % 4 != 0 && !check_microbatches()) return;
      if (!check_remat()) return;
      if (c_.seed % 2 != 0 && !check_schedule()) return;
      if (count_) add_statistics(core, l);
    }
  }

  /// Applies the actions of a tactic one by one, then propagates.
  bool act(pt::core_program& core, int tactic, std::vector<random_action>& done) {
    core.start_tactic(tactic);
    const auto before = core.nests;
    const pt::mesh mesh_before = core.mesh;
    for (const auto& a : c_.tactics[at(tactic)]) {
      if (!a.possible(c_.mesh)) continue;
      const auto nests = core.nests.size(), logged = core.actions.size();
      const int rank = core.mesh.rank;
      const pt::failure f = apply(core, a);
      if (!f) {
        done.push_back(a);
        continue;
      }
      const std::string_view code = f.message.view().substr(0, 4);
      if (code != "S003" && code != "S004" && code != "S005" && code != "S023" && code != "S024")
        return fail(str(f.message));
      if (core.nests.size() != nests || core.actions.size() != logged || core.mesh.rank != rank)
        return fail("a refused action changed the program");
      if (count_) ++seen.refused;
      if (count_ && code == "S024") ++seen.contradictions;
    }
    const int rank = core.mesh.rank;
    core.propagate();
    split_by_itself_ = split_by_itself_ || core.mesh.rank > rank;
    for (std::size_t o = 0; o < before.size(); ++o)
      if (!begins_with(core.nests[o], core.mesh, before[o], mesh_before))
        return fail("a loop of op " + std::to_string(o) + " was removed or changed");
    pt::core_program again = core;
    again.propagate();
    for (std::size_t o = 0; o < again.nests.size(); ++o)
      if (core.nests[o].count != again.nests[o].count)
        return fail("propagation had not come to an end");
    return true;
  }

  /// Returns the collectives of the lowering before passes rewrite them.
  static pt::collectives before_passes(const pt::lowered& l) {
    return l.passes.empty() ? l.counts : l.passes[0].before;
  }
  bool check_lowered(const pt::core_program& core, const pt::lowered& l,
                     const char* what = "emulate", const pt::passes& on = {}) {
    if (!good(l.error, what) || !good(pt::verify(l.device), "device program")) return false;
    const counted counts = count_by_name(l.device.local);
    if (!(counts.total == l.counts) || static_cast<int>(l.notes.size()) != counts.notes)
      return fail("the collectives are miscounted");
    pt::collective_counter counter(core, on);
    counter.update();
    if (!(counter.counts() == before_passes(l)))
      return fail("collectives counted without building differ");
    for (int i = 0; i < c_.p.input_count(); ++i)
      if (l.device.inputs[at(i)].local(core.p.input_type(i).shape, l.device.mesh) !=
              l.device.local.input_type(i).shape ||
          l.device.input_types[at(i)] != core.true_type(core.p.inputs[at(i)]))
        return fail("an input's layout and local type differ");
    for (int i = 0; i < c_.p.output_count(); ++i)
      if (l.device.outputs[at(i)].local(core.p.output_type(i).shape, l.device.mesh) !=
              l.device.local.output_type(i).shape ||
          l.device.output_types[at(i)] != c_.p.output_type(i))
        return fail("an output's layout and local type differ");
    if (c_.mesh.devices() == 1 && counts.notes > 0) return fail("collectives on one device");
    return compare(pt::emulate(l.device, inputs_), what);
  }

  /// Checks the program with cheap ops moved and axes split, which sends less.
  bool check_relocated(const pt::core_program& core, const pt::lowered& plain) {
    const auto sent = [](const pt::lowered& of) {
      return pt::estimate(of.device).collective_bytes;
    };
    pt::core_program moved, split = core;
    if (sent(pt::lower_relocated(split, {})) > sent(plain)) return fail("relocated, it sends more");
    if (split.mesh.rank > core.mesh.rank) {
      if (count_) ++seen.axes_split;
      if (!check_lowered(split, pt::lower(split), "split")) return false;
    }
    if (!pt::relocated(core, {}, moved)) return true;
    if (count_) ++seen.relocated;
    return check_lowered(moved, pt::lower(moved), "relocated");
  }

  /// Checks passes that the case's number draws.
  bool check_passes(const pt::core_program& core, const pt::lowered& plain) {
    data::random r{c_.seed * 1313 + 11};
    pt::passes on;
    for (bool* each : {&on.cancel, &on.to_all_to_all, &on.to_reduce_scatter}) *each = !r.one_in(4);
    on.place = r.one_in(2);
    on.share_gathers = some_shared_uses(r);
    if (r.one_in(2)) on.combine_below = r.in(1, 400);
    on.stationary_above = draw_stationary(c_, r);
    std::int64_t limit = 0;
    if (r.one_in(3)) {
      pt::passes before = on;
      before.share_gathers = false;
      const pt::lowered unshared = pt::lower(core, {.passes = before});
      const std::int64_t needed = pt::live_bytes(unshared.device.local).peak();
      limit = on.memory_bound = needed + r.in(0, 300);
      if (needed > 1) {
        before.memory_bound = 1;
        const pt::lowered refused = pt::lower(core, {.passes = before});
        if (refused.error.message.view().substr(0, 4) != "C003") return fail("too low a bound");
      }
      if (r.one_in(4)) {
        on.memory_bound = pt::passes::own_peak;
        limit = needed;
      }
    }
    const pt::lowered l = pt::lower(core, {.passes = on});
    pt::passes apart = on;
    apart.combine_below = 0;
    apart.memory_bound = 0;
    apart.share_gathers = apart.place = false;
    const pt::lowered single = pt::lower(core, {.passes = apart});
    apart.combine_below = on.combine_below;
    const pt::lowered combined = pt::lower(core, {.passes = apart});
    if (!(single.counts == combined.counts)) return fail("combined collectives count otherwise");
    // Live bytes count the results of combined all_reduces beside their operands.
    const std::int64_t before = pt::live_bytes(single.device.local).peak();
    if (pt::live_bytes(combined.device.local).peak() > before + before / 100 + on.combine_below)
      return fail("combining takes more memory");
    if (!check_lowered(core, l, "passes", on) ||
        !check_text(l.device.local, &l.device.mesh, "passes"))
      return false;
    const std::int64_t peak = pt::live_bytes(l.device.local).peak();
    if (limit > 0 && peak > limit) return fail("memory above the bound");
    pt::collectives counts = before_passes(l);
    for (const auto& each : l.passes) {
      if (!(each.before == counts)) return fail("a pass starts with other collectives");
      if (each.name == "place" && each.peak_after > each.peak_before)
        return fail("placement takes more memory");
      if (each.name == "share_gathers" && on.shared() != pt::shared_uses::all &&
          each.peak_after > each.peak_before)
        return fail("sharing of neighbours takes more memory");
      const bool keeps = each.name == "place" || each.changed == 0;
      const bool adds = each.name == "stationary" && each.changed > 0;
      if (keeps ? !(each.after == counts) : !adds && each.after.total() > counts.total())
        return fail("a pass reports what it did not do");
      counts = each.after;
    }
    if (!(counts == l.counts)) return fail("the passes end with other collectives");
    if (!count_) return true;
    for (const auto& each : l.passes) {
      seen.passes[each.name] += each.changed > 0;
      seen.kept += c_.heavy && each.name == "stationary" && each.changed > 0;
    }
    seen.passes["cancel"] += plain.fused.cancelled > 0;
    seen.passes["to_all_to_all"] += plain.fused.all_to_alls > 0;
    seen.passes["to_reduce_scatter"] += plain.fused.reduce_scatters > 0;
    return true;
  }

  /// Counts programs, not outputs: the result of one sort of inexact values is in all values that
  /// follow from it.
  void count_bounds() const {
    bool rounds = false, bounded = true;
    for (int i = 0; i < c_.p.output_count(); ++i) {
      rounds = rounds || errors_[at(i)] > 0;
      bounded = bounded && errors_[at(i)] <= 1e-9 * (1 + largest((*expected_)[i]));
    }
    seen.bounded += rounds && bounded;
    seen.unbounded += !bounded;
  }
  /// Checks the program after the last tactic.
  bool check_finished(const pt::core_program& core,
                      const std::vector<std::vector<random_action>>& done, const pt::lowered& l) {
    pt::named_axes axes = core.named;
    for (const auto& list : done)
      for (const auto& a : list)
        if (a.atomic ? core.is_tiled(a.value, a.number(axes))
                     : core.dim_of(a.value, a.number(axes)) != a.dim)
          return fail("an action was undone");
    const pt::lowered mechanical = pt::lower(core, {.fuse = false});
    return compare(pt::temporal(core, inputs_), "temporal") &&
           good(pt::verify(mechanical.device), "mechanical lowering") &&
           compare(pt::emulate(mechanical.device, inputs_), "mechanical lowering") &&
           check_text(l.device.local, &l.device.mesh, "device program") &&
           check_text(mechanical.device.local, &mechanical.device.mesh, "mechanical lowering");
  }

  /// Writes the source and the program of one device as StableHLO and reads them again; both must
  /// compute the same.
  bool check_written(const pt::lowered& l) {
    const pt::text source = pt::write_stablehlo(c_.p);
    const pt::program again = pt::read_stablehlo(source);
    if (again.error)
      return fail("the written source is not read: " + str(again.error.message) + "\n" +
                  str(source));
    const pt::device_program& d = l.device;
    const pt::text text = pt::write_stablehlo(d);
    if (text.view().starts_with("error")) return fail("the program is not written: " + str(text));
    pt::device_program back = pt::read_local_stablehlo(text, d.mesh.whole());
    if (back.local.error)
      return fail("the written program is not read: " + str(back.local.error.message) + "\n" +
                  str(text));
    back.input_types = d.input_types;  // (for padded inputs the text has the blocks)
    back.output_types = d.output_types;
    if (count_) ++seen.written;
    return compare(pt::evaluate(again, inputs_), "the source, written and read") &&
           compare(pt::emulate(back, inputs_), "the program, written and read");
  }

  /// Without dead code the program computes the same, and no remaining op is dead.
  bool check_live() {
    const pt::live_program live = pt::without_dead_code(c_.p);
    const std::vector<int> needed = needed_ops(c_.p);
    const int dead = static_cast<int>(std::count(needed.begin(), needed.end(), 0));
    if (live.removed != dead)
      return fail("removed " + std::to_string(live.removed) + " ops; " + std::to_string(dead) +
                  " are dead\n" + str(pt::print(live.p)));
    if (!live.changed) return true;
    if (count_) ++seen.with_dead_code;
    pt::program numbered = c_.p;
    pt::number_ops(numbered);
    return good(pt::verify(live.p), "live") && compare(pt::evaluate(live.p, inputs_), "live") &&
           (!pt::without_dead_code(live.p).changed || fail("dead code is left"));
  }

  /// Checks that the log replays, and that a user's tactic with the same actions gives the same
  /// program.
  bool check_replay(const pt::core_program& core,
                    const std::vector<std::vector<random_action>>& done, const pt::lowered& l) {
    const auto loops = pt::print_core(core);
    pt::core_program again(c_.p, c_.mesh, some_core_options(c_));
    if (!good(pt::replay(again, c_.p, pt::print_actions(core, c_.p).view()), "replay"))
      return false;
    if (!(pt::print_core(again) == loops)) return fail("replay gives other loops");
    if (done.size() == 1 && !pt::without_dead_code(c_.p).changed) {
      const auto p =
          pt::partition(c_.p, c_.mesh, pt::schedule(listed_tactic{&done[0]}),
                        {.passes = {.relocate = false, .stationary_rows = core.keeps_rows()}});
      if (!(pt::print_core(p.core) == loops)) return fail("partition gives other loops");
      if (!(pt::print(p.device) == pt::print(l.device)))
        return fail("partition gives another program");
    }
    return compare(pt::emulate(l.device, pt::run_options{.threads = 2}, inputs_), "two threads") &&
           compare(pt::emulate(l.device, pt::run_options{.threads = 2, .fuse = false}, inputs_),
                   "two threads, op by op");
  }

  /// Checks microbatches over a dimension of an input, alone and sharded.
  bool check_microbatches() {
    if (c_.p.input_count() == 0) return true;  // while a case is reduced
    data::random r{c_.seed * 31 + 7};
    const int input = static_cast<int>(r.in(0, c_.p.input_count() - 1));
    const pt::shape& s = c_.p.input_type(input).shape;
    if (s.rank == 0) return true;
    const int dim = static_cast<int>(r.in(0, s.rank - 1));
    const std::int64_t steps = r.in(1, 4);
    pt::rewriting work;
    work.p = c_.p;
    const auto tactic = pt::microbatch(steps, {{c_.p.input_name(input), dim}});
    tactic.rewrite(work);
    if (work.error) {
      const std::string_view code = work.error.message.view().substr(0, 4);
      return code == "S003" || code == "S012" || code == "S013" || code == "S100" ||
             fail(str(work.error.message));
    }
    if (count_ && steps > 1) ++seen.microbatched;
    if (count_ && !work.notes.empty()) ++seen.several_loops;
    if (!good(pt::verify(work.p), "microbatches") || !check_text(work.p, nullptr, "microbatches") ||
        !compare(pt::evaluate(work.p, inputs_), "microbatches"))
      return false;
    pt::core_program core(work.p, c_.mesh, some_core_options(c_));
    for (value_id v : core.p.inputs) {
      const int rank = core.p.type(v).shape.rank;
      if (rank > 0 && c_.mesh.rank > 0)
        (void)core.tile(v, static_cast<int>(r.in(0, rank - 1)),
                        static_cast<int>(r.in(0, c_.mesh.rank - 1)),
                        r.one_in(2) ? pt::uneven::pad : pt::uneven::unsaid);
    }
    core.propagate();
    const pt::lowered l = pt::lower(core);
    return check_lowered(core, l) && compare(pt::temporal(core, inputs_), "temporal microbatches");
  }

  /// Recomputes scopes of random ops for all other ops that need their results.
  void repeat_any(pt::rewriting& work, data::random& r) {
    const pt::program& p = work.p;
    pt::repeat_plan plan;
    plan.scopes = 3;
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      const bool fixed = p.is(o, pt::op_role::parameter) || p.is(o, pt::op_role::tag);
      bool derived = !fixed && r.one_in(4);
      for (value_id v : p.operands(o)) derived = derived || plan.derived[p.producer(v)] != 0;
      plan.derived.push_back(derived);
      plan.scope.push_back(fixed || derived ? -1 : static_cast<int>(r.in(-1, 2)));
      plan.named.push_back(r.one_in(3));
    }
    auto made = pt::repeat_scopes(p, plan);
    for (int n : made.copies) work.remat.ops += n;
    work.p = std::move(made.p);
    pt::core_detail::name_copies(work.p);
  }
  /// Checks remat of some names, alone and sharded: the program is proved to compute the same.
  bool check_remat() {
    data::random r{c_.seed * 53 + 11};
    pt::vec<pt::text> names;
    for (int i = 0; i < c_.p.input_count(); ++i)
      if (r.one_in(2)) names.push_back(c_.p.input_name(i));
    pt::ir_detail::for_each_tag(c_.p, [&](const pt::program& in, const pt::op_node& n) {
      if (r.one_in(2)) names.push_back(in.view(n.name));
    });
    pt::rewriting work;
    work.p = c_.p;
    for (const auto& name : names) {
      pt::rewriting next = work;
      pt::remat({name.view()}).rewrite(next);
      if (!next.error) {
        work = next;
      } else if (next.error.message.view().substr(0, 4) != "S015") {
        return fail(str(next.error.message));
      }
    }
    if (c_.seed % 2 == 0) repeat_any(work, r);
    if (work.remat.ops == 0) return true;
    if (count_) seen.repeated += work.remat.ops;
    if (!good(pt::verify(work.p), "remat") || !check_text(work.p, nullptr, "remat") ||
        !compare(pt::evaluate(work.p, inputs_), "remat"))
      return false;
    pt::core_program core(work.p, c_.mesh, some_core_options(c_));
    for (value_id v : core.p.inputs) {
      const int rank = core.p.type(v).shape.rank;
      if (rank > 0 && c_.mesh.rank > 0)
        (void)core.tile(v, static_cast<int>(r.in(0, rank - 1)),
                        static_cast<int>(r.in(0, c_.mesh.rank - 1)),
                        r.one_in(2) ? pt::uneven::pad : pt::uneven::unsaid);
    }
    core.propagate();
    return check_lowered(core, pt::lower(core)) &&
           compare(pt::temporal(core, inputs_), "temporal remat");
  }

  /// Checks a schedule of tactics by name, and all reports about its result.
  bool check_schedule() {
    if (c_.mesh.rank == 0) return true;
    data::random r{c_.seed * 171 + 3};
    const auto schedule = draw_schedule(c_, r);
    const pt::partition_options options{
        .passes = some_passes(c_, r), .overlap = some_overlap(r), .verify = true};
    std::optional<pt::partitioned> made;
    try {
      made.emplace(pt::partition(c_.p, c_.mesh, schedule, options));
    } catch (const pt::error& e) {  // the tactics may be impossible
      const std::string code = std::string(e.what()).substr(0, 4);
      if (count_) ++seen.refusals[code];
      for (const char* mistake :
           {"S002", "S003", "S004", "S005", "S012", "S013", "S014", "S024", "S100"})
        if (code == mistake) return true;
      return fail(std::string("schedule: ") + e.what());
    }
    const pt::partitioned& q = *made;
    if (count_) {
      ++seen.schedules;
      for (const auto& t : schedule) seen.stepped += t.steps > 1;
    }
    if (!compare(pt::emulate(q, inputs_), "schedule") ||
        !compare(pt::temporal(q, inputs_), "temporal schedule") ||
        !check_text(q.device.local, &q.device.mesh, "schedule's device program"))
      return false;
    const pt::cost again = pt::estimate(q.device);
    if (again.peak_bytes != q.cost.peak_bytes || again.flops != q.cost.flops ||
        again.collective_bytes != q.cost.collective_bytes)
      return fail("the cost is another one");
    if (!check_overlap(q) || !check_peak(q) || !check_simulation(q) || !check_memory_course(q))
      return false;
    if (c_.seed % 16 == 1 && !check_page(q)) return false;
    const auto s = pt::summarize(q);
    if (!(s.collectives == q.collectives) || s.peak_bytes != q.cost.peak_bytes ||
        s.tactic_count != static_cast<int>(schedule.size()) ||
        s.input_count != q.source.input_count() || s.output_count != q.source.output_count())
      return fail("summarize has other figures");
    for (int i = 0; i < s.input_count; ++i)
      if (s.input(i).local_shape != q.device.local.input_type(i).shape)
        return fail("summarize has another shape of an input");
    return check_explained(q) && check_difference(q) && check_log(q);
  }
  /// Checks that overlapping collectives with kernels costs neither time nor more memory than
  /// available.
  bool check_overlap(const pt::partitioned& q) {
    if (!q.overlap.any()) return true;
    const pt::lowered plain = pt::lower(q.core, {.passes = q.passes});
    const auto peak = pt::live_bytes(plain.device.local).peak();
    if (count_) {
      for (const auto& note : q.notes)
        seen.around += note.reason == pt::collective_reason::goes_around;
      seen.early += str(pt::print(q.device)).find(" = done(") != std::string::npos;
    }
    if (q.cost.peak_bytes > std::max(peak, q.overlap.options.memory))
      return fail("overlap takes " + std::to_string(q.cost.peak_bytes) + " bytes instead of " +
                  std::to_string(peak) + ", " + std::to_string(q.overlap.options.memory) +
                  " are there");
    if (pt::simulate(q.device, q.overlap.options.on).time >
        pt::simulate(plain.device, q.overlap.options.on).time)
      return fail("overlap takes longer");
    return q.notes.size() == collectives_in(q.device.local) || fail("overlap has other notes");
  }
  /// The number of results of collectives.
  static std::size_t collectives_in(const pt::program& p) {
    std::size_t count = 0;
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).def->collective && p.collective_of(o).communicates())
        count += static_cast<std::size_t>(p.op(o).result_count);
      for (const auto& each : p.regions_of(o)) count += collectives_in(each);
    }
    return count;
  }
  /// Checks that the values in memory while an op runs add up to the live bytes.
  bool check_memory_course(const pt::partitioned& q) {
    const pt::memory_course course(q.device);
    const pt::live_bytes live(q.device.local);
    for (pt::op_id o = 0; o < course.ops(); ++o)
      if (course.all(o) != live.arguments + live.during[o])
        return fail("memory while op " + std::to_string(o) + " runs is not what is live");
    return true;
  }
  /// Checks that pictures are well-formed XML, in a page and in files.
  bool check_page(const pt::partitioned& q) {
    const pt::text page = pt::html_page(q, pt::a100_80);
    const std::string_view all = page;
    std::size_t pictures = 0;
    for (std::size_t at = 0; (at = all.find("<svg ", at)) != all.npos; ++at, ++pictures) {
      const std::size_t end = all.find("</svg>", at);
      const std::string fault =
          end == all.npos ? "cut off" : xml_checker(all.substr(at, end + 6 - at)).run();
      if (!fault.empty()) return fail("picture of a page: " + fault);
    }
    if (pictures < 3) return fail("a page without pictures");
    for (int i = 0; i < q.source.input_count() && i < 4; ++i) {
      const std::string fault = xml_checker(pt::sharding_svg(q.input(i), q.mesh()).view()).run();
      if (!fault.empty()) return fail("picture of a sharding: " + fault);
    }
    return true;
  }
  /// Checks that the values at the peak add up to it.
  bool check_peak(const pt::partitioned& q) {
    const pt::memory_peak peak = pt::peak_of(q.device);
    std::int64_t sum = peak.nested;
    for (auto each : peak.of) sum += each;
    return (sum == peak.bytes && peak.bytes == q.cost.peak_bytes) ||
           fail("the peak of " + std::to_string(peak.bytes) + " bytes consists of " +
                std::to_string(sum) + "\n" + str(pt::print(q.device)));
  }
  /// Checks that overlapped collectives take at most the sum, and at least each, of the two times.
  /// (The order of the program already contains the overlap that the program permits.)
  bool check_simulation(const pt::partitioned& q) {
    const auto serial = pt::simulate(q.device, pt::tpu_v3),
               beside = pt::simulate(q.device, pt::tpu_v3, {.overlap = true});
    const double longer =
        serial.compute > serial.communication ? serial.compute : serial.communication;
    const double slack = 1e-9 * serial.time;
    if (serial.error || beside.error) return fail("it cannot be simulated");
    const bool flat = q.device.local.regions.empty();
    const double both = serial.compute + serial.communication;
    if (q.overlap.any())
      return !flat || (serial.time <= both + slack && serial.time >= longer - slack) ||
             fail("time beside does not fit: " + std::to_string(serial.time) + " of " +
                  std::to_string(both));
    return (beside.time <= serial.time + slack && (!flat || beside.time >= longer - slack) &&
            (!flat || std::abs(serial.time - both) <= slack)) ||
           fail("times do not fit: " + std::to_string(serial.time) + " " +
                std::to_string(beside.time));
  }
  /// Checks that the sums of `explain` equal the figures.
  bool check_explained(const pt::partitioned& q) {
    const std::string text = str(pt::explain(q));
    const auto total = text.rfind("\n  all ");
    if (total == std::string::npos)
      return q.collectives.total() == 0 || fail("explain has no sum\n" + text);
    const long long times = std::atoll(text.c_str() + text.find('x', total) + 1);
    const auto unit = text.find(" bytes", total), number = text.rfind(' ', unit - 1);
    const long long bytes = std::atoll(text.c_str() + number);
    return (times == q.collectives.total() && bytes == q.cost.collective_bytes) ||
           fail("explain has other sums than " + std::to_string(q.collectives.total()) + " and " +
                std::to_string(q.cost.collective_bytes) + "\n" + text);
  }
  /// Checks that a partitioning does not differ from itself, but from one with another number of
  /// collectives.
  bool check_difference(const pt::partitioned& q) {
    const pt::partitioned none =
        pt::partition(c_.p, c_.mesh, std::vector<random_tactic>{}, {.verify = true});
    const std::string same = str(pt::diff(q, q)), other = str(pt::diff(none, q));
    if (same.find("->") != std::string::npos) return fail("differs from itself\n" + same);
    const bool gathers = other.find("all_gather: 0 -> ") != std::string::npos;
    return gathers == (q.collectives.all_gather > 0) || fail("diff of all_gathers\n" + other);
  }
  bool check_log(const pt::partitioned& q) {
    pt::core_program again(q.sharded(), c_.mesh, q.passes.core());
    const pt::text log = pt::print_actions(q.core, q.sharded());
    return good(pt::replay(again, q.sharded(), log.view()), "replay of a schedule") &&
           (pt::print_core(again) == pt::print_core(q.core) ||
            fail("replay of a schedule gives other loops"));
  }

  static double largest(const pt::array& a) {
    return pt::max_difference(a, data::fill(a.type(), [](std::int64_t) { return 0; }));
  }
  void add_statistics(const pt::core_program& core, const pt::lowered& l) const {
    for (pt::op_id o = 0; o < core.p.op_count(); ++o) {
      const int n = core.nest_of(o).count;
      seen.loops += n;
      seen.nested += n > 1;
      for (const auto& loop : core.nest_of(o))
        seen.part_loops += core.mesh.part(loop.axis).size != core.mesh.whole_size(loop.axis);
      for (const auto& loop : core.nest_of(o))
        if (loop.factor != pt::any_factor && core.mesh.size(loop.axis) > 1)
          ++seen.sliced[core.p.op(o).def->name];
      if (core.nested.scope[at(o)] > 0) seen.inner_loops += n;
    }
    seen.split += core.mesh.rank > c_.mesh.rank;
    seen.split_by_itself += split_by_itself_;
    using kind = pt::padding_record::kind;
    seen.padded += !core.padding.enlargements.empty();
    for (pt::op_id o = 0; o < core.p.op_count(); ++o) {
      seen.widened += core.inserted(o) == kind::widen;
      seen.trimmed += core.inserted(o) == kind::trim;
      seen.masked += core.inserted(o) == kind::mask;
      seen.filled += core.inserted(o) == kind::mask && core.padding_of(o).dim < 0;
      seen.became += &core.was(o) != core.p.op(o).def;
    }
    for (const auto& note : l.notes) {
      seen.taken += note.reason == pt::collective_reason::owner_slice;
      seen.looked_up += note.reason == pt::collective_reason::stationary_rows;
    }
    seen.conflicts += static_cast<long>(core.conflicts.size());
    seen.add(c_.p);
    seen.wild += c_.wild;
    seen.real += c_.real;
    seen.heavy += c_.heavy;
    if (c_.real) count_bounds();
    for (const auto& n : c_.p.ops)
      seen.wild_sums += c_.wild && n.def == &pt::def<pt::op::dot_general> &&
                        pt::is_floating(c_.p.type(n.result).element);
    for (const auto& t : c_.p.types)
      if (t.shape.elements() == 0) {
        ++seen.empty;
        break;
      }
    seen.long_ones += c_.p.op_count() > 1000;
    seen.collectives.all_gather += l.counts.all_gather;
    seen.collectives.all_reduce += l.counts.all_reduce;
    seen.collectives.reduce_scatter += l.counts.reduce_scatter;
    seen.collectives.all_to_all += l.counts.all_to_all;
    seen.collectives.permute += l.counts.permute;
  }
};

std::string wrong(const test_case& c, bool count = false) { return check(c, count).problem; }

void check_seed(std::uint64_t seed, int& failures) {
  const test_case c = generator(seed).make();
  const std::string problem = wrong(c, true);
  ++seen.cases;
  if (problem.empty()) return;
  ++failures;
  const std::string_view kind = std::string_view(problem).substr(0, problem.find(' '));
  const test_case small = shrink(c, [&](const test_case& t) {
    const std::string again = wrong(t);
    return std::string_view(again).substr(0, again.find(' ')) == kind;
  });
  FAIL_CHECK("PARTITA_RANDOM_SEED=", seed, "\n", problem, "\nreduced: ", wrong(small), "\n",
             describe(small), "loops:\n", [&] {
               pt::core_program core(small.p, small.mesh, some_core_options(small));
               for (const auto& t : small.tactics) {
                 for (const auto& a : t)
                   if (a.possible(small.mesh)) (void)apply(core, a);
                 core.propagate();
               }
               return str(pt::print_core(core, false)) + "device program:\n" +
                      str(pt::print(pt::lower(core).device));
             }());
}

}  // namespace

TEST_CASE("random programs: partitioned equals source") {
  int failures = 0;
  if (const auto seed = number_from("PARTITA_RANDOM_SEED")) {
    const test_case c = generator(static_cast<std::uint64_t>(*seed)).make();
    std::cout << describe(c);
    check_seed(static_cast<std::uint64_t>(*seed), failures);
    return;
  }
  const long cases = number_from("PARTITA_RANDOM_CASES", default_cases);
  const long first = number_from("PARTITA_RANDOM_FIRST", first_of(default_cases));
  for (long s = first; s < first + cases && failures < 5; ++s)
    check_seed(static_cast<std::uint64_t>(s), failures);
  CHECK(failures == 0);
  std::cout << seen.cases << " cases, " << seen.loops << " loops (" << seen.nested
            << " ops with nests, " << seen.inner_loops << " in nested programs), "
            << seen.differentiated << " ops of derivatives, " << seen.repeated
            << " ops computed again, " << seen.microbatched << " in microbatches ("
            << seen.several_loops << " with notes), " << seen.split << " with split axes ("
            << seen.split_by_itself << " by propagation, " << seen.part_loops
            << " loops over parts), " << seen.conflicts << " conflicts, " << seen.refused
            << " actions refused, " << seen.contradictions << " for another tactic; " << seen.padded
            << " programs padded (" << seen.widened << " values widened, " << seen.trimmed
            << " trimmed, " << seen.masked << " masked, " << seen.filled
            << " filled with other values, " << seen.became << " slices as pads); " << seen.taken
            << " slices that take elements of few pieces, " << seen.looked_up
            << " tables that stay where indices come to, " << seen.schedules
            << " schedules by name (" << seen.stepped << " in microbatches, " << seen.early
            << " with collectives beside kernels, " << seen.around << " messages around rings), "
            << seen.wild << " with floats of any value (" << seen.wild_sums
            << " products of them), " << seen.real << " of real values (" << seen.bounded
            << " with a small bound, " << seen.unbounded << " without), " << seen.empty
            << " with values without elements, " << seen.wide << " ops of many operands, "
            << seen.long_ones << " programs of thousands of ops, " << seen.relocated
            << " with cheap ops moved, " << seen.axes_split << " with axes split for conversions, "
            << seen.heavy << " with large weights (" << seen.kept
            << " of which keep some where they are); " << str(pt::concat(seen.collectives)) << '\n';
  std::cout << "passes that changed something:";
  for (const auto& [name, count] : seen.passes) std::cout << ' ' << name << ' ' << count;
  std::cout << "\nschedules refused:";
  for (const auto& [code, count] : seen.refusals) std::cout << ' ' << code << ' ' << count;
  std::cout << '\n';
  if (cases < 1000 || failures > 0) return;
  // The generator covers everything.
  CHECK(seen.collectives.all_gather > 0);
  CHECK(seen.collectives.all_reduce > 0);
  CHECK(seen.collectives.reduce_scatter > 0);
  CHECK(seen.collectives.all_to_all > 0);
  CHECK(seen.collectives.permute > 0);
  for (const char* name : {"cancel", "to_all_to_all", "to_reduce_scatter", "combine", "place",
                           "share_gathers", "stationary"})
    CHECK_MESSAGE(seen.passes[name] > 0, name);
  CHECK(seen.conflicts > 0);
  CHECK(seen.nested > 0);
  CHECK(seen.inner_loops > 0);
  CHECK(seen.differentiated > 0);
  CHECK(seen.repeated > 0);
  CHECK(seen.microbatched > 0);
  CHECK(seen.several_loops > 0);
  CHECK(seen.split_by_itself > 0);
  CHECK(seen.split > seen.split_by_itself);
  CHECK(seen.widened > 0);
  CHECK(seen.trimmed > 0);
  CHECK(seen.masked > 0);
  CHECK(seen.filled > 0);
  CHECK(seen.became > 0);
  CHECK(seen.written > 0);
  CHECK(seen.taken > 0);
  CHECK(seen.looked_up > 0);
  CHECK(seen.with_dead_code > 0);
  CHECK(seen.contradictions > 0);
  long refusals = 0;
  for (const auto& [code, count] : seen.refusals) refusals += count;
  CHECK(refusals > 0);
  CHECK(seen.schedules > 2 * refusals);
  CHECK(seen.stepped > 0);
  CHECK(seen.around > 0);
  CHECK(seen.early > 0);
  CHECK(seen.wild > 0);
  CHECK(seen.wild_sums > 0);
  CHECK(seen.bounded > 0);
  CHECK(seen.real > 10 * seen.unbounded);
  CHECK(seen.empty > 0);
  CHECK(seen.wide > 0);
  CHECK(3 * seen.kept > seen.heavy);
  CHECK(seen.relocated > 0);
  CHECK(seen.axes_split > 0);
  std::string missing, whole;
  for (const pt::op_def* d : pt::registry) {
    const bool drawn = d->role != pt::op_role::tiling;  // actions make these
    if (drawn && seen.ops[d->name] == 0) missing += " " + std::string(d->name);
    // Ops with nested programs have wires instead; the elements of literals are in the text.
    const bool sliced = d->role != pt::op_role::control && d != &def<pt::op::literal>;
    if (sliced && seen.sliced[d->name] == 0) whole += " " + std::string(d->name);
  }
  CHECK_MESSAGE(missing.empty(), "never drawn:", missing);
  CHECK_MESSAGE(whole.empty(), "never sliced:", whole);
}
