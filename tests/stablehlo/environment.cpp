// The search's view of a program as lines of JSON, which `partita --environment` serves.
#include <doctest/doctest.h>

#include <string>

#include "../../examples/partita/environment.hpp"
#include "../json.hpp"

namespace pt = partita;

namespace {

struct served {
  pt::core_program core;
  pt::vec<int> axes;
  pt::machine on = pt::a100_80;
  pt::environment e;
  environment_server server;

  explicit served(const pt::program& p)
      : core(p, pt::mesh{{"B", 4}}), axes(numbered(core)), e(core, axes, on, {}), server(e, axes) {}
  std::string operator()(std::string_view line) { return server.answer(line); }

 private:
  static pt::vec<int> numbered(pt::core_program& c) {
    pt::failure f;
    return pt::vec<int>(1, c.axis("B", "test", f));
  }
};

}  // namespace

TEST_CASE("the environment answers requests") {
  served ask(pt::trace([](auto x, auto w) { return matmul(x, w); },
                       pt::input<float, 4096, 256>("x"), pt::input<float, 256, 256>("a \"w\"")));
  CHECK(ask("{\"do\": \"actions\"}") ==
        "{\"actions\": [{\"action\": 0, \"axis\": \"B\", \"values\": {\"x\": 0}}, "
        "{\"action\": 1, \"axis\": \"B\", \"values\": {\"x\": 1}}, "
        "{\"action\": 2, \"axis\": \"B\", \"values\": {\"a \\\"w\\\"\": 0}}, "
        "{\"action\": 3, \"axis\": \"B\", \"values\": {\"a \\\"w\\\"\": 1}}]}");
  const std::string begin = ask("{\"do\": \"reset\"}"),
                    taken = ask("{\"do\":\"step\",\"action\":0}");
  CHECK(begin.starts_with("{\"taken\": true, \"cost\": "));
  CHECK(begin.ends_with("\"state\": [], \"hash\": \"0\"}"));
  CHECK(taken.find("\"state\": [0]") != std::string::npos);
  CHECK(taken != begin);
  CHECK(ask("{\"do\": \"specification\"}") ==
        "{\"specification\": \"A1: manual \\\"B\\\" {\\\"x\\\": 0}\\u000a\"}");
  // An action that is not possible any more changes nothing.
  CHECK(ask("{\"do\": \"step\", \"action\": 1}") ==
        "{\"taken\": false" + taken.substr(std::string("{\"taken\": true").size()));
  CHECK(ask("{\"do\": \"go_to\", \"state\": []}") == begin);
  CHECK(ask("{ \"state\" : [ 0 ] , \"do\" : \"go_to\" }") == taken);
  CHECK(ask("{\"do\": \"bound\"}").starts_with("{\"bound\": "));
}

TEST_CASE("the environment gives the program and its states as numbers") {
  const auto f = [](auto x, auto w) { return pt::tag("h", matmul(x, w)); };
  served ask(pt::trace(f, pt::input<float, 4096, 256>("x"), pt::input<float, 256, 8>("w")));
  const std::string graph = ask("{\"do\": \"graph\"}");
  CHECK(json_checker(graph).run() == "");
  CHECK(graph.starts_with("{\"axes\": [\"B\"], \"sizes\": [4], \"kinds\": [\"parameter\", "));
  // Kind, role, rank, elements, bytes, flops; then the edges.
  const std::string input = "[0, 1, 2, 1048576, 4194304, 0], [0, 1, 2, 2048, 8192, 0]",
                    product = "[1, 0, 2, 32768, 131072, 16777216]";
  CHECK(graph.find("\"nodes\": [" + input + ", " + product + ", [2, 2, 2, 32768, 131072, 0]") !=
        std::string::npos);
  CHECK(graph.find("\"edges\": [[0, 2], [1, 2], [2, 3]]") != std::string::npos);
  // The rows of x; the contracted dimension, of x or w; columns of w; rows, columns of h.
  CHECK(graph.find("\"actions\": [[0, 0, 1, 4194304], [0, 1, 1, 4194304], [0, 0, 1, 8192], "
                   "[0, 1, 1, 8192], [0, 0, 1, 131072], [0, 1, 1, 131072]]") != std::string::npos);
  CHECK(graph.find("\"members\": [[0, 0], [1, 0], [2, 1], [3, 1], [4, 3], [5, 3]]}") !=
        std::string::npos);
  const auto observed = [&](std::string_view state) {
    ask("{\"do\": \"go_to\", \"state\": " + std::string(state) + "}");
    const std::string all = ask("{\"do\": \"observe\"}");
    CHECK(json_checker(all).run() == "");
    CHECK(all.find("\"memory_bytes\": 8") != std::string::npos);
    return all;
  };
  CHECK(observed("[]").starts_with(
      "{\"nodes\": [[0], [0], [0], [0]], \"mask\": [1, 1, 1, 1, 1, 1], \"figures\": {\"cost\": "));
  // Rows: the weights are unchanged. The contracted dimension: a sum.
  CHECK(observed("[0]").starts_with("{\"nodes\": [[1], [0], [1], [1]], \"mask\": [0, 0, "));
  const std::string sum = observed("[1]");
  CHECK(sum.starts_with("{\"nodes\": [[2], [1], [-1], [0]], "));
  CHECK(sum.find("\"bytes_sent\": 196608, \"all_gather\": 0, \"all_reduce\": 1, ") !=
        std::string::npos);
}

TEST_CASE("the environment refuses invalid requests") {
  served ask(pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8>("x")));
  const auto is_error = [&](std::string_view line, std::string_view why) {
    const std::string answer = ask(line);
    CAPTURE(answer);
    CHECK(answer.starts_with("{\"error\": \"X016 environment: "));
    CHECK(answer.find(why) != std::string::npos);
  };
  is_error("", "\\\"{\\\" is expected");
  is_error("{\"do\": \"step\", \"action\": 7}",
           "action 7 does not exist; the number of actions is 1");
  is_error("{\"do\": \"step\"}", "\\\"step\\\" needs its action");
  is_error("{\"do\": \"go_to\", \"action\": 0}", "\\\"go_to\\\" needs its state, not action");
  is_error("{\"do\": \"reset\", \"action\": 0}", "does not take action");
  is_error("{\"do\": \"go_to\", \"state\": 0}", "\\\"[\\\" is expected");
  is_error("{\"do\": \"step\", \"action\": 0, \"action\": 0}", "\\\"action\\\" is given twice");
  is_error("{\"do\": \"step\", \"action\": 0, \"state\": [0]}", "action and state are given");
  is_error("{\"do\": \"resett\"}", "did you mean \\\"reset\\\"?");
  is_error("{\"do\": \"step\", \"actoin\": 0}", "did you mean \\\"action\\\"?");
  is_error("{\"do\": \"step\", \"action\": -1}", "the number of an action is expected");
  is_error("{\"do\": \"step\", \"action\": 99999999999}", "the number of an action is expected");
  is_error("{\"do\": \"jump\"}", "\\\"jump\\\" is unknown");
  is_error("{\"go\": 1}", "\\\"go\\\" is unknown");
  is_error("{\"do\": \"reset\"} again", "something follows the request");
  is_error("{\"do\": \"reset", "is expected");
}
