/// Composites that stand for ops of ours, see write_ops.hpp.
#pragma once

#include <string_view>

#include <partita/stablehlo/interface_names.hpp>
#include <partita/stablehlo/ops.hpp>

namespace partita::stablehlo_detail {

/// All that are written so. (The shape rules of these check their attributes.)
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
/// The op of ours that a composite stands for; `function` is what it is made of, `named` gives a
/// function's program.
template <class Named>
constexpr vec<value_id> restored(syntax& in, builder& b, const op_text& o,
                                 std::string_view function, const vec<value_id>& operands,
                                 const Named& named) {
  const std::string_view name = name_of_composite(o).substr(8);
  const op_def* what = composite_named(name);
  if (what == nullptr) {
    in.fail(o.at, "H004", "composite \"partita.", short_name(name), "\" is no op");
    return {};
  }
  vec<std::int64_t> attrs;
  text label;
  for (std::string_view part : parts_of(inside(o.attribute("composite_attributes"), '{', '}'))) {
    const std::size_t equal = part.find('=');
    if (equal == std::string_view::npos) continue;
    const std::string_view value = part.substr(equal + 1);
    bool splat = false;
    std::string_view list = value;
    while (!list.empty() && is_space(list.front())) list.remove_prefix(1);
    if (part.starts_with("attributes") && !read_integers(list, attrs, splat))
      in.fail(o.at, "H005", "attributes of composite \"partita.", name, "\" are no numbers");
    if (part.starts_with("name")) label = unescaped(inside(value, '"', '"'));
  }
  vec<program> regions;
  if (what->id == def<op::call>.id)
    regions.push_back(named(function));
  else if (what->id == def<op::scan>.id)
    regions.push_back(named(concat(function, ".body").view()));
  if (in.failed()) return {};
  const tensor_type declared = o.result_types.empty() ? tensor_type() : o.result_types[0];
  const value_id first =
      b.emit(*what, operands, attrs, declared, static_cast<vec<program>&&>(regions));
  vec<value_id> made;
  if (first < 0) return made;
  if (!label.empty()) b.name_last(label.view());
  const op_node& n = b.p.ops.back();
  for (int r = 0; r < n.result_count; ++r) made.push_back(n.result + r);
  return made;
}

}  // namespace partita::stablehlo_detail
