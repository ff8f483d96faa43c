// Mistakes in pipelines, each made by hand: the proof names their place.
#include <array>
#include <tuple>
#include <utility>
#include <vector>

#include <doctest/doctest.h>

#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/partita.hpp>

#include "../mutants/pipelines.hpp"

namespace pt = partita;
using data::str;

namespace {

constexpr auto two_stage_step = [](const auto& x, const auto& mask, const auto& w1,
                                   const auto& w2) {
  const auto layer = [](const auto& h, const auto& w) { return tanh(matmul(h, w)); };
  const auto [loss, g] = pt::value_and_grad(
      [&](const auto& w) {
        const auto h = pt::named("first", layer)(x, w[0]);
        const auto y = pt::named("second", layer)(h, w[1]);
        return sum(y * mask);
      },
      std::array{w1, w2});
  return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1]),
                    pt::output("loss", loss)};
};
/// Two microbatches over 4 x 2 and 2 x 2 devices; everything that can be sharded is.
const pt::pipelined& two_stage_pipeline() {
  static const pt::pipelined p = pt::partition(
      pt::trace(two_stage_step, pt::input<float, 16, 8>("x"), pt::input<float, 16, 8>("mask"),
                pt::input<float, 8, 8>("w1"), pt::input<float, 8, 8>("w2")),
      pt::topology{{"m0", {{"B", 4}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}},
      pt::schedule(pt::manual("B", {{"x", 0}, {"mask", 0}}, "BP"),
                   pt::pipeline({.stages = {{"first"}, {"second"}},
                                 .batch = {{"x", 0}, {"mask", 0}},
                                 .microbatches = 2,
                                 .order = pt::one_f_one_b}),
                   pt::manual("M", {{"w1", 1}}, "MP"),
                   pt::manual("B", {{"w1", 0}, {"w2", 0}}, "Z3")));
  return p;
}
/// Returns the message of `prove` after a change.
template <class Change>
std::string said(const Change& change) {
  pt::pipelined p = two_stage_pipeline();
  change(p);
  const pt::verdict v = pt::prove(p);
  CHECK(v.proved == !v.error);
  return str(v.error.message);
}
bool says(const std::string& message, std::string_view code, std::string_view part = "") {
  const bool good =
      message.substr(0, code.size()) == code && message.find(part) != std::string::npos;
  if (!good) MESSAGE(message);
  return good;
}

/// Returns the unit of the loop with a stage's forward (0) or backward (1) ops.
pt::pipeline_unit& unit_of(pt::pipelined& p, int stage, int transposed) {
  for (auto& u : p.units)
    if (u.inside && u.piece.stage == stage && u.transposed == transposed) return u;
  return p.units[0];
}
/// Returns the transfer between stages in each iteration, from m0 to m1 or back.
int transfer_from(const pt::pipelined& p, int mesh) {
  for (int t = 0; t < static_cast<int>(p.transfers.size()); ++t)
    if (p.transfers[t].from == mesh && p.repeated[p.slot_of[p.transfers[t].value]] != 0) return t;
  return -1;
}
int find_op(const pt::program& p, std::string_view name) {
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).def->name == name) return o;
  return -1;
}
/// Replaces uses of the result of the first op of a kind by uses of its operand.
bool drop_op(pt::program& p, std::string_view name) {
  const int o = find_op(p, name);
  if (o < 0 || p.type(p.op(o).result) != p.type(p.operand(o, 0))) return false;
  mutants::replace_uses(p, p.op(o).result, p.operand(o, 0));
  return true;
}
pt::op_id accumulating(const pt::pipeline_unit& u) {
  const pt::program& local = u.device.local;
  return local.producer(local.outputs[local.outputs.size() - 1].value);
}

}  // namespace

TEST_CASE("partition and pipeline prove their results if requested") {
  const auto step = [](const auto& x, const auto& w) {
    const auto layer = [](const auto& h, const auto& v) { return tanh(matmul(h, v)); };
    return pt::named("second", layer)(pt::named("first", layer)(x, w), w);
  };
  const auto traced = pt::trace(step, pt::input<float, 8, 4>("x"), pt::input<float, 4, 4>("w"));
  const pt::topology two{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
  const auto with = [&](const pt::partition_options& options) {
    return pt::partition(traced, two,
                         pt::schedule(pt::pipeline({.stages = {{"first"}, {"second"}},
                                                    .batch = {{"x", 0}},
                                                    .microbatches = 2}),
                                      pt::manual("B", {{"x", 0}})),
                         options);
  };
  CHECK(with({.prove = pt::proof}).proved);
  CHECK(with({.prove = pt::proof_in_debug}).proved == pt::proves_in_debug);
  CHECK(with({}).proved == pt::proves_in_debug);  // the default of partita::separate
  CHECK(!with({.prove = pt::no_proof}).proved);
  const pt::pipeline_options stages{.where = {.names = {{"first", "m0"}, {"second", "m1"}}}};
  CHECK(pt::pipeline(traced, two, pt::gpipe, stages, pt::schedule(), {.prove = pt::proof}).proved);
}

TEST_CASE("pipelines: the step is proved, and another one is not") {
  CHECK(said([](pt::pipelined&) {}) == "");
  CHECK(pt::proved(two_stage_pipeline()).proved);
  const pt::program other =
      pt::trace([](const auto& x, const auto& mask, const auto& w1,
                   const auto& w2) { return two_stage_step(x + x, mask, w1, w2); },
                pt::input<float, 16, 8>("x"), pt::input<float, 16, 8>("mask"),
                pt::input<float, 8, 8>("w1"), pt::input<float, 8, 8>("w2"));
  CHECK_FALSE(pt::prove(other, two_stage_pipeline()));
  CHECK(says(str(pt::prove(two_stage_pipeline(), {.most_steps = 40}).error.message), "Q008"));
}

TEST_CASE("pipelines: mistakes in the program of a unit name the first unit that cannot be right") {
  int found = 0;
  for (int stage = 0; stage < 2; ++stage)
    for (int transposed = 0; transposed < 2; ++transposed)
      for (const auto name : {"all_reduce", "tanh", "negate"}) {
        bool dropped = false;
        const std::string message = said([&](pt::pipelined& p) {
          dropped = drop_op(unit_of(p, stage, transposed).device.local, name);
        });
        found += dropped;
        if (dropped) CHECK(says(message, "Q003", ", in "));
      }
  CHECK(found >= 2);
}

TEST_CASE("pipelines: accumulators start from zero and add each microbatch once") {
  const auto with_accumulator = [](auto change) {
    return said([&](pt::pipelined& p) {
      for (auto& u : p.units)
        if (!u.sums.empty()) return change(p, u);
    });
  };
  // Adds the new value twice, adds the old value twice, or keeps only the new value.
  CHECK(with_accumulator([](pt::pipelined&, pt::pipeline_unit& u) {
          pt::program& local = u.device.local;
          const pt::op_id o = accumulating(u);
          mutants::set_operand(local, o, 0, local.operand(o, 1));
        }) != "");
  CHECK(with_accumulator([](pt::pipelined&, pt::pipeline_unit& u) {
          pt::program& local = u.device.local;
          const pt::op_id o = accumulating(u);
          mutants::set_operand(local, o, 1, local.operand(o, 0));
        }) != "");
  CHECK(with_accumulator([](pt::pipelined&, pt::pipeline_unit& u) {
          pt::program& local = u.device.local;
          local.outputs[local.outputs.size() - 1].value = local.operand(accumulating(u), 1);
        }) != "");
  // The accumulator is a maximum, which starts from another identity.
  CHECK(with_accumulator([](pt::pipelined& p, pt::pipeline_unit& u) {
          auto& values = const_cast<pt::program&>(p.values());
          mutants::set_attributes(values, values.producer(u.gives[u.gives.size() - 1].slot),
                                  {static_cast<std::int64_t>(pt::combiner::max)});
        }) != "");
}

TEST_CASE("pipelines: exchanged values, and values of another microbatch, are named") {
  CHECK(says(said([](pt::pipelined& p) {
               auto& takes = unit_of(p, 1, 0).takes;
               std::swap(takes[0].slot, takes[1].slot);
             }),
             "Q"));
  CHECK(says(said([](pt::pipelined& p) {
               for (auto& m : p.lists.messages)
                 if (m.microbatch >= 0) m.microbatch = 1 - m.microbatch;
             }),
             "Q012"));
  CHECK(says(said([](pt::pipelined& p) {  // both calls are of one microbatch
               for (auto& c : p.calls.calls)
                 if (c.microbatch == 1) c.microbatch = 0;
             }),
             "Q013"));
  CHECK(said([](pt::pipelined& p) {  // slices of the mask, which is as large as x
          auto& values = const_cast<pt::program&>(p.values());
          std::vector<pt::op_id> slices;
          for (pt::op_id o = 0; o < values.op_count(); ++o)
            if (values.op(o).def->id == pt::def<pt::op::microbatch_slice>.id) slices.push_back(o);
          REQUIRE(slices.size() == 2);
          const pt::value_id first = values.operand(slices[0], 0);
          mutants::set_operand(values, slices[0], 0, values.operand(slices[1], 0));
          mutants::set_operand(values, slices[1], 0, first);
        }) != "");
}

TEST_CASE("pipelines: mistakes in transfers are named") {
  for (const int from : {0, 1}) {
    CAPTURE(from);
    const int t = transfer_from(two_stage_pipeline(), from);
    REQUIRE(t >= 0);
    CHECK(says(said([&](pt::pipelined& p) { p.sent_as[t].from = {}; }), "Q014", "is sent"));
    CHECK(says(said([&](pt::pipelined& p) { p.sent_as[t].to = {}; }), "Q014", "takes"));
    CHECK(says(said([&](pt::pipelined& p) { p.sent_as[t].to.push_back(6, 0); }), "Q006"));
    CHECK(says(said([&](pt::pipelined& p) { p.transfers[t].to = from; }), "Q012"));
    CHECK(says(said([&](pt::pipelined& p) {
                 p.transfers[t].value = p.transfers[transfer_from(p, 1 - from)].value;
               }),
               "Q012"));
    // It is sent never, or twice.
    for (const int times : {0, 2})
      CHECK(says(said([&](pt::pipelined& p) {
                   pt::vec<pt::mesh_step> list;
                   for (const auto& s : p.lists.meshes[from]) {
                     const bool changed =
                         s.kind == pt::mesh_step::send && p.lists.messages[s.index].transfer == t;
                     for (int i = changed ? times : 1; i > 0; --i) list.push_back(s);
                   }
                   p.lists.meshes[from] = list;
                 }),
                 "Q012"));
  }
}

TEST_CASE("pipelines: meshes are those of the topology") {
  const auto resized = [](std::int64_t size, std::string_view axis) {
    return [=](pt::pipelined& p) {
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
    };
  };
  CHECK(says(said(resized(4, "B")), "Q011", "meshes"));
  CHECK(says(said(resized(2, "C")), "Q011", "meshes"));
  CHECK(said(resized(2, "B")) == "");
}

TEST_CASE("pipelines: mistakes in calls, inputs and outputs are named") {
  CHECK(says(said([](pt::pipelined& p) {
               auto& list = p.lists.meshes[0];
               for (auto& s : list)
                 if (s.kind == pt::mesh_step::call) s.index = list[0].index;
             }),
             "Q013"));
  CHECK(says(said([](pt::pipelined& p) { std::swap(p.output_mesh[0], p.output_mesh[1]); }), "Q012",
             "output"));
  CHECK(says(said([](pt::pipelined& p) { std::swap(p.output_slot[0], p.output_slot[1]); }), "Q012",
             "output"));
  CHECK(says(said([](pt::pipelined& p) { p.output_layout[0] = {}; }), "Q002", "output \"w1\""));
  CHECK(says(said([](pt::pipelined& p) { std::swap(p.input_mesh[2], p.input_mesh[3]); }), "Q"));
  CHECK(says(said([](pt::pipelined& p) { p.input_layout[0] = {}; }), "Q014"));
  CHECK(says(said([](pt::pipelined& p) { p.repeated.pop_back(); }), "Q011", "values"));
  CHECK(says(said([](pt::pipelined& p) { p.unit_of[0] = 100; }), "Q011", "calls"));
  CHECK(says(said([](pt::pipelined& p) {  // (one sum twice would be complete before the last call)
               for (auto& u : p.units)
                 if (const auto n = u.gives.size(); n > 1)
                   u.gives[n - 1].slot = u.gives[n - 2].slot;
             }),
             "Q011", "units"));
  CHECK(says(said([](pt::pipelined& p) { unit_of(p, 0, 0).device.mesh.axes[0].size = 2; }), "Q011",
             "meshes"));
  CHECK(says(said([](pt::pipelined& p) { unit_of(p, 0, 0).device.mesh = {}; }), "Q011"));
  CHECK(says(
      str(pt::prove(pt::trace([](const auto& x) { return x + x; }, pt::input<float, 16, 8>("x")),
                    two_stage_pipeline())
              .error.message),
      "Q001"));
}

TEST_CASE("pipelines: a joint call runs its parts, and returns the values that others read") {
  static const pt::pipelined whole =
      pt::merged(two_stage_pipeline(), [](const auto& a, const auto& b) {
        return a.mesh == 0 ? a.transposed == b.transposed : a.microbatch + b.microbatch == 2;
      });
  REQUIRE(whole.order_of("m0") == "F0+F1 B0+B1");
  REQUIRE(whole.order_of("m1") == "F0 B0 F1+B1");
  CHECK(pt::prove(whole).proved);
  const auto changed = [](const auto& change) {
    std::vector<std::string> messages;
    for (std::size_t f = 0; f < whole.joint_functions.size(); ++f) {
      pt::pipelined p = whole;
      if (change(p.joint_functions[f])) messages.push_back(str(pt::prove(p).error.message));
    }
    CHECK(messages.size() > 0);
    return messages;
  };
  for (const auto& m : changed([](pt::joint_function& f) {
         return drop_op(f.whole.device.local, "tanh") || drop_op(f.whole.device.local, "negate");
       }))
    CHECK(says(m, "Q015 prove: the parts of a joint call ", " on mesh \"m"));
  for (const auto& m : changed([](pt::joint_function& f) {
         bool any = false;
         for (int& ahead : f.takes_ahead) any |= std::exchange(ahead, 0) != 0;
         return any;
       }))
    CHECK(says(m, "Q015"));
  for (const auto& m : changed([](pt::joint_function& f) {  // of the first microbatch twice
         bool any = false;
         for (int& ahead : f.gives_ahead) any |= std::exchange(ahead, 0) != 0;
         return any;
       }))
    CHECK(says(m, "Q015", "do not return what its function returns"));
  for (const auto& m : changed([](pt::joint_function& f) {
         pt::program& local = f.whole.device.local;
         if (f.whole.sums.empty()) return false;
         local.outputs[local.outputs.size() - 1].value = local.inputs[local.inputs.size() - 1];
         return true;
       }))
    CHECK(says(m, "Q015", "do not return what its function returns"));
  for (const auto& m : changed([](pt::joint_function& f) {
         std::swap(f.parts[0], f.parts[1]);
         return true;
       }))
    CHECK(says(m, "Q011", "joint calls"));
  for (const auto& m :
       changed([](pt::joint_function& f) {  // it claims to omit the value, but returns it
         for (char& each : f.given)
           if (each != 0) return each = 0, true;
         return false;
       }))
    CHECK(says(m, "Q015", "return a value that their function does not declare"));
  for (const auto& m : changed([](pt::joint_function& f) {
         return mutants::results_of(f) > 0 && mutants::leave_out(f, 0);
       }))
    CHECK(says(m, "Q012"));
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
  pt::pipelined p = pt::pipeline(pt::trace(step, pt::input<float, 4, 3>("xs")),
                                 pt::topology{{"m0", {{"B", 1}}}}, pt::gpipe, options);
  REQUIRE(p.own_loop >= 0);
  CHECK(pt::prove(p).proved);

  // "b" once, after all "a" and before all "c", which add the value of the last microbatch.
  int b = 0;
  while (p.units[b].piece.stage != 1) ++b;
  p.units[b].inside = false;
  for (const auto& each : p.units[b].gives) p.repeated[each.slot] = 0;
  const pt::pipelined before = p;
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
  CHECK(says(str(pt::prove(p).error.message), "Q004", "output \"total\""));
}
