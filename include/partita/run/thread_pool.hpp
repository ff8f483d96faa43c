/// A few threads that wait for loops to run.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace partita::detail {

/// Runs the iterations of one loop at a time. Which thread runs which iteration is left open, so
/// iterations must be independent; results then do not depend on the number of threads.
class thread_pool {
 public:
  /// The calling thread takes part: `threads - 1` are started.
  explicit thread_pool(int threads) {
    for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { wait_for_work(i); });
  }
  thread_pool(const thread_pool&) = delete;
  thread_pool& operator=(const thread_pool&) = delete;
  ~thread_pool() {
    {
      const std::lock_guard lock(mutex_);
      stop_ = true;
    }
    wake_.notify_all();
    for (auto& w : workers_) w.join();
  }
  int size() const { return static_cast<int>(workers_.size()) + 1; }

  /// Calls `f(thread, i)` for i in [0, count), thread in [0, size()); returns when all are done.
  /// `f` must not throw.
  template <class F>
  void parallel_for(std::int64_t count, const F& f) {
    if (workers_.empty() || count <= 1) {
      for (std::int64_t i = 0; i < count; ++i) f(0, i);
      return;
    }
    const std::lock_guard one_loop(loop_mutex_);
    std::unique_lock lock(mutex_);
    call_ = [](const void* g, int thread, std::int64_t i) {
      (*static_cast<const F*>(g))(thread, i);
    };
    body_ = &f;
    next_ = 0;
    count_ = count;
    busy_ = 0;
    wake_.notify_all();
    work(0, lock);
    done_.wait(lock, [this] { return busy_ == 0; });
    count_ = 0;
  }

 private:
  void wait_for_work(int thread) {
    std::unique_lock lock(mutex_);
    while (true) {
      wake_.wait(lock, [this] { return stop_ || next_ < count_; });
      if (stop_) return;
      work(thread, lock);
    }
  }
  /// Takes iterations while there are any; the lock is held on entry and exit.
  void work(int thread, std::unique_lock<std::mutex>& lock) {
    while (next_ < count_) {
      const std::int64_t i = next_++;
      ++busy_;
      lock.unlock();
      call_(body_, thread, i);
      lock.lock();
      --busy_;
    }
    if (busy_ == 0) done_.notify_all();
  }

  std::vector<std::thread> workers_;
  std::mutex loop_mutex_, mutex_;
  std::condition_variable wake_, done_;
  void (*call_)(const void*, int, std::int64_t) = nullptr;
  const void* body_ = nullptr;
  std::int64_t next_ = 0, count_ = 0, busy_ = 0;
  bool stop_ = false;
};

}  // namespace partita::detail
