/// Selection of the collectives that run beside kernels, by simulated time.
#pragma once

#include <cstdint>

#include <partita/cost/put_off.hpp>
#include <partita/cost/ring.hpp>
#include <partita/cost/start_early.hpp>
#include <partita/ir/live_bytes.hpp>
#include <partita/spmd/lowered.hpp>
#include <partita/support/checked.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Rewrites that let collectives run beside kernels; they run last of all passes. Partita tries the
/// enabled combinations, and none at all, and keeps the one with the shortest step on the machine.
struct overlap_options {
  machine on = {};      ///< without a device (the default): no rewrite
  bool wanted = false;  ///< a device will be set later: an error until then
  bool rings = true;    ///< products next to gathers and scatters become rings, see ring.hpp
  bool early = true;    ///< collectives start early and are awaited late, see start_early.hpp
  /// Limit of memory in bytes; 0: the device's memory. A program that needs more before any rewrite
  /// must not need more after it.
  std::int64_t memory = 0;

  /// True if a rewrite is enabled and a device is set or required.
  constexpr bool any() const { return (wanted || !(on.device == device())) && (rings || early); }
  /// Checks the options.
  ///
  /// Errors    C001 bytes are negative, C004 the device is missing, D001 a figure of the device is
  ///           missing, D002 an axis has no link
  constexpr failure validate(const mesh& m) const {
    failure f;
    if (memory < 0)
      f.record("C001", "overlap: memory is ", memory, " bytes; give 0 (the device's) or more");
    if (any() && on.device == device())
      f.record("C004", "overlap: it needs a machine to compare times; set overlap_options::on");
    if (any()) f.record(partita::validate(on, m));
    return f;
  }
};

namespace cost_detail {

/// Predicate: a ring takes less time than the collective and the products that it replaces. A
/// message runs beside the product of the previous shard; a result written shard by shard is moved
/// once more.
class ring_is_faster {
 public:
  constexpr ring_is_faster(const mesh& m, const machine& on) : mesh_(m), on_(on) {}

  constexpr bool operator()(const program& p, const ring& r) const {
    const bool gathers = r.what.kind == collective::all_gather;
    const auto n = static_cast<double>(r.members);
    const value_id sent = gathers ? p.operand(r.settled, 0) : p.op(r.settled).result;
    const double message = time_of(passed_on(r), p.type(sent).bytes(), mesh_, on_).seconds;
    double before = time_of(r.what, p.type(p.operand(r.settled, 0)).bytes(), mesh_, on_).seconds;
    double now = 0, beside = 0;
    for (const auto& each : r.products) {
      before += product(p, each, 1);
      const double part = product(p, each, r.members);
      now += n * (part + on_.device.kernel) + moved(p, each, r.members, gathers);
      if (beside == 0) beside = part;
    }
    if (message > beside) now += (n - 1) * (message - beside);
    return now < before;
  }

 private:
  const mesh& mesh_;
  const machine& on_;

  static constexpr collective passed_on(const ring& r) {
    collective what = r.what;
    what.kind = collective::permute;
    what.map = {device_map::ring, 1};
    return what;
  }
  /// Returns the seconds of one product whose loop is cut into `n` parts.
  constexpr double product(const program& p, const ring_product& each, std::int64_t n) const {
    const op_node& o = p.op(each.op);
    const auto cut = [&](value_id v, int dim) {
      tensor_type t = p.type(v);
      if (dim != no_dim) t.shape[dim] /= n;
      return t;
    };
    const tensor_type operands[] = {cut(p.operand(each.op, 0), each.dims[0]),
                                    cut(p.operand(each.op, 1), each.dims[1])};
    const tensor_type result = cut(o.result, each.dims[2]);
    const cost_context c{operands, result, p.attrs(each.op)};
    const auto flops = static_cast<double>(o.def->flops(c));
    const product_shape shape = o.def->product(c);
    const double products =
        shape.batch == 0 ? 0 : seconds_of(shape, flops, operands[0].element, on_.device).real;
    return seconds_of_kernel(products, 0, static_cast<double>(bytes_of_all(c)), on_.device);
  }
  /// Returns the seconds for the additional traffic of products of shards: slices of operands, and
  /// the result, which is assembled or accumulated.
  constexpr double moved(const program& p, const ring_product& each, std::int64_t n,
                         bool gathers) const {
    const auto bytes = [&](value_id v) { return static_cast<double>(p.type(v).bytes()); };
    const double result = bytes(p.op(each.op).result);
    double sum = !gathers                 ? 3 * result
                 : each.dims[2] != no_dim ? 2 * result
                                          : 3 * static_cast<double>(n - 1) * result;
    for (int i = 0; i < 2; ++i)
      if (each.dims[i] != no_dim) sum += 2 * bytes(p.operand(each.op, i));
    return sum / (on_.device.bandwidth * on_.device.memory_part);
  }
};

/// A lowered program under rewriting, which records a report for each rewrite.
struct rewritten_step {
  lowered l;
  std::int64_t peak = 0;  ///< bytes
  double time = 0;        ///< seconds

  constexpr explicit rewritten_step(const lowered& from)
      : l(from), peak(live_bytes(from.device.local).peak()) {}
  /// Records a rewrite, and returns whether it changed anything. `before` has the collectives
  /// before it.
  constexpr bool changed(std::string_view name, int count, const lowered& before) {
    if (count == 0) return false;
    pass_report r;
    r.name = name;
    r.changed = count;
    r.before = before.counts;
    r.after = l.counts;
    r.written_before = as_written(before.notes);
    r.written_after = as_written(l.notes);
    r.peak_before = peak;
    r.peak_after = peak = live_bytes(l.device.local).peak();
    l.passes.push_back(r);
    return true;
  }
};

/// Tries combinations of rewrites of a lowered program, and keeps the fastest.
class overlap_search {
 public:
  constexpr overlap_search(lowered& l, const overlap_options& options)
      : best_(l), from_(l), options_(options) {
    best_.time = simulate(l.device, options.on).time;
    bound_ = options.memory;
    if (bound_ == 0 && options.on.device.memory < 9e18)
      bound_ = static_cast<std::int64_t>(options.on.device.memory);
    if (bound_ < best_.peak) bound_ = best_.peak;
  }
  constexpr void run() {
    for (const bool rings : {false, true})
      for (const bool off : {false, true})
        if ((options_.rings || !rings) && (options_.early || (rings && !off))) attempt(rings, off);
    if (best_.l.passes.size() > from_.passes.size()) from_ = static_cast<lowered&&>(best_.l);
  }

 private:
  rewritten_step best_;
  lowered& from_;
  const overlap_options& options_;
  std::int64_t bound_ = 0;

  constexpr void attempt(bool rings, bool off) {
    const machine& on = options_.on;
    rewritten_step now(from_);
    if (rings) {
      const ring_is_faster worth(from_.device.mesh, on);
      if (!now.changed("rings", make_rings(now.l, worth), from_)) return;
    }
    if (off && !now.changed("put_off", put_off(now.l, on), now.l)) return;
    if (options_.early) now.changed("early", start_early(now.l, on, bound_), now.l);
    if (now.peak > bound_) return;
    now.time = simulate(now.l.device, on).time;
    if (now.time < best_.time) best_ = static_cast<rewritten_step&&>(now);
  }
};

}  // namespace cost_detail

/// Rewrites a lowered program as the options request; reports each rewrite that changed something.
///
/// Cost      n log n for n ops, times the depth of nested programs (each enclosing program examines
///           them again); four combinations, if all rewrites are enabled
constexpr void overlap(lowered& l, const overlap_options& options) {
  if (options.any()) cost_detail::overlap_search(l, options).run();
}

/// The argument of `partition` for overlap: options, or a machine with default options. It stores a
/// pointer to `overlap`, so that a program without overlap does not pay for compiling it.
struct overlapping {
  overlap_options options;
  void (*rewrite)(lowered&, const overlap_options&) = nullptr;

  constexpr overlapping() = default;
  constexpr overlapping(const overlap_options& o) : options(o), rewrite(&overlap) {}
  constexpr overlapping(const machine& on) : overlapping(overlap_options{.on = on}) {}
  constexpr overlapping(const device& on) : overlapping(machine(on)) {}
  /// True if `apply` does something.
  constexpr bool any() const { return rewrite != nullptr && options.any(); }
  /// Rewrites a lowered program, see `overlap`.
  constexpr void apply(lowered& l) const {
    if (any()) rewrite(l, options);
  }
};

}  // namespace partita
