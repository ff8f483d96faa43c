/// Programs for one device, as StableHLO text.
#pragma once

#include <partita/ir/next_states.hpp>
#include <partita/op/identity.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/stablehlo/write.hpp>
#include <partita/stablehlo/write_collectives.hpp>

namespace partita {

/// Reuse of the memory of an argument.
struct argument_donation {
  bool donated = false;  ///< true if its memory is free after the call
  int alias = -1;        ///< the result that reuses its memory, or -1
};

/// Kinds of memory of arguments and results, such as "pinned_host"; empty: the device's own memory.
struct port_memories {
  vec<std::string_view> inputs, outputs;

  /// Those of the module that was read. In other programs, inputs are where `input_memories` says,
  /// and results of the op place are where it puts them. `p` has to stay valid.
  constexpr explicit port_memories(const program& p)
      : inputs(p.inputs.size(), {}), outputs(p.outputs.size(), {}) {
    for (std::size_t i = 0; i < p.interface.inputs.size() && i < inputs.size(); ++i)
      inputs[i] = p.interface.inputs[i].memory.view();
    for (std::size_t k = 0; k < p.interface.outputs.size() && k < outputs.size(); ++k)
      outputs[k] = p.interface.outputs[k].memory.view();
    if (!p.any_placed || p.interface.known()) return;
    const vec<std::int64_t> memories = input_memories(p);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (memories[i] != 0) inputs[i] = op::place::memories[memories[i]];
    for (std::size_t k = 0; k < outputs.size(); ++k) {
      const op_id o = p.producer(p.outputs[k].value);
      if (p.op(o).def->chooses_memory && p.attrs(o)[0] != 0)
        outputs[k] = op::place::memories[p.attrs(o)[0]];
    }
  }
};
/// The statements of a module about memories other than the device's own.
struct memory_annotations {
  bool ports = true;  ///< `mhlo.memory_kind` of arguments and results
  bool ops = true;    ///< ops that copy to another memory; XLA for CPUs has none
};

namespace stablehlo_detail {

/// Adds the layouts of shards, for read_local_stablehlo: `mhlo.frontend_attributes =
/// {partita.layout = "[{\22B\22}, {}]"}`. XLA preserves attributes that it does not know.
constexpr void add_layouts(port_texts& to, const vec<layout>& layouts,
                           const vec<tensor_type>& types, const mesh& m) {
  for (std::size_t i = 0; i < layouts.size(); ++i) {
    text how, each = "partita.layout = ";
    print_layout(how, layouts[i], types[i].shape.rank, m);
    write_quoted(each, how.view(), false);
    append_attribute(to.frontend[i], each.view());
  }
}

/// Adds the kinds of memory that the ports do not name themselves.
constexpr void add_memories(port_texts& to, const vec<std::string_view>& kinds,
                            const vec<interface_port>& ports) {
  for (std::size_t i = 0; i < kinds.size(); ++i)
    if (!kinds[i].empty() && (i >= ports.size() || ports[i].memory.empty()))
      to.add(i, concat("mhlo.memory_kind = \"", kinds[i], '"'));
}

}  // namespace stablehlo_detail

/// Writes the program that each device of the mesh runs, as a StableHLO module. It has one replica
/// per device, numbered as in the mesh, and collectives over groups of replicas. Arguments and
/// results are the blocks on a device, with their layouts as attributes and the attributes that
/// were read, and with their kinds of memory (port_memories). Tags are omitted. `donations`: for
/// each argument; if empty, the donations of the module that was read.
///
/// Cost      linear in ops, and in devices for each list of axes that collectives use
/// Errors    W001 an op that cannot be written, W002 more than 2^20 devices
constexpr text write_stablehlo(const device_program& d,
                               const vec<argument_donation>& donations = {},
                               const memory_annotations& memories = {}) {
  text out, failed;
  if (d.local.error) return failed << "error: " << d.local.error.message << '\n';
  stablehlo_detail::module_writer m;
  m.mesh = &d.mesh;
  m.places = memories.ops;
  m.write_more = &stablehlo_detail::write_collective;
  const std::int64_t devices = d.mesh.devices();
  constexpr std::int64_t most = std::int64_t{1} << 20;
  if (devices > most)
    m.error.record("W002", "write: mesh ", d.mesh, " has ", devices, " devices; groups of at most ",
                   most, " can be written out");
  if (!m.error) {
    out << "module @partita attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = "
        << devices << " : i32} {\n";
    const program& p = d.local;
    interface_list ports = p.interface;
    if (!donations.empty()) {
      ports.inputs.resize(donations.size(), {});
      for (std::size_t i = 0; i < donations.size(); ++i) {
        ports.inputs[i].donated = donations[i].donated;
        ports.inputs[i].alias = donations[i].alias;
      }
    }
    stablehlo_detail::port_texts inputs(ports.inputs, d.inputs.size()),
        outputs(ports.outputs, d.outputs.size());
    stablehlo_detail::add_layouts(inputs, d.inputs, d.input_types, d.mesh);
    stablehlo_detail::add_layouts(outputs, d.outputs, d.output_types, d.mesh);
    if (memories.ports) {
      const port_memories kinds(p);
      stablehlo_detail::add_memories(inputs, kinds.inputs, ports.inputs);
      stablehlo_detail::add_memories(outputs, kinds.outputs, ports.outputs);
    }
    stablehlo_detail::add_donations(inputs, ports, [&](int i, int k) {
      return k < p.output_count() && p.input_type(i) == p.output_type(k);
    });
    stablehlo_detail::write_main(m, out, p, inputs.finish(), outputs.finish());
    out << "}\n";
  }
  if (!m.error) return out;
  return failed << "error: " << m.error.message << '\n';
}

}  // namespace partita
