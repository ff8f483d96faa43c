/// Memory of a device over the course of the program, as SVG.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/memory_course.hpp>
#include <partita/ir/print.hpp>
#include <partita/report/scale.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/svg.hpp>

namespace partita {

namespace report_detail {

class memory_picture {
 public:
  constexpr memory_picture(const device_program& d, std::int64_t capacity)
      : p_(d.local), course_(d), peak_(peak_of(d, most_values)), capacity_(capacity) {
    // Drawing a capacity far above the peak would flatten the curve.
    draws_capacity_ = capacity > 0 && capacity / 2 <= peak_.bytes;
    const std::int64_t top = draws_capacity_ && capacity > peak_.bytes ? capacity : peak_.bytes;
    end_ = static_cast<double>(top < 1 ? 1 : top) * 1.04;
  }

  constexpr svg draw() {
    const value_names names(p_);
    head(names);
    if (course_.ops() == 0 || peak_.op < 0) return picture_;
    axes();
    stack();
    marks();
    legend();
    largest(names);
    return picture_;
  }

 private:
  static constexpr int most_values = 8, most_columns = 320;
  static constexpr double left_ = 74, top_ = 68, width_ = 620, height_ = 250;

  const program& p_;
  memory_course course_;
  memory_peak peak_;
  std::int64_t capacity_;
  bool draws_capacity_ = false;
  double end_ = 1;
  svg picture_;

  constexpr double y_of(std::int64_t bytes) const {
    return top_ + height_ * (1 - static_cast<double>(bytes) / end_);
  }
  constexpr double x_of(std::int64_t op) const {
    return left_ + width_ * static_cast<double>(op) / course_.ops();
  }
  constexpr text share(std::int64_t bytes) const {
    return percent_text(
        peak_.bytes > 0 ? static_cast<double>(bytes) / static_cast<double>(peak_.bytes) : 0);
  }

  constexpr void head(const value_names& names) {
    picture_.label(0, 14, concat("Peak of memory: ", bytes_text(peak_.bytes)), "head");
    text where;
    if (peak_.op >= 0) {
      const op_node& n = p_.op(peak_.op);
      where << "at op " << grouped(peak_.op + 1) << " of " << grouped(p_.op_count()) << ", while ";
      if (n.result_count > 0) where << '%' << shortened(names[n.result], 48) << " = ";
      where << n.def->name << " runs";
    }
    picture_.label(0, 30, where, "soft");
    if (capacity_ <= 0) return;
    const bool fits = peak_.bytes <= capacity_;
    text says = concat("the device has ", bytes_text(capacity_));
    if (fits)
      says << ": it fits, "
           << percent_text(static_cast<double>(peak_.bytes) / static_cast<double>(capacity_))
           << " are used";
    else
      says << ": it does not fit, " << bytes_text(peak_.bytes - capacity_) << " more are needed";
    picture_.label(0, 46, says, fits ? "soft" : "warn");
  }
  constexpr void axes() {
    picture_.rectangle({left_, top_, width_, height_}, {"lane"});
    const double step = binary_step(end_, 5);
    for (double v = 0; v <= end_; v += step) {
      const double y = top_ + height_ * (1 - v / end_);
      picture_.line(left_ - 4, y, left_ + width_, y);
      picture_.label(left_ - 8, y + 4,
                     v == 0 ? text("0") : round_text(bytes_text(static_cast<std::int64_t>(v))),
                     "small soft", svg::anchor::end);
    }
    const double ops = decimal_step(course_.ops(), 6);
    for (double v = 0; v <= course_.ops(); v += ops < 1 ? 1 : ops)
      picture_.label(x_of(static_cast<std::int64_t>(v)), top_ + height_ + 16,
                     grouped(static_cast<std::int64_t>(v)), "small soft", svg::anchor::middle);
    picture_.label(left_ + width_ / 2, top_ + height_ + 32, "ops of the device's program, in order",
                   "small soft", svg::anchor::middle);
  }
  /// The op with the most memory of each column of ops, so that the peak is drawn.
  constexpr vec<op_id> columns() const {
    const op_id ops = course_.ops(), count = ops < most_columns ? ops : most_columns;
    vec<op_id> list;
    for (std::int64_t c = 0; c < count; ++c) {
      const auto begin = static_cast<op_id>(c * ops / count),
                 end = static_cast<op_id>((c + 1) * ops / count);
      op_id most = begin;
      for (op_id o = begin; o < end; ++o)
        if (course_.all(o) > course_.all(most)) most = o;
      list.push_back(most);
    }
    return list;
  }
  constexpr void stack() {
    const vec<op_id> shown = columns();
    const int count = static_cast<int>(shown.size());
    vec<std::int64_t> below(shown.size(), 0), above;
    const auto layer = [&](std::string_view color, std::string_view name, const auto& bytes) {
      above = below;
      bool some = false;
      for (int c = 0; c < count; ++c) {
        const std::int64_t each = bytes(shown[c]);
        above[c] = saturating_add(above[c], each);
        some = some || each > 0;
      }
      if (some)
        picture_.area(2 * count, {"", color, name}, [&](int i, double& x, double& a, double& b) {
          const int c = i / 2;
          x = left_ + width_ * (c + i % 2) / count;
          a = y_of(above[c]);
          b = y_of(below[c]);
        });
      below = above;
    };
    for (int k = 0; k < memory_kinds; ++k) {
      const auto kind = static_cast<memory_kind>(k);
      layer(color_of(kind), name_of(kind), [&](op_id o) { return course_.of(kind, o); });
    }
    layer(nested_color, "of nested programs", [&](op_id o) { return course_.nested(o); });
  }
  constexpr void marks() {
    const double x = x_of(peak_.op) + width_ / course_.ops() / 2;
    picture_.line(x, top_ - 3, x, top_ + height_, "mark");
    picture_.label(x, top_ - 5, "peak", "small head", svg::anchor::middle);
    if (!draws_capacity_) return;
    const double limit = y_of(capacity_);
    picture_.line(left_, limit, left_ + width_, limit, "limit");
    picture_.label(left_ + width_ - 4, limit - 4, "memory of the device", "small warn",
                   svg::anchor::end);
  }
  constexpr void legend() {
    const double x = left_ + width_ + 46;
    double y = top_ + 12;
    picture_.label(x, y, "at the peak", "head");
    const auto row = [&](std::string_view color, std::string_view name, std::int64_t bytes) {
      if (bytes == 0) return;
      y += 20;
      picture_.rectangle({x, y - 10, 12, 12}, {"", color}, 2);
      picture_.label(x + 18, y, name, "small");
      picture_.label(x + 222, y, bytes_text(bytes), "small", svg::anchor::end);
      picture_.label(x + 272, y, share(bytes), "small soft", svg::anchor::end);
    };
    row(nested_color, "of nested programs", peak_.nested);
    for (int k = memory_kinds; k-- > 0;)
      row(color_of(static_cast<memory_kind>(k)), name_of(static_cast<memory_kind>(k)), peak_.of[k]);
    picture_.note(x + 273, y);
  }
  constexpr void largest(const value_names& names) {
    if (peak_.largest.empty()) return;
    double y = top_ + height_ + 60;
    picture_.label(0, y, "Largest values there", "head");
    for (const resident& r : peak_.largest) {
      y += 18;
      const text name = concat('%', names[r.value]), type = concat(p_.type(r.value));
      const std::string_view op = p_.op(p_.producer(r.value)).def->name;
      picture_.label(left_ - 8, y, bytes_text(r.bytes), "small", svg::anchor::end);
      picture_.rectangle({left_, y - 10, 12, 12}, {"", color_of(r.kind)}, 2);
      picture_.label(left_ + 20, y, shortened(name, 38), "code", svg::anchor::begin, name);
      picture_.label(left_ + 290, y, shortened(op, 18), "code soft", svg::anchor::begin, op);
      picture_.label(left_ + 420, y, shortened(type, 34), "code soft", svg::anchor::begin, type);
      picture_.label(left_ + width_ + 46, y, name_of(r.kind), "small");
    }
  }
};

}  // namespace report_detail

/// Draws the live memory of a device over the ops of its program, stacked by content (memory_kind),
/// with the peak, its contents, and its largest values. `capacity` is the memory of a device in
/// bytes, or 0 if unknown.
///
/// Cost      linear in ops; the size of the picture does not grow with them
constexpr text memory_svg(const device_program& d, std::int64_t capacity = 0) {
  return report_detail::memory_picture(d, capacity).draw().document("Memory over the program");
}

}  // namespace partita
