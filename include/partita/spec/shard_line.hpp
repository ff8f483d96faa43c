/// The entries of a `shard` line of a schedule.
#pragma once

#include <partita/schedule/shard.hpp>
#include <partita/spec/lines.hpp>

namespace partita::spec_detail {

/// Reads `{x: {B, M}, w: {{}, M}, h: {{B, M}}, b: replicated}`, as in C++: for each dimension an
/// axis, a list of axes in braces, or `{}` for none.
class shard_reader {
 public:
  constexpr explicit shard_reader(lines& l) : l_(l) {}

  constexpr vec<schedule_detail::kept_shard_entry> run() {
    vec<schedule_detail::kept_shard_entry> entries;
    l_.list([&] {
      const text name = l_.name(":");
      l_.expect(":");
      l_.skip(true);
      const dimensions_axes where = dimensions();
      if (!l_.failed())
        entries.push_back(schedule_detail::kept_shard_entry(shard_entry{name, where}));
    });
    if (!l_.failed() && entries.empty()) l_.expected("an entry, like {x: {B}},");
    return entries;
  }

 private:
  lines& l_;
  vec<text> names_;  ///< axes of the entry being read

  constexpr dimensions_axes dimensions() {
    dimensions_axes where({});
    if (!l_.starts("{")) {
      const std::size_t at = l_.position();
      const std::string_view word = l_.word();
      if (word == "replicated") return replicated;
      l_.fail(
          at, "X003", "layout \"", word,
          "\" is unknown; give the axes of each dimension, like {B, {}, {M, S}}, or replicated");
      return where;
    }
    names_.clear();
    vec<int> dims;
    l_.list([&] {
      if (l_.starts("{"))
        l_.list([&] { axis(dims, where.rank); });
      else
        axis(dims, where.rank);
      ++where.rank;
    });
    where.count = static_cast<int>(names_.size());
    for (int i = 0; i < where.count && i < max_axes; ++i) {
      where.axes[i] = names_[static_cast<std::size_t>(i)];
      where.dims[i] = dims[static_cast<std::size_t>(i)];
    }
    return where;
  }
  constexpr void axis(vec<int>& dims, int dim) {
    names_.push_back(l_.name());
    dims.push_back(dim);
  }
};

}  // namespace partita::spec_detail
