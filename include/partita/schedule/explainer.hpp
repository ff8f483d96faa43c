/// Texts that state where the collectives of a core program come from.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <partita/ir/wires.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/source_names.hpp>
#include <partita/support/vec.hpp>

namespace partita::schedule_detail {

/// Explains the collectives of a core program in words. Values have the names that they have in the
/// source.
class explainer {
 public:
  constexpr explicit explainer(const partitioned& p) : explainer(p.source, p.core) {}
  /// `source` is the program that the core program was made of.
  constexpr explainer(const program& source, const core_program& core)
      : c_(core), names_(source, core), scopes_(source.scopes) {
    conflict_axes_.resize(c_.p.ops.size(), axis_set{});
    for (const auto& k : c_.conflicts)
      for (int a : c_.mesh.parts_of(k.where())) conflict_axes_[k.op].insert(a);
  }

  /// Prints `all_gather <"B">`.
  constexpr void what(text& out, const collective_note& n) const {
    out << name_of(n.kind) << " <";
    print_axis_set(out, n.axes, c_.mesh);
    out << '>';
  }
  /// Prints `%w1`. A value that is neither in the source nor derived from one there is a mask,
  /// which separates elements from padding.
  constexpr void value(text& out, value_id v) const {
    v = c_.source_of(v);
    if (c_.inserted(c_.p.producer(v)) == padding_record::kind::auxiliary)
      out << "mask";
    else
      out << '%' << names_.value(v);
  }
  /// Prints the reason for a collective.
  constexpr void why(text& out, const collective_note& n) {
    op_id op = n.op;
    if (n.reason == collective_reason::sum_finished) {
      op = names_.known_op(op, n.value);  // for a sum over the steps of an added loop
      print_op(out, op);
      out << " leaves " << sum(n) << " over ";
      print_axis_set(out, n.axes, c_.mesh);
      if (n.kind == collective::reduce_scatter) out << ", which its uses slice";
    } else if (n.reason == collective_reason::goes_around) {
      print_op(out, n.op);
      out << " receives it block by block and computes with one block while the next is sent";
    } else if (n.reason == collective_reason::halo || n.reason == collective_reason::mirrored) {
      print_op(out, n.op);
      out << (n.reason == collective_reason::mirrored
                  ? " needs the opposite block"
                  : " needs elements of the neighbouring blocks")
          << " over ";
      print_axis_set(out, n.axes, c_.mesh);
    } else if (n.reason == collective_reason::again) {
      print_op(out, n.op);
      out << " reduces its results for all blocks over ";
      print_axis_set(out, n.axes, c_.mesh);
      out << " once more";
    } else if (n.reason == collective_reason::carry) {
      print_op(out, n.op);
      out << " needs the totals of all blocks over ";
      print_axis_set(out, n.axes, c_.mesh);
    } else if (n.reason == collective_reason::owner_slice) {
      print_op(out, n.op);
      out << " needs elements of few blocks over ";
      print_axis_set(out, n.axes, c_.mesh);
      out << ", which only their owners send";
    } else if (n.reason == collective_reason::stationary_rows) {
      print_op(out, n.op);
      out << " moves it instead of a larger table, whose rows are not moved";
    } else if (n.reason == collective_reason::relocated) {
      print_op(out, n.op);
      out << " needs it where it is computed, which sends less than to move its result";
    } else if (n.reason == collective_reason::receiver_needs_it) {
      print_op(out, n.op);
      out << " computes it, and its receivers need it in another layout";
    } else if (n.reason == collective_reason::moved_instead) {
      print_op(out, n.op);
      out << " moves it instead of a larger operand";
    } else if (c_.p.is(n.op, op_role::tiling)) {
      out << "an action requests it";
    } else {
      print_op(out, n.op);
      out << " needs it "
          << (n.reason == collective_reason::whole_needed ? "unsharded" : "in another layout");
      print_loops(out, n);
    }
    op = named_by_call(op);
    if (op < 0) return;
    const int origin = c_.p.op(op).marks.origin;
    if (backward_.of != origin) backward_ = {origin, names_.call(origin, most_operands)};
    if (!backward_.words.empty()) out << " (backward of " << backward_.words << ')';
  }

 private:
  static constexpr int most_operands = 16;  ///< maximum number of an op's operands that are named
  const core_program& c_;
  source_names names_;
  const scope_list& scopes_;
  /// Texts of the last note; the next note may be about another operand of the same op.
  struct cached_text {
    int of = -1;
    text words;
  };
  cached_text call_, backward_;
  op_id last_op_ = -1;
  int last_operand_ = 0;
  vec<axis_set> conflict_axes_;  ///< by op: axes along which a conflict left it without a loop

  constexpr void print_op(text& out, op_id o) {
    if (call_.of != o) {
      call_ = {o, {}};
      call(call_.words, o);
      print_place(call_.words, scopes_, c_.p.op(o).marks);
    }
    out << call_.words;
  }
  /// Returns the op that `call` names, or -1.
  constexpr op_id named_by_call(op_id o) const {
    const auto inserted = c_.inserted(o);
    if (c_.p.is(o, op_role::tiling)) return -1;
    if (inserted == padding_record::kind::none) return o;
    const value_id v = c_.p.op(o).result;
    const bool trims = inserted == padding_record::kind::trim && !c_.uses(v).empty();
    return trims ? named_by_call(c_.uses(v)[0].op) : -1;
  }
  /// Prints `matmul(%x, %w1)`. A wire is named like the op that it belongs to, and so is an op that
  /// trims a padded value to its true size for another op.
  constexpr void call(text& out, op_id o) const {
    if (c_.p.is(o, op_role::wire)) {
      out << c_.p.op(c_.nested.control_of(o)->marker).def->name;
      return;
    }
    const op_node& n = c_.p.op(o);
    const auto inserted = c_.inserted(o);
    if (inserted == padding_record::kind::trim && !c_.uses(n.result).empty())
      return call(out, c_.uses(n.result)[0].op);
    if (inserted == padding_record::kind::auxiliary) {
      out << "the mask of a padding";
      return;
    }
    const bool pads =
        inserted == padding_record::kind::widen || inserted == padding_record::kind::mask;
    if (pads || n.operand_count == 0 || c_.p.is(o, op_role::tag)) {
      out << (pads ? "the padding of " : n.operand_count == 0 ? "" : "tag ");
      return value(out, n.result);
    }
    text attributes;
    print_context context{c_.p, o, &c_.mesh, attributes};
    const op_def& was = c_.was(o);
    n.def->print(context);
    out << call_name(was, attributes) << '(';
    const int count = n.operand_count - (&was != n.def);
    const int shown = count <= most_operands ? count : most_operands;
    append_list(out, shown, [&](int i) { value(out, c_.p.operand(o, i)); });
    if (shown < count) out << ", and " << count - shown << " more";
    out << ')';
  }
  constexpr std::string_view sum(const collective_note& n) const {
    for (const auto& l : c_.nest_of(n.op)) {
      if (l.factor == any_factor || !n.axes.contains(l.axis)) continue;
      switch (c_.map.at(n.op, l.factor).combine) {
        case combiner::max:
          return "a maximum";
        case combiner::min:
          return "a minimum";
        case combiner::multiply:
          return "a product";
        case combiner::logical_and:
          return "an and";
        case combiner::logical_or:
          return "an or";
        default:
          break;
      }
    }
    return "a sum";
  }
  /// Prints the op's relation to each axis; parts of one axis with the same relation are joined.
  constexpr void print_loops(text& out, const collective_note& n) {
    const axis_list list = in_order(n.axes, c_.mesh);
    for (int i = 0; i < list.count;) {
      int end = i + 1;
      while (end < list.count && loop_over(n, list.axes[end], "") == loop_over(n, list.axes[i], ""))
        ++end;
      out << (i == 0 ? ": " : ", ");
      text name;
      const int axis = list.axes[i];
      print_sub_axis(name, joined_from(i, end, c_.mesh, [&](int j) { return int{list.axes[j]}; }),
                     c_.mesh);
      out << loop_over(n, axis, name);
    }
  }
  constexpr text loop_over(const collective_note& n, int axis, const text& name) {
    const loop* l = c_.nest_of(n.op).find(axis);
    if (l == nullptr && conflict_axes_[n.op].contains(axis))
      return concat("a conflict left it without a loop over ", name);
    if (l == nullptr) return concat("it has no loop over ", name, whole_for(n, axis));
    if (l->factor == any_factor) return concat("it is kept replicated along ", name);
    const factor& f = c_.map.at(n.op, l->factor);
    if (const int dim = sliced_dim(n, f); dim != no_dim)
      return concat("its loop over ", name, " slices dimension ", dim);
    return concat("its loop over ", name, " does not slice it");
  }
  /// Returns the operand that is the note's value and satisfies `holds`, or -1. Notes of one op are
  /// ordered by operand, so the search resumes where the last one ended.
  template <class Holds>
  constexpr int operand_where(const collective_note& n, const Holds& holds) {
    const int count = c_.p.op(n.op).operand_count;
    if (last_op_ != n.op) last_operand_ = 0;
    last_op_ = n.op;
    for (int k = 0; k < count; ++k) {
      const int i = last_operand_ + k < count ? last_operand_ + k : last_operand_ + k - count;
      if (c_.p.operand(n.op, i) != n.value || !holds(i)) continue;
      last_operand_ = i;
      return i;
    }
    return -1;
  }
  /// Returns the reason why no loop can slice the value along an axis as it is sliced, if the op
  /// states one.
  constexpr text whole_for(const collective_note& n, int axis) {
    const std::string_view why = c_.p.op(n.op).def->needs_whole;
    const int dim = c_.produced_layout(n.value).dim_of(axis);
    if (dim < 0) return {};
    const int i = operand_where(n, [](int) { return true; });
    if (const text zeros = joined_with_zeros(n.op); !zeros.empty()) return zeros;
    for (int f = 0; i >= 0 && f < c_.map.ops[n.op].count; ++f)
      if (c_.map.operand_dim(c_.map.at(n.op, f), i) == dim) {  // (GCC 12: no ?: in constants)
        if (c_.map.at(n.op, f).halo) return nothing_common(n.op, f, i, axis);
        return too_small(n.op, f, dim, axis);
      }
    if (why.empty()) return {};
    return concat(", since along dimension ", dim, ' ', why);
  }
  /// True if the op may be a shift: one that joins a value with what comes before and after it.
  /// (Ops with many operands are excluded, to avoid searching all uses for each operand.)
  constexpr bool may_shift(op_id o) const { return c_.p.op(o).operand_count <= 3; }
  /// Returns the explanation if an op, or a user of its result, concatenates a value with 0 times
  /// others.
  constexpr text joined_with_zeros(op_id o) const {
    if (!may_shift(o)) return {};
    for (const use& u : c_.uses(c_.p.op(o).result))
      if (const text zeros = zero_times(u.op); !zeros.empty()) return zeros;
    return zero_times(o);
  }
  /// Returns the explanation if a concatenated value is 0 times another one. With constant zeros
  /// the op would be a shift.
  constexpr text zero_times(op_id o) const {
    if (c_.p.op(o).def->id != def<op::concatenate>.id || !may_shift(o)) return {};
    for (value_id v : c_.p.operands(o)) {
      const op_id q = c_.p.producer(v);
      if (c_.p.op(q).def->id != def<op::multiply>.id || !is_floating(c_.p.type(v).element))
        continue;
      for (value_id each : c_.p.operands(q))
        if (is_zero(each))
          return ", since 0 times an infinity is NaN; constant zeros would make it a shift, "
                 "which exchanges borders";
    }
    return {};
  }
  constexpr bool is_zero(value_id v) const {
    const op_node& n = c_.p.op(c_.p.producer(v));
    if (n.def->id == def<op::broadcast_in_dim>.id)
      return is_zero(c_.p.operands(c_.p.producer(v))[0]);
    return n.def->id == def<op::constant>.id &&
           c_.p.attrs(c_.p.producer(v))[0] == std::bit_cast<std::int64_t>(0.0);
  }
  /// Returns advice to pad if an axis divides only one end of the windows and the other could be
  /// padded.
  constexpr text nothing_common(op_id o, int f, int operand, int axis) const {
    const factor& of = c_.map.at(o, f);
    const std::int64_t pieces = c_.size(o, axis);
    if (of.result_dim == no_dim || c_.local(o, f) % pieces == 0 ||
        c_.inserted(o) != padding_record::kind::none)
      return {};
    const std::int64_t from = c_.p.type(c_.p.operand(o, operand)).shape[c_.map.dim_of(of, operand)],
                       to = c_.p.type(c_.p.op(o).result).shape[of.result_dim];
    const auto given = c_.p.attrs(o);
    vec<std::int64_t> attrs(given.begin(), given.end());
    const halo_cut larger = c_.stretch(o, f, attrs);
    if (!larger.possible || !larger.apart || from < pieces || to < pieces) return {};
    return concat(", since it computes ", to, " elements from ", from, ", and ", pieces,
                  " does not divide both; ",
                  in_syntax(c_.advice(), "uneven::pad", "\"pad\" at the end of the tactic"),
                  " lets it exchange borders");
  }
  /// Returns the reason if blocks would be so small that the op's result for each is larger than
  /// the block.
  constexpr text too_small(op_id o, int f, int dim, int axis) const {
    const std::int64_t least = c_.map.at(o, f).least;
    if (least <= 1 || c_.local(o, f) >= least * c_.size(o, axis)) return {};
    return concat(", since along dimension ", dim, " its result for a block of fewer than ", least,
                  " elements would be larger than the block");
  }
  /// Returns the dimension of the value that a factor slices, or `no_dim`.
  constexpr int sliced_dim(const collective_note& n, const factor& f) {
    const int i = operand_where(n, [&](int i) { return c_.map.operand_dim(f, i) != no_dim; });
    return i < 0 ? no_dim : c_.map.operand_dim(f, i);
  }
};

/// Number of kinds of collectives that communicate.
inline constexpr int kind_count = 5;
/// Bytes that a device sends in collectives, by kind.
struct bytes_by_kind {
  std::int64_t of[kind_count] = {};

  constexpr std::int64_t total() const {
    std::int64_t sum = 0;
    for (std::int64_t each : of) sum = saturating_add(sum, each);
    return sum;
  }
};

/// Returns the bytes of one run, counted like `cost::collective_bytes`: of several branches, only
/// the one that sends the most. `next` is the note of the program's first collective.
constexpr bytes_by_kind sent_by_kind(const program& p, const mesh& m,
                                     const vec<collective_note>& notes, std::size_t& next) {
  bytes_by_kind sum;
  const auto add = [&](const bytes_by_kind& each) {
    for (int k = 0; k < kind_count; ++k) sum.of[k] = saturating_add(sum.of[k], each.of[k]);
  };
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_node& n = p.op(o);
    if (n.def->collective && p.collective_of(o).communicates()) {
      collective_note note = notes[next++];
      for (int i = 1; i < n.result_count; ++i)  // combined all_reduces
        note.bytes = saturating_add(note.bytes, notes[next++].bytes);
      std::int64_t& of = sum.of[static_cast<int>(note.kind)];
      of = saturating_add(of, saturating_multiply(note.bytes_sent(m), note.times));
    }
    if (n.region_count == 0) continue;
    wire_list list;
    n.def->wires(p, o, list);
    bytes_by_kind greatest;
    for (const auto& r : p.regions_of(o)) {
      const bytes_by_kind each = sent_by_kind(r, m, notes, next);
      if (!list.branches)
        add(each);
      else if (each.total() > greatest.total())
        greatest = each;
    }
    add(greatest);
  }
  return sum;
}
constexpr bytes_by_kind sent_by_kind(const partitioned& p) {
  std::size_t next = 0;
  return sent_by_kind(p.device.local, p.device.mesh, p.notes, next);
}

}  // namespace partita::schedule_detail
