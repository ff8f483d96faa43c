/// Pictures as SVG: well-formed for any names, of bounded size, and equal to the data that they
/// show.
#include <doctest/doctest.h>

#include <algorithm>
#include <cctype>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/report/memory_svg.hpp>
#include <partita/report/search_svg.hpp>
#include <partita/report/sharding_svg.hpp>
#include <partita/report/tactics_svg.hpp>
#include <partita/report/timeline_svg.hpp>
#include <partita/search/result.hpp>

#include "../xml.hpp"

namespace pt = partita;

namespace {

std::string fault(const pt::text& picture) { return xml_checker(picture.view()).run(); }
bool has(const pt::text& picture, std::string_view words) {
  return picture.view().find(words) != std::string_view::npos;
}

/// A chain of `n` steps of two products each, over inputs of any names.
pt::partitioned chain(int n, std::string_view x, std::string_view w) {
  const auto f = pt::trace(
      [n](auto a, auto b) {
        for (int i = 0; i < n; ++i) a = matmul(tanh(a), b);
        return a;
      },
      pt::input<float, 512, 64>(x), pt::input<float, 64, 64>(w));
  return pt::partition(
      f, pt::mesh{{"B", 4}, {"M", 2}},
      pt::schedule(pt::manual("B", {{x, 0}}, "BP"), pt::manual("M", {{w, 1}}, "MP")));
}
std::vector<pt::text> all_pictures(const pt::partitioned& p, std::string_view x) {
  return {pt::sharding_svg(p, x), pt::memory_svg(p.device, 1 << 20),
          pt::timeline_svg(p.device, pt::a100_80), pt::tactics_svg(p, pt::a100_80),
          pt::tactics_svg(p)};
}

}  // namespace

TEST_CASE("the XML checker finds errors") {
  CHECK(xml_checker("<a b=\"1\"><c/>x &amp; y</a>").run() == "");
  for (const char* wrong : {"<a>", "<a></b>", "<a b=1/>", "<a>&</a>", "<a/><a/>", "<a>\x01</a>",
                            "<a>\xff</a>", "<a b=\"<\"/>", "<a b=\"1\" b=\"2\"/>", "x<a/>"})
    CHECK_MESSAGE(xml_checker(wrong).run() != "", wrong);
}

TEST_CASE("pictures are well-formed for any names") {
  std::mt19937 random(7);
  for (int round = 0; round < 20; ++round) {
    std::string name = "x";
    for (int i = 0; i < 40; ++i) name += static_cast<char>(random() % 256);
    if (round == 0)
      name = "<a href=\"x\">&amp;]]>--'\xed\xa0\x80\xef\xbf\xbf é 漢 \xf0\x9f\x98\x80";
    const auto p = chain(3, name, "w");
    for (const auto& picture : all_pictures(p, name)) CHECK(fault(picture) == "");
  }
}

TEST_CASE("long texts keep their beginning and their end, in complete characters") {
  using pt::report_detail::shortened;
  CHECK(shortened("abcdef", 6) == "abcdef");
  CHECK(shortened("abcdefgh", 6) == "abc…gh");
  CHECK(shortened("ééééé", 4) == "éé…é");
  CHECK(shortened(std::string(1000000, 'a') + "z", 5) == "aa…az");
}

TEST_CASE("numbers in pictures are short") {
  const auto coordinate = [](double v) {
    pt::text out;
    pt::report_detail::print_coordinate(out, v);
    return std::string(out.view());
  };
  CHECK(coordinate(0) == "0");
  CHECK(coordinate(12.34) == "12.3");
  CHECK(coordinate(-0.06) == "-0.1");
  CHECK(coordinate(3.96) == "4");
  CHECK(pt::bytes_text(1023) == "1023 bytes");
  CHECK(pt::bytes_text(1024) == "1.00 KiB");
  CHECK(pt::bytes_text(1024 * 1024 - 1) == "1.00 MiB");
  CHECK(pt::bytes_text(pt::saturated) == "8.00 EiB");
  CHECK(pt::grouped(1234567) == "1,234,567");
  CHECK(pt::grouped(-123) == "-123");
}

TEST_CASE("a sharding shows each block with the devices that hold it") {
  const auto f = pt::trace([](auto z) { return z * 2.f; }, pt::input<float, 8, 6, 4, 10>("z"));
  const pt::mesh m{{"A", 4}, {"B", 2}, {"C", 3}};
  const auto p =
      pt::partition(f, m,
                    pt::schedule(pt::manual("C", {{"z", 1}}), pt::manual("A:(1)2", {{"z", 0}}),
                                 pt::manual("A:(2)2", {{"z", 2}}), pt::manual("B", {{"z", 0}})));
  const pt::sharded_value z = p.input("z");
  const pt::report_detail::block_map map(z, p.mesh());
  const pt::text picture = pt::sharding_svg(p, "z");
  CHECK(fault(picture) == "");
  const auto holders = map.holders();
  for (std::int64_t device = 0; device < m.devices(); ++device) {
    std::int64_t pieces[pt::max_rank] = {};
    std::string title = "[";
    for (int d = 0; d < map.rank(); ++d) {
      pieces[d] = map.piece_of(device, d);
      title += (d > 0 ? ", " : "") + std::string(map.range(d, pieces[d]).view());
    }
    const auto list = map.holders_of(pieces, 100);
    const auto& expected = holders[static_cast<std::size_t>(map.block_of(device))];
    CHECK(std::equal(list.begin(), list.end(), expected.begin(), expected.end()));
    title += expected.size() == 1 ? "] on device" : "] on devices";
    for (auto each : expected) title += ' ' + std::to_string(each);
    CHECK_MESSAGE(has(picture, title), title);
  }
}

TEST_CASE("replicas and padding in a sharding") {
  const auto f = pt::trace([](auto x, auto w) { return matmul(x, w); },
                           pt::input<float, 10, 8>("x"), pt::input<float, 8, 16>("w"));
  const auto p = pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}},
                               pt::schedule(pt::manual("B", {{"x", 0}}, pt::uneven::pad)));
  const pt::text x = pt::sharding_svg(p, "x"), w = pt::sharding_svg(p, "w");
  CHECK(has(x, "[9:12 (2 padding), 0:8] on devices 6 7"));
  CHECK(has(x, "class=\"padding\""));
  CHECK(has(x, "each block on 2 devices along &quot;M&quot;"));
  CHECK(has(w, "replicated on all 8 devices along &quot;B&quot;, &quot;M&quot;"));
  CHECK(!has(w, "class=\"padding\""));
  CHECK_THROWS_AS(pt::sharding_svg(p, "nothing"), pt::error);
}

TEST_CASE("a picture of very many devices draws some of them and states it") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 65536, 4096>("x"));
  const auto p =
      pt::partition(f, pt::mesh{{"B", 65536}, {"M", 4096}, {"R", 1 << 20}},
                    pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"x", 1}})));
  const pt::text picture = pt::sharding_svg(p, "x");
  CHECK(fault(picture) == "");
  CHECK(picture.size() < 200000);
  CHECK(has(picture, "of 65,536 blocks of dimension 0"));
  CHECK(has(picture, "of 4,096 blocks of dimension 1"));
  CHECK(has(picture, "on devices 0 1 2 3 4 5 6 7 ... (1048576)"));
}

TEST_CASE("pictures of long programs stay small") {
  pt::builder b;
  pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {64, 64}});
  const pt::value_id w = pt::ops::parameter(b, "w", {pt::dtype::f32, {64, 64}});
  const std::int64_t right[] = {1}, left[] = {0};
  for (int i = 0; i < 20000; ++i)
    x = i % 3 == 0 ? pt::ops::dot_general(b, x, w, {{}, {}, right, left}) : pt::ops::exp(b, x);
  b.p.outputs.push_back({x, b.p.intern("y")});
  const auto p = pt::partition(b.p, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  for (const auto& picture :
       {pt::memory_svg(p.device), pt::timeline_svg(p.device, pt::h100), pt::tactics_svg(p)}) {
    CHECK(fault(picture) == "");
    CHECK(picture.size() < 400000);
  }
}

TEST_CASE("pictures show the figures of a program") {
  const auto p = chain(6, "x", "w");
  const pt::text memory = pt::memory_svg(p.device, 100),
                 time = pt::timeline_svg(p.device, pt::h100),
                 tactics = pt::tactics_svg(p, pt::h100);
  CHECK(has(memory, pt::concat("Peak of memory: ", pt::bytes_text(p.cost.peak_bytes))));
  CHECK(has(memory, "it does not fit"));
  CHECK(has(pt::memory_svg(p.device, std::int64_t{1} << 40), "it fits"));
  CHECK(has(memory, ">inputs</text>"));
  CHECK(has(time, "all_gather %"));
  CHECK(has(time, ">products</text>"));
  CHECK(has(tactics, ">BP</text>"));
  CHECK(has(tactics, ">MP</text>"));
  CHECK(pt::timeline_svg(p.device, pt::device()).view().starts_with("error: D001"));
  CHECK(pt::tactics_svg(p, pt::device()).view().starts_with("error: D001"));
}

TEST_CASE("a loop that takes most of the time is drawn with one trip") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        return pt::for_loop(
            0, 50, [&](auto, auto h) { return tanh(matmul(h, w)); }, x);
      },
      pt::input<float, 512, 64>("x"), pt::input<float, 64, 64>("w"));
  const auto p = pt::partition(f, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  const pt::text time = pt::timeline_svg(p.device, pt::h100);
  CHECK(fault(time) == "");
  CHECK(has(time, "One of 50 trips of "));
}

TEST_CASE("the picture of a search shows its course") {
  pt::search_result r;
  CHECK(fault(pt::search_svg(r)) == "");
  CHECK(has(pt::search_svg(r), "nothing better was found"));
  r.before = 8e-3;
  r.after = 2e-3;
  r.bound = 1.6e-3;
  r.evaluations = 5000;
  r.states = 700;
  for (int i = 0; i < 20; ++i) r.log.push_back({1 + 100 * i, 0.01 * i, 8e-3 - 3e-4 * i});
  const pt::text near = pt::search_svg(r);
  CHECK(fault(near) == "");
  CHECK(has(near, "Search: 8.00 ms before, 2.00 ms found"));
  CHECK(has(near, "5,000 evaluations, 700 partitionings; 25.0 % above the bound"));
  CHECK(has(near, ">6 ms</text>"));
  r.log[0].cost = 100;  // logarithms
  CHECK(fault(pt::search_svg(r)) == "");
  CHECK(has(pt::search_svg(r), ">10 s</text>"));
  r.log[0].cost = std::numeric_limits<double>::infinity();
  CHECK(fault(pt::search_svg(r)) == "");
}

TEST_CASE("of many tactics the first and the last are drawn") {
  const auto f = pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8, 8>("x"));
  std::vector<decltype(pt::manual("B", {{"x", 0}}, "t"))> tactics(40,
                                                                  pt::manual("B", {{"x", 0}}, "t"));
  const auto p = pt::partition(f, pt::mesh{{"B", 4}}, tactics);
  const pt::text picture = pt::tactics_svg(p, pt::h100);
  CHECK(fault(picture) == "");
  CHECK(has(picture, "and 24 more"));
}
