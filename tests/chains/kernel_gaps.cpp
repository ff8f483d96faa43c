/// Every op has a kernel for every element type that it accepts: checked at compile time.
#include <partita/cpu.hpp>
#include <partita/run/kernels/table.hpp>

namespace {

using namespace partita;
using namespace partita::run_detail;

/// The combinations of op and element type that no kernel computes. The list is empty: otherwise
/// the tests do not compile, so that an op or a type is not added without its function.
struct kernel_gaps {
  /// Returns the first op of the registry without a kernel, apart from ops that only pass on their
  /// operands or have nested programs; or the first elementwise op without a function for a type
  /// that it accepts; or null.
  static constexpr const op_def* in_registry() {
    for (const op_def* each : registry) {
      const bool runs = each->role != op_role::parameter && !each->identity && !each->passes_on &&
                        each->wires == &no_wires && each != &def<op::reshape>;
      const bool maps = each->elementwise && each->operand_count > 0;
      if (runs && !has_kernel(*each) && !(maps && computed(*each))) return each;
    }
    return nullptr;
  }
  /// The same for the ops that functions of scalars may use, which `fold_function` runs.
  static constexpr const op_def* in_steps() {
    for (const op_def* each : op::step_ops)
      if (each != &def<op::constant> && each != &def<op::reduce_precision> && !computed(*each))
        return each;
    return nullptr;
  }

 private:
  static constexpr bool has_kernel(const op_def& d) {
    for (const auto& entry : kernel_table)
      if (entry.op == &d) return true;
    return false;
  }
  /// True if the op has a function or a link for all types that it accepts.
  static constexpr bool computed(const op_def& d) {
    for (int first = 0; first < dtype_count; ++first)
      for (int rest = 0; rest < dtype_count; ++rest) {
        const bool both = first == rest || static_cast<dtype>(first) == dtype::boolean;
        if (both && !computed(d, static_cast<dtype>(first), static_cast<dtype>(rest))) return false;
      }
    return true;
  }
  static constexpr bool computed(const op_def& d, dtype first, dtype rest) {
    infer_context c;
    const tensor_type operands[] = {{first, {}}, {rest, {}}, {rest, {}}};
    c.operands = {operands, static_cast<std::size_t>(d.operand_count)};
    const dtype last = operands[d.operand_count - 1].element;
    const int types = d.id == def<op::convert>.id ? dtype_count : 1;
    const int directions = d.id == def<op::compare>.id ? 6 : 1;
    for (int to = 0; to < types; ++to)
      for (int direction = 0; direction < directions; ++direction) {
        c.error = {};
        const std::int64_t attrs[] = {direction};
        if (directions > 1) c.attrs = {attrs, 1};
        c.declared = {static_cast<dtype>(to), {}};
        d.infer(c);
        if (!c.error &&
            link_of(&d, partita::run_detail::computed(last)) == partita::run_detail::link::none &&
            block_of(&d, attrs, last, c.result.element) == nullptr)
          return false;
      }
    return true;
  }
};
static_assert(kernel_gaps::in_registry() == nullptr,
              "an op of the registry has no kernel, or none for a type");
static_assert(kernel_gaps::in_steps() == nullptr, "fold cannot compute an op of op::step_ops");

}  // namespace
