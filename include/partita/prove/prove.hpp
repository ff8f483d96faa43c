/// `prove`: does a device-local program compute its source?
#pragma once

#include <partita/prove/control.hpp>
#include <partita/prove/given.hpp>
#include <partita/prove/words.hpp>

namespace partita {

/// What `prove` says.
struct verdict {
  bool proved = false;
  failure error;  ///< why it is not proved

  constexpr explicit operator bool() const { return proved; }
};

struct prove_options {
  static constexpr std::int64_t off = -1;
  /// Steps after which it gives up (Q008): an op that is looked at, a choice among what is known of
  /// its operands, an op of the source that it is compared with. The same everywhere.
  std::int64_t most_steps = off;
};

namespace prove_detail {

class checker {
 public:
  constexpr checker(const program& source, const device_program& d, std::int64_t most_steps)
      : source_(source), d_(d), work_(d.mesh, most_steps), of_source_(source), of_local_(d.local) {}

  constexpr verdict run() {
    verdict v;
    v.error = given(source_, d_).check();
    if (v.error) return v;
    work_.reserve(source_, d_.local);
    for (int i = 0; i < source_.input_count(); ++i) add_input(i);
    lift_all(work_, source_, of_source_);
    work_.source_terms = work_.all.terms.size();
    work_.defining = work_.stopped();
    lift_all(work_, d_.local, of_local_);
    if (work_.stopped())
      v.error.record("Q008", "prove: more than ", work_.most_steps, " steps, the limit, at ",
                     op_text(*work_.in, work_.at), " of the ",
                     work_.defining ? "source" : "local program");
    for (int i = 0; i < source_.output_count() && !v.error; ++i) check_output(i, v.error);
    v.proved = !v.error;
    return v;
  }

 private:
  const program& source_;
  const device_program& d_;
  workspace work_;
  claim_list of_source_, of_local_;

  /// How a value lies on the mesh, as a view of the tensor that it is a piece of.
  constexpr view laid_out(const layout& l, const shape& local) const {
    view v(local.rank, local.rank);
    for (int d = 0; d < local.rank; ++d) v.add(d, d, local.extents[d], 1);
    std::int64_t step[max_rank] = {};
    for (int d = 0; d < local.rank; ++d) step[d] = local.extents[d];
    for (int i = l.count; i-- > 0;) {
      const auto e = l[i];
      v.add(on_axis(e.axis), e.dim, d_.mesh.size(e.axis), step[e.dim]);
      step[e.dim] *= d_.mesh.size(e.axis);
    }
    return v;
  }
  constexpr void add_input(int i) {
    const value_id v = source_.inputs[i], local = d_.local.inputs[i];
    const int t = work_.all.terms.fresh(source_.type(v));
    work_.all.terms[t].home = &source_;
    work_.all.terms[t].value = v;
    work_.add(of_source_, v, t, view(source_.type(v).shape), {});
    work_.add(of_local_, local, t, laid_out(d_.inputs[i], d_.local.type(local).shape), {});
  }
  constexpr void check_output(int i, failure& f) {
    const value_id v = source_.outputs[i].value, local = d_.local.outputs[i].value;
    if (source_.type(v).shape.has_no_elements()) return;
    for (int c = of_local_.first[local]; c >= 0; c = work_.claims[c].next)
      for (int s = of_source_.first[v]; s >= 0; s = work_.claims[s].next)
        if (is_output(work_.claims[s], work_.claims[c], i) ||
            is_output(work_.claims[s], shown(work_.claims[c], i), i))
          return;
    blame_part(work_, d_.local, local, of_local_);
    if (work_.lost >= 0)
      return f.record(code_of_lost(work_), "prove: ", describe_lost(work_, d_.mesh));
    if (const op_id o = first_strange(local); o >= 0) {
      work_.note_lost(d_.local, o, of_local_, "the source computes nothing like it");
      return f.record("Q003", "prove: ", describe_lost(work_, d_.mesh), "; output \"",
                      source_.output_name(i), "\" is made of it");
    }
    f.record("Q004", "prove: output \"", source_.output_name(i), "\" is ", words(of_local_, local),
             "; in the source it is ", words(of_source_, v));
  }
  /// The first op that a value is made of and that the source has nothing like, or -1.
  constexpr op_id first_strange(value_id v) const {
    const program& p = d_.local;
    vec<char> needed(p.ops.size(), 0);
    needed[p.producer(v)] = 1;
    need_operands(p, needed);
    for (op_id o = 0; o < p.op_count(); ++o) {
      const int c = of_local_.first[p.op(o).result];
      if (needed[o] == 0 || c < 0 || p.op(o).operand_count == 0) continue;
      const int t = work_.claims[c].term;
      if (t >= work_.source_terms && work_.all.terms[t].by_element) return o;
    }
    return -1;
  }
  constexpr text words(const claim_list& list, value_id v) const {
    text out;
    if (list.first[v] < 0)
      out << "not known";
    else
      print_claim(out, work_.all, work_.claims[list.first[v]], d_.mesh);
    return out;
  }
  /// A claim, but only for what an output shows of the source's.
  constexpr claim shown(const claim& local, int i) {
    const shape& whole = source_.output_type(i).shape;
    const view wanted = laid_out(d_.outputs[i], d_.local.output_type(i).shape);
    view v = work_.all.views[local.view];
    return restrict_to(v, wanted, whole)
               ? work_.known({local.term, work_.number(v, local.term), local.sums, local.scale})
               : local;
  }
  constexpr bool is_output(claim source, const claim& local, int i) {
    const shape &whole = source_.output_type(i).shape, &mine = d_.local.output_type(i).shape;
    piece have[max_rank], want[max_rank];
    view seen;
    if (source.scale != local.scale || local.sums.any() || local.view < 0 ||
        (!find_whole(work_.all, source.seen(), whole, local.seen(), seen) &&
         (!see_as(work_, source, local, whole) ||
          !find_whole(work_.all, source.seen(), whole, local.seen(), seen))))
      return false;
    const view identity(whole), wanted = laid_out(d_.outputs[i], mine);
    const relative_view in_source(seen, whole, work_.all.views[local.view],
                                  work_.all.terms[local.term].shape, work_.all.own(local.term));
    if (!relative_view(identity, whole, wanted, whole, nullptr, true).find(want)) return false;
    if (in_source.holds(want)) return true;
    if (!in_source.find(have)) return false;
    for (int d = 0; d < whole.rank; ++d) {
      const bool same = work_.all.views[source.view].repeats(d);
      if (have[d].free || (same && have[d].lies_inside(whole.extents[d]))) continue;
      for (int k = 0; k < want[d].count; ++k)
        if (want[d].digits[k].owner >= 0) want[d].digits[k].owner = 0;
      if (!have[d].same_digits(want[d])) return false;
    }
    return true;
  }
};

}  // namespace prove_detail

/// Does a device-local program compute its source, for all inputs, up to the order of sums?
///
/// Cost      linear in ops, independent of the number of devices
/// Errors    Q001 numbers of inputs and outputs, Q002 a layout does not fit, Q003 the first local
/// op
///           that makes nothing of the source, Q004 an output that is something else, Q006 an
///           axis that the mesh has not, Q007 the local program does not verify, Q008 more steps
///           than allowed, Q009 the first local op that makes nothing of the source has no tile map
constexpr verdict prove(const program& source, const device_program& local,
                        const prove_options& options = {}) {
  return prove_detail::checker(source, local, options.most_steps).run();
}

/// What `partition` gave, proved: else it is an error (Q...), which is thrown at run time and kept
/// for `check` in constant evaluation. Where the thunk of a `check` says so, the program is made
/// once for its figures and its proof.
template <class Partitioned>
constexpr Partitioned proved(Partitioned p) {
  if (p.error) return p;
  p.error.record(prove(p.source, p.device).error);
  p.error.raise();
  p.proved = !p.error;
  return p;
}

}  // namespace partita
