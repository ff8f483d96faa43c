/// Changes of attributes by way of their text: the result is an attribute that the op's parser
/// accepts, whatever it means.
#pragma once

#include <cctype>
#include <string_view>

#include "edits.hpp"

namespace mutants {

/// A number or word of a text, outside quoted names.
struct token {
  std::size_t begin = 0, size = 0;
};
struct tokens {
  std::vector<token> numbers, words;

  explicit tokens(const std::string& s) {
    const auto is = [&](std::size_t i, auto test) {
      return i < s.size() && test(static_cast<unsigned char>(s[i])) != 0;
    };
    const auto digit = [](int c) { return std::isdigit(c); };
    const auto letter = [](int c) { return c == '_' ? 1 : std::isalpha(c); };
    for (std::size_t i = 0, end = 0; i < s.size(); i = end) {
      end = i + 1;
      if (s[i] == '"') {
        end = std::min(s.find('"', i + 1), s.size() - 1) + 1;
      } else if (is(i, digit) || (s[i] == '-' && is(i + 1, digit))) {
        while (is(end, digit)) ++end;
        numbers.push_back({i, end - i});
      } else if (is(i, letter)) {
        while (is(end, letter)) ++end;
        if (end == s.size() || s[end] != '=') words.push_back({i, end - i});
      }
    }
  }
};

/// Changes one number, changes two together or in opposite directions, or exchanges two.
inline bool change_numbers(std::string& s, random& r) {
  const auto found = tokens(s).numbers;
  if (found.empty()) return false;
  const auto i = static_cast<std::size_t>(r.in(0, static_cast<std::int64_t>(found.size()) - 1));
  auto j = static_cast<std::size_t>(r.in(0, static_cast<std::int64_t>(found.size()) - 1));
  const auto number = [&](std::size_t k) -> std::int64_t {
    return std::atoll(s.c_str() + found[k].begin);
  };
  const std::int64_t a = number(i), b = number(j), by = r.one_in(4) ? r.in(2, 4) : 1;
  const std::int64_t step = r.one_in(2) ? by : -by;
  const auto how = r.in(0, 3);
  const auto put = [&](std::size_t k, std::int64_t v) {
    s.replace(found[k].begin, found[k].size, std::to_string(v));
  };
  const auto put_both = [&](std::int64_t at_i, std::int64_t at_j) {
    const bool first = i < j;  // the later one first, so that the other one keeps its position
    put(first ? j : i, first ? at_j : at_i);
    put(first ? i : j, first ? at_i : at_j);
  };
  if (i == j || how == 0)
    put(i, a + step);
  else if (how == 1)
    put_both(a + step, b + step);
  else if (how == 2)
    put_both(a + step, b - step);
  else
    put_both(b, a);
  return true;
}

/// Replaces a word by another one of its kind, or sets or clears a flag.
inline bool change_word(std::string& s, random& r) {
  static const std::vector<std::vector<std::string_view>> kinds = {
      {"add", "max", "min", "multiply", "and", "or"},
      {"argmax", "argmin"},
      {"assign", "add", "max", "min", "multiply"},
      {"eq", "ne", "lt", "le", "gt", "ge"},
      {"ge", "le"}};
  static const std::vector<std::string_view> flags = {"reverse",    "exclusive",     "reversed",
                                                      "descending", "lower",         "left_side",
                                                      "lower",      "unit_diagonal", "transpose_a"};
  const auto words = tokens(s).words;
  if (words.empty() || r.one_in(2)) {
    const std::string flag = ", " + std::string(r.pick(flags));
    const auto at = s.find(flag);
    if (at == s.npos)
      s += flag;
    else
      s.erase(at, flag.size());
    return true;
  }
  const token w = r.pick(words);
  const std::string_view word = std::string_view(s).substr(w.begin, w.size);
  const auto kind = r.pick(kinds);
  if (std::find(kind.begin(), kind.end(), word) == kind.end()) return false;
  s.replace(w.begin, w.size, r.pick(kind));
  return true;
}

/// Returns false if the new text is not an attribute of the op, or equals the old one.
inline bool change_attributes(pt::program& p, op_id o, const pt::mesh& m, random& r) {
  const pt::op_def& d = *p.op(o).def;
  pt::text printed;
  pt::print_context out{p, o, &m, printed};
  d.print(out);
  std::string s = data::str(printed);
  const bool braces = !d.collective && s.starts_with(" {");
  if (braces) s = s.substr(2, s.size() - 3);
  if (s.starts_with(" ")) s = s.substr(1);
  if (!(r.one_in(3) ? change_word(s, r) : change_numbers(s, r))) return false;
  pt::vec<tensor_type> types;
  for (value_id v : p.operands(o)) types.push_back(p.type(v));
  pt::vec<std::int64_t> attrs;
  pt::parse_context c{s, types, p.type(p.op(o).result), attrs, {}, &m};
  d.parse(c);
  const ints changed(attrs.begin(), attrs.end());
  if (c.error || changed == attributes_of(p, o)) return false;
  set_attributes(p, o, changed);
  return true;
}

/// Changes a number of a constant.
inline bool change_number(pt::program& p, op_id o, random& r) {
  const pt::dtype t = p.type(p.op(o).result).element;
  const std::int64_t bits = p.attrs(o)[0];
  const double v = pt::op::constant::number(t, bits);
  const double others[] = {v + 1, v - 1, -v, 2 * v, 0, 1, v / 2};
  const double other = r.pick(others);
  const std::int64_t now =
      pt::is_floating(t) ? std::bit_cast<std::int64_t>(other) : static_cast<std::int64_t>(other);
  if (now == bits || (v == 0 && other == 0) || (v != v && other != other)) return false;
  set_attributes(p, o, {now});
  return true;
}

}  // namespace mutants
