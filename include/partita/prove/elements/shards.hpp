/// Variables of a program, their shards on devices, and how shards differ from a global value.
#pragma once

#include <partita/prove/elements/algebra.hpp>
#include <partita/prove/elements/exchange.hpp>

namespace partita::prove_detail {

/// Makes inputs of programs: variables, or numbers if the algebra runs at numbers.
class element_inputs {
 public:
  /// `seed`: draws numbers.
  constexpr explicit element_inputs(algebra& a, int seed = 0) : a_(a), seed_(seed) {}
  /// Uses zeros as padding.
  constexpr void pad_zeros() { pads_zeros_ = true; }

  constexpr tensors variables(const tensor_type& t, int input, std::string_view name) {
    if (!has_room(t.shape, 1)) return {};
    tensors made = no_elements_yet(t, 1);
    for_each_place(t.shape, [&](const place& i, std::int64_t n) {
      made.on(0)[n] = drawn(t.element, drawing(3).add(input).add(n));
      if (a_.log != nullptr)
        a_.log->add(made.on(0)[n].of, {origin::input, name, index(i, t.shape)});
    });
    return made;
  }
  /// The shards of a value on each device. Padding is arbitrary, drawn from `any`.
  constexpr tensors shards(const tensors& whole, const tensor_type& local, const layout& l,
                           const devices& on, const drawing& any) {
    if (!has_room(local.shape, on.count())) return {};
    tensors made = no_elements_yet(local, on.count());
    for (std::int64_t d = 0; d < on.count(); ++d)
      for_each_place(local.shape, [&](const place& i, std::int64_t n) {
        const place at = on.whole(l, local.shape, i, d);
        element& x = made.on(d)[n];
        if (lies_in(at, whole.type.shape)) {
          x = whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))];
          return;
        }
        const bool zero = pads_zeros_ || (a_.at_numbers && seed_ == 1);  // as when programs run
        x = zero ? small_number(local.element, 0)
                 : drawn(local.element, drawing(any).add(d).add(n));
        if (a_.log != nullptr) a_.log->add(x.of, {origin::input, "padding"});
      });
    return made;
  }
  /// Counts the steps of elements that are about to be stored. False after too many.
  constexpr bool has_room(const shape& s, std::int64_t devices) {
    a_.steps = saturating_add(a_.steps, saturating_multiply(s.elements(), devices));
    return !a_.is_over();
  }

 private:
  algebra& a_;
  int seed_;
  bool pads_zeros_ = false;

  constexpr element drawn(dtype t, drawing d) {
    if (!a_.at_numbers) return a_.unknown(t, d.drawn());
    const std::uint64_t any = d.add(seed_).drawn().a;
    const auto below = [&](std::uint64_t n) { return static_cast<std::int64_t>(any % n); };
    if (is_floating(t)) return real(0.25 * static_cast<double>(below(33) - 16));
    if (t == dtype::boolean) return integer(t, below(2));
    constexpr std::uint64_t most[] = {100, 4, 8, 12};
    return integer(t, below(most[seed_ % 4]) - (seed_ % 4 == 3 ? 4 : 0));
  }
  static constexpr vec<std::int64_t> index(const place& i, const shape& s) {
    vec<std::int64_t> list;
    for (int d = 0; d < s.rank; ++d) list.push_back(i[d]);
    return list;
  }
};

/// An element of an output that differs from the source's.
struct element_difference {
  bool found = false;
  place at;                 ///< its position in the global value
  std::int64_t device = 0;  ///< the device that has another element
  element made, wanted;
};
/// The first element of the shards that differs from a global value. At numbers, formulas that are
/// not numbers are not compared.
constexpr element_difference first_difference(const algebra& a, const devices& on, const layout& l,
                                              const tensors& whole, const tensors& shards) {
  element_difference first;
  const shape& local = shards.type.shape;
  for (std::int64_t d = 0; d < on.count() && !first.found; ++d)
    for_each_place(local, [&](const place& i, std::int64_t n) {
      const place at = on.whole(l, local, i, d);
      if (first.found || !lies_in(at, whole.type.shape)) return;
      const element &made = shards.on(d)[n],
                    &wanted = whole.all[static_cast<std::size_t>(number_of(at, whole.type.shape))];
      if (made == wanted || (a.at_numbers && !(made.known && wanted.known))) return;
      first = {true, at, d, made, wanted};
    });
  return first;
}

}  // namespace partita::prove_detail
