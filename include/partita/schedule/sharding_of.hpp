/// Layouts of values of a partitioned program, by name: inputs, inner values with tags, outputs.
#pragma once

#include <concepts>
#include <string_view>

#include <partita/schedule/partitioned.hpp>
#include <partita/schedule/tactic.hpp>
#include <partita/spmd/lower.hpp>
#include <partita/support/separate.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace schedule_detail {

/// A value with a name; lists have inputs first, then tags, then outputs.
struct value_place {
  std::string_view name;
  enum kind_type : std::uint8_t { input, tag, output } kind;
  int index;  ///< of an input or output; for a tag, its op in the core program
};
constexpr vec<value_place> value_places(const partitioned& p) {
  vec<value_place> list;
  for (int i = 0; i < p.source.input_count(); ++i)
    list.push_back({p.source.input_name(i), value_place::input, i});
  for (op_id o = 0; o < p.core.p.op_count(); ++o)
    if (p.core.p.is(o, op_role::tag) && !p.core.p.name(p.core.p.op(o).result).empty())
      list.push_back({p.core.p.view(p.core.p.op(o).name), value_place::tag, o});
  for (int i = 0; i < p.source.output_count(); ++i)
    list.push_back({p.source.output_name(i), value_place::output, i});
  return list;
}
/// Returns the layouts of inner values after the ops that compute them, with partial sums reduced.
/// (Constructed once for many values.)
class inner_shardings {
 public:
  constexpr explicit inner_shardings(const partitioned& p) : p_(p), rules_(p.core, p.passes) {}
  constexpr sharded_value operator()(value_id v, std::string_view name) const {
    const layout l = rules_.finished_layout(v);
    const tensor_type whole = p_.core.true_type(v);
    return {name, whole.element, whole.shape, l.local(p_.core.p.type(v).shape, p_.mesh()), l};
  }

 private:
  const partitioned& p_;
  spmd_detail::fused_rules rules_;
};
/// Throws P007; not a constant expression.
inline sharded_value no_named_value(std::string_view name, const vec<value_place>& places) {
  vec<std::string_view> known;
  for (const auto& each : places) known.push_back(each.name);
  throw error(concat("P007 partitioned: no input, tag or output is named \"", name,
                     "\" or is below it; ", known_names_or_below(name, known)));
}

}  // namespace schedule_detail

/// Returns the layouts of all inputs that have the name or are below it ("params" of a tree); if no
/// input matches, of all such tags; if no tag matches, of all such outputs. The layout of a tag is
/// the one in which it is computed; a use may change it.
///
/// Errors    P007 no value matches
/// Cost      linear in the ops, if a tag is found
constexpr vec<sharded_value> shardings_below(const partitioned& p, std::string_view name) {
  using place = schedule_detail::value_place;
  const vec<place> places = schedule_detail::value_places(p);
  vec<sharded_value> list;
  for (const auto kind : {place::input, place::tag, place::output}) {
    vec<place> found;
    for (const auto& each : places)
      if (each.kind == kind && schedule_detail::selects(name, each.name)) found.push_back(each);
    if (found.empty()) continue;
    if (kind == place::tag) {
      const schedule_detail::inner_shardings of(p);
      for (const auto& f : found)
        list.push_back(of(p.core.p.op(static_cast<op_id>(f.index)).result, f.name));
    } else {
      for (const auto& f : found)
        list.push_back(kind == place::input ? p.input(f.index) : p.output(f.index));
    }
    return list;
  }
  list.push_back(schedule_detail::no_named_value(name, places));
  return list;
}
/// Returns the layout of the value with this name.
///
/// Errors    P007 no such value
constexpr sharded_value sharding_of(const partitioned& p, std::string_view name) {
  const vec<sharded_value> list = shardings_below(p, name);
  for (const auto& each : list)
    if (each.name == name) return each;
  return schedule_detail::no_named_value(name, schedule_detail::value_places(p));
}

/// The device-local program with inner values as further outputs, in their layouts.
struct probed_program {
  device_program device;
  vec<text> names;  ///< of the further outputs
  failure error;
};

namespace schedule_detail {

/// True for probes, and for tags that one of the names selects.
constexpr bool is_handed_out(const vec<text>& wanted, std::string_view name) {
  if (name.substr(0, op::probe_prefix.size()) == op::probe_prefix) return true;
  for (const text& w : wanted)
    if (selects(w, name)) return true;
  return false;
}
template <class Partitioned>
constexpr probed_program probed(const Partitioned& p, const vec<text>& wanted) {
  probed_program out;
  vec<value_id> values;
  const program& core = p.core.p;
  for (op_id o = 0; o < core.op_count(); ++o) {
    const value_id v = core.op(o).result;
    if (!core.is(o, op_role::tag) || !is_handed_out(wanted, core.view(core.op(o).name))) continue;
    if (p.core.nested.value_scope[v] != 0) continue;
    values.push_back(v);
    out.names.push_back(core.view(core.op(o).name));
  }
  if (values.empty()) return out;
  lowered l = lower(p.core, {.passes = p.passes}, values);
  if (!l.error) p.overlap.apply(l);
  out.error = l.error;
  out.device = static_cast<device_program&&>(l.device);
  return out;
}

}  // namespace schedule_detail

namespace separate {
probed_program with_probes(const partitioned& p, const vec<text>& wanted);
}

/// Returns the program with probes, and the tags that one of these names selects, as further
/// outputs. Values in nested programs are not included; if no value is selected, the result is
/// empty.
template <std::same_as<partitioned> Partitioned>
constexpr probed_program with_probes(const Partitioned& p, const vec<text>& wanted) {
  PARTITA_RETURN(schedule_detail::probed(p, wanted), separate::with_probes(p, wanted));
}

}  // namespace partita
