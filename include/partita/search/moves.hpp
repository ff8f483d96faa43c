/// The moves of a search: the actions that it may take, and the inputs that each of them slices.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/core/core_program.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Slices named values along one axis, each on one dimension. Next states of inputs get the same
/// layout. It does what a `manual` tactic does with one entry per value.
struct search_move {
  struct member {
    value_id value = -1;
    int dim = 0;  ///< or first_divisible
  };
  /// The first dimension whose local size the axis divides; a value that the axis slices already is
  /// skipped.
  static constexpr int first_divisible = -1;

  int axis = 0;  ///< a number in core_program::named
  vec<member> members;
  /// True if members that cannot be sliced are skipped; otherwise all must be sliced.
  bool optional = false;
  bool sparing = false;  ///< slices large inputs only: searches try it if memory is short
};

namespace search_detail {

/// An input and the output that is its next state, or a tag and its cotangent.
struct named_target {
  std::string_view name;
  value_id value = -1, state = -1, cotangent = -1;
  bool is_cotangent = false;
};

/// Returns inputs and tags in program order, except tags that share a name.
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
  vec<int> of_name;  // by name: number of tags that have it
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

/// Returns a name with each number replaced by `#`.
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

/// Returns the text after the last number of such a name, or an empty view.
constexpr std::string_view behind_numbers(std::string_view name) {
  for (std::size_t i = name.size(); i-- > 0;)
    if (name[i] == '#') return name.substr(i + 1);
  return {};
}

/// True if the name is a path, so that it identifies the role of its value.
constexpr bool has_parts(std::string_view name) {
  for (const char c : name)
    if (c == '.' || c == '/' || c == '[') return true;
  return false;
}

/// Returns, by value, a hash of its uses: the ops that use it, the ops that use their results, and
/// so on for `depth` ops. Values with equal hashes are used alike. `sizes` includes extents in the
/// hash.
///
/// Cost      linear in the uses, times `depth`
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

/// Groups targets that have the same key, ordered by their first members.
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

/// The moves of a program along some axes:
///
/// * Tied inputs, such as the layers of a model: they have the same type, and their names differ
///   only in numbers. Each is sliced on the same dimension. If names are not paths (`arg12`), they
///   must also have the same uses, to a certain depth.
/// * Families: like tied inputs, but of different sizes.
/// * Kin: inputs with the same uses and the same name after the last number ("down.#.norm.scale",
///   "up.#.norm.scale"). This is what Megatron does to all blocks of a model, in whatever part of
///   it.
/// * All inputs below a prefix ("params", "opt_state.m", "params.layers.#"), each on the first
///   dimension that the axis divides, as ZeRO does. A second such move (`sparing`) skips small
///   inputs: slicing a norm's scale saves little memory, but gathering it takes time.
class move_list {
 public:
  constexpr move_list(const core_program& c, const vec<int>& axes)
      : c_(c), targets_(targets_of(c.p)) {
    const vec<std::uint64_t> alike = uses_of_values(c, tied_depth, true),
                             family = uses_of_values(c, family_depth, false);
    vec<text> tied, families, kin;
    for (const auto& t : targets_) {
      if (t.is_cotangent) {  // it moves with its tag
        tied.push_back(text());
        families.push_back(text());
        kin.push_back(text());
        continue;
      }
      text name = without_numbers(t.name);
      const bool is_path = has_parts(t.name);
      const std::string_view last = behind_numbers(name);
      kin.push_back(last.empty()
                        ? text()
                        : concat(last, ' ', c.p.type(t.value).shape.rank, ' ', family[t.value]));
      text type = concat(name, ' ', c.p.type(t.value));
      if (!is_path) type << ' ' << alike[t.value];
      tied.push_back(type);
      name << ' ' << c.p.type(t.value).shape.rank;
      if (!is_path) name << ' ' << family[t.value];
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
  /// Returns the moves, by axis; prefixes first, then larger groups before smaller ones.
  constexpr const vec<search_move>& moves() const { return moves_; }
  /// Returns the inputs and tags that moves slice.
  constexpr const vec<named_target>& targets() const { return targets_; }

 private:
  /// Depths of the uses that identify a value; less than the depth of a layer.
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
  /// Adds moves for all prefixes of many inputs, and one for all states; prefixes with the same
  /// inputs add one move.
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
  /// An input is small below 1 / small_part of the largest one.
  static constexpr std::int64_t small_part = 256;
  static constexpr std::size_t few = 8;  ///< smaller groups are covered by other moves
};

}  // namespace search_detail

}  // namespace partita
