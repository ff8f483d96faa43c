// The kernel's claims about local values, compared with the values. Random partitioned programs and
// mutants of them run with all values on all devices. Each element that a claim describes is
// compared with the source's, whether an output needs it or not.
//
// PARTITA_CLAIMS_CASES=n checks n random programs, from number m on with PARTITA_CLAIMS_FIRST=m.
// PARTITA_CLAIMS_SEED=s prints those of number s.
//
// Not checked: values inside loops and branches; integers beyond 2^53; programs that read the bits
// of floats.
#include <doctest/doctest.h>

#include <cmath>
#include <cstdint>
#include <iostream>
#include <limits>
#include <string>
#include <vector>

#include "../random/seeds.hpp"
#include "mutants.hpp"
#include "subjects.hpp"

using namespace mutants;
using data::str;

namespace {

namespace claimed = partita::prove_detail;

constexpr int mutants_of_each = 12, most_ops = 200;
constexpr double largest_integer = 0x1p53;

struct counts {
  long programs = 0, claims = 0, elements = 0, wrong = 0;
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

/// The claims about the values of a local program, and the values.
class claims_of {
 public:
  claims_of(const pt::program& source, const pt::device_program& d)
      : source_(source), d_(d), kernel_(source, d) {
    kernel_.run();
  }
  void print(std::ostream& out) const {
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(d_.local.types.size()); ++v) {
      pt::text said;
      claimed::print_claim(said, source_, kernel_.claims()[v], d_.mesh);
      out << "value " << v << " is " << str(said) << '\n';
    }
  }
  /// Returns the first wrong claim, or "".
  std::string wrong(const std::vector<pt::array>& inputs) {
    of_source_ = run_source(source_, inputs);
    of_devices_ = run_devices(d_, inputs);
    for (pt::value_id v = 0; v < static_cast<pt::value_id>(d_.local.types.size()); ++v)
      if (const std::string w = wrong_block(kernel_.claims()[v], v); !w.empty()) return w;
    return "";
  }

 private:
  const pt::program& source_;
  const pt::device_program& d_;
  claimed::claim_kernel kernel_;
  std::vector<numbers> of_source_, of_devices_;

  /// True if an integer may have no exact double.
  static bool is_large(pt::dtype t, double n) {
    return !pt::is_floating(t) && std::fabs(n) >= largest_integer;
  }
  /// Returns a value's element, reduced over the devices along the pending axes. (Infinite:
  /// unknown.)
  double reduced_over(const numbers& value, const where& place,
                      const claimed::shard_claim& c) const {
    const pt::mesh& m = d_.mesh;
    std::vector<std::int64_t> device = *place.device;
    const std::int64_t size = place.local->elements(), i = place_of(*place.local, place.index);
    const auto at = [&] {
      std::int64_t n = 0;
      for (int a = 0; a < m.rank; ++a) n = n * m.size(a) + device[static_cast<std::size_t>(a)];
      return value.all[static_cast<std::size_t>(n * size + i)];
    };
    for (int a = 0; a < m.rank; ++a)
      if (c.pending.contains(a)) device[static_cast<std::size_t>(a)] = 0;
    double sum = at();
    for (;;) {
      if (is_large(value.type.element, at())) return std::numeric_limits<double>::infinity();
      int a = m.rank;
      while (a-- > 0) {
        if (!c.pending.contains(a)) continue;
        auto& k = device[static_cast<std::size_t>(a)];
        if (++k < m.size(a)) break;
        k = 0;
      }
      if (a < 0) return sum;
      sum = combined(c.combine, sum, at());
    }
  }
  bool is_apart(pt::dtype t, double x, double y, double greatest) const {
    if (!pt::is_floating(t)) {
      if (std::fabs(x) >= largest_integer || std::fabs(y) >= largest_integer) return false;
      return claimed::wrapped(t, static_cast<std::int64_t>(x)) !=
             claimed::wrapped(t, static_cast<std::int64_t>(y));
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

  /// Compares a local value with the block of the source value that a claim of the kernel states.
  std::string wrong_block(const claimed::shard_claim& c, pt::value_id v) {
    const numbers& mine = of_devices_[static_cast<std::size_t>(v)];
    if (!c.known() || mine.all.empty()) return "";
    const numbers& whole = of_source_[static_cast<std::size_t>(c.of)];
    if (whole.all.empty()) return "";
    ++seen.claims;
    const pt::shape &s = d_.local.type(v).shape, &all = whole.type.shape;
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
        const double got = reduced_over(mine, place, c);
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
  std::cout << "claims: " << seen.programs << " programs, " << seen.claims << " claims, "
            << seen.elements << " elements, wrong: " << seen.wrong << '\n';
  CHECK(seen.elements > 100 * seen.programs);
  CHECK(seen.claims > 10 * seen.programs);
}
