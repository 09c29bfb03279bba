// A Huffman code over the 256 values of a byte: how it is made, stored, and laid out for the kernels.
//
// Words are canonical: in the order of (length, symbol), each the one before plus one, with zeros
// appended where the length grows. They are written from their first bit, into bytes filled from their
// lowest bit.
#pragma once

#include <cstddef>
#include <cstdint>

namespace laconic {

constexpr int kSymbols = 256;
constexpr int kMaxWordBits = 11;
constexpr std::size_t kMaxBookBytes = kSymbols / 2;

struct HuffmanBook {
    std::uint8_t lengths[kSymbols];  // 0: the symbol does not occur

    int longest_word() const;

    // The one that comes first: of those with the shortest word, the smallest.
    int first_symbol() const;
};

// The lengths, at most kMaxWordBits, that make the sum of count * length least; see docs/format.md.
// At least two symbols get a word.
HuffmanBook make_book(const std::int64_t counts[kSymbols]);

// Both give the number of bytes of the stored form; reading gives 0 unless the words are a complete code.
std::size_t write_book(const HuffmanBook& book, std::uint8_t* to);
std::size_t read_book(const std::uint8_t* from, std::size_t size, HuffmanBook& book);

// For encoding: each symbol's word, its first bit lowest, over its length.
constexpr int kLengthBits = 4;

struct WordTable {
    WordTable() = default;
    explicit WordTable(const HuffmanBook& book);

    std::uint16_t words[kSymbols];  // word << kLengthBits | length
};

// For decoding: what the next bits, a window of them, begin with; as many whole words as fit into an entry.
//
//   byte    0 .. 5     6              7
//           symbols    bits of them   number of them
//
// A wide window finds more words at once, a narrow one is made sooner; it is as wide as the longest word at least.
constexpr int kEntrySymbols = 6;
constexpr int kLeastWindowBits = 8, kMostWindowBits = 12;
static_assert(kLeastWindowBits < kMaxWordBits && kMaxWordBits < kMostWindowBits);

struct EntryTable {
    void fill(int window_bits);  // from `book`, which is complete

    HuffmanBook book;
    int first_symbol;
    std::uint64_t entries[1 << kMostWindowBits];
};

}  // namespace laconic
