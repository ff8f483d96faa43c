/// The results of a run: arrays with names.
#pragma once

#include <concepts>
#include <limits>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/ir/program.hpp>
#include <partita/run/compare.hpp>
#include <partita/run/element_text.hpp>

namespace partita {

/// The outputs of a run, in the order of the program.
///
/// Errors    R004 no such output
class results {
 public:
  results() = default;
  results(std::vector<array> arrays, std::shared_ptr<const std::vector<std::string>> names)
      : arrays_(std::move(arrays)), names_(std::move(names)) {}
  /// Makes results with inner values.
  results(std::vector<array> arrays, std::shared_ptr<const std::vector<std::string>> names,
          std::vector<array> probes, std::shared_ptr<const std::vector<std::string>> probe_names)
      : arrays_(std::move(arrays)),
        names_(std::move(names)),
        probes_(std::move(probes)),
        probe_names_(std::move(probe_names)) {}

  /// Returns the number of outputs.
  int size() const { return static_cast<int>(arrays_.size()); }
  /// Returns the names of the outputs, in order.
  const std::vector<std::string>& names() const { return *names_; }
  const std::vector<array>& arrays() const { return arrays_; }
  auto begin() const { return arrays_.begin(); }
  auto end() const { return arrays_.end(); }

  /// Returns an output by name or position. For a temporary it returns a value, because the results
  /// no longer exist afterwards.
  const array& operator[](std::string_view name) const& {
    for (std::size_t i = 0; i < arrays_.size(); ++i)
      if ((*names_)[i] == name) return arrays_[i];
    for (const auto& [refused, message] : refused_)
      if (refused == name) throw error(message);
    throw error(
        concat("R004 results: no output named \"", name, "\"; ", known_names(name, *names_)));
  }
  const array& operator[](const char* name) const& { return (*this)[std::string_view(name)]; }
  template <std::integral Index>
  const array& operator[](Index i) const& {
    if (std::cmp_less(i, 0) || std::cmp_greater_equal(i, size()))
      throw error(concat("R004 results: no output ", i, "; there are ", size()));
    return arrays_[static_cast<std::size_t>(i)];
  }
  array operator[](std::string_view name) && { return std::as_const(*this)[name]; }
  array operator[](const char* name) && { return std::as_const(*this)[name]; }
  template <std::integral Index>
  array operator[](Index i) && {
    return std::as_const(*this)[i];
  }
  /// Returns the global array of an inner value, one that `probe("h", x)` or `run_options{.probes =
  /// {"h"}}` names. (`piece` returns the shard of a device.)
  ///
  /// Errors    R012 the run has no such probe
  const array& probe(std::string_view name) const& {
    for (std::size_t i = 0; i < probes_.size(); ++i) {
      const std::string_view each = (*probe_names_)[i];
      if (each == name || (each.starts_with("probe.") && each.substr(6) == name)) return probes_[i];
    }
    throw error(concat("R012 results: the run has no probe \"", name,
                       "\" (values in loops and branches are not returned); ",
                       known_names(name, probe_names())));
  }
  array probe(std::string_view name) && { return std::as_const(*this).probe(name); }
  /// Returns the names of probes as they are tagged: "probe.h".
  const std::vector<std::string>& probe_names() const { return *probe_names_; }
  /// Makes a request for this name an error with this message.
  void refuse(std::string name, std::string message) {
    refused_.emplace_back(std::move(name), std::move(message));
  }
  /// Returns the only output.
  ///
  /// Errors    R004 the number of outputs is not 1
  const array& only() const& {
    if (size() != 1)
      throw error(concat("R004 results: ", size(), " outputs; name one, ",
                         known_names("", names_ ? *names_ : std::vector<std::string>{})));
    return arrays_.front();
  }
  array only() && { return std::as_const(*this).only(); }
  /// Converts results with one output to that output.
  operator const array&() const& { return only(); }
  operator array() && { return std::as_const(*this).only(); }

 private:
  std::vector<array> arrays_;
  std::shared_ptr<const std::vector<std::string>> names_ =
      std::make_shared<const std::vector<std::string>>();
  std::vector<array> probes_;
  std::shared_ptr<const std::vector<std::string>> probe_names_ =
      std::make_shared<const std::vector<std::string>>();
  std::vector<std::pair<std::string, std::string>> refused_;  ///< names and messages
};

namespace run_detail {
inline std::shared_ptr<const std::vector<std::string>> output_names(const program& p) {
  std::vector<std::string> names;
  for (int i = 0; i < p.output_count(); ++i) names.emplace_back(p.output_name(i));
  return std::make_shared<const std::vector<std::string>>(std::move(names));
}
/// Returns the result of a comparison with the name of output `i` in front.
inline closeness of_output(const results& r, int i, const closeness& c) {
  return c ? c
           : closeness("output " + std::to_string(i) + " \"" +
                       r.names()[static_cast<std::size_t>(i)] + "\": " + c.apart());
}
}  // namespace run_detail

/// Compares output by output; not close if the numbers of outputs differ. The text describes the
/// first output that is not close, and counts the others.
inline closeness all_close(const results& a, const results& b, double rtol = 1e-5,
                           double atol = 1e-6) {
  if (a.size() != b.size())
    return closeness(std::to_string(a.size()) + " outputs, not " + std::to_string(b.size()));
  closeness first;
  int more = 0;
  for (int i = 0; i < a.size(); ++i) {
    const closeness c = run_detail::of_output(a, i, all_close(a[i], b[i], rtol, atol));
    if (c) continue;
    if (first)
      first = c;
    else
      ++more;
  }
  if (more == 0) return first;
  return closeness(first.apart() + "; " + std::to_string(more) +
                   (more == 1 ? " more output is not close" : " more outputs are not close"));
}
inline closeness all_close(const results& a, const array& b, double rtol = 1e-5,
                           double atol = 1e-6) {
  return run_detail::of_output(a, 0, all_close(a.only(), b, rtol, atol));
}
inline closeness all_close(const array& a, const results& b, double rtol = 1e-5,
                           double atol = 1e-6) {
  return run_detail::of_output(b, 0, all_close(a, b.only(), rtol, atol));
}
/// Returns the maximum over all outputs; infinite if the numbers of outputs differ.
inline double max_difference(const results& a, const results& b) {
  double worst = a.size() == b.size() ? 0 : std::numeric_limits<double>::infinity();
  for (int i = 0; i < a.size() && i < b.size(); ++i) {
    const double d = max_difference(a[i], b[i]);
    if (d > worst) worst = d;
  }
  return worst;
}
/// True if the numbers of outputs are equal, and all outputs are.
inline bool equal(const results& a, const results& b) {
  bool same = a.size() == b.size();
  for (int i = 0; same && i < a.size(); ++i) same = equal(a[i], b[i]);
  return same;
}

namespace run_detail {

/// Flattens the arguments of a call in order.
inline void flatten(std::vector<array>& out, const array& a) { out.push_back(a); }
inline void flatten(std::vector<array>& out, const results& r) {
  out.insert(out.end(), r.begin(), r.end());
}
inline void flatten(std::vector<array>& out, std::span<const array> list) {
  out.insert(out.end(), list.begin(), list.end());
}
template <class Run, class... Args>
results run_arguments(const Run& run, const Args&... args) {
  std::vector<array> inputs;
  (flatten(inputs, args), ...);
  return results(run(std::span<const array>(inputs)), run.output_names());
}

}  // namespace run_detail
}  // namespace partita
