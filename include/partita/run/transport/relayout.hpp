/// Converts one layout to another, on the same mesh or on two: each process sends the blocks that
/// both have in common.
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <partita/run/transport/block_plan.hpp>

namespace partita::run_detail {

/// The location of the shards of a tensor.
struct placement {
  device_set devices;  ///< of this process, or, if it holds none, of another process of the mesh
  layout sharding;
  axis_set varies;         ///< axes over which shards vary: those of the layout, and possibly more
  tensor_type local;       ///< of a shard, padding included
  std::int64_t first = 0;  ///< number of the mesh's first process
  bool here = true;        ///< this process holds devices of the mesh

  std::int64_t processes() const { return devices.processes(all_axes(devices.mesh())); }
  device_set process(std::int64_t i) const { return devices.member(all_axes(devices.mesh()), i); }
};

/// The blocks that a process sends, receives and copies to convert shards of one placement into
/// those of another. Among replicas, the sender is the one at the receiver's own coordinates, as
/// far as the meshes have them in common. Elements that only the new shards have are zero.
class relayout {
 public:
  relayout(const placement& from, const placement& to, std::int64_t this_process)
      : from_(from), to_(to), me_(this_process) {
    for (std::int64_t i = 0; i < to.processes(); ++i) plan(to.process(i));
    messages_.settle();
  }

  /// A move in flight, with the arrays that it reads and writes.
  struct started {
    std::vector<array> sources, targets;
    std::unique_ptr<scratch> memory = std::make_unique<scratch>();
    block_plan::started messages = {};
  };
  started start(transport& t, std::vector<array> shards) const {
    started s{std::move(shards), {}};
    for (std::int64_t j = 0; to_.here && j < to_.devices.copies(to_.varies); ++j)
      s.targets.emplace_back(to_.local);
    for (const local_block& b : kept_)
      copy_box(size_of(to_.local.element), b.box, from_.local.shape, b.from.at,
               s.sources[at(b.source)].bytes(), to_.local.shape, b.to.at,
               const_cast<std::byte*>(s.targets[at(b.target)].bytes()));
    if (messages_.empty()) return s;
    std::vector<block_memory> sources;
    for (const array& each : s.sources) sources.push_back({from_.local, each.bytes()});
    s.messages = messages_.start(t, sources, *s.memory);
    return s;
  }
  /// Returns the new shards; empty on a process that holds none.
  std::vector<array> finish(transport& t, started s) const {
    if (s.messages.ticket >= 0) t.finish(s.messages.ticket);
    for (const incoming_block& b : received_)
      copy_box(size_of(to_.local.element), b.box, b.box, nullptr,
               messages_.find(s.messages.received, b.at), to_.local.shape, b.to.at,
               const_cast<std::byte*>(s.targets[at(b.target)].bytes()));
    return std::move(s.targets);
  }
  std::vector<array> run(transport& t, std::vector<array> shards) const {
    return finish(t, start(t, std::move(shards)));
  }
  /// False on a process that only sends: it can continue before the message has arrived.
  bool receives() const { return messages_.receives(); }

 private:
  struct local_block {
    std::int64_t source, target;  // copies
    position from, to;
    shape box;
  };
  struct incoming_block {
    block_plan::received at;
    std::int64_t target;
    position to;
    shape box;
  };

  void plan(const device_set& receiver) {
    for (std::int64_t j = 0; j < receiver.copies(to_.varies); ++j) {
      const coordinates here = receiver.coordinates_of(to_.varies, j);
      position piece;  // by dimension, of the old shards
      plan_dimension(receiver, j, here, piece, 0);
    }
  }
  /// Visits all old shards that have elements of the new one.
  void plan_dimension(const device_set& receiver, std::int64_t j, const coordinates& here,
                      position& piece, int d) {
    if (d == to_.local.shape.rank) return plan_block(receiver, j, here, piece);
    const mesh& m = to_.devices.mesh();
    const std::int64_t begin = piece_of(m, to_.sharding, d, here) * to_.local.shape[d],
                       end = begin + to_.local.shape[d], old = from_.local.shape[d],
                       pieces = from_.sharding.pieces(from_.devices.mesh(), d);
    for (piece.at[d] = old > 0 ? begin / old : 0; piece.at[d] < pieces && piece.at[d] * old < end;
         ++piece.at[d])
      plan_dimension(receiver, j, here, piece, d + 1);
  }
  void plan_block(const device_set& receiver, std::int64_t j, const coordinates& here,
                  const position& piece) {
    const coordinates holder = holder_of(piece, here);
    const std::int64_t owner = from_.first + from_.devices.process_of(holder),
                       target = to_.first + receiver.this_process();
    if (owner != me_ && target != me_) return;
    position from, to;
    shape box = to_.local.shape;
    for (int d = 0; d < box.rank; ++d) {
      const std::int64_t mine = piece_of(to_.devices.mesh(), to_.sharding, d, here) * box[d],
                         old = piece.at[d] * from_.local.shape[d];
      const std::int64_t begin = std::max(mine, old),
                         end = std::min(mine + box[d], old + from_.local.shape[d]);
      from.at[d] = begin - old;
      to.at[d] = begin - mine;
      box[d] = end - begin;
    }
    const std::int64_t size = size_of(to_.local.element),
                       source = owner == me_ ? from_.devices.copy_at(from_.varies, holder) : 0;
    if (owner == me_ && target == me_)
      kept_.push_back({source, j, from, to, box});
    else if (owner == me_)
      messages_.send(target, {static_cast<int>(source), 0, from, box}, size);
    else
      received_.push_back({messages_.receive(owner, box.elements(), size), j, to, box});
  }
  /// Returns a device that holds a shard.
  coordinates holder_of(const position& piece, const coordinates& receiver) const {
    const mesh& m = from_.devices.mesh();
    coordinates c;
    for (int a = 0; a < m.rank && a < to_.devices.mesh().rank; ++a)
      c.at[a] = receiver.at[a] % m.size(a);
    position left = piece;
    for (int i = from_.sharding.count; i-- > 0;) {
      const layout::entry e = from_.sharding[i];
      c.at[e.axis] = left.at[e.dim] % m.size(e.axis);
      left.at[e.dim] /= m.size(e.axis);
    }
    return c;
  }

  placement from_, to_;
  std::int64_t me_;
  block_plan messages_;
  std::vector<local_block> kept_;
  std::vector<incoming_block> received_;
};

}  // namespace partita::run_detail
