/// Checks that a schedule and a system, both read from text, fit together.
#pragma once

#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>

namespace partita {

/// Checks the schedule against the system.
///
/// Errors    O143 a pipeline for a system of one mesh, O144 several meshes and no pipeline, O145
///           the pass `overlap`, which chooses for one machine, with several kinds of devices
constexpr failure validate(const text_schedule& schedule, const system_description& system) {
  failure f;
  const text_tactic* pipeline = nullptr;
  for (const text_tactic& t : schedule.tactics)
    if (t.is_pipeline()) pipeline = &t;
  if (pipeline != nullptr && !system.has_several())
    f.record(
        "O143", "schedule: pipeline \"", pipeline->name(),
        "\" needs several meshes, and the system has one; begin the description of each with a "
        "line \"mesh NAME\"");
  if (pipeline == nullptr && system.has_several())
    f.record(
        "O144", "schedule: it has no pipeline, and the system has ", system.several.size(),
        " meshes; add one, like \"pipeline {stages: {a} {b}, batch: {x: 0}, microbatches: 4}\"");
  for (const named_mesh& m : system.several)
    if (schedule.overlap.wanted && !(m.device == system.several[0].device))
      f.record("O145", "schedule: the pass overlap chooses for one kind of device; mesh \"",
               system.several[0].name(), "\" and mesh \"", m.name(),
               "\" have different ones; leave it out");
  return f;
}

}  // namespace partita
