// What the lanes of a range coder need of vectors beyond arithmetic. Not there for the least instruction set, which
// takes one lane after another.
#pragma once

#include <cstdint>

#include "rans_symbols.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// A gather waits for the register that it writes to, whatever that holds. The compilers leave anything in it unless
// they cannot see that all of it is overwritten.
#define LACONIC_HIDE(vector) __asm__("" : "+v"(vector))

#if defined(__AVX512F__)

using LaneMask = __mmask16;

inline int count_lanes(LaneMask mask) { return __builtin_popcount(mask); }

template <int scale>
inline Words gather_from(const void* table, Words index) {
    __m512i none = _mm512_setzero_si512();
    LACONIC_HIDE(none);
    return (Words)_mm512_mask_i32gather_epi32(none, 0xffff, (__m512i)index, table, scale);
}

inline Words gather(const std::uint32_t* table, Words index) { return gather_from<4>(table, index); }

// 16 bits each, from a table that has two bytes more.
inline Words gather(const std::uint16_t* table, Words index) { return gather_from<2>(table, index) & 0xffff; }

// States that take a word.
inline LaneMask are_low(Words x) { return _mm512_cmplt_epu32_mask((__m512i)x, _mm512_set1_epi32(kRansLeastState)); }

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

#elif defined(__AVX2__)

using LaneMask = Ints;  // all bits of a lane, or none

inline unsigned bits_of(LaneMask mask) { return static_cast<unsigned>(_mm256_movemask_ps((__m256)mask)); }

inline int count_lanes(LaneMask mask) { return __builtin_popcount(bits_of(mask)); }

template <int scale>
inline Words gather_from(const void* table, Words index) {
    __m256i none = _mm256_setzero_si256();
    LACONIC_HIDE(none);
    const __m256i all = _mm256_set1_epi32(-1);
    return (Words)_mm256_mask_i32gather_epi32(none, static_cast<const int*>(table), (__m256i)index, all, scale);
}

inline Words gather(const std::uint32_t* table, Words index) { return gather_from<4>(table, index); }
inline Words gather(const std::uint16_t* table, Words index) { return gather_from<2>(table, index) & 0xffff; }

inline LaneMask are_low(Words x) { return (Ints)_mm256_cmpeq_epi32((__m256i)(x >> 16), _mm256_setzero_si256()); }

inline LaneMask is_at_least(Words a, Words b) {
    return (Ints)_mm256_cmpeq_epi32(_mm256_max_epu32((__m256i)a, (__m256i)b), (__m256i)a);
}

inline LaneMask is_at_least(Ints a, Ints b) { return ~(Ints)_mm256_cmpgt_epi32((__m256i)b, (__m256i)a); }

inline LaneMask is_negative(Ints a) { return a >> 31; }

// For each set of lanes, a byte for each lane: which word it takes, or, to leave words, which lane's word comes here,
// the last ones at the end.
struct LaneOrders {
    std::uint64_t taking[256] = {}, leaving[256] = {};

    constexpr LaneOrders() {
        for (unsigned mask = 0; mask < 256; ++mask) {
            unsigned before = 0, place = 8;
            for (unsigned lane = 0; lane < 8; ++lane) {
                if ((mask >> lane & 1) != 0) taking[mask] |= static_cast<std::uint64_t>(before++) << 8 * lane;
            }
            for (unsigned lane = 8; lane-- > 0;) {
                if ((mask >> lane & 1) != 0) leaving[mask] |= static_cast<std::uint64_t>(lane) << 8 * --place;
            }
        }
    }
};
constexpr LaneOrders kLaneOrders;

inline __m256i in_order(__m256i lanes, std::uint64_t order) {
    return _mm256_permutevar8x32_epi32(lanes, _mm256_cvtepu8_epi32(_mm_cvtsi64_si128(static_cast<long long>(order))));
}

inline Words take_words(Words x, LaneMask mask, const std::uint8_t* from) {
    const __m256i words = _mm256_cvtepu16_epi32(_mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
    const Words taken = x << 16 | (Words)in_order(words, kLaneOrders.taking[bits_of(mask)]);
    return (Words)_mm256_blendv_epi8((__m256i)x, (__m256i)taken, (__m256i)mask);
}

// Writes 16 bytes: what is before the words comes later.
inline std::uint8_t* leave_words(Words x, LaneMask mask, std::uint8_t* to) {
    const unsigned bits = bits_of(mask);
    store_vector(to - 16, narrow_to_halves((Words)in_order((__m256i)(x & 0xffff), kLaneOrders.leaving[bits])));
    return to - 2 * __builtin_popcount(bits);
}

inline Words shifted_where(Words x, LaneMask mask) {
    return (Words)_mm256_srlv_epi32((__m256i)x, (__m256i)((Words)mask & 16));
}

inline Words add_where(Words x, LaneMask mask, Words more) { return x + (more & (Words)mask); }

inline Words sub_where(Words x, LaneMask mask, Words less) { return x - (less & (Words)mask); }

inline Words near_quotients(Words x, Words by) {
    const __m256 high = _mm256_cvtepi32_ps((__m256i)(x >> 16)), low = _mm256_cvtepi32_ps((__m256i)(x & 0xffff));
    const __m256 dividend = _mm256_fmadd_ps(high, _mm256_set1_ps(65536), low);
    return (Words)_mm256_cvttps_epi32(_mm256_div_ps(dividend, _mm256_cvtepi32_ps((__m256i)by)));
}

class NearTable {
public:
    static constexpr int kSize = 32;

    explicit NearTable(const std::uint32_t* entries) {
        for (int k = 0; k < 4; ++k) quarters_[k] = load_vector<__m256i>(entries + 8 * k);
    }

    Words operator[](Words index) const {
        const __m256i at = (__m256i)index;
        __m256 found[4];
        for (int k = 0; k < 4; ++k) found[k] = (__m256)_mm256_permutevar8x32_epi32(quarters_[k], at);
        const __m256 second = (__m256)(index << 28), upper = (__m256)(index << 27);
        const __m256 low = _mm256_blendv_ps(found[0], found[1], second);
        return (Words)_mm256_blendv_ps(low, _mm256_blendv_ps(found[2], found[3], second), upper);
    }

private:
    __m256i quarters_[4];
};

#endif

#if defined(__AVX2__)
#define LACONIC_RANS_VECTORS 1
#endif

inline Words load_symbols(const std::uint8_t* from) { return widen(load_vector<Bytes>(from)); }
inline Words load_symbols(const std::uint16_t* from) { return widen(load_vector<Halves>(from)); }

inline void store_symbols(std::uint8_t* to, Words symbols) { store_vector(to, narrow_to_bytes(symbols & 0xff)); }
inline void store_symbols(std::uint16_t* to, Words symbols) { store_vector(to, narrow_to_halves(symbols)); }

}  // namespace
}  // namespace laconic::LACONIC_ISA_NAMESPACE
