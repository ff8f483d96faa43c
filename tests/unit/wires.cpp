// The law of wires: every operand and result of an op with nested programs, and every input and
// output of these, is an end of exactly one wire. The ends of a wire are the same tensor or slices
// of it.
#include <doctest/doctest.h>

#include <set>
#include <string>
#include <tuple>
#include <utility>

#include <partita/partita.hpp>

#include "texts.hpp"

namespace pt = partita;
using unit::str;

namespace {

/// An end of a wire, and its type without the leading dimensions that only this end has.
struct seen_end {
  std::string name;
  pt::tensor_type type;
  bool exists = false;
};

seen_end look_at(const pt::program& p, pt::op_id o, const pt::wire_end& e) {
  const pt::op_node& n = p.op(o);
  const char* kinds[] = {"operand ", "result ", "input ", "output "};
  seen_end s;
  s.name = kinds[e.kind] + std::to_string(e.index);
  pt::tensor_type whole;
  if (e.kind == pt::wire_end::operand) {
    if (e.index < 0 || e.index >= n.operand_count) return s;
    whole = p.type(p.operand(o, e.index));
  } else if (e.kind == pt::wire_end::result) {
    if (e.index < 0 || e.index >= n.result_count) return s;
    whole = p.type(n.result + e.index);
  } else {
    s.name += " of program " + std::to_string(e.region);
    if (e.region < 0 || e.region >= n.region_count) return s;
    const pt::program& r = p.region(o, e.region);
    const bool input = e.kind == pt::wire_end::input;
    if (e.index < 0 || e.index >= (input ? r.input_count() : r.output_count())) return s;
    whole = input ? r.input_type(e.index) : r.output_type(e.index);
  }
  s.type.element = whole.element;
  for (int d = e.shift; d < whole.shape.rank; ++d) s.type.shape.push_back(whole.shape[d]);
  s.exists = e.shift >= 0 && e.shift <= whole.shape.rank;
  return s;
}

/// Returns all ends that an op must have, by name.
std::set<std::string> all_ends(const pt::program& p, pt::op_id o) {
  std::set<std::string> names;
  const auto add = [&](auto kind, int region, int count) {
    for (int i = 0; i < count; ++i) names.insert(look_at(p, o, {kind, region, i, 0}).name);
  };
  add(pt::wire_end::operand, -1, p.op(o).operand_count);
  add(pt::wire_end::result, -1, p.op(o).result_count);
  for (int r = 0; r < p.op(o).region_count; ++r) {
    add(pt::wire_end::input, r, p.region(o, r).input_count());
    add(pt::wire_end::output, r, p.region(o, r).output_count());
  }
  return names;
}

/// Returns the first violation of the law by this op, or "".
std::string breach(const pt::program& p, pt::op_id o, const pt::wire_list& list) {
  std::set<std::string> missing = all_ends(p, o);
  for (const pt::wire& w : list.wires) {
    if (w.ends.empty()) return "a wire without ends";
    for (const pt::wire_end& e : w.ends) {
      const seen_end s = look_at(p, o, e), first = look_at(p, o, w.ends[0]);
      if (!s.exists) return s.name + " does not exist";
      if (missing.erase(s.name) == 0) return s.name + " is an end twice";
      if (s.type != first.type) return s.name + " is not like " + first.name;
    }
  }
  return missing.empty() ? "" : *missing.begin() + " is no end";
}

/// Checks all ops of a program and of those nested in it, and adds the op definitions to `met`.
void check_wires(const pt::program& p, std::set<const pt::op_def*>& met) {
  REQUIRE_MESSAGE(!p.error, str(p.error.message));
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    const pt::op_node& n = p.op(o);
    if (!p.is(o, pt::op_role::control)) {
      CHECK(n.region_count == 0);
      continue;
    }
    pt::wire_list list;
    n.def->wires(p, o, list);
    CHECK_MESSAGE(breach(p, o, list) == "", n.def->name, " in\n", str(pt::print(p)));
    met.insert(n.def);
  }
  for (const auto& r : p.regions) check_wires(r, met);
}

constexpr auto x = pt::input<float, 8, 4>("x");
constexpr auto w = pt::input<float, 4, 4>("w");

/// Constants, carried values that change or stay, slices, and stacked results, in both directions.
constexpr auto scans = [](auto x, auto w) {
  const auto step = [&](auto carried, auto slices) {
    const auto [row, scale] = slices;
    const auto [h, kept] = carried;
    const auto next = tanh(matmul(pt::reshape<1, 4>(h + row), w)) * scale;
    return std::pair{std::tuple{pt::reshape<4>(next), kept}, std::tuple{h * kept, sum(row)}};
  };
  const auto init = std::tuple{sum<0>(x), sum<1>(w)};
  const auto slices = std::tuple{x, sum<1>(x)};
  const auto [forward, rows] = pt::scan(step, init, slices);
  const auto [backward, more] = pt::scan(step, init, slices, {.reversed = true});
  return sum(std::get<0>(forward) * std::get<1>(backward)) + sum(std::get<0>(rows)) +
         sum(std::get<1>(more));
};

/// Branches with arguments and captures, in a call in a loop, on values that passed a barrier.
constexpr auto branches = [](auto given, auto weights) {
  const auto [x, w] = pt::optimization_barrier(std::tuple{given * 2, weights});
  const auto y = pt::for_loop(
      2, 5,
      [&, x = x, w = w](auto i, auto h) {
        const auto f = [&, x = x, w = w](auto v) {
          return pt::case_of(
              i,
              std::tuple{[](auto a) { return sin(a); }, [&](auto a) { return matmul(a, w); },
                         [&](auto a) { return a * x; }},
              v);
        };
        return pt::call("block", f, h);
      },
      x);
  return sum(pt::cond(
      sum(w) > 0, [](auto a, auto b) { return a - b; }, [](auto a, auto) { return a; }, y, x));
};

constexpr auto repeats = [](auto x, auto w) {
  return sum(pt::while_loop([&](auto h) { return sum(h * h) < sum(w * w); },
                            [&](auto h) { return matmul(h, w) + x; }, x));
};

template <class F>
constexpr auto with_gradient(const F& f) {
  return [f](auto x, auto w) {
    const auto [y, gradients] =
        pt::value_and_grad([&](const auto& p) { return std::apply(f, p); }, std::tuple{x, w});
    return std::tuple{pt::output("y", y), pt::output("dx", std::get<0>(gradients)),
                      pt::output("dw", std::get<1>(gradients))};
  };
}

}  // namespace

TEST_CASE("every op with nested programs: each end is in one wire, whose ends match") {
  std::set<const pt::op_def*> met;
  const pt::program programs[] = {pt::trace(scans, x, w), pt::trace(branches, x, w),
                                  pt::trace(repeats, x, w), pt::trace(with_gradient(scans), x, w),
                                  pt::trace(with_gradient(branches), x, w)};
  const pt::mesh mesh{{"B", 2}, {"M", 2}};
  for (const pt::program& p : programs) {
    check_wires(p, met);
    const auto r = pt::partition(
        p, mesh, pt::schedule(pt::manual("B", {{"x", 0}}), pt::manual("M", {{"w", 1}})));
    check_wires(r.device.local, met);
  }
  for (const pt::op_def* d : pt::registry) {
    CHECK_MESSAGE((d->wires != &pt::no_wires) == (d->role == pt::op_role::control), d->name);
    CHECK_MESSAGE(met.count(d) == (d->role == pt::op_role::control), d->name);
  }
}

TEST_CASE("wires that violate their law are found") {
  const pt::program p = pt::trace(scans, x, w);
  pt::op_id o = 0;
  while (!p.is(o, pt::op_role::control)) ++o;
  pt::wire_list good;
  p.op(o).def->wires(p, o, good);
  REQUIRE(breach(p, o, good) == "");
  const auto broken = [&](auto change) {
    pt::wire_list list = good;
    change(list);
    return breach(p, o, list);
  };
  CHECK(broken([](auto& l) { l.operand(0); }) == "operand 0 is an end twice");
  CHECK(broken([](auto& l) { l.add().output(0, 1); }) == "output 1 of program 0 is an end twice");
  CHECK(broken([](auto& l) { l.wires.pop_back(); }) == "output 2 of program 0 is no end");
  CHECK(broken([](auto& l) { l.wires[0].ends.clear(); }) == "a wire without ends");
  CHECK(broken([](auto& l) { l.add().input(1, 0); }) == "input 0 of program 1 does not exist");
  CHECK(broken([](auto& l) { l.add().result(9); }) == "result 9 does not exist");
  const auto swap_inputs = [](auto& l) { std::swap(l.wires[1].ends[1], l.wires[2].ends[1]); };
  CHECK(broken(swap_inputs) == "input 2 of program 0 is not like operand 0");
}
