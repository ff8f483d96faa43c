/// Collectives as data: how the devices of a mesh exchange values. They name axes, never devices.
///
/// Source    PartIR, section 6 and listing 9
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/axis_set.hpp>
#include <partita/ir/layout.hpp>
#include <partita/ir/shape.hpp>
#include <partita/ir/tile_map.hpp>

namespace partita {

/// The sender for each member of a group in a permute. Members are numbered by the axes, major to
/// minor.
struct device_map {
  enum form_type : std::uint8_t {
    shifted,   ///< member i sends to member i + shift, if it exists
    ring,      ///< member i sends to member (i + shift) mod n
    mirrored,  ///< member i sends to member n - 1 - i
    /// Member i sends to the member that has number i when the axes are in another order.
    renumbered
  };
  form_type form = shifted;
  std::int64_t shift = 0;  ///< may be negative

  /// The sender of a member that receives nothing.
  static constexpr int nobody = -1;
  /// Returns the member (of `n`) that sends to member `to`, or -1 if no member sends. Not for
  /// `renumbered`; see collective::sender.
  constexpr std::int64_t sender(std::int64_t to, std::int64_t n) const {
    if (form == mirrored) return n - 1 - to;
    const std::int64_t from = to - shift;
    if (form == ring) return (from % n + n) % n;
    return from < 0 || from >= n ? nobody : from;
  }
  friend constexpr bool operator==(const device_map&, const device_map&) = default;
};

/// One collective. Devices that differ only along its axes form a group and exchange blocks with
/// each other.
///
/// Source    an op builds it from its attributes, see op_def::describe
struct collective {
  enum kind_type : std::uint8_t {
    all_gather,      ///< every member gets the blocks of all members
    all_reduce,      ///< every member gets the reduction
    reduce_scatter,  ///< every member gets one block of the reduction
    all_to_all,      ///< gathers one dimension and slices another
    permute,         ///< every member gets another member's value
    all_slice        ///< every member keeps its block; nothing is exchanged
  };
  kind_type kind = all_gather;
  /// The axes, each with the dimension that it gathers or slices, major to minor within a
  /// dimension. The dimension is no_dim if values are reduced or sent without slicing.
  layout axes;
  /// The combiner of a reduction. In a permute, members without a sender get its identity.
  combiner combine = combiner::add;
  int gathered = no_dim, sliced = no_dim;  ///< the dimensions of an all_to_all that involves two
  /// For an all_to_all over more than two dimensions: the axes with the dimensions that they
  /// gather; these dimensions are not sliced. For a renumbered permute: the axes that number the
  /// senders, major to minor; `axes` number the receivers.
  layout from;
  device_map map;  ///< of a permute

  /// True if devices exchange anything.
  constexpr bool communicates() const { return kind != all_slice; }
  constexpr bool reduces() const { return kind == all_reduce || kind == reduce_scatter; }
  /// Returns the axes, without their order.
  constexpr axis_set along() const { return set_of(axes); }
  /// Returns the number of devices per group.
  constexpr std::int64_t members(const mesh& m) const {
    std::int64_t n = 1;
    for (const auto& e : axes) n *= m.size(e.axis);
    return n;
  }
  /// True for an all_to_all that gathers or slices several dimensions.
  constexpr bool several() const { return kind == all_to_all && gathered == no_dim; }
  /// Returns the axes with the dimensions that an all_to_all gathers.
  constexpr layout gathers() const {
    if (several()) return from;
    layout l;
    for (const auto& e : axes) l.push_back(e.axis, gathered);
    return l;
  }
  /// True if axes and dimensions fit together: each axis occurs once, an all_to_all or a renumbered
  /// permute has the same axes on both sides, and no dimension is both gathered and sliced.
  constexpr bool is_consistent() const {
    const bool moves = kind == all_to_all;
    if (!moves && !(kind == permute && map.form == device_map::renumbered)) return each_once(axes);
    const layout taken = moves ? gathers() : from;
    bool fits = each_once(axes) && each_once(taken) && set_of(taken) == along();
    for (const auto& g : taken)
      for (const auto& s : axes) fits = fits && (!moves || g.dim != s.dim);
    return fits;
  }
  /// Returns the member (numbered by `axes`) that sends to member `to` in a permute, or -1.
  constexpr std::int64_t sender(std::int64_t to, const mesh& m) const {
    if (map.form != device_map::renumbered) return map.sender(to, members(m));
    std::int64_t at[max_axes] = {}, n = 0;
    for (int i = from.count; i-- > 0;) {
      at[from[i].axis] = to % m.size(from[i].axis);
      to /= m.size(from[i].axis);
    }
    for (const auto& e : axes) n = n * m.size(e.axis) + at[e.axis];
    return n;
  }
  /// Returns the local shape after the collective; an extent that the axes do not divide becomes
  /// -1.
  constexpr shape after(shape s, const mesh& m) const {
    if (kind == all_to_all)
      for (const auto& e : gathers()) s[e.dim] *= m.size(e.axis);
    for (const auto& e : axes) {
      const std::int64_t n = m.size(e.axis);
      if (kind == all_gather) s[e.dim] *= n;
      if (kind != all_slice && kind != reduce_scatter && kind != all_to_all) continue;
      s[e.dim] = s[e.dim] % n == 0 ? s[e.dim] / n : -1;
    }
    return s;
  }

 private:
  static constexpr axis_set set_of(const layout& l) {
    axis_set s;
    for (const auto& e : l) s.insert(e.axis);
    return s;
  }
  static constexpr bool each_once(const layout& l) {
    int different = 0;
    for (int a = 0; a < max_axes; ++a) different += set_of(l).contains(a);
    return different == l.count;
  }
};

constexpr std::string_view name_of(collective::kind_type kind) {
  constexpr std::string_view names[] = {"all_gather", "all_reduce", "reduce_scatter",
                                        "all_to_all", "permute",    "all_slice"};
  return names[static_cast<int>(kind)];
}

/// Returns the bytes that a device sends in a collective over a group of `members`, if the operand
/// has `bytes` bytes on each device. An all_gather sends n - 1 times the operand, which is (n -
/// 1)/n of the result. An all_reduce sends 2 (n - 1)/n of the operand, a reduce_scatter or
/// all_to_all (n - 1)/n, and a permute all of it (in a shift, only members that have a receiver
/// send). Fractions are rounded up.
///
/// Source    Patarasuk and Yuan, Bandwidth optimal all-reduce algorithms for clusters of
///           workstations, 2009: no algorithm sends less
constexpr std::int64_t bytes_sent(collective::kind_type kind, std::int64_t members,
                                  std::int64_t bytes) {
  if (members <= 1 || kind == collective::all_slice) return 0;
  if (kind == collective::permute || bytes == saturated) return bytes;
  if (kind == collective::all_gather) return saturating_multiply(members - 1, bytes);
  const std::int64_t passed = kind == collective::all_reduce ? saturating_add(bytes, bytes) : bytes;
  return passed - passed / members;
}

/// Returns the number of messages that each member of a group along one axis sends: one to each
/// other member, two to each in an all_reduce, and one in total in a permute.
constexpr std::int64_t messages_sent(collective::kind_type kind, std::int64_t members) {
  if (members <= 1 || kind == collective::all_slice) return 0;
  if (kind == collective::permute) return 1;
  return (members - 1) * (kind == collective::all_reduce ? 2 : 1);
}

/// Numbers of collectives, by kind. A collective inside a loop counts as often as the loop runs;
/// all_slice does not communicate and is not counted.
struct collectives {
  std::int64_t all_gather = 0, all_reduce = 0, reduce_scatter = 0, all_to_all = 0, permute = 0;

  constexpr std::int64_t total() const {
    return all_gather + all_reduce + reduce_scatter + all_to_all + permute;
  }
  constexpr void count(collective::kind_type kind, std::int64_t times = 1) {
    if (kind == collective::all_gather) all_gather += times;
    if (kind == collective::all_reduce) all_reduce += times;
    if (kind == collective::reduce_scatter) reduce_scatter += times;
    if (kind == collective::all_to_all) all_to_all += times;
    if (kind == collective::permute) permute += times;
  }
  friend constexpr bool operator==(const collectives&, const collectives&) = default;
};

constexpr text& operator<<(text& out, const collectives& c) {
  out << "all_gather " << c.all_gather << ", all_reduce " << c.all_reduce << ", reduce_scatter "
      << c.reduce_scatter << ", all_to_all " << c.all_to_all;
  if (c.permute > 0) out << ", permute " << c.permute;
  return out;
}

}  // namespace partita
