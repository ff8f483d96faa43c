// Figures and texts of a partitioned program agree: at compile time, at run time, and with the
// cost.
#include <doctest/doctest.h>

#include <string>
#include <vector>

#include "../two_layers.hpp"
#include "texts.hpp"

namespace pt = partita;
using namespace two_layers;
using unit::str;

namespace {

constexpr auto two = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP)); };
constexpr auto three = [] { return pt::partition(traced(), mesh, pt::schedule(BP, MP, Z3)); };

pt::partitioned of_many_inputs(int n) {
  pt::builder b;
  pt::value_id sum = -1;
  for (int i = 0; i < n; ++i) {
    const auto v = pt::ops::parameter(b, "p.a" + std::to_string(i), {pt::dtype::f32, {4}});
    sum = i == 0 ? v : pt::ops::add(b, sum, v);
  }
  b.p.outputs.push_back({sum, b.p.intern("y")});
  return pt::partition(b.p, mesh, std::vector{pt::manual("B", {{"p", 0}})});
}
/// Returns the bytes in the last line of `explain`: "  all             x3  64 bytes".
std::int64_t explained_bytes(const pt::partitioned& p) {
  const std::string all = str(pt::explain(p));
  const std::size_t end = all.rfind(" bytes"), begin = all.rfind(' ', end - 1);
  return std::stoll(all.substr(begin, end - begin));
}

}  // namespace

TEST_CASE("a summary holds any number of inputs, and outlives the program") {
  const pt::summary s = pt::summarize(of_many_inputs(3000));
  CHECK(s.input_count == 3000);
  CHECK(s.input("p.a2999").local_shape == pt::shape{1});
  CHECK(s.input(17).name == "p.a17");
  CHECK(s.output("y").global_shape == pt::shape{4});
  CHECK_THROWS_AS(s.input(3000), pt::error);
  const pt::sharded_value v = pt::summarize(of_many_inputs(30)).input(29);
  CHECK(v.name == "p.a29");
  const pt::tactic_summary t = pt::summarize(three()).tactic(2);
  CHECK(t.name == "Z3");
}

TEST_CASE("the figures at compile time and at run time are one list") {
  const auto p = three();
  const pt::summary s = pt::summarize(p);
#define PARTITA_SAME(member, ...) CHECK(s.member == pt::check<three>.member);
  PARTITA_FIGURES(PARTITA_SAME, PARTITA_SAME, PARTITA_SAME)
#undef PARTITA_SAME
  CHECK(s.flops == p.cost.flops);
  CHECK(s.collectives == p.collectives);
  CHECK(s.ops == p.device.local.op_count());
  for (int i = 0; i < s.input_count; ++i) {
    CHECK(s.input(i).name == pt::check<three>.input(i).name);
    CHECK(s.input(i).local_shape == pt::check<three>.input(i).local_shape);
  }
  constexpr auto w1 = pt::check<three>.input("w1");
  static_assert(w1.name == "w1" && w1.local_shape == pt::shape{2, 8});
  constexpr auto last = pt::check<three>.tactic(2);
  static_assert(last.name == "Z3" && last.actions == 3);
}

TEST_CASE("texts made at compile time equal those at run time") {
  static_assert(pt::check<two>.collectives.total() == 1);
  CHECK(str(pt::explain<two>()) == str(pt::explain(two())));
  CHECK(str(pt::explain<three>()) == str(pt::explain(three())));
  CHECK(str(pt::diff<two, three>()) == str(pt::diff(two(), three())));
  CHECK(str(pt::diff<three, three>()) == "no difference\n");
  // With limits that are too small, first for the texts, then for the rest.
  CHECK(str(pt::explain<three, pt::summary_limits{.collectives = 1}>()) ==
        str(pt::explain(three())));
  CHECK(str(pt::diff<two, three, pt::summary_limits{1, 1, 1, 1}>()) ==
        str(pt::diff(two(), three())));
  CHECK(pt::check<three, pt::summary_limits{1, 1, 1, 1}>.input("w2").local_shape ==
        pt::shape{8, 2});
}

TEST_CASE("explain and cost count the same bytes, and those of the largest branch") {
  const auto model = [](auto i, auto x, auto w1, auto w2) {
    const auto thrice = [&](const auto& h) {
      return pt::for_loop(
          0, 3, [&](auto, auto g) { return matmul(tanh(matmul(g, w1)), w2); }, h);
    };
    const auto once = [&](const auto& h) { return matmul(tanh(matmul(h, w1)), w2); };
    const auto none = [](const auto& h) { return h; };
    return pt::case_of(i, std::tuple{once, thrice, none}, x);
  };
  const auto f = pt::trace(model, pt::input<std::int32_t>("i"), pt::input<float, 8, 4>("x"),
                           pt::input<float, 4, 16>("w1"), pt::input<float, 16, 4>("w2"));
  const auto p = pt::partition(f, mesh, pt::schedule(BP, MP, Z3));
  CHECK(p.collectives.all_reduce == 1 + 3);
  CHECK(p.cost.collective_bytes > 0);
  CHECK(explained_bytes(p) == p.cost.collective_bytes);
  CHECK(explained_bytes(three()) == three().cost.collective_bytes);
}

namespace {
/// Slices the first of each pair of inputs by rows and the second by columns, all at once.
struct tear {
  std::string_view name() const { return "tear"; }
  void apply(pt::tactic_context& c) const {
    for (const auto& v : c.values())
      if (v.kind == pt::named_value::input) c.tile(v.value, v.name[0] == 'q', c.axis("B"));
    c.propagate();
  }
};
pt::partitioned torn_pairs(int n) {
  pt::builder b;
  for (int i = 0; i < n; ++i) {
    const auto at = std::to_string(i);
    const auto p = pt::ops::parameter(b, "p" + at, {pt::dtype::f32, {4, 4}});
    const auto q = pt::ops::parameter(b, "q" + at, {pt::dtype::f32, {4, 4}});
    const std::int64_t lhs[] = {1}, rhs[] = {0};
    const auto y = pt::ops::dot_general(b, p, q, {{}, {}, lhs, rhs});
    b.p.outputs.push_back({y, b.p.intern("y" + at)});
  }
  return pt::partition(b.p, mesh, std::vector{tear(), tear()});
}
int count(const std::string& text, std::string_view what) {
  int n = 0;
  for (std::size_t at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++n;
  return n;
}
}  // namespace

TEST_CASE("a report tries to settle each conflict that it shows, once") {
  const auto p = torn_pairs(40);
  CHECK(p.core.conflicts.size() == 40);
  const std::string few = str(pt::report(p, 5)), all = str(pt::report(p, 100));
  CHECK(count(few, "would be settled by") == 2 * 5);
  CHECK(count(few, "conflicts only") == 0);
  CHECK(count(all, "would be settled by") == 2 * 40);
  CHECK(all.find("would be settled by manual(\"B\", {{\"p39\", 0}}) as an earlier tactic "
                 "(#tile<0>), or by "
                 "manual(\"B\", {{\"q39\", 1}}) as") != all.npos);
  CHECK(str(pt::settle(p, p.core.conflicts[0]))
            .starts_with("would be settled by manual(\"B\", {{\"p0\", 0}})"));
  // Work: a conflict is settled once, however many tactics leave it open.
  pt::report_detail::settler settle(p, 1);
  CHECK(count(str(settle(p.core.conflicts[0])), "would be settled") == 1);
  CHECK(str(settle(p.core.conflicts[0])) == str(pt::settle(p, p.core.conflicts[0])));
  CHECK(str(settle(p.core.conflicts[1])) ==
        "actions that settle it are searched for 1 conflicts only");
}
