/// Terms: the meaning of a program's values, as functions of its inputs.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/ir/program.hpp>
#include <partita/op/combine.hpp>
#include <partita/op/registry.hpp>
#include <partita/prove/factors.hpp>
#include <partita/prove/view.hpp>
#include <partita/support/place_table.hpp>
#include <partita/support/segmented_vec.hpp>
#include <partita/support/vec.hpp>

namespace partita::prove_detail {

/// An op of a program with operands and results; or one result of an op with branches, as an op on
/// the branch number and the branches' results; or an op outside of programs (`as`).
struct site {
  const program* p = nullptr;
  op_id op = -1;
  int branched = -1;     ///< number of the result, for an op with branches
  bool swapped = false;  ///< true if the two operands of a commutative op are swapped
  const op_node* of = nullptr;
  const op_def* as = nullptr;  ///< outside of programs: without attributes

  constexpr site() = default;
  constexpr explicit site(const op_def& d) : as(&d) {}
  constexpr site(const program& in, op_id o, int result = -1)
      : p(&in), op(o), branched(result), of(in.ops.data() + o), as(of->def) {}

  constexpr bool made() const { return as != nullptr; }
  constexpr const op_def& def() const { return *as; }
  constexpr span<const std::int64_t> attrs() const {
    if (op < 0) return {};
    const std::int64_t* const list = p->attr_list.data() + of->attr_begin;
    if (swapped && as->id == partita::def<op::compare>.id) return {turned + list[0], 1};
    return {list, static_cast<std::size_t>(of->attr_count)};
  }

  constexpr int operand_count() const {
    return branched < 0 ? of->operand_count : 1 + of->region_count;
  }
  constexpr int result_count() const { return branched < 0 ? of->result_count : 1; }
  constexpr value_id result(int r) const { return of->result + (branched < 0 ? r : branched); }
  constexpr const tensor_type& result_type(int r) const { return p->types.data()[result(r)]; }
  constexpr const tensor_type& operand_type(int i) const {
    if (branched >= 0 && i > 0) return result_type(0);
    const value_id* const operands = p->operand_list.data() + of->operand_begin;
    return p->types.data()[operands[swapped ? 1 - i : i]];
  }

 private:
  /// a < b is b > a: the directions eq, ne, lt, le, gt, ge for swapped operands.
  static constexpr std::int64_t turned[] = {0, 1, 4, 5, 2, 3};
};

/// A term as an operand of another one: by its view, or (for elementwise ops) element by element.
struct operand_term {
  static constexpr int by_element = -1;
  int term = -1, view = by_element;

  friend constexpr bool operator==(const operand_term&, const operand_term&) = default;
};

/// Hashes of lists are polynomials in this number, mixed at the end.
inline constexpr std::uint64_t hash_factor = 0x9e3779b97f4a7c15u;
constexpr std::uint64_t mixed_hash(std::uint64_t h, std::uint64_t n) {
  h = (h + n) * hash_factor;
  return h ^ h >> 32;
}

/// The shape of results computed from positions alone, which exist for any number.
inline constexpr shape all_positions{max_elements};

/// A multiple of a term.
struct scaled_term {
  operand_term of;
  double scale = 1;
};

/// A tensor. Equal terms are equal tensors. A term is the result of an op, or a separate value.
struct term {
  // Frequently read members come first, because the tables of a large program exceed caches.
  dtype element = dtype::f32;
  bool by_element = false;
  bool positions = false;  ///< element i is i, for any i
  bool counted = false;    ///< computed from positions and numbers alone
  bool number = false;
  int own = -1;                         ///< the source's view of it: repeated if its operands are
  operand_term alias;                   ///< the reshaped term, see meanings::reshaped
  int base = -1;                        ///< it is `factor` times this term
  int operands = 0, operand_count = 0;  ///< in the list of operands
  int result = 0;                       ///< its number among the results of its op
  site at;                              ///< an op that computes it, if any
  partita::shape shape;
  double factor = 1;              ///< see base
  std::int64_t bits = 0;          ///< of a number: as in the op `constant`
  int factors = -1;               ///< row of the table of tile maps
  int next = -1;                  ///< another term of the same op with operands of the same terms
  int reshaped = -1;              ///< the last of the source's reshapings of it
  value_id value = -1;            ///< see home
  const program* home = nullptr;  ///< the program with a value that it is, for its name
  int products = -1;              ///< see meanings::product
  int product_of = -1;            ///< the term that it is the products of, see meanings::product
  int guarded = -1;               ///< see meanings::guard
};

class term_table : segmented_vec<term> {
  using list = segmented_vec<term>;

 public:
  using list::operator[];  // one call, because it is read most
  constexpr int size() const { return static_cast<int>(list::size()); }
  constexpr const op_def& def(int t) const { return (*this)[t].at.def(); }
  constexpr bool is(int t, const op_def& d) const {
    return (*this)[t].at.made() && def(t).id == d.id;
  }
  constexpr span<const std::int64_t> attrs(int t) const { return (*this)[t].at.attrs(); }
  constexpr operand_term operand(const term& t, int i) const { return operands_[t.operands + i]; }

  constexpr void reserve(std::size_t n) {
    list::reserve(n);
    index_.reserve(n);
  }
  /// A term that equals no other one.
  constexpr int fresh(const tensor_type& type) {
    term t;
    t.element = type.element;
    t.shape = type.shape;
    return add(t, hash_of(list::size()));
  }
  /// A scalar; see meanings::number.
  constexpr int number(std::int64_t bits, dtype element) {
    term t;
    t.element = element;
    t.number = true;
    t.bits = bits;
    const std::size_t hash =
        hash_of(static_cast<std::uint64_t>(bits) ^ 0x5bd1e995u) + static_cast<std::size_t>(element);
    const int known = index_.find(hash, [&](int i) {
      return (*this)[i].number && (*this)[i].bits == bits && (*this)[i].element == element;
    });
    return known >= 0 ? known : add(t, hash);
  }
  /// The number of each position: element i is i, for any i.
  constexpr int positions(dtype element) {
    int& t = positions_[static_cast<int>(element)];
    if (t == 0) {
      t = 1 + fresh({element, all_positions});
      (*this)[t - 1].positions = true;
    }
    return t - 1;
  }
  /// Positions modulo n: element i is i for i below n; views beyond n wrap around.
  constexpr int positions_modulo(dtype element, std::int64_t n) {
    for (int t : modulo_)
      if ((*this)[t].element == element && (*this)[t].shape.extents[0] == n) return t;
    modulo_.push_back(fresh({element, shape{n}}));
    return modulo_.back();
  }
  constexpr bool is_modulo(int t) const {
    for (int each : modulo_)
      if (each == t) return true;
    return false;
  }
  /// The term without elements.
  constexpr int nothing(dtype element) {
    int& t = nothing_[static_cast<int>(element)];
    if (t == 0) t = 1 + fresh({element, shape{0}});
    return t - 1;
  }
  constexpr bool is_positions(int t) const { return (*this)[t].positions; }
  constexpr bool is_counted(int t) const {
    const term& of = (*this)[t];
    return of.positions || of.number || of.counted;
  }

  /// The term that an op computes from these operands, or -1. If not `by_element`, types count,
  /// too.
  constexpr int find(const site& at, span<const operand_term> operands, bool by_element,
                     const tensor_type& type) const {
    const std::size_t hash = key(at, operands, type.element);
    return index_.find(hash,
                       [&](int t) { return same((*this)[t], at, operands, by_element, type); });
  }
  /// Creates the terms of an op's results, and returns the first one. They must not exist yet.
  constexpr int make(const site& at, span<const operand_term> operands, bool by_element,
                     const tensor_type& type) {
    const int first = size(), begin = static_cast<int>(operands_.size());
    bool counted = operands.size() > 0;
    for (std::size_t i = 0; i < operands.size(); ++i) {
      operands_.push_back(operands[i]);
      counted = counted && is_counted(operands[i].term);
    }
    for (int r = 0; r < (by_element ? 1 : at.result_count()); ++r) {
      term t;
      t.at = at;
      t.result = r;
      t.element = r == 0 ? type.element : at.result_type(r).element;
      t.shape = r == 0 ? type.shape : at.result_type(r).shape;
      t.operands = begin;
      t.operand_count = static_cast<int>(operands.size());
      t.by_element = by_element;
      t.counted = counted;
      add(t, key(at, operands, t.element) + static_cast<std::size_t>(r));
    }
    if (!by_element) add_candidate(first, operands);
    return first;
  }
  /// The first term of this op with operands of these terms in any shape, or -1; `next` links the
  /// others.
  constexpr int first_candidate(const op_def& d, span<const operand_term> operands) const {
    const int c = candidate_table_.find(candidate_key(d, operands), [&](int each) {
      return same_candidates(candidates_[each], d, operands);
    });
    return c < 0 ? -1 : candidates_[c];
  }

 private:
  hash_index index_;
  vec<operand_term> operands_;
  vec<int> candidates_;
  place_table candidate_table_;
  int positions_[32] = {}, nothing_[32] = {};
  vec<int> modulo_;  ///< few: one for each modulus

  constexpr int add(const term& t, std::size_t hash) {
    list::push_back(t);
    index_.add(hash);
    return size() - 1;
  }
  static constexpr std::size_t key(const site& at, span<const operand_term> operands,
                                   dtype element) {
    std::uint64_t h = at.as->id + static_cast<std::uint64_t>(element);
    const operand_term* const list = operands.data();
    const std::size_t count = operands.size();
    for (std::size_t i = 0; i < count; ++i)
      h = h * hash_factor + static_cast<std::uint64_t>(list[i].term) * 64 +
          static_cast<std::uint64_t>(list[i].view);
    h ^= h >> 32;
    const auto attrs = at.attrs();
    const std::int64_t* const values = attrs.data();
    const std::size_t attr_count = attrs.size();
    for (std::size_t i = 0; i < attr_count; ++i)
      h = mixed_hash(h, static_cast<std::uint64_t>(values[i]));
    return hash_of(h);
  }
  constexpr bool same(const term& t, const site& at, span<const operand_term> operands,
                      bool by_element, const tensor_type& type) const {
    if (t.at.as == nullptr || t.result != 0 || t.by_element != by_element ||
        t.element != type.element || t.operand_count != static_cast<int>(operands.size()) ||
        t.at.as->id != at.as->id)
      return false;
    const operand_term *const mine = operands_.data() + t.operands, *const other = operands.data();
    for (int i = 0; i < t.operand_count; ++i)
      if (mine[i].term != other[i].term || mine[i].view != other[i].view) return false;
    if (!same_elements(t.at.attrs(), at.attrs())) return false;
    if (by_element) return true;
    if (t.at.result_count() != at.result_count()) return false;
    for (int i = 0; i < t.operand_count; ++i)
      if (t.at.operand_type(i) != at.operand_type(i)) return false;
    return t.shape == type.shape;
  }
  /// The tensor that a term is a part of, or reshapes.
  constexpr int whole(int t) const {
    while ((*this)[t].alias.term >= 0) t = (*this)[t].alias.term;
    return t;
  }
  constexpr std::size_t candidate_key(const op_def& d, span<const operand_term> operands) const {
    std::uint64_t h = d.id;
    const operand_term* const list = operands.data();
    const std::size_t count = operands.size();
    for (std::size_t i = 0; i < count; ++i)
      h = h * hash_factor + static_cast<std::uint64_t>(whole(list[i].term));
    return hash_of(h);
  }
  constexpr bool same_candidates(int t, const op_def& d, span<const operand_term> operands) const {
    if (def(t).id != d.id || (*this)[t].operand_count != static_cast<int>(operands.size()))
      return false;
    for (int i = 0; i < (*this)[t].operand_count; ++i)
      if (whole(operand((*this)[t], i).term) != whole(operands[i].term)) return false;
    return true;
  }
  constexpr void add_candidate(int t, span<const operand_term> operands) {
    const op_def& d = def(t);
    const int c = candidate_table_.find(candidate_key(d, operands), [&](int each) {
      return same_candidates(candidates_[each], d, operands);
    });
    if (c >= 0) {
      (*this)[t].next = candidates_[c];
      candidates_[c] = t;
      return;
    }
    candidates_.push_back(t);
    candidate_table_.insert(static_cast<int>(candidates_.size()) - 1, [&](int each) {
      const term& of = (*this)[candidates_[each]];
      return candidate_key(def(candidates_[each]), {operands_.data() + of.operands,
                                                    static_cast<std::size_t>(of.operand_count)});
    });
  }
};

/// The terms, the views of values on them, and the scalars that pad tensors.
struct meanings {
  view_table views;
  term_table terms;
  vec<operand_term> scalars;  ///< by number; see outside
  place_table scalar_table;

  /// A program's reshaped tensor. If values are padded in that shape, they are shards of a separate
  /// term.
  struct reshaping {
    int of = -1;  ///< the tensor
    int view = -1;
    shape to;
    int term = -1;  ///< its term, if it exists
    int next = -1;  ///< another one of the same tensor
  };
  segmented_vec<reshaping> reshapings;

  /// A value that equals another one only if an index is in the device's shard; see starts.hpp.
  /// Another term describes it everywhere.
  struct guard {
    operand_term of;         ///< the value there
    operand_term elsewhere;  ///< required contents elsewhere; term -1: zeros
    int flags = -1;          ///< for existing zeros: the flags that locate them
    bool hold = false;       ///< true if it is there where these hold
    int index = -1;          ///< index of the gather or scatter
    int along = -1;          ///< view of flags and index along it
    int seen = -1;           ///< its view of its term
    std::int64_t rows = 0;   ///< rows of the shard
    std::uint32_t axes = 0;  ///< axes along which one device has it
  };
  segmented_vec<guard> guards;
  vec<operand_term> room;       ///< buffer of element_form
  vec<vec<scaled_term>> spare;  ///< unused buffers

  /// True if the current op is the last one of its sum (or other commutative combination). The
  /// whole sum is then normalized, as long as this is linear in the visited ops.
  bool ends_sum = false;
  std::int64_t sums = 0, long_sums = 0;  ///< number of such ops, and terms of long sums

  constexpr int known_reshaping(int t, int view, const shape& to) const {
    for (int i = terms[t].reshaped; i >= 0; i = reshapings[i].next)
      if (reshapings[i].view == view && reshapings[i].to == to) return i;
    return -1;
  }
  constexpr int reshaping_of(int t, int view, const shape& to) {
    if (const int known = known_reshaping(t, view, to); known >= 0) return known;
    reshapings.push_back({t, view, to, -1, terms[t].reshaped});
    return terms[t].reshaped = static_cast<int>(reshapings.size()) - 1;
  }
  constexpr int reshaped(int t, int i) {
    if (reshapings[i].term < 0) {
      reshapings[i].term = terms.fresh({terms[t].element, reshapings[i].to});
      terms[reshapings[i].term].alias = {t, reshapings[i].view};
    }
    return reshapings[i].term;
  }

  /// The view of a tensor on itself, or null if all its elements are distinct.
  constexpr const view* own(int t) const {
    return terms[t].own < 0 ? nullptr : &views[terms[t].own];
  }
  /// The products of a contraction, by its loops, before it sums.
  constexpr int product(int t, const factor_table& map) {
    if (const int known = terms[t].products; known >= 0) return known;
    tensor_type type{terms[t].element, {}};
    for (int f = 0; f < map.ops[terms[t].factors].count; ++f)
      type.shape.extents[type.shape.rank++] = map.at(terms[t].factors, f).size;
    const int made = terms.fresh(type);
    terms[made].product_of = t;
    terms[t].products = made;
    return made;
  }
  /// The code of a view for padding with this scalar.
  constexpr int beyond(const operand_term& scalar) {
    const auto key = [](const operand_term& s) {
      return hash_of(static_cast<std::uint64_t>(s.term) * 65536 +
                     static_cast<std::uint64_t>(s.view));
    };
    int number = scalar_table.find(key(scalar), [&](int i) { return scalars[i] == scalar; });
    if (number < 0) {
      number = static_cast<int>(scalars.size());
      scalars.push_back(scalar);
      scalar_table.insert(number, [&](int i) { return key(scalars[i]); });
    }
    return static_cast<int>(outside::first_value) + number;
  }
  /// The limit of i32 positions, so that sums of a few do not wrap.
  static constexpr std::int64_t most_i32_position = std::int64_t{1} << 28;
  /// A number. Small integers are positions, so that they can be used in calculations.
  constexpr operand_term number(std::int64_t bits, dtype element) {
    if (!is_integer(element) || bits >= max_elements || bits <= -max_elements ||
        (element == dtype::i32 && (bits > most_i32_position || bits < -most_i32_position)) ||
        (element == dtype::u64 && bits < 0))  // 2^63 and more
      return {terms.number(bits, element), views.number(view(0, 0))};
    view v(0, 1);
    v.start[0] = bits;
    return {terms.positions(element), views.number(v)};
  }
  constexpr int identity_beyond(combiner combine, dtype element) {
    return beyond(number(identity_bits(combine, element), element));
  }
  /// A multiple of a term.
  constexpr int scaled(int t, double by) {
    if (by == 1) return t;
    const term of = terms[t];
    if (double n = std::bit_cast<double>(of.bits); of.number && take_number(n, by))
      return terms.number(std::bit_cast<std::int64_t>(n), of.element);
    double all = of.factor;
    const bool apart = of.base >= 0 && !take_factor(all, by);
    if (of.base >= 0 && !apart) return scaled(of.base, all);
    if (of.alias.term >= 0 && views.is_unfilled(of.alias.view)) {
      const int whole = scaled(of.alias.term, by);
      return reshaped(whole, reshaping_of(whole, of.alias.view, of.shape));
    }
    const operand_term operands[] = {{t}, number(std::bit_cast<std::int64_t>(by), of.element)};
    const site at(def<op::multiply>);
    const tensor_type type{of.element, of.shape};
    int found = terms.find(at, operands, true, type);
    if (found < 0) found = terms.make(at, operands, true, type);
    if (apart || of.number) return found;
    terms[found].base = t;
    terms[found].factor = by;
    return found;
  }
  /// The scalar that a value repeats everywhere.
  constexpr operand_term scalar(const operand_term& value) const {
    return {value.term, views.find_scalar(views[value.view])};
  }
  /// Replaces a scalar that is outside of its tensor by the scalar that pads the tensor.
  constexpr operand_term filling(operand_term scalar) const {
    for (bool found = scalar.view >= 0; found;) {
      found = false;
      const view& v = views[scalar.view];
      const shape& s = terms[scalar.term].shape;
      for (int d = 0; d < v.dims && !found; ++d) {
        const std::int64_t fill = outside::filling(v.beyond[d]);
        const std::int64_t around = outside::modulus(v.beyond[d], s.extents[d]);
        std::int64_t at = v.start[d];
        if (outside::turns(v.beyond[d]) && around > 0) at = (at % around + around) % around;
        found = fill >= outside::first_value && (at < 0 || at >= s.extents[d]);
        if (found) scalar = scalars[static_cast<int>(fill - outside::first_value)];
      }
    }
    return scalar;
  }
  /// True if a scalar is a known number. Returns its bits as in the op `constant`.
  constexpr bool is_number(const operand_term& scalar, std::int64_t& bits) const {
    const term& t = terms[scalar.term];
    bits = t.bits;
    if (!t.positions) return t.number;
    const view& v = views[scalar.view];
    bits = is_floating(t.element) ? std::bit_cast<std::int64_t>(static_cast<double>(v.start[0]))
                                  : v.start[0];
    return v.count == 0;
  }
  /// True if the padding is the identity of a combiner.
  constexpr bool is_identity(std::int64_t beyond, combiner combine, dtype element) const {
    std::int64_t bits = 0;
    return beyond >= outside::first_value &&
           is_number(scalars[static_cast<int>(beyond - outside::first_value)], bits) &&
           partita::is_identity(bits, combine, element);
  }
};

}  // namespace partita::prove_detail
