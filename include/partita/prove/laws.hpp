/// The laws of ops: their tile maps say of which pieces of operands an op makes which piece of its
/// results.
#pragma once

#include <cstdint>

#include <partita/ir/halo.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/ir/tile_map.hpp>
#include <partita/prove/piece.hpp>
#include <partita/prove/terms.hpp>

namespace partita::prove_detail {

/// Coordinates that values are reduced over before they are what they should be: of axes of the
/// mesh, and of loops. Of `bound_axis`, they are reduced over it already.
struct pending {
  std::uint32_t axes = 0;
  combiner combine = combiner::stack;

  constexpr bool any() const { return axes != 0; }
  constexpr bool contains(int axis) const { return (axes >> axis & 1u) != 0; }
  /// False: these are pending with another combiner, or some of the others are already.
  constexpr bool add(std::uint32_t more, combiner by) {
    if (more == 0) return true;
    if ((axes & more & ~(1u << bound_axis)) != 0 || (axes != 0 && combine != by)) return false;
    axes |= more;
    combine = by;
    return true;
  }
  constexpr void remove(int axis) {
    axes &= ~(1u << axis);
    if (axes == 0) combine = combiner::stack;
  }
  friend constexpr bool operator==(const pending&, const pending&) = default;
};

/// Have a dimension of one view and one of another one the same digits?
constexpr bool same_along(const view& a, int d, const view& b, int e) {
  int mine = 0, theirs = 0;
  const int end = a.find(d, mine), other = b.find(e, theirs);
  if (end - mine != other - theirs) return false;
  for (; mine < end; ++mine, ++theirs) {
    const digit &x = a.digits[mine], &y = b.digits[theirs];
    if (x.dim != y.dim || x.extent != y.extent || x.stride != y.stride) return false;
  }
  return true;
}
/// Two shapes of one tensor: how the first sees the second one, dimension by dimension. (Along
/// others than these, both repeat.)
constexpr bool match_dimensions(const view& a, const shape& of_a, const view& b, const shape& of_b,
                                view& seen) {
  if (a.dims != b.dims) return false;
  for (int dim = 0; dim < a.dims; ++dim)
    if (a.start[dim] != b.start[dim] || a.beyond[dim] != b.beyond[dim]) return false;
  seen = view(of_a.rank, of_b.rank);
  unsigned used = 0;
  for (int d = 0; d < of_a.rank; ++d) {
    int e = 0;
    const auto fits = [&] {
      return (used >> e & 1u) == 0 && of_a.extents[d] == of_b.extents[e] && same_along(a, d, b, e);
    };
    while (e < of_b.rank && !fits()) ++e;
    if (e == of_b.rank && !a.repeats(d)) return false;
    if (e == of_b.rank) continue;
    used |= 1u << e;
    seen.add(d, e, of_a.extents[d], 1);
  }
  for (int e = 0; e < of_b.rank; ++e)
    if ((used >> e & 1u) == 0 && !b.repeats(e)) return false;
  for (int i = 0; i < a.count; ++i)
    if (a.digits[i].owner < 0) return false;
  return true;
}
/// How a tensor that the source sees as `whole` sees the term of a part of it. Along a dimension
/// where a term is the same, a part that reaches beyond is seen as it is in the term.
constexpr bool find_whole(const meanings& all, const operand_term& whole, const shape& s,
                          const operand_term& part, view& seen) {
  const term& of = all.terms[part.term];
  if (of.alias == whole && of.shape == s) {
    seen = view(s);
    return true;
  }
  if (part.view < 0) return false;
  const view& source = all.views[whole.view];
  if (whole.term != part.term)
    return of.alias.term == whole.term &&
           match_dimensions(source, s, all.views[of.alias.view], of.shape, seen);
  seen = source;
  if (whole.view != of.own || of.shape != s) return true;
  seen = view(s);
  for (int d = 0; d < s.rank; ++d)
    if (source.repeats(d) && !all.views[part.view].sees_along(d)) seen.drop(d);
  return true;
}
/// The piece of each of its dimensions that a part holds.
constexpr bool find_pieces(const meanings& all, const operand_term& whole, const shape& s,
                           const operand_term& part, piece* pieces) {
  view seen;
  return part.view >= 0 && find_whole(all, whole, s, part, seen) &&
         relative_view(seen, s, all.views[part.view], all.terms[part.term].shape,
                       all.own(part.term))
             .find(pieces);
}

/// What is the same everywhere may be reduced in shares: along these axes, by so many devices.
struct repeat_shares {
  std::uint32_t axes = 0;
  std::int64_t devices = 1;
  std::int64_t needed = 1;  ///< how often less than in the source it is reduced, if a law says so
};

/// Has an op a tile map? Of others it is known only that they make the same of the same operands.
constexpr bool has_laws(const op_def& d) {
  return d.role != op_role::compute || d.elementwise || d.identity || d.collective ||
         d.tile_map != &no_factors;
}

/// Does an operand say only where the others go? (What the identity is combined with stays as it
/// is, wherever that is.)
constexpr bool says_where(const site& at, int operand) {
  return at.def().id == def<op::scatter>.id && operand == at.operand_count() - 2;
}

/// Room for what a law looks at, from op to op.
struct law_room {
  struct operand_dims {
    unsigned in_factor = 0;  ///< those that have a factor, as bits
    bool empty = false;      ///< has it no elements?
  };

  vec<piece> pieces;     ///< by operand and dimension
  vec<operand_dims> of;  ///< by operand
  vec<piece> of_factor;
  vec<piece> found;  ///< see contraction_law
  vec<std::int64_t> used;
  vec<int> in_factor, later;
  vec<std::int64_t> attrs;
  vec<tensor_type> types;
};

/// One op of the source, asked for the results that the same op has on pieces of its operands.
///
/// Law       each entry of a tile map is a theorem about its op, see ir/tile_map.hpp
class op_law {
 public:
  /// `whole`: how the op sees the terms of its operands; `parts`: what the local op is given.
  constexpr op_law(const meanings& all, law_room& room, int of, const factor_table& map,
                   const site& local, span<const operand_term> given)
      : all_(all),
        of_(all.terms[of]),
        source_(of_.at),
        map_(map),
        factors_(map.factors_of(of_.factors)),
        count_(map.ops[of_.factors].count),
        composed_(map.ops[of_.factors].composed),
        local_(local),
        given_(given),
        pieces_(room.pieces),
        operands_(room.of),
        of_factor_(room.of_factor),
        attrs_(room.attrs) {}

  text reason;   ///< why there is no result
  int near = 2;  ///< how much was found before that: operands, loops, attributes

  /// A dimension of an operand and of the result is not that of the source's op, but the rows of it
  /// that a device has.
  struct cut_rows {
    const piece* rows = nullptr;
    int dim = no_dim;
    int operand = -1;  ///< which one, if one has them
    bool result = false;
  };
  span<const cut_rows> cuts;

  /// By operand, where it is pieces that start anywhere (see moved_piece), or -1: it is given as if
  /// these lay next to each other, in the order of the devices' numbers.
  span<const int> moved;
  /// The results are pieces that start so, along dimensions of theirs.
  vec<moved_piece::move> results_moved;

  /// The first operand is that of one device and the identity on others, as it is pending: then
  /// loops that see it more than once may be split along these axes, and no others.
  pending input;

  /// If set, the loop over a factor whose results are operands again, or whose pieces lack what is
  /// before them, may be cut: the number of the piece, as digits of axes. (One such loop.)
  piece* joined = nullptr;
  bool same_attributes = true;  ///< must they be those of the source's op?

  /// If set, devices that each have a piece of what is the same everywhere, and runs on.
  const device_row* repeated = nullptr;
  bool some_cut = false;  ///< could it be set?

  /// Axes whose devices share what is reduced and the same everywhere; so often less each has it.
  repeat_shares shares;

  /// Says why.
  template <class... Parts>
  constexpr bool no(const Parts&... parts) {
    reason = concat(parts...);
    return false;
  }

  /// The views of the results, and what is pending besides what was.
  constexpr bool apply(vec<view>& results, pending& sums) {
    if (!find_all_pieces()) return false;
    std::uint32_t split = 0;
    for (int f = 0; f < count_; ++f)
      if (needs_others(f) ? !is_joined(f)
          : at(f).located ? !starts_once(f, split)
                          : !check(f, sums))
        return false;
    if (split != input.axes || !sums.add(split, input.combine))
      return no("an operand that is seen more than once is not that of one device");
    if (!rest_is_whole()) return false;
    ++near;
    if (!find_results(results)) return false;
    for (const view& v : results)
      for (int i = 0; i < v.count; ++i)
        if (v.digits[i].owner < 0 && sums.contains(axis_of(v.digits[i])))
          return no("it holds other pieces where it is to be reduced");
    for (const auto& m : results_moved)
      for (int i = 0; i < m.row.count; ++i)
        if (sums.contains(m.row.axis[i]))
          return no("it holds other pieces where it is to be reduced");
    return true;
  }
  /// The same before it is summed over the loops that are plain: a view whose dimensions are those
  /// of the result and these loops, which are bound.
  constexpr bool apply_unsummed(view& product, pending& sums) {
    if (!find_all_pieces()) return false;
    for (int f = 0; f < count_; ++f)
      if (!is_summed(f) && !check(f, sums)) return false;
    vec<view> results;
    if (!rest_is_whole() || !find_results(results) || results_moved.size() > 0) return false;
    const view& made = results[0];
    product = made;
    for (int f = 0; f < count_; ++f)
      if (is_summed(f) && !add_unsummed(f, product)) return false;
    return product.good();
  }
  constexpr bool is_summed(int f) const {
    return !in_some_result(f) && at(f).combine == combiner::add && !at(f).halo;
  }

 private:
  const meanings& all_;
  const term& of_;
  const site& source_;
  const factor_table& map_;
  const factor* factors_;
  int count_;
  bool composed_;
  const site& local_;
  span<const operand_term> given_;  ///< what the local op is given
  vec<piece>& pieces_;              ///< see law_room
  vec<law_room::operand_dims>& operands_;
  vec<piece>& of_factor_;
  vec<std::int64_t>& attrs_;
  std::uint64_t taps_counted_ = 0;  ///< by factor, see counts_taps

  constexpr bool find_all_pieces() {
    const int count = source_.operand_count();
    const auto room = static_cast<std::size_t>(count) * max_rank;
    if (pieces_.size() < room) pieces_.resize(room);
    operands_.assign(static_cast<std::size_t>(count), {});
    for (int i = 0; i < count; ++i) {
      const operand_term& whole = all_.terms.operand(of_, i);
      const operand_term& alias = all_.terms[given_[i].term].alias;
      operands_[i].empty = operand_type(i).shape.has_no_elements();
      if (operands_[i].empty) {  // none are any
        for (int d = 0; d < operand_type(i).shape.rank; ++d) {
          pieces_[i * max_rank + d] = piece();
          pieces_[i * max_rank + d].free = true;
        }
        continue;
      }
      if (!find_pieces(all_, whole, operand_type(i).shape, given_[i],
                       pieces_.data() + i * max_rank))
        return no("operand ", i,
                  alias.term >= 0 ? " is reshaped" : " is no piece of what it is in the source");
    }
    ++near;
    attrs_.clear();
    for (auto a : source_.attrs()) attrs_.push_back(a);
    of_factor_.clear();
    taps_counted_ = 0;
    for (int f = 0; f < count_; ++f) {
      piece each;
      if (!piece_of(f, each)) return false;
      of_factor_.push_back(each);
    }
    ++near;
    return true;
  }
  constexpr bool find_results(vec<view>& results) {
    if (same_attributes && !same_elements(span<const std::int64_t>(attrs_), local_.attrs()))
      return no("the attributes differ from those of its piece");
    results.clear();
    results.reserve(static_cast<std::size_t>(source_.result_count()));
    for (int r = 0; r < source_.result_count(); ++r)
      if (!add_result(r, results)) return false;
    return true;
  }
  /// (Of a part of a dimension, nothing goes over to the next major part.)
  constexpr bool add_unsummed(int f, view& product) const {
    const piece& mine = of_factor_[f];
    const int dim = product.dims++;
    bool part = false;
    for (int i = 0; i < source_.operand_count(); ++i)
      part = part || (dim_of(f, i) != no_dim && !is_alone(f, i));
    if ((mine.free && at(f).size != 1) || (part && !mine.lies_inside(at(f).size))) return false;
    product.start[dim] = mine.start;
    product.beyond[dim] = all_identity(f) ? mine.beyond : outside::unfilled(mine.beyond);
    for (int i = 0; i < mine.count; ++i) {
      const digit& each = mine.digits[i];
      product.add(each.owner < 0 ? each.owner : on_axis(bound_axis), dim, each.extent, each.stride);
    }
    return true;
  }

  constexpr int whole_view(int i) const { return all_.terms.operand(of_, i).view; }
  constexpr const factor& at(int f) const { return factors_[f]; }
  constexpr int dim_of(int f, int end) const { return map_.dim_of(factors_[f], end); }
  constexpr const tensor_type& operand_type(int i) const { return source_.operand_type(i); }
  constexpr const tensor_type& result_type(int r) const { return source_.result_type(r); }
  constexpr std::int64_t local_extent(int i, int d) const {
    return local_.operand_type(i).shape.extents[d];
  }

  /// The positions of a dimension of an operand or a result (end -1 - r) that stand in no factor:
  /// the most minor part of a composed one.
  constexpr std::int64_t unfactored(int d, int end) const {
    if (!composed_) return 1;
    std::int64_t n = 1;
    for (int g = 0; g < count_; ++g)
      if (dim_of(g, end) == d) {
        if (at(g).halo) return 1;  // its extent is that of the result
        n *= at(g).size;
      }
    const shape& s = end >= 0 ? operand_type(end).shape : result_type(-1 - end).shape;
    return n == 0 || s.extents[d] % n != 0 ? 1 : s.extents[d] / n;
  }
  /// The positions of a dimension that the minor parts of it take, behind factor f.
  constexpr std::int64_t weight(int f, int end) const {
    if (!composed_) return 1;
    std::int64_t n = unfactored(dim_of(f, end), end);
    for (int g = f + 1; g < count_; ++g)
      if (dim_of(g, end) == dim_of(f, end)) n *= at(g).size;
    return n;
  }
  constexpr bool is_major(int f, int end) const {
    for (int g = 0; composed_ && g < f; ++g)
      if (dim_of(g, end) == dim_of(f, end)) return false;
    return true;
  }
  /// The part of a piece of a composed dimension that belongs to one factor.
  constexpr bool restricted(const piece& of, int f, int end, piece& to) const {
    to = of;
    if (of.free) return true;
    return part_of(of, weight(f, end), at(f).size, is_major(f, end), to);
  }
  /// Of a piece, the positions in steps of `unit`, so many of them.
  static constexpr bool part_of(const piece& of, std::int64_t unit, std::int64_t size, bool major,
                                piece& to) {
    to = of;
    to.count = 0;
    to.start = of.start / unit;
    if (!major) to.start %= size;
    if (of.start < 0) return false;
    bool below = false;  // elements of a step stand together
    for (int i = 0; i < of.count; ++i) {
      digit d = of.digits[i];
      if (d.stride <= 0 || (below && d.owner >= 0 && d.stride >= unit)) return false;
      below = below || (d.owner >= 0 && d.stride < unit);
      if (d.stride < unit) {  // its minor part belongs to another factor
        if (d.stride * d.extent <= unit) continue;
        if (d.owner < 0 || unit % d.stride != 0 || d.extent % (unit / d.stride) != 0) return false;
        d.extent /= unit / d.stride;
        d.stride = unit;
      }
      if (d.stride % unit != 0) return false;
      if (!major && d.stride >= unit * size) continue;
      if (!major && d.stride * d.extent > unit * size) {
        if (d.owner < 0 || (unit * size) % d.stride != 0) return false;
        const std::int64_t kept = unit * size / d.stride;
        if (d.extent % kept != 0) return false;
        d.extent = kept;
      }
      to.add(d.owner, d.extent, d.stride / unit);
    }
    return to.good();
  }

  /// The piece that all operands with a factor hold. They agree, but for what repeats.
  constexpr bool piece_of(int f, piece& found) {
    found.free = true;
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim) continue;
      operands_[i].in_factor |= 1u << d;
      if (at(f).halo) continue;
      if (is_moved(i, d) != nullptr) return no("dimension ", d, " of operand ", i, " is moved");
      const piece& given = pieces_[i * max_rank + d];
      piece part;
      const bool alone = is_alone(f, i);
      if (!alone && !restricted(given, f, i, part))
        return no("the piece of dimension ", d, " of operand ", i, " cuts its factors");
      const piece& mine = alone ? given : part;
      if (mine.free) continue;
      if (alone && mine.local_extent() != local_extent(i, d) && local_extent(i, d) > 0)
        return no("dimension ", d, " of operand ", i, " repeats");
      if (found.free) {
        found = mine;
      } else if (!found.same_positions(mine)) {
        return no("dimension ", d, " of operand ", i,
                  " does not hold the positions that the other "
                  "operands hold");
      } else if (found.beyond != mine.beyond) {
        found.beyond = outside::unknown;
      }
    }
    if (at(f).halo) return halo_piece(f, found);
    return has_operand(f) || made_whole(f, found);
  }

  constexpr bool has_operand(int f) const {
    for (int i = 0; i < source_.operand_count(); ++i)
      if (dim_of(f, i) != no_dim) return true;
    return false;
  }
  /// What no operand tells the extent of is as large as in the source.
  constexpr bool made_whole(int f, piece& found) {
    if (source_.operand_count() == 0) {  // counts on
      found = piece();
      found.add(0, local_.result_type(0).shape.extents[dim_of(f, -1)], 1);
      return true;
    }
    for (int r = 0; r < source_.result_count(); ++r) {
      const int d = dim_of(f, -1 - r);
      if (d != no_dim && result_type(r).shape.extents[d] != local_.result_type(r).shape.extents[d])
        return no("the result has another extent");
    }
    found = piece();
    found.add(0, at(f).size, 1);
    return true;
  }
  constexpr bool in_some_result(int f) const {
    for (int r = 0; r < source_.result_count(); ++r)
      if (dim_of(f, -1 - r) != no_dim) return true;
    return false;
  }
  /// Of what is the same everywhere, a piece is that of any device: of those of the row, in order.
  /// (What there is more of than in the source stands behind the end. What runs along the same
  /// elements is not the same everywhere.)
  constexpr bool is_one_of_row(int f) {
    const int d = source_.operand_count() > 0 ? dim_of(f, 0) : no_dim;
    if (d == no_dim || at(f).carry == combiner::stack) return false;
    const std::int64_t here = local_extent(0, d);
    some_cut = some_cut || (here > 0 && here < at(f).size);
    if (here >= at(f).size ? at(f).backwards && here > at(f).size : repeated == nullptr)
      return false;
    piece& mine = of_factor_[f];
    mine = piece();
    mine.add(0, here, 1);
    for (int i = 0; here < at(f).size && i < repeated->count; ++i)
      mine.add(on_axis(repeated->axis[i]), repeated->extent[i], here * repeated->step(i));
    return true;
  }
  /// (Of what is extreme, a position tells which of equal values is meant.)
  constexpr bool commutes() const {
    if (source_.def().id != def<op::fold>.id) return true;
    return op::fold::parts(source_.attrs(), static_cast<std::size_t>(source_.operand_count()))
        .commutes;
  }
  constexpr bool needs_others(int f) const { return at(f).again || at(f).carry != combiner::stack; }
  /// Is all of such a loop here, or one piece of it on each device? (Running on, what stands behind
  /// the end changes nothing before it.)
  constexpr bool is_joined(int f) {
    const piece& mine = of_factor_[f];
    const std::int64_t size = at(f).size;
    if (mine.free && !is_one_of_row(f)) {
      pending none;
      return free_is_whole(f, none) && !none.any();
    }
    const std::int64_t end = mine.covered();
    const bool carries = at(f).carry != combiner::stack;
    if (mine.whole(size)) return true;
    if ((carries || !commutes()) && !mine.in_order())
      return no("what is combined in order stands in another one");
    const bool ends = end == size ||
                      (end > size && carries && (!at(f).backwards || all_identity(f, at(f).carry)));
    bool cut = false;
    for (int i = 0; i < mine.count; ++i) cut = cut || mine.digits[i].owner < 0;
    if (ends && !cut) return true;
    if (joined == nullptr || joined->count > 0 || !ends) return no("an operand is needed whole");
    const std::int64_t block = mine.local_extent();
    for (int i = 0; i < mine.count; ++i) {
      const digit& each = mine.digits[i];
      if (each.owner >= 0 ? each.stride >= block : each.stride % block != 0)
        return no("an operand is needed whole");
      if (each.owner < 0) joined->add(each.owner, each.extent, each.stride / block);
    }
    return true;
  }
  /// Is a loop right that sees the first operand more than once?
  constexpr bool starts_once(int f, std::uint32_t& split) {
    pending of_loop;
    if (!check(f, of_loop)) return false;
    split |= of_loop.axes;
    return true;
  }
  /// Is the loop over a factor right? What is reduced may be pending.
  constexpr bool check(int f, pending& sums) {
    const piece& mine = of_factor_[f];
    const std::int64_t size = at(f).size;
    if (at(f).offset && !mine.free && !mine.whole(size)) return no("it depends on the position");
    if (in_some_result(f)) {
      for (int r = 0; r < source_.result_count(); ++r)
        if (dim_of(f, -1 - r) == no_dim && !mine.free && !mine.whole(size))
          return no("a result needs all of what is given in pieces");
      return true;
    }
    if (mine.free) return free_is_whole(f, sums);
    if (at(f).combine == combiner::stack)
      return mine.whole(size) || no("an operand is needed whole");
    const std::int64_t end = mine.covered();
    if (end < size) return no("the pieces do not make up what is reduced");
    if (end > size && !counts_taps(f) && !all_identity(f))
      return no("what stands behind the end is reduced, too");
    std::uint32_t axes = 0;
    for (int i = 0; i < mine.count; ++i)
      if (mine.digits[i].owner < 0) axes |= 1u << axis_of(mine.digits[i]);
    return sums.add(axes, at(f).combine) || no("it reduces what is pending already");
  }
  /// Do all operands that are combined hold the identity behind the end of what is reduced?
  constexpr bool all_identity(int f) const { return all_identity(f, at(f).combine); }
  constexpr bool all_identity(int f, combiner combine) const {
    if (!source_.def().reduces_identity) return false;
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim || operand_type(i).shape.has_no_elements() || says_where(source_, i))
        continue;
      if (!is_alone(f, i) ||
          !all_.is_identity(pieces_[i * max_rank + d].beyond, combine, operand_type(i).element))
        return false;
    }
    return true;
  }
  /// Is a dimension made of this factor alone?
  constexpr bool is_alone(int f, int end) const {
    for (int g = 0; composed_ && g < count_; ++g)
      if (g != f && dim_of(g, end) == dim_of(f, end)) return false;
    return unfactored(dim_of(f, end), end) == 1;
  }
  /// Reduced, and the same everywhere: as often as in the source.
  constexpr bool free_is_whole(int f, pending& sums) {
    if (at(f).size == 1) return true;
    for (int i = 0; i < source_.operand_count(); ++i) {
      const int d = dim_of(f, i);
      if (d == no_dim || operands_[i].empty) continue;
      const std::int64_t here = local_extent(i, d), all = operand_type(i).shape.extents[d];
      if (here == all) continue;
      if (here > 0 && all % here == 0 && shares.needed == 1) shares.needed = all / here;
      if (at(f).combine == combiner::stack || here * shares.devices != all ||
          !sums.add(shares.axes, at(f).combine))
        return no("dimension ", d, " of operand ", i, " repeats another number of times");
      return true;
    }
    return true;
  }
  /// What cuts a dimension of an operand, or of the result (-1), or null.
  constexpr const cut_rows* cut_of(int operand, int d) const {
    for (const cut_rows& each : cuts)
      if (each.dim == d && (operand < 0 ? each.result : each.operand == operand)) return &each;
    return nullptr;
  }
  /// Dimensions without a factor stay whole.
  constexpr bool rest_is_whole() {
    for (int i = 0; i < source_.operand_count(); ++i) {
      const shape& s = operand_type(i).shape;
      if (operands_[i].empty) continue;
      for (int d = 0; d < s.rank; ++d) {
        if (const cut_rows* cut = cut_of(i, d); cut != nullptr) {
          if (const piece& mine = pieces_[i * max_rank + d];
              !mine.free && !mine.same_digits(*cut->rows))
            return no("operand ", i, " is not the rows that the index counts from");
          continue;
        }
        if ((operands_[i].in_factor >> d & 1u) != 0) {
          piece minor;
          if (const std::int64_t n = unfactored(d, i);
              n > 1 && !pieces_[i * max_rank + d].free &&
              (!part_of(pieces_[i * max_rank + d], 1, n, false, minor) || !minor.whole(n)))
            return no("a part of dimension ", d, " of operand ", i, " is needed whole");
          continue;
        }
        const piece& mine = pieces_[i * max_rank + d];
        if (local_extent(i, d) != s.extents[d] || (!mine.free && !mine.whole(s.extents[d])))
          return no("dimension ", d, " of operand ", i, " is needed whole",
                    has_laws(source_.def()) ? "" : ", for the op has no tile map");
      }
    }
    return true;
  }
  /// Is a factor a whole dimension wherever it is one? Then so are positions that go around it.
  constexpr bool goes_around_alone(int f, int r) const {
    bool alone = !at(f).halo && is_alone(f, -1 - r);
    for (int i = 0; i < source_.operand_count(); ++i)
      alone = alone && (dim_of(f, i) == no_dim || is_alone(f, i));
    return alone;
  }
  constexpr bool add_result(int r, vec<view>& results) {
    const shape& s = result_type(r).shape;
    const shape& local = local_.result_type(r).shape;
    if (local.rank != s.rank) return no("the result has another rank");
    view v(s.rank, s.rank);
    for (int d = 0; d < s.rank; ++d) {
      if (const cut_rows* cut = cut_of(-1, d); cut != nullptr) {
        for (int i = 0; i < cut->rows->count; ++i) {
          const digit& each = cut->rows->digits[i];
          v.add(each.owner < 0 ? each.owner : d, d, each.extent, each.stride);
        }
        continue;
      }
      bool any = false;
      std::int64_t extent = 1;
      for (int f = 0; f < count_; ++f) {
        if (dim_of(f, -1 - r) != d) continue;
        any = true;
        const std::int64_t unit = weight(f, -1 - r);
        piece mine = of_factor_[f];
        if (mine.free && at(f).size == s.extents[d]) {
          extent = -1;
          continue;
        }
        if (mine.free) {  // a part of a dimension: whole, or of another extent
          mine = piece();
          mine.add(0, at(f).size, 1);
        }
        v.start[d] += mine.start * unit;
        if (outside::turns(mine.beyond) && goes_around_alone(f, r))
          v.beyond[d] = outside::unfilled(mine.beyond);
        for (int i = 0; i < mine.count; ++i) {
          const digit& each = mine.digits[i];
          v.add(each.owner < 0 ? each.owner : d, d, each.extent, each.stride * unit);
        }
        extent *= mine.local_extent();
      }
      if (!any) v.add(d, d, s.extents[d], 1);
      if (any && unfactored(d, -1 - r) > 1) {
        v.add(d, d, unfactored(d, -1 - r), 1);
        extent *= unfactored(d, -1 - r);
      }
      const bool same = local.extents[d] == s.extents[d];
      if (!any ? !same : extent >= 0 && extent != local.extents[d] && !(same && s.extents[d] == 0))
        return no("dimension ", d, " of the result has extent ", local.extents[d],
                  ", of its pieces ", any ? extent : s.extents[d]);
    }
    if (!v.good()) return no("the result is too complicated");
    v.normalize(s);
    results.push_back(v);
    return true;
  }

  // ---- Halos ------------------------------------------------------------------------------------

  /// The number of a piece, of coordinates along axes: major to minor.
  struct coordinates {
    int count = 0;
    digit axes[piece::most] = {};
    std::int64_t pieces = 1, step = 0;
  };
  /// See halo_context.
  struct growth {
    bool possible, apart;
    int alone;
  };
  /// The piece of the results, where those of the operands overlap.
  constexpr bool halo_piece(int f, piece& found) {
    const int to = dim_of(f, -1);
    found = piece();
    coordinates along;
    for (int k = 0; k < source_.operand_count(); ++k) {
      const int d = dim_of(f, k);
      if (d == no_dim) continue;
      if (k >= max_halo_operands) return no("operand ", k, " is cut");
      const piece& mine = pieces_[k * max_rank + d];
      if (!mine.free && along.count == 0 && !find_coordinates(mine, along))
        return no("dimension ", d, " of operand ", k, " is no row of pieces");
    }
    // As in the source, or with what was padded: then all extents have grown in one ratio.
    const std::int64_t extent = loop_extent(f);
    const vec<std::int64_t> kept = attrs_;
    if (cut_piece(f, along, extent, found)) return true;
    const std::int64_t grown = to != no_dim ? local_.result_type(0).shape.extents[to] * along.pieces
                                            : grown_window(f, along.pieces);
    attrs_ = kept;
    if (grown > extent && cut_piece(f, along, grown, found)) return true;
    // Or each by itself.
    const int d = to == no_dim && source_.operand_count() > 1 ? dim_of(f, 1) : no_dim;
    if (to == no_dim && d == no_dim) return false;
    attrs_ = kept;
    const std::int64_t each = to == no_dim ? local_extent(1, d)
                              : growth_of(f).alone == 1 && along.count > 0
                                  ? along.step
                                  : local_.result_type(0).shape.extents[to];
    const std::int64_t all = saturating_multiply(each, along.pieces);
    if (!cut_piece(f, along, all, found, true)) return false;
    if (to == no_dim && all == operand_type(1).shape.extents[d] && f < 64)
      taps_counted_ |= std::uint64_t{1} << f;
    return true;
  }
  /// Are the positions of a loop that is reduced those of what is cut, of which there are no more
  /// than there were?
  constexpr bool counts_taps(int f) const { return f < 64 && (taps_counted_ >> f & 1) != 0; }
  constexpr std::int64_t loop_extent(int f) const {
    const int to = dim_of(f, -1);
    return to == no_dim ? at(f).size : result_type(0).shape.extents[to];
  }
  /// How many positions a loop has that is reduced, if what is reduced has grown; else 0.
  constexpr std::int64_t grown_window(int f, std::int64_t pieces) const {
    const int d = source_.operand_count() < 2 ? no_dim : dim_of(f, 1);
    if (d == no_dim) return 0;
    const std::int64_t size = operand_type(1).shape.extents[d];
    const std::int64_t all =
        saturating_multiply(saturating_multiply(local_extent(1, d), pieces), at(f).size);
    return size == 0 || all % size != 0 ? 0 : all / size;
  }
  /// The same, where the loop has `grown` positions; `apart`: of what is cut, the others having
  /// grown by themselves.
  constexpr bool cut_piece(int f, const coordinates& along, std::int64_t grown, piece& found,
                           bool apart = false) {
    const int to = dim_of(f, -1);
    found = piece();
    vec<tensor_type> types;
    for (int k = 0; k < source_.operand_count(); ++k) types.push_back(operand_type(k));
    tensor_type result = result_type(0);
    halo_context c{types, result, {no_dim, no_dim}, to, along.pieces, attrs_};
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      c.operand_dims[k] = dim_of(f, k);
    if ((apart || grown != loop_extent(f)) && !stretched(f, c, types, result, along, grown, apart))
      return false;
    if (along.count == 0) {
      for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
        const int d = c.operand_dims[k];
        if (d == no_dim) continue;
        if (const piece& mine = pieces_[k * max_rank + d];
            mine.free ? local_extent(k, d) != c.operand_extent(k)
                      : !mine.whole(c.operand_extent(k)))
          return no("dimension ", d, " of operand ", k, " is needed whole");
      }
      if (to != no_dim && local_.result_type(0).shape.extents[to] != grown)
        return no("the result has another extent");
      found.add(0, grown, 1);
      return true;
    }
    source_.def().halo(c);
    if (!c.possible) return no("it cannot be cut into ", along.pieces, " pieces");
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      if (c.operand_dims[k] != no_dim && !holds(c, k, along)) return false;
    if (to == no_dim) {  // each piece of what is reduced once
      if (grown % along.pieces != 0) return no("it cannot be cut into ", along.pieces, " pieces");
      found.add(0, grown / along.pieces, 1);
      add_axes(found, along, grown / along.pieces);
      return true;
    }
    if (c.made == 0) {
      if (grown % along.pieces != 0 ||
          local_.result_type(0).shape.extents[to] != grown / along.pieces)
        return no("the result has another extent");
      found.add(0, grown / along.pieces, 1);
      add_axes(found, along, grown / along.pieces);
    } else {
      return made_around(c, along, grown, found);
    }
    return true;
  }
  /// What the op says of more positions, as it is in the source.
  constexpr growth growth_of(int f) const {
    vec<tensor_type> types;
    for (int k = 0; k < source_.operand_count(); ++k) types.push_back(operand_type(k));
    vec<std::int64_t> attrs = attrs_;
    halo_context c{types, result_type(0), {no_dim, no_dim}, dim_of(f, -1), 1, attrs};
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k)
      c.operand_dims[k] = dim_of(f, k);
    source_.def().stretch(c);
    return {c.possible, c.apart, c.alone};
  }
  /// The op with more positions, which operands hold what it leaves out at.
  constexpr bool stretched(int f, halo_context& c, vec<tensor_type>& types, tensor_type& result,
                           const coordinates& along, std::int64_t grown, bool apart) {
    const std::int64_t extent = loop_extent(f);
    const std::int64_t pieces = c.pieces;
    const growth before = growth_of(f);
    if (!before.possible || (apart && !before.apart))
      return no("it cannot be done with more positions");
    const bool by_itself = apart && before.alone == 1 && c.result_dim != no_dim;
    if (by_itself && !grow_apart(c, types, along, grown)) return false;
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
      if (c.operand_dims[k] == no_dim || by_itself) continue;
      std::int64_t& size = types[k].shape.extents[c.operand_dims[k]];
      if (apart) {
        const bool taps = c.result_dim == no_dim && k == 1;
        if (!taps && pieces != 1) continue;
        const std::int64_t here = taps ? grown : local_extent(k, c.operand_dims[k]);
        if (here < size) return no("operand ", k, " is needed whole");
        size = here;
        continue;
      }
      if (extent == 0 || size * grown % extent != 0) return no("extents have grown apart");
      size = size / greatest_common_divisor(size, extent) * grown /
             (extent / greatest_common_divisor(size, extent));
    }
    if (c.result_dim != no_dim) result.shape.extents[c.result_dim] = grown;
    c.pieces = 1;
    c.grown = true;
    source_.def().stretch(c);
    if (!c.possible || (apart && !c.apart) || c.becomes != nullptr)
      return no("it cannot be done with more positions");
    for (int k = 0; k < max_halo_operands && k < source_.operand_count(); ++k) {
      if (c.operand_dims[k] == no_dim || c.ranges[k].fill == combiner::stack) continue;
      const piece& mine = pieces_[k * max_rank + c.operand_dims[k]];
      if (is_no_larger(k, c.operand_dims[k], c.operand_extent(k))) continue;
      if (!stands_beyond(mine.beyond, c.ranges[k], k))
        return no("behind the end of operand ", k, " stands something else");
    }
    c.pieces = pieces;
    return true;
  }
  /// The first operand and the result have grown alike, the second one by itself.
  constexpr bool grow_apart(const halo_context& c, vec<tensor_type>& types,
                            const coordinates& along, std::int64_t grown) {
    for (int k = 0; k < 2; ++k) {
      const int d = c.operand_dims[k];
      coordinates mine;
      if (d == no_dim || !find_coordinates(pieces_[k * max_rank + d], mine) ||
          mine.pieces != along.pieces)
        return no("operand ", k, " is not cut as the other one");
      const std::int64_t all = k == 0            ? grown
                               : mine.count == 0 ? local_extent(k, d)
                                                 : saturating_multiply(mine.step, mine.pieces);
      std::int64_t& size = types[k].shape.extents[d];
      if (all < size) return no("operand ", k, " is needed whole");
      size = all;
    }
    return true;
  }
  /// Does an operand of which so many elements are seen hold nothing behind the end? (What is the
  /// same everywhere is so there, too.)
  constexpr bool is_no_larger(int k, int d, std::int64_t seen) const {
    const piece& mine = pieces_[k * max_rank + d];
    const std::int64_t extent = operand_type(k).shape.extents[d];
    return mine.free ? seen == extent : mine.lies_inside(extent);
  }
  static constexpr std::int64_t magnitude(std::int64_t n) { return n < 0 ? -n : n; }
  static constexpr bool find_coordinates(const piece& of, coordinates& c) {
    for (int i = 0; i < of.count; ++i)
      if (of.digits[i].owner < 0) {
        int at = c.count++;
        for (; at > 0 && magnitude(c.axes[at - 1].stride) < magnitude(of.digits[i].stride); --at)
          c.axes[at] = c.axes[at - 1];
        c.axes[at] = of.digits[i];
      }
    if (c.count == 0) return true;
    c.step = c.axes[c.count - 1].stride;
    for (int i = c.count; i-- > 0;) {
      if (c.axes[i].stride != c.step * c.pieces) return false;
      c.pieces *= c.axes[i].extent;
    }
    return true;
  }
  static constexpr void add_axes(piece& to, const coordinates& c, std::int64_t step) {
    std::int64_t of = step * c.pieces;
    vec<digit> list;
    for (int i = 0; i < c.count; ++i) {
      of /= c.axes[i].extent;
      list.push_back({c.axes[i].owner, 0, c.axes[i].extent, of});
    }
    for (std::size_t i = 0; i < list.size(); ++i)
      to.add(list[i].owner, list[i].extent, list[i].stride);
  }
  /// Does an operand hold the pieces that an iteration needs?
  constexpr bool holds(const halo_context& c, int k, const coordinates& along) {
    const halo_range& r = c.ranges[k];
    if (r.inside) return holds_inside(c, k, along);
    if (is_moved(k, c.operand_dims[k]) != nullptr) return no("operand ", k, " is moved");
    piece want;
    want.start = r.first;
    want.add(0, r.length, 1);
    add_axes(want, along, r.step);
    const piece& given = pieces_[k * max_rank + c.operand_dims[k]];
    if (given.free ? local_extent(k, c.operand_dims[k]) != r.length : !given.same_digits(want))
      return no("dimension ", c.operand_dims[k], " of operand ", k,
                " does not hold the pieces and neighbours that are needed");
    const std::int64_t extent = c.operand_extent(k), last = r.first + (along.pieces - 1) * r.step;
    const bool below = r.first < 0 || last < 0;
    const bool above = r.first + r.length > extent || last + r.length > extent;
    if ((below || above) && !r.any && !stands_beyond(given.beyond, r, k))
      return no("beyond the ends of operand ", k, " stands something else");
    return true;
  }
  // Pieces that would reach beyond an end are moved until they do not.

  constexpr const moved_piece::move* is_moved(int k, int d) const {
    if (moved.size() == 0 || moved[k] < 0) return nullptr;
    const moved_piece& is = all_.moved[moved[k]];
    const int i = is.along(d);
    return i < 0 ? nullptr : is.moves.data() + i;
  }
  static constexpr device_row row_of(const coordinates& along) {
    device_row row;
    for (int i = 0; i < along.count; ++i) row.add(axis_of(along.axes[i]), along.axes[i].extent);
    return row;
  }
  /// Where the piece of an operand starts on a device of a row. False: other axes tell, too.
  constexpr bool start_of(int k, int d, const device_row& row, std::int64_t device,
                          std::int64_t& start) const {
    const piece& given = pieces_[k * max_rank + d];
    start = given.start;
    if (const moved_piece::move* const m = is_moved(k, d); m != nullptr) {
      std::int64_t at = 0;
      for (int i = 0; i < m->row.count; ++i) {
        if (!row.has(m->row.axis[i])) return false;
        at += row.coordinate(device, m->row.axis[i]) * m->row.step(i);
      }
      start = m->starts[static_cast<std::size_t>(at)];
      return true;
    }
    for (int i = 0; i < given.count; ++i) {
      const digit& each = given.digits[i];
      if (each.owner >= 0) continue;
      if (!row.has(axis_of(each))) return false;
      start += row.coordinate(device, axis_of(each)) * each.stride;
    }
    return true;
  }
  constexpr bool holds_inside(const halo_context& c, int k, const coordinates& along) {
    const halo_range& r = c.ranges[k];
    const int d = c.operand_dims[k];
    const piece& given = pieces_[k * max_rank + d];
    piece here;
    for (int i = 0; i < given.count; ++i)
      if (given.digits[i].owner >= 0) here.add(0, given.digits[i].extent, given.digits[i].stride);
    if (given.free || !here.whole(r.length)) return no("operand ", k, " repeats");
    const device_row row = row_of(along);
    for (std::int64_t i = 0; i < along.pieces; ++i) {
      std::int64_t start = 0;
      if (!start_of(k, d, row, i, start) || start != r.start(i, c.operand_extent(k)))
        return no("dimension ", d, " of operand ", k,
                  " does not hold the pieces, moved inside, that are needed");
    }
    return true;
  }
  /// The result is right where its piece is.
  constexpr bool made_around(const halo_context& c, const coordinates& along, std::int64_t grown,
                             piece& found) {
    const int to = c.result_dim;
    moved_piece::move m;
    m.dim = to;
    m.row = row_of(along);
    m.block = grown / along.pieces;
    if (grown % along.pieces != 0 || grown < result_type(0).shape.extents[to] ||
        (c.ranges[0].inside && grown > result_type(0).shape.extents[to]) ||
        source_.result_count() != 1)
      return no("pieces that are moved inside");
    for (std::int64_t i = 0; i < along.pieces; ++i) {
      const std::int64_t start = c.ranges[0].start(i, c.operand_extent(0));
      if (start % c.unit != 0) return no("pieces that are moved inside");
      m.starts.push_back(start / c.unit);
    }
    results_moved.push_back(m);
    found.add(0, c.made, 1);
    return true;
  }
  constexpr bool stands_beyond(std::int64_t beyond, const halo_range& r, int k) const {
    if (r.fill_operand >= 0)
      return beyond >= outside::first_value &&
             all_.scalars[static_cast<int>(beyond - outside::first_value)] ==
                 all_.scalar(given_[r.fill_operand]);
    if (r.fill == combiner::stack) return beyond == outside::wraps;
    return all_.is_identity(beyond, r.fill, operand_type(k).element);
  }
};

}  // namespace partita::prove_detail
