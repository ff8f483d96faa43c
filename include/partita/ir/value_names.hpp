/// The printed names of values.
#pragma once

#include <string_view>

#include <partita/ir/program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Printed names of values, without the `%`. Parameters, tags and named outputs keep their names,
/// quoted if necessary; an output named like an input gets a prime. The result of an all_gather or
/// all_slice of `%w` is `%wg` or `%ws`. Results of labelled ops have the label. All other values
/// are numbered `%x1`, `%x2`, ... in program order.
class value_names {
 public:
  constexpr explicit value_names(const program& p) : value_names(p, 0, p.labels) {}
  /// For a nested program: numbers start after `last_number`, and labels are those of the enclosing
  /// program.
  ///
  /// Cost      linear in values
  constexpr value_names(const program& p, int last_number, const label_list& labels)
      : first_number_(last_number + 1), number_(last_number) {
    at_.resize(p.types.size(), text_ref{});
    vec<int> next;  // by value: the next number to try as a suffix of its name
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (p.name(v).empty()) continue;
      start(v);
      pool_ << name_text(p.name(v));
      keep(v);
      insert(v);
    }
    for (const auto& out : p.outputs)
      if (at_[out.value].size == 0 && !is_default_name(p.view(out.name)))
        make_unique(next, out.value, name_text(p.view(out.name)), "'");
    if (!labels.empty()) take_labels(next, p, labels);
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (at_[v].size > 0) continue;
      const op_id o = p.producer(v);
      const std::string_view suffix = suffix_of(p, o);
      if (!suffix.empty())
        make_unique(next, v, concat((*this)[p.operand(o, 0)], suffix));
      else
        number(v);
    }
  }

  /// Returns the printed name of a value.
  constexpr std::string_view operator[](value_id v) const {
    return {pool_.view().data() + at_[v].begin, static_cast<std::size_t>(at_[v].size)};
  }
  /// Returns the first value with this printed name, or -1.
  constexpr value_id find(std::string_view name) const {
    if (const value_id v = named(name); v >= 0) return v;
    if (name.empty() || name[0] != 'x') return -1;
    scanner in(name.substr(1));
    std::int64_t n = 0;
    if (!in.integer(n) || n < first_number_ || n > number_) return -1;
    const value_id v = numbered_[static_cast<std::size_t>(n - first_number_)];
    return v >= 0 && (*this)[v] == name ? v : -1;
  }
  /// Returns the number of values.
  constexpr int size() const { return static_cast<int>(at_.size()); }
  /// Returns the last number used for a name.
  constexpr int last_number() const { return number_; }
  /// Returns the suffix that the result of this op adds to its operand's name, or an empty text.
  static constexpr std::string_view suffix_of(const program& p, op_id o) {
    const op_def& d = *p.op(o).def;
    if (d.role == op_role::tiling) return "t";
    if (!d.collective) return "";
    return d.name == "all_gather" ? "g" : d.name == "all_slice" ? "s" : "";
  }
  /// True for the names of outputs that the model did not name.
  static constexpr bool is_default_name(std::string_view n) {
    return n.empty() || n == "result" || n.substr(0, 7) == "result.";
  }

 private:
  text pool_;          ///< all names
  vec<text_ref> at_;   ///< by value: its name
  place_table table_;  ///< values whose names are not numbers; no generated number is such a name
  vec<value_id> numbered_;  ///< by number, from first_number_ on; -1 if another value has that name
  int first_number_, number_;

  constexpr void start(value_id v) { at_[v].begin = static_cast<int>(pool_.size()); }
  constexpr void keep(value_id v) { at_[v].size = static_cast<int>(pool_.size()) - at_[v].begin; }

  constexpr value_id named(std::string_view name) const {
    return table_.find(hash_of(name), [&](value_id v) { return (*this)[v] == name; });
  }
  constexpr void insert(value_id v) {
    if (named((*this)[v]) < 0)
      table_.insert(v, [&](value_id each) { return hash_of((*this)[each]); });
  }
  constexpr void number(value_id v) {
    for (;;) {
      start(v);
      pool_ << 'x' << ++number_;
      keep(v);
      const bool free = named((*this)[v]) < 0;
      numbered_.push_back(free ? v : -1);
      if (free) return;
      pool_.truncate(static_cast<std::size_t>(at_[v].begin));
    }
  }
  constexpr void take_labels(vec<int>& next, const program& p, const label_list& labels) {
    for (const auto& each : p.labels.values)
      if (at_[each.value].size == 0) make_unique(next, each.value, name_text(each.name));
    for (value_id v = 0; v < p.value_count(); ++v) {
      if (at_[v].size > 0) continue;
      const op_id o = p.producer(v);
      const std::string_view label = p.label(o, labels);
      if (!label.empty())
        make_unique(next, v,
                    name_text(p.result_label(o, p.result_index(v), p.op(o).result_count, labels)));
    }
  }
  /// Gives a value the name `base`; if that is in use, appends `suffix`, and then also a number.
  constexpr void make_unique(vec<int>& next, value_id v, const text& base,
                             std::string_view suffix = "") {
    text name = base;
    value_id owner = find(name);
    if (owner >= 0 && !suffix.empty()) {
      name << suffix;
      owner = find(name);
    }
    if (owner >= 0) {
      if (next.empty()) next.resize(at_.size(), 2);
      const text stem = name;
      do {
        name = concat(stem, next[owner]++);
      } while (find(name) >= 0);
    }
    start(v);
    pool_ << name;
    keep(v);
    insert(v);
  }
};

}  // namespace partita
