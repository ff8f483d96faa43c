/// Systems, read from text: one or more meshes, their devices, and their links.
#pragma once

#include <partita/cost/device.hpp>
#include <partita/ir/mesh.hpp>
#include <partita/mpmd/topology.hpp>
#include <partita/spec/lines.hpp>

namespace partita {

/// A system: one mesh, or several named meshes, with their devices. A figure that neither the text
/// nor the table of devices contains is 0.
struct system_description {
  partita::mesh mesh;
  machine on;                  ///< for several meshes: the machine above the first one
  vec<named_mesh> several;     ///< used instead of `mesh`, which then has no axes
  bool tells_devices = false;  ///< the text has the name, figures or links of a device
  failure error;

  constexpr bool has_several() const { return !several.empty(); }
  constexpr partita::topology topology() const {
    partita::topology t;
    for (const named_mesh& m : several) t.push_back(m);
    return t;
  }
  /// True if the text has all figures that the simulation of a run needs.
  constexpr bool can_simulate() const { return !error && !missing(); }
  /// Reports the first figure that a simulation needs and the text lacks.
  ///
  /// Errors    D001, D002
  constexpr failure missing() const {
    if (!has_several()) return validate(on, mesh);
    for (const named_mesh& m : several)
      if (failure f = validate(machine(m.has_device ? m.device : on.device), m.mesh)) return f;
    return {};
  }
};

namespace spec_detail {

/// The name of a figure of a device in texts.
struct figure_word {
  std::string_view name;
  double device::*member;
  measure of;
};
constexpr measure bandwidth_like(std::string_view what) {
  return {what, measure::bytes_per_second, 1e18};
}
constexpr measure speed_like(std::string_view what) {
  return {what, measure::flop_per_second, 1e24};
}
constexpr measure part_like(std::string_view what) { return {what, measure::plain, 1}; }
inline constexpr figure_word figure_words[] = {
    {"memory", &device::memory, bytes_like("a number of bytes, like 16 GiB,")},
    {"bandwidth", &device::bandwidth, bandwidth_like("a speed, like 900 GB/s,")},
    {"flops", &device::f32, speed_like("a speed, like 61.5 TFLOP/s,")},
    {"flops.f64", &device::f64, speed_like("a speed, like 9.7 TFLOP/s,")},
    {"flops.f32", &device::f32, speed_like("a speed, like 61.5 TFLOP/s,")},
    {"flops.f16", &device::f16, speed_like("a speed, like 123 TFLOP/s,")},
    {"flops.i8", &device::i8, speed_like("a speed, like 394 TFLOP/s,")},
    {"vector", &device::vector, speed_like("a speed, like 2 TFLOP/s,")},
    {"kernel", &device::kernel, seconds_like("a time, like 3 us,")},
    {"window", &device::window, seconds_like("a time, like 3 ns,")},
    {"attained.products", &device::product_part, part_like("a part of the peak, like 0.8,")},
    {"attained.memory", &device::memory_part, part_like("a part of the peak, like 0.85,")},
    {"attained.links", &device::link_part, part_like("a part of the peak, like 0.8,")}};
inline constexpr std::int64_t most_devices = std::int64_t{1} << 40, most_rows = 1 << 20;
constexpr const figure_word* find_figure(std::string_view name) {
  for (const figure_word& w : figure_words)
    if (w.name == name) return &w;
  return nullptr;
}
/// Sets a figure. `flops` without an element type applies to all types.
constexpr void set_figure(device& d, const figure_word& w, double value) {
  if (w.name == "flops") d.f64 = d.f16 = d.i8 = 0;
  d.*w.member = value;
}

/// Reads the lines of a system. Figures are kept until the device that they modify is known.
class system_lines {
 public:
  constexpr explicit system_lines(std::string_view in) : l_(in, "system") {
    parts_.push_back(part());
  }

  constexpr system_description run() {
    while (!l_.failed() && !l_.at_end()) {
      read_line();
      if (!l_.failed() && !l_.at_line_end()) l_.expected("the end of the line");
    }
    if (parts_.size() == 1)
      one_mesh();
    else
      several_meshes();
    s_.error.record(l_.error);
    if (!s_.error && s_.has_several()) s_.error.record(validate(s_.topology()));
    if (!s_.error && !s_.has_several()) s_.error.record(validate(s_.mesh));
    return s_;
  }

 private:
  struct figure {
    const figure_word* word;
    double value;
  };
  struct link_line {
    std::size_t at;
    text axis;
    link value;
  };
  /// The lines above the first line "mesh", or below one such line.
  struct part {
    vec<text> names;  ///< of the meshes that it describes
    partita::mesh mesh;
    std::size_t first_axis = 0;  ///< its position in the text
    text device;
    std::size_t device_at = 0;  ///< its position in the text
    vec<figure> figures;
    vec<link_line> links, own_links;
    vec<std::string_view> given_words;
    std::size_t device_count_at = 0;
    std::int64_t device_count = -1, node = -1, tile = -1;

    constexpr bool tells_devices() const {
      return !device.empty() || !figures.empty() || !own_links.empty() || node >= 0 || tile >= 0;
    }
  };

  lines l_;
  system_description s_;
  vec<part> parts_;

  constexpr part& now() { return parts_.back(); }
  constexpr void once(std::size_t at, std::string_view word) {
    for (std::string_view each : now().given_words)
      if (each == word) l_.fail(at, "X004", "\"", word, "\" is given twice");
    now().given_words.push_back(word);
  }

  // ---- Building the system from all lines -------------------------------------------------------

  /// Returns the device of a part. `base` is the device that the figures modify if the part names
  /// none.
  static constexpr device device_of(const part& p, const device& base) {
    device d = base;
    if (!p.device.empty()) {
      const device* known = find_device(p.device.view());
      d = (known != nullptr ? *known : device()).named(p.device.view());
    }
    for (const figure& f : p.figures) set_figure(d, *f.word, f.value);
    for (const link_line& t : p.own_links) (t.axis.view() == "near" ? d.near : d.far) = t.value;
    if (p.node >= 0) d.node = p.node;
    if (p.tile >= 0) d.tile = p.tile;
    return d;
  }
  /// Checks that the text has the figures of a device that is not in the table.
  constexpr void check_device(const part& p, const device& d) {
    if (p.device.empty() || find_device(p.device.view()) != nullptr) return;
    if (!validate(d)) return;
    const std::string_view lacks = d.memory <= 0      ? "memory"
                                   : d.bandwidth <= 0 ? "bandwidth"
                                                      : "flops";
    vec<std::string_view> names;
    for (const device* each : device_table) names.push_back(each->name());
    l_.fail(p.device_at, "X014", "device \"", p.device, "\" is not in the table, and its ", lacks,
            " is not given; ", all_words(p.device, names));
  }
  constexpr void one_mesh() {
    s_.mesh = now().mesh;
    s_.on.device = device_of(now(), device());
    check_device(now(), s_.on.device);
    s_.tells_devices = now().tells_devices() || !now().links.empty();
    for (const link_line& t : now().links) set(t);
    check_count(now(), s_.mesh.devices(), concat("the axes ", s_.mesh));
  }
  constexpr void several_meshes() {
    const part& all = parts_[0];
    if (all.mesh.rank > 0)
      l_.fail(all.first_axis, "X017", "axis \"", all.mesh.name(0),
              "\" is above the first mesh; put it below the line \"mesh NAME\" of its mesh");
    s_.on.device = device_of(all, device());
    std::int64_t devices = 0;
    bool used = false;  // true if a mesh uses the first device
    for (const part& p : parts_) {
      for (const link_line& t : p.links)
        l_.fail(t.at, "X018", "a link of axis \"", t.axis,
                "\" in a system of several meshes, whose links are near and far; give these");
      for (const text& name : p.names) {
        named_mesh m(name.view(), p.mesh, device_of(p, s_.on.device));
        m.has_device = all.tells_devices() || p.tells_devices();
        s_.tells_devices = s_.tells_devices || m.has_device;
        check_device(p.device.empty() ? all : p, m.device);
        used = used || p.device.empty();
        s_.several.push_back(m);
        devices = saturating_add(devices, p.mesh.devices());
      }
      if (!p.names.empty()) check_count(p, p.mesh.devices(), concat("the axes ", p.mesh));
    }
    if (!used) check_device(all, s_.on.device);
    check_count(all, devices, concat("all ", s_.several.size(), " meshes"));
  }
  constexpr void check_count(const part& p, std::int64_t devices, const text& what) {
    if (p.device_count >= 0 && devices != p.device_count)
      l_.fail(p.device_count_at, "X009", p.device_count, " devices are given; ", what, " make ",
              devices);
  }

  // ---- Lines ------------------------------------------------------------------------------------

  constexpr void read_line() {
    const std::size_t at = l_.position();
    const std::string_view word = l_.word();
    if (word == "mesh") return begin_meshes(at);
    if (word != "axis" && word != "link") once(at, word);
    if (word == "axis") return axis(at);
    if (word == "link") {
      const text name = l_.name();
      for (const link_line& each : now().links)
        if (each.axis == name) l_.fail(at, "X004", "the link of \"", name, "\" is given twice");
      return now().links.push_back({at, name, read_link()});
    }
    if (word == "device") {
      now().device_at = at;
      now().device = l_.name();
      if (now().device.size() > max_device_name)
        l_.fail(at, "X012", "a device's name has at most ", max_device_name, " characters, not ",
                now().device.size());
      return;
    }
    if (word == "devices") {
      now().device_count_at = at;
      now().device_count = l_.count("a number of devices", most_devices);
      return;
    }
    if (word == "node") {
      now().node = l_.count("a number of devices of a node", most_devices);
      return;
    }
    if (word == "tile") {
      now().tile = l_.count("a number of rows of a block of products", most_rows);
      return;
    }
    if (word == "near" || word == "far") return now().own_links.push_back({at, word, read_link()});
    if (const figure_word* w = find_figure(word))
      return now().figures.push_back({w, l_.quantity(w->of)});
    vec<std::string_view> known;
    for (std::string_view each :
         {"mesh", "axis", "devices", "device", "link", "near", "far", "node", "tile"})
      known.push_back(each);
    for (const figure_word& w : figure_words) known.push_back(w.name);
    l_.fail(at, "X003", "\"", word, "\" is unknown; ", all_words(word, known));
  }
  /// Reads `mesh m0, m1`; the following lines describe these meshes.
  constexpr void begin_meshes(std::size_t at) {
    part fresh;
    do {
      fresh.names.push_back(l_.name());
      const auto check = [&](const part& p, std::size_t count) {
        for (std::size_t i = 0; i < count; ++i)
          if (p.names[i] == fresh.names.back())
            l_.fail(at, "X004", "mesh \"", fresh.names.back(), "\" is given twice");
      };
      for (const part& p : parts_) check(p, p.names.size());
      check(fresh, fresh.names.size() - 1);
    } while (!l_.failed() && l_.accept(","));
    parts_.push_back(fresh);
  }
  constexpr void axis(std::size_t at) {
    const text name = l_.name();
    const std::int64_t size = l_.number("a number of devices along the axis");
    partita::mesh& m = now().mesh;
    if (!l_.failed() && m.find(name) >= 0)
      l_.fail(at, "X004", "axis \"", name, "\" is given twice");
    if (m.rank == 0) now().first_axis = at;
    m.push_back({name, size});
  }
  /// Reads `70 GB/s`, `70 GB/s 1 us` or `70 GB/s 1 us torus`.
  constexpr link read_link() {
    link v;
    v.bandwidth = l_.quantity(bandwidth_like("a speed, like 70 GB/s,"));
    const auto shaped = [&] {
      for (link_shape t : {link_shape::switched, link_shape::ring, link_shape::torus})
        if (l_.accept(name_of(t))) return v.shape = t, true;
      return false;
    };
    if (l_.at_line_end() || shaped()) return v;
    v.latency = l_.quantity(seconds_like("a time, like 1 us, or switched, ring or torus,"));
    if (!l_.at_line_end() && !shaped()) l_.expected("switched, ring or torus");
    return v;
  }
  constexpr void set(const link_line& t) {
    const int axis = s_.mesh.find(t.axis);
    if (axis < 0 || axis >= max_axes)
      l_.fail(t.at, "X005", "a link of \"", t.axis, "\", which is not an axis");
    else
      s_.on.told[axis] = t.value;
  }
};

}  // namespace spec_detail

/// Reads a system, one entry per line in any order; `#` and `//` begin comments:
///
/// ```
/// axis B 4               # name and size, most major first
/// axis M 2
/// devices 8              # optional: checked against the number that the axes make
/// device A100-80         # from the table (see cost/device.hpp), or a name of your own
/// memory 16 GiB          # this and the following figures replace those of the table
/// bandwidth 900 GB/s     # of its memory
/// flops 61.5 TFLOP/s     # of products, for all types; flops.f16 123 TFLOP/s: for one type
/// vector 2 TFLOP/s       # elementwise operations
/// kernel 3 us            # start-up time of a kernel
/// window 3 ns            # for each line of a convolution's windows, if they are copied
/// attained.products 0.8  # attained fraction of the peak; also attained.memory, attained.links
/// tile 128               # products are computed in blocks of 128 rows and columns
/// link M 70 GB/s 1 us    # axis, bytes that a device sends along it, latency; then ring or torus
/// near 300 GB/s 3 us     # along axes without a link of their own, within a node
/// far 25 GB/s 8 us       # the same, between nodes
/// node 8                 # devices per node; by default all devices are in one node
/// ```
///
/// For several meshes, a line `mesh` precedes the description of one mesh, or of several with the
/// same description. The lines above the first `mesh` describe the device of all meshes that name
/// none themselves (`devices` counts those of all meshes).
///
/// ```
/// device A100-80
/// mesh m0, m1
/// axis B 4
/// mesh m2
/// axis B 2
/// device H100
/// memory 64 GiB
/// ```
///
/// Errors    X001 syntax, X002 a unit that is unknown or of another kind, X003 an unknown word,
///           X004 an entry given twice, X005 a link of an unknown axis, X009 the number of devices
///           differs from the one that the axes make, X012 a name that is too long, X014 a device
///           that is not in the table and whose figures are missing, X017 an axis above the first
///           of several meshes, X018 a link of an axis of one of several meshes, X020 a number out
///           of range, with line and column; M001 to M005 the mesh, O101 to O104 the topology
constexpr system_description read_system(std::string_view in) {
  return spec_detail::system_lines(in).run();
}

/// Explains why a report has no times although the system describes devices; empty if it has times.
constexpr text print_missing(const system_description& s) {
  if (!s.tells_devices) return {};
  const failure f = s.missing();
  return f ? concat("time: not simulated; ", f.message, '\n') : text();
}

/// Returns a line that states whether a program with this peak fits on a device, in bytes; empty if
/// the memory of a device is unknown.
constexpr text print_memory(const system_description& s, std::int64_t peak_bytes) {
  text out;
  const device& d = s.on.device;
  if (d.memory <= 0) return out;
  const auto bytes = static_cast<std::int64_t>(d.memory);
  out << "memory: " << peak_bytes << " of " << bytes << " bytes";
  if (!d.name().empty()) out << " of a " << d.name();
  if (static_cast<double>(peak_bytes) <= d.memory) return out << ": it fits\n";
  return out << ": it does not fit, " << peak_bytes - bytes << " more bytes are needed\n";
}

}  // namespace partita
