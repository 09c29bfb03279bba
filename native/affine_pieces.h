// What both directions share: how units are cut into pieces and scopes, and the planes of a piece.
#pragma once

#include "affine.h"
#include "planes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// Calls `visit(begin, length)` for the pieces of units [first, last), `enter(begin, end)` before those of each unit.
template <class Enter, class Visit>
inline void visit_pieces(const AffineJob& job, std::int64_t first, std::int64_t last, Enter enter, Visit visit) {
    const std::int64_t per_line = job.segments_in_line();
    for (std::int64_t unit = first; unit < last; ++unit) {
        std::int64_t from, to;
        if (job.unit > 0) {
            from = unit * job.unit;
            to = from + job.unit;
        } else {
            const std::int64_t line = unit / per_line * job.line, at = unit % per_line * job.segment;
            from = line + at;
            to = line + smaller(at + job.segment, job.line);
        }
        enter(from, to);
        while (from < to) {
            const std::int64_t left = smaller(job.line - from % job.line, to - from);
            const std::int64_t length = smaller(job.segment, left);
            visit(from, length);
            from += length;
        }
    }
}

// Calls `visit(scope, begin, length)` for the runs of [begin, end) that share a grid.
template <class Visit>
inline void visit_scopes(const AffineJob& job, std::int64_t begin, std::int64_t end, Visit visit) {
    const std::int64_t per_row = job.scopes_in_row();
    const std::int64_t row = begin / job.row;
    std::int64_t in_row = begin % job.row;
    std::int64_t scope = row * per_row + in_row / job.group, in_group = in_row % job.group;
    while (begin < end) {
        const std::int64_t left = smaller(job.group - in_group, job.row - in_row);
        const std::int64_t length = smaller(left, end - begin);
        visit(scope++, begin, length);
        begin += length;
        in_row += length;
        in_group = 0;
        if (in_row == job.row) in_row = 0;
    }
}

// Where the planes of the piece that begins at this element are.
inline std::int64_t packed_place(const AffineJob& job, std::int64_t begin) {
    return begin / job.line * job.line_bytes() + begin % job.line / 8 * job.width;
}

template <int n>
struct Width {
    static constexpr int value = n;
};

template <class Call>
inline void with_width(int width, Call call) {
    switch (width) {
        case 1: return call(Width<1>{});
        case 2: return call(Width<2>{});
        case 3: return call(Width<3>{});
        case 4: return call(Width<4>{});
        case 5: return call(Width<5>{});
        case 6: return call(Width<6>{});
        case 7: return call(Width<7>{});
        default: return call(Width<8>{});
    }
}

// The last block of a line may be short: its planes have as many bytes as they need.
template <int width>
inline void pack_piece(const std::uint8_t* codes, std::int64_t count, std::uint8_t* out) {
    const std::int64_t blocks = count / kPlaneCodes, left = count % kPlaneCodes;
    for (std::int64_t i = 0; i < blocks; ++i) {
        planes_of_bytes<width>(codes + i * kPlaneCodes, out + i * 4 * width);
    }
    if (left == 0) return;
    std::uint8_t last[kPlaneCodes] = {}, planes[4 * width];
    __builtin_memcpy(last, codes + blocks * kPlaneCodes, left);
    planes_of_bytes<width>(last, planes);
    const std::int64_t bytes = (left + 7) / 8;
    for (int bit = 0; bit < width; ++bit) {
        __builtin_memcpy(out + blocks * 4 * width + bit * bytes, planes + 4 * bit, bytes);
    }
}

// Fills up the last block: `codes` has room for it.
template <int width>
inline void unpack_piece(const std::uint8_t* data, std::int64_t count, bool is_signed, std::uint8_t* codes) {
    using Block = Vec<std::uint8_t, kPlaneCodes>;
    const std::uint8_t sign = is_signed ? 1 << (width - 1) : 0;
    const auto unpack_block = [&](const std::uint8_t* planes, std::uint8_t* to) {
        bytes_of_planes(planes, width, to);
        if (sign != 0) store_vector(to, (load_vector<Block>(to) ^ sign) - sign);
    };
    const std::int64_t blocks = count / kPlaneCodes, left = count % kPlaneCodes;
    for (std::int64_t i = 0; i < blocks; ++i) unpack_block(data + i * 4 * width, codes + i * kPlaneCodes);
    if (left == 0) return;
    std::uint8_t planes[4 * width] = {};
    const std::int64_t bytes = (left + 7) / 8;
    for (int bit = 0; bit < width; ++bit) {
        __builtin_memcpy(planes + 4 * bit, data + blocks * 4 * width + bit * bytes, bytes);
    }
    unpack_block(planes, codes + blocks * kPlaneCodes);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
