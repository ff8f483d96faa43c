/// Mapping of a value's blocks to devices, as SVG.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/report/sharding.hpp>
#include <partita/report/svg.hpp>

namespace partita {

namespace report_detail {

/// A direction of the picture, to the right or down, with the dimensions that are sharded along it,
/// outermost first. Blocks of inner dimensions are drawn inside those of outer ones.
///
/// If there are too many blocks, the first ones and the last one are drawn.
struct direction {
  struct level {
    int dim = 0;
    std::int64_t pieces = 1, drawn = 1;
    double stride = 0, size = 0;  ///< of one block and of all of them, in pixels

    constexpr std::int64_t piece(std::int64_t i) const { return i + 1 == drawn ? pieces - 1 : i; }
    constexpr bool left_out() const { return drawn < pieces; }
    constexpr double at(std::int64_t i) const {
      return static_cast<double>(i) * stride + (left_out() && i + 1 == drawn ? gap : 0);
    }
  };
  static constexpr double gap = 18;
  vec<level> levels;

  /// Computes the sizes; `cell` is the size of the innermost block.
  constexpr void measure(double cell) {
    double between = 0, inner = cell;
    for (std::size_t i = levels.size(); i-- > 0; between += 8) {
      level& l = levels[i];
      l.stride = inner + between;
      l.size = static_cast<double>(l.drawn) * l.stride - between + (l.left_out() ? gap : 0);
      inner = l.size;
    }
  }
  constexpr double size(double cell) const { return levels.empty() ? cell : levels[0].size; }
  /// Calls f(level, place, index by level) for each block of each level that is drawn.
  template <class F>
  constexpr void for_each(const F& f) const {
    std::int64_t index[max_rank] = {};
    walk(f, 0, 0, index);
  }

 private:
  template <class F>
  constexpr void walk(const F& f, std::size_t depth, double place,
                      std::int64_t (&index)[max_rank]) const {
    if (depth == levels.size()) {
      f(static_cast<int>(depth), place, index);
      return;
    }
    for (index[depth] = 0; index[depth] < levels[depth].drawn; ++index[depth]) {
      const double at = place + levels[depth].at(index[depth]);
      f(static_cast<int>(depth), at, index);
      walk(f, depth + 1, at, index);
    }
  }
};

class sharding_picture {
 public:
  constexpr sharding_picture(const sharded_value& s, const mesh& m)
      : s_(s), mesh_(m), map_(s, m), cut_(map_.cut()) {
    const int count = static_cast<int>(cut_.size());
    const bool down = count == 1 && cut_[0] + 1 < map_.rank();
    for (int i = 0; i < count; ++i) {
      const bool right = count == 1 ? !down : (count - 1 - i) % 2 == 0;
      (right ? right_ : down_).levels.push_back({cut_[i], map_.pieces(cut_[i])});
    }
    choose_cell();
    choose_drawn();
  }

  constexpr svg draw() {
    measure();
    head();
    const double left = left_, top = top_;
    right_.for_each([&](int depth, double x, const auto& i) { column_label(depth, x, i); });
    down_.for_each([&](int depth, double y, const auto& i) { row_label(depth, y, i); });
    down_.for_each([&](int r, double y, const auto& row) {
      if (r < static_cast<int>(down_.levels.size())) return;
      right_.for_each([&](int c, double x, const auto& column) {
        if (c < static_cast<int>(right_.levels.size())) return;
        cell({left + x, top + y, cell_width_, cell_height_}, row, column);
      });
    });
    legend(top + down_.size(cell_height_) + 22);
    return picture_;
  }

 private:
  static constexpr std::int64_t most_cells = 256, most_pieces = 16, most_names = 8;
  static constexpr double cell_height_ = 36, line_ = 15, widest_ = 960;

  const sharded_value& s_;
  const mesh& mesh_;
  block_map map_;
  const vec<int>& cut_;
  direction right_, down_;
  svg picture_;
  double left_ = 0, top_ = 0, cell_width_ = 0;
  std::int64_t names_ = 1;  ///< number of device names in a line
  bool padded_ = false;

  /// Chooses the number of blocks to draw in each dimension, within the available room.
  constexpr void choose_drawn() {
    std::int64_t cells = 1;
    vec<direction::level*> all;
    for (direction* d : {&right_, &down_})
      for (std::size_t i = d->levels.size(); i-- > 0;) all.push_back(&d->levels[i]);
    for (auto* l : all) {
      l->drawn = 2;  // a sharded dimension has at least two blocks
      cells *= 2;
    }
    for (bool more = true; more;) {
      more = false;
      for (auto* l : all) {
        const std::int64_t grown = cells / l->drawn * (l->drawn + 1);
        if (l->drawn == l->pieces || l->drawn == most_pieces || grown > most_cells) continue;
        const double width = columns() * cell_width_ / static_cast<double>(l->drawn) *
                             static_cast<double>(l->drawn + 1);
        if (is_right(l->dim) && width > widest_) continue;
        cells = grown;
        ++l->drawn;
        more = true;
      }
    }
  }

  constexpr bool is_right(int dim) const {
    for (const auto& each : right_.levels)
      if (each.dim == dim) return true;
    return false;
  }
  constexpr double columns() const {
    double n = 1;
    for (const auto& l : right_.levels) n *= static_cast<double>(l.drawn);
    return n;
  }

  constexpr text range(const direction::level& l, std::int64_t index) const {
    return range_of(l, l.piece(index));
  }
  constexpr text range_of(const direction::level& l, std::int64_t piece) const {
    const text of = map_.range(l.dim, piece);
    return cut_.size() > 2 ? concat('d', l.dim, ' ', of) : of;
  }
  /// The width of the widest label. The first blocks and the last two suffice, since no other label
  /// is longer.
  constexpr double widest(const direction& d) const {
    double most = 0;
    for (const auto& l : d.levels)
      for (const std::int64_t piece : {std::int64_t{0}, l.pieces - 2, l.pieces - 1}) {
        const double w = svg::width_of(range_of(l, piece), 11);
        most = w > most ? w : most;
      }
    return most;
  }
  /// Chooses the size of a cell so that one to four device names fit in a line.
  constexpr void choose_cell() {
    const auto digits = static_cast<double>(characters(concat(mesh_.devices() - 1)));
    const double name = 6.8 * (digits + 1);
    names_ = map_.copies() < 8 ? (map_.copies() + 1) / 2 : 4;
    if (map_.copies() <= 2) names_ = map_.copies();
    while (names_ > 1 && name * static_cast<double>(names_) > 110) --names_;
    const double names = name * static_cast<double>(names_) + 12, labels = widest(right_) + 10;
    for (const double each : {52., names, labels})
      if (each > cell_width_) cell_width_ = each;
  }
  constexpr void measure() {
    right_.measure(cell_width_);
    down_.measure(cell_height_);
    left_ =
        down_.levels.empty() ? 0 : (widest(down_) + 10) * static_cast<double>(down_.levels.size());
  }
  constexpr text axes_of(int dim) const {
    axis_list axes;
    for (const auto& e : s_.sharding)
      if (e.dim == dim) axes.push_back(e.axis);
    text out;
    print_axis_list(out, axes.count, mesh_, [&](int i) { return int{axes.axes[i]}; });
    return out;
  }
  constexpr text free_axes() const {
    axis_set axes;
    for (int a = 0; a < mesh_.rank; ++a)
      if (mesh_.size(a) > 1 && s_.sharding.dim_of(a) < 0) axes.insert(a);
    text out;
    print_axis_set(out, axes, mesh_);
    return out;
  }

  constexpr void head() {
    double y = 14;
    const text name = name_text(s_.name);
    picture_.label(0, y, shortened(name, 60), "head", svg::anchor::begin,
                   characters(name) > 60 ? name.view() : std::string_view());
    picture_.label(0, y += line_, concat(tensor_type{s_.element, s_.global_shape}), "code soft");
    picture_.label(0, y += line_,
                   concat("on each device ", tensor_type{s_.element, s_.local_shape}), "code soft");
    for (const int dim : cut_)
      picture_.label(0, y += line_,
                     concat(is_right(dim) ? "→" : "↓", " dimension ", dim, ": ",
                            grouped(map_.pieces(dim)), " blocks along ", axes_of(dim)),
                     "soft small");
    const std::int64_t copies = map_.copies();
    if (copies > 1)
      picture_.label(0, y += line_,
                     concat(cut_.empty() ? "replicated on all " : "each block on ", grouped(copies),
                            " devices along ", free_axes()),
                     "soft small");
    top_ = y + 8 + line_ * static_cast<double>(right_.levels.size()) + 4;
  }
  constexpr void column_label(int depth, double x, const std::int64_t (&index)[max_rank]) {
    if (depth == static_cast<int>(right_.levels.size())) return;
    const auto& l = right_.levels[depth];
    const double size = depth + 1 < static_cast<int>(right_.levels.size())
                            ? right_.levels[depth + 1].size
                            : cell_width_;
    const double y =
        top_ - 5 - line_ * static_cast<double>(right_.levels.size() - 1 - std::size_t(depth));
    picture_.label(left_ + x + size / 2, y, range(l, index[depth]), "small", svg::anchor::middle);
    if (l.left_out() && index[depth] + 1 == l.drawn)
      picture_.label(left_ + x - direction::gap / 2, y, "⋯", "small", svg::anchor::middle);
  }
  constexpr void row_label(int depth, double y, const std::int64_t (&index)[max_rank]) {
    const int levels = static_cast<int>(down_.levels.size());
    if (depth == levels) return;
    const auto& l = down_.levels[depth];
    const double size = depth + 1 < levels ? down_.levels[depth + 1].size : cell_height_;
    const double x = left_ / levels * (depth + 1) - 8;
    picture_.label(x, top_ + y + size / 2 + 4, range(l, index[depth]), "small", svg::anchor::end);
    if (l.left_out() && index[depth] + 1 == l.drawn)
      picture_.label(x, top_ + y - direction::gap / 2 + 4, "⋮", "small", svg::anchor::end);
  }

  constexpr void cell(const svg::box& b, const std::int64_t (&row)[max_rank],
                      const std::int64_t (&column)[max_rank]) {
    std::int64_t pieces[max_rank] = {}, parity = 0, sum = 0;
    for (std::size_t i = 0; i < down_.levels.size(); ++i)
      pieces[down_.levels[i].dim] = down_.levels[i].piece(row[i]);
    for (std::size_t i = 0; i < right_.levels.size(); ++i)
      pieces[right_.levels[i].dim] = right_.levels[i].piece(column[i]);
    for (int d = 0; d < map_.rank(); ++d) {
      parity ^= pieces[d] & 1;
      sum |= pieces[d];
    }
    const vec<std::int64_t> list = map_.holders_of(pieces, most_names + 1);
    picture_.rectangle(b, {sum == 0      ? "chosen edge"
                           : parity != 0 ? "block edge"
                                         : "other edge",
                           "", tip(pieces, list)});
    padding(b, pieces);
    names(b, list, sum == 0);
  }
  constexpr text tip(const std::int64_t (&pieces)[max_rank], const vec<std::int64_t>& list) const {
    text out = "[";
    append_list(out, map_.rank(), [&](int d) { out << map_.range(d, pieces[d]); });
    out << "] on " << (map_.copies() == 1 ? "device" : "devices");
    for (std::size_t i = 0; i < list.size() && i < most_names; ++i) out << ' ' << list[i];
    if (map_.copies() > most_names) out << " ... (" << map_.copies() << ')';
    return out;
  }
  /// Prints device names in two lines; if there are too many, the first ones and the number of all.
  constexpr void names(const svg::box& b, const vec<std::int64_t>& list, bool chosen) {
    const std::string_view kind = chosen ? "code on" : "code";
    const double x = b.x + b.width / 2, y = b.y + b.height / 2 + 4;
    const auto line = [&](double at, std::size_t begin) {
      text out;
      for (std::size_t i = begin; i < begin + static_cast<std::size_t>(names_) && i < list.size();
           ++i)
        out << (i > begin ? " " : "") << list[i];
      picture_.label(x, at, out, kind, svg::anchor::middle);
    };
    if (map_.copies() <= names_) return line(y, 0);
    line(y - 7, 0);
    if (map_.copies() <= 2 * names_) return line(y + 7, static_cast<std::size_t>(names_));
    picture_.label(x, y + 7, concat("… of ", grouped(map_.copies())), kind, svg::anchor::middle);
  }
  /// The fraction of a block that is padding.
  constexpr double behind(int dim, std::int64_t piece) const {
    const std::int64_t from = map_.begin(dim, piece), to = map_.end(dim, piece),
                       whole = s_.global_shape[dim];
    if (to <= whole) return 0;
    return from >= whole ? 1 : static_cast<double>(to - whole) / static_cast<double>(to - from);
  }
  constexpr void padding(const svg::box& b, const std::int64_t (&pieces)[max_rank]) {
    double right = 0, below = 0;
    for (int d = 0; d < map_.rank(); ++d)
      if (behind(d, pieces[d]) == 1) right = 1;
    if (right < 1 && !right_.levels.empty())
      right = behind(right_.levels.back().dim, pieces[right_.levels.back().dim]);
    if (right < 1 && !down_.levels.empty())
      below = behind(down_.levels.back().dim, pieces[down_.levels.back().dim]);
    if (right > 0)
      picture_.rectangle({b.x + b.width * (1 - right), b.y + 1, b.width * right - 1, b.height - 2},
                         {"padding"});
    if (below > 0)
      picture_.rectangle({b.x + 1, b.y + b.height * (1 - below), b.width - 2, b.height * below - 1},
                         {"padding"});
    padded_ = padded_ || right > 0 || below > 0;
  }
  constexpr void legend(double y) {
    double x = 0;
    const auto entry = [&](std::string_view kind, std::string_view words) {
      picture_.rectangle({x, y - 9, 10, 10}, {kind});
      picture_.label(x + 15, y, words, "small soft");
      x += 24 + svg::width_of(words, 11);
    };
    entry("chosen", "on device 0");
    if (map_.blocks() > 1) entry("block", "on others");
    if (padded_) entry("padding", "padding");
    for (const auto* d : {&down_, &right_})
      for (const auto& l : d->levels)
        if (l.left_out())
          picture_.label(
              0, y += line_,
              concat("drawn: ", l.drawn, " of ", grouped(l.pieces), " blocks of dimension ", l.dim),
              "soft small");
  }
};

}  // namespace report_detail

/// Draws each block of a value with the devices that hold it (several devices hold replicas). The
/// last sharded dimension runs to the right, the one before it down; earlier ones alternate in the
/// same way, as a grid of grids. If there are too many blocks, the first ones and the last one are
/// drawn, and the picture says so; padding is hollow. Device (i0, i1, ...) has its number in
/// row-major order.
///
/// Cost      linear in what is drawn: at most a few hundred blocks for any number of devices
constexpr text sharding_svg(const sharded_value& s, const mesh& m) {
  return report_detail::sharding_picture(s, m).draw().document(
      report_detail::block_map(s, m).title());
}
/// The same for an input or output of a partitioned program.
constexpr text sharding_svg(const partitioned& p, std::string_view name) {
  for (int i = 0; i < p.source.input_count(); ++i)
    if (p.source.input_name(i) == name) return sharding_svg(p.input(i), p.mesh());
  return sharding_svg(p.output(name), p.mesh());
}

}  // namespace partita
