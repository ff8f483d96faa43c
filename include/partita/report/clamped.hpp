/// Constant indices that are out of bounds, so that the op clamps them.
#pragma once

#include <cstdint>

#include <partita/ir/print.hpp>
#include <partita/op/registry.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace report_detail {

/// Minimum and maximum element of an integer constant.
struct constant_range {
  bool known = false;
  std::int64_t least = 0, greatest = 0;

  constexpr void take(std::int64_t v) {
    least = known && least < v ? least : v;
    greatest = known && greatest > v ? greatest : v;
    known = true;
  }
};

/// Finds clamped indices: constants, literals and iotas, also after conversions, moves and joins.
class clamped_finder {
 public:
  constexpr explicit clamped_finder(int limit) : limit_(limit) {}

  /// Up to `limit` notes; `count` is the number of clamped indices, including those without a note.
  vec<text> notes;
  int count = 0;

  /// Cost: linear in ops, and in the elements of literals
  constexpr void look(const program& p, bool named) {
    vec<constant_range> ranges(p.types.size(), constant_range());
    for (op_id o = 0; o < p.op_count(); ++o) {
      const op_node& n = p.op(o);
      if (n.result_count == 1) ranges[n.result] = range_of(p, o, ranges);
      if (n.def->id == def<op::dynamic_slice>.id) look_at_box(p, o, ranges, 1, named);
      if (n.def->id == def<op::dynamic_update_slice>.id) look_at_box(p, o, ranges, 2, named);
      if (n.def->id == def<op::gather>.id) look_at_gather(p, o, ranges, named);
      for (const auto& r : p.regions_of(o)) look(r, false);
    }
  }

 private:
  int limit_;

  static constexpr constant_range range_of(const program& p, op_id o,
                                           const vec<constant_range>& ranges) {
    constant_range r;
    const std::uint64_t id = p.op(o).def->id;
    const tensor_type& type = p.type(p.op(o).result);
    if (!is_integer(type.element) || type.element == dtype::u64 || type.shape.elements() == 0)
      return r;
    if (id == def<op::constant>.id || id == def<op::literal>.id) {
      for (const std::int64_t v : p.attrs(o)) r.take(v);
    } else if (id == def<op::iota>.id) {
      r.take(0);
      r.take(type.shape[static_cast<int>(p.attrs(o)[0])] - 1);
    } else if (id == def<op::convert>.id || id == def<op::broadcast_in_dim>.id ||
               id == def<op::reshape>.id || id == def<op::transpose>.id) {
      // (A conversion to a type that cannot hold the number does not occur in an index.)
      r = ranges[p.operand(o, 0)];
    } else if (id == def<op::concatenate>.id) {
      for (value_id v : p.operands(o)) {
        if (!ranges[v].known) return {};
        r.take(ranges[v].least);
        r.take(ranges[v].greatest);
      }
    }
    return r;
  }

  constexpr void look_at_box(const program& p, op_id o, const vec<constant_range>& ranges,
                             int first, bool named) {
    const tensor_type& x = p.type(p.operand(o, 0));
    const bool slices = first == 1;
    const shape& box = p.type(slices ? p.op(o).result : p.operand(o, 1)).shape;
    for (int d = 0; d < x.shape.rank; ++d)
      compare(p, o, ranges[p.operand(o, first + d)], x.shape[d] - box[d], d, "start", named);
  }
  constexpr void look_at_gather(const program& p, op_id o, const vec<constant_range>& ranges,
                                bool named) {
    const constant_range r = ranges[p.operand(o, 1)];
    if (!r.known) return;
    const shape& x = p.type(p.operand(o, 0)).shape;
    const op::gather_dims dims(p.attrs(o), x, p.type(p.operand(o, 1)).shape);
    if (!dims.fault.empty()) return;
    const auto sizes = p.attrs(o).subspan(dims.attrs_read);
    // An index vector keeps one range for all its entries. Compare it with the largest limit, so
    // that no valid index is reported.
    std::int64_t limit = 0;
    int dim = 0;
    for (int i = 0; i < dims.starts; ++i) {
      const int d = dims.start_map[i];
      const std::int64_t size = sizes.empty() ? 1
                                              : (sizes[static_cast<std::size_t>(d)] == ops::whole
                                                     ? x[d]
                                                     : sizes[static_cast<std::size_t>(d)]);
      if (i == 0 || x[d] - size > limit) {
        limit = x[d] - size;
        dim = d;
      }
    }
    if (dims.starts > 0) compare(p, o, r, limit, dim, "index", named);
  }
  constexpr void compare(const program& p, op_id o, const constant_range& r, std::int64_t limit,
                         int dim, std::string_view what, bool named) {
    if (!r.known || limit < 0 || (r.least >= 0 && r.greatest <= limit)) return;
    if (count++ >= limit_) return;
    const bool below = r.least < 0;
    text note = p.op(o).def->name;
    if (named) note << " %" << value_names(p)[p.op(o).result];
    note << ": " << what << ' ' << (below ? r.least : r.greatest) << " along dimension " << dim
         << " of " << p.type(p.operand(o, 0)) << " is clamped to " << (below ? 0 : limit);
    notes.push_back(note);
  }
};

}  // namespace report_detail

/// Returns a line for each gather and each box (dynamic slice or update) whose constant index is
/// out of bounds. Such an index is clamped, as the StableHLO ops do: `gather %y: index 12 along
/// dimension 0 of tensor<10x4xf32> is clamped to 9`. At most `limit` lines.
constexpr vec<text> clamped_indices(const program& p, int limit = 12) {
  report_detail::clamped_finder finder(limit);
  finder.look(p, true);
  return static_cast<vec<text>&&>(finder.notes);
}

}  // namespace partita
