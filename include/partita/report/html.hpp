/// A self-contained HTML page about a partitioned program.
#pragma once

#include <algorithm>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <partita/report/explain.hpp>
#include <partita/report/memory.hpp>
#include <partita/report/memory_svg.hpp>
#include <partita/report/page.hpp>
#include <partita/report/passes.hpp>
#include <partita/report/report.hpp>
#include <partita/report/search_svg.hpp>
#include <partita/report/sharding_svg.hpp>
#include <partita/report/tactics_svg.hpp>
#include <partita/report/timeline_svg.hpp>
#include <partita/run/file/whole_file.hpp>

namespace partita {

namespace report_detail {

class html_page : page_writer {
 public:
  html_page(const partitioned& p, const machine& on, const page_options& options)
      : page_writer(options), p_(p), on_(on), refused_(validate(on, p.mesh())) {
    if (!refused_) simulated_ = &on_;
    capacity_ = on.device.memory > 0 ? static_cast<std::int64_t>(on.device.memory) : 0;
    rows_ = figures_by_tactic(p, simulated_);
  }

  text print() {
    head();
    tactics();
    if (searched()) searches();
    if (simulated_ != nullptr) timeline();
    memory();
    shardings();
    collectives();
    replicated();
    programs();
    return end("Written by Partita. Figures are per device; times are simulated.");
  }

 private:
  const partitioned& p_;
  const machine& on_;
  failure refused_;
  const machine* simulated_ = nullptr;
  std::int64_t capacity_ = 0;
  vec<tactic_figures> rows_;

  // ---- Sections of the page, in order -----------------------------------------------------------

  void head() {
    text below = concat("mesh ", p_.mesh().whole());
    if (!on_.device.name().empty()) below << " of " << on_.device.name();
    below << ", schedule " << shortened(schedule(), 200);
    vec<menu_entry> menu = {{"tactics", "Tactics"}};
    if (searched()) menu.push_back({"searches", "Search"});
    if (simulated_ != nullptr) menu.push_back({"timeline", "Timeline"});
    for (const menu_entry& each : {menu_entry{"memory", "Memory"},
                                   {"shardings", "Shardings"},
                                   {"collectives", "Collectives"},
                                   {"replicated", "Replicated"},
                                   {"programs", "Programs"}})
      menu.push_back(each);
    begin(below, menu);
    tiles();
  }
  text schedule() const {
    text out;
    append_list(out, static_cast<int>(p_.tactics.size()),
                [&](int t) { out << p_.tactics[t].name; });
    return p_.tactics.empty() ? text("none") : out;
  }
  void tiles() {
    out_ << "<div class=\"tiles\">\n";
    const tactic_figures& last = rows_.back();
    if (simulated_ != nullptr) {
      tile(time_text(last.in_turn.time), "time of a step, in turn",
           concat(time_text(last.overlapped.time), " with collectives overlapped"));
      tile(percent_text(last.in_turn.mfu()), "model FLOPs utilization",
           concat(flop_text(p_.cost.flops), " of a device"));
    } else {
      tile(flop_text(p_.cost.flops), "work", "of a device");
    }
    const bool fits = p_.cost.peak_bytes <= capacity_;
    tile(bytes_text(p_.cost.peak_bytes), "peak of memory",
         capacity_ == 0 ? concat("arguments ", bytes_text(p_.cost.argument_bytes))
         : fits         ? concat("fits into ", bytes_text(capacity_))
                        : concat("does not fit into ", bytes_text(capacity_)),
         capacity_ == 0 ? ""
         : fits         ? "good"
                        : "bad");
    tile(bytes_text(p_.cost.collective_bytes), "sent by a device", messages());
    tile(grouped(p_.collectives.total()), "collectives",
         concat(grouped(static_cast<std::int64_t>(p_.notes.size())), " as written, ",
                grouped(launched(p_.notes)), " launched"));
    out_ << "</div>\n";
    notes(p_.removed, p_.cost.unknown);
    if (simulated_ == nullptr && on_.device.memory > 0)
      note(concat("No times: ", refused_.message.view().substr(5)));
  }
  text messages() const {
    text out;
    schedule_detail::print_messages(out, p_.cost.messages, p_.mesh());
    return out.empty() ? text("no messages") : text(out.view().substr(2));
  }

  void tactics() {
    section("tactics", "Tactics side by side");
    picture(tactics_picture(rows_, capacity_).draw(), "Tactics side by side");
    vec<html_table::column> columns = {{"tactic"}};
    if (simulated_ != nullptr)
      for (const std::string_view each : {"in turn", "overlapped", "kernels", "collectives", "MFU"})
        columns.push_back({each, true});
    for (const std::string_view each : {"peak", "sent", "all_gather", "all_reduce",
                                        "reduce_scatter", "all_to_all", "permute", "conflicts"})
      columns.push_back({each, true});
    html_table t("table-tactics", columns);
    for (const auto& r : rows_)
      if (r.left_out == 0) row(t, r);
    t.print(out_, false);
    for (const auto& r : rows_)
      if (r.left_out > 0) note(concat(r.left_out, " tactics before the last one are omitted."));
    folded("Effects of each tactic", report(p_));
    if (p_.passes.rewrite_more()) folded("Effects of passes", report_passes(p_));
  }
  void row(html_table& t, const tactic_figures& r) {
    t.words(r.name, 40);
    if (r.simulated) {
      t.seconds(r.in_turn.time).seconds(r.overlapped.time);
      t.seconds(r.in_turn.compute).seconds(r.in_turn.communication);
      t.number(static_cast<std::int64_t>(r.in_turn.mfu() * 1e6), percent_text(r.in_turn.mfu()));
    }
    t.bytes(r.cost.peak_bytes).bytes(r.cost.collective_bytes);
    for (const auto n :
         {r.collectives.all_gather, r.collectives.all_reduce, r.collectives.reduce_scatter,
          r.collectives.all_to_all, r.collectives.permute})
      t.number(n);
    t.number(r.conflicts);
  }

  bool searched() const {
    return std::any_of(p_.tactics.begin(), p_.tactics.end(),
                       [](const tactic_report& t) { return t.search.evaluations > 0; });
  }
  void searches() {
    section("searches", "Course of the searches");
    for (const tactic_report& t : p_.tactics) {
      if (t.search.evaluations == 0) continue;
      note(concat("Tactic ", shortened(t.name.view(), 200), ':'));
      picture(search_picture(t.search).draw(), concat("Search of tactic ", t.name));
    }
  }
  void timeline() {
    section("timeline", "Simulated timeline");
    picture(timeline_picture(p_.device, on_, {.overlap = !p_.overlap.any()}).draw(),
            "Timeline of one step");
    note(
        "Collectives run beside kernels that do not wait for them. Ops too short to see are drawn "
        "together with their neighbours.");
  }
  void memory() {
    section("memory", "Memory over the program");
    picture(memory_picture(p_.device, capacity_).draw(), "Memory over the program");
    folded("The peak, in figures", print_peak(p_, 40));
  }

  struct value {
    sharded_value v;
    value_id id = -1;  ///< in the core program
    bool output = false;
    std::int64_t whole = 0, local = 0;
  };
  vec<value> values() const {
    vec<value> list;
    const auto add = [&](const sharded_value& v, value_id id, bool output) {
      list.push_back({v, id, output, tensor_type{v.element, v.global_shape}.bytes(),
                      tensor_type{v.element, v.local_shape}.bytes()});
    };
    for (int i = 0; i < p_.source.input_count(); ++i) add(p_.input(i), p_.core.p.inputs[i], false);
    for (int i = 0; i < p_.source.output_count(); ++i)
      add(p_.output(i), p_.core.p.outputs[i].value, true);
    return list;
  }
  /// The names of the tactics that slice a value, directly or by propagation.
  text tactics_of(value_id id) const {
    const op_id o = p_.core.p.producer(id);
    vec<int> seen;
    text out;
    for (const loop& l : p_.core.nest_of(o)) {
      if (l.factor == any_factor || p_.core.map.at(o, l.factor).result_dim == no_dim) continue;
      if (std::find(seen.begin(), seen.end(), l.tactic) != seen.end()) continue;
      out << (seen.empty() ? "" : ", ") << p_.tactics[static_cast<int>(l.tactic)].name;
      seen.push_back(l.tactic);
    }
    return out;
  }
  text sharding(const sharded_value& v) const {
    text out;
    print_layout(out, v.sharding, v.global_shape.rank, p_.mesh());
    return out;
  }
  void shardings() {
    section("shardings", "Shardings of inputs and outputs");
    const vec<value> all = values();
    vec<std::int64_t> whole, local;
    for (const auto& v : all) {
      whole.push_back(v.whole);
      local.push_back(v.local);
    }
    draw_shardings(all, largest_first(whole, static_cast<int>(all.size())));
    html_table t("table-values", {{"value"},
                                  {"kind"},
                                  {"type"},
                                  {"sharding"},
                                  {"tactics"},
                                  {"on each device"},
                                  {"bytes on each device", true}});
    for (const int i : largest_first(local, options_.rows)) {
      const sharded_value& v = all[i].v;
      t.code(name_text(v.name)).words(all[i].output ? "output" : "input");
      t.code(concat(tensor_type{v.element, v.global_shape})).code(sharding(v));
      t.words(tactics_of(all[i].id), 40);
      t.code(concat(tensor_type{v.element, v.local_shape})).bytes(all[i].local);
    }
    t.print(out_, true);
    left_out(t.rows(), all.size(), "values");
  }
  /// Draws one picture for each sharding: that of the largest value that has it.
  void draw_shardings(const vec<value>& all, const vec<int>& order) {
    vec<text> drawn;
    int more = 0;
    out_ << "<div class=\"pictures\">\n";
    for (const int i : order) {
      const sharded_value& v = all[i].v;
      const text kind = concat(sharding(v), ' ', tensor_type{v.element, v.global_shape});
      if (std::find(drawn.begin(), drawn.end(), kind) != drawn.end()) continue;
      if (static_cast<int>(drawn.size()) == options_.pictures) {
        more = 1;
        break;
      }
      drawn.push_back(kind);
      picture(sharding_picture(v, p_.mesh()).draw(), block_map(v, p_.mesh()).title());
    }
    out_ << "</div>\n";
    note(concat("One picture for each type and sharding, of the largest value that has it",
                more > 0 ? concat("; only the ", options_.pictures, " largest ones are drawn.")
                         : text(".")));
  }

  void collectives() {
    section("collectives", "Collectives and their reasons");
    if (p_.notes.empty()) return note("No collectives.");
    sums();
    schedule_detail::explainer words(p_);
    vec<std::int64_t> sizes;
    for (const auto& n : p_.notes)
      sizes.push_back(saturating_multiply(n.bytes_sent(p_.mesh()), n.times));
    html_table t("table-collectives", {{"collective"},
                                       {"value"},
                                       {"sent per run", true},
                                       {"runs", true},
                                       {"sent in total", true},
                                       {"tactic"},
                                       {"reason"}});
    for (const int i : largest_first(sizes, options_.rows)) {
      const collective_note& n = p_.notes[i];
      text what, value, why;
      words.what(what, n);
      words.value(value, n.value);
      words.why(why, n);
      t.code(what).code(value).bytes(n.bytes_sent(p_.mesh())).number(n.times).bytes(sizes[i]);
      t.words(p_.tactics.empty() ? std::string_view() : p_.tactics[n.tactic].name.view(), 40);
      t.words(why, 300);
    }
    t.print(out_, true);
    left_out(t.rows(), p_.notes.size(), "collectives");
  }
  void sums() {
    const partita::collectives& runs = p_.collectives;
    const partita::collectives& written = p_.collectives_as_written;
    const schedule_detail::bytes_by_kind sent = schedule_detail::sent_by_kind(p_);
    const std::int64_t run[] = {runs.all_gather, runs.all_reduce, runs.reduce_scatter,
                                runs.all_to_all, runs.permute},
                       stand[] = {written.all_gather, written.all_reduce, written.reduce_scatter,
                                  written.all_to_all, written.permute};
    html_table t("table-kinds", {{"kind"}, {"run", true}, {"written", true}, {"sent", true}});
    for (int k = 0; k < 5; ++k)
      if (stand[k] > 0)
        t.code(name_of(static_cast<collective::kind_type>(k)))
            .number(run[k])
            .number(stand[k])
            .bytes(sent.of[k]);
    t.print(out_, false);
    note(messages());
  }
  void replicated() {
    section("replicated", "Replicated by default");
    out_ << "<pre>" << markup(print_replicated(p_, 40), true) << "</pre>\n";
  }
  void programs() {
    section("programs", "Programs");
    device_program d = p_.device;
    d.local.labels = p_.source.labels;
    folded(concat("The program of each device, ", grouped(d.local.op_count()), " ops"),
           partita::print(d));
    folded(concat("The source program, ", grouped(p_.source.op_count()), " ops"),
           partita::print(p_.source));
  }
};

}  // namespace report_detail

/// Returns an HTML page with figures, tactics side by side, the course of each search for tactics,
/// the timeline and memory over the program, layouts of inputs and outputs, each collective with
/// its reason, values replicated by default, and the texts of the programs. The page needs no other
/// file and no network, and suits light and dark mode. Names may contain any characters.
///
/// Without a machine, or if its figures are invalid for the mesh, the page has no times. The page
/// is limited to a few megabytes for programs of any size: tables, texts and pictures are cut, and
/// the page says where.
///
/// Errors    those of the program, as the text "error: " and the message
/// Cost      see print_simulation
template <std::same_as<partitioned> Partitioned>
text html_page(const Partitioned& p, const machine& on = {}, const page_options& options = {}) {
  if (p.error) return concat("error: ", p.error.message, '\n');
  return report_detail::html_page(p, on, options).print();
}

/// Writes html_page to a file.
///
/// Errors    N004 the file cannot be written; those of the program
template <std::same_as<partitioned> Partitioned>
void write_html(const Partitioned& p, const machine& on, const std::string& path,
                const page_options& options = {}) {
  if (p.error) throw error(p.error.message);
  run_detail::write_file(path, html_page(p, on, options));
}
/// The same without a machine, so without times.
template <std::same_as<partitioned> Partitioned>
void write_html(const Partitioned& p, const std::string& path, const page_options& options = {}) {
  write_html(p, machine(), path, options);
}

}  // namespace partita
