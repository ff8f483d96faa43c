// The exact texts of explain, replicated, diff and the reports of conflicts.
#include <doctest/doctest.h>

#include <algorithm>

#include <partita/partita.hpp>
#include <string>
#include <string_view>

#include "../../examples/models/language_model.hpp"

namespace {

namespace pt = partita;

std::string str(const pt::text& t) { return std::string(t.view()); }

constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");

auto chain() {
  return pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                   pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                   pt::input<float, 16, 8>("w2"));
}
auto square() { return pt::input<float, 8, 8>("x"); }

/// The lines of `explain` before the sums.
std::string lines(const pt::partitioned& p) {
  const std::string all = str(pt::explain(p));
  return all.substr(0, all.find("in all:\n"));
}
/// Returns the same tactic, which does not settle conflicts between its layouts.
auto unsettled(const auto& tactic) { return pt::amalgamated(tactic.name(), tactic); }
/// Returns the text of `settle` for each remaining conflict, one per line.
std::string settlements(const pt::partitioned& p) {
  std::string out;
  for (const auto& k : p.core.conflicts) out += str(pt::settle(p, k)) + '\n';
  return out;
}

}  // namespace

TEST_CASE("explain shows the error of an invalid program") {
  pt::partitioned wrong;
  wrong.error.record("X001", "a mistake");
  CHECK(str(pt::print(wrong)) == "error: X001 a mistake\n");
  CHECK(str(pt::explain(wrong)) == "error: X001 a mistake\n");
}

TEST_CASE("explain has a line for each collective, and sums") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP, Z3));
  CHECK(
      str(pt::explain(p)) ==
      R"(all_gather <"B">  %w1   192 bytes  x1  Z3  matmul(%x, %w1) needs it unsharded: its loop over "B" does not slice it
all_gather <"B">  %w2   192 bytes  x1  Z3  matmul(%x1, %w2) needs it unsharded: its loop over "B" does not slice it
all_reduce <"M">  %x2  2048 bytes  x1  MP  matmul(%x1, %w2) leaves a sum over "M"
in all:
  all_gather      x2   384 bytes
  all_reduce      x1  2048 bytes
  reduce_scatter  x0     0 bytes
  all_to_all      x0     0 bytes
  all             x3  2432 bytes
messages along "B" 6, along "M" 2
)");
}

TEST_CASE("collectives of a derivative name the op that it belongs to") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        auto loss = [&](auto v) {
          auto y = matmul(x, v);
          return sum(y * y);
        };
        return pt::output("w", w - pt::grad(loss, w));
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 4>("w"));
  const auto p = pt::partition(f, mesh, pt::schedule(BP, pt::manual("B", {{"w", 0}}, "Z3")));
  CHECK(
      lines(p) ==
      R"(all_gather <"B">      %w   96 bytes  x1  Z3  matmul(%x, %w) needs it unsharded: its loop over "B" does not slice it
reduce_scatter <"B">  %x7  96 bytes  x1  BP  dot_general(%x, %x6) leaves a sum over "B", which its uses slice (backward of matmul(%x, %w))
)");
}

TEST_CASE("collectives in a loop count once per iteration") {
  const auto f = pt::trace(
      [](auto x, auto w1, auto w2) {
        return pt::for_loop(
            0, 6, [&](auto, auto h) { return h + matmul(tanh(matmul(h, w1)), w2); }, x);
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w1"), pt::input<float, 16, 8>("w2"));
  const auto p = pt::partition(f, mesh, pt::schedule(BP, MP));
  CHECK(str(pt::explain(p)) ==
        R"(all_reduce <"M">  %x8  128 bytes  x6  MP  matmul(%x7, %x3) leaves a sum over "M"
in all:
  all_gather      x0  0 written    0 bytes
  all_reduce      x6  1 written  768 bytes
  reduce_scatter  x0  0 written    0 bytes
  all_to_all      x0  0 written    0 bytes
  all             x6  1 written  768 bytes
messages along "M" 12
)");
}

TEST_CASE("each reason for a collective has a text") {
  const auto run = [](auto model, auto... tactics) {
    return lines(pt::partition(pt::trace(model, square()), mesh, pt::schedule(tactics...),
                               {.passes = {.relocate = false}}));
  };
  const auto rows = pt::manual("M", {{"x", 0}}, "rows");
  CHECK(run([](auto x) { return pt::reduce_max<0>(x); }, rows) ==
        R"(all_reduce <"M">  %x1  32 bytes  x1  rows  reduce(%x) leaves a maximum over "M"
)");
  CHECK(
      run([](auto x) { return pt::sort<0>(x); }, rows) ==
      R"(all_gather <"M">  %x  128 bytes  x1  rows  sort(%x) needs it unsharded: it has no loop over "M", since along dimension 0 the position of an element depends on all others
)");
  const auto tagged = [](auto x) { return pt::tag("y", tanh(pt::tag("t", exp(x)))); };
  CHECK(
      run(tagged, unsettled(pt::manual("M", {{"t", 1}, {"x", 0}}, "both"))) ==
      R"(all_gather <"M">  %x  128 bytes  x1  both  exp(%x) needs it unsharded: a conflict left it without a loop over "M"
)");
  CHECK(
      run(tagged, pt::manual("M", {{"t", pt::replicated}, {"x", 0}}, "whole")) ==
      R"(all_gather <"M">  %x1  128 bytes  x1  whole  tag %t needs it unsharded: it is kept replicated along "M"
)");
  CHECK(run([](auto x) { return pt::output("y", tanh(x)); },
            pt::manual("M", {{"y", pt::replicated}}, "whole"), rows) ==
        R"(all_gather <"M">  %y  128 bytes  x1  rows  an action requests it
)");
}

TEST_CASE("explain covers values that loops carry and operands of branches") {
  const auto f = pt::trace(
      [](auto x) {
        return pt::for_loop(
            0, 3, [](auto, auto h) { return pt::transpose<1, 0>(h); }, x);
      },
      square());
  const auto p =
      pt::partition(f, {{"M", 2}}, pt::schedule(unsettled(pt::manual("M", {{"x", 0}}, "rows"))),
                    {.passes = {.relocate = false}});
  CHECK(
      lines(p) ==
      R"(all_gather <"M">  %x2  128 bytes  x3  rows  transpose(%x2) needs it unsharded: a conflict left it without a loop over "M"
)");
  CHECK(
      settlements(p) ==
      R"(would be settled by tag("x2", x) on %x2 and manual("M", {{"x2", replicated}}) as an earlier tactic (#tile<0>), or by tag("x4", x) on %x4 and manual("M", {{"x4", replicated}}) as an earlier tactic (#tile<1>)
)");
  CHECK(str(pt::print_replicated(p)) ==
        R"(256 bytes  x 2 copies  %x4  transpose  tensor<8x8xf32>  along "M"
replicated by default: 256 bytes on one device, in 1 value
)");

  const auto g = pt::trace(
      [](auto x, auto y, auto which) {
        return pt::cond(
            which, [](auto a, auto) { return tanh(a); }, [](auto, auto b) { return exp(b); }, x, y);
      },
      square(), pt::input<float, 8, 8>("y"), pt::input<bool>("which"));
  const auto q = pt::partition(
      g, {{"M", 2}}, pt::schedule(unsettled(pt::manual("M", {{"x", 0}, {"y", 1}}, "both"))));
  CHECK(
      lines(q) ==
      R"(all_gather <"M">  %x7  128 bytes  x1  both  case needs it unsharded: a conflict left it without a loop over "M"
all_gather <"M">  %x8  128 bytes  x1  both  case needs it unsharded: a conflict left it without a loop over "M"
)");
  CHECK(
      settlements(q) ==
      R"(would be settled by tag("x7", x) on %x7 and manual("M", {{"x7", replicated}}) as an earlier tactic (#tile<0>), or by tag("x8", x) on %x8 and manual("M", {{"x8", replicated}}) as an earlier tactic (#tile<1>)
)");
}

TEST_CASE("the sums of explain equal the figures of a whole model") {
  namespace t = paper::transformers;
  const auto p = pt::partition(paper::trace_training_step(paper::T32), {{"batch", 8}, {"model", 4}},
                               pt::schedule(t::BP, t::MP, t::Z3, t::EMB));
  const std::string all = str(pt::explain(p)), sums = all.substr(all.find("in all:\n"));
  CHECK(sums == R"(in all:
  all_gather       x515  50281316352 bytes
  all_reduce       x354   2431909895 bytes
  reduce_scatter   x257  25081937920 bytes
  all_to_all         x0            0 bytes
  all             x1126  77795164167 bytes
messages along "batch" 2730, along "model" 2310
)");
  CHECK(p.cost.collective_bytes == 77795164167);
  CHECK(std::count(all.begin(), all.end(), '\n') == p.collectives.total() + 7);
  CHECK(
      all.find(
          R"(all_gather <"batch">      %params.layers.1.qkv            44040192 bytes  x1  Z3   dot_general(%x155, %params.layers.1.qkv) in layers.1 needs it unsharded: its loop over "batch" does not slice it
)") != std::string::npos);
}

TEST_CASE("replicated lists values that are replicated by default") {
  const auto p = pt::partition(chain(), mesh, pt::schedule(BP, MP));
  CHECK(str(pt::print_replicated(p)) ==
        R"(2048 bytes  x 2 copies  %x   parameter  tensor<256x8xf32>  along "M"
 256 bytes  x 4 copies  %w1  parameter  tensor<8x16xf32>   along "B"
 256 bytes  x 4 copies  %w2  parameter  tensor<16x8xf32>   along "B"
replicated by default: 2560 bytes on one device, in 3 values
)");
  CHECK(str(pt::print_replicated(p, 1)) ==
        R"(2048 bytes  x 2 copies  %x  parameter  tensor<256x8xf32>  along "M"
and 2 more, 512 bytes
replicated by default: 2560 bytes on one device, in 3 values
)");
  const auto list = pt::replicated(p);
  REQUIRE(list.size() == 3);
  CHECK(list[0].total() == 2 * 2048);
  CHECK(list[1].axes == pt::axis_set::of(0));
  CHECK(list[1].copies == 4);

  // A value is not replicated by default if a tactic requests it or an operand implies it. A sum is
  // always global.
  const auto whole = pt::manual("B", {{"w1", pt::replicated}, {"w2", pt::replicated}});
  const auto said = pt::manual("M", {{"x", pt::replicated}});
  CHECK(pt::replicated(pt::partition(chain(), mesh, pt::schedule(BP, whole, MP, said))).empty());

  // An op that cannot be sliced, values computed from it, and constants.
  const auto f = pt::trace([](auto x) { return exp(pt::sort<0>(x)) + 1.0f; }, square());
  const auto q = pt::partition(f, {{"M", 2}}, pt::schedule(pt::manual("M", {{"x", 0}})));
  CHECK(str(pt::print_replicated(q)) ==
        R"(256 bytes  x 2 copies  %x1  sort      tensor<8x8xf32>  along "M"
256 bytes  x 2 copies  %x2  exp       tensor<8x8xf32>  along "M"
256 bytes  x 2 copies  %x4  add       tensor<8x8xf32>  along "M"
  4 bytes  x 2 copies  %x3  constant  tensor<f32>      along "M"
replicated by default: 772 bytes on one device, in 4 values
)");
}

TEST_CASE("strict refuses large values that are replicated by default") {
  const auto at_most = [](std::int64_t bytes) {
    return pt::partition(chain(), mesh, pt::schedule(BP, MP), {.strict = bytes});
  };
  CHECK(at_most(2048).collectives.total() == 1);
  CHECK_THROWS_WITH_AS(
      at_most(2047),
      R"(S020 strict: "x" tensor<256x8xf32> is replicated along "M" by default: 2 copies of 2048 bytes, where 2047 bytes are allowed; shard it, or place it pt::replicated)",
      pt::error);
  CHECK_THROWS_WITH_AS(
      at_most(0),
      R"(S020 strict: "x" tensor<256x8xf32> is replicated along "M" by default: 2 copies of 2048 bytes, where 0 bytes are allowed, and 2 more values are; shard it, or place it pt::replicated)",
      pt::error);
  const auto f = pt::trace([](auto x) { return exp(pt::sort<0>(x)); }, square());
  CHECK_THROWS_WITH_AS(
      pt::partition(f, {{"M", 2}}, pt::schedule(pt::manual("M", {{"x", 0}})), {.strict = 100}),
      R"(S020 strict: %x1 tensor<8x8xf32> is replicated along "M" by default: 2 copies of 256 bytes, where 100 bytes are allowed, and 1 more value is; shard it, or place it pt::replicated)",
      pt::error);
}

TEST_CASE("diff lists the changes between two schedules") {
  const auto a = pt::partition(chain(), mesh, pt::schedule(BP, MP));
  const auto b = pt::partition(chain(), mesh, pt::schedule(BP, MP, Z3));
  CHECK(str(pt::diff(a, a)) == "no difference\n");
  CHECK(str(pt::diff(a, b)) == R"(schedule: BP, MP -> BP, MP, Z3
all_gather: 0 -> 2
bytes sent: 2048 -> 2432
argument bytes: 2560 -> 2176
peak bytes: 6656 -> 6528
messages: along "M" 2 -> along "B" 6, along "M" 2
input "w1": [{}, {"M"}] tensor<8x8xf32> -> [{"B"}, {"M"}] tensor<2x8xf32>
input "w2": [{"M"}, {}] tensor<8x8xf32> -> [{"M"}, {"B"}] tensor<8x2xf32>
collectives differ from number 1 on:
+ all_gather <"B"> %w1 192 bytes x1 Z3: matmul(%x, %w1) needs it unsharded: its loop over "B" does not slice it
+ all_gather <"B"> %w2 192 bytes x1 Z3: matmul(%x1, %w2) needs it unsharded: its loop over "B" does not slice it
)");
  CHECK(str(pt::diff(b, a, 1)) == R"(schedule: BP, MP, Z3 -> BP, MP
all_gather: 2 -> 0
bytes sent: 2432 -> 2048
argument bytes: 2176 -> 2560
peak bytes: 6528 -> 6656
messages: along "B" 6, along "M" 2 -> along "M" 2
input "w1": [{"B"}, {"M"}] tensor<2x8xf32> -> [{}, {"M"}] tensor<8x8xf32>
and 1 more inputs
collectives differ from number 1 on:
- all_gather <"B"> %w1 192 bytes x1 Z3: matmul(%x, %w1) needs it unsharded: its loop over "B" does not slice it
- and 1 more
)");
  const auto other = pt::trace([](auto x, auto y) { return matmul(x, y); },
                               pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("y"));
  const auto c = pt::partition(other, {{"B", 2}}, pt::schedule(BP));
  CHECK(str(pt::diff(a, c)) == R"(mesh: {"B":4, "M":2} -> {"B":2}
schedule: BP, MP -> BP
all_reduce: 1 -> 0
bytes sent: 2048 -> 0
flop: 16384 -> 32768
bytes read and written: 8704 -> 12800
argument bytes: 2560 -> 4608
result bytes: 2048 -> 8192
peak bytes: 6656 -> 12800
messages: along "M" 2 -> none
input "x": [{"B"}, {}] tensor<64x8xf32> -> [{"B"}, {}] tensor<128x8xf32>
input "w1": [{}, {"M"}] tensor<8x8xf32> -> none
input "w2": [{"M"}, {}] tensor<8x8xf32> -> none
input "y": none -> [{}, {}] tensor<8x16xf32>
output "result": [{"B"}, {}] tensor<64x8xf32> -> [{"B"}, {}] tensor<128x16xf32>
collectives differ from number 1 on:
- all_reduce <"M"> %x2 2048 bytes x1 MP: matmul(%x1, %w2) leaves a sum over "M"
)");
}

TEST_CASE("a conflict names the tactic that settles it, and that tactic does") {
  const auto both = unsettled(pt::manual("B", {{"x", 0}, {"w1", 1}}, "both"));
  CHECK(
      settlements(pt::partition(chain(), mesh, pt::schedule(both))) ==
      R"(would be settled by manual("B", {{"x", 0}}) as an earlier tactic (#tile<0>), or by manual("B", {{"w1", 1}}) as an earlier tactic (#tile<1>)
)");
  const auto first = pt::manual("B", {{"w1", 1}}, "first");
  CHECK(pt::partition(chain(), mesh, pt::schedule(first, both)).core.conflicts.empty());

  const auto turned = [](auto x) { return matmul(x, pt::transpose<1, 0>(x)); };
  const auto rows = unsettled(pt::manual("M", {{"x", 0}}, "rows"));
  CHECK(
      settlements(pt::partition(pt::trace(turned, square()), mesh, pt::schedule(rows))) ==
      R"(would be settled by tag("x1", x) on %x1 and manual("M", {{"x1", replicated}}) as an earlier tactic (#tile<0>)
)");
  const auto tagged = [](auto x) { return matmul(x, pt::tag("xt", pt::transpose<1, 0>(x))); };
  CHECK(settlements(pt::partition(pt::trace(tagged, square()), mesh, pt::schedule(rows))) ==
        R"(would be settled by manual("M", {{"xt", replicated}}) as an earlier tactic (#tile<0>)
)");
  const auto whole = pt::manual("M", {{"xt", pt::replicated}});
  CHECK(pt::partition(pt::trace(tagged, square()), mesh, pt::schedule(whole, rows))
            .core.conflicts.empty());

  const auto uneven =
      pt::trace([](auto x) { return pt::reshape<9, 8>(tanh(x)); }, pt::input<float, 12, 6>("x"));
  CHECK(
      settlements(pt::partition(uneven, mesh, pt::schedule(BP))) ==
      R"(would be settled by tag("x1", x) on %x1 and manual("B", {{"x1", replicated}}) as an earlier tactic (replicated), or by a size of "B" that divides 3
)");
}

TEST_CASE("the report marks a conflict that a later tactic settled") {
  const auto f = pt::trace([](auto x, auto y) { return tanh(x) + exp(y); }, square(),
                           pt::input<float, 8, 8>("y"));
  const auto p =
      pt::partition(f, mesh,
                    pt::schedule(unsettled(pt::manual("M", {{"x", 0}, {"y", 1}}, "both")),
                                 pt::manual("B", {{"x", 1}}, "later")));
  REQUIRE(p.core.conflicts.empty());
  CHECK(
      lines(p) ==
      R"(permute <"B":(1)2, "M">  %x2  32 bytes  x1  later  add(%x1, %x2) needs it in another layout: its loop over "B":(1)2 slices dimension 1, its loop over "M" slices dimension 0
)");
  CHECK(
      str(pt::report(p))
          .find(
              R"(    %x3 (add) along "M": #tile<0> from operand %x1 by tactic 1 ("both"), and #tile<1> from operand %x2 by tactic 1 ("both")
      settled by tactic later: #tile<0>
)") != std::string::npos);
}
