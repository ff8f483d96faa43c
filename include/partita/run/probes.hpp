/// Inner values that runs return: probes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <partita/run/options.hpp>
#include <partita/schedule/sharding_of.hpp>

namespace partita::run_detail {

/// Selects the tags whose values are returned: probes, and those that the options name.
class tag_filter {
 public:
  explicit tag_filter(const std::vector<std::string>& wanted) {
    for (const auto& name : wanted) names_.push_back(text(std::string_view(name)));
  }
  const vec<text>& names() const { return names_; }
  bool operator()(std::string_view name) const {
    return schedule_detail::is_handed_out(names_, name);
  }
  /// Checks the names of the options.
  ///
  /// Errors    R011 a name of the options selects none of these
  template <class Names>
  void need(const Names& found, const program& p) const {
    for (const text& w : names_) {
      bool any = false;
      for (const auto& name : found) any = any || schedule_detail::selects(w, name);
      if (!any) no_such_tag(w, p);
    }
  }

 private:
  vec<text> names_;

  [[noreturn]] static void no_such_tag(std::string_view name, const program& p) {
    std::vector<std::string_view> known;
    for (op_id o = 0; o < p.op_count(); ++o)
      if (p.is(o, op_role::tag)) known.push_back(p.view(p.op(o).name));
    throw error(concat("R011 run: no tag outside of loops and branches is named \"", name,
                       "\" or is below it; ", known_names_or_below(name, known)));
  }
};

/// A source program with its probes as additional outputs, and their names.
struct probed_source {
  program p;
  std::vector<std::string> names;

  probed_source(const program& source, const std::vector<std::string>& options) : p(source) {
    if (p.error) return;
    const tag_filter wanted(options);
    for (op_id o = 0; o < p.op_count(); ++o) {
      if (!p.is(o, op_role::tag) || !wanted(p.view(p.op(o).name))) continue;
      names.emplace_back(p.view(p.op(o).name));
      p.outputs.push_back({p.op(o).result, p.op(o).name});
    }
    wanted.need(names, source);
  }
};

}  // namespace partita::run_detail
