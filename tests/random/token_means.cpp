// Losses that are normalized by numbers of the whole batch: sums, maxima and means of masks, of
// weights and of inputs. Over microbatches such numbers are computed before the loop, so that
// forward and backward are one loop; in a pipeline, before its first microbatch. Results are those
// of the source, and are proved.
//
// Drawn: masks that are inputs, computed from labels, or gathered from a table of weights; masks
// that a loop or a tag passes on; norms that divide or multiply, in the loss, before the first
// layer, or both; norms of norms; numbers of microbatches; sharded batches; one device, where
// microbatches are contiguous; gradients or updated parameters; masks inside and outside of the
// parts of a pipeline. Not drawn: norms that depend on parameters.
#include <doctest/doctest.h>

#include <array>

#include <partita/mpmd/pipeline.hpp>
#include <partita/mpmd/pipeline_tactic.hpp>
#include <partita/mpmd/prove_pipeline.hpp>
#include <partita/prove/prove.hpp>
#include <partita/run/pipeline.hpp>

#include "../data.hpp"
#include "seeds.hpp"

namespace pt = partita;

namespace {

constexpr int rows = 24, tokens = 3, width = 4, classes = 5;
using per_token = pt::tensor<double, rows, tokens>;
using number = pt::tensor<double>;

struct drawn {
  int mask = 0;        // 0: an input, 1: of labels, 2: weights of labels, 3: input times labels
  int passed_on = 0;   // 1: by a loop, 2: by a tag
  int norm = 0;        // of the mask, see norm_of
  bool times = false;  // multiplied with the norm's reciprocal
  bool scaled = false, twice = false, inside = false, updates = false;
  std::int64_t steps = 2;
};
drawn draw(data::random& r) {
  static constexpr std::int64_t steps[] = {2, 3, 4, 6, 12};
  return {.mask = static_cast<int>(r.in(0, 3)),
          .passed_on = static_cast<int>(r.in(0, 2)),
          .norm = static_cast<int>(r.in(0, 5)),
          .times = r.one_in(2),
          .scaled = r.one_in(3),
          .twice = r.one_in(4),
          .inside = r.one_in(2),
          .updates = r.one_in(2),
          .steps = r.pick(steps)};
}

number norm_of(const per_token& k, int kind) {
  switch (kind) {
    case 0:
      return sum(k);
    case 1:
      return pt::maximum(sum(k), 1.0);
    case 2:
      return sum(sum<1>(k)) / static_cast<double>(rows);  // a mean length
    case 3:
      return pt::sqrt(sum(k * k)) + 1.0;  // a norm
    case 4:
      return pt::reduce_max<0>(sum<1>(k)) * static_cast<double>(rows);  // the longest row
    default:
      return sum(pt::reduce_max<0>(k)) + pt::reduce_min<0>(sum<1>(k));  // two norms
  }
}
per_token mask_of(const drawn& d, const auto& m, const auto& labels, const auto& weights) {
  const auto valid = [&]() -> per_token { return pt::convert<double>(labels > 0); };
  const per_token k = d.mask == 0   ? per_token(m)
                      : d.mask == 1 ? valid()
                      : d.mask == 2 ? per_token(pt::take<0>(weights, labels))
                                    : per_token(m * valid());
  if (d.passed_on == 1)
    return pt::for_loop(
        0, 2, [](const auto&, const auto& v) { return v * 0.5; }, k);
  return d.passed_on == 2 ? per_token(pt::tag("mask", k)) : k;
}

pt::program step_of(const drawn& d) {
  const auto step = [&](const auto& x, const auto& y, const auto& m, const auto& labels,
                        const auto& weights, const auto& ws) {
    const auto outside = mask_of(d, m, labels, weights);
    const auto loss_of = [&](const auto& w) {
      const auto first = [&](const auto& v, const auto& a) {
        if (d.scaled) return tanh(matmul(v / pt::reduce_max<0>(sum<1>(sum<1>(v * v))), a));
        return tanh(matmul(v, a));
      };
      const auto layer = [](const auto& v, const auto& a) { return tanh(matmul(v, a)); };
      const auto head = [&](const auto& v, const auto& a, const auto& want, const auto& on,
                            const auto& of) {
        const auto error = matmul(v, a) - want;
        auto k = d.inside ? mask_of(d, on, of, weights) : outside;
        if (d.twice) k = k / (pt::reduce_max<0>(sum<1>(k)) + 1.0);
        const auto all = sum(sum<2>(error * error) * k);
        const auto n = norm_of(k, d.norm);
        return d.times ? number(all * (1.0 / n)) : number(all / n);
      };
      const auto h = pt::named("layers", 0, first)(x, w[0]);
      return pt::named("head", head)(pt::named("layers", 1, layer)(h, w[1]), w[2], y, m, labels);
    };
    const auto [loss, g] = pt::value_and_grad(loss_of, ws);
    auto out = g;
    if (d.updates)
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = ws[i] - g[i];
    return std::tuple{pt::output("loss", loss), pt::output(d.updates ? "ws" : "g", out)};
  };
  return pt::trace(
      step, pt::input<double, rows, tokens, width>("x"),
      pt::input<double, rows, tokens, width>("y"), pt::input<double, rows, tokens>("m"),
      pt::input<std::int32_t, rows, tokens>("labels"), pt::input<double, classes>("weights"),
      pt::input("ws", std::array<pt::tensor<double, width, width>, 3>{}));
}
std::vector<pt::array> inputs_of(const pt::program& p, data::random& r) {
  std::vector<pt::array> list;
  for (int i = 0; i < p.input_count(); ++i) {
    const auto& t = p.input_type(i);
    const std::string_view name = p.input_name(i);
    list.push_back(data::fill(t, [&](std::int64_t at) {
      if (name == "labels") return at == 0 ? 1.0 : static_cast<double>(r.in(0, classes - 1));
      if (name == "m") return at == 0 || r.one_in(2) ? 1.0 : 0.0;  // (not all are 0)
      return static_cast<double>(r.in(1, 64)) / 64;
    }));
  }
  return list;
}
int scans(const pt::program& p) {
  int n = 0;
  for (const auto& each : p.ops) n += each.def->name == "scan";
  return n;
}

struct {
  long cases = 0, smaller = 0, pipelines = 0;
} seen;

std::string problem(std::uint64_t seed) {
  data::random r{seed * 13 + 5};
  const drawn d = draw(r);
  const pt::program p = step_of(d);
  if (p.error) return data::str(p.error.message);
  const auto x = inputs_of(p, r);
  const pt::results expected = pt::evaluate(p, x);
  // Sums of a few hundred numbers of at most 100 in another order.
  const auto is_expected = [&](const pt::results& y) {
    return pt::max_difference(y, expected) < 1e-9;
  };
  const pt::microbatch_entry batch[] = {{"x", 0}, {"y", 0}, {"m", 0}, {"labels", 0}};
  const auto MB = pt::microbatch(d.steps, batch);
  const auto BP = pt::manual("B", {{"x", 0}, {"labels", 0}}, "BP");
  const pt::mesh mesh{{"B", r.one_in(3) ? 1 : 2}};
  const int loops = d.passed_on == 1 ? 1 : 0;  // of the model, perhaps before the loop
  try {
    const bool sharded = r.one_in(2) && rows / d.steps % 2 == 0;
    const auto made = sharded ? pt::partition(p, mesh, pt::schedule(BP, MB))
                              : pt::partition(p, mesh, pt::schedule(MB));
    for (const auto& note : made.tactics[sharded ? 1 : 0].notes) return data::str(note);
    if (scans(made.sharded()) > 1 + loops) return "several loops";
    if (const pt::verdict v = pt::prove(made); !v) return data::str(v.error.message);
    if (!is_expected(pt::emulate(made, x))) return "another result";
    const auto plain =
        sharded ? pt::partition(p, mesh, pt::schedule(BP)) : pt::partition(p, mesh, pt::schedule());
    seen.smaller += made.cost.peak_bytes < plain.cost.peak_bytes;
    ++seen.cases;

    const pt::topology cluster{{"m0", {{"B", 2}}}, {"m1", {{"B", 2}}}};
    const auto PP = pt::pipeline({.stages = {{"layers.0"}, {"layers.1", "head"}},
                                  .batch = {{"x", 0}, {"y", 0}, {"m", 0}, {"labels", 0}},
                                  .microbatches = d.steps,
                                  .order = pt::one_f_one_b},
                                 "PP");
    const auto lists = sharded ? pt::partition(p, cluster, pt::schedule(PP, BP))
                               : pt::partition(p, cluster, pt::schedule(PP));
    if (const pt::verdict v = pt::prove(lists); !v)
      return "pipeline: " + data::str(v.error.message);
    if (!is_expected(pt::emulate(lists, x))) return "another result of the pipeline";
    ++seen.pipelines;
  } catch (const pt::error& e) {
    return e.what();
  }
  return "";
}

}  // namespace

TEST_CASE("numbers of the whole batch are computed before the loop over microbatches") {
  random_test::for_each_seed(200, problem);
  MESSAGE(seen.cases, " programs with one loop, ", seen.smaller, " with a lower peak; ",
          seen.pipelines, " pipelines");
}
