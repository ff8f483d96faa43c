/// A device-local program as one file of C++.
#pragma once

#include <string>

#include <partita/backend/code/control_writer.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita {

namespace backend_detail {

/// The table of inputs or outputs.
inline void append_arguments(text& s, const device_program& d, bool inputs) {
  const auto& types = inputs ? d.input_types : d.output_types;
  const std::string_view list = inputs ? "inputs" : "outputs";
  if (types.empty()) {
    s << "constexpr std::span<const code::argument> " << list << ";\n";
    return;
  }
  s << "constexpr code::argument " << list << "[] = {\n";
  for (int i = 0; i < static_cast<int>(types.size()); ++i) {
    print_quoted(s << "    {", inputs ? d.local.input_name(i) : d.local.output_name(i));
    s << ", " << cpp_text_of(types[i]) << ", "
      << cpp_text_of(inputs ? d.local.input_type(i) : d.local.output_type(i)) << ", {";
    const layout& l = (inputs ? d.inputs : d.outputs)[i];
    append_list(s, l.count,
                [&](int k) { s << '{' << int{l[k].axis} << ", " << int{l[k].dim} << '}'; });
    s << "}},\n";
  }
  s << "};\n";
}
inline void append_mesh(text& s, const mesh& m) {
  text axes = "{", more;
  for (int a = 0; a < m.rank; ++a) {
    print_quoted(axes << (a == 0 ? "{" : ", {"), m.name(a));
    axes << ", " << m.size(a) << '}';
    if (m.axes[a].pre != 1) more << "  m.axes[" << a << "].pre = " << m.axes[a].pre << ";\n";
    if (m.order[a] != a) more << "  m.order[" << a << "] = " << int{m.order[a]} << ";\n";
  }
  axes << "};\n";
  if (more.size() == 0)
    s << "const partita::mesh mesh" << axes;
  else
    s << "const partita::mesh mesh = [] {\n  partita::mesh m" << axes << more
      << "  return m;\n}();\n";
}

}  // namespace backend_detail

/// A device-local program as one file of C++20 that a reader can follow and a compiler can build
/// with the library's run-time headers, Eigen and threads (or MPI): straight-line code, a loop per
/// group of elementwise ops, calls of kernels with constant shapes, one buffer in which every value
/// has a constant place. The outputs have the bits of `emulate`.
///
/// Cost      linear in ops
/// Errors    what the program's own error is; E020 an op has no kernel of the library
inline std::string write_cpp(const device_program& d) {
  d.local.error.raise();
  const backend_detail::code_plan plan(d.local, 0, 1, true);
  plan.error.raise();
  backend_detail::block_writer code(d.mesh);
  code.write_program(d.local, plan);
  text s = "// What ";
  if (d.mesh.rank == 0)
    s << "one device";
  else
    s << "each device of the mesh " << d.mesh;
  s << R"( runs, as Partita wrote it.
//
//   g++ -std=c++20 -O2 -I PARTITA/include -isystem EIGEN FILE.cpp -pthread
//   mpicxx ... -DPARTITA_CODE_MPI    (one rank per device, not one thread)
#include <partita/backend/code/launch.hpp>
)";
  for (const auto& h : code.headers()) s << "#include <partita/" << h << ".hpp>\n";
  s << R"(
namespace {

namespace code = partita::code;
namespace kernels = code::kernels;
namespace op = partita::op;
using partita::combiner, partita::dtype;

// Name, global type, type on a device, and which axis (by number) slices which dimension.
)";
  backend_detail::append_arguments(s, d, true);
  backend_detail::append_arguments(s, d, false);
  backend_detail::append_mesh(s, d.mesh);
  s << "\n// Every value has its place in one buffer per device.\n"
       "constexpr std::int64_t memory_bytes = "
    << plan.end << R"(;

void run([[maybe_unused]] code::device& d, [[maybe_unused]] const std::byte* const* in,
         [[maybe_unused]] std::byte* const* out) {
)" << code.body()
    << R"(}

}  // namespace

#if !defined(PARTITA_CODE_NO_MAIN)
int main(int argc, char** argv) {
  return code::launch({mesh, inputs, outputs, memory_bytes, &run}, argc, argv);
}
#endif
)";
  return std::string(s.view());
}
/// The same for a program on one device.
inline std::string write_cpp(const program& p) { return write_cpp(on_one_device(p)); }

}  // namespace partita
