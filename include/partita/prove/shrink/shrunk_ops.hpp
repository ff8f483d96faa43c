/// Ops on atoms that differ from those on elements: sums with weights, and positions.
#pragma once

#include <partita/prove/elements/lookups.hpp>
#include <partita/prove/elements/sums.hpp>
#include <partita/prove/shrink/dependence.hpp>

namespace partita::prove_detail {

class shrunk_ops {
 public:
  constexpr shrunk_ops(algebra& a, const program& p, const devices& on, const atom_table& atoms,
                       const dependences& by)
      : a_(a), p_(p), on_(on), atoms_(atoms), by_(by) {}

  /// How often each term of a sum counts, by its place among the summed positions (or members of a
  /// group of devices). Empty if all count once.
  constexpr vec<element> weights(op_id o) const {
    const op_node& n = p_.op(o);
    const dtype t = p_.type(n.result).element;
    vec<int> all;
    const auto add = [&](digit_list l) { all.insert_back(l.begin(), l.end()); };
    if (n.def->collective) {
      const collective what = p_.collective_of(o);
      if (!what.reduces() || what.combine != combiner::add) return {};
      for (const auto& e : what.axes) add(atoms_.of_axis(e.axis));
    } else if (n.def->id == def<op::dot_general>.id ||
               (n.def->id == def<op::reduce>.id && by_.rule(o) == index_rule::by_factors &&
                p_.attrs(o)[0] == static_cast<int>(combiner::add))) {
      vec<int> dims;
      by_.for_each_bound(o, [&](int, int dim) { dims.push_back(dim); });
      if (n.def->id == def<op::reduce>.id) sort(dims);
      for (const int dim : dims) add(by_.digits(p_.operand(o, 0), dim));
    }
    const digit_list digits{all.data(), all.size()};
    if (atoms_.is_kept(digits)) return {};
    vec<element> list;
    for (std::int64_t i = 0; i < atoms_.extent(digits); ++i)
      list.push_back(formula(t, atoms_.weight(digits, i)));
    return list;
  }
  /// The number of devices in a group of a collective, before shrinking.
  constexpr std::int64_t whole_group(const collective& what) const {
    std::int64_t n = 1;
    for (const auto& e : what.axes) n *= atoms_.whole(atoms_.of_axis(e.axis));
    return n;
  }
  /// Fills the results of an op that has another rule on atoms. False for other ops.
  constexpr bool fill(op_id o, const op_elements& c, std::int64_t device) const {
    const op_node& n = p_.op(o);
    if (n.def->id == def<op::iota>.id) return iota(o, c);
    if (n.def->id == def<op::shard_start>.id) return start(o, c, device);
    if (c.weights != nullptr && n.def->id == def<op::reduce>.id) return sum_of_equal(o, c);
    if (by_.rule(o) == index_rule::by_lookup && !is_kept(o)) {
      n.def->id == def<op::gather>.id ? gather(o, c) : scatter(o, c);
      return true;
    }
    if (by_.rule(o) == index_rule::by_window && !is_kept(o)) return convolve(o, c);
    return false;
  }

 private:
  algebra& a_;
  const program& p_;
  const devices& on_;
  const atom_table& atoms_;
  const dependences& by_;

  static constexpr void sort(vec<int>& list) {
    for (std::size_t i = 1; i < list.size(); ++i)
      for (std::size_t k = i; k > 0 && list[k - 1] > list[k]; --k) {
        const int each = list[k];
        list[k] = list[k - 1];
        list[k - 1] = each;
      }
  }
  /// True if the dimensions whose positions an op compares are kept.
  constexpr bool is_kept(op_id o) const {
    bool kept = true;
    by_.for_each_bound(o, [&](int operand, int dim) {
      kept = kept && atoms_.is_kept(by_.digits(p_.operand(o, operand), dim));
    });
    const value_id y = p_.op(o).result;
    if (p_.op(o).def->id == def<op::scatter>.id)
      for (int d = 0; d < p_.type(y).shape.rank; ++d)
        kept = kept && atoms_.is_kept(by_.digits(y, d));
    if (p_.op(o).def->id == def<op::convolution>.id) {
      const op::convolution::roles r(p_.attrs(o).data(), p_.type(p_.operand(o, 1)).shape);
      for (int d = 0; d < r.spatial; ++d)
        kept = kept && atoms_.is_kept(by_.digits(y, r.result[2 + d]));
    }
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
  /// The sum of equal numbers is a number.
  constexpr bool sum_of_equal(op_id o, const op_elements& c) const {
    const std::int64_t count = c.types[0].shape.elements();
    for (std::int64_t n = 0; n < count; ++n)
      if (!c.operands[0][n].known || !(c.operands[0][n] == c.operands[0][0])) return false;
    std::int64_t whole = 1;
    by_.for_each_bound(o, [&](int operand, int dim) {
      whole = saturating_multiply(whole, p_.type(p_.operand(o, operand)).shape[dim]);
    });
    if (count == 0 || whole >= std::int64_t{1} << 53) return false;
    const element times =
        is_floating(c.type()) ? real(static_cast<double>(whole)) : integer(c.type(), whole);
    const element sum = a_.product(c.type(), c.operands[0][0], times);
    c.fill([&](const place&) { return sum; });
    return true;
  }

  /// An unknown factor: whether a number is that of a position, in a dimension of this size.
  constexpr element is_at(const op_elements& c, const element& index, dtype t, value_id table,
                          int dim, std::int64_t i) const {
    const element at = atoms_.position(a_, t, by_.digits(table, dim), i);
    return a_.function(c.def.id, t, dtype::f64, {index, at},
                       static_cast<std::uint64_t>(p_.type(table).shape[dim]));
  }
  /// The sum over all rows of the table, each times whether it is the wanted one.
  constexpr void gather(op_id o, const op_elements& c) const {
    const value_id table = p_.operand(o, 0);
    const op::gather_dims dims(p_.attrs(o), p_.type(table).shape, p_.type(p_.operand(o, 1)).shape);
    vec<int> looked;
    vec<int> digits;
    shape rows;
    by_.for_each_bound(o, [&](int, int dim) {
      looked.push_back(dim);
      rows.push_back(c.shape_of(0)[dim]);
      const digit_list l = by_.digits(table, dim);
      digits.insert_back(l.begin(), l.end());
    });
    c.fill([&](const place& i) {
      element sum = small_number(c.type(), 0);
      for_each_place(rows, [&](const place& k, std::int64_t n) {
        place from = elements::within_window(dims, i);
        element x = weight(c, digits, n);
        for (std::size_t each = 0; each < looked.size(); ++each) {
          const int d = looked[each], at = static_cast<int>(each);
          from[d] = k[at];
          for (int s = 0; s < dims.starts; ++s)
            if (dims.start_map[s] == d)
              x = a_.product(c.type(), x,
                             is_at(c, elements::start_of(c, dims, 1, i, s), c.types[1].element,
                                   table, d, k[at]));
        }
        sum = a_.sum(c.type(), sum, a_.product(c.type(), x, c.read(0, from)));
        ++a_.steps;
      });
      return sum;
    });
  }
  constexpr element weight(const op_elements& c, const vec<int>& digits, std::int64_t n) const {
    const digit_list l{digits.data(), digits.size()};
    return atoms_.is_kept(l) ? small_number(c.type(), 1) : formula(c.type(), atoms_.weight(l, n));
  }
  /// The sum over all updates, each times whether its position is this one.
  constexpr void scatter(op_id o, const op_elements& c) const {
    const int indices = p_.op(o).operand_count - 2;
    const value_id table = p_.op(o).result, at = p_.operand(o, indices);
    const op::gather_dims dims(p_.attrs(o).subspan(1), p_.type(table).shape, p_.type(at).shape);
    vec<int> summed, digits;
    shape many;
    by_.for_each_bound(o, [&](int, int dim) {
      summed.push_back(dim);
      many.push_back(c.shape_of(indices)[dim]);
      const digit_list l = by_.digits(at, dim);
      digits.insert_back(l.begin(), l.end());
    });
    c.fill([&](const place& i) {
      element sum = indices > 0 ? c.read(0, i) : small_number(c.type(), 0);
      for_each_place(many, [&](const place& k, std::int64_t n) {
        place from;
        for (int r = 0; r < dims.result_rank; ++r) {
          for (std::size_t each = 0; each < summed.size(); ++each)
            if (dims.index_dim[r] == summed[each]) from[r] = k[static_cast<int>(each)];
          for (int d = 0; d < dims.operand_rank; ++d)
            if (dims.window_dim[d] == r ||
                (dims.index_dim[r] >= 0 && dims.batching_dim[d] == dims.index_dim[r]))
              from[r] = i[d];
        }
        element x = weight(c, digits, n);
        for (int s = 0; s < dims.starts; ++s)
          x = a_.product(
              c.type(), x,
              is_at(c, elements::start_of(c, dims, indices, from, s), c.types[indices].element,
                    table, dims.start_map[s], i[dims.start_map[s]]));
        sum = a_.sum(c.type(), sum, a_.product(c.type(), x, c.read(indices + 1, from)));
        ++a_.steps;
      });
      return sum;
    });
  }

  /// The sum over features, taps and positions, each times whether the tap of the window is there.
  constexpr bool convolve(op_id o, const op_elements& c) const {
    const value_id x = p_.operand(o, 0), w = p_.operand(o, 1), y = p_.op(o).result;
    const op::convolution::roles r(p_.attrs(o).data(), p_.type(w).shape);
    const elements::scaled_by_precision scaled(c, op::convolution::numerics(c.attrs, r.rank));
    shape many;
    vec<int> digits;
    const auto add = [&](value_id v, int operand, int dim) {
      many.push_back(c.shape_of(operand)[dim]);
      const digit_list l = by_.digits(v, dim);
      digits.insert_back(l.begin(), l.end());
    };
    add(x, 0, r.lhs[1]);
    for (int d = 0; d < r.spatial; ++d) {
      add(x, 0, r.lhs[2 + d]);
      add(w, 1, r.rhs[2 + d]);
    }
    vec<element> counts;
    for (std::int64_t n = 0; n < many.elements(); ++n) counts.push_back(weight(c, digits, n));
    const auto under = [&](int d, std::int64_t at, std::int64_t from, std::int64_t tap) {
      const dtype t = dtype::i64;
      const element position = atoms_.position(a_, t, by_.digits(y, r.result[2 + d]), at),
                    read = atoms_.position(a_, t, by_.digits(x, r.lhs[2 + d]), from),
                    k = atoms_.position(a_, t, by_.digits(w, r.rhs[2 + d]), tap);
      const window_dim& each = r.window.at[d];
      const std::int64_t extent = p_.type(x).shape[r.lhs[2 + d]];
      if (position.known && read.known && k.known)
        return real(elements::under(each, position.number, k.number, extent) == read.number ? 1
                                                                                            : 0);
      drawing how(0xc0);
      for (const std::int64_t m : {each.size, each.stride, each.base_dilation, each.dilation,
                                   each.low, each.high, std::int64_t{each.reversed}, extent})
        how.add(m);
      return a_.function(c.def.id, t, dtype::f64, {position, read, k}, how.drawn().a);
    };
    c.fill([&](const place& i) {
      element sum = small_number(c.type(), 0);
      for_each_place(many, [&](const place& k, std::int64_t n) {
        place from, tap;
        from[r.lhs[0]] = i[r.result[0]];
        tap[r.rhs[1]] = i[r.result[1]];
        from[r.lhs[1]] = tap[r.rhs[0]] = k[0];
        element each = counts[static_cast<std::size_t>(n)];
        for (int d = 0; d < r.spatial; ++d) {
          from[r.lhs[2 + d]] = k[1 + 2 * d];
          tap[r.rhs[2 + d]] = k[2 + 2 * d];
          each =
              a_.product(c.type(), each, under(d, i[r.result[2 + d]], k[1 + 2 * d], k[2 + 2 * d]));
        }
        ++a_.steps;
        if (each.known && each.of == fingerprint{}) return;
        sum = a_.sum(
            c.type(), sum,
            a_.product(c.type(), each, a_.product(c.type(), c.read(0, from), c.read(1, tap))));
      });
      return scaled(sum);
    });
    return true;
  }
};

}  // namespace partita::prove_detail
