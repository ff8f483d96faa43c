/// The transport of blocks over MPI.
#pragma once

#include <algorithm>
#include <deque>
#include <functional>
#include <span>
#include <vector>

#include <partita/backend/mpi/options.hpp>
#include <partita/backend/mpi/watch.hpp>
#include <partita/ir/collective.hpp>
#include <partita/run/transport/transport.hpp>

namespace partita::backend_detail {

/// A function that names an op in errors.
using describe_function = std::function<text(const run_detail::transport_use&)>;

/// A transport on a communicator whose ranks are the process numbers.
class mpi_transport final : public run_detail::transport {
 public:
  /// `ranks`: the ranks of the communicator, as the watch numbers them.
  mpi_transport(const run_detail::device_set& devices, MPI_Comm comm, std::vector<int> ranks,
                watch& watched, double deadline, bool native, describe_function describe)
      : transport(devices),
        comm_(comm),
        ranks_(std::move(ranks)),
        watch_(watched),
        deadline_(deadline),
        native_(native),
        describe_(std::move(describe)) {}
  ~mpi_transport() override {
    for (auto& [axes, group] : groups_) MPI_Comm_free(&group.comm);
  }
  const mpi::traffic& counted() const { return traffic_; }
  /// Makes the communicators of all groups along these axes. All processes must call it.
  void make_groups(axis_set along) {
    if (devices().processes(along) == 1 || find_group(along) != nullptr) return;
    group g;
    int key = 0;
    for (std::int64_t i = 0; i < devices().processes(along); ++i) {
      const std::int64_t p = devices().member(along, i).this_process();
      if (p == devices().this_process()) key = static_cast<int>(i);
      g.members.push_back(ranks_[static_cast<std::size_t>(p)]);
    }
    const std::int64_t color = devices().member(along, 0).this_process();
    need(MPI_Comm_split(comm_, static_cast<int>(color), key, &g.comm), "MPI_Comm_split");
    MPI_Comm_set_errhandler(g.comm, MPI_ERRORS_RETURN);
    groups_.push_back({along, std::move(g)});
  }

  ticket start_gather(axis_set along, const std::byte* mine, std::int64_t bytes,
                      std::byte* all) override {
    const group* g = find_group(along);
    if (g == nullptr) return transport::start_gather(along, mine, bytes, all);
    const ticket t = begin(static_cast<std::int64_t>(g->members.size() - 1) * bytes);
    pending& p = pending_[static_cast<std::size_t>(t)];
    p.group = &g->members;
    p.requests.resize(1);
    const byte_count n(bytes);
    need(MPI_Iallgather(mine, n.count(), n.type(), all, n.count(), n.type(), g->comm,
                        p.requests.data()),
         "MPI_Iallgather");
    return t;
  }
  ticket start_exchange(std::span<const run_detail::message> sends,
                        std::span<const run_detail::message> receives) override {
    std::int64_t bytes = 0;
    for (const auto& m : sends) bytes += m.bytes;
    const ticket t = begin(bytes);
    pending& p = pending_[static_cast<std::size_t>(t)];
    constexpr int tag = 0;  // messages of two processes arrive in the order of their calls
    for (const auto& m : receives) {
      const byte_count n(m.bytes);
      need(MPI_Irecv(m.data, n.count(), n.type(), static_cast<int>(m.peer), tag, comm_, &add(p, m)),
           "MPI_Irecv");
    }
    for (const auto& m : sends) {
      const byte_count n(m.bytes);
      need(MPI_Isend(m.data, n.count(), n.type(), static_cast<int>(m.peer), tag, comm_, &add(p, m)),
           "MPI_Isend");
    }
    return t;
  }
  bool reduces(combiner c, dtype t) const override {
    const bool extreme = c == combiner::max || c == combiner::min;
    return native_ && native_type(t) != MPI_DATATYPE_NULL && native_op(c) != MPI_OP_NULL &&
           !(extreme && is_floating(t));  // MPI_MAX may lose a NaN
  }
  void reduce(axis_set along, combiner c, const tensor_type& type, const std::byte* mine,
              std::byte* result) override {
    const group& g = *find_group(along);
    constexpr std::int64_t most = std::int64_t{1} << 30;  // MPI counts elements in an int
    const std::int64_t n = type.shape.elements(), size = size_of(type.element);
    for (std::int64_t i = 0; i < n; i += most) {
      const std::int64_t count = std::min(most, n - i);
      const ticket t = begin(bytes_sent(collective::all_reduce,
                                        static_cast<std::int64_t>(g.members.size()), count * size));
      pending& p = pending_[static_cast<std::size_t>(t)];
      p.group = &g.members;
      p.requests.resize(1);
      need(MPI_Iallreduce(mine + i * size, result + i * size, static_cast<int>(count),
                          native_type(type.element), native_op(c), g.comm, p.requests.data()),
           "MPI_Iallreduce");
      finish(t);
    }
  }
  void finish(ticket t) override {
    pending& p = pending_[static_cast<std::size_t>(t)];
    const waiting here{p.call, [this] { return describe_(now); }, p.group != nullptr};
    watch_.wait(
        here, deadline_,
        [&] {
          int done = 0;
          need(MPI_Testall(static_cast<int>(p.requests.size()), p.requests.data(), &done,
                           MPI_STATUSES_IGNORE),
               "MPI_Testall");
          return done != 0;
        },
        [&] { return missing(p); });
    traffic_.seconds += seconds_now() - p.start;
    p.requests.clear();
    p.peers.clear();
    p.group = nullptr;
  }

 private:
  struct group {
    MPI_Comm comm = MPI_COMM_NULL;
    std::vector<int> members;  // ranks
  };
  struct pending {
    std::vector<MPI_Request> requests;
    std::vector<std::int64_t> peers;  // by request; empty for a gather
    const std::vector<int>* group = nullptr;
    std::int64_t call = 0;
    double start = 0;
  };

  /// Returns a ticket whose pending call has no requests yet.
  ticket begin(std::int64_t bytes) {
    ++traffic_.calls;
    traffic_.bytes += bytes;
    std::size_t t = 0;
    while (t < pending_.size() && !pending_[t].requests.empty()) ++t;
    if (t == pending_.size()) pending_.emplace_back();
    pending_[t].call = ++call_;
    pending_[t].start = seconds_now();
    return static_cast<ticket>(t);
  }
  const group* find_group(axis_set along) const {
    for (const auto& [axes, g] : groups_)
      if (axes == along) return &g;
    return nullptr;
  }
  static MPI_Request& add(pending& p, const run_detail::message& m) {
    p.peers.push_back(m.peer);
    p.requests.push_back(MPI_REQUEST_NULL);
    return p.requests.back();
  }
  /// Returns the ranks that have not arrived. It tests each request, because MPI_Testall leaves
  /// finished requests as they are until all are finished, and a peer may finish its part and then
  /// leave.
  std::vector<int> missing(pending& p) const {
    if (p.group != nullptr) return *p.group;
    std::vector<int> list;
    for (std::size_t i = 0; i < p.peers.size(); ++i) {
      int done = 0;
      need(MPI_Test(&p.requests[i], &done, MPI_STATUS_IGNORE), "MPI_Test");
      const int r = ranks_[static_cast<std::size_t>(p.peers[i])];
      if (done == 0 && std::find(list.begin(), list.end(), r) == list.end()) list.push_back(r);
    }
    return list;
  }
  MPI_Comm comm_;
  std::vector<int> ranks_;
  watch& watch_;
  double deadline_;
  bool native_;
  describe_function describe_;
  std::int64_t call_ = 0;
  mpi::traffic traffic_;
  std::deque<pending> pending_;  // by ticket
  std::deque<std::pair<axis_set, group>> groups_;
};

}  // namespace partita::backend_detail
