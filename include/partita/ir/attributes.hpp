/// Attributes of ops as text: one description per op serves both printing and reading.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <partita/support/span.hpp>
#include <string_view>

#include <partita/ir/shape.hpp>
#include <partita/support/error.hpp>
#include <partita/support/quoted.hpp>
#include <partita/support/scanner.hpp>
#include <partita/support/vec.hpp>

namespace partita {

/// Prints a list of dimensions as attributes show it: `[0, 2]`.
constexpr void print_ints(text& out, span<const std::int64_t> list) {
  out << '[';
  append_list(out, static_cast<int>(list.size()),
              [&](int i) { out << list[static_cast<std::size_t>(i)]; });
  out << ']';
}

/// Prints attributes. An op describes its attributes once, in the order in which they are stored:
///
/// ```cpp
/// template <class Fields>
/// static constexpr void attributes(Fields& f) {
///   f.word("", {"add", "max", "min"});
///   f.rest("dims");
/// }
/// ```
///
/// The same function, called with an attribute_reader, reads the text `{add, dims=[0, 2]}`.
class attribute_writer {
 public:
  constexpr attribute_writer(text& out, span<const tensor_type> operands,
                             span<const std::int64_t> attrs)
      : operands(operands), out_(out), attrs_(attrs) {}

  span<const tensor_type> operands;  ///< the operand types, for lists with one number per dimension

  /// Prints `label=3`, or `3` if the label is empty. Each field function returns the value that it
  /// printed (or read).
  constexpr std::int64_t number(std::string_view label) {
    const std::int64_t v = next();
    start(label) << v;
    return v;
  }
  /// Prints a number, omitted if it has the usual value.
  constexpr std::int64_t number_or(std::string_view label, std::int64_t usual) {
    const std::int64_t v = next();
    if (v != usual) start(label) << v;
    return v;
  }
  /// Prints one of several words; the attribute stores its position.
  constexpr std::int64_t word(std::string_view label, span<const std::string_view> words) {
    const std::int64_t v = next();
    start(label) << words[static_cast<std::size_t>(v)];
    return v;
  }
  constexpr std::int64_t word(std::string_view label,
                              std::initializer_list<std::string_view> words) {
    return word(label, span<const std::string_view>(words.begin(), words.size()));
  }
  /// Prints the last word, if the attribute is present.
  constexpr void last_word(std::string_view label, span<const std::string_view> words) {
    if (!attrs_.empty()) word(label, words);
  }
  /// Prints `label` if the attribute is 1, nothing if it is 0.
  constexpr bool flag(std::string_view label) {
    const bool set = next() != 0;
    if (set) start("") << label;
    return set;
  }
  /// Prints `label=[1, 2]`, a list of n numbers.
  constexpr void list(std::string_view label, int n) { print_ints(start(label), take(n)); }
  /// Prints a list of n numbers, omitted if all of them have the usual value.
  constexpr void list_or(std::string_view label, int n, std::int64_t usual) {
    const auto values = take(n);
    bool plain = true;
    for (auto v : values) plain = plain && v == usual;
    if (!plain) print_ints(start(label), values);
  }
  /// Prints a list of any length, stored as its length followed by its numbers; omitted if empty.
  constexpr void counted(std::string_view label) {
    const auto values = take(static_cast<int>(next()));
    if (!values.empty()) print_ints(start(label), values);
  }
  /// Prints all remaining numbers.
  constexpr void rest(std::string_view label) {
    print_ints(start(label), take(static_cast<int>(attrs_.size())));
  }
  /// Prints all remaining numbers in the notation of `Form` (`Form::print`, `Form::parse`); omitted
  /// if no numbers remain. `what` names the notation in messages.
  template <class Form>
  constexpr void tail(std::string_view) {
    if (attrs_.empty()) return;
    Form::print(start(""), attrs_);
    attrs_ = {};
  }
  /// True if anything was printed.
  constexpr bool any() const { return any_; }

 private:
  text& out_;
  span<const std::int64_t> attrs_;
  bool any_ = false;

  constexpr std::int64_t next() {
    const std::int64_t v = attrs_.front();
    attrs_ = attrs_.subspan(1);
    return v;
  }
  constexpr span<const std::int64_t> take(int n) {
    const auto taken = attrs_.first(static_cast<std::size_t>(n));
    attrs_ = attrs_.subspan(static_cast<std::size_t>(n));
    return taken;
  }
  constexpr text& start(std::string_view label) {
    if (any_) out_ << ", ";
    any_ = true;
    if (!label.empty()) out_ << label << '=';
    return out_;
  }
};

/// Reads what attribute_writer prints, without the braces.
///
/// Errors    P011 the text does not fit the op
class attribute_reader {
 public:
  constexpr attribute_reader(std::string_view op, std::string_view in,
                             span<const tensor_type> operands, vec<std::int64_t>& attrs)
      : operands(operands), op_(op), in_(in), attrs_(attrs) {}

  /// The operand types, as for attribute_writer.
  span<const tensor_type> operands;
  failure error;

  constexpr std::int64_t number(std::string_view label) {
    return put(expect(label) ? integer() : 0);
  }
  constexpr std::int64_t number_or(std::string_view label, std::int64_t usual) {
    return put(accept(label) ? integer() : usual);
  }
  constexpr std::int64_t word(std::string_view label, span<const std::string_view> words) {
    if (!expect(label)) return 0;
    std::size_t n = 0;
    while (n < in_.size() && in_[n] != ',' && in_[n] != ' ') ++n;
    const std::string_view found = in_.substr(0, n);
    in_ = in_.substr(n);
    for (std::size_t i = 0; i < words.size(); ++i)
      if (words[i] == found) return put(static_cast<std::int64_t>(i));
    fail("\"", short_name(found), "\" is not a value of this attribute");
    return 0;
  }
  constexpr std::int64_t word(std::string_view label,
                              std::initializer_list<std::string_view> words) {
    return word(label, span<const std::string_view>(words.begin(), words.size()));
  }
  constexpr void last_word(std::string_view label, span<const std::string_view> words) {
    if (!in_.empty()) word(label, words);
  }
  constexpr bool flag(std::string_view label) {
    const bool set = starts(label) && (in_.size() == label.size() || in_[label.size()] == ',');
    if (set) {
      separate();
      in_ = in_.substr(label.size());
    }
    return put(set ? 1 : 0) != 0;
  }
  constexpr void list(std::string_view label, int n) {
    if (expect(label)) integers(n);
  }
  constexpr void list_or(std::string_view label, int n, std::int64_t usual) {
    if (accept(label))
      integers(n);
    else
      for (int i = 0; i < n; ++i) attrs_.push_back(usual);
  }
  constexpr void counted(std::string_view label) {
    const std::size_t at = attrs_.size();
    attrs_.push_back(0);
    if (accept(label)) integers(-1);
    attrs_[at] = static_cast<std::int64_t>(attrs_.size() - at) - 1;
  }
  constexpr void rest(std::string_view label) {
    if (expect(label)) integers(-1);
  }
  template <class Form>
  constexpr void tail(std::string_view what) {
    if (error || in_.empty()) return;
    if (any_ && in_.substr(0, 2) == ", ") in_ = in_.substr(2);
    scanner in(in_);
    if (Form::parse(in, attrs_))
      in_ = in.rest();
    else
      fail('"', short_name(in_), "\" is not ", what);
  }
  /// Fails if any text is left; call it last.
  constexpr void finish() {
    if (!in_.empty()) fail("\"", short_name(in_), "\" is left over");
  }

 private:
  std::string_view op_, in_;
  vec<std::int64_t>& attrs_;
  bool any_ = false;

  template <class... Parts>
  constexpr void fail(const Parts&... parts) {
    error.record("P011", "parse: attributes of ", op_, ": ", parts...);
  }
  constexpr std::int64_t put(std::int64_t v) {
    attrs_.push_back(v);
    return v;
  }
  /// True if the next field starts with `label`; a separator may come before it.
  constexpr bool starts(std::string_view label) {
    std::string_view rest = in_;
    if (any_) {
      if (rest.substr(0, 2) != ", ") return false;
      rest = rest.substr(2);
    }
    if (rest.substr(0, label.size()) != label) return false;
    if (any_) in_ = rest, any_ = false;
    return true;
  }
  constexpr void separate() { any_ = true; }
  constexpr bool accept(std::string_view label) {
    text wanted = label;
    if (!label.empty()) wanted << '=';
    if (error || !starts(wanted.view()) || in_.empty()) return false;
    in_ = in_.substr(wanted.view().size());
    separate();
    return true;
  }
  constexpr bool expect(std::string_view label) {
    if (accept(label)) return true;
    fail('"', label, label.empty() ? "" : "=", "\" expected, found \"", short_name(in_), '"');
    return false;
  }
  constexpr std::int64_t integer() {
    scanner in(in_);
    std::int64_t v = 0;
    if (!in.integer(v)) fail("a number of 64 bits expected, found \"", short_name(in_), '"');
    in_ = in.rest();
    return v;
  }
  constexpr void integers(int n) {
    int count = 0;
    if (in_.substr(0, 1) != "[") return fail("\"[\" expected, found \"", short_name(in_), '"');
    in_ = in_.substr(1);
    while (!error && in_.substr(0, 1) != "]") {
      if (count > 0) {
        if (in_.substr(0, 2) != ", ")
          return fail("\", \" expected, found \"", short_name(in_), '"');
        in_ = in_.substr(2);
      }
      put(integer());
      ++count;
    }
    in_ = in_.substr(in_.empty() ? 0 : 1);
    if (n >= 0 && count != n) fail(count, " numbers in a list of ", n);
  }
};

}  // namespace partita
