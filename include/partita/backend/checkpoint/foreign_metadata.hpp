/// Metadata for programs that read a checkpoint without this library.
#pragma once

#include <string>
#include <string_view>

#include <partita/backend/checkpoint/durable_file.hpp>
#include <partita/backend/checkpoint/stored_shard.hpp>

namespace partita::backend_detail {

/// Returns the `zarr.json` of an array.
///
/// Source    Zarr core specification, version 3.1
inline text zarr_array(const checkpoint_entry& a) {
  constexpr std::string_view names[] = {"float32", "float64", "bfloat16", "float16", "int8",
                                        "int16",   "int32",   "int64",    "uint8",   "uint16",
                                        "uint32",  "uint64",  "bool"};
  static_assert(std::size(names) == dtype_count);
  const dtype t = a.type.element;
  text out = R"({"zarr_format":3,"node_type":"array","shape":)";
  return out << json_numbers(a.type.shape) << R"(,"data_type":")" << names[static_cast<int>(t)]
             << R"(","chunk_grid":{"name":"regular","configuration":{"chunk_shape":)"
             << json_numbers(a.shard) << "}}"
             << R"(,"chunk_key_encoding":{"name":"default","configuration":{"separator":"/"}})"
             << R"(,"codecs":[{"name":"bytes","configuration":{"endian":"little"}}],"fill_value":)"
             << (t == dtype::boolean ? "false"
                 : is_floating(t)    ? "0.0"
                                     : "0")
             << R"(,"attributes":{"partita.name":)" << json_text(a.name) << R"(,"partita.layout":)"
             << json_text(a.layout) << "}}";
}
/// Returns the `model.safetensors.index.json` of a checkpoint.
inline text safetensors_index(const checkpoint_manifest& m, const shard_files& files) {
  text out = R"({"metadata":{"total_size":)", map;
  std::int64_t bytes = 0;
  for (const auto& file : files.files())
    for (const std::size_t i : file.arrays) {
      bytes = saturating_add(bytes, m.arrays[i].type.bytes());
      map << (map.empty() ? "\n" : ",\n") << json_text(m.arrays[i].name) << ":\"" << file.name
          << '"';
    }
  return out << bytes << "},\"weight_map\":{" << map << "\n}}\n";
}
/// Writes all metadata of the checkpoint's format.
inline void write_foreign_metadata(const checkpoint_manifest& m, const shard_files& files) {
  if (m.format == checkpoint_format::safetensors) {
    for (const auto& each : files.files()) {
      const durable_file file(files.path(each.name), O_WRONLY | O_CREAT);
      std::filesystem::resize_file(files.path(each.name), each.plan.size);
      file.write(0, each.plan.head.data(), each.plan.head.size());
      file.sync();
    }
    return write_durable(files.path("model.safetensors.index.json"), safetensors_index(m, files));
  }
  for (const auto& a : m.arrays) {
    const std::string folder = files.path(path_component(a.name));
    std::filesystem::create_directories(folder);
    write_durable(folder + "/zarr.json", zarr_array(a));
  }
  write_durable(files.path("zarr.json"),
                concat(R"({"zarr_format":3,"node_type":"group","attributes":{"partita.step":)",
                       m.step, R"(,"partita.mesh":)", json_text(m.mesh), "}}"));
}

}  // namespace partita::backend_detail
