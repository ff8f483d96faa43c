/// Pictures as SVG.
#pragma once

#include <string_view>

#include <partita/report/markup.hpp>
#include <partita/support/text.hpp>

namespace partita {

namespace report_detail {

/// The colours of the element classes, in light and in dark mode. (Not every program that shows SVG
/// supports CSS variables.)
inline constexpr std::string_view picture_style =
    ".p text{font:12px system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif;fill:#1f2328}"
    ".p .soft{fill:#59636e}.p .small{font-size:11px}.p .head{font-weight:600}"
    ".p .code{font-family:ui-monospace,'DejaVu Sans Mono',monospace;font-size:11px}"
    ".p .on{fill:#fff}.p .ground{fill:#fff}.p .lane{fill:#f3f5f8}.p .block{fill:#d7e3f4}"
    ".p .other{fill:#e9eff8}.p .chosen{fill:#4e79a7}.p .line{stroke:#c3cad3;fill:none}"
    ".p .padding{fill:#fff;fill-opacity:.8;stroke:#8b949e;stroke-dasharray:3 2}"
    ".p .edge{stroke:#fff}.p .mark{stroke:#1f2328;fill:none}"
    ".p .limit{stroke:#cf222e;fill:none;stroke-dasharray:6 4}.p .warn{fill:#cf222e}"
    "@media(prefers-color-scheme:dark){.p text{fill:#e6edf3}.p .soft{fill:#9aa4b0}.p "
    ".on{fill:#fff}"
    ".p .ground{fill:#0d1117}.p .lane{fill:#1b222c}.p .block{fill:#2b3f58}.p .other{fill:#22304a}"
    ".p .padding{fill:#0d1117;fill-opacity:.6}"
    ".p .line{stroke:#3d444d}.p .edge{stroke:#0d1117}.p .mark{stroke:#e6edf3}"
    ".p .limit{stroke:#ff7b72}.p .warn{fill:#ff7b72}}";

}  // namespace report_detail

/// A picture: SVG elements, each drawn over the previous ones. Positions are in pixels from the
/// left and from the top. Texts may contain any characters; those that XML does not allow are shown
/// as `\x1b`.
class svg {
 public:
  enum class anchor { begin, middle, end };
  struct box {
    double x = 0, y = 0, width = 0, height = 0;
  };
  /// Classes of the picture's style or a colour, and a tooltip.
  struct look {
    std::string_view kind = "", fill = "";
    std::string_view title = "";
  };

  constexpr void rectangle(const box& b, const look& l, double round = 0) {
    reach(b.x + b.width, b.y + b.height);
    body_ << "<rect";
    place("x", b.x);
    place("y", b.y);
    place("width", b.width);
    place("height", b.height);
    if (round > 0) place("rx", round);
    finish(l, "rect");
  }
  constexpr void line(double x1, double y1, double x2, double y2, std::string_view kind = "line") {
    reach(x1 > x2 ? x1 : x2, y1 > y2 ? y1 : y2);
    body_ << "<path d=\"M";
    point(x1, y1);
    body_ << 'L';
    point(x2, y2);
    body_ << '"';
    finish({kind}, "path");
  }
  /// Adds a text. `y` is the position of its baseline.
  constexpr void label(double x, double y, std::string_view words, std::string_view kind = "",
                       anchor at = anchor::begin, std::string_view title = "") {
    reach(at == anchor::begin ? x + width_of(words) : x, y + 4);
    body_ << "<text";
    place("x", x);
    place("y", y);
    if (at != anchor::begin)
      body_ << " text-anchor=\"" << (at == anchor::middle ? "middle" : "end") << '"';
    if (!kind.empty()) body_ << " class=\"" << kind << '"';
    body_ << '>';
    if (!title.empty()) body_ << "<title>" << report_detail::markup(title) << "</title>";
    body_ << report_detail::markup(words) << "</text>\n";
  }
  /// Adds the area between two lines: points(i, x, above, below) for i in [0, count).
  template <class Points>
  constexpr void area(int count, const look& l, const Points& points) {
    body_ << "<path d=\"";
    for (int side = 0; side < 2; ++side)
      for (int k = 0; k < count; ++k) {
        const auto at = [&](int step) {
          const int i = side == 0 ? k + step : count - 1 - k - step;
          double x = 0, above = 0, below = 0;
          points(i, x, above, below);
          return place_type{x, side == 0 ? above : below};
        };
        const place_type here = at(0);
        reach(here.x, here.y);
        // A point within a horizontal line can be omitted.
        if (k > 0 && k + 1 < count && at(-1).y == here.y && at(1).y == here.y) continue;
        body_ << (side == 0 && k == 0 ? 'M' : 'L');
        point(here.x, here.y);
      }
    body_ << "Z\"";
    finish(l, "path");
  }
  /// Adds another picture at a position.
  constexpr void add(const svg& other, double x, double y) {
    reach(x + other.width_, y + other.height_);
    body_ << "<g transform=\"translate(";
    point(x, y);
    body_ << ")\">\n" << other.body_ << "</g>\n";
  }
  constexpr void note(double width, double height) { reach(width, height); }
  constexpr double width() const { return width_; }
  constexpr double height() const { return height_; }

  /// The approximate width of a text, since fonts are not available here.
  static constexpr double width_of(std::string_view words, double size = 12) {
    double units = 0;
    report_detail::for_each_character(
        words, [&](std::string_view c) { units += c.size() >= 3 && c != "…" ? 1. : 0.58; });
    return units * size;
  }

  /// The picture as an element of an HTML page that includes the style.
  constexpr text element(std::string_view title) const {
    return concat(begin(title, ""), body_, "</svg>\n");
  }
  /// The picture as a file.
  constexpr text document(std::string_view title) const {
    text out = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n";
    out << begin(title, " xmlns=\"http://www.w3.org/2000/svg\"");
    out << "<title>" << report_detail::markup(title) << "</title>\n<style>"
        << report_detail::picture_style << "</style>\n";
    return out << "<rect class=\"ground\" width=\"100%\" height=\"100%\"/>\n"
               << body_ << "</svg>\n";
  }

 private:
  struct place_type {
    double x = 0, y = 0;
  };
  text body_;
  double width_ = 0, height_ = 0;

  constexpr void reach(double x, double y) {
    if (x > width_) width_ = x;
    if (y > height_) height_ = y;
  }
  constexpr void point(double x, double y) {
    report_detail::print_coordinate(body_, x);
    body_ << ' ';
    report_detail::print_coordinate(body_, y);
  }
  constexpr void place(std::string_view name, double v) {
    body_ << ' ' << name << "=\"";
    report_detail::print_coordinate(body_, v);
    body_ << '"';
  }
  constexpr void finish(const look& l, std::string_view element) {
    if (!l.kind.empty()) body_ << " class=\"" << l.kind << '"';
    if (!l.fill.empty()) body_ << " fill=\"" << l.fill << '"';
    if (l.title.empty()) {
      body_ << "/>\n";
      return;
    }
    body_ << "><title>" << report_detail::markup(l.title) << "</title></" << element << ">\n";
  }
  constexpr text begin(std::string_view title, std::string_view more) const {
    text out, size[2];
    report_detail::print_coordinate(size[0], width_ + 1);
    report_detail::print_coordinate(size[1], height_ + 1);
    out << "<svg class=\"p\"" << more << " role=\"img\" aria-label=\""
        << report_detail::markup(title) << "\" width=\"" << size[0] << "\" height=\"" << size[1]
        << "\" viewBox=\"0 0 " << size[0] << ' ' << size[1] << "\">\n";
    return out;
  }
};

}  // namespace partita
