// Writes modules with their arguments and what our own run of them gives, for run_modules.py:
//
//   write_modules FOLDER ops|random|models [FIRST LAST]
//
// NAME.mlir with NAME.npz: arguments a0, a1, ... and results r0, r1, ... as whole arrays. Of a
// program for one device of a mesh also sa0, ..., sr0, ...: where the pieces of each device start,
// one row per device.
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <partita/run/file/npz.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../../examples/models/gns.hpp"
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/serving.hpp"
#include "../../examples/models/unet.hpp"
#include "../laws/cases.hpp"
#include "../models/inputs.hpp"
#include "../random/generator.hpp"
#include "../random/schedule.hpp"

namespace {

namespace pt = partita;
using arrays = std::vector<pt::array>;

std::string folder;
int written = 0, failed = 0;

void fail(const std::string& name, std::string_view why) {
  std::cout << name << ": " << why << '\n';
  ++failed;
}

/// Where the pieces of each device start: a row per device.
pt::array starts_of(const pt::mesh& m, const pt::layout& l, const pt::shape& piece) {
  const pt::stablehlo_detail::device_numbers numbers(m);
  const std::int64_t devices = m.devices();
  pt::array a(pt::tensor_type{pt::dtype::i64, {devices, piece.rank}});
  auto* out = a.mutable_data<std::int64_t>();
  for (std::int64_t device = 0; device < devices; ++device)
    for (int d = 0; d < piece.rank; ++d) {
      std::int64_t number = 0;
      for (const auto& e : l)
        if (e.dim == d)
          number = number * m.size(e.axis) + device / numbers.stride[e.axis] % m.size(e.axis);
      *out++ = number * piece[d];
    }
  return a;
}
void put(std::vector<pt::named_array>& list, const char* name, std::size_t i, const pt::array& a) {
  list.push_back({name + std::to_string(i), a});
}
void write(const std::string& name, const pt::text& module,
           const std::vector<pt::named_array>& data) {
  if (module.view().starts_with("error")) return fail(name, module.view());
  pt::run_detail::write_file(folder + "/" + name + ".mlir", std::string(module.view()));
  pt::write_npz(folder + "/" + name + ".npz", data);
  ++written;
}
void write_source(const std::string& name, const pt::program& p, const arrays& given,
                  const pt::results& made) {
  std::vector<pt::named_array> data;
  for (std::size_t i = 0; i < given.size(); ++i) put(data, "a", i, given[i]);
  for (int i = 0; i < made.size(); ++i) put(data, "r", static_cast<std::size_t>(i), made[i]);
  write(name, pt::write_stablehlo(p), data);
}
void write_source(const std::string& name, const pt::program& p, const arrays& given) {
  write_source(name, p, given, pt::evaluate(p, given));
}
/// `made`: what the source program gives.
void write_local(const std::string& name, const pt::device_program& d, const arrays& given,
                 const pt::results& made) {
  std::vector<pt::named_array> data;
  for (std::size_t i = 0; i < given.size(); ++i) {
    const int k = static_cast<int>(i);
    put(data, "a", i, given[i]);
    put(data, "sa", i, starts_of(d.mesh, d.inputs[k], d.local.input_type(k).shape));
  }
  for (int k = 0; k < made.size(); ++k) {
    const auto i = static_cast<std::size_t>(k);
    put(data, "r", i, made[k]);
    put(data, "sr", i, starts_of(d.mesh, d.outputs[k], d.local.output_type(k).shape));
  }
  write(name, pt::write_stablehlo(d), data);
}

// ---- Every op --------------------------------------------------------------------------------

/// Many cases in one program, so that few modules are compiled.
class cases_together {
 public:
  explicit cases_together(std::string name) : name_(std::move(name)) {}
  void add(const laws::op_case& c, std::uint64_t seed) {
    const std::string stem = std::to_string(seed) + "." + std::string(c.op->name);
    std::vector<pt::value_id> x;
    data::random r{seed};
    for (std::size_t k = 0; k < c.operands.size(); ++k) {
      x.push_back(pt::ops::parameter(*b_, stem + "." + laws::parameter_name(k), c.operands[k]));
      given_.push_back(c.make != nullptr ? c.make(c.operands[k], k, r)
                                         : data::integers(c.operands[k], r, c.low, c.high));
    }
    const pt::value_id y = b_->emit(*c.op, x, c.attrs, c.declared);
    b_->p.error.raise();
    if (c.op->role == pt::op_role::tag) b_->name_last(stem + ".y");
    for (int i = 0; i < b_->p.ops.back().result_count; ++i)
      b_->p.outputs.push_back({y + i, b_->p.intern(stem + "." + std::to_string(i))});
    if (++count_ % 40 == 0) write();
  }
  void write() {
    if (b_->p.output_count() == 0) return;
    write_source(name_ + std::to_string(modules_++), b_->p, given_);
    b_ = std::make_unique<pt::builder>();
    given_.clear();
  }

 private:
  std::string name_;
  std::unique_ptr<pt::builder> b_ = std::make_unique<pt::builder>();
  arrays given_;
  int count_ = 0, modules_ = 0;
};
void write_ops() {
  cases_together all("ops");
  std::uint64_t seed = 0;
  for (const auto& c : laws::all_cases()) all.add(c, ++seed);
  all.write();
  std::vector<laws::op_case> windows;
  laws::add_halo_cases(windows);
  cases_together some("windows");
  for (std::size_t i = 0; i < windows.size(); ++i)
    if (i % 20 == 0) some.add(windows[i], ++seed);
  some.write();
}

// ---- Random programs -------------------------------------------------------------------------

void write_random(std::uint64_t first, std::uint64_t last) {
  using namespace random_test;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const test_case c = generator(seed).make();
    if (c.wild) continue;
    const std::string name = "random" + std::to_string(seed);
    const arrays given = arguments(c);
    const pt::results made = pt::evaluate(c.p, given);
    write_source(name, c.p, given, made);
    if (c.mesh.rank == 0 || c.mesh.devices() > 8) continue;
    data::random r{seed * 171 + 3};
    const auto schedule = draw_schedule(c.p, c.mesh, r);
    try {
      const auto p = pt::partition(c.p, c.mesh, schedule, {.passes = some_passes(r)});
      write_local(name + "_local", p.device, given, made);
    } catch (const pt::error&) {  // a schedule that is refused
    }
  }
}

// ---- Models ----------------------------------------------------------------------------------

struct model {
  std::string name;
  pt::program p;
  arrays given;
  pt::results made;

  template <class Limit>
  model(std::string of, const pt::program& source, const Limit& limit)
      : name(std::move(of)), p(source), given(models::inputs_of(p, limit)) {
    made = pt::evaluate(p, given);
    write_source(name, p, given, made);
  }
  template <class... Tactics>
  void on(const std::string& schedule, const pt::mesh& mesh, const Tactics&... tactics) const {
    const auto parts = pt::partition(p, mesh, pt::schedule(tactics...));
    write_local(name + "_" + schedule, parts.device, given, made);
  }
};
void write_models() {
  const pt::mesh mesh{{"batch", 4}, {"model", 2}};
  {
    using namespace paper::transformers;
    const auto limit = [](std::string_view) { return 12; };
    const model t(
        "t32",
        paper::trace_training_step(models::small_transformer<paper::language_model_sizes>(2)),
        limit);
    t.on("bp", mesh, BP);
    t.on("bp_mp", mesh, BP, MP);
    t.on("bp_mp_z2", mesh, BP, MP, Z2);
    t.on("bp_mp_z3", mesh, BP, MP, Z3);
    t.on("bp_mp_z3_emb", mesh, BP, MP, Z3, EMB);
    t.on("mp_emb", mesh, MP, EMB);
  }
  {
    using namespace paper::serving;
    const model s("it32",
                  paper::trace_serving({.layers = 1,
                                        .width = 16,
                                        .heads = 4,
                                        .key = 4,
                                        .hidden = 32,
                                        .vocabulary = 40,
                                        .batch = 8,
                                        .prompt = 5,
                                        .tokens = 7}),
                  [](std::string_view) { return 40; });
    s.on("bp_mp", mesh, BP, MP);
    s.on("bp_mq_mp", mesh, BP, MQ, MP);
  }
  {
    using namespace paper::diffusion;
    const model u("unet",
                  paper::trace_training_step({.batch = 4,
                                              .height = 8,
                                              .width = 4,
                                              .channels = 3,
                                              .base = 16,
                                              .blocks = 1,
                                              .pairs = 1,
                                              .heads = 2}),
                  [](std::string_view) { return 1; });
    u.on("bp_mp_z3", mesh, BP, MP, Z3);
    u.on("bp_z2", mesh, BP, Z2);
    u.on("space", {{"batch", 2}, {"space", 2}}, BP, space);
  }
  {
    const model g("gns",
                  paper::trace_training_step({.nodes = 6,
                                              .edges = 12,
                                              .node_features = 3,
                                              .edge_features = 4,
                                              .global_features = 2,
                                              .edge_targets = 2,
                                              .global_targets = 1,
                                              .latent = 8,
                                              .hidden = 16,
                                              .mlp_layers = 2,
                                              .steps = 2}),
                  [](std::string_view) { return 6; });
    g.on("es", mesh, paper::graphs::ES);
  }
}

}  // namespace

int main(int count, char** words) try {
  if (count < 3) {
    std::cout << "write_modules FOLDER ops|random|models [FIRST LAST]\n";
    return 2;
  }
  folder = words[1];
  const std::string what = words[2];
  const auto number = [&](int i, std::uint64_t otherwise) {
    return count > i ? std::strtoull(words[i], nullptr, 10) : otherwise;
  };
  if (what == "ops") write_ops();
  if (what == "random") write_random(number(3, 1), number(4, 40));
  if (what == "models") write_models();
  std::cout << written << " modules\n";
  return failed == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::cout << e.what() << '\n';
  return 1;
}
