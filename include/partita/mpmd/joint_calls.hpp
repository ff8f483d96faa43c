/// Merged calls of a pipeline: one call for several units or several microbatches.
///
/// Source    Shardy:MPMD, fragment merging
#pragma once

#include <partita/ir/copy.hpp>
#include <partita/ir/same_code.hpp>
#include <partita/ir/verify.hpp>
#include <partita/mpmd/one_microbatch.hpp>
#include <partita/mpmd/pipelined.hpp>
#include <partita/support/name_table.hpp>

namespace partita::mpmd_detail {

/// A call of the loop.
struct unit_call {
  int unit = -1, microbatch = -1;
};

/// Writes functions of joint calls: those of their parts in sequence. A value that one part
/// computes for a later part stays inside; an accumulator passes through all parts that add to it.
///
/// Cost: linear in the ops of the parts; all slots once.
class joint_writer {
 public:
  constexpr explicit joint_writer(const pipelined& p)
      : p_(p), first_(p.values().types.size(), -1) {}

  /// `given`: see joint_function.
  constexpr joint_function write(const vec<joint_part>& parts, const vec<char>& given) {
    joint_function out{parts, given, head(parts), {}, {}};
    program& f = out.whole.device.local;
    find_taken(parts, out);
    for (const joint_part& part : parts) run(f, part);
    give(out);
    rename_tags(f);
    for (const known& each : known_) first_[each.slot] = -1;
    known_.clear();
    return out;
  }
  /// The offset of the microbatch of a slot's value from the first microbatch of the call, or -1 if
  /// the value belongs to none.
  constexpr int ahead(value_id slot, const joint_part& part) const {
    const auto kind = p_.values().op(p_.values().producer(slot)).def->id;
    const bool cut = kind == def<op::microbatch_slice>.id || kind == def<op::microbatch_index>.id;
    return cut || p_.next_of(slot) >= 0 || p_.repeated[slot] != 0 ? part.ahead : -1;
  }

 private:
  /// A value that the function has.
  struct known {
    value_id slot = -1;
    int ahead = -1;
    value_id value = -1;
    int next = -1;
  };
  const pipelined& p_;
  vec<int> first_;  ///< by slot: index into `known_`, or -1
  vec<known> known_;

  constexpr const pipeline_unit& unit(const joint_part& part) const { return p_.units[part.unit]; }
  /// Finds a value. For a state, the one that the microbatch before has left.
  constexpr known* find(value_id slot, int ahead) {
    if (ahead > 0 && p_.next_of(slot) >= 0) return find(p_.next_of(slot), ahead - 1);
    for (int i = first_[slot]; i >= 0; i = known_[i].next)
      if (known_[i].ahead == ahead) return &known_[i];
    return nullptr;
  }
  constexpr void know(value_id slot, int ahead, value_id v) {
    if (ahead > 0 && p_.next_of(slot) >= 0) return know(p_.next_of(slot), ahead - 1, v);
    if (known* there = find(slot, ahead); there != nullptr) {
      there->value = v;
      return;
    }
    known_.push_back({slot, ahead, v, first_[slot]});
    first_[slot] = static_cast<int>(known_.size()) - 1;
  }
  constexpr pipeline_unit head(const vec<joint_part>& parts) const {
    const pipeline_unit& first = unit(parts[0]);
    pipeline_unit out;
    out.piece.mesh = first.piece.mesh;
    out.piece.stage = first.piece.stage;
    out.transposed = first.transposed;
    out.inside = true;
    out.device.mesh = first.device.mesh;
    for (const joint_part& part : parts) {
      const pipeline_unit& u = unit(part);
      const fragment_call c{.transposed = u.transposed, .part = u.part, .joined = u.joined};
      out.joined |= static_cast<std::uint8_t>(c.kinds());
      for (const auto& each : u.piece.origins) add_origin(out.piece, each);
      for (const auto& note : u.notes) {
        out.counts.count(note.kind, note.times);
        out.notes.push_back(note);
      }
    }
    return out;
  }
  static constexpr void add_origin(fragment& f, const fragment_origin& origin) {
    for (const auto& each : f.origins)
      if (each == origin) return;
    f.origins.push_back(origin);
  }

  // ---- Inputs -----------------------------------------------------------------------------------

  /// Collects the inputs: values that no earlier part computes, then accumulators.
  constexpr void find_taken(const vec<joint_part>& parts, joint_function& out) {
    constexpr value_id made_here = -1;
    for (const joint_part& part : parts) {
      const pipeline_unit& u = unit(part);
      for (std::size_t k = 0; k < plain(u); ++k)
        if (find(u.takes[k].slot, ahead(u.takes[k].slot, part)) == nullptr) take(out, part, k);
      for (std::size_t k = 0; k < results(u); ++k)
        know(u.gives[k].slot, ahead(u.gives[k].slot, part), made_here);
    }
    for (const joint_part& part : parts) {
      const pipeline_unit& u = unit(part);
      for (std::size_t k = plain(u); k < u.takes.size(); ++k)
        if (find(u.takes[k].slot, -1) == nullptr) {
          take(out, part, k);
          out.whole.sums.push_back(u.sums[k - plain(u)]);
        }
    }
  }
  static constexpr std::size_t plain(const pipeline_unit& u) {
    return u.takes.size() - u.sums.size();
  }
  static constexpr std::size_t results(const pipeline_unit& u) {
    return u.gives.size() - u.sums.size() - u.stacks.size();
  }
  constexpr void take(joint_function& out, const joint_part& part, std::size_t k) {
    const pipeline_unit& u = unit(part);
    const program& from = u.device.local;
    const value_id v = from.inputs[k];
    program& f = out.whole.device.local;
    const value_id copy = f.append(def<op::parameter>, {}, {}, from.type(v));
    copy_marks(f, from, from.producer(v));
    const int ahead_of = ahead(u.takes[k].slot, part);
    if (ahead_of > 0)
      f.ops.back().name = numbered(f, from.view(from.op(from.producer(v)).name), ahead_of);
    f.inputs.push_back(copy);
    know(u.takes[k].slot, k < plain(u) ? ahead_of : -1, copy);
    out.whole.takes.push_back(u.takes[k]);
    out.takes_ahead.push_back(ahead_of < 0 ? 0 : ahead_of);
    out.whole.device.input_types.push_back(u.device.input_types[k]);
    out.whole.device.inputs.push_back(u.device.inputs[k]);
    if (k < plain(u)) out.whole.piece.inputs.push_back(u.takes[k].slot);
  }
  /// The name of a value for a microbatch: `x5` of the second one is `x5_1`.
  static constexpr text_ref numbered(program& f, std::string_view name, int ahead) {
    return name.empty() ? text_ref() : f.intern(concat(name, '_', ahead));
  }

  /// Makes tags unique. Parts may have the same tags, for other microbatches or for a forward that
  /// runs again.
  static constexpr void rename_tags(program& f) {
    std::size_t most = f.inputs.size();
    ir_detail::for_each_tag(f, [&](const program&, const op_node&) { ++most; });
    vec<text> names(most, text());
    vec<int> again(most, 0);
    name_table taken(most);
    int count = 0;
    const auto find_or_add = [&](std::string_view name) {
      names[count] = text(name);
      const int found = taken.insert(names[count].view(), count);
      return found == count ? (++count, -1) : found;
    };
    for (int i = 0; i < f.input_count(); ++i) find_or_add(f.input_name(i));
    ir_detail::for_each_tag(f, [&](program& in, op_node& n) {
      const text own(in.view(n.name));
      const int first = find_or_add(own.view());
      if (first < 0) return;
      text other;
      do other = concat(own, '_', ++again[first]);
      while (find_or_add(other.view()) >= 0);
      n.name = in.intern(other.view());
    });
  }

  // ---- Body and results -------------------------------------------------------------------------

  constexpr void run(program& f, const joint_part& part) {
    const pipeline_unit& u = unit(part);
    const program& from = u.device.local;
    program_copier copier(from, f);
    for (std::size_t k = 0; k < u.takes.size(); ++k)
      copier.renamed[from.inputs[k]] =
          find(u.takes[k].slot, k < plain(u) ? ahead(u.takes[k].slot, part) : -1)->value;
    for (op_id o = 0; o < from.op_count(); ++o) {
      if (from.is(o, op_role::parameter)) continue;
      copier.op(o);
      for (const auto& r : from.regions_of(o)) f.append_region(program(r));
    }
    for (std::size_t k = 0; k < u.gives.size(); ++k) {
      const value_id v = copier.renamed[from.outputs[k].value];
      const bool slice = k >= results(u) && k < results(u) + u.stacks.size();
      given_.push_back({v, part, static_cast<int>(k)});
      if (!slice) know(u.gives[k].slot, k < results(u) ? ahead(u.gives[k].slot, part) : -1, v);
    }
  }
  struct result {
    value_id value = -1;
    joint_part part;
    int k = 0;
  };
  vec<result> given_;

  /// Writes the results: values used elsewhere, then slices, then the final accumulators.
  constexpr void give(joint_function& out) {
    std::size_t number = 0;
    for (const result& r : given_)
      if (r.k < static_cast<int>(results(unit(r.part))) && out.given[number++] != 0)
        give(out, r, ahead(unit(r.part).gives[r.k].slot, r.part), r.value);
    for (const result& r : given_) {
      const pipeline_unit& u = unit(r.part);
      const int slice = r.k - static_cast<int>(results(u));
      if (slice < 0 || slice >= static_cast<int>(u.stacks.size())) continue;
      out.whole.stacks.push_back(u.stacks[slice]);
      give(out, r, r.part.ahead, r.value);
    }
    for (const op_id o : out.whole.sums) give_sum(out, o);
    given_.clear();
  }
  constexpr void give_sum(joint_function& out, op_id o) {
    for (const result& r : given_) {
      const pipeline_unit& u = unit(r.part);
      const int sum = r.k - static_cast<int>(u.gives.size() - u.sums.size());
      if (sum >= 0 && u.sums[sum] == o) return give(out, r, -1, find(u.gives[r.k].slot, -1)->value);
    }
  }
  constexpr void give(joint_function& out, const result& r, int ahead_of, value_id v) {
    const pipeline_unit& u = unit(r.part);
    const program& from = u.device.local;
    program& f = out.whole.device.local;
    const std::string_view name = from.view(from.outputs[r.k].name);
    f.outputs.push_back({v, ahead_of > 0 ? numbered(f, name, ahead_of) : f.intern(name)});
    out.whole.gives.push_back(u.gives[r.k]);
    out.gives_ahead.push_back(ahead_of < 0 ? 0 : ahead_of);
    out.whole.device.output_types.push_back(u.device.output_types[r.k]);
    out.whole.device.outputs.push_back(u.device.outputs[r.k]);
  }
};

/// Finds the functions of joint calls. Equal ones are shared.
///
/// Cost: for each call, the ops of its function if it is new, and the units that use the same
/// values.
class joint_finder {
 public:
  constexpr explicit joint_finder(pipelined& p)
      : p_(p), writer_(p), needed_(p.values().types.size(), 0) {}

  constexpr void run() {
    find_takers();
    p_.joint_functions.clear();
    for (joint_call& call : p_.joint_calls) {
      call.first = p_.calls.calls[call.calls[0]].microbatch;
      for (const int c : call.calls)
        if (p_.calls.calls[c].microbatch < call.first) call.first = p_.calls.calls[c].microbatch;
      call.function = function_of(call);
    }
  }

 private:
  pipelined& p_;
  joint_writer writer_;
  vec<char> needed_;            ///< by slot: true if it is sent, or is for the caller
  vec<vec<call_edge>> takers_;  ///< by slot: units that use it (`to`), `later` microbatches later
  vec<vec<int>> call_of_;       ///< by unit: its calls, by microbatch

  template <class List>
  static constexpr bool same(const List& a, const List& b) {
    if (a.size() != b.size()) return false;
    for (std::size_t i = 0; i < a.size(); ++i)
      if (!(a[i] == b[i])) return false;
    return true;
  }
  constexpr void find_takers() {
    takers_.resize(p_.values().types.size(), {});
    call_of_.resize(p_.units.size(), {});
    for (int c = 0; c < p_.calls.count(); ++c) call_of_[p_.unit_of[c]].push_back(c);
    for (int u = 0; u < static_cast<int>(p_.units.size()); ++u)
      for (const unit_value& v : p_.units[u].takes) {
        takers_[v.slot].push_back({-1, u});
        if (const value_id next = p_.next_of(v.slot); next >= 0)
          takers_[next].push_back({-1, u, 1});
      }
    for (const transfer& t : p_.transfers) needed_[p_.slot_of[t.value]] = 1;
    for (const value_id v : p_.output_slot) needed_[v] = 1;
  }
  /// True if anything but the joint call itself uses a result of its parts for a microbatch.
  constexpr bool is_taken(value_id slot, int mesh, int microbatch, int joint) const {
    if (needed_[slot] != 0) return true;
    for (const call_edge& each : takers_[slot]) {
      const int u = each.to, i = microbatch + each.later;
      if (p_.units[u].piece.mesh != mesh || i >= p_.microbatches) continue;
      if (p_.units[u].inside ? p_.joint(call_of_[u][i]) != joint : i == p_.microbatches - 1)
        return true;
    }
    return false;
  }
  constexpr int function_of(const joint_call& call) {
    vec<joint_part> parts;
    vec<char> given;
    for (const int c : call.calls) {
      const pipeline_unit& u = p_.units[p_.unit_of[c]];
      const int i = p_.calls.calls[c].microbatch;
      parts.push_back({p_.unit_of[c], i - call.first});
      for (std::size_t k = 0; k + u.sums.size() + u.stacks.size() < u.gives.size(); ++k)
        given.push_back(is_taken(u.gives[k].slot, u.piece.mesh, i, p_.joint(c)));
    }
    for (int f = 0; f < static_cast<int>(p_.joint_functions.size()); ++f)
      if (same(p_.joint_functions[f].parts, parts) && same(p_.joint_functions[f].given, given))
        return f;
    p_.joint_functions.push_back(writer_.write(parts, given));
    return static_cast<int>(p_.joint_functions.size()) - 1;
  }
};

}  // namespace partita::mpmd_detail
