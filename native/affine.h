// Floats <-> codes on an even grid <-> bit planes of a fixed width: the quantiser `affine` and the encoder
// `bitpack:width=N`, alone or one after the other in a single pass over memory.
//
//   encode:  floats --grid, quantise--> codes --pack--> planes
//            or codes                            or as they are
//   decode:  the same way back
//
// Work goes by pieces of at most kPieceCodes codes. A piece lies in one line, as each line has planes of its own.
#pragma once

#include <cstdint>

#include "elements.h"
#include "isa.h"

namespace laconic {

constexpr int kPlaneCodes = 32;     // a plane has a bit of each
constexpr int kPieceCodes = 8192;   // of groups of 256, what 32 of them and 256 blocks have in common

struct AffineJob {
    // Floats to or from; null where codes are what comes in or goes out.
    const void* floats_in = nullptr;
    void* floats_out = nullptr;
    Dtype dtype = Dtype::float32;
    bool streaming = false;        // the caches would not hold the floats that are written

    const std::uint8_t* codes_in = nullptr;  // a byte each, or planes
    std::uint8_t* codes_out = nullptr;
    int width = 0;                 // bits of a packed code; 0 where each takes a byte
    bool is_signed = false;

    // Each run of `row` elements is cut into scopes of `group`, the last of a row perhaps shorter, which have a grid
    // each, in the arithmetic of the floats.
    void* scales = nullptr;
    void* offsets = nullptr;       // null where the grid is symmetric
    std::int64_t row = 1, group = 1;
    int top_code = 0;              // the least is 0, or its opposite where the grid is symmetric
    bool finds_grid = false;       // by the kernel, as it goes; otherwise it is there
    bool stochastic = false;
    std::uint64_t seed = 0;

    std::int64_t count = 0;        // elements in all
    std::int64_t line = 1;         // elements that are packed together
    std::int64_t segment = 1;      // pieces begin at its multiples in a line
    std::int64_t unit = 0;         // elements of the units that are handed out; 0: they are segments

    std::int64_t scopes_in_row() const { return (row + group - 1) / group; }
    std::int64_t segments_in_line() const { return (line + segment - 1) / segment; }
    std::int64_t units() const { return unit > 0 ? count / unit : count / line * segments_in_line(); }
    std::int64_t line_bytes() const { return width * ((line + 7) / 8); }
};

// The least and greatest of some floats, as their arithmetic has them; what is not finite, in `low` or `high`.
struct Reach {
    double low, high;
};
LACONIC_DECLARE_KERNEL(Reach reach_of(const void* values, Dtype dtype, std::int64_t count))

// The grid of a scope that reaches so far.
LACONIC_DECLARE_KERNEL(void set_grid(const AffineJob& job, std::int64_t scope, Reach reach))

// Units [begin, end). False where a code does not fit in the width.
LACONIC_DECLARE_KERNEL(bool encode_affine(const AffineJob& job, std::int64_t begin, std::int64_t end))
LACONIC_DECLARE_KERNEL(void decode_affine(const AffineJob& job, std::int64_t begin, std::int64_t end))

// What Python calls; they settle how the job is cut.
bool affine_encode(AffineJob job, int threads);
void affine_decode(AffineJob job, int threads);

}  // namespace laconic
