// Codes of 2 and 4 bytes as symbols and back, and the bits that a symbol leaves over; see rans_job.h.
#pragma once

#include <cstdint>
#include <type_traits>

#include "rans_job.h"
#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

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

// A lane's state before it writes. A single one may begin low: nobody else's words confuse it. Not so low that decoding
// could stay there: states that lack words fall further.
inline std::uint32_t rans_start(int lanes, int bits) { return lanes == 1 ? (1u << bits) - 1 : kRansLeastState; }

// What follows is not put into vectors together with its neighbours: where each step waits for the one before, that is
// slower by far.
inline void keep_scalar(std::uint32_t& value) { __asm__("" : "+r"(value)); }

template <class Code>
inline std::uint32_t fold_code(Code code) {
    const auto wide = static_cast<std::int32_t>(static_cast<std::make_signed_t<Code>>(code));
    return static_cast<std::uint32_t>(wide) << 1 ^ static_cast<std::uint32_t>(wide >> 31);
}

template <class Code>
inline Code unfold_code(std::uint32_t folded) {
    return static_cast<Code>(folded >> 1 ^ (0 - (folded & 1)));
}

// The extra bits of a symbol, which has some.
inline unsigned extra_bits_of(std::uint32_t symbol, int direct) {
    return static_cast<unsigned>(direct - 2) + ((symbol - (1u << direct)) >> 2);
}

inline Words load_codes(const std::uint16_t* from) {
    return (Words)((Vec<std::int32_t>)(widen(load_vector<Halves>(from)) << 16) >> 16);
}

inline Words load_codes(const std::uint32_t* from) { return load_vector<Words>(from); }

inline void store_codes(std::uint16_t* to, Words codes) { store_vector(to, narrow_to_halves(codes & 0xffff)); }

inline void store_codes(std::uint32_t* to, Words codes) { store_vector(to, codes); }

inline Words fold(Words codes) { return codes << 1 ^ (Words)((Vec<std::int32_t>)codes >> 31); }

inline Words unfold(Words folded) { return folded >> 1 ^ (Words{} - (folded & 1)); }

// The exponent and two bits of the mantissa, as a float has them. Without the lowest bit, which does not matter, and
// those that might round the rest up.
inline Words symbols_of(Words folded, int direct) {
    const std::uint32_t least = 1u << direct;
    const Words high = folded >> 1;
    const Words exact = high & ~(high >> 24);
    const Words bits = (Words)__builtin_convertvector((Vec<std::int32_t>)exact, Vec<float>);
    const Words large = (bits >> 21) - ((127 + static_cast<std::uint32_t>(direct) - 1) * 4 - least);
    return folded < least ? folded : large;
}

// A block of codes as symbols; bytes are symbols already.
inline const std::uint8_t* to_symbols(const std::uint8_t* codes, std::int64_t, int, std::uint8_t*) { return codes; }

template <class Code>
const std::uint16_t* to_symbols(const Code* codes, std::int64_t count, int direct, std::uint16_t* symbols) {
    constexpr int lanes = kLanes<std::uint32_t>;
    std::int64_t i = 0;
    for (; i + lanes <= count; i += lanes) {
        store_vector(symbols + i, narrow_to_halves(symbols_of(fold(load_codes(codes + i)), direct)));
    }
    if (i == count) return symbols;
    Code last[lanes] = {};
    __builtin_memcpy(last, codes + i, static_cast<std::size_t>(count - i) * sizeof(Code));
    store_vector(symbols + i, narrow_to_halves(symbols_of(fold(load_codes(last)), direct)));
    return symbols;
}

// What a block of such codes has for symbols.
template <class Code>
using SymbolOf = std::conditional_t<sizeof(Code) == 1, std::uint8_t, std::uint16_t>;

constexpr int kSymbolRoom = kRansBlock + kVectorBytes;

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
