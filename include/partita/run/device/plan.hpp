/// What an executable decides once: which values share memory, which ops run together, over which
/// axes a value varies, and where it lies.
#pragma once

#include <algorithm>
#include <functional>
#include <limits>
#include <span>
#include <vector>

#include <partita/op/registry.hpp>
#include <partita/run/device/control_table.hpp>
#include <partita/run/fusion/block_program.hpp>
#include <partita/run/kernels/library.hpp>
#include <partita/run/transport/transport.hpp>

namespace partita::run_detail {

struct step {
  enum class kind : std::uint8_t { input, kernel, collective, group, start, control };
  kind what = kind::kernel;
  op_id op = -1;   ///< the first op of a group
  int input = -1;  ///< index of the input
  kernel_function run = nullptr;
  std::vector<op_id> members;  ///< of a group
  block_program blocks;
  axis_set axes;              ///< of the results
  std::int64_t elements = 0;  ///< of the results; of a group: of its largest values
  std::int64_t row = 0;       ///< of a group that reduces rows: their elements
};

/// Law: running the steps in order computes every output; a value is written by one step and lies
/// in its slot until the last step that reads it.
class plan {
 public:
  static constexpr int no_slot = -1;

  std::vector<step> steps;
  std::vector<value_id> root;  ///< by value: the value whose memory it uses
  std::vector<axis_set> axes;  ///< by value: over which it varies
  std::vector<int> slot;       ///< by root value: its place in the workspace, or no_slot
  std::vector<std::int64_t> slot_bytes;
  std::vector<char> handed_out;  ///< by root value: its memory becomes an output array

  /// `inputs`: over which axes each input varies; `outermost`: may outputs be handed out as arrays?
  plan(const program& p, const device_set& devices, std::span<const axis_set> inputs,
       std::span<const kernel_entry> own, bool fuse, bool outermost)
      : p_(p), devices_(devices), own_(own), fuse_(fuse), outermost_(outermost) {
    const auto n = static_cast<std::size_t>(p_.value_count());
    varying(p_, devices_.mesh(), inputs, &axes);
    root.assign(n, -1);
    slot.assign(n, no_slot);
    handed_out.assign(n, 0);
    step_of_.assign(n, -1);
    used_last_.assign(n, -1);
    in_memory_.assign(n, 0);
    consumer_.assign(n, -1);
    find_roots();
    find_uses();
    for (op_id o = 0; o < p_.op_count(); ++o) schedule(o);
    if (error) return;
    find_live_ranges();
    for (auto& s : steps)
      if (s.what == step::kind::group) compile(s);
    place();
  }

  failure error;  ///< R005 no kernel, R007 unknown op with nested programs

  std::int64_t copies(value_id v) const { return devices_.copies(axes[at(v)]); }
  /// Bytes of all copies.
  std::int64_t bytes(value_id v) const {
    return saturating_multiply(copies(v), padded_bytes(p_.type(v)));
  }

 private:
  static std::size_t at(value_id v) { return static_cast<std::size_t>(v); }
  const op_node& producer(value_id v) const { return p_.op(p_.producer(v)); }
  bool overridden(const op_def* def) const {
    return std::any_of(own_.begin(), own_.end(), [&](const auto& e) { return e.op == def; });
  }
  /// What an elementwise op is in a group: a link of a chain, or a function of blocks.
  struct block_step {
    link as_link = link::none;
    block_function run = nullptr;
    explicit operator bool() const { return as_link != link::none || run != nullptr; }
  };
  block_step block_of(op_id o) const {
    const op_node& n = p_.op(o);
    if (!n.def->elementwise || n.operand_count == 0 || overridden(n.def)) return {};
    const dtype last = p_.type(p_.operand(o, n.operand_count - 1)).element;
    const link l = link_of(n.def, computed(last));
    if (l != link::none) return {l, nullptr};
    return {link::none, find_block(n.def, p_.attrs(o), last, p_.type(n.result).element)};
  }
  /// The elements of a row, if the op reduces rows that a group can hold; else 0.
  std::int64_t reduced_row(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def != &def<op::reduce> || n.operand_count != 1 || overridden(n.def) || passes_on(o))
      return 0;
    const shape& from = p_.type(p_.operand(o, 0)).shape;
    const auto attrs = p_.attrs(o);
    std::int64_t row = 1;
    bool kept = false;  // a dimension further in
    for (int d = from.rank; d-- > 0;) {
      if (from[d] == 1) continue;
      const bool reduced = op::reduce::reduced(attrs.data(), static_cast<int>(attrs.size()), d);
      if (reduced && kept) return 0;
      if (reduced) row *= from[d];
      kept = kept || !reduced;
    }
    return from.elements() > 0 && block_program::fits(row) ? row : 0;
  }
  /// Can the op be in a group?
  bool groupable(op_id o) const { return block_of(o) || reduced_row(o) > 0; }
  /// Is each result the memory of the operand of that number?
  bool passes_on(op_id o) const {
    const op_node& n = p_.op(o);
    if (n.def == &def<op::optimization_barrier>) return true;
    if (n.operand_count != 1 || n.result_count != 1 || overridden(n.def)) return false;
    const tensor_type &from = p_.type(p_.operand(o, 0)), &to = p_.type(n.result);
    if (n.def->identity || n.def == &def<op::reshape>) return true;
    if (n.def == &def<op::convert>) return from.element == to.element;
    if (n.def == &def<op::broadcast_in_dim> || n.def == &def<op::reduce>)
      return from.shape.elements() == to.shape.elements() &&
             (n.def == &def<op::broadcast_in_dim> || n.attr_count == 1);
    return false;
  }
  /// A splat, or a broadcast that repeats one run of dimensions: cheap enough to make in each group
  /// that uses it, instead of writing it to memory.
  bool is_virtual(value_id v) const {
    const op_node& n = producer(v);
    if (!fuse_ || overridden(n.def)) return false;
    repetition r;
    return n.def == &def<op::constant> ||
           (n.def == &def<op::broadcast_in_dim> && find_repetition(p_.producer(v), r));
  }
  bool find_repetition(op_id o, repetition& r) const {
    const shape& from = p_.type(p_.operand(o, 0)).shape;
    const shape& to = p_.type(p_.op(o).result).shape;
    if (to.elements() == 0) return false;
    const auto dims = p_.attrs(o);
    bool kept[max_rank] = {};
    for (int i = 0; i < from.rank; ++i) kept[dims[at(i)]] = from[i] != 1;
    int first = 0, last = to.rank;
    while (first < to.rank && !kept[first]) ++first;
    while (last > first && !kept[last - 1]) --last;
    r = {};
    for (int d = first; d < last; ++d) {
      if (!kept[d] && to[d] != 1) return false;
      r.count *= to[d];
    }
    for (int d = last; d < to.rank; ++d) r.inner *= to[d];
    return true;
  }

  void find_roots() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node& n = p_.op(o);
      const bool passed = passes_on(o);
      for (int r = 0; r < n.result_count; ++r)
        root[at(n.result + r)] = passed ? root[at(p_.operand(o, r))] : n.result + r;
    }
  }
  /// Backwards: what is needed at all, and what is needed in memory.
  void find_uses() {
    needed_.assign(at(p_.op_count()), 0);
    for (const auto& out : p_.outputs) {
      needed_[at(p_.producer(out.value))] = 1;
      in_memory_[at(root[at(out.value)])] = 1;
    }
    for (op_id o = p_.op_count(); o-- > 0;) {
      if (!needed_[at(o)]) continue;
      const value_id made = p_.op(o).result;
      const bool is_made_anew = is_virtual(made) && !in_memory_[at(made)];
      const bool reads_memory = !passes_on(o) && !groupable(o);
      for (value_id x : p_.operands(o)) {
        needed_[at(p_.producer(x))] = 1;
        // What groups repeat has to be there, unless they make it: then it is stored if needed.
        if (reads_memory && (!is_made_anew || is_virtual(root[at(x)])))
          in_memory_[at(root[at(x)])] = 1;
      }
    }
  }

  void schedule(op_id o) {
    const op_node& n = p_.op(o);
    if (!needed_[at(o)] || passes_on(o) || error) return;
    step s;
    s.op = o;
    s.axes = axes[at(n.result)];
    s.elements = p_.type(n.result).shape.elements();
    if (n.def == &def<op::parameter>) {
      const auto found = std::find(p_.inputs.begin(), p_.inputs.end(), n.result);
      s.what = step::kind::input;
      s.input = static_cast<int>(found - p_.inputs.begin());
    } else if (n.def->collective && !overridden(n.def)) {
      s.what = step::kind::collective;
    } else if (n.def == &def<op::shard_start>) {
      s.what = step::kind::start;
    } else if (n.region_count > 0) {
      if (control_kind_of(n.def) == control_kind::unknown)
        return record_unknown_control(n.def, error);
      s.what = step::kind::control;
    } else if (groupable(o)) {
      s.row = reduced_row(o);
      if (s.row > 0) s.elements = p_.type(p_.operand(o, 0)).shape.elements();
      const int joined = fuse_ ? group_for(o, s) : -1;
      if (joined >= 0) {
        steps[at(joined)].members.push_back(o);
        if (s.row > 0) steps[at(joined)].row = s.row;
        return note(o, joined);
      }
      s.what = step::kind::group;
      s.members.push_back(o);
    } else {
      if (is_virtual(n.result) && !in_memory_[at(n.result)]) return;
      s.run = find_kernel(n.def, own_);
      if (!s.run)
        return error.record("R005", n.def->name,
                            ": this op has no kernel; give one in run_options::kernels");
    }
    steps.push_back(std::move(s));
    note(o, static_cast<int>(steps.size()) - 1);
  }
  void note(op_id o, int s) {
    for (int r = 0; r < p_.op(o).result_count; ++r) step_of_[at(p_.op(o).result + r)] = s;
    for (value_id x : p_.operands(o)) consumer_[at(root[at(x)])] = s;
  }
  /// The value that has to be there before `x` can be read, or -1.
  value_id source(value_id x) const {
    const value_id v = root[at(x)];
    if (!is_virtual(v)) return v;
    return producer(v).def == &def<op::constant> ? -1 : root[at(p_.operand(p_.producer(v), 0))];
  }
  /// Does `x` repeat along rows of `row` elements what there is one of per row?
  bool spreads_rows(value_id x, std::int64_t row, std::int64_t elements) const {
    const value_id v = root[at(x)];
    repetition r;
    return row > 0 && is_virtual(v) && producer(v).def != &def<op::constant> &&
           find_repetition(p_.producer(v), r) && r.inner == row && r.count * row == elements;
  }
  /// Is every operand of an op there when the group at `candidate` runs, and can the group hold it?
  bool joins(op_id o, const step& s, int candidate) const {
    const step& g = steps[at(candidate)];
    if (g.what != step::kind::group || g.axes != s.axes || g.members.size() >= most_members)
      return false;
    const bool per_row = s.row == 0 && g.row > 0 && s.elements * g.row == g.elements;
    if (!per_row && s.elements != g.elements) return false;
    if (s.row > 0 && g.row > 0 && s.row != g.row) return false;
    for (value_id x : p_.operands(o)) {
      const value_id v = source(x);
      const int made = v < 0 ? -1 : step_of_[at(v)];
      if (made > candidate) return false;
      if (made < candidate) continue;
      const bool same = v == root[at(x)] && p_.type(x).shape.elements() == s.elements;
      if (!same && (per_row || !spreads_rows(x, g.row, g.elements))) return false;
    }
    return true;
  }
  /// The latest group that made an operand, or that uses the same operand, if this op can run then.
  /// Groups further back than `reach` steps are closed: joining them would keep values alive.
  int group_for(op_id o, const step& s) const {
    int best = -1;
    const auto consider = [&](int candidate) {
      if (candidate > best && candidate + reach >= static_cast<int>(steps.size()) &&
          joins(o, s, candidate))
        best = candidate;
    };
    for (value_id x : p_.operands(o)) {
      consider(step_of_[at(root[at(x)])]);
      consider(consumer_[at(root[at(x)])]);
      if (const value_id v = source(x); v >= 0) consider(step_of_[at(v)]);
    }
    return best;
  }

  template <class F>
  void for_members(const step& s, F f) const {
    if (s.what == step::kind::group)
      for (op_id o : s.members) f(o);
    else
      f(s.op);
  }
  void find_live_ranges() {
    for (std::size_t k = 0; k < steps.size(); ++k)
      for_members(steps[k], [&](op_id o) {
        for (int r = 0; r < p_.op(o).result_count; ++r)
          if (steps[k].what != step::kind::group) in_memory_[at(p_.op(o).result + r)] = 1;
        for (value_id x : p_.operands(o)) {
          const value_id v = steps[k].what == step::kind::group ? source(x) : root[at(x)];
          if (v < 0) continue;
          used_last_[at(v)] = static_cast<int>(k);
          if (step_of_[at(v)] != static_cast<int>(k)) in_memory_[at(v)] = 1;
        }
      });
    for (const auto& out : p_.outputs) used_last_[at(root[at(out.value)])] = forever;
  }

  /// The bits of a binary64 after rounding to a 16-bit float.
  static std::int64_t rounded_bits(dtype half, std::int64_t bits) {
    const auto v = std::bit_cast<double>(bits);
    const float f = half == dtype::bf16 ? float(to_half<bf16>(v)) : float(to_half<f16>(v));
    return std::bit_cast<std::int64_t>(static_cast<double>(f));
  }
  /// Emits the block program of a group.
  void compile(step& s) {
    block_program& b = s.blocks = block_program(s.elements, s.row);
    struct known {
      value_id value;
      coverage form;
      int place;
    };
    std::vector<known> registers;  // where values already are, as computed
    // 16-bit floats are widened when they enter.
    const auto widened = [&](int r, dtype t) {
      if (!is_half(t)) return r;
      const int wide = b.temporary(dtype::f32, b.coverage_of(r));
      b.call(widen_function(t), {r}, wide);
      return wide;
    };
    // A value as the operand of an op whose result has the coverage `e`. Links take one value for
    // all, or one per row, as it is.
    const auto read_anew = [&](value_id v, coverage e, bool linked) {
      const tensor_type& t = p_.type(v);
      const coverage one = linked ? coverage::splat : e;
      repetition repeat;
      if (is_virtual(v) && producer(v).def == &def<op::constant>) {
        std::int64_t bits = p_.attrs(p_.producer(v))[0];
        if (is_half(t.element)) bits = rounded_bits(t.element, bits);
        return b.constant(computed(t.element), t.element == dtype::boolean ? bits != 0 : bits, one);
      }
      if (is_virtual(v) && find_repetition(p_.producer(v), repeat)) {
        const value_id from = source(v);
        int r = -1;
        if (repeat.count == 1) {
          r = b.scalar(from, t.element, one);
        } else {
          if (e == coverage::all) r = b.repeating(from, t, repeat, linked && !is_half(t.element));
          if (r >= 0) return widened(r, t.element);
          r = b.temporary(t.element, e);
          b.broadcast(from, repeat, r);
        }
        return widened(r, t.element);
      }
      if (t.shape.elements() == (e == coverage::all ? s.elements : s.elements / s.row))
        return widened(b.memory(v, t, e), t.element);
      return widened(b.scalar(v, t.element, one), t.element);
    };
    const std::function<int(value_id, coverage, bool)> read = [&](value_id x, coverage e,
                                                                  bool linked) {
      const value_id v = root[at(x)];
      const auto find = [&](coverage form) {
        for (const auto& k : registers)
          if (k.value == v && k.form == form) return k.place;
        return -1;
      };
      if (const int r = find(e); r >= 0) return r;
      if (linked)
        for (coverage form : {coverage::splat, coverage::columns})
          if (const int r = find(form); r >= 0) return r;
      int r = -1;
      if (e == coverage::all && spreads_rows(v, s.row, s.elements)) {
        const int rows = read(source(v), coverage::rows, false);
        if (linked && b.links_rows()) return rows;
        r = b.temporary(computed(p_.type(v).element), e);
        b.spread(rows, r);
      } else {
        r = read_anew(v, e, linked);
      }
      registers.push_back({v, b.coverage_of(r), r});
      return r;
    };
    for (op_id o : s.members) {
      const op_node& n = p_.op(o);
      const tensor_type& t = p_.type(n.result);
      const bool half = is_half(t.element), stored = in_memory_[at(n.result)] != 0;
      const bool reduces = reduced_row(o) > 0;
      const coverage e =
          reduces || t.shape.elements() != s.elements ? coverage::rows : coverage::all;
      const block_step computes = block_of(o);
      const link l = computes.as_link;
      int in[3] = {-1, -1, -1};
      for (int i = 0; i < n.operand_count; ++i)
        in[i] = read(p_.operand(o, i), reduces ? coverage::all : e, l != link::none);
      int out = stored && !half ? b.memory(n.result, t, e) : b.temporary(computed(t.element), e);
      const bool rounds_itself = n.def == &def<op::convert> || n.def == &def<op::select>;
      if (reduces)
        b.reduce(static_cast<combiner>(p_.attrs(o)[0]), in[0], out);
      else if (l != link::none)
        b.link_up(l, in[0], in[1], out);
      else
        b.call(computes.run, {in[0], in[1], in[2]}, out);
      if (half && !rounds_itself) {
        const int rounded = b.temporary(dtype::f32, e);
        b.call(round_function(t.element), {out}, rounded);
        out = rounded;
      }
      if (half && stored) b.call(narrow_function(t.element), {out}, b.memory(n.result, t, e));
      registers.push_back({n.result, e, out});
    }
    b.finish();
  }

  /// Slots by live range: the smallest free one that is large enough and not too large, or a new
  /// one.
  void place() {
    for (const auto& out : p_.outputs) {
      const value_id v = root[at(out.value)];
      if (outermost_ && axes[at(v)].empty() && producer(v).def != &def<op::parameter>)
        handed_out[at(v)] = 1;
    }
    std::vector<std::vector<value_id>> dying(steps.size());
    std::vector<int> free;
    for (std::size_t k = 0; k < steps.size(); ++k) {
      const bool input = steps[k].what == step::kind::input;
      for_members(steps[k], [&](op_id o) {
        for (value_id v = p_.op(o).result; v < p_.op(o).result + p_.op(o).result_count; ++v) {
          const bool given = input && (axes[at(v)].empty() || !outermost_);
          if (!in_memory_[at(v)] || handed_out[at(v)] || given) continue;
          slot[at(v)] = take(free, bytes(v));
          const int last = std::max(used_last_[at(v)], static_cast<int>(k));
          if (last != forever) dying[at(last)].push_back(v);
        }
      });
      for (value_id v : dying[k]) free.push_back(slot[at(v)]);
    }
  }
  int take(std::vector<int>& free, std::int64_t need) {
    auto best = free.end();
    for (auto i = free.begin(); i != free.end(); ++i)
      if (slot_bytes[at(*i)] >= need && slot_bytes[at(*i)] <= 2 * need &&
          (best == free.end() || slot_bytes[at(*i)] < slot_bytes[at(*best)]))
        best = i;
    if (best == free.end()) {
      slot_bytes.push_back(need);
      return static_cast<int>(slot_bytes.size()) - 1;
    }
    const int s = *best;
    free.erase(best);
    return s;
  }

  static constexpr int reach = 16;
  static constexpr std::size_t most_members = 64;
  static constexpr int forever = std::numeric_limits<int>::max();
  const program& p_;
  const device_set& devices_;
  std::span<const kernel_entry> own_;
  bool fuse_, outermost_;
  std::vector<char> needed_;     // by op
  std::vector<int> step_of_;     // by root value: the step that writes it
  std::vector<int> consumer_;    // by root value: the last step so far that reads it
  std::vector<int> used_last_;   // by root value: the last step that reads it
  std::vector<char> in_memory_;  // by root value: outlives its group
};

}  // namespace partita::run_detail
