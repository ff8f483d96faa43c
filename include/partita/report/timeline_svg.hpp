/// A simulated run of one device, as SVG.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/cost/simulate.hpp>
#include <partita/ir/print.hpp>
#include <partita/report/scale.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/svg.hpp>

namespace partita {

namespace report_detail {

/// The kind of an event of a timeline, with its colour.
struct timeline_kind {
  std::string_view name, color;
  friend constexpr bool operator==(const timeline_kind& a, const timeline_kind& b) {
    return a.name == b.name;
  }
};
constexpr timeline_kind kind_of(const program& p, op_id o) {
  const op_node& n = p.op(o);
  if (n.region_count > 0) return {"loops, branches, calls", nested_color};
  if (n.def->collective) {
    const auto kind = p.collective_of(o).kind;
    return {name_of(kind), color_of(kind)};
  }
  if (n.def->product != &no_product) return {"products", product_color};
  return {"other kernels", kernel_color};
}

/// Events of one program, in order of their start on each lane.
struct program_events {
  const program* p = nullptr;
  vec<simulated_op> list;
};

/// One lane of a timeline. Events too short to see are drawn together with their neighbours.
class lane {
 public:
  constexpr lane(svg& picture, const program& p, const value_names& names, const svg::box& place,
                 double seconds)
      : picture_(picture), p_(p), names_(names), place_(place), scale_(place.width / seconds) {}

  constexpr void take(const simulated_op& e) {
    const bool wide = (e.end - e.begin) * scale_ >= 3;
    if (count_ > 0 && (wide || (e.begin - end_) * scale_ > 2 || (end_ - begin_) * scale_ > 4))
      flush();
    if (count_++ == 0) begin_ = e.begin;
    end_ = e.end;
    last_ = e;
    add(kind_of(p_, e.op), e.end - e.begin);
    if (wide) flush();
  }
  constexpr void flush() {
    if (count_ == 0) return;
    const share* most = &shares_[0];
    for (const share& s : shares_)
      if (s.seconds > most->seconds) most = &s;
    const double x = place_.x + begin_ * scale_, width = (end_ - begin_) * scale_;
    picture_.rectangle({x, place_.y, width < 0.5 ? 0.5 : width, place_.height},
                       {"", most->kind.color, title(most->kind.name)});
    count_ = 0;
    shares_.clear();
  }

 private:
  struct share {
    timeline_kind kind;
    double seconds = 0;
  };
  svg& picture_;
  const program& p_;
  const value_names& names_;
  svg::box place_;
  double scale_, begin_ = 0, end_ = 0;
  int count_ = 0;
  simulated_op last_;
  vec<share> shares_;

  constexpr void add(const timeline_kind& k, double seconds) {
    for (share& s : shares_)
      if (s.kind == k) {
        s.seconds += seconds;
        return;
      }
    shares_.push_back({k, seconds});
  }
  constexpr text title(std::string_view kind) const {
    if (count_ > 1)
      return concat(count_, " ops, ", time_text(end_ - begin_), ", most of it ", kind);
    const op_node& n = p_.op(last_.op);
    text out = n.def->name;
    if (n.result_count > 0)
      out << " %" << shortened(names_[n.result], 60) << " : "
          << shortened(concat(p_.type(n.result)), 40);
    return out << ", " << time_text(last_.end - last_.begin);
  }
};

class timeline_picture {
 public:
  constexpr timeline_picture(const device_program& d, const machine& on,
                             const simulation_options& options)
      : d_(d), on_(on), options_(options) {
    all_ = simulate(d, on, options, [&](const program& p, const simulated_op& e) { note(p, e); });
  }
  constexpr const failure& error() const { return all_.error; }

  constexpr svg draw() {
    head();
    const value_names names(d_.local);
    section(d_.local, names, all_.time, 0);
    legend();
    return picture_;
  }

 private:
  static constexpr double left_ = 96, width_ = 880, lane_ = 26;
  static constexpr int most_depth = 3;

  const device_program& d_;
  const machine& on_;
  simulation_options options_;
  simulation all_;
  vec<program_events> events_;
  vec<timeline_kind> kinds_;
  svg picture_;
  double y_ = 0;

  /// (The events of a program are contiguous, since its nested programs run to completion first.)
  constexpr void note(const program& p, const simulated_op& e) {
    if (events_.empty() || events_.back().p != &p) events_.push_back({&p, {}});
    events_.back().list.push_back(e);
  }
  constexpr const vec<simulated_op>* events_of(const program& p) const {
    for (const auto& each : events_)
      if (each.p == &p) return &each.list;
    return nullptr;
  }

  constexpr void head() {
    picture_.label(0, 14, concat("One step: ", time_text(all_.time)), "head");
    text out = concat("on ", d_.mesh.whole(), " of ", on_.device.name(), "; kernels ",
                      time_text(all_.compute), ", collectives ", time_text(all_.communication));
    if (options_.overlap && all_.communication > 0)
      out << ", " << time_text(all_.exposed()) << " of it exposed";
    if (all_.mfu() > 0) out << "; MFU " << percent_text(all_.mfu());
    picture_.label(0, 30, out, "soft");
    y_ = 44;
  }
  /// Draws the lanes of a program. `inputs` are known values of the program's inputs.
  constexpr void section(const program& p, const value_names& names, double seconds, int depth,
                         span<const known_integer> inputs = {}) {
    const auto* events = events_of(p);
    if (events == nullptr || !(seconds > 0)) return;
    double y = y_;
    for (const bool link : {false, true}) {
      const svg::box place{left_, y, width_, lane_};
      picture_.rectangle(place, {"lane"});
      picture_.label(left_ - 8, y + 17, link ? "collectives" : "kernels", "small",
                     svg::anchor::end);
      lane l(picture_, p, names, place, seconds);
      for (const auto& e : *events)
        if (e.communicates == link) {
          l.take(e);
          remember(kind_of(p, e.op));
        }
      l.flush();
      y += lane_ + 4;
    }
    axis(y, seconds);
    y_ = y + 34;
    inside(p, names, *events, seconds, depth, inputs);
  }
  constexpr void axis(double y, double seconds) {
    const double step = decimal_step(seconds, 8);
    for (double t = 0; t <= seconds * 1.0001; t += step) {
      const double x = left_ + width_ * t / seconds;
      picture_.line(x, y - 4, x, y + 2);
      picture_.label(x, y + 14, t == 0 ? text("0") : round_text(time_text(t)), "small soft",
                     svg::anchor::middle);
    }
    picture_.note(left_ + width_ + 24, y + 16);
  }
  /// Draws one trip of a loop that takes at least a quarter of the time, with its longest op.
  constexpr void inside(const program& p, const value_names& names, const vec<simulated_op>& events,
                        double seconds, int depth, span<const known_integer> inputs) {
    const simulated_op* longest = nullptr;
    for (const auto& e : events)
      if (p.op(e.op).region_count > 0 &&
          (longest == nullptr || e.end - e.begin > longest->end - longest->begin))
        longest = &e;
    if (longest == nullptr || longest->end - longest->begin < seconds / 4 ||
        depth + 1 >= most_depth)
      return;
    const op_node& n = p.op(longest->op);
    int region = -1;
    double most = 0;
    for (int r = 0; r < n.region_count; ++r) {
      const double each = time_of(p.region(longest->op, r));
      if (each > most) {
        most = each;
        region = r;
      }
    }
    if (region < 0) return;
    const program& body = p.region(longest->op, region);
    wire_list list;
    list.inputs = inputs;
    n.def->wires(p, longest->op, list);
    text what = list.branches        ? text("The longest branch of ")
                : list.unknown_trips ? text("One of an unknown number of trips of ")
                : list.trips > 1     ? concat("One of ", grouped(list.trips), " trips of ")
                                     : text("One run of ");
    if (n.result_count > 0) what << '%' << shortened(names[n.result], 48) << " = ";
    picture_.label(0, y_, what << n.def->name << ": " << time_text(most), "head");
    y_ += 12;
    section(body, value_names(body, names.last_number(), d_.local.labels), most, depth + 1,
            known_inputs(p, longest->op, region, list));
  }
  constexpr double time_of(const program& p) const {
    double end = 0;
    if (const auto* events = events_of(p))
      for (const auto& e : *events) end = e.end > end ? e.end : end;
    return end;
  }
  constexpr void remember(const timeline_kind& k) {
    for (const auto& each : kinds_)
      if (each == k) return;
    kinds_.push_back(k);
  }
  constexpr void legend() {
    double x = left_;
    for (const auto& k : kinds_) {
      picture_.rectangle({x, y_ - 10, 12, 12}, {"", k.color}, 2);
      picture_.label(x + 18, y_, k.name, "small");
      x += 34 + svg::width_of(k.name, 11);
    }
  }
};

}  // namespace report_detail

/// Draws the kernels and the collectives of a device over the time of a step, on two lanes. For a
/// loop that takes most of the step, one trip is drawn below. Ops shorter than a few pixels are
/// drawn together, in the colour of the kind that takes most of their time.
///
/// Errors    D001, D002, as the text "error: " and the message
/// Cost      linear in ops; the size of the picture does not grow with them
constexpr text timeline_svg(const device_program& d, const machine& on,
                            const simulation_options& options = {.overlap = true}) {
  report_detail::timeline_picture picture(d, on, options);
  if (picture.error()) return concat("error: ", picture.error().message, '\n');
  return picture.draw().document("Timeline of one step");
}

}  // namespace partita
