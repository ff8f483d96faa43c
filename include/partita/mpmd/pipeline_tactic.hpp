/// The pipeline tactic: named parts run on several meshes, one microbatch after another.
///
/// Source    Shardy:MPMD; GPipe, arXiv:1811.06965
#pragma once

#include <concepts>
#include <cstdint>
#include <string_view>
#include <type_traits>

#include <partita/mpmd/automatic_stages.hpp>
#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/remat.hpp>
#include <partita/mpmd/stage_list.hpp>

namespace partita {

/// Options of a pipeline tactic. The order determines the mesh of stage i: mesh i of the topology,
/// round robin, or in a V shape.
struct pipeline_plan {
  stage_list stages;
  batch_list batch = {};
  std::int64_t microbatches = 1;
  pipeline_order order = one_f_one_b;
  bool split = false;            ///< backward units in two parts
  bool infer_transfers = false;  ///< see assignment
  channel_options channels = {};
  bool keep_gathered = false;  ///< parameters are gathered once per step, and kept
  bool merge_last = false;     ///< forward and backward of the last stage are one call
  bool remat = false;          ///< stages run their forward again, see rematerialized()
  bool absorb = false;         ///< fewer calls outside of the loop, see absorbed()
};

/// Transformations of the finished units.
struct unit_changes {
  bool merge_last = false, remat = false, absorb = false;
  constexpr bool any() const { return merge_last || remat || absorb; }
};

/// Cuts a step into stages and runs them on the meshes of a topology.
///
/// Effect    named parts become units, called for each microbatch in an order; the other tactics
///           shard the inside of units over the axes of all meshes
/// Legal     on a topology, once per schedule, at any position in it
/// Pros      a mesh holds only the parameters of its stages; only activations are transferred
/// Cons      bubbles; activations of several microbatches are kept at the same time
/// Introduces  no collectives; transfers of activations and of their gradients for each microbatch
/// Errors    those of pipeline(), O138 no stages, or one without parts; O140 partitioned on a mesh
template <class Order = pipeline_order>
class pipeline_tactic {
 public:
  constexpr pipeline_tactic() = default;
  constexpr pipeline_tactic(const pipeline_plan& plan, const Order& order, std::string_view name)
      : plan_(plan), order_(order), name_(name) {}
  constexpr std::string_view name() const { return name_; }
  /// Returns the same tactic with another name.
  constexpr pipeline_tactic named(std::string_view n) const { return {plan_, order_, n}; }
  constexpr const Order& order() const { return order_; }
  constexpr const pipeline_plan& plan() const { return plan_; }

  /// Has no actions: the stages exist before the first action.
  constexpr void apply(tactic_context&) const {}
  /// Does nothing either, on a topology.
  constexpr void rewrite(rewriting& r) const {
    if (r.for_topology) return;
    r.error.record("O140", "pipeline \"", name(),
                   "\": its stages need several meshes, and partition has one; give it a topology");
  }
  constexpr failure validate() const {
    failure f;
    const int stages = plan_.stages.stages();
    if (stages <= 0)
      f.record("O138", "pipeline \"", name(), "\": it has no stages; name the parts of each");
    if (f || plan_.stages.automatic()) return f;
    vec<char> has_parts;
    has_parts.resize(static_cast<std::size_t>(stages), 0);
    for (int i = 0; i < plan_.stages.count(); ++i)
      if (plan_.stages.stage(i) < stages) has_parts[plan_.stages.stage(i)] = 1;
    for (int s = 0; s < stages; ++s)
      if (has_parts[s] == 0)
        f.record("O138", "pipeline \"", name(), "\": stage ", s,
                 " has no parts; name at least one, or leave the stage out");
    return f;
  }
  /// The number of the mesh of a stage.
  constexpr int mesh_of(int stage, const topology& t) const {
    const pipeline_shape shape{t.count() > 0 ? t.count() : 1, plan_.stages.stages(), 1};
    if constexpr (std::same_as<Order, pipeline_order>) return order_.mesh_of(stage, shape);
    return stage % shape.meshes;
  }
  constexpr const stage_list& stages() const { return plan_.stages; }
  constexpr unit_changes changes() const { return {plan_.merge_last, plan_.remat, plan_.absorb}; }
  /// The options without the parts of automatic stages.
  constexpr pipeline_options options(const topology& t) const {
    pipeline_options o{.microbatches = plan_.microbatches,
                       .split = plan_.split,
                       .channels = plan_.channels,
                       .keep_gathered = plan_.keep_gathered,
                       .check_memory = !changes().any()};
    o.where.infer_transfers = plan_.infer_transfers;
    for (int i = 0; i < plan_.stages.count(); ++i) {
      const int stage = plan_.stages.stage(i);
      o.where.names.push_back({plan_.stages.name(i), t.name(mesh_of(stage, t)), stage});
    }
    for (int i = 0; i < plan_.batch.count(); ++i) o.batch.push_back(plan_.batch[i]);
    return o;
  }

 private:
  pipeline_plan plan_;
  Order order_{};
  kept_name name_;
};

/// `pipeline({.stages = {{"embedding", "layers.0"}, {"layers.1", "head"}}, .batch = {{"x", 0}},
/// .microbatches = 8, .order = one_f_one_b}, "PP")`
constexpr pipeline_tactic<> pipeline(const pipeline_plan& plan, std::string_view name = "PP") {
  return {plan, plan.order, name};
}
/// The tactic with a user's order: a key, a comparator or a table; see sequence().
template <class Order>
requires(!std::convertible_to<const Order&, std::string_view>) constexpr pipeline_tactic<
    Order> pipeline(const pipeline_plan& plan, const Order& order, std::string_view name = "PP") {
  return {plan, order, name};
}

/// A tactic that cuts a step into stages. Tactics that are read from text may have other types and
/// identify themselves with `is_pipeline`.
template <class T>
concept PipelineTactic = requires(const std::remove_cvref_t<T>& t, const topology& m) {
  { t.options(m) } -> std::same_as<pipeline_options>;
  t.order();
};

namespace mpmd_detail {
template <class T>
constexpr bool is_pipeline(const T& t) {
  if constexpr (requires { t.is_pipeline(); })
    return t.is_pipeline();
  else
    return PipelineTactic<T>;
}
constexpr void change_units(pipelined& p, const unit_changes& wanted) {
  const int last = p.stages - 1;
  const auto of_last = [&](const fragment_call& c) {
    return c.stage == last && c.part != fragment_part::weight;
  };
  if (wanted.merge_last)
    p = merged(p, [&](const fragment_call& a, const fragment_call& b) {
      return of_last(a) && of_last(b) && a.microbatch == b.microbatch &&
             a.transposed != b.transposed;
    });
  if (wanted.remat && !p.error) p = rematerialized(p);
  if (wanted.absorb && !p.error) p = absorbed(p);
  p.checks_memory = true;
  if (!p.error) check_memory(p);
  p.error.raise();
}
/// Applies the pipeline tactic of a schedule, after finding automatic stages.
template <class T, class Schedule>
constexpr pipelined pipelined_by_tactic(const T& tactic, const program& p, const topology& t,
                                        const Schedule& tactics, const partition_options& more,
                                        const program& given) {
  pipeline_options options = tactic.options(t);
  found_stages found;
  const auto mesh_of = [&](int stage) { return tactic.mesh_of(stage, t); };
  if constexpr (requires { tactic.stages().automatic(); })
    if (const stage_list& wanted = tactic.stages(); wanted.automatic())
      found = stage_finder(p, t, options, wanted.measured_on(), given)
                  .run(wanted.stages(), mesh_of, tactics, more);
  pipelined out;
  out.error = found.error;
  out.error.raise();
  if (out.error) return out;
  for (int i = 0; i < static_cast<int>(found.names.size()); ++i)
    options.where.names.push_back(
        {found.names[i].view(), t.name(mesh_of(found.stage[i])), found.stage[i]});
  out = pipelined_by(p, t, tactic.order(), options, tactics, more, &given);
  if (tactic.changes().any() && !out.error) change_units(out, tactic.changes());
  if (!found.names.empty()) out.notes.push_back(found.words(tactic.name()));
  return out;
}
template <class Schedule, class Pipelined>
constexpr Pipelined partition(program&& source, const topology& t, const Schedule& tactics,
                              const partition_options& options, Pipelined out) {
  const auto finish = [&]() -> Pipelined& {
    out.error.raise();
    return out;
  };
  int pipelines = 0;
  rewriting work;
  work.for_topology = true;
  work.p = static_cast<program&&>(source);
  number_ops(work.p);
  program original;
  const dead_code removed = schedule_detail::remove_dead_code(work.p, original);
  if (original.ops.empty()) original = work.p;
  work.given = &original;
  work.labels = work.p.labels;
  const scope_list scopes = work.p.scopes;
  vec<text> notes;
  out.error.record(work.p.error);
  out.error.record(options.validate());
  schedule_detail::for_each_tactic(tactics, [&](const auto& t) {
    using type = std::remove_cvref_t<decltype(t)>;
    pipelines += mpmd_detail::is_pipeline(t);
    if constexpr (requires {
                    t.options(topology());
                    t.validate();
                  })
      out.error.record(t.validate());
    if constexpr (Rewriter<type>) {
      if (!out.error && !work.error) t.rewrite(work);
      if (!work.sliced.empty())
        out.error.record("O133", "partition: \"", t.name(),
                         "\" makes a loop over microbatches, and the pipeline another one; give "
                         "the pipeline the product of both numbers of microbatches");
      for (const text& n : work.notes) notes.push_back(n);
      work.notes.clear();
    }
  });
  out.error.record(work.error);
  if (pipelines != 1)
    out.error.record(
        "O132", "partition: the schedule has ", pipelines,
        " pipeline tactics; on a topology it needs exactly one: ",
        in_syntax(work.advice, "pt::pipeline({.stages = ...})", "pipeline {stages: ...}"));
  if (out.error) return finish();
  work.p.labels = work.labels;
  work.p.scopes = scopes;
  schedule_detail::for_each_tactic(tactics, [&](const auto& each) {
    if constexpr (PipelineTactic<std::remove_cvref_t<decltype(each)>>)
      if (mpmd_detail::is_pipeline(each))
        out = mpmd_detail::pipelined_by_tactic(each, work.p, t, tactics, options, original);
  });
  out.original = static_cast<program&&>(original);
  out.removed = removed;
  for (const text& n : notes) out.notes.push_back(n);
  return finish();
}
}  // namespace mpmd_detail

/// Applies a schedule to a program on several meshes. One of its tactics is a pipeline. Tactics
/// that rewrite the program run before it; all others shard the inside of its units.
///
/// A mistake is thrown as `error` at run time; in constant evaluation it is kept in
/// `pipelined::error`.
///
/// Errors    S039 the argument is not a schedule; O132 no pipeline in the schedule, or several;
///           O133 a microbatch tactic with a pipeline; those of pipeline() and of the tactics; O146
///           and O147 automatic stages with too few names; O148 and Q... of `prove`
template <class Schedule, std::same_as<pipelined> Pipelined = pipelined,
          bool KnowsProofs = mpmd_detail::knows_proofs<Pipelined>>
constexpr Pipelined partition(program source, const topology& t, const Schedule& tactics,
                              const partition_options& options = {}) {
  if constexpr (!schedule_detail::is_schedule<Schedule>) {
    report_static_error<schedule_detail::schedule_message<Schedule>>();
    return schedule_detail::not_partitioned(Pipelined());
  } else {
    Pipelined out =
        mpmd_detail::partition(static_cast<program&&>(source), t, tactics, options, Pipelined());
    mpmd_detail::prove_as_asked<KnowsProofs>(out, options);
    return out;
  }
}

/// Rejects tactics outside of `schedule(...)`, one after another or in braces.
///
/// Errors    S039 the argument is not a schedule
template <Tactic First, Tactic Second, class... More, std::same_as<pipelined> Pipelined = pipelined>
constexpr Pipelined partition(const program&, const topology&, const First&, const Second&,
                              const More&...) {
  report_static_error<schedule_detail::several_message<Pipelined>>();
  return schedule_detail::not_partitioned(Pipelined());
}
/// Rejects tactics in braces.
template <std::same_as<pipelined> Pipelined = pipelined>
constexpr Pipelined partition(const program&, const topology&, schedule_detail::several_tactics,
                              const partition_options& = {}) {
  report_static_error<schedule_detail::several_message<Pipelined>>();
  return schedule_detail::not_partitioned(Pipelined());
}

}  // namespace partita
