/// Cuts a program whose ops have meshes into fragments.
#pragma once

#include <partita/mpmd/chains.hpp>
#include <partita/mpmd/states.hpp>
#include <partita/support/place_table.hpp>

namespace partita::mpmd_detail {

/// An op on one of the meshes that it is on; -1 where it has none yet.
struct op_instance {
  op_id op = -1;
  int mesh = -1;
  int key = -1;   ///< ops with one key belong together; -1: anywhere in the room
  int room = -1;  ///< fragments never cross rooms; -1: the room of its mesh
};

/// The op instances to cut, in program order. Inputs and ops that are recomputed at each use are
/// not included.
class instance_list {
 public:
  vec<op_instance> all;

  constexpr explicit instance_list(const program& p) : p_(p) { reserve(); }
  /// Creates an instance of each op on each of its meshes.
  constexpr explicit instance_list(const placed_program& placed) : p_(placed.p) {
    reserve();
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (mesh_set on = placed.on[o]; !on.empty(); on = on.without(mesh_set::of(on.front())))
        add({o, on.front(), placed.key[o]});
  }
  constexpr void add(const op_instance& i) {
    if (first_[i.op] < 0) first_[i.op] = static_cast<int>(all.size());
    if (i.mesh >= 0) on_[i.op] |= mesh_set::of(i.mesh);
    all.push_back(i);
    if (i.room < 0) all.back().room = i.mesh;
  }
  constexpr int count() const { return static_cast<int>(all.size()); }
  /// The instance that provides a value on a mesh: one on that mesh, or on the first mesh that
  /// computes it. -1 if no instance does.
  constexpr int source(value_id v, int mesh) const {
    const op_id o = p_.producers[v];
    return first_[o] < 0 || mesh < 0 || !on_[o].has(mesh)
               ? first_[o]
               : first_[o] + (on_[o] & mesh_set::first(mesh)).count();
  }
  template <class F>
  constexpr void for_each_source(int i, const F& f) const {
    for (value_id v : p_.operands(all[i].op))
      if (const int s = source(v, all[i].mesh); s >= 0) f(s);
  }

 private:
  const program& p_;
  vec<int> first_;    ///< by op: its first instance, or -1; lower meshes first
  vec<mesh_set> on_;  ///< by op

  constexpr void reserve() {
    first_.resize(p_.ops.size(), -1);
    on_.resize(p_.ops.size(), mesh_set{});
  }
};

/// Groups of the numbers 0 to n - 1.
class grouping {
 public:
  /// `group_of` is indexed by number, with values in [0, groups) or -1. Members of a group keep
  /// their order.
  constexpr grouping(const vec<int>& group_of, int groups)
      : begin_(static_cast<std::size_t>(groups) + 1, 0) {
    for (int g : group_of)
      if (g >= 0) ++begin_[g + 1];
    for (int g = 0; g < groups; ++g) begin_[g + 1] += begin_[g];
    list_.resize(static_cast<std::size_t>(begin_[groups]), 0);
    vec<int> next = begin_;
    for (int i = 0; i < static_cast<int>(group_of.size()); ++i)
      if (const int g = group_of[i]; g >= 0) list_[next[g]++] = i;
  }
  constexpr span<const int> operator[](int g) const {
    return {list_.data() + begin_[g], static_cast<std::size_t>(begin_[g + 1] - begin_[g])};
  }
  constexpr int count() const { return static_cast<int>(begin_.size()) - 1; }

 private:
  vec<int> begin_, list_;
};

/// The strongly connected components of a graph, with nodes after those that they depend on, close
/// to the original order.
///
/// Source    Tarjan 1972, without recursion
class component_finder {
 public:
  vec<int> component;  ///< by node
  int count = 0;

  /// `depends`: by node, its dependences.
  constexpr component_finder(const grouping& depends, const vec<int>& targets)
      : depends_(depends), targets_(targets) {
    const auto nodes = static_cast<std::size_t>(depends.count());
    component.resize(nodes, -1);
    index_.resize(nodes, -1);
    low_.resize(nodes, 0);
    next_.resize(nodes, 0);
    for (int n = 0; n < depends.count(); ++n)
      if (index_[n] < 0) visit(n);
  }

 private:
  const grouping& depends_;
  const vec<int>& targets_;
  vec<int> index_, low_, next_, open_, path_;
  int counter_ = 0;

  constexpr void enter(int n) {
    index_[n] = low_[n] = counter_++;
    open_.push_back(n);
    path_.push_back(n);
  }
  constexpr void visit(int root) {
    enter(root);
    while (!path_.empty()) {
      const int n = path_.back();
      const auto edges = depends_[n];
      if (next_[n] < static_cast<int>(edges.size())) {
        const int to = targets_[edges[next_[n]++]];
        if (index_[to] < 0)
          enter(to);
        else if (component[to] < 0 && index_[to] < low_[n])
          low_[n] = index_[to];
        continue;
      }
      path_.pop_back();
      if (!path_.empty() && low_[n] < low_[path_.back()]) low_[path_.back()] = low_[n];
      if (low_[n] == index_[n]) close(n);
    }
  }
  constexpr void close(int n) {
    for (int m = -1; m != n;) {
      m = open_.back();
      open_.pop_back();
      component[m] = count;
    }
    ++count;
  }
};

/// Ops that run together on one mesh.
struct cut_fragment {
  int mesh = -1, key = -1;  ///< the room of its instances; key -1: unnamed
  vec<int> instances;       ///< in program order
};

/// Fragments in an order of execution.
///
/// Instances with the same key form one fragment. If that would create a cycle (a part that needs
/// results of another part that uses its own results), they form as few fragments as program order
/// permits. Other instances are absorbed into the fragment on their mesh that computes the last of
/// their operands, if there is one. Otherwise, and always for recomputed ops, they go into the
/// fragment that needs them first, or the last one before. If no fragment fits, instances that wait
/// for the same ones, or that only these need, form a fragment of their own.
///
/// Algorithm: fragments with keys get positions, and a dependent fragment gets a higher one.
/// Between two positions there are levels, one for each change of meshes. A forward walk finds the
/// first possible place of all other instances, a backward walk finds the best one.
///
/// Cost      linear in instances and their operands, and a search among the fragments of a mesh for
///           each absorbed instance
///
/// Cost      linear in instances and their operands, and a look-up among the fragments of a mesh
///           for each that is absorbed
class cutting {
 public:
  /// Without `absorb`, each instance without a key is a separate fragment.
  constexpr cutting(const program& p, const instance_list& list, int keys, bool absorb = true)
      : p_(p), list_(list), keys_(keys), absorb_(absorb) {}

  constexpr vec<cut_fragment> run() {
    const auto count = list_.all.size();
    place_.resize(count, place{});
    find_positions();
    for (int i = 0; i < list_.count(); ++i)
      if (key(i) < 0) put_early(i);
    if (absorb_) put_late();
    for (int i = 0; i < list_.count(); ++i)
      if (key(i) < 0)
        fragment_of_[i] = place_[i].level == 0 ? place_[i].position - 1 : other(i, place_[i]);
    return collect();
  }

 private:
  struct place {
    int position = 0, level = 0;
    friend constexpr bool operator==(const place&, const place&) = default;
    constexpr bool before(const place& other) const {
      return position != other.position ? position < other.position : level < other.level;
    }
  };
  /// A place, or (`open`) the limit before or after it.
  struct limit {
    place at;
    bool open = false;
  };

  const program& p_;
  const instance_list& list_;
  int keys_;
  bool absorb_;
  vec<place> place_;             ///< by instance
  vec<cut_fragment> fragments_;  ///< position n has number n - 1; others follow
  vec<place> fragment_place_;
  vec<vec<int>> on_mesh_;  ///< by mesh: positions of its fragments
  vec<int> fragment_of_;   ///< by instance
  place_table others_;

  /// A room counts as a separate mesh.
  constexpr int mesh(int i) const { return list_.all[i].room; }
  constexpr int key(int i) const { return list_.all[i].key; }
  /// True if two dependent instances can never be in one fragment.
  constexpr bool apart(int a, int b) const {
    return mesh(a) != mesh(b) || (!absorb_ && (key(a) < 0 || key(b) < 0));
  }

  // ---- Fragments of keys ------------------------------------------------------------------------

  constexpr int node_of(int i) const { return key(i) >= 0 ? key(i) : keys_ + i; }
  constexpr void find_positions() {
    vec<int> from, to, component_of;
    for (int i = 0; i < list_.count(); ++i)
      list_.for_each_source(i, [&](int s) {
        if (node_of(s) == node_of(i)) return;
        from.push_back(node_of(i));
        to.push_back(node_of(s));
      });
    const component_finder found(grouping(from, keys_ + list_.count()), to);
    for (int i = 0; i < list_.count(); ++i) component_of.push_back(found.component[node_of(i)]);
    const grouping members(component_of, found.count);
    fragment_of_.resize(list_.all.size(), -1);
    vec<limit> needed(list_.all.size(), limit{});  // (`open`: after it)
    vec<int> latest(static_cast<std::size_t>(keys_), -1);
    for (int c = 0; c < found.count; ++c)
      for (int i : members[c]) position(i, component_of, needed, latest);
  }
  /// Assigns positions to the instances of one component. Those with a key join the latest fragment
  /// of that key if it is after everything that they need.
  constexpr void position(int i, const vec<int>& component_of, vec<limit>& needed,
                          vec<int>& latest) {
    limit need;
    list_.for_each_source(i, [&](int s) {
      if (component_of[s] != component_of[i]) return;
      limit from = key(s) >= 0 ? limit{place_[s], false} : needed[s];
      if (from.at.position > 0 && apart(s, i)) from.open = true;
      if (need.at.before(from.at) || (need.at == from.at && from.open)) need = from;
    });
    needed[i] = need;
    if (key(i) < 0) return;
    int& f = latest[key(i)];
    const bool joins = f >= 0 && (need.at.before(fragment_place_[f]) ||
                                  (need.at == fragment_place_[f] && !need.open));
    if (!joins) f = add({mesh(i), key(i), {}}, {count() + 1, 0});
    place_[i] = fragment_place_[f];
    fragment_of_[i] = f;
  }
  constexpr int count() const { return static_cast<int>(fragments_.size()); }
  constexpr int add(cut_fragment&& f, const place& at) {
    if (f.mesh >= static_cast<int>(on_mesh_.size()))
      on_mesh_.resize(static_cast<std::size_t>(f.mesh) + 1, vec<int>{});
    if (f.mesh >= 0) on_mesh_[f.mesh].push_back(at.position);
    fragments_.push_back(static_cast<cut_fragment&&>(f));
    fragment_place_.push_back(at);
    return count() - 1;
  }

  // ---- Absorbed instances -----------------------------------------------------------------------

  /// The fragment on a mesh with the first position not below `least`, or with the last position
  /// not above `most`; 0 otherwise.
  constexpr int first_from(int mesh, int least) const {
    const vec<int>* list = positions(mesh);
    if (list == nullptr) return 0;
    const std::size_t at = below(*list, least);
    return at < list->size() ? (*list)[at] : 0;
  }
  constexpr int last_to(int mesh, int most) const {
    const vec<int>* list = positions(mesh);
    if (list == nullptr) return 0;
    const std::size_t at = below(*list, most + 1);
    return at > 0 ? (*list)[at - 1] : 0;
  }
  constexpr const vec<int>* positions(int mesh) const {
    return mesh < 0 || mesh >= static_cast<int>(on_mesh_.size()) ? nullptr : &on_mesh_[mesh];
  }
  /// The number of elements of a sorted list that are below a number.
  static constexpr std::size_t below(const vec<int>& list, int number) {
    std::size_t from = 0, to = list.size();
    while (from < to) {
      const std::size_t middle = (from + to) / 2;
      if (list[middle] < number)
        from = middle + 1;
      else
        to = middle;
    }
    return from;
  }
  /// Puts an instance as early as possible: with its operands, or alone. A state that a microbatch
  /// leaves for the next one goes into the first possible fragment, since the next microbatch waits
  /// for it.
  constexpr void put_early(int i) {
    place least;
    list_.for_each_source(i, [&](int s) {
      place from = place_[s];
      if (apart(s, i)) ++from.level;
      if (least.before(from)) least = from;
    });
    if (is_next_state(p_.ops[list_.all[i].op]) && !is_made(least))
      least = at_or(first_from(mesh(i), least.position + 1), least);
    if (!absorb_ || (least.level == 0 && !is_made(least))) ++least.level;
    place_[i] = least;
  }
  /// True if this is the place of a fragment with a key.
  static constexpr bool is_made(const place& at) { return at.position > 0 && at.level == 0; }

  /// Puts the remaining instances into the fragments that need them first.
  constexpr void put_late() {
    vec<limit> needed(list_.all.size(), limit{{count() + 1, 0}, false});  // (`open`: before it)
    for (int i = list_.count(); i-- > 0;) {
      if (key(i) < 0 && (!is_made(place_[i]) || p_.ops[list_.all[i].op].marks.again))
        place_[i] = later(i, needed[i]);
      list_.for_each_source(i, [&](int s) {
        const limit by{place_[i], apart(s, i)};
        if (by.at.before(needed[s].at) || (by.at == needed[s].at && by.open)) needed[s] = by;
      });
    }
  }
  constexpr place later(int i, const limit& needed) const {
    const place& early = place_[i];
    if (needed.at.position > count())  // no instance needs it
      return is_made(early) ? early : at_or(first_from(mesh(i), early.position + 1), early);
    if (!needed.open) return needed.at;
    const int at = last_to(mesh(i), needed.at.position - (needed.at.level == 0 ? 1 : 0));
    return at_or(at > early.position ? at : 0, early);
  }
  static constexpr place at_or(int position, const place& otherwise) {
    return position > 0 ? place{position, 0} : otherwise;
  }

  /// Returns the fragment at a place of a mesh for instances that fit no other fragment.
  constexpr int other(int i, const place& at) {
    const auto hash = [](int mesh, const place& where) {
      return hash_of((static_cast<std::uint64_t>(where.position) << 32) ^
                     (static_cast<std::uint64_t>(where.level) << 8) ^
                     static_cast<std::uint64_t>(mesh + 1));
    };
    const int known = !absorb_ ? -1 : others_.find(hash(mesh(i), at), [&](int f) {
      return fragments_[f].mesh == mesh(i) && fragment_place_[f] == at;
    });
    if (known >= 0) return known;
    const int fresh = count();
    fragments_.push_back({mesh(i), -1, {}});
    fragment_place_.push_back(at);
    if (absorb_)
      others_.insert(fresh, [&](int f) { return hash(fragments_[f].mesh, fragment_place_[f]); });
    return fresh;
  }

  // ---- Order ------------------------------------------------------------------------------------

  constexpr vec<cut_fragment> collect() {
    for (int i = 0; i < list_.count(); ++i) fragments_[fragment_of_[i]].instances.push_back(i);
    vec<int> levels, positions;
    int most = 0, last = 0;
    for (const place& at : fragment_place_) {
      levels.push_back(at.level);
      if (at.level > most) most = at.level;
      if (at.position > last) last = at.position;
    }
    const grouping by_level(levels, most + 1);
    vec<int> order, sorted;
    for (int l = 0; l <= most; ++l)
      for (int f : by_level[l]) order.push_back(f);
    for (int f : order) positions.push_back(fragment_place_[f].position);
    const grouping by_position(positions, last + 1);
    for (int n = 0; n <= last; ++n)
      for (int k : by_position[n]) sorted.push_back(order[k]);
    vec<cut_fragment> out;
    for (int f : sorted) out.push_back(static_cast<cut_fragment&&>(fragments_[f]));
    return out;
  }
};

}  // namespace partita::mpmd_detail
