/// Checks that a program is another one without dead code.
#pragma once

#include <cstddef>
#include <cstdint>

#include <partita/ir/same_code.hpp>
#include <partita/ir/source_ids.hpp>
#include <partita/ir/tidy.hpp>
#include <partita/ir/wires.hpp>
#include <partita/support/place_table.hpp>

namespace partita::prove_detail {

/// Finds values of a program in a part of that program. A value is found if the part has an op with
/// the same definition and attributes whose operands are found. A value of a loop is found if the
/// values that enter and leave an iteration are found, by induction over iterations.
///
/// Which operands of a loop the part kept is read from op_marks::source of the inputs of its nested
/// programs, and which results from a list. These are hints: a wrong one loses values, and finds no
/// false ones.
class part_finder {
 public:
  constexpr part_finder() = default;
  /// `kept`: the kept results of ops of the original program, by op number in ascending order; all
  /// results of other ops are kept.
  constexpr part_finder(const program& whole, const program& part,
                        const vec<partita::kept_results>& kept)
      : whole_(&whole), part_(&part), kept_(&kept), found_(whole.types.size(), -1) {}

  /// `inputs`: for each input of the original program, the input of the part, or -1.
  constexpr void run(const vec<int>& inputs) {
    for (std::size_t i = 0; i < inputs.size(); ++i)
      if (inputs[i] >= 0) found_[whole_->inputs[i]] = part_->inputs[inputs[i]];
    place_table known;
    find_repeated(known);
    for (op_id o = 0; o < whole_->op_count(); ++o) {
      if (whole_->is(o, op_role::parameter)) continue;
      if (whole_->op(o).region_count > 0) {
        find_nested(o);
      } else if (finds_operands(o)) {
        const int same = known.find(hash_in_whole(o),
                                    [&](int each) { return same_op(*whole_, o, each, found_); });
        if (same >= 0) take_results(o, same);
      }
    }
  }
  /// True if a value of the original program is this value of the part.
  constexpr bool is(value_id v, value_id of_part) const {
    return found_[v] >= 0 && found_[v] == first_[of_part];
  }

 private:
  const program *whole_ = nullptr, *part_ = nullptr;
  const vec<partita::kept_results>* kept_ = nullptr;
  vec<value_id> found_;  ///< by value of the original program
  vec<value_id> first_;  ///< by value of the part: the first one that is computed in the same way
  op_id next_ = 0;       ///< the last visited op of the part with nested programs

  /// Maps each op of the part that repeats another one to that one.
  constexpr void find_repeated(place_table& known) {
    for (value_id v = 0; v < part_->value_count(); ++v) first_.push_back(v);
    for (op_id o = 0; o < part_->op_count(); ++o) {
      const op_node& n = part_->op(o);
      if (n.def->role == op_role::parameter || n.region_count > 0) continue;
      const auto hash = [&](int each) { return hash_in_part(each); };
      const int same = known.find(hash(o), [&](int each) { return repeats(o, each); });
      if (same < 0) known.insert(o, hash);
      for (int r = 0; r < n.result_count && same >= 0; ++r)
        first_[n.result + r] = part_->op(same).result + r;
    }
  }
  constexpr bool repeats(op_id o, op_id other) const { return same_op(*part_, o, other, first_); }

  constexpr bool finds_operands(op_id o) const {
    for (value_id v : whole_->operands(o))
      if (found_[v] < 0) return false;
    return true;
  }
  static constexpr std::size_t hash_of_op(const program& p, op_id o, const vec<value_id>& in_part) {
    ir_detail::code_number n;
    n.add(p.op(o).def->id);
    for (value_id v : p.operands(o)) n.add(static_cast<std::uint64_t>(in_part[v]));
    for (const std::int64_t a : p.attrs(o)) n.add(static_cast<std::uint64_t>(a));
    n.add(p.type(p.op(o).result));
    return n.value();
  }
  constexpr std::size_t hash_in_part(op_id o) const { return hash_of_op(*part_, o, first_); }
  constexpr std::size_t hash_in_whole(op_id o) const { return hash_of_op(*whole_, o, found_); }
  /// True if an op of `p` is this op of the part. `in_part`: by value of `p`, that of the part.
  constexpr bool same_op(const program& p, op_id o, op_id other,
                         const vec<value_id>& in_part) const {
    const op_node &a = p.op(o), &b = part_->op(other);
    if (a.def->id != b.def->id || a.operand_count != b.operand_count ||
        a.result_count != b.result_count ||
        !ir_detail::same_elements(p.attrs(o), part_->attrs(other)))
      return false;
    for (int i = 0; i < a.operand_count; ++i)
      if (in_part[p.operand(o, i)] != first_[part_->operand(other, i)]) return false;
    for (int r = 0; r < a.result_count; ++r)
      if (p.type(a.result + r) != part_->type(b.result + r)) return false;
    return true;
  }
  constexpr void take_results(op_id o, op_id other) {
    for (int r = 0; r < whole_->op(o).result_count; ++r)
      found_[whole_->op(o).result + r] = part_->op(other).result + r;
  }

  // ---- Ops with nested programs ---------------------------------------------------------------

  /// Compares with the op of the part that has the same number, if there is one.
  constexpr void find_nested(op_id o) {
    const int number = whole_->op(o).marks.source;
    while (next_ < part_->op_count() &&
           (part_->op(next_).region_count == 0 || part_->op(next_).marks.source < number))
      ++next_;
    if (next_ < part_->op_count() && part_->op(next_).marks.source == number) find_part(o, next_);
  }
  /// The end of a wire of this kind in a region (-1: any), or null.
  static constexpr const wire_end* end_of(const wire& w, wire_end::kind_type kind,
                                          int region = -1) {
    for (const wire_end& e : w.ends)
      if (e.kind == kind && (region < 0 || e.region == region)) return &e;
    return nullptr;
  }
  static constexpr int number_of(const program& p, int input) {
    return p.op(p.producer(p.inputs[input])).marks.source;
  }
  /// The wire of the part that enters in the same way, or -1. `from`: the first wire to compare.
  constexpr int same_entry(const wire& w, op_id o, const wire_list& list, op_id other,
                           int from) const {
    const wire_end* const mine = end_of(w, wire_end::input);
    const int count = static_cast<int>(list.wires.size());
    for (int i = 0; i < count; ++i) {
      const int k = (from + i) % count;
      const wire_end* const theirs = end_of(list.wires[k], wire_end::input);
      if (theirs == nullptr || theirs->region != mine->region ||
          list.wires[k].ends.size() != w.ends.size() ||
          number_of(whole_->region(o, mine->region), mine->index) !=
              number_of(part_->region(other, theirs->region), theirs->index))
        continue;
      return enters_alike(w, list.wires[k], o, other) ? k : -1;
    }
    return -1;
  }
  /// True if both wires have the same ends and the same operand.
  constexpr bool enters_alike(const wire& a, const wire& b, op_id o, op_id other) const {
    for (std::size_t e = 0; e < a.ends.size(); ++e) {
      const wire_end &x = a.ends[e], &y = b.ends[e];
      if (x.kind != y.kind || x.region != y.region || x.shift != y.shift) return false;
      if (x.kind == wire_end::operand &&
          !is(whole_->operand(o, x.index), part_->operand(other, y.index)))
        return false;
    }
    return true;
  }
  constexpr void find_part(op_id o, op_id other) {
    const op_node &mine = whole_->op(o), &theirs = part_->op(other);
    if (mine.def->id != theirs.def->id || mine.region_count != theirs.region_count) return;
    wire_list a, b;
    mine.def->wires(*whole_, o, a);
    theirs.def->wires(*part_, other, b);
    vec<vec<int>> inputs;  // by region and input of the original program
    for (const auto& r : whole_->regions_of(o)) inputs.push_back(vec<int>(r.inputs.size(), -1));
    vec<int> same(a.wires.size(), -1);
    int from = 0;
    vec<char> met(b.wires.size(), 0), operands(static_cast<std::size_t>(mine.operand_count), 0);
    for (std::size_t k = 0; k < a.wires.size(); ++k) {
      if (end_of(a.wires[k], wire_end::input) == nullptr) continue;
      same[k] = same_entry(a.wires[k], o, b, other, from);
      if (same[k] < 0) continue;
      from = same[k] + 1;
      met[same[k]] = 1;
      for (std::size_t e = 0; e < a.wires[k].ends.size(); ++e) {
        const wire_end &x = a.wires[k].ends[e], &y = b.wires[same[k]].ends[e];
        if (x.kind == wire_end::input) inputs[x.region][x.index] = y.index;
        if (x.kind == wire_end::operand) operands[x.index] = 1;
      }
    }
    vec<part_finder> inside;
    for (int r = 0; r < mine.region_count; ++r) {
      inside.push_back(part_finder(whole_->region(o, r), part_->region(other, r), *kept_));
      inside.back().run(inputs[r]);
    }
    vec<char> results(static_cast<std::size_t>(mine.result_count), 0);
    vec<value_id> result_of(static_cast<std::size_t>(mine.result_count), -1);
    for (std::size_t k = 0; k < a.wires.size(); ++k) {
      const wire& w = a.wires[k];
      if (same[k] >= 0) {
        if (!leaves_alike(w, b.wires[same[k]], o, other, inside)) return;
      } else if (end_of(w, wire_end::input) == nullptr) {
        same[k] = same_exit(w, o, b, other, inside);
        if (same[k] < 0) continue;
        met[same[k]] = 1;
        if (const wire_end* e = end_of(w, wire_end::operand)) operands[e->index] = 1;
      }
      if (same[k] < 0) continue;
      if (const wire_end* e = end_of(w, wire_end::result)) {
        results[e->index] = 1;
        result_of[e->index] = theirs.result + end_of(b.wires[same[k]], wire_end::result)->index;
      }
    }
    for (const char each : met)
      if (each == 0) return;
    const auto given = whole_->attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    mine.def->pruned(attrs, operands, results);
    if (!ir_detail::same_elements(attrs, part_->attrs(other))) return;
    for (int r = 0; r < mine.result_count; ++r)
      if (result_of[r] >= 0) found_[mine.result + r] = result_of[r];
  }
  /// True if the outputs of nested programs on both wires are the same.
  constexpr bool leaves_alike(const wire& a, const wire& b, op_id o, op_id other,
                              const vec<part_finder>& inside) const {
    for (std::size_t e = 0; e < a.ends.size(); ++e) {
      const wire_end &x = a.ends[e], &y = b.ends[e];
      if (x.kind != wire_end::output) continue;
      if (!inside[x.region].is(whole_->region(o, x.region).outputs[x.index].value,
                               part_->region(other, y.region).outputs[y.index].value))
        return false;
    }
    return true;
  }
  /// The same for a wire without inputs: a condition, an index of branches, or a result that is
  /// computed inside.
  constexpr int same_exit(const wire& w, op_id o, const wire_list& list, op_id other,
                          const vec<part_finder>& inside) const {
    const wire_end* const mine = end_of(w, wire_end::result);
    const int result = mine == nullptr ? -1 : place_of_result(o, mine->index, other);
    if (mine != nullptr && result < 0) return -1;
    for (int k = 0; k < static_cast<int>(list.wires.size()); ++k) {
      const wire& each = list.wires[k];
      const wire_end* const theirs = end_of(each, wire_end::result);
      if ((theirs == nullptr ? -1 : theirs->index) == result && each.ends.size() == w.ends.size() &&
          end_of(each, wire_end::input) == nullptr)
        return enters_alike(w, each, o, other) && leaves_alike(w, each, o, other, inside) ? k : -1;
    }
    return -1;
  }
  /// The corresponding result of an op of the part, or -1.
  constexpr int place_of_result(op_id o, int result, op_id other) const {
    const int number = whole_->op(o).marks.source;
    int begin = 0, end = static_cast<int>(kept_->size());
    while (begin < end) {
      const int middle = (begin + end) / 2;
      if ((*kept_)[middle].number < number)
        begin = middle + 1;
      else
        end = middle;
    }
    if (begin == static_cast<int>(kept_->size()) || (*kept_)[begin].number != number)
      return whole_->op(o).result_count == part_->op(other).result_count ? result : -1;
    const vec<int>& results = (*kept_)[begin].results;
    for (int i = 0; i < static_cast<int>(results.size()); ++i)
      if (results[i] == result) return i;
    return -1;
  }
};

/// True if a part of a program, with all its inputs and outputs, computes the same as the program.
///
/// Cost: linear in ops; of loops, branches and calls, times their wires.
/// `kept`: see part_finder.
constexpr bool is_live_part(const program& whole, const program& part,
                            const vec<kept_results>& kept = {}) {
  if (whole.input_count() != part.input_count() || whole.output_count() != part.output_count())
    return false;
  vec<int> inputs;
  for (int i = 0; i < whole.input_count(); ++i) {
    if (whole.input_type(i) != part.input_type(i)) return false;
    inputs.push_back(i);
  }
  part_finder finder(whole, part, kept);
  finder.run(inputs);
  for (int i = 0; i < whole.output_count(); ++i)
    if (!finder.is(whole.outputs[i].value, part.outputs[i].value)) return false;
  return true;
}

/// The program without dead code if it has any and the result is found to compute the same; else an
/// empty program.
constexpr program live_part(const program& p) {
  if (!without_dead_code(p).changed) return {};
  program whole = p;
  number_ops(whole);
  live_program live = without_dead_code(whole);
  if (!is_live_part(whole, live.p, live.kept)) return {};
  return static_cast<program&&>(live.p);
}

}  // namespace partita::prove_detail
