/// Proof by shrinking: executes both programs on few indices, which decides for any number of them.
#pragma once

#include <partita/prove/shrink/shrunk_run.hpp>
#include <partita/support/text.hpp>

namespace partita::prove_detail {

/// The result of a proof by shrinking.
struct shrink_verdict {
  enum kind_type : std::uint8_t { proved, differs, not_known, too_large };
  kind_type kind = not_known;
  std::int64_t steps = 0;  ///< number of steps
  int output = -1;         ///< the first output that differs
  std::string_view op;     ///< an op that cannot be shrunk, if any
};

class shrink_checker {
 public:
  constexpr shrink_checker(const program& source, const device_program& d, std::int64_t most_steps)
      : source_(source), d_(d), most_steps_(most_steps), classes_(source, d), atoms_(classes_) {}

  constexpr shrink_verdict check() {
    shrink_verdict v;
    atoms_.resize();
    constexpr int most_rounds = 6;
    for (int round = 0; round < most_rounds && v.steps <= most_steps_; ++round) {
      run(v);
      if (v.kind == shrink_verdict::too_large || !v.op.empty() || !atoms_.resize()) return v;
    }
    v.kind = shrink_verdict::too_large;
    return v;
  }
  constexpr const atom_table& atoms() const { return atoms_; }

 private:
  const program& source_;
  const device_program& d_;
  std::int64_t most_steps_;
  index_classes classes_;
  atom_table atoms_;

  constexpr void run(shrink_verdict& v) {
    v.output = -1;
    algebra a;
    a.joins_exponentials = false;
    a.most_steps = most_steps_ - v.steps;
    const mesh alone;
    mesh on = d_.mesh;
    for (int axis = 0; axis < on.rank; ++axis)
      on.axes[axis].size = atoms_.extent(atoms_.of_axis(axis));
    cut_points cuts;
    shrunk_run source(a, classes_.source, true, alone, atoms_, cuts),
        local(a, classes_.local, false, on, atoms_, cuts);
    for (int i = 0; i < source_.input_count() && !a.is_over(); ++i) {
      give_variables(a, source, i);
      if (!a.is_over()) give_shards(a, source, local, i);
    }
    if (!a.is_over()) source.run();
    if (!a.is_over()) local.run();
    v.steps += a.steps;
    v.op = source.unknown_op().empty() ? local.unknown_op() : source.unknown_op();
    v.kind = a.is_over() ? shrink_verdict::too_large : shrink_verdict::proved;
    if (!v.op.empty()) v.kind = shrink_verdict::not_known;
    for (int i = 0; i < source_.output_count() && v.kind == shrink_verdict::proved; ++i)
      compare(source, local, i, v);
    if (v.kind == shrink_verdict::differs && a.cut_short) v.kind = shrink_verdict::not_known;
  }
  constexpr void give_variables(algebra& a, shrunk_run& source, int i) {
    dependence by;
    const value_id v = source_.inputs[i];
    by.dims = (1u << source_.type(v).shape.rank) - 1;
    shrunk_value& x = source.make(v, by);
    if (a.is_over()) return;
    for (std::size_t n = 0; n < x.all.all.size(); ++n)
      x.all.all[n] = a.unknown(x.all.type.element, drawing(3).add(i).add(std::uint64_t{n}).drawn());
  }
  /// The shards of an input; padding is arbitrary.
  constexpr void give_shards(algebra& a, shrunk_run& source, shrunk_run& local, int i) {
    const value_id v = d_.local.inputs[i];
    const layout& l = d_.inputs[i];
    const shrunk_value& whole = source.at(source_.inputs[i]);
    const shape& s = local.type(v).shape;
    dependence by;
    by.dims = (1u << s.rank) - 1;
    for (const auto& e : l) by.axes.insert(e.axis);
    if (l.global(s, local.on().mesh()) != whole.all.type.shape)
      for (int axis = 0; axis < d_.mesh.rank; ++axis) by.axes.insert(axis);
    shrunk_value& x = local.make(v, by);
    for (std::int64_t k = 0; k < x.count && !a.is_over(); ++k) {
      const std::int64_t device = local.device_of(x, k);
      for_each_place(s, [&](const place& at, std::int64_t n) {
        const place from = local.on().whole(l, s, at, device);
        x.all.on(k)[n] =
            lies_in(from, whole.all.type.shape)
                ? *(whole.all.on(0) + number_of(from, whole.all.type.shape))
                : a.unknown(x.all.type.element, drawing(4).add(i).add(device).add(n).drawn());
      });
    }
  }
  constexpr void compare(shrunk_run& source, shrunk_run& local, int i, shrink_verdict& v) {
    const shrunk_value& whole = source.at(source_.outputs[i].value);
    const value_id made = d_.local.outputs[i].value;
    const shrunk_value& x = local.at(made);
    const layout& l = d_.outputs[i];
    const shape &s = x.all.type.shape, &from = whole.all.type.shape;
    dependence both = x.by;
    both.dims |= whole.by.dims;
    for (const auto& e : l)
      if (whole.by.has(e.dim)) both.axes.insert(e.axis);
    index_list bound = x.by.bound;
    bound.join(whole.by.bound, false);
    local.by().require(made, both, bound,
                       x.by.extreme != combiner::stack || whole.by.extreme != combiner::stack);
    for (std::int64_t device = 0; device < local.on().count(); ++device) {
      const element* each = local.on_device(x, device);
      for_each_place(s, [&](const place& at, std::int64_t n) {
        const place to = local.on().whole(l, s, at, device);
        if (!lies_in(to, from) || each[n] == *(whole.all.on(0) + number_of(to, from))) return;
        v.kind = shrink_verdict::differs;
        if (v.output < 0) v.output = i;
      });
    }
  }
};

/// Compares a local program with its source by shrinking.
constexpr shrink_verdict prove_by_shrinking(const program& source, const device_program& d,
                                            std::int64_t most_steps) {
  return shrink_checker(source, d, most_steps).check();
}

}  // namespace partita::prove_detail
