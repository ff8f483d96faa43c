/// Parser of the text that ir/print.hpp prints.
#pragma once

#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/ir/sub_axis_text.hpp>
#include <partita/ir/verify.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace op_detail {

/// Parses a program, with one function per production:
///
/// ```
/// program    func @main(%x: type, ...) { statement... return %x1 as "name", ... : type, ... }
/// statement  %x1, ... = call : type, ...
/// call       op "name"(%x, ...) {attributes} nested...
///            tag "name" %x
///            collective attributes %x
/// nested     do (%x: type, ...) { statement... return %x1, ... : type, ... }
/// type       tensor<4x8xf32>
/// ```
///
/// After an error every function returns at once.
class program_parser {
 public:
  /// Parses `in`. With a mesh, the program has collectives, and the mesh is read from its header.
  constexpr program_parser(std::string_view in, span<const op_def* const> own, mesh* m = nullptr)
      : in_(in), own_(own), mesh_(m), root_(in.size() / 32), scope_(&root_) {}

  constexpr program run() {
    signature();
    while (!failed() && !next_is("return")) statement();
    results();
    if (!failed() && !at_end()) expected("the end of the text");
    program& p = root_.b.p;
    if (!failed()) p.error.record(check_names(p));
    if (!failed() && mesh_ == nullptr) p.error.record(check_interface(p));
    return static_cast<program&&>(p);
  }

 private:
  scanner in_;
  span<const op_def* const> own_;
  mesh* mesh_;
  /// The main program or a nested one. Names refer to values of their own program only.
  struct scope {
    builder b;
    name_table values;              // by printed name (see read_name)
    vec<std::string_view> printed;  // by value
    vec<text> spelled;              // printed names whose spelling in the text differs

    constexpr explicit scope(std::size_t expected) : values(expected) {}
  };
  scope root_;
  scope* scope_;             // the scope being parsed
  int nesting_ = 0;          // depth of that scope
  std::size_t name_at_ = 0;  // position of the last name of a value

  // ---- Errors (first: Clang requires templates before their use in constant evaluation) ---------

  constexpr bool failed() const { return root_.b.failed(); }
  /// Returns a position as "line 3, column 8".
  constexpr text place(std::size_t at) const {
    int line = 1, column = 1;
    for (std::size_t i = 0; i < at; ++i) {
      ++column;
      if (in_.all()[i] == '\n') ++line, column = 1;
    }
    return concat("line ", line, ", column ", column);
  }
  template <class... Parts>
  constexpr void fail(std::size_t at, std::string_view code, const Parts&... parts) {
    root_.b.p.error.record(code, "parse: ", place(at), ": ", parts...);
  }
  /// Reports an error of an op, with its position.
  constexpr void adopt(std::size_t at, const failure& f) {
    const std::string_view message = f.message;
    root_.b.p.error.record(message.substr(0, 4), message.substr(5), " (", place(at), ")");
  }
  /// Reports that something else was expected at the current position.
  constexpr void expected(std::string_view what) {
    if (failed()) return;
    const std::size_t at = here();
    const std::string_view found = in_.rest().substr(0, 24);
    if (found.empty())
      fail(at, "P012", what, " expected, found the end of the text");
    else
      fail(at, "P012", what, " expected, found \"", found.substr(0, found.find('\n')), '"');
  }

  // ---- Productions ---------------------------------------------------------------------------

  constexpr void signature() {
    expect("func");
    expect("@main");
    parameters();
    if (mesh_ != nullptr) axes();
    expect("{");
  }
  constexpr void parameters() {
    expect("(");
    while (!failed() && !accept(")")) {
      if (scope_->b.p.input_count() > 0) expect(",");
      const std::size_t at = here();
      const std::string_view name = value_name(':');
      expect(":");
      const tensor_type t = type();
      if (failed()) return;
      text own;
      if (scope_ == &root_) own = unquoted(name);
      define(at, name, ops::parameter(scope_->b, own, t));
    }
  }
  /// Parses `attributes {mesh = {"B":4, "M":2}}`.
  constexpr void axes() {
    for (const std::string_view token : {"attributes", "{", "mesh", "=", "{"}) expect(token);
    *mesh_ = mesh{};
    while (!failed() && !accept("}")) {
      if (mesh_->rank > 0) expect(",");
      expect("\"");
      const std::string_view name = in_.take_while([](char c) { return c != '"'; });
      expect("\"");
      expect(":");
      std::int64_t size = 0;
      here();
      if (!failed() && !in_.integer(size)) expected("the size of an axis");
      mesh_->push_back({name, size});
    }
    expect("}");
    if (!failed()) root_.b.p.error.record(validate(*mesh_));
    if (!failed()) split_as_in(in_.rest(), *mesh_);
  }

  constexpr void statement() {
    const std::size_t at = here();
    vec<std::string_view> names;
    do {
      names.push_back(value_name());
    } while (accept(","));
    expect("=");
    call c;
    parse_call(c);
    expect(":");
    vec<tensor_type> types;
    do {
      types.push_back(type());
    } while (accept(","));
    const value_id first = emit(c, types[0]);
    if (failed()) return;
    const program& p = scope_->b.p;
    const int count = p.op(p.producer(first)).result_count;
    if (static_cast<int>(names.size()) != count || static_cast<int>(types.size()) != count)
      return fail(at, "P017", c.def->name, " has ", count, count == 1 ? " result" : " results",
                  "; the text has ", names.size(), " and ", types.size(),
                  types.size() == 1 ? " type" : " types");
    for (int r = 0; r < count && !failed(); ++r) {
      same_type(c.at, c.def->name, p.type(first + r), types[static_cast<std::size_t>(r)]);
      define(at, names[static_cast<std::size_t>(r)], first + r);
    }
  }

  struct call {
    const op_def* def = nullptr;
    std::size_t at = 0, attributes_at = 0;
    text name;  // of a tag or a computation
    std::string_view attributes;
    vec<value_id> operands;
    vec<program> regions;
  };
  constexpr void parse_call(call& c) {
    if (failed()) return;
    c.at = here();
    c.def = find_op(word());
    if (failed()) return;
    if (c.def->role == op_role::tag) {
      c.name = quoted();
      c.operands.push_back(use(value_name()));
      return;
    }
    if (c.def->collective) {
      c.attributes_at = here();
      c.attributes = in_.take_with_quotes([](char each) { return each != '%'; });
      while (!c.attributes.empty() && is_blank(c.attributes.back())) c.attributes.remove_suffix(1);
      do {
        c.operands.push_back(use(value_name()));
      } while (!failed() && accept(","));
      return;
    }
    if (next_is("\"")) c.name = quoted();
    if (accept("(")) {
      do {
        c.operands.push_back(use(value_name(')')));
      } while (!failed() && accept(","));
      expect(")");
    }
    const auto count = static_cast<int>(c.operands.size());
    // (Ops with nested programs may have no operands; a barrier may not.)
    const bool none_is_fine = c.def->role == op_role::control && !c.def->passes_on;
    if (c.def->operand_count < 0 ? count == 0 && !none_is_fine : count != c.def->operand_count) {
      text wanted = "one or more are";
      if (c.def->operand_count >= 0)
        wanted = concat(c.def->operand_count, c.def->operand_count == 1 ? " is" : " are");
      fail(c.at, "P017", c.def->name, " has ", count, count == 1 ? " operand; " : " operands; ",
           wanted, " needed");
    }
    c.attributes_at = here();
    if (accept("{")) c.attributes = until_closing_brace();
    while (accept("do")) c.regions.push_back(nested());
  }

  constexpr program nested() {
    if (++nesting_ > max_nesting)
      fail(here(), "P018", "programs are nested more than ", max_nesting, " deep");
    scope* around = scope_;
    scope* inner = new scope(8);  // on the heap: the stack is needed for recursion
    scope_ = inner;
    parameters();
    expect("{");
    while (!failed() && !next_is("return")) statement();
    vec<text> names;
    for (value_id v : returned(names)) inner->b.p.outputs.push_back({v, {}});
    scope_ = around;
    --nesting_;
    program p = static_cast<program&&>(inner->b.p);
    delete inner;
    return p;
  }

  constexpr tensor_type type() {
    tensor_type t;
    expect("tensor");
    expect("<");
    const std::size_t at = here();
    std::int64_t room = INT64_MAX / 16;  // of elements
    while (!failed() && in_.starts_with(scanner::is_digit)) {
      std::int64_t extent = 0;
      if (!in_.integer(extent) || extent > room) {
        fail(at, "P012", "a type with fewer bytes expected");
      } else {
        t.shape.push_back(extent);
        if (extent > 0) room /= extent;
        expect("x");
      }
    }
    if (!failed() && t.shape.rank > max_rank)
      fail(at, "P012", "a type of rank ", max_rank, " or less expected, found rank ", t.shape.rank);
    if (!failed() && !element(t.element)) expected("an extent or an element type");
    expect(">");
    return t;
  }
  constexpr bool element(dtype& out) {
    const std::string_view name = in_.take_while(is_word);
    for (int i = 0; i < dtype_count; ++i)
      if (name_of(static_cast<dtype>(i)) == name) {
        out = static_cast<dtype>(i);
        return true;
      }
    in_.give_back(name.size());
    return false;
  }

  /// Parses `return %x, %y as "name" : types }`. A name that is not in the text is empty.
  constexpr vec<value_id> returned(vec<text>& names) {
    vec<value_id> values;
    expect("return");
    do {
      values.push_back(use(value_name()));
      names.push_back({});
      if (accept("as")) names.back() = quoted();
    } while (!failed() && accept(","));
    expect(":");
    for (std::size_t i = 0; i < values.size() && !failed(); ++i) {
      if (i > 0) expect(",");
      const std::size_t at = here();
      const tensor_type t = type();
      if (!failed()) same_type(at, printed(values[i]), scope_->b.type(values[i]), t);
    }
    expect("}");
    return values;
  }
  constexpr void results() {
    vec<text> names;
    const vec<value_id> values = returned(names);
    if (failed()) return;
    program& p = root_.b.p;
    const op_names named(p);
    const int count = static_cast<int>(values.size());
    for (std::size_t i = 0; i < values.size(); ++i) {
      text name = names[i];
      if (name.empty())
        name = implied_output_name(
            p, values[i], static_cast<int>(i), count, [&](value_id v) { return printed(v); },
            named);
      p.outputs.push_back({values[i], p.intern(name)});
    }
  }
  constexpr std::string_view printed(value_id v) const {
    return scope_->printed[static_cast<std::size_t>(v)];
  }

  // ---- Meaning -------------------------------------------------------------------------------

  /// Finds an op by name. (The flag is needed because GCC's sanitizers do not allow a constant
  /// expression to compare an address with null.)
  constexpr const op_def* find_op(std::string_view name) {
    const op_def* result = nullptr;
    bool found = false;
    const auto search = [&](std::string_view wanted, span<const op_def* const> list) {
      if (found) return;
      for (const op_def* d : list)
        if (d->name == wanted && d->role != op_role::parameter) {
          result = d;
          found = true;
        }
    };
    search(name, own_);
    search(name == "matmul" ? "dot_general" : name, registry);
    if (!found) {
      vec<std::string_view> known = {"matmul"};
      for (const auto list : {own_, span<const op_def* const>(registry)})
        for (const op_def* d : list)
          if (d->role != op_role::parameter) known.push_back(d->name);
      fail(in_.position() - name.size(), "P013", "op \"", short_name(name), "\" is unknown; ",
           known_names(name, known));
    }
    return result;
  }

  /// Appends the op and returns its first result.
  constexpr value_id emit(call& c, const tensor_type& declared) {
    if (failed()) return -1;
    builder& b = scope_->b;
    vec<tensor_type> types;
    for (value_id v : c.operands) types.push_back(b.type(v));
    vec<std::int64_t> attrs;
    parse_context context{c.attributes, {types.data(), types.size()}, declared, attrs, {}, mesh_};
    c.def->parse(context);
    if (context.error) {
      adopt(c.attributes_at, context.error);
      return -1;
    }
    const value_id v =
        b.emit(*c.def, {c.operands.data(), c.operands.size()}, {attrs.data(), attrs.size()},
               declared, static_cast<vec<program>&&>(c.regions));
    if (b.failed()) {
      failure f;
      std::swap(f, b.p.error);
      adopt(c.at, f);
      return -1;
    }
    if (!c.name.empty()) b.name_last(c.name);
    return v;
  }
  constexpr void same_type(std::size_t at, std::string_view what, const tensor_type& is,
                           const tensor_type& given) {
    if (is != given) fail(at, "P015", what, " has type ", is, "; the text states type ", given);
  }

  constexpr void define(std::size_t at, std::string_view name, value_id v) {
    if (failed()) return;
    if (scope_->values.insert(name, v) != v)
      fail(at, "P016", "value %", short_name(name), " is defined twice");
    scope_->printed.push_back(name);
  }
  constexpr value_id use(std::string_view name) {
    const value_id v = scope_->values.find(name);
    if (v < 0 && !failed())
      fail(name_at_, "P014", "value %", short_name(name), " is not defined; ",
           known_names(name, scope_->printed));
    return v;
  }

  // ---- Tokens --------------------------------------------------------------------------------

  static constexpr bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
  static constexpr bool is_word(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || scanner::is_digit(c);
  }

  constexpr std::size_t here() {
    in_.take_while(is_blank);
    return in_.position();
  }
  constexpr bool at_end() { return here() == in_.all().size(); }
  constexpr bool next_is(std::string_view token) {
    here();
    return in_.starts(token);
  }
  constexpr bool accept(std::string_view token) {
    here();
    return !failed() && in_.accept(token);
  }
  constexpr void expect(std::string_view token) {
    if (!accept(token)) expected(concat('"', token, '"'));
  }
  constexpr std::string_view word() {
    here();
    const std::string_view w = in_.take_while(is_word);
    if (w.empty()) expected("the name of an op");
    return w;
  }
  /// Parses a name in quotes.
  constexpr text quoted() {
    expect("\"");
    text name;
    if (failed()) return name;
    const scanner before = in_;
    if (read_quoted(in_, name) && !name.empty()) return name;
    in_ = before;
    expected("a name in quotes");
    return name;
  }
  /// Parses `%name` or `%"name"`. A name without quotes may contain brackets and colons; if several
  /// closing signs follow, the last one is not part of the name.
  constexpr std::string_view value_name(char closing = ' ') {
    expect("%");
    if (failed()) return {};
    const scanner before = in_;
    name_at_ = before.position() - 1;
    text name;
    const bool in_quotes = in_.starts("\"");
    bool good = read_name(in_, name);
    std::string_view spelled = before.rest().substr(0, in_.position() - before.position());
    if (good && spelled.back() == closing && !in_.starts(",")) {
      in_.give_back(1);
      name.truncate(name.size() - 1);
      spelled.remove_suffix(1);
      good = !name.empty();
    }
    if (!good) {
      in_ = before;
      expected("the name of a value");
    }
    if (!in_quotes || name == spelled) return spelled;
    scope_->spelled.push_back(static_cast<text&&>(name));
    return scope_->spelled.back();
  }
  /// Returns the text up to the brace that closes the one just parsed. Braces in between are
  /// balanced.
  constexpr std::string_view until_closing_brace() {
    int open = 1;
    const std::string_view inside = in_.take_with_quotes([&](char c) {
      open += c == '{' ? 1 : c == '}' ? -1 : 0;
      return open > 0;
    });
    expect("}");
    return inside;
  }
};

}  // namespace op_detail

/// Parses a program from the text that `print` writes. `own` lists ops that are not in the
/// registry.
///
/// Blanks and line ends may separate any two tokens. Numbered values, primes and quoted names, such
/// as `%"a b"`, are names like any other. The names of outputs are derived from the values they
/// return (see implied_output_name), or follow them: `return %x1 as "y" : tensor<4xf32>`.
///
/// Law       equivalent(parse(print(p)), p), for programs whose inputs and outputs have names
/// Errors    in program::error, with line and column: P011 attributes, P012 unexpected token, P013
///           unknown op, P014 unknown value, P015 the type differs from the shape rule's, P016
///           value defined twice, P017 number of operands or results, P018 nested too deep; and
///           those of shape rules (Sxxx) and names (P002 to P009)
constexpr program parse(std::string_view in, span<const op_def* const> own = {}) {
  return op_detail::program_parser(in, own).run();
}

}  // namespace partita
