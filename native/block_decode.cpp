#include "block_passes.h"

namespace laconic::LACONIC_ISA_NAMESPACE {
namespace {

// The pass along columns: out[n][c] = sum over i < chop of matrix[n][i] * in[i][c].
//
// The even and the odd basis functions are summed apart. Where they alternate, the two sums give a
// row and its mirror image.
template <bool alternating, int N, class T>
void synthesise_columns(const T (*in)[kRow<N, T>], int columns, const T* transposed, int chop,
                        T (*out)[kRow<N, T>]) {
    constexpr int group = 4;  // output rows at a time
    for (int column = 0; column < columns; column += kLanes<T>) {
        for (int first = 0; first < (alternating ? N / 2 : N); first += group) {
            Vec<T> even[group] = {}, odd[group] = {};
            for (int i = 0; i < chop; i += 2) {
                const Vec<T> values = load(in[i] + column);
                for (int n = 0; n < group; ++n) even[n] += values * transposed[i * N + first + n];
                if (i + 1 == chop) break;
                const Vec<T> next = load(in[i + 1] + column);
                for (int n = 0; n < group; ++n) odd[n] += next * transposed[(i + 1) * N + first + n];
            }
            for (int n = 0; n < group; ++n) {
                const int row = first + n;
                store_vector(out[row] + column, even[n] + odd[n]);
                if constexpr (alternating) store_vector(out[N - 1 - row] + column, even[n] - odd[n]);
            }
        }
    }
}

template <class Sample, class Coefficient, int N>
class BlockDecoder {
    using T = Arithmetic<Sample>;

public:
    explicit BlockDecoder(const BlockJob& job)
        : job_(job),
          basis_(*static_cast<const Basis<T>*>(job.basis)),
          source_(static_cast<const Coefficient*>(job.source)),
          destination_(static_cast<Sample*>(job.destination)) {}

    bool run(std::int64_t begin, std::int64_t end) {
        for_each_tile<N>(job_, begin, end, [this](const Tile& tile) { decode(tile); });
        finish_streaming();
        return overflow_.seen();
    }

private:
    void decode(const Tile& tile) {
        const Coefficient* row = source_ + coefficients_before(job_, tile.block_row);
        for (int i = 0; i < job_.chop; ++i) {
            const int kept = kept_in_row(job_, i);
            const Coefficient* part = row + tile.first_block * kept;
            read_row(part, tile.blocks * kept, coefficients_);
            fetch_ahead(tile, part, kept);
            transform_row<N>(coefficients_, tile.blocks, kept, basis_.transposed, synthesised_[i], N);
            row += job_.block_columns * kept;
        }
        const auto synthesise =
            basis_.alternating ? synthesise_columns<true, N, T> : synthesise_columns<false, N, T>;
        synthesise(synthesised_, tile.blocks * N, basis_.transposed, job_.chop, samples_);
        write_samples(tile);
    }

    // The same row of the next tile.
    void fetch_ahead(const Tile& tile, const Coefficient* part, int kept) const {
        const std::int64_t next = tile.last ? coefficients_before(job_, 1) - tile.first_block * kept
                                            : tile.blocks * kept;
        const auto start = reinterpret_cast<std::uintptr_t>(part) + next * sizeof(Coefficient);
        const std::size_t bytes = tile.blocks * kept * sizeof(Coefficient);
        for (std::size_t line = 0; line < bytes; line += 64) fetch_line(start + line);
    }

    // One row after the other: memory is fast when it is written in its own order.
    void write_samples(const Tile& tile) {
        const std::int64_t row_stride = job_.image.row_stride;
        Sample* start = destination_ + tile.offset;
        const bool contiguous = job_.image.column_stride == 1;
        for (int r = 0; r < tile.height; ++r) {
            write_row(samples_[r], tile.width, contiguous ? start + r * row_stride : packed_[r],
                      job_.streaming && contiguous, overflow_);
        }
        if (!contiguous) scatter(tile, start);
    }

    void scatter(const Tile& tile, Sample* start) const {
        const std::int64_t row_stride = job_.image.row_stride, column_stride = job_.image.column_stride;
        for (int c = 0; c < tile.width; ++c) {
            for (int r = 0; r < tile.height; ++r) start[r * row_stride + c * column_stride] = packed_[r][c];
        }
    }

    const BlockJob& job_;
    const Basis<T>& basis_;
    const Coefficient* source_;
    Sample* destination_;
    Overflow overflow_;
    alignas(64) T coefficients_[kTile<N> + kLanes<T>];
    alignas(64) T synthesised_[N][kRow<N, T>];
    alignas(64) T samples_[N][kRow<N, T>];
    alignas(64) Sample packed_[N][kTile<N>];
};

}  // namespace

bool block_decode(const BlockJob& job, std::int64_t begin, std::int64_t end) {
    return run_for_types<BlockDecoder>(job, begin, end);
}

}  // namespace laconic::LACONIC_ISA_NAMESPACE
