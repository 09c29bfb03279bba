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

// What a symbol adds to an entry's two numbers.
std::uint64_t numbers_of(int length) { return std::uint64_t{1} << 56 | static_cast<std::uint64_t>(length) << 48; }

unsigned symbols_in(std::uint64_t entry) { return static_cast<unsigned>(entry >> 56); }

// Windows that end where a word does, by their number of bits, as far as another word may follow.
struct Ends {
    std::uint16_t windows[1 << kMostWindowBits];  // fewer than so many in all: each of b bits, b from 0 on, but the last
    std::uint64_t entries[1 << kMostWindowBits];
    int begin[kMostWindowBits + 2] = {0, 1};
};

}  // namespace

WordTable::WordTable(const HuffmanBook& book) : words{} {
    for (const Word& word : Words(book)) {
        const auto length = static_cast<unsigned>(word.length);
        words[word.symbol] = static_cast<std::uint16_t>(word.bits << kLengthBits | length);
    }
}

// Entries for windows of 0, 1, .. bits. One bit more changes those whose last word it completes, and no others.
void EntryTable::fill(int window_bits) {
    first_symbol = book.first_symbol();
    const Words words(book);
    const int last_to_extend = window_bits - book.lengths[first_symbol];
    Ends ends;
    ends.windows[0] = 0;
    ends.entries[0] = entries[0] = 0;
    for (int bits = 1; bits <= window_bits; ++bits) {
        std::copy_n(entries, std::size_t{1} << (bits - 1), entries + (std::size_t{1} << (bits - 1)));
        int end = ends.begin[bits];
        for (const Word& word : words) {
            const int before = bits - word.length;
            if (before < 0) break;
            for (int k = ends.begin[before]; k < ends.begin[before + 1]; ++k) {
                const unsigned place = symbols_in(ends.entries[k]);
                const std::uint64_t symbol = static_cast<std::uint64_t>(word.symbol) << 8 * place;
                const std::uint64_t entry = (ends.entries[k] | symbol) + numbers_of(word.length);
                const std::uint32_t window = ends.windows[k] | word.bits << before;
                entries[window] = entry;
                ends.windows[end] = static_cast<std::uint16_t>(window);
                ends.entries[end] = entry;
                end += bits <= last_to_extend && place + 1 < kEntrySymbols;
            }
        }
        ends.begin[bits + 1] = end;
    }
}

}  // namespace laconic
