// Probes: inner values that runs return.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "../data.hpp"

namespace pt = partita;

namespace {

/// Two layers; `look` marks the value in between.
template <class Look>
pt::program two_layers(const Look& look) {
  return pt::trace(
      [&](auto x, auto w1, auto w2) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& w) {
              const auto h = look("h", matmul(x, w));
              return sum(look("y", matmul(maximum(h, 0.f), w2)));
            },
            w1);
        return std::tuple{pt::output("loss", loss), pt::output("g", g)};
      },
      pt::input<float, 10, 4>("x"), pt::input<float, 4, 8>("w1"), pt::input<float, 8, 6>("w2"));
}
constexpr auto probed = [](std::string_view name, const auto& x) { return pt::probe(name, x); };
constexpr auto tagged = [](std::string_view name, const auto& x) { return pt::tag(name, x); };
constexpr pt::mesh mesh{{"B", 4}, {"M", 2}};
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP", pt::uneven::pad);
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");

}  // namespace

TEST_CASE("a probe returns the global value, on one device and on a mesh") {
  const auto f = two_layers(probed);
  const auto arguments = data::arguments(f);
  const auto r = pt::evaluate(f, arguments);
  CHECK(r.size() == 2);
  CHECK(r.names() == std::vector<std::string>{"loss", "g"});
  CHECK(r.probe_names() == std::vector<std::string>{"probe.h", "probe.y"});
  const auto product = pt::trace([](auto a, auto b) { return matmul(a, b); },
                                 pt::input<float, 10, 4>("a"), pt::input<float, 4, 8>("b"));
  CHECK(pt::equal(r.probe("h"), pt::evaluate(product, arguments[0], arguments[1]).only()));
  for (const auto& p :
       {pt::partition(f, mesh, pt::schedule()), pt::partition(f, mesh, pt::schedule(BP)),
        pt::partition(f, mesh, pt::schedule(BP, MP)),
        pt::partition(f, mesh, pt::schedule(MP, BP), {.passes = {.share_gathers = true}})}) {
    const auto q = pt::emulate(p, arguments);
    CHECK(q.probe_names() == r.probe_names());
    CHECK(pt::equal(q.probe("h"), r.probe("h")));
    CHECK(pt::equal(q.probe("y"), r.probe("y")));
    CHECK(pt::equal(q, r));
    CHECK(pt::emulate(p.device, arguments).probe_names().empty());  // which has no names for them
  }
  // It also has the block of each device.
  const auto p = pt::partition(f, mesh, pt::schedule(BP, MP));
  const auto h = pt::emulate(p, pt::run_options{.threads = 2}, arguments).probe("h");
  const auto mine = pt::piece(h, p, "probe.h", 3);  // (1, 1): rows 3 to 5, columns 4 to 7
  CHECK(mine.shape() == pt::shape{3, 4});
  CHECK(mine.data<float>()[0] == h.data<float>()[3 * 8 + 4]);
  // An executable returns probes too; a list of arrays has the outputs only.
  const pt::executable run(f);
  CHECK(pt::equal(run(arguments[0], arguments[1], arguments[2]).probe("y"), r.probe("y")));
  CHECK(run(arguments).size() == 2);
}

// Except for sums that wait for an op with fewer results: a probe returns them reduced.
TEST_CASE("probes do not change the program") {
  const auto f = two_layers(probed);
  const auto plain = two_layers([](std::string_view, const auto& x) { return x; });
  for (const auto& schedule : {1, 2, 3}) {
    const auto of = [&](const pt::program& g) {
      return schedule == 1   ? pt::partition(g, mesh, pt::schedule(BP))
             : schedule == 2 ? pt::partition(g, mesh, pt::schedule(BP, MP))
                             : pt::partition(g, mesh, pt::schedule(MP, BP));
    };
    const auto a = of(f), b = of(plain);
    const int sums = schedule == 1 ? 0 : 1;  // of "y", over "M"
    auto expected = b.collectives;
    expected.all_reduce += sums;
    CHECK(a.collectives == expected);
    CHECK(a.cost.peak_bytes == b.cost.peak_bytes);
    const auto ops = [](const pt::partitioned& p) {  // before all_reduces are combined
      return p.device.local.op_count() + p.collectives.total() - pt::launched(p.notes);
    };
    CHECK(ops(a) == ops(b) + sums);
  }
}

TEST_CASE("tags named in the options are probes") {
  const auto f = two_layers(tagged);
  const auto arguments = data::arguments(f);
  CHECK(pt::evaluate(f, arguments).probe_names().empty());
  const pt::run_options look{.probes = {"h", "grad.y"}};
  const auto r = pt::evaluate(f, look, arguments);
  CHECK(r.probe_names().size() == 2);
  CHECK(
      pt::equal(r.probe("grad.y"), data::fill({pt::dtype::f32, {10, 6}}, [](auto) { return 1; })));
  const auto p = pt::partition(f, mesh, pt::schedule(BP, MP));
  CHECK(pt::equal(pt::emulate(p, look, arguments).probe("h"), r.probe("h")));
  CHECK(data::thrown([&] { (void)r.probe("z"); }) ==
        "R012 results: the run has no probe \"z\" (values in loops and branches are not returned); "
        "known: h, "
        "grad.y; did you mean \"h\"?");
  const pt::run_options wrong{.probes = {"g"}};
  CHECK(data::thrown([&] { pt::evaluate(f, wrong, arguments); }) ==
        "R011 run: no tag outside of loops and branches is named \"g\" or is below it; known: h, "
        "grad.y, grad.h, y; did you mean \"h\"?");
  CHECK(data::thrown([&] { pt::emulate(p, wrong, arguments); }).starts_with("R011 run: "));
}

TEST_CASE("probes of trees, of equal names, and in loops") {
  const auto f = pt::trace(
      [](auto x) {
        const auto both = pt::probe("both", std::tuple{x + 1.f, x * 2.f});
        auto y = std::get<0>(both) * std::get<1>(both);
        for (int i = 0; i < 2; ++i) y = pt::probe("y", y + x);
        return pt::for_loop(
            0, 3, [](auto, const auto& h) { return pt::probe("inside", h * 2.f); }, y);
      },
      pt::input<float, 2>("x"));
  const pt::array x = data::fill({pt::dtype::f32, {2}}, [](auto i) { return i + 1; });
  const auto r = pt::evaluate(f, x);
  CHECK(r.probe_names() ==
        std::vector<std::string>{"probe.both.0", "probe.both.1", "probe.y.0", "probe.y.1"});
  CHECK(r.probe("y.1").data<float>()[1] == 3 * 4 + 4);
  CHECK(data::thrown([&] { (void)r.probe("inside"); }).starts_with("R012 "));
  const auto p = pt::partition(f, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  CHECK(pt::equal(pt::emulate(p, x).probe("both.1"), r.probe("both.1")));
  CHECK(pt::equal(pt::emulate(p, x).probe("y.0"), r.probe("y.0")));
}
