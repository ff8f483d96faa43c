/// Ops that return their operand unchanged: parameter, tag, stop_gradient, place.
#pragma once

#include <partita/op/elementwise.hpp>

namespace partita::op {

/// Base of the ops of this file: `([i, j]) -> ([i, j])`, no work.
struct identity_op {
  static constexpr int operand_count = 1;
  static constexpr bool identity = true;
  static constexpr void infer(infer_context& c) { c.result = c.operands[0]; }
  static constexpr void tile_map(tile_map_context& c) { elementwise_op::tile_map(c); }
};

/// An input of the program. Its loops record the tiling of the argument.
struct parameter : identity_op {
  static constexpr std::string_view name = "parameter";
  static constexpr int operand_count = 0;
  static constexpr op_role role = op_role::parameter;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
};

inline constexpr std::string_view cotangent_prefix = "grad.";

/// Returns the name of a tag's cotangent: "grad.h" for "h".
constexpr text cotangent_name(std::string_view tag) { return concat(cotangent_prefix, tag); }
/// Returns the tag that a cotangent's name belongs to: "h" for "grad.h" and "grad.grad.h". Returns
/// an empty text for other names.
constexpr std::string_view primal_name(std::string_view cotangent) {
  const std::size_t size = cotangent_prefix.size();
  std::string_view name = cotangent;
  while (name.size() > size && name.substr(0, size) == cotangent_prefix) name = name.substr(size);
  return name.size() == cotangent.size() ? std::string_view{} : name;
}

/// Prefix of tags whose values a run returns (see dsl/tag.hpp).
inline constexpr std::string_view probe_prefix = "probe.";

/// Names a value for tactics. The cotangent of a tag is a tag, too (see cotangent_name).
///
/// Source    PartIR, section 8 (model-internal annotations)
struct tag : identity_op {
  static constexpr std::string_view name = "tag";
  static constexpr op_role role = op_role::tag;
  static constexpr void derive(derive_context& c);
};

/// Holds the loops of a value tiling (`tile<%x, d, "axis">`) or of `atomic<%x, "axis">` on a value
/// that is neither a parameter nor a tag. Introduced by core/, never by a model.
struct tiling : identity_op {
  static constexpr std::string_view name = "tiling";
  static constexpr op_role role = op_role::tiling;
};

/// Returns its operand and stops reverse mode.
struct stop_gradient : identity_op {
  static constexpr std::string_view name = "stop_gradient";
  static constexpr bool stops_gradient = true;
  static constexpr void derive(derive_context&) {}
};

/// Copies a value to another memory, for offloading to the host and back. The elements do not
/// change. A value in host memory uses no device memory.
///
/// Attributes: the memory, see memory_space
/// Errors    S149 the attribute is not a memory
/// Source    XLA, the custom call annotate_device_placement, as JAX writes device_put
struct place : identity_op {
  static constexpr std::string_view name = "place";
  static constexpr bool chooses_memory = true;
  static constexpr fusion_kind fusion = fusion_kind::none;
  static constexpr std::string_view memories[] = {"device", "pinned_host", "unpinned_host"};
  static constexpr void infer(infer_context& c) {
    if (c.attrs.size() != 1 || c.attrs[0] < 0 || c.attrs[0] > 2)
      return c.fail("S149", "place: ", c.attrs.size(),
                    " attributes; one of device, pinned_host, unpinned_host is needed");
    c.result = c.operands[0];
  }
  /// The cotangent stays on the device.
  static constexpr void derive(derive_context& c) { c.operands[0] = c.cotangent; }
  template <class Fields>
  static constexpr void attributes(Fields& f) {
    f.word("", memories);
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::parameter)
PARTITA_OP(op::tag)
PARTITA_OP(op::tiling)
PARTITA_OP(op::stop_gradient)
PARTITA_OP(op::place)
}  // namespace partita

namespace partita::ops {

constexpr value_id parameter(builder& b, std::string_view name, const tensor_type& type) {
  const value_id v = b.emit(def<op::parameter>, {}, {}, type);
  if (v >= 0) {
    b.name_last(name);
    b.p.inputs.push_back(v);
  }
  return v;
}
constexpr value_id tag(builder& b, std::string_view name, value_id x) {
  const value_id v = b.emit(def<op::tag>, {x});
  if (v >= 0) b.name_last(name);
  return v;
}
constexpr value_id stop_gradient(builder& b, value_id x) {
  return b.emit(def<op::stop_gradient>, {x});
}
constexpr value_id place(builder& b, value_id x, memory_space where) {
  return b.emit(def<op::place>, {x}, {static_cast<std::int64_t>(where)});
}

}  // namespace partita::ops

namespace partita::op {

constexpr void tag::derive(derive_context& c) {
  const text of(c.b.p.view(c.b.p.op(c.op).name));
  c.operands[0] = ops::tag(c.b, cotangent_name(of.view()).view(), c.cotangent);
}

}  // namespace partita::op
