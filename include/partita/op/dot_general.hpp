/// dot_general: products summed over contracted dimensions, for each index of the batch dimensions.
#pragma once

#include <partita/op/vocabulary.hpp>
#include <partita/support/scanner.hpp>

namespace partita::op {

/// Shapes    lhs (batch, m..., k...), rhs (batch, k..., n...) in any order -> (batch, m..., n...)
/// Tile map  ([b, m, k], [b, k, n]) -> ([b, m, n])  reduce={k:add}
/// Cost      2 b m n k flop
/// Errors    S101 contracted extents differ, S102 element types differ, S104 not a number,
///           S105 batch extents differ, S106 bad dimension numbers, S199 bad precision
/// Attributes: the number of batch and of contracted dimensions, then lhs batch, rhs batch, lhs
/// contracted, rhs contracted dimensions, and the precision (see numerics.hpp). Prints as `matmul`
/// if it is the product of two matrices in the default precision.
struct dot_general {
  static constexpr std::string_view name = "dot_general";
  static constexpr int operand_count = 2;

  /// Role of every dimension: its batch or contraction index, or the result dimension if free.
  struct roles {
    int batch = 0, contract = 0;
    int lhs_batch[max_rank], rhs_batch[max_rank], lhs_contract[max_rank], rhs_contract[max_rank];
    bool lhs_bound[max_rank] = {}, rhs_bound[max_rank] = {};
    bool good = true;

    constexpr roles(const std::int64_t* a, int count, int lhs_rank, int rhs_rank)
        : lhs_batch{}, rhs_batch{}, lhs_contract{}, rhs_contract{} {
      if (count < 2 || a[0] < 0 || a[1] < 0 || a[0] > max_rank || a[1] > max_rank ||
          count < 2 + 2 * (a[0] + a[1])) {
        good = false;
        return;
      }
      batch = static_cast<int>(a[0]);
      contract = static_cast<int>(a[1]);
      const std::int64_t* next = a + 2;
      take(next, batch, lhs_batch, lhs_bound, lhs_rank);
      take(next, batch, rhs_batch, rhs_bound, rhs_rank);
      take(next, contract, lhs_contract, lhs_bound, lhs_rank);
      take(next, contract, rhs_contract, rhs_bound, rhs_rank);
    }

   private:
    constexpr void take(const std::int64_t*& next, int n, int* out, bool* bound, int rank) {
      for (int i = 0; i < n; ++i, ++next) {
        if (*next < 0 || *next >= rank || bound[*next])
          good = false;
        else
          bound[*next] = true;
        out[i] = static_cast<int>(*next);
      }
    }
  };

  /// Returns the attributes after the dimensions: the precision.
  static constexpr span<const std::int64_t> numerics(span<const std::int64_t> attrs, int = 0) {
    return attrs.subspan(static_cast<std::size_t>(2 + 2 * (attrs[0] + attrs[1])));
  }

  static constexpr void infer(infer_context& c) {
    const auto& [lt, ls] = c.operands[0];
    const auto& [rt, rs] = c.operands[1];
    const roles r(c.attrs.data(), static_cast<int>(c.attrs.size()), ls.rank, rs.rank);
    if (!r.good)
      return c.fail("S106",
                    "dot_general: the batch and contracted dimensions are repeated or out of "
                    "range for ",
                    c.operands[0], " and ", c.operands[1]);
    if (product_precision how; !product_precision::load(numerics(c.attrs), how))
      return c.fail("S199", "dot_general: ", numerics(c.attrs).size(),
                    " attributes after the dimensions are not a precision");
    if (lt != rt)
      return c.fail("S102", "dot_general: element types ", name_of(lt), " and ", name_of(rt),
                    " differ; use convert");
    if (lt == dtype::boolean) return c.fail("S104", "dot_general: element type i1 is not a number");
    c.result.element = lt;
    for (int i = 0; i < r.batch; ++i) {
      const auto l = ls[r.lhs_batch[i]], q = rs[r.rhs_batch[i]];
      if (!same_extent(l, q))
        return c.fail("S105", "dot_general: batch extents differ: dimension ", r.lhs_batch[i],
                      " of lhs ", c.operands[0], " has size ", l, ", dimension ", r.rhs_batch[i],
                      " of rhs ", c.operands[1], " has size ", q);
      c.result.shape.push_back(merge_extent(l, q));
    }
    for (int i = 0; i < r.contract; ++i) {
      const auto l = ls[r.lhs_contract[i]], q = rs[r.rhs_contract[i]];
      if (!same_extent(l, q))
        return c.fail("S101", "dot_general: contracted extents differ: dimension ",
                      r.lhs_contract[i], " of lhs ", c.operands[0], " has size ", l, ", dimension ",
                      r.rhs_contract[i], " of rhs ", c.operands[1], " has size ", q);
    }
    for (int d = 0; d < ls.rank; ++d)
      if (!r.lhs_bound[d]) c.result.shape.push_back(ls[d]);
    for (int d = 0; d < rs.rank; ++d)
      if (!r.rhs_bound[d]) c.result.shape.push_back(rs[d]);
  }

  static constexpr void tile_map(tile_map_context& c) {
    const shape& ls = c.operands[0].shape;
    const shape& rs = c.operands[1].shape;
    const roles r(c.attrs, c.attr_count, ls.rank, rs.rank);
    int result = 0;
    for (int i = 0; i < r.batch; ++i)
      c.tile(ls[r.lhs_batch[i]], result++).operand(0, r.lhs_batch[i]).operand(1, r.rhs_batch[i]);
    for (int d = 0; d < ls.rank; ++d)
      if (!r.lhs_bound[d]) c.tile(ls[d], result++).operand(0, d);
    for (int d = 0; d < rs.rank; ++d)
      if (!r.rhs_bound[d]) c.tile(rs[d], result++).operand(1, d);
    for (int i = 0; i < r.contract; ++i)
      c.reduce(ls[r.lhs_contract[i]], combiner::add)
          .operand(0, r.lhs_contract[i])
          .operand(1, r.rhs_contract[i]);
  }

  /// Computes the cotangent of one operand as the product of the result's cotangent with the other
  /// operand, over the other operand's free dimensions. The product keeps the precision; the
  /// cotangent uses the precision of lhs, as in JAX.
  static constexpr void derive(derive_context& c) {
    for (int side = 0; side < 2; ++side)
      if (c.wanted[static_cast<std::size_t>(side)])
        c.operands[static_cast<std::size_t>(side)] = cotangent_of(c, side);
  }

  static constexpr value_id cotangent_of(derive_context& c, int side) {
    builder& b = c.b;
    const value_id mine = b.p.operand(c.op, side), other = b.p.operand(c.op, 1 - side);
    const auto attrs = b.p.attrs(c.op);
    const int ranks[2] = {b.type(b.p.operand(c.op, 0)).shape.rank,
                          b.type(b.p.operand(c.op, 1)).shape.rank};
    const roles r(attrs.data(), static_cast<int>(attrs.size()), ranks[0], ranks[1]);
    const int my_rank = b.type(mine).shape.rank, other_rank = b.type(other).shape.rank;
    const int* my_batch = side == 0 ? r.lhs_batch : r.rhs_batch;
    const int* other_batch = side == 0 ? r.rhs_batch : r.lhs_batch;
    const int* my_contract = side == 0 ? r.lhs_contract : r.rhs_contract;
    const int* other_contract = side == 0 ? r.rhs_contract : r.lhs_contract;
    const bool* my_bound = side == 0 ? r.lhs_bound : r.rhs_bound;
    const bool* other_bound = side == 0 ? r.rhs_bound : r.lhs_bound;
    const int lhs_free = ranks[0] - r.batch - r.contract;

    std::int64_t g_batch[max_rank] = {}, o_batch[max_rank] = {}, g_free[max_rank] = {},
                 o_free[max_rank] = {};
    for (int i = 0; i < r.batch; ++i) g_batch[i] = i, o_batch[i] = other_batch[i];
    int n = 0;
    // Result dimensions of the other side's free dimensions follow the batch (and lhs) ones.
    const int first = r.batch + (side == 0 ? lhs_free : 0);
    for (int d = 0; d < other_rank; ++d)
      if (!other_bound[d]) {
        g_free[n] = first + n;
        o_free[n] = d;
        ++n;
      }
    const auto batch = static_cast<std::size_t>(r.batch), free = static_cast<std::size_t>(n);

    // Position of each dimension of the product in my operand, for both operand orders.
    int my_free[max_rank] = {}, my_contracted[max_rank] = {}, frees = 0, contracted = 0;
    for (int d = 0; d < my_rank; ++d)
      if (!my_bound[d]) my_free[frees++] = d;
    for (int d = 0; d < other_rank; ++d)
      for (int i = 0; i < r.contract; ++i)
        if (other_contract[i] == d) my_contracted[contracted++] = my_contract[i];
    const auto place = [&](bool cotangent_first, std::int64_t* inverse) {
      int at = 0;
      bool identity = true;
      const auto put = [&](int dim) {
        identity = identity && dim == at;
        inverse[dim] = at++;
      };
      for (int i = 0; i < r.batch; ++i) put(my_batch[i]);
      if (cotangent_first)
        for (int i = 0; i < frees; ++i) put(my_free[i]);
      for (int i = 0; i < contracted; ++i) put(my_contracted[i]);
      if (!cotangent_first)
        for (int i = 0; i < frees; ++i) put(my_free[i]);
      return identity;
    };
    std::int64_t direct[max_rank] = {}, swapped[max_rank] = {};
    product_precision how;
    product_precision::load(numerics(attrs), how);
    const bool use_direct = place(true, direct) || !place(false, swapped);
    const value_id product =
        use_direct ? ops::dot_general(
                         b, c.cotangent, other,
                         {{g_batch, batch}, {o_batch, batch}, {g_free, free}, {o_free, free}, how})
                   : ops::dot_general(b, other, c.cotangent,
                                      {{o_batch, batch},
                                       {g_batch, batch},
                                       {o_free, free},
                                       {g_free, free},
                                       how.swapped()});
    return ops::transpose(b, product,
                          {use_direct ? direct : swapped, static_cast<std::size_t>(my_rank)});
  }

  static constexpr std::int64_t flops(const cost_context& c) {
    const auto& ls = c.operands[0].shape;
    std::int64_t n = 2 * c.result.shape.elements();
    for (std::int64_t i = 0; i < c.attrs[1]; ++i) {
      const std::int64_t dim = c.attrs[static_cast<std::size_t>(2 + 2 * c.attrs[0] + i)];
      n = saturating_multiply(n, ls[static_cast<int>(dim)]);
    }
    return n;
  }

  static constexpr product_shape product(const cost_context& c) {
    const auto &ls = c.operands[0].shape, &rs = c.operands[1].shape;
    const roles r(c.attrs.data(), static_cast<int>(c.attrs.size()), ls.rank, rs.rank);
    product_shape p{1, 1, 1, 1};
    for (int i = 0; i < r.batch; ++i) p.batch = saturating_multiply(p.batch, ls[r.lhs_batch[i]]);
    for (int i = 0; i < r.contract; ++i) p.k = saturating_multiply(p.k, ls[r.lhs_contract[i]]);
    for (int d = 0; d < ls.rank; ++d)
      if (!r.lhs_bound[d]) p.m = saturating_multiply(p.m, ls[d]);
    for (int d = 0; d < rs.rank; ++d)
      if (!r.rhs_bound[d]) p.n = saturating_multiply(p.n, rs[d]);
    return p;
  }

  static constexpr bool is_matmul(const program& p, op_id o) {
    const auto a = p.attrs(o);
    return a.size() == 4 && a[0] == 0 && a[1] == 1 && a[2] == 1 && a[3] == 0 &&
           p.type(p.operand(o, 0)).shape.rank == 2 && p.type(p.operand(o, 1)).shape.rank == 2;
  }
  static constexpr void print(print_context& c) {
    if (is_matmul(c.p, c.op)) return;
    const auto a = c.p.attrs(c.op);
    const auto batch = static_cast<std::size_t>(a[0]), contract = static_cast<std::size_t>(a[1]);
    c.out << " {";
    if (batch > 0) {
      c.out << "batch=";
      print_ints(c.out, a.subspan(2, batch));
      c.out << 'x';
      print_ints(c.out, a.subspan(2 + batch, batch));
      c.out << ", ";
    }
    c.out << "contract=";
    print_ints(c.out, a.subspan(2 + 2 * batch, contract));
    c.out << 'x';
    print_ints(c.out, a.subspan(2 + 2 * batch + contract, contract));
    if (const auto how = numerics(a); !how.empty()) {
      c.out << ", ";
      product_precision::print(c.out, how);
    }
    c.out << '}';
  }
  /// Parses `batch=[0]x[0], contract=[2]x[1], precision=[high, high]`; an empty text is the product
  /// of two matrices.
  static constexpr void parse(parse_context& c) {
    scanner in(c.in);
    vec<std::int64_t> batch[2], contract[2], how;
    const auto both = [&](vec<std::int64_t>* lists) {
      return in.integers(lists[0]) && in.accept("x") && in.integers(lists[1]) &&
             lists[0].size() == lists[1].size();
    };
    bool good = true;
    if (in.done()) {
      contract[0].push_back(1);
      contract[1].push_back(0);
    } else {
      if (in.accept("batch=")) good = both(batch) && in.accept(", ");
      good = good && in.accept("contract=") && both(contract);
      if (good && in.accept(", ")) good = product_precision::parse(in, how);
      good = good && in.done();
    }
    if (!good)
      c.error.record("P011",
                     "parse: attributes of dot_general: \"batch=[0]x[0], contract=[2]x[1]\", ",
                     "or the second half of it, expected, found \"", c.in, '"');
    c.attrs.push_back(static_cast<std::int64_t>(batch[0].size()));
    c.attrs.push_back(static_cast<std::int64_t>(contract[0].size()));
    for (const auto* lists : {batch, contract})
      for (int side = 0; side < 2; ++side)
        c.attrs.insert_back(lists[side].begin(), lists[side].end());
    c.attrs.insert_back(how.begin(), how.end());
  }
};

}  // namespace partita::op

namespace partita {
PARTITA_OP(op::dot_general)
}  // namespace partita

namespace partita::ops {

constexpr value_id dot_general(builder& b, value_id lhs, value_id rhs, const dot_dimensions& d) {
  std::int64_t attrs[2 + 4 * max_rank] = {static_cast<std::int64_t>(d.lhs_batch.size()),
                                          static_cast<std::int64_t>(d.lhs_contract.size())};
  std::size_t count = 2;
  for (ints part : {d.lhs_batch, d.rhs_batch, d.lhs_contract, d.rhs_contract})
    for (auto dim : part)
      if (count < 2 + 4 * max_rank) attrs[count++] = dim;
  const value_id operands[] = {lhs, rhs};
  if (d.exactness.is_usual()) return b.emit(def<op::dot_general>, operands, {attrs, count});
  vec<std::int64_t> all(attrs, attrs + count);
  d.exactness.store(all);
  return b.emit(def<op::dot_general>, operands, {all.data(), all.size()});
}

}  // namespace partita::ops
