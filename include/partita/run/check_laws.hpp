/// Checks the law of tile maps by trial: the op equals the loop over slices of its operands.
#pragma once

#include <array>
#include <bit>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include <partita/op/tile_map_text.hpp>
#include <partita/run/applied_op.hpp>
#include <partita/run/interpreter.hpp>
#include <partita/run/kernels/convert.hpp>
#include <partita/run/locate.hpp>
#include <partita/run/slices.hpp>

namespace partita {

/// Options of check_laws.
struct law_options {
  /// Operands are integers in [low, high] (u8 from 0, i1 0 and 1), whose sums and products are
  /// exact in every order.
  std::int64_t low = -3, high = 3;
  std::uint64_t seed = 1;
  std::vector<array> operands;  ///< replaces the generated operands, unless empty
  /// The loop must satisfy |loop - global| <= tolerance * max(1, |global|); 0 for ops that are
  /// exact on such operands.
  double tolerance = 0;
  run_options run;  ///< with the op's kernel, if the library lacks one
};

namespace run_detail {

/// One loop: a factor of the tile map and the number of its slices.
struct loop_cut {
  int factor;
  std::int64_t slices;
};

/// Tries the entries of a tile map.
class tile_map_check {
 public:
  tile_map_check(const applied_op& a, void (*rule)(tile_map_context&), const law_options& options)
      : a_(a), options_(options), results_(a.infer(a.operands, a.declared)) {
    tile_map_context c(a.operands, results_[0], a.attrs.data(), static_cast<int>(a.attrs.size()),
                       map_, result_count());
    rule(c);
  }

  /// Returns the number of loops tried.
  std::int64_t run() {
    check_form();
    operands_ = options_.operands;
    for (std::size_t k = operands_.size(); k < a_.operands.size(); ++k)
      operands_.push_back(
          scattered_integers(a_.operands[k], options_.seed + k, options_.low, options_.high));
    whole_ = run_op(a_.op, operands_, attrs(),
                    std::span<const tensor_type>(results_.data(), results_.size()), options_.run);
    for (bool nested : {false, true})  // an entry that fails alone is reported alone
      for (int f = 0; f < count(); ++f)
        for (std::int64_t n = 1; n <= map_.at(0, f).size; ++n)
          if (map_.at(0, f).size % n == 0 && possible(f, n, map_.at(0, f).size))
            try_factor(f, n, nested);
    for (int f = 0; f < count(); ++f)
      for (std::int64_t more : {1, 3})
        for (bool high : {false, true})
          if (is_padded(f)) {
            try_padding(f, {more, more}, high);
            if (!grows_apart(f)) continue;
            try_padding(f, {more, 0}, high);
            try_padding(f, {0, more}, high);
          }
    return tried_;
  }

 private:
  const applied_op& a_;
  const law_options& options_;
  vec<tensor_type> results_;
  factor_table map_;
  std::vector<array> operands_, whole_;
  std::int64_t tried_ = 0;
  mutable std::vector<std::int64_t> index_;  ///< by loop of the nest: its current iteration

  int count() const { return map_.ops[0].count; }
  int result_count() const { return static_cast<int>(results_.size()); }
  std::span<const std::int64_t> attrs() const { return {a_.attrs.data(), a_.attrs.size()}; }
  halo_cut cut(int f, std::int64_t n, vec<std::int64_t>& attrs) const {
    return cut_halo(a_.op, map_, map_.at(0, f), n, {a_.operands.data(), a_.operands.size()},
                    results_[0], attrs);
  }
  halo_cut stretch(int f, const vec<tensor_type>& operands, const tensor_type& result,
                   vec<std::int64_t>& attrs) const {
    return stretch_halo(a_.op, map_, map_.at(0, f), {operands.data(), operands.size()}, result,
                        attrs);
  }
  /// True if a loop of n iterations may divide a factor with `left` positions.
  bool possible(int f, std::int64_t n, std::int64_t left) const {
    if (map_.at(0, f).again && n > 1 && left < n * map_.at(0, f).least) return false;
    if (!map_.at(0, f).halo || n == 1) return true;
    if (map_.at(0, f).size == 0) return false;
    vec<std::int64_t> attrs = a_.attrs;
    return cut(f, n, attrs).possible;
  }

  /// Returns text such as `k:add`.
  text entry(int f) const {
    const factor& each = map_.at(0, f);
    text out;
    out << factor_letter(f);
    if (each.combine != combiner::stack) out << ':' << name_of(each.combine);
    return out;
  }
  template <class... Parts>
  [[noreturn]] void refuse(std::string_view code, const Parts&... parts) const {
    text out = code;
    out << " laws: ";
    a_.print(out);
    out << ' '
        << print_tile_map(map_, 0, {a_.operands.data(), a_.operands.size()},
                          {results_.data(), results_.size()})
        << " of ";
    print_types(out, a_.operands);
    out << " -> ";
    if (result_count() == 1)
      out << results_[0];
    else
      print_types(out, results_);
    out << ": ";
    (out << ... << parts);
    throw error(out.view());
  }
  template <class... Parts>
  [[noreturn]] void refuse_loop(std::string_view code, std::span<const loop_cut> nest,
                                const Parts&... parts) const {
    text loops;
    append_list(loops, static_cast<int>(nest.size()), [&](int i) {
      const loop_cut& each = nest[static_cast<std::size_t>(i)];
      loops << (i == 0 ? "entry " : "then ") << entry(each.factor) << " over " << each.slices
            << (each.slices == 1 ? " slice" : " slices");
    });
    refuse(code, loops, ": ", parts...);
  }

  /// Checks that entries name existing dimensions and that the factors of a dimension make up its
  /// size.
  void check_form() const {
    for (int f = 0; f < count(); ++f) {
      const factor& each = map_.at(0, f);
      bool stacked = false;
      for (int r = 0; r < result_count(); ++r)
        stacked = stacked || map_.result_dim(each, r) != no_dim;
      if (stacked != (each.combine == combiner::stack && !each.again))
        refuse("L004", "entry ", entry(f), " must either be reduced or have a result dimension");
    }
    for (int r = 0; r < result_count(); ++r) {
      text whose = "the result";
      if (result_count() > 1) whose = concat("result ", r);
      check_dimensions(whose, results_[static_cast<std::size_t>(r)].shape,
                       [&](const factor& f) { return map_.result_dim(f, r); });
    }
    for (std::size_t k = 0; k < a_.operands.size(); ++k)
      check_dimensions(concat("operand ", k), a_.operands[k].shape,
                       [&](const factor& f) { return map_.operand_dim(f, static_cast<int>(k)); });
  }
  template <class DimOf>
  void check_dimensions(const text& whose, const shape& s, DimOf dim_of) const {
    std::int64_t sizes[max_rank] = {};
    for (int f = 0; f < count(); ++f) {
      const int d = dim_of(map_.at(0, f));
      if (d == no_dim) continue;
      const std::int64_t size = map_.at(0, f).size;
      if (d < 0 || d >= s.rank)
        refuse("L004", "entry ", entry(f), " has dimension ", d, " of ", whose, ", whose shape is ",
               s);
      if (sizes[d] != 0 && !map_.ops[0].composed)
        refuse("L004", "entry ", entry(f), " has dimension ", d, " of ", whose,
               ", as another entry has; only a composed dimension is made of several");
      sizes[d] = sizes[d] == 0 ? size : sizes[d] * size;
      const bool part = map_.ops[0].composed || map_.at(0, f).halo;
      if (part && sizes[d] > 0 ? s[d] % sizes[d] != 0 : sizes[d] != s[d])
        refuse("L004", "entry ", entry(f), " has size ", size, "; dimension ", d, " of ", whose,
               " has size ", s[d]);
    }
  }

  /// Tries a factor cut into n slices; with `nested`, that loop with each other one inside.
  void try_factor(int f, std::int64_t n, bool nested) {
    std::vector<std::int64_t> left;  // positions, by factor
    for (int g = 0; g < count(); ++g) left.push_back(map_.at(0, g).size);
    const auto is_front = [&](int g) { return map_.is_front(0, g, left.data()); };
    const auto positions = [&](int g) -> std::int64_t& {
      return left[static_cast<std::size_t>(g)];
    };
    std::vector<loop_cut> nest;
    while (!is_front(f)) {  // over each position of the more major factors
      int g = 0;
      while (positions(g) == 1 || !is_front(g)) ++g;
      nest.push_back({g, positions(g)});
      positions(g) = 1;
    }
    nest.push_back({f, n});
    positions(f) /= n;
    if (!nested) return try_nest(nest);
    for (int g = 0; n > 1 && g < count(); ++g)
      for (std::int64_t m : {2, 3})
        if (is_front(g) && positions(g) % m == 0 && (g != f || !map_.at(0, g).halo) &&
            possible(g, m, positions(g))) {
          nest.push_back({g, m});
          try_nest(nest);
          nest.pop_back();
        }
  }
  void try_nest(std::span<const loop_cut> nest) {
    ++tried_;
    index_.assign(nest.size(), 0);
    const std::vector<array> found = loop(operands_, results_, a_.attrs, nest, nest);
    for (std::size_t r = 0; r < whole_.size(); ++r)
      for (std::int64_t i = 0; i < whole_[r].size(); ++i)
        if (!agree(found[r], whole_[r], i)) refuse_element(nest, r, i, whole_[r], found[r]);
  }
  [[noreturn]] void refuse_element(std::span<const loop_cut> nest, std::size_t r, std::int64_t i,
                                   const array& whole, const array& found) const {
    text position, expected, got, which = "result ";
    if (result_count() > 1) which << r << ' ';
    print_position(position, whole.shape(), i);
    print_element(expected, whole, i);
    print_element(got, found, i);
    refuse_loop("L001", nest, which, position, " is ", expected, ", the loop over slices gives ",
                got);
  }

  // ---- Uneven dimensions, see core/padding.hpp --------------------------------------------------

  /// True if padding may enlarge a dimension of this factor where an axis does not divide it.
  bool is_padded(int f) const {
    const factor& mine = map_.at(0, f);
    bool good =
        mine.size > 0 && !mine.again && (mine.combine == combiner::stack || a_.op.reduces_identity);
    if (good && mine.halo) {
      vec<std::int64_t> attrs = a_.attrs;
      good = stretch(f, a_.operands, results_[0], attrs).possible;
    }
    const auto look = [&](const shape& s, auto dim_of) {
      const int d = dim_of(mine);
      if (d == no_dim) return;
      good = good && (map_.ops[0].composed || mine.halo || s[d] == mine.size);
      for (int g = 0; g < f; ++g)  // only the outermost factor of a dimension
        good = good && dim_of(map_.at(0, g)) != d;
    };
    for (int r = 0; r < result_count(); ++r)
      look(results_[r].shape, [&](const factor& g) { return map_.result_dim(g, r); });
    for (int k = 0; k < static_cast<int>(operands_.size()); ++k)
      look(a_.operands[k].shape, [&](const factor& g) { return map_.operand_dim(g, k); });
    return good;
  }
  bool grows_apart(int f) const {
    if (!map_.at(0, f).halo) return false;
    vec<std::int64_t> attrs = a_.attrs;
    return stretch(f, a_.operands, results_[0], attrs).apart;
  }
  /// Additional positions: for the operand that may grow alone, and for the others.
  struct growth {
    std::int64_t others, alone;
  };
  /// Checks that padding at the end of a dimension does not matter, or adds nothing to a reduction.
  void try_padding(int f, const growth& by, bool high) const {
    const factor& mine = map_.at(0, f);
    const std::int64_t more = by.others > by.alone ? by.others : by.alone;
    vec<std::int64_t> attrs = a_.attrs;
    const int alone = mine.halo ? stretch(f, a_.operands, results_[0], attrs).alone : -1;
    attrs = a_.attrs;
    const auto grow = [&](std::int64_t& size, int end) {
      const std::int64_t n = end == alone ? by.alone : by.others;
      size += by.others == by.alone ? size / mine.size * n : n;
    };
    const auto refuse_padding = [&](const auto&... parts) {
      refuse("L005", "entry ", entry(f), " padded from ", mine.size, " to ", mine.size + more, ": ",
             parts...);
    };
    std::vector<array> operands;
    vec<tensor_type> types = a_.operands, larger = results_;
    for (int k = 0; k < static_cast<int>(operands_.size()); ++k)
      if (const int dim = map_.operand_dim(mine, k); dim != no_dim) grow(types[k].shape[dim], k);
    for (int r = 0; r < result_count(); ++r)
      if (const int dim = map_.result_dim(mine, r); dim != no_dim) grow(larger[r].shape[dim], -1);
    halo_cut stretched;
    if (mine.halo) stretched = stretch(f, types, larger[0], attrs);
    for (int k = 0; k < static_cast<int>(operands_.size()); ++k) {
      const array& x = operands_[static_cast<std::size_t>(k)];
      const bool has = map_.operand_dim(mine, k) != no_dim;
      combiner fill = has && mine.halo ? stretched.ranges[k].fill
                      : mine.backwards ? mine.carry
                                       : mine.combine;
      if (map_.sees_no_padding(0, f)) fill = combiner::stack;
      const int value = mine.halo && k < max_halo_operands ? stretched.ranges[k].fill_operand : -1;
      operands.push_back(!has         ? x
                         : value >= 0 ? padded(x, types[k], bits_of(value))
                                      : padded(x, types[k], fill, high));
    }
    const op_def& op = stretched.becomes != nullptr ? *stretched.becomes : a_.op;
    if (stretched.becomes != nullptr) {
      operands.push_back(array({types[0].element, {}}));
      types.push_back(operands.back().type());
    }
    vec<tensor_type> given;
    try {
      given = applied_op{op, types, attrs, larger[0]}.infer(types, larger[0]);
    } catch (const error& e) {
      refuse_padding("the op does not accept it: ", e.what());
    }
    for (int r = 0; r < result_count(); ++r)
      if (given[r] != larger[r]) refuse_padding("it gives ", given[r], ", not ", larger[r]);
    const std::span<const tensor_type> to(larger.data(), larger.size());
    std::vector<array> found;
    if (const located_piece one{f, mine.size, mine.size + more}; mine.located)
      found = run_iteration(a_.op, map_, 0, operands, to, attrs, {&one, 1},
                            std::array<std::int64_t, 1>{0}, options_.run);
    else
      found = run_op(op, operands, {attrs.data(), attrs.size()}, to, options_.run);
    for (std::size_t r = 0; r < whole_.size(); ++r) {
      const array front = resized(found[r], whole_[r].shape());
      for (std::int64_t i = 0; i < whole_[r].size(); ++i) {
        if (agree(front, whole_[r], i)) continue;
        text position, expected, got;
        print_position(position, whole_[r].shape(), i);
        print_element(expected, whole_[r], i);
        print_element(got, front, i);
        refuse_padding("result ", position, " is ", expected, ", with the padding ", got);
      }
    }
  }
  /// Pads an operand with the identity of `combine`. For `stack` it pads with NaN or the maximum
  /// integer, and if `high`, with infinity or the minimum integer.
  static array padded(const array& x, const tensor_type& larger, combiner combine, bool high) {
    const dtype t = x.element();
    std::int64_t bits = high              ? op::least_integer(t)
                        : t == dtype::u64 ? -1
                                          : op::greatest_integer(t);
    if (is_floating(t))
      bits = std::bit_cast<std::int64_t>(high ? std::numeric_limits<double>::infinity()
                                              : std::numeric_limits<double>::quiet_NaN());
    if (combine != combiner::stack) bits = identity_bits(combine, t);
    return padded(x, larger, bits);
  }
  /// Returns the bits of a scalar operand.
  std::int64_t bits_of(int k) const {
    const array& x = operands_[static_cast<std::size_t>(k)];
    return with_type(x.element(), [&]<class T>(std::type_identity<T>) {
      if (is_floating(x.element()))
        return std::bit_cast<std::int64_t>(convert_element<double>(x.data<T>()[0]));
      return convert_element<std::int64_t>(x.data<T>()[0]);
    });
  }
  static array padded(const array& x, const tensor_type& larger, std::int64_t bits) {
    const dtype t = x.element();
    array out = run_op(def<op::constant>, {}, std::span<const std::int64_t>(&bits, 1), larger);
    copy_box(size_of(t), x.shape(), x.shape(), nullptr, x.bytes(), larger.shape, nullptr,
             out.mutable_bytes());
    return out;
  }

  bool agree(const array& found, const array& whole, std::int64_t i) const {
    return with_type(whole.element(), [&]<class T>(std::type_identity<T>) {
      const T x = found.data<T>()[i], y = whole.data<T>()[i];
      if (x == y || (x != x && y != y)) return true;
      if constexpr (std::is_integral_v<T>) return false;
      const auto a = convert_element<double>(x), b = convert_element<double>(y);
      return std::fabs(a - b) <= options_.tolerance * std::max(1.0, std::fabs(b));
    });
  }

  /// Runs the op as a nest of loops; `rest` are the loops still to apply.
  std::vector<array> loop(const std::vector<array>& operands, const vec<tensor_type>& results,
                          vec<std::int64_t> attrs, std::span<const loop_cut> rest,
                          std::span<const loop_cut> nest) const {
    if (rest.empty()) return body(operands, results, attrs, nest);
    const auto& [f, n] = rest[0];
    halo_cut halo;
    if (map_.at(0, f).halo && n > 1) halo = cut(f, n, attrs);
    const auto inner = [&](const std::vector<array>& sliced, const vec<tensor_type>& parts,
                           std::int64_t i) {
      index_[nest.size() - rest.size()] = i;
      return loop(sliced, parts, attrs, rest.subspan(1), nest);
    };
    const auto equal = [&](std::size_t r, const array& made, const array& first) {
      for (std::int64_t e = 0; e < first.size(); ++e)
        if (!agree(made, first, e)) refuse_element(nest, r, e, first, made);
    };
    return run_slices(a_.op, map_, 0, f, n, halo, operands, results, attrs, options_.run, inner,
                      equal);
  }
  /// Finds the shards that loops over located factors cut, and where they start in this iteration.
  void find_located(std::span<const loop_cut> nest, vec<located_piece>& pieces,
                    std::vector<std::int64_t>& starts) const {
    for (int f = 0; f < count(); ++f) {
      if (!map_.at(0, f).located) continue;
      std::int64_t slices = 1, at = 0;
      for (std::size_t k = 0; k < nest.size(); ++k)
        if (nest[k].factor == f) {
          slices *= nest[k].slices;
          at = at * nest[k].slices + index_[k];
        }
      if (slices == 1) continue;
      const std::int64_t size = map_.at(0, f).size;
      pieces.push_back({f, size, size / slices});
      starts.push_back(at * (size / slices));
    }
  }
  std::vector<array> body(const std::vector<array>& operands, const vec<tensor_type>& results,
                          const vec<std::int64_t>& attrs, std::span<const loop_cut> nest) const {
    vec<located_piece> pieces;
    std::vector<std::int64_t> starts;
    find_located(nest, pieces, starts);
    vec<tensor_type> types;
    for (const auto& each : operands) types.push_back(each.type());
    text slices;
    print_types(slices, types);
    vec<tensor_type> given;
    std::vector<array> found;
    try {
      if (pieces.empty()) {
        given = applied_op{a_.op, types, attrs, results[0]}.infer(types, results[0]);
      } else {
        found = run_iteration(a_.op, map_, 0, operands, {results.data(), results.size()}, attrs,
                              pieces, starts, options_.run);
        for (const array& each : found) given.push_back(each.type());
      }
    } catch (const error& e) {
      refuse_loop("L002", nest, "slices ", slices, " do not fit the op: ", e.what());
    }
    if (given.size() != results.size())
      refuse_loop("L002", nest, "an iteration gives ", given.size(), " results");
    for (std::size_t r = 0; r < results.size(); ++r)
      if (given[r] != results[r])
        refuse_loop("L002", nest, "slices ", slices, " give ", given[r], ", the loop needs ",
                    results[r]);
    if (!pieces.empty()) return found;
    return run_op(a_.op, operands, {attrs.data(), attrs.size()},
                  std::span<const tensor_type>(results.data(), results.size()), options_.run);
  }
};

}  // namespace run_detail

/// Tries every entry of an op's tile map: the op must equal the loop over slices of its operands,
/// stacked or reduced. It tries every divisor of the entry's size, alone and in nests of two loops.
/// It also tries to pad the entry: padding at the end of a dimension must not matter, and the
/// identity of a reduction must not change it. Returns the number of loops tried.
///
/// Cost      runs the op about twice for each slice of every loop: use small shapes with several
///           divisors, such as 4, 6 and 12
/// Errors    L001 values differ, L002 slices do not fit the op's shape rule, L004 an entry does not
///           fit the dimensions, L005 padding changes the result (a reduction may declare
///           `reduces_identity = false`); and the errors of the shape rule for the operands
///           themselves
inline std::int64_t check_laws(const op_def& op, const std::vector<tensor_type>& operands,
                               const std::vector<std::int64_t>& attrs = {},
                               const tensor_type& declared = {}, const law_options& options = {}) {
  const run_detail::applied_op a = run_detail::apply_op(op, operands, attrs, declared);
  return run_detail::tile_map_check(a, op.tile_map, options).run();
}

}  // namespace partita
