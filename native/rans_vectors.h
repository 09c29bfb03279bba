// What the lanes of a range coder need of vectors beyond arithmetic. Not there for the least instruction set, which
// takes one lane after another.
#pragma once

#include <cstdint>

#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

#if defined(__AVX512F__)

using LaneMask = __mmask16;

inline int count_lanes(LaneMask mask) { return __builtin_popcount(mask); }

inline Words gather(const std::uint32_t* table, Words index) {
    return (Words)_mm512_i32gather_epi32((__m512i)index, table, 4);
}

// 16 bits each, from a place that has two bytes more.
inline Words gather(const std::uint16_t* table, Words index) {
    return (Words)_mm512_i32gather_epi32((__m512i)index, table, 2) & 0xffff;
}

inline LaneMask is_below(Words a, Words b) { return _mm512_cmplt_epu32_mask((__m512i)a, (__m512i)b); }

inline LaneMask is_at_least(Words a, Words b) { return _mm512_cmpge_epu32_mask((__m512i)a, (__m512i)b); }

inline LaneMask is_at_least(Ints a, Ints b) { return _mm512_cmpge_epi32_mask((__m512i)a, (__m512i)b); }

inline LaneMask is_negative(Ints a) { return _mm512_movepi32_mask((__m512i)a); }

// The states of these lanes, in order, take a word each. Reads 32 bytes.
inline Words take_words(Words x, LaneMask mask, const std::uint8_t* from) {
    const __m512i words = _mm512_cvtepu16_epi32(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(from)));
    const __m512i shifted = _mm512_slli_epi32((__m512i)x, 16);
    return (Words)_mm512_mask_or_epi32((__m512i)x, mask, shifted, _mm512_maskz_expand_epi32(mask, words));
}

// The lower halves of these lanes, in order, in front of `to`.
inline std::uint8_t* leave_words(Words x, LaneMask mask, std::uint8_t* to) {
    const int count = count_lanes(mask);
    to -= 2 * count;
    const __m256i words = _mm512_cvtepi32_epi16(_mm512_maskz_compress_epi32(mask, (__m512i)x));
    _mm256_mask_storeu_epi16(to, static_cast<__mmask16>((1u << count) - 1), words);
    return to;
}

inline Words shifted_where(Words x, LaneMask mask) {
    return (Words)_mm512_mask_srli_epi32((__m512i)x, mask, (__m512i)x, 16);
}

inline Words add_where(Words x, LaneMask mask, Words more) {
    return (Words)_mm512_mask_add_epi32((__m512i)x, mask, (__m512i)x, (__m512i)more);
}

inline Words sub_where(Words x, LaneMask mask, Words less) {
    return (Words)_mm512_mask_sub_epi32((__m512i)x, mask, (__m512i)x, (__m512i)less);
}

// The quotients where they are below 2^22, or these less or more by one.
inline Words near_quotients(Words x, Words by) {
    const __m512 divisor = _mm512_cvtepi32_ps((__m512i)by), guess = _mm512_rcp14_ps(divisor);
    const __m512 inverse = _mm512_mul_ps(guess, _mm512_fnmadd_ps(guess, divisor, _mm512_set1_ps(2)));
    return (Words)_mm512_cvttps_epu32(_mm512_mul_ps(_mm512_cvtepu32_ps((__m512i)x), inverse));
}

// A table of at most 64 entries in registers: many times faster than memory.
class NearTable {
public:
    static constexpr int kSize = 64;

    explicit NearTable(const std::uint32_t* entries) {
        for (int k = 0; k < 4; ++k) quarters_[k] = _mm512_loadu_si512(entries + 16 * k);
    }

    Words operator[](Words index) const {
        const __m512i at = (__m512i)index;
        const __m512i low = _mm512_permutex2var_epi32(quarters_[0], at, quarters_[1]);
        const __m512i high = _mm512_permutex2var_epi32(quarters_[2], at, quarters_[3]);
        return (Words)_mm512_mask_mov_epi32(low, _mm512_test_epi32_mask(at, _mm512_set1_epi32(32)), high);
    }

private:
    __m512i quarters_[4];
};

#define LACONIC_RANS_VECTORS 1

#endif

inline Words load_symbols(const std::uint8_t* from) { return widen(load_vector<Bytes>(from)); }
inline Words load_symbols(const std::uint16_t* from) { return widen(load_vector<Halves>(from)); }

inline void store_symbols(std::uint8_t* to, Words symbols) { store_vector(to, narrow_to_bytes(symbols & 0xff)); }
inline void store_symbols(std::uint16_t* to, Words symbols) { store_vector(to, narrow_to_halves(symbols)); }

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
