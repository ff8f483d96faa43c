/// Checks the arguments of `prove`: the two programs, the layouts between them, and the mesh.
#pragma once

#include <string_view>

#include <partita/ir/print.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/spmd/verify.hpp>

namespace partita::prove_detail {

/// Text of an op: `%x3 = add(%x1, %x2)`.
constexpr text op_text(const program& p, op_id o) {
  const value_names names(p);
  text out = concat('%', names[p.op(o).result], " = ", p.op(o).def->name, '(');
  append_list(out, p.op(o).operand_count, [&](int i) { out << '%' << names[p.operand(o, i)]; });
  out << ')';
  return out;
}

/// Checks a local program and its mesh.
///
/// Errors    Q006 an axis that the mesh does not have, Q007 the local program does not verify
class given_program {
 public:
  constexpr given_program(const program& p, const mesh& m, failure& f) : p_(p), mesh_(m), f_(f) {}

  constexpr void check_mesh() {
    for (int a = 0; a < mesh_.rank && !f_; ++a)
      if (mesh_.size(a) < 1)
        f_.record("Q006", "prove: axis \"", mesh_.name(a), "\" has size ", mesh_.size(a));
  }
  constexpr void check_axes(std::string_view what, std::string_view name, const layout& l) {
    for (const auto& e : l)
      if (!has(e.axis))
        f_.record("Q006", "prove: ", what, " \"", name, "\" is sharded along ", no_axis(e.axis));
  }
  /// (Collectives are verified after their axes.)
  constexpr void check() {
    if (f_) return;
    failure wrong = verify(p_);
    if (!wrong) check_axes(p_);
    if (!wrong && !f_) wrong = spmd_detail::verify_collectives(p_, mesh_);
    if (wrong) f_.record("Q007", "prove: the local program does not verify: ", wrong.message);
  }
  /// Errors    Q002 a layout does not produce the local type from the global one
  constexpr void check_layout(std::string_view what, std::string_view name, const layout& l,
                              const tensor_type& whole, const tensor_type& local) {
    bool fits = whole.element == local.element && whole.shape.rank == local.shape.rank;
    axis_set seen;
    for (const auto& e : l) {
      fits = fits && e.dim >= 0 && e.dim < whole.shape.rank && !seen.contains(e.axis);
      seen.insert(e.axis);
    }
    if (fits) {
      const shape pieces = l.global(local.shape, mesh_);
      for (int d = 0; d < whole.shape.rank; ++d) fits = fits && pieces[d] >= whole.shape[d];
    }
    if (!fits)
      f_.record("Q002", "prove: ", what, " \"", name, "\" is ", local,
                " on each device; its layout gives another local type for ", whole);
  }

 private:
  const program& p_;
  const mesh& mesh_;
  failure& f_;

  constexpr bool has(int axis) const { return axis >= 0 && axis < mesh_.rank; }
  /// Text of a missing axis and of the mesh's axes.
  constexpr text no_axis(int axis) const {
    text out = concat("axis ", axis, ", which the mesh {");
    append_list(out, mesh_.rank,
                [&](int a) { out << '"' << mesh_.name(a) << "\":" << mesh_.size(a); });
    out << "} does not have; its axes are numbered from 0";
    return out;
  }
  /// Checks the axes of collectives, including those in nested programs.
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
    if (!f_ && !has(axis)) f_.record("Q006", "prove: ", op_text(p, o), " uses ", no_axis(axis));
  }
};

/// Checks the arguments of `prove`.
///
/// Errors    Q001 numbers of inputs and outputs, Q002 a layout does not fit, those of the local
///           program
class given {
 public:
  constexpr given(const program& source, const device_program& d)
      : source_(source), d_(d), local_(d.local, d.mesh, f_) {}

  constexpr failure check() {
    check_counts();
    if (!f_) local_.check_mesh();
    for (int i = 0; i < source_.input_count() && !f_; ++i)
      local_.check_axes("input", source_.input_name(i), d_.inputs[i]);
    for (int i = 0; i < source_.output_count() && !f_; ++i)
      local_.check_axes("output", source_.output_name(i), d_.outputs[i]);
    local_.check();
    for (int i = 0; i < source_.input_count() && !f_; ++i)
      local_.check_layout("input", source_.input_name(i), d_.inputs[i], source_.input_type(i),
                          d_.local.input_type(i));
    for (int i = 0; i < source_.output_count() && !f_; ++i)
      local_.check_layout("output", source_.output_name(i), d_.outputs[i], source_.output_type(i),
                          d_.local.output_type(i));
    return f_;
  }

 private:
  const program& source_;
  const device_program& d_;
  failure f_;
  given_program local_;

  constexpr void check_counts() {
    const program& local = d_.local;
    if (source_.input_count() != local.input_count() ||
        source_.output_count() != local.output_count())
      f_.record("Q001", "prove: the source has ", source_.input_count(), " inputs and ",
                source_.output_count(), " outputs, the local program ", local.input_count(),
                " and ", local.output_count());
    else if (static_cast<int>(d_.inputs.size()) != source_.input_count() ||
             static_cast<int>(d_.outputs.size()) != source_.output_count())
      f_.record("Q002", "prove: ", d_.inputs.size(), " layouts for ", source_.input_count(),
                " inputs and ", d_.outputs.size(), " for ", source_.output_count(),
                " outputs; each needs one");
  }
};

}  // namespace partita::prove_detail
