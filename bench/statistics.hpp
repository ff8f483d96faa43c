/// Statistics of how well predictions fit measurements.
#pragma once

#include <cmath>
#include <cstddef>
#include <vector>

namespace bench {

/// Returns the rank of each value; equal values share their mean rank.
inline std::vector<double> ranks(const std::vector<double>& v) {
  std::vector<double> r(v.size());
  for (std::size_t i = 0; i < v.size(); ++i)
    for (double other : v) r[i] += other < v[i] ? 1 : other == v[i] ? 0.5 : 0;
  return r;
}
/// Returns the correlation of the ranks, from -1 to 1, or 0 if either list is constant.
inline double spearman(const std::vector<double>& a, const std::vector<double>& b) {
  const auto x = ranks(a), y = ranks(b);
  double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
  for (std::size_t i = 0; i < x.size(); ++i)
    mx += x[i] / static_cast<double>(x.size()), my += y[i] / static_cast<double>(x.size());
  for (std::size_t i = 0; i < x.size(); ++i) {
    xy += (x[i] - mx) * (y[i] - my);
    xx += (x[i] - mx) * (x[i] - mx);
    yy += (y[i] - my) * (y[i] - my);
  }
  return xx > 0 && yy > 0 ? xy / std::sqrt(xx * yy) : 0;
}
/// Returns the mean of |predicted / measured - 1|.
inline double mean_error(const std::vector<double>& predicted,
                         const std::vector<double>& measured) {
  double sum = 0;
  for (std::size_t i = 0; i < predicted.size(); ++i)
    sum += std::abs(predicted[i] / measured[i] - 1);
  return predicted.empty() ? 0 : sum / static_cast<double>(predicted.size());
}

}  // namespace bench
