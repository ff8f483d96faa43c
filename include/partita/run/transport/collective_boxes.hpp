/// Collectives as boxes: maps a box of a sender's operand to a box of a receiver's result.
#pragma once

#include <partita/ir/collective.hpp>
#include <partita/run/memory/coordinates.hpp>

namespace partita::run_detail {

/// The six collectives in one form. The result of a device consists of boxes of equal extents, one
/// from each sender: placed side by side, or combined in the order of the members.
class collective_boxes {
 public:
  collective_boxes(const mesh& m, const collective& what, const shape& from, const shape& to)
      : mesh_(&m), what_(what), from_(from), to_(to), box_(from), members_(what.members(m)) {
    if (what.kind == collective::reduce_scatter || what.kind == collective::all_slice) box_ = to;
    if (what.kind == collective::all_to_all)
      for (const auto& e : what.axes) box_[e.dim] = to[e.dim];
  }

  const shape& box() const { return box_; }
  /// Returns the position of the receiver's box in the operand of a sender.
  position begin_in_operand(const coordinates& receiver) const {
    const bool cuts = what_.kind != collective::all_gather &&
                      what_.kind != collective::all_reduce && what_.kind != collective::permute;
    return cuts ? start_of(*mesh_, what_.axes, box_, receiver) : position{};
  }
  /// Returns the position of the sender's box in the result.
  position begin_in_result(const coordinates& sender) const {
    if (what_.kind == collective::all_gather) return start_of(*mesh_, what_.axes, from_, sender);
    if (what_.kind == collective::all_to_all)
      return start_of(*mesh_, what_.gathers(), from_, sender);
    return {};
  }
  /// Returns the number of senders, at most one for a slice and a permute.
  std::int64_t senders(const coordinates& receiver) const {
    if (what_.kind == collective::all_slice) return 1;
    if (what_.kind == collective::permute) return sender(receiver) == device_map::nobody ? 0 : 1;
    return members_;
  }
  /// Returns sender `i`, in the order in which reductions combine.
  coordinates sender(const coordinates& receiver, std::int64_t i) const {
    if (what_.kind == collective::all_slice) return receiver;
    if (what_.kind == collective::permute) i = sender(receiver);
    return member_at(*mesh_, what_.axes, i, receiver);
  }

 private:
  std::int64_t sender(const coordinates& receiver) const {
    return what_.sender(member_of(*mesh_, what_.axes, receiver), *mesh_);
  }

  const mesh* mesh_;
  collective what_;
  shape from_, to_, box_;
  std::int64_t members_;
};

}  // namespace partita::run_detail
