// A line of floats <-> a line of codes. See `ops/bound.py` for what is computed; compiled without contraction, as
// the receiver's arithmetic has none.
#pragma once

#include "convert.h"
#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// `note` is told the place in the line of each exception. `codes` has room for a vector more.
template <class Element, class T, class Note>
inline void quantise(const Element* x, std::int64_t length, float step, float bound, std::int32_t top, T* codes,
                     Note note) {
    constexpr int lanes = kLanes<float>;
    const float inverse = static_cast<float>(1.0 / static_cast<double>(step));
    const auto one_vector = [&](const Element* from, std::int64_t at, int count) {
        const Floats values = load(from);
        Ints rounded = round_to_ints(values * inverse);
        const Ints fits = (rounded <= top) & (rounded >= -top);
        rounded &= fits;
        Floats restored = __builtin_convertvector(rounded, Floats) * step;
        if constexpr (sizeof(Element) == 2) {
            const auto packed = pack(restored, from);
            restored = load(reinterpret_cast<const Element*>(&packed));
        }
        const Floats off = (Floats)((Words)(values - restored) & 0x7fffffff);
        const Ints kept = fits & (Ints)(off < bound);
        store_narrow(rounded, codes + at);
        if (all_set(kept)) return;
        for (int lane = 0; lane < count; ++lane) {
            if (!kept[lane]) note(at + lane);
        }
    };
    std::int64_t at = 0;
    for (; at + lanes <= length; at += lanes) one_vector(x + at, at, lanes);
    if (at < length) {
        Element padded[lanes] = {};
        __builtin_memcpy(padded, x + at, (length - at) * sizeof(Element));
        one_vector(padded, at, static_cast<int>(length - at));
    }
}

template <class T, class Note>
inline void quantise(const double* x, std::int64_t length, double step, double bound, std::int32_t top, T* codes,
                     Note note) {
    constexpr double integers = 0x1.8p52;  // added and taken away again, it rounds half to even
    const double inverse = 1.0 / step;
    for (std::int64_t at = 0; at < length; ++at) {
        const double scaled = x[at] * inverse;
        const bool small = scaled < 0x1p40 && scaled > -0x1p40;
        double rounded = (small ? scaled : 0.0) + integers;
        rounded -= integers;
        const bool fits = small && rounded <= top && rounded >= -top;
        rounded = fits ? rounded : 0.0;
        const double off = x[at] - rounded * step;
        codes[at] = static_cast<T>(rounded);
        if (!(fits && off < bound && -off < bound)) note(at);
    }
}

// Reads up to a vector more.
template <class T, class Element>
inline void dequantise(const T* codes, std::int64_t length, float step, Element* x) {
    constexpr int lanes = kLanes<float>;
    const auto one_vector = [&](std::int64_t at) {
        return pack(__builtin_convertvector(load_widened(codes + at), Floats) * step, x);
    };
    std::int64_t at = 0;
    for (; at + lanes <= length; at += lanes) store_vector(x + at, one_vector(at));
    if (at < length) {
        const auto last = one_vector(at);
        __builtin_memcpy(x + at, &last, (length - at) * sizeof(Element));
    }
}

template <class T>
inline void dequantise(const T* codes, std::int64_t length, double step, double* x) {
    for (std::int64_t at = 0; at < length; ++at) x[at] = static_cast<double>(codes[at]) * step;
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
