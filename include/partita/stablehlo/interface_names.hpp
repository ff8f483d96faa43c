/// Names of arguments and results.
#pragma once

#include <string_view>

#include <partita/stablehlo/module_items.hpp>
#include <partita/stablehlo/scopes.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

/// Decodes an escape sequence: `\n`, `\t`, `\5B`, or the next character itself. Advances `at` to
/// the last character that it read.
constexpr char escaped(std::string_view in, std::size_t& at) {
  if (at + 1 >= in.size()) return in[at];
  const char c = in[++at];
  if (at + 1 < in.size() && hex_digit(c) >= 0 && hex_digit(in[at + 1]) >= 0) {
    ++at;
    return static_cast<char>(16 * hex_digit(c) + hex_digit(in[at]));
  }
  return c == 'n' ? '\n' : c == 't' ? '\t' : c;
}
/// Decodes the text between quotes.
constexpr text unescaped(std::string_view in) {
  text out;
  for (std::size_t i = 0; i < in.size(); ++i) out << (in[i] == '\\' ? escaped(in, i) : in[i]);
  return out;
}
/// Converts `params['h'][0].w` to a path: `params.h.0.w`.
constexpr text path_of(std::string_view key) {
  text out;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const char c = key[i];
    if (c == '\'' || c == ']') continue;
    if (c == '[')
      out << (out.empty() ? "" : ".");
    else if (c == '\\')
      out << escaped(key, i);
    else
      out << c;
  }
  return out;
}

/// Reads the name of a result from `{jax.result_info = "result['loss']"}`.
constexpr text result_name(std::string_view attributes, int i, int count) {
  const std::size_t at = attributes.find("jax.result_info");
  text path;
  if (at != std::string_view::npos) {
    const std::string_view rest = attributes.substr(at);
    const std::size_t begin = rest.find('"');
    std::size_t end = begin == std::string_view::npos ? rest.size() : begin + 1;
    while (end < rest.size() && rest[end] != '"') end += rest[end] == '\\' ? 2 : 1;
    if (end < rest.size()) path = path_of(rest.substr(begin + 1, end - begin - 1));
  }
  const std::string_view whole = path.view();
  if (whole.starts_with("result.") && whole.size() > 7) return text(whole.substr(7));
  if (!path.empty()) return path;
  return count == 1 ? text("result") : concat("result", i);
}

/// Returns the names of arguments. For each it is the given name; otherwise that of its location,
/// if no other argument has it (TensorFlow writes "XLA_Args" for all); otherwise the name in the
/// text.
constexpr vec<text> argument_names(const function_text& f, const alias_table& aliases,
                                   span<const std::string_view> given) {
  vec<text> names;
  for (std::size_t i = 0; i < f.arguments.size(); ++i)
    names.push_back(i < given.size() ? text(given[i])
                                     : path_of(aliases.name_at(f.arguments[i].location)));
  name_table first(names.size());
  vec<char> shared(names.size(), 0);
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int same = first.insert(names[i].view(), static_cast<int>(i));
    if (same == static_cast<int>(i)) continue;
    shared[i] = shared[static_cast<std::size_t>(same)] = 1;
  }
  for (std::size_t i = 0; i < names.size(); ++i)
    if (names[i].empty() || (shared[i] != 0 && i >= given.size()))
      names[i] = f.arguments[i].name.substr(1);
  return names;
}
/// Returns distinct names of results. A name that belongs to an input of another type gets the
/// prefix "result.", and a repeated name gets its number as a suffix.
constexpr vec<text> result_names(const function_text& f, const program& p,
                                 const vec<value_id>& results) {
  name_table inputs(static_cast<std::size_t>(p.input_count())), used(results.size());
  for (int i = 0; i < p.input_count(); ++i) inputs.insert(p.input_name(i), i);
  vec<text> names;
  names.reserve(results.size());  // (Keeps the names in place for the table.)
  for (std::size_t i = 0; i < results.size(); ++i) {
    const bool said = i < f.result_attributes.size();
    text name = result_name(said ? f.result_attributes[i] : std::string_view(), static_cast<int>(i),
                            static_cast<int>(results.size()));
    const int input = inputs.find(name.view());
    if (input >= 0 && p.input_type(input) != p.type(results[i])) name = concat("result.", name);
    names.push_back(name);
  }
  for (std::size_t i = 0; i < names.size(); ++i) {
    const int number = static_cast<int>(i);
    while (used.insert(names[i].view(), number) != number) names[i] << '.' << number;
  }
  return names;
}

}  // namespace partita::stablehlo_detail
