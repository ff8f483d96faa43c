// Ops that move data, compared element by element with the definitions of the StableHLO
// specification; and functions that NumPy and JAX users know, compared with NumPy's values.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <tuple>
#include <vector>

#include <xtensor/xarray.hpp>

#include "../data.hpp"

namespace pt = partita;
using pt::array;
using pt::dtype;
using pt::shape;
using pt::tensor_type;

namespace {

using ints = std::vector<std::int64_t>;
constexpr dtype all_types[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16,
                               dtype::i32, dtype::i64, dtype::u8,   dtype::boolean};

/// Runs one op; its own rule gives the result type.
array run(const pt::op_def& op, const std::vector<array>& operands, const ints& attrs = {},
          const tensor_type& declared = {}) {
  pt::builder b;
  std::vector<pt::value_id> v;
  for (const auto& a : operands) v.push_back(pt::ops::parameter(b, "x", a.type()));
  const pt::value_id r = b.emit(op, v, attrs, declared);
  REQUIRE_MESSAGE(r >= 0, data::str(b.p.error.message));
  return pt::run_op(op, operands, attrs, b.type(r));
}
array numbers(dtype t, const shape& s, std::uint64_t seed = 1) {
  data::random r{seed};
  return data::integers({t, s}, r, -4, 4);
}
/// Returns the elements as binary64.
std::vector<double> values(const array& a) {
  const array wide = pt::as_type(a, dtype::f64);
  return {wide.data<double>(), wide.data<double>() + a.size()};
}
void for_each(const shape& s, const std::function<void(const ints&)>& f) {
  ints index(static_cast<std::size_t>(s.rank), 0);
  for (std::int64_t i = 0; i < s.elements(); ++i) {
    f(index);
    for (int d = s.rank; d-- > 0;) {
      if (++index[static_cast<std::size_t>(d)] < s[d]) break;
      index[static_cast<std::size_t>(d)] = 0;
    }
  }
}
/// Returns the row-major position, or -1 if the index is out of bounds.
std::int64_t position(const shape& s, const ints& index) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) {
    const std::int64_t i = index[static_cast<std::size_t>(d)];
    if (i < 0 || i >= s[d]) return -1;
    n = n * s[d] + i;
  }
  return n;
}
std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }

}  // namespace

TEST_CASE("strided slice and reverse follow the specification") {
  for (dtype t : all_types) {
    const array x = numbers(t, {5, 6, 7});
    const auto from = values(x);
    const array r = run(pt::def<pt::op::slice>, {x}, {1, 0, 1, 5, pt::ops::whole, 7, 3, 2, 4});
    REQUIRE(r.shape() == shape{2, 3, 2});
    auto got = values(r);
    std::size_t k = 0;
    for_each(r.shape(), [&](const ints& i) {
      CHECK(got[k++] == from[at(position(x.shape(), {1 + 3 * i[0], 2 * i[1], 1 + 4 * i[2]}))]);
    });
    for (const ints& dims : {ints{0}, ints{2}, ints{0, 1}, ints{0, 1, 2}}) {
      got = values(run(pt::def<pt::op::reverse>, {x}, dims));
      k = 0;
      for_each(x.shape(), [&](ints i) {
        for (auto d : dims) i[at(d)] = x.shape()[static_cast<int>(d)] - 1 - i[at(d)];
        CHECK(got[k++] == from[at(position(x.shape(), i))]);
      });
    }
    CHECK(run(pt::def<pt::op::reverse>, {numbers(t, {2, 0})}, {1}).size() == 0);
    CHECK(run(pt::def<pt::op::slice>, {numbers(t, {4})}, {3, 3, 2}).size() == 0);
    CHECK(values(run(pt::def<pt::op::slice>, {numbers(t, {})})) == values(numbers(t, {})));
  }
}

TEST_CASE("pad follows the specification") {
  struct amounts {
    shape from;
    ints low, high, interior;
  };
  const amounts all[] = {{{3, 4}, {1, 0}, {2, 0}, {0, 0}},
                         {{3, 4}, {0, 1}, {0, 0}, {1, 2}},
                         {{3, 4}, {-1, 2}, {1, -1}, {2, 0}},
                         {{5}, {-3}, {-4}, {2}},
                         {{5}, {-20}, {12}, {1}},
                         {{5}, {14}, {-16}, {1}},
                         {{0, 2}, {3, 0}, {1, 1}, {4, 0}},
                         {{2, 3, 2}, {0, 0, 1}, {0, 2, 0}, {3, 0, 1}},
                         {{}, {}, {}, {}},
                         {{4}, {-2}, {-2}, {0}}};
  for (dtype t : all_types)
    for (const auto& a : all) {
      const array x = numbers(t, a.from), value = data::fill({t, {}}, [](auto) { return 1; });
      ints attrs = a.low;
      attrs.insert(attrs.end(), a.high.begin(), a.high.end());
      attrs.insert(attrs.end(), a.interior.begin(), a.interior.end());
      const array r = run(pt::def<pt::op::pad>, {x, value}, attrs);
      std::vector<double> want(at(r.size()), 1);
      const auto from = values(x);
      std::size_t k = 0;
      for_each(x.shape(), [&](ints i) {
        for (std::size_t d = 0; d < i.size(); ++d) i[d] = a.low[d] + i[d] * (a.interior[d] + 1);
        const std::int64_t p = position(r.shape(), i);
        if (p >= 0) want[at(p)] = from[k];
        ++k;
      });
      CHECK(values(r) == want);
    }
}

TEST_CASE("dynamic slices clamp their starts") {
  for (dtype t : all_types)
    for (dtype it : {dtype::i32, dtype::i64, dtype::u8})
      for (const auto& [i, j] : {std::pair{0, 0}, {2, 3}, {200, 1}, {-7, 90}}) {
        if (it == dtype::u8 && i < 0) continue;
        const auto scalar = [&](std::int64_t v) {
          return data::fill({it, {}}, [=](auto) { return v; });
        };
        const array x = numbers(t, {5, 7}), starts[] = {scalar(i), scalar(j)};
        const auto from = values(x);
        const std::int64_t row = std::clamp(i, 0, 3), column = std::clamp(j, 0, 4);
        const array r = run(pt::def<pt::op::dynamic_slice>, {x, starts[0], starts[1]}, {2, 3});
        auto got = values(r);
        std::size_t k = 0;
        for_each({2, 3}, [&](const ints& e) {
          CHECK(got[k++] == from[at(position({5, 7}, {row + e[0], column + e[1]}))]);
        });
        const array update = numbers(t, {2, 3}, 5);
        const auto small = values(update);
        auto want = from;
        k = 0;
        for_each({2, 3}, [&](const ints& e) {
          want[at(position({5, 7}, {row + e[0], column + e[1]}))] = small[k++];
        });
        CHECK(values(run(pt::def<pt::op::dynamic_update_slice>,
                         {x, update, starts[0], starts[1]})) == want);
      }
}

namespace {

/// Dimension numbers, and the windows that they place, in the words of the specification.
struct placement {
  ints offset, collapsed, operand_batching, indices_batching, map;
  std::int64_t vector_dim;
  shape tensor, indices;
  ints sizes;  ///< of windows, per dimension of the tensor

  static bool has(const ints& list, std::int64_t d) {
    return std::find(list.begin(), list.end(), d) != list.end();
  }
  ints attrs() const {
    ints all;
    for (const ints* list : {&offset, &collapsed, &operand_batching, &indices_batching, &map}) {
      all.push_back(static_cast<std::int64_t>(list->size()));
      all.insert(all.end(), list->begin(), list->end());
    }
    all.push_back(vector_dim);
    return all;
  }
  shape windows() const {
    ints batch, window;
    for (int d = 0; d < indices.rank; ++d)
      if (d != vector_dim) batch.push_back(indices[d]);
    for (int d = 0; d < tensor.rank; ++d)
      if (!has(collapsed, d) && !has(operand_batching, d)) window.push_back(sizes[at(d)]);
    shape s;
    std::size_t b = 0, w = 0;
    while (b < batch.size() || w < window.size())
      s.push_back(has(offset, s.rank) ? window[w++] : batch[b++]);
    return s;
  }
  /// Returns the position in the tensor of element `index` of the windows. `starts` are clamped,
  /// or, if one is out of bounds, the result is -1.
  std::int64_t place(const ints& index, const std::vector<double>& starts, bool clamps) const {
    ints batch, window;
    for (std::size_t d = 0; d < index.size(); ++d)
      (has(offset, static_cast<std::int64_t>(d)) ? window : batch).push_back(index[d]);
    ints full(at(tensor.rank), 0);
    for (std::size_t k = 0; k < map.size(); ++k) {
      ints where = batch;
      if (vector_dim < indices.rank)
        where.insert(where.begin() + vector_dim, static_cast<std::int64_t>(k));
      const auto start = static_cast<std::int64_t>(starts[at(position(indices, where))]);
      const std::int64_t last = tensor[static_cast<int>(map[k])] - sizes[at(map[k])];
      if (!clamps && (start < 0 || start > last)) return -1;
      full[at(map[k])] = std::clamp<std::int64_t>(start, 0, last);
    }
    for (std::size_t k = 0; k < operand_batching.size(); ++k)
      full[at(operand_batching[k])] =
          batch[at(indices_batching[k] - (indices_batching[k] > vector_dim ? 1 : 0))];
    std::size_t w = 0;
    for (int d = 0; d < tensor.rank; ++d)
      if (!has(collapsed, d) && !has(operand_batching, d)) full[at(d)] += window[w++];
    return position(tensor, full);
  }
};

const placement placements[] = {
    {{1}, {0}, {}, {}, {0}, 1, {5, 3}, {7}, {1, 3}},
    {{0}, {1}, {}, {}, {1}, 1, {3, 5}, {6}, {3, 1}},
    {{2}, {0, 1}, {}, {}, {1, 0}, 0, {4, 3, 4}, {2, 3, 2}, {1, 1, 4}},
    {{1, 2}, {}, {}, {}, {0, 1}, 1, {5, 4}, {6, 2}, {2, 3}},
    {{0, 2}, {1}, {}, {}, {2, 1}, 1, {3, 2, 5}, {4, 2}, {3, 1, 2}},
    {{}, {1}, {0}, {0}, {1}, 2, {4, 5}, {4, 6}, {1, 1}},
    {{3}, {1}, {0, 3}, {2, 0}, {1}, 3, {4, 3, 6, 2}, {2, 3, 4, 1}, {1, 1, 6, 1}},
    {{3}, {1}, {0, 3}, {3, 1}, {1}, 0, {4, 3, 6, 2}, {1, 2, 3, 4}, {1, 1, 5, 1}},
    {{1}, {}, {}, {}, {}, 1, {4}, {3, 0}, {4}},
    {{}, {0}, {}, {}, {0}, 0, {4}, {}, {1}},
    {{1}, {0}, {}, {}, {0}, 1, {5, 3}, {0}, {1, 3}},
    {{1}, {0}, {}, {}, {0}, 1, {5, 0}, {4}, {1, 0}},
};

double updated(pt::ops::scatter_update u, double x, double y) {
  switch (u) {
    case pt::ops::scatter_update::assign:
      return y;
    case pt::ops::scatter_update::add:
      return x + y;
    case pt::ops::scatter_update::max:
      return std::max(x, y);
    case pt::ops::scatter_update::min:
      return std::min(x, y);
    case pt::ops::scatter_update::logical_and:
      return static_cast<double>(static_cast<std::int64_t>(x) & static_cast<std::int64_t>(y));
    case pt::ops::scatter_update::logical_or:
      return static_cast<double>(static_cast<std::int64_t>(x) | static_cast<std::int64_t>(y));
    default:
      return x * y;
  }
}

}  // namespace

TEST_CASE("gather and scatter place windows as the specification states") {
  std::uint64_t seed = 0;
  for (const auto& p : placements)
    for (dtype t : all_types)
      for (dtype it : {dtype::i32, dtype::i64, dtype::u8}) {
        data::random r{++seed};
        const array indices = data::integers({it, p.indices}, r, -2, 6);
        const array x = numbers(t, p.tensor);
        const auto starts = values(indices), from = values(x);
        ints attrs = p.attrs();
        attrs.insert(attrs.end(), p.sizes.begin(), p.sizes.end());
        const array g = run(pt::def<pt::op::gather>, {x, indices}, attrs);
        REQUIRE(g.shape() == p.windows());
        std::vector<double> want;
        for_each(g.shape(),
                 [&](const ints& i) { want.push_back(from[at(p.place(i, starts, true))]); });
        CHECK(values(g) == want);

        // 0, 1 and 2, so that products stay small enough for every type; in u8 all results wrap
        // alike.
        const array parts = data::integers({t, g.shape()}, r, 0, 2);
        const auto y = values(parts);
        for (int u = 0; u < 7; ++u) {
          const auto update = static_cast<pt::ops::scatter_update>(u);
          if ((t == dtype::boolean && u > 0 && u < 5) || (pt::is_floating(t) && u >= 5)) continue;
          attrs = p.attrs();
          attrs.insert(attrs.begin(), u);
          want = from;
          // Windows in the order of their index vectors: the last assignment counts.
          std::vector<std::tuple<ints, ints, double>> all;
          std::size_t k = 0;
          for_each(g.shape(), [&](const ints& i) {
            ints batch;
            for (std::size_t d = 0; d < i.size(); ++d)
              if (!placement::has(p.offset, static_cast<std::int64_t>(d))) batch.push_back(i[d]);
            all.push_back({batch, i, y[k++]});
          });
          std::sort(all.begin(), all.end());
          const auto apply = [&] {
            for (const auto& [batch, i, v] : all)
              if (const auto to = p.place(i, starts, false); to >= 0)
                want[at(to)] = updated(update, want[at(to)], v);
          };
          apply();
          CHECK(values(run(pt::def<pt::op::scatter>, {x, indices, parts}, attrs)) ==
                values(pt::as_type(
                    data::fill({dtype::f64, p.tensor}, [&](auto i) { return want[at(i)]; }), t)));
          if (u == 0) continue;
          const array alone = run(pt::def<pt::op::scatter>, {indices, parts}, attrs, {t, p.tensor});
          const array empty = run(pt::def<pt::op::scatter>,
                                  {data::fill({it, {0}}, [](auto) { return 0; }),
                                   data::fill({t, {0}}, [](auto) { return 0; })},
                                  {u}, {t, {1}});
          std::fill(want.begin(), want.end(), values(empty)[0]);
          apply();
          CHECK(values(alone) == want);
        }
      }
}

TEST_CASE("an empty scatter returns the identity, an empty table zeros") {
  const array none = data::fill({dtype::i32, {0}}, [](auto) { return 0; });
  const auto identity = [&](dtype t, std::int64_t update) {
    return values(
        run(pt::def<pt::op::scatter>, {none, numbers(t, {0, 2})}, {update}, {t, {1, 2}}))[1];
  };
  const double inf = std::numeric_limits<double>::infinity();
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
    CHECK(identity(t, 1) == 0);
    CHECK(identity(t, 2) == -inf);
    CHECK(identity(t, 3) == inf);
    CHECK(identity(t, 4) == 1);
  }
  CHECK(identity(dtype::i32, 2) == -0x1p31);
  CHECK(identity(dtype::i32, 3) == 0x1p31 - 1);
  CHECK(identity(dtype::u8, 2) == 0);
  CHECK(identity(dtype::u8, 3) == 255);
  const array index = data::fill({dtype::i32, {3}}, [](auto) { return 1; });
  const array zeros = run(pt::def<pt::op::gather>, {numbers(dtype::f32, {0, 2}), index});
  CHECK(zeros.shape() == shape{3, 2});
  for (double v : values(zeros)) CHECK(v == 0);
}

TEST_CASE("sums of 16-bit floats are rounded once") {
  // 256 + 1 rounds to 256 in bf16; 256 + 1 + 1 = 258 does not.
  const array x = data::fill({dtype::bf16, {1}}, [](auto) { return 256; });
  const array index = data::fill({dtype::i32, {2}}, [](auto) { return 0; });
  const array ones = data::fill({dtype::bf16, {2}}, [](auto) { return 1; });
  CHECK(values(run(pt::def<pt::op::scatter>, {x, index, ones}, {1})) == std::vector<double>{258});
}

TEST_CASE("attributes of movement ops are printed and parsed back") {
  const auto text_of = [](const pt::op_def& op, const std::vector<tensor_type>& operands,
                          const ints& attrs, const tensor_type& declared = {}) {
    pt::builder b;
    std::vector<pt::value_id> v;
    for (const auto& t : operands) v.push_back(pt::ops::parameter(b, "x", t));
    const pt::value_id r = b.emit(op, v, attrs, declared);
    REQUIRE_MESSAGE(r >= 0, data::str(b.p.error.message));
    pt::text out;
    pt::print_context print{b.p, b.p.producer(r), nullptr, out};
    op.print(print);
    std::string inside = data::str(out);
    if (!inside.empty()) inside = inside.substr(2, inside.size() - 3);
    pt::vec<std::int64_t> read;
    pt::parse_context parse{inside, operands, b.type(r), read, {}};
    op.parse(parse);
    CHECK_MESSAGE(!parse.error, data::str(parse.error.message));
    CHECK(ints(read.begin(), read.end()) == attrs);
    return inside;
  };
  const tensor_type x{dtype::f32, {8, 6}}, i{dtype::i32, {4}}, s{dtype::i32, {}};
  const auto w = pt::ops::whole;
  CHECK(text_of(pt::def<pt::op::slice>, {x}, {0, 1, w, 4}) == "[:, 1:4]");
  CHECK(text_of(pt::def<pt::op::slice>, {x}, {0, 1, 8, w, 2, 1}) == "[0:8:2, 1:]");
  CHECK(text_of(pt::def<pt::op::slice>, {x}, {0, 0, w, w, 3, 1}) == "[::3, :]");
  CHECK(text_of(pt::def<pt::op::slice>, {{dtype::f32, {}}}, {}) == "[]");
  CHECK(text_of(pt::def<pt::op::pad>, {x, {dtype::f32, {}}}, {0, -1, 2, 0, 0, 0}) ==
        "low=[0, -1], high=[2, 0]");
  CHECK(text_of(pt::def<pt::op::pad>, {x, {dtype::f32, {}}}, {0, 1, 2, 0, 0, 3}) ==
        "low=[0, 1], high=[2, 0], interior=[0, 3]");
  CHECK(text_of(pt::def<pt::op::reverse>, {x}, {0, 1}) == "dims=[0, 1]");
  CHECK(text_of(pt::def<pt::op::dynamic_slice>, {x, s, s}, {w, 2}) == "sizes=[-1, 2]");
  CHECK(text_of(pt::def<pt::op::gather>, {x, i}, {}) == "");
  CHECK(text_of(pt::def<pt::op::gather>, {x, i}, {1, 0, 1, 1, 0, 0, 1, 1, 1, w, 1}) ==
        "offset_dims=[0], collapsed_slice_dims=[1], start_index_map=[1], index_vector_dim=1, "
        "slice_sizes=[-1, 1]");
  CHECK(text_of(pt::def<pt::op::scatter>, {i, {dtype::f32, {4, 6}}}, {1}, x) == "add");
  CHECK(text_of(pt::def<pt::op::scatter>, {x, i, {dtype::f32, {4, 5}}},
                {0, 1, 1, 1, 0, 0, 0, 1, 0, 1}) ==
        "assign, offset_dims=[1], collapsed_slice_dims=[0], start_index_map=[0], "
        "index_vector_dim=1");
  const auto refused = [](const pt::op_def& op, std::string_view in) {
    const tensor_type operands[] = {{dtype::f32, {8, 6}}, {dtype::i32, {4}}};
    pt::vec<std::int64_t> read;
    const tensor_type declared;
    pt::parse_context parse{in, operands, declared, read, {}};
    op.parse(parse);
    return data::str(parse.error.message).substr(0, 4) == "P011";
  };
  for (const char* in : {"", "[:]", "[:, 1:2", "[:, 1]", "[:, 1:2]x", "[:,1:2]", "[:, -1:2]"})
    CHECK_MESSAGE(refused(pt::def<pt::op::slice>, in), in);
  CHECK(refused(pt::def<pt::op::scatter>, "sub"));
  CHECK(refused(pt::def<pt::op::gather>, "sizes=[1]"));
}

TEST_CASE("functions of NumPy and JAX have their values") {
  const auto p = pt::trace(
      [](auto x, auto i, auto j) {
        const auto [left, right] = pt::split<2, 1>(x);
        const auto zero = pt::convert<int>(pt::sum(j)) * 0;
        using pt::output;
        return std::tuple{
            output("take0", pt::take<0>(x, i)),
            output("take1", pt::take<-1>(x, i)),
            output("along", pt::take_along_axis<1>(x, j)),
            output("left", left),
            output("right", right),
            output("stacked", pt::stack<1>(left, right)),
            output("last", pt::stack<-1>(left, right)),
            output("squeezed", pt::squeeze<0, -1>(pt::expand_dims<0>(pt::expand_dims<-1>(x)))),
            output("roll1", pt::roll<1, 1>(x)),
            output("roll-5", pt::roll<-5, -1>(x)),
            output("flip", pt::flip<-1>(x)),
            output("both", pt::reverse<0, 1>(x)),
            output("odd", pt::slice<1, 1, 4, 2>(x)),
            output("box", pt::slice<pt::axes<1, 0>, pt::axes<3, 4>, pt::axes<1, 3>>(x)),
            output("pad", pt::pad<pt::axes<0, 1>, pt::axes<0, -1>>(x, 9)),
            output("at", pt::dynamic_slice<pt::axes<1, 2>>(x, zero + 1, zero + 5)),
            output("put", pt::dynamic_update_slice(x, left, zero + 7, zero + 1)),
            output("set", pt::scatter_set(x, i, pt::take<0>(x, i) * 0)),
            output("add", pt::scatter_add(x, i, pt::take<0>(x, i))),
            output("max", pt::scatter_max(x, i, pt::take<0>(x, i) * 0 + 5)),
            output("min", pt::scatter_min(x, i, pt::take<0>(x, i) * 0 + 5)),
            output("times", pt::scatter_multiply(x, i, pt::take<0>(x, i) * 0 + 2)),
            output("rows", pt::scatter_add(i, pt::take<0>(x, i), pt::extent<2>{}))};
      },
      pt::input<float, 3, 4>("x"), pt::input<int, 3>("i"), pt::input<int, 3, 2>("j"));
  const xt::xarray<float> x{{0, 1, 2, 3}, {4, 5, 6, 7}, {8, 9, 10, 11}};
  const xt::xarray<std::int32_t> i{2, 0, 2}, j{{3, 0}, {1, 1}, {0, 2}};
  const auto r = pt::evaluate(p, x, i, j);
  using a = xt::xarray<float>;
  CHECK(pt::equal(r["take0"], a{{8, 9, 10, 11}, {0, 1, 2, 3}, {8, 9, 10, 11}}));
  CHECK(pt::equal(r["take1"], a{{2, 0, 2}, {6, 4, 6}, {10, 8, 10}}));
  CHECK(pt::equal(r["along"], a{{3, 0}, {5, 5}, {8, 10}}));
  CHECK(pt::equal(r["left"], a{{0, 1}, {4, 5}, {8, 9}}));
  CHECK(pt::equal(r["right"], a{{2, 3}, {6, 7}, {10, 11}}));
  CHECK(pt::equal(r["stacked"], a{{{0, 1}, {2, 3}}, {{4, 5}, {6, 7}}, {{8, 9}, {10, 11}}}));
  CHECK(pt::equal(r["last"], a{{{0, 2}, {1, 3}}, {{4, 6}, {5, 7}}, {{8, 10}, {9, 11}}}));
  CHECK(pt::equal(r["squeezed"], x));
  CHECK(pt::equal(r["roll1"], a{{3, 0, 1, 2}, {7, 4, 5, 6}, {11, 8, 9, 10}}));
  CHECK(pt::equal(r["roll-5"], a{{1, 2, 3, 0}, {5, 6, 7, 4}, {9, 10, 11, 8}}));
  CHECK(pt::equal(r["flip"], a{{3, 2, 1, 0}, {7, 6, 5, 4}, {11, 10, 9, 8}}));
  CHECK(pt::equal(r["both"], a{{11, 10, 9, 8}, {7, 6, 5, 4}, {3, 2, 1, 0}}));
  CHECK(pt::equal(r["odd"], a{{1, 3}, {5, 7}, {9, 11}}));
  CHECK(pt::equal(r["box"], a{{4, 7}, {8, 11}}));
  CHECK(pt::equal(r["pad"], a{{9, 0, 1, 2}, {9, 4, 5, 6}, {9, 8, 9, 10}}));
  CHECK(pt::equal(r["at"], a{{6, 7}}));
  CHECK(pt::equal(r["put"], a{{0, 0, 1, 3}, {4, 4, 5, 7}, {8, 8, 9, 11}}));
  CHECK(pt::equal(r["set"], a{{0, 0, 0, 0}, {4, 5, 6, 7}, {0, 0, 0, 0}}));
  CHECK(pt::equal(r["add"], a{{0, 2, 4, 6}, {4, 5, 6, 7}, {24, 27, 30, 33}}));
  CHECK(pt::equal(r["max"], a{{5, 5, 5, 5}, {4, 5, 6, 7}, {8, 9, 10, 11}}));
  CHECK(pt::equal(r["min"], a{{0, 1, 2, 3}, {4, 5, 6, 7}, {5, 5, 5, 5}}));
  CHECK(pt::equal(r["times"], a{{0, 2, 4, 6}, {4, 5, 6, 7}, {32, 36, 40, 44}}));
  CHECK(pt::equal(r["rows"], a{{0, 1, 2, 3}, {0, 0, 0, 0}}));
}

// d/dx of sum(g * g), where g is the gradient of sum(y^3), compared with differences of it.
TEST_CASE("second derivatives of movement ops agree with differences") {
  const auto check = [](auto f) {
    const auto cube = [&](auto x) {
      const auto y = f(x);
      return pt::sum(y * y * y);
    };
    const auto square = [&](auto x) {
      const auto g = pt::grad(cube, x);
      return pt::sum(g * g);
    };
    const auto p = pt::trace(
        [&](auto x) {
          return std::tuple{pt::output("loss", square(x)), pt::output("g", pt::grad(square, x))};
        },
        pt::input<double, 3, 4>("x"));
    const auto at_x = [&](std::int64_t moved, double by) {
      return pt::evaluate(p, data::fill({dtype::f64, {3, 4}}, [&](std::int64_t k) {
                            return 0.3 + 0.07 * static_cast<double>(k * 5 % 12) +
                                   (k == moved ? by : 0);
                          }));
    };
    const double h = 1e-5;
    const auto r = at_x(-1, 0);
    for (std::int64_t k = 0; k < 12; ++k) {
      const double expected = (at_x(k, h)["loss"].template item<double>() -
                               at_x(k, -h)["loss"].template item<double>()) /
                              (2 * h);
      CHECK(r["g"].template data<double>()[k] == doctest::Approx(expected).epsilon(1e-6));
    }
  };
  // Indices 0, 3 and 6, the last of them out of bounds.
  const auto indices = [](auto x) { return pt::iota<int, 0>(x, pt::extent<3>{}) * 3; };
  check([](auto x) { return pt::slice<1, 0, 4, 3>(x); });
  check([](auto x) { return pt::pad<pt::axes<1, -1>, pt::axes<0, 2>, pt::axes<0, 1>>(x, 0.5); });
  check([](auto x) { return pt::pad<pt::axes<1, 0>, pt::axes<0, 2>>(x, pt::sum(x)); });
  check([](auto x) { return pt::reverse<0>(x) * x; });
  check([&](auto x) { return pt::take<1>(x, indices(x)); });
  check([&](auto x) { return pt::scatter_add(x, indices(x), x); });
  check([&](auto x) { return pt::scatter_set(x, indices(x), x * 2); });
  check([&](auto x) { return pt::scatter_max(x, indices(x), x * 2); });
  check([&](auto x) { return pt::scatter_min(x * 3, indices(x), x * 2); });
}

TEST_CASE("updates that multiply have no derivative") {
  std::string message;
  try {
    pt::trace(
        [](auto x, auto i) {
          return pt::grad([&](auto y) { return pt::sum(pt::scatter_multiply(y, i, y)); }, x);
        },
        pt::input<float, 3, 4>("x"), pt::input<int, 3>("i"));
  } catch (const pt::error& e) {
    message = e.what();
  }
  CHECK(message ==
        "G002 grad: op scatter (tensor<3x4xf32>) has no derivative rule for updates that multiply");
}

TEST_CASE("slices of some dimensions, and slices to the end") {
  const auto f = pt::trace(
      [](auto x) {
        return std::tuple{pt::output("end", pt::slice<1, 2>(x)),
                          pt::output("last", pt::slice<-1, 1, pt::to_end, 2>(x)),
                          pt::output("box", pt::slice<pt::along<2, 1, 3>, pt::along<0, 1>>(x)),
                          pt::output("one", pt::slice<pt::along<-2, 0, 2>>(x))};
      },
      pt::input<float, pt::dyn, 3, 4>("x", 2));
  const array x = numbers(dtype::f32, {2, 3, 4});
  const auto r = pt::evaluate(f, x);
  const auto is_slice = [&](const array& y, const ints& starts, const ints& strides) {
    const std::vector<double> from = values(x), to = values(y);
    std::size_t i = 0;
    bool same = true;
    for_each(y.shape(), [&](const ints& at) {
      std::int64_t place = 0;
      for (std::size_t d = 0; d < 3; ++d)
        place = place * x.shape()[static_cast<int>(d)] + starts[d] + at[d] * strides[d];
      same = same && from[static_cast<std::size_t>(place)] == to[i++];
    });
    return same;
  };
  CHECK(r["end"].shape() == shape{2, 1, 4});
  CHECK(is_slice(r["end"], {0, 2, 0}, {1, 1, 1}));
  CHECK(r["last"].shape() == shape{2, 3, 2});
  CHECK(is_slice(r["last"], {0, 0, 1}, {1, 1, 2}));
  CHECK(r["box"].shape() == shape{1, 3, 2});
  CHECK(is_slice(r["box"], {1, 0, 1}, {1, 1, 1}));
  CHECK(r["one"].shape() == shape{2, 2, 4});
  CHECK(is_slice(r["one"], {0, 0, 0}, {1, 1, 1}));
  // Properties that types do not show are checked when tracing.
  const auto why = [](const auto& model) {
    return data::thrown([&] { pt::trace(model, pt::input<float, pt::dyn>("x", 4)); });
  };
  CHECK(why([](auto x) { return pt::slice<0, 5>(x); }).starts_with("S115 slice: bounds [5, "));
  CHECK(why([](auto x) { return pt::slice<0, 1, 6>(x); }).starts_with("S115 slice: bounds [1, 6)"));
}

TEST_CASE("matmul accepts vectors as NumPy does") {
  const auto f = pt::trace(
      [](auto m, auto v, auto w, auto batch) {
        return std::tuple{
            pt::output("mv", matmul(m, v)),
            pt::output("wm", matmul(w, m)),
            pt::output("vv", matmul(v, v)),
            pt::output("bv", matmul(batch, v)),
            pt::output("wb", matmul(w, batch)),
            pt::output("g", pt::grad([&](auto u) { return sum(matmul(matmul(m, u), w)); }, v))};
      },
      pt::input<float, 2, 3>("m"), pt::input<float, 3>("v"), pt::input<float, 2>("w"),
      pt::input<float, 2, 2, 3>("batch"));
  const xt::xarray<float> m = {{1, 2, 3}, {4, 5, 6}}, v = {1, 0, 2}, w = {1, -1};
  const xt::xarray<float> batch = {{{1, 2, 3}, {4, 5, 6}}, {{7, 8, 9}, {10, 11, 12}}};
  const auto r = pt::evaluate(f, m, v, w, batch);
  CHECK(pt::all_close(r["mv"], xt::xarray<float>{7, 16}));
  CHECK(pt::all_close(r["wm"], xt::xarray<float>{-3, -3, -3}));
  CHECK(r["vv"].item<float>() == 5);
  CHECK(r["vv"].shape().rank == 0);
  CHECK(pt::all_close(r["bv"], xt::xarray<float>{{7, 16}, {25, 34}}));
  CHECK(pt::all_close(r["wb"], xt::xarray<float>{{-3, -3, -3}, {-3, -3, -3}}));
  CHECK(pt::all_close(r["g"], xt::xarray<float>{-3, -3, -3}));
  // Along an axis, too.
  const auto p =
      pt::partition(f, pt::mesh{{"B", 2}}, pt::schedule(pt::manual("B", {{"m", 0}, {"batch", 0}})));
  CHECK(pt::all_close(pt::emulate(p, m, v, w, batch), r));
}

TEST_CASE("an op that run_op cannot run is an error") {
  const array x = numbers(dtype::f32, {4}), one(1.f);
  const ints along = {4, 0};
  const tensor_type index{dtype::i64, {}};
  const auto why = [](const auto& run) { return data::thrown(run); };
  CHECK(why([&] {
          pt::run_op(pt::def<pt::op::shard_start>, std::vector<array>{}, along, index);
        }).starts_with("R015 run: shard_start works on the devices of a mesh"));
  pt::collective what;
  what.kind = pt::collective::all_reduce;
  what.axes.push_back(0, pt::no_dim);
  const auto attrs = pt::op::all_reduce::attributes_of(what);
  const std::span<const std::int64_t> list(attrs.list, static_cast<std::size_t>(attrs.count));
  CHECK(why([&] {
          pt::run_op(pt::def<pt::op::all_reduce>, std::vector{x}, list, x.type());
        }).starts_with("R015 run: all_reduce works on the devices of a mesh"));
  CHECK(why([&] {
          pt::run_op(pt::def<pt::op::parameter>, std::vector<array>{}, {}, index);
        }).starts_with("R005 parameter"));
  CHECK(why([&] {
          pt::run_op(pt::def<pt::op::scan>, std::vector{x}, {}, x.type());
        }).starts_with("R007 scan"));
  CHECK(why([&] { pt::run_op(pt::def<pt::op::add>, std::vector{x}, {}, x.type()); }) ==
        "R001 run: add has 2 operands; 1 arrays are given");
  CHECK(why([&] {
          pt::run_op(pt::def<pt::op::add>, std::vector{x, x}, {}, one.type());
        }) == "R002 run: result 0 of add is tensor<4xf32>, not tensor<f32>");
  // A program without a mesh runs, too.
  pt::program p;
  p.outputs.push_back({pt::append_shard_start(p, 4, {}, dtype::i64), {}});
  CHECK(pt::evaluate(p).only().item<std::int64_t>() == 0);  // along no axis
  pt::axis_list axes;
  axes.push_back(0);
  pt::program q;
  q.outputs.push_back({pt::append_shard_start(q, 4, axes, dtype::i64), {}});
  CHECK(why([&] { pt::evaluate(q); }).starts_with("R015 run: shard_start"));
}
