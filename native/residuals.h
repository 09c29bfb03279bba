// Codes <-> what their neighbours do not foretell of them.
#pragma once

#include "lines.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// What is asked of a line. `planar`: differences are kept in a plane, for the line below this one in depth.
struct Prediction {
    bool west, north, planar, zigzag;
};

template <class U, int lanes>
struct SignedVectorOf;
template <int lanes>
struct SignedVectorOf<std::uint8_t, lanes> {
    using type = Vec<std::int8_t, lanes>;
};
template <int lanes>
struct SignedVectorOf<std::uint16_t, lanes> {
    using type = Vec<std::int16_t, lanes>;
};
template <int lanes>
struct SignedVectorOf<std::uint32_t, lanes> {
    using type = Vec<std::int32_t, lanes>;
};

// Of `count` codes; `codes[-1]` and `above[-1]` are the western neighbours. Reads up to a vector more.
template <bool west, bool north, bool planar, bool zigzag, class U>
void subtract_neighbours(const U* codes, const U* above, U* plane, std::int64_t count, U* out) {
    constexpr int lanes = kLanes<U>;
    using V = Vec<U, lanes>;
    const auto one_vector = [&](std::int64_t at) {
        V r = load_vector<V>(codes + at);
        if constexpr (west) r -= load_vector<V>(codes + at - 1);
        if constexpr (north) r -= load_vector<V>(above + at) - load_vector<V>(above + at - 1);
        return r;
    };
    const auto finish = [](V r) {
        if constexpr (zigzag) r = (r + r) ^ (V)((typename SignedVectorOf<U, lanes>::type)r < 0);
        return r;
    };
    std::int64_t at = 0;
    for (; at + lanes <= count; at += lanes) {
        V r = one_vector(at);
        if constexpr (planar) {
            const V before = load_vector<V>(plane + at);
            store_vector(plane + at, r);
            r -= before;
        }
        store_vector(out + at, finish(r));
    }
    if (at < count) {
        const std::size_t bytes = (count - at) * sizeof(U);
        V r = one_vector(at);
        if constexpr (planar) {
            V before = {};
            __builtin_memcpy(&before, plane + at, bytes);
            __builtin_memcpy(plane + at, &r, bytes);
            r -= before;
        }
        r = finish(r);
        __builtin_memcpy(out + at, &r, bytes);
    }
}

#if defined(__x86_64__)
// Sums up to and with each lane of 16 bytes.
inline __m128i sums_of(__m128i v, const std::uint8_t*) {
    v = _mm_add_epi8(v, _mm_slli_si128(v, 1));
    v = _mm_add_epi8(v, _mm_slli_si128(v, 2));
    v = _mm_add_epi8(v, _mm_slli_si128(v, 4));
    return _mm_add_epi8(v, _mm_slli_si128(v, 8));
}
inline __m128i sums_of(__m128i v, const std::uint16_t*) {
    v = _mm_add_epi16(v, _mm_slli_si128(v, 2));
    v = _mm_add_epi16(v, _mm_slli_si128(v, 4));
    return _mm_add_epi16(v, _mm_slli_si128(v, 8));
}
inline __m128i sums_of(__m128i v, const std::uint32_t*) {
    v = _mm_add_epi32(v, _mm_slli_si128(v, 4));
    return _mm_add_epi32(v, _mm_slli_si128(v, 8));
}

inline __m128i last_everywhere(__m128i v, const std::uint8_t*) {
#if defined(__SSSE3__)
    return _mm_shuffle_epi8(v, _mm_set1_epi8(15));
#else
    v = _mm_unpackhi_epi8(v, v);
    return _mm_shuffle_epi32(_mm_shufflehi_epi16(v, 0xff), 0xff);
#endif
}
inline __m128i last_everywhere(__m128i v, const std::uint16_t*) {
    return _mm_shuffle_epi32(_mm_shufflehi_epi16(v, 0xff), 0xff);
}
inline __m128i last_everywhere(__m128i v, const std::uint32_t*) { return _mm_shuffle_epi32(v, 0xff); }
#endif

// The way back: codes of `count` residuals. `carry` is the sum of the line's residuals so far, from call to call.
template <bool west, bool north, bool planar, bool zigzag, class U>
void add_neighbours(const U* in, const U* above, U* plane, std::int64_t count, U* codes, U& carry) {
    constexpr int lanes = 16 / sizeof(U);
    using V = Vec<U, lanes>;
    std::int64_t at = 0;
#if defined(__x86_64__)
    V carried = V{} + carry;
    for (; at + lanes <= count; at += lanes) {
        V r = load_vector<V>(in + at);
        if constexpr (zigzag) r = (r >> 1) ^ -(r & 1);
        if constexpr (planar) {
            r += load_vector<V>(plane + at);
            store_vector(plane + at, r);
        }
        if constexpr (west) {
            r = (V)sums_of((__m128i)r, in) + carried;
            carried = (V)last_everywhere((__m128i)r, in);
        }
        if constexpr (north) r += load_vector<V>(above + at);
        store_vector(codes + at, r);
    }
    carry = carried[0];
#endif
    for (; at < count; ++at) {
        U r;
        __builtin_memcpy(&r, in + at, sizeof r);
        if constexpr (zigzag) r = static_cast<U>((r >> 1) ^ -(r & 1));
        if constexpr (planar) plane[at] = r = static_cast<U>(r + plane[at]);
        if constexpr (west) r = carry = static_cast<U>(r + carry);
        if constexpr (north) r = static_cast<U>(r + above[at]);
        codes[at] = r;
    }
}

struct Yes {
    static constexpr bool value = true;
};
struct No {
    static constexpr bool value = false;
};

// `call` with a Yes or a No for each thing that a prediction asks.
template <class Call>
inline void with_prediction(const Prediction& p, Call call) {
    const auto zigzagged = [&](auto west, auto north, auto planar) {
        p.zigzag ? call(west, north, planar, Yes{}) : call(west, north, planar, No{});
    };
    if (!p.west) return zigzagged(No{}, No{}, No{});
    if (p.planar) return p.north ? zigzagged(Yes{}, Yes{}, Yes{}) : zigzagged(Yes{}, No{}, Yes{});
    return p.north ? zigzagged(Yes{}, Yes{}, No{}) : zigzagged(Yes{}, No{}, No{});
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
