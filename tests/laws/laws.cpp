// Each entry of a tile map is a theorem: the op equals the loop over slices of its operands,
// stacked or reduced. Proved here by trying, for every op of the registry.
#include <doctest/doctest.h>

#include <set>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;
using data::str;

namespace {

/// One loop: a factor of the tile map, cut into n parts.
struct cut {
  int factor;
  std::int64_t n;
};

/// The op, evaluated as a nest of loops; throws pt::error if a slice does not fit the op.
class loops {
 public:
  loops(const op_case& c, const pt::factor_table& map) : c_(c), map_(map) {}

  pt::array run(const std::vector<pt::array>& operands, const tensor_type& result,
                std::span<const cut> nest) const {
    if (nest.empty()) return body(operands, result);
    const pt::factor& f = map_.at(0, nest[0].factor);
    const std::int64_t n = nest[0].n;
    tensor_type part = result;
    if (f.result_dim != pt::no_dim) part.shape[f.result_dim] /= n;
    std::vector<pt::array> parts;
    for (std::int64_t i = 0; i < n; ++i) {
      std::vector<pt::array> sliced = operands;
      for (std::size_t k = 0; k < operands.size(); ++k) {
        const int dim = map_.operand_dim(f, static_cast<int>(k));
        if (dim != pt::no_dim) sliced[k] = piece(operands[k], dim, n, i);
      }
      parts.push_back(run(sliced, part, nest.subspan(1)));
    }
    if (f.result_dim != pt::no_dim)
      return pt::run_op(pt::def<pt::op::concatenate>, parts, ints{f.result_dim}, result);
    pt::array sum = parts[0];
    for (std::int64_t i = 1; i < n; ++i)
      sum = combined(f.combine, sum, parts[static_cast<std::size_t>(i)], result);
    return sum;
  }

 private:
  const op_case& c_;
  const pt::factor_table& map_;

  static pt::array combined(pt::combiner c, const pt::array& x, const pt::array& y,
                            const tensor_type& result) {
    if (c == pt::combiner::logical_and || c == pt::combiner::logical_or) {
      pt::array z(result);  // bits are bits in every type
      for (std::int64_t i = 0; i < result.bytes(); ++i)
        z.storage().get()[i] = c == pt::combiner::logical_and ? x.bytes()[i] & y.bytes()[i]
                                                              : x.bytes()[i] | y.bytes()[i];
      return z;
    }
    const pt::op_def& op = c == pt::combiner::add   ? pt::def<pt::op::add>
                           : c == pt::combiner::max ? pt::def<pt::op::maximum>
                           : c == pt::combiner::min ? pt::def<pt::op::minimum>
                                                    : pt::def<pt::op::multiply>;
    return pt::run_op(op, std::vector{x, y}, {}, result);
  }

  static pt::array piece(const pt::array& a, int dim, std::int64_t n, std::int64_t i) {
    if (a.shape()[dim] % n != 0) throw pt::error("a slice does not divide its dimension");
    ints start, limit;
    for (int d = 0; d < a.shape().rank; ++d) {
      start.push_back(d == dim ? a.shape()[d] / n * i : 0);
      limit.push_back(d == dim ? a.shape()[d] / n * (i + 1) : a.shape()[d]);
    }
    tensor_type t = a.type();
    t.shape[dim] /= n;
    start.insert(start.end(), limit.begin(), limit.end());
    return pt::run_op(pt::def<pt::op::slice>, std::vector{a}, start, t);
  }
  pt::array body(const std::vector<pt::array>& operands, const tensor_type& result) const {
    std::vector<tensor_type> types;
    for (const auto& a : operands) types.push_back(a.type());
    pt::failure failed;
    const tensor_type t = infer(*c_.op, types, c_.attrs, result, failed);
    failed.raise();
    if (t != result) throw pt::error("the shape rule gives another type for slices");
    return pt::run_op(*c_.op, operands, c_.attrs, result);
  }
};

struct tally {
  int equations = 0, wrong = 0;
  std::string first;
};

pt::factor_table tile_map_of(const op_case& c, const tensor_type& result,
                             void (*rule)(pt::tile_map_context&)) {
  pt::factor_table map;
  const pt::vec<tensor_type> types(c.operands.data(), c.operands.data() + c.operands.size());
  pt::tile_map_context context(types, result, c.attrs.data(), static_cast<int>(c.attrs.size()),
                               map);
  if (rule != nullptr) rule(context);
  return map;
}

/// The loops that make `f` the next one to slice, then `f` itself cut into n.
std::vector<cut> nest_for(pt::factor_table& map, int f, std::int64_t n) {
  std::vector<cut> nest;
  while (!map.is_front(0, f)) {
    int g = 0;
    while (map.at(0, g).local == 1 || !map.is_front(0, g)) ++g;
    nest.push_back({g, map.at(0, g).local});
    map.at(0, g).local = 1;
  }
  nest.push_back({f, n});
  map.at(0, f).local /= n;
  return nest;
}

/// Tries every factor and every divisor of its size; then every pair of factors as a nest.
void check(const op_case& c, void (*rule)(pt::tile_map_context&), tally& t) {
  pt::failure failed;
  const tensor_type result = infer(*c.op, c.operands, c.attrs, c.declared, failed);
  REQUIRE_MESSAGE(!failed, str(failed.message));
  data::random r{static_cast<std::uint64_t>(t.equations) + 17};
  std::vector<pt::array> operands;
  for (std::size_t k = 0; k < c.operands.size(); ++k)
    operands.push_back(c.make ? c.make(c.operands[k], k, r)
                              : data::integers(c.operands[k], r, c.low, c.high));
  const pt::array whole = pt::run_op(*c.op, operands, c.attrs, result);
  const auto equation = [&](std::span<const cut> nest) {
    ++t.equations;
    std::string problem = "values differ";
    try {
      if (pt::equal(loops(c, tile_map_of(c, result, rule)).run(operands, result, nest), whole))
        return;
    } catch (const std::exception& e) {
      problem = e.what();
    }
    ++t.wrong;
    if (!t.first.empty()) return;
    pt::text out;
    out << c.op->name << '(';
    for (const auto& type : c.operands) out << type << ' ';
    out << ") -> " << result << ", loops";
    for (const auto& each : nest) out << " factor " << each.factor << " in " << each.n;
    out << ": " << problem;
    t.first = str(out);
  };
  const pt::factor_table map = tile_map_of(c, result, rule);
  for (int f = 0; f < map.ops[0].count; ++f)
    for (std::int64_t n = 1; n <= map.at(0, f).size; ++n) {
      if (map.at(0, f).size % n != 0) continue;
      pt::factor_table local = map;
      const auto nest = nest_for(local, f, n);
      equation(nest);
      for (int g = 0; g < map.ops[0].count; ++g) {
        if (!local.is_front(0, g)) continue;
        for (std::int64_t m : {2, 3})
          if (n > 1 && local.at(0, g).local % m == 0) {
            auto both = nest;
            both.push_back({g, m});
            equation(both);
          }
      }
    }
}

}  // namespace

TEST_CASE("every entry of every tile map holds, for every divisor") {
  std::set<const pt::op_def*> covered{&pt::def<pt::op::parameter>};
  std::set<std::pair<const pt::op_def*, bool>> uncut;
  tally t;
  int cases = 0;
  for (const op_case& c : all_cases()) {
    const int before = t.wrong;
    check(c, c.op->tile_map, t);
    ++cases;
    covered.insert(c.op);
    CHECK_MESSAGE(t.wrong == before, t.first);
  }
  for (const pt::op_def* op : pt::registry) {
    CHECK_MESSAGE(covered.count(op) == 1, op->name, " has no cases in tests/laws/cases.hpp");
    CHECK_MESSAGE((op->tile_map != &pt::no_factors), op->name, " has no tile map");
  }
  MESSAGE(cases, " cases, ", t.equations, " equations");
  CHECK(t.equations > 1000);
}

TEST_CASE("factors cover whole dimensions, but for reshape, and none twice") {
  for (const op_case& c : all_cases()) {
    pt::failure failed;
    const tensor_type result = infer(*c.op, c.operands, c.attrs, c.declared, failed);
    const pt::factor_table map = tile_map_of(c, result, c.op->tile_map);
    const auto covers = [&](const shape& s, auto dim_of) {
      for (int d = 0; d < s.rank; ++d) {
        std::int64_t product = 1;
        int count = 0;
        for (int f = 0; f < map.ops[0].count; ++f)
          if (dim_of(map.at(0, f)) == d) product *= map.at(0, f).size, ++count;
        CHECK(s[d] % product == 0);
        if (!map.ops[0].composed) CHECK((count == 0 || (count == 1 && product == s[d])));
      }
    };
    covers(result.shape, [](const pt::factor& f) { return f.result_dim; });
    for (std::size_t k = 0; k < c.operands.size(); ++k)
      covers(c.operands[k].shape,
             [&](const pt::factor& f) { return map.operand_dim(f, static_cast<int>(k)); });
    for (int f = 0; f < map.ops[0].count; ++f) {
      CHECK((map.at(0, f).result_dim == pt::no_dim) ==
            (map.at(0, f).combine != pt::combiner::stack));
      CHECK(map.at(0, f).local == map.at(0, f).size);
    }
  }
}

TEST_CASE("a wrong tile map is caught") {
  using context = pt::tile_map_context;
  const auto caught = [](const op_case& c, void (*rule)(context&)) {
    tally t;
    check(c, rule, t);
    return t.wrong > 0;
  };
  const op_case matmul{
      &pt::def<pt::op::dot_general>, {f32({4, 4}), f32({4, 4})}, dots({}, {}, {1}, {0}), {}};
  CHECK(!caught(matmul, pt::op::dot_general::tile_map));
  // The contracted dimension without its sum: stacked.
  CHECK(caught(matmul, [](context& c) { c.tile(4, 0).operand(0, 1).operand(1, 0); }));
  // Another monoid.
  CHECK(caught(matmul,
               [](context& c) { c.reduce(4, pt::combiner::max).operand(0, 1).operand(1, 0); }));
  // One operand forgotten: the slices do not fit.
  CHECK(caught(matmul, [](context& c) { c.reduce(4, pt::combiner::add).operand(0, 1); }));
  // An operand sliced that must stay whole.
  CHECK(caught(matmul, [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 1); }));
  // The wrong dimension of the operand, and of the result.
  const op_case transposed{&pt::def<pt::op::transpose>, {f32({4, 4})}, {1, 0}, {}};
  CHECK(caught(transposed, [](context& c) { c.tile(4, 0).operand(0, 0); }));
  CHECK(caught({&pt::def<pt::op::add>, {f32({4, 4}), f32({4, 4})}, {}, {}},
               [](context& c) { c.tile(4, 1).operand(0, 0).operand(1, 0); }));
  // Reshape with its factors in the wrong order.
  const op_case split{&pt::def<pt::op::reshape>, {i32({12})}, {}, i32({3, 4})};
  CHECK(!caught(split, pt::op::reshape::tile_map));
  CHECK(caught(split, [](context& c) {
    c.composed();
    c.tile(4, 1).operand(0, 0);
    c.tile(3, 0).operand(0, 0);
  }));
  // Dimensions that are no maps: of iota, rows of a table, the joined one, a part of a slice.
  CHECK(caught({&pt::def<pt::op::iota>, {}, {0}, i32({4})}, [](context& c) { c.tile(4, 0); }));
  CHECK(caught({&pt::def<pt::op::gather>, {f32({4, 2}), i32({4})}, {}, {}, 0, 3},
               [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 0); }));
  CHECK(caught({&pt::def<pt::op::scatter>, {i32({4}), f32({4})}, {1}, f32({4}), 0, 3},
               [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 0); }));
  CHECK(caught({&pt::def<pt::op::concatenate>, {f32({4}), f32({4})}, {0}, {}},
               [](context& c) { c.tile(4, 0).operand(0, 0).operand(1, 0); }));
  CHECK(caught({&pt::def<pt::op::slice>, {f32({4})}, {0, 2}, {}},
               [](context& c) { c.tile(2, 0).operand(0, 0); }));
  // The sum of the parts instead of the greatest of them.
  CHECK(caught(
      {&pt::def<pt::op::reduce>, {f32({4})}, {static_cast<std::int64_t>(pt::combiner::max), 0}, {}},
      [](context& c) { c.reduce(4, pt::combiner::add).operand(0, 0); }));
}
