/// `expect`: a compile-time check whose diagnostic shows the actual value.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>

#include <partita/ir/layout.hpp>
#include <partita/schedule/figures.hpp>
#include <partita/support/number_text.hpp>
#include <partita/support/static_error.hpp>
#include <partita/support/text.hpp>

namespace partita {

/// Upper bound for `expect`: `expect<check<step>.peak_bytes, at_most{1'000'000}>`.
template <class T>
struct at_most {
  T value;
};
template <class T>
at_most(T) -> at_most<T>;
/// Lower bound for `expect`: `expect<check<step>.collectives.all_gather, at_least{1}>`.
template <class T>
struct at_least {
  T value;
};
template <class T>
at_least(T) -> at_least<T>;

/// An operand of `expect`: a value of any type that can be a template argument, a text, or a
/// captureless function that returns the value.
template <class T>
struct compared {
  T value;
  constexpr compared(const T& v) : value(v) {}
};
/// The characters of a text.
template <std::size_t N>
struct compared<fixed_text<N>> {
  fixed_text<N> value;
  constexpr compared(const char (&s)[N]) : value(s) {}
};
template <class T>
compared(T) -> compared<T>;
template <std::size_t N>
compared(const char (&)[N]) -> compared<fixed_text<N>>;

namespace schedule_detail {

template <std::size_t N>
constexpr std::string_view chars_of(const fixed_text<N>& t) {
  return t.view().substr(0, t.view().find('\0'));
}
template <std::size_t N>
constexpr std::string_view plain(const fixed_text<N>& t) {
  return chars_of(t);
}
template <class T>
constexpr auto plain(const T& v) {
  if constexpr (requires { v(); })
    return plain(v());
  else if constexpr (std::convertible_to<T, std::string_view>)
    return std::string_view(v);
  else
    return v;
}

/// Prints a value.
template <class T>
constexpr void print_compared(text& out, const T& v, const mesh* m) {
  if constexpr (std::same_as<T, bool>) {
    out << (v ? "true" : "false");
  } else if constexpr (std::floating_point<T>) {
    print_number(out, v);
  } else if constexpr (std::same_as<T, dtype>) {
    out << name_of(v);
  } else if constexpr (std::same_as<T, std::string_view>) {
    print_quoted(out, v);
  } else if constexpr (std::same_as<T, layout>) {
    int rank = 1;
    for (const auto& e : v) rank = e.dim < rank ? rank : e.dim + 1;
    print_layout(out, v, rank, m);
  } else if constexpr (requires { out << v; }) {
    out << v;
  } else {
    out << "a value that cannot be printed";
  }
}

struct named_count {
  std::string_view name;
  std::int64_t collectives::*member;
};
inline constexpr named_count named_counts[] = {{"all_gather", &collectives::all_gather},
                                               {"all_reduce", &collectives::all_reduce},
                                               {"reduce_scatter", &collectives::reduce_scatter},
                                               {"all_to_all", &collectives::all_to_all},
                                               {"permute", &collectives::permute}};

/// Prints the collectives whose number is not 0, or (`differing`) those whose numbers differ from
/// `other`.
constexpr void print_counts(text& out, const collectives& c, const collectives& other,
                            bool differing) {
  const std::size_t before = out.size();
  for (const auto& each : named_counts) {
    const std::int64_t n = c.*each.member;
    if (n == other.*each.member && (differing || n == 0)) continue;
    out << (out.size() > before ? ", " : "") << each.name << ' ' << n;
  }
}

template <class T>
struct bound_of {
  static constexpr std::string_view words = "";
};
template <class T>
struct bound_of<at_most<T>> {
  static constexpr std::string_view words = "at most ";
};
template <class T>
struct bound_of<at_least<T>> {
  static constexpr std::string_view words = "at least ";
};

template <class A, class B>
constexpr bool as_expected(const A& actual, const B& wanted) {
  if constexpr (bound_of<B>::words == "at most ")
    return actual <= wanted.value;
  else if constexpr (bound_of<B>::words == "at least ")
    return actual >= wanted.value;
  else
    return actual == wanted;
}

/// Returns the difference between two values, or an empty text.
///
/// Errors    S035 the check found another value
template <class A, class B>
constexpr text difference_from(const A& actual, const B& wanted, const mesh* m) {
  if constexpr (std::same_as<A, layout> && std::same_as<B, std::string_view>) {
    if (m == nullptr)
      return "S035 expect: a comparison of a layout with a text needs the mesh as third argument";
    // Trailing unsharded dimensions are not part of a layout, so the expected text determines the
    // rank.
    int rank = 1;
    for (const char c : wanted) rank += c == ']' ? 0 : c == '{' ? 1 : 0;
    text found;
    print_layout(found, actual, rank - 1, m);
    if (found == wanted) return {};
    return concat("S035 expect: ", found, " (expected ", wanted, ')');
  } else {
    if (as_expected(actual, wanted)) return {};
    text out("S035 expect: ");
    if constexpr (std::same_as<A, collectives> && std::same_as<B, collectives>) {
      print_counts(out, actual, wanted, false);
      out << " (expected ";
      print_counts(out, wanted, actual, true);
    } else {
      print_compared(out, actual, m);
      out << " (expected " << bound_of<B>::words;
      if constexpr (bound_of<B>::words.empty())
        print_compared(out, wanted, m);
      else
        print_compared(out, wanted.value, m);
    }
    return out << ')';
  }
}

template <compared Actual, compared Wanted, auto... Mesh>
struct expectation {
  constexpr text operator()() const {
    const mesh* m = nullptr;
    ((m = &Mesh), ...);
    if constexpr (std::derived_from<decltype(plain(Actual.value)), placeholder_figure>)
      return {};
    else
      return difference_from(plain(Actual.value), plain(Wanted.value), m);
  }
};

}  // namespace schedule_detail

/// True if the first operand equals the second or satisfies its bound. Otherwise one compile-time
/// diagnostic shows both:
///
/// ```cpp
/// static_assert(expect<check<step>.collectives, collectives{.all_reduce = 3}>);
/// //  S035 expect: all_gather 2, all_reduce 1 (expected all_reduce 3, all_gather 0)
/// static_assert(expect<check<step>.peak_bytes, at_most{1'000'000}>);
/// static_assert(expect<check<step>.input("w1").local_shape, shape{2, 8}>);
/// static_assert(expect<check<step>.input("w1").sharding, R"([{"B"}, {"M"}])", mesh>);
/// static_assert(expect<[] { return check<step>.tactic(0).name; }, "BP">);
/// ```
///
/// Operands are numbers, bools, enumerators, collectives, shapes, strings, and layouts (a layout
/// can be compared with its text, with the mesh as third argument). Any other type works if it can
/// be compared and be a template argument. Texts of a `check` are not template arguments; return
/// them from a function.
///
/// Errors    S035 the values differ
template <compared Actual, compared Wanted, auto... Mesh>
inline constexpr bool expect =
    report_static_error<schedule_detail::expectation<Actual, Wanted, Mesh...>>() || true;

}  // namespace partita
