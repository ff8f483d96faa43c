/// The collectives of the device-local language. They name mesh axes, never device numbers.
///
/// Source    PartIR, section 6 and listing 9
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/op/optimization_barrier.hpp>
#include <partita/op/registry.hpp>
#include <partita/spmd/collective_fields.hpp>

namespace partita {

namespace op {

/// Base of the collectives. The lowering knows their result types, so that `infer` returns the
/// declared type. `Op::fields` describes the attributes.
template <class Op, collective::kind_type Kind>
struct collective_op {
  static constexpr std::string_view name = name_of(Kind);
  static constexpr int operand_count = 1;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
  /// Checks that the first attribute is a combiner and that all operands have its element type.
  ///
  /// Errors    S104 element type not supported, S152 not a combiner
  static constexpr bool check_reduction(infer_context& c) {
    return check_combiner(c, name, combiner_names, c.attrs.empty() ? 0 : c.attrs[0]);
  }

  static constexpr collective describe(span<const std::int64_t> attrs) {
    collective what;
    what.kind = Kind;
    spmd_detail::collective_decoder fields(attrs, what);
    Op::fields(fields);
    return what;
  }
  static constexpr spmd_detail::collective_attributes attributes_of(const collective& what) {
    spmd_detail::collective_attributes attrs;
    spmd_detail::collective_encoder fields(what, attrs);
    Op::fields(fields);
    return attrs;
  }
  static constexpr void print(print_context& c) {
    const collective what = describe(c.p.attrs(c.op));
    spmd_detail::collective_printer fields(what, c);
    Op::fields(fields);
  }
  static constexpr void parse(parse_context& c) {
    collective what;
    what.kind = Kind;
    spmd_detail::collective_reader fields(c, what);
    Op::fields(fields);
    fields.finish(name);
    const auto attrs = attributes_of(what);
    c.attrs.insert_back(attrs.list, attrs.list + attrs.count);
  }
};

/// Returns on every device the reduction over all devices that differ only along the axes. Several
/// operands are reduced separately, in one message.
///
/// Shapes    (s...), (t...), ... -> (s...), (t...), ...
/// Errors    S104 element type not supported, S152 not a combiner
struct all_reduce : collective_op<all_reduce, collective::all_reduce> {
  static constexpr int operand_count = -1;
  static constexpr void infer(infer_context& c) {
    if (!check_reduction(c)) return;
    c.result = c.declared;
    for (std::size_t i = 1; i < c.operands.size(); ++i) c.more.push_back(c.operands[i]);
  }
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.reduction();
    f.axes();
  }
};

/// Returns on every device its own shard. No communication.
///
/// Shapes    (s_d) -> (s_d / product of the axes of d)
struct all_slice : collective_op<all_slice, collective::all_slice> {
  static constexpr bool reads_part = true;
  static constexpr fusion_kind fusion = fusion_kind::loop;
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.layout();
  }
};

/// The inverse of all_slice: returns the global value on every device.
///
/// Shapes    (s_d) -> (s_d * product of the axes of d)
struct all_gather : collective_op<all_gather, collective::all_gather> {
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.layout();
  }
};

/// all_slice(all_reduce(x)).
///
/// Shapes    (s_d) -> (s_d / product of the axes of d)
/// Errors    S104 element type not supported, S152 not a combiner
struct reduce_scatter : collective_op<reduce_scatter, collective::reduce_scatter> {
  static constexpr void infer(infer_context& c) {
    if (check_reduction(c)) c.result = c.declared;
  }
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.reduction();
    f.layout();
  }
};

/// Gathers one dimension and slices another one along the same axes.
///
/// Shapes    (s_from, s_to) -> (s_from * n, s_to / n), n the product of the axes
struct all_to_all : collective_op<all_to_all, collective::all_to_all> {
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.dimensions();
    f.axes();
  }
};

/// Returns on every device the value of the device of its group that device_map names. A device
/// that receives nothing gets the combiner's identity, which is zero for a sum.
///
/// Shapes    (s...) -> (s...)
/// Errors    S104 element type not supported (sums support every type), S152 not a combiner
struct permute : collective_op<permute, collective::permute> {
  static constexpr void infer(infer_context& c) {
    const std::int64_t how = c.attrs.empty() ? -1 : c.attrs[0];
    const bool plain = how == static_cast<int>(combiner::add) ||
                       how == static_cast<int>(combiner::stack);  // a ring
    if (plain || check_reduction(c)) c.result = c.declared;
  }
  template <class Fields>
  static constexpr void fields(Fields& f) {
    f.reduction();
    f.map();
    f.axes();
  }
};

/// Waits for collectives that started earlier. A collective all of whose results go to one `done`
/// runs concurrently with the ops between the two. The first half of the operands are the results
/// of the collectives; the second half are the values sent, which stay in memory until then.
///
/// Shapes    (s...), (t...), ..., operands -> (s...), (t...), ...
struct done : passing_op {
  static constexpr std::string_view name = "done";
  static constexpr void infer(infer_context& c) {
    const std::size_t half = c.operands.size() / 2;
    if (half == 0 || 2 * half != c.operands.size())
      return c.fail("S180", name, ": ", c.operands.size(),
                    " operands; the received and the sent values are needed");
    c.result = c.operands[0];
    for (std::size_t i = 1; i < half; ++i) c.more.push_back(c.operands[i]);
  }
};

/// The offset of this device's shard along a dimension that the axes slice: the number of the shard
/// times the distance between shards. No communication.
///
/// Attributes: distance of shards, axes major to minor.
///
/// Shapes    () -> ()
struct shard_start {
  static constexpr std::string_view name = "shard_start";
  static constexpr int operand_count = 0;
  static constexpr void infer(infer_context& c) { c.result = c.declared; }
  static constexpr std::int64_t distance(span<const std::int64_t> attrs) { return attrs[0]; }
  static constexpr axis_list axes(span<const std::int64_t> attrs) {
    axis_list list;
    for (auto axis : attrs.subspan(1)) list.push_back(static_cast<int>(axis));
    return list;
  }
  static constexpr void print(print_context& c) {
    const axis_list list = axes(c.p.attrs(c.op));
    c.out << " {" << distance(c.p.attrs(c.op));
    spmd_detail::print_axes(c.out, list.count, c.mesh, [&](int i) { return int{list.axes[i]}; });
    c.out << '}';
  }
  static constexpr void parse(parse_context& c) {
    spmd_detail::axes_reader in(c);
    std::int64_t n = -1;
    layout list;
    in.good = in.in.integer(n) && in.in.accept(" ") && n >= 0;
    in.list(list, no_dim);
    in.finish(c, name);
    c.attrs.push_back(n);
    for (const auto& e : list) c.attrs.push_back(e.axis);
  }
};

}  // namespace op

namespace spmd_detail {
template <class Op>
constexpr value_id append_as(program& p, const collective& what, value_id operand,
                             const tensor_type& result) {
  const value_id operands[] = {operand};
  return p.append(def<Op>, operands, Op::attributes_of(what), result);
}
}  // namespace spmd_detail

/// Appends a collective with the given result type to a device-local program.
constexpr value_id append(program& p, const collective& what, value_id operand,
                          const tensor_type& result) {
  switch (what.kind) {
    case collective::all_gather:
      return spmd_detail::append_as<op::all_gather>(p, what, operand, result);
    case collective::all_reduce:
      return spmd_detail::append_as<op::all_reduce>(p, what, operand, result);
    case collective::reduce_scatter:
      return spmd_detail::append_as<op::reduce_scatter>(p, what, operand, result);
    case collective::all_to_all:
      return spmd_detail::append_as<op::all_to_all>(p, what, operand, result);
    case collective::permute:
      return spmd_detail::append_as<op::permute>(p, what, operand, result);
    case collective::all_slice:
      break;
  }
  return spmd_detail::append_as<op::all_slice>(p, what, operand, result);
}

/// Appends a shard_start, which is a scalar.
constexpr value_id append_shard_start(program& p, std::int64_t distance, const axis_list& axes,
                                      dtype element) {
  std::int64_t attrs[1 + max_axes] = {distance};
  for (int i = 0; i < axes.count; ++i) attrs[1 + i] = axes.axes[i];
  return p.append(def<op::shard_start>, {}, {attrs, static_cast<std::size_t>(1 + axes.count)},
                  tensor_type{element, {}});
}

}  // namespace partita
