/// A folder for modules, and a table of what they are.
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
  /// `table`: a file of lines of which `head` is the first.
  module_folder(std::string folder, const std::string& table, std::string_view head)
      : folder_(std::move(folder)), rows_(open(table)) {
    rows_ << head << '\n';
  }
  /// NAME.mlir; of what cannot be written the message is thrown.
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
