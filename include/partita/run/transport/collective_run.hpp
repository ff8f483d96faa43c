/// Collectives on blocks: the same code for an emulated mesh, for threads and for MPI.
#pragma once

#include <span>
#include <vector>

#include <partita/run/thread_pool.hpp>
#include <partita/run/transport/accumulator.hpp>
#include <partita/run/transport/block_plan.hpp>
#include <partita/run/transport/collective_boxes.hpp>

namespace partita::run_detail {

/// One operand of a collective, and its result.
struct collective_operand {
  tensor_type from, to;         ///< on each device
  axis_set from_axes, to_axes;  ///< axes over which they vary
};

/// A collective of one or more tensors, planned once for a process: the blocks that it sends, and
/// the positions of the blocks of its results. All tensors share the same messages.
///
/// A large all_reduce is a reduce-scatter of its elements among the processes and an all-gather of
/// the sums, each with (n - 1)/n of the bytes. In a small one, every process combines all operands.
///
/// Results are combined in the order of the members, axes major to minor, so they depend neither on
/// the transport nor on the number of threads.
class collective_run {
 public:
  /// `find`: how elements are combined, as find_combine of kernels/library.hpp.
  collective_run(const device_set& devices, const collective& what,
                 std::vector<collective_operand> operands,
                 block_function (*find)(combiner, dtype))
      : devices_(devices), what_(what), operands_(std::move(operands)), find_(find) {
    for (const auto& each : operands_)
      boxes_.emplace_back(devices_.mesh(), what_, each.from.shape, each.to.shape);
    alone_ = processes() == 1;
    if (alone_) return;
    in_parts_ = is_in_parts();
    plan();
    if (in_parts_) plan_sums();
    gathers_ = can_gather();
  }

  /// Runs the collective. `from` and `to` are the copies by operand; `messages` is memory for
  /// messages.
  void run(transport& t, std::span<const std::byte* const> from, std::span<std::byte* const> to,
           thread_pool& threads, std::span<scratch> memory, scratch& messages) const {
    if (!alone_ && is_native(t)) {
      for (std::size_t k = 0; k < operands_.size(); ++k)
        t.reduce(what_.along(), what_.combine, operands_[k].to, from[k], to[k]);
      return;
    }
    const std::byte* received = alone_ ? nullptr : receive(t, from, messages);
    for (std::size_t k = 0; k < operands_.size(); ++k)
      threads.parallel_for(devices_.copies(operands_[k].to_axes), [&](int thread, std::int64_t j) {
        scratch& mine = memory[at(thread)];
        mine.reset();
        compute(k, j, from[k], received, to[k] + j * padded_bytes(operands_[k].to), mine);
      });
    if (in_parts_) finish_parts(t, to, messages);
  }

 private:
  /// Size up to which all members combine all operands of an all_reduce: one message is then faster
  /// than two.
  static constexpr std::int64_t small_bytes = 4096;

  // ---- Planning --------------------------------------------------------------------------------

  /// Returns the device whose operand sender `i` provides. A sender differs from the receiver only
  /// along axes over which the operand varies, so that equal copies are not sent.
  coordinates source_of(std::size_t k, const coordinates& here, std::int64_t i) const {
    const coordinates there = boxes_[k].sender(here, i);
    coordinates c = here;
    for (const auto& e : what_.axes)
      if (operands_[k].from_axes.contains(e.axis)) c.at[e.axis] = there.at[e.axis];
    return c;
  }
  /// Finds the blocks that this process sends and receives. In a reduction in parts, these are the
  /// parts of each operand that the receiver sums.
  void plan() {
    const std::int64_t me = devices_.this_process();
    first_block_.resize(operands_.size());
    for (std::int64_t q = 0; q < processes(); ++q) {
      const device_set receiver = devices_.member(what_.along(), q);
      if (receiver.this_process() == me) number_ = q;
      for (std::size_t k = 0; k < operands_.size(); ++k)
        for (std::int64_t j = 0; j < receiver.copies(operands_[k].to_axes); ++j) {
          const coordinates here = receiver.coordinates_of(operands_[k].to_axes, j);
          if (receiver.this_process() == me) first_block_[k].push_back(from_.size());
          for (std::int64_t i = 0; i < boxes_[k].senders(here); ++i)
            plan_block(k, here, source_of(k, here, i), q, receiver.this_process());
        }
    }
    first_.settle();
  }
  void plan_block(std::size_t k, const coordinates& here, const coordinates& source,
                  std::int64_t member, std::int64_t to) {
    const std::int64_t me = devices_.this_process(), owner = devices_.process_of(source),
                       size = size_of(operands_[k].from.element);
    const block b = block_for(k, here, member, source, owner == me);
    if (to == me)
      from_.push_back(owner == me ? block_plan::received{}
                                  : first_.receive(owner, b.box.elements(), size));
    else if (owner == me)
      first_.send(to, b, size);
  }
  block block_for(std::size_t k, const coordinates& here, std::int64_t member,
                  const coordinates& source, bool mine) const {
    const std::int64_t copy = mine ? devices_.copy_at(operands_[k].from_axes, source) : 0;
    if (in_parts_) return block_of(k, copy, part_of(k, member));
    return {static_cast<int>(k), copy, boxes_[k].begin_in_operand(here), boxes_[k].box()};
  }
  bool is_in_parts() const {
    std::int64_t bytes = 0;
    bool varies = true;
    for (const auto& each : operands_) {
      bytes += each.from.bytes();
      varies = varies && (what_.along() - each.from_axes - ones()).empty();
    }
    return what_.kind == collective::all_reduce && bytes > small_bytes && varies;
  }
  axis_set ones() const {
    axis_set s;
    for (int a = 0; a < devices_.mesh().rank; ++a)
      if (devices_.mesh().size(a) == 1) s.insert(a);
    return s;
  }
  /// Elements [begin, end) of a tensor, whose sum one process computes.
  struct part {
    std::int64_t begin = 0, end = 0;
  };
  part part_of(std::size_t k, std::int64_t process) const {
    const std::int64_t n = operands_[k].to.shape.elements(),
                       each = round_up((n + processes() - 1) / processes(), lanes);
    return {std::min(n, process * each), std::min(n, (process + 1) * each)};
  }
  std::int64_t processes() const { return devices_.processes(what_.along()); }
  static block block_of(std::size_t k, std::int64_t copy, const part& p) {
    block b{static_cast<int>(k), copy, {}, shape{p.end - p.begin}};
    b.begin.at[0] = p.begin;
    return b;
  }
  /// Plans the second round of a reduction in parts: the sums go to all members.
  void plan_sums() {
    for (std::int64_t q = 0; q < processes(); ++q) {
      const std::int64_t other = devices_.member(what_.along(), q).this_process();
      if (q == number_) continue;
      for (std::size_t k = 0; k < operands_.size(); ++k)
        for (std::int64_t j = 0; j < devices_.copies(operands_[k].to_axes); ++j) {
          const std::int64_t size = size_of(operands_[k].to.element);
          const part theirs = part_of(k, q);
          second_.send(other, block_of(k, j, part_of(k, number_)), size);
          sums_.push_back({k, j, theirs, second_.receive(other, theirs.end - theirs.begin, size)});
        }
    }
    second_.settle();
  }
  /// True if the transport's gather applies: one operand with one copy, which goes completely to
  /// every member.
  bool can_gather() const {
    const bool all = what_.kind == collective::all_gather || what_.kind == collective::all_reduce;
    return operands_.size() == 1 && !in_parts_ && !first_.empty() && all && is_simple(operands_[0]);
  }
  /// True if each process holds one copy, different from those of the others.
  bool is_simple(const collective_operand& x) const {
    return devices_.copies(x.from_axes) == 1 && devices_.copies(x.to_axes) == 1 &&
           (what_.along() - x.from_axes - ones()).empty() && devices_.copies(what_.along()) == 1;
  }
  bool is_native(const transport& t) const {
    bool all = what_.kind == collective::all_reduce;
    for (const collective_operand& x : operands_)
      all = all && t.reduces(what_.combine, x.to.element) && is_simple(x);
    return all;
  }

  // ---- Running ---------------------------------------------------------------------------------

  std::vector<block_memory> memory_of(std::span<const std::byte* const> first) const {
    std::vector<block_memory> list;
    for (std::size_t k = 0; k < operands_.size(); ++k) {
      tensor_type t = operands_[k].from;
      if (in_parts_) t.shape = shape{t.shape.elements()};
      list.push_back({t, first[k]});
    }
    return list;
  }
  /// Receives the blocks of other processes; returns null if this process needs none.
  const std::byte* receive(transport& t, std::span<const std::byte* const> from,
                           scratch& messages) const {
    messages.reset();
    if (gathers_) return gather(t, from[0], messages);
    return first_.empty() ? nullptr : first_.run(t, memory_of(from), messages);
  }
  /// Gathers all operands in the order of the group's members.
  const std::byte* gather(transport& t, const std::byte* mine, scratch& memory) const {
    const std::int64_t bytes = operands_[0].from.bytes();
    std::byte* all = memory.take(bytes * processes() + alignment + lanes * 8);
    t.gather(what_.along(), mine, bytes, all);
    return all;
  }
  /// A block: its first element, and the shape of the enclosing tensor.
  struct found_block {
    const std::byte* first;
    const shape* around;
    position begin;
  };
  found_block find(std::size_t k, std::int64_t j, const coordinates& here, std::int64_t i,
                   const std::byte* from, const std::byte* received) const {
    const collective_operand& x = operands_[k];
    if (gathers_) {
      const device_set all = device_set::all(devices_.mesh());
      const std::int64_t member = all.copy_at(what_.along(), source_of(k, here, i));
      return {received + member * x.from.bytes(), &boxes_[k].box(), {}};
    }
    if (received != nullptr) {
      const block_plan::received& b = from_[first_block_[k][at(j)] + at(i)];
      if (b.message >= 0) return {first_.find(received, b), &boxes_[k].box(), {}};
    }
    const std::int64_t copy = devices_.copy_at(x.from_axes, source_of(k, here, i)),
                       skipped = summed(k).begin * size_of(x.from.element);
    return {from + copy * padded_bytes(x.from) + skipped, &x.from.shape,
            boxes_[k].begin_in_operand(here)};
  }
  /// Computes copy j of result k.
  void compute(std::size_t k, std::int64_t j, const std::byte* from, const std::byte* received,
               std::byte* out, scratch& memory) const {
    const collective_operand& x = operands_[k];
    if (x.to.shape.elements() == 0) return;
    const coordinates here = devices_.coordinates_of(x.to_axes, j);
    const std::int64_t size = size_of(x.to.element), senders = boxes_[k].senders(here);
    if (what_.reduces()) return reduce(k, j, here, from, received, out, memory);
    if (senders == 0) return fill_with_identity(what_.combine, x.to, out);
    for (std::int64_t i = 0; i < senders; ++i) {
      const found_block b = find(k, j, here, i, from, received);
      copy_box(size, boxes_[k].box(), *b.around, b.begin.at, b.first, x.to.shape,
               boxes_[k].begin_in_result(boxes_[k].sender(here, i)).at, out);
    }
  }
  /// Returns the elements that this process reduces.
  part summed(std::size_t k) const {
    return in_parts_ ? part_of(k, number_) : part{0, operands_[k].to.shape.elements()};
  }
  void reduce(std::size_t k, std::int64_t j, const coordinates& here, const std::byte* from,
              const std::byte* received, std::byte* out, scratch& memory) const {
    const collective_operand& x = operands_[k];
    // All members hold the same copy, and combining equal values leaves them unchanged.
    const bool one_is_all =
        idempotent(what_.combine) && (axes_of(devices_.mesh(), what_.axes) & x.from_axes).empty();
    const part mine = summed(k);
    if (mine.begin == mine.end) return;
    accumulator sum(find_(what_.combine, x.to.element), x.to.element, mine.end - mine.begin, memory);
    std::byte* cut = nullptr;
    for (std::int64_t i = 0; i < (one_is_all ? 1 : boxes_[k].senders(here)); ++i) {
      const found_block b = find(k, j, here, i, from, received);
      if (in_parts_ || *b.around == boxes_[k].box()) {
        sum.add(b.first);
        continue;
      }
      if (cut == nullptr) cut = memory.take(padded_bytes(x.to));
      copy_box(size_of(x.to.element), boxes_[k].box(), *b.around, b.begin.at, b.first,
               boxes_[k].box(), nullptr, cut);
      sum.add(cut);
    }
    sum.store(out + mine.begin * size_of(x.to.element));
  }
  /// Exchanges the sums with the other processes.
  void finish_parts(transport& t, std::span<std::byte* const> to, scratch& messages) const {
    std::vector<block_memory> sums;
    for (std::size_t k = 0; k < operands_.size(); ++k)
      sums.push_back({{operands_[k].to.element, shape{operands_[k].to.shape.elements()}}, to[k]});
    messages.reset();
    const std::byte* received = second_.run(t, sums, messages);
    for (const received_sum& each : sums_) {
      const tensor_type& type = operands_[each.tensor].to;
      const std::int64_t size = size_of(type.element);
      std::memcpy(to[each.tensor] + each.copy * padded_bytes(type) + each.elements.begin * size,
                  second_.find(received, each.place),
                  at((each.elements.end - each.elements.begin) * size));
    }
  }

  /// A sum that another process computed.
  struct received_sum {
    std::size_t tensor = 0;
    std::int64_t copy = 0;
    part elements;
    block_plan::received place;
  };

  device_set devices_;
  collective what_;
  std::vector<collective_operand> operands_;
  block_function (*find_)(combiner, dtype);
  std::vector<collective_boxes> boxes_;
  bool alone_ = true, in_parts_ = false, gathers_ = false;
  std::int64_t number_ = 0;  // of this process in its group
  block_plan first_, second_;
  std::vector<block_plan::received> from_;             // by block; message -1: on this process
  std::vector<std::vector<std::size_t>> first_block_;  // by operand and copy
  std::vector<received_sum> sums_;
};

}  // namespace partita::run_detail
