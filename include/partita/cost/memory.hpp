/// The contents of a device's memory at its peak.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/fusion.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// The role of a value in memory during a training step. Programs without derivatives have inputs
/// and temporaries only. memory_roles infers the roles in imported modules, which do not mark
/// derivatives.
enum class memory_kind : std::uint8_t {
  parameter,        ///< an input whose next state is an output, and that the model reads
  optimizer_state,  ///< an input whose next state is an output, and that the model does not read
  input,            ///< any other argument
  activation,       ///< computed by the model, read by its derivative
  gradient,         ///< computed by the derivative, read by later ops
  communication,    ///< the result of a collective, except for gradients
  temporary
};
inline constexpr int memory_kinds = 7;
/// Returns the plural that reports print for a role.
constexpr std::string_view name_of(memory_kind k) {
  constexpr std::string_view names[] = {"parameters",  "optimizer state", "inputs",
                                        "activations", "gradients",       "communication buffers",
                                        "temporaries"};
  return names[static_cast<int>(k)];
}

/// A value in memory.
struct resident {
  value_id value = -1;
  std::int64_t bytes = 0;
  memory_kind kind = memory_kind::temporary;
};

/// The peak of memory of a program on one device, see live_bytes.
struct memory_peak {
  std::int64_t bytes = 0;  ///< total
  op_id op = -1;           ///< the op whose kernel runs at the peak
  /// Bytes by role.
  std::int64_t of[memory_kinds] = {};
  std::int64_t nested = 0;  ///< bytes of programs nested in the op, without their arguments
  vec<resident> largest;    ///< values of the program itself, largest first
  /// False for an imported module whose derivatives could not be identified: activations and
  /// gradients then count as temporaries.
  bool knows_derivatives = true;

  constexpr std::int64_t operator[](memory_kind k) const { return of[static_cast<int>(k)]; }
};

namespace cost_detail {

/// Finds the roles of values in a training step: by the origin of ops, or, for an imported module,
/// by names and by data flow.
///
/// In such a module an input with a next state (an output of the same name) is a state. Ops that
/// any other floating-point output needs are the model. Elementwise ops between the rest and next
/// states are the update, together with the collectives there that do not reduce. All other ops are
/// the derivative. A state that ops other than the update read is a parameter, any other state
/// belongs to the optimizer; but if the first part of the input's path is `params`, `opt`,
/// `opt_state` or `optimizer`, it decides. Without states, or without an output beside them,
/// derivatives are unknown (`knows_derivatives`).
class memory_roles {
 public:
  constexpr explicit memory_roles(const program& p, const live_bytes& live)
      : p_(p),
        live_(live),
        kinds_(p.types.size(), memory_kind::temporary),
        by_op_(p.ops.size(), other) {
    find_states();
    if (find_by_origin())
      find_inputs(false);
    else if (p.interface.known() && find_by_structure())
      find_inputs(true);
    else
      find_named_inputs();
    for (value_id v = 0; v < p.value_count(); ++v)
      if (!p.is(p.producers[v], op_role::parameter)) kinds_[v] = kind_of(v);
  }
  constexpr memory_kind operator[](value_id v) const { return kinds_[v]; }
  /// False if the program may have derivatives whose ops are unknown.
  constexpr bool knows_derivatives() const { return known_; }

 private:
  enum part : char { other, model, derivative, update };
  const program& p_;
  const live_bytes& live_;
  vec<memory_kind> kinds_;
  vec<part> by_op_;
  vec<int> next_of_;   ///< by input: the output of the same name, or -1
  vec<char> is_next_;  ///< by output
  bool known_ = false;

  constexpr void find_states() {
    next_of_.resize(p_.inputs.size(), -1);
    is_next_.resize(p_.outputs.size(), 0);
    name_table outputs(p_.outputs.size());
    for (int k = 0; k < p_.output_count(); ++k) outputs.insert(p_.output_name(k), k);
    for (int i = 0; i < p_.input_count(); ++i) {
      const int k = outputs.find(p_.input_name(i));
      if (k >= 0) next_of_[i] = k, is_next_[k] = 1;
    }
  }
  /// Returns false if no op is a derivative of another one.
  constexpr bool find_by_origin() {
    vec<char> derived;  // by op of the source: true if the program has a derivative of it
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const int origin = p_.op(o).marks.origin;
      if (origin < 0) continue;
      if (static_cast<std::size_t>(origin) >= derived.size())
        derived.resize(static_cast<std::size_t>(origin) + 1, 0);
      derived[origin] = 1;
    }
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const op_marks& m = p_.op(o).marks;
      const bool has = m.source >= 0 && static_cast<std::size_t>(m.source) < derived.size() &&
                       derived[m.source] != 0;
      by_op_[o] = m.origin >= 0 ? derivative : has ? model : other;
    }
    return known_ = !derived.empty();
  }
  /// Returns false if the program has no states, or returns nothing else.
  constexpr bool find_by_structure() {
    bool states = false, losses = false;
    vec<char> needed(p_.types.size(), 0), updates(p_.types.size(), 0);
    for (int k = 0; k < p_.output_count(); ++k) {
      const value_id v = p_.outputs[k].value;
      states = states || is_next_[k] != 0;
      if (is_next_[k] != 0) {
        updates[v] = 1;
      } else if (is_floating(p_.types[v].element)) {
        needed[v] = 1;
        losses = losses || !p_.is(p_.producers[v], op_role::parameter);
      }
    }
    if (!states || !losses) return false;
    for (op_id o = p_.op_count(); o-- > 0;) {
      const op_node& n = p_.op(o);
      bool is_needed = false, is_update = updates_elements(o);
      for (value_id v = n.result; v < n.result + n.result_count; ++v) {
        is_needed = is_needed || needed[v] != 0;
        is_update = is_update && updates[v] == 1;
      }
      by_op_[o] = is_needed ? model : is_update ? update : derivative;
      // A value that an op other than an update also reads is not part of the update.
      for (const value_id v : p_.operands(o)) {
        if (is_needed) needed[v] = 1;
        updates[v] = by_op_[o] == update && updates[v] != 2 ? 1 : 2;
      }
    }
    return known_ = true;
  }
  /// True if an op works element by element, or moves the result of such ops.
  constexpr bool updates_elements(op_id o) const {
    const op_def& d = *p_.op(o).def;
    return d.elementwise || d.identity || d.repeats ||
           (d.collective && !p_.is(o, collective::all_reduce) &&
            !p_.is(o, collective::reduce_scatter));
  }
  constexpr void find_inputs(bool names) {
    vec<char> read_by_model(p_.types.size(), 0);
    for (op_id o = 0; o < p_.op_count(); ++o)
      for (value_id v : p_.operands(o))
        if (by_op_[o] == model || by_op_[o] == derivative) read_by_model[v] = 1;
    for (int i = 0; i < p_.input_count(); ++i) {
      const value_id v = p_.inputs[i];
      memory_kind& kind = kinds_[v];
      kind = next_of_[i] < 0         ? memory_kind::input
             : read_by_model[v] != 0 ? memory_kind::parameter
                                     : memory_kind::optimizer_state;
      if (names) kind = by_name(p_.input_name(i), kind);
    }
  }
  constexpr void find_named_inputs() {
    for (int i = 0; i < p_.input_count(); ++i)
      kinds_[p_.inputs[i]] =
          p_.interface.known() ? by_name(p_.input_name(i), memory_kind::input) : memory_kind::input;
  }
  /// Returns the role that the path of an input names, or `otherwise`.
  static constexpr memory_kind by_name(std::string_view path, memory_kind otherwise) {
    while (!path.empty()) {
      const std::size_t dot = path.find('.');
      const std::string_view part = path.substr(0, dot);
      for (const std::string_view word : {"opt", "opt_state", "optimizer"})
        if (part == word) return memory_kind::optimizer_state;
      if (part == "params" && dot != std::string_view::npos) return memory_kind::parameter;
      path = dot == std::string_view::npos ? std::string_view() : path.substr(dot + 1);
    }
    return otherwise;
  }
  constexpr bool derives(op_id o) const { return by_op_[o] == derivative; }
  constexpr memory_kind kind_of(value_id v) const {
    const op_id made = p_.producers[v], last = live_.last_use[v];
    const bool used = last >= 0 && last < p_.op_count();
    if (derives(made) && (last == p_.op_count() || (used && !derives(last))))
      return memory_kind::gradient;
    if (p_.op(made).def->collective) return memory_kind::communication;
    if (!derives(made) && used && derives(last)) return memory_kind::activation;
    return memory_kind::temporary;
  }
};

/// Inserts an element into a list of at most `most`, largest first.
constexpr void keep_largest(vec<resident>& list, const resident& r, std::size_t most) {
  std::size_t at = list.size();
  while (at > 0 && list[at - 1].bytes < r.bytes) --at;
  if (at >= most) return;
  list.push_back(r);
  for (std::size_t i = list.size() - 1; i > at; --i) list[i] = list[i - 1];
  list[at] = r;
  if (list.size() > most) list.pop_back();
}

}  // namespace cost_detail

/// Returns the bytes that stay in memory between a model and its derivative. These are the values,
/// other than arguments, that ops before a derivative compute and that the derivative or its
/// recomputation reads.
///
/// Cost      linear in ops
constexpr std::int64_t kept_for_derivatives(const program& p) {
  const live_bytes live(p);
  const fused_kernels kernels(p);
  vec<char> derived(p.ops.size(), 0);
  for (op_id o = 0; o < p.op_count(); ++o) {
    const op_marks& m = p.ops[o].marks;
    bool any = m.transposed > 0 || m.again;
    for (value_id v : p.operands(o)) any = any || derived[p.producers[v]] != 0;
    derived[o] = any;
  }
  std::int64_t sum = 0;
  for (value_id v = 0; v < p.value_count(); ++v) {
    const op_id made = p.producers[v], last = live.last_use[v];
    const bool waits = last >= 0 && last < p.op_count() && derived[last] != 0;
    if (waits && derived[made] == 0 && !p.is(made, op_role::parameter) && kernels.stored(v))
      sum = saturating_add(sum, p.types[v].bytes());
  }
  return sum;
}

/// Returns the peak of a device's memory, its composition, and the `most` largest values at that
/// point.
///
/// Cost      linear in ops
constexpr memory_peak peak_of(const device_program& d, int most = 10) {
  const program& p = d.local;
  const live_bytes live(p);
  const fused_kernels kernels(p);
  const cost_detail::memory_roles roles(p, live);
  memory_peak peak;
  peak.knows_derivatives = roles.knows_derivatives() || !p.interface.known();
  peak.bytes = live.peak();
  for (op_id o = 0; o < p.op_count(); ++o)
    if (peak.op < 0 || live.during[o] > live.during[peak.op]) peak.op = o;
  if (peak.op < 0) return peak;
  peak.nested = live.inside[peak.op];
  const auto lies_there = [&](value_id v) {
    const op_id made = p.producers[v], last = live.last_use[v];
    if (!kernels.stored(v) || live.donated[v] != 0 || made > peak.op) return false;
    return last > peak.op || made == peak.op || (last == peak.op && live.overwritten[v] == 0);
  };
  for (value_id v = 0; v < p.value_count(); ++v) {
    const bool argument = p.is(p.producers[v], op_role::parameter);
    if (argument ? live.donated[v] != 0 : !lies_there(v)) continue;
    const resident r{v, p.types[v].bytes(), roles[v]};
    std::int64_t& of = peak.of[static_cast<int>(r.kind)];
    of = saturating_add(of, r.bytes);
    cost_detail::keep_largest(peak.largest, r, static_cast<std::size_t>(most < 0 ? 0 : most));
  }
  return peak;
}

}  // namespace partita
