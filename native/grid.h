// How fine the grid of the bounded quantiser is, by what the values reach.
#pragma once

#include <cstdint>

#include "elements.h"
#include "isa.h"

namespace laconic {

enum class BoundKind : int { abs, rel, rms };

constexpr std::int64_t kSummed = 4096;  // squares are added in parts of so many, see ops/grid.py

// Finite values' least and greatest; with `squares` their sums by parts, and how many there are.
struct Extent {
    double low, high;
    std::int64_t count;
};
LACONIC_DECLARE_KERNEL(Extent extent_of(const void* values, Dtype dtype, std::int64_t count, double* squares))

// Fills the step and bound of each scope of `scope` elements, in float, or double for doubles; gives the width of codes.
int bound_grid(const void* values, Dtype dtype, std::int64_t scopes, std::int64_t scope, BoundKind kind, double value,
               void* steps, void* bounds, int threads);

}  // namespace laconic
