// The trip count of a `while`: its counter, bound and step, and the notes on figures if it is
// unknown.
#include <doctest/doctest.h>

#include <string>
#include <string_view>
#include <vector>

#include <partita/partita.hpp>
#include <partita/spec/bounds.hpp>

#include "texts.hpp"

namespace {

namespace pt = partita;
using unit::str;

pt::program read(const std::string& text) {
  pt::program p = pt::parse(text);
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  return p;
}

/// A loop around one product, given by the parts of its text that decide the trip count.
struct loop_text {
  std::string type = "i32", first = "0", bound = "7", step = "1";
  std::string condition = "compare(%j, %n) {lt}", next = "add(%i, %one)";

  std::string text() const {
    std::string all = R"(func @main(%x: tensor<8x8xf32>, %k: tensor<T>) {
  %first = constant {FIRST} : tensor<T>
  %r, %y, %z = while(%first, %x, %k) do (%j: tensor<T>, %g: tensor<8x8xf32>, %m: tensor<T>) {
    %n = constant {BOUND} : tensor<T>
    %p = CONDITION : tensor<i1>
    return %p : tensor<i1>
  } do (%i: tensor<T>, %h: tensor<8x8xf32>, %l: tensor<T>) {
    %one = constant {STEP} : tensor<T>
    %a = NEXT : tensor<T>
    %d = matmul(%h, %h) : tensor<8x8xf32>
    return %a, %d, %l : tensor<T>, tensor<8x8xf32>, tensor<T>
  } : tensor<T>, tensor<8x8xf32>, tensor<T>
  return %y : tensor<8x8xf32>
})";
    const auto put = [&](const std::string& name, const std::string& value) {
      for (std::size_t at = 0; (at = all.find(name, at)) != std::string::npos; at += value.size())
        all.replace(at, name.size(), value);
    };
    put("CONDITION", condition);
    put("NEXT", next);
    put("FIRST", first);
    put("BOUND", bound);
    put("STEP", step);
    put("<T>", '<' + type + '>');
    return all;
  }
};

/// Returns the trip count of the loop of a program, wherever it is nested, or -1 if it is unknown.
std::int64_t trips_in(const pt::program& p, pt::span<const pt::known_integer> inputs = {}) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    if (p.op(o).region_count == 0) continue;
    pt::wire_list list;
    list.inputs = inputs;
    p.op(o).def->wires(p, o, list);
    if (p.op(o).def->name == "while") return list.unknown_trips ? -1 : list.trips;
    for (int r = 0; r < p.op(o).region_count; ++r) {
      const auto known = pt::known_inputs(p, o, r, list);
      if (const std::int64_t inner = trips_in(p.region(o, r), known); inner != -2) return inner;
    }
  }
  return -2;
}
std::int64_t trips_of(const loop_text& l) { return trips_in(read(l.text())); }
std::string reason(const loop_text& l) {
  const pt::program p = read(l.text());
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).def->name == "while")
      return str(
          pt::find_trip_count(p, p.operands(o), p.region(o, 0), p.region(o, 1)).unknown_because);
  return "no loop";
}
std::string compare(const std::string& direction) { return "compare(%j, %n) {" + direction + '}'; }

/// Returns the number of first, first + step, ... for which the condition holds, or -1 if that
/// exceeds the number of values of the type. `wraps` becomes true if one of the additions up to
/// there overflows the type.
template <class T>
int count(pt::ops::direction d, int first, int step, int bound, bool& wraps) {
  const auto holds = [&](int x) {
    switch (d) {
      case pt::ops::direction::lt:
        return x < bound;
      case pt::ops::direction::le:
        return x <= bound;
      case pt::ops::direction::gt:
        return x > bound;
      case pt::ops::direction::ge:
        return x >= bound;
      case pt::ops::direction::eq:
        return x == bound;
      default:
        return x != bound;
    }
  };
  int x = first, n = 0;
  wraps = false;
  while (holds(x)) {
    const int sum = x + step;
    x = static_cast<T>(sum);
    wraps = wraps || x != sum;
    if (++n > 600) return -1;
  }
  return n;
}
template <class T>
void check_all(pt::dtype t) {
  const std::uint64_t most = pt::op_detail::integer_mask(t);
  const std::uint64_t least = pt::is_unsigned(t) ? 0 : most / 2 + 1;
  const auto from_least = [&](int x) { return (static_cast<std::uint64_t>(x) + least) & most; };
  const int low = pt::is_unsigned(t) ? 0 : -128, high = low + 255;
  int wrong = 0, missed = 0, known = 0;
  for (int d = 0; d < 6; ++d)
    for (int first = low; first <= high; first += 17)
      for (int step = low; step <= high; step += 3)
        for (int bound = low; bound <= high; bound += 5) {
          bool wraps = false;
          const auto direction = static_cast<pt::ops::direction>(d);
          const int n = count<T>(direction, first, step, bound, wraps);
          std::uint64_t trips = 0;
          if (pt::op_detail::count_trips(direction, from_least(first),
                                         static_cast<std::uint64_t>(step) & most, from_least(bound),
                                         most, trips)) {
            ++known;
            wrong += n < 0 || trips != static_cast<std::uint64_t>(n);
          } else {
            missed += n >= 0 && !wraps;
          }
        }
  CHECK(wrong == 0);
  CHECK(missed == 0);
  CHECK(known > 10'000);
}

}  // namespace

TEST_CASE("trip counts equal those of counting, for all directions, steps and bounds of a byte") {
  check_all<std::int8_t>(pt::dtype::i8);
  check_all<std::uint8_t>(pt::dtype::u8);
}

TEST_CASE("the counter, the bound and the step are found in a program") {
  CHECK(trips_of({}) == 7);
  CHECK(trips_of({.bound = "0"}) == 0);
  CHECK(trips_of({.first = "3", .step = "2"}) == 2);
  CHECK(trips_of({.condition = compare("le")}) == 8);
  CHECK(trips_of({.condition = compare("ne")}) == 7);
  CHECK(trips_of({.condition = compare("eq")}) == 0);
  CHECK(
      trips_of(
          {.first = "7", .bound = "0", .condition = compare("ge"), .next = "subtract(%i, %one)"}) ==
      8);
  CHECK(trips_of({.first = "7", .bound = "0", .step = "-2", .condition = compare("gt")}) == 4);
  CHECK(trips_of({.condition = "compare(%n, %j) {gt}"}) == 7);
  CHECK(trips_of({.next = "add(%one, %i)"}) == 7);
  CHECK(trips_of({.next = "add(%i, %one) : tensor<T>\n    %b = subtract(%a, %one) : tensor<T>\n"
                          "    %c = add(%b, %one)"}) == 7);
  for (const char* type : {"i8", "i16", "i64", "u8", "u16", "u32", "u64"})
    CHECK(trips_of({.type = type}) == 7);
  CHECK(trips_of({.type = "i64", .bound = "9223372036854775807"}) == INT64_MAX);
  CHECK(trips_of({.type = "u64",
                  .first = "18446744073709551615",
                  .bound = "0",
                  .condition = compare("ne")}) == 1);
}

TEST_CASE("a loop that stops for another reason, or never, has an unknown count and a reason") {
  CHECK(reason({.condition = "compare(%j, %m) {lt}"}) ==
        "the bound that its condition compares with is not a constant");
  for (const char* next : {"add(%i, %i)", "add(%i, %l)", "multiply(%i, %one)"})
    CHECK(reason({.next = next}) == "its iterations do not add a constant to its counter");
  const std::string overflow = "its counter does not reach the bound without an overflow";
  CHECK(reason({.step = "0"}) == overflow);
  CHECK(reason({.step = "-1"}) == overflow);
  CHECK(reason({.type = "i8", .bound = "127", .condition = compare("le")}) == overflow);
  CHECK(reason({.type = "u64", .first = "1", .bound = "0", .condition = compare("ne")}) ==
        overflow);  // 2^64 - 1 is not an int64
  CHECK(reason({.type = "f32"}) == "its condition is not a comparison of integers");
}

TEST_CASE("constants reach a loop through surrounding loops and calls") {
  // A call of a loop: its bound and its step are arguments, which pass through another loop.
  const auto nested = [](const std::string& bound) {
    return R"(func @main(%x: tensor<4xf32>, %k: tensor<i32>) {
  %four = constant {4} : tensor<i64>
  %two = constant {2} : tensor<i32>
  %n = convert(%four) : tensor<i32>
  %m = multiply(%n, %two) : tensor<i32>
  %y = call "f"(%x, )" +
           bound + R"(, %two) do (%x1: tensor<4xf32>, %m1: tensor<i32>, %s1: tensor<i32>) {
    %z = scan(%m1, %s1, %x1) {length=3, constants=2, carried=1} do (%e: tensor<i32>, %m2: tensor<i32>, %s2: tensor<i32>, %x2: tensor<4xf32>) {
      %first = constant {0} : tensor<i32>
      %r, %s, %t, %u = while(%first, %x2, %m2, %s2) do (%j: tensor<i32>, %g: tensor<4xf32>, %a: tensor<i32>, %b: tensor<i32>) {
        %p = compare(%j, %a) {lt} : tensor<i1>
        return %p : tensor<i1>
      } do (%i: tensor<i32>, %h: tensor<4xf32>, %c: tensor<i32>, %d: tensor<i32>) {
        %v = add(%i, %d) : tensor<i32>
        %w = tanh(%h) : tensor<4xf32>
        return %v, %w, %c, %d : tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<i32>
      } : tensor<i32>, tensor<4xf32>, tensor<i32>, tensor<i32>
      return %s : tensor<4xf32>
    } : tensor<4xf32>
    return %z : tensor<4xf32>
  } : tensor<4xf32>
  return %y : tensor<4xf32>
})";
  };
  const pt::program known = read(nested("%m"));
  const auto loop = [](const pt::program& p) {
    for (pt::op_id o = 0; o < p.op_count(); ++o)
      if (p.op(o).def->name == "call") return o;
    return -1;
  };
  pt::wire_list list;
  known.op(loop(known)).def->wires(known, loop(known), list);
  const auto inputs = pt::known_inputs(known, loop(known), 0, list);
  REQUIRE(inputs.size() == 3);
  CHECK(inputs[1].known);
  CHECK(inputs[1].bits == 8);
  const pt::cost c = pt::estimate(known);
  CHECK(c.unknown.loops == 0);
  const pt::cost other = pt::estimate(read(nested("%k")));
  CHECK(other.unknown.loops == 1);
  CHECK(c.flops - 2 == 4 * (other.flops - 2));  // two run once
  const pt::core_program core(known, pt::mesh{{"B", 2}});
  CHECK(core.nested.scopes.back().trips == 12);
}

TEST_CASE("figures multiply by known trip counts, and count one iteration of other loops") {
  // A quarter of the product; the comparison, the counter.
  const std::int64_t once = 8 * 8 * 8 * 2 / 4 + 2;
  const pt::mesh mesh{{"B", 4}};
  const auto B = pt::manual("B", {{"x", 0}});
  const loop_text unknown{.condition = "compare(%j, %m) {lt}"};
  for (const int n : {1, 7, 1000}) {
    const auto p =
        pt::partition(read(loop_text{.bound = std::to_string(n)}.text()), mesh, pt::schedule(B));
    CHECK(p.cost.flops == n * once);
    CHECK(p.collectives.all_gather == n);
    CHECK(p.cost.collective_bytes == n * 192);
    CHECK(p.cost.unknown.loops == 0);
    CHECK(str(pt::report(p)).find("unknown") == std::string::npos);
  }
  const auto p = pt::partition(read(unknown.text()), mesh, pt::schedule(B));
  CHECK(p.cost.flops == once);
  CHECK(p.cost.unknown.loops == 1);
  CHECK(p.cost.unknown.flops == 1);
  CHECK(p.cost.unknown.collectives == 1);
  CHECK(pt::summarize(p).unknown_loops == 1);
  const std::string note =
      "note: the length of 1 loop is unknown; these figures count one iteration of it: times, "
      "flop, bytes read and written, collectives, bytes sent, messages\n";
  CHECK(str(pt::report(p)).find(note) != std::string::npos);
  CHECK(str(pt::explain(p)).find(note) != std::string::npos);
  const auto whole = pt::partition(read(unknown.text()), mesh, pt::schedule());
  CHECK(whole.cost.unknown.collectives == 0);  // it sends nothing
  CHECK(str(pt::report(whole)).find("bytes read and written\n") != std::string::npos);
  CHECK(str(pt::diff(whole, p)).find("note: ") != std::string::npos);
  CHECK(str(pt::print_simulation(p, pt::machine(pt::a100_80)))
            .find("times count one iteration of 1 loop of unknown length") != std::string::npos);
  const auto bounds = pt::read_bounds("flops <= 1\npeak_bytes <= 1\nall_gather <= 9\n");
  CHECK(str(pt::notes_on_bounds(p.cost.unknown, bounds)) ==
        "note: flops counts one iteration of 1 loop of unknown length\n"
        "note: all_gather counts one iteration of 1 loop of unknown length\n");
}

TEST_CASE("a loop of unknown length inside a loop, inside a branch, and around a loop") {
  using T = pt::tensor<float, 4>;
  const auto doubling = [](auto x) {
    return pt::while_loop([](auto h) { return sum(h) < 100.0f; }, [](auto h) { return h + h; }, x);
  };
  const auto in_scan = pt::trace(
      [&](T x) {
        return pt::for_loop(
            0, 5, [&](auto, auto h) { return doubling(h); }, x);
      },
      pt::input<float, 4>("x"));
  const pt::cost nested = pt::estimate(in_scan),
                 alone = pt::estimate(
                     pt::trace([&](T x) { return doubling(x); }, pt::input<float, 4>("x")));
  CHECK(nested.unknown.loops == 1);
  CHECK(nested.flops == 5 * alone.flops);
  const auto around = pt::trace(
      [&](T x) {
        return pt::while_loop([](auto h) { return sum(h) < 100.0f; },
                              [](auto h) {
                                return pt::for_loop(
                                    0, 5, [](auto, auto g) { return g + g; }, h);
                              },
                              x);
      },
      pt::input<float, 4>("x"));
  CHECK(pt::estimate(around).unknown.loops == 1);
  CHECK(pt::estimate(around).flops == 5 * 4 + 5);  // four sums and the condition, five times
}
