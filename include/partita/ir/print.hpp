/// Programs as text, in the notation of the PartIR paper.
#pragma once

#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/ir/value_names.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Returns the name of an op in a call; a `dot_general` without attributes is printed as `matmul`.
constexpr std::string_view call_name(const op_def& d, const text& attributes) {
  return d.name == "dot_general" && attributes.empty() ? std::string_view("matmul") : d.name;
}

/// Prints `matmul(%x, %w1) {attributes}`, without result and type.
template <class Names>
constexpr void print_call(text& out, const program& p, op_id o, const mesh* m, Names&& operand) {
  const op_node& n = p.op(o);
  const op_def& d = *n.def;
  print_context c{p, o, m, out};
  if (d.role == op_role::tag) {
    out << "tag ";
    print_quoted(out, p.view(n.name));
    out << " %";
    operand(0);
    return;
  }
  if (d.collective) {
    out << d.name;
    d.print(c);
    out << ' ';
    append_list(out, n.operand_count, [&](int i) {
      out << '%';
      operand(i);
    });
    return;
  }
  text attributes;  // they determine the name of a product
  const bool product = d.name == "dot_general";
  if (product) {
    print_context a{p, o, m, attributes};
    d.print(a);
  }
  out << call_name(d, attributes);
  if (n.name.size > 0) {
    out << ' ';
    print_quoted(out, p.view(n.name));
  }
  if (n.operand_count > 0) {
    out << '(';
    append_list(out, n.operand_count, [&](int i) {
      out << '%';
      operand(i);
    });
    out << ')';
  }
  if (product)
    out << attributes;
  else
    d.print(c);
}

/// Prints `(%x: tensor<4xf32>)`.
constexpr void print_parameters(text& out, const program& p, const value_names& names) {
  out << '(';
  append_list(out, p.input_count(), [&](int i) {
    out << '%' << names[p.inputs[static_cast<std::size_t>(i)]] << ": " << p.input_type(i);
  });
  out << ')';
}

/// Prints the header, `func @main(...) attributes {mesh = ...} {`.
constexpr void print_signature(text& out, const program& p, const value_names& names,
                               const mesh* m) {
  out << "func @main";
  print_parameters(out, p, names);
  if (m != nullptr) out << " attributes {mesh = " << *m << '}';
  out << " {\n";
}

/// The printed names of the ops of a program that have one (parameters, tags, computations).
struct op_names {
  vec<text> texts;
  vec<op_id> ops;
  name_table table;  ///< indices into both lists

  constexpr explicit op_names(const program& p) : table(0) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).name.size == 0) continue;
      texts.push_back(name_text(p.view(p.op(o).name)));
      ops.push_back(o);
    }
    table = name_table(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) table.insert(texts[i], static_cast<int>(i));
  }
  /// Returns the first op with this printed name, or -1.
  constexpr op_id find(std::string_view shown) const {
    const int i = table.find(shown);
    return i < 0 ? -1 : ops[i];
  }
};

/// Returns the name of output `i` of `count` if the text does not state one. It is the printed name
/// of its value, without a prime that follows the name of an input or tag. For an input, a tag or a
/// numbered value, it is `result`, or `result.0`, `result.1`, ... if there are several outputs.
///
/// `printed(v)` returns the name of a value in the text; `named` finds ops by name.
template <class Printed>
constexpr text implied_output_name(const program& p, value_id v, int i, int count,
                                   const Printed& printed, const op_names& named) {
  const std::string_view name = printed(v), suffix = value_names::suffix_of(p, p.producer(v));
  text stem = "x";
  if (!suffix.empty()) stem = concat(printed(p.operand(p.producer(v), 0)), suffix);
  bool numbered =
      name.substr(0, stem.size()) == stem.view() && (!suffix.empty() || name.size() > stem.size());
  for (std::size_t k = stem.size(); numbered && k < name.size(); ++k)
    numbered = name[k] >= '0' && name[k] <= '9';
  if (!numbered && p.name(v).empty()) {
    if (!name.empty() && name.back() == '\'')
      if (const op_id o = named.find(name.substr(0, name.size() - 1)); o >= 0)
        return p.view(p.op(o).name);
    return unquoted(name);
  }
  if (count == 1) return "result";
  return concat("result.", i);
}

/// Indents by two blanks per level, up to 32 levels, so that the length of a text is linear in the
/// number of ops even if they are deeply nested.
constexpr void print_indent(text& out, int depth) {
  for (int i = 0; i < depth && i < 32; ++i) out << "  ";
}

/// Prints `return %a, %b : types`. An output whose name is not the implied one shows it:
/// `return %x1 as "y" : tensor<4xf32>`.
constexpr void print_results(text& out, const program& p, const value_names& names) {
  const auto printed = [&](value_id v) { return names[v]; };
  const op_names named(p);
  out << "return ";
  append_list(out, p.output_count(), [&](int i) {
    const value_id v = p.outputs[static_cast<std::size_t>(i)].value;
    const std::string_view name = p.output_name(i);
    out << '%' << names[v];
    if (name.empty() || implied_output_name(p, v, i, p.output_count(), printed, named) == name)
      return;
    out << " as ";
    print_quoted(out, name);
  });
  out << " : ";
  append_list(out, p.output_count(), [&](int i) { out << p.output_type(i); });
  out << '\n';
}
/// Prints the last lines of a program: its results and the closing brace.
constexpr void print_return(text& out, const program& p, const value_names& names) {
  out << "  ";
  print_results(out, p, names);
  out << "}\n";
}

/// Prints the ops of a program, one per line, with nested programs indented:
///
/// ```
/// %n, %h = while(%zero, %x) do (%x1: i32, %x2: 4xf32) {
///   return %x3 : i1
/// } do (%x1: i32, %x2: 4xf32) {
///   return %x3, %x4 : i32, 4xf32
/// } : i32, 4xf32
/// ```
constexpr void print_ops(text& out, const program& p, const value_names& names, const mesh* m,
                         int depth, const label_list& labels);
/// Prints one op and its nested programs.
constexpr void print_op(text& out, const program& p, op_id o, const value_names& names,
                        const mesh* m, int depth, const label_list& labels) {
  const op_node& n = p.op(o);
  print_indent(out, depth);
  append_list(out, n.result_count, [&](int i) { out << '%' << names[n.result + i]; });
  out << " = ";
  print_call(out, p, o, m, [&](int i) { out << names[p.operand(o, i)]; });
  for (const auto& r : p.regions_of(o)) {
    const value_names inner(r, names.last_number(), labels);
    out << " do ";
    print_parameters(out, r, inner);
    out << " {\n";
    print_ops(out, r, inner, m, depth + 1, labels);
    print_indent(out, depth + 1);
    print_results(out, r, inner);
    print_indent(out, depth);
    out << '}';
  }
  out << " : ";
  append_list(out, n.result_count, [&](int i) { out << p.type(n.result + i); });
  out << '\n';
}
constexpr void print_ops(text& out, const program& p, const value_names& names, const mesh* m,
                         int depth, const label_list& labels) {
  for (op_id o = 0; o < p.op_count(); ++o)
    if (!p.is(o, op_role::parameter)) print_op(out, p, o, names, m, depth, labels);
}

namespace ir_detail {
constexpr text printed(const program& p, const mesh* m) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  const value_names names(p);
  print_signature(out, p, names, m);
  print_ops(out, p, names, m, 1, p.labels);
  print_return(out, p, names);
  return out;
}
}  // namespace ir_detail

namespace separate {
text print(const program& p, const mesh* m);
}

/// Returns the program as the paper's listings show it. The mesh, if given, is printed in the
/// header and names the axes of collectives.
constexpr text print(const program& p, const mesh* m = nullptr) {
  PARTITA_RETURN(ir_detail::printed(p, m), separate::print(p, m));
}

}  // namespace partita
