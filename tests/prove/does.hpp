/// Proofs of short programs.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"

namespace proof_test {

namespace pt = partita;

/// True if the program is proved. (If claims prove it and elements contradict them, a rule of
/// claims is unsound.)
inline bool is_proved(const pt::program& source, const pt::device_program& d) {
  const pt::verdict v = pt::prove(source, d);
  CHECK_MESSAGE(!v.error.message.view().starts_with("Q016"), data::str(v.error.message));
  return v.proved;
}

/// True if a program of one device is proved to do what the source does. `first`: an axis along
/// which the first dimension of the first input is sliced.
inline bool does(const std::string& source, const std::string& local,
                 const std::string& mesh = "\"B\":1", const std::string& first = "") {
  const auto func = [](const std::string& s, const std::string& attributes) {
    const auto end = s.find(')') + 1;
    return "func @main" + s.substr(0, end) + attributes + " {\n" + s.substr(end) + "}\n";
  };
  const pt::program p = pt::parse(func(source, ""));
  pt::device_program d;
  d.local = pt::parse(func(local, " attributes {mesh = {" + mesh + "}}"), d.mesh);
  REQUIRE_MESSAGE(!p.error, data::str(p.error.message));
  REQUIRE_MESSAGE(!d.local.error, data::str(d.local.error.message));
  for (int i = 0; i < p.input_count(); ++i) d.inputs.push_back({});
  for (int i = 0; i < p.output_count(); ++i) d.outputs.push_back({});
  if (!first.empty()) d.inputs[0].push_back(0, d.mesh.find(first));
  return is_proved(p, d);
}

}  // namespace proof_test
