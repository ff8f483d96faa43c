// The passes over collectives: their reports, the limits on them, and their errors.
#include <doctest/doctest.h>

#include <algorithm>
#include <string>

#include <partita/partita.hpp>

#include "../slow_links.hpp"
#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

constexpr pt::mesh mesh{{"B", 4}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto Z3 = pt::manual("B", {{"w", 0}, {"v", 0}}, "Z3");

/// w is used three times, v twice; both are gathered for each use.
constexpr auto partition(const pt::passes& on) {
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        const auto y = matmul(tanh(matmul(tanh(matmul(x, w)), v)), v);
        return matmul(tanh(matmul(tanh(y), w)), w);
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("v"));
  return pt::partition(f, mesh, pt::schedule(BP, Z3), {.passes = on});
}

// 256 bytes of a gathered matrix and 64 of a row-sharded value or matrix: three arguments, a
// gathered matrix, and a product's operand and result.
constexpr std::int64_t lowest = 3 * 64 + 256 + 2 * 64;

std::string message(const pt::passes& on) {
  try {
    partition(on);
  } catch (const pt::error& e) {
    return e.what();
  }
  return "no error";
}

// At compile time, too.
constexpr auto plain = [] { return partition({.share_gathers = false}); };
constexpr auto shared = [] { return partition({.share_gathers = true}); };
static_assert(pt::check<plain>.collectives == pt::collectives{.all_gather = 5});
static_assert(pt::check<plain>.peak_bytes == lowest);
// v and w between adjacent uses, where nothing else is gathered.
constexpr auto alike = [] { return partition({.share_gathers = pt::shared_uses::alike}); };
static_assert(pt::check<alike>.collectives == pt::collectives{.all_gather = 3});
static_assert(pt::passes().share_gathers == pt::shared_uses::alike);
static_assert(pt::check<alike>.tactic("Z3").collectives == pt::collectives{.all_gather = 5});
static_assert(pt::check<alike>.peak_bytes == lowest);
static_assert(pt::check<shared>.collectives == pt::collectives{.all_gather = 2});
static_assert(pt::check<shared>.tactic("Z3").collectives == pt::collectives{.all_gather = 5});
static_assert(pt::check<shared>.peak_bytes == lowest + 256);

}  // namespace

namespace {
/// Returns the collectives in a program and in those nested in it, counting each result once.
pt::collectives written_in(const pt::program& p) {
  pt::collectives n;
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).def->collective) n.count(p.collective_of(o).kind, p.op(o).result_count);
  for (const auto& r : p.regions) {
    const pt::collectives in = written_in(r);
    n.all_gather += in.all_gather;
    n.all_reduce += in.all_reduce;
    n.reduce_scatter += in.reduce_scatter;
    n.all_to_all += in.all_to_all;
  }
  return n;
}
}  // namespace
TEST_CASE("the count of collectives as written equals the text, with and without passes") {
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        return pt::for_loop(
            0, 4,
            [&](auto, auto h) {
              const auto one = matmul(h, w), other = matmul(h, v);  // summed over "M"
              return tanh(one) + one * other + matmul(h, matmul(w, v));
            },
            x);
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("v"));
  const auto tactics =
      pt::schedule(BP, pt::amalgamated("MP", pt::manual("M", {{"w", 0}, {"v", 0}})), Z3);
  std::int64_t least = 1 << 20, most = 0;
  for (const pt::passes& on :
       {pt::passes{}, pt::passes{.combine_below = 0}, pt::passes{.share_gathers = true},
        pt::passes{.stationary_above = 1},
        pt::passes{.combine_below = 1 << 20, .place = true, .share_gathers = true}}) {
    const auto p = pt::partition(f, {{"B", 4}, {"M", 2}}, tactics, {.passes = on});
    const pt::collectives written = written_in(p.device.local);
    CHECK(p.collectives_as_written == written);
    CHECK(p.collectives.total() ==
          written.total() + 3 * written_in(p.device.local.regions[0]).total());
    CHECK(pt::summarize(p).collectives_as_written == written);
    const std::string text = str(pt::explain(p));
    CHECK(text.find(std::to_string(written.total()) + " written") != std::string::npos);
    // A tactic's figures are those before the passes that rewrite the program.
    const auto plain = pt::partition(f, {{"B", 4}, {"M", 2}}, tactics);
    CHECK(p.tactics.back().counts_as_written == plain.collectives_as_written);
    CHECK(
        str(pt::report(p)).find("as written:  " + str(pt::concat(plain.collectives_as_written))) !=
        std::string::npos);
    least = std::min(least, pt::launched(p.notes));
    most = std::max(most, pt::launched(p.notes));
  }
  CHECK(least < most);
  // Without loops both figures are equal, so the report states them once.
  const auto p = partition({});
  CHECK(p.collectives_as_written == p.collectives);
  CHECK(str(pt::explain(p)).find("written") == std::string::npos);
  CHECK(str(pt::report(p)).find("as written") == std::string::npos);
}
TEST_CASE("gathers are shared by adjacent uses, by similar uses, or by all uses") {
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        const auto y = matmul(matmul(x, w), pt::sort<0>(w));  // other ops: not alike
        return matmul(matmul(y, v), w);                       // v is gathered in between
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("v"));
  const auto made = [&](const pt::shared_uses& uses) {
    return pt::partition(f, mesh, pt::schedule(BP, Z3), {.passes = {.share_gathers = uses}});
  };
  const auto none = made(pt::shared_uses::none);
  CHECK(none.collectives == pt::collectives{.all_gather = 4});
  CHECK(made({}).collectives == none.collectives);
  CHECK(made(false).collectives == none.collectives);
  CHECK(made(pt::shared_uses::alike).collectives == none.collectives);
  const auto neighbours = made(pt::shared_uses::neighbours);
  CHECK(neighbours.collectives == pt::collectives{.all_gather = 3});
  CHECK(neighbours.cost.peak_bytes <= none.cost.peak_bytes);
  CHECK(made(pt::shared_uses::all).collectives == pt::collectives{.all_gather = 2});
  CHECK(made(true).collectives == pt::collectives{.all_gather = 2});
  // The report states what more sharing would save, and the memory that it needs. (Three arguments,
  // w gathered and sorted, and a value of 64 bytes; w is kept until y v is computed.)
  const auto says = [&](const pt::shared_uses& uses) {
    const std::string all = str(pt::report(made(uses)));
    const auto at = all.find("possible with passes share_gathers");
    return at == std::string::npos ? "" : all.substr(at);
  };
  const std::string most = "possible with passes share_gathers: all_gather ";
  CHECK(says(pt::shared_uses::alike) ==
        "possible with passes share_gathers neighbours: all_gather 4 -> 3, sent 768 -> 576 bytes, "
        "peak 768 -> 768 bytes\n" +
            most + "4 -> 2, sent 768 -> 384 bytes, peak 768 -> 832 bytes\n");
  CHECK(says(pt::shared_uses::neighbours) ==
        most + "3 -> 2, sent 576 -> 384 bytes, peak 768 -> 832 bytes\n");
  CHECK(says(true) == "");
}
TEST_CASE("gathers are shared as far as the memory bound permits") {
  // Only v and w between adjacent uses, where nothing else is gathered.
  const auto tight = partition({.memory_bound = lowest});
  CHECK(tight.collectives == pt::collectives{.all_gather = 3});
  CHECK(tight.cost.peak_bytes <= lowest);
  CHECK(tight.notes.size() == 3);
  // The first w is kept while v is gathered.
  const auto roomy = partition({.memory_bound = lowest + 256});
  CHECK(roomy.collectives == pt::collectives{.all_gather = 2});
  CHECK(roomy.cost.peak_bytes == lowest + 256);
  CHECK(partition({.memory_bound = lowest + 255}).collectives.all_gather == 3);
  // Sharing where the peak does not rise.
  const auto same = partition({.memory_bound = pt::passes::own_peak});
  CHECK(same.collectives == tight.collectives);
  CHECK(same.cost.peak_bytes == tight.cost.peak_bytes);
}

namespace {
/// A device program whose gathers are shared as far as its own peak permits.
struct sharing_in_peak {
  pt::mesh mesh;
  pt::program p;
  std::int64_t before = 0;
  explicit sharing_in_peak(std::string_view text) : p(pt::parse(text, mesh)) {
    REQUIRE(str(p.error.message) == "");
    before = peak();
    const pt::passes on{.memory_bound = pt::passes::own_peak};
    CHECK(!pt::spmd_detail::run_passes(p, mesh, on, [](const auto&, const auto&) {}));
  }
  std::int64_t peak() const { return pt::live_bytes(p).peak(); }
  int gathers() const { return written_in(p).all_gather; }
};
}  // namespace
TEST_CASE("a gathered value that is overwritten is kept from then on, if it is shared") {
  const sharing_in_peak shared(
      R"(func @main(%x: tensor<24x8xf32>, %u: tensor<2x12x16xf32>, %i: tensor<2x24xi32>, %w: tensor<16x16xf32>) attributes {mesh = {"B":2}} {
  %x1 = all_gather [{}, {"B"}] %x : tensor<24x16xf32>
  %u1 = all_gather [{}, {"B"}, {}] %u : tensor<2x24x16xf32>
  %s = scatter(%x1, %i, %u1) {max, offset_dims=[2], operand_batching_dims=[0], start_indices_batching_dims=[1], start_index_map=[1], index_vector_dim=2} : tensor<24x16xf32>
  %x2 = all_gather [{}, {"B"}] %x : tensor<24x16xf32>
  %m = matmul(%x2, %w) : tensor<24x16xf32>
  return %m, %s : tensor<24x16xf32>, tensor<24x16xf32>
})");
  CHECK(shared.peak() == shared.before);
  CHECK(shared.gathers() == 3);
}
TEST_CASE("a value that is recomputed once its operands are one counts against the bound") {
  // A comparison of two values is stored, a comparison of a value with itself is not. In the second
  // case the gathered value is stored until the last selection needs it. (y is shared all the
  // same.)
  const sharing_in_peak shared(
      R"(func @main(%x: tensor<4x8xi64>, %y: tensor<4x8xf32>, %p: tensor<8x8xf32>, %q: tensor<8x8xf32>) attributes {mesh = {"B":2}} {
  %y1 = all_gather [{"B"}, {}] %y : tensor<8x8xf32>
  %y2 = all_gather [{"B"}, {}] %y : tensor<8x8xf32>
  %m = matmul(%y1, %y2) : tensor<8x8xf32>
  %x1 = all_gather [{"B"}, {}] %x : tensor<8x8xi64>
  %x2 = all_gather [{"B"}, {}] %x : tensor<8x8xi64>
  %c = compare(%x1, %x2) {gt} : tensor<8x8xi1>
  %a = select(%c, %p, %q) : tensor<8x8xf32>
  %b = select(%c, %q, %p) : tensor<8x8xf32>
  %d = select(%c, %p, %m) : tensor<8x8xf32>
  %e = select(%c, %m, %p) : tensor<8x8xf32>
  return %m, %a, %b, %d, %e : tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>, tensor<8x8xf32>
})");
  CHECK(shared.peak() <= shared.before);
  CHECK(shared.gathers() == 3);
}

TEST_CASE("the report of the passes") {
  CHECK(str(pt::report_passes(partition({.place = true, .share_gathers = true}))) ==
        R"(cancel: 9 changed
  collectives: all_gather 14, all_reduce 0, reduce_scatter 0, all_to_all 0
           -> : all_gather 5, all_reduce 0, reduce_scatter 0, all_to_all 0
  peak: 576 -> 576 bytes per device
to_all_to_all: 0 changed
  collectives: all_gather 5, all_reduce 0, reduce_scatter 0, all_to_all 0
  peak: 576 -> 576 bytes per device
to_reduce_scatter: 0 changed
  collectives: all_gather 5, all_reduce 0, reduce_scatter 0, all_to_all 0
  peak: 576 -> 576 bytes per device
place: 0 changed
  collectives: all_gather 5, all_reduce 0, reduce_scatter 0, all_to_all 0
  peak: 576 -> 576 bytes per device
share_gathers: 3 changed
  collectives: all_gather 5, all_reduce 0, reduce_scatter 0, all_to_all 0
           -> : all_gather 2, all_reduce 0, reduce_scatter 0, all_to_all 0
  peak: 576 -> 832 bytes per device
)");
}

TEST_CASE("combined all_reduces keep their notes and are launched as one") {
  const auto f = pt::trace(
      [](auto x) {
        return std::tuple{pt::output("a", pt::sum<0>(x)), pt::output("b", pt::sum(x))};
      },
      pt::input<float, 8, 4>("x"));
  const auto p = pt::partition(f, mesh, pt::schedule(BP), {.passes = {.combine_below = 20}});
  CHECK(p.collectives == pt::collectives{.all_reduce = 2});
  CHECK(pt::launched(p.notes) == 1);
  REQUIRE(p.notes.size() == 2);
  CHECK(p.notes[0].bytes == 4);
  CHECK(p.notes[1].bytes == 4 * 4);
  CHECK(p.notes[1].joined);
  CHECK(str(pt::report(p)).find("combined: 2 collectives are launched as 1") != std::string::npos);
  CHECK(p.cost.collective_bytes == 2 * (4 * 4 + 4) * 3 / 4);
}

TEST_CASE("all_reduces that depend on each other are not combined") {
  const auto f = pt::trace([](auto x) { return pt::sum(x / (1.0f + pt::sum(x))); },
                           pt::input<float, 8, 4>("x"));
  const auto p = pt::partition(f, mesh, pt::schedule(BP), {.passes = {.combine_below = 1000}});
  CHECK(p.collectives == pt::collectives{.all_reduce = 2});
  CHECK(pt::launched(p.notes) == 2);
}

TEST_CASE("stationary weights take no extra memory where memory is bounded") {
  const auto f = pt::trace(
      [](auto x, auto y, auto w) {
        return std::tuple{matmul(x, w), matmul(y, w)};
      },
      pt::input<float, 8, 16>("x"), pt::input<float, 8, 16>("y"), pt::input<float, 16, 16>("w"));
  const auto made = [&](const pt::passes& on) {
    const auto tactics =
        pt::schedule(pt::manual("B", {{"x", 0}, {"y", 0}}), pt::manual("B", {{"w", 1}}));
    return pt::partition(f, {{"B", 4}}, tactics, {.passes = on});
  };
  // Gathering w once costs less than moving x, y and both results. Gathering it twice costs more.
  const auto kept = made({.stationary_above = 1});
  CHECK(kept.collectives.all_to_all == 2);
  CHECK(made({.stationary_above = 1, .share_gathers = true}).collectives.all_gather == 1);
  const std::int64_t peak = pt::live_bytes(kept.device.local).peak();
  CHECK(peak < pt::live_bytes(made({.share_gathers = true}).device.local).peak());
  for (const bool share : {false, true})
    CHECK(made({.stationary_above = 1, .share_gathers = share, .memory_bound = peak})
              .cost.peak_bytes <= peak);
}

TEST_CASE("passes: invalid options are refused") {
  CHECK(message({.stationary_above = -1}) ==
        "C001 passes: stationary_above is -1 bytes; give 0 (off) or more");
  CHECK(message({.combine_below = -1}) ==
        "C001 passes: combine_below is -1 bytes; give 0 (off) or more");
  CHECK(message({.memory_bound = -8}) ==
        "C001 passes: memory_bound is -8 bytes; give 0 (no bound) or more, or "
        "pt::passes::own_peak (-1)");
  CHECK(message({.memory_bound = lowest - 1}) ==
        "C003 passes: memory_bound is 575 bytes per device; the program needs 576 before a gather "
        "is shared, its arguments 192 of them; give 576 or more");
  const auto core = partition({}).core;
  const auto refused = [&](const pt::lowering_options& o) {
    return str(pt::lower(core, o).error.message);
  };
  CHECK(refused({.fuse = false, .passes = {.place = true}}) ==
        "C002 lower: pass place needs a fused program; fuse is false");
  CHECK(refused({.fuse = false, .passes = {.memory_bound = 1000}}) ==
        "C002 lower: pass memory_bound needs a fused program; fuse is false");
}

namespace {
const auto slow = data::slow_links(1e7);
/// Two layers of products whose weights are sharded along the contracted dimension (ZeRO-3).
pt::program layers() {
  return pt::trace(
      [](auto x, auto w, auto v) { return pt::matmul(tanh(pt::matmul(tanh(x), w)), v); },
      pt::input<float, 64, 8>("x"), pt::input<float, 8, 8>("w"), pt::input<float, 8, 8>("v"));
}
std::string pass_text(const pt::partitioned& p) { return str(pt::report_passes(p)); }
}  // namespace
TEST_CASE("overlap: the chosen program takes less time, and the report states it") {
  const auto tactics = pt::schedule(BP, pt::manual("B", {{"w", 0}, {"v", 0}}, "Z3"));
  const auto plain = pt::partition(layers(), {{"B", 4}}, tactics);
  const auto p = pt::partition(layers(), {{"B", 4}}, tactics, {.overlap = slow});
  CHECK(pt::simulate(p.device, slow).time < pt::simulate(plain.device, slow).time);
  CHECK(p.collectives == pt::collectives{.permute = 6});
  CHECK(p.cost.collective_bytes == plain.cost.collective_bytes);
  CHECK(p.notes.size() == 6);
  CHECK(p.tactics.back().counts == plain.collectives);
  CHECK(pass_text(p).find("rings: 2 changed") != std::string::npos);
  CHECK(pass_text(p).find("early: 5 changed") != std::string::npos);
  CHECK(
      str(pt::explain(p))
          .find("receives it block by block and computes with one block while the next is sent") !=
      std::string::npos);
  const auto early = pt::partition(layers(), {{"B", 4}}, tactics,
                                   {.overlap = pt::overlap_options{.on = slow, .rings = false}});
  CHECK(early.collectives == plain.collectives);
  CHECK(pt::simulate(early.device, slow).time < pt::simulate(plain.device, slow).time);
  // On a fast link, an additional message is never worth it.
  auto fast = slow;
  fast.device.near.latency = 1;
  const auto same = pt::partition(layers(), {{"B", 4}}, tactics,
                                  {.overlap = pt::overlap_options{.on = fast, .early = false}});
  CHECK(str(pt::print(same.device)) == str(pt::print(plain.device)));
}
TEST_CASE("overlap: memory stays within the device's and within the peak before the pass") {
  const auto tactics = pt::schedule(BP, pt::manual("B", {{"w", 0}, {"v", 0}}, "Z3"));
  const std::int64_t needed = pt::partition(layers(), {{"B", 4}}, tactics).cost.peak_bytes;
  std::int64_t most = 0;
  for (std::int64_t memory = 1; memory <= 2 * needed; memory += needed / 16) {
    const auto p = pt::partition(
        layers(), {{"B", 4}}, tactics,
        {.overlap = pt::overlap_options{.on = slow, .rings = false, .memory = memory}});
    CHECK(p.cost.peak_bytes <= std::max(needed, memory));
    most = std::max(most, p.cost.peak_bytes);
  }
  CHECK(most > needed);
}
TEST_CASE("overlap: a sum that has to be equal on all devices is not sent around the ring") {
  const auto f = pt::trace([](auto x, auto w) { return pt::matmul(x, pt::tag("whole", w)); },
                           pt::input<float, 64, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto made = [&](auto... tactics) {
    return pt::partition(f, {{"B", 4}}, pt::schedule(tactics...), {.overlap = slow});
  };
  const auto everywhere =
      pt::manual("B", {{"w", 0}, {"whole", pt::replicated}, {"x", pt::replicated}});
  CHECK(made(everywhere).collectives == pt::collectives{.all_gather = 1});
  CHECK(made(BP, pt::manual("B", {{"w", 0}})).collectives == pt::collectives{.permute = 3});
}
TEST_CASE("overlap: invalid options are refused") {
  const auto why = [](const pt::overlap_options& on) {
    try {
      (void)pt::partition(layers(), {{"B", 4}}, pt::schedule(BP), {.overlap = on});
    } catch (const pt::error& e) {
      return std::string(e.what());
    }
    return std::string();
  };
  CHECK(why({.on = slow, .memory = -1}) ==
        "C001 overlap: memory is -1 bytes; give 0 (the device's) or more");
  CHECK(why({.wanted = true}) ==
        "C004 overlap: it needs a machine to compare times; set overlap_options::on");
  auto without = slow;
  without.device.near.bandwidth = 0;
  CHECK(why({.on = without}).starts_with("D002 device \"slow links\": axis \"B\" of 4 devices"));
  without.device.bandwidth = 0;
  CHECK(why({.on = without}).starts_with("D001 device \"slow links\": bandwidth is missing"));
}
TEST_CASE("overlap: works in a constant expression") {
  constexpr auto step = [] {
    constexpr auto rows = pt::manual("B", {{"x", 0}}), Z3 = pt::manual("B", {{"w", 0}});
    return pt::partition(pt::trace([](auto x, auto w) { return pt::matmul(x, w); },
                                   pt::input<float, 64, 8>("x"), pt::input<float, 8, 8>("w")),
                         {{"B", 2}}, pt::schedule(rows, Z3), {.overlap = data::slow_links(1e7)});
  };
  static_assert(pt::check<step>.collectives == pt::collectives{.permute = 1});
}
