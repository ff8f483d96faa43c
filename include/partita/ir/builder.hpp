/// Appends ops to a program, checking each against its shape rule.
#pragma once

#include <initializer_list>
#include <partita/support/vec.hpp>
#include <span>
#include <string_view>

#include <partita/ir/program.hpp>

namespace partita {

/// Builds a program op by op.
///
/// After a mistake (`failed()`) every call returns -1 and changes nothing: one mistake, one error.
class builder {
 public:
  program p;

  constexpr bool failed() const { return static_cast<bool>(p.error); }
  constexpr const tensor_type& type(value_id v) const { return v < 0 ? no_type_ : p.type(v); }

  constexpr value_id emit(const op_def& def, std::initializer_list<value_id> operands,
                          std::initializer_list<std::int64_t> attrs = {},
                          const tensor_type& declared = {}) {
    return emit(def, std::span<const value_id>(operands.begin(), operands.size()),
                std::span<const std::int64_t>(attrs.begin(), attrs.size()), declared);
  }
  /// Appends an op; `declared` is the wanted result type where the operands do not determine it.
  constexpr value_id emit(const op_def& def, std::span<const value_id> operands,
                          std::span<const std::int64_t> attrs, const tensor_type& declared = {}) {
    if (failed()) return -1;
    infer_context c;
    scratch_.clear();
    for (value_id v : operands) {
      if (v < 0) return -1;
      scratch_.push_back(p.type(v));
    }
    c.operands = scratch_;
    c.attrs = attrs;
    c.declared = declared;
    def.infer(c);
    if (!c.error && c.result.shape.rank > max_rank)
      c.fail("S100", def.name, ": the result has rank ", c.result.shape.rank, "; at most ",
             max_rank, " is supported");
    for (int d = 0; d < c.result.shape.rank && !c.error; ++d)
      if (c.result.shape[d] < 0 && !(dynamic_extents_ && c.result.shape[d] == dyn))
        c.fail("S116", def.name, ": the result has shape ", c.result.shape,
               "; extents are 0 or above");
    if (c.error) {
      p.error.record(c.error);
      return -1;
    }
    const value_id v = p.append(def, operands, attrs, c.result);
    p.ops.back().origin = origin_;
    p.ops.back().transposed = transposed_;
    return v;
  }

  /// A rank-0 constant; equal ones are one value.
  constexpr value_id scalar(const op_def& constant, dtype t, std::int64_t bits) {
    if (failed()) return -1;
    for (const auto& s : scalars_)
      if (s.element == t && s.bits == bits) return s.value;
    const value_id v = emit(constant, {}, {bits}, tensor_type{t, {}});
    if (v >= 0) {
      p.ops.back().origin = -1;
      p.ops.back().transposed = 0;
      scalars_.push_back({t, bits, v});
    }
    return v;
  }

  /// Names the op that was appended last (parameters and tags).
  constexpr void name_last(std::string_view name) {
    if (!failed()) p.ops.back().name = p.intern(name);
  }

  /// For shape rules on static types, where an extent may be `dyn`.
  constexpr void allow_dynamic_extents() { dynamic_extents_ = true; }

  /// Ops emitted from now on are derivatives of `origin`.
  constexpr void set_origin(op_id origin, int transposed) {
    origin_ = origin;
    transposed_ = transposed;
  }

 private:
  struct cached_scalar {
    dtype element;
    std::int64_t bits;
    value_id value;
  };
  tensor_type no_type_;
  vec<tensor_type> scratch_;
  vec<cached_scalar> scalars_;
  bool dynamic_extents_ = false;
  op_id origin_ = -1;
  int transposed_ = 0;
};

}  // namespace partita
