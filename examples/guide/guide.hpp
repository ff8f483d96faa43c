/// Checks that a chapter of the guide shows what its program prints and draws.
#pragma once

#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <source_location>
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
/// because the lines of a chapter have at most 120 columns. It compares texts with those in the
/// program, and pictures with the files in examples/guide/pictures. With the argument `--write` it
/// replaces them instead: pictures, texts in the program, and the same texts in the chapter.
class page {
 public:
  page(int argc, char** argv)
      : writes_(argc > 1 && argv[1] == std::string_view("--write")),
        console_(std::cout.rdbuf(collected_.rdbuf())) {}
  page(const page&) = delete;
  page& operator=(const page&) = delete;
  ~page() { std::cout.rdbuf(console_); }

  /// Compares what has been printed since the last call with the text in the chapter.
  ///
  /// `where`: the chapter's program, examples/guide/chapter_N.cpp. Its page is N_*.md beside it.
  void shows(std::string_view expected,
             const std::source_location& where = std::source_location::current()) {
    const std::string printed = wrapped(collected_.str());
    collected_.str("");
    std::ostream(console_) << printed << '\n' << std::flush;
    if (printed == expected) return;
    if (writes_) {
      const std::filesystem::path program = where.file_name();  // chapter_N.cpp
      const std::string old(expected);
      replace(program, "R\"(" + old + ")\"", "R\"(" + printed + ")\"");
      const std::string chapter = program.stem().string().substr(8) + '_';
      for (const auto& file : std::filesystem::directory_iterator(program.parent_path()))
        if (file.path().extension() == ".md" &&
            file.path().filename().string().substr(0, chapter.size()) == chapter)
          replace(file, "```\n" + old + "```", "```\n" + printed + "```");
      return;
    }
    fail(
        "the program prints another text than the chapter shows; run it with --write and read the "
        "chapter again; the chapter has:\n" +
        std::string(expected));
  }
  /// Writes or compares a picture, the SVG text of a function of `partita/report`.
  void picture(const std::string& name, const partita::text& svg) {
    const std::string path = std::string(PARTITA_SOURCE_DIR) + "/examples/guide/pictures/" + name;
    if (writes_) {
      std::ofstream(path, std::ios::binary) << svg.view();
      return;
    }
    if (content(path) == svg.view()) return;
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
  static std::string content(const std::filesystem::path& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }
  /// Replaces the first occurrence of a text in a file, if there is one.
  static void replace(const std::filesystem::path& path, const std::string& old,
                      const std::string& with) {
    std::string text = content(path);
    const auto at = text.find(old);
    if (at == std::string::npos) return;
    std::ofstream(path, std::ios::binary) << text.replace(at, old.size(), with);
  }

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
