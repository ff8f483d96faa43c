/// Functions that read and write a complete file.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <string>
#include <string_view>

#include <partita/support/error.hpp>
#include <partita/support/text.hpp>

namespace partita::run_detail {

/// Reads a file.
///
/// Errors    N004 the file cannot be read
inline std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) throw error(concat("N004 file: \"", path, "\" cannot be read"));
  std::string all;
  std::size_t known = 0;
  do {  // doubles the buffer, since a pipe does not state its size
    all.resize(known + std::max<std::size_t>(known, 1 << 16));
    in.read(all.data() + known, static_cast<std::streamsize>(all.size() - known));
    known += static_cast<std::size_t>(in.gcount());
  } while (in);
  if (in.bad()) throw error(concat("N004 file: \"", path, "\" cannot be read"));
  all.resize(known);
  return all;
}
/// Writes to a temporary file first and renames it, so that a failure leaves the old file
/// unchanged.
///
/// Errors    N004 the file cannot be written
inline void write_file(const std::string& path, std::string_view bytes) {
  const std::string beside = path + ".partial";
  bool good = false;
  {
    std::ofstream out(beside, std::ios::binary);
    out.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    out.close();
    good = out.good();
  }
  if (!good || std::rename(beside.c_str(), path.c_str()) != 0) {
    std::remove(beside.c_str());
    throw error(concat("N004 file: \"", path, "\" cannot be written"));
  }
}

}  // namespace partita::run_detail
