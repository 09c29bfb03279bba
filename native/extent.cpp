#include "grid.h"
#include "rows.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kSumLanes = 64;  // the order in which squares are added, see ops/grid.py

template <class T>
inline bool is_finite(T value) {
    return value - value == 0;
}

inline Vec<float> without_sign(Vec<float> v) { return (Vec<float>)((Words)v & 0x7fffffff); }
inline Vec<double> without_sign(Vec<double> v) {
    return (Vec<double>)((Vec<std::uint64_t>)v & 0x7fffffffffffffff);
}

template <class V>
inline V minimum(V a, V b) {
    return a < b ? a : b;
}
template <class V>
inline V maximum(V a, V b) {
    return a > b ? a : b;
}

// Sums of squares, each of 4096 values; places beyond the end and values that are not finite count as 0.
template <class T>
std::int64_t sum_squares(const T* values, int count, double& total) {
    alignas(64) double lanes[kSumLanes] = {};
    std::int64_t finite = 0;
    for (int row = 0; row * kSumLanes < count; ++row) {
        const int width = smaller(kSumLanes, count - row * kSumLanes);
        for (int lane = 0; lane < width; ++lane) {
            const T value = values[row * kSumLanes + lane];
            const double number = is_finite(value) ? value : T(0);
            finite += is_finite(value);
            lanes[lane] += number * number;
        }
    }
    total = lanes[0];
    for (int lane = 1; lane < kSumLanes; ++lane) total += lanes[lane];
    return finite;
}

template <class Element>
Extent extent_in(const Element* values, std::int64_t count, double* squares) {
    using T = Arithmetic<Element>;
    using V = Vec<T>;
    constexpr int lanes = kLanes<T>, piece = kSummed;
    constexpr T infinity = __builtin_inf();
    constexpr int chains = 4;  // so that no minimum waits for the one before
    V low[chains], high[chains];
    for (int i = 0; i < chains; ++i) {
        low[i] = V{} + infinity;
        high[i] = V{} - infinity;
    }
    std::int64_t finite = 0;
    alignas(64) T numbers[piece + lanes];
    const auto note = [&](V v, int i) {
        const V magnitude = without_sign(v);
        low[i] = minimum(magnitude < infinity ? v : V{} + infinity, low[i]);
        high[i] = maximum(magnitude < infinity ? v : V{} - infinity, high[i]);
    };
    for (std::int64_t at = 0; at < count; at += piece) {
        const int length = static_cast<int>(smaller<std::int64_t>(piece, count - at));
        int done = 0;
        for (; done + chains * lanes <= length; done += chains * lanes) {
            for (int i = 0; i < chains; ++i) note(load(values + at + done + i * lanes), i);
        }
        for (; done < length; done += lanes) {
            T last[lanes];
            for (int lane = 0; lane < lanes; ++lane) last[lane] = infinity;
            Element padded[lanes] = {};
            const int left = smaller(lanes, length - done);
            __builtin_memcpy(padded, values + at + done, left * sizeof(Element));
            const V v = load(padded);
            __builtin_memcpy(last, &v, left * sizeof(T));
            note(load(last), 0);
        }
        if (squares != nullptr) {
            read_row(values + at, length, numbers);
            finite += sum_squares(numbers, length, squares[at / piece]);
        }
    }
    for (int i = 1; i < chains; ++i) {
        low[0] = minimum(low[i], low[0]);
        high[0] = maximum(high[i], high[0]);
    }
    Extent found{infinity, -infinity, finite};
    for (int lane = 0; lane < lanes; ++lane) {
        found.low = smaller<double>(low[0][lane], found.low);
        found.high = larger<double>(high[0][lane], found.high);
    }
    return found;
}

}  // namespace

Extent extent_of(const void* values, Dtype dtype, std::int64_t count, double* squares) {
    switch (dtype) {
        case Dtype::float64: return extent_in(static_cast<const double*>(values), count, squares);
        case Dtype::float16: return extent_in(static_cast<const Float16*>(values), count, squares);
        case Dtype::bfloat16: return extent_in(static_cast<const BFloat16*>(values), count, squares);
        default: return extent_in(static_cast<const float*>(values), count, squares);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
