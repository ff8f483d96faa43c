/// Unique names for the tags of a program.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/ir/verify.hpp>
#include <partita/op/registry.hpp>
#include <partita/op/reverse_mode.hpp>
#include <partita/support/copy_names.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita::dsl_detail {

/// Makes tag names unique. Tags with one name get numbers in the order in which they were written:
/// "residual.0", "residual.1". A cotangent's tag is the name with the prefix "grad.":
/// "grad.residual.1". A copy that derivatives recompute has the suffix ".again":
/// "residual.1.again", then "residual.1.again2".
///
/// Cost: linear in the ops and in the characters of names.
class tag_names {
 public:
  constexpr explicit tag_names(program& p) {
    int sources = 0;
    ir_detail::for_each_tag(p, [&](program& in, op_node& n) {
      tags_.push_back({&in, &n});
      if (n.marks.source >= sources) sources = n.marks.source + 1;
    });
    if (tags_.empty()) return;
    written_.resize(static_cast<std::size_t>(sources), -1);
    for (int i = 0; i < static_cast<int>(tags_.size()); ++i)
      if (tags_[i].op->marks.source >= 0 && !is_copy(tags_[i]))
        written_[tags_[i].op->marks.source] = i;
  }
  constexpr void run() {
    if (tags_.empty()) return;
    copy_names used_names(tags_.size());
    number_equal_names();
    for (const int i : written_)
      if (i >= 0 && is_cotangent(tags_[i]))
        rename(tags_[i],
               used_names.unique(op::cotangent_name(
                   original(tags_[i].op->marks.origin, op::primal_name(name(tags_[i]))).view())));
    for (int i = 0; i < static_cast<int>(tags_.size()); ++i)
      if (is_copy(tags_[i]))
        rename(tags_[i], used_names.unique(op_detail::name_of_copy(
                             original(tags_[i].op->marks.source, name(tags_[i])).view())));
  }

 private:
  struct place {
    program* in = nullptr;
    op_node* op = nullptr;
  };
  vec<place> tags_;
  vec<int> written_;  ///< by source number of an op: its tag, the original one if there are copies

  static constexpr bool is_copy(const place& t) { return t.op->marks.again; }
  /// True if the tag is of a cotangent: derivatives add no other tags.
  static constexpr bool is_cotangent(const place& t) { return t.op->marks.origin >= 0; }
  static constexpr std::string_view name(const place& t) { return t.in->view(t.op->name); }
  static constexpr void rename(const place& t, const text& name) {
    t.op->name = t.in->intern(name.view());
  }
  /// Returns the name of the tag with source number `source`. If that tag was removed, returns
  /// `own` without the suffix of a copy.
  constexpr text original(int source, std::string_view own) const {
    const bool known = source >= 0 && source < static_cast<int>(written_.size());
    if (known && written_[source] >= 0) return text(name(tags_[written_[source]]));
    return text(op_detail::name_of_original(own));
  }
  constexpr void number_equal_names() {
    name_table first(written_.size());
    vec<int> count, named, group(tags_.size(), -1);
    for (const int i : written_) {
      if (i < 0 || is_cotangent(tags_[i])) continue;
      const int next = static_cast<int>(count.size());
      group[i] = first.insert(name(tags_[i]), next);
      if (group[i] == next) count.push_back(0);
      ++count[group[i]];
    }
    named.resize(count.size(), 0);
    for (const int i : written_)
      if (i >= 0 && group[i] >= 0 && count[group[i]] > 1)
        rename(tags_[i], concat(name(tags_[i]), '.', named[group[i]]++));
  }
};

}  // namespace partita::dsl_detail
