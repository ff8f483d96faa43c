// Kernels compared with values that NumPy, SciPy and JAX computed (the .txt files here;
// reference_data.py defines their format, make.py makes them).
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "reference_data.hpp"

namespace pt = partita;

namespace {

using reference_data::reference;

const std::vector<reference>& all() {
  static const std::vector<reference> list = [] {
    std::vector<std::filesystem::path> paths;
    for (const auto& entry :
         std::filesystem::directory_iterator(PARTITA_SOURCE_DIR "/tests/reference"))
      if (entry.path().extension() == ".txt") paths.push_back(entry.path());
    std::sort(paths.begin(), paths.end());
    std::vector<reference> cases;
    for (const auto& path : paths) reference_data::read_file(path, cases);
    return cases;
  }();
  return list;
}

const pt::op_def* find_op(std::string_view name) {
  for (const pt::op_def* op : pt::registry)
    if (op->name == name) return op;
  return nullptr;
}

/// Returns the distance from a value to the next value of its type, away from zero.
double ulp_of(pt::dtype t, double v) {
  struct format {
    int bits, least;
  };
  const format f = t == pt::dtype::f64    ? format{53, -1022}
                   : t == pt::dtype::f32  ? format{24, -126}
                   : t == pt::dtype::bf16 ? format{8, -126}
                                          : format{11, -14};
  const int exponent = v == 0 ? f.least : std::max(std::ilogb(v), f.least);
  return std::ldexp(1.0, exponent - f.bits + 1);
}

template <class T>
bool close(T found, T expected, const reference& c) {
  if constexpr (std::is_integral_v<T>) {
    return found == expected;
  } else {
    const auto wide = [](T v) {
      if constexpr (std::is_same_v<T, double>)
        return v;
      else
        return static_cast<double>(static_cast<float>(v));
    };
    const double x = wide(found), y = wide(expected);
    if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
    const bool exact = c.ulp == 0 && c.absolute == 0;
    if (x == y) return !exact || std::signbit(x) == std::signbit(y);
    if (exact || std::isinf(x) || std::isinf(y)) return false;
    const double distance = std::fabs(x - y);
    return distance <= c.absolute || distance <= c.ulp * ulp_of(pt::dtype_of<T>, y);
  }
}

template <class T>
std::string shown(T v) {
  std::ostringstream out;
  if constexpr (std::is_integral_v<T>)
    out << +v;
  else if constexpr (std::is_same_v<T, double>)
    out << v << " (" << std::hexfloat << v << ')';
  else
    out << static_cast<float>(v) << " (" << std::hexfloat << static_cast<float>(v) << ')';
  return out.str();
}

std::vector<pt::array> run(const pt::op_def& op, const reference& c) {
  std::vector<pt::tensor_type> types;
  for (const auto& r : c.results) types.push_back(r.type());
  return pt::run_op(op, c.operands, c.attrs, std::span<const pt::tensor_type>(types));
}

/// Returns the error of the op's result, or "".
std::string fault(const reference& c) {
  const pt::op_def* op = find_op(c.op);
  if (!op) return "the registry has no such op";
  if (c.results.empty() || !c.bounded) return "a case needs a result and a bound";
  std::vector<pt::tensor_type> types;
  for (const auto& a : c.operands) types.push_back(a.type());
  pt::infer_context rule;
  rule.operands = types;
  rule.attrs = c.attrs;
  rule.declared = c.results[0].type();
  op->infer(rule);
  if (rule.error) return std::string(rule.error.message.view());
  if (rule.result != c.results[0].type())
    return std::string(
        pt::concat("the shape rule gives ", rule.result, " instead of ", c.results[0].type())
            .view());
  const std::vector<pt::array> found = run(*op, c);
  if (found.size() != c.results.size()) return "another number of results";
  for (std::size_t k = 0; k < found.size(); ++k) {
    if (found[k].type() != c.results[k].type()) return "a result has another type";
    const std::string wrong =
        pt::run_detail::with_type(found[k].element(), [&]<class T>(std::type_identity<T>) {
          const T *x = found[k].data<T>(), *y = c.results[k].data<T>();
          for (std::int64_t i = 0; i < found[k].size(); ++i) {
            if (close(x[i], y[i], c)) continue;
            std::string out = "element " + std::to_string(i) + " is " + shown(x[i]) +
                              " instead of " + shown(y[i]);
            for (const auto& a : c.operands)
              if (a.size() == found[k].size())
                pt::run_detail::with_type(a.element(), [&]<class U>(std::type_identity<U>) {
                  out += "; operand " + shown(a.data<U>()[i]);
                });
            return out;
          }
          return std::string();
        });
    if (!wrong.empty()) return wrong;
  }
  return {};
}

}  // namespace

TEST_CASE("kernels give the results of NumPy, SciPy and JAX") {
  for (const reference& c : all()) {
    const std::string wrong = fault(c);
    CHECK_MESSAGE(wrong.empty(), c.where, ": ", c.op, c.note, ": ", wrong);
  }
  MESSAGE(all().size(), " cases");
}

TEST_CASE("every op of the registry has five reference cases") {
  // These compute nothing: the result is the operand, or the argument of the program.
  const pt::op_def* const pass_on[] = {&pt::def<pt::op::parameter>, &pt::def<pt::op::tag>,
                                       &pt::def<pt::op::tiling>, &pt::def<pt::op::stop_gradient>,
                                       &pt::def<pt::op::place>};
  std::map<std::string, int> cases;
  for (const reference& c : all()) ++cases[c.op];
  for (const pt::op_def* op : pt::registry) {
    if (std::find(std::begin(pass_on), std::end(pass_on), op) != std::end(pass_on)) {
      CHECK(op->identity);
      continue;
    }
    if (op->role == pt::op_role::control) continue;  // their nested programs compute the results
    const int count = cases[std::string(op->name)];
    CHECK_MESSAGE(count >= 5, op->name, " has ", count, " cases in tests/reference");
  }
}
