// Books laid out for the kernels.
#include <algorithm>

#include "huffman_book.h"

namespace laconic {
namespace {

// The lowest `length` bits of a word of at most 16.
std::uint32_t reversed(std::uint32_t word, int length) {
    word = (word & 0x5555) << 1 | (word >> 1 & 0x5555);
    word = (word & 0x3333) << 2 | (word >> 2 & 0x3333);
    word = (word & 0x0f0f) << 4 | (word >> 4 & 0x0f0f);
    word = (word & 0x00ff) << 8 | (word >> 8 & 0x00ff);
    return word >> (16 - length);
}

struct Word {
    int symbol, length;
    std::uint32_t bits;  // the first one lowest
};

// A book's words in canonical order.
struct Words {
    Word words[kSymbols];
    int size = 0;

    explicit Words(const HuffmanBook& book) {
        int with_length[kMaxWordBits + 1] = {}, place[kMaxWordBits + 1] = {};
        std::uint32_t next[kMaxWordBits + 1] = {};
        for (const int length : book.lengths) ++with_length[length];
        with_length[0] = 0;
        for (int length = 1; length <= kMaxWordBits; ++length) {
            place[length] = place[length - 1] + with_length[length - 1];
            next[length] = (next[length - 1] + static_cast<std::uint32_t>(with_length[length - 1])) << 1;
        }
        for (int symbol = 0; symbol < kSymbols; ++symbol) {
            const int length = book.lengths[symbol];
            if (length > 0) words[place[length]++] = {symbol, length, reversed(next[length]++, length)};
        }
        size = place[kMaxWordBits];
    }

    const Word* begin() const { return words; }
    const Word* end() const { return words + size; }
};

constexpr std::uint64_t kSymbolBytes = (std::uint64_t{1} << 8 * kEntrySymbols) - 1;

// What a symbol adds to an entry's two numbers.
std::uint64_t numbers_of(int length) { return std::uint64_t{1} << 56 | static_cast<std::uint64_t>(length) << 48; }

// Where an entry is full, its last symbol makes room.
std::uint64_t without_last(std::uint64_t entry, const HuffmanBook& book) {
    if (entry >> 56 < kEntrySymbols) return entry;
    return entry - numbers_of(book.lengths[entry >> 8 * (kEntrySymbols - 1) & 255]);
}

// The entries for windows of so many bits that begin with a word, from those for the bits that it leaves.
template <bool may_be_full>
void fill_entries(std::uint64_t* windows, int bits, const Word& word, const std::uint64_t* rests,
                  const HuffmanBook& book) {
    const std::uint64_t first = numbers_of(word.length) | static_cast<std::uint64_t>(word.symbol);
    for (std::size_t rest = 0; rest < std::size_t{1} << (bits - word.length); ++rest) {
        const std::uint64_t entry = may_be_full ? without_last(rests[rest], book) : rests[rest];
        const std::uint64_t symbols = entry << 8 & kSymbolBytes, numbers = entry & ~kSymbolBytes;
        windows[word.bits | rest << word.length] = (symbols | numbers) + first;
    }
}

}  // namespace

WordTable::WordTable(const HuffmanBook& book) : words{} {
    for (const Word& word : Words(book)) {
        const auto length = static_cast<unsigned>(word.length);
        words[word.symbol] = static_cast<std::uint16_t>(word.bits << kLengthBits | length);
    }
}

// Entries for windows of 0, 1, .. bits, as far as a first word may leave so many, and then for all of them.
void EntryTable::fill(int window_bits) {
    first_symbol = book.first_symbol();
    const Words words(book);
    const int shortest = book.lengths[first_symbol];
    const auto fill = shortest * kEntrySymbols > window_bits ? fill_entries<false> : fill_entries<true>;
    std::uint64_t parts[1 << kMostWindowBits];  // those of b bits begin at 1 << b
    for (int bits = 0; bits <= window_bits; ++bits) {
        if (window_bits - shortest < bits && bits < window_bits) continue;
        std::uint64_t* windows = bits == window_bits ? entries : parts + (std::size_t{1} << bits);
        if (bits < kMaxWordBits) std::fill_n(windows, std::size_t{1} << bits, 0);
        for (const Word& word : words) {
            if (word.length > bits) break;
            fill(windows, bits, word, parts + (std::size_t{1} << (bits - word.length)), book);
        }
    }
}

}  // namespace laconic
