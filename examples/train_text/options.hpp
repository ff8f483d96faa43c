/// Command line of train_text.
#pragma once

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdint>
#include <iomanip>
#include <ostream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

struct options {
  std::int64_t layers = 2, width = 64, heads = 4, context = 64, batch = 32, steps = 600;
  double rate = 2e-3;
  std::int64_t mesh_b = 4, mesh_m = 2;
  std::vector<std::string> schedule{"BP", "MP", "Z3"};
  std::int64_t seed = 1, threads = 0, sample = 500;
  double temperature = 0.8;
  std::string prompt = "The ";
  std::string text;  ///< a file; if empty, the license texts of this machine
  bool help = false;
};

/// A mistake on the command line: the option, its value, and what is allowed.
class usage_error : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

namespace command_line {

[[noreturn]] inline void refuse(std::string_view option, std::string_view value,
                                std::string_view allowed) {
  throw usage_error("option " + std::string(option) + ": \"" + std::string(value) +
                    "\" is not allowed; give " + std::string(allowed));
}

template <class Number>
bool parse_number(std::string_view s, Number& out) {
  const auto [end, problem] = std::from_chars(s.data(), s.data() + s.size(), out);
  return problem == std::errc() && end == s.data() + s.size();
}

/// One option: its name, the placeholder and meaning of its value, and the member it sets.
struct entry {
  std::string_view name, value, meaning;
  std::int64_t options::*whole = nullptr;
  std::int64_t least = 0, most = 0;
  double options::*real = nullptr;
  double above = 0, up_to = 0;
};

// The bounds keep sizes small enough for a laptop, and their products without overflow.
inline constexpr std::array entries{
    entry{"--text", "FILE", "text to learn (default: /usr/share/common-licenses)"},
    entry{"--layers", "N", "transformer layers", &options::layers, 1, 64},
    entry{"--width", "N", "size of the residual stream", &options::width, 4, 4096},
    entry{"--heads", "N", "attention heads; they divide the width", &options::heads, 1, 256},
    entry{"--context", "N", "characters that the model sees", &options::context, 2, 4096},
    entry{"--batch", "N", "sequences per step", &options::batch, 1, 4096},
    entry{"--steps", "N", "training steps", &options::steps, 1, 1000000},
    entry{"--rate", "X", "learning rate of Adam", nullptr, 0, 0, &options::rate, 0, 1},
    entry{"--mesh", "BxM", "devices along axes \"B\" and \"M\""},
    entry{"--schedule", "LIST", "tactics in order, of BP, MP, Z2, Z3; or none"},
    entry{"--seed", "N", "of initial values, batches and sample", &options::seed, 0, 1000000000},
    entry{"--threads", "N", "threads (0: one per core)", &options::threads, 0, 256},
    entry{"--sample", "N", "characters to write after the training", &options::sample, 0, 100000},
    entry{"--prompt", "TEXT", "the beginning of the sample"},
    entry{"--temperature", "X", "of the sample; low is cautious", nullptr, 0, 0,
          &options::temperature, 0, 100},
};

inline std::string number(double x) {
  std::string s = std::to_string(x);
  s.erase(s.find_last_not_of('0') + 1);
  if (s.back() == '.') s.pop_back();
  return s;
}

inline std::string join(const std::vector<std::string>& list) {
  std::string out;
  for (const auto& s : list) out += (out.empty() ? "" : ",") + s;
  return out.empty() ? "none" : out;
}

inline void print_help(std::ostream& out) {
  const options defaults;
  out << "train_text: trains a small transformer on text, partitioned over an emulated device "
         "mesh\n"
         "beside the unpartitioned program, and compares their losses.\n\noptions:\n";
  for (const entry& e : entries) {
    std::string shown = "  " + std::string(e.name) + ' ' + std::string(e.value);
    out << std::left << std::setw(22) << shown << e.meaning;
    if (e.whole) out << " (default: " << defaults.*e.whole << ')';
    if (e.real) out << " (default: " << number(defaults.*e.real) << ')';
    if (e.name == "--mesh")
      out << " (default: " << defaults.mesh_b << 'x' << defaults.mesh_m << ')';
    if (e.name == "--prompt") out << " (default: \"" << defaults.prompt << "\")";
    if (e.name == "--schedule") out << " (default: " << join(defaults.schedule) << ')';
    out << '\n';
  }
  out << "  --help              this text\n\n"
         "exit status: 0 success, 1 the losses differ or do not fall, 2 a wrong option or input\n";
}

inline void set_mesh(options& o, std::string_view value) {
  const auto x = value.find('x');
  if (x == value.npos || !parse_number(value.substr(0, x), o.mesh_b) ||
      !parse_number(value.substr(x + 1), o.mesh_m) || o.mesh_b < 1 || o.mesh_m < 1 ||
      o.mesh_b > 256 || o.mesh_m > 256 || o.mesh_b * o.mesh_m > 256)
    refuse("--mesh", value, "two sizes from 1, at most 256 devices in all, as in 4x2");
}

inline void set_schedule(options& o, std::string_view value) {
  o.schedule.clear();
  if (value == "none") return;
  for (std::string_view rest = value; !rest.empty() || o.schedule.empty();) {
    const auto comma = rest.find(',');
    const std::string one(rest.substr(0, comma));
    const bool known = one == "BP" || one == "MP" || one == "Z2" || one == "Z3";
    if (!known || std::count(o.schedule.begin(), o.schedule.end(), one) > 0 ||
        comma == rest.size() - 1)
      refuse("--schedule", value, "none, or some of BP, MP, Z2, Z3 once each, as in BP,MP,Z3");
    o.schedule.push_back(one);
    rest = comma == rest.npos ? std::string_view() : rest.substr(comma + 1);
  }
  const auto has = [&](std::string_view t) {
    return std::count(o.schedule.begin(), o.schedule.end(), t) > 0;
  };
  if (has("Z2") && has("Z3"))
    refuse("--schedule", value,
           "either Z2 or Z3: Z2 keeps the parameters replicated, Z3 shards them");
}

inline void set(options& o, const entry& e, std::string_view value) {
  if (e.whole) {
    std::int64_t v = 0;
    if (!parse_number(value, v) || v < e.least || v > e.most)
      refuse(e.name, value,
             "a whole number from " + std::to_string(e.least) + " to " + std::to_string(e.most));
    o.*e.whole = v;
  } else if (e.real) {
    double v = 0;
    if (!parse_number(value, v) || !(v > e.above) || !(v <= e.up_to))
      refuse(e.name, value, "a number above " + number(e.above) + ", up to " + number(e.up_to));
    o.*e.real = v;
  } else if (e.name == "--mesh") {
    set_mesh(o, value);
  } else if (e.name == "--schedule") {
    set_schedule(o, value);
  } else if (e.name == "--prompt") {
    if (value.empty()) refuse(e.name, value, "at least one character");
    o.prompt = value;
  } else {
    if (value.empty()) refuse(e.name, value, "the name of a file");
    o.text = value;
  }
}

/// Checks the options against each other. The engine checks the same, but here errors name the
/// option.
inline void check_together(const options& o) {
  const auto multiple = [](std::string_view name, std::int64_t value, std::int64_t of,
                           std::string_view why) {
    if (value % of != 0)
      refuse(name, std::to_string(value),
             "a multiple of " + std::to_string(of) + ", " + std::string(why));
  };
  multiple("--width", o.width, o.heads, "the number of heads");
  for (const auto& tactic : o.schedule) {
    if (tactic == "BP") multiple("--batch", o.batch, o.mesh_b, "the size of mesh axis \"B\"");
    if (tactic == "MP") multiple("--heads", o.heads, o.mesh_m, "the size of mesh axis \"M\"");
  }
}

inline options parse(const std::vector<std::string>& arguments) {
  options o;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    std::string_view name = arguments[i], value;
    if (name == "--help" || name == "-h") {
      o.help = true;
      return o;
    }
    const auto equals = name.find('=');
    const bool joined = name.starts_with("--") && equals != name.npos;
    if (joined) value = name.substr(equals + 1), name = name.substr(0, equals);
    const auto found = std::find_if(entries.begin(), entries.end(),
                                    [&](const entry& e) { return e.name == name; });
    if (found == entries.end()) {
      std::string known;
      for (const entry& e : entries) known += std::string(e.name) + ", ";
      throw usage_error("option \"" + std::string(name) + "\" is unknown; known: " + known +
                        "--help");
    }
    if (!joined) {
      if (++i == arguments.size())
        throw usage_error("option " + std::string(name) + " needs a value: " + std::string(name) +
                          ' ' + std::string(found->value));
      value = arguments[i];
    }
    set(o, *found, value);
  }
  check_together(o);
  if (o.threads == 0)
    o.threads = std::clamp<std::int64_t>(std::thread::hardware_concurrency(), 1, 256);
  return o;
}

}  // namespace command_line
