/// Maps the elements of global arrays to bytes of files.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/manifest.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/memory/device_set.hpp>

namespace partita::backend_detail {

/// Bytes of the copy buffer.
inline constexpr std::int64_t buffer_bytes = 1 << 20;

/// Returns the coordinates of element `i` of a shape, row-major.
constexpr run_detail::position position_of(const shape& s, std::int64_t i) {
  run_detail::position p;
  for (int d = s.rank; d-- > 0; i /= s[d]) p.at[d] = i % s[d];
  return p;
}
/// Returns the coordinates of a device; devices are numbered in row-major order.
///
/// Errors    K011 the mesh has no such device
inline run_detail::coordinates device_coordinates(const mesh& m, std::int64_t device) {
  if (device < 0 || device >= m.devices())
    throw error(concat("K011 checkpoint: device ", device, " is not in ", m));
  return run_detail::device_set::block(m, device, m.devices()).coordinates_of({}, 0);
}
/// Returns a scalar's shape as a vector of one element, so that every shape has rows.
constexpr shape with_rows(shape s) {
  if (s.rank == 0) s.push_back(1);
  return s;
}

/// An array in memory that holds a box of a global array.
struct held_box {
  run_detail::position start;  ///< of the box in the global array
  shape extents;               ///< of the array; elements out of bounds of `global` are padding
  shape global;
};

/// Consecutive elements of a shard that form a box and are contiguous in the file.
struct slab {
  run_detail::position start;  ///< in the global array
  shape extents;
  std::uint64_t begin = 0;  ///< byte in the file
};

/// The elements that a slab and an array in memory have in common; empty if they are disjoint.
struct common_box {
  shape extents;
  run_detail::position in_slab, in_array;

  common_box(const slab& s, const held_box& a) : extents(s.extents) {
    for (int d = 0; d < extents.rank; ++d) {
      const std::int64_t low = a.start.at[d], begin = std::max(s.start.at[d], low);
      const std::int64_t end =
          std::min({s.start.at[d] + s.extents[d], low + a.extents[d], a.global[d]});
      extents[d] = std::max<std::int64_t>(end - begin, 0);
      in_slab.at[d] = begin - s.start.at[d];
      in_array.at[d] = begin - low;
    }
  }
};

/// A shard in a file: a box of a larger array, which is stored row-major from byte `begin` on.
struct stored_shard {
  std::string path;
  std::uint64_t begin = 0;
  shape extents;               ///< of the shard, padding included if it is stored
  run_detail::position start;  ///< of the shard in the global array
  shape file_shape;            ///< of the array in the file
  bool chunk = false;          ///< the file holds this shard only

  std::int64_t elements() const { return extents.elements(); }

  /// Calls f(slab) for the slabs of the shard in order; each slab fits the buffer.
  template <class F>
  void for_each_slab(std::int64_t size, const F& f) const {
    const run_detail::strides stride(file_shape);
    const std::int64_t most = buffer_bytes / size;
    int d = extents.rank - 1;  // the dimension that is cut into slabs
    std::int64_t row = 1;
    while (d > 0 && extents[d] == file_shape[d] && row * extents[d] <= most) row *= extents[d--];
    for (std::int64_t i = 0; i < elements();) {
      const run_detail::position p = position_of(extents, i);
      slab s{start, extents, begin};
      for (int k = 0; k < extents.rank; ++k) {
        if (k < d) s.extents[k] = 1;
        if (k == d) s.extents[k] = std::min(extents[k] - p.at[k], most / row);
        s.start.at[k] += p.at[k];
        const std::int64_t in_file = chunk ? p.at[k] : s.start.at[k];
        s.begin += static_cast<std::uint64_t>(in_file * stride[k] * size);
      }
      f(s);
      i += s.extents.elements();
    }
  }
};

/// Returns the name of an array as one component of a path. Letters, digits, `_`, `-` and `.` stay;
/// other bytes become `%2F`. So does the first byte of a name that zarr or this library reserves.
inline std::string path_component(std::string_view name) {
  std::string out;
  for (const char c : name) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '_' || c == '-' || c == '.';
    const bool reserved = out.empty() && (name.starts_with('.') || name.starts_with("__") ||
                                          name == "zarr.json" || name == manifest_name);
    const auto byte = static_cast<unsigned char>(c);
    constexpr std::string_view digits = "0123456789ABCDEF";
    if (plain && !reserved)
      out += c;
    else
      (out += '%', out += digits[byte >> 4], out += digits[byte & 15]);
  }
  return out;
}

/// The paths and positions of a checkpoint's shards, for writing and for reading.
class shard_files {
 public:
  /// A file of unsharded tensors.
  struct tensor_file {
    std::string name;
    std::vector<std::size_t> arrays;
    run_detail::safetensors_plan plan;
  };

  /// Assigns arrays to files.
  ///
  /// Errors    N003 safetensors does not allow a name
  shard_files(const std::string& folder, const checkpoint_manifest& m) : folder_(folder), m_(m) {
    if (m.format == checkpoint_format::safetensors) assign();
  }
  const std::vector<tensor_file>& files() const { return files_; }
  std::string path(std::string_view name) const { return folder_ + "/" + std::string(name); }

  /// Returns shard `number` of array `i`, row-major among stored shards.
  stored_shard shard(std::size_t i, std::int64_t number) const {
    const checkpoint_entry& a = m_.arrays[i];
    stored_shard s;
    s.chunk = m_.format == checkpoint_format::zarr;
    const auto at = position_of(stored_shards(a), number);
    s.path = s.chunk ? path(path_component(a.name)) + "/c" : path(files_[places_[i].first].name);
    s.extents = with_rows(a.shard);
    s.file_shape = with_rows(s.chunk ? a.shard : a.type.shape);
    for (int d = 0; d < a.shard.rank; ++d) {
      s.start.at[d] = at.at[d] * a.shard[d];
      if (s.chunk)
        s.path += "/" + std::to_string(at.at[d]);
      else
        s.extents[d] = std::min(s.extents[d], a.type.shape[d] - s.start.at[d]);
    }
    if (!s.chunk) s.begin = files_[places_[i].first].plan.begin[places_[i].second];
    return s;
  }

 private:
  std::string folder_;
  const checkpoint_manifest& m_;
  std::vector<tensor_file> files_;
  std::vector<std::pair<std::size_t, std::size_t>> places_;  ///< by array: file and position

  /// Assigns arrays to files in order; a new file starts where one would exceed `file_bytes`.
  void assign() {
    std::int64_t bytes = 0;
    files_.resize(1);
    for (std::size_t i = 0; i < m_.arrays.size(); ++i) {
      const std::int64_t more = m_.arrays[i].type.bytes();
      if (!files_.back().arrays.empty() && saturating_add(bytes, more) > m_.file_bytes)
        files_.emplace_back(), bytes = 0;
      bytes = saturating_add(bytes, more);
      places_.emplace_back(files_.size() - 1, files_.back().arrays.size());
      files_.back().arrays.push_back(i);
    }
    for (std::size_t k = 0; k < files_.size(); ++k) {
      char name[80];
      std::snprintf(name, sizeof name, "model-%05zu-of-%05zu.safetensors", k + 1, files_.size());
      files_[k].name = name;
      std::vector<run_detail::named_type> types;
      for (const std::size_t i : files_[k].arrays)
        types.push_back({m_.arrays[i].name, m_.arrays[i].type});
      files_[k].plan =
          run_detail::plan_safetensors(files_[k].name, types, R"("__metadata__":{"format":"pt"})");
    }
  }
};

}  // namespace partita::backend_detail
