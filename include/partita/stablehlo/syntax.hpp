/// Parser for the MLIR text of StableHLO modules. It reads ops as written, without their meaning.
#pragma once

#include <string_view>

#include <partita/ir/shape.hpp>
#include <partita/support/error.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

/// A range of the module's text.
struct piece_of_text {
  std::size_t begin = 0, end = 0;
};
/// `dims = [0, 1]`; a flag has no value.
struct named_text {
  std::string_view name, value;
};
struct argument_text {
  std::size_t at = 0;
  std::string_view name;  ///< "%arg0"
  tensor_type type;
  std::string_view attributes, location;
};
/// Arguments and body of a nested program, or of a function.
struct region_text {
  vec<argument_text> arguments;
  piece_of_text body;
};
/// An op, `%3 = stablehlo.add %1, %2 : tensor<4xf32>`, in the pretty or the generic form.
struct op_text {
  std::size_t at = 0;
  std::string_view name;  ///< "stablehlo.add"
  struct result_name {
    std::string_view name;   ///< "%3"
    std::int64_t count = 1;  ///< 2 for `%3:2`
  };
  vec<result_name> results;         ///< one, or several: `%values, %indices = ...`
  vec<std::string_view> operands;   ///< "%1", "%25#6"
  vec<std::string_view> inner;      ///< of `while`: the arguments of its programs, in order
  vec<std::string_view> words;      ///< LT, FLOAT, stablehlo.maximum
  std::string_view symbol, quoted;  ///< "f" of @f; the name of a custom_call
  vec<named_text> attributes;       ///< under their names in the generic or the pretty form
  vec<region_text> regions;
  vec<tensor_type> operand_types, result_types;
  bool typed = false;        ///< true if the text states the types
  bool makes_tuple = false;  ///< true if the result is a tuple of values of these types
  std::string_view location;

  constexpr std::int64_t result_count() const {
    std::int64_t n = 0;
    for (const auto& r : results) n += r.count;
    return n;
  }
  /// Returns the value of an attribute as written, or an empty text.
  constexpr std::string_view attribute(std::string_view wanted) const {
    for (const auto& a : attributes)
      if (a.name == wanted) return a.value;
    return {};
  }
  constexpr bool has(std::string_view wanted) const {
    for (const auto& a : attributes)
      if (a.name == wanted) return true;
    return false;
  }
};

constexpr bool is_space(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
constexpr bool is_word_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == '$' || c == '.' || c == '-';
}
/// Returns the text without its quotes, if it has any.
constexpr std::string_view without_quotes(std::string_view s) {
  return s.size() >= 2 && s.front() == '"' ? s.substr(1, s.size() - 2) : s;
}

/// Reads parts of a module. After the first error every function returns at once.
///
/// Errors    H001 something else is expected, H002 braces that do not match, H003 an unsupported
///           type
class syntax {
 public:
  constexpr explicit syntax(std::string_view all) : all_(all) { match_braces(); }

  failure error;

  constexpr std::string_view all() const { return all_; }
  constexpr std::string_view view(piece_of_text p) const {
    return all_.substr(p.begin, p.end - p.begin);
  }
  constexpr bool failed() const { return error.is_set; }
  constexpr std::size_t position() const { return at_; }
  /// Continues at the beginning of a range, and stops at its end.
  constexpr void enter(piece_of_text p) {
    at_ = p.begin;
    end_ = p.end;
  }
  constexpr piece_of_text rest() const { return {at_, end_}; }

  /// Returns "line 3, column 8".
  constexpr text place(std::size_t at) const {
    std::size_t line = 1, column = 1;
    for (std::size_t i = 0; i < at && i < all_.size(); ++i) {
      ++column;
      if (all_[i] == '\n') ++line, column = 1;
    }
    return concat(line, ':', column);
  }
  template <class... Parts>
  constexpr void fail(std::size_t at, std::string_view code, const Parts&... parts) {
    if (!failed()) error.record(code, "stablehlo: ", place(at), ": ", parts...);
  }

  // ---- Tokens --------------------------------------------------------------------------------

  constexpr void skip() {
    while (at_ < end_) {
      if (is_space(all_[at_]))
        ++at_;
      else if (all_[at_] == '/' && at_ + 1 < end_ && all_[at_ + 1] == '/')
        while (at_ < end_ && all_[at_] != '\n') ++at_;
      else
        return;
    }
  }
  constexpr bool at_end() {
    skip();
    return at_ >= end_;
  }
  constexpr bool starts(std::string_view piece) {
    skip();
    return all_.substr(at_, end_ - at_).substr(0, piece.size()) == piece;
  }
  constexpr bool accept(std::string_view piece) {
    if (failed() || !starts(piece)) return false;
    at_ += piece.size();
    return true;
  }
  /// Accepts a word that is not the beginning of a longer one.
  constexpr bool accept_word(std::string_view piece) {
    if (failed() || !starts(piece)) return false;
    const std::size_t after = at_ + piece.size();
    if (after < end_ && is_word_char(all_[after])) return false;
    at_ = after;
    return true;
  }
  constexpr void expect(std::string_view piece) {
    if (!accept(piece)) expected(concat('"', piece, '"').view());
  }
  constexpr void expected(std::string_view what) {
    if (failed()) return;
    skip();
    const std::string_view found = all_.substr(at_, end_ - at_).substr(0, 24);
    if (found.empty())
      fail(at_, "H001", what, " is expected; the text ends");
    else
      fail(at_, "H001", what, " is expected, not \"", found.substr(0, found.find('\n')), '"');
  }
  constexpr std::string_view word() {
    skip();
    const std::size_t begin = at_;
    while (at_ < end_ && is_word_char(all_[at_]) && !starts_arrow()) ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `%arg0` or `%3#1`.
  constexpr std::string_view value_name() {
    skip();
    const std::size_t begin = at_;
    if (!accept("%")) {
      expected("a value");
      return {};
    }
    while (at_ < end_ && (is_word_char(all_[at_]) || all_[at_] == '#') && !starts_arrow()) ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `@main` or `@"a b"`; returns it without the `@` and the quotes.
  constexpr std::string_view symbol() {
    expect("@");
    if (failed()) return {};
    if (at_ < end_ && all_[at_] == '"') return without_quotes(quoted());
    return word();
  }
  /// Reads a text in quotes; returns it with its quotes.
  constexpr std::string_view quoted() {
    skip();
    const std::size_t begin = at_;
    expect("\"");
    while (!failed() && at_ < end_ && all_[at_] != '"') at_ += all_[at_] == '\\' ? 2 : 1;
    if (at_ >= end_ && !failed()) fail(begin, "H001", "a text in quotes does not end");
    if (failed()) return {};
    ++at_;
    return all_.substr(begin, at_ - begin);
  }
  /// Reads from an opening bracket to the matching closing one, both included.
  constexpr std::string_view bracketed() {
    skip();
    const std::size_t begin = at_;
    vec<char> open;
    while (at_ < end_ && !failed()) {
      const char c = all_[at_];
      if (c == '"') {
        quoted();
        continue;
      }
      if (c == '(' || c == '[' || c == '{' || c == '<') open.push_back(c);
      const bool arrow = c == '>' && at_ > begin && all_[at_ - 1] == '-';
      if ((c == ')' || c == ']' || c == '}' || c == '>') && !arrow) {
        const char wanted = c == ')' ? '(' : c == ']' ? '[' : c == '}' ? '{' : '<';
        if (open.empty() || open.back() != wanted) break;
        open.pop_back();
      }
      ++at_;
      if (open.empty()) return all_.substr(begin, at_ - begin);
    }
    fail(begin, "H002", "a bracket \"", all_.substr(begin, 1), "\" is not closed");
    return {};
  }
  /// Reads the value of an attribute as written; in a list, with its type.
  constexpr std::string_view attribute_value(bool in_list) {
    skip();
    const std::size_t begin = at_;
    for (;;) {
      skip();
      if (at_ >= end_ || failed()) break;
      const char c = all_[at_];
      if (c == '"')
        quoted();
      else if (c == '(' || c == '[' || c == '{' || c == '<')
        bracketed();
      else if (is_word_char(c) || c == '#' || c == '@' || c == '!' || c == '+')
        take_value_word();
      else
        break;
      // A value may continue: `dense` with its brackets, `1` and `dense<1>` with a type.
      const std::size_t after = at_;
      if (at_ < end_ && (all_[at_] == '<' || all_[at_] == '[')) continue;
      if (in_list && (accept("->") || accept(":"))) continue;
      at_ = after;
      break;
    }
    if (at_ == begin) expected("a value of an attribute");
    return all_.substr(begin, at_ - begin);
  }
  /// Reads `#stablehlo.gather` or `-1.5e+00`.
  constexpr void take_value_word() {
    ++at_;
    while (at_ < end_ && (is_word_char(all_[at_]) || all_[at_] == '+') && !starts_arrow()) ++at_;
  }
  /// Reads `{a = 1, b}`, the same in angle brackets, or without brackets up to `close`.
  constexpr void attribute_list(vec<named_text>& to, std::string_view close) {
    while (!failed() && !accept(close)) {
      const std::string_view name = starts("\"") ? without_quotes(quoted()) : word();
      if (name.empty()) return expected("the name of an attribute");
      to.push_back({name, accept("=") ? attribute_value(true) : std::string_view()});
      if (!accept(",") && !starts(close)) return expected(close);
    }
  }

  // ---- Types ---------------------------------------------------------------------------------

  constexpr tensor_type type() {
    tensor_type t;
    skip();
    const std::size_t at = at_;
    if (!accept_word("tensor")) {
      if (failed()) return t;
      if (starts("!") || starts("tuple") || starts("complex") || starts("memref") ||
          starts("vector") || starts("none") || starts("index"))
        fail(at, "H003", "type ", name_with_parameters(),
             " is not supported; tensors of numbers are");
      expected("a tensor type");
      return t;
    }
    expect("<");
    std::int64_t room = INT64_MAX / 16;  // maximum number of elements
    while (!failed() && at_ < end_ && (scanner::is_digit(all_[at_]) || all_[at_] == '?')) {
      if (all_[at_] == '?')
        fail(at, "H003", "a type of dynamic shape, ", type_text(at),
             ", is not supported; lower the function for arguments of fixed shapes");
      std::int64_t extent = 0;
      scanner digits(all_.substr(at_, end_ - at_));
      if (failed()) return t;
      if (!digits.integer(extent) || extent > room) {
        fail(at, "H003", "type ", type_text(at), " has more bytes than an address");
        return t;
      }
      at_ += digits.position();
      if (t.shape.rank == max_rank) {
        fail(at, "H003", "type ", type_text(at), " has a rank above ", max_rank,
             ", which is not supported");
        return t;
      }
      t.shape.push_back(extent);
      if (extent > 0) room /= extent;
      expect("x");
    }
    if (!failed()) t.element = element(at);
    if (!failed() && accept(",")) attribute_value(true);  // an encoding
    expect(">");
    return t;
  }
  constexpr std::string_view type_text(std::size_t at) const {
    const std::size_t end = all_.find('>', at);
    return all_.substr(at, end == std::string_view::npos || end > at + 80 ? 80 : end + 1 - at);
  }
  /// Reads `f32`, `complex<f32>` or `!quant.uniform<i8:f32, 0.5:3>`.
  constexpr std::string_view name_with_parameters() {
    skip();
    const std::size_t begin = at_;
    accept("!");
    word();
    if (at_ < end_ && all_[at_] == '<') bracketed();
    return all_.substr(begin, at_ - begin);
  }
  constexpr dtype element(std::size_t at) {
    const std::string_view name = name_with_parameters();
    constexpr struct {
      std::string_view name;
      dtype type;
    } known[] = {{"f32", dtype::f32}, {"f64", dtype::f64},    {"bf16", dtype::bf16},
                 {"f16", dtype::f16}, {"i1", dtype::boolean}, {"i8", dtype::i8},
                 {"i16", dtype::i16}, {"i32", dtype::i32},    {"i64", dtype::i64},
                 {"ui8", dtype::u8},  {"ui16", dtype::u16},   {"ui32", dtype::u32},
                 {"ui64", dtype::u64}};
    for (const auto& k : known)
      if (k.name == name) return k.type;
    fail(at, "H003", "element type ", name,
         " is not supported; f16, bf16, f32, f64, i1, i8 to i64 and ui8 to ui64 are");
    return dtype::f32;
  }
  /// Reads a type, or the types in `tuple<tensor<f32>, tensor<f32>>`.
  constexpr void type_or_tuple(vec<tensor_type>& to) {
    if (!accept_word("tuple")) {
      to.push_back(type());
      return;
    }
    expect("<");
    while (!failed() && !accept(">")) {
      to.push_back(type());
      if (!accept(",") && !starts(">")) return expected(">");
    }
  }
  /// Reads `tensor<f32>`, or `(tensor<f32>, tensor<f32>)`.
  constexpr void types(vec<tensor_type>& to) {
    if (!accept("(")) {
      do type_or_tuple(to);
      while (!failed() && accept(","));
      return;
    }
    while (!failed() && !accept(")")) {
      type_or_tuple(to);
      skip();
      if (starts("{")) bracketed();  // attributes of a result
      if (!accept(",") && !starts(")")) return expected(")");
    }
  }

  // ---- Ops -----------------------------------------------------------------------------------

  /// Reads one op. Names are not interpreted, except that the pretty forms of `reduce` and `while`
  /// determine where their programs are.
  constexpr op_text op() {
    op_text o;
    skip();
    o.at = at_;
    if (starts("%")) {
      do {
        op_text::result_name r{value_name(), 1};
        if (accept(":")) {
          scanner digits(all_.substr(at_, end_ - at_));
          if (!digits.integer(r.count) || r.count < 1 || r.count > 1 << 20)
            expected("a number of results");
          at_ += digits.position();
        }
        o.results.push_back(r);
      } while (!failed() && accept(","));
      expect("=");
    }
    skip();
    o.at = at_;
    const bool generic = starts("\"");
    o.name = generic ? without_quotes(quoted()) : word();
    if (o.name.empty()) expected("an op");
    while (!failed() && !next_op() && part(o)) {
    }
    if (!failed() && accept(":")) op_types(o);
    while (!failed() && trailing_region(o)) {
    }
    if (!failed() && accept_word("loc")) o.location = bracketed();
    return o;
  }
  /// Reads `(%a: tensor<f32>, ...)`.
  constexpr void arguments(vec<argument_text>& to) {
    expect("(");
    while (!failed() && !accept(")")) {
      skip();
      argument_text a;
      a.at = at_;
      a.name = value_name();
      expect(":");
      if (failed()) return;
      a.type = type();
      if (starts("{")) a.attributes = bracketed();
      if (accept_word("loc")) a.location = bracketed();
      to.push_back(a);
      if (!accept(",") && !starts(")")) return expected(")");
    }
  }
  /// Reads text in braces; returns the range between them.
  constexpr piece_of_text braces() {
    skip();
    const std::size_t begin = at_;
    expect("{");
    if (failed()) return {};
    at_ = partner(begin) + 1;
    return {begin + 1, at_ - 1};
  }

 private:
  constexpr bool starts_arrow() const {
    return all_[at_] == '-' && at_ + 1 < end_ && all_[at_ + 1] == '>';
  }
  constexpr void match_braces() {
    vec<std::size_t> open;
    for (std::size_t i = 0; i < all_.size(); ++i) {
      const char c = all_[i];
      if (c == '"') {
        const std::size_t begin = i++;
        while (i < all_.size() && all_[i] != '"') i += all_[i] == '\\' ? 2 : 1;
        if (i >= all_.size()) return fail(begin, "H001", "a text in quotes does not end");
      } else if (c == '/' && i + 1 < all_.size() && all_[i + 1] == '/') {
        while (i < all_.size() && all_[i] != '\n') ++i;
      } else if (c == '{') {
        braces_.push_back({i, 0});
        open.push_back(braces_.size() - 1);
      } else if (c == '}') {
        if (open.empty()) return fail(i, "H002", "a brace \"}\" closes nothing");
        braces_[open.back()].end = i;
        open.pop_back();
      }
    }
    if (!open.empty()) fail(braces_[open.back()].begin, "H002", "a brace \"{\" is not closed");
    end_ = all_.size();
  }
  /// Returns the position of the brace that closes the one at `begin`.
  constexpr std::size_t partner(std::size_t begin) const {
    std::size_t low = 0, high = braces_.size();
    while (low + 1 < high) {
      const std::size_t middle = (low + high) / 2;
      (braces_[middle].begin <= begin ? low : high) = middle;
    }
    return braces_[low].end;
  }

  /// True if a later line begins with an op. (Ops may lack types.)
  constexpr bool next_op() const {
    std::size_t i = at_;
    bool below = false;
    for (; i < end_ && is_space(all_[i]); ++i) below = below || all_[i] == '\n';
    const bool continued = at_ > 0 && all_[at_ - 1] == ',';
    return below && !continued && i < end_ &&
           (all_[i] == '%' || all_[i] == '"' || is_word_char(all_[i]));
  }
  /// Reads a part of an op between its name and its types; false at the end of these parts.
  constexpr bool part(op_text& o) {
    skip();
    if (at_ >= end_) return false;
    switch (all_[at_]) {
      case '%':
        return operand(o);
      case '(':
        if (has_after(1, '{')) return regions(o);
        if (starts_arguments()) return manual_region(o);
        return operands(o);
      case '<':
        if (!accept("<{")) return attribute_in_angles(o);
        attribute_list(o.attributes, "}");
        expect(">");
        return true;
      case '[':
        return slice_or_successors(o);
      case '{':
        if (has_after(1, '^')) {
          o.regions.push_back(region());
          return true;
        }
        accept("{");
        attribute_list(o.attributes, "}");
        return true;
      case '@':
        o.symbol = symbol();
        return true;
      case '"':
        o.quoted = without_quotes(quoted());
        return true;
      case ',':
        ++at_;
        return true;
      default:
        return is_word_char(all_[at_]) && !starts_arrow() && named_part(o);
    }
  }
  constexpr bool operand(op_text& o) {
    o.operands.push_back(value_name());
    return true;
  }
  /// Reads `(%a, %b)`, `(%a init: %b)` or `(%iterArg = %0, ...)`.
  constexpr bool operands(op_text& o) {
    expect("(");
    while (!failed() && !accept(")")) {
      if (!starts("%")) {
        // `k = 3` among the operands of chlo.top_k
        const std::string_view name = word();
        expect("=");
        o.attributes.push_back({name, attribute_value(false)});
        accept(",");
        continue;
      }
      const std::string_view name = value_name();
      if (accept("=")) {
        o.inner.push_back(name);
        o.operands.push_back(value_name());
      } else {
        o.operands.push_back(name);
        if (accept_word("init")) {
          expect(":");
          initial_.push_back(value_name());
        }
      }
      if (!accept(",") && !starts(")")) expected(")");
    }
    if (!initial_.empty() && !starts(",")) {
      for (auto v : initial_) o.operands.push_back(v);
      initial_.clear();
    }
    return true;
  }
  /// Reads `<@mesh, [{"a"}, {}]>`.
  constexpr bool attribute_in_angles(op_text& o) {
    const std::string_view value = bracketed();
    o.attributes.push_back({"<>", value});
    return true;
  }
  /// Reads `[0:11, 0:8:2]` of a slice, or `[0]` of a tuple element.
  constexpr bool slice_or_successors(op_text& o) {
    o.attributes.push_back({"[]", bracketed()});
    return true;
  }
  /// Reads `dims = [0, 1]`, `batching_dims = [0] x [0]`, `applies stablehlo.add` or `LT`.
  constexpr bool named_part(op_text& o) {
    const std::size_t before = at_;
    const std::string_view name = word();
    if (name == "loc" || name == "cond" || name == "do" || name == "reducer") {
      at_ = before;
      return false;
    }
    if (name == "across" || name == "applies" || name == "x") return true;
    if (name == "dense" || name == "dense_resource" || name == "array") {
      at_ = before;
      o.attributes.push_back({"value", attribute_value(false)});
      return true;
    }
    if (name == "dimensions" || name == "dim_numbers" || name == "window") {
      expect("=");
      o.attributes.push_back({name, until_types(name)});
      return true;
    }
    if (!accept("=")) {
      o.words.push_back(name);
      return true;
    }
    skip();
    const std::size_t begin = at_;
    attribute_value(false);
    std::size_t end = at_;
    if (accept_word("x")) {
      attribute_value(false);
      end = at_;
    }
    o.attributes.push_back({name, all_.substr(begin, end - begin)});
    return true;
  }
  /// Reads `[b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f]`, or one pair of brackets.
  constexpr std::string_view until_types(std::string_view name) {
    skip();
    const std::size_t begin = at_;
    bracketed();
    if (name == "dim_numbers") {
      expect("x");
      bracketed();
      expect("->");
      bracketed();
    }
    return all_.substr(begin, at_ - begin);
  }
  /// True if the character `c` follows `n` characters and blanks.
  constexpr bool has_after(std::size_t n, char c) const {
    std::size_t i = at_ + n;
    while (i < end_ && is_space(all_[i])) ++i;
    return i < end_ && all_[i] == c;
  }
  /// True before the arguments of a nested program: `(%a: `.
  constexpr bool starts_arguments() const {
    std::size_t i = at_ + 1;
    while (i < end_ && is_space(all_[i])) ++i;
    if (i >= end_ || all_[i] != '%') return false;
    ++i;
    while (i < end_ && is_word_char(all_[i])) ++i;
    return i < end_ && all_[i] == ':';
  }
  constexpr bool manual_region(op_text& o) {
    vec<argument_text> list;
    arguments(list);
    if (failed()) return false;
    o.regions.push_back(region());
    o.regions.back().arguments = list;
    return true;
  }
  constexpr bool regions(op_text& o) {
    expect("(");
    do o.regions.push_back(region());
    while (!failed() && accept(","));
    expect(")");
    return true;
  }
  /// Reads `{ ^bb0(%a: tensor<f32>): ... }`.
  constexpr region_text region() {
    region_text r;
    r.body = braces();
    if (failed()) return r;
    const piece_of_text around = {at_, end_};
    enter(r.body);
    if (accept("^")) {
      word();
      if (starts("(")) arguments(r.arguments);
      expect(":");
      r.body.begin = at_;
    }
    if (failed()) return r;
    enter(around);
    return r;
  }
  /// Reads `cond {...}`, `do {...}` and `reducer(%a: t, %b: t) (%c: t, %d: t) {...}` of the pretty
  /// forms.
  constexpr bool trailing_region(op_text& o) {
    if (accept_word("cond") || accept_word("do")) {
      // Attributes may precede the first of them: `attributes {...}`.
      o.regions.push_back(region());
      return true;
    }
    if (accept_word("attributes")) {
      expect("{");
      attribute_list(o.attributes, "}");
      return true;
    }
    if (!accept_word("reducer")) return false;
    vec<argument_text> pairs;
    while (!failed() && starts("(")) arguments(pairs);
    if (failed()) return false;
    region_text r = region();
    for (std::size_t first = 0; first < 2; ++first)
      for (std::size_t i = first; i < pairs.size(); i += 2) r.arguments.push_back(pairs[i]);
    o.regions.push_back(r);
    return true;
  }
  /// Reads `(tensor<f32>) -> tensor<f32>`, `tensor<f32>, tensor<f32>` or `tensor<f32> ->
  /// tensor<f32>`.
  constexpr void op_types(op_text& o) {
    o.typed = true;
    o.makes_tuple = starts("tuple");
    types(o.operand_types);
    if (accept("->")) {
      o.makes_tuple = starts("tuple");
      types(o.result_types);
    } else if (o.makes_tuple) {
      o.result_types = o.operand_types;
    } else
      o.result_types.push_back(o.operand_types.empty() ? tensor_type() : o.operand_types.back());
  }

  std::string_view all_;
  std::size_t at_ = 0, end_ = 0;
  vec<piece_of_text> braces_;  // in the order of their beginnings
  vec<std::string_view> initial_;
};

}  // namespace partita::stablehlo_detail
