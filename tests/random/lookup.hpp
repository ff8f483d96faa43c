/// Lookups in a large table by few indices, updates of its rows, and tactics that cut rows and
/// indices along one axis: what spmd/row_lookup.hpp is for.
#pragma once

#include "heavy.hpp"
#include "movement.hpp"

namespace random_test {

/// The table is the first input, indices are the second one.
inline void draw_lookups(writer& w) {
  const std::int64_t rows = 8 * w.r.in(2, 6), columns = w.r.in(1, 4), count = 4 * w.r.in(1, 3);
  const value_id table = w.fresh({dtype::f32, {rows, columns}});
  const value_id at = indices(w, {count}, rows - 1);
  if (w.r.one_in(2)) {
    w.done(pt::ops::gather(w.b, table, at), w.info(table));
  } else {
    const value_id x = w.fresh({dtype::f32, {count, columns}});
    const auto add = pt::ops::scatter_update::add;
    const std::int64_t attrs[] = {static_cast<std::int64_t>(add)};
    const value_id operands[] = {at, x};
    const value_info sum = updated(add, nullptr, w.info(x), count, dtype::f32);
    w.done(w.b.emit(def<op::scatter>, operands, attrs, w.type(table)), sum);
    if (!w.usable(w.last())) return;
    const value_info old = w.info(table);
    w.emit(def<op::add>, {w.last(), table},
           {sum.lo + old.lo, sum.hi + old.hi, sum.integer && old.integer}, dtype::f32);
  }
}
/// Draws one or two axes: the first inputs along the first axis, at once or in sequence, then
/// perhaps others, and any along the second axis.
inline void draw_lookup_tactics(test_case& c, random& r) {
  c.mesh.push_back({"B", r.one_in(2) ? 2 : 4});
  if (r.one_in(3)) c.mesh.push_back({"M", 2});
  const pt::flat_program flat(c.p);
  const bool behind = r.one_in(2), rows_first = r.one_in(2);
  c.tactics.emplace_back();
  for (int k = 0; k < flat.p.input_count(); ++k) {
    const int i = k < 2 && !rows_first && flat.p.input_count() > 1 ? 1 - k : k;
    const value_id v = flat.p.inputs[static_cast<std::size_t>(i)];
    if (flat.p.type(v).shape.rank == 0 || (i > 1 && r.one_in(2))) continue;
    if (behind && k > 0) c.tactics.emplace_back();
    add_tile(c, v, 0, 0);
    if (c.mesh.rank > 1 && r.one_in(3))
      add_tile(c, v, static_cast<int>(r.in(0, flat.p.type(v).shape.rank - 1)), 1);
  }
}

}  // namespace random_test
