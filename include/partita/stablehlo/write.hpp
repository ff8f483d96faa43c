/// Programs as StableHLO text, which JAX's libraries parse and XLA compiles.
#pragma once

#include <partita/stablehlo/ports.hpp>
#include <partita/stablehlo/write_ops.hpp>

namespace partita {

namespace stablehlo_detail {

/// Writes `func.func public @main(%arg0: tensor<4xf32> loc("x"), ...) -> (tensor<f32>
/// {jax.result_info = "result.loss"}) { ... }`.
///
/// `inputs`, `outputs`: the attributes of each argument and result, which may be empty; or empty
/// lists.
constexpr void write_main(module_writer& m, text& out, const program& p,
                          const vec<text>& inputs = {}, const vec<text>& outputs = {}) {
  function_writer f;
  body_writer body(m, f, p, true);
  f.out << "  func.func public @main(";
  append_list(f.out, p.input_count(), [&](int i) {
    const ssa argument{-1 - i, -1};
    f.out << argument << ": ";
    write_type(f.out, p.input_type(i));
    if (!inputs.empty() && !inputs[static_cast<std::size_t>(i)].empty())
      f.out << " {" << inputs[static_cast<std::size_t>(i)] << '}';
    if (!p.input_name(i).empty()) {
      f.out << " loc(";
      write_quoted(f.out, p.input_name(i), true);
      f.out << ')';
    }
    body.names[static_cast<std::size_t>(p.inputs[static_cast<std::size_t>(i)])] = argument;
  });
  f.out << ") -> (";
  append_list(f.out, p.output_count(), [&](int i) {
    write_type(f.out, p.output_type(i));
    const bool named = !p.output_name(i).empty();
    const bool more = !outputs.empty() && !outputs[static_cast<std::size_t>(i)].empty();
    if (!named && !more) return;
    f.out << " {";
    if (named) {
      f.out << "jax.result_info = ";
      write_quoted(f.out, concat("result.", p.output_name(i)).view(), true);
    }
    if (more) f.out << (named ? ", " : "") << outputs[static_cast<std::size_t>(i)];
    f.out << '}';
  });
  f.out << ") {\n";
  body.ops();
  body.return_outputs("return");
  f.out << "  }\n";
  out << f.out << m.functions;
}

}  // namespace stablehlo_detail

/// Writes a program as a StableHLO module with a function @main. Names of arguments are locations,
/// names of results are `jax.result_info`; other attributes of both are those that were read. If an
/// op cannot be written, the text is only "error: " and the message.
///
/// Law       read_stablehlo(write_stablehlo(p)) is p without unused constants, with
///           constants rounded to their types
/// Cost      linear in ops
/// Errors    W001 an op that cannot be written
constexpr text write_stablehlo(const program& p) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  stablehlo_detail::module_writer m;
  out << "module @partita {\n";
  stablehlo_detail::port_texts inputs(p.interface.inputs, p.inputs.size()),
      outputs(p.interface.outputs, p.outputs.size());
  stablehlo_detail::add_donations(inputs, p.interface, [&](int i, int k) {
    return k < p.output_count() && p.input_type(i) == p.output_type(k);
  });
  stablehlo_detail::write_main(m, out, p, inputs.finish(), outputs.finish());
  out << "}\n";
  if (!m.error) return out;
  text failed;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace partita
