// CRC-32 as zlib has it, several times as fast where the CPU multiplies polynomials.
#pragma once

#include <cstdint>

namespace laconic {

// Whether this CPU does.
bool has_checksum();

// That of `size` bytes, a multiple of 16 and at least 64, which follow others of the checksum `before`.
std::uint32_t checksum(const std::uint8_t* data, std::int64_t size, std::uint32_t before);

}  // namespace laconic
