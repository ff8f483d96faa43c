/// What lies in a device's memory when most does.
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/ir/fusion.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/device_program.hpp>
#include <partita/support/name_table.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// What a value in memory is to a training step. Programs without derivatives have inputs and
/// temporaries; so have modules that were read, which do not say what in them is a derivative.
enum class memory_kind : std::uint8_t {
  parameter,        ///< an input whose next state is an output, and that the model reads
  optimizer_state,  ///< such an input that the model does not read
  input,            ///< any other argument
  activation,       ///< made by the model, read by its derivative
  gradient,         ///< made by the derivative, read by what follows it
  communication,    ///< the result of a collective, but for gradients
  temporary
};
inline constexpr int memory_kinds = 7;
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

/// Memory of a program of one device at its peak, see live_bytes.
struct memory_peak {
  std::int64_t bytes = 0;  ///< all of it
  op_id op = -1;           ///< the op whose kernel runs then
  std::int64_t of[memory_kinds] = {};
  std::int64_t nested = 0;  ///< of programs nested in the op, their arguments not counted
  vec<resident> largest;    ///< of the program itself, largest first

  constexpr std::int64_t operator[](memory_kind k) const { return of[static_cast<int>(k)]; }
};

namespace cost_detail {

/// Tells what values are to a training step, by where ops come from.
class memory_roles {
 public:
  constexpr explicit memory_roles(const program& p, const live_bytes& live)
      : p_(p), live_(live), kinds_(p.types.size(), memory_kind::temporary) {
    find_model();
    vec<char> read_by_model(p.types.size(), 0);
    for (op_id o = 0; o < p.op_count(); ++o)
      for (value_id v : p.operands(o))
        if (in_model(o) || derives(o)) read_by_model[v] = 1;
    name_table outputs(p.outputs.size());
    for (int k = 0; k < p.output_count(); ++k) outputs.insert(p.output_name(k), k);
    for (int i = 0; i < p.input_count(); ++i)
      kinds_[p.inputs[i]] = derived_.empty() || outputs.find(p.input_name(i)) < 0
                                ? memory_kind::input
                            : read_by_model[p.inputs[i]] != 0 ? memory_kind::parameter
                                                              : memory_kind::optimizer_state;
    for (value_id v = 0; v < p.value_count(); ++v)
      if (!p.is(p.producers[v], op_role::parameter)) kinds_[v] = kind_of(v);
  }
  constexpr memory_kind operator[](value_id v) const { return kinds_[v]; }

 private:
  const program& p_;
  const live_bytes& live_;
  vec<memory_kind> kinds_;
  vec<char> derived_;  ///< by op of the source: does it have a derivative in the program?

  constexpr void find_model() {
    for (op_id o = 0; o < p_.op_count(); ++o) {
      const int origin = p_.op(o).marks.origin;
      if (origin < 0) continue;
      if (static_cast<std::size_t>(origin) >= derived_.size())
        derived_.resize(static_cast<std::size_t>(origin) + 1, 0);
      derived_[origin] = 1;
    }
  }
  constexpr bool derives(op_id o) const { return p_.op(o).marks.origin >= 0; }
  constexpr bool in_model(op_id o) const {
    const int source = p_.op(o).marks.source;
    return source >= 0 && static_cast<std::size_t>(source) < derived_.size() &&
           derived_[source] != 0 && !derives(o);
  }
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

/// Puts an element into a list of at most `most`, largest first.
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

/// Bytes that wait in memory between a model and its derivative: values besides arguments that ops
/// before a derivative make, and that a derivative, or what computes again for it, reads.
///
/// Cost: linear in ops.
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

/// The peak of a device's memory, what it consists of, and the `most` largest values there.
///
/// Cost: linear in ops.
constexpr memory_peak peak_of(const device_program& d, int most = 10) {
  const program& p = d.local;
  const live_bytes live(p);
  const fused_kernels kernels(p);
  const cost_detail::memory_roles roles(p, live);
  memory_peak peak;
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
    if (!argument && !lies_there(v)) continue;
    const resident r{v, p.types[v].bytes(), roles[v]};
    std::int64_t& of = peak.of[static_cast<int>(r.kind)];
    of = saturating_add(of, r.bytes);
    cost_detail::keep_largest(peak.largest, r, static_cast<std::size_t>(most < 0 ? 0 : most));
  }
  return peak;
}

}  // namespace partita
