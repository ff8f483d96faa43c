/// The fields of collectives as attributes. A single description per op converts them to a typed
/// collective and back; collective_text.hpp prints and reads them.
#pragma once

#include <cstdint>

#include <partita/ir/collective.hpp>
#include <partita/ir/program.hpp>

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

}  // namespace partita::spmd_detail
