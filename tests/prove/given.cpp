// The errors of `prove` for invalid arguments: codes, names, sizes, places.
#include <doctest/doctest.h>

#include <partita/cpu.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"
#include "../two_layers.hpp"

using namespace two_layers;
using data::str;

namespace {

pt::partitioned made() { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); }
std::string said(const pt::program& source, const pt::device_program& d,
                 const pt::prove_options& options = {}) {
  const pt::verdict v = pt::prove(source, d, options);
  CHECK(v.proved == !v.error);
  return str(v.error.message);
}
template <class Change>
std::string said_of(const Change& change) {
  pt::partitioned p = made();
  change(p.device);
  return said(p.source, p.device);
}

/// An op whose tile map is unknown; only its shape is known.
struct mystery {
  static constexpr std::string_view name = "mystery";
  static constexpr int operand_count = 1;
  static constexpr void infer(pt::infer_context& c) { c.result = c.operands[0]; }
};
pt::program mysterious(std::int64_t extent) {
  pt::builder b;
  const pt::tensor_type type{pt::dtype::f32, {extent}};
  const pt::value_id x[] = {pt::ops::parameter(b, "x", type)};
  b.p.outputs.push_back({b.p.append(pt::def<mystery>, x, {}, type), b.p.intern("y")});
  return b.p;
}
pt::device_program with_mystery(bool sharded) {
  pt::device_program d;
  d.local = mysterious(sharded ? 2 : 8);
  d.mesh = mesh;
  pt::layout along;
  if (sharded) along.push_back(0, 0);
  d.inputs.push_back(along);
  d.outputs.push_back(along);
  return d;
}

}  // namespace

TEST_CASE("prove: an axis that the mesh does not have is an error") {
  CHECK(said_of([](pt::device_program& d) {
          d.inputs[0] = {};
          d.inputs[0].push_back(5, 0);
        }) ==
        "Q006 prove: input \"x\" is sharded along axis 5, which the mesh {\"B\":4, \"M\":2} does "
        "not have; its axes are numbered from 0");
  CHECK(said_of([](pt::device_program& d) {
          d.mesh = pt::mesh{{"B", 4}};
          for (auto* list : {&d.inputs, &d.outputs})
            for (auto& l : *list) l = {};
        }) ==
        "Q006 prove: %x3 = all_reduce(%x2) uses axis 1, which the mesh {\"B\":4} does not have; "
        "its axes are numbered from 0");
  CHECK(said_of([](pt::device_program& d) { d.mesh.axes[1].size = 0; }) ==
        "Q006 prove: axis \"M\" has size 0");
}

TEST_CASE("prove: other numbers of inputs and outputs are errors") {
  CHECK(said_of([](pt::device_program& d) { d.local.outputs.clear(); }) ==
        "Q001 prove: the source has 3 inputs and 1 outputs, the local program 3 and 0");
  CHECK(said_of([](pt::device_program& d) { d.local.inputs.pop_back(); }) ==
        "Q001 prove: the source has 3 inputs and 1 outputs, the local program 2 and 1");
}

TEST_CASE("prove: a local program that does not verify is an error") {
  CHECK(said_of([](pt::device_program& d) { d.local.outputs[0].value = 77; }) ==
        "Q007 prove: the local program does not verify: P001 internal error: output 0 is value 77, "
        "which does not exist; please report");
  const std::string wrong_type =
      said_of([](pt::device_program& d) { d.local.types[d.local.outputs[0].value].shape[0] = 5; });
  CHECK(wrong_type.substr(0, 47) == "Q007 prove: the local program does not verify: ");
}

TEST_CASE("prove: layouts that do not match are errors") {
  CHECK(said_of([](pt::device_program& d) { d.outputs[0] = {}; }) ==
        "Q002 prove: output \"result\" is tensor<64x8xf32> on each device; its layout gives "
        "another local type for tensor<256x8xf32>");
  CHECK(said_of([](pt::device_program& d) {
          d.inputs[0].push_back(0, 1);  // "B" again
        }).substr(0, 26) == "Q002 prove: input \"x\" is t");
  CHECK(said_of([](pt::device_program& d) {
          d.inputs[0] = {};
          d.inputs[0].push_back(0, 2);  // a dimension that "x" does not have
        }).substr(0, 26) == "Q002 prove: input \"x\" is t");
  CHECK(said_of([](pt::device_program& d) {
          d.local.types[d.local.outputs[0].value].element = pt::dtype::f64;
        }).substr(0, 4) == "Q007");  // no op makes such a value
  CHECK(said_of([](pt::device_program& d) { d.outputs.clear(); }) ==
        "Q002 prove: 3 layouts for 3 inputs and 0 for 1 outputs; each needs one");
}

TEST_CASE("prove: more ops than the limit are an error") {
  const pt::partitioned p = made();
  CHECK(said(p.source, p.device, {.most_steps = 3}) ==
        "Q008 prove: the source and the local program have 13 ops together, more than the limit of "
        "3 (prove_options.most_steps)");
  CHECK(said(p.source, p.device, {.most_steps = 1000}) == "");
}

TEST_CASE("prove: an op without a tile map needs unsliced operands") {
  const pt::program source = mysterious(8);
  CHECK(said(source, with_mystery(false)) == "");
  CHECK(said(source, with_mystery(true)) ==
        "Q009 prove: %y = mystery(%x): its operands must be unsharded because it has no tile map; "
        "%x is \"x\" [{\"B\"}]; output \"y\" is computed from it; formulas first differ at "
        "element [0] of output \"y\" on device {\"B\": 0, \"M\": 0}");
}

TEST_CASE("prove: a program that is not proved is thrown") {
  CHECK(pt::proved(made()).proved);
  pt::partitioned p = made();
  p.device.outputs[0] = {};
  CHECK_THROWS_WITH_AS(pt::proved(p), doctest::Contains("Q002 prove: output"), pt::error);
}

TEST_CASE("partition proves its result if requested") {
  const auto with = [](auto proof) {
    return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3), {.prove = proof});
  };
  CHECK(with(pt::proof).proved);
#ifndef NDEBUG
  CHECK(with(pt::proof_in_debug).proved);
  CHECK(made().proved);  // the default with partita::separate
#endif
  CHECK_FALSE(with(pt::no_proof).proved);
  const auto refuses = [](const pt::program&, const pt::device_program&, pt::failure& f) {
    f.record("Q004", "an output");
    return false;
  };
  CHECK_THROWS_WITH_AS(with(refuses), doctest::Contains("Q004"), pt::error);
}
