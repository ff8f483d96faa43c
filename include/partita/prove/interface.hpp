/// Inputs and outputs of the source: gives local programs their shards of the inputs, and checks
/// their outputs.
#pragma once

#include <partita/prove/control.hpp>
#include <partita/prove/words.hpp>

namespace partita::prove_detail {

/// The layout of a value on a mesh, as a view of the global tensor.
constexpr view laid_out(const layout& l, const shape& local, const mesh& m) {
  view v(local.rank, local.rank);
  for (int d = 0; d < local.rank; ++d) v.add(d, d, local.extents[d], 1);
  std::int64_t step[max_rank] = {};
  for (int d = 0; d < local.rank; ++d) step[d] = local.extents[d];
  for (int i = l.count; i-- > 0;) {
    const auto e = l[i];
    v.add(on_axis(e.axis), e.dim, m.size(e.axis), step[e.dim]);
    step[e.dim] *= m.size(e.axis);
  }
  return v;
}

/// The source, whose inputs and op results are terms. Inputs come first, then claims about local
/// inputs, then ops.
class source_interface {
 public:
  constexpr source_interface(workspace& w, const program& source)
      : w_(w), p_(source), known_(source) {}

  constexpr void enter() {
    for (const value_id v : p_.inputs) {
      const int t = w_.all.terms.fresh(p_.type(v));
      w_.all.terms[t].home = &p_;
      w_.all.terms[t].value = v;
      terms_.push_back(t);
      w_.add(known_, v, t, view(p_.type(v).shape), {});
    }
  }
  /// Records that a local value is a shard of an input.
  constexpr void give(int i, const layout& l, const shape& local, claim_list& to, value_id v) {
    w_.add(to, v, terms_[i], laid_out(l, local, w_.mesh), {});
  }
  constexpr void define() {
    lift_all(w_, p_, known_);
    w_.source_terms = w_.all.terms.size();
    w_.defining = w_.stopped();
  }
  /// True if a local value is the shard of an output that a layout requires.
  constexpr bool is_output(int i, const layout& l, const shape& local, const claim_list& of,
                           value_id v) {
    return is_value(p_.outputs[i].value, l, local, of, v);
  }
  /// The same for any value.
  constexpr bool is_value(value_id whole, const layout& l, const shape& local, const claim_list& of,
                          value_id v) {
    const shape& s = p_.type(whole).shape;
    if (s.has_no_elements()) return true;
    for (int c = of.first[v]; c >= 0; c = w_.claims[c].next)
      for (int k = known_.first[whole]; k >= 0; k = w_.claims[k].next)
        if (is_piece(w_.claims[k], w_.claims[c], s, laid_out(l, local, w_.mesh))) return true;
    return false;
  }
  /// True if a claim states that a local value is the shard of this value.
  constexpr bool is_piece(const claim& source, const claim& local, const shape& whole,
                          const view& wanted) {
    return is_same(source, local, whole, wanted) ||
           is_same(source, shown(local, whole, wanted), whole, wanted);
  }
  constexpr const claim_list& known() const { return known_; }
  /// The text `output "y" is ...; in the source it is ...`
  constexpr text describe_output(int i, const claim_list& of, value_id v) const {
    return concat("output \"", p_.output_name(i), "\" is ", words(of, v), "; in the source it is ",
                  words(known_, p_.outputs[i].value));
  }
  /// The reduction that would make a local value the output, if nothing else is missing, after ";
  /// ".
  constexpr text missing_at_output(int i, const layout& l, const shape& local, const claim_list& of,
                                   value_id v) {
    const value_id mine = p_.outputs[i].value;
    const shape& s = p_.type(mine).shape;
    text out;
    for (int c = of.first[v]; c >= 0 && out.empty(); c = w_.claims[c].next) {
      const text missing = missing_reduction(w_.claims[c], "", w_.mesh);
      claim reduced = w_.claims[c];
      reduced.sums = {};
      for (int k = known_.first[mine]; k >= 0 && out.empty(); k = w_.claims[k].next)
        if (!missing.empty() && is_piece(w_.claims[k], reduced, s, laid_out(l, local, w_.mesh)))
          out << "; " << missing;
    }
    return out;
  }
  constexpr text words(const claim_list& list, value_id v) const {
    text out;
    if (list.first[v] < 0)
      out << "not known";
    else
      print_claim(out, w_.all, w_.claims[list.first[v]], w_.mesh);
    return out;
  }

 private:
  workspace& w_;
  const program& p_;
  claim_list known_;
  vec<int> terms_;  ///< by input

  /// A claim restricted to the elements of the source's output.
  constexpr claim shown(const claim& local, const shape& whole, const view& wanted) {
    view v = w_.all.views[local.view];
    return restrict_to(v, wanted, whole)
               ? w_.known({local.term, w_.number(v, local.term), local.sums, local.scale})
               : local;
  }
  constexpr bool is_same(claim source, const claim& local, const shape& whole, const view& wanted) {
    piece have[max_rank], want[max_rank];
    view seen;
    if (source.scale != local.scale || local.sums.any() || local.view < 0 ||
        (!find_whole(w_.all, source.seen(), whole, local.seen(), seen) &&
         (!see_as(w_, source, local, whole) ||
          !find_whole(w_.all, source.seen(), whole, local.seen(), seen))))
      return false;
    const view identity(whole);
    const relative_view in_source(seen, whole, w_.all.views[local.view],
                                  w_.all.terms[local.term].shape, w_.all.own(local.term));
    if (!relative_view(identity, whole, wanted, whole, nullptr, true).find(want)) return false;
    if (in_source.holds(want)) return true;
    if (!in_source.find(have)) return false;
    const operand_term alias = w_.all.terms[source.term].alias;
    const bool is_shape = alias.term >= 0 && w_.all.views[source.view] == identity;
    for (int d = 0; d < whole.rank; ++d) {
      const bool same =
          w_.all.views[source.view].repeats(d) || (is_shape && w_.all.views[alias.view].repeats(d));
      if (have[d].free || (same && have[d].lies_inside(whole.extents[d]))) continue;
      for (int k = 0; k < want[d].count; ++k)
        if (want[d].digits[k].owner >= 0) want[d].digits[k].owner = 0;
      if (!have[d].same_digits(want[d])) return false;
    }
    return true;
  }
};

/// The first op that the outputs of a program depend on and whose result the source does not
/// contain, or -1. `needed`: by op, 1 if a requested value depends on it.
constexpr op_id first_strange(const workspace& w, const program& p, const claim_list& of,
                              vec<char>& needed) {
  need_operands(p, needed);
  for (op_id o = 0; o < p.op_count(); ++o) {
    const int c = of.first[p.op(o).result];
    if (needed[o] == 0 || c < 0 || p.op(o).operand_count == 0) continue;
    const int t = w.claims[c].term;
    if (t >= w.source_terms && w.all.terms[t].by_element) return o;
  }
  return -1;
}

}  // namespace partita::prove_detail
