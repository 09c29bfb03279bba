// What encoding and decoding of blocks share: the pass along rows, and the choice of a kernel.
#pragma once

#include <cstdint>

#include "block_job.h"
#include "rows.h"

namespace laconic::LACONIC_ISA_NAMESPACE {

// A block row is worked on in tiles of this many columns, which keeps what lies between the two
// passes in the first-level cache.
template <int N>
constexpr int kTile = N < 32 ? 256 : 128;

// How far apart a tile's rows are in scratch: not a power of two, so that a column's values do not
// compete for the same cache lines, and with room for a vector or block that begins inside the tile.
template <int N, class T>
constexpr int kRow = kTile<N> + larger(N, kLanes<T>);

struct Tile {
    std::int64_t block_row, first_block;
    int blocks;
    int height, width;    // of the part inside the image
    std::int64_t offset;  // of its first sample
    bool last;            // of its block row: the next tile begins the one below
};

template <int N, class Body>
void for_each_tile(const BlockJob& job, std::int64_t begin, std::int64_t end, Body body) {
    const ImageLayout& image = job.image;
    for (std::int64_t block_row = begin; block_row < end; ++block_row) {
        const std::int64_t top = block_row % job.block_rows * N;
        const std::int64_t start = image.offset_of(block_row / job.block_rows) + top * image.row_stride;
        const int height = static_cast<int>(smaller<std::int64_t>(N, image.height - top));
        for (std::int64_t left = 0; left < image.width; left += kTile<N>) {
            const int width = static_cast<int>(smaller<std::int64_t>(kTile<N>, image.width - left));
            body(Tile{block_row, left / N, (width + N - 1) / N, height, width,
                      start + left * image.column_stride, left + width == image.width});
        }
    }
}

// `known` is the number of terms where it is worth a kernel of its own, otherwise 0.
template <int blocks, int N, int known, class T>
inline void transform_blocks(const T* in, int terms, const T* table, T* __restrict out, int kept) {
    constexpr int lanes = smaller(N, kLanes<T>), parts = N / lanes;
    using V = Vec<T, lanes>;
    V sums[blocks][parts] = {};
#pragma GCC unroll 8
    for (int k = 0; k < (known ? known : terms); ++k) {
        for (int part = 0; part < parts; ++part) {
            const V weights = load_vector<V>(table + k * N + part * lanes);
            for (int b = 0; b < blocks; ++b) sums[b][part] += weights * in[b * terms + k];
        }
    }
    for (int b = 0; b < blocks; ++b) {
        for (int part = 0; part < parts; ++part) store_vector(out + b * kept + part * lanes, sums[b][part]);
    }
}

// On its own, the loop keeps the table in registers; inlined, it does not.
template <int N, int known, class T>
[[gnu::noinline]] void transform_row_of(const T* in, int blocks, int given, const T* table, T* __restrict out,
                                      int kept) {
    const int terms = known ? known : given;
    constexpr int group = larger(1, smaller(8, 8 * kLanes<T> / N));  // what the registers hold
    int block = 0;
    for (; block + group <= blocks; block += group) {
        transform_blocks<group, N, known>(in + block * terms, terms, table, out + block * kept, kept);
    }
    for (; block < blocks; ++block) {
        transform_blocks<1, N, known>(in + block * terms, terms, table, out + block * kept, kept);
    }
}

// The pass along rows, for each of `blocks` blocks: out[0 .. N) = sum over k of in[k] * table[k][0 .. N).
//
// A block is `terms` values of `in` and the first `kept` of its N results: the next block's results
// overwrite the rest, so `out` needs room for N more than it keeps.
template <int N, class T>
void transform_row(const T* in, int blocks, int terms, const T* table, T* __restrict out, int kept) {
    if constexpr (N == 8) {
        switch (terms) {
            case 1: return transform_row_of<N, 1>(in, blocks, terms, table, out, kept);
            case 2: return transform_row_of<N, 2>(in, blocks, terms, table, out, kept);
            case 3: return transform_row_of<N, 3>(in, blocks, terms, table, out, kept);
            case 4: return transform_row_of<N, 4>(in, blocks, terms, table, out, kept);
            case 5: return transform_row_of<N, 5>(in, blocks, terms, table, out, kept);
            case 6: return transform_row_of<N, 6>(in, blocks, terms, table, out, kept);
            case 7: return transform_row_of<N, 7>(in, blocks, terms, table, out, kept);
            default: return transform_row_of<N, 8>(in, blocks, terms, table, out, kept);
        }
    }
    transform_row_of<N, 0>(in, blocks, terms, table, out, kept);
}

// Kernel<Sample, Coefficient, N>::run for the job's types and block size.
template <template <class, class, int> class Kernel, class Sample, class Coefficient>
bool run_for_block(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.block) {
        case 4: return Kernel<Sample, Coefficient, 4>(job).run(begin, end);
        case 8: return Kernel<Sample, Coefficient, 8>(job).run(begin, end);
        case 16: return Kernel<Sample, Coefficient, 16>(job).run(begin, end);
        default: return Kernel<Sample, Coefficient, 32>(job).run(begin, end);
    }
}

template <template <class, class, int> class Kernel>
bool run_for_types(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    switch (job.image_dtype) {
        case Dtype::float64: return run_for_block<Kernel, double, double>(job, begin, end);
        case Dtype::float16: return run_for_block<Kernel, Float16, Float16>(job, begin, end);
        case Dtype::bfloat16: return run_for_block<Kernel, BFloat16, BFloat16>(job, begin, end);
        case Dtype::uint8: return run_for_block<Kernel, std::uint8_t, float>(job, begin, end);
        default: return run_for_block<Kernel, float, float>(job, begin, end);
    }
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
