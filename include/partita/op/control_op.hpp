/// The base of ops with nested programs: while, scan, case, call.
///
/// Nested programs are closed: a value that they use from the enclosing program is an operand.
/// Instead of tile-map entries, these ops have wires (see ir/wires.hpp). A wire connects an
/// operand, the inputs and outputs of nested programs that carry it, and the result; all of them
/// have the same sharding. Propagation moves shardings along wires into nested programs and out
/// again, to a fixed point.
#pragma once

#include <partita/ir/wires.hpp>
#include <partita/op/vocabulary.hpp>

namespace partita::op {

/// Checks shared by the shape rules of control ops, and lists shared by their derivatives.
struct control_op {
  static constexpr op_role role = op_role::control;
  static constexpr bool in_place = true;

  /// Checks the inputs of a nested program.
  ///
  /// Errors    S180 number of inputs or outputs, S181 type of an input or output
  template <class Want>
  static constexpr void check_inputs(infer_context& c, std::string_view name, const program& r,
                                     int count, const Want& want) {
    if (r.input_count() != count)
      return c.fail("S180", name, ": a nested program has ", r.input_count(),
                    " inputs; it is called with ", count);
    for (int i = 0; i < count; ++i)
      if (r.input_type(i) != want(i))
        return c.fail("S181", name, ": input ", i, " of a nested program has type ",
                      r.input_type(i), "; it is called with ", want(i));
  }
  /// Checks the outputs of a nested program. Only the first `typed` outputs have required types.
  ///
  /// Errors    S180 number of outputs, S182 type of an output
  template <class Want>
  static constexpr void check_outputs(infer_context& c, std::string_view name,
                                      std::string_view what, const program& r, int count, int typed,
                                      const Want& want) {
    if (r.output_count() != count)
      return c.fail("S180", name, ": ", what, " returns ", r.output_count(),
                    " values; it must return ", count);
    for (int i = 0; i < typed; ++i)
      if (r.output_type(i) != want(i))
        return c.fail("S182", name, ": ", what, " returns ", r.output_type(i), " as value ", i,
                      "; ", want(i), " is needed");
  }
  static constexpr void set_results(infer_context& c, std::string_view name,
                                    const vec<tensor_type>& types) {
    if (c.error) return;
    if (types.empty()) return c.fail("S180", name, ": it has no results");
    c.result = types[0];
    for (std::size_t i = 1; i < types.size(); ++i) c.more.push_back(types[i]);
  }
  static constexpr bool regions(infer_context& c, std::string_view name, std::size_t least,
                                std::size_t most) {
    if (c.regions.size() >= least && c.regions.size() <= most) return true;
    c.fail("S180", name, ": ", c.regions.size(), " nested programs; ", least,
           most > least ? " or more" : "", least == 1 && most == 1 ? " is needed" : " are needed");
    return false;
  }

  /// The results that have cotangents, and those cotangents.
  struct known_cotangents {
    vec<int> results;
    vec<value_id> values;

    constexpr explicit known_cotangents(const derive_context& c) {
      for (std::size_t i = 0; i < c.cotangents.size(); ++i)
        if (c.cotangents[i] >= 0) {
          results.push_back(static_cast<int>(i));
          values.push_back(c.cotangents[i]);
        }
    }
  };
  /// Returns the operands from `first` on that need cotangents, numbered from there.
  static constexpr vec<int> wanted_operands(const derive_context& c, std::size_t first) {
    vec<int> list;
    for (std::size_t i = first; i < c.wanted.size(); ++i)
      if (c.wanted[i] && is_floating(c.b.type(c.b.p.operand(c.op, static_cast<int>(i))).element))
        list.push_back(static_cast<int>(i - first));
    return list;
  }
  /// Returns the operands from `first` on, followed by `more`.
  static constexpr vec<value_id> operands_and(const derive_context& c, std::size_t first,
                                              const vec<value_id>& more) {
    const auto operands = c.b.p.operands(c.op).subspan(first);
    vec<value_id> list(operands.data(), operands.data() + operands.size());
    list.insert_back(more.begin(), more.end());
    return list;
  }
};

}  // namespace partita::op

namespace partita::ops {

/// Returns a region list that contains one program.
constexpr vec<program> region_list(program&& r) {
  vec<program> list;
  list.push_back(static_cast<program&&>(r));
  return list;
}

}  // namespace partita::ops
