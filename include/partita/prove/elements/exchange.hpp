/// Devices, their shards, and collectives.
#pragma once

#include <partita/prove/elements/tensors.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail {

/// The devices of a mesh, numbered in the order of its axes.
class devices {
 public:
  constexpr explicit devices(const mesh& m) : mesh_(m) {
    std::int64_t step = 1;
    for (int a = m.rank; a-- > 0; step *= m.size(a)) step_[a] = step;
    count_ = step;
  }
  constexpr std::int64_t count() const { return count_; }
  constexpr const partita::mesh& mesh() const { return mesh_; }
  constexpr std::int64_t along(int axis, std::int64_t device) const {
    return device / step_[axis] % mesh_.size(axis);
  }
  constexpr std::int64_t moved(std::int64_t device, int axis, std::int64_t to) const {
    return device + (to - along(axis, device)) * step_[axis];
  }
  /// The number of a device's shard along a dimension.
  constexpr std::int64_t piece(const layout& l, int dim, std::int64_t device) const {
    std::int64_t n = 0;
    for (const auto& e : l)
      if (e.dim == dim) n = n * mesh_.size(e.axis) + along(e.axis, device);
    return n;
  }
  /// The device with shard `n` that differs only along the axes of a dimension.
  constexpr std::int64_t with_piece(const layout& l, int dim, std::int64_t n,
                                    std::int64_t device) const {
    for (int i = l.count; i-- > 0;) {
      const auto e = l[i];
      if (e.dim != dim) continue;
      device = moved(device, e.axis, n % mesh_.size(e.axis));
      n /= mesh_.size(e.axis);
    }
    return device;
  }
  /// The position of a shard's element in the global tensor.
  constexpr place whole(const layout& l, const shape& piece_shape, place i,
                        std::int64_t device) const {
    for (int d = 0; d < piece_shape.rank; ++d) i[d] += piece(l, d, device) * piece_shape[d];
    return i;
  }

 private:
  const partita::mesh& mesh_;
  std::int64_t step_[max_axes] = {}, count_ = 1;
};

/// The result of a collective, by its definition.
class exchanged {
 public:
  constexpr exchanged(algebra& a, const devices& on, const collective& what, const tensors& from,
                      tensors& to)
      : a_(a), on_(on), what_(what), from_(from), to_(to) {}

  constexpr void fill() {
    for (std::int64_t d = 0; d < on_.count(); ++d)
      for_each_place(to_.type.shape,
                     [&](const place& i, std::int64_t n) { to_.on(d)[n] = at(i, d); });
  }

 private:
  algebra& a_;
  const devices& on_;
  const collective& what_;
  const tensors& from_;
  tensors& to_;

  constexpr const element& read(const place& i, std::int64_t device) const {
    return from_.on(device)[number_of(i, from_.type.shape)];
  }
  constexpr element at(const place& i, std::int64_t device) const {
    switch (what_.kind) {
      case collective::all_gather:
        return gathered(what_.axes, i, device);
      case collective::all_slice:
        return read(sliced(i, device), device);
      case collective::all_reduce:
        return reduced(i, device);
      case collective::reduce_scatter:
        return reduced(sliced(i, device), device);
      case collective::all_to_all:
        return gathered(what_.gathers(), sliced(i, device), device);
      case collective::permute:
        break;
    }
    return sent(i, device);
  }
  constexpr element gathered(const layout& l, place i, std::int64_t device) const {
    for (int d = 0; d < from_.type.shape.rank; ++d) {
      const std::int64_t extent = from_.type.shape[d];
      if (l.pieces(on_.mesh(), d) == 1) continue;
      device = on_.with_piece(l, d, i[d] / extent, device);
      i[d] %= extent;
    }
    return read(i, device);
  }
  constexpr place sliced(place i, std::int64_t device) const {
    for (int d = 0; d < to_.type.shape.rank; ++d)
      i[d] += on_.piece(what_.axes, d, device) * to_.type.shape[d];
    return i;
  }
  constexpr element reduced(const place& i, std::int64_t device) const {
    vec<element> all;
    const std::int64_t members = what_.members(on_.mesh());
    for (std::int64_t k = 0; k < members; ++k) all.push_back(read(i, member(k, device)));
    return a_.combined(what_.combine, from_.type.element, all);
  }
  /// Member `k` of a device's group.
  constexpr std::int64_t member(std::int64_t k, std::int64_t device) const {
    for (int i = what_.axes.count; i-- > 0;) {
      const int axis = what_.axes[i].axis;
      device = on_.moved(device, axis, k % on_.mesh().size(axis));
      k /= on_.mesh().size(axis);
    }
    return device;
  }
  constexpr element sent(const place& i, std::int64_t device) const {
    std::int64_t own = 0;
    for (const auto& e : what_.axes)
      own = own * on_.mesh().size(e.axis) + on_.along(e.axis, device);
    const std::int64_t from = what_.sender(own, on_.mesh());
    if (from == device_map::nobody) return identity_of(what_.combine, to_.type.element);
    return read(i, member(from, device));
  }
};

}  // namespace partita::prove_detail
