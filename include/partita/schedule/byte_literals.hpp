/// Literals for numbers of bytes: `16_GiB`, `80_GB`.
#pragma once

#include <cstdint>

namespace partita {

namespace schedule_detail {
void more_bytes_than_a_number_of_64_bits_holds();  // an error where a constant is computed
consteval std::int64_t bytes(unsigned long long count, std::int64_t unit) {
  const auto most = static_cast<unsigned long long>(INT64_MAX / unit);
  if (count > most) more_bytes_than_a_number_of_64_bits_holds();
  return static_cast<std::int64_t>(count) * unit;
}
}  // namespace schedule_detail

inline namespace literals {
/// Bytes, in the units that specifications use: `static_assert(check<step>.peak_bytes <= 16_GiB)`.
/// A number above the range of std::int64_t is not a constant expression.
consteval std::int64_t operator""_kB(unsigned long long n) {
  return schedule_detail::bytes(n, 1'000);
}
consteval std::int64_t operator""_MB(unsigned long long n) {
  return schedule_detail::bytes(n, 1'000'000);
}
consteval std::int64_t operator""_GB(unsigned long long n) {
  return schedule_detail::bytes(n, 1'000'000'000);
}
consteval std::int64_t operator""_TB(unsigned long long n) {
  return schedule_detail::bytes(n, 1'000'000'000'000);
}
consteval std::int64_t operator""_KiB(unsigned long long n) {
  return schedule_detail::bytes(n, std::int64_t{1} << 10);
}
consteval std::int64_t operator""_MiB(unsigned long long n) {
  return schedule_detail::bytes(n, std::int64_t{1} << 20);
}
consteval std::int64_t operator""_GiB(unsigned long long n) {
  return schedule_detail::bytes(n, std::int64_t{1} << 30);
}
consteval std::int64_t operator""_TiB(unsigned long long n) {
  return schedule_detail::bytes(n, std::int64_t{1} << 40);
}
}  // namespace literals

}  // namespace partita
