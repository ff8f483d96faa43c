/// Proof of pipelines by elements: plays the exported list of steps on formulas.
#pragma once

#include <partita/mpmd/exported.hpp>
#include <partita/prove/by_elements.hpp>

namespace partita::mpmd_detail {

/// Executes the source, and all steps of a pipeline on all devices of their meshes, on formulas.
/// The number of a microbatch is data. Outputs must have the same formulas.
///
/// Cost      linear in the elements of all values on all devices, for each call
class step_elements {
 public:
  constexpr step_elements(const program& source, const pipelined& p, std::int64_t most_steps)
      : source_(source), p_(p) {
    a_.most_steps = most_steps;
  }
  /// Uses numbers as inputs; see element_checker.
  constexpr step_elements& at_numbers(int seed) {
    seed_ = seed;
    a_.at_numbers = true;
    return *this;
  }
  constexpr prove_detail::element_verdict check() {
    verdict v;
    e_ = exporter(p_).run();
    if (e_.error || p_.source.input_count() != source_.input_count() ||
        p_.source.output_count() != source_.output_count())
      return v;
    held_.resize(e_.buffers.size());
    terms_.resize(e_.buffers.size(), axis_set{});
    vec<tensors> inputs;
    for (int i = 0; i < source_.input_count() && !a_.is_over(); ++i) {
      inputs.push_back(this->inputs().variables(source_.input_type(i), i, source_.input_name(i)));
      if (!a_.is_over()) place_input(i, inputs.back());
    }
    if (a_.is_over()) {
      v.kind = verdict::too_large;
      return v;
    }
    const mesh alone;
    const prove_detail::devices one(alone);
    interpreter source(a_, one, true);
    const vec<tensors> wanted = source.run(source_, inputs);
    for (const pipeline_step& s : e_.steps) {
      if (a_.is_over() || unknown_) break;
      if (s.is_call())
        call(s);
      else
        copy(s);
    }
    if (!source.unknown_op().empty()) unknown_ = true;
    v.kind = a_.is_over() ? verdict::too_large : verdict::proved;
    for (int i = 0; i < source_.output_count() && v.kind == verdict::proved && !unknown_; ++i)
      compare(i, wanted[i], v);
    if (unknown_ || (v.kind == verdict::differs && a_.cut_short)) v.kind = verdict::not_known;
    return v;
  }

 private:
  using verdict = prove_detail::element_verdict;
  using tensors = prove_detail::tensors;
  using element = prove_detail::element;
  using place = prove_detail::place;
  using interpreter = prove_detail::element_interpreter;

  const program& source_;
  const pipelined& p_;
  exported_pipeline e_;
  prove_detail::algebra a_;
  vec<tensors> held_;    ///< by buffer
  vec<axis_set> terms_;  ///< by buffer: axes along which devices now hold terms of a sum
  bool unknown_ = false;
  int seed_ = 0;

  constexpr prove_detail::element_inputs inputs() {
    return prove_detail::element_inputs(a_, seed_);
  }
  constexpr void place_input(int i, const tensors& whole) {
    const pipeline_buffer& b = e_.buffers[e_.inputs[i]];
    held_[e_.inputs[i]] =
        inputs().shards(whole, b.local, b.lies, prove_detail::devices(p_.meshes[b.mesh]),
                        prove_detail::drawing(4).add(i));
  }
  /// Joins the shards of a buffer, and shards the result for the other mesh.
  constexpr void copy(const pipeline_step& s) {
    const pipeline_buffer &from = e_.buffers[s.from], &to = e_.buffers[s.to];
    if (!terms_[s.from].empty() || held_[s.from].all.empty())
      return static_cast<void>(unknown_ = true);
    const prove_detail::devices on(p_.meshes[from.mesh]);
    const shape all = from.lies.global(from.local.shape, on.mesh());
    if (!inputs().has_room(all, 1)) return;
    tensors whole = prove_detail::no_elements_yet({from.local.element, all}, 1);
    prove_detail::for_each_place(all, [&](const place& at, std::int64_t n) {
      std::int64_t device = 0;
      place i = at;
      for (int d = 0; d < all.rank; ++d) {
        device = on.with_piece(from.lies, d, at[d] / from.local.shape[d], device);
        i[d] %= from.local.shape[d];
      }
      whole.on(0)[n] = held_[s.from].on(device)[prove_detail::number_of(i, from.local.shape)];
    });
    held_[s.to] =
        inputs().shards(whole, to.local, to.lies, prove_detail::devices(p_.meshes[to.mesh]),
                        prove_detail::drawing(0x57e9).add(s.to));
  }
  constexpr void call(const pipeline_step& s) {
    const device_program& d = p_.function(s.unit).device;
    if (!d.mesh.same_grid(p_.meshes[s.mesh])) return static_cast<void>(unknown_ = true);
    const prove_detail::devices on(d.mesh);
    vec<tensors> given;
    for (std::size_t k = 0; k < s.takes.size() && !unknown_; ++k)
      given.push_back(operand(s.takes[k], d.local.input_type(static_cast<int>(k)), on));
    if (unknown_ || a_.is_over()) return;
    interpreter run(a_, on, false);
    const vec<tensors> made = run.run(d.local, given);
    if (a_.is_over()) return;
    if (!run.unknown_op().empty()) return static_cast<void>(unknown_ = true);
    for (std::size_t k = 0; k < s.gives.size(); ++k) {
      const call_operand& to = s.gives[k];
      terms_[to.buffer] = p_.function(s.unit).gives[k].terms;
      if (to.slice < 0)
        held_[to.buffer] = made[k];
      else
        put_slice(to, made[k], on);
    }
  }
  constexpr tensors operand(const call_operand& x, const tensor_type& wanted,
                            const prove_detail::devices& on) {
    if (!inputs().has_room(wanted.shape, on.count())) return {};
    tensors made = prove_detail::no_elements_yet(wanted, on.count());
    if (x.is_number()) {
      for (element& each : made.all) each = prove_detail::integer(wanted.element, x.slice);
      return made;
    }
    const pipeline_buffer& b = e_.buffers[x.buffer];
    const tensors& held = held_[x.buffer];
    if (held.all.empty() && b.accumulates) {
      const auto c = static_cast<combiner>(p_.values().attrs(p_.values().producer(b.slot))[0]);
      for (element& each : made.all)
        each = prove_detail::identity_of(c == combiner::stack ? combiner::add : c, wanted.element);
      return made;
    }
    const std::int64_t first = x.slice < 0 ? 0 : x.slice * made.size();
    if (held.all.empty() && held.size() > 0) unknown_ = true;
    if ((x.slice < 0 ? held.type != wanted : held.size() < first + made.size())) unknown_ = true;
    for (std::int64_t d = 0; d < on.count() && !unknown_; ++d)
      for (std::int64_t n = 0; n < made.size(); ++n) made.on(d)[n] = held.on(d)[first + n];
    return made;
  }
  constexpr void put_slice(const call_operand& to, const tensors& slice,
                           const prove_detail::devices& on) {
    tensors& stack = held_[to.buffer];
    const tensor_type& local = e_.buffers[to.buffer].local;
    if (stack.all.empty() && !inputs().has_room(local.shape, on.count())) return;
    if (stack.all.empty()) stack = prove_detail::no_elements_yet(local, on.count());
    const std::int64_t first = to.slice * slice.size();
    if (stack.size() < first + slice.size()) return static_cast<void>(unknown_ = true);
    for (std::int64_t d = 0; d < on.count(); ++d)
      for (std::int64_t n = 0; n < slice.size(); ++n) stack.on(d)[first + n] = slice.on(d)[n];
  }
  constexpr void compare(int i, const tensors& whole, verdict& v) {
    const pipeline_buffer& b = e_.buffers[e_.outputs[i]];
    const prove_detail::devices on(p_.meshes[p_.output_mesh[i]]);
    const tensors& made = held_[e_.outputs[i]];
    if (made.type != b.local || b.mesh != p_.output_mesh[i])
      return static_cast<void>(unknown_ = true);
    const prove_detail::element_difference first =
        prove_detail::first_difference(a_, on, p_.output_layout[i], whole, made);
    if (!first.found) return;
    v.kind = verdict::differs;
    v.output = i;
    v.at = first.at;
    v.device = first.device;
  }
};

}  // namespace partita::mpmd_detail
