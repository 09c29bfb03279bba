// Counts as levels, with four bits of precision, and levels as bits.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rans_job.h"

namespace laconic {

constexpr int kRansMostLevel = 144;

// What a level stands for, at most 2^20.
constexpr std::uint32_t rans_weight(std::uint32_t level) {
    return level < 16 ? level : (8 + level % 8) << (level / 8 - 1);
}

// Of the symbols that occur, in their order.
struct RansLevels {
    int present;
    std::uint16_t symbols[kRansSymbols];
    std::uint8_t of[kRansSymbols];

    void add(int symbol, std::uint32_t level) {
        symbols[present] = static_cast<std::uint16_t>(symbol);
        of[present++] = static_cast<std::uint8_t>(level);
    }

    // Two symbols at least: where fewer occur, the smallest others join them.
    void fill(const std::uint64_t* counts, int alphabet);
};

// The number of bytes of the stored form; `to` has room for 8 more.
std::size_t write_rans_levels(const RansLevels& levels, int bits, int direct, int alphabet, std::uint8_t* to);

// The number of bytes read; 0 where they are none, or too few or too many symbols occur.
std::size_t read_rans_levels(const std::uint8_t* from, std::size_t size, int itemsize, RansLevels& levels, int& bits,
                             int& direct);

}  // namespace laconic
