/// A pool of threads that wait for loops to run.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <partita/support/error.hpp>

namespace partita::run_detail {

/// Runs the iterations of one loop at a time. Any thread may run any iteration, so iterations must
/// be independent; results then do not depend on the number of threads.
class thread_pool {
 public:
  /// Starts `threads - 1` threads; the calling thread is the remaining one.
  ///
  /// Errors    R008 the system cannot start that many
  explicit thread_pool(int threads) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { wait_for_work(i); });
    } catch (const std::system_error&) {
      const int started = size();
      stop();
      throw error(concat("R008 run: ", threads,
                         " threads are too many for this system, which gives ", started,
                         "; set run_options::threads to less"));
    }
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() { stop(); }
  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `f(thread, i)` for i in [0, count), thread in [0, size()); returns when all are done.
  ///
  /// If some iterations throw, those that have not begun are skipped. Then the exception of the
  /// first of them (in the order of i) is thrown here, and the threads wait for the next loop.
  ///
  /// While a loop runs, other loops (of a second caller, or nested in an iteration) run on the
  /// thread that calls them, as thread 0.
  template <class F>
  void parallel_for(std::int64_t count, const F& f) {
    if (workers_.empty() || count <= 1 || taken_.test_and_set(std::memory_order_acquire)) {
      for (std::int64_t i = 0; i < count; ++i) f(0, i);
      return;
    }
    std::unique_lock lock(mutex_);
    call_ = [](const void* g, int thread, std::int64_t i) {
      (*static_cast<const F*>(g))(thread, i);
    };
    body_ = &f;
    next_ = 0;
    count_ = count;
    wake_.notify_all();
    work(0, lock);
    done_.wait(lock, [this] { return busy_ == 0; });
    next_ = count_ = 0;
    const std::exception_ptr thrown = std::exchange(thrown_, nullptr);
    lock.unlock();
    taken_.clear(std::memory_order_release);
    if (thrown) std::rethrow_exception(thrown);
  }

 private:
  void stop() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& w : workers_) w.join();
    workers_.clear();
  }
  void wait_for_work(int thread) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || next_ < count_; });
      if (stop_) return;
      work(thread, lock);
    }
  }
  /// Runs iterations while some are left; the lock is held on entry and exit.
  void work(int thread, std::unique_lock<std::mutex>& lock) {
    while (next_ < count_) {
      const std::int64_t i = next_++;
      ++busy_;
      lock.unlock();
      std::exception_ptr thrown;
      try {
        call_(body_, thread, i);
      } catch (...) {
        thrown = std::current_exception();
      }
      lock.lock();
      --busy_;
      if (!thrown) continue;
      if (!thrown_ || i < thrown_by_) {
        thrown_ = std::move(thrown);
        thrown_by_ = i;
      }
      next_ = count_;
    }
    if (busy_ == 0) done_.notify_all();
  }

  std::vector<std::thread> workers_;
  std::atomic_flag taken_ = ATOMIC_FLAG_INIT;  // a loop uses the pool
  std::mutex mutex_;                           // guards all members below
  std::condition_variable wake_, done_;
  void (*call_)(const void*, int, std::int64_t) = nullptr;
  const void* body_ = nullptr;
  std::int64_t next_ = 0, count_ = 0, busy_ = 0;
  std::exception_ptr thrown_;
  std::int64_t thrown_by_ = 0;
  bool stop_ = false;
};

}  // namespace partita::run_detail
