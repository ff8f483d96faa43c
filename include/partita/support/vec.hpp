/// A growing array that is cheap to compile and cheap in constant evaluation.
#pragma once

#include <cstddef>
#include <initializer_list>
#include <utility>

// Tests of asymptotic growth count the array elements that are visited instead of seconds; a loop
// over an array counts all of its elements. Either every translation unit of a program defines this
// macro, or none does.
#if defined(PARTITA_COUNT_WORK)
#include <type_traits>
namespace partita {
inline unsigned long long work = 0;
}
#define PARTITA_WORK(n) \
  if (!std::is_constant_evaluated()) ::partita::work += (n)
#else
#define PARTITA_WORK(n)
#endif

// Builds without NDEBUG check indices at run time. In constant evaluation the compiler checks them,
// which costs less than a condition here.
#if defined(NDEBUG)
#define PARTITA_CHECK_INDEX(i)
#else
#include <partita/support/bad_index.hpp>
#define PARTITA_CHECK_INDEX(i)                                                    \
  if (!__builtin_is_constant_evaluated() && static_cast<std::size_t>(i) >= size_) \
  support_detail::throw_bad_index(static_cast<long long>(i), size_)
#endif

// True if elements are copied as bytes. (A macro: a function would be instantiated per type.)
#define PARTITA_AS_BYTES(T) (__is_trivially_copyable(T) && !__builtin_is_constant_evaluated())

namespace partita {

/// A minimal std::vector for default-constructible values, with only what the engine needs.
///
/// In constant evaluation, the compiler executes every layer of calls inside std::vector at each
/// operation, and it instantiates the members for each element type in each translation unit.
/// Elements beyond size() are alive too: growth is `new T[n]` followed by assignment. For GCC,
/// advancing a pointer costs several times as much as using an index, which matters in loops that
/// run over all ops. At run time, memory that will be copied into as bytes is not initialized
/// first: that would touch most of a large array twice, and all of its capacity.
template <class T>
class vec {
 public:
  using value_type = T;

  constexpr vec() = default;
  constexpr vec(std::size_t n, const T& v) { assign(n, v); }
  constexpr vec(std::initializer_list<T> list) { insert_back(list.begin(), list.end()); }
  constexpr vec(const T* first, const T* last) { insert_back(first, last); }
  constexpr vec(const vec& other) { insert_back(other.begin(), other.end()); }
  constexpr vec(vec&& other) noexcept
      : data_(other.data_), size_(other.size_), capacity_(other.capacity_) {
    other.data_ = nullptr;
    other.size_ = other.capacity_ = 0;
  }
  constexpr vec& operator=(const vec& other) {
    if (this != &other) {
      size_ = 0;
      insert_back(other.begin(), other.end());
    }
    return *this;
  }
  constexpr vec& operator=(vec&& other) noexcept {
    if (this != &other) {
      release(data_);
      data_ = other.data_;
      size_ = other.size_;
      capacity_ = other.capacity_;
      other.data_ = nullptr;
      other.size_ = other.capacity_ = 0;
    }
    return *this;
  }
  constexpr ~vec() { release(data_); }

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr T* data() { return data_; }
  constexpr const T* data() const { return data_; }
  constexpr T* begin() {
    PARTITA_WORK(size_);
    return data_;
  }
  constexpr T* end() { return data_ + size_; }
  constexpr const T* begin() const {
    PARTITA_WORK(size_);
    return data_;
  }
  constexpr const T* end() const { return data_ + size_; }
  constexpr T& operator[](std::size_t i) {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return data_[i];
  }
  constexpr const T& operator[](std::size_t i) const {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return data_[i];
  }
  constexpr T& operator[](int i) {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return data_[i];  // ids of values and ops are int
  }
  constexpr const T& operator[](int i) const {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return data_[i];
  }
  constexpr T& front() {
    PARTITA_CHECK_INDEX(0);
    return data_[0];
  }
  constexpr const T& front() const {
    PARTITA_CHECK_INDEX(0);
    return data_[0];
  }
  constexpr T& back() {
    PARTITA_CHECK_INDEX(size_ - 1);
    return data_[size_ - 1];
  }
  constexpr const T& back() const {
    PARTITA_CHECK_INDEX(size_ - 1);
    return data_[size_ - 1];
  }

  constexpr void push_back(const T& v) {
    if (size_ == capacity_) {
      T kept = v;  // v may be an element
      reserve(capacity_ == 0 ? 8 : 2 * capacity_);
      data_[size_++] = static_cast<T&&>(kept);
    } else {
      data_[size_++] = v;
    }
  }
  /// (Trivially copyable elements use only the overload above.)
  constexpr void push_back(T&& v) requires(!__is_trivially_copyable(T)) {
    if (size_ == capacity_) {
      T kept = static_cast<T&&>(v);  // v may be an element
      reserve(capacity_ == 0 ? 8 : 2 * capacity_);
      data_[size_++] = static_cast<T&&>(kept);
    } else {
      data_[size_++] = static_cast<T&&>(v);
    }
  }
  constexpr void pop_back() { --size_; }
  constexpr void clear() { size_ = 0; }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic push  // GCC 12 takes the copies below for out-of-bounds ones, at -O3
#pragma GCC diagnostic ignored "-Wstringop-overflow"
#pragma GCC diagnostic ignored "-Wrestrict"
#endif
  constexpr void reserve(std::size_t n) {
    if (n <= capacity_) return;
    T* grown = nullptr;
    if (PARTITA_AS_BYTES(T)) {
      grown = static_cast<T*>(::operator new(n * sizeof(T)));
      if (size_ > 0) __builtin_memcpy(static_cast<void*>(grown), data_, size_ * sizeof(T));
    } else {
      // GCC spends at least half a KiB on each element that it initializes.
      if constexpr (__is_trivially_constructible(T))
        grown = new T[n];
      else
        grown = new T[n]{};
      for (std::size_t i = 0; i < size_; ++i) grown[i] = static_cast<T&&>(data_[i]);
    }
    release(data_);
    data_ = grown;
    capacity_ = n;
  }
  constexpr void assign(std::size_t n, const T& v) {
    T kept = v;
    size_ = 0;
    resize(n, kept);
  }
  constexpr void resize(std::size_t n, const T& v) {
    make_room(n);
    for (std::size_t i = size_; i < n; ++i) data_[i] = v;
    size_ = n;
  }
  /// Appends elements equal to `T()`. In constant evaluation, `new` has already made them so.
  constexpr void resize(std::size_t n) {
    const bool made = capacity_ == 0 && !PARTITA_AS_BYTES(T) && !__is_trivially_constructible(T);
    make_room(n);
    for (std::size_t i = size_; !made && i < n; ++i) data_[i] = T();
    size_ = n;
  }
  /// Appends a range that is not part of this array.
  template <class It>
  constexpr void insert_back(It first, It last) {
    if (first == last) return;
    const std::size_t n = size_ + static_cast<std::size_t>(last - first);
    make_room(n);
    T* to = data_ + size_;
    if constexpr (requires(const T*& p) { p = first; }) {
      if (PARTITA_AS_BYTES(T))
        __builtin_memcpy(static_cast<void*>(to), first, (n - size_) * sizeof(T));
      else
        for (std::size_t i = 0; i < n - size_; ++i) to[i] = first[i];
    } else {
      while (first != last) *to++ = *first++;
    }
    size_ = n;
  }
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC diagnostic pop
#endif
  constexpr void insert_at(std::size_t position, const T& v) {
    push_back(v);
    for (std::size_t i = size_ - 1; i > position; --i) std::swap(data_[i], data_[i - 1]);
  }

 private:
  T* data_ = nullptr;
  std::size_t size_ = 0, capacity_ = 0;

  static constexpr void release(T* data) {
    if (PARTITA_AS_BYTES(T)) {
      if (data != nullptr) ::operator delete(data);  // (many arrays are empty: no call for these)
    } else {
      delete[] data;
    }
  }
  constexpr void make_room(std::size_t n) {
    if (n > capacity_) reserve(size_ == 0 || n > 2 * capacity_ ? n : 2 * capacity_);
  }
};

#undef PARTITA_AS_BYTES

}  // namespace partita
