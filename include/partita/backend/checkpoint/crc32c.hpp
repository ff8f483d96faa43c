/// CRC-32C, the checksum of iSCSI, ext4 and of zarr's codec "crc32c".
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace partita::backend_detail {

/// The checksum of bytes that follow others, whose checksum is `crc`.
///
/// Source    Castagnoli et al., 1993; eight bytes a step as in Kounavis and Berry, 2005
inline std::uint32_t crc32c(const std::byte* bytes, std::size_t n, std::uint32_t crc = 0) {
  static constexpr auto tables = [] {
    std::array<std::array<std::uint32_t, 256>, 8> t{};
    for (std::uint32_t i = 0; i < 256; ++i) {
      t[0][i] = i;
      for (int bit = 0; bit < 8; ++bit)
        t[0][i] = t[0][i] >> 1 ^ (t[0][i] % 2 == 1 ? 0x82f63b78u : 0u);
    }
    for (std::size_t k = 1; k < 8; ++k)
      for (std::size_t i = 0; i < 256; ++i) t[k][i] = t[k - 1][i] >> 8 ^ t[0][t[k - 1][i] & 255];
    return t;
  }();
  const auto at = [&](std::size_t i) { return static_cast<std::uint32_t>(bytes[i]); };
  crc = ~crc;
  for (; n >= 8; n -= 8, bytes += 8) {
    crc ^= at(0) | at(1) << 8 | at(2) << 16 | at(3) << 24;
    crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^
          tables[4][crc >> 24] ^ tables[3][at(4)] ^ tables[2][at(5)] ^ tables[1][at(6)] ^
          tables[0][at(7)];
  }
  for (; n > 0; --n, ++bytes) crc = crc >> 8 ^ tables[0][(crc ^ at(0)) & 255];
  return ~crc;
}

}  // namespace partita::backend_detail
