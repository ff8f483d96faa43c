/// Writes modules with their arguments and the results of our own run, for run_modules.py:
///
///   write_modules FOLDER ops|collectives|random|models|pipelines [FIRST LAST]
///   write_modules FOLDER modules FROM     reads modules from another folder, writes them again
///
/// NAME.mlir comes with NAME.npz: arguments a0, a1, ... and results r0, r1, ... as global arrays.
/// For a program for one device of a mesh, NAME.npz also has sa0, ..., sr0, ...: the start of each
/// device's blocks, one row per device. For a global program with shardings it also has ta0, ...,
/// tr0, ...: the shapes of blocks. A pipeline is NAME.json with NAME.npz, and NAME/FUNCTION.mlir
/// for each function, by its number.
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include <partita/mpmd/merge.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/mpmd/write_functions.hpp>
#include <partita/report/pipeline_json.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write_annotated.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../../examples/models/gns.hpp"
#include "../../examples/models/language_model.hpp"
#include "../../examples/models/serving.hpp"
#include "../../examples/models/unet.hpp"
#include "../laws/cases.hpp"
#include "../models/inputs.hpp"
#include "../random/generator.hpp"
#include "../random/schedule.hpp"
#include "../tied_training.hpp"

namespace {

namespace pt = partita;
using arrays = std::vector<pt::array>;

std::string folder;
int written = 0, failed = 0;

void fail(const std::string& name, std::string_view why) {
  std::cout << name << ": " << why << '\n';
  ++failed;
}

/// Returns the start of each device's blocks: a row per device.
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
pt::array extents_of(const pt::shape& s) {
  pt::array a(pt::tensor_type{pt::dtype::i64, {s.rank}});
  for (int d = 0; d < s.rank; ++d) a.mutable_data<std::int64_t>()[d] = s[d];
  return a;
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
/// Returns arguments, results, and the starts of the blocks of both.
std::vector<pt::named_array> pieces(const pt::device_program& d, const arrays& given,
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
  return data;
}
/// `made`: the results of the source program.
void write_local(const std::string& name, const pt::device_program& d, const arrays& given,
                 const pt::results& made) {
  write(name, pt::write_stablehlo(d), pieces(d, given, made));
}
/// Writes the global program with shardings.
void write_annotated(const std::string& name, const pt::partitioned& p, const arrays& given,
                     const pt::results& made) {
  auto data = pieces(p.device, given, made);
  const pt::program& local = p.device.local;
  for (int i = 0; i < local.input_count(); ++i)
    put(data, "ta", static_cast<std::size_t>(i), extents_of(local.input_type(i).shape));
  for (int i = 0; i < local.output_count(); ++i)
    put(data, "tr", static_cast<std::size_t>(i), extents_of(local.output_type(i).shape));
  write(name, pt::write_annotated_stablehlo(p), data);
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

// ---- Modules of other programs ---------------------------------------------------------------

/// Writes NAME.mlir with NAME.npz, its arguments. Also writes them for two devices, each with a
/// block of the first argument along its first dimension.
void write_modules_of(const std::string& from) {
  for (const auto& entry : std::filesystem::directory_iterator(from)) {
    if (entry.path().extension() != ".mlir") continue;
    const std::string name = entry.path().stem().string();
    const pt::program p = pt::read_stablehlo(pt::run_detail::read_file(entry.path().string()));
    if (p.error) {
      fail(name, p.error.message.view());
      continue;
    }
    arrays given;
    for (const auto& each : pt::read_npz(from + "/" + name + ".npz")) given.push_back(each.value);
    const pt::results made = pt::evaluate(p, given);
    write_source(name, p, given, made);
    const std::string first(p.input_name(0));
    const pt::partitioned q =
        pt::partition(p, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{first, 0}})));
    write_local(name + ".local", q.device, given, made);
  }
}

// ---- Every collective ------------------------------------------------------------------------

/// Eight devices, with an axis in two parts; each device has a different block of dimension 0.
class collectives_together {
 public:
  using dtype = pt::dtype;
  using tensor_type = pt::tensor_type;

  collectives_together() { start(); }
  ~collectives_together() { write(); }

  /// Adds `what` on a block of this shape.
  void add(const pt::collective& what, dtype element, std::int64_t low = -9,
           std::int64_t high = 9) {
    const tensor_type from{element, {2, 8, 4}};
    tensor_type to{element, what.after(from.shape, d_.mesh)};
    finish(pt::append(d_.local, what, input(from, low, high), to));
  }
  void add_pair(const pt::collective& what) {
    const tensor_type x{dtype::f32, {2, 3}}, y{dtype::i32, {1, 4}};
    const pt::value_id operands[] = {input(x, -9, 9), input(y, -9, 9)};
    d_.local.append_op(pt::def<pt::op::all_reduce>, operands,
                       pt::op::all_reduce::attributes_of(what));
    const pt::value_id first = d_.local.append_result(x), second = d_.local.append_result(y);
    output(first);
    finish(second);
  }
  void add_start(std::int64_t distance, const pt::axis_list& axes, dtype element) {
    const pt::value_id at = pt::append_shard_start(d_.local, distance, axes, element);
    const pt::value_id operands[] = {at};
    finish(d_.local.append(pt::def<pt::op::reshape>, operands, {}, tensor_type{element, {1}}));
  }

 private:
  pt::device_program d_;
  arrays given_;
  data::random random_{5};
  int count_ = 0, modules_ = 0;

  void start() {
    d_ = {};
    given_.clear();
    d_.mesh = {{"A", 4}, {"B", 2}};
    d_.mesh.split(0, 2);
  }
  pt::layout own() const {
    pt::layout l;
    for (int i = 0; i < d_.mesh.rank; ++i) l.push_back(d_.mesh.order[i], 0);
    return l;
  }
  tensor_type whole(tensor_type t) const {
    t.shape[0] *= d_.mesh.devices();
    return t;
  }
  pt::value_id input(const tensor_type& local, std::int64_t low, std::int64_t high) {
    const pt::value_id v = d_.local.append(pt::def<pt::op::parameter>, {}, {}, local);
    d_.local.ops.back().name = d_.local.intern("x" + std::to_string(d_.local.input_count()));
    d_.local.inputs.push_back(v);
    d_.inputs.push_back(own());
    d_.input_types.push_back(whole(local));
    given_.push_back(data::integers(whole(local), random_, low, high));
    return v;
  }
  void output(pt::value_id v) {
    d_.outputs.push_back(own());
    d_.output_types.push_back(whole(d_.local.type(v)));
    d_.local.outputs.push_back({v, d_.local.intern("y" + std::to_string(d_.local.output_count()))});
  }
  void finish(pt::value_id v) {
    output(v);
    if (++count_ % 12 == 0) write();
  }
  void write() {
    if (d_.local.output_count() == 0) return;
    write_local("collectives" + std::to_string(modules_++), d_, given_, pt::emulate(d_, given_));
    start();
  }
};
/// The axes in this order; a collective that cuts or joins does so along dimension `dim`.
pt::collective along(pt::collective::kind_type kind, std::initializer_list<int> axes,
                     int dim = pt::no_dim) {
  pt::collective what;
  what.kind = kind;
  for (int axis : axes) what.axes.push_back(axis, dim);
  return what;
}
void write_collectives() {
  using pt::collective;
  using pt::combiner;
  using pt::dtype;
  collectives_together all;
  const std::initializer_list<int> lists[] = {{0}, {1}, {2}, {0, 2}, {0, 1}, {1, 0}, {2, 0, 1}};
  for (const auto& axes : lists) {
    all.add(along(collective::all_reduce, axes), dtype::f32);
    all.add(along(collective::all_gather, axes, 1), dtype::i32);
    all.add(along(collective::all_gather, axes, 2), dtype::f32);
    all.add(along(collective::reduce_scatter, axes, 1), dtype::f64);
    all.add(along(collective::all_slice, axes, 1), dtype::u8);
    collective turned = along(collective::all_to_all, axes, 1);
    turned.gathered = 2;
    turned.sliced = 1;
    all.add(turned, dtype::f32);
    for (const std::int64_t shift : {1, -1, 2, -3, 8}) {
      collective sent = along(collective::permute, axes);
      sent.map.shift = shift;
      all.add(sent, dtype::f32);
      sent.combine = shift > 0 ? combiner::max : combiner::min;
      all.add(sent, shift % 2 == 0 ? dtype::i16 : dtype::bf16);
      sent.combine = combiner::add;
      sent.map.form = pt::device_map::ring;
      all.add(sent, dtype::i64);
    }
    collective mirrored = along(collective::permute, axes);
    mirrored.map.form = pt::device_map::mirrored;
    all.add(mirrored, dtype::u32);
  }
  for (const dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i8, dtype::i16,
                        dtype::i32, dtype::i64, dtype::u8, dtype::u16, dtype::u32, dtype::u64})
    for (const combiner how : {combiner::add, combiner::max, combiner::min, combiner::multiply}) {
      collective what = along(collective::all_reduce, {0, 1});
      what.combine = how;
      all.add(what, t, -2, 2);
      what = along(collective::reduce_scatter, {2}, 2);
      what.combine = how;
      all.add(what, t, -2, 2);
    }
  for (const dtype t : {dtype::boolean, dtype::i32, dtype::u64})
    for (const combiner how : {combiner::logical_and, combiner::logical_or}) {
      collective what = along(collective::all_reduce, {2, 1});
      what.combine = how;
      all.add(what, t, 0, 4000);
    }
  collective both = along(collective::all_gather, {0}, 1);
  both.axes.push_back(1, 2);
  both.axes.push_back(2, 2);
  for (const auto kind :
       {collective::all_gather, collective::reduce_scatter, collective::all_slice}) {
    both.kind = kind;
    all.add(both, dtype::f32);
  }
  all.add_pair(along(collective::all_reduce, {0}));
  for (const dtype t : {dtype::i32, dtype::i64, dtype::u8, dtype::f32}) {
    pt::axis_list axes;
    for (int axis : {2, 1}) axes.push_back(axis);
    all.add_start(3, axes, t);
  }
}

// ---- Random programs -------------------------------------------------------------------------

void write_random(std::uint64_t first, std::uint64_t last, bool wild = false) {
  using namespace random_test;
  for (std::uint64_t seed = first; seed <= last; ++seed) {
    const test_case c = generator(seed).make();
    if (c.wild != wild) continue;
    const std::string name = "random" + std::to_string(seed);
    const arrays given = arguments(c);
    const pt::results made = pt::evaluate(c.p, given);
    write_source(name, c.p, given, made);
    if (c.mesh.rank == 0 || c.mesh.devices() > 8) continue;
    data::random r{seed * 171 + 3};
    const auto schedule = draw_schedule(c, r);
    try {
      const auto p = pt::partition(c.p, c.mesh, schedule, {.passes = some_passes(c, r)});
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
  /// With shardings of arguments, results, and inner values that the schedule decided.
  template <class... Tactics>
  void annotated_on(const std::string& schedule, const pt::mesh& mesh,
                    const Tactics&... tactics) const {
    write_annotated(name + "_" + schedule + "_annotated",
                    pt::partition(p, mesh, pt::schedule(tactics...)), given, made);
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
    t.annotated_on("bp_mp_z3", mesh, BP, MP, Z3);
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
    s.annotated_on("bp_mq_mp", mesh, BP, MQ, MP);
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
    u.annotated_on("bp_z2", mesh, BP, Z2);
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
    g.annotated_on("es", mesh, paper::graphs::ES);
  }
}

// ---- Pipelines -------------------------------------------------------------------------------

void write_pipeline(const std::string& name, const pt::pipelined& p, const arrays& given,
                    const pt::results& made) {
  const pt::exported_pipeline e = pt::export_calls(p);
  std::filesystem::create_directory(folder + "/" + name);
  for (int f = 0; f < static_cast<int>(e.functions.size()); ++f) {
    const pt::text module = pt::write_stablehlo(p, e, f);
    if (module.view().starts_with("error")) return fail(name, module.view());
    pt::run_detail::write_file(folder + "/" + name + "/" + std::to_string(f) + ".mlir",
                               std::string(module.view()));
  }
  std::vector<pt::named_array> data;
  for (std::size_t i = 0; i < given.size(); ++i) put(data, "a", i, given[i]);
  for (int i = 0; i < made.size(); ++i) put(data, "r", static_cast<std::size_t>(i), made[i]);
  pt::run_detail::write_file(folder + "/" + name + ".json",
                             std::string(pt::pipeline_json(p, e).view()));
  pt::write_npz(folder + "/" + name + ".npz", data);
  ++written;
}
void write_pipelines() {
  const pt::program f = tied::tied_training();
  const arrays x = tied::tied_arguments(f);
  const pt::results made = pt::evaluate(f, x);
  const pt::topology equal{{"m0", {{"B", 2}, {"M", 2}}}, {"m1", {{"B", 2}, {"M", 2}}}},
      uneven{{"m0", {{"B", 2}, {"M", 2}}}, {"m1", {{"M", 4}}}},
      four{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}, {"m2", {{"B", 2}}}, {"m3", {{"B", 2}}}};
  constexpr auto BP = pt::manual("B", {{"tokens", 0}, {"targets", 0}}, "BP");
  constexpr auto MP = pt::manual("M", {{"params.layers.*.up", 1}}, "MP");
  constexpr auto Z3 = pt::manual(
      "B", {{"params", pt::first_divisible_dim}, {"state", pt::first_divisible_dim}}, "Z3");
  const auto in_two = [](const pt::pipeline_order& order) {
    return pt::pipeline(
        {.stages = {{"embedding", "layers.0", "layers.1"}, {"layers.2", "layers.3", "head"}},
         .batch = {{"tokens", 0}, {"targets", 0}},
         .microbatches = 4,
         .order = order},
        "PP");
  };
  const auto four_stages = pt::pipeline(
      {.stages = {{"embedding", "layers.0"}, {"layers.1"}, {"layers.2"}, {"layers.3", "head"}},
       .batch = {{"tokens", 0}, {"targets", 0}},
       .microbatches = 8,
       .order = pt::zb_h1},
      "PP");
  write_pipeline("bp_mp", pt::partition(f, equal, pt::schedule(in_two(pt::one_f_one_b), BP, MP)), x,
                 made);
  write_pipeline("bp_z3", pt::partition(f, four, pt::schedule(four_stages, BP, Z3)), x, made);
  const auto p = pt::partition(f, uneven, pt::schedule(in_two(pt::one_f_one_b), BP, MP, Z3));
  write_pipeline("uneven_again", pt::rematerialized(p), x, made);
}

}  // namespace

int main(int count, char** words) try {
  if (count < 3) {
    std::cout << "write_modules FOLDER ops|collectives|random|models|pipelines [FIRST LAST]\n";
    return 2;
  }
  folder = words[1];
  const std::string what = words[2];
  const auto number = [&](int i, std::uint64_t otherwise) {
    return count > i ? std::strtoull(words[i], nullptr, 10) : otherwise;
  };
  if (what == "ops") write_ops();
  if (what == "modules" && count > 3) write_modules_of(words[3]);
  if (what == "collectives") write_collectives();
  if (what == "random") write_random(number(3, 1), number(4, 40));
  if (what == "wild") write_random(number(3, 1), number(4, 40), true);
  if (what == "models") write_models();
  if (what == "pipelines") write_pipelines();
  std::cout << written << " modules\n";
  return failed == 0 ? 0 : 1;
} catch (const std::exception& e) {
  std::cout << e.what() << '\n';
  return 1;
}
