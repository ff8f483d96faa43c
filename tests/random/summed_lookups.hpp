/// Sums over a batch that some ops slice and from which others gather elements at computed
/// positions; gathers from the batch itself; gathers in loops and branches. Their tactics run the
/// batch in steps and shard it on a mesh.
///
/// Not drawn: gradients, floats of any value, empty dimensions (generator.hpp has them), actions in
/// the middle of a program.
#pragma once

#include "generator.hpp"

namespace random_test {

/// Draws the sum over the first dimension of one value, or over that of a product of two.
inline bool draw_batch_sum(writer& w) {
  const auto x = w.any([&](value_id v) { return w.rank(v) > 1 && w.number(v); });
  if (x < 0) return false;
  const dtype t = w.element(x);
  const std::int64_t n = w.dims(x)[0], dims[] = {0};
  const auto out = combined(pt::combiner::add, w.info(x), n, t);
  if (!w.exact(t, wrapped(t, out))) return false;
  return w.done(pt::ops::reduce(w.b, x, pt::combiner::add, dims), out);
}
/// Adds a value with another one of the same layout: if the result is sliced, so is the value.
inline bool draw_sliced_use(writer& w) {
  const auto x = w.any([&](value_id v) { return w.rank(v) > 0 && w.floating(v); });
  if (x < 0) return false;
  const auto y = w.partner(x);
  const value_info a = w.info(x), b = w.info(y);
  return w.emit(def<op::add>, {x, y}, {a.lo + b.lo, a.hi + b.hi, a.integer && b.integer},
                w.element(x));
}

/// Draws small integers from small integers: their sums, remainders, extrema, elements.
inline bool draw_place(writer& w) {
  const auto small = [&](int rank) {
    return w.any([&](value_id v) {
      return w.element(v) == dtype::i32 && w.rank(v) >= rank && w.info(v).greatest() < 100;
    });
  };
  const auto kind = w.r.in(0, 3);
  const auto x = small(kind < 2 ? 0 : 1);
  if (x < 0) return false;
  const value_info i = w.info(x);
  if (kind == 0) {
    const auto y =
        w.r.one_in(2) ? w.scalar(dtype::i32, static_cast<double>(w.r.in(-2, 3))) : w.partner(x);
    const value_info k = w.info(y);
    return w.emit(def<op::add>, {x, y}, {i.lo + k.lo, i.hi + k.hi}, dtype::i32);
  }
  if (kind == 1) {
    const auto n = static_cast<double>(w.r.in(2, 8));
    return w.emit(def<op::remainder>, {x, w.scalar(dtype::i32, n)}, {1 - n, n - 1}, dtype::i32);
  }
  ints dims;
  for (int d = 0; d < w.rank(x); ++d)
    if (d == 0 || w.r.one_in(2)) dims.push_back(d);
  std::int64_t n = 1;
  for (auto d : dims) n *= w.dims(x)[static_cast<int>(d)];
  const auto combine = kind == 2 ? pt::combiner::add : pt::combiner::max;
  return w.done(pt::ops::reduce(w.b, x, combine, dims), combined(combine, i, n, dtype::i32));
}
/// Draws the position of the maximum or minimum along a dimension.
inline bool draw_extreme_place(writer& w) {
  const auto x = w.any([&](value_id v) { return w.rank(v) > 0 && w.number(v); });
  if (x < 0) return false;
  const auto d = w.r.in(0, w.rank(x) - 1);
  const std::int64_t attrs[] = {d};
  const tensor_type places{dtype::i32, w.dims(x)};
  const auto i = static_cast<double>(places.shape[static_cast<int>(d)] - 1);
  if (!w.done(w.b.emit(def<op::iota>, {}, attrs, places), {0, i})) return false;
  const auto which = w.r.one_in(2) ? pt::ops::extreme::argmax : pt::ops::extreme::argmin;
  return w.done(pt::ops::reduce(w.b, x, w.last(), which, attrs),
                std::vector<value_info>{w.info(x), {0, i}});
}
inline value_id small_place(writer& w, int most_rank) {
  return w.any([&](value_id v) {
    return w.element(v) == dtype::i32 && w.rank(v) <= most_rank && w.dims(v).elements() <= 16;
  });
}
/// Draws a gather or an update of one element along some dimensions, at computed positions.
inline bool draw_element(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const shape from = w.dims(x);
  std::vector<value_id> starts;
  ints sizes;
  tensor_type part{w.element(x), {}};
  for (std::int64_t e : from) {
    const auto at = small_place(w, 0);
    starts.push_back(at >= 0 ? at : w.fresh({dtype::i32, {}}, -1, 8));
    sizes.push_back(w.r.one_in(2) ? 1 : e);
    part.shape.push_back(sizes.back());
  }
  if (!w.r.one_in(3)) return w.done(pt::ops::dynamic_slice(w.b, x, starts, sizes), w.info(x));
  auto update = w.any([&](value_id v) { return w.type(v) == part; });
  if (update < 0) update = w.fresh(part);
  return w.done(pt::ops::dynamic_update_slice(w.b, x, update, starts),
                either(w.info(x), w.info(update)));
}
/// Draws a gather or an update of rows at computed positions.
inline bool draw_rows(writer& w) {
  const auto x = w.any_of_rank(1), at = small_place(w, 2);
  if (x < 0 || at < 0) return false;
  const tensor_type t = w.type(x);
  shape rows = w.dims(at);
  for (int d = 1; d < t.shape.rank; ++d) rows.push_back(t.shape[d]);
  if (rows.rank > 5 || rows.elements() > 512) return false;
  if (w.r.one_in(2)) return w.done(pt::ops::gather(w.b, x, at), w.info(x));
  const auto update = w.number(x) && !w.r.one_in(3) ? pt::ops::scatter_update::add
                                                    : pt::ops::scatter_update::assign;
  if (update == pt::ops::scatter_update::assign && w.dims(at).elements() > 1) return false;
  auto updates = w.any([&](value_id v) { return w.type(v) == tensor_type{t.element, rows}; });
  if (updates < 0) updates = w.fresh({t.element, rows});
  const value_info old = w.info(x);
  const auto out = updated(update, &old, w.info(updates), w.dims(at).elements(), t.element);
  if (!w.exact(t.element, wrapped(t.element, out))) return false;
  return w.done(pt::ops::scatter_rows(w.b, update, x, at, updates), out);
}

inline constexpr family lookup_families[] = {
    {3, &draw_batch_sum},  {3, &draw_sliced_use},    {3, &draw_place},   {2, &draw_extreme_place},
    {6, &draw_element},    {5, &draw_rows},          {1, &draw_gather},  {1, &draw_scatter},
    {1, &draw_arithmetic}, {1, &draw_dynamic_slice}, {4, &draw_reduce},  {1, &draw_dot},
    {1, &draw_selection},  {1, &draw_broadcast},     {1, &draw_cumsum},  {1, &draw_transpose},
    {1, &draw_reshape},    {1, &draw_conversion},    {1, &draw_control}, {1, &draw_concatenate}};

inline void draw_from(writer& w, pt::span<const family> families, std::int64_t wanted) {
  int total = 0;
  for (const auto& f : families) total += f.weight;
  for (int tries = 0; w.emitted < wanted && tries < 200; ++tries) {
    auto n = w.r.in(0, total - 1);
    for (const auto& f : families) {
      if ((n -= f.weight) >= 0) continue;
      f.draw(w);
      break;
    }
    w.b.p.error.raise();
  }
}

/// Returns unused values, and some others, as outputs.
inline void all_outputs(writer& w) {
  pt::program& p = w.b.p;
  std::vector<char> used(p.types.size(), 0);
  for (value_id v : p.operand_list) used[static_cast<std::size_t>(v)] = 1;
  for (value_id v = 0; v < p.value_count(); ++v)
    if (!p.is(p.producer(v), pt::op_role::parameter) &&
        (!used[static_cast<std::size_t>(v)] || w.info(v).tolerance > 0 || w.r.one_in(6)))
      p.outputs.push_back({v, p.intern("o" + std::to_string(v))});
}
/// Returns a program without actions: its tactics are drawn by name.
inline test_case summed_lookups(std::uint64_t seed) {
  test_case c;
  c.seed = seed;
  case_state state{random{seed * 0x9e3779b9u + 4711}};
  random& r = state.r;
  writer w(state);
  const std::int64_t batch = 2 * r.in(1, 4), sizes[] = {4, 6, 8, 8, 12}, size = r.pick(sizes);
  shape rest{size}, all{batch, size};
  if (r.one_in(3)) {
    rest.push_back(r.in(1, 4));
    all.push_back(rest[1]);
  }
  w.fresh({dtype::f32, all});
  w.fresh({dtype::f32, r.one_in(4) ? all : rest});
  w.fresh({dtype::i32, r.one_in(3) ? shape{batch, size} : shape{r.one_in(2) ? batch : size}}, -1,
          static_cast<double>(r.in(1, 4)));
  draw_batch_sum(w);
  const auto sum = w.last();
  if (const auto y = w.any([&](value_id v) { return v != sum && w.type(v) == w.type(sum); });
      y >= 0 && !r.one_in(4) && w.floating(y))
    w.emit(def<op::add>, {sum, y}, {w.info(sum).lo + w.info(y).lo, w.info(sum).hi + w.info(y).hi},
           w.element(sum));
  draw_from(w, lookup_families, w.emitted + r.in(3, 14));
  all_outputs(w);
  w.b.p.error.raise();
  c.p = w.b.p;
  c.info = w.infos;
  c.mesh.push_back({"B", r.one_in(8) ? 3 : 1 << r.in(0, 2)});
  if (r.one_in(3)) c.mesh.push_back({"M", 2});
  return c;
}

/// Microbatches of several inputs, or a manual tactic.
struct lookup_tactic {
  std::string axis;        ///< empty: microbatches
  std::int64_t steps = 1;  ///< the number of microbatches
  std::vector<std::pair<std::string, int>> of;
  pt::uneven policy = pt::uneven::unsaid;

  std::string_view name() const { return axis.empty() ? std::string_view("steps") : axis; }
  void rewrite(pt::rewriting& w) const {
    if (!axis.empty()) return;
    pt::vec<pt::schedule_detail::kept_microbatch_entry> entries;
    for (const auto& [name, dim] : of)
      entries.push_back(
          pt::schedule_detail::kept_microbatch_entry(pt::microbatch_entry{name, dim}));
    pt::schedule_detail::microbatch_rewrite{steps, {entries.data(), entries.size()}}.rewrite(w);
  }
  void apply(pt::tactic_context& c) const {
    if (axis.empty()) return;
    for (const auto& [name, dim] : of) pt::manual(axis, {{name, dim}}, axis, policy).apply(c);
  }
};
static_assert(pt::Tactic<lookup_tactic>);

/// Draws dimensions of inputs that this number divides.
inline void draw_entries(random& r, const pt::program& p, std::int64_t divisor, lookup_tactic& t) {
  for (int i = 0; i < p.input_count(); ++i) {
    const shape& s = p.input_type(i).shape;
    if (s.rank == 0 || (i > 0 && r.one_in(2))) continue;
    const int d = i == 0 && !r.one_in(4) ? 0 : static_cast<int>(r.in(0, s.rank - 1));
    if (s[d] % divisor == 0) t.of.emplace_back(p.input_name(i), d);
  }
}
/// Draws the batch in steps, then perhaps over an axis, or the opposite order.
inline std::vector<lookup_tactic> lookup_schedule(const test_case& c) {
  random r{c.seed * 313 + 7};
  std::vector<lookup_tactic> list;
  lookup_tactic steps{"", r.one_in(2) ? 2 : r.in(3, 4), {}};
  draw_entries(r, c.p, steps.steps, steps);
  if (!steps.of.empty()) list.push_back(steps);
  for (int a = 0; a < c.mesh.rank; ++a) {
    lookup_tactic t{std::string(c.mesh.name(a)), 1, {}};
    t.policy = r.one_in(3) ? pt::uneven::pad : pt::uneven::unsaid;
    draw_entries(r, c.p, t.policy == pt::uneven::pad ? 1 : c.mesh.size(a), t);
    if (!t.of.empty() && !r.one_in(4)) list.insert(r.one_in(2) ? list.begin() : list.end(), t);
  }
  return list;
}

}  // namespace random_test
