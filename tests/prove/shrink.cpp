// Proof by shrinking: hand-written programs at large and at small sizes, each with twins that
// differ. At small sizes, elements decide exactly: what shrinking proves there, they must prove.
//
// PARTITA_SHRUNK=n compares n random pairs of programs, from number m on with PARTITA_SHRUNK_FIRST.
#include <doctest/doctest.h>

#include <cstdint>
#include <iostream>
#include <string>
#include <vector>

#include <partita/partita.hpp>
#include <partita/prove/prove.hpp>

#include "../data.hpp"
#include "../random/seeds.hpp"

namespace pt = partita;
namespace detail = pt::prove_detail;

namespace shrinking {

using data::str;

/// A source and programs of one device of two axes, with sizes as letters: n is sharded along "A"
/// (of size a) into l; 1/n and 1/(n-1) are written r and q, n - 1 as m.
struct example {
  std::string what, arguments, layouts, source, result, layout;
  std::vector<std::string> right, wrong;
};
struct sizes {
  std::int64_t n, a;
};
std::string number(double v) {
  pt::text out;
  pt::print_number(out, v);
  return str(out);
}
/// Replaces `$n` and so on by numbers; `$l` by the local size.
std::string filled(std::string s, const sizes& z, bool local) {
  const auto put = [&](const std::string& from, const std::string& to) {
    for (auto at = s.find(from); at != std::string::npos; at = s.find(from, at + to.size()))
      s.replace(at, from.size(), to);
  };
  const auto n = static_cast<double>(z.n);
  put("$L", std::to_string(local ? z.n / z.a : z.n));
  put("$l", std::to_string(z.n / z.a));
  put("$n", std::to_string(z.n));
  put("$f", number(n));
  put("$r", number(1 / n));
  put("$q", number(1 / (n - 1)));
  put("$m", std::to_string(z.n - 1));
  put("$x", local ? "$L" : "$n");
  return s;
}
pt::program source_of(const example& e, const sizes& z) {
  return pt::parse(filled(
      "func @main(" + e.arguments + ") {\n" + e.source + "  return %y : " + e.result + "\n}\n", z,
      false));
}
pt::device_program device_of(const example& e, const std::string& body, const pt::program& source,
                             const sizes& z) {
  pt::device_program d;
  d.local = pt::parse(
      filled("func @main(" + e.arguments + ") attributes {mesh = {\"A\":" + std::to_string(z.a) +
                 "}} {\n" + body + "  return %y : " + e.result + "\n}\n",
             z, true),
      d.mesh);
  REQUIRE_MESSAGE(!d.local.error, e.what, ": ", str(d.local.error.message));
  pt::failure wrong;
  std::size_t begin = 0;
  for (int i = 0; i < source.input_count(); ++i) {
    const auto end = e.layouts.find(';', begin);
    d.inputs.push_back(pt::parse_layout(e.layouts.substr(begin, end - begin), d.mesh,
                                        source.input_type(i).shape, wrong));
    begin = end + 1;
  }
  d.outputs.push_back(pt::parse_layout(e.layout, d.mesh, source.output_type(0).shape, wrong));
  REQUIRE_MESSAGE(!wrong, e.what, ": ", str(wrong.message));
  return d;
}
bool is_shrunk(const pt::program& source, const pt::device_program& d) {
  return detail::prove_by_shrinking(source, d, 5'000'000).kind == detail::shrink_verdict::proved;
}

const std::string v = "tensor<$Lxf32>", s = "tensor<f32>", vn = "tensor<$nxf32>";
/// The input x (n) is sharded, the result is replicated.
example of_vector(const std::string& what, const std::string& source,
                  const std::vector<std::string>& right, const std::vector<std::string>& wrong) {
  return {what, "%x: " + v, "[{\"A\"}];", source, s, "[]", right, wrong};
}
example of_two(const std::string& what, const std::string& source,
               const std::vector<std::string>& right, const std::vector<std::string>& wrong) {
  return {what, "%x: " + v + ", %z: " + v, "[{\"A\"}];[{\"A\"}];", source, s, "[]", right, wrong};
}
example of_rows(const std::string& what, const std::string& source,
                const std::vector<std::string>& right, const std::vector<std::string>& wrong) {
  return {what, "%x: " + v, "[{\"A\"}];", source, v, "[{\"A\"}]", right, wrong};
}
const std::string sum = "  %p = reduce(%x) {add, dims=[0]} : tensor<f32>\n",
                  all = "  %s = all_reduce <\"A\"> %p : tensor<f32>\n",
                  ps = "  %p = reduce(%x) {add, dims=[0]} : tensor<f32>\n"
                       "  %s = all_reduce <\"A\"> %p : tensor<f32>\n";
std::string times(const std::string& y, const std::string& x, const std::string& c) {
  return "  %c" + y + " = constant {" + c + "} : tensor<f32>\n  %" + y + " = multiply(%" + x +
         ", %c" + y + ") : tensor<f32>\n";
}
std::string reduced(const std::string& y, const std::string& x, const std::string& how = "add") {
  return "  %" + y + " = reduce(%" + x + ") {" + how + ", dims=[0]} : tensor<f32>\n";
}
std::string op(const std::string& y, const std::string& f, const std::string& args,
               const std::string& type = s) {
  return "  %" + y + " = " + f + "(" + args + ") : " + type + "\n";
}
std::string everywhere(const std::string& y, const std::string& x, const std::string& how = "") {
  return "  %" + y + " = all_reduce " + how + "<\"A\"> %" + x + " : tensor<f32>\n";
}
std::string count(const std::string& y, const std::string& type = "i32") {
  return "  %" + y + " = iota {dim=0} : tensor<$Lx" + type + ">\n";
}
const std::string start = "  %o = shard_start {$l <\"A\">} : tensor<i32>\n";
std::string masked(const std::string& how, const std::string& k, const std::string& at) {
  return "  %k = constant {" + k + "} : tensor<i32>\n  %b = compare(%" + at + ", %k) {" + how +
         "} : tensor<$Lxi1>\n  %zero = constant {0} : tensor<f32>\n"
         "  %y = select(%b, %x, %zero) : tensor<$Lxf32>\n";
}

std::vector<example> examples() {
  std::vector<example> list;
  list.push_back(
      of_vector("mean", reduced("p", "x") + times("y", "p", "$r"),
                {ps + times("y", "s", "$r"), sum + times("t", "p", "$r") + everywhere("y", "t")},
                {sum + times("y", "p", "$r"), ps + times("y", "s", "$q"),
                 sum + everywhere("t", "p") + everywhere("u", "t") + times("y", "u", "$r")}));
  list.push_back(
      of_vector("square of a sum", reduced("p", "x") + op("y", "multiply", "%p, %p"),
                {ps + op("y", "multiply", "%s, %s")},
                {sum + op("t", "multiply", "%p, %p") + everywhere("y", "t"),
                 op("t", "multiply", "%x, %x", v) + reduced("p", "t") + everywhere("y", "p")}));
  list.push_back(of_vector(
      "cube of a sum",
      reduced("p", "x") + op("t", "multiply", "%p, %p") + op("y", "multiply", "%t, %p"),
      {ps + op("t", "multiply", "%s, %s") + op("y", "multiply", "%s, %t")},
      {sum + op("t", "multiply", "%p, %p") + op("u", "multiply", "%p, %t") + everywhere("y", "u"),
       sum + op("t", "multiply", "%p, %p") + everywhere("u", "t") + everywhere("w", "p") +
           op("y", "multiply", "%u, %w")}));
  list.push_back(of_two(
      "product of sums", reduced("p", "x") + reduced("q", "z") + op("y", "multiply", "%p, %q"),
      {ps + reduced("q", "z") + everywhere("t", "q") + op("y", "multiply", "%t, %s")},
      {op("t", "multiply", "%x, %z", v) + reduced("p", "t") + everywhere("s", "p") +
           times("y", "s", "$f"),
       ps + reduced("q", "z") + op("y", "multiply", "%s, %q")}));
  list.push_back(of_two(
      "determinant of Gram's matrix",
      op("a", "multiply", "%x, %x", v) + op("b", "multiply", "%z, %z", v) +
          op("c", "multiply", "%x, %z", v) + reduced("aa", "a") + reduced("bb", "b") +
          reduced("cc", "c") + op("t", "multiply", "%aa, %bb") + op("u", "multiply", "%cc, %cc") +
          op("y", "subtract", "%t, %u"),
      {op("a", "multiply", "%x, %x", v) + op("b", "multiply", "%z, %z", v) +
       op("c", "multiply", "%x, %z", v) + reduced("pa", "a") + everywhere("aa", "pa") +
       reduced("pb", "b") + everywhere("bb", "pb") + reduced("pc", "c") + everywhere("cc", "pc") +
       op("t", "multiply", "%aa, %bb") + op("u", "multiply", "%cc, %cc") +
       op("y", "subtract", "%t, %u")},
      {op("a", "multiply", "%x, %x", v) + op("b", "multiply", "%z, %z", v) +
           op("c", "multiply", "%x, %z", v) + reduced("aa", "a") + reduced("bb", "b") +
           reduced("cc", "c") + op("t", "multiply", "%aa, %bb") + op("u", "multiply", "%cc, %cc") +
           op("w", "subtract", "%t, %u") + everywhere("y", "w"),
       "  %y = constant {0} : tensor<f32>\n"}));
  list.push_back(of_two("sum of sums",
                        reduced("p", "x") + reduced("q", "z") + op("y", "add", "%p, %q"),
                        {sum + reduced("q", "z") + op("t", "add", "%p, %q") + everywhere("y", "t"),
                         ps + reduced("q", "z") + everywhere("t", "q") + op("y", "add", "%t, %s")},
                        {ps + reduced("q", "z") + op("y", "add", "%s, %q"),
                         ps + reduced("q", "z") + op("t", "add", "%s, %q") + everywhere("y", "t"),
                         sum + op("t", "add", "%p, %p") + everywhere("y", "t")}));
  list.push_back(
      of_vector("maximum", reduced("y", "x", "max"),
                {reduced("p", "x", "max") + everywhere("y", "p", "<@max> ")},
                {reduced("y", "x", "max"), reduced("p", "x", "max") + everywhere("y", "p"),
                 reduced("p", "x", "min") + everywhere("y", "p", "<@max> "),
                 sum + everywhere("y", "p", "<@max> ")}));
  list.push_back(of_vector(
      "maximum times n", reduced("p", "x", "max") + times("y", "p", "$f"),
      {reduced("p", "x", "max") + everywhere("s", "p", "<@max> ") + times("y", "s", "$f")},
      {ps + op("y", "multiply", "%s, %one").insert(0, "  %one = constant {1} : tensor<f32>\n")}));
  list.push_back(of_vector("softmax's denominator",
                           reduced("m", "x", "max") + op("d", "subtract", "%x, %m", v) +
                               op("e", "exp", "%d", v) + reduced("y", "e"),
                           {reduced("pm", "x", "max") + everywhere("m", "pm", "<@max> ") +
                            op("d", "subtract", "%x, %m", v) + op("e", "exp", "%d", v) +
                            reduced("p", "e") + everywhere("y", "p")},
                           {reduced("m", "x", "max") + op("d", "subtract", "%x, %m", v) +
                            op("e", "exp", "%d", v) + reduced("p", "e") + everywhere("y", "p")}));
  list.push_back(
      of_rows("x minus its mean",
              reduced("p", "x") + times("t", "p", "$r") + op("y", "subtract", "%x, %t", v),
              {ps + times("t", "s", "$r") + op("y", "subtract", "%x, %t", v)},
              {ps + times("t", "s", "$q") + op("y", "subtract", "%x, %t", v),
               sum + times("t", "p", "$r") + op("y", "subtract", "%x, %t", v),
               "  %y = constant {0} : tensor<$Lxf32>\n"}));
  list.push_back(of_rows(
      "n times each",
      times("t", "one", "$f").insert(0, "  %one = constant {1} : tensor<f32>\n") +
          op("u", "multiply", "%x, %t", v) + op("y", "exp", "%u", v),
      {times("t", "one", "$f").insert(0, "  %one = constant {1} : tensor<f32>\n") +
       op("u", "multiply", "%t, %x", v) + op("y", "exp", "%u", v)},
      {ps + op("e", "exp", "%s") + "  %y = broadcast_in_dim(%e) {dims=[]} : tensor<$Lxf32>\n"}));
  struct comparison {
    std::string how, number;
  };
  for (const auto& [how, k] : std::vector<comparison>{{"lt", "1"},
                                                      {"lt", "2"},
                                                      {"lt", "$m"},
                                                      {"le", "0"},
                                                      {"le", "1"},
                                                      {"eq", "0"},
                                                      {"eq", "$m"},
                                                      {"ge", "1"},
                                                      {"ge", "$m"}}) {
    list.push_back(of_rows(
        "positions " + how + " " + k, count("i") + masked(how, k, "i"),
        {count("i") + start + op("j", "add", "%i, %o", "tensor<$Lxi32>") + masked(how, k, "j")},
        {count("i") + masked(how, k, "i"), count("i") + start +
                                               op("j", "add", "%i, %o", "tensor<$Lxi32>") +
                                               masked(how == "lt" ? "le" : "lt", k, "j")}));
    if (how != "eq" || k != "0")
      list.back().wrong.push_back(count("i") + start +
                                  op("j", "subtract", "%i, %o", "tensor<$Lxi32>") +
                                  masked(how, k, "j"));
  }
  const std::string matrix = "tensor<$Lx$nxf32>";
  const auto of_matrix = [&](const std::string& what, const std::string& source,
                             const std::vector<std::string>& right,
                             const std::vector<std::string>& wrong) {
    list.push_back(
        {what, "%x: " + matrix, "[{\"A\"}, {}];", source, matrix, "[{\"A\"}, {}]", right, wrong});
  };
  const std::string whole = "  %w = all_gather [{\"A\"}, {}] %x : tensor<$nx$nxf32>\n",
                    turned = "  %u = transpose(%w) {dims=[1, 0]} : tensor<$nx$nxf32>\n",
                    part = "  %t = all_slice [{\"A\"}, {}] %u : tensor<$Lx$nxf32>\n";
  const std::string transposed = "  %t = transpose(%x) {dims=[1, 0]} : tensor<$nx$nxf32>\n";
  of_matrix("x plus its transpose", transposed + op("y", "add", "%x, %t", matrix),
            {whole + turned + part + op("y", "add", "%x, %t", matrix)},
            {op("y", "add", "%x, %x", matrix)});
  of_matrix("x minus its transpose", transposed + op("y", "subtract", "%x, %t", matrix),
            {whole + turned + part + op("y", "subtract", "%x, %t", matrix)},
            {op("y", "subtract", "%x, %x", matrix), "  %y = constant {0} : " + matrix + "\n"});
  of_matrix("exp of the transpose", transposed + op("y", "exp", "%t", matrix),
            {whole + turned + part + op("y", "exp", "%t", matrix)}, {op("y", "exp", "%x", matrix)});
  of_matrix("x times x", "  %y = matmul(%x, %x) : " + matrix + "\n",
            {whole + "  %y = matmul(%x, %w) : " + matrix + "\n"},
            {whole + turned + "  %y = matmul(%x, %u) : " + matrix + "\n",
             whole + turned + part + "  %y = matmul(%t, %w) : " + matrix + "\n",
             whole + "  %g = matmul(%w, %w) : tensor<$nx$nxf32>\n" +
                 "  %h = transpose(%g) {dims=[1, 0]} : tensor<$nx$nxf32>\n" +
                 "  %y = all_slice [{\"A\"}, {}] %h : " + matrix + "\n"});
  of_matrix("causal mask",
            "  %i = iota {dim=0} : tensor<$nx$nxi32>\n  %j = iota {dim=1} : tensor<$nx$nxi32>\n"
            "  %b = compare(%i, %j) {ge} : tensor<$nx$nxi1>\n  %c = constant {-1} : tensor<f32>\n"
            "  %y = select(%b, %x, %c) : tensor<$nx$nxf32>\n",
            {"  %k = iota {dim=0} : tensor<$Lx$nxi32>\n  %j = iota {dim=1} : tensor<$Lx$nxi32>\n" +
             start + op("i", "add", "%k, %o", "tensor<$Lx$nxi32>") +
             "  %b = compare(%i, %j) {ge} : tensor<$Lx$nxi1>\n  %c = constant {-1} : tensor<f32>\n"
             "  %y = select(%b, %x, %c) : tensor<$Lx$nxf32>\n"},
            {"  %i = iota {dim=0} : tensor<$Lx$nxi32>\n  %j = iota {dim=1} : tensor<$Lx$nxi32>\n"
             "  %b = compare(%i, %j) {ge} : tensor<$Lx$nxi1>\n  %c = constant {-1} : tensor<f32>\n"
             "  %y = select(%b, %x, %c) : tensor<$Lx$nxf32>\n",
             "  %k = iota {dim=0} : tensor<$Lx$nxi32>\n  %j = iota {dim=1} : tensor<$Lx$nxi32>\n" +
                 start + op("i", "add", "%k, %o", "tensor<$Lx$nxi32>") +
                 "  %b = compare(%i, %j) {gt} : tensor<$Lx$nxi1>\n  %c = constant {-1} : "
                 "tensor<f32>\n  %y = select(%b, %x, %c) : tensor<$Lx$nxf32>\n"});
  // On one atom all differences are zero.
  const std::string square = "tensor<$nx$nxf32>",
                    rows =
                        "  %i = broadcast_in_dim(%x) {dims=[0]} : tensor<$nx$nxf32>\n"
                        "  %j = broadcast_in_dim(%x) {dims=[1]} : tensor<$nx$nxf32>\n" +
                        op("d", "subtract", "%i, %j", square),
                    zero = "  %y = constant {0} : tensor<$nxf32>\n";
  list.push_back(
      {"sums of differences",
       "%x: " + vn,
       "[{}];",
       rows + "  %y = reduce(%d) {add, dims=[1]} : tensor<$nxf32>\n",
       vn,
       "[{}]",
       {times("t", "one", "$f").insert(0, "  %one = constant {1} : tensor<f32>\n") +
        op("u", "multiply", "%x, %t", vn) + reduced("s", "x") + op("y", "subtract", "%u, %s", vn)},
       {zero, rows + "  %y = reduce(%d) {add, dims=[0]} : tensor<$nxf32>\n"}});
  list.push_back({"sums of squared differences",
                  "%x: " + vn,
                  "[{}];",
                  rows + op("e", "multiply", "%d, %d", square) +
                      "  %y = reduce(%e) {add, dims=[1]} : tensor<$nxf32>\n",
                  vn,
                  "[{}]",
                  {rows + op("e", "multiply", "%d, %d", square) +
                   "  %y = reduce(%e) {add, dims=[0]} : tensor<$nxf32>\n"},
                  {zero}});
  return list;
}

TEST_CASE("shrinking: examples at a large size, and as elements decide at small ones") {
  for (const example& e : examples()) {
    CAPTURE(e.what);
    for (const sizes& z : {sizes{4096, 8}, sizes{4, 2}, sizes{6, 3}, sizes{8, 2}}) {
      const pt::program source = source_of(e, z);
      REQUIRE_MESSAGE(!source.error, e.what, ": ", str(source.error.message));
      const auto check = [&](const std::string& body, bool is_right) {
        const pt::device_program d = device_of(e, body, source, z);
        CHECK_MESSAGE(is_shrunk(source, d) == is_right, str(pt::print(source)), str(pt::print(d)));
        if (z.n > 8) return;
        const auto by_elements = detail::prove_by_elements(source, d, 1'000'000);
        if (is_shrunk(source, d))
          CHECK_MESSAGE(by_elements.kind == detail::element_verdict::proved, str(pt::print(d)));
      };
      for (const std::string& body : e.right) check(body, true);
      for (const std::string& body : e.wrong) check(body, false);
    }
  }
}

TEST_CASE("shrinking: verdicts name the method") {
  const example mean = examples().front();
  const sizes z{std::int64_t{1} << 24, 8};
  const pt::program source = source_of(mean, z);
  const pt::device_program d = device_of(mean, mean.right.front(), source, z);
  const pt::verdict by_claims = pt::prove(source, d, {.most_shrunk_to_confirm = 1000});
  CHECK(by_claims.method == pt::proof_method::claims);
  CHECK(by_claims.confirmed_by_shrinking);
  CHECK(!pt::prove(source, d).confirmed_by_shrinking);
  const pt::verdict none =
      pt::prove(source, device_of(mean, mean.wrong.front(), source, z), {.most_shrunk = 1000});
  CHECK(none.method == pt::proof_method::none);
  CHECK(!none.proved);
  CHECK(none.undecided);
}
TEST_CASE("shrinking: proves large programs that claims do not prove") {
  const sizes z{std::int64_t{1} << 24, 8};
  const std::string sums = ps + reduced("q", "z") + everywhere("t", "q") +
                           op("ss", "multiply", "%s, %s") + op("tt", "multiply", "%t, %t");
  const example twice =
      of_two("difference of squares",
             reduced("p", "x") + reduced("q", "z") + op("a", "add", "%p, %q") +
                 op("b", "subtract", "%p, %q") + op("y", "multiply", "%a, %b"),
             {sums + op("y", "subtract", "%ss, %tt")}, {sums + op("y", "add", "%ss, %tt")});
  const pt::program source = source_of(twice, z);
  const pt::verdict v = pt::prove(source, device_of(twice, twice.right[0], source, z));
  CHECK(v.method == pt::proof_method::shrinking);
  CHECK(!pt::prove(source, device_of(twice, twice.wrong[0], source, z)).proved);
}

/// Random programs of few ops on x (n, n) and z (n), whose results often coincide.
class writer {
 public:
  writer(std::uint64_t seed, std::int64_t n) : random_{seed}, n_(n) {}

  pt::program make() {
    values_ = {pt::ops::parameter(b_, "x", type(2)), pt::ops::parameter(b_, "z", type(1))};
    const auto ops = static_cast<int>(random_.in(2, 7));
    for (int i = 0; i < ops; ++i) values_.push_back(op());
    pt::value_id y = values_.back();
    while (b_.type(y).shape.rank > 1) y = reduced(y);
    if (b_.type(y).shape.rank == 0) y = repeated(y);
    b_.p.outputs.push_back({y, b_.p.intern("y")});
    return b_.p;
  }

 private:
  data::random random_;
  std::int64_t n_;
  pt::builder b_;
  std::vector<pt::value_id> values_;

  pt::tensor_type type(int rank) const {
    pt::tensor_type t{pt::dtype::f32, {}};
    for (int d = 0; d < rank; ++d) t.shape.push_back(n_);
    return t;
  }
  pt::value_id any() {
    const auto from = random_.in(0, 2) == 0 ? 0 : static_cast<std::int64_t>(values_.size()) - 2;
    return values_[static_cast<std::size_t>(
        random_.in(from < 0 ? 0 : from, static_cast<std::int64_t>(values_.size()) - 1))];
  }
  pt::value_id reduced(pt::value_id x) {
    const std::int64_t dims[] = {random_.in(0, b_.type(x).shape.rank - 1)};
    return pt::ops::reduce(b_, x, random_.in(0, 4) == 0 ? pt::combiner::max : pt::combiner::add,
                           dims);
  }
  pt::value_id repeated(pt::value_id x) {
    const int rank = b_.type(x).shape.rank;
    const std::int64_t dims[] = {random_.in(0, rank)};
    pt::shape to = type(rank + 1).shape;
    std::int64_t kept[] = {0};
    if (rank == 1) kept[0] = 1 - dims[0];
    return pt::ops::broadcast_in_dim(b_, x, to, {kept, static_cast<std::size_t>(rank)});
  }
  pt::value_id op() {
    const pt::value_id x = any();
    const int rank = b_.type(x).shape.rank;
    switch (random_.in(0, 8)) {
      case 0:
        return rank == 2 ? transposed(x) : x;
      case 1:
      case 2:
        return rank > 0 ? reduced(x) : repeated(x);
      case 3:
        return rank < 2 ? repeated(x) : reduced(x);
      case 4: {
        const double n = static_cast<double>(n_), numbers[] = {n, 1 / n, 1 / (n - 1), -1, 2};
        return pt::ops::multiply(b_, x,
                                 pt::ops::scalar(b_, pt::dtype::f32, numbers[random_.in(0, 4)]));
      }
      case 5:
        return random_.in(0, 2) == 0 ? pt::ops::exp(b_, x) : pt::ops::negate(b_, x);
      case 6:
        return rank == 2 && random_.in(0, 1) == 0 ? product(x) : masked(x);
      default:
        return joined(x);
    }
  }
  pt::value_id product(pt::value_id x) {
    const pt::value_id y = any();
    const std::int64_t last[] = {1}, first[] = {0};
    return b_.type(y).shape.rank == 2
               ? pt::ops::dot_general(b_, x, y, {.lhs_contract = last, .rhs_contract = first})
               : x;
  }
  /// The elements after the diagonal, or zero.
  pt::value_id masked(pt::value_id x) {
    if (b_.type(x).shape.rank != 2) return x;
    const pt::tensor_type t{pt::dtype::i32, type(2).shape};
    const pt::value_id i = pt::ops::iota(b_, t, 0), j = pt::ops::iota(b_, t, 1),
                       after = pt::ops::compare(b_, pt::ops::direction::lt, i, j);
    return pt::ops::select(b_, after, x, pt::ops::scalar(b_, pt::dtype::f32, 0));
  }
  pt::value_id transposed(pt::value_id x) {
    const std::int64_t dims[] = {1, 0};
    return pt::ops::transpose(b_, x, dims);
  }
  pt::value_id joined(pt::value_id x) {
    pt::value_id y = any();
    while (b_.type(x).shape.rank < b_.type(y).shape.rank) x = repeated(x);
    while (b_.type(y).shape.rank < b_.type(x).shape.rank) y = repeated(y);
    switch (random_.in(0, 4)) {
      case 0:
        return pt::ops::subtract(b_, x, y);
      case 1:
        return pt::ops::add(b_, x, y);
      case 2:
        return pt::ops::maximum(b_, x, y);
      default:
        return pt::ops::multiply(b_, x, y);
    }
  }
};

TEST_CASE("shrinking: pairs of random programs that it proves are equal by elements") {
  const long pairs = random_test::number_from("PARTITA_SHRUNK", 20000);
  const auto first =
      static_cast<std::uint64_t>(random_test::number_from("PARTITA_SHRUNK_FIRST", 1));
  long equal = 0, proved = 0, wrong = 0;
  for (std::uint64_t k = first; k < first + static_cast<std::uint64_t>(pairs); ++k) {
    const std::uint64_t seed = k / 30;                         // each program with 30 others
    const auto n = static_cast<std::int64_t>(3 + k % 30 % 4);  // around the numbers of atoms
    const pt::program source = writer(seed, n).make();
    const pt::device_program d = pt::on_one_device(writer(seed + k % 30, n).make());
    if (source.output_count() != 1 || source.error || d.local.error) continue;
    const bool is = is_shrunk(source, d);
    const bool holds =
        detail::prove_by_elements(source, d, 1'000'000).kind == detail::element_verdict::proved;
    equal += holds;
    proved += is;
    if (!is || holds) continue;
    if (++wrong < 4) FAIL_CHECK(k, "\n", str(pt::print(source)), str(pt::print(d.local)));
  }
  std::cout << "of " << pairs << " pairs of random programs, " << equal << " are equal, " << proved
            << " of them proved by shrinking\n";
  CHECK(wrong == 0);
  CHECK(equal > pairs / 50);
}

}  // namespace shrinking
