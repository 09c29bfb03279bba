// The least and the greatest of some floats.
#pragma once

#include "convert.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// The second where either is NaN.
inline Floats least_of(Floats a, Floats b) {
#if defined(__AVX512F__)
    return _mm512_min_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_min_ps(a, b);
#else
    return a < b ? a : b;
#endif
}
inline Floats greatest_of(Floats a, Floats b) {
#if defined(__AVX512F__)
    return _mm512_max_ps(a, b);
#elif defined(__AVX2__)
    return _mm256_max_ps(a, b);
#else
    return a > b ? a : b;
#endif
}
inline Vec<double> least_of(Vec<double> a, Vec<double> b) { return a < b ? a : b; }
inline Vec<double> greatest_of(Vec<double> a, Vec<double> b) { return a > b ? a : b; }

// One half of the lanes with the other, until one is left.
template <int lanes, class T, class Choose>
inline T fold(Vec<T, lanes> v, Choose choose) {
    if constexpr (lanes == 1) {
        return v[0];
    } else {
        Vec<T, lanes / 2> halves[2];
        __builtin_memcpy(halves, &v, sizeof v);
        return fold<lanes / 2, T>(choose(halves[0], halves[1]), choose);
    }
}

inline bool has_nan(Floats v) { return !all_set((Ints)(v == v)); }
inline bool has_nan(Vec<double> v) {
    for (int lane = 0; lane < kLanes<double>; ++lane) {
        if (v[lane] != v[lane]) return true;
    }
    return false;
}

template <class T>
struct Range {
    T low, high;  // NaN, both, where any value is
};

template <class T>
struct Reached {
    Vec<T> low, high, odd;  // odd: NaN where a value was not finite

    void note(Vec<T> values) {
        low = least_of(values, low);
        high = greatest_of(values, high);
        odd += values - values;
    }
    void join(const Reached& other) {
        low = least_of(other.low, low);
        high = greatest_of(other.high, high);
        odd += other.odd;
    }
    Range<T> range() const {
        constexpr T nan = __builtin_nan("");
        if (has_nan(odd)) return {nan, nan};
        return {fold<kLanes<T>, T>(low, [](auto a, auto b) { return a < b ? a : b; }),
                fold<kLanes<T>, T>(high, [](auto a, auto b) { return a > b ? a : b; })};
    }
};

template <class Element, class T = Arithmetic<Element>>
inline Range<T> range_of(const Element* values, std::int64_t count) {
    constexpr int lanes = kLanes<T>, chains = 4;  // so that none waits for the one before
    if (count < lanes) {
        Element padded[lanes];
        for (int lane = 0; lane < lanes; ++lane) padded[lane] = values[lane < count ? lane : 0];
        const Vec<T> v = load(padded);
        return Reached<T>{v, v, v - v}.range();
    }
    Reached<T> reached[chains];
    const Vec<T> first = load(values);
    for (auto& chain : reached) chain = {first, first, first - first};
    std::int64_t at = 0;
    for (; at + chains * lanes <= count; at += chains * lanes) {
        for (int i = 0; i < chains; ++i) reached[i].note(load(values + at + i * lanes));
    }
    for (; at + lanes <= count; at += lanes) reached[0].note(load(values + at));
    if (at < count) reached[1].note(load(values + count - lanes));  // some of them again
    reached[0].join(reached[1]);
    reached[2].join(reached[3]);
    reached[0].join(reached[2]);
    return reached[0].range();
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
