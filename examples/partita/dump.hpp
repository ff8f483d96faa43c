/// Writes the state of a program after each tactic to files.
#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <partita/partita.hpp>
#include <partita/run/file/whole_file.hpp>
#include <partita/spec/system.hpp>

#include "report.hpp"

/// Returns the program of a device as text, with the value names of the source.
inline partita::text device_text(const partita::partitioned& r) {
  partita::device_program named = r.device;
  named.local.labels = r.source.labels;
  return partita::print(named);
}

/// Returns a file name such as `3-Z3`: a tactic's number, from 1, and its name. Characters that
/// some file systems refuse become `_`.
inline std::string dump_name(std::size_t tactic, std::string_view name) {
  std::string out = std::to_string(tactic + 1) + '-';
  for (const char c : name.substr(0, 40)) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '+';
    out += plain ? c : '_';
  }
  return out;
}

/// Creates a folder and its parents.
///
/// Errors    N004 the folder cannot be created
inline void make_folder(const std::string& folder) {
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed || !std::filesystem::is_directory(folder, failed))
    throw partita::error(partita::concat("N004 folder: \"", folder, "\" cannot be created"));
}

/// Writes the source, and for each tactic the program of a device after it and its figures.
///
/// Errors    N004 the folder cannot be created, or a file in it cannot be written
inline void dump_tactics(const partita::partitioned& r, const partita::system_description& system,
                         const std::string& folder) {
  make_folder(folder);
  const auto write = [&](const std::string& name, std::string_view all) {
    partita::run_detail::write_file(folder + '/' + name, all);
  };
  std::vector<std::string> figures;  // after each tactic so far
  const auto both = [&](std::size_t t, const partita::partitioned& p) {
    const std::string name = dump_name(t, r.tactics[t].name);
    figures.push_back(tactic_json(r.tactics[t], p, system));
    write(name + ".txt", device_text(p));
    write(name + ".json", json_report(p, system, figures));
  };
  write("0-source.txt", partita::print(r.source));
  for (std::size_t t = 0; t + 1 < r.tactics.size(); ++t)
    both(t, partita::after(r, static_cast<int>(t)));
  if (!r.tactics.empty()) both(r.tactics.size() - 1, r);
}
