// The collectives compared with their definitions, device by device, on the mesh of listing 9.
#include <doctest/doctest.h>

#include <cmath>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;

namespace {

constexpr pt::mesh mesh{{"x1", 2}, {"x2", 4}, {"x3", 8}};
constexpr int axes = mesh.rank;

using position = std::vector<std::int64_t>;

std::int64_t offset(const shape& s, const position& at) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s[d] + at[static_cast<std::size_t>(d)];
  return n;
}
/// Calls f with every position of a shape.
void for_each(const shape& s, auto f) {
  position at(static_cast<std::size_t>(s.rank), 0);
  for (std::int64_t n = 0; n < s.elements(); ++n) {
    f(at);
    for (int d = s.rank - 1; d >= 0 && ++at[static_cast<std::size_t>(d)] == s[d]; --d)
      at[static_cast<std::size_t>(d)] = 0;
  }
}
shape device_shape() {
  shape s;
  for (int a = 0; a < axes; ++a) s.push_back(mesh.size(a));
  return s;
}
/// (devices..., local...)
shape by_device(const shape& local) {
  shape s = device_shape();
  for (auto e : local) s.push_back(e);
  return s;
}

/// Runs a collective on operands that differ per device: (devices..., local...) in and out.
pt::results run(const pt::op_def& op, const ints& attrs, const std::vector<shape>& from,
                const std::vector<shape>& to, const std::vector<pt::array>& values) {
  pt::device_program d;
  d.mesh = mesh;
  pt::layout own;  // one device per row
  for (int a = 0; a < axes; ++a) own.push_back(a, a);
  const auto alone = [](const shape& local) {
    shape s{1, 1, 1};
    for (auto e : local) s.push_back(e);
    return s;
  };
  const auto reshaped = [&](pt::value_id x, dtype t, const shape& s) {
    return d.local.append(pt::def<pt::op::reshape>, std::vector{x}, {}, {t, s});
  };
  std::vector<pt::value_id> operands;
  for (std::size_t i = 0; i < values.size(); ++i) {
    const dtype t = values[i].element();
    const auto p = d.local.append(pt::def<pt::op::parameter>, {}, {}, {t, alone(from[i])});
    d.local.inputs.push_back(p);
    d.inputs.push_back(own);
    d.input_types.push_back({t, by_device(from[i])});
    operands.push_back(reshaped(p, t, from[i]));
  }
  d.local.append_op(op, operands, attrs);
  std::vector<pt::value_id> made;
  for (std::size_t i = 0; i < values.size(); ++i)
    made.push_back(d.local.append_result({values[i].element(), to[i]}));
  for (std::size_t i = 0; i < values.size(); ++i) {
    const dtype t = values[i].element();
    d.local.outputs.push_back({reshaped(made[i], t, alone(to[i])), {}});
    d.outputs.push_back(own);
    d.output_types.push_back({t, by_device(to[i])});
  }
  return pt::emulate(d, values);
}
pt::array run(const pt::op_def& op, const ints& attrs, const shape& from, const shape& to,
              const pt::array& value) {
  return run(op, attrs, std::vector{from}, std::vector{to}, std::vector{value}).only();
}

pt::array numbers(const shape& local, std::uint64_t seed = 3) {
  data::random r{seed};
  return data::integers({dtype::f32, by_device(local)}, r, -50, 50);
}
/// Elements that the combiner accepts, whose products stay exact.
pt::array numbers_for(pt::combiner c, const shape& local, std::uint64_t seed = 3) {
  data::random r{seed};
  if (c == pt::combiner::multiply) return data::integers({dtype::f64, by_device(local)}, r, -2, 2);
  if (c == pt::combiner::logical_and || c == pt::combiner::logical_or)
    return data::integers({dtype::i64, by_device(local)}, r, 0, 4000);
  return numbers(local, seed);
}

/// (dim, axis) pairs, major to minor within a dimension.
struct pairs {
  ints list;
  /// Returns the block that a device has along a dimension, and the number of blocks.
  std::pair<std::int64_t, std::int64_t> piece(int dim, const position& device) const {
    std::int64_t index = 0, count = 1;
    for (std::size_t i = 0; i < list.size(); i += 2)
      if (list[i] == dim) {
        const auto axis = static_cast<std::size_t>(list[i + 1]);
        index = index * mesh.size(static_cast<int>(axis)) + device[axis];
        count *= mesh.size(static_cast<int>(axis));
      }
    return {index, count};
  }
  bool uses(std::size_t axis) const {
    for (std::size_t i = 0; i < list.size(); i += 2)
      if (list[i + 1] == static_cast<std::int64_t>(axis)) return true;
    return false;
  }
};

/// Calls f with the devices that differ from one device along the axes only.
void for_group(const position& device, auto uses, auto f) {
  for_each(device_shape(), [&](const position& other) {
    for (std::size_t a = 0; a < device.size(); ++a)
      if (!uses(a) && other[a] != device[a]) return;
    f(other);
  });
}

/// Compares every element on every device with `expected(device, position)`.
void check(const pt::array& got, const shape& local, auto expected) {
  const pt::array wide = pt::as_type(got, dtype::f64);
  std::int64_t wrong = 0;
  for_each(device_shape(), [&](const position& device) {
    for_each(local, [&](const position& at) {
      position full = device;
      full.insert(full.end(), at.begin(), at.end());
      const double value = wide.data<double>()[offset(got.shape(), full)];
      if (value != static_cast<double>(expected(device, at))) ++wrong;
    });
  });
  CHECK(wrong == 0);
}
/// Returns the operand's element on a device.
auto operand(const pt::array& values) {
  return [wide = pt::as_type(values, dtype::f64)](const position& device, const position& at) {
    position full = device;
    full.insert(full.end(), at.begin(), at.end());
    return wide.data<double>()[offset(wide.shape(), full)];
  };
}

double combined(pt::combiner c, double a, double b) {
  const auto x = static_cast<std::int64_t>(a), y = static_cast<std::int64_t>(b);
  switch (c) {
    case pt::combiner::add:
      return a + b;
    case pt::combiner::max:
      return std::max(a, b);
    case pt::combiner::min:
      return std::min(a, b);
    case pt::combiner::multiply:
      return a * b;
    case pt::combiner::logical_and:
      return static_cast<double>(x & y);
    default:
      return static_cast<double>(x | y);
  }
}

const std::vector<ints> axis_lists = {{0}, {1}, {2}, {0, 1}, {2, 0}, {0, 1, 2}};
const pt::combiner combiners[] = {pt::combiner::add,         pt::combiner::max,
                                  pt::combiner::min,         pt::combiner::multiply,
                                  pt::combiner::logical_and, pt::combiner::logical_or};

}  // namespace

TEST_CASE("all_reduce: every device gets the reduction over its group") {
  const shape s{2, 3};
  for (auto combine : combiners) {
    const pt::array values = numbers_for(combine, s);
    const auto x = operand(values);
    for (const ints& list : axis_lists) {
      ints attrs{static_cast<std::int64_t>(combine)};
      attrs.insert(attrs.end(), list.begin(), list.end());
      const pt::array got = run(pt::def<pt::op::all_reduce>, attrs, s, s, values);
      const auto uses = [&](std::size_t a) {
        return std::find(list.begin(), list.end(), static_cast<std::int64_t>(a)) != list.end();
      };
      check(got, s, [&](const position& device, const position& at) {
        double sum = 0;
        bool first = true;
        for_group(device, uses, [&](const position& other) {
          sum = first ? x(other, at) : combined(combine, sum, x(other, at));
          first = false;
        });
        return sum;
      });
    }
  }
}

TEST_CASE("all_reduce of several operands equals an all_reduce of each") {
  for (auto combine : combiners)
    for (const ints& list : axis_lists) {
      ints attrs{static_cast<std::int64_t>(combine)};
      attrs.insert(attrs.end(), list.begin(), list.end());
      const std::vector<shape> shapes{{2, 3}, {4}, {}, {2, 3}};
      std::vector<pt::array> values;
      for (const shape& s : shapes)
        values.push_back(numbers_for(combine, s, static_cast<std::uint64_t>(values.size())));
      const pt::results got = run(pt::def<pt::op::all_reduce>, attrs, shapes, shapes, values);
      REQUIRE(got.size() == 4);
      for (int i = 0; i < got.size(); ++i) {
        const auto k = static_cast<std::size_t>(i);
        CHECK(pt::equal(got[i],
                        run(pt::def<pt::op::all_reduce>, attrs, shapes[k], shapes[k], values[k])));
      }
    }
}

const std::vector<ints> pair_lists = {{0, 0},       {1, 1},       {0, 0, 2, 1}, {0, 0, 0, 2, 2, 1},
                                      {0, 2, 0, 0}, {2, 1, 2, 0}, {0, 1, 1, 0}};

TEST_CASE("all_slice: every device keeps its block; all_gather: the blocks of its group") {
  for (const ints& list : pair_lists) {
    const pairs p{list};
    shape whole{16, 4, 16}, part = whole;
    for (int d = 0; d < 3; ++d) part[d] /= p.piece(d, {0, 0, 0}).second;
    const pt::array values = numbers(whole);
    const auto x = operand(values);
    const pt::array sliced = run(pt::def<pt::op::all_slice>, list, whole, part, values);
    check(sliced, part, [&](const position& device, position at) {
      for (int d = 0; d < 3; ++d)
        at[static_cast<std::size_t>(d)] += p.piece(d, device).first * part[d];
      return x(device, at);
    });

    const pt::array small = numbers(part);
    const auto y = operand(small);
    const pt::array gathered = run(pt::def<pt::op::all_gather>, list, part, whole, small);
    check(gathered, whole, [&](const position& device, const position& at) {
      position owner = device, inside = at;
      for (int d = 0; d < 3; ++d) {  // the digits of the blocks' numbers, minor axis first
        const auto k = static_cast<std::size_t>(d);
        std::int64_t index = at[k] / part[d];
        inside[k] = at[k] % part[d];
        for (std::size_t i = list.size(); i > 0; i -= 2)
          if (list[i - 2] == d) {
            const auto axis = static_cast<std::size_t>(list[i - 1]);
            owner[axis] = index % mesh.size(static_cast<int>(axis));
            index /= mesh.size(static_cast<int>(axis));
          }
      }
      return y(owner, inside);
    });
    // all_slice(all_gather(x)) = x, on every device.
    CHECK(pt::equal(run(pt::def<pt::op::all_slice>, list, whole, part, gathered), small));
  }
}

TEST_CASE("reduce_scatter is all_slice(all_reduce)") {
  for (auto combine : combiners)
    for (const ints& list : pair_lists) {
      const pairs p{list};
      shape whole{16, 4, 16}, part = whole;
      for (int d = 0; d < 3; ++d) part[d] /= p.piece(d, {0, 0, 0}).second;
      const pt::array values = numbers_for(combine, whole);
      ints scatter{static_cast<std::int64_t>(combine)}, reduce = scatter;
      scatter.insert(scatter.end(), list.begin(), list.end());
      for (std::size_t a = 0; a < 3; ++a)
        if (p.uses(a)) reduce.push_back(static_cast<std::int64_t>(a));
      const pt::array reduced = run(pt::def<pt::op::all_reduce>, reduce, whole, whole, values);
      CHECK(pt::equal(run(pt::def<pt::op::reduce_scatter>, scatter, whole, part, values),
                      run(pt::def<pt::op::all_slice>, list, whole, part, reduced)));
    }
}

TEST_CASE("all_to_all is all_slice on one dimension after all_gather on another") {
  for (const ints& list : axis_lists)
    for (const auto& [from_dim, to_dim] : {std::pair{0, 1}, {1, 0}, {2, 0}}) {
      shape from{64, 64, 2};
      if (to_dim == 0) from = {64, 2, 3};
      shape whole = from, to = from;
      ints gather, slice, attrs{from_dim, to_dim};
      for (auto a : list) {
        gather.insert(gather.end(), {from_dim, a});
        slice.insert(slice.end(), {to_dim, a});
        attrs.push_back(a);
        whole[from_dim] *= mesh.size(static_cast<int>(a));
      }
      if (whole.elements() > 100000) continue;
      to = whole;
      to[to_dim] /= whole[from_dim] / from[from_dim];
      const pt::array values = numbers(from);
      const pt::array gathered = run(pt::def<pt::op::all_gather>, gather, from, whole, values);
      CHECK(pt::equal(run(pt::def<pt::op::all_to_all>, attrs, from, to, values),
                      run(pt::def<pt::op::all_slice>, slice, whole, to, gathered)));
    }
}

TEST_CASE(
    "permute: every device gets the operand of the device a fixed number of places before it") {
  const shape s{3, 2};
  for (auto combine :
       {pt::combiner::add, pt::combiner::max, pt::combiner::multiply, pt::combiner::stack})
    for (const ints& list : axis_lists)
      for (std::int64_t shift : {0, 1, -1, 2, -3, 9}) {
        const pt::array values = numbers_for(combine, s);
        const auto x = operand(values);
        const double identity = combine == pt::combiner::add        ? 0
                                : combine == pt::combiner::multiply ? 1
                                                                    : -INFINITY;
        ints attrs{static_cast<std::int64_t>(combine), shift};
        attrs.insert(attrs.end(), list.begin(), list.end());
        const pt::array got = run(pt::def<pt::op::permute>, attrs, s, s, values);
        check(got, s, [&](const position& device, const position& at) {
          std::int64_t place = 0, count = 1;
          for (auto a : list) {
            const auto size = mesh.size(static_cast<int>(a));
            place = place * size + device[static_cast<std::size_t>(a)];
            count *= size;
          }
          std::int64_t from = shift == 0 ? count - 1 - place : place - shift;
          if (combine == pt::combiner::stack)
            from = ((from % count) + count) % count;  // wraps around
          if (from < 0 || from >= count) return identity;
          position other = device;
          for (auto a = list.rbegin(); a != list.rend(); ++a) {
            const auto size = mesh.size(static_cast<int>(*a));
            other[static_cast<std::size_t>(*a)] = from % size;
            from /= size;
          }
          return x(other, at);
        });
      }
}

TEST_CASE("all_to_all of several dimensions is all_slice after all_gather of the same axes") {
  struct moved {
    ints from, to;  // (dim, axis) pairs
  };
  const moved list[] = {{{0, 0, 0, 1}, {1, 1, 2, 0}},  // one dimension to two
                        {{0, 0, 1, 1}, {2, 1, 2, 0}},  // two to one, in another order
                        {{0, 1, 0, 0}, {1, 0, 1, 1}},  // one to one, in another order
                        {{0, 2, 1, 0, 1, 1}, {2, 0, 2, 1, 2, 2}}};
  for (const moved& each : list) {
    shape from{2, 2, 2}, whole, to;
    for (int d = 0; d < 3; ++d) from[d] *= pairs{each.to}.piece(d, {0, 0, 0}).second;
    whole = to = from;
    for (int d = 0; d < 3; ++d) {
      whole[d] *= pairs{each.from}.piece(d, {0, 0, 0}).second;
      to[d] = whole[d] / pairs{each.to}.piece(d, {0, 0, 0}).second;
    }
    ints attrs{-1, -1};
    attrs.insert(attrs.end(), each.from.begin(), each.from.end());
    attrs.insert(attrs.end(), each.to.begin(), each.to.end());
    const pt::array values = numbers(from);
    const pt::array gathered = run(pt::def<pt::op::all_gather>, each.from, from, whole, values);
    CHECK(pt::equal(run(pt::def<pt::op::all_to_all>, attrs, from, to, values),
                    run(pt::def<pt::op::all_slice>, each.to, whole, to, gathered)));
  }
}

TEST_CASE(
    "permute in another order of axes: number i along the first sends to i along the others") {
  const shape s{3, 2};
  const std::pair<ints, ints> list[] = {
      {{0, 1}, {1, 0}}, {{1, 2}, {2, 1}}, {{0, 1, 2}, {2, 0, 1}}, {{0, 1, 2}, {1, 0, 2}}};
  for (const auto& [from, to] : list) {
    ints attrs{static_cast<std::int64_t>(pt::combiner::add), pt::spmd_detail::renumbers};
    attrs.insert(attrs.end(), from.begin(), from.end());
    attrs.insert(attrs.end(), to.begin(), to.end());
    const pt::array values = numbers(s);
    const auto x = operand(values);
    const pt::array got = run(pt::def<pt::op::permute>, attrs, s, s, values);
    const auto number = [](const ints& axes, const position& device) {
      std::int64_t n = 0;
      for (const auto a : axes)
        n = n * mesh.size(static_cast<int>(a)) + device[static_cast<std::size_t>(a)];
      return n;
    };
    const auto uses = [&](std::size_t a) {
      return std::find(from.begin(), from.end(), static_cast<std::int64_t>(a)) != from.end();
    };
    check(got, s, [&](const position& device, const position& at) {
      double value = -1e9;
      int senders = 0;
      for_group(device, uses, [&](const position& other) {
        if (number(from, other) != number(to, device)) return;
        value = x(other, at);
        ++senders;
      });
      return senders == 1 ? value : -1e9;
    });
  }
}
