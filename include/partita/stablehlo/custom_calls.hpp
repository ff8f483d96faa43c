/// Custom calls to libraries that compute the same as an op of this library.
#pragma once

#include <partita/stablehlo/op_context.hpp>
#include <partita/stablehlo/reducer.hpp>

namespace partita::stablehlo_detail {

/// Reads a number from `mhlo.backend_config = {uplo = 76 : ui8, ...}`.
constexpr std::int64_t configured(op_context& c, std::string_view name) {
  for (std::string_view part : parts_of(inside(c.o.attribute("mhlo.backend_config"), '{', '}'))) {
    const std::size_t equal = part.find('=');
    if (equal == std::string_view::npos || !part.starts_with(name)) continue;
    std::string_view between = part.substr(name.size(), equal - name.size());
    while (!between.empty() && is_space(between.front())) between.remove_prefix(1);
    std::int64_t n = 0;
    std::string_view value = part.substr(equal + 1);
    while (!value.empty() && is_space(value.front())) value.remove_prefix(1);
    if (value.starts_with("true")) return 1;
    if (value.starts_with("false")) return 0;
    if (between.empty() && read_integer(value, n)) return n;
  }
  c.fail("H005", "its mhlo.backend_config has no number ", name);
  return 0;
}
/// Reads a LAPACK letter: true for `yes`, false for one of `no`.
constexpr bool chosen(op_context& c, std::string_view name, char yes, std::string_view no) {
  const auto letter = static_cast<char>(configured(c, name));
  if (!c.failed() && letter != yes && no.find(letter) == std::string_view::npos)
    c.fail("H005", name, " = '", letter, "' is not one of '", yes, no, '\'');
  return letter == yes;
}

/// True for the lower triangular factor. cuSOLVER has a flag for it, LAPACK a letter.
constexpr bool is_lower(op_context& c) {
  const std::string_view config = c.o.attribute("mhlo.backend_config");
  for (std::string_view part : parts_of(inside(config, '{', '}')))
    if (part.starts_with("lower")) return configured(c, "lower") != 0;
  return chosen(c, "uplo", 'L', "U");
}
/// Reads lapack_*potrf_ffi: the Cholesky factor and a status. The other triangle is not changed.
/// The status is always 0; if a matrix is not positive definite, the factor is NaN.
constexpr void read_potrf(op_context& c) {
  if (!c.count(1)) return;
  const bool lower = is_lower(c);
  const tensor_type info = c.declared(1);
  if (c.failed()) return;
  const value_id factor = ops::cholesky(c.b, c.x(0), lower);
  if (c.failed()) return;
  using enum ops::direction;
  const value_id kept = op::triangle(c.b, lower ? ge : le, c.type(0).shape);
  c.give(ops::select(c.b, kept, factor, c.x(0)));
  c.give(ops::broadcast_in_dim(c.b, ops::integer(c.b, info.element, 0), info.shape, {}));
}
/// Reads lapack_*trsm_ffi.
constexpr void read_trsm(op_context& c) {
  if (!c.count(2)) return;
  const bool left = chosen(c, "side", 'L', "R"), lower = chosen(c, "uplo", 'L', "U");
  const bool unit = chosen(c, "diag", 'U', "N"), plain = chosen(c, "trans_x", 'N', "TC");
  if (!c.failed()) c.give(ops::triangular_solve(c.b, c.x(0), c.x(1), {left, lower, unit, !plain}));
}
/// Reads ApproxTopK(x, positions, initial value, -1): the exact k largest or smallest elements. The
/// program is the comparison. The order is the total order, as in XLA on CPUs.
constexpr void read_approximate_top_k(op_context& c) {
  if (!c.count(4) || !c.region_count(1)) return;
  const sort_order order = find_order(c.regions[0]);
  if (order.keys.size() != 1 || order.keys[0] != 0)
    return c.fail("H009", "its program is not a comparison LT or GT of its first operand");
  const int dim = c.dimension(configured(c, "reduction_dim"));
  const std::int64_t k = configured(c, "top_k");
  if (c.failed()) return;
  if (configured(c, "aggregate_to_topk") == 0)
    return c.fail("H013", "aggregate_to_topk = false is not supported");
  const bool total = order.total || order.descending;
  const value_id operands[] = {total ? op::total_order_key(c.b, c.x(0)) : c.x(0), c.x(0), c.x(1)};
  if (c.failed()) return;
  const value_id sorted = 1 + ops::sort(c.b, operands, dim, 1, order.descending);
  if (c.failed()) return;
  const shape& s = c.type(0).shape;
  std::int64_t start[max_rank] = {}, limit[max_rank] = {};
  for (int d = 0; d < s.rank; ++d) limit[d] = d == dim ? k : s[d];
  const auto rank = static_cast<std::size_t>(s.rank);
  for (int i = 0; i < 2; ++i) c.give(ops::slice(c.b, sorted + i, {start, rank}, {limit, rank}));
}

/// True for the LAPACK routine and for its counterparts in cuSOLVER and hipSOLVER.
constexpr bool is_solver(std::string_view target, std::string_view routine) {
  for (const std::string_view library : {"cusolver_", "hipsolver_"})
    if (target == concat(library, routine, "_ffi").view()) return true;
  return target.size() == routine.size() + 12 && target.starts_with("lapack_") &&
         target.substr(8) == concat(routine, "_ffi").view();
}
constexpr std::string_view target_of(const op_context& c) {
  return c.o.has("call_target_name") ? without_quotes(c.o.attribute("call_target_name"))
                                     : c.o.symbol;
}
/// Reads `mhlo.frontend_attributes = {_xla_buffer_placement = "pinned_host"}`.
constexpr void read_placement(op_context& c) {
  const std::string_view attributes = c.o.attribute("mhlo.frontend_attributes");
  constexpr std::string_view name = "_xla_buffer_placement";
  std::string_view where;
  for (std::string_view part : parts_of(inside(attributes, '{', '}')))
    if (part.starts_with(name)) where = inside(part, '"', '"');
  for (std::size_t i = 0; i < std::size(op::place::memories); ++i)
    if (op::place::memories[i] == where) {
      if (c.count(1)) c.give(ops::place(c.b, c.x(0), static_cast<memory_space>(i)));
      return;
    }
  c.fail("H013", "memory \"", where, "\" is not one of device, pinned_host, unpinned_host");
}
constexpr void read_custom_call(op_context& c) {
  const std::string_view target = target_of(c);
  if (target == "annotate_device_placement") return read_placement(c);
  for (std::string_view known : {"Sharding", "xla.sdy.FuncResultSharding", "LayoutConstraint"})
    if (target == known) {
      if (c.count(1)) c.give(c.x(0));
      return;
    }
  if (is_solver(target, "potrf")) return read_potrf(c);
  if (is_solver(target, "trsm")) return read_trsm(c);
  if (target == "ApproxTopK") return read_approximate_top_k(c);
  if (target.find("callback") != std::string_view::npos)
    return c.fail("H013", "target \"", target,
                  "\" calls Python, which a module cannot contain; remove jax.debug.print, "
                  "pure_callback and io_callback from the function");
  c.fail("H013", "target \"", target,
         "\" is code of another library; lower the function to StableHLO ops "
         "(for linear algebra, cholesky and triangular_solve)");
}

}  // namespace partita::stablehlo_detail
