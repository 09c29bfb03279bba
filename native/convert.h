// How a tensor's elements become lanes of arithmetic, and back.
#pragma once

#include <cstdint>

#include "elements.h"
#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// What is computed on elements of this type is computed in float, and on doubles in double.
template <class Element>
struct ArithmeticOf {
    using type = float;
};
template <>
struct ArithmeticOf<double> {
    using type = double;
};
template <class Element>
using Arithmetic = typename ArithmeticOf<Element>::type;

using Floats = Vec<float>;

inline Vec<double> load(const double* from) { return load_vector<Vec<double>>(from); }

inline Floats load(const float* from) { return load_vector<Floats>(from); }

inline Floats load(const std::uint8_t* from) {
    return __builtin_convertvector((Vec<std::int32_t>)widen(load_vector<Bytes>(from)), Floats);
}

inline Floats load(const BFloat16* from) {
    return (Floats)(widen(load_vector<Halves>(from)) << 16);
}

inline Floats load(const Float16* from) {
#if defined(__AVX512F__)
    return _mm512_cvtph_ps(load_vector<__m256i>(from));
#elif defined(__F16C__)
    return _mm256_cvtph_ps(load_vector<__m128i>(from));
#else
    const Words codes = widen(load_vector<Halves>(from));
    const Floats magnitude = (Floats)((codes & 0x7fff) << 13) * 0x1p112f;
    const Words if_not_finite = (Words)(magnitude >= 0x1p16f) & 0x7f800000;
    return (Floats)((Words)magnitude | if_not_finite | (codes & 0x8000) << 16);
#endif
}

// Any number of elements; `to` has room for one vector more.
template <class Element, class T>
inline void read_row(const Element* from, std::int64_t count, T* to) {
    constexpr int lanes = kLanes<T>;
    std::int64_t done = 0;
    for (; done + lanes <= count; done += lanes) store_vector(to + done, load(from + done));
    Element rest[lanes] = {};
    __builtin_memcpy(rest, from + done, (count - done) * sizeof(Element));
    store_vector(to + done, load(rest));
}

inline Vec<double> pack(Vec<double> values, const double*) { return values; }

inline Floats pack(Floats values, const float*) { return values; }

inline Bytes pack(Floats values, const std::uint8_t*) {
    const Floats zero = {}, top = zero + 255.0f;
    values = values > zero ? values : zero;  // NaN too
    values = values < top ? values : top;
    // Adding 1.5 * 2^23 leaves the integer, rounded half to even, in the low bits.
    return narrow_to_bytes((Words)(values + 0x1.8p23f));
}

inline Halves pack(Floats values, const BFloat16*) {
    const Words bits = (Words)values;
    const Words rounded = bits + 0x7fff + (bits >> 16 & 1);
    const Words quiet_nan = bits | 0x400000;
    return narrow_to_halves((values == values ? rounded : quiet_nan) >> 16);
}

inline Halves pack(Floats values, const Float16*) {
#if defined(__AVX512F__)
    return (Halves)_mm512_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
#elif defined(__F16C__)
    return (Halves)_mm256_cvtps_ph(values, _MM_FROUND_TO_NEAREST_INT);
#else
    // The float adder rounds to 10 bits of mantissa when a power of two 2^13 times larger is added.
    const Words bits = (Words)values, magnitude = bits & 0x7fffffff, exponent = bits & 0x7f800000;
    const Words normal = Words{} + 0x38800000, infinity = Words{} + 0x7c00, nan = Words{} + 0x7e00;
    const Words scale = exponent > normal ? exponent : normal;
    const Words mantissa = (Words)((Floats)magnitude + (Floats)(scale + (13 << 23))) & 0x7fffff;
    const Words finite = ((scale - normal) >> 13) + mantissa;
    const Words code = magnitude < 0x47800000 ? finite : magnitude > 0x7f800000 ? nan : infinity;
    return narrow_to_halves(code | (bits >> 16 & 0x8000));
#endif
}

// Writes lanes as elements, and remembers whether a finite value became infinite.
template <class Element>
class Writer {
    using T = Arithmetic<Element>;
    static constexpr int lanes = kLanes<T>;

public:
    // Streaming needs `to` to be aligned to what is written.
    void write(Element* to, Vec<T> values, bool streaming) {
        note_overflow(values, to);
        if (streaming) {
            stream_vector(to, pack(values, to));
        } else {
            store_vector(to, pack(values, to));
        }
    }

    // Any number of values, anywhere: the first and last vectors may overlap those between.
    void write_row(Element* to, const T* values, std::int64_t count, bool streaming) {
        if (count < lanes) return write_few(to, values, count);
        std::int64_t done = 0;
        if (streaming) {
            constexpr std::uintptr_t bytes = lanes * sizeof(Element);
            done = (-reinterpret_cast<std::uintptr_t>(to) & (bytes - 1)) / sizeof(Element);
            if (done > 0) write(to, load(values), false);
        }
        for (; done + lanes <= count; done += lanes) write(to + done, load(values + done), streaming);
        if (done < count) write(to + count - lanes, load(values + count - lanes), false);
    }

    bool overflowed() const {
        std::uint32_t any = 0;
        for (int lane = 0; lane < kLanes<float>; ++lane) any |= overflowed_[lane];
        return any != 0;
    }

private:
    void write_few(Element* to, const T* values, std::int64_t count) {
        T padded[lanes] = {};
        for (std::int64_t i = 0; i < count; ++i) padded[i] = values[i];
        note_overflow(load(padded), to);
        const auto packed = pack(load(padded), to);
        __builtin_memcpy(to, &packed, count * sizeof(Element));
    }

    template <class V>
    void note_overflow(V, const void*) {}

    // From 65520 on, a value rounds to 2^16, which float16 does not have.
    void note_overflow(Floats values, const Float16*) {
        const Words magnitude = (Words)values & 0x7fffffff;
        overflowed_ |= (Words)(magnitude >= 0x477ff000) & (Words)(magnitude < 0x7f800000);
    }

    Words overflowed_ = {};
};

}  // namespace laconic::LACONIC_ISA_NAMESPACE
