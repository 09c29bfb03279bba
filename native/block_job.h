// What the kernels of the block codec are handed: everything decided that does not depend on data.
#pragma once

#include <cstdint>

#include "block.h"
#include "isa.h"

namespace laconic {

constexpr int kMaxBlock = 32;

// Where the samples of an image tensor lie, counted in elements.
struct ImageLayout {
    std::int64_t height, width;
    std::int64_t row_stride, column_stride;
    int leading_dims;
    std::int64_t leading_sizes[kMaxDims], leading_strides[kMaxDims];

    std::int64_t offset_of(std::int64_t image) const;
};

// The analysis (encode) or synthesis (decode) matrix, in the arithmetic of the kernel.
template <class T>
struct Basis {
    alignas(64) T matrix[kMaxBlock * kMaxBlock];      // N x N, row-major
    alignas(64) T transposed[kMaxBlock * kMaxBlock];
    // Basis functions 0, 2, 4 .. are even and 1, 3, 5 .. odd about the block's centre, which halves
    // the work of the pass over columns. True of DCT, ZFP and Hadamard.
    bool alternating;
};

struct BlockJob {
    const void* source;
    void* destination;
    Dtype image_dtype;
    ImageLayout image;
    const void* basis;  // Basis<double> for float64, otherwise Basis<float>
    int block, chop;
    bool triangle;
    bool streaming;  // the caches would not hold the result
    std::int64_t images;
    std::int64_t block_rows, block_columns;  // of one image
};

// How many coefficients a block keeps in its row `row`. (Static, as kernels must share no inline code.)
static inline int kept_in_row(const BlockJob& job, int row) {
    return job.triangle ? job.chop - row : job.chop;
}

// Where the coefficients of a block row begin, counted over all images.
static inline std::int64_t coefficients_before(const BlockJob& job, std::int64_t block_row) {
    const int kept_in_block = job.triangle ? job.chop * (job.chop + 1) / 2 : job.chop * job.chop;
    return block_row * job.block_columns * kept_in_block;
}

// Both run over a range of the block rows of all images, and tell whether a finite value became
// infinite when it was stored.
LACONIC_DECLARE_KERNEL(bool block_encode(const BlockJob& job, std::int64_t begin, std::int64_t end))
LACONIC_DECLARE_KERNEL(bool block_decode(const BlockJob& job, std::int64_t begin, std::int64_t end))

}  // namespace laconic
