// Convolution, windows and running sums compared with loops over indices, with random attributes.
#include <cmath>
#include <cstdint>
#include <limits>
#include <vector>

#include <doctest/doctest.h>

#include <partita/prove/prove.hpp>

#include "../data.hpp"

using namespace partita;

namespace {

using position = std::vector<std::int64_t>;

void for_each(const shape& s, auto f) {
  position at(static_cast<std::size_t>(s.rank), 0);
  for (std::int64_t n = 0; n < s.elements(); ++n) {
    f(at);
    for (int d = s.rank; d-- > 0 && ++at[static_cast<std::size_t>(d)] == s[d];)
      at[static_cast<std::size_t>(d)] = 0;
  }
}
std::int64_t offset(const shape& s, const position& at) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s[d] + at[static_cast<std::size_t>(d)];
  return n;
}
/// Returns the element under a tap by the definition, on the dilated and padded dimension.
std::int64_t under(const window_dim& w, std::int64_t o, std::int64_t k, std::int64_t n) {
  const std::int64_t at = o * w.stride + k * w.dilation - w.low;
  for (std::int64_t i = 0; i < n; ++i)
    if (i * w.base_dilation == at) return i;
  return -1;
}
/// Counts the windows one by one.
std::int64_t count_windows(const window_dim& w, std::int64_t n) {
  const std::int64_t dilated = n == 0 ? 0 : (n - 1) * w.base_dilation + 1;
  const std::int64_t padded = dilated + w.low + w.high;
  const std::int64_t length = w.size == 0 ? 0 : (w.size - 1) * w.dilation + 1;
  std::int64_t count = 0;
  if (padded > 0)
    for (std::int64_t begin = 0; begin + length <= padded; begin += w.stride) ++count;
  return count;
}
window_dim draw(data::random& r, bool dilated = true) {
  window_dim w;
  w.size = r.in(1, 3);
  if (r.one_in(3)) return w;
  w.stride = r.in(1, 3);
  if (dilated) w.base_dilation = r.in(1, 3), w.dilation = r.in(1, 3);
  w.low = r.in(-2, 3);
  w.high = r.in(-2, 3);
  return w;
}
std::vector<std::int64_t> permutation(data::random& r, std::int64_t n) {
  std::vector<std::int64_t> p;
  for (std::int64_t i = 0; i < n; ++i) p.insert(p.begin() + r.in(0, i), i);
  return p;
}
/// Returns an exact result as an element: rounded once, or wrapped.
double element(dtype t, double v) {
  if (t == dtype::u8) return static_cast<std::uint8_t>(static_cast<std::int64_t>(v));
  if (t == dtype::bf16) return static_cast<double>(static_cast<float>(bf16(static_cast<float>(v))));
  if (t == dtype::f16) return static_cast<double>(static_cast<float>(f16(static_cast<float>(v))));
  return v;
}
array values_of(const array& a) { return as_type(a, dtype::f64); }

/// Emits, infers and runs one op.
array run(const op_def& op, const std::vector<array>& operands,
          const std::vector<std::int64_t>& attrs) {
  builder b;
  std::vector<value_id> v;
  for (const auto& a : operands) v.push_back(ops::parameter(b, "x", a.type()));
  const value_id r = b.emit(op, v, attrs);
  REQUIRE_MESSAGE(r >= 0, data::str(b.p.error.message));
  return run_op(op, operands, attrs, b.p.type(r));
}
const dtype numbers[] = {dtype::f32, dtype::f64, dtype::bf16, dtype::f16,
                         dtype::i32, dtype::i64, dtype::u8};

}  // namespace

TEST_CASE("convolution: random dimension numbers, windows, groups and types") {
  data::random r{11};
  int empty = 0, negative = 0, grouped = 0;
  for (int round = 0; round < 2000; ++round) {
    const int spatial = static_cast<int>(r.one_in(20) ? r.in(4, 6) : r.in(0, 3));
    const bool large = spatial > 3;
    const auto rank = static_cast<std::size_t>(spatial + 2);
    const std::int64_t feature_groups = r.one_in(3) ? r.in(2, 3) : 1;
    const std::int64_t batch_groups = feature_groups == 1 && r.one_in(4) ? r.in(2, 3) : 1;
    const std::int64_t inputs = r.in(feature_groups > 1 ? 1 : 0, 3);
    const std::int64_t outputs = r.in(r.one_in(10) ? 0 : 1, 3) * feature_groups * batch_groups;
    const std::int64_t batch = r.in(r.one_in(10) ? 0 : 1, 2) * batch_groups;
    const auto ln = permutation(r, spatial + 2), rn = permutation(r, spatial + 2),
               on = permutation(r, spatial + 2);
    shape ls, rs;
    ls.rank = rs.rank = spatial + 2;
    ls[static_cast<int>(ln[0])] = batch;
    ls[static_cast<int>(ln[1])] = inputs * feature_groups;
    rs[static_cast<int>(rn[0])] = inputs;
    rs[static_cast<int>(rn[1])] = outputs;
    std::vector<window_dim> w;
    for (std::size_t d = 2; d < rank; ++d) {
      w.push_back(draw(r));
      w.back().reversed = r.one_in(3);
      if (large) w.back().size = r.in(1, 2);
      if (r.one_in(30)) w.back().size = 0;
      ls[static_cast<int>(ln[d])] = r.in(r.one_in(20) ? 0 : 1, large ? 2 : 6);
      rs[static_cast<int>(rn[d])] = w.back().size;
    }
    dtype t = r.pick(numbers);
    const array x = data::integers({t, ls}, r), y = data::integers({t, rs}, r);
    builder b;
    const value_id p = ops::parameter(b, "x", x.type()), q = ops::parameter(b, "y", y.type());
    const value_id v = ops::convolution(b, p, q, {ln, rn, on, w, feature_groups, batch_groups});
    REQUIRE_MESSAGE(v >= 0, data::str(b.p.error.message));
    const auto stored = b.p.attrs(b.p.producer(v));
    const std::vector<std::int64_t> attrs(stored.begin(), stored.end());
    const tensor_type type = b.type(v);

    shape to;
    to.rank = spatial + 2;
    to[static_cast<int>(on[0])] = batch / batch_groups;
    to[static_cast<int>(on[1])] = outputs;
    for (std::size_t d = 2; d < rank; ++d) {
      to[static_cast<int>(on[d])] = count_windows(w[d - 2], ls[static_cast<int>(ln[d])]);
      negative += w[d - 2].low < 0;
    }
    REQUIRE(type.shape == to);
    empty += to.elements() == 0;
    grouped += feature_groups > 1;
    const array got = values_of(run_op(def<op::convolution>, std::vector{x, y}, attrs, type));
    const array xs = values_of(x), ys = values_of(y);
    shape taps;
    for (const auto& each : w) taps.push_back(each.size);
    std::int64_t wrong = 0, products = 0;
    for_each(to, [&](const position& o) {
      const auto out_at = [&](std::size_t i) { return o[static_cast<std::size_t>(on[i])]; };
      const std::int64_t group =
          out_at(1) / std::max<std::int64_t>(1, outputs / (feature_groups * batch_groups));
      double sum = 0;
      for_each(taps, [&](const position& k) {
        for (std::int64_t i = 0; i < inputs; ++i) {
          position at_x(rank), at_y(rank);
          bool inside = true;
          at_x[static_cast<std::size_t>(ln[0])] =
              out_at(0) + (batch_groups > 1 ? group * (batch / batch_groups) : 0);
          at_x[static_cast<std::size_t>(ln[1])] = i + (feature_groups > 1 ? group * inputs : 0);
          at_y[static_cast<std::size_t>(rn[0])] = i;
          at_y[static_cast<std::size_t>(rn[1])] = out_at(1);
          for (std::size_t d = 2; d < rank; ++d) {
            const auto& each = w[d - 2];
            const std::int64_t e = under(each, out_at(d), k[d - 2], ls[static_cast<int>(ln[d])]);
            inside = inside && e >= 0;
            at_x[static_cast<std::size_t>(ln[d])] = e;
            at_y[static_cast<std::size_t>(rn[d])] =
                each.reversed ? each.size - 1 - k[d - 2] : k[d - 2];
          }
          if (!inside) continue;
          ++products;
          sum += xs.data<double>()[offset(ls, at_x)] * ys.data<double>()[offset(rs, at_y)];
        }
      });
      wrong += got.data<double>()[offset(to, o)] != element(t, sum);
    });
    CAPTURE(round);
    CHECK(wrong == 0);
    const tensor_type operands[] = {x.type(), y.type()};
    CHECK(op::convolution::flops({operands, type, attrs}) == 2 * products);
  }
  CHECK(empty > 50);
  CHECK(negative > 100);
  CHECK(grouped > 100);
}

TEST_CASE("convolution: more than one block of windows, and of taps") {
  data::random r{5};
  const std::int64_t same[] = {0, 3, 1, 2}, weights[] = {2, 3, 0, 1};
  for (const auto& [features, size] : {std::pair{40, 3}, {3, 9}, {300, 2}, {1, 30}}) {
    const window_dim w[] = {{size, 1, 1, 1, 1, 1, false}, {size, 2, 1, 1, 0, 2, false}};
    const array x = data::integers({dtype::f32, {2, 40, 43, features}}, r);
    const array y = data::integers({dtype::f32, {size, size, features, 5}}, r);
    builder b;
    const value_id p = ops::parameter(b, "x", x.type()), q = ops::parameter(b, "y", y.type());
    const value_id v = ops::convolution(b, p, q, {same, weights, same, w});
    REQUIRE(v >= 0);
    const shape to = b.type(v).shape;
    b.p.outputs.push_back({v, b.p.intern("z")});
    const array z = evaluate(b.p, x, y).only();
    std::int64_t wrong = 0;
    for_each(to, [&](const position& o) {
      if ((o[1] * 7 + o[2] * 3 + o[3]) % 11 != 0) return;  // some of them
      float sum = 0;
      for (std::int64_t i = 0; i < size; ++i)
        for (std::int64_t j = 0; j < size; ++j) {
          const std::int64_t row = under(w[0], o[1], i, 40), column = under(w[1], o[2], j, 43);
          if (row < 0 || column < 0) continue;
          for (std::int64_t f = 0; f < features; ++f)
            sum += x.data<float>()[offset(x.shape(), {o[0], row, column, f})] *
                   y.data<float>()[offset(y.shape(), {i, j, f, o[3]})];
        }
      wrong += z.data<float>()[offset(to, o)] != sum;
    });
    CHECK(wrong == 0);
  }
}

TEST_CASE("reduce_window: random windows, every combiner and type") {
  data::random r{3};
  for (int round = 0; round < 1500; ++round) {
    const int rank = static_cast<int>(r.in(0, 4));
    shape s, taps, to;
    std::vector<window_dim> w;
    for (int d = 0; d < rank; ++d) {
      w.push_back(draw(r));
      s.push_back(r.in(r.one_in(20) ? 0 : 1, 6));
      taps.push_back(w.back().size);
      to.push_back(count_windows(w.back(), s[d]));
    }
    const auto c = static_cast<combiner>(r.in(1, 6));
    const bool logical = c == combiner::logical_and || c == combiner::logical_or;
    const dtype integers[] = {dtype::i32, dtype::i64, dtype::u8, dtype::boolean};
    const dtype t = logical ? r.pick(integers) : r.pick(numbers);
    const array x = data::integers({t, s}, r, -1, 2);
    vec<std::int64_t> stored;
    stored.push_back(static_cast<std::int64_t>(c));
    op::store_windows(stored, w);
    const array got = run(def<op::reduce_window>, {x}, {stored.begin(), stored.end()});
    REQUIRE(got.shape() == to);
    const array xs = values_of(x), zs = values_of(got);
    const double inf = std::numeric_limits<double>::infinity();
    std::int64_t wrong = 0;
    for_each(to, [&](const position& o) {
      std::vector<double> seen;
      for_each(taps, [&](const position& k) {
        position at(o.size());
        bool inside = true;
        for (std::size_t d = 0; d < o.size(); ++d) {
          at[d] = under(w[d], o[d], k[d], s[static_cast<int>(d)]);
          inside = inside && at[d] >= 0;
        }
        if (inside) seen.push_back(xs.data<double>()[offset(s, at)]);
      });
      const bool floats = is_floating(t);
      const double least = floats ? -inf : static_cast<double>(op::least_integer(t)),
                   most = floats ? inf : static_cast<double>(op::greatest_integer(t));
      double z = c == combiner::max        ? least
                 : c == combiner::min      ? most
                 : c == combiner::multiply ? 1
                                           : 0;
      std::int64_t bits = c == combiner::logical_and ? -1 : 0;
      for (double e : seen) {
        if (c == combiner::add) z += e;
        if (c == combiner::multiply) z *= e;
        if (c == combiner::max) z = std::max(z, e);
        if (c == combiner::min) z = std::min(z, e);
        if (c == combiner::logical_and) bits &= static_cast<std::int64_t>(e);
        if (c == combiner::logical_or) bits |= static_cast<std::int64_t>(e);
      }
      if (logical) z = static_cast<double>(t == dtype::boolean ? bits & 1 : bits);
      wrong += zs.data<double>()[offset(to, o)] != element(t, z);
    });
    CAPTURE(round);
    CHECK(wrong == 0);
  }
}

TEST_CASE("select_and_scatter and select_and_gather: random windows, ties, every type") {
  data::random r{7};
  for (int round = 0; round < 1000; ++round) {
    const int rank = static_cast<int>(r.in(0, 3));
    shape s, taps, to;
    std::vector<window_dim> w;
    for (int d = 0; d < rank; ++d) {
      w.push_back(r.one_in(3) ? window_dim{} : draw(r));
      s.push_back(r.in(r.one_in(20) ? 0 : 1, 6));
      taps.push_back(w.back().size);
      to.push_back(count_windows(w.back(), s[d]));
    }
    const dtype t = r.pick(numbers);
    const std::int64_t select = r.in(0, 1);
    const array x = data::integers({t, s}, r, 0, 3), values = data::integers({t, s}, r),
                source = data::integers({t, to}, r);
    vec<std::int64_t> stored;
    stored.push_back(select);
    op::store_windows(stored, w);
    const std::vector<std::int64_t> attrs(stored.begin(), stored.end());
    const array scattered = values_of(run(def<op::select_and_scatter>, {x, source}, attrs));
    const array gathered = values_of(run(def<op::select_and_gather>, {x, values}, attrs));
    const array xs = values_of(x), vs = values_of(values), from = values_of(source);
    std::vector<double> sums(static_cast<std::size_t>(s.elements()), 0);
    std::int64_t wrong = 0;
    for_each(to, [&](const position& o) {
      std::int64_t selected = -1;
      for_each(taps, [&](const position& k) {
        position at(o.size());
        bool inside = true;
        for (std::size_t d = 0; d < o.size(); ++d) {
          at[d] = under(w[d], o[d], k[d], s[static_cast<int>(d)]);
          inside = inside && at[d] >= 0;
        }
        if (!inside) return;
        const std::int64_t e = offset(s, at);
        const double* v = xs.data<double>();
        if (selected < 0 || (select == 0 ? v[e] > v[selected] : v[e] < v[selected])) selected = e;
      });
      const std::int64_t p = offset(to, o);
      if (selected >= 0) sums[static_cast<std::size_t>(selected)] += from.data<double>()[p];
      wrong += gathered.data<double>()[p] != (selected < 0 ? 0 : vs.data<double>()[selected]);
    });
    for (std::int64_t i = 0; i < s.elements(); ++i) {
      const double sum = sums[static_cast<std::size_t>(i)];
      wrong += scattered.data<double>()[i] != element(t, sum);
    }
    CAPTURE(round);
    CHECK(wrong == 0);
  }
}

TEST_CASE("cumsum: both directions, with and without the element, every type") {
  data::random r{9};
  for (dtype t : numbers)
    for (const shape& s : {shape{1}, {7}, {0}, {3, 5}, {2, 300, 3}, {4, 2, 300}, {2, 0, 3}})
      for (std::int64_t dim = 0; dim < s.rank; ++dim)
        for (std::int64_t reverse : {0, 1})
          for (std::int64_t exclusive : {0, 1}) {
            const array x = data::integers({t, s}, r, 0, 1), xs = values_of(x);
            const array got = values_of(run(def<op::cumsum>, {x}, {dim, reverse, exclusive}));
            std::int64_t wrong = 0;
            for_each(s, [&](position at) {  // line by line, from its first element on
              std::int64_t& along = at[static_cast<std::size_t>(dim)];
              if (along != 0) return;
              const std::int64_t n = s[static_cast<int>(dim)];
              double before = 0;
              for (std::int64_t i = 0; i < n; ++i) {
                along = reverse ? n - 1 - i : i;
                const double sum = before + xs.data<double>()[offset(s, at)];
                wrong += got.data<double>()[offset(s, at)] != element(t, exclusive ? before : sum);
                before = sum;
              }
            });
            CHECK(wrong == 0);
          }
  // Each element of a long sum in binary32 is rounded once.
  const array tenths = data::fill({dtype::f32, {1 << 20}}, [](std::int64_t) { return 0.1f; });
  const array sums = run(def<op::cumsum>, {tenths}, {0, 0, 0});
  const double tenth = static_cast<double>(0.1f);
  CHECK(sums.data<float>()[(1 << 20) - 1] == static_cast<float>(tenth * (1 << 20)));
}

namespace {

namespace pt = partita;

/// Gradients of a grouped convolution (depthwise: one channel per group) whose channels are
/// sharded.
template <std::int64_t Groups, std::int64_t Outputs>
constexpr auto grouped_step = [] {
  constexpr auto loss = [](auto both) {
    const auto y = pt::conv<pt::conv_options{.padding = pt::same_padding, .groups = Groups}>(
        std::get<0>(both), std::get<1>(both));
    return pt::sum(y * y);
  };
  return pt::partition(
      pt::trace(
          [loss](auto x, auto w) {
            return pt::grad(loss, std::tuple{x, w});
          },
          pt::input<float, 2, 6, 8>("x"), pt::input<float, 3, 8 / Groups, Outputs>("w")),
      pt::mesh{{"M", 4}}, pt::schedule(pt::manual("M", {{"x", 2}})));
};
// Each device has its own channels throughout, so nothing is sent.
static_assert(pt::check<grouped_step<8, 8>>.collectives == pt::collectives{});
static_assert(pt::check<grouped_step<8, 16>>.collectives == pt::collectives{});
static_assert(pt::check<grouped_step<4, 12>>.collectives == pt::collectives{});

}  // namespace

TEST_CASE("gradients of grouped and depthwise convolutions keep channels in place") {
  const auto check = [](const pt::partitioned& p) {
    const auto in = data::arguments(p.source);
    CHECK(pt::equal(pt::emulate(p, in), pt::evaluate(p.source, in)));
    CHECK(pt::equal(pt::temporal(p, in), pt::evaluate(p.source, in)));
    CHECK(pt::prove(p).proved);
    for (const auto& each : p.device.outputs) CHECK(each.count == 1);
  };
  check(grouped_step<8, 8>());
  check(grouped_step<8, 16>());
  check(grouped_step<4, 12>());
}
