/// The loops of products: the corresponding dimensions of operands and result.
#pragma once

#include <partita/op/convolution.hpp>
#include <partita/op/dot_general.hpp>
#include <partita/spmd/collectives.hpp>
#include <partita/support/vec.hpp>

namespace partita::spmd_detail {

/// The dimension that all axes slice, or no_dim.
constexpr int dim_of_all(const layout& axes) {
  const int d = axes.count > 0 ? int{axes[0].dim} : int{no_dim};
  for (const auto& e : axes)
    if (e.dim != d) return no_dim;
  return d;
}

/// The factors (see ir/tile_map.hpp) of one product at a time, which is a dot_general or a
/// convolution. For each factor it returns the corresponding dimension of operands 0 and 1 and of
/// the result.
class product_loops {
 public:
  /// The end that is the result; the others are operands 0 and 1.
  static constexpr int result = -1;

  constexpr explicit product_loops(const program& p) : p_(p) {}

  constexpr bool is_product(op_id o) const {
    const auto id = p_.op(o).def->id;
    return id == def<op::dot_general>.id || id == def<op::convolution>.id;
  }
  /// Selects a product. Cost: linear in its factors.
  constexpr void find(op_id o) {
    map_.clear();
    types_.clear();
    for (value_id v : p_.operands(o)) types_.push_back(p_.type(v));
    const auto attrs = p_.attrs(o);
    tile_map_context c(types_, p_.type(p_.op(o).result), attrs.data(),
                       static_cast<int>(attrs.size()), map_);
    p_.op(o).def->tile_map(c);
  }
  constexpr int count() const { return map_.ops[0].count; }
  constexpr int dim(int f, int end) const { return map_.dim_of(map_.at(0, f), end); }
  constexpr bool has(int f, int end) const { return dim(f, end) != no_dim; }
  constexpr bool sums(int f) const {
    return !has(f, result) && map_.at(0, f).combine == combiner::add;
  }
  /// The only factor of a dimension, if its blocks are those of the dimension, or -1.
  constexpr int factor_at(int end, int d) const {
    int found = -1;
    for (int f = 0; f < count(); ++f) {
      if (dim(f, end) != d) continue;
      if (found >= 0) return -1;
      found = f;
    }
    return found >= 0 && !map_.at(0, found).halo && !map_.at(0, found).offset ? found : -1;
  }
  constexpr bool alone(int f, int end) const { return factor_at(end, dim(f, end)) == f; }

 private:
  const program& p_;
  factor_table map_;
  vec<tensor_type> types_;
};

}  // namespace partita::spmd_detail
