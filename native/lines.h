// How a tensor is cut into lines, and which lines foretell which.
#pragma once

#include "codes.h"
#include "simd.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

struct Line {
    std::int64_t start;   // flat place of its first element
    std::int64_t length;
    bool north, front;    // whether the line above, and the one in the plane before, foretell it
    std::int64_t in_plane;  // its first place in a plane
    std::int64_t slab;    // the first line of its slab: where prediction started anew
};

class Lines {
public:
    explicit Lines(const CodeJob& job)
        : job_(job),
          segment_(job.dims >= 2 ? job.width : smaller<std::int64_t>(job.width, kSegment)),
          per_row_((job.width + segment_ - 1) / segment_) {}

    std::int64_t holding(std::int64_t place) const {
        return place / job_.width * per_row_ + place % job_.width / segment_;
    }

    Line at(std::int64_t index) const {
        const std::int64_t row = index / per_row_, from = index % per_row_ * segment_;
        Line line{row * job_.width + from, smaller(segment_, job_.width - from), false, false, 0, index};
        if (job_.dims == 2) {
            const std::int64_t in_slab = row % job_.height % kSlabRows;
            line.north = in_slab != 0;
            line.slab = index - in_slab;
        } else if (job_.dims == 3) {
            const std::int64_t in_plane = row % job_.height, plane = row / job_.height % job_.depth;
            line.north = in_plane != 0;
            line.front = plane % kSlabPlanes != 0;
            line.in_plane = in_plane * job_.width;
            line.slab = index - in_plane - plane % kSlabPlanes * job_.height;
        }
        return line;
    }

private:
    const CodeJob& job_;
    std::int64_t segment_, per_row_;
};

// Codes of T are computed with as unsigned numbers, which wrap around.
template <class T>
struct UnsignedType;
template <>
struct UnsignedType<std::int8_t> {
    using type = std::uint8_t;
};
template <>
struct UnsignedType<std::int16_t> {
    using type = std::uint16_t;
};
template <>
struct UnsignedType<std::int32_t> {
    using type = std::uint32_t;
};
template <class T>
using Unsigned = typename UnsignedType<T>::type;

}  // namespace laconic::LACONIC_ISA_NAMESPACE
