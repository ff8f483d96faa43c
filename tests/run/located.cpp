// Gathers and scatters along sharded dimensions: each device works on its own positions.
#include <doctest/doctest.h>

#include <limits>
#include <string>
#include <vector>

#include <partita/prove/prove.hpp>
#include <partita/run/refute.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;
using pt::dtype;
using pt::manual;
using pt::schedule;

namespace {

constexpr pt::mesh four{{"M", 4}}, both{{"B", 2}, {"M", 4}};

/// Indices out of bounds at both ends; other integers are small.
std::vector<pt::array> arguments(const pt::program& p) {
  data::random r{5};
  std::vector<pt::array> list;
  for (int i = 0; i < p.input_count(); ++i) {
    const dtype t = p.input_type(i).element;
    const bool index = p.input_name(i).substr(0, 1) == "i";
    const bool truth = t == dtype::boolean;
    list.push_back(data::integers(p.input_type(i), r, pt::is_unsigned(t) || truth ? 0 : -3,
                                  index   ? 20
                                  : truth ? 1
                                          : 3));
  }
  return list;
}
/// Checks that the program equals the source and is proved, and returns its collectives.
pt::collectives check(const pt::program& p, const pt::mesh& mesh, const auto& tactics,
                      const pt::passes& on = {}) {
  const auto in = arguments(p);
  const auto r = pt::partition(p, mesh, tactics, {.passes = on});
  const auto whole = pt::evaluate(p, in);
  CHECK_MESSAGE((pt::equal(pt::emulate(r, in), whole) && pt::equal(pt::temporal(r, in), whole)),
                str(pt::print_core(r.core)), str(pt::print(r.device)));
  const pt::verdict v = pt::prove(p, r.device);
  CHECK_MESSAGE(v.proved, str(v.error.message), str(pt::print(r.device)));
  return r.collectives;
}
pt::program parse(const std::string& text) { return pt::parse("func @main" + text); }
std::string type(const std::string& shape, dtype t) {
  return "tensor<" + shape + std::string(pt::name_of(t)) + ">";
}

constexpr pt::passes keep{.stationary_rows = true};
constexpr auto rows = manual("M", {{"t", 0}}, "rows");
constexpr auto look_up = [](auto t, auto i) { return pt::take<0>(t, i); };
constexpr auto descend = [](auto t, auto i) {
  const auto squares = [&](auto u) {
    const auto y = pt::take<0>(u, i);
    return pt::sum(y * y);
  };
  return t - pt::grad(squares, t);
};
constexpr auto lookup_step = [] {
  return pt::partition(
      pt::trace(look_up, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i")), four,
      schedule(rows));
};
constexpr auto gradient_step = [] {
  return pt::partition(
      pt::trace(descend, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i")), four,
      schedule(rows));
};
// The gathered rows are summed, instead of the table being gathered; the gradient is scattered in
// place.
static_assert(pt::check<lookup_step>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<gradient_step>.collectives == pt::collectives{.all_reduce = 1});
static_assert(pt::check<gradient_step>.output(0).local_shape == pt::shape{4, 4});

}  // namespace

TEST_CASE("rows are gathered from a table that is sharded along its rows") {
  for (dtype t : {dtype::f32, dtype::f64, dtype::bf16, dtype::f16, dtype::i8, dtype::i32,
                  dtype::u32, dtype::u64, dtype::boolean})
    for (dtype i : {dtype::i32, dtype::i64, dtype::i8, dtype::u8, dtype::i16, dtype::u16,
                    dtype::u32, dtype::u64}) {
      const auto p = parse("(%t: " + type("16x4x", t) + ", %i: " + type("8x", i) +
                           ") {\n  %y = gather(%t, %i) : " + type("8x4x", t) +
                           "\n  return %y : " + type("8x4x", t) + "\n}\n");
      CHECK(check(p, four, schedule(rows)) == pt::collectives{.all_reduce = 1});
    }
}

TEST_CASE("a table sharded over two axes, a batch of indices, windows, and index vectors") {
  const auto p = pt::trace(look_up, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"));
  const auto more = manual("B", {{"t", 0}}), batch = manual("B", {{"i", 0}});
  CHECK(check(p, both, schedule(rows, more)) == pt::collectives{.all_reduce = 1});
  CHECK(check(p, both, schedule(more, rows)) == pt::collectives{.all_reduce = 1});
  CHECK(check(p, both, schedule(batch, rows)) == pt::collectives{.all_reduce = 1});
  const auto inner = pt::trace([](auto t, auto i) { return pt::take<1>(t, i); },
                               pt::input<float, 3, 16, 4>("t"), pt::input<std::int64_t, 2, 3>("i"));
  CHECK(check(inner, four, schedule(manual("M", {{"t", 1}}))) == pt::collectives{.all_reduce = 1});
  const auto along = pt::trace([](auto t, auto i) { return pt::take_along_axis<1>(t, i); },
                               pt::input<float, 4, 16>("t"), pt::input<std::int32_t, 4, 3>("i"));
  CHECK(check(along, both, schedule(manual("B", {{"t", 0}}), manual("M", {{"t", 1}}))) ==
        pt::collectives{.all_reduce = 1});
  for (const char* dims : {"offset_dims=[1], collapsed_slice_dims=[0]", "offset_dims=[1, 2]"}) {
    const bool window = std::string(dims).find("collapsed") == std::string::npos;
    const std::string result = window ? "tensor<8x1x4xf32>" : "tensor<8x4xf32>";
    const auto vectors =
        parse("(%t: tensor<16x4xf32>, %i: tensor<8x1xi32>) {\n  %y = gather(%t, %i) {" +
              std::string(dims) +
              ", start_index_map=[0], index_vector_dim=1, slice_sizes=[1, -1]}"
              " : " +
              result + "\n  return %y : " + result + "\n}\n");
    CHECK(check(vectors, four, schedule(rows)) == pt::collectives{.all_reduce = 1});
  }
}

TEST_CASE("rows and batch along one axis: indices are sent to the rows, gathered rows return") {
  const auto bytes = [](const pt::partitioned& r) {
    std::int64_t sent = 0;
    for (const auto& note : r.notes) sent += note.bytes_sent(r.device.mesh);
    return sent;
  };
  const auto p = pt::trace(look_up, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"));
  const auto at_once = manual("M", {{"t", 0}, {"i", 0}});
  const auto rows_behind = manual("M", {{"t", 0}}), batch = manual("M", {{"i", 0}});
  constexpr pt::collectives moved{.all_gather = 1, .reduce_scatter = 1};
  CHECK(check(p, four, schedule(at_once), keep) == moved);
  CHECK(check(p, four, schedule(batch, rows_behind), keep) == moved);
  CHECK(check(p, both, schedule(batch, rows_behind, manual("B", {{"t", 1}})), keep) == moved);
  // Two axes, the major one first.
  CHECK(check(p, both,
              schedule(batch, manual("B", {{"i", 0}}), rows_behind, manual("B", {{"t", 0}})),
              keep) == moved);
  // 3 times 2 indices of 4 bytes, and 3 times 2 rows of 16 bytes.
  CHECK(bytes(pt::partition(p, four, schedule(at_once), {.passes = keep})) == 24 + 96);
  // A table that is smaller than the gathered rows is all-gathered.
  const auto many =
      pt::trace(look_up, pt::input<float, 8, 4>("t"), pt::input<std::int32_t, 32>("i"));
  CHECK(check(many, four, schedule(batch, rows_behind), keep) == pt::collectives{.all_gather = 1});
  // Columns from which each row gathers its own, and windows of several rows.
  const auto along = pt::trace([](auto t, auto i) { return pt::take_along_axis<1>(t, i); },
                               pt::input<float, 4, 64>("t"), pt::input<std::int32_t, 4, 4>("i"));
  CHECK(check(along, four, schedule(manual("M", {{"i", 1}}), manual("M", {{"t", 1}})), keep) ==
        moved);
  const auto windows = parse(
      "(%t: tensor<64x4xf32>, %i: tensor<4x1xi32>) {\n  %y = gather(%t, %i) {offset_dims=[1, 2], "
      "start_index_map=[0], index_vector_dim=1, slice_sizes=[3, -1]} : tensor<4x3x4xf32>\n  return "
      "%y : tensor<4x3x4xf32>\n}\n");
  CHECK(check(windows, four, schedule(batch, rows_behind), keep) == moved);
}

TEST_CASE("updates of rows that are sharded along their batch are sent to the rows") {
  const auto p = pt::trace(descend, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"));
  const auto batch = manual("M", {{"i", 0}});
  // The indices and the rows that they gather; then the indices within bounds and the cotangents.
  CHECK(check(p, four, schedule(batch, rows), keep) ==
        pt::collectives{.all_gather = 3, .reduce_scatter = 1});
  // With fewer rows than indices, their sum is scattered instead.
  const auto many =
      pt::trace(descend, pt::input<float, 8, 4>("t"), pt::input<std::int32_t, 32>("i"));
  CHECK(check(many, four, schedule(batch, rows), keep) ==
        pt::collectives{.all_gather = 1, .reduce_scatter = 1});
  for (const char* update : {"add", "max", "min", "multiply"}) {
    const auto up = parse(
        "(%i: tensor<8xi32>, %u: tensor<8x4xf32>, %t: tensor<64x4xf32>) {\n  %s = scatter(%i, %u) "
        "{" +
        std::string(update) +
        "} : tensor<64x4xf32>\n  %y = add(%s, %t) : tensor<64x4xf32>\n  return %y : "
        "tensor<64x4xf32>\n}\n");
    CHECK(check(up, four, schedule(batch, rows), keep) == pt::collectives{.all_gather = 2});
    CHECK(check(up, both, schedule(batch, rows, manual("B", {{"t", 1}})), keep) ==
          pt::collectives{.all_gather = 2});
  }
}

TEST_CASE(
    "stationary rows are an option, which the report recommends with the bytes that it saves") {
  const auto p = pt::trace(descend, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"));
  const auto tactics = schedule(manual("M", {{"t", 0}, {"i", 0}}));
  const auto off = pt::partition(p, four, tactics);
  const auto on = pt::partition(p, four, tactics, {.passes = keep});
  CHECK(off.cost.collective_bytes == 312);
  CHECK(on.cost.collective_bytes == 240);
  const auto recommended = [](const pt::partitioned& r) {
    const std::string all = str(pt::report(r));
    const auto at = all.find("possible with passes stationary_rows: ");
    return at == std::string::npos ? "" : all.substr(at, all.find(',', at) - at);
  };
  CHECK(recommended(off) == "possible with passes stationary_rows: sent 312 -> 240 bytes");
  CHECK(recommended(on).empty());
  CHECK(recommended(pt::partition(p, four, schedule(rows))).empty());
  CHECK(pt::after(on, 0).cost.collective_bytes == 240);
  // Without the option, both shardings together conflict. Unsettled, the gather stays replicated.
  const auto find =
      pt::trace(look_up, pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"));
  const auto at_once = schedule(data::unsettled(manual("M", {{"t", 0}, {"i", 0}})));
  const auto open = pt::partition(find, four, at_once);
  CHECK(open.core.conflicts.size() == 1);
  CHECK(recommended(open) == "possible with passes stationary_rows: sent 216 -> 120 bytes");
  CHECK(pt::partition(find, four, at_once, {.passes = keep}).core.conflicts.size() == 0);
}

TEST_CASE("gathered rows are scattered, and added to other sums, before they are reduced") {
  const auto shared = pt::trace(
      [](auto t, auto u, auto i, auto j) { return pt::take<0>(t, i) + pt::take<0>(u, j); },
      pt::input<float, 16, 4>("t"), pt::input<float, 12, 4>("u"), pt::input<std::int32_t, 8>("i"),
      pt::input<std::int32_t, 8>("ij"));
  CHECK(check(shared, four, schedule(manual("M", {{"t", 0}, {"u", 0}}))) ==
        pt::collectives{.all_reduce = 1});
  const auto onwards = pt::trace([](auto t, auto i, auto x) { return pt::take<0>(t, i) * x; },
                                 pt::input<float, 16, 4>("t"), pt::input<std::int32_t, 8>("i"),
                                 pt::input<float, 8, 4>("x"));
  CHECK(check(onwards, four, schedule(rows, manual("M", {{"x", 0}}))) ==
        pt::collectives{.reduce_scatter = 1});
}

TEST_CASE("NaN, infinities and the sign of zero pass through a gather") {
  const auto r = lookup_step();
  const float special[] = {std::numeric_limits<float>::quiet_NaN(),
                           std::numeric_limits<float>::infinity(),
                           -std::numeric_limits<float>::infinity(), -0.0f};
  pt::array t(pt::tensor_type{dtype::f32, {16, 4}}), i(pt::tensor_type{dtype::i32, {8}});
  for (int k = 0; k < 64; ++k) t.mutable_data<float>()[k] = special[(k / 4 + k) % 4];
  for (int k = 0; k < 8; ++k) i.mutable_data<std::int32_t>()[k] = 3 * k - 2;
  const pt::array found = pt::emulate(r, t, i)[0], whole = pt::evaluate(r.source, t, i)[0];
  for (int k = 0; k < 32; ++k) {
    const float a = found.data<float>()[k], b = whole.data<float>()[k];
    CHECK((a != a) == (b != b));
    if (a == a) CHECK(std::bit_cast<std::uint32_t>(a) == std::bit_cast<std::uint32_t>(b));
  }
}

namespace {
constexpr auto put_at = [] {
  const auto f =
      pt::trace([](auto x, auto u, auto i, auto j) { return pt::dynamic_update_slice(x, u, i, j); },
                pt::input<float, 2, 4>("x"), pt::input<float, 1, 1>("u"),
                pt::input<std::int32_t>("i"), pt::input<std::int32_t>("j"));
  return pt::partition(f, both, schedule(manual("B", {{"x", 0}}), manual("M", {{"x", 1}})));
};
}  // namespace
// At compile time, too: it reads nothing that has moved since.
static_assert(pt::check<put_at>.collectives == pt::collectives{});
TEST_CASE(
    "an element of a tensor that is sharded along two dimensions, with starts out of bounds") {
  const auto r = put_at();
  const auto number = [](double n) {
    return data::fill({dtype::i32, {}}, [=](std::int64_t) { return n; });
  };
  for (int i = -1; i < 4; ++i)
    for (int j = -1; j < 6; ++j) {
      const std::vector in{data::fill({dtype::f32, {2, 4}}, [](std::int64_t k) { return k; }),
                           data::fill({dtype::f32, {1, 1}}, [](std::int64_t) { return 9; }),
                           number(i), number(j)};
      const pt::results whole = pt::evaluate(r.source, in);
      CHECK((pt::equal(pt::emulate(r, in), whole) && pt::equal(pt::temporal(r, in), whole)));
    }
}

TEST_CASE("updates of a tensor that is sharded along its rows, and of a sharded batch") {
  const std::string header =
      "(%t: tensor<16x4xf32>, %i: tensor<40xi32>, %u: tensor<40x4xf32>) {\n  %y = scatter(%t, %i, ";
  for (const std::string update : {"assign", "add", "max", "min", "multiply"}) {
    const auto p = parse(header + "%u) {" + update +
                         "} : tensor<16x4xf32>\n  return %y : tensor<16x4xf32>\n}\n");
    CHECK(check(p, four, schedule(rows)) == pt::collectives{});
    const auto batch = manual("M", {{"u", 0}, {"i", 0}});
    const bool splits = update != "assign";
    CHECK(check(p, four, schedule(batch)).all_reduce == (splits ? 1 : 0));
    const auto halves = manual("B", {{"u", 0}, {"i", 0}});
    if (splits) CHECK(check(p, both, schedule(rows, halves)) == pt::collectives{.all_reduce = 1});
  }
  for (dtype i : {dtype::i8, dtype::u8, dtype::i64, dtype::u32, dtype::u64}) {
    const auto p = parse("(%t: tensor<300x2xi32>, %i: " + type("8x", i) +
                         ", %u: tensor<8x2xi32>) {\n  %y = scatter(%t, %i, %u) {add} : "
                         "tensor<300x2xi32>\n  return %y : tensor<300x2xi32>\n}\n");
    CHECK(check(p, four, schedule(rows)) == pt::collectives{});
  }
}

namespace {

using pt::axes;
constexpr auto pairs_of = [](auto x, auto i) {
  using numbers = pt::gather_numbers<axes<>, axes<0, 1>, axes<>, axes<>, axes<0, 1>, 1>;
  return pt::gather<numbers, axes<1, 1>>(x, i);
};
constexpr auto boxes_of = [](auto x, auto i) {
  using numbers = pt::gather_numbers<axes<1, 2>, axes<>, axes<>, axes<>, axes<0, 1>, 1>;
  return pt::gather<numbers, axes<3, 2>>(x, i);
};
constexpr auto boxes_added = [](auto x, auto i, auto u) {
  using numbers = pt::gather_numbers<axes<1, 2>, axes<>, axes<>, axes<>, axes<0, 1>, 1>;
  return pt::scatter<pt::ops::scatter_update::add, numbers>(x, i, u);
};

}  // namespace

TEST_CASE("index vectors, and windows that may cover several blocks") {
  const auto x = pt::input<float, 8, 8>("x");
  const auto one = schedule(manual("M", {{"x", 0}}));
  const auto two = schedule(manual("M", {{"x", 0}}), manual("B", {{"x", 1}}));
  const pt::collectives sum{.all_reduce = 1};
  const auto pairs = pt::trace(pairs_of, x, pt::input<int, 5, 2>("i"));
  CHECK(check(pairs, four, one) == sum);
  CHECK(check(pairs, both, two) == sum);
  const auto gradient = [](auto z, auto i, auto u) {
    return pt::grad([&](auto t) { return pt::sum(pairs_of(t, i) * u); }, z);
  };
  const auto back = pt::trace(gradient, x, pt::input<int, 5, 2>("i"), pt::input<float, 5>("u"));
  CHECK(check(back, both, two) == pt::collectives{});
  const auto boxes = pt::trace(boxes_of, x, pt::input<int, 2, 2>("i"));
  CHECK(check(boxes, four, one) == sum);
  CHECK(check(boxes, both, two) == sum);
  // Twelve boxes are more than the tensor, which is gathered.
  CHECK(check(pt::trace(boxes_of, x, pt::input<int, 12, 2>("i")), four, one) ==
        pt::collectives{.all_gather = 1});
  const auto added =
      pt::trace(boxes_added, x, pt::input<int, 5, 2>("i"), pt::input<float, 5, 3, 2>("u"));
  CHECK(check(added, four, one) == pt::collectives{});
  CHECK(check(added, both, two) == pt::collectives{});
  // Bits of updates that are sharded along their batch are combined like sums.
  const auto joined = pt::trace(
      [](auto t, auto i, auto u) {
        return std::tuple{pt::scatter_or(t, i, u), pt::scatter_and(t, i, u)};
      },
      pt::input<int, 8, 2>("x"), pt::input<int, 8>("i"), pt::input<int, 8, 2>("u"));
  CHECK(check(joined, four, schedule(manual("M", {{"i", 0}, {"u", 0}}))) ==
        pt::collectives{.all_reduce = 2});
}

TEST_CASE("one position of a cache that is sharded along it, read and written") {
  const std::string cache =
      "(%t: tensor<16x4xf32>, %u: tensor<1x4xf32>, %i: tensor<i32>) {\n"
      "  %z = constant {0} : tensor<i32>\n";
  const auto write = parse(cache +
                           "  %y = dynamic_update_slice(%t, %u, %i, %z) : "
                           "tensor<16x4xf32>\n  return %y : tensor<16x4xf32>\n}\n");
  const auto read = parse(cache +
                          "  %y = dynamic_slice(%t, %i, %z) {sizes=[1, -1]} : "
                          "tensor<1x4xf32>\n  return %y : tensor<1x4xf32>\n}\n");
  CHECK(check(write, four, schedule(rows)) == pt::collectives{});
  CHECK(check(read, four, schedule(rows)) == pt::collectives{.all_reduce = 1});
  CHECK(check(write, both, schedule(rows, manual("B", {{"t", 1}}))) == pt::collectives{});
}

namespace {

constexpr auto greedy_step = [] {
  return pt::partition(
      pt::trace([](auto z) { return pt::argmax<1>(z); }, pt::input<float, 6, 16>("z")), four,
      schedule(manual("M", {{"z", 1}})));
};
// Values and positions of the four blocks.
static_assert(pt::check<greedy_step>.collectives == pt::collectives{.all_gather = 2});
static_assert(pt::check<greedy_step>.collective_bytes == 2 * 3 * 6 * 4);

// Where shards of the result are needed, each device gets its own, as from a reduce-scatter of a
// sum: three quarters of 8 elements are sent.
constexpr auto share_step = [] {
  return pt::partition(
      pt::trace([](auto z, auto w) { return std::get<0>(pt::max_with_position<1>(z)) * w; },
                pt::input<float, 8, 16>("z"), pt::input<float, 8>("w")),
      four, schedule(manual("M", {{"z", 1}, {"w", 0}})));
};
static_assert(pt::check<share_step>.collectives == pt::collectives{.all_to_all = 2});
static_assert(pt::check<share_step>.collective_bytes == 2 * 8 * 4 * 3 / 4);

}  // namespace

TEST_CASE("the maximum of sharded values and its position") {
  const auto columns = manual("M", {{"z", 1}});
  const auto both_ways = [](auto z) { return std::tuple{pt::argmax<1>(z), pt::argmin<1>(z)}; };
  const auto p = pt::trace(both_ways, pt::input<float, 6, 16>("z"));
  const auto more = manual("B", {{"z", 1}}), batch = manual("B", {{"z", 0}});
  CHECK(check(p, four, schedule(columns)) == pt::collectives{.all_gather = 4});
  CHECK(check(p, both, schedule(columns, more)) == pt::collectives{.all_gather = 4});
  CHECK(check(p, both, schedule(batch, columns)) == pt::collectives{.all_gather = 4});
  const auto of_integers = pt::trace(both_ways, pt::input<std::uint8_t, 4, 8>("z"));
  // (Four rows can be distributed; no use needs all values.)
  CHECK(check(of_integers, four, schedule(columns)) ==
        pt::collectives{.all_gather = 2, .all_to_all = 4});
  // The first of equal values, and NaN before every number.
  const auto r = greedy_step();
  pt::array z(pt::tensor_type{dtype::f32, {6, 16}});
  for (int k = 0; k < 96; ++k)
    z.mutable_data<float>()[k] = k % 7 == 0   ? std::numeric_limits<float>::quiet_NaN()
                                 : k % 3 == 0 ? std::numeric_limits<float>::infinity()
                                              : -0.0f;
  CHECK(pt::equal(pt::emulate(r, z), pt::evaluate(r.source, z)));
}

namespace {

constexpr auto columns = manual("M", {{"z", 1}});
constexpr auto greatest = [](auto z) {
  const auto [values, positions] = pt::top_k<2>(z);
  return std::tuple{values, positions};
};
constexpr auto beam_step = [] {
  return pt::partition(pt::trace(greatest, pt::input<float, 6, 32>("z")), four, schedule(columns));
};
// Two pairs of each block, values and positions, each of 6 x 2 elements of 4 bytes, to three other
// devices. (Gathering z would send 3 * 6 * 8 * 4 bytes.)
static_assert(pt::check<beam_step>.collectives == pt::collectives{.all_gather = 2});
static_assert(pt::check<beam_step>.collective_bytes == 2 * 3 * 6 * 2 * 4);

// The best two of 32 experts, which are sharded with the columns of the gate: the scores stay in
// place. So does the derivative, which puts cotangents where the scores are. Each device gets two
// rows of the pairs of all blocks, and sends its results to the others: three quarters of 8 x 2
// elements of 4 bytes, twice. (Gathering all pairs would send 2 * 3 * 8 * 2 * 4 bytes.)
constexpr auto route = [](auto x, auto gate) {
  const auto loss = [&](auto g) {
    const auto [values, positions] = pt::top_k<2>(pt::matmul(x, g));
    return pt::sum(values * values);
  };
  return gate - pt::grad(loss, gate);
};
constexpr auto route_step = [] {
  return pt::partition(
      pt::trace(route, pt::input<float, 8, 4>("x"), pt::input<float, 4, 32>("gate")), four,
      schedule(manual("M", {{"gate", 1}})));
};
static_assert(pt::check<route_step>.collectives ==
              pt::collectives{.all_gather = 2, .all_to_all = 2});
static_assert(pt::check<route_step>.collective_bytes == 4 * 8 * 2 * 4 * 3 / 4);

}  // namespace

TEST_CASE("the k maxima of sharded values and their positions") {
  const auto p = pt::trace(greatest, pt::input<float, 6, 32>("z"));
  const auto more = manual("B", {{"z", 1}}), batch = manual("B", {{"z", 0}});
  const pt::collectives pairs{.all_gather = 2}, whole{.all_gather = 1};
  CHECK(check(p, four, schedule(columns)) == pairs);
  CHECK(check(p, both, schedule(columns, more)) == pairs);
  CHECK(check(p, both, schedule(more, columns)) == pairs);
  CHECK(check(p, both, schedule(batch, columns)) == pairs);
  for (dtype t : {dtype::f64, dtype::bf16, dtype::i8, dtype::u32, dtype::i64})
    for (const std::string k : {"1", "2"}) {
      const auto of =
          parse("(%z: " + type("3x64x", t) + ") {\n  %n = iota {dim=1} : tensor<3x64xi32>\n" +
                "  %v, %i = top_k(%z, %n) {k=" + k + "} : " + type("3x" + k + "x", t) +
                ", tensor<3x" + k + "xi32>\n  return %i : tensor<3x" + k + "xi32>\n}\n");
      CHECK(check(of, four, schedule(columns)) == pairs);
    }
  // Pairs take at least as many bytes as a block of z.
  const auto short_pieces = pt::trace(greatest, pt::input<float, 6, 12>("z"));
  CHECK(check(short_pieces, four, schedule(columns)) == whole);
  CHECK(check(pt::trace(greatest, pt::input<float, 6, 24>("z")), both, schedule(columns, more)) ==
        pt::collectives{.all_gather = 3});
  CHECK(check(route_step().source, four, schedule(manual("M", {{"gate", 1}}))) ==
        route_step().collectives);
  // The first of equal values, and NaN before every number.
  const auto beam = beam_step();
  pt::array z(pt::tensor_type{dtype::f32, {6, 32}});
  for (int k = 0; k < 6 * 32; ++k)
    z.mutable_data<float>()[k] = k % 7 == 0   ? std::numeric_limits<float>::quiet_NaN()
                                 : k % 3 == 0 ? std::numeric_limits<float>::infinity()
                                              : -0.0f;
  CHECK(pt::equal(pt::emulate(beam, z), pt::evaluate(beam.source, z)));
}

namespace {

constexpr auto run_on = [](auto x) { return pt::cumsum<0>(x); };
constexpr auto running_step = [] {
  return pt::partition(pt::trace(run_on, pt::input<float, 16, 3>("t")), four, schedule(rows));
};
// One total of each block, 3 elements of 4 bytes, to three other devices. (Gathering x would send 3
// * 4 * 3 * 4 bytes.)
static_assert(pt::check<running_step>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<running_step>.collective_bytes == 3 * 3 * 4);
static_assert(pt::check<running_step>.output(0).local_shape == pt::shape{4, 3});

}  // namespace

TEST_CASE("running sums, products and extrema along a sharded dimension") {
  const pt::collectives one{.all_gather = 1};
  const auto more = manual("B", {{"t", 0}}), lines = manual("B", {{"t", 1}});
  for (const std::string reverse : {"", ", reverse"})
    for (const std::string exclusive : {"", ", exclusive"})
      for (const std::string combine : {"", ", combine=max", ", combine=min", ", combine=multiply"})
        for (dtype t : {dtype::f32, dtype::bf16, dtype::i8, dtype::u64}) {
          const std::string type_of = type("16x4x", t);
          const auto p =
              parse("(%t: " + type_of + ") {\n  %y = cumsum(%t) {dim=0" + reverse + exclusive +
                    combine + "} : " + type_of + "\n  return %y : " + type_of + "\n}\n");
          CHECK(check(p, four, schedule(rows)) == one);
          CHECK(check(p, both, schedule(rows, more)) == one);
          CHECK(check(p, both, schedule(more, rows)) == one);
          CHECK(check(p, both, schedule(lines, rows)) == one);
        }
  for (const std::string combine : {"and", "or"}) {
    const auto p = parse("(%t: tensor<8x2xi1>) {\n  %y = cumsum(%t) {dim=0, combine=" + combine +
                         "} : tensor<8x2xi1>\n  return %y : tensor<8x2xi1>\n}\n");
    CHECK(check(p, four, schedule(rows)) == one);
  }
}

TEST_CASE("gathers and scatters of rows that the devices do not divide") {
  const auto padded = manual("M", {{"t", 0}}, "rows", pt::uneven::pad);
  for (const std::string n : {"10", "13", "3"}) {
    const std::string t = "%t: tensor<" + n + "x4xf32>", result = "tensor<" + n + "x4xf32>";
    const auto program = [&](const std::string& more, const std::string& op, const std::string& y) {
      return parse("(" + t + ", " + more + ") {\n  %y = " + op + " : " + y +
                   "\n  return %y : " + y + "\n}\n");
    };
    CHECK(check(program("%i: tensor<9xi32>", "gather(%t, %i)", "tensor<9x4xf32>"), four,
                schedule(padded)) == pt::collectives{.all_reduce = 1});
    CHECK(check(program("%i: tensor<9xi32>, %u: tensor<9x4xf32>", "scatter(%t, %i, %u) {assign}",
                        result),
                four, schedule(padded)) == pt::collectives{});
    CHECK(check(program("%u: tensor<1x4xf32>, %i: tensor<i32>, %ij: tensor<i32>",
                        "dynamic_update_slice(%t, %u, %i, %ij)", result),
                four, schedule(padded)) == pt::collectives{});
    if (n != "3")  // (one position on each device is not a gather)
      CHECK(check(program("%i: tensor<i32>, %ij: tensor<i32>",
                          "dynamic_slice(%t, %i, %ij) {sizes=[1, -1]}", "tensor<1x4xf32>"),
                  four, schedule(padded)) == pt::collectives{.all_reduce = 1});
    for (const std::string how : {"", ", reverse", ", exclusive", ", reverse, combine=max"})
      CHECK(check(program("%i: tensor<i32>", "cumsum(%t) {dim=0" + how + "}", result), four,
                  schedule(padded)) == pt::collectives{.all_gather = 1});
    // Updates that a device has none of, and a table that grows only because another value does.
    // Few updates are gathered.
    CHECK(check(program("%i: tensor<9xi32>, %u: tensor<9x4xf32>", "scatter(%t, %i, %u) {add}",
                        result),
                four, schedule(manual("M", {{"u", 0}}, "batch", pt::uneven::pad))) ==
          (n == "3" ? pt::collectives{.all_reduce = 1} : pt::collectives{.all_gather = 1}));
  }
  const auto step =
      pt::trace(descend, pt::input<float, 10, 4>("t"), pt::input<std::int32_t, 8>("i"));
  CHECK(check(step, four, schedule(padded)) == pt::collectives{.all_reduce = 1});
}

TEST_CASE("scatters without updates: each device starts at the position of the first") {
  const auto p = parse(
      "(%t: tensor<4xf32>, %i: tensor<6x0xi32>, %u: tensor<6x0xf32>, %j: tensor<0x2xi32>, "
      "%v: tensor<0x2xf32>) {\n"
      "  %y = scatter(%t, %i, %u) {add} : tensor<4xf32>\n"
      "  %z = scatter(%y, %j, %v) {multiply} : tensor<4xf32>\n"
      "  return %z : tensor<4xf32>\n}\n");
  REQUIRE(!p.error);
  for (const char* name : {"u", "i", "v", "j"})
    for (int dim : {0, 1}) check(p, both, schedule(manual("B", {{name, dim}}, pt::uneven::pad)));
}

namespace {

/// log(exp(a) + exp(b)), and the mean and the number of values, by functions of the user's own.
struct log_add {
  static constexpr double identity = -std::numeric_limits<double>::infinity();
  static constexpr bool commutes = true;
  constexpr auto operator()(auto a, auto b) const {
    const auto most = pt::maximum(a, b);
    return most + pt::log(pt::exp(a - most) + pt::exp(b - most));
  }
};
/// Maps x -> a x + b, in sequence.
struct compose {
  static constexpr std::tuple<double, double> identity{1, 0};
  static constexpr bool commutes = false;
  constexpr auto operator()(auto f, auto g) const {
    const auto [a, b] = f;
    const auto [c, d] = g;
    return std::tuple{c * a, c * b + d};
  }
};
struct greatest_of_two {
  static constexpr int identity = -100;
  static constexpr bool commutes = true;
  constexpr auto operator()(auto a, auto b) const { return pt::maximum(a, b); }
};
struct last_of_two {
  static constexpr int identity = 0;
  static constexpr bool commutes = false;
  constexpr auto operator()(auto a, auto b) const { return select(pt::equal(b, b - b), a, b); }
};
constexpr auto log_sum = [](auto z) { return pt::fold<log_add, 1>(z); };
constexpr auto log_sum_step = [] {
  return pt::partition(pt::trace(log_sum, pt::input<float, 6, 16>("z")), four, schedule(columns));
};
// The result of each block, 6 numbers of 4 bytes, to three other devices.
static_assert(pt::check<log_sum_step>.collectives == pt::collectives{.all_gather = 1});
static_assert(pt::check<log_sum_step>.collective_bytes == 3 * 6 * 4);

}  // namespace

namespace {
struct sum_of_rounded {
  static constexpr float identity = 0;
  static constexpr bool commutes = false;
  constexpr auto operator()(auto a, auto b) const {
    return a + pt::convert<float>(pt::convert<pt::bf16>(b));
  }
};
}  // namespace

TEST_CASE("folds round where their function converts to 16 bits") {
  const auto f =
      pt::trace([](auto z) { return pt::fold<sum_of_rounded, 0>(z); }, pt::input<float, 2>("z"));
  const auto y = pt::evaluate(f, data::fill(f.input_type(0), [](auto i) { return i * 257.; }));
  CHECK(y[0].template data<float>()[0] == 256);
}

namespace {
struct whole_sum {  // of whole numbers
  static constexpr double identity = 0;
  static constexpr bool commutes = true;
  constexpr auto operator()(auto a, auto b) const { return floor(a + b + 0.5); }
};
}  // namespace

TEST_CASE("a fold's function consists of elementwise ops; others are named in the error") {
  const auto f =
      pt::trace([](auto z) { return pt::fold<whole_sum>(z); }, pt::input<float, 5000>("z"));
  const auto y = pt::evaluate(f, data::fill(f.input_type(0), [](auto i) { return i % 7; }));
  CHECK(y[0].template data<float>()[0] == 14995);
  pt::builder b, g;
  const pt::value_id x = pt::ops::parameter(b, "x", {pt::dtype::f32, {4}});
  const pt::value_id left = pt::ops::parameter(g, "", {pt::dtype::f32, {}});
  pt::ops::parameter(g, "", {pt::dtype::f32, {}});
  const pt::value_id bits = pt::ops::bitcast_convert(g, left, pt::dtype::i32);
  g.p.outputs.push_back({pt::ops::bitcast_convert(g, bits, pt::dtype::f32), {}});
  CHECK(pt::ops::fold(b, {&x, 1}, {0}, {0}, true, g.p) == -1);
  CHECK(
      std::string_view(b.p.error.message.view()) ==
      "S198 fold: its function uses bitcast_convert; it may use ops that work element by element, "
      "comparisons, select, convert and numbers");
}

TEST_CASE("gradients of folds of one value twice, and of values that depend on each other") {
  // a + b x of composed maps: the slopes multiply, and so do the parts of the offsets.
  const auto product_and_sum = [](auto u, auto v) {
    const auto [a, b] = pt::fold<compose, 1>(u, v);
    return pt::sum(a * b);
  };
  const auto by_loop = [](auto u, auto v) {
    auto a = pt::slice<1, 0, 1>(u), b = pt::slice<1, 0, 1>(v);
    const auto next = [&](auto x, auto y) {
      const auto [c, d] = compose{}(std::tuple{a, b}, std::tuple{x, y});
      a = c, b = d;
    };
    next(pt::slice<1, 1, 2>(u), pt::slice<1, 1, 2>(v));
    next(pt::slice<1, 2, 3>(u), pt::slice<1, 2, 3>(v));
    return pt::sum(a * b);
  };
  const auto gradient = [](auto f) {
    return pt::trace([f](auto z) { return pt::grad(f, z); }, pt::input<double, 2, 3>("z"));
  };
  const auto same = [&](auto f, auto g) {
    const auto one = gradient(f), other = gradient(g);
    const auto in = pt::inputs_of_seed(one, 5);
    CHECK(pt::all_close(pt::evaluate(one, in), pt::evaluate(other, in), 1e-12, 1e-12));
  };
  same([=](auto z) { return product_and_sum(z, z); }, [=](auto z) { return by_loop(z, z); });
  same([=](auto z) { return product_and_sum(z, exp(z)); },
       [=](auto z) { return by_loop(z, exp(z)); });
  same([=](auto z) { return product_and_sum(z * z, z); },
       [=](auto z) { return by_loop(z * z, z); });
}

TEST_CASE("reductions of sharded values by a user's function") {
  const auto gradient =
      pt::trace([](auto z) { return pt::grad([](auto x) { return pt::sum(log_sum(x)); }, z); },
                pt::input<double, 6, 16>("z"));
  const auto in = pt::inputs_of_seed(gradient, 3);
  const auto softmax =
      pt::trace([](auto z) { return pt::nn::softmax(z); }, pt::input<double, 6, 16>("z"));
  CHECK(pt::all_close(pt::evaluate(gradient, in), pt::evaluate(softmax, in), 1e-12, 1e-12));

  CHECK(pt::all_close(pt::evaluate(pt::trace([](auto z) { return pt::fold<log_add>(z); },
                                             pt::input<double, 6, 16>("z")),
                                   in),
                      pt::evaluate(pt::trace([](auto z) { return pt::log(pt::sum(pt::exp(z))); },
                                             pt::input<double, 6, 16>("z")),
                                   in),
                      1e-12, 1e-12));

  const auto maps = pt::trace(
      [](auto z, auto u) {
        const auto [a, b] = pt::fold<compose, 1>(z, u);
        return std::tuple{a, b};
      },
      pt::input<int, 4, 16>("z"), pt::input<int, 4, 16>("u"));
  const auto both_cut = manual("M", {{"z", 1}, {"u", 1}}),
             batch = manual("B", {{"z", 0}, {"u", 0}});
  const auto more = manual("B", {{"z", 1}, {"u", 1}});
  CHECK(check(maps, four, schedule(both_cut)) == pt::collectives{.all_gather = 2, .all_to_all = 2});
  CHECK(check(maps, both, schedule(both_cut, batch)) == pt::collectives{.all_gather = 2});
  CHECK(check(maps, both, schedule(both_cut, more)) == pt::collectives{.all_gather = 2});
  // In any order if the function commutes, otherwise along the first dimension only.
  const auto two_dims = [](auto f) {
    return pt::trace([f](auto z) { return f(z); }, pt::input<int, 4, 8, 3>("z"));
  };
  const auto rows_cut = manual("M", {{"z", 0}});
  for (const auto& tactic : {columns, rows_cut})
    CHECK(check(two_dims([](auto z) { return pt::fold<greatest_of_two, 0, 1>(z); }), four,
                schedule(tactic)) == pt::collectives{.all_gather = 1});
  const auto last = two_dims([](auto z) { return pt::fold<last_of_two, 0, 1>(z); });
  CHECK(check(last, four, schedule(rows_cut)) == pt::collectives{.all_gather = 1});
  CHECK(pt::summarize(pt::partition(last, four, schedule(rows_cut))).collective_bytes == 3 * 3 * 4);
  CHECK(check(last, four, schedule(columns)) == pt::collectives{.all_gather = 1});
  CHECK(pt::summarize(pt::partition(last, four, schedule(columns))).collective_bytes ==
        3 * 4 * 2 * 3 * 4);
}
