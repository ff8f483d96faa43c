/// A case: a program, a mesh and actions; the reduction of a failing one.
#pragma once

#include <map>
#include <utility>

#include "values.hpp"

namespace random_test {

struct random_action {
  bool atomic = false;
  value_id value = 0;  ///< in the flat program
  int dim = 0, axis = 0;
  std::int64_t pre = 1, size = 0;  ///< the part of the axis; size 0: all of it

  bool whole() const { return size == 0; }
  /// True if a mesh, which may be smaller, has this part.
  bool possible(const pt::mesh& m) const { return whole() || m.size(axis) % (pre * size) == 0; }
  /// Returns the number that the axis has for an action.
  int number(pt::named_axes& axes) const { return whole() ? axis : axes.number({axis, pre, size}); }
  pt::uneven policy = pt::uneven::unsaid;
};

struct test_case {
  std::uint64_t seed = 0;
  pt::program p;
  std::vector<value_info> info;  ///< by value of `p`
  pt::mesh mesh;
  std::vector<std::vector<random_action>> tactics;
  bool wild = false;  ///< true if floats have any value; then results have equal bits
  bool real =
      false;  ///< true if floats are real; then an analysis bounds the difference of results
  bool heavy = false;     ///< true if weights are larger than activations (see heavy.hpp)
  bool looks_up = false;  ///< true if it starts with a gather of few rows (see lookup.hpp)
};

/// Returns any float: special ones, denormals, those that overflow in products.
inline double wild_number(random& r) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  static constexpr double special[] = {
      0.0,   -0.0,   infinite, -infinite, std::numeric_limits<double>::quiet_NaN(),
      1e-40, -1e-40, 5e-324,   3e38,      -3e38,
      6e-8,  65504,  1,        -1};
  if (r.one_in(2)) return special[r.in(0, 13)];
  return static_cast<double>(r.in(-1000, 1000)) / 7;
}

/// Returns integers in an interval, with some NaN, infinities and -0 among them.
inline double special_integer(random& r, std::int64_t low, std::int64_t high, bool often) {
  constexpr double infinite = std::numeric_limits<double>::infinity();
  static constexpr double special[] = {-0.0, -0.0, infinite, -infinite,
                                       std::numeric_limits<double>::quiet_NaN()};
  if (r.one_in(often ? 12 : 60)) return special[r.in(0, 4)];
  return static_cast<double>(r.in(low, high));
}

inline std::vector<pt::array> arguments(const test_case& c) {
  random r{c.seed * 77 + 5};
  std::vector<pt::array> out;
  for (value_id v : c.p.inputs) {
    const auto& i = c.info[static_cast<std::size_t>(v)];
    const auto low =
        static_cast<std::int64_t>(std::ceil(std::max(i.lo, i.hi < -2 ? i.hi - 4 : -2)));
    const auto high = static_cast<std::int64_t>(std::floor(std::min(i.hi, 1e6)));
    if (c.wild && pt::is_floating(c.p.type(v).element)) {
      const bool bounded = std::isfinite(i.greatest()), often = r.one_in(3);
      out.push_back(data::fill(c.p.type(v), [&](std::int64_t) {
        return bounded ? special_integer(r, std::min(low, high), high, often) : wild_number(r);
      }));
      continue;
    }
    if (c.real && pt::is_floating(c.p.type(v).element)) {
      out.push_back(data::fill(c.p.type(v), [&](std::int64_t) {
        return static_cast<double>(r.in(std::min(low, high) * 1000, high * 1000)) / 1000;
      }));
      continue;
    }
    const bool index = pt::is_integer(c.p.type(v).element);
    out.push_back(data::integers(c.p.type(v), r, std::min(low, high),
                                 index ? high : std::min(high, low + 4)));
  }
  return out;
}

/// A value of a program or of those nested in it.
struct nested_value {
  std::vector<int> path;  ///< indices of nested programs
  value_id value = -1;
  auto operator<=>(const nested_value&) const = default;
};
inline std::vector<int> inside(std::vector<int> path, int region) {
  path.push_back(region);
  return path;
}

/// Returns, by value of the flat program (see core/flatten.hpp), the value of the source.
inline void add_flat_values(const pt::program& p, const std::vector<int>& path,
                            std::vector<nested_value>& out) {
  for (pt::op_id o = 0; o < p.op_count(); ++o) {
    const pt::op_node& n = p.op(o);
    if (n.region_count == 0) {
      if (n.def->role == pt::op_role::parameter && !path.empty()) continue;
      for (int r = 0; r < n.result_count; ++r) out.push_back({path, n.result + r});
      continue;
    }
    pt::wire_list list;
    n.def->wires(p, o, list);
    for (const auto& w : list.wires)
      for (const auto& e : w.ends) {
        if (e.kind == pt::wire_end::result) out.push_back({path, n.result + e.index});
        if (e.kind == pt::wire_end::input)
          out.push_back({inside(path, n.region_begin + e.region),
                         p.region(o, e.region).inputs[static_cast<std::size_t>(e.index)]});
      }
    for (int r = 0; r < n.region_count; ++r)
      add_flat_values(p.region(o, r), inside(path, n.region_begin + r), out);
  }
}
inline std::vector<nested_value> flat_values(const pt::program& p) {
  std::vector<nested_value> out;
  add_flat_values(p, {}, out);
  return out;
}

/// A change of a program: removes an op, whose results become inputs (zeros in nested programs); or
/// an output of the whole program; or all ops of nested programs that no output needs.
struct removal {
  std::vector<int> path = {};
  pt::op_id op = -1;
  int output = -1;
  bool unused = false;
};

/// The program without the removed ops, and without ops of the whole program that no output needs.
class rebuilder {
 public:
  test_case result;

  rebuilder(const test_case& c, const removal& what) : what_(what) {
    result.seed = c.seed;
    result.mesh = c.mesh;
    result.wild = c.wild;
    result.real = c.real;
    result.heavy = c.heavy;
    result.looks_up = c.looks_up;
    result.p = rebuilt(c.p, {}, {}, &c.info);
    std::map<nested_value, value_id> flat;
    const auto after = flat_values(result.p), before = flat_values(c.p);
    for (std::size_t v = 0; v < after.size(); ++v) flat[after[v]] = static_cast<value_id>(v);
    for (const auto& t : c.tactics) {
      auto& mine = result.tactics.emplace_back();
      for (auto a : t) {
        const auto moved = moved_.find(before[static_cast<std::size_t>(a.value)]);
        if (moved == moved_.end()) continue;
        const auto found = flat.find(moved->second);
        if (found == flat.end()) continue;
        a.value = found->second;
        mine.push_back(a);
      }
    }
  }

 private:
  const removal& what_;
  std::map<nested_value, nested_value> moved_;

  pt::program rebuilt(const pt::program& p, const std::vector<int>& path,
                      const std::vector<int>& new_path, const std::vector<value_info>* info) {
    const bool whole = path.empty(), here = path == what_.path;
    const auto at = [](int i) { return static_cast<std::size_t>(i); };
    pt::program q;
    q.chars = p.chars;
    std::vector<pt::program_output> outputs(p.outputs.begin(), p.outputs.end());
    if (here && what_.output >= 0) outputs.erase(outputs.begin() + what_.output);
    std::vector<char> live(p.ops.size(), !whole && !what_.unused);
    for (value_id v : p.inputs) live[at(p.producer(v))] |= !whole;
    for (const auto& o : outputs) live[at(p.producer(o.value))] = 1;
    for (pt::op_id o = p.op_count() - 1; o >= 0; --o)
      if (live[at(o)] && !(here && o == what_.op))
        for (auto v : p.operands(o)) live[at(p.producer(v))] = 1;
    std::vector<value_id> renamed(p.types.size(), -1);
    for (pt::op_id o = 0; o < p.op_count(); ++o) {
      if (!live[at(o)]) continue;
      const auto& n = p.op(o);
      if (here && o == what_.op) {
        for (value_id v = n.result; v < n.result + n.result_count; ++v) {
          const tensor_type t = p.type(v);
          const std::int64_t zero[] = {0};
          renamed[at(v)] = whole ? q.append(pt::def<pt::op::parameter>, {}, {}, t)
                                 : q.append(pt::def<pt::op::constant>, {}, zero, t);
          if (whole) q.ops.back().name = q.intern("c" + std::to_string(v));
        }
      } else {
        std::vector<value_id> operands;
        for (auto v : p.operands(o)) operands.push_back(renamed[at(v)]);
        q.append_op(*n.def, operands, p.attrs(o));
        q.ops.back().name = n.name;
        for (value_id v = n.result; v < n.result + n.result_count; ++v)
          renamed[at(v)] = q.append_result(p.type(v));
        for (int r = 0; r < n.region_count; ++r)
          q.append_region(rebuilt(p.region(o, r), inside(path, n.region_begin + r),
                                  inside(new_path, static_cast<int>(q.regions.size())), nullptr));
      }
      for (value_id v = n.result; v < n.result + n.result_count; ++v) {
        moved_[{path, v}] = {new_path, renamed[at(v)]};
        if (info != nullptr) result.info.push_back((*info)[at(v)]);
        if (whole && q.is(q.producer(renamed[at(v)]), pt::op_role::parameter))
          q.inputs.push_back(renamed[at(v)]);
      }
    }
    if (!whole)
      for (value_id v : p.inputs) q.inputs.push_back(renamed[at(v)]);
    for (const auto& o : outputs) q.outputs.push_back({renamed[at(o.value)], o.name});
    return q;
  }
};

/// Adds all ops except inputs and zeros, including nested ones: candidates for removal.
inline void add_removals(const pt::program& p, const std::vector<int>& path,
                         std::vector<removal>& out) {
  for (pt::op_id o = p.op_count() - 1; o >= 0; --o) {
    const auto& n = p.op(o);
    if (n.def->role == pt::op_role::parameter) continue;
    const bool zero = n.def == &pt::def<pt::op::constant> && p.attrs(o)[0] == 0;
    if (!zero || path.empty()) out.push_back({.path = path, .op = o});
    for (int r = 0; r < n.region_count; ++r)
      add_removals(p.region(o, r), inside(path, n.region_begin + r), out);
  }
}

/// Reduces greedily: continues with a smaller case as long as it fails. A smaller case has fewer
/// outputs, tactics, actions or ops, or smaller axes.
template <class Fails>
test_case shrink(test_case c, Fails fails) {
  int budget = 3000;
  const auto accept = [&](const test_case& t) {
    if (t.p.outputs.empty() || budget-- <= 0 || !fails(t)) return false;
    c = t;
    return true;
  };
  for (bool progress = true; progress && budget > 0;) {
    progress = false;
    for (std::size_t i = 0; i < c.tactics.size(); ++i) {
      test_case t = c;
      t.tactics.erase(t.tactics.begin() + static_cast<std::ptrdiff_t>(i));
      if (accept(t)) progress = true, --i;
    }
    for (std::size_t i = 0; i < c.tactics.size(); ++i)
      for (std::size_t j = 0; j < c.tactics[i].size(); ++j) {
        test_case t = c;
        t.tactics[i].erase(t.tactics[i].begin() + static_cast<std::ptrdiff_t>(j));
        if (accept(t)) progress = true, --j;
      }
    for (int i = 0; c.p.outputs.size() > 1 && i < c.p.output_count(); ++i)
      if (accept(rebuilder(c, {.output = i}).result)) progress = true, --i;
    if (c.p.outputs.size() == 1)  // a shorter prefix
      for (value_id v = 0; v < c.p.outputs[0].value; ++v) {
        test_case t = c;
        t.p.outputs[0].value = v;
        if (accept(rebuilder(t, {}).result)) {
          progress = true;
          break;
        }
      }
    if (const test_case t = rebuilder(c, {.unused = true}).result;
        t.p.regions.size() > 0 && pt::print(t.p).size() < pt::print(c.p).size() && accept(t))
      progress = true;
    std::vector<removal> removals;
    add_removals(c.p, {}, removals);
    for (std::size_t i = 0; i < removals.size() && budget > 0; ++i)
      if (accept(rebuilder(c, removals[i]).result)) {
        progress = true;
        removals.clear();
        add_removals(c.p, {}, removals);
      }
    for (int a = 0; a < c.mesh.rank; ++a)
      for (std::int64_t smaller : {1, 2})
        if (smaller < c.mesh.size(a)) {
          test_case t = c;
          t.mesh.axes[a].size = smaller;
          if (accept(t)) progress = true;
        }
  }
  return c;
}

inline pt::failure apply(pt::core_program& core, const random_action& a) {
  const int axis = a.whole() ? a.axis : core.axis({a.axis, a.pre, a.size});
  return a.atomic ? core.atomic(a.value, axis) : core.tile(a.value, a.dim, axis, a.policy);
}

inline std::string describe(const test_case& c) {
  pt::text out;
  out << pt::print(c.p) << "mesh " << c.mesh << "\nactions:\n";
  const pt::flat_program flat(c.p);
  const pt::value_names names(flat.p);
  pt::named_axes axes(c.mesh);
  for (const auto& t : c.tactics) {
    for (const auto& a : t) {
      pt::print_action(out,
                       {a.atomic ? pt::action_kind::atomic : pt::action_kind::tile, a.value, a.dim,
                        a.number(axes), 0, a.policy},
                       names, axes);
      out << "; ";
    }
    out << "propagate;\n";
  }
  return data::str(out);
}

}  // namespace random_test
