// Device programs on an emulated mesh, the executor's plan, and the public entry points.
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include <doctest/doctest.h>

#include <partita/cpu.hpp>

#include "../data.hpp"
#include "device_programs.hpp"

using namespace partita;
using device_programs::cut;
using device_programs::message_of;

namespace {

/// Axes of the mesh used below; "u" has one device.
enum : int { x_axis = 0, y_axis = 1, u_axis = 2 };
const mesh two_by_three{{"x", 2}, {"y", 3}, {"u", 1}};

struct device_builder : device_programs::device_builder {
  explicit device_builder(const mesh& m = two_by_three) : device_programs::device_builder(m) {}
};
array counting(dtype t, const shape& s) {
  array a(tensor_type{dtype::i64, s});
  for (std::int64_t i = 0; i < a.size(); ++i) a.mutable_data<std::int64_t>()[i] = i % 97;
  return as_type(a, t);
}
bool same_bits(const array& a, const array& b) {
  return a.type() == b.type() &&
         std::memcmp(a.bytes(), b.bytes(), static_cast<std::size_t>(a.type().bytes())) == 0;
}
constexpr auto add_bits = static_cast<std::int64_t>(combiner::add);
constexpr auto max_bits = static_cast<std::int64_t>(combiner::max);
constexpr auto min_bits = static_cast<std::int64_t>(combiner::min);

}  // namespace

TEST_CASE("layouts: a value that is sliced is assembled again") {
  for (const layout& l : {cut({}), cut({{0, x_axis}}), cut({{0, x_axis}, {0, y_axis}}),
                          cut({{0, y_axis}, {0, x_axis}}), cut({{0, y_axis}, {1, x_axis}}),
                          cut({{1, x_axis}, {1, u_axis}, {0, y_axis}})})
    for (dtype t : {dtype::f32, dtype::bf16, dtype::boolean, dtype::i64}) {
      device_builder d;
      const auto v = d.input("v", {t, {12, 6}}, l);
      const array a = counting(t, {12, 6});
      CHECK(partita::equal(emulate(d.output("r", v, {12, 6}, l).done(), a)[0], a));
    }
}

TEST_CASE("all_slice and all_gather: major to minor, several axes and dimensions") {
  for (bool x_first : {true, false}) {
    const int major = x_first ? x_axis : y_axis, minor = x_first ? y_axis : x_axis;
    device_builder d;
    const array a = counting(dtype::f32, {12, 2});
    const auto v = d.input("v", {dtype::f32, {12, 2}});
    const auto s = d.collective(def<op::all_slice>, v, {0, major, 0, minor}, {2, 2});
    const auto g = d.collective(def<op::all_gather>, s, {0, major, 0, minor}, {12, 2});
    const auto half = d.collective(def<op::all_gather>, s, {0, minor}, {x_first ? 6 : 4, 2});
    const auto both = d.collective(def<op::all_slice>, v, {0, major, 1, x_first ? x_axis : y_axis},
                                   {x_first ? 6 : 4, 2});
    (void)both;
    d.output("sliced", s, {12, 2}, cut({{0, major}, {0, minor}})).output("gathered", g, {12, 2});
    d.output("half", half, {12, 2}, cut({{0, major}}));
    const results r = emulate(d.done(), a);
    CHECK(partita::equal(r["sliced"], a));
    CHECK(partita::equal(r["gathered"], a));
    CHECK(partita::equal(r["half"], a));
  }
}

TEST_CASE("all_slice: device (x, y) has chunk x * size(y) + y") {
  device_builder d;
  const auto v = d.input("v", {dtype::i32, {6}});
  const auto s = d.collective(def<op::all_slice>, v, {0, x_axis, 0, y_axis}, {1});
  // Read in the opposite order of axes: chunk (x, y) is at y * 2 + x.
  d.output("r", s, {6}, cut({{0, y_axis}, {0, x_axis}}));
  CHECK(partita::equal(emulate(d.done(), counting(dtype::i32, {6}))[0],
                       xt::xarray<std::int32_t>{0, 3, 1, 4, 2, 5}));
}

TEST_CASE("all_gather of two dimensions at a time") {
  device_builder d;
  const array a = counting(dtype::f16, {4, 9});
  const auto v = d.input("v", {dtype::f16, {4, 9}}, cut({{0, x_axis}, {1, y_axis}}));
  d.output("r", d.collective(def<op::all_gather>, v, {0, x_axis, 1, y_axis}, {4, 9}), {4, 9});
  CHECK(partita::equal(emulate(d.done(), a)[0], a));
}

TEST_CASE("all_reduce: every combiner and type") {
  for (dtype t :
       {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i32, dtype::i64, dtype::u8})
    for (auto combine : {add_bits, max_bits, min_bits}) {
      device_builder d;
      const auto v = d.input("v", {t, {2, 3, 5}}, cut({{0, x_axis}, {1, y_axis}}));
      const auto r = d.collective(def<op::all_reduce>, v, {combine, x_axis, y_axis}, {1, 1, 5});
      const auto over_y = d.collective(def<op::all_reduce>, v, {combine, y_axis}, {1, 1, 5});
      d.output("r", r, {1, 1, 5}).output("over_y", over_y, {2, 1, 5}, cut({{0, x_axis}}));
      const array a = counting(t, {2, 3, 5});
      const results got = emulate(d.done(), a);
      const array all = run_op(def<op::reduce>, std::vector<array>{a},
                               std::vector<std::int64_t>{combine, 0, 1}, {t, {5}});
      const array rows = run_op(def<op::reduce>, std::vector<array>{a},
                                std::vector<std::int64_t>{combine, 1}, {t, {2, 5}});
      CHECK(partita::equal(got["r"].reshaped({5}), all));
      CHECK(partita::equal(got["over_y"].reshaped({2, 5}), rows));
    }
}

TEST_CASE(
    "all_reduce of a value that does not vary: a sum counts every device, an extremum does not") {
  device_builder d;
  const auto v = d.input("v", {dtype::f32, {4}}),
             w = d.input("w", {dtype::f32, {4}}, cut({{0, x_axis}}));
  d.output("sum", d.collective(def<op::all_reduce>, v, {add_bits, x_axis, y_axis}, {4}), {4});
  d.output("max", d.collective(def<op::all_reduce>, v, {max_bits, x_axis, y_axis}, {4}), {4});
  d.output("one", d.collective(def<op::all_reduce>, v, {add_bits, u_axis}, {4}), {4});
  d.output("mixed", d.collective(def<op::all_reduce>, w, {add_bits, x_axis, y_axis}, {2}), {2});
  d.output("scattered", d.collective(def<op::reduce_scatter>, v, {add_bits, 0, x_axis}, {2}), {4},
           cut({{0, x_axis}}));
  const array a = xt::xarray<float>{1, 2, 3, 4};
  const results r = emulate(d.done(), a, a);
  CHECK(partita::equal(r["sum"], xt::xarray<float>{6, 12, 18, 24}));
  CHECK(partita::equal(r["max"], a));
  CHECK(partita::equal(r["one"], a));
  CHECK(partita::equal(r["mixed"], xt::xarray<float>{12, 18}));
  CHECK(partita::equal(r["scattered"], xt::xarray<float>{2, 4, 6, 8}));
}

TEST_CASE("reduce_scatter is all_slice of all_reduce") {
  for (dtype t : {dtype::f32, dtype::bf16, dtype::i32})
    for (auto combine : {add_bits, max_bits})
      for (bool x_first : {true, false}) {
        const std::int64_t major = x_first ? x_axis : y_axis, minor = x_first ? y_axis : x_axis;
        device_builder d;
        const auto v = d.input("v", {t, {2, 3, 12, 5}}, cut({{0, x_axis}, {1, y_axis}}));
        const auto direct =
            d.collective(def<op::reduce_scatter>, v, {combine, 2, major, 2, minor}, {1, 1, 2, 5});
        const auto sum =
            d.collective(def<op::all_reduce>, v, {combine, major, minor}, {1, 1, 12, 5});
        const auto sliced =
            d.collective(def<op::all_slice>, sum, {2, major, 2, minor}, {1, 1, 2, 5});
        const layout l = cut({{2, static_cast<int>(major)}, {2, static_cast<int>(minor)}});
        d.output("direct", direct, {1, 1, 12, 5}, l)
            .output("steps", sliced, {1, 1, 12, 5}, l)
            .output("sum", sum, {1, 1, 12, 5});
        const results r = emulate(d.done(), counting(t, {2, 3, 12, 5}));
        CHECK(same_bits(r["direct"], r["steps"]));
        CHECK(same_bits(r["direct"], r["sum"]));
      }
}

TEST_CASE("all_to_all is all_slice of all_gather") {
  for (bool both : {false, true}) {
    device_builder d;
    const array a = counting(dtype::f32, {6, 12});
    const layout from = both ? cut({{0, y_axis}, {0, x_axis}}) : cut({{0, y_axis}});
    const layout to = both ? cut({{1, y_axis}, {1, x_axis}}) : cut({{1, y_axis}});
    const auto v = d.input("v", {dtype::f32, {6, 12}}, from);
    const auto r = both ? d.collective(def<op::all_to_all>, v, {0, 1, y_axis, x_axis}, {6, 2})
                        : d.collective(def<op::all_to_all>, v, {0, 1, y_axis}, {6, 4});
    CHECK(partita::equal(emulate(d.output("r", r, {6, 12}, to).done(), a)[0], a));
  }
  // A dimension that another axis slices already stays sliced.
  device_builder d;
  const array a = counting(dtype::i32, {6, 12});
  const auto v = d.input("v", {dtype::i32, {6, 12}}, cut({{0, y_axis}, {1, x_axis}}));
  d.output("r", d.collective(def<op::all_to_all>, v, {0, 1, y_axis}, {6, 2}), {6, 12},
           cut({{1, x_axis}, {1, y_axis}}));
  CHECK(partita::equal(emulate(d.done(), a)[0], a));
}

TEST_CASE("a Megatron block equals its source") {
  const mesh m{{"B", 4}, {"M", 2}};
  xt::xarray<float> xs = xt::zeros<float>({8, 6}), w1s = xt::zeros<float>({6, 10}),
                    w2s = xt::zeros<float>({10, 6});
  for (std::size_t i = 0; i < xs.size(); ++i) xs.data()[i] = static_cast<float>(i % 7) - 3;
  for (std::size_t i = 0; i < w1s.size(); ++i)
    w1s.data()[i] = static_cast<float>(i % 5) - 2, w2s.data()[i] = static_cast<float>(i % 3) - 1;
  const std::int64_t k1[] = {1}, k0[] = {0};
  builder s;
  auto x = ops::parameter(s, "x", {dtype::f32, {8, 6}}),
       w1 = ops::parameter(s, "w1", {dtype::f32, {6, 10}}),
       w2 = ops::parameter(s, "w2", {dtype::f32, {10, 6}});
  auto h =
      ops::maximum(s, ops::dot_general(s, x, w1, {{}, {}, k1, k0}), ops::scalar(s, dtype::f32, 0));
  s.p.outputs.push_back({ops::dot_general(s, h, w2, {{}, {}, k1, k0}), s.p.intern("y")});
  device_builder d(m);
  x = d.input("x", {dtype::f32, {8, 6}}, cut({{0, 0}}));
  w1 = d.input("w1", {dtype::f32, {6, 10}}, cut({{1, 1}}));
  w2 = d.input("w2", {dtype::f32, {10, 6}}, cut({{0, 1}}));
  h = ops::maximum(d.b, ops::dot_general(d.b, x, w1, {{}, {}, k1, k0}),
                   ops::scalar(d.b, dtype::f32, 0));
  const auto y = d.collective(def<op::all_reduce>, ops::dot_general(d.b, h, w2, {{}, {}, k1, k0}),
                              {add_bits, 1}, {2, 6});
  d.output("y", y, {8, 6}, cut({{0, 0}}));
  struct holder {
    program source;
    device_program device;
  };
  const holder both{s.p, d.done()};
  CHECK(partita::equal(emulate(both, xs, w1s, w2s), evaluate(both, xs, w1s, w2s)));
  CHECK(all_close(emulate(both.device, xs, w1s, w2s), evaluate(both.source, xs, w1s, w2s)));
}

TEST_CASE("replicated values are computed once: a mesh of 65,536 devices") {
  const mesh m{{"a", 256}, {"b", 64}, {"c", 4}};
  device_builder d(m);
  const auto v = d.input("v", {dtype::f32, {1024}}, cut({{0, 2}})),
             w = d.input("w", {dtype::f32, {256}});
  const auto e = ops::exp(d.b, ops::exp(d.b, w));  // on no axis
  const auto f = ops::add(d.b, v, e);
  const auto g = d.collective(def<op::all_reduce>, f, {max_bits, 0, 1}, {256});
  d.output("r", d.collective(def<op::all_gather>, g, {0, 2}, {1024}), {1024});
  const executable run(d.done());
  CHECK(run.workspace_bytes() <= 4 * 4 * 256 * 4 + 4096);
  const array one = xt::xarray<float>(xt::zeros<float>({1024})),
              zero = xt::xarray<float>(xt::zeros<float>({256}));
  CHECK(all_close(run(one, zero), xt::xarray<float>(xt::ones<float>({1024}) * 2.7182818f)));
}

TEST_CASE("an output that is not replicated as its layout states is an error") {
  device_builder d;
  const auto v = d.input("v", {dtype::f32, {6}}, cut({{0, y_axis}}));
  d.output("r", v, {2});
  const auto p = d.done();
  CHECK(message_of([&] { emulate(p, counting(dtype::f32, {6})); }) ==
        "R006 run: output \"r\" differs between devices that should hold the same shard");
  CHECK(partita::equal(emulate(p, xt::xarray<float>{1, 2, 1, 2, 1, 2}),
                       array(xt::xarray<float>{1, 2})));
}

namespace {

/// A long mixed program: chains, broadcasts, splats, 16-bit floats, masks, products, reductions.
device_program mixed(dtype t) {
  device_builder d;
  const auto x = d.input("x", {t, {12, 70, 9}}, cut({{0, x_axis}, {0, y_axis}}));
  const auto gain = d.input("gain", {t, {9}}),
             mean = d.input("mean", {t, {12}}, cut({{0, x_axis}, {0, y_axis}}));
  const auto step = d.input("step", {t, {}});
  builder& b = d.b;
  const shape local{2, 70, 9};
  const std::int64_t last[] = {2}, first[] = {0}, both[] = {1, 2}, none[] = {0, 1};
  auto h = ops::subtract(b, x, ops::broadcast_in_dim(b, mean, local, first));
  h = ops::multiply(b, h, ops::broadcast_in_dim(b, gain, local, last));
  const auto kept = h;
  auto inner = ops::multiply(b, ops::multiply(b, h, h), ops::scalar(b, t, 0.044715));
  h = ops::multiply(
      b, h, ops::add(b, ops::tanh(b, ops::add(b, inner, h)), ops::constant(b, {t, local}, 1)));
  h = ops::divide(b, h, ops::add(b, step, ops::scalar(b, t, 3)));
  const auto mask = ops::compare(b, ops::direction::gt, h, ops::scalar(b, t, 0));
  h = ops::select(b, mask, h, ops::exp(b, ops::minimum(b, h, kept)));
  h = ops::reshape(b, h, {140, 9});
  h = ops::erf(b, ops::negate(b, h));
  h = ops::reshape(b, h, local);
  const auto total = ops::reduce(b, h, combiner::add, both);
  h = ops::add(b, h, ops::broadcast_in_dim(b, total, local, first));
  auto wide = ops::convert(b, h, dtype::f32);
  wide = ops::sqrt(b, ops::maximum(b, wide, ops::scalar(b, dtype::f32, 0.25)));
  const auto counted = ops::reduce(b, ops::convert(b, mask, dtype::i32), combiner::add, none);
  const auto summed = d.collective(def<op::all_reduce>, counted, {add_bits, x_axis, y_axis}, {9});
  d.output("h", h, {12, 70, 9}, cut({{0, x_axis}, {0, y_axis}}));
  d.output("wide", wide, {12, 70, 9}, cut({{0, x_axis}, {0, y_axis}}));
  return d.output("counted", summed, {9}).done();
}

}  // namespace

TEST_CASE("fused or op by op, one thread or four, first run or later: the bits are the same") {
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16}) {
    const device_program p = mixed(t);
    const auto small = [&](const shape& s) {
      const array a = as_type(counting(t, s), dtype::f64);
      array out = a;
      for (std::int64_t i = 0; i < a.size(); ++i)
        out.mutable_data<double>()[i] = a.data<double>()[i] / 31 - 1.3;
      return as_type(out, t);
    };
    const std::vector<array> in = {small({12, 70, 9}), small({9}), small({12}), small({})};
    const results plain = emulate(p, run_options{.fuse = false}, in);
    const executable threaded(p, {.threads = 4});
    for (const results& other : {emulate(p, in), threaded(in[0], in[1], in[2], in[3]),
                                 results(threaded(in), threaded.output_names()),
                                 emulate(p, run_options{.threads = 4, .fuse = false}, in)}) {
      REQUIRE(other.size() == 3);
      for (int i = 0; i < 3; ++i) CHECK(same_bits(plain[i], other[i]));
    }
  }
}

namespace {

/// Elementwise ops, broadcasts, reshapes and reductions of each other, on sums that are exact.
program of_few_shapes(data::random& r) {
  const shape shapes[] = {{1}, {3}, {3, 1}, {3, 2}, {3, 2, 1}, {3, 1, 2}, {3, 2, 4}};
  builder b;
  std::vector<value_id> values;
  const auto any = [&] {  // in most cases one of the last values
    const auto n = static_cast<std::int64_t>(values.size());
    return values[static_cast<std::size_t>(r.in(r.one_in(4) || n < 4 ? 0 : n - 4, n - 1))];
  };
  for (int i = 0; i < 2; ++i)
    values.push_back(ops::parameter(b, "x", {dtype::f32, r.pick(shapes)}));
  while (values.size() < 24) {
    const value_id x = any();
    const shape s = b.p.type(x).shape;
    switch (r.in(0, 5)) {
      case 0: {  // spread: each dimension of x is one of the result's, in order
        const shape to = r.pick(shapes);
        std::vector<std::int64_t> dims;
        for (int d = 0; d < to.rank && static_cast<int>(dims.size()) < s.rank; ++d)
          if (const auto mine = s[static_cast<int>(dims.size())];
              (mine == to[d] || mine == 1) && r.one_in(2))
            dims.push_back(d);
        if (static_cast<int>(dims.size()) == s.rank)
          values.push_back(b.emit(def<op::broadcast_in_dim>, {&x, 1}, dims, {dtype::f32, to}));
        break;
      }
      case 1: {
        std::vector<std::int64_t> dims;
        for (int d = 0; d < s.rank; ++d)
          if (r.one_in(2)) dims.push_back(d);
        values.push_back(ops::reduce(b, x, r.one_in(2) ? combiner::max : combiner::add, dims));
        break;
      }
      case 2: {
        const shape to = r.pick(shapes);
        if (to.elements() == s.elements()) values.push_back(ops::reshape(b, x, to));
        break;
      }
      case 3:
        values.push_back(ops::negate(b, x));
        break;
      case 4: {
        const std::int64_t dim[] = {0};
        if (s.rank > 0 && r.one_in(3))
          values.push_back(b.emit(def<op::iota>, {}, dim, {dtype::f32, s}));
        break;
      }
      default: {
        const value_id y = any();
        if (b.p.type(y).shape == s)
          values.push_back(r.one_in(2) ? ops::add(b, x, y) : ops::maximum(b, y, x));
      }
    }
  }
  std::vector<char> used(static_cast<std::size_t>(b.p.value_count()), 0);
  for (op_id o = 0; o < b.p.op_count(); ++o)
    for (value_id v : b.p.operands(o)) used[static_cast<std::size_t>(v)] = 1;
  for (value_id v = 0; v < b.p.value_count(); ++v)
    if (!used[static_cast<std::size_t>(v)]) b.p.outputs.push_back({v, b.p.intern("y")});
  REQUIRE_MESSAGE(!b.p.error, data::str(b.p.error.message));
  return b.p;
}

}  // namespace

TEST_CASE("random broadcasts and reductions: fused equals op by op") {
  for (std::uint64_t seed = 1; seed <= 10000; ++seed) {
    data::random r{seed};
    const program p = of_few_shapes(r);
    std::vector<array> in;
    for (int i = 0; i < p.input_count(); ++i)
      in.push_back(data::integers(p.input_type(i), r, -9, 9));
    const results fused = evaluate(p, in), plain = evaluate(p, run_options{.fuse = false}, in);
    bool same = true;
    for (int i = 0; i < fused.size(); ++i) same = same && same_bits(fused[i], plain[i]);
    CHECK_MESSAGE(same, "seed ", seed, "\n", data::str(print(p)));
    if (!same) return;
  }
}

TEST_CASE("a broadcast of a broadcast, along rows that are reduced, is fused") {
  const program p = parse(
      "func @main(%x: tensor<1xf32>) {\n"
      "  %n = negate(%x) : tensor<1xf32>\n"
      "  %b = broadcast_in_dim(%n) {dims=[1]} : tensor<3x1xf32>\n"
      "  %s = broadcast_in_dim(%b) {dims=[0, 2]} : tensor<3x2x1xf32>\n"
      "  %i = iota {dim=0} : tensor<3x2x1xf32>\n"
      "  %a = add(%i, %s) : tensor<3x2x1xf32>\n"
      "  %y = reduce(%a) {max, dims=[1, 2]} : tensor<3xf32>\n"
      "  return %y : tensor<3xf32>\n}\n");
  REQUIRE(!p.error);
  const xt::xarray<float> x{4};
  CHECK(same_bits(evaluate(p, x)[0], array(xt::xarray<float>{-4, -3, -2})));
}

TEST_CASE("a fused chain allocates only its output") {
  builder b;
  auto h = ops::parameter(b, "x", {dtype::f32, {100, 70}});
  for (int i = 0; i < 9; ++i)
    h = ops::multiply(b, ops::tanh(b, h), ops::scalar(b, dtype::f32, 1 + i));
  b.p.outputs.push_back({h, b.p.intern("y")});
  CHECK(executable(b.p).workspace_bytes() == 0);
  CHECK(executable(b.p, {.fuse = false}).workspace_bytes() > 0);
}

TEST_CASE("an executable runs again without changing arrays that it returned before") {
  builder b;
  const auto x = ops::parameter(b, "x", {dtype::f32, {5}});
  const auto y = ops::add(b, x, x);
  b.p.outputs = {{y, b.p.intern("y")},
                 {x, b.p.intern("x")},
                 {ops::reshape(b, y, {5, 1}), b.p.intern("z")},
                 {ops::constant(b, {dtype::f32, {2}}, 7), b.p.intern("c")}};
  const executable f(b.p);
  const array ones = xt::xarray<float>{1, 1, 1, 1, 1}, twos = xt::xarray<float>{2, 2, 2, 2, 2};
  const results first = f(ones), second = f(twos);
  CHECK(partita::equal(first["y"], twos));
  CHECK(partita::equal(second["y"], xt::xarray<float>{4, 4, 4, 4, 4}));
  CHECK(second["x"].bytes() == twos.bytes());
  CHECK(second["z"].shape() == shape{5, 1});
  CHECK(partita::equal(second["c"], xt::xarray<float>{7, 7}));
}

TEST_CASE("steps that read the outputs of the step before use two buffers in turn") {
  builder b;
  const auto x = ops::parameter(b, "x", {dtype::f32, {3}});
  b.p.outputs = {{ops::add(b, x, x), b.p.intern("y")}};
  const executable f(b.p);
  array state = xt::xarray<float>{1, 2, 3};
  std::vector<const std::byte*> buffers;
  for (int step = 0; step < 4; ++step) {
    state = f(state)["y"];
    buffers.push_back(state.bytes());
  }
  CHECK(partita::equal(state, xt::xarray<float>{16, 32, 48}));
  CHECK(buffers[0] != buffers[1]);
  CHECK(buffers[2] == buffers[0]);
  CHECK(buffers[3] == buffers[1]);
  const array second = f(state)["y"], third = f(second)["y"], fourth = f(third)["y"];
  CHECK(partita::equal(state, xt::xarray<float>{16, 32, 48}));
  CHECK(partita::equal(second, xt::xarray<float>{32, 64, 96}));
  CHECK(partita::equal(fourth, xt::xarray<float>{128, 256, 384}));
}

namespace {

/// A user's own op and its kernel.
struct reverse_op {
  static constexpr std::string_view name = "reverse";
  static constexpr void infer(infer_context& c) { c.result = c.operands[0]; }
};
void reverse_kernel(const kernel_context& c) {
  const std::int64_t n = c.result.shape.elements();
  for (std::int64_t i = 0; i < n; ++i) c.output<float>()[i] = c.operand<float>(0)[n - 1 - i];
}

}  // namespace

TEST_CASE("a user's op can have its own kernel") {
  builder b;
  const auto x = ops::parameter(b, "x", {dtype::f32, {3}});
  b.p.outputs.push_back({b.emit(def<reverse_op>, {x}), b.p.intern("r")});
  CHECK(message_of([&] { executable f(b.p); }) ==
        "R005 reverse: this op has no kernel; give one in run_options::kernels");
  const run_options options{.kernels = {{&def<reverse_op>, &reverse_kernel}}};
  CHECK(partita::equal(evaluate(b.p, options, xt::xarray<float>{1, 2, 3}),
                       array(xt::xarray<float>{3, 2, 1})));
}

TEST_CASE("arguments may be arrays, containers, scalars, lists and results, flattened in order") {
  builder b;
  auto sum = ops::parameter(b, "a", {dtype::f32, {2}});
  for (auto name : {"b", "c", "d"})
    sum = ops::add(b, ops::multiply(b, sum, ops::scalar(b, dtype::f32, 10)),
                   ops::parameter(b, name, {dtype::f32, name[0] == 'd' ? shape{} : shape{2}}));
  b.p.outputs.push_back({sum, b.p.intern("sum")});
  const array one = xt::xarray<float>{1, 1};
  const xt::xarray<float> two = {2, 2};
  const results r = evaluate(b.p, std::vector<array>{one, two}, two * 2.f, 5.f);
  CHECK(partita::equal(r, array(xt::xarray<float>{1245, 1245})));
  CHECK(partita::equal(evaluate(b.p, r, one, std::span<const array>(&one, 1), 0.f),
                       array(xt::xarray<float>{1245110, 1245110})));
  const array only = r;
  CHECK(only.to_xarray<float>()(1) == 1245.f);
}

TEST_CASE("errors: number, shape, type and name") {
  builder b;
  const auto x = ops::parameter(b, "x", {dtype::f32, {2, 3}}),
             lr = ops::parameter(b, "lr", {dtype::f32, {}});
  b.p.outputs = {{ops::multiply(b, x, lr), b.p.intern("product")}, {x, b.p.intern("same")}};
  const xt::xarray<float> good = xt::ones<float>({2, 3});
  CHECK(message_of([&] { evaluate(b.p, good); }) ==
        "R001 run: 1 array given; the program has 2 inputs: x, lr");
  CHECK(message_of([&] {
          evaluate(b.p, xt::xarray<float>(xt::ones<float>({3, 2})), 1.f);
        }) == "R002 run: the array for input \"x\" has shape [3, 2]; [2, 3] is needed");
  CHECK(message_of([&] {
          evaluate(b.p, xt::xarray<double>(xt::ones<double>({2, 3})), 1.f);
        }) ==
        "R003 run: the array for input \"x\" has element type f64; f32 is needed; give another "
        "type or use as_type");
  const results r = evaluate(b.p, good, 2.f);
  CHECK(
      message_of([&] { r["produkt"]; }) ==
      "R004 results: no output named \"produkt\"; known: product, same; did you mean \"product\"?");
  CHECK(message_of([&] { r[2]; }) == "R004 results: no output 2; there are 2");
  CHECK(message_of([&] { const array a = r; }).substr(0, 4) == "R004");
  builder broken;
  ops::add(broken, ops::parameter(broken, "a", {dtype::f32, {2}}),
           ops::parameter(broken, "b", {dtype::f32, {3}}));
  CHECK(message_of([&] { evaluate(broken.p, good); }).substr(0, 4) == "S103");
}

TEST_CASE("arrays: copies share memory, writing detaches") {
  array a = xt::xarray<std::int32_t>{1, 2, 3};
  const array b = a;
  CHECK(a.bytes() == b.bytes());
  a.mutable_data<std::int32_t>()[0] = 9;
  CHECK(b.data<std::int32_t>()[0] == 1);
  CHECK(array(true).item<bool>());
  CHECK(array(2.5).element() == dtype::f64);
  CHECK(array(tensor_type{dtype::f16, {0, 3}}).size() == 0);
  CHECK(max_difference(array(1.f), array(3.f)) == 2.);
  CHECK_FALSE(all_close(array(1.f), array(xt::xarray<float>{1.f})));
  CHECK_FALSE(all_close(array(std::nan("")), array(std::nan(""))));
  CHECK(reinterpret_cast<std::uintptr_t>(a.bytes()) % 64 == 0);
}
TEST_CASE("comparisons: results for NaN and infinities") {
  const double inf = std::numeric_limits<double>::infinity();
  const array nan = array(std::nan("")), one = array(1.), high = array(inf), low = array(-inf);
  // max_difference and equal: two NaN are equal.
  CHECK(max_difference(nan, nan) == 0);
  CHECK(partita::equal(nan, nan));
  CHECK(max_difference(high, high) == 0);
  for (const auto& [a, b] :
       {std::pair{nan, one}, {one, nan}, {nan, high}, {high, one}, {high, low}}) {
    CHECK(max_difference(a, b) == inf);
    CHECK_FALSE(partita::equal(a, b));
    CHECK_FALSE(all_close(a, b));
  }
  CHECK(max_difference(xt::xarray<double>{std::nan(""), 1}, xt::xarray<double>{std::nan(""), 3}) ==
        2);
  // all_close: a NaN is close to nothing, an infinity to itself.
  CHECK_FALSE(all_close(nan, nan));
  CHECK(all_close(high, high));
}
