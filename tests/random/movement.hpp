/// Draws ops that move elements: shapes, slices, padding, computed positions, sorting.
#pragma once

#include <cmath>

#include "elementwise.hpp"

namespace random_test {

inline constexpr std::int64_t most_elements = 2048;

inline bool draw_broadcast(writer& w) {
  const auto x = w.any([&](value_id v) { return w.rank(v) < 4; });
  if (x < 0) return false;
  shape to;
  ints dims;
  const shape from = w.dims(x);
  for (int d = 0; d <= from.rank; ++d) {
    if (w.r.one_in(3)) to.push_back(w.r.in(1, 4));
    if (d == from.rank) break;
    dims.push_back(to.rank);
    to.push_back(from[d] == 1 && w.r.one_in(2) ? w.r.in(2, 8) : from[d]);
  }
  if (to.elements() > most_elements) return false;
  return w.done(pt::ops::broadcast_in_dim(w.b, x, to, dims), w.info(x));
}

inline bool draw_transpose(writer& w) {
  const auto x = w.any_of_rank(2);
  if (x < 0) return false;
  return w.done(pt::ops::transpose(w.b, x, w.permutation(w.rank(x))), w.info(x));
}

/// Returns a shape without elements.
inline shape empty_shape(writer& w) {
  shape s = w.some_shape(1, 4);
  s[static_cast<int>(w.r.in(0, s.rank - 1))] = 0;
  return s;
}

/// Draws a reshape that regroups the prime factors of the shape; sometimes in another order, which
/// has no common refinement with the old shape.
inline bool draw_reshape(writer& w) {
  const auto x = w.any([&](value_id v) { return w.dims(v).elements() != 1; });
  if (x < 0) return false;
  if (w.dims(x).elements() == 0) return w.done(pt::ops::reshape(w.b, x, empty_shape(w)), w.info(x));
  ints primes;
  for (std::int64_t e : w.dims(x))
    for (std::int64_t f = 2; e > 1; ++f)
      for (; e % f == 0; e /= f) primes.push_back(f);
  if (w.r.one_in(4))
    for (std::size_t i = 1; i < primes.size(); ++i)
      std::swap(primes[i], primes[static_cast<std::size_t>(w.r.in(0, static_cast<int>(i)))]);
  shape to;
  for (std::size_t i = 0; i < primes.size(); ++i) {
    if (w.r.one_in(8) && to.rank < 4) to.push_back(1);
    if (i == 0 || (w.r.one_in(2) && to.rank < 5))
      to.push_back(primes[i]);
    else
      to[to.rank - 1] *= primes[i];
  }
  return w.done(pt::ops::reshape(w.b, x, to), w.info(x));
}

inline bool draw_concatenate(writer& w) {
  const auto x = w.any([&](value_id v) { return w.rank(v) > 0 && w.dims(v).elements() <= 512; });
  if (x < 0) return false;
  const tensor_type t = w.type(x);
  const int dim = static_cast<int>(w.r.in(0, t.shape.rank - 1));
  std::vector<value_id> parts{x};
  value_info i = w.info(x);
  for (auto more = w.r.in(1, 2); more > 0; --more) {
    const auto y = w.any([&](value_id v) {
      bool fits = w.element(v) == t.element && w.rank(v) == t.shape.rank;
      for (int d = 0; fits && d < t.shape.rank; ++d) fits = d == dim || w.dims(v)[d] == t.shape[d];
      return fits;
    });
    parts.insert(parts.begin() + w.r.in(0, static_cast<int>(parts.size())), y);
    i = either(i, w.info(y));
  }
  std::int64_t size = 0;
  for (auto v : parts) size += w.dims(v).elements();
  if (size > most_elements) return false;
  return w.done(pt::ops::concatenate(w.b, parts, dim), i);
}

inline bool draw_slice(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  ints start, limit, strides;
  const bool strided = w.r.one_in(2);
  for (std::int64_t e : w.dims(x)) {
    const bool whole = w.r.one_in(2);
    start.push_back(whole ? 0 : w.r.in(0, e - w.least()));
    limit.push_back(whole ? pt::ops::whole : w.r.in(start.back() + w.least(), e));
    strides.push_back(strided && w.r.one_in(2) ? w.r.in(2, 3) : 1);
  }
  return w.done(pt::ops::slice(w.b, x, start, limit, strided ? strides : ints{}), w.info(x));
}

inline bool draw_pad(writer& w) {
  const auto x = w.any();
  auto value = w.any([&](value_id v) { return w.element(v) == w.element(x) && w.rank(v) == 0; });
  if (value < 0) value = w.scalar(w.element(x), static_cast<double>(w.r.in(0, 1)));
  ints low, high, interior;
  std::int64_t size = 1;
  for (std::int64_t e : w.dims(x)) {
    const bool as_it_is = w.r.one_in(2);
    low.push_back(as_it_is ? 0 : w.r.in(-2, 2));
    high.push_back(as_it_is ? 0 : w.r.in(-2, 2));
    interior.push_back(as_it_is || w.r.one_in(2) ? 0 : w.r.in(1, 2));
    const auto extent =
        low.back() + high.back() + e + std::max<std::int64_t>(e - 1, 0) * interior.back();
    if (extent < w.least()) return false;
    size *= extent;
  }
  if (size > most_elements) return false;
  return w.done(pt::ops::pad(w.b, x, value, low, high, interior), either(w.info(x), w.info(value)));
}

inline bool draw_reverse(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  ints dims;
  for (int d = 0; d < w.rank(x); ++d)
    if (w.r.one_in(2)) dims.push_back(d);
  return w.done(pt::ops::reverse(w.b, x, dims), w.info(x));
}

inline bool draw_roll(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const auto dim = static_cast<int>(w.r.in(0, w.rank(x) - 1));
  return w.done(pt::ops::roll(w.b, x, dim, w.r.in(-4, 4)), w.info(x));
}

/// Returns i32 in most cases.
inline dtype index_type(writer& w) {
  static constexpr dtype rare[] = {dtype::i64, dtype::i64, dtype::i8,  dtype::i16,
                                   dtype::u8,  dtype::u16, dtype::u32, dtype::u64};
  return w.r.one_in(3) ? w.r.pick(rare) : dtype::i32;
}
/// Returns an integer scalar of this type: an existing one (often the index of a loop) or a new
/// one.
inline value_id some_index(writer& w, dtype t) {
  const auto v = w.any([&](value_id x) { return w.type(x) == tensor_type{t, {}}; });
  return v >= 0 && !w.r.one_in(3) ? v : w.fresh({t, {}}, -1, 4);
}

inline bool draw_dynamic_slice(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const tensor_type t = w.type(x);
  const dtype index = index_type(w);
  std::vector<value_id> starts;
  ints sizes;
  tensor_type part{t.element, {}};
  for (std::int64_t e : t.shape) {
    starts.push_back(some_index(w, index));
    sizes.push_back(w.r.one_in(2) ? e : w.r.in(w.least(), e));
    part.shape.push_back(sizes.back());
  }
  if (w.r.one_in(2)) return w.done(pt::ops::dynamic_slice(w.b, x, starts, sizes), w.info(x));
  auto update = w.any([&](value_id v) {
    bool fits = w.element(v) == t.element && w.rank(v) == t.shape.rank;
    for (int d = 0; fits && d < t.shape.rank; ++d) fits = w.dims(v)[d] <= t.shape[d];
    return fits && v != x;
  });
  if (update < 0 || w.r.one_in(2)) update = w.fresh(part);
  return w.done(pt::ops::dynamic_update_slice(w.b, x, update, starts),
                either(w.info(x), w.info(update)));
}

/// Returns indices from 0 to `last`, sometimes out of bounds at both ends.
inline value_id indices(writer& w, const shape& s, std::int64_t last) {
  last = std::max<std::int64_t>(last, 0);
  const bool reach_out = w.r.one_in(3);
  return w.fresh({index_type(w), s}, reach_out ? -1 : 0,
                 static_cast<double>(reach_out ? last + 1 : last));
}

/// Dimension numbers of a gather or scatter of a tensor of some shape.
struct random_windows {
  ints offset, collapsed, batching, partners, map, sizes;
  std::int64_t vector_dim = 0, last_start = 0;
  shape indices, result;

  random_windows(writer& w, const shape& of) {
    random& r = w.r;
    ints batch;  // of the indices; -1 - d corresponds to dimension d of the operand
    ints windows;
    for (int d = 0; d < of.rank; ++d) {
      const auto role = r.in(0, 3);
      sizes.push_back(1);
      if (role == 0) {
        batching.push_back(d);
        batch.insert(batch.begin() + r.in(0, static_cast<std::int64_t>(batch.size())), -1 - d);
        continue;
      }
      if (role == 1) {
        collapsed.push_back(d);
      } else {
        const bool whole = r.one_in(2);
        windows.push_back(whole ? of[d] : r.in(w.least(), of[d]));
        sizes.back() = whole ? pt::ops::whole : windows.back();
      }
      if (role == 1 || r.one_in(2)) {
        map.insert(map.begin() + r.in(0, static_cast<std::int64_t>(map.size())), d);
        last_start = std::max(last_start, of[d] - 1);
      }
    }
    for (auto more = r.in(batch.empty() ? 1 : 0, 2); more > 0; --more)
      batch.insert(batch.begin() + r.in(0, static_cast<std::int64_t>(batch.size())), r.in(1, 4));
    const auto starts = static_cast<std::int64_t>(map.size());
    const auto rank = static_cast<std::int64_t>(batch.size());
    const bool implicit = starts == 1 && r.one_in(2);
    vector_dim = implicit ? rank : r.in(0, rank);
    for (std::int64_t i = 0; i <= rank; ++i) {
      if (i == vector_dim && !implicit) indices.push_back(starts);
      if (i == rank) break;
      const auto extent = batch[static_cast<std::size_t>(i)];
      indices.push_back(extent < 0 ? of[static_cast<int>(-1 - extent)] : extent);
    }
    for (auto d : batching)
      for (std::int64_t i = 0; i < rank; ++i)
        if (batch[static_cast<std::size_t>(i)] == -1 - d)
          partners.push_back(i + (i >= vector_dim ? 1 : 0));
    // The result's dimensions: those of the indices and of the windows, interleaved.
    std::size_t window = 0;
    int next = 0;
    const int dims = static_cast<int>(rank) + static_cast<int>(windows.size());
    for (int d = 0; d < dims; ++d) {
      const auto left = static_cast<std::int64_t>(windows.size() - window);
      if (left > 0 && r.in(1, dims - d) <= left) {
        offset.push_back(d);
        result.push_back(windows[window++]);
      } else {
        if (next == vector_dim && !implicit) ++next;
        result.push_back(indices[next++]);
      }
    }
  }
  pt::ops::gather_dimensions numbers() const {
    return {offset, collapsed, batching, partners, map, vector_dim};
  }
  std::int64_t count() const { return indices.elements(); }
  bool good() const {
    return indices.rank <= 5 && result.rank <= 6 && result.elements() <= most_elements;
  }
};

inline bool draw_gather(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const shape from = w.dims(x);
  if (w.r.one_in(2)) {
    const shape s = w.some_shape(0, 2);
    if (s.elements() * from.elements() / std::max<std::int64_t>(from[0], 1) > 1024) return false;
    return w.done(pt::ops::gather(w.b, x, indices(w, s, from[0] - 1)), w.info(x));
  }
  const random_windows g(w, from);
  if (!g.good()) return false;
  const auto i = indices(w, g.indices, g.last_start);
  return w.done(pt::ops::gather(w.b, x, i, g.numbers(), g.sizes), w.info(x));
}

/// Returns the interval of an element after up to `n` updates.
inline value_info updated(pt::ops::scatter_update u, const value_info* input,
                          const value_info& updates, std::int64_t n, dtype t) {
  const auto combine = static_cast<pt::combiner>(u);
  if (u == pt::ops::scatter_update::assign) return either(*input, updates);
  const value_info start = input != nullptr ? *input : identity_of(combine, t);
  return either(start, combined(combine, either(updates, start), n + 1, t));
}

inline bool draw_scatter(writer& w) {
  const auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const tensor_type t = w.type(x);
  const value_info info = w.info(x);
  auto update = static_cast<pt::ops::scatter_update>(w.r.in(0, 6));
  if (w.derived() && update == pt::ops::scatter_update::multiply) return false;
  if (update == pt::ops::scatter_update::multiply && w.state.wild && !info.integer) return false;
  const bool of_bits = op::scatter::is_of_bits(update);
  if (w.derived() && of_bits) return false;
  if (of_bits ? pt::is_floating(t.element) : !w.number(x)) update = pt::ops::scatter_update::assign;
  const bool has_input = update == pt::ops::scatter_update::assign || w.r.one_in(2);
  if (w.r.one_in(2)) {  // x holds rows of updates
    shape s, to{w.r.in(w.least(), 6)};
    const auto leading = w.r.in(0, t.shape.rank);
    for (int d = 0; d < t.shape.rank; ++d) (d < leading ? s : to).push_back(t.shape[d]);
    const auto into = has_input ? w.fresh({t.element, to}) : -1;
    const value_info start = has_input ? w.info(into) : value_info{};
    const auto out = updated(update, has_input ? &start : nullptr, info, s.elements(), t.element);
    if (!w.exact(t.element, wrapped(t.element, out))) return false;
    const auto i = indices(w, s, to[0] - 1);
    if (has_input) return w.done(pt::ops::scatter_rows(w.b, update, into, i, x), out);
    const std::int64_t attrs[] = {static_cast<std::int64_t>(update)};
    const value_id operands[] = {i, x};
    return w.done(w.b.emit(def<op::scatter>, operands, attrs, {t.element, to}), out);
  }
  const random_windows g(w, t.shape);
  if (!g.good()) return false;
  auto updates = w.any([&](value_id v) { return w.type(v) == tensor_type{t.element, g.result}; });
  if (updates < 0) updates = w.fresh({t.element, g.result});
  const auto out =
      updated(update, has_input ? &info : nullptr, w.info(updates), g.count(), t.element);
  if (!w.exact(t.element, wrapped(t.element, out))) return false;
  const auto i = indices(w, g.indices, g.last_start);
  return w.done(has_input ? pt::ops::scatter(w.b, update, x, i, updates, g.numbers())
                          : pt::ops::scatter(w.b, update, t.shape, i, updates, g.numbers()),
                out);
}

/// Replaces every NaN by a single one: top_k sees signs of NaN, which depend on the order of
/// additions.
inline value_id with_one_nan(writer& w, value_id x) {
  if (!w.may_be_anything(w.element(x))) return x;
  const value_id is_nan = pt::ops::compare(w.b, pt::ops::direction::ne, x, x);
  return pt::ops::select(w.b, is_nan, pt::ops::constant(w.b, w.type(x), std::nan("")), x);
}
inline bool draw_sort(writer& w) {
  auto x = w.any_of_rank(1);
  if (x < 0) return false;
  const shape s = w.dims(x);
  if (w.r.one_in(3)) {
    const value_info info = w.info(x);
    x = with_one_nan(w, x);
    const std::int64_t n = s[s.rank - 1];
    const std::int64_t k = w.r.in(w.least(), w.r.one_in(2) ? std::min<std::int64_t>(n, 2) : n);
    if (w.r.one_in(4)) {  // positions may be any integers, and several the same
      const auto i =
          w.any([&](value_id v) { return pt::is_integer(w.element(v)) && w.dims(v) == s; });
      const value_id pair[] = {x, i};
      if (i >= 0) return w.done(w.b.emit(def<op::top_k>, pair, {&k, 1}), {info, w.info(i)});
    }
    return w.done(pt::ops::top_k(w.b, x, k),
                  {info, {0, std::max(static_cast<double>(n - 1), 0.0)}});
  }
  std::vector<value_id> operands{x};
  std::vector<value_info> infos{w.info(x)};
  for (auto more = w.r.in(0, 2); more > 0; --more) {
    operands.push_back(w.any([&](value_id v) { return w.dims(v) == s; }));
    infos.push_back(w.info(operands.back()));
  }
  const auto keys = w.r.in(1, static_cast<std::int64_t>(operands.size()));
  return w.done(pt::ops::sort(w.b, operands, static_cast<int>(w.r.in(0, s.rank - 1)),
                              static_cast<int>(keys), w.r.one_in(2)),
                infos);
}

/// Draws a user's function: the maximum; maps x -> a x + b in sequence.
inline bool draw_fold(writer& w) {
  const bool maps = w.r.one_in(2);
  const auto x =
      maps ? w.any([&](value_id v) { return pt::is_integer(w.element(v)) && w.rank(v) > 0; })
           : w.any_number(1);
  if (x < 0) return false;
  const dtype t = w.element(x);
  const shape s = w.dims(x);
  ints dims;
  for (int d = 0; d < s.rank; ++d)
    if (w.r.one_in(2) && (maps || s[d] > 0)) dims.push_back(d);
  pt::builder f;
  std::vector<value_id> in;
  for (int i = 0; i < (maps ? 4 : 2); ++i) in.push_back(pt::ops::parameter(f, "", {t, {}}));
  const auto give = [&](value_id v) { f.p.outputs.push_back({v, {}}); };
  if (!maps) {
    give(pt::ops::maximum(f, in[0], in[1]));
    const value_id operands[] = {x};
    const std::int64_t least[] = {pt::identity_bits(pt::combiner::max, t)};
    return w.done(pt::ops::fold(w.b, operands, dims, least, w.r.one_in(2), f.p), w.info(x));
  }
  give(pt::ops::multiply(f, in[2], in[0]));
  give(pt::ops::add(f, pt::ops::multiply(f, in[2], in[1]), in[3]));
  const value_id operands[] = {x, w.any([&](value_id v) { return w.type(v) == w.type(x); })};
  const std::int64_t same[] = {1, 0};
  return w.done(pt::ops::fold(w.b, operands, dims, same, false, f.p), {all_of(t), all_of(t)});
}

}  // namespace random_test
