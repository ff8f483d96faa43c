// `prove` at compile time.
#include <limits>

#include <partita/prove/prove.hpp>
#include <partita/spmd/parse.hpp>

#include "../two_layers.hpp"

namespace pt = partita;
using namespace two_layers;

static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3));
  return pt::prove(p).proved;
}());

// A layout that does not match is reported.
static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3));
  pt::device_program wrong = p.device;
  wrong.outputs[0] = {};  // replicated, it claims
  const pt::verdict v = pt::prove(p.source, wrong);
  return !v.proved && v.error.message.view().substr(0, 11) == "Q002 prove:";
}());

// A missing reduction is reported at compile time, too.
constexpr bool says(std::string_view rest, std::string_view wanted) {
  const pt::program source =
      pt::parse(pt::concat("func @main(%x: tensor<8x4xf32>) {\n", rest, "}\n"));
  pt::device_program d;
  d.local = pt::parse(
      pt::concat("func @main(%x: tensor<8x2xf32>) attributes {mesh = {\"M\":2}} {\n", rest, "}\n"),
      d.mesh);
  pt::layout columns;
  columns.push_back(0, 1);
  d.inputs.push_back(columns);
  d.outputs.push_back({});
  const pt::verdict v = pt::prove(source, d);
  return v.error.message.view().find(wanted) != std::string_view::npos;
}
static_assert(
    says("  %m = reduce(%x) {max, dims=[1]} : tensor<8xf32>\n"
         "  return %m : tensor<8xf32>\n",
         "; an all_reduce <@max> <\"M\"> is missing"));
static_assert(
    says("  %m = reduce(%x) {max, dims=[1]} : tensor<8xf32>\n"
         "  %y = tanh(%m) : tensor<8xf32>\n  return %y : tensor<8xf32>\n",
         "; an all_reduce <@max> <\"M\"> of %"));

// Infinite numbers are not a compile error.
static_assert([] {
  using namespace pt::prove_detail;
  algebra a;
  const element x = a.unknown(pt::dtype::f32, drawing(1).drawn()),
                infinite = real(std::numeric_limits<double>::infinity());
  const element sum = a.sum(pt::dtype::f32, infinite, real(1));
  return !a.product(pt::dtype::f32, infinite, x).known && sum == infinite &&
         !a.quotient(pt::dtype::f32, x, infinite).known;
}());

// Elements prove what claims about tensors do not: a product that is moved into a sum.
constexpr pt::verdict product(std::string_view last, std::int64_t most) {
  const pt::program source = pt::parse(
      "func @main(%x: tensor<4xf32>, %y: tensor<4xf32>) {\n"
      "  %s = add(%x, %y) : tensor<4xf32>\n"
      "  %z = multiply(%s, %x) : tensor<4xf32>\n  return %z : tensor<4xf32>\n}\n");
  pt::device_program d;
  d.local =
      pt::parse(pt::concat("func @main(%x: tensor<2xf32>, %y: tensor<2xf32>) attributes {mesh = "
                           "{\"B\":2}} {\n  %s = multiply(%x, %x) : tensor<2xf32>\n"
                           "  %t = multiply(",
                           last,
                           ") : tensor<2xf32>\n  %z = add(%s, %t) : tensor<2xf32>\n"
                           "  return %z : tensor<2xf32>\n}\n"),
                d.mesh);
  pt::layout rows;
  rows.push_back(0, 0);
  d.inputs.push_back(rows);
  d.inputs.push_back(rows);
  d.outputs.push_back(rows);
  return pt::prove(source, d, {.most_elements_in_constants = most});
}
static_assert(product("%x, %y", 1000).by_elements);
static_assert(!product("%x, %y", 0).proved);
static_assert(!product("%y, %y", 1000).proved &&
              product("%y, %y", 1000)
                  .error.message.view()
                  .ends_with("; formulas first differ at element [0] of output \"z\" on device "
                             "{\"B\": 0}"));

// `check` proves if requested, or with its figures.
constexpr auto step = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };
constexpr auto proved_step = [] { return pt::proved(step()); };
static_assert(pt::check<step>.proved);
static_assert(pt::check<proved_step>.proved && pt::check<proved_step>.collectives.all_reduce == 1);

// Or when the program is made: by an option, whose errors are those of `partition`.
constexpr auto checked_step = [] {
  return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3), {.prove = pt::proof});
};
static_assert(pt::check<checked_step>.proved);
constexpr auto refuses = [](const pt::program&, const pt::device_program& made, pt::failure& f) {
  f.record("Q003", made.local.op_count(), " ops");
  return false;
};
static_assert([] {
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP), {.prove = refuses});
  return !p.proved && p.error.message.view().substr(0, 4) == "Q003";
}());
static_assert([] {  // only at run time
  const auto p = pt::partition(traced(), mesh, pt::schedule(BP), {.prove = pt::proof_in_debug});
  return !p.proved && !p.error;
}());
