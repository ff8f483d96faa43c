/// Plans that move values from one layout to another.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/spmd/collectives.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/spmd/reshard.hpp>

namespace partita {

/// The steps that move one value.
struct value_move {
  text name;
  tensor_type type;         ///< of all shards together in the old layout, with padding
  tensor_type to_type;      ///< of all shards together in the new layout, with padding
  tensor_type true_type;    ///< of the array
  layout from, to;          ///< over the mesh of the plan
  vec<reshard_step> steps;  ///< empty if the value does not move
  /// If the padding changes: the number of steps before that, and the layout at that point. It
  /// shards no dimension whose padding changes.
  std::size_t resized_after = 0;
  layout resized_as = {};
  std::int64_t sent = 0;  ///< bytes that a device sends
  std::int64_t most = 0;  ///< bytes of the largest block that a device holds in between
};

/// A plan that moves values one after the other.
struct reshard_plan_result {
  partita::mesh mesh;  ///< its axes are common parts of the axes of both sides
  vec<value_move> values;
  partita::collectives collectives;
  std::int64_t bytes_sent = 0;  ///< by a device, in total
  /// Peak bytes on a device: for each value the larger of its two ends, plus the largest additional
  /// memory of any move.
  std::int64_t peak_bytes = 0;
  failure error;

  /// Returns a program for each device that takes the values in their old layouts and returns them
  /// in their new ones.
  constexpr device_program program() const {
    device_program d;
    d.mesh = mesh;
    for (const value_move& v : values) {
      const tensor_type piece{v.type.element, v.from.local(v.type.shape, mesh)};
      d.local.inputs.push_back(d.local.append(def<op::parameter>, {}, {}, piece));
      d.local.ops.back().name = d.local.intern(v.name.view());
      d.inputs.push_back(v.from);
      d.input_types.push_back(v.true_type);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const value_move& v = values[i];
      value_id x = d.local.inputs[i];
      for (std::size_t s = 0; s <= v.steps.size(); ++s) {
        const shape& all = s < v.resized_after ? v.type.shape : v.to_type.shape;
        if (s == v.resized_after && v.type != v.to_type)
          x = resized(d.local, x, {v.type.element, v.resized_as.local(all, mesh)});
        if (s < v.steps.size())
          x = append(d.local, v.steps[s].what, x,
                     {v.type.element, v.steps[s].after.local(all, mesh)});
      }
      d.local.outputs.push_back({x, d.local.intern(v.name.view())});
      d.outputs.push_back(v.to);
      d.output_types.push_back(v.true_type);
    }
    return d;
  }

 private:
  /// Appends ops that change the padding at the ends of a value's dimensions.
  static constexpr value_id resized(partita::program& p, value_id x, const tensor_type& to) {
    const auto rank = static_cast<std::size_t>(to.shape.rank);
    std::int64_t amounts[3 * max_rank] = {};
    for (std::size_t d = 0; d < rank; ++d)
      amounts[rank + d] = to.shape[static_cast<int>(d)] - p.type(x).shape[static_cast<int>(d)];
    const std::int64_t zero[] = {0};
    const value_id operands[] = {x, p.append(def<op::constant>, {}, zero, {to.element, {}})};
    return p.append(def<op::pad>, operands, {amounts, 3 * rank}, to);
  }
};

}  // namespace partita
