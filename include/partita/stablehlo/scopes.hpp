/// Names of values from the scopes in locations, as JAX writes them:
/// `jit(step)/transpose(jvp(layers_3))/attn/dot_general`.
#pragma once

#include <string_view>

#include <partita/ir/source_ids.hpp>
#include <partita/stablehlo/attributes.hpp>
#include <partita/support/name_table.hpp>

namespace partita::stablehlo_detail {

/// Aliases of a module, `#loc3 = loc("a")`, and their values.
class alias_table {
 public:
  constexpr alias_table() : places_(16) {}
  constexpr void add(std::string_view name, std::string_view value) {
    places_.insert(name, static_cast<int>(list_.size()));
    list_.push_back({name, value});
  }
  /// Returns the name in a location: "a" for `("a")`, `("a"(#loc1))`, `(#loc3)`, `(callsite("a" at
  /// ...))` and `(fused["a", ...])`; empty if it has none.
  constexpr std::string_view name_at(std::string_view location) const {
    std::string_view inner = inside(location, '(', ')');
    for (int steps = 0; steps < 16; ++steps) {
      while (!inner.empty() && is_space(inner.front())) inner.remove_prefix(1);
      if (inner.empty()) return {};
      if (inner.starts_with("\"")) {
        std::size_t end = 1;
        while (end < inner.size() && inner[end] != '"') end += inner[end] == '\\' ? 2 : 1;
        if (end >= inner.size()) return {};
        const std::string_view behind = inner.substr(end + 1);
        return behind.starts_with(":") ? std::string_view() : inner.substr(1, end - 1);
      }
      if (inner.starts_with("callsite(")) {
        inner.remove_prefix(9);
      } else if (inner.starts_with("fused")) {
        const std::size_t list = inner.find('[');
        if (list == std::string_view::npos) return {};
        inner.remove_prefix(list + 1);
      } else {
        inner = inside(alias_of(inner), '(', ')');
      }
    }
    return {};
  }
  /// Returns the value of the alias `#loc3` at the beginning of a text.
  constexpr std::string_view alias_of(std::string_view text) const {
    if (!text.starts_with("#")) return {};
    std::size_t end = 1;
    while (end < text.size() && is_word_char(text[end])) ++end;
    const int place = places_.find(text.substr(1, end - 1));
    return place < 0 ? std::string_view() : list_[static_cast<std::size_t>(place)].value;
  }

 private:
  vec<named_text> list_;
  name_table places_;  ///< "loc3" -> its index in the list
};

/// A path of scopes, separated by slashes. A transformation such as `jvp(layers_3)` is replaced by
/// its argument; `transpose(...)` marks a derivative; the first `jit(...)`, which names the
/// program, is ignored.
class scope_path {
 public:
  constexpr void add(std::string_view path) {
    if (whole_.empty()) whole_ = first_part(path);
    // (The path of a called function is relative to the call, or begins with the program.)
    else if (path.starts_with("jit(") && first_part(path) == whole_)
      *this = scope_path();
    parts(path);
  }
  /// Returns `layers_3.attn.dot_general`, or `grad.layers_3...`.
  constexpr text name() const {
    text out;
    for (int i = 0; i < transposed_; ++i) out << "grad.";
    return out << words_;
  }

 private:
  text words_;
  int transposed_ = 0, count_ = 0;
  std::string_view whole_;  ///< the first part

  static constexpr std::size_t part_end(std::string_view path) {
    int depth = 0;
    std::size_t end = 0;
    for (; end < path.size() && (depth > 0 || path[end] != '/'); ++end)
      depth += path[end] == '(' ? 1 : path[end] == ')' ? -1 : 0;
    return end;
  }
  static constexpr std::string_view first_part(std::string_view path) {
    return path.substr(0, part_end(path));
  }
  constexpr void parts(std::string_view path) {
    while (!path.empty()) {
      const std::size_t end = part_end(path);
      part(path.substr(0, end));
      path.remove_prefix(end < path.size() ? end + 1 : end);
    }
  }
  constexpr void part(std::string_view p) {
    const int place = count_++;
    const std::size_t open = p.find('(');
    if (open != std::string_view::npos && p.back() == ')') {
      const std::string_view what = p.substr(0, open), in = p.substr(open + 1, p.size() - open - 2);
      if (is_program(what) && (place == 0 || (place == 1 && in == "main"))) return;
      if (what == "transpose") ++transposed_;
      if (is_program(what) || is_transformation(what)) return parts(in);
    }
    if (!p.empty()) words_ << (words_.empty() ? "" : ".") << p;
  }
  static constexpr bool is_program(std::string_view what) {
    return what == "jit" || what == "pjit";
  }
  static constexpr bool is_transformation(std::string_view what) {
    for (std::string_view each : {"jvp", "transpose", "vmap", "pmap", "checkpoint", "remat",
                                  "custom_jvp", "custom_vjp", "shard_map"})
      if (what == each) return true;
    return false;
  }
};

/// The places of the ops in a program that is being read. Meanwhile, op_marks::source refers to
/// them: -2 - i is place i. (Other numbers are those of ops without a place.)
class scope_table {
 public:
  /// Sets the place of the ops from `first` on, not including nested ones, which one op of the
  /// module produced. A place inside a called function is nested in that of the call.
  constexpr void place(program& p, op_id first, std::string_view location) {
    if (location.empty() && places_.empty()) return;
    int here = -1;
    for (op_id o = first; o < p.op_count(); ++o)
      if (p.op(o).def->role != op_role::parameter) place(p, o, location, here);
  }
  /// Numbers the ops and names them by their place, with a number if several ops have the same
  /// place. Constants and values computed only from constants get no names; nor do intermediate
  /// steps of an op that JAX lowers to several (the operand of an addition that is broadcast
  /// first).
  constexpr void name(program& p) const {
    if (places_.empty()) return;
    vec<name_ref> names;
    text pool;
    collect(p, names, pool);
    name_table first(names.size());
    vec<int> count(names.size(), 0), number(names.size(), 0);
    vec<int> same(names.size(), 0);
    for (std::size_t i = 0; i < names.size(); ++i) {
      if (names[i].size == 0) continue;
      same[i] = first.insert(view(pool, names[i]), static_cast<int>(i));
      number[i] = count[static_cast<std::size_t>(same[i])]++;
    }
    std::size_t i = 0;
    int next = 0;
    label_list labels;
    ir_detail::for_each_op(p, [&](op_node& n) {
      n.marks.source = next++;
      const std::string_view name = view(pool, names[i]);
      if (name.empty() || count[static_cast<std::size_t>(same[i])] == 1)
        labels.add(name, n.def->id);
      else
        labels.add(concat(name, '.', number[i]).view(), n.def->id);
      ++i;
    });
    p.labels = static_cast<label_list&&>(labels);
  }

 private:
  struct place_of_op {
    std::string_view location;
    int outer = -1, inner = -1;  ///< of an op in a function: the call, and its place there
  };
  struct name_ref {
    std::size_t begin = 0, size = 0;
  };
  vec<place_of_op> places_;

  static constexpr std::string_view view(const text& pool, const name_ref& r) {
    return pool.view().substr(r.begin, r.size);
  }
  constexpr int add(const place_of_op& p) {
    places_.push_back(p);
    return static_cast<int>(places_.size()) - 1;
  }
  /// Sets the place of one op. `here`: the index of the location, added on first use.
  constexpr void place(program& p, op_id o, std::string_view location, int& here) {
    int& number = p.op(o).marks.source;
    const bool called = number <= -2;
    if (here < 0 && !location.empty()) here = add({location, -1, -1});
    if (here >= 0) number = -2 - (called ? add({{}, here, -2 - number}) : here);
    if (!called) return;
    const op_node& n = p.op(o);
    for (int r = 0; r < n.region_count; ++r) place_nested(p.regions[n.region_begin + r], here);
  }
  constexpr void place_nested(program& p, int here) {
    if (here < 0) return;
    ir_detail::for_each_op(p, [&](op_node& n) {
      if (n.marks.source <= -2) n.marks.source = -2 - add({{}, here, -2 - n.marks.source});
    });
  }
  constexpr void add_path(scope_path& path, int place) const {
    while (place >= 0) {
      const place_of_op& p = places_[static_cast<std::size_t>(place)];
      if (p.outer < 0) return path.add(p.location);
      add_path(path, p.outer);
      place = p.inner;
    }
  }
  /// Collects the names of all ops in the order in which a program is read.
  constexpr void collect(const program& p, vec<name_ref>& names, text& pool) const {
    vec<char> constant(p.types.size(), 0);
    vec<std::size_t> name_of(p.ops.size(), 0);
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.op(o);
      bool of_constants = n.def->role == op_role::compute;
      for (value_id v : p.operands(o)) of_constants = of_constants && constant[v] != 0;
      for (int r = 0; r < n.result_count; ++r) constant[n.result + r] = of_constants;
      name_ref name{pool.size(), 0};
      const bool own = n.def->role == op_role::parameter || n.def->role == op_role::tag;
      if (!own && !of_constants && n.marks.source <= -2) {
        scope_path path;
        add_path(path, -2 - n.marks.source);
        pool << path.name();
        name.size = pool.size() - name.begin;
      }
      name_of[o] = names.size();
      names.push_back(name);
      for (const auto& r : p.regions_of(o)) collect(r, names, pool);
    }
    leave_out_steps(p, names, pool, name_of);
  }
  /// Removes the names of intermediate steps. An op is one if its result is used only by ops of
  /// another kind with the same name.
  static constexpr void leave_out_steps(const program& p, vec<name_ref>& names, const text& pool,
                                        const vec<std::size_t>& name_of) {
    vec<char> within(p.ops.size(), 0), beyond(p.ops.size(), 0);
    for (op_id o = 0; o < p.op_count(); ++o)
      for (value_id v : p.operands(o)) {
        const op_id from = p.producer(v);
        const bool same =
            p.op(from).def->id != p.op(o).def->id && p.op(o).def->role == op_role::compute &&
            same_chars(view(pool, names[name_of[from]]), view(pool, names[name_of[o]]));
        (same ? within : beyond)[from] = 1;
      }
    for (const auto& out : p.outputs) beyond[p.producer(out.value)] = 1;
    for (op_id o = 0; o < p.op_count(); ++o)
      if (within[o] != 0 && beyond[o] == 0) names[name_of[o]].size = 0;
  }
};

}  // namespace partita::stablehlo_detail
