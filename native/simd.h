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

// Signed integers of 8, 16 and 32 bits, one of each lane.
using Ints = Vec<std::int32_t>;

inline Ints load_widened(const std::int8_t* from) {
    const Bytes values = load_vector<Bytes>(from);
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtepi8_epi32((__m128i)values);
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128((long long)values));
#else
    return (Ints)(widen(values) << 24) >> 24;
#endif
}

inline Ints load_widened(const std::int16_t* from) {
    const Halves values = load_vector<Halves>(from);
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtepi16_epi32((__m256i)values);
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtepi16_epi32((__m128i)values);
#else
    return (Ints)(widen(values) << 16) >> 16;
#endif
}

inline Ints load_widened(const std::int32_t* from) { return load_vector<Ints>(from); }

// Lanes whose value fits, as they do in every chosen width of codes.
inline void store_narrow(Ints values, std::int8_t* to) { store_vector(to, narrow_to_bytes((Words)values & 0xff)); }
inline void store_narrow(Ints values, std::int16_t* to) { store_vector(to, narrow_to_halves((Words)values & 0xffff)); }
inline void store_narrow(Ints values, std::int32_t* to) { store_vector(to, values); }

// Half to even. What no integer is near to becomes the least one.
inline Ints round_to_ints(Vec<float> values) {
#if defined(__AVX512F__)
    return (Ints)_mm512_cvtps_epi32(values);
#elif defined(__AVX2__)
    return (Ints)_mm256_cvtps_epi32(values);
#elif defined(__x86_64__)
    return (Ints)_mm_cvtps_epi32(values);
#else
    Ints rounded;
    for (int lane = 0; lane < kLanes<float>; ++lane) {
        const float value = values[lane];
        rounded[lane] = value < 0x1p31f && value >= -0x1p31f ? static_cast<std::int32_t>(__builtin_rintf(value))
                                                             : INT32_MIN;
    }
    return rounded;
#endif
}

// Whether every lane of a comparison's result is true.
inline bool all_set(Ints mask) {
#if defined(__AVX512F__)
    return _mm512_test_epi32_mask((__m512i)mask, (__m512i)mask) == 0xffff;
#elif defined(__AVX2__)
    return _mm256_movemask_ps((__m256)mask) == 0xff;
#elif defined(__x86_64__)
    return _mm_movemask_ps((__m128)mask) == 0xf;
#else
    for (int lane = 0; lane < kLanes<std::int32_t>; ++lane) {
        if (!mask[lane]) return false;
    }
    return true;
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
