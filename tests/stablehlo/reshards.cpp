// Every change of layout of small meshes: its results, its proof, its text and its StableHLO.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/spmd/reshard.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

/// Appends layouts of a value of this rank over all axes, and over some of them.
void add_all(const pt::mesh& m, int rank, const pt::layout& l, std::vector<pt::layout>& all) {
  for (const auto& each : all)
    if (each == l) return;
  all.push_back(l);
  for (int axis = 0; axis < m.rank; ++axis)
    for (int d = 0; d < rank && l.dim_of(axis) < 0; ++d) {
      pt::layout more = l;
      more.push_back(axis, d);
      add_all(m, rank, more, all);
    }
}

/// A program that accepts its input in one layout and returns it in another.
struct reshards {
  pt::program source;
  pt::device_program local;

  reshards(const pt::mesh& m, const pt::tensor_type& type, const pt::layout& from,
           const pt::layout& to) {
    source = taking(type);
    source.outputs.push_back({source.inputs[0], source.intern("y")});
    local.mesh = m;
    local.local = taking({type.element, from.local(type.shape, m)});
    pt::value_id v = local.local.inputs[0];
    pt::reshard(from, to, type, m, {}, [&](const pt::reshard_step& s) {
      v = pt::append(local.local, s.what, v, {type.element, s.after.local(type.shape, m)});
    });
    local.local.outputs.push_back({v, local.local.intern("y")});
    local.inputs = {from};
    local.outputs = {to};
    local.input_types = local.output_types = {type};
  }
  static pt::program taking(const pt::tensor_type& type) {
    pt::program p;
    p.inputs.push_back(p.append(pt::def<pt::op::parameter>, {}, {}, type));
    p.ops.back().name = p.intern("x");
    return p;
  }
};

void check(const pt::mesh& m, const pt::tensor_type& type, const pt::layout& from,
           const pt::layout& to) {
  const reshards r(m, type, from, to);
  const std::string text = str(pt::print(r.local));
  CAPTURE(text);
  const pt::failure bad = pt::verify(r.local);
  CHECK_MESSAGE(!bad, str(bad.message));
  const auto x = data::arguments(r.source, 7);
  CHECK(pt::equal(pt::emulate(r.local, x).only(), x[0]));
  const pt::verdict proof = pt::prove(r.source, r.local);
  CHECK_MESSAGE(proof.proved, str(proof.error.message));
  // The same text again, with the same attributes.
  pt::device_program again = r.local;
  again.local = pt::parse(text, again.mesh);
  CHECK(!again.local.error);
  CHECK(str(pt::print(again)) == text);
  if (again.mesh.rank == m.rank)  // the text needs all parts of axes
    CHECK(pt::equal(pt::emulate(again, x).only(), x[0]));
  // From StableHLO: perhaps other collectives, but the same result.
  const pt::device_program read =
      pt::read_local_stablehlo(pt::write_stablehlo(r.local).view(), m.whole());
  REQUIRE_MESSAGE(!read.local.error, str(read.local.error.message));
  CHECK(pt::equal(pt::emulate(read, x).only(), x[0]));
  if (read.mesh.rank != m.rank) return;  // numbers of parts of axes that it does not name
  const pt::verdict read_proof = pt::prove(r.source, read);
  CHECK_MESSAGE(read_proof.proved, (str(read_proof.error.message) + "\n" + str(pt::print(read))));
}
/// The same with the axes of one collective in another order: a program that differs is not proved.
void check_mutants(const pt::mesh& m, const pt::tensor_type& type, const pt::layout& from,
                   const pt::layout& to, int& wrong) {
  const reshards r(m, type, from, to);
  for (pt::op_id o = 0; o < r.local.local.op_count(); ++o) {
    const auto id = r.local.local.op(o).def->id;
    if (id != pt::def<pt::op::permute>.id && id != pt::def<pt::op::all_to_all>.id) continue;
    const pt::collective what = r.local.local.collective_of(o);
    if (what.from.count < 2) continue;
    reshards other = r;
    // The first two axes change places in the list of the senders, or of the gathered axes.
    const std::size_t first =
        static_cast<std::size_t>(r.local.local.op(o).attr_begin) + (what.several() ? 3 : 2);
    const std::size_t step = what.several() ? 2 : 1;
    std::swap(other.local.local.attr_list[first], other.local.local.attr_list[first + step]);
    if (pt::verify(other.local)) continue;
    const auto x = data::arguments(r.source, 7);
    bool same = false;
    try {
      same = pt::equal(pt::emulate(other.local, x).only(), x[0]);
    } catch (const pt::error&) {  // replicas differ between devices
    }
    const bool proved = pt::prove(r.source, other.local).proved;
    wrong += !same;
    CAPTURE(str(pt::print(other.local)));
    CHECK((same || !proved));
  }
}
void check_all(const pt::mesh& m, const pt::tensor_type& type, std::size_t every) {
  std::vector<pt::layout> all;
  add_all(m, type.shape.rank, {}, all);
  std::size_t n = 0;
  for (const auto& from : all)
    for (const auto& to : all)
      if (n++ % every == 0) check(m, type, from, to);
}

pt::mesh split(pt::mesh m, int axis, std::int64_t major) {
  m.split(axis, major);
  return m;
}

}  // namespace

TEST_CASE("collectives with axes in a wrong order are not proved") {
  int wrong = 0;
  for (const pt::mesh& m : {pt::mesh{{"A", 2}, {"B", 2}}, pt::mesh{{"A", 2}, {"B", 3}},
                            pt::mesh{{"A", 4}, {"B", 2}}, pt::mesh{{"A", 2}, {"B", 2}, {"C", 2}}}) {
    std::vector<pt::layout> all;
    add_all(m, 2, {}, all);
    std::size_t n = 0;
    for (const auto& from : all)
      for (const auto& to : all)
        if (n++ % (m.rank == 3 ? 5 : 1) == 0)
          check_mutants(m, {pt::dtype::i32, {24, 24}}, from, to, wrong);
  }
  CHECK(wrong > 100);
}

TEST_CASE("changes of layout: emulated, proved, printed, written as StableHLO") {
  const auto i32 = pt::dtype::i32;
  check_all({{"A", 2}, {"B", 2}}, {i32, {4, 8}}, 1);
  check_all({{"A", 2}, {"B", 3}}, {i32, {12, 6}}, 1);
  check_all({{"A", 4}, {"B", 2}}, {i32, {8}}, 1);
  check_all({{"A", 2}, {"B", 2}}, {i32, {4, 4, 4}}, 3);
  check_all({{"A", 2}, {"B", 2}, {"C", 2}}, {i32, {8, 8}}, 7);
  check_all({{"A", 2}, {"B", 2}, {"C", 2}}, {i32, {8, 8, 8}}, 61);
  check_all({{"A", 2}, {"B", 4}, {"C", 2}}, {i32, {16, 16}}, 11);
  // Parts of an axis.
  check_all(split({{"A", 4}}, 0, 2), {i32, {4, 8}}, 1);
  check_all(split({{"A", 4}, {"B", 2}}, 0, 2), {i32, {8, 8}}, 7);
}
