// The noise of stochastic rounding: for each place in a tensor a number that its seed alone decides, see ops/affine.py.
#pragma once

#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

template <class V>
inline V mixed(V v) {
    v = (v ^ (v >> 16)) * 0x7feb352du;
    v = (v ^ (v >> 15)) * 0x846ca68bu;
    return v ^ (v >> 16);
}

class Noise {
public:
    // For places that have their upper 32 bits in common with this one.
    Noise(std::uint64_t seed, std::uint64_t place) {
        const auto low = static_cast<std::uint32_t>(seed), high = static_cast<std::uint32_t>(seed >> 32);
        first_ = mixed(mixed(mixed(low) ^ high) ^ static_cast<std::uint32_t>(place >> 32));
        second_ = mixed(first_ ^ 0x9e3779b9u);
    }

    // 24 bits for each of the lower halves of places.
    template <class V>
    V at(V place) const {
        return mixed(mixed(place ^ first_) + second_) >> 8;
    }

private:
    std::uint32_t first_, second_;
};

}  // namespace laconic::LACONIC_ISA_NAMESPACE
