/// Designs of systems from text: what if?
#pragma once

#include <partita/cost/design.hpp>
#include <partita/spec/system.hpp>

namespace partita {

struct design_list {
  vec<design> designs;
  failure error;
};

namespace spec_detail {

/// `name: change, change`, a line for each design.
class design_lines {
 public:
  constexpr design_lines(std::string_view in, const system_description& base)
      : l_(in, "designs"), base_(base) {}

  constexpr design_list run() {
    design_list list;
    if (base_.has_several())
      list.error.record("X021", "designs: the system has ", base_.several.size(),
                        " meshes; designs change a system of one");
    if (list.error) return list;
    while (!l_.failed() && !l_.at_end()) {
      const std::size_t at = l_.position();
      design_ = {l_.starts("\"") ? l_.name() : text(l_.before(':')), base_.mesh, base_.on};
      l_.expect(":");
      while (!l_.failed() && !l_.at_line_end()) {
        change();
        if (!l_.at_line_end()) l_.expect(",");
      }
      if (const failure f = validate(design_.mesh); f && !l_.failed())
        l_.fail(at, f.message.view().substr(0, 4), f.message.view().substr(5));
      if (!l_.failed()) list.designs.push_back(design_);
    }
    list.error.record(l_.error);
    if (!list.error && list.designs.empty())
      list.error.record("X013", "designs: there is none; a line is \"name: change, change\"");
    return list;
  }

 private:
  lines l_;
  const system_description& base_;
  design design_;

  /// Behind blanks.
  constexpr std::size_t here() {
    l_.at_line_end();
    return l_.position();
  }
  /// `* 2`, `/ 2`, or `= 32 GiB`
  constexpr double changed(double now, std::string_view example) {
    if (l_.accept("=")) return l_.quantity(example);
    const bool divides = l_.accept("/");
    if (!divides && !l_.accept("*")) l_.expected("*, / or =");
    const std::size_t at = here();
    const double by = l_.quantity("a number, like 2,");
    if (!l_.failed() && !(by > 0)) l_.fail(at, "X013", "a factor of 0");
    return divides ? now / by : now * by;
  }
  constexpr void change() {
    const std::size_t at = here();
    const std::string_view word = l_.word("*/=:");
    device& d = design_.on.device;
    if (word == "axis") return axis();
    if (word == "device") return replace_device();
    if (word == "links") return for_each_link([&](link& v, double by) { v.bandwidth *= by; });
    if (word == "latency") return for_each_link([&](link& v, double by) { v.latency *= by; });
    if (word == "node") {
      d.node =
          static_cast<std::int64_t>(changed(static_cast<double>(d.node), "a number of devices"));
      return;
    }
    const figure_word* w = find_figure(word);
    if (w == nullptr)
      return l_.fail(at, "X003", "\"", word,
                     "\" is unknown; axis, device, links, latency, node, memory, bandwidth, flops, "
                     "flops.f64, flops.f32, flops.f16, flops.i8, vector, kernel, "
                     "attained.products, attained.memory and attained.links are known");
    if (l_.starts("=")) return set_figure(d, *w, changed(0, w->example));
    const double by = changed(1, w->example);
    d.*w->member *= by;
    if (w->name == "flops")
      for (double device::*other : {&device::f64, &device::f16, &device::i8}) d.*other *= by;
  }
  constexpr void axis() {
    const std::size_t at = here();
    const text name = l_.name("*/=");
    const int a = design_.mesh.find(name);
    if (a < 0) return l_.fail(at, "S001", "there is no axis \"", name, "\" in ", design_.mesh);
    std::int64_t& size = design_.mesh.axes[a].size;
    const double made = changed(static_cast<double>(size), "a number of devices");
    const auto whole = static_cast<std::int64_t>(made < 1e15 ? made : 0);
    if (!l_.failed() && (whole < 1 || static_cast<double>(whole) != made))
      return l_.fail(at, "M001", "axis \"", name, "\" of size ", size,
                     " cannot be changed so; sizes are whole numbers, 1 or more");
    size = whole;
  }
  constexpr void replace_device() {
    const std::size_t at = here();
    const text name = l_.name();
    const device* known = find_device(name);
    if (known == nullptr) {
      vec<std::string_view> names;
      for (const device* d : device_table) names.push_back(d->name());
      return l_.fail(at, "X014", "there is no device \"", name, "\" in the table; ",
                     known_names(name, names));
    }
    design_.on.device = *known;
  }
  template <class F>
  constexpr void for_each_link(const F& f) {
    if (l_.starts("=")) return l_.expected("* or /");
    const double by = changed(1, "a factor");
    f(design_.on.device.near, by);
    f(design_.on.device.far, by);
    for (link& each : design_.on.told) f(each, by);
  }
};

}  // namespace spec_detail

/// What if? A line for each design, its name and what it changes of a system; `#` and `//` begin
/// comments:
///
/// ```
/// as it is:
/// twice the memory: memory * 2
/// twice the cores, half the memory: axis B * 2, memory / 2
/// a mesh twice as fast: links * 2
/// twice the FLOP/s: flops * 2
/// newer: device H100, node = 4
/// ```
///
/// Errors    X001 to X003 as of a system, X013 no design or a factor of 0, X014 an unknown device,
///           S001 an unknown axis, M001 to M005 the mesh; with line and column; X021 a system of
///           several meshes
constexpr design_list read_designs(std::string_view in, const system_description& base) {
  return spec_detail::design_lines(in, base).run();
}

}  // namespace partita
