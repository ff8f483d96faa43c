/// Checksums of files.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace partita::run_detail {

/// Returns the checksum of bytes that follow others, whose checksum is `crc`. `Polynomial` has its
/// lowest coefficient first.
///
/// Source    eight bytes a step, as in Kounavis and Berry, 2005
template <std::uint32_t Polynomial>
std::uint32_t checksum(const std::byte* bytes, std::size_t n, std::uint32_t crc) {
  static constexpr auto tables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      t[0][i] = i;
      for (int bit = 0; bit < 8; ++bit)
        t[0][i] = t[0][i] >> 1 ^ (t[0][i] % 2 == 1 ? Polynomial : 0u);
    }
    for (std::size_t k = 1; k < 8; ++k)
      for (std::size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
    return t;
  }();
  const auto byte = [&](std::size_t i) { return static_cast<std::uint32_t>(bytes[i]); };
  crc = ~crc;
  for (; n >= 8; n -= 8, bytes += 8) {
    crc ^= byte(0) | byte(1) << 8 | byte(2) << 16 | byte(3) << 24;
    crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^
          tables[4][crc >> 24] ^ tables[3][byte(4)] ^ tables[2][byte(5)] ^ tables[1][byte(6)] ^
          tables[0][byte(7)];
  }
  for (; n > 0; --n, ++bytes) crc = crc >> 8 ^ tables[0][(crc ^ byte(0)) & 255];
  return ~crc;
}

/// Returns the CRC-32 of ISO 3309, which ZIP uses.
inline std::uint32_t crc32(std::string_view s) {
  return checksum<0xedb88320u>(reinterpret_cast<const std::byte*>(s.data()), s.size(), 0);
}
/// Returns the CRC-32C, the checksum of iSCSI, ext4 and zarr's codec "crc32c".
///
/// Source    Castagnoli et al., 1993
inline std::uint32_t crc32c(const void* bytes, std::size_t n, std::uint32_t crc = 0) {
  return checksum<0x82f63b78u>(static_cast<const std::byte*>(bytes), n, crc);
}

}  // namespace partita::run_detail
