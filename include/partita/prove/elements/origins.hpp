/// Origins of formulas, for messages: fingerprints decide whether formulas are equal, but do not
/// show them.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/op/registry.hpp>
#include <partita/prove/elements/element.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/text.hpp>

namespace partita::prove_detail {

/// The op and operands of a formula.
struct origin {
  enum kind_type : std::uint8_t { sum, product, opposite, function, input };
  kind_type kind = function;
  std::string_view name = {};  ///< of a function, or an input
  vec<std::int64_t> at = {};   ///< of an input: position of the element
  vec<element> operands = {};
};

/// The name of an op, if it is one of the library.
constexpr std::string_view op_name(std::uint64_t id) {
  for (const op_def* d : registry)
    if (d->id == id) return d->name;
  return "function";
}

/// Formulas in words, shortened.
class formula_words {
 public:
  constexpr void add(const fingerprint& of, origin from) {
    origins_.add(of, static_cast<origin&&>(from));
  }
  constexpr bool has(const element& x) const { return x.known || origins_.find(x.of) != nullptr; }

  /// `"x"[0, 1] * "w"[1] + exp("x"[2])`
  constexpr text words(const element& x) const {
    text out;
    print_sum(out, addends(x), most_depth);
    return out;
  }
  /// The text `a + b here and a + c in the source; only here: b; only in the source: c`. Empty if
  /// they differ only in omitted parts.
  constexpr text difference(const element& made, const element& wanted) const {
    vec<addend> mine = addends(made), theirs = addends(wanted);
    const bool sums = mine.size() > 1 || theirs.size() > 1;
    const text here = words(made), there = words(wanted);
    text out = concat(here, " here and ", there, " in the source");
    if (!sums || !cancel(mine, theirs)) return here.view() == there.view() ? text() : out;
    if (!mine.empty()) {
      out << "; only here: ";
      print_sum(out, mine, most_depth);
    }
    if (!theirs.empty()) {
      out << "; only in the source: ";
      print_sum(out, theirs, most_depth);
    }
    return out;
  }

 private:
  static constexpr int most_depth = 3;
  static constexpr std::size_t most_parts = 4, most_opened = 4096;

  struct addend {
    element of;
    bool minus = false;
  };
  facts<origin> origins_;

  constexpr const origin* origin_of(const element& x) const {
    return x.known ? nullptr : origins_.find(x.of);
  }
  /// The summands, from the first on; for very many, partial sums.
  constexpr vec<addend> addends(const element& x) const {
    vec<addend> open, all;
    std::size_t opened = 0;  // (a sum may contain itself: v in y + v - y)
    open.push_back({x});
    while (!open.empty()) {
      const addend a = open.back();
      open.pop_back();
      const origin* from = origin_of(a.of);
      const bool opens = from != nullptr &&
                         (from->kind == origin::sum || from->kind == origin::opposite) &&
                         opened++ < most_opened;
      if (!opens) {
        all.push_back(a);
        continue;
      }
      for (std::size_t i = from->operands.size(); i-- > 0;)
        open.push_back({from->operands[i], a.minus != (from->kind == origin::opposite)});
    }
    return all;
  }
  /// Removes common summands. False without any.
  static constexpr bool cancel(vec<addend>& mine, vec<addend>& theirs) {
    vec<addend> left;
    const std::size_t all = theirs.size();
    for (const addend& a : mine) {
      vec<addend> rest;
      bool found = false;
      for (const addend& b : theirs) {
        const bool same = !found && a.of == b.of && a.minus == b.minus;
        if (!same) rest.push_back(b);
        found = found || same;
      }
      if (!found) left.push_back(a);
      theirs = static_cast<vec<addend>&&>(rest);
    }
    mine = static_cast<vec<addend>&&>(left);
    return theirs.size() < all;
  }
  constexpr void print_sum(text& out, const vec<addend>& all, int depth) const {
    for (std::size_t i = 0; i < all.size(); ++i) {
      if (i == most_parts && all.size() > most_parts + 1) {
        out << " + ... (" << all.size() - i << " more)";
        return;
      }
      out << (all[i].minus ? (i == 0 ? "-" : " - ") : (i == 0 ? "" : " + "));
      print(out, all[i].of, depth);
    }
  }
  constexpr void print(text& out, const element& x, int depth) const {
    const origin* from = origin_of(x);
    if (x.known) {
      print_known(out, x);
    } else if (from == nullptr) {
      out << "...";
    } else if (from->kind == origin::input) {
      out << '"' << from->name << '"';
      if (from->at.empty()) return;
      out << '[';
      append_list(out, static_cast<int>(from->at.size()),
                  [&](int i) { out << from->at[static_cast<std::size_t>(i)]; });
      out << ']';
    } else if (depth == 0) {
      out << "...";
    } else if (from->kind == origin::product) {
      print_factors(out, *from, depth);
    } else if (from->kind == origin::function) {
      print_function(out, *from, depth);
    } else {
      out << '(';
      print_sum(out, addends(x), depth - 1);
      out << ')';
    }
  }
  /// (Integers and flags of interest are small; reals have other bits.)
  static constexpr void print_known(text& out, const element& x) {
    const bool is_real = x.of == field::real(real_of(x)) && !(x.of == field::integer(x.number));
    if (is_real)
      print_number(out, real_of(x));
    else
      out << x.number;
  }
  constexpr void print_factors(text& out, const origin& of, int depth) const {
    for (std::size_t i = 0; i < of.operands.size(); ++i) {
      if (i > 0) out << " * ";
      print(out, of.operands[i], depth - 1);
    }
  }
  constexpr void print_function(text& out, const origin& of, int depth) const {
    out << of.name << '(';
    if (of.operands.empty()) out << "...";
    for (std::size_t i = 0; i < of.operands.size(); ++i) {
      if (i > 0) out << ", ";
      if (i == most_parts && of.operands.size() > most_parts + 1) {
        out << "...";
        break;
      }
      print_sum(out, addends(of.operands[i]), depth - 1);
    }
    out << ')';
  }
};

}  // namespace partita::prove_detail
