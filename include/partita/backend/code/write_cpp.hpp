/// A device-local program as one file of C++.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/backend/code/block_writer.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita {

namespace backend_detail {

inline std::string text_of(const tensor_type& t) {
  const text s = concat(t);
  return std::string(s.view());
}

/// The file around the function that a device runs.
class cpp_writer {
 public:
  explicit cpp_writer(const device_program& d) : d_(d) { d.local.error.raise(); }

  std::string write() {
    const code_plan plan(d_.local, 0, 1, true);
    block_writer body(d_.mesh);
    body.write_program(d_.local, plan);
    std::string s = head();
    s += "#include <partita/backend/code/launch.hpp>\n";
    for (const auto& h : body.headers()) s += "#include <partita/" + h + ".hpp>\n";
    s += "\nnamespace {\n\nnamespace code = partita::code;\nnamespace kernels = code::kernels;\n"
         "namespace op = partita::op;\nusing partita::combiner, partita::dtype;\n\n"
         "// Every value has its place in one buffer per device.\n"
         "constexpr std::int64_t memory_bytes = " +
         std::to_string(plan.end) +
         ";\n\nvoid run([[maybe_unused]] code::device& d, [[maybe_unused]] const std::byte* const* "
         "in,\n         [[maybe_unused]] std::byte* const* out) {\n" +
         body.text() + "}\n\n";
    arguments(s, "inputs", d_.input_types, d_.inputs, [&](int i) {
      return std::pair{d_.local.input_name(i), d_.local.input_type(i)};
    });
    arguments(s, "outputs", d_.output_types, d_.outputs, [&](int i) {
      return std::pair{d_.local.output_name(i), d_.local.output_type(i)};
    });
    s += mesh_text();
    s += "\n}  // namespace\n\n#if !defined(PARTITA_CODE_NO_MAIN)\nint main(int argc, char** argv) "
         "{\n  return code::launch({mesh, inputs, outputs, memory_bytes, &run}, argc, argv);\n}\n"
         "#endif\n";
    return s;
  }

 private:
  std::string head() const {
    const text mesh = concat(d_.mesh);
    const std::string who =
        d_.mesh.rank == 0 ? "one device" : "each device of the mesh " + std::string(mesh.view());
    std::string s = "// What " + who +
                    " runs, as Partita wrote it.\n//\n"
                    "//   g++ -std=c++20 -O2 -I PARTITA/include -isystem EIGEN FILE.cpp -pthread\n"
                    "//   mpicxx ... -DPARTITA_CODE_MPI    (one rank per device, not one thread)\n"
                    "//\n";
    const auto list = [&](const char* what, std::size_t count, auto line) {
      for (std::size_t i = 0; i < count; ++i) {
        const text t = line(static_cast<int>(i));
        s += "// " + std::string(i == 0 ? what : "        ") + std::string(t.view()) + '\n';
      }
    };
    list("inputs  ", d_.inputs.size(), [&](int i) {
      return argument_text(d_.local.input_name(i), d_.input_types[i], d_.local.input_type(i),
                           d_.inputs[i]);
    });
    list("outputs ", d_.outputs.size(), [&](int i) {
      return argument_text(d_.local.output_name(i), d_.output_types[i], d_.local.output_type(i),
                           d_.outputs[i]);
    });
    return s;
  }
  /// `w1: tensor<8x16xf32>, a device has tensor<2x8xf32>`
  text argument_text(std::string_view name, const tensor_type& global, const tensor_type& local,
                     const layout&) const {
    text t = concat(name_text(name), ": ", global);
    if (!(global == local)) t << ", a device has " << local;
    return t;
  }
  template <class Local>
  void arguments(std::string& s, const std::string& name, const vec<tensor_type>& types,
                 const vec<layout>& layouts, Local local) const {
    if (types.empty()) {
      s += "constexpr std::span<const code::argument> " + name + ";\n";
      return;
    }
    s += "constexpr code::argument " + name + "[] = {\n";
    for (std::size_t i = 0; i < types.size(); ++i) {
      const auto [own, type] = local(static_cast<int>(i));
      text quoted;
      print_quoted(quoted, own);
      s += "    {" + std::string(quoted.view()) + ", " + block_writer::type_text(types[i]) + ", " +
           block_writer::type_text(type) + ", {";
      bool first = true;
      for (const auto& e : layouts[i]) {
        s += (first ? "{" : ", {") + std::to_string(e.axis) + ", " + std::to_string(e.dim) + "}";
        first = false;
      }
      s += "}},\n";
    }
    s += "};\n";
  }
  std::string mesh_text() const {
    const mesh& m = d_.mesh;
    std::string s = "partita::mesh device_mesh() {\n  partita::mesh m{";
    for (int a = 0; a < m.rank; ++a) {
      text quoted;
      print_quoted(quoted, m.name(a));
      s += (a == 0 ? "{" : ", {") + std::string(quoted.view()) + ", " + std::to_string(m.size(a)) +
           "}";
    }
    s += "};\n";
    for (int a = 0; a < m.rank; ++a) {
      if (m.axes[a].pre != 1)
        s += "  m.axes[" + std::to_string(a) + "].pre = " + std::to_string(m.axes[a].pre) + ";\n";
      if (m.order[a] != a)
        s += "  m.order[" + std::to_string(a) + "] = " + std::to_string(int{m.order[a]}) + ";\n";
    }
    return s + "  return m;\n}\nconst partita::mesh mesh = device_mesh();\n";
  }

  const device_program& d_;
};

}  // namespace backend_detail

/// A device-local program as one file of C++20 that a reader can follow and a compiler can build
/// with the library's run-time headers, Eigen and threads (or MPI): straight-line code, a loop per
/// group of elementwise ops, calls of kernels with constant shapes, one buffer in which every value
/// has a constant place. The outputs have the bits of `emulate`.
///
/// Cost      linear in ops
/// Errors    what the program's own error is; E020 an op has no kernel of the library
inline std::string write_cpp(const device_program& d) {
  return backend_detail::cpp_writer(d).write();
}
/// The same for a program on one device.
inline std::string write_cpp(const program& p) { return write_cpp(on_one_device(p)); }

}  // namespace partita
