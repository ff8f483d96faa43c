// Mistakes in pipelines, each made by hand: the proof names their place.
#include <doctest/doctest.h>

#include <string>
#include <utility>

#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>

#include "../data.hpp"
#include "../mutants/pipelines.hpp"
#include "../two_stages.hpp"

namespace pt = partita;
using namespace two_stages;
using data::str;
using piped = pt::pipelined;
using joint = pt::joint_function;

namespace {

/// Two microbatches; everything that can be sharded is.
const piped& right() {
  static const piped p = partitioned({}, BP, stages_of(2), MP, Z3);
  return p;
}
/// True if the message of `prove` starts with a code, and has a part.
bool refuses(const piped& p, std::string_view code, std::string_view part = "") {
  const pt::verdict v = pt::prove(p);
  const std::string message = str(v.error.message);
  const bool good =
      !v.proved && message.starts_with(code) && message.find(part) != std::string::npos;
  if (!good) MESSAGE(code, ": ", message);
  return good;
}
template <class Change>
bool refuses(const Change& change, std::string_view code, std::string_view part = "") {
  piped p = right();
  change(p);
  return refuses(p, code, part);
}

/// Returns the unit of the loop with a stage's forward (0) or backward (1) ops.
pt::pipeline_unit& unit_of(piped& p, int stage, int transposed) {
  for (auto& u : p.units)
    if (u.inside && u.piece.stage == stage && u.transposed == transposed) return u;
  return p.units[0];
}
/// Returns the transfer between stages in each iteration, from m0 to m1 or back.
int transfer_from(const piped& p, int mesh) {
  int t = 0;
  while (p.transfers[t].from != mesh || p.repeated[p.slot_of[p.transfers[t].value]] == 0) ++t;
  return t;
}
/// Replaces uses of the result of the first op of a kind by uses of its operand.
bool drop_op(pt::program& p, std::string_view name) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    if (p.op(o).def->name != name || p.type(p.op(o).result) != p.type(p.operand(o, 0))) continue;
    mutants::replace_uses(p, p.op(o).result, p.operand(o, 0));
    return true;
  }
  return false;
}
/// Changes the size of an axis of a mesh of the topology, or adds the axis.
void resize(piped& p, std::string_view axis, std::int64_t size) {
  pt::topology t;
  for (int m = 0; m < p.topology.count(); ++m) {
    pt::mesh sizes = p.topology.mesh_of(m);
    if (const int a = sizes.find(axis); m == 1 && a >= 0)
      sizes.axes[a].size = size;
    else if (m == 1)
      sizes.push_back({axis, size});
    t.push_back({p.topology.name(m), sizes});
  }
  p.topology = t;
}

}  // namespace

TEST_CASE("partition and pipeline prove their results if requested") {
  CHECK(partitioned({.prove = pt::proof}, PP, BP).proved);
  CHECK(partitioned({.prove = pt::proof_in_debug}, PP, BP).proved == pt::proves_in_debug);
  CHECK(partitioned({}, PP, BP).proved == pt::proves_in_debug);  // partita::separate's default
  CHECK(!partitioned({.prove = pt::no_proof}, PP, BP).proved);
  const pt::pipeline_options stages{.where = {.names = {{"front", "m0"}, {"back", "m1"}}}};
  CHECK(pt::pipeline(traced(), cluster, pt::gpipe, stages, pt::schedule(), {.prove = pt::proof})
            .proved);
}

TEST_CASE("pipelines: the step is proved by claims, and another one is not") {
  CHECK(pt::prove(right()).method == pt::proof_method::claims);
  CHECK(pt::proved(right()).proved);
  piped other = right();
  other.original = pt::trace([](const auto& x, const auto&... w) { return model(x + x, w...); },
                             pt::input<float, 32, 8>("x"), pt::input<float, 8, 8>("w1"),
                             pt::input<float, 8, 8>("w2"));
  CHECK(refuses(other, "Q004"));
  other.original = pt::trace([](const auto& x) { return x + x; }, pt::input<float, 32, 8>("x"));
  CHECK(refuses(other, "Q001"));
  CHECK(str(pt::prove(right(), {.most_steps = 40}).error.message).starts_with("Q008"));
}

TEST_CASE("pipelines: mistakes in the program of a unit name the first unit that cannot be right") {
  int found = 0;
  for (int stage = 0; stage < 2; ++stage)
    for (int transposed = 0; transposed < 2; ++transposed)
      for (const auto name : {"all_reduce", "tanh", "negate"}) {
        piped p = right();
        if (!drop_op(unit_of(p, stage, transposed).device.local, name)) continue;
        ++found;
        CHECK(refuses(p, "Q003", ", in "));
      }
  CHECK(found >= 2);
}

TEST_CASE("pipelines: accumulators start from zero and add each microbatch once") {
  const auto refused = [](auto change) {
    return refuses(
        [&](piped& p) {
          int u = 0;
          while (p.units[u].sums.empty()) ++u;
          pt::program& f = p.units[u].device.local;
          change(p, p.units[u], f, f.producer(f.outputs[f.outputs.size() - 1].value));
        },
        "Q00");
  };
  CHECK(refused(
      [](auto&, auto&, auto& f, int o) { mutants::set_operand(f, o, 0, f.operand(o, 1)); }));
  CHECK(refused(
      [](auto&, auto&, auto& f, int o) { mutants::set_operand(f, o, 1, f.operand(o, 0)); }));
  CHECK(refused([](auto&, auto&, auto& f, int o) {
    f.outputs[f.outputs.size() - 1].value = f.operand(o, 1);
  }));
  CHECK(refused([](piped& p, const pt::pipeline_unit& u, auto&, int) {
    auto& values = const_cast<pt::program&>(p.values());
    mutants::set_attributes(values, values.producer(u.gives[u.gives.size() - 1].slot),
                            {static_cast<std::int64_t>(pt::combiner::max)});
  }));
}

TEST_CASE("pipelines: mistakes in transfers are named") {
  for (const int from : {0, 1}) {
    const int t = transfer_from(right(), from), back = transfer_from(right(), 1 - from);
    CHECK(refuses([=](piped& p) { p.sent_as[t].from = {}; }, "Q014", "is sent"));
    CHECK(refuses([=](piped& p) { p.sent_as[t].to = {}; }, "Q014", "takes"));
    CHECK(refuses([=](piped& p) { p.sent_as[t].to.push_back(6, 0); }, "Q006"));
    CHECK(refuses([=](piped& p) { p.transfers[t].to = from; }, "Q012"));
    CHECK(refuses([=](piped& p) { p.transfers[t].value = p.transfers[back].value; }, "Q012"));
    for (const int times : {0, 2})  // it is sent never, or twice
      CHECK(refuses(
          [=](piped& p) {
            auto& list = p.lists.meshes[from];
            for (const auto& s : std::exchange(list, {}))
              for (int i = s.kind == pt::mesh_step::send && p.lists.messages[s.index].transfer == t
                               ? times
                               : 1;
                   i > 0; --i)
                list.push_back(s);
          },
          "Q012"));
  }
  CHECK(refuses(
      [](piped& p) {  // of another microbatch
        for (auto& m : p.lists.messages)
          if (m.microbatch >= 0) m.microbatch = 1 - m.microbatch;
      },
      "Q012"));
}

TEST_CASE("pipelines: mistakes in meshes, calls, inputs and outputs are named") {
  CHECK(refuses([](piped& p) { resize(p, "B", 4); }, "Q011", "meshes"));
  CHECK(refuses([](piped& p) { resize(p, "C", 2); }, "Q011", "meshes"));
  CHECK(refuses([](piped& p) { unit_of(p, 0, 0).device.mesh.axes[0].size = 2; }, "Q011", "meshes"));
  CHECK(refuses([](piped& p) { unit_of(p, 0, 0).device.mesh = {}; }, "Q011"));
  CHECK(refuses([](piped& p) { p.repeated.pop_back(); }, "Q011", "values"));
  CHECK(refuses([](piped& p) { p.unit_of[0] = 100; }, "Q011", "calls"));
  CHECK(refuses(
      [](piped& p) {  // (one sum twice would be complete before the last call)
        for (auto& u : p.units)
          if (const auto n = u.gives.size(); n > 1) u.gives[n - 1].slot = u.gives[n - 2].slot;
      },
      "Q011", "units"));
  CHECK(refuses(
      [](piped& p) {
        for (auto& s : p.lists.meshes[0])
          if (s.kind == pt::mesh_step::call) s.index = p.lists.meshes[0][0].index;
      },
      "Q013"));
  CHECK(refuses(
      [](piped& p) {  // both calls are of one microbatch
        for (auto& c : p.calls.calls) c.microbatch = c.microbatch < 0 ? -1 : 0;
      },
      "Q013"));
  CHECK(refuses(
      [](piped& p) {
        auto& takes = unit_of(p, 1, 0).takes;
        std::swap(takes[0].slot, takes[1].slot);
      },
      "Q"));
  CHECK(refuses([](piped& p) { std::swap(p.output_mesh[0], p.output_mesh[1]); }, "Q012", "output"));
  CHECK(refuses([](piped& p) { std::swap(p.output_slot[0], p.output_slot[1]); }, "Q012", "output"));
  CHECK(refuses([](piped& p) { p.output_layout[1] = {}; }, "Q002", "output \"w1\""));
  CHECK(refuses([](piped& p) { std::swap(p.input_mesh[1], p.input_mesh[2]); }, "Q"));
  CHECK(refuses([](piped& p) { p.input_layout[0] = {}; }, "Q014"));
}

TEST_CASE("pipelines: a joint call runs its parts, and returns the values that others read") {
  const piped whole = pt::merged(right(), [](const auto& a, const auto& b) {
    return a.mesh == 0 ? a.transposed == b.transposed : a.microbatch + b.microbatch == 2;
  });
  REQUIRE(whole.order_of("m0") == "F0+F1 B0+B1");
  REQUIRE(whole.order_of("m1") == "F0 B0 F1+B1");
  CHECK(pt::prove(whole).proved);
  const auto check = [&](const auto& change, std::string_view code, std::string_view part = "") {
    int made = 0;
    for (std::size_t f = 0; f < whole.joint_functions.size(); ++f) {
      piped p = whole;
      if (!change(p.joint_functions[f])) continue;
      ++made;
      CHECK(refuses(p, code, part));
    }
    CHECK(made > 0);
  };
  const auto none_ahead = [](pt::vec<int>& list) {
    bool any = false;
    for (int& ahead : list) any |= std::exchange(ahead, 0) != 0;
    return any;
  };
  constexpr std::string_view returned = "do not return what its function returns";
  check([](joint& f) { return drop_op(f.whole.device.local, "tanh"); },
        "Q015 prove: the parts of a joint call ", " on mesh \"m");
  check([&](joint& f) { return none_ahead(f.takes_ahead); }, "Q015");
  check([&](joint& f) { return none_ahead(f.gives_ahead); }, "Q015", returned);
  check(
      [](joint& f) {
        pt::program& local = f.whole.device.local;
        local.outputs[local.outputs.size() - 1].value = local.inputs[local.inputs.size() - 1];
        return !f.whole.sums.empty();
      },
      "Q015", returned);
  check([](joint& f) { return std::swap(f.parts[0], f.parts[1]), true; }, "Q011", "joint calls");
  check(
      [](joint& f) {  // it claims to omit a value that it returns
        for (char& each : f.given)
          if (std::exchange(each, 0) != 0) return true;
        return false;
      },
      "Q015", "return a value that their function does not declare");
  check([](joint& f) { return mutants::results_of(f) > 0 && mutants::leave_out(f, 0); }, "Q012");
}

TEST_CASE("pipelines: an iteration of the source's own loop is not a value after the loop") {
  const auto step = [](const auto& xs) {
    const auto body = [](const auto& total, const auto& x) {
      const auto f = [](const auto& v) { return tanh(v); };
      return std::pair{total + pt::named("c", f)(pt::named("b", f)(pt::named("a", f)(x))),
                       pt::nothing{}};
    };
    return pt::output("total", pt::scan(body, pt::full_like(pt::sum<0>(xs), 0), xs).first);
  };
  pt::pipeline_options options;
  options.where.infer_transfers = true;
  options.where.names = {{"a", "m0", 0}, {"b", "m0", 1}, {"c", "m0", 2}};
  piped p = pt::pipeline(pt::trace(step, pt::input<float, 4, 3>("xs")),
                         pt::topology{{"m0", {{"B", 1}}}}, pt::gpipe, options);
  REQUIRE(p.own_loop >= 0);
  CHECK(pt::prove(p).proved);

  // "b" once, after all "a" and before all "c", which add the value of the last microbatch.
  int b = 0;
  while (p.units[b].piece.stage != 1) ++b;
  p.units[b].inside = false;
  for (const auto& each : p.units[b].gives) p.repeated[each.slot] = 0;
  const piped before = p;
  auto& list = p.lists.meshes[0];
  list = {};
  p.calls.calls = {};
  p.calls.edges = {};
  p.unit_of = p.order = {};
  for (int u = 0; u < static_cast<int>(p.units.size()); ++u)
    for (auto each : before.lists.meshes[0]) {
      if (each.kind != pt::mesh_step::call || before.unit_of[each.index] != u) continue;
      if (u == b && p.unit_of.back() == b) continue;
      p.calls.calls.push_back(before.calls.calls[each.index]);
      if (u == b) p.calls.calls.back().microbatch = -1;
      p.order.push_back(static_cast<int>(p.unit_of.size()));
      each.index = p.order.back();
      p.unit_of.push_back(u);
      list.push_back(each);
    }
  CHECK(refuses(p, "Q004", "output \"total\""));
}
