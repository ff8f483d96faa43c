/// Proof by elements: both programs, executed on formulas.
#pragma once

#include <partita/prove/elements/interpreter.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::prove_detail {

/// What came of it.
struct element_verdict {
  enum kind_type : std::uint8_t { proved, differs, not_known, too_large };
  kind_type kind = not_known;
  int output = -1;         ///< of those that differ the first
  std::int64_t steps = 0;  ///< that were taken
};

/// Runs the source, and the local program on all devices, on formulas, one for each element: inputs
/// are variables, cut as their layouts say, and outputs have to be the same formulas.
///
/// Cost      linear in the elements of all values on all devices, and in what sums add up
class element_checker {
 public:
  constexpr element_checker(const program& source, const device_program& d, std::int64_t most_steps)
      : source_(source), d_(d), on_(d.mesh), most_steps_(most_steps) {}

  constexpr element_verdict check() {
    vec<tensors> whole;
    for (int i = 0; i < source_.input_count(); ++i) whole.push_back(variables(i));
    const mesh alone;
    const devices one(alone);
    element_interpreter source(a_, one, most_steps_, true), local(a_, on_, most_steps_, false);
    if (a_.steps > most_steps_) return said(element_verdict::too_large);
    const vec<tensors> wanted = source.run(source_, whole);
    if (source.stopped()) return stop(source);
    vec<tensors> pieces;
    for (int i = 0; i < source_.input_count(); ++i) pieces.push_back(cut(i, whole[i]));
    const vec<tensors> made = local.run(d_.local, pieces);
    if (local.stopped()) return stop(local);
    for (int i = 0; i < source_.output_count(); ++i)
      if (!is_output(i, wanted[i], made[i])) return said(element_verdict::differs, i);
    return said(element_verdict::proved);
  }

 private:
  const program& source_;
  const device_program& d_;
  devices on_;
  std::int64_t most_steps_;
  algebra a_;

  constexpr element_verdict stop(const element_interpreter& by) const {
    return said(by.too_large() ? element_verdict::too_large : element_verdict::not_known);
  }
  constexpr element_verdict said(element_verdict::kind_type kind, int output = -1) const {
    return {kind, output, a_.steps};
  }
  constexpr tensors variables(int input) {
    const tensor_type& t = source_.input_type(input);
    a_.steps = saturating_add(a_.steps, t.shape.elements());
    if (a_.steps > most_steps_) return {};
    tensors made = no_elements_yet(t, 1);
    for (std::int64_t n = 0; n < made.size(); ++n)
      made.on(0)[n] = a_.unknown(t.element, drawing(3).add(input).add(n).drawn());
    return made;
  }
  /// Pieces, on each device; behind the end of the whole stands something else.
  constexpr tensors cut(int input, const tensors& whole) {
    const tensor_type& t = d_.local.input_type(input);
    a_.steps = saturating_add(a_.steps, saturating_multiply(t.shape.elements(), on_.count()));
    if (a_.steps > most_steps_) return {};
    tensors made = no_elements_yet(t, on_.count());
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for_each_place(t.shape, [&](const place& i, std::int64_t n) {
        const place at = on_.whole(d_.inputs[input], t.shape, i, d);
        made.on(d)[n] = lies_in(at, whole.type.shape)
                            ? whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))]
                            : a_.unknown(t.element, drawing(4).add(input).add(d).add(n).drawn());
      });
    return made;
  }
  static constexpr bool lies_in(const place& i, const shape& s) {
    for (int d = 0; d < s.rank; ++d)
      if (i[d] >= s[d]) return false;
    return true;
  }
  constexpr bool is_output(int output, const tensors& whole, const tensors& pieces) const {
    bool same = true;
    const shape& local = pieces.type.shape;
    for (std::int64_t d = 0; d < on_.count() && same; ++d)
      for_each_place(local, [&](const place& i, std::int64_t n) {
        const place at = on_.whole(d_.outputs[output], local, i, d);
        same = same && (!lies_in(at, whole.type.shape) ||
                        pieces.on(d)[n] ==
                            whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))]);
      });
    return same;
  }
};

/// What elements say of a local program that fits its source. `most_steps`: elements that are
/// made, and products, of both programs on all devices.
inline element_verdict prove_by_elements(const program& source, const device_program& d,
                                         std::int64_t most_steps) {
  return element_checker(source, d, most_steps).check();
}

}  // namespace partita::prove_detail
