/// The interface that all backends share: states that stay on devices, and calls with named
/// arguments.
#pragma once

#include <algorithm>
#include <concepts>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include <partita/backend/checkpoint/reader.hpp>
#include <partita/backend/sharded_state.hpp>
#include <partita/ir/next_states.hpp>
#include <partita/run/results.hpp>
#include <partita/schedule/tactic.hpp>

namespace partita {

/// An executable of a backend. A program that uses only this runs on every backend: emulated, over
/// MPI and on XLA.
///
///   auto state = run.place(w1, w2);            // or run.load("step_100")
///   state = run(state, batch).next();          // the state stays on its devices
///   std::cout << run.whole(state["loss"]);
template <class E>
concept BackendExecutable = requires(const E& run, const typename E::state& s, const array& a,
                                     const results& r) {
  { run.place(r) } -> std::same_as<typename E::state>;
  { run.load("checkpoint") } -> std::same_as<typename E::state>;
  { run(s, a) } -> std::same_as<typename E::state>;
  { s.next() } -> std::same_as<typename E::state>;
  { run.whole(s["name"]) } -> std::same_as<array>;
};

/// Base of the executables of backends. `Array` is a sharded array with `name`, `global`, `local`
/// and `sharding`. `Backend` is the derived class; it has a `label` for messages and these members:
///
///   source()              the unsharded program
///   slots()               by input, an Array without shards
///   cut(slot, global)     the slot with the shards of a global array
///   filled(slot, make)    the slot with the shards that make(shard_request) returns
///   run(arrays)           one run: by input, a pointer to an array; returns a state of the outputs
template <class Backend, class Array>
class stateful_executable {
 public:
  using state = basic_sharded_state<Array>;

  /// Returns a state with the shards of global arrays. Results go to the inputs of their names,
  /// other arrays to the remaining inputs in order.
  ///
  /// Errors    R001 to R003
  template <class... Args>
  requires(!(sizeof...(Args) == 1 && (std::invocable<const Args&, const shard_request&> &&
                                      ...))) state place(const Args&... args)
  const {
    assembled a(self());
    (a.add(args), ...);
    return a.placed();
  }
  /// Returns a state with the shards that `make(request)` returns; each process asks for its own
  /// only. `names` are inputs or prefixes of their paths. Without names: the inputs whose next
  /// values the program returns, or else all inputs.
  ///
  /// Errors    R002, R003 an array has another type than `request.local`; R004 no such input
  template <std::invocable<const shard_request&> Make>
  state place(const Make& make, std::initializer_list<std::string_view> names = {}) const {
    return shard_by_shard(names, [&](const Array& v, const shard_request& request) {
      const array made = make(request);
      run_detail::need_input_type("shard", v.name, made.type(), request.local);
      return run_detail::resized(made, v.local.shape);
    });
  }
  /// Loads inputs from a checkpoint that any mesh or backend wrote; each process reads its own
  /// shards. `names` are as for place.
  ///
  /// Errors    those of checkpoint_reader
  template <std::convertible_to<std::string_view>... Names>
  state load(const std::string& path, const Names&... names) const {
    const checkpoint_reader in(path);
    for (const std::size_t i : selected_inputs({names...}))
      in.need(self().slots()[i].name, self().slots()[i].global);
    return shard_by_shard({names...}, [&](const Array& v, const shard_request& request) {
      return in.read(v.name, request.begin, v.local.shape);
    });
  }
  /// Runs the program once. The arguments are states, whose values go to the inputs of their names,
  /// and global arrays, which go to the remaining inputs in order.
  ///
  /// Errors    R001 to R003; J005 the outputs of a run are passed without next()
  template <class... Args>
  state operator()(const Args&... args) const {
    assembled a(self());
    (a.add(args), ...);
    return self().run(a.complete());
  }

 protected:
  /// To be called by the constructor of the backend, once it knows its program.
  void find_states() {
    auto inputs = std::make_shared<std::vector<std::string>>();
    for (const int i : reused_inputs(self().source()))
      inputs->emplace_back(i >= 0 ? std::string(self().source().input_name(i)) : std::string());
    next_inputs_ = std::move(inputs);
    for (std::size_t i = 0; i < self().slots().size(); ++i)
      input_numbers_.emplace(self().slots()[i].name, static_cast<int>(i));
  }
  /// By output: the name of the input whose next value it is, or empty.
  const std::shared_ptr<const std::vector<std::string>>& next_inputs() const {
    return next_inputs_;
  }
  /// By name; the names are those of the slots.
  const std::unordered_map<std::string_view, int>& input_numbers() const { return input_numbers_; }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  const Backend& self() const { return static_cast<const Backend&>(*this); }

  template <class Make>
  state shard_by_shard(std::initializer_list<std::string_view> names, const Make& make) const {
    std::vector<Array> values;
    for (const std::size_t i : selected_inputs(names)) {
      const Array& slot = self().slots()[i];
      values.push_back(
          self().filled(slot, [&](const shard_request& request) { return make(slot, request); }));
    }
    return state(std::move(values));
  }
  /// Returns the inputs of these names; without names, those that are carried, or else all.
  ///
  /// Errors    R004 no such input
  std::vector<std::size_t> selected_inputs(std::initializer_list<std::string_view> names) const {
    const auto all = run_detail::names_of_inputs(self().source());
    if (names.size() > 0)
      return run_detail::selected(all, names, [&](std::string_view name) {
        throw error(concat("R004 ", Backend::label, ": no input \"", name, "\"; ",
                           known_names_or_below(name, all)));
      });
    std::vector<std::size_t> carried, every;
    for (std::size_t i = 0; i < all.size(); ++i) {
      every.push_back(i);
      if (std::find(next_inputs_->begin(), next_inputs_->end(), all[i]) != next_inputs_->end())
        carried.push_back(i);
    }
    return carried.empty() ? every : carried;
  }

  /// The arguments of a call, assigned to inputs.
  class assembled {
   public:
    explicit assembled(const Backend& e) : e_(e), given_(at(e.source().input_count()), nullptr) {}

    void add(const state& s) {
      if (!s.is_input())
        throw error(concat("J005 ", Backend::label,
                           ": the argument holds the outputs of a run; pass its next(), ",
                           "the state for the next run"));
      for (std::size_t k = 0; k < s.values().size(); ++k) {
        const Array& v = s.values()[k];
        const int i = s.passes_on(k) ? find(v.name) : -1;
        if (i < 0) continue;
        run_detail::need_input_type("value of a state", v.name, v.global, e_.slots()[at(i)].global);
        given_[at(i)] = &v;
      }
    }
    void add(const results& r) {
      for (int k = 0; k < r.size(); ++k) {
        const int i = find(r.names()[at(k)]);
        if (i < 0) {
          add(r[k]);
          continue;
        }
        put_global(i, r[k]);
      }
    }
    void add(const array& a) { rest_.push_back(a); }
    template <class T>
    void add(const T& x) {
      std::vector<array> list;
      run_detail::flatten(list, x);
      for (const array& each : list) add(each);
    }
    /// Returns all inputs. They are valid as long as this object and the arguments.
    ///
    /// Errors    R001 an input is missing
    const std::vector<const Array*>& complete() {
      settle();
      text missing;
      int count = 0;
      for (std::size_t i = 0; i < given_.size(); ++i)
        if (given_[i] == nullptr && count++ < 8)
          missing << (count > 1 ? ", " : "") << e_.source().input_name(static_cast<int>(i));
      if (count > 0)
        throw error(concat("R001 run: no array is given for ", count,
                           count == 1 ? " input: " : " inputs: ", missing,
                           count > 8 ? ", ..." : ""));
      return given_;
    }
    /// Returns a state of the inputs that have arguments.
    state placed() {
      settle();
      std::vector<Array> list;
      for (const Array* each : given_)
        if (each != nullptr) list.push_back(*each);
      return state(std::move(list));
    }

   private:
    int find(std::string_view name) const {
      const auto found = e_.input_numbers().find(name);
      return found == e_.input_numbers().end() ? -1 : found->second;
    }
    void put_global(int i, const array& a) {
      const Array& slot = e_.slots()[at(i)];
      run_detail::need_input_type("array", slot.name, a.type(), slot.global);
      given_[at(i)] = &cut_.emplace_back(e_.cut(slot, a));
    }
    void settle() {
      std::size_t next = 0;
      for (std::size_t i = 0; i < given_.size() && next < rest_.size(); ++i)
        if (given_[i] == nullptr) put_global(static_cast<int>(i), rest_[next++]);
      if (next < rest_.size())
        throw error(concat("R001 run: ", rest_.size(), " arrays are given without a name for ",
                           next, next == 1 ? " input" : " inputs"));
    }

    const Backend& e_;
    std::vector<const Array*> given_;  // by input; values of states are not copied
    std::deque<Array> cut_;            // those that were given as global arrays
    std::vector<array> rest_;
  };

  std::shared_ptr<const std::vector<std::string>> next_inputs_;
  std::unordered_map<std::string_view, int> input_numbers_;
};

}  // namespace partita
