// Random pipelines: layers in random stages on random meshes, under every order, compute the
// results of the step.
//
// Drawn: layers of products, sums, maxima, products by elements; values that skip stages, weights
// that several stages share, inputs that later stages use, losses that need two stages, several
// outputs (per example, summed), values that are not differentiated; derivatives or none; a norm
// over all gradients; numbers of stages, meshes and microbatches; orders, capacities of channels.
// Not drawn: programs whose stages depend on each other in a circle, nested programs.
//
// With stages sharded inside: meshes of random axes, in any order, of sizes 1 to 4; tactics for
// random inputs and outputs, some padded.
//
// Also with random tables of orders and stages on any meshes: tables that follow the data flow run,
// or report that they need more capacity; other tables may contradict the data flow, and the error
// reports it. Then with random merged units: they compute the same bits, or the error reports calls
// that would wait for themselves.
//
// All of them are proved. No mutant of a pipeline with sharded stages that computes something else
// is proved.
#include <doctest/doctest.h>

#include <algorithm>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/report/pipeline_diff.hpp>
#include <partita/report/pipeline_explain.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"
#include "../exported_check.hpp"
#include "../random_table.hpp"
#include "../thread_processes.hpp"
#include "merging.hpp"
#include "seeds.hpp"

namespace pt = partita;
using random_test::for_each_seed;
using random_test::merging_laws;

namespace {

random_test::merging_statistics merging_seen;

struct pipeline_statistics {
  long cases = 0, derived = 0, shared = 0, skipping = 0, split = 0, rounds = 0, transfers = 0,
       normed = 0, deadlocks = 0, stacked = 0;
} pipelines_seen;

/// Whole numbers in binary64: sums are exact in every order.
class pipeline_case {
 public:
  pt::program p;
  std::vector<pt::text> names;  ///< of parts
  int stages, meshes, microbatches, batch;
  bool derived;

  explicit pipeline_case(std::uint64_t seed, bool sharded = false) : r_{seed * 77 + 5} {
    meshes = static_cast<int>(r_.in(1, 4));
    stages = meshes * static_cast<int>(r_.one_in(3) ? r_.in(1, 3) : 1);
    microbatches = static_cast<int>(r_.in(1, 6));
    batch = microbatches * static_cast<int>(r_.in(1, sharded ? 6 : 2));
    if (sharded) width = static_cast<int>(r_.in(2, 6));
    derived = !r_.one_in(4);
    build();
  }
  data::random& random() { return r_; }
  /// Returns the stage of the layer with this number.
  int stage_of(int part) const { return of_stage_[static_cast<std::size_t>(part)]; }

 private:
  data::random r_;
  pt::builder b_;
  std::vector<int> of_stage_;
  std::vector<pt::value_id> weights_, made_;
  int width = 3;
  static constexpr std::int64_t both[] = {0, 1};

  pt::tensor_type rows() const { return {pt::dtype::f64, {batch, width}}; }
  pt::value_id weight() {
    if (!weights_.empty() && r_.one_in(4)) {
      ++pipelines_seen.shared;
      return r_.pick(weights_);
    }
    const pt::text name = pt::concat("w", static_cast<int>(weights_.size()));
    weights_.push_back(pt::ops::parameter(b_, name.view(), {pt::dtype::f64, {width, width}}));
    return weights_.back();
  }
  pt::value_id product(pt::value_id x) {
    static constexpr std::int64_t rows[] = {0}, columns[] = {1};
    return pt::ops::dot_general(b_, x, weight(), {{}, {}, columns, rows});
  }
  pt::value_id step(pt::value_id x, pt::value_id other) {
    switch (r_.in(0, 4)) {
      case 0:
        return pt::ops::add(b_, x, other);
      case 1:
        return pt::ops::maximum(b_, x, other);
      case 2:
        return pt::ops::subtract(b_, x, other);
      default:
        return product(x);
    }
  }
  pt::value_id layer(pt::value_id x, pt::value_id side) {
    const auto count = r_.in(1, 3);
    for (std::int64_t i = 0; i < count; ++i) {
      const bool skips = r_.one_in(5);
      pipelines_seen.skipping += skips;
      x = step(x, skips ? r_.pick(made_) : r_.one_in(4) ? side : x);
    }
    return x;
  }
  void build() {
    const pt::value_id x = pt::ops::parameter(b_, "x", rows()),
                       side = pt::ops::parameter(b_, "side", rows());
    made_.push_back(x);
    pt::value_id h = x;
    for (int s = 0; s < stages; ++s)
      for (auto layers = r_.in(1, 2); layers > 0; --layers) {
        names.push_back(pt::concat("layers.", static_cast<int>(names.size())));
        of_stage_.push_back(s);
        b_.enter_scope(names.back().view());
        h = layer(h, side);
        h = product(h);
        b_.leave_scope();
        made_.push_back(h);
      }
    pt::value_id last = h;
    if (r_.one_in(3)) last = pt::ops::add(b_, h, r_.pick(made_));
    const pt::value_id square = pt::ops::multiply(b_, last, side),
                       loss = pt::ops::reduce(b_, square, pt::combiner::add, both);
    output(loss, "loss");
    if (r_.one_in(3)) {
      ++pipelines_seen.stacked;
      output(r_.one_in(2) ? last : r_.pick(made_), "rows");
    }
    if (derived) derive(loss);
    p = std::move(b_.p);
  }
  void derive(pt::value_id loss) {
    ++pipelines_seen.derived;
    const pt::vec<pt::value_id> wanted(weights_.data(), weights_.data() + weights_.size());
    const pt::vec<pt::value_id> g = pt::dsl_detail::reverse(b_, loss, wanted);
    pt::value_id norm = -1;
    if (r_.one_in(2)) {
      ++pipelines_seen.normed;
      for (const auto each : g) {
        const auto sum = pt::ops::reduce(b_, each, pt::combiner::add, both);
        norm = norm < 0 ? sum : pt::ops::add(b_, norm, sum);
      }
    }
    for (std::size_t i = 0; i < weights_.size(); ++i) {
      pt::value_id next = pt::ops::subtract(b_, weights_[i], g[i]);
      if (norm >= 0)
        next = pt::ops::add(b_, next, pt::ops::broadcast_in_dim(b_, norm, {width, width}, {}));
      output(next, b_.p.name(weights_[i]));
    }
  }
  void output(pt::value_id v, std::string_view name) {
    const std::string kept(name);
    b_.p.outputs.push_back({v, b_.p.intern(kept)});
  }
};

std::string pipeline_problem(std::uint64_t seed) {
  pipeline_case c(seed);
  if (c.p.error) return data::str(c.p.error.message);
  data::random& r = c.random();
  static const pt::pipeline_order* const orders[] = {
      &pt::gpipe, &pt::gpipe_reversed, &pt::gpipe_1f1b_last, &pt::one_f_one_b,      &pt::zb_h1,
      &pt::zb_h2, &pt::circular,       &pt::circular_phases, &pt::interleaved_1f1b, &pt::zb_v};
  const pt::pipeline_order* order = nullptr;
  for (pt::failure unfit; order == nullptr || unfit;) {
    order = r.pick(orders);
    unfit = {};
    order->fits({c.meshes, c.stages, c.microbatches}, unfit);
  }
  ++pipelines_seen.cases;
  pipelines_seen.rounds += c.stages > c.meshes;
  static constexpr std::string_view names[] = {"m0", "m1", "m2", "m3"};
  pt::topology t;
  for (int m = 0; m < c.meshes; ++m) t.push_back({names[m], {{"B", r.in(1, 3)}}});
  pt::pipeline_options options{.microbatches = c.microbatches,
                               .batch = {{"x", 0}, {"side", 0}},
                               .split = r.one_in(3),
                               .channels = {.capacity = static_cast<int>(r.in(1, 3))}};
  options.where.infer_transfers = true;
  int mesh_of_rank[] = {0, 1, 2, 3};
  for (int m = c.meshes - 1; m > 0; --m) std::swap(mesh_of_rank[m], mesh_of_rank[r.in(0, m)]);
  for (int i = 0; i < static_cast<int>(c.names.size()); ++i) {
    const int stage = c.stage_of(i);
    options.where.names.push_back(
        {c.names[static_cast<std::size_t>(i)].view(),
         names[mesh_of_rank[order->mesh_of(stage, {c.meshes, c.stages, c.microbatches})]], stage});
  }
  pipelines_seen.split += options.split || order->splits;
  const std::string what = std::string(order->name) + ", " + std::to_string(c.stages) +
                           " stages, " + std::to_string(c.meshes) + " meshes, " +
                           std::to_string(c.microbatches) + " microbatches: ";
  pt::pipelined built;
  try {
    built = pt::pipeline(c.p, t, *order, options);
  } catch (const pt::error& e) {
    if (e.code() != "O007") return what + e.what() + "\n" + data::str(pt::print(c.p));
    ++pipelines_seen.deadlocks;
    options.channels.capacity = pt::unbounded;
    built = pt::pipeline(c.p, t, *order, options);
  }
  pipelines_seen.transfers += static_cast<long>(built.transfers.size());
  for (const auto& u : built.units)
    if (pt::failure f = pt::verify(u.device)) return what + data::str(f.message);
  const auto x = data::arguments(c.p, seed);
  const pt::results expected = pt::evaluate(c.p, x), found = pt::emulate(built, x);
  const auto is_expected = [&](const pt::results& y) { return pt::equal(y, expected); };
  merging_laws(x, is_expected, r, seed, merging_seen).proved(built);
  if (!pt::equal(found, expected)) return what + "another result\n" + data::str(pt::print(c.p));
  if (!pt::equal(pt::emulate(built, pt::mesh_mode::threads, x), expected))
    return what + "another result in threads";
  if (const std::string fault = thread_processes::problem_of(built, x, found); !fault.empty())
    return what + "a process per device: " + fault;
  if (const std::string fault = exported_check::fault_of(built); !fault.empty())
    return what + "exported: " + fault;
  return "";
}

struct sharded_statistics {
  long cases = 0, tactics = 0, refused = 0, uneven = 0, collectives = 0, parts = 0, padded = 0,
       rounded = 0;
} sharded_seen;

/// True if the results are equal. Sums of whole numbers are exact in any order up to 2^53, but in
/// long chains of products not all are.
bool same_sums(const pt::results& a, const pt::results& b) {
  if (pt::equal(a, b)) return true;
  double largest = 0;
  for (int i = 0; i < a.size(); ++i)
    for (std::int64_t k = 0; k < a[i].shape().elements(); ++k)
      largest = std::max(largest, std::abs(a[i].data<double>()[k]));
  sharded_seen.rounded += largest > 0x1p50;
  return largest > 0x1p50 && pt::all_close(a, b, 1e-12, 1e-12 * largest);
}

/// A tactic that places one value.
struct one_placement {
  std::string value, axis;
  int dim = 0;
  pt::uneven policy = pt::uneven::unsaid;

  std::string_view name() const { return value; }
  void apply(pt::tactic_context& c) const {
    if (dim < 0)
      pt::manual(axis, {{value, pt::replicated}}, "whole", policy).apply(c);
    else
      pt::manual(axis, {{value, dim}}, "one", policy).apply(c);
  }
};
static_assert(pt::Tactic<one_placement>);

pt::mesh random_mesh(data::random& r, bool same) {
  std::vector<std::string_view> axes{"A", "B", "C"};
  pt::mesh m;
  while (!axes.empty()) {
    const auto i = r.in(0, static_cast<std::int64_t>(axes.size()) - 1);
    if (same || !r.one_in(4)) m.push_back({axes[static_cast<std::size_t>(i)], r.in(1, 4)});
    axes.erase(axes.begin() + i);
  }
  if (m.rank == 0) m.push_back({"A", 2});
  return m;
}
std::vector<one_placement> random_tactics(const pt::program& p, data::random& r) {
  std::vector<one_placement> out;
  for (auto count = r.in(1, 5); count > 0; --count) {
    const bool input = !r.one_in(4);
    const auto i = static_cast<int>(r.in(0, (input ? p.input_count() : p.output_count()) - 1));
    const auto name = input ? p.input_name(i) : p.output_name(i);
    const int rank = (input ? p.input_type(i) : p.output_type(i)).shape.rank;
    const int dim = static_cast<int>(r.in(r.one_in(8) || rank == 0 ? -1 : 0, rank - 1));
    const std::string axis(1, static_cast<char>('A' + r.in(0, 2)));
    out.push_back({std::string(name), r.one_in(8) ? axis + ":(1)2" : axis, dim,
                   r.one_in(4) ? pt::uneven::pad : pt::uneven::unsaid});
  }
  return out;
}

/// Checks that texts about a pipeline agree with it.
std::string text_problem(const pt::pipelined& p) {
  const std::string all = data::str(pt::explain(p));
  const auto lines = static_cast<std::size_t>(std::count(all.begin(), all.end(), '\n'));
  std::size_t wanted = 0, kinds = 0;
  for (const auto& u : p.units) wanted += u.notes.size();
  const pt::pipeline_figures figures(p);
  for (const auto& m : figures.meshes)
    for (const auto n :
         {m.collectives.all_gather, m.collectives.all_reduce, m.collectives.reduce_scatter,
          m.collectives.all_to_all, m.collectives.permute})
      kinds += n > 0;
  wanted += 2 + p.transfers.size() + kinds + figures.meshes.size();
  if (lines != wanted) return "explain has " + std::to_string(lines) + " lines:\n" + all;
  for (const char* name : {"x", "side"})
    if (!data::str(pt::explain(p, name)).starts_with(std::string("%") + name + " : "))
      return "explain does not find an input";
  if (data::str(pt::diff(p, p)) != "no difference\n") return "diff of the same";
  const auto held = pt::replicated_by_default(p);
  for (std::size_t i = 0; i < held.size(); ++i) {
    const auto& m = p.meshes[static_cast<std::size_t>(held[i].mesh)];
    if (held[i].copies <= 1 || held[i].copies > m.devices()) return "copies that no mesh has";
    if (i > 0 && held[i].total() > held[i - 1].total()) return "not the largest first";
  }
  return "";
}
std::string sharded_problem(std::uint64_t seed) {
  pipeline_case c(seed, true);
  data::random& r = c.random();
  static constexpr std::string_view names[] = {"m0", "m1", "m2", "m3"};
  pt::topology t;
  const bool even = r.one_in(2);
  const pt::mesh first = random_mesh(r, even);
  for (int m = 0; m < c.meshes; ++m) t.push_back({names[m], even ? first : random_mesh(r, false)});
  pt::pipeline_options options{.microbatches = c.microbatches,
                               .batch = {{"x", 0}, {"side", 0}},
                               .split = r.one_in(2),
                               .channels = {.capacity = pt::unbounded},
                               .keep_gathered = r.one_in(3)};
  options.where.infer_transfers = true;
  for (int i = 0; i < static_cast<int>(c.names.size()); ++i) {
    const int stage = c.stage_of(i);
    options.where.names.push_back(
        {c.names[static_cast<std::size_t>(i)].view(), names[stage % c.meshes], stage});
  }
  std::vector<one_placement> tactics = random_tactics(c.p, r);
  ++sharded_seen.cases;
  sharded_seen.uneven += !even;
  const auto what = [&] {
    std::string out = data::str(pt::concat(t, ", ", c.microbatches, " microbatches of ",
                                           c.batch / c.microbatches, ", ", c.stages, " stages"));
    for (const auto& each : tactics)
      out += ", " + each.value + " " + std::to_string(each.dim) + " " + each.axis +
             (each.policy == pt::uneven::pad ? " padded" : "");
    return out + ": ";
  };
  try {
    pt::pipelined p;
    for (bool built = false; !built;) {
      try {
        p = pt::pipeline(c.p, t, pt::gpipe, options, tactics);
        built = true;
      } catch (const pt::error& e) {  // options that exclude each other
        const bool unfit = e.code()[0] == 'S' || e.code() == "O130";
        if (!unfit || tactics.empty()) throw;
        ++sharded_seen.refused;
        tactics.erase(tactics.begin() + r.in(0, static_cast<std::int64_t>(tactics.size()) - 1));
      }
    }
    sharded_seen.tactics += static_cast<long>(tactics.size());
    sharded_seen.collectives += p.collectives.total();
    sharded_seen.parts += p.core.mesh.rank > p.core.mesh.whole_rank();
    sharded_seen.padded += p.core.padded();
    for (const auto& u : p.units)
      if (pt::failure f = pt::verify(u.device)) return what() + data::str(f.message);
    const auto x = data::arguments(c.p, seed);
    const pt::results expected = pt::evaluate(c.p, x);
    const auto is_expected = [&](const pt::results& y) { return same_sums(y, expected); };
    merging_laws laws(x, is_expected, r, seed, merging_seen);
    laws.proved(p);
    if (seed <= merging_laws::mutated_cases())
      if (const std::string problem = laws.problem_of_mutants(p); !problem.empty())
        return what() + problem;
    const pt::results emulated = pt::emulate(p, x);
    if (!same_sums(emulated, expected)) return what() + "another result";
    if (const std::string fault = thread_processes::problem_of(p, x, emulated); !fault.empty())
      return what() + "a process per device: " + fault;
    if (!same_sums(pt::emulate(p, pt::mesh_mode::threads, x), expected))
      return what() + "another result in threads";
    if (const pt::refutation wrong = pt::refute(p, {.seeds = 2}); wrong.error)
      return what() + data::str(wrong.error.message);
    if (const std::string fault = exported_check::fault_of(p); !fault.empty())
      return what() + "exported: " + fault;
    if (const std::string problem = text_problem(p); !problem.empty()) return what() + problem;
    const pt::pipelined fewer = pt::absorbed(p);
    laws.proved(fewer);
    if (!same_sums(pt::emulate(fewer, x), expected)) return what() + "another result, absorbed";
    for (const std::string& problem : {laws.problem_of_peak(p), laws.problem_of_calls(p)})
      if (!problem.empty()) return what() + problem;
  } catch (const pt::error& e) {
    return what() + e.what();
  }
  return "";
}

struct table_statistics {
  long cases = 0, ran = 0, deadlocks = 0, wrong = 0, cycles = 0;
} tables_seen;

bool same_rows(const pt::order_table& a, const pt::order_table& b) {
  for (std::size_t m = 0; m < a.rows.size(); ++m)
    if (!std::equal(a.rows[m].begin(), a.rows[m].end(), b.rows[m].begin(), b.rows[m].end()))
      return false;
  return a.rows.size() == b.rows.size();
}
/// Returns the calls of each mesh of a pipeline.
pt::order_table rows_of(const pt::pipelined& p) {
  pt::order_table out;
  for (const auto& list : pt::lists_by_mesh(p.calls, p.order)) {
    out.rows.push_back({});
    for (const int call : list)
      if (p.calls.calls[call].ordered()) out.rows.back().push_back(p.calls.calls[call]);
  }
  return out;
}

std::string table_problem(std::uint64_t seed) {
  pipeline_case c(seed);
  data::random& r = c.random();
  static constexpr std::string_view names[] = {"m0", "m1", "m2", "m3"};
  pt::topology t;
  for (int m = 0; m < c.meshes; ++m) t.push_back({names[m], {{"B", 2}}});
  pt::pipeline_options options{.microbatches = c.microbatches,
                               .batch = {{"x", 0}, {"side", 0}},
                               .split = r.one_in(2),
                               .channels = {.capacity = pt::unbounded}};
  options.where.infer_transfers = true;
  std::vector<std::string_view> mesh_of_stage;
  for (int s = 0; s < c.stages; ++s) mesh_of_stage.push_back(names[r.in(0, c.meshes - 1)]);
  for (int i = 0; i < static_cast<int>(c.names.size()); ++i)
    options.where.names.push_back({c.names[static_cast<std::size_t>(i)].view(),
                                   mesh_of_stage[static_cast<std::size_t>(c.stage_of(i))],
                                   c.stage_of(i)});
  pt::order_table table = random_table(pt::pipeline(c.p, t, pt::gpipe, options).calls, r);
  const bool valid = !r.one_in(4);
  for (auto swaps = valid ? 0 : r.in(1, 4); swaps > 0; --swaps) {
    auto& row = table.rows[static_cast<std::size_t>(r.in(0, c.meshes - 1))];
    const auto place = [&] {
      return row.begin() + r.in(0, static_cast<std::int64_t>(row.size()) - 1);
    };
    if (!row.empty()) std::swap(*place(), *place());
  }
  ++tables_seen.cases;
  tables_seen.wrong += !valid;
  options.channels.capacity = static_cast<int>(r.in(1, 3));
  const auto built = [&]() -> pt::pipelined {
    try {
      return pt::pipeline(c.p, t, table, options);
    } catch (const pt::error& e) {
      if (e.code() == "O006" && !valid) return {};
      if (e.code() != "O007") throw;
      ++tables_seen.deadlocks;
      options.channels.capacity = pt::unbounded;
      return pt::pipeline(c.p, t, table, options);
    }
  };
  try {
    const pt::pipelined p = built();
    if (p.units.empty()) {
      ++tables_seen.cycles;
      return "";
    }
    ++tables_seen.ran;
    if (!same_rows(rows_of(p), table)) return "another order";
    const auto x = data::arguments(c.p, seed);
    const pt::results expected = pt::evaluate(c.p, x);
    const auto is_expected = [&](const pt::results& y) { return pt::equal(y, expected); };
    merging_laws laws(x, is_expected, r, seed, merging_seen);
    laws.proved(p);
    if (!pt::equal(pt::emulate(p, x), expected)) return "another result";
    if (!pt::equal(pt::emulate(p, pt::mesh_mode::threads, x), expected))
      return "another result in threads";
    return laws.problem_of_units(p);
  } catch (const pt::error& e) {
    return std::string(e.what()) + "\n" + data::str(pt::print(c.p));
  }
  return "";
}

}  // namespace

TEST_CASE("random pipelines compute the results of the step") {
  for_each_seed(500, pipeline_problem);
  MESSAGE(pipelines_seen.cases, " pipelines, ", pipelines_seen.derived, " with derivatives, ",
          pipelines_seen.shared, " shared weights, ", pipelines_seen.skipping,
          " values that skip, ", pipelines_seen.split, " in parts, ", pipelines_seen.rounds,
          " in rounds, ", pipelines_seen.normed, " norms, ", pipelines_seen.transfers,
          " transfers, ", pipelines_seen.stacked, " outputs by example, ", pipelines_seen.deadlocks,
          " that need more capacity");
}

TEST_CASE("random pipelines with sharded stages compute the results of the step") {
  for_each_seed(300, sharded_problem);
  MESSAGE(sharded_seen.cases, " pipelines, ", sharded_seen.tactics, " tactics, ",
          sharded_seen.refused, " that did not fit, ", sharded_seen.uneven,
          " on meshes that differ, ", sharded_seen.collectives, " collectives, ",
          sharded_seen.parts, " with parts of axes, ", sharded_seen.padded, " padded, ",
          sharded_seen.rounded, " too large to be exact");
}

TEST_CASE("random pipelines under random tables of orders compute the results of the step") {
  for_each_seed(300, table_problem);
  MESSAGE(tables_seen.cases, " tables, ", tables_seen.ran, " that run, ", tables_seen.deadlocks,
          " that need more capacity, ", tables_seen.wrong, " with calls exchanged, ",
          tables_seen.cycles, " of them against the flow of data");
}

TEST_CASE("random pipelines are proved") {
  MESSAGE(merging_seen);
  CHECK(merging_seen.not_proved == 0);
}
