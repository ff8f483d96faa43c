/// Programs as text, in the notation of the PartIR paper.
#pragma once

#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Printed names of values, without the `%`. Parameters, tags and named outputs keep their names,
/// quoted if necessary; an output named like an input gets a prime. The result of an all_gather or
/// all_slice of `%w` is `%wg` or `%ws`. Results of labelled ops have the label. All other values
/// are numbered `%x1`, `%x2`, ... in program order.
class value_names {
 public:
  constexpr explicit value_names(const program& p) : value_names(p, 0, p.labels) {}
  /// For a nested program: numbers start after `last_number`, and labels are those of the enclosing
  /// program.
  ///
  /// Cost      linear in values
  constexpr value_names(const program& p, int last_number, const label_list& labels)
      : first_number_(last_number + 1), number_(last_number) {
    at_.resize(p.types.size(), text_ref{});
    vec<int> next;  // by value: the next number to try as a suffix of its name
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (p.name(v).empty()) continue;
      start(v);
      pool_ << name_text(p.name(v));
      keep(v);
      insert(v);
    }
    for (const auto& out : p.outputs)
      if (at_[out.value].size == 0 && !is_default_name(p.view(out.name)))
        make_unique(next, out.value, name_text(p.view(out.name)), "'");
    if (!labels.empty()) take_labels(next, p, labels);
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (at_[v].size > 0) continue;
      const op_id o = p.producer(v);
      const std::string_view suffix = suffix_of(p, o);
      if (!suffix.empty())
        make_unique(next, v, concat((*this)[p.operand(o, 0)], suffix));
      else
        number(v);
    }
  }

  /// Returns the printed name of a value.
  constexpr std::string_view operator[](value_id v) const {
    return {pool_.view().data() + at_[v].begin, static_cast<std::size_t>(at_[v].size)};
  }
  /// Returns the first value with this printed name, or -1.
  constexpr value_id find(std::string_view name) const {
    if (const value_id v = named(name); v >= 0) return v;
    if (name.empty() || name[0] != 'x') return -1;
    scanner in(name.substr(1));
    std::int64_t n = 0;
    if (!in.integer(n) || n < first_number_ || n > number_) return -1;
    const value_id v = numbered_[static_cast<std::size_t>(n - first_number_)];
    return v >= 0 && (*this)[v] == name ? v : -1;
  }
  /// Returns the number of values.
  constexpr int size() const { return static_cast<int>(at_.size()); }
  /// Returns the last number used for a name.
  constexpr int last_number() const { return number_; }
  /// Returns the suffix that the result of this op adds to its operand's name, or an empty text.
  static constexpr std::string_view suffix_of(const program& p, op_id o) {
    const op_def& d = *p.op(o).def;
    if (d.role == op_role::tiling) return "t";
    if (!d.collective) return "";
    return d.name == "all_gather" ? "g" : d.name == "all_slice" ? "s" : "";
  }
  /// True for the names of outputs that the model did not name.
  static constexpr bool is_default_name(std::string_view n) {
    return n.empty() || n == "result" || n.substr(0, 7) == "result.";
  }

 private:
  text pool_;          ///< all names
  vec<text_ref> at_;   ///< by value: its name
  place_table table_;  ///< values whose names are not numbers; no generated number is such a name
  vec<value_id> numbered_;  ///< by number, from first_number_ on; -1 if another value has that name
  int first_number_, number_;

  constexpr void start(value_id v) { at_[v].begin = static_cast<int>(pool_.size()); }
  constexpr void keep(value_id v) { at_[v].size = static_cast<int>(pool_.size()) - at_[v].begin; }

  constexpr value_id named(std::string_view name) const {
    return table_.find(hash_of(name), [&](value_id v) { return (*this)[v] == name; });
  }
  constexpr void insert(value_id v) {
    if (named((*this)[v]) < 0)
      table_.insert(v, [&](value_id each) { return hash_of((*this)[each]); });
  }
  constexpr void number(value_id v) {
    for (;;) {
      start(v);
      pool_ << 'x' << ++number_;
      keep(v);
      const bool free = named((*this)[v]) < 0;
      numbered_.push_back(free ? v : -1);
      if (free) return;
      pool_.truncate(static_cast<std::size_t>(at_[v].begin));
    }
  }
  constexpr void take_labels(vec<int>& next, const program& p, const label_list& labels) {
    for (const auto& each : p.labels.values)
      if (at_[each.value].size == 0) make_unique(next, each.value, name_text(each.name));
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (at_[v].size > 0) continue;
      const op_id o = p.producer(v);
      const std::string_view label = p.label(o, labels);
      if (!label.empty())
        make_unique(next, v,
                    name_text(p.result_label(o, p.result_index(v), p.op(o).result_count, labels)));
    }
  }
  /// Gives a value the name `base`; if that is in use, appends `suffix`, and then also a number.
  constexpr void make_unique(vec<int>& next, value_id v, const text& base,
                             std::string_view suffix = "") {
    text name = base;
    value_id owner = find(name);
    if (owner >= 0 && !suffix.empty()) {
      name << suffix;
      owner = find(name);
    }
    if (owner >= 0) {
      if (next.empty()) next.resize(at_.size(), 2);
      const text stem = name;
      do {
        name = concat(stem, next[owner]++);
      } while (find(name) >= 0);
    }
    start(v);
    pool_ << name;
    keep(v);
    insert(v);
  }
};

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
