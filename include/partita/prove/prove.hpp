/// `prove`: checks that a device-local program computes its source.
#pragma once

#include <cstdint>
#include <type_traits>

#include <partita/ir/tidy.hpp>
#include <partita/prove/blame.hpp>
#include <partita/prove/by_elements.hpp>
#include <partita/prove/given.hpp>
#include <partita/prove/kernel/kernel.hpp>
#include <partita/prove/shrink/by_shrinking.hpp>
#include <partita/support/separate.hpp>

namespace partita {

/// How a program was proved.
enum class proof_method : std::uint8_t {
  none,       ///< it is not proved
  claims,     ///< exactly, at any size
  elements,   ///< at the size that was run; wrong with a probability of 10^-30 per comparison
  shrinking,  ///< at any size; wrong with a probability of 10^-30 per comparison
};

/// The result of `prove`.
struct verdict {
  bool proved = false;
  proof_method method = proof_method::none;
  failure error;  ///< the reason why it is not proved
  /// True if it was proved element by element after claims about whole tensors did not suffice.
  bool by_elements = false;
  /// True if elements alone prove all outputs, too. (With `by_elements`, this is not a second way.)
  bool confirmed = false;
  /// True if shrinking alone proves all outputs (see most_shrunk_to_confirm).
  bool confirmed_by_shrinking = false;
  /// True if the program is neither proved nor refuted: it is too large for elements, has an op
  /// that they do not know, or has other formulas but the same numbers. It may be correct.
  bool undecided = false;

  constexpr explicit operator bool() const { return proved; }
};

/// Limits of the work of `prove`.
struct prove_options {
  static constexpr std::int64_t off = -1;
  /// The maximum number of ops of both programs together (Q008).
  std::int64_t most_steps = off;
  /// The maximum number of elements, and products of elements, of both programs on all devices for
  /// which outputs that claims do not prove are computed on formulas (an iteration of a loop counts
  /// as ten). 0: never. 25 million take a second, and up to 1.2 GiB if each computes an element of
  /// its own.
  std::int64_t most_elements = 25'000'000;
  /// The same in constant evaluation: 50,000 take 2 to 4 seconds and up to 0.5 GiB.
  std::int64_t most_elements_in_constants = 50'000;
  /// The maximum number of steps for computing a proved program on formulas alone, too (the
  /// default: about 4 ms). Not in constant evaluation. Claims and formulas share little code, so
  /// that this detects an unsound rule (Q016). 0: never.
  std::int64_t most_confirmed = 100'000;
  /// The maximum number of steps of a proof by shrinking, which is tried if claims do not prove a
  /// program that is too large for elements. Not in constant evaluation. 0: never.
  std::int64_t most_shrunk = 25'000'000;
  /// The maximum number of steps for proving a program by shrinking, too, after claims proved it.
  std::int64_t most_shrunk_to_confirm = 0;
};

namespace prove_detail {

/// True if shrinking proves a program, in at most this number of steps.
constexpr bool is_proved_by_shrinking(const program& source, const device_program& d,
                                      std::int64_t most) {
  return most > 0 && !std::is_constant_evaluated() &&
         prove_by_shrinking(source, d, most).kind == shrink_verdict::proved;
}

/// The result of elements, as the end of an error text.
constexpr text words_of_elements(const program& source, const device_program& d,
                                 const element_verdict& e, std::int64_t most) {
  switch (e.kind) {
    case element_verdict::too_large:
      return concat(
          "; element by element it takes more than ", most, " steps (prove_options.",
          std::is_constant_evaluated() ? "most_elements_in_constants)" : "most_elements)");
    case element_verdict::not_known:
      if (e.unknown_op.empty())
        return text("; element by element, there are too many choices to compare");
      return concat("; element by element, the results of \"", e.unknown_op, "\" are unknown");
    case element_verdict::differs:
      return concat("; formulas first differ at ", element_text(source, d.mesh, e),
                    e.formulas.empty() ? "" : ": it is ", e.formulas);
    default:
      return {};
  }
}
/// Finds a difference once more, with both formulas in words, which need memory for each step.
constexpr void add_formulas(const program& source, const device_program& d, std::int64_t most,
                            const vec<int>& open, element_verdict& e) {
  constexpr std::int64_t most_with_words = 1'000'000;
  if (std::is_constant_evaluated() || e.kind != element_verdict::differs) return;
  formula_words words;
  const element_verdict again =
      element_checker(source, d, open, most < most_with_words ? most : most_with_words, {}, &words)
          .check();
  if (again.kind == element_verdict::differs) e = again;
}
/// Tries outputs that claims do not prove element by element: once with claims about intermediate
/// values, and once without them (elements may know more about padding). Otherwise reports the
/// place of the mistake.
constexpr void try_elements(const program& source, const device_program& d,
                            const claim_kernel& claims, const prove_options& options, verdict& v) {
  std::int64_t most = options.most_elements;
  if (std::is_constant_evaluated()) most = options.most_elements_in_constants;
  const vec<int>& open = claims.open();
  element_verdict e;
  if (most > 0) {
    e = prove_by_elements(source, d, open, most, claims.claims());
    if (e.kind != element_verdict::proved) e = prove_by_elements(source, d, open, most);
  }
  if (e.kind == element_verdict::proved) {
    element_verdict at;
    if (!std::is_constant_evaluated() && options.most_confirmed > 0)
      at = compare_at_numbers(source, d, options.most_confirmed);
    v.by_elements = v.proved = at.kind != element_verdict::differs;
    if (!v.proved)
      v.error.record("Q004", "prove: formulas are equal over real numbers, but ",
                     element_text(source, d.mesh, at),
                     " differs for random inputs (as an infinity times 0 does, unless a rule of "
                     "formulas is unsound)");
    return;
  }
  v.undecided =
      e.kind == element_verdict::too_large || (most > 0 && e.kind == element_verdict::not_known);
  if (e.kind == element_verdict::differs)
    v.undecided = !std::is_constant_evaluated() &&
                  compare_at_numbers(source, d, most).kind != element_verdict::differs;
  if (v.undecided && is_proved_by_shrinking(source, d, options.most_shrunk)) {
    v.proved = true;
    v.method = proof_method::shrinking;
    v.undecided = false;
    return;
  }
  add_formulas(source, d, most, open, e);
  const bool small = e.kind == element_verdict::differs;
  report_mistake(source, d, claims, small && e.output >= 0 ? e.output : open[0], small ? most : 0,
                 v.error);
  if (most > 0) v.error.set(concat(v.error.message, words_of_elements(source, d, e, most)));
}

/// Confirms a proof by elements alone: by formulas, and for formulas that look different (equal
/// ones may), by random numbers.
constexpr void confirm(const program& source, const device_program& d, std::int64_t most,
                       verdict& v) {
  if (most <= 0) return;
  element_verdict e = prove_by_elements(source, d, most);
  v.confirmed = e.kind == element_verdict::proved;
  if (e.kind != element_verdict::differs || v.by_elements) return;  // (see try_elements)
  e = compare_at_numbers(source, d, most);
  v.proved = e.kind != element_verdict::differs;
  if (!v.proved)
    v.error.record("Q016", "prove: it is proved, but ", element_text(source, d.mesh, e),
                   " differs for random inputs; if no infinity is involved, a rule of the checker "
                   "is unsound (please report it)");
}

/// True if claims prove both programs without dead code: loops of one program may carry dead values
/// that those of the other do not carry.
constexpr bool proved_without_dead_code(const program& source, const device_program& local) {
  const live_program live = without_dead_code(source);
  live_program live_local = without_dead_code(local.local);
  if (!live.changed && !live_local.changed) return false;
  device_program d = local;
  if (live_local.changed) d.local = static_cast<program&&>(live_local.p);
  claim_kernel claims(live.changed ? live.p : source, d);
  claims.run();
  return claims.open().empty();
}

/// Runs the checks of a proof by other means that the options request.
constexpr verdict confirmed(const program& source, const device_program& local,
                            const prove_options& options, verdict v) {
  if (v.proved && !std::is_constant_evaluated()) confirm(source, local, options.most_confirmed, v);
  if (!v.proved) v.method = proof_method::none;
  if (v.method == proof_method::claims)
    v.confirmed_by_shrinking =
        is_proved_by_shrinking(source, local, options.most_shrunk_to_confirm);
  return v;
}

constexpr verdict prove(const program& source, const device_program& local,
                        const prove_options& options) {
  verdict v;
  v.error = given(source, local).check();
  if (v.error) return v;
  if (const std::int64_t ops = saturating_add(source.op_count(), local.local.op_count());
      options.most_steps >= 0 && options.most_steps < ops) {
    v.error.record("Q008", "prove: the source and the local program have ", ops,
                   " ops together, more than the limit of ", options.most_steps,
                   " (prove_options.most_steps)");
    return v;
  }
  claim_kernel claims(source, local);
  claims.run();
  v.proved = claims.open().empty() || proved_without_dead_code(source, local);
  if (v.proved)
    v.method = proof_method::claims;
  else
    try_elements(source, local, claims, options, v);
  if (v.by_elements) v.method = proof_method::elements;
  return confirmed(source, local, options, v);
}

}  // namespace prove_detail

namespace separate {
verdict prove(const program& source, const device_program& local, const prove_options& options);
}  // namespace separate

/// Proves that a device-local program computes its source for all inputs, up to the order of sums.
///
/// Small programs that claims about whole tensors do not decide are executed on formulas, element
/// by element (by_elements.hpp); the error then also names the first element that differs.
///
/// Cost      linear in ops, independent of the number of devices; for small programs that of
///           most_confirmed; without a proof by claims that of most_elements
/// Errors    Q001 numbers of inputs and outputs, Q002 a layout does not fit, Q003 the first local
///           op whose result is not a value of the source, Q004 an output that differs, Q006 an
///           axis that the mesh does not have, Q007 the local program does not verify, Q008 more
///           steps than allowed, Q009 the first such local op has no tile map, Q016 claims and
///           elements contradict each other
constexpr verdict prove(const program& source, const device_program& local,
                        const prove_options& options = {}) {
  PARTITA_RETURN(prove_detail::prove(source, local, options),
                 separate::prove(source, local, options));
}

/// The result of `partition`: a program, and the program of a device.
template <class T>
concept WithDeviceProgram = requires(const T& p) {
  p.source;
  p.device;
};

/// Proves a result of `partition`.
template <WithDeviceProgram Partitioned>
constexpr verdict prove(const Partitioned& p, const prove_options& options = {}) {
  if constexpr (requires { p.given(); })
    return prove(p.given(), p.device, options);
  else
    return prove(p.source, p.device, options);
}

/// For partition_options::prove: runs `prove`, which adds its error to `f`.
constexpr bool proof(const program& source, const device_program& local, failure& f) {
  f.record(prove(source, local).error);
  return !f;
}
/// True in builds without NDEBUG.
#ifdef NDEBUG
inline constexpr bool proves_in_debug = false;
#else
inline constexpr bool proves_in_debug = true;
#endif
/// The same in builds without NDEBUG, and only at run time. Its error is a mistake that numbers
/// show: a program that is neither proved nor refuted passes.
constexpr bool proof_in_debug(const program& source, const device_program& local, failure& f) {
  if (!proves_in_debug || std::is_constant_evaluated()) return false;
  const verdict v = prove(source, local);
  if (!v.undecided) f.record(v.error);
  return v.proved;
}

/// Returns a result of `partition` after proving it. Otherwise it has an error (Q...), which is
/// thrown at run time and kept for `check` in constant evaluation. If the thunk of a `check` calls
/// this, the program is computed once for its figures and its proof.
template <class Partitioned>
constexpr Partitioned proved(Partitioned p) {
  if (p.error) return p;
  p.error.record(prove(p).error);
  p.error.raise();
  p.proved = !p.error;
  return p;
}

}  // namespace partita
