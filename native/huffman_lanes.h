// The inner loop of decoding: several chunks' words to symbols, side by side. Whatever the bytes say, nothing is
// read outside the stream, nor written outside the chunks' symbols.
#pragma once

#include <cstdint>

#include "huffman_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// The bytes of the stream from somewhere on. A chunk may read into the next one: what it took is checked when
// it is done.
struct Stream {
    const std::uint8_t* start;
    const std::uint8_t* end;

    // At least 56 bits from this one on, with zeros for those beyond the end.
    std::uint64_t bits_at(std::int64_t bit) const {
        const std::uint8_t* from = start + (bit >> 3);
        if (end - from >= 8) return load_value<std::uint64_t>(from) >> (bit & 7);
        std::uint64_t bytes = 0;
        for (int k = 0; from + k < end; ++k) bytes |= static_cast<std::uint64_t>(from[k]) << 8 * k;
        return bytes >> (bit & 7);
    }

    // Whether so many bits fill the bytes from `start` to `section_end`, with zeros after the last.
    bool is_filled_by(std::int64_t bits, const std::uint8_t* section_end) const {
        if ((bits + 7) >> 3 != section_end - start) return false;
        return (bits & 7) == 0 || section_end[-1] >> (bits & 7) == 0;
    }
};

// Between two looks at memory 56 bits are at hand: for so many steps, in each of which a lane may take a window.
constexpr int steps_of(int window_bits) { return 56 / window_bits; }
constexpr int kMostSymbols = steps_of(kLeastWindowBits) * kEntrySymbols, kMostBytes = 7;

// The highest bit marks where the bits end: how many were taken is the number of zeros above it.
constexpr std::uint64_t kMark = std::uint64_t{1} << 63;

inline unsigned taken(std::uint64_t bits) { return static_cast<unsigned>(__builtin_clzll(bits)); }

inline std::uint64_t load_bits(const std::uint8_t* from, unsigned skip) {
    return (load_value<std::uint64_t>(from) | kMark) >> skip;
}

// What an entry says of its symbols, see EntryTable.
inline unsigned numbers_of(std::uint64_t entry) { return static_cast<unsigned>(entry >> 48); }
inline unsigned bits_of(unsigned numbers) { return numbers & 63; }
inline unsigned symbols_of(unsigned numbers) { return numbers >> 8; }

// One chunk's words on their way to symbols.
struct Lane {
    const EntryTable* table;
    std::uint32_t window;  // as many ones as it has bits
    Stream stream;
    const std::uint8_t* section_end;
    const std::uint8_t* from;
    unsigned skip;  // bits of *from that are taken already
    std::uint8_t* to;
    std::uint8_t* to_end;
    std::int64_t chunk;

    // How many rounds of steps may run without a look at the ends. Each reads 8 bytes behind what it took, and
    // writes 8 bytes where its last kEntrySymbols go.
    std::int64_t safe_rounds() const {
        const std::int64_t in = stream.end - from - 8, out = to_end - to - (8 - kEntrySymbols);
        return in < 0 || out < 0 ? 0 : smaller(in / kMostBytes, out / kMostSymbols);
    }

    // The rest, with a look at the ends each time. Whether the words end where their section does.
    bool finish() {
        std::int64_t bit = 8 * (from - stream.start) + skip;
        while (to_end - to >= 8) {
            const std::uint64_t entry = table->entries[stream.bits_at(bit) & window];
            store_value(to, entry);
            bit += bits_of(numbers_of(entry));
            to += symbols_of(numbers_of(entry));
        }
        std::uint8_t last[16];
        std::int64_t found = 0;
        const std::int64_t wanted = to_end - to;
        while (found < wanted) {
            const std::uint64_t entry = table->entries[stream.bits_at(bit) & window];
            store_value(last + found, entry);
            bit += bits_of(numbers_of(entry));
            found += symbols_of(numbers_of(entry));
        }
        while (found > wanted) bit -= table->book.lengths[last[--found]];
        __builtin_memcpy(to, last, wanted);
        return stream.is_filled_by(bit, section_end);
    }
};

// All lanes at once, a step each in turn: a step waits for the one before it in its lane, not for the others.
template <int window_bits, int lanes, bool one_table>
void run(Lane* lane) {
    constexpr std::uint32_t window = (1u << window_bits) - 1;
    constexpr int steps = steps_of(window_bits);
    const std::uint64_t* entries[lanes];
    const std::uint8_t* from[lanes];
    std::uint8_t* to[lanes];
    std::uint64_t bits[lanes];
    std::int64_t rounds = kMostChunk;
#pragma GCC unroll 8
    for (int k = 0; k < lanes; ++k) {
        entries[k] = lane[one_table ? 0 : k].table->entries;
        from[k] = lane[k].from;
        to[k] = lane[k].to;
        bits[k] = load_bits(from[k], lane[k].skip);
        rounds = smaller(rounds, lane[k].safe_rounds());
    }
    for (; rounds > 0; --rounds) {
#pragma GCC unroll 8
        for (int step = 0; step < steps; ++step) {
#pragma GCC unroll 8
            for (int k = 0; k < lanes; ++k) {
                const std::uint64_t entry = entries[k][bits[k] & window];
                store_value(to[k], entry);
                bits[k] >>= bits_of(numbers_of(entry));
                to[k] += symbols_of(numbers_of(entry));
            }
        }
#pragma GCC unroll 8
        for (int k = 0; k < lanes; ++k) {
            const unsigned count = taken(bits[k]);
            from[k] += count >> 3;
            bits[k] = load_bits(from[k], count & 7);
        }
    }
#pragma GCC unroll 8
    for (int k = 0; k < lanes; ++k) {
        lane[k].from = from[k];
        lane[k].to = to[k];
        lane[k].skip = taken(bits[k]);
    }
}

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
