/// Prints a pipeline as the list of all calls and copies of a step, and the functions that they
/// call.
///
/// Source    Shardy:MPMD, export: names of functions, and the call that a call waits for (`after`)
#pragma once

#include <cstdint>
#include <string_view>

#include <partita/mpmd/exported_names.hpp>
#include <partita/support/number_text.hpp>

namespace partita {

namespace mpmd_detail {

/// The first device number of each mesh; meshes are numbered consecutively.
constexpr vec<std::int64_t> first_devices(const topology& t) {
  vec<std::int64_t> out;
  out.push_back(0);
  for (int m = 0; m < t.count(); ++m)
    out.push_back(saturating_add(out.back(), t.mesh_of(m).devices()));
  return out;
}

class call_printer : stage_printer {
 public:
  constexpr call_printer(const pipelined& p, const exported_pipeline& e)
      : stage_printer(p.source, &p.topology),
        pipe_(p),
        e_(e),
        named_(p, e),
        first_device_(first_devices(p.topology)) {}

  constexpr text print() {
    signature([&](int i) { return pipe_.input_mesh[i]; });
    for (const pipeline_step& s : e_.steps)
      if (s.is_call())
        call(s);
      else
        copy(s);
    results([&](int i) { return pipe_.output_mesh[i]; });
    for (int f = 0; f < static_cast<int>(e_.functions.size()); ++f) function(f);
    return static_cast<text&&>(out_);
  }

 private:
  const pipelined& pipe_;
  const exported_pipeline& e_;
  exported_names named_;
  vec<std::int64_t> first_device_;  ///< by mesh, and the end

  constexpr void call(const pipeline_step& s) {
    const vec<char>& donated = e_.functions[s.function].donated;
    out_ << "  ";
    append_list(out_, static_cast<int>(s.gives.size()),
                [&](int i) { out_ << named_.operand(s.gives[i]); });
    out_ << (s.gives.empty() ? "!" : ", !") << s.number << " = call @"
         << named_.function(s.function) << '(';
    append_list(out_, static_cast<int>(s.takes.size()), [&](int i) {
      if (donated[i] != 0 && s.takes[i].slice < 0) out_ << "donate ";
      out_ << named_.operand(s.takes[i]);
    });
    out_ << ')';
    if (s.after >= 0) out_ << " after !" << s.after;
    devices(s.mesh);
    if (s.reserved > 0)
      out_ << " reserving " << s.reserved << (s.reserved == 1 ? " byte" : " bytes");
    out_ << '\n';
  }
  constexpr void devices(int mesh) {
    const std::int64_t first = first_device_[mesh], end = first_device_[mesh + 1];
    out_ << " on devices [" << first;
    if (end - first > 1) out_ << (end - first > 2 ? " to " : ", ") << end - 1;
    out_ << ']';
  }
  constexpr void copy(const pipeline_step& s) {
    out_ << "  " << named_.buffer(s.to) << " = copy " << named_.buffer(s.from) << " : "
         << p_.type(pipe_.transfers[s.transfer].value) << '\n';
  }
  constexpr void function(int f) {
    const device_program& d = pipe_.function(e_.functions[f].units[0]).device;
    const text all = partita::print(d.local, d.mesh.rank > 0 ? &d.mesh : nullptr);
    constexpr std::string_view head = "func @main";
    out_ << "func @" << named_.function(f) << all.view().substr(head.size());
  }
};

}  // namespace mpmd_detail

/// Prints all calls of a step in an order of execution, with microbatches unrolled. Copies between
/// meshes follow the calls that compute their values. `%x5#3@m1` is %x5 of microbatch 3 on m1, and
/// `%x2[3]` a slice of a stack. `!7` is the end of a call, and `after` names the previous call on
/// the mesh. A donated buffer does not exist after the call. `reserving 64 bytes` counts the memory
/// on each device that the call does not use (see export_calls). Then come the functions, as one
/// device runs them.
///
/// Cost: linear in calls, their operands and results, and in the ops of functions.
constexpr text print_calls(const pipelined& p, const exported_pipeline& e) {
  if (e.error) return concat("error: ", e.error.message, '\n');
  return mpmd_detail::call_printer(p, e).print();
}
/// The same for a pipeline that is exported here.
constexpr text print_calls(const pipelined& p) { return print_calls(p, export_calls(p)); }

}  // namespace partita
