/// A growing array whose elements never move.
#pragma once

#include <partita/support/vec.hpp>

namespace partita {

/// An array like vec, except that elements never move: references stay valid while elements are
/// added. It is for tables that are read while they grow. The first segment has room for 2^n
/// elements, and each further segment has room for as many as all segments before it.
///
/// Tables reserve the size they usually need, so that reading an element of the first segment is
/// one pointer step. Function calls for each read would dominate constant evaluation.
template <class T>
class segmented_vec {
 public:
  segmented_vec() = default;
  segmented_vec(const segmented_vec&) = delete;
  segmented_vec& operator=(const segmented_vec&) = delete;

  constexpr std::size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T& operator[](int i) const {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return i < first_size_ ? first_[i] : further(i);
  }
  constexpr T& operator[](int i) {
    PARTITA_WORK(1);
    PARTITA_CHECK_INDEX(i);
    return i < first_size_ ? first_[i] : further(i);
  }
  constexpr T& back() { return (*this)[static_cast<int>(size_) - 1]; }
  constexpr const T& back() const { return (*this)[static_cast<int>(size_) - 1]; }

  /// Sets the size of the first segment to at least n elements; the array must be empty.
  constexpr void reserve(std::size_t n) {
    while (first_bits_ < max_bits && std::size_t{1} << first_bits_ < n) ++first_bits_;
  }
  constexpr void push_back(const T& v) {
    make_room().push_back(v);
    count();
  }
  constexpr void push_back(T&& v) requires(!__is_trivially_copyable(T)) {
    make_room().push_back(static_cast<T&&>(v));
    count();
  }

 private:
  static constexpr int max_bits = 30;
  vec<T> segments_[max_bits];
  T* first_ = nullptr;  ///< the first segment
  int first_size_ = 0;
  std::size_t size_ = 0;
  int first_bits_ = 3;

  constexpr T& further(int i) {
    return segments_[segment_of(i)].data()[i - begin_of(segment_of(i))];
  }
  constexpr const T& further(int i) const {
    return segments_[segment_of(i)].data()[i - begin_of(segment_of(i))];
  }
  constexpr int segment_of(int i) const {
    const unsigned beyond = static_cast<unsigned>(i) >> first_bits_;
    return beyond == 0 ? 0 : 32 - __builtin_clz(beyond);
  }
  constexpr int begin_of(int segment) const {
    return segment == 0 ? 0 : 1 << (first_bits_ + segment - 1);
  }
  /// Returns the segment that the next element goes into.
  constexpr vec<T>& make_room() {
    const int s = segment_of(static_cast<int>(size_));
    segments_[s].reserve(std::size_t{1} << (s == 0 ? first_bits_ : first_bits_ + s - 1));
    return segments_[s];
  }
  /// Counts an element that was added to its segment.
  constexpr void count() {
    if (++size_ > std::size_t{1} << first_bits_) return;
    first_ = segments_[0].data();
    first_size_ = static_cast<int>(size_);
  }
};

}  // namespace partita
