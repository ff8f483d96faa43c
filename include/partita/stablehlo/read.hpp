/// Programs from StableHLO text, as JAX, TensorFlow and PyTorch write it.
#pragma once

#include <string_view>

#include <partita/ir/verify.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/stablehlo/ops.hpp>
#include <partita/support/name_table.hpp>

namespace partita {

namespace stablehlo_detail {

/// `params['h'][0].w` as a path: `params.h.0.w`.
constexpr text path_of(std::string_view key) {
  text out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '\'' || c == ']') continue;
    if (c == '[')
      out << (out.empty() ? "" : ".");
    else if (c == '\\' && i + 1 < key.size())
      out << key[++i];
    else
      out << c;
  }
  return out;
}

struct function_text {
  std::string_view name;
  std::size_t at = 0;
  bool is_public = true;
  vec<argument_text> arguments;
  vec<std::string_view> result_attributes;
  vec<tensor_type> result_types;
  bool typed = false;  ///< does the text say the types of the results?
  piece_of_text body;
};

/// Reads a module: each function that is called is read once, and its ops stand where it is called.
class module_reader {
 public:
  constexpr module_reader(std::string_view all, span<const std::string_view> names)
      : in_(all), names_(names), by_name_(16) {}

  constexpr program run() {
    if (!in_.failed()) top();
    const int main = find_main();
    builder b;
    if (!in_.failed()) read_main(b, functions_[static_cast<std::size_t>(main)]);
    b.p.error.record(in_.error);
    if (in_.error.is_set) b.p.error.set(in_.error.message);
    if (!b.failed()) b.p.error.record(check_names(b.p));
    if (!b.failed()) b.p.error.record(check_interface(b.p));
    return static_cast<program&&>(b.p);
  }

 private:
  syntax in_;
  span<const std::string_view> names_;
  vec<function_text> functions_;
  name_table by_name_;
  vec<named_text> locations_;  // "#loc3" and what it stands for
  vec<program> read_;          // by function, once it was called
  vec<char> state_;            // by function: 0 not read, 1 being read, 2 read
  std::int64_t ops_ = 0;
  int nesting_ = 0;

  static constexpr std::int64_t most_ops = 20'000'000;

  // ---- Mistakes ------------------------------------------------------------------------------

  /// A mistake that the builder found, with its place.
  constexpr void adopt(std::size_t at, std::string_view name, const failure& f) {
    if (in_.failed()) return;
    const std::string_view message = f.message;
    in_.error.record(message.substr(0, 4), message.substr(5), " (", name, " at ", in_.place(at),
                     ")");
  }

  // ---- The module ----------------------------------------------------------------------------

  constexpr void top() {
    while (!in_.failed() && !in_.at_end()) {
      if (in_.accept_word("module")) {
        if (in_.starts("@")) in_.symbol();
        vec<named_text> attributes;
        if (in_.accept_word("attributes")) {
          in_.expect("{");
          in_.attribute_list(attributes, "}");
        }
        const piece_of_text body = in_.braces();
        if (in_.failed()) return;
        const piece_of_text behind = in_.rest();
        in_.enter(body);
        while (!in_.failed() && !in_.at_end()) item();
        in_.enter(behind);
        if (in_.accept_word("loc")) in_.bracketed();
      } else {
        item();
      }
    }
  }
  /// A function, a mesh or an alias.
  constexpr void item() {
    if (in_.starts("#")) return alias();
    if (in_.starts("\"builtin.module\"") || in_.starts("\"func.func\"")) return generic_item();
    if (in_.accept_word("func.func") || in_.accept_word("func")) return function();
    const std::size_t at = in_.position();
    if (in_.accept_word("sdy.mesh")) {
      in_.symbol();
      in_.expect("=");
      in_.attribute_value(false);
      return;
    }
    if (in_.accept("{-#")) {  // resources
      while (!in_.failed() && !in_.accept("#-}"))
        if (in_.at_end()) in_.expected("#-}");
      return;
    }
    in_.enter({at, in_.rest().end});
    in_.expected("a function (func.func)");
  }
  /// `#loc3 = loc("a")`, `#map = ...`
  constexpr void alias() {
    in_.expect("#");
    const std::string_view name = in_.word();
    in_.expect("=");
    in_.skip();
    const std::size_t begin = in_.position();
    if (in_.accept_word("loc"))
      in_.bracketed();
    else
      in_.attribute_value(false);
    if (!in_.failed()) locations_.push_back({name, in_.view({begin, in_.position()})});
  }
  constexpr void function() {
    function_text f;
    f.is_public = !in_.accept_word("private");
    if (f.is_public) in_.accept_word("public");
    in_.skip();
    f.at = in_.position();
    f.name = in_.symbol();
    if (!in_.failed()) in_.arguments(f.arguments);
    if (in_.accept("->")) {
      f.typed = true;
      if (in_.accept("(")) {
        while (!in_.failed() && !in_.accept(")")) {
          f.result_types.push_back(in_.type());
          f.result_attributes.push_back(in_.starts("{") ? in_.bracketed() : std::string_view());
          if (in_.accept_word("loc")) in_.bracketed();
          if (!in_.accept(",") && !in_.starts(")")) in_.expected(")");
        }
      } else {
        f.result_types.push_back(in_.type());
        f.result_attributes.push_back({});
      }
    }
    vec<named_text> attributes;
    if (in_.accept_word("attributes")) {
      in_.expect("{");
      in_.attribute_list(attributes, "}");
    }
    f.body = in_.braces();
    if (in_.accept_word("loc")) in_.bracketed();
    add(f);
  }
  constexpr void add(const function_text& f) {
    if (in_.failed()) return;
    const int number = static_cast<int>(functions_.size());
    if (by_name_.insert(f.name, number) != number)
      return in_.fail(f.at, "H006", "two functions are named @", f.name);
    functions_.push_back(f);
    read_.push_back({});
    state_.push_back(0);
  }
  /// `"builtin.module"() ({ ... }) : () -> ()`, `"func.func"() <{sym_name = "main", ...}> ({...})`.
  constexpr void generic_item() {
    const op_text o = in_.op();
    if (in_.failed()) return;
    if (o.regions.size() != 1) return in_.fail(o.at, "H012", o.name, ": one program is expected");
    if (o.name == "builtin.module") {
      const piece_of_text behind = in_.rest();
      in_.enter(o.regions[0].body);
      while (!in_.failed() && !in_.at_end()) item();
      return in_.enter(behind);
    }
    function_text f;
    f.at = o.at;
    f.name = without_quotes(o.attribute("sym_name"));
    f.is_public = o.attribute("sym_visibility") != "\"private\"";
    f.arguments = o.regions[0].arguments;
    f.body = o.regions[0].body;
    const vec<std::string_view> inputs = parts_of(inside(o.attribute("arg_attrs"), '[', ']'));
    for (std::size_t i = 0; i < inputs.size() && i < f.arguments.size(); ++i)
      f.arguments[i].attributes = inputs[i];
    // `(tensor<f32>) -> (tensor<f32>)`
    const std::string_view type = o.attribute("function_type");
    const std::size_t arrow = type.find("->");
    if (arrow != std::string_view::npos) {
      const piece_of_text behind = in_.rest();
      const auto begin = static_cast<std::size_t>(type.data() - in_.all().data()) + arrow + 2;
      in_.enter({begin, begin + type.size() - arrow - 2});
      in_.types(f.result_types);
      in_.enter(behind);
      f.typed = true;
    }
    for (std::string_view each : parts_of(inside(o.attribute("res_attrs"), '[', ']')))
      f.result_attributes.push_back(each);
    f.result_attributes.resize(f.result_types.size(), {});
    add(f);
  }
  /// `main`, or the only function, or the only public one.
  constexpr int find_main() {
    if (in_.failed()) return -1;
    const int main = by_name_.find("main");
    if (main >= 0) return main;
    if (functions_.size() == 1) return 0;
    int found = -1, count = 0;
    for (std::size_t i = 0; i < functions_.size(); ++i)
      if (functions_[i].is_public) found = static_cast<int>(i), ++count;
    if (count == 1) return found;
    text list;
    for (std::size_t i = 0; i < functions_.size() && i < 8; ++i)
      list << (i > 0 ? ", @" : "@") << functions_[i].name;
    in_.error.record("H010", "stablehlo: there is no function @main among ", functions_.size(),
                     " functions", functions_.empty() ? "" : ": ", list);
    return -1;
  }

  // ---- Names ---------------------------------------------------------------------------------

  /// What a location says, if it is a name: "a" of `("a")`, `("a"(#loc1))` and `(#loc3)`.
  constexpr std::string_view name_at(std::string_view location) const {
    for (int steps = 0; steps < 8; ++steps) {
      std::string_view inner = inside(location, '(', ')');
      while (!inner.empty() && is_space(inner.front())) inner.remove_prefix(1);
      if (inner.starts_with("\"")) {
        std::size_t end = 1;
        while (end < inner.size() && inner[end] != '"') end += inner[end] == '\\' ? 2 : 1;
        if (end >= inner.size()) return {};
        const std::string_view behind = inner.substr(end + 1);
        return behind.starts_with(":") ? std::string_view() : inner.substr(1, end - 1);
      }
      if (!inner.starts_with("#")) return {};
      std::size_t end = 1;
      while (end < inner.size() && is_word_char(inner[end])) ++end;
      location = {};
      for (const auto& l : locations_)
        if (l.name == inner.substr(1, end - 1)) location = l.value;
    }
    return {};
  }
  /// `{jax.result_info = "result['loss']"}`
  constexpr text result_name(std::string_view attributes, int i, int count) const {
    const std::size_t at = attributes.find("jax.result_info");
    text path;
    if (at != std::string_view::npos) {
      const std::string_view rest = attributes.substr(at);
      const std::size_t begin = rest.find('"');
      const std::size_t end = begin == std::string_view::npos ? begin : rest.find('"', begin + 1);
      if (end != std::string_view::npos) path = path_of(rest.substr(begin + 1, end - begin - 1));
    }
    const std::string_view whole = path.view();
    if (whole.starts_with("result.") && whole.size() > 7) return text(whole.substr(7));
    if (!path.empty()) return path;
    return count == 1 ? text("result") : concat("result", i);
  }

  // ---- Programs ------------------------------------------------------------------------------

  struct scope {
    builder& b;
    name_table names;
    vec<int> first;  ///< by number: where its values begin
    vec<value_id> values;

    constexpr explicit scope(builder& in) : b(in), names(8) {}
  };
  constexpr void define(scope& s, std::size_t at, std::string_view name,
                        span<const value_id> values) {
    const int number = static_cast<int>(s.first.size());
    if (s.names.insert(name, number) != number)
      return in_.fail(at, "H006", name, " is defined twice");
    s.first.push_back(static_cast<int>(s.values.size()));
    s.values.insert_back(values.begin(), values.end());
  }
  /// The value of `%3` or `%3#1`, or -1.
  static constexpr value_id find(const scope& s, std::string_view name) {
    // (One that a nested program takes from around it has its number in its name.)
    if (const int whole = s.names.find(name); whole >= 0)
      return s.values[static_cast<std::size_t>(s.first[static_cast<std::size_t>(whole)])];
    const std::size_t hash = name.find('#');
    if (hash == std::string_view::npos) return -1;
    const int number = s.names.find(name.substr(0, hash));
    if (number < 0) return -1;
    std::int64_t index = 0;
    if (!read_integer(name.substr(hash + 1), index)) return -1;
    const auto n = static_cast<std::size_t>(number);
    const std::size_t end =
        n + 1 < s.first.size() ? static_cast<std::size_t>(s.first[n + 1]) : s.values.size();
    const auto begin = static_cast<std::size_t>(s.first[n]);
    if (index < 0 || index >= static_cast<std::int64_t>(end - begin)) return -1;
    return s.values[begin + static_cast<std::size_t>(index)];
  }
  constexpr value_id use(const scope& s, std::size_t at, std::string_view name) {
    if (in_.failed()) return -1;
    const value_id v = find(s, name);
    if (v < 0) in_.fail(at, "H006", name, " is used before it is defined, or not defined at all");
    return v;
  }

  constexpr void read_main(builder& b, const function_text& f) {
    scope s(b);
    name_table taken(f.arguments.size());
    for (std::size_t i = 0; i < f.arguments.size() && !in_.failed(); ++i) {
      const auto& a = f.arguments[i];
      text name;
      if (i < names_.size())
        name = names_[i];
      else
        name = path_of(name_at(a.location));
      if (name.empty()) name = a.name.substr(1);
      const value_id v = ops::parameter(b, name, a.type);
      if (b.failed()) return adopt(a.at, a.name, b.p.error);
      define(s, a.at, a.name, {&v, 1});
    }
    const vec<value_id> results = body(s, f.body, f);
    if (in_.failed()) return;
    name_table inputs(static_cast<std::size_t>(b.p.input_count()));
    for (int i = 0; i < b.p.input_count(); ++i) inputs.insert(b.p.input_name(i), i);
    const int count = static_cast<int>(results.size());
    vec<text> names;
    names.reserve(results.size());
    name_table used(results.size());
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      text name = result_name(
          at < f.result_attributes.size() ? f.result_attributes[at] : std::string_view(), i, count);
      const int input = inputs.find(name.view());
      if (input >= 0 && b.p.input_type(input) != b.type(results[at]))
        name = concat("result.", name);
      names.push_back(name);
    }
    for (int i = 0; i < count; ++i) {
      const auto at = static_cast<std::size_t>(i);
      if (used.insert(names[at].view(), i) != i) names[at] << '.' << i;
      b.p.outputs.push_back({results[at], b.p.intern(names[at])});
    }
  }
  /// The ops of a function; gives what it returns.
  constexpr vec<value_id> body(scope& s, piece_of_text text, const function_text& f) {
    const vec<value_id> results = statements(s, text);
    if (in_.failed() || !f.typed) return results;
    if (results.size() != f.result_types.size()) {
      in_.fail(f.at, "H012", "@", f.name, " returns ", results.size(), " values; its type says ",
               f.result_types.size());
      return results;
    }
    for (std::size_t i = 0; i < results.size(); ++i)
      if (s.b.type(results[i]) != f.result_types[i])
        in_.fail(f.at, "H007", "@", f.name, " returns ", s.b.type(results[i]), " as result ", i,
                 "; its type says ", f.result_types[i]);
    return results;
  }
  constexpr vec<value_id> statements(scope& s, piece_of_text text) {
    vec<value_id> results;
    if (in_.failed()) return results;
    const piece_of_text around = in_.rest();
    in_.enter(text);
    bool returned = false;
    while (!in_.failed() && !in_.at_end()) {
      const op_text o = in_.op();
      if (in_.failed()) break;
      if (returned) {
        in_.fail(o.at, "H001", "an op behind the return");
        break;
      }
      returned = statement(s, o, results);
    }
    if (!in_.failed() && !returned) in_.expected("a return");
    in_.enter(around);
    return results;
  }
  static constexpr std::string_view without_dialect(std::string_view name) {
    for (std::string_view dialect : {"stablehlo.", "chlo.", "mhlo.", "func.", "sdy."})
      if (name.starts_with(dialect)) return name.substr(dialect.size());
    return name;
  }
  /// True if it was the return.
  constexpr bool statement(scope& s, const op_text& o, vec<value_id>& results) {
    const std::string_view name = without_dialect(o.name);
    vec<value_id> operands;
    for (auto each : o.operands) operands.push_back(use(s, o.at, each));
    if (in_.failed()) return false;
    for (std::size_t i = 0; i < operands.size() && i < o.operand_types.size(); ++i)
      if (o.operand_types.size() == operands.size() &&
          s.b.type(operands[i]) != o.operand_types[i] && name != "select" && name != "clamp") {
        in_.fail(o.at, "H007", o.name, ": operand ", o.operands[i], " has type ",
                 s.b.type(operands[i]), "; the text says ", o.operand_types[i]);
        return false;
      }
    if (name == "return") {
      results = operands;
      return true;
    }
    vec<value_id> made;
    if (name == "call" || name == "composite")
      made = call(s, o, operands);
    else
      made = compute(s, o, name, operands);
    if (in_.failed()) return false;
    if (s.b.failed()) {
      adopt(o.at, o.name, s.b.p.error);
      return false;
    }
    ops_ = ops_ > s.b.p.op_count() ? ops_ : s.b.p.op_count();
    if (ops_ > most_ops)
      in_.fail(o.at, "H011", "the program has more than ", most_ops,
               " ops once functions are put where they are called");
    check_results(s, o, name, made);
    if (!o.result.empty() && !in_.failed()) define(s, o.at, o.result, made);
    return false;
  }
  constexpr void check_results(const scope& s, const op_text& o, std::string_view name,
                               const vec<value_id>& made) {
    if (in_.failed()) return;
    if (!o.result.empty() && o.result_count != static_cast<std::int64_t>(made.size()))
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      o.result_count);
    if (!o.typed) return;
    // `while`, barriers: types of all results, as of all operands.
    const bool same = name == "while" || name == "optimization_barrier";
    const vec<tensor_type>& types =
        same && o.result_types.size() != made.size() ? o.operand_types : o.result_types;
    if (types.size() != made.size())
      return in_.fail(o.at, "H012", o.name, " has ", made.size(), " results; the text has ",
                      types.size(), " types");
    for (std::size_t i = 0; i < made.size(); ++i)
      if (s.b.type(made[i]) != types[i])
        return in_.fail(o.at, "H007", o.name, " gives ", s.b.type(made[i]), "; the text says ",
                        types[i]);
  }
  /// The function's ops, with the operands for its arguments.
  constexpr vec<value_id> call(scope& s, const op_text& o, const vec<value_id>& operands) {
    std::string_view name = o.symbol;
    for (std::string_view attribute : {"callee", "decomposition"})
      if (o.has(attribute)) name = o.attribute(attribute);
    if (name.starts_with("@")) name.remove_prefix(1);
    name = without_quotes(name);
    const int number = by_name_.find(name);
    if (number < 0) {
      in_.fail(o.at, "H010", o.name, ": there is no function @", name);
      return {};
    }
    const auto n = static_cast<std::size_t>(number);
    read_function(o, n);
    if (in_.failed()) return {};
    program f = read_[n];
    const std::size_t inputs = static_cast<std::size_t>(f.input_count());
    if (inputs != operands.size()) {
      in_.fail(o.at, "H012", "@", name, " has ", inputs, " arguments; ", operands.size(),
               " are given");
      return {};
    }
    for (std::size_t i = 0; i < inputs; ++i)
      if (f.input_type(static_cast<int>(i)) != s.b.type(operands[i])) {
        in_.fail(o.at, "H007", "argument ", i, " of @", name, " has type ",
                 f.input_type(static_cast<int>(i)), "; ", s.b.type(operands[i]), " is given");
        return {};
      }
    return op_detail::append_program(s.b, static_cast<program&&>(f), operands);
  }
  constexpr void read_function(const op_text& o, std::size_t n) {
    if (state_[n] == 2) return;
    if (state_[n] == 1) return in_.fail(o.at, "H011", "@", functions_[n].name, " calls itself");
    state_[n] = 1;
    if (!deeper(o)) return;
    builder inner;
    scope s(inner);
    const function_text f = functions_[n];
    for (const auto& a : f.arguments) {
      const value_id v = ops::parameter(inner, "", a.type);
      define(s, a.at, a.name, {&v, 1});
    }
    const vec<value_id> results = body(s, f.body, f);
    if (!in_.failed())
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
    read_[n] = static_cast<program&&>(inner.p);
    state_[n] = 2;
    --nesting_;
  }
  constexpr bool deeper(const op_text& o) {
    if (++nesting_ > max_nesting)
      in_.fail(o.at, "H011", "functions and programs are nested more than ", max_nesting, " deep");
    return !in_.failed();
  }

  constexpr vec<value_id> compute(scope& s, const op_text& o, std::string_view name,
                                  const vec<value_id>& operands) {
    op_context c{in_, s.b, o, operands, {}, {}, {}};
    if (!o.regions.empty()) nested(s, o, c);
    if (in_.failed() || s.b.failed()) return {};
    if (make_op(c, name)) {
      if (!c.failed() && c.results.empty()) in_.fail(o.at, "H012", o.name, " makes nothing");
      return c.results;
    }
    vec<std::string_view> known;
    for (const auto& each : same_ops) known.push_back(each.name);
    for (const auto& each : read_ops) known.push_back(each.name);
    in_.fail(o.at, "H004", "op \"", short_name(o.name), "\" is unknown; ",
             known_names(name, known));
    return {};
  }
  /// The programs of an op: what they use of the values here is an argument of all of them.
  constexpr void nested(scope& s, const op_text& o, op_context& c) {
    vec<std::string_view> names;
    name_table seen(16);
    for (const auto& r : o.regions) captured(s, in_.view(r.body), names, seen);
    for (auto each : names) c.captured.push_back(find(s, each));
    if (!deeper(o)) return;
    for (const auto& r : o.regions) {
      builder inner;
      inner.number_with(s.b);
      scope inside_it(inner);
      const std::size_t count = o.inner.empty() ? r.arguments.size() : o.inner.size();
      for (std::size_t i = 0; i < count; ++i) {
        const bool pretty = !o.inner.empty();
        const tensor_type t = pretty ? s.b.type(c.x(i)) : r.arguments[i].type;
        const value_id v = ops::parameter(inner, "", t);
        define(inside_it, o.at, pretty ? o.inner[i] : r.arguments[i].name, {&v, 1});
      }
      for (std::size_t i = 0; i < names.size(); ++i) {
        const value_id v = ops::parameter(inner, "", s.b.type(c.captured[i]));
        define(inside_it, o.at, names[i], {&v, 1});
      }
      const vec<value_id> results = statements(inside_it, r.body);
      if (in_.failed()) return;
      for (value_id v : results) inner.p.outputs.push_back({v, {}});
      c.regions.push_back(static_cast<program&&>(inner.p));
    }
    --nesting_;
  }
  /// Adds the names in a text that are values here. (A name that is defined in there is none.)
  static constexpr void captured(const scope& s, std::string_view text,
                                 vec<std::string_view>& names, name_table& seen) {
    bool quoted = false;
    for (std::size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '"') quoted = !quoted;
      if (quoted && text[i] == '\\') ++i;
      if (quoted || text[i] != '%') continue;
      std::size_t end = i + 1;
      while (end < text.size() && (is_word_char(text[end]) || text[end] == '#')) ++end;
      const std::string_view name = text.substr(i, end - i);
      i = end - 1;
      if (find(s, name) < 0) continue;
      const int number = static_cast<int>(names.size());
      if (seen.insert(name, number) == number) names.push_back(name);
    }
  }
};

}  // namespace stablehlo_detail

/// The program of a StableHLO module (text): that of @main, or of the only function. Functions are
/// put where they are called. Arguments are named by their locations (`params['w']` is "params.w"),
/// else as they are written ("arg0"); `names`, if given, are the names of the first ones. Results
/// are named by `jax.result_info`.
///
/// Errors    in `program::error`, with line and column: H001 syntax, H002 braces and brackets, H003
///           a type that is not supported, H004 an unknown op, H005 an attribute, H006 a name that
///           is not or twice defined, H007 types that differ from those in the text, H008 a
///           constant's elements, H009 a nested program that is not understood, H010 no such
///           function, H011 recursion or a limit, H012 numbers of operands, results or programs,
///           H013 what is not supported of an op; and those of the ops
/// Source    the StableHLO specification, version 1.0
constexpr program read_stablehlo(std::string_view module, span<const std::string_view> names = {}) {
  return stablehlo_detail::module_reader(module, names).run();
}

}  // namespace partita
