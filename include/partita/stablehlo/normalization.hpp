/// Batch normalization, as arithmetic and reductions.
///
/// Source    the StableHLO specification, version 1.0
#pragma once

#include <partita/stablehlo/op_context.hpp>

namespace partita::stablehlo_detail {

/// The attributes and numbers that all three ops share.
class batch_norm {
 public:
  constexpr explicit batch_norm(op_context& c) : b_(c.b) {
    feature_ = c.dimension(c.needed("feature_index"));
    const double epsilon = c.real("epsilon");
    if (c.failed()) return;
    x_ = c.x(0);
    const tensor_type t = c.type(0);
    if (!is_floating(t.element)) {
      c.fail("H013", "operand of type ", t, "; floating-point numbers are supported");
      return;
    }
    if (feature_ >= t.shape.rank) {
      c.fail("H005", "feature_index = ", feature_, " of ", t);
      return;
    }
    for (std::size_t i = 1; i < c.operands.size(); ++i) {
      const shape wanted =
          i == 4 && c.o.name.ends_with("grad") ? t.shape : shape{t.shape[feature_]};
      if (same_shape(c.type(i).shape, wanted)) continue;
      c.fail("H007", "operand ", i, " is ", c.type(i), "; its shape must be ", wanted);
      return;
    }
    count_ = t.shape[feature_] == 0 ? 0 : t.shape.elements() / t.shape[feature_];
    epsilon_ = ops::scalar(b_, t.element, epsilon);
    for (int d = 0; d < t.shape.rank; ++d)
      if (d != feature_) others_.push_back(d);
  }

  /// Repeats one number per feature, so that each element has one.
  constexpr value_id spread(value_id v) const {
    const std::int64_t dims[] = {feature_};
    return ops::broadcast_in_dim(b_, v, b_.type(x_).shape, dims);
  }
  constexpr value_id sum(value_id v) const {
    return others_.empty() ? v : ops::reduce(b_, v, combiner::add, as_ints(others_));
  }
  constexpr value_id count() const {
    return ops::scalar(b_, b_.type(x_).element, static_cast<double>(count_));
  }
  constexpr value_id mean(value_id v) const { return ops::divide(b_, sum(v), count()); }
  constexpr value_id centered(value_id mean) const { return ops::subtract(b_, x_, spread(mean)); }
  constexpr value_id with_epsilon(value_id variance) const {
    return ops::add(b_, variance, epsilon_);
  }
  constexpr value_id deviation(value_id variance) const {
    return ops::sqrt(b_, with_epsilon(variance));
  }
  constexpr value_id normalized(value_id mean, value_id variance) const {
    return ops::divide(b_, centered(mean), spread(deviation(variance)));
  }

 private:
  builder& b_;
  int feature_ = 0;
  std::int64_t count_ = 0;
  value_id x_ = -1, epsilon_ = -1;
  vec<std::int64_t> others_;
};

/// scale (x - mean) / sqrt(variance + epsilon) + offset
constexpr void read_batch_norm_inference(op_context& c) {
  if (!c.count(5)) return;
  const batch_norm n(c);
  if (c.failed()) return;
  const value_id scaled = ops::multiply(c.b, n.normalized(c.x(3), c.x(4)), n.spread(c.x(1)));
  c.give(ops::add(c.b, scaled, n.spread(c.x(2))));
}
/// The same with mean and variance of the batch, which are also results.
constexpr void read_batch_norm_training(op_context& c) {
  if (!c.count(3)) return;
  const batch_norm n(c);
  if (c.failed()) return;
  const value_id mean = n.mean(c.x(0)), centered = n.centered(mean);
  const value_id variance = n.mean(ops::multiply(c.b, centered, centered));
  const value_id scaled = ops::multiply(c.b, n.normalized(mean, variance), n.spread(c.x(1)));
  c.give(ops::add(c.b, scaled, n.spread(c.x(2))));
  c.give(mean);
  c.give(variance);
}
/// Gradients of the operand, the scale and the offset. The operands are operand, scale, mean,
/// variance and the gradient g of the result. The results are scale / (n sqrt(variance + epsilon))
/// (n g - sum g - (x - mean) sum(g (x - mean)) / (variance + epsilon)), sum(g normalized), sum g.
constexpr void read_batch_norm_grad(op_context& c) {
  if (!c.count(5)) return;
  const batch_norm n(c);
  if (c.failed()) return;
  builder& b = c.b;
  const value_id g = c.x(4), mean = c.x(2), variance = c.x(3);
  const value_id centered = n.centered(mean), sum = n.sum(g);
  const value_id along = n.sum(ops::multiply(b, g, centered));
  const value_id removed = ops::divide(b, ops::multiply(b, n.spread(along), centered),
                                       n.spread(n.with_epsilon(variance)));
  const value_id rest =
      ops::subtract(b, ops::subtract(b, ops::multiply(b, g, n.count()), n.spread(sum)), removed);
  const value_id factor = ops::divide(b, ops::divide(b, c.x(1), n.deviation(variance)), n.count());
  c.give(ops::multiply(b, n.spread(factor), rest));
  c.give(n.sum(ops::multiply(b, g, n.normalized(mean, variance))));
  c.give(sum);
}

}  // namespace partita::stablehlo_detail
