// How far tensors are from others, sample by sample.
#pragma once

#include <cstdint>

#include "elements.h"
#include "isa.h"

namespace laconic {

// Of one sample x of `count` elements, at least one, and what came back, y, into `found`: the least and the greatest
// of x, the largest of |x - y|, and the sum of (x - y)^2, which is finite only where all of x and y is.
// What is computed, and in which order, is in ops/deviation.py.
LACONIC_DECLARE_KERNEL(void deviation_of(const void* x, const void* y, Dtype dtype, std::int64_t count, double* found))

}  // namespace laconic
