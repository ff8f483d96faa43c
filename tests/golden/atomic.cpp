// `atomic` in every position: the `any` loop outermost, innermost and in the middle, around inputs,
// tags, outputs and unnamed values, in nested programs, and in a loop over microbatches.
#include <initializer_list>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "printed.hpp"

namespace {

using pt::manual, pt::replicated;

constexpr pt::mesh mesh{{"a", 2}, {"b", 2}, {"c", 2}};
constexpr auto A = manual("a", {{"x", 0}}), B = manual("b", {{"x", 0}});

pt::program layer() {
  return pt::trace([](auto x, auto w) { return pt::output("y", tanh(tag("h", matmul(x, w)))); },
                   pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
}
void check_everything(const pt::partitioned& p) {
  if (p.rewritten.ops.empty()) check_meaning(p);
  const auto x = data::arguments(p.source);
  const pt::results whole = pt::evaluate(p.source, x);
  CHECK(pt::equal(pt::emulate(p, x), whole));
  CHECK(pt::equal(pt::temporal(p, x), whole));
}
/// The ops of a text, without the function around them.
std::string inside(const std::string& all) {
  const auto begin = all.find('\n') + 1;
  return all.substr(begin, all.rfind("  return") - begin);
}
void check_texts(const pt::core_program& c, std::string_view loops, std::string_view device) {
  CHECK(inside(str(pt::print_core(c))) == loops);
  CHECK(inside(str(pt::print(pt::lower(c).device))) == device);
}
void check_texts(const pt::partitioned& p, std::string_view loops, std::string_view device) {
  check_texts(p.core, loops, device);
  check_everything(p);
}

/// Applies actions, each followed by a propagation, to the program.
pt::core_program deep(const pt::program& f, std::initializer_list<pt::action> actions) {
  pt::core_program c(f, mesh);
  for (const auto& a : actions) {
    const pt::failure failed = a.kind == pt::action_kind::tile ? c.tile(a.value, a.dim, a.axis)
                                                               : c.atomic(a.value, a.axis);
    CHECK_MESSAGE(!failed, str(failed.message));
    c.propagate();
  }
  const auto x = data::arguments(f);
  const pt::results whole = pt::evaluate(f, x);
  CHECK(pt::equal(pt::emulate(pt::lower(c).device, x), whole));
  CHECK(pt::equal(pt::emulate(pt::lower(c, {.fuse = false}).device, x), whole));
  CHECK(pt::equal(pt::temporal(c, x), whole));
  return c;
}

}  // namespace

TEST_CASE("any around an input: outermost, between two loops, innermost") {
  check_texts(pt::partition(layer(), mesh, pt::schedule(manual("b", {{"x", replicated}}), A)),
              R"(  %xt = loop "b" [any] (%rb: range<2>) {
    %xts = loop "a" [#tile<0>] (%ra: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      yield %xs
    }
    yield %xts
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %xs = slice 0 %xt[%ra] : tensor<4x8xf32>
    %x1s = matmul(%xs, %w) : tensor<4x8xf32>
    %hs = tag "h" %x1s : tensor<4x8xf32>
    %ys = tanh(%hs) : tensor<4x8xf32>
    yield %ys
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<4x8xf32>
  %y = tanh(%x1) : tensor<4x8xf32>
)");
  check_texts(
      pt::partition(layer(), mesh,
                    pt::schedule(A, manual("b", {{"x", replicated}}), manual("c", {{"x", 1}}))),
      R"(  %xt = loop "a" [#tile<0>] (%ra: range<2>) {
    %xts = loop "b" [any] (%rb: range<2>) {
      %xtss = loop "c" [#tile<1>] (%rc: range<2>) {
        %xs = slice 0 %x[%ra] : tensor<4x8xf32>
        %xss = slice 1 %xs[%rc] : tensor<4x4xf32>
        yield %xss
      }
      yield %xtss
    }
    yield %xts
  } : tensor<8x8xf32>
  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "c" [#sum] (%rc: range<2>) {
      %xs = slice 0 %xt[%ra] : tensor<4x8xf32>
      %xss = slice 1 %xs[%rc] : tensor<4x4xf32>
      %ws = slice 0 %w[%rc] : tensor<4x8xf32>
      %x1ss = matmul(%xss, %ws) : tensor<4x8xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
    %hs = tag "h" %x1s : tensor<4x8xf32>
    %ys = tanh(%hs) : tensor<4x8xf32>
    yield %ys
  } : tensor<8x8xf32>
)",
      R"(  %x1 = matmul(%x, %w) : tensor<4x8xf32>
  %x2 = all_reduce <"c"> %x1 : tensor<4x8xf32>
  %y = tanh(%x2) : tensor<4x8xf32>
)");
  // Only the value stays replicated: a product that sums over "b" slices it.
  check_texts(
      pt::partition(layer(), mesh,
                    pt::schedule(A, manual("b", {{"x", replicated}}), manual("b", {{"w", 0}}))),
      R"(  %xt = loop "a" [#tile<0>] (%ra: range<2>) {
    %xts = loop "b" [any] (%rb: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      yield %xs
    }
    yield %xts
  } : tensor<8x8xf32>
  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "b" [#sum] (%rb: range<2>) {
      %xs = slice 0 %xt[%ra] : tensor<4x8xf32>
      %xss = slice 1 %xs[%rb] : tensor<4x4xf32>
      %ws = slice 0 %w[%rb] : tensor<4x8xf32>
      %x1ss = matmul(%xss, %ws) : tensor<4x8xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
    %hs = tag "h" %x1s : tensor<4x8xf32>
    %ys = tanh(%hs) : tensor<4x8xf32>
    yield %ys
  } : tensor<8x8xf32>
)",
      R"(  %xs = all_slice [{}, {"b"}] %x : tensor<4x4xf32>
  %x1 = matmul(%xs, %w) : tensor<4x8xf32>
  %x2 = all_reduce <"b"> %x1 : tensor<4x8xf32>
  %y = tanh(%x2) : tensor<4x8xf32>
)");
}

TEST_CASE("any around a tag: outermost, between two loops") {
  check_texts(pt::partition(layer(), mesh, pt::schedule(manual("b", {{"h", replicated}}), A, B)),
              R"(  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "b" [#tile<0>] (%rb: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      %xss = slice 0 %xs[%rb] : tensor<2x8xf32>
      %x1ss = matmul(%xss, %w) : tensor<2x8xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %h = loop "b" [any] (%rb: range<2>) {
    %hs = loop "a" [#tile<0>] (%ra: range<2>) {
      %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
      %hss = tag "h" %x1s : tensor<4x8xf32>
      yield %hss
    }
    yield %hs
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %hs = slice 0 %h[%ra] : tensor<4x8xf32>
    %ys = tanh(%hs) : tensor<4x8xf32>
    yield %ys
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<2x8xf32>
  %x1g = all_gather [{"b"}, {}] %x1 : tensor<4x8xf32>
  %y = tanh(%x1g) : tensor<4x8xf32>
)");
  check_texts(
      pt::partition(layer(), mesh,
                    pt::schedule(A, manual("b", {{"h", replicated}}), manual("c", {{"w", 1}}), B)),
      R"(  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "c" [#tile<1>] (%rc: range<2>) {
      %x1ss = loop "b" [#tile<0>] (%rb: range<2>) {
        %xs = slice 0 %x[%ra] : tensor<4x8xf32>
        %xss = slice 0 %xs[%rb] : tensor<2x8xf32>
        %ws = slice 1 %w[%rc] : tensor<8x4xf32>
        %x1sss = matmul(%xss, %ws) : tensor<2x4xf32>
        yield %x1sss
      }
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %h = loop "a" [#tile<0>] (%ra: range<2>) {
    %hs = loop "b" [any] (%rb: range<2>) {
      %hss = loop "c" [#tile<1>] (%rc: range<2>) {
        %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
        %x1ss = slice 1 %x1s[%rc] : tensor<4x4xf32>
        %hsss = tag "h" %x1ss : tensor<4x4xf32>
        yield %hsss
      }
      yield %hss
    }
    yield %hs
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %ys = loop "c" [#tile<1>] (%rc: range<2>) {
      %hs = slice 0 %h[%ra] : tensor<4x8xf32>
      %hss = slice 1 %hs[%rc] : tensor<4x4xf32>
      %yss = tanh(%hss) : tensor<4x4xf32>
      yield %yss
    }
    yield %ys
  } : tensor<8x8xf32>
)",
      R"(  %x1 = matmul(%x, %w) : tensor<2x4xf32>
  %x1g = all_gather [{"b"}, {}] %x1 : tensor<4x4xf32>
  %y = tanh(%x1g) : tensor<4x4xf32>
)");
}

TEST_CASE("any around an output that is not an operand") {
  check_texts(pt::partition(layer(), mesh, pt::schedule(A, manual("b", {{"y", replicated}}), B)),
              R"(  %x2 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x2s = loop "b" [#tile<0>] (%rb: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      %xss = slice 0 %xs[%rb] : tensor<2x8xf32>
      %x1ss = matmul(%xss, %w) : tensor<2x8xf32>
      %hss = tag "h" %x1ss : tensor<2x8xf32>
      %x2ss = tanh(%hss) : tensor<2x8xf32>
      yield %x2ss
    }
    yield %x2s
  } : tensor<8x8xf32>
  %y = loop "a" [#tile<0>] (%ra: range<2>) {
    %ys = loop "b" [any] (%rb: range<2>) {
      %x2s = slice 0 %x2[%ra] : tensor<4x8xf32>
      %yss = %x2s : tensor<4x8xf32>
      yield %yss
    }
    yield %ys
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<2x8xf32>
  %x2 = tanh(%x1) : tensor<2x8xf32>
  %y = all_gather [{"b"}, {}] %x2 : tensor<4x8xf32>
)");
}

TEST_CASE("two axes of one value, both replicated: any inside any") {
  check_texts(pt::partition(layer(), mesh,
                            pt::schedule(manual("b", {{"h", replicated}}),
                                         manual("a", {{"h", replicated}}), A, B)),
              R"(  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "b" [#tile<0>] (%rb: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      %xss = slice 0 %xs[%rb] : tensor<2x8xf32>
      %x1ss = matmul(%xss, %w) : tensor<2x8xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %h = loop "b" [any] (%rb: range<2>) {
    %hs = loop "a" [any] (%ra: range<2>) {
      %hss = tag "h" %x1 : tensor<8x8xf32>
      yield %hss
    }
    yield %hs
  } : tensor<8x8xf32>
  %y = tanh(%h) : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<2x8xf32>
  %x1g = all_gather [{"a", "b"}, {}] %x1 : tensor<8x8xf32>
  %y = tanh(%x1g) : tensor<8x8xf32>
)");
}

TEST_CASE("any around an unnamed value, deep in its nest") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto h = matmul(x, w);
        return h + tanh(h);
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
  using enum pt::action_kind;
  constexpr pt::value_id x = 0, h = 2;
  constexpr int a = 0, b = 1, c = 2;
  // After a loop that the product has and the tiling op adopts.
  check_texts(deep(f, {{tile, x, 0, a}, {atomic, h, -1, b}, {tile, x, 0, b}}),
              R"(  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "b" [#tile<0>] (%rb: range<2>) {
      %xs = slice 0 %x[%ra] : tensor<4x8xf32>
      %xss = slice 0 %xs[%rb] : tensor<2x8xf32>
      %x1ss = matmul(%xss, %w) : tensor<2x8xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %x1t = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1ts = loop "b" [any] (%rb: range<2>) {
      %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
      %x1tss = %x1s : tensor<4x8xf32>
      yield %x1tss
    }
    yield %x1ts
  } : tensor<8x8xf32>
  %x3 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1ts = slice 0 %x1t[%ra] : tensor<4x8xf32>
    %x2s = tanh(%x1ts) : tensor<4x8xf32>
    %x3s = add(%x1ts, %x2s) : tensor<4x8xf32>
    yield %x3s
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<2x8xf32>
  %x1g = all_gather [{"b"}, {}] %x1 : tensor<4x8xf32>
  %x2 = tanh(%x1g) : tensor<4x8xf32>
  %x3 = add(%x1g, %x2) : tensor<4x8xf32>
)");
  // Before all other loops.
  check_texts(deep(f, {{atomic, h, -1, b}, {tile, h, 1, a}, {tile, x, 0, b}}),
              R"(  %x1 = loop "a" [#tile<1>] (%ra: range<2>) {
    %x1s = loop "b" [#tile<0>] (%rb: range<2>) {
      %xs = slice 0 %x[%rb] : tensor<4x8xf32>
      %ws = slice 1 %w[%ra] : tensor<8x4xf32>
      %x1ss = matmul(%xs, %ws) : tensor<4x4xf32>
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %x1t = loop "b" [any] (%rb: range<2>) {
    %x1ts = loop "a" [#tile<1>] (%ra: range<2>) {
      %x1s = slice 1 %x1[%ra] : tensor<8x4xf32>
      %x1tss = %x1s : tensor<8x4xf32>
      yield %x1tss
    }
    yield %x1ts
  } : tensor<8x8xf32>
  %x3 = loop "a" [#tile<1>] (%ra: range<2>) {
    %x1ts = slice 1 %x1t[%ra] : tensor<8x4xf32>
    %x2s = tanh(%x1ts) : tensor<8x4xf32>
    %x3s = add(%x1ts, %x2s) : tensor<8x4xf32>
    yield %x3s
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<4x4xf32>
  %x1g = all_gather [{"b"}, {}] %x1 : tensor<8x4xf32>
  %x2 = tanh(%x1g) : tensor<8x4xf32>
  %x3 = add(%x1g, %x2) : tensor<8x4xf32>
)");
  // Innermost, after loops over two dimensions.
  check_texts(deep(f, {{tile, x, 0, a}, {tile, h, 1, b}, {atomic, h, -1, c}, {tile, x, 0, c}}),
              R"(  %x1 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1s = loop "b" [#tile<1>] (%rb: range<2>) {
      %x1ss = loop "c" [#tile<0>] (%rc: range<2>) {
        %xs = slice 0 %x[%ra] : tensor<4x8xf32>
        %xss = slice 0 %xs[%rc] : tensor<2x8xf32>
        %ws = slice 1 %w[%rb] : tensor<8x4xf32>
        %x1sss = matmul(%xss, %ws) : tensor<2x4xf32>
        yield %x1sss
      }
      yield %x1ss
    }
    yield %x1s
  } : tensor<8x8xf32>
  %x1t = loop "a" [#tile<0>] (%ra: range<2>) {
    %x1ts = loop "b" [#tile<1>] (%rb: range<2>) {
      %x1tss = loop "c" [any] (%rc: range<2>) {
        %x1s = slice 0 %x1[%ra] : tensor<4x8xf32>
        %x1ss = slice 1 %x1s[%rb] : tensor<4x4xf32>
        %x1tsss = %x1ss : tensor<4x4xf32>
        yield %x1tsss
      }
      yield %x1tss
    }
    yield %x1ts
  } : tensor<8x8xf32>
  %x3 = loop "a" [#tile<0>] (%ra: range<2>) {
    %x3s = loop "b" [#tile<1>] (%rb: range<2>) {
      %x1ts = slice 0 %x1t[%ra] : tensor<4x8xf32>
      %x1tss = slice 1 %x1ts[%rb] : tensor<4x4xf32>
      %x2ss = tanh(%x1tss) : tensor<4x4xf32>
      %x3ss = add(%x1tss, %x2ss) : tensor<4x4xf32>
      yield %x3ss
    }
    yield %x3s
  } : tensor<8x8xf32>
)",
              R"(  %x1 = matmul(%x, %w) : tensor<2x4xf32>
  %x1g = all_gather [{"c"}, {}] %x1 : tensor<4x4xf32>
  %x2 = tanh(%x1g) : tensor<4x4xf32>
  %x3 = add(%x1g, %x2) : tensor<4x4xf32>
)");
}

TEST_CASE("any around tags in nested programs: values are gathered there and nowhere else") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto [h, sums] = pt::scan(
            [&](auto c, auto row) {
              const auto k = tag("carried", matmul(c, w));
              return std::pair{k + row, sum<1>(tag("stacked", k * row))};
            },
            x, pt::stack<0>(x, x * 2, x));
        const auto v = pt::while_loop([](auto v) { return sum(tag("tested", v)) < 100; },
                                      [](auto v) { return tag("turned", v + 1) + 1; }, h);
        const auto q = pt::cond(
            sum(x) > 0, [](auto v) { return tag("yes", v * 2); },
            [](auto v) { return tag("no", v + 1); }, v);
        const auto r = pt::call(
            "square", [](auto v) { return tag("called", v * v); }, q);
        return std::tuple{pt::output("r", r), pt::output("sums", sums)};
      },
      pt::input<float, 8, 8>("x"), pt::input<float, 8, 8>("w"));
  // Without the tags' placements: the sum that `while` tests, and the one that `cond` tests.
  CHECK(pt::partition(f, mesh, pt::schedule(A)).collectives == pt::collectives{.all_reduce = 2});
  const auto check = [&](std::string_view name, const pt::collectives& expected) {
    CAPTURE(std::string(name));
    const pt::manual_entry entries[] = {{name, replicated}};
    const auto keep = manual("a", entries, "keep");
    const auto p = pt::partition(f, mesh, pt::schedule(keep, A));
    CHECK(p.collectives == expected);
    const std::string word = "%" + std::string(name) + " = loop \"a\" [any] (%ra: range<2>) {";
    CHECK_MESSAGE(core(p).find(word) != std::string::npos, core(p));
    CHECK(p.input("x").local_shape == pt::shape{4, 8});
    check_everything(p);
    // With another axis before it and after it.
    for (const auto& q : {pt::partition(f, mesh, pt::schedule(manual("b", {{"w", 1}}), keep, A)),
                          pt::partition(f, mesh, pt::schedule(keep, A, B)),
                          pt::partition(f, mesh, pt::schedule(B, keep, A))}) {
      CHECK(core(q).find("[any] (%ra: range<2>)") != std::string::npos);
      check_everything(q);
    }
  };
  check("carried", {.all_gather = 3, .all_reduce = 2});
  check("stacked", {.all_gather = 3, .all_reduce = 2});
  check("tested", {.all_gather = 1, .all_reduce = 1});
  check("turned", {.all_gather = 1, .all_reduce = 2});
  check("yes", {.all_gather = 1, .all_reduce = 2});
  check("no", {.all_gather = 1, .all_reduce = 2});
  check("called", {.all_gather = 1, .all_reduce = 2});
}

TEST_CASE("any in a loop over microbatches, for every order of the tactics") {
  const auto f = pt::trace(
      [](auto x, auto w) {
        const auto h = tag("h", matmul(x, w));
        return std::tuple{pt::output("y", h * h), pt::output("s", sum<0>(h))};
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 8>("w"));
  const auto keep = manual("a", {{"h", replicated}});
  const auto MB = pt::microbatch(4, {{"x", 0}});
  const auto p = pt::partition(f, mesh, pt::schedule(MB, keep, A));
  CHECK(p.collectives == pt::collectives{.all_gather = 4});
  CHECK(p.collectives_as_written == pt::collectives{.all_gather = 1});
  CHECK(core(p).find("%h = loop \"a\" [any] (%ra: range<2>) {") != std::string::npos);
  check_everything(p);
  CHECK(core(pt::partition(f, mesh, pt::schedule(keep, MB, A))) == core(p));
  CHECK(core(pt::partition(f, mesh, pt::schedule(keep, A, MB))) == core(p));
  // An output that the loop stacks, and the input that the loop slices.
  for (const auto& name : {"y", "s", "x"}) {
    const pt::manual_entry entries[] = {{name, replicated}};
    check_everything(pt::partition(f, mesh, pt::schedule(MB, manual("a", entries), B)));
  }
}

TEST_CASE("two slices of one value in a nest get two names") {
  const auto f = pt::trace([](auto x) { return matmul(x, x); }, pt::input<float, 8, 8>("x"));
  pt::core_program c(f, mesh);
  CHECK(!c.tile(1, 0, 0));
  CHECK(!c.tile(1, 1, 1));
  c.propagate();
  CHECK(str(pt::print_core(c)).find("%x1ss = matmul(%xs, %xs2) : tensor<4x4xf32>") !=
        std::string::npos);
}
