/// What a search may do: the moves of a program, and which inputs they go together for.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Slices named values along one axis, each on one dimension; next states of inputs lie as these
/// do. It is what a `manual` tactic does, with one entry for each value.
struct search_move {
  struct member {
    value_id value = -1;
    int dim = 0;  ///< or first_divisible
  };
  /// The first dimension of what is left that the axis divides, unless it slices the value already.
  static constexpr int first_divisible = -1;

  int axis = 0;  ///< a number of core_program::named
  vec<member> members;
  bool optional = false;  ///< are members left out that cannot be sliced so? Else all must be
  bool sparing = false;   ///< only of large inputs: searches try it where memory is short
};

namespace search_detail {

/// An input, and the output that is its next state; or a tag, and its cotangent.
struct named_target {
  std::string_view name;
  value_id value = -1, state = -1, cotangent = -1;
  bool is_cotangent = false;
};

/// In program order; of tags those that have a name of their own.
constexpr vec<named_target> targets_of(const program& p) {
  vec<named_target> list;
  name_table known(p.inputs.size());
  const auto add = [&](std::string_view name, value_id v) {
    const int next = static_cast<int>(list.size());
    if (!name.empty() && known.insert(name, next) == next) list.push_back({name, v, -1});
  };
  for (int i = 0; i < p.input_count(); ++i) add(p.input_name(i), p.inputs[i]);
  const int inputs = static_cast<int>(list.size());
  for (int k = 0; k < p.output_count(); ++k)
    if (const int i = known.find(p.output_name(k)); i >= 0 && i < inputs && list[i].state < 0)
      list[i].state = p.outputs[k].value;
  name_table tags(p.inputs.size());
  vec<int> of_name;  // how many tags have the name of this one
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, op_role::tag)) {
      const int next = static_cast<int>(of_name.size()),
                first = tags.insert(p.view(p.op(o).name), next);
      if (first == next) of_name.push_back(0);
      ++of_name[first];
    }
  for (op_id o = 0; o < p.op_count(); ++o)
    if (p.is(o, op_role::tag) && of_name[tags.find(p.view(p.op(o).name))] == 1)
      add(p.view(p.op(o).name), p.op(o).result);
  for (int i = inputs; i < static_cast<int>(list.size()); ++i) {
    const int primal = known.find(op::primal_name(list[i].name));
    if (primal < inputs) continue;
    list[i].is_cotangent = true;
    list[primal].cotangent = list[i].value;
  }
  return list;
}

/// A name whose numbers are left out.
constexpr text without_numbers(std::string_view name) {
  text key;
  bool in_number = false;
  for (const char c : name) {
    const bool digit = c >= '0' && c <= '9';
    if (digit && !in_number) key << '#';
    if (!digit) key << c;
    in_number = digit;
  }
  return key;
}

/// What stands behind the last number of such a name; nothing where there is none.
constexpr std::string_view behind_numbers(std::string_view name) {
  for (std::size_t i = name.size(); i-- > 0;)
    if (name[i] == '#') return name.substr(i + 1);
  return {};
}

/// Is it a path, which tells what it is the name of?
constexpr bool has_parts(std::string_view name) {
  for (const char c : name)
    if (c == '.' || c == '/' || c == '[') return true;
  return false;
}

/// What becomes of values: a number for each that tells what uses it, and what uses that, so many
/// ops on; values with one number are used alike. `sizes`: do extents count?
///
/// Cost: linear in the uses, for each of the ops on.
constexpr vec<std::uint64_t> uses_of_values(const core_program& c, int depth, bool sizes) {
  const auto mixed = [](std::uint64_t h, std::uint64_t n) {
    h = (h ^ n) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
  };
  const program& p = c.p;
  vec<std::uint64_t> own(p.types.size(), 0);
  for (value_id v = 0; v < p.value_count(); ++v) {
    std::uint64_t h = mixed(1, static_cast<std::uint64_t>(p.types[v].element));
    h = mixed(h, static_cast<std::uint64_t>(p.types[v].shape.rank));
    for (int d = 0; sizes && d < p.types[v].shape.rank; ++d)
      h = mixed(h, static_cast<std::uint64_t>(p.types[v].shape[d]));
    own[v] = h;
  }
  vec<std::uint64_t> now = own, next = own;
  for (int round = 0; round < depth; ++round) {
    for (value_id v = 0; v < p.value_count(); ++v) {
      std::uint64_t sum = c.returned[v] ? 7 : 0;
      for (const use& u : c.uses(v)) {
        const op_node& n = p.ops[u.op];
        std::uint64_t h = mixed(n.def->id, static_cast<std::uint64_t>(u.operand));
        if (n.result_count > 0) h = mixed(h, now[n.result]);
        sum += h;
      }
      next[v] = mixed(own[v], sum);
    }
    now = next;
  }
  return now;
}

/// Targets that have one key, in the order of their first.
constexpr vec<vec<int>> grouped(const vec<text>& keys) {
  name_table known(keys.size());
  vec<vec<int>> groups;
  for (int i = 0; i < static_cast<int>(keys.size()); ++i) {
    if (keys[i].empty()) continue;
    const int fresh = static_cast<int>(groups.size()), g = known.insert(keys[i].view(), fresh);
    if (g == fresh) groups.push_back({});
    groups[g].push_back(i);
  }
  return groups;
}

/// The moves of a program along some axes.
///
/// - Tied inputs, of one type, with names that differ in numbers only, each on the same dimension.
///   (So are layers.) Where names are no paths, as `arg12`, they are used alike, too: what uses
///   them, and what uses that.
/// - Families, which are alike but for their sizes, likewise.
/// - Kin, which are used alike and have one name behind their last number ("down.#.norm.scale",
///   "up.#.norm.scale"), likewise: what Megatron does to all blocks of a model, whatever they are
///   parts of.
/// - All inputs below a prefix of names ("params", "opt_state.m", "params.layers.#"), each on its
///   first dimension that the axis divides: what ZeRO does. Also those of them only that are not
///   small (`sparing`): a norm's scale saves little memory, and to gather it takes time.
class move_list {
 public:
  constexpr move_list(const core_program& c, const vec<int>& axes)
      : c_(c), targets_(targets_of(c.p)) {
    const vec<std::uint64_t> alike = uses_of_values(c, tied_depth, true),
                             family = uses_of_values(c, family_depth, false);
    vec<text> tied, families, kin;
    for (const auto& t : targets_) {
      if (t.is_cotangent) {  // it goes with its tag
        tied.push_back(text());
        families.push_back(text());
        kin.push_back(text());
        continue;
      }
      text name = without_numbers(t.name);
      const bool tells = has_parts(t.name);
      const std::string_view last = behind_numbers(name);
      kin.push_back(last.empty()
                        ? text()
                        : concat(last, ' ', c.p.type(t.value).shape.rank, ' ', family[t.value]));
      text type = concat(name, ' ', c.p.type(t.value));
      if (!tells) type << ' ' << alike[t.value];
      tied.push_back(type);
      name << ' ' << c.p.type(t.value).shape.rank;
      if (!tells) name << ' ' << family[t.value];
      families.push_back(name);
    }
    const vec<vec<int>> small = grouped(tied), large = grouped(families), largest = grouped(kin);
    for (int axis : axes) {
      add_prefixes(axis);
      for (const auto& g : largest)
        if (!same_as_one(g, small) && !same_as_one(g, large)) add_group(g, axis);
      for (const auto& g : large)
        if (!same_as_one(g, small)) add_group(g, axis);
      for (const auto& g : small) add_group(g, axis);
    }
  }
  constexpr const vec<search_move>& moves() const { return moves_; }
  constexpr const vec<named_target>& targets() const { return targets_; }

 private:
  /// Ops behind a value that tell what it is; less than a layer has.
  static constexpr int tied_depth = 4, family_depth = 2;

  const core_program& c_;
  vec<named_target> targets_;
  vec<search_move> moves_;

  static constexpr bool same_as_one(const vec<int>& family, const vec<vec<int>>& groups) {
    for (const auto& g : groups)
      if (g[0] == family[0]) return g.size() == family.size();
    return false;
  }
  constexpr bool divides(int target, int dim, int axis) const {
    const std::int64_t size = c_.p.type(targets_[target].value).shape[dim];
    return size > 0 && size % c_.named.size(axis) == 0;
  }
  constexpr void add_group(const vec<int>& group, int axis) {
    const int rank = c_.p.type(targets_[group[0]].value).shape.rank;
    for (int d = 0; d < rank; ++d) {
      search_move m;
      m.axis = axis;
      m.optional = true;
      for (int t : group)
        for (const value_id v : {targets_[t].value, targets_[t].cotangent})
          if (v >= 0 && divides(t, d, axis)) m.members.push_back({v, d});
      if (!m.members.empty()) moves_.push_back(m);
    }
  }
  /// Prefixes that many inputs lie below, and all states; of those that hold the same inputs one.
  constexpr void add_prefixes(int axis) {
    vec<text> names;
    vec<int> of;
    for (int i = 0; i < static_cast<int>(targets_.size()); ++i) {
      if (!c_.p.is(c_.p.producer(targets_[i].value), op_role::parameter)) continue;
      const text name = without_numbers(targets_[i].name);
      for (std::size_t end = 0; end < name.size(); ++end) {
        if (name.view()[end] != '.') continue;
        names.push_back(text(name.view().substr(0, end)));
        of.push_back(i);
      }
    }
    vec<vec<int>> below = grouped(names);
    for (auto& group : below)
      for (int& each : group) each = of[each];
    vec<int> states;
    for (int i = 0; i < static_cast<int>(targets_.size()); ++i)
      if (targets_[i].state >= 0) states.push_back(i);
    below.push_back(states);
    vec<text> keys;
    for (const auto& g : below) {
      text key;
      if (g.size() >= few) key << g[0] << ' ' << g.size();
      keys.push_back(key);
    }
    for (const auto& same : grouped(keys)) {
      const vec<int>& all = below[same[0]];
      add_first_divisible(all, axis, false);
      const vec<int> large = large_of(all);
      if (large.size() < all.size()) add_first_divisible(large, axis, true);
    }
  }
  constexpr void add_first_divisible(const vec<int>& targets, int axis, bool sparing) {
    search_move m;
    m.axis = axis;
    m.optional = true;
    m.sparing = sparing;
    for (int t : targets) m.members.push_back({targets_[t].value, search_move::first_divisible});
    moves_.push_back(m);
  }
  constexpr vec<int> large_of(const vec<int>& targets) const {
    const auto bytes = [&](int t) { return c_.p.type(targets_[t].value).bytes(); };
    std::int64_t largest = 0;
    vec<int> out;
    for (int t : targets) largest = bytes(t) > largest ? bytes(t) : largest;
    for (int t : targets)
      if (bytes(t) >= largest / small_part) out.push_back(t);
    return out;
  }
  static constexpr std::int64_t small_part = 256;  ///< of the largest
  static constexpr std::size_t few = 8;            ///< what is smaller is found by other moves
};

}  // namespace search_detail

}  // namespace partita
