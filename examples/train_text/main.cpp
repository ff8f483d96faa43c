/// Trains a transformer language model on text twice, partitioned over an emulated mesh of devices
/// and unpartitioned, compares the losses, and writes some text.
///
///   cmake -P cmake/demo.cmake                                  builds and runs it
///   cmake -P cmake/demo.cmake -- --mesh 2x2 --schedule BP,MP   passes options; see --help
// ctest: --text LICENSE --layers 1 --width 32 --context 16 --steps 20 --sample 40
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <exception>
#include <iostream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <partita/cpu.hpp>
#include <partita/partita.hpp>

#include "../models/transformer.hpp"
#include "options.hpp"
#include "strategy.hpp"
#include "text.hpp"

namespace {

namespace pt = partita;

transformer::sizes sizes_of(const options& o, const corpus& text, std::int64_t batch) {
  return {o.layers,    o.width,           o.heads,   o.width / o.heads,
          4 * o.width, text.vocabulary(), o.context, batch};
}

/// Returns all inputs of the training step except the batch: parameters, and zeros for the
/// optimizer.
std::vector<pt::array> initial_state(const pt::program& step, const options& o) {
  std::vector<pt::array> state;
  for (int i = 0; i + 2 < step.input_count(); ++i) {
    pt::array a(step.input_type(i));
    transformer::initialise(step.input_name(i), a.shape(), o.layers,
                            static_cast<std::uint64_t>(o.seed), a.mutable_data<float>());
    state.push_back(a);
  }
  return state;
}

/// A training run: the program, its state, and its time so far.
class training {
 public:
  training(pt::executable run, std::vector<pt::array> state)
      : run_(std::move(run)), state_(std::move(state)) {}

  double step(const batch& b) {
    const auto start = std::chrono::steady_clock::now();
    std::vector<pt::array> inputs = std::move(state_);
    inputs.push_back(b.tokens);
    inputs.push_back(b.targets);
    state_ = run_(inputs);  // the next state, then the loss
    const double loss = state_.back().item<float>();
    state_.pop_back();
    seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    return loss;
  }
  const std::vector<pt::array>& state() const { return state_; }
  double seconds = 0;

 private:
  pt::executable run_;
  std::vector<pt::array> state_;
};

/// Returns the bound on the relative difference of the two runs at a step (from 0), for the loss
/// and for the first gradients.
///
/// Both runs compute the same sums in another order: a device first sums over its shard of the
/// batch or of the hidden units, then the devices' sums are added. A float32 sum of n terms in
/// another order differs by about sqrt(n) roundings u = 2^-24. The sums run over batch and context
/// (gradients, loss) and over the hidden units; the factor 2 accounts for sums of sums. Every step
/// adds as much error to the parameters. If training does not amplify it, the error grows at most
/// linearly. The default sizes are allowed 6e-6 in the first step and 3e-3 in the 500th; typical
/// values are 5e-7 (gradients) and 1e-6 (loss). A learning rate near the edge of stability
/// amplifies roundings exponentially and exceeds the bound. That is intended: such a run is not
/// reproducible on another machine.
double bound(std::int64_t step, const options& o) {
  const auto terms = static_cast<double>(o.batch * o.context + 4 * o.width);
  return 2 * 0x1p-24 * std::sqrt(terms) * static_cast<double>(step + 1);
}

/// The gradient that differs most after the first step, relative to its largest element. It is read
/// from Adam's m, which then is the gradient times a constant.
///
/// This check is stricter than the loss: a wrong gradient changes the loss only from the second
/// step on, and a small parameter changes it little. A gradient without the sum over four devices
/// differs by about 0.75 here.
struct gradient_difference {
  double worst = 0;
  std::string name;

  gradient_difference() = default;
  gradient_difference(const pt::program& step, const training& a, const training& b) {
    constexpr std::string_view moment = "opt_state.m.";
    for (std::size_t i = 0; i < a.state().size(); ++i) {
      const std::string_view input = step.input_name(static_cast<int>(i));
      if (!input.starts_with(moment)) continue;
      const pt::array &x = a.state()[i], &y = b.state()[i];
      const double largest = pt::max_difference(x, pt::array(x.type()));  // from zeros
      const double d = pt::max_difference(x, y) / (largest > 0 ? largest : 1);
      if (d <= worst && !name.empty()) continue;
      worst = d;
      name = input.substr(moment.size());
    }
  }
};

struct outcome {
  double first = 0, last = 0;  ///< loss of the unpartitioned run: first step, mean of the last
  double difference = 0;       ///< largest relative difference of the losses
  std::int64_t at = 0, beyond = -1;  ///< step of `difference`; first step above the bound, or -1
  gradient_difference gradients;     ///< after the first step
};

outcome train(const pt::program& step, training& whole, training& parts, const corpus& text,
              const options& o) {
  std::printf(
      "  step       loss    loss on mesh   rel. difference   tokens/s   tokens/s on mesh\n");
  transformer::random_stream random(static_cast<std::uint64_t>(o.seed) + 1);
  outcome r;
  const std::int64_t every = std::max<std::int64_t>(1, o.steps / 15);
  const std::int64_t tail = std::max<std::int64_t>(1, o.steps / 10);
  for (std::int64_t i = 0; i < o.steps; ++i) {
    const batch b(text, o, random);
    const double a = whole.step(b), c = parts.step(b);
    const double difference = std::abs(a - c) / std::abs(a);
    if (i == 0) r.first = a, r.gradients = gradient_difference(step, whole, parts);
    if (i >= o.steps - tail) r.last += a / static_cast<double>(tail);
    if (!(difference <= r.difference)) r.difference = difference, r.at = i;
    if (!(difference <= bound(i, o)) && r.beyond < 0) r.beyond = i;
    if (i % every == 0 || i + 1 == o.steps) {
      const double tokens = static_cast<double>((i + 1) * o.batch * o.context);
      std::printf("%6lld %10.6f %15.6f %17.1e %10.0f %18.0f\n", static_cast<long long>(i), a, c,
                  difference, tokens / whole.seconds, tokens / parts.seconds);
      std::fflush(stdout);
    }
  }
  return r;
}

/// Writes characters; the model draws each from the characters before it.
void write_sample(const std::vector<pt::array>& state, const corpus& text, const options& o) {
  const pt::program forward = transformer::trace_logits<transformer::dynamic>(sizes_of(o, text, 1));
  const pt::executable run(forward, {.threads = static_cast<int>(o.threads)});
  std::vector<pt::array> inputs(state.begin(), state.begin() + forward.input_count() - 1);
  inputs.emplace_back(pt::tensor_type{pt::dtype::i32, {1, o.context}});
  transformer::random_stream random(static_cast<std::uint64_t>(o.seed) + 2);
  std::vector<std::int32_t> seen;
  for (char c : o.prompt) seen.push_back(text.code(c));
  std::cout << o.prompt;
  std::vector<double> weight(static_cast<std::size_t>(text.vocabulary()));
  for (std::int64_t n = 0; n < o.sample; ++n) {
    while (static_cast<std::int64_t>(seen.size()) > o.context) seen.erase(seen.begin());
    auto* tokens = inputs.back().mutable_data<std::int32_t>();
    std::fill(std::copy(seen.begin(), seen.end(), tokens), tokens + o.context, 0);  // never read
    const pt::array logits = run(inputs).front();                                   // (1, s, v)
    const float* last =
        logits.data<float>() + (static_cast<std::int64_t>(seen.size()) - 1) * text.vocabulary();
    const double most = *std::max_element(last, last + text.vocabulary());
    double sum = 0;
    for (std::size_t v = 0; v < weight.size(); ++v)
      sum += weight[v] = std::exp((static_cast<double>(last[v]) - most) / o.temperature);
    double left = random.uniform() * sum;
    std::size_t next = 0;
    while (next + 1 < weight.size() && (left -= weight[next]) >= 0) ++next;
    seen.push_back(static_cast<std::int32_t>(next));
    std::cout << text.character(seen.back());
  }
  std::cout << '\n';
}

int run(const options& o) {
  const corpus text = load_text(o);
  const pt::program step = transformer::trace_training_step<transformer::dynamic>(
      sizes_of(o, text, o.batch), {.rate = o.rate});
  const pt::mesh mesh{{"B", o.mesh_b}, {"M", o.mesh_m}};
  const std::vector<chosen_tactic> tactics(o.schedule.begin(), o.schedule.end());
  const pt::partitioned p = pt::partition(step, mesh, tactics);

  std::vector<pt::array> state = initial_state(step, o);
  std::int64_t parameters = 0;
  for (int i = 0; i < transformer::parameter_count(o.layers); ++i)
    parameters += step.input_type(i).shape.elements();
  std::cout << "text: " << text.size() << " characters, " << text.vocabulary() << " different\n"
            << "model: " << o.layers << " layers, width " << o.width << ", " << o.heads
            << " heads, " << parameters << " parameters; the training step has " << step.op_count()
            << " ops\n"
            << "mesh: " << pt::concat(mesh) << ", schedule: " << command_line::join(o.schedule)
            << "\n\n"
            << pt::report(p, 4) << '\n'
            << std::flush;

  const pt::run_options how{.threads = static_cast<int>(o.threads)};
  training whole(pt::executable(step, how), state), parts(pt::executable(p.device, how), state);
  const outcome r = train(step, whole, parts, text, o);
  std::printf("\nloss: %.3f at first, %.3f in the end\n", r.first, r.last);
  std::printf("largest relative difference of the losses: %.1e, at step %lld (bound there: %.1e)\n",
              r.difference, static_cast<long long>(r.at), bound(r.at, o));
  std::printf(
      "largest relative difference of a gradient after the first step: %.1e, %s (bound: %.1e)\n",
      r.gradients.worst, r.gradients.name.c_str(), bound(0, o));
  std::printf(
      "time: %.1f s unpartitioned, %.1f s on the mesh of %lld emulated devices, %lld threads\n",
      whole.seconds, parts.seconds, static_cast<long long>(mesh.devices()),
      static_cast<long long>(o.threads));

  if (o.sample > 0) {
    std::cout << "\nwritten by the partitioned model, temperature "
              << command_line::number(o.temperature) << ":\n"
              << std::flush;
    write_sample(parts.state(), text, o);
  }
  if (!(r.gradients.worst <= bound(0, o))) {
    std::cerr << "train_text: the first gradients of \"" << r.gradients.name << "\" differ by "
              << r.gradients.worst
              << " of the largest element; the bound for float32 sums in another order is "
              << bound(0, o) << '\n';
    return 1;
  }
  if (r.beyond >= 0) {
    std::cerr << "train_text: from step " << r.beyond << " on the losses differ by more than "
              << bound(r.beyond, o)
              << " of the loss, the bound for float32 sums in another order; if "
              << "they agreed for many steps, the training amplifies roundings: lower --rate\n";
    return 1;
  }
  if (!(r.last < r.first) && o.steps >= 20) {
    std::cerr << "train_text: the loss did not fall\n";
    return 1;
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const options o = command_line::parse({argv + 1, argv + argc});
    if (o.help) {
      command_line::print_help(std::cout);
      return 0;
    }
    return run(o);
  } catch (const usage_error& e) {
    std::cerr << "train_text: " << e.what() << '\n';
  } catch (const std::exception& e) {
    std::cerr << "train_text: " << e.what() << '\n';
  }
  return 2;
}
