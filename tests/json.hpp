/// A checker of well-formed JSON.
#pragma once

#include <string>
#include <string_view>

/// Reads one value (RFC 8259) and the values in it, and returns the first error, or "".
class json_checker {
 public:
  explicit json_checker(std::string_view s) : s_(s) {}

  std::string run() {
    value();
    blank();
    if (error_.empty() && i_ < s_.size()) fail("more behind the end");
    return error_;
  }

 private:
  std::string_view s_;
  std::size_t i_ = 0;
  std::string error_;

  void fail(const std::string& what) {
    if (error_.empty()) error_ = what + " at \"" + std::string(s_.substr(i_, 40)) + '"';
    i_ = s_.size();
  }
  char next() const { return i_ < s_.size() ? s_[i_] : '\0'; }
  void blank() {
    while (next() == ' ' || next() == '\n') ++i_;
  }
  bool take(std::string_view words) {
    blank();
    if (!s_.substr(i_).starts_with(words)) return false;
    i_ += words.size();
    return true;
  }
  void value() {
    if (take("{")) return members('}');
    if (take("[")) return members(']');
    if (next() == '"') return string();
    if (take("true") || take("false") || take("null")) return;
    number();
  }
  void members(char end) {
    if (take(std::string_view(&end, 1))) return;
    do {
      if (end == '}') {
        blank();
        string();
        if (!take(":")) fail("no colon");
      }
      value();
    } while (take(","));
    if (!take(std::string_view(&end, 1))) fail("not closed");
  }
  void string() {
    if (next() != '"') return fail("no string");
    for (++i_; i_ < s_.size() && s_[i_] != '"'; ++i_) {
      const auto c = static_cast<unsigned char>(s_[i_]);
      if (c < 0x20) return fail("a control character");
      if (c >= 0x80) character(c);
      if (c == '\\') escaped();
    }
    if (i_ >= s_.size()) return fail("a string without an end");
    ++i_;
  }
  void character(unsigned char first) {
    const std::size_t size = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
    if (first < 0xc2 || first > 0xf4 || i_ + size > s_.size()) return fail("no UTF-8");
    for (std::size_t k = 1; k < size; ++k, ++i_)
      if ((static_cast<unsigned char>(s_[i_ + 1]) & 0xc0) != 0x80) return fail("no UTF-8");
  }
  void escaped() {
    ++i_;
    if (std::string_view("\"\\/bfnrt").find(next()) != std::string_view::npos) return;
    if (next() != 'u') return fail("no escape");
    for (int k = 0; k < 4; ++k)
      if (std::string_view("0123456789abcdefABCDEF").find(s_[++i_ < s_.size() ? i_ : 0]) ==
          std::string_view::npos)
        return fail("no number of a character");
  }
  void number() {
    const std::size_t from = i_;
    take("-");
    const std::size_t whole = digits();
    if (whole == 0 || (whole > 1 && s_[i_ - whole] == '0')) return fail("no value");
    if (take(".") && digits() == 0) return fail("no decimals");
    if (next() == 'e' || next() == 'E') {
      ++i_;
      if (next() == '+' || next() == '-') ++i_;
      if (digits() == 0) return fail("no exponent");
    }
    if (i_ == from) fail("no value");
  }
  std::size_t digits() {
    const std::size_t from = i_;
    while (next() >= '0' && next() <= '9') ++i_;
    return i_ - from;
  }
};
