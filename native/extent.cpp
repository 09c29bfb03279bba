#include "codes.h"
#include "rows.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

constexpr int kSumLanes = 64, kSumRows = 64;  // the order in which squares are added, see ops/bound.py

template <class T>
inline bool is_finite(T value) {
    return value - value == 0;
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
    constexpr int lanes = kLanes<T>, piece = kSumLanes * kSumRows;
    constexpr T infinity = __builtin_inf();
    V low = V{} + infinity, high = V{} - infinity;
    std::int64_t finite = 0;
    alignas(64) T numbers[piece + lanes];
    const auto note = [&](V v) {
        low = (v < low) & (v > -infinity) ? v : low;
        high = (v > high) & (v < infinity) ? v : high;
    };
    for (std::int64_t at = 0; at < count; at += piece) {
        const int length = static_cast<int>(smaller<std::int64_t>(piece, count - at));
        int done = 0;
        for (; done + lanes <= length; done += lanes) note(load(values + at + done));
        if (done < length) {
            T last[lanes];
            read_row(values + at + done, length - done, last);
            for (int lane = length - done; lane < lanes; ++lane) last[lane] = infinity;
            note(load(last));
        }
        if (squares != nullptr) {
            read_row(values + at, length, numbers);
            finite += sum_squares(numbers, length, squares[at / piece]);
        }
    }
    Extent found{infinity, -infinity, finite};
    for (int lane = 0; lane < lanes; ++lane) {
        found.low = smaller<double>(low[lane], found.low);
        found.high = larger<double>(high[lane], found.high);
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
