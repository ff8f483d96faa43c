/// The pass that turns a collective next to a product into a ring of partial products.
///
/// Source    Wang et al., "Overlap communication with dependent computation via decomposition in
///           large deep learning models", ASPLOS 2023
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/op/arithmetic.hpp>
#include <partita/op/constant.hpp>
#include <partita/op/dynamic_slice.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/spmd/product_loops.hpp>
#include <partita/spmd/varying.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// A product, and the dimensions of one of its loops in operands 0 and 1 and in the result; no_dim
/// if the operand or result does not have the loop.
struct ring_product {
  op_id op = -1;
  int dims[3] = {no_dim, no_dim, no_dim};
};

/// A collective of n devices, and the products to which it belongs. Each product becomes n products
/// of blocks, between which the devices pass a block on.
struct ring {
  op_id settled = -1;  ///< the all_gather or reduce_scatter that the ring replaces
  collective what;
  std::int64_t members = 1;
  vec<ring_product> products;
};

namespace cost_detail {

using spmd_detail::dim_of_all, spmd_detail::product_loops;

/// all_gather(x) * w with n devices, where x_k is the shard of the k-th neighbour and w_k the
/// corresponding part of w:
///   the loop is in the result => y = 0; y[k] = x_k * w or x_k * w_k, x_k+1 = permute(x_k)
///   the loop is summed        => y = sum of x_k * w_k, x_k+1 = permute(x_k)
/// reduce_scatter(x * w)         => y = permute(y) + x_k * w_k, the own k last
///
/// (`*` is a dot_general or a convolution.) The number of bytes sent does not change, and every
/// message runs concurrently with a product, except before the first and after the last product.
///
/// When: all uses of the gathered value are such products, or the product has no other use, and
/// `worth(program, ring)` agrees. A ring that sums blocks of a gathered value adds them in a
/// different order on each device. It is therefore allowed only if each device computes another
/// block of the result, because replicated values must agree to the last bit. It ends because each
/// op is visited once.
///
/// Cost      linear in ops and operands, and in the code written: n products for each product
template <class Worth>
class making_rings {
 public:
  static constexpr std::int64_t most_members = 64;  ///< a limit, because the ring is unrolled

  /// `varies`: the axes over which each value varies.
  constexpr making_rings(program& p, const mesh& m, const Worth& worth, const varying_sets& varies,
                         const vec<collective_note>& notes, std::size_t& next)
      : p_(p), mesh_(m), worth_(worth), varies_(varies), notes_(notes), next_(next), loops_(p) {}

  /// Rewrites the program and its nested programs. Returns the number of collectives that became
  /// rings, and appends the notes of the new collectives to `made`.
  constexpr int run(vec<collective_note>& made) {
    find();
    return changed_ + write(made);
  }

 private:
  static constexpr int result = 2;  ///< index in ring_product::dims

  program& p_;
  const mesh& mesh_;
  const Worth& worth_;
  const varying_sets& varies_;
  const vec<collective_note>& notes_;
  std::size_t& next_;  ///< index in `notes_`
  product_loops loops_;
  int changed_ = 0;
  vec<ring> rings_;
  vec<int> ring_of_;     ///< by collective and by product: its ring, or -1
  vec<int> product_of_;  ///< by product: its index in the ring
  vec<int> note_of_;     ///< by op that communicates: its note

  // ---- Selection --------------------------------------------------------------------------------

  constexpr void find() {
    const auto count = p_.ops.size();
    ring_of_.resize(count, -1);
    product_of_.resize(count, -1);
    note_of_.resize(count, -1);
    vec<ring> gathers;
    vec<int> of(count, -1), uses(p_.types.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (p_.is(o, collective::all_gather) && may_go_around(o)) {
        of[o] = static_cast<int>(gathers.size());
        gathers.push_back(ring_of(o));
      }
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o)) {
        ++uses[v];
        if (const int r = of[p_.producer(v)]; r >= 0) add_use(gathers[r], o);
      }
    for (const auto& out : p_.outputs) {
      ++uses[out.value];
      if (const int r = of[p_.producer(out.value)]; r >= 0) gathers[r].settled = -1;
    }
    for (ring& r : gathers)
      if (r.settled >= 0) take(r);
    for (op_id o = 0; o < p_.op_count(); ++o)
      if (p_.is(o, collective::reduce_scatter) && may_go_around(o) && uses[p_.operand(o, 0)] == 1)
        find_scattered(o);
  }
  constexpr bool may_go_around(op_id o) const {
    const collective what = p_.collective_of(o);
    const std::int64_t n = what.members(mesh_);
    return n > 1 && n <= most_members && dim_of_all(what.axes) != no_dim &&
           (what.kind == collective::all_gather || what.combine == combiner::add);
  }
  constexpr ring ring_of(op_id o) const {
    ring r;
    r.settled = o;
    r.what = p_.collective_of(o);
    r.members = r.what.members(mesh_);
    return r;
  }
  /// Adds a use of a gathered value. Any use other than a suitable product rules out the ring and
  /// clears `settled`.
  constexpr void add_use(ring& r, op_id o) {
    if (r.settled < 0) return;
    const value_id whole = p_.op(r.settled).result;
    ring_product made;
    bool good = loops_.is_product(o) && p_.operand(o, 0) != p_.operand(o, 1);
    if (good) {
      const int i = p_.operand(o, 0) == whole ? 0 : 1;
      good = find_loop(o, i, dim_of_all(r.what.axes), r.members, made) &&
             (made.dims[result] != no_dim || varies_along(p_.operand(o, 1 - i), r.what));
    }
    if (good)
      r.products.push_back(made);
    else
      r.settled = -1;
  }
  constexpr bool varies_along(value_id v, const collective& what) const {
    return (axes_of(mesh_, what.axes) - varies_.values[v]).empty();
  }
  /// Finds the loop of one dimension, if it alone forms the dimension in every operand and result
  /// that has it.
  constexpr bool find_loop(op_id o, int end, int dim, std::int64_t n, ring_product& made) {
    loops_.find(o);
    const int f = loops_.factor_at(end, dim);
    if (f < 0) return false;
    made.op = o;
    for (const int each : {0, 1, product_loops::result}) {
      if (!loops_.has(f, each)) continue;
      const int d = loops_.dim(f, each);
      const value_id v = each == product_loops::result ? p_.op(o).result : p_.operand(o, each);
      if (!loops_.alone(f, each) || p_.type(v).shape[d] % n != 0) return false;
      made.dims[each == product_loops::result ? result : each] = d;
    }
    return made.dims[result] != no_dim || loops_.sums(f);
  }
  constexpr void find_scattered(op_id o) {
    ring r = ring_of(o);
    const op_id product = p_.producer(p_.operand(o, 0));
    ring_product made;
    if (!loops_.is_product(product) ||
        !find_loop(product, product_loops::result, dim_of_all(r.what.axes), r.members, made))
      return;
    r.products.push_back(made);
    take(r);
  }
  constexpr void take(ring& r) {
    for (const auto& each : r.products)
      if (ring_of_[each.op] >= 0) return;
    if (r.products.empty() || !worth_(static_cast<const program&>(p_), r)) return;
    const int number = static_cast<int>(rings_.size());
    ring_of_[r.settled] = number;
    for (std::size_t i = 0; i < r.products.size(); ++i) {
      ring_of_[r.products[i].op] = number;
      product_of_[r.products[i].op] = static_cast<int>(i);
    }
    rings_.push_back(static_cast<ring&&>(r));
    ++changed_;
  }

  // ---- Writing -------------------------------------------------------------------------------

  /// State while one product is written.
  struct writing {
    program* to = nullptr;
    vec<collective_note>* made = nullptr;
    collective_note note;
    op_marks marks;
    /// Scalars: the start of the own block, the end of the last block.
    value_id own = -1, end = -1, zero = -1;
  };
  vec<vec<value_id>> pieces_;  ///< by gather ring: the blocks received so far
  /// By ring: the notes of the messages of its last product.
  vec<std::size_t> first_note_, last_note_;

  /// Writes the program; returns the number of collectives in nested programs that became rings.
  constexpr int write(vec<collective_note>& made) {
    program q;
    program_copier copy(p_, q);
    if (changed_ > 0) copy.reserve();
    pieces_.resize(rings_.size(), {});
    first_note_.resize(rings_.size(), 0);
    last_note_.resize(rings_.size(), 0);
    int inside = 0;
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_node n = p_.op(o);
      if (n.def->collective && p_.collective_of(o).communicates())
        note_of_[o] = static_cast<int>(next_);
      for (int i = 0; note_of_[o] >= 0 && i < p_.op(o).result_count; ++i, ++next_)
        if (ring_of_[o] < 0) made.push_back(notes_[next_]);
      if (changed_ > 0) write_op(o, copy, q, made);
      for (int r = 0; r < n.region_count; ++r) {
        const int region = n.region_begin + r;
        program& nested = p_.regions[region];
        inside +=
            making_rings(nested, mesh_, worth_, varies_.nested[region], notes_, next_).run(made);
        if (changed_ > 0) q.append_region(static_cast<program&&>(nested));
      }
    }
    if (changed_ == 0) return inside;
    copy.interface();
    p_ = static_cast<program&&>(q);
    return inside;
  }
  constexpr void write_op(op_id o, program_copier& copy, program& q, vec<collective_note>& made) {
    if (ring_of_[o] < 0) {
      copy.op(o);
      return;
    }
    const int number = ring_of_[o];
    const ring& r = rings_[number];
    if (product_of_[o] < 0) {
      if (gathers(r)) return;
      copy.renamed[p_.op(o).result] = copy.renamed[p_.operand(o, 0)];
      finish_scattered(number, made);
      return;
    }
    writing w;
    w.to = &q;
    w.made = &made;
    if (gathers(r)) w.note = note_of(r);
    w.marks = p_.op(o).marks;
    const ring_product& each = r.products[product_of_[o]];
    first_note_[number] = made.size();
    copy.renamed[p_.op(o).result] =
        gathers(r) ? write_gathered(w, r, each, copy) : write_scattered(w, r, each, copy);
    last_note_[number] = made.size();
  }
  constexpr bool gathers(const ring& r) const { return r.what.kind == collective::all_gather; }
  constexpr collective_note note_of(const ring& r) const {
    collective_note note = notes_[static_cast<std::size_t>(note_of_[r.settled])];
    note.kind = collective::permute;
    note.reason = collective_reason::goes_around;
    return note;
  }
  /// Replaces the result of a reduce_scatter by that of its ring. The notes of the ring's messages
  /// are completed here, because the note of the reduce_scatter is only known now.
  constexpr void finish_scattered(int number, vec<collective_note>& made) const {
    for (std::size_t i = first_note_[number], end = last_note_[number]; i < end; ++i) {
      const std::int64_t bytes = made[i].bytes;
      made[i] = note_of(rings_[number]);
      made[i].bytes = bytes;
    }
  }

  constexpr value_id write_gathered(writing& w, const ring& r, const ring_product& each,
                                    program_copier& copy) {
    const value_id whole = p_.op(r.settled).result;
    vec<value_id>& pieces = pieces_[ring_of_[r.settled]];
    if (pieces.empty()) pieces.push_back(copy.renamed[p_.operand(r.settled, 0)]);
    value_id y = -1;
    for (std::int64_t k = 0; k < r.members; ++k) {
      if (k + 1 < r.members && static_cast<std::int64_t>(pieces.size()) == k + 1)
        pieces.push_back(passed_on(w, r, pieces[static_cast<std::size_t>(k)], -1));
      value_id operands[2];
      for (int i = 0; i < 2; ++i) {
        const value_id v = p_.operand(each.op, i);
        operands[i] = v == whole ? pieces[static_cast<std::size_t>(k)]
                                 : part(w, r, copy.renamed[v], each.dims[i], k);
      }
      const value_id made = product(w, r, each, operands);
      y = each.dims[result] != no_dim ? placed(w, r, each, y, made, k)
          : y < 0                     ? made
                                      : added(w, y, made);
    }
    return y;
  }
  /// Writes the ring of a reduce_scatter. The partial sum of a block starts at the device after its
  /// owner, travels around the ring, and arrives at its owner last.
  constexpr value_id write_scattered(writing& w, const ring& r, const ring_product& each,
                                     program_copier& copy) {
    value_id y = -1;
    for (std::int64_t k = 0; k < r.members; ++k) {
      const value_id others = y < 0 ? -1 : passed_on(w, r, y, 1);
      value_id operands[2];
      for (int i = 0; i < 2; ++i)
        operands[i] =
            part(w, r, copy.renamed[p_.operand(each.op, i)], each.dims[i], r.members - 1 - k);
      const value_id made = product(w, r, each, operands);
      y = others < 0 ? made : added(w, others, made);
    }
    return y;
  }

  static constexpr tensor_type number_type{dtype::i64, {}};
  constexpr value_id append(writing& w, const op_def& def, span<const value_id> operands,
                            span<const std::int64_t> attrs, const tensor_type& type) {
    return append_for(*w.to, w.marks, def, operands, attrs, type);
  }
  constexpr value_id number(writing& w, std::int64_t n) {
    const std::int64_t attrs[] = {n};
    return append(w, def<op::constant>, {}, attrs, number_type);
  }
  /// Sends a value from every device to the one at distance `by` along the ring.
  constexpr value_id passed_on(writing& w, const ring& r, value_id v, std::int64_t by) {
    collective what;
    what.kind = collective::permute;
    what.map = {device_map::ring, by};
    for (const auto& e : r.what.axes) what.axes.push_back(e.axis, no_dim);
    const tensor_type type = w.to->type(v);
    w.note.bytes = type.bytes();
    w.made->push_back(w.note);
    const value_id y = partita::append(*w.to, what, v, type);
    w.to->ops.back().marks = w.marks;
    return y;
  }
  /// On device i, the start of block (i + k) mod n. All operands and results of a loop have blocks
  /// of the same size.
  constexpr value_id start(writing& w, const ring& r, std::int64_t block, std::int64_t k) {
    if (w.own < 0) {
      axis_list axes;
      for (const auto& e : r.what.axes) axes.push_back(e.axis);
      w.own = append_shard_start(*w.to, block, axes, dtype::i64);
      w.to->ops.back().marks = w.marks;
      w.end = number(w, r.members * block);
    }
    if (k == 0) return w.own;
    const value_id sum[] = {w.own, number(w, k * block)};
    const value_id around[] = {append(w, def<op::add>, sum, {}, number_type), w.end};
    return append(w, def<op::remainder>, around, {}, number_type);
  }
  /// Appends to `first` a start for each dimension: that of block k along `dim`.
  constexpr vec<value_id> with_starts(writing& w, const ring& r, vec<value_id> first,
                                      const shape& s, int dim, std::int64_t block, std::int64_t k) {
    const value_id at = start(w, r, block, k);
    if (s.rank > 1 && w.zero < 0) w.zero = number(w, 0);
    for (int d = 0; d < s.rank; ++d) first.push_back(d == dim ? at : w.zero);
    return first;
  }
  /// Returns block k of a value along a dimension, or the value itself for no_dim.
  constexpr value_id part(writing& w, const ring& r, value_id v, int dim, std::int64_t k) {
    if (dim == no_dim) return v;
    tensor_type type = w.to->type(v);
    const std::int64_t block = type.shape[dim] / r.members;
    const vec<value_id> operands = with_starts(w, r, {v}, type.shape, dim, block, k);
    std::int64_t sizes[max_rank] = {};
    for (int d = 0; d < type.shape.rank; ++d) sizes[d] = d == dim ? block : ops::whole;
    type.shape[dim] = block;
    return append(w, def<op::dynamic_slice>, {operands.data(), operands.size()},
                  {sizes, static_cast<std::size_t>(type.shape.rank)}, type);
  }
  constexpr value_id product(writing& w, const ring& r, const ring_product& each,
                             const value_id (&operands)[2]) {
    append_copy(*w.to, p_, each.op, operands, p_.attrs(each.op));
    tensor_type type = p_.type(p_.op(each.op).result);
    if (each.dims[result] != no_dim) type.shape[each.dims[result]] /= r.members;
    return w.to->append_result(type);
  }
  constexpr value_id placed(writing& w, const ring& r, const ring_product& each, value_id y,
                            value_id block, std::int64_t k) {
    const tensor_type type = p_.type(p_.op(each.op).result);
    const int dim = each.dims[result];
    if (y < 0) {
      const std::int64_t zero[] = {0};
      y = append(w, def<op::constant>, {}, zero, type);
    }
    const vec<value_id> operands =
        with_starts(w, r, {y, block}, type.shape, dim, type.shape[dim] / r.members, k);
    return append(w, def<op::dynamic_update_slice>, {operands.data(), operands.size()}, {}, type);
  }
  constexpr value_id added(writing& w, value_id x, value_id y) {
    const value_id both[] = {x, y};
    return append(w, def<op::add>, both, {}, tensor_type(w.to->type(x)));
  }
};

/// Turns collectives of a lowered program into rings, and updates its notes and counts. Returns the
/// number of rings.
template <class Worth>
constexpr int make_rings(lowered& l, const Worth& worth) {
  vec<collective_note> notes;
  std::size_t next = 0;
  vec<axis_set> inputs;
  for (const layout& each : l.device.inputs) inputs.push_back(axes_of(l.device.mesh, each));
  varying_sets varies;
  find_varying(l.device.local, l.device.mesh, {inputs.data(), inputs.size()}, varies);
  const int changed =
      making_rings<Worth>(l.device.local, l.device.mesh, worth, varies, l.notes, next).run(notes);
  if (changed == 0) return 0;
  l.notes = static_cast<vec<collective_note>&&>(notes);
  l.counts = counted(l.notes);
  return changed;
}

}  // namespace cost_detail
}  // namespace partita
