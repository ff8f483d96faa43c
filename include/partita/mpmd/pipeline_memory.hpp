/// The memory that the devices of each mesh need while a pipeline runs.
#pragma once

#include <cstdint>

#include <partita/ir/live_bytes.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita {

/// The memory of one device of a mesh, in bytes.
struct mesh_memory {
  std::int64_t arguments = 0;  ///< inputs of the step that are kept there, including received ones
  /// The maximum over time: arguments, values kept for later calls (residuals, accumulators,
  /// stacks), received values that are still needed, and the temporary memory of the running call.
  std::int64_t peak = 0;
  int call = -1;  ///< the call that runs at the peak
};

/// The reason why a value occupies memory of a mesh.
enum class held_kind : std::uint8_t {
  argument,  ///< an input of the step, or a copy of one
  kept,      ///< a result kept for later calls: residuals, next states
  combined,  ///< combined over all microbatches: sums, stacks
  received   ///< a result of another mesh
};
inline constexpr int held_kinds = 4;
/// The name of a kind in reports.
constexpr std::string_view name_of(held_kind k) {
  constexpr std::string_view names[] = {"arguments", "kept for later calls", "sums and stacks",
                                        "received from other meshes"};
  return names[static_cast<int>(k)];
}
/// The memory of a slot on a device of a mesh, for a number of microbatches or once.
struct held_memory {
  value_id slot = -1;  ///< see pipelined::values
  held_kind kind = held_kind::kept;
  int count = 1;
  std::int64_t bytes = 0;  ///< total
};
/// The contents of a device's memory when it is fullest.
struct mesh_peak {
  mesh_memory memory;
  std::int64_t running = 0;  ///< bytes that the running call needs in addition
  vec<held_memory> held;     ///< largest first
};

namespace mpmd_detail {

/// Replays the events of all meshes in time order.
///
/// Cost: for each call its operands, times the units that use the same values; sorting of events.
class memory_walk {
 public:
  constexpr memory_walk(const pipelined& p, const timeline& t) : p_(p), t_(t) {
    const auto meshes = static_cast<std::size_t>(p.topology.count());
    out_.resize(meshes, mesh_memory{});
    now_.resize(meshes, 0);
    place_.resize(p.calls.calls.size(), 0);
    for (int i = 0; i < static_cast<int>(p.order.size()); ++i) place_[p.order[i]] = i;
    const auto functions = static_cast<int>(p.units.size() + p.joint_functions.size());
    for (int f = 0; f < functions; ++f)
      beyond_.push_back(live_bytes(p.function(f).device.local).beyond_arguments());
    find_calls();
    find_takers();
  }

  constexpr vec<mesh_memory> run() {
    walk();
    return static_cast<vec<mesh_memory>&&>(out_);
  }
  /// Returns the contents at each peak.
  ///
  /// Cost: for each mesh all events again.
  constexpr vec<mesh_peak> run_to_peaks() {
    walk();
    vec<mesh_peak> out;
    for (int m = 0; m < static_cast<int>(out_.size()); ++m) out.push_back(peak_on(m));
    return out;
  }

 private:
  /// An event. At the same time, memory is freed first, then values are created or arrive, then a
  /// call starts.
  struct event {
    enum kind_type : std::uint8_t { frees, makes, runs };
    double seconds = 0;
    kind_type kind = frees;
    int mesh = 0;
    std::int64_t bytes = 0;
    int call = -1;
    value_id slot = -1;
    held_kind why = held_kind::kept;
  };
  struct taker {
    int unit = -1;
    int later = 0;       ///< the number of microbatches after which it is used
    bool first = false;  ///< true if only the call for the first microbatch uses it
    int next = -1;
  };

  const pipelined& p_;
  const timeline& t_;
  vec<mesh_memory> out_;
  vec<std::int64_t> now_, beyond_;
  vec<int> place_;         ///< by call, in the order
  vec<vec<int>> call_of_;  ///< by unit: its calls, by microbatch
  vec<int> first_taker_;   ///< by slot: first entry in `takers_`
  vec<taker> takers_;
  vec<char> returned_;  ///< by slot
  vec<char> in_place_;  ///< by slot: true if it is the next state of an input and reuses its memory
  vec<int> given_by_;   ///< by slot: the last visited function
  vec<int> freed_by_;   ///< by slot: the last visited call
  vec<event> events_;
  vec<int> by_time_;  ///< events
  vec<int> last_;  ///< by mesh: the position in `by_time_` of the event at its peak; -1: the start

  constexpr void walk() {
    keep_arguments();
    last_.resize(out_.size(), -1);
    for (int c = 0; c < p_.calls.count(); ++c) add_call(c);
    for (int i = 0; i < static_cast<int>(p_.lists.messages.size()); ++i) add_message(i);
    for (int i = 0; i < static_cast<int>(events_.size()); ++i) by_time_.push_back(i);
    merge_sort(by_time_, [&](int i, int j) {
      const event &a = events_[i], &b = events_[j];
      return a.seconds != b.seconds ? a.seconds < b.seconds : a.kind < b.kind;
    });
    for (int i = 0; i < static_cast<int>(by_time_.size()); ++i) apply(events_[by_time_[i]], i);
  }

  // ---- Contents at the peak ---------------------------------------------------------------------

  constexpr mesh_peak peak_on(int mesh) const {
    mesh_peak out{out_[mesh], 0, {}};
    vec<int> at(values().types.size(), -1);
    for_each_argument([&](value_id slot, int m, std::int64_t size) {
      if (m == mesh) add(out, at, slot, held_kind::argument, size);
    });
    for (int i = 0; i <= last_[mesh]; ++i) {
      const event& e = events_[by_time_[i]];
      if (e.mesh != mesh) continue;
      if (e.kind == event::makes) add(out, at, e.slot, e.why, e.bytes);
      if (e.kind == event::frees) drop(out, at, e.slot, e.bytes);
      if (e.kind == event::runs && i == last_[mesh]) out.running = e.bytes;
    }
    vec<int> order;
    for (int i = 0; i < static_cast<int>(out.held.size()); ++i)
      if (out.held[i].bytes > 0) order.push_back(i);
    merge_sort(order, [&](int a, int b) { return out.held[a].bytes > out.held[b].bytes; });
    vec<held_memory> sorted;
    for (const int i : order) sorted.push_back(out.held[i]);
    out.held = static_cast<vec<held_memory>&&>(sorted);
    return out;
  }
  /// (A value that is freed at the time of its creation is freed first.)
  static constexpr held_memory& entry(mesh_peak& out, vec<int>& at, value_id slot, held_kind why) {
    if (at[slot] < 0) {
      at[slot] = static_cast<int>(out.held.size());
      out.held.push_back({slot, why, 0, 0});
    }
    return out.held[at[slot]];
  }
  static constexpr void add(mesh_peak& out, vec<int>& at, value_id slot, held_kind why,
                            std::int64_t size) {
    held_memory& h = entry(out, at, slot, why);
    ++h.count;
    h.bytes = saturating_add(h.bytes, size);
  }
  static constexpr void drop(mesh_peak& out, vec<int>& at, value_id slot, std::int64_t size) {
    held_memory& h = entry(out, at, slot, held_kind::kept);
    --h.count;
    h.bytes -= size;
  }

  constexpr const program& values() const { return p_.values(); }
  constexpr void find_calls() {
    call_of_.resize(p_.units.size(), vec<int>{});
    for (int c = 0; c < p_.calls.count(); ++c) call_of_[p_.unit_of[c]].push_back(c);
  }
  constexpr bool is_slice(value_id slot) const {
    return values().op(values().producer(slot)).def->id == def<op::microbatch_slice>.id;
  }
  constexpr void find_takers() {
    first_taker_.resize(values().types.size(), -1);
    returned_.resize(values().types.size(), 0);
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      for (const auto& v : p_.units[u].takes) {
        const value_id next = p_.next_of(v.slot);
        if (next >= 0) add_taker(next, {u, 1});
        add_taker(p_.place_of(v.slot, 0).slot, {u, 0, next >= 0});
      }
    for (const value_id v : p_.output_slot) returned_[v] = 1;
    find_states();
    given_by_.resize(values().types.size(), -1);
    freed_by_.resize(values().types.size(), -1);
  }
  constexpr void add_taker(value_id slot, taker t) {
    int& first = first_taker_[slot];
    t.next = first;
    takers_.push_back(t);
    first = static_cast<int>(takers_.size()) - 1;
  }
  constexpr void find_states() {
    in_place_.resize(values().types.size(), 0);
    name_table inputs(p_.source.inputs.size());
    for (int i = 0; i < p_.source.input_count(); ++i) inputs.insert(p_.source.input_name(i), i);
    for (int i = 0; i < p_.source.output_count(); ++i) {
      const int in = inputs.find(p_.source.output_name(i));
      if (in < 0 || p_.input_mesh[in] != p_.output_mesh[i]) continue;
      const value_id from = p_.slot_of[p_.source.inputs[in]], to = p_.output_slot[i];
      in_place_[to] =
          values().type(from) == values().type(to) && p_.input_layout[in] == p_.output_layout[i];
    }
  }
  constexpr std::int64_t bytes(value_id slot, const layout& l, int mesh) const {
    const tensor_type& t = values().type(slot);
    return tensor_type{t.element, l.local(t.shape, p_.meshes[mesh])}.bytes();
  }
  template <class F>
  constexpr void for_each_argument(const F& f) const {
    for (int i = 0; i < p_.source.input_count(); ++i) {
      const value_id slot = p_.slot_of[p_.source.inputs[i]];
      f(slot, p_.input_mesh[i], bytes(slot, p_.input_layout[i], p_.input_mesh[i]));
    }
    for (std::size_t i = 0; i < p_.transfers.size(); ++i)
      if (const transfer& t = p_.transfers[i]; t.after < 0)
        f(p_.slot_of[t.value], t.to, bytes(p_.slot_of[t.value], p_.sent_as[i].to, t.to));
  }
  constexpr void keep_arguments() {
    for_each_argument([&](value_id, int mesh, std::int64_t size) { now_[mesh] += size; });
    for (std::size_t m = 0; m < out_.size(); ++m) out_[m].arguments = out_[m].peak = now_[m];
  }
  constexpr bool is_argument(value_id slot) const {
    return values().is(values().producer(slot), op_role::parameter);
  }
  /// True if a call is the last one on its mesh that uses a slot (of a microbatch).
  constexpr bool is_last(int c, value_id slot, int microbatch) const {
    const auto& mine = p_.units[p_.unit_of[c]];
    const int place = place_[last_part(c)];
    for (int i = first_taker_[slot]; i >= 0; i = takers_[i].next) {
      const auto& other = p_.units[takers_[i].unit];
      if (other.piece.mesh != mine.piece.mesh) continue;
      const auto& calls = call_of_[takers_[i].unit];
      const bool last = microbatch == p_.microbatches - 1;
      if (takers_[i].first || (p_.repeated[slot] != 0 && other.inside)) {
        const int at = takers_[i].first ? 0 : microbatch + takers_[i].later;
        if (at < p_.microbatches && place_[calls[at]] > place) return false;
        continue;
      }
      for (const int each : calls)
        if ((p_.repeated[slot] == 0 || last) && place_[each] > place) return false;
    }
    return true;
  }
  constexpr int last_part(int c) const {
    return p_.joint(c) < 0 ? c : p_.joint_calls[p_.joint(c)].calls.back();
  }
  constexpr bool is_taken_on(value_id slot, int mesh) const {
    for (int i = first_taker_[slot]; i >= 0; i = takers_[i].next)
      if (p_.units[takers_[i].unit].piece.mesh == mesh) return true;
    return false;
  }
  constexpr void add_call(int c) {
    if (p_.follows(c)) return;
    const int number = p_.function_of(c);
    const pipeline_unit& u = p_.function(number);
    const int mesh = u.piece.mesh;
    const double begin = t_.begin[c], end = t_.end[last_part(c)];
    std::int64_t beyond = beyond_[number];
    for (std::size_t k = 0; k < u.takes.size(); ++k)  // a slice is a copy made for this call
      if (is_slice(u.takes[k].slot))
        beyond = saturating_add(beyond, u.device.local.input_type(static_cast<int>(k)).bytes());
    events_.push_back({begin, event::runs, mesh, beyond, c});
    const std::size_t own = u.takes.size() - u.sums.size();
    for (const auto& v : u.gives) given_by_[v.slot] = number;
    for (std::size_t k = 0; k < u.takes.size(); ++k) {
      const slot_place at = p_.place_of(u.takes[k].slot, p_.microbatch_taken(c, k));
      const value_id slot = at.slot;
      if (k >= own) {  // an accumulator
        if (begins(c, u.sums[k - own]))
          makes(begin, mesh, u.device.local.input_type(static_cast<int>(k)).bytes(), slot,
                held_kind::combined);
        continue;
      }
      const bool slice = is_slice(u.takes[k].slot);
      if (slice && freed_by_[slot] == c) continue;  // another slice of the same stack
      const bool finishes =  // it is freed in any case; another microbatch's is not
          given_by_[u.takes[k].slot] == number && p_.repeated[slot] == 0;
      if (!finishes &&
          (is_argument(slot) || returned_[slot] != 0 || !is_last(c, slot, at.microbatch)))
        continue;
      freed_by_[slot] = c;
      frees(end, mesh,
            u.device.local.input_type(static_cast<int>(k)).bytes() * (slice ? p_.microbatches : 1),
            slot);
    }
    const std::size_t sums = u.gives.size() - u.sums.size(), stacks = sums - u.stacks.size();
    for (std::size_t k = 0; k < sums; ++k) {
      const std::int64_t size = u.device.local.output_type(static_cast<int>(k)).bytes();
      const value_id slot = u.gives[k].slot;
      if (k >= stacks) {
        if (is_first(u.stacks, k - stacks) && begins(c, u.stacks[k - stacks]))
          makes(begin, mesh, size * p_.microbatches, slot, held_kind::combined);
      } else if (in_place_[slot] == 0 && (returned_[slot] != 0 || is_taken_on(slot, mesh))) {
        makes(end, mesh, size, slot, held_kind::kept);
      }
    }
  }
  static constexpr bool is_first(const vec<op_id>& list, std::size_t k) {
    for (std::size_t i = 0; i < k; ++i)
      if (list[i] == list[k]) return false;
    return true;
  }
  /// True if a call is the first one that adds to a sum or a stack.
  constexpr bool begins(int c, op_id combines) const {
    if (p_.joint(c) < 0) return c == first_call(p_.unit_of[c]);
    for (const int part : p_.joint_calls[p_.joint(c)].calls)
      if (makes_part(p_.units[p_.unit_of[part]], combines) && part == first_call(p_.unit_of[part]))
        return true;
    return false;
  }
  static constexpr bool makes_part(const pipeline_unit& u, op_id combines) {
    for (const auto* list : {&u.sums, &u.stacks})
      for (const op_id o : *list)
        if (o == combines) return true;
    return false;
  }
  constexpr int first_call(int u) const {
    int first = call_of_[u][0];
    for (const int c : call_of_[u])
      if (place_[c] < place_[first]) first = c;
    return first;
  }
  /// Counts a sent value on the receiving mesh from then on, and on the sender until then.
  constexpr void add_message(int i) {
    const message& m = p_.lists.messages[i];
    const transfer& t = p_.transfers[m.transfer];
    const transfer_layout& l = p_.sent_as[m.transfer];
    const value_id slot = p_.slot_of[t.value];
    makes(t_.sent[i], t.to, bytes(slot, l.to, t.to), slot, held_kind::received);
    if (returned_[slot] != 0 || is_taken_on(slot, t.from) || t_.sent[i] == t_.end[m.call]) return;
    const std::int64_t size = bytes(slot, l.from, t.from);
    makes(t_.end[m.call], t.from, size, slot, held_kind::kept);
    frees(t_.sent[i], t.from, size, slot);
  }
  constexpr void makes(double seconds, int mesh, std::int64_t size, value_id slot, held_kind why) {
    events_.push_back({seconds, event::makes, mesh, size, -1, slot, why});
  }
  constexpr void frees(double seconds, int mesh, std::int64_t size, value_id slot) {
    events_.push_back({seconds, event::frees, mesh, size, -1, slot});
  }
  constexpr void apply(const event& e, int place) {
    std::int64_t& now = now_[e.mesh];
    if (e.kind == event::frees) now -= e.bytes;
    if (e.kind == event::makes) now = saturating_add(now, e.bytes);
    const std::int64_t here = e.kind == event::runs ? saturating_add(now, e.bytes) : now;
    if (here <= out_[e.mesh].peak) return;
    out_[e.mesh].peak = here;
    out_[e.mesh].call = e.call;
    last_[e.mesh] = place;
  }
};

}  // namespace mpmd_detail

/// Memory of each mesh if calls run at given times (see simulate, play).
constexpr vec<mesh_memory> memory_of(const pipelined& p, const timeline& t) {
  return mpmd_detail::memory_walk(p, t).run();
}
/// Memory of each mesh if all calls take the same time and messages take none.
constexpr vec<mesh_memory> memory_of(const pipelined& p) {
  return memory_of(p, play(
                          p.calls, p.lists, [](int) { return 1.0; }, p.channels));
}

/// The contents of each mesh's memory when it is fullest, if calls run at given times.
constexpr vec<mesh_peak> peaks_of(const pipelined& p, const timeline& t) {
  return mpmd_detail::memory_walk(p, t).run_to_peaks();
}
/// The same if all calls take the same time.
constexpr vec<mesh_peak> peaks_of(const pipelined& p) {
  return peaks_of(p, play(
                         p.calls, p.lists, [](int) { return 1.0; }, p.channels));
}

}  // namespace partita
