/// Values that need no kernel: memory that is passed on, broadcasts that repeat one contiguous run
/// of dimensions, and values padded along one dimension.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>

#include <partita/op/registry.hpp>

namespace partita::run_detail {

/// True if the result i of an op uses the memory of operand i.
constexpr bool passes_on(const program& p, op_id o) {
  const op_node& n = p.op(o);
  if (n.def->passes_on) return true;
  if (n.operand_count != 1 || n.result_count != 1) return false;
  const tensor_type &from = p.type(p.operand(o, 0)), &to = p.type(n.result);
  if (n.def->identity || n.def == &def<op::reshape>) return true;
  if (n.def == &def<op::convert>) return from.element == to.element;
  if (n.def == &def<op::broadcast_in_dim> || n.def == &def<op::reduce>)
    return from.shape.elements() == to.shape.elements() &&
           (n.def == &def<op::broadcast_in_dim> || n.attr_count == 1);
  return false;
}

/// result[i] = source[i / inner % count]. With a period, each period of the result is padded:
/// result[i] = source[i / period * inside + j] if j = i % period - low is in [0, inside), else
/// `value`.
struct repetition {
  std::int64_t count = 1, inner = 1;
  std::int64_t period = 0, low = 0, inside = 0;
  std::int64_t value = 0;  ///< the bits of an element

  /// Writes elements [begin, begin + n).
  template <class T>
  void fill(std::int64_t begin, std::int64_t n, const T* source, T* out) const {
    const std::int64_t end = begin + n;
    if (period > 0) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t j = i % period - low;
        const bool within = j >= 0 && j < inside;
        const std::int64_t run =
            std::min(j < 0 ? -j : (within ? inside : period - low) - j, end - i);
        out = within ? std::copy_n(source + i / period * inside + j, run, out)
                     : std::fill_n(out, run, static_cast<T>(value));
        i += run;
      }
    } else if (inner == 1) {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t at = i % count, run = std::min(count - at, end - i);
        out = std::copy_n(source + at, run, out);
        i += run;
      }
    } else {
      for (std::int64_t i = begin; i < end;) {
        const std::int64_t run = std::min(inner - i % inner, end - i);
        out = std::fill_n(out, run, source[i / inner % count]);
        i += run;
      }
    }
  }
};

/// Returns how a broadcast repeats its operand, if it repeats one contiguous run of dimensions.
constexpr std::optional<repetition> repetition_of(const shape& from, const shape& to,
                                                  span<const std::int64_t> dims) {
  if (to.elements() == 0) return {};
  bool kept[max_rank] = {};
  for (int i = 0; i < from.rank; ++i) kept[dims[static_cast<std::size_t>(i)]] = from[i] != 1;
  int first = 0, last = to.rank;
  while (first < to.rank && !kept[first]) ++first;
  while (last > first && !kept[last - 1]) --last;
  repetition r;
  for (int d = first; d < last; ++d) {
    if (!kept[d] && to[d] != 1) return {};
    r.count *= to[d];
  }
  for (int d = last; d < to.rank; ++d) r.inner *= to[d];
  return r;
}

}  // namespace partita::run_detail
