#include "deviation.h"

#include "convert.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kSumLanes = 32;  // the order in which squares are added, see ops/deviation.py

using Doubles = Vec<double>;

inline Vec<float> without_sign(Vec<float> v) { return (Vec<float>)((Words)v & 0x7fffffff); }
inline Vec<double> without_sign(Vec<double> v) { return (Vec<double>)((Vec<std::uint64_t>)v & 0x7fffffffffffffff); }

// The first and the second half of the lanes.
inline void widen(Vec<float> v, Doubles* to) {
#if defined(__AVX512F__)
    to[0] = (Doubles)_mm512_cvtps_pd(_mm512_castps512_ps256((__m512)v));
    to[1] = (Doubles)_mm512_cvtps_pd(_mm512_extractf32x8_ps((__m512)v, 1));
#elif defined(__AVX2__)
    to[0] = (Doubles)_mm256_cvtps_pd(_mm256_castps256_ps128((__m256)v));
    to[1] = (Doubles)_mm256_cvtps_pd(_mm256_extractf128_ps((__m256)v, 1));
#else
    using Half = Vec<float, kLanes<double>>;
    Half halves[2];
    __builtin_memcpy(halves, &v, sizeof v);
    for (int i = 0; i < 2; ++i) to[i] = __builtin_convertvector(halves[i], Doubles);
#endif
}
inline void widen(Vec<double> v, Doubles* to) { to[0] = v; }

// In registers: NaN is never less nor greater, and passes by.
template <class V>
struct Extremes {
    V low, high, largest;
};

template <class T>
struct Sums {
    static constexpr int vectors = kSumLanes / kLanes<T>, parts = sizeof(double) / sizeof(T);
    Extremes<Vec<T>> extremes[vectors];
    Doubles squares[vectors * parts];

    // So many elements as there are lanes.
    template <class Element>
    inline __attribute__((always_inline)) void add(const Element* x, const Element* y) {
        for (int i = 0; i < vectors; ++i) {
            const Vec<T> value = load(x + i * kLanes<T>), difference = value - load(y + i * kLanes<T>);
            const Vec<T> size = without_sign(difference);
            auto& e = extremes[i];
            e.low = value < e.low ? value : e.low;
            e.high = value > e.high ? value : e.high;
            e.largest = size > e.largest ? size : e.largest;
            Doubles wide[parts];
            widen(difference, wide);
            for (int part = 0; part < parts; ++part) squares[i * parts + part] += wide[part] * wide[part];
        }
    }
};

template <class Element>
void deviation_in(const Element* x, const Element* y, std::int64_t count, double* found) {
    using T = Arithmetic<Element>;
    constexpr T infinity = __builtin_inf();
    Sums<T> sums;
    for (auto& e : sums.extremes) e = {Vec<T>{} + infinity, Vec<T>{} - infinity, Vec<T>{}};
    for (auto& s : sums.squares) s = Doubles{};
    std::int64_t done = 0;
    for (; done + kSumLanes <= count; done += kSumLanes) sums.add(x + done, y + done);
    if (done < count) {  // the last value again and again, where it adds nothing
        Element last[2][kSumLanes];
        for (int lane = 0; lane < kSumLanes; ++lane) {
            const bool inside = done + lane < count;
            last[0][lane] = x[inside ? done + lane : count - 1];
            last[1][lane] = inside ? y[done + lane] : last[0][lane];
        }
        sums.add(last[0], last[1]);
    }
    double low = infinity, high = -infinity, largest = 0, squares[kSumLanes];
    for (const auto& e : sums.extremes) {
        for (int lane = 0; lane < kLanes<T>; ++lane) {
            low = smaller<double>(e.low[lane], low);
            high = larger<double>(e.high[lane], high);
            largest = larger<double>(e.largest[lane], largest);
        }
    }
    __builtin_memcpy(squares, sums.squares, sizeof squares);
    for (int half = kSumLanes / 2; half > 0; half /= 2) {
        for (int lane = 0; lane < half; ++lane) squares[lane] += squares[lane + half];
    }
    found[0] = low + 0.0;  // no negative zero, which one order of lanes would give and another not
    found[1] = high + 0.0;
    found[2] = largest;
    found[3] = squares[0];
}

}  // namespace

void deviation_of(const void* x, const void* y, Dtype dtype, std::int64_t count, double* found) {
    const auto over = [&](const auto* typed) {
        deviation_in(typed, static_cast<decltype(typed)>(y), count, found);
    };
    switch (dtype) {
        case Dtype::float64: return over(static_cast<const double*>(x));
        case Dtype::float16: return over(static_cast<const Float16*>(x));
        case Dtype::bfloat16: return over(static_cast<const BFloat16*>(x));
        case Dtype::uint8: return over(static_cast<const std::uint8_t*>(x));
        default: return over(static_cast<const float*>(x));
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
