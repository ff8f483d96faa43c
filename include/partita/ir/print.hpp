/// Programs as text, in the paper's notation.
#pragma once

#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Printed names of values, without the `%`. Parameters, tags and named outputs keep their names,
/// in quotes where they need them (an output that is named as an input gets a prime); what an
/// all_gather or all_slice makes of `%w` is `%wg` or `%ws`; the other values are numbered `%x1`,
/// `%x2`, ... in program order.
class value_names {
 public:
  /// Numbers above `last_number`: those of the program around a nested one. Cost: linear in values.
  constexpr explicit value_names(const program& p, int last_number = 0)
      : table_(p.types.size()), number_(last_number) {
    const auto count = p.types.size();
    names_.resize(count, text{});  // for good: the table looks into these texts
    vec<int> next(count, 2);
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (p.name(v).empty()) continue;
      names_[v] = name_text(p.name(v));
      table_.insert(names_[v], v);
    }
    for (const auto& out : p.outputs)
      if (names_[out.value].empty() && !is_default_name(p.view(out.name)))
        make_unique(next, out.value, name_text(p.view(out.name)), "'");
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (!names_[v].empty()) continue;
      const op_id o = p.producer(v);
      const std::string_view suffix = suffix_of(p, o);
      if (!suffix.empty()) {
        make_unique(next, v, concat(names_[p.operand(o, 0)], suffix));
      } else {
        do {
          names_[v] = concat('x', ++number_);
        } while (table_.find(names_[v]) >= 0);
        table_.insert(names_[v], v);
      }
    }
  }
  value_names(const value_names&) = delete;
  value_names& operator=(const value_names&) = delete;

  constexpr std::string_view operator[](value_id v) const {
    return names_[static_cast<std::size_t>(v)].view();
  }
  /// The value that is printed so (of several the first one), or -1.
  constexpr value_id find(std::string_view name) const { return table_.find(name); }
  constexpr int size() const { return static_cast<int>(names_.size()); }
  constexpr int last_number() const { return number_; }
  /// What stands behind the operand's name in the name that a value of this op gets, or nothing.
  static constexpr std::string_view suffix_of(const program& p, op_id o) {
    if (p.is(o, op_role::tiling)) return "t";
    if (!p.op(o).def->collective) return "";
    const auto kind = p.collective_of(o).kind;
    return kind == collective::all_gather ? "g" : kind == collective::all_slice ? "s" : "";
  }
  static constexpr bool is_default_name(std::string_view n) {
    return n.empty() || n == "result" || n.substr(0, 7) == "result.";
  }

 private:
  vec<text> names_;
  name_table table_;
  int number_ = 0;

  /// `base`; if that is taken with `suffix` behind it, and then also with a number behind that.
  /// `next`, by value: the number to try next behind its name.
  constexpr void make_unique(vec<int>& next, value_id v, const text& base,
                             std::string_view suffix = "") {
    text& name = names_[v];
    name = base;
    int owner = table_.find(name);
    if (owner >= 0 && !suffix.empty()) {
      name << suffix;
      owner = table_.find(name);
    }
    if (owner >= 0) {
      const text stem = name;
      do {
        name = concat(stem, next[owner]++);
      } while (table_.find(name) >= 0);
    }
    table_.insert(name, v);
  }
};

/// The name of an op in a call; a `dot_general` without attributes is a `matmul`.
constexpr std::string_view call_name(const op_def& d, const text& attributes) {
  return d.name == "dot_general" && attributes.empty() ? std::string_view("matmul") : d.name;
}

/// `matmul(%x, %w1) {attributes}`, without result and type.
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
  text attributes;
  print_context a{p, o, m, attributes};
  d.print(a);
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
  out << attributes;
}

constexpr void print_parameters(text& out, const program& p, const value_names& names) {
  out << '(';
  append_list(out, p.input_count(), [&](int i) {
    out << '%' << names[p.inputs[static_cast<std::size_t>(i)]] << ": " << p.input_type(i);
  });
  out << ')';
}

constexpr void print_signature(text& out, const program& p, const value_names& names,
                               const mesh* m) {
  out << "func @main";
  print_parameters(out, p, names);
  if (m != nullptr) out << " attributes {mesh = " << *m << '}';
  out << " {\n";
}

/// The names of ops of a program (parameters, tags, computations) as texts show them.
struct op_names {
  vec<text> texts;
  vec<op_id> ops;
  name_table table;  ///< places in both

  constexpr explicit op_names(const program& p) : table(0) {
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (p.op(o).name.size == 0) continue;
      texts.push_back(name_text(p.view(p.op(o).name)));
      ops.push_back(o);
    }
    table = name_table(ops.size());
    for (std::size_t i = 0; i < ops.size(); ++i) table.insert(texts[i], static_cast<int>(i));
  }
  /// The first op with this name, or -1.
  constexpr op_id find(std::string_view shown) const {
    const int i = table.find(shown);
    return i < 0 ? -1 : ops[i];
  }
};

/// The name that output number `i` of `count` has where the text gives none: the printed name of
/// its value, which has a prime behind the name of an input or tag; but for an input, a tag and a
/// numbered value `result`, or `result.0`, `result.1`, ... of several outputs.
///
/// `printed(v)` gives the name of a value in the text, `named` finds ops by name.
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

constexpr void print_indent(text& out, int depth) {
  for (int i = 0; i < depth; ++i) out << "  ";
}

/// `return %a, %b : types`. Outputs whose names are not the implied ones show them:
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
constexpr void print_return(text& out, const program& p, const value_names& names) {
  out << "  ";
  print_results(out, p, names);
  out << "}\n";
}

/// The ops of a program, one per line and nested ones indented:
///
/// ```
/// %n, %h = while(%zero, %x) do (%x1: i32, %x2: 4xf32) {
///   return %x3 : i1
/// } do (%x1: i32, %x2: 4xf32) {
///   return %x3, %x4 : i32, 4xf32
/// } : i32, 4xf32
/// ```
constexpr void print_ops(text& out, const program& p, const value_names& names, const mesh* m,
                         int depth) {
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->role == op_role::parameter) continue;
    print_indent(out, depth);
    append_list(out, n.result_count, [&](int i) { out << '%' << names[n.result + i]; });
    out << " = ";
    print_call(out, p, o, m, [&](int i) { out << names[p.operand(o, i)]; });
    for (const auto& r : p.regions_of(o)) {
      const value_names inner(r, names.last_number());
      out << " do ";
      print_parameters(out, r, inner);
      out << " {\n";
      print_ops(out, r, inner, m, depth + 1);
      print_indent(out, depth + 1);
      print_results(out, r, inner);
      print_indent(out, depth);
      out << '}';
    }
    out << " : ";
    append_list(out, n.result_count, [&](int i) { out << p.type(n.result + i); });
    out << '\n';
  }
}

/// The program as the paper's listings show it; `m` is named in the header and by collectives.
constexpr text print(const program& p, const mesh* m = nullptr) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  const value_names names(p);
  print_signature(out, p, names, m);
  print_ops(out, p, names, m, 1);
  print_return(out, p, names);
  return out;
}

}  // namespace partita
