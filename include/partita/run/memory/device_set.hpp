/// The devices whose shards a process holds, and the copies of a value that it stores for them.
#pragma once

#include <cstdint>

#include <partita/run/memory/coordinates.hpp>

namespace partita::run_detail {

/// Returns all axes of a mesh.
inline axis_set all_axes(const mesh& m) {
  axis_set all;
  for (int a = 0; a < m.rank; ++a) all.insert(a);
  return all;
}

/// A box of devices of a mesh: all of them in an emulator, one in a process for each device.
///
/// A process stores one copy of a value for each distinct coordinate, inside its box, over the axes
/// along which the value varies: replicated values are computed once. The boxes of all processes
/// have the same extents and tile the mesh, so the processes form a grid.
class device_set {
 public:
  static device_set all(const mesh& m) {
    device_set s(m);
    for (int a = 0; a < m.rank; ++a) s.extent_[a] = m.size(a);
    return s;
  }
  /// Returns block `process` of `count` blocks of consecutive device numbers.
  ///
  /// Errors    R016 the blocks are not boxes of the mesh
  static device_set block(const mesh& m, std::int64_t process, std::int64_t count) {
    device_set s(m);
    std::int64_t left = count;  // processes that the minor axes still have to be divided among
    std::int64_t grid[max_axes] = {};
    for (int i = 0; i < m.rank; ++i) {
      const int a = m.order[i];
      grid[a] = left >= m.size(a) ? m.size(a) : left;
      if (m.size(a) % grid[a] != 0 || left % grid[a] != 0) left = 0;
      if (left == 0) break;
      left /= grid[a];
    }
    if (left != 1)
      throw error(concat("R016 run: ", count, count == 1 ? " process" : " processes",
                         " cannot share the ", m.devices(), " devices of the mesh ", m,
                         " in equal blocks of consecutive devices"));
    for (int i = m.rank; i-- > 0;) {
      const int a = m.order[i];
      s.extent_[a] = m.size(a) / grid[a];
      s.first_.at[a] = process % grid[a] * s.extent_[a];
      process /= grid[a];
    }
    return s;
  }

  const partita::mesh& mesh() const { return *mesh_; }
  /// Returns the number of copies of a value that varies over these axes.
  std::int64_t copies(axis_set axes) const {
    std::int64_t n = 1;
    for (int a = 0; a < mesh_->rank; ++a)
      if (axes.contains(a)) n *= extent_[a];
    return n;
  }
  /// Returns the copy of the device at `c`, which must be in the set.
  std::int64_t copy_at(axis_set axes, const coordinates& c) const {
    std::int64_t n = 0;
    for (int a = 0; a < mesh_->rank; ++a)
      if (axes.contains(a)) n = n * extent_[a] + c.at[a] - first_.at[a];
    return n;
  }
  /// Returns the coordinates of a device of the set that has this copy.
  coordinates coordinates_of(axis_set axes, std::int64_t copy) const {
    coordinates c = first_;
    for (int a = mesh_->rank; a-- > 0;)
      if (axes.contains(a)) {
        c.at[a] += copy % extent_[a];
        copy /= extent_[a];
      }
    return c;
  }

  // ---- The grid of processes -------------------------------------------------------------------

  /// Returns the size of this process's group: the processes that differ along these axes only.
  std::int64_t processes(axis_set along) const {
    std::int64_t n = 1;
    for (int a = 0; a < mesh_->rank; ++a)
      if (along.contains(a)) n *= mesh_->size(a) / extent_[a];
    return n;
  }
  /// Returns the number of the process that holds the device at `c`, in the order of device
  /// numbers.
  std::int64_t process_of(const coordinates& c) const {
    std::int64_t n = 0;
    for (int i = 0; i < mesh_->rank; ++i) {
      const int a = mesh_->order[i];
      n = n * (mesh_->size(a) / extent_[a]) + c.at[a] / extent_[a];
    }
    return n;
  }
  std::int64_t this_process() const { return process_of(first_); }
  /// Returns the devices of member `i` of this process's group along these axes, numbered
  /// row-major.
  device_set member(axis_set along, std::int64_t i) const {
    device_set s = *this;
    for (int a = mesh_->rank; a-- > 0;)
      if (along.contains(a)) {
        const std::int64_t n = mesh_->size(a) / extent_[a];
        s.first_.at[a] = i % n * extent_[a];
        i /= n;
      }
    return s;
  }

 private:
  explicit device_set(const partita::mesh& m) : mesh_(&m) {}

  const partita::mesh* mesh_;
  coordinates first_;
  std::int64_t extent_[max_axes] = {};
};

}  // namespace partita::run_detail
