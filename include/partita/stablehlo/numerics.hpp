/// The precision and accuracy of ops in StableHLO: `precision`, `algorithm` and `result_accuracy`.
///
/// Source    the StableHLO specification, version 1.0
#pragma once

#include <partita/stablehlo/module_text.hpp>
#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

inline constexpr std::string_view precision_words[] = {"DEFAULT", "HIGH", "HIGHEST"};

// ---- Reading ---------------------------------------------------------------------------------

/// Returns the last word of `#stablehlo<precision HIGHEST>`, `HIGHEST`.
constexpr std::string_view last_word_of(std::string_view value) {
  while (!value.empty() && !is_word_char(value.back())) value.remove_suffix(1);
  std::size_t begin = value.size();
  while (begin > 0 && is_word_char(value[begin - 1])) --begin;
  return value.substr(begin);
}
/// Returns the text after `name = ` in `<a = 1, name = tf32>`; empty if the field is missing.
constexpr std::string_view field_of(std::string_view value, std::string_view name) {
  for (std::string_view part : parts_of(inside(value, '<', '>'))) {
    if (!part.starts_with(name)) continue;
    part.remove_prefix(name.size());
    while (!part.empty() && is_space(part.front())) part.remove_prefix(1);
    if (!part.starts_with("=")) continue;
    part.remove_prefix(1);
    while (!part.empty() && is_space(part.front())) part.remove_prefix(1);
    return part;
  }
  return {};
}
constexpr float_format format_of(op_context& c, std::string_view algorithm, std::string_view name) {
  const std::string_view word = field_of(algorithm, name);
  for (std::size_t i = 0; i < std::size(float_formats); ++i)
    if (float_formats[i] == word) return static_cast<float_format>(i);
  c.fail("H005", "algorithm: ", name, " = \"", word, "\" is not a floating-point format");
  return {};
}
/// Reads `precision = [DEFAULT, HIGHEST], algorithm = <lhs_precision_type = tf32, ...>`, or in the
/// generic form `precision_config = [#stablehlo<precision DEFAULT>, ...]`.
constexpr product_precision read_product_precision(op_context& c) {
  product_precision p;
  for (std::string_view name : {"precision", "precision_config"}) {
    if (!c.o.has(name)) continue;
    const auto list = parts_of(inside(c.o.attribute(name), '[', ']'));
    precision both[2] = {};
    bool good = list.empty() || list.size() == 2;
    for (std::size_t i = 0; good && i < list.size(); ++i) {
      const std::string_view word = last_word_of(list[i]);
      good = false;
      for (std::size_t k = 0; k < std::size(precision_words); ++k)
        if (precision_words[k] == word) both[i] = static_cast<precision>(k), good = true;
    }
    if (!good) {
      c.fail("H005", name, " = ", c.o.attribute(name).substr(0, 60),
             " is not a list of two of DEFAULT, HIGH, HIGHEST");
      return p;
    }
    p.lhs = both[0];
    p.rhs = both[1];
  }
  if (!c.o.has("algorithm")) return p;
  const std::string_view written = c.o.attribute("algorithm");
  const auto number = [&](std::string_view name) {
    std::int64_t n = 0;
    if (!read_integer(field_of(written, name), n))
      c.fail("H005", "algorithm: ", name, " = \"", field_of(written, name), "\" is not a number");
    return n;
  };
  p.has_algorithm = true;
  p.algorithm = {format_of(c, written, "lhs_precision_type"),
                 format_of(c, written, "rhs_precision_type"),
                 format_of(c, written, "accumulation_type"),
                 number("lhs_component_count"),
                 number("rhs_component_count"),
                 number("num_primitive_operations"),
                 number("allow_imprecise_accumulation") != 0};
  return p;
}
/// Reads `result_accuracy = #stablehlo.result_accuracy<atol = 1.0e-03, rtol = 0.0, ulps = 2, mode =
/// #stablehlo.result_accuracy_mode<TOLERANCE>>`.
constexpr accuracy read_accuracy(op_context& c) {
  accuracy a;
  if (!c.o.has("result_accuracy")) return a;
  const std::string_view written = c.o.attribute("result_accuracy");
  const std::string_view mode = last_word_of(field_of(written, "mode"));
  const auto number = [&](std::string_view name, double& to) {
    const std::string_view word = field_of(written, name);
    scanner in(word);
    if (!word.empty() && !(read_number(in, to) && to >= 0 && to - to == 0))
      c.fail("H005", "result_accuracy: ", name, " = \"", word, "\" is not a tolerance");
  };
  if (mode == "HIGHEST")
    a.mode = accuracy::highest;
  else if (mode == "TOLERANCE")
    a.mode = accuracy::tolerance;
  else if (mode != "DEFAULT")
    c.fail("H005", "result_accuracy: mode \"", mode,
           "\" is not one of DEFAULT, HIGHEST, TOLERANCE");
  if (a.mode != accuracy::tolerance) return a;
  number("atol", a.absolute);
  number("rtol", a.relative);
  if (const std::string_view word = field_of(written, "ulps"); !word.empty())
    if (!read_integer(word, a.ulps) || a.ulps < 0)
      c.fail("H005", "result_accuracy: ulps = \"", word, "\" is not a count");
  return a;
}
/// True for the functions that have an accuracy in StableHLO.
constexpr bool has_accuracy(const op_def& d) {
  constexpr const op_def* functions[] = {&def<op::cbrt>,     &def<op::cosine>, &def<op::exp>,
                                         &def<op::expm1>,    &def<op::log>,    &def<op::log1p>,
                                         &def<op::logistic>, &def<op::rsqrt>,  &def<op::sine>,
                                         &def<op::sqrt>,     &def<op::tan>,    &def<op::tanh>};
  for (const op_def* f : functions)
    if (f->id == d.id) return true;
  return false;
}

// ---- Writing ---------------------------------------------------------------------------------

/// Writes `[HIGH, HIGHEST]`, each word between `before` and `after`.
constexpr void write_precisions(text& out, const product_precision& p, std::string_view before = {},
                                std::string_view after = {}) {
  out << '[' << before << precision_words[static_cast<int>(p.lhs)] << after << ", " << before
      << precision_words[static_cast<int>(p.rhs)] << after << ']';
}
/// Writes `, precision = [HIGH, HIGHEST], algorithm = <...>`; defaults are omitted.
constexpr void write_product_precision(text& out, span<const std::int64_t> numbers) {
  product_precision p;
  if (numbers.empty() || !product_precision::load(numbers, p)) return;
  out << ", precision = ";
  write_precisions(out, p);
  if (!p.has_algorithm) return;
  const auto format = [](float_format f) { return float_formats[static_cast<int>(f)]; };
  const dot_algorithm& a = p.algorithm;
  out << ", algorithm = <lhs_precision_type = " << format(a.lhs)
      << ", rhs_precision_type = " << format(a.rhs)
      << ", accumulation_type = " << format(a.accumulation)
      << ", lhs_component_count = " << a.lhs_components
      << ", rhs_component_count = " << a.rhs_components
      << ", num_primitive_operations = " << a.operations
      << ", allow_imprecise_accumulation = " << (a.imprecise_accumulation ? "true" : "false")
      << '>';
}
/// Writes `, precision_config = [#stablehlo<precision HIGH>, ...]`, among other attributes.
constexpr void write_precision_config(text& out, span<const std::int64_t> numbers) {
  product_precision p;
  if (numbers.empty() || !product_precision::load(numbers, p)) return;
  out << ", precision_config = ";
  write_precisions(out, p, "#stablehlo<precision ", ">");
}
/// Writes ` {result_accuracy = ...}`.
constexpr void write_accuracy(text& out, span<const std::int64_t> numbers) {
  accuracy a;
  if (numbers.empty() || !accuracy::load(numbers, a)) return;
  out << " {result_accuracy = #stablehlo.result_accuracy<";
  if (a.mode == accuracy::tolerance) {
    out << "atol = ";
    write_number(out, dtype::f64, numbers[1]);
    out << ", rtol = ";
    write_number(out, dtype::f64, numbers[2]);
    out << ", ulps = " << a.ulps << ", ";
  }
  out << "mode = #stablehlo.result_accuracy_mode<"
      << (a.mode == accuracy::highest ? "HIGHEST" : "TOLERANCE") << ">>}";
}

}  // namespace partita::stablehlo_detail
