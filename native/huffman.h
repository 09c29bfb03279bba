// Integer codes of 1, 2 or 4 bytes to a Huffman stream and back; docs/format.md says what is in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic {

// The most bytes that encoding gives.
std::int64_t huffman_capacity(std::int64_t count, int itemsize);

// Writes a stream of at most huffman_capacity bytes, and gives their number.
std::int64_t huffman_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads);

// Reads exactly `count` codes from exactly `size` bytes; false for bytes that no encoder writes. Believes none
// of them, and allocates by `count` only.
bool huffman_decode(const std::uint8_t* stream, std::size_t size, void* codes, std::int64_t count, int itemsize,
                    int threads);

}  // namespace laconic
