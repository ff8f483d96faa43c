/// The timeline of a pipeline as text, with one row per mesh.
#pragma once

#include <cstddef>
#include <string_view>

#include <partita/mpmd/timeline.hpp>
#include <partita/support/span.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace report_detail {

/// The number of columns per second that lets every call show its name.
constexpr double columns_per_second(const call_graph& g, const mesh_lists& lists,
                                    const timeline& t) {
  double wanted = 0;
  for (const auto& list : lists.meshes)
    for (const mesh_step& s : list) {
      if (s.kind != mesh_step::call) continue;
      const double seconds = t.end[s.index] - t.begin[s.index];
      const double size = static_cast<double>(call_text(g.calls[s.index], g.with_stage).size()) + 1;
      if (seconds > 0 && size / seconds > wanted) wanted = size / seconds;
    }
  return wanted;
}

/// A row of a timeline.
class timeline_row {
 public:
  constexpr timeline_row(text& out, double scale) : out_(out), scale_(scale) {}

  /// Prints the name of a call at its start time.
  constexpr void name(std::string_view call, double begin) {
    go_to(column(begin));
    out_ << call;
    at_ += call.size();
  }
  /// Repeats a letter for the duration of a call.
  constexpr void fill(char letter, double begin, double end) {
    go_to(column(begin));
    for (const std::size_t last = column(end); at_ < last; ++at_) out_ << letter;
  }

 private:
  text& out_;
  double scale_;
  std::size_t at_ = 0;

  constexpr std::size_t column(double seconds) const {
    return static_cast<std::size_t>(seconds * scale_ + 1e-6);
  }
  constexpr void go_to(std::size_t column) {
    for (; at_ < column; ++at_) out_ << ' ';
  }
};

}  // namespace report_detail

/// Prints one row per mesh, with time to the right. The name of a call starts at the call's start
/// time.
///
///     m0 | F0 F1 F2       B0    B1    B2
///     m1 |    F0 F1    B0 F2 B1    B2
///     m2 |       F0 B0 F1 B1 F2 B2
///
/// If names need more than `width` columns, each call is drawn as its letter for its duration
/// (`FFFFBBBB`), and calls shorter than a column are invisible. `names` are those of the meshes; by
/// default their numbers are used.
constexpr text print_timeline(const call_graph& g, const mesh_lists& lists, const timeline& t,
                              span<const std::string_view> names = {}, int width = 200) {
  double scale = report_detail::columns_per_second(g, lists, t);
  const bool named = scale * t.total <= width;
  if (!named) scale = width / t.total;
  const int meshes = static_cast<int>(lists.meshes.size());
  const auto head = [&](int m) { return names.empty() ? concat('m', m) : text(names[m]); };
  std::size_t widest = 0;
  for (int m = 0; m < meshes; ++m)
    if (head(m).size() > widest) widest = head(m).size();
  text out;
  for (int m = 0; m < meshes; ++m) {
    const text h = head(m);
    out << h;
    for (std::size_t i = h.size(); i < widest; ++i) out << ' ';
    out << " | ";
    report_detail::timeline_row row(out, scale);
    for (const mesh_step& s : lists.meshes[m]) {
      if (s.kind != mesh_step::call) continue;
      const text name = call_text(g.calls[s.index], g.with_stage);
      if (named)
        row.name(name, t.begin[s.index]);
      else
        row.fill(name.view()[0], t.begin[s.index], t.end[s.index]);
    }
    out << '\n';
  }
  return out;
}

}  // namespace partita
