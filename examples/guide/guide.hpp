/// Checks that a chapter of the guide shows what its program prints and draws.
#pragma once

#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <string_view>

#include <partita/support/text.hpp>

namespace guide {

/// `count` lines of a text, after the first `skipped` ones, and a line of dots for the others.
inline std::string some_lines(const partita::text& text, int count, int skipped = 0) {
  std::string out, line;
  std::istringstream lines{std::string(text.view())};
  for (int i = 0; std::getline(lines, line); ++i) {
    if (i == skipped + count) return out + "...\n";
    if (i >= skipped) out += line + '\n';
  }
  return out;
}

/// The printed texts and pictures of one chapter.
///
/// While a page exists, it collects what the program writes to `std::cout`, and wraps long lines,
/// because the lines of a chapter have at most 120 columns. With the argument
/// `--write`, pictures are written to examples/guide/pictures; otherwise they are compared with the
/// files there.
class page {
 public:
  page(int argc, char** argv)
      : writes_(argc > 1 && argv[1] == std::string_view("--write")),
        console_(std::cout.rdbuf(collected_.rdbuf())) {}
  page(const page&) = delete;
  page& operator=(const page&) = delete;
  ~page() { std::cout.rdbuf(console_); }

  /// Compares what has been printed since the last call with the text in the chapter.
  void shows(std::string_view expected) {
    const std::string printed = wrapped(collected_.str());
    collected_.str("");
    std::ostream(console_) << printed << '\n' << std::flush;
    if (printed == expected) return;
    fail("the program prints another text than the chapter shows:\n" + std::string(expected));
  }
  /// Writes or compares a picture, the SVG text of a function of `partita/report`.
  void picture(const std::string& name, const partita::text& svg) {
    const std::string path = std::string(PARTITA_SOURCE_DIR) + "/examples/guide/pictures/" + name;
    if (writes_) {
      std::ofstream(path, std::ios::binary) << svg.view();
      return;
    }
    std::ifstream file(path, std::ios::binary);
    const std::string committed{std::istreambuf_iterator<char>(file), {}};
    if (committed == svg.view()) return;
    fail(path +
         " is not the picture that the library draws now; run this program with --write and "
         "look at the picture");
  }
  /// Records a failure unless a condition holds.
  void expect(bool holds, const std::string& what) {
    if (!holds) fail("not true: " + what);
  }
  /// The exit status: 0 if there was no failure.
  int result() const { return failures_ == 0 ? 0 : 1; }

 private:
  static constexpr std::size_t widest = 116;

  /// Breaks lines of more than `widest` characters at spaces; continuations are indented by eight.
  static std::string wrapped(const std::string& text) {
    std::string out, line;
    std::istringstream lines(text);
    while (std::getline(lines, line)) {
      for (std::size_t at; line.size() > widest; line = std::string(8, ' ') + line.substr(at + 1)) {
        at = line.rfind(' ', widest);
        if (at == std::string::npos || at <= 8) break;
        out += line.substr(0, at) + '\n';
      }
      out += line + '\n';
    }
    return out;
  }
  void fail(const std::string& message) {
    ++failures_;
    std::cerr << message << '\n';
  }

  bool writes_;
  std::ostringstream collected_;
  std::streambuf* console_;
  int failures_ = 0;
};

}  // namespace guide
