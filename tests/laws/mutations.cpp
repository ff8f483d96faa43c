// Texts with mistakes: the parser accepts them or reports an error. It neither crashes nor hangs,
// and a program that it accepts prints and parses back.
//
// PARTITA_MUTATIONS is the number of texts (run several hundred thousand with sanitizers before a
// change to the parser or an op's attributes is merged).
#include <doctest/doctest.h>

#include <cstdlib>
#include <random>
#include <string>
#include <vector>

#include "cases.hpp"

namespace pt = partita;
using namespace laws;
using data::str;

namespace {

constexpr std::string_view control =
    R"(func @main(%x: tensor<4x6xf32>, %"a b": tensor<3x4x6xf32>, %i: tensor<i32>) {
  %h = tag "h" %x : tensor<4x6xf32>
  %c, %s = scan(%h, %"a b") {length=3, carried=1, sliced=1, stacked=1} do (%k: tensor<i32>, %c: tensor<4x6xf32>, %w: tensor<4x6xf32>) {
    %n = multiply(%c, %w) : tensor<4x6xf32>
    return %n, %n : tensor<4x6xf32>, tensor<4x6xf32>
  } : tensor<4x6xf32>, tensor<3x4x6xf32>
  %y = case_of(%i, %c) do (%v: tensor<4x6xf32>) {
    return %v : tensor<4x6xf32>
  } do (%v: tensor<4x6xf32>) {
    %z = call "f \" g"(%v) do (%u: tensor<4x6xf32>) {
      %e = exp(%u) : tensor<4x6xf32>
      return %e : tensor<4x6xf32>
    } : tensor<4x6xf32>
    return %z : tensor<4x6xf32>
  } : tensor<4x6xf32>
  return %y, %s as "all, of it" : tensor<4x6xf32>, tensor<3x4x6xf32>
}
)";

/// Texts of device-local programs, with collectives.
std::vector<std::string> local_texts() {
  const auto f = pt::trace(
      [](auto x, auto w1, auto w2) {
        const auto h = pt::tanh(matmul(x, w1));
        const auto y = matmul(h, w2);
        const auto [g1, g2] = pt::grad(
            [&](const auto& w) {
              return pt::sum(pt::tanh(matmul(matmul(x, std::get<0>(w)), std::get<1>(w))));
            },
            std::tuple{w1, w2});
        return std::tuple{pt::output("y", y), pt::output("w 1", g1), pt::output("w2", g2)};
      },
      pt::input<float, 16, 8>("x"), pt::input<float, 8, 16>("w 1"), pt::input<float, 16, 8>("w2"));
  const pt::mesh mesh{{"B", 4}, {"M, N", 2}};
  const auto BP = pt::manual("B", {{"x", 0}}), MP = pt::manual("M, N", {{"w 1", 1}}),
             part = pt::manual("B:(1)2", {{"x", 0}});
  const auto Z3 = pt::manual("B", {{"w 1", 0}, {"w2", 1}});
  std::vector<std::string> texts;
  const auto add = [&](const auto& q) {
    texts.push_back(str(pt::print(q.device.local, &q.device.mesh)));
  };
  add(pt::partition(f, mesh, pt::schedule(BP, MP)));
  add(pt::partition(f, mesh, pt::schedule(BP, MP, Z3)));
  add(pt::partition(f, mesh, pt::schedule(part, MP)));
  return texts;
}

class mutator {
 public:
  explicit mutator(unsigned seed) : random_(seed) {}

  std::string operator()(std::string in, const std::string& other) {
    for (std::size_t n = 1 + pick(4); n > 0 && !in.empty(); --n) one(in, other);
    return in;
  }

 private:
  std::mt19937 random_;

  std::size_t pick(std::size_t n) { return random_() % n; }
  void one(std::string& in, const std::string& other) {
    static const std::vector<std::string> pieces = {"-1",
                                                    "0",
                                                    "1",
                                                    "7",
                                                    "2147483648",
                                                    "4611686018427387904",
                                                    "9223372036854775807",
                                                    "-9223372036854775808",
                                                    "18446744073709551617",
                                                    "1e400",
                                                    "nan",
                                                    "inf",
                                                    "%",
                                                    "\"",
                                                    "\\",
                                                    "(",
                                                    ")",
                                                    "{",
                                                    "}",
                                                    "[",
                                                    "]",
                                                    "<",
                                                    ">",
                                                    ",",
                                                    ", ",
                                                    ":",
                                                    "=",
                                                    "do",
                                                    "return ",
                                                    "as \"q\"",
                                                    "x",
                                                    "tensor<",
                                                    "tensor<0xf32>",
                                                    "tensor<576460752303423487xf32>",
                                                    "f32",
                                                    "i1",
                                                    "i64",
                                                    "\n",
                                                    "%x1",
                                                    "%\"a b\"",
                                                    "\\x0",
                                                    std::string(1, '\0'),
                                                    "\xff"};
    const std::size_t at = pick(in.size()), length = 1 + pick(8);
    switch (pick(8)) {
      case 0:
        in[at] = static_cast<char>(pick(256));
        break;
      case 1:
        in.erase(at, length);
        break;
      case 2:
        in.insert(at, pieces[pick(pieces.size())]);
        break;
      case 3:
        in.replace(at, length, pieces[pick(pieces.size())]);
        break;
      case 4:
        in.insert(pick(in.size()), in.substr(at, length * 4));
        break;
      case 5:
        in.replace(at, length * 4, other.substr(pick(other.size()), length * 4));
        break;
      default:
        number(in, at);
        break;
    }
  }
  /// Replaces the next number of a text by another one.
  void number(std::string& in, std::size_t at) {
    const auto digit = [&](std::size_t i) { return i < in.size() && in[i] >= '0' && in[i] <= '9'; };
    while (at < in.size() && !digit(at)) ++at;
    std::size_t end = at;
    while (digit(end)) ++end;
    if (end == at) return;
    static const std::vector<std::string> numbers = {"0",
                                                     "1",
                                                     "2",
                                                     "3",
                                                     "4",
                                                     "5",
                                                     "6",
                                                     "8",
                                                     "12",
                                                     "-1",
                                                     "-3",
                                                     "255",
                                                     "65536",
                                                     "2147483647",
                                                     "4294967296",
                                                     "1099511627776",
                                                     "576460752303423487",
                                                     "9223372036854775807",
                                                     "-9223372036854775808"};
    in.replace(at, end - at, numbers[pick(numbers.size())]);
  }
};

/// If a mutation changed the type of a result, makes the rest of the text agree with it. Returns
/// false if the parser reported another error.
bool follow_type(std::string& in, const std::string& message) {
  const std::string has = " has type ", given = "; the text states type ";
  const auto a = message.find(has), b = message.find(given);
  if (message.substr(0, 4) != "P015" || a == message.npos || b == message.npos) return false;
  const std::string is = message.substr(a + has.size(), b - a - has.size());
  const std::string wrong = message.substr(b + given.size());
  std::size_t line = 0;
  for (int n = std::atoi(message.c_str() + message.find("line ") + 5); n > 1; --n)
    line = in.find('\n', line) + 1;
  const auto at = in.rfind(wrong, in.find('\n', line));
  if (at == in.npos || at < line) return false;
  in.replace(at, wrong.size(), is);
  return true;
}

/// The number of texts that the parser accepts.
int accepted = 0;

void check_text(std::string in, bool local) {
  pt::mesh mesh, again;
  pt::program p = local ? pt::parse(in, mesh) : pt::parse(in);
  for (int i = 0; i < 4 && p.error && follow_type(in, str(p.error.message)); ++i)
    p = local ? pt::parse(in, mesh) : pt::parse(in);
  if (p.error) {
    CHECK_MESSAGE(p.error.message.size() < 2000, in);
    return;
  }
  ++accepted;
  const pt::failure wrong = local ? pt::failure{} : pt::verify(p);
  CHECK_MESSAGE(!wrong, str(wrong.message), "\n", in);
  (void)pt::estimate(p);
  const std::string printed = str(pt::print(p, local ? &mesh : nullptr));
  const pt::program back = local ? pt::parse(printed, again) : pt::parse(printed);
  CHECK_MESSAGE(!back.error, str(back.error.message), "\n", printed, "\n", in);
  CHECK_MESSAGE(pt::equivalent(p, back), printed, "\n", in);
  CHECK(str(pt::print(back, local ? &again : nullptr)) == printed);
  if (local) return;
  for (pt::op_id o = 0; o < p.op_count(); ++o)
    if (p.op(o).region_count == 0 && !p.is(o, pt::op_role::parameter)) (void)pt::tile_map_of(p, o);
}

int count_of_mutations() {
  const char* given = std::getenv("PARTITA_MUTATIONS");
  return given == nullptr ? 3000 : std::atoi(given);
}

}  // namespace

TEST_CASE("mutated texts are parsed or refused") {
  std::vector<std::string> sources, locals = local_texts();
  for (const op_case& c : all_cases()) sources.push_back(str(pt::print(program_of(c))));
  for (int i = 0; i < 30; ++i) sources.emplace_back(control);
  const int count = count_of_mutations();
  std::mt19937 random(11);
  mutator mutate(5);
  for (int i = 0; i < count; ++i) {
    const bool local = i % 5 == 4;
    const auto& list = local ? locals : sources;
    check_text(mutate(list[random() % list.size()], list[random() % list.size()]), local);
  }
  CHECK(accepted > count / 50);
}

TEST_CASE("mutated action texts are replayed or refused") {
  const auto f = pt::trace([](auto x, auto w) { return tag("h", matmul(x, w)); },
                           pt::input<float, 16, 8>("x"), pt::input<float, 8, 4>("w 1"));
  const pt::mesh mesh{{"B", 4}, {"M, N", 2}};
  const std::string log =
      "tile<%x, 0, \"B\">; propagate;\n"
      "tile<%\"w 1\", 1, \"M, N\", pad>; atomic<%h, \"B\":(1)2>; propagate;\n";
  const int count = count_of_mutations();
  mutator mutate(6);
  for (int i = 0; i < count; ++i) {
    pt::core_program c(f, mesh);
    const std::string in = mutate(log, log);
    if (pt::replay(c, f, in)) continue;
    const std::string shown = str(pt::print_actions(c, f));
    pt::core_program d(f, mesh);
    const auto wrong = pt::replay(d, f, shown);
    CHECK_MESSAGE(!wrong, str(wrong.message), "\n", shown, "\n", in);
    CHECK(str(pt::print_core(c)) == str(pt::print_core(d)));
  }
}
