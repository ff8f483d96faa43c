/// Lists every public function, constant and type of the headers that users include, one per line:
/// the second part of include/partita/README.md.
///
///   signatures include/partita            compares; prints the lines that differ and fails
///   signatures include/partita --write    writes the list
///
/// The reader knows the style of this library, not all of C++. It expands macros of a header that
/// make functions and drops bodies. It skips private names (a namespace whose name ends in "detail"
/// or is "separate", members after `private:`) and functions whose body begins with a static error.
#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <map>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace {

std::string read(const std::filesystem::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

bool is_name(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
bool is_blank(char c) { return std::isspace(static_cast<unsigned char>(c)) != 0; }

/// Returns the end of the literal that begins at i.
std::size_t end_of_literal(std::string_view s, std::size_t i) {
  if (i > 0 && s[i - 1] == 'R' && s[i] == '"') {
    const std::size_t open = s.find('(', i);
    const std::string close = ')' + std::string(s.substr(i + 1, open - i - 1)) + '"';
    return s.find(close, open) + close.size();
  }
  std::size_t j = i + 1;
  while (j < s.size() && s[j] != s[i]) j += s[j] == '\\' ? 2 : 1;
  return j + 1;
}
bool begins_literal(std::string_view s, std::size_t i) {
  if (s[i] == '"') return true;
  return s[i] == '\'' && (i == 0 || std::isdigit(static_cast<unsigned char>(s[i - 1])) == 0);
}

std::string without_comments(std::string_view s) {
  std::string out;
  for (std::size_t i = 0; i < s.size();) {
    if (begins_literal(s, i)) {
      const std::size_t end = end_of_literal(s, i);
      out += s.substr(i, end - i);
      i = end;
    } else if (s.substr(i, 2) == "//") {
      i = std::min(s.find('\n', i), s.size());
    } else if (s.substr(i, 2) == "/*") {
      i = s.find("*/", i) + 2;
    } else {
      out += s[i++];
    }
  }
  return out;
}

/// Returns the end of the bracket that begins at i.
std::size_t end_of_brackets(std::string_view s, std::size_t i) {
  int depth = 0;
  while (i < s.size()) {
    if (begins_literal(s, i)) {
      i = end_of_literal(s, i);
      continue;
    }
    const char c = s[i++];
    if (c == '(' || c == '{' || c == '[') ++depth;
    if ((c == ')' || c == '}' || c == ']') && --depth == 0) return i;
  }
  return i;
}
/// The same for the parameters of a template.
std::size_t end_of_angles(std::string_view s, std::size_t i) {
  int depth = 0;
  while (i < s.size()) {
    if (s[i] == '(' || s[i] == '{' || s[i] == '[') {
      i = end_of_brackets(s, i);
      continue;
    }
    const char c = s[i++];
    if (c == '<') ++depth;
    if (c == '>' && --depth == 0) return i;
  }
  return i;
}

std::string trimmed(std::string_view s) {
  while (!s.empty() && is_blank(s.front())) s.remove_prefix(1);
  while (!s.empty() && is_blank(s.back())) s.remove_suffix(1);
  return std::string(s);
}

/// Returns the arguments of a macro, the text between its parentheses.
std::vector<std::string> arguments_of(std::string_view s) {
  std::vector<std::string> out;
  std::size_t begin = 0;
  for (std::size_t i = 0; i <= s.size();) {
    if (i < s.size() && (s[i] == '(' || s[i] == '{')) {
      i = end_of_brackets(s, i);
    } else if (i == s.size() || s[i] == ',') {
      out.push_back(trimmed(s.substr(begin, i - begin)));
      begin = ++i;
    } else {
      ++i;
    }
  }
  return out;
}

struct macro {
  std::vector<std::string> parameters;
  std::string body;
};

std::string expanded(const macro& m, const std::vector<std::string>& arguments) {
  std::string out;
  for (std::size_t i = 0; i < m.body.size();) {
    std::size_t end = i;
    while (end < m.body.size() && is_name(m.body[end])) ++end;
    const std::string word = m.body.substr(i, end - i);
    const auto found = std::find(m.parameters.begin(), m.parameters.end(), word);
    const auto at = static_cast<std::size_t>(found - m.parameters.begin());
    if (end == i)
      out += m.body[i++];
    else
      out += found == m.parameters.end() ? word : at < arguments.size() ? arguments[at] : "";
    if (end > i) i = end;
  }
  for (std::size_t at; (at = out.find("##")) != std::string::npos;) {
    std::size_t end = at + 2;
    while (at > 0 && is_blank(out[at - 1])) --at;
    while (end < out.size() && is_blank(out[end])) ++end;
    out.erase(at, end - at);
  }
  return out;
}

/// Returns the text of a header without directives and with its own macros expanded.
std::string preprocessed(std::string text) {
  for (std::size_t at; (at = text.find("\\\n")) != std::string::npos;) text.replace(at, 2, "  ");
  std::map<std::string, macro> macros;
  std::istringstream lines(text);
  std::string out;
  for (std::string line; std::getline(lines, line);) {
    if (trimmed(line).starts_with('#')) {
      const std::string_view define = "#define ";
      const std::size_t open = line.find('(');
      if (!line.starts_with(define) || open == std::string::npos) continue;
      const std::string name = line.substr(define.size(), open - define.size());
      if (!std::all_of(name.begin(), name.end(), is_name)) continue;
      const std::size_t close = end_of_brackets(line, open);
      macros[name] = {arguments_of(line.substr(open + 1, close - open - 2)), line.substr(close)};
      continue;
    }
    out += line + '\n';
  }
  for (bool again = true; again;) {
    again = false;
    for (const auto& [name, m] : macros) {
      for (std::size_t at = 0; (at = out.find(name + '(', at)) != std::string::npos;) {
        if (at > 0 && is_name(out[at - 1])) {
          ++at;
          continue;
        }
        const std::size_t open = at + name.size(), close = end_of_brackets(out, open);
        out.replace(at, close - at,
                    expanded(m, arguments_of(out.substr(open + 1, close - open - 2))));
        again = true;
      }
    }
  }
  return out;
}

/// True if the text begins with the `<` of a template's arguments.
bool opens_arguments(std::string_view s) {
  return s.size() > 1 && s.back() == '<' && is_name(s[s.size() - 2]);
}
/// Replaces blanks by one blank, and by none where none is needed.
std::string one_line(std::string_view s) {
  std::string out;
  for (const char c : s) {
    if (!is_blank(c))
      out += c;
    else if (!out.empty() && out.back() != ' ' && out.back() != '(' && !opens_arguments(out))
      out += ' ';
  }
  constexpr std::string_view unused = "[[maybe_unused]] ";
  for (std::size_t at; (at = out.find(unused)) != std::string::npos;) out.erase(at, unused.size());
  return trimmed(out);
}

bool starts_with_word(std::string_view s, std::string_view word) {
  return s.starts_with(word) && (s.size() == word.size() || !is_name(s[word.size()]));
}

/// Removes specifiers before a declaration that do not matter to callers.
std::string without_specifiers(std::string s) {
  for (bool again = true; again;) {
    again = false;
    for (const std::string_view word :
         {"constexpr", "inline", "static", "consteval", "explicit", "virtual", "PARTITA_LINKAGE"})
      if (starts_with_word(s, word)) {
        s = trimmed(std::string_view(s).substr(word.size()));
        again = true;
      }
    if (s.starts_with("[[")) {
      s = trimmed(std::string_view(s).substr(end_of_brackets(s, 0)));
      again = true;
    }
  }
  return s;
}

/// Returns the start of the name that s declares: the word before the parameters, or the last word.
std::size_t place_of_name(std::string_view s) {
  std::size_t begin = 0;
  while (starts_with_word(s.substr(begin), "template")) {
    begin = end_of_angles(s, s.find('<', begin));
    while (begin < s.size() && is_blank(s[begin])) ++begin;
  }
  std::size_t end = s.find("operator", begin);
  if (end != std::string_view::npos) return end;
  for (end = begin; end < s.size() && s[end] != '(';)
    end = s[end] == '<' ? end_of_angles(s, end) : end + 1;
  while (end > begin && !is_name(s[end - 1])) --end;
  while (end > begin && is_name(s[end - 1])) --end;
  return end;
}
void insert_in_front_of_name(std::string& s, const std::string& prefix) {
  s.insert(place_of_name(s), prefix);
}

/// Reads the declarations of one header.
class reader {
 public:
  explicit reader(std::string text) : text_(std::move(text)) {}

  std::vector<std::string> signatures() {
    scope("", false);
    return std::move(found_);
  }

 private:
  void skip_blanks() {
    while (at_ < text_.size() && (is_blank(text_[at_]) || text_[at_] == ';')) ++at_;
  }
  std::string_view rest() const { return std::string_view(text_).substr(at_); }

  /// Reads a namespace up to its end; `prefix` precedes its names.
  void scope(const std::string& prefix, bool hidden) {
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) return;
      if (text_[at_] == '}') {
        ++at_;
        return;
      }
      if (starts_with_word(rest(), "namespace") || starts_with_word(rest(), "inline namespace"))
        inner_scope(prefix, hidden);
      else
        declaration(prefix, hidden);
    }
  }

  void inner_scope(const std::string& prefix, bool hidden) {
    const std::size_t open = text_.find_first_of("{=", at_);
    std::string name = trimmed(std::string_view(text_).substr(at_, open - at_));
    at_ = open + 1;
    if (text_[open] == '=') {  // an alias
      at_ = text_.find(';', at_);
      return;
    }
    name = trimmed(std::string_view(name).substr(name.find("namespace") + 9));
    if (name.starts_with("partita::"))
      name = name.substr(9);
    else if (name == "partita")
      name.clear();
    const bool is_private = name.empty() ? false : name.ends_with("detail") || name == "separate";
    scope(name.empty() ? prefix : prefix + name + "::", hidden || is_private);
  }

  /// Reads one declaration, including its body.
  void declaration(const std::string& prefix, bool hidden) {
    std::string head, requirement;  // template <...>, and its constraint
    while (starts_with_word(rest(), "template")) {
      const std::size_t end = end_of_angles(text_, text_.find('<', at_));
      head += one_line(std::string_view(text_).substr(at_, end - at_)) + ' ';
      at_ = end;
      skip_blanks();
      if (starts_with_word(rest(), "requires")) requirement += ' ' + requires_clause();
      skip_blanks();
    }
    if (starts_with_word(rest(), "struct") || starts_with_word(rest(), "class"))
      return type(prefix, head, hidden);
    const std::size_t begin = at_;
    const bool is_type = type_like();
    std::size_t end = std::string::npos;  // of the text that is shown
    bool parameters = false;
    for (;;) {
      if (at_ >= text_.size()) return;
      const char c = text_[at_];
      if (begins_literal(text_, at_)) {
        at_ = end_of_literal(text_, at_);
      } else if (starts_with_word(rest(), "requires") && !is_name(text_[at_ - 1])) {
        if (end == std::string::npos) end = at_;
        requirement += ' ' + requires_clause();
      } else if (starts_with_word(rest(), "operator") && !is_name(text_[at_ - 1])) {
        at_ = operator_name();
      } else if (c == '(' || c == '[') {
        parameters = parameters || c == '(';
        at_ = end_of_brackets(text_, at_);
      } else if (c == '<') {
        at_ = end_of_angles(text_, at_);
      } else if (c == ';') {
        if (end == std::string::npos) end = at_;
        break;
      } else if (c == ':' && parameters && text_[at_ + 1] != ':' && text_[at_ - 1] != ':') {
        if (end == std::string::npos) end = at_;
        skip_initializers();
      } else if (c == '=') {
        if (end == std::string::npos) end = at_;
        at_ = end_of_value(at_);
        break;
      } else if (c == '{') {
        if (end == std::string::npos) end = at_;
        hidden = hidden || refuses(at_ + 1);
        at_ = end_of_brackets(text_, at_);
        break;
      } else {
        ++at_;
      }
    }
    if (hidden || is_type) return;
    add(prefix, head, std::string_view(text_).substr(begin, end - begin), requirement);
  }

  /// True if a body begins with a static error, so that every call is a mistake.
  bool refuses(std::size_t body) const {
    while (body < text_.size() && is_blank(text_[body])) ++body;
    return starts_with_word(std::string_view(text_).substr(body), "report_static_error");
  }
  bool type_like() const {
    for (const std::string_view word : {"struct", "class", "enum", "union", "using", "concept",
                                        "static_assert", "friend", "typedef", "extern"})
      if (starts_with_word(rest(), word)) return true;
    return false;
  }
  /// Skips the text between the parameters of a constructor and its body.
  void skip_initializers() {
    for (char next = ','; next == ',';) {
      ++at_;
      skip_blanks();
      while (text_[at_] != '(' && text_[at_] != '{')
        at_ = text_[at_] == '<' ? end_of_angles(text_, at_) : at_ + 1;
      at_ = end_of_brackets(text_, at_);
      skip_blanks();
      next = text_[at_];
    }
  }
  /// Reads a struct or class: a line with its fields, then its public functions.
  void type(const std::string& prefix, const std::string& head, bool hidden) {
    bool visible = starts_with_word(rest(), "struct");
    const std::size_t begin = at_;
    while (text_[at_] != '{' && text_[at_] != ';')
      at_ = text_[at_] == '<' ? end_of_angles(text_, at_) : at_ + 1;
    if (text_[at_] == ';') return;
    std::string name = one_line(std::string_view(text_).substr(begin, at_ - begin));
    name = name.substr(name.find(' ') + 1);
    for (const std::string_view mark : {" final", " :"}) name = name.substr(0, name.find(mark));
    const std::size_t close = end_of_brackets(text_, at_);
    if (hidden || name.find('<') != std::string::npos) {  // (or a specialization)
      at_ = close;
      return;
    }
    reader inside(text_.substr(at_ + 1, close - at_ - 2));
    at_ = close;
    const std::size_t line = found_.size();
    found_.emplace_back();
    std::string fields;
    inside.members(visible, fields);
    found_[line] = head + "struct " + prefix + name + (fields.empty() ? "" : " {" + fields + " }");
    for (std::string& f : inside.found_) {
      const std::string qualified = prefix + name + "::";
      insert_in_front_of_name(f, qualified);
      found_.push_back(std::move(f));
    }
  }
  /// Reads the members of a type: collects `fields` in one line and lists functions.
  void members(bool visible, std::string& fields) {
    for (;;) {
      skip_blanks();
      if (at_ >= text_.size()) return;
      bool label = false;
      for (const std::string_view word : {"public", "private", "protected"}) {
        if (!starts_with_word(rest(), word)) continue;
        visible = word == "public";
        at_ = text_.find(':', at_) + 1;
        label = true;
      }
      if (label) continue;
      if (starts_with_word(rest(), "BOOST_HANA_DEFINE_STRUCT")) {
        const std::size_t open = text_.find('(', at_);
        at_ = end_of_brackets(text_, open);
        const auto pairs = arguments_of(std::string_view(text_).substr(open + 1, at_ - open - 2));
        for (std::size_t i = 1; i < pairs.size(); ++i) {
          std::string pair = one_line(pairs[i].substr(1, pairs[i].size() - 2));
          fields += ' ' + pair.replace(pair.rfind(','), 1, "") + ';';
        }
        continue;
      }
      if (type_like() || starts_with_word(rest(), "struct") || starts_with_word(rest(), "class")) {
        declaration("", true);
        continue;
      }
      const std::size_t begin = at_, count = found_.size();
      declaration("", !visible);
      if (found_.size() == count) continue;
      const std::string& s = found_.back();
      const bool data =
          s.find("(*") != std::string::npos || s.find("std::function<") != std::string::npos;
      if (s.find('(') != std::string::npos && !data) {
        const bool noise = s.starts_with('~') || s.find("operator=") != std::string::npos ||
                           s.find("operator!=") != std::string::npos;
        if (noise) found_.pop_back();
        continue;
      }
      found_.pop_back();
      if (!starts_with_word(std::string_view(text_).substr(begin), "static"))
        fields += ' ' + one_line(std::string_view(text_).substr(begin, at_ - begin)) + ';';
    }
  }
  std::size_t operator_name() const {
    std::size_t i = at_ + 8;
    while (is_blank(text_[i])) ++i;
    if (text_[i] == '(') return i + 2;
    return text_.find('(', i);
  }
  /// Reads `requires` and a disjunction of names, calls and expressions in parentheses or braces.
  std::string requires_clause() {
    const std::size_t begin = at_;
    at_ += 8;
    for (bool operand = true;;) {
      skip_blanks();
      if (operand) {
        if (text_[at_] == '!') ++at_;
        if (starts_with_word(rest(), "requires")) {
          at_ += 8;
          skip_blanks();
          if (text_[at_] == '(') at_ = end_of_brackets(text_, at_);
          skip_blanks();
        }
        if (text_[at_] == '(' || text_[at_] == '{') {
          at_ = end_of_brackets(text_, at_);
        } else {
          while (is_name(text_[at_]) || text_[at_] == ':') ++at_;
          if (text_[at_] == '<') at_ = end_of_angles(text_, at_);
          while (text_[at_] == ':' || (is_name(text_[at_]) && text_[at_ - 1] == ':')) {
            while (is_name(text_[at_]) || text_[at_] == ':') ++at_;
          }
        }
        operand = false;
      } else if (rest().starts_with("&&") || rest().starts_with("||")) {
        at_ += 2;
        operand = true;
      } else {
        return one_line(std::string_view(text_).substr(begin, at_ - begin));
      }
    }
  }
  std::size_t end_of_value(std::size_t i) const {
    while (i < text_.size() && text_[i] != ';') {
      if (text_[i] == '(' || text_[i] == '{' || text_[i] == '[')
        i = end_of_brackets(text_, i);
      else if (begins_literal(text_, i))
        i = end_of_literal(text_, i);
      else
        ++i;
    }
    return i;
  }

  void add(const std::string& prefix, std::string head, std::string_view declared,
           const std::string& requirement) {
    std::string s = without_specifiers(one_line(declared));
    if (s.empty() || s.find("operator\"\"") == 0) return;
    if (s.find(") -> ") != std::string::npos && !s.starts_with("auto "))
      return;  // a deduction guide
    if (const std::size_t at = place_of_name(s); at > 1 && s[at - 1] == ':') return;  // of a class
    insert_in_front_of_name(s, prefix);
    if (head == "template <> ") return;  // a specialization
    s = head + s;
    if (requirement.find("detail::") == std::string::npos) s += requirement;
    if (std::find(found_.begin(), found_.end(), s) == found_.end()) found_.push_back(s);
  }

  std::string text_;
  std::size_t at_ = 0;
  std::vector<std::string> found_;
};

/// Folders whose headers users include, and further headers.
constexpr std::string_view listed[] = {"dsl",
                                       "dsl/nn",
                                       "schedule",
                                       "report",
                                       "run",
                                       "files.hpp",
                                       "run/file/load.hpp",
                                       "run/file/named_array.hpp",
                                       "code.hpp",
                                       "backend/code/write_cpp.hpp",
                                       "backend/code/compiled.hpp",
                                       "mpi.hpp",
                                       "emulated.hpp",
                                       "xla.hpp",
                                       "backend/sharded_state.hpp",
                                       "backend/stateful.hpp",
                                       "backend/emulated.hpp",
                                       "backend/xla/client.hpp",
                                       "backend/xla/compiled.hpp",
                                       "backend/xla/part.hpp",
                                       "backend/xla/executable.hpp",
                                       "backend/mpi/options.hpp",
                                       "backend/mpi/world.hpp",
                                       "backend/mpi/executable.hpp",
                                       "checkpoint.hpp",
                                       "backend/checkpoint/save.hpp",
                                       "backend/checkpoint/reader.hpp",
                                       "backend/checkpoint/manifest.hpp",
                                       "backend/checkpoint/global_arrays.hpp",
                                       "search/automatic.hpp",
                                       "search/result.hpp",
                                       "search/environment.hpp",
                                       "search/searchers.hpp",
                                       "search/greedy_search.hpp",
                                       "search/neighbor_search.hpp",
                                       "search/tree_search.hpp",
                                       "cost/device.hpp",
                                       "cost/simulate.hpp",
                                       "cost/overlap.hpp",
                                       "prove/prove.hpp",
                                       "mpmd/topology.hpp",
                                       "mpmd/assign.hpp",
                                       "mpmd/mpmd_program.hpp",
                                       "mpmd/print_mpmd.hpp",
                                       "mpmd/pipeline.hpp",
                                       "mpmd/pipelined.hpp",
                                       "mpmd/pipeline_tactic.hpp",
                                       "mpmd/pipeline_order.hpp",
                                       "mpmd/list_schedule.hpp",
                                       "mpmd/read_order.hpp",
                                       "mpmd/stage_list.hpp",
                                       "mpmd/cluster_design.hpp",
                                       "mpmd/check_pipeline.hpp",
                                       "mpmd/print_pipeline.hpp",
                                       "mpmd/prove_pipeline.hpp",
                                       "mpmd/replicated_on_meshes.hpp",
                                       "mpmd/pipeline_memory.hpp",
                                       "mpmd/pipeline_time.hpp",
                                       "mpmd/order_search.hpp",
                                       "mpmd/timeline.hpp",
                                       "mpmd/merge.hpp",
                                       "mpmd/remat.hpp",
                                       "mpmd/exported.hpp",
                                       "mpmd/print_calls.hpp",
                                       "mpmd/write_functions.hpp",
                                       "spec/schedule.hpp",
                                       "spec/pipeline.hpp",
                                       "spec/system.hpp",
                                       "spec/system_description.hpp",
                                       "spec/designs.hpp",
                                       "spec/bounds.hpp",
                                       "spec/shardings.hpp",
                                       "stablehlo/read.hpp",
                                       "stablehlo/read_local.hpp",
                                       "stablehlo/write.hpp",
                                       "stablehlo/write_local.hpp",
                                       "stablehlo/write_annotated.hpp",
                                       "ir/shape.hpp",
                                       "ir/mesh.hpp",
                                       "ir/print.hpp",
                                       "ir/value_names.hpp",
                                       "ir/verify.hpp",
                                       "ir/equivalent.hpp",
                                       "op/parse.hpp",
                                       "op/tile_map_text.hpp",
                                       "core/action_text.hpp",
                                       "core/print_core.hpp",
                                       "spmd/parse.hpp",
                                       "spmd/parse_layout.hpp",
                                       "spmd/verify.hpp",
                                       "support/error.hpp"};

std::vector<std::string> headers_of(const std::filesystem::path& root) {
  std::vector<std::string> out;
  for (const std::string_view name : listed) {
    if (!std::filesystem::exists(root / name))
      throw std::runtime_error("there is no " + (root / name).string());
    if (!std::filesystem::is_directory(root / name)) {
      out.emplace_back(name);
      continue;
    }
    std::vector<std::string> found;
    for (const auto& entry : std::filesystem::directory_iterator(root / name))
      if (entry.path().extension() == ".hpp" && !entry.path().stem().string().ends_with("_body"))
        found.push_back(entry.path().lexically_relative(root).generic_string());
    std::sort(found.begin(), found.end());
    out.insert(out.end(), found.begin(), found.end());
  }
  return out;
}

std::string signatures_of(const std::filesystem::path& root) {
  std::string out;
  for (const std::string& header : headers_of(root)) {
    const auto found = reader(preprocessed(without_comments(read(root / header)))).signatures();
    if (found.empty()) continue;
    out += "\n### `" + header + "`\n\n```\n";
    for (const std::string& line : found) out += line + '\n';
    out += "```\n";
  }
  return out;
}

/// Prints the lines in which the page differs from the headers.
bool same(const std::string& page, const std::string& wanted) {
  const auto lines_of = [](const std::string& s) {
    std::istringstream in(s);
    std::vector<std::string> lines;
    for (std::string line; std::getline(in, line);) lines.push_back(line);
    return lines;
  };
  const auto old_lines = lines_of(page), new_lines = lines_of(wanted);
  const std::set<std::string> before(old_lines.begin(), old_lines.end()),
      now(new_lines.begin(), new_lines.end());
  for (const std::string& line : old_lines)
    if (!now.contains(line)) std::cerr << "no header has   " << line << '\n';
  for (const std::string& line : new_lines)
    if (!before.contains(line)) std::cerr << "the page lacks  " << line << '\n';
  return page == wanted;
}

constexpr std::string_view mark = "<!-- From here on written by tests/signatures. -->\n";

}  // namespace

int main(int count, char** arguments) try {
  const std::vector<std::string> words(arguments + 1, arguments + count);
  if (words.empty() || words.size() > 2 || (words.size() == 2 && words[1] != "--write")) {
    std::cerr << "signatures FOLDER [--write]\n";
    return 2;
  }
  const std::filesystem::path file = std::filesystem::path(words[0]) / "README.md";
  const std::string page = read(file);
  const std::size_t at = page.find(mark);
  if (at == std::string::npos)
    throw std::runtime_error(file.string() + " has no line " + std::string(mark));
  const std::string wanted = page.substr(0, at + mark.size()) + signatures_of(words[0]);
  if (words.size() == 2) {
    std::ofstream(file) << wanted;
    return 0;
  }
  if (same(page, wanted)) return 0;
  std::cerr << "write it anew: cmake --build BUILD --target write_signatures\n";
  return 1;
} catch (const std::exception& e) {
  std::cerr << "signatures: " << e.what() << '\n';
  return 2;
}
