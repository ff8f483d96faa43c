/// einsum: sums of products in Einstein's notation, built from dot_general, reduce and transpose.
#pragma once

#include <partita/op/registry.hpp>

namespace partita::dsl_detail {

/// The dimensions of a tensor by letter. The i-th last dimension that `...` matches is char(i + 1).
struct einsum_term {
  char letters[2 * max_rank] = {};
  int rank = 0;

  constexpr int find(char letter) const {
    for (int d = 0; d < rank; ++d)
      if (letters[d] == letter) return d;
    return -1;
  }
  constexpr bool has(char letter) const { return find(letter) >= 0; }
  constexpr void push_back(char letter) {
    if (rank < 2 * max_rank) letters[rank++] = letter;
  }
};

/// A formula for operands of known types, and its evaluation.
class einsum_formula {
 public:
  constexpr einsum_formula(builder& b, std::string_view formula, span<const value_id> operands,
                           const product_precision& exactness)
      : b_(b),
        formula_(formula),
        exactness_(exactness),
        values_(operands.data(), operands.data() + operands.size()) {}

  constexpr value_id emit() {
    read_terms();
    if (b_.failed()) return -1;
    check_extents();
    for (std::size_t i = 1; i < terms_.size() && !b_.failed(); ++i) multiply(i);
    if (b_.failed()) return -1;
    drop(0, output_);
    std::int64_t order[max_rank] = {};
    for (int d = 0; d < output_.rank; ++d) order[d] = terms_[0].find(output_.letters[d]);
    return ops::transpose(b_, values_[0], {order, static_cast<std::size_t>(output_.rank)});
  }

 private:
  builder& b_;
  std::string_view formula_;
  product_precision exactness_;  ///< precision of each product
  vec<value_id> values_;
  vec<einsum_term> terms_;
  einsum_term output_;
  int dots_ = 0;  ///< maximum number of dimensions that `...` matches

  template <class... Parts>
  constexpr void refuse(std::string_view code, const Parts&... parts) {
    b_.p.error.record(code, "einsum: \"", formula_, "\": ", parts...);
  }
  /// Returns the start of `part` in `all`, or npos. It does not use `string_view::find`: with the
  /// undefined-behaviour sanitizer, GCC 12 does not evaluate it on a template argument's text in
  /// constant expressions.
  static constexpr std::size_t place_of(std::string_view part, std::string_view all) {
    for (std::size_t i = 0; i + part.size() <= all.size(); ++i)
      if (all.substr(i, part.size()) == part) return i;
    return std::string_view::npos;
  }
  constexpr void read_terms() {
    std::string_view rest = formula_;
    const std::size_t arrow = place_of("->", formula_);
    if (arrow != std::string_view::npos) rest = formula_.substr(0, arrow);
    std::size_t count = 1;
    for (char c : rest) count += c == ',' ? 1 : 0;
    if (count != values_.size())
      refuse("S160", "it has ", count, " terms for ", values_.size(), " operands");
    for (std::size_t i = 0; i < count && !b_.failed(); ++i) {
      const std::size_t end = place_of(",", rest);
      terms_.push_back(read(rest.substr(0, end), static_cast<int>(i)));
      rest = end == std::string_view::npos ? std::string_view() : rest.substr(end + 1);
    }
    if (b_.failed()) return;
    if (arrow != std::string_view::npos)
      output_ = read(formula_.substr(arrow + 2), -1);
    else
      output_ = implicit_output();
    for (int d = 0; d < output_.rank && !b_.failed(); ++d)
      if (!needed_after(-1, output_.letters[d]))
        refuse("S162", "output letter '", output_.letters[d], "' is not in the operands");
  }
  static constexpr bool is_letter(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  }
  /// Parses a term; the output is operand -1.
  constexpr einsum_term read(std::string_view in, int operand) {
    einsum_term t;
    const shape s =
        operand < 0 ? shape{} : b_.type(values_[static_cast<std::size_t>(operand)]).shape;
    int letters = 0;
    for (char c : in) letters += is_letter(c) ? 1 : 0;
    bool dots = false;
    for (std::size_t i = 0; i < in.size(); ++i) {
      if (in[i] == ' ') continue;
      if (in.substr(i, 3) == "..." && !dots) {
        const int n = operand < 0 ? dots_ : s.rank - letters;
        for (int d = n; d > 0; --d) t.push_back(static_cast<char>(d));
        if (n > dots_) dots_ = n;
        dots = true;
        i += 2;
      } else if (!is_letter(in[i])) {
        refuse("S160", "'", in[i], "' is not a letter");
        return t;
      } else if (t.has(in[i])) {
        if (operand < 0)
          refuse("S161", "output letter '", in[i], "' is repeated");
        else
          refuse("S161", "letter '", in[i], "' is repeated in operand ", operand,
                 "; diagonals are not supported");
        return t;
      } else {
        t.push_back(in[i]);
      }
    }
    if (operand >= 0 && (dots ? letters > s.rank : letters != s.rank))
      refuse("S163", "operand ", operand, " has ", letters, " letters and type ",
             b_.type(values_[static_cast<std::size_t>(operand)]), " of rank ", s.rank);
    return t;
  }
  /// Returns the dimensions of `...`, then the letters that occur in exactly one term, in
  /// alphabetical order.
  constexpr einsum_term implicit_output() const {
    einsum_term t;
    for (int d = dots_; d > 0; --d) t.push_back(static_cast<char>(d));
    for (int c = 'A'; c <= 'z'; ++c) {
      int count = 0;
      for (const auto& term : terms_) count += term.has(static_cast<char>(c)) ? 1 : 0;
      if (count == 1) t.push_back(static_cast<char>(c));
    }
    return t;
  }
  constexpr bool needed_after(int operand, char letter) const {
    if (operand >= 0 && output_.has(letter)) return true;
    for (std::size_t i = static_cast<std::size_t>(operand + 1); i < terms_.size(); ++i)
      if (terms_[i].has(letter)) return true;
    return false;
  }
  constexpr void check_extents() {
    for (std::size_t i = 0; i < terms_.size() && !b_.failed(); ++i)
      for (std::size_t j = 0; j < i; ++j)
        for (int d = 0; d < terms_[i].rank; ++d) {
          const char letter = terms_[i].letters[d];
          const int e = terms_[j].find(letter);
          if (e < 0) continue;
          const std::int64_t x = b_.type(values_[j]).shape[e], y = b_.type(values_[i]).shape[d];
          if (same_extent(x, y)) continue;
          text which;
          if (is_letter(letter))
            which << "letter '" << letter << '\'';
          else
            which << "a dimension of \"...\"";
          refuse("S164", which, " has size ", x, " in operand ", j, " and ", y, " in operand ", i);
        }
  }
  /// Sums over the letters of term i that are not in `kept`.
  constexpr void drop(std::size_t i, const einsum_term& kept) {
    std::int64_t dims[max_rank] = {};
    std::size_t count = 0;
    einsum_term left;
    for (int d = 0; d < terms_[i].rank; ++d)
      if (kept.has(terms_[i].letters[d]))
        left.push_back(terms_[i].letters[d]);
      else
        dims[count++] = d;
    values_[i] = ops::reduce(b_, values_[i], combiner::add, {dims, count});
    terms_[i] = left;
  }
  /// Sums over the letters that occur only in term i.
  constexpr void drop_unused(std::size_t i, const einsum_term& other, int operand) {
    einsum_term kept;
    for (int d = 0; d < terms_[i].rank; ++d)
      if (const char c = terms_[i].letters[d]; other.has(c) || needed_after(operand, c))
        kept.push_back(c);
    drop(i, kept);
  }
  /// Replaces the first term, the product so far, by its product with term i.
  constexpr void multiply(std::size_t i) {
    const int operand = static_cast<int>(i);
    drop_unused(0, terms_[i], operand);
    drop_unused(i, terms_[0], operand);
    const einsum_term& l = terms_[0];
    const einsum_term& r = terms_[i];
    std::int64_t batch[2][max_rank] = {}, contract[2][max_rank] = {};
    std::size_t batches = 0, contracted = 0;
    einsum_term product;
    for (int d = 0; d < l.rank; ++d) {
      const int e = r.find(l.letters[d]);
      if (e < 0) continue;
      const bool kept = needed_after(operand, l.letters[d]);
      auto& dims = kept ? batch : contract;
      auto& count = kept ? batches : contracted;
      dims[0][count] = d;
      dims[1][count++] = e;
      if (kept) product.push_back(l.letters[d]);
    }
    for (int d = 0; d < l.rank; ++d)
      if (!r.has(l.letters[d])) product.push_back(l.letters[d]);
    for (int d = 0; d < r.rank; ++d)
      if (!l.has(r.letters[d])) product.push_back(r.letters[d]);
    values_[0] = ops::dot_general(b_, values_[0], values_[i],
                                  {{batch[0], batches},
                                   {batch[1], batches},
                                   {contract[0], contracted},
                                   {contract[1], contracted},
                                   exactness_});
    terms_[0] = product;
  }
};

/// Emits an einsum (see einsum in contraction.hpp).
constexpr value_id emit_einsum(builder& b, std::string_view formula, span<const value_id> operands,
                               const product_precision& exactness = {}) {
  for (value_id v : operands)
    if (v < 0 || b.failed()) return -1;
  return einsum_formula(b, formula, operands, exactness).emit();
}

}  // namespace partita::dsl_detail
