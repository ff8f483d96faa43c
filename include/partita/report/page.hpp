/// Building blocks of self-contained HTML pages.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>

#include <partita/report/html_style.hpp>
#include <partita/report/markup.hpp>
#include <partita/report/simulation.hpp>
#include <partita/report/svg.hpp>

namespace partita {

/// Title and size limits of a page. It states the number of rows, pictures or lines that it omits.
struct page_options {
  std::string_view title = "A partitioned program";
  int rows = 1000;   ///< maximum per table; the largest are kept
  int pictures = 9;  ///< maximum number of distinct shardings, those of the largest values
  std::size_t text_bytes = std::size_t{1} << 18;  ///< maximum per text; its beginning is kept
};

namespace report_detail {

/// A table whose rows can be filtered and sorted.
class html_table {
 public:
  struct column {
    std::string_view name;
    bool number = false;
  };
  constexpr html_table(std::string_view id, const vec<column>& columns)
      : id_(id), columns_(columns) {}

  /// Adds a cell with text. Long text is shortened in the middle; its tooltip shows more.
  constexpr html_table& words(std::string_view s, std::size_t most = 240) {
    begin(title(s, most)) << markup(shortened(s, most)) << "</td>";
    return *this;
  }
  constexpr html_table& code(std::string_view s, std::size_t most = 56) {
    begin(title(s, most)) << "<code>" << markup(shortened(s, most)) << "</code></td>";
    return *this;
  }
  /// Adds a cell that shows `shown` and sorts by `value`.
  constexpr html_table& number(std::int64_t value, std::string_view shown) {
    begin(concat(" class=\"n\" data-v=\"", value, '"')) << markup(shown) << "</td>";
    return *this;
  }
  constexpr html_table& number(std::int64_t value) { return number(value, grouped(value)); }
  constexpr html_table& bytes(std::int64_t value) { return number(value, bytes_text(value)); }
  constexpr html_table& seconds(double value) {
    return number(static_cast<std::int64_t>(value < 9e6 ? value * 1e12 : 9e18),
                  value > 0 ? time_text(value) : text("0 s"));
  }
  constexpr int rows() const { return rows_; }

  /// Prints the table; with `filter`, a field above it selects rows.
  constexpr void print(text& out, bool filter) const {
    if (filter)
      out << "<p><input type=\"search\" data-table=\"" << id_
          << "\" placeholder=\"filter\" aria-label=\"filter rows\"> <span class=\"soft\" "
             "role=\"status\"></span></p>\n";
    out << "<div class=\"scroll\"><table id=\"" << id_ << "\"><thead><tr>";
    for (const column& c : columns_)
      out << (c.number ? "<th scope=\"col\" class=\"n\">" : "<th scope=\"col\">")
          << "<button type=\"button\">" << c.name << "</button></th>";
    out << "</tr></thead><tbody>\n" << body_;
    if (rows_ > 0) out << "</tr>\n";
    out << "</tbody></table></div>\n";
  }

 private:
  std::string_view id_;
  vec<column> columns_;
  text body_;
  std::size_t cells_ = 0;
  int rows_ = 0;

  static constexpr text title(std::string_view s, std::size_t most) {
    if (s.size() <= most) return {};
    return concat(" title=\"", markup(shortened(s, 400)), '"');
  }
  constexpr text& begin(std::string_view more) {
    if (cells_++ % columns_.size() == 0) body_ << (rows_++ > 0 ? "</tr>\n<tr>" : "<tr>");
    return body_ << "<td" << more << '>';
  }
};

/// The indices of the `most` largest elements, largest first; equal elements keep their order.
inline vec<int> largest_first(const vec<std::int64_t>& sizes, int most) {
  vec<int> list;
  for (int i = 0; i < static_cast<int>(sizes.size()); ++i) list.push_back(i);
  std::sort(list.begin(), list.end(),
            [&](int a, int b) { return sizes[a] > sizes[b] || (sizes[a] == sizes[b] && a < b); });
  if (static_cast<int>(list.size()) > most) list.resize(static_cast<std::size_t>(most), 0);
  return list;
}

/// Base class of the pages: frame, sections and their contents.
class page_writer {
 protected:
  /// The anchor of a section and its name in the menu.
  struct menu_entry {
    std::string_view id, name;
  };
  const page_options& options_;
  text out_;

  explicit page_writer(const page_options& options) : options_(options) {}

  /// Starts the page. `below` is the line below the title.
  void begin(std::string_view below, const vec<menu_entry>& menu) {
    out_ << "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
            "<meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\n<title>"
         << markup(options_.title) << "</title>\n<link rel=\"icon\" href=\"data:,\">\n<style>"
         << page_style << picture_style << "</style>\n</head>\n<body>\n<header><div>\n<h1>"
         << markup(options_.title) << "</h1>\n<p class=\"soft\">" << markup(below) << "</p>\n<nav>";
    for (const auto& each : menu) out_ << "<a href=\"#" << each.id << "\">" << each.name << "</a>";
    out_ << "</nav>\n</div></header>\n<main>\n";
  }
  text end(std::string_view footer) {
    out_ << "<footer>" << footer << "</footer>\n</main>\n<script>" << page_script
         << "</script>\n</body>\n</html>\n";
    return static_cast<text&&>(out_);
  }
  void section(std::string_view id, std::string_view title) {
    out_ << "<h2 id=\"" << id << "\">" << title << "</h2>\n";
  }
  void note(std::string_view words) { out_ << "<p class=\"soft\">" << markup(words) << "</p>\n"; }
  /// Prints notes about removed dead code and about loops of unknown length.
  void notes(const dead_code& removed, const unknown_loops& unknown) {
    text lines;
    schedule_detail::print_notes(lines, removed, unknown);
    if (!lines.empty()) out_ << "<pre>" << markup(lines) << "</pre>\n";
  }
  void picture(const svg& s, std::string_view title) {
    out_ << "<div class=\"picture\">" << s.element(title) << "</div>\n";
  }
  void left_out(int shown, std::size_t all, std::string_view what) {
    if (static_cast<std::size_t>(shown) < all)
      note(concat("The ", grouped(shown), " largest of ", grouped(static_cast<std::int64_t>(all)),
                  ' ', what, "; the others are omitted."));
  }
  /// Prints a text in an element that is initially closed. Only the beginning of a long text is
  /// printed.
  void folded(std::string_view title, std::string_view all) {
    std::string_view shown = all.substr(0, options_.text_bytes);
    if (shown.size() < all.size()) shown = shown.substr(0, shown.rfind('\n') + 1);
    out_ << "<details><summary>" << title << "</summary>\n<pre>" << markup(shown, true);
    if (shown.size() < all.size()) {
      const auto lines =
          std::count(all.begin() + static_cast<std::ptrdiff_t>(shown.size()), all.end(), '\n');
      out_ << "... " << grouped(lines) << " more lines, "
           << bytes_text(static_cast<std::int64_t>(all.size() - shown.size()))
           << ", are omitted here\n";
    }
    out_ << "</pre></details>\n";
  }
  void tile(std::string_view figure, std::string_view what, std::string_view more,
            std::string_view kind = "") {
    out_ << "<div class=\"tile\"><span>" << what << "</span><b>" << markup(figure)
         << "</b><span class=\"" << kind << "\">" << markup(more) << "</span></div>\n";
  }
};

}  // namespace report_detail

}  // namespace partita
