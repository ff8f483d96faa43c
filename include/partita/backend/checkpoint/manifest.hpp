/// The manifest of a checkpoint: the file `partita.json`.
///
/// Both formats share it, so a reader needs no other metadata; it also keeps the checksums of a
/// large checkpoint out of the metadata that other programs parse.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include <partita/run/file/json_reader.hpp>
#include <partita/run/file/safetensors.hpp>
#include <partita/run/file/whole_file.hpp>

namespace partita {

/// The file format of a checkpoint.
enum class checkpoint_format : std::uint8_t {
  zarr,        ///< a zarr v3 group; a shard is a chunk
  safetensors  ///< files of unsharded tensors, with the index that Hugging Face uses
};

/// One array of a checkpoint.
struct checkpoint_entry {
  std::string name;
  tensor_type type;    ///< of the global array
  shape shard;         ///< extents of the stored shards, at least 1
  std::string layout;  ///< on the mesh of the manifest, in the syntax of `print_layout`
  /// CRC-32C of each stored shard, row-major; shards that consist of padding are not stored.
  std::vector<std::uint32_t> checksums;
};
/// The contents of a manifest.
struct checkpoint_manifest {
  checkpoint_format format = checkpoint_format::zarr;
  std::int64_t step = 0;
  std::string mesh, written_by;
  std::int64_t file_bytes = 0;  ///< see checkpoint_options
  std::vector<checkpoint_entry> arrays;
};

namespace backend_detail {

constexpr std::string_view manifest_name = "partita.json";

using run_detail::json_numbers;
using run_detail::json_text;

inline text manifest_text(const checkpoint_manifest& m) {
  text out = R"({"partita_checkpoint":1,"written_by":)";
  out << json_text(m.written_by) << R"(,"format":)"
      << (m.format == checkpoint_format::zarr ? R"("zarr")" : R"("safetensors")") << R"(,"step":)"
      << m.step << R"(,"file_bytes":)" << m.file_bytes << R"(,"mesh":)" << json_text(m.mesh)
      << R"(,"arrays":[)";
  for (const auto& a : m.arrays)
    out << (&a == m.arrays.data() ? "\n" : ",\n") << R"({"name":)" << json_text(a.name)
        << R"(,"dtype":")" << name_of(a.type.element) << R"(","shape":)"
        << json_numbers(a.type.shape) << R"(,"shard":)" << json_numbers(a.shard) << R"(,"layout":)"
        << json_text(a.layout) << R"(,"crc32c":)" << json_numbers(a.checksums) << '}';
  return out << "]}\n";
}

/// Returns the number of stored shards along each dimension.
constexpr shape stored_shards(const checkpoint_entry& a) {
  shape n = a.type.shape;
  for (int d = 0; d < n.rank; ++d) n[d] = n[d] / a.shard[d] + (n[d] % a.shard[d] != 0 ? 1 : 0);
  return n;
}

/// Reads a manifest, which is untrusted input: the members that `manifest_text` writes, in its
/// order.
class manifest_reader {
 public:
  explicit manifest_reader(const std::string& folder)
      : path_(folder + "/" + std::string(manifest_name)),
        bytes_(text_of(folder, path_)),
        in_(bytes_, path_),
        json_(bytes_, in_, "K003", "it is not the manifest of a checkpoint") {}

  checkpoint_manifest read() {
    checkpoint_manifest m;
    json_.need_member("{", "partita_checkpoint");
    if (const std::uint64_t version = json_.number(); version != 1)
      in_.fail("K002", "the checkpoint has version ", version, "; version 1 can be read");
    m.written_by = string("written_by");
    const std::string format = string("format");
    m.format = format == "zarr" ? checkpoint_format::zarr : checkpoint_format::safetensors;
    if (m.format != checkpoint_format::zarr && format != "safetensors")
      json_.fail("the format is unknown");
    json_.need_member(",", "step");
    m.step = static_cast<std::int64_t>(json_.number());
    json_.need_member(",", "file_bytes");
    m.file_bytes = static_cast<std::int64_t>(json_.number());
    m.mesh = string("mesh");
    json_.need_member(",", "arrays");
    json_.list("[", "]", [&] { m.arrays.push_back(entry()); });
    json_.need("}", "}");
    json_.need_end();
    return m;
  }

 private:
  std::string path_, bytes_;
  run_detail::byte_reader in_;
  run_detail::json_reader json_;

  static std::string text_of(const std::string& folder, const std::string& path) {
    if (std::filesystem::exists(path)) return run_detail::read_file(path);
    const bool zarr = std::filesystem::exists(folder + "/zarr.json");
    throw error(concat("K002 checkpoint: \"", folder, "\" ",
                       zarr ? "is a zarr group of another program: it has no " : "has no ",
                       manifest_name));
  }
  std::string string(std::string_view name, std::string_view before = ",") {
    json_.need_member(before, name);
    return json_.string();
  }
  template <class Each>
  void numbers(std::string_view name, const Each& each) {
    json_.need_member(",", name);
    json_.list("[", "]", [&] { each(static_cast<std::int64_t>(json_.number())); });
  }
  checkpoint_entry entry() {
    checkpoint_entry a;
    a.name = string("name", "{");
    const std::string type = string("dtype");
    int t = 0;
    while (t < dtype_count && name_of(static_cast<dtype>(t)) != type) ++t;
    a.type.element = static_cast<dtype>(t);
    numbers("shape", [&](auto n) { a.type.shape.push_back(n); });
    numbers("shard", [&](auto n) { a.shard.push_back(n); });
    a.layout = string("layout");
    numbers("crc32c", [&](auto n) { a.checksums.push_back(static_cast<std::uint32_t>(n)); });
    json_.need("}", "}");
    const bool good = t < dtype_count && a.shard.rank == a.type.shape.rank &&
                      a.shard.rank <= max_rank && a.type.shape.fits() && a.shard.fits() &&
                      !a.shard.has_no_elements() &&
                      static_cast<std::size_t>(stored_shards(a).elements()) == a.checksums.size();
    if (!good)
      json_.fail(concat("array \"", short_name(a.name), "\" of type ", short_name(type), ", shape ",
                        a.type.shape, ", shards ", a.shard, " and ", a.checksums.size(),
                        " checksums is inconsistent"));
    return a;
  }
};

}  // namespace backend_detail
}  // namespace partita
