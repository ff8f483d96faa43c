/// The exported calls of a pipeline as JSON, for a runtime.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/print_calls.hpp>
#include <partita/report/json_text.hpp>

namespace partita {

namespace report_detail {

class pipeline_json_writer {
 public:
  constexpr pipeline_json_writer(const pipelined& p, const exported_pipeline& e)
      : p_(p), e_(e), names_(p, e) {}

  constexpr text print() {
    out_ << "{\"microbatches\": " << p_.microbatches << ",\n\"meshes\": ";
    const vec<std::int64_t> first = mpmd_detail::first_devices(p_.topology);
    rows(p_.topology.count(), [&](int m) { mesh(m, first[m]); });
    out_ << ",\n\"buffers\": ";
    rows(static_cast<int>(e_.buffers.size()), [&](int i) { buffer(e_.buffers[i], i); });
    out_ << ",\n\"functions\": ";
    rows(static_cast<int>(e_.functions.size()), [&](int f) { function(f); });
    out_ << ",\n\"inputs\": ";
    rows(p_.source.input_count(),
         [&](int i) { interface(p_.source.input_name(i), p_.source.input_type(i), e_.inputs[i]); });
    out_ << ",\n\"steps\": ";
    rows(static_cast<int>(e_.steps.size()), [&](int i) { step(e_.steps[i]); });
    out_ << ",\n\"outputs\": ";
    rows(p_.source.output_count(), [&](int i) {
      interface(p_.source.output_name(i), p_.source.output_type(i), e_.outputs[i]);
    });
    out_ << "}\n";
    return static_cast<text&&>(out_);
  }

 private:
  const pipelined& p_;
  const exported_pipeline& e_;
  mpmd_detail::exported_names names_;
  text out_;

  /// Prints a list with one entry per line.
  template <class Row>
  constexpr void rows(int count, const Row& row) {
    out_ << '[';
    for (int i = 0; i < count; ++i) {
      out_ << (i > 0 ? ",\n  " : "\n  ");
      row(i);
    }
    out_ << ']';
  }
  template <class At>
  constexpr void list(int count, const At& at) {
    out_ << '[';
    append_list(out_, count, at);
    out_ << ']';
  }
  constexpr void quoted(std::string_view s) { print_json_string(out_, s); }

  /// Prints a mesh with its axes in the order in which devices are numbered.
  constexpr void mesh(int m, std::int64_t first) {
    const partita::mesh& axes = p_.meshes[m].rank > 0 ? p_.meshes[m] : p_.topology.mesh_of(m);
    axis_list list_of_axes;
    for (int i = 0; i < axes.rank; ++i)
      if (axes.order[i] < axes.whole_rank()) list_of_axes.push_back(axes.order[i]);
    out_ << "{\"name\": ";
    quoted(p_.topology.name(m));
    out_ << ", \"axes\": ";
    list(list_of_axes.count, [&](int i) {
      out_ << '[';
      quoted(axes.name(list_of_axes.axes[i]));
      out_ << ", " << axes.whole_size(list_of_axes.axes[i]) << ']';
    });
    out_ << ", \"first_device\": " << first << ", \"devices\": " << axes.devices() << '}';
  }
  constexpr void shape(std::string_view key, const partita::shape& s) {
    out_ << ", \"" << key << "\": ";
    list(s.rank, [&](int d) { out_ << s[d]; });
  }
  /// Prints `["\"B\", \"M\"", ""]` for the layout `[{"B", "M"}, {}]`.
  constexpr void layout(const partita::layout& l, int rank, const partita::mesh& m) {
    out_ << ", \"layout\": ";
    list(rank, [&](int d) {
      text names;
      partita::layout only;
      for (const auto& each : l)
        if (each.dim == d) only.push_back(each.axis, 0);
      print_layout(names, only, 1, m);
      quoted(names.view().substr(2, names.size() - 4));
    });
  }
  constexpr void buffer(const pipeline_buffer& b, int i) {
    const partita::mesh& m = p_.meshes[b.mesh];
    out_ << "{\"name\": ";
    quoted(names_.buffer(i));
    out_ << ", \"mesh\": " << b.mesh << ", \"element\": \"" << name_of(b.local.element) << '"';
    shape("shape", b.lies.global(b.local.shape, m));
    shape("piece", b.local.shape);
    layout(b.lies, b.local.shape.rank, m);
    if (b.terms.bits != 0) {
      text names;
      print_axis_set(names, b.terms, m);
      out_ << ", \"terms\": ";
      quoted(names);
    }
    if (b.accumulates) {
      out_ << ", \"starts_as_identity_of\": ";
      quoted(combiner_name(b.slot));
    }
    if (b.stacks) out_ << ", \"stack\": true";
    out_ << '}';
  }
  constexpr std::string_view combiner_name(value_id slot) const {
    const program& p = p_.values();
    const auto c = static_cast<combiner>(p.attrs(p.producer(slot))[0]);
    return name_of(c == combiner::stack ? combiner::add : c);
  }
  constexpr void function(int f) {
    const pipeline_function& each = e_.functions[f];
    out_ << "{\"name\": ";
    quoted(names_.function(f));
    int shown = 0;
    out_ << ", \"donated\": [";
    for (std::size_t k = 0; k < each.donated.size(); ++k)
      if (each.donated[k] != 0) out_ << (shown++ > 0 ? ", " : "") << k;
    shown = 0;
    out_ << "], \"aliases\": [";
    for (std::size_t k = 0; k < each.alias.size(); ++k)
      if (each.alias[k] >= 0)
        out_ << (shown++ > 0 ? ", " : "") << '[' << k << ", " << each.alias[k] << ']';
    out_ << "]}";
  }
  constexpr void interface(std::string_view name, const tensor_type& t, int buffer) {
    out_ << "{\"name\": ";
    quoted(name);
    out_ << ", \"element\": \"" << name_of(t.element) << '"';
    shape("shape", t.shape);
    out_ << ", \"buffer\": " << buffer << '}';
  }
  constexpr void operands(std::string_view key, const vec<call_operand>& all) {
    out_ << ", \"" << key << "\": ";
    list(static_cast<int>(all.size()), [&](int i) {
      const call_operand& each = all[i];
      if (each.is_number())
        out_ << "{\"number\": " << each.slice << '}';
      else if (each.slice >= 0)
        out_ << '[' << each.buffer << ", " << each.slice << ']';
      else
        out_ << each.buffer;
    });
  }
  constexpr void step(const pipeline_step& s) {
    if (!s.is_call()) {
      out_ << "{\"copy\": " << s.from << ", \"to\": " << s.to << '}';
      return;
    }
    out_ << "{\"call\": " << s.number << ", \"function\": " << s.function
         << ", \"mesh\": " << s.mesh;
    if (s.microbatch >= 0) out_ << ", \"microbatch\": " << s.microbatch;
    if (s.last_microbatch > s.microbatch) out_ << ", \"last_microbatch\": " << s.last_microbatch;
    operands("takes", s.takes);
    operands("gives", s.gives);
    if (s.after >= 0) out_ << ", \"after\": " << s.after;
    out_ << ", \"reserved_bytes\": " << s.reserved << '}';
  }
};

}  // namespace report_detail

/// Returns the information that print_calls prints as JSON, one entry per line:
///
///   meshes     name; axes as [name, size], where device numbers count along the last axis first;
///              devices, numbered from `first_device`
///   buffers    name; number of the mesh; element type; global shape and block shape; for each
///              dimension the axes that slice it, major to minor; `terms`: axes along which devices
///              hold partial sums; `starts_as_identity_of` "add" for a buffer that calls add to;
///              `stack` for a buffer with a slice for each microbatch
///   functions  name; the inputs that are `donated`; `aliases`: [input, output] pairs that share
///              memory. write_stablehlo(pipelined, ...) writes their code
///   steps      {"call", "function", "mesh", "microbatch" (the first one of a call for several, and
///              "last_microbatch"), "takes", "gives", "after", "reserved_bytes"}, where
///              an operand is a buffer, [stack, slice] or {"number": microbatch}; or
///              {"copy": buffer, "to": buffer}, which reshards if layouts or sizes differ
///   inputs, outputs  name, element type, shape, buffer
///
/// Errors    those of the export, as the text "error: " and the message
/// Cost      linear in the length of the text
constexpr text pipeline_json(const pipelined& p, const exported_pipeline& e) {
  if (e.error) return concat("error: ", e.error.message, '\n');
  return report_detail::pipeline_json_writer(p, e).print();
}
/// The same for the calls that export_calls returns.
constexpr text pipeline_json(const pipelined& p) { return pipeline_json(p, export_calls(p)); }

}  // namespace partita
