/// The random number generator of op::random_bits.
#pragma once

#include <bit>
#include <cstdint>

#include <partita/run/array.hpp>

namespace partita::run_detail {

/// Threefry-2x32 with 20 rounds, `lanes` generators side by side.
///
/// Source    Salmon et al., SC 2011, figure 2 and table 2
inline void random_bits_block(std::int64_t n, const void* const* in, void* out) {
  constexpr int rotations[] = {13, 15, 26, 6, 17, 29, 16, 24};
  constexpr std::uint32_t parity = 0x1bd11bda;
  const auto* __restrict key = static_cast<const std::uint64_t*>(in[0]);
  const auto* __restrict counter = static_cast<const std::uint64_t*>(in[1]);
  auto* __restrict result = static_cast<std::uint64_t*>(out);
  for (std::int64_t i = 0; i < n; i += lanes) {
    std::uint32_t keys[3][lanes], x[lanes], y[lanes];
    for (int j = 0; j < lanes; ++j) {
      keys[0][j] = static_cast<std::uint32_t>(key[i + j] >> 32);
      keys[1][j] = static_cast<std::uint32_t>(key[i + j]);
      keys[2][j] = parity ^ keys[0][j] ^ keys[1][j];
      x[j] = static_cast<std::uint32_t>(counter[i + j] >> 32) + keys[0][j];
      y[j] = static_cast<std::uint32_t>(counter[i + j]) + keys[1][j];
    }
    for (std::uint32_t round = 0; round < 20; ++round) {
      const int turn = rotations[round % 8];
      for (int j = 0; j < lanes; ++j) {
        x[j] += y[j];
        y[j] = std::rotl(y[j], turn) ^ x[j];
      }
      if (round % 4 != 3) continue;
      const std::uint32_t step = round / 4 + 1;  // every four rounds, the key once more
      for (int j = 0; j < lanes; ++j) {
        x[j] += keys[step % 3][j];
        y[j] += keys[(step + 1) % 3][j] + step;
      }
    }
    for (int j = 0; j < lanes; ++j) result[i + j] = static_cast<std::uint64_t>(x[j]) << 32 | y[j];
  }
}

}  // namespace partita::run_detail
