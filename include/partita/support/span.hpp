/// A view of an array that is cheap to compile and cheap in constant evaluation.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <type_traits>

/// Marks a parameter that the constructed object refers to and must not outlive (Clang warns).
#if defined(__clang__)
#define PARTITA_LIFETIMEBOUND [[clang::lifetimebound]]
#else
#define PARTITA_LIFETIMEBOUND
#endif

namespace partita {

/// A minimal std::span with only what the engine needs. The compiler would evaluate the checks of
/// std::span's constructors and the calls below its iterators at every use (see vec).
///
/// Converts from any type with `data()` and `size()`, including std::span, and to std::span.
template <class T>
class span {
 public:
  using value_type = T;

  constexpr span() = default;
  constexpr span(T* data, std::size_t size) : data_(data), size_(size) {}
  template <std::size_t N>
  constexpr span(T (&array)[N]) : data_(array), size_(N) {}
  /// Accepts a braced list, `f({0, 1})`, which lives as long as the call. (Without this
  /// constructor, 0 would be a pointer and 1 a size.) A span that has to live longer needs an
  /// array.
  constexpr span(std::initializer_list<std::remove_const_t<T>> list PARTITA_LIFETIMEBOUND)  //
      requires(std::is_const_v<T>) {
    look_at(list);
  }
  template <class Range>
  requires requires(const Range& r, T*& p) { p = r.data(); }
  constexpr span(const Range& r) : data_(r.data()), size_(r.size()) {}

  constexpr T* data() const { return data_; }
  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* begin() const { return data_; }
  constexpr T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) const { return data_[i]; }
  constexpr T& operator[](int i) const { return data_[i]; }
  constexpr T& front() const { return data_[0]; }
  constexpr T& back() const { return data_[size_ - 1]; }
  constexpr span first(std::size_t count) const { return {data_, count}; }
  constexpr span subspan(std::size_t from) const { return {data_ + from, size_ - from}; }
  constexpr span subspan(std::size_t from, std::size_t count) const {
    return {data_ + from, count};
  }

 private:
  constexpr void look_at(const std::initializer_list<std::remove_const_t<T>>& list) {
    data_ = list.begin();
    size_ = list.size();
  }

  T* data_ = nullptr;
  std::size_t size_ = 0;
};

/// True if both spans have equal elements.
template <class T>
constexpr bool same_elements(span<T> a, span<T> b) {
  bool same = a.size() == b.size();
  for (std::size_t i = 0; same && i < a.size(); ++i) same = a[i] == b[i];
  return same;
}

}  // namespace partita
