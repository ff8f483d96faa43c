/// Programs for one device, from StableHLO text.
#pragma once

#include <partita/spmd/device_program.hpp>
#include <partita/spmd/rewrite.hpp>
#include <partita/stablehlo/read.hpp>

namespace partita {

namespace stablehlo_detail {

/// Moves slices of arguments and gathers of results into the layouts of the interface, and removes
/// a gather whose result is sliced again.
class interface_layouts {
 public:
  constexpr interface_layouts(device_program& d) : d_(d), p_(d.local), w_(d.local) {}

  constexpr void run() {
    users_.resize(p_.types.size(), 0);
    for (value_id v : p_.operand_list) ++users_[v];
    for (const auto& out : p_.outputs) ++users_[out.value];
    for (op_id o = 0; o < p_.op_count(); ++o) slice_of_gather(o);
    slices_of_inputs();
    for (value_id& by : w_.replaced) by = standing_for(by);
    for (int i = 0; i < p_.output_count(); ++i) gather_of_output(i);
    for (op_id o = p_.op_count(); o-- > 0;)
      if (users_[p_.op(o).result] == 0 && moves(o)) replace(p_.op(o).result, -1);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (!(users_[p_.op(o).result] == 0 && moves(o))) w_.order.push_back(o);
    program made = spmd_detail::rewritten(p_, w_);
    made.labels = static_cast<label_list&&>(p_.labels);
    p_ = static_cast<program&&>(made);
  }

 private:
  device_program& d_;
  program& p_;
  spmd_detail::rewrite w_;
  vec<int> users_;

  constexpr bool is(op_id o, collective::kind_type kind) const {
    return p_.op(o).def->collective && p_.is(o, kind);
  }
  constexpr bool moves(op_id o) const {
    return is(o, collective::all_slice) || is(o, collective::all_gather);
  }
  constexpr value_id operand(op_id o) const { return standing_for(p_.operand(o, 0)); }
  /// (The replacement of a value may have been replaced itself.)
  constexpr value_id standing_for(value_id v) const {
    while (w_.replaced[v] != v) v = w_.replaced[v];
    return v;
  }
  /// Replaces the result of a collective by `by`; if `by` is negative, its operand loses a use.
  constexpr void replace(value_id v, value_id by) {
    if (by >= 0) {
      w_.replaced[v] = by;
      users_[by] += users_[v];
      users_[v] = 0;
    } else {
      --users_[operand(p_.producer(v))];
    }
  }
  constexpr void slice_of_gather(op_id o) {
    if (!is(o, collective::all_slice)) return;
    const op_id from = p_.producer(operand(o));
    if (is(from, collective::all_gather) && p_.collective_of(from).axes == p_.collective_of(o).axes)
      replace(p_.op(o).result, operand(from));
  }
  /// An input whose only use is one kind of slice becomes a shard.
  constexpr void slices_of_inputs() {
    constexpr op_id none = -1, whole = -2;
    vec<op_id> slice(p_.types.size(), whole);  // by value: the slice of an input
    for (value_id v : p_.inputs) slice[v] = none;
    for (const auto& out : p_.outputs) slice[standing_for(out.value)] = whole;
    vec<op_id> slices;  // (without slices of shards)
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (const value_id x : p_.operands(o)) {
        op_id& first = slice[standing_for(x)];
        if (is(o, collective::all_slice) && first != whole) slices.push_back(o);
        if (first == none && is(o, collective::all_slice))
          first = o;
        else if (first >= 0 && !(is(o, collective::all_slice) &&
                                 p_.collective_of(o).axes == p_.collective_of(first).axes))
          first = whole;
        else if (first == none)
          first = whole;
      }
    for (const op_id o : slices) {
      const value_id v = operand(o);
      if (slice[v] < 0) continue;
      p_.types[v] = p_.type(p_.op(o).result);
      replace(p_.op(o).result, v);
    }
    for (int i = 0; i < p_.input_count(); ++i)
      if (const op_id o = slice[p_.inputs[i]]; o >= 0) d_.inputs[i] = p_.collective_of(o).axes;
  }
  constexpr void gather_of_output(int i) {
    value_id& v = p_.outputs[i].value;
    const op_id o = p_.producer(standing_for(v));
    if (!is(o, collective::all_gather)) return;
    d_.outputs[i] = p_.collective_of(o).axes;
    --users_[v];
    v = operand(o);
    ++users_[v];
  }
};

/// Reads `partita.layout = "[{\22B\22}, {}]"` from the attributes of an argument or result: the
/// layout of a shard, as write_stablehlo writes it. False if the attribute is missing.
constexpr bool read_written_layout(std::string_view attributes, const mesh& m, shape piece,
                                   layout& l, failure& error) {
  constexpr std::string_view name = "partita.layout = \"";
  const std::size_t at = attributes.find(name);
  if (at == std::string_view::npos) return false;
  const std::size_t begin = at + name.size();
  std::size_t end = begin;
  while (end < attributes.size() && attributes[end] != '"') end += attributes[end] == '\\' ? 2 : 1;
  if (end > attributes.size()) end = attributes.size();
  for (auto& extent : piece.extents) extent = saturating_multiply(extent, m.devices());
  l = parse_layout(unescaped(attributes.substr(begin, end - begin)), m, piece, error);
  return true;
}
constexpr bool read_written_layouts(const module_reader& in, device_program& d, failure& error) {
  bool any = false;
  for (int i = 0; i < d.local.input_count(); ++i)
    any |= read_written_layout(in.input_attributes(i), d.mesh, d.local.input_type(i).shape,
                               d.inputs[i], error);
  for (int i = 0; i < d.local.output_count(); ++i)
    any |= read_written_layout(in.output_attributes(i), d.mesh, d.local.output_type(i).shape,
                               d.outputs[i], error);
  return any;
}

}  // namespace stablehlo_detail

/// Options for reading a program for one device.
struct local_reading {
  /// Unrolls counting loops (up to 256 iterations). The steps of a ring then become parts of one
  /// sum.
  bool unroll = false;
};
/// The ways to read a program for a proof, tried in order until one succeeds.
inline constexpr local_reading ways_to_prove[] = {{}, {.unroll = true}};

/// Returns the program for one device of a StableHLO module. Its @main either computes with shards
/// (`sdy.manual_computation`, to which JAX's shard_map is lowered), or was written by
/// `write_stablehlo` for a device_program. Each device computes the ops outside of manual
/// computations on global values. Replica groups become axes of the mesh, which are split if groups
/// are along parts of axes.
///
/// `m`: the mesh. The mesh of the module (`sdy.mesh`) must have the same axes and determines their
/// order.
///
/// Errors    in `local.error`, with line and column: those of read_stablehlo; H013 groups that are
///           not along axes of the mesh or parts of them, or another mesh; H011 more than 2^20
///           devices; P019 to P023 a layout
/// Source    the StableHLO specification, version 1.0, and the definition of the SDY dialect
constexpr device_program read_local_stablehlo(std::string_view module, const mesh& m,
                                              const local_reading& how = {},
                                              span<const std::string_view> names = {}) {
  stablehlo_detail::module_reader in(module, names, m, how.unroll);
  device_program d;
  d.local = in.run();
  d.mesh = in.of_mesh();
  if (d.local.error) return d;
  d.inputs.resize(d.local.inputs.size(), {});
  d.outputs.resize(d.local.outputs.size(), {});
  failure f;
  if (!stablehlo_detail::read_written_layouts(in, d, f))
    stablehlo_detail::interface_layouts(d).run();
  for (int i = 0; i < d.local.input_count(); ++i)
    d.input_types.push_back(
        {d.local.input_type(i).element, d.inputs[i].global(d.local.input_type(i).shape, d.mesh)});
  for (int i = 0; i < d.local.output_count(); ++i)
    d.output_types.push_back({d.local.output_type(i).element,
                              d.outputs[i].global(d.local.output_type(i).shape, d.mesh)});
  d.local.error.record(f);
  return d;
}

}  // namespace partita
