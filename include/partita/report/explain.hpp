/// Why each collective is there, and what is replicated by default, as text for people.
#pragma once

#include <string_view>

#include <partita/report/columns.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

namespace detail {

/// Says in words where the collectives of a partitioned program come from. Values have the names
/// that they have in the action log.
class explainer {
 public:
  constexpr explicit explainer(const partitioned& p)
      : p_(p), c_(p.core), names_(flat_program(p.sharded()).p) {
    torn_.resize(c_.p.ops.size(), axis_set{});
    for (const auto& k : c_.conflicts)
      for (int a : c_.mesh.parts_of(k.where())) torn_[k.op].insert(a);
  }

  /// `all_gather <"B">`
  constexpr text what(const collective_note& n) const {
    text out = name_of(n.kind);
    out << " <";
    print_axis_set(out, n.axes, c_.mesh);
    return out << '>';
  }
  /// `%w1`; what is neither in the source nor made of a value there tells elements from padding.
  constexpr text value(value_id v) const {
    v = c_.source_of(v);
    if (c_.inserted(c_.p.producer(v)) == padding_record::kind::auxiliary) return "mask";
    return concat('%', names_[v]);
  }
  constexpr std::string_view tactic(const collective_note& n) const {
    return p_.tactics[static_cast<std::size_t>(n.tactic)].name.view();
  }
  constexpr text why(const collective_note& n) const {
    text out;
    if (n.reason == collective_reason::sum_finished) {
      out << call(n.op) << " leaves " << sum(n) << " over ";
      print_axis_set(out, n.axes, c_.mesh);
      if (n.kind == collective::reduce_scatter) out << ", which its uses slice";
    } else if (n.kind == collective::permute) {
      out << call(n.op)
          << (n.reason == collective_reason::mirrored
                  ? " needs the opposite piece"
                  : " needs elements of the neighbouring pieces")
          << " over ";
      print_axis_set(out, n.axes, c_.mesh);
    } else if (c_.p.is(n.op, op_role::tiling)) {
      out << "an action asks for it";
    } else {
      out << call(n.op) << " needs it "
          << (n.reason == collective_reason::whole_needed ? "whole" : "in another layout");
      print_loops(out, n);
    }
    const op_id of = c_.p.op(n.op).origin;
    if (of >= 0) out << " (backward of " << call(of) << ')';
    return out;
  }
  /// The whole line, without columns.
  constexpr text line(const collective_note& n) const {
    return concat(what(n), ' ', value(n.value), ' ', n.bytes, " bytes x", n.times, ' ', tactic(n),
                  ": ", why(n));
  }

 private:
  const partitioned& p_;
  const core_program& c_;
  value_names names_;
  vec<axis_set> torn_;  ///< by op: axes along which a conflict left it without a loop

  /// `matmul(%x, %w1)`; a wire is named as the op that it belongs to, what gives an op the true
  /// size of a padded value as that op.
  constexpr text call(op_id o) const {
    if (c_.p.is(o, op_role::wire)) {
      while (!c_.p.is(o, op_role::control)) ++o;
      return c_.p.op(o).def->name;
    }
    const op_node& n = c_.p.op(o);
    const auto inserted = c_.inserted(o);
    if (inserted == padding_record::kind::trim && !c_.uses(n.result).empty())
      return call(c_.uses(n.result)[0].op);
    if (inserted == padding_record::kind::widen || inserted == padding_record::kind::mask)
      return concat("the padding of ", value(n.result));
    if (inserted == padding_record::kind::auxiliary) return "the mask of a padding";
    if (n.operand_count == 0) return value(n.result);
    if (c_.p.is(o, op_role::tag)) return concat("tag ", value(n.result));
    text attributes;
    print_context context{c_.p, o, &c_.mesh, attributes};
    n.def->print(context);
    text out;
    out << call_name(*n.def, attributes) << '(';
    append_list(out, n.operand_count, [&](int i) { out << value(c_.p.operand(o, i)); });
    return out << ')';
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
  /// What the op has to do with each axis; parts of an axis of which the same is true are joined.
  constexpr void print_loops(text& out, const collective_note& n) const {
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
  constexpr text loop_over(const collective_note& n, int axis, const text& name) const {
    const loop* l = c_.nest_of(n.op).find(axis);
    if (l == nullptr && torn_[n.op].contains(axis))
      return concat("a conflict left it without a loop over ", name);
    if (l == nullptr) return concat("it has no loop over ", name);
    if (l->factor == any_factor) return concat("it is kept whole along ", name);
    const factor& f = c_.map.at(n.op, l->factor);
    for (int i = 0; i < c_.p.op(n.op).operand_count; ++i)
      if (c_.p.operand(n.op, i) == n.value && c_.map.operand_dim(f, i) != no_dim)
        return concat("its loop over ", name, " slices dimension ", c_.map.operand_dim(f, i));
    return concat("its loop over ", name, " does not slice it");
  }
};

/// The first `N` characters of a text, without a heap.
template <std::size_t N>
struct text_buffer {
  char chars[N] = {};
  std::size_t size = 0;  ///< of the whole text
  constexpr explicit text_buffer(const text& t) : size(t.size()) {
    for (std::size_t i = 0; i < size && i < N; ++i) chars[i] = t.view()[i];
  }
};
template <class Make, std::size_t N>
inline constexpr text_buffer<N> text_made{Make{}()};

/// A text that was made by the compiler. One evaluation; a second, with room, only for a long one.
template <class Make>
constexpr std::string_view kept_text() {
  constexpr std::size_t room = 8192, size = text_made<Make, room>.size;
  if constexpr (size <= room)
    return {text_made<Make, room>.chars, size};
  else
    return {text_made<Make, size>.chars, size};
}

}  // namespace detail

/// One line per collective of the device-local program, in its order: kind and axes, value, bytes
/// of the operand on one device, how often it runs, the tactic that had the last part in it, and
/// why; then how often each kind runs, how many of it are written (where loops run some more
/// often), and the bytes that go through.
///
/// Of a program with a mistake it is "error: " and its message.
constexpr text explain(const partitioned& p) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  const detail::explainer words(p);
  detail::columns lines, sums;
  constexpr int kinds = 5;  // that communicate
  std::int64_t bytes[kinds] = {}, times[kinds] = {}, written[kinds] = {};
  for (const auto& n : p.notes) {
    lines.cell(words.what(n)).cell(words.value(n.value)).number(n.bytes, " bytes");
    lines.cell(concat('x', n.times), true).cell(words.tactic(n)).cell(words.why(n)).end_row();
    bytes[static_cast<int>(n.kind)] += n.bytes * n.times;
    times[static_cast<int>(n.kind)] += n.times;
    ++written[static_cast<int>(n.kind)];
  }
  std::int64_t all_times = 0, all_bytes = 0;
  for (int k = 0; k < kinds; ++k) {
    all_times += times[k];
    all_bytes += bytes[k];
  }
  const auto count = static_cast<std::int64_t>(p.notes.size());
  const auto sum = [&](std::string_view name, std::int64_t runs, std::int64_t ops,
                       std::int64_t through) {
    sums.cell(name).cell(concat('x', runs), true);
    if (count != all_times) sums.cell(concat(ops, " written"), true);
    sums.number(through, " bytes").end_row();
  };
  for (int k = 0; k < kinds; ++k)
    if (times[k] > 0 || static_cast<collective::kind_type>(k) != collective::permute)
      sum(name_of(static_cast<collective::kind_type>(k)), times[k], written[k], bytes[k]);
  sum("all", all_times, count, all_bytes);
  lines.print(out);
  out << "in all:\n";
  sums.print(out, "  ");
  return out;
}

/// What is replicated by default (see replicated_value), largest first: bytes on one device times
/// copies, the value, its op and type, the axes. At most `limit` lines; the rest is counted and
/// summed.
constexpr text print_replicated(const partitioned& p, int limit = 20) {
  text out;
  if (p.error) return out << "error: " << p.error.message << '\n';
  const value_names names(flat_program(p.sharded()).p);
  detail::columns lines;
  int shown = 0, more = 0;
  std::int64_t bytes = 0, more_bytes = 0;
  for (const auto& v : replicated_by_default(p)) {
    bytes += v.bytes;
    if (shown++ >= limit) {
      ++more;
      more_bytes += v.bytes;
      continue;
    }
    text axes = "along ";
    print_axis_set(axes, v.axes, p.mesh());
    lines.number(v.bytes, " bytes").cell(concat("x ", v.copies, " copies"), true);
    lines.cell(concat('%', names[p.core.source_of(v.value)]));
    lines.cell(p.core.p.op(p.core.p.producer(v.value)).def->name);
    lines.cell(concat(p.core.p.type(v.value)));
    lines.cell(axes).end_row();
  }
  lines.print(out);
  if (more > 0) out << "and " << more << " more, " << more_bytes << " bytes\n";
  return out << "replicated by default: " << bytes << " bytes on one device, in " << shown
             << (shown == 1 ? " value\n" : " values\n");
}

namespace detail {
template <auto Thunk>
struct explained {
  constexpr text operator()() const { return explain(Thunk()); }
};
}  // namespace detail

/// The same text of the program that `Thunk` returns, made by the compiler.
template <auto Thunk>
constexpr std::string_view explain() {
  return detail::kept_text<detail::explained<Thunk>>();
}

}  // namespace partita
