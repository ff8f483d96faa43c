/// The blocks that a process sends to each peer, and the positions of those that it receives.
#pragma once

#include <span>
#include <vector>

#include <partita/run/kernels/context.hpp>
#include <partita/run/kernels/strided.hpp>
#include <partita/run/transport/transport.hpp>

namespace partita::run_detail {

/// A tensor that is exchanged: its type in memory, and its copies on this process.
struct block_memory {
  tensor_type type;
  const std::byte* first = nullptr;
  const std::byte* copy(std::int64_t i) const { return first + i * padded_bytes(type); }
};

/// A box of one copy of a tensor.
struct block {
  int tensor = 0;
  std::int64_t copy = 0;
  position begin;
  shape box;
};

/// One round of messages, planned once. Blocks for the same peer are packed into one message.
///
/// Law       both sides add the blocks of a message in the same order
class block_plan {
 public:
  /// A received block: its message, or -1 if it is local, and its first byte in the message.
  struct received {
    std::int64_t message = -1, offset = 0;
  };

  void send(std::int64_t peer, const block& b, std::int64_t element_bytes) {
    outgoing& m = to_peer(sends_, peer);
    m.bytes = round_up(m.bytes, element_bytes);
    m.blocks.push_back({b, m.bytes});
    m.bytes += b.box.elements() * element_bytes;
  }
  received receive(std::int64_t peer, std::int64_t elements, std::int64_t element_bytes) {
    incoming& m = to_peer(receives_, peer);
    m.bytes = round_up(m.bytes, element_bytes);
    const received at{&m - receives_.data(), m.bytes};
    m.bytes += elements * element_bytes;
    return at;
  }
  /// Assigns the messages to the receive buffer; call it after the last block.
  void settle() {
    std::int64_t end = 0;
    for (incoming& m : receives_) {
      m.begin = end;
      end += round_up(m.bytes, alignment);
    }
    buffer_bytes_ = end + alignment + lanes * 8;  // kernels read full groups of lanes
  }
  /// Returns a received block in the buffer that `start` or `run` returned.
  const std::byte* find(const std::byte* buffer, const received& b) const {
    return buffer + receives_[static_cast<std::size_t>(b.message)].begin + b.offset;
  }
  bool empty() const { return sends_.empty() && receives_.empty(); }
  bool receives() const { return !receives_.empty(); }

  /// Messages in flight.
  struct started {
    transport::ticket ticket = -1;
    const std::byte* received = nullptr;  ///< the receive buffer, complete once finished
  };
  /// Packs and begins the exchange; `memory` and the tensors must not change until it is finished.
  started start(transport& t, std::span<const block_memory> tensors, scratch& memory) const {
    std::vector<message> out, in;
    for (const outgoing& m : sends_) {
      std::byte* data = whole(m, tensors);
      if (data == nullptr) {
        data = memory.take(m.bytes);
        for (const auto& [b, offset] : m.blocks) {
          const block_memory& x = tensors[static_cast<std::size_t>(b.tensor)];
          copy_box(size_of(x.type.element), b.box, x.type.shape, b.begin.at, x.copy(b.copy), b.box,
                   nullptr, data + offset);
        }
      }
      out.push_back({m.peer, data, m.bytes});
    }
    std::byte* buffer = memory.take(buffer_bytes_);
    for (const incoming& m : receives_) in.push_back({m.peer, buffer + m.begin, m.bytes});
    return {t.start_exchange(out, in), buffer};
  }
  const std::byte* run(transport& t, std::span<const block_memory> tensors, scratch& memory) const {
    const started s = start(t, tensors, memory);
    t.finish(s.ticket);
    return s.received;
  }

 private:
  struct placed_block {
    block what;
    std::int64_t offset;  // in its message
  };
  struct outgoing {
    std::int64_t peer = 0, bytes = 0;
    std::vector<placed_block> blocks = {};
  };
  struct incoming {
    std::int64_t peer = 0, bytes = 0, begin = 0;
  };

  template <class List>
  static typename List::value_type& to_peer(List& list, std::int64_t peer) {
    for (auto& m : list)
      if (m.peer == peer) return m;
    list.push_back({peer});
    return list.back();
  }
  /// Returns the bytes of a message in place, if it is one block whose elements are contiguous;
  /// else null.
  static std::byte* whole(const outgoing& m, std::span<const block_memory> tensors) {
    if (m.blocks.size() != 1) return nullptr;
    const block& b = m.blocks[0].what;
    const block_memory& x = tensors[static_cast<std::size_t>(b.tensor)];
    const strides stride(x.type.shape);
    std::int64_t offset = 0;
    for (int d = 0; d < b.box.rank; ++d) offset += b.begin.at[d] * stride[d];
    if (partita::run_detail::box(b.box, stride, strides(b.box)).contiguous() < 0) return nullptr;
    return const_cast<std::byte*>(x.copy(b.copy)) + offset * size_of(x.type.element);
  }

  std::vector<outgoing> sends_;
  std::vector<incoming> receives_;
  std::int64_t buffer_bytes_ = 0;
};

}  // namespace partita::run_detail
