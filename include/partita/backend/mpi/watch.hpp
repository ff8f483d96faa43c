/// Waits with a limit: a rank that waits too long reports which ranks it waits for.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include <partita/backend/mpi/calls.hpp>

namespace partita::backend_detail {

inline double seconds_now() {
  using clock = std::chrono::steady_clock;
  return std::chrono::duration<double>(clock::now().time_since_epoch()).count();
}

/// A call in which a rank waits.
struct waiting {
  std::int64_t call = 0;            ///< number of the call on this rank, from 1; 0: not counted
  std::function<text()> what = {};  ///< `all_gather <"B"> of %w1`
  /// True if all members of a group take part, so that the members which have not arrived are
  /// unknown.
  bool of_group = false;
};

/// Reports what waiting ranks do. A waiting rank answers requests. After a second of waiting, a
/// rank asks those that it waits for, and only those; so a job that runs well sends nothing.
class watch {
 public:
  explicit watch(MPI_Comm job) {
    need(MPI_Comm_dup(job, &comm_), "MPI_Comm_dup");
    MPI_Comm_set_errhandler(comm_, MPI_ERRORS_RETURN);
    MPI_Comm_rank(comm_, &rank_);
    MPI_Comm_size(comm_, &ranks_);
    answers_.resize(static_cast<std::size_t>(ranks_));
  }
  watch(const watch&) = delete;
  watch& operator=(const watch&) = delete;
  void close() {
    if (comm_ != MPI_COMM_NULL) MPI_Comm_free(&comm_);
  }
  int rank() const { return rank_; }
  int ranks() const { return ranks_; }

  /// Waits until `done()` is true. `missing()` returns the ranks that have not arrived, or all
  /// members of a group.
  ///
  /// Errors    J004 it takes longer than `deadline` seconds (0: no limit), or one of the ranks has
  ///           left the program
  template <class Done, class Missing>
  void wait(const waiting& here, double deadline, const Done& done, const Missing& missing) {
    for (int i = 0; i < spins; ++i)
      if (done()) return;
    here_ = &here;
    const double start = seconds_now();
    double asked = start, checked = start;
    for (auto& a : answers_) a = {};
    while (!done()) {
      std::this_thread::yield();
      const double now = seconds_now();
      if (now - checked < 1e-3) continue;
      checked = now;
      listen();
      const bool late = deadline > 0 && now - start > deadline;
      if (now - asked > (late ? 0.25 : 1)) {
        for (const int r : missing()) ask(r);
        asked = now;
      }
      if (late && now - start > deadline + 0.5) fail(now - start, missing());
      if (const std::vector<int> gone = departed(missing()); !gone.empty()) fail(now - start, gone);
    }
    here_ = nullptr;
  }
  /// Gathers the bytes of all ranks, in the order of ranks, on every rank.
  ///
  /// Errors    J004 a rank does not arrive
  void gather(const void* mine, std::size_t bytes, void* all, double deadline,
              std::string_view what) {
    MPI_Request done_all;
    need(MPI_Iallgather(mine, static_cast<int>(bytes), MPI_BYTE, all, static_cast<int>(bytes),
                        MPI_BYTE, comm_, &done_all),
         "MPI_Iallgather");
    std::vector<int> everyone;
    for (int r = 0; r < ranks_; ++r) everyone.push_back(r);
    const waiting here{0, [&] { return text(what); }, true};
    wait(
        here, deadline, [&] { return is_done(done_all); }, [&] { return everyone; });
  }
  /// Gathers strings, which may have different lengths.
  std::vector<std::string> gather(const std::string& mine, double deadline, std::string_view what) {
    const std::uint64_t size = mine.size();
    std::vector<std::uint64_t> sizes(at(ranks_));
    gather(&size, sizeof size, sizes.data(), deadline, what);
    std::string padded = mine, all;
    padded.resize(*std::max_element(sizes.begin(), sizes.end()));
    all.resize(padded.size() * at(ranks_));
    gather(padded.data(), padded.size(), all.data(), deadline, what);
    std::vector<std::string> list;
    for (int r = 0; r < ranks_; ++r)
      list.push_back(all.substr(at(r) * padded.size(), static_cast<std::size_t>(sizes[at(r)])));
    return list;
  }
  /// Waits until all ranks leave; from now on this rank answers that it has left.
  void leave() {
    left_ = true;
    MPI_Request all;
    if (MPI_Ibarrier(comm_, &all) != MPI_SUCCESS) return;
    const waiting here;
    wait(
        here, 0, [&] { return is_done(all); }, [] { return std::vector<int>{}; });
  }

 private:
  static constexpr int spins = 2000, ask_tag = 1, answer_tag = 2;
  struct answer {
    std::int64_t call = 0;
    std::int32_t left = 0;   // received: 1 if the rank has left; stored: number of such answers
    std::int32_t waits = 0;  // 1 if the rank waits, in `call` and `what`
    char what[232] = {};
    bool came() const { return left > 0 || waits > 0; }
  };

  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  static bool is_done(MPI_Request& r) {
    int done = 0;
    need(MPI_Test(&r, &done, MPI_STATUS_IGNORE), "MPI_Test");
    return done != 0;
  }
  void ask(int rank) {
    if (rank == rank_) return;
    MPI_Request sent;
    if (MPI_Isend(&left_, 0, MPI_BYTE, rank, ask_tag, comm_, &sent) == MPI_SUCCESS)
      MPI_Request_free(&sent);
  }
  /// Answers requests, and stores the answers of others.
  void listen() {
    for (;;) {
      int any = 0;
      MPI_Status from;
      if (MPI_Iprobe(MPI_ANY_SOURCE, MPI_ANY_TAG, comm_, &any, &from) != MPI_SUCCESS || any == 0)
        return;
      if (from.MPI_TAG == ask_tag) {
        MPI_Recv(nullptr, 0, MPI_BYTE, from.MPI_SOURCE, ask_tag, comm_, MPI_STATUS_IGNORE);
        const answer mine = this_rank();
        MPI_Send(&mine, sizeof mine, MPI_BYTE, from.MPI_SOURCE, answer_tag, comm_);
      } else {
        answer& kept = answers_[at(from.MPI_SOURCE)];
        const int left = kept.left;
        MPI_Recv(&kept, sizeof kept, MPI_BYTE, from.MPI_SOURCE, answer_tag, comm_,
                 MPI_STATUS_IGNORE);
        kept.left += kept.left > 0 ? left : 0;
      }
    }
  }
  answer this_rank() const {
    answer a;
    a.left = left_ ? 1 : 0;
    if (here_ == nullptr || left_) return a;
    a.waits = 1;
    a.call = here_->call;
    const text what = here_->what ? here_->what() : text("a check");
    std::snprintf(a.what, sizeof a.what, "%.*s", static_cast<int>(what.view().size()),
                  what.view().data());
    return a;
  }
  /// Returns the ranks that will never arrive because they have left the program. A member of a
  /// group may have left after it took part. So members that left are to blame only if all other
  /// members answer, too.
  std::vector<int> departed(const std::vector<int>& missing) const {
    std::vector<int> gone;
    for (const int r : missing) {
      if (r == rank_) continue;
      if (answers_[at(r)].left > 1) gone.push_back(r);
      if (here_->of_group && !answers_[at(r)].came()) return {};
    }
    return gone;
  }
  /// Throws J004 with the seconds that this rank has waited, the call, and the ranks that it waits
  /// for.
  [[noreturn]] void fail(double waited, const std::vector<int>& missing) {
    const answer mine = this_rank();
    std::vector<int> others;  // without those that wait in the same call
    for (const int r : missing) {
      const answer& a = answers_[at(r)];
      const bool here = a.call == mine.call && std::string_view(a.what) == mine.what;
      if (r != rank_ && !(here_->of_group && here)) others.push_back(r);
    }
    text out = concat("J004 mpi: waited ", static_cast<std::int64_t>(waited), " s in ",
                      text_of(mine), ", for ");
    for (std::size_t i = 0; i < others.size(); ++i) {
      const answer& a = answers_[at(others[i])];
      out << (i > 0 ? ", and for rank " : "rank ") << others[i] << ", which ";
      if (a.left > 0)
        out << "has left the program";
      else if (a.waits != 0)
        out << "waits in " << text_of(a);
      else
        out << "has not arrived and does not answer (it computes, or it has ended)";
    }
    if (others.empty()) out << "a rank that does not answer";
    here_ = nullptr;
    throw error(out);
  }
  /// Returns text such as `call 5, all_gather <"B"> of %w1`.
  static text text_of(const answer& a) {
    text out;
    if (a.call > 0) out << "call " << a.call << ", ";
    return out << std::string_view(a.what);
  }

  MPI_Comm comm_ = MPI_COMM_NULL;
  int rank_ = 0, ranks_ = 1;
  bool left_ = false;
  const waiting* here_ = nullptr;
  std::vector<answer> answers_;  // by rank
};

}  // namespace partita::backend_detail
