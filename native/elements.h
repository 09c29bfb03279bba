// The element types a tensor may have, by the codes that Python passes.
#pragma once

#include <cstdint>

namespace laconic {

enum class Dtype : int { float32, float64, float16, bfloat16, uint8 };

struct Float16 {
    std::uint16_t bits;
};

struct BFloat16 {
    std::uint16_t bits;
};

}  // namespace laconic
