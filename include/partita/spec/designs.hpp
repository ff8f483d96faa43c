/// Designs of systems (variants of a base system), read from text.
#pragma once

#include <partita/cost/design.hpp>
#include <partita/mpmd/cluster_design.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/system.hpp>

namespace partita {

/// Designs that were read from text, for a system with one mesh.
struct design_list {
  vec<design> designs;
  failure error;
};

/// Designs that were read from text, for a system with several meshes.
struct cluster_design_list {
  vec<cluster_design> designs;
  failure error;
};

namespace spec_detail {

/// Reads designs, one per line: `name: change, change`.
class design_lines {
 public:
  constexpr design_lines(std::string_view in, const system_description& base)
      : l_(in, "designs"), base_(base) {}

  constexpr design_list run() {
    design_list list;
    if (base_.has_several())
      list.error.record("X021", "designs: the system has ", base_.several.size(),
                        " meshes; designs change a system of one, read_cluster_designs changes "
                        "several");
    if (list.error) return list;
    while (!l_.failed() && !l_.at_end()) {
      const std::size_t at = begin();
      for_each_change([&] { change(); });
      check(at, validate(design_.mesh));
      if (!l_.failed()) list.designs.push_back(design_);
    }
    list.error = finished(list.designs.empty());
    return list;
  }
  /// Reads designs of a system with several meshes.
  constexpr cluster_design_list run_several() {
    cluster_design_list list;
    while (!l_.failed() && !l_.at_end()) {
      const std::size_t at = begin();
      parts_ = base_.several;
      cluster_design d{design_.name, {}, base_.on.device, {}};
      for_each_change([&] { change_several(d.change); });
      for (const named_mesh& m : parts_) d.cluster.push_back(m);
      check(at, validate(d.cluster));
      if (!l_.failed()) list.designs.push_back(d);
    }
    list.error = finished(list.designs.empty());
    return list;
  }

 private:
  lines l_;
  const system_description& base_;
  design design_;            ///< the design, or that of the mesh being changed
  vec<named_mesh> parts_;    ///< the meshes of the design, if there are several
  text lacking_;             ///< the last axis that a mesh did not have
  bool lacks_axis_ = false;  ///< true if the mesh does not have the changed axis

  /// Reads the name of a design; returns its position.
  constexpr std::size_t begin() {
    const std::size_t at = l_.position();
    design_ = {l_.starts("\"") ? l_.name() : text(l_.before(':')), base_.mesh, base_.on};
    l_.expect(":");
    return at;
  }
  template <class F>
  constexpr void for_each_change(const F& read) {
    while (!l_.failed() && !l_.at_line_end()) {
      read();
      if (!l_.at_line_end()) l_.expect(",");
    }
  }
  constexpr void check(std::size_t at, const failure& f) {
    if (f && !l_.failed()) l_.fail(at, f.message.view().substr(0, 4), f.message.view().substr(5));
  }
  constexpr failure finished(bool empty) const {
    failure f = l_.error;
    if (!f && empty)
      f.record("X013", "designs: the text is empty; a line is \"name: change, change\"");
    return f;
  }
  /// Reads a mesh name before a dot (`m0.memory`); returns -1 for all meshes.
  constexpr int one_mesh() {
    for (int m = 0; m < static_cast<int>(parts_.size()); ++m)
      if (l_.accept(concat(name_text(parts_[m].name()), '.'))) return m;
    return -1;
  }
  constexpr void change_several(pipeline_change& change) {
    if (l_.accept("microbatches")) {
      change.microbatches = new_count();
    } else if (l_.accept("order")) {
      l_.expect("=");
      change.reorders = true;
      change.order = read_order(l_);
    } else {
      change_meshes(one_mesh());
    }
  }
  /// Applies one change to several meshes; each mesh parses it again.
  constexpr void change_meshes(int only) {
    const lines from = l_;
    const std::size_t at = here();
    int changed = 0;
    for (int m = 0; m < static_cast<int>(parts_.size()) && !l_.failed(); ++m) {
      if (only >= 0 && m != only) continue;
      l_ = from;
      design_.mesh = parts_[m].mesh;
      design_.on = machine(parts_[m].has_device ? parts_[m].device : base_.on.device);
      lacks_axis_ = false;
      change();
      changed += !lacks_axis_;
      parts_[m].mesh = design_.mesh;
      parts_[m].device = design_.on.device;
      parts_[m].has_device = parts_[m].has_device || !(design_.on.device == base_.on.device);
    }
    if (changed == 0 && !l_.failed())
      l_.fail(at, "S001", "axis \"", lacking_, "\" is not in ", base_.topology());
  }
  constexpr std::int64_t new_count() {
    l_.expect("=");
    return l_.count("a number of microbatches", 1 << 20);
  }

  /// Returns the position after blanks.
  constexpr std::size_t here() {
    l_.at_line_end();
    return l_.position();
  }
  /// Reads `* 2`, `/ 2`, or `= 32 GiB` and returns the changed value.
  constexpr double changed(double now, const measure& m) {
    if (l_.accept("=")) return l_.quantity(m);
    return factor()(now);
  }
  struct scaling {
    double by = 1;
    bool divides = false;
    constexpr double operator()(double v) const { return divides ? v / by : v * by; }
  };
  constexpr scaling factor() {
    const bool divides = l_.accept("/");
    if (!divides && !l_.accept("*")) l_.expected("*, / or =");
    const std::size_t at = here();
    const double by = l_.quantity({"a number, like 2,", measure::plain, 1e12, true});
    if (!l_.failed() && by == 0) l_.fail(at, "X013", "a factor of 0");
    return l_.failed() ? scaling() : scaling{by, divides};
  }
  /// Reads a change to a number of devices; returns 0 if the result is not a positive integer.
  constexpr std::int64_t changed_count(std::int64_t now) {
    const double made =
        changed(static_cast<double>(now), {"a number of devices", measure::plain, 1e15});
    if (!(made >= 1 && made <= static_cast<double>(most_devices))) return 0;
    const auto whole = static_cast<std::int64_t>(made);
    return static_cast<double>(whole) == made ? whole : 0;
  }
  constexpr void change() {
    const std::size_t at = here();
    const std::string_view word = l_.word("*/=:");
    device& d = design_.on.device;
    if (word == "axis") return axis();
    if (word == "device") return replace_device();
    if (word == "links")
      return for_each_link([](link& v, scaling by) { v.bandwidth = by(v.bandwidth); });
    if (word == "latency")
      return for_each_link([](link& v, scaling by) { v.latency = by(v.latency); });
    if (word == "node") {
      const std::int64_t was = d.node;
      d.node = changed_count(was);
      if (!l_.failed() && d.node == 0)
        l_.fail(at, "X020", "a node of ", was,
                " devices cannot be changed to that; give an integer, 1 or more");
      return;
    }
    const figure_word* w = find_figure(word);
    if (w == nullptr) {
      vec<std::string_view> known;
      for (std::string_view each : {"axis", "device", "links", "latency", "node"})
        known.push_back(each);
      for (const figure_word& each : figure_words) known.push_back(each.name);
      if (!parts_.empty())
        for (std::string_view each : {"microbatches", "order"}) known.push_back(each);
      return l_.fail(at, "X003", "\"", word, "\" is unknown; ", all_words(word, known),
                     parts_.empty() ? "" : "; write a figure of one mesh as MESH.FIGURE");
    }
    if (l_.starts("=")) return set_figure(d, *w, changed(0, w->of));
    const scaling by = factor();
    d.*w->member = by(d.*w->member);
    if (w->name == "flops")
      for (double device::*other : {&device::f64, &device::f16, &device::i8})
        d.*other = by(d.*other);
    if (d.*w->member != 0) l_.check_range(at, word, w->of, d.*w->member);
  }
  constexpr void axis() {
    const std::size_t at = here();
    const text name = l_.name("*/=");
    const int a = design_.mesh.find(name);
    if (a < 0 && !parts_.empty()) return skip_axis(name);
    if (a < 0) return l_.fail(at, "S001", "axis \"", name, "\" is not in ", design_.mesh);
    std::int64_t& size = design_.mesh.axes[a].size;
    const std::int64_t whole = changed_count(size);
    if (!l_.failed() && whole == 0)
      return l_.fail(at, "M001", "axis \"", name, "\" of size ", size,
                     " cannot be changed to that; sizes are integers, 1 or more");
    size = whole;
  }
  constexpr void skip_axis(const text& name) {
    lacking_ = name;
    lacks_axis_ = true;
    changed_count(1);
  }
  constexpr void replace_device() {
    const std::size_t at = here();
    const text name = l_.name();
    const device* known = find_device(name);
    if (known == nullptr) {
      vec<std::string_view> names;
      for (const device* d : device_table) names.push_back(d->name());
      return l_.fail(at, "X014", "device \"", name, "\" is not in the table; ",
                     all_words(name, names));
    }
    design_.on.device = *known;
  }
  template <class F>
  constexpr void for_each_link(const F& f) {
    if (l_.starts("=")) return l_.expected("* or /");
    const scaling by = factor();
    f(design_.on.device.near, by);
    f(design_.on.device.far, by);
    for (link& each : design_.on.told) f(each, by);
  }
};

}  // namespace spec_detail

/// Reads designs, one per line: the name and the changes to the base system; `#` and `//` begin
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
/// Errors    X001 to X003 as for a system, X013 no design or a factor of 0, X014 an unknown device,
///           S001 an unknown axis, M001 to M005 the mesh; with line and column; X021 a system of
///           several meshes
constexpr design_list read_designs(std::string_view in, const system_description& base) {
  return spec_detail::design_lines(in, base).run();
}

/// Reads designs of a system with several meshes. A change applies to all meshes, or to the one
/// whose name precedes it; a change to an axis applies to the meshes that have the axis.
/// `microbatches` and `order` are those of the schedule's pipeline, see changed():
///
/// ```
/// as it is:
/// more microbatches: microbatches = 16, order = zb_h1
/// wider: axis B * 2, m1.memory * 2
/// ```
///
/// Errors    as above; X019 an unknown order, X020 a number of microbatches out of range, O101 to
///           O104 the topology
constexpr cluster_design_list read_cluster_designs(std::string_view in,
                                                   const system_description& base) {
  return spec_detail::design_lines(in, base).run_several();
}

/// Returns the schedule with the design's changes to its pipeline.
constexpr text_schedule changed(text_schedule s, const pipeline_change& change) {
  for (text_tactic& t : s.tactics)
    if (t.is_pipeline()) t.pipelines[0] = change(t.pipelines[0]);
  return s;
}

}  // namespace partita
