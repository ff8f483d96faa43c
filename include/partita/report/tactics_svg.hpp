/// Time, memory and collectives after each tactic, side by side, as SVG.
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>

#include <partita/cost/simulate.hpp>
#include <partita/report/scale.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/svg.hpp>
#include <partita/schedule/partition.hpp>

namespace partita {

namespace report_detail {

/// The figures of a program after one of its tactics.
struct tactic_figures {
  text name;
  int left_out = 0;  ///< if positive: the row replaces this number of tactics and has no figures
  partita::cost cost;
  partita::collectives collectives;
  int conflicts = 0;
  bool simulated = false;
  simulation in_turn, overlapped;

  constexpr tactic_figures() = default;
  constexpr tactic_figures(const partitioned& p, int tactic, const machine* on)
      : cost(p.cost), collectives(p.collectives) {
    name = "no tactic";
    if (tactic >= 0 && tactic < static_cast<int>(p.tactics.size())) {
      name = p.tactics[tactic].name;
      conflicts = p.tactics[tactic].conflicts;
    }
    if (on == nullptr || validate(*on, p.mesh())) return;
    simulated = true;
    in_turn = simulate(p.device, *on);
    overlapped = simulate(p.device, *on, {.overlap = true});
  }
};

/// Returns the figures after each tactic. If there are more than `most` tactics, it returns the
/// first ones and the last, with the number of tactics omitted between them.
///
/// Cost      for each tactic a propagation, a lowering and two simulations
template <std::same_as<partitioned> Partitioned>
constexpr vec<tactic_figures> figures_by_tactic(const Partitioned& p, const machine* on,
                                                int most = 16) {
  vec<tactic_figures> list;
  const int count = static_cast<int>(p.tactics.size());
  for (int t = 0; t + 1 < count; ++t) {
    if (count > most && t + 1 == most) {
      list.push_back({});
      list.back().left_out = count - most;
      break;
    }
    list.push_back({after(p, t), t, on});
  }
  list.push_back({p, count - 1, on});
  return list;
}

class tactics_picture {
 public:
  constexpr tactics_picture(const vec<tactic_figures>& rows, std::int64_t capacity)
      : rows_(rows), capacity_(capacity) {}

  constexpr svg draw() {
    double y = top_;
    for (const auto& r : rows_) {
      if (r.left_out > 0)
        picture_.label(0, y + 15, concat("and ", r.left_out, " more"), "small soft");
      else
        picture_.label(0, y + 15, shortened(r.name, 20), "", svg::anchor::begin, r.name);
      y += row_;
    }
    end_ = y;
    double x = 148;
    if (rows_.back().simulated) {
      time(x);
      x += panel_;
    }
    memory(x);
    sent(x += panel_);
    counts(x += panel_);
    return picture_;
  }

 private:
  static constexpr double top_ = 32, row_ = 26, panel_ = 218, bar_ = 124;
  static constexpr int kinds = 5;  ///< of collectives
  static constexpr std::string_view short_names[] = {"AG", "AR", "RS", "A2A", "P"};

  const vec<tactic_figures>& rows_;
  std::int64_t capacity_;
  svg picture_;
  double end_ = 0, legend_ = 0;

  /// Draws a panel. `bars(row, draw)` calls draw(value, colour, title) for the segments of a row's
  /// bar.
  template <class Total, class Words, class Bars>
  constexpr void panel(double x, std::string_view title, const Total& total, const Words& words,
                       const Bars& bars) {
    picture_.label(x, 14, title, "head");
    picture_.line(x, top_ - 6, x, end_ + 2);
    double most = 0;
    for (const auto& r : rows_)
      if (total(r) > most) most = total(r);
    double y = top_;
    for (const auto& r : rows_) {
      double at = x;
      const auto draw = [&](double value, std::string_view color, std::string_view part) {
        const double width = most > 0 ? bar_ * value / most : 0;
        if (width > 0) picture_.rectangle({at, y + 3, width, row_ - 10}, {"", color, part});
        at += width;
      };
      if (r.left_out == 0) {
        bars(r, draw);
        picture_.label(at + 6, y + 15, words(r), "small");
      }
      y += row_;
    }
    picture_.note(x + panel_ - 10, end_ + 34);
    legend_ = x;
  }
  constexpr void key(std::string_view color, std::string_view words) {
    picture_.rectangle({legend_, end_ + 12, 10, 10}, {"", color}, 2);
    picture_.label(legend_ + 14, end_ + 21, words, "small soft");
    legend_ += 24 + svg::width_of(words, 11);
  }
  constexpr void time(double x) {
    panel(
        x, "Time of a step, in turn", [](const auto& r) { return r.in_turn.time; },
        [](const auto& r) { return time_text(r.in_turn.time); },
        [](const auto& r, const auto& draw) {
          const double exposed = r.overlapped.exposed();
          draw(r.overlapped.compute, product_color,
               concat("kernels: ", time_text(r.overlapped.compute)));
          draw(exposed, exposed_color, concat("collectives that wait: ", time_text(exposed)));
          draw(r.in_turn.time - r.overlapped.time, hidden_color,
               concat("collectives beside kernels: ",
                      time_text(r.in_turn.time - r.overlapped.time)));
        });
    key(product_color, "kernels");
    key(exposed_color, "exposed");
    key(hidden_color, "hidden");
  }
  constexpr void memory(double x) {
    panel(
        x, "Peak of memory", [](const auto& r) { return static_cast<double>(r.cost.peak_bytes); },
        [](const auto& r) { return bytes_text(r.cost.peak_bytes); },
        [&](const auto& r, const auto& draw) {
          const bool fits = capacity_ == 0 || r.cost.peak_bytes <= capacity_;
          const double arguments = static_cast<double>(r.cost.argument_bytes);
          draw(arguments, "#4e79a7", concat("arguments: ", bytes_text(r.cost.argument_bytes)));
          draw(static_cast<double>(r.cost.peak_bytes) - arguments, "#f28e2b",
               concat("other values: ", bytes_text(r.cost.peak_bytes - r.cost.argument_bytes),
                      fits ? "" : "; it does not fit"));
        });
    key("#4e79a7", "arguments");
    key("#f28e2b", "other values");
  }
  constexpr void sent(double x) {
    panel(
        x, "Sent by a device",
        [](const auto& r) { return static_cast<double>(r.cost.collective_bytes); },
        [](const auto& r) { return bytes_text(r.cost.collective_bytes); },
        [](const auto& r, const auto& draw) {
          draw(static_cast<double>(r.cost.collective_bytes), "#76b7b2",
               concat(grouped(r.cost.collective_bytes), " bytes"));
        });
  }
  constexpr void counts(double x) {
    bool some[kinds] = {};
    panel(
        x, "Collectives", [](const auto& r) { return static_cast<double>(r.collectives.total()); },
        [](const auto& r) { return grouped(r.collectives.total()); },
        [&](const auto& r, const auto& draw) {
          const std::int64_t of[kinds] = {r.collectives.all_gather, r.collectives.all_reduce,
                                          r.collectives.reduce_scatter, r.collectives.all_to_all,
                                          r.collectives.permute};
          for (int k = 0; k < kinds; ++k) {
            const auto kind = static_cast<collective::kind_type>(k);
            some[k] = some[k] || of[k] > 0;
            draw(static_cast<double>(of[k]), color_of(kind),
                 concat(name_of(kind), ": ", grouped(of[k])));
          }
        });
    for (int k = 0; k < kinds; ++k)
      if (some[k]) key(color_of(static_cast<collective::kind_type>(k)), short_names[k]);
  }
};

}  // namespace report_detail

/// Draws a row for the program after each tactic: time of a step on a machine, peak memory, bytes
/// that a device sends, and collectives. If there are more than 16 tactics, the first ones and the
/// last are drawn.
///
/// Errors    those of the program, and D001 or D002 for an unusable machine, as the text "error: "
///           and the message
/// Cost      see print_simulation
template <std::same_as<partitioned> Partitioned>
constexpr text tactics_svg(const Partitioned& p, const machine& on) {
  failure f = p.error;
  if (!f) f = validate(on, p.mesh());
  if (f) return concat("error: ", f.message, '\n');
  const auto rows = report_detail::figures_by_tactic(p, &on);
  return report_detail::tactics_picture(rows, static_cast<std::int64_t>(on.device.memory))
      .draw()
      .document("Tactics side by side");
}
/// The same without times.
template <std::same_as<partitioned> Partitioned>
constexpr text tactics_svg(const Partitioned& p) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  const auto rows = report_detail::figures_by_tactic(p, nullptr);
  return report_detail::tactics_picture(rows, 0).draw().document("Tactics side by side");
}

}  // namespace partita
