/// A folder of StableHLO modules with a CSV table that describes them.
#pragma once

#include <cstdio>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>

#include <partita/support/text.hpp>

class module_folder {
 public:
  /// Opens the file `table` in the folder and writes its first line, `head`.
  module_folder(std::string folder, const std::string& table, std::string_view head)
      : folder_(std::move(folder)), rows_(open(table)) {
    rows_ << head << '\n';
  }
  /// Writes NAME.mlir. Throws if the module is an error text or the file cannot be written.
  void write(const std::string& name, const partita::text& module) const {
    if (module.view().starts_with("error")) throw std::runtime_error(std::string(module.view()));
    open(name + ".mlir") << module.view();
  }
  void add_row(const std::string& row) {
    rows_ << row << '\n';
    std::puts(row.c_str());
  }

 private:
  std::string folder_;
  std::ofstream rows_;

  std::ofstream open(const std::string& name) const {
    std::ofstream out(folder_ + '/' + name);
    if (!out) throw std::runtime_error("cannot write " + folder_ + '/' + name);
    return out;
  }
};
