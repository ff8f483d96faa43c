/// The timeline of a pipeline, as SVG: one row per mesh.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/pipeline_time.hpp>
#include <partita/mpmd/timeline.hpp>
#include <partita/report/pipeline_look.hpp>
#include <partita/report/scale.hpp>
#include <partita/report/svg.hpp>
#include <partita/support/merge_sort.hpp>

namespace partita {

namespace report_detail {

/// The kind and colour of a box in a row.
struct box_look {
  int kind = 0;
  std::string_view color;
};

/// A row of boxes over time that do not overlap. Boxes too narrow to see are merged with their
/// neighbours: each kind is drawn as high as its share of the merged time, and blank space is a
/// bubble.
class box_lane {
 public:
  constexpr box_lane(svg& picture, const svg::box& place, double total)
      : picture_(picture), place_(place), scale_(place.width / total) {
    picture.rectangle(place, {"lane"});
  }
  bool merged = false;

  /// Adds a box. `labels` are candidate labels, longest first.
  template <class Title>
  constexpr void take(const box_look& l, double begin, double end, span<const text> labels,
                      const Title& title) {
    if (begin < reached_) begin = reached_;  // (of several links, the first one that is free)
    if (end <= begin) return;
    reached_ = end;
    if ((end - begin) * scale_ >= narrow) {
      flush();
      return draw(l, begin, end, labels, title());
    }
    if (count_ > 0 && ((begin - end_) * scale_ > narrow / 2 || (end_ - begin_) * scale_ > narrow))
      flush();
    if (count_++ == 0) {
      begin_ = begin;
      title_ = title();
    }
    end_ = end;
    add(l, end - begin);
  }
  constexpr void flush() {
    if (count_ == 0) return;
    const double x = place_.x + begin_ * scale_, wide = (end_ - begin_) * scale_,
                 width = wide < 0.5 ? 0.5 : wide;
    double bottom = place_.y + place_.height;
    const text words = count_ == 1 ? title_ : shared_title();
    for (const share& s : shares_) {
      const double height = place_.height * s.time / (end_ - begin_);
      bottom -= height;
      picture_.rectangle({x, bottom, width, height}, {"", s.look.color, words});
    }
    if (count_ > 1) merged = true;
    count_ = 0;
    shares_.clear();
  }

 private:
  struct share {
    box_look look;
    double time = 0;
  };
  static constexpr double narrow = 4;  ///< pixels
  svg& picture_;
  svg::box place_;
  double scale_, begin_ = 0, end_ = 0, reached_ = 0;
  int count_ = 0;
  text title_;
  vec<share> shares_;

  constexpr void draw(const box_look& l, double begin, double end, span<const text> labels,
                      std::string_view title) {
    const double x = place_.x + begin * scale_, width = (end - begin) * scale_;
    const double gap = width > 8 ? 1 : 0.5;  // to the next box
    picture_.rectangle({x, place_.y, width - gap, place_.height}, {"", l.color, title});
    for (const text& each : labels) {
      if (svg::width_of(each, 11) + 3 > width) continue;
      picture_.label(x + (width - gap) / 2, place_.y + place_.height / 2 + 4, each, "on small",
                     svg::anchor::middle, title);
      return;
    }
  }
  constexpr void add(const box_look& l, double time) {
    for (share& s : shares_)
      if (s.look.kind == l.kind && s.look.color == l.color) {
        s.time += time;
        return;
      }
    std::size_t at = shares_.size();
    shares_.push_back({l, time});
    for (; at > 0 && l.kind < shares_[at - 1].look.kind; --at) shares_[at] = shares_[at - 1];
    shares_[at] = {l, time};
  }
  constexpr text shared_title() const {
    double busy = 0;
    for (const share& s : shares_) busy += s.time;
    return concat(count_, " in sequence, busy ", percent_text(busy / (end_ - begin_)));
  }
};

class pipeline_drawer {
 public:
  constexpr pipeline_drawer(const call_graph& g, const mesh_lists& lists, const timeline& t,
                            const pipeline_view& view)
      : g_(g), lists_(lists), t_(t), view_(view), rounds_(rounds_of_stages(g)) {}

  constexpr svg draw() {
    find_sends();
    head();
    if (!(t_.total > 0)) return static_cast<svg&&>(picture_);
    for (int m = 0; m < static_cast<int>(lists_.meshes.size()); ++m) row(m);
    axis();
    legend();
    return static_cast<svg&&>(picture_);
  }

 private:
  static constexpr double left_ = 96, width_ = 880, lane_ = 24, link_ = 5;
  static constexpr box_look onward{0, "#e8a33d"}, back{1, "#d1605e"};

  const call_graph& g_;
  const mesh_lists& lists_;
  const timeline& t_;
  pipeline_view view_;
  vec<int> rounds_;
  svg picture_;
  double y_ = 0;
  bool drawn_[call_look_count] = {}, second_[call_look_count] = {}, sent_[2] = {}, merged_ = false,
       sends_ = false;
  vec<vec<int>> sent_by_;  ///< by mesh: messages in order of time

  constexpr text name(int mesh) const { return mesh_name(mesh, view_); }
  constexpr text time(double v) const { return view_time(v, view_); }
  constexpr int target(const message& m) const { return g_.calls[m.user].mesh; }

  constexpr void find_sends() {
    vec<int> all;
    for (int i = 0; i < static_cast<int>(lists_.messages.size()); ++i)
      if (t_.arrived[i] > t_.sent[i]) all.push_back(i);
    sends_ = !all.empty();
    merge_sort(all, [&](int a, int b) { return t_.sent[a] < t_.sent[b]; });
    sent_by_.resize(lists_.meshes.size(), {});
    for (const int i : all) sent_by_[g_.calls[lists_.messages[i].call].mesh].push_back(i);
  }
  constexpr void head() {
    picture_.label(0, 14, concat("One step: ", time(t_.total)), "head");
    const int meshes = static_cast<int>(lists_.meshes.size()), n = microbatches_of(g_);
    text out = concat(meshes, meshes == 1 ? " mesh, " : " meshes, ", n,
                      n == 1 ? " microbatch; " : " microbatches; ");
    if (t_.total > 0)
      out << "bubble " << percent_text(t_.bubble_of_total()) << " of the time, "
          << percent_text(t_.bubble_of_ideal()) << " of the ideal " << time(t_.ideal());
    else
      out << "the calls take no time";
    picture_.label(0, 30, out, "soft");
    if (t_.total > 0) picture_.label(left_ + width_ + 8, 30, "busy", "small soft");
    y_ = 44;
  }

  // ---- Rows -------------------------------------------------------------------------------------

  constexpr void row(int m) {
    const text whole = name(m);
    picture_.label(left_ - 8, y_ + 16, shortened(whole, 13), "small", svg::anchor::end, whole);
    const text busy = percent_text(t_.busy[m] / t_.total);
    picture_.label(left_ + width_ + 8, y_ + 16, busy, "small soft", svg::anchor::begin,
                   "of the time spent in calls");
    calls(m);
    y_ += lane_ + 1;
    if (sends_)
      for (const bool up : {true, false}) messages(m, up);
    y_ += 6;
  }
  constexpr void calls(int m) {
    box_lane lane(picture_, {left_, y_, width_, lane_}, t_.total);
    for (const mesh_step& s : lists_.meshes[m]) {
      if (s.kind != mesh_step::call) continue;
      const fragment_call& c = g_.calls[s.index];
      const text labels[] = {label(c, true), label(c, false)};
      lane.take(look(c), t_.begin[s.index], t_.end[s.index], labels,
                [&] { return call_title(s.index); });
    }
    lane.flush();
    merged_ = merged_ || lane.merged;
  }
  constexpr box_look look(const fragment_call& c) {
    const int kind = kind_of(c);
    const bool second = c.ordered() && c.stage >= 0 && rounds_[c.stage] % 2 == 1;
    (second ? second_ : drawn_)[kind] = true;
    return {kind, call_looks[kind].colors[second ? 1 : 0]};
  }
  constexpr text label(const fragment_call& c, bool whole) const {
    if (!c.ordered()) return {};
    return whole && g_.with_stage ? concat(c.microbatch, '.', c.stage) : concat(c.microbatch);
  }
  constexpr text call_title(int call) const {
    return concat(call_text(g_.calls[call], true), " on ", name(g_.calls[call].mesh), ": ",
                  time(t_.end[call] - t_.begin[call]), " from ", time(t_.begin[call]), " on");
  }
  /// Draws the messages of mesh `m` to meshes with higher numbers (`up`) or with lower ones.
  constexpr void messages(int m, bool up) {
    box_lane lane(picture_, {left_, y_, width_, link_}, t_.total);
    for (const int i : sent_by_[m]) {
      const message& each = lists_.messages[i];
      if ((target(each) > m) != up) continue;
      sent_[up ? 0 : 1] = true;
      lane.take(up ? onward : back, t_.sent[i], t_.arrived[i], {}, [&] {
        return concat("result of ", call_text(g_.calls[each.call], true), " to ",
                      name(target(each)), ": ", time(t_.arrived[i] - t_.sent[i]), " from ",
                      time(t_.sent[i]), " on");
      });
    }
    lane.flush();
    y_ += link_ + 1;
  }

  // ---- Below the rows ---------------------------------------------------------------------------

  constexpr void axis() {
    const double step = decimal_step(t_.total, 8);
    y_ += 2;
    for (int i = 0; i * step <= t_.total * 1.0001; ++i) {
      const double x = left_ + width_ * (i * step) / t_.total;
      picture_.line(x, y_ - 4, x, y_ + 2);
      const text mark = view_.seconds ? round_text(time_text(i * step)) : three_digits(i * step);
      picture_.label(x, y_ + 14, i == 0 ? text("0") : mark, "small soft", svg::anchor::middle);
    }
    picture_.note(left_ + width_ + 56, y_ + 16);
    y_ += 36;
  }
  constexpr void legend() {
    double x = left_;
    const auto entry = [&](std::string_view color, std::string_view words) {
      if (x + 18 + svg::width_of(words, 11) > left_ + width_) {
        x = left_;
        y_ += 20;
      }
      picture_.rectangle({x, y_ - 10, 12, 12}, {"", color}, 2);
      picture_.label(x + 18, y_, words, "small");
      x += 34 + svg::width_of(words, 11);
    };
    for (int k = 0; k < call_look_count; ++k)
      for (const bool second : {false, true})
        if ((second ? second_ : drawn_)[k])
          entry(call_looks[k].colors[second ? 1 : 0],
                second ? concat(call_looks[k].name, ", next stage") : text(call_looks[k].name));
    if (sent_[0]) entry(onward.color, "sent to a later mesh");
    if (sent_[1]) entry(back.color, "sent to an earlier mesh");
    if (!merged_) return;
    y_ += 20;
    picture_.label(
        left_, y_,
        "Calls too short to see are drawn together, each kind as high as its share of the "
        "time.",
        "small soft");
  }
};

}  // namespace report_detail

/// Draws one row per mesh, with time to the right. Each call is a box with the number of its
/// microbatch, coloured by kind (forward, backward, gradients of weights; darker for a second stage
/// on the mesh). The messages that the mesh sends are below the calls. The picture also states the
/// bubble and the fraction of the time that each mesh is busy. Calls shorter than a few pixels are
/// drawn together.
///
/// Errors    a deadlock, as the text "error: " and the message
/// Cost      linear in calls, except for sorting messages; the size of the picture does not grow
///           with them
constexpr text pipeline_svg(const call_graph& g, const mesh_lists& lists, const timeline& t,
                            const pipeline_view& view = {}) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  return report_detail::pipeline_drawer(g, lists, t, view)
      .draw()
      .document("Timeline of a pipeline");
}
/// The same for a simulated pipeline.
constexpr text pipeline_svg(const pipelined& p, const pipeline_time& t) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  const vec<std::string_view> names = p.topology.names();
  return pipeline_svg(p.calls, t.lists, t.times, {.names = names});
}

}  // namespace partita
