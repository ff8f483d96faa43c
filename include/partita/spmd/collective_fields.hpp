/// Attributes of collectives. A single description per op converts them to a typed collective and
/// back, prints them, and parses their text.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/collective.hpp>
#include <partita/ir/program.hpp>
#include <partita/ir/sub_axis_text.hpp>
#include <partita/support/scanner.hpp>

namespace partita::spmd_detail {

/// Attributes in stored form.
struct collective_attributes {
  std::int64_t list[2 + 4 * max_axes] = {};
  std::size_t count = 0;

  constexpr void push_back(std::int64_t n) { list[count++] = n; }
  constexpr operator span<const std::int64_t>() const { return {list, count}; }
};

// An op describes its fields once, in the order in which they are stored and printed:
//
//  f.reduction();   the combiner                 `<@max>`, nothing for the sum
//  f.dimensions();  gathered, sliced             `{0 -> 1}`; if there are several, both are -1 and
//                                                (dimension, axis) pairs follow:
//                                                `[{"A"}, {}] -> [{}, {"A"}]`
//  f.map();         shift, 0 if mirrored; the    `{+1}`, `{+1 around}`, `{mirrored}`; for a
//                   combiner of a ring is stack  renumbered permute `<"x1", "x2"> ->`
//  f.axes();        major to minor               `<"x1", "x2">`
//  f.layout();      (dimension, axis) pairs      `[{"B"}, {}]`

/// The shift stored for a renumbered permute; its axes follow in both orders.
inline constexpr std::int64_t renumbers = INT64_MIN;

/// Attributes to collective.
class collective_decoder {
 public:
  constexpr collective_decoder(span<const std::int64_t> attrs, collective& c)
      : attrs_(attrs), c_(c) {}

  constexpr void reduction() { c_.combine = static_cast<combiner>(attrs_[at_++]); }
  constexpr void dimensions() {
    c_.gathered = static_cast<int>(attrs_[at_++]);
    c_.sliced = static_cast<int>(attrs_[at_++]);
    if (!c_.several()) return;
    const std::size_t end = at_ + (attrs_.size() - at_) / 2;
    for (; at_ + 1 < end; at_ += 2)
      c_.from.push_back(static_cast<int>(attrs_[at_ + 1]), static_cast<int>(attrs_[at_]));
    layout();
  }
  constexpr void map() {
    const bool ring = c_.combine == combiner::stack;
    c_.map.shift = attrs_[at_++];
    if (c_.map.shift == renumbers) {
      c_.map = {device_map::renumbered, 0};
      for (const std::size_t end = at_ + (attrs_.size() - at_) / 2; at_ < end; ++at_)
        c_.from.push_back(static_cast<int>(attrs_[at_]), no_dim);
      return;
    }
    c_.map.form = c_.map.shift == 0 ? device_map::mirrored
                  : ring            ? device_map::ring
                                    : device_map::shifted;
    if (ring) c_.combine = combiner::add;
  }
  constexpr void axes() {
    for (; at_ < attrs_.size(); ++at_) c_.axes.push_back(static_cast<int>(attrs_[at_]), c_.sliced);
  }
  constexpr void layout() {
    for (; at_ + 1 < attrs_.size(); at_ += 2)
      c_.axes.push_back(static_cast<int>(attrs_[at_ + 1]), static_cast<int>(attrs_[at_]));
  }

 private:
  span<const std::int64_t> attrs_;
  collective& c_;
  std::size_t at_ = 0;
};

/// Collective to attributes.
class collective_encoder {
 public:
  constexpr collective_encoder(const collective& c, collective_attributes& attrs)
      : c_(c), attrs_(attrs) {}

  constexpr void reduction() { attrs_.push_back(static_cast<std::int64_t>(c_.combine)); }
  constexpr void dimensions() {
    attrs_.push_back(c_.gathered);
    attrs_.push_back(c_.sliced);
    if (c_.several()) pairs(c_.from), layout();
  }
  constexpr void map() {
    if (c_.map.form == device_map::renumbered) {
      attrs_.push_back(renumbers);
      for (const auto& e : c_.from) attrs_.push_back(e.axis);
      return;
    }
    if (c_.map.form == device_map::ring)
      attrs_.list[0] = static_cast<std::int64_t>(combiner::stack);
    attrs_.push_back(c_.map.form == device_map::mirrored ? 0 : c_.map.shift);
  }
  constexpr void axes() {
    if (c_.several()) return;
    for (const auto& e : c_.axes) attrs_.push_back(e.axis);
  }
  constexpr void layout() { pairs(c_.axes); }

 private:
  const collective& c_;
  collective_attributes& attrs_;

  /// Stores pairs in the order in which a layout is printed: by dimension, then major to minor.
  constexpr void pairs(const partita::layout& l) {
    int last = 0;
    for (const auto& e : l) last = e.dim > last ? e.dim : last;
    for (int d = 0; d <= last; ++d)
      for (const auto& e : l)
        if (e.dim == d) {
          attrs_.push_back(d);
          attrs_.push_back(e.axis);
        }
  }
};

/// Prints ` <"x1", "x2">`; `axis(i)` is axis number i of `count`.
template <class Axis>
constexpr void print_axes(text& out, int count, const mesh* m, const Axis& axis) {
  out << " <";
  print_axis_list(out, count, m, axis);
  out << '>';
}

/// Collective to text; each field starts with a blank.
class collective_printer {
 public:
  constexpr collective_printer(const collective& c, print_context& to) : c_(c), to_(to) {}

  constexpr void reduction() {
    if (c_.combine != combiner::add) to_.out << " <@" << name_of(c_.combine) << '>';
  }
  constexpr void dimensions() {
    if (!c_.several()) {
      to_.out << " {" << c_.gathered << " -> " << c_.sliced << '}';
      return;
    }
    to_.out << ' ';
    print_layout(to_.out, c_.from, rank(), to_.mesh);
    to_.out << " -> ";
    print_layout(to_.out, c_.axes, rank(), to_.mesh);
  }
  constexpr void map() {
    if (c_.map.form == device_map::renumbered) {
      list(c_.from);
      to_.out << " ->";
      return;
    }
    if (c_.map.form == device_map::mirrored) {
      to_.out << " {mirrored}";
      return;
    }
    to_.out << " {" << (c_.map.shift > 0 ? "+" : "") << c_.map.shift
            << (c_.map.form == device_map::ring ? " around}" : "}");
  }
  constexpr void axes() {
    if (!c_.several()) list(c_.axes);
  }
  constexpr void layout() {
    to_.out << ' ';
    print_layout(to_.out, c_.axes, rank(), to_.mesh);
  }

 private:
  const collective& c_;
  print_context& to_;

  constexpr int rank() const { return to_.p.type(to_.p.op(to_.op).result).shape.rank; }
  constexpr void list(const partita::layout& axes) {
    print_axes(to_.out, axes.count, to_.mesh, [&](int i) { return int{axes[i].axis}; });
  }
};

/// Text to axes; no axis may occur twice.
class axes_reader {
 public:
  constexpr explicit axes_reader(parse_context& c) : in(c.in), mesh_(c.mesh) {}

  scanner in;
  bool good = true;

  /// Reads `<"x1", "x2">`.
  constexpr void list(layout& to, int dim) {
    good = good && in.accept("<");
    group(to, dim, ">");
  }
  /// Reads `[{"B"}, {}]`.
  constexpr void pieces(layout& to, int rank) {
    good = good && in.accept("[");
    for (int d = 0; good && d < rank; ++d) {
      good = (d == 0 || in.accept(", ")) && in.accept("{");
      group(to, d, "}");
    }
    good = good && in.accept("]");
  }
  /// Prepares for a second list of the same axes.
  constexpr void once_more() { seen_ = {}; }
  /// Records an error if the text was not fully read.
  ///
  /// Errors    P011 the text is not one of the op's attributes
  constexpr void finish(parse_context& c, std::string_view op) const {
    if (!good || !in.done())
      c.error.record("P011", "parse: attributes of ", op, ": \"", c.in,
                     "\" is not a list of mesh axes in the form of this op");
  }

 private:
  const mesh* mesh_;
  axis_set seen_;

  constexpr void group(layout& to, int dim, std::string_view end) {
    for (bool first = true; good && !in.accept(end); first = false) {
      good = first || in.accept(", ");
      for (int a : axis()) {
        good = good && !seen_.contains(a);
        if (good) to.push_back(a, dim);
        seen_.insert(a);
      }
    }
  }
  /// Reads `"B"` or `"A":(1)4`; returns the axes of the mesh that it consists of.
  constexpr axis_list axis() {
    sub_axis s;
    std::int64_t major = 0;
    good = good && mesh_ != nullptr && read_sub_axis(in, *mesh_, s) && mesh_->cut_by(s, major) < 0;
    return good ? mesh_->parts_of(s) : axis_list{};
  }
};

/// Text to collective.
class collective_reader {
 public:
  constexpr collective_reader(parse_context& from, collective& c)
      : from_(from), c_(c), axes_(from) {}

  constexpr void reduction() {
    if (!axes_.in.accept("<@")) return;
    const std::string_view word = axes_.in.take_while([](char each) { return each != '>'; });
    for (auto each : {combiner::max, combiner::min, combiner::multiply, combiner::logical_and,
                      combiner::logical_or})
      if (name_of(each) == word) c_.combine = each;
    need(c_.combine != combiner::add && axes_.in.accept("> "));
  }
  constexpr void dimensions() {
    std::int64_t from = -1, to = -1;
    const int rank = from_.declared.shape.rank;
    scanner& in = axes_.in;
    if (in.starts("[")) return several(rank);
    need(in.accept("{") && in.integer(from) && in.accept(" -> ") && in.integer(to) &&
         in.accept("} ") && from >= 0 && from < rank && to >= 0 && to < rank && from != to);
    if (!axes_.good) return;
    c_.gathered = static_cast<int>(from);
    c_.sliced = static_cast<int>(to);
  }
  constexpr void map() {
    scanner& in = axes_.in;
    if (in.accept("{mirrored} ")) {
      c_.map.form = device_map::mirrored;
      return;
    }
    if (in.starts("<")) {
      axes_.list(c_.from, no_dim);
      need(in.accept(" -> "));
      axes_.once_more();
      c_.map.form = device_map::renumbered;
      return;
    }
    need(in.accept("{"));
    const bool down = in.accept("-");
    need((down || in.accept("+")) && in.integer(c_.map.shift) && c_.map.shift > 0);
    if (down && axes_.good) c_.map.shift = -c_.map.shift;
    if (in.accept(" around")) c_.map.form = device_map::ring;
    need(in.accept("} "));
  }
  constexpr void axes() {
    if (c_.axes.count > 0) return;  // there are several dimensions
    axes_.list(c_.axes, c_.sliced);
    need(c_.is_consistent());
  }
  constexpr void layout() { axes_.pieces(c_.axes, from_.declared.shape.rank); }
  constexpr void finish(std::string_view op) { axes_.finish(from_, op); }

 private:
  parse_context& from_;
  collective& c_;
  axes_reader axes_;

  constexpr void need(bool there) { axes_.good = axes_.good && there; }
  constexpr void several(int rank) {
    axes_.pieces(c_.from, rank);
    need(axes_.in.accept(" -> "));
    axes_.once_more();
    axes_.pieces(c_.axes, rank);
    need(c_.axes.count > 0 && c_.is_consistent());
  }
};

}  // namespace partita::spmd_detail
