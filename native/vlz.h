// Codes as rows that were there before and rows that were not, and back; docs/format.md says what is in the stream.
#pragma once

#include <cstddef>
#include <cstdint>

#include "repeats.h"

namespace laconic {

struct VlzSearch {
    std::int64_t window;  // how many rows back a match may begin
    std::int64_t block;   // how many rows are searched on their own
};

// The most bytes that encoding gives, for codes of so many bytes in all.
std::int64_t vlz_capacity(std::int64_t bytes);

// Codes of 1, 2 or 4 bytes. Writes a stream of at most vlz_capacity bytes, and gives their number; -1 without memory.
std::int64_t vlz_encode(const Rows& codes, int itemsize, const VlzSearch& search, std::uint8_t* stream, int threads);

// Reads exactly `count` rows of `row_bytes` from exactly `size` bytes; false for bytes that no encoder writes.
bool vlz_decode(const std::uint8_t* stream, std::size_t size, std::uint8_t* codes, std::int64_t count,
                std::int64_t row_bytes, int itemsize, int threads);

}  // namespace laconic
