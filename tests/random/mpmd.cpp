// Random programs, parts, topologies and assignments: the fragments compute the results of the
// source.
//
// Parts are drawn over ops regardless of dependences, so that they have to be cut where they would
// wait for each other. Not drawn: names in nested programs.
#include <doctest/doctest.h>

#include <set>

#include <partita/mpmd/print_mpmd.hpp>
#include <partita/run/mpmd.hpp>

#include "generator.hpp"
#include "seeds.hpp"

namespace pt = partita;
using namespace random_test;
using data::str;

namespace {

/// Draws parts of a program: mostly ranges of ops, some of single ops, some inside others; an op of
/// a derivative belongs to the part of another op. Otherwise one part of all ops except those that
/// combine two values (so that there are chains over several meshes).
void draw_parts(pt::program& p, data::random& r) {
  pt::number_ops(p);
  static constexpr std::string_view names[] = {"layers.0", "layers.1", "layers.2", "head", "a b"};
  if (r.one_in(3)) {
    for (const auto& n : p.ops)
      if (n.def->id != pt::def<pt::op::add>.id && n.def->id != pt::def<pt::op::multiply>.id &&
          n.def->id != pt::def<pt::op::maximum>.id)
        p.scopes.put(n.marks.source, p.scopes.open(names[r.in(0, 4)], -1));
    return;
  }
  int scope = -1;
  for (const auto& n : p.ops) {
    if (scope < 0 ? r.one_in(3) : r.one_in(6)) {
      const bool inside = scope >= 0 && r.one_in(3);
      scope = r.one_in(4) ? -1 : p.scopes.open(names[r.in(0, 4)], inside ? scope : -1);
    }
    if (r.one_in(12)) continue;
    if (const int from = p.scopes.of(n.marks.origin); from >= 0)
      p.scopes.put(n.marks.source, from);
    else if (scope >= 0)
      p.scopes.put(n.marks.source, scope);
  }
}
pt::topology draw_topology(data::random& r) {
  static constexpr std::string_view names[] = {"m0", "m1", "m 2", "m3", "m4"};
  pt::topology t;
  const auto count = r.one_in(5) ? 1 : r.in(2, 5);
  for (int i = 0; i < count; ++i) t.push_back({names[i], {{"B", r.in(1, 4)}, {"M", 2}}});
  return t;
}
/// Assigns each name of a part, and some inputs and outputs. A part in a part of another mesh is
/// refused: then only the outer one is assigned.
pt::assignment draw_assignment(const pt::program& p, const pt::topology& t, data::random& r) {
  pt::assignment a;
  a.infer_transfers = !r.one_in(4);
  std::set<std::string_view> names;
  for (int s = 0; s < p.scopes.count(); ++s)
    if (p.scopes.outer(s) < 0) names.insert(p.scopes.name(s));
  for (std::string_view name : names)
    if (!r.one_in(6))
      a.names.push_back({name, t.name(static_cast<int>(r.in(0, t.count() - 1))), -1});
  const auto some = [&](pt::vec<pt::mesh_for>& to, int count, const auto& name_of) {
    std::set<std::string_view> done;
    for (int i = 0; i < count; ++i)
      if (r.one_in(5) && done.insert(name_of(i)).second)
        to.push_back({name_of(i), t.name(static_cast<int>(r.in(0, t.count() - 1))), -1});
  };
  some(a.inputs, p.input_count(), [&](int i) { return p.input_name(i); });
  some(a.outputs, p.output_count(), [&](int i) { return p.output_name(i); });
  return a;
}

struct mpmd_statistics {
  long cases = 0, refused = 0, split = 0, cloned = 0, transfers = 0, inferred = 0, named = 0,
       states = 0, nested = 0;
} mpmd_seen;

/// Checks that fragments and transfers are in an order of execution, and that each value is sent to
/// a mesh once.
std::string check_structure(const pt::mpmd_program& m) {
  const pt::program& p = m.source;
  std::set<std::pair<pt::value_id, int>> there;
  for (int i = 0; i < p.input_count(); ++i) there.insert({p.inputs[i], m.input_mesh[i]});
  std::size_t next = 0;
  for (int f = -1; f < static_cast<int>(m.fragments.size()); ++f) {
    if (f >= 0) {
      const auto& each = m.fragments[f];
      for (auto v : each.inputs)
        if (!there.contains({v, each.mesh})) return "an input of a fragment is not there";
      for (auto v : each.outputs)
        if (!there.insert({v, each.mesh}).second) return "a value is made twice on a mesh";
    }
    for (; next < m.transfers.size() && m.transfers[next].after == f; ++next) {
      const auto& t = m.transfers[next];
      if (!there.contains({t.value, t.from})) return "what is sent is not there";
      if (!there.insert({t.value, t.to}).second) return "what is sent is there already";
    }
  }
  if (next != m.transfers.size()) return "a transfer is left over";
  for (int i = 0; i < p.output_count(); ++i)
    if (!there.contains({p.outputs[i].value, m.output_mesh[i]})) return "an output is not there";
  for (int i = 0; i < p.input_count(); ++i)
    for (int j = 0; j < p.output_count(); ++j)
      if (p.input_name(i) == p.output_name(j)) {
        ++mpmd_seen.states;
        if (m.input_mesh[i] != m.output_mesh[j]) return "a state moves";
      }
  return "";
}

/// Returns the error of a case, or "".
std::string mpmd_problem(std::uint64_t seed) {
  test_case c = generator(seed).make();
  data::random r{seed * 31 + 7};
  draw_parts(c.p, r);
  const pt::topology t = draw_topology(r);
  const pt::assignment a = draw_assignment(c.p, t, r);
  ++mpmd_seen.cases;
  mpmd_seen.nested += !c.p.regions.empty();
  pt::mpmd_program m;
  try {
    m = pt::to_mpmd(c.p, t, a);
  } catch (const pt::error& e) {
    ++mpmd_seen.refused;
    const bool wanted =
        e.code() == "O107" || e.code() == "O111" || (e.code() == "O110" && !a.infer_transfers);
    return wanted ? "" : e.what();
  }
  const auto where = pt::mpmd_detail::infer_meshes(c.p, t, a);
  mpmd_seen.split += !where.chains.empty();
  mpmd_seen.transfers += static_cast<long>(m.transfers.size());
  for (const auto& f : m.fragments) ++(f.origins.empty() ? mpmd_seen.inferred : mpmd_seen.named);
  for (const auto& each : where.use) mpmd_seen.cloned += each.count() > 1;
  if (pt::failure f = pt::verify(m.source)) return str(f.message);
  if (std::string s = check_structure(m); !s.empty()) return s + "\n" + str(pt::print(m));
  pt::fragment_programs programs(m.source);
  for (int f = 0; f < static_cast<int>(m.fragments.size()); ++f)
    if (pt::failure g = pt::ir_detail::verify_ops(programs(m.fragments[f]))) return str(g.message);
  const auto inputs = random_test::arguments(c);
  const pt::results found = pt::run_fragments(m, inputs);
  if (!pt::equal(found, pt::evaluate(m.source, inputs)))
    return "fragments differ from their source\n" + str(pt::print(m));
  const bool exact = where.chains.empty() || (!c.wild && !c.real);
  if (exact && !pt::equal(found, pt::evaluate(c.p, inputs)))
    return "fragments differ from the program\n" + str(pt::print(m));
  return "";
}

}  // namespace

TEST_CASE("random programs over several meshes compute the results of the source") {
  const long cases = for_each_seed(2000, mpmd_problem);
  MESSAGE(mpmd_seen.cases, " cases, ", mpmd_seen.refused, " refused, ", mpmd_seen.split,
          " with chains combined per mesh, ", mpmd_seen.nested, " with nested programs, ",
          mpmd_seen.cloned, " ops on several meshes, ", mpmd_seen.transfers, " transfers, ",
          mpmd_seen.named, " named fragments, ", mpmd_seen.inferred, " inferred ones, ",
          mpmd_seen.states, " states");
  if (cases < 1000) return;
  CHECK(mpmd_seen.refused < mpmd_seen.cases / 2);
  CHECK(mpmd_seen.split > 60);
  CHECK(mpmd_seen.cloned > 100);
  CHECK(mpmd_seen.inferred > 100);
  CHECK(mpmd_seen.states > 20);
}
