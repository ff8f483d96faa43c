/// A checker of well-formed XML, for the subset that pictures use.
#pragma once

#include <string>
#include <string_view>
#include <vector>

/// Checks tags (each closed in its order, attributes in double quotes and each once), references
/// (to XML's five entities) and characters (UTF-8, no control characters but line ends). Document
/// types, comments and CDATA sections are errors. Returns the first error, or "".
class xml_checker {
 public:
  explicit xml_checker(std::string_view s) : s_(s) {}

  std::string run() {
    if (s_.starts_with("<?xml ")) i_ = s_.find("?>") + 2;
    check_characters();
    while (error_.empty() && i_ < s_.size()) s_[i_] == '<' ? tag() : words('<');
    if (error_.empty() && !open_.empty()) error_ = "not closed: " + open_.back();
    if (error_.empty() && roots_ != 1) error_ = "one root is needed";
    return error_;
  }

 private:
  std::string_view s_;
  std::size_t i_ = 0;
  std::string error_;
  std::vector<std::string> open_;
  int roots_ = 0;

  void fail(const std::string& what) {
    if (error_.empty()) error_ = what + " at \"" + std::string(s_.substr(i_, 40)) + '"';
  }
  void check_characters() {
    for (std::size_t i = 0; i < s_.size();) {
      const auto c = static_cast<unsigned char>(s_[i]);
      std::size_t size = c < 0x80 ? 1 : c >= 0xf0 ? 4 : c >= 0xe0 ? 3 : 2;
      if ((c < 0x20 && c != '\n') || c == 0x7f || (c >= 0x80 && c < 0xc2) || c > 0xf4)
        return fail("a character that is none");
      for (std::size_t k = 1; k < size; ++k)
        if (i + k >= s_.size() || (static_cast<unsigned char>(s_[i + k]) & 0xc0) != 0x80)
          return fail("a character that is cut off");
      i += size;
    }
  }
  /// Reads up to `end`.
  void words(char end) {
    for (; i_ < s_.size() && s_[i_] != end; ++i_) {
      if (s_[i_] == '<' || (s_[i_] == '>' && end == '<')) return fail("a mark in words");
      if (s_[i_] == '&') reference();
      if (open_.empty() && end == '<' && s_[i_] != '\n') return fail("words outside of the root");
    }
  }
  void reference() {
    for (std::string_view r : {"&amp;", "&lt;", "&gt;", "&quot;", "&apos;"})
      if (s_.substr(i_).starts_with(r)) return;
    fail("a reference to nothing");
  }
  std::string name() {
    const std::size_t from = i_;
    while (i_ < s_.size() && (std::isalnum(static_cast<unsigned char>(s_[i_])) || s_[i_] == '-'))
      ++i_;
    if (from == i_) fail("a name is missing");
    return std::string(s_.substr(from, i_ - from));
  }
  void tag() {
    if (s_.substr(i_).starts_with("</")) {
      i_ += 2;
      if (open_.empty() || name() != open_.back()) return fail("another element is open");
      open_.pop_back();
      if (s_.substr(i_, 1) != ">") fail("no > ");
      ++i_;
      return;
    }
    ++i_;
    if (open_.empty()) ++roots_;
    open_.push_back(name());
    std::vector<std::string> seen;
    while (error_.empty() && s_.substr(i_, 1) == " ") {
      ++i_;
      seen.push_back(name());
      for (std::size_t k = 0; k + 1 < seen.size(); ++k)
        if (seen[k] == seen.back()) return fail("an attribute twice");
      if (s_.substr(i_, 2) != "=\"") return fail("no value");
      i_ += 2;
      words('"');
      ++i_;
    }
    if (s_.substr(i_, 2) == "/>") {
      open_.pop_back();
      ++i_;
    } else if (s_.substr(i_, 1) != ">") {
      fail("no >");
    }
    ++i_;
  }
};
