// The step and the bound of each scope. What is computed, and why, is in ops/grid.py; both give the same bits.
#include "grid.h"

#include <algorithm>
#include <cfloat>
#include <cmath>
#include <limits>
#include <vector>

#include "threads.h"

namespace laconic {
namespace {

constexpr std::int64_t kElementsWorthThreads = 128 * 1024;

// Scopes are measured in pieces, side by side.
struct Measuring {
    static constexpr std::int64_t kPiece = 64 * 1024, kSums = kPiece / kSummed;

    const std::uint8_t* values;
    Dtype dtype;
    std::int64_t element_bytes, scope, pieces;  // elements and pieces of a scope
    std::vector<Extent> found;                  // of each piece of each scope
    std::vector<double> squares;                // of each part of each piece
};

void measure_range(void* context, std::int64_t begin, std::int64_t end) {
    auto& m = *static_cast<Measuring*>(context);
    for (std::int64_t i = begin; i < end; ++i) {
        const std::int64_t from = i % m.pieces * Measuring::kPiece;
        const void* values = m.values + (i / m.pieces * m.scope + from) * m.element_bytes;
        double* squares = m.squares.empty() ? nullptr : m.squares.data() + i * Measuring::kSums;
        const std::int64_t count = std::min(Measuring::kPiece, m.scope - from);
        m.found[i] = LACONIC_CHOOSE_KERNEL(extent_of)(values, m.dtype, count, squares);
    }
}

Extent extent_of_scope(const Measuring& m, std::int64_t scope, double& squares) {
    Extent whole{INFINITY, -INFINITY, 0};
    for (std::int64_t i = scope * m.pieces; i < (scope + 1) * m.pieces; ++i) {
        whole.low = std::min(whole.low, m.found[i].low);
        whole.high = std::max(whole.high, m.found[i].high);
        whole.count += m.found[i].count;
    }
    squares = 0;
    const std::int64_t sums = m.squares.empty() ? 0 : m.pieces * Measuring::kSums;
    for (std::int64_t i = 0; i < sums; ++i) squares += m.squares[scope * sums + i];
    return whole;
}

double finite_or_zero(double value) {
    if (std::isnan(value)) return 0;
    return std::clamp(value, -DBL_MAX, DBL_MAX);
}

double size_of(BoundKind kind, const Extent& extent, double squares) {
    switch (kind) {
        case BoundKind::rel: return finite_or_zero(std::max(extent.high - extent.low, 0.0));
        case BoundKind::rms: return finite_or_zero(std::sqrt(std::min(squares, DBL_MAX) / static_cast<double>(extent.count)));
        default: return 1;
    }
}

template <class T>
double round_down(double bound) {
    T rounded = static_cast<T>(std::min(bound, static_cast<double>(std::numeric_limits<T>::max())));
    if (static_cast<double>(rounded) > bound) rounded = std::nextafter(rounded, T(0));
    return std::max(rounded, std::numeric_limits<T>::denorm_min());
}

double reach_of_narrow(double bound, double largest, Dtype dtype) {
    const double epsilon = dtype == Dtype::float16 ? 0x1p-10 : 0x1p-7;
    const double tiny = dtype == Dtype::float16 ? 0x1p-14 : 0x1p-126;
    int exponent;
    std::frexp(std::max(largest, tiny), &exponent);
    double reach = INFINITY, unit = std::ldexp(epsilon, exponent - 1);
    for (int binade = 0; binade < 3; ++binade, unit /= 2) {
        reach = std::min(reach, (std::floor(bound / unit) + 0.5) * unit);
    }
    return reach;
}

template <class T>
T step_of(double bound, const Extent& extent, double largest, Dtype dtype) {
    const bool narrow = dtype == Dtype::float16 || dtype == Dtype::bfloat16;
    const double reach = narrow ? std::min(bound, reach_of_narrow(bound, largest, dtype)) : bound;
    const double limit = sizeof(T) == 4 ? 0x1p20 : 0x1p49;
    const double slack = std::min(largest / (2 * reach) + 1, limit) / (2 * limit);
    T step = static_cast<T>(2 * reach * (1 - slack));
    const bool flat = extent.low == extent.high && extent.low != 0 && bound <= std::numeric_limits<T>::denorm_min();
    if (flat) step = static_cast<T>(extent.low);
    return step == 0 || !std::isfinite(step) ? T(1) : step;
}

template <class T>
int choose(const Measuring& m, BoundKind kind, double value, std::int64_t scopes, T* steps, T* bounds) {
    double codes = 0;
    for (std::int64_t scope = 0; scope < scopes; ++scope) {
        double squares;
        const Extent extent = extent_of_scope(m, scope, squares);
        const double bound = round_down<T>(value * size_of(kind, extent, squares));
        const double most = std::max(std::fabs(extent.low), std::fabs(extent.high));
        const double largest = std::isfinite(most) ? most : 0;
        steps[scope] = step_of<T>(bound, extent, largest, m.dtype);
        bounds[scope] = static_cast<T>(bound);
        codes = std::max(codes, largest / std::fabs(static_cast<double>(steps[scope])));
    }
    return codes + 1 <= 127 ? 8 : codes + 1 <= 32767 ? 16 : 32;
}

}  // namespace

int bound_grid(const void* values, Dtype dtype, std::int64_t scopes, std::int64_t scope, BoundKind kind, double value,
               void* steps, void* bounds, int threads) {
    const std::int64_t bytes = dtype == Dtype::float64 ? 8 : dtype == Dtype::float32 ? 4 : 2;
    const std::int64_t pieces = (scope + Measuring::kPiece - 1) / Measuring::kPiece, tasks = scopes * pieces;
    Measuring m{static_cast<const std::uint8_t*>(values), dtype, bytes, scope, pieces, {}, {}};
    m.found.resize(tasks);
    if (kind == BoundKind::rms) m.squares.assign(tasks * Measuring::kSums, 0.0);
    if (scopes * scope < kElementsWorthThreads) threads = 1;
    parallel_for(tasks, std::max<std::int64_t>(1, tasks / (threads * 8)), threads, measure_range, &m);
    return dtype == Dtype::float64
               ? choose(m, kind, value, scopes, static_cast<double*>(steps), static_cast<double*>(bounds))
               : choose(m, kind, value, scopes, static_cast<float*>(steps), static_cast<float*>(bounds));
}

}  // namespace laconic
