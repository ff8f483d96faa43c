/// What `prove` is given: do two programs, the layouts between them and the mesh go together?
#pragma once

#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/spmd/verify.hpp>

namespace partita::prove_detail {

/// `%x3 = add(%x1, %x2)`.
constexpr text op_text(const program& p, op_id o) {
  const value_names names(p);
  text out = concat('%', names[p.op(o).result], " = ", p.op(o).def->name, '(');
  append_list(out, p.op(o).operand_count, [&](int i) { out << '%' << names[p.operand(o, i)]; });
  out << ')';
  return out;
}

/// Errors    Q001 numbers of inputs and outputs, Q002 a layout does not fit, Q006 an axis that the
///           mesh has not, Q007 the local program does not verify
class given {
 public:
  constexpr given(const program& source, const device_program& d) : source_(source), d_(d) {}

  constexpr failure check() {
    check_counts();
    for (int a = 0; a < d_.mesh.rank && !f_; ++a)
      if (d_.mesh.size(a) < 1)
        f_.record("Q006", "prove: axis \"", d_.mesh.name(a), "\" has size ", d_.mesh.size(a));
    for (int i = 0; i < source_.input_count() && !f_; ++i)
      check_axes("input", source_.input_name(i), d_.inputs[i]);
    for (int i = 0; i < source_.output_count() && !f_; ++i)
      check_axes("output", source_.output_name(i), d_.outputs[i]);
    check_program();
    for (int i = 0; i < source_.input_count() && !f_; ++i)
      check_layout("input", source_.input_name(i), d_.inputs[i], source_.input_type(i),
                   d_.local.input_type(i));
    for (int i = 0; i < source_.output_count() && !f_; ++i)
      check_layout("output", source_.output_name(i), d_.outputs[i], source_.output_type(i),
                   d_.local.output_type(i));
    return f_;
  }

 private:
  const program& source_;
  const device_program& d_;
  failure f_;

  constexpr void check_counts() {
    const program& local = d_.local;
    if (source_.input_count() != local.input_count() ||
        source_.output_count() != local.output_count())
      f_.record("Q001", "prove: the source has ", source_.input_count(), " inputs and ",
                source_.output_count(), " outputs, the local program ", local.input_count(),
                " and ", local.output_count());
    else if (static_cast<int>(d_.inputs.size()) != source_.input_count() ||
             static_cast<int>(d_.outputs.size()) != source_.output_count())
      f_.record("Q002", "prove: ", d_.inputs.size(), " layouts of ", source_.input_count(),
                " inputs and ", d_.outputs.size(), " of ", source_.output_count(),
                " outputs; each needs one");
  }
  constexpr bool has(int axis) const { return axis >= 0 && axis < d_.mesh.rank; }
  /// The number of an axis that the mesh has not, and the axes that it has.
  constexpr text no_axis(int axis) const {
    text out = concat("axis ", axis, ", which the mesh {");
    append_list(out, d_.mesh.rank,
                [&](int a) { out << '"' << d_.mesh.name(a) << "\":" << d_.mesh.size(a); });
    out << "} has not; its axes are numbered from 0";
    return out;
  }
  constexpr void check_axes(std::string_view what, std::string_view name, const layout& l) {
    for (const auto& e : l)
      if (!has(e.axis))
        f_.record("Q006", "prove: ", what, " \"", name, "\" lies along ", no_axis(e.axis));
  }
  /// Those of its collectives, and those of programs nested in it.
  constexpr void check_axes(const program& p) {
    for (const auto& r : p.regions) check_axes(r);
    for (op_id o = 0; o < p.op_count() && !f_; ++o) {
      const op_def& d = *p.op(o).def;
      if (d.collective) {
        for (const auto& e : p.collective_of(o).axes) check_axis(p, o, e.axis);
      } else if (d.id == def<op::shard_start>.id) {
        const axis_list axes = op::shard_start::axes(p.attrs(o));
        for (int i = 0; i < axes.count; ++i) check_axis(p, o, axes.axes[i]);
      }
    }
  }
  constexpr void check_axis(const program& p, op_id o, int axis) {
    if (!f_ && !has(axis)) f_.record("Q006", "prove: ", op_text(p, o), " is along ", no_axis(axis));
  }
  /// (What its collectives make is asked when their axes are there.)
  constexpr void check_program() {
    if (f_) return;
    failure wrong = verify(d_.local);
    if (!wrong) check_axes(d_.local);
    if (!wrong && !f_) wrong = spmd_detail::verify_collectives(d_.local, d_.mesh);
    if (wrong) f_.record("Q007", "prove: the local program does not verify: ", wrong.message);
  }
  constexpr void check_layout(std::string_view what, std::string_view name, const layout& l,
                              const tensor_type& whole, const tensor_type& local) {
    bool fits = whole.element == local.element && whole.shape.rank == local.shape.rank;
    axis_set seen;
    for (const auto& e : l) {
      fits = fits && e.dim >= 0 && e.dim < whole.shape.rank && !seen.contains(e.axis);
      seen.insert(e.axis);
    }
    if (fits) {
      const shape pieces = l.global(local.shape, d_.mesh);
      for (int d = 0; d < whole.shape.rank; ++d) fits = fits && pieces[d] >= whole.shape[d];
    }
    if (!fits)
      f_.record("Q002", "prove: ", what, " \"", name, "\" is ", local,
                " on each device, which its layout does not make of ", whole);
  }
};

}  // namespace partita::prove_detail
