/// Names stored by tactics.
#pragma once

#include <concepts>
#include <cstddef>
#include <string_view>
#include <type_traits>
#include <utility>

namespace partita {

/// A name that owns its characters if it has to. A tactic made at run time may outlive the strings
/// it was made of, so the characters are copied. A tactic made in constant evaluation refers to
/// string literals, which live forever, and it cannot keep heap memory.
class kept_name {
 public:
  constexpr kept_name() = default;
  template <class S>
  requires(std::convertible_to<const S&, std::string_view> &&
           !std::same_as<S, kept_name>) constexpr kept_name(const S& s)
      : name_(s) {
    if (!std::is_constant_evaluated()) keep();
  }
  constexpr kept_name(const kept_name& other) : name_(other.name_) {
    if (other.own_ != nullptr) keep();
  }
  constexpr kept_name(kept_name&& other) noexcept : name_(other.name_), own_(other.own_) {
    other.own_ = nullptr;
    other.name_ = {};
  }
  constexpr kept_name& operator=(kept_name other) noexcept {
    std::swap(name_, other.name_);
    std::swap(own_, other.own_);
    return *this;
  }
  constexpr ~kept_name() { delete[] own_; }

  constexpr std::string_view view() const { return name_; }
  constexpr operator std::string_view() const { return name_; }
  friend constexpr bool operator==(const kept_name& a, const kept_name& b) {
    return a.name_ == b.name_;
  }

 private:
  std::string_view name_;
  char* own_ = nullptr;

  constexpr void keep() {
    own_ = new char[name_.size() + 1]{};
    for (std::size_t i = 0; i < name_.size(); ++i) own_[i] = name_[i];
    name_ = {own_, name_.size()};
  }
};

}  // namespace partita
