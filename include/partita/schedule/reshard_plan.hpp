/// Moving values from one layout to another outside of a step: all values of a state, from one
/// partitioning to another, or a single value.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/split_axes.hpp>
#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/shard.hpp>
#include <partita/schedule/value_moves.hpp>
#include <partita/spmd/joint_mesh.hpp>
#include <partita/spmd/parse_layout.hpp>
#include <partita/spmd/reshard.hpp>

namespace partita {

namespace schedule_detail {

class reshard_planner {
 public:
  constexpr explicit reshard_planner(const mesh& m) { r_.mesh = m; }

  /// Adds a move. `now` and `then` are the shapes of all shards together, with padding.
  constexpr void move(std::string_view name, const tensor_type& true_type, const shape& now,
                      const layout& from, const shape& then, const layout& to) {
    const dtype t = true_type.element;
    value_move v{name, {t, now}, {t, then}, true_type, from, to, {}};
    for (int d = 0; d < then.rank; ++d)
      if (then[d] % to.pieces(r_.mesh, d) != 0)
        r_.error.record("S038", "reshard: dimension ", d, " of \"", name, "\" has size ", then[d],
                        ", which ", to.pieces(r_.mesh, d),
                        " shards do not divide; choose other axes");
    if (r_.error) return;
    add(v);
  }
  constexpr reshard_plan_result done() { return static_cast<reshard_plan_result&&>(r_); }
  constexpr failure& error() { return r_.error; }

 private:
  reshard_plan_result r_;
  known_ways ways_;
  std::int64_t ends_ = 0, beside_ = 0;

  constexpr std::int64_t bytes(const tensor_type& all, const layout& l) const {
    return tensor_type{all.element, l.local(all.shape, r_.mesh)}.bytes();
  }
  constexpr void add(value_move& v) {
    const std::int64_t first = bytes(v.type, v.from), last = bytes(v.to_type, v.to);
    const std::int64_t end = first > last ? first : last;
    v.most = first;
    v.resized_as = v.to;
    if (v.type != v.to_type) {
      v.resized_as = {};
      for (const auto& e : v.to)
        if (v.type.shape[e.dim] == v.to_type.shape[e.dim]) v.resized_as.push_back(e.axis, e.dim);
    }
    add_steps(v, v.type, v.from, v.resized_as);
    v.resized_after = v.steps.size();
    if (const std::int64_t n = bytes(v.to_type, v.resized_as); n > v.most) v.most = n;
    add_steps(v, v.to_type, v.resized_as, v.to);
    ends_ = saturating_add(ends_, end);
    if (v.most - end > beside_) beside_ = v.most - end;
    r_.bytes_sent = saturating_add(r_.bytes_sent, v.sent);
    r_.peak_bytes = saturating_add(ends_, beside_);
    r_.values.push_back(v);
  }
  constexpr void add_steps(value_move& v, const tensor_type& all, layout now, const layout& to) {
    if (now == to) return;
    const layout from = now;
    reshard(from, to, all, r_.mesh, passes(), ways_, [&](const reshard_step& s) {
      v.sent =
          saturating_add(v.sent, bytes_sent(s.what.kind, s.what.members(r_.mesh), bytes(all, now)));
      now = s.after;
      if (const std::int64_t n = bytes(all, now); n > v.most) v.most = n;
      if (s.what.communicates()) r_.collectives.count(s.what.kind);
      v.steps.push_back(s);
    });
  }
};

/// The layout of a value of a partitioned program.
struct value_layout {
  tensor_type type;
  shape local_shape;
  layout sharding;
};
/// Finds the output of this name (a state as a step leaves it), or else the input.
constexpr bool find_value(const partitioned& p, std::string_view name, value_layout& v) {
  for (int i = 0; i < p.source.output_count(); ++i)
    if (p.source.output_name(i) == name) {
      v = {p.source.output_type(i), p.device.local.output_type(i).shape, p.device.outputs[i]};
      return true;
    }
  for (int i = 0; i < p.source.input_count(); ++i)
    if (p.source.input_name(i) == name) {
      v = {p.source.input_type(i), p.device.local.input_type(i).shape, p.device.inputs[i]};
      return true;
    }
  return false;
}
/// Returns `[{"B", "M"}, {}]`.
constexpr text layout_text(const dimensions_axes& l, int rank) {
  text out;
  out << '[';
  append_list(out, rank, [&](int d) {
    out << '{';
    bool first = true;
    for (int i = 0; i < l.count && i < max_axes; ++i) {
      if (l.dims[i] != d) continue;
      const std::string_view axis = l.axes[i];
      const std::size_t part = axis.rfind(":(");
      out << (first ? "\"" : ", \"") << axis.substr(0, part) << '"';
      if (part != axis.npos) out << axis.substr(part);
      first = false;
    }
    out << '}';
  });
  return out << ']';
}

constexpr reshard_plan_result reshard_value(const partitioned& p, std::string_view name,
                                            const dimensions_axes& wanted) {
  value_layout v;
  reshard_planner none(p.mesh());
  if (p.error) none.error() = p.error;
  if (!p.error && !find_value(p, name, v)) {
    vec<std::string_view> known;
    for (int i = 0; i < p.source.input_count(); ++i) known.push_back(p.source.input_name(i));
    for (int i = 0; i < p.source.output_count(); ++i) {
      const std::string_view out = p.source.output_name(i);
      bool is_new = true;
      for (const std::string_view each : known) is_new = is_new && each != out;
      if (is_new) known.push_back(out);
    }
    none.error().record("S036", "reshard: no input or output is named \"", name, "\"; ",
                        known_names(name, known));
  }
  if (!none.error() && wanted.rank > v.type.shape.rank)
    none.error().record("S036", "reshard: \"", name, "\" is ", v.type, "; axes of ", wanted.rank,
                        " dimensions are given");
  if (none.error()) return none.done();
  const text written = layout_text(wanted, v.type.shape.rank);
  mesh m = p.mesh();
  split_as_in(written.view(), m);
  m = split_at(m, possible_cuts(m));
  reshard_planner plan(m);
  const layout from = over_parts(v.sharding, p.mesh(), m);
  const layout to = parse_layout(written.view(), m, from.global(v.local_shape, m), plan.error());
  const shape all = from.global(v.local_shape, m);
  if (!plan.error()) plan.move(name, v.type, all, from, all, to);
  return plan.done();
}

constexpr reshard_plan_result plan_between(const partitioned& a, const partitioned& b) {
  mesh joint;
  failure wrong = a.error ? a.error : b.error;
  if (!wrong && !join(a.mesh(), b.mesh(), joint))
    wrong.record("S037", "reshard_plan: ", a.mesh(), " and ", b.mesh(),
                 " do not describe the same devices with common parts of axes; reshard by way of a "
                 "mesh that has parts in common with both");
  joint = split_at(joint, possible_cuts(joint));
  reshard_planner plan(wrong ? mesh() : joint);
  plan.error() = wrong;
  for (int i = 0; i < b.source.input_count() && !plan.error(); ++i) {
    const std::string_view name = b.source.input_name(i);
    value_layout v;
    if (!find_value(a, name, v)) continue;
    const tensor_type type = b.source.input_type(i);
    const layout from = over_parts(v.sharding, a.mesh(), joint),
                 to = over_parts(b.device.inputs[static_cast<std::size_t>(i)], b.mesh(), joint);
    if (v.type != type)
      plan.error().record("S038", "reshard_plan: \"", name, "\" is ", v.type, " in one program, ",
                          type, " in the other");
    plan.move(name, type, from.global(v.local_shape, joint), from,
              to.global(b.device.local.input_type(i).shape, joint), to);
  }
  return plan.done();
}
template <class Plan>
constexpr Plan checked_plan(Plan plan) {
  if (!std::is_constant_evaluated() && plan.error) throw error(plan.error.message);
  return plan;
}

}  // namespace schedule_detail

/// Returns the steps that move one input or output of a partitioned program to another layout:
/// `reshard(p, "params.w1", {{}, {"B", "M"}})`, in the notation of `shard`. Dimensions that are not
/// listed are unsharded. If both an input and an output have the name, it means the output: a state
/// as a step leaves it.
///
/// At run time an error is thrown; in constant evaluation it is stored in `error`.
/// Errors    S036 no such value, or more dimensions than it has; S038, P019 to P023 the layout does
///           not fit
constexpr reshard_plan_result reshard(const partitioned& p, std::string_view name,
                                      const dimensions_axes& to) {
  return schedule_detail::checked_plan(schedule_detail::reshard_value(p, name, to));
}

/// Returns the steps that turn a state that `a` returns into one that `b` accepts, for example a
/// checkpoint that continues with another schedule, or on another mesh of as many devices. For each
/// input of `b`, it moves the output of `a` with that name, or else its input. Device i of one mesh
/// is device i of the other. A dimension whose padding differs is gathered, resized and sliced.
///
/// Errors    S037 the meshes have no parts in common, S038 types differ; thrown at run time
constexpr reshard_plan_result reshard_plan(const partitioned& a, const partitioned& b) {
  return schedule_detail::checked_plan(schedule_detail::plan_between(a, b));
}

/// Returns one line for each value that moves: type, both layouts, collectives and the bytes that a
/// device sends; then the totals.
constexpr text print(const reshard_plan_result& plan) {
  text out;
  if (plan.error) return out << "error: " << plan.error.message << '\n';
  std::int64_t stay = 0;
  out << plan.mesh << ":\n";
  for (const value_move& v : plan.values) {
    if (v.steps.empty() && v.type == v.to_type) {
      ++stay;
      continue;
    }
    out << "  " << v.name << "  " << v.true_type << "  ";
    print_layout(out, v.from, v.type.shape.rank, plan.mesh);
    out << " -> ";
    print_layout(out, v.to, v.type.shape.rank, plan.mesh);
    out << "  ";
    const bool is_resized = v.type != v.to_type;
    append_list(out, static_cast<int>(v.steps.size()) + (is_resized ? 1 : 0), [&](int item) {
      auto i = static_cast<std::size_t>(item);
      if (is_resized && i == v.resized_after) {
        out << "pad " << v.to_type.shape;
        return;
      }
      if (is_resized && i > v.resized_after) --i;
      const collective& what = v.steps[i].what;
      out << name_of(what.kind) << " <";
      print_axis_list(out, what.axes.count, plan.mesh,
                      [&](int k) { return int{what.axes[k].axis}; });
      out << '>';
    });
    out << "  " << v.sent << " bytes\n";
  }
  out << "total: " << plan.values.size() << " values, " << stay
      << " unchanged: " << plan.collectives << "; sent " << plan.bytes_sent << " bytes, peak "
      << plan.peak_bytes << " bytes\n";
  return out;
}

}  // namespace partita
