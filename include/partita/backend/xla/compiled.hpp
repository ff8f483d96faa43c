/// Programs that a PJRT plugin compiled.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/xla/client.hpp>
#include <partita/support/text.hpp>

namespace partita::xla {

/// The memory that a compiled program needs on each device, in bytes, as the plugin reports it.
struct compiled_memory {
  std::int64_t arguments = 0, results = 0;
  std::int64_t aliased = 0;    ///< of the arguments, memory that results reuse
  std::int64_t temporary = 0;  ///< for all values in between
  std::int64_t code = 0;
  std::int64_t peak = 0;  ///< 0 if the plugin does not report it
};
/// A figure of the plugin's cost analysis, such as "flops" or "bytes accessed".
struct cost_figure {
  std::string name;
  double value = 0;
};

}  // namespace partita::xla

namespace partita::backend_detail {

/// Writes the wire format of protocol buffers, as far as CompileOptionsProto needs it.
class proto_writer {
 public:
  void number(int field, std::int64_t value) {
    varint(static_cast<std::uint64_t>(field) * 8);
    varint(static_cast<std::uint64_t>(value));
  }
  void message(int field, const std::string& bytes) {
    varint(static_cast<std::uint64_t>(field) * 8 + 2);
    varint(bytes.size());
    out_ += bytes;
  }
  void varint(std::uint64_t v) {
    for (; v > 127; v >>= 7) out_ += static_cast<char>((v & 127) | 128);
    out_ += static_cast<char>(v);
  }
  const std::string& bytes() const { return out_; }

 private:
  std::string out_;
};

/// Compile options for a program that runs as one replica on each of these devices.
///
/// Source    xla/pjrt/proto/compile_options.proto, xla/xla_data.proto (DeviceAssignmentProto)
inline std::string compile_options(const std::vector<int>& device_ids) {
  const auto count = static_cast<std::int64_t>(device_ids.size());
  proto_writer ids, computation, assignment, build, all;
  for (const int id : device_ids) ids.varint(static_cast<std::uint64_t>(id));
  computation.message(1, ids.bytes());  // replica_device_ids
  assignment.number(1, count);          // replica_count
  assignment.number(2, 1);              // computation_count
  assignment.message(3, computation.bytes());
  build.number(1, -1);                   // device_ordinal
  build.number(4, count);                // num_replicas
  build.number(5, 1);                    // num_partitions
  build.message(9, assignment.bytes());  // device_assignment
  all.message(3, build.bytes());         // executable_build_options
  return all.bytes();
}

/// A compiled program, loaded on its devices.
class pjrt_executable {
 public:
  /// Errors    E005 the plugin refuses the module
  pjrt_executable(std::shared_ptr<const pjrt_client> c, std::string_view module,
                  const std::vector<PJRT_Device*>& devices)
      : client_(std::move(c)), devices_(devices) {
    std::vector<int> ids;
    for (PJRT_Device* d : devices) ids.push_back(client_->id_of(d));
    const std::string options = compile_options(ids);
    auto program = pjrt_args<PJRT_Program>();
    std::string code(module);  // (the API takes a pointer to characters that are not constant)
    constexpr std::string_view format = "mlir";
    program.code = code.data();
    program.code_size = code.size();
    program.format = format.data();
    program.format_size = format.size();
    auto a = pjrt_args<PJRT_Client_Compile_Args>();
    a.client = client_->get();
    a.program = &program;
    a.compile_options = options.data();
    a.compile_options_size = options.size();
    client_->need(client_->api().PJRT_Client_Compile(&a), "E005", "the plugin refuses the program");
    loaded_ = a.executable;
    auto e = pjrt_args<PJRT_LoadedExecutable_GetExecutable_Args>();
    e.loaded_executable = loaded_;
    client_->need(client_->api().PJRT_LoadedExecutable_GetExecutable(&e), "E005",
                  "the compiled program");
    executable_ = e.executable;
  }
  pjrt_executable(const pjrt_executable&) = delete;
  pjrt_executable& operator=(const pjrt_executable&) = delete;
  ~pjrt_executable() {
    auto e = pjrt_args<PJRT_Executable_Destroy_Args>();
    e.executable = executable_;
    client_->plugin().destroy(client_->api().PJRT_Executable_Destroy(&e));
    auto d = pjrt_args<PJRT_LoadedExecutable_Destroy_Args>();
    d.executable = loaded_;
    client_->plugin().destroy(client_->api().PJRT_LoadedExecutable_Destroy(&d));
  }

  /// The devices that run it, those of other processes included.
  const std::vector<PJRT_Device*>& devices() const { return devices_; }
  /// Starts a run on `count` devices, those of this process. `arguments` has all inputs of the
  /// first device, then those of the next one; results are alike. `kept`: inputs that stay valid
  /// although the program may reuse their memory. A failure during the run shows when a result is
  /// read.
  ///
  /// Errors    E006 the run does not start
  void run(std::size_t count, const std::vector<PJRT_Buffer*>& arguments,
           std::vector<PJRT_Buffer*>& results, const std::vector<std::int64_t>& kept) const {
    std::vector<PJRT_Buffer* const*> in(count);
    std::vector<PJRT_Buffer**> out(count);
    for (std::size_t d = 0; d < count; ++d) {
      in[d] = arguments.data() + d * (arguments.size() / count);
      out[d] = results.data() + d * (results.size() / count);
    }
    auto options = pjrt_args<PJRT_ExecuteOptions>();
    options.non_donatable_input_indices = kept.data();
    options.num_non_donatable_input_indices = kept.size();
    auto a = pjrt_args<PJRT_LoadedExecutable_Execute_Args>();
    a.executable = loaded_;
    a.options = &options;
    a.argument_lists = in.data();
    a.num_devices = count;
    a.num_args = arguments.size() / count;
    a.output_lists = out.data();
    client_->need(client_->api().PJRT_LoadedExecutable_Execute(&a), "E006", "the program runs");
  }

  /// Errors    E006 the plugin has no such report
  xla::compiled_memory memory() const {
    auto a = pjrt_args<PJRT_Executable_GetCompiledMemoryStats_Args>();
    a.executable = executable_;
    client_->need(client_->api().PJRT_Executable_GetCompiledMemoryStats(&a), "E006",
                  "the memory of the compiled program");
    return {a.argument_size_in_bytes, a.output_size_in_bytes,         a.alias_size_in_bytes,
            a.temp_size_in_bytes,     a.generated_code_size_in_bytes, a.peak_memory_in_bytes};
  }
  /// Errors    E006 the plugin has no such report
  std::vector<xla::cost_figure> costs() const {
    auto a = pjrt_args<PJRT_Executable_GetCostAnalysis_Args>();
    a.executable = executable_;
    client_->need(client_->api().PJRT_Executable_GetCostAnalysis(&a), "E006",
                  "the costs of the compiled program");
    std::vector<xla::cost_figure> list;
    for (std::size_t i = 0; i < a.num_properties; ++i) {
      const PJRT_NamedValue& v = a.properties[i];
      const std::string name(v.name, v.name_size);
      if (v.type == PJRT_NamedValue_kFloat) list.push_back({name, v.float_value});
      if (v.type == PJRT_NamedValue_kInt64)
        list.push_back({name, static_cast<double>(v.int64_value)});
    }
    return list;
  }

 private:
  std::shared_ptr<const pjrt_client> client_;
  std::vector<PJRT_Device*> devices_;
  PJRT_LoadedExecutable* loaded_ = nullptr;
  PJRT_Executable* executable_ = nullptr;
};
using shared_executable = std::shared_ptr<const pjrt_executable>;

}  // namespace partita::backend_detail
