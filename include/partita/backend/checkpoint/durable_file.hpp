/// Files and directories that survive a crash (POSIX).
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <string>
#include <string_view>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/syscall.h>
#endif

#include <partita/support/error.hpp>

namespace partita::backend_detail {

[[noreturn]] inline void fail_at(const std::string& path, std::string_view what) {
  throw error(concat("K001 checkpoint: \"", path, "\" cannot be ", what, ": ", strerror(errno)));
}

/// An open file or directory.
///
/// Errors    K001 the system call failed
class durable_file {
 public:
  durable_file(const std::string& path, int flags) : path_(path) {
    if ((file_ = ::open(path.c_str(), flags | O_CLOEXEC, 0666)) < 0) fail_at(path, "opened");
  }
  durable_file(const durable_file&) = delete;
  durable_file& operator=(const durable_file&) = delete;
  ~durable_file() { ::close(file_); }

  std::uint64_t size() const {
    struct stat s {};
    if (::fstat(file_, &s) != 0) fail_at(path_, "read");
    return static_cast<std::uint64_t>(s.st_size);
  }
  void write(std::uint64_t at, const void* bytes, std::size_t n) const {
    for (auto* from = static_cast<const char*>(bytes); n > 0;) {
      const ssize_t done = ::pwrite(file_, from, n, static_cast<off_t>(at));
      if (done < 0) fail_at(path_, "written");
      from += done, at += static_cast<std::uint64_t>(done), n -= static_cast<std::size_t>(done);
    }
  }
  /// Reads `n` bytes at `at`. Returns false if the file ends before that.
  bool read(std::uint64_t at, void* bytes, std::size_t n) const {
    for (auto* to = static_cast<char*>(bytes); n > 0;) {
      const ssize_t done = ::pread(file_, to, n, static_cast<off_t>(at));
      if (done < 0) fail_at(path_, "read");
      if (done == 0) return false;
      to += done, at += static_cast<std::uint64_t>(done), n -= static_cast<std::size_t>(done);
    }
    return true;
  }
  void sync() const {
    if (::fsync(file_) != 0) fail_at(path_, "written to its disk");
  }

 private:
  std::string path_;
  int file_ = -1;
};

inline void write_durable(const std::string& path, std::string_view bytes) {
  const durable_file file(path, O_WRONLY | O_CREAT | O_TRUNC);
  file.write(0, bytes.data(), bytes.size());
  file.sync();
}
/// Makes the entries of a directory durable, and those of all directories in it.
inline void sync_directories(const std::string& path) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(path))
    if (entry.is_directory()) durable_file(entry.path().string(), O_RDONLY | O_DIRECTORY).sync();
  durable_file(path, O_RDONLY | O_DIRECTORY).sync();
}
/// Renames `from` to `to` in one step. If a directory `to` exists, the two exchange their names.
///
/// Errors    K001 the system call failed, K010 the system cannot exchange names
inline void rename_durable(const std::string& from, const std::string& to) {
  if (!std::filesystem::exists(to)) {
    if (std::rename(from.c_str(), to.c_str()) != 0) fail_at(to, "written");
  } else {
#if defined(SYS_renameat2)
    constexpr unsigned exchange = 2;  // RENAME_EXCHANGE
    if (::syscall(SYS_renameat2, AT_FDCWD, from.c_str(), AT_FDCWD, to.c_str(), exchange) != 0)
#else
    errno = ENOSYS;
#endif
      throw error(concat("K010 checkpoint: \"", to,
                         "\" exists, and this system cannot exchange it "
                         "for another directory in one step (",
                         strerror(errno), "); choose another name"));
  }
  const auto parent = std::filesystem::path(to).parent_path();
  durable_file(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY).sync();
}

}  // namespace partita::backend_detail
