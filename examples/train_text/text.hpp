/// The training text, as tokens and batches.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include <partita/run/array.hpp>

#include "../models/transformer.hpp"
#include "options.hpp"

/// A text over the vocabulary of the characters (bytes) that occur in it.
class corpus {
 public:
  explicit corpus(std::string text) : text_(std::move(text)) {
    for (char& c : text_) {  // replaces control characters by spaces
      const auto code = static_cast<unsigned char>(c);
      if ((code < ' ' && c != '\n') || code == 127) c = ' ';
    }
    characters_ = text_;
    std::sort(characters_.begin(), characters_.end());
    characters_.erase(std::unique(characters_.begin(), characters_.end()), characters_.end());
    for (std::size_t i = 0; i < characters_.size(); ++i)
      code_[static_cast<unsigned char>(characters_[i])] = static_cast<std::int32_t>(i);
  }

  std::int64_t size() const { return static_cast<std::int64_t>(text_.size()); }
  std::int64_t vocabulary() const { return static_cast<std::int64_t>(characters_.size()); }
  char character(std::int64_t code) const { return characters_[static_cast<std::size_t>(code)]; }
  std::int32_t code(char c) const { return code_[static_cast<unsigned char>(c)]; }
  bool knows(char c) const { return characters_.find(c) != characters_.npos; }
  std::int32_t code_at(std::int64_t i) const { return code(text_[static_cast<std::size_t>(i)]); }

 private:
  std::string text_, characters_;
  std::array<std::int32_t, 256> code_{};
};

/// Tokens (batch, context), random excerpts of the text, and targets, each one character later.
struct batch {
  partita::array tokens, targets;

  batch(const corpus& c, const options& o, transformer::random_stream& random)
      : tokens(type(o)), targets(type(o)) {
    auto* in = tokens.mutable_data<std::int32_t>();
    auto* out = targets.mutable_data<std::int32_t>();
    for (std::int64_t b = 0; b < o.batch; ++b) {
      const auto start =
          static_cast<std::int64_t>(random.below(static_cast<std::uint64_t>(c.size() - o.context)));
      for (std::int64_t i = 0; i < o.context; ++i) {
        *in++ = c.code_at(start + i);
        *out++ = c.code_at(start + i + 1);
      }
    }
  }

 private:
  static partita::tensor_type type(const options& o) {
    return {partita::dtype::i32, {o.batch, o.context}};
  }
};

inline std::string read_file(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  if (!in) throw usage_error("cannot read \"" + path.string() + '"');
  return text;
}

/// Loads the file of `--text`, or the license texts that Debian and Ubuntu install.
inline corpus load_text(const options& o) {
  namespace fs = std::filesystem;
  const fs::path licenses = "/usr/share/common-licenses";
  std::string text;
  if (!o.text.empty()) {
    std::error_code none;
    if (!fs::exists(o.text, none) || fs::is_directory(o.text, none))
      command_line::refuse("--text", o.text, "the name of a file that exists");
    text = read_file(o.text);
  } else {
    std::vector<fs::path> files;
    std::error_code none;
    for (const auto& each : fs::directory_iterator(licenses, none))
      if (each.is_regular_file() && !each.is_symlink()) files.push_back(each.path());  // once each
    if (files.empty())
      throw usage_error("this machine has no texts in " + licenses.string() +
                        "; give a text file: --text FILE");
    std::sort(files.begin(), files.end());
    for (const auto& f : files) text += read_file(f);
  }
  corpus c(std::move(text));
  if (c.size() <= o.context)
    throw usage_error("the text has " + std::to_string(c.size()) +
                      " characters; more than the context, " + std::to_string(o.context) +
                      ", are needed; give a longer --text or a smaller --context");
  for (char each : o.prompt)
    if (o.sample > 0 && !c.knows(each))
      command_line::refuse("--prompt", o.prompt, "only characters that occur in the text");
  return c;
}
