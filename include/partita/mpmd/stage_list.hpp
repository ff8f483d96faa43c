/// Stores names of parts by stage, and inputs with their batch dimensions, for tactics.
#pragma once

#include <initializer_list>
#include <string_view>
#include <type_traits>

#include <partita/cost/device.hpp>
#include <partita/schedule/microbatch.hpp>
#include <partita/support/text.hpp>
#include <partita/support/vec.hpp>

namespace partita {

namespace mpmd_detail {

/// Names with a number each. In constant evaluation the first N refer to literals, so that the list
/// can be a constant; all others are owned (see kept_name).
template <int N>
class numbered_names {
 public:
  struct entry {
    std::string_view name;
    int number = 0;
  };

  constexpr void add(std::string_view name, int number) {
    if (std::is_constant_evaluated() && own_.empty() && in_place_ < N)
      few_[in_place_++] = {name, number};
    else
      own_.push_back({text(name), number});
  }
  constexpr int count() const { return in_place_ + static_cast<int>(own_.size()); }
  constexpr entry operator[](int i) const {
    if (i < in_place_) return few_[i];
    return {own_[i - in_place_].name.view(), own_[i - in_place_].number};
  }

 private:
  struct own_entry {
    text name;
    int number = 0;
  };
  entry few_[N] = {};
  int in_place_ = 0;
  vec<own_entry> own_;
};

}  // namespace mpmd_detail

/// The parts of each stage, from stage 0 on: `{{"embedding", "layers.0"}, {"layers.1", "head"}}`. A
/// constant variable holds up to 128 names, others any number. Alternatively, the number of stages;
/// see automatic_stages.
class stage_list {
 public:
  constexpr stage_list() = default;
  constexpr stage_list(std::initializer_list<std::initializer_list<std::string_view>> stages) {
    for (const auto& each : stages) {
      for (const std::string_view name : each) add(name);
      end_stage();
    }
  }
  /// Adds a part to the open stage.
  constexpr void add(std::string_view name) { names_.add(name, stages_); }
  constexpr void end_stage() { ++stages_; }

  constexpr int stages() const { return stages_; }
  /// True if the parts of the stages are still to be found, by their times on this device.
  constexpr bool automatic() const { return automatic_; }
  constexpr const device& measured_on() const { return on_; }
  constexpr int count() const { return names_.count(); }
  constexpr std::string_view name(int i) const { return names_[i].name; }
  constexpr int stage(int i) const { return names_[i].number; }

 private:
  mpmd_detail::numbered_names<128> names_;
  int stages_ = 0;
  bool automatic_ = false;
  device on_;

  friend constexpr stage_list automatic_stages(int, const device&);
};

/// Requests `count` stages of the named parts of a program (in the order of its forward pass) whose
/// largest simulated time, forward and backward, is minimal. `on`: the device for meshes whose own
/// device is not known well enough to simulate.
///
/// Errors    O146 the program has no named parts, O147 fewer parts than stages (reported when used)
/// Cost      for each kind of mesh that of partitioning once more
constexpr stage_list automatic_stages(int count, const device& on = a100_80) {
  stage_list s;
  s.stages_ = count;
  s.automatic_ = true;
  s.on_ = on;
  return s;
}

/// Inputs and their batch dimensions: `{{"tokens", 0}, {"targets", 0}}`.
class batch_list {
 public:
  constexpr batch_list() = default;
  constexpr batch_list(std::initializer_list<microbatch_entry> entries) {
    for (const auto& e : entries) add(e);
  }
  constexpr void add(const microbatch_entry& e) { names_.add(e.name, e.dim); }
  constexpr int count() const { return names_.count(); }
  constexpr microbatch_entry operator[](int i) const { return {names_[i].name, names_[i].number}; }

 private:
  mpmd_detail::numbered_names<32> names_;
};

}  // namespace partita
