/// Bytes sent, time and memory of device-local programs, compared with closed forms.
#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include <partita/cost/memory_course.hpp>
#include <partita/cost/simulate.hpp>
#include <partita/partita.hpp>
#include <partita/report/timeline.hpp>

namespace pt = partita;

namespace {

/// A device that reaches its peak rates, so that times equal the closed forms.
constexpr pt::device ideal = [] {
  pt::device d;
  d.memory = 1e9;
  d.bandwidth = 1e9;
  d.f32 = 1e12;
  d.vector = 1e12;
  d.near = {pt::link_shape::switched, 1e8, 1e-6};
  d.tile = 1;
  return d.named("ideal");
}();

pt::collective along(pt::collective::kind_type kind, std::initializer_list<int> axes) {
  pt::collective c;
  c.kind = kind;
  for (int a : axes) c.axes.push_back(a, 0);
  return c;
}
double seconds(pt::collective::kind_type kind, std::initializer_list<int> axes, std::int64_t bytes,
               const pt::mesh& m, const pt::machine& on) {
  return pt::time_of(along(kind, axes), bytes, m, on).seconds;
}
std::string message(const pt::failure& f) { return std::string(f.message.view()); }

}  // namespace

TEST_CASE("bytes_sent: closed forms") {
  using enum pt::collective::kind_type;
  CHECK(pt::bytes_sent(all_gather, 8, 100) == 700);
  CHECK(pt::bytes_sent(all_reduce, 8, 100) == 175);
  CHECK(pt::bytes_sent(reduce_scatter, 8, 100) == 88);  // 87.5
  CHECK(pt::bytes_sent(all_to_all, 4, 100) == 75);
  CHECK(pt::bytes_sent(permute, 4, 100) == 100);
  CHECK(pt::bytes_sent(all_slice, 4, 100) == 0);
  for (auto kind : {all_gather, all_reduce, reduce_scatter, all_to_all, permute}) {
    CHECK(pt::bytes_sent(kind, 1, 100) == 0);
    CHECK(pt::bytes_sent(kind, 2, 0) == 0);
    CHECK(pt::bytes_sent(kind, pt::max_devices, pt::saturated) == pt::saturated);
  }
  // For every group size, an all_reduce sends as much as a reduce_scatter and an all_gather.
  for (std::int64_t n : {2, 3, 7, 32})
    for (std::int64_t piece : {1, 5, 1000})
      CHECK(pt::bytes_sent(all_reduce, n, n * piece) ==
            pt::bytes_sent(reduce_scatter, n, n * piece) + pt::bytes_sent(all_gather, n, piece));
}

TEST_CASE("times of collectives: closed forms") {
  using enum pt::collective::kind_type;
  const pt::mesh m{{"A", 4}, {"B", 8}};
  const auto near = [](double a, double b) { return a == doctest::Approx(b).epsilon(1e-12); };
  // alpha is 1 us, beta 1 / (100 MB/s).
  CHECK(near(seconds(all_gather, {1}, 1000, m, ideal), 7 * 1e-6 + 7 * 1000 / 1e8));
  CHECK(near(seconds(all_reduce, {1}, 8000, m, ideal), 2 * (7 * 1e-6 + 7 * 1000 / 1e8)));
  CHECK(near(seconds(reduce_scatter, {1}, 8000, m, ideal), 7 * 1e-6 + 7 * 1000 / 1e8));
  CHECK(near(seconds(all_to_all, {0}, 4000, m, ideal), 3 * 1e-6 + 3 * 1000 / 1e8));
  CHECK(near(seconds(permute, {0}, 4000, m, ideal), 1e-6 + 4000 / 1e8));
  CHECK(seconds(all_slice, {0}, 4000, m, ideal) == 0);
  // A collective over two axes sends as many bytes as one over a single axis of their size, in
  // fewer messages.
  CHECK(near(seconds(all_gather, {0, 1}, 1000, m, ideal), 10 * 1e-6 + 31 * 1000 / 1e8));
  const auto work = pt::time_of(along(all_reduce, {0, 1}), 32000, m, ideal);
  CHECK(work.messages[0] == 2 * 3);
  CHECK(work.messages[1] == 2 * 7);
  // In a ring, all_to_all sends a quarter of the data over the busiest link, and a shift by n uses
  // n links.
  pt::device ring = ideal;
  ring.near.shape = pt::link_shape::ring;
  CHECK(near(seconds(all_to_all, {1}, 8000, m, ring), 7 * 1e-6 + 2 * 8000 / 1e8));
  CHECK(near(seconds(all_gather, {1}, 1000, m, ring), 7 * 1e-6 + 7 * 1000 / 1e8));
  auto shift = along(permute, {1});
  shift.map = {pt::device_map::ring, 3};
  CHECK(near(pt::time_of(shift, 1000, m, ring).seconds, 1e-6 + 3 * 1000 / 1e8));
  shift.map.shift = 7;  // one step in the other direction
  CHECK(near(pt::time_of(shift, 1000, m, ring).seconds, 1e-6 + 1000 / 1e8));
  // A torus uses the links of both axes at once.
  pt::device torus = ideal;
  torus.near.shape = pt::link_shape::torus;
  CHECK(near(seconds(all_gather, {0, 1}, 1000, m, torus), 10 * 1e-6 + 31 * 1000 / 2e8));
  CHECK(near(seconds(all_gather, {1}, 1000, m, torus), 7 * 1e-6 + 7 * 1000 / 1e8));
}

TEST_CASE("links follow nodes, or the link that is given for an axis") {
  using enum pt::collective::kind_type;
  pt::device d = ideal;
  d.far = {pt::link_shape::switched, 1e7, 0};
  d.near.latency = 0;
  d.node = 8;
  const auto time = [&](const pt::mesh& m, int axis) {
    return seconds(all_gather, {axis}, 1000, m, d);
  };
  // The last axis numbers neighbouring devices, so it is inside a node.
  CHECK(time({{"A", 4}, {"B", 8}}, 1) == doctest::Approx(7 * 1000 / 1e8));
  CHECK(time({{"A", 4}, {"B", 8}}, 0) == doctest::Approx(3 * 1000 / 1e7));
  // Four devices of a node along A, four nodes: only the first, small blocks cross nodes.
  CHECK(time({{"A", 16}, {"B", 2}}, 0) == doctest::Approx(3 * 1000 / 1e7 + 3 * 4000 / 1e8));
  // Groups of three do not divide a node of eight.
  CHECK(time({{"A", 4}, {"B", 3}}, 0) == doctest::Approx(3 * 1000 / 1e7));
  pt::machine told = d;
  told.told[0] = {pt::link_shape::switched, 5e7, 0};
  CHECK(seconds(all_gather, {0}, 1000, {{"A", 4}, {"B", 8}}, told) ==
        doctest::Approx(3 * 1000 / 5e7));
}

namespace {
pt::device_program unsharded(const pt::program& p) {
  return pt::partition(p, pt::mesh{{"B", 1}}, pt::schedule()).device;
}
/// Returns the peak memory that arguments do not occupy, in bytes.
std::int64_t temporaries(const pt::program& p) {
  return pt::live_bytes(unsharded(p).local).beyond_arguments();
}
}  // namespace

TEST_CASE("values that fused kernels do not store take no memory") {
  const auto x = pt::input<float, 64, 256>("x");
  constexpr std::int64_t whole = 64 * 256 * 4, rows = 64 * 4;
  // One kernel, with any number of ops in it, and its result.
  CHECK(temporaries(pt::trace([](auto a) { return tanh(a * a + a) * 2.f; }, x)) == whole);
  CHECK(temporaries(pt::trace([](auto a) { return pt::sum<1>(exp(a) + a); }, x)) == rows);
  // exp is not recomputed; the quotient overwrites it.
  CHECK(temporaries(pt::trace([](auto a) { return pt::nn::softmax(a); }, x)) == whole + rows);
  // A cheap op that reads no more than its result is recomputed, even while a stored copy serves a
  // product,
  const auto w = pt::input<float, 256, 8>("w");
  const auto v = pt::input<float, 8, 256>("v");
  const auto beside_product = [](const auto& cheap) {
    return [cheap](auto a, auto w, auto v) {
      const auto twice = cheap(a);
      return matmul(matmul(twice, w), v) + twice;
    };
  };
  CHECK(temporaries(pt::trace(beside_product([](auto a) { return a * 2.f; }), x, w, v)) ==
        whole + 64 * 8 * 4);
  CHECK(temporaries(pt::trace(beside_product([](auto a) { return tanh(a); }), x, w, v)) ==
        2 * whole + 64 * 8 * 4);
  CHECK(temporaries(pt::trace(
            [](auto a, auto b, auto w, auto v) {
              const auto both = a + b;
              return matmul(matmul(both, w), v) + both;
            },
            x, pt::input<float, 64, 256>("b"), w, v)) == 2 * whole + 64 * 8 * 4);
  // but not in two reductions.
  CHECK(temporaries(pt::trace(
            [](auto a) {
              const auto twice = a * 2.f;
              return pt::sum(exp(twice)) + pt::sum(tanh(twice));
            },
            x)) == whole + 2 * 4);
  // A product reads memory, so its operand is stored, and so is its result.
  CHECK(temporaries(pt::trace([](auto a, auto w) { return matmul(a * 2.f, w); }, x, w)) ==
        whole + 64 * 8 * 4);
}

TEST_CASE("the next state is stored in the memory of the old state") {
  const auto p = pt::trace([](auto w, auto g) { return pt::output("w", w - g * 0.1f); },
                           pt::input<float, 64, 256>("w"), pt::input<float, 64, 256>("g"));
  CHECK(temporaries(p) == 0);
  // Not if the old state is still needed afterwards.
  const auto kept = pt::trace(
      [](auto w, auto g) {
        const auto next = w - matmul(g, w);
        return std::tuple{pt::output("w", next), pt::output("sum", pt::sum(matmul(next, w)))};
      },
      pt::input<float, 64, 64>("w"), pt::input<float, 64, 64>("g"));
  CHECK(temporaries(kept) >= 2 * 64 * 64 * 4);
}

TEST_CASE("times of kernels: the roofline") {
  const auto run = [](const pt::program& p, const pt::device& on) {
    return pt::simulate(unsharded(p), on);
  };
  const auto product =
      pt::trace([](auto a, auto b) { return matmul(a, b); }, pt::input<float, 512, 1024>("a"),
                pt::input<float, 1024, 256>("b"));
  constexpr double flops = 2. * 512 * 1024 * 256,
                   bytes = 4. * (512 * 1024 + 1024 * 256 + 512 * 256);
  pt::device fast = ideal;  // memory bandwidth
  fast.bandwidth = 1e12;
  // A sum over k elements reaches k / (k + 1/2) of the peak rate.
  CHECK(run(product, fast).time == doctest::Approx(flops / 1e12 * 1024.5 / 1024));
  CHECK(run(product, ideal).time == doctest::Approx(bytes / 1e9));
  CHECK(run(product, fast).mfu() == doctest::Approx(1024 / 1024.5));
  CHECK(run(product, fast).bytes == bytes);
  // Blocks of 384: 512 rows are padded to two blocks, 256 columns to one.
  pt::device blocks = fast;
  blocks.tile = 384;
  CHECK(run(product, blocks).time ==
        doctest::Approx(flops / 1e12 * (768. / 512) * (384. / 256) * (1024. + 192) / 1024));
  // A device may first copy windows into a matrix: 3 lines and 9 * 8 elements for each of 4 * 256
  // positions. Taps in padding are not copied, which leaves 66 elements on average.
  constexpr pt::conv_options same{.padding = pt::same_padding};
  const auto convolution =
      pt::trace([=](auto x, auto w) { return pt::conv<same>(x, w); },
                pt::input<float, 4, 16, 16, 8>("x"), pt::input<float, 3, 3, 8, 32>("w"));
  pt::device copies = fast;
  copies.window = 1e-6;
  const double rows = 4 * 256, taken = run(convolution, copies).time - run(convolution, fast).time;
  CHECK(taken == doctest::Approx(rows * (3 * 1e-6 + 4. * 66 / 1e12)));
  CHECK(run(product, copies).time == run(product, fast).time);
  // Dilated taps are copied one by one. Operands and results may be in another order, too.
  constexpr pt::conv_options apart{.dilation = {1, 2}};
  const auto dilated =
      pt::trace([=](auto x, auto w) { return pt::conv<apart>(x, w); },
                pt::input<float, 4, 16, 16, 8>("x"), pt::input<float, 3, 3, 8, 32>("w"));
  const auto more = [&](const pt::program& p) { return run(p, copies).time - run(p, fast).time; };
  CHECK(more(dilated) == doctest::Approx(4 * 14 * 12 * (9 * 1e-6 + 4. * 72 / 1e12)));
  constexpr pt::conv_options first{.channels_first = true};
  const auto channels =
      pt::trace([=](auto x, auto w) { return pt::conv<first>(x, w); },
                pt::input<float, 4, 8, 16, 16>("x"), pt::input<float, 32, 8, 1, 1>("w"));
  CHECK(more(channels) == doctest::Approx(2 * 4. * (4 * 256 * 8 + 8 * 32 + 4 * 256 * 32) / 1e12));
  // A loop takes the time of its trips.
  const auto loop = pt::trace(
      [](auto a, auto b) {
        return pt::for_loop(
            0, 7, [&](auto, auto h) { return matmul(h, b); }, a);
      },
      pt::input<float, 256, 256>("a"), pt::input<float, 256, 256>("b"));
  const auto once = pt::trace([](auto a, auto b) { return matmul(a, b); },
                              pt::input<float, 256, 256>("a"), pt::input<float, 256, 256>("b"));
  CHECK(run(loop, fast).product_flops == 7 * run(once, fast).product_flops);
  CHECK(run(loop, fast).time >= 7 * run(once, fast).time);
}

TEST_CASE("an update costs the elements that it changes") {
  const auto p = pt::trace(
      [](auto cache, auto row, auto i) {
        return pt::output("cache", pt::dynamic_update_slice(cache, row, i, i));
      },
      pt::input<float, 4096, 64>("cache"), pt::input<float, 1, 64>("row"),
      pt::input<std::int32_t>("i"));
  CHECK(pt::simulate(unsharded(p), ideal).bytes == 2 * 64 * 4);
  CHECK(temporaries(p) == 0);
}

TEST_CASE("collectives overlap with kernels") {
  const pt::mesh m{{"B", 4}};
  const auto f = pt::trace(
      [](auto x, auto w, auto v) {
        return std::tuple{pt::output("a", matmul(x, w)), pt::output("b", matmul(x, v))};
      },
      pt::input<float, 64, 512>("x"), pt::input<float, 512, 512>("w"),
      pt::input<float, 512, 512>("v"));
  const auto p = pt::partition(
      f, m, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("B", {{"w", 0}, {"v", 0}})));
  CHECK(p.collectives.all_gather == 2);
  const auto serial = pt::simulate(p.device, ideal);
  const auto beside = pt::simulate(p.device, ideal, {.overlap = true});
  CHECK(serial.time == doctest::Approx(serial.compute + serial.communication));
  CHECK(beside.compute == doctest::Approx(serial.compute));
  CHECK(beside.communication == doctest::Approx(serial.communication));
  // The first of the two products overlaps with the second gather.
  CHECK(beside.time == doctest::Approx(serial.communication + serial.compute / 2));
  CHECK(beside.exposed() < serial.exposed());
  CHECK(serial.messages[0] == 2 * 3);
}

TEST_CASE("devices: the table of known devices, and missing figures") {
  for (const pt::device* d : pt::device_table) {
    CHECK_MESSAGE(!pt::validate(*d), message(pt::validate(*d)));
    CHECK(pt::find_device(d->name()) == d);
    CHECK(d->peak(pt::dtype::f16) >= d->peak(pt::dtype::f32));
    CHECK(d->peak(pt::dtype::f64) > 0);
    CHECK(!pt::validate(pt::machine(*d), pt::mesh{{"B", 64}, {"M", 8}}));
  }
  CHECK(pt::find_device("TPUv9") == nullptr);
  CHECK(pt::tpu_v3_partir.memory == 16. * (1 << 30));
  CHECK(pt::a100_80.peak(pt::dtype::bf16) == 312e12);

  pt::device d = ideal;
  d.memory = 0;
  CHECK(message(pt::validate(d)) ==
        "D001 device \"ideal\": memory is missing; give a number above 0");
  d = ideal;
  d.link_part = 1.5;
  CHECK(message(pt::validate(d)) ==
        "D001 device \"ideal\": a fraction of the peak must be above 0 and at most 1");
  d = ideal;
  d.near = {};
  CHECK(message(pt::validate(pt::machine(d), pt::mesh{{"B", 2}})) ==
        "D002 device \"ideal\": axis \"B\" of 2 devices has no link; give the bandwidth that a "
        "device sends along it");
  CHECK(!pt::validate(pt::machine(d), pt::mesh{{"B", 1}}));
}

// ---- Memory at the peak -------------------------------------------------------------------------

namespace {
/// Two layers and their step of gradient descent with momentum.
pt::partitioned training_step() {
  const auto f = pt::trace(
      [](auto w, auto v, auto mw, auto x) {
        const auto loss = [&](auto a, auto b) {
          const auto y = matmul(tanh(matmul(x, a)), b);
          return pt::mean(y * y);
        };
        const auto gw = pt::grad([&](auto a) { return loss(a, v); }, w);
        const auto gv = pt::grad([&](auto b) { return loss(w, b); }, v);
        const auto next = mw * 0.9f + gw;
        return std::tuple{pt::output("w", w - next * 0.1f), pt::output("v", v - gv * 0.1f),
                          pt::output("mw", next)};
      },
      pt::input<float, 32, 64>("w"), pt::input<float, 64, 16>("v"), pt::input<float, 32, 64>("mw"),
      pt::input<float, 512, 32>("x"));
  return pt::partition(f, pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
}
}  // namespace

TEST_CASE("peak memory by the kind of its values") {
  const auto p = training_step();
  const pt::memory_peak peak = pt::peak_of(p.device);
  CHECK(peak.bytes == p.cost.peak_bytes);
  std::int64_t sum = peak.nested;
  for (auto each : peak.of) sum += each;
  CHECK(sum == peak.bytes);
  using enum pt::memory_kind;
  CHECK(peak[parameter] == 4 * (32 * 64 + 64 * 16));
  CHECK(peak[optimizer_state] == 4 * 32 * 64);
  CHECK(peak[input] == 4 * 128 * 32);
  CHECK(peak[activation] >= 4 * 128 * 64);  // tanh, whose derivative reads it
  REQUIRE(!peak.largest.empty());
  for (std::size_t i = 1; i < peak.largest.size(); ++i)
    CHECK(peak.largest[i - 1].bytes >= peak.largest[i].bytes);
  CHECK(pt::peak_of(p.device, 2).largest.size() == 2);
  CHECK(pt::peak_of(p.device, 0).largest.empty());
  const std::string text(pt::print_peak(p).view());
  CHECK(text.find("\n  activations") != std::string::npos);
  CHECK(text.find("\n  optimizer state") != std::string::npos);
}

TEST_CASE("a program without derivatives has inputs even if results are their next states") {
  const auto f = pt::trace([](auto w, auto g) { return pt::output("w", w - g * 0.1f); },
                           pt::input<float, 32, 32>("w"), pt::input<float, 32, 32>("g"));
  const pt::memory_peak peak =
      pt::peak_of(pt::partition(f, pt::mesh{{"B", 4}}, pt::schedule()).device);
  CHECK(peak[pt::memory_kind::input] == 2 * 4 * 32 * 32);
  CHECK(peak[pt::memory_kind::optimizer_state] == 0);
  CHECK(peak[pt::memory_kind::parameter] == 0);
}

TEST_CASE("the memory while each op runs is the sum of its live_bytes") {
  const auto looped =
      pt::partition(pt::trace(
                        [](auto x, auto w) {
                          return pt::for_loop(
                              0, 5, [&](auto, auto h) { return tanh(matmul(h, w)) + h; }, x);
                        },
                        pt::input<float, 64, 32>("x"), pt::input<float, 32, 32>("w")),
                    pt::mesh{{"B", 4}}, pt::schedule(pt::manual("B", {{"x", 0}})));
  for (const pt::partitioned& p : {training_step(), looped}) {
    const pt::memory_course course(p.device);
    const pt::live_bytes live(p.device.local);
    const pt::memory_peak peak = pt::peak_of(p.device);
    for (pt::op_id o = 0; o < course.ops(); ++o)
      CHECK(course.all(o) == live.arguments + live.during[o]);
    for (int k = 0; k < pt::memory_kinds; ++k)
      CHECK(course.of(static_cast<pt::memory_kind>(k), peak.op) == peak.of[k]);
    CHECK(course.nested(peak.op) == peak.nested);
  }
}

// ---- After each tactic, and with further tactics ------------------------------------------------

namespace {
constexpr auto BP = pt::manual("B", {{"x", 0}}, "BP");
constexpr auto MP = pt::manual("M", {{"w1", 1}}, "MP");
constexpr auto Z3 = pt::manual("B", {{"w1", 0}, {"w2", 1}}, "Z3");
template <class... Tactics>
constexpr pt::partitioned three(const Tactics&... tactics) {
  const auto f = pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                           pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}}, pt::schedule(tactics...));
}
std::string device_text(const pt::partitioned& p) {
  return std::string(pt::print(p.device).view());
}
}  // namespace

TEST_CASE("the program after each tactic is that of the schedule up to it") {
  const auto all = three(BP, MP, Z3);
  CHECK(device_text(pt::after(all, 0)) == device_text(three(BP)));
  CHECK(device_text(pt::after(all, 1)) == device_text(three(BP, MP)));
  CHECK(device_text(pt::after(all, 2)) == device_text(all));
  CHECK(pt::after(all, 1).cost.peak_bytes == three(BP, MP).cost.peak_bytes);
  CHECK(pt::after(all, 1).tactics.size() == 2);
  CHECK_THROWS_WITH(pt::after(all, 3), "P007 after: no tactic 3; there are 3");
}

TEST_CASE("a partitioned program can be partitioned further") {
  const auto all = three(BP, MP, Z3);
  const auto extended = pt::extend(pt::extend(three(BP), pt::schedule(MP)), pt::schedule(Z3));
  CHECK(device_text(extended) == device_text(all));
  CHECK(std::string(pt::report(extended).view()) == std::string(pt::report(all).view()));
  CHECK(std::string(pt::explain(extended).view()) == std::string(pt::explain(all).view()));
  CHECK_THROWS_WITH(pt::extend(three(BP), pt::schedule(pt::microbatch(2, {{"x", 0}}, "MB"))),
                    "S028 extend: \"MB\" rewrites the program, which has been partitioned; give it "
                    "to partition");
  static_assert(pt::extend(three(BP), pt::schedule(MP)).collectives.all_reduce == 1);
}

TEST_CASE("the report of each tactic on a device, and the timeline") {
  const auto all = three(BP, MP, Z3);
  const std::string text(pt::print_simulation(all, pt::a100_80).view());
  CHECK(text.find("on {\"B\":4, \"M\":2} of A100-80:\n") == 0);
  for (const char* tactic : {"\n  BP ", "\n  MP ", "\n  Z3 "})
    CHECK(text.find(tactic) != std::string::npos);
  CHECK(std::string(pt::print_simulation(all, pt::device()).view()).starts_with("error: D001"));
  const std::string events(pt::trace_events(all.device, pt::a100_80, {.overlap = true}).view());
  std::size_t complete = 0;
  for (std::size_t at = 0; (at = events.find("\"ph\": \"X\"", at)) != std::string::npos; ++at)
    ++complete;
  CHECK(complete == 2 + 3);  // products and collectives
  CHECK(events.find("one device of {\\\"B\\\":4") != std::string::npos);
}

// ---- At compile time ----------------------------------------------------------------------------

namespace {
constexpr auto step = [] {
  const auto f = pt::trace([](auto x, auto w1, auto w2) { return matmul(matmul(x, w1), w2); },
                           pt::input<float, 256, 8>("x"), pt::input<float, 8, 16>("w1"),
                           pt::input<float, 16, 8>("w2"));
  return pt::partition(f, pt::mesh{{"B", 4}, {"M", 2}},
                       pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w1", 1}})));
};
}  // namespace

TEST_CASE("check on a device: figures are compile-time constants") {
  static_assert(pt::check<step, pt::a100_80>.fits);
  static_assert(pt::check<step, pt::a100_80>.step_time < 1e-3);
  static_assert(pt::check<step, pt::a100_80>.messages[1] == 2);
  static_assert(pt::check<step, pt::a100_80>.peak_bytes == pt::check<step>.peak_bytes);
  constexpr pt::device small = [] {
    pt::device d = pt::a100_80;
    d.memory = 1000;
    return d;
  }();
  static_assert(!pt::check<step, small>.fits);
  CHECK(pt::simulate(step().device, pt::a100_80).time == pt::check<step, pt::a100_80>.step_time);
}
