/// The page of a partitioned program: it is self-contained, names are escaped, and it stays small.
#include <doctest/doctest.h>

#include <cctype>
#include <cstdint>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/report/html.hpp>
#include <partita/search/automatic.hpp>

#include "../page.hpp"

namespace pt = partita;

namespace {

pt::partitioned training_step(std::string_view x, std::string_view w) {
  const auto f = pt::trace(
      [&](auto in, auto weights) {
        const auto [loss, g] =
            pt::value_and_grad([&](auto p) { return sum(tanh(matmul(in, p))); }, weights);
        return std::tuple{pt::output("loss", loss), pt::output(w, weights - g * 0.1f)};
      },
      pt::input<float, 64, 32>(x), pt::input<float, 32, 32>(w));
  return pt::partition(
      f, pt::mesh{{"B", 4}, {"M", 2}},
      pt::schedule(pt::manual("B", {{x, 0}}, "BP"), pt::manual("M", {{w, 1}}, "MP"),
                   pt::manual("B", {{w, 0}}, "Z3")));
}

}  // namespace

TEST_CASE("a page contains all parts of a report") {
  const auto p = training_step("x", "w");
  const pt::text page = pt::html_page(p, pt::a100_80, {.title = "a step"});
  check_page(page);
  for (const char* words :
       {"<title>a step</title>", "Tactics side by side", "Simulated timeline",
        "Memory over the program", "Shardings of inputs and outputs",
        "Collectives and their reasons", "Replicated by default", "The program of each device",
        "BP", "MP", "Z3", "of A100-80", "fits into 74.5 GiB", "prefers-color-scheme",
        "all_gather &lt;&quot;B&quot;&gt;", "func @main(%x: tensor&lt;16x32xf32&gt;"})
    CHECK_MESSAGE(count(page, words) > 0, words);
  CHECK(pt::html_page(p, pt::a100_80) == pt::html_page(p, pt::a100_80));
  // The tactics that shard a value, and the reason for each collective, as in `explain`.
  CHECK(count(page, "<td>MP, Z3</td>") >= 2);
  CHECK(count(pt::html_page(p), "<tr>") > p.notes.size());
}

TEST_CASE("a page and a report give the same step time, and state whether it is overlapped") {
  const auto p = training_step("x", "w");
  const pt::text page = pt::html_page(p, pt::a100_80),
                 report = pt::print_simulation(p, pt::a100_80);
  const pt::simulation in_turn = pt::simulate(p.device, pt::a100_80),
                       overlapped = pt::simulate(p.device, pt::a100_80, {.overlap = true});
  CHECK(in_turn.time > overlapped.time);
  const std::string all(page.view()), table(report.view());
  const std::size_t tile = all.find("time of a step, in turn");
  REQUIRE(tile != std::string::npos);
  const std::string around = all.substr(tile - 200, 400);
  const std::string last = table.substr(table.rfind("\n", table.size() - 2));
  for (const auto& text : {pt::time_text(in_turn.time), pt::time_text(overlapped.time)}) {
    CHECK(around.find(text.view()) != std::string::npos);
    CHECK(last.find(text.view()) != std::string::npos);
  }
  const pt::text mfu = pt::percent_text(in_turn.mfu());
  CHECK(last.find(mfu.view()) != std::string::npos);
  CHECK(all.find(mfu.view()) != std::string::npos);
  for (const char* head : {"in turn", "overlapped"}) {
    CHECK(table.find(head) != std::string::npos);
    CHECK(all.find(head) != std::string::npos);
  }
}

TEST_CASE("without a device a page has no times; a device with missing figures is named") {
  const auto p = training_step("x", "w");
  const pt::text page = pt::html_page(p);
  check_page(page);
  CHECK(count(page, "Simulated timeline") == 0);
  CHECK(count(page, "No times") == 0);
  pt::device half;
  half.memory = 1000;
  const pt::text some = pt::html_page(p, half.named("half"));
  check_page(some);
  CHECK(count(some, "No times: device &quot;half&quot;: bandwidth is missing") == 1);
  CHECK(count(some, "does not fit into 1000 bytes") == 1);
}

TEST_CASE("names are escaped in a page") {
  for (const std::string name : {"</code><script>alert(1)</script>", "\"><img onerror=alert(1)>",
                                 "a&b<c>'d' \x01\x7f\xc3( \xed\xa0\x80", "</svg></pre></details>"})
    check_page(pt::html_page(training_step(name, "w" + name), pt::h100, {.title = name}));
}

TEST_CASE("a page of a long program is truncated and states the omitted parts") {
  pt::builder b;
  std::vector<pt::value_id> all;
  for (int i = 0; i < 3000; ++i)
    all.push_back(
        pt::ops::parameter(b, "p" + std::to_string(i), {pt::dtype::f32, {64, i % 7 + 1}}));
  for (int i = 0; i < 9000; ++i) all[i % 3000] = pt::ops::exp(b, all[i % 3000]);
  const std::int64_t first[] = {0};
  for (int i = 0; i < 3000; ++i) {
    const pt::value_id sum = pt::ops::reduce(b, all[i], pt::combiner::add, first);
    b.p.outputs.push_back({sum, b.p.intern("o" + std::to_string(i))});
  }
  const auto p =
      pt::partition(b.p, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"p*", 0}}, "BP")));
  const pt::text page = pt::html_page(p, pt::h100);
  check_page(page);
  CHECK(page.size() < 3'000'000);
  CHECK(count(page, "The 1,000 largest of 6,000 values; the others are omitted.") == 1);
  CHECK(count(page, "The 1,000 largest of 3,000 collectives; the others are omitted.") == 1);
  CHECK(count(page, " more lines, ") > 0);
  CHECK(pt::html_page(p, pt::h100, {.rows = 10, .pictures = 1, .text_bytes = 1000}).size() <
        200000);
}

TEST_CASE("a page shows the course of each search") {
  const auto f = pt::trace([](auto x, auto w) { return sum(tanh(matmul(x, w))); },
                           pt::input<float, 8192, 1024>("x"), pt::input<float, 1024, 1024>("w"));
  const pt::automatic find({"B", "M"}, pt::a100_80, {.evaluations = 40}, "find <it>");
  const auto p = pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}},
                               pt::schedule(pt::manual("M", {{"w", 1}}, "MP"), find));
  CHECK(p.tactics[0].search.evaluations == 0);
  CHECK(p.tactics[1].search.evaluations > 0);
  CHECK(p.tactics[1].search.log.size() > 0);
  const pt::text page = pt::html_page(p, pt::a100_80);
  check_page(page);
  CHECK(count(page, "<a href=\"#searches\">") == 1);
  CHECK(count(page, "aria-label=\"Search of tactic find &lt;it&gt;\"") == 1);
  CHECK(count(page, " evaluations, ") > 0);
  CHECK(count(pt::html_page(training_step("x", "w"), pt::a100_80), "searches") == 0);
}

TEST_CASE("a page is written to a file") {
  const auto p = training_step("x", "w");
  CHECK_THROWS_WITH(pt::write_html(p, pt::h100, "/nowhere/page.html"),
                    "N004 file: \"/nowhere/page.html\" cannot be written");
  const std::string file = "partita_page_test.html";
  pt::write_html(p, file, {.title = "no machine"});
  CHECK(pt::run_detail::read_file(file).find("<title>no machine</title>") != std::string::npos);
  pt::write_html(p, pt::h100, file);
  CHECK(pt::run_detail::read_file(file) == std::string(pt::html_page(p, pt::h100).view()));
  std::remove(file.c_str());
  pt::partitioned wrong = p;
  wrong.error.record("X001", "a mistake");
  CHECK(pt::html_page(wrong, pt::h100) == "error: X001 a mistake\n");
  CHECK_THROWS_WITH(pt::write_html(wrong, pt::h100, file), "X001 a mistake");
}
