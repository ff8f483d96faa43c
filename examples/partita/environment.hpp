/// Serves the search environment of a program line by line.
///
/// A request is a line of JSON. The answer is a line of JSON, too: `{"error": "..."}` if the
/// request is wrong, otherwise
///
///   {"do": "actions"}
///       {"actions": [{"action": 0, "axis": "B", "values": {"x": 0}}]}, the legal actions
///   {"do": "step", "action": 0}
///       {"taken": true, "cost": 0.12, "state": [0], "hash": "..."}; "taken" is false, and the
///       state unchanged, if the action is not legal or is refused
///   {"do": "go_to", "state": [0, 7]}    the same, for the state after a list of actions
///   {"do": "reset"}                     the same, for the state without actions
///   {"do": "specification"}             {"specification": "A1: manual ..."}, the state as tactics
///   {"do": "bound"}                     {"bound": 0.01, "first": 0.5, "best": 0.12}, costs
///   {"do": "graph"}                     {"nodes": ..., "edges": ..., "actions": ...}, the program
///   {"do": "observe"}                   {"nodes": ..., "mask": ..., "figures": ...}, the state
///
/// A cost is the seconds of a simulated step, increased if memory is exceeded. observation.hpp
/// describes the numbers of "graph" and "observe". The server ends at the end of its input.
#pragma once

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <iostream>
#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/search/automatic.hpp>
#include <partita/spec/system.hpp>
#include <partita/support/number_text.hpp>

#include "observation.hpp"
#include "report.hpp"

/// A parsed request.
class environment_request {
 public:
  std::string what;
  std::vector<int> numbers;  ///< the value of "action" or "state"
  std::string argument;      ///< "action", "state", or empty
  std::string error;

  explicit environment_request(std::string_view line) : in_(line) {
    std::vector<std::string> keys;
    expect('{');
    while (error.empty() && !accept('}')) {
      const std::string key = word();
      expect(':');
      if (std::find(keys.begin(), keys.end(), key) != keys.end())
        fail("\"" + key + "\" is given twice");
      keys.push_back(key);
      if (key == "do") {
        what = word();
      } else if (key == "action" || key == "state") {
        if (!argument.empty()) fail("action and state are given");
        argument = key;
        if (key == "state")
          read_numbers();
        else
          read_number();
      } else {
        constexpr std::string_view known[] = {"do", "action", "state"};
        fail("\"" + key + "\" is unknown; " + std::string(partita::known_names(key, known).view()));
      }
      if (!accept(',') && !starts('}')) fail("\",\" or \"}\" is expected");
    }
    skip();
    if (error.empty() && !in_.empty()) fail("something follows the request");
  }

 private:
  std::string_view in_;

  void fail(const std::string& why) {
    if (error.empty()) error = "X016 environment: " + why;
  }
  void skip() {
    while (!in_.empty() && std::isspace(static_cast<unsigned char>(in_[0])) != 0)
      in_.remove_prefix(1);
  }
  bool starts(char c) {
    skip();
    return !in_.empty() && in_[0] == c;
  }
  bool accept(char c) {
    if (!starts(c)) return false;
    in_.remove_prefix(1);
    return true;
  }
  void expect(char c) {
    if (!accept(c)) fail(std::string("\"") + c + "\" is expected");
  }
  std::string word() {
    expect('"');
    std::string out;
    while (error.empty() && !in_.empty() && in_[0] != '"') {
      out += in_[0];
      in_.remove_prefix(1);
    }
    expect('"');
    return out;
  }
  void read_number() {
    skip();
    std::size_t digits = 0;
    while (digits < in_.size() && std::isdigit(static_cast<unsigned char>(in_[digits])) != 0)
      ++digits;
    if (digits == 0 || digits > 9) return fail("the number of an action is expected");
    numbers.push_back(std::atoi(std::string(in_.substr(0, digits)).c_str()));
    in_.remove_prefix(digits);
  }
  void read_numbers() {
    expect('[');
    while (error.empty() && !accept(']')) {
      read_number();
      if (!accept(',') && !starts(']')) fail("\",\" or \"]\" is expected");
    }
  }
};

/// Answers requests about one environment.
class environment_server {
 public:
  /// The environment shards along `axes`.
  environment_server(partita::environment& e, const partita::vec<int>& axes) : e_(e), axes_(axes) {}

  std::string answer(std::string_view line) {
    const environment_request r(line);
    if (!r.error.empty()) return error(r.error);
    for (int a : r.numbers)
      if (a >= e_.action_count())
        return error("X016 environment: action " + std::to_string(a) +
                     " does not exist; the number of actions is " +
                     std::to_string(e_.action_count()));
    constexpr struct {
      std::string_view what, needs;
    } requests[] = {{"actions", ""},       {"step", "action"}, {"go_to", "state"}, {"reset", ""},
                    {"specification", ""}, {"bound", ""},      {"graph", ""},      {"observe", ""}};
    std::vector<std::string_view> known;
    bool found = false;
    for (const auto& each : requests) {
      known.push_back(each.what);
      if (each.what != r.what) continue;
      found = true;
      if (r.argument != each.needs)
        return error("X016 environment: \"" + r.what + "\" " +
                     (each.needs.empty() ? "does not take " + r.argument
                                         : "needs its " + std::string(each.needs) +
                                               (r.argument.empty() ? "" : ", not " + r.argument)));
    }
    if (!found)
      return error("X016 environment: \"" + r.what + "\" is unknown; " +
                   std::string(partita::known_names(r.what, known).view()));
    if (r.what == "actions") return actions();
    if (r.what == "specification") return specification();
    if (r.what == "graph") return observations::graph(e_, axes_);
    if (r.what == "observe") return observations::observation(e_, axes_);
    if (r.what == "bound")
      return "{\"bound\": " + number(e_.lower_bound()) + ", \"first\": " + number(e_.first()) +
             ", \"best\": " + number(e_.best_cost()) + "}";
    if (r.what == "reset") return state(e_.go_to({}));
    if (r.what == "go_to") return state(go_to(r.numbers));
    return state(e_.step(r.numbers[0]));
  }

 private:
  partita::environment& e_;
  const partita::vec<int>& axes_;

  static std::string error(const std::string& what) {
    return "{\"error\": " + json_text(what) + "}";
  }
  static std::string number(double v) {
    partita::text t;
    partita::print_number(t, v);
    return std::string(t.view());
  }
  bool go_to(const std::vector<int>& actions) {
    partita::environment::path p;
    for (int a : actions) p.push_back(a);
    return e_.go_to(p);
  }
  std::string state(bool taken) {
    std::string list;
    for (int a : e_.taken()) list += (list.empty() ? "" : ", ") + std::to_string(a);
    return std::string("{\"taken\": ") + (taken ? "true" : "false") +
           ", \"cost\": " + number(e_.cost()) + ", \"state\": [" + list + "], \"hash\": \"" +
           std::to_string(e_.hash()) + "\"}";
  }
  std::string actions() const {
    std::string out = "{\"actions\": [";
    bool first = true;
    for (int a = 0; a < e_.action_count(); ++a) {
      if (!e_.legal(a)) continue;
      const partita::search_move& m = e_.action(a);
      out += std::string(first ? "" : ", ") + "{\"action\": " + std::to_string(a) + ", \"axis\": " +
             json_text(partita::search_detail::axis_name(e_.root(), m.axis).view()) +
             ", \"values\": {";
      for (std::size_t i = 0; i < m.members.size(); ++i)
        out += std::string(i > 0 ? ", " : "") +
               json_text(
                   e_.targets()[static_cast<std::size_t>(e_.target_of(m.members[i].value))].name) +
               ": " + std::to_string(m.members[i].dim);
      out += "}}";
      first = false;
    }
    return out + "]}";
  }
  std::string specification() const {
    partita::search_result r;
    r.tactics = partita::search_detail::tactics_of(e_);
    return "{\"specification\": " + json_text(partita::print_specification(r).view()) + "}";
  }
};

/// Serves the environment of a partitioned program, along all axes of the mesh, until the input
/// ends.
inline int serve_environment(const partita::system_description& system,
                             const partita::partitioned& r) {
  if (const partita::failure f = partita::validate(system.on, system.mesh))
    throw partita::error(f.message);
  partita::vec<int> axes;
  partita::core_program core = r.core;
  partita::failure f;
  for (int a = 0; a < system.mesh.whole_rank(); ++a)
    axes.push_back(core.axis(system.mesh.name(a), "environment", f));
  core.start_tactic("environment");
  constexpr std::int64_t endless = std::int64_t{1} << 62;
  // An episode may last for hours, so the time is unlimited.
  partita::environment e(core, axes, system.on, {.evaluations = endless, .seconds = 0});
  environment_server server(e, axes);
  for (std::string line; std::getline(std::cin, line);)
    if (!line.empty()) std::cout << server.answer(line) << std::endl;
  return 0;
}
