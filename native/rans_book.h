// How likely each symbol is: the frequencies of a table of 2^bits slots, and how they are stored. The same integers
// as those of laconic/ops/rans_book.py.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rans_job.h"

namespace laconic {

constexpr std::size_t kRansStoredBytes = 2 + 3 * kRansSymbols;

// How many symbols there are: all bytes; or folded codes below 2^direct, and four for each octave above.
constexpr int rans_alphabet(int itemsize, int direct) {
    return itemsize == 1 ? 256 : (1 << direct) + 4 * (8 * itemsize - direct);
}

// The extra bits of a symbol.
constexpr int rans_extra_bits(int symbol, int direct) {
    return direct == 0 || symbol < 1 << direct ? 0 : direct - 2 + ((symbol - (1 << direct)) >> 2);
}

struct RansBook {
    int bits, direct, alphabet;
    bool has_extra;
    std::uint16_t frequencies[kRansSymbols];  // 0: the symbol does not occur

    // About how many bits so many symbols take; negative where one does not occur here.
    std::int64_t cost(const std::uint64_t* counts) const;

    void fill(RansEncodeTable& table) const;

    // Into entries and symbols of so many slots, or entries alone where it is small.
    bool is_small() const;
    void fill(const RansDecodeTable& table) const;

private:
    void fill_near(RansEncodeTable& table) const;
};

struct RansStored {
    std::size_t size;
    std::uint8_t bytes[kRansStoredBytes + 8];
};

// The smallest of the tables tried that costs hardly more than the largest.
void make_rans_book(const std::uint64_t* counts, int itemsize, int direct, RansBook& book, RansStored& stored);

// The number of bytes that the book takes which these begin with: 0 where it is none for codes of this size.
std::size_t read_rans_book(const std::uint8_t* from, std::size_t size, int itemsize, RansBook& book);

}  // namespace laconic
