/// Moving values from one layout to another outside of a step: a state from the partitioning that
/// wrote it to another one, one value to where somebody wants it.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/shard.hpp>
#include <partita/spmd/joint_mesh.hpp>
#include <partita/spmd/parse_layout.hpp>
#include <partita/spmd/reshard.hpp>

namespace partita {

/// How one value moves.
struct value_move {
  text name;
  tensor_type type;         ///< of all pieces together: with padding
  tensor_type true_type;    ///< of the array
  layout from, to;          ///< over the mesh of the plan
  vec<reshard_step> steps;  ///< none if it stays where it is
  std::int64_t sent = 0;    ///< bytes that a device sends
  std::int64_t most = 0;    ///< bytes of the largest piece of it that a device holds
};

/// How values move, one after the other.
struct reshard_plan_result {
  partita::mesh mesh;  ///< of parts of the axes of both sides
  vec<value_move> values;
  partita::collectives collectives;
  std::int64_t bytes_sent = 0;  ///< by a device, in all
  /// Bytes on a device: all values, each as the larger of its two ends, and what the largest piece
  /// on the way takes beside that.
  std::int64_t peak_bytes = 0;
  failure error;

  /// A program for each device that takes the values as they lie and gives them as they are to.
  constexpr device_program program() const {
    device_program d;
    d.mesh = mesh;
    for (const value_move& v : values) {
      const tensor_type piece{v.type.element, v.from.local(v.type.shape, mesh)};
      d.local.inputs.push_back(d.local.append(def<op::parameter>, {}, {}, piece));
      d.local.ops.back().name = d.local.intern(v.name.view());
      d.inputs.push_back(v.from);
      d.input_types.push_back(v.true_type);
    }
    for (std::size_t i = 0; i < values.size(); ++i) {
      const value_move& v = values[i];
      value_id x = d.local.inputs[i];
      for (const reshard_step& s : v.steps)
        x = append(d.local, s.what, x, {v.type.element, s.after.local(v.type.shape, mesh)});
      d.local.outputs.push_back({x, d.local.intern(v.name.view())});
      d.outputs.push_back(v.to);
      d.output_types.push_back(v.true_type);
    }
    return d;
  }
};

namespace schedule_detail {

class reshard_planner {
 public:
  constexpr explicit reshard_planner(const mesh& m) { r_.mesh = m; }

  /// `piece`: of the value as it lies.
  constexpr void move(std::string_view name, const tensor_type& true_type, const shape& piece,
                      const layout& from, const layout& to) {
    value_move v{name, {true_type.element, from.global(piece, r_.mesh)}, true_type, from, to, {}};
    for (int d = 0; d < piece.rank; ++d)
      if (v.type.shape[d] % to.pieces(r_.mesh, d) != 0)
        r_.error.record("S038", "reshard: dimension ", d, " of \"", name, "\" has size ",
                        v.type.shape[d], ", which ", to.pieces(r_.mesh, d),
                        " pieces do not divide; take other axes");
    if (r_.error) return;
    add(v);
  }
  constexpr reshard_plan_result done() { return static_cast<reshard_plan_result&&>(r_); }
  constexpr failure& error() { return r_.error; }

 private:
  reshard_plan_result r_;
  known_ways ways_;
  std::int64_t ends_ = 0, beside_ = 0;

  constexpr std::int64_t bytes(const value_move& v, const layout& l) const {
    return tensor_type{v.type.element, l.local(v.type.shape, r_.mesh)}.bytes();
  }
  constexpr void add(value_move& v) {
    layout lies = v.from;
    v.most = bytes(v, v.from);
    if (!(v.from == v.to))
      reshard_by(
          v.from, v.to, v.type.shape.rank, passes(),
          [&](const auto& plain) -> const vec<reshard_step>& {
            return ways_.find(plain, v.from, v.to, v.type, r_.mesh);
          },
          [&](const reshard_step& s) {
            v.sent = saturating_add(
                v.sent, bytes_sent(s.what.kind, s.what.members(r_.mesh), bytes(v, lies)));
            lies = s.after;
            if (const std::int64_t n = bytes(v, lies); n > v.most) v.most = n;
            if (s.what.communicates()) r_.collectives.count(s.what.kind);
            v.steps.push_back(s);
          });
    const std::int64_t first = bytes(v, v.from), last = bytes(v, v.to);
    const std::int64_t end = first > last ? first : last;
    ends_ = saturating_add(ends_, end);
    if (v.most - end > beside_) beside_ = v.most - end;
    r_.bytes_sent = saturating_add(r_.bytes_sent, v.sent);
    r_.peak_bytes = saturating_add(ends_, beside_);
    r_.values.push_back(v);
  }
};

/// Where a value of a partitioned program lies.
struct lying_value {
  tensor_type type;
  shape piece;
  layout lies;
};
/// An output of this name, a state as a step leaves it; else an input.
constexpr bool find_value(const partitioned& p, std::string_view name, lying_value& v) {
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
/// `[{"B", "M"}, {}]`
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
  lying_value v;
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
  const text said = layout_text(wanted, v.type.shape.rank);
  mesh m = p.mesh();
  split_as_in(said.view(), m);
  reshard_planner plan(m);
  const layout from = over_parts(v.lies, p.mesh(), m);
  const layout to = parse_layout(said.view(), m, from.global(v.piece, m), plan.error());
  if (!plan.error()) plan.move(name, v.type, v.piece, from, to);
  return plan.done();
}

constexpr reshard_plan_result plan_between(const partitioned& a, const partitioned& b) {
  mesh joint;
  failure wrong = a.error ? a.error : b.error;
  if (!wrong && !join(a.mesh(), b.mesh(), joint))
    wrong.record("S037", "reshard_plan: ", a.mesh(), " and ", b.mesh(),
                 " are no views of the same devices that have parts of axes in common; plan it by "
                 "way of a mesh that has");
  reshard_planner plan(wrong ? mesh() : joint);
  plan.error() = wrong;
  for (int i = 0; i < b.source.input_count() && !plan.error(); ++i) {
    const std::string_view name = b.source.input_name(i);
    lying_value v;
    if (!find_value(a, name, v)) continue;
    const tensor_type type = b.source.input_type(i);
    const layout from = over_parts(v.lies, a.mesh(), joint),
                 to = over_parts(b.device.inputs[static_cast<std::size_t>(i)], b.mesh(), joint);
    const shape mine = from.global(v.piece, joint),
                theirs = to.global(b.device.local.input_type(i).shape, joint);
    if (v.type != type || mine != theirs)
      plan.error().record("S038", "reshard_plan: \"", name, "\" is ", v.type, " of pieces of ",
                          tensor_type{type.element, mine}, " in one program, ", type,
                          " of pieces of ", tensor_type{type.element, theirs},
                          " in the other; pad both alike");
    plan.move(name, type, v.piece, from, to);
  }
  return plan.done();
}
template <class Plan>
constexpr Plan checked_plan(Plan plan) {
  if (!std::is_constant_evaluated() && plan.error) throw error(plan.error.message);
  return plan;
}

}  // namespace schedule_detail

/// How one input or output of a partitioned program gets from where it lies to another layout:
/// `reshard(p, "params.w1", {{}, {"B", "M"}})`, in the notation of `shard`; dimensions that are not
/// named are whole. A name of both is the output: a state as a step leaves it.
///
/// At run time a mistake is thrown; in constant evaluation it is kept in `error`.
/// Errors    S036 no such value, or more dimensions than it has; S038, P019 to P023 the layout does
///           not fit
constexpr reshard_plan_result reshard(const partitioned& p, std::string_view name,
                                      const dimensions_axes& to) {
  return schedule_detail::checked_plan(schedule_detail::reshard_value(p, name, to));
}

/// How a state that `a` leaves becomes one that `b` takes, such as a checkpoint that is to go on
/// under another schedule, or on another mesh of as many devices: for each input of `b`, the output
/// of `a` of that name, or its input. Device i of the one mesh is device i of the other.
///
/// Errors    S037 the meshes have no parts in common; S038 types or paddings differ; at run time
///           they are thrown
constexpr reshard_plan_result reshard_plan(const partitioned& a, const partitioned& b) {
  return schedule_detail::checked_plan(schedule_detail::plan_between(a, b));
}

/// A line for each value that moves: type, both layouts, collectives and the bytes that a device
/// sends; and what all of them come to.
constexpr text print(const reshard_plan_result& plan) {
  text out;
  if (plan.error) return out << "error: " << plan.error.message << '\n';
  std::int64_t stay = 0;
  out << plan.mesh << ":\n";
  for (const value_move& v : plan.values) {
    if (v.steps.empty()) {
      ++stay;
      continue;
    }
    out << "  " << v.name << "  " << v.true_type << "  ";
    print_layout(out, v.from, v.type.shape.rank, plan.mesh);
    out << " -> ";
    print_layout(out, v.to, v.type.shape.rank, plan.mesh);
    out << "  ";
    append_list(out, static_cast<int>(v.steps.size()), [&](int i) {
      const collective& what = v.steps[static_cast<std::size_t>(i)].what;
      out << name_of(what.kind) << " <";
      print_axis_list(out, what.axes.count, plan.mesh,
                      [&](int k) { return int{what.axes[k].axis}; });
      out << '>';
    });
    out << "  " << v.sent << " bytes\n";
  }
  out << "in all " << plan.values.size() << " values, " << stay
      << " of which stay: " << plan.collectives << "; sent " << plan.bytes_sent << " bytes, peak "
      << plan.peak_bytes << " bytes\n";
  return out;
}

}  // namespace partita
