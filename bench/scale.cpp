/// Measures how the time of every phase of the library grows with the number of ops.
///
///   bench_scale [--shapes a,b] [--phases a,b] [--sizes 1000,10000,100000] [--cap SECONDS]
///               [--csv FILE] [--baseline FILE]
///
/// Prints one row per shape of program and phase: the CPU nanoseconds per op at each size; the
/// exponent of time against ops from the smallest to the largest measured size (1 is linear); the
/// time per op at the largest size over that at the smallest, marked `!` above 2; and the
/// milliseconds at the largest size.
///
/// Each phase runs in its own process and reports the best of a few runs. A phase that exceeds the
/// cap of CPU seconds is stopped and shown as "> cap"; its larger sizes are skipped.
///
/// `--csv` writes shape,phase,ops,seconds. `--baseline` reads such a file of another build and
/// prints the time over that build's time at the largest size that both have.
#include <sys/resource.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include <partita/mpmd/mpmd_program.hpp>
#include <partita/prove/prove.hpp>

#include "scale_shapes.hpp"

namespace {

using namespace scale;

const pt::mesh mesh{{"B", 4}, {"M", 2}, {"A", 16}};

double cpu_seconds() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);  // the process's clock is coarse while a timer runs
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

// ---- Phases -----------------------------------------------------------------------------------

/// The input of the phases. `result` is set after the phase "partition" has been measured.
struct subject {
  const scale::shape& shape;
  int ops;  ///< approximate number of ops
  model m = {};
  std::unique_ptr<pt::partitioned> result = nullptr;

  const pt::program& source() const { return m.program; }
  pt::partitioned partition(const pt::partition_options& o = {}) const {
    return pt::partition(m.program, mesh, m.schedule, o);
  }
};

/// Returns the CPU seconds of `f`, without the destruction of its result.
template <class F>
double timed(const F& f) {
  const double start = cpu_seconds();
  const auto kept = f();
  (void)kept;
  return cpu_seconds() - start;
}
void raise(const pt::failure& f) { f.raise(); }

double with_passes(const subject& s, const pt::passes& on) {
  return timed([&] { return s.partition({.passes = on}); });
}
/// Applies `act` (tile or atomic) to every value in turn; refused actions count, too.
template <class Act>
double each_value(const subject& s, const Act& act) {
  pt::core_program core(s.source(), mesh);
  const int values = core.p.value_count();
  return timed([&] {
    for (value_id v = 0; v < values; ++v) (void)act(core, v);
    return 0;
  });
}

/// Places the program on four meshes in sequence. Each part has 64 named ops and 16 without a
/// name.
double on_meshes(const subject& s) {
  static const pt::topology meshes{
      {"m0", {{"B", 4}}}, {"m1", {{"B", 4}}}, {"m2", {{"B", 2}}}, {"m3", {{"B", 2}}}};
  pt::program p = s.source();
  pt::number_ops(p);
  pt::assignment to{.infer_transfers = true};
  const int parts = p.op_count() / 80 + 1;
  pt::vec<pt::text> names;
  for (int i = 0; i < parts; ++i) {
    names.push_back(pt::concat("part.", i));
    to.names.push_back({names.back().view(), meshes.name(4 * i / parts)});
    const int scope = p.scopes.open(names.back().view(), -1);
    for (int o = 80 * i; o < 80 * i + 64 && o < p.op_count(); ++o)
      p.scopes.put(p.op(o).marks.source, scope);
  }
  return timed([&] { return pt::to_mpmd(p, meshes, to); });
}

struct phase {
  std::string_view name;
  bool of_result;  ///< true if the phase needs subject::result
  double (*seconds)(const subject&);
};

const phase phases[] = {
    {"build", false, [](const subject& s) { return timed([&] { return s.shape.make(s.ops); }); }},
    {"partition", false, [](const subject& s) { return timed([&] { return s.partition(); }); }},
    {"mpmd", false, on_meshes},
    {"combine", true, [](const subject& s) { return with_passes(s, {.combine_below = 1 << 20}); }},
    {"stationary", true, [](const subject& s) { return with_passes(s, {.stationary_above = 1}); }},
    {"place", true, [](const subject& s) { return with_passes(s, {.place = true}); }},
    {"share_gathers", true,
     [](const subject& s) { return with_passes(s, {.share_gathers = true}); }},
    {"memory_bound", true,
     [](const subject& s) { return with_passes(s, {.memory_bound = std::int64_t{1} << 60}); }},
    {"microbatch", true,
     [](const subject& s) {
       return timed([&] {
         return pt::partition(s.source(), mesh, pt::schedule(pt::microbatch(2, {{"x", 0}})));
       });
     }},
    {"print", false, [](const subject& s) { return timed([&] { return pt::print(s.source()); }); }},
    {"parse", false,
     [](const subject& s) {
       const pt::text printed = pt::print(s.source());
       return timed([&] {
         const pt::program p = pt::parse(printed.view());
         raise(p.error);
         return p.op_count();
       });
     }},
    {"print_device", true,
     [](const subject& s) { return timed([&] { return pt::print(s.result->device); }); }},
    {"parse_device", true,
     [](const subject& s) {
       const pt::text printed = pt::print(s.result->device);
       return timed([&] {
         pt::mesh m;
         const pt::program p = pt::parse(printed.view(), m);
         raise(p.error);
         return p.op_count();
       });
     }},
    {"print_core", true,
     [](const subject& s) { return timed([&] { return pt::print_core(s.result->core); }); }},
    {"print_actions", true,
     [](const subject& s) {
       return timed([&] { return pt::print_actions(s.result->core, s.result->sharded()); });
     }},
    {"replay", true,
     [](const subject& s) {
       const pt::text log = pt::print_actions(s.result->core, s.result->sharded());
       pt::core_program again(s.result->sharded(), mesh);
       return timed([&] {
         raise(pt::replay(again, s.result->sharded(), log.view()));
         return 0;
       });
     }},
    {"explain", true,
     [](const subject& s) { return timed([&] { return pt::explain(*s.result); }); }},
    {"report", true, [](const subject& s) { return timed([&] { return pt::report(*s.result); }); }},
    {"diff", true,
     [](const subject& s) {
       const pt::partitioned bare = pt::partition(s.source(), mesh, std::vector<tactic>{});
       return timed([&] { return pt::diff(bare, *s.result); });
     }},
    {"replicated", true,
     [](const subject& s) { return timed([&] { return pt::print_replicated(*s.result); }); }},
    {"summarize", true,
     [](const subject& s) { return timed([&] { return pt::summarize(*s.result).peak_bytes; }); }},
    {"verify", false,
     [](const subject& s) {
       return timed([&] {
         raise(pt::verify(s.source()));
         return 0;
       });
     }},
    {"verify_device", true,
     [](const subject& s) {
       return timed([&] {
         raise(pt::verify(s.result->device));
         return 0;
       });
     }},
    {"prove", true,
     [](const subject& s) {
       return timed([&] { return pt::prove(s.result->source, s.result->device); });
     }},
    {"estimate", true,
     [](const subject& s) { return timed([&] { return pt::estimate(s.result->device); }); }},
    {"tile_each", false,
     [](const subject& s) {
       return each_value(s, [](pt::core_program& c, value_id v) { return c.tile(v, 0, 0); });
     }},
    {"atomic_each", false,
     [](const subject& s) {
       return each_value(s, [](pt::core_program& c, value_id v) { return c.atomic(v, 0); });
     }},
};

// ---- One measurement in its own process -------------------------------------------------------

struct reading {
  double seconds = -1;
  std::string note;  ///< the reason if `seconds` is missing
};

/// Returns the best of up to nine runs; stops early when they have used a tenth of the cap.
reading measure(const phase& ph, const subject& s, double cap) {
  int ends[2];
  if (pipe(ends) != 0) return {-1, "no pipe"};
  std::fflush(nullptr);
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    const auto whole = static_cast<time_t>(cap);
    const auto rest = static_cast<suseconds_t>(1e6 * (cap - static_cast<double>(whole)));
    const itimerval limit{{0, 0}, {whole, rest}};
    setitimer(ITIMER_PROF, &limit, nullptr);
    const rlimit memory{std::size_t{12} << 30, std::size_t{12} << 30};
    setrlimit(RLIMIT_AS, &memory);
    std::string answer;
    try {
      double best = 1e300, sum = 0;
      for (int i = 0; i < 9 && sum <= 0.1 * cap; ++i) {
        const double t = ph.seconds(s);
        best = std::min(best, t);
        sum += t;
      }
      answer = std::to_string(best * 1e9);
    } catch (const std::bad_alloc&) {
      answer = "! memory";
    } catch (const std::exception& e) {  // the code of the error
      answer = std::string("! ") + std::string(e.what()).substr(0, 4);
    }
    [[maybe_unused]] const auto written = write(ends[1], answer.data(), answer.size());
    _exit(0);
  }
  close(ends[1]);
  char answer[64] = {};
  const auto size = read(ends[0], answer, sizeof answer - 1);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  if (WIFSIGNALED(status)) return {-1, WTERMSIG(status) == SIGPROF ? "> cap" : "crash"};
  if (size <= 0) return {-1, "nothing"};
  if (answer[0] == '!') return {-1, answer + 2};
  return {1e-9 * std::atof(answer), ""};
}

// ---- The table --------------------------------------------------------------------------------

using series = std::map<int, reading>;  ///< by ops
using key = std::pair<std::string, std::string>;

std::map<key, std::map<int, double>> read_csv(const std::string& file) {
  std::map<key, std::map<int, double>> table;
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    std::replace(line.begin(), line.end(), ',', ' ');
    std::istringstream words(line);
    std::string shape, phase;
    int ops = 0;
    double seconds = 0;
    if (words >> shape >> phase >> ops >> seconds) table[{shape, phase}][ops] = seconds;
  }
  return table;
}

struct options {
  std::vector<std::string> shapes, phases;
  std::vector<int> sizes{1000, 10000, 100000};
  double cap = 10;
  std::string csv, baseline;
};

std::vector<std::string> words_of(std::string list) {
  std::replace(list.begin(), list.end(), ',', ' ');
  std::istringstream in(list);
  std::vector<std::string> words;
  for (std::string w; in >> w;) words.push_back(w);
  return words;
}
bool chosen(const std::vector<std::string>& list, std::string_view name) {
  return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
}

void print_row(std::string_view name, const series& row, const std::map<int, double>* before) {
  std::printf("  %-14s", std::string(name).c_str());
  std::vector<std::pair<double, double>> known;  // ops, seconds
  for (const auto& [ops, r] : row) {
    if (r.seconds < 0) {
      std::printf(" %9s", r.note.c_str());
      continue;
    }
    std::printf(" %9.1f", 1e9 * r.seconds / ops);
    known.emplace_back(ops, r.seconds);
  }
  if (known.size() > 1) {
    const auto [n0, t0] = known.front();
    const auto [n1, t1] = known.back();
    const double ratio = t1 / n1 / (t0 / n0);
    std::printf(" %9.2f %7.2f%s", std::log(t1 / t0) / std::log(n1 / n0), ratio,
                ratio > 2 ? " !" : "  ");
  } else {
    std::printf(" %9s %7s  ", "", "");
  }
  if (!known.empty()) std::printf(" %10.2f", 1e3 * known.back().second);
  if (before != nullptr)
    for (auto k = known.rbegin(); k != known.rend(); ++k)
      if (const auto b = before->find(static_cast<int>(k->first)); b != before->end()) {
        std::printf(" %8.2f", k->second / b->second);
        break;
      }
  std::printf("\n");
  std::fflush(stdout);
}

int ops_of(const pt::program& p) {
  int n = p.op_count();
  for (const auto& r : p.regions) n += ops_of(r);
  return n;
}

void run(const scale::shape& shape, const options& o, std::map<key, std::map<int, double>>& old,
         std::ofstream& csv) {
  std::map<std::string_view, series> table;
  std::vector<int> sizes;
  for (const int n : o.sizes) {
    subject s{shape, n};
    const auto stopped = [&](std::string_view name) {
      for (const auto& [ops, r] : table[name])
        if (r.seconds < 0) return true;
      return false;
    };
    // This process builds a phase's input only after a child process has built it within the cap.
    const reading built = measure(phases[0], s, o.cap);
    if (built.seconds >= 0) s.m = shape.make(n);
    const int ops = built.seconds >= 0 ? ops_of(s.source()) : n;
    sizes.push_back(ops);
    table["build"][ops] = built;
    if (built.seconds < 0) break;
    const bool too_long = stopped("partition");
    const reading partitioned = too_long ? reading{-1, "-"} : measure(phases[1], s, o.cap);
    table["partition"][ops] = partitioned;
    if (partitioned.seconds >= 0) s.result = std::make_unique<pt::partitioned>(s.partition());
    for (const phase& ph : phases) {
      if (&ph < phases + 2 || !chosen(o.phases, ph.name)) continue;
      const bool possible = !stopped(ph.name) && (!ph.of_result || s.result != nullptr);
      table[ph.name][ops] = possible ? measure(ph, s, o.cap) : reading{-1, "-"};
    }
  }
  std::printf("\n%-16s", std::string(shape.name).c_str());
  for (const int ops : sizes) std::printf(" %9d", ops);
  std::printf(" %9s %7s   %10s%s\n", "exponent", "ratio", "ms",
              o.baseline.empty() ? "" : "  over it");
  for (const phase& ph : phases) {
    if (!chosen(o.phases, ph.name) || table[ph.name].empty()) continue;
    const auto before = old.find({std::string(shape.name), std::string(ph.name)});
    print_row(ph.name, table[ph.name], before == old.end() ? nullptr : &before->second);
    for (const auto& [ops, r] : table[ph.name])
      if (r.seconds >= 0)
        csv << shape.name << ',' << ph.name << ',' << ops << ',' << r.seconds << '\n';
  }
  csv.flush();
}

}  // namespace

int main(int argc, char** argv) {
  options o;
  for (int i = 1; i < argc; i += 2) {
    const std::string name = argv[i], value = i + 1 < argc ? argv[i + 1] : "";
    if (name == "--shapes" && !value.empty()) {
      o.shapes = words_of(value);
    } else if (name == "--phases" && !value.empty()) {
      o.phases = words_of(value);
    } else if (name == "--sizes" && !value.empty()) {
      o.sizes.clear();
      for (const auto& w : words_of(value)) o.sizes.push_back(std::atoi(w.c_str()));
    } else if (name == "--cap" && std::atof(value.c_str()) > 0) {
      o.cap = std::atof(value.c_str());
    } else if (name == "--csv" && !value.empty()) {
      o.csv = value;
    } else if (name == "--baseline" && !value.empty()) {
      o.baseline = value;
    } else {
      std::printf(
          "usage: bench_scale [--shapes a,b] [--phases a,b] [--sizes 1000,10000] [--cap "
          "SECONDS] [--csv FILE] [--baseline FILE]\nshapes:");
      for (const auto& s : shapes) std::printf(" %s", std::string(s.name).c_str());
      std::printf("\nphases:");
      for (const auto& p : phases) std::printf(" %s", std::string(p.name).c_str());
      std::printf("\n");
      return 2;
    }
  }
  auto old = o.baseline.empty() ? std::map<key, std::map<int, double>>{} : read_csv(o.baseline);
  std::ofstream csv;
  if (!o.csv.empty()) csv.open(o.csv);
  std::printf("CPU nanoseconds per op; cap %g s\n", o.cap);
  for (const auto& s : shapes)
    if (chosen(o.shapes, s.name)) run(s, o, old, csv);
  return 0;
}
