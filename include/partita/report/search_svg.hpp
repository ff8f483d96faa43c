/// The course of a search, as SVG.
#pragma once

#include <cmath>
#include <cstdint>
#include <string_view>

#include <partita/report/scale.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/svg.hpp>
#include <partita/schedule/search_course.hpp>

namespace partita {

namespace report_detail {

class search_picture {
 public:
  explicit search_picture(const search_course& r) : r_(r) {
    least_ = r.bound > 0 ? r.bound : r.after;
    most_ = r.bound > r.after ? r.bound : r.after;
    for (const auto& each : r.log) {
      if (each.cost > most_ && std::isfinite(each.cost)) most_ = each.cost;
      if (each.evaluations > end_) end_ = each.evaluations;
    }
    if (r.evaluations > end_) end_ = r.evaluations;
    if (!(most_ > 0) || !std::isfinite(most_)) most_ = 1;
    // A program that exceeds the memory costs far more than one that fits.
    logarithmic_ = least_ > 0 && most_ > 20 * least_;
  }

  svg draw() {
    head();
    axes();
    if (r_.bound > 0) {
      const double y = y_of(r_.bound);
      picture_.line(left_, y, left_ + width_, y, "limit");
      picture_.label(left_ + width_ + 8, y + 4, concat("bound ", seconds(r_.bound)), "small");
    }
    steps();
    return picture_;
  }

 private:
  static constexpr double left_ = 78, top_ = 48, width_ = 760, height_ = 240;

  const search_course& r_;
  double least_ = 0, most_ = 0;
  std::int64_t end_ = 1;
  bool logarithmic_ = false;
  svg picture_;

  double x_of(std::int64_t evaluations) const {
    return left_ + width_ * static_cast<double>(evaluations) / static_cast<double>(end_);
  }
  double y_of(double cost) const {
    if (!(cost < most_)) cost = most_;
    if (!logarithmic_) return top_ + height_ * (1 - 0.96 * cost / most_);
    if (cost < least_) cost = least_;
    return top_ + height_ * (0.96 - 0.9 * std::log(cost / least_) / std::log(most_ / least_));
  }
  static text seconds(double v) { return v > 0 ? time_text(v) : text("0 s"); }
  void head() {
    picture_.label(0, 14,
                   concat("Search: ", seconds(r_.before), " before, ", seconds(r_.after),
                          r_.after < r_.before ? " found" : "; nothing better was found"),
                   "head");
    text more =
        concat(grouped(r_.evaluations), " evaluations, ", grouped(r_.states), " partitionings");
    if (r_.seconds > 0) more << ", in " << seconds(r_.seconds);
    if (r_.bound > 0 && r_.after >= r_.bound)
      more << "; " << percent_text(r_.after / r_.bound - 1) << " above the bound";
    picture_.label(0, 30, more, "soft");
  }
  void axes() {
    picture_.rectangle({left_, top_, width_, height_}, {"lane"});
    const auto mark = [&](double cost) {
      const double y = y_of(cost);
      picture_.line(left_ - 4, y, left_ + width_, y);
      picture_.label(left_ - 8, y + 4, cost > 0 ? round_text(time_text(cost)) : text("0"),
                     "small soft", svg::anchor::end);
    };
    if (logarithmic_) {
      const int decades = static_cast<int>(std::log10(most_ / least_)) / 6 + 1;
      for (double v = std::pow(10, std::ceil(std::log10(least_))); v <= most_;
           v *= std::pow(10, decades))
        mark(v);
    } else {
      const double step = decimal_step(most_, 5);
      for (int i = 0; i * step <= most_; ++i) mark(i * step);
    }
    const double step = decimal_step(static_cast<double>(end_), 8);
    for (double v = 0; v <= static_cast<double>(end_); v += step < 1 ? 1 : step)
      picture_.label(x_of(static_cast<std::int64_t>(v)), top_ + height_ + 16,
                     grouped(static_cast<std::int64_t>(v)), "small soft", svg::anchor::middle);
    picture_.label(left_ + width_ / 2, top_ + height_ + 32,
                   "lowest estimated time of a step so far, by number of evaluations", "small soft",
                   svg::anchor::middle);
  }
  /// Draws the lowest cost so far, which is that of the latest improvement.
  void steps() {
    if (r_.log.empty()) return;
    double x = x_of(r_.log[0].evaluations), y = y_of(r_.log[0].cost);
    const auto to = [&](double next_x, double next_y) {
      if (next_x > x) picture_.rectangle({x, y - 1.5, next_x - x, 3}, {"", product_color});
      if (next_y != y)
        picture_.rectangle({next_x - 1.5, y < next_y ? y : next_y, 3, std::abs(next_y - y)},
                           {"", product_color});
      x = next_x;
      y = next_y;
    };
    for (const auto& each : r_.log) {
      to(x_of(each.evaluations), y_of(each.cost));
      picture_.rectangle(
          {x - 4, y - 4, 8, 8},
          {"", product_color,
           concat(seconds(each.cost), " after ", grouped(each.evaluations), " evaluations")},
          4);
    }
    to(left_ + width_, y);
    picture_.label(left_ + width_ + 8, y - 6, seconds(r_.log.back().cost), "small head");
    picture_.note(left_ + width_ + 110, y);
  }
};

}  // namespace report_detail

/// Draws the lowest estimated cost that a search had found over the number of evaluations, and the
/// lower bound for every partitioning along its axes. The title has the simulated times before and
/// after the search. If costs differ by more than a factor of 20 (exceeding the memory costs more),
/// the scale is logarithmic.
inline text search_svg(const search_course& r) {
  return report_detail::search_picture(r).draw().document("Course of a search");
}

}  // namespace partita
