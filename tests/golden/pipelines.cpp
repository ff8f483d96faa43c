// Timelines of pipelines as pictures, pages and trace events: equal to the simulated timeline,
// well-formed for any names, of bounded size.
#include <doctest/doctest.h>

#include <array>
#include <cstdlib>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include <partita/mpmd/list_schedule.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/plain_pipeline.hpp>
#include <partita/partita.hpp>
#include <partita/report/pipeline_html.hpp>
#include <partita/report/pipeline_svg.hpp>
#include <partita/report/pipeline_trace.hpp>

#include "../json.hpp"
#include "../page.hpp"

namespace pt = partita;

namespace {

/// A simulated plain pipeline.
struct played {
  pt::call_graph g;
  pt::mesh_lists lists;
  pt::timeline t;

  played(const pt::pipeline_shape& s, const pt::pipeline_order& o, const pt::pipeline_costs& c,
         int capacity = pt::unbounded)
      : g(pt::plain_pipeline(s, o, {.split = o.splits})) {
    pt::failure error;
    const pt::vec<int> order = pt::sequence(g, s, o, error);
    REQUIRE(!error);
    lists = pt::lists_with_messages(g, order, pt::messages_of(g, order, c.transfer));
    t = pt::play(g, lists, [&](int i) { return c.seconds(g.calls[i]); }, {.capacity = capacity});
  }
  std::string picture(const pt::pipeline_view& view = {}) const {
    return std::string(pt::pipeline_svg(g, lists, t, view).view());
  }
  std::string trace(const pt::pipeline_view& view = {}) const {
    return std::string(pt::trace_events(g, lists, t, view).view());
  }
};

/// A step in two stages on meshes of any names.
pt::pipelined two_stage_step(std::string_view first, std::string_view second) {
  const auto layer = [](const auto& h, const auto& w) { return tanh(matmul(h, w)); };
  const pt::program f = pt::trace(
      [&](const auto& x, const auto& w1, const auto& w2) {
        const auto [loss, g] = pt::value_and_grad(
            [&](const auto& w) {
              return sum(pt::named("b", layer)(pt::named("a", layer)(x, w[0]), w[1]));
            },
            std::array{w1, w2});
        return std::tuple{pt::output("w1", w1 - g[0]), pt::output("w2", w2 - g[1])};
      },
      pt::input<float, 64, 32>("x"), pt::input<float, 32, 32>("w1"),
      pt::input<float, 32, 32>("w2"));
  return pt::pipeline(
      f, pt::topology{{first, {{"B", 2}}}, {second, {{"B", 2}}}}, pt::one_f_one_b,
      {.where = {.names = {{"a", first}, {"b", second}}}, .microbatches = 4, .batch = {{"x", 0}}});
}

/// Returns the value of a key in an event of a trace.
std::string value_of(std::string_view event, std::string_view key) {
  const std::size_t at = event.find("\"" + std::string(key) + "\": ");
  if (at == event.npos) return "";
  const std::size_t from = at + key.size() + 4;
  return std::string(event.substr(from, event.find_first_of(",}", from) - from));
}

}  // namespace

TEST_CASE("the JSON checker finds errors") {
  CHECK(json_checker("{\"a\": [1, -0.5e+3, \"x\\u00e9 \\\" \xc3\xa9\", {}, [], true]}\n").run() ==
        "");
  for (const char* wrong : {"{", "[1,]", "{\"a\" 1}", "01", "1.", "\"\x01\"", "\"\xff\"", "\"\\x\"",
                            "[1] 2", "nan", "{a: 1}"})
    CHECK_MESSAGE(json_checker(wrong).run() != "", wrong);
}

TEST_CASE(
    "the picture of a timeline has a box for each call, with its microbatch, and the bubble") {
  const played p({4, 4, 8}, pt::one_f_one_b, {.forward = 1, .input = 1, .weight = 1});
  const std::string all = p.picture({.seconds = false});
  CHECK(xml_checker(all).run() == "");
  CHECK(count(all, ">One step: 33<") == 1);
  CHECK(
      count(all, ">4 meshes, 8 microbatches; bubble 27.3 % of the time, 37.5 % of the ideal 24<") ==
      1);
  CHECK(count(all, "fill=\"#4e79a7\"") == 4 * 8 + 1);  // and the legend
  CHECK(count(all, "fill=\"#4f9a47\"") == 4 * 8 + 1);
  for (int i = 0; i < 8; ++i)
    CHECK(count(all, "</title>" + std::to_string(i) + "</text>") == 4 * 2);
  CHECK(count(all, "<title>B2.3 on m3: 2 from 10 on</title>") == 2);  // of the box and its number
  CHECK(count(all, ">72.7 %<") == 4);
  CHECK(count(all, "sent to") == 0);  // messages take no time here
}

TEST_CASE("messages are drawn beside computation; later stages of a mesh are darker") {
  const played p({4, 8, 8}, pt::interleaved_1f1b, {1e-3, 1e-3, 1e-3, 5e-4});
  const std::string all = p.picture();
  CHECK(xml_checker(all).run() == "");
  for (const char* color : {"#4e79a7", "#2f5580", "#4f9a47", "#2f6b2a"})
    CHECK(count(all, "fill=\"" + std::string(color) + "\"") == 4 * 8 + 1);
  CHECK(count(all, "<title>result of ") == p.lists.messages.size());
  CHECK(count(all, ">sent to a later mesh<") == 1);
  CHECK(count(all, ">sent to an earlier mesh<") == 1);
}

TEST_CASE("ten thousand and a hundred thousand calls: the same picture") {
  const pt::pipeline_costs costs{1e-3, 1e-3, 1e-3, 2e-4};
  const std::string some = played({8, 8, 625}, pt::one_f_one_b, costs).picture(),
                    many = played({8, 8, 6250}, pt::one_f_one_b, costs).picture();
  CHECK(xml_checker(some).run() == "");
  CHECK(some.size() < 1'000'000);
  CHECK(many.size() < some.size() * 5 / 4);
  CHECK(count(some, "as high as its share of the time") == 1);
}

TEST_CASE("pictures of calls that take no time, and of a deadlock") {
  const std::string none = played({2, 2, 2}, pt::gpipe, {0, 0, 0}).picture();
  CHECK(xml_checker(none).run() == "");
  CHECK(count(none, "the calls take no time") == 1);
  const played dead({3, 6, 8}, pt::circular, {}, 1);
  CHECK(dead.picture().starts_with("error: O007 deadlock"));
  CHECK(dead.trace().starts_with("error: O007 deadlock"));
}

TEST_CASE("numbers have three digits") {
  const auto shown = [](double v) {
    return std::string(pt::report_detail::three_digits(v).view());
  };
  CHECK(shown(0) == "0");
  CHECK(shown(21) == "21");
  CHECK(shown(21.34) == "21.3");
  CHECK(shown(0.30000000000000004) == "0.3");
  CHECK(shown(0.01253) == "0.0125");
  CHECK(shown(99.96) == "100");
  CHECK(shown(1234.5) == "1235");
}

TEST_CASE("trace events: an event for each call and message, arrows between events") {
  for (const auto* order : {&pt::one_f_one_b, &pt::zb_h1}) {
    const played p({4, 4, 6}, *order, {1e-3, 1e-3, 7e-4, 3e-4});
    const std::string all = p.trace();
    REQUIRE(json_checker(all).run() == "");
    CHECK(count(all, "\"ph\": \"X\"") == p.g.calls.size() + p.lists.messages.size());
    CHECK(count(all, "\"process_name\"") == 4);
    struct span {
      double begin, end;
    };
    std::map<std::string, std::vector<span>> events;  // by process and thread
    std::map<std::string, std::string> arrows;        // by number: its kinds
    const auto place = [](std::string_view e) {
      return value_of(e, "pid") + " " + value_of(e, "tid");
    };
    const auto time = [](std::string_view e) {
      return std::strtod(value_of(e, "ts").c_str(), nullptr);
    };
    const auto for_each = [&](std::string_view kinds, const auto& f) {
      for (std::size_t at = 0, end; (end = all.find('\n', at)) != all.npos; at = end + 1) {
        const std::string_view e = std::string_view(all).substr(at, end - at);
        const std::string kind = value_of(e, "ph");
        if (kind.size() == 3 && kinds.find(kind[1]) != kinds.npos) f(e, kind[1]);
      }
    };
    for_each("X", [&](std::string_view e, char) {
      const double length = std::strtod(value_of(e, "dur").c_str(), nullptr);
      events[place(e)].push_back({time(e), time(e) + length});
    });
    for_each("stf", [&](std::string_view e, char kind) {
      arrows[value_of(e, "id")] += kind;
      bool found = false;
      for (const span& s : events[place(e)])
        found = found || (s.begin <= time(e) && time(e) < s.end);
      CHECK_MESSAGE(found, e);
    });
    CHECK(arrows.size() == p.lists.messages.size());
    for (const auto& [id, kinds] : arrows) CHECK(kinds == "stf");
    for (auto& [thread, list] : events)  // events of a thread do not overlap
      for (std::size_t i = 1; i < list.size(); ++i) CHECK(list[i].begin >= list[i - 1].end - 1e-6);
  }
}

TEST_CASE("pictures, pages and traces of pipelines with any names are well-formed") {
  std::mt19937 random(3);
  for (int round = 0; round < 12; ++round) {
    std::string name;
    for (int i = 0; i < 20; ++i) name += static_cast<char>(random() % 256);
    if (round == 0) name = "<b>\"&amp;\\\xed\xa0\x80 é</b>";
    const pt::pipelined p = two_stage_step(name, "m1");
    const pt::pipeline_time t = pt::simulate(p, pt::a100_80);
    REQUIRE(!t.error);
    CHECK(xml_checker(pt::pipeline_svg(p, t).view()).run() == "");
    CHECK(json_checker(pt::trace_events(p, t).view()).run() == "");
    check_page(pt::html_page(p, t, {.title = name}));
  }
}

TEST_CASE("a page contains all parts of a pipeline's report") {
  const pt::pipelined p = two_stage_step("m0", "m1");
  const pt::text page = pt::html_page(p, pt::simulate(p, pt::a100_80), {.title = "two stages"});
  check_page(page);
  for (const char* words :
       {"<title>two stages</title>", "Timeline of a pipeline", "Calls of each mesh",
        "F0 F1 B0 F2 B1 F3 B2 B3", "<td>forward, stage 0</td>", "8 messages",
        "2 stages on 2 meshes", "tensor&lt;16x32xf32&gt;", "fragment&lt;mesh=&quot;m0&quot;"})
    CHECK_MESSAGE(count(page, words) > 0, words);
  const pt::text events = pt::trace_events(p, pt::simulate(p, pt::a100_80));
  CHECK(count(events, ": tensor<16x32xf32>\"") == 8);
  pt::device nothing;
  CHECK(std::string_view(pt::html_page(p, pt::simulate(p, nothing))).starts_with("error: D001"));
}
