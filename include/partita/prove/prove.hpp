/// `prove`: checks that a device-local program computes its source.
#pragma once

#include <cstdint>
#include <type_traits>

#include <partita/prove/by_elements.hpp>
#include <partita/prove/given.hpp>
#include <partita/prove/interface.hpp>
#include <partita/prove/kernel/kernel.hpp>
#include <partita/prove/live_part.hpp>
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
  /// The maximum number of steps (Q008). A step is a visited op, a choice among the claims of its
  /// operands, or a comparison with an op of the source. Deterministic on all platforms.
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

class checker {
 public:
  constexpr checker(const program& source, const device_program& d, std::int64_t most_steps)
      : source_(source),
        d_(d),
        work_(d.mesh, most_steps),
        front_(work_, source),
        of_local_(d.local) {}

  constexpr verdict run() {
    verdict v;
    work_.reserve(source_, d_.local);
    front_.enter();
    for (int i = 0; i < source_.input_count(); ++i)
      front_.give(i, d_.inputs[i], d_.local.input_type(i).shape, of_local_, d_.local.inputs[i]);
    front_.define();
    lift_all(work_, d_.local, of_local_);
    if (work_.stopped()) v.error.record("Q008", describe_stop(work_));
    for (int i = 0; i < source_.output_count() && !v.error; ++i)
      if (!is_output(i)) open_.push_back(i);
    if (!open_.empty()) describe(open_[0], v.error);
    v.proved = !v.error;
    return v;
  }
  /// The outputs that are not proved.
  constexpr const vec<int>& open() const { return open_; }
  /// The claims about local values, valid as long as this object.
  constexpr vec<seen_value> known() const {
    return seen_values(work_, source_, front_.known()).find(d_.local, of_local_);
  }

 private:
  const program& source_;
  const device_program& d_;
  workspace work_;
  source_interface front_;
  claim_list of_local_;
  vec<int> open_;

  constexpr bool is_output(int i) {
    const value_id local = d_.local.outputs[i].value;
    return front_.is_output(i, d_.outputs[i], d_.local.type(local).shape, of_local_, local);
  }
  /// Reports why an output is not proved.
  constexpr void describe(int i, failure& f) {
    const value_id local = d_.local.outputs[i].value;
    blame_part(work_, d_.local, local, of_local_);
    if (work_.lost >= 0)
      return f.record(code_of_lost(work_), "prove: ", describe_lost(work_, d_.mesh));
    vec<char> needed(d_.local.ops.size(), 0);
    needed[d_.local.producer(local)] = 1;
    if (const op_id o = first_strange(work_, d_.local, of_local_, needed); o >= 0) {
      work_.note_lost(d_.local, o, of_local_, "the source computes nothing like it");
      if (work_.lost >= 0)
        return f.record("Q003", "prove: ", describe_lost(work_, d_.mesh), "; output \"",
                        source_.output_name(i), "\" is computed from it");
    }
    const text is = front_.describe_output(i, of_local_, local);
    const text missing =
        front_.missing_at_output(i, d_.outputs[i], d_.local.type(local).shape, of_local_, local);
    f.record("Q004", "prove: ", is, missing);
  }
};

/// True if all values of both programs together, on one device, have at most this number of
/// elements.
constexpr bool has_few_elements(const program& source, const program& local, std::int64_t most) {
  std::int64_t all = 0;
  for (const program* p : {&source, &local})
    for (std::size_t v = 0; v < p->types.size() && all <= most; ++v)
      all = saturating_add(all, p->types.data()[v].shape.elements());
  return all <= most;
}
/// Compares both programs for random numbers. (Not in constant evaluation.)
constexpr element_verdict at_numbers(const program& source, const device_program& d,
                                     std::int64_t most) {
  if (std::is_constant_evaluated() || most <= 0 || !has_few_elements(source, d.local, most))
    return {};
  return compare_at_numbers(source, d, most);
}
/// Tries an unproved program element by element if it is small enough: once with claims about
/// intermediate values, and once without them (elements may know more about padding).
constexpr void try_elements(const program& source, const device_program& d, const checker& claims,
                            const prove_options& options, verdict& v) {
  std::int64_t most = options.most_elements;
  if (std::is_constant_evaluated()) most = options.most_elements_in_constants;
  const std::string_view said = v.error.message.view();
  if (most <= 0 ||
      (!said.starts_with("Q003") && !said.starts_with("Q004") && !said.starts_with("Q009")))
    return;
  const vec<int>& open = claims.open();
  element_verdict e = prove_by_elements(source, d, open, most, claims.known());
  if (e.kind != element_verdict::proved) e = prove_by_elements(source, d, open, most);
  v.by_elements = v.proved = e.kind == element_verdict::proved;
  v.undecided = e.kind == element_verdict::too_large || e.kind == element_verdict::not_known;
  if (v.proved) {
    const element_verdict at = at_numbers(source, d, options.most_confirmed);
    v.by_elements = v.proved = at.kind != element_verdict::differs;
    if (v.proved)
      v.error = {};
    else
      v.error.set(concat(v.error.message, "; formulas are equal over real numbers, but ",
                         element_text(source, d.mesh, at),
                         " differs for random inputs (as an infinity times 0 does, unless a rule "
                         "of formulas is unsound)"));
  } else if (e.kind == element_verdict::too_large) {
    v.error.set(concat(v.error.message, "; element by element it takes more than ", most,
                       std::is_constant_evaluated()
                           ? " steps (prove_options.most_elements_in_constants)"
                           : " steps (prove_options.most_elements)"));
  } else if (e.kind == element_verdict::not_known && e.unknown_op.empty()) {
    v.error.set(
        concat(v.error.message, "; element by element, there are too many choices to compare"));
  } else if (e.kind == element_verdict::not_known) {
    v.error.set(concat(v.error.message, "; element by element, the results of \"", e.unknown_op,
                       "\" are unknown"));
  } else if (e.kind == element_verdict::differs) {
    if (!std::is_constant_evaluated()) {  // once more, with the formulas in words, which need
                                          // memory for each step
      constexpr std::int64_t most_with_words = 1'000'000;
      formula_words words;
      const element_verdict said_so =
          element_checker(source, d, open, most < most_with_words ? most : most_with_words, {},
                          &words)
              .check();
      if (said_so.kind == element_verdict::differs) e = said_so;
    }
    v.undecided = !std::is_constant_evaluated() &&
                  compare_at_numbers(source, d, most).kind != element_verdict::differs;
    v.error.set(concat(v.error.message, "; formulas first differ at ",
                       element_text(source, d.mesh, e), e.formulas.empty() ? "" : ": it is ",
                       e.formulas));
  }
}

/// Confirms a proof by elements alone: by formulas, and for formulas that look different (equal
/// ones may), by random numbers.
constexpr void confirm(const program& source, const device_program& d, std::int64_t most,
                       verdict& v) {
  if (most <= 0 || !has_few_elements(source, d.local, most)) return;
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

constexpr verdict prove(const program& source, const device_program& local,
                        const prove_options& options);

/// True if shrinking proves a program, in at most this number of steps.
constexpr bool is_proved_by_shrinking(const program& source, const device_program& d,
                                      std::int64_t most) {
  return most > 0 && !std::is_constant_evaluated() &&
         prove_by_shrinking(source, d, most).kind == shrink_verdict::proved;
}

/// Proves both programs without dead code, after checking that each computes the same without it.
/// Loops of one program may carry dead values that those of the other do not carry.
constexpr bool proved_without_dead_code(const program& source, const device_program& local,
                                        const prove_options& options, verdict& v) {
  // (Any other error means that a program is invalid.)
  const std::string_view code = std::string_view(v.error.message).substr(0, 4);
  if (code != "Q003" && code != "Q004") return false;
  const program live = live_part(source), live_local = live_part(local.local);
  if (live.ops.empty() && live_local.ops.empty()) return false;
  device_program d = local;
  if (!live_local.ops.empty()) d.local = live_local;
  const verdict found = prove(live.ops.empty() ? source : live, d, options);
  if (found.proved) v = found;
  return found.proved;
}

/// True if the kernel proves all outputs. It visits each op once.
constexpr bool proved_by_kernel(const program& source, const device_program& local,
                                const prove_options& options) {
  const std::int64_t steps = saturating_add(source.op_count(), local.local.op_count());
  if (options.most_steps >= 0 && options.most_steps < steps) return false;
  claim_kernel claims(source, local);
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
  if (proved_by_kernel(source, local, options)) {
    v.proved = true;
    v.method = proof_method::claims;
    return confirmed(source, local, options, v);
  }
  checker claims(source, local, options.most_steps);
  v = claims.run();
  if (v.proved) v.method = proof_method::claims;
  if (!v.proved && proved_without_dead_code(source, local, options, v)) return v;
  if (!v.proved) try_elements(source, local, claims, options, v);
  if (v.by_elements) v.method = proof_method::elements;
  if (v.undecided && is_proved_by_shrinking(source, local, options.most_shrunk)) {
    v = {};
    v.proved = true;
    v.method = proof_method::shrinking;
    return v;
  }
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
