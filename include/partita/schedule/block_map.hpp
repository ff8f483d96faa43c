/// The devices that hold each block of a value.
#pragma once

#include <cstdint>

#include <partita/schedule/partitioned.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// The blocks of a sharded value in row-major order, and the devices that hold them.
class block_map {
 public:
  constexpr block_map(const sharded_value& s, const mesh& m) : s_(s), mesh_(m) {
    for (int d = 0; d < rank(); ++d) {
      pieces_[d] = s.sharding.pieces(m, d);
      blocks_ *= pieces_[d];
      if (pieces_[d] > 1) cut_.push_back(d);
    }
  }
  constexpr int rank() const { return s_.global_shape.rank; }
  constexpr std::int64_t blocks() const { return blocks_; }
  constexpr std::int64_t pieces(int dim) const { return pieces_[dim]; }
  /// Returns the dimensions that are sharded.
  constexpr const vec<int>& cut() const { return cut_; }
  /// Return the range [begin, end) of elements that a block has along a dimension. Elements from
  /// `global_shape` on are padding.
  constexpr std::int64_t begin(int dim, std::int64_t piece) const {
    return piece * s_.local_shape[dim];
  }
  constexpr std::int64_t end(int dim, std::int64_t piece) const {
    return (piece + 1) * s_.local_shape[dim];
  }
  constexpr text range(int dim, std::int64_t piece) const {
    const std::int64_t from = begin(dim, piece), to = end(dim, piece), whole = s_.global_shape[dim];
    if (to <= whole) return concat(from, ':', to);
    if (from >= whole) return concat(from, ':', to, " (padding)");
    return concat(from, ':', to, " (", to - whole, " padding)");
  }
  /// Returns the index of a device's block along a dimension.
  constexpr std::int64_t piece_of(std::int64_t device, int dim) const {
    std::int64_t piece = 0;
    for (const auto& e : s_.sharding)
      if (e.dim == dim) piece = piece * mesh_.size(e.axis) + place(device, e.axis);
    return piece;
  }
  /// Returns the number of the block that a device holds.
  constexpr std::int64_t block_of(std::int64_t device) const {
    std::int64_t block = 0;
    for (int d = 0; d < rank(); ++d) block = block * pieces_[d] + piece_of(device, d);
    return block;
  }
  /// Returns, for each block, the devices that hold it.
  constexpr vec<vec<std::int64_t>> holders() const {
    vec<vec<std::int64_t>> list(static_cast<std::size_t>(blocks_), vec<std::int64_t>());
    for (std::int64_t device = 0; device < mesh_.devices(); ++device)
      list[static_cast<std::size_t>(block_of(device))].push_back(device);
    return list;
  }
  /// Returns the first `most` devices that hold a block, by device number. `pieces` is the block's
  /// index along each dimension.
  constexpr vec<std::int64_t> holders_of(const std::int64_t (&pieces)[max_rank],
                                         std::int64_t most) const {
    std::int64_t at[max_axes] = {}, rest[max_rank] = {};
    for (int d = 0; d < rank(); ++d) rest[d] = pieces[d];
    for (int i = s_.sharding.count; i-- > 0;) {
      const layout::entry e = s_.sharding[i];
      at[e.axis] = rest[e.dim] % mesh_.size(e.axis);
      rest[e.dim] /= mesh_.size(e.axis);
    }
    vec<std::int64_t> list;
    for (std::int64_t copy = 0; copy < copies() && copy < most; ++copy) {
      std::int64_t left = copy, device = 0, stride = 1;
      for (int i = mesh_.rank; i-- > 0;) {
        const int a = mesh_.order[i];
        const bool free = s_.sharding.dim_of(a) < 0;
        device += stride * (free ? left % mesh_.size(a) : at[a]);
        if (free) left /= mesh_.size(a);
        stride *= mesh_.size(a);
      }
      list.push_back(device);
    }
    return list;
  }
  /// Returns the number of devices that hold the same block.
  constexpr std::int64_t copies() const { return mesh_.devices() / blocks_; }
  /// Returns `0 1 2 3`; a long list is shortened to its beginning and its length.
  static constexpr text names(const vec<std::int64_t>& devices, std::size_t most = 8) {
    text out;
    for (std::size_t i = 0; i < devices.size() && i < most; ++i)
      out << (i > 0 ? " " : "") << devices[i];
    if (devices.size() > most) out << " ... (" << devices.size() << ')';
    return out;
  }
  /// Returns `w [{"B"}, {"M"}] : tensor<8x16xf32>, on each device tensor<2x8xf32>`.
  constexpr text title() const {
    text out;
    out << name_text(s_.name) << ' ';
    print_layout(out, s_.sharding, rank(), mesh_);
    out << " : " << tensor_type{s_.element, s_.global_shape} << ", on each device "
        << tensor_type{s_.element, s_.local_shape};
    return out;
  }

 private:
  const sharded_value& s_;
  const mesh& mesh_;
  std::int64_t pieces_[max_rank] = {};
  std::int64_t blocks_ = 1;
  vec<int> cut_;

  /// Returns the position of a device along an axis.
  constexpr std::int64_t place(std::int64_t device, int axis) const {
    for (int i = mesh_.rank; i-- > 0;) {
      const int a = mesh_.order[i];
      if (a == axis) return device % mesh_.size(a);
      device /= mesh_.size(a);
    }
    return 0;
  }
};

}  // namespace partita::schedule_detail
