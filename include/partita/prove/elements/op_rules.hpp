/// Executes single ops on one device.
#pragma once

#include <partita/op/microbatch.hpp>
#include <partita/prove/elements/elementwise.hpp>
#include <partita/prove/elements/folds.hpp>
#include <partita/prove/elements/lookups.hpp>
#include <partita/prove/elements/movement.hpp>
#include <partita/prove/elements/order.hpp>
#include <partita/spmd/collectives.hpp>

namespace partita::prove_detail::elements {

/// The elementwise implementation of an op.
struct rule {
  std::uint64_t op;
  void (*fill)(const op_elements&);
};
inline constexpr rule rules[] = {
    {def<op::constant>.id, &constant},
    {def<op::literal>.id, &literal},
    {def<op::iota>.id, &iota},
    {def<op::broadcast_in_dim>.id, &broadcast},
    {def<op::transpose>.id, &transpose},
    {def<op::reshape>.id, &same},
    {def<op::bitcast_convert>.id, &bitcast},
    {def<op::slice>.id, &slice},
    {def<op::reverse>.id, &reverse},
    {def<op::roll>.id, &roll},
    {def<op::pad>.id, &pad},
    {def<op::concatenate>.id, &concatenate},
    {def<op::dot_general>.id, &dot},
    {def<op::convolution>.id, &convolution},
    {def<op::reduce>.id,
     [](const op_elements& c) { op::reduce::with_position(c.attrs) ? extreme(c) : reduce(c); }},
    {def<op::reduce_window>.id, &reduce_window},
    {def<op::select_and_scatter>.id, &select_and_scatter},
    {def<op::select_and_gather>.id, &select_and_gather},
    {def<op::cumsum>.id, &cumulate},
    {def<op::gather>.id, &gather},
    {def<op::scatter>.id, [](const op_elements& c) { scatterer(c).fill(); }},
    {def<op::dynamic_slice>.id, &dynamic_slice},
    {def<op::dynamic_update_slice>.id, &dynamic_update_slice},
    {def<op::sort>.id, &sort},
    {def<op::top_k>.id, &top_k},
    {def<op::fold>.id, &fold},
};
constexpr const rule* rule_of(const op_def& d) {
  for (const rule& each : rules)
    if (each.op == d.id) return &each;
  return nullptr;
}
/// True if equal operands of an op without a rule give equal results: not if it has no operands,
/// or differs from run to run.
constexpr bool is_determined(const op_node& n) {
  const std::uint64_t id = n.def->id;
  if (n.def->elementwise || n.def->collective || id == def<op::shard_start>.id) return true;
  if (rule_of(*n.def) != nullptr) return true;
  return n.def->role == op_role::compute && n.operand_count > 0 &&
         id != def<op::microbatch_slice>.id && id != def<op::microbatch_sum>.id &&
         id != def<op::microbatch_stack>.id;
}

/// An op without a rule: a deterministic function of its operands, or of their slices along factors
/// that its tile map stacks.
class unknown_function {
 public:
  constexpr explicit unknown_function(const op_elements& c) : c_(c) {
    tile_map_context context(c.types, c.made[0], c.attrs.begin(), static_cast<int>(c.attrs.size()),
                             map_, static_cast<int>(c.made.size()));
    c.def.tile_map(context);
    for (int f = 0; f < map_.ops[0].count; ++f)
      if (is_used(map_.at(0, f))) {
        used_.push_back(&map_.at(0, f));
        slices_.extents[slices_.rank++] = used_.back()->size;
      }
  }
  constexpr void fill() const {
    drawing d = drawing_of(c_);
    for (auto each : c_.attrs) d.add(each);
    for (const auto& t : c_.made) d.add(static_cast<int>(t.element));
    for (int i = 0; i < static_cast<int>(c_.operands.size()); ++i)
      for (int k = 0; k < c_.shape_of(i).rank; ++k) d.add(is_sliced(i, k) ? 0 : c_.shape_of(i)[k]);
    const auto count = static_cast<std::size_t>(slices_.elements());
    vec<drawing> all(count, d);
    for (int i = 0; i < static_cast<int>(c_.operands.size()); ++i) {
      vec<drawing> of(count, drawing(1));
      for_each_place(c_.shape_of(i), [&](const place& at, std::int64_t n) {
        of.data()[slice_of(i, at)].add(c_.operands[i][n].of);
      });
      for_each_place(slices_, [&](place at, std::int64_t n) {
        for (int f = 0; f < slices_.rank; ++f)
          if (map_.dim_of(*used_[f], i) == no_dim) at[f] = 0;
        all.data()[n].add(of.data()[number_of(at, slices_)].drawn());
      });
      c_.a.steps += c_.shape_of(i).elements() + slices_.elements();
    }
    for (int r = 0; r < static_cast<int>(c_.made.size()); ++r)
      for_each_place(c_.made[r].shape, [&](const place& at, std::int64_t n) {
        drawing of(2);
        of.add(all.data()[slice_of(-1 - r, at)].drawn()).add(r);
        for (int k = 0; k < c_.made[r].shape.rank; ++k) of.add(is_sliced(-1 - r, k) ? 0 : at[k]);
        c_.results[r][n] = c_.a.unknown(c_.made[r].element, of.drawn());
      });
  }

 private:
  const op_elements& c_;
  factor_table map_;
  vec<const factor*> used_;
  shape slices_;  ///< the extents of the used factors

  /// (`end`: an operand, or -1 - r for result r.)
  constexpr bool is_used(const factor& f) const {
    bool used = is_plain_factor(f) && f.combine == combiner::stack;
    for (int end = -static_cast<int>(c_.made.size()); end < static_cast<int>(c_.types.size());
         ++end)
      if (const int d = map_.dim_of(f, end); d != no_dim)
        used = used && (end < 0 ? c_.made[-1 - end] : c_.types[end]).shape[d] == f.size;
      else
        used = used && end >= 0;
    return used;
  }
  constexpr bool is_sliced(int end, int dim) const {
    bool sliced = false;
    for (const factor* each : used_) sliced = sliced || map_.dim_of(*each, end) == dim;
    return sliced;
  }
  constexpr std::int64_t slice_of(int end, const place& at) const {
    place of;
    for (int f = 0; f < slices_.rank; ++f)
      if (const int d = map_.dim_of(*used_[f], end); d != no_dim) of[f] = at[d];
    return number_of(of, slices_);
  }
};
constexpr void compute(const op_elements& c) {
  if (c.def.elementwise) return elementwise_elements(c).fill();
  const rule* found = rule_of(c.def);
  found != nullptr ? found->fill(c) : unknown_function(c).fill();
}

}  // namespace partita::prove_detail::elements
