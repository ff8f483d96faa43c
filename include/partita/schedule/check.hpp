/// `check<thunk>`: what the compiler knows of a partitioned program.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/schedule/partition.hpp>
#include <partita/support/static_error.hpp>

namespace partita {

/// What one tactic did, in figures.
struct tactic_summary {
  std::string_view name;
  partita::collectives collectives;             ///< of the whole program after it
  partita::collectives collectives_as_written;  ///< the same, those inside of loops once
  int actions = 0;
  int conflicts = 0;
};

namespace detail {
/// Not a constant expression, so that the compiler names it when a `static_assert` asks for what a
/// program has not.
[[noreturn]] inline void the_program_has_no(std::string_view what, std::string_view name) {
  throw error(concat("P007 check: the program has no ", what, " named \"", name, '"'));
}
}  // namespace detail

/// How much a summary can hold; `check` makes it larger when a program needs it.
struct summary_limits {
  int values = 600, tactics = 16, chars = 24000;
};

/// The figures of a partitioned program as one constant: no heap, so that it outlives the
/// constant evaluation that made it.
template <summary_limits Limits>
struct summary {
  partita::collectives collectives;             ///< those inside of loops times their trip counts
  partita::collectives collectives_as_written;  ///< each once, as it stands in the text
  std::int64_t flops = 0, bytes = 0, argument_bytes = 0, result_bytes = 0, peak_bytes = 0,
               collective_bytes = 0;  ///< per device
  std::int64_t replicated_bytes = 0;  ///< per device, of all values replicated by default
  int replicated_count = 0;           ///< how many they are; see replicated_value
  int conflicts = 0;                  ///< left after the last tactic
  int ops = 0;                        ///< of the device-local program
  summary_limits needed{0, 0, 0};     ///< what a complete summary would take
  int input_count = 0, output_count = 0, tactic_count = 0;

  constexpr bool complete() const {
    return needed.values <= Limits.values && needed.tactics <= Limits.tactics &&
           needed.chars <= Limits.chars;
  }
  /// The mistake that stopped the program, or empty.
  constexpr std::string_view error() const { return view(error_); }
  /// What is not there is not a constant expression, and throws `error` (P007) at run time.
  constexpr sharded_value input(int i) const {
    if (i < 0 || i >= input_count) detail::the_program_has_no("input", concat(i));
    return unpack(values_[i]);
  }
  constexpr sharded_value output(int i) const {
    if (i < 0 || i >= output_count) detail::the_program_has_no("output", concat(i));
    return unpack(values_[input_count + i]);
  }
  constexpr sharded_value input(std::string_view name) const {
    for (int i = 0; i < input_count; ++i)
      if (view(values_[i].name) == name) return input(i);
    detail::the_program_has_no("input", name);
    return {};
  }
  constexpr sharded_value output(std::string_view name) const {
    for (int i = 0; i < output_count; ++i)
      if (view(values_[input_count + i].name) == name) return output(i);
    detail::the_program_has_no("output", name);
    return {};
  }
  constexpr tactic_summary tactic(int i) const {
    if (i < 0 || i >= tactic_count) detail::the_program_has_no("tactic", concat(i));
    const auto& t = tactics_[i];
    return {view(t.name), t.counts, t.counts_as_written, t.actions, t.conflicts};
  }
  constexpr tactic_summary tactic(std::string_view name) const {
    for (int i = 0; i < tactic_count; ++i)
      if (view(tactics_[i].name) == name) return tactic(i);
    detail::the_program_has_no("tactic", name);
    return {};
  }

  constexpr explicit summary(const partitioned& p) {
    error_ = keep(p.error.message.view());
    if (p.error) return;
    collectives = p.collectives;
    collectives_as_written = p.collectives_as_written;
    flops = p.cost.flops;
    bytes = p.cost.bytes;
    argument_bytes = p.cost.argument_bytes;
    result_bytes = p.cost.result_bytes;
    peak_bytes = p.cost.peak_bytes;
    collective_bytes = p.cost.collective_bytes;
    detail::for_each_replicated(p.core, [&](const replicated_value& v) {
      replicated_bytes += v.bytes;
      ++replicated_count;
    });
    conflicts = static_cast<int>(p.core.conflicts.size());
    ops = p.device.local.op_count();
    input_count = p.source.input_count();
    output_count = p.source.output_count();
    for (int i = 0; i < input_count; ++i) pack(p.input(i));
    for (int i = 0; i < output_count; ++i) pack(p.output(i));
    for (const auto& t : p.tactics) {
      const text_ref kept = keep(t.name.view());
      if (needed.tactics < Limits.tactics)
        tactics_[needed.tactics] = {kept, t.counts, t.counts_as_written,
                                    t.last_action - t.first_action,
                                    static_cast<int>(t.conflicts.size())};
      tactic_count = ++needed.tactics;
    }
  }

 private:
  struct packed_value {
    text_ref name;
    dtype element = dtype::f32;
    shape global, local;
    layout sharding;
  };
  struct packed_tactic {
    text_ref name;
    partita::collectives counts, counts_as_written;
    int actions = 0, conflicts = 0;
  };
  packed_value values_[Limits.values] = {};
  packed_tactic tactics_[Limits.tactics] = {};
  char chars_[Limits.chars] = {};
  text_ref error_;

  constexpr std::string_view view(text_ref r) const {
    return {chars_ + r.begin, static_cast<std::size_t>(r.size)};
  }
  constexpr text_ref keep(std::string_view s) {
    const text_ref r{needed.chars, static_cast<int>(s.size())};
    for (char c : s) {
      if (needed.chars < Limits.chars) chars_[needed.chars] = c;
      ++needed.chars;
    }
    return r;
  }
  constexpr void pack(const sharded_value& v) {
    const text_ref kept = keep(v.name);
    if (needed.values < Limits.values)
      values_[needed.values] = {kept, v.element, v.global_shape, v.local_shape, v.sharding};
    ++needed.values;
  }
  constexpr sharded_value unpack(const packed_value& v) const {
    return {view(v.name), v.element, v.global, v.local, v.sharding};
  }
};

namespace detail {

/// Stands for every figure of a program whose mistake has been reported; all comparisons hold, and
/// whatever is computed from it is harmless, too.
struct harmless {
  template <class T>
  friend constexpr bool operator==(harmless, const T&) {
    return true;
  }
  template <class T>
  friend constexpr bool operator<(harmless, const T&) {
    return true;
  }
  template <class T>
  friend constexpr bool operator>(harmless, const T&) {
    return true;
  }
  template <class T>
  friend constexpr bool operator<=(harmless, const T&) {
    return true;
  }
  template <class T>
  friend constexpr bool operator>=(harmless, const T&) {
    return true;
  }
  template <class T>
  friend constexpr harmless operator+(harmless, const T&) {
    return {};
  }
  template <class T>
  friend constexpr harmless operator-(harmless, const T&) {
    return {};
  }
  template <class T>
  friend constexpr harmless operator*(harmless, const T&) {
    return {};
  }
  template <class T>
  friend constexpr harmless operator/(harmless, const T&) {
    return {};
  }
  constexpr harmless operator[](int) const { return {}; }
};
struct harmless_collectives : harmless {
  harmless all_gather, all_reduce, reduce_scatter, all_to_all, permute;
  constexpr harmless total() const { return {}; }
};
struct harmless_layout : harmless {
  constexpr harmless dim_of(int) const { return {}; }
};
struct harmless_summary {
  harmless_collectives collectives, collectives_as_written;
  harmless flops, bytes, argument_bytes, result_bytes, peak_bytes, collective_bytes,
      replicated_bytes, replicated_count, conflicts, ops, input_count, output_count, tactic_count;
  struct value {
    harmless name, element, global_shape, local_shape;
    harmless_layout sharding;
  };
  struct tactic_value {
    harmless name;
    harmless_collectives collectives, collectives_as_written;
    harmless actions, conflicts;
  };
  constexpr harmless error() const { return {}; }
  template <class Key>
  constexpr value input(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr value output(const Key&) const {
    return {};
  }
  template <class Key>
  constexpr tactic_value tactic(const Key&) const {
    return {};
  }
};

template <auto Thunk, summary_limits Limits>
inline constexpr auto summary_of = summary<Limits>(Thunk());

/// One evaluation of the thunk; a second, with room, only for a program that needs more than the
/// first limits.
template <auto Thunk, summary_limits First>
constexpr const auto& full_summary() {
  if constexpr (summary_of<Thunk, First>.complete()) {
    return summary_of<Thunk, First>;
  } else {
    constexpr summary_limits needed = summary_of<Thunk, First>.needed;
    return summary_of<Thunk,
                      summary_limits{needed.values + 1, needed.tactics + 1, needed.chars + 1}>;
  }
}

template <auto Thunk, summary_limits First>
struct check_message {
  constexpr std::string_view operator()() const { return full_summary<Thunk, First>().error(); }
};

template <auto Thunk, summary_limits First>
constexpr auto checked() {
  static_assert(
      requires {
        { Thunk() } -> std::same_as<partitioned>;
      },
      "check<thunk>: the thunk takes nothing and returns a pt::partitioned, as "
      "pt::partition does");
  constexpr auto& made = full_summary<Thunk, First>();
  if constexpr (made.error().empty()) {
    return made;
  } else {
    // A model that did not compile has been reported where it is written.
    if constexpr (made.error().substr(0, 4) != "P000")
      report_static_error<check_message<Thunk, First>>();
    return harmless_summary{};
  }
}

}  // namespace detail

/// The figures of the partitioned program that `Thunk`, a captureless callable, returns, computed
/// by the compiler. A mistake in it is one diagnostic that shows its text.
///
/// Cost: one constant evaluation per thunk, linear in ops; two for a program that needs more room
/// than `First` gives (600 inputs and outputs, unless said otherwise)
template <auto Thunk, summary_limits First = summary_limits{}>
inline constexpr auto check = detail::checked<Thunk, First>();

/// The same figures at run time.
///
/// Errors    P010 the program has more inputs and outputs, tactics or characters than the limits
template <summary_limits Limits = summary_limits{}>
constexpr summary<Limits> summarize(const partitioned& p) {
  summary<Limits> s(p);
  if (!s.complete())
    throw error(concat("P010 summarize: ", s.needed.values, " inputs and outputs, ",
                       s.needed.tactics, " tactics and ", s.needed.chars,
                       " characters of names do not fit in summary_limits{", Limits.values, ", ",
                       Limits.tactics, ", ", Limits.chars, "}; give larger ones"));
  return s;
}

}  // namespace partita
