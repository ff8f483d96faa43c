/// Ops on atoms that differ from those on elements: sums with weights, and positions.
#pragma once

#include <partita/prove/elements/sums.hpp>
#include <partita/prove/shrink/contraction.hpp>
#include <partita/prove/shrink/dependence.hpp>

namespace partita::prove_detail {

class shrunk_ops {
 public:
  constexpr shrunk_ops(algebra& a, const indexed_program& x, const devices& on,
                       const atom_table& atoms, const dependences& by)
      : a_(a), p_(*x.p), x_(x), on_(on), atoms_(atoms), by_(by) {}

  /// Fills the results of an op that has another rule on atoms. False for other ops.
  constexpr bool fill(op_id o, const op_elements& c, std::int64_t device) const {
    const std::uint64_t id = p_.op(o).def->id;
    if (id == def<op::iota>.id) return iota(o, c);
    if (id == def<op::shard_start>.id) return start(o, c, device);
    const index_rule rule = by_.rule(o);
    const bool sums = rule == index_rule::by_factors &&
                      (id == def<op::dot_general>.id ||
                       (id == def<op::reduce>.id && c.attrs[0] == static_cast<int>(combiner::add)));
    if (!sums && ((rule != index_rule::by_lookup && rule != index_rule::by_window) || is_kept(o)))
      return false;
    contract(o, c);
    return true;
  }
  /// The weights of the indices of a list; none if all are 1.
  constexpr vec<fingerprint> weights(digit_list l) const {
    vec<fingerprint> list;
    for (std::int64_t i = 0; !atoms_.is_kept(l) && i < atoms_.extent(l); ++i)
      list.push_back(atoms_.weight(l, i));
    return list;
  }

 private:
  algebra& a_;
  const program& p_;
  const indexed_program& x_;
  const devices& on_;
  const atom_table& atoms_;
  const dependences& by_;

  static constexpr std::int64_t step_of(const shape& s, int dim) {
    std::int64_t n = 1;
    for (int d = dim + 1; d < s.rank; ++d) n *= s[d];
    return n;
  }
  /// The digits of a factor: of the first dimension that it is.
  constexpr digit_list digits(op_id o, const factor& f) const {
    if (f.result_dim != no_dim) return by_.digits(p_.op(o).result, f.result_dim);
    for (int i = 0; i < p_.op(o).operand_count; ++i)
      if (const int dim = x_.ops.map.operand_dim(f, i); dim != no_dim)
        return by_.digits(p_.operand(o, i), dim);
    return {};
  }
  /// True if the positions that an op sums or compares are kept.
  constexpr bool is_kept(op_id o) const {
    bool kept = true;
    for (const factor& f : x_.ops.factors(x_.ops.first_row(o)))
      if (op_indices::is_summed(f) || f.offset) kept = kept && atoms_.is_kept(digits(o, f));
    return kept;
  }
  constexpr bool iota(op_id o, const op_elements& c) const {
    const auto dim = static_cast<int>(c.attrs[0]);
    const digit_list l = by_.digits(p_.op(o).result, dim);
    if (atoms_.is_kept(l)) return false;
    const dtype t = is_floating(c.type()) ? dtype::i64 : c.type();
    c.fill(
        [&](const place& i) { return a_.convert(t, c.type(), atoms_.position(a_, t, l, i[dim])); });
    return true;
  }
  constexpr bool start(op_id o, const op_elements& c, std::int64_t device) const {
    vec<int> all;
    std::int64_t n = 0;
    for (const int axis : op::shard_start::axes(p_.attrs(o))) {
      const digit_list l = atoms_.of_axis(axis);
      all.insert_back(l.begin(), l.end());
      n = n * on_.mesh().size(axis) + on_.along(axis, device);
    }
    const element at = atoms_.position(a_, dtype::i64, {all.data(), all.size()}, n,
                                       op::shard_start::distance(p_.attrs(o)));
    *c.results[0] = a_.convert(dtype::i64, c.type(), at);
    return true;
  }

  /// Unknown factors that say whether positions fit: elements, and their steps for each factor of
  /// the op.
  struct fit {
    vec<element> all;
    vec<std::int64_t> steps;
  };
  /// Sums the products of the operands over the factors of the op that are summed.
  constexpr void contract(op_id o, const op_elements& c) const {
    const bool scatters = c.def.id == def<op::scatter>.id;
    const int operands = p_.op(o).operand_count, first = scatters ? operands - 1 : 0,
              last = c.def.id == def<op::gather>.id ? 1 : operands;
    vec<fit> fits;
    if (by_.rule(o) == index_rule::by_lookup) fits = lookup_fits(o, c);
    if (by_.rule(o) == index_rule::by_window) fits = window_fits(o, c);
    contraction sum(a_, c.type());
    const auto all = x_.ops.factors(x_.ops.first_row(o));
    for (std::size_t f = 0; f < all.size(); ++f) {
      const factor& each = all[f];
      contraction::loop l;
      const digit_list d = digits(o, each);
      l.size = atoms_.extent(d);
      l.whole = each.size;
      const bool summed = op_indices::is_summed(each);
      if (!summed && each.result_dim == no_dim) continue;  // vectors of indices
      if (summed) l.weights = weights(d);
      if (!summed) l.to = step_of(c.made[0].shape, each.result_dim);
      int k = 0;
      for (int i = first; i < last; ++i, ++k)
        if (const int dim = x_.ops.map.operand_dim(each, i); dim != no_dim)
          l.step[k] = step_of(c.shape_of(i), dim);
      for (const fit& x : fits) l.step[k++] = x.steps[f];
      sum.add(static_cast<contraction::loop&&>(l));
    }
    for (int i = first; i < last; ++i) sum.add_factor(c.operands[i]);
    for (const fit& x : fits) sum.add_factor(x.all.data());
    sum.fill(c.results[0]);
    const int rank = c.types[0].shape.rank;
    if (c.def.id == def<op::dot_general>.id)
      scale(c, op::dot_general::numerics(c.attrs));
    else if (by_.rule(o) == index_rule::by_window)
      scale(c, op::convolution::numerics(c.attrs, rank));
    for (std::int64_t n = 0; scatters && operands == 3 && n < c.made[0].shape.elements(); ++n)
      c.results[0][n] = a_.sum(c.type(), c.operands[0][n], c.results[0][n]);
  }
  static constexpr void scale(const op_elements& c, span<const std::int64_t> numerics) {
    const elements::scaled_by_precision scaled(c, numerics);
    for (std::int64_t n = 0; !numerics.empty() && n < c.made[0].shape.elements(); ++n)
      c.results[0][n] = scaled(c.results[0][n]);
  }

  /// Whether an index is the position in a table, for each start of a window.
  constexpr vec<fit> lookup_fits(op_id o, const op_elements& c) const {
    const bool gathers = c.def.id == def<op::gather>.id;
    const int indices = gathers ? 1 : p_.op(o).operand_count - 2;
    const value_id table = gathers ? p_.operand(o, 0) : p_.op(o).result;
    const shape &at = c.shape_of(indices), &rows = gathers ? c.shape_of(0) : c.made[0].shape;
    const op::gather_dims dims = x_.ops.lookup_dims(o);
    const auto all = x_.ops.factors(x_.ops.first_row(o));
    vec<fit> fits;
    for (int s = 0; s < dims.starts; ++s) {
      const int d = dims.start_map[s];
      if (dims.window_dim[d] >= 0) continue;
      fit x;
      for (const factor& each : all) {
        const int index = x_.ops.map.operand_dim(each, indices),
                  dim = gathers ? x_.ops.map.operand_dim(each, 0) : int{each.result_dim};
        x.steps.push_back(index != no_dim ? step_of(at, index) * rows[d] : dim == d ? 1 : 0);
      }
      const bool vectors = dims.vector_dim < dims.indices_rank;
      const dtype t = c.types[indices].element;
      for_each_place(at, [&](const place& i, std::int64_t) {
        place from = i;
        if (vectors) from[dims.vector_dim] = s;
        for (std::int64_t k = 0; k < rows[d]; ++k)
          x.all.push_back(vectors && i[dims.vector_dim] > 0
                              ? element{}
                              : a_.function(c.def.id, t, dtype::f64,
                                            {c.read(indices, from),
                                             atoms_.position(a_, t, by_.digits(table, d), k)},
                                            static_cast<std::uint64_t>(p_.type(table).shape[d])));
      });
      fits.push_back(static_cast<fit&&>(x));
    }
    return fits;
  }
  /// Whether the tap of a window at a position reads another position, for each dimension.
  constexpr vec<fit> window_fits(op_id o, const op_elements& c) const {
    const value_id x = p_.operand(o, 0), w = p_.operand(o, 1), y = p_.op(o).result;
    const op::convolution::roles r(c.attrs.data(), p_.type(w).shape);
    vec<fit> fits;
    for (int d = 0; d < r.spatial; ++d) {
      const int out = r.result[2 + d], in = r.lhs[2 + d], tap = r.rhs[2 + d];
      const std::int64_t reads = c.shape_of(0)[in], taps = c.shape_of(1)[tap];
      const auto position = [&](value_id v, int dim, std::int64_t i) {
        return atoms_.position(a_, dtype::i64, by_.digits(v, dim), i);
      };
      fit each;
      for (const factor& f : x_.ops.factors(x_.ops.first_row(o)))
        each.steps.push_back(f.result_dim == out                   ? reads * taps
                             : x_.ops.map.operand_dim(f, 0) == in  ? taps
                             : x_.ops.map.operand_dim(f, 1) == tap ? 1
                                                                   : 0);
      const window_dim& window = r.window.at[d];
      const std::int64_t extent = p_.type(x).shape[in];
      drawing how(0xc0);
      for (const std::int64_t m :
           {window.size, window.stride, window.base_dilation, window.dilation, window.low,
            window.high, std::int64_t{window.reversed}, extent})
        how.add(m);
      for_each_place({c.made[0].shape[out], reads, taps}, [&](const place& i, std::int64_t) {
        const element to = position(y, out, i[0]), from = position(x, in, i[1]),
                      k = position(w, tap, i[2]);
        const bool known = to.known && from.known && k.known;
        each.all.push_back(
            !known ? a_.function(c.def.id, dtype::i64, dtype::f64, {to, from, k}, how.drawn().a)
            : elements::under(window, to.number, k.number, extent) == from.number ? real(1)
                                                                                  : real(0));
      });
      fits.push_back(static_cast<fit&&>(each));
    }
    return fits;
  }
};

}  // namespace partita::prove_detail
