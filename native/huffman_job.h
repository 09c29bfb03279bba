// What a Huffman kernel has to do: some of the chunks of a stream. The kernels themselves are compiled
// once per instruction set, see isa.h.
//
//   codes      | chunk | chunk | .. | last |          1 << chunk_log codes each, the last one fewer
//   stream     .. | words, extra bits | words, extra bits | ..
//
// 1-byte codes are their own symbols, and have no extra bits. Others are folded, 0, -1, 1, -2, 2, .. to
// 0, 1, 2, 3, 4, .. (zigzag); up to 127 that is the symbol, and what is above has a part of it as extra bits:
//
//   folded = 1 m m b b .. b in binary, e bits after the 1:   symbol 128 + 4 * (e - 7) + mm, extra bits b b .. b
#pragma once

#include <cstdint>

#include "huffman_book.h"
#include "isa.h"

namespace laconic {

constexpr int kLeastChunkLog = 8, kMostChunkLog = 13;
constexpr int kMostChunk = 1 << kMostChunkLog;
constexpr int kFirstWithExtra = 128, kWideSymbols = 228;  // of the symbols of codes of 2 and 4 bytes
constexpr int kLeastExtra = 5;

// A table, not a function: the linker could merge functions of two instruction sets.
struct ExtraBits {
    std::uint8_t of[kSymbols] = {};

    constexpr ExtraBits() {
        for (int symbol = kFirstWithExtra; symbol < kWideSymbols; ++symbol) {
            of[symbol] = static_cast<std::uint8_t>(kLeastExtra + (symbol - kFirstWithExtra) / 4);
        }
    }
};
inline constexpr ExtraBits kExtraBits;

constexpr int kMostBooks = 4;

struct HuffmanJob {
    void* codes;  // only read when encoding
    std::int64_t count;
    int itemsize;
    int chunk_log;
    std::int64_t chunks;
    int sections;                 // of a chunk: its words and, of codes of 2 and 4 bytes, its extra bits
    std::uint8_t* stream;         // only read when decoding
    const std::int64_t* offsets;  // in the stream, of each chunk's sections; and of the end
    const std::uint8_t* book_of;  // each chunk's
    const WordTable* words;       // each book's, to encode
    const EntryTable* entries;    // each book's, to decode
    int window_bits;              // of these tables: kLeastWindowBits, kMaxWordBits or kMostWindowBits
};

// How often each symbol occurs in a chunk, or how many bits it costs: small numbers, which are fast to multiply.
constexpr std::int16_t kNotAtAnyCost = -1;
constexpr std::int32_t kImpossible = 0x7fffffff;  // what a chunk costs that has such a symbol

struct SymbolTable {
    std::int16_t of[kSymbols];
};

LACONIC_DECLARE_KERNEL(
    void huffman_count(const HuffmanJob& job, std::int64_t begin, std::int64_t end, SymbolTable* counts);
    void huffman_sum(const SymbolTable* counts, const std::int64_t* chunks, std::int64_t size, std::int64_t* sums);
    void huffman_cost(const SymbolTable* counts, std::int64_t begin, std::int64_t end, const SymbolTable& cost,
                      std::int32_t* sums);
    void huffman_encode(const HuffmanJob& job, std::int64_t begin, std::int64_t end);
    bool huffman_decode(const HuffmanJob& job, std::int64_t begin, std::int64_t end);)

}  // namespace laconic
