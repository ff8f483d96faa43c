// The claims of a proof about local values, compared with the values. Random partitioned programs
// and mutants of them run with all values on all devices. Each element that a claim describes is
// compared with its description, whether an output needs it or not. The same is done for claims
// about the source's own values.
//
// PARTITA_CLAIMS_CASES=n checks n random programs, from number m on with PARTITA_CLAIMS_FIRST=m.
// PARTITA_CLAIMS_SEED=s prints those of number s.
//
// Not checked: values inside loops and branches; terms that are not a value of the source, except
// numbers, positions, and values that are reshaped, scaled or moved; integers beyond 2^53; programs
// that read the bits of floats.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "../random/seeds.hpp"
#include "mutants.hpp"
#include "subjects.hpp"

using namespace mutants;
using data::str;

namespace {

namespace claimed = partita::prove_detail;
using maybe_number = std::optional<double>;

constexpr int mutants_of_each = 12, most_ops = 200;
constexpr double largest_integer = 0x1p53;

struct counts {
  long programs = 0, blocks = 0, claims = 0, unknown = 0, elements = 0, strange = 0, wrong = 0;
} seen;

/// The numbers of an array.
struct numbers {
  pt::tensor_type type;
  std::vector<double> all;

  numbers() = default;
  explicit numbers(const pt::array& a) : type(a.type()) {
    const pt::array wide = pt::as_type(a, pt::dtype::f64);
    all.assign(wide.data<double>(), wide.data<double>() + wide.size());
  }
};

/// Makes each value of a program that can be an output one, and returns them.
std::vector<pt::value_id> all_values(const pt::program& p) {
  std::vector<pt::value_id> list;
  for (pt::value_id v = 0; v < static_cast<pt::value_id>(p.types.size()); ++v)
    if (p.type(v).shape.rank < pt::max_rank && !p.type(v).shape.has_no_elements())
      list.push_back(v);
  return list;
}
void give_all(pt::program& p, const std::vector<pt::value_id>& values) {
  p.outputs = {};
  for (const pt::value_id v : values) p.outputs.push_back({v, {}});
}

/// Returns the numbers of all values of the source, or nothing.
std::vector<numbers> run_source(pt::program p, const std::vector<pt::array>& inputs) {
  const auto values = all_values(p);
  std::vector<numbers> made(p.types.size());
  give_all(p, values);
  add_fuel(p);
  fuel::left = most_iterations;
  pt::executable ready(p, pt::run_options{.kernels = {{&pt::def<fuel>, &fuel::run}}});
  const std::vector<pt::array> got = ready(inputs);
  for (std::size_t i = 0; i < values.size(); ++i)
    made[static_cast<std::size_t>(values[i])] = numbers(got[i]);
  return made;
}
/// Returns the numbers of all values of a device program on all devices, with an additional leading
/// dimension.
std::vector<numbers> run_devices(pt::device_program d, const std::vector<pt::array>& inputs) {
  const auto values = all_values(d.local);
  std::vector<numbers> made(d.local.types.size());
  pt::program& p = d.local;
  d.outputs = {};
  d.output_types = {};
  std::vector<pt::value_id> outputs;
  for (const pt::value_id v : values) {
    const pt::tensor_type type = p.type(v);
    pt::shape local{1}, global{d.mesh.devices()};
    for (auto extent : type.shape) local.push_back(extent), global.push_back(extent);
    pt::layout l;
    for (int a = 0; a < d.mesh.rank; ++a) l.push_back(a, 0);
    outputs.push_back(
        p.append(pt::def<pt::op::reshape>, {&v, 1}, {}, pt::tensor_type{type.element, local}));
    d.outputs.push_back(l);
    d.output_types.push_back({type.element, global});
  }
  give_all(p, outputs);
  add_fuel(p);
  fuel::left = most_iterations;
  pt::executable ready(d, pt::run_options{.kernels = {{&pt::def<fuel>, &fuel::run}}});
  const std::vector<pt::array> got = ready(inputs);
  for (std::size_t i = 0; i < values.size(); ++i)
    made[static_cast<std::size_t>(values[i])] = numbers(got[i]);
  return made;
}

std::int64_t place_of(const pt::shape& s, const std::int64_t* at) {
  std::int64_t n = 0;
  for (int d = 0; d < s.rank; ++d) n = n * s[d] + at[d];
  return n;
}
/// (For integers, `and` and `or` are bitwise.)
double combined(pt::combiner by, double x, double y) {
  const auto bits = [](double n) { return static_cast<std::int64_t>(n); };
  switch (by) {
    case pt::combiner::add:
      return x + y;
    case pt::combiner::multiply:
      return x * y;
    case pt::combiner::max:
      return std::isnan(x) || x > y ? x : y;
    case pt::combiner::min:
      return std::isnan(x) || x < y ? x : y;
    case pt::combiner::logical_and:
      return static_cast<double>(bits(x) & bits(y));
    case pt::combiner::logical_or:
      return static_cast<double>(bits(x) | bits(y));
    default:
      return std::nan("");
  }
}

/// The place of an element.
struct where {
  const std::int64_t* index;                ///< in the value
  const pt::shape* local;                   ///< its shape
  const std::vector<std::int64_t>* device;  ///< coordinates
};

/// The claims about the values of two programs, and the values.
class claims_of {
 public:
  claims_of(const pt::program& source, const pt::device_program& d)
      : source_(source), d_(d), work_(d.mesh, -1), front_(work_, source), of_local_(d.local) {
    work_.reserve(source, d.local);
    front_.enter();
    for (int i = 0; i < source.input_count(); ++i)
      front_.give(i, d.inputs[static_cast<std::size_t>(i)], d.local.input_type(i).shape, of_local_,
                  d.local.inputs[i]);
    front_.define();
    claimed::lift_all(work_, d.local, of_local_);
    find_wholes();
  }
  void print(std::ostream& out) const {
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(d_.local.types.size()); ++v)
      for (int c = of_local_.first[v]; c >= 0; c = work_.claims[c].next)
        out << "value " << v << " is " << words(work_.claims[c]) << '\n';
  }
  /// Returns the first wrong claim, or "".
  std::string wrong(const std::vector<pt::array>& inputs) {
    of_source_ = run_source(source_, inputs);
    of_devices_ = run_devices(d_, inputs);
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(source_.types.size()); ++v)
      if (const std::string w = wrong_of(front_.known(), v, source_, of_source_, {}); !w.empty())
        return "in the source: " + w;
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(d_.local.types.size()); ++v)
      if (const std::string w = wrong_of(of_local_, v, d_.local, of_devices_, d_.mesh); !w.empty())
        return w;
    claimed::claim_kernel kernel(source_, d_);
    kernel.run();
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(d_.local.types.size()); ++v)
      if (const std::string w = wrong_block(kernel.claims()[v], v); !w.empty())
        return "kernel: " + w;
    return "";
  }

 private:
  const pt::program& source_;
  const pt::device_program& d_;
  claimed::workspace work_;
  claimed::source_interface front_;
  claimed::claim_list of_local_;
  std::vector<pt::value_id> wholes_;  ///< by term: the value of the source that equals it
  std::vector<numbers> of_source_, of_devices_;

  /// (Values that are a complete term, or one place of a term whose places are equal.)
  void find_wholes() {
    const auto& all = work_.all;
    wholes_.assign(static_cast<std::size_t>(all.terms.size()), -1);
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(source_.types.size()); ++v)
      for (int c = front_.known().first[v]; c >= 0; c = work_.claims[c].next) {
        const claimed::claim& each = work_.claims[c];
        if (each.sums.any() || each.scale != 1) continue;
        const pt::shape& s = all.terms[each.term].shape;
        if (all.terms.is_positions(each.term) || s != source_.type(v).shape) continue;
        claimed::view plain(s);
        const claimed::view* const own = all.own(each.term);
        for (int d = 0; d < s.rank; ++d)
          if (own != nullptr && own->repeats(d)) plain.drop(d);
        plain.normalize(s);
        if (all.views[each.view] == plain) wholes_[static_cast<std::size_t>(each.term)] = v;
      }
  }

  maybe_number number_of(pt::dtype t, std::int64_t bits) const {
    if (pt::is_floating(t)) return std::bit_cast<double>(bits);
    return static_cast<double>(claimed::wrapped(t, bits));
  }
  maybe_number element(int t, const std::int64_t* at) const {
    const claimed::term& of = work_.all.terms[t];
    if (of.number) return number_of(of.element, of.bits);
    if (of.positions) {
      if (pt::is_floating(of.element)) return static_cast<double>(at[0]);
      return number_of(of.element, at[0]);
    }
    if (of.base >= 0) {
      const maybe_number n = element(of.base, at);
      return n ? maybe_number(*n * of.factor) : n;
    }
    if (const pt::value_id v = wholes_[static_cast<std::size_t>(t)]; v >= 0) {
      const numbers& n = of_source_[static_cast<std::size_t>(v)];
      if (n.all.empty()) return std::nullopt;
      return n.all[static_cast<std::size_t>(place_of(n.type.shape, at))];
    }
    if (work_.all.terms.is_modulo(t)) return number_of(of.element, at[0]);
    if (of.alias.term >= 0) {
      const std::vector<std::int64_t> nowhere;
      return shown(of.alias.term, work_.all.views[of.alias.view], {at, &of.shape, &nowhere}, {},
                   pt::combiner::stack);
    }
    return std::nullopt;
  }
  /// Returns the scalar that is out of bounds.
  maybe_number beyond(std::int64_t filling) const {
    if (filling < claimed::outside::first_value) return std::nullopt;
    const claimed::operand_term& s =
        work_.all.scalars[static_cast<int>(filling - claimed::outside::first_value)];
    if (s.view < 0) return std::nullopt;
    const pt::shape scalar;
    const std::vector<std::int64_t> nowhere;
    return shown(s.term, work_.all.views[s.view], {nullptr, &scalar, &nowhere}, {},
                 pt::combiner::stack);
  }
  maybe_number at_positions(int t, const claimed::view& v, std::int64_t* at) const {
    const pt::shape& s = work_.all.terms[t].shape;
    bool inside = true;
    maybe_number fill;
    for (int d = 0; d < v.dims; ++d) {
      if (work_.all.terms.is_positions(t)) continue;
      const std::int64_t n = claimed::outside::modulus(v.beyond[d], s[d]);
      if (claimed::outside::turns(v.beyond[d]) && n > 0) {
        at[d] = (at[d] % n + n) % n;
      }
      if (at[d] >= 0 && at[d] < s[d]) continue;
      inside = false;
      if (const maybe_number f = beyond(claimed::outside::filling(v.beyond[d])); f) fill = f;
    }
    return inside ? element(t, at) : fill;
  }
  /// Returns the element that a view shows, with the digits of bound dimensions counted from digit
  /// `k` on.
  maybe_number shown(int t, const claimed::view& v, const where& place,
                     const std::vector<std::int64_t>& bound, pt::combiner by) const {
    std::int64_t at[pt::max_rank], rest[pt::max_rank] = {}, step[pt::max_rank];
    for (int d = 0; d < v.dims; ++d) at[d] = v.start[d];
    for (int d = 0; d < place.local->rank; ++d)
      step[d] = (*place.local)[d], rest[d] = place.index[d];
    std::size_t bounds = 0;
    for (int k = 0; k < v.count; ++k) {
      const claimed::digit& each = v.digits[k];
      std::int64_t n = 0;
      if (each.owner == claimed::on_axis(claimed::bound_axis)) {
        if (bounds == bound.size()) return reduced(t, v, place, bound, each.extent, by);
        n = bound[bounds++];
      } else if (each.owner < 0) {
        const auto axis = static_cast<std::size_t>(claimed::axis_of(each));
        if (axis >= place.device->size()) return std::nullopt;
        n = (*place.device)[axis];
      } else {
        step[each.owner] /= each.extent;
        n = rest[each.owner] / step[each.owner];
        rest[each.owner] %= step[each.owner];
      }
      if (each.dim >= 0) at[each.dim] += n * each.stride;
    }
    return at_positions(t, v, at);
  }
  maybe_number reduced(int t, const claimed::view& v, const where& place,
                       std::vector<std::int64_t> bound, std::int64_t extent,
                       pt::combiner by) const {
    bound.push_back(0);
    maybe_number sum;
    for (std::int64_t& n = bound.back(); n < extent; ++n) {
      const maybe_number each = shown(t, v, place, bound, by);
      if (!each || is_large(work_.all.terms[t].element, *each)) return std::nullopt;
      sum = n == 0 ? each : combined(by, *sum, *each);
    }
    return sum;
  }

  /// True if an integer may have no exact double.
  static bool is_large(pt::dtype t, double n) {
    return !pt::is_floating(t) && std::fabs(n) >= largest_integer;
  }
  /// Returns a value's element, reduced over the devices along the pending axes. (Infinite:
  /// unknown.)
  double reduced_over(const numbers& value, bool source, const where& place,
                      const claimed::pending& sums, const pt::mesh& m) const {
    std::vector<std::int64_t> device = *place.device;
    const std::int64_t size = place.local->elements(), i = place_of(*place.local, place.index);
    const auto at = [&] {
      std::int64_t n = 0;
      for (int a = 0; a < m.rank; ++a) n = n * m.size(a) + device[static_cast<std::size_t>(a)];
      return value.all[static_cast<std::size_t>(source ? i : n * size + i)];
    };
    for (int a = 0; a < m.rank; ++a)
      if (sums.contains(a)) device[static_cast<std::size_t>(a)] = 0;
    double sum = at();
    for (;;) {
      if (is_large(value.type.element, at())) return std::numeric_limits<double>::infinity();
      int a = m.rank;
      while (a-- > 0) {
        if (!sums.contains(a)) continue;
        auto& c = device[static_cast<std::size_t>(a)];
        if (++c < m.size(a)) break;
        c = 0;
      }
      if (a < 0) return sum;
      sum = combined(sums.combine, sum, at());
    }
  }
  bool is_apart(pt::dtype t, double x, double y, double greatest) const {
    if (!pt::is_floating(t)) {
      if (std::fabs(x) >= largest_integer || std::fabs(y) >= largest_integer) return false;
      return number_of(t, static_cast<std::int64_t>(x)) !=
             number_of(t, static_cast<std::int64_t>(y));
    }
    if (!std::isfinite(x) || !std::isfinite(y)) return false;
    return std::fabs(x - y) > 1e-9 * (std::fabs(x) + std::fabs(y) + greatest);
  }
  static double greatest_of(const numbers& n) {
    double most = 0;
    for (const double x : n.all)
      if (std::isfinite(x)) most = std::max(most, std::fabs(x));
    return most;
  }
  template <class F>
  static bool each_index(const pt::shape& s, std::vector<std::int64_t>& i, const F& f) {
    i.assign(static_cast<std::size_t>(s.rank), 0);
    for (;;) {
      if (!f()) return false;
      int d = s.rank;
      while (d-- > 0 && ++i[static_cast<std::size_t>(d)] == s[d])
        i[static_cast<std::size_t>(d)] = 0;
      if (d < 0) return true;
    }
  }

  std::string wrong_of(const claimed::claim_list& list, pt::value_id v, const pt::program& p,
                       const std::vector<numbers>& values, const pt::mesh& m) {
    const numbers& mine = values[static_cast<std::size_t>(v)];
    if (mine.all.empty()) return "";
    for (int c = list.first[v]; c >= 0; c = work_.claims[c].next)
      if (const std::string w = wrong_claim(work_.claims[c], v, p, mine, m); !w.empty()) return w;
    return "";
  }
  std::string wrong_claim(const claimed::claim& c, pt::value_id v, const pt::program& p,
                          const numbers& mine, const pt::mesh& m) {
    const claimed::view& view = work_.all.views[c.view];
    for (int a = 0; a < m.rank; ++a)
      if (c.sums.contains(a) && view.depends_on(a)) return static_cast<void>(++seen.strange), "";
    ++seen.claims;
    const pt::shape& s = p.type(v).shape;
    if (!fits(view, s)) return misfit(c, v, p);
    const double greatest = greatest_of(mine);
    std::vector<std::int64_t> device, i;
    std::string wrong;
    const long before = seen.elements;
    pt::shape devices;
    for (int a = 0; a < m.rank; ++a) devices.push_back(m.size(a));
    each_index(devices, device, [&] {
      for (int a = 0; a < m.rank; ++a)
        if (c.sums.contains(a) && device[static_cast<std::size_t>(a)] != 0) return true;
      return each_index(s, i, [&] {
        const where place{i.data(), &s, &device};
        const maybe_number wanted = shown(c.term, view, place, {}, c.sums.combine);
        if (!wanted) return true;
        ++seen.elements;
        const double got = reduced_over(mine, &p == &source_, place, c.sums, m);
        if (!is_apart(p.type(v).element, got, c.scale * *wanted, greatest)) return true;
        wrong = describe(c, v, p, place, got, c.scale * *wanted);
        return false;
      });
    });
    seen.unknown += seen.elements == before;
    return wrong;
  }
  /// Compares a local value with the block of the source value that a claim of the kernel states.
  std::string wrong_block(const claimed::shard_claim& c, pt::value_id v) {
    const numbers& mine = of_devices_[static_cast<std::size_t>(v)];
    if (!c.known() || mine.all.empty()) return "";
    const numbers& whole = of_source_[static_cast<std::size_t>(c.of)];
    if (whole.all.empty()) return "";
    ++seen.blocks;
    const pt::shape &s = mine.type.shape, &all = whole.type.shape;
    claimed::pending sums;
    for (int a = 0; a < d_.mesh.rank; ++a)
      if (c.pending.contains(a)) sums.add(1u << a, c.combine);
    const double greatest = greatest_of(mine);
    std::vector<std::int64_t> device, i;
    std::string wrong;
    pt::shape devices;
    for (int a = 0; a < d_.mesh.rank; ++a) devices.push_back(d_.mesh.size(a));
    each_index(devices, device, [&] {
      for (int a = 0; a < d_.mesh.rank; ++a)
        if (c.pending.contains(a) && device[static_cast<std::size_t>(a)] != 0) return true;
      return each_index(s, i, [&] {
        std::int64_t at[pt::max_rank];
        for (int d = 0; d < s.rank; ++d) {
          std::int64_t block = 0;
          for (const auto& e : c.sharding)
            if (e.dim == d)
              block = block * d_.mesh.size(e.axis) + device[static_cast<std::size_t>(e.axis)];
          at[d] = c.is_free(d) ? 0 : block * s[d] + i[static_cast<std::size_t>(d)];
          if (at[d] >= all[d]) return true;  // padding
        }
        const double wanted = whole.all[static_cast<std::size_t>(place_of(all, at))];
        if (is_large(whole.type.element, wanted)) return true;
        ++seen.elements;
        const where place{i.data(), &s, &device};
        const double got = reduced_over(mine, false, place, sums, d_.mesh);
        if (!is_apart(mine.type.element, got, wanted, greatest)) return true;
        wrong = "value " + std::to_string(v) + ", made by " +
                std::string(d_.local.op(d_.local.producer(v)).def->name) +
                ", is claimed to be a block of value " + std::to_string(c.of) + "; it has " +
                std::to_string(got) + " where that has " + std::to_string(wanted) + "\n";
        return false;
      });
    });
    return wrong;
  }
  std::string words(const claimed::claim& c) const {
    pt::text said;
    claimed::print_claim(said, work_.all, c, d_.mesh);
    return str(said);
  }
  /// True if each dimension of a value has as many elements as its digits count, or none.
  static bool fits(const claimed::view& v, const pt::shape& s) {
    std::int64_t counted[pt::max_rank];
    for (auto& n : counted) n = 1;
    for (int i = 0; i < v.count; ++i) {
      if (v.digits[i].owner >= s.rank) return false;
      if (v.digits[i].owner >= 0) counted[v.digits[i].owner] *= v.digits[i].extent;
    }
    for (int d = 0; d < s.rank; ++d)
      if (counted[d] != 1 && counted[d] != s[d]) return false;
    return v.rank == s.rank;
  }
  std::string misfit(const claimed::claim& c, pt::value_id v, const pt::program& p) const {
    return "value " + std::to_string(v) + " (" + str(pt::concat(p.type(v))) + "), made by " +
           std::string(p.op(p.producer(v)).def->name) +
           ", has another shape than is claimed: " + words(c) + "\n";
  }
  std::string describe(const claimed::claim& c, pt::value_id v, const pt::program& p,
                       const where& place, double got, double wanted) {
    std::string out = "value " + std::to_string(v) + " (" + str(pt::concat(p.type(v))) +
                      "), made by " + std::string(p.op(p.producer(v)).def->name) +
                      ", is claimed to be ";
    out += words(c) + ", of which element [";
    for (int d = 0; d < place.local->rank; ++d) out += " " + std::to_string(place.index[d]);
    out += " ] on device (";
    for (const auto n : *place.device) out += " " + std::to_string(n);
    return out + " ) is " + std::to_string(wanted) + "; the value has " + std::to_string(got) +
           "\n";
  }
};

/// Returns inputs as f64, with small numbers instead of infinities and NaN.
std::vector<pt::array> wide_inputs(const std::vector<pt::array>& inputs) {
  std::vector<pt::array> wide;
  for (const auto& each : inputs) {
    if (!pt::is_floating(each.element())) {
      wide.push_back(each);
      continue;
    }
    wide.push_back(pt::as_type(each, pt::dtype::f64));
    double* const x = wide.back().mutable_data<double>();
    for (std::int64_t k = 0; k < wide.back().size(); ++k)
      if (!std::isfinite(x[k]) || std::fabs(x[k]) > 1e6) x[k] = static_cast<double>(k % 5 - 2);
  }
  return wide;
}

class looked_at {
 public:
  looked_at(std::uint64_t seed, bool print) : seed_(seed), print_(print) {
    INFO("PARTITA_CLAIMS_SEED=", seed);
    const random_test::test_case c = random_test::generator(seed).make();
    if (c.mesh.rank == 0 || c.p.op_count() > most_ops || c.mesh.devices() > 64) return;
    data::random r{seed * 71 + 3};
    try {
      device_ = partitioned(c, r);
    } catch (const pt::error&) {
      return;
    }
    if (depends_on_bits(c.p)) return;
    inputs_ = wide_inputs(inputs_of(c, static_cast<int>(seed % 6)));
    source_ = c.p;
    pt::run_detail::widen(source_);
    device_ = in_doubles(device_);
    look("");
    for (int i = 0; i < mutants_of_each && !found_; ++i) mutate(i);
  }

 private:
  std::uint64_t seed_;
  bool print_, found_ = false;
  pt::program source_;
  pt::device_program device_;
  std::vector<pt::array> inputs_;

  static bool depends_on_bits(const pt::program& p) {
    for (pt::op_id o = 0; o < p.op_count(); ++o)
      if (std::string_view(p.op(o).def->name).starts_with("bitcast")) return true;
    for (const auto& r : p.regions)
      if (depends_on_bits(r)) return true;
    return false;
  }
  void mutate(int i) {
    mutant m = make_mutant(device_, seed_ * 1000000 + static_cast<std::uint64_t>(i));
    if (m.kind < 0 || pt::verify(m.program)) return;
    const pt::device_program kept = device_;
    device_ = m.program;
    look("mutant " + std::to_string(i) + ", " + std::string(kinds[m.kind].name) + ": ");
    device_ = kept;
  }
  void look(const std::string& what) {
    std::string wrong;
    try {
      claims_of claims(source_, device_);
      if (print_) claims.print(std::cout);
      wrong = claims.wrong(inputs_);
    } catch (const std::exception& e) {
      if (print_) std::cout << what << e.what() << '\n';
      return;
    }
    ++seen.programs;
    if (print_) std::cout << what << str(pt::print(device_)) << wrong << '\n';
    if (wrong.empty()) return;
    ++seen.wrong;
    found_ = true;
    FAIL_CHECK("PARTITA_CLAIMS_SEED=", seed_, ": ", what, wrong, str(pt::print(source_)),
               str(pt::print(device_)));
  }
};

}  // namespace

/// Seeds that found an unsound rule: the padding of carried values; an axis that occurs in two
/// dimensions of a reshape; parts of composed dimensions in another order; a pending number as
/// padding; a factor of a product; an op after a pad; a rolled minor part.
constexpr std::uint64_t found_once[] = {1373, 1629, 430, 2278, 20389, 21796, 60991, 61629};

TEST_CASE("claims about local values are true") {
  if (const auto one = random_test::number_from("PARTITA_CLAIMS_SEED"))
    return static_cast<void>(looked_at(static_cast<std::uint64_t>(*one), true));
  const auto first =
      static_cast<std::uint64_t>(random_test::number_from("PARTITA_CLAIMS_FIRST", 1));
  const long cases = random_test::number_from("PARTITA_CLAIMS_CASES", 60);
  for (const std::uint64_t seed : found_once) looked_at(seed, false);
  for (std::uint64_t seed = first; seed < first + static_cast<std::uint64_t>(cases); ++seed)
    looked_at(seed, false);
  std::cout << "claims: " << seen.programs << " programs, " << seen.claims << " claims ("
            << seen.unknown << " of what has no value) and " << seen.blocks << " of the kernel, "
            << seen.elements << " elements, wrong: " << seen.wrong << "; " << seen.strange
            << " claims depend on what is pending\n";
  CHECK(seen.elements > 100 * seen.programs);
  CHECK(seen.unknown < seen.claims / 4);
  CHECK(seen.strange == 0);
  CHECK(seen.blocks > 10 * seen.programs);
}
