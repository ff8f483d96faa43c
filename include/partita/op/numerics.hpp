/// Precision of products and functions: the accuracy that a TPU or GPU trades for speed.
///
/// An op stores it as numbers after its other attributes, and stores nothing for the default. So
/// every pass that copies attributes keeps it, ops with different precision are different ops, and
/// programs without it print and hash as if it did not exist.
/// programs without it print and hash as if it did not exist.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <partita/ir/shape.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/span.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// How precisely a product reads an operand. (StableHLO and JAX call `standard` DEFAULT: a TPU
/// rounds f32 to bf16.)
enum class precision : std::uint8_t { standard, high, highest };

/// The formats in which a dot algorithm stores operands and sums.
inline constexpr std::string_view float_formats[] = {
    "f4E2M1FN",   "f6E2M3FN",      "f6E3M2FN", "f8E3M4",     "f8E4M3",    "f8E4M3FN",
    "f8E4M3FNUZ", "f8E4M3B11FNUZ", "f8E5M2",   "f8E5M2FNUZ", "f8E8M0FNU", "bf16",
    "f16",        "tf32",          "f32",      "f64"};
enum class float_format : std::uint8_t {
  f4E2M1FN,
  f6E2M3FN,
  f6E3M2FN,
  f8E3M4,
  f8E4M3,
  f8E4M3FN,
  f8E4M3FNUZ,
  f8E4M3B11FNUZ,
  f8E5M2,
  f8E5M2FNUZ,
  f8E8M0FNU,
  bf16,
  f16,
  tf32,
  f32,
  f64
};

/// How the hardware computes a product. Each operand is split into `components` numbers of a
/// format; `operations` of their products are added in the accumulation format.
///
/// Source    StableHLO, `dot_algorithm`
struct dot_algorithm {
  float_format lhs = float_format::f32, rhs = float_format::f32, accumulation = float_format::f32;
  std::int64_t lhs_components = 1, rhs_components = 1, operations = 1;
  bool imprecise_accumulation = false;

  friend constexpr bool operator==(const dot_algorithm&, const dot_algorithm&) = default;
};

/// The precision of a dot_general or a convolution. (A convolution has no algorithm.)
///
/// Stored as nothing (the default), as the precisions of lhs and rhs, or as these followed by the
/// seven numbers of an algorithm.
struct product_precision {
  precision lhs = precision::standard, rhs = precision::standard;
  bool has_algorithm = false;
  dot_algorithm algorithm = {};

  constexpr product_precision() = default;
  constexpr product_precision(precision both) : lhs(both), rhs(both) {}
  constexpr product_precision(precision l, precision r) : lhs(l), rhs(r) {}
  constexpr product_precision(const dot_algorithm& a) : has_algorithm(true), algorithm(a) {}

  static constexpr std::size_t most_numbers = 9;
  static constexpr std::string_view words[] = {"default", "high", "highest"};

  constexpr bool is_usual() const {
    return !has_algorithm && lhs == precision::standard && rhs == precision::standard;
  }
  /// Returns the precision of the product with its operands swapped.
  constexpr product_precision swapped() const {
    product_precision other = *this;
    other.lhs = rhs;
    other.rhs = lhs;
    other.algorithm.lhs = algorithm.rhs;
    other.algorithm.rhs = algorithm.lhs;
    other.algorithm.lhs_components = algorithm.rhs_components;
    other.algorithm.rhs_components = algorithm.lhs_components;
    return other;
  }
  constexpr void store(vec<std::int64_t>& to) const {
    if (is_usual()) return;
    to.push_back(static_cast<std::int64_t>(lhs));
    to.push_back(static_cast<std::int64_t>(rhs));
    if (!has_algorithm) return;
    for (const float_format f : {algorithm.lhs, algorithm.rhs, algorithm.accumulation})
      to.push_back(static_cast<std::int64_t>(f));
    for (const std::int64_t n :
         {algorithm.lhs_components, algorithm.rhs_components, algorithm.operations})
      to.push_back(n);
    to.push_back(algorithm.imprecise_accumulation ? 1 : 0);
  }
  /// Decodes numbers that `store` wrote. Returns false if `store` cannot have written them.
  static constexpr bool load(span<const std::int64_t> n, product_precision& out) {
    out = {};
    if (n.empty()) return true;
    if (n.size() != 2 && n.size() != most_numbers) return false;
    for (std::size_t i = 0; i < 2; ++i)
      if (n[i] < 0 || n[i] > 2) return false;
    out.lhs = static_cast<precision>(n[0]);
    out.rhs = static_cast<precision>(n[1]);
    if (n.size() == 2) return !out.is_usual();
    constexpr auto formats = static_cast<std::int64_t>(std::size(float_formats));
    for (std::size_t i = 2; i < 5; ++i)
      if (n[i] < 0 || n[i] >= formats) return false;
    for (std::size_t i = 5; i < 8; ++i)
      if (n[i] < 1) return false;
    if (n[8] != 0 && n[8] != 1) return false;
    const auto format = [&](std::size_t i) { return static_cast<float_format>(n[i]); };
    out.has_algorithm = true;
    out.algorithm = {format(2), format(3), format(4), n[5], n[6], n[7], n[8] != 0};
    return true;
  }

  /// Prints `precision=[default, highest], algorithm=[tf32, tf32, f32, 1, 1, 3]`.
  static constexpr void print(text& out, span<const std::int64_t> numbers) {
    product_precision p;
    if (!load(numbers, p)) return;
    const bool plain = p.lhs == precision::standard && p.rhs == precision::standard;
    const auto word = [](precision each) { return words[static_cast<int>(each)]; };
    if (!plain) out << "precision=[" << word(p.lhs) << ", " << word(p.rhs) << ']';
    if (!p.has_algorithm) return;
    const auto format = [](float_format f) { return float_formats[static_cast<int>(f)]; };
    const dot_algorithm& a = p.algorithm;
    out << (plain ? "" : ", ") << "algorithm=[" << format(a.lhs) << ", " << format(a.rhs) << ", "
        << format(a.accumulation) << ", " << a.lhs_components << ", " << a.rhs_components << ", "
        << a.operations << (a.imprecise_accumulation ? ", imprecise" : "") << ']';
  }
  /// Parses text that `print` wrote and appends its numbers.
  static constexpr bool parse(scanner& in, vec<std::int64_t>& to) {
    product_precision p;
    const bool plain = !in.accept("precision=[");
    if (!plain && !(one_of(in, words, p.lhs) && in.accept(", ") && one_of(in, words, p.rhs) &&
                    in.accept("]")))
      return false;
    if (plain || in.accept(", ")) {
      dot_algorithm& a = p.algorithm;
      if (!(in.accept("algorithm=[") && one_of(in, float_formats, a.lhs) && in.accept(", ") &&
            one_of(in, float_formats, a.rhs) && in.accept(", ") &&
            one_of(in, float_formats, a.accumulation) && in.accept(", ") &&
            in.integer(a.lhs_components) && in.accept(", ") && in.integer(a.rhs_components) &&
            in.accept(", ") && in.integer(a.operations)))
        return false;
      a.imprecise_accumulation = in.accept(", imprecise");
      if (!in.accept("]")) return false;
      p.has_algorithm = true;
    }
    p.store(to);
    return true;
  }

 private:
  template <std::size_t N, class Enum>
  static constexpr bool one_of(scanner& in, const std::string_view (&words)[N], Enum& out) {
    const std::string_view word = in.take_while([](char c) { return c != ',' && c != ']'; });
    for (std::size_t i = 0; i < N; ++i)
      if (words[i] == word) return out = static_cast<Enum>(i), true;
    return false;
  }
};

/// The accuracy of an elementwise function.
///
/// Stored as nothing (the default), as 1 (the highest accuracy of the hardware), or as 2, two
/// tolerances as binary64 and a tolerance in units in the last place.
///
/// Source    StableHLO, `result_accuracy`
struct accuracy {
  enum mode_type : std::uint8_t { standard, highest, tolerance } mode = standard;
  double absolute = 0, relative = 0;
  std::int64_t ulps = 0;

  constexpr void store(vec<std::int64_t>& to) const {
    if (mode == standard) return;
    to.push_back(mode);
    if (mode == highest) return;
    to.push_back(std::bit_cast<std::int64_t>(absolute));
    to.push_back(std::bit_cast<std::int64_t>(relative));
    to.push_back(ulps);
  }
  static constexpr bool load(span<const std::int64_t> n, accuracy& out) {
    out = {};
    if (n.empty()) return true;
    if (n[0] != (n.size() == 1 ? highest : tolerance) || (n.size() != 1 && n.size() != 4))
      return false;
    out.mode = static_cast<mode_type>(n[0]);
    if (n.size() == 1) return true;
    out.absolute = std::bit_cast<double>(n[1]);
    out.relative = std::bit_cast<double>(n[2]);
    out.ulps = n[3];
    const auto good = [](double v) { return v >= 0 && v - v == 0; };
    return good(out.absolute) && good(out.relative) && out.ulps >= 0;
  }
  /// Prints `accuracy=highest` or `accuracy=[0.001, 1e-5, 2]`.
  static constexpr void print(text& out, span<const std::int64_t> numbers) {
    accuracy a;
    if (!load(numbers, a) || a.mode == standard) return;
    out << "accuracy=";
    if (a.mode == highest) {
      out << "highest";
      return;
    }
    out << '[';
    print_number(out, a.absolute);
    out << ", ";
    print_number(out, a.relative);
    out << ", " << a.ulps << ']';
  }
  static constexpr bool parse(scanner& in, vec<std::int64_t>& to) {
    accuracy a;
    if (!in.accept("accuracy=")) return false;
    a.mode = in.accept("highest") ? highest : tolerance;
    if (a.mode == tolerance &&
        !(in.accept("[") && read_number(in, a.absolute) && in.accept(", ") &&
          read_number(in, a.relative) && in.accept(", ") && in.integer(a.ulps) && in.accept("]")))
      return false;
    a.store(to);
    return true;
  }
};

/// Prints `precision=[high, high]` or `accuracy=highest`, as the op does. The number of `numbers`
/// distinguishes products from functions.
constexpr void print_numerics(text& out, span<const std::int64_t> numbers) {
  if (numbers.empty())
    out << "the usual precision";
  else if (numbers.size() == 2 || numbers.size() == product_precision::most_numbers)
    product_precision::print(out, numbers);
  else
    accuracy::print(out, numbers);
}

}  // namespace partita
