// The search's view of a program as lines of JSON: what `partita --environment` serves.
#include <doctest/doctest.h>

#include <string>

#include "../../examples/partita/environment.hpp"

namespace pt = partita;

namespace {

struct served {
  pt::core_program core;
  pt::vec<int> axes;
  pt::machine on = pt::a100_80;
  pt::environment e;
  environment_server server;

  explicit served(const pt::program& p)
      : core(p, pt::mesh{{"B", 4}}), axes(numbered(core)), e(core, axes, on, {}), server(e) {}
  std::string operator()(std::string_view line) { return server.answer(line); }

 private:
  static pt::vec<int> numbered(pt::core_program& c) {
    pt::failure f;
    return pt::vec<int>(1, c.axis("B", "test", f));
  }
};

}  // namespace

TEST_CASE("requests and answers") {
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

TEST_CASE("requests that are wrong") {
  served ask(pt::trace([](auto x) { return x * 2.f; }, pt::input<float, 8>("x")));
  const auto is_error = [&](std::string_view line, std::string_view why) {
    const std::string answer = ask(line);
    CAPTURE(answer);
    CHECK(answer.starts_with("{\"error\": \"X016 environment: "));
    CHECK(answer.find(why) != std::string::npos);
  };
  is_error("", "\\\"{\\\" is expected");
  is_error("{\"do\": \"step\", \"action\": 7}", "there is no action 7; there are 1");
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
