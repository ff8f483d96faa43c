/// The remat tactic: recomputes values where they are needed instead of keeping them in memory.
///
/// Source    Chen et al., arXiv:1604.06174 (whole layers); Korthikanti et al., arXiv:2205.05198
///           (selective recomputation)
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>

#include <partita/cost/cost.hpp>
#include <partita/schedule/remat_scopes.hpp>
#include <partita/schedule/rewriting.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/kept_name.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace schedule_detail {

/// The rewrite of a remat tactic, independent of the number of its names.
class remat_rewrite {
 public:
  constexpr remat_rewrite(rewriting& r, span<const kept_name> wanted)
      : r_(r), labels_(r.labels.empty() ? r.p.labels : r.labels) {
    for (const auto& each : wanted) wanted_.push_back(each.view());
  }

  constexpr void run() {
    vec<std::string_view> inputs;
    for (int i = 0; i < r_.p.input_count(); ++i) inputs.push_back(r_.p.input_name(i));
    copies_.resize(wanted_.size(), 0);
    found_.resize(wanted_.size(), 0);
    program q = repeated(r_.p, inputs);
    for (std::size_t e = 0; e < wanted_.size(); ++e) check(e);
    if (r_.error) return;
    core_detail::name_copies(q);
    report(q);
    r_.p = static_cast<program&&>(q);
    r_.p.labels = labels_;
  }

 private:
  rewriting& r_;
  const label_list& labels_;
  vec<std::string_view> wanted_;
  vec<int> copies_;  ///< by name: number of ops that are recomputed
  vec<char> found_;  ///< by name: true if any op or value has it
  bool derivative_ = false;

  /// Returns a copy of the program with recomputation. Nested programs have scopes of their own.
  constexpr program repeated(const program& p, const vec<std::string_view>& inputs) {
    program now;  // (GCC 12 destroys the result of a conditional expression of programs too early.)
    if (p.regions.empty())
      now = p;
    else
      now = with_nested_repeated(p, inputs);
    vec<int> left;
    for (int e = 0; e < static_cast<int>(wanted_.size()); ++e) left.push_back(e);
    while (!left.empty()) left = repeat(now, inputs, left);
    return now;
  }
  constexpr vec<std::string_view> names_of(const vec<int>& entries) const {
    vec<std::string_view> list;
    for (int e : entries) list.push_back(wanted_[e]);
    return list;
  }
  /// Returns the names whose scopes overlap no narrower scope of these names.
  constexpr vec<int> apart(const program& now, const vec<std::string_view>& inputs,
                           const vec<int>& entries) const {
    if (entries.size() < 2) return entries;
    const vec<std::string_view> wanted = names_of(entries);
    scope_names names(wanted);
    scope_finder(now, inputs, labels_, names).run();
    vec<int> list;
    for (std::size_t i = 0; i < entries.size(); ++i)
      if (names.overlaps[i] == 0) list.push_back(entries[i]);
    if (list.size() == entries.size()) return list;
    return apart(now, inputs, list);
  }
  /// Recomputes the scopes of some names in one step. Returns the names that it leaves to the next
  /// step: those whose scopes overlap narrower ones.
  constexpr vec<int> repeat(program& now, const vec<std::string_view>& inputs,
                            const vec<int>& all) {
    const vec<int> entries = apart(now, inputs, all);
    vec<int> later;
    std::size_t next = 0;  // (`entries` is a subsequence of `all`.)
    for (int e : all)
      if (next < entries.size() && entries[next] == e)
        ++next;
      else
        later.push_back(e);
    const vec<std::string_view> wanted = names_of(entries);
    scope_names names(wanted);
    const repeat_plan plan = scope_finder(now, inputs, labels_, names).run();
    for (char each : plan.derived) derivative_ = derivative_ || each != 0;
    for (std::size_t i = 0; i < entries.size(); ++i)
      found_[entries[i]] = found_[entries[i]] || names.found[i];
    if (plan.scopes == 0) return later;
    repeated_program made = repeat_scopes(now, plan);
    for (int s = 0; s < plan.scopes; ++s) {
      copies_[entries[names.entry_of[s]]] += made.copies[s];
      r_.remat.ops += made.copies[s];
      r_.remat.scopes += made.copies[s] > 0;
    }
    if (wanted_.size() > 1) count_shared(now, inputs, made.copied);
    now = static_cast<program&&>(made.p);
    return later;
  }
  /// An op may belong to the scopes of several names: its copy counts for each of them.
  constexpr void count_shared(const program& p, const vec<std::string_view>& inputs,
                              const vec<char>& copied) {
    for (std::size_t e = 0; e < wanted_.size(); ++e) {
      if (copies_[e] > 0) continue;
      const vec<std::string_view> one(1, wanted_[e]);
      scope_names names(one);
      const repeat_plan alone = scope_finder(p, inputs, labels_, names).run();
      for (op_id o = 0; o < p.op_count(); ++o)
        if (alone.scope[o] >= 0 && copied[o] != 0) ++copies_[e];
    }
  }
  constexpr program with_nested_repeated(const program& p, const vec<std::string_view>& inputs) {
    program q = p;
    vec<std::string_view> names(p.types.size(), std::string_view());  // of inputs, by value
    for (int i = 0; i < p.input_count(); ++i) names[p.inputs[i]] = inputs[i];
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.ops[o];
      if (n.region_count == 0) continue;
      wire_list list;
      n.def->wires(p, o, list);
      for (int k = 0; k < n.region_count; ++k) {
        const program& body = p.region(o, k);
        vec<std::string_view> inside(body.inputs.size(), std::string_view());
        for (const auto& w : list.wires) name_ends(p, o, k, w, names, inside);
        q.regions[n.region_begin + k] = repeated(body, inside);
      }
    }
    return q;
  }
  /// Gives each input of a nested program the name of the outer input that it equals.
  static constexpr void name_ends(const program& p, op_id o, int region, const wire& w,
                                  const vec<std::string_view>& names,
                                  vec<std::string_view>& inside) {
    std::string_view name;
    for (const auto& e : w.ends)
      if (e.kind == wire_end::operand) name = names[p.operand(o, e.index)];
    for (const auto& e : w.ends)
      if (e.kind == wire_end::input && e.region == region) inside[e.index] = name;
  }

  constexpr void check(std::size_t e) {
    if (!found_[e] && names_dead_code(r_.given, wanted_[e])) {
      r_.notes.push_back(dead_name_note(wanted_[e]));
      return;
    }
    if (!found_[e]) {
      vec<std::string_view> known;
      collect_names(r_.p, known);
      r_.error.record("S006", "remat: no input, tag or inner value is named \"", wanted_[e],
                      "\" or is below it; ", known_names_or_below(wanted_[e], known));
    }
    if (copies_[e] > 0) return;
    const text example = derivative_ ? example_of_scope() : text();
    if (derivative_)
      r_.error.record("S015", "remat: no derivative reads a value under \"", wanted_[e],
                      "\" whose memory could be freed; name values between the inputs of a model "
                      "and its loss, ",
                      example, "or remove the tactic");
    else
      r_.error.record("S015", "remat: the program has no derivative that reads a value under \"",
                      wanted_[e],
                      "\"; name values between the inputs of a model and its loss, or remove the "
                      "tactic");
  }
  /// Returns `like remat({"h"}), `, an example of a name whose scope can be recomputed, or nothing.
  constexpr text example_of_scope() const {
    constexpr int most_tried = 16;
    vec<std::string_view> known, inputs;
    for (int i = 0; i < r_.p.input_count(); ++i) inputs.push_back(r_.p.input_name(i));
    collect_names(r_.p, known);
    name_table tried(most_tried);
    int count = 0;
    for (std::string_view name : known) {
      if (count == most_tried) break;
      const std::string_view part = name.substr(0, name.find('.'));
      if (tried.insert(part, count) != count) continue;
      ++count;
      const vec<std::string_view> one(1, part);
      scope_names names(one);
      const repeat_plan plan = scope_finder(r_.p, inputs, labels_, names).run();
      int copies = 0;
      if (plan.scopes > 0)
        for (int each : repeat_scopes(r_.p, plan).copies) copies += each;
      if (copies == 0) continue;
      if (r_.advice == syntax::specification) return concat("like remat \"", escaped(part), "\", ");
      return concat("like remat({\"", escaped(part), "\"}), ");
    }
    return {};
  }
  constexpr void collect_names(const program& p, vec<std::string_view>& known) const {
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.ops[o];
      if (n.marks.again) continue;
      const std::string_view label = p.label(o, labels_);
      if (n.name.size > 0 && n.def->role != op_role::control)
        known.push_back(p.view(n.name));
      else if (!label.empty() && label.substr(0, 5) != "grad.")
        known.push_back(label);
      for (const auto& q : p.regions_of(o)) collect_names(q, known);
    }
  }

  constexpr void report(const program& q) {
    const cost before = estimate(r_.p), after = estimate(q);
    remat_price& price = r_.remat;
    price.flops = after.flops - before.flops;
    price.bytes = after.bytes - before.bytes;
    price.peak_before = before.peak_bytes;
    price.peak = after.peak_bytes;
    r_.notes.push_back(concat("recomputes ", price.ops, " ops of ", price.scopes,
                              " scopes: ", price.flops, " more flop and ", price.bytes,
                              " more bytes read and written; peak of the unsharded program ",
                              price.peak_before, " -> ", price.peak, " bytes"));
  }
};

}  // namespace schedule_detail

/// Recomputes the values of some scopes for the derivative instead of keeping them in memory.
///
/// Effect    values that ops in a scope compute, and that a derivative reads, are recomputed from
///           the inputs of the scope, immediately before the derivative needs the first of them. As
///           in `manual`, a name is exact, a prefix, or a pattern. It selects ops by their labels,
///           in modules with debug information. For tags, it selects everything computed from the
///           first to the last tagged value with the name; for inputs, everything computed around
///           the ops that read them (see schedule_detail::scope_finder). Each name that a pattern
///           matches, and each numbered element below a name, is a scope of its own:
///           "params.layers" creates one scope per layer. Several names select the union of their
///           scopes, in any order: of overlapping scopes the narrower one is recomputed first, as
///           by an earlier tactic.
/// Legal     if a derivative reads any value of the scope. The tactic may be anywhere in a
///           schedule: all other tactics see the program with the recomputation, and a tag's name
///           also selects its copies.
/// Pros      values of a scope are not in memory between the forward and the backward pass
/// Cons      the FLOPs and collectives of the scope's forward pass are executed twice (except for
///           values that the derivative does not read); see tactic_report::remat
/// Collectives  those of the recomputed ops
/// Errors    S006 no value has that name or prefix, S015 no derivative reads a value of the scope
template <std::size_t N>
class remat_tactic {
 public:
  constexpr remat_tactic(const std::string_view (&names)[N], std::string_view name)
      : remat_tactic(names, name, std::make_index_sequence<N>{}) {}
  constexpr std::string_view name() const { return name_; }
  /// Returns the same tactic with another name.
  constexpr remat_tactic named(std::string_view n) const {
    remat_tactic t = *this;
    t.name_ = n;
    return t;
  }

  /// Does nothing: the program is rewritten before the first action.
  constexpr void apply(tactic_context&) const {}
  constexpr void rewrite(rewriting& r) const {
    schedule_detail::remat_rewrite(r, {scopes_, N}).run();
  }

 private:
  template <std::size_t... I>
  constexpr remat_tactic(const std::string_view (&names)[N], std::string_view name,
                         std::index_sequence<I...>)
      : name_(name), scopes_{kept_name(names[I])...} {}

  kept_name name_;
  kept_name scopes_[N];
};

/// Returns a remat tactic: `remat({"params.layers"})`. The name appears in reports.
template <std::size_t N>
constexpr remat_tactic<N> remat(const std::string_view (&names)[N],
                                std::string_view name = "remat") {
  return {names, name};
}

}  // namespace partita
