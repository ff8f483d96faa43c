/// Composites that represent ops of this library; see write_ops.hpp. The attributes name the op;
/// the decomposition defines the result. The reader trusts the attributes only if the decomposition
/// equals the one that the writer produces for them; otherwise it reads the decomposition.
#pragma once

#include <string_view>

#include <partita/stablehlo/interface_names.hpp>
#include <partita/stablehlo/ops.hpp>

namespace partita::stablehlo_detail {

/// All ops that are written as composites. (Their shape rules check the attributes.)
inline constexpr const op_def* composites[] = {
    &def<op::abs>,
    &def<op::call>,
    &def<op::convolution>,
    &def<op::cumsum>,
    &def<op::fold>,
    &def<op::gather>,
    &def<op::random_bits>,
    &def<op::reduce_window>,
    &def<op::roll>,
    &def<op::scan>,
    &def<op::scatter>,
    &def<op::select_and_gather>,
    &def<op::select_and_scatter>,
    &def<op::sign>,
    &def<op::stop_gradient>,
    &def<op::tag>,
    &def<op::tiling>,
    &def<op::top_k>,
};
constexpr const op_def* composite_named(std::string_view name) {
  for (const op_def* each : composites)
    if (each->name == name) return each;
  return nullptr;
}
constexpr std::string_view name_of_composite(const op_text& o) {
  return o.quoted.empty() ? without_quotes(o.attribute("name")) : o.quoted;
}
constexpr bool is_composite_of_ours(const op_text& o) {
  return o.name.ends_with("composite") && name_of_composite(o).starts_with("partita.");
}
/// The op of this library that a composite claims to be.
struct composite_op {
  const op_def* what = nullptr;
  vec<std::int64_t> attrs;
  text label;
  tensor_type declared;
  vec<program> regions;

  constexpr vec<value_id> emit(builder& b, const vec<value_id>& operands) const {
    vec<value_id> made;
    vec<program> copies = regions;
    const value_id first =
        b.emit(*what, operands, attrs, declared, static_cast<vec<program>&&>(copies));
    if (first < 0) return made;
    if (!label.empty()) b.name_last(label.view());
    const op_node& n = b.p.ops.back();
    for (int r = 0; r < n.result_count; ++r) made.push_back(n.result + r);
    return made;
  }
  /// Returns a program that contains only this op, for operands of these types.
  constexpr program alone(const vec<tensor_type>& types) const {
    builder b;
    vec<value_id> operands;
    for (const auto& t : types) operands.push_back(ops::parameter(b, "", t));
    for (value_id v : emit(b, operands)) b.p.outputs.push_back({v, {}});
    return static_cast<program&&>(b.p);
  }
};
/// Reads the claim of a composite. `function` is the name of its decomposition; `named` returns the
/// program of a function.
template <class Named>
constexpr composite_op read_composite(syntax& in, const op_text& o, std::string_view function,
                                      const Named& named) {
  composite_op c;
  const std::string_view name = name_of_composite(o).substr(8);
  c.what = composite_named(name);
  if (c.what == nullptr) {
    in.fail(o.at, "H004", "composite \"partita.", short_name(name), "\" is not an op");
    return c;
  }
  for (std::string_view part : parts_of(inside(o.attribute("composite_attributes"), '{', '}'))) {
    const std::size_t equal = part.find('=');
    if (equal == std::string_view::npos) continue;
    const std::string_view value = part.substr(equal + 1);
    bool splat = false;
    std::string_view list = value;
    while (!list.empty() && is_space(list.front())) list.remove_prefix(1);
    if (part.starts_with("attributes") && !read_integers(list, c.attrs, splat))
      in.fail(o.at, "H005", "attributes of composite \"partita.", name, "\" are not numbers");
    if (part.starts_with("name")) c.label = unescaped(inside(value, '"', '"'));
  }
  if (c.what->id == def<op::call>.id)
    c.regions.push_back(named(function));
  else if (c.what->id == def<op::scan>.id)
    c.regions.push_back(named(concat(function, ".body").view()));
  if (!o.result_types.empty()) c.declared = o.result_types[0];
  return c;
}

}  // namespace partita::stablehlo_detail
