/// Contractions: ops that multiply, reduce or work element by element, represented by their loops,
/// with dimensions and operands in any order.
#pragma once

#include <cstdint>

#include <partita/prove/laws.hpp>
#include <partita/prove/movement.hpp>

namespace partita::prove_detail {

/// True if each position modulo the extent is reduced once on each device, wherever the shard
/// starts.
constexpr bool goes_around(const piece& mine, std::int64_t extent) {
  piece all;
  for (int i = 0; i < mine.count; ++i) {
    const digit& d = mine.digits[i];
    if (d.owner >= 0 || axis_of(d) == bound_axis)
      all.add(on_axis(bound_axis), d.extent, d.stride < 0 ? -d.stride : d.stride);
  }
  return all.covered() == extent;
}
/// True if a loop is completely reduced, by loops of a value and over axes. `identity`: true if the
/// padding is the identity of the combiner.
constexpr bool is_all(const piece& mine, std::int64_t size, bool identity, std::uint32_t& axes) {
  axes = 0;
  if (outside::turns(mine.beyond)) {
    const std::int64_t all = outside::modulus(mine.beyond, size);
    return goes_around(mine, all) && (all == size || identity);
  }
  for (int i = 0; i < mine.count; ++i) {
    const digit& d = mine.digits[i];
    if (d.owner < 0 && axis_of(d) != bound_axis) axes |= 1u << axis_of(d);
  }
  const std::int64_t end = mine.covered();
  return end == size || (end > size && identity);
}

/// Applies one op of the source to shards of its operands, with separate loops for each dimension
/// of the operands.
///
/// Law       If all operands see the same position of a loop of the source op, as a function of the
///           local op's loops and of the device, they see factors of the same product. The reduced
///           loops of the local op and the axes of the devices cover the reduced positions.
class contraction_law {
 public:
  /// `row` of `loops`: the local op's row; `swapped`: its two operands are exchanged.
  constexpr contraction_law(const meanings& all, law_room& room, int of, const factor_table& map,
                            const factor_table& loops, int row, bool swapped,
                            span<const operand_term> given)
      : all_(all),
        of_(all.terms[of]),
        map_(map),
        factors_(map.factors_of(of_.factors)),
        count_(map.ops[of_.factors].count),
        loops_(loops),
        loop_list_(loops.factors_of(row)),
        loop_count_(loops.ops[row].count),
        swapped_(swapped),
        given_(given),
        found_(room.found),
        used_(room.used),
        in_factor_(room.in_factor),
        later_(room.later) {}

  constexpr bool apply(int rank, view& result, pending& sums) {
    return find_all_pieces() && finish(rank, result, sums);
  }
  /// The same for factors that are already multiplied: a view whose dimensions are the loops.
  constexpr bool apply_to_product(const view& product, int rank, view& result, pending& sums) {
    if (!clear()) return false;
    for (int f = 0; f < factors(); ++f) {
      found_[f].free = false;
      found_[f].start = product.start[f];
      found_[f].beyond = product.beyond[f];
    }
    for (int i = 0; i < product.count; ++i) {
      const digit& d = product.digits[i];
      if (d.dim < 0) return false;
      found_[d.dim].add(d.owner, d.extent, d.stride);
    }
    return finish(rank, result, sums);
  }
  /// Computes the product before it is reduced over the local op's loops, which become bound.
  constexpr bool multiply(int rank, view& product) {
    if (factors() > max_rank || !find_all_pieces()) return false;
    start_loops();
    product = view(rank, factors());
    for (int f = 0; f < factors(); ++f) {
      const piece& mine = found_[f];
      if (mine.free && at(f).size != 1 && at(f).result_dim == no_dim) return false;
      product.start[f] = mine.start;  // the first position represents all repeated ones
      const bool zero = at(f).result_dim == no_dim && all_identity(f);
      product.beyond[f] = zero ? mine.beyond : outside::unfilled(mine.beyond);
      for (int i = 0; i < mine.count; ++i) {
        digit d = mine.digits[i];
        if (d.owner >= 0) {
          if (!use(f, d)) return false;
          const factor& local = loop(d.owner);
          if (local.result_dim == no_dim && local.combine != combiner::add) return false;
          d.owner = static_cast<std::int16_t>(local.result_dim == no_dim ? on_axis(bound_axis)
                                                                         : local.result_dim);
        }
        product.add(d.owner, f, d.extent, d.stride);
      }
    }
    return all_used() && product.good();
  }

 private:
  const meanings& all_;
  const term& of_;
  const factor_table& map_;
  const factor* factors_;
  int count_;
  const factor_table& loops_;
  const factor* loop_list_;
  int loop_count_;
  bool swapped_;
  span<const operand_term> given_;
  vec<piece>& found_;         ///< by factor of the source op; its digits refer to local loops
  vec<std::int64_t>& used_;   ///< by local loop: the extents of its digits
  vec<int>& in_factor_;       ///< by local loop: the only factor that it covers, or -1
  vec<int>& later_;           ///< operands that are inspected after the others
  std::int64_t repeats_ = 1;  ///< number of times that the source reduces a repeated value

  constexpr bool clear() {
    if (map_.ops[of_.factors].composed) return false;
    found_.clear();
    for (int f = 0; f < factors(); ++f) {
      if (at(f).halo || at(f).offset) return false;
      found_.push_back(piece());
      found_.back().free = true;
    }
    return true;
  }
  constexpr bool find_all_pieces() {
    if (!clear()) return false;
    later_.clear();
    for (int i = 0; i < of_.operand_count; ++i)
      if (!find_pieces(i, false)) later_.push_back(i);
    if (static_cast<int>(later_.size()) == of_.operand_count) return false;
    for (int i : later_)
      if (!find_pieces(i, true)) return false;
    return true;
  }
  constexpr void start_loops() {
    used_.assign(static_cast<std::size_t>(loop_count_), 1);
    in_factor_.assign(static_cast<std::size_t>(loop_count_), -1);
  }
  constexpr bool finish(int rank, view& result, pending& sums) {
    start_loops();
    result = view(rank, of_.shape.rank);
    for (int f = 0; f < factors(); ++f)
      if (at(f).result_dim == no_dim ? !reduce(f, sums) : !stack(f, result)) return false;
    if (!all_used()) return false;
    result.normalize(of_.shape);
    sums.remove(bound_axis);
    for (int i = 0; i < result.count; ++i) {
      if (result.digits[i].owner >= 0) continue;
      const int axis = axis_of(result.digits[i]);
      if (sums.contains(axis) && axis != bound_axis) return false;
      if (axis == bound_axis && !sums.add(1u << bound_axis, reduced_by())) return false;
    }
    return result.good();
  }
  constexpr combiner reduced_by() const {
    for (int f = 0; f < factors(); ++f)
      if (at(f).result_dim == no_dim) return at(f).combine;
    return combiner::add;
  }
  constexpr int factors() const { return count_; }
  constexpr const factor& at(int f) const { return factors_[f]; }
  constexpr const factor& loop(int l) const { return loop_list_[l]; }
  constexpr int factor_of(int i, int d) const {
    for (int f = 0; f < factors(); ++f)
      if (map_.dim_of(at(f), i) == d) return f;
    return -1;
  }
  constexpr int loop_of(int i, int d) const {
    for (int l = 0; l < loop_count_; ++l)
      if (loops_.dim_of(loop(l), swapped_ ? 1 - i : i) == d) return l;
    return -1;
  }
  /// Finds the shards of an operand. `found`: compares them with those of other operands.
  constexpr bool find_pieces(int i, bool found) {
    const shape& s = of_.at.operand_type(i).shape;
    view whole;
    if (s.has_no_elements() || !find_whole(all_, all_.terms.operand(of_, i), s, given_[i], whole))
      return false;
    const view& given = all_.views[given_[i].view];
    for (int d = 0; d < given.rank; ++d)
      if (loop_of(i, d) < 0 && given.has(d)) return false;
    const view part = with_owners(given, loop_count_, [&](int d) { return loop_of(i, d); });
    piece pieces[max_rank];
    const relative_view in_whole(whole, s, part, all_.terms[given_[i].term].shape,
                                 all_.own(given_[i].term), true);
    if (found) return holds_found(i, s, in_whole);
    if (!in_whole.find(pieces)) return false;
    for (int d = 0; d < s.rank; ++d) {
      const int f = factor_of(i, d);
      if (f < 0 ? !is_only(pieces[d], s.extents[d]) : !agree(found_[f], pieces[d])) return false;
    }
    return true;
  }
  /// For a dimension without a loop (as of windows of one position): true if the shard covers it. A
  /// larger extent is not accepted, because the local op's extent is then unknown, even if all
  /// positions are equal.
  static constexpr bool is_only(const piece& mine, std::int64_t extent) {
    return extent == 1 && (mine.free || (mine.count == 0 && mine.start == 0));
  }
  constexpr bool holds_found(int i, const shape& s, const relative_view& in_whole) {
    piece pieces[max_rank];
    for (int d = 0; d < s.rank; ++d) {
      const int f = factor_of(i, d);
      if (f < 0 && s.extents[d] > 1) return false;
      pieces[d].free = f < 0;
      if (f < 0) continue;
      pieces[d] = found_[f];
      if (!found_[f].lies_inside(s.extents[d])) found_[f].beyond = outside::unknown;
    }
    return in_whole.holds(pieces);
  }
  static constexpr bool agree(piece& found, const piece& mine) {
    if (mine.free) return true;
    if (!found.free && !found.same_positions(mine)) return false;
    const std::int64_t beyond =
        found.free || found.beyond == mine.beyond ? mine.beyond : outside::unknown;
    found = mine;
    found.beyond = beyond;
    return true;
  }
  /// (A loop in several factors is not accepted, because its major part is ambiguous.)
  constexpr bool use(int f, const digit& d) {
    used_[d.owner] *= d.extent;
    if (in_factor_[d.owner] < 0) in_factor_[d.owner] = f;
    return in_factor_[d.owner] == f;
  }
  constexpr bool stack(int f, view& result) {
    const piece& mine = found_[f];
    const int dim = at(f).result_dim;
    if (mine.free) return true;
    result.start[dim] = mine.start;
    result.beyond[dim] = outside::unfilled(mine.beyond);
    for (int i = 0; i < mine.count; ++i) {
      digit d = mine.digits[i];
      if (d.owner >= 0) {
        if (!use(f, d)) return false;
        const int local = loop(d.owner).result_dim;
        if (local == no_dim) return false;
        d.owner = static_cast<std::int16_t>(local);
      }
      result.add(d.owner, dim, d.extent, d.stride);
    }
    return true;
  }
  constexpr bool reduce(int f, pending& sums) {
    const piece& mine = found_[f];
    if (at(f).combine == combiner::stack) return false;
    if (mine.free) {
      repeats_ *= at(f).size;
      return true;
    }
    std::uint32_t axes = 0;
    return is_all(mine, at(f).size, all_identity(f), axes) && use_all(f, mine) &&
           sums.add(axes, at(f).combine);
  }
  constexpr bool use_all(int f, const piece& mine) {
    for (int i = 0; i < mine.count; ++i) {
      const digit& d = mine.digits[i];
      if (d.owner < 0) continue;
      const factor& local = loop(d.owner);
      if (!use(f, d) || local.result_dim != no_dim || local.combine != at(f).combine) return false;
    }
    return true;
  }
  /// True if the padding of all operands is the identity of the reduction.
  constexpr bool all_identity(int f) const {
    return found_[f].beyond != outside::unknown && of_.at.def().reduces_identity &&
           all_.is_identity(outside::filling(found_[f].beyond), at(f).combine,
                            of_.at.operand_type(0).element);
  }
  /// Checks that each loop covers all of its positions once, or repeats, and that reductions repeat
  /// as often as in the source.
  constexpr bool all_used() {
    bool again = false;  // true if repetitions change nothing
    for (int f = 0; f < factors(); ++f)
      if (const combiner c = at(f).combine; at(f).result_dim == no_dim)
        again = c != combiner::add && c != combiner::multiply;
    std::int64_t repeats = 1;
    for (int l = 0; l < loop_count_; ++l) {
      const factor& local = loop(l);
      if (used_[l] == local.size) continue;
      if (used_[l] != 1) return false;
      if (local.result_dim == no_dim) repeats *= local.size;
    }
    return again || repeats == repeats_;
  }
};

}  // namespace partita::prove_detail
