/// Reads any box of an array from a checkpoint, whatever mesh wrote it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <partita/backend/checkpoint/durable_file.hpp>
#include <partita/backend/checkpoint/stored_shard.hpp>
#include <partita/run/file/crc.hpp>
#include <partita/run/file/load.hpp>
#include <partita/schedule/partitioned.hpp>

namespace partita {

/// An open checkpoint, read-only. Its files are untrusted input.
///
/// Reading a box reads every stored shard that it intersects, through a buffer of 1 MiB. A shard is
/// read completely because its checksum covers all of it. This is the cheapest plan if each process
/// has the files. (`reshard_plan` finds collectives between devices that hold the shards.)
class checkpoint_reader {
 public:
  /// Opens a checkpoint.
  ///
  /// Errors    K001 a file cannot be read, K002 the directory is not a checkpoint of this library,
  ///           or one of a later version, K003 the manifest is damaged, K004 a file of tensors is
  ///           damaged
  explicit checkpoint_reader(const std::string& path)
      : path_(path),
        manifest_(backend_detail::manifest_reader(path).read()),
        places_(manifest_.arrays),
        files_(path, manifest_) {
    if (const auto i = places_.duplicate(); i >= 0)
      throw error(concat("K003 checkpoint: \"", path, "\": two arrays are named \"",
                         short_name(at(i).name), '"'));
    for (const auto& each : files_.files()) {
      const backend_detail::durable_file file(files_.path(each.name), O_RDONLY);
      need_size(files_.path(each.name), file.size(), each.plan.size);
      std::string head(each.plan.head.size(), '\0');
      if (!file.read(0, head.data(), head.size()) || head != each.plan.head)
        throw error(concat("K004 checkpoint: \"", files_.path(each.name),
                           "\" has another header than the manifest describes"));
    }
  }
  checkpoint_reader(const checkpoint_reader&) = delete;
  checkpoint_reader& operator=(const checkpoint_reader&) = delete;

  /// Returns the step that was recorded when saving.
  std::int64_t step() const { return manifest_.step; }
  /// Returns the manifest.
  const checkpoint_manifest& manifest() const { return manifest_; }

  /// Returns the entry of an array. A dynamic extent of `type` matches any extent.
  ///
  /// Errors    K006 the array is missing, K007 it has another type or shape
  const checkpoint_entry& need(std::string_view name, const tensor_type& type) const {
    const auto i = find(name, concat(" of ", type));
    if (at(i).type.element != type.element || !same_shape(at(i).type.shape, type.shape))
      throw error(concat("K007 checkpoint: \"", path_, "\": array \"", short_name(name), "\" is ",
                         at(i).type, "; ", type, " is needed"));
    return at(i);
  }
  /// Reads the box of these extents at `start`. Elements out of bounds of the array are padding:
  /// zero.
  ///
  /// Errors    K001, K004 a shard is too short or too long, K005 its checksum differs or a bool is
  ///           neither 0 nor 1, K006, K011 the box has another rank or a negative start
  array read(std::string_view name, const run_detail::position& start, const shape& extents) const {
    const auto i = find(name, {});
    const checkpoint_entry& a = at(i);
    array out({a.type.element, extents});
    shape count = extents;  // of the shards that the box intersects
    run_detail::position first;
    bool inside = extents.rank == a.shard.rank;
    for (int d = 0; d < extents.rank; ++d) inside = inside && start.at[d] >= 0;
    if (!inside)
      throw error(concat("K011 checkpoint: a box of ", extents, " is not in array \"",
                         short_name(name), "\", which is ", a.type));
    for (int d = 0; d < extents.rank; ++d) {
      const std::int64_t end = std::min(start.at[d] + extents[d], a.type.shape[d]);
      if (end <= start.at[d]) return out;
      first.at[d] = start.at[d] / a.shard[d];
      count[d] = (end - 1) / a.shard[d] - first.at[d] + 1;
    }
    const shape stored = backend_detail::stored_shards(a);
    const backend_detail::held_box box{start, backend_detail::with_rows(extents),
                                       backend_detail::with_rows(a.type.shape)};
    for (std::int64_t k = 0; k < count.elements(); ++k) {
      const auto p = backend_detail::position_of(count, k);
      std::int64_t number = 0;
      for (int d = 0; d < count.rank; ++d) number = number * stored[d] + first.at[d] + p.at[d];
      read_shard(static_cast<std::size_t>(i), number, box, out);
    }
    return out;
  }
  /// Reads the shard of a device, with padding.
  ///
  /// Errors    those of the overload above, K011 the mesh has no such device
  array read(const sharded_value& v, const mesh& m, std::int64_t device) const {
    const auto c = backend_detail::device_coordinates(m, device);
    return read(v.name, run_detail::start_of(m, v.sharding, v.local_shape, c), v.local_shape);
  }

 private:
  std::string path_;
  checkpoint_manifest manifest_;
  run_detail::name_index places_;
  backend_detail::shard_files files_;

  std::ptrdiff_t find(std::string_view name, const text& of_type) const {
    const auto i = places_.find(name);
    if (i < 0)
      throw error(concat("K006 checkpoint: \"", path_, "\" has no array \"", short_name(name), '"',
                         of_type, "; ", known_names(name, places_.names())));
    return i;
  }
  const checkpoint_entry& at(std::ptrdiff_t i) const {
    return manifest_.arrays[static_cast<std::size_t>(i)];
  }
  static void need_size(const std::string& path, std::uint64_t size, std::uint64_t wanted) {
    if (size != wanted)
      throw error(concat("K004 checkpoint: \"", path, "\" has ", size, " bytes; ", wanted,
                         " are expected"));
  }
  void read_shard(std::size_t i, std::int64_t number, const backend_detail::held_box& box,
                  array& out) const {
    const checkpoint_entry& a = manifest_.arrays[i];
    const backend_detail::stored_shard from = files_.shard(i, number);
    const backend_detail::durable_file file(from.path, O_RDONLY);
    const std::int64_t size = size_of(a.type.element);
    if (from.chunk)
      need_size(from.path, file.size(), static_cast<std::uint64_t>(from.elements() * size));
    std::byte* to = out.mutable_bytes();
    std::vector<std::byte> bytes;
    std::uint32_t crc = 0;
    bool good = true;
    from.for_each_slab(size, [&](const backend_detail::slab& s) {
      bytes.resize(static_cast<std::size_t>(s.extents.elements() * size));
      good = good && file.read(s.begin, bytes.data(), bytes.size());
      crc = run_detail::crc32c(bytes.data(), bytes.size(), crc);
      if (a.type.element == dtype::boolean)
        for (const std::byte b : bytes) good = good && b <= std::byte{1};
      const backend_detail::common_box both(s, box);
      run_detail::copy_box(size, both.extents, s.extents, both.in_slab.at, bytes.data(),
                           box.extents, both.in_array.at, to);
    });
    if (!good || crc != a.checksums[static_cast<std::size_t>(number)])
      throw error(concat("K005 checkpoint: \"", from.path, "\": shard ", number, " of \"",
                         short_name(a.name), "\" is damaged: its CRC-32C is ", crc, ", not ",
                         a.checksums[static_cast<std::size_t>(number)]));
  }
};

}  // namespace partita
