// Codes of 2 and 4 bytes as symbols and back, and the bits that a symbol leaves over; see huffman_job.h.
#pragma once

#include <cstdint>

#include "huffman_job.h"
#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

template <class T>
inline T load_value(const void* from) {
    T value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class T>
inline void store_value(void* to, T value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// Of eight symbols, the bits that tell those with extra bits from the others.
constexpr std::uint64_t kAllWithExtra = 0x8080808080808080;

inline std::int64_t codes_in(const HuffmanJob& job, std::int64_t chunk) {
    return smaller(job.count - (chunk << job.chunk_log), std::int64_t{1} << job.chunk_log);
}

// Codes as they lie in memory, one lane each.
inline Words load_codes(const std::uint16_t* from) {
    return (Words)((Vec<std::int32_t>)(widen(load_vector<Halves>(from)) << 16) >> 16);
}

inline Words load_codes(const std::uint32_t* from) { return load_vector<Words>(from); }

inline void store_codes(std::uint16_t* to, Words codes) { store_vector(to, narrow_to_halves(codes & 0xffff)); }

inline void store_codes(std::uint32_t* to, Words codes) { store_vector(to, codes); }

inline Words fold(Words codes) { return codes << 1 ^ (Words)((Vec<std::int32_t>)codes >> 31); }

inline Words unfold(Words folded) { return folded >> 1 ^ (Words{} - (folded & 1)); }

// The exponent and two bits of the mantissa, as a float has them. Without the bits that cannot matter, and
// the one that might round the rest up.
inline Words symbols_of(Words folded) {
    const Words high = folded >> kLeastExtra;
    const Words exact = high & ~(high >> 24);
    const Words bits = (Words)__builtin_convertvector((Vec<std::int32_t>)exact, Vec<float>);
    const Words large = (bits >> 21) - ((127 + 2) * 4 - kFirstWithExtra);
    return folded < kFirstWithExtra ? folded : large;
}

// What is in front of a symbol's extra bits.
struct FoldedBases {
    std::uint32_t of[kSymbols] = {};

    constexpr FoldedBases() {
        for (std::uint32_t symbol = 0; symbol < kWideSymbols; ++symbol) {
            of[symbol] = symbol < kFirstWithExtra ? symbol : (4 + (symbol & 3)) << kExtraBits.of[symbol];
        }
    }
};
constexpr FoldedBases kFoldedBases;

}  // namespace laconic::LACONIC_ISA_NAMESPACE
