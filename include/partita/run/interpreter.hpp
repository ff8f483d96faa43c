/// What runs a program: its plan, and what comes from and goes to the user's arrays.
#pragma once

#include <algorithm>
#include <cstring>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <partita/run/device/control_flow.hpp>
#include <partita/run/options.hpp>
#include <partita/run/transport/in_process.hpp>
#include <partita/spmd/device_program.hpp>

namespace partita {

namespace run_detail {

/// Do the arrays fit the inputs of a program, whose types are these?
///
/// Errors    R001 number of arrays, R002 shape, R003 element type
inline void check_arrays(const program& p, std::span<const tensor_type> types,
                         std::span<const array> inputs) {
  if (inputs.size() != types.size()) {
    text message = concat("R001 run: ", inputs.size(), inputs.size() == 1 ? " array" : " arrays",
                          " given; the program has ", types.size(), " inputs: ");
    append_list(message, p.input_count(), [&](int i) { message << p.input_name(i); });
    throw error(message);
  }
  for (int i = 0; i < p.input_count(); ++i) {
    const auto k = static_cast<std::size_t>(i);
    const tensor_type &have = inputs[k].type(), &need = types[k];
    if (!(have.shape == need.shape))
      throw error(concat("R002 run: the array for input \"", p.input_name(i), "\" has shape ",
                         have.shape, "; ", need.shape, " is needed"));
    if (have.element != need.element)
      throw error(concat("R003 run: the array for input \"", p.input_name(i),
                         "\" has element type ", name_of(have.element), "; ", name_of(need.element),
                         " is needed; give another type or use as_type"));
  }
}

/// The elements that both shapes have; zeros behind them.
inline array resized(const array& a, const shape& to) {
  if (a.shape() == to) return a;
  array out(tensor_type{a.element(), to});
  shape common = to;
  for (int d = 0; d < to.rank; ++d)
    if (a.shape()[d] < to[d]) common[d] = a.shape()[d];
  copy_box(size_of(a.element()), common, a.shape(), nullptr, a.bytes(), to, nullptr,
           out.mutable_bytes());
  return out;
}

/// A value as a mesh holds it: one copy for each distinct coordinate over the axes that it varies
/// over.
struct distributed_array {
  std::vector<array> copies;
  axis_set axes;
};

/// The pieces of a whole array.
inline distributed_array cut(const array& whole, const layout& l, const mesh& m) {
  distributed_array out;
  out.axes = axes_of(m, l);
  if (out.axes.empty()) {
    out.copies.push_back(whole);
    return out;
  }
  const tensor_type piece{whole.element(), l.local(whole.shape(), m)};
  for (std::int64_t i = 0; i < copies_over(m, out.axes); ++i) {
    array a(piece, allocate(padded_bytes(piece)));
    copy_box(size_of(piece.element), piece.shape, whole.shape(),
             start_of(m, l, piece.shape, coordinates_of(m, out.axes, i)).at, whole.bytes(),
             piece.shape, nullptr, const_cast<std::byte*>(a.bytes()));
    out.copies.push_back(std::move(a));
  }
  return out;
}
/// The whole array of which these are the pieces.
inline array joined(const distributed_array& pieces, const layout& l, const mesh& m) {
  if (axes_of(m, l).empty()) return pieces.copies[0];
  const shape& piece = pieces.copies[0].shape();
  const dtype element = pieces.copies[0].element();
  const tensor_type whole{element, l.global(piece, m)};
  array out(whole, allocate(padded_bytes(whole)));
  for (std::int64_t i = 0; i < copies_over(m, pieces.axes); ++i)
    copy_box(size_of(element), piece, piece, nullptr,
             pieces.copies[static_cast<std::size_t>(i)].bytes(), whole.shape,
             start_of(m, l, piece, coordinates_of(m, pieces.axes, i)).at,
             const_cast<std::byte*>(out.bytes()));
  return out;
}

/// Source    one interpreter for source programs (a mesh without axes) and device programs
class interpreter {
 public:
  interpreter(device_program d, run_options options)
      : interpreter(std::move(d), std::move(options), {}) {}
  /// `terms`: axes along which devices hold terms of an input; by input, empty: of none.
  interpreter(device_program d, run_options options, const std::vector<axis_set>& terms)
      : d_(std::move(d)),
        p_(d_.local),
        options_(std::move(options)),
        transport_(in_process(d_.mesh)),
        frame_(checked(d_), transport_, input_axes(terms), options_.kernels, options_.fuse, true),
        threads_(options_.threads > 1 ? options_.threads : 1) {
    auto list = std::make_shared<std::vector<std::string>>();
    for (int i = 0; i < p_.output_count(); ++i) list->emplace_back(p_.output_name(i));
    names_ = std::move(list);
    check_memory();
  }

  const device_program& source() const { return d_; }
  const std::shared_ptr<const std::vector<std::string>>& names() const { return names_; }
  std::int64_t workspace_bytes() const { return frame_.workspace_bytes(); }

  /// Pieces in, pieces out, as they lie on the mesh. `axes`: over which the outputs vary.
  ///
  /// Errors    R006 devices that should hold the same piece of an output do not
  std::vector<distributed_array> run_pieces(std::span<const distributed_array* const> inputs,
                                            std::span<const axis_set> axes) {
    std::unique_ptr<workspace> w = borrow();
    frame_.run(*w, threads_, [&](const step& s, workspace& space) {
      const value_id v = p_.op(s.op).result;
      const distributed_array& given = *inputs[at(s.input)];
      if (s.axes.empty()) {
        space.base[at(v)] = given.copies[0].bytes();
        return;
      }
      const tensor_type& local = p_.type(v);
      std::byte* const to = frame_.place(v, space);
      for (std::int64_t i = 0; i < copies_over(d_.mesh, s.axes); ++i)
        std::memcpy(to + i * padded_bytes(local), given.copies[at(i)].bytes(), at(local.bytes()));
    });
    std::vector<distributed_array> out;
    for (int i = 0; i < p_.output_count(); ++i) out.push_back(pieces(i, axes[at(i)], inputs, *w));
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(w));
    return out;
  }

  /// Where a type on the mesh is larger than that of an array (see core/padding.hpp), zeros stand
  /// behind the elements of an input, and the elements of an output are cut out.
  std::vector<array> run(std::span<const array> arrays) {
    check_arrays(p_, {d_.input_types.data(), d_.input_types.size()}, arrays);
    std::vector<array> inputs;
    for (std::size_t i = 0; i < arrays.size(); ++i)
      inputs.push_back(resized(
          arrays[i], d_.inputs[i].global(p_.input_type(static_cast<int>(i)).shape, d_.mesh)));
    std::unique_ptr<workspace> w = borrow();
    frame_.run(*w, threads_, [&](const step& s, workspace& space) {
      const value_id v = p_.op(s.op).result;
      if (s.axes.empty())
        space.base[at(v)] = inputs[at(s.input)].bytes();
      else
        slice_input(s, inputs[at(s.input)], frame_.place(v, space));
    });
    std::vector<array> out;
    for (int i = 0; i < p_.output_count(); ++i)
      out.push_back(resized(output(i, inputs, *w), d_.output_types[at(i)].shape));
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(w));
    return out;
  }

 private:
  static std::size_t at(std::int64_t i) { return static_cast<std::size_t>(i); }
  static const program& checked(const device_program& d) {
    d.local.error.raise();
    return d.local;
  }
  /// All values that are held at a time, and the outputs; without temporaries of kernels.
  std::int64_t run_bytes() const {
    std::int64_t n = frame_.workspace_bytes();
    for (int i = 0; i < p_.output_count(); ++i) {
      const tensor_type& local = p_.type(p_.outputs[at(i)].value);
      n = saturating_add(
          n, padded_bytes({local.element, d_.outputs[at(i)].global(local.shape, d_.mesh)}));
    }
    return n;
  }
  /// Errors    R009 the run needs more memory than it may have, or than there is
  void check_memory() const {
    const std::int64_t need = run_bytes();
    if (options_.memory <= 0 && need < much_memory) return;
    const std::int64_t limit = options_.memory > 0 ? options_.memory : available_memory();
    if (need <= limit) return;
    text message("R009 run: it needs ");
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

  void slice_input(const step& s, const array& a, std::byte* out) {
    const layout& l = d_.inputs[at(s.input)];
    const tensor_type& local = p_.type(p_.op(s.op).result);
    threads_.parallel_for(copies_over(d_.mesh, s.axes), [&](int, std::int64_t i) {
      const coordinates c = coordinates_of(d_.mesh, s.axes, i);
      copy_box(size_of(local.element), local.shape, a.shape(),
               start_of(d_.mesh, l, local.shape, c).at, a.bytes(), local.shape, nullptr,
               out + i * padded_bytes(local));
    });
  }

  distributed_array pieces(int index, axis_set axes,
                           std::span<const distributed_array* const> inputs, workspace& w) const {
    const plan& plan = frame_.plan();
    const value_id v = p_.outputs[at(index)].value, r = plan.root(v);
    const tensor_type& local = p_.type(v);
    distributed_array out;
    out.axes = axes;
    const bool one = plan.axes(v).empty() && axes.empty();
    if (one && plan.memory().handed_out(r)) {
      out.copies.emplace_back(local, w.handed_out[at(r)]);
      return out;
    }
    const auto found = std::find(p_.inputs.begin(), p_.inputs.end(), r);
    if (one && found != p_.inputs.end()) {
      out.copies.push_back(inputs[at(found - p_.inputs.begin())]->copies[0].reshaped(local.shape));
      return out;
    }
    check_replicas(index, axes, w);
    for (std::int64_t i = 0; i < copies_over(d_.mesh, axes); ++i) {
      array piece(local, allocate(padded_bytes(local)));
      std::memcpy(const_cast<std::byte*>(piece.bytes()),
                  frame_.copy_of(v, coordinates_of(d_.mesh, axes, i), w), at(local.bytes()));
      out.copies.push_back(std::move(piece));
    }
    return out;
  }
  /// Errors    R006 devices that should hold the same piece of an output do not
  array output(int index, std::span<const array> inputs, workspace& w) const {
    const plan& plan = frame_.plan();
    const value_id v = p_.outputs[at(index)].value, r = plan.root(v);
    const layout& l = d_.outputs[at(index)];
    const tensor_type& local = p_.type(v);
    const tensor_type global{local.element, l.global(local.shape, d_.mesh)};
    const bool whole = axes_of(d_.mesh, l).empty();
    if (plan.memory().handed_out(r) && whole) return array(global, w.handed_out[at(r)]);
    if (plan.axes(v).empty() && whole) {  // an input
      const auto found = std::find(p_.inputs.begin(), p_.inputs.end(), r);
      return inputs[at(found - p_.inputs.begin())].reshaped(global.shape);
    }
    check_replicas(index, axes_of(d_.mesh, l), w);
    return joined(v, l, global, w);
  }
  void check_replicas(int index, axis_set cut, const workspace& w) const {
    const value_id v = p_.outputs[at(index)].value;
    const axis_set axes = frame_.plan().axes(v);
    if ((axes - cut).empty()) return;
    for (std::int64_t i = 0; i < copies_over(d_.mesh, axes); ++i) {
      const coordinates mine = coordinates_of(d_.mesh, axes, i);
      coordinates first = mine;
      for (int a = 0; a < d_.mesh.rank; ++a)
        if (!cut.contains(a)) first.at[a] = 0;
      if (std::memcmp(frame_.copy_of(v, mine, w), frame_.copy_of(v, first, w),
                      at(p_.type(v).bytes())) != 0)
        throw error(concat("R006 run: output \"", p_.output_name(index),
                           "\" differs between devices that should hold the same piece of it"));
    }
  }
  /// The pieces that devices hold of a value, put together.
  array joined(value_id v, const layout& l, const tensor_type& global, const workspace& w) const {
    const shape& piece = p_.type(v).shape;
    const axis_set cut = axes_of(d_.mesh, l);
    array out(global, allocate(padded_bytes(global)));
    auto* to = const_cast<std::byte*>(out.bytes());
    for (std::int64_t i = 0; i < copies_over(d_.mesh, cut); ++i) {
      const coordinates c = coordinates_of(d_.mesh, cut, i);
      copy_box(size_of(global.element), piece, piece, nullptr, frame_.copy_of(v, c, w),
               global.shape, start_of(d_.mesh, l, piece, c).at, to);
    }
    return out;
  }

  device_program d_;
  const program& p_;
  run_options options_;
  transport transport_;
  frame frame_;
  thread_pool threads_;
  std::shared_ptr<const std::vector<std::string>> names_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<workspace>> idle_;
};

}  // namespace run_detail
}  // namespace partita
