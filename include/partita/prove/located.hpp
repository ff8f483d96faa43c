/// Located factors: ops whose iterations depend on the start of their shards.
///
/// Law       The iterations that an op's `locate` function writes, stacked or reduced, compute the
///           result of the op; see ir/locate.hpp. A local program with the same ops computes the
///           iteration of one device.
#pragma once

#include <cstdint>

#include <partita/ir/copy.hpp>
#include <partita/op/window_rows.hpp>
#include <partita/prove/claims.hpp>

namespace partita::prove_detail {

/// A gather or scatter of windows at index vectors, or of windows that a device may hold only
/// partly (for rows at single indices, see rows_law), identified by its last op.
class located_op {
 public:
  constexpr located_op(workspace& w, const program& p, op_id o, claim_list& to)
      : w_(w), p_(p), o_(o), to_(to) {}

  constexpr bool apply() {
    if (!find_inner()) return false;
    for (int t = 0; t < w_.source_terms; ++t)
      if (w_.all.terms.is(t, inner_def()) && w_.step() && is_iteration_of(t)) return true;
    return false;
  }

 private:
  workspace& w_;
  const program& p_;
  const op_id o_;
  claim_list& to_;
  op_id inner_ = -1;  ///< the gather or scatter
  bool reads_ = false;
  int whole_ = -1, index_ = 0, updates_ = -1;  ///< operands; -1: absent
  vec<int> cut_;                               ///< sharded dimensions of the tensor
  vec<value_id> bound_;                        ///< by value of an iteration: the local value

  constexpr const op_def& inner_def() const { return *p_.op(inner_).def; }
  constexpr bool is_by(op_id o, const op_def& d) const { return p_.op(o).def->id == d.id; }
  constexpr const tensor_type& result() const { return p_.type(p_.op(o_).result); }

  /// Finds the op in scatter(...), select(here, gather(...), 0), or the select with swapped
  /// branches.
  constexpr bool find_inner() {
    inner_ = o_;
    if (is_by(inner_, def<op::transpose>)) inner_ = p_.producer(p_.operand(inner_, 0));
    if (is_by(inner_, def<op::select>)) inner_ = p_.producer(p_.operand(inner_, 1));
    reads_ = is_by(inner_, def<op::gather>);
    if (!reads_ && (inner_ != o_ || !is_by(inner_, def<op::scatter>))) return false;
    const int count = p_.op(inner_).operand_count;
    whole_ = reads_ || count == 3 ? 0 : -1;
    index_ = reads_ ? 1 : count - 2;
    updates_ = reads_ ? -1 : count - 1;
    return inner_ != o_ || !reads_;
  }
  constexpr const shape& whole_of(const site& s) const {
    return (whole_ < 0 ? s.result_type(0) : s.operand_type(whole_)).shape;
  }

  constexpr bool is_iteration_of(int t) {
    const site source = w_.all.terms[t].at;
    if (source.operand_count() != p_.op(inner_).operand_count || source.op < 0 ||
        source.result_type(0).element != result().element)
      return false;
    const shape all = whole_of(source);
    const shape part = whole_ < 0 ? result().shape : p_.type(p_.operand(inner_, whole_)).shape;
    const auto attrs = source.attrs();
    const op::gather_dims dims(reads_ ? attrs : attrs.subspan(1), all,
                               source.operand_type(index_).shape);
    if (!dims.fault.empty() || all.rank != part.rank ||
        source.result_type(0).shape.rank != result().shape.rank)
      return false;
    const shape window =
        dims.window((reads_ ? source.result_type(0) : source.operand_type(updates_)).shape);
    vec<tensor_type> given;
    if (!find_types(source, dims, window, part, given)) return false;
    const program alone = one_op(source, given);
    vec<int> cut, maybe;  // with padding, a shard may be as large as the global tensor
    for (int d = 0; d < all.rank; ++d)
      if (op::is_partly_covered(dims, d, all, window))
        (part[d] != all[d] ? cut : maybe).push_back(d);
    for (unsigned some = 0; some < 1u << maybe.size(); ++some) {
      cut_ = cut;
      for (std::size_t i = 0; i < maybe.size(); ++i)
        if ((some >> i & 1u) != 0) cut_.push_back(maybe[i]);
      if (!w_.step()) return false;
      if (!cut_.empty() && meets(t, source, site(alone, alone.op_count() - 1), given, part))
        return true;
    }
    return false;
  }
  /// Finds the types of the operands' shards.
  constexpr bool find_types(const site& source, const op::gather_dims& dims, const shape& window,
                            const shape& part, vec<tensor_type>& given) const {
    tensor_type indices = source.operand_type(index_);
    const shape& local = p_.type(p_.operand(inner_, index_)).shape;
    for (int d = 0, batch = 0; d < indices.shape.rank && !reads_; ++d) {
      if (d == dims.vector_dim) continue;
      if (batch >= local.rank) return false;
      indices.shape[d] = local[batch++];
    }
    for (int r = 0; r < dims.result_rank && reads_; ++r)
      if (dims.index_dim[r] >= 0) indices.shape[dims.index_dim[r]] = result().shape[r];
    if (whole_ >= 0) given.push_back({source.operand_type(whole_).element, part});
    given.push_back(indices);
    if (updates_ < 0) return true;
    tensor_type updates = source.operand_type(updates_);
    for (int r = 0; r < dims.result_rank; ++r)
      if (dims.index_dim[r] >= 0) updates.shape[r] = indices.shape[dims.index_dim[r]];
    const shape& all = whole_of(source);
    for (int d = 0; d < all.rank; ++d)
      if (const int r = dims.window_dim[d]; r >= 0 && window[d] == all[d])
        updates.shape[r] = part[d];
    given.push_back(updates);
    return true;
  }
  /// A program with only the op, on shards of its operands. (It may be invalid on its own.)
  constexpr program one_op(const site& source, const vec<tensor_type>& given) const {
    program alone;
    vec<value_id> operands;
    for (const tensor_type& t : given)
      operands.push_back(append_for(alone, {}, def<op::parameter>, {}, {}, t));
    append_for(alone, {}, source.def(), {operands.data(), operands.size()}, source.attrs(),
               result());
    return alone;
  }

  /// True if the local program has the ops of an iteration.
  constexpr bool meets(int t, const site& source, const site& alone, const vec<tensor_type>& given,
                       const shape& part) {
    factor_table map;
    vec<tensor_type> types;
    for (int i = 0; i < source.operand_count(); ++i) types.push_back(source.operand_type(i));
    const auto attrs = source.attrs();
    tile_map_context factors(types, source.result_type(0), attrs.data(),
                             static_cast<int>(attrs.size()), map, 1);
    source.def().tile_map(factors);
    vec<located_piece> pieces;
    vec<int> dims;
    for (int f = 0; f < map.ops[0].count; ++f) {
      const int d = map.dim_of(map.at(0, f), whole_ < 0 ? -1 : 0);
      for (int each : cut_)
        if (map.at(0, f).located && d == each) {
          pieces.push_back({f, whole_of(source)[d], part[d]});
          dims.push_back(d);
        }
    }
    if (pieces.size() != cut_.size()) return false;
    builder b;
    vec<value_id> inputs;
    for (const tensor_type& each : given)
      inputs.push_back(b.emit(def<op::parameter>, {}, {}, each));
    const tensor_type results[] = {result()};
    locate_context c(b, source.def(), def<op::parameter>, map, 0, inputs, attrs, pieces, results);
    source.def().locate(c);
    if (b.failed() || c.results.size() != 1) return false;
    bound_.assign(b.p.types.size(), -1);
    if (!is_same(b.p, c.results[0], p_.op(o_).result)) return false;
    vec<piece> rows(dims.size(), piece());
    for (std::size_t i = 0; i < dims.size(); ++i) rows[i].add(0, part[dims[i]], 1);
    for (const located_start& each : c.starts)
      if (!find_start(at(each.input), rows[static_cast<std::size_t>(each.piece)])) return false;
    return apply(t, source, alone, inputs, dims, rows);
  }
  constexpr value_id& at(value_id v) { return bound_[static_cast<std::size_t>(v)]; }
  /// True if a value of an iteration is computed like a local one. Binds it.
  constexpr bool is_same(const program& f, value_id v, value_id local) {
    if (at(v) >= 0) return at(v) == local;
    if (!w_.step() || f.type(v) != p_.type(local)) return false;
    const op_id mine = f.producer(v), other = p_.producer(local);
    at(v) = local;
    if (f.is(mine, op_role::parameter)) return true;
    const op_node &a = f.op(mine), &b = p_.op(other);
    if (a.def->id != b.def->id || a.operand_count != b.operand_count || a.result_count != 1 ||
        b.result_count != 1 || !same_elements(f.attrs(mine), p_.attrs(other)))
      return false;
    for (int i = 0; i < a.operand_count; ++i)
      if (!is_same(f, f.operand(mine, i), p_.operand(other, i))) return false;
    return true;
  }
  /// Finds the start of the shards on each device.
  constexpr bool find_start(value_id local, piece& rows) const {
    for (int c = local < 0 ? -1 : to_.first[local]; c >= 0; c = w_.claims[c].next) {
      const claim& each = w_.claims[c];
      if (each.sums.any() || each.scale != 1 || !w_.all.terms.is_positions(each.term)) continue;
      const view& v = w_.all.views[each.view];
      bool good = v.dims == 1 && v.start[0] == 0;
      for (int i = 0; i < v.count; ++i)
        good = good && counts_all(v.digits[i].owner) && v.digits[i].dim == 0;
      if (!good) continue;
      for (int i = 0; i < v.count; ++i)
        rows.add(v.digits[i].owner, v.digits[i].extent, v.digits[i].stride);
      return rows.good();
    }
    return false;
  }

  constexpr bool apply(int t, const site& source, const site& alone, const vec<value_id>& inputs,
                       const vec<int>& dims, const vec<piece>& rows) {
    vec<int> heads;
    for (value_id v : inputs) heads.push_back(at(v) < 0 ? -1 : to_.first[at(v)]);
    for (std::size_t i = 0; i < heads.size(); ++i)  // (values without elements need no claim)
      if (at(inputs[i]) < 0 && source.operand_type(static_cast<int>(i)).shape.has_no_elements())
        heads[i] = heads[whole_ < 0 ? static_cast<std::size_t>(updates_) : 0];
    vec<op_law::cut_rows> cuts;
    for (std::size_t i = 0; i < dims.size(); ++i)
      cuts.push_back({&rows[i], dims[i], whole_, !reads_});
    bool done = false;
    w_.for_each_choice(heads, [&] {
      if (done) return;
      for (const claim& each : w_.chosen)
        if (each.sums.any()) return;
      w_.unscale();
      op_law law(w_.all, w_.room, t, w_.map(), alone, w_.given);
      law.cuts = {cuts.data(), cuts.size()};
      vec<view> results;
      pending sums;
      if (!law.apply(results, sums)) return w_.explain(law.near, law.reason);
      if (reads_ && !join(whole_of(source), dims, rows, results[0], sums)) return;
      w_.add(to_, p_.op(o_).result, t, results[0], sums);
      done = to_.first[p_.op(o_).result] >= 0;
    });
    return done;
  }
  /// Makes the gathered rows those of one device along each of these dimensions.
  constexpr bool join(const shape& all, const vec<int>& dims, const vec<piece>& rows,
                      const view& result, pending& sums) const {
    std::uint32_t axes = 0;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (rows[i].least() < 0 || rows[i].covered() < all[dims[i]]) return false;
      for (int k = 0; k < rows[i].count; ++k)
        if (rows[i].digits[k].owner < 0) {
          const std::uint32_t axis = 1u << axis_of(rows[i].digits[k]);
          if ((axes & axis) != 0) return false;  // sharded by it along two dimensions: a diagonal
          axes |= axis;
        }
    }
    if (!sums.add(axes, op::shard_combiner(this->result().element))) return false;
    for (int i = 0; i < result.count; ++i)
      if (result.digits[i].owner < 0 && sums.contains(axis_of(result.digits[i]))) return false;
    return true;
  }
};

}  // namespace partita::prove_detail
