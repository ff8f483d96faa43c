/// The device-local program on the devices of one process.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <partita/run/device/control_flow.hpp>
#include <partita/run/device/shards.hpp>
#include <partita/run/options.hpp>
#include <partita/run/results.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita::run_detail {

/// A 64-bit FNV-1a hash.
constexpr std::uint64_t hash_bytes(const std::byte* data, std::int64_t bytes,
                                   std::uint64_t h = 0xcbf29ce484222325u) {
  for (std::int64_t i = 0; i < bytes; ++i)
    h = (h ^ static_cast<std::uint64_t>(data[i])) * 0x100000001b3u;
  return h;
}

/// A device program, planned for the devices that this process holds according to a transport:
/// shards in, shards out. Several threads may run it if the transport allows that.
///
/// Errors    R005, R007, R015 (see `plan`), R008 too many threads, R009 too much memory
class device_run {
 public:
  /// `terms`: by input, the axes along which devices hold pending terms of its sum; empty: none.
  device_run(device_program d, run_options options, std::shared_ptr<transport> t,
             const std::vector<axis_set>& terms)
      : d_(std::move(d)),
        options_(std::move(options)),
        transport_(std::move(t)),
        frame_(checked(d_), *transport_, input_axes(terms), options_.kernels, options_.fuse, true),
        threads_(options_.threads > 1 ? options_.threads : 1),
        names_(output_names(p())) {
    check_memory();
  }

  const device_program& source() const { return d_; }
  const program& p() const { return d_.local; }
  const frame& planned() const { return frame_; }
  const device_set& devices() const { return transport_->devices(); }
  const std::shared_ptr<const std::vector<std::string>>& names() const { return names_; }
  std::int64_t workspace_bytes() const { return frame_.workspace_bytes(); }

  /// Runs once: `give(step, workspace, threads)` sets the base of an input, and `take(workspace)`
  /// returns the caller's result from the outputs.
  template <class Give, class Take>
  auto run(const Give& give, const Take& take) {
    std::unique_ptr<workspace> w = borrow();
    frame_.run(*w, threads_, [&](const step& s, workspace& space) { give(s, space, threads_); });
    auto out = take(*w);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(w));
    return out;
  }
  /// Runs on shards, and returns shards. `axes` are those over which the outputs vary.
  ///
  /// Errors    R006 devices that should hold the same shard of an output differ
  std::vector<distributed_array> operator()(std::span<const distributed_array* const> inputs,
                                            std::span<const axis_set> axes) {
    const auto give = [&](const step& s, workspace& space, thread_pool&) {
      const value_id v = p().op(s.op).result;
      const distributed_array& given = *inputs[at(s.input)];
      if (devices().copies(s.axes) == 1) {
        space.base[at(v)] = given.copies[0].bytes();
        return;
      }
      const tensor_type& local = p().type(v);
      std::byte* const to = frame_.place(v, space);
      for (std::int64_t i = 0; i < devices().copies(s.axes); ++i)
        std::memcpy(to + i * padded_bytes(local), given.copies[at(i)].bytes(), at(local.bytes()));
    };
    return run(give, [&](workspace& w) {
      std::vector<distributed_array> out;
      for (int i = 0; i < p().output_count(); ++i) out.push_back(shards(i, axes[at(i)], inputs, w));
      return out;
    });
  }

  /// Returns the array of an output with one copy that needs no copy: the memory of its value, or
  /// an input, which `input(i)` returns; else nothing.
  template <class Input>
  std::optional<array> in_place(int index, const tensor_type& type, const workspace& w,
                                const Input& input) const {
    const value_id r = frame_.plan().root(p().outputs[at(index)].value);
    if (frame_.plan().memory().handed_out(r)) return array(type, w.handed_out[at(r)].now());
    const auto found = std::find(p().inputs.begin(), p().inputs.end(), r);
    if (found == p().inputs.end()) return {};
    return input(at(found - p().inputs.begin())).reshaped(type.shape);
  }

  /// Checks, on all processes, that devices which should hold the same shard of an output do.
  ///
  /// Errors    R006 they differ
  void check_replicas(int index, axis_set cut, const workspace& w) const {
    const value_id v = p().outputs[at(index)].value;
    const axis_set axes = frame_.plan().axes(v), equal = axes - cut;
    if (equal.empty()) return;
    const std::int64_t bytes = p().type(v).bytes();
    bool same = true;
    for (std::int64_t i = 0; i < devices().copies(axes); ++i) {
      const coordinates mine = devices().coordinates_of(axes, i);
      same = same &&
             std::memcmp(frame_.copy_of(v, mine, w), first_of(v, mine, cut, w), at(bytes)) == 0;
    }
    if (devices().processes(equal) > 1) {
      std::vector<std::uint64_t> mine;
      for (std::int64_t i = 0; i < devices().copies(axes & cut); ++i)
        mine.push_back(
            hash_bytes(frame_.copy_of(v, devices().coordinates_of(axes & cut, i), w), bytes));
      transport_->now = {&p(), p().producer(v)};
      const std::size_t size = mine.size() * sizeof mine[0];
      const auto all =
          gathered(*transport_, equal, reinterpret_cast<const std::byte*>(mine.data()), size);
      for (std::size_t i = 0; i < all.size(); i += size)
        same = same && std::memcmp(mine.data(), all.data() + i, size) == 0;
    }
    if (!same)
      throw error(concat("R006 run: output \"", p().output_name(index),
                         "\" differs between devices that should hold the same shard"));
  }

 private:
  static const program& checked(const device_program& d) {
    d.local.error.raise();
    return d.local;
  }
  /// Returns the maximum of the bytes live at a time, plus the outputs; without temporaries of
  /// kernels.
  std::int64_t run_bytes() const {
    std::int64_t n = frame_.workspace_bytes();
    for (int i = 0; i < p().output_count(); ++i) {
      const tensor_type& local = p().type(p().outputs[at(i)].value);
      n = saturating_add(n,
                         saturating_multiply(devices().copies(axes_of(d_.mesh, d_.outputs[at(i)])),
                                             padded_bytes(local)));
    }
    return n;
  }
  /// Checks the memory of a run before it starts.
  ///
  /// Errors    R009 the run needs more memory than its limit, or than the machine has left
  void check_memory() const {
    const std::int64_t need = run_bytes();
    if (options_.memory <= 0 && need < much_memory) return;
    const std::int64_t limit = options_.memory > 0 ? options_.memory : available_memory();
    if (need <= limit) return;
    text message("R009 run: the program needs ");
    print_figure(message, need);
    message << " bytes; "
            << (options_.memory > 0 ? "run_options::memory allows " : "the machine has left ")
            << limit;
    if (const auto most = frame_.largest(); most.where != nullptr) {
      message << "; the largest value, ";
      most.where->print_value(message, most.value);
      message << ", takes ";
      print_figure(message, most.bytes);
    }
    throw error(message);
  }
  std::vector<axis_set> input_axes(const std::vector<axis_set>& terms) const {
    std::vector<axis_set> axes;
    for (const auto& l : d_.inputs) {
      const std::size_t i = axes.size();
      axes.push_back(axes_of(d_.mesh, l) | (i < terms.size() ? terms[i] : axis_set{}));
    }
    return axes;
  }

  std::unique_ptr<workspace> borrow() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        auto w = std::move(idle_.back());
        idle_.pop_back();
        return w;
      }
    }
    return frame_.make_workspace(threads_.size());
  }

  distributed_array shards(int index, axis_set axes,
                           std::span<const distributed_array* const> inputs, workspace& w) const {
    const value_id v = p().outputs[at(index)].value;
    const tensor_type& local = p().type(v);
    distributed_array out;
    out.axes = axes;
    check_replicas(index, axes, w);
    if (devices().copies(frame_.plan().axes(v) | axes) == 1)
      if (auto one = in_place(index, local, w, [&](auto i) { return inputs[i]->copies[0]; })) {
        out.copies.push_back(std::move(*one));
        return out;
      }
    for (std::int64_t i = 0; i < devices().copies(axes); ++i) {
      array shard(local, allocate(padded_bytes(local)));
      std::memcpy(const_cast<std::byte*>(shard.bytes()),
                  frame_.copy_of(v, devices().coordinates_of(axes, i), w), at(local.bytes()));
      out.copies.push_back(std::move(shard));
    }
    return out;
  }
  /// Returns the copy of the first device of this process that should hold the same shard.
  const std::byte* first_of(value_id v, const coordinates& c, axis_set cut,
                            const workspace& w) const {
    coordinates first = devices().coordinates_of({}, 0);
    for (int a = 0; a < d_.mesh.rank; ++a)
      if (cut.contains(a)) first.at[a] = c.at[a];
    return frame_.copy_of(v, first, w);
  }

  device_program d_;
  run_options options_;
  std::shared_ptr<transport> transport_;
  frame frame_;
  thread_pool threads_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<workspace>> idle_;
};

}  // namespace partita::run_detail
