/// Collectives as data: what the devices of a mesh exchange. They name axes, never device numbers.
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

/// From which member of a group each of its members gets what it has after a permute; members are
/// numbered by the axes, major to minor.
struct device_map {
  enum form_type : std::uint8_t {
    shifted,    ///< member i sends to i + shift, if there is one
    ring,       ///< member i sends to (i + shift) mod n
    mirrored,   ///< member i sends to n - 1 - i
    renumbered  ///< member i sends to the one that is number i if axes stand in another order
  };
  form_type form = shifted;
  std::int64_t shift = 0;  ///< of either sign

  static constexpr int nobody = -1;
  /// The one of `n` members that sends to member `to`, or `nobody`; not of a renumbered one, see
  /// collective::sender.
  constexpr std::int64_t sender(std::int64_t to, std::int64_t n) const {
    if (form == mirrored) return n - 1 - to;
    const std::int64_t from = to - shift;
    if (form == ring) return (from % n + n) % n;
    return from < 0 || from >= n ? nobody : from;
  }
  friend constexpr bool operator==(const device_map&, const device_map&) = default;
};

/// What a collective does. Devices that differ along its axes only are a group, and exchange pieces
/// among each other.
///
/// Source    an op makes it from its attributes, see op_def::describe
struct collective {
  enum kind_type : std::uint8_t {
    all_gather,      ///< every member gets the pieces of all
    all_reduce,      ///< every member gets the reduction
    reduce_scatter,  ///< every member gets a piece of the reduction
    all_to_all,      ///< gathers one dimension and slices another one
    permute,         ///< every member gets the value of another one
    all_slice        ///< every member keeps its piece: nothing is exchanged
  };
  kind_type kind = all_gather;
  /// The axes, of one dimension major to minor, and the dimension that each gathers or slices; none
  /// where the whole value is reduced or sent.
  layout axes;
  /// Of what is reduced; of a permute: its identity is what a member gets to which nobody sends.
  combiner combine = combiner::add;
  int gathered = no_dim, sliced = no_dim;  ///< the dimensions of an all_to_all, if they are two
  /// Of an all_to_all of more than two dimensions: which axes gather which; none of these is
  /// sliced. Of a renumbered permute: the axes by which its senders are numbered, major to minor;
  /// `axes` number those who get it.
  layout from;
  device_map map;  ///< of a permute

  constexpr bool communicates() const { return kind != all_slice; }
  constexpr bool reduces() const { return kind == all_reduce || kind == reduce_scatter; }
  constexpr axis_set along() const { return set_of(axes); }
  /// Devices per group.
  constexpr std::int64_t members(const mesh& m) const {
    std::int64_t n = 1;
    for (const auto& e : axes) n *= m.size(e.axis);
    return n;
  }
  /// Does an all_to_all gather or slice several dimensions?
  constexpr bool several() const { return kind == all_to_all && gathered == no_dim; }
  /// What an all_to_all gathers.
  constexpr layout gathers() const {
    if (several()) return from;
    layout l;
    for (const auto& e : axes) l.push_back(e.axis, gathered);
    return l;
  }
  /// Do axes and dimensions fit together? Each axis is there once, what is taken `from` axes goes
  /// to the same ones, and no dimension is both gathered and sliced.
  constexpr bool is_consistent() const {
    const bool moves = kind == all_to_all;
    if (!moves && !(kind == permute && map.form == device_map::renumbered)) return each_once(axes);
    const layout taken = moves ? gathers() : from;
    bool fits = each_once(axes) && each_once(taken) && set_of(taken) == along();
    for (const auto& g : taken)
      for (const auto& s : axes) fits = fits && (!moves || g.dim != s.dim);
    return fits;
  }
  /// The member (numbered by `axes`) that sends to member `to` of a permute, or nobody.
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
  /// The shape that a value has afterwards; extents that the axes do not divide become -1.
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

/// Bytes that a device sends in a collective of a group of `members`, of an operand of `bytes` on
/// each device: all_gather n - 1 times the operand, which is (n - 1)/n of the result, all_reduce
/// 2 (n - 1)/n of the operand, reduce_scatter and all_to_all (n - 1)/n, a permute all of it (of a
/// shift: those that have somebody to send to). Where that is no integer, the next one.
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

/// Messages that a member of a group along one axis sends: to each of the others, an all_reduce to
/// each twice, a permute one.
constexpr std::int64_t messages_sent(collective::kind_type kind, std::int64_t members) {
  if (members <= 1 || kind == collective::all_slice) return 0;
  if (kind == collective::permute) return 1;
  return (members - 1) * (kind == collective::all_reduce ? 2 : 1);
}

/// How many collectives of each kind, those inside of loops times their trip counts; all_slice does
/// not communicate and is not counted.
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
