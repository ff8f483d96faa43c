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
  /// Module, specification, system; with `prove` the source, a program for one device, the system.
  std::vector<std::string> files;
  std::string emit, out, check, run, names, diff, sweep, trace, html, dump, found, search_log,
      strict, value;
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
          "bounds, like \"all_gather <= 2\"; exit status 1 where one does not hold",
          &options::check},
    entry{"--csv", "", "the collectives as comma-separated values", nullptr, &options::csv},
    entry{"--diff", "FILE", "what differs under a second specification", &options::diff},
    entry{
        "--dump", "FOLDER",
        "write what each tactic makes: the program of a device (1-NAME.txt) and its figures\n"
        "                  (1-NAME.json), 2-..., and the source (0-source.txt); of a pipeline "
        "also\n"
        "                  what a runtime carries out: calls.json, and a module for each function\n"
        "                  (calls/0.mlir, ...)",
        &options::dump},
    entry{"--emit", "FORM",
          "write the program: StableHLO of one device (local; of a pipeline a module for each "
          "function\n"
          "                  in one), of the whole with shardings (annotated)\n"
          "                  or without (source); C++ that a device runs (cpp); or as Partita "
          "prints it:\n"
          "                  text, core (loops), device,\n"
          "                  and of a pipeline the list of calls (calls), also as JSON for a "
          "runtime (json)",
          &options::emit},
    entry{"--environment", "",
          "play the search: a line of JSON on standard input, one on standard output, see\n"
          "                  environment.hpp and examples/jax/partita_gym.py",
          nullptr, &options::environment},
    entry{"--explain", "", "each collective, and why it is there", nullptr, &options::explain},
    entry{"--found", "FILE",
          "write what automatic tactics found: as a specification, or, where FILE ends in .hpp\n"
          "                  or .cpp, as C++",
          &options::found},
    entry{"--help", "", "this text", nullptr, &options::help},
    entry{"--html", "FILE", "write all of it as a page with pictures, which needs no other file",
          &options::html},
    entry{"--json", "",
          "figures (after each tactic, too), collectives and layouts as JSON; with --emit FORM\n"
          "                  --out FILE both",
          nullptr, &options::json},
    entry{"--names", "FILE", "names of the module's arguments, one on each line", &options::names},
    entry{"--out", "FILE",
          "where --emit, --run or --prove writes; --emit without it: on standard output",
          &options::out},
    entry{"--peak", "", "what lies in memory when most does", nullptr, &options::peak},
    entry{"--prove", "",
          "does the module of one device (second file) compute the first? On several meshes: does\n"
          "                  what the specification (second file) makes? With --out FILE: the "
          "inputs for which it\n"
          "                  does not, as an .npz file",
          nullptr, &options::prove},
    entry{"--replicated", "", "what is replicated although nobody asked for it", nullptr,
          &options::replicated},
    entry{"--run", "FILE",
          "run it on the arrays of an .npz file: all named as the arguments, or all by place, a0, "
          "a1,\n"
          "                  ... or arr_0, arr_1, ...",
          &options::run},
    entry{"--search-log", "FILE",
          "write how the least cost fell in automatic tactics, as comma-separated values, or,\n"
          "                  where FILE ends in .svg, as a picture of the last one",
          &options::search_log},
    entry{
        "--strict", "BYTES",
        "an error where more than so many bytes (with a unit: --strict 16MiB) is replicated on a\n"
        "                  device although nobody asked for it; without it no amount is an error",
        &options::strict},
    entry{
        "--sweep", "FILE",
        "what if: time and memory on other systems, a line for each, like \"fast: links * 2\"; of\n"
        "                  a pipeline also \"more: microbatches = 16, order = zb_h1, m0.axis B * "
        "2\"",
        &options::sweep},
    entry{"--trace", "FILE", "write the simulated timeline as trace events, which Perfetto opens",
          &options::trace},
    entry{"--use-shardings", "",
          "partition as the shardings in the module say, then as the specification says,\n"
          "                  if one is given; without a system, over the module's own mesh",
          nullptr, &options::use_shardings},
    entry{
        "--value", "NAME",
        "where an input, an output or another value lies; of a pipeline also who makes and takes\n"
        "                  it, and its transfers and collectives",
        &options::value},
    entry{"--version", "", "the version", nullptr, &options::version},
};

inline void check_form(const std::string& form) {
  constexpr std::string_view known[] = {"local",  "annotated", "source", "core", "text",
                                        "device", "calls",     "json",   "cpp"};
  if (form.empty() || std::find(std::begin(known), std::end(known), form) != std::end(known))
    return;
  throw usage_error("option --emit: there is no form \"" + form + "\"; " +
                    std::string(partita::known_names(form, known).view()));
}

/// Refuses outputs that cannot share the standard output or the file of --out. Texts can, and so
/// can a program in the file with JSON on the standard output.
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
                        " cannot be given together: each has the whole output");
    if (first == nullptr) first = &outputs[i];
  }
  if (!o.out.empty() && o.run.empty() && o.emit.empty() && !o.prove)
    throw usage_error("option --out needs --emit, --run or --prove: nothing else writes there");
  const bool alone = o.prove || o.environment;
  const output files[] = {{!o.check.empty(), "--check"},
                          {!o.html.empty(), "--html"},
                          {!o.dump.empty(), "--dump"},
                          {!o.trace.empty(), "--trace"},
                          {!o.found.empty(), "--found"},
                          {!o.search_log.empty(), "--search-log"},
                          {o.prove && !o.strict.empty(), "--strict"}};
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
      throw usage_error("there is no option " + word +
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
         "the system, and tells what that costs. Without a specification: what the module is.\n\n";
  for (const auto& e : entries) {
    std::string left =
        "  " + std::string(e.name) + (e.value.empty() ? "" : " ") + std::string(e.value);
    if (left.size() > 17) left += '\n' + std::string(17, ' ');
    left += std::string(left.size() < 18 ? 18 - left.size() : 1, ' ');
    out << left << e.meaning << '\n';
  }
  out << "\nA specification has tactics, one on a line, in their order: manual AXIS {NAME: "
         "DIMENSION, ...},\n"
         "microbatch STEPS {NAME: DIMENSION, ...}, remat NAME, ... (what lies there is computed "
         "again "
         "for\nthe derivative), automatic AXIS, ..., shard, amalgamated, tile, atomic, arg-tile, "
         "propagate;\npasses NAME, ... over collectives; and for a system of several meshes "
         "pipeline "
         "{stages:\n{NAME, ...} {NAME, ...}, batch: {NAME: DIMENSION}, microbatches: NUMBER, "
         "order: "
         "NAME}.\n"
         "\nExit status: 0 all is well; 1 a bound of --check does not hold, or --prove finds no "
         "proof;\n"
         "2 a mistake in the arguments or in a file.\n";
}

}  // namespace command_line
