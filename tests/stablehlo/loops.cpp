/// Loops of JAX: a `while` that counts is read as a `scan` that computes the same.
///
/// Not drawn: more than two nested loops, more than 7 iterations, floating-point counters, loops
/// inside branches.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/write.hpp>

#include "../data.hpp"

namespace pt = partita;
using data::str;

namespace {

bool has(const pt::program& p, const pt::op_def& d) {
  bool found = false;
  pt::for_each_of(p, d, [&](pt::op_id) { found = true; });
  for (const auto& r : p.regions) found = found || has(r, d);
  return found;
}
pt::program read(const std::string& text) {
  pt::program p = pt::read_stablehlo(text);
  INFO(text);
  if (p.error) FAIL(str(p.error.message));
  return p;
}

/// Draws a module with a loop over a counter that reads and writes rows.
class loop_writer {
 public:
  explicit loop_writer(std::uint64_t seed) : r_{seed} {}

  /// True if each loop must become a scan.
  bool counts = true;

  /// With `opaque` the condition also needs %go, an argument: then the loop stays a `while`.
  std::string module(bool opaque) {
    const auto start = r_;
    counts = true;
    names_ = 0;
    opaque_ = opaque;
    out_ =
        "func.func public @main(%x: tensor<9x3xf32>, %y: tensor<9x3xf32>, %h: tensor<3xf32>, "
        "%go: tensor<i1>) -> (tensor<9x3xf32>, tensor<3xf32>, tensor<i64>) {\n";
    const auto [stack, carried, counter] = loop("%x", "%y", "%h", 1);
    const std::string end = "%end";
    out_ +=
        end + " = stablehlo.convert " + counter + " : (tensor<" + element_ + ">) -> tensor<i64>\n";
    out_ += "return " + stack + ", " + carried + ", " + end +
            " : tensor<9x3xf32>, tensor<3xf32>, tensor<i64>\n}\n";
    if (opaque) r_ = start;
    return out_;
  }

 private:
  struct results {
    std::string stack, carried, counter;
  };
  data::random r_;
  std::string out_, element_;
  bool opaque_ = false;
  int names_ = 0;

  std::string name() { return "%v" + std::to_string(names_++); }
  std::string constant(std::int64_t n, const std::string& element) {
    const std::string v = name();
    out_ +=
        v + " = stablehlo.constant dense<" + std::to_string(n) + "> : tensor<" + element + ">\n";
    return v;
  }
  std::string apply(const std::string& op, const std::string& a, const std::string& b,
                    const std::string& type) {
    const std::string v = name();
    out_ += v + " = stablehlo." + op + " " + a + ", " + b + " : tensor<" + type + ">\n";
    return v;
  }
  std::string compare(const std::string& how, const std::string& a, const std::string& b,
                      const std::string& element) {
    const std::string v = name(), t = "tensor<" + element + ">";
    out_ += v + " = stablehlo.compare " + how + ", " + a + ", " + b + " : (" + t + ", " + t +
            ") -> tensor<i1>\n";
    return v;
  }
  /// `slope` * counter + `offset`, as JAX prints an index: with or without a test for negatives.
  std::string index(const std::string& counter, std::int64_t slope, std::int64_t offset) {
    std::string v = counter;
    if (slope < 0)
      v = apply("subtract", constant(offset, element_), v, element_);
    else if (offset != 0)
      v = apply("add", v, constant(offset, element_), element_);
    if (r_.one_in(2)) return v;
    const std::string below = compare("LT", v, constant(0, element_), element_);
    const std::string wrapped = apply("add", v, constant(9, element_), element_);
    const std::string chosen = name();
    out_ += chosen + " = stablehlo.select " + below + ", " + wrapped + ", " + v +
            " : tensor<i1>, tensor<" + element_ + ">\n";
    return chosen;
  }
  std::string row(const std::string& x, const std::string& at) {
    const std::string zero = constant(0, element_), slice = name(), v = name();
    const std::string i = "tensor<" + element_ + ">";
    out_ += slice + " = stablehlo.dynamic_slice " + x + ", " + at + ", " + zero +
            ", sizes = [1, 3] : (tensor<9x3xf32>, " + i + ", " + i + ") -> tensor<1x3xf32>\n";
    out_ += v + " = stablehlo.reshape " + slice + " : (tensor<1x3xf32>) -> tensor<3xf32>\n";
    return v;
  }
  std::string written(const std::string& y, const std::string& value, const std::string& at) {
    const std::string zero = constant(0, element_), update = name(), v = name();
    const std::string i = "tensor<" + element_ + ">";
    out_ += update + " = stablehlo.broadcast_in_dim " + value +
            ", dims = [1] : (tensor<3xf32>) -> tensor<1x3xf32>\n";
    out_ += v + " = stablehlo.dynamic_update_slice " + y + ", " + update + ", " + at + ", " + zero +
            " : (tensor<9x3xf32>, tensor<1x3xf32>, " + i + ", " + i + ") -> tensor<9x3xf32>\n";
    return v;
  }
  results loop(const std::string& x, const std::string& y, const std::string& h, int depth) {
    const char* const elements[] = {"i32", "i64", "ui32", "i8"};
    const std::string outer = element_;
    element_ = r_.pick(elements);
    const std::int64_t trips = r_.in(0, 7);
    const bool down = r_.one_in(3) && element_ != "ui32";
    const std::int64_t step = (down ? -1 : 1) * (r_.one_in(6) ? 2 : 1);
    const std::int64_t first = r_.in(down ? trips : 0, down ? trips + 2 : 2);
    const bool inclusive = r_.one_in(4) && trips > 0;
    const std::int64_t bound = first + step * trips - (inclusive ? step : 0);
    const char* const up_names[] = {"LT", "LE"};
    const char* const down_names[] = {"GT", "GE"};
    std::string how = (down ? down_names : up_names)[inclusive ? 1 : 0];
    if (!inclusive && r_.one_in(6)) how = "NE";
    const std::string start = constant(first, element_);
    const bool swaps = r_.one_in(4), captures = r_.one_in(2);
    const std::string result = name(), i = name(), a = name(), b = name(), s = name(),
                      xs = captures ? x : name();
    const std::string types =
        "tensor<" + element_ + ">, tensor<9x3xf32>, tensor<3xf32>, tensor<3xf32>";
    out_ += result + (captures ? ":4" : ":5") + " = stablehlo.while(" + i + " = " + start + ", " +
            s + " = " + y + ", " + a + " = " + h + ", " + b + " = " + h +
            (captures ? "" : ", " + xs + " = " + x) + ") : " + types +
            (captures ? "" : ", tensor<9x3xf32>") + "\n cond {\n";
    std::string goes_on = compare(how, i, constant(bound, element_), element_);
    if (opaque_) goes_on = apply("and", goes_on, "%go", "i1");
    out_ += "stablehlo.return " + goes_on + " : tensor<i1>\n} do {\n";
    // Rows 0 to 8; some indices are clamped.
    const auto position = [&](bool stack) {
      const bool turns = r_.one_in(3);
      std::int64_t offset = turns ? r_.in(6, 8) : r_.in(0, 2) - (down ? 1 : 0);
      const std::int64_t slope = turns ? -1 : 1;
      const std::int64_t at_first = slope * first + offset,
                         at_last = slope * (first + step * (trips - 1)) + offset;
      const auto good = [](std::int64_t n) { return n >= 0 && n <= 8; };
      if (stack && trips > 0 &&
          ((step != 1 && step != -1 && trips > 1) || !good(at_first) || !good(at_last)))
        counts = false;
      return index(i, slope, offset);
    };
    const std::string taken = row(xs, position(false));
    std::string next = apply("add", a, taken, "3xf32");
    if (r_.one_in(2)) {
      const std::string number = name(), full = name();
      out_ +=
          number + " = stablehlo.convert " + i + " : (tensor<" + element_ + ">) -> tensor<f32>\n";
      out_ += full + " = stablehlo.broadcast_in_dim " + number +
              ", dims = [] : (tensor<f32>) -> tensor<3xf32>\n";
      next = apply("subtract", next, full, "3xf32");
    }
    std::string stack = s;
    if (depth > 0 && r_.one_in(3)) {
      const results inner = loop(xs, s, next, depth - 1);
      next = inner.carried;
      stack = inner.stack;
    } else {
      const std::string at = position(true);
      std::string value = r_.one_in(4) ? taken : apply("multiply", next, b, "3xf32");
      if (r_.one_in(4)) value = apply("add", value, row(s, at), "3xf32");
      stack = written(s, value, at);
    }
    const std::string other = apply("minimum", b, next, "3xf32");
    const std::string stepped = step > 0 && r_.one_in(2)
                                    ? apply("add", constant(step, element_), i, element_)
                                : down ? apply("subtract", i, constant(-step, element_), element_)
                                       : apply("add", i, constant(step, element_), element_);
    out_ += "stablehlo.return " + stepped + ", " + stack + ", " + (swaps ? other : next) + ", " +
            (swaps ? next : other) + (captures ? "" : ", " + xs) + " : " + types +
            (captures ? "" : ", tensor<9x3xf32>") + "\n}\n";
    results made{result + "#1", result + "#2", result + "#0"};
    if (!outer.empty() && depth == 0) element_ = outer;
    return made;
  }
};

std::vector<pt::array> arguments_of(const pt::program& p, std::uint64_t seed) {
  std::vector<pt::array> given = data::arguments(p, seed);
  given.back() = pt::array(true);
  return given;
}

/// Doubles and stacks `h` while a counter runs. The fields decide whether it is a scan.
struct loop_parts {
  std::string start = "0", condition = "stablehlo.compare LT, %i, %n", bound = "4",
              next = "stablehlo.add %i, %one", at = "%i", type = "i32";
  std::string text() const {
    const std::string i = "tensor<" + type + ">";
    return "func.func public @main(%h: tensor<3xf32>, %y: tensor<4x3xf32>, %k: " + i +
           ") -> tensor<4x3xf32> {\n %c = stablehlo.constant dense<" + start + "> : " + i +
           "\n %0:3 = stablehlo.while(%i = %c, %a = %h, %s = %y) : " + i +
           ", tensor<3xf32>, tensor<4x3xf32>\n cond {\n %n = stablehlo.constant dense<" + bound +
           "> : " + i + "\n %1 = " + condition + " : (" + i + ", " + i +
           ") -> tensor<i1>\n stablehlo.return %1 : tensor<i1>\n } do {\n"
           " %one = stablehlo.constant dense<1> : " +
           i + "\n %zero = stablehlo.constant dense<0> : " + i +
           "\n %b = stablehlo.add %a, %a : tensor<3xf32>\n"
           " %u = stablehlo.reshape %b : (tensor<3xf32>) -> tensor<1x3xf32>\n %j0 = stablehlo.add "
           "%i, %one : " +
           i + "\n %j = " + next + " : " + i + "\n %t = stablehlo.dynamic_update_slice %s, %u, " +
           at + ", %zero : (tensor<4x3xf32>, tensor<1x3xf32>, " + i + ", " + i +
           ") -> tensor<4x3xf32>\n stablehlo.return %j, %b, %t : " + i +
           ", tensor<3xf32>, tensor<4x3xf32>\n }\n return %0#2 : tensor<4x3xf32>\n}\n";
  }
};
/// The lines about the loop in `explain`.
std::string explained(const loop_parts& parts) {
  constexpr pt::mesh two{{"B", 2}};
  const auto p = pt::partition(read(parts.text()), two, pt::schedule());
  return str(pt::explain(p));
}

}  // namespace

TEST_CASE("a loop that does not count stays a while, and explain gives the reason") {
  CHECK(has(read(loop_parts{}.text()), pt::def<pt::op::scan>));
  CHECK(explained({}).find("while") == std::string::npos);
  const auto stays = [&](const loop_parts& parts, const std::string& why) {
    CHECK(has(read(parts.text()), pt::def<pt::op::while_loop>));
    const std::string text = explained(parts);
    CHECK_MESSAGE(text.find(" stays a while: " + why) != std::string::npos, text);
  };
  stays({.next = "stablehlo.multiply %i, %one"}, "its iterations do not add a constant");
  stays({.next = "stablehlo.add %i, %k"}, "its iterations do not add a constant");
  stays({.condition = "stablehlo.compare LT, %i, %k"}, "the bound that its condition compares");
  stays({.condition = "stablehlo.compare LE, %i, %n", .bound = "127", .type = "i8"},
        "its counter does not reach the bound without an overflow");
  stays({.next = "stablehlo.subtract %i, %one"}, "its counter does not reach the bound");
  stays({.bound = "4294967296", .type = "i64"}, "it runs 4294967296 times");
  stays({.at = "%k"},
        "the body writes rows of carried value 2 at an index that is not the counter");
  stays({.next = "stablehlo.add %j0, %one"}, "its counter is not changed by one addition");
}

TEST_CASE("if a loop has several conditions, the first to fail decides") {
  // TensorFlow compares a second counter with a limit that the loop carries.
  const auto loop = [](int limit) {
    return read(
        "func.func public @main(%h: tensor<3xf32>) -> tensor<3xf32> {\n"
        " %c = stablehlo.constant dense<0> : tensor<i32>\n"
        " %l = stablehlo.constant dense<" +
        std::to_string(limit) +
        "> : tensor<i32>\n"
        " %0:4 = stablehlo.while(%i = %c, %j = %c, %m = %l, %a = %h) : tensor<i32>, "
        "tensor<i32>, tensor<i32>, tensor<3xf32>\n cond {\n"
        " %n = stablehlo.constant dense<4> : tensor<i32>\n"
        " %p = stablehlo.compare LT, %i, %n : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        " %q = stablehlo.compare LT, %j, %m : (tensor<i32>, tensor<i32>) -> tensor<i1>\n"
        " %r = stablehlo.and %p, %q : tensor<i1>\n stablehlo.return %r : tensor<i1>\n } do {\n"
        " %one = stablehlo.constant dense<1> : tensor<i32>\n"
        " %k = stablehlo.add %i, %one : tensor<i32>\n"
        " %o = stablehlo.add %j, %one : tensor<i32>\n"
        " %b = stablehlo.transpose %a, dims = [0] : (tensor<3xf32>) -> tensor<3xf32>\n"
        " %d = stablehlo.add %b, %b : tensor<3xf32>\n"
        " stablehlo.return %k, %o, %m, %d : tensor<i32>, tensor<i32>, tensor<i32>, "
        "tensor<3xf32>\n }\n return %0#3 : tensor<3xf32>\n}\n");
  };
  CHECK(str(pt::print(loop(3))).find("length=3") != std::string::npos);
  CHECK(str(pt::print(loop(6))).find("length=4") != std::string::npos);
}

TEST_CASE("a random loop that counts becomes a scan with the same results") {
  int scans = 0;
  for (std::uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    loop_writer writer(seed);
    const std::string opaque = writer.module(true), plain = writer.module(false);
    const pt::program loop = read(opaque), p = read(plain);
    INFO(plain);
    INFO(str(pt::print(p)));
    CHECK_FALSE(has(loop, pt::def<pt::op::scan>));
    if (writer.counts) CHECK_FALSE(has(p, pt::def<pt::op::while_loop>));
    scans += has(p, pt::def<pt::op::scan>);
    const auto given = arguments_of(p, seed);
    const auto wanted = pt::evaluate(loop, given), found = pt::evaluate(p, given);
    for (int i = 0; i < wanted.size(); ++i) CHECK(pt::max_difference(wanted[i], found[i]) == 0);
    // The program is the same after writing and reading it.
    const pt::program again = read(str(pt::write_stablehlo(p)));
    const auto repeated = pt::evaluate(again, given);
    for (int i = 0; i < wanted.size(); ++i) CHECK(pt::max_difference(wanted[i], repeated[i]) == 0);
  }
  MESSAGE(scans, " of 400 have a scan");
  CHECK(scans > 250);
}
