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

inline Vec<double> pack(Vec<double> values, const double*) { return values; }

inline Floats pack(Floats values, const float*) { return values; }

inline Bytes pack(Floats values, const std::uint8_t*) {
    const Floats zero = {}, top = zero + 255.0f;
    values = values > zero ? values : zero;  // NaN too
    values = values < top ? values : top;
    // Adding 1.5 * 2^23 leaves the integer, rounded half to even, in the low bits.
    return narrow_to_bytes((Words)(values + 0x1.8p23f) & 0xff);
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

// Whether a finite value became infinite when it was stored. Only float16 is narrow enough to ask.
class Overflow {
public:
    void note(Floats values, const Float16*) {
        // Counted from 65520, the least that rounds to infinity; what is smaller wraps around.
        const Words excess = ((Words)values & 0x7fffffff) - kLeast;
        least_excess_ = excess < least_excess_ ? excess : least_excess_;
    }

    template <class V>
    void note(V, const void*) {}

    bool seen() const {
        for (int lane = 0; lane < kLanes<float>; ++lane) {
            if (least_excess_[lane] < kInfinity - kLeast) return true;
        }
        return false;
    }

private:
    static constexpr std::uint32_t kLeast = 0x477ff000, kInfinity = 0x7f800000;
    Words least_excess_ = ~Words{};
};

}  // namespace laconic::LACONIC_ISA_NAMESPACE
