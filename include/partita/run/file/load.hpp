/// `load` and `save`: arrays by name, in common file formats.
///
/// The extension selects the format: `.safetensors`, `.npz`, or `.npy` (one array without a name).
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

#include <partita/dsl/trace.hpp>
#include <partita/run/evaluate.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/run/file/safetensors.hpp>
#include <partita/schedule/tactic.hpp>

namespace partita {

/// Options of `load`.
struct load_options {
  bool others = false;  ///< true if the file may have arrays that were not requested
};

namespace run_detail {

/// A requested array; a dynamic extent of its type matches any extent.
struct requested_array {
  std::string name;
  tensor_type type;
};

enum class file_format : std::uint8_t { npy, npz, safetensors };
/// Returns the format of a file.
///
/// Errors    N009 the extension is unknown
inline file_format format_of(std::string_view path) {
  if (path.ends_with(".safetensors")) return file_format::safetensors;
  if (path.ends_with(".npz")) return file_format::npz;
  if (path.ends_with(".npy")) return file_format::npy;
  throw error(
      concat("N009 file: \"", path, "\" has an unknown extension; use .safetensors, .npz or .npy"));
}

/// Positions of names in a list, found by name.
class name_index {
 public:
  template <class Items>
  explicit name_index(const Items& items) {
    for (std::size_t i = 0; i < items.size(); ++i) places_.push_back({items[i].name, i});
    std::sort(places_.begin(), places_.end());
  }
  /// Returns the position of a name, or -1.
  std::ptrdiff_t find(std::string_view name) const {
    const auto at = std::lower_bound(places_.begin(), places_.end(), place{name, 0});
    return at != places_.end() && at->name == name ? static_cast<std::ptrdiff_t>(at->index) : -1;
  }
  /// Returns the position of a name that occurs twice, or -1.
  std::ptrdiff_t duplicate() const {
    const auto at = std::adjacent_find(places_.begin(), places_.end(),
                                       [](auto& a, auto& b) { return a.name == b.name; });
    return at != places_.end() ? static_cast<std::ptrdiff_t>(at->index) : -1;
  }
  /// Returns all names, sorted.
  std::vector<std::string_view> names() const {
    std::vector<std::string_view> list;
    for (const auto& each : places_) list.push_back(each.name);
    return list;
  }

 private:
  struct place {
    std::string_view name;
    std::size_t index;
    friend bool operator<(const place& a, const place& b) {
      return a.name != b.name ? a.name < b.name : a.index < b.index;
    }
  };
  std::vector<place> places_;
};

/// Checks that names are unique.
///
/// Errors    N008 a name occurs twice
inline void need_once(const std::string& path, const std::vector<named_array>& arrays) {
  const std::ptrdiff_t at = name_index(arrays).duplicate();
  if (at >= 0)
    throw error(concat("N008 file: \"", path, "\": two arrays are named \"",
                       short_name(arrays[static_cast<std::size_t>(at)].name), '"'));
}
/// The arrays of a file, and those that this library cannot represent.
struct file_arrays {
  std::vector<named_array> read;
  std::vector<unread_array> unread;
};
inline file_arrays read_arrays(const std::string& path) {
  file_arrays all;
  all.read = format_of(path) == file_format::safetensors ? read_safetensors(path, &all.unread)
                                                         : read_npz(path, &all.unread);
  need_once(path, all.read);
  return all;
}
inline results as_results(std::vector<named_array> arrays, std::vector<unread_array> unread = {}) {
  std::vector<array> values;
  auto names = std::make_shared<std::vector<std::string>>();
  for (auto& each : arrays) {
    values.push_back(std::move(each.value));
    names->push_back(std::move(each.name));
  }
  results made(std::move(values), std::move(names));
  for (const auto& each : unread) made.refuse(each.name, each.message);
  return made;
}

inline void need_type(const std::string& path, const named_array& found, const tensor_type& type) {
  const tensor_type& got = found.value.type();
  const bool shaped = same_shape(got.shape, type.shape);
  if (got.element == type.element && shaped) return;
  throw error(concat("N006 file: \"", path, "\": array \"", short_name(found.name), "\" is ", got,
                     "; ", type, " is needed", shaped ? "; as_type converts it" : ""));
}
/// Returns the requested arrays of a file, in their order.
///
/// Errors    N003, N005, N006, N007 (see `load`)
inline results pick(const std::string& path, file_arrays all,
                    const std::vector<requested_array>& wanted, const load_options& options) {
  std::vector<named_array>& given = all.read;
  for (const auto& w : wanted)
    for (const auto& each : all.unread)
      if (each.name == w.name || each.name.empty()) throw error(each.message);
  // A file with one array may leave it unnamed.
  if (given.size() == 1 && wanted.size() == 1 && given[0].name.empty())
    given[0].name = wanted[0].name;
  const name_index places(given);
  std::vector<named_array> picked;
  std::vector<char> asked(given.size(), 0);
  std::size_t missing = 0;
  const requested_array* first = nullptr;
  for (const auto& w : wanted) {
    const std::ptrdiff_t at = places.find(w.name);
    if (at < 0) {
      if (missing++ == 0) first = &w;
      continue;
    }
    picked.push_back(given[static_cast<std::size_t>(at)]);
    asked[static_cast<std::size_t>(at)] = 1;
  }
  if (missing > 0)
    throw error(concat("N005 file: \"", path, "\" has no array \"", short_name(first->name),
                       "\" of ", first->type,
                       missing > 1 ? concat(" (and lacks ", missing - 1, " more)") : text(), "; ",
                       known_names(first->name, places.names())));
  for (std::size_t i = 0; i < wanted.size(); ++i) need_type(path, picked[i], wanted[i].type);
  const auto more = static_cast<std::size_t>(std::count(asked.begin(), asked.end(), 0));
  if (more > 0 && !options.others) {
    const auto& other =
        given[static_cast<std::size_t>(std::find(asked.begin(), asked.end(), 0) - asked.begin())];
    throw error(concat("N007 file: \"", path, "\" has an array \"", short_name(other.name),
                       "\" of ", other.value.type(),
                       more > 1 ? concat(" (and ", more - 1, " more)") : text(),
                       " that is not asked for; load_options{.others = true} leaves it out"));
  }
  if (!all.unread.empty() && !options.others)
    throw error(concat("N007 file: \"", path, "\" has an array \"",
                       short_name(all.unread.front().name),
                       "\" that is not asked for; load_options{.others = true} leaves it out"));
  return as_results(std::move(picked));
}

template <class... Specs>
std::vector<requested_array> leaves_of(const input_spec<Specs>&... inputs) {
  std::vector<requested_array> list;
  const auto add = [&](const auto& leaf, std::string_view path) {
    list.push_back({std::string(path), leaf.type()});
  };
  (for_each_leaf(add, text(inputs.name), inputs.spec), ...);
  return list;
}
/// Returns the positions in `all`, in its order, that `names` select. Calls `fail` for a name that
/// selects nothing.
template <class Fail>
std::vector<std::size_t> selected(const std::vector<std::string>& all,
                                  std::initializer_list<std::string_view> names, const Fail& fail) {
  using schedule_detail::selects;
  std::vector<std::size_t> list;
  for (const auto name : names)
    if (std::none_of(all.begin(), all.end(), [&](auto& each) { return selects(name, each); }))
      fail(name);
  for (std::size_t i = 0; i < all.size(); ++i)
    if (std::any_of(names.begin(), names.end(), [&](auto name) { return selects(name, all[i]); }))
      list.push_back(i);
  return list;
}
/// Returns the positions that `names` select.
///
/// Errors    N010 a name selects nothing
inline std::vector<std::size_t> selected(const std::vector<std::string>& all,
                                         std::initializer_list<std::string_view> names,
                                         const char* what) {
  return selected(all, names, [&](std::string_view name) {
    throw error(concat("N010 file: no ", what, " is named \"", short_name(name),
                       "\" or is below it; ", known_names_or_below(name, all)));
  });
}
inline std::vector<std::string> names_of_inputs(const program& p) {
  std::vector<std::string> all;
  for (int i = 0; i < p.input_count(); ++i) all.emplace_back(p.input_name(i));
  return all;
}
/// Returns the arrays of results that `names` select; without names, all of them.
///
/// Errors    N010 a name selects nothing
inline std::vector<named_array> selected(const results& r,
                                         std::initializer_list<std::string_view> names) {
  std::vector<named_array> list;
  for (int i = 0; i < r.size() && names.size() == 0; ++i)
    list.push_back({r.names()[static_cast<std::size_t>(i)], r[i]});
  for (const std::size_t i : selected(r.names(), names, "output"))
    list.push_back({r.names()[i], r[i]});
  return list;
}
inline std::vector<requested_array> inputs_of(const program& p,
                                              std::initializer_list<std::string_view> names) {
  const auto all = names_of_inputs(p);
  std::vector<requested_array> list;
  for (const std::size_t i : selected(all, names, "input"))
    list.push_back({all[i], p.input_type(static_cast<int>(i))});
  return list;
}

template <class P>
const program& source_of(const P& p) {
  if constexpr (SourceProgram<P>)
    return p;
  else
    return p.source;
}

}  // namespace run_detail

/// Loads all arrays of a file by their names: `load("w.npz")["params.w1"]`. An array with an
/// unsupported element type or rank is left out; asking for it by name is the error N003. A file
/// that has only such arrays is also the error N003.
///
/// Errors    N001 to N004 (see `read_npz`, `read_safetensors`), N008 a name occurs twice, N009 an
///           unknown file extension
inline results load(const std::string& path) {
  auto all = run_detail::read_arrays(path);
  if (all.read.empty() && !all.unread.empty()) throw error(all.unread.front().message);
  return run_detail::as_results(std::move(all.read), std::move(all.unread));
}
/// Loads the arrays of parameter trees in the order of their leaves, as arguments for `evaluate`
/// and `emulate`: `load("w.safetensors", input<mlp>("params"), input("opt_state",
/// adam_state_for(spec)))`. An extent that a spec leaves dynamic matches any extent.
///
/// Errors    those of `load`; N005 the file lacks a name, N006 an array has another type, N007 the
///           file has an array that was not requested
template <Tree... Specs>
requires(sizeof...(Specs) > 0) results
    load(const std::string& path, const load_options& options, const input_spec<Specs>&... inputs) {
  return run_detail::pick(path, run_detail::read_arrays(path), run_detail::leaves_of(inputs...),
                          options);
}
template <Tree... Specs>
requires(sizeof...(Specs) > 0) results
    load(const std::string& path, const input_spec<Specs>&... inputs) {
  return load(path, load_options{}, inputs...);
}
/// Loads the arrays of the inputs in `names`; each name is an input or a prefix of its path:
/// `load("w.safetensors", step(), "params", "opt_state")`. `p` is a program or the result of
/// partitioning one.
///
/// Errors    those of `load`; N005 to N007, N010 no input has this name
template <class P, std::convertible_to<std::string_view>... Names>
requires((run_detail::SourceProgram<P> || run_detail::HoldsSource<P>)&&sizeof...(Names) > 0) results
    load(const std::string& path, const load_options& options, const P& p, const Names&... names) {
  return run_detail::pick(path, run_detail::read_arrays(path),
                          run_detail::inputs_of(run_detail::source_of(p), {names...}), options);
}
template <class P, std::convertible_to<std::string_view>... Names>
requires((run_detail::SourceProgram<P> || run_detail::HoldsSource<P>)&&sizeof...(Names) > 0) results
    load(const std::string& path, const P& p, const Names&... names) {
  return load(path, load_options{}, p, names...);
}

/// Writes arrays by their names. A failure leaves the old file unchanged.
///
/// Errors    N003 the format cannot represent an array, N004 the file cannot be written, N008 a
///           name occurs twice, N009 the extension is unknown
inline void save(const std::string& path, const std::vector<named_array>& arrays) {
  const auto format = run_detail::format_of(path);
  run_detail::need_once(path, arrays);
  if (format == run_detail::file_format::safetensors) return write_safetensors(path, arrays);
  if (format == run_detail::file_format::npz) return write_npz(path, arrays);
  if (arrays.size() != 1)
    throw error(
        concat("N003 file: \"", path, "\": .npy holds one array; ", arrays.size(), " are given"));
  run_detail::write_file(path, run_detail::npy_bytes(arrays[0].value));
}
/// Writes the outputs of a run: all, or those in `names`. Each name is an output or a
/// prefix of its path.
///
/// Errors    those of `save`; N010 no output has this name
template <std::convertible_to<std::string_view>... Names>
void save(const std::string& path, const results& r, const Names&... names) {
  save(path, run_detail::selected(r, {names...}));
}
/// Writes the arrays of a parameter tree, which follow in the order of its leaves, as arguments for
/// `evaluate`: `save("w.npz", input<mlp>("params"), w1, w2)`.
///
/// Errors    those of `save`; R001 wrong number of arrays, N006 an array has another type
template <Tree Spec, class... Args>
requires(sizeof...(Args) > 0) void save(const std::string& path, const input_spec<Spec>& input,
                                        const Args&... arrays) {
  std::vector<array> values;
  (run_detail::flatten(values, arrays), ...);
  const auto leaves = run_detail::leaves_of(input);
  if (values.size() != leaves.size())
    throw error(concat("R001 save: ", values.size(), " arrays are given; \"", input.name, "\" has ",
                       leaves.size(), " tensors"));
  std::vector<named_array> list;
  for (std::size_t i = 0; i < leaves.size(); ++i) {
    list.push_back({leaves[i].name, values[i]});
    run_detail::need_type(path, list.back(), leaves[i].type);
  }
  save(path, list);
}

}  // namespace partita
