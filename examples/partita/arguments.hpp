/// Reads the arguments of a program from a file of arrays.
#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/file/load.hpp>
#include <partita/run/file/npz.hpp>

/// The mapping from the arrays of a file to the arguments of a program. A file names all arguments
/// by their own names, or all by position: `a0`, `a1`, ... or, as numpy.savez does, `arr_0`,
/// `arr_1`, ...
class argument_names {
 public:
  /// Names after the first `readable` ones belong to arrays that could not be read.
  argument_names(const partita::program& p, std::vector<std::string> of_file, std::size_t readable)
      : p_(p), of_file_(std::move(of_file)), readable_(readable) {}

  /// Returns the position in the file of each argument's array.
  ///
  /// Errors    N005 an argument has no array, N007 an array belongs to no argument, N011 an array
  ///           belongs to one argument by name and to another by position
  std::vector<std::size_t> places(const std::string& path) const {
    const std::vector<std::size_t> named = find(""), a = find("a"), numpy = find("arr_");
    std::vector<std::size_t> found;
    for (const auto& each : {named, a, numpy})
      if (each.size() == static_cast<std::size_t>(p_.input_count())) found = each;
    if (found.empty() && p_.input_count() > 0) missing(path, named, a, numpy);
    // An array named by position must not have the name of another argument.
    for (int i = 0; i < p_.input_count(); ++i)
      for (std::size_t k = 0; k < of_file_.size(); ++k)
        if (of_file_[k] == p_.input_name(i) && k != found[static_cast<std::size_t>(i)])
          ambiguous(path, i, found[static_cast<std::size_t>(i)], k);
    std::vector<char> used(of_file_.size(), 0);
    for (const std::size_t i : found) used[i] = 1;
    std::vector<std::string_view> known;
    for (int i = 0; i < p_.input_count(); ++i) known.push_back(p_.input_name(i));
    for (std::size_t i = 0; i < readable_; ++i)
      if (used[i] == 0)
        throw partita::error(partita::concat("N007 file: \"", path, "\" has an array \"",
                                             of_file_[i], "\" that belongs to no argument; ",
                                             partita::known_names(of_file_[i], known)));
    return found;
  }
  /// Returns a prefix for names by position that collides with no argument's own name.
  static std::string free_prefix(const partita::program& p) {
    for (int i = 0; i < p.input_count(); ++i)
      for (int k = 0; k < p.input_count(); ++k)
        if (p.input_name(i) == "a" + std::to_string(k)) return "arr_";
    return "a";
  }

 private:
  const partita::program& p_;
  std::vector<std::string> of_file_;
  std::size_t readable_;

  /// Returns the positions in the file of the arguments' arrays, up to the first argument without
  /// one.
  std::vector<std::size_t> find(const std::string& prefix) const {
    std::vector<std::size_t> list;
    for (int i = 0; i < p_.input_count(); ++i) {
      const std::string name =
          prefix.empty() ? std::string(p_.input_name(i)) : prefix + std::to_string(i);
      std::size_t at = 0;
      while (at < of_file_.size() && of_file_[at] != name) ++at;
      if (at == of_file_.size()) return list;
      list.push_back(at);
    }
    return list;
  }
  [[noreturn]] void ambiguous(const std::string& path, int i, std::size_t a, std::size_t b) const {
    const std::string prefix = free_prefix(p_);
    throw partita::error(partita::concat(
        "N011 file: \"", path, "\": argument ", i, ", \"", p_.input_name(i), "\", can be array \"",
        of_file_[a], "\" by position or \"", of_file_[b], "\" by name; name the arrays ", prefix,
        "0, ", prefix, "1, ... by position"));
  }
  [[noreturn]] void missing(const std::string& path, const std::vector<std::size_t>& named,
                            const std::vector<std::size_t>& a,
                            const std::vector<std::size_t>& numpy) const {
    const bool by_place = a.size() > named.size() || numpy.size() > named.size();
    const std::size_t at = by_place ? std::max(a.size(), numpy.size()) : named.size();
    const std::string_view prefix = numpy.size() > a.size() ? "arr_" : "a";
    const int i = static_cast<int>(at);
    const std::string wanted =
        by_place ? std::string(prefix) + std::to_string(i) : std::string(p_.input_name(i));
    throw partita::error(partita::concat(
        "N005 file: \"", path, "\" has no array \"", wanted, "\" of ", p_.input_type(i),
        by_place ? "" : ", and none by position (a0, a1, ... or arr_0, arr_1, ...)", "; ",
        partita::known_names(wanted, of_file_)));
  }
};

/// Returns the arrays of a file in the order of the arguments.
///
/// Errors    those of read_npz and of argument_names; N003 an argument's array has an unsupported
///           type, N006 an array has another type, N008 two arrays have the same name
inline std::vector<partita::array> arguments_of(const partita::program& p,
                                                const std::string& path) {
  std::vector<partita::unread_array> unread;
  const auto arrays = partita::read_npz(path, &unread);
  partita::run_detail::need_once(path, arrays);
  std::vector<std::string> names;
  for (const auto& each : arrays) names.push_back(each.name);
  for (const auto& each : unread) names.push_back(each.name);
  std::vector<partita::array> list;
  for (const std::size_t at : argument_names(p, names, arrays.size()).places(path)) {
    if (at >= arrays.size()) throw partita::error(unread[at - arrays.size()].message);
    const int i = static_cast<int>(list.size());
    partita::run_detail::need_type(path, arrays[at], p.input_type(i));
    list.push_back(arrays[at].value);
  }
  return list;
}
