// What a rANS kernel has to do: some of the chunks of a stream. The kernels themselves are compiled once per
// instruction set, see isa.h.
//
//   codes     | chunk | chunk | .. | last |
//   stream     .. | states, words, extra bits | states, words, extra bits | ..
//
// Code i of a chunk belongs to lane i mod lanes. A lane's state is a number of 32 bits; coding goes from the last
// code to the first, so that decoding goes forward, and all lanes take their words from one row.
//
// 1-byte codes are their own symbols. Others are folded, 0, -1, 1, -2, 2, .. to 0, 1, 2, 3, 4, .. (zigzag); below
// 2^direct that is the symbol, and what is above has a part of it as extra bits:
//
//   folded = 1 m m b b .. b in binary, e bits after the 1: symbol 2^direct + 4 * (e - direct) + mm, extra bits b b .. b
#pragma once

#include <cstdint>

#include "isa.h"

namespace laconic {

constexpr int kRansLeastDirect = 3, kRansMostDirect = 11;
constexpr int kRansSymbols = (1 << kRansMostDirect) + 4 * (32 - kRansMostDirect);
constexpr int kRansLeastBits = 8, kRansMostBits = 15;
constexpr int kRansMostLanesLog = 5, kRansMostLanes = 1 << kRansMostLanesLog;
constexpr int kRansMostChunk = 1 << 17;
constexpr int kRansBlock = 2048;  // codes that become symbols, or symbols codes, at once
constexpr std::uint32_t kRansLeastState = 1 << 16;

// To encode: x becomes x + bias + (x * reciprocal >> 64) * complement, which is the quotient by the frequency in slots
// of 2^bits, and the remainder from the symbol's first slot on.
struct RansSymbol {
    std::uint64_t reciprocal;
    std::uint32_t bias;
    std::uint16_t frequency, complement;
};

constexpr int kRansNear = 64;

struct RansEncodeTable {
    RansSymbol symbols[kRansSymbols];
    std::uint32_t packed[kRansSymbols];  // frequency | first slot << 16

    // The symbols that occur are those from `first` on, behind the last of which is the first; the entries of some.
    std::uint32_t first;
    int span;
    std::uint32_t near[kRansNear];
};

// To decode: what each slot says. Small ones, where the symbol is a byte and none has 2^12 slots or more, have all
// of it in an entry: frequency | slots before it of this symbol << 12 | symbol << 24. In others it is
// frequency | slots before it << 16, and the symbol in a table of its own.
constexpr int kRansSmallBits = 12;

struct RansDecodeTable {
    bool small;
    std::uint32_t* entries;
    std::uint16_t* symbols;
};

struct RansJob {
    void* codes;  // only read when encoding
    std::int64_t count, length, chunks;  // the codes of a chunk, and how many of these
    int itemsize, direct, bits, lanes_log;
    bool has_extra;

    const RansEncodeTable* encode;
    std::uint8_t* scratch;       // where chunks are written, each in `region` bytes
    std::int64_t region;
    std::int64_t words_region;   // of these, for the words, which are written at its end
    std::int64_t* words_bytes;   // found of each chunk, as are
    std::int64_t* extra_bytes;

    const RansDecodeTable* decode;
    const std::uint8_t* stream;
    const std::int64_t* offsets;  // of each chunk's words and extra bits; and of the end
};

LACONIC_DECLARE_KERNEL(
    void rans_count(const RansJob& job, std::int64_t begin, std::int64_t end, std::uint64_t* counts);
    void rans_encode(const RansJob& job, std::int64_t begin, std::int64_t end);
    bool rans_decode(const RansJob& job, std::int64_t begin, std::int64_t end);)

}  // namespace laconic
