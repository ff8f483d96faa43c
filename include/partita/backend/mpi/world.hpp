/// The processes of a job.
#pragma once

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <optional>
#include <string>
#include <string_view>
#include <thread>

#include <partita/backend/mpi/watch.hpp>

namespace partita::mpi {

/// Starts MPI, and ends it with the last use of the object. Create one in `main` before anything
/// else. If MPI is already initialized, it is used and left running.
///
/// An exception that leaves `main`, an error in a run, and std::exit end the whole job at once
/// (MPI_Abort), with a line that names the rank and the reason. A rank that destroys its world
/// waits for the others.
///
/// Only the thread that created the world may call executables, at every level of threads. A
/// key-value store (`processes`) needs MPI_THREAD_MULTIPLE.
class world {
 public:
  world(int& argc, char**& argv, int threads = MPI_THREAD_FUNNELED) {
    int running = 0, level = 0;
    MPI_Initialized(&running);
    if (running == 0) {
      backend_detail::need(MPI_Init_thread(&argc, &argv, threads, &level), "MPI_Init_thread");
      owns_ = true;
    }
    watch_.emplace(MPI_COMM_WORLD);
    current() = this;
    before_ = std::set_terminate(&end_job);
    static const int once = std::atexit(&exited);
    (void)once;
  }
  world(const world&) = delete;
  world& operator=(const world&) = delete;
  ~world() {
    if (std::uncaught_exceptions() > exceptions_)
      fail(
          "an exception left the scope of the world; to see its message, catch it inside or let it "
          "leave main");
    try {
      watch_->leave();
    } catch (const std::exception& e) {
      fail(e.what());
    }
    watch_->close();
    current() = nullptr;
    std::set_terminate(before_);
    if (owns_) MPI_Finalize();
  }

  /// Returns the rank of this process.
  int rank() const { return watch_->rank(); }
  /// Returns the number of processes in the job.
  int ranks() const { return watch_->ranks(); }
  /// True on rank 0, which does the printing.
  bool first() const { return rank() == 0; }
  /// Returns the communicator of the job.
  MPI_Comm communicator() const { return MPI_COMM_WORLD; }
  /// Returns the watch that reports ranks which do not arrive.
  backend_detail::watch& watched() const { return *watch_; }

  /// Ends the job: prints one line and aborts all ranks.
  [[noreturn]] void fail(std::string_view reason) const {
    current() = nullptr;  // MPI_Abort may call std::exit
    std::fflush(stdout);
    std::fprintf(stderr, "rank %d of %d: %.*s\n", rank(), ranks(), static_cast<int>(reason.size()),
                 reason.data());
    std::fflush(stderr);
    // A launcher may drop output that has not arrived when the job ends.
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    MPI_Abort(MPI_COMM_WORLD, 1);
    std::abort();
  }

 private:
  static const world*& current() {
    static const world* the_world = nullptr;
    return the_world;
  }
  [[noreturn]] static void end_job() {
    std::string reason = "std::terminate was called";
    try {
      if (const auto thrown = std::current_exception()) std::rethrow_exception(thrown);
    } catch (const std::exception& e) {
      reason = e.what();
    } catch (...) {
      reason = "an exception that is not a std::exception left the program";
    }
    if (current() != nullptr) current()->fail(reason);
    std::abort();
  }

  /// Ends the job at std::exit, which does not destroy the objects of main: the other ranks would
  /// wait forever.
  static void exited() {
    if (current() != nullptr)
      current()->fail("std::exit was called before the world was destroyed; return from main");
  }

  bool owns_ = false;
  int exceptions_ = std::uncaught_exceptions();
  mutable std::optional<backend_detail::watch> watch_;
  std::terminate_handler before_ = nullptr;
};

}  // namespace partita::mpi
