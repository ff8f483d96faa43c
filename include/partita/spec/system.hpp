/// Systems from text: a mesh, what its devices are, and how they are linked.
#pragma once

#include <partita/cost/device.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/spec/lines.hpp>

namespace partita {

/// What a program is partitioned for. A figure that neither the text nor the table of devices gives
/// is 0.
struct system_description {
  partita::mesh mesh;
  machine on;
  failure error;

  /// Does the text say enough to simulate a run?
  constexpr bool can_simulate() const { return !validate(on, mesh); }
};

namespace spec_detail {

/// A figure of a device, as texts call it.
struct figure_word {
  std::string_view name;
  double device::*member;
  std::string_view example;
};
inline constexpr figure_word figure_words[] = {
    {"memory", &device::memory, "a number of bytes, like 16 GiB,"},
    {"bandwidth", &device::bandwidth, "a speed, like 900 GB/s,"},
    {"flops", &device::f32, "a speed, like 61.5 TFLOP/s,"},
    {"flops.f64", &device::f64, "a speed, like 9.7 TFLOP/s,"},
    {"flops.f32", &device::f32, "a speed, like 61.5 TFLOP/s,"},
    {"flops.f16", &device::f16, "a speed, like 123 TFLOP/s,"},
    {"flops.i8", &device::i8, "a speed, like 394 TFLOP/s,"},
    {"vector", &device::vector, "a speed, like 2 TFLOP/s,"},
    {"kernel", &device::kernel, "a time, like 3 us,"},
    {"attained.products", &device::product_part, "a part of the peak, like 0.8,"},
    {"attained.memory", &device::memory_part, "a part of the peak, like 0.85,"},
    {"attained.links", &device::link_part, "a part of the peak, like 0.8,"}};
constexpr const figure_word* find_figure(std::string_view name) {
  for (const figure_word& w : figure_words)
    if (w.name == name) return &w;
  return nullptr;
}
/// A figure without a type is that of all types.
constexpr void set_figure(device& d, const figure_word& w, double value) {
  if (w.name == "flops") d.f64 = d.f16 = d.i8 = 0;
  d.*w.member = value;
}

/// The lines of a system. Figures are kept until the device is known that they are about.
class system_lines {
 public:
  constexpr explicit system_lines(std::string_view in) : l_(in, "system") {}

  constexpr system_description run() {
    while (!l_.failed() && !l_.at_end()) {
      read_line();
      if (!l_.failed() && !l_.at_line_end()) l_.expected("the end of the line");
    }
    if (const device* known = find_device(name_.view())) s_.on.device = *known;
    s_.on.device = s_.on.device.named(name_.view());
    for (const figure& f : figures_) set_figure(s_.on.device, *f.word, f.value);
    for (const told& t : own_links_)
      (t.axis.view() == "near" ? s_.on.device.near : s_.on.device.far) = t.value;
    if (node_ >= 0) s_.on.device.node = node_;
    if (tile_ >= 0) s_.on.device.tile = tile_;
    for (const told& t : links_) set(t);
    if (!l_.failed() && asked_ >= 0 && s_.mesh.devices() != asked_)
      l_.fail(asked_at_, "X009", asked_, " devices are asked for; the axes ", s_.mesh, " are ",
              s_.mesh.devices());
    s_.error.record(l_.error);
    if (!s_.error) s_.error.record(validate(s_.mesh));
    return s_;
  }

 private:
  struct figure {
    const figure_word* word;
    double value;
  };
  struct told {
    std::size_t at;
    text axis;
    link value;
  };

  lines l_;
  system_description s_;
  text name_;
  vec<figure> figures_;
  vec<told> links_, own_links_;
  vec<std::string_view> said_;
  std::size_t asked_at_ = 0;
  std::int64_t asked_ = -1, node_ = -1, tile_ = -1;

  constexpr void once(std::size_t at, std::string_view word) {
    for (std::string_view each : said_)
      if (each == word) l_.fail(at, "X004", "\"", word, "\" is said twice");
    said_.push_back(word);
  }
  constexpr void read_line() {
    const std::size_t at = l_.position();
    const std::string_view word = l_.word();
    if (word != "axis" && word != "link") once(at, word);
    if (word == "axis") return axis(at);
    if (word == "link") {
      const text name = l_.name();
      return links_.push_back({at, name, read_link()});
    }
    if (word == "device") {
      name_ = l_.name();
      if (name_.size() > max_device_name)
        l_.fail(at, "X012", "a device's name has at most ", max_device_name, " characters, not ",
                name_.size());
      return;
    }
    if (word == "devices") {
      asked_at_ = at;
      asked_ = l_.number("a number of devices");
      return;
    }
    if (word == "node") {
      node_ = l_.number("a number of devices");
      if (node_ < 1) l_.fail(at, "X012", "a node of ", node_, " devices; give 1 or more");
      return;
    }
    if (word == "tile") {
      tile_ = l_.number("rows of a block of which products are made");
      if (tile_ < 1) l_.fail(at, "X012", "products of blocks of ", tile_, " rows; give 1 or more");
      return;
    }
    if (word == "near" || word == "far") return own_links_.push_back({at, word, read_link()});
    if (const figure_word* w = find_figure(word))
      return figures_.push_back({w, l_.quantity(w->example)});
    l_.fail(at, "X003", "\"", word,
            "\" is unknown; axis, devices, device, memory, bandwidth, flops, flops.f64, flops.f32, "
            "flops.f16, flops.i8, vector, kernel, tile, link, near, far, node, attained.products, "
            "attained.memory and attained.links are known");
  }
  constexpr void axis(std::size_t at) {
    const text name = l_.name();
    const std::int64_t size = l_.number("a number of devices along the axis");
    if (!l_.failed() && s_.mesh.find(name) >= 0)
      l_.fail(at, "X004", "axis \"", name, "\" is said twice");
    s_.mesh.push_back({name, size});
  }
  /// `70 GB/s`, `70 GB/s 1 us`, `70 GB/s 1 us torus`
  constexpr link read_link() {
    link v;
    v.bandwidth = l_.quantity("a speed, like 70 GB/s,");
    const auto shaped = [&] {
      for (link_shape t : {link_shape::switched, link_shape::ring, link_shape::torus})
        if (l_.accept(name_of(t))) return v.shape = t, true;
      return false;
    };
    if (l_.at_line_end() || shaped()) return v;
    v.latency = l_.quantity("a time, like 1 us, or switched, ring or torus");
    if (!l_.at_line_end() && !shaped()) l_.expected("switched, ring or torus");
    return v;
  }
  constexpr void set(const told& t) {
    const int axis = s_.mesh.find(t.axis);
    if (axis < 0 || axis >= max_axes)
      l_.fail(t.at, "X005", "a link of \"", t.axis, "\", which is no axis");
    else
      s_.on.told[axis] = t.value;
  }
};

}  // namespace spec_detail

/// A line for each thing, in any order; `#` and `//` begin comments:
///
/// ```
/// axis B 4               # name and size, most major first
/// axis M 2
/// devices 8              # as many as the axes make, for who likes to say it
/// device A100-80         # of the table (see cost/device.hpp), or a name of your own
/// memory 16 GiB          # these stand for, or change, the table's figures
/// bandwidth 900 GB/s     # of its memory
/// flops 61.5 TFLOP/s     # of products, of all types; flops.f16 123 TFLOP/s: of one
/// vector 2 TFLOP/s       # elementwise operations
/// kernel 3 us            # before a kernel does anything
/// attained.products 0.8  # the part of the peak that programs attain; attained.memory, .links
/// tile 128               # products are made of blocks of so many rows and columns
/// link M 70 GB/s 1 us    # axis, bytes that a device sends along it, latency; then ring or torus
/// near 300 GB/s 3 us     # along axes without a link of their own, within a node
/// far 25 GB/s 8 us       # the same, beyond
/// node 8                 # devices of a node; without: all are near
/// ```
///
/// Errors    X001 syntax, X002 an unknown unit, X003 an unknown word, X004 said twice, X005 a link
///           of no axis, X009 another number of devices than the axes make, X012 a name that is too
///           long, a node without devices or a block without rows, M001 to M005 the mesh;
///           with line and column
constexpr system_description read_system(std::string_view in) {
  return spec_detail::system_lines(in).run();
}

/// Does a program that needs so many bytes on a device fit? A line, or nothing if the system does
/// not say how much memory a device has.
constexpr text print_memory(const system_description& s, std::int64_t peak_bytes) {
  text out;
  const device& d = s.on.device;
  if (d.memory <= 0) return out;
  const auto bytes = static_cast<std::int64_t>(d.memory);
  out << "memory: " << peak_bytes << " of " << bytes << " bytes";
  if (!d.name().empty()) out << " of a " << d.name();
  if (static_cast<double>(peak_bytes) <= d.memory) return out << ": it fits\n";
  return out << ": it does not fit, " << peak_bytes - bytes << " bytes are missing\n";
}

}  // namespace partita
