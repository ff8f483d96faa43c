/// Parser for the MLIR text of StableHLO modules. It reads ops as written, without their meaning.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/stablehlo/op_text.hpp>
#include <partita/stablehlo/type_syntax.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita::stablehlo_detail {

/// Reads parts of a module. After the first error every function returns at once.
///
/// Errors    H001 something else is expected, H002 braces that do not match, H003 an unsupported
///           type
class syntax : public type_syntax {
 public:
  using type_syntax::type_syntax;

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

 private:
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

  vec<std::string_view> initial_;
};

}  // namespace partita::stablehlo_detail
