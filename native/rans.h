// Integer codes of 1, 2 or 4 bytes to a stream of interleaved range coders (rANS) and back; docs/format.md says what
// is in it.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic {

// The most bytes that encoding gives.
std::int64_t rans_capacity(std::int64_t count, int itemsize);

// Writes a stream of at most rans_capacity bytes, and gives their number; -1 without memory. It has a book of its own
// unless that of `book`, which rans_share gave, makes it smaller; -2 where that is none for such codes.
std::int64_t rans_encode(const void* codes, std::int64_t count, int itemsize, std::uint8_t* stream, int threads,
                         const std::uint8_t* book = nullptr, std::size_t book_size = 0);

// Reads exactly `count` codes from exactly `size` bytes; false for bytes that no encoder writes. Believes none of
// them, nor of `book`, which is empty unless the stream shares it; and allocates little.
bool rans_decode(const std::uint8_t* stream, std::size_t size, void* codes, std::int64_t count, int itemsize,
                 int threads, const std::uint8_t* book = nullptr, std::size_t book_size = 0);

struct RansCodes {
    const void* codes;
    std::int64_t count;
};

// Writes a book for many tensors of codes, and gives the number of its bytes, at most kMostRansBook; 0 where the
// tensors' streams would not be smaller by more than it takes; -1 without memory.
constexpr std::size_t kMostRansBook = 6398;
std::int64_t rans_share(const RansCodes* batch, std::int64_t size, int itemsize, std::uint8_t* book, int threads);

// The streams of many tensors one after another, which take at most the sum of their capacities, and the length of
// each. Gives that of all; negative as rans_encode.
std::int64_t rans_encode_many(const RansCodes* batch, std::int64_t size, int itemsize, std::uint8_t* streams,
                              std::int64_t* lengths, int threads, const std::uint8_t* book = nullptr,
                              std::size_t book_size = 0);

struct RansStream {
    const std::uint8_t* stream;
    std::size_t size;
    void* codes;
    std::int64_t count;
};

// Reads many; false where one of them is not what an encoder writes.
bool rans_decode_many(const RansStream* batch, std::int64_t size, int itemsize, int threads,
                      const std::uint8_t* book = nullptr, std::size_t book_size = 0);

}  // namespace laconic
