/// A self-contained HTML page about a pipeline.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include <partita/mpmd/pipeline_figures.hpp>
#include <partita/mpmd/pipeline_time.hpp>
#include <partita/mpmd/print_pipeline.hpp>
#include <partita/report/page.hpp>
#include <partita/report/pipeline_svg.hpp>
#include <partita/run/file/whole_file.hpp>

namespace partita {

namespace report_detail {

class pipeline_page : page_writer {
 public:
  pipeline_page(const pipelined& p, const pipeline_time& t, const page_options& options)
      : page_writer(options), p_(p), t_(t), values_(p.source) {
    calls_.resize(p.units.size(), 0);
    for (const int u : p.unit_of) ++calls_[u];
  }

  text print() {
    begin(concat("meshes ", p_.topology), {{"timeline", "Timeline"},
                                           {"orders", "Orders"},
                                           {"units", "Units"},
                                           {"transfers", "Transfers"},
                                           {"programs", "Programs"}});
    tiles();
    timeline();
    orders();
    units();
    transfers();
    section("programs", "Programs");
    folded("Units, transfers, and the calls of each mesh", partita::print(p_));
    return end("Written by Partita. Times are simulated.");
  }

 private:
  const pipelined& p_;
  const pipeline_time& t_;
  value_names values_;
  vec<int> calls_;  ///< by unit

  std::string_view mesh(int m) const { return p_.topology.name(m); }
  void tiles() {
    out_ << "<div class=\"tiles\">\n";
    tile(time_text(t_.times.total), "time of a step, in turn",
         concat(time_text(t_.times.ideal()), " without a bubble"));
    tile(percent_text(t_.times.bubble_of_total()), "bubble",
         concat(percent_text(t_.times.bubble_of_ideal()), " of the ideal time"));
    tile(percent_text(t_.mfu), "model FLOPs utilization",
         concat(percent_text(t_.hfu), " with recomputation"));
    tile(grouped(p_.microbatches), "microbatches",
         concat(p_.stages, p_.stages == 1 ? " stage on " : " stages on ", p_.topology.count(),
                p_.topology.count() == 1 ? " mesh" : " meshes"));
    std::int64_t bytes = 0;
    for (const message& m : t_.lists.messages) bytes += bytes_of(m.transfer);
    tile(bytes_text(bytes), "sent between meshes",
         concat(grouped(static_cast<std::int64_t>(t_.lists.messages.size())), " messages"));
    out_ << "</div>\n";
    notes(p_.removed, pipeline_figures(p_).unknown);
  }
  std::int64_t bytes_of(int transfer) const {
    return p_.source.type(p_.transfers[transfer].value).bytes();
  }
  void timeline() {
    section("timeline", "Timeline");
    const vec<std::string_view> names = p_.topology.names();
    picture(pipeline_drawer(p_.calls, t_.lists, t_.times, {.names = names}).draw(),
            "Timeline of a pipeline");
  }
  void orders() {
    section("orders", "Calls of each mesh");
    const vec<int> most = most_in_flight(p_.calls, p_.order, p_.stages);
    vec<vec<int>> stages(static_cast<std::size_t>(p_.topology.count()), {});
    vec<int> mesh_of(static_cast<std::size_t>(p_.stages), -1);
    for (const auto& u : p_.units)
      if (u.inside && u.piece.stage >= 0) mesh_of[u.piece.stage] = u.piece.mesh;
    for (int s = 0; s < p_.stages; ++s)
      if (mesh_of[s] >= 0) stages[mesh_of[s]].push_back(s);
    html_table t("table-orders", {{"mesh"},
                                  {"stages"},
                                  {"most microbatches in flight"},
                                  {"busy", true},
                                  {"bubble", true},
                                  {"calls"}});
    for (int m = 0; m < p_.topology.count(); ++m) {
      text of_mesh, in_flight;
      for (const int s : stages[m]) {
        of_mesh << (of_mesh.empty() ? "" : ", ") << s;
        in_flight << (in_flight.empty() ? "" : ", ") << most[s];
      }
      t.code(name_text(mesh(m))).words(of_mesh).words(in_flight);
      t.seconds(t_.times.busy[m]).seconds(t_.times.total - t_.times.busy[m]);
      t.code(p_.order_of(mesh(m)), 120);
    }
    t.print(out_, false);
  }
  void units() {
    section("units", "Units");
    html_table t("table-units", {{"unit"},
                                 {"mesh"},
                                 {"parts"},
                                 {"calls", true},
                                 {"each", true},
                                 {"in all", true},
                                 {"ops", true}});
    vec<std::int64_t> sizes;
    for (std::size_t u = 0; u < p_.units.size(); ++u)
      sizes.push_back(static_cast<std::int64_t>(t_.seconds[u] * calls_[u] * 1e12));
    for (const int u : largest_first(sizes, options_.rows)) {
      const pipeline_unit& unit = p_.units[u];
      t.words(what(unit)).code(name_text(mesh(unit.piece.mesh))).code(origins(unit.piece));
      t.number(calls_[u]).seconds(t_.seconds[u]).seconds(t_.seconds[u] * calls_[u]);
      t.number(unit.device.local.op_count());
    }
    t.print(out_, true);
    left_out(t.rows(), p_.units.size(), "units");
  }
  static text what(const pipeline_unit& u) {
    const fragment_call c{u.piece.stage, u.piece.mesh, u.transposed, u.inside ? 0 : -1, u.part};
    text out = call_looks[kind_of(c)].name;
    return u.piece.stage < 0 ? out : out << ", stage " << u.piece.stage;
  }
  static text origins(const fragment& f) {
    text out;
    for (const auto& each : f.origins) {
      out << (out.empty() ? "" : ", ");
      mpmd_detail::print_origin(out, each);
    }
    return out;
  }
  void transfers() {
    section("transfers", "Transfers");
    if (p_.transfers.empty()) return note("No transfers.");
    vec<int> times(p_.transfers.size(), 0);
    for (const message& m : t_.lists.messages) ++times[m.transfer];
    html_table t("table-transfers", {{"value"},
                                     {"type"},
                                     {"from"},
                                     {"to"},
                                     {"bytes each", true},
                                     {"times", true},
                                     {"in all", true}});
    vec<std::int64_t> sizes;
    for (std::size_t i = 0; i < p_.transfers.size(); ++i)
      sizes.push_back(bytes_of(static_cast<int>(i)) * times[i]);
    for (const int i : largest_first(sizes, options_.rows)) {
      const transfer& each = p_.transfers[i];
      t.code(concat('%', values_[each.value])).code(concat(p_.source.type(each.value)));
      t.code(name_text(mesh(each.from))).code(name_text(mesh(each.to)));
      t.bytes(bytes_of(i)).number(times[i]).bytes(sizes[i]);
    }
    t.print(out_, true);
    left_out(t.rows(), p_.transfers.size(), "transfers");
    note("An input that several meshes use is sent before the step begins, so it counts 0 times.");
  }
};

}  // namespace report_detail

/// Returns an HTML page for a simulated pipeline: its timeline, the calls of each mesh, its units
/// and their inputs, its transfers, and the texts of its programs. The page needs no other file.
/// Long tables, texts and pictures are cut, and the page says where.
///
/// Errors    those of the simulation, as the text "error: " and the message
/// Cost      linear in calls, units and transfers, except for sorting
inline text html_page(const pipelined& p, const pipeline_time& t,
                      const page_options& options = {.title = "A pipeline"}) {
  if (t.error) return concat("error: ", t.error.message, '\n');
  return report_detail::pipeline_page(p, t, options).print();
}
/// Writes html_page to a file.
///
/// Errors    N004 the file cannot be written; those of the pipeline
inline void write_html(const pipelined& p, const pipeline_time& t, const std::string& path,
                       const page_options& options = {.title = "A pipeline"}) {
  t.error.raise();
  run_detail::write_file(path, html_page(p, t, options));
}

}  // namespace partita
