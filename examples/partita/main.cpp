/// Partitions a StableHLO module, reports the cost, and writes or runs the result.
///
///   partita mlp.mlir mlp.spec mlp.conf --explain --check mlp.check
///   partita layers.mlir layers.spec layers.conf --check layers.check
// ctest: examples/partita/mlp.mlir examples/partita/mlp.spec examples/partita/mlp.conf --explain --check examples/partita/mlp.check
// ctest: examples/partita/layers.mlir examples/partita/layers.spec examples/partita/layers.conf --check examples/partita/layers.check
#include <algorithm>
#include <csignal>
#include <cstdint>
#include <exception>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include <partita/backend/code/write_cpp.hpp>
#include <partita/cpu.hpp>
#include <partita/partita.hpp>
#include <partita/report/html.hpp>
#include <partita/report/memory.hpp>
#include <partita/report/pipeline_sweep.hpp>
#include <partita/report/search_svg.hpp>
#include <partita/report/sweep.hpp>
#include <partita/report/timeline.hpp>
#include <partita/run/file/npz.hpp>
#include <partita/run/refute.hpp>
#include <partita/run/refute_pipeline.hpp>
#include <partita/spec/bounds.hpp>
#include <partita/spec/designs.hpp>
#include <partita/spec/lines.hpp>
#include <partita/spec/schedule.hpp>
#include <partita/spec/shardings.hpp>
#include <partita/spec/system.hpp>
#include <partita/stablehlo/read.hpp>
#include <partita/stablehlo/read_local.hpp>
#include <partita/stablehlo/write.hpp>
#include <partita/stablehlo/write_annotated.hpp>
#include <partita/stablehlo/write_local.hpp>

#include "arguments.hpp"
#include "dump.hpp"
#include "engine.hpp"
#include "environment.hpp"
#include "job.hpp"
#include "options.hpp"
#include "pipeline.hpp"
#include "progress.hpp"
#include "report.hpp"

namespace {

namespace pt = partita;

std::string read_text(const std::string& path) {
  static bool read = false;
  if (path != "-") return pt::run_detail::read_file(path);
  if (read) throw usage_error("standard input (\"-\") can be only one of the files");
  read = true;
  return {std::istreambuf_iterator<char>(std::cin), std::istreambuf_iterator<char>()};
}
/// Throws an error in a file, with the file's name before its line and column.
void raise_in_file(const pt::failure& f, const std::string& path) {
  if (!f) return;
  const std::string_view message = f.message;
  throw pt::error(pt::concat(message.substr(0, 5), path, ": ", message.substr(5)));
}

/// Reads the module. Stores its shardings in `shardings` unless that is null.
pt::program read_module(const options& o, pt::sharding_list* shardings) {
  const std::string module = read_text(o.files[0]);
  progress::reading(o.files[0], module.size());
  std::string names;
  std::vector<std::string_view> list;
  if (!o.names.empty()) {
    names = read_text(o.names);
    std::string_view rest = names;
    while (!rest.empty()) {
      const std::size_t end = std::min(rest.find('\n'), rest.size());
      list.push_back(rest.substr(0, end));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  }
  const pt::span<const std::string_view> given(list.data(), list.size());
  pt::program p = shardings != nullptr ? pt::read_stablehlo(module, *shardings, given)
                                       : pt::read_stablehlo(module, given);
  raise_in_file(p.error, o.files[0]);
  if (!o.names.empty() && list.size() != static_cast<std::size_t>(p.input_count()))
    throw usage_error("option --names: \"" + o.names + "\" has " + std::to_string(list.size()) +
                      " names; the module has " + std::to_string(p.input_count()) + " arguments");
  return p;
}
pt::text_schedule read_specification(const std::string& path) {
  auto s = pt::read_schedule(read_text(path));
  raise_in_file(s.error, path);
  return s;
}
pt::system_description read_machine(const std::string& path) {
  auto s = pt::read_system(read_text(path));
  raise_in_file(s.error, path);
  return s;
}

/// Returns the bytes of --strict.
std::int64_t strict_limit(const options& o) {
  if (o.strict.empty()) return pt::partition_options::off;
  pt::spec_detail::lines l(o.strict, "--strict");
  const double bytes =
      l.quantity({"a number of bytes, like 16MiB,", pt::spec_detail::measure::bytes,
                  pt::spec_detail::most_bytes, true});
  if (!l.failed() && !l.at_line_end()) l.expected("the end of the number");
  if (l.failed()) throw pt::error(l.error.message.view());
  return static_cast<std::int64_t>(bytes);
}

void write_results(const pt::results& r, const std::string& path) {
  if (path.empty()) throw usage_error("option --run needs --out FILE for the results");
  std::vector<pt::named_array> list;
  for (int i = 0; i < r.size(); ++i) list.push_back({"r" + std::to_string(i), r[i]});
  if (job::writes()) pt::write_npz(path, list);
}
/// Runs a partitioned program: on XLA with --xla, otherwise emulated or over MPI.
template <class Partitioned>
pt::results run_of(const options& o, const Partitioned& p, const std::vector<pt::array>& inputs) {
  return o.xla.empty() ? job::run(p, inputs) : engine::run(p, inputs, o.xla);
}
/// Returns the text, or throws the error that it reports.
const pt::text& without_error(const pt::text& t) {
  if (!t.view().starts_with("error: ")) return t;
  const std::string_view message = t.view().substr(7);
  throw pt::error(message.substr(0, message.find('\n')));
}
void emit(const options& o, const pt::text& all) {
  const pt::text& t = without_error(all);
  if (o.out.empty())
    std::cout << t.view();
  else
    pt::run_detail::write_file(o.out, t.view());
}

/// Returns a partitioned program in one of the forms of --emit.
pt::text text_in_form(const pt::partitioned& r, const std::string& form) {
  if (form == "local") return pt::write_stablehlo(r.device);
  if (form == "annotated") return pt::write_annotated_stablehlo(r);
  if (form == "source") return pt::write_stablehlo(r.source);
  if (form == "core") return pt::print_core(r.core);
  if (form == "text") return pt::print(r.source);
  if (form == "device") return device_text(r);
  if (form == "cpp") return pt::text(pt::write_cpp(r.device));
  throw usage_error(
      "option --emit: \"" + form +
      "\" is for systems of several meshes; give local, annotated, source, core, text, "
      "device or cpp");
}

int run_source(const options& o, const pt::program& p) {
  if (!o.check.empty() || !o.diff.empty() || o.explain || o.replicated || o.csv ||
      !o.strict.empty() || !o.value.empty())
    throw usage_error("without a specification and a system there is nothing to check or explain");
  if (!o.html.empty() || !o.dump.empty() || !o.trace.empty() || !o.sweep.empty() || o.peak)
    throw usage_error("without a specification and a system there is nothing to show");
  if (!o.found.empty() || !o.search_log.empty() || o.environment)
    throw usage_error("without a specification and a system there is nothing to search");
  if (!o.xla.empty()) throw usage_error("option --xla needs a specification and a system");
  if (!o.run.empty()) {
    progress::running(p);
    write_results(pt::evaluate(p, arguments_of(p, o.run)), o.out);
  } else if (o.emit == "text") {
    emit(o, pt::print(p));
  } else if (o.emit == "source") {
    emit(o, pt::write_stablehlo(p));
  } else if (o.emit == "cpp") {
    emit(o, pt::text(pt::write_cpp(p)));
  } else if (!o.emit.empty()) {
    throw usage_error("option --emit " + o.emit + " needs a specification and a system");
  } else {
    std::cout << module_report(p, o.json);
  }
  return 0;
}
/// Returns the system, or one with the mesh of the module's shardings if no system is given.
pt::system_description system_for(const options& o, const pt::sharding_list& shardings) {
  if (o.files.size() > 1) return read_machine(o.files.back());
  pt::system_description s;
  pt::failure f;
  s.mesh = pt::mesh_of(shardings, f);
  raise_in_file(f, o.files[0]);
  return s;
}
/// Returns the report of the passes if the specification has any.
pt::text passes_report(const pt::partitioned& r) {
  return r.passes.rewrite_more() || r.overlap.any() ? pt::report_passes(r) : pt::text();
}
void write_trace(const options& o, const pt::partitioned& r, const pt::system_description& system) {
  const pt::text events = pt::trace_events(r.device, system.on, {.overlap = !r.overlap.any()});
  if (events.view().starts_with("error: ")) throw pt::error(events.view().substr(7));
  pt::run_detail::write_file(o.trace, events.view());
}
/// Writes the files of --found and --search-log.
void write_searches(const options& o, const pt::vec<pt::search_result>& results) {
  pt::search_result all;
  pt::text log;
  for (const auto& r : results) {
    for (const auto& t : r.tactics) all.tactics.push_back(t);
    log << pt::print_log(r);
  }
  if (results.empty() && !(o.found.empty() && o.search_log.empty()))
    throw usage_error(
        "the specification has no automatic tactic; --found and --search-log need one");
  const bool cpp = o.found.ends_with(".hpp") || o.found.ends_with(".cpp");
  if (!o.found.empty())
    pt::run_detail::write_file(o.found,
                               (cpp ? pt::print_source(all) : pt::print_specification(all)).view());
  if (o.search_log.ends_with(".svg"))
    pt::run_detail::write_file(o.search_log, pt::search_svg(results.back()).view());
  else if (!o.search_log.empty())
    pt::run_detail::write_file(o.search_log, log.view());
}
/// Returns the title of the HTML page: the names of its files.
std::string title_of(const options& o) {
  const auto name = [&](std::size_t i) {
    return std::filesystem::path(o.files[i]).filename().string();
  };
  return name(0) + (o.files.size() == 3 ? ", " + name(1) : "");
}
/// Returns the table of --sweep: the program under the specification, on each system.
pt::text mesh_sweep(const options& o, const pt::program& p, pt::text_schedule tactics,
                    const pt::system_description& system) {
  const pt::design_list list = pt::read_designs(read_text(o.sweep), system);
  raise_in_file(list.error, o.sweep);
  if (o.files.size() == 3) {
    const pt::text_schedule more = read_specification(o.files[1]);
    for (const auto& t : more.tactics) tactics.tactics.push_back(t);
    tactics.passes = more.passes;
    tactics.overlap = more.overlap;
  }
  pt::search_on(tactics, system.on);
  pt::sweep table;
  for (const auto& d : list.designs)
    table.add(p, o.files.size() == 3 ? o.files[1] : "shardings", tactics.tactics, d,
              tactics.options());
  return o.csv ? table.csv() : table.print();
}
/// True if no option replaces the report by another text or writes a file instead.
bool prints_default_report(const options& o) {
  return !o.explain && !o.replicated && !o.peak && o.value.empty() && o.diff.empty() &&
         o.sweep.empty() && o.trace.empty() && o.html.empty() && o.dump.empty();
}
/// Returns the table of --sweep for a program on several meshes.
pt::text cluster_sweep(const options& o, const pt::program& p, const pt::text_schedule& schedule,
                       const pt::system_description& system) {
  const pt::cluster_design_list list = pt::read_cluster_designs(read_text(o.sweep), system);
  raise_in_file(list.error, o.sweep);
  pt::sweep table;
  for (const auto& d : list.designs) {
    pt::text_schedule tactics = pt::changed(schedule, d.change);
    pt::search_on(tactics, pipelines::searched_device(d.cluster));
    table.add(p, o.files[1], tactics.tactics, d, tactics.options());
  }
  return o.csv ? table.csv() : table.print();
}
template <class Program>
int check_bounds(const options& o, const Program& r) {
  if (o.check.empty()) return 0;
  const pt::bound_list bounds = pt::read_bounds(read_text(o.check));
  raise_in_file(bounds.error, o.check);
  pt::failure f;
  const pt::text broken = pt::broken_bounds(r, bounds, f);
  raise_in_file(f, o.check);
  std::cerr << pt::notes_on_bounds(unknown_loops_in(r), bounds).view();
  std::cerr << broken.view();
  return broken.empty() ? 0 : 1;
}
/// Returns the schedule for several meshes: the module's shardings with --use-shardings, then the
/// specification.
pt::text_schedule schedule_on_meshes(const options& o, const std::string& specification,
                                     const pt::system_description& system,
                                     const pt::sharding_list& shardings) {
  pt::text_schedule all = read_specification(specification);
  raise_in_file(pt::validate(all, system), specification);
  if (!o.use_shardings) return all;
  pt::text_schedule first = pt::schedule_of(shardings, system.topology());
  raise_in_file(first.error, o.files[0]);
  for (const auto& t : all.tactics) first.tactics.push_back(t);
  all.tactics = first.tactics;
  return all;
}
/// Partitions the program on several meshes by a specification.
pt::pipelined pipelined_as(const options& o, const std::string& specification, const pt::program& p,
                           const pt::system_description& system,
                           const pt::sharding_list& shardings) {
  const pt::text_schedule schedule = schedule_on_meshes(o, specification, system, shardings);
  pt::vec<pt::search_result> results;
  pt::pipelined result =
      pipelines::session(p, schedule, system, strict_limit(o)).partition(results);
  progress::searched(results);
  return result;
}
/// Partitions the program on several meshes and writes what the options ask for.
int run_pipelined(const options& o, const pt::program& p, const pt::system_description& system,
                  const pt::sharding_list& shardings) {
  pipelines::refuse_options(o);
  if (o.files.size() != 3)
    throw usage_error("a system of several meshes needs a specification with a pipeline");
  const pt::text_schedule schedule = schedule_on_meshes(o, o.files[1], system, shardings);
  pipelines::session s(p, schedule, system, strict_limit(o));
  pt::vec<pt::search_result> results;
  const pt::pipelined r = s.partition(results);
  progress::searched(results);
  write_searches(o, results);
  if (!o.html.empty()) pt::write_html(r, s.simulated(r), o.html, {.title = title_of(o)});
  if (!o.trace.empty()) pt::run_detail::write_file(o.trace, pipelines::trace(r, s.simulated(r)));
  if (!o.dump.empty()) pipelines::dump(s, p, r, o.dump);
  if (!o.run.empty()) {
    progress::running(p);
    write_results(run_of(o, r, arguments_of(p, o.run)), o.out);
  } else if (!o.emit.empty()) {
    emit(o, pipelines::text_in_form(p, r, o.emit));
    if (o.json) std::cout << pipelines::json_report(s, r);
  } else if (o.json || (o.csv && o.sweep.empty())) {
    std::cout << (o.json ? pipelines::json_report(s, r) : pipelines::csv_report(r));
  } else {
    if (prints_default_report(o)) {
      std::cout << pt::report(r).view();
      if (system.can_simulate()) std::cout << pipelines::simulation_report(s, r).view();
      std::cout << pt::print_missing(system).view();
    }
    if (o.explain) std::cout << pt::explain(r).view();
    if (!o.value.empty()) std::cout << without_error(pt::explain(r, o.value)).view();
    if (o.replicated) std::cout << pt::print_replicated(r).view();
    if (o.peak) std::cout << pt::print_peak(r).view();
    if (!o.diff.empty())
      std::cout << pt::diff(r, pipelined_as(o, o.diff, p, system, shardings)).view();
    if (!o.sweep.empty()) std::cout << cluster_sweep(o, p, schedule, system).view();
    if (!o.xla.empty()) std::cout << engine::report(r, o.xla);
  }
  return check_bounds(o, r);
}
int run_partitioned(const options& o, const pt::program& p, const pt::sharding_list& shardings) {
  const pt::system_description system = system_for(o, shardings);
  if (system.has_several()) return run_pipelined(o, p, system, shardings);
  pt::text_schedule first;
  if (o.use_shardings) first = pt::schedule_of(shardings, system.mesh);
  raise_in_file(first.error, o.files[0]);
  pt::vec<pt::search_result> results;
  const auto partitioned_by = [&](const std::string& specification) {
    pt::text_schedule all = first;
    if (!specification.empty()) {
      const pt::text_schedule more = read_specification(specification);
      raise_in_file(pt::validate(more, system), specification);
      for (const auto& t : more.tactics) all.tactics.push_back(t);
      all.passes = more.passes;
      all.overlap = more.overlap;
    }
    pt::search_on(all, system.on, &progress::searching, &results);
    pt::partition_options more = all.options();
    more.strict = strict_limit(o);
    const pt::partitioned r = pt::partition(p, system.mesh, all.tactics, more);
    progress::searched(results);
    return r;
  };
  if (o.environment)
    return serve_environment(system, partitioned_by(o.files.size() == 3 ? o.files[1] : ""));
  const pt::partitioned r = partitioned_by(o.files.size() == 3 ? o.files[1] : "");
  write_searches(o, results);
  if (!o.html.empty()) pt::write_html(r, system.on, o.html, {.title = title_of(o)});
  if (!o.dump.empty()) dump_tactics(r, system, o.dump);
  if (!o.trace.empty()) write_trace(o, r, system);
  if (!o.run.empty()) {
    progress::running(r.device);
    write_results(run_of(o, r, arguments_of(p, o.run)), o.out);
  } else if (!o.emit.empty()) {
    emit(o, text_in_form(r, o.emit));
    if (o.json) std::cout << json_report(r, system);
  } else if (o.json || (o.csv && o.sweep.empty())) {
    std::cout << (o.json ? json_report(r, system) : csv_report(r));
  } else {
    const bool plain = prints_default_report(o);
    if (plain)
      std::cout << pt::report(r).view() << passes_report(r).view()
                << pt::print_memory(system, r.cost.peak_bytes).view();
    if (plain && system.can_simulate()) std::cout << pt::print_simulation(r, system.on).view();
    if (plain) std::cout << pt::print_missing(system).view();
    if (o.explain) std::cout << pt::explain(r).view();
    if (!o.value.empty()) std::cout << without_error(pt::show(r, o.value)).view();
    if (o.replicated) std::cout << pt::print_replicated(r).view();
    if (o.peak) std::cout << pt::print_peak(r).view();
    if (!o.diff.empty()) std::cout << pt::diff(r, partitioned_by(o.diff)).view();
    if (!o.sweep.empty()) std::cout << mesh_sweep(o, p, first, system).view();
    if (!o.xla.empty()) std::cout << engine::report(r, o.xla);
  }
  return check_bounds(o, r);
}

/// Prints a judgement; writes inputs that refute the program to the file of --out.
int print_judgement(const options& o, const pt::program& source, const pt::judgement& j) {
  if (j.kind == pt::verdict_kind::proved) {
    std::cout << "proved: it computes " << o.files[0] << ", for all inputs\n";
    return 0;
  }
  const bool refuted = j.kind == pt::verdict_kind::refuted;
  std::cout << (refuted ? "refuted: " : "not proved: ") << std::string_view(j.error.message)
            << '\n';
  if (refuted && !o.out.empty()) {
    std::vector<pt::named_array> list;
    const auto inputs = pt::inputs_of_seed(source, j.inputs.seed);
    for (std::size_t i = 0; i < inputs.size(); ++i)
      list.push_back({argument_names::free_prefix(source) + std::to_string(i), inputs[i]});
    pt::write_npz(o.out, list);
  }
  return 1;
}
/// Proves that a pipeline on several meshes computes its module.
int prove_pipelined(const options& o, const pt::system_description& system) {
  pt::sharding_list shardings;
  const pt::program source = read_module(o, o.use_shardings ? &shardings : nullptr);
  return print_judgement(
      o, source, pt::prove_or_refute(pipelined_as(o, o.files[1], source, system, shardings)));
}
/// Proves that a program of one device computes its source. Counted loops are unrolled if the proof
/// needs that.
int prove(const options& o) {
  if (o.files.size() != 3)
    throw usage_error(
        "--prove needs a module, a module of one device (of several meshes: a "
        "specification) and a system; " +
        std::to_string(o.files.size()) + " files are given");
  const pt::system_description system = read_machine(o.files[2]);
  if (system.has_several()) return prove_pipelined(o, system);
  if (o.use_shardings)
    throw usage_error(
        "option --use-shardings does not go with --prove on one mesh: the second "
        "module states its own layouts");
  const pt::program source = read_module(o, nullptr);
  const std::string module = read_text(o.files[1]);
  pt::device_program local = pt::read_local_stablehlo(module, system.mesh);
  raise_in_file(local.local.error, o.files[1]);
  for (const pt::local_reading& way : pt::ways_to_prove) {
    pt::device_program read = pt::read_local_stablehlo(module, system.mesh, way);
    raise_in_file(read.local.error, o.files[1]);
    if (!pt::prove(source, read).proved) continue;
    local = std::move(read);
    break;
  }
  return print_judgement(o, source, pt::prove_or_refute(source, local));
}

int run(const options& o) {
  if (o.files.empty()) throw usage_error("a module is needed; see --help");
  if (o.prove) return prove(o);
  const std::size_t files = o.files.size();
  if (files != 1 && files != 3 && (files != 2 || !o.use_shardings))
    throw usage_error("a module alone, or a module, a specification and a system are needed" +
                      std::string(o.use_shardings ? ", or a module and a system" : "") + "; " +
                      std::to_string(files) + " files are given");
  pt::sharding_list shardings;
  const pt::program p = read_module(o, o.use_shardings ? &shardings : nullptr);
  const bool partitioned = files > 1 || o.use_shardings;
  if (!o.emit.empty() && o.json && !partitioned)
    throw usage_error("options --emit and --json together need a specification and a system");
  const int status = partitioned ? run_partitioned(o, p, shardings) : run_source(o, p);
  std::cout.flush();
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_DFL);  // ends quietly if the reader of the output closes it
  std::ios::sync_with_stdio(false);
  try {
    const options o = command_line::parse({argv + 1, argv + argc});
    if (o.help) {
      command_line::print_help(std::cout);
      return 0;
    }
    if (o.version) {
      std::cout << "partita " PARTITA_VERSION "\n";
      return 0;
    }
    return run(o);
  } catch (const std::exception& e) {
    std::cerr << "partita: " << e.what() << '\n';
  }
  return 2;
}
