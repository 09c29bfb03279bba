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
    std::int64_t offset, next_offset;  // of its first sample, and of the next tile's
    int blocks;
    int height, width;  // of the part inside the image
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
            const std::int64_t offset = start + left * image.column_stride;
            const std::int64_t next_offset = left + width < image.width ? offset + width * image.column_stride
                                                                        : start + N * image.row_stride;
            body(Tile{block_row, left / N, offset, next_offset, (width + N - 1) / N, height, width});
        }
    }
}

// For each of `blocks` blocks: out[0 .. N) = sum over k of in[k] * table[k][0 .. N).
//
// Blocks begin every `in_step` and `out_step` values. With out_step < N a block's surplus is
// overwritten by the next one, so `out` needs room for N values more than it keeps.
template <int group, int N, class T>
inline std::int64_t transform_row_groups(std::int64_t block, std::int64_t blocks, const T* in, int in_step,
                                         int terms, const T* table, T* __restrict out, int out_step) {
    constexpr int lanes = smaller(N, kLanes<T>), parts = N / lanes;
    using V = Vec<T, lanes>;
    for (; block + group <= blocks; block += group) {
        V sums[group][parts] = {};
        for (int k = 0; k < terms; ++k) {
            for (int part = 0; part < parts; ++part) {
                const V weights = load_vector<V>(table + k * N + part * lanes);
                for (int g = 0; g < group; ++g) sums[g][part] += weights * in[(block + g) * in_step + k];
            }
        }
        for (int g = 0; g < group; ++g) {
            for (int part = 0; part < parts; ++part) {
                store_vector(out + (block + g) * out_step + part * lanes, sums[g][part]);
            }
        }
    }
    return block;
}

template <int N, class T>
[[gnu::noinline]] void transform_row(std::int64_t blocks, const T* in, int in_step, int terms, const T* table, T* out,
                          int out_step) {
    constexpr int group = larger(1, smaller(4, 8 * kLanes<T> / N));
    const std::int64_t done =
        transform_row_groups<group, N>(0, blocks, in, in_step, terms, table, out, out_step);
    transform_row_groups<1, N>(done, blocks, in, in_step, terms, table, out, out_step);
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
