/// Proofs of short programs.
#pragma once

#include <string>

#include <doctest/doctest.h>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>
#include <partita/run/refute.hpp>

#include "../data.hpp"

namespace proof_test {

namespace pt = partita;

/// True if claims prove the program. (A proof element by element does not count.)
inline bool by_claims(const pt::program& source, const pt::device_program& d) {
  const bool is = pt::prove(source, d, {.most_elements = 0}).proved;
  if (is || !pt::prove(source, d).proved) return is;
  pt::device_program run = d;
  run.input_types.clear();
  run.output_types.clear();
  for (int i = 0; i < source.input_count(); ++i) run.input_types.push_back(source.input_type(i));
  for (int i = 0; i < source.output_count(); ++i) run.output_types.push_back(source.output_type(i));
  const pt::refutation wrong = pt::refute(source, run, {.seeds = 10});
  CHECK_MESSAGE(!wrong.refuted, data::str(pt::print(d)));
  CHECK_MESSAGE(!wrong.error, data::str(wrong.error.message));
  return false;
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
  return by_claims(p, d);
}

}  // namespace proof_test
