// Integer codes of 1, 2 or 4 bytes to a Huffman stream and back; docs/format.md says what is in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic {

// The most bytes that encoding gives.
std::int64_t huffman_capacity(std::int64_t count, int itemsize);

// Writes a stream of at most huffman_capacity bytes, and gives their number; -1 without memory. It has books of its
// own unless those of `book`, which huffman_share gave, make it smaller; -2 where they are none for such codes.
std::int64_t huffman_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads,
                            const std::uint8_t* book = nullptr, std::size_t book_size = 0);

// Reads exactly `count` codes from exactly `size` bytes; false for bytes that no encoder writes. Believes none
// of them, nor of `book`, which is empty unless the stream shares it; and allocates by `count` only.
bool huffman_decode(const std::uint8_t* stream, std::size_t size, void* codes, std::int64_t count, int itemsize,
                    int threads, const std::uint8_t* book = nullptr, std::size_t book_size = 0);

struct HuffmanCodes {
    const void* codes;
    std::int64_t count;
};

// Writes books for many tensors of codes, and gives the number of their bytes, at most kMostSharedBytes; 0 where the
// tensors' streams would not be smaller by more than these take; -1 without memory.
constexpr std::size_t kMostSharedBytes = 512;
std::int64_t huffman_share(const HuffmanCodes* batch, std::int64_t size, int itemsize, std::uint8_t* book,
                           int threads);

}  // namespace laconic
