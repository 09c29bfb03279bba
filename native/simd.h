// Vectors of the width this file is compiled for.
//
// Written with the vector extensions of GCC and Clang: arithmetic, selection and conversion need no
// intrinsics, so one source serves every instruction set.
#pragma once

#include <cstdint>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace laconic::LACONIC_ISA_NAMESPACE {

#if defined(__AVX512F__)
constexpr int kVectorBytes = 64;
#elif defined(__AVX2__)
constexpr int kVectorBytes = 32;
#else
constexpr int kVectorBytes = 16;
#endif

template <class T>
constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T, int lanes>
struct VectorOf {
    typedef T type __attribute__((vector_size(lanes * sizeof(T))));
};

template <class T, int lanes = kLanes<T>>
using Vec = typename VectorOf<T, lanes>::type;

template <class V>
inline V load_vector(const void* from) {
    V value;
    __builtin_memcpy(&value, from, sizeof value);
    return value;
}

template <class V>
inline void store_vector(void* to, V value) {
    __builtin_memcpy(to, &value, sizeof value);
}

// Past the caches, for results larger than them. `to` is aligned to the vector's size.
template <class V>
inline void stream_vector(void* to, V value) {
#if defined(__AVX512F__)
    if constexpr (sizeof value == 64) {
        return _mm512_stream_si512(static_cast<__m512i*>(to), (__m512i)value);
    }
#endif
#if defined(__AVX2__)
    if constexpr (sizeof value == 32) {
        return _mm256_stream_si256(static_cast<__m256i*>(to), (__m256i)value);
    }
#endif
#if defined(__x86_64__)
    if constexpr (sizeof value == 16) {
        return _mm_stream_si128(static_cast<__m128i*>(to), (__m128i)value);
    }
#endif
    store_vector(to, value);
}

// Fetches the cache line at this address, valid or not, while something else is computed. Into the
// second-level cache: the first has few misses under way at once.
inline void fetch_line(std::uintptr_t address) {
    __builtin_prefetch(reinterpret_cast<const void*>(address), 0, 2);
}

// Streamed stores reach other threads only after a fence.
inline void finish_streaming() {
#if defined(__x86_64__)
    _mm_sfence();
#endif
}

// Integers as stored, and one lane each. The compilers' own conversions take several steps.
using Words = Vec<std::uint32_t>;
using Halves = Vec<std::uint16_t, kLanes<std::uint32_t>>;
using Bytes = Vec<std::uint8_t, kLanes<std::uint32_t>>;

inline Words widen(Halves values) {
#if defined(__AVX512F__)
    return (Words)_mm512_cvtepu16_epi32((__m256i)values);
#elif defined(__AVX2__)
    return (Words)_mm256_cvtepu16_epi32((__m128i)values);
#else
    return __builtin_convertvector(values, Words);
#endif
}

inline Words widen(Bytes values) {
#if defined(__AVX512F__)
    return (Words)_mm512_cvtepu8_epi32((__m128i)values);
#elif defined(__AVX2__)
    return (Words)_mm256_cvtepu8_epi32(_mm_cvtsi64_si128((long long)values));
#else
    return __builtin_convertvector(values, Words);
#endif
}

// Lanes whose value fits.
inline Halves narrow_to_halves(Words values) {
#if defined(__AVX512F__)
    return (Halves)_mm512_cvtepi32_epi16((__m512i)values);
#elif defined(__AVX2__)
    const __m256i words = (__m256i)values;
    return (Halves)_mm_packus_epi32(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
#else
    return __builtin_convertvector(values, Halves);
#endif
}

inline Bytes narrow_to_bytes(Words values) {
#if defined(__AVX512F__)
    return (Bytes)_mm512_cvtepi32_epi8((__m512i)values);
#elif defined(__AVX2__)
    const __m128i halves = (__m128i)narrow_to_halves(values);
    return (Bytes)_mm_cvtsi128_si64(_mm_packus_epi16(halves, halves));
#else
    return __builtin_convertvector(values, Bytes);
#endif
}

// std::min would be an inline function shared between the instruction sets.
template <class T>
constexpr T smaller(T a, T b) {
    return a < b ? a : b;
}

template <class T>
constexpr T larger(T a, T b) {
    return a > b ? a : b;
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
