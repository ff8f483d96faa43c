/// Which devices a process holds, and so how many copies of a value.
#pragma once

#include <cstdint>

#include <partita/run/memory/varying.hpp>

namespace partita::run_detail {

/// The devices of a mesh whose pieces a process holds: all of them, or one.
///
/// A process that holds all has one copy of a value per distinct coordinate over the axes that the
/// value varies over, so what is replicated is computed once. One that holds one device has one
/// copy of everything.
class device_set {
 public:
  static device_set all(const mesh& m) { return device_set(m); }
  static device_set one(const mesh& m, const coordinates& c) {
    device_set s(m);
    s.only_ = true;
    s.here_ = c;
    return s;
  }

  const partita::mesh& mesh() const { return *mesh_; }
  /// How many copies of a value are held that varies over these axes.
  std::int64_t copies(axis_set axes) const { return only_ ? 1 : copies_over(*mesh_, axes); }
  /// The copy that the device at `c` has, which must be one of these.
  std::int64_t copy_at(axis_set axes, const coordinates& c) const {
    return only_ ? 0 : run_detail::copy_at(*mesh_, axes, c);
  }
  /// Coordinates of a device that has this copy.
  coordinates coordinates_of(axis_set axes, std::int64_t copy) const {
    return only_ ? here_ : run_detail::coordinates_of(*mesh_, axes, copy);
  }

 private:
  explicit device_set(const partita::mesh& m) : mesh_(&m) {}

  const partita::mesh* mesh_;
  bool only_ = false;
  coordinates here_;
};

}  // namespace partita::run_detail
