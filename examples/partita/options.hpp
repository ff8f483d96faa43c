/// Command line of partita.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include <partita/support/error.hpp>

struct options {
  /// Module, specification, system; with `prove` the source, the program of one device, the system.
  std::vector<std::string> files;
  std::string emit, out, check, run, names, diff, sweep, trace, html, dump, found, search_log,
      strict, value, xla;
  bool explain = false, replicated = false, peak = false, json = false, csv = false, prove = false;
  bool environment = false, use_shardings = false, help = false, version = false;
};

/// A mistake on the command line.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace command_line {

struct entry {
  std::string_view name, value, meaning;
  std::string options::*text = nullptr;
  bool options::*flag = nullptr;
};
inline constexpr std::array entries{
    entry{"--check", "FILE",
          "check bounds, such as \"all_gather <= 2\"; exit status 1 if one does not hold",
          &options::check},
    entry{"--csv", "", "print the collectives as comma-separated values", nullptr, &options::csv},
    entry{"--diff", "FILE", "print the differences to a second specification", &options::diff},
    entry{"--dump", "FOLDER",
          "write the source (0-source.txt), and after each tactic the program of a device\n"
          "                  (1-NAME.txt, 2-...) and its figures (1-NAME.json); for a pipeline "
          "also the\n"
          "                  calls of a runtime (calls.json) and a module for each function\n"
          "                  (calls/0.mlir, ...)",
          &options::dump},
    entry{
        "--emit", "FORM",
        "write the program: as StableHLO of one device (local; for a pipeline a module for\n"
        "                  each function, in one), global with shardings (annotated) or without\n"
        "                  (source); as C++ that each device runs (cpp); or as Partita prints\n"
        "                  it: text, core (loops), device; for a pipeline also the list of calls\n"
        "                  (calls), or as JSON for a runtime (json)",
        &options::emit},
    entry{"--environment", "",
          "serve the search: reads requests from standard input and answers on standard output,\n"
          "                  as lines of JSON; see environment.hpp and examples/jax/partita_gym.py",
          nullptr, &options::environment},
    entry{"--explain", "", "print each collective and its reason", nullptr, &options::explain},
    entry{"--found", "FILE",
          "write the tactics that automatic tactics found: as C++ if FILE ends in .hpp or .cpp,\n"
          "                  otherwise as a specification",
          &options::found},
    entry{"--help", "", "print this text", nullptr, &options::help},
    entry{"--html", "FILE", "write the report as one self-contained page with pictures",
          &options::html},
    entry{"--json", "",
          "print figures, also after each tactic, collectives and layouts as JSON; can be\n"
          "                  combined with --emit FORM --out FILE",
          nullptr, &options::json},
    entry{"--names", "FILE", "names of the module's arguments, one per line", &options::names},
    entry{"--out", "FILE",
          "the output file of --emit, --run or --prove; --emit defaults to standard output",
          &options::out},
    entry{"--peak", "", "print the values in memory at the peak", nullptr, &options::peak},
    entry{"--prove", "",
          "prove that the module of one device (second file) computes the first; on several\n"
          "                  meshes, that the specification's pipeline (second file) does. With\n"
          "                  --out FILE: write inputs that refute it, as an .npz file",
          nullptr, &options::prove},
    entry{"--replicated", "", "print values that are replicated by default", nullptr,
          &options::replicated},
    entry{"--run", "FILE",
          "run the program on the arrays of an .npz file, all named as the arguments, or all by\n"
          "                  position: a0, a1, ... or arr_0, arr_1, ...",
          &options::run},
    entry{"--search-log", "FILE",
          "write the progress of the lowest cost in automatic tactics: as a picture of the last\n"
          "                  one if FILE ends in .svg, otherwise as comma-separated values",
          &options::search_log},
    entry{"--strict", "BYTES",
          "fail if a value of more than BYTES (with a unit: 16MiB) is replicated by default on a\n"
          "                  device",
          &options::strict},
    entry{"--sweep", "FILE",
          "print time and memory on other systems, one per line of FILE, such as\n"
          "                  \"fast: links * 2\"; for a pipeline also \"more: microbatches = 16, "
          "order =\n"
          "                  zb_h1, m0.axis B * 2\"",
          &options::sweep},
    entry{"--trace", "FILE", "write the simulated timeline as trace events for Perfetto",
          &options::trace},
    entry{"--use-shardings", "",
          "apply the shardings in the module, then the specification, if any; without a system,\n"
          "                  over the module's own mesh",
          nullptr, &options::use_shardings},
    entry{
        "--value", "NAME",
        "print the layout of an input, an output or another value; for a pipeline also the calls\n"
        "                  that produce and use it, its transfers and its collectives",
        &options::value},
    entry{"--version", "", "print the version", nullptr, &options::version},
    entry{"--xla", "PLUGIN",
          "compile with XLA by a PJRT plugin and print the memory and flops that it reports; with\n"
          "                  --run, run there",
          &options::xla},
};

inline void check_form(const std::string& form) {
  constexpr std::string_view known[] = {"local",  "annotated", "source", "core", "text",
                                        "device", "calls",     "json",   "cpp"};
  if (form.empty() || std::find(std::begin(known), std::end(known), form) != std::end(known))
    return;
  throw usage_error("option --emit: form \"" + form + "\" is unknown; " +
                    std::string(partita::known_names(form, known).view()));
}

/// Refuses outputs that cannot share the standard output or the file of --out. Texts can share it,
/// and a program in the file of --out goes with JSON on the standard output.
inline void check_together(const options& o) {
  struct output {
    bool given;
    std::string_view name;
  };
  const bool sweeps = !o.sweep.empty();
  const output outputs[] = {{o.prove, "--prove"},
                            {o.environment, "--environment"},
                            {!o.run.empty(), "--run"},
                            {!o.emit.empty() && !(o.json && !o.out.empty()), "--emit"},
                            {o.json, "--json"},
                            {o.csv && !sweeps, "--csv"},
                            {o.explain, "--explain"},
                            {!o.value.empty(), "--value"},
                            {o.replicated, "--replicated"},
                            {o.peak, "--peak"},
                            {!o.diff.empty(), "--diff"},
                            {sweeps, "--sweep"}};
  constexpr std::size_t texts = 6;  // outputs from this index on are texts, printed in sequence
  const output* first = nullptr;
  for (std::size_t i = 0; i < std::size(outputs); ++i) {
    if (!outputs[i].given) continue;
    if (first != nullptr && first < outputs + texts)
      throw usage_error("options " + std::string(first->name) + " and " +
                        std::string(outputs[i].name) +
                        " cannot be given together: each needs the output for itself");
    if (first == nullptr) first = &outputs[i];
  }
  if (!o.out.empty() && o.run.empty() && o.emit.empty() && !o.prove)
    throw usage_error("option --out needs --emit, --run or --prove, which write to it");
  const bool alone = o.prove || o.environment;
  const output files[] = {
      {!o.check.empty(), "--check"}, {!o.html.empty(), "--html"},
      {!o.dump.empty(), "--dump"},   {!o.trace.empty(), "--trace"},
      {!o.found.empty(), "--found"}, {!o.search_log.empty(), "--search-log"},
      {!o.xla.empty(), "--xla"},     {o.prove && !o.strict.empty(), "--strict"}};
  for (const output& each : files)
    if (alone && each.given)
      throw usage_error("option " + std::string(first->name) + " does not go with " +
                        std::string(each.name));
}

inline options parse(const std::vector<std::string>& arguments) {
  options o;
  std::vector<std::string_view> names;
  for (const auto& e : entries) names.push_back(e.name);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    if (word == "-" || !word.starts_with("-")) {
      if (word.empty()) throw usage_error("the name of a file is empty");
      o.files.push_back(word);
      continue;
    }
    const entry* found = nullptr;
    for (const auto& e : entries)
      if (e.name == word) found = &e;
    if (found == nullptr) {
      partita::closest_name closest(word);
      for (const std::string_view name : names) closest.look_at(name);
      throw usage_error("option " + word + " does not exist" +
                        (closest.found().empty()
                             ? std::string()
                             : "; did you mean " + std::string(closest.found()) + "?") +
                        "; see --help");
    }
    const bool twice = found->flag != nullptr ? o.*found->flag : !(o.*found->text).empty();
    if (twice) throw usage_error("option " + word + " is given twice");
    if (found->flag != nullptr) {
      o.*found->flag = true;
      continue;
    }
    if (i + 1 == arguments.size() || arguments[i + 1].empty() ||
        std::find(names.begin(), names.end(), arguments[i + 1]) != names.end())
      throw usage_error("option " + word + " needs a " + std::string(found->value));
    o.*found->text = arguments[++i];
  }
  check_form(o.emit);
  if (!o.help && !o.version) check_together(o);
  return o;
}

inline void print_help(std::ostream& out) {
  out << "partita MODULE [SPECIFICATION SYSTEM] [options]\n"
         "partita --environment MODULE SPECIFICATION SYSTEM\n"
         "partita --prove MODULE LOCAL_MODULE SYSTEM\n"
         "partita --prove MODULE SPECIFICATION SYSTEM_OF_MESHES\n\n"
         "Reads a StableHLO module (\"-\": standard input), partitions it as the specification "
         "says for\n"
         "the system, and reports the cost. Without a specification it describes the module.\n\n";
  for (const auto& e : entries) {
    std::string left =
        "  " + std::string(e.name) + (e.value.empty() ? "" : " ") + std::string(e.value);
    if (left.size() > 17) left += '\n' + std::string(17, ' ');
    left += std::string(left.size() < 18 ? 18 - left.size() : 1, ' ');
    out << left << e.meaning << '\n';
  }
  out << "\nA specification lists tactics, one per line, in order: manual AXIS {NAME: DIMENSION, "
         "...},\n"
         "microbatch STEPS {NAME: DIMENSION, ...}, remat NAME, ... (recomputes the values below a "
         "name for the\nderivative), automatic AXIS, ..., shard, amalgamated, tile, atomic, "
         "arg-tile, "
         "propagate. Its last line\ncan be passes NAME, ... over collectives. A system of several "
         "meshes needs pipeline {stages:\n{NAME, ...} {NAME, ...}, batch: {NAME: DIMENSION}, "
         "microbatches: NUMBER, order: NAME}.\n"
         "\nExit status: 0 success; 1 a bound of --check does not hold, or --prove finds no "
         "proof;\n"
         "2 an error in the arguments or in a file.\n";
}

}  // namespace command_line
